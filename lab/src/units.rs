//! Times, rates and counts in words, as tables and pages show them.

/// A time in seconds, so that times below each other are easily compared; one of which three digits would show nothing in
/// us or ns.
pub fn seconds(seconds: f64) -> String {
    match seconds.abs() {
        s if s >= 0.001 || s == 0.0 => format!("{seconds:.3} s"),
        s if s >= 1e-6 => format!("{:.3} us", seconds * 1e6),
        _ => format!("{:.3} ns", seconds * 1e9),
    }
}

/// Bit/s in the unit that leaves one to three digits before the point.
pub fn rate(rate: f64) -> String {
    rate_beside(rate, rate)
}

/// A rate with the unit that a rate as large as `size` has.
pub fn rate_beside(rate: f64, size: f64) -> String {
    match size {
        r if r >= 1e9 => format!("{:.3} Gbit/s", rate / 1e9),
        r if r >= 1e6 => format!("{:.3} Mbit/s", rate / 1e6),
        r if r >= 1e3 => format!("{:.3} kbit/s", rate / 1e3),
        _ => format!("{rate:.0} bit/s"),
    }
}

/// "1 gap block", "2 gap blocks".
pub fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::{counted, rate, seconds};

    #[test]
    fn short_times_and_high_rates_keep_their_digits() {
        let times = [0.0, 12.3456, 0.0125, 89.5e-6, 4.48e-8].map(seconds);
        assert_eq!([0, 1, 2].map(|count| counted(count, "run")), ["0 runs", "1 run", "2 runs"]);
        assert_eq!(times, ["0.000 s", "12.346 s", "0.013 s", "89.500 us", "44.800 ns"]);
        assert_eq!(
            [9.096077e9, 5e6, 1500.0, 12.0].map(rate),
            ["9.096 Gbit/s", "5.000 Mbit/s", "1.500 kbit/s", "12 bit/s"]
        );
    }
}
