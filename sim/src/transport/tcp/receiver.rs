//! The receiving half of a connection: the data that has arrived, and when to acknowledge it.

use anabranch_proto::{Duration, Time};

use super::config::{RecoveryKind, TcpConfig};

/// The largest window that fits the field without scaling.
const UNSCALED: u64 = 65_535;

/// A limit that no stream reaches.
pub(super) const UNBOUNDED: u64 = 1 << 62;

/// The data that arrived, the data that was read, and the acknowledgements that follow. Offsets count user data and
/// FIN.
#[derive(Debug)]
pub(super) struct Receiver {
    /// The next offset expected.
    next: u64,
    /// Runs beyond it; the run that arrived last comes first.
    beyond: Vec<(u64, u64)>,
    /// How many of the newest runs are remembered for SACK blocks.
    remembered: usize,
    /// Bytes in order that the application has read.
    read: u64,
    /// The offset of FIN.
    fin: Option<u64>,
    /// Size of the buffer in bytes.
    buffer: u64,
    /// One past the highest offset that the last acknowledgement allows.
    admitted: u64,
    /// Segments that arrived more than once.
    duplicates: u64,
    policy: AckPolicy,
    /// In-order segments since the last acknowledgement.
    waiting: u32,
    /// Whether an acknowledgement must leave now.
    due: bool,
    /// When an acknowledgement must leave at the latest.
    timer: Option<Time>,
}

/// When acknowledgements are sent.
#[derive(Copy, Clone, Debug)]
struct AckPolicy {
    every: u32,
    delay: Duration,
    blocks: usize,
    segment: u64,
    /// As ns-2's sink. It also treats a repetition of the last in-order segment as in order, and it remembers no more
    /// runs for SACK blocks than an acknowledgement can report.
    of_ns2: bool,
}

impl Receiver {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Receiver {
            next: 0,
            beyond: Vec::new(),
            remembered: 0,
            read: 0,
            fin: None,
            buffer: config.receive_window,
            admitted: config.receive_window,
            duplicates: 0,
            policy: AckPolicy {
                every: config.ack_every,
                delay: config.ack_delay,
                blocks: config.sack_blocks as usize,
                segment: u64::from(config.segment_size),
                of_ns2: config.recovery == RecoveryKind::Sack1,
            },
            waiting: 0,
            due: false,
            timer: None,
        }
    }

    /// Its owner controls the buffer: it accepts everything, and its own window has no meaning.
    pub(super) fn set_unbounded(&mut self) {
        (self.buffer, self.admitted) = (UNBOUNDED, UNBOUNDED);
    }

    /// The next offset expected.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Segments that arrived more than once.
    pub(super) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Bytes that the application can read.
    pub(super) fn readable(&self) -> u64 {
        let data = self.fin.filter(|fin| *fin < self.next).unwrap_or(self.next);
        data - self.read
    }

    /// Bytes that the application has read.
    #[cfg(test)]
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// Whether everything up to FIN has arrived.
    pub(super) fn ended(&self) -> bool {
        self.fin.is_some_and(|fin| fin < self.next)
    }

    /// The application has read this number of bytes. If the window opens far enough, it is advertised.
    //= rfc9293#section-3.8.6.2.2
    pub(super) fn take(&mut self, bytes: u64) {
        self.read += bytes;
        let opened = (self.read + self.buffer).saturating_sub(self.admitted);
        let worth = (2 * self.policy.segment).min(self.buffer / 2);
        let closed = self.admitted < self.next + self.policy.segment;
        self.due |= closed && opened >= worth && !self.ended();
    }

    /// A segment with the offsets `start..end` has arrived. If `fin` is set, the last one is FIN.
    pub(super) fn arrived(&mut self, now: Time, start: u64, end: u64, fin: bool) {
        // Data beyond the window is not accepted, but it is acknowledged.
        if start == end || end > self.read + self.buffer + u64::from(fin) {
            self.due |= start != end;
            return;
        }
        if fin {
            self.fin = Some(end - 1);
        }
        let in_order = start <= self.next && (end > self.next || self.policy.of_ns2 && end == self.next);
        let filling = !self.beyond.is_empty();
        if end <= self.next || self.beyond.iter().any(|run| run.0 <= start && end <= run.1) {
            self.duplicates += 1;
        }
        self.add(start, end);
        self.waiting += 1;
        // Out of order, repeated, or filling a gap: the sender must be told at once.
        //= rfc5681#section-4.2
        if !in_order || filling || fin || self.waiting >= self.policy.every {
            self.due = true;
        } else if self.timer.is_none() {
            self.timer = Some(now + self.policy.delay);
        }
    }

    /// Adds the run and joins it with adjacent ones. The result becomes the newest run.
    fn add(&mut self, start: u64, end: u64) {
        if start <= self.next {
            self.next = self.next.max(end);
            while let Some(at) = self.beyond.iter().position(|run| run.0 <= self.next) {
                self.next = self.next.max(self.remove(at).1);
            }
            return;
        }
        let mut joined = (start, end);
        while let Some(at) = self.beyond.iter().position(|run| run.1 >= joined.0 && run.0 <= joined.1) {
            let run = self.remove(at);
            joined = (joined.0.min(run.0), joined.1.max(run.1));
        }
        self.beyond.insert(0, joined);
        let most = if self.policy.of_ns2 { self.policy.blocks } else { usize::MAX };
        self.remembered = (self.remembered + 1).min(most);
    }

    /// Removes a run of those beyond the next offset expected.
    fn remove(&mut self, at: usize) -> (u64, u64) {
        self.remembered -= usize::from(at < self.remembered);
        self.beyond.remove(at)
    }

    /// The other end does not support SACK blocks.
    pub(super) fn without_sack(&mut self) {
        self.policy.blocks = 0;
    }

    /// Whether an acknowledgement must leave now.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.due || self.timer.is_some_and(|timer| timer <= now)
    }

    /// Requests an immediate acknowledgement.
    pub(super) fn ask(&mut self) {
        self.due = true;
    }

    /// Whether a segment that arrives when its timer expires is processed first. Timer and segment are often due at the
    /// same time: if one acknowledgement leaves at once and another one delay later, the answers to both are one delay
    /// apart as well. In ns-2 the rounding of its clock decides, nearly always for the segment.
    pub(super) fn lets_arrivals_go_first(&self) -> bool {
        self.policy.of_ns2 && self.timer.is_some()
    }

    /// When an acknowledgement must leave at the latest.
    pub(super) fn wakes(&self) -> Option<Time> {
        self.timer
    }

    /// The SACK blocks of an acknowledgement that leaves now, with the newest run first.
    //= rfc2018#section-4
    pub(super) fn acknowledge(&mut self) -> impl Iterator<Item = (u64, u64)> + '_ {
        (self.waiting, self.due, self.timer) = (0, false, None);
        self.beyond.iter().copied().take(self.policy.blocks.min(self.remembered))
    }

    /// The window field. What it allows is never taken back.
    pub(super) fn window(&mut self, scale: u8) -> u16 {
        let free = (self.read + self.buffer).max(self.admitted).saturating_sub(self.next);
        let field = (free >> scale).min(UNSCALED);
        self.admitted = self.admitted.max(self.next + (field << scale));
        field as u16
    }
}

/// The scale with which a window of `bytes` fits the field.
//= rfc7323#section-2.3
pub(super) fn scale(bytes: u64) -> u8 {
    (0..=14).find(|scale| bytes >> scale <= UNSCALED).unwrap_or(14)
}

#[cfg(test)]
mod tests {
    use super::super::config::Variant;
    use super::*;

    /// Of the runs 6, 8, 2 and 4, which arrive in this order, an acknowledgement reports two. Then 1 arrives, and 2 is
    /// in order, too.
    #[test]
    fn ns2s_sink_forgets_the_runs_that_it_could_not_report() {
        for (variant, blocks) in [(Variant::Standard, &[(4, 5), (8, 9)][..]), (Variant::Sack1, &[(4, 5)])] {
            let mut receiver = Receiver::new(&TcpConfig { sack_blocks: 2, ..variant.defaults(1) });
            let mut reported = Vec::new();
            for segment in [0, 6, 8, 2, 4, 1] {
                receiver.arrived(Time::ZERO, segment, segment + 1, false);
                reported = receiver.acknowledge().collect();
            }
            assert_eq!((receiver.next(), &reported[..]), (3, blocks), "{variant:?}");
            receiver.arrived(Time::ZERO, 9, 10, false);
            assert_eq!(receiver.acknowledge().collect::<Vec<_>>(), [(8, 10), (4, 5)], "{variant:?}");
        }
    }
}
