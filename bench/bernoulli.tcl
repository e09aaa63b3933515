# One transfer of papers/retransmission-policy-flaw/bernoulli.toml in ns-2: two disjoint paths of 45 ms, packets of the data direction
# are lost at random at the entry of the core links. usage: ns bernoulli.tcl SEED
set seed [lindex $argv 0]
remove-all-packet-headers
add-packet-header Common Flags IP SCTP
set ns [new Simulator]
ns-random [expr {$seed * 7919 + 13}]
set s [$ns node]; set r [$ns node]
foreach i {0 1} {
  foreach {end name} [list $s sender $r receiver] {
    set interface($name$i) [$ns node]
    $ns multihome-add-interface $end $interface($name$i)
  }
}
foreach {i loss} {0 0.08 1 0.05} {
  set a [$ns node]; set b [$ns node]
  foreach {x y rate delay limit} [list $interface(sender$i) $a 100Mb 10ms 167 $a $b 10Mb 25ms 42 $b $interface(receiver$i) 100Mb 10ms 167] {
    $ns duplex-link $x $y $rate $delay DropTail
    $ns queue-limit $x $y $limit; $ns queue-limit $y $x $limit
  }
  set chance [new RNG]; $chance seed [expr {$seed * 1009 + 31 * ($i + 1)}]
  set uniform [new RandomVariable/Uniform]; $uniform use-rng $chance
  set errors [new ErrorModel]; $errors unit pkt; $errors set rate_ $loss; $errors ranvar $uniform
  $errors drop-target [new Agent/Null]
  $ns lossmodel $errors $a $b
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
# Two steps of the counter rwnd_ for each of 2,889 chunks.
proc watch {base} {
  global ns agent
  if {[$agent(receiver) set rwnd_] >= $base + 2 * 2889 || [$ns now] > 3000} { exit 0 }
  $ns at [expr {[$ns now] + 0.5}] "watch $base"
}
$ns at 1.0 {watch [$agent(receiver) set rwnd_]}
$ns at 1.0 "$ftp send 4194304"
$ns run
