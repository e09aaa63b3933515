//! An endpoint that anything may happen to: packets with any chunks and right or wrong tags, calls, timers.
//! It must not panic, every drain must end, and what it holds must stay in proportion to its buffers.

use std::time::Duration;

use anabranch_proto::wire::chunk::{Bare, CookieEcho};
use anabranch_proto::wire::{Chunk, Ecn, Packet, Param};
use anabranch_proto::{AssociationId, Config, Event, Incoming, Message, PathId, Ssn, Tsn};
use arbitrary::{Arbitrary, Result, Unstructured};
use bytes::{Bytes, BytesMut};

use crate::chunks::{Known, Spec};
use crate::input::{Setup, few, steps};
use crate::lone::{Lone, PORTS, init, packet};
use crate::memory;
use crate::support::address;

/// Peers, each at a port of its own.
const PEERS: usize = 2;
/// Packets of one case at most.
const MOST_PACKETS: usize = 3000;
const BYTES: Bytes = Bytes::from_static(&[3; 6000]);

/// An endpoint and what happens to it.
#[derive(Debug, Arbitrary)]
pub struct Case {
    setup: Setup,
    #[arbitrary(with = steps)]
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Packet(PacketSpec),
    /// The same again and again, with TSNs that move on.
    Flood(PacketSpec, u8),
    /// A whole handshake, begun by a peer.
    Greet(u8),
    Connect(u8),
    /// The peer answers what it was asked: INIT, or COOKIE ECHO.
    Answer(u8),
    Send {
        of: u8,
        stream: u8,
        bytes: u16,
    },
    Read(u8),
    Shutdown(u8),
    Abort(u8),
    Forget(u8),
    SetPrimary(u8, u8),
    Writable(u8),
    Pass(u16),
    Listen(bool),
}

#[derive(Debug)]
struct PacketSpec {
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
            0..=11 => Step::Packet(bytes.arbitrary()?),
            12 => Step::Flood(bytes.arbitrary()?, bytes.arbitrary()?),
            13 | 14 => Step::Greet(bytes.arbitrary()?),
            15 => Step::Connect(bytes.arbitrary()?),
            16 | 17 => Step::Answer(bytes.arbitrary()?),
            18..=20 => {
                Step::Send { of: bytes.arbitrary()?, stream: bytes.arbitrary()?, bytes: bytes.arbitrary()? }
            }
            21 | 22 => Step::Read(bytes.arbitrary()?),
            23 => Step::Shutdown(bytes.arbitrary()?),
            24 => Step::Abort(bytes.arbitrary()?),
            25 => Step::Forget(bytes.arbitrary()?),
            26 => Step::SetPrimary(bytes.arbitrary()?, bytes.arbitrary()?),
            27 => Step::Writable(bytes.arbitrary()?),
            28..=30 => Step::Pass(bytes.arbitrary()?),
            _ => Step::Listen(bytes.arbitrary()?),
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

impl Case {
    /// Step by step.
    pub fn play(self) {
        let before = memory::held();
        let mut bout = Bout::new(&self.setup);
        for step in &self.steps {
            bout.step(step);
            bout.learn();
            bout.bounded(before);
        }
    }
}

struct Bout {
    lone: Lone,
    config: Config,
    paths: usize,
    peers: [Known; PEERS],
    /// Associations that were ever heard of and not forgotten.
    alive: Vec<AssociationId>,
    packets: usize,
}

impl Bout {
    fn new(setup: &Setup) -> Self {
        // Now and then with limits that are soon exceeded.
        let mut config = setup.config();
        if setup.spare() & 1 != 0 {
            (config.association_max_retrans, config.max_init_retransmits) = (3, 3);
        }
        let lone = Lone::new(setup.paths(), &config);
        let known = |n| Known {
            theirs: 0,
            ours: 0x100,
            cookie: Bytes::new(),
            heartbeat: Bytes::new(),
            tsn: Tsn(u32::MAX - n),
            ssn: Ssn(config.first_ssn),
            highest: Tsn(config.first_tsn.unwrap_or(0)).prev(),
        };
        let peers = [known(0), known(1)];
        Bout { lone, paths: setup.paths(), peers, alive: Vec::new(), packets: 0, config }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Packet(spec) => self.packet(spec),
            Step::Flood(spec, count) => (0..*count).for_each(|_| self.packet(spec)),
            Step::Greet(peer) => self.greet(usize::from(*peer) % PEERS),
            Step::Connect(peer) => self.connect(*peer),
            Step::Answer(peer) => self.answer(usize::from(*peer) % PEERS),
            Step::Pass(millis) => self.lone.pass(Duration::from_millis((*millis).into())),
            Step::Listen(on) => self.lone.end.set_listening(*on),
            Step::Writable(odd) => {
                let local = address(usize::from(odd >> 1) % self.paths, 0);
                self.lone.end.handle(self.lone.now, Incoming::Writable(local, odd & 1 != 0));
            }
            other => self.call(other),
        }
        self.lone.drain();
    }

    fn call(&mut self, step: &Step) {
        let (end, now) = (&mut self.lone.end, self.lone.now);
        let id = |of: &u8| AssociationId(u64::from(of % 8));
        match step {
            Step::Send { of, stream, bytes } => {
                let payload = BYTES.slice(..usize::from(*bytes) % BYTES.len());
                let unordered = bytes & 0x8000 != 0;
                let message = Message {
                    stream: u16::from(stream % 10),
                    ppid: 0,
                    unordered,
                    payload,
                    ..Message::default()
                };
                let _ = end.send(now, id(of), message);
            }
            Step::Read(of) => {
                while let Some(delivery) = end.read(now, id(of)) {
                    assert!(!delivery.is_empty());
                }
            }
            Step::Shutdown(of) => end.shutdown(now, id(of)),
            Step::Abort(of) => end.abort(now, id(of), Default::default()),
            Step::Forget(of) => {
                end.forget(now, id(of));
                self.alive.retain(|alive| *alive != id(of));
            }
            Step::SetPrimary(of, path) => {
                let known = end.set_primary(now, id(of), PathId((path % 4).into()));
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
        let chunks: Vec<Chunk> = spec.chunks.iter().map(|chunk| chunk.chunk(known)).collect();
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

    fn greet(&mut self, peer: usize) {
        let known = &self.peers[peer];
        let greeting = init(known.ours, known.tsn, 30_000, self.paths);
        self.arrive(peer, packet((0, 0), 0, vec![Chunk::Init(Box::new(greeting))]));
        let echo = CookieEcho { cookie: self.peers[peer].cookie.clone() };
        let tag = self.peers[peer].theirs;
        self.arrive(peer, packet((0, 0), tag, vec![Chunk::CookieEcho(echo)]));
    }

    /// The peer lets come up what the endpoint began.
    fn answer(&mut self, peer: usize) {
        let known = &self.peers[peer];
        let (tag, ack) = (known.theirs, init(known.ours, known.tsn, 30_000, self.paths));
        self.arrive(peer, packet((0, 0), tag, vec![Chunk::InitAck(Box::new(ack))]));
        self.arrive(peer, packet((0, 0), tag, vec![Chunk::CookieAck(Bare)]));
    }

    /// What the peers learn from what was sent to them, and the user from events.
    fn learn(&mut self) {
        for packet in self.lone.take_sent() {
            let peer = usize::from(packet.ports.destination.wrapping_sub(PORTS.destination));
            let Some(known) = self.peers.get_mut(peer) else { continue };
            packet.chunks.iter().for_each(|chunk| learn_of(known, chunk));
        }
        for (id, event) in std::mem::take(&mut self.lone.events) {
            if event == Event::Up && !self.alive.contains(&id) {
                self.alive.push(id);
            }
        }
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

fn learn_of(known: &mut Known, chunk: &Chunk) {
    match chunk {
        Chunk::Init(init) => known.theirs = init.tag,
        Chunk::InitAck(init) => {
            known.theirs = init.tag;
            let cookie = init.params.iter().find_map(|param| match param {
                Param::Cookie(cookie) => Some(cookie.clone()),
                _ => None,
            });
            known.cookie = cookie.unwrap_or_default();
        }
        Chunk::Data(data) if data.tsn.after(known.highest) => known.highest = data.tsn,
        Chunk::Heartbeat(heartbeat) => known.heartbeat = heartbeat.info.clone(),
        _ => {}
    }
}
