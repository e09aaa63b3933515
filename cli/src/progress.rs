//! A progress bar on standard error for work that takes longer than a second.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of the runs; shown only on a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    shown: bool,
    /// The completed fraction of each run, 0 to 1.
    shares: Vec<f64>,
}

/// Steps of the bar for each run.
const STEPS: f64 = 1000.0;

impl Progress {
    /// A bar for `runs` runs, not shown yet.
    pub(crate) fn new(runs: usize) -> Self {
        let steps = runs as u64 * STEPS as u64;
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        Progress { bar, shown: false, shares: vec![0.0; runs] }
    }

    /// Shows the bar if a second has passed.
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

    /// Sets the completed fraction of `run`.
    pub(crate) fn at(&mut self, run: usize, share: f64) {
        self.shares[run] = share;
        if self.shown {
            let finished = self.shares.iter().filter(|share| **share >= 1.0).count();
            self.bar.set_position((self.shares.iter().sum::<f64>() * STEPS) as u64);
            self.bar.set_message(format!("{finished} of {} runs", self.shares.len()));
        }
    }

    /// Adds finished runs.
    pub(crate) fn done(&mut self, runs: usize) {
        self.show_if_late();
        let runs = runs.min(self.shares.len());
        self.shares[..runs].fill(1.0);
        if runs > 0 {
            self.at(runs - 1, 1.0);
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// A growing count of runs on standard error: a bar on a terminal, otherwise a line every ten seconds.
pub(crate) struct Count {
    bar: ProgressBar,
    shown: bool,
    /// The number of runs that an earlier process finished.
    before: Option<u64>,
    /// When the next line is due.
    line: Duration,
}

const LINE: Duration = Duration::from_secs(10);

impl Count {
    /// A count of 0, not shown yet.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        Count { bar, shown: false, before: None, line: LINE }
    }

    /// Sets the number of finished runs, out of `all`.
    pub(crate) fn at(&mut self, done: u64, all: u64) {
        let elapsed = self.bar.elapsed();
        let before = *self.before.get_or_insert(done);
        let own = done.saturating_sub(before);
        let left = elapsed.as_secs_f64() * all.saturating_sub(done) as f64 / own.max(1) as f64;
        let text = match own {
            0 => format!("{done} of {all} runs"),
            _ => format!("{done} of {all} runs, {left:.0} s left"),
        };
        if stderr().is_terminal() {
            self.show(elapsed);
            self.bar.set_length(all);
            self.bar.set_position(done);
            self.bar.set_message(text);
        } else if elapsed >= self.line && done < all {
            crate::output::note(text);
            self.line = elapsed + LINE;
        }
    }

    fn show(&mut self, elapsed: Duration) {
        if self.shown || elapsed < Duration::from_secs(1) {
            return;
        }
        self.shown = true;
        let style = ProgressStyle::with_template("{spinner} {msg} {wide_bar} {elapsed}");
        self.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.bar.enable_steady_tick(Duration::from_millis(100));
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
