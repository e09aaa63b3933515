//! The receiving half of an association: arrived chunks, the receive buffer, and the SACK (RFC 9260 §6.2, §6.7).
//!
//! `tracker.rs` records which TSNs have arrived, `reassembly/` and `interleaved.rs` make messages of DATA and I-DATA,
//! `ready.rs` keeps the messages that can be read, and `schedule.rs` decides when a SACK is due.

mod deferred;
mod due;
mod interleaved;
mod ready;
mod reassembly;
mod restart;
mod schedule;
mod tracker;

use smallvec::SmallVec;

use crate::config::Config;
use crate::mechanisms::{self, Dac, FirstData, SackReturn};
use crate::path::PathId;
use crate::rules::{DuplicateSack, GapFilled, WindowUpdates};
use crate::wire::chunk::{Data, GapBlock, IData, NR_SACK_HEADER, SACK_HEADER, Sack, SkippedMessage};
use crate::{Delivery, Discarded, Ssn, Tsn};
use deferred::DeferredReset;
pub(crate) use deferred::HeldBack;
use interleaved::Interleaved;
use ready::{Held, Ready};
use reassembly::Reassembly;
use schedule::EachPath;
pub(crate) use schedule::{Arrival, Schedule};
use tracker::{REACH, Tracker};

/// The largest number of duplicate TSNs in one SACK.
const DUPLICATES: usize = 16;
/// The number of Gap Ack Blocks that any SACK may have.
const GAPS: usize = 16;
/// The number of Gap Ack Blocks that the SACKs of an association may have in addition to those allowed by the DATA
/// that they answer.
const PROVISION: usize = 1 << 16;
/// A held chunk costs memory in addition to its bytes. The number of held chunks is limited as if each had at least
/// this size.
const CHARGED_AT_LEAST: u64 = 64;

/// The receiving half of an association.
// What every packet needs stands first: see `Association`.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Receiver {
    tracker: Tracker,
    pub(crate) schedule: Schedule,
    /// The contents of the buffer: chunks that are not reassembled, or not read.
    held: Held,
    /// The limits in bytes and chunks.
    buffer: Held,
    /// The larger of our largest packet and the peer's largest chunk, in bytes: the room that must remain.
    packet: u64,
    /// The window in the last SACK or INIT.
    announced: u64,
    /// Bytes of DATA since the last SACK.
    answered: u64,
    /// The largest accepted distance of a TSN from the Cumulative TSN.
    reach: u32,
    first: Tsn,
    /// The path of the last DATA, to which the SACK goes.
    pub(crate) from: PathId,
    ready: Ready,
    /// What was discarded, if the user discards everything.
    discarded: Option<Discarded>,
    /// What makes messages of I-DATA, in place of `reassembly`. `None`: messages arrive as DATA.
    interleaved: Option<Box<Interleaved>>,
    /// Whether acknowledged chunks are never dropped, and SACKs say so.
    keeps: bool,
    /// Whether SACKs are delayed in spite of gaps and report how many packets they acknowledge.
    dac: Dac,
    first_data: FirstData,
    duplicate_sack: DuplicateSack,
    /// If the packets of each path count separately: the SACKs owed to paths other than `from`.
    each_path: Option<Box<EachPath>>,
    /// Gap Ack Blocks that SACKs may have in addition to those allowed by their DATA.
    provision: usize,
    duplicates: SmallVec<[Tsn; 4]>,
    reassembly: Reassembly,
    /// A reset of streams that waits for data sent before it.
    deferred: Option<Box<DeferredReset>>,
    /// The Cumulative TSN before TSNs restarted.
    before_restart: Option<Tsn>,
}

/// The outcome of one DATA chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum DataOutcome {
    /// It is new and is held or delivered.
    New,
    /// It had arrived before.
    Duplicate,
    /// There is no room for it.
    NoRoom,
}

impl Receiver {
    pub(crate) fn new(first: Tsn, config: &Config) -> Self {
        let bytes = u64::from(config.receive_buffer);
        Receiver {
            tracker: Tracker::new(first),
            reach: REACH,
            first,
            duplicates: SmallVec::new(),
            reassembly: Reassembly::new(Ssn(config.first_ssn)),
            deferred: None,
            before_restart: None,
            interleaved: None,
            ready: Ready::default(),
            discarded: None,
            buffer: Held { bytes, chunks: bytes / CHARGED_AT_LEAST },
            packet: u64::from(config.mtu),
            held: Held::default(),
            announced: bytes,
            answered: 0,
            provision: PROVISION,
            schedule: Schedule::idle(),
            keeps: false,
            dac: mechanisms::dac(&config.mechanisms),
            first_data: config.mechanisms.first_data,
            duplicate_sack: config.rules.duplicate_sack,
            from: PathId(0),
            each_path: match config.mechanisms.sack_return {
                SackReturn::LastData => None,
                SackReturn::EachPath => Some(Box::default()),
            },
        }
    }

    pub(crate) fn cumulative(&self) -> Tsn {
        self.tracker.cumulative()
    }

    /// Whether anything has arrived beyond a gap.
    pub(crate) fn has_gap(&self) -> bool {
        self.tracker.runs() > 0
    }

    /// Accepts a DATA chunk.
    #[inline]
    pub(crate) fn data(&mut self, data: Data, rules: &crate::Rules, arrival: &mut Arrival) -> DataOutcome {
        if !self.is_next_whole(&data) {
            return self.any_data(data, rules, arrival);
        }
        let chunk = self.next_came(&data, arrival);
        self.held += chunk;
        self.reassembly.pass(data, &mut self.ready);
        DataOutcome::New
    }

    /// If the user discards everything, and this chunk is the only one of its packet and could be read alone and at
    /// once: counts it for [`take_discarded`](Self::take_discarded), and returns true.
    #[inline(always)]
    pub(crate) fn count_alone(&mut self, data: &Data, arrival: &mut Arrival) -> bool {
        if self.discarded.is_none() || self.held.chunks > 0 || !self.is_next_whole(data) {
            return false;
        }
        self.next_came(data, arrival);
        self.reassembly.pass_by(data);
        self.ready.number();
        if let Some(discarded) = &mut self.discarded {
            discarded.add(data.payload.len());
        }
        true
    }

    /// The usual chunk came: see [`is_next_whole`](Self::is_next_whole). Returns the room that it needs.
    #[inline(always)]
    fn next_came(&mut self, data: &Data, arrival: &mut Arrival) -> Held {
        let chunk = Held::one(data.size());
        arrival.chunks += 1;
        arrival.at_once |= data.immediate;
        if self.opens(data.tsn) {
            self.opened(arrival);
        }
        self.answered += chunk.bytes;
        self.packet = self.packet.max(chunk.bytes);
        self.tracker.record_next();
        chunk
    }

    /// The user discards everything: a message that could be read alone and at once is counted instead.
    pub(crate) fn discard(&mut self) {
        self.discarded.get_or_insert_default();
    }

    /// Whether the user discards everything.
    pub(crate) fn discards(&self) -> bool {
        self.discarded.is_some()
    }

    /// What was discarded since the last call. It counts as read now.
    #[inline]
    pub(crate) fn take_discarded(&mut self, config: &Config) -> Option<Discarded> {
        let discarded = self.discarded.as_mut().filter(|discarded| discarded.messages > 0)?;
        let taken = std::mem::take(discarded);
        self.update_window(config);
        Some(taken)
    }

    /// Whether this is the usual chunk: a whole message, next in order, for which there is room, while nothing waits.
    /// It can be read at once, and `data` leaves everything as `any_data` would.
    #[inline]
    fn is_next_whole(&self, data: &Data) -> bool {
        let Held { bytes, chunks } = self.held;
        let room = bytes + Held::one(data.size()).bytes <= self.buffer.bytes && chunks < self.buffer.chunks;
        let next = data.tsn == self.cumulative().next() && !self.has_gap();
        data.begin && data.end && room && next && self.reassembly.passes(data)
    }

    /// Accepts any DATA chunk.
    fn any_data(&mut self, data: Data, rules: &crate::Rules, arrival: &mut Arrival) -> DataOutcome {
        let taken = self.admit(data.tsn, data.size(), data.immediate, rules, arrival);
        if taken == DataOutcome::New {
            self.reassembly.insert(self.tracker.position(data.tsn), data, &mut self.ready);
            self.deliver_parts();
        }
        taken
    }

    /// Accepts an I-DATA chunk.
    pub(crate) fn idata(&mut self, data: IData, rules: &crate::Rules, arrival: &mut Arrival) -> DataOutcome {
        let taken = self.admit(data.tsn, data.size(), data.immediate, rules, arrival);
        if taken == DataOutcome::New {
            self.insert(HeldBack::IData(data));
            self.deliver_parts();
        }
        taken
    }

    /// Gives an accepted chunk to the part that makes messages.
    fn insert(&mut self, chunk: HeldBack) {
        let at = self.tracker.position(chunk.tsn());
        match (chunk, &mut self.interleaved) {
            (HeldBack::Data(data), _) => self.reassembly.insert(at, data, &mut self.ready),
            (HeldBack::IData(data), Some(interleaved)) => {
                self.held -= interleaved.insert(at, data, &mut self.ready);
            }
            (HeldBack::IData(_), None) => {}
        }
    }

    /// From now on no acknowledged chunk is dropped, which NR-SACKs announce.
    pub(crate) fn keep_all(&mut self) {
        self.keeps = true;
    }

    /// Whether no acknowledged chunk is dropped.
    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// The size of a SACK before its blocks.
    fn sack_header(&self) -> usize {
        if self.keeps { NR_SACK_HEADER } else { SACK_HEADER }
    }

    /// Messages come as I-DATA.
    pub(crate) fn interleave(&mut self) {
        self.interleaved = Some(Box::default());
    }

    /// Records a chunk of `size` bytes if it is new and there is room for it.
    #[inline(always)]
    fn admit(
        &mut self,
        tsn: Tsn,
        size: usize,
        immediate: bool,
        rules: &crate::Rules,
        arrival: &mut Arrival,
    ) -> DataOutcome {
        arrival.chunks += 1;
        let chunk = Held::one(size);
        self.answered += chunk.bytes;
        let told = rules.gap_filled == GapFilled::AtOnce || arrival.chunks > 1 + u32::from(arrival.opens);
        let fills = self.has_gap() && told && self.dac == Dac::Off;
        arrival.at_once |= immediate || fills;
        if self.opens(tsn) {
            self.opened(arrival);
        }
        if self.tracker.has(tsn) {
            if self.duplicates.len() < DUPLICATES {
                self.duplicates.push(tsn);
            }
            match self.duplicate_sack {
                DuplicateSack::Settles => arrival.at_once = true,
                DuplicateSack::Besides | DuplicateSack::Counted => arrival.besides = true,
            }
            return DataOutcome::Duplicate;
        }
        if !self.make_room(tsn, chunk) {
            arrival.at_once = true;
            return DataOutcome::NoRoom;
        }
        self.tracker.record(tsn);
        self.held += chunk;
        DataOutcome::New
    }

    /// I-FORWARD-TSN: like [`forward`](Self::forward), but with Message Identifiers and also for unordered messages.
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
        if let Some(interleaved) = &mut self.interleaved {
            for message in skipped {
                self.held -= interleaved.skip(message, &mut self.ready);
            }
        }
        self.deliver_parts();
    }

    /// The peer abandoned everything missing up to `cumulative`: it counts as received. `skipped` lists streams and
    /// the SSN up to which nothing more arrives on them.
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
            self.held -= self.reassembly.skip(stream, ssn, &mut self.ready);
        }
        self.held -= self.reassembly.drop_unordered(self.tracker.position(cumulative), &mut self.ready);
        self.deliver_parts();
    }

    /// The SSNs of these streams (in order; none: all) restart. Incomplete messages from before this TSN are dropped,
    /// and what was held back for the reset is looked at.
    //= rfc6525#section-5.2.2
    pub(crate) fn reset_streams(&mut self, streams: &[u16], before: Tsn) {
        let before = self.tracker.position(before);
        self.held -= match &mut self.interleaved {
            Some(interleaved) => interleaved.reset(streams, before, &mut self.ready),
            None => self.reassembly.reset(streams, before, &mut self.ready),
        };
        self.release_held_back();
    }

    /// Whether a duplicate has arrived since the last SACK.
    pub(crate) fn has_duplicates(&self) -> bool {
        !self.duplicates.is_empty()
    }

    /// Advances the Cumulative TSN to this one, and further over chunks that have arrived behind it. Returns false if
    /// it was there before; then the peer is told at once.
    fn jump(&mut self, cumulative: Tsn, arrival: &mut Arrival) -> bool {
        arrival.chunks += 1;
        if self.is_past(cumulative) {
            arrival.at_once = true;
            return false;
        }
        self.tracker.jump(cumulative);
        true
    }

    /// Whether this is the very first chunk, which must be acknowledged at once; by `besides` also when it comes again.
    //= rfc9260#section-5.1
    fn opens(&self, tsn: Tsn) -> bool {
        let again = self.duplicate_sack == DuplicateSack::Besides;
        let first = tsn == self.first && (again || self.cumulative() == self.first.prev());
        first && self.first_data == FirstData::AtOnce
    }

    /// The very first chunk came.
    #[cold]
    fn opened(&self, arrival: &mut Arrival) {
        match self.duplicate_sack {
            DuplicateSack::Settles | DuplicateSack::Counted => arrival.at_once = true,
            DuplicateSack::Besides => (arrival.besides, arrival.opens) = (true, true),
        }
    }

    /// Records a chunk whose data is dropped.
    pub(crate) fn acknowledge_only(&mut self, tsn: Tsn, arrival: &mut Arrival) {
        arrival.chunks += 1;
        if self.opens(tsn) {
            self.opened(arrival);
        }
        if !self.tracker.has(tsn) && tsn.distance_from(self.cumulative()) <= self.reach {
            self.tracker.record(tsn);
        }
    }

    /// Makes room for a chunk. If bytes are short, the highest chunks beyond gaps are dropped, provided that the new
    /// chunk fills a lower place. If there are too many chunks, this is done only for the chunk that is next in
    /// order. A chunk that was acknowledged for good is never dropped.
    //= rfc9260#section-6.2
    #[inline(always)]
    fn make_room(&mut self, tsn: Tsn, chunk: Held) -> bool {
        if tsn.distance_from(self.cumulative()) > self.reach {
            return false;
        }
        self.packet = self.packet.max(chunk.bytes);
        let next = tsn == self.cumulative().next();
        loop {
            let too_many = self.held.chunks >= self.buffer.chunks;
            if !too_many && self.held.bytes + chunk.bytes <= self.buffer.bytes {
                return true;
            }
            if too_many && !next {
                return false;
            }
            if self.keeps || !self.discard_above(tsn) {
                return next && self.must_take();
            }
        }
    }

    /// Drops the highest undelivered chunk above this TSN.
    fn discard_above(&mut self, tsn: Tsn) -> bool {
        let at = self.tracker.position(tsn);
        let discarded = match &mut self.interleaved {
            Some(interleaved) => interleaved.discard_above(at),
            None => self.reassembly.discard_above(at),
        };
        if let Some((dropped, freed)) = discarded {
            self.held -= freed;
            self.tracker.forget(self.tracker.tsn_at(dropped));
        }
        discarded.is_some()
    }

    /// Whether the next chunk in order is accepted although there is no room: nothing can be read to make room, so
    /// refusing it would help nobody. The buffer may be exceeded by its own size and one chunk. If no chunk may be
    /// dropped either, it is accepted in any case: otherwise, of a packet with many small chunks, each could be read
    /// only after the next had been refused.
    fn must_take(&mut self) -> bool {
        self.deliver_parts();
        let Held { bytes, chunks } = self.held;
        (self.ready.is_empty() || self.keeps)
            && bytes < 2 * self.buffer.bytes
            && chunks < 2 * self.buffer.chunks
    }

    /// If the buffer has no room for one more packet of either end and is full of one incomplete message, the
    /// beginning of this message is delivered as a part (§6.9, §11.1).
    #[inline]
    fn deliver_parts(&mut self) {
        if self.held.chunks > 0 && self.ready.is_empty() && self.free() < self.packet {
            match &mut self.interleaved {
                Some(interleaved) => interleaved.deliver_part(&mut self.ready),
                None => {
                    let cumulative = self.tracker.position(self.tracker.cumulative());
                    self.reassembly.deliver_part(cumulative, &mut self.ready);
                }
            }
        }
    }

    /// Deliveries that can be read.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next message for the user.
    pub(crate) fn read(&mut self, config: &Config) -> Option<Delivery> {
        let (delivery, freed) = self.ready.pop()?;
        self.was_read(freed, config);
        Some(delivery)
    }

    /// As `read`, for a user who only looks at it.
    #[inline]
    pub(crate) fn read_with<T>(&mut self, config: &Config, look: impl FnOnce(&Delivery) -> T) -> Option<T> {
        let (seen, freed) = self.ready.pop_with(look)?;
        self.was_read(freed, config);
        Some(seen)
    }

    /// Something was read, which frees this room.
    fn was_read(&mut self, freed: Held, config: &Config) {
        self.held -= freed;
        self.deliver_parts();
        self.update_window(config);
    }

    /// Announces the window when it has opened by a quarter of the buffer.
    //= rfc9260#section-6.2
    fn update_window(&mut self, config: &Config) {
        if self.announcing(config) && self.free() >= self.announced + self.buffer.bytes / 4 {
            self.schedule.owe();
        }
    }

    fn announcing(&self, config: &Config) -> bool {
        config.rules.window_updates == WindowUpdates::Announced
    }

    /// The number of bytes that fit; if only few more chunks can be held, the bytes of these.
    fn free(&self) -> u64 {
        let chunks = self.buffer.chunks.saturating_sub(self.held.chunks);
        self.buffer.bytes.saturating_sub(self.held.bytes).min(chunks * self.packet)
    }

    /// The window to announce. Less than one packet counts as zero if the rules avoid silly windows.
    fn window(&self, config: &Config) -> u64 {
        let free = self.free();
        let silly = free < self.packet.min(self.buffer.bytes / 4);
        if self.announcing(config) && silly { 0 } else { free }
    }

    /// The size of the SACK that is owed.
    pub(crate) fn sack_size(&self, limit: usize) -> usize {
        let room = limit.saturating_sub(self.sack_header()) / 4;
        let gaps = self.tracker.runs().min(self.reportable(room));
        self.sack_header() + 4 * (gaps + self.duplicates.len()).min(room)
    }

    /// The number of Gap Ack Blocks that the SACK may have if `most` fit: a few, and as many as have twice the bytes
    /// of the DATA that it answers. More are taken from a budget. Otherwise a peer that sends one byte per packet
    /// would be answered with packets full of gaps for ever.
    fn reportable(&self, room: usize) -> usize {
        room.min(self.due_gaps() + self.provision)
    }

    fn due_gaps(&self) -> usize {
        GAPS.max(self.answered as usize / 2)
    }

    /// The SACK, in at most `limit` bytes. After it, nothing is owed.
    pub(crate) fn sack(&mut self, limit: usize, config: &Config) -> Sack {
        let room = limit.saturating_sub(self.sack_header()) / 4;
        let gaps = self.tracker.gaps(self.reportable(room));
        let mut duplicates = std::mem::take(&mut self.duplicates);
        duplicates.truncate(room - gaps.len());
        Sack { duplicates, ..self.sack_with(gaps, config) }
    }

    /// Whether the SACK reports neither a gap nor a duplicate.
    #[inline(always)]
    pub(crate) fn sack_is_plain(&self) -> bool {
        self.tracker.runs() == 0 && self.duplicates.is_empty()
    }

    /// That SACK. After it, nothing is owed.
    #[inline(always)]
    pub(crate) fn plain_sack(&mut self, config: &Config) -> Sack {
        self.sack_with(SmallVec::new(), config)
    }

    /// The number of packets that this SACK acknowledges, for DAC.
    fn sack_flags(&self, config: &Config) -> u8 {
        match self.dac {
            Dac::Literal if config.sack_every == 1 => 0,
            _ => Sack::flags_of(self.schedule.packets()),
        }
    }

    /// The SACK with these gaps and no duplicate.
    #[inline(always)]
    fn sack_with(&mut self, gaps: SmallVec<[GapBlock; 4]>, config: &Config) -> Sack {
        let flags = if self.dac == Dac::Off { 0 } else { self.sack_flags(config) };
        self.provision = (self.provision + self.due_gaps()).saturating_sub(gaps.len()).min(PROVISION);
        self.schedule.sent();
        self.take_turn();
        self.answered = 0;
        self.announced = self.window(config);
        let (cumulative, a_rwnd) = (self.cumulative(), self.announced as u32);
        Sack { flags, cumulative, a_rwnd, gaps, duplicates: SmallVec::new() }
    }
}

#[cfg(test)]
mod tests;
