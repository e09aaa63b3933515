//! A simulated run in the view. Virtual time passes at the speed that the viewer chooses.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use anabranch_lab::grid::Point;
use anabranch_proto::Time;
use anabranch_sim::results::RunResult;
use anabranch_sim::trace::{Detail, Names, Observer, Record, Side, Wants};
use anabranch_sim::{RunOptions, words};

use super::{Key, PathLine, Picture, Screen};
use crate::INTERRUPTED;
use crate::output::{fail, refuse, refuse_scenario};
use crate::simulate::{NoResult, no_result};

/// The interval between two drawings.
const EVERY: Duration = Duration::from_millis(100);
/// The longest sleep of the run before it looks at the keys again.
const NAP: Duration = Duration::from_millis(20);
/// The slowest and the fastest speed, as powers of two.
const SPEEDS: (i32, i32) = (-10, 10);
const KEYS: &str = "space pauses   + faster   - slower   q leaves the view, the run goes on   Ctrl-C ends it";

/// Runs the only point and shows it; returns its result, or the exit status of a failure.
pub(crate) fn watch(points: &[Point]) -> Result<RunResult, u8> {
    let [point] = points else {
        return Err(refuse("--watch shows one run: leave out --vary and --seeds"));
    };
    let mut screen = Screen::open()?;
    let shared = Arc::new(Shared::default());
    let worker = {
        let (point, shared) = (point.clone(), shared.clone());
        spawn(move || {
            let mut watcher = Watcher::new(&shared);
            let options = RunOptions { observer: Some(&mut watcher), ..RunOptions::default() };
            let result = anabranch_sim::run(&point.scenario, options);
            shared.over.store(true, Ordering::Relaxed);
            result.map_err(|error| no_result(&point, &error))
        })
    };
    let left = show(&mut screen, &shared, &point.scenario.name);
    drop(screen);
    if left == Some(Key::Interrupt) {
        return Err(INTERRUPTED);
    }
    match worker.join() {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(NoResult::Scenario(error))) => Err(refuse_scenario(&error)),
        Ok(Err(NoResult::Other(why))) => Err(fail(why)),
        Err(_) => Err(fail("the run ended without a result")),
    }
}

/// Draws until the run is over or a key closes the view; returns that key.
fn show(screen: &mut Screen, shared: &Shared, name: &str) -> Option<Key> {
    while !shared.over.load(Ordering::Relaxed) {
        screen.draw(&shared.picture(name));
        match screen.key(EVERY) {
            Some(Key::Pause) => drop(shared.paused.fetch_xor(true, Ordering::Relaxed)),
            Some(Key::Faster) => shared.accelerate(1),
            Some(Key::Slower) => shared.accelerate(-1),
            Some(key) => {
                shared.hurry.store(true, Ordering::Relaxed);
                return Some(key);
            }
            None => {}
        }
    }
    None
}

/// The state that the run and the view share.
#[derive(Default)]
struct Shared {
    latest: Mutex<Latest>,
    paused: AtomicBool,
    /// Virtual seconds per second, as a power of two.
    speed: AtomicI32,
    /// The view is closed.
    hurry: AtomicBool,
    over: AtomicBool,
}

/// The run at its latest moment.
#[derive(Default)]
struct Latest {
    /// Seconds.
    at: f64,
    /// By flow and path.
    paths: BTreeMap<(usize, String), PathLine>,
}

impl Shared {
    fn accelerate(&self, by: i32) {
        let speed = self.speed.load(Ordering::Relaxed) + by;
        self.speed.store(speed.clamp(SPEEDS.0, SPEEDS.1), Ordering::Relaxed);
    }

    /// Virtual seconds per second.
    fn factor(&self) -> f64 {
        let power = self.speed.load(Ordering::Relaxed);
        let two = f64::from(1_u32 << power.unsigned_abs().min(30));
        if power < 0 { 1.0 / two } else { two }
    }

    fn picture(&self, name: &str) -> Picture {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let paused = if self.paused.load(Ordering::Relaxed) { ", paused" } else { "" };
        let mut paths: Vec<PathLine> = latest.paths.values().cloned().collect();
        paths.iter_mut().for_each(|path| path.rates.advance(latest.at));
        Picture {
            title: format!("Scenario {name}"),
            status: format!("{:.3} s at {} × real time{paused}", latest.at, self.factor()),
            keys: KEYS,
            paths,
        }
    }
}

/// An observer that follows the senders of the run and slows the run down.
struct Watcher<'a> {
    shared: &'a Shared,
    flows: Vec<String>,
    /// Virtual time and real time of the last change of speed.
    reached: (f64, Instant),
}

impl<'a> Watcher<'a> {
    fn new(shared: &'a Shared) -> Self {
        Watcher { shared, flows: Vec::new(), reached: (0.0, Instant::now()) }
    }

    /// Waits until virtual time may reach `at`.
    fn wait(&mut self, at: f64) {
        while !self.shared.hurry.load(Ordering::Relaxed) {
            let paused = self.shared.paused.load(Ordering::Relaxed);
            let now = Instant::now();
            let due = self.reached.0 + (now - self.reached.1).as_secs_f64() * self.shared.factor();
            if !paused {
                self.reached = (due.min(at), now);
                if due >= at {
                    return;
                }
            } else {
                self.reached.1 = now;
            }
            sleep(NAP);
        }
    }
}

impl Observer for Watcher<'_> {
    fn begin(&mut self, names: &Names) {
        self.flows = names.flows.clone();
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        let seconds = at.as_nanos() as f64 / 1e9;
        if seconds > self.reached.0 {
            self.wait(seconds);
        }
        let mut latest = self.shared.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.at = seconds;
        let Record::Detail { flow, side: Side::Client, path: Some(path), detail } = record else { return };
        let key = (*flow, (*path).to_owned());
        let name = format!("{}: {path}", self.flows[*flow]);
        let line = latest.paths.entry(key).or_insert_with(|| PathLine {
            name,
            state: "active",
            ..PathLine::default()
        });
        update(line, seconds, detail);
    }

    fn wants(&self) -> Wants {
        Wants { queues: false, ..Wants::LITTLE }
    }
}

/// Applies a detail to the line of a path.
fn update(line: &mut PathLine, at: f64, detail: &Detail) {
    match detail {
        Detail::Window { cwnd, ssthresh, flight, .. } => {
            (line.cwnd, line.flight) = (*cwnd, *flight);
            line.ssthresh = (*ssthresh != u64::MAX).then_some(*ssthresh);
        }
        Detail::Rto { rto, srtt, .. } => {
            (line.rto, line.srtt) = (Some(rto.as_secs_f64()), srtt.map(|srtt| srtt.as_secs_f64()));
        }
        Detail::Sent { size, .. } => line.rates.add(at, u64::from(*size)),
        Detail::State(state) => line.state = words::path_state(*state),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use anabranch_proto::PathState;
    use anabranch_proto::policy::Why;

    use super::*;

    #[test]
    fn the_watcher_follows_a_sender_at_the_speed_that_is_asked_for() {
        let shared = Shared::default();
        shared.accelerate(7);
        assert_eq!(shared.factor(), 128.0);
        let mut watcher = Watcher::new(&shared);
        watcher.begin(&Names { flows: vec!["f".to_owned()], ..Names::default() });
        let begun = Instant::now();
        let mut tell = |seconds: f64, detail: &Detail| {
            let at = Time::ZERO + Duration::from_secs_f64(seconds);
            let (flow, side, path) = (0, Side::Client, Some("wifi"));
            watcher.record(at, &Record::Detail { flow, side, path, detail });
        };
        let window = Detail::Window { cwnd: 10, ssthresh: u64::MAX, flight: 4, marked: 0, segments: None };
        tell(0.0, &window);
        tell(0.1, &Detail::Sent { number: 1, size: 1000, why: Why::New });
        tell(12.8, &Detail::State(PathState::Inactive));
        assert!(begun.elapsed() >= Duration::from_millis(95), "{:?}", begun.elapsed());
        let picture = shared.picture("s");
        let line = &picture.paths[0];
        assert_eq!((line.name.as_str(), line.state, line.cwnd, line.flight), ("f: wifi", "inactive", 10, 4));
        assert_eq!(line.ssthresh, None);
        assert!(picture.status.starts_with("12.800 s at 128 × real time"), "{}", picture.status);
        shared.hurry.store(true, Ordering::Relaxed);
        let mut watcher = Watcher::new(&shared);
        watcher.wait(1e9);
    }
}
