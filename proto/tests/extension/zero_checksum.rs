//! A checksum of zero over a layer that finds errors itself: RFC 9653.

use anabranch_proto::wire::chunk::{CookieEcho, Init};
use anabranch_proto::wire::{Chunk, DecodeError, Ecn, Packet, Param};
use anabranch_proto::{Endpoint, Extensions, Output, Policies, Time, Tsn};
use bytes::{Bytes, BytesMut};

use crate::support::bench::{Bench, chunk, era};
use crate::support::{PORT, address, at};
use crate::with;

const ZERO: Extensions = Extensions {
    partial_reliability: false,
    reconfiguration: false,
    authentication: false,
    addresses: false,
    interleaving: false,
    zero_checksum: true,
    timestamps: false,
    ecn: false,
    nr_sack: false,
};

/// Only what both have agreed on, with the method that both know, and never what sets up an association.
//= rfc9653#section-4
//= rfc9653#section-5.2
//= rfc9653#section-5.3
#[test]
fn who_may_omit_it() {
    for (config, offered, omitted, accepted) in [
        (with(ZERO), Some(1), true, true),
        (with(ZERO), Some(2), false, true),
        (with(ZERO), None, false, true),
        (era("rfc9260"), Some(1), false, false),
    ] {
        let mut bench = Bench::with(config, 1, |_| offered.map(Param::ZeroChecksum).into_iter().collect());
        bench.send(1, 100);
        let (_, sent, _) = bench.sent.remove(0);
        assert_eq!(bench.end.omits_checksum(&sent), omitted, "{offered:?}");
        let init = Init { tag: 1, a_rwnd: 1, outbound: 1, inbound: 1, tsn: Tsn(1), params: vec![] };
        let echo = CookieEcho { cookie: Bytes::new() };
        for setting_up in [Chunk::Init(Box::new(init)), Chunk::CookieEcho(echo)] {
            let packet =
                Packet { chunks: [setting_up].into_iter().collect(), tag: bench.tag, ..sent.clone() };
            assert!(!bench.end.omits_checksum(&packet) && !bench.end.accepts_without_checksum(&packet));
        }
        let came = Packet { tag: bench.tag, chunks: [chunk(1, 10)].into_iter().collect(), ..sent.clone() };
        assert_eq!(bench.end.accepts_without_checksum(&came), accepted);
        assert!(!bench.end.accepts_without_checksum(&Packet { tag: bench.tag ^ 1, ..came }), "a stranger");
    }
}

/// Who was told in the INIT may leave it out of the INIT ACK already; dcsctp does.
//= rfc9653#section-5.3
#[test]
fn an_init_ack_without_it() {
    for (config, accepted) in [(with(ZERO), true), (era("rfc9260"), false)] {
        let config = at(0, 1, &config);
        let mut end = Endpoint::new(config, Policies::default(), [9; 32]).expect("a usable configuration");
        end.connect(Time::ZERO, PORT + 1, &[address(0, 1)]).expect("a path");
        let Output::Transmit(packet, _) = end.poll(Time::ZERO) else { panic!("INIT leaves") };
        let [Chunk::Init(init)] = &packet.chunks[..] else { panic!("{packet:?}") };
        let params = vec![Param::ZeroChecksum(1), Param::Cookie(Bytes::from_static(b"a cookie"))];
        let ack = Init { tag: 77, a_rwnd: 1 << 16, outbound: 1, inbound: 1, tsn: Tsn(1), params };
        let came = Packet {
            from: packet.to,
            to: packet.from,
            ports: packet.ports.reversed(),
            tag: init.tag,
            ecn: Ecn::NotEct,
            chunks: [Chunk::InitAck(Box::new(ack))].into_iter().collect(),
        };
        assert_eq!(end.accepts_without_checksum(&came), accepted);
        assert!(!end.accepts_without_checksum(&Packet { tag: 0, ..came }), "a stranger");
    }
}

/// What the endpoint offers new associations says nothing to a peer that was offered something else.
//= rfc9653#section-5.3
#[test]
fn an_offer_to_others() {
    for (first, then) in [(era("rfc9260"), with(ZERO)), (with(ZERO), era("rfc9260"))] {
        let accepted = first.extensions.zero_checksum;
        let mut bench = Bench::new(first, 1);
        bench.end.configure(at(0, 1, &then)).expect("usable");
        bench.send(1, 100);
        let (_, sent, _) = bench.sent.remove(0);
        let came = Packet { tag: bench.tag, chunks: [chunk(1, 10)].into_iter().collect(), ..sent };
        assert_eq!(bench.end.accepts_without_checksum(&came), accepted);
    }
}

/// The bytes are those of any packet but for the checksum, which the reader finds wrong.
#[test]
fn what_stands_in_its_place() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(1, 100);
    let packet = &bench.sent[0].1;
    let (mut with, mut without) = (BytesMut::new(), BytesMut::new());
    packet.encode(&mut with).expect("short");
    packet.encode_without_checksum(&mut without).expect("short");
    assert_eq!((&without[8..12], &without[12..], &without[..8]), (&[0; 4][..], &with[12..], &with[..8]));
    let refused = Packet::decode(packet.from, packet.to, Ecn::NotEct, without.freeze());
    assert!(matches!(refused, Err(DecodeError::Checksum { found: 0, .. })));
}
