//! CPU seconds for a gigabyte of user data between two endpoints in memory, both ends together: messages of
//! 8 KB, packets as bytes with their checksums, no delay, 1 MB of send buffer, virtual time.
//!
//! `cargo run --release` runs the stacks in turn, so that a machine that slows down slows all of them;
//! `cargo run --release -- ROUNDS MEGABYTES [STACK]` as often and as much as one likes, or one stack alone.

#![allow(clippy::disallowed_types, reason = "a benchmark reads the machine's clock")]

mod anabranch;
mod dcsctp;
mod sctp_proto;

use std::time::Instant;

use bytes::Bytes;

/// The size of a message, and what fills it.
const MESSAGE: Bytes = Bytes::from_static(&[0x5a; 8192]);
/// Bytes given to a sender and not yet acknowledged, at most.
const SEND_BUFFER: u64 = 1 << 20;
/// Bytes of the packets of `sctp-proto`, which cannot be told otherwise.
const THEIR_PACKET: u32 = 1228;

/// Two endpoints of one stack, up, and what travels between them.
trait Pair {
    /// Gives messages to the sender until its buffer is full; how many it took of `most`.
    fn fill(&mut self, most: u64) -> u64;
    /// Carries packets until nothing is under way; how many messages were read.
    fn exchange(&mut self) -> u64;
    /// Nothing moves: goes on to the next timer.
    fn wait(&mut self);
    /// Packets sent by both ends so far.
    fn packets(&self) -> u64;
}

/// A stack, and how two endpoints of it are made.
struct Stack {
    name: &'static str,
    /// Bytes of its largest packet.
    packet: u32,
    /// The part of the transfer that it gets: all, or one in so many bytes where all would take minutes.
    one_in: u64,
    make: fn(u32) -> Box<dyn Pair>,
}

const STACKS: [Stack; 5] = [
    Stack { name: "anabranch", packet: THEIR_PACKET, one_in: 1, make: |n| Box::new(anabranch::Pair::new(n)) },
    Stack { name: "anabranch, larger", packet: 1480, one_in: 1, make: |n| Box::new(anabranch::Pair::new(n)) },
    Stack {
        name: "sctp-proto 0.10.8",
        packet: THEIR_PACKET,
        one_in: 1,
        make: |_| Box::new(sctp_proto::Pair::new(false)),
    },
    Stack {
        name: "the same, asked often",
        packet: THEIR_PACKET,
        one_in: 5,
        make: |_| Box::new(sctp_proto::Pair::new(true)),
    },
    Stack {
        name: "dcsctp 0.1.16, with dumps",
        packet: THEIR_PACKET,
        one_in: 20,
        make: |_| Box::new(dcsctp::Pair::new()),
    },
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize, default| arguments.get(n).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (rounds, megabytes) = (number(0, 3), number(1, 500));
    let wanted = |name: &str| arguments.get(2).is_none_or(|only| only == name);
    let mut costs: [Vec<Cost>; STACKS.len()] = Default::default();
    for _ in 0..rounds {
        for (stack, costs) in STACKS.iter().zip(&mut costs).filter(|(stack, _)| wanted(stack.name)) {
            let mut pair = (stack.make)(stack.packet);
            costs.push(transfer(&mut *pair, megabytes * 1_000_000 / stack.one_in));
        }
    }
    println!("{:<28}{:>8}{:>14}{:>10}{:>16}", "stack", "packet", "s/GB, median", "least", "packets a GB");
    for (stack, costs) in STACKS.iter().zip(&mut costs).filter(|(_, costs)| !costs.is_empty()) {
        costs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let (least, median) = (&costs[0], costs[costs.len() / 2].seconds);
        let Stack { name, packet, .. } = stack;
        println!("{name:<28}{packet:>8}{median:>14.2}{:>10.2}{:>16}", least.seconds, least.packets);
    }
}

/// What a gigabyte costs.
struct Cost {
    seconds: f64,
    packets: u64,
}

fn transfer(pair: &mut dyn Pair, bytes: u64) -> Cost {
    let messages = bytes / MESSAGE.len() as u64;
    let (mut sent, mut read) = (0, 0);
    let (start, before) = (cpu(), pair.packets());
    while read < messages {
        let filled = pair.fill(messages - sent);
        let arrived = pair.exchange();
        sent += filled;
        read += arrived;
        if filled + arrived == 0 {
            pair.wait();
        }
    }
    let gigabytes = (messages * MESSAGE.len() as u64) as f64 / 1e9;
    let packets = ((pair.packets() - before) as f64 / gigabytes) as u64;
    Cost { seconds: (cpu() - start) / gigabytes, packets }
}

/// Seconds of CPU of this thread, as the system counts them; elapsed ones where it does not tell.
fn cpu() -> f64 {
    thread_local!(static BEGUN: Instant = Instant::now());
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    match told.split_whitespace().next().and_then(|nanos| nanos.parse::<f64>().ok()) {
        Some(nanos) => nanos / 1e9,
        None => BEGUN.with(|begun| begun.elapsed().as_secs_f64()),
    }
}
