//! A chunk, or a part of a TCP segment, in short: its name and what matters in it, for a line as for JSON.

use std::fmt::{self, Display};

use anabranch_proto::wire::chunk::{
    AsconfParam, Data, ForwardTsn, FragmentPosition, GapBlock, IData, IForwardTsn, Init, NrSack,
    ReConfigParam, Sack,
};
use anabranch_proto::wire::{Cause, Chunk, Param};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// The largest number of list elements in a line.
const MOST_SHOWN: usize = 16;

/// A chunk, shortly.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Short {
    name: String,
    fields: Fields,
}

/// The important fields in the order in which they are read.
pub(super) type Fields = Vec<(&'static str, Value)>;

impl Short {
    /// The summary of a chunk.
    pub(super) fn new(chunk: &Chunk) -> Self {
        let number = chunk.number();
        let fields = match chunk {
            Chunk::Data(chunk) => data(chunk),
            Chunk::Init(chunk) | Chunk::InitAck(chunk) => init(chunk),
            Chunk::Sack(chunk) => sack(chunk),
            Chunk::NrSack(chunk) => nr_sack(chunk),
            Chunk::Heartbeat(chunk) | Chunk::HeartbeatAck(chunk) => vec![("info", json!(chunk.info.len()))],
            Chunk::Abort(chunk) => vec![reflected(chunk.reflected), causes(&chunk.causes)],
            Chunk::Shutdown(chunk) => vec![("cum", json!(chunk.cumulative.0))],
            Chunk::Error(chunk) => vec![causes(&chunk.causes)],
            Chunk::CookieEcho(chunk) => vec![("cookie", json!(chunk.cookie.len()))],
            Chunk::ShutdownComplete(chunk) => vec![reflected(chunk.reflected)],
            Chunk::ShutdownAck(_) | Chunk::CookieAck(_) => Vec::new(),
            Chunk::Ecne(chunk) | Chunk::Cwr(chunk) => vec![("tsn", json!(chunk.tsn.0))],
            Chunk::Auth(chunk) => vec![("key", json!(chunk.key)), ("hmac", json!(chunk.algorithm))],
            Chunk::IData(chunk) => interleaved(chunk),
            Chunk::AsconfAck(chunk) => changes(chunk.sequence, &chunk.responses),
            Chunk::Asconf(chunk) => changes(chunk.sequence, &chunk.requests),
            Chunk::ReConfig(chunk) => vec![("params", chunk.params.iter().map(reconfiguration).collect())],
            Chunk::Pad(chunk) => vec![("len", json!(chunk.bytes))],
            Chunk::Timestamp(chunk) => vec![("sent", json!(chunk.sent)), ("echo", json!(chunk.echo))],
            Chunk::ForwardTsn(chunk) => forward(chunk),
            Chunk::IForwardTsn(chunk) => interleaved_forward(chunk),
            Chunk::Unknown(chunk) => vec![("flags", json!(chunk.flags)), ("len", json!(chunk.value.len()))],
        };
        Short { name: name(number), fields }
    }

    /// The summary of something else with a name.
    pub(super) fn named(name: &str, fields: Fields) -> Self {
        Short { name: name.to_owned(), fields }
    }

    /// The summary of a chunk of which the capture has only the beginning.
    pub(super) fn cut(number: u8) -> Self {
        Short { name: name(number), fields: vec![("cut", json!(true))] }
    }
}

/// The name of a chunk's type: "DATA".
pub fn chunk_name(chunk: &Chunk) -> String {
    name(chunk.number())
}

/// A chunk in short: "DATA tsn=7 …", as lines of captures have it.
pub fn summary(chunk: &Chunk) -> String {
    Short::new(chunk).to_string()
}

/// Puts the summary of the most frequent chunks, DATA and SACK, at the end of `out`, at a fraction of its cost. Returns
/// whether the chunk is one of them; otherwise nothing is put.
pub(crate) fn put_summary(chunk: &Chunk, out: &mut Vec<u8>) -> bool {
    let mut put = |key: &str, number: u64| {
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    };
    match chunk {
        Chunk::Data(chunk) => {
            put("DATA tsn=", chunk.tsn.0.into());
            put(" sid=", chunk.stream.into());
            put(" ssn=", chunk.ssn.0.into());
            put(" ppid=", chunk.ppid.into());
            put(" len=", chunk.payload.len() as u64);
            let flags = data_flags(chunk);
            if flags.iter().any(|(set, _)| *set) {
                out.extend_from_slice(b" flags=");
                out.extend(flags.iter().filter(|(set, _)| *set).map(|(_, letter)| *letter as u8));
            }
            true
        }
        Chunk::Sack(chunk) if chunk.gaps.len() <= MOST_SHOWN && chunk.duplicates.is_empty() => {
            put("SACK cum=", chunk.cumulative.0.into());
            put(" a_rwnd=", chunk.a_rwnd.into());
            for (i, gap) in chunk.gaps.iter().enumerate() {
                let tsn = |offset: u16| u64::from(chunk.cumulative.plus(offset.into()).0);
                put(if i == 0 { " gaps=" } else { "," }, tsn(gap.start));
                put("-", tsn(gap.end));
            }
            true
        }
        _ => false,
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

fn data_flags(chunk: &Data) -> [(bool, char); 4] {
    [(chunk.unordered, 'U'), (chunk.begin, 'B'), (chunk.end, 'E'), (chunk.immediate, 'I')]
}

/// `flags` as letters: U, B, E, I.
fn data(chunk: &Data) -> Fields {
    let flags: String =
        data_flags(chunk).into_iter().filter_map(|(set, letter)| set.then_some(letter)).collect();
    vec![
        ("tsn", json!(chunk.tsn.0)),
        ("sid", json!(chunk.stream)),
        ("ssn", json!(chunk.ssn.0)),
        ("ppid", json!(chunk.ppid)),
        ("len", json!(chunk.payload.len())),
        ("flags", json!(flags)),
    ]
}

/// As DATA; a fragment that is not the first has its place in the message.
fn interleaved(chunk: &IData) -> Fields {
    let (begin, number) = match chunk.place {
        FragmentPosition::First { ppid } => (true, ("ppid", json!(ppid))),
        FragmentPosition::Later { fsn } => (false, ("fsn", json!(fsn))),
    };
    let flags = [(chunk.unordered, 'U'), (begin, 'B'), (chunk.end, 'E'), (chunk.immediate, 'I')];
    let flags: String = flags.into_iter().filter_map(|(set, letter)| set.then_some(letter)).collect();
    vec![
        ("tsn", json!(chunk.tsn.0)),
        ("sid", json!(chunk.stream)),
        ("mid", json!(chunk.mid.0)),
        number,
        ("len", json!(chunk.payload.len())),
        ("flags", json!(flags)),
    ]
}

/// `skipped` are pairs of stream and SSN.
fn forward(chunk: &ForwardTsn) -> Fields {
    let skipped: Vec<_> =
        chunk.skipped.iter().map(|(stream, ssn)| [u32::from(*stream), ssn.0.into()]).collect();
    vec![("cum", json!(chunk.cumulative.0)), ("skipped", json!(skipped))]
}

/// `skipped` are pairs of stream and Message Identifier.
fn interleaved_forward(chunk: &IForwardTsn) -> Fields {
    let skipped: Vec<_> =
        chunk.skipped.iter().map(|message| [message.stream.into(), message.mid.0]).collect();
    vec![("cum", json!(chunk.cumulative.0)), ("skipped", json!(skipped))]
}

fn reconfiguration(param: &ReConfigParam) -> String {
    match param {
        ReConfigParam::OutgoingReset(reset) => {
            format!("reset-outgoing({} {:?})", reset.request, reset.streams)
        }
        ReConfigParam::IncomingReset(reset) => {
            format!("reset-incoming({} {:?})", reset.request, reset.streams)
        }
        ReConfigParam::TsnReset(request) => format!("reset-tsn({request})"),
        ReConfigParam::Response(response) => format!("response({} {})", response.request, response.result),
        ReConfigParam::AddOutgoing(add) => format!("add-outgoing({} {})", add.request, add.count),
        ReConfigParam::AddIncoming(add) => format!("add-incoming({} {})", add.request, add.count),
        ReConfigParam::Unknown { kind, .. } => unknown_param(*kind),
    }
}

fn changes(sequence: u32, params: &[AsconfParam]) -> Fields {
    vec![("seq", json!(sequence)), ("params", params.iter().map(change).collect())]
}

fn change(param: &AsconfParam) -> String {
    match param {
        AsconfParam::Add(request) => format!("add({})", request.address),
        AsconfParam::Delete(request) => format!("delete({})", request.address),
        AsconfParam::SetPrimary(request) => format!("set-primary({})", request.address),
        AsconfParam::Failed(failed) => {
            let causes: Vec<_> = failed.causes.iter().map(cause).collect();
            format!("failed({})", causes.join(" "))
        }
        AsconfParam::Succeeded(_) => "succeeded".to_owned(),
        AsconfParam::Unknown { kind, .. } => unknown_param(*kind),
    }
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

fn nr_sack(chunk: &NrSack) -> Fields {
    let tsn = |offset: u16| chunk.cumulative.plus(offset.into()).0;
    let runs = |gaps: &[GapBlock]| gaps.iter().map(|gap| [tsn(gap.start), tsn(gap.end)]).collect::<Vec<_>>();
    let duplicates: Vec<_> = chunk.duplicates.iter().map(|tsn| tsn.0).collect();
    vec![
        ("cum", json!(chunk.cumulative.0)),
        ("a_rwnd", json!(chunk.a_rwnd)),
        ("gaps", json!(runs(&chunk.gaps))),
        ("kept", json!(runs(&chunk.kept))),
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
        Param::ZeroChecksum(method) => format!("zero-checksum({method})"),
        Param::Random(bytes) => format!("random({})", bytes.len()),
        Param::ChunkList(types) => format!("chunk-list({})", names(types)),
        Param::HmacAlgorithms(algorithms) => format!("hmac-algorithms({})", numbers(algorithms)),
        Param::Padding(bytes) => format!("padding({})", bytes.len()),
        Param::SupportedExtensions(types) => format!("supported-extensions({})", names(types)),
        Param::EcnCapable => "ecn-capable".to_owned(),
        Param::ForwardTsnSupported => "forward-tsn".to_owned(),
        Param::Unknown { kind, .. } => unknown_param(*kind),
    }
}

fn names(types: &[u8]) -> String {
    types.iter().map(|number| name(*number)).collect::<Vec<_>>().join(" ")
}

fn numbers(numbers: &[u16]) -> String {
    numbers.iter().map(u16::to_string).collect::<Vec<_>>().join(" ")
}

/// The names of IANA's registry.
fn unknown_param(kind: u16) -> String {
    let name = match kind {
        0xc004 => "set-primary",
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
        Cause::DeletesLastAddress(_) => "deletes-last-address".to_owned(),
        Cause::ResourceShortage(_) => "resource-shortage".to_owned(),
        Cause::DeletesSourceAddress(_) => "deletes-source-address".to_owned(),
        Cause::IllegalAsconfAck => "illegal-asconf-ack".to_owned(),
        Cause::NotAuthorized(_) => "not-authorized".to_owned(),
        Cause::UnsupportedHmac(number) => format!("unsupported-hmac({number})"),
        Cause::Unknown { code, .. } => format!("cause-{code}"),
    }
}

/// The chunk types of IANA's registry.
pub(crate) fn name(number: u8) -> String {
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
        16 => "NR-SACK",
        64 => "I-DATA",
        128 => "ASCONF-ACK",
        130 => "RE-CONFIG",
        132 => "PAD",
        144 => "TIMESTAMP",
        192 => "FORWARD-TSN",
        193 => "ASCONF",
        194 => "I-FORWARD-TSN",
        _ => return format!("chunk-{number}"),
    };
    name.to_owned()
}
