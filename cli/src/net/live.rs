//! The progress of a transfer: a bar, and a line for each path.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use anabranch_net::{Association, PathId, PathReport};
use indicatif::{HumanBytes, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::paths::{name, share, state};
use crate::output::{note, on_terminal};

/// The interval between two drawings.
const EVERY: Duration = Duration::from_millis(250);
/// The interval between two lines where nothing can be drawn.
const LINES: Duration = Duration::from_secs(1);

/// A transfer shown on standard error: drawn on a terminal, otherwise as lines.
pub(super) struct Live {
    all: MultiProgress,
    bar: ProgressBar,
    paths: BTreeMap<PathId, Line>,
    begun: Instant,
    /// Whether lines are printed.
    lines: bool,
}

/// One path, and the bytes that it had delivered at the last look.
struct Line {
    bar: ProgressBar,
    delivered: u64,
    at: Instant,
}

impl Live {
    /// A view before anything of `bytes` (if known) is sent; hidden unless `shown`.
    pub(super) fn new(bytes: Option<u64>, shown: bool) -> Live {
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let all = MultiProgress::with_draw_target(target);
        let bar = match bytes {
            Some(bytes) => all.add(ProgressBar::new(bytes)),
            None => ProgressBar::hidden(),
        };
        let style =
            ProgressStyle::with_template("{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, left {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let lines = shown && !on_terminal();
        Live { all, bar, paths: BTreeMap::new(), begun: Instant::now(), lines }
    }

    pub(super) fn bar(&self) -> ProgressBar {
        self.bar.clone()
    }

    /// Draws the paths of the association repeatedly.
    pub(super) async fn watch(&mut self, association: &Association) -> Infallible {
        loop {
            tokio::time::sleep(if self.lines { LINES } else { EVERY }).await;
            self.look(&association.paths());
        }
    }

    fn look(&mut self, paths: &[PathReport]) {
        for path in paths {
            let line = self.paths.entry(path.id).or_insert_with(|| {
                let bar = self.all.add(ProgressBar::new_spinner());
                let style = ProgressStyle::with_template("  {msg}");
                bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
                // At the first look, everything was carried since the beginning.
                Line { bar, delivered: 0, at: self.begun }
            });
            let now = Instant::now();
            let rate = mbit(path.delivered.saturating_sub(line.delivered), now - line.at);
            (line.delivered, line.at) = (path.delivered, now);
            let said = said(path, share(path, paths), rate);
            if self.lines {
                note(format!("{:7.2} s  {said}", self.begun.elapsed().as_secs_f64()));
            }
            line.bar.set_message(said);
            line.bar.tick();
        }
    }

    pub(super) fn finish(&self) {
        let _ = self.all.clear();
    }
}

/// One path as a line.
fn said(path: &PathReport, share: f64, rate: f64) -> String {
    let (name, state, bytes) = (name(path), state(path), HumanBytes(path.delivered));
    let srtt =
        path.srtt.map_or(String::new(), |srtt| format!(", round trip {:.1} ms", srtt.as_secs_f64() * 1e3));
    format!("{name}: {state}, {bytes} ({:.0} %), {rate:.2} Mbit/s{srtt}", share * 100.0)
}

/// The rate of so many bytes in this time, in Mbit/s; `None` if no time has passed.
pub(super) fn mbit(bytes: u64, time: Duration) -> f64 {
    match time.as_secs_f64() {
        0.0 => 0.0,
        seconds => bytes as f64 * 8e-6 / seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rate_is_absurd() {
        assert_eq!(mbit(1_000_000, Duration::ZERO), 0.0);
        assert_eq!(mbit(1_000_000, Duration::from_secs(2)), 4.0);
    }
}
