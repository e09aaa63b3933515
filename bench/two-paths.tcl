# Concurrent multipath transfer in ns-2 over two paths of one link each, a tenth of the data packets lost on the first: data without end for
# 300 s, to a reader that stops at the wrap of the stream sequence numbers. Prints user data delivered, in bit/s.
#   ns two-paths.tcl RATE1 DELAY1 RATE2 DELAY2 POLICY SEED
# bit/s and seconds; POLICY: 0 ASAP, 1 SAME, 2 SSTHRESH, 3 LOSSRATE (told equal rates), 4 CWND.
lassign $argv rate(1) delay(1) rate(2) delay(2) policy seed
remove-all-packet-headers
add-packet-header Common Flags IP SCTP
set ns [new Simulator]
ns-random [expr {$seed * 7919 + 13}]
set sender [$ns node]
set receiver [$ns node]
foreach path {1 2} {
    set from($path) [$ns node]
    set to($path) [$ns node]
    $ns multihome-add-interface $sender $from($path)
    $ns multihome-add-interface $receiver $to($path)
    $ns duplex-link $from($path) $to($path) $rate($path) $delay($path) DropTail
    $ns queue-limit $from($path) $to($path) 50
    $ns queue-limit $to($path) $from($path) 50
}
set chance [new RNG]
$chance seed [expr {$seed * 1009 + 31}]
set uniform [new RandomVariable/Uniform]
$uniform use-rng $chance
set loss [new ErrorModel]
$loss unit pkt
$loss set rate_ 0.1
$loss ranvar $uniform
$loss drop-target [new Agent/Null]
$ns lossmodel $loss $from(1) $to(1)

set a [new Agent/SCTP/CMT]
set b [new Agent/SCTP/CMT]
$ns multihome-attach-agent $sender $a
$ns multihome-attach-agent $receiver $b
foreach end [list $a $b] {
    $end set initialRwnd_ 65536
    $end set initialSsthresh_ 65536
    $end set useMaxBurst_ 1
    $end set useCmtReordering_ 1
    $end set useCmtCwnd_ 1
    $end set useCmtDelAck_ 1
    $end set useCmtPF_ 0
    $end set eCmtRtxPolicy_ $policy
}
$ns connect $a $b
$a set-primary-destination $to(1)
set source [new Application/FTP]
$source attach-agent $a
$ns at 0.5 "$source start"
# The receiver counts each chunk of 1452 bytes in rwnd_ when it arrives and when it is delivered in order.
$ns at 0.4 { set before [$b set rwnd_] }
$ns at 300.0 { puts [format %.0f [expr {([$b set rwnd_] - $before) / 2.0 * 1452 * 8 / 299.5}]]; exit 0 }
$ns run
