//! Futures that are dropped at each of their awaits: nothing is lost, nothing hangs.

#![allow(clippy::disallowed_types, reason = "real networks have real clocks")]

use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use anabranch_net::{Association, Carrier, Endpoint, Message, Options};
use tokio::time::{sleep, timeout};

const PORT: u16 = 5000;
/// A future here has two awaits at most; each may be polled twice in vain.
const POLLS: usize = 6;

/// Polls `what` so often at most, with a moment between, and drops it; its output, if it was ready.
async fn dropped_after<T>(polls: usize, what: impl Future<Output = T>) -> Option<T> {
    let mut what = pin!(what);
    for _ in 0..polls {
        let polled = std::future::poll_fn(|context| Poll::Ready(what.as_mut().poll(context))).await;
        if let Poll::Ready(output) = polled {
            return Some(output);
        }
        sleep(Duration::from_millis(1)).await;
    }
    None
}

async fn within<T>(what: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), what).await.expect("it does not hang")
}

fn listener() -> (Endpoint, Vec<SocketAddr>) {
    let local = vec!["127.0.0.1".parse().expect("an address")];
    let options = Options { local, carrier: Carrier::Udp(0), ..Options::default() };
    let endpoint = Endpoint::bind(options).expect("a socket");
    let places = endpoint.local().into_iter().map(|(place, _)| place).collect();
    (endpoint, places)
}

fn client(to: &[SocketAddr]) -> Endpoint {
    Endpoint::bind(Options::towards(&[to[0].ip()]).expect("a route")).expect("a socket")
}

async fn pair(server: &Endpoint, client: &Endpoint, to: &[SocketAddr]) -> (Association, Association) {
    let (ours, theirs) = within(async { tokio::join!(client.connect(to, PORT), server.accept()) }).await;
    (ours.expect("it comes up"), theirs.expect("it is open"))
}

fn message(number: usize, size: usize) -> Message {
    let payload = number.to_be_bytes().into_iter().chain((8..size).map(|n| n as u8)).collect();
    Message { payload, ..Message::default() }
}

async fn number(association: &Association) -> usize {
    let delivery = within(association.recv()).await.expect("it lives").expect("a message");
    usize::from_be_bytes(delivery.into_bytes()[..8].try_into().expect("eight bytes"))
}

/// To somebody who never answers and to a listener: the endpoint can be closed at once, and the listener's as well.
#[tokio::test]
async fn connect() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket that says nothing");
    let silent = [silent.local_addr().expect("it is bound")];
    for polls in 0..POLLS {
        let (server, to) = listener();
        for to in [&silent[..], &to] {
            let client = client(to);
            drop(dropped_after(polls, client.connect(to, PORT)).await);
            within(client.close()).await;
        }
        server.close().await;
    }
}

#[tokio::test]
async fn accept() {
    let (server, to) = listener();
    let client = client(&to);
    for polls in 0..POLLS {
        assert!(dropped_after(polls, server.accept()).await.is_none());
    }
    let (ours, theirs) = pair(&server, &client, &to).await;
    within(ours.send(message(1, 100))).await.expect("it is up");
    assert_eq!(number(&theirs).await, 1);
}

/// Every message is taken once, in order, by whichever call was not dropped.
#[tokio::test]
async fn recv() {
    let (server, to) = listener();
    let client = client(&to);
    let (ours, theirs) = pair(&server, &client, &to).await;
    let mut arrived = Vec::new();
    for sent in 0..100 {
        for polls in 0..POLLS {
            if let Some(delivery) = dropped_after(polls, theirs.recv()).await {
                let bytes = delivery.expect("it lives").expect("a message").into_bytes();
                arrived.push(usize::from_be_bytes(bytes[..8].try_into().expect("eight bytes")));
            }
        }
        within(ours.send(message(sent, 100))).await.expect("it is up");
    }
    while arrived.len() < 100 {
        arrived.push(number(&theirs).await);
    }
    assert_eq!(arrived, (0..100).collect::<Vec<_>>());
}

/// What a dropped call was to send is not sent; what another has sent arrives.
#[tokio::test]
async fn send() {
    let (server, to) = listener();
    let client = client(&to);
    let (ours, theirs) = pair(&server, &client, &to).await;
    let mut sent = Vec::new();
    // Nobody reads: the buffers of both ends fill up.
    for number in 0..200 {
        if dropped_after(number % POLLS, ours.send(message(number, 50_000))).await.is_some() {
            sent.push(number);
        }
    }
    assert!((10..199).contains(&sent.len()), "some were taken, some were dropped: {}", sent.len());
    for expected in &sent {
        assert_eq!(number(&theirs).await, *expected);
    }
    within(ours.send(message(1000, 50_000))).await.expect("it is up");
    assert_eq!(number(&theirs).await, 1000);
}

#[tokio::test]
async fn close() {
    for polls in 0..POLLS {
        let (server, to) = listener();
        let client = client(&to);
        let (ours, theirs) = pair(&server, &client, &to).await;
        within(ours.send(message(polls, 100))).await.expect("it is up");
        drop(dropped_after(polls, ours.close()).await);
        let _ = dropped_after(polls, client.close()).await;
        assert_eq!(number(&theirs).await, polls);
        assert_eq!(within(ours.close()).await, Ok(()));
        within(client.close()).await;
        within(client.close()).await;
        drop(theirs);
        within(server.close()).await;
    }
}
