//! The self-similarity of traffic: the Hurst parameter from the variance-time plot.
//!
//! The variance of the mean of m neighbouring bins falls as m^(2H - 2): 1/m for traffic without long memory (H = 0.5),
//! more slowly for self-similar traffic (0.5 < H < 1). H is the least-squares slope on logarithmic scales (Leland,
//! Taqqu, Willinger, Wilson 1994, section 3).

use anabranch_proto::{Duration, Time};

/// The largest number of bins; beyond it, neighbouring bins are joined.
const BINS: usize = 1 << 16;
/// The finest bin, as a fraction of the mean on and off time.
const FINEST: u32 = 16;
/// The shortest time scale of the plot, in mean on and off times. Shorter scales show single bursts instead of the
/// memory.
const SHORTEST: f64 = 2.0;
/// Bins at the longest time scale.
const FEWEST: f64 = 50.0;
/// The smallest ratio of the longest to the shortest scale for which a slope is computed.
const RANGE: f64 = 4.0;

/// Bytes offered over time.
#[derive(Debug)]
pub(crate) struct Plot {
    start: Time,
    /// The length of a bin in nanoseconds.
    width: u64,
    bins: Vec<u64>,
    /// The sum of the mean on time and the mean off time, nanoseconds.
    cycle: f64,
}

impl Plot {
    /// From `start` on, for sources whose mean on and off times add up to `cycle`.
    pub(crate) fn new(start: Time, cycle: Duration) -> Self {
        let width = (cycle / FINEST).as_nanos().clamp(1_000, 1 << 50) as u64;
        Plot { start, width, bins: Vec::new(), cycle: cycle.as_nanos() as f64 }
    }

    /// Adds bytes that are offered now.
    pub(crate) fn add(&mut self, now: Time, bytes: u32) {
        let since = now.as_nanos() - self.start.as_nanos();
        let mut bin = since / self.width;
        while bin >= BINS as u64 {
            self.bins = self.bins.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.width *= 2;
            bin = since / self.width;
        }
        if bin >= self.bins.len() as u64 {
            self.bins.resize(bin as usize + 1, 0);
        }
        self.bins[bin as usize] += u64::from(bytes);
    }

    /// The Hurst parameter of the traffic until `now`; `None` if the run is too short for an estimate.
    pub(crate) fn hurst(&self, now: Time) -> Option<f64> {
        // The last bin may be incomplete.
        let whole = now.as_nanos().saturating_sub(self.start.as_nanos()) / self.width;
        let bins = self.bins.get(..self.bins.len().min(whole as usize))?;
        let width = self.width as f64;
        let (shortest, longest) = (SHORTEST * self.cycle, bins.len() as f64 * width / FEWEST);
        if self.cycle == 0.0 || longest < RANGE * shortest {
            return None;
        }
        let mut points = Vec::new();
        let mut joined = ((shortest / width) as usize).max(1);
        while joined as f64 * width <= longest {
            points.push((libm::log(joined as f64), libm::log(variance(bins, joined))));
            joined = (joined + 1).max(joined * 7 / 5);
        }
        Some(1.0 + slope(&points)? / 2.0)
    }
}

/// The variance of the means of `joined` neighbouring bins.
fn variance(bins: &[u64], joined: usize) -> f64 {
    let means = || bins.chunks_exact(joined).map(|bins| bins.iter().sum::<u64>() as f64 / joined as f64);
    let count = (bins.len() / joined) as f64;
    let mean = means().sum::<f64>() / count;
    means().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0)
}

/// The least-squares slope; `None` where there is none.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let products: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let squares: f64 = points.iter().map(|point| (point.0 - x) * (point.0 - x)).sum();
    Some(products / squares).filter(|slope| slope.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Sequence;

    fn at(seconds: f64) -> Time {
        Time::from_nanos((seconds * 1e9) as u64)
    }

    #[test]
    fn independent_bins_have_no_memory() {
        let mut chance = Sequence::new(1, "noise");
        let mut plot = Plot::new(at(3.0), Duration::from_secs(1));
        (0..100_000).for_each(|n| plot.add(at(3.0 + f64::from(n) * 0.02), (chance.uniform() * 1e3) as u32));
        let hurst = plot.hurst(at(2003.0)).unwrap();
        assert!((hurst - 0.5).abs() < 0.1, "{hurst}");
        assert!(plot.bins.len() <= BINS);
    }

    #[test]
    fn a_short_run_tells_nothing_nor_does_a_constant_rate() {
        let mut plot = Plot::new(at(0.0), Duration::from_secs(1));
        assert_eq!(plot.hurst(at(9.0)), None);
        (0..3990).for_each(|n| plot.add(at(f64::from(n) / 10.0), n));
        assert_eq!(plot.hurst(at(399.0)), None);
        let mut constant = Plot::new(at(0.0), Duration::from_secs(1));
        (0..160_000).for_each(|n| constant.add(at((f64::from(n) + 0.5) / 160.0), 5));
        assert_eq!(constant.hurst(at(1000.0)), None);
    }
}
