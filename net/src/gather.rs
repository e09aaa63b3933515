//! Packets that wait for the kernel: encoded in sequence, in runs that one system call can send.

use std::collections::VecDeque;
use std::net::SocketAddr;

use anabranch_proto::wire::{Ecn, Packet};
use bytes::{Buf, BytesMut};

/// The largest number of waiting bytes. Further packets are dropped, as by a full queue.
const LIMIT: usize = 4 << 20;
/// The largest run in bytes: the size of a UDP datagram before the kernel cuts it into packets.
const LONGEST_RUN: usize = 65_000;

/// The packets that wait for one socket.
pub(crate) struct Gather {
    bytes: BytesMut,
    runs: VecDeque<Run>,
    /// The largest number of packets in a run.
    most: usize,
}

/// Packets to one destination. All but the last have the same size.
pub(crate) struct Run {
    pub(crate) to: SocketAddr,
    /// The size of each packet except the last, which may be shorter.
    pub(crate) size: usize,
    /// Bytes in all.
    pub(crate) len: usize,
    pub(crate) packets: usize,
    /// How the run is sent.
    pub(crate) manner: Manner,
    /// What the IP headers of all say about congestion.
    pub(crate) ecn: Ecn,
}

/// How a packet is sent.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    /// In a run with others of its size.
    Together,
    /// In a system call of its own: it probes the path MTU, and a path that carries runs need not carry it.
    Alone,
    /// In a system call of its own, and IP may fragment it: it is larger than the path MTU.
    Fragmented,
}

impl Run {
    /// Whether a packet of this size can follow.
    #[inline]
    fn fits(&self, to: SocketAddr, size: usize, ecn: Ecn, most: usize) -> bool {
        size <= self.size
            && self.ecn == ecn
            && self.packets < most
            && self.len + size <= LONGEST_RUN
            && self.manner == Manner::Together
            && self.len == self.packets * self.size
            && self.to == to
    }
}

impl Gather {
    /// Sets the largest number of packets in a run.
    pub(crate) fn new(most: usize) -> Self {
        Gather { bytes: BytesMut::new(), runs: VecDeque::new(), most: most.max(1) }
    }

    /// Adds a packet to the last run if it fits there; whether it did.
    pub(crate) fn extend(&mut self, to: SocketAddr, packet: &Packet, manner: Manner) -> bool {
        let size = packet.size();
        let Some(run) = self.runs.back_mut() else { return false };
        if manner != Manner::Together || !run.fits(to, size, packet.ecn, self.most) {
            return false;
        }
        if self.bytes.len() <= LIMIT && packet.encode(&mut self.bytes).is_ok() {
            run.len += size;
            run.packets += 1;
        }
        true
    }

    /// Begins a run with a packet.
    pub(crate) fn begin(&mut self, to: SocketAddr, packet: &Packet, manner: Manner) {
        if self.bytes.len() <= LIMIT && packet.encode(&mut self.bytes).is_ok() {
            let size = packet.size();
            self.runs.push_back(Run { to, size, len: size, packets: 1, manner, ecn: packet.ecn });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The first run and its bytes.
    pub(crate) fn first(&self) -> Option<(&Run, &[u8])> {
        self.runs.front().map(|run| (run, &self.bytes[..run.len]))
    }

    /// The first run was sent or abandoned.
    pub(crate) fn pop(&mut self) {
        let Some(run) = self.runs.pop_front() else { return };
        match self.runs.is_empty() {
            // The next packet is written to the same place.
            true => self.bytes.clear(),
            false => self.bytes.advance(run.len),
        }
    }

    /// From now on runs have at most so many packets.
    pub(crate) fn allow_runs(&mut self, most: usize) {
        self.most = most.max(1);
    }

    /// From now on runs have one packet, because the kernel did not cut them. Those that wait are taken apart.
    pub(crate) fn no_runs(&mut self) {
        self.allow_runs(1);
        let runs = std::mem::take(&mut self.runs);
        for Run { to, size, len, manner, ecn, .. } in runs {
            let one = |at| {
                let size = size.min(len - at);
                Run { to, size, len: size, packets: 1, manner, ecn }
            };
            self.runs.extend((0..len).step_by(size).map(one));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_proto::wire::chunk::{Bare, CookieEcho};
    use anabranch_proto::wire::{Address, Chunk, Ports};
    use std::net::{IpAddr, Ipv4Addr};

    fn packet(cookie: usize) -> Packet {
        let place = Address::ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let chunk = match cookie {
            0 => Chunk::CookieAck(Bare),
            n => Chunk::CookieEcho(CookieEcho { cookie: vec![0; n].into() }),
        };
        let (ports, chunks) = (Ports { source: 1, destination: 2 }, [chunk].into_iter().collect());
        Packet { from: place, to: place, ports, tag: 3, ecn: Ecn::NotEct, chunks }
    }

    impl Gather {
        fn push(&mut self, to: SocketAddr, packet: &Packet, manner: Manner) {
            if !self.extend(to, packet, manner) {
                self.begin(to, packet, manner);
            }
        }
    }

    fn to(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    fn shape(gather: &mut Gather) -> Vec<(u16, usize, usize)> {
        let mut shape = Vec::new();
        while let Some((run, bytes)) = gather.first() {
            assert_eq!(bytes.len(), run.len);
            shape.push((run.to.port(), run.size, run.packets));
            gather.pop();
        }
        assert!(gather.bytes.is_empty());
        shape
    }

    #[test]
    fn packets_of_one_size_and_a_shorter_last_one_make_a_run() {
        let mut gather = Gather::new(64);
        [100, 100, 40, 40, 100].iter().for_each(|size| gather.push(to(1), &packet(*size), Manner::Together));
        gather.push(to(2), &packet(100), Manner::Together);
        assert_eq!(shape(&mut gather), [(1, 116, 3), (1, 56, 1), (1, 116, 1), (2, 116, 1)]);
    }

    #[test]
    fn a_run_has_its_limits_and_nothing_waits_without_end() {
        let mut gather = Gather::new(3);
        (0..4).for_each(|_| gather.push(to(1), &packet(0), Manner::Together));
        assert_eq!(shape(&mut gather), [(1, 16, 3), (1, 16, 1)]);
        let mut gather = Gather::new(1000);
        (0..100).for_each(|_| gather.push(to(1), &packet(1400), Manner::Together));
        assert_eq!(shape(&mut gather), [(1, 1416, 45), (1, 1416, 45), (1, 1416, 10)]);
        (0..10_000).for_each(|_| gather.push(to(1), &packet(1400), Manner::Together));
        assert!(gather.bytes.len() <= LIMIT + 1416);
    }

    #[test]
    fn probes_and_packets_that_are_too_large_go_alone() {
        for manner in [Manner::Alone, Manner::Fragmented] {
            let mut gather = Gather::new(64);
            let manners = [Manner::Together, manner, Manner::Together, Manner::Together];
            manners.iter().for_each(|manner| gather.push(to(1), &packet(100), *manner));
            assert_eq!(shape(&mut gather), [(1, 116, 1), (1, 116, 1), (1, 116, 2)]);
        }
    }

    #[test]
    fn the_packets_of_a_run_say_the_same_about_congestion() {
        let mut gather = Gather::new(64);
        for ecn in [Ecn::Ect0, Ecn::Ect0, Ecn::NotEct, Ecn::Ect0] {
            gather.push(to(1), &Packet { ecn, ..packet(100) }, Manner::Together);
        }
        assert_eq!(
            gather.runs.iter().map(|run| run.ecn).collect::<Vec<_>>(),
            [Ecn::Ect0, Ecn::NotEct, Ecn::Ect0]
        );
        assert_eq!(shape(&mut gather), [(1, 116, 2), (1, 116, 1), (1, 116, 1)]);
    }

    #[test]
    fn runs_can_be_taken_apart() {
        let mut gather = Gather::new(64);
        [100, 100, 40].iter().for_each(|size| gather.push(to(1), &packet(*size), Manner::Together));
        gather.no_runs();
        gather.push(to(1), &packet(40), Manner::Together);
        assert_eq!(shape(&mut gather), [(1, 116, 1), (1, 116, 1), (1, 56, 1), (1, 56, 1)]);
    }
}
