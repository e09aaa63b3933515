# One TCP and one SCTP flow over a geostationary satellite in ns-2, as papers/satellite-fairness/n2.toml: 500 s. The satellite link
# is traced, from which the throughputs are counted.
#   ns satellite.tcl [SEED [TRACE]]
# Prints the packets of TCP that were acknowledged.
set seed [expr {[llength $argv] ? [lindex $argv 0] : 1}]
set trace [open [expr {[llength $argv] > 1 ? [lindex $argv 1] : "/dev/null"}] w]
set ns [new Simulator]
$defaultRNG seed [expr 7919 + $seed]
foreach node {tcp1 sctp1 router destination} { set $node [$ns node] }
foreach source [list $tcp1 $sctp1] {
    $ns duplex-link $source $router 10e6 2ms DropTail
    $ns queue-limit $source $router 10000
    $ns queue-limit $router $source 10000
}
$ns duplex-link $router $destination 2e6 250ms DropTail
$ns queue-limit $router $destination 10
$ns queue-limit $destination $router 10000
$ns trace-queue $router $destination $trace

set draws [new RandomVariable/Uniform]
$draws set min_ 0
$draws set max_ 1
$draws use-rng [new RNG]
set losses [new ErrorModel]
$losses set rate_ 0.015
$losses unit pkt
$losses ranvar $draws
$losses drop-target [new Agent/Null]
$ns lossmodel $losses $router $destination

set tcp [new Agent/TCP/Sack1]
foreach {key value} {packetSize_ 1448 window_ 44 windowInit_ 2 syn_ true delay_growth_ true tcpTick_ 0.01
                     singledup_ 0 precisionReduce_ false minrto_ 1 useHeaders_ true} { $tcp set $key $value }
set sctp [new Agent/SCTP]
set peer [new Agent/SCTP]
foreach end [list $sctp $peer] {
    foreach {key value} {mtu_ 1500 ipHeaderSize_ 40 dataChunkSize_ 1448 initialRwnd_ 65536 initialSsthresh_ 65536
                         useDelayedSacks_ 0 fastRtxTrigger_ 4 numOutStreams_ 1} { $end set $key $value }
}
set sink [new Agent/TCPSink/Sack1]
foreach {node agent} [list $tcp1 $tcp $destination $sink $sctp1 $sctp $destination $peer] { $ns attach-agent $node $agent }
$ns connect $tcp $sink
$ns connect $sctp $peer
foreach agent [list $tcp $sctp] {
    set application [new Application/FTP]
    $application attach-agent $agent
    $ns at 0.8 "$application start"
}
proc report {} {
    global ns tcp trace
    $ns flush-trace
    close $trace
    puts "TCP [$tcp set ack_]"
    exit 0
}
$ns at 500 report
$ns run
