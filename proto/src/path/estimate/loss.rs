//! The loss rate of a path with its interval.

/// The 0.975 quantile of the normal distribution: an interval of 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// The share of chunks that were lost, with an interval that holds the path's loss rate in 95 % of cases.
///
/// The interval is that of E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference"
/// (Journal of the American Statistical Association 22, 1927). It takes losses to be independent: where they come in
/// bursts, it is too narrow.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct LossRate {
    /// Lost chunks by chunks of which it is known what became of them.
    pub rate: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// Chunks of which it is known what became of them.
    pub chunks: f64,
}

impl LossRate {
    /// Of `chunks` chunks, more than none, `lost` were lost.
    pub fn of(lost: f64, chunks: f64) -> LossRate {
        let rate = lost / chunks;
        let squared = Z * Z / chunks;
        let middle = rate + squared / 2.0;
        let half = Z * (rate * (1.0 - rate) / chunks + squared / (4.0 * chunks)).max(0.0).sqrt();
        let end = |at: f64| (at / (1.0 + squared)).clamp(0.0, 1.0);
        // Rounding could put an end on the wrong side of the rate.
        LossRate { rate, low: rate.min(end(middle - half)), high: rate.max(end(middle + half)), chunks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of R's `prop.test(x, n, correct = FALSE)`, which computes this interval.
    #[test]
    fn the_interval_is_wilsons() {
        for (lost, chunks, low, high) in [
            (10.0, 100.0, 0.055_229, 0.174_366),
            (0.0, 50.0, 0.0, 0.071_348),
            (1.0, 1000.0, 0.000_177, 0.005_642),
            (50.0, 50.0, 0.928_652, 1.0),
        ] {
            let rate = LossRate::of(lost, chunks);
            assert!((rate.low - low).abs() < 2e-6 && (rate.high - high).abs() < 2e-6, "{rate:?}");
        }
    }

    #[test]
    fn the_rate_lies_in_its_interval() {
        for chunks in 1..=1_000 {
            for lost in [0, chunks / 3, chunks] {
                let rate = LossRate::of(f64::from(lost), f64::from(chunks));
                assert!(rate.low <= rate.rate && rate.rate <= rate.high, "{rate:?}");
            }
        }
    }
}
