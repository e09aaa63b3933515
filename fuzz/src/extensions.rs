//! An endpoint with extensions, and a peer that has agreed on them and then does with them as it likes: what it says is
//! authentic where it has to be. The endpoint must not panic, every drain must end, and what it holds must stay in
//! proportion to its buffers.

use std::time::Duration;

use anabranch_proto::wire::chunk::{
    AddStreams, AddressRequest, Asconf, AsconfAck, AsconfParam, Auth, CookieEcho, Data, EcnEcho, Failed,
    ForwardTsn, FragmentPosition, GapBlock, IData, IForwardTsn, IncomingReset, Init, OutgoingReset, Pad,
    ReConfig, ReConfigParam, Response, Sack, SkippedMessage,
};
use anabranch_proto::wire::{Cause, Chunk, Ecn, Packet, Param};
use anabranch_proto::{
    AssociationId, Config, Direction, Event, Extensions, LocalAddress, Message, Mid, Reliability, Ssn, Tsn,
};
use arbitrary::{Arbitrary, Result, Unstructured};
use bytes::{Bytes, BytesMut};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::input::{Setup, few, steps};
use crate::lone::{Lone, init, packet};
use crate::memory;
use crate::support::address;

const BYTES: Bytes = Bytes::from_static(&[5; 6000]);
/// The peer's first TSN.
const FIRST: Tsn = Tsn(u32::MAX - 2);

/// An association and what happens to it.
#[derive(Debug, Arbitrary)]
pub struct Case {
    setup: Setup,
    extensions: u8,
    #[arbitrary(with = steps)]
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Hear { path: u8, ecn: bool, chunks: Vec<Spec> },
    Send { stream: u8, bytes: u16, limit: u8 },
    Read,
    Reset { incoming: bool, streams: Vec<u8> },
    ResetTsns,
    Add { incoming: bool, count: u8 },
    Address { which: u8, path: u8 },
    Pass(u16),
    Shutdown,
    Restart { path: u8, keys: Keys, chunks: Vec<Spec> },
}

/// The keys that a COOKIE ECHO is authenticated by.
#[derive(Copy, Clone, Debug)]
enum Keys {
    /// Those of the association.
    Old,
    /// Those of the cookie.
    New,
    /// None: there is no AUTH.
    None,
}

/// A chunk, its numbers near those that are expected.
#[derive(Debug)]
enum Spec {
    Forward { to: i8, skipped: Vec<(u8, u8)> },
    Piece { tsn: i8, stream: u8, mid: u8, fsn: u8, flags: u8, bytes: u8 },
    Sack { back: u8, gaps: Vec<(u8, u8)> },
    Reconfigure { kind: u8, number: i8, tsn: i8, streams: Vec<u8> },
    Answer { number: i8, result: u8, tsns: Option<(u8, u8)> },
    Change { number: i8, requests: Vec<(u8, u8)> },
    Changed { number: i8, failed: bool },
    Echo { cwr: bool, tsn: i8 },
    Pad(u8),
    Forged(u8),
}

impl<'a> Arbitrary<'a> for Step {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        let odd = bytes.arbitrary::<u8>()?;
        Ok(match odd % 20 {
            0..=9 => Step::Hear { path: odd >> 6, ecn: odd >> 5 & 1 != 0, chunks: few(bytes, 4)? },
            10 | 11 => Step::Send {
                stream: bytes.arbitrary()?,
                bytes: bytes.arbitrary()?,
                limit: bytes.arbitrary()?,
            },
            12 => Step::Read,
            13 => Step::Reset { incoming: odd >> 7 != 0, streams: few(bytes, 3)? },
            14 => Step::ResetTsns,
            15 => Step::Add { incoming: odd >> 7 != 0, count: bytes.arbitrary()? },
            16 => Step::Address { which: bytes.arbitrary()?, path: odd >> 6 },
            17 | 18 => Step::Pass(bytes.arbitrary()?),
            _ if odd >= 0x80 => Step::Shutdown,
            _ => Step::Restart {
                path: odd >> 6,
                keys: [Keys::Old, Keys::New, Keys::None][usize::from(bytes.arbitrary::<u8>()? % 3)],
                chunks: few(bytes, 3)?,
            },
        })
    }
}

impl<'a> Arbitrary<'a> for Spec {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        let odd = bytes.arbitrary::<u8>()?;
        Ok(match odd % 16 {
            0 | 1 => Spec::Forward { to: bytes.arbitrary()?, skipped: few(bytes, 4)? },
            2..=5 => Spec::Piece {
                tsn: bytes.arbitrary()?,
                stream: bytes.arbitrary()?,
                mid: bytes.arbitrary()?,
                fsn: bytes.arbitrary()?,
                flags: bytes.arbitrary()?,
                bytes: bytes.arbitrary()?,
            },
            6 | 7 => Spec::Sack { back: bytes.arbitrary()?, gaps: few(bytes, 4)? },
            8 | 9 => Spec::Reconfigure {
                kind: odd >> 4,
                number: bytes.arbitrary()?,
                tsn: bytes.arbitrary()?,
                streams: few(bytes, 4)?,
            },
            10 => Spec::Answer { number: bytes.arbitrary()?, result: odd >> 4, tsns: bytes.arbitrary()? },
            11 => Spec::Change { number: bytes.arbitrary()?, requests: few(bytes, 4)? },
            12 => Spec::Changed { number: bytes.arbitrary()?, failed: odd >> 7 != 0 },
            13 => Spec::Echo { cwr: odd >> 7 != 0, tsn: bytes.arbitrary()? },
            14 => Spec::Pad(bytes.arbitrary()?),
            _ => Spec::Forged(bytes.arbitrary()?),
        })
    }
}

/// What the peer knows.
struct Known {
    /// Its next TSN, and the highest that it has seen.
    tsn: Tsn,
    highest: Tsn,
    /// The number of its next request and of its next ASCONF; of the last of the endpoint's.
    request: u32,
    asconf: u32,
    asked: u32,
    changed: u32,
    interleaving: bool,
}

impl Case {
    /// Step by step.
    pub fn play(self) {
        let before = memory::held();
        let mut bout = Bout::new(&self.setup, self.extensions);
        for step in &self.steps {
            bout.step(step);
            bout.learn();
            let held = memory::held() - before;
            assert!(held < 3_000_000, "{held} bytes");
        }
    }
}

struct Bout {
    lone: Lone,
    id: AssociationId,
    tag: u32,
    key: Option<Vec<u8>>,
    known: Known,
    paths: usize,
    /// The first TSN of the endpoint.
    first: u32,
    /// The last tag of the peer.
    greeted: u32,
}

impl Bout {
    fn new(setup: &Setup, bits: u8) -> Self {
        let bit = |n: u8| bits >> n & 1 != 0;
        let extensions = Extensions {
            partial_reliability: bit(0),
            reconfiguration: bit(1),
            authentication: bit(2),
            addresses: bit(2) && bit(3),
            interleaving: bit(4),
            zero_checksum: bit(5),
            ecn: bit(6),
            nr_sack: bit(7),
            // No bit of its own: there are eight.
            timestamps: bit(5),
        };
        let config = Config { extensions, ..setup.config() };
        let mut lone = Lone::new(setup.paths(), &config);
        let ours = greeting(7, setup.paths());
        let (id, tag, key) = establish(&mut lone, setup.paths(), ours);
        let first = config.first_tsn.unwrap_or(0);
        let known = Known::new(first, bit(4));
        let key = extensions.authentication.then_some(key);
        Bout { lone, id, tag, key, known, paths: setup.paths(), first, greeted: 7 }
    }

    fn step(&mut self, step: &Step) {
        let (now, id) = (self.lone.now, self.id);
        let end = &mut self.lone.end;
        let direction = |incoming: bool| if incoming { Direction::Incoming } else { Direction::Outgoing };
        match step {
            Step::Hear { path, ecn, chunks } => return self.hear(usize::from(*path), *ecn, chunks),
            Step::Restart { path, keys, chunks } => return self.restart(usize::from(*path), *keys, chunks),
            Step::Send { stream, bytes, limit } => {
                let reliability = match limit % 5 {
                    0 => Reliability::Retransmissions((limit / 5).into()),
                    1 => Reliability::Lifetime(u32::from(limit / 5) * 50),
                    2 => Reliability::Priority((limit / 5).into()),
                    _ => Reliability::Full,
                };
                let payload = BYTES.slice(..usize::from(*bytes) % BYTES.len());
                let unordered = bytes & 0x8000 != 0;
                let message = Message {
                    stream: (stream % 10).into(),
                    unordered,
                    payload,
                    reliability,
                    ..Message::default()
                };
                let _ = end.send(now, id, message);
            }
            Step::Read => while end.read(now, id).is_some() {},
            Step::Reset { incoming, streams } => {
                let streams: Vec<u16> = streams.iter().map(|stream| u16::from(stream % 10)).collect();
                let _ = end.reset_streams(now, id, direction(*incoming), &streams);
            }
            Step::ResetTsns => {
                let _ = end.reset_tsns(now, id);
            }
            Step::Add { incoming, count } => {
                let _ = end.add_streams(now, id, direction(*incoming), (*count).into());
            }
            Step::Address { which, path } => {
                let local = address(usize::from(*path), 0);
                let _ = match which % 3 {
                    0 => end.add_address(now, id, LocalAddress { address: local, prefix: 24 }),
                    1 => end.remove_address(now, id, local),
                    _ => end.set_peer_primary(now, id, local),
                };
            }
            Step::Pass(millis) => self.lone.pass(Duration::from_millis((*millis).into())),
            Step::Shutdown => end.shutdown(now, id),
        }
        self.lone.drain();
    }

    /// The peer says this, behind AUTH if there are keys; through the codec, as on a network.
    fn hear(&mut self, path: usize, marked: bool, specs: &[Spec]) {
        let chunks: Vec<Chunk> = specs.iter().map(|spec| spec.chunk(&mut self.known)).collect();
        let chunks = match &self.key {
            Some(key) => authenticated(key, chunks),
            None => chunks,
        };
        let mut packet = packet((path, path % self.paths), self.tag, chunks);
        packet.ecn = if marked { Ecn::Ce } else { Ecn::NotEct };
        self.arrive(packet);
    }

    /// The peer has forgotten the association and begins anew, with another tag and another random number. Its COOKIE
    /// ECHO, and what stands behind it, is authentic by these keys.
    fn restart(&mut self, path: usize, keys: Keys, specs: &[Spec]) {
        self.learn();
        self.greeted = self.greeted.wrapping_add(1).max(1);
        let ours = greeting(self.greeted, self.paths);
        self.arrive(packet((path, path % self.paths), 0, vec![Chunk::Init(Box::new(ours.clone()))]));
        let acks = self.lone.take_sent().into_iter().flat_map(|packet| packet.chunks);
        let ack =
            acks.filter_map(|chunk| if let Chunk::InitAck(ack) = chunk { Some(ack) } else { None }).last();
        let Some(ack) = ack else { return };
        let cookie = ack.params.iter().find_map(|param| match param {
            Param::Cookie(cookie) => Some(cookie.clone()),
            _ => None,
        });
        let new = self.key.is_some().then(|| key(&ours.params, &ack.params));
        let mut known = Known::new(self.first, self.known.interleaving);
        let echo = Chunk::CookieEcho(CookieEcho { cookie: cookie.expect("an INIT ACK has a cookie") });
        let chunks = [echo].into_iter().chain(specs.iter().map(|spec| spec.chunk(&mut known))).collect();
        let by = match keys {
            Keys::Old => self.key.as_ref(),
            Keys::New => new.as_ref(),
            Keys::None => None,
        };
        let chunks = match by {
            Some(key) => authenticated(key, chunks),
            None => chunks,
        };
        self.arrive(packet((path, path % self.paths), ack.tag, chunks));
        let restarted = |(id, event): &(AssociationId, Event)| *id == self.id && *event == Event::Restart;
        if self.lone.events.iter().any(restarted) {
            (self.tag, self.key, self.known) = (ack.tag, new, known);
        }
    }

    /// A packet arrives through the codec, if it can be encoded.
    fn arrive(&mut self, packet: Packet) {
        let mut bytes = BytesMut::new();
        if packet.encode(&mut bytes).is_ok() {
            let back = Packet::decode(packet.from, packet.to, packet.ecn, bytes.freeze());
            self.lone.arrive(back.expect("what was encoded can be decoded"));
        }
    }

    fn learn(&mut self) {
        for packet in self.lone.take_sent() {
            for chunk in &packet.chunks {
                match chunk {
                    Chunk::Data(data) if data.tsn.after(self.known.highest) => self.known.highest = data.tsn,
                    Chunk::IData(data) if data.tsn.after(self.known.highest) => self.known.highest = data.tsn,
                    Chunk::Asconf(asconf) => self.known.changed = asconf.sequence,
                    Chunk::ReConfig(chunk) => chunk.params.iter().for_each(|param| self.known.asked(param)),
                    _ => {}
                }
            }
        }
        self.lone.events.clear();
    }
}

impl Known {
    /// At the beginning of an association in which the endpoint's first TSN is this.
    fn new(first: u32, interleaving: bool) -> Self {
        Known {
            tsn: FIRST,
            highest: Tsn(first).prev(),
            request: FIRST.0,
            asconf: FIRST.0,
            asked: first,
            changed: first,
            interleaving,
        }
    }

    fn asked(&mut self, param: &ReConfigParam) {
        match param {
            ReConfigParam::OutgoingReset(reset) => self.asked = reset.request,
            ReConfigParam::IncomingReset(reset) => self.asked = reset.request,
            ReConfigParam::TsnReset(request) => self.asked = *request,
            ReConfigParam::AddOutgoing(add) | ReConfigParam::AddIncoming(add) => self.asked = add.request,
            ReConfigParam::Response(_) | ReConfigParam::Unknown { .. } => {}
        }
    }
}

impl Spec {
    fn chunk(&self, known: &mut Known) -> Chunk {
        match self {
            Spec::Forward { to, skipped } => forward(known, *to, skipped),
            Spec::Piece { tsn, stream, mid, fsn, flags, bytes } => {
                piece(known, *tsn, (*stream, *mid, *fsn), *flags, *bytes)
            }
            Spec::Sack { back, gaps } => Chunk::Sack(Sack {
                flags: 0,
                cumulative: Tsn(known.highest.0.wrapping_sub(u32::from(*back % 16))),
                a_rwnd: 20_000,
                gaps: gaps.iter().map(|(a, b)| GapBlock { start: (*a).into(), end: (*b).into() }).collect(),
                duplicates: Default::default(),
            }),
            Spec::Reconfigure { kind, number, tsn, streams } => {
                let request = near(known.request, *number);
                known.request = known.request.wrapping_add(u32::from(*number == 0));
                let streams: Vec<u16> = streams.iter().map(|stream| u16::from(stream % 10)).collect();
                let count = streams.first().copied().unwrap_or(1);
                let (response, last_tsn) = (known.asked, Tsn(near(known.tsn.0, *tsn)));
                let param = match kind % 5 {
                    0 => ReConfigParam::OutgoingReset(OutgoingReset { request, response, last_tsn, streams }),
                    1 => ReConfigParam::IncomingReset(IncomingReset { request, streams }),
                    2 => ReConfigParam::TsnReset(request),
                    3 => ReConfigParam::AddOutgoing(AddStreams { request, count }),
                    _ => ReConfigParam::AddIncoming(AddStreams { request, count }),
                };
                Chunk::ReConfig(ReConfig { params: vec![param] })
            }
            Spec::Answer { number, result, tsns } => {
                let request = near(known.asked, *number);
                let at = |by: u8| Tsn(known.tsn.0.wrapping_add(u32::from(by) << 24));
                let next = tsns.map(|(a, b)| (at(a), at(b)));
                let response = Response { request, result: u32::from(*result % 8), next };
                Chunk::ReConfig(ReConfig { params: vec![ReConfigParam::Response(response)] })
            }
            Spec::Change { number, requests } => {
                let sequence = near(known.asconf, *number);
                known.asconf = known.asconf.wrapping_add(u32::from(*number == 0));
                let requests = requests.iter().map(|(kind, path)| change(*kind, *path)).collect();
                Chunk::Asconf(Box::new(Asconf { sequence, address: address(0, 1).ip, requests }))
            }
            Spec::Changed { number, failed } => {
                let sequence = near(known.changed, *number);
                let failure =
                    AsconfParam::Failed(Failed { correlation: sequence, causes: vec![Cause::OutOfResource] });
                let responses = if *failed { vec![failure] } else { vec![] };
                Chunk::AsconfAck(Box::new(AsconfAck { sequence, responses }))
            }
            Spec::Echo { cwr: false, tsn } => Chunk::Ecne(EcnEcho { tsn: Tsn(near(known.highest.0, *tsn)) }),
            Spec::Echo { cwr: true, tsn } => Chunk::Cwr(EcnEcho { tsn: Tsn(near(known.tsn.0, *tsn)) }),
            Spec::Pad(bytes) => Chunk::Pad(Pad { bytes: (*bytes).into() }),
            Spec::Forged(bytes) => {
                let hmac = BYTES.slice(..usize::from(*bytes));
                Chunk::Auth(Box::new(Auth { key: 0, algorithm: 3, hmac, covered: Default::default() }))
            }
        }
    }
}

fn forward(known: &mut Known, to: i8, skipped: &[(u8, u8)]) -> Chunk {
    let cumulative = Tsn(near(known.tsn.0, to));
    if to > 0 {
        known.tsn = cumulative.next();
    }
    if !known.interleaving {
        let skipped =
            skipped.iter().map(|(stream, ssn)| ((stream % 10).into(), Ssn((*ssn).into()))).collect();
        return Chunk::ForwardTsn(ForwardTsn { cumulative, skipped });
    }
    let message = |(stream, mid): &(u8, u8)| SkippedMessage {
        stream: (stream % 10).into(),
        unordered: stream & 0x80 != 0,
        mid: Mid((*mid).into()),
    };
    Chunk::IForwardTsn(IForwardTsn { cumulative, skipped: skipped.iter().map(message).collect() })
}

fn piece(known: &mut Known, tsn: i8, (stream, mid, fsn): (u8, u8, u8), flags: u8, bytes: u8) -> Chunk {
    let place = Tsn(near(known.tsn.0, tsn));
    known.tsn = if tsn == 0 { known.tsn.next() } else { known.tsn };
    let (stream, payload) = (u16::from(stream % 10), BYTES.slice(..usize::from(bytes)));
    let [begin, end, unordered] = [flags & 1 == 0, flags & 2 == 0, flags & 4 != 0];
    if !known.interleaving {
        let ssn = Ssn(mid.into());
        let immediate = false;
        return Chunk::Data(Data {
            tsn: place,
            stream,
            ssn,
            ppid: 0,
            begin,
            end,
            unordered,
            immediate,
            payload,
        });
    }
    let mid = Mid(mid.into());
    let at = if begin {
        FragmentPosition::First { ppid: 3 }
    } else {
        FragmentPosition::Later { fsn: (fsn % 8).into() }
    };
    Chunk::IData(IData { tsn: place, stream, mid, place: at, end, unordered, immediate: false, payload })
}

fn change(kind: u8, path: u8) -> AsconfParam {
    let address = match path % 5 {
        4 => std::net::Ipv4Addr::UNSPECIFIED.into(),
        path => address(path.into(), 1).ip,
    };
    let request = AddressRequest { correlation: kind.into(), address };
    match kind % 4 {
        0 | 1 => AsconfParam::Add(request),
        2 => AsconfParam::Delete(request),
        _ => AsconfParam::SetPrimary(request),
    }
}

fn near(number: u32, by: i8) -> u32 {
    number.wrapping_add(by as u32)
}

/// The INIT, or INIT ACK, of the peer with this tag, which makes its random number too: it offers every extension.
fn greeting(tag: u32, paths: usize) -> Init {
    let mut greeting = init(tag, FIRST, 30_000, paths);
    let random = Bytes::from(vec![tag as u8; 32]);
    greeting.params.extend([Param::Random(random), Param::HmacAlgorithms(vec![3, 1])]);
    let types = Bytes::from_static(&[0x10, 0x40, 0x80, 0x82, 0x90, 0xc0, 0xc1, 0xc2]);
    greeting.params.extend([
        Param::SupportedExtensions(types),
        Param::EcnCapable,
        Param::ForwardTsnSupported,
    ]);
    greeting
}

/// The key that both ends have who said this in INIT and INIT ACK.
fn key(a: &[Param], b: &[Param]) -> Vec<u8> {
    let part = |params: &[Param]| -> Vec<u8> {
        let keying = params.iter().filter(|param| (0x8002..=0x8004).contains(&param.number()));
        keying.flat_map(|param| Param::encode_list(&[param.clone()]).expect("short")).collect()
    };
    let (a, b) = (part(a), part(b));
    if (a.len(), &a) < (b.len(), &b) { [a, b].concat() } else { [b, a].concat() }
}

/// The association, the tag that it wants to hear, and the key that both ends have.
fn establish(lone: &mut Lone, paths: usize, ack: Init) -> (AssociationId, u32, Vec<u8>) {
    use anabranch_proto::wire::chunk::Bare;
    let to: Vec<_> = (0..paths).map(|path| address(path, 1)).collect();
    let id = lone.end.connect(lone.now, crate::lone::PORTS.destination, &to).expect("a path");
    lone.drain();
    let init = lone.take_sent().pop().expect("an INIT");
    let Some(Chunk::Init(init)) = init.chunks.first() else { panic!("not an INIT: {init:?}") };
    let key = key(&init.params, &ack.params);
    let tag = init.tag;
    lone.hear(0, tag, [Chunk::InitAck(Box::new(ack))]);
    lone.hear(0, tag, [Chunk::CookieAck(Bare)]);
    (id, tag, key)
}

/// AUTH by the empty shared key, and the chunks behind it.
fn authenticated(key: &[u8], chunks: Vec<Chunk>) -> Vec<Chunk> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
    mac.update(&[15, 0, 0, 40, 0, 0, 0, 3]);
    mac.update(&[0; 32]);
    for chunk in &chunks {
        let bytes = chunk.to_bytes().unwrap_or_default();
        mac.update(&bytes);
        mac.update(&[0; 3][..bytes.len().next_multiple_of(4) - bytes.len()]);
    }
    let hmac = Bytes::copy_from_slice(&mac.finalize().into_bytes());
    let auth = Auth { key: 0, algorithm: 3, hmac, covered: Default::default() };
    [Chunk::Auth(Box::new(auth))].into_iter().chain(chunks).collect()
}
