//! A transfer on the whole terminal: paths, windows and rates.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use anabranch_net::{Association, PathId, PathReport};
use rustix::process::{Signal, getpid, kill_process};

use super::paths::{name, state};
use crate::watch::{Key, PathLine, Picture, Rates, Screen};

/// The interval between two drawings and two looks at the keys.
const EVERY: Duration = Duration::from_millis(100);

/// A transfer in the terminal view.
pub(super) struct Watched {
    /// Until the viewer leaves the view.
    screen: Option<Screen>,
    title: String,
    size: u64,
    begun: Instant,
    /// For each path: the bytes it had delivered, and its rates.
    rates: BTreeMap<PathId, (u64, Rates)>,
}

impl Watched {
    /// Opens the view for a transfer of so many bytes, or returns the exit status of a failure.
    pub(super) fn begin(file: &str, size: u64) -> Result<Watched, u8> {
        let (screen, title) = (Some(Screen::open()?), format!("{file}, {size} bytes"));
        Ok(Watched { screen, title, size, begun: Instant::now(), rates: BTreeMap::new() })
    }

    /// Draws the paths of the association repeatedly.
    pub(super) async fn watch(&mut self, association: &Association) -> Infallible {
        loop {
            tokio::time::sleep(EVERY).await;
            let picture = self.picture(&association.paths(), association.statistics().acknowledged);
            let Some(screen) = &mut self.screen else { continue };
            screen.draw(&picture);
            match screen.key(Duration::ZERO) {
                Some(Key::Leave) => self.screen = None,
                // While keys are read, the terminal sends no signal for Ctrl-C. So the signal is raised here.
                Some(Key::Interrupt) => drop(kill_process(getpid(), Signal::INT)),
                _ => {}
            }
        }
    }

    fn picture(&mut self, paths: &[PathReport], acknowledged: u64) -> Picture {
        let at = self.begun.elapsed().as_secs_f64();
        let done = acknowledged.min(self.size);
        let share = done as f64 * 100.0 / self.size.max(1) as f64;
        Picture {
            title: self.title.clone(),
            status: format!("{at:.1} s; {done} bytes acknowledged, {share:.1} %"),
            keys: "q leaves the view, the transfer goes on   Ctrl-C ends the transfer",
            paths: paths.iter().map(|path| self.line(path, at)).collect(),
        }
    }

    fn line(&mut self, path: &PathReport, at: f64) -> PathLine {
        let (delivered, rates) = self.rates.entry(path.id).or_default();
        rates.add(at, path.delivered.saturating_sub(*delivered));
        *delivered = path.delivered;
        PathLine {
            name: name(path),
            state: state(path),
            cwnd: path.window,
            ssthresh: None,
            flight: path.flight,
            srtt: path.srtt.map(|srtt| srtt.as_secs_f64()),
            rto: Some(path.rto.as_secs_f64()),
            rates: rates.clone(),
        }
    }
}
