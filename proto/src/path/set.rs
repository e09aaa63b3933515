//! The paths of an association: their facts in one slice, their other state in another.

use super::estimate::Needs;
use super::start::{start, unit};
use super::{Mtu, Path, PathId, PathState, PathView, RttSamples, SackResult, Timers, Wanted};
use crate::control::rtt::RtoLimits;
use crate::mechanisms::{Mechanisms, T3Flight};
use crate::policy::Sibling;
use crate::policy::window::MakeWindow;
use crate::rules::{AfterTimeout, Dormant, InFlight, Karn, Rules, T3Marks, T3Resent, T3Restart, TakenBack};
use crate::wire::Address;
use crate::{Config, Time, Tsn};

use super::health::{Health, SentHeartbeat};
use super::mtu::pmdcs;
use super::order::Order;
use rand_chacha::ChaCha8Rng;

/// Places for paths in an association.
const MOST_PATHS: usize = 256;

// What every packet needs stands first: see `Association`.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Paths {
    pub(super) views: Vec<PathView>,
    pub(super) rest: Vec<Path>,
    /// The facts of the paths that windows see; updated before a window is called.
    pub(super) siblings: Vec<Sibling>,
    /// The smallest DATA chunk limit of all paths.
    smallest_pmdcs: u32,
    /// Whether some path may want a heartbeat or a probe. It is checked before every packet.
    asking: bool,
    in_flight: InFlight,
    /// How data measures round-trip times.
    pub(crate) samples: RttSamples,
    /// The purposes for which the order of arrivals is recorded.
    pub(super) order: Order,
    /// The estimates that policies need of every path.
    pub(super) needs: Needs,
    /// Bytes that timestamps occupy in packets with data.
    pub(super) stamps: u32,
    /// Bytes that an extension occupies in packets with data.
    overhead: u32,
    /// Bytes that an extension occupies in packets that probe a path.
    pub(super) probe_overhead: u32,
    /// When T3-rtx of any path last expired.
    pub(crate) t3_expired: Time,
    /// Local addresses that are down.
    down: Vec<Address>,
    /// Local addresses whose sockets are full.
    full: Vec<Address>,
    pub(crate) limits: RtoLimits,
    pub(super) rules: Rules,
    pub(super) mechanisms: Mechanisms,
}

impl Paths {
    pub(crate) fn new(config: &Config) -> Self {
        Paths {
            views: Vec::new(),
            rest: Vec::new(),
            siblings: Vec::new(),
            limits: config.rto_limits(),
            rules: config.rules,
            in_flight: config.rules.in_flight,
            mechanisms: config.mechanisms,
            smallest_pmdcs: u32::MAX,
            overhead: 0,
            probe_overhead: 0,
            down: Vec::new(),
            full: Vec::new(),
            asking: false,
            t3_expired: Time::NEVER,
            samples: RttSamples::OneAtATime,
            stamps: 0,
            order: Order::new(config),
            needs: Needs::NONE,
        }
    }

    /// Removes all paths, as at the beginning. The state of the local addresses stays.
    pub(crate) fn begun_anew(&self, config: &Config) -> Self {
        let (down, full) = (self.down.clone(), self.full.clone());
        Paths { down, full, needs: self.needs, ..Paths::new(config) }
    }

    pub(crate) fn views(&self) -> &[PathView] {
        &self.views
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = PathId> + use<> {
        (0..self.views.len() as u16).map(PathId)
    }

    pub(crate) fn view(&self, id: PathId) -> &PathView {
        &self.views[id.index()]
    }

    pub(crate) fn view_mut(&mut self, id: PathId) -> &mut PathView {
        &mut self.views[id.index()]
    }

    pub(crate) fn get(&self, id: PathId) -> &Path {
        &self.rest[id.index()]
    }

    pub(crate) fn get_mut(&mut self, id: PathId) -> &mut Path {
        &mut self.rest[id.index()]
    }

    #[inline(always)]
    pub(crate) fn both(&mut self, id: PathId) -> (&mut PathView, &mut Path) {
        (&mut self.views[id.index()], &mut self.rest[id.index()])
    }

    /// Whether there is this path, and it was not removed.
    pub(crate) fn has(&self, id: PathId) -> bool {
        self.views.get(id.index()).is_some_and(|view| view.state != PathState::Removed)
    }

    /// Requests a heartbeat on this path.
    pub(crate) fn ask(&mut self, id: PathId) {
        self.get_mut(id).health.wanted = Wanted::Now;
        self.asking = true;
    }

    /// Requests a heartbeat that follows the packets that may leave on this path now.
    pub(crate) fn ask_after_data(&mut self, id: PathId) {
        let wanted = &mut self.get_mut(id).health.wanted;
        if *wanted == Wanted::No {
            *wanted = Wanted::AfterData;
        }
        self.asking = true;
    }

    /// No packet may leave any more: heartbeats that waited for that are due.
    pub(crate) fn data_gone(&mut self) {
        for path in &mut self.rest {
            if path.health.wanted == Wanted::AfterData {
                path.health.wanted = Wanted::Now;
            }
        }
    }

    /// Requests a heartbeat on this path from another local address than its own.
    pub(crate) fn ask_from(&mut self, id: PathId, local: Address) {
        self.get_mut(id).health.elsewhere = Some(local);
        self.asking = true;
    }

    /// The heartbeat with this information, and its path.
    pub(crate) fn answered(&mut self, info: &[u8]) -> Option<(PathId, SentHeartbeat)> {
        let live = |view: &PathView| view.state != PathState::Removed;
        let mut paths = self.views.iter().zip(&mut self.rest).filter(|(view, _)| live(view));
        paths.find_map(|(view, path)| Some((view.id, path.health.answered(info)?)))
    }

    /// Notes that a probe of the MTU may be wanted.
    pub(super) fn may_probe(&mut self) {
        self.asking = true;
    }

    /// Whether a heartbeat, or a probe of the MTU, may be wanted on any path.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking
    }

    /// Notes that all current requests were handled.
    pub(crate) fn all_asked(&mut self) {
        self.asking = self.rest.iter().any(Path::is_asking) || self.wants_pairs();
    }

    /// The path of this pair of addresses.
    #[inline(always)]
    pub(crate) fn of_pair(&self, local: Address, remote: Address) -> Option<PathId> {
        // A loop is compiled in place. `find` would be a function of its own, called for every packet.
        for view in &self.views {
            if view.remote == remote && view.local == local && view.state != PathState::Removed {
                return Some(view.id);
            }
        }
        None
    }

    /// A path to this peer address.
    pub(crate) fn to(&self, remote: Address) -> Option<PathId> {
        let live = |p: &&PathView| p.remote == remote && p.state != PathState::Removed;
        self.views.iter().find(live).map(|p| p.id)
    }

    pub(crate) fn primary(&self) -> PathId {
        self.views.iter().find(|p| p.primary).map_or(PathId(0), |p| p.id)
    }

    pub(crate) fn set_primary(&mut self, id: PathId) {
        self.views.iter_mut().for_each(|p| p.primary = p.id == id);
    }

    /// If every confirmed path is inactive: the path with the fewest consecutive errors, preferably another than
    /// `last`.
    pub(crate) fn fewest_errors(&self, last: PathId) -> Option<PathId> {
        let confirmed = || self.views.iter().filter(|p| p.confirmed());
        if confirmed().any(|p| p.state != PathState::Inactive) {
            return None;
        }
        confirmed().min_by_key(|p| (!p.up, p.errors, p.id == last)).map(|p| p.id)
    }

    /// If every path is inactive, and the rule `dormant` says so: the path after this one.
    pub(crate) fn next_dormant(&self, id: PathId) -> Option<PathId> {
        let inactive = |view: &PathView| view.state == PathState::Inactive;
        if !inactive(self.view(id)) || self.rules.dormant == Dormant::Last {
            return None;
        }
        let live = || self.views.iter().filter(|view| view.state != PathState::Removed);
        live()
            .all(inactive)
            .then(|| live().find(|view| view.id > id).or(live().next()).map(|view| view.id))?
    }

    /// Adds the path of this pair in this place, unconfirmed. The first becomes the primary.
    pub(crate) fn add(
        &mut self,
        id: PathId,
        (local, remote): (Address, Address),
        now: Time,
        config: &Config,
        window: &MakeWindow,
        chance: &mut ChaCha8Rng,
    ) {
        let gone = self.rest.get(id.index());
        let mtu = Mtu::new(config);
        let unit = unit(config, remote, mtu.size(), self.stamps);
        let mut path = Path::new(
            (unit, window(start(config, remote, unit))),
            max_cwnd(config, id),
            mtu,
            Health::new(now, chance),
            config.rules.rtt_on_cut,
        );
        // Chunks acknowledged by gaps are still charged to a path that was removed and returns.
        path.buffered = gone.map_or(0, |gone| gone.buffered);
        path.rack = self.order.kept(gone.and_then(|gone| gone.rack));
        path.writable = !self.full.contains(&local);
        let view = PathView {
            up: !self.down.contains(&local),
            primary: self.views.is_empty(),
            pmdcs: pmdcs(path.mtu.size(), config.ip_header, remote) - self.overhead,
            window: path.cwnd(),
            ssthresh: path.congestion.ssthresh(),
            estimates: self.needs.estimators(),
            ..PathView::unused(id, (local, remote), now, config.rto_initial)
        };
        self.put(view, path);
        self.renew_smallest_pmdcs();
    }

    /// Puts a path in its place, which is that of a removed one or behind all others.
    fn put(&mut self, view: PathView, path: Path) {
        let index = view.id.index();
        if index < self.views.len() {
            (self.views[index], self.rest[index]) = (view, path);
            return;
        }
        // Exactly one more: most associations have one path, and a path is large.
        self.views.reserve_exact(1);
        self.rest.reserve_exact(1);
        self.views.push(view);
        self.rest.push(path);
    }

    /// The place of a new path of this pair: that of the removed path of the pair, so that it returns; a place behind all
    /// others; or, of an association that has used all its places, that of any removed path. Nothing may be charged
    /// to a removed path any more. `None`: there is no place.
    pub(crate) fn place_for(&self, pair: (Address, Address)) -> Option<PathId> {
        let gone = || self.views.iter().filter(|p| p.state == PathState::Removed && p.flight + p.marked == 0);
        let same = gone().find(|p| (p.local, p.remote) == pair).map(|p| p.id);
        let fresh = || (self.views.len() < MOST_PATHS).then_some(PathId(self.views.len() as u16));
        same.or_else(fresh).or_else(|| gone().next().map(|p| p.id))
    }

    /// Removes the path: nothing is sent there any more, and its packets limit the size of chunks no longer.
    pub(crate) fn close(&mut self, id: PathId) {
        let (view, path) = self.both(id);
        (view.state, view.primary) = (PathState::Removed, false);
        path.timers = Timers::OFF;
        path.forget_chunks();
        path.mtu.end_search();
        (path.health.wanted, path.health.elsewhere) = (Wanted::No, None);
        self.renew_smallest_pmdcs();
    }

    /// The peer's packets come from a known address but from another UDP port: its paths use the new port from now
    /// on. Returns the old address; `None` if the address is unknown.
    pub(crate) fn follow_port(&mut self, source: Address) -> Option<Address> {
        let live = self.views.iter().filter(|view| view.state != PathState::Removed);
        let before = live.map(|view| view.remote).find(|remote| remote.ip == source.ip)?;
        for view in self.views.iter_mut().filter(|view| view.remote == before) {
            view.remote = source;
        }
        Some(before)
    }

    /// Bytes that an extension occupies in packets with data.
    pub(crate) fn overhead(&self) -> u32 {
        self.overhead
    }

    /// Sets the bytes that an extension occupies in packets with data, a multiple of four.
    pub(crate) fn set_overhead(&mut self, bytes: u32) {
        for view in &mut self.views {
            view.pmdcs = view.pmdcs + self.overhead - bytes;
        }
        self.overhead = bytes;
        self.renew_smallest_pmdcs();
    }

    /// Sets the bytes that an extension occupies in packets that probe a path.
    pub(crate) fn set_probe_overhead(&mut self, bytes: u32) {
        self.probe_overhead = bytes;
    }

    /// Sets the bytes that timestamps occupy in packets with data; none if they are not used. Nothing has been sent
    /// yet, so windows start again with the remaining size as their unit.
    pub(crate) fn set_stamps(&mut self, bytes: u32, config: &Config, window: &MakeWindow) {
        self.samples = if bytes > 0 { RttSamples::Echoed(None) } else { RttSamples::OneAtATime };
        if bytes == self.stamps {
            return;
        }
        self.stamps = bytes;
        self.ids().for_each(|id| self.begin_congestion(id, config, window));
    }

    /// Computes again the smallest limit of the confirmed paths: an unconfirmed one carries no data, and its MTU is not
    /// searched for. Until a path is confirmed, all count that were not removed. Without such a path, it keeps its
    /// value.
    //= rfc9260#section-7.3
    pub(super) fn renew_smallest_pmdcs(&mut self) {
        let least = |counts: fn(&PathView) -> bool| {
            self.views.iter().filter(|view| counts(view)).map(|view| view.pmdcs).min()
        };
        let least = least(PathView::confirmed).or_else(|| least(|view| view.state != PathState::Removed));
        self.smallest_pmdcs = least.unwrap_or(self.smallest_pmdcs);
    }

    /// Changes the state of a path.
    pub(crate) fn set_state(&mut self, id: PathId, state: PathState) {
        self.view_mut(id).state = state;
        self.renew_smallest_pmdcs();
    }

    /// Allows or forbids paths from this local address to send. Returns whether this is a change.
    pub(crate) fn set_writable(&mut self, local: Address, writable: bool) -> bool {
        if self.full.contains(&local) != writable {
            return false;
        }
        self.full.retain(|full| *full != local);
        if !writable {
            self.full.push(local);
        }
        for (view, path) in self.views.iter().zip(&mut self.rest) {
            if view.local == local {
                path.writable = writable;
            }
        }
        true
    }

    /// Local addresses that are down.
    pub(crate) fn down(&self) -> &[Address] {
        &self.down
    }

    /// Packets take another route to this peer address: its congestion control begins anew.
    //= rfc9260#section-7.2.5.2
    pub(crate) fn begin_congestion(&mut self, id: PathId, config: &Config, window: &MakeWindow) {
        let stamps = self.stamps;
        let (view, path) = self.both(id);
        path.unit = unit(config, view.remote, path.mtu.size(), stamps);
        path.congestion = window(start(config, view.remote, path.unit));
        (view.window, view.ssthresh) = (path.cwnd(), path.congestion.ssthresh());
        (path.after_timeout, path.idle_rtos) = (false, 0);
    }

    /// Moves the path to another local address.
    pub(crate) fn go_from(&mut self, id: PathId, local: Address) {
        let (up, writable) = (!self.down.contains(&local), !self.full.contains(&local));
        let (view, path) = self.both(id);
        (view.local, view.up, path.writable) = (local, up, writable);
    }

    /// Sets this local address up or down.
    pub(crate) fn set_up(&mut self, local: Address, up: bool) {
        self.down.retain(|down| *down != local);
        if !up {
            self.down.push(local);
        }
        for view in self.views.iter_mut().filter(|view| view.local == local) {
            view.up = up;
        }
    }

    /// Whether packets can be sent from this local address.
    pub(crate) fn leaves_from(&self, local: Address) -> bool {
        !self.down.contains(&local) && !self.full.contains(&local)
    }

    /// Whether packets can be sent on this path.
    pub(crate) fn sends(&self, id: PathId) -> bool {
        self.view(id).up && self.get(id).writable && self.has(id)
    }

    /// The earliest deadline of any path, or an earlier time after `now`.
    pub(crate) fn deadline(&mut self, now: Time) -> Time {
        self.rest.iter_mut().fold(Time::NEVER, |earliest, path| earliest.min(path.timers.bound(now)))
    }

    /// Bytes in flight on a path, counted by the rule `in_flight`.
    pub(crate) fn counted(&self, id: PathId) -> u64 {
        count(self.in_flight, self.view(id))
    }

    /// Whether marked chunks count as in flight.
    pub(super) fn counts_marked(&self) -> bool {
        self.in_flight == InFlight::Unacknowledged
    }

    /// Resets the tallies before a SACK is processed.
    pub(crate) fn begin_tallies(&mut self) {
        let rule = self.in_flight;
        for (view, path) in self.views.iter().zip(&mut self.rest) {
            path.tally = SackResult { flight_before: count(rule, view), ..SackResult::default() };
        }
    }

    /// Whether at most one chunk of this path before `end` is being timed, and no chunk says anything about the order
    /// of arrival.
    pub(crate) fn times_one(&self, id: PathId, end: Tsn) -> bool {
        let path = self.get(id);
        self.samples == RttSamples::OneAtATime && path.rack.is_none() && !path.also_times_before(end)
    }

    /// Bytes in flight on all paths, counted by the rule `in_flight`.
    pub(crate) fn counted_all(&self) -> u64 {
        self.views.iter().map(|view| count(self.in_flight, view)).sum()
    }

    /// Which acknowledgement restarts T3-rtx.
    pub(crate) fn t3_restart(&self) -> T3Restart {
        self.rules.t3_restart
    }

    /// Whether T3-rtx starts again, or stops, whenever the earliest chunk of a path is sent again.
    pub(crate) fn restarts_t3_when_resent(&self) -> bool {
        self.rules.t3_resent == T3Resent::Restarts
    }

    /// Whether T3-rtx marks chunks that are marked already.
    pub(crate) fn t3_marks_again(&self) -> bool {
        self.rules.t3_marks == T3Marks::All
    }

    /// Whether a path has chunks in flight that keep its T3-rtx running.
    pub(crate) fn holds_t3(&self, id: PathId) -> bool {
        match self.mechanisms.t3_flight {
            T3Flight::AsCounted => self.counted(id) > 0,
            T3Flight::Unmarked => self.view(id).flight > 0,
        }
    }

    /// Whether a chunk keeps its missing reports when a SACK no longer names it.
    pub(crate) fn keeps_reports(&self) -> bool {
        self.rules.taken_back == TakenBack::AsBefore
    }

    /// Computes how much each path may carry now: of retransmissions (`marked`) or of new data. Returns the bytes in
    /// flight on all paths, as they were counted for that.
    //= rfc9260#section-7.2.3
    #[inline(always)]
    pub(crate) fn measure_room(&mut self, marked: bool) -> u64 {
        let one_packet = self.one_packet();
        let rule = if marked { InFlight::Unmarked } else { self.in_flight };
        let mut all = 0;
        for (view, path) in self.views.iter_mut().zip(&self.rest) {
            let flight = count(rule, view);
            all += flight;
            view.room = room(view, path, flight, one_packet);
        }
        all
    }

    /// Whether a path carries one packet at a time after a timeout.
    fn one_packet(&self) -> bool {
        self.rules.after_timeout == AfterTimeout::OnePacket
    }

    /// Whether this path carries one packet at a time until something is acknowledged.
    pub(crate) fn carries_one(&self, id: PathId) -> bool {
        self.one_packet() && self.get(id).after_timeout
    }

    /// Computes how much new data one path may carry now, as [`measure_room`](Self::measure_room) does for all, and
    /// returns it.
    pub(crate) fn measure_room_of(&mut self, id: PathId) -> u64 {
        let one_packet = self.one_packet();
        let (view, path) = (&mut self.views[id.index()], &self.rest[id.index()]);
        view.room = room(view, path, count(self.in_flight, view), one_packet);
        view.room
    }

    /// Whether the windows of all paths that carry data are full.
    pub(crate) fn are_full(&self) -> bool {
        self.views.iter().all(|view| view.flight >= view.window || !view.carries())
    }

    /// Sets the room of these paths to zero, even if their windows have room.
    pub(crate) fn close_room(&mut self, closed: impl Fn(PathId) -> bool) {
        for view in self.views.iter_mut().filter(|view| closed(view.id)) {
            view.room = 0;
        }
    }

    /// Sets the room of paths that have used up their share to zero. The paths that carry data share `limit` bytes;
    /// `used` is the part that a path occupies.
    pub(crate) fn share_room(&mut self, limit: u64, used: impl Fn(&PathView, &Path) -> u64) {
        let count = self.views.iter().filter(|view| view.carries()).count().max(1);
        let share = (limit / count as u64).max(1);
        for (view, path) in self.views.iter_mut().zip(&self.rest) {
            view.room = view.room.min(share.saturating_sub(used(view, path)));
        }
    }

    /// Bytes buffered of chunks last sent on other paths.
    pub(crate) fn buffered_beside(&self, id: PathId) -> u64 {
        self.ids().filter(|other| *other != id).map(|other| self.get(other).buffered).sum()
    }

    /// The smallest DATA chunk limit of all paths. Every fragment is at most this large (§6.9).
    pub(crate) fn smallest_pmdcs(&self) -> u32 {
        self.smallest_pmdcs
    }

    /// A chunk is sent again: its acknowledgement would not measure a round trip (Karn).
    //= rfc9260#section-6.3.1
    pub(crate) fn sent_again(&mut self, tsn: Tsn, on: PathId, now: Time) {
        let rule = self.rules.karn;
        for (view, path) in self.views.iter().zip(&mut self.rest) {
            path.forget_also_timed(tsn);
            let here = view.id == on;
            let ambiguous = |(timed, _): &(Tsn, Time)| match rule {
                Karn::Chunk => *timed == tsn,
                Karn::ChunkOrBelow => *timed == tsn || tsn.before(*timed),
                Karn::Off => *timed == tsn && !here,
            };
            if path.timed.as_ref().is_some_and(ambiguous) {
                path.timed = None;
            }
            if rule == Karn::Off && here && path.timed.is_none() {
                path.timed = Some((tsn, now));
            }
        }
    }
}

/// The largest congestion window of a path, in bytes.
fn max_cwnd(config: &Config, id: PathId) -> u64 {
    config.max_cwnd.get(id.index()).or(config.max_cwnd.last()).copied().unwrap_or(u64::MAX)
}

/// The number of bytes that may still leave on a path with `flight` bytes in flight. `one_packet`: after a timeout it
/// carries one packet at a time.
#[inline(always)]
fn room(view: &PathView, path: &Path, flight: u64, one_packet: bool) -> u64 {
    let waits = one_packet && path.after_timeout && view.flight > 0;
    let usable = path.writable && view.up && !waits && view.confirmed();
    if usable { view.window.saturating_sub(flight) } else { 0 }
}

/// Bytes in flight on a path as a rule counts them.
fn count(rule: InFlight, view: &PathView) -> u64 {
    match rule {
        InFlight::Unmarked => view.flight,
        InFlight::Unacknowledged => view.flight + view.marked,
    }
}
