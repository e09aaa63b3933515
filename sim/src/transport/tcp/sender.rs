//! The sending half of a connection.

use anabranch_proto::{Blocked, Duration, Time};

use super::config::{RecoveryKind, TcpConfig};
use super::flight::{AckResult, Counts, Flight};
use super::outstanding::Sent;
use super::recovery::{Next, Recovery};
use super::sack1::Sack1;
use super::segment::{TcpNote, Why};
use super::window::Window;
use crate::transport::earlier;

/// Data to be sent, data in flight, and loss recovery.
pub(super) struct Sender {
    pub(super) flight: Flight,
    repair: Repair,
    /// When a closed window is probed, and the number of probes so far.
    probe: Option<(Time, u32)>,
    /// Whether a probe with a new byte is in flight.
    probed: bool,
    /// Probes since the last acknowledgement.
    unanswered: u32,
    /// Timeouts since the last new acknowledgement.
    timeouts: u32,
    /// The cause of waiting that observers were last told.
    blocked: Option<Blocked>,
}

/// The algorithm that detects and repairs losses.
enum Repair {
    Standard(Recovery),
    Sack1(Sack1),
}

/// A piece of the stream that is sent.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) length: u32,
    pub(super) fin: bool,
    pub(super) why: Why,
}

impl Sender {
    pub(super) fn new(config: TcpConfig, window: Window, phase: Duration) -> Self {
        let repair = match config.recovery {
            RecoveryKind::Standard => Repair::Standard(Recovery::default()),
            RecoveryKind::Sack1 => Repair::Sack1(Sack1::new()),
        };
        Sender {
            flight: Flight::new(config, window, phase),
            repair,
            probe: None,
            probed: false,
            unanswered: 0,
            timeouts: 0,
            blocked: None,
        }
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.flight.counts
    }

    /// Timeouts since the last new acknowledgement.
    pub(super) fn timeouts_in_a_row(&self) -> u32 {
        self.timeouts
    }

    /// How often in a row the other end has not answered: timeouts, or probes of its closed window. As long as it
    /// answers probes, the window may stay closed.
    //= rfc9293#section-3.8.6.1
    pub(super) fn waited_in_vain(&self) -> u32 {
        self.timeouts.max(self.unanswered)
    }

    /// Bytes that the application has written and that are not acknowledged.
    pub(super) fn unacknowledged(&self) -> u64 {
        self.flight.written.saturating_sub(self.flight.outstanding.acknowledged())
    }

    /// Whether everything, FIN included, is acknowledged.
    pub(super) fn is_done(&self) -> bool {
        self.flight.closing && self.flight.outstanding.acknowledged() > self.flight.written
    }

    /// When its next timer expires.
    pub(super) fn wakes(&self) -> Option<Time> {
        let probe = self.probe.map(|(at, _)| at);
        earlier(self.flight.timer, probe)
    }

    /// Bytes of its window that a new segment could use now, if there were one; 0 if it could not leave.
    #[inline]
    pub(super) fn room(&mut self) -> u64 {
        match &self.repair {
            Repair::Standard(recovery) if !self.flight.has_unsent() => {
                recovery.room_for_new(&mut self.flight)
            }
            Repair::Standard(_) | Repair::Sack1(_) => 0,
        }
    }

    /// Whether it certainly sends nothing until something arrives, is written or expires.
    #[inline]
    pub(super) fn rests(&self) -> bool {
        let flight = &self.flight;
        let idle = flight.outstanding.is_empty();
        match &self.repair {
            // Its window is full.
            Repair::Standard(recovery) if !idle && recovery.is_full(flight) => true,
            _ if flight.new_data().is_some() => false,
            Repair::Standard(recovery) => recovery.is_open(),
            Repair::Sack1(_) => idle,
        }
    }

    /// Whether nothing is being repaired.
    pub(super) fn is_open(&self) -> bool {
        match &self.repair {
            Repair::Standard(recovery) => recovery.is_open(),
            Repair::Sack1(sack1) => sack1.is_open(),
        }
    }

    /// Bytes in flight, as loss recovery counts them.
    pub(super) fn in_flight(&self) -> u64 {
        match &self.repair {
            Repair::Standard(recovery) => recovery.in_flight(&self.flight),
            Repair::Sack1(sack1) => sack1.in_flight(&self.flight),
        }
    }

    /// An acknowledgement has arrived: cumulative offset, window in bytes, SACK blocks as offsets, and whether it came
    /// without data.
    pub(super) fn acknowledged(
        &mut self,
        now: Time,
        (offset, window): (u64, u64),
        blocks: &[(u64, u64)],
        bare: bool,
    ) {
        self.unanswered = 0;
        let flight = &mut self.flight;
        if self.probed && offset == flight.outstanding.end_offset() + 1 {
            flight.outstanding.push(1, false);
        }
        if offset > flight.outstanding.end_offset() {
            return;
        }
        self.probed &= offset <= flight.outstanding.acknowledged();
        let (pipe_before, outstanding_before) = (flight.outstanding.pipe(), flight.outstanding.bytes());
        let before = (flight.outstanding.acknowledged(), flight.admitted);
        let admitted = flight.admitted.max(offset + window);
        let mut sacked = 0;
        for (start, end) in blocks {
            sacked += flight.outstanding.sack(*start, *end);
        }
        let cumulative = flight.outstanding.acknowledge(offset);
        flight.admitted = admitted;
        let news = AckResult {
            now,
            advances: offset > before.0,
            cumulative,
            sacked,
            repeats: offset == before.0 && bare && admitted == before.1 && outstanding_before > 0,
            pipe_before,
        };
        self.timeouts = if news.advances { 0 } else { self.timeouts };
        self.note_acknowledged(&news, before);
        match &mut self.repair {
            Repair::Standard(recovery) => recovery.acknowledged(&mut self.flight, &news),
            Repair::Sack1(sack1) => sack1.acknowledged(&mut self.flight, &news),
        }
        self.note_window(now);
    }

    /// The next piece to send now.
    pub(super) fn poll(&mut self, now: Time) -> Option<Piece> {
        if self.flight.timer.is_some_and(|timer| timer <= now) {
            self.time_out(now);
        }
        let next = match &mut self.repair {
            Repair::Standard(recovery) => recovery.next(&mut self.flight),
            Repair::Sack1(sack1) => sack1.next(&self.flight),
        };
        match next {
            Some(next) => self.send(now, next),
            None => {
                let probe = self.poll_probe(now);
                if probe.is_none() {
                    self.note_blocked(now);
                }
                probe
            }
        }
    }

    /// Nothing leaves. Tells observers why user data waits.
    fn note_blocked(&mut self, now: Time) {
        if !self.flight.has_notes() {
            return;
        }
        let by = self.waits_for();
        if by != self.blocked {
            self.blocked = by;
            self.flight.note(now, || TcpNote::Blocked(by));
        }
    }

    /// Why user data waits, if it does, while nothing leaves.
    pub(super) fn waits_for(&self) -> Option<Blocked> {
        let waiting = self.flight.new_data().filter(|(length, _)| *length > 0)?;
        Some(if self.flight.admits(waiting) { Blocked::Window } else { Blocked::PeerWindow })
    }

    /// Sends this. The window was asked before.
    pub(super) fn send(&mut self, now: Time, next: Next) -> Option<Piece> {
        let flight = &mut self.flight;
        let (sent, why) = match next {
            Next::New => {
                let (length, fin) = flight.new_data()?;
                flight.restart_after_pause(now);
                let sent = flight.outstanding.push(length, fin);
                flight.time(now, sent.end());
                (sent, Why::New)
            }
            Next::Again(number, why) => (*flight.outstanding.get(number)?, why),
        };
        flight.counts.count(why);
        flight.last_sent = now;
        flight.ensure_timer(now);
        match &mut self.repair {
            Repair::Standard(recovery) => recovery.sent(&mut self.flight, next),
            Repair::Sack1(sack1) => sack1.sent(&mut self.flight, next),
        }
        self.probe = None;
        let Sent { start, length, fin, .. } = sent;
        if length > 0 {
            self.flight.note(now, || TcpNote::Sent { sequence: start, size: length, why });
        }
        self.note_window(now);
        let why = if length == 0 { Why::Close } else { why };
        Some(Piece { start, length, fin, why })
    }

    //= rfc6298#section-5
    fn time_out(&mut self, now: Time) {
        self.flight.timer = None;
        if self.flight.outstanding.is_empty() {
            return;
        }
        self.flight.counts.timeouts += 1;
        self.timeouts += 1;
        self.flight.note(now, || TcpNote::Timeout);
        match &mut self.repair {
            Repair::Standard(recovery) => recovery.timed_out(&mut self.flight, now),
            Repair::Sack1(sack1) => sack1.timed_out(&mut self.flight, now),
        }
        self.flight.rto.back_off();
        self.flight.restart_timer(now);
        self.flight.note_rto(now, None);
        self.note_window(now);
    }

    /// The window is too small for the next segment and nothing is in flight: after a timeout, sends data that fits, or
    /// one byte beyond the window.
    //= rfc9293#section-3.8.6.1
    fn poll_probe(&mut self, now: Time) -> Option<Piece> {
        let flight = &mut self.flight;
        let (length, _) =
            flight.new_data().filter(|data| !flight.admits(*data) && flight.outstanding.is_empty())?;
        let start = flight.outstanding.end_offset();
        let interval = |times: u32| flight.rto.timeout() * 2u32.saturating_pow(times.min(6));
        let (at, times) = *self.probe.get_or_insert_with(|| (now + interval(0), 0));
        if now < at {
            return None;
        }
        self.probe = Some((now + interval(times + 1).min(flight.config.rto_max), times + 1));
        let room = flight.admitted.saturating_sub(start).min(u64::from(length)) as u32;
        flight.counts.segments += 1;
        if room > 0 {
            flight.outstanding.push(room, false);
            flight.ensure_timer(now);
            self.probe = None;
            return Some(Piece { start, length: room, fin: false, why: Why::New });
        }
        flight.counts.probes += 1;
        (self.probed, self.unanswered) = (true, self.unanswered + 1);
        Some(Piece { start, length: 1, fin: false, why: Why::WindowProbe })
    }

    /// The SYN was answered, and data begins with this window. `sent`: when the SYN left, if it left only once.
    pub(super) fn opened(&mut self, now: Time, admitted: u64, window: Window, sent: Option<Time>) {
        (self.flight.admitted, self.flight.window) = (admitted, window);
        match (sent, &self.repair) {
            (Some(sent), _) => {
                self.flight.rto.measured(sent, now);
                self.flight.note_rto(now, Some(now.since(sent)));
            }
            (None, Repair::Standard(_)) => self.flight.rto.after_lost_syn(),
            (None, Repair::Sack1(_)) => {}
        }
        self.note_window(now);
    }

    fn note_acknowledged(&mut self, news: &AckResult, (offset, admitted): (u64, u64)) {
        let bytes = self.flight.outstanding.acknowledged().min(self.flight.written);
        if bytes > offset {
            self.flight.note(news.now, || TcpNote::Acked { bytes });
        }
        if self.flight.admitted != admitted {
            let bytes = self.flight.admitted - self.flight.outstanding.acknowledged();
            self.flight.note(news.now, || TcpNote::PeerWindow { bytes });
        }
    }

    fn note_window(&mut self, now: Time) {
        if self.flight.has_notes() {
            let bytes = self.in_flight();
            self.flight.note_window(now, bytes);
        }
    }
}

impl Counts {
    fn count(&mut self, why: Why) {
        self.segments += 1;
        match why {
            Why::Missing => self.fast_retransmissions += 1,
            Why::Timeout => self.timeout_retransmissions += 1,
            _ => {}
        }
    }
}
