//! Controlled Delay (RFC 8289): a packet is dropped at the head of the queue when packets have waited longer than `target`
//! for at least `interval`.

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
    // The control law spaces drops by interval / √count while packets wait for too long, and resumes from the count that
    // it had when that begins again soon.
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
