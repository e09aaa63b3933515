//! What the codec costs, in nanoseconds a packet: `cargo bench -p anabranch-proto --bench codec`.

#![allow(clippy::disallowed_types, reason = "a benchmark reads the machine's clock")]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use anabranch_proto::wire::chunk::{Data, GapBlock, Sack};
use anabranch_proto::wire::{Address, Chunk, Ecn, Packet, Ports};
use anabranch_proto::{Ssn, Tsn};
use bytes::{Bytes, BytesMut};

const PLACE: Address = Address::ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
const ROUNDS: u32 = 200_000;

fn main() {
    println!("{:<28}{:>8}{:>8}{:>10}{:>12}", "packet", "bytes", "encode", "decode", "unchecked");
    row("SACK without gaps", &packet(sack(0)));
    row("SACK with 20 gaps", &packet(sack(20)));
    row("DATA of 100 bytes", &packet(data(100)));
    row("DATA of 1452 bytes", &packet(data(1452)));
    row("DATA of 8192 bytes", &packet(data(8192)));
}

/// Measures one packet there and back.
fn row(name: &str, packet: &Packet) {
    let mut out = BytesMut::with_capacity(1 << 20);
    let encode = best(|| {
        // As a sender does it: many packets in one buffer, then the next buffer.
        if out.capacity() - out.len() < packet.size() {
            out.clear();
        }
        packet.encode(black_box(&mut out)).expect("it can be encoded");
    });
    let mut bytes = BytesMut::new();
    packet.encode(&mut bytes).expect("it can be encoded");
    let bytes = bytes.freeze();
    let decode = best(|| {
        black_box(Packet::decode(PLACE, PLACE, Ecn::NotEct, black_box(&bytes).clone()).is_ok());
    });
    let unchecked = best(|| {
        black_box(Packet::decode_unchecked(PLACE, PLACE, Ecn::NotEct, black_box(&bytes).clone()).is_ok());
    });
    println!("{name:<28}{:>8}{encode:>8.1}{decode:>10.1}{unchecked:>12.1}", bytes.len());
}

/// Nanoseconds a call, the best of five tries.
fn best(mut call: impl FnMut()) -> f64 {
    let mut a_try = || {
        let start = Instant::now();
        (0..ROUNDS).for_each(|_| call());
        start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
    };
    (0..5).map(|_| a_try()).fold(f64::INFINITY, f64::min)
}

fn packet(chunk: Chunk) -> Packet {
    let ports = Ports { source: 5000, destination: 5001 };
    Packet { from: PLACE, to: PLACE, ports, tag: 7, ecn: Ecn::NotEct, chunks: [chunk].into_iter().collect() }
}

fn data(size: usize) -> Chunk {
    Chunk::Data(Data {
        tsn: Tsn(1),
        stream: 0,
        ssn: Ssn(1),
        ppid: 0,
        begin: true,
        end: true,
        unordered: false,
        immediate: false,
        payload: Bytes::from(vec![7; size]),
    })
}

fn sack(gaps: u16) -> Chunk {
    Chunk::Sack(Sack {
        flags: 0,
        cumulative: Tsn(1),
        a_rwnd: 65_536,
        gaps: (0..gaps).map(|n| GapBlock { start: 3 * n + 2, end: 3 * n + 3 }).collect(),
        duplicates: [].into_iter().collect(),
    })
}
