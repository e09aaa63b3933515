//! A transfer as it goes on: a bar, and a line for each path.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use anabranch_net::{Association, PathId};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::paths::{name, state};

/// How often it is drawn anew.
const EVERY: Duration = Duration::from_millis(250);

pub(super) struct Live {
    all: MultiProgress,
    bar: ProgressBar,
    paths: BTreeMap<PathId, Line>,
    begun: Instant,
}

/// One path: what was delivered by it when it was last looked at.
struct Line {
    bar: ProgressBar,
    delivered: u64,
    at: Instant,
}

impl Live {
    /// Nothing of `bytes` is sent yet; drawn only if it is `shown` and standard error is a terminal.
    pub(super) fn new(bytes: u64, shown: bool) -> Live {
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let all = MultiProgress::with_draw_target(target);
        let bar = all.add(ProgressBar::new(bytes));
        let style =
            ProgressStyle::with_template("{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, left {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Live { all, bar, paths: BTreeMap::new(), begun: Instant::now() }
    }

    pub(super) fn bar(&self) -> ProgressBar {
        self.bar.clone()
    }

    /// Draws the paths of the association again and again.
    pub(super) async fn watch(&mut self, association: &Association) -> Infallible {
        loop {
            tokio::time::sleep(EVERY).await;
            self.look(association);
        }
    }

    fn look(&mut self, association: &Association) {
        for path in association.paths() {
            let line = self.paths.entry(path.id).or_insert_with(|| {
                let bar = self.all.add(ProgressBar::new_spinner());
                let style = ProgressStyle::with_template("  {msg}");
                bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
                // What it has carried until now it has carried since the beginning.
                Line { bar, delivered: 0, at: self.begun }
            });
            let now = Instant::now();
            let rate = mbit(path.delivered - line.delivered, now - line.at);
            (line.delivered, line.at) = (path.delivered, now);
            let srtt = path.srtt.map_or(0.0, |srtt| srtt.as_secs_f64() * 1e3);
            let (name, state) = (name(&path), state(&path));
            line.bar.set_message(format!("{name}: {state}, {rate:.2} Mbit/s, round trip {srtt:.1} ms"));
            line.bar.tick();
        }
    }

    pub(super) fn finish(&self) {
        let _ = self.all.clear();
    }
}

/// Mbit/s of so many bytes in this time; none in no time.
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
