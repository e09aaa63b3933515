//! The paths of an association: their facts in one slice, what else they keep in another.

use super::estimate::Needs;
use super::start::start;
use super::{
    Mtu, Path, PathId, PathParameters, PathState, PathView, Points, RtoAverage, RttSamples, SackResult,
    Suspect, Timers,
};
use crate::control::rtt::RtoLimits;
use crate::mechanisms::{DecayTie, Mechanisms, T3Flight, TakenBack};
use crate::output::NoteKind;
use crate::policy::window::MakePath;
use crate::policy::{Loss, Lost, Sibling};
use crate::rules::{AfterTimeout, InFlight, Karn, Rules, T3Restart};
use crate::wire::Address;
use crate::{Config, Time, Tsn};

use super::health::{Health, SentHeartbeat};
use super::mtu::pmdcs;
use super::order::Order;
use crate::notes::Notes;
use rand_chacha::ChaCha8Rng;
use smallvec::SmallVec;

#[derive(Clone, Debug)]
pub(crate) struct Paths {
    views: Vec<PathView>,
    rest: Vec<Path>,
    /// What windows see of the paths: filled when one is told of something.
    siblings: Vec<Sibling>,
    pub(crate) limits: RtoLimits,
    rules: Rules,
    mechanisms: Mechanisms,
    /// The smallest DATA chunk limit of all paths.
    smallest_pmdcs: u32,
    /// Bytes that an extension takes in packets with data.
    overhead: u32,
    /// Local addresses that are down.
    down: Vec<Address>,
    /// Local addresses whose socket takes no packets now.
    full: Vec<Address>,
    /// Some path may want a heartbeat or a probe: asked before every packet.
    asking: bool,
    /// When T3-rtx of any path expired last.
    pub(crate) t3_expired: Time,
    /// How data measures round-trip times.
    pub(crate) samples: RttSamples,
    /// Bytes that timestamps take in packets with data.
    stamps: u32,
    /// What the paths keep of the order in which chunks arrive.
    pub(super) order: Order,
    /// What policies want to know of every path.
    pub(super) needs: Needs,
}

impl Paths {
    pub(crate) fn new(config: &Config) -> Self {
        Paths {
            views: Vec::new(),
            rest: Vec::new(),
            siblings: Vec::new(),
            limits: config.rto_limits(),
            rules: config.rules,
            mechanisms: config.mechanisms,
            smallest_pmdcs: u32::MAX,
            overhead: 0,
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

    /// No paths, as at the beginning; what the local addresses can do is as it was.
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

    pub(crate) fn both(&mut self, id: PathId) -> (&mut PathView, &mut Path) {
        (&mut self.views[id.index()], &mut self.rest[id.index()])
    }

    /// A heartbeat is wanted on this path.
    pub(crate) fn ask(&mut self, id: PathId) {
        self.get_mut(id).health.wanted = true;
        self.asking = true;
    }

    /// A heartbeat is wanted on this path from another local address than its own.
    pub(crate) fn ask_from(&mut self, id: PathId, local: Address) {
        self.get_mut(id).health.elsewhere = Some(local);
        self.asking = true;
    }

    /// The heartbeat that came back with this information, and its path.
    pub(crate) fn answered(&mut self, info: &[u8]) -> Option<(PathId, SentHeartbeat)> {
        let live = |view: &PathView| view.state != PathState::Removed;
        let mut paths = self.views.iter().zip(&mut self.rest).filter(|(view, _)| live(view));
        paths.find_map(|(view, path)| Some((view.id, path.health.answered(info)?)))
    }

    /// A probe of the MTU may be wanted.
    pub(super) fn may_probe(&mut self) {
        self.asking = true;
    }

    /// Whether a heartbeat, or a probe of the MTU, may be wanted on any path.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking
    }

    /// All that can be asked now has been.
    pub(crate) fn all_asked(&mut self) {
        self.asking = self.rest.iter().any(Path::is_asking) || self.wants_pairs();
    }

    /// The path of this pair of addresses.
    pub(crate) fn of_pair(&self, local: Address, remote: Address) -> Option<PathId> {
        let same = |p: &&PathView| p.remote == remote && p.local == local && p.state != PathState::Removed;
        self.views.iter().find(same).map(|p| p.id)
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

    /// If every confirmed path is inactive, the one with the fewest errors in a row; of several another than `last`.
    pub(crate) fn fewest_errors(&self, last: PathId) -> Option<PathId> {
        let confirmed = || self.views.iter().filter(|p| p.confirmed());
        if confirmed().any(|p| p.state != PathState::Inactive) {
            return None;
        }
        confirmed().min_by_key(|p| (!p.up, p.errors, p.id == last)).map(|p| p.id)
    }

    /// Adds the path of this pair, unconfirmed. The first becomes the primary.
    pub(crate) fn add(
        &mut self,
        (local, remote): (Address, Address),
        now: Time,
        config: &Config,
        window: &MakePath,
        chance: &mut ChaCha8Rng,
    ) -> PathId {
        let id = self.gone((local, remote)).unwrap_or(PathId(self.views.len() as u16));
        let mtu = Mtu::new(config);
        let pmdcs = pmdcs(mtu.size(), config.ip_header, remote) - self.overhead;
        self.smallest_pmdcs = self.smallest_pmdcs.min(pmdcs);
        let congestion = window(start(config, remote, self.stamps));
        let max_cwnd =
            config.max_cwnd.get(id.index()).or(config.max_cwnd.last()).copied().unwrap_or(u64::MAX);
        let view = PathView {
            id,
            local,
            remote,
            state: PathState::Unconfirmed,
            up: !self.down.contains(&local),
            primary: self.views.is_empty(),
            pmdcs,
            window: congestion.window().min(max_cwnd),
            ssthresh: congestion.ssthresh(),
            flight: 0,
            marked: 0,
            room: 0,
            srtt: None,
            rttvar: crate::Duration::ZERO,
            min_rtt: None,
            rto: config.rto_initial,
            errors: 0,
            delivered: 0,
            lost: 0,
            late: 0,
            chunks: 0,
            fast_retransmissions: 0,
            timeout_retransmissions: 0,
            reinjected: 0,
            tail_probes: 0,
            blocks: crate::Duration::ZERO,
            timeouts: 0,
            heartbeats: 0,
            heartbeats_answered: 0,
            rto_average: RtoAverage::new(now, config.rto_initial),
            estimates: self.needs.estimators(),
        };
        let path = Path {
            congestion,
            max_cwnd,
            timers: Timers::OFF,
            health: Health::new(now, chance),
            timed: None,
            also_timed: SmallVec::new(),
            suspect: None,
            earliest: None,
            // What was acknowledged by gaps is still charged to a path that was removed and is one again.
            buffered: self.rest.get(id.index()).map_or(0, |gone| gone.buffered),
            idle_rtos: 0,
            lone: false,
            writable: !self.full.contains(&local),
            mtu,
            own: PathParameters::default(),
            tally: SackResult::default(),
            points: Points::default(),
            rack: self.order.kept(self.rest.get(id.index()).and_then(|gone| gone.rack)),
        };
        match self.views.get(id.index()) {
            Some(_) => (self.views[id.index()], self.rest[id.index()]) = (view, path),
            None => {
                self.views.push(view);
                self.rest.push(path);
            }
        }
        id
    }

    /// The path of this pair, if it was removed and nothing is charged to it any more: it can be one again.
    pub(crate) fn gone(&self, (local, remote): (Address, Address)) -> Option<PathId> {
        let gone = |p: &&PathView| {
            p.state == PathState::Removed
                && (p.local, p.remote) == (local, remote)
                && p.flight + p.marked == 0
        };
        self.views.iter().find(gone).map(|p| p.id)
    }

    /// The path is no more.
    pub(crate) fn close(&mut self, id: PathId) {
        let (view, path) = self.both(id);
        view.primary = false;
        (path.timers, path.timed) = (Timers::OFF, None);
        path.also_timed.clear();
        path.suspect = None;
        (path.health.wanted, path.health.elsewhere) = (false, None);
    }

    /// The peer's packets come from a known address, but by another UDP port than before: its paths go there
    /// from now on. What the address was; `None` if it is not known at all.
    //= rfc6951#section-5.4
    pub(crate) fn follow_port(&mut self, source: Address) -> Option<Address> {
        let live = self.views.iter().filter(|view| view.state != PathState::Removed);
        let before = live.map(|view| view.remote).find(|remote| remote.ip == source.ip)?;
        for view in self.views.iter_mut().filter(|view| view.remote == before) {
            view.remote = source;
        }
        Some(before)
    }

    /// Bytes that an extension takes in packets with data.
    pub(super) fn overhead(&self) -> u32 {
        self.overhead
    }

    /// An extension takes so many bytes in packets with data, a multiple of four.
    pub(crate) fn set_overhead(&mut self, bytes: u32) {
        for view in &mut self.views {
            view.pmdcs = view.pmdcs + self.overhead - bytes;
        }
        self.overhead = bytes;
        self.renew_smallest_pmdcs();
    }

    /// Timestamps take so many bytes in packets with data, none if they are not used. Windows begin anew, counted in what
    /// is left: nothing has been sent yet.
    pub(crate) fn set_stamps(&mut self, bytes: u32, config: &Config, window: &MakePath) {
        self.samples = if bytes > 0 { RttSamples::Echoed(None) } else { RttSamples::OneAtATime };
        if bytes == self.stamps {
            return;
        }
        self.stamps = bytes;
        for (view, path) in self.views.iter_mut().zip(&mut self.rest) {
            path.congestion = window(start(config, view.remote, bytes));
            (view.window, view.ssthresh) = (path.cwnd(), path.congestion.ssthresh());
        }
    }

    /// The smallest limit of all paths has to be found again.
    pub(super) fn renew_smallest_pmdcs(&mut self) {
        self.smallest_pmdcs = self.views.iter().map(|view| view.pmdcs).min().unwrap_or(u32::MAX);
    }

    /// Lets paths from this local address send, or not; whether it was otherwise.
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

    /// The path goes from another local address.
    pub(crate) fn go_from(&mut self, id: PathId, local: Address) {
        let (up, writable) = (!self.down.contains(&local), !self.full.contains(&local));
        let (view, path) = self.both(id);
        (view.local, view.up, path.writable) = (local, up, writable);
    }

    /// This local address is up or down.
    pub(crate) fn set_up(&mut self, local: Address, up: bool) {
        self.down.retain(|down| *down != local);
        if !up {
            self.down.push(local);
        }
        for view in self.views.iter_mut().filter(|view| view.local == local) {
            view.up = up;
        }
    }

    /// Whether packets can leave from this local address.
    pub(crate) fn leaves_from(&self, local: Address) -> bool {
        !self.down.contains(&local) && !self.full.contains(&local)
    }

    /// Whether packets can leave on this path.
    pub(crate) fn sends(&self, id: PathId) -> bool {
        self.view(id).up && self.get(id).writable
    }

    /// The earliest deadline of any path.
    pub(crate) fn deadline(&self) -> Time {
        self.rest.iter().map(|p| p.timers.next()).min().unwrap_or(Time::NEVER)
    }

    /// Bytes in flight on a path as the rules count them.
    pub(crate) fn counted(&self, id: PathId) -> u64 {
        self.count(self.view(id))
    }

    /// Bytes in flight on all paths as the rules count them.
    pub(crate) fn counted_all(&self) -> u64 {
        self.views.iter().map(|view| self.count(view)).sum()
    }

    /// Which acknowledgement restarts T3-rtx.
    pub(crate) fn t3_restart(&self) -> T3Restart {
        self.rules.t3_restart
    }

    /// Whether a path has chunks in flight that keep its T3-rtx running.
    pub(crate) fn holds_t3(&self, id: PathId) -> bool {
        match self.mechanisms.t3_flight {
            T3Flight::AsCounted => self.counted(id) > 0,
            T3Flight::Unmarked => self.view(id).flight > 0,
        }
    }

    /// Whether a chunk that a SACK takes back keeps its missing reports.
    pub(crate) fn keeps_reports(&self) -> bool {
        self.mechanisms.taken_back == TakenBack::AsBefore
    }

    fn count(&self, view: &PathView) -> u64 {
        match self.rules.in_flight {
            InFlight::Unmarked => view.flight,
            InFlight::Unacknowledged => view.flight + view.marked,
        }
    }

    /// Works out how much each path may carry now: of retransmissions (`marked`), or of new data.
    //= rfc9260#section-7.2.3
    pub(crate) fn measure_room(&mut self, marked: bool) {
        let one_packet = self.rules.after_timeout == AfterTimeout::OnePacket;
        for i in 0..self.views.len() {
            let flight = if marked { self.views[i].flight } else { self.count(&self.views[i]) };
            let path = &self.rest[i];
            let waits = one_packet && path.lone && self.views[i].flight > 0;
            let view = &mut self.views[i];
            let usable = path.writable && view.up && !waits && view.confirmed();
            view.room = if usable { view.window.saturating_sub(flight) } else { 0 };
        }
    }

    /// Paths that may carry nothing now, even if their windows have room.
    pub(crate) fn close_room(&mut self, closed: impl Fn(PathId) -> bool) {
        for view in self.views.iter_mut().filter(|view| closed(view.id)) {
            view.room = 0;
        }
    }

    /// Paths whose share is used up may carry nothing; `limit` bytes are to be shared by the paths that carry data, and
    /// `used` is what one has of them.
    pub(crate) fn share_room(&mut self, limit: u64, used: impl Fn(&PathView, &Path) -> u64) {
        let count = self.views.iter().filter(|view| view.carries()).count().max(1);
        let share = (limit / count as u64).max(1);
        for (view, path) in self.views.iter_mut().zip(&self.rest) {
            view.room = view.room.min(share.saturating_sub(used(view, path)));
        }
    }

    /// Bytes buffered of chunks last sent on other paths than this one.
    pub(crate) fn buffered_beside(&self, id: PathId) -> u64 {
        self.ids().filter(|other| *other != id).map(|other| self.get(other).buffered).sum()
    }

    /// Tells a path's window what the SACK said.
    pub(crate) fn grow(&mut self, id: PathId, acked: &crate::policy::Acked, notes: &mut Notes) {
        self.renew_siblings(id);
        self.rest[id.index()].congestion.acked(acked, &self.siblings);
        self.renew(id, acked.now, notes);
    }

    /// Tells a path's window of a loss.
    pub(crate) fn cut(&mut self, id: PathId, loss: Loss, now: Time, notes: &mut Notes) {
        self.renew_siblings(id);
        let view = self.view(id);
        let lost = Lost { now, how: loss, outstanding: view.flight + view.marked };
        self.rest[id.index()].congestion.lost(&lost, &self.siblings);
        self.note_cut(id, now);
        self.renew(id, now, notes);
    }

    /// A cut of a path's window was needless.
    pub(crate) fn undo(&mut self, id: PathId, before: Suspect, now: Time, notes: &mut Notes) {
        self.rest[id.index()].congestion.undo(before.window, before.ssthresh);
        self.renew(id, now, notes);
    }

    /// The path is of use again: its window begins with so many packets.
    pub(crate) fn reopen(&mut self, id: PathId, packets: u32, now: Time, notes: &mut Notes) {
        self.rest[id.index()].congestion.reopen(packets);
        self.renew(id, now, notes);
    }

    /// What the window of `own` sees of the paths: its own and the active ones.
    fn renew_siblings(&mut self, own: PathId) {
        self.siblings.clear();
        let seen = |view: &PathView| view.id == own || view.state == PathState::Active;
        let paths = self.views.iter().zip(&self.rest).filter(|(view, _)| seen(view));
        self.siblings.extend(paths.map(|(view, path)| Sibling {
            own: view.id == own,
            window: view.window,
            ssthresh: view.ssthresh,
            flight: view.flight,
            srtt: view.srtt,
            loss_distance: path.congestion.loss_distance(),
        }));
    }

    /// Whether the decay that is due now comes after what T3-rtx of another path sends again; it does so 1 ns later.
    pub(crate) fn defers_decay(&mut self, id: PathId, now: Time) -> bool {
        let tie = self.mechanisms.decay_tie == DecayTie::Resend;
        let defers = tie && (self.t3_expired == now || self.rest.iter().any(|path| path.timers.t3 <= now));
        if defers {
            self.get_mut(id).timers.idle = now + crate::Duration::from_nanos(1);
        }
        defers
    }

    /// An RTO has passed in which nothing was sent to this path.
    //= rfc9260#section-7.2.1
    pub(crate) fn idle(&mut self, id: PathId, notes: &mut Notes) {
        let (view, path) = (&mut self.views[id.index()], &mut self.rest[id.index()]);
        let at = path.timers.idle;
        path.idle_rtos += 1;
        let again = path.congestion.idle(path.idle_rtos);
        path.timers.idle = if again { at + view.rto } else { Time::NEVER };
        self.renew(id, at, notes);
    }

    /// Copies what the window policy says into the facts.
    fn renew(&mut self, id: PathId, now: Time, notes: &mut Notes) {
        let (view, path) = (&mut self.views[id.index()], &self.rest[id.index()]);
        view.window = path.cwnd();
        view.ssthresh = path.congestion.ssthresh();
        self.note_window(id, now, notes);
    }

    pub(crate) fn note_window(&self, id: PathId, now: Time, notes: &mut Notes) {
        notes.add(now, || {
            let view = self.view(id);
            NoteKind::Window {
                path: id,
                cwnd: view.window,
                ssthresh: view.ssthresh,
                flight: view.flight,
                marked: view.marked,
            }
        });
    }

    /// RTO may have changed.
    pub(crate) fn note_rto(&mut self, id: PathId, now: Time, notes: &mut Notes) {
        let view = self.view_mut(id);
        view.rto_average.set(now, view.rto);
        notes.add(now, || {
            let view = self.view(id);
            NoteKind::Rto { path: id, rto: view.rto, srtt: view.srtt }
        });
    }

    /// The smallest DATA chunk limit of all paths: every fragment is at most that large (§6.9).
    pub(crate) fn smallest_pmdcs(&self) -> u32 {
        self.smallest_pmdcs
    }

    /// A chunk is sent again: what its acknowledgement would measure is no round trip (Karn).
    //= rfc9260#section-6.3.1
    pub(crate) fn sent_again(&mut self, tsn: Tsn, on: PathId, now: Time) {
        let rule = self.rules.karn;
        for (view, path) in self.views.iter().zip(&mut self.rest) {
            path.also_timed.retain(|(timed, _)| *timed != tsn);
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

    /// A chunk has been sent to this path: timers as §6.3.2 R1 and §6.1 say.
    pub(crate) fn chunk_sent(&mut self, id: PathId, tsn: Tsn, now: Time, new: bool) {
        let (view, path) = self.both(id);
        let lowest = path.earliest.is_none_or(|earliest| tsn.before(earliest) || tsn == earliest);
        if lowest {
            path.earliest = Some(tsn);
        }
        if lowest || path.timers.t3 == Time::NEVER {
            path.timers.t3 = now + view.rto;
        }
        path.timers.idle = now + view.rto;
        path.idle_rtos = 0;
        if new {
            path.health.used = now;
            if path.timed.is_none() {
                path.timed = Some((tsn, now));
            }
        }
        self.set_tail(id, now);
    }
}
