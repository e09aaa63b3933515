//! The reachability of a path: heartbeats, their answers, and the effect of failures (RFC 9260 §5.4, §8.2, §8.3).

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::chance::SeldomChance;
use crate::wire::Address;
use crate::{Duration, Time};

/// Failed verifications of one pair of addresses before the next local address is tried.
const TRIES_A_PAIR: u32 = 2;

/// The largest number of heartbeats of a path that can still be answered; older ones are forgotten.
const REMEMBERED: usize = 8;

/// Position of the nonce in the Heartbeat Information.
const NONCE: usize = 8;

/// The reachability of a path, without its error count.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    /// Draws the nonce of each heartbeat. A nonce reveals nothing about other nonces.
    nonces: SeldomChance,
    /// The heartbeats without an answer, the latest last.
    asked: VecDeque<SentHeartbeat>,
    /// When something that measures the path was last sent: new data or a heartbeat.
    pub(crate) used: Time,
    /// How long the path must be idle before its next heartbeat.
    pub(crate) period: Duration,
    /// Whether a heartbeat is to be sent, and when.
    pub(crate) wanted: Wanted,
    /// Whether an error of the path was counted since its last heartbeat left.
    pub(crate) counted: bool,
    /// Since when a heartbeat waits because of HB.Max.Burst; `NEVER` if none does.
    pub(crate) deferred: Time,
    /// A heartbeat is to be sent at the next poll from this local address, which is not the path's own.
    pub(crate) elsewhere: Option<Address>,
    /// The local address from which the last of those heartbeats left.
    pub(crate) last_elsewhere: Option<Address>,
    /// Failed verifications of the present pair of addresses.
    failed: u32,
    /// The user named the path's remote address in the connect call.
    pub(crate) named: bool,
    /// An ICMP error during set-up reported that the remote address does not accept SCTP.
    pub(crate) refused: bool,
}

/// When a heartbeat is to be sent, if one is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    No,
    /// Behind the packets that may leave now.
    AfterData,
    /// At the next poll.
    Now,
}

/// A heartbeat that was sent.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct SentHeartbeat {
    nonce: u64,
    /// The local address from which it left. Its answer says nothing about another address.
    pub(crate) local: Address,
    pub(crate) at: Time,
    pub(crate) what: HeartbeatFor,
}

/// The purpose of a heartbeat.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum HeartbeatFor {
    /// Whether the path is alive.
    Life,
    /// Whether packets of this many bytes get through.
    Size(u32),
    /// The path's bandwidth, as the first packet of a pair.
    FirstOfPair,
    /// The same, as the second.
    SecondOfPair,
}

impl SentHeartbeat {
    /// The Heartbeat Information: time, nonce, and the size of a probe.
    fn information(&self) -> Bytes {
        let mut info = BytesMut::with_capacity(20);
        info.put_u64(self.at.as_nanos());
        info.put_u64(self.nonce);
        if let HeartbeatFor::Size(size) = self.what {
            info.put_u32(size);
        }
        info.freeze()
    }
}

impl Health {
    pub(crate) fn new(now: Time, chance: &mut ChaCha8Rng) -> Self {
        Health {
            nonces: ChaCha8Rng::seed_from_u64(chance.next_u64()).into(),
            asked: VecDeque::new(),
            used: now,
            period: Duration::ZERO,
            wanted: Wanted::No,
            counted: false,
            deferred: Time::NEVER,
            elsewhere: None,
            last_elsewhere: None,
            failed: 0,
            named: false,
            refused: false,
        }
    }

    /// The Heartbeat Information of a heartbeat that is sent now from this address.
    //= rfc5062#section-2.3
    pub(crate) fn information(&mut self, local: Address, now: Time) -> Bytes {
        self.ask(local, now, HeartbeatFor::Life)
    }

    /// The Heartbeat Information of a probe with a packet of `size` bytes.
    pub(crate) fn probe_information(&mut self, local: Address, now: Time, size: u32) -> Bytes {
        self.ask(local, now, HeartbeatFor::Size(size))
    }

    /// As `probe_information`, of a heartbeat that is a packet of a pair.
    pub(crate) fn pair_information(&mut self, local: Address, now: Time, second: bool) -> Bytes {
        self.ask(local, now, if second { HeartbeatFor::SecondOfPair } else { HeartbeatFor::FirstOfPair })
    }

    fn ask(&mut self, local: Address, at: Time, what: HeartbeatFor) -> Bytes {
        let asked = SentHeartbeat { nonce: self.nonces.draw(Rng::next_u64), local, at, what };
        if self.asked.len() == REMEMBERED {
            self.asked.pop_front();
        }
        self.asked.push_back(asked);
        asked.information()
    }

    /// The heartbeat with this information. Each can be taken once; `None` if this path sent no such heartbeat.
    pub(crate) fn answered(&mut self, info: &[u8]) -> Option<SentHeartbeat> {
        // The nonces are compared first, because a peer can send thousands of wrong answers.
        let nonce = u64::from_be_bytes(*info.get(NONCE..)?.first_chunk()?);
        let place =
            self.asked.iter().position(|asked| asked.nonce == nonce && asked.information() == info)?;
        self.asked.remove(place)
    }

    /// Counts a failed verification. Returns whether the next local address should be tried.
    pub(crate) fn verification_failed(&mut self) -> bool {
        self.failed += 1;
        let give_up = self.failed >= TRIES_A_PAIR;
        if give_up {
            self.failed = 0;
        }
        give_up
    }
}
