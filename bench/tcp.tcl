# One transfer by TCP over three links in ns-2, as tcp.toml: Sack1, an acknowledgement for each segment. Nothing is traced.
#   ns tcp.tcl BYTES
# Prints the segments that were sent.
set bytes [lindex $argv 0]
set ns [new Simulator]
foreach node {sender a b receiver} { set $node [$ns node] }
foreach {x y rate delay limit} [list $sender $a 1e9 0 10000 $a $b 10e6 0.050 50 $b $receiver 1e9 0 10000] {
    $ns duplex-link $x $y $rate $delay DropTail
    $ns queue-limit $x $y $limit
    $ns queue-limit $y $x $limit
}
set tcp [new Agent/TCP/Sack1]
foreach {key value} {packetSize_ 1460 window_ 120 windowInit_ 2 syn_ true delay_growth_ true} { $tcp set $key $value }
set sink [new Agent/TCPSink/Sack1]
$ns attach-agent $sender $tcp
$ns attach-agent $receiver $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$tcp proc done {} "puts \"\[$tcp set ndatapack_\] segments\"; exit 0"
$ns at 0 "$ftp send $bytes"
$ns run
