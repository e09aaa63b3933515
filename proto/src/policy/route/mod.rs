//! Routes: which path carries new data or a retransmission.

pub mod adaptive;
pub mod alternate;
pub mod asap;
pub mod blest;
pub mod ecf;
pub mod largest;
pub mod lossrate;
pub mod open;
pub mod primary;
pub mod round_robin;
pub mod same;
pub mod timeout_alternate;

use std::cmp::Ordering;
use std::fmt::Debug;

use crate::path::estimate::Needs;
use crate::path::{PathId, PathState, PathView};
use crate::rules::FailingPaths;
use crate::{Config, Tsn};

use super::window::{Acked, Loss};

/// A rule that chooses a path. An association has three routes: for new data, for fast retransmissions, and for
/// retransmissions after a timeout.
pub trait Route: CloneRoute + Debug + Send {
    /// The path for the chunk that `ask` describes. The method is pure: it may be called twice. The path need not
    /// have room; nothing is sent until it has. To name a path that is not in `paths` is to answer [`Choice::Wait`].
    fn choose(&self, ask: &Ask, paths: &[PathView]) -> Choice;
    /// For how long `choose` names the path again that it named for new data, while nothing happens but that chunks are
    /// sent there (see [`Stays`]). A route that can tell is asked less often.
    fn stays(&self) -> Stays {
        Stays::Unknown
    }
    /// The chunk was sent on the path that `choose` named. A route that [`stays`](Self::stays) need not be told of a
    /// chunk about which it was not asked.
    fn sent(&mut self, _ask: &Ask, _path: PathId) {}
    /// A SACK acknowledged data of this path.
    fn acked(&mut self, _path: &PathView, _acked: &Acked) {}
    /// Whether it must be told what SACKs acknowledge. A route without an [`acked`](Self::acked) of its own need not
    /// be. It is asked once, when the association begins. A route that answers `false` is still told if another route
    /// of the association must be.
    fn hears_sacks(&self) -> bool {
        true
    }
    /// Whether it can choose a path for new data. A route that starts from the path that carried a chunk last cannot.
    fn takes_new_data(&self) -> bool {
        true
    }
    /// This path lost data.
    fn lost(&mut self, _path: PathId, _loss: Loss) {}
    /// What it wants to know of every path: then [`PathView::estimates`] has it.
    fn needs(&self) -> Needs {
        Needs::NONE
    }
    /// Why `choose` answers as it does, in words. Asked of retransmissions, while notes are recorded.
    fn reason(&self, _ask: &Ask, _paths: &[PathView]) -> Option<&'static str> {
        None
    }
}

/// Clones a route behind `dyn`. Every route that is [`Clone`] implements it.
#[diagnostic::on_unimplemented(
    note = "derive `Clone` for the route: an endpoint can be copied with its routes"
)]
pub trait CloneRoute {
    /// The copy.
    fn clone_box(&self) -> Box<dyn Route>;
}

impl<R: Route + Clone + 'static> CloneRoute for R {
    fn clone_box(&self) -> Box<dyn Route> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Route> {
    fn clone(&self) -> Self {
        (**self).clone_box()
    }
}

/// An answer to [`Ask`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Use this path as soon as it has room.
    Send(PathId),
    /// Send nothing now.
    Wait,
}

/// An answer to [`Route::stays`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Stays {
    /// It must be asked for each packet.
    Unknown,
    /// As long as the path has room. While no path has room, the route names one that carries data.
    WithRoom,
    /// Also when the path has no room any more, and after SACKs, as long as the states of the paths and the primary
    /// path stay the same.
    Always,
}

/// The chunk to be sent.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Ask {
    /// Why it is to be sent.
    pub why: Why,
    /// Its TSN; for new data the TSN that it will get.
    pub tsn: Tsn,
    /// Bytes of the chunk.
    pub size: u32,
    /// Its stream.
    pub stream: u16,
    /// The path that carried it last.
    pub last: Option<PathId>,
    /// How often it has been sent.
    pub transmissions: u32,
    /// Bytes of user data waiting to be sent for the first time.
    pub queued: u64,
    /// The peer's window, in bytes.
    pub peer_window: u64,
    /// The peer's receive buffer: the largest window that it has announced, in bytes.
    pub peer_buffer: u64,
    /// A number drawn for this decision alone, to break ties.
    pub tie: u64,
    /// The number of the event (packet, timer or call) that allows data to leave now.
    pub event: u64,
}

/// Why a chunk is to be sent.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// It is new.
    New,
    /// Missing reports show that it was lost: a fast retransmission.
    Missing,
    /// T3-rtx expired.
    Timeout,
    /// The peer's window is closed, and this chunk probes it.
    WindowProbe,
    /// Nothing was acknowledged on its path for so long that its SACK may be missing (RFC 8985 §7). No route is asked
    /// for a chunk that is sent again for this reason.
    TailProbe,
    /// It is in flight on another path, and the chunks behind it fill a buffer. No route is asked for such a copy.
    Reinjected,
}

/// The path for data when `last` is not to be used: the next active path that is up. If no path is active, the
/// potentially failed path with the fewest errors (RFC 7829 §3.2), preferably another than `last`. Otherwise `last`
/// again, so that its timeouts continue to count. An unconfirmed path gets no data (RFC 9260 §5.4): if that is `last`,
/// the confirmed path with the fewest errors.
pub fn instead_of(last: PathId, paths: &[PathView]) -> PathId {
    let failing = paths.iter().filter(|p| p.state == PathState::PotentiallyFailed && p.up);
    let fewest = || failing.min_by_key(|p| (p.errors, p.id == last)).map(|p| p.id);
    next_active(last, paths).or_else(fewest).unwrap_or_else(|| confirmed_or(last, paths))
}

/// `last` if it is confirmed; otherwise the confirmed path with the fewest errors, if there is one.
fn confirmed_or(last: PathId, paths: &[PathView]) -> PathId {
    if paths.iter().any(|p| p.id == last && p.confirmed()) {
        return last;
    }
    let confirmed = paths.iter().filter(|p| p.confirmed());
    confirmed.min_by_key(|p| (!p.up, p.errors)).map_or(last, |p| p.id)
}

/// The paths that the policies `same` and `rtx-lossrate` name: those that work, and perhaps those that are potentially
/// failed.
#[derive(Copy, Clone, Debug)]
pub(super) struct Eligible(FailingPaths);

impl Eligible {
    pub(super) fn of(config: &Config) -> Self {
        Eligible(config.rules.failing_paths)
    }

    pub(super) fn admits(self, path: &PathView) -> bool {
        let failing = self.0 == FailingPaths::Named && path.state == PathState::PotentiallyFailed && path.up;
        path.carries() || failing
    }
}

/// The first path after `last`, in cyclic order, that can carry data and is not `last`.
pub fn next_active(last: PathId, paths: &[PathView]) -> Option<PathId> {
    let start = paths.iter().position(|p| p.id == last).map_or(0, |i| i + 1);
    let (before, after) = paths.split_at(start.min(paths.len()));
    after.iter().chain(before).find(|p| p.carries() && p.id != last).map(|p| p.id)
}

/// The best of `paths` by `compare`. Of equal paths, `tie` selects one.
pub fn best<'p>(
    tie: u64,
    paths: impl Iterator<Item = &'p PathView> + Clone,
    compare: impl Fn(&PathView, &PathView) -> Ordering,
) -> Option<&'p PathView> {
    let mut found: Option<&PathView> = None;
    let mut equals = 0;
    for path in paths.clone() {
        match found.map_or(Ordering::Greater, |best| compare(path, best)) {
            Ordering::Less => {}
            Ordering::Equal => equals += 1,
            Ordering::Greater => (found, equals) = (Some(path), 1),
        }
    }
    if equals <= 1 {
        return found;
    }
    let best = found?;
    paths.filter(|path| compare(path, best).is_eq()).nth((tie % equals) as usize)
}

#[cfg(test)]
pub(crate) use tests::path as view;

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::wire::Address;
    use crate::{Duration, Tsn};

    /// An active path with a window of 1,000 bytes, nothing in flight.
    pub(crate) fn path(id: u16) -> PathView {
        let address = Address { ip: IpAddr::V4(Ipv4Addr::LOCALHOST), udp: 0 };
        let unused =
            PathView::unused(PathId(id), (address, address), crate::Time::ZERO, Duration::from_secs(1));
        let state = PathState::Active;
        PathView { state, primary: id == 0, pmdcs: 1468, window: 1000, ssthresh: 1000, room: 1000, ..unused }
    }

    /// What is asked of a chunk that the first path carried last.
    pub(super) fn ask() -> Ask {
        Ask {
            why: Why::Missing,
            tsn: Tsn(1),
            size: 100,
            stream: 0,
            last: Some(PathId(0)),
            transmissions: 1,
            queued: 0,
            peer_window: 1000,
            peer_buffer: 1000,
            tie: 0,
            event: 1,
        }
    }

    fn made(spec: &crate::policy::PolicySpec) -> Box<dyn Route> {
        crate::Policies::default().route(spec, &crate::Config::default()).expect("a route")
    }

    fn named(name: &str) -> Box<dyn Route> {
        made(&crate::policy::PolicySpec::named(name))
    }

    /// An unconfirmed primary path gets no data, even when no other path is active.
    #[test]
    fn no_data_for_an_unconfirmed_path() {
        let unconfirmed = PathView { state: PathState::Unconfirmed, room: 0, ..path(0) };
        let inactive = |id, errors| PathView { state: PathState::Inactive, errors, ..path(id) };
        let paths = [unconfirmed.clone(), inactive(1, 3), inactive(2, 2)];
        assert_eq!(instead_of(PathId(0), &paths), PathId(2));
        assert_eq!(instead_of(PathId(1), &paths), PathId(1), "its timeouts continue to count");
        assert_eq!(instead_of(PathId(0), &[unconfirmed]), PathId(0));
    }

    #[test]
    fn the_turn_stays_within_an_event_and_goes_on_with_the_next() {
        let mut route = named("round-robin");
        let mut paths = [path(0), path(1), path(2)];
        assert_eq!(route.choose(&ask(), &paths), Choice::Send(PathId(0)));
        route.sent(&ask(), PathId(0));
        assert_eq!(route.choose(&ask(), &paths), Choice::Send(PathId(0)), "it fills the window");
        paths[0].room = 0;
        assert_eq!(route.choose(&ask(), &paths), Choice::Send(PathId(1)));
        paths[0].room = 1000;
        let next = Ask { event: 2, ..ask() };
        assert_eq!(route.choose(&next, &paths), Choice::Send(PathId(1)));
        paths[1].state = PathState::PotentiallyFailed;
        assert_eq!(route.choose(&next, &paths), Choice::Send(PathId(2)));
    }

    #[test]
    fn retransmissions_take_the_largest_value_whether_it_has_room_or_not() {
        let paths = [
            PathView { window: 3000, ssthresh: 10, room: 0, ..path(0) },
            PathView { window: 2000, ssthresh: 20, ..path(1) },
        ];
        assert_eq!(named("rtx-cwnd").choose(&ask(), &paths), Choice::Send(PathId(0)));
        assert_eq!(named("rtx-ssthresh").choose(&ask(), &paths), Choice::Send(PathId(1)));
        assert_eq!(
            named("rtx-asap").choose(&ask(), &paths),
            Choice::Send(PathId(1)),
            "the only one with room"
        );
    }

    /// A route that starts from the path that carried a chunk last would never send new data.
    #[test]
    fn routes_for_retransmissions_are_no_routes_for_new_data() {
        let (policies, config) = (crate::Policies::default(), crate::Config::default());
        let new = Ask { why: Why::New, last: None, transmissions: 0, ..ask() };
        for name in policies.route_names() {
            let spec = crate::policy::PolicySpec::named(name);
            let sends = named(name).choose(&new, &[path(0), path(1)]) != Choice::Wait;
            assert_eq!(policies.new_data_route(&spec, &config).is_ok(), sends, "{name}");
        }
        assert!(named("rtx-asap").takes_new_data() && !named("same").takes_new_data());
    }

    #[test]
    fn ties_are_broken_by_the_number_drawn() {
        let paths = [path(0), path(1)];
        for tie in 0..4 {
            let chosen = named("rtx-cwnd").choose(&Ask { tie, ..ask() }, &paths);
            assert_eq!(chosen, Choice::Send(PathId((tie % 2) as u16)));
        }
    }

    #[test]
    fn loss_rates_are_told_or_measured() {
        use crate::policy::{PolicySpec, Setting};
        let rates = Setting::List(vec![Setting::Number(0.04), Setting::Number(0.01)]);
        let mut spec = PolicySpec::named("rtx-lossrate");
        let lossy = [
            PathView { delivered: 900, lost: 100, ..path(0) },
            PathView { delivered: 800, lost: 200, ..path(1) },
        ];
        assert_eq!(made(&spec).choose(&ask(), &lossy), Choice::Send(PathId(0)));
        spec.settings.insert("rates".to_owned(), rates);
        assert_eq!(made(&spec).choose(&ask(), &lossy), Choice::Send(PathId(1)));
        spec.settings.insert("window".to_owned(), Setting::Duration(Duration::from_secs(1)));
        assert!(crate::Policies::default().route(&spec, &crate::Config::default()).is_err(), "both");
    }
}
