//! What a hostile peer's bytes cost the receiver, beside full packets in order.
//!
//! `cargo bench -p anabranch-proto --bench hostile` prints, for the worst known input of each kind, CPU milliseconds a
//! megabyte on the wire (Ethernet frames with UDP packets, preamble and gap between frames included), and how many
//! times that of full packets in order this is. Decoding, the checksum, all that the endpoint does, the encoding of its
//! answers and the reading of messages are counted. An argument selects the kinds whose names contain it.

mod cpu;

use std::net::{IpAddr, Ipv4Addr};

use anabranch_proto::wire::chunk::{
    Auth, Covered, Data, ForwardTsn, FragmentPosition, GapBlock, Heartbeat, IData, Init, OutgoingReset,
    ReConfig, ReConfigParam, Sack, Unknown,
};
use anabranch_proto::wire::{Address, Chunk, Ecn, Packet, Ports};
use anabranch_proto::{
    AssociationId, Config, Endpoint, Event, Incoming, LocalAddress, Message, Mid, Output, Parameters,
    Policies, Ssn, State, Time, Tsn,
};
use bytes::{Bytes, BytesMut};
use cpu::Cpu;

/// What a frame on the wire has beside the SCTP packet: preamble, Ethernet header, checksum and gap 38, IPv4 20, UDP 8;
/// and its least length.
const FRAME: usize = 66;
const SMALLEST_FRAME: usize = 84;
/// Bytes of an SCTP packet at most.
const PACKET: usize = 1472;
const MEGABYTE: usize = 1_000_000;
/// Chunks that the victim has outstanding where its acknowledgements are attacked.
const OUTSTANDING: u32 = 50_000;

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or_default();
    let usual = kinds()[0].cost();
    for kind in kinds().iter().filter(|kind| kind.name.contains(&wanted)) {
        let cost = kind.cost();
        println!("{:<64}{:>9.2} ms/MB{:>8.1} times", kind.name, cost * 1e3, cost / usual);
    }
}

/// A kind of input.
struct Kind {
    name: &'static str,
    /// The chunks of the n-th packet, as many as fit; the TSNs of the peer begin with 1.
    packet: Box<dyn Fn(u32) -> Vec<Chunk>>,
    interleaving: bool,
    /// Messages are read.
    read: bool,
    /// Chunks that the victim has sent, and nobody acknowledged.
    outstanding: u32,
    /// Sent with this tag in place of the right one.
    tag: Option<u32>,
}

fn kind(name: &'static str, packet: impl Fn(u32) -> Vec<Chunk> + 'static) -> Kind {
    Kind { name, packet: Box::new(packet), interleaving: false, read: true, outstanding: 0, tag: None }
}

/// DATA chunks of one byte that a packet holds, and I-DATA.
const TINY: u32 = (PACKET as u32 - 12) / 20;
const TINY_INTERLEAVED: u32 = (PACKET as u32 - 12) / 24;

fn kinds() -> Vec<Kind> {
    [of_data(), of_control()].into_iter().flatten().collect()
}

/// What is done with user data.
fn of_data() -> Vec<Kind> {
    let middle = "U";
    vec![
        kind("full packets in order", |n| vec![data(1 + n, n, "BE", 1444)]),
        kind("messages of one byte in order", |n| tiny(n, |k| data(1 + k, k, "BE", 1))),
        kind("messages of one byte in order, a packet each", |n| vec![data(1 + n, n, "BE", 1)]),
        kind("one unordered message in fragments of one byte", move |n| {
            tiny(n, |k| data(1 + k, 0, if k == 0 { "UB" } else { middle }, 1))
        }),
        kind("the same, never begun", move |n| tiny(n, |k| data(1 + k, 0, middle, 1))),
        kind("the same backwards", move |n| tiny(n, |k| data(60_000 - k % 59_000, 0, middle, 1))),
        kind("every other TSN, upwards", move |n| tiny(n, |k| data(2 + 2 * k % 60_000, 0, middle, 1))),
        kind("every other TSN, downwards", move |n| tiny(n, |k| data(60_000 - 2 * k % 59_000, 0, middle, 1))),
        kind("every other TSN, a packet each", move |n| vec![data(2 + 2 * n % 60_000, 0, middle, 1)]),
        kind("TSNs anywhere", move |n| tiny(n, |k| data(2 + k.wrapping_mul(40_503) % 65_000, 0, middle, 1))),
        kind("ordered messages of one byte, the first missing", |n| {
            tiny(n, |k| data(2 + k % 60_000, 1 + k, "BE", 1))
        }),
        kind("gaps that fill: 1,000 messages of one byte, then the first", |n| tiny(n, |k| late(k, 1000))),
        kind("gaps that fill: 8,000 messages of one byte, then the first", |n| tiny(n, |k| late(k, 8000))),
        kind("the same in two streams by turns", |n| tiny(n, |k| in_stream(late(k, 8000)))),
        kind("the same, SSNs backwards", |n| tiny(n, |k| shuffled(k, 8000, 7999))),
        kind("the same, SSNs anywhere", |n| tiny(n, |k| shuffled(k, 8000, 4567))),
        kind("lower chunks take the place of higher ones", move |n| {
            few(n, 22, |k| data(60_000 - k % 59_000, 0, middle, 48))
        }),
        kind("the same, every other TSN", move |n| {
            few(n, 22, |k| data(60_000 - 2 * k % 59_000, 0, middle, 48))
        }),
        interleaved("I-DATA: one message in fragments of one byte", |k| idata(1 + k, 0, k, 1)),
        interleaved("I-DATA: a message each, first fragments only", |k| idata(2 + k % 60_000, k, 0, 1)),
        interleaved("I-DATA: fragments anywhere", |k| {
            let place = k.wrapping_mul(40_503) % 65_000;
            idata(2 + place, 0, 1 + place.wrapping_mul(7919) % 65_000, 1)
        }),
        kind("the same chunk again and again", |n| tiny(n, |_| data(1, 0, "BE", 1))),
        kind("DATA on streams that are not there", |n| {
            tiny(n, |k| on_stream(data(1 + k, 0, "BE", 1), 60_000))
        }),
    ]
}

/// What is done with control chunks, and packets that belong to no association.
fn of_control() -> Vec<Kind> {
    vec![
        kind("FORWARD TSN, every stream", |n| {
            let skipped = (0..360).map(|stream| (stream, Ssn(n as u16))).collect();
            vec![Chunk::ForwardTsn(ForwardTsn { cumulative: Tsn(1 + n), skipped })]
        }),
        kind("FORWARD TSN, one chunk", |n| {
            vec![Chunk::ForwardTsn(ForwardTsn { cumulative: Tsn(1 + 1000 * n), skipped: Vec::new() })]
        }),
        kind("RE-CONFIG: 700 streams begin anew", |n| {
            let streams = (0..700).collect();
            let (request, response, last_tsn) = (1 + n, 0, Tsn(0));
            let params =
                vec![ReConfigParam::OutgoingReset(OutgoingReset { request, response, last_tsn, streams })];
            vec![Chunk::ReConfig(ReConfig { params })]
        }),
        kind("RE-CONFIG: all streams begin anew, four times, one message waits on each", |n| {
            let waiting = 1024_u32.div_ceil(TINY);
            match n.checked_sub(waiting) {
                None => tiny(n, |k| on_stream(data(2 + k, 5, "BE", 1), k % 1024)),
                Some(n) => (1 + 4 * n..5 + 4 * n).map(reset_of_all).collect(),
            }
        }),
        Kind {
            interleaving: true,
            ..kind("RE-CONFIG: the same with 15,000 messages of I-DATA, begun behind a gap", |n| {
                match n.checked_sub(15_000 / TINY_INTERLEAVED) {
                    None => few(n, TINY_INTERLEAVED, |k| idata(2 + k, k, 0, 1)),
                    Some(n) => (1 + 4 * n..5 + 4 * n).map(reset_of_all).collect(),
                }
            })
        },
        kind("AUTH", |_| {
            let auth = |_| {
                Chunk::Auth(Box::new(Auth {
                    key: 0,
                    algorithm: 3,
                    hmac: Bytes::new(),
                    covered: Covered(None),
                }))
            };
            (0..(PACKET as u32 - 12) / 8).map(auth).collect()
        }),
        kind("HEARTBEAT", |_| {
            let heartbeat = |_| Chunk::Heartbeat(Heartbeat::new(Bytes::from_static(b"1234")));
            (0..(PACKET as u32 - 12) / 12).map(heartbeat).collect()
        }),
        kind("HEARTBEAT, a packet each", |_| {
            vec![Chunk::Heartbeat(Heartbeat::new(Bytes::from_static(b"1234")))]
        }),
        kind("unknown chunks that want a report", |_| {
            let unknown =
                |_| Chunk::Unknown(Box::new(Unknown { number: 0xff, flags: 0, value: Bytes::new() }));
            (0..(PACKET as u32 - 12) / 4).map(unknown).collect()
        }),
        Kind { tag: Some(0), ..kind("INIT", |n| vec![Chunk::Init(init(n))]) },
        Kind { tag: Some(5), ..kind("packets of no association", |n| vec![data(1 + n, n, "BE", 1)]) },
        acknowledgements("SACK: 360 gap blocks over 50,000 chunks", |n| {
            let gaps = (0..360).map(|k| gap((100 + 138 * k + n % 50) as u16, 1)).collect();
            Sack { gaps, ..nothing() }
        }),
        acknowledgements("SACK: the highest of 50,000 chunks, on and off", |n| {
            let gaps = [gap(49_000 + (n % 2) as u16 * 900, 1)].into_iter().collect();
            Sack { gaps, ..nothing() }
        }),
    ]
}

fn interleaved(name: &'static str, chunk: impl Fn(u32) -> Chunk + 'static) -> Kind {
    let packet = move |n| few(n, TINY_INTERLEAVED, &chunk);
    Kind { interleaving: true, ..kind(name, packet) }
}

fn acknowledgements(name: &'static str, sack: impl Fn(u32) -> Sack + 'static) -> Kind {
    Kind { outstanding: OUTSTANDING, ..kind(name, move |n| vec![Chunk::Sack(sack(n))]) }
}

/// A packet full of chunks with one byte each, numbered on from packet to packet.
fn tiny(packet: u32, chunk: impl Fn(u32) -> Chunk) -> Vec<Chunk> {
    few(packet, TINY, chunk)
}

fn few(packet: u32, count: u32, chunk: impl Fn(u32) -> Chunk) -> Vec<Chunk> {
    (count * packet..count * (packet + 1)).map(chunk).collect()
}

fn data(tsn: u32, ssn: u32, flags: &str, size: usize) -> Chunk {
    Chunk::Data(Data {
        tsn: Tsn(tsn),
        stream: 0,
        ssn: Ssn(ssn as u16),
        ppid: 0,
        begin: flags.contains('B'),
        end: flags.contains('E'),
        unordered: flags.contains('U'),
        immediate: false,
        payload: Bytes::from(vec![0; size]),
    })
}

fn on_stream(chunk: Chunk, stream: u32) -> Chunk {
    let Chunk::Data(data) = chunk else { return chunk };
    Chunk::Data(Data { stream: stream as u16, ..data })
}

/// The peer resets all its streams.
fn reset_of_all(request: u32) -> Chunk {
    let (response, last_tsn, streams) = (0, Tsn(0), Vec::new());
    let reset = OutgoingReset { request, response, last_tsn, streams };
    Chunk::ReConfig(ReConfig { params: vec![ReConfigParam::OutgoingReset(reset)] })
}

/// Of every `count` messages the first comes last.
fn late(k: u32, count: u32) -> Chunk {
    let place = k - k % count + (k + 1) % count;
    data(1 + place, place, "BE", 1)
}

/// The same chunk in one of two streams, each with its own SSNs.
fn in_stream(chunk: Chunk) -> Chunk {
    let Chunk::Data(data) = chunk else { return chunk };
    let place = data.tsn.0 - 1;
    Chunk::Data(Data { stream: (place % 2) as u16, ssn: Ssn((place / 2) as u16), ..data })
}

/// Of every `count` messages the SSNs go by steps, modulo the count, while the TSNs go up; the first is the last to
/// come.
fn shuffled(k: u32, count: u32, step: u32) -> Chunk {
    data(1 + k, k - k % count + (k % count + 1) * step % count, "BE", 1)
}

fn idata(tsn: u32, mid: u32, fsn: u32, size: usize) -> Chunk {
    let place = if fsn == 0 { FragmentPosition::First { ppid: 0 } } else { FragmentPosition::Later { fsn } };
    let (stream, end, unordered, immediate) = (0, false, true, false);
    let payload = Bytes::from(vec![0; size]);
    Chunk::IData(IData { tsn: Tsn(tsn), stream, mid: Mid(mid), place, end, unordered, immediate, payload })
}

fn gap(start: u16, length: u16) -> GapBlock {
    GapBlock { start, end: start + length - 1 }
}

fn init(n: u32) -> Box<Init> {
    Box::new(Init { tag: 1 + n, a_rwnd: 1 << 20, outbound: 2, inbound: 2, tsn: Tsn(1), params: Vec::new() })
}

impl Kind {
    /// CPU seconds a megabyte, the best of three tries.
    fn cost(&self) -> f64 {
        (0..3).map(|_| self.measure()).fold(f64::INFINITY, f64::min)
    }

    fn measure(&self) -> f64 {
        let mut victim = Victim::new(self);
        let (mut wire, mut total) = (Vec::new(), 0);
        while total < 10 * MEGABYTE {
            let bytes = victim.packet((self.packet)(wire.len() as u32), self.tag);
            total += (bytes.len() + FRAME).max(SMALLEST_FRAME);
            wire.push(bytes);
        }
        let start = Cpu::now();
        for bytes in &wire {
            victim.hear(bytes, self.read);
        }
        let cost = start.elapsed() / (total as f64 / MEGABYTE as f64);
        let state = victim.end.status(victim.id).map(|status| status.state);
        assert_eq!(state, Some(State::Established), "{}: the association has ended", self.name);
        cost
    }
}

/// The endpoint under attack.
struct Victim {
    end: Endpoint,
    id: AssociationId,
    tag: u32,
    /// What was acknowledged before the attack.
    acked: u32,
    out: BytesMut,
}

fn address(host: u8) -> Address {
    Address::ip(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)))
}

fn endpoint(host: u8, port: u16, first_tsn: Option<u32>, interleaving: bool) -> Endpoint {
    let mut config = Config {
        addresses: vec![LocalAddress { address: address(host), prefix: 24 }],
        port,
        first_tsn,
        initial_ssthresh: Some(1 << 30),
        outbound_streams: 1024,
        parameters: Parameters {
            heartbeat_interval: None,
            max_burst: u32::MAX,
            send_buffer: Some(1 << 30),
            ..Parameters::default()
        },
        ..Config::default()
    };
    config.extensions.partial_reliability = true;
    config.extensions.reconfiguration = true;
    config.extensions.interleaving = interleaving;
    Endpoint::new(config, Policies::default(), [host; 32]).expect("a usable configuration")
}

impl Victim {
    /// An association that a peer has set up properly.
    fn new(kind: &Kind) -> Victim {
        // The victim draws its first TSN, as usual, unless it is to be acknowledged.
        let first = (kind.outstanding > 0).then_some(1);
        let mut end = endpoint(1, 5000, first, kind.interleaving);
        let mut peer = endpoint(2, 5001, Some(1), kind.interleaving);
        peer.connect(Time::ZERO, 5000, &[address(1)]).expect("a path");
        let (mut id, mut tag) = (None, 0);
        for _ in 0..3 {
            while let Some(packet) = next(&mut peer, &mut None) {
                tag = packet.tag;
                end.handle(Time::ZERO, Incoming::Packet(packet));
            }
            while let Some(packet) = next(&mut end, &mut id) {
                peer.handle(Time::ZERO, Incoming::Packet(packet));
            }
        }
        let id = id.expect("the association is up");
        let mut victim = Victim { end, id, tag, acked: 0, out: BytesMut::with_capacity(1 << 16) };
        victim.send(kind.outstanding);
        victim
    }

    /// Lets the window grow until so many chunks are outstanding.
    fn send(&mut self, outstanding: u32) {
        let message = |size| Message { payload: Bytes::from(vec![0; size]), ..Message::default() };
        let large = if outstanding > 0 { 6000 } else { 0 };
        // The window grows only while it is full.
        (0..large).for_each(|_| self.end.send(Time::ZERO, self.id, message(1400)).expect("there is room"));
        self.drain();
        while self.acked < large {
            self.acked += 4;
            let all = Sack { cumulative: Tsn(self.acked), a_rwnd: 1 << 24, ..nothing() };
            let bytes = self.packet(vec![Chunk::Sack(all)], None);
            self.hear(&bytes, false);
        }
        (0..outstanding).for_each(|_| self.end.send(Time::ZERO, self.id, message(1)).expect("there is room"));
        assert_eq!(self.drain(), outstanding, "the window holds them all");
    }

    /// A packet as it comes from the network, without its IP header.
    fn packet(&self, mut chunks: Vec<Chunk>, tag: Option<u32>) -> Bytes {
        if let [Chunk::Sack(sack)] = &mut chunks[..] {
            sack.cumulative = Tsn(sack.cumulative.0.max(self.acked));
        }
        let ports = Ports { source: 5001, destination: 5000 };
        let (from, to, chunks) = (address(2), address(1), chunks.into_iter().collect());
        let packet = Packet { from, to, ports, tag: tag.unwrap_or(self.tag), ecn: Ecn::NotEct, chunks };
        let mut bytes = BytesMut::new();
        packet.encode(&mut bytes).expect("it can be encoded");
        assert!(bytes.len() <= PACKET, "{} bytes", bytes.len());
        bytes.freeze()
    }

    /// A packet arrives, is answered, and what it brought is read.
    fn hear(&mut self, bytes: &Bytes, read: bool) {
        let copy = Bytes::copy_from_slice(bytes);
        if let Ok(packet) = Packet::decode(address(2), address(1), Ecn::NotEct, copy) {
            self.end.handle(Time::ZERO, Incoming::Packet(Box::new(packet)));
        }
        self.drain();
        while read && self.end.read(Time::ZERO, self.id).is_some() {}
        self.drain();
    }

    /// Encodes what is to be sent. Returns the number of chunks of user data.
    fn drain(&mut self) -> u32 {
        let mut sent = 0;
        while let Some(packet) = next(&mut self.end, &mut None) {
            self.out.clear();
            packet.encode(&mut self.out).expect("it can be encoded");
            sent += packet.chunks.iter().filter(|chunk| matches!(chunk, Chunk::Data(_))).count() as u32;
        }
        sent
    }
}

/// The next packet that an endpoint sends; the association that comes up.
fn next(end: &mut Endpoint, up: &mut Option<AssociationId>) -> Option<Box<Packet>> {
    loop {
        match end.poll(Time::ZERO) {
            Output::Transmit(packet, _) => return Some(packet),
            Output::Event(id, Event::Up) => *up = Some(id),
            Output::Wait(_) => return None,
            _ => {}
        }
    }
}

fn nothing() -> Sack {
    Sack {
        flags: 0,
        cumulative: Tsn(0),
        a_rwnd: 1 << 24,
        gaps: [].into_iter().collect(),
        duplicates: [].into_iter().collect(),
    }
}
