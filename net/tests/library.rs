//! What a program of one's own gets from this crate alone.

#![allow(clippy::disallowed_types, reason = "real networks have real clocks")]

use std::net::IpAddr;
use std::time::Duration;

use anabranch_net::proto::{Output, Time};
use anabranch_net::{Call, Carrier, Config, Endpoint, Options, Tape};
use tokio::time::timeout;

const LOCAL: [IpAddr; 1] = [IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)];

async fn within<T>(what: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(30), what).await.expect("it takes no half minute")
}

/// A tape needs no other crate.
struct Deaf;

impl Tape for Deaf {
    fn begin(&mut self, _: &Config, _: &[u8; 32]) {}
    fn call(&mut self, _: Time, _: &Call<'_>) {}
    fn polled(&mut self, _: &Output) {}
}

#[tokio::test]
async fn a_tape_is_written_with_this_crate_alone() {
    let options = Options { local: LOCAL.to_vec(), carrier: Carrier::Udp(0), ..Options::default() };
    let endpoint = Endpoint::record(options, Box::new(Deaf)).expect("sockets");
    within(endpoint.close()).await;
}
