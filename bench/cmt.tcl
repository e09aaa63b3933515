# CMT in ns-2, for a comparison of speed: two disjoint paths, 1 % loss on both. ns bench/cmt.tcl BYTES
set bytes [lindex $argv 0]
remove-all-packet-headers
add-packet-header Common Flags IP SCTP
set ns [new Simulator]
ns-random 1
set s [$ns node]
set r [$ns node]
proc wire {x y rate delay queue} {
    global ns
    $ns duplex-link $x $y $rate $delay DropTail
    $ns queue-limit $x $y $queue
    $ns queue-limit $y $x $queue
}
foreach i {1 2} {
    set s$i [$ns node]
    set r$i [$ns node]
    $ns multihome-add-interface $s [set s$i]
    $ns multihome-add-interface $r [set r$i]
    set a [$ns node]
    set b [$ns node]
    wire [set s$i] $a 100Mb 10ms 1000
    wire $a $b 10Mb 25ms 50
    wire $b [set r$i] 100Mb 10ms 1000
    set chance [new RNG]
    $chance seed [expr {100 + $i}]
    set uniform [new RandomVariable/Uniform]
    $uniform use-rng $chance
    set loss [new ErrorModel]
    $loss unit pkt
    $loss set rate_ 0.01
    $loss ranvar $uniform
    $loss drop-target [new Agent/Null]
    $ns lossmodel $loss $a $b
}
set sender [new Agent/SCTP/CMT]
set receiver [new Agent/SCTP/CMT]
$ns multihome-attach-agent $s $sender
$ns multihome-attach-agent $r $receiver
foreach end [list $sender $receiver] {
    $end set initialRwnd_ 1048576
    $end set useCmtPF_ 0
}
$ns connect $sender $receiver
$sender set-primary-destination $r1
set transfer [new Application/FTP]
$transfer attach-agent $sender
$ns at 0.5 "$transfer send $bytes"
# The counter rwnd_ goes up once when a chunk is taken and once when it is delivered.
set goal [expr {2 * int(ceil($bytes / 1452.0))}]
set base 0
proc look {} {
    global ns receiver base goal
    if {[$receiver set rwnd_] - $base >= $goal} { puts "[$ns now] s"; exit 0 }
    $ns at [expr {[$ns now] + 1}] look
}
$ns at 0.5 { set base [$receiver set rwnd_]; look }
$ns run
