//! Time as an argument: nanoseconds since the beginning of the run or of the process.

use std::ops::{Add, AddAssign, Sub};
pub use std::time::Duration;

/// A moment, in nanoseconds since the run began. The caller of the core supplies it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The beginning of the run.
    pub const ZERO: Time = Time(0);
    /// A time later than every time that a run can reach (584 years).
    pub const NEVER: Time = Time(u64::MAX);

    /// The moment `nanos` nanoseconds after the beginning.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }

    /// Nanoseconds since the beginning.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the beginning, for people and for JSON.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The duration since `earlier`; zero if `earlier` is not earlier.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A duration with its unit, as settings are written: `200 ms`, `1.5 s`.
pub fn written(duration: Duration) -> String {
    let text = format!("{duration:?}").replace('µ', "u");
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    format!("{} {}", &text[..unit], &text[unit..])
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, d: Duration) -> Time {
        Time(self.0.saturating_add(nanos(d)))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Time> for Time {
    type Output = Duration;
    fn sub(self, earlier: Time) -> Duration {
        self.since(earlier)
    }
}

impl std::fmt::Debug for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_settings() {
        let times = [
            Duration::from_millis(200),
            Duration::from_millis(1_500),
            Duration::from_micros(7),
            Duration::ZERO,
        ];
        assert_eq!(times.map(written), ["200 ms", "1.5 s", "7 us", "0 ns"]);
    }
}
