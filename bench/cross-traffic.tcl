# One transfer of papers/retransmission-policy-flaw/crosstraffic.toml in ns-2: at each router four nodes with eight sources in bursts, in
# both directions. usage: ns cross-traffic.tcl SEED LOAD0 LOAD1   (bit/s)
foreach {seed load(0) load(1)} $argv break
remove-all-packet-headers
add-packet-header Common Flags IP SCTP RTP
set ns [new Simulator]
ns-random [expr {$seed * 7919 + 13}]
set drawn [new RNG]; $drawn seed [expr {$seed * 104729 + 7}]
# Queues of twice the bandwidth-delay product, in packets.
proc wire {x y rate delay} {
  global ns
  $ns duplex-link $x $y $rate $delay DropTail
  set limit [expr {int(ceil(2 * $rate * $delay / 8 / 1500))}]
  $ns queue-limit $x $y $limit; $ns queue-limit $y $x $limit
}
proc source {from to size rate} {
  global ns drawn
  set udp [new Agent/UDP]; $udp set packetSize_ $size; $ns attach-agent $from $udp
  set sink [new Agent/Null]; $ns attach-agent $to $sink
  $ns connect $udp $sink
  set bursts [new Application/Traffic/Pareto]
  $bursts set packetSize_ $size; $bursts set burst_time_ 0.5s; $bursts set idle_time_ 0.5s
  $bursts set shape_ 1.5; $bursts set rate_ [expr {2 * $rate}]
  $bursts attach-agent $udp
  $ns at [$drawn uniform 0 1.0] "$bursts start"
}
set s [$ns node]; set r [$ns node]
foreach i {0 1} {
  foreach {end name} [list $s sender $r receiver] {
    set interface($name$i) [$ns node]
    $ns multihome-add-interface $end $interface($name$i)
  }
}
foreach i {0 1} {
  set a [$ns node]; set b [$ns node]
  wire $interface(sender$i) $a 100e6 0.010
  wire $a $b 10e6 0.025
  wire $b $interface(receiver$i) 100e6 0.010
  # All sources have the same packet rate; packets have 541 bytes on average.
  set packets [expr {$load($i) / (8.0 * 541) / 32}]
  for {set k 0} {$k < 4} {incr k} {
    set x [$ns node]; set y [$ns node]
    wire $x $a 100e6 [$drawn uniform 0.005 0.020]
    wire $b $y 100e6 [$drawn uniform 0.005 0.020]
    foreach size {44 44 44 44 576 576 1500 1500} {
      source $x $y $size [expr {$packets * $size * 8}]
      source $y $x $size [expr {$packets * $size * 8}]
    }
  }
}
foreach {name end} [list sender $s receiver $r] {
  set agent($name) [new Agent/SCTP]
  $ns multihome-attach-agent $end $agent($name)
  $agent($name) set initialRwnd_ 65536
  $agent($name) set initialSsthresh_ 65536
  $agent($name) set dataChunkSize_ 1468
}
$ns connect $agent(sender) $agent(receiver)
$agent(sender) set-primary-destination $interface(receiver0)
set ftp [new Application/FTP]; $ftp attach-agent $agent(sender)
proc watch {base} {
  global ns agent
  if {[$agent(receiver) set rwnd_] >= $base + 2 * 2889 || [$ns now] > 600} { puts [$ns now]; exit 0 }
  $ns at [expr {[$ns now] + 0.5}] "watch $base"
}
$ns at 10.0 {watch [$agent(receiver) set rwnd_]}
$ns at 10.0 "$ftp send 4194304"
$ns run
