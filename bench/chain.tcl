# Two chains of 16 hops in ns-2, as bench/chain.toml: 802.11 at 2 Mbit/s with RTS, static routes, nothing traced.
#   ns chain.tcl [SEED]
# Prints the datagrams that arrived.
ns-random [expr {[llength $argv] ? [lindex $argv 0] : 1}]
set hops 16

# Received power at a distance beyond the crossover: two-ray ground, antennas at 1.5 m.
set power 0.0316227766
proc at {metres} { global power; expr {0.99999 * $power * pow(1.5, 4) / pow($metres, 4)} }
Antenna/OmniAntenna set Z_ 1.5
Phy/WirelessPhy set Pt_ $power
Phy/WirelessPhy set freq_ 2.4e9
Phy/WirelessPhy set RXThresh_ [at 370]
Phy/WirelessPhy set CSThresh_ [at 520]
Phy/WirelessPhy set CPThresh_ 10
Mac/802_11 set dataRate_ 2Mb
Mac/802_11 set basicRate_ 2Mb
Mac/802_11 set RTSThreshold_ 0

set ns [new Simulator]
$ns trace-all [open /dev/null w]
set ground [new Topography]
$ground load_flatgrid 20000 2000
create-god [expr {2 * $hops + 2}]
$ns node-config -adhocRouting AODV -llType LL -macType Mac/802_11 -ifqType Queue/DropTail -ifqLen 50 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $ground \
    -agentTrace OFF -routerTrace OFF -macTrace OFF -movementTrace OFF
foreach {chain north} {a 100.0 b 550.0} {
    for {set i 0} {$i <= $hops} {incr i} {
        set node($chain$i) [$ns node]
        $node($chain$i) random-motion 0
        $node($chain$i) set X_ [expr {100.0 + 300 * $i}]
        $node($chain$i) set Y_ $north
        $node($chain$i) set Z_ 0.0
    }
}

# At node `here` a link layer of its own hands packets to the neighbour `next`; no ARP, no routing on the air.
proc towards {here next} {
    global node way
    if {![info exists way($here,$next)]} {
        set link [new LL]
        $link mac [$node($here) set mac_(0)]
        $link down-target [$node($here) set ifq_(0)]
        $link up-target [$node($here) entry]
        $link set macDA_ [[$node($next) set mac_(0)] id]
        set way($here,$next) [new NetworkInterface]
        $way($here,$next) target $link
    }
    return $way($here,$next)
}
foreach chain {a b} {
    for {set i 0} {$i <= $hops} {incr i} {
        for {set j 0} {$j <= $hops} {incr j} {
            if {$i == $j} continue
            set next [expr {$j > $i ? $i + 1 : $i - 1}]
            [$node($chain$i) entry] install [$node($chain$j) node-addr] [towards $chain$i $chain$next]
        }
    }
}

# ns-2's header of data has 6 bytes more than the standard's: they are taken off the IP header.
Agent/SCTP set dataChunkSize_ 1016
Agent/SCTP set mtu_ 1494
Agent/SCTP set ipHeaderSize_ 14
Agent/SCTP set initialRwnd_ 100000000
Agent/SCTP set useDelayedSacks_ 1
set sender [new Agent/SCTP]
set receiver [new Agent/SCTP]
$ns attach-agent $node(a0) $sender
$ns attach-agent $node(a$hops) $receiver
$ns connect $sender $receiver
set transfer [new Application/FTP]
$transfer attach-agent $sender
$ns at 1.0 "$transfer start"

set source [new Agent/UDP]
$source set packetSize_ 65000
set sink [new Agent/LossMonitor]
$ns attach-agent $node(b0) $source
$ns attach-agent $node(b$hops) $sink
$ns connect $source $sink
set traffic [new Application/Traffic/CBR]
$traffic attach-agent $source
$traffic set packetSize_ 1022
$traffic set interval_ [expr {1.0 / 24}]
$ns at 0.5 "$traffic start"

$ns at 360.0 { puts "datagrams [$sink set npkts_]"; flush stdout; exit 0 }
$ns run
