//! Two endpoints of one process on the loopback interface.

#![allow(clippy::disallowed_types, reason = "real networks have real clocks")]

#[path = "support/network.rs"]
mod network;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_net::{
    Association, Call, Carrier, ChangeError, ConnectError, Device, Direction, Ended, Endpoint, Event,
    Extensions, LostReason, Message, Options, Outcome, PathState, Tape,
};
use anabranch_proto::wire::{Chunk, Ecn};
use anabranch_proto::{Config, Incoming, Output, Parameters, Time};
use bytes::Bytes;
use network::skip;
use tokio::time::timeout;

const PORT: u16 = 5000;

fn options(local: &[&str]) -> Options {
    let local = local.iter().map(|ip| ip.parse().expect("an address")).collect();
    Options { local, carrier: Carrier::Udp(0), ..Options::default() }
}

/// A listener, and where it is found.
fn listener(options: Options) -> (Arc<Endpoint>, Vec<SocketAddr>) {
    let endpoint = Endpoint::bind(options).expect("loopback addresses");
    let places = endpoint.local().into_iter().map(|(place, _)| place).collect();
    (Arc::new(endpoint), places)
}

fn client(to: &[SocketAddr]) -> Endpoint {
    let to: Vec<IpAddr> = to.iter().map(SocketAddr::ip).collect();
    Endpoint::bind(Options::towards(&to).expect("routes")).expect("sockets")
}

fn message(payload: impl Into<Bytes>) -> Message {
    Message { stream: 0, ppid: 7, payload: payload.into(), ..Message::default() }
}

/// Both ends of an association.
async fn pair(server: &Endpoint, client: &Endpoint, to: &[SocketAddr]) -> (Association, Association) {
    let (ours, theirs) = tokio::join!(client.connect(to, PORT), server.accept());
    (ours.expect("it comes up"), theirs.expect("it is open"))
}

async fn read(association: &Association) -> Bytes {
    let delivery = within(association.recv()).await.expect("it lives").expect("a message");
    delivery.into_bytes()
}

async fn within<T>(what: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(30), what).await.expect("it takes no half minute")
}

#[tokio::test]
async fn a_message_there_and_back_and_the_end() {
    for local in ["127.0.0.1", "::1"] {
        let (server, to) = listener(options(&[local]));
        let client = client(&to);
        let (ours, theirs) = pair(&server, &client, &to).await;
        let large: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
        within(ours.send(message(large.clone()))).await.expect("it is up");
        assert_eq!(read(&theirs).await, large);
        within(theirs.send(message("back"))).await.expect("it is up");
        assert_eq!(read(&ours).await, "back");
        let (closed, last) = within(async { tokio::join!(ours.close(), theirs.recv()) }).await;
        assert_eq!((closed, last), (Ok(()), Ok(None)));
        assert_eq!(ours.send(message("late")).await, Err(Ended::Closed));
        within(client.close()).await;
    }
}

#[tokio::test]
async fn both_addresses_of_a_peer_are_paths() {
    let (server, to) = listener(options(&["127.0.0.1", "127.0.0.2"]));
    let (ports, local): (Vec<u16>, Vec<Device>) =
        server.local().into_iter().map(|(p, d)| (p.port(), d)).unzip();
    assert_eq!(ports[0], ports[1], "one port for all addresses");
    assert_eq!(local, [Device::Any, Device::Any], "loopback is no interface to bind to");
    let client = Endpoint::bind(Options { listen: false, ..options(&["127.0.0.3", "127.0.0.4"]) });
    let client = client.expect("sockets");
    let (ours, theirs) = pair(&server, &client, &to).await;
    for end in [&ours, &theirs] {
        within(async {
            while !end.paths().iter().all(|path| path.state == PathState::Active) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        assert_eq!(end.paths().len(), 2);
    }
    let second = ours.paths()[1].id;
    assert!(ours.set_primary(second) && !ours.set_primary(anabranch_net::PathId(2)));
    within(ours.send(message("by the second"))).await.expect("it is up");
    assert_eq!(read(&theirs).await, "by the second");
    within(ours.close()).await.expect("gracefully");
    assert!(ours.paths()[1].delivered > 0 && ours.paths()[0].delivered == 0);
}

#[tokio::test]
async fn nobody_there() {
    let (server, to) = listener(Options { listen: false, ..options(&["127.0.0.1"]) });
    let client = client(&to);
    let refused = within(client.connect(&to, PORT)).await.err();
    assert_eq!(refused, Some(ConnectError::Lost(LostReason::PeerAborted(vec![]))));
    drop(server);
    let config = Config {
        port: 0,
        parameters: Parameters {
            rto_initial: Duration::from_millis(20),
            rto_min: Duration::from_millis(20),
            max_init_retransmits: 1,
            ..Parameters::default()
        },
        ..Config::default()
    };
    let client = Endpoint::bind(Options { config, ..options(&["127.0.0.1"]) }).expect("sockets");
    let silent =
        std::net::UdpSocket::bind("127.0.0.1:0").and_then(|silent| Ok((silent.local_addr()?, silent)));
    let (place, silent) = silent.expect("a socket that says nothing");
    let refused = within(client.connect(&[place], PORT)).await.err();
    assert_eq!(refused, Some(ConnectError::Lost(LostReason::NoAnswer)));
    drop(silent);
}

/// Where no socket is, ICMP says so, and set-up is over long before RTO.Initial; a second address is asked at once.
#[tokio::test]
async fn a_closed_port_is_known_at_once() {
    for local in ["127.0.0.1", "::1"] {
        let (server, to) = listener(options(&[local]));
        let closed = std::net::UdpSocket::bind((local, 0)).and_then(|closed| closed.local_addr());
        let closed = closed.expect("a port that is free");
        let towards = Options::towards(&[closed.ip()]).expect("a route");
        let slow = Config {
            parameters: Parameters { rto_initial: Duration::from_secs(60), ..towards.config.parameters },
            ..towards.config.clone()
        };
        let client = Endpoint::bind(Options { config: slow, ..towards }).expect("sockets");
        let refused = within(client.connect(&[closed], PORT)).await.err();
        assert_eq!(refused, Some(ConnectError::Lost(LostReason::Unreachable)), "{local}");
        let (ours, _theirs) = pair(&server, &client, &[closed, to[0]]).await;
        drop(ours);
    }
}

#[tokio::test]
async fn an_abort_is_told_at_both_ends() {
    let (server, to) = listener(options(&["127.0.0.1"]));
    let client = client(&to);
    let (ours, theirs) = pair(&server, &client, &to).await;
    let mut events = theirs.events();
    ours.abort();
    assert_eq!(within(ours.recv()).await, Err(Ended::Lost(LostReason::UserAborted)));
    assert!(matches!(within(theirs.recv()).await, Err(Ended::Lost(LostReason::PeerAborted(_)))));
    assert!(matches!(within(events.recv()).await, Ok(Event::Lost(LostReason::PeerAborted(_)))));
}

/// A handle that is dropped ends its association; the other end sees a graceful end.
#[tokio::test]
async fn a_dropped_handle_ends_the_association() {
    let (server, to) = listener(options(&["127.0.0.1"]));
    let client = client(&to);
    let (ours, theirs) = pair(&server, &client, &to).await;
    within(ours.send(message("last words"))).await.expect("it is up");
    drop(ours);
    assert_eq!(read(&theirs).await, "last words");
    assert_eq!(within(theirs.recv()).await, Ok(None));
    within(client.close()).await;
}

/// A peer that waits for room ends soon when the handle is dropped whose user has read nothing: what nobody will read
/// is thrown away.
#[tokio::test]
async fn a_handle_that_is_dropped_unread_lets_the_peer_end() {
    let (server, to) = listener(options(&["127.0.0.1"]));
    let client = client(&to);
    let (ours, theirs) = pair(&server, &client, &to).await;
    while timeout(Duration::from_millis(300), ours.send(message(vec![0; 10_000]))).await.is_ok() {}
    drop(theirs);
    assert_eq!(within(ours.close()).await, Ok(()));
    within(server.close()).await;
}

/// When an association is being closed, a sender that waits for room is told at once, not when the peer has read
/// everything.
#[tokio::test]
async fn a_sender_that_waits_is_told_of_the_end() {
    let (server, to) = listener(options(&["127.0.0.1"]));
    let client = client(&to);
    let (ours, _theirs) = pair(&server, &client, &to).await;
    while timeout(Duration::from_millis(300), ours.send(message(vec![0; 10_000]))).await.is_ok() {}
    let sending = ours.send(message(vec![0; 10_000]));
    let closing = async {
        tokio::task::yield_now().await;
        ours.close().await
    };
    tokio::select! {
        biased;
        sent = within(sending) => assert_eq!(sent, Err(Ended::Closed)),
        closed = closing => unreachable!("nobody reads: {closed:?}"),
    }
    ours.abort();
}

/// An endpoint that closes has nobody to accept what peers have initiated: they are told, it ends, and who comes later
/// is told too.
#[tokio::test]
async fn who_was_not_accepted_is_told_of_the_end() {
    let (server, to) = listener(options(&["127.0.0.1"]));
    let (first, second, third) = (client(&to), client(&to), client(&to));
    let (accepted, theirs) = pair(&server, &first, &to).await;
    let waiting = within(second.connect(&to, PORT)).await.expect("it comes up");
    let closing = tokio::spawn(async move { server.close().await });
    let told = within(waiting.recv()).await;
    assert!(matches!(told, Err(Ended::Lost(LostReason::PeerAborted(_)))), "{told:?}");
    let late = within(third.connect(&to, PORT)).await.err();
    assert!(matches!(late, Some(ConnectError::Lost(LostReason::PeerAborted(_)))), "{late:?}");
    assert!(!closing.is_finished(), "an association is left");
    within(async { tokio::join!(accepted.close(), theirs.recv()) }).await.0.expect("gracefully");
    within(closing).await.expect("no panic");
}

/// Hears how many of the arriving packets with user data say that routers may mark them.
struct Heard(Arc<AtomicUsize>, Arc<AtomicUsize>);

impl Tape for Heard {
    fn begin(&mut self, _: &Config, _: &[u8; 32]) {}
    fn polled(&mut self, _: &Output) {}

    fn call(&mut self, _: Time, call: &Call<'_>) {
        if let Call::Handle(Incoming::Packet(packet)) = call
            && packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Data(_)))
        {
            self.0.fetch_add(1, Ordering::Relaxed);
            self.1.fetch_add(usize::from(packet.ecn == Ecn::Ect0), Ordering::Relaxed);
        }
    }
}

/// With ECN at both ends, packets of user data leave as those that routers may mark instead of dropping them.
#[tokio::test]
async fn packets_say_that_ecn_is_used() {
    for local in ["127.0.0.1", "::1"] {
        let with_ecn = |port| Config {
            port,
            extensions: Extensions { ecn: true, ..Extensions::default() },
            ..Config::default()
        };
        let (packets, capable) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let tape = Heard(packets.clone(), capable.clone());
        let server =
            Endpoint::record(Options { config: with_ecn(PORT), ..options(&[local]) }, Box::new(tape));
        let server = server.expect("loopback addresses");
        let to: Vec<SocketAddr> = server.local().into_iter().map(|(place, _)| place).collect();
        let client = Endpoint::bind(Options { config: with_ecn(0), ..options(&[local]) }).expect("sockets");
        let (ours, theirs) = pair(&server, &client, &to).await;
        within(ours.send(message(vec![7; 100_000]))).await.expect("it is up");
        assert_eq!(read(&theirs).await.len(), 100_000);
        let [packets, capable] = [packets, capable].map(|count| count.load(Ordering::Relaxed));
        assert!(packets > 60 && capable == packets, "{local}: {capable} of {packets}");
    }
}

/// Nobody reads: what is sent fills the receive buffer and the send buffer, no more; then the sender waits. When
/// somebody reads, it goes on, and all arrives.
#[tokio::test]
async fn a_slow_reader_stops_the_sender() {
    const RECEIVE: u32 = 64 << 10;
    const SEND: u64 = 128 << 10;
    let buffers = |port| Config {
        port,
        receive_buffer: RECEIVE,
        parameters: Parameters { send_buffer: Some(SEND), ..Parameters::default() },
        ..Config::default()
    };
    let (server, to) = listener(Options { config: buffers(PORT), ..options(&["127.0.0.1"]) });
    let client = Endpoint::bind(Options { config: buffers(0), ..options(&["127.0.0.1"]) }).expect("sockets");
    let (ours, theirs) = pair(&server, &client, &to).await;
    let mut sent = 0;
    while timeout(Duration::from_millis(500), ours.send(message(vec![0; 1000]))).await.is_ok() {
        sent += 1000;
        assert!(sent <= u64::from(RECEIVE) + SEND, "{sent} bytes, and nobody has read");
    }
    assert!(sent >= SEND, "{sent} bytes");
    let finish = async {
        within(ours.send(message(vec![1; 1000]))).await.expect("it is up");
        within(ours.close()).await.expect("gracefully");
    };
    let collect = async {
        let mut bytes = 0;
        while let Some(delivery) = within(theirs.recv()).await.expect("it lives") {
            bytes += delivery.len() as u64;
        }
        bytes
    };
    // The message of which the timeout let go is not sent.
    assert_eq!(within(async { tokio::join!(finish, collect) }).await.1, sent + 1000);
}

/// A thousand peers, each with its own tag and UDP port, on one socket of the listener.
#[tokio::test]
async fn a_thousand_associations_on_one_socket() {
    const PEERS: usize = 1000;
    // Each has an own endpoint: one endpoint has one association with a peer.
    let (server, to) = listener(options(&["127.0.0.1"]));
    let echo = Arc::clone(&server);
    let listening = tokio::spawn(async move {
        for _ in 0..PEERS {
            let association = echo.accept().await.expect("it is open");
            tokio::spawn(async move {
                while let Ok(Some(delivery)) = association.recv().await {
                    let payload = delivery.into_bytes();
                    let _ = association.send(message(payload)).await;
                }
            });
        }
    });
    let mut all = Vec::new();
    for n in 0..PEERS {
        let client = client(&to);
        let association = within(client.connect(&to, PORT)).await.expect("it comes up");
        within(association.send(message(format!("from {n}")))).await.expect("it is up");
        all.push((n, client, association));
    }
    within(listening).await.expect("all were accepted");
    for (n, _, association) in &all {
        assert_eq!(read(association).await, format!("from {n}"));
    }
    for (_, client, association) in all {
        within(association.close()).await.expect("gracefully");
        within(client.close()).await;
    }
}

/// What two ends can change of an association that is up: numbers of streams, how many there are, addresses; and what
/// they say of it.
#[tokio::test]
async fn streams_and_addresses_change() {
    let extensions =
        Extensions { reconfiguration: true, authentication: true, addresses: true, ..Extensions::default() };
    let config = |port| Config { port, extensions, outbound_streams: 4, ..Config::default() };
    let (server, to) = listener(Options { config: config(PORT), ..options(&["127.0.0.1"]) });
    let local = Options { config: config(0), listen: false, ..options(&["127.0.0.3", "127.0.0.4"]) };
    let client = Endpoint::bind(local).expect("sockets");
    let (ours, theirs) = pair(&server, &client, &to).await;
    let mut events = ours.events();
    within(ours.send(message("first"))).await.expect("it is up");
    read(&theirs).await;
    ours.reset_streams(Direction::Outgoing, &[0]).expect("both agree");
    let reset = |event: &Event| matches!(event, Event::StreamsReset { outcome: Outcome::Done, .. });
    within(until(&mut events, reset)).await;
    ours.add_streams(Direction::Outgoing, 3).expect("both agree");
    within(until(&mut events, |event| matches!(event, Event::StreamsAdded { outgoing: 7, .. }))).await;
    let second: IpAddr = "127.0.0.4".parse().expect("an address");
    ours.remove_address(second).expect("both agree");
    let removed =
        |event: &Event| matches!(event, Event::LocalAddress { address, .. } if address.ip == second);
    within(until(&mut events, removed)).await;
    assert_eq!(ours.add_address("192.0.2.9".parse().expect("an address")), Err(ChangeError::Invalid));
    assert!(ours.heartbeat(ours.paths()[0].id));
    assert!(format!("{ours:?} {client:?}").contains("127.0.0.3"));
    within(ours.close()).await.expect("gracefully");
}

async fn until(events: &mut tokio::sync::broadcast::Receiver<Event>, wanted: impl Fn(&Event) -> bool) {
    while !wanted(&events.recv().await.expect("it is told")) {}
}

/// One source has so many associations at the same time; when one has ended, there is a place again.
#[tokio::test]
async fn a_source_has_so_many_associations() {
    let (server, to) = listener(Options { max_per_source: Some(2), ..options(&["127.0.0.1"]) });
    let clients = [client(&to), client(&to), client(&to)];
    let first = pair(&server, &clients[0], &to).await;
    let _second = pair(&server, &clients[1], &to).await;
    // The listener aborts what its own core has already answered: it comes up and ends.
    let third = match within(clients[2].connect(&to, PORT)).await {
        Ok(third) => within(third.recv()).await.err(),
        Err(ConnectError::Lost(reason)) => Some(Ended::Lost(reason)),
        Err(other) => panic!("{other}"),
    };
    assert!(matches!(&third, Some(Ended::Lost(LostReason::PeerAborted(_)))), "{third:?}");
    within(first.0.close()).await.expect("gracefully");
    drop(first);
    let again = within(pair(&server, &clients[2], &to)).await;
    within(again.0.close()).await.expect("gracefully");
}

/// INITs from everywhere leave no association behind: an answer costs no memory until its cookie comes back.
//= rfc9260#section-5.1.3
#[tokio::test]
async fn no_state_before_a_valid_cookie() {
    use anabranch_proto::wire::chunk::{CookieEcho, Init};
    use anabranch_proto::wire::{Address, Chunk, Ecn, Packet, Ports};
    let config = Config { max_associations: 1, ..Config::default() };
    let (server, to) = listener(Options { config, ..options(&["127.0.0.1"]) });
    let flood = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    let place = Address { ip: to[0].ip(), udp: to[0].port() };
    let send = async |tag: u32, source: u16, chunk: Chunk| {
        let chunks = [chunk].into_iter().collect();
        let ports = Ports { source, destination: PORT };
        let packet = Packet { from: place, to: place, ports, tag, ecn: Ecn::NotEct, chunks };
        let mut bytes = bytes::BytesMut::new();
        packet.encode(&mut bytes).expect("it fits");
        flood.send_to(&bytes, to[0]).await.expect("it leaves");
    };
    let mut answer = [0; 2000];
    for source in 1..500 {
        let init = Init {
            tag: u32::from(source),
            a_rwnd: 100_000,
            outbound: 1,
            inbound: 1,
            tsn: anabranch_proto::Tsn(1),
            params: Vec::new(),
        };
        send(0, source, Chunk::Init(Box::new(init))).await;
        within(flood.recv(&mut answer)).await.expect("an INIT ACK");
        send(9, source, Chunk::CookieEcho(CookieEcho { cookie: vec![7; 100].into() })).await;
    }
    // There is still the one place that there is.
    let client = client(&to);
    let (ours, _theirs) = within(pair(&server, &client, &to)).await;
    within(ours.close()).await.expect("gracefully");
}

/// SCTP directly on IP, where the user may open raw sockets.
#[tokio::test]
async fn without_udp() {
    for local in ["127.0.0.1", "::1"] {
        let raw = |listen| Options { carrier: Carrier::Raw, listen, ..options(&[local]) };
        let server = match Endpoint::bind(raw(true)) {
            Ok(server) => server,
            Err(error) => return skip("without_udp", &error.to_string()),
        };
        let client = Options { config: Config { port: 0, ..Config::default() }, ..raw(false) };
        let client = Endpoint::bind(client).expect("sockets");
        let to: Vec<SocketAddr> = vec![SocketAddr::new(local.parse().expect("an address"), 0)];
        let (ours, theirs) = within(pair(&server, &client, &to)).await;
        let large: Vec<u8> = (0..300_000u32).map(|n| (n % 249) as u8).collect();
        within(ours.send(message(large.clone()))).await.expect("it is up");
        assert_eq!(read(&theirs).await, large);
        assert_eq!((ours.paths()[0].local.udp, ours.paths()[0].remote.udp), (0, 0));
        within(ours.close()).await.expect("gracefully");
    }
}

/// All SCTP ports behind the UDP port are the endpoint's own, so nobody else refuses what asks for another.
//= rfc9260#section-8.4
#[tokio::test]
async fn another_sctp_port_is_refused_at_once() {
    let (_server, to) = listener(options(&["127.0.0.1"]));
    let refused = within(client(&to).connect(&to, PORT + 1)).await.err();
    assert_eq!(refused, Some(ConnectError::Lost(LostReason::PeerAborted(vec![]))));
}

/// A raw socket on loopback hears what it sends itself. That is no answer.
#[tokio::test]
async fn a_raw_client_without_a_listener_hears_nobody() {
    let config = Config { port: 0, ..Config::default() };
    let raw = Options { carrier: Carrier::Raw, config, listen: false, ..options(&["127.0.0.1"]) };
    let client = match Endpoint::bind(raw) {
        Ok(client) => client,
        Err(error) => return skip("a_raw_client_without_a_listener_hears_nobody", &error.to_string()),
    };
    // Nobody has this SCTP port.
    let to = [SocketAddr::from(([127, 0, 0, 1], 0))];
    assert!(timeout(Duration::from_millis(500), client.connect(&to, 9)).await.is_err());
    let traffic = client.traffic();
    assert!(traffic.packets_sent > 0 && traffic.receives > 0, "{traffic:?}");
    assert_eq!((traffic.packets_received, traffic.malformed), (0, 0));
}

/// An endpoint that is closed begins nothing: a server's loop ends, and who connects is told at once.
#[tokio::test]
async fn a_closed_endpoint_accepts_and_connects_no_more() {
    let (server, to) = listener(options(&["127.0.0.1"]));
    let accepting = Arc::clone(&server);
    let accepting = tokio::spawn(async move { accepting.accept().await.is_none() });
    tokio::task::yield_now().await;
    within(server.close()).await;
    assert!(within(accepting).await.expect("no panic"), "nobody came");
    assert!(within(server.accept()).await.is_none());
    assert_eq!(within(server.connect(&to, PORT)).await.err(), Some(ConnectError::Closed));
}

/// What cannot be the address of a peer is refused, and not asked for minutes.
#[tokio::test]
async fn nobody_has_such_an_address() {
    let client = Endpoint::bind(Options { listen: false, ..options(&["127.0.0.1"]) }).expect("sockets");
    for to in ["0.0.0.0:9899", "224.0.0.1:9899", "255.255.255.255:9899", "127.0.0.1:0", "[::]:9899"] {
        let to: SocketAddr = to.parse().expect("an address");
        assert_eq!(within(client.connect(&[to], PORT)).await.err(), Some(ConnectError::Address(to)), "{to}");
    }
    let to = [SocketAddr::from(([127, 0, 0, 1], 9))];
    assert_eq!(within(client.connect(&to, 0)).await.err(), Some(ConnectError::Port));
}

/// An IPv4 address in the form of an IPv6 address, as sockets of both families tell it, is that IPv4 address at each
/// place.
#[tokio::test]
async fn an_ipv4_address_may_have_the_form_of_an_ipv6_address() {
    let (server, to) = listener(options(&["::ffff:127.0.0.1"]));
    assert_eq!(to[0].ip(), IpAddr::from([127, 0, 0, 1]));
    let mapped: SocketAddr = format!("[::ffff:127.0.0.1]:{}", to[0].port()).parse().expect("an address");
    let client = client(&[mapped]);
    let (ours, theirs) = pair(&server, &client, &[mapped]).await;
    within(ours.send(message("a word"))).await.expect("it is up");
    assert_eq!(read(&theirs).await, "a word");
}

/// A link-local address means another host on each link, and the error says so.
#[tokio::test]
async fn link_local_addresses_are_refused_by_name() {
    let refused = Endpoint::bind(options(&["127.0.0.1", "fe80::1"])).expect_err("it is refused");
    assert_eq!(refused.to_string(), "fe80::1: link-local addresses cannot be used");
}

/// When the runtime of an endpoint ends, those who wait in another one learn it.
#[test]
fn an_association_ends_with_its_runtime() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let first = runtime();
    let (server, ours, theirs) = first.block_on(async {
        let (server, to) = listener(options(&["127.0.0.1"]));
        let client = client(&to);
        let (ours, theirs) = pair(&server, &client, &to).await;
        (server, ours, theirs)
    });
    runtime().block_on(async {
        let waiting = tokio::spawn(async move { theirs.recv().await });
        tokio::task::yield_now().await;
        first.shutdown_background();
        let ended = Ended::Lost(LostReason::UserAborted);
        assert_eq!(within(waiting).await.expect("no panic"), Err(ended.clone()));
        assert_eq!(within(ours.send(message("late"))).await, Err(ended.clone()));
        assert_eq!(within(ours.close()).await, Err(ended));
        assert!(within(server.accept()).await.is_none());
        within(server.close()).await;
    });
}

/// The peer crashes, and comes back from the same address while its old association is being closed. That is over for
/// both then.
#[tokio::test]
async fn an_association_is_closed_although_its_peer_restarts() {
    let (server, to) = listener(options(&["127.0.0.1"]));
    // An address of its own: no socket of another test takes the port while the peer is away.
    let own = IpAddr::from([127, 0, 0, 77]);
    let port =
        std::net::UdpSocket::bind((own, 0)).and_then(|socket| socket.local_addr()).expect("a port").port();
    let from = move || {
        let towards = Options::towards(&[IpAddr::from([127, 0, 0, 1])]).expect("a route");
        let config = Config { port: 7000, ..towards.config.clone() };
        Endpoint::bind(Options { config, local: vec![own], carrier: Carrier::Udp(port), ..towards })
            .expect("the port is free")
    };
    // With its runtime everything of the client is gone, without a word to the peer.
    let crash = {
        let to = to.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            let kept = runtime.block_on(async {
                let client = from();
                let up = client.connect(&to, PORT).await;
                (up.expect("it comes up"), client)
            });
            runtime.shutdown_timeout(Duration::from_secs(1));
            drop(kept);
        })
    };
    let theirs = Arc::new(within(server.accept()).await.expect("it is open"));
    crash.join().expect("no panic");
    let mut events = theirs.events();
    let closing = tokio::spawn({
        let theirs = Arc::clone(&theirs);
        async move { theirs.close().await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let again = from();
    let _ours = within(again.connect(&to, PORT)).await.expect("it comes up again");
    within(async { while events.recv().await.expect("it lives") != Event::Restart {} }).await;
    assert_eq!(within(closing).await.expect("no panic"), Ok(()));
}
