//! How long messages take, and how much that varies.

use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Samples that are kept at most; of more, every second, fourth and so on.
const MOST: usize = 1 << 16;

/// A clock of this host that begins when it is made.
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

/// The delays of a direction's messages.
#[derive(Copy, Clone, PartialEq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Delays {
    /// Messages that were measured.
    pub messages: u64,
    /// From handing a message to the association until it is read: waiting for room included. Of the two hosts' clocks
    /// only the difference is known, and that only up to `uncertainty`.
    pub delay: Quantiles,
    /// Differences between the delays of successive messages, without their sign: no clock matters.
    pub jitter: Quantiles,
    /// The interarrival jitter of RFC 3550 §6.4.1 at the end, in seconds.
    pub smoothed_jitter: f64,
    /// How far all of `delay` may be off, in seconds: half the shortest round trip that the clocks were compared by.
    pub uncertainty: f64,
}

/// The delays of messages as they come, by a clock each of sender and receiver.
#[derive(Debug, Default)]
pub(super) struct Transits {
    delay: Samples,
    jitter: Samples,
    /// Nanoseconds.
    last: Option<i64>,
    smoothed: f64,
}

impl Transits {
    /// A message was handed over and read at these times.
    pub(super) fn add(&mut self, sent: i64, read: i64) {
        let transit = read.saturating_sub(sent);
        self.delay.add(transit);
        if let Some(last) = self.last.replace(transit) {
            let difference = transit.saturating_sub(last).saturating_abs();
            self.jitter.add(difference);
            self.smoothed += (difference as f64 - self.smoothed) / 16.0;
        }
    }

    /// What came of it, by the receiver's clock minus the sender's; `None` without a message.
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
    /// The same if the receiver's clock is ahead of the sender's by `ahead` seconds, more or less.
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
}

/// Nanoseconds: exact extremes and mean, and evenly chosen samples for the rest.
#[derive(Debug, Default)]
struct Samples {
    kept: Vec<i64>,
    /// Every so manyth is kept, as a power of two.
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
        // The nearest rank: the smallest sample that so many are not larger than.
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
