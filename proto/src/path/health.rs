//! Is the path alive: heartbeats, their answers, and what failures mean (RFC 9260 §5.4, §8.2, §8.3).

use std::net::IpAddr;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

use super::{Path, PathState, PathView};
use crate::wire::Address;
use crate::{Config, Duration, Time};

/// Failed verifications of one pair of addresses before the next local address is tried.
const TRIES_A_PAIR: u32 = 2;

/// What is known about a path's reachability besides its error count.
pub(crate) struct Health {
    /// Known only to whoever receives packets at the path's remote address.
    nonce: u64,
    /// When something that measures the path was last sent: new data or a heartbeat.
    pub(crate) used: Time,
    /// How long the path must be idle before its next heartbeat.
    pub(crate) period: Duration,
    /// A heartbeat shall leave at the next poll.
    pub(crate) wanted: bool,
    /// Verifications that failed with the present pair of addresses.
    failed: u32,
    /// The user named the path's remote address in the connect call.
    pub(crate) named: bool,
}

impl Health {
    pub(crate) fn new(now: Time, chance: &mut ChaCha8Rng) -> Self {
        Health {
            nonce: chance.next_u64(),
            used: now,
            period: Duration::ZERO,
            wanted: false,
            failed: 0,
            named: false,
        }
    }

    /// The nonce of a pair: what is asked from one local address verifies no other.
    fn nonce_from(&self, local: Address) -> u64 {
        let bits = match local.ip {
            IpAddr::V4(ip) => ip.to_bits().into(),
            IpAddr::V6(ip) => ip.to_bits(),
        };
        self.nonce ^ bits as u64 ^ (bits >> 64) as u64
    }

    /// The Heartbeat Information of a heartbeat sent now from this address: when, and the nonce.
    pub(crate) fn information(&self, local: Address, now: Time) -> Bytes {
        let mut info = BytesMut::with_capacity(16);
        info.put_u64(now.as_nanos());
        info.put_u64(self.nonce_from(local));
        info.freeze()
    }

    /// The same of a heartbeat that probes whether packets of `size` bytes get through.
    pub(crate) fn probe_information(&self, local: Address, now: Time, size: u32) -> Bytes {
        let mut info = BytesMut::with_capacity(20);
        info.put_slice(&self.information(local, now));
        info.put_u32(size);
        info.freeze()
    }

    /// The size of the probe that came back with this information; `None` if it is no probe of this path.
    pub(crate) fn probed(&self, local: Address, info: &[u8]) -> Option<u32> {
        let (heartbeat, size) = info.split_at_checked(16)?;
        let ours = heartbeat[8..] == self.nonce_from(local).to_be_bytes();
        ours.then_some(u32::from_be_bytes(size.try_into().ok()?))
    }

    /// When the heartbeat was sent that came back with this information; `None` if it is not of this path.
    pub(crate) fn answered(&self, local: Address, mut info: &[u8], now: Time) -> Option<Time> {
        if info.len() != 16 {
            return None;
        }
        let sent = Time::from_nanos(info.get_u64());
        (info.get_u64() == self.nonce_from(local) && sent <= now).then_some(sent)
    }

    /// One more verification has failed; whether the next local address should be tried.
    pub(crate) fn verification_failed(&mut self) -> bool {
        self.failed += 1;
        let give_up = self.failed >= TRIES_A_PAIR;
        if give_up {
            self.failed = 0;
        }
        give_up
    }
}

impl Path {
    /// Sets the time of the next heartbeat: HB.interval and an RTO after the path was last used, jittered by
    /// half an RTO either way.
    //= rfc9260#section-8.3
    pub(crate) fn schedule_heartbeat(&mut self, view: &PathView, config: &Config, chance: &mut ChaCha8Rng) {
        let Some(interval) = self.heartbeat_interval(config) else {
            self.timers.heartbeat = Time::NEVER;
            return;
        };
        self.health.period = interval + jittered(view.rto, config.heartbeat_jitter, chance);
        self.timers.heartbeat = self.health.used + self.health.period;
    }
}

fn jittered(rto: Duration, jitter: bool, chance: &mut ChaCha8Rng) -> Duration {
    if !jitter {
        return rto;
    }
    let rto = rto.as_nanos() as u64;
    Duration::from_nanos(rto / 2 + chance.next_u64() % rto.max(1))
}

impl PathView {
    /// Whether data should take this path: it is active, and its local address is up.
    pub fn carries(&self) -> bool {
        self.state == PathState::Active && self.up
    }

    /// Whether the path has been verified, and still is one.
    pub(crate) fn confirmed(&self) -> bool {
        !matches!(self.state, PathState::Unconfirmed | PathState::Removed)
    }
}
