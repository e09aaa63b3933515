//! Several paths: verification, failure, failover and return, routes of retransmissions; times by hand.

mod failing;
mod failover;
mod jumps;
mod local;
mod mtu;
mod own_routes;
mod paths;
mod rehome;
mod routes;
#[path = "../support/mod.rs"]
mod support;

use anabranch_proto::policy::Why;
use anabranch_proto::wire::Chunk;
use anabranch_proto::{AssociationId, Duration, PathId, Purpose, Time};
use support::{Left, World};

/// 100 bytes are given every 500 ms, from now to `until`; what arrives is read.
fn steadily(world: &mut World, id: AssociationId, until: Time) {
    while world.now < until {
        world.give(0, id, 100);
        world.run(world.now + Duration::from_millis(500));
        if let Some(peer) = world.up(1) {
            while world.ends[1].read(world.now, peer).is_some() {}
            world.drain(1);
        }
    }
}

/// The packets with DATA that side 0 sent.
fn loads(world: &World) -> impl Iterator<Item = &Left> {
    let data = |left: &&Left| left.packet.chunks.iter().any(|c| matches!(c, Chunk::Data(_)));
    world.log.iter().filter(|left| left.side == 0).filter(data)
}

/// When new data first left on a path at or after a time.
fn first_new(world: &World, path: u16, from: Time) -> Option<Time> {
    let new = |left: &&Left| {
        left.reason.purpose == Purpose::Data(Why::New) && left.reason.path == Some(PathId(path))
    };
    loads(world).filter(new).map(|left| left.at).find(|at| *at >= from)
}

/// When side 0 sent heartbeats on a path.
fn heartbeats(world: &World, path: u16) -> Vec<Time> {
    let asks = |left: &&Left| {
        left.side == 0
            && left.reason.path == Some(PathId(path))
            && left.packet.chunks.iter().any(|c| matches!(c, Chunk::Heartbeat(_)))
    };
    world.log.iter().filter(asks).map(|left| left.at).collect()
}
