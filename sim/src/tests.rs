//! Scenarios for the unit tests.

use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use anabranch_proto::Duration;
use anabranch_proto::wire::Address;

use crate::scenario::{Flow, Link, Loss, Queue, Scenario, Traffic};
use crate::transport::{Body, Datagram, Frame};

/// 10 Mbit/s, 10 ms, 50 packets each way.
pub(crate) fn link(name: &str, a: &str, b: &str) -> Link {
    Link {
        name: name.to_owned(),
        between: [a.to_owned(), b.to_owned()],
        rate: [10_000_000; 2],
        delay: [Duration::from_millis(10); 2],
        traced: [None, None],
        random_delay: None,
        jitter: [Duration::ZERO; 2],
        reorder: false,
        queue: [Queue::Packets(50); 2],
        mark: [None; 2],
        loss: [Loss::None, Loss::None],
        mtu: 1500,
        up: true,
    }
}

/// 1 MB at once.
pub(crate) fn flow(name: &str, from: &str, to: &str) -> Flow {
    let traffic = Traffic::Bulk(Some(1_000_000));
    Flow { name: name.to_owned(), from: from.to_owned(), to: to.to_owned(), traffic, ..Flow::default() }
}

/// These links and one flow from "s" to "r".
pub(crate) fn scenario(links: Vec<Link>) -> Scenario {
    Scenario { name: "test".to_owned(), links, flows: vec![flow("f", "s", "r")], ..Scenario::default() }
}

/// A frame of which only the size matters.
pub(crate) fn frame(size: u32, hop: u32) -> Frame {
    let nobody = Address { ip: IpAddr::V4(Ipv4Addr::UNSPECIFIED), udp: 9 };
    Frame::new(
        Body::Datagram(Rc::new(Datagram { from: nobody, to: nobody, payload: size, number: 0 })),
        size,
        hop,
    )
}
