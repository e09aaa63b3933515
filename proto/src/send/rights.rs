//! Rights to send, which events grant. They are kept as state, so that additional polls change nothing.

use crate::Config;
use crate::mechanisms::BurstCount as CountOf;
use crate::path::{PathId, Paths};
use crate::policy::Why;
use crate::rules::{Burst, SendOn};

/// The current rights.
#[derive(Clone, Debug)]
pub(super) struct Rights {
    /// Whether new data may leave at all: the required paths are confirmed.
    open: bool,
    /// The right to one packet regardless of the window, with its reason.
    granted: Option<Why>,
    /// The paths that lost chunks when a SACK last marked some, and whether one packet may leave there regardless of
    /// the window.
    paths: Vec<PathRights>,
    /// Whether data may leave now: always, or while a SACK is being answered.
    answering: bool,
    /// Whether marked chunks may leave now, after a timeout.
    resending: bool,
    /// Whether new data may leave after the last marked chunk, because a path works again.
    resuming: bool,
    /// Whether data leaves only in answer to a SACK.
    only_answers: bool,
    /// Whether retransmissions beyond the granted one must wait for the next SACK.
    barred: bool,
    /// The path that one packet may probe, regardless of its window.
    probe: Option<PathId>,
    burst: BurstCount,
}

/// Packets of a train that may leave without another look.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Ready {
    pub(super) packets: u32,
    /// Whether the path has no room behind them, and nothing else limits them.
    pub(super) fills: bool,
}

/// The rights of one path.
#[derive(Copy, Clone, Default, Debug)]
struct PathRights {
    lost: bool,
    granted: bool,
}

/// The count for Max.Burst: packets of one event.
#[derive(Clone, Debug)]
struct BurstCount {
    scope: Burst,
    of: CountOf,
    limit: u32,
    /// Whether the next events are counted.
    armed: bool,
    /// Whether this event is counted.
    counting: bool,
    /// Packets of the association, or of each path.
    packets: Vec<u32>,
    /// Whether marked chunks have left in this event.
    resent: bool,
    /// Whether the event was answered, so that the next one starts a new count. With `when-armed` the single packet of
    /// T3-rtx counts for the next event, too, and so does one that leaves while other chunks stay marked.
    ended: bool,
}

impl Rights {
    pub(super) fn new(config: &Config) -> Self {
        let only_answers = config.rules.send_on == SendOn::Sack;
        Rights {
            open: false,
            granted: None,
            paths: Vec::new(),
            answering: !only_answers,
            resending: false,
            resuming: false,
            only_answers,
            barred: false,
            probe: None,
            burst: BurstCount {
                scope: config.rules.burst,
                of: config.mechanisms.burst_count,
                limit: config.max_burst,
                armed: false,
                counting: false,
                packets: vec![0],
                resent: false,
                ended: true,
            },
        }
    }

    /// Changes Max.Burst.
    pub(super) fn set_max_burst(&mut self, packets: u32) {
        self.burst.limit = packets;
    }

    pub(super) fn open(&mut self) {
        self.open = true;
        self.answering = true;
    }

    pub(super) fn close(&mut self) {
        self.open = false;
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// A new event: its burst begins.
    pub(super) fn event(&mut self) {
        self.burst.begin();
    }

    /// A SACK arrived.
    pub(super) fn sack(&mut self) {
        self.burst.begin();
        self.answering = true;
        self.barred = false;
    }

    /// It was older than an earlier one. If data leaves only in answer to a SACK, marked chunks wait for the next one.
    pub(super) fn old_sack(&mut self) {
        self.barred |= self.only_answers;
    }

    /// A message was given. It is an event of its own if nothing waited, and an answer if nothing was in flight.
    pub(super) fn called(&mut self, was_empty: bool, nothing_in_flight: bool) {
        if was_empty {
            self.burst.begin();
        }
        if nothing_in_flight {
            self.answering = true;
        }
    }

    pub(super) fn grant(&mut self, why: Why) {
        self.granted = Some(why);
    }

    pub(super) fn granted(&self) -> Option<Why> {
        self.granted
    }

    /// Forbids retransmissions beyond the granted one until the next SACK.
    pub(super) fn bar(&mut self) {
        self.barred = true;
    }

    /// Allows one packet on this path regardless of its window.
    pub(super) fn grant_on(&mut self, path: PathId) {
        self.of_path(path).granted = true;
    }

    pub(super) fn granted_on(&self, path: PathId) -> bool {
        self.paths.get(path.index()).is_some_and(|path| path.granted) && self.burst.admits_marked()
    }

    /// Allows one packet to probe this path for the loss of the last packets.
    pub(super) fn grant_probe(&mut self, path: PathId) {
        self.probe = Some(path);
    }

    /// The path that a packet may probe.
    pub(super) fn probes(&self) -> Option<PathId> {
        self.probe
    }

    /// The probe was sent.
    pub(super) fn probed(&mut self) {
        self.probe = None;
    }

    fn of_path(&mut self, path: PathId) -> &mut PathRights {
        if self.paths.len() <= path.index() {
            self.paths.resize(path.index() + 1, PathRights::default());
        }
        &mut self.paths[path.index()]
    }

    /// Whether this path lost chunks that are marked now.
    pub(super) fn set_lost(&mut self, path: PathId, lost: bool) {
        *self.of_path(path) = PathRights { lost, granted: lost };
    }

    /// After a timeout marked chunks may leave as the windows allow, and one packet on each path that lost chunks
    /// when a SACK last marked some. Retransmissions are no longer forbidden, because the SACK that would allow them
    /// may never arrive.
    pub(super) fn resend_as_windows_allow(&mut self) {
        (self.resending, self.barred) = (true, false);
        self.paths.iter_mut().for_each(|path| path.granted = path.lost);
    }

    /// A path works again: marked chunks may leave as after a timeout, then new data.
    pub(super) fn resume(&mut self) {
        self.resend_as_windows_allow();
        self.resuming = !self.answering;
    }

    /// Marked chunks of a path that is gone may leave as after a timeout. If only SACKs release data, one packet may
    /// leave in any case, because nothing may be in flight any more.
    pub(super) fn send_elsewhere(&mut self) {
        self.resend_as_windows_allow();
        if self.only_answers {
            self.grant(Why::Timeout);
        }
    }

    /// Whether new data may leave only because a path works again.
    pub(super) fn resumes(&self) -> bool {
        self.resuming
    }

    /// A cumulative acknowledgement covered a chunk that was fast-retransmitted, or retransmitted at all.
    pub(super) fn arm(&mut self, fast: bool) {
        let arms = match self.burst.scope {
            Burst::WhenArmed => fast,
            Burst::OnceArmed => true,
            Burst::Off | Burst::Always => false,
        };
        self.burst.armed |= arms;
        self.burst.counting |= arms;
    }

    /// Whether marked chunks may leave if there is room.
    pub(super) fn may_retransmit(&self) -> bool {
        (self.answering || self.resending) && !self.barred && self.burst.admits_marked()
    }

    /// Whether marked chunks may leave on any path.
    pub(super) fn may_retransmit_anywhere(&self) -> bool {
        self.granted.is_some() || self.may_retransmit() || self.paths.iter().any(|path| path.granted)
    }

    /// Whether new chunks may leave if there is room.
    #[inline(always)]
    pub(super) fn may_send(&self) -> bool {
        let now = self.answering || self.resuming;
        self.open && now && self.burst.admits_new()
    }

    /// How many packets of new chunks Max.Burst still allows, if it limits the association and not each path.
    pub(super) fn left(&self) -> u32 {
        debug_assert!(!self.limits_paths());
        self.burst.left()
    }

    /// Whether Max.Burst limits each path.
    #[inline]
    pub(super) fn limits_paths(&self) -> bool {
        self.burst.of == CountOf::Path && self.burst.counting
    }

    /// Whether Max.Burst, if it limits each path, admits a packet of new chunks on this one.
    #[inline]
    pub(super) fn admits_on(&self, path: PathId) -> bool {
        !self.limits_paths() || self.burst.admits(self.burst.on(path))
    }

    /// Closes the paths on which Max.Burst holds back new chunks.
    #[inline]
    pub(super) fn limit_bursts(&self, paths: &mut Paths) {
        if self.limits_paths() {
            paths.close_room(|path| !self.burst.admits(self.burst.on(path)));
        }
    }

    /// Opens the paths on which one packet of marked chunks may leave regardless of the window.
    pub(super) fn open_granted(&self, paths: &mut Paths) {
        for id in paths.ids().filter(|id| self.granted_on(*id)) {
            paths.grant_room(id);
        }
    }

    /// A packet of marked chunks was sent on this path.
    pub(super) fn retransmitted(&mut self, path: PathId) {
        self.granted = None;
        if let Some(path) = self.paths.get_mut(path.index()) {
            path.granted = false;
        }
        if matches!(self.burst.scope, Burst::WhenArmed | Burst::OnceArmed) {
            self.burst.begin_round();
            self.burst.count(path);
            self.burst.disarm(self.burst.admits_marked());
        }
    }

    /// Records whether Max.Burst held back a new chunk that had room.
    pub(super) fn kept_back(&mut self) {
        let full = self.open && !self.burst.admits_new();
        self.burst.disarm(!full);
    }

    /// A packet of new chunks was sent on this path.
    pub(super) fn sent_new(&mut self, path: PathId) {
        self.granted = None;
        self.burst.count(path);
    }

    /// The answer is complete. A right to one packet remains only while there are marked chunks. The right to send at
    /// all remains while nothing is in flight, because then no SACK will arrive to renew it.
    pub(super) fn settle(&mut self, marked: bool, nothing_in_flight: bool) {
        self.burst.ended |= self.answering && !(marked && self.burst.resent);
        self.answering &= !self.only_answers || nothing_in_flight;
        (self.resending, self.resuming, self.probe) = (false, false, None);
        self.paths.iter_mut().for_each(|path| path.granted = false);
        if !marked {
            self.granted = None;
        }
    }
}

impl BurstCount {
    fn begin(&mut self) {
        if self.ended || self.scope != Burst::WhenArmed {
            self.forget();
        }
        (self.resent, self.ended) = (false, false);
        self.counting = match self.scope {
            Burst::Off => false,
            Burst::Always => true,
            Burst::WhenArmed | Burst::OnceArmed => self.armed,
        };
    }

    /// Counts from zero again.
    #[inline]
    fn forget(&mut self) {
        match &mut self.packets[..] {
            [only] => *only = 0,
            all => all.fill(0),
        }
    }

    /// A round of retransmissions begins with its first packet. With `when-armed` its count continues with new data.
    fn begin_round(&mut self) {
        if self.scope == Burst::WhenArmed && !self.resent {
            self.packets.fill(0);
        }
        self.resent = true;
    }

    fn index(&self, path: PathId) -> usize {
        if self.of == CountOf::Path { path.index() } else { 0 }
    }

    fn on(&self, path: PathId) -> u32 {
        self.packets.get(self.index(path)).copied().unwrap_or(0)
    }

    fn count(&mut self, path: PathId) {
        if self.scope == Burst::WhenArmed && !self.counting {
            return;
        }
        let index = self.index(path);
        if self.packets.len() <= index {
            self.packets.resize(index + 1, 0);
        }
        self.packets[index] += 1;
    }

    /// `when-armed` lasts until its limit was reached.
    fn disarm(&mut self, below_limit: bool) {
        self.armed &= below_limit || self.scope != Burst::WhenArmed;
    }

    //= rfc9260#section-6.1
    fn admits(&self, packets: u32) -> bool {
        !self.counting || packets < self.limit
    }

    /// How many packets of new chunks it allows, if it counts those of the association.
    fn left(&self) -> u32 {
        if self.counting { self.limit.saturating_sub(self.packets[0]) } else { u32::MAX }
    }

    /// Whether a packet of new chunks may leave on any path.
    #[inline]
    fn admits_new(&self) -> bool {
        !self.counting || self.packets.iter().any(|packets| *packets < self.limit)
    }

    /// ns-2 checks after it has counted, which gives one packet more than for new data. The RFCs limit new data only.
    fn admits_marked(&self) -> bool {
        let new_round = self.scope == Burst::WhenArmed && !self.resent;
        let unlimited = !self.counting || self.scope == Burst::Always || new_round;
        unlimited || self.packets.iter().all(|n| *n <= self.limit)
    }
}
