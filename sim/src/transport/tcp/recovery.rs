//! Detects and repairs losses: RFC 6675 with SACK, RFC 6582 without.

use anabranch_proto::Time;
use anabranch_proto::control::window::Loss;

use super::flight::{AckResult, Flight};
use super::outstanding::Sent;
use super::segment::Why;

/// The number of duplicate acknowledgements that indicate a loss.
const DUP_THRESHOLD: u32 = 3;

/// The next segment to send.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// The segment with this number, again.
    Again(u64, Why),
    /// New data.
    New,
}

/// The state of loss recovery.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    duplicates: u32,
    phase: Phase,
    /// One past the highest number sent when the last recovery or timeout began. No new recovery begins before it is
    /// acknowledged.
    recover: u64,
    /// Whether the first segment is sent again regardless of the window.
    repair: bool,
    /// Bytes that duplicate acknowledgements add to the window (RFC 6582, and limited transmit without SACK). Partial
    /// acknowledgements can make it negative: fewer duplicates come than segments arrive if some were lost, or if the
    /// first segment behind the hole also ended the delay of an acknowledgement.
    inflation: i64,
    /// Bytes of limited transmit since the last new acknowledgement.
    limited: u64,
    /// Bytes that only duplicates outside recovery have acknowledged so far. They let the window grow with the next new
    /// acknowledgement.
    reported: u64,
    /// A rescue retransmission may leave once more than what is below this number is acknowledged (RFC 6675 §4,
    /// RescueRxt).
    rescue_after: u64,
    /// Whether a partial acknowledgement has restarted the timer in this recovery.
    restarted: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
enum Phase {
    #[default]
    Open,
    /// Fast recovery.
    Fast,
    /// Everything that was outstanding at a timeout is sent again.
    Timeout,
}

impl Recovery {
    /// An acknowledgement has arrived. The scoreboard already contains it.
    pub(super) fn acknowledged(&mut self, flight: &mut Flight, news: &AckResult) {
        let sack = flight.config.sack_blocks > 0;
        if news.advances {
            self.advanced(flight, news, sack);
        }
        let duplicate = if sack { news.sacked > 0 } else { news.repeats };
        if !news.advances && news.sacked > 0 && self.phase != Phase::Open {
            flight.hear_in_recovery(news, None);
        }
        match self.phase {
            Phase::Fast if sack => self.find_lost(flight, news.now),
            Phase::Fast if duplicate => self.inflation += flight.segment() as i64,
            Phase::Open if duplicate => self.duplicate(flight, news, sack),
            Phase::Timeout if sack && duplicate => self.find_lost(flight, news.now),
            _ => {}
        }
    }

    fn advanced(&mut self, flight: &mut Flight, news: &AckResult, sack: bool) {
        self.duplicates = 0;
        self.limited = 0;
        let rtt = flight.measure(news.now);
        let covered = flight.outstanding.first() >= self.recover;
        if self.phase == Phase::Fast {
            flight.hear_in_recovery(news, rtt);
        }
        match self.phase {
            Phase::Fast if covered => {
                self.phase = Phase::Open;
                (self.inflation, self.repair) = (0, false);
            }
            Phase::Fast => self.partial(flight, news, sack),
            Phase::Open | Phase::Timeout => {
                self.inflation = 0;
                if covered {
                    self.phase = Phase::Open;
                }
                //= rfc5681#section-3.1
                let cumulative = news.cumulative + std::mem::take(&mut self.reported);
                flight.grow(&AckResult { cumulative, ..*news }, rtt);
            }
        }
        // The impatient variant: without SACK only the first partial acknowledgement restarts the timer.
        //= rfc6582#section-3.2
        let patient = sack || self.phase != Phase::Fast || !std::mem::replace(&mut self.restarted, true);
        if patient {
            flight.restart_timer(news.now);
        }
    }

    /// An acknowledgement of some, but not all, of the outstanding data.
    fn partial(&mut self, flight: &mut Flight, news: &AckResult, sack: bool) {
        if sack {
            return;
        }
        //= rfc6582#section-3.2
        let lost = flight.outstanding.first_is_lost();
        flight.note_marked(news.now, lost, Why::Missing);
        self.repair = true;
        self.inflation -= news.cumulative as i64;
        if news.cumulative >= flight.segment() {
            self.inflation += flight.segment() as i64;
        }
    }

    /// A duplicate acknowledgement outside recovery.
    //= rfc6675#section-5
    fn duplicate(&mut self, flight: &mut Flight, news: &AckResult, sack: bool) {
        self.duplicates += 1;
        if sack {
            self.reported += if news.advances { 0 } else { news.sacked };
            self.find_lost(flight, news.now);
        }
        // The first segment may be known to be lost since before the last recovery ended.
        if self.duplicates < DUP_THRESHOLD && !flight.outstanding.has_lost() {
            //= rfc3042#section-2
            if flight.config.limited_transmit && !sack {
                self.inflation = i64::from(self.duplicates) * flight.segment() as i64;
            }
            return;
        }
        // Without SACK, duplicates caused by needless retransmissions look like duplicates caused by a loss. So data
        // beyond the end of the last recovery must be acknowledged first.
        //= rfc6582#section-3.2
        let first = flight.outstanding.first();
        if if sack { first >= self.recover } else { first > self.recover || self.recover == 0 } {
            self.enter(flight, news, sack);
        }
    }

    fn enter(&mut self, flight: &mut Flight, news: &AckResult, sack: bool) {
        self.phase = Phase::Fast;
        self.recover = flight.outstanding.end();
        (self.rescue_after, self.restarted) = (flight.outstanding.first() + 1, false);
        self.tell_reported(flight, news.now);
        flight.counts.fast_recoveries += 1;
        flight.cut(news.now, Loss::Missing, self.limited);
        let lost = flight.outstanding.first_is_lost();
        flight.note_marked(news.now, lost, Why::Missing);
        self.inflation = if sack { 0 } else { i64::from(DUP_THRESHOLD) * flight.segment() as i64 };
        self.repair = true;
        flight.stop_timing();
        flight.restart_timer(news.now);
    }

    /// The window hears of what only duplicates have acknowledged, and does not grow for it: a loss was found before a
    /// new acknowledgement.
    fn tell_reported(&mut self, flight: &mut Flight, now: Time) {
        let sacked = std::mem::take(&mut self.reported);
        if sacked > 0 {
            let pipe_before = flight.outstanding.pipe();
            let news = AckResult { now, advances: false, cumulative: 0, sacked, repeats: false, pipe_before };
            flight.hear_in_recovery(&news, None);
        }
    }

    fn find_lost(&mut self, flight: &mut Flight, now: Time) {
        let lost = flight.outstanding.find_lost(flight.segment());
        flight.note_marked(now, lost, Why::Missing);
    }

    /// The retransmission timer has expired.
    //= rfc6298#section-5
    pub(super) fn timed_out(&mut self, flight: &mut Flight, now: Time) {
        self.tell_reported(flight, now);
        flight.cut(now, Loss::Timeout, self.limited);
        let numbers = flight.outstanding.first()..flight.outstanding.end();
        flight.outstanding.all_is_lost();
        flight.note_marked(now, numbers, Why::Timeout);
        flight.stop_timing();
        let recover = flight.outstanding.end();
        *self = Recovery { phase: Phase::Timeout, recover, ..Recovery::default() };
    }

    /// The next segment to send, if the windows allow it.
    //= rfc6675#section-4
    pub(super) fn next(&mut self, flight: &mut Flight) -> Option<Next> {
        let why = if self.phase == Phase::Timeout { Why::Timeout } else { Why::Missing };
        if self.repair {
            return Some(Next::Again(flight.outstanding.first(), why));
        }
        if self.room(flight) < flight.segment() {
            return None;
        }
        let sack = flight.config.sack_blocks > 0;
        if let Some(number) = self.lost(flight) {
            return Some(Next::Again(number, why));
        }
        match flight.new_data().filter(|data| flight.admits(*data)) {
            Some(_) if self.waits(flight) => None,
            Some(_) => Some(Next::New),
            None if self.phase == Phase::Fast && sack => self.beyond(flight),
            None => None,
        }
    }

    /// Bytes of the window that a new segment could use now, if there were one; 0 if it could not leave.
    #[inline(always)]
    pub(super) fn room_for_new(&self, flight: &mut Flight) -> u64 {
        let room = if self.repair { 0 } else { self.room(flight) };
        let takes = room >= flight.segment() && self.lost(flight).is_none() && !self.waits(flight);
        if takes { room } else { 0 }
    }

    /// Bytes of the window that are unused.
    fn room(&self, flight: &Flight) -> u64 {
        flight.cwnd().saturating_add_signed(self.inflation).saturating_sub(self.used(flight))
    }

    /// The lost segment that is sent again next. Outside recovery there is none: a loss that is known there begins a
    /// recovery with the next duplicate, and that cuts the window.
    //= rfc6675#section-5
    fn lost(&self, flight: &mut Flight) -> Option<u64> {
        let again = match self.phase {
            Phase::Open => false,
            Phase::Fast => flight.config.sack_blocks > 0,
            Phase::Timeout => true,
        };
        if again { flight.outstanding.next_lost() } else { None }
    }

    /// Whether new data waits until the cause of the duplicates is known.
    fn waits(&self, flight: &Flight) -> bool {
        self.phase == Phase::Open && self.duplicates > 0 && !flight.config.limited_transmit
    }

    /// Rules 3 and 4 of NextSeg: segments that are only probably lost, and one rescue retransmission. A segment that
    /// was sent again already is not rescued: it is in flight.
    //= rfc6675#section-4
    fn beyond(&self, flight: &mut Flight) -> Option<Next> {
        if let Some(number) = flight.outstanding.next_gap() {
            return Some(Next::Again(number, Why::Missing));
        }
        let may = flight.outstanding.first() > self.rescue_after;
        let last = flight.outstanding.last_unacknowledged().filter(|_| may)?;
        (last >= flight.outstanding.sacked_end().unwrap_or(0)).then_some(Next::Again(last, Why::Missing))
    }

    /// Bytes of the window that are used.
    fn used(&self, flight: &Flight) -> u64 {
        match self.phase {
            Phase::Fast | Phase::Open if flight.config.sack_blocks == 0 => flight.outstanding.bytes(),
            _ => flight.outstanding.pipe(),
        }
    }

    /// The segment has left.
    pub(super) fn sent(&mut self, flight: &mut Flight, next: Next) {
        let repairs = std::mem::replace(&mut self.repair, false);
        match next {
            Next::New if self.phase == Phase::Open && self.duplicates > 0 => self.limited += flight.segment(),
            Next::New => {}
            Next::Again(number, _) => {
                // It may have left for the first time in this recovery.
                if let Some(end) = flight.outstanding.get(number).map(Sent::end) {
                    flight.stop_timing_of(end);
                }
                let beyond = flight.outstanding.sacked_end().is_none_or(|end| number >= end);
                match self.phase == Phase::Fast && !repairs && beyond {
                    // A rescue leaves HighRxt: if the segment turns out to be lost, it goes again.
                    true => self.rescue_after = self.recover,
                    false => flight.outstanding.sent_again(number),
                }
            }
        }
    }

    /// Whether the window has no room for a segment.
    pub(super) fn is_full(&self, flight: &Flight) -> bool {
        !self.repair && self.room(flight) < flight.segment()
    }

    /// Whether nothing is being repaired.
    pub(super) fn is_open(&self) -> bool {
        self.phase == Phase::Open && !self.repair
    }

    /// Bytes in flight, for observers.
    pub(super) fn in_flight(&self, flight: &Flight) -> u64 {
        self.used(flight)
    }
}
