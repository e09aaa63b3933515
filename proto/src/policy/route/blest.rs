//! `blest`, blocking estimation (Ferlin, Alay, Mehani and Boreli 2016): new data takes the path with the lowest
//! smoothed round-trip time while it has room. When it has none, the fastest other path `s` with room carries the
//! data, unless the window of the receiver would then be too small for what the first path `f` can send meanwhile:
//! data waits if X·λ > M − (flight_s + size).
//!
//! X = (cwnd_f + u·(r − 1)/2) · r are the bytes that `f` sends within r = rtt_s/rtt_f of its round trips, `u` being
//! its packet, M the peer's window with all that is in flight. λ corrects X from experience, as in the authors'
//! implementation: it starts at 1.2 and, once a round trip of a slower path, grows by 0.04 if that path has kept a
//! buffer full since, else falls by 0.01, between 1 and 1.3.

use super::open::{fallback, fastest};
use super::{Ask, Choice, Route};
use crate::path::PathView;
use crate::policy::{Acked, Loss, PolicyError, PolicySpec, no_settings};
use crate::{Config, Duration, PathId, Time};

#[derive(Clone, Debug)]
struct Blest {
    lambda: f64,
    /// The last observation of each path.
    seen: Vec<Seen>,
}

#[derive(Copy, Clone, Default, Debug)]
struct Seen {
    srtt: Option<Duration>,
    /// When λ was last looked at for this path, and [`PathView::blocks`] then.
    at: Time,
    blocks: Duration,
}

pub(in crate::policy) fn make(spec: &PolicySpec, _: &Config) -> Result<Box<dyn Route>, PolicyError> {
    no_settings(spec)?;
    Ok(Box::new(Blest { lambda: 1.2, seen: Vec::new() }))
}

impl Blest {
    /// Whether a chunk of `size` bytes on `slow` would leave `fast` too little of the peer's window.
    fn waits(&self, ask: &Ask, fast: &PathView, slow: &PathView, paths: &[PathView]) -> bool {
        let (Some(rtt_f), Some(rtt_s)) = (fast.srtt, slow.srtt) else { return false };
        let rounds = rtt_s.as_secs_f64() / rtt_f.as_secs_f64().max(1e-9);
        let unit = f64::from(fast.pmdcs);
        let sent_meanwhile = (fast.window as f64 + unit * (rounds - 1.0) / 2.0) * rounds;
        let flights: u64 = paths.iter().map(|path| path.flight).sum();
        let window = ask.peer_window + flights;
        let left = window.saturating_sub(slow.flight + u64::from(ask.size));
        sent_meanwhile * self.lambda > left as f64
    }

    /// Whether some path that answers has a lower round-trip time than this one.
    fn is_slower(&self, index: usize) -> bool {
        let least = self.seen.iter().filter_map(|seen| seen.srtt).min();
        self.seen[index].srtt > least
    }
}

impl Route for Blest {
    fn choose(&self, ask: &Ask, paths: &[PathView]) -> Choice {
        let active = || paths.iter().filter(|path| path.carries());
        let open = fastest(ask.tie, active().filter(|path| path.room > 0));
        match (fastest(ask.tie, active()), open) {
            (None, _) => fallback(paths),
            (Some(fast), None) => Choice::Send(fast.id),
            (Some(fast), Some(_)) if fast.room > 0 => Choice::Send(fast.id),
            (Some(fast), Some(slow)) if self.waits(ask, fast, slow, paths) => Choice::Wait,
            (Some(_), Some(slow)) => Choice::Send(slow.id),
        }
    }

    fn acked(&mut self, path: &PathView, acked: &Acked) {
        let index = path.id.index();
        if self.seen.len() <= index {
            self.seen.resize(index + 1, Seen::default());
        }
        self.seen[index].srtt = path.srtt;
        let seen = self.seen[index];
        let due = path.srtt.is_some_and(|srtt| acked.now.since(seen.at) >= srtt);
        if due && self.is_slower(index) {
            let change = if path.blocks > seen.blocks { 0.04 } else { -0.01 };
            self.lambda = (self.lambda + change).clamp(1.0, 1.3);
            self.seen[index] = Seen { srtt: path.srtt, at: acked.now, blocks: path.blocks };
        }
    }

    /// A path that has failed is no faster path: its round-trip time counts again with its next acknowledgement.
    fn lost(&mut self, path: PathId, loss: Loss) {
        if let (Loss::Timeout, Some(seen)) = (loss, self.seen.get_mut(path.index())) {
            seen.srtt = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::route::tests::{ask, path};

    /// 10 ms and a window of 10,000 B, full; 40 ms, 5000 B in flight, open.
    fn paths() -> [PathView; 2] {
        let ms = Duration::from_millis;
        let fast = PathView { srtt: Some(ms(10)), window: 10_000, flight: 10_000, room: 0, ..path(0) };
        let slow = PathView { srtt: Some(ms(40)), flight: 5000, room: 3000, ..path(1) };
        [PathView { pmdcs: 1000, ..fast }, slow]
    }

    fn blest() -> Blest {
        Blest { lambda: 1.0, seen: Vec::new() }
    }

    #[test]
    fn the_fastest_path_while_it_has_room() {
        let [fast, slow] = paths();
        let open = [slow, PathView { room: 1, ..fast }];
        assert_eq!(blest().choose(&Ask { peer_window: 0, ..ask() }, &open), Choice::Send(open[1].id));
    }

    /// Within four of its round trips the fast path sends (10,000 + 1000 · 3/2) · 4 = 46,000 B. The window, with 15,000
    /// B in flight, has to hold them beside 5000 B and a chunk of 100 B: 36,100 B must be left.
    #[test]
    fn data_waits_when_it_would_fill_the_window() {
        let with = |peer_window| blest().choose(&Ask { peer_window, size: 100, ..ask() }, &paths());
        assert_eq!(with(36_099), Choice::Wait);
        assert_eq!(with(36_100), Choice::Send(paths()[1].id));
    }

    /// λ = 1.2: 55,200 B.
    #[test]
    fn lambda_weighs_the_estimate() {
        let route = Blest { lambda: 1.2, ..blest() };
        let with = |peer_window| route.choose(&Ask { peer_window, size: 100, ..ask() }, &paths());
        assert_eq!(with(45_299), Choice::Wait);
        assert_eq!(with(45_301), Choice::Send(paths()[1].id));
    }

    /// Once a round trip of the slow path: + 0.04 if it has blocked, else − 0.01; the fast path changes nothing.
    #[test]
    fn lambda_learns_from_what_has_blocked() {
        let mut route = Blest { lambda: 1.2, ..blest() };
        let [fast, slow] = paths();
        let at = |ms| Acked {
            now: Time::ZERO + Duration::from_millis(ms),
            cumulative: 1000,
            gap: 0,
            gap_behind_point: 0,
            advanced: true,
            recovery: false,
            flight_before: 0,
            unacknowledged_before: 0,
            flight: 0,
            rtt: None,
        };
        let blocked = PathView { blocks: Duration::from_millis(5), ..slow.clone() };
        route.acked(&fast, &at(40));
        assert_eq!(route.lambda, 1.2);
        for (path, ms, lambda) in [(&slow, 100, 1.19), (&blocked, 120, 1.19), (&blocked, 140, 1.23)] {
            route.acked(path, &at(ms));
            assert!((route.lambda - lambda).abs() < 1e-9, "{} at {ms} ms", route.lambda);
        }
        for ms in 0..200 {
            route.acked(&blocked, &at(200 + 40 * ms));
        }
        assert_eq!(route.lambda, 1.0);
        // Without the fast path the slow one is the fastest, and changes nothing.
        let longer = PathView { blocks: Duration::from_millis(9), ..blocked };
        route.lost(fast.id, Loss::Timeout);
        route.acked(&longer, &at(9000));
        assert_eq!(route.lambda, 1.0);
        route.acked(&fast, &at(9010));
        route.acked(&longer, &at(9100));
        assert_eq!(route.lambda, 1.04);
    }
}
