//! A peer of the endpoint: what it knows of their association, what it would say in its turn, and how it answers.

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_proto::wire::chunk::{
    Bare, CookieEcho, Data, GapBlock, Init, Sack, Shutdown, ShutdownComplete,
};
use anabranch_proto::wire::{Chunk, Packet, Param};
use anabranch_proto::{Config, Ssn, Tsn};
use arbitrary::{Arbitrary, Result, Unstructured};
use bytes::Bytes;

use crate::chunks::some;
use crate::input::rarely;
use crate::lone::init;

/// Streams that a peer sends on in its turn.
const STREAMS: u8 = 4;
/// Chunks that are remembered to be sent later, or again.
const KEPT: usize = 8;
/// What SACKs in turn announce.
const WINDOWS: [u32; 8] = [30_000, 30_000, 1 << 20, 5000, 1500, 700, 0, u32::MAX];

/// What a peer, or somebody in its place, knows of its association.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The tag that the endpoint wants to hear, and the one that it uses.
    pub theirs: u32,
    pub ours: u32,
    /// The cookie that the endpoint gave.
    pub cookie: Bytes,
    /// The next TSN that the peer would send, and the next SSN of each stream.
    pub tsn: Tsn,
    pub ssns: [Ssn; STREAMS as usize],
    /// All TSNs of the endpoint up to this one are acknowledged; the highest that it has sent.
    acked: Tsn,
    pub highest: Tsn,
    /// The last heartbeat of the endpoint.
    pub heartbeat: Bytes,
    /// The stream and the order of a message of which the end is still to be sent.
    open: Option<(u16, bool)>,
    /// DATA that the network has lost, and that it has not.
    lost: Vec<Data>,
    said: VecDeque<Data>,
    /// What waits for an answer, and on which path it came.
    owed: VecDeque<(usize, Chunk)>,
    first_ssn: Ssn,
    first_tsn: Tsn,
}

/// A chunk as the peer would send it.
#[derive(Clone, Debug)]
pub enum Turn {
    /// The next DATA chunk; now and then the network loses it.
    Data { stream: u8, shape: u8, bytes: u16 },
    /// One that was lost, after all.
    Late(u8),
    /// One that was not, again.
    Again(u8),
    /// A SACK for what is outstanding: so much more, and of what lies beyond these bits.
    Sack { advance: u8, beyond: u16, window: u8 },
    /// No more data will come.
    Shutdown,
}

impl<'a> Arbitrary<'a> for Turn {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match bytes.arbitrary::<u8>()? % 16 {
            0..=7 => Turn::Data {
                stream: bytes.arbitrary()?,
                shape: bytes.arbitrary()?,
                bytes: bytes.arbitrary()?,
            },
            8 => Turn::Late(bytes.arbitrary()?),
            9 => Turn::Again(bytes.arbitrary()?),
            15 if rarely(bytes)? => Turn::Shutdown,
            _ => Turn::Sack {
                advance: bytes.arbitrary()?,
                beyond: bytes.arbitrary()?,
                window: bytes.arbitrary()?,
            },
        })
    }
}

impl Peer {
    pub fn new(number: u32, config: &Config) -> Self {
        let first_ssn = Ssn(config.first_ssn);
        let first_tsn = Tsn(config.first_tsn.unwrap_or(0));
        Peer {
            theirs: 0,
            ours: 0x100 + (number << 16),
            cookie: Bytes::new(),
            tsn: Tsn(u32::MAX - number),
            ssns: [first_ssn; STREAMS as usize],
            acked: first_tsn.prev(),
            highest: first_tsn.prev(),
            heartbeat: Bytes::new(),
            open: None,
            lost: Vec::new(),
            said: VecDeque::new(),
            owed: VecDeque::new(),
            first_ssn,
            first_tsn,
        }
    }

    /// A new association: what the peer knew of another is void.
    fn begin(&mut self) {
        self.ssns.fill(self.first_ssn);
        (self.acked, self.highest) = (self.first_tsn.prev(), self.first_tsn.prev());
        self.open = None;
        self.lost.clear();
        self.said.clear();
        self.owed.clear();
    }

    /// An INIT with another tag than before.
    pub fn greeting(&mut self, paths: usize) -> Init {
        self.begin();
        self.ours = self.ours.wrapping_add(1);
        init(self.ours, self.tsn, 30_000, paths)
    }

    /// The chunk that a turn is; `None` if there is none to be sent, or the network loses it.
    pub fn turn(&mut self, turn: &Turn) -> Option<Chunk> {
        match turn {
            Turn::Data { stream, shape, bytes } => self.data(*stream, *shape, *bytes),
            Turn::Late(which) => {
                let which = usize::from(*which).checked_rem(self.lost.len())?;
                Some(Chunk::Data(self.lost.remove(which)))
            }
            Turn::Again(which) => {
                let which = usize::from(*which).checked_rem(self.said.len())?;
                Some(Chunk::Data(self.said[which].clone()))
            }
            Turn::Sack { advance, beyond, window } => Some(self.sack((*advance).into(), *beyond, *window)),
            Turn::Shutdown => Some(Chunk::Shutdown(Shutdown { cumulative: self.acked })),
        }
    }

    /// The bits of `shape`: not the end of a message if both lowest are set, unordered, immediate; the network
    /// loses it if the four highest are.
    fn data(&mut self, stream: u8, shape: u8, bytes: u16) -> Option<Chunk> {
        let begin = self.open.is_none();
        let end = shape & 3 != 3;
        let (stream, unordered) = self.open.unwrap_or(((stream % STREAMS).into(), shape & 4 != 0));
        self.open = (!end).then_some((stream, unordered));
        let ssn = &mut self.ssns[usize::from(stream)];
        let data = Data {
            tsn: self.tsn,
            stream,
            ssn: *ssn,
            ppid: 1,
            begin,
            end,
            unordered,
            immediate: shape & 8 != 0,
            payload: some(1 + usize::from(bytes) % 1400),
        };
        if end && !unordered {
            *ssn = ssn.next();
        }
        self.tsn = self.tsn.next();
        if shape >= 0xf0 && self.lost.len() < KEPT {
            self.lost.push(data);
            return None;
        }
        self.said.truncate(KEPT - 1);
        self.said.push_front(data.clone());
        Some(Chunk::Data(data))
    }

    fn sack(&mut self, advance: u32, beyond: u16, window: u8) -> Chunk {
        let outstanding = self.highest.distance_from(self.acked).min(1000);
        self.acked = Tsn(self.acked.0.wrapping_add(advance % (outstanding + 1)));
        let left = self.highest.distance_from(self.acked).min(1000) as u16;
        let arrived = |offset: u16| offset <= left && beyond >> (offset - 2) & 1 != 0;
        let mut gaps: Vec<GapBlock> = Vec::new();
        for offset in (2..18).filter(|offset| arrived(*offset)) {
            match gaps.last_mut().filter(|gap| gap.end + 1 == offset) {
                Some(gap) => gap.end = offset,
                None => gaps.push(GapBlock { start: offset, end: offset }),
            }
        }
        Chunk::Sack(Sack {
            flags: 0,
            cumulative: self.acked,
            a_rwnd: WINDOWS[usize::from(window) % WINDOWS.len()],
            gaps: gaps.into(),
            duplicates: Default::default(),
        })
    }

    /// What the peer learns from what was sent to it.
    pub fn learn(&mut self, packet: &Packet) {
        let IpAddr::V4(to) = packet.to.ip else { return };
        for chunk in &packet.chunks {
            self.learn_of(chunk);
            if self.owed.len() < KEPT {
                self.owed.push_back((to.octets()[2].into(), chunk.clone()));
            }
        }
    }

    fn learn_of(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Init(init) if init.tag != self.theirs => {
                self.begin();
                self.theirs = init.tag;
            }
            Chunk::InitAck(init) => {
                self.theirs = init.tag;
                let cookie = init.params.iter().find_map(|param| match param {
                    Param::Cookie(cookie) => Some(cookie.clone()),
                    _ => None,
                });
                self.cookie = cookie.unwrap_or_default();
            }
            Chunk::Data(data) if data.tsn.after(self.highest) => self.highest = data.tsn,
            Chunk::Heartbeat(heartbeat) => self.heartbeat = heartbeat.info.clone(),
            _ => {}
        }
    }

    /// The next answer of a peer that does as it should, and the path that it takes.
    pub fn answer(&mut self, paths: usize) -> Option<(usize, Chunk)> {
        loop {
            let (path, chunk) = self.owed.pop_front()?;
            let answer = match chunk {
                Chunk::Init(_) => Chunk::InitAck(Box::new(init(self.ours, self.tsn, 30_000, paths))),
                Chunk::InitAck(_) => Chunk::CookieEcho(CookieEcho { cookie: self.cookie.clone() }),
                Chunk::CookieEcho(_) => Chunk::CookieAck(Bare),
                Chunk::Data(_) => self.sack(self.highest.distance_from(self.acked), 0, 0),
                Chunk::Heartbeat(heartbeat) => Chunk::HeartbeatAck(heartbeat),
                Chunk::Shutdown(_) => Chunk::ShutdownAck(Bare),
                Chunk::ShutdownAck(_) => Chunk::ShutdownComplete(ShutdownComplete { reflected: false }),
                _ => continue,
            };
            return Some((path, answer));
        }
    }
}
