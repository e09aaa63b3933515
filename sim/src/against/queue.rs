//! The queue of an interface at the captured end. A capture shows a packet when it leaves the host. If the interface is
//! slow, packets leave one after the other at its rate, and a packet was sent by the endpoint before it leaves. The
//! rate can be seen in the capture.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anabranch_proto::{Duration, Time};

/// A rate is known if so many packets left at it.
const ENOUGH: usize = 10;
/// Times may differ by one part in so many.
const PRECISION: u128 = 50;
/// The resolution of most captures.
const RESOLUTION: u128 = 1000;
/// One in so many packets may leave faster than at the rate.
const FASTER: usize = 1000;

/// An interface is slow if a packet of so many bytes takes longer than so many nanoseconds.
const PACKET: u32 = 1500;
const NEGLIGIBLE: u128 = 300_000;

/// A number of bytes and the time in which they leave.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Rate {
    bytes: u32,
    nanos: u64,
}

impl Rate {
    /// How long so many bytes take, in nanoseconds.
    fn nanos(self, bytes: u32) -> u128 {
        u128::from(bytes) * u128::from(self.nanos) / u128::from(self.bytes)
    }

    fn time(self, bytes: u32) -> Duration {
        Duration::from_nanos(u64::try_from(self.nanos(bytes)).unwrap_or(u64::MAX))
    }

    /// Whether a packet that leaves at `at` had to wait for one of so many bytes that left at `before`.
    pub(super) fn waited(self, before: Time, bytes: u32, at: Time) -> bool {
        let longest = self.nanos(bytes) * (PRECISION + 1) / PRECISION + RESOLUTION;
        at.since(before).as_nanos() <= longest
    }

    fn by(self, other: Rate) -> u128 {
        u128::from(self.bytes) * u128::from(other.nanos)
    }

    /// Whether `other` is as fast, but for the precision of times.
    fn is_about(self, other: Rate) -> bool {
        other.by(self) * (PRECISION + 1) >= self.by(other) * PRECISION
    }
}

/// The packets of one source address that left: when, and of how many bytes.
#[derive(Default, Debug)]
pub(super) struct Departures {
    last: Option<(Time, u32)>,
    steps: Vec<Rate>,
    at_once: usize,
}

impl Departures {
    pub(super) fn push(&mut self, at: Time, bytes: u32) {
        let Some((before, size)) = self.last.replace((at, bytes)) else { return };
        match u64::try_from(at.since(before).as_nanos()).unwrap_or(u64::MAX) {
            0 => self.at_once += 1,
            nanos => self.steps.push(Rate { bytes: size, nanos }),
        }
    }

    /// The rate at which most of the packets left that followed each other closely; `None` if there is none, or if the
    /// interface is fast.
    pub(super) fn rate(mut self) -> Option<Rate> {
        self.steps.sort_by(|a, b| b.by(*a).cmp(&a.by(*b)));
        let may_be_faster = (self.steps.len() / FASTER).checked_sub(self.at_once)?;
        let mut end = 0;
        let mut best = None;
        for (first, fastest) in self.steps.iter().enumerate().take(may_be_faster + 1) {
            while self.steps.get(end).is_some_and(|step| fastest.is_about(*step)) {
                end += 1;
            }
            let count = end - first;
            if count >= ENOUGH && best.is_none_or(|(most, _)| count > most) {
                best = Some((count, self.steps[first + count / 2]));
            }
        }
        best.map(|(_, rate)| rate).filter(|rate| rate.nanos(PACKET) > NEGLIGIBLE)
    }
}

/// The queues of our endpoint, by source address.
#[derive(Clone, Default, Debug)]
pub(super) struct Queues(BTreeMap<IpAddr, (Rate, Time)>);

impl Queues {
    pub(super) fn of(rates: &BTreeMap<IpAddr, Rate>) -> Queues {
        Queues(rates.iter().map(|(from, rate)| (*from, (*rate, Time::ZERO))).collect())
    }

    /// When a packet leaves that is sent now.
    pub(super) fn leaves(&mut self, now: Time, from: IpAddr, bytes: u32) -> Time {
        let Some((rate, free)) = self.0.get_mut(&from) else { return now };
        let leaves = now.max(*free);
        *free = leaves + rate.time(bytes);
        leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn departures(times: impl IntoIterator<Item = u64>) -> Departures {
        let mut all = Departures::default();
        times.into_iter().for_each(|micros| all.push(Time::from_nanos(micros * 1000), 1500));
        all
    }

    #[test]
    fn a_rate_is_seen_where_packets_follow_each_other() {
        // Three of four packets wait for 12 ms; then the interface is idle.
        let slow = departures((0..40).map(|n| n * 12_000 + n / 4 * 30_000));
        let rate = slow.rate().expect("a rate");
        assert_eq!(rate.time(125), Duration::from_millis(1));
        assert!(rate.waited(Time::ZERO, 1500, Time::from_nanos(12_001_000)));
        assert!(!rate.waited(Time::ZERO, 1500, Time::from_nanos(12_500_000)));
        assert_eq!(departures((0..40).map(|n| n * n * 500)).rate(), None);
        assert_eq!(departures((0..40).map(|n| n * 12)).rate(), None);
        // Packets that leave together show that the interface is fast.
        assert_eq!(departures((0..40).map(|n| n / 2 * 12_000)).rate(), None);
        assert_eq!(departures(0..5).rate(), None);
    }

    #[test]
    fn a_packet_leaves_after_those_before_it() {
        let rate = departures((0..40).map(|n| n * 12_000)).rate().expect("a rate");
        let from = IpAddr::from([10, 0, 0, 2]);
        let mut queues = Queues::of(&BTreeMap::from([(from, rate)]));
        let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
        assert_eq!([5, 5, 100].map(|now| queues.leaves(at(now), from, 1500)), [at(5), at(17), at(100)]);
        assert_eq!(queues.leaves(at(5), IpAddr::from([10, 0, 0, 3]), 1500), at(5));
    }
}
