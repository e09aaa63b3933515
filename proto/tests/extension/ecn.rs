//! Explicit congestion notification: RFC 4960 appendix A.

use anabranch_proto::wire::chunk::{EcnEcho, Heartbeat, ReConfig, ReConfigParam, Response};
use anabranch_proto::wire::{Chunk, Ecn, Packet, Param, Ports};
use anabranch_proto::{Extensions, Incoming, Tsn};

use bytes::Bytes;

use crate::support::bench::{Bench, FULL, chunk, ms};
use crate::support::{PORT, World, address, secs};
use crate::with;

const ECN: Extensions = Extensions {
    partial_reliability: false,
    reconfiguration: false,
    authentication: false,
    addresses: false,
    interleaving: false,
    zero_checksum: false,
    timestamps: false,
    ecn: true,
    nr_sack: false,
};

fn bench() -> Bench {
    Bench::with(with(ECN), 1, |_| vec![Param::EcnCapable])
}

fn ecne(tsn: u32) -> Chunk {
    Chunk::Ecne(EcnEcho { tsn: Tsn(tsn) })
}

fn marked(bench: &mut Bench, tsns: &[u32]) {
    hear_marked(bench, tsns.iter().map(|tsn| chunk(*tsn, 10)));
}

/// A marked packet with these chunks arrives.
fn hear_marked(bench: &mut Bench, chunks: impl IntoIterator<Item = Chunk>) {
    let packet = Packet {
        from: address(0, 1),
        to: address(0, 0),
        ports: Ports { source: PORT + 1, destination: PORT },
        tag: bench.tag,
        ecn: Ecn::Ce,
        chunks: chunks.into_iter().collect(),
    };
    bench.end.handle(bench.now, Incoming::Packet(Box::new(packet)));
    bench.drain();
}

/// Packets with data can be marked, others not; without agreement none.
//= rfc4960#appendix-A
#[test]
fn what_can_be_marked() {
    for (params, expected) in [(vec![Param::EcnCapable], Ecn::Ect0), (vec![], Ecn::NotEct)] {
        let mut bench = Bench::with(with(ECN), 1, |_| params);
        bench.send(1, 10);
        bench.data(1, 10);
        bench.data(2, 10);
        let ecn: Vec<Ecn> = bench.sent.iter().map(|(_, packet, _)| packet.ecn).collect();
        assert_eq!(ecn, [expected, Ecn::NotEct]);
    }
}

/// A marked packet is told at once, with its lowest TSN, and with every SACK until CWR answers it.
//= rfc4960#appendix-A
#[test]
fn a_mark_is_told_until_it_is_heard() {
    let mut bench = bench();
    let told =
        |bench: &mut Bench| bench.take(|c| if let Chunk::Ecne(echo) = c { Some(echo.tsn.0) } else { None });
    marked(&mut bench, &[1, 2]);
    assert_eq!(told(&mut bench), [1]);
    bench.data(3, 10);
    bench.data(4, 10);
    assert_eq!(told(&mut bench), [1]);
    bench.send(1, FULL);
    bench.data(5, 10);
    bench.data(6, 10);
    assert_eq!(told(&mut bench), [1]);
    bench.hear(Chunk::Cwr(EcnEcho { tsn: Tsn(0) }));
    bench.data(7, 10);
    bench.data(8, 10);
    assert_eq!(told(&mut bench), [1], "an old answer");
    bench.hear(Chunk::Cwr(EcnEcho { tsn: Tsn(1) }));
    bench.data(9, 10);
    bench.data(10, 10);
    assert_eq!(told(&mut bench), []);
}

/// ECNE cuts the window once for what was in flight; CWR answers the last of them, beside full packets in one of its
/// own; an ECNE for what was never sent is nothing.
//= rfc4960#appendix-A
#[test]
fn a_window_is_cut_once() {
    let mut bench = bench();
    bench.grow_to(60_000);
    let first = bench.next_tsn();
    let window = bench.window();
    bench.send(10, FULL);
    (0..3).for_each(|n| bench.hear(ecne(first + n)));
    assert_eq!(bench.window(), window / 2);
    assert_eq!(answers(&mut bench), [], "there will be data to go with");
    bench.hear(ecne(first + 10));
    assert_eq!((bench.window(), bench.sent.len() - bench.loads().len()), (window / 2, 0), "never sent");
    bench.sack(first + 9, &[]);
    bench.send(1, FULL);
    assert_eq!(answers(&mut bench), [first + 2]);
    let window = bench.window();
    bench.hear(ecne(first + 10));
    assert_eq!(bench.window(), window / 2);
    bench.pass(ms(1));
}

/// A mark and a loss of one window of data cut the window once, whichever is told first; a loss in the next cuts again.
//= rfc3168#section-6.1.2
#[test]
fn a_mark_and_a_loss_are_one_congestion() {
    for mark_first in [true, false] {
        let mut bench = bench();
        bench.grow_to(60_000);
        let (first, window) = (bench.next_tsn(), bench.window());
        bench.send(10, FULL);
        if mark_first {
            bench.hear(ecne(first));
        }
        (first + 2..first + 5).for_each(|tsn| bench.sack(first, &[(first + 2, tsn)]));
        bench.hear(ecne(first + 5));
        assert_eq!(bench.window(), window / 2, "{mark_first}");
        bench.sack(first + 9, &[]);
        bench.send(5, FULL);
        (first + 11..first + 14).for_each(|tsn| bench.sack(first + 9, &[(first + 11, tsn)]));
        bench.hear(ecne(first + 14));
        assert_eq!(bench.window(), window / 4, "{mark_first}");
    }
}

/// A retransmission cannot be marked, nor can a window probe.
//= rfc3168#section-6.1.5
//= rfc3168#section-6.1.6
#[test]
fn what_is_not_new_cannot_be_marked() {
    let marks = |bench: &Bench| -> Vec<Ecn> {
        let data = |packet: &Packet| packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Data(_)));
        bench.sent.iter().filter(|(_, packet, _)| data(packet)).map(|(_, packet, _)| packet.ecn).collect()
    };
    let mut again = bench();
    again.send(1, FULL);
    again.pass(ms(1500));
    assert_eq!(marks(&again), [Ecn::Ect0, Ecn::NotEct]);
    let mut probes = bench();
    let first = probes.next_tsn();
    probes.send(1, FULL);
    probes.sack_window(first, 0);
    probes.send(1, FULL);
    probes.pass(ms(1500));
    assert_eq!(marks(&probes)[..2], [Ecn::Ect0, Ecn::NotEct]);
}

fn answers(bench: &mut Bench) -> Vec<u32> {
    bench.take(|c| if let Chunk::Cwr(echo) = c { Some(echo.tsn.0) } else { None })
}

/// ECNE comes with every SACK until CWR is heard. It is answered once, beside data if that leaves room, and again only
/// if what was sent after the answer is acknowledged and the ECNE is still there.
//= rfc4960#appendix-A
#[test]
fn an_echo_is_answered_once() {
    let mut bench = bench();
    bench.grow_to(60_000);
    let first = bench.next_tsn();
    bench.send(4, FULL);
    bench.sent.clear();
    (0..5).for_each(|_| bench.hear(ecne(first)));
    bench.send(1, 100);
    let [(_, packet, _)] = &bench.sent[..] else { panic!("{:?}", bench.sent) };
    assert!(matches!(&packet.chunks[..], [Chunk::Cwr(_), Chunk::Data(_)]), "{packet:?}");
    bench.sack(first + 3, &[]);
    bench.sent.clear();
    bench.hear(ecne(first));
    assert_eq!(answers(&mut bench), [], "the answer may be on its way");
    bench.send(1, 100);
    bench.sack(first + 5, &[]);
    bench.hear(ecne(first));
    assert_eq!(answers(&mut bench), [first], "nothing else to send, and the answer was lost");
}

/// ECNE comes with a SACK behind other chunks, too.
//= rfc4960#appendix-A
#[test]
fn a_mark_is_told_behind_control_chunks() {
    let mut bench = bench();
    hear_marked(&mut bench, [Chunk::Heartbeat(Heartbeat::new(vec![0; 8])), chunk(1, 10)]);
    let [(_, packet, _)] = &bench.sent[..] else { panic!("{:?}", bench.sent) };
    assert!(
        matches!(&packet.chunks[..], [Chunk::HeartbeatAck(_), Chunk::Ecne(_), Chunk::Sack(_)]),
        "{packet:?}"
    );
}

/// After a reset of TSNs, marks of new packets are not mistaken for those of old ones, however far TSNs have moved.
//= rfc6525#section-5.1.4
#[test]
fn a_reset_of_tsns_forgets_marks() {
    let both = Extensions { reconfiguration: true, ..ECN };
    let supported = Param::SupportedExtensions(Bytes::from_static(&[0x82]));
    let mut bench = Bench::with(with(both), 1, |_| vec![Param::EcnCapable, supported]);
    bench.grow_to(60_000);
    let first = bench.next_tsn();
    bench.send(10, FULL);
    bench.hear(ecne(first));
    bench.sack(first + 9, &[]);
    bench.send(1, FULL);
    assert_eq!(answers(&mut bench), [first]);
    bench.sack(first + 10, &[]);
    bench.end.reset_tsns(bench.now, bench.id).expect("agreed");
    bench.drain();
    let anew = first + 10 + (1 << 31);
    let (result, next) = (Response::PERFORMED, Some((Tsn(1), Tsn(anew))));
    let done = ReConfigParam::Response(Response { request: 1, result, next });
    bench.hear(Chunk::ReConfig(ReConfig { params: vec![done] }));
    let window = bench.window();
    bench.send(2, FULL);
    bench.hear(ecne(anew));
    assert_eq!(bench.window(), window / 2);
    bench.send(1, FULL);
    assert_eq!(answers(&mut bench), [anew]);
}

/// A path that marks every tenth packet slows its sender without any loss.
#[test]
fn two_ends() {
    let config = with(ECN);
    let mut times = Vec::new();
    for marking in [false, true] {
        let (mut world, id) = World::joined([&config, &config], 1);
        world.run(secs(1.0));
        world.mark = if marking { 10 } else { 0 };
        (0..40).for_each(|_| world.give(0, id, 10_000));
        let mut arrived = 0;
        while arrived < 40 {
            assert!(world.now < secs(200.0));
            world.run(world.now + ms(10));
            arrived += world.take(1).len();
        }
        times.push(world.now);
        let answers = world.left(0, |chunk| matches!(chunk, Chunk::Cwr(_))).len();
        let data = world.left(0, |chunk| matches!(chunk, Chunk::Data(_))).len();
        assert!(answers * 8 < data, "{answers} packets with CWR beside {data} with data");
        assert_eq!(world.ends[0].statistics(world.now, id).timeouts, 0);
    }
    assert!(times[1] > times[0], "{times:?}");
}
