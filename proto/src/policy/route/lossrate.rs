//! `rtx-lossrate`: a retransmission takes the path with the lowest loss rate (Iyengar, Amer and Stewart 2006). The
//! rates are measured from the association's own losses over `window`, or given as `rates`, in the order of the
//! paths. Ties are broken at random.

use std::collections::VecDeque;

use super::{Ask, Choice, Eligible, Route, best, instead_of};
use crate::path::PathView;
use crate::policy::{Acked, PolicyError, PolicySpec};
use crate::{Config, Duration, Time};

/// The default of `window`.
const WINDOW: Duration = Duration::from_secs(10);
/// The number of points of the window at which the past of a path is kept.
const POINTS: u64 = 32;

#[derive(Clone, Debug)]
struct LossRate {
    eligible: Eligible,
    told: Option<Vec<f64>>,
    window: Duration,
    /// The bytes that each path had delivered and lost at these points, oldest first.
    past: Vec<VecDeque<LossSample>>,
}

#[derive(Copy, Clone, Default, Debug)]
struct LossSample {
    at: Time,
    delivered: u64,
    lost: u64,
}

pub(in crate::policy) fn make(spec: &PolicySpec, config: &Config) -> Result<Box<dyn Route>, PolicyError> {
    spec.allow(&["window", "rates"])?;
    let (window, told) = (spec.duration("window")?, spec.fractions("rates")?);
    if window.is_some() && told.is_some() {
        return Err(spec.refuse("give `window`, which measures the rates, or `rates`, which tells them"));
    }
    let (eligible, window) = (Eligible::of(config), window.unwrap_or(WINDOW));
    Ok(Box::new(LossRate { eligible, told, window, past: Vec::new() }))
}

impl LossRate {
    /// The ratio of lost bytes to sent bytes.
    fn rate(&self, path: &PathView) -> f64 {
        if let Some(told) = &self.told {
            return told.get(path.id.index()).copied().unwrap_or(0.0);
        }
        let past = self.past.get(path.id.index()).and_then(|past| past.front()).copied().unwrap_or_default();
        let lost = path.lost.saturating_sub(past.lost);
        let delivered = path.delivered.saturating_sub(past.delivered);
        lost as f64 / (lost + delivered).max(1) as f64
    }
}

impl Route for LossRate {
    fn choose(&self, ask: &Ask, paths: &[PathView]) -> Choice {
        let carrying = paths.iter().filter(|path| self.eligible.admits(path));
        let chosen = best(ask.tie, carrying, |a, b| self.rate(b).total_cmp(&self.rate(a)));
        match (chosen, ask.last) {
            (Some(path), _) => Choice::Send(path.id),
            (None, Some(last)) => Choice::Send(instead_of(last, paths)),
            (None, None) => Choice::Wait,
        }
    }

    fn acked(&mut self, path: &PathView, acked: &Acked) {
        let index = path.id.index();
        if self.past.len() <= index {
            self.past.resize(index + 1, VecDeque::new());
        }
        let (past, window) = (&mut self.past[index], self.window);
        if past.back().is_none_or(|last| acked.now.since(last.at) * (POINTS as u32) >= window) {
            past.push_back(LossSample { at: acked.now, delivered: path.delivered, lost: path.lost });
        }
        while past.get(1).is_some_and(|second| acked.now.since(second.at) >= window) {
            past.pop_front();
        }
    }
}
