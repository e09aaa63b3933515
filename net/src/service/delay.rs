//! Delays of messages, and their variation.

use std::time::Instant;

use serde::{Deserialize, Serialize};

/// The largest number of samples. Of more, every second one is kept, then every fourth, and so on.
const MOST: usize = 1 << 16;

/// The clocks of two hosts run apart by at most this share of the time.
const DRIFT: f64 = 1e-3;

/// A clock of this host that starts when it is created.
#[derive(Copy, Clone, Debug)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn new() -> Clock {
        Clock(Instant::now())
    }

    /// Nanoseconds since it was made.
    pub(super) fn now(self) -> i64 {
        i64::try_from(self.0.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }
}

/// Times of messages, in seconds.
#[derive(Copy, Clone, PartialEq, Default, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Quantiles {
    /// The shortest.
    pub min: f64,
    /// The mean of all.
    pub mean: f64,
    /// Half of all are not longer.
    pub p50: f64,
    /// 95 % are not longer.
    pub p95: f64,
    /// 99 % are not longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl Quantiles {
    /// Whether they are in order, and not below or above these.
    fn within(&self, least: f64, most: f64) -> bool {
        let Quantiles { min, mean, p50, p95, p99, max } = *self;
        let ordered = [least, min, p50, p95, p99, max, most].is_sorted();
        ordered && mean >= least && mean <= most
    }
}

/// The delays of the messages of one direction.
#[derive(Copy, Clone, PartialEq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Delays {
    /// Messages that were measured.
    pub messages: u64,
    /// From handing a message to the association until it is read, including the wait for room. Only the difference
    /// of the two hosts' clocks is known, and only up to `uncertainty`.
    pub delay: Quantiles,
    /// Absolute differences between the delays of successive messages. Clocks have no influence.
    pub jitter: Quantiles,
    /// The interarrival jitter of RFC 3550 §6.4.1 at the end, in seconds.
    pub smoothed_jitter: f64,
    /// The largest possible error of `delay`, in seconds: half the shortest round trip of the clock comparisons.
    pub uncertainty: f64,
}

/// The delays of messages as they arrive, by the clocks of the sender and the receiver.
#[derive(Debug, Default)]
pub(super) struct Transits {
    delay: Samples,
    jitter: Samples,
    /// Nanoseconds.
    last: Option<i64>,
    smoothed: f64,
}

impl Transits {
    /// Adds a message with the times at which it was handed over and read.
    pub(super) fn add(&mut self, sent: i64, read: i64) {
        let transit = read.saturating_sub(sent);
        self.delay.add(transit);
        if let Some(last) = self.last.replace(transit) {
            let difference = transit.saturating_sub(last).saturating_abs();
            self.jitter.add(difference);
            self.smoothed += (difference as f64 - self.smoothed) / 16.0;
        }
    }

    /// The result, by the receiver's clock minus the sender's; `None` without messages.
    pub(super) fn delays(&self) -> Option<Delays> {
        Some(Delays {
            messages: self.delay.count,
            delay: self.delay.quantiles()?,
            jitter: self.jitter.quantiles().unwrap_or_default(),
            smoothed_jitter: self.smoothed * 1e-9,
            uncertainty: 0.0,
        })
    }
}

impl Delays {
    /// The result if the receiver's clock is ahead of the sender's by `ahead` seconds, with an uncertainty.
    pub(super) fn corrected(mut self, ahead: f64, uncertainty: f64) -> Delays {
        let delay = &mut self.delay;
        for time in
            [&mut delay.min, &mut delay.mean, &mut delay.p50, &mut delay.p95, &mut delay.p99, &mut delay.max]
        {
            *time -= ahead;
        }
        self.uncertainty = uncertainty;
        self
    }

    /// Whether messages of a measurement that took so many seconds can have had these delays. The two clocks may have
    /// run apart since they were compared.
    pub(super) fn possible(&self, seconds: f64) -> bool {
        let error = self.uncertainty + seconds * DRIFT + 1e-3;
        let most = seconds + error;
        self.delay.within(-error, most)
            && self.jitter.within(0.0, most + error)
            && (0.0..=most + error).contains(&self.smoothed_jitter)
    }
}

/// Values in nanoseconds: exact extremes and mean, and evenly spaced samples for the quantiles.
#[derive(Debug, Default)]
struct Samples {
    kept: Vec<i64>,
    /// Every 2^n-th value is kept.
    stride: u32,
    count: u64,
    sum: f64,
    min: i64,
    max: i64,
}

impl Samples {
    fn add(&mut self, sample: i64) {
        (self.min, self.max) = match self.count {
            0 => (sample, sample),
            _ => (self.min.min(sample), self.max.max(sample)),
        };
        self.sum += sample as f64;
        if self.count.is_multiple_of(1 << self.stride) {
            self.kept.push(sample);
        }
        self.count += 1;
        if self.kept.len() >= MOST {
            let mut place = 0..;
            self.kept.retain(|_| place.next().is_some_and(|at| at % 2 == 0));
            self.stride += 1;
        }
    }

    fn quantiles(&self) -> Option<Quantiles> {
        let mut kept = self.kept.clone();
        kept.sort_unstable();
        let last = kept.len().checked_sub(1)?;
        // The nearest rank: the smallest sample that is not below this many samples.
        let at = |share: f64| {
            kept[((share * kept.len() as f64).ceil() as usize).clamp(1, last + 1) - 1] as f64 * 1e-9
        };
        Some(Quantiles {
            min: self.min as f64 * 1e-9,
            mean: self.sum / self.count as f64 * 1e-9,
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            max: self.max as f64 * 1e-9,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, within: f64) -> bool {
        (a - b).abs() <= within
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        let mut transits = Transits::default();
        assert_eq!(transits.delays(), None);
        // 1 to 100 ms, one after the other: each differs from the one before by a millisecond.
        for n in 1..=100 {
            transits.add(7, 7 + n * 1_000_000);
        }
        let delays = transits.delays().expect("there are messages").corrected(-0.5, 0.25);
        let Quantiles { min, mean, p50, p95, p99, max } = delays.delay;
        let expected = [0.501, 0.5505, 0.550, 0.595, 0.599, 0.600];
        assert!(
            [min, mean, p50, p95, p99, max].iter().zip(expected).all(|(a, b)| near(*a, b, 1e-9)),
            "{delays:?}"
        );
        assert!(
            near(delays.jitter.p50, 1e-3, 1e-12) && near(delays.smoothed_jitter, 1e-3, 1e-5),
            "{delays:?}"
        );
        assert_eq!((delays.messages, delays.uncertainty), (100, 0.25));
    }

    #[test]
    fn delays_that_cannot_be_are_recognized() {
        let mut transits = Transits::default();
        (1..=100).for_each(|n| transits.add(0, n * 1_000_000));
        let delays = transits.delays().expect("there are messages");
        assert!(delays.possible(0.1) && !delays.possible(0.05), "no message takes longer than all of it");
        assert!(delays.corrected(1e-3, 0.0).possible(0.1) && !delays.corrected(0.1, 0.0).possible(0.1));
        assert!(delays.corrected(0.1, 0.1).possible(0.1), "the clocks may be wrong by so much");
        let quantiles = |p50| Quantiles { p50, ..delays.delay };
        for p50 in [f64::NAN, 0.0, 0.2, f64::NEG_INFINITY] {
            assert!(!Delays { delay: quantiles(p50), ..delays }.possible(0.1), "{p50}");
            assert!(!Delays { jitter: quantiles(p50), ..delays }.possible(0.1), "{p50}");
        }
        for mean in [f64::NAN, f64::INFINITY, -1.0] {
            let delay = Quantiles { mean, ..delays.delay };
            assert!(!Delays { delay, ..delays }.possible(0.1), "{mean}");
        }
        for smoothed_jitter in [f64::NAN, -1.0, 1.0] {
            assert!(!Delays { smoothed_jitter, ..delays }.possible(0.1), "{smoothed_jitter}");
        }
    }

    #[test]
    fn of_many_samples_some_are_kept() {
        let mut samples = Samples::default();
        for n in 0..1_000_000 {
            samples.add(n * 1000);
        }
        assert!(samples.kept.len() < MOST && samples.kept.len() > MOST / 4);
        let quantiles = samples.quantiles().expect("there are samples");
        assert!(near(quantiles.p50, 0.5, 1e-4) && near(quantiles.p99, 0.99, 1e-4), "{quantiles:?}");
        assert!(quantiles.min == 0.0 && near(quantiles.max, 0.999_999, 1e-9), "{quantiles:?}");
    }
}
