//! An endpoint that anything may happen to: packets with any chunks and right or wrong tags, calls, timers. Most
//! cases begin with an association that is up, and most packets are what a peer would send: what goes wrong
//! goes wrong while data flows.
//!
//! It must not panic, every drain must end, and what it holds must stay in proportion to its buffers.

use std::time::Duration;

use anabranch_proto::wire::{Chunk, Ecn, Packet};
use anabranch_proto::{AssociationId, Config, Event, Incoming, Message, PathId};
use arbitrary::{Arbitrary, Result, Unstructured};
use bytes::{Bytes, BytesMut};

use crate::chunks::Spec;
use crate::input::{self, Setup, few, rarely};
use crate::lone::{Lone, PORTS, packet};
use crate::memory;
use crate::peer::{Peer, Turn};
use crate::support::address;

/// Peers, each at a port of its own.
const PEERS: usize = 2;
/// Packets of one case at most.
const MOST_PACKETS: usize = 300;
/// Answers of a peer at once.
const MOST_ANSWERS: usize = 20;
const BYTES: Bytes = Bytes::from_static(&[3; 6000]);

/// An endpoint and what happens to it.
pub type Case = input::Case<Step>;

#[derive(Debug)]
pub enum Step {
    /// A packet of a peer, as it would send it: by which path, with what.
    Turn(u8, Vec<Turn>),
    /// A peer answers all that it was asked, as it should.
    Answer(u8),
    /// Any packet.
    Packet(PacketSpec),
    /// The same again and again, with TSNs that move on.
    Flood(PacketSpec, u8),
    /// A whole handshake, begun by a peer.
    Greet(u8),
    Connect(u8),
    Send {
        of: u8,
        stream: u8,
        bytes: u16,
    },
    Read(u8),
    /// Shut down, aborted or forgotten.
    End(u8, u8),
    SetPrimary(u8, u8),
    Heartbeat(u8, u8),
    Writable(u8, bool),
    TooBig(u8, u16),
    /// Milliseconds; many, or few.
    Pass(u16, bool),
    Listen(bool),
}

#[derive(Debug)]
pub struct PacketSpec {
    peer: u8,
    /// Where from and to: paths; the last of three is one that nobody has.
    from: u8,
    to: u8,
    tag: u8,
    chunks: Vec<Spec>,
}

impl<'a> Arbitrary<'a> for Step {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match bytes.arbitrary::<u8>()? % 32 {
            0..=8 => Step::Turn(bytes.arbitrary()?, few(bytes, 3)?),
            9..=12 => Step::Answer(bytes.arbitrary()?),
            13 | 14 => Step::Packet(bytes.arbitrary()?),
            15 => Step::Flood(bytes.arbitrary()?, bytes.arbitrary()?),
            16 => Step::Greet(bytes.arbitrary()?),
            17 => Step::Connect(bytes.arbitrary()?),
            18..=21 => {
                Step::Send { of: bytes.arbitrary()?, stream: bytes.arbitrary()?, bytes: bytes.arbitrary()? }
            }
            22 | 23 => Step::Read(bytes.arbitrary()?),
            24 if rarely(bytes)? => Step::End(bytes.arbitrary()?, bytes.arbitrary()?),
            25 => Step::SetPrimary(bytes.arbitrary()?, bytes.arbitrary()?),
            26 => Step::Heartbeat(bytes.arbitrary()?, bytes.arbitrary()?),
            27 => Step::Writable(bytes.arbitrary()?, !rarely(bytes)?),
            28 => Step::TooBig(bytes.arbitrary()?, bytes.arbitrary()?),
            29 => Step::Listen(!rarely(bytes)?),
            _ => Step::Pass(bytes.arbitrary()?, rarely(bytes)?),
        })
    }
}

impl<'a> Arbitrary<'a> for PacketSpec {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        let odd = bytes.arbitrary::<u8>()?;
        Ok(PacketSpec {
            peer: odd & 1,
            from: odd >> 1 & 3,
            to: odd >> 3 & 3,
            tag: if odd & 0xe0 == 0xe0 { bytes.arbitrary()? } else { 0 },
            chunks: few(bytes, 4)?,
        })
    }
}

/// How far a case has got: user bytes that the peers have acknowledged, and that were read.
#[derive(Default, Debug)]
pub struct Reached {
    pub acknowledged: u64,
    pub read: u64,
}

impl Case {
    /// Step by step.
    pub fn play(self) -> Reached {
        let before = memory::held();
        let mut bout = Bout::new(&self.setup);
        bout.open(self.setup.spare() >> 1);
        for step in &self.steps {
            bout.step(step);
            bout.learn();
            bout.bounded(before);
        }
        bout.reached()
    }
}

struct Bout {
    lone: Lone,
    config: Config,
    paths: usize,
    peers: [Peer; PEERS],
    /// Associations that were ever heard of and not forgotten.
    alive: Vec<AssociationId>,
    packets: usize,
    read: u64,
}

impl Bout {
    fn new(setup: &Setup) -> Self {
        // Now and then with limits that are soon exceeded.
        let mut config = setup.config();
        if setup.spare() & 1 != 0 {
            (config.association_max_retrans, config.max_init_retransmits) = (3, 3);
        }
        let lone = Lone::new(setup.paths(), &config);
        let peers = [Peer::new(0, &config), Peer::new(1, &config)];
        Bout { lone, paths: setup.paths(), peers, alive: Vec::new(), packets: 0, read: 0, config }
    }

    /// What has happened before the first step: an association with one peer is up, or with both, or none is.
    fn open(&mut self, how: u8) {
        match how % 8 {
            0 => {}
            1..=3 => {
                self.connect(0xfe);
                self.lone.drain();
                self.answer(0);
            }
            4..=6 => self.greet(0),
            _ => (0..PEERS).for_each(|peer| self.greet(peer)),
        }
        self.learn();
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Turn(odd, turns) => self.turn(*odd, turns),
            Step::Answer(peer) => self.answer(usize::from(*peer) % PEERS),
            Step::Packet(spec) => self.packet(spec),
            Step::Flood(spec, count) => (0..*count).for_each(|_| self.packet(spec)),
            Step::Greet(peer) => self.greet(usize::from(*peer) % PEERS),
            Step::Connect(odd) => self.connect(*odd),
            Step::Pass(millis, long) => {
                let millis = if *long { *millis } else { *millis % 512 };
                self.lone.pass(Duration::from_millis(millis.into()));
            }
            Step::Listen(on) => self.lone.end.set_listening(*on),
            Step::Writable(path, writable) => {
                let local = address(usize::from(*path) % self.paths, 0);
                self.lone.end.handle(self.lone.now, Incoming::Writable(local, *writable));
            }
            Step::TooBig(path, mtu) => {
                let remote = address(usize::from(*path) % self.paths, 1);
                self.lone.end.handle(self.lone.now, Incoming::TooBig(remote, (*mtu).into()));
            }
            other => self.call(other),
        }
        self.lone.drain();
    }

    fn call(&mut self, step: &Step) {
        let (end, now) = (&mut self.lone.end, self.lone.now);
        // One that there is, or that there may have been.
        let alive = self.alive.clone();
        let id = |of: &u8| match alive.get(usize::from(of % 32)) {
            Some(id) => *id,
            None if *of >= 0xf0 || alive.is_empty() => AssociationId(u64::from(of % 8)),
            None => alive[usize::from(*of) % alive.len()],
        };
        match step {
            Step::Send { of, stream, bytes } => {
                let payload = BYTES.slice(..usize::from(*bytes) % BYTES.len());
                let (unordered, immediate) = (bytes & 0x8000 != 0, bytes & 0x4000 != 0);
                let stream = u16::from(stream % 10);
                let message = Message { stream, unordered, immediate, payload, ..Message::default() };
                let _ = end.send(now, id(of), message);
            }
            Step::Read(of) => {
                while let Some(delivery) = end.read(now, id(of)) {
                    assert!(!delivery.is_empty());
                    self.read += delivery.len() as u64;
                }
            }
            Step::End(of, how) => match how % 3 {
                0 => end.shutdown(now, id(of)),
                1 => end.abort(now, id(of), Default::default()),
                _ => {
                    end.forget(now, id(of));
                    self.alive.retain(|alive| *alive != id(of));
                }
            },
            Step::SetPrimary(of, path) => {
                let known = end.set_primary(now, id(of), PathId((path % 4).into()));
                assert!(!known || usize::from(path % 4) < end.paths(id(of)).len());
            }
            Step::Heartbeat(of, path) => {
                let known = end.heartbeat(now, id(of), PathId((path % 4).into()));
                assert!(!known || usize::from(path % 4) < end.paths(id(of)).len());
            }
            _ => {}
        }
    }

    fn connect(&mut self, odd: u8) {
        let to: Vec<_> = (0..1 + usize::from(odd >> 1) % 3).map(|path| address(path, 1)).collect();
        let port = PORTS.destination + u16::from(odd & 1);
        if let Ok(id) = self.lone.end.connect(self.lone.now, port, &to) {
            self.alive.push(id);
        }
    }

    /// A packet of a peer to its association, by the path that the bits above the first say.
    fn turn(&mut self, odd: u8, turns: &[Turn]) {
        let number = usize::from(odd & 1);
        let peer = &mut self.peers[number];
        let chunks: Vec<Chunk> = turns.iter().filter_map(|turn| peer.turn(turn)).collect();
        let path = usize::from(odd >> 1) % self.paths;
        let tag = peer.theirs;
        self.arrive(number, packet((path, path), tag, chunks));
    }

    /// A packet as a peer, or somebody in its place, would send it; through the codec, as on a network.
    fn packet(&mut self, spec: &PacketSpec) {
        if self.packets >= MOST_PACKETS {
            return;
        }
        self.packets += 1;
        let peer = usize::from(spec.peer) % PEERS;
        let known = &mut self.peers[peer];
        let first_of_all = matches!(spec.chunks.first(), Some(Spec::Init(_)));
        let tag = match spec.tag {
            0..64 if first_of_all => 0,
            0..64 => known.theirs,
            64..128 => known.ours,
            128..192 => 0,
            other => known.theirs ^ u32::from(other),
        };
        let chunks: Vec<Chunk> = spec.chunks.iter().filter_map(|chunk| chunk.chunk(known)).collect();
        // A path of its own is likelier than one that does not match, or that nobody has.
        let from = usize::from(spec.from) % 4 % (self.paths + 1);
        let to = if spec.to == 0 { from % self.paths } else { usize::from(spec.to) % self.paths };
        self.arrive(peer, packet((from, to), tag, chunks));
    }

    fn arrive(&mut self, peer: usize, mut packet: Packet) {
        packet.ports.source += peer as u16;
        let mut bytes = BytesMut::new();
        if packet.encode(&mut bytes).is_ok() {
            let back = Packet::decode(packet.from, packet.to, Ecn::NotEct, bytes.freeze());
            self.lone.arrive(back.expect("what was encoded can be decoded"));
        }
        self.learn();
    }

    /// The peer begins, and the endpoint lets it.
    fn greet(&mut self, peer: usize) {
        let greeting = self.peers[peer].greeting(self.paths);
        self.arrive(peer, packet((0, 0), 0, vec![Chunk::Init(Box::new(greeting))]));
        self.answer(peer);
    }

    /// The peer answers all that it was asked, and what is asked then.
    fn answer(&mut self, peer: usize) {
        self.learn();
        for _ in 0..MOST_ANSWERS {
            let Some((path, chunk)) = self.peers[peer].answer(self.paths) else { break };
            let path = path.min(self.paths - 1);
            self.arrive(peer, packet((path, path), self.peers[peer].theirs, vec![chunk]));
        }
    }

    /// What the peers learn from what was sent to them, and the user from events.
    fn learn(&mut self) {
        for packet in self.lone.take_sent() {
            let peer = usize::from(packet.ports.destination.wrapping_sub(PORTS.destination));
            if let Some(peer) = self.peers.get_mut(peer) {
                peer.learn(&packet);
            }
        }
        for (id, event) in std::mem::take(&mut self.lone.events) {
            if event == Event::Up && !self.alive.contains(&id) {
                self.alive.push(id);
            }
        }
    }

    fn reached(&self) -> Reached {
        let of = |id: &AssociationId| self.lone.end.statistics(self.lone.now, *id).acknowledged;
        Reached { acknowledged: self.alive.iter().map(of).sum(), read: self.read }
    }

    /// Held memory stays in proportion to the buffers of the associations that there are.
    fn bounded(&self, before: isize) {
        let send_buffer = self.config.send_buffer() as usize;
        let each = 16 * self.config.receive_buffer as usize + 8 * send_buffer + 100_000;
        let most = 500_000 + (self.alive.len() + 1) * each;
        let held = memory::held() - before;
        assert!(held < most as isize, "{held} bytes for {} associations", self.alive.len());
    }
}
