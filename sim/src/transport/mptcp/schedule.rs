//! Decides which subflow gets which data: new data by the scheduler, the data of a failed subflow, and copies of the
//! data that keeps a buffer full.
//!
//! Opportunistic retransmission and penalisation follow C. Raiciu et al., "How Hard Can It Be? Designing and
//! Implementing a Deployable Multipath TCP" (NSDI 2012).

use anabranch_proto::policy::{Acked, Ask, Choice, Why};
use anabranch_proto::{Blocked, PathId, PathState, PathView, Time, Tsn};

use super::config::Reinjection;
use super::connection::Connection;
use super::pieces::Piece;
use super::subflow::{News, Stage};
use crate::observe::trace::Detail;

/// SplitMix64: each bit of the result depends on all bits of the number.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl Connection {
    /// Gives data to a subflow if any may leave now: one that has room for it. Returns the subflow.
    pub(super) fn give_data(&mut self, now: Time) -> Option<usize> {
        if self.written == 0 {
            return None;
        }
        self.look_at_paths();
        self.give_again()
            .or_else(|| self.give_new())
            .or_else(|| self.give_copy(now))
            .or_else(|| self.give_probe(now))
    }

    /// Updates the facts of the paths that have changed.
    fn look_at_paths(&mut self) {
        let most = self.config.pf_max_retrans;
        let mut changed = false;
        for (path, subflow) in self.subflows.iter_mut().enumerate() {
            let news = std::mem::take(&mut subflow.news);
            if news == News::None {
                continue;
            }
            let view = &mut self.views[path];
            if news == News::All {
                subflow.describe(view, most);
                changed = true;
            }
            subflow.describe_flight(view);
        }
        if changed {
            self.hold_backups();
        }
    }

    /// A backup carries nothing while another path works.
    fn hold_backups(&mut self) {
        if self.subflows.iter().all(|subflow| !subflow.backup) {
            return;
        }
        let regular = self.subflows.iter().any(|subflow| subflow.works() && !subflow.backup);
        for (subflow, view) in self.subflows.iter().zip(&mut self.views) {
            view.state = subflow.state_beside(regular);
        }
    }

    /// What the scheduler is asked about new data.
    fn ask(&self, start: u64, size: u32) -> Ask {
        Ask {
            why: Why::New,
            tsn: Tsn(start as u32),
            size,
            stream: 0,
            last: None,
            transmissions: 0,
            queued: self.written - self.pieces.end(),
            peer_window: self.admitted.saturating_sub(self.pieces.end()),
            peer_buffer: self.admitted.saturating_sub(self.pieces.acknowledged()),
            tie: mixed(self.ties ^ start),
            event: self.turn.event,
        }
    }

    /// The path that the scheduler chooses, if it has room, or else what blocks the data.
    fn choose(&self, ask: &Ask) -> Result<usize, Blocked> {
        match self.route.choose(ask, &self.views) {
            Choice::Wait => Err(Blocked::Turn),
            Choice::Send(PathId(path)) => {
                let view = &self.views[usize::from(path)];
                let full = |view: &PathView| view.flight >= view.window.saturating_sub(u64::from(view.pmdcs));
                match () {
                    () if view.room > 0 => Ok(usize::from(path)),
                    () if full(view) && self.views.iter().filter(|view| view.carries()).all(full) => {
                        Err(Blocked::Window)
                    }
                    () => Err(Blocked::Turn),
                }
            }
        }
    }

    /// Gives the lowest data of a failed subflow to another subflow.
    //= rfc8684#section-3.3.6
    fn give_again(&mut self) -> Option<usize> {
        while let Some(piece) = self.pieces.next_again() {
            if self.views[piece.path].state == PathState::Active {
                self.pieces.forget_again();
                continue;
            }
            let ask = Ask {
                why: Why::Timeout,
                last: Some(PathId(piece.path as u16)),
                transmissions: piece.transmissions,
                ..self.ask(piece.start, piece.length)
            };
            let path = self.choose(&ask).ok().filter(|path| *path != piece.path)?;
            self.route.sent(&ask, PathId(path as u16));
            return Some(self.give_piece(piece, path));
        }
        None
    }

    fn give_piece(&mut self, piece: Piece, path: usize) -> usize {
        self.pieces.sent_again(piece.start, path);
        self.subflows[path].give(piece.start, piece.length, true, false);
        self.subflows[path].reinjected += 1;
        path
    }

    /// Gives new data to the subflow that the scheduler chooses.
    fn give_new(&mut self) -> Option<usize> {
        self.turn.found = None;
        let (start, segment) = (self.pieces.end(), u64::from(self.config.tcp.segment_size));
        let size = (self.written - start).min(segment);
        if size == 0 {
            return None;
        }
        if start + size > self.admitted {
            self.turn.found = Some(Blocked::PeerWindow);
            return None;
        }
        let ask = self.ask(start, size as u32);
        match self.choose(&ask) {
            Ok(path) => {
                self.route.sent(&ask, PathId(path as u16));
                self.pieces.push(size as u32, path);
                self.subflows[path].give(start, size as u32, false, false);
                Some(path)
            }
            Err(cause) => {
                self.turn.found = Some(cause);
                None
            }
        }
    }

    /// Whether a full buffer, here or at the receiver, blocks new data.
    fn buffer_full(&self) -> bool {
        match self.written == self.pieces.end() {
            true => self.written - self.pieces.acknowledged() >= self.config.send_buffer,
            false => self.turn.found == Some(Blocked::PeerWindow),
        }
    }

    /// The fastest path with room, if it is faster than `lowest`. A copy on a slower path would not help.
    fn room_beside(&self, lowest: usize) -> Option<usize> {
        let time = |path: usize| self.views[path].srtt.unwrap_or(self.views[path].rto);
        let usable = |path: &usize| {
            let view = &self.views[*path];
            view.carries() && view.room > 0 && time(*path) < time(lowest)
        };
        (0..self.views.len()).filter(usable).min_by_key(|path| (time(*path), *path))
    }

    /// While a buffer is full, sends a copy of the lowest data on another subflow, and penalises the subflow that
    /// carries it.
    fn give_copy(&mut self, now: Time) -> Option<usize> {
        if !self.buffer_full() {
            return None;
        }
        let piece = *self.pieces.lowest()?;
        let path = self.room_beside(piece.path)?;
        if std::mem::take(&mut self.turn.heard) && self.config.penalise {
            self.penalise(now, piece.path);
        }
        if self.config.reinjection != Reinjection::Opportunistic || piece.was_on(path) {
            return None;
        }
        Some(self.give_piece(piece, path))
    }

    /// Reduces the window of a subflow that keeps a buffer full, at most once in a round trip, and not while it repairs
    /// losses.
    fn penalise(&mut self, now: Time, path: usize) {
        if now < self.subflows[path].spared {
            return;
        }
        self.couple(path);
        let subflow = &mut self.subflows[path];
        if subflow.tcp.penalise(now) {
            let facts = subflow.tcp.path();
            subflow.spared = now + facts.srtt.unwrap_or(facts.rto);
            subflow.news = News::All;
        }
    }

    /// The window is closed and nothing is in flight: after a timeout, sends data that fits, or one byte beyond the
    /// window.
    //= rfc9293#section-3.8.6.1
    fn give_probe(&mut self, now: Time) -> Option<usize> {
        let closed = self.turn.found == Some(Blocked::PeerWindow) && self.pieces.is_empty();
        let Some(carrier) = closed.then(|| self.carrier()).flatten() else {
            self.probe.timer = None;
            return None;
        };
        let facts = self.subflows[carrier].tcp.path();
        let wait = |times: u32| facts.rto * 2u32.saturating_pow(times.min(6));
        let (at, times) = *self.probe.timer.get_or_insert((now + wait(0), 0));
        if now < at {
            return None;
        }
        self.probe.timer = Some((now + wait(times + 1).min(self.config.tcp.rto_max), times + 1));
        if self.subflows[carrier].tcp.room() == 0 {
            return None;
        }
        let start = self.pieces.end();
        let fits = self.admitted.saturating_sub(start).min(self.written - start) as u32;
        if fits > 0 {
            self.pieces.push(fits, carrier);
            self.subflows[carrier].give(start, fits, false, false);
        } else {
            self.probe.sent = true;
            self.probe.count += 1;
            self.subflows[carrier].give(start, 1, false, true);
        }
        Some(carrier)
    }

    /// Tells the scheduler which data a subflow has acknowledged.
    pub(super) fn tell_route(&mut self, now: Time, path: usize, bytes: u64) {
        let subflow = &self.subflows[path];
        let view = &mut self.views[path];
        (view.srtt, view.rttvar) = subflow.tcp.round_trip();
        let flight = subflow.tcp.in_flight();
        (view.flight, view.window, view.blocks) = (flight, subflow.tcp.cwnd(), subflow.blocks);
        let acked = Acked {
            now,
            cumulative: bytes,
            gap: 0,
            gap_behind_point: 0,
            advanced: true,
            recovery: false,
            flight_before: flight + bytes,
            unacknowledged_before: flight + bytes,
            flight,
            rtt: None,
        };
        self.route.acked(&self.views[path], &acked);
    }

    /// Nothing more leaves now. Records why data waits.
    pub(super) fn settle(&mut self, now: Time) {
        let all_given = self.written == self.pieces.end();
        let cause = match all_given {
            _ if !self.client || self.subflows[0].stage != Stage::Ready => None,
            true => self.buffer_full().then_some(Blocked::SendBuffer),
            false => self.turn.found,
        };
        self.blocked_by(now, cause);
    }

    /// From now on data waits for this cause.
    pub(super) fn blocked_by(&mut self, now: Time, cause: Option<Blocked>) {
        let buffer = matches!(cause, Some(Blocked::PeerWindow | Blocked::SendBuffer));
        let by = buffer.then(|| self.pieces.lowest().map_or(0, |piece| piece.path));
        if let Some(changed) = self.blocked.set(now, cause, by) {
            if let Some((path, time)) = changed.before {
                self.subflows[path].blocks += time;
                self.subflows[path].news = News::All;
            }
            self.note(now, by, || Detail::Blocked(cause));
        }
    }
}
