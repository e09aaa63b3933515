//! Chunks of every kind, in terms of what a peer knows: what is expected, near it, or far from it.

use anabranch_proto::wire::chunk::{
    Abort, Bare, CookieEcho, Data, GapBlock, Heartbeat, Init, OperationError, Sack, Shutdown,
    ShutdownComplete, Unknown,
};
use anabranch_proto::wire::{Cause, Chunk, Param};
use anabranch_proto::{Ssn, Tsn};
use arbitrary::{Arbitrary, Result, Unstructured};
use bytes::Bytes;

use crate::input::few;
use crate::lone::init;
use crate::peer::{Peer, Turn};

const BYTES: Bytes = Bytes::from_static(&[9; 65_000]);

/// One chunk.
#[derive(Clone, Debug)]
pub enum Spec {
    Turn(Turn),
    Data { tsn: i8, ssn: i8, stream: u8, flags: u8, bytes: u16 },
    Init(Greeting),
    InitAck(Greeting),
    Sack { back: u8, a_rwnd: u16, gaps: Vec<(u16, u16)>, duplicates: Vec<u32> },
    Heartbeat(u16),
    HeartbeatAck { changed: u8 },
    Abort { reflected: bool, causes: Vec<CauseSpec> },
    Shutdown { back: i8 },
    ShutdownAck,
    Error(Vec<CauseSpec>),
    CookieEcho { at: u8, with: u8 },
    CookieAck,
    ShutdownComplete { reflected: bool },
    Unknown { number: u8, flags: u8, bytes: u8 },
}

/// What INIT and INIT ACK say.
#[derive(Clone, Debug, Arbitrary)]
pub struct Greeting {
    tag: u8,
    a_rwnd: u16,
    outbound: u8,
    inbound: u8,
    addresses: u8,
    #[arbitrary(with = few_params)]
    params: Vec<ParamSpec>,
}

#[derive(Clone, Debug, Arbitrary)]
pub struct ParamSpec {
    kind: u8,
    value: u32,
}

#[derive(Clone, Debug, Arbitrary)]
pub struct CauseSpec {
    code: u8,
    value: u16,
}

fn few_params(bytes: &mut Unstructured<'_>) -> Result<Vec<ParamSpec>> {
    few(bytes, 3)
}

impl<'a> Arbitrary<'a> for Spec {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match bytes.arbitrary::<u8>()? % 24 {
            0..=4 => Spec::Turn(bytes.arbitrary()?),
            5 | 6 => Spec::Data {
                tsn: bytes.arbitrary()?,
                ssn: bytes.arbitrary()?,
                stream: bytes.arbitrary()?,
                flags: bytes.arbitrary()?,
                bytes: bytes.arbitrary()?,
            },
            7 => Spec::Init(bytes.arbitrary()?),
            8 => Spec::InitAck(bytes.arbitrary()?),
            9..=12 => Spec::Sack {
                back: bytes.arbitrary()?,
                a_rwnd: bytes.arbitrary()?,
                gaps: few(bytes, 6)?,
                duplicates: few(bytes, 3)?,
            },
            13 => Spec::Heartbeat(bytes.arbitrary()?),
            14 | 15 => Spec::HeartbeatAck { changed: bytes.arbitrary()? },
            16 => Spec::Abort { reflected: bytes.arbitrary()?, causes: few(bytes, 3)? },
            17 => Spec::Shutdown { back: bytes.arbitrary()? },
            18 => Spec::ShutdownAck,
            19 => Spec::Error(few(bytes, 3)?),
            20 => Spec::CookieEcho { at: bytes.arbitrary()?, with: bytes.arbitrary()? },
            21 => Spec::CookieAck,
            22 => Spec::ShutdownComplete { reflected: bytes.arbitrary()? },
            _ => Spec::Unknown {
                number: bytes.arbitrary()?,
                flags: bytes.arbitrary()?,
                bytes: bytes.arbitrary()?,
            },
        })
    }
}

impl Spec {
    /// The chunk, as somebody would send it who knows what the peer does; `None` if the network loses it.
    pub fn chunk(&self, peer: &mut Peer) -> Option<Chunk> {
        Some(match self {
            Spec::Turn(turn) => return peer.turn(turn),
            Spec::Data { tsn, ssn, stream, flags, bytes } => {
                data(peer, (*tsn, *ssn), *stream, *flags, *bytes)
            }
            Spec::Init(greeting) => Chunk::Init(Box::new(greeting.init(peer))),
            Spec::InitAck(greeting) => Chunk::InitAck(Box::new(greeting.init(peer))),
            Spec::Sack { back, a_rwnd, gaps, duplicates } => Chunk::Sack(Sack {
                flags: 0,
                cumulative: Tsn(peer.highest.0.wrapping_sub(u32::from(*back))),
                a_rwnd: u32::from(*a_rwnd),
                gaps: gaps.iter().map(|(start, end)| GapBlock { start: *start, end: *end }).collect(),
                duplicates: duplicates.iter().copied().map(Tsn).collect(),
            }),
            Spec::Heartbeat(bytes) => Chunk::Heartbeat(Heartbeat::new(some(usize::from(*bytes) % 3000))),
            Spec::HeartbeatAck { changed } => {
                Chunk::HeartbeatAck(Heartbeat::new(damaged(&peer.heartbeat, *changed, 1)))
            }
            Spec::Abort { reflected, causes } => Chunk::Abort(Abort {
                reflected: *reflected,
                causes: causes.iter().map(CauseSpec::cause).collect(),
            }),
            Spec::Shutdown { back } => Chunk::Shutdown(Shutdown { cumulative: near(peer.highest, *back) }),
            Spec::ShutdownAck => Chunk::ShutdownAck(Bare),
            Spec::Error(causes) => {
                Chunk::Error(OperationError { causes: causes.iter().map(CauseSpec::cause).collect() })
            }
            Spec::CookieEcho { at, with } => {
                Chunk::CookieEcho(CookieEcho { cookie: damaged(&peer.cookie, *at, *with) })
            }
            Spec::CookieAck => Chunk::CookieAck(Bare),
            Spec::ShutdownComplete { reflected } => {
                Chunk::ShutdownComplete(ShutdownComplete { reflected: *reflected })
            }
            Spec::Unknown { number, flags, bytes } => unknown(*number, *flags, *bytes),
        })
    }
}

fn data(peer: &Peer, (tsn, ssn): (i8, i8), stream: u8, flags: u8, bytes: u16) -> Chunk {
    let bit = |bit: u8| flags >> bit & 1 != 0;
    let next = peer.ssns[usize::from(stream) % peer.ssns.len()];
    Chunk::Data(Data {
        tsn: near(peer.tsn, tsn),
        stream: u16::from(stream % 10),
        ssn: Ssn(next.0.wrapping_add(ssn as u16)),
        ppid: 1,
        begin: !bit(0),
        end: !bit(1),
        unordered: bit(2),
        immediate: bit(3),
        payload: some(usize::from(bytes) % 2000),
    })
}

fn unknown(number: u8, flags: u8, bytes: u8) -> Chunk {
    // Numbers without a row in the table, whichever it has by now.
    let number = if number & 0x3f < 16 { number | 0x20 } else { number };
    let number =
        if [0x40, 0x82, 0x84, 0xc0, 0xc1, 0xc2, 0x80, 0x90].contains(&number) { 0x3e } else { number };
    Chunk::Unknown(Box::new(Unknown { number, flags, value: some(bytes.into()) }))
}

fn near(tsn: Tsn, by: i8) -> Tsn {
    Tsn(tsn.0.wrapping_add(by as u32))
}

/// So many bytes.
pub fn some(bytes: usize) -> Bytes {
    BYTES.slice(..bytes)
}

/// These bytes with one of them changed; the same if it is beyond them.
fn damaged(bytes: &Bytes, at: u8, with: u8) -> Bytes {
    let mut bytes = bytes.to_vec();
    // The first places are the likeliest to be drawn, and "unchanged" must be likely.
    if let Some(byte) = usize::from(at).checked_sub(8).and_then(|at| bytes.get_mut(at)) {
        *byte ^= with;
    }
    bytes.into()
}

impl Greeting {
    fn init(&self, peer: &mut Peer) -> Init {
        peer.ours = 0x100 + u32::from(self.tag % 4);
        let mut init = init(peer.ours, peer.tsn, u32::from(self.a_rwnd), usize::from(self.addresses % 5));
        (init.outbound, init.inbound) = (u16::from(self.outbound), u16::from(self.inbound));
        if self.tag >= 0xf0 {
            init.tag = 0;
        }
        init.params.extend(self.params.iter().map(ParamSpec::param));
        init
    }
}

impl ParamSpec {
    fn param(&self) -> Param {
        let bytes = some(self.value as usize % 300);
        match self.kind % 8 {
            0 => Param::Ipv4(self.value.into()),
            1 => Param::Ipv6(u128::from(self.value).into()),
            2 => Param::Cookie(bytes),
            3 => Param::Unrecognized(bytes),
            4 => Param::CookiePreservative(self.value),
            5 => Param::HostName(bytes),
            6 => Param::SupportedAddressTypes(vec![5; self.value as usize % 5]),
            _ => Param::Unknown { kind: 0x2000 | (self.value >> 16) as u16 & 0xc0ff, value: bytes },
        }
    }
}

impl CauseSpec {
    fn cause(&self) -> Cause {
        let bytes = some(usize::from(self.value % 100));
        match self.code % 15 {
            1 => Cause::InvalidStream(self.value),
            2 => Cause::MissingParameter(vec![7; usize::from(self.value % 9)]),
            3 => Cause::StaleCookie(self.value.into()),
            4 => Cause::OutOfResource,
            5 => Cause::UnresolvableAddress(bytes),
            6 => Cause::UnrecognizedChunk(bytes),
            7 => Cause::InvalidMandatoryParameter,
            8 => Cause::UnrecognizedParameters(bytes),
            9 => Cause::NoUserData(Tsn(self.value.into())),
            10 => Cause::CookieWhileShutdown,
            11 => Cause::RestartWithNewAddresses(bytes),
            12 => Cause::UserInitiated(bytes),
            13 => Cause::ProtocolViolation(bytes),
            _ => Cause::Unknown { code: 0x4000 | self.value, value: bytes },
        }
    }
}
