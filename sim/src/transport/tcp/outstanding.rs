//! The scoreboard: the segments that were sent and are not yet cumulatively acknowledged, numbered in the order of
//! first sending.

use std::collections::VecDeque;

use anabranch_proto::control::ranges::Ranges;

/// A segment that was sent.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Sent {
    /// The offset of its first byte.
    pub(super) start: u64,
    /// Bytes of user data.
    pub(super) length: u32,
    /// Whether it carries FIN.
    pub(super) fin: bool,
    /// Whether it was acknowledged selectively.
    sacked: bool,
    /// Whether it was sent again since it was last declared lost.
    again: bool,
}

impl Sent {
    /// One past its last sequence number.
    pub(super) fn end(&self) -> u64 {
        self.start + self.size()
    }

    fn size(&self) -> u64 {
        u64::from(self.length) + u64::from(self.fin)
    }
}

/// The outstanding segments. Unacknowledged segments below `lost_below` are declared lost.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    segments: VecDeque<Sent>,
    /// The number of the first outstanding segment.
    first: u64,
    /// The cumulatively acknowledged offset.
    acknowledged: u64,
    /// One past the highest offset sent.
    end_offset: u64,
    /// Selectively acknowledged segments, as distances from `first`.
    sacked: Ranges,
    lost_below: u64,
    /// No segment below this number waits to be sent again.
    sent_again_below: u64,
    /// Bytes estimated to be in the network (RFC 6675 §4, SetPipe).
    pipe: u64,
}

impl Outstanding {
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// The number of the first unacknowledged segment, or of the next new one.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// One past the highest number sent.
    pub(super) fn end(&self) -> u64 {
        self.first + self.segments.len() as u64
    }

    /// The cumulatively acknowledged offset.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// One past the highest offset sent.
    pub(super) fn end_offset(&self) -> u64 {
        self.end_offset
    }

    pub(super) fn get(&self, number: u64) -> Option<&Sent> {
        self.segments.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Bytes that were sent and are not cumulatively acknowledged: FlightSize.
    pub(super) fn bytes(&self) -> u64 {
        self.end_offset() - self.acknowledged
    }

    /// Bytes estimated to be in the network.
    //= rfc6675#section-4
    pub(super) fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Bytes that were declared lost and not yet sent again.
    pub(super) fn marked(&self) -> u64 {
        let waiting = |number: &u64| self.get(*number).is_some_and(|sent| !sent.sacked && !sent.again);
        let numbers = self.sent_again_below.max(self.first)..self.lost_below.max(self.first);
        numbers.filter(waiting).filter_map(|number| self.get(number)).map(Sent::size).sum()
    }

    /// A segment is sent for the first time.
    pub(super) fn push(&mut self, length: u32, fin: bool) -> Sent {
        let sent = Sent { start: self.end_offset, length, fin, sacked: false, again: false };
        self.end_offset = sent.end();
        self.pipe += sent.size();
        self.segments.push_back(sent);
        sent
    }

    /// A segment is sent again.
    pub(super) fn sent_again(&mut self, number: u64) {
        let before = self.in_pipe(number);
        if let Some(sent) = self.get_mut(number) {
            sent.again = true;
        }
        self.pipe += self.in_pipe(number) - before;
    }

    /// Everything below `offset` is acknowledged. Returns the bytes that were not acknowledged before.
    pub(super) fn acknowledge(&mut self, offset: u64) -> u64 {
        let (mut gone, mut new) = (0, 0);
        while let Some(sent) = self.segments.front().copied().filter(|sent| sent.end() <= offset) {
            self.pipe -= self.in_pipe_of(&sent, self.first);
            new += if sent.sacked { 0 } else { sent.size() };
            self.acknowledged = sent.end();
            self.segments.pop_front();
            self.first += 1;
            gone += 1;
        }
        self.sacked.advance(gone);
        new
    }

    /// Marks the whole segments in `from..to` as selectively acknowledged. Returns the bytes that were not acknowledged
    /// before.
    pub(super) fn sack(&mut self, from: u64, to: u64) -> u64 {
        let (from, to) = (self.numbers_from(from), self.numbers_to(to));
        if from >= to {
            return 0;
        }
        let mut new = Vec::new();
        self.sacked.insert(from, to, |start, end| new.push((start, end)));
        let mut bytes = 0;
        for number in new.into_iter().flat_map(|(start, end)| start..end) {
            let number = self.first + u64::from(number);
            self.pipe -= self.in_pipe(number);
            if let Some(sent) = self.get_mut(number) {
                sent.sacked = true;
                bytes += sent.size();
            }
        }
        bytes
    }

    pub(super) fn is_sacked(&self, number: u64) -> bool {
        self.get(number).is_some_and(|sent| sent.sacked)
    }

    /// One past the highest selectively acknowledged number; `None` if there is none.
    pub(super) fn sacked_end(&self) -> Option<u64> {
        (!self.sacked.is_empty()).then(|| self.first + u64::from(self.sacked.end()))
    }

    /// Declares segments lost that are far below acknowledged data: three separate runs or more than two segments of
    /// bytes lie above them. Returns the numbers newly declared lost.
    //= rfc6675#section-4
    pub(super) fn find_lost(&mut self, segment: u64) -> std::ops::Range<u64> {
        let (mut runs, mut bytes) = (0, 0);
        let mut lost_below = self.first;
        'runs: for (start, end) in self.sacked.iter().rev() {
            runs += 1;
            for number in (start..end).rev() {
                bytes += self.segments[number as usize].size();
                if bytes > 2 * segment || runs == 3 {
                    lost_below = self.first + u64::from(number);
                    break 'runs;
                }
            }
        }
        self.set_lost_below(lost_below)
    }

    /// Whether an outstanding segment was declared lost.
    pub(super) fn has_lost(&self) -> bool {
        self.lost_below > self.first
    }

    /// Declares the first segment lost.
    pub(super) fn first_is_lost(&mut self) -> std::ops::Range<u64> {
        self.set_lost_below(self.first + 1)
    }

    fn set_lost_below(&mut self, number: u64) -> std::ops::Range<u64> {
        let from = self.lost_below.max(self.first);
        let newly = from..number.min(self.end()).max(from);
        for lost in newly.clone() {
            let before = self.in_pipe(lost);
            self.lost_below = lost + 1;
            self.pipe -= before - self.in_pipe(lost);
        }
        newly
    }

    /// After a timeout: declares everything lost and forgets selective acknowledgements, because the receiver may have
    /// discarded that data.
    //= rfc2018#section-8
    pub(super) fn all_is_lost(&mut self) {
        self.lost_below = self.end();
        self.sent_again_below = self.first;
        self.sacked = Ranges::default();
        self.pipe = 0;
        self.segments.iter_mut().for_each(|sent| (sent.sacked, sent.again) = (false, false));
    }

    /// The lowest lost segment that was not sent again.
    pub(super) fn next_lost(&mut self) -> Option<u64> {
        if self.has_lost() { self.next_hole(self.lost_below) } else { None }
    }

    /// The lowest segment below acknowledged data that was not sent again.
    pub(super) fn next_gap(&mut self) -> Option<u64> {
        self.next_hole(self.sacked_end().unwrap_or(0))
    }

    fn next_hole(&mut self, below: u64) -> Option<u64> {
        let mut number = self.sent_again_below.max(self.first);
        while self.get(number).is_some_and(|sent| sent.sacked || sent.again) {
            number += 1;
        }
        self.sent_again_below = number;
        (number < below.min(self.end())).then_some(number)
    }

    /// The highest unacknowledged segment.
    pub(super) fn last_unacknowledged(&self) -> Option<u64> {
        let distance = self.segments.iter().rposition(|sent| !sent.sacked)?;
        Some(self.first + distance as u64)
    }

    /// Forgets all selective acknowledgements.
    pub(super) fn forget_sacks(&mut self) {
        if self.sacked.is_empty() {
            return;
        }
        for (start, end) in std::mem::take(&mut self.sacked).iter() {
            for sent in self.segments.range_mut(start as usize..end as usize) {
                sent.sacked = false;
                self.pipe += sent.size();
            }
        }
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Sent> {
        self.segments.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// What a segment adds to the pipe: its original unless that is lost, and its retransmission.
    fn in_pipe(&self, number: u64) -> u64 {
        self.get(number).map_or(0, |sent| self.in_pipe_of(sent, number))
    }

    fn in_pipe_of(&self, sent: &Sent, number: u64) -> u64 {
        if sent.sacked {
            return 0;
        }
        let copies = u64::from(number >= self.lost_below) + u64::from(sent.again);
        copies * sent.size()
    }

    /// The distance of the first segment that begins at `offset` or later.
    fn numbers_from(&self, offset: u64) -> u32 {
        self.segments.partition_point(|sent| sent.start < offset) as u32
    }

    /// One past the distance of the last segment that ends at `offset` or earlier.
    fn numbers_to(&self, offset: u64) -> u32 {
        self.segments.partition_point(|sent| sent.end() <= offset) as u32
    }
}
