//! Statistics of a sample: size, mean, spread, confidence intervals and quantiles.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The summary of a sample. All numbers are in the unit of the values.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// The number of values.
    pub n: usize,
    /// The arithmetic mean; `None` without values.
    pub mean: Option<f64>,
    /// The standard deviation of the sample, with n − 1; `None` for fewer than two values.
    pub sd: Option<f64>,
    /// Half the width of the 90 % confidence interval of the mean, by Student's t.
    pub ci90: Option<f64>,
    /// Half the width of the 95 % interval.
    pub ci95: Option<f64>,
    /// Quantiles of the values.
    pub quantiles: Quantiles,
}

/// Quantiles, interpolated linearly between the neighbouring values (type 7 of Hyndman and Fan, the default of R
/// and NumPy).
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Quantiles {
    /// 5 % of the values are below.
    #[serde(rename = "5")]
    pub q5: Option<f64>,
    /// The median.
    #[serde(rename = "50")]
    pub q50: Option<f64>,
    /// 95 % of the values are below.
    #[serde(rename = "95")]
    pub q95: Option<f64>,
}

impl Summary {
    /// The summary of `values`, in any order.
    pub fn of(values: &[f64]) -> Summary {
        let n = values.len() as f64;
        let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / n);
        // The deviations are summed in a second pass, so that a small spread beside a large mean keeps its digits.
        let squares =
            mean.map(|mean| values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>());
        let sd = squares.filter(|_| values.len() > 1).map(|squares| (squares / (n - 1.0)).sqrt());
        let half_width = |level| sd.map(|sd| student_t(level, values.len() as u64 - 1) * sd / n.sqrt());
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |share| quantile(&sorted, share);
        Summary {
            n: values.len(),
            mean,
            sd,
            ci90: half_width(0.90),
            ci95: half_width(0.95),
            quantiles: Quantiles { q5: at(0.05), q50: at(0.5), q95: at(0.95) },
        }
    }

    /// The standard error of the mean: sd / √n.
    pub fn standard_error(&self) -> Option<f64> {
        self.sd.map(|sd| sd / (self.n as f64).sqrt())
    }
}

/// The first two moments of values that arrive one by one (Welford's recurrence, which keeps its digits if the spread
/// is small beside the mean).
#[derive(Copy, Clone, Default, Debug)]
pub struct Moments {
    n: u64,
    mean: f64,
    /// The sum of squared deviations from the mean.
    squares: f64,
}

impl Moments {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.n += 1;
        let deviation = value - self.mean;
        self.mean += deviation / self.n as f64;
        self.squares += deviation * (value - self.mean);
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.n
    }

    /// The mean, if there is a value.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then_some(self.mean)
    }

    /// The standard deviation, if there are two values.
    pub fn sd(&self) -> Option<f64> {
        (self.n > 1).then(|| (self.squares / (self.n - 1) as f64).sqrt())
    }

    /// Half the width of the confidence interval of the mean at `level` (0.95: 95 %), if there are two values:
    /// t × sd / √n, with Student's t of n − 1 degrees of freedom.
    pub fn half_width(&self, level: f64) -> Option<f64> {
        let sd = self.sd()?;
        Some(student_t(level, self.n - 1) * sd / (self.n as f64).sqrt())
    }
}

/// The standard error of the ratio r of two means over the same seeds. It is the standard error of the residuals a − r
/// b, divided by the mean of b (Cochran, Sampling Techniques, section 6.4). `None` for fewer than two pairs.
pub fn ratio_error(first: &[f64], second: &[f64]) -> Option<f64> {
    let [a, b] = [Summary::of(first).mean?, Summary::of(second).mean?];
    let residuals: Vec<f64> =
        first.iter().zip(second).map(|(first, second)| first - a / b * second).collect();
    Some(Summary::of(&residuals).standard_error()? / b.abs())
}

/// The t such that a fraction `level` of Student's distribution lies between −t and t.
pub fn student_t(level: f64, degrees: u64) -> f64 {
    match StudentsT::new(0.0, 1.0, degrees as f64) {
        Ok(distribution) => distribution.inverse_cdf(f64::midpoint(1.0, level)),
        Err(_) => f64::NAN,
    }
}

/// The quantile of sorted values below which a share of them lies.
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share * last as f64;
    let below = place as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (place - below as f64) * (sorted[above] - sorted[below]))
}

/// A number with at most seven significant digits, but with all digits before its point.
pub fn shortened(value: f64) -> String {
    match value.abs() {
        1e6..1e15 => format!("{value:.0}"),
        _ => format!("{value:.6e}").parse::<f64>().unwrap_or(value).to_string(),
    }
}

/// Whether an interval is wider than what rounding leaves between equal values.
pub fn is_spread(mean: f64, half: f64) -> bool {
    half > 1e-9 * mean.abs()
}

/// A mean and half of its interval, rounded to the digits that the interval supports. An interval that comes from
/// rounding alone is "0".
pub fn rounded(mean: f64, half: f64) -> [String; 2] {
    if !is_spread(mean, half) {
        return [shortened(mean), "0".to_owned()];
    }
    let digits = 1_i32.saturating_sub(libm::floor(libm::log10(half)) as i32);
    let digits = usize::try_from(digits).unwrap_or(0).min(12);
    [mean, half].map(|value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: Option<f64>, wanted: f64) {
        let found = found.expect("a number");
        assert!((found - wanted).abs() <= 1e-9 * wanted.abs().max(1.0), "{found} is not {wanted}");
    }

    /// Critical values from the tables of Student's t (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2).
    #[test]
    fn student_t_is_that_of_the_tables() {
        for (degrees, t90, t95) in [
            (1, 6.314, 12.706),
            (2, 2.920, 4.303),
            (9, 1.833, 2.262),
            (30, 1.697, 2.042),
            (100, 1.660, 1.984),
        ] {
            assert!((student_t(0.90, degrees) - t90).abs() < 0.0006, "{degrees}");
            assert!((student_t(0.95, degrees) - t95).abs() < 0.0006, "{degrees}");
        }
    }

    /// R: x <- c(2, 4, 4, 4, 5, 5, 7, 9); sd(x); t.test(x)$conf.int; quantile(x, c(.05, .5, .95)).
    #[test]
    fn a_sample_is_summarised_as_other_packages_do() {
        let summary = Summary::of(&[9.0, 2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0]);
        assert_eq!((summary.n, summary.mean), (8, Some(5.0)));
        close(summary.sd, 2.138_089_935_299_395);
        assert!((summary.ci95.unwrap() - 1.787_488).abs() < 1e-5, "{:?}", summary.ci95);
        close(summary.quantiles.q5, 2.7);
        close(summary.quantiles.q50, 4.5);
        close(summary.quantiles.q95, 8.3);
    }

    #[test]
    fn few_values_say_little() {
        let none = Summary::of(&[]);
        assert_eq!((none.n, none.mean, none.sd, none.quantiles), (0, None, None, Quantiles::default()));
        let one = Summary::of(&[3.0]);
        assert_eq!((one.mean, one.sd, one.ci95, one.quantiles.q95), (Some(3.0), None, None, Some(3.0)));
    }

    #[test]
    fn a_small_spread_beside_a_large_mean_keeps_its_digits() {
        let values: Vec<f64> = (0..100).map(|i| 1e12 + f64::from(i % 2)).collect();
        close(Summary::of(&values).sd, (100.0_f64 / 99.0 / 4.0).sqrt());
        let mut moments = Moments::default();
        values.iter().for_each(|value| moments.add(*value));
        close(moments.sd(), (100.0_f64 / 99.0 / 4.0).sqrt());
        close(moments.half_width(0.95), Summary::of(&values).ci95.unwrap());
    }

    #[test]
    fn a_mean_has_the_digits_that_its_interval_supports() {
        let written =
            [(0.1, 0.226_215_7), (7_913_261.4, 475_036.2), (-0.05, 0.012), (0.0, 0.5), (1.5e-4, 2e-5)]
                .map(|(mean, half)| rounded(mean, half).join(" ± "));
        assert_eq!(
            written,
            ["0.10 ± 0.23", "7913261 ± 475036", "-0.050 ± 0.012", "0.00 ± 0.50", "0.000150 ± 0.000020"]
        );
    }

    #[test]
    fn an_interval_that_is_only_an_error_of_rounding_is_none() {
        let written = [
            (6_398_140.956_163_778, 8.3e-10),
            (6_398_140.956_163_778, 0.0083),
            (79_132_614.0, 0.0),
            (1.692_734_4, 0.0),
            (1.692_734_4, 2.4e-7),
            (0.0, 0.0),
        ]
        .map(|(mean, half)| rounded(mean, half).join(" ± "));
        assert_eq!(
            written,
            [
                "6398141 ± 0",
                "6398140.9562 ± 0.0083",
                "79132614 ± 0",
                "1.692734 ± 0",
                "1.69273440 ± 0.00000024",
                "0 ± 0"
            ]
        );
    }

    #[test]
    fn numbers_have_seven_digits() {
        let written = [1_041_495.817_696_674_5, 243.677, 0.000_123_456_789, 0.0, -37.0].map(shortened);
        assert_eq!(written, ["1041496", "243.677", "0.0001234568", "0", "-37"]);
    }
}
