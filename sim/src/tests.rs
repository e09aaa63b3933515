//! What the unit tests build their scenarios of.

use anabranch_proto::{Config, Duration};

use crate::scenario::{Flow, Link, Loss, Queue, Scenario, Traffic};

/// 10 Mbit/s, 10 ms, 50 packets each way.
pub(crate) fn link(name: &str, a: &str, b: &str) -> Link {
    Link {
        name: name.to_owned(),
        between: [a.to_owned(), b.to_owned()],
        rate: [10_000_000; 2],
        delay: [Duration::from_millis(10); 2],
        queue: [Queue::Packets(50); 2],
        mark: [None; 2],
        loss: [Loss::None, Loss::None],
        mtu: 1500,
        up: true,
    }
}

/// 1 MB at once.
pub(crate) fn flow(name: &str, from: &str, to: &str) -> Flow {
    Flow {
        name: name.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        start: Duration::ZERO,
        traffic: Traffic::Bulk(Some(1_000_000)),
        message_size: None,
        unordered: false,
        reliability: Default::default(),
        streams: 1,
        read_rate: None,
        udp: false,
        sctp: Config::default(),
        primary: None,
        all_pairs: false,
    }
}

/// These links and one flow from "s" to "r".
pub(crate) fn scenario(links: Vec<Link>) -> Scenario {
    Scenario {
        name: "test".to_owned(),
        era: "rfc9260".to_owned(),
        seed: 1,
        wire: false,
        stop: None,
        ip_header: 20,
        links,
        flows: vec![flow("f", "s", "r")],
        changes: Vec::new(),
    }
}
