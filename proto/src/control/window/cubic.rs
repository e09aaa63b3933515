//! `cubic`: the window of RFC 9438. After a loss it grows along a cubic function of time towards the window at the
//! loss. It counts in its unit; times are in seconds.

use super::{Acked, Congestion, Decay, Decayed, Loss, Lost, Sibling, Start};
use crate::Time;
use crate::control::rtt::RttEstimate;

/// The steepness of the growth, in units per cubic second.
//= rfc9438#section-4.2
const C: f64 = 0.4;
/// The share of the window that is left after a loss.
//= rfc9438#section-4.6
const BETA: f64 = 0.7;
/// The growth of the estimate of Reno's window per round trip, chosen so that its average share equals Reno's.
//= rfc9438#section-4.3
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The window grows by at most half per round trip.
const STEEPEST: f64 = 1.5;

/// The growth of the estimate of Reno's window once the estimate has reached the window before the loss.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Alpha {
    /// One unit per round trip, as Reno's (RFC 9438 §4.3).
    #[default]
    One,
    /// The same as below, about half a unit (RFC 8312 §4.2, Linux).
    Constant,
}

/// The window of one path.
#[derive(Clone, Debug)]
pub struct Cubic {
    unit: f64,
    alpha: Alpha,
    decay: Decay,
    /// The window and its threshold, in units.
    window: f64,
    ssthresh: f64,
    /// The window before the last cut, and the target of the curve.
    before_cut: f64,
    most: f64,
    stage: Option<Stage>,
    /// The last cut was made by a timeout: the next curve begins at its middle.
    timed_out: bool,
    /// Nothing was acknowledged since the last timeout.
    silent: bool,
    /// When an acknowledgement arrived last, and whether it left nothing in flight.
    heard: (Time, bool),
    rtt: Option<RttEstimate>,
}

/// A stage of congestion avoidance.
#[derive(Copy, Clone, Debug)]
struct Stage {
    since: Time,
    /// Seconds until the curve is at `most`.
    k: f64,
    most: f64,
    /// The estimate of Reno's window.
    reno: f64,
}

impl Cubic {
    /// The window of a path with this start.
    pub fn new(start: Start, alpha: Alpha) -> Self {
        let unit = start.unit as f64;
        let ssthresh = if start.ssthresh == u64::MAX { f64::INFINITY } else { start.ssthresh as f64 / unit };
        Cubic {
            unit,
            alpha,
            decay: Decay::OFF,
            window: start.window as f64 / unit,
            ssthresh,
            before_cut: 0.0,
            most: 0.0,
            stage: None,
            timed_out: false,
            silent: false,
            heard: (Time::ZERO, false),
            rtt: None,
        }
    }

    /// The same, which decays while nothing is sent.
    pub(crate) fn decaying(self, decay: Decay) -> Self {
        Cubic { decay, ..self }
    }

    /// An acknowledgement arrives while the window is used fully or not. The curve stands still for the time in which
    /// the application, and not the window, limited the sender: else the window would jump after a pause.
    //= rfc9438#section-5.8
    fn hear(&mut self, acked: &Acked, full: bool) {
        let (before, idle) = std::mem::replace(&mut self.heard, (acked.now, acked.flight == 0));
        let Some(stage) = &mut self.stage else { return };
        let passed = acked.now.since(before);
        let limited = match full {
            false => passed,
            // Nothing was in flight since then, until one round trip ago, when the data left that is acknowledged now.
            true if idle => {
                passed.saturating_sub(self.rtt.map_or(passed, |rtt| acked.rtt.unwrap_or(rtt.srtt)))
            }
            true => return,
        };
        stage.since += limited;
    }

    //= rfc9438#section-4.2
    fn begin(&mut self, now: Time) -> Stage {
        let most = if self.timed_out || self.most < self.window { self.window } else { self.most };
        let k = libm::cbrt((most - self.window) / C);
        self.timed_out = false;
        Stage { since: now, k, most, reno: self.window }
    }

    fn avoid_congestion(&mut self, acked: &Acked) {
        let mut stage = self.stage.unwrap_or_else(|| self.begin(acked.now));
        let segments = acked.all() as f64 / self.unit;
        //= rfc9438#section-4.3
        let as_reno = self.alpha == Alpha::One && stage.reno >= self.before_cut;
        let alpha = if as_reno { 1.0 } else { ALPHA };
        stage.reno += alpha * segments / self.window;
        let elapsed = acked.now.since(stage.since).as_secs_f64();
        let rtt = self.rtt.map_or(0.0, |rtt| rtt.srtt.as_secs_f64());
        if stage.at(elapsed) < stage.reno {
            self.window = self.window.max(stage.reno);
        } else {
            //= rfc9438#section-4.4
            let target = stage.at(elapsed + rtt).clamp(self.window, STEEPEST * self.window);
            self.window += (target - self.window) / self.window * segments;
        }
        self.stage = Some(stage);
    }
}

impl Stage {
    /// The curve, `elapsed` seconds after its beginning.
    //= rfc9438#section-4.2
    fn at(&self, elapsed: f64) -> f64 {
        let t = elapsed - self.k;
        C * t * t * t + self.most
    }
}

impl Congestion for Cubic {
    fn window(&self) -> u64 {
        (self.window * self.unit) as u64
    }

    fn ssthresh(&self) -> u64 {
        (self.ssthresh * self.unit) as u64
    }

    fn stands_alone(&self) -> bool {
        true
    }

    fn acked(&mut self, acked: &Acked, _: &[Sibling]) {
        if let Some(rtt) = acked.rtt {
            self.rtt = Some(self.rtt.map_or_else(|| RttEstimate::first(rtt), |before| before.with(rtt)));
        }
        // If the window did not limit the sender, the acknowledgement says nothing about the network.
        //= rfc9438#section-5.8
        let full = acked.flight_before as f64 + self.unit > self.window * self.unit;
        self.silent &= !acked.advanced;
        self.hear(acked, full);
        if acked.recovery || acked.all() == 0 || !full {
            return;
        }
        if self.window < self.ssthresh {
            self.window += (acked.all() as f64 / self.unit).min(1.0);
        } else {
            self.avoid_congestion(acked);
        }
    }

    //= rfc5681#section-4.1
    fn restart(&mut self, most: u64) {
        self.window = self.window.min(most as f64 / self.unit);
    }

    /// The steepness counts in units, so a new curve begins here, towards the target of the old one.
    fn set_unit(&mut self, unit: u64) {
        if let Some(stage) = self.stage.take() {
            self.most = stage.most;
        }
        let scale = self.unit / unit as f64;
        self.unit = unit as f64;
        for size in [&mut self.window, &mut self.ssthresh, &mut self.before_cut, &mut self.most] {
            *size *= scale;
        }
    }

    fn reopen(&mut self, packets: u32) {
        self.window = f64::from(packets);
    }

    fn idle(&mut self, times: u32) -> bool {
        let (before, threshold) = (self.window(), self.ssthresh());
        let Decayed { window, ssthresh, goes_on } =
            self.decay.after(times, self.unit as u64, before, threshold);
        if window != before {
            self.window = window as f64 / self.unit;
        }
        if ssthresh != threshold {
            self.ssthresh = ssthresh as f64 / self.unit;
        }
        goes_on
    }

    /// Begins a new curve whose target is the window before the cut (RFC 9438 §4.9).
    fn undo(&mut self, window: u64, ssthresh: u64) {
        self.window = self.window.max(window as f64 / self.unit);
        self.ssthresh = self.ssthresh.max(ssthresh as f64 / self.unit);
        self.most = self.most.max(self.before_cut);
        (self.stage, self.timed_out) = (None, false);
    }

    //= rfc9438#section-4.6
    fn lost(&mut self, lost: &Lost, _: &[Sibling]) {
        // A further timeout of the same segment leaves the threshold unchanged, as with Reno (RFC 5681 §3.1).
        if lost.how != Loss::Timeout || !std::mem::replace(&mut self.silent, true) {
            self.before_cut = self.window;
            // Fast convergence: a shrinking window leaves room for newer flows.
            //= rfc9438#section-4.7
            self.most = if self.window < self.most { self.window * (1.0 + BETA) / 2.0 } else { self.window };
            self.ssthresh = (self.window * BETA).max(2.0);
        }
        self.stage = None;
        match lost.how {
            Loss::Missing => self.window = self.ssthresh,
            //= rfc9438#section-4.8
            Loss::Timeout => (self.window, self.timed_out) = (1.0, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Duration;

    const UNIT: u64 = 1000;

    fn cubic(window: u64, ssthresh: u64) -> Cubic {
        let start = Start { unit: UNIT, window: window * UNIT, ssthresh: ssthresh.saturating_mul(UNIT) };
        Cubic::new(start, Alpha::One)
    }

    fn lost(how: Loss) -> Lost {
        Lost { now: Time::ZERO, how, outstanding: 0 }
    }

    /// Acknowledges one window per round trip for `seconds` seconds; returns the windows at the ends of the round
    /// trips.
    fn run(cubic: &mut Cubic, from: f64, seconds: f64, rtt: f64) -> Vec<f64> {
        let mut seen = Vec::new();
        let rounds = (seconds / rtt) as u32;
        for round in 1..=rounds {
            let now = Time::ZERO + Duration::from_secs_f64(from + f64::from(round) * rtt);
            for _ in 0..cubic.window as u32 {
                let flight = cubic.window();
                let rtt = Some(Duration::from_secs_f64(rtt));
                let acked = Acked {
                    now,
                    cumulative: UNIT,
                    gap: 0,
                    gap_behind_point: 0,
                    advanced: true,
                    recovery: false,
                    flight_before: flight,
                    unacknowledged_before: flight,
                    flight: flight - UNIT,
                    rtt,
                };
                cubic.acked(&acked, &[]);
            }
            seen.push(cubic.window);
        }
        seen
    }

    //= rfc9438#section-4.6
    #[test]
    fn a_loss_leaves_seven_tenths() {
        let mut window = cubic(100, u64::MAX);
        window.lost(&lost(Loss::Missing), &[]);
        assert_eq!((window.window(), window.ssthresh()), (70_000, 70_000));
    }

    //= rfc9438#section-4.2
    //= rfc9438#section-4.4
    #[test]
    fn the_curve_is_back_at_the_old_window_after_k_seconds() {
        let mut window = cubic(1000, u64::MAX);
        window.lost(&lost(Loss::Missing), &[]);
        // K = cbrt(300 / 0.4) = 9.086 s.
        let seen = run(&mut window, 0.0, 18.0, 0.1);
        let at = |seconds: f64| seen[(seconds * 10.0) as usize - 1];
        assert!((990.0..=1000.5).contains(&at(9.0)), "{}", at(9.0));
        assert!(at(4.5) < 970.0, "concave before");
        assert!(at(17.9) > 1150.0, "convex behind: {}", at(17.9));
        let steps = |from: f64| at(from + 1.0) - at(from);
        assert!(steps(1.0) > steps(8.5) && steps(16.0) > steps(9.0), "flat in the middle");
    }

    //= rfc9438#section-4.3
    #[test]
    fn short_round_trips_grow_as_reno_would() {
        let mut window = cubic(100, u64::MAX);
        window.lost(&lost(Loss::Missing), &[]);
        let seen = run(&mut window, 0.0, 0.1, 0.01);
        let grown = seen[9] - 70.0;
        assert!((ALPHA * 9.5..=ALPHA * 10.5).contains(&grown), "{grown} in ten round trips");
    }

    /// 100 units, then 70. With round trips of 10 ms the estimate is at 100 again after 30/0.53 = 57 of them. In 40
    /// more it grows by 40, or by 21.
    //= rfc9438#section-4.3
    #[test]
    fn from_the_former_window_on_alpha_is_one_or_stays() {
        for (alpha, growth) in [(Alpha::One, 1.0), (Alpha::Constant, ALPHA)] {
            let mut window = Cubic { alpha, ..cubic(100, u64::MAX) };
            window.lost(&lost(Loss::Missing), &[]);
            run(&mut window, 0.0, 0.6, 0.01);
            let before = window.window;
            assert!(before >= 100.0, "{before}");
            run(&mut window, 0.6, 0.4, 0.01);
            let grown = (window.window - before) / 40.0;
            assert!((0.95 * growth..=1.05 * growth).contains(&grown), "{alpha:?}: {grown} per round trip");
        }
    }

    //= rfc9438#section-4.7
    #[test]
    fn a_second_loss_below_the_old_window_aims_lower() {
        let mut window = cubic(100, u64::MAX);
        window.lost(&lost(Loss::Missing), &[]);
        window.lost(&lost(Loss::Missing), &[]);
        assert_eq!(window.most, 70.0 * 0.85);
    }

    //= rfc9438#section-4.8
    #[test]
    fn a_timeout_starts_over_and_its_curve_at_the_window_of_then() {
        let mut window = cubic(100, u64::MAX);
        window.lost(&lost(Loss::Timeout), &[]);
        assert_eq!((window.window(), window.ssthresh()), (1000, 70_000));
        run(&mut window, 0.0, 0.8, 0.1);
        assert!(window.window >= 70.0, "slow start: {}", window.window);
        assert_eq!(window.stage.map(|stage| stage.k), Some(0.0));
    }

    /// With packets of half the size, the way from 70,000 to 100,000 bytes is twice as many units: a new curve is there
    /// after cbrt(60/0.4) = 5.3 s, not before, and does not pass it at once.
    //= rfc9438#section-4.2
    #[test]
    fn packets_of_another_size_begin_a_new_curve_with_the_same_target() {
        let mut window = cubic(100, u64::MAX);
        window.lost(&lost(Loss::Missing), &[]);
        run(&mut window, 0.0, 0.1, 0.1);
        let before = window.window();
        window.set_unit(UNIT / 2);
        assert!(window.window().abs_diff(before) <= 1, "{} of {before}", window.window());
        let at = |window: &mut Cubic, from: f64| {
            run(window, from, 1.0, 0.1);
            window.window()
        };
        let seen: Vec<u64> = (0..6).map(|second| at(&mut window, 0.1 + f64::from(second))).collect();
        assert!(seen[1] < 97_000 && (99_000..=100_100).contains(&seen[4]), "{seen:?}");
    }

    /// A second timeout with nothing acknowledged in between leaves the threshold of the first.
    //= rfc9438#section-4.8
    #[test]
    fn a_timeout_of_the_same_segment_leaves_the_threshold() {
        let mut window = cubic(100, u64::MAX);
        window.lost(&lost(Loss::Timeout), &[]);
        window.lost(&lost(Loss::Timeout), &[]);
        assert_eq!((window.window(), window.ssthresh()), (1000, 70_000));
        run(&mut window, 0.0, 0.1, 0.1);
        window.lost(&lost(Loss::Timeout), &[]);
        assert_eq!(window.ssthresh(), 2000, "of the window of then");
    }

    /// The curve goes on after a pause where it stood before: without data for 20 s, or with too little for the window.
    //= rfc9438#section-5.8
    #[test]
    fn pauses_are_no_time_of_the_curve() {
        let after = |pause: f64, trickle: bool| {
            let mut window = cubic(100, u64::MAX);
            window.lost(&lost(Loss::Missing), &[]);
            run(&mut window, 0.0, 2.0, 0.1);
            let flight = if trickle { UNIT } else { 0 };
            // The last acknowledgement before the pause leaves nothing in flight; those of a trickle find little.
            let steps = if trickle { (pause * 10.0) as u32 } else { 1 };
            for step in 0..steps {
                let acked = Acked {
                    now: Time::ZERO + Duration::from_secs_f64(2.0 + f64::from(step) * 0.1),
                    cumulative: UNIT,
                    advanced: true,
                    flight_before: flight + UNIT,
                    unacknowledged_before: flight + UNIT,
                    flight: 0,
                    rtt: Some(Duration::from_millis(100)),
                    ..Acked::default()
                };
                window.acked(&acked, &[]);
            }
            run(&mut window, 2.0 + pause, 1.0, 0.1).last().copied().expect("some round trips")
        };
        let without = after(0.0, false);
        for (pause, trickle) in [(20.0, false), (20.0, true)] {
            let with = after(pause, trickle);
            assert!((with / without - 1.0).abs() < 0.01, "{with} after a pause, {without} without");
        }
    }

    //= rfc9438#section-5.8
    #[test]
    fn an_idle_application_does_not_grow_it() {
        let mut window = cubic(10, 5);
        let acked = Acked {
            now: Time::ZERO,
            cumulative: UNIT,
            gap: 0,
            gap_behind_point: 0,
            advanced: true,
            recovery: false,
            flight_before: 2 * UNIT,
            unacknowledged_before: 2 * UNIT,
            flight: UNIT,
            rtt: None,
        };
        window.acked(&acked, &[]);
        assert_eq!(window.window(), 10_000);
    }
}
