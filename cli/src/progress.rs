//! A bar on standard error, for people who wait longer than a second.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How many runs are done; shown only on a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    shown: bool,
}

impl Progress {
    /// None of `runs` done, nothing shown yet.
    pub(crate) fn new(runs: u64) -> Self {
        Progress {
            bar: ProgressBar::with_draw_target(Some(runs), ProgressDrawTarget::hidden()),
            shown: false,
        }
    }

    /// Shows it from now on, if people have waited for a second.
    pub(crate) fn show_if_late(&mut self) {
        if self.shown || self.bar.elapsed() < Duration::from_secs(1) || !stderr().is_terminal() {
            return;
        }
        self.shown = true;
        let style =
            ProgressStyle::with_template("{spinner} {pos} of {len} runs {wide_bar} {elapsed}, left {eta}");
        self.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.bar.enable_steady_tick(Duration::from_millis(100));
    }

    /// `runs` are done.
    pub(crate) fn at(&self, runs: u64) {
        self.bar.set_position(runs);
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
