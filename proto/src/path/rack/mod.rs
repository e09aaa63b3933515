//! The order in which chunks arrive on a path: the state of RACK and of tail loss probes (RFC 8985), kept for each
//! path.
//!
//! RFC 8985 describes one connection on one path. Times of different paths cannot be compared, so here each path has
//! the state of a connection, and a chunk belongs to the path that carried it last. TSNs play the part of sequence
//! numbers, and the duplicate TSNs of a SACK that of DSACK.

use super::PathView;
use crate::{Duration, Time, Tsn};

/// The number of recoveries for which duplicates keep the reordering window wide.
const RECOVERIES: u32 = 16;

/// The RACK state of a path, and its tail loss probe in flight.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Rack {
    /// The delivered chunk that was sent last: its sending time and TSN (RACK.xmit_ts, RACK.end_seq).
    newest: Option<(Time, Tsn)>,
    /// The same, among the chunks that the SACK being processed acknowledges.
    heard: Option<(Time, Tsn)>,
    /// The delivery time of the last-sent chunk in the last SACK (RACK.rtt).
    rtt: Duration,
    /// The highest TSN delivered (RACK.fack).
    highest: Option<Tsn>,
    /// Whether a chunk that was sent once has arrived after a higher one (RACK.reordering_seen).
    reordered: bool,
    /// The reordering window in quarters of the smallest round-trip time (RACK.reo_wnd_mult).
    quarters: u32,
    /// The number of recoveries until the multiplier returns to one (RACK.reo_wnd_persist).
    persists: u32,
    /// The next TSN at the time when a SACK last reported duplicates (RACK.dsack_round).
    round: Option<Tsn>,
    /// While chunks of this path are being recovered: the highest TSN sent when they were lost. Its acknowledgement
    /// ends the recovery.
    recovery: Option<Tsn>,
    /// Chunks of this path that Gap Ack Blocks acknowledge (RACK.segs_sacked).
    pub(crate) gapped: u32,
    /// When the window was cut last.
    cut: Time,
    /// The probe that is not acknowledged yet.
    pub(crate) probe: Option<Probe>,
    /// Whether the round trip has been measured since the last probe.
    measured: bool,
}

/// A tail loss probe (RFC 8985 §7).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Probe {
    /// Its highest TSN (TLP.end_seq).
    pub(crate) tsn: Tsn,
    /// When it was sent.
    pub(crate) at: Time,
    /// Whether it repeated a chunk (TLP.is_retrans).
    pub(crate) again: bool,
}

/// A chunk that was delivered.
pub(crate) struct Delivered {
    pub(crate) tsn: Tsn,
    /// When it was sent last.
    pub(crate) at: Time,
    /// Whether it was sent more than once.
    pub(crate) again: bool,
    /// Whether the acknowledgement belongs to an earlier transmission, or to an unknown path.
    pub(crate) ambiguous: bool,
}

/// How a path judges the chunks that it has not delivered.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Lateness {
    newest: (Time, Tsn),
    /// How long after its transmission an overtaken chunk counts as lost.
    after: Duration,
}

impl Lateness {
    /// When a chunk counts as lost; `None` if no later one has been delivered.
    //= rfc8985#section-6.2
    pub(crate) fn of(&self, at: Time, tsn: Tsn) -> Option<Time> {
        sent_after(self.newest, (at, tsn)).then(|| at + self.after)
    }

    /// Whether a chunk was sent longer ago than the last delivery took.
    //= rfc8985#section-6.3
    pub(crate) fn is_late(&self, at: Time, now: Time) -> bool {
        at + self.after <= now
    }
}

/// Whether the first of two transmissions was later. Transmissions at the same time are ordered by their TSNs.
fn sent_after(one: (Time, Tsn), other: (Time, Tsn)) -> bool {
    one.0 > other.0 || (one.0 == other.0 && one.1.after(other.1))
}

impl Default for Rack {
    fn default() -> Self {
        Rack {
            newest: None,
            heard: None,
            rtt: Duration::ZERO,
            highest: None,
            reordered: false,
            quarters: 1,
            persists: RECOVERIES,
            round: None,
            recovery: None,
            gapped: 0,
            cut: Time::ZERO,
            probe: None,
            measured: false,
        }
    }
}

impl Rack {
    /// The state of a new path. Gap Ack Blocks acknowledged `gapped` chunks of its previous life.
    pub(super) fn begun(gapped: u32) -> Self {
        Rack { gapped, ..Rack::default() }
    }

    /// The state after a reset of the TSNs. `measured`: whether the round trip was measured.
    pub(super) fn begun_anew(measured: bool) -> Self {
        Rack { measured, ..Rack::default() }
    }

    /// The round trip was measured.
    pub(super) fn measured(&mut self) {
        self.measured = true;
    }

    /// The window is cut now.
    pub(super) fn cut(&mut self, now: Time) {
        self.cut = now;
    }

    /// The SACK newly acknowledges this chunk. Chunks must be given in the order of their TSNs.
    //= rfc8985#section-6.2
    pub(crate) fn delivered(&mut self, chunk: &Delivered, now: Time, min_rtt: Option<Duration>) {
        match self.highest {
            Some(highest) if !chunk.tsn.after(highest) => self.reordered |= !chunk.again,
            _ => self.highest = Some(chunk.tsn),
        }
        // This is shorter than any round trip: the previous transmission was acknowledged.
        let too_soon = chunk.again && min_rtt.is_some_and(|least| now.since(chunk.at) < least);
        let sent = (chunk.at, chunk.tsn);
        let later = self.heard.is_none_or(|heard| sent_after(sent, heard));
        if !chunk.ambiguous && !too_soon && later {
            self.heard = Some(sent);
        }
    }

    /// The SACK was processed. `point` is its Cumulative TSN Ack and `next` the next TSN; `duplicates` says whether
    /// it reported duplicates.
    //= rfc8985#section-6.2
    pub(crate) fn heard(&mut self, now: Time, point: Tsn, next: Tsn, duplicates: bool) {
        if let Some(heard) = self.heard.take() {
            self.rtt = now.since(heard.0);
            if self.newest.is_none_or(|newest| sent_after(heard, newest)) {
                self.newest = Some(heard);
            }
        }
        let recovered = self.recovery.take_if(|exit| !point.before(*exit)).is_some();
        self.round.take_if(|round| !point.before(*round));
        if duplicates && self.round.is_none() {
            self.round = Some(next);
            self.quarters = self.quarters.saturating_add(1);
            self.persists = RECOVERIES;
        } else if recovered {
            self.persists = self.persists.saturating_sub(1);
            if self.persists == 0 {
                self.quarters = 1;
            }
        }
    }

    /// The judgement of chunks now; `None` while nothing was delivered. Without reordering, `enough` chunks
    /// acknowledged beyond a hole prove a loss at once.
    //= rfc8985#section-6.2
    pub(crate) fn lateness(&self, view: &PathView, enough: u32) -> Option<Lateness> {
        let at_once = !self.reordered && (self.recovery.is_some() || self.gapped >= enough);
        let window = if at_once { Duration::ZERO } else { self.window(view) };
        Some(Lateness { newest: self.newest?, after: self.rtt + window })
    }

    /// The reordering window: at most the smoothed round-trip time.
    fn window(&self, view: &PathView) -> Duration {
        let window = view.min_rtt.unwrap_or(self.rtt) * self.quarters / 4;
        view.srtt.map_or(window, |srtt| window.min(srtt))
    }

    /// Chunks were found lost on this path when `highest` was the highest TSN sent. This ends a probe in flight.
    //= rfc8985#section-7.1
    pub(crate) fn lost(&mut self, highest: Tsn) {
        self.recovery = Some(highest);
        self.probe = None;
    }

    /// Whether a loss of what was sent at this time is a further sign of congestion: it was sent after the last cut
    /// of the window.
    //= rfc8985#section-9.3
    pub(crate) fn is_new_congestion(&self, at: Time) -> bool {
        at >= self.cut
    }

    /// Whether a probe may be sent: no probe is in flight, the round trip was measured since the last one, and no
    /// loss is being recovered.
    //= rfc8985#section-7.2
    //= rfc8985#section-7.3
    pub(crate) fn may_probe(&self) -> bool {
        self.probe.is_none() && self.measured && self.recovery.is_none()
    }

    /// A probe was sent.
    pub(crate) fn probed(&mut self, probe: Probe) {
        (self.probe, self.measured) = (Some(probe), false);
    }

    /// Evaluates a SACK for a probe that has arrived. Returns whether the probe has repaired a loss: something sent
    /// after it was delivered, and the SACK does not report it as a duplicate.
    //= rfc8985#section-7.4.2
    pub(crate) fn probe_arrived(&mut self, duplicate: bool) -> bool {
        let Some(probe) = self.probe else { return false };
        let later = self.newest.is_some_and(|newest| sent_after(newest, (probe.at, probe.tsn)));
        let repaired = probe.again && !duplicate && later;
        if !probe.again || duplicate || repaired {
            self.probe = None;
        }
        repaired
    }

    /// Whether a chunk in flight was sent before one that was delivered. Then it is not the tail of the transmission.
    pub(crate) fn overtaken(&self, at: Time, tsn: Tsn) -> bool {
        self.newest.is_some_and(|newest| sent_after(newest, (at, tsn)))
    }
}

#[cfg(test)]
mod tests;
