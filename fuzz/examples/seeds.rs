//! Writes the first corpora, `corpus/TARGET/NAME`: `cargo run --example seeds`. Packets as a transfer sends
//! them, and cases written out byte by byte as `src/` reads them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anabranch_fuzz::recorded;
use anabranch_fuzz::support::{Weather, World, at};
use anabranch_proto::wire::chunk::{Abort, OperationError, Unknown};
use anabranch_proto::wire::{Cause, Chunk, Packet, Param};
use anabranch_proto::{Config, Message, Parameters, Policies, Time, Tsn};
use anabranch_sim::RunOptions;
use anabranch_sim::capture::{CaptureReader, CaptureWriter};
use anabranch_sim::scenario::Document;
use bytes::{Bytes, BytesMut};

fn main() {
    for (n, packet) in packets().iter().enumerate() {
        write("packet", &format!("{n:02}-{}", name(packet)), &encoded(packet));
    }
    write("params", "parameters", &Param::encode_list(&parameters()).expect("short enough"));
    // Behind the headers of packet and chunk.
    write("params", "causes", &encoded(&error(causes()))[16..]);
    SCRIPTS.iter().for_each(|(name, text)| write("script", name, text.as_bytes()));
    documents("scenario", "scenarios");
    TRACES.iter().for_each(|(name, text)| write("trace", name, text.as_bytes()));
    recorded::record(&folder("recording").join("transfer"));
    documents("advice", "scenarios/advice");
    CLAIMS.iter().for_each(|(name, text)| write("claims", name, text.as_bytes()));
    JOURNALS.iter().for_each(|(name, text)| write("journal", name, text.as_bytes()));
    DECIDED_JOURNALS.iter().for_each(|(name, bytes)| write("journal", name, bytes));
    SERVICE.iter().for_each(|(name, text)| write("service", name, text.as_bytes()));
    let ng = pcapng();
    write("capture", "udp.pcapng", &ng);
    for (name, link_type, before) in [("raw", 101, 0), ("ethernet", 1, 14), ("cooked", 113, 16)] {
        write("capture", &format!("{name}.pcap"), &pcap(&ng, link_type, before));
    }
    COOKIES.iter().for_each(|(name, bytes)| write("cookie", name, bytes));
    SACKS.iter().for_each(|(name, bytes)| write("sacks", name, bytes));
    ENDPOINTS.iter().for_each(|(name, bytes)| write("endpoint", name, bytes));
    DELIVERIES.iter().for_each(|(name, bytes)| write("delivery", name, bytes));
}

fn folder(target: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    std::fs::create_dir_all(&folder).expect("a folder that can be made");
    folder
}

fn write(target: &str, name: &str, bytes: &[u8]) {
    std::fs::write(folder(target).join(name), bytes).expect("a file that can be written");
}

/// The TOML files of this folder that fit into an input, without their comments.
fn documents(target: &str, from: &str) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(from);
    for entry in std::fs::read_dir(from).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a document");
        let lines: Vec<&str> =
            text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        let (text, name) = (lines.join("\n") + "\n", path.file_stem().unwrap_or_default().to_string_lossy());
        if text.len() < LONGEST_DOCUMENT && !text.contains("trace =") {
            write(target, &name, text.as_bytes());
        }
    }
}

/// Bytes of a document that is a seed.
const LONGEST_DOCUMENT: usize = 1500;

const TRACES: [(&str, &str); 3] = [
    ("opportunities", "0\n5\n5\n12\n# a remark\n40\n"),
    ("samples", "time,rate\n0,1000000\n0.5,0\n1.25,2000000\n2,0\n"),
    ("all-columns", "time,rate,delay,loss\n0,1e6,0.01,0\n# a remark\n0.1,2.5e6,0.02,0.5\n1,0,0,1\n"),
];

/// Claims, a line of dashes, and their table.
const CLAIMS: [(&str, &str); 3] = [
    (
        "value",
        "[[claim]]\nid = 'a/{delay}'\nsource = 'b'\nform = 'value'\nrows = 'table.csv'\nexperiment = 'e'\n\
         measure = 'time'\nns2 = 's'\nerrors = { ns2 = 'error' }\nwithin = { ns2 = ['5 %', '3 standard errors'] }\n\
         ----\ndelay,s,error\n1 ms,0.1,0.01\n2 ms,-,\n",
    ),
    (
        "each",
        "[[claim]]\nid = 'c/{delay}'\nsource = 'b'\nform = 'value'\neach = { delay = ['1 ms', '2 ms'] }\nexperiment = 'e'\n\
         measure = 'time'\npaper = 1.5\nwithin = { paper = '10 %' }\n",
    ),
    (
        "order",
        "[[claim]]\nid = 'd'\nsource = 'b'\nform = 'order'\nexperiment = 'e'\nmeasure = 'time'\n\
         each = { delay = ['1 ms'] }\nover = 'flow.f.send=1 kB,2 kB'\n",
    ),
];

const JOURNALS: [(&str, &str); 2] = [
    ("runs", "run 0 0 3fb999999999999a\nrun 1 2 -\nfailed 0 1 \"why\"\ntable runs.csv 00\n!run 0 2"),
    (
        "sweep",
        "sweep [[\"a\",\"scenario='s'\\nseeds=3\\nvary={'link.l.delay'=['1 ms','2 ms']}\\nmeasure={time='flows.f.completion'}\\n\",[]],\
         [\"s\",\"[[link]]\\nname='l'\\nbetween=['a','b']\\nrate='1 Mbit/s'\\n[[flow]]\\nname='f'\\nfrom='a'\\nto='b'\\nsend='1 kB'\\n\",[]]]\n\
         run 0 0 3fb999999999999a\n",
    ),
];

/// 0xff, then for each line: kind (run 0, 1 or 2 with one value as 0x10, failed 3, table 4, sweep 5, finished run 6),
/// cell, seed, values.
const DECIDED_JOURNALS: Seeds = &[
    ("decided-runs", &[0xff, 0x10, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 0x10, 1, 2, 1, 3, 0, 1, 4, 0, 7]),
    ("decided-sweep", &[0xff, 5, 0, 3, 0x10, 0, 1, 9, 1, 2, 3, 4, 5, 6, 7, 8, 5, 0, 5, 0x10, 1, 4, 1]),
    ("decided-finished", &[0xff, 6, 0, 1, 0x16, 0, 2, 9, 1, 2, 3, 4, 5, 6, 7, 8, 0x36, 0, 2, 1, 1, 1]),
];

const SERVICE: [(&str, &str); 4] = [
    ("file", r#"{"send-file":{"name":"a.txt","size":12}}"#),
    ("verdict", r#"{"verdict":{"received":12,"failed":null}}"#),
    (
        "plan",
        r#"{"measure":{"seconds":5.0,"message_size":8192,"streams":1,"way":"there-and-back","rate":null}}"#,
    ),
    (
        "measured",
        r#"{"measured":{"bytes":9,"cpu":0.5,"shares":[{"from":"192.0.2.1","to":"::1","bytes":9}],"delays":{"messages":1,"delay":{"min":1,"mean":1,"p50":1,"p95":1,"p99":1,"max":1},"jitter":{"min":0,"mean":0,"p50":0,"p95":0,"p99":0,"max":0},"smoothed_jitter":0,"uncertainty":0}}}"#,
    ),
];

/// The first packet of each shape in a transfer with losses, and what no transfer sends.
fn packets() -> Vec<Packet> {
    let mut packets: Vec<Packet> = Vec::new();
    for packet in transfer() {
        if packets.iter().all(|other| shape(other) != shape(&packet)) {
            packets.push(packet);
        }
    }
    let value = Bytes::from_static(b"unknown");
    let unknown = Chunk::Unknown(Box::new(Unknown { number: 0xc5, flags: 1, value }));
    let abort = Chunk::Abort(Abort { reflected: true, causes: causes() });
    packets.extend([error(causes()), error(causes())]);
    let last = packets.len() - 1;
    packets[last].chunks = [unknown, abort].into_iter().collect();
    packets
}

/// All packets of a short transfer over two paths, with losses.
fn transfer() -> Vec<Packet> {
    let config = Config { parameters: Parameters { mtu: 576, ..Parameters::default() }, ..Config::default() };
    let weather = vec![Weather { loss: 200, ..Weather::fair(Duration::from_millis(10)) }; 2];
    let mut world = World::new([at(0, 2, &config), at(1, 2, &config)], weather, 3);
    world.keep_log = true;
    let id = world.connect();
    world.run(Time::ZERO + Duration::from_secs(60));
    for size in [1, 700, 30, 4000] {
        let payload = Bytes::from(vec![b'a'; size]);
        let message = Message {
            stream: 1,
            ppid: 7,
            unordered: size == 30,
            immediate: size == 1,
            payload,
            ..Message::default()
        };
        world.ends[0].send(world.now, id, message).expect("room to send");
    }
    world.ends[0].shutdown(world.now, id);
    world.drain(0);
    world.run(Time::ZERO + Duration::from_secs(300));
    world.log.into_iter().map(|left| left.packet).collect()
}

/// A short transfer, encapsulated in UDP over IPv6, as it is captured.
fn pcapng() -> Vec<u8> {
    const SCENARIO: &str = r#"
        ip_header = "40 B"
        [[link]]
        name = "wire"
        between = ["s", "r"]
        rate = "10 Mbit/s"
        delay = "20 ms"
        [[flow]]
        name = "tunnelled"
        from = "s"
        to = "r"
        send = "100 B"
        udp = true
    "#;
    let document = Document::parse("a capture", SCENARIO).expect("a document");
    let scenario = document.scenario("a capture", &Policies::default()).expect("a scenario");
    let mut writer = CaptureWriter::new(Vec::new(), "a short transfer");
    let options = RunOptions { observer: Some(&mut writer), ..RunOptions::default() };
    anabranch_sim::run(&scenario, options).expect("it runs");
    writer.finish().expect("memory can be written to")
}

/// The first packets of a capture in the classic format, with so many bytes of a link header before them.
fn pcap(capture: &[u8], link_type: u32, before: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, link_type] {
        out.extend(u32::to_le_bytes(word));
    }
    for packet in CaptureReader::new(capture).expect("a capture").take(4) {
        let packet = packet.expect("a whole packet");
        let size = (before + packet.bytes.len()) as u32;
        for word in [0, packet.number as u32, size, size] {
            out.extend(u32::to_le_bytes(word));
        }
        // IPv6, where the header says what is behind it.
        let mut header = vec![0; before];
        if let Some([high, low]) = header.last_chunk_mut() {
            [*high, *low] = 0x86dd_u16.to_be_bytes();
        }
        out.extend(header);
        out.extend(packet.bytes);
    }
    out
}

/// The chunk types of a packet, and whether a SACK has gaps.
fn shape(packet: &Packet) -> Vec<(u8, bool)> {
    let gaps = |chunk: &Chunk| matches!(chunk, Chunk::Sack(sack) if !sack.gaps.is_empty());
    packet.chunks.iter().map(|chunk| (chunk.number(), gaps(chunk))).collect()
}

fn name(packet: &Packet) -> String {
    packet.chunks.iter().map(|chunk| chunk.number().to_string()).collect::<Vec<_>>().join("-")
}

fn encoded(packet: &Packet) -> Bytes {
    let mut bytes = BytesMut::new();
    packet.encode(&mut bytes).expect("it can be encoded");
    bytes.freeze()
}

fn error(causes: Vec<Cause>) -> Packet {
    anabranch_fuzz::lone::packet((0, 0), 7, vec![Chunk::Error(OperationError { causes })])
}

fn parameters() -> Vec<Param> {
    let some = || Bytes::from_static(b"seven b");
    vec![
        Param::Ipv4([10, 0, 0, 1].into()),
        Param::Ipv6(1u128.into()),
        Param::Cookie(some()),
        Param::Unrecognized(Param::encode_list(&[Param::HostName(some())]).expect("short enough")),
        Param::CookiePreservative(1000),
        Param::HostName(some()),
        Param::SupportedAddressTypes(vec![5, 6]),
        Param::Unknown { kind: 0x8123, value: some() },
    ]
}

fn causes() -> Vec<Cause> {
    let some = || Bytes::from_static(b"seven b");
    let inner = Param::encode_list(&parameters()[..2]).expect("short enough");
    vec![
        Cause::InvalidStream(9),
        Cause::MissingParameter(vec![7, 8]),
        Cause::StaleCookie(5),
        Cause::OutOfResource,
        Cause::UnrecognizedChunk(some()),
        Cause::UnrecognizedParameters(inner.clone()),
        Cause::NoUserData(Tsn(3)),
        Cause::RestartWithNewAddresses(inner),
        Cause::ProtocolViolation(some()),
    ]
}

/// Five bytes: era, retransmission policy, sizes, paths (two; for `endpoint` with one association up), first TSN.
const SETUP: [u8; 5] = [2, 1, 0b1_0110, 7, 3];

/// `SETUP`, then the rest.
macro_rules! case {
    ($($byte:expr),* $(,)?) => {
        &[SETUP[0], SETUP[1], SETUP[2], SETUP[3], SETUP[4], $($byte),*]
    };
}

type Seeds = &'static [(&'static str, &'static [u8])];

/// Which parts are odd, then those parts; see `cookie::Try`.
const COOKIES: Seeds = &[
    ("as-given", case![8]),
    ("changed-then-as-given", case![0, 1, 0, 9, 1, 0, 1, 1, 40, 8]),
    ("prolonged", case![0, 1, 2, 3, 1, 2, 3]),
    ("wrong-tag", case![10, 1, 0, 0, 0, 8]),
    ("other-path", case![12, 1]),
    ("stale", case![9, 0xff, 0xff, 8]),
];

/// Send: 0, stream, bytes (2), count. Acknowledge: 2, kind, advance, [a_rwnd (2)], gaps, [duplicates].
/// Pass: 6, milliseconds (2).
const SACKS: Seeds = &[
    ("all", case![0, 0, 100, 0, 7, 2, 0, 8, 0]),
    ("one-by-one", case![0, 0, 100, 0, 7, 2, 0, 1, 0, 2, 0, 1, 0, 6, 0, 1, 2, 0, 1, 0]),
    ("gaps", case![0, 0, 0, 4, 7, 2, 0, 0, 1, 2, 0, 2, 0, 0, 1, 2, 1, 2, 0, 0, 1, 2, 2, 2, 0, 0, 1, 2, 3]),
    ("unordered-gaps", case![0, 1, 9, 0, 7, 0, 2, 9, 0, 7, 2, 0, 1, 3, 7, 1, 2, 1, 3, 9]),
    ("reneging", case![0, 0, 9, 0, 7, 2, 0, 0, 1, 2, 3, 2, 0, 0, 0, 2, 0, 0, 1, 3, 0, 2, 0, 3, 0]),
    ("timeout", case![0, 0, 0, 15, 7, 6, 0xff, 0xff, 2, 0, 0, 1, 2, 4, 6, 0xff, 0x7f, 2, 0, 4, 0]),
    (
        "closed-window",
        case![0, 0, 0, 8, 7, 2, 0x10, 2, 0, 0, 0, 6, 0xff, 0x1f, 2, 0x10, 9, 0, 0, 0, 2, 0, 1, 0],
    ),
    ("never-sent", case![0, 0, 9, 0, 3, 2, 0xf0, 90, 0, 0, 0, 0]),
    ("old", case![0, 0, 9, 0, 3, 2, 0, 3, 0, 2, 12, 2, 0]),
];

/// Turn: 0, by, number of turns, turns. Turns: data 0, stream, shape, bytes (2); late 8, again 9, which;
/// SACK 10, advance, beyond (2), window; SHUTDOWN 15, 0xff. Answer: 9, peer. Packet: 13, odd bits, number of
/// chunks, chunks. Flood: 15, packet, times. Greet 16, Connect 17: peer. Send: 18, of, stream, bytes (2).
/// Read: 22, of. End: 24, 0xff, of, how. Heartbeat: 26, of, path. Pass: 30, milliseconds (2), 0xff if many.
const ENDPOINTS: Seeds = &[
    ("data-both-ways", case![0, 0, 1, 0, 1, 0, 200, 0, 22, 0, 18, 0, 1, 200, 8, 9, 0, 30, 200, 0, 0]),
    ("gaps", case![0, 0, 2, 0, 1, 3, 200, 0, 0, 1, 0xf0, 9, 0, 0, 0, 2, 0, 2, 0, 9, 0, 8, 0, 22, 0]),
    ("sacks", case![18, 0, 1, 0, 15, 18, 0, 1, 0, 15, 0, 0, 1, 10, 1, 3, 0, 0, 0, 0, 1, 10, 0, 7, 0, 0]),
    ("closed-window", case![18, 0, 1, 0, 15, 0, 0, 1, 10, 1, 0, 0, 6, 30, 0xff, 9, 0xff, 9, 0]),
    ("flood", case![15, 0, 1, 0, 0, 1, 0, 200, 0, 200, 30, 200, 0, 0]),
    ("gap-flood", case![13, 0, 2, 5, 5, 5, 0, 0, 1, 0, 9, 9, 0, 0, 9, 3, 1, 0, 0, 3, 3, 1, 1, 1, 0]),
    ("restart", case![18, 0, 0, 9, 0, 16, 0, 0, 0, 1, 0, 0, 0, 9, 9, 22, 0]),
    ("both-shut-down", case![24, 0xff, 0, 0, 0, 0, 1, 15, 0xff, 9, 0, 24, 0xff, 0, 2]),
    ("aborted", case![18, 0, 0, 9, 9, 24, 0xff, 0, 1, 24, 0xff, 0, 2, 17, 0xfe, 9, 0]),
    ("timers", case![18, 0, 0, 9, 9, 30, 0xff, 0xff, 0xff, 26, 0, 1, 30, 0xff, 0xff, 0xff, 9, 0]),
];

/// Send: 0, side, stream, bytes (2). Read: 6, side, count. Pass: 8, milliseconds (2). Fates: 11, four bytes.
const DELIVERIES: Seeds = &[
    ("one-message", case![8, 200, 0, 0, 0, 0, 9, 0, 8, 200, 0]),
    ("both-ways", case![8, 200, 0, 0, 0, 0, 0, 4, 0, 1, 1, 0, 4, 8, 200, 0, 6, 0, 9, 6, 1, 9]),
    ("losses", case![8, 200, 0, 11, 0, 200, 0, 200, 0, 0, 0, 0, 16, 0, 0, 1, 0, 16, 8, 200, 1]),
    ("doubled-late", case![8, 200, 0, 11, 130, 90, 180, 255, 0, 0, 0x80, 0, 8, 0, 0, 1, 0, 8, 8, 200, 1]),
    ("path-down", case![8, 200, 0, 0, 0, 0, 0, 8, 14, 0, 0, 0, 0, 0, 8, 8, 200, 9, 14, 0, 15, 0, 1]),
    ("setup-lost", case![11, 0, 200, 0, 200, 0, 0, 0, 9, 0, 8, 200, 9]),
];

const SCRIPTS: &[(&str, &str)] = &[
    ("passive", include_str!("../../tests/scripts/5.1-association/passive.pkt")),
    ("inactive", include_str!("../../tests/scripts/8.2-path-failure/inactive.pkt")),
    ("stranger", include_str!("../../tests/scripts/8.4-out-of-the-blue/abort.pkt")),
];
