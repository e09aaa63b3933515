//! Loss recovery of ns-2 2.35's `Agent/TCP/Sack1`, in packets.
//!
//! It counts differently from RFC 6675. One counter estimates the packets in the network. It is set at the start of
//! recovery, every acknowledgement lowers it regardless of its content, and every packet raises it. A hole is sent
//! again once, as soon as anything above it has arrived. After a timeout everything is sent again in order.

use anabranch_proto::control::window::Loss;
use anabranch_proto::{Duration, Time};

use super::flight::{AckResult, Flight};
use super::recovery::Next;
use super::segment::Why;

const DUP_THRESHOLD: u32 = 3;

/// The state of ns-2's recovery.
#[derive(Debug, Default)]
pub(super) struct Sack1 {
    /// The next packet in order. A timeout resets it to the first outstanding packet.
    next: u64,
    duplicates: u32,
    recovering: bool,
    /// Whether no new acknowledgement has arrived since the last timeout. Duplicates are then ignored.
    timed_out: bool,
    /// The highest number sent when recovery or the last timeout began.
    recover: Option<u64>,
    /// The estimated number of packets in the network during recovery.
    pipe: i64,
    /// No hole below this number is sent again.
    offered_below: u64,
    /// Whether the first packet is sent again regardless of the window.
    repair: bool,
    /// Whether one new packet is sent in answer to a duplicate.
    one: bool,
    /// Whether the last event allows any packet to leave.
    open: bool,
}

impl Sack1 {
    pub(super) fn new() -> Self {
        Sack1 { open: true, ..Sack1::default() }
    }

    /// An acknowledgement has arrived. The scoreboard already contains it.
    pub(super) fn acknowledged(&mut self, flight: &mut Flight, news: &AckResult) {
        (self.repair, self.one) = (false, false);
        self.next = self.next.max(flight.outstanding.first());
        if self.recovering {
            self.in_recovery(flight, news);
            self.open = true;
        } else {
            self.outside(flight, news);
            self.open = self.duplicates == 0;
        }
    }

    fn in_recovery(&mut self, flight: &mut Flight, news: &AckResult) {
        self.pipe -= 1;
        let first = flight.outstanding.first();
        if news.advances && self.recover.is_none_or(|recover| first > recover) {
            (self.recovering, self.recover, self.timed_out) = (false, None, false);
            self.new_acknowledgement(flight, news.now);
        } else if news.advances {
            self.pipe -= 1;
            flight.rto.end_back_off();
            flight.restart_timer(news.now);
        }
    }

    fn outside(&mut self, flight: &mut Flight, news: &AckResult) {
        if news.advances {
            let rtt = self.new_acknowledgement(flight, news.now);
            self.timed_out = false;
            flight.grow(news, rtt);
        } else if self.timed_out {
            flight.outstanding.forget_sacks();
        } else if news.sacked > 0 {
            self.duplicates += 1;
            if self.duplicates == DUP_THRESHOLD {
                self.enter(flight, news.now);
            } else {
                self.one = self.duplicates < DUP_THRESHOLD && flight.config.limited_transmit;
            }
        }
    }

    fn new_acknowledgement(&mut self, flight: &mut Flight, now: Time) -> Option<Duration> {
        self.duplicates = 0;
        self.offered_below = 0;
        flight.outstanding.forget_sacks();
        let rtt = flight.measure(now);
        flight.restart_timer(now);
        rtt
    }

    /// The third duplicate has arrived. Enters recovery, unless a timeout has already reduced the window for these
    /// packets.
    fn enter(&mut self, flight: &mut Flight, now: Time) {
        let (first, end) = (flight.outstanding.first(), flight.outstanding.end());
        if first > 0 && self.recover.is_some_and(|recover| first <= recover + 1) {
            return;
        }
        self.recovering = true;
        self.recover = Some(end - 1);
        self.pipe = (end - first) as i64 - i64::from(DUP_THRESHOLD);
        self.offered_below = first + 1;
        self.repair = true;
        flight.counts.fast_recoveries += 1;
        flight.cut(now, Loss::Missing, 0);
        flight.note_marked(now, first..first + 1, Why::Missing);
        flight.stop_timing();
        flight.restart_timer(now);
    }

    /// The retransmission timer has expired.
    pub(super) fn timed_out(&mut self, flight: &mut Flight, now: Time) {
        let (first, end) = (flight.outstanding.first(), flight.outstanding.end());
        flight.cut(now, Loss::Timeout, 0);
        flight.outstanding.forget_sacks();
        flight.note_marked(now, first..end, Why::Timeout);
        flight.stop_timing();
        *self =
            Sack1 { next: first, timed_out: true, recover: Some(end - 1), open: true, ..Sack1::default() };
    }

    /// The next packet to send, if the windows allow it.
    pub(super) fn next(&self, flight: &Flight) -> Option<Next> {
        let first = flight.outstanding.first();
        if self.repair {
            return Some(Next::Again(first, Why::Missing));
        }
        if self.one {
            return self.in_answer(flight);
        }
        if !self.open {
            return None;
        }
        let cwnd = flight.window.segments(flight.segment());
        if !self.recovering {
            return if self.next < first + cwnd as u64 { self.in_order(flight) } else { None };
        }
        if self.pipe >= cwnd as i64 {
            return None;
        }
        match self.hole(flight) {
            Some(number) => Some(Next::Again(number, Why::Missing)),
            None => self.in_order(flight),
        }
    }

    /// The next packet in order, within the receiver's window.
    fn in_order(&self, flight: &Flight) -> Option<Next> {
        if self.next < flight.outstanding.end() {
            return Some(Next::Again(self.next, Why::Timeout));
        }
        flight.new_data().filter(|data| flight.admits(*data)).map(|_| Next::New)
    }

    /// One packet in answer to a duplicate, within cwnd and the number of duplicates.
    fn in_answer(&self, flight: &Flight) -> Option<Next> {
        let ahead = (self.next + 1 - flight.outstanding.first()) as f64;
        let allowed = flight.window.segments(flight.segment()) + f64::from(self.duplicates);
        if ahead <= allowed { self.in_order(flight) } else { None }
    }

    /// The lowest hole below an arrived packet that was not sent again.
    fn hole(&self, flight: &Flight) -> Option<u64> {
        let sacked_end = flight.outstanding.sacked_end()?;
        let from = self.offered_below.max(flight.outstanding.first());
        (from..sacked_end).find(|number| !flight.outstanding.is_sacked(*number))
    }

    /// The packet has left.
    pub(super) fn sent(&mut self, flight: &mut Flight, next: Next) {
        let number = match next {
            Next::Again(number, _) => number,
            Next::New => flight.outstanding.end() - 1,
        };
        self.one = false;
        if std::mem::replace(&mut self.repair, false) {
            return;
        }
        if number < self.next {
            self.offered_below = number + 1;
        }
        self.next = self.next.max(number + 1);
        self.pipe += 1;
    }

    /// Whether nothing is being repaired.
    pub(super) fn is_open(&self) -> bool {
        !self.recovering && !self.timed_out
    }

    /// Bytes in flight, for observers.
    pub(super) fn in_flight(&self, flight: &Flight) -> u64 {
        let first = flight.outstanding.first();
        let packets = match self.recovering {
            true => u64::try_from(self.pipe).unwrap_or(0),
            false => self.next.saturating_sub(first),
        };
        packets * flight.segment()
    }
}
