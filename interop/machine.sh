#!/bin/sh
# Process 1 of the machine that the Linux kernel's SCTP runs in (Debian's user-mode-linux, on the host's files): two
# interfaces, then the peer on the console. `program` stands on the kernel's command line.
#
# The driver of these interfaces says that it can segment, and drops each packet that SCTP then leaves to it (GSO): every second
# packet of a burst. With a `gso_max_size` of one packet, SCTP leaves it none. What the machine sends has the rate of the other
# direction (`limit` in machine.rs); a bucket has to hold what passes in a tick of its clock, 10 ms.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
mount -t proc proc /proc
mount -t sysfs sysfs /sys
stty -F /dev/console raw -echo
for module in hmac crc-ccitt ipv6 udp_tunnel ip6_udp_tunnel sctp sch_tbf; do
    insmod "$(find "/usr/lib/uml/modules/$(uname -r)" -name "$module.ko")" 2>/dev/null
done
ip link set lo up
for link in 0 1; do
    ip address add "10.77.$((link + 1)).2/24" dev "vec$link"
    ip link set "vec$link" up gso_max_size 1500
    tc qdisc add dev "vec$link" root tbf rate 20mbit burst 30000 limit 45000
done
"$program"
echo o >/proc/sysrq-trigger
sleep 10
