# One transfer in ns-2 over `paths` disjoint paths: edge 100 Mbit/s 10 ms - core - edge 100 Mbit/s 10 ms (d1, d2: the whole delay one
# way). fdropN and rdropN are the numbers (from 0, packets of all kinds counted) of the packets lost at the entry of core link N, towards the
# receiver or back; or everything is lost on the path `down` from down_at to up_at. With `chunks` 1 the data has no end and comes in chunks
# of `chunk` bytes. `cross` lists, for datagrams on core link 1, their size, the seconds between two, and the time of the first.
# The trace has every packet sent and received.
# Usage: ns droplist.tcl KEY VALUE ...
array set p {
  class Agent/SCTP/CMT paths 2
  bw1 10e6 d1 0.045 bw2 10e6 d2 0.045 q 50 bytes 2097152
  fdrop1 "" fdrop2 "" fdrop3 "" rdrop1 "" rdrop2 "" rdrop3 ""
  policy 4 sfr 1 cuc 1 dac 1 pf 0 pfcwnd 2 lr1 0 lr2 0 lr3 0 rtxToAlt 1 trig 3
  rwnd 65536 ssthresh 65536 burst 1 delsack 1 hb 30 chunk 1468 seed 1 pmr 5 cpt -1 hbr -1
  down 0 down_at 10 up_at 1e9 stop 2000 trace list.tr
  chunks 0 streams 1 unordered 0 sackdelay 0.2 minrto 1.0 cross ""
}
array set p $argv
remove-all-packet-headers
add-packet-header Common Flags IP RTP SCTP
set ns [new Simulator]
ns-random [expr {$p(seed) * 7919 + 13}]
Trace set show_sctphdr_ 1
set tf [open $p(trace) w]
set s [$ns node]; set r [$ns node]
set numbers [lrange {1 2 3} 0 [expr {$p(paths) - 1}]]
foreach i $numbers {
  set s$i [$ns node]; set r$i [$ns node]
  $ns multihome-add-interface $s [set s$i]
  $ns multihome-add-interface $r [set r$i]
}
proc dlink {x y bw d q} {
  global ns
  $ns duplex-link $x $y $bw $d DropTail
  $ns queue-limit $x $y $q; $ns queue-limit $y $x $q
}
proc lossy {x y list} {
  global ns
  if {$list eq ""} return
  set em [new ErrorModel/List]; $em unit pkt; $em droplist $list
  $em drop-target [new Agent/Null]
  $ns lossmodel $em $x $y
}
foreach i $numbers {
  set a [$ns node]; set b [$ns node]
  dlink [set s$i] $a 100e6 0.010 1000
  dlink $a $b $p(bw$i) [expr {$p(d$i) - 0.020}] $p(q)
  dlink $b [set r$i] 100e6 0.010 1000
  lossy $a $b $p(fdrop$i)
  lossy $b $a $p(rdrop$i)
  $ns trace-queue [set s$i] $a $tf
  $ns trace-queue $b [set r$i] $tf
  puts "path $i sender-link [[set s$i] id] [$a id] receiver-link [$b id] [[set r$i] id]"
  set core($i) [list $a $b]
}
if {$p(down)} {
  foreach {a b} $core($p(down)) break
  proc cut {rate} { global em1 em2; $em1 set rate_ $rate; $em2 set rate_ $rate }
  foreach {n x y} [list 1 $a $b 2 $b $a] {
    set u [new RandomVariable/Uniform]; $u use-rng [new RNG]
    set em$n [new ErrorModel]; [set em$n] unit pkt; [set em$n] set rate_ 0
    [set em$n] ranvar $u; [set em$n] drop-target [new Agent/Null]
    $ns lossmodel [set em$n] $x $y
  }
  $ns at $p(down_at) "cut 1.0"
  if {$p(up_at) < 1e8} { $ns at $p(up_at) "cut 0" }
}
set A [new $p(class)]; $ns multihome-attach-agent $s $A
set B [new $p(class)]; $ns multihome-attach-agent $r $B
foreach x [list $A $B] {
  $x set initialRwnd_ $p(rwnd); $x set initialSsthresh_ $p(ssthresh)
  $x set useMaxBurst_ $p(burst); $x set useDelayedSacks_ $p(delsack)
  $x set pathMaxRetrans_ $p(pmr); $x set heartbeatInterval_ $p(hb); $x set minRto_ $p(minrto)
  $x set numOutStreams_ $p(streams); $x set unordered_ $p(unordered); $x set sackDelay_ $p(sackdelay)
  $x set changePrimaryThresh_ $p(cpt); $x set rtxToAlt_ $p(rtxToAlt); $x set dataChunkSize_ $p(chunk); $x set fastRtxTrigger_ $p(trig)
  if {$p(class) eq "Agent/SCTP/CMT"} {
    $x set useCmtReordering_ $p(sfr); $x set useCmtCwnd_ $p(cuc); $x set useCmtDelAck_ $p(dac)
    $x set eCmtRtxPolicy_ $p(policy); $x set useCmtPF_ $p(pf); $x set cmtPFCwnd_ $p(pfcwnd)
  }
}
if {$p(hbr) >= 0} { $B set heartbeatInterval_ $p(hbr) }
$ns connect $A $B
$A set-primary-destination $r1
if {$p(class) eq "Agent/SCTP/CMT"} {
  foreach i $numbers { $A set-destination-lossrate [set r$i] $p(lr$i) }
}
set ftp [new Application/FTP]; $ftp attach-agent $A
set payload [expr {$p(chunk) - 16}]
set goal [expr {2 * (($p(bytes) + $payload - 1) / $payload)}]
set base 0
proc finish {} { global A tf ns; close $tf; puts "end [$ns now] [$A set timeoutCount_] [$A set frCount_]"; exit 0 }
# Agent/SCTP bumps rwnd_ once when a chunk is buffered and once when it is delivered in order.
proc poll {} {
  global ns B goal base p
  if {[$B set rwnd_] - $base >= $goal || [$ns now] > $p(stop)} finish
  $ns at [expr {[$ns now] + 0.01}] poll
}
if {$p(cross) ne ""} {
  foreach {size interval begin} $p(cross) break
  set udp [new Agent/UDP]; $udp set packetSize_ $size
  set sink [new Agent/Null]
  foreach {a b} $core(1) break
  $ns attach-agent $a $udp; $ns attach-agent $b $sink; $ns connect $udp $sink
  set cbr [new Application/Traffic/CBR]; $cbr attach-agent $udp
  $cbr set packetSize_ $size; $cbr set interval_ $interval; $cbr set random_ 0
  $ns at $begin "$cbr start"
}
$ns at 0.5 { set base [$B set rwnd_] }
if {$p(chunks)} { $ns at 0.5 "$ftp start" } else { $ns at 0.5 "$ftp send $p(bytes)" }
$ns at 0.5 poll
$ns run
