//! `lowest-rtt` and `window-share`: new data takes an active path with room: the one with the lowest smoothed
//! round-trip time, or the one with the smallest used share of its window (flight/cwnd). Ties are broken at random.

use std::cmp::Ordering;

use super::{Ask, Choice, Route, best, instead_of};
use crate::path::PathView;
use crate::policy::{PolicyError, PolicySpec, no_settings};
use crate::{Config, Duration};

#[derive(Clone, Debug)]
struct Open {
    /// The greater value wins.
    compare: fn(&PathView, &PathView) -> Ordering,
}

pub(in crate::policy) fn lowest_rtt(spec: &PolicySpec, _: &Config) -> Result<Box<dyn Route>, PolicyError> {
    no_settings(spec)?;
    Ok(Box::new(Open { compare: |a, b| rtt_of(b).cmp(&rtt_of(a)) }))
}

pub(in crate::policy) fn window_share(spec: &PolicySpec, _: &Config) -> Result<Box<dyn Route>, PolicyError> {
    no_settings(spec)?;
    Ok(Box::new(Open { compare: by_share }))
}

/// The path with the lowest smoothed round-trip time. Of equal paths, `tie` selects one.
pub(super) fn fastest<'p>(
    tie: u64,
    paths: impl Iterator<Item = &'p PathView> + Clone,
) -> Option<&'p PathView> {
    best(tie, paths, |a, b| rtt_of(b).cmp(&rtt_of(a)))
}

/// Where data goes while no path is active.
pub(super) fn fallback(paths: &[PathView]) -> Choice {
    let primary = paths.iter().find(|path| path.primary);
    primary.map_or(Choice::Wait, |path| Choice::Send(instead_of(path.id, paths)))
}

/// A path without a measurement comes last.
fn rtt_of(path: &PathView) -> Duration {
    path.srtt.unwrap_or(Duration::MAX)
}

/// Compares flight/cwnd of two paths without a division.
fn by_share(a: &PathView, b: &PathView) -> Ordering {
    let used = |path: &PathView, of: &PathView| u128::from(path.flight) * u128::from(of.window);
    used(b, a).cmp(&used(a, b))
}

impl Route for Open {
    fn choose(&self, ask: &Ask, paths: &[PathView]) -> Choice {
        let active = paths.iter().filter(|path| path.carries());
        let has_room = |path: &PathView| path.room > 0;
        let chosen =
            best(ask.tie, active, |a, b| has_room(a).cmp(&has_room(b)).then_with(|| (self.compare)(a, b)));
        chosen.map_or_else(|| fallback(paths), |path| Choice::Send(path.id))
    }

    fn hears_sacks(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::route::tests::{ask, path};

    #[test]
    fn the_best_path_with_room() {
        let fast = PathView { srtt: Some(Duration::from_millis(10)), flight: 900, room: 100, ..path(0) };
        let slow = PathView { srtt: Some(Duration::from_millis(50)), flight: 100, room: 900, ..path(1) };
        let unknown = PathView { srtt: None, flight: 500, room: 500, ..path(2) };
        let all = [slow.clone(), fast.clone(), unknown];
        let lowest = lowest_rtt(&PolicySpec::named("lowest-rtt"), &Config::default()).expect("no settings");
        let least =
            window_share(&PolicySpec::named("window-share"), &Config::default()).expect("no settings");
        assert_eq!(lowest.choose(&ask(), &all), Choice::Send(fast.id));
        assert_eq!(least.choose(&ask(), &all), Choice::Send(slow.id));
        let full = [PathView { room: 0, ..fast }, slow.clone()];
        assert_eq!(lowest.choose(&ask(), &full), Choice::Send(slow.id));
    }
}
