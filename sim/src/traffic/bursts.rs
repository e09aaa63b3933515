//! On and off times: bursts of evenly spaced packets, as ns-2's `Application/Traffic/Pareto` and `…/Exponential` send
//! them.
//!
//! An on time becomes a whole number of packets, rounded, at least one. An off time and one spacing precede the first
//! packet of a burst, so that packets keep their rate while the source is on.

use anabranch_proto::{Duration, Time};

use crate::chance::Sequence;
use crate::scenario::Times;

/// The departure times of the packets of one source.
#[derive(Debug)]
pub(crate) struct Bursts {
    start: Time,
    on: Times,
    off: Pause,
    /// Nanoseconds between two packets of a burst.
    spacing: f64,
    chance: Sequence,
    /// Remaining packets of this burst.
    left: u64,
    /// Nanoseconds from the start to the last packet.
    last: f64,
}

/// What precedes a burst.
#[derive(Debug)]
enum Pause {
    /// An off time.
    Off(Times),
    /// The exponential gap of a Poisson process with this mean in nanoseconds. The mean of a fast process is no whole
    /// number of them.
    Poisson(f64),
}

impl Bursts {
    /// A source that begins at `start` with an off time.
    pub(crate) fn new(start: Time, [on, off]: [Times; 2], spacing: f64, chance: Sequence) -> Self {
        Bursts { start, on, off: Pause::Off(off), spacing, chance, left: 0, last: 0.0 }
    }

    /// A Poisson process that begins at `start`. `spacing` is the mean time between two packets in nanoseconds.
    pub(crate) fn poisson(start: Time, spacing: f64, chance: Sequence) -> Self {
        // Every packet is a burst of its own.
        let (on, off) = (Times::Fixed(Duration::ZERO), Pause::Poisson(spacing));
        Bursts { start, on, off, spacing: 0.0, chance, left: 0, last: 0.0 }
    }

    /// When the next packet leaves.
    pub(crate) fn next(&mut self) -> Time {
        if self.left == 0 {
            let on = draw(&self.on, &mut self.chance);
            // Without spacing, a burst is one packet.
            self.left = if self.spacing > 0.0 { ((on / self.spacing + 0.5) as u64).max(1) } else { 1 };
            self.last += match &self.off {
                Pause::Off(off) => draw(off, &mut self.chance),
                Pause::Poisson(mean) => exponential(*mean, &mut self.chance),
            };
        }
        self.left -= 1;
        self.last += self.spacing;
        Time::from_nanos(self.start.as_nanos().saturating_add((self.last + 0.5) as u64))
    }
}

/// A time in nanoseconds.
fn draw(times: &Times, chance: &mut Sequence) -> f64 {
    let nanos = |mean: Duration| mean.as_nanos() as f64;
    match *times {
        Times::Fixed(time) => nanos(time),
        Times::Exponential(mean) => exponential(nanos(mean), chance),
        Times::Pareto { mean, shape } => {
            let least = nanos(mean) * (shape - 1.0) / shape;
            least / libm::pow(1.0 - chance.uniform(), 1.0 / shape)
        }
    }
}

fn exponential(mean: f64, chance: &mut Sequence) -> f64 {
    -mean * libm::log(1.0 - chance.uniform())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;

    fn bursts(times: [Times; 2]) -> Bursts {
        Bursts::new(Time::from_nanos(5_000_000), times, MS, Sequence::new(1, "x"))
    }

    #[test]
    fn a_burst_is_a_whole_number_of_evenly_spaced_packets() {
        let [on, off] = [2_600, 10_000].map(|micros| Times::Fixed(Duration::from_micros(micros)));
        let mut source = bursts([on, off]);
        let millis: Vec<_> = (0..7).map(|_| source.next().as_nanos() / 1_000_000).collect();
        assert_eq!(millis, [16, 17, 18, 29, 30, 31, 42]);
        let short = Times::Fixed(Duration::from_nanos(1));
        let mut source = bursts([short, short]);
        assert_eq!(source.next(), Time::from_nanos(6_000_001), "at least one packet");
    }

    #[test]
    fn a_poisson_process_has_exponential_gaps() {
        let mut source = Bursts::poisson(Time::from_nanos(7), MS, Sequence::new(1, "x"));
        let times: Vec<f64> = (0..100_000).map(|_| (source.next().as_nanos() - 7) as f64 / MS).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.01 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
        // Of an exponential gap, e^-1 are longer than the mean.
        let longer = gaps.iter().filter(|gap| **gap > 1.0).count() as f64 / gaps.len() as f64;
        assert!((longer - 0.3679).abs() < 0.005, "{longer}");
    }

    /// 44 bytes at 100 Gbit/s follow each other after 3.52 ns, and not after 3 or 4.
    #[test]
    fn a_fast_poisson_process_has_its_mean() {
        for spacing in [3.52, 0.25] {
            let mut source = Bursts::poisson(Time::ZERO, spacing, Sequence::new(1, "x"));
            let last = (0..100_000).map(|_| source.next().as_nanos()).last().expect("there are some");
            assert!((last as f64 / 1e5 / spacing - 1.0).abs() < 0.01, "{last} ns for {spacing} ns each");
        }
    }

    #[test]
    fn means_are_those_that_were_asked_for() {
        let mean = Duration::from_millis(500);
        let mean_of = |times: Times| {
            let mut chance = Sequence::new(3, "mean");
            (0..200_000).map(|_| draw(&times, &mut chance)).sum::<f64>() / 200_000.0 / 5e8
        };
        assert!((mean_of(Times::Exponential(mean)) - 1.0).abs() < 0.01);
        // With a shape of 2.5 the variance is finite, and the mean of so many is near.
        assert!((mean_of(Times::Pareto { mean, shape: 2.5 }) - 1.0).abs() < 0.02);
        let mut chance = Sequence::new(3, "least");
        let pareto = Times::Pareto { mean, shape: 1.5 };
        let least = (0..10_000).map(|_| draw(&pareto, &mut chance)).fold(f64::MAX, f64::min);
        assert!((least / (5e8 / 3.0) - 1.0).abs() < 0.001, "{least}");
    }
}
