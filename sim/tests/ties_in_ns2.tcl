# A transfer of 20 MB over two disjoint paths in ns-2, as papers/receive-buffer-blocking has them, with access links of 100 Mbit/s.
# Prints the seconds from the send call to the arrival of the last DATA packet. Arguments: the send time in seconds, bit/s of the
# primary and of the secondary bottleneck, bytes of the receive buffer.
lassign $argv start primary secondary window
Trace set show_sctphdr_ 1
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
link $s0 $a 100e6 0 10000
link $a $b $primary 0.050 50
link $b $r0 100e6 0 10000
link $s1 $c 100e6 0 10000
link $c $d $secondary 0.300 50
link $d $r1 100e6 0 10000
set trace [open "|awk {\$1 == \"r\" && \$7 ~ /D/ { last = \$2 } END { printf \"%.6f\\n\", last - $start }} >@stdout" w]
$ns trace-queue $b $r0 $trace
$ns trace-queue $d $r1 $trace
set sender [new Agent/SCTP]
set receiver [new Agent/SCTP]
$ns multihome-attach-agent $s $sender
$ns multihome-attach-agent $r $receiver
foreach end [list $sender $receiver] {
    foreach {name value} {mtu_ 1500 dataChunkSize_ 1468 initialSsthresh_ 1000000 rtxToAlt_ 1 useMaxBurst_ 1 fastRtxTrigger_ 4} {
        $end set $name $value
    }
    $end set initialRwnd_ $window
}
$ns connect $sender $receiver
$sender set-primary-destination $r0
set ftp [new Application/FTP]
$ftp attach-agent $sender
$ns at $start "$ftp send 20000000"
$ns at [expr $start + 300] "$ns flush-trace; close $trace; exit 0"
$ns run
