//! Controlled Delay (RFC 8289): a packet is dropped at the head of the queue when packets have waited longer than
//! `target` for at least `interval`.

use std::collections::VecDeque;

use anabranch_proto::{Duration, Time};

use crate::scenario;

/// The state of CoDel before one link direction, and the packets that wait.
#[derive(Debug)]
pub(crate) struct Codel<P> {
    target: Duration,
    interval: Duration,
    waiting: VecDeque<Waiting<P>>,
    bytes: u64,
    /// The largest packet so far: less than that in the queue is no reason to drop.
    largest: u32,
    /// When packets will have waited for too long for an interval, if they do now.
    first_above: Option<Time>,
    dropping: bool,
    drop_next: Time,
    count: u32,
    last_count: u32,
}

#[derive(Debug)]
struct Waiting<P> {
    packet: P,
    size: u32,
    since: Time,
}

impl<P> Codel<P> {
    pub(crate) fn new(codel: &scenario::Codel) -> Self {
        Codel {
            target: codel.target,
            interval: codel.interval,
            waiting: VecDeque::new(),
            bytes: 0,
            largest: 0,
            first_above: None,
            dropping: false,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
        }
    }

    pub(crate) fn enter(&mut self, now: Time, packet: P, size: u32) {
        self.bytes += u64::from(size);
        self.largest = self.largest.max(size);
        self.waiting.push_back(Waiting { packet, size, since: now });
    }

    /// The packets that wait, the first to leave first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &P> {
        self.waiting.iter().map(|waiting| &waiting.packet)
    }

    /// The packet that entered last, if it still waits.
    pub(crate) fn newest(&self) -> Option<&P> {
        self.waiting.back().map(|waiting| &waiting.packet)
    }

    /// All that waits goes.
    pub(crate) fn clear(&mut self) -> impl Iterator<Item = (P, u32)> {
        (self.bytes, self.first_above, self.dropping) = (0, None, false);
        std::mem::take(&mut self.waiting).into_iter().map(|waiting| (waiting.packet, waiting.size))
    }

    /// The packet that leaves now, with its size; `dropped` gets those before it.
    //= rfc8289#section-5.5
    // The control law spaces drops by interval / √count while packets wait for too long, and resumes from the count
    // that it had when that begins again soon.
    pub(crate) fn leave(&mut self, now: Time, mut dropped: impl FnMut(P, u32)) -> Option<(P, u32)> {
        let (mut head, mut late) = self.head(now);
        if self.dropping {
            self.dropping = late;
            while self.dropping && now >= self.drop_next {
                head.take().into_iter().for_each(|(packet, size)| dropped(packet, size));
                self.count += 1;
                (head, late) = self.head(now);
                self.dropping = late;
                if late {
                    self.drop_next = self.after(self.drop_next);
                }
            }
        } else if late {
            head.take().into_iter().for_each(|(packet, size)| dropped(packet, size));
            (head, _) = self.head(now);
            self.dropping = true;
            let recent = self.drop_next > Time::ZERO && now.since(self.drop_next) < self.interval * 16;
            let delta = self.count.saturating_sub(self.last_count);
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.last_count = self.count;
            self.drop_next = self.after(now);
        }
        head
    }

    /// Takes the head, and says whether packets have waited for too long for an interval.
    //= rfc8289#section-5.6
    fn head(&mut self, now: Time) -> (Option<(P, u32)>, bool) {
        let Some(Waiting { packet, size, since }) = self.waiting.pop_front() else {
            self.first_above = None;
            return (None, false);
        };
        self.bytes -= u64::from(size);
        let mut late = false;
        if now - since < self.target || self.bytes <= u64::from(self.largest) {
            self.first_above = None;
        } else {
            match self.first_above {
                None => self.first_above = Some(now + self.interval),
                Some(first) => late = now >= first,
            }
        }
        (Some((packet, size)), late)
    }

    fn after(&self, time: Time) -> Time {
        time + self.interval.div_f64(f64::from(self.count).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * MS)
    }

    fn codel() -> Codel<u64> {
        let limit = scenario::Amount::Packets(u32::MAX);
        let (target, interval) = (Duration::from_millis(5), Duration::from_millis(100));
        Codel::new(&scenario::Codel { limit, target, interval })
    }

    /// The times, in milliseconds, at which packets are dropped, when one leaves each millisecond.
    fn drops(codel: &mut Codel<u64>, times: std::ops::Range<u64>) -> Vec<u64> {
        let mut drops = Vec::new();
        for now in times {
            codel.leave(ms(now), |_, _| drops.push(now));
        }
        drops
    }

    /// The first drop is `interval` after packets have begun to be late, and the n-th follows the one before by
    /// interval / √(n - 1) (section 5.5 with the control law of 5.6).
    #[test]
    fn drops_follow_the_control_law() {
        let mut codel = codel();
        (0..2000).for_each(|n| codel.enter(ms(0), n, 1500));
        let drops = drops(&mut codel, 0..1000);
        let mut expected = vec![105];
        let mut next = 105.0;
        for count in 1.. {
            next += 100.0 / f64::from(count).sqrt();
            if next >= 1000.0 {
                break;
            }
            expected.push(next.ceil() as u64);
        }
        assert_eq!(drops, expected);
    }

    #[test]
    fn short_delays_and_the_last_packet_are_left_alone() {
        let mut short = codel();
        for now in 0..1000 {
            short.enter(ms(now), now, 1500);
            if now >= 4 {
                assert_eq!(
                    short.leave(ms(now), |_, _| panic!("4 ms are below the target")),
                    Some((now - 4, 1500))
                );
            }
        }
        let mut last = codel();
        for n in 0..10 {
            last.enter(ms(n * 300), n, 1500);
            assert!(last.leave(ms(n * 300 + 299), |_, _| panic!("nothing is behind it")).is_some());
        }
    }

    /// When packets are late again soon after, dropping begins with the rate that it had reached.
    #[test]
    fn the_rate_is_remembered_for_a_while() {
        let late_again = |pause: u64| {
            let mut codel = codel();
            (0..1000).for_each(|n| codel.enter(ms(0), n, 1500));
            let first = drops(&mut codel, 0..600).len();
            codel.clear().for_each(drop);
            let begin = 600 + pause;
            (0..1000).for_each(|n| codel.enter(ms(begin), n, 1500));
            (first, drops(&mut codel, begin..begin + 300).len())
        };
        let (first, soon) = late_again(1);
        let (_, later) = late_again(10_000);
        assert!(first > 5 && soon > later, "{first} {soon} {later}");
    }
}
