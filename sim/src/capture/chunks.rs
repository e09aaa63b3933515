//! A chunk in short: its name and what matters in it, for a line as for JSON.

use std::fmt::{self, Display};

use anabranch_proto::wire::chunk::{Data, Init, Sack};
use anabranch_proto::wire::{Cause, Chunk, Param};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// So many elements of a list stand in a line.
const MOST_SHOWN: usize = 16;

/// A chunk, shortly.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Short {
    name: String,
    fields: Fields,
}

/// What matters in it, in the order in which it is read.
type Fields = Vec<(&'static str, Value)>;

impl Short {
    /// Of a chunk.
    pub(super) fn new(chunk: &Chunk) -> Self {
        let number = chunk.number();
        let fields = match chunk {
            Chunk::Data(chunk) => data(chunk),
            Chunk::Init(chunk) | Chunk::InitAck(chunk) => init(chunk),
            Chunk::Sack(chunk) => sack(chunk),
            Chunk::Heartbeat(chunk) | Chunk::HeartbeatAck(chunk) => vec![("info", json!(chunk.info.len()))],
            Chunk::Abort(chunk) => vec![reflected(chunk.reflected), causes(&chunk.causes)],
            Chunk::Shutdown(chunk) => vec![("cum", json!(chunk.cumulative.0))],
            Chunk::Error(chunk) => vec![causes(&chunk.causes)],
            Chunk::CookieEcho(chunk) => vec![("cookie", json!(chunk.cookie.len()))],
            Chunk::ShutdownComplete(chunk) => vec![reflected(chunk.reflected)],
            Chunk::ShutdownAck(_) | Chunk::CookieAck(_) => Vec::new(),
            Chunk::Pad(chunk) => vec![("len", json!(chunk.bytes))],
            Chunk::Unknown(chunk) => vec![("flags", json!(chunk.flags)), ("len", json!(chunk.value.len()))],
        };
        Short { name: name(number), fields }
    }

    /// Of a chunk that the capture has only the beginning of.
    pub(super) fn cut(number: u8) -> Self {
        Short { name: name(number), fields: vec![("cut", json!(true))] }
    }
}

/// "SACK cum=7 a_rwnd=65536 gaps=9-10,12-12".
impl Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        for (key, value) in &self.fields {
            match value {
                Value::Bool(true) => write!(f, " {key}")?,
                Value::Bool(false) => {}
                Value::Array(list) if list.is_empty() => {}
                Value::Array(list) => write!(f, " {key}={}", joined(list))?,
                Value::String(text) if text.is_empty() => {}
                Value::String(text) => write!(f, " {key}={text}")?,
                value if *key == "tag" => write!(f, " tag={:#010x}", value.as_u64().unwrap_or(0))?,
                value => write!(f, " {key}={value}")?,
            }
        }
        Ok(())
    }
}

impl Serialize for Short {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1 + self.fields.len()))?;
        map.serialize_entry("type", &self.name)?;
        self.fields.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
        map.end()
    }
}

fn joined(list: &[Value]) -> String {
    let shown = list.iter().take(MOST_SHOWN).map(|value| match value {
        Value::Array(pair) => pair.iter().map(Value::to_string).collect::<Vec<_>>().join("-"),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    });
    let mut shown: Vec<_> = shown.collect();
    if list.len() > MOST_SHOWN {
        shown.push(format!("… {} in all", list.len()));
    }
    shown.join(",")
}

/// `flags` as letters: U, B, E, I.
fn data(chunk: &Data) -> Fields {
    let flags = [(chunk.unordered, 'U'), (chunk.begin, 'B'), (chunk.end, 'E'), (chunk.immediate, 'I')];
    let flags: String = flags.into_iter().filter_map(|(set, letter)| set.then_some(letter)).collect();
    vec![
        ("tsn", json!(chunk.tsn.0)),
        ("sid", json!(chunk.stream)),
        ("ssn", json!(chunk.ssn.0)),
        ("ppid", json!(chunk.ppid)),
        ("len", json!(chunk.payload.len())),
        ("flags", json!(flags)),
    ]
}

/// `gaps` are TSNs, not offsets.
fn sack(chunk: &Sack) -> Fields {
    let tsn = |offset: u16| chunk.cumulative.plus(offset.into()).0;
    let gaps: Vec<_> = chunk.gaps.iter().map(|gap| [tsn(gap.start), tsn(gap.end)]).collect();
    let duplicates: Vec<_> = chunk.duplicates.iter().map(|tsn| tsn.0).collect();
    vec![
        ("cum", json!(chunk.cumulative.0)),
        ("a_rwnd", json!(chunk.a_rwnd)),
        ("gaps", json!(gaps)),
        ("dups", json!(duplicates)),
    ]
}

fn init(chunk: &Init) -> Fields {
    vec![
        ("tag", json!(chunk.tag)),
        ("a_rwnd", json!(chunk.a_rwnd)),
        ("out", json!(chunk.outbound)),
        ("in", json!(chunk.inbound)),
        ("tsn", json!(chunk.tsn.0)),
        ("params", chunk.params.iter().map(param).collect()),
    ]
}

fn param(param: &Param) -> String {
    match param {
        Param::Ipv4(address) => address.to_string(),
        Param::Ipv6(address) => address.to_string(),
        Param::Cookie(cookie) => format!("cookie({})", cookie.len()),
        Param::Unrecognized(bytes) => format!("unrecognized({})", bytes.len()),
        Param::CookiePreservative(more) => format!("cookie-preservative({more} ms)"),
        Param::HostName(name) => format!("host-name({})", name.len()),
        Param::SupportedAddressTypes(types) => format!("address-types({})", numbers(types)),
        Param::Unknown { kind, .. } => unknown_param(*kind),
    }
}

fn numbers(numbers: &[u16]) -> String {
    numbers.iter().map(u16::to_string).collect::<Vec<_>>().join(" ")
}

/// The names of IANA's registry.
fn unknown_param(kind: u16) -> String {
    let name = match kind {
        0x8000 => "ecn-capable",
        0x8001 => "zero-checksum",
        0x8002 => "random",
        0x8003 => "chunk-list",
        0x8004 => "hmac-algorithms",
        0x8005 => "padding",
        0x8008 => "supported-extensions",
        0xc000 => "forward-tsn",
        0xc006 => "adaptation-layer",
        _ => return format!("param-{kind:#06x}"),
    };
    name.to_owned()
}

fn reflected(reflected: bool) -> (&'static str, Value) {
    ("reflected", json!(reflected))
}

fn causes(causes: &[Cause]) -> (&'static str, Value) {
    ("causes", causes.iter().map(cause).collect())
}

fn cause(cause: &Cause) -> String {
    match cause {
        Cause::InvalidStream(stream) => format!("invalid-stream({stream})"),
        Cause::MissingParameter(types) => format!("missing-parameter({})", numbers(types)),
        Cause::StaleCookie(micros) => format!("stale-cookie({micros} us)"),
        Cause::UnresolvableAddress(_) => "unresolvable-address".to_owned(),
        Cause::UnrecognizedChunk(_) => "unrecognized-chunk".to_owned(),
        Cause::UnrecognizedParameters(_) => "unrecognized-parameters".to_owned(),
        Cause::NoUserData(tsn) => format!("no-user-data({})", tsn.0),
        Cause::RestartWithNewAddresses(_) => "restart-with-new-addresses".to_owned(),
        Cause::UserInitiated(_) => "user-initiated".to_owned(),
        Cause::ProtocolViolation(_) => "protocol-violation".to_owned(),
        Cause::OutOfResource => "out-of-resource".to_owned(),
        Cause::InvalidMandatoryParameter => "invalid-mandatory-parameter".to_owned(),
        Cause::CookieWhileShutdown => "cookie-while-shutting-down".to_owned(),
        Cause::Unknown { code, .. } => format!("cause-{code}"),
    }
}

/// The chunk types of IANA's registry.
fn name(number: u8) -> String {
    let name = match number {
        0 => "DATA",
        1 => "INIT",
        2 => "INIT ACK",
        3 => "SACK",
        4 => "HEARTBEAT",
        5 => "HEARTBEAT ACK",
        6 => "ABORT",
        7 => "SHUTDOWN",
        8 => "SHUTDOWN ACK",
        9 => "ERROR",
        10 => "COOKIE ECHO",
        11 => "COOKIE ACK",
        12 => "ECNE",
        13 => "CWR",
        14 => "SHUTDOWN COMPLETE",
        15 => "AUTH",
        64 => "I-DATA",
        128 => "ASCONF-ACK",
        130 => "RE-CONFIG",
        132 => "PAD",
        192 => "FORWARD-TSN",
        193 => "ASCONF",
        194 => "I-FORWARD-TSN",
        _ => return format!("chunk-{number}"),
    };
    name.to_owned()
}
