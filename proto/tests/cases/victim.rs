//! An endpoint that listens, and what it answers to bytes.

use std::net::{IpAddr, Ipv4Addr};

use anabranch_proto::wire::{Address, Chunk, Ecn, Packet, Param};
use anabranch_proto::{
    AssociationId, Config, Endpoint, Event, Incoming, LocalAddress, Output, Policies, Time,
};
use bytes::{Bytes, BytesMut};

use crate::bytes::{Init, chunk};

const PORT: u16 = 5000;

pub(crate) struct Victim {
    pub(crate) end: Endpoint,
    pub(crate) now: Time,
    pub(crate) id: Option<AssociationId>,
    /// The tag that it wants to hear, its first TSN and the cookie that it gave.
    pub(crate) tag: u32,
    pub(crate) tsn: u32,
    pub(crate) cookie: Vec<u8>,
    pub(crate) events: Vec<Event>,
}

fn host(number: u8) -> Address {
    Address::ip(IpAddr::V4(Ipv4Addr::new(10, 0, 0, number)))
}

impl Victim {
    /// One that nobody knows yet.
    pub(crate) fn new() -> Victim {
        let mut config = Config {
            addresses: vec![LocalAddress { address: host(1), prefix: 24 }],
            port: PORT,
            ..Config::default()
        };
        config.extensions.partial_reliability = true;
        config.extensions.reconfiguration = true;
        let end = Endpoint::new(config, Policies::default(), [3; 32]).expect("a usable configuration");
        let (events, cookie) = Default::default();
        Victim { end, now: Time::ZERO, id: None, tag: 0, tsn: 0, cookie, events }
    }

    /// One with an association that a peer with tag 5 has set up.
    pub(crate) fn established(init: &Init) -> Victim {
        let mut victim = Victim::new();
        assert_eq!(victim.invite(init), "INIT-ACK");
        let echo = victim.echo();
        assert_eq!(victim.hear(&echo), "COOKIE-ACK");
        assert!(victim.id.is_some());
        victim
    }

    /// Hears an INIT, and remembers what it answers.
    pub(crate) fn invite(&mut self, init: &Init) -> String {
        let answers = self.take(self.packet(0, &[init.bytes()]), 2);
        if let Some(Chunk::InitAck(ack)) = answers.first().and_then(|packet| packet.chunks.first()) {
            (self.tag, self.tsn) = (ack.tag, ack.tsn.0);
            let cookie = ack.params.iter().find_map(|param| match param {
                Param::Cookie(cookie) => Some(cookie.to_vec()),
                _ => None,
            });
            self.cookie = cookie.expect("a cookie");
        }
        described(&answers)
    }

    /// The COOKIE ECHO with the cookie that was given.
    pub(crate) fn echo(&self) -> Vec<u8> {
        chunk(10, 0, &self.cookie)
    }

    /// What it answers to a chunk under the right tag.
    pub(crate) fn hear(&mut self, chunk: &[u8]) -> String {
        self.hear_all(self.tag, &[chunk.to_vec()])
    }

    /// The same under another tag, and for several chunks in a packet.
    pub(crate) fn hear_all(&mut self, tag: u32, chunks: &[Vec<u8>]) -> String {
        self.hear_from(2, tag, chunks)
    }

    /// The same from another host.
    pub(crate) fn hear_from(&mut self, from: u8, tag: u32, chunks: &[Vec<u8>]) -> String {
        let answers = self.take(self.packet(tag, chunks), from);
        described(&answers)
    }

    /// What it answers to these bytes, whose checksum is looked at.
    pub(crate) fn hear_checked(&mut self, bytes: Bytes) -> String {
        let decoded = Packet::decode(host(2), host(1), Ecn::NotEct, bytes);
        decoded.map_or(String::new(), |packet| described(&self.handle(packet)))
    }

    /// The bytes of a packet, without a checksum.
    pub(crate) fn packet(&self, tag: u32, chunks: &[Vec<u8>]) -> Bytes {
        let ports = [5001u16.to_be_bytes(), PORT.to_be_bytes()].concat();
        [&ports[..], &tag.to_be_bytes(), &[0; 4], &chunks.concat()].concat().into()
    }

    fn take(&mut self, bytes: Bytes, from: u8) -> Vec<Packet> {
        let decoded = Packet::decode_unchecked(host(from), host(1), Ecn::NotEct, bytes);
        decoded.map_or(Vec::new(), |packet| self.handle(packet))
    }

    fn handle(&mut self, packet: Packet) -> Vec<Packet> {
        self.end.handle(self.now, Incoming::Packet(Box::new(packet)));
        self.drain()
    }

    /// What it sends now.
    pub(crate) fn drain(&mut self) -> Vec<Packet> {
        let mut answers = Vec::new();
        for _ in 0..10_000 {
            match self.end.poll(self.now) {
                Output::Transmit(packet, _) => {
                    packet.encode(&mut BytesMut::new()).expect("it can be encoded");
                    answers.push(*packet);
                }
                Output::Event(id, event) => {
                    if event == Event::Up {
                        self.id = Some(id);
                    }
                    self.events.push(event);
                }
                Output::Note(_) => {}
                Output::Wait(_) => return answers,
            }
        }
        panic!("an endless drain");
    }
}

/// Answers as text: chunks joined by `+`, packets by a space; a T bit is shown.
fn described(answers: &[Packet]) -> String {
    let chunk = |chunk: &Chunk| match chunk {
        Chunk::Data(_) => "DATA",
        Chunk::InitAck(_) => "INIT-ACK",
        Chunk::Sack(_) => "SACK",
        Chunk::HeartbeatAck(_) => "HEARTBEAT-ACK",
        Chunk::Abort(abort) if abort.reflected => "ABORT(T)",
        Chunk::Abort(_) => "ABORT",
        Chunk::ShutdownAck(_) => "SHUTDOWN-ACK",
        Chunk::ShutdownComplete(complete) if complete.reflected => "SHUTDOWN-COMPLETE(T)",
        Chunk::Error(_) => "ERROR",
        Chunk::CookieAck(_) => "COOKIE-ACK",
        Chunk::ReConfig(_) => "RE-CONFIG",
        _ => "OTHER",
    };
    let packet = |packet: &Packet| packet.chunks.iter().map(chunk).collect::<Vec<_>>().join("+");
    answers.iter().map(packet).collect::<Vec<_>>().join(" ")
}
