//! One endpoint in virtual time, whose network and peers are the fuzzer's.

use std::time::Duration;

use anabranch_proto::wire::chunk::{Bare, Init};
use anabranch_proto::wire::{Address, Chunk, Ecn, Packet, Param, Ports};
use anabranch_proto::{AssociationId, Config, Endpoint, Event, Incoming, Output, Policies, Time, Tsn};
use bytes::{Bytes, BytesMut};

use crate::support::{PORT, address, at};

/// The port of the endpoint, and of its peer.
pub const PORTS: Ports = Ports { source: PORT, destination: PORT + 1 };
/// Outputs of one drain at most: beyond it, the endpoint talks without end.
const MOST_OUTPUTS: usize = 20_000;
/// Timers that one pause may run at most.
const MOST_TIMERS: usize = 20_000;

/// The endpoint and what it has said.
pub struct Lone {
    pub end: Endpoint,
    pub now: Time,
    /// Packets that it sent; the case takes them out.
    pub sent: Vec<Packet>,
    pub events: Vec<(AssociationId, Event)>,
    /// When it wants to be polled.
    pub wake: Option<Time>,
    /// The largest packet that may carry data.
    room: usize,
}

impl Lone {
    /// An endpoint with one address for each path.
    pub fn new(paths: usize, config: &Config) -> Self {
        let config = at(0, paths, config);
        let room = (config.mtu - config.ip_header) as usize;
        let end = Endpoint::new(config, Policies::default(), [7; 32]).expect("a usable configuration");
        Lone { end, now: Time::ZERO, sent: Vec::new(), events: Vec::new(), wake: None, room }
    }

    /// Takes everything that the endpoint has to say.
    pub fn drain(&mut self) {
        for _ in 0..MOST_OUTPUTS {
            match self.end.poll(self.now) {
                Output::Transmit(packet, _) => self.transmitted(*packet),
                Output::Event(id, event) => self.events.push((id, event)),
                Output::Note(_) => {}
                Output::Wait(until) => return self.wake = until,
            }
        }
        panic!("{MOST_OUTPUTS} outputs and no end");
    }

    /// What is sent can be encoded, is decoded as it was, and fits its path if it carries data.
    fn transmitted(&mut self, packet: Packet) {
        let mut bytes = BytesMut::new();
        packet.encode(&mut bytes).expect("what is sent can be encoded");
        let load = packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Data(_) | Chunk::Sack(_)));
        assert!(!load || bytes.len() <= self.room, "{} bytes do not fit: {packet:?}", bytes.len());
        let back = Packet::decode(packet.from, packet.to, packet.ecn, bytes.freeze());
        assert_eq!(back.as_ref(), Ok(&packet));
        self.sent.push(packet);
    }

    /// A packet arrives.
    pub fn arrive(&mut self, packet: Packet) {
        self.end.handle(self.now, Incoming::Packet(Box::new(packet)));
        self.drain();
    }

    /// Chunks arrive from the peer's address on `path`.
    pub fn hear(&mut self, path: usize, tag: u32, chunks: impl IntoIterator<Item = Chunk>) {
        self.arrive(packet((path, path), tag, chunks.into_iter().collect()));
    }

    /// Time passes; the timers that fall due run.
    pub fn pass(&mut self, pause: Duration) {
        let until = self.now + pause;
        for _ in 0..MOST_TIMERS {
            let Some(wake) = self.wake.filter(|wake| *wake <= until) else {
                return self.now = until;
            };
            self.now = self.now.max(wake);
            self.drain();
        }
        panic!("{MOST_TIMERS} timers and no end");
    }

    /// The packets sent since last asked.
    pub fn take_sent(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.sent)
    }

    /// Connects to a peer with these INIT ACK values; the association and the tag that it wants to hear.
    pub fn establish(&mut self, paths: usize, ack: Init) -> (AssociationId, u32) {
        let to: Vec<Address> = (0..paths).map(|path| address(path, 1)).collect();
        let id = self.end.connect(self.now, PORTS.destination, &to).expect("a path");
        self.drain();
        let init = self.take_sent().pop().expect("an INIT");
        let Some(Chunk::Init(init)) = init.chunks.first() else { panic!("not an INIT: {init:?}") };
        let tag = init.tag;
        self.hear(0, tag, [Chunk::InitAck(Box::new(ack))]);
        self.hear(0, tag, [Chunk::CookieAck(Bare)]);
        assert!(self.events.contains(&(id, Event::Up)), "{:?}", self.events);
        (id, tag)
    }
}

/// A packet to the endpoint: from the peer's address on one path to the endpoint's on another.
pub fn packet((from, to): (usize, usize), tag: u32, chunks: Vec<Chunk>) -> Packet {
    Packet {
        from: address(from, 1),
        to: address(to, 0),
        ports: PORTS.reversed(),
        tag,
        ecn: Ecn::NotEct,
        chunks: chunks.into(),
    }
}

/// An INIT, or an INIT ACK, of a peer on so many paths.
pub fn init(tag: u32, tsn: Tsn, a_rwnd: u32, paths: usize) -> Init {
    let mut params = vec![Param::Cookie(Bytes::from_static(b"a cookie of the peer"))];
    params.extend((0..paths).filter_map(|path| match address(path, 1).ip {
        std::net::IpAddr::V4(ip) => Some(Param::Ipv4(ip)),
        std::net::IpAddr::V6(_) => None,
    }));
    Init { tag, a_rwnd, outbound: 8, inbound: 8, tsn, params }
}
