//! JSON written into a buffer, without a tree of values and without the machinery of `format!`: traces have many
//! events.

use anabranch_proto::Time;

/// Writes an object at the end of a buffer. The keys are written in the order given; a field with `?` is left out if it
/// is `None`.
macro_rules! object {
    ($out:expr; $key:literal => $value:expr $(, $($more:tt)*)?) => {{
        let out: &mut Vec<u8> = $out;
        out.extend_from_slice(concat!("{\"", $key, "\":").as_bytes());
        $crate::observe::json::Json::put($value, out);
        $($crate::observe::json::object!(@more out; $($more)*);)?
        out.push(b'}');
    }};
    (@more $out:ident;) => {};
    (@more $out:ident; $key:literal => $value:expr $(, $($more:tt)*)?) => {
        $out.extend_from_slice(concat!(",\"", $key, "\":").as_bytes());
        $crate::observe::json::Json::put($value, $out);
        $($crate::observe::json::object!(@more $out; $($more)*);)?
    };
    (@more $out:ident; $key:literal ? => $value:expr $(, $($more:tt)*)?) => {
        if let Some(value) = $value {
            $out.extend_from_slice(concat!(",\"", $key, "\":").as_bytes());
            $crate::observe::json::Json::put(value, $out);
        }
        $($crate::observe::json::object!(@more $out; $($more)*);)?
    };
}
pub(super) use object;

/// A value.
pub(super) trait Json {
    /// Writes it at the end of `out`.
    fn put(self, out: &mut Vec<u8>);
}

/// A text of this program, which needs no escapes.
#[derive(Copy, Clone)]
pub(super) struct Word(pub(super) &'static str);

/// A value that is JSON already.
#[derive(Copy, Clone)]
pub(super) struct Ready<'a>(pub(super) &'a [u8]);

/// The name of a path, if any, a space, and a word.
#[derive(Copy, Clone)]
pub(super) struct Named<'a>(pub(super) Option<&'a str>, pub(super) &'static str);

/// A time in milliseconds.
#[derive(Copy, Clone)]
pub(super) struct Millis(pub(super) Time);

/// A time in microseconds.
#[derive(Copy, Clone)]
pub(super) struct Micros(pub(super) Time);

impl Json for u64 {
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(itoa::Buffer::new().format(self).as_bytes());
    }
}

impl Json for u32 {
    fn put(self, out: &mut Vec<u8>) {
        u64::from(self).put(out);
    }
}

impl Json for usize {
    fn put(self, out: &mut Vec<u8>) {
        (self as u64).put(out);
    }
}

impl Json for f64 {
    fn put(self, out: &mut Vec<u8>) {
        serialize(out, &self);
    }
}

impl Json for &str {
    fn put(self, out: &mut Vec<u8>) {
        // Without a branch in the loop, many bytes are looked at together.
        let escapes =
            self.bytes().fold(false, |any, byte| any | (byte < b' ' || byte == b'"' || byte == b'\\'));
        if escapes {
            return serialize(out, self);
        }
        out.push(b'"');
        out.extend_from_slice(self.as_bytes());
        out.push(b'"');
    }
}

impl Json for String {
    fn put(self, out: &mut Vec<u8>) {
        self.as_str().put(out);
    }
}

impl Json for Word {
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        out.push(b'"');
        out.extend_from_slice(self.0.as_bytes());
        out.push(b'"');
    }
}

impl Json for Ready<'_> {
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0);
    }
}

impl Json for Named<'_> {
    fn put(self, out: &mut Vec<u8>) {
        match self.0 {
            Some(path) => {
                path.put(out);
                out.pop();
                out.push(b' ');
            }
            None => out.push(b'"'),
        }
        out.extend_from_slice(self.1.as_bytes());
        out.push(b'"');
    }
}

impl<T: Json> Json for Option<T> {
    fn put(self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.put(out),
            None => out.extend_from_slice(b"null"),
        }
    }
}

impl Json for Millis {
    fn put(self, out: &mut Vec<u8>) {
        parts::<1_000_000>(self.0.as_nanos(), out);
    }
}

impl Json for Micros {
    fn put(self, out: &mut Vec<u8>) {
        parts::<1_000>(self.0.as_nanos(), out);
    }
}

/// Writes `number` / `UNIT`, a power of ten, as the number of floating point that is nearest would be written. Decimal
/// numbers of up to 15 digits are what their nearest number is written as.
fn parts<const UNIT: u64>(number: u64, out: &mut Vec<u8>) {
    let plain = number == 0 || (100..1_000_000_000_000_000).contains(&number);
    if !plain {
        return (number as f64 / UNIT as f64).put(out);
    }
    (number / UNIT).put(out);
    let rest = number % UNIT;
    if rest == 0 {
        return out.extend_from_slice(b".0");
    }
    // The 1 in front of the decimals keeps their zeros; the point takes its place.
    let mut digits = itoa::Buffer::new();
    let decimals = digits.format(UNIT + rest).as_bytes();
    let zeros = decimals.iter().rev().take_while(|digit| **digit == b'0').count();
    out.push(b'.');
    out.extend_from_slice(&decimals[1..decimals.len() - zeros]);
}

/// A text as JSON.
pub(super) fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    text.put(&mut out);
    out
}

fn serialize<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("numbers and texts can be written into a buffer");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written(value: impl Json) -> String {
        let mut out = Vec::new();
        value.put(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn values_are_written_as_serde_json_writes_them() {
        let mut out = Vec::new();
        object!(&mut out; "a" => 0.5, "b" => u64::MAX, "c"? => None::<u64>, "d"? => Some("a \"b\""), "e" => None::<u64>,
            "f" => "ü\n", "g" => Word("new data"), "h" => Ready(b"[]"), "i" => Named(Some("wi\"fi"), "cwnd"));
        let same = json!({
            "a": 0.5, "b": u64::MAX, "d": "a \"b\"", "e": null, "f": "ü\n", "g": "new data", "h": [], "i": "wi\"fi cwnd",
        });
        assert_eq!(String::from_utf8(out).expect("text"), same.to_string());
    }

    #[test]
    fn times_are_written_as_numbers_of_floating_point() {
        let powers = (0..19).map(|power| 10u64.pow(power));
        let near = powers.flat_map(|power| [power - 1, power, power + 1, 7 * power, 123 * (power / 100)]);
        let many = (1..2000u64).map(|n| n.wrapping_mul(n).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (n % 50));
        for nanos in near.chain(many) {
            let time = Time::from_nanos(nanos);
            assert_eq!(written(Millis(time)), written(nanos as f64 / 1e6), "{nanos}");
            assert_eq!(written(Micros(time)), written(nanos as f64 / 1e3), "{nanos}");
        }
    }
}
