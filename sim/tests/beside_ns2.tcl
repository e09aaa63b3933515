# One TCP flow of ns-2: a source, a router, a bottleneck, a sink. Arguments: variant (sack1, sack1-2002), bit/s and delay of the
# bottleneck, start, end, trace file, class of the sink, and the numbers of the lost packets, the SYN being number 0.
lassign $argv variant rate delay start end file class
set lost [lrange $argv 7 end]
set ns [new Simulator]
foreach node {source router sink} { set $node [$ns node] }
$ns duplex-link $source $router 10e6 0.002 DropTail
$ns duplex-link $router $sink $rate $delay DropTail
foreach {a b} [list $source $router $router $source $router $sink $sink $router] { $ns queue-limit $a $b 10000 }
if {[llength $lost] > 0} {
    set losses [new ErrorModel/List]
    $losses droplist $lost
    $losses unit pkt
    $losses drop-target [new Agent/Null]
    $ns lossmodel $losses $router $sink
}
set trace [open $file w]
$ns trace-queue $source $router $trace
set tcp [new Agent/TCP/Sack1]
foreach {name value} {packetSize_ 1448 window_ 44 windowInit_ 2 syn_ true delay_growth_ true tcpTick_ 0.01} { $tcp set $name $value }
if {$variant eq "sack1-2002"} {
    foreach {name value} {singledup_ 0 precisionReduce_ false minrto_ 1} { $tcp set $name $value }
}
set receiver [new $class]
$ns attach-agent $source $tcp
$ns attach-agent $sink $receiver
$ns connect $tcp $receiver
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at $start "$ftp start"
$ns at $end "$ns flush-trace; close $trace; exit 0"
$ns run
