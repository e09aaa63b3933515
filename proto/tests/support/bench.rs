//! One endpoint against a peer that the test plays by hand: every packet in and out is the test's, and so is
//! the clock. The endpoint's first TSN and the peer's are 1; full chunks carry 1,452 bytes of user data.

use std::collections::BTreeMap;

use anabranch_proto::rules::Burst;
use anabranch_proto::wire::chunk::{Bare, Data, GapBlock, Heartbeat, Init, Sack};
use anabranch_proto::wire::{Address, Chunk, Ecn, Packet, Param, Ports};
use anabranch_proto::{
    AssociationId, Config, Duration, Endpoint, Event, Incoming, Message, Note, NoteKind, Output, PathId,
    PathState, PathView, Policies, Reason, SendError, Ssn, Time, Tsn,
};
use bytes::Bytes;
use smallvec::SmallVec;

use super::{ENDLESS, PORT, address, at};

/// The tag of the peer.
pub const PEER_TAG: u32 = 77;
/// User bytes that fill a packet of 1,500 bytes: a chunk of 1,468.
pub const FULL: usize = 1452;

pub struct Bench {
    pub end: Endpoint,
    pub id: AssociationId,
    pub now: Time,
    pub sent: Vec<(Time, Packet, Reason)>,
    pub events: Vec<(Time, Event)>,
    pub notes: Vec<Note>,
    /// The tag of the endpoint.
    pub tag: u32,
    /// What SACKs announce.
    pub a_rwnd: u32,
    wake: Option<Time>,
}

/// A packet with DATA: when in milliseconds, on which path, which TSNs.
pub type Sent = (u64, u16, Vec<u32>);

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The moment `n` milliseconds after the beginning.
pub fn at_ms(n: u64) -> Time {
    Time::ZERO + ms(n)
}

/// The era's parameters, without jitter, and without a burst limit: that has tests of its own.
pub fn era(name: &str) -> Config {
    let mut config =
        Config::era(name).expect("an era").with(|parameters| parameters.heartbeat_jitter = false);
    config.rules.burst = Burst::Off;
    config
}

impl Bench {
    /// An endpoint that has connected at time zero; the paths but the first are not confirmed.
    pub fn new(config: Config, paths: usize) -> Bench {
        Bench::with(config, paths, |_| Vec::new())
    }

    /// The same with a peer that answers the INIT with these parameters too.
    pub fn with(config: Config, paths: usize, params: impl FnOnce(&Init) -> Vec<Param>) -> Bench {
        Bench::announced(config, paths, 1 << 20, params)
    }

    /// The same with a peer whose receive buffer has so many bytes.
    fn announced(
        config: Config,
        paths: usize,
        a_rwnd: u32,
        params: impl FnOnce(&Init) -> Vec<Param>,
    ) -> Bench {
        let config = Config { first_tsn: Some(1), ..at(0, paths, &config) };
        let mut end = Endpoint::new(config, Policies::default(), [9; 32]).expect("a usable configuration");
        end.set_notes(true);
        let to: Vec<_> = (0..paths).map(|path| address(path, 1)).collect();
        let id = end.connect(Time::ZERO, PORT + 1, &to).expect("a path");
        let (sent, events, notes) = Default::default();
        let mut bench = Bench { end, id, now: Time::ZERO, sent, events, notes, tag: 0, a_rwnd, wake: None };
        bench.drain();
        bench.set_up(paths, params);
        bench
    }

    /// The same with every path confirmed, by answers that took `rtt`.
    pub fn confirmed(config: Config, paths: usize, rtt: Duration) -> Bench {
        Bench::confirmed_with(config, paths, rtt, 1 << 20)
    }

    /// The same with a peer whose receive buffer has so many bytes.
    pub fn confirmed_with(config: Config, paths: usize, rtt: Duration, a_rwnd: u32) -> Bench {
        let config = config.with(|parameters| parameters.heartbeat_max_burst = u32::MAX);
        let mut bench = Bench::announced(config, paths, a_rwnd, |_| Vec::new());
        bench.pass(rtt);
        bench.answer_heartbeats(|_| true);
        assert!(bench.paths().iter().all(|p| p.state == PathState::Active));
        bench
    }

    fn set_up(&mut self, paths: usize, params: impl FnOnce(&Init) -> Vec<Param>) {
        let (_, packet, _) = self.sent.pop().expect("INIT");
        let [Chunk::Init(init)] = &packet.chunks[..] else { panic!("{packet:?}") };
        assert_eq!((packet.tag, init.tsn), (0, Tsn(1)));
        self.tag = init.tag;
        let others = (0..paths).filter(|_| paths > 1).map(|path| match address(path, 1).ip {
            std::net::IpAddr::V4(ip) => Param::Ipv4(ip),
            std::net::IpAddr::V6(ip) => Param::Ipv6(ip),
        });
        let cookie = Param::Cookie(Bytes::from_static(b"a cookie"));
        let ack = Init {
            tag: PEER_TAG,
            a_rwnd: self.a_rwnd,
            outbound: 16,
            inbound: init.outbound,
            tsn: Tsn(1),
            params: others.chain([cookie]).chain(params(init)).collect(),
        };
        self.hear(Chunk::InitAck(Box::new(ack)));
        let (_, packet, _) = self.sent.pop().expect("COOKIE ECHO");
        assert!(matches!(&packet.chunks[..], [Chunk::CookieEcho(echo)] if &echo.cookie[..] == b"a cookie"));
        self.hear(Chunk::CookieAck(Bare));
        assert_eq!(self.events.last(), Some(&(Time::ZERO, Event::Up)));
    }

    pub fn drain(&mut self) {
        for _ in 0..ENDLESS {
            match self.end.poll(self.now) {
                Output::Transmit(packet, reason) => self.sent.push((self.now, *packet, reason)),
                Output::Event(_, event) => self.events.push((self.now, event)),
                Output::Note(note) => self.notes.push(note),
                Output::Wait(until) => {
                    assert!(until.is_none_or(|until| until > self.now), "a wait for what is due");
                    return self.wake = until;
                }
            }
        }
        panic!("it never waits");
    }

    /// Time passes, up to `until`; every timer on the way runs at its moment.
    pub fn until(&mut self, until: Time) {
        while let Some(next) = self.wake.filter(|next| *next <= until) {
            assert!(next >= self.now, "a wait for the past");
            self.now = next;
            self.drain();
        }
        self.now = until;
    }

    pub fn pass(&mut self, time: Duration) {
        self.until(self.now + time);
    }

    /// The peer says `chunk`, by the first path.
    pub fn hear(&mut self, chunk: Chunk) {
        self.hear_on(0, chunk);
    }

    pub fn hear_on(&mut self, path: usize, chunk: Chunk) {
        self.hear_packet(path, self.tag, [chunk]);
    }

    pub fn hear_packet(&mut self, path: usize, tag: u32, chunks: impl IntoIterator<Item = Chunk>) {
        self.take_in((address(path, 1), address(path, 0)), tag, chunks);
    }

    /// The peer says `chunk`, by the first path, and the endpoint is not polled.
    pub fn hear_unpolled(&mut self, chunk: Chunk) {
        self.handle((address(0, 1), address(0, 0)), self.tag, [chunk]);
    }

    /// The same from any address, to the first of the endpoint's, with the right tag.
    pub fn hear_from(&mut self, from: Address, chunks: impl IntoIterator<Item = Chunk>) {
        self.take_in((from, address(0, 0)), self.tag, chunks);
    }

    fn take_in(&mut self, pair: (Address, Address), tag: u32, chunks: impl IntoIterator<Item = Chunk>) {
        self.handle(pair, tag, chunks);
        self.drain();
    }

    fn handle(&mut self, (from, to): (Address, Address), tag: u32, chunks: impl IntoIterator<Item = Chunk>) {
        let ports = Ports { source: PORT + 1, destination: PORT };
        let packet = Packet { from, to, ports, tag, ecn: Ecn::NotEct, chunks: chunks.into_iter().collect() };
        self.end.handle(self.now, Incoming::Packet(Box::new(packet)));
    }

    /// Gives `count` messages of `size` user bytes, all before the next poll.
    pub fn send(&mut self, count: usize, size: usize) {
        for _ in 0..count {
            self.try_send(size).expect("there is room");
        }
        self.drain();
    }

    pub fn try_send(&mut self, size: usize) -> Result<(), SendError> {
        self.give(Message { payload: Bytes::from(vec![0; size]), ..Message::default() })
    }

    pub fn give(&mut self, message: Message) -> Result<(), SendError> {
        self.end.send(self.now, self.id, message)
    }

    /// Takes out the chunks of a kind sent so far; what these say.
    pub fn take<T>(&mut self, of: impl Fn(&Chunk) -> Option<T>) -> Vec<T> {
        self.take_timed(of).into_iter().map(|(_, said)| said).collect()
    }

    /// Messages that were given back.
    pub fn failed(&self) -> Vec<(Message, bool)> {
        let failed = |(_, event): &(Time, Event)| match event {
            Event::SendFailed { message, sent } => Some((message.clone(), *sent)),
            _ => None,
        };
        self.events.iter().filter_map(failed).collect()
    }

    /// A SACK: all up to `cumulative`, and these runs of TSNs beyond it.
    pub fn sack(&mut self, cumulative: u32, runs: &[(u32, u32)]) {
        self.sack_of(0, cumulative, runs);
    }

    /// The same, which says that it acknowledges so many packets.
    pub fn sack_of(&mut self, packets: u32, cumulative: u32, runs: &[(u32, u32)]) {
        let flags = Sack::flags_of(packets);
        let block = |tsn: u32| (tsn - cumulative) as u16;
        let gaps = runs.iter().map(|&(a, b)| GapBlock { start: block(a), end: block(b) }).collect();
        let (a_rwnd, duplicates) = (self.a_rwnd, SmallVec::new());
        self.hear(Chunk::Sack(Sack { flags, cumulative: Tsn(cumulative), a_rwnd, gaps, duplicates }));
    }

    /// The same packets in one batch: drained after each, or only after the last.
    pub fn batch(&mut self, sacks: &[(u32, &[(u32, u32)])], drain_each: bool) {
        for (cumulative, runs) in sacks {
            let block = |tsn: u32| (tsn - cumulative) as u16;
            let gaps = runs.iter().map(|&(a, b)| GapBlock { start: block(a), end: block(b) }).collect();
            let (a_rwnd, duplicates) = (self.a_rwnd, SmallVec::new());
            let sack = Chunk::Sack(Sack { flags: 0, cumulative: Tsn(*cumulative), a_rwnd, gaps, duplicates });
            self.hear_unpolled(sack);
            if drain_each {
                self.drain();
            }
        }
        self.drain();
    }

    /// A SACK that announces this window, from now on.
    pub fn sack_window(&mut self, cumulative: u32, a_rwnd: u32) {
        self.a_rwnd = a_rwnd;
        self.sack(cumulative, &[]);
    }

    /// The peer sends a message of its own, of `size` user bytes.
    pub fn data(&mut self, tsn: u32, size: usize) {
        self.hear(chunk(tsn, size));
    }

    /// Lets the local address of a path send, or not.
    pub fn writable(&mut self, path: usize, writable: bool) {
        self.end.handle(self.now, Incoming::Writable(address(path, 0), writable));
        self.drain();
    }

    /// The local address of a path is up, or down.
    pub fn up(&mut self, path: usize, up: bool) {
        self.end.handle(self.now, Incoming::Up(address(path, 0), up));
        self.drain();
    }

    /// Answers every heartbeat sent on one of these paths; forgets all heartbeats sent so far.
    pub fn answer_heartbeats(&mut self, answers: impl Fn(u16) -> bool) {
        for (_, path, info) in self.heartbeats() {
            if answers(path) {
                self.hear_on(path.into(), Chunk::HeartbeatAck(Heartbeat::new(info)));
            }
        }
    }

    /// Takes out the heartbeats sent so far: when, on which path, with which information.
    pub fn heartbeats(&mut self) -> Vec<(Time, u16, Bytes)> {
        let of = |packet: &Packet| match &packet.chunks[..] {
            [Chunk::Heartbeat(heartbeat)] => Some(heartbeat.info.clone()),
            _ => None,
        };
        let taken: Vec<_> = self.sent.extract_if(.., |(_, packet, _)| of(packet).is_some()).collect();
        let path = |reason: &Reason| reason.path.expect("a path").0;
        taken.into_iter().map(|(at, packet, r)| (at, path(&r), of(&packet).expect("one"))).collect()
    }

    /// Takes out the packets with DATA sent so far.
    pub fn loads(&mut self) -> Vec<Sent> {
        let taken: Vec<_> = self.sent.extract_if(.., |(_, packet, _)| !tsns(packet).is_empty()).collect();
        let load = |(at, packet, reason): (Time, Packet, Reason)| {
            (at.as_nanos() / 1_000_000, reason.path.expect("a path").0, tsns(&packet))
        };
        taken.into_iter().map(load).collect()
    }

    /// Takes out the SACKs sent so far, with their time in milliseconds.
    pub fn sacks(&mut self) -> Vec<(u64, Sack)> {
        self.take_timed(|chunk| if let Chunk::Sack(sack) = chunk { Some(sack.clone()) } else { None })
    }

    /// Takes the chunks that `of` knows out of what was sent, with the milliseconds; what stood beside them stays.
    fn take_timed<T>(&mut self, of: impl Fn(&Chunk) -> Option<T>) -> Vec<(u64, T)> {
        let mut taken = Vec::new();
        for (at, packet, _) in &mut self.sent {
            packet.chunks.retain(|chunk| match of(chunk) {
                Some(found) => {
                    taken.push((at.as_nanos() / 1_000_000, found));
                    false
                }
                None => true,
            });
        }
        // AUTH says nothing by itself.
        self.sent.retain(|(_, packet, _)| packet.chunks.iter().any(|chunk| !matches!(chunk, Chunk::Auth(_))));
        taken
    }

    pub fn paths(&self) -> &[PathView] {
        self.end.paths(self.id)
    }

    pub fn view(&self, path: u16) -> &PathView {
        &self.paths()[usize::from(path)]
    }

    pub fn window(&self) -> u64 {
        self.view(0).window
    }

    /// Window and threshold of the first path.
    pub fn windows(&self) -> (u64, u64) {
        (self.view(0).window, self.view(0).ssthresh)
    }

    /// When T3-rtx expired, and where.
    pub fn timeouts(&self) -> Vec<(Time, PathId)> {
        let t3 = |note: &Note| match note.kind {
            NoteKind::T3 { path } => Some((note.at, path)),
            _ => None,
        };
        self.notes.iter().filter_map(t3).collect()
    }

    /// The last change of the peer's window that was noted.
    pub fn peer_window(&self) -> u64 {
        let bytes = |note: &Note| match note.kind {
            NoteKind::PeerWindow { bytes } => Some(bytes),
            _ => None,
        };
        self.notes.iter().rev().find_map(bytes).expect("a SACK was taken")
    }

    /// Grows the first path's window to at least `bytes` by loss-free round trips of no time; the next TSN.
    pub fn grow_to(&mut self, bytes: u64) -> u32 {
        for _ in 0..100 {
            if self.window() >= bytes {
                break;
            }
            self.send(self.window().div_ceil(1468) as usize, FULL);
            self.sack(self.next_tsn() - 1, &[]);
        }
        assert_eq!((self.view(0).flight, self.window() >= bytes), (0, true));
        self.loads();
        self.next_tsn()
    }

    /// The TSN that the next new chunk gets.
    pub fn next_tsn(&self) -> u32 {
        let highest = |note: &Note| match note.kind {
            NoteKind::Sent { tsn, .. } => Some(tsn.0),
            _ => None,
        };
        1 + self.notes.iter().filter_map(highest).max().unwrap_or(0)
    }

    /// How often each kind of event happened.
    pub fn counted(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        self.events.iter().for_each(|(_, e)| *counts.entry(format!("{e:?}")).or_default() += 1);
        counts
    }
}

/// A whole message of the peer in one DATA chunk: SSN counts with the TSN from 1.
pub fn chunk(tsn: u32, size: usize) -> Chunk {
    Chunk::Data(Data {
        tsn: Tsn(tsn),
        stream: 0,
        ssn: Ssn((tsn - 1) as u16),
        ppid: 0,
        begin: true,
        end: true,
        unordered: false,
        immediate: false,
        payload: Bytes::from(vec![0; size]),
    })
}

/// The TSNs that a packet carries.
pub fn tsns(packet: &Packet) -> Vec<u32> {
    let tsn = |chunk: &Chunk| match chunk {
        Chunk::Data(data) => Some(data.tsn.0),
        _ => None,
    };
    packet.chunks.iter().filter_map(tsn).collect()
}
