//! Parameters at and beyond the ends of what their types can hold.

use std::net::IpAddr;

use anabranch_proto::wire::Address;
use anabranch_proto::{
    Config, Duration, Endpoint, Heartbeats, Message, Parameters, PathId, PathParameters, Policies, Refused,
    State,
};

use crate::support::bench::{Bench, FULL, era};
use crate::support::{PORT, World, address, at, secs};

/// 146 years, the longest duration.
const LONGEST: Duration = Duration::from_nanos((1 << 62) - 1);

fn refused(change: fn(&mut Config)) -> Option<&'static str> {
    let mut config = at(0, 1, &era("rfc9260"));
    change(&mut config);
    config.check().err().map(|error| error.key)
}

#[test]
fn what_no_sum_can_hold_is_refused() {
    type Change = fn(&mut Config);
    let changes: [(Change, &str); 7] = [
        (|config| config.heartbeat_interval = Some(Duration::MAX), "heartbeat_interval"),
        (|config| config.rto_max = Duration::MAX, "rto_max"),
        (|config| config.cookie_life = Duration::MAX, "cookie_life"),
        (|config| config.max_init_timeout = Some(Duration::MAX), "max_init_timeout"),
        (|config| config.ip_header = u32::MAX, "mtu"),
        (|config| config.ip_header = u32::MAX - 507, "mtu"),
        (|config| config.send_buffer = Some(u64::MAX), "send_buffer"),
    ];
    for (change, key) in changes {
        assert_eq!(refused(change), Some(key));
    }
}

/// The longest durations serve a whole life, and so does a path whose own interval is longer still.
#[test]
fn the_longest_durations_serve() {
    let longest = Config { cookie_life: LONGEST, ..era("rfc9260") }.with(|parameters| {
        (parameters.rto_initial, parameters.rto_min, parameters.rto_max) = (LONGEST, LONGEST, LONGEST);
        (parameters.heartbeat_interval, parameters.max_init_timeout) = (Some(LONGEST), Some(LONGEST));
        (parameters.heartbeat_jitter, parameters.shutdown_guard) = (true, Some(u32::MAX));
    });
    let (mut world, id) = World::joined([&longest; 2], 2);
    world.run(secs(1.0));
    let own = PathParameters { heartbeats: Heartbeats::Every(Duration::MAX), ..PathParameters::default() };
    assert!(world.ends[0].configure_path(world.now, id, PathId(0), own));
    world.give(0, id, 10_000);
    world.run(secs(2.0));
    assert_eq!(world.take(1), [10_000]);
    world.ends[0].shutdown(world.now, id);
    world.drain(0);
    world.run(secs(3.0));
    assert_eq!(world.ends[0].status(id).map(|status| status.state), Some(State::Closed));
}

/// The largest send buffer takes so many messages that one more could no longer be counted in 64 bits otherwise.
#[test]
fn the_largest_send_buffer_is_counted() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    let before = bench.end.config_of(bench.id).expect("it is there").parameters;
    let most = Parameters { send_buffer: Some(1_000_000_000_000_000_000), ..before };
    bench.end.reconfigure(bench.now, bench.id, most).expect("it can be used");
    let message = Message { payload: vec![1; FULL].into(), ..Message::default() };
    let taken = bench.end.send_copies(bench.now, bench.id, &message, None, u64::MAX);
    assert!(taken >= 1_000_000_000_000_000_000 / FULL as u64);
    assert!(bench.end.send(bench.now, bench.id, message).is_err(), "it is full");
}

/// An endpoint begins nothing with nobody, and nothing with itself.
#[test]
fn a_port_or_an_address_that_no_peer_can_have_is_refused() {
    let config = era("rfc9260");
    let mut end = Endpoint::new(at(0, 1, &config), Policies::default(), [0; 32]).expect("it can be used");
    let (own, peer) = (address(0, 0), address(0, 1));
    assert_eq!(end.connect(secs(0.0), 0, &[peer]), Err(Refused::Port));
    for nobody in ["0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1"] {
        let nobody: IpAddr = nobody.parse().expect("an address");
        let refused = end.connect(secs(0.0), PORT, &[peer, Address::ip(nobody)]);
        assert_eq!(refused, Err(Refused::Address(nobody)));
    }
    assert_eq!(end.connect(secs(0.0), PORT, &[own]), Err(Refused::Itself(own.ip)));
    assert!(end.connect(secs(0.0), PORT + 1, &[own]).is_ok(), "another endpoint of this host");
}
