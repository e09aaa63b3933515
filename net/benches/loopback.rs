//! What a gigabyte over UDP on loopback costs when both ends share one thread. That disturbs the result less than two
//! processes do, and callgrind counts both ends.
//!
//! `cargo bench --package anabranch-net --bench loopback -- MEGABYTES MESSAGE_SIZE` prints seconds of CPU a gigabyte;
//! 1000 and 8192 if they are left out.

#![allow(clippy::disallowed_types, reason = "real networks have real clocks")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anabranch_net::{Association, Carrier, Endpoint, Message, Options, Traffic};
use bytes::Bytes;

const PORT: u16 = 5000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse::<u64>().ok());
    let (megabytes, size) = (numbers.next().unwrap_or(1000), numbers.next().unwrap_or(8192));
    let local = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
    let options = Options { local: local.clone(), carrier: Carrier::Udp(0), ..Options::default() };
    let server = Endpoint::bind(options).expect("sockets");
    let to: Vec<SocketAddr> = server.local().into_iter().map(|(place, _)| place).collect();
    let reading = tokio::spawn(async move {
        let bytes = read(&server.accept().await.expect("it is open")).await;
        (bytes, server.traffic())
    });
    let client = Endpoint::bind(Options::towards(&local).expect("routes")).expect("sockets");
    let association = client.connect(&to, PORT).await.expect("it comes up");
    let begun = cpu();
    // As many as the send buffer and the network hold, so that the cache has them no longer when they are sent again.
    let messages: Vec<Bytes> = (0..(4 << 20) / size).map(|_| vec![0; size as usize].into()).collect();
    for payload in messages.iter().cycle().take((megabytes * 1_000_000 / size) as usize) {
        association.send(Message { payload: payload.clone(), ..Message::default() }).await.expect("it is up");
    }
    association.close().await.expect("it ends");
    let (bytes, answers) = reading.await.expect("no panic");
    let sent = client.traffic();
    let a_send = |traffic: Traffic| traffic.packets_sent as f64 / traffic.sends as f64;
    println!(
        "messages of {size} bytes: {:.2} CPU s/GB, {:.1} packets and {:.1} SACKs per send call, {} packets",
        (cpu() - begun) / (bytes as f64 / 1e9),
        a_send(sent),
        a_send(answers),
        sent.packets_sent
    );
}

/// Reads until the peer ends the association. Returns the number of bytes.
async fn read(association: &Association) -> u64 {
    let mut bytes = 0;
    while let Some(delivery) = association.recv().await.expect("it is not lost") {
        bytes += delivery.len() as u64;
    }
    // The other end waits for this one to agree.
    let _ = association.close().await;
    bytes
}

/// Seconds of CPU of this thread, as Linux counts them.
fn cpu() -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanos = told.split_whitespace().next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.expect("a number") / 1e9
}
