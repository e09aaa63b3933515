# A saturated chain of radios in ns-2, 200 m from node to node, frames read up to 250 m and sensed up to 550 m: datagrams of 1000 B at
# 6 Mbit/s along all its hops for 40 s. DATA at 11 Mbit/s, control frames at 1 Mbit/s.
#   ns saturated.tcl HOPS RTS TRACE [SEED]
# RTS: 0 with, 10000 without. Prints the datagrams that arrived from the fifth second on; the frames go to the file TRACE.
lassign $argv hops threshold frames seed
ns-random [expr {$seed eq "" ? 1 : $seed}]

# Received power at a distance beyond the crossover: two-ray ground, antennas at 1.5 m. At 100 MHz the crossover is at 9 m.
set power 0.0316227766
proc at {metres} { global power; expr {0.99999 * $power * pow(1.5, 4) / pow($metres, 4)} }
Antenna/OmniAntenna set Z_ 1.5
Phy/WirelessPhy set Pt_ $power
Phy/WirelessPhy set freq_ 1e8
Phy/WirelessPhy set RXThresh_ [at 250]
Phy/WirelessPhy set CSThresh_ [at 550]
Phy/WirelessPhy set CPThresh_ 10
Mac/802_11 set dataRate_ 11Mb
Mac/802_11 set basicRate_ 1Mb
Mac/802_11 set RTSThreshold_ $threshold

set ns [new Simulator]
$ns trace-all [open $frames w]
set ground [new Topography]
$ground load_flatgrid 20000 2000
create-god [expr {$hops + 1}]
$ns node-config -adhocRouting AODV -llType LL -macType Mac/802_11 -ifqType Queue/DropTail -ifqLen 51 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $ground \
    -agentTrace OFF -routerTrace OFF -macTrace ON -movementTrace OFF
for {set i 0} {$i <= $hops} {incr i} {
    set node($i) [$ns node]
    $node($i) random-motion 0
    $node($i) set X_ [expr {100.0 + 200 * $i}]
    $node($i) set Y_ 100.0
    $node($i) set Z_ 0.0
}

# Each node has a link layer of its own that hands packets to the next; no ARP, no routing on the air.
for {set i 0} {$i < $hops} {incr i} {
    set link [new LL]
    $link mac [$node($i) set mac_(0)]
    $link down-target [$node($i) set ifq_(0)]
    $link up-target [$node($i) entry]
    $link set macDA_ [[$node([expr {$i + 1}]) set mac_(0)] id]
    set way [new NetworkInterface]
    $way target $link
    [$node($i) entry] install [$node($hops) node-addr] $way
}

# 1000 B with IP and UDP, less the 6 bytes by which ns-2's header of data is longer than the standard's.
set source [new Agent/UDP]
$source set packetSize_ 65000
set sink [new Agent/LossMonitor]
$ns attach-agent $node(0) $source
$ns attach-agent $node($hops) $sink
$ns connect $source $sink
set traffic [new Application/Traffic/CBR]
$traffic attach-agent $source
$traffic set packetSize_ 1022
$traffic set interval_ [expr {8000 / 6e6}]
$ns at 0.5 "$traffic start"
$ns at 5.0 { set early [$sink set npkts_] }
$ns at 40.0 { puts "datagrams [expr {[$sink set npkts_] - $early}]"; $ns flush-trace; flush stdout; exit 0 }
$ns run
