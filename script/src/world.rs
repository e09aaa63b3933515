//! The world of one script: its clock, the endpoint, what it has sent, and what the peer sends it.

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_proto::wire::{Address, Ecn, Packet as Typed};
use anabranch_proto::{AssociationId, Config, Endpoint, Event, Incoming, Output, Policies, Time};
use bytes::{Bytes, BytesMut};

use super::ast::{Checksum, Packet};
use super::live::Live;
use super::setup::{PORT, Setup};
use super::socket::Sockets;
use super::wire::{self, EchoedValues};

/// The peer's port if it speaks first.
const PEER_PORT: u16 = 40_000;
/// Lines of the log that a failure shows.
const LOG: usize = 12;
const UDP_HEADER: u32 = 8;

/// A packet that the stack has sent.
pub(super) struct Sent {
    pub(super) at: Time,
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
    /// The UDP ports that it goes in, if it does.
    pub(super) udp: Option<(u16, u16)>,
    pub(super) ecn: Ecn,
    /// Whether its checksum may be zero.
    pub(super) omits: bool,
    /// Common header and chunks, with the stack's own numbers.
    pub(super) bytes: Vec<u8>,
}

pub(super) struct World {
    pub(super) now: Time,
    pub(super) endpoint: Endpoint,
    /// When the endpoint wants to be polled.
    wake: Option<Time>,
    /// Sent and not yet expected by the script.
    pub(super) queue: VecDeque<Sent>,
    pub(super) sockets: Sockets,
    pub(super) live: Live,
    pub(super) seen: EchoedValues,
    pub(super) local: Vec<IpAddr>,
    pub(super) peer: Vec<IpAddr>,
    /// The peer's port, once somebody has spoken.
    pub(super) peer_port: Option<u16>,
    /// The UDP port of every address; 0: none.
    pub(super) udp: u16,
    /// Bytes of SCTP that the path MTU leaves.
    pub(super) room: usize,
    log: VecDeque<String>,
}

impl World {
    pub(super) fn new(setup: &Setup) -> Result<World, String> {
        let config: &Config = &setup.config;
        let header = config.ip_header + if setup.udp == 0 { 0 } else { UDP_HEADER };
        let room = (config.mtu - header) as usize;
        // One seed for all scripts: what is random in the stack is translated, or said to be free.
        let mut endpoint =
            Endpoint::new(config.clone(), Policies::default(), [7; 32]).map_err(|e| e.to_string())?;
        endpoint.set_listening(false);
        Ok(World {
            now: Time::ZERO,
            endpoint,
            wake: None,
            queue: VecDeque::new(),
            sockets: Sockets::new(config.clone()),
            live: Live::default(),
            seen: EchoedValues::default(),
            local: setup.local.clone(),
            peer: setup.peer.clone(),
            peer_port: None,
            udp: setup.udp,
            room,
            log: VecDeque::new(),
        })
    }

    /// Fires every timer that is due up to `to`, in order, and makes it that time.
    pub(super) fn advance(&mut self, to: Time) {
        while let Some(wake) = self.wake.filter(|wake| *wake <= to) {
            self.step(wake);
        }
        self.now = self.now.max(to);
    }

    /// When the next timer is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.wake
    }

    /// Fires what is due at `at`.
    pub(super) fn step(&mut self, at: Time) {
        self.now = self.now.max(at);
        self.wake = None;
        self.drain();
    }

    /// Collects the output of the endpoint.
    pub(super) fn drain(&mut self) {
        let mut again = true;
        loop {
            match self.endpoint.poll(self.now) {
                Output::Transmit(packet, _) => self.transmitted(&packet),
                Output::Event(id, event) => self.heard(id, &event),
                Output::Note(_) => {}
                // A call may have set a timer to a time that has passed: it is due now.
                Output::Wait(Some(at)) if at <= self.now && again => again = false,
                Output::Wait(until) => {
                    // Not before now: what is due has been done.
                    self.wake = until.map(|at| at.max(Time::from_nanos(self.now.as_nanos() + 1)));
                    return;
                }
            }
        }
    }

    fn heard(&mut self, id: AssociationId, event: &Event) {
        let now = self.endpoint.status(id).map(|status| (status.outbound_streams, status.inbound_streams));
        let streams = now.unwrap_or(self.sockets.streams(id));
        let notice = self.notice(id, event, streams);
        self.sockets.take(id, event, notice);
        self.sockets.ends(id).streams = streams;
    }

    fn transmitted(&mut self, packet: &Typed) {
        let mut bytes = BytesMut::new();
        let omits = self.endpoint.omits_checksum(packet);
        // The core builds no packet that has no bytes; one it cannot encode is seen as an empty one.
        let _ = if omits { packet.encode_without_checksum(&mut bytes) } else { packet.encode(&mut bytes) };
        let (from, to) = (packet.from.ip, packet.to.ip);
        let udp = Some((packet.from.udp, packet.to.udp)).filter(|udp| *udp != (0, 0));
        let sent = Sent { at: self.now, from, to, udp, ecn: packet.ecn, omits, bytes: bytes.to_vec() };
        let ports = wire::ports(&sent.bytes);
        if self.peer.contains(&to) && ports == (PORT, self.port()) {
            self.queue.push_back(sent);
        } else {
            self.note(self.now, '>', Some((from, to)), &bytes, " // not for the script's peer");
        }
    }

    fn port(&self) -> u16 {
        self.peer_port.unwrap_or(PEER_PORT)
    }

    /// The peer sends.
    pub(super) fn inject(&mut self, packet: &Packet) -> Result<(), String> {
        let ports = packet.ports.unwrap_or((*self.peer_port.get_or_insert(PEER_PORT), PORT));
        let (from, to) = packet.addresses.unwrap_or((self.peer[0], self.local[0]));
        let raw = matches!(packet.body, super::ast::Body::Raw(_));
        let mut bytes = wire::build(packet, ports, from, &self.seen)?;
        self.note(self.now, '<', packet.addresses, &bytes, "");
        let expecting = self.sockets.awaits_init_ack(&self.endpoint);
        self.live.inject(&mut bytes, packet.tag, raw, expecting);
        wire::set_checksum(&mut bytes, packet.checksum);
        let udp = packet.udp.unwrap_or((self.udp, self.udp));
        let (from, to) = (Address { ip: from, udp: udp.0 }, Address { ip: to, udp: udp.1 });
        let (ecn, bytes) = (packet.ecn.unwrap_or_default(), Bytes::from(bytes));
        // What cannot be decoded is dropped, as it would be by whoever reads the network for the core.
        let typed = match packet.checksum {
            Checksum::Zero => Typed::decode_unchecked(from, to, ecn, bytes)
                .ok()
                .filter(|typed| self.endpoint.accepts_without_checksum(typed)),
            Checksum::Right | Checksum::Wrong => Typed::decode(from, to, ecn, bytes).ok(),
        };
        if let Some(typed) = typed {
            self.endpoint.handle(self.now, Incoming::Packet(Box::new(typed)));
        }
        self.drain();
        Ok(())
    }

    /// This address with its UDP port.
    pub(super) fn at(&self, ip: IpAddr) -> Address {
        Address { ip, udp: self.udp }
    }

    /// Notes a packet in the log, in the script's numbers.
    pub(super) fn note(
        &mut self,
        at: Time,
        direction: char,
        addresses: Option<(IpAddr, IpAddr)>,
        bytes: &[u8],
        remark: &str,
    ) {
        let mut bytes = bytes.to_vec();
        if direction == '>' {
            self.live.to_script(&mut bytes);
        }
        let addresses = addresses.map(|(from, to)| format!("{from} > {to} ")).unwrap_or_default();
        let line = format!("{} {direction} {addresses}sctp: {}{remark}", seconds(at), wire::show(&bytes));
        self.log.push_back(line);
        if self.log.len() > LOG {
            self.log.pop_front();
        }
    }

    /// The last packets, and those that were sent and not asked for.
    pub(super) fn log(&mut self) -> Vec<String> {
        let several = self.local.len() + self.peer.len() > 2;
        for sent in std::mem::take(&mut self.queue).into_iter().take(LOG) {
            let addresses = several.then_some((sent.from, sent.to));
            self.note(sent.at, '>', addresses, &sent.bytes, " // not asked for");
        }
        self.log.iter().cloned().collect()
    }
}

/// A time as a script would have it.
pub(super) fn seconds(at: Time) -> String {
    let nanos = at.as_nanos();
    let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}
