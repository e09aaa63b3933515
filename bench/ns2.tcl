# The topology of papers/receive-buffer-blocking for ns-2: two disjoint paths of three links, one transfer.
# Nothing is traced. Delivery is unordered: ordered delivery stalls in ns-2.35 after 65,536 chunks.
#   ns ns2.tcl BYTES
set bytes [lindex $argv 0]
Trace set show_sctphdr_ 0
set ns [new Simulator]
foreach side {s r} {
    set $side [$ns node]
    foreach home {0 1} {
        set $side$home [$ns node]
        $ns multihome-add-interface [set $side] [set $side$home]
    }
}
foreach router {a b c d} { set $router [$ns node] }
proc link {x y rate delay limit} {
    global ns
    $ns duplex-link $x $y $rate $delay DropTail
    $ns queue-limit $x $y $limit
    $ns queue-limit $y $x $limit
}
link $s0 $a 1e9 0 10000
link $a $b 10e6 0.050 50
link $b $r0 1e9 0 10000
link $s1 $c 1e9 0 10000
link $c $d 36e3 0.300 50
link $d $r1 1e9 0 10000
set sender [new Agent/SCTP]
set receiver [new Agent/SCTP]
$ns multihome-attach-agent $s $sender
$ns multihome-attach-agent $r $receiver
foreach end [list $sender $receiver] {
    $end set mtu_ 1500
    $end set dataChunkSize_ 1468
    $end set initialSsthresh_ 350000
    $end set initialRwnd_ 1000000
    $end set rtxToAlt_ 0
    $end set useMaxBurst_ 1
    $end set fastRtxTrigger_ 4
    $end set unordered_ 1
}
$ns connect $sender $receiver
$sender set-primary-destination $r0
set ftp [new Application/FTP]
$ftp attach-agent $sender
$ns at 5.0 "$ftp send $bytes"
$ns at [expr 5.0 + $bytes * 8.8 / 10e6 + 10] "exit 0"
$ns run
