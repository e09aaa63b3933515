//! Packets about which the RFC says little are handled as `docs/choices.md` says.

use anabranch_proto::wire::chunk::{Shutdown, ShutdownComplete};
use anabranch_proto::wire::{Chunk, Packet};
use anabranch_proto::{Config, Duration, Event, LostReason, State, Tsn};

use crate::support::bench::{Bench, PEER_TAG, chunk, era, ms};
use crate::support::{World, secs};

fn shutdown(cumulative: u32) -> Chunk {
    Chunk::Shutdown(Shutdown { cumulative: Tsn(cumulative) })
}

/// As a SACK that does so (§6.2.1).
//= rfc9260#section-3.3.8
#[test]
fn a_shutdown_for_what_was_never_sent() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(3, 100);
    bench.hear(shutdown(50));
    assert_eq!(bench.events.last().map(|e| &e.1), Some(&Event::Lost(LostReason::ProtocolViolation)));
    let last = &bench.sent.last().expect("the peer is told").1;
    assert!(matches!(&last.chunks[..], [Chunk::Abort(_)]), "{last:?}");
}

/// Who has received SHUTDOWN still has data to deliver, so it watches its idle path until it sends SHUTDOWN ACK.
//= rfc9260#section-8.3
#[test]
fn heartbeats_go_on_when_the_peer_shuts_down() {
    let config =
        era("rfc9260").with(|parameters| parameters.heartbeat_interval = Some(Duration::from_secs(2)));
    let mut bench = Bench::confirmed(config, 2, ms(10));
    bench.send(1, 100);
    bench.hear(shutdown(0));
    bench.heartbeats();
    bench.pass(ms(6000));
    assert!(bench.heartbeats().iter().any(|(_, path, _)| *path == 1), "the second path is idle");
    bench.hear(shutdown(1));
    bench.heartbeats();
    bench.pass(ms(20_000));
    assert!(bench.heartbeats().is_empty(), "SHUTDOWN ACK was sent");
}

/// The peer's tag with a T bit vouches for the chunk with that bit alone.
//= rfc9260#section-8.5.1
#[test]
fn a_reflected_tag_vouches_for_nothing_else() {
    let complete = || Chunk::ShutdownComplete(ShutdownComplete { reflected: true });
    for company in [vec![chunk(1, 100), complete()], vec![complete(), chunk(1, 100)]] {
        let mut bench = Bench::new(era("rfc9260"), 1);
        bench.hear_packet(0, PEER_TAG, company);
        bench.pass(ms(1000));
        assert!(bench.end.read(bench.now, bench.id).is_none(), "DATA under the peer's tag");
        assert_eq!(bench.sacks().len(), 0);
        assert_eq!(bench.end.status(bench.id).map(|status| status.state), Some(State::Established));
    }
}

/// Who knows the tags of an association does not know where its TSNs begin.
//= rfc9260#section-5.3.1
#[test]
fn first_tsns_do_not_follow_from_tags() {
    let config = Config::default();
    let first = |seed: u64| {
        let mut world =
            World::new([0, 1].map(|side| crate::support::at(side, 1, &config)), vec![fair()], seed);
        world.keep_log = true;
        world.connect();
        world.run(secs(1.0));
        let setup = |packet: &Packet| match packet.chunks.first() {
            Some(Chunk::Init(init) | Chunk::InitAck(init)) => Some((init.tag, init.tsn.0)),
            _ => None,
        };
        world.log.iter().filter_map(|left| setup(&left.packet)).collect::<Vec<_>>()
    };
    let drawn: Vec<(u32, u32)> = (0..20).flat_map(first).collect();
    assert_eq!(drawn.len(), 40);
    let differences: std::collections::BTreeSet<u32> =
        drawn.iter().map(|(tag, tsn)| tag.rotate_left(16) ^ tsn).collect();
    assert_eq!(differences.len(), 40);
}

fn fair() -> crate::support::Weather {
    crate::support::Weather::fair(ms(10))
}
