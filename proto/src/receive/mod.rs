//! What has arrived: the Cumulative TSN, the runs beyond gaps, the receive buffer, and when to send a SACK
//! (RFC 9260 §6.2, §6.7).

mod interleaved;
mod reassembly;

use smallvec::SmallVec;

use crate::config::Config;
use crate::path::PathId;
use crate::rules::{FirstData, GapFilled, WindowUpdates};
use crate::wire::chunk::{Data, GapBlock, IData, SACK_HEADER, Sack, SkippedMessage, padded};
use crate::{Delivery, Ssn, Time, Tsn};
use reassembly::Reassembly;

/// The farthest that a Gap Ack Block can reach.
const REACH: u32 = u16::MAX as u32;
/// Duplicate TSNs reported in one SACK at most.
const DUPLICATES: usize = 16;

/// The receiving half of an association.
pub(crate) struct Receiver {
    /// All up to this TSN have arrived.
    cumulative: Tsn,
    /// No chunk is taken that is further beyond it.
    reach: u32,
    first: Tsn,
    /// Runs that have arrived beyond gaps, ascending, both ends included.
    runs: Vec<(Tsn, Tsn)>,
    duplicates: SmallVec<[Tsn; 4]>,
    reassembly: Reassembly,
    buffer: u64,
    /// Bytes of our largest packet, or of the peer's largest chunk if that is larger: what there has to be room for.
    packet: u64,
    /// Bytes of chunks in the buffer: not reassembled, or not read.
    held: u64,
    /// The window that the last SACK, or INIT, announced.
    announced: u64,
    pub(crate) schedule: Schedule,
    /// The path that the last DATA came by: where the SACK goes.
    pub(crate) from: PathId,
}

/// When the next SACK is due.
pub(crate) struct Schedule {
    /// Packets with DATA since the last SACK.
    packets: u32,
    /// When it is due at the latest; [`Time::NEVER`] while none is owed.
    pub(crate) deadline: Time,
    /// It is due now.
    pub(crate) now: bool,
}

/// What became of the DATA chunks of one packet.
#[derive(Default)]
pub(crate) struct Arrival {
    chunks: u32,
    at_once: bool,
    /// FORWARD TSNs among them.
    forwards: u32,
}

impl Arrival {
    /// Counts a FORWARD TSN; whether it is looked at, being one of the first `most` of its packet.
    pub(crate) fn admits_forward(&mut self, most: u32) -> bool {
        self.forwards += 1;
        self.forwards <= most
    }

    /// Whether the packet had DATA at all.
    pub(crate) fn any(&self) -> bool {
        self.chunks > 0
    }
}

/// What became of one DATA chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    /// It is new and held or delivered.
    New,
    /// It had arrived before.
    Duplicate,
    /// There was no room for it.
    NoRoom,
}

impl Receiver {
    pub(crate) fn new(first: Tsn, config: &Config) -> Self {
        Receiver {
            cumulative: first.prev(),
            reach: REACH,
            first,
            runs: Vec::new(),
            duplicates: SmallVec::new(),
            reassembly: Reassembly::new(Ssn(config.first_ssn)),
            buffer: u64::from(config.receive_buffer),
            packet: u64::from(config.mtu),
            held: 0,
            announced: u64::from(config.receive_buffer),
            schedule: Schedule { packets: 0, deadline: Time::NEVER, now: false },
            from: PathId(0),
        }
    }

    pub(crate) fn cumulative(&self) -> Tsn {
        self.cumulative
    }

    /// Whether anything has arrived beyond a gap.
    pub(crate) fn has_gap(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Takes a DATA chunk.
    pub(crate) fn data(&mut self, data: Data, rules: &crate::Rules, arrival: &mut Arrival) -> Taken {
        let taken = self.admit(data.tsn, padded(data.size()) as u64, data.immediate, rules, arrival);
        if taken == Taken::New {
            self.reassembly.insert(data);
            self.deliver_parts();
        }
        taken
    }

    /// Takes an I-DATA chunk.
    pub(crate) fn idata(&mut self, data: IData, rules: &crate::Rules, arrival: &mut Arrival) -> Taken {
        let taken = self.admit(data.tsn, padded(data.size()) as u64, data.immediate, rules, arrival);
        if taken == Taken::New {
            self.held -= self.reassembly.insert_interleaved(data);
            self.deliver_parts();
        }
        taken
    }

    /// Messages come as I-DATA.
    pub(crate) fn interleave(&mut self) {
        self.reassembly.interleave();
    }

    /// Records a chunk of `size` bytes, if it is new and there is room for it.
    fn admit(
        &mut self,
        tsn: Tsn,
        size: u64,
        immediate: bool,
        rules: &crate::Rules,
        arrival: &mut Arrival,
    ) -> Taken {
        arrival.chunks += 1;
        let fills = self.has_gap() && rules.gap_filled == GapFilled::AtOnce;
        arrival.at_once |= immediate || fills || self.opens(tsn, rules);
        if self.has(tsn) {
            if self.duplicates.len() < DUPLICATES {
                self.duplicates.push(tsn);
            }
            arrival.at_once = true;
            return Taken::Duplicate;
        }
        if !self.make_room(tsn, size) {
            arrival.at_once = true;
            return Taken::NoRoom;
        }
        self.record(tsn);
        self.held += size;
        Taken::New
    }

    /// I-FORWARD-TSN: as [`forward`](Self::forward), by Message Identifiers, of unordered messages too.
    //= rfc8260#section-2.3.1
    pub(crate) fn interleaved_forward(
        &mut self,
        cumulative: Tsn,
        skipped: impl Iterator<Item = SkippedMessage>,
        arrival: &mut Arrival,
    ) {
        if !self.jump(cumulative, arrival) {
            return;
        }
        for message in skipped {
            self.held -= self.reassembly.skip_interleaved(message);
        }
        self.deliver_parts();
    }

    /// What is missing up to `cumulative` was given up: it counts as received. `skipped` are streams, and the SSN
    /// up to which nothing more comes on them.
    //= rfc3758#section-3.6
    pub(crate) fn forward(
        &mut self,
        cumulative: Tsn,
        skipped: impl Iterator<Item = (u16, Ssn)>,
        arrival: &mut Arrival,
    ) {
        if !self.jump(cumulative, arrival) {
            return;
        }
        for (stream, ssn) in skipped {
            self.held -= self.reassembly.skip(stream, ssn);
        }
        self.held -= self.reassembly.drop_unordered(cumulative);
        self.deliver_parts();
    }

    /// The SSNs of these streams (none: all) begin anew; what came before this TSN and is not complete is dropped.
    //= rfc6525#section-5.2.2
    pub(crate) fn reset_streams(&mut self, streams: &[u16], before: Tsn) {
        self.held -= self.reassembly.reset(streams, before);
    }

    /// Whether the peer may begin its TSNs anew before we hear of it: then nothing beyond a gap is taken.
    pub(crate) fn expect_restart(&mut self, expected: bool) {
        self.reach = if expected { 1 } else { REACH };
    }

    /// TSNs begin anew with this one, and all SSNs. Data that has come already with the next TSNs stays.
    //= rfc6525#section-5.2.4
    pub(crate) fn restart(&mut self, next: Tsn) {
        if next.prev().before(self.cumulative) {
            return self.reset_streams(&[], next);
        }
        self.held -= self.reassembly.restart();
        self.cumulative = next.prev();
        self.runs.clear();
        self.duplicates.clear();
    }

    /// The Cumulative TSN moves on, and further over what has arrived behind it; false if it has been there before,
    /// which the peer is told at once.
    fn jump(&mut self, cumulative: Tsn, arrival: &mut Arrival) -> bool {
        arrival.chunks += 1;
        if !cumulative.after(self.cumulative) {
            arrival.at_once = true;
            return false;
        }
        self.cumulative = cumulative;
        self.runs.retain(|run| run.1.after(cumulative));
        if let Some(&(start, end)) = self.runs.first()
            && !start.after(cumulative.next())
        {
            self.cumulative = end;
            self.runs.remove(0);
        }
        true
    }

    /// Whether this is the very first chunk, and to be acknowledged at once for it.
    //= rfc9260#section-5.1
    fn opens(&self, tsn: Tsn, rules: &crate::Rules) -> bool {
        let first = tsn == self.first && self.cumulative == self.first.prev();
        first && rules.first_data == FirstData::AtOnce
    }

    /// Records a chunk whose data is thrown away.
    pub(crate) fn acknowledge_only(&mut self, tsn: Tsn, rules: &crate::Rules, arrival: &mut Arrival) {
        arrival.chunks += 1;
        arrival.at_once |= self.opens(tsn, rules);
        if !self.has(tsn) && tsn.distance_from(self.cumulative) <= self.reach {
            self.record(tsn);
        }
    }

    /// Whether this TSN has arrived.
    fn has(&self, tsn: Tsn) -> bool {
        if !tsn.after(self.cumulative) {
            return true;
        }
        let run = self.runs.partition_point(|run| run.1.before(tsn));
        self.runs.get(run).is_some_and(|run| !tsn.before(run.0))
    }

    /// Makes room for a chunk, dropping the highest chunks held beyond gaps if it fills a lower place.
    //= rfc9260#section-6.2
    fn make_room(&mut self, tsn: Tsn, size: u64) -> bool {
        if tsn.distance_from(self.cumulative) > self.reach {
            return false;
        }
        self.packet = self.packet.max(size);
        while self.held + size > self.buffer {
            let Some((dropped, freed)) = self.reassembly.discard_above(tsn) else {
                return self.must_take(tsn);
            };
            self.held -= freed;
            self.forget(dropped);
        }
        true
    }

    /// Whether a chunk for which there is no room is taken nevertheless: it is next in order, and nothing can be read
    /// that would make room for it, so that refusing it would help nobody. The buffer may be exceeded by its own size
    /// and one chunk.
    fn must_take(&mut self, tsn: Tsn) -> bool {
        self.deliver_parts();
        tsn == self.cumulative.next() && !self.reassembly.has_ready() && self.held < 2 * self.buffer
    }

    /// This TSN, beyond a gap, counts as not arrived any more.
    fn forget(&mut self, tsn: Tsn) {
        let at = self.runs.partition_point(|run| run.1.before(tsn));
        let (start, end) = self.runs.remove(at);
        let left = (start != tsn).then_some((start, tsn.prev()));
        let right = (end != tsn).then_some((tsn.next(), end));
        self.runs.splice(at..at, left.into_iter().chain(right));
    }

    fn record(&mut self, tsn: Tsn) {
        if tsn == self.cumulative.next() {
            self.cumulative = tsn;
            if let Some(&(start, end)) = self.runs.first()
                && start == tsn.next()
            {
                self.cumulative = end;
                self.runs.remove(0);
            }
            return;
        }
        let at = self.runs.partition_point(|run| run.1.before(tsn));
        let joins_left = at > 0 && self.runs[at - 1].1.next() == tsn;
        let joins_right = self.runs.get(at).is_some_and(|run| run.0 == tsn.next());
        match (joins_left, joins_right) {
            (true, true) => {
                self.runs[at - 1].1 = self.runs[at].1;
                self.runs.remove(at);
            }
            (true, false) => self.runs[at - 1].1 = tsn,
            (false, true) => self.runs[at].0 = tsn,
            (false, false) => self.runs.insert(at, (tsn, tsn)),
        }
    }

    /// A buffer with no room for one more packet of either end, full of one incomplete message: its beginning is
    /// delivered as a part (§6.9, §11.1).
    fn deliver_parts(&mut self) {
        if self.free() < self.packet && !self.reassembly.has_ready() {
            self.reassembly.deliver_part(self.cumulative);
        }
    }

    /// All chunks of a packet are taken: is a SACK due, now or later?
    //= rfc9260#section-6.2
    pub(crate) fn packet_done(&mut self, arrival: &Arrival, from: PathId, now: Time, config: &Config) {
        if arrival.chunks == 0 {
            return;
        }
        self.from = from;
        self.schedule.packets += 1;
        if arrival.at_once || self.has_gap() || self.schedule.packets >= config.sack_every {
            self.schedule.now = true;
        }
        if self.schedule.deadline == Time::NEVER {
            self.schedule.deadline = now + config.sack_delay;
        }
    }

    pub(crate) fn ready(&self) -> usize {
        self.reassembly.ready()
    }

    pub(crate) fn has_ready(&self) -> bool {
        self.reassembly.has_ready()
    }

    /// The next message for the user.
    pub(crate) fn read(&mut self, config: &Config) -> Option<Delivery> {
        let (delivery, bytes) = self.reassembly.pop()?;
        self.held -= bytes;
        self.deliver_parts();
        self.update_window(config);
        Some(delivery)
    }

    /// Announces the window when it has opened by a quarter of the buffer.
    //= rfc9260#section-6.2
    fn update_window(&mut self, config: &Config) {
        if self.announcing(config) && self.free() >= self.announced + self.buffer / 4 {
            self.schedule.now = true;
        }
    }

    fn announcing(&self, config: &Config) -> bool {
        config.rules.window_updates == WindowUpdates::Announced
    }

    fn free(&self) -> u64 {
        self.buffer.saturating_sub(self.held)
    }

    /// The window to announce: less than a packet counts as none, if the rules avoid silly windows.
    fn window(&self, config: &Config) -> u64 {
        let free = self.free();
        let silly = free < self.packet.min(self.buffer / 4);
        if self.announcing(config) && silly { 0 } else { free }
    }

    /// Bytes that the SACK owed would take.
    pub(crate) fn sack_size(&self, limit: usize) -> usize {
        let room = limit.saturating_sub(SACK_HEADER) / 4;
        SACK_HEADER + 4 * (self.runs.len() + self.duplicates.len()).min(room)
    }

    /// The SACK, in at most `limit` bytes; nothing is owed any more.
    pub(crate) fn sack(&mut self, limit: usize, config: &Config) -> Sack {
        let room = limit.saturating_sub(SACK_HEADER) / 4;
        self.schedule = Schedule { packets: 0, deadline: Time::NEVER, now: false };
        self.announced = self.window(config);
        let offset = |tsn: Tsn| tsn.distance_from(self.cumulative) as u16;
        let gaps: SmallVec<[GapBlock; 4]> = self
            .runs
            .iter()
            .take(room)
            .map(|run| GapBlock { start: offset(run.0), end: offset(run.1) })
            .collect();
        let mut duplicates = std::mem::take(&mut self.duplicates);
        duplicates.truncate(room - gaps.len());
        Sack { cumulative: self.cumulative, a_rwnd: self.announced as u32, gaps, duplicates }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

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

    fn arrive(r: &mut Receiver, offset: u32) -> Taken {
        let mut arrival = Arrival::default();
        let c = config();
        let taken = r.data(data((u32::MAX - 1).wrapping_add(offset)), &c.rules, &mut arrival);
        r.packet_done(&arrival, PathId(0), Time::ZERO, &c);
        taken
    }

    fn gaps(r: &mut Receiver) -> Vec<(u16, u16)> {
        r.sack(1000, &config()).gaps.iter().map(|g| (g.start, g.end)).collect()
    }

    #[test]
    fn runs_grow_join_and_vanish_across_the_wrap() {
        let mut r = receiver();
        for offset in [1, 3, 4, 6] {
            assert_eq!(arrive(&mut r, offset), Taken::New);
        }
        assert_eq!(gaps(&mut r), [(2, 2), (4, 5), (7, 7)]);
        arrive(&mut r, 5);
        assert_eq!(gaps(&mut r), [(2, 2), (4, 7)]);
        arrive(&mut r, 0);
        assert_eq!(r.cumulative, Tsn(u32::MAX));
        arrive(&mut r, 2);
        assert_eq!((r.cumulative, gaps(&mut r).len()), (Tsn(4), 0));
        assert_eq!(arrive(&mut r, 2), Taken::Duplicate);
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
            assert_eq!(arrive(&mut r, offset), Taken::New);
        }
        assert_eq!(arrive(&mut r, 11), Taken::NoRoom);
        assert_eq!(arrive(&mut r, 0), Taken::New);
        assert_eq!(r.cumulative, Tsn((u32::MAX - 1).wrapping_add(9)), "the tenth was dropped again");
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
}
