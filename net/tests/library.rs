//! What a program of one's own gets from this crate alone.

#![allow(clippy::disallowed_types, reason = "real networks have real clocks")]

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anabranch_net::bytes::Bytes;
use anabranch_net::proto::policy::{Ask, Choice, PathView, Route};
use anabranch_net::proto::{Output, Time};
use anabranch_net::{
    Association, Call, Carrier, Config, ConnectError, Ended, Endpoint, LostReason, Message, Options,
    PolicySpec, Reliability, Tape,
};
use tokio::time::timeout;

const LOCAL: [IpAddr; 1] = [IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)];

async fn within<T>(what: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(30), what).await.expect("it takes no half minute")
}

fn listener(change: impl FnOnce(&mut Config)) -> (Endpoint, [SocketAddr; 1]) {
    let mut options = Options { local: LOCAL.to_vec(), carrier: Carrier::Udp(0), ..Options::default() };
    change(&mut options.config);
    let endpoint = Endpoint::bind(options).expect("sockets");
    let place = endpoint.local()[0].0;
    (endpoint, [place])
}

fn message(payload: impl Into<Bytes>) -> Message {
    Message { payload: payload.into(), ..Message::default() }
}

async fn pair(server: &Endpoint, client: &Endpoint, to: &[SocketAddr]) -> (Association, Association) {
    let (ours, theirs) = within(async { tokio::join!(client.connect(to, 5000), server.accept()) }).await;
    (ours.expect("it comes up"), theirs.expect("it is open"))
}

#[derive(Clone, Debug)]
struct Broken;

impl Route for Broken {
    fn choose(&self, _: &Ask, _: &[PathView]) -> Choice {
        panic!("a mistake in a policy")
    }
}

/// The panic reaches the task that called, and no other. Nothing calls the broken core again, not even while its
/// association and its endpoint are dropped.
#[tokio::test]
async fn a_policy_that_panics_ends_its_endpoint_and_nothing_else() {
    let (server, to) = listener(|_| {});
    let mut options = Options::towards(&LOCAL).expect("routes");
    options.policies.add_route("broken", |_, _| Ok(Box::new(Broken)));
    options.config.new_data = PolicySpec::named("broken");
    let client = Endpoint::bind(options).expect("sockets");
    let (ours, theirs) = pair(&server, &client, &to).await;
    let sent = tokio::spawn(async move { ours.send(message("one")).await });
    assert!(within(sent).await.expect_err("the policy panics").is_panic());
    assert_eq!(within(client.connect(&to, 5000)).await.err(), Some(ConnectError::Closed));
    within(client.close()).await;
    drop(client);
    theirs.abort();
    within(server.close()).await;
}

/// As above; another task holds the association.
#[tokio::test]
async fn who_waits_learns_that_a_policy_has_panicked() {
    let (server, to) = listener(|_| {});
    let mut options = Options::towards(&LOCAL).expect("routes");
    options.policies.add_route("broken", |_, _| Ok(Box::new(Broken)));
    options.config.new_data = PolicySpec::named("broken");
    let client = Endpoint::bind(options).expect("sockets");
    let (ours, _theirs) = pair(&server, &client, &to).await;
    let ours = std::sync::Arc::new(ours);
    let (reader, sender) = (std::sync::Arc::clone(&ours), std::sync::Arc::clone(&ours));
    let reads = tokio::spawn(async move { reader.recv().await });
    tokio::task::yield_now().await;
    let sent = tokio::spawn(async move { sender.send(message("one")).await });
    assert!(within(sent).await.is_err());
    let lost = Err(Ended::Lost(LostReason::UserAborted));
    assert_eq!(within(reads).await.expect("it does not panic").map(drop), lost);
    assert_eq!(within(ours.send(message("two"))).await, lost);
    assert_eq!(within(ours.close()).await, lost);
}

/// Forty messages, of which the send buffer holds ten: each goes to the peer or comes back.
#[tokio::test]
async fn messages_that_are_dropped_come_back() {
    let small = |config: &mut Config| {
        (config.receive_buffer, config.parameters.send_buffer) = (20_000, Some(20_000));
        config.extensions.partial_reliability = true;
    };
    let (server, to) = listener(small);
    let mut options = Options::towards(&LOCAL).expect("routes");
    small(&mut options.config);
    let client = Endpoint::bind(options).expect("sockets");
    let (ours, theirs) = pair(&server, &client, &to).await;
    let mut sent = 0;
    for number in 0..40 {
        let reliability = Reliability::Priority(100 - number);
        let message = Message { reliability, ..message(vec![number as u8; 2000]) };
        match timeout(Duration::from_millis(100), ours.send(message)).await {
            Ok(taken) => sent += u64::from(taken.is_ok()),
            Err(_) => break,
        }
    }
    let reads = tokio::spawn(async move {
        let mut whole = 0;
        while let Ok(Some(delivery)) = theirs.recv().await {
            whole += u64::from(delivery.complete && !delivery.abandoned);
        }
        whole
    });
    within(ours.close()).await.expect("it ends gracefully");
    let (back, total) = (ours.undelivered(), ours.undelivered_total());
    assert!(total > 0 && !back.is_empty() && back.len() as u64 <= total, "{} of {total}", back.len());
    assert!(back.iter().all(|back| back.message.payload.len() == 2000 && !back.sent));
    assert_eq!(within(reads).await.expect("it reads") + total, sent);
    assert!(ours.undelivered().is_empty(), "they were taken");
}

/// What an association had not delivered when it was aborted comes back.
#[tokio::test]
async fn what_was_left_at_the_end_comes_back() {
    let (server, to) = listener(|config| config.receive_buffer = 2000);
    let client = Endpoint::bind(Options::towards(&LOCAL).expect("routes")).expect("sockets");
    let (ours, _theirs) = pair(&server, &client, &to).await;
    for _ in 0..10 {
        within(ours.send(message(vec![1; 1000]))).await.expect("there is room");
    }
    ours.abort();
    let back = ours.undelivered();
    assert!(!back.is_empty() && back.len() as u64 == ours.undelivered_total());
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
