//! Tests of the receiving half.

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use super::*;
use crate::{Rules, Time};

fn config() -> Config {
    Config { receive_buffer: 10_000, ..Config::default() }
}

fn data(tsn: u32) -> Data {
    Data {
        tsn: Tsn(tsn),
        stream: 0,
        ssn: Ssn(tsn.wrapping_sub(u32::MAX - 1) as u16),
        ppid: 0,
        begin: true,
        end: true,
        unordered: false,
        immediate: false,
        payload: Bytes::from_static(&[0; 984]),
    }
}

/// A receiver whose first TSN is just below the wrap.
fn receiver() -> Receiver {
    Receiver::new(Tsn(u32::MAX - 1), &config())
}

fn arrive(r: &mut Receiver, offset: u32) -> DataOutcome {
    let mut arrival = Arrival::default();
    let c = config();
    let taken = r.data(data((u32::MAX - 1).wrapping_add(offset)), &c.rules, &mut arrival);
    r.packet_done(&arrival, PathId(0), Time::ZERO, &c);
    taken
}

fn gaps(r: &mut Receiver) -> Vec<(u16, u16)> {
    r.sack(1000, &config()).gaps.iter().map(|g| (g.start, g.end)).collect()
}

//= rfc9260#section-6.2
#[test]
fn every_second_packet_or_a_gap_makes_a_sack_due() {
    let mut r = receiver();
    arrive(&mut r, 0);
    assert!(r.schedule.now, "the very first");
    gaps(&mut r);
    arrive(&mut r, 1);
    assert!(!r.schedule.now && r.schedule.deadline != Time::NEVER);
    arrive(&mut r, 2);
    assert!(r.schedule.now);
    gaps(&mut r);
    arrive(&mut r, 4);
    assert!(r.schedule.now, "a gap");
    gaps(&mut r);
    arrive(&mut r, 3);
    assert!(r.schedule.now, "its filling");
    gaps(&mut r);
    arrive(&mut r, 5);
    assert!(!r.schedule.now, "no gap");
}

#[test]
fn a_lower_chunk_takes_the_place_of_the_highest() {
    let mut r = receiver();
    for offset in 1..=10 {
        assert_eq!(arrive(&mut r, offset), DataOutcome::New);
    }
    assert_eq!(arrive(&mut r, 11), DataOutcome::NoRoom);
    assert_eq!(arrive(&mut r, 0), DataOutcome::New);
    assert_eq!(r.cumulative(), Tsn((u32::MAX - 1).wrapping_add(9)), "the tenth was dropped again");
}

#[test]
fn less_than_a_packet_is_announced_as_none() {
    let mut r = receiver();
    for offset in 1..=9 {
        arrive(&mut r, offset);
    }
    assert_eq!(r.sack(1000, &config()).a_rwnd, 0);
    let mut c = config();
    c.rules = crate::Rules::NS2;
    assert_eq!(r.sack(1000, &c).a_rwnd, 1000);
}

fn below(random: &mut ChaCha8Rng, n: u32) -> u32 {
    random.next_u32() % n
}

/// A sender whose chunks arrive late or twice now and then.
struct Peer {
    next: Tsn,
    ssns: [Ssn; 2],
    /// Stream and order of the message that is being sent.
    message: (u16, bool),
    /// Its fragments that are left.
    left: u32,
    late: Vec<Data>,
}

impl Peer {
    fn new() -> Self {
        Peer { next: Tsn(u32::MAX - 1), ssns: [Ssn(0); 2], message: (0, false), left: 0, late: vec![] }
    }

    /// The next chunk: most are whole messages.
    fn chunk(&mut self, random: &mut ChaCha8Rng) -> Data {
        let begin = self.left == 0;
        if begin {
            self.message = (below(random, 2) as u16, below(random, 3) == 0);
            self.left = if below(random, 12) == 0 { 1 + below(random, 4) } else { 1 };
        }
        self.left -= 1;
        let ((stream, unordered), end, tsn) = (self.message, self.left == 0, self.next);
        self.next = tsn.next();
        let (ssn, immediate) = (self.ssns[usize::from(stream)], below(random, 20) == 0);
        if end && !unordered {
            self.ssns[usize::from(stream)] = ssn.next();
        }
        let payload = Bytes::from_static(&[0; 900]).slice(..1 + below(random, 899) as usize);
        Data { tsn, stream, ssn, begin, end, unordered, immediate, payload, ..data(0) }
    }

    /// The next chunk that arrives.
    fn arrives(&mut self, random: &mut ChaCha8Rng) -> Data {
        let late = !self.late.is_empty() && below(random, 4) == 0;
        let chunk = if late { self.late.remove(0) } else { self.chunk(random) };
        match below(random, 40) {
            0 => {
                self.late.push(chunk);
                self.arrives(random)
            }
            1 => {
                self.late.push(chunk.clone());
                chunk
            }
            _ => chunk,
        }
    }
}

/// The usual chunk takes a short way. It must leave what the long way leaves.
#[test]
fn the_short_way_of_a_chunk_ends_where_the_long_way_does() {
    let mut short_ways = 0;
    for seed in 0..40 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (config, mut receiver, mut peer) = (config(), receiver(), Peer::new());
        for _ in 0..200 {
            let chunk = peer.arrives(&mut random);
            let mut longer = receiver.clone();
            let mut arrivals = [Arrival::default(), Arrival::default()];
            short_ways += u32::from(receiver.is_next_whole(&chunk));
            let taken = receiver.data(chunk.clone(), &Rules::RFC9260, &mut arrivals[0]);
            assert_eq!(taken, longer.any_data(chunk, &Rules::RFC9260, &mut arrivals[1]));
            assert_eq!(format!("{:?}", arrivals[0]), format!("{:?}", arrivals[1]));
            assert_eq!(format!("{receiver:?}"), format!("{longer:?}"), "seed {seed}");
            receiver.packet_done(&arrivals[0], PathId(0), Time::ZERO, &config);
            if receiver.schedule.now {
                receiver.sack(1000, &config);
            }
            if below(&mut random, 3) > 0 {
                receiver.read(&config);
            }
        }
    }
    assert!(short_ways > 1000, "{short_ways}");
}

/// What is discarded counts as read at once: the same SACKs are due at the same times, and say the same.
#[test]
fn what_is_discarded_counts_as_read_at_once() {
    let c = config();
    let mut discarded = 0;
    for seed in 0..50 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (mut reads, mut discards) = (receiver(), receiver());
        discards.discard();
        let mut bytes = [0, 0];
        for n in 0..200 {
            let next = reads.cumulative().plus(1 + [0, 0, 0, 0, 1, 2][random.next_u32() as usize % 6]);
            let (now, alone) = (Time::from_nanos(n), random.next_u32() % 4 > 0);
            for (r, bytes) in [&mut reads, &mut discards].into_iter().zip(&mut bytes) {
                let mut arrival = Arrival::default();
                if !(alone && r.count_alone(&data(next.0), &mut arrival)) {
                    r.data(data(next.0), &c.rules, &mut arrival);
                }
                r.packet_done(&arrival, PathId(0), now, &c);
                let without = r.take_discarded(&c);
                discarded += without.map_or(0, |without| without.messages);
                *bytes += without.map_or(0, |without| without.bytes);
                while let Some(delivery) = r.read(&c) {
                    *bytes += delivery.len() as u64;
                }
            }
            assert_eq!(bytes[0], bytes[1], "seed {seed}");
            assert_eq!(format!("{:?}", reads.schedule), format!("{:?}", discards.schedule), "seed {seed}");
            assert_eq!((reads.held, reads.ready.number()), (discards.held, discards.ready.number()));
            if reads.schedule.now {
                assert_eq!(reads.sack(1000, &c), discards.sack(1000, &c), "seed {seed}");
            }
        }
    }
    assert!(discarded > 1000, "{discarded}");
}
