//! A peer whose addresses come and go all the time (RFC 5061).

use std::net::Ipv4Addr;

use anabranch_proto::PathState;
use anabranch_proto::wire::chunk::{AsconfAck, AsconfParam, Heartbeat};
use anabranch_proto::wire::{Address, Chunk};

use crate::addresses::{acks, asconf, one, request, say};
use crate::support::bench::ms;

/// So many addresses, one after the other.
const LAST: u32 = 400;

/// An association has a limit of places for paths, not of addresses that a peer has had: the paths of new addresses
/// take the places of removed ones, are confirmed, and carry data.
#[test]
fn more_addresses_than_places() {
    let mut peer = one();
    for n in 1..=LAST {
        peer.bench.sent.clear();
        let new = Address::ip(Ipv4Addr::from(0x0a01_0000 + n).into());
        let add = asconf(2 * n - 1, vec![AsconfParam::Add(request(n, new))]);
        say(&mut peer, 0, vec![add]);
        assert_eq!(acks(&mut peer.bench), [AsconfAck { sequence: 2 * n - 1, responses: vec![] }], "{n}");
        let path = peer.bench.paths().iter().find(|path| path.remote == new).map(|path| path.id);
        let path = path.unwrap_or_else(|| panic!("address {n} has no path"));
        assert_eq!(peer.bench.view(path.0).state, PathState::Unconfirmed, "{n}");
        peer.bench.pass(ms(60_000)); // HEARTBEATs to unconfirmed addresses are rare (RFC 9260 section 5.4)
        for (_, _, info) in peer.bench.heartbeats().into_iter().filter(|(_, asked, _)| *asked == path.0) {
            peer.bench.hear_from(new, [Chunk::HeartbeatAck(Heartbeat::new(info))]);
        }
        let delete = AsconfParam::Delete(request(n, new));
        if n == LAST {
            assert_eq!(peer.bench.view(path.0).state, PathState::Active);
            say(&mut peer, 0, vec![asconf(2 * n, vec![AsconfParam::SetPrimary(request(n, new))])]);
            peer.bench.send(1, 1000);
            assert_eq!(peer.bench.loads()[0].1, path.0);
        } else {
            say(&mut peer, 0, vec![asconf(2 * n, vec![delete])]);
            assert_eq!(peer.bench.view(path.0).state, PathState::Removed);
        }
    }
    assert_eq!(peer.bench.paths().len(), 256);
}
