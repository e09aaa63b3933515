//! Tests of what an endpoint keeps about associations that have ended.

use std::net::IpAddr;

use super::*;
use crate::{Event, LocalAddress, Output};

fn address(host: u8) -> Address {
    Address::ip(IpAddr::V4([10, 0, 0, host].into()))
}

fn endpoint(host: u8) -> Endpoint {
    let local = LocalAddress { address: address(host), prefix: 24 };
    let config = Config { addresses: vec![local], port: 5000, ..Config::default() };
    Endpoint::new(config, Policies::default(), [host; 32]).expect("a usable configuration")
}

/// Exchanges the packets of two endpoints until both wait.
fn exchange(ends: &mut [Endpoint; 2], now: Time) -> Vec<(usize, AssociationId, Event)> {
    let mut events = Vec::new();
    let mut waiting = 0;
    let mut side = 0;
    while waiting < 2 {
        waiting += 1;
        loop {
            match ends[side].poll(now) {
                Output::Transmit(packet, _) => {
                    waiting = 0;
                    ends[1 - side].handle(now, Incoming::Packet(packet));
                }
                Output::Event(id, event) => events.push((side, id, event)),
                Output::Note(_) => {}
                Output::Wait(_) => break,
            }
        }
        side = 1 - side;
    }
    events
}

/// 20,000 associations in sequence need one place in each endpoint, and no memory that grows with their number. An
/// old id finds none of its successors.
#[test]
fn associations_one_after_the_other() {
    let mut ends = [endpoint(1), endpoint(2)];
    let mut first = None;
    for n in 0..20_000u64 {
        let now = Time::from_nanos(n * 1_000_000);
        let id = ends[0].connect(now, 5000, &[address(2)]).expect("a path");
        let events = exchange(&mut ends, now);
        let peer = events.iter().find(|e| e.0 == 1 && e.2 == Event::Up).expect("it is up").1;
        ends[0].shutdown(now, id);
        exchange(&mut ends, now);
        let old = *first.get_or_insert(id);
        assert_eq!(ends[0].status(old).is_some(), n == 0);
        ends[0].forget(now, id);
        ends[1].forget(now, peer);
        assert_eq!((id.place(), peer.place()), (0, 0));
        assert!(ends[0].status(id).is_none() && ends[0].read(now, id).is_none());
    }
    for end in &ends {
        assert_eq!(end.associations.places(), 1);
        assert!(end.by_tag.is_empty() && end.by_peer.is_empty() && end.answers.is_empty());
        assert!(end.ready.len() <= 2 && end.agenda.len() <= 64, "{} {}", end.ready.len(), end.agenda.len());
    }
}

/// Two of three are forgotten in between. Their places are used again with new ids.
#[test]
fn ids_are_not_used_again() {
    let mut end = endpoint(1);
    let mut seen = std::collections::BTreeSet::new();
    let mut kept: Vec<AssociationId> = Vec::new();
    for n in 0..3000u16 {
        let id = end.connect(Time::ZERO, 1 + n, &[address(2)]).expect("a path");
        assert!(seen.insert(id), "{id:?} was given before");
        kept.push(id);
        if n % 3 != 0 {
            let gone = kept.swap_remove(usize::from(n) * 7 % kept.len());
            end.forget(Time::ZERO, gone);
        }
    }
    assert!(kept.iter().all(|id| end.status(*id).is_some()));
    assert_eq!(seen.iter().filter(|id| end.status(**id).is_some()).count(), kept.len());
    assert!(end.associations.places() <= kept.len() + 2);
}
