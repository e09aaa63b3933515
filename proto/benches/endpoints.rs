//! What the protocol costs: two endpoints over two queues, no codec, no links.
//!
//! `cargo bench -p anabranch-proto --bench endpoints` prints nanoseconds of CPU a data packet, for both ends
//! together with their acknowledgements; what an idle association occupies; what a poll costs with one
//! busy association among few and among many idle ones; and whether associations that are made and ended one after the
//! other become dearer or leave memory behind (`-- 1000000`: so many of them).

mod cpu;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use anabranch_proto::wire::{Address, Packet};
use anabranch_proto::{
    AssociationId, Config, Duration, Endpoint, Event, Incoming, LocalAddress, Message, Output, Parameters,
    Policies, Time,
};
use bytes::Bytes;
use cpu::Cpu;

static PAGE: [u8; 1452] = [0; 1452];
const DELAY: Duration = Duration::from_millis(10);
const ROUNDS: usize = 5;
/// The port of the end that sends.
const SENDER: u16 = 5000;

fn main() {
    let packets = 700_000;
    let mut costs: Vec<f64> = (0..ROUNDS).map(|_| bulk(packets)).collect();
    costs.sort_by(f64::total_cmp);
    println!(
        "bulk transfer: {:.1} ns a data packet (median of {ROUNDS}, {packets} packets)",
        costs[ROUNDS / 2]
    );
    let ((few, _), (many, memory)) = (among(10), among(10_000));
    println!("memory: {memory} bytes an idle association");
    println!(
        "one busy association among 10 idle: {few:.1} ns a data packet; among 10,000: {many:.1}; ratio {:.2}",
        many / few
    );
    let count = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(100_000);
    let (first, last, left) = succession(count);
    println!(
        "{count} associations made and ended: {first:.0} ns each of the first tenth, {last:.0} of the last; ratio {:.2}; \
         memory left since the first tenth: {left} bytes",
        last / first
    );
}

fn address(host: u8) -> Address {
    Address::ip(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)))
}

fn endpoint(host: u8, port: u16) -> Endpoint {
    let config = Config {
        addresses: vec![LocalAddress { address: address(host), prefix: 24 }],
        port,
        // Nothing is lost on this network, so the window is what bounds the packets under way.
        initial_ssthresh: Some(200_000),
        parameters: Parameters { heartbeat_interval: None, ..Parameters::default() },
        ..Config::default()
    };
    Endpoint::new(config, Policies::default(), [host; 32]).expect("a usable configuration")
}

/// Two endpoints and what travels between them, with one fixed delay.
struct Pair {
    ends: [Endpoint; 2],
    now: Time,
    travelling: [VecDeque<(Time, Box<Packet>)>; 2],
    wake: [Option<Time>; 2],
    /// The association at the end that sends.
    up: Option<AssociationId>,
    left: usize,
    received: usize,
}

impl Pair {
    /// The end that will send, and another.
    fn new(sender: Endpoint, receiver: Endpoint, now: Time) -> Self {
        Pair {
            ends: [sender, receiver],
            now,
            travelling: Default::default(),
            wake: [None; 2],
            up: None,
            left: 0,
            received: 0,
        }
    }

    /// The other end begins an association with the one that will send.
    fn connect(mut self) -> Self {
        self.ends[1].connect(self.now, SENDER, &[address(1)]).expect("a path");
        self.drain(1);
        while self.up.is_none() {
            self.step();
        }
        // Let COOKIE ACK arrive.
        self.step();
        self
    }

    /// The other end begins an association and ends it; both ends forget it.
    fn connect_and_end(&mut self) {
        self.up = None;
        let id = self.ends[1].connect(self.now, SENDER, &[address(1)]).expect("a path");
        self.drain(1);
        while self.up.is_none() {
            self.step();
        }
        self.step();
        self.ends[1].shutdown(self.now, id);
        self.drain(1);
        // SHUTDOWN, SHUTDOWN ACK, SHUTDOWN COMPLETE.
        (0..3).for_each(|_| self.step());
        self.ends[1].forget(self.now, id);
        self.ends[0].forget(self.now, self.up.expect("it was up"));
        (0..2).for_each(|side| self.drain(side));
    }

    fn drain(&mut self, side: usize) {
        loop {
            match self.ends[side].poll(self.now) {
                Output::Transmit(packet, _) => {
                    self.travelling[side].push_back((self.now + DELAY, packet));
                }
                Output::Event(id, Event::Up) if side == 0 => self.up = Some(id),
                Output::Event(id, Event::Readable) => {
                    while self.ends[side].read(self.now, id).is_some() {
                        self.received += 1;
                    }
                }
                Output::Event(_, Event::Writable) => self.fill(),
                Output::Wait(until) => return self.wake[side] = until,
                _ => {}
            }
        }
    }

    fn fill(&mut self) {
        let Some(id) = self.up else { return };
        while self.left > 0 {
            let payload = Bytes::from_static(&PAGE);
            let message = Message { payload, ..Message::default() };
            if self.ends[0].send(self.now, id, message).is_err() {
                return;
            }
            self.left -= 1;
        }
    }

    fn step(&mut self) {
        let arrival = |side: usize| self.travelling[side].front().map(|p| p.0);
        let (a, b) = (arrival(0), arrival(1));
        let timers = [self.wake[0], self.wake[1]];
        let next = [a, b, timers[0], timers[1]].into_iter().flatten().min().expect("something goes on");
        self.now = next;
        for side in 0..2 {
            if self.travelling[side].front().is_some_and(|p| p.0 == next) {
                let (_, packet) = self.travelling[side].pop_front().expect("just seen");
                self.ends[1 - side].handle(next, Incoming::Packet(packet));
                return self.drain(1 - side);
            }
        }
        let side = usize::from(timers[0] != Some(next));
        self.drain(side);
    }

    /// Moves so many packets; nanoseconds a packet.
    fn transfer(&mut self, packets: usize) -> f64 {
        self.left = packets;
        self.received = 0;
        let start = Cpu::now();
        self.fill();
        self.drain(0);
        while self.received < packets {
            self.step();
        }
        start.elapsed() * 1e9 / packets as f64
    }
}

fn bulk(packets: usize) -> f64 {
    Pair::new(endpoint(1, SENDER), endpoint(2, 6000), Time::ZERO).connect().transfer(packets)
}

/// A sender with so many idle associations, and the memory that they occupy, in bytes each.
fn with_idle(count: u16) -> (Endpoint, Time, usize) {
    let (mut sender, mut now) = (endpoint(1, SENDER), Time::ZERO);
    let before = resident();
    for port in 0..count {
        let pair = Pair::new(sender, endpoint(3, 10_000 + port), now).connect();
        now = pair.now;
        let [one, _] = pair.ends;
        sender = one;
    }
    (sender, now, resident().saturating_sub(before) / usize::from(count))
}

/// Nanoseconds a data packet of one busy association beside so many idle ones.
fn among(count: u16) -> (f64, usize) {
    let (sender, now, memory) = with_idle(count);
    let mut pair = Pair::new(sender, endpoint(2, 6000), now).connect();
    let mut costs: Vec<f64> = (0..ROUNDS).map(|_| pair.transfer(200_000)).collect();
    costs.sort_by(f64::total_cmp);
    (costs[ROUNDS / 2], memory)
}

/// Makes and ends so many associations one after the other. Returns the nanoseconds of each of the first and of the
/// last tenth of them, by the cheapest hundredth in each since other programs only add to a cost, and the bytes of
/// memory that all after the first tenth left behind.
fn succession(count: usize) -> (f64, f64, usize) {
    let mut pair = Pair::new(endpoint(1, SENDER), endpoint(2, 6000), Time::ZERO);
    let hundredth = (count / 100).max(1);
    let mut cost = || {
        let start = Cpu::now();
        (0..hundredth).for_each(|_| pair.connect_and_end());
        start.elapsed() * 1e9 / hundredth as f64
    };
    let mut least = |hundredths: usize| (0..hundredths).map(|_| cost()).fold(f64::INFINITY, f64::min);
    let first = least(10);
    let before = resident();
    least(80);
    let last = least(10);
    (first, last, resident().saturating_sub(before))
}

/// Resident memory of this process, in bytes; 0 where the system does not tell.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}
