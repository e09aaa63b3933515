//! A bar on standard error, for people who wait longer than a second.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How far the runs are; shown only on a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    shown: bool,
    /// By run: how much of it is done, 0 to 1.
    shares: Vec<f64>,
}

/// Steps of the bar for each run.
const STEPS: f64 = 1000.0;

impl Progress {
    /// None of `runs` begun, nothing shown yet.
    pub(crate) fn new(runs: usize) -> Self {
        let steps = runs as u64 * STEPS as u64;
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        Progress { bar, shown: false, shares: vec![0.0; runs] }
    }

    /// Shows it from now on, if people have waited for a second.
    pub(crate) fn show_if_late(&mut self) {
        if self.shown || self.bar.elapsed() < Duration::from_secs(1) || !stderr().is_terminal() {
            return;
        }
        self.shown = true;
        let style = ProgressStyle::with_template("{spinner} {msg} {wide_bar} {elapsed}, left {eta}");
        self.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.bar.enable_steady_tick(Duration::from_millis(100));
    }

    /// So much of `run` is done.
    pub(crate) fn at(&mut self, run: usize, share: f64) {
        self.shares[run] = share;
        if self.shown {
            let finished = self.shares.iter().filter(|share| **share >= 1.0).count();
            self.bar.set_position((self.shares.iter().sum::<f64>() * STEPS) as u64);
            self.bar.set_message(format!("{finished} of {} runs", self.shares.len()));
        }
    }

    /// So many runs are finished, whichever they are.
    pub(crate) fn done(&mut self, runs: usize) {
        self.show_if_late();
        let runs = runs.min(self.shares.len());
        self.shares[..runs].fill(1.0);
        if runs > 0 {
            self.at(runs - 1, 1.0);
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
