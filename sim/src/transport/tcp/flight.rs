//! The data that a sender has in flight and its limits. All kinds of loss recovery share them.

use anabranch_proto::control::window::{Acked, Loss, Lost, Sibling};
use anabranch_proto::{Duration, Time};
use smallvec::SmallVec;

use super::config::TcpConfig;
use super::outstanding::Outstanding;
use super::rto::Rto;
use super::segment::{TcpNote, Why};
use super::window::Window;

/// The data of a sender, its window and its timer.
pub(super) struct Flight {
    pub(super) config: TcpConfig,
    pub(super) outstanding: Outstanding,
    pub(super) window: Window,
    /// The windows of the connection's other subflows; a TCP connection has none.
    pub(super) siblings: SmallVec<[Sibling; 2]>,
    pub(super) rto: Rto,
    /// When the retransmission timer expires.
    pub(super) timer: Option<Time>,
    /// The end of the segment whose round trip is being timed (its last byte plus one), and when it left.
    timed: Option<(u64, Time)>,
    /// When data was last sent.
    pub(super) last_sent: Time,
    /// Bytes that the application has written.
    pub(super) written: u64,
    /// Whether the application will write no more, so that FIN follows.
    pub(super) closing: bool,
    /// One past the highest offset that the receiver allows.
    pub(super) admitted: u64,
    pub(super) counts: Counts,
    notes: Option<Vec<(Time, TcpNote)>>,
}

/// The counters of a sender.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Counts {
    /// Segments with data or FIN sent, retransmissions included.
    pub(crate) segments: u64,
    /// Segments that were sent again because of duplicate acknowledgements.
    pub(crate) fast_retransmissions: u64,
    /// Segments that were sent again after a timeout.
    pub(crate) timeout_retransmissions: u64,
    /// How often the retransmission timer expired.
    pub(crate) timeouts: u64,
    /// The number of fast recoveries.
    pub(crate) fast_recoveries: u64,
    /// Window probes sent.
    pub(crate) probes: u64,
}

/// What an acknowledgement newly reports.
#[derive(Copy, Clone, Debug)]
pub(super) struct AckResult {
    pub(super) now: Time,
    /// Whether the cumulative point advances.
    pub(super) advances: bool,
    /// Bytes newly acknowledged by the cumulative point.
    pub(super) cumulative: u64,
    /// Bytes newly acknowledged selectively.
    pub(super) sacked: u64,
    /// Whether it is a duplicate without SACK (RFC 5681 §2): nothing new, no data, the same window.
    pub(super) repeats: bool,
    /// Bytes in the network before it.
    pub(super) pipe_before: u64,
}

impl Flight {
    pub(super) fn new(config: TcpConfig, window: Window, phase: Duration) -> Self {
        Flight {
            outstanding: Outstanding::default(),
            window,
            siblings: SmallVec::new(),
            rto: Rto::new(&config, phase),
            timer: None,
            timed: None,
            last_sent: Time::ZERO,
            written: 0,
            closing: false,
            admitted: 0,
            counts: Counts::default(),
            notes: None,
            config,
        }
    }

    /// The segment size, in bytes.
    pub(super) fn segment(&self) -> u64 {
        u64::from(self.config.segment_size)
    }

    /// The congestion window, in bytes.
    pub(super) fn cwnd(&self) -> u64 {
        self.window.bytes(self.segment())
    }

    /// The number of bytes in the next new segment, and whether it carries FIN. `None`: there is nothing to send.
    pub(super) fn new_data(&self) -> Option<(u32, bool)> {
        let sent = self.outstanding.end_offset();
        let left = self.written.saturating_sub(sent);
        let length = left.min(self.segment());
        let fin = self.closing && left == length && sent <= self.written;
        (length > 0 || fin).then_some((length as u32, fin))
    }

    /// Whether some written bytes were never sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.written > self.outstanding.end_offset()
    }

    /// Whether the receiver's window allows the next new segment.
    pub(super) fn admits(&self, (length, _): (u32, bool)) -> bool {
        self.outstanding.end_offset() + u64::from(length) <= self.admitted
    }

    /// Grows the window for an acknowledgement outside recovery and the round trip that it measured.
    pub(super) fn grow(&mut self, news: &AckResult, rtt: Option<Duration>) {
        match &mut self.window {
            Window::Packets(window) => window.grow(),
            Window::Bytes(_) => self.acked(news, rtt, false),
        }
    }

    /// As `grow`, within recovery: the window does not grow, but it may count what was delivered.
    pub(super) fn hear_in_recovery(&mut self, news: &AckResult, rtt: Option<Duration>) {
        if let Window::Bytes(_) = &self.window {
            self.acked(news, rtt, true);
        }
    }

    /// Tells the window what an acknowledgement acknowledged.
    fn acked(&mut self, news: &AckResult, rtt: Option<Duration>, recovery: bool) {
        // TCP sends whole segments. If the window has no room for another segment, it counts as fully used. Window
        // policies for SCTP look at bytes only: flight that reaches the window, and whether any is left. Of a full
        // window they must not hear that none is left, or those that count a whole window of bytes would begin anew with
        // each acknowledgement of all segments, and never grow.
        let full = news.pipe_before + self.segment() > self.cwnd();
        let before = if full { news.pipe_before.max(self.cwnd()) } else { news.pipe_before };
        let acked = Acked {
            now: news.now,
            cumulative: news.cumulative,
            gap: news.sacked,
            gap_behind_point: if news.advances { news.sacked } else { 0 },
            advanced: news.advances,
            recovery,
            flight_before: before,
            unacknowledged_before: before,
            flight: self.outstanding.pipe().max(u64::from(full)),
            rtt,
        };
        match self.siblings.is_empty() {
            true => self.window.acked(&acked, &[self.own(true)]),
            false => self.window.acked(&acked, &self.all()),
        }
    }

    /// Reduces the window. `limited`: bytes sent by limited transmit, which do not count as flight.
    pub(super) fn cut(&mut self, now: Time, how: Loss, limited: u64) {
        let outstanding = self.outstanding.bytes().saturating_sub(limited);
        let all = self.all();
        self.window.lost(&Lost { now, how, outstanding }, &all);
    }

    /// New data is about to leave. After a pause of more than the retransmission timeout, no acknowledgements pace what
    /// the window releases, so it begins with the initial one at most.
    //= rfc5681#section-4.1
    #[inline]
    pub(super) fn restart_after_pause(&mut self, now: Time) {
        if self.outstanding.is_empty() && now.since(self.last_sent) > self.rto.timeout() {
            self.window.restart(self.config.initial_window);
        }
    }

    /// The facts of this window that window policies use.
    pub(super) fn own(&self, own: bool) -> Sibling {
        Sibling {
            own,
            window: self.cwnd(),
            ssthresh: self.window.ssthresh(self.segment()),
            flight: self.outstanding.pipe(),
            srtt: self.rto.srtt(),
            loss_distance: self.window.loss_distance(),
        }
    }

    fn all(&self) -> SmallVec<[Sibling; 4]> {
        self.siblings.iter().copied().chain([self.own(true)]).collect()
    }

    /// Restarts the retransmission timer, or stops it if nothing is outstanding.
    //= rfc6298#section-5
    pub(super) fn restart_timer(&mut self, now: Time) {
        self.timer = (!self.outstanding.is_empty()).then(|| now + self.rto.timeout());
    }

    /// A segment was sent, so the timer must run.
    //= rfc6298#section-5
    pub(super) fn ensure_timer(&mut self, now: Time) {
        if self.timer.is_none() {
            self.timer = Some(now + self.rto.timeout());
        }
    }

    /// Starts timing the round trip of a new segment that ends here, unless another one is being timed.
    pub(super) fn time(&mut self, now: Time, end: u64) {
        self.timed.get_or_insert((end, now));
    }

    /// Stops timing, because data is sent again (Karn).
    //= rfc6298#section-3
    pub(super) fn stop_timing(&mut self) {
        self.timed = None;
    }

    /// Stops timing the segment that ends here, because it is sent again.
    //= rfc6298#section-3
    pub(super) fn stop_timing_of(&mut self, segment_end: u64) {
        self.timed.take_if(|(end, _)| *end == segment_end);
    }

    /// Completes the measurement if the cumulative point has passed the timed segment.
    pub(super) fn measure(&mut self, now: Time) -> Option<Duration> {
        let (_, sent) = self.timed.take_if(|(end, _)| *end <= self.outstanding.acknowledged())?;
        let rtt = now.since(sent);
        self.rto.measured(sent, now);
        self.note_rto(now, Some(rtt));
        Some(rtt)
    }

    pub(super) fn set_notes(&mut self, on: bool) {
        self.notes = on.then(Vec::new);
    }

    pub(super) fn take_notes(&mut self) -> Vec<(Time, TcpNote)> {
        self.notes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether details are recorded.
    pub(super) fn has_notes(&self) -> bool {
        self.notes.is_some()
    }

    pub(super) fn note(&mut self, now: Time, note: impl FnOnce() -> TcpNote) {
        if let Some(notes) = &mut self.notes {
            notes.push((now, note()));
        }
    }

    /// Records a possible change of RTO. `rtt`: what was measured now.
    pub(super) fn note_rto(&mut self, now: Time, rtt: Option<Duration>) {
        let (rto, srtt) = (self.rto.timeout(), self.rto.srtt());
        self.note(now, || TcpNote::Rto { rto, srtt, rtt });
    }

    /// Segments are declared lost.
    pub(super) fn note_marked(&mut self, now: Time, numbers: std::ops::Range<u64>, why: Why) {
        if self.notes.is_none() {
            return;
        }
        for number in numbers {
            if let Some(sequence) = self.outstanding.get(number).map(|sent| sent.start) {
                self.note(now, || TcpNote::Marked { sequence, why });
            }
        }
    }

    /// Records the window and the bytes that loss recovery counts as in flight.
    pub(super) fn note_window(&mut self, now: Time, flight: u64) {
        let segment = self.segment();
        let note = TcpNote::Window {
            cwnd: self.window.bytes(segment),
            cwnd_segments: self.window.segments(segment),
            ssthresh: self.window.ssthresh(segment),
            flight,
            marked: self.outstanding.marked(),
        };
        self.note(now, || note);
    }
}
