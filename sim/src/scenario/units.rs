//! Quantities with units in exact integer arithmetic: "1.5 Mbit/s" is exactly 1,500,000 bit/s.

use std::time::Duration;

use super::error::nearest;
use super::{Amount, Loss};

/// Why a text is not a quantity of the expected kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadQuantity {
    /// The error.
    pub message: String,
    /// The expected spelling.
    pub hint: String,
}

type Quantity<T> = Result<T, BadQuantity>;

/// A dimension: its name, its units as multiples of the smallest, and common wrong spellings with their corrections.
#[derive(Debug)]
pub struct Dimension {
    /// With its article.
    pub what: &'static str,
    /// Its units, each with its size in the smallest.
    pub units: &'static [(&'static str, u64)],
    slips: &'static [(&'static str, &'static str)],
    /// The name of the smallest unit.
    smallest: &'static str,
    /// The largest quantity, in the smallest unit.
    most: u64,
    /// A correct example.
    pub example: &'static str,
}

/// Rates; the smallest unit is bit/s.
pub const RATE: Dimension = Dimension {
    what: "a rate",
    units: &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)],
    slips: &[
        ("bps", "bit/s"),
        ("kbps", "kbit/s"),
        ("Kbps", "kbit/s"),
        ("kb/s", "kbit/s"),
        ("Mbps", "Mbit/s"),
        ("mbps", "Mbit/s"),
        ("Mb/s", "Mbit/s"),
        ("Gbps", "Gbit/s"),
        ("Gb/s", "Gbit/s"),
    ],
    smallest: "bit/s",
    most: u64::MAX,
    example: "10 Mbit/s",
};

/// Durations; the smallest unit is a nanosecond.
pub const DURATION: Dimension = Dimension {
    what: "a duration",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    slips: &[
        ("µs", "us"),
        ("sec", "s"),
        ("secs", "s"),
        ("second", "s"),
        ("seconds", "s"),
        ("msec", "ms"),
        ("m", "min"),
        ("minutes", "min"),
        ("hours", "h"),
    ],
    smallest: "ns",
    // 146 years. So the sum of a start and a delay is still a time that comes, and not `Time::NEVER`.
    most: (1 << 62) - 1,
    example: "50 ms",
};

/// Sizes; the smallest unit is a byte.
pub const SIZE: Dimension = Dimension {
    what: "a size",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    slips: &[
        ("bytes", "B"),
        ("byte", "B"),
        ("k", "kB"),
        ("M", "MB"),
        ("G", "GB"),
        ("kiB", "KiB"),
        ("mb", "MB"),
    ],
    smallest: "B",
    most: u64::MAX,
    example: "64 KiB",
};

pub(crate) const LENGTH: Dimension = Dimension {
    what: "a length",
    units: &[("mm", 1), ("cm", 10), ("m", 1_000), ("km", 1_000_000)],
    slips: &[("metre", "m"), ("metres", "m"), ("meter", "m"), ("meters", "m"), ("kilometres", "km")],
    smallest: "mm",
    // 100 million kilometres. So the place of the last node of a chain still counts in millimetres.
    most: 100_000_000_000_000,
    example: "300 m",
};

pub(crate) const FREQUENCY: Dimension = Dimension {
    what: "a frequency",
    units: &[("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)],
    slips: &[("hz", "Hz"), ("Mhz", "MHz"), ("Ghz", "GHz")],
    smallest: "Hz",
    most: u64::MAX,
    example: "2.4 GHz",
};

impl Dimension {
    /// The quantity in `text`, in the smallest unit.
    pub fn read(&self, text: &str) -> Quantity<u64> {
        let (number, unit) = split(text);
        let bad = |message: String| BadQuantity { message, hint: self.advice() };
        if text.trim_start().starts_with('-') {
            return Err(bad(format!("{} cannot be negative", self.what)));
        }
        if !Decimal::is_well_formed(number) {
            return Err(bad(format!("`{text}` is not {}", self.what)));
        }
        if unit.is_empty() {
            return Err(BadQuantity {
                message: format!("`{text}` has no unit, and {} needs one", self.what),
                hint: self.advice(),
            });
        }
        let factor = self.factor(unit)?;
        let product = match Decimal::read(number) {
            Some(decimal) => decimal.times(factor),
            // It has more digits than the smallest unit of anything, on one side of the point or on the other.
            None if number.contains('.') => Err(BadProduct::Fraction),
            None => Err(BadProduct::Overflow),
        };
        let product = product.and_then(|product| match product <= self.most {
            true => Ok(product),
            false => Err(BadProduct::Overflow),
        });
        product.map_err(|why| match why {
            BadProduct::Fraction => bad(format!("`{text}` is not a whole number of {}", self.smallest)),
            BadProduct::Overflow => BadQuantity {
                message: format!("`{text}` is too large"),
                hint: format!("the most is \"{} {unit}\"", self.most / factor),
            },
        })
    }

    /// The text of a quantity in the smallest unit, with the largest decimal unit that it reaches. It is exact, and
    /// `read` reads it.
    pub fn written(&self, quantity: u64) -> String {
        let is_decimal = |size: u64| size == 10_u64.pow(size.ilog10());
        let reached = self.units.iter().filter(|(_, size)| is_decimal(*size) && *size <= quantity);
        let largest = reached.reduce(|best, unit| if unit.1 > best.1 { unit } else { best });
        let (unit, size) = *largest.unwrap_or(&(self.smallest, 1));
        let digits = size.ilog10() as usize;
        let number = format!("{}.{:0digits$}", quantity / size, quantity % size);
        format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
    }

    fn factor(&self, unit: &str) -> Quantity<u64> {
        if let Some((_, factor)) = self.units.iter().find(|(name, _)| *name == unit) {
            return Ok(*factor);
        }
        let meant = self.slips.iter().find(|(slip, _)| *slip == unit).map(|(_, meant)| *meant);
        let meant = meant.or_else(|| nearest(unit, self.units.iter().map(|(name, _)| *name)));
        let hint = meant.map_or_else(|| self.advice(), |meant| format!("did you mean `{meant}`?"));
        Err(BadQuantity { message: format!("`{unit}` is not a unit of {}", self.what), hint })
    }

    /// The expected spelling.
    pub fn advice(&self) -> String {
        let units: Vec<_> = self.units.iter().map(|(name, _)| *name).collect();
        format!("write it as \"{}\"; the units are {}", self.example, units.join(", "))
    }
}

/// A duration.
pub fn duration(text: &str) -> Quantity<Duration> {
    DURATION.read(text).map(Duration::from_nanos)
}

/// A multiple of the bandwidth-delay product in thousandths: "2 bdp" is 2000. `None` if the unit is another.
pub fn bandwidth_delay(text: &str) -> Option<Quantity<u32>> {
    let (number, unit) = split(text);
    let thousandths = || Decimal::read(number)?.times(1000).ok().and_then(|n| u32::try_from(n).ok());
    let bad = || BadQuantity {
        message: format!("`{text}` is not a number of bandwidth-delay products"),
        hint: "write it as \"2 bdp\"".to_owned(),
    };
    (unit == "bdp").then(|| thousandths().filter(|n| *n > 0).ok_or_else(bad))
}

/// An amount in a queue: "50 packets" or "75 kB".
pub fn amount(text: &str) -> Quantity<Amount> {
    match packets_or_bytes(text, "queue", QUEUE_ADVICE)? {
        Amount::Packets(0) | Amount::Bytes(0) => Err(BadQuantity {
            message: "a queue of zero holds nothing".to_owned(),
            hint: "the least is \"1 packet\"".to_owned(),
        }),
        amount => Ok(amount),
    }
}

/// A window: "44 packets" or "64 KiB".
pub fn window(text: &str) -> Quantity<Amount> {
    match packets_or_bytes(text, "window", WINDOW_ADVICE)? {
        Amount::Packets(0) | Amount::Bytes(0) => Err(BadQuantity {
            message: "a window of zero admits nothing".to_owned(),
            hint: "the least is \"1 packet\"".to_owned(),
        }),
        window => Ok(window),
    }
}

fn packets_or_bytes(text: &str, what: &str, advice: &str) -> Quantity<Amount> {
    let (number, unit) = split(text);
    let bad = |message: String| BadQuantity { message, hint: advice.to_owned() };
    if text.trim_start().starts_with('-') {
        return Err(bad(format!("a {what} cannot be negative")));
    }
    if unit.is_empty() {
        return Err(bad(format!("`{text}` has no unit, and a {what} needs one")));
    }
    if matches!(unit, "packet" | "packets") {
        let count = Decimal::read(number).and_then(|n| n.times(1).ok()).and_then(|n| u32::try_from(n).ok());
        return count.map(Amount::Packets).ok_or_else(|| bad(format!("`{text}` is not a number of packets")));
    }
    if nearest(unit, ["packets"]).is_some() || matches!(unit, "p" | "pkt" | "pkts" | "segment" | "segments") {
        return Err(bad(format!("`{unit}` is not a unit of a {what}")));
    }
    Ok(Amount::Bytes(SIZE.read(text)?))
}

/// The expected spelling of a window.
pub const WINDOW_ADVICE: &str = "write it as \"44 packets\" or \"64 KiB\"";

/// The expected spelling of a queue.
pub const QUEUE_ADVICE: &str = "write it as \"50 packets\" or \"75 kB\"";

/// A fraction written in percent: "1 %" is 0.01.
pub fn percent(text: &str) -> Quantity<f64> {
    let (number, unit) = split(text);
    let bad = |message: String| BadQuantity { message, hint: PERCENT_ADVICE.to_owned() };
    if text.trim_start().starts_with('-') {
        return Err(bad("a percentage cannot be negative".to_owned()));
    }
    let decimal = Decimal::read(number).ok_or_else(|| bad(format!("`{text}` is not a percentage")))?;
    match unit {
        "%" => Ok(decimal.shifted(2)),
        "" => Err(bad(format!("`{text}` has no unit, and a percentage needs one"))),
        _ => Err(bad(format!("`{unit}` is not a unit of a percentage"))),
    }
}

/// The expected spelling of a percentage.
pub const PERCENT_ADVICE: &str = "write it as \"1 %\"";

/// A probability of loss: "1 %".
pub fn loss(text: &str) -> Quantity<Loss> {
    let with_advice = |bad: BadQuantity| BadQuantity { hint: LOSS_ADVICE.to_owned(), ..bad };
    let probability = percent(text).map_err(with_advice)?;
    match () {
        _ if probability > 1.0 => Err(BadQuantity {
            message: "a loss cannot exceed 100 %".to_owned(),
            hint: LOSS_ADVICE.to_owned(),
        }),
        _ if probability == 0.0 => Ok(Loss::None),
        _ => Ok(Loss::Random(probability)),
    }
}

/// The expected spelling of a loss.
pub const LOSS_ADVICE: &str =
    "write it as \"1 %\", or as a table: { packets = [5, 9] }, { bits = 1e-6 }, { every = 50 }";

/// A length that may be negative, in metres.
pub(crate) fn coordinate(text: &str) -> Quantity<f64> {
    match text.trim_start().strip_prefix('-') {
        Some(rest) => LENGTH.read(rest).map(|millimetres| -metres(millimetres)),
        None => LENGTH.read(text).map(metres),
    }
}

/// Millimetres as metres.
pub(crate) fn metres(millimetres: u64) -> f64 {
    millimetres as f64 / 1000.0
}

/// A number of decibels, of power (`dBm`) or as a ratio (`dB`), with its unit.
pub(crate) fn decibels(text: &str, unit: &str) -> Quantity<f64> {
    let hint = format!("write it as \"{} {unit}\"", if unit == "dB" { "10" } else { "-93" });
    let bad = |message: String| BadQuantity { message, hint: hint.clone() };
    let (sign, rest) = match text.trim_start().strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    let (number, found) = split(rest);
    let decimal = Decimal::read(number).ok_or_else(|| bad(format!("`{text}` is not a number of {unit}")))?;
    match found {
        "" => Err(bad(format!("`{text}` has no unit, and needs {unit}"))),
        _ if found == unit => Ok(sign * decimal.shifted(0)),
        _ => Err(bad(format!("`{found}` is not {unit}"))),
    }
}

/// The number at the beginning of `text`, and the unit after it.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// A decimal number, exactly: digits / 10^places.
struct Decimal {
    digits: u64,
    places: u32,
}

enum BadProduct {
    Fraction,
    Overflow,
}

impl Decimal {
    /// Digits, perhaps with a point and further digits.
    fn is_well_formed(text: &str) -> bool {
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        text.split_once('.').map_or(digits(text), |(whole, fraction)| digits(whole) && digits(fraction))
    }

    /// `None` if it is not well-formed or has too many digits.
    fn read(text: &str) -> Option<Decimal> {
        if !Self::is_well_formed(text) {
            return None;
        }
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let fraction = fraction.trim_end_matches('0');
        // Digits beyond the nineteenth exceed every unit here.
        let digits = format!("{whole}{fraction}").parse().ok()?;
        Some(Decimal { digits, places: u32::try_from(fraction.len()).ok()? })
    }

    fn times(&self, factor: u64) -> Result<u64, BadProduct> {
        // At most nineteen places, so that neither the power nor the product can overflow.
        let (product, scale) =
            (u128::from(self.digits) * u128::from(factor), 10u128.pow(self.places.min(38)));
        if product % scale != 0 {
            return Err(BadProduct::Fraction);
        }
        u64::try_from(product / scale).map_err(|_| BadProduct::Overflow)
    }

    /// The nearest floating-point number after the decimal point is moved `more` places to the left.
    fn shifted(&self, more: u32) -> f64 {
        // The parser of the standard library rounds correctly; a division afterwards would not.
        format!("{}e-{}", self.digits, self.places + more).parse().unwrap_or(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_written_in_a_unit_that_fits() {
        let cases = [
            (&DURATION, 60_000_000_000, "60 s"),
            (&DURATION, 1_805_642_824, "1.805642824 s"),
            (&DURATION, 0, "0 ns"),
            (&DURATION, 30_000, "30 us"),
            (&RATE, 36_000, "36 kbit/s"),
            (&RATE, 5, "5 bit/s"),
            (&SIZE, 20_000_000, "20 MB"),
            (&SIZE, 65_536, "65.536 kB"),
            (&SIZE, 1_500, "1.5 kB"),
        ];
        for (dimension, quantity, text) in cases {
            assert_eq!(dimension.written(quantity), text);
            assert_eq!(dimension.read(text), Ok(quantity));
        }
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(RATE.read("1.5 Mbit/s"), Ok(1_500_000));
        assert_eq!(RATE.read("36kbit/s"), Ok(36_000));
        assert_eq!(SIZE.read("64 KiB"), Ok(65_536));
        assert_eq!(SIZE.read("0.5 KiB"), Ok(512));
        assert_eq!(SIZE.read("350 KB"), Ok(350_000));
        assert_eq!(duration("0.1 ms"), Ok(Duration::from_micros(100)));
        assert_eq!(duration("1.50 min"), Ok(Duration::from_secs(90)));
        assert_eq!(loss("0.1 %"), Ok(Loss::Random(0.001)));
        assert_eq!(loss("0 %"), Ok(Loss::None));
        assert_eq!(amount("1 packet"), Ok(Amount::Packets(1)));
        assert_eq!(amount("75 kB"), Ok(Amount::Bytes(75_000)));
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in
            ["", "ms", "5", "-5 ms", "5 parsec", "1..5 ms", "1. ms", ".5 s", "0.1 ns", "1e3 s", "5 5 s"]
        {
            assert!(duration(text).is_err(), "{text:?}");
        }
        for text in ["18446744073709551616 ns", "600 h h", "99999999999999999999999999 s", "5124096 h"] {
            assert!(duration(text).is_err(), "{text:?}");
        }
        for text in ["0 packets", "1.5 packets", "5", "5 paquets", "-1 packets", "4294967296 packets", "0 B"]
        {
            assert!(amount(text).is_err(), "{text:?}");
        }
        for text in ["101 %", "-1 %", "0.01", "1 percent", "half"] {
            assert!(loss(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_is_too_large_is_told_the_most_in_its_unit() {
        for text in ["99999999999999999999999999 TB", "18446745 TB"] {
            let wrong = SIZE.read(text).unwrap_err();
            assert_eq!(wrong.message, format!("`{text}` is too large"));
            assert_eq!(wrong.hint, "the most is \"18446744 TB\"");
        }
        assert_eq!(duration("4611686018427387903 ns"), Ok(Duration::from_nanos((1 << 62) - 1)));
        for (text, most) in
            [("4611686018427387904 ns", "4611686018427387903 ns"), ("9300000000 s", "4611686018 s")]
        {
            let wrong = duration(text).unwrap_err();
            assert_eq!(wrong.message, format!("`{text}` is too large"));
            assert_eq!(wrong.hint, format!("the most is \"{most}\""));
        }
        let wrong = duration("0.00000000000000000000000001 s").unwrap_err();
        assert_eq!(wrong.message, "`0.00000000000000000000000001 s` is not a whole number of ns");
    }

    #[test]
    fn lengths_and_decibels() {
        assert_eq!(LENGTH.read("0.37 km"), Ok(370_000));
        assert_eq!(coordinate("-0.5 km"), Ok(-500.0));
        assert_eq!(coordinate("12.5 m"), Ok(12.5));
        assert_eq!(decibels("-93.5 dBm", "dBm"), Ok(-93.5));
        assert_eq!(decibels("10 dB", "dB"), Ok(10.0));
        for text in ["300", "-", "--1 m", "3 feet"] {
            assert!(coordinate(text).is_err(), "{text:?}");
        }
        for text in ["10", "10 dB", "ten dBm", "- dBm"] {
            assert!(decibels(text, "dBm").is_err(), "{text:?}");
        }
    }

    #[test]
    fn hints_name_the_unit_that_was_meant() {
        let hint = |text| RATE.read(text).unwrap_err().hint;
        assert_eq!(hint("10 Mbps"), "did you mean `Mbit/s`?");
        assert_eq!(hint("10 mbit/s"), "did you mean `Mbit/s`?");
        assert!(hint("10 apples").contains("10 Mbit/s"));
        assert_eq!(SIZE.read("5 bytes").unwrap_err().hint, "did you mean `B`?");
    }
}
