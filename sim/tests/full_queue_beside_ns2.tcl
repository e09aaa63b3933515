# Flows of ns-2 over one bottleneck with a drop-tail queue. Arguments: bit/s and delay of the bottleneck, its queue, when to begin and
# to end, the trace file, and for each flow a list: sack1, sack1-2002 or sctp; bit/s and delay of its access link; when it starts after the
# beginning; its window in packets (TCP) or bytes (SCTP); its segment or chunk; SACK blocks (TCP).
lassign $argv rate delay queue begin end file
set ns [new Simulator]
set router [$ns node]
set sink [$ns node]
$ns duplex-link $router $sink $rate $delay DropTail
$ns queue-limit $router $sink $queue
$ns queue-limit $sink $router 10000
set trace [open $file w]
Trace set show_sctphdr_ 1
foreach flow [lrange $argv 6 end] {
    lassign $flow kind access_rate access_delay start window size blocks
    set source [$ns node]
    $ns duplex-link $source $router $access_rate $access_delay DropTail
    $ns queue-limit $source $router 10000
    $ns queue-limit $router $source 10000
    if {$kind eq "sctp"} {
        set from [new Agent/SCTP]
        set to [new Agent/SCTP]
        foreach end_ [list $from $to] {
            foreach {name value} [list mtu_ 1500 ipHeaderSize_ 40 dataChunkSize_ $size initialRwnd_ $window initialSsthresh_ 65536 \
                useDelayedSacks_ 0 fastRtxTrigger_ 4 heartbeatInterval_ 5000 numOutStreams_ 1] { $end_ set $name $value }
        }
    } else {
        set from [new Agent/TCP/Sack1]
        set to [new Agent/TCPSink/Sack1]
        foreach {name value} [list packetSize_ $size window_ $window windowInit_ 2 syn_ true delay_growth_ true tcpTick_ 0.01] {
            $from set $name $value
        }
        $to set maxSackBlocks_ $blocks
        if {$kind eq "sack1-2002"} {
            foreach {name value} {singledup_ 0 precisionReduce_ false minrto_ 1} { $from set $name $value }
        }
    }
    $ns attach-agent $source $from
    $ns attach-agent $sink $to
    $ns connect $from $to
    $ns trace-queue $source $router $trace
    set application [new Application/FTP]
    $application attach-agent $from
    $ns at [expr {$begin + $start}] "$application start"
}
$ns at [expr {$begin + $end}] "$ns flush-trace; close $trace; exit 0"
$ns run
