//! `standard`: the windows of RFC 9260 §7.2, and of its older editions by the rules of the era.

use std::sync::Arc;

use super::{Acked, Congestion, Loss, Lost, MakeWindow, Sibling, Start};
use crate::Config;
use crate::control::window::{Decay, Decayed};
use crate::mechanisms::{AtThreshold, Mechanisms, T3Floor};
use crate::policy::{PolicyError, PolicySpec};
use crate::rules::{Growth, PartialBytes, RecoveryGrowth, Rules, T3Cut};

#[derive(Clone, Debug)]
pub(super) struct Standard {
    rules: Rules,
    t3_floor: T3Floor,
    at_threshold: AtThreshold,
    grows_unused: bool,
    /// The unit of growth and of floors, in bytes.
    pub(super) unit: u64,
    pub(super) window: u64,
    pub(super) ssthresh: u64,
    partial_bytes_acked: u64,
}

pub(in crate::policy) fn make(spec: &PolicySpec, config: &Config) -> Result<MakeWindow, PolicyError> {
    let options = TcpOptions::read(spec)?;
    let (rules, mechanisms) = (config.rules, config.mechanisms);
    Ok(Arc::new(move |start| {
        let standard = Standard::new(rules, &mechanisms, start);
        let at_threshold = options.at_threshold.unwrap_or(standard.at_threshold);
        Box::new(Standard { at_threshold, grows_unused: options.grows_unused, ..standard })
    }))
}

/// Settings that make the window behave like TCP's in single respects, so that each can be studied alone.
#[derive(Default)]
struct TcpOptions {
    /// `at_threshold`: the mechanism of this name, for this window alone.
    at_threshold: Option<AtThreshold>,
    /// `unused = "grows"`: the window also grows when it did not limit the sender.
    grows_unused: bool,
}

impl TcpOptions {
    fn read(spec: &PolicySpec) -> Result<Self, PolicyError> {
        let mut options = TcpOptions::default();
        for (key, value) in &spec.settings {
            match (key.as_str(), value.text()) {
                ("at_threshold", "slow-start") => options.at_threshold = Some(AtThreshold::SlowStart),
                ("at_threshold", "avoidance") => options.at_threshold = Some(AtThreshold::Avoidance),
                ("unused", "stays") => {}
                ("unused", "grows") => options.grows_unused = true,
                _ => {
                    let why = "its settings are `at_threshold`, \"slow-start\" or \"avoidance\", and `unused`, \"stays\" or \"grows\"";
                    return Err(PolicyError::Setting { name: spec.name.clone(), why: why.to_owned() });
                }
            }
        }
        Ok(options)
    }
}

impl Standard {
    pub(super) fn new(rules: Rules, mechanisms: &Mechanisms, start: Start) -> Self {
        let Start { unit, window, ssthresh } = start;
        let (t3_floor, at_threshold) = (mechanisms.t3_floor, mechanisms.at_threshold);
        let (grows_unused, partial_bytes_acked) = (false, 0);
        Standard { rules, t3_floor, at_threshold, grows_unused, unit, window, ssthresh, partial_bytes_acked }
    }

    /// The ssthresh after a loss.
    //= rfc9260#section-7.2.3
    fn halved(&self, how: Loss) -> u64 {
        let floor = match how {
            Loss::Missing => self.floor(),
            Loss::Timeout => self.timeout_floor(),
        };
        (self.window / 2).max(floor)
    }

    /// The lowest ssthresh after a loss.
    pub(super) fn floor(&self) -> u64 {
        u64::from(self.rules.ssthresh_floor) * self.unit
    }

    /// The lowest ssthresh after a timeout.
    fn timeout_floor(&self) -> u64 {
        match self.t3_floor {
            T3Floor::AsAnyLoss => self.floor(),
            T3Floor::Two => 2 * self.unit,
        }
    }

    /// Whether the window counts as fully used.
    fn is_full(&self, acked: &Acked) -> bool {
        self.grows_unused || acked.flight_before >= self.window
    }

    /// Whether the window grows by slow start.
    //= rfc9260#section-7.2.1
    pub(super) fn is_in_slow_start(&self) -> bool {
        match self.at_threshold {
            AtThreshold::SlowStart => self.window <= self.ssthresh,
            AtThreshold::Avoidance => self.window < self.ssthresh,
        }
    }

    /// Whether this SACK may grow the window.
    //= rfc9260#section-7.2.1
    pub(super) fn may_grow(&self, acked: &Acked) -> bool {
        let moved = acked.advanced || self.rules.growth == Growth::OnAck;
        moved && !self.is_barred(acked) && acked.all() > 0 && self.is_full(acked)
    }

    /// Whether Fast Recovery keeps the window as it is.
    fn is_barred(&self, acked: &Acked) -> bool {
        acked.recovery && self.rules.recovery_growth == RecoveryGrowth::Barred
    }

    /// Counts bytes towards the next step of congestion avoidance.
    //= rfc9260#section-7.2.2
    fn count(&mut self, acked: &Acked) {
        let full = self.is_full(acked);
        // While Fast Recovery forbids steps, what counts is enough for one step at most.
        let most = if self.is_barred(acked) { self.window } else { u64::MAX };
        let (counted, cap) = match self.rules.partial_bytes {
            PartialBytes::OnAdvance => (if acked.advanced { acked.all() } else { 0 }, most),
            PartialBytes::Capped => (acked.all(), if full { most } else { self.window }),
            PartialBytes::Split => {
                let full = self.grows_unused || acked.unacknowledged_before >= self.window;
                let cumulative = if full { acked.cumulative } else { 0 };
                (cumulative + acked.gap_behind_point, u64::MAX)
            }
        };
        self.partial_bytes_acked = (self.partial_bytes_acked + counted).min(cap);
    }

    /// Grows for the bytes that a SACK acknowledged: by `grown` of the bytes that the RFC would add.
    pub(super) fn step(&mut self, acked: &Acked, grown: impl Fn(u64) -> u64) {
        let grows = self.may_grow(acked);
        if self.is_in_slow_start() {
            self.window += if grows { grown(acked.all().min(self.unit)) } else { 0 };
        } else {
            // In the recovery that cut the window to ssthresh nothing counts, in whichever phase the window is there.
            if self.window > self.ssthresh || !self.is_barred(acked) {
                self.count(acked);
            }
            if grows && self.partial_bytes_acked >= self.window {
                self.partial_bytes_acked -= self.window;
                self.window += grown(self.unit);
            }
        }
        if acked.flight == 0 {
            self.partial_bytes_acked = 0;
        }
    }

    /// Starts again with this threshold after a loss.
    pub(super) fn cut(&mut self, how: Loss, ssthresh: u64) {
        self.partial_bytes_acked = 0;
        match how {
            Loss::Missing => (self.ssthresh, self.window) = (ssthresh, ssthresh),
            Loss::Timeout => {
                if self.window > self.unit || self.rules.t3_cut == T3Cut::Always {
                    self.ssthresh = ssthresh;
                }
                self.window = self.unit;
            }
        }
    }
}

impl Congestion for Standard {
    fn window(&self) -> u64 {
        self.window
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    fn stands_alone(&self) -> bool {
        true
    }

    fn acked(&mut self, acked: &Acked, _: &[Sibling]) {
        self.step(acked, |bytes| bytes);
    }

    fn lost(&mut self, lost: &Lost, _: &[Sibling]) {
        self.cut(lost.how, self.halved(lost.how));
    }

    //= rfc4015#section-3.2
    fn undo(&mut self, window: u64, ssthresh: u64) {
        self.window = self.window.max(window);
        self.ssthresh = self.ssthresh.max(ssthresh);
    }

    fn restart(&mut self, most: u64) {
        self.window = self.window.min(most);
    }

    fn set_unit(&mut self, unit: u64) {
        self.unit = unit;
    }

    fn reopen(&mut self, packets: u32) {
        self.window = u64::from(packets) * self.unit;
    }

    fn idle(&mut self, times: u32) -> bool {
        let Decayed { window, ssthresh, goes_on } =
            Decay::of(&self.rules).after(times, self.unit, self.window, self.ssthresh);
        (self.window, self.ssthresh) = (window, ssthresh);
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;
    use crate::policy::Setting;
    use crate::rules::WindowUnit;

    fn new(rules: Rules, window: u64, ssthresh: u64) -> Standard {
        let unit = if rules.window_unit == WindowUnit::Mtu { 1500 } else { 1468 };
        Standard::new(rules, &Mechanisms::default(), Start { unit, window, ssthresh })
    }

    fn ack(cumulative: u64, flight_before: u64) -> Acked {
        Acked {
            now: Time::ZERO,
            cumulative,
            gap: 0,
            gap_behind_point: 0,
            advanced: true,
            recovery: false,
            flight_before,
            unacknowledged_before: flight_before,
            flight: flight_before - cumulative.min(flight_before),
            rtt: None,
        }
    }

    fn lost(how: Loss) -> Lost {
        Lost { now: Time::ZERO, how, outstanding: 0 }
    }

    #[test]
    fn slow_start_adds_at_most_one_unit_and_only_when_the_window_is_full() {
        let mut w = new(Rules::RFC9260, 4404, u64::MAX);
        w.acked(&ack(2936, 4404), &[]);
        assert_eq!(w.window, 4404 + 1468);
        w.acked(&ack(2936, 4404), &[]);
        assert_eq!(w.window, 5872, "flight was below cwnd");
    }

    #[test]
    fn congestion_avoidance_adds_one_unit_a_window() {
        let mut w = new(Rules::RFC4960, 4380, 4000);
        for _ in 0..2 {
            w.acked(&ack(2936, 4400), &[]);
        }
        assert_eq!(w.window, 4380 + 1500);
        assert_eq!(w.partial_bytes_acked, 2 * 2936 - 4380);
    }

    #[test]
    fn losses_halve_and_a_timeout_starts_over() {
        let mut w = new(Rules::NS2, 4380, u64::MAX);
        w.window = 295_044;
        w.lost(&lost(Loss::Missing), &[]);
        assert_eq!((w.window, w.ssthresh), (147_522, 147_522));
        w.lost(&lost(Loss::Timeout), &[]);
        assert_eq!((w.window, w.ssthresh), (1468, 73_761));
        w.lost(&lost(Loss::Timeout), &[]);
        assert_eq!(w.ssthresh, 73_761, "a second timeout leaves ssthresh");
    }

    #[test]
    fn idling_halves_down_to_the_floor() {
        let mut w = new(Rules::RFC4960, 4380, u64::MAX);
        w.window = 20_000;
        assert!(w.idle(1));
        assert_eq!(w.window, 10_000);
        assert!(!w.idle(2));
        assert_eq!(w.window, 6000);
        w.window = 1500;
        w.idle(1);
        assert_eq!(w.window, 1500, "it never raises a window");
        let mut ns2 = new(Rules::NS2, 4380, u64::MAX);
        ns2.idle(1);
        assert_eq!(ns2.window, 5872, "the literal formula does");
    }

    #[test]
    fn what_is_acknowledged_in_fast_recovery_does_not_count_at_ssthresh() {
        for at_threshold in [AtThreshold::SlowStart, AtThreshold::Avoidance] {
            let mut w = Standard { at_threshold, ..new(Rules::RFC9260, 8808, 8808) };
            w.acked(&Acked { recovery: true, flight: 8808, ..ack(8808, 8808) }, &[]);
            assert_eq!((w.window, w.partial_bytes_acked), (8808, 0));
        }
    }

    /// Fast Recovery of the association forbids growth on a path that lost nothing, for five windows. Behind it the
    /// window grows by one packet for each window acknowledged, after a first one.
    //= rfc9260#section-7.2.2
    #[test]
    fn fast_recovery_of_another_path_is_followed_by_one_step_a_window() {
        for rules in [Rules::RFC4960, Rules::RFC9260] {
            let mut w = new(rules, 14_680, 5872);
            let full = |recovery| Acked { recovery, flight: 14_680, ..ack(1468, 17_616) };
            for _ in 0..50 {
                w.acked(&full(true), &[]);
            }
            assert_eq!(w.window, 14_680);
            for _ in 0..10 {
                w.acked(&full(false), &[]);
            }
            assert_eq!(w.window, 14_680 + w.unit, "{rules:?}");
        }
    }

    #[test]
    fn habits_of_tcp() {
        let spec = |key: &str, value: &str| {
            let settings = [(key.to_owned(), Setting::Text(value.to_owned()))].into();
            PolicySpec { settings, ..PolicySpec::named("standard") }
        };
        let config = Config { rules: Rules::NS2, ..Config::default() };
        let made = |key: &str, value: &str| {
            let make = make(&spec(key, value), &config).expect("it can be set");
            make(Start { unit: 1468, window: 4380, ssthresh: 4380 })
        };
        let grown = |mut window: Box<dyn Congestion>, flight| {
            window.acked(&ack(1468, flight), &[]);
            window.window() - 4380
        };
        assert_eq!(grown(made("at_threshold", "slow-start"), 4380), 1468);
        assert_eq!(grown(made("at_threshold", "avoidance"), 4380), 0);
        assert_eq!(grown(made("unused", "stays"), 2936), 0);
        assert_eq!(grown(made("unused", "grows"), 2936), 1468);
        assert!(make(&spec("unused", "shrinks"), &config).is_err());
    }
}
