//! The syntax tree of a script that was read and checked.

use std::net::IpAddr;

use anabranch_proto::wire::Ecn;

use super::element::Element;

/// A whole script.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Program {
    pub(super) options: Vec<Opt>,
    pub(super) events: Vec<Event>,
}

/// `--name=key=value`.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Opt {
    pub(super) line: u32,
    pub(super) name: String,
    pub(super) key: Option<String>,
    pub(super) value: Option<Literal>,
}

/// The value of an option.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Literal {
    Integer(i128),
    /// In billionths.
    Decimal(i128),
    Word(String),
    Text(String),
    Ip(IpAddr),
}

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Event {
    pub(super) line: u32,
    pub(super) when: EventTime,
    pub(super) action: Action,
}

/// The time of an event, in nanoseconds.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum EventTime {
    At(Moment),
    /// At any time between these two.
    Between(Moment, Moment),
    /// At any time at which the stack sends.
    Any,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Moment {
    /// Since the beginning of the script.
    Absolute(u64),
    /// Since the end of the previous event.
    Relative(u64),
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Action {
    /// The peer sends this packet.
    Inject(Packet),
    /// The stack must send this packet.
    Expect(Packet),
    Call(Call),
    Command(Command),
}

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Packet {
    /// Source and destination addresses.
    pub(super) addresses: Option<(IpAddr, IpAddr)>,
    pub(super) ports: Option<(u16, u16)>,
    /// The UDP ports, if the packet is encapsulated.
    pub(super) udp: Option<(u16, u16)>,
    pub(super) ecn: Option<Ecn>,
    pub(super) checksum: Checksum,
    pub(super) tag: Option<u32>,
    pub(super) body: Body,
}

impl Packet {
    /// What stands before the colon, in script notation.
    pub(super) fn head(&self) -> String {
        let pair = |(from, to): (u16, u16)| format!("{from} > {to}");
        let addresses = self.addresses.map(|(from, to)| format!("{from} > {to} ")).unwrap_or_default();
        let ecn = self.ecn.map(|ecn| format!("({}) ", bits(ecn))).unwrap_or_default();
        let ports = self.ports.map(|ports| pair(ports) + " ").unwrap_or_default();
        let checksum = match self.checksum {
            Checksum::Right => None,
            Checksum::Wrong => Some("bad_crc32c".to_owned()),
            Checksum::Zero => Some("zero_checksum".to_owned()),
        };
        let options: Vec<_> = checksum.into_iter().chain(self.tag.map(|tag| format!("tag={tag}"))).collect();
        let options = if options.is_empty() { String::new() } else { format!("({})", options.join(", ")) };
        let udp = self.udp.map(|ports| format!("/udp({})", pair(ports))).unwrap_or_default();
        format!("{addresses}{ecn}{ports}sctp{options}{udp}")
    }
}

fn bits(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotEct => "noecn",
        Ecn::Ect0 => "ect0",
        Ecn::Ect1 => "ect1",
        Ecn::Ce => "ce",
    }
}

/// The checksum of a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Checksum {
    Right,
    Wrong,
    Zero,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Body {
    Chunks(Vec<Element>),
    /// The bytes after the common header.
    Raw(Vec<u8>),
}

/// `name(arguments) = result`.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Vec<Expr>,
    pub(super) result: Expr,
    pub(super) errno: Option<String>,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Expr {
    /// `...`.
    Any,
    Integer(i128),
    Word(String),
    Text(String),
    Ip(IpAddr),
    List(Vec<Expr>),
    /// `{key=value, ...}`.
    Fields(Vec<(String, Expr)>),
    /// `A|B`.
    Or(Vec<Expr>),
    /// `low~high`, both included: a range for a result.
    Range(i128, i128),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Command {
    /// `sysctl -w net.inet.sctp.NAME=VALUE`.
    Sysctl { name: String, value: u64 },
    /// `link ADDRESS up|down`: whether the local address can send.
    Link { local: IpAddr, up: bool },
    /// `too-big ADDRESS BYTES`: the largest packet that this peer address accepts.
    TooBig { peer: IpAddr, mtu: u32 },
}
