//! The environment of one script: its clock, the endpoint, and the packets in both directions.

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

/// The peer's port if the peer sends first.
const PEER_PORT: u16 = 40_000;
/// The number of log lines that a failure shows.
const LOG: usize = 12;
/// The largest number of packets that wait for the script to expect them, and the number of times at which timers may
/// expire. A script with short timers and long pauses would otherwise take all memory, or hours.
const MOST_WAITING: usize = 100_000;
const MOST_STEPS: u32 = 5_000_000;
const UDP_HEADER: u32 = 8;

/// A packet that the stack has sent.
pub(super) struct Sent {
    pub(super) at: Time,
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
    /// The UDP ports, if the packet is encapsulated.
    pub(super) udp: Option<(u16, u16)>,
    pub(super) ecn: Ecn,
    /// Whether its checksum may be zero.
    pub(super) omits: bool,
    /// Common header and chunks, with the stack's actual numbers.
    pub(super) bytes: Vec<u8>,
}

pub(super) struct World {
    pub(super) now: Time,
    pub(super) endpoint: Endpoint,
    /// When the endpoint wants to be polled.
    wake: Option<Time>,
    /// Packets that were sent and that the script has not yet expected.
    pub(super) queue: VecDeque<Sent>,
    pub(super) sockets: Sockets,
    pub(super) live: Live,
    pub(super) seen: EchoedValues,
    pub(super) local: Vec<IpAddr>,
    pub(super) peer: Vec<IpAddr>,
    /// The peer's port, once either end has sent a packet.
    pub(super) peer_port: Option<u16>,
    /// The UDP port of every address; 0 means none.
    pub(super) udp: u16,
    /// Bytes that the path MTU leaves for SCTP.
    pub(super) room: usize,
    log: VecDeque<String>,
    /// How often timers have expired.
    steps: u32,
}

impl World {
    pub(super) fn new(setup: &Setup) -> Result<World, String> {
        let config: &Config = &setup.config;
        let header = config.ip_header + if setup.udp == 0 { 0 } else { UDP_HEADER };
        let room = (config.mtu - header) as usize;
        // All scripts use the same seed. Random numbers are translated, or the script leaves them open.
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
            steps: 0,
        })
    }

    /// Advances the clock to `to` and fires all timers on the way in order.
    pub(super) fn advance(&mut self, to: Time) {
        while let Some(wake) = self.wake.filter(|wake| *wake <= to)
            && self.exhausted().is_none()
        {
            self.step(wake);
        }
        self.now = self.now.max(to);
    }

    /// Why the script is not carried on: its stack does too much.
    pub(super) fn exhausted(&self) -> Option<String> {
        match () {
            () if self.queue.len() >= MOST_WAITING => {
                Some(format!("the stack has sent {MOST_WAITING} packets that the script has not expected"))
            }
            () if self.steps >= MOST_STEPS => {
                Some(format!("timers of the stack have expired {MOST_STEPS} times: are they too short?"))
            }
            () => None,
        }
    }

    /// When the next timer is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.wake
    }

    /// Advances the clock to `at` and fires the timers that are due.
    pub(super) fn step(&mut self, at: Time) {
        self.now = self.now.max(at);
        self.wake = None;
        self.steps += 1;
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
                // A call may have set a timer to a time in the past. It is due now.
                Output::Wait(Some(at)) if at <= self.now && again => again = false,
                Output::Wait(until) => {
                    // Never in the past: everything due by now has been done.
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
        // The core builds no empty packet. A packet that cannot be encoded shows up as an empty one.
        let _ = if omits { packet.encode_without_checksum(&mut bytes) } else { packet.encode(&mut bytes) };
        let (from, to) = (packet.from.ip, packet.to.ip);
        let udp = Some((packet.from.udp, packet.to.udp)).filter(|udp| *udp != (0, 0));
        let sent = Sent { at: self.now, from, to, udp, ecn: packet.ecn, omits, bytes: bytes.to_vec() };
        let ports = wire::ports(&sent.bytes);
        if self.peer.contains(&to) && ports == (PORT, self.port()) {
            self.queue.push_back(sent);
        } else {
            self.note_sent(self.now, Some((from, to)), &bytes, " // not for the script's peer");
        }
    }

    fn port(&self) -> u16 {
        self.peer_port.unwrap_or(PEER_PORT)
    }

    /// The peer sends a packet.
    pub(super) fn inject(&mut self, packet: &Packet) -> Result<(), String> {
        let ports = packet.ports.unwrap_or((*self.peer_port.get_or_insert(PEER_PORT), PORT));
        let (from, to) = packet.addresses.unwrap_or((self.peer[0], self.local[0]));
        let raw = matches!(packet.body, super::ast::Body::Raw(_));
        let mut bytes = wire::build(packet, ports, from, &self.seen)?;
        let body = if raw { format!("{:?}", &bytes[wire::HEADER..]) } else { wire::show(&bytes) };
        self.note(format!("{} < {}: {body}", seconds(self.now), packet.head()));
        let expecting = self.sockets.awaits_init_ack(&self.endpoint);
        self.live.inject(&mut bytes, packet.tag, raw, expecting);
        wire::set_checksum(&mut bytes, packet.checksum);
        let udp = packet.udp.unwrap_or((self.udp, self.udp));
        let (from, to) = (Address { ip: from, udp: udp.0 }, Address { ip: to, udp: udp.1 });
        let (ecn, bytes) = (packet.ecn.unwrap_or_default(), Bytes::from(bytes));
        // Packets that cannot be decoded are dropped, as a network driver would do.
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

    /// The address with the script's UDP port.
    pub(super) fn at(&self, ip: IpAddr) -> Address {
        Address { ip, udp: self.udp }
    }

    /// Records a packet of the stack in the log, with the script's numbers.
    pub(super) fn note_sent(
        &mut self,
        at: Time,
        addresses: Option<(IpAddr, IpAddr)>,
        bytes: &[u8],
        remark: &str,
    ) {
        let mut bytes = bytes.to_vec();
        self.live.to_script(&mut bytes);
        let addresses = addresses.map(|(from, to)| format!("{from} > {to} ")).unwrap_or_default();
        self.note(format!("{} > {addresses}sctp: {}{remark}", seconds(at), wire::show(&bytes)));
    }

    /// Records a packet in the log, in script notation.
    fn note(&mut self, line: String) {
        self.log.push_back(line);
        if self.log.len() > LOG {
            self.log.pop_front();
        }
    }

    /// The last packets, and the packets that were sent but not expected.
    pub(super) fn log(&mut self) -> Vec<String> {
        let several = self.local.len() + self.peer.len() > 2;
        for sent in std::mem::take(&mut self.queue).into_iter().take(LOG) {
            let addresses = several.then_some((sent.from, sent.to));
            self.note_sent(sent.at, addresses, &sent.bytes, " // not asked for");
        }
        self.log.iter().cloned().collect()
    }
}

/// A time in script notation.
pub(super) fn seconds(at: Time) -> String {
    let nanos = at.as_nanos();
    let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}
