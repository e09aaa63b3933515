//! Messages whose content follows from their number, so that either end knows what must arrive.

use bytes::Bytes;

/// A message to send.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Letter {
    /// Its payload protocol identifier, too.
    pub number: u32,
    pub stream: u16,
    /// Bytes.
    pub size: usize,
    pub unordered: bool,
}

/// A message as it arrived.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Arrived {
    pub number: u32,
    pub stream: u16,
    pub size: usize,
    /// If the receiver is told.
    pub unordered: Option<bool>,
    /// FNV-1a of the content.
    pub hash: u64,
}

impl Letter {
    pub fn content(&self) -> Bytes {
        let byte = |place: usize| (self.number as usize * 131 + place * 7 + (place >> 8) * 13) as u8;
        (0..self.size).map(byte).collect()
    }

    /// Whether this is how it arrived.
    fn is(&self, arrived: &Arrived) -> bool {
        let Letter { number, stream, size, unordered } = *self;
        let said = (arrived.number, arrived.stream, arrived.size) == (number, stream, size);
        said && arrived.unordered.is_none_or(|told| told == unordered) && arrived.hash == fnv(&self.content())
    }
}

/// FNV-1a, 64 bits.
pub fn fnv(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// What is wrong with what arrived of these, whose numbers rise: none is doubled or changed, ordered ones come in
/// order on their stream. Only the numbers of `may_miss` may be missing.
pub fn complaint(sent: &[Letter], arrived: &[Arrived], may_miss: impl Fn(u32) -> bool) -> Option<String> {
    let mut before: Vec<&Letter> = Vec::new();
    for one in arrived {
        let Some(letter) = sent.iter().find(|letter| letter.number == one.number) else {
            return Some(format!("nobody sent {one:?}"));
        };
        if !letter.is(one) {
            return Some(format!("{letter:?} arrived as {one:?}"));
        }
        if before.contains(&letter) {
            return Some(format!("message {} arrived twice", letter.number));
        }
        let in_order = |other: &&&Letter| !other.unordered && other.stream == letter.stream;
        if !letter.unordered
            && let Some(other) = before.iter().find(|other| in_order(other) && other.number > letter.number)
        {
            return Some(format!("message {} came before {}", other.number, letter.number));
        }
        before.push(letter);
    }
    let missing = sent.iter().find(|letter| !before.contains(letter) && !may_miss(letter.number));
    missing.map(|letter| format!("{letter:?} did not arrive"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(number: u32, unordered: bool) -> Letter {
        Letter { number, stream: 1, size: 300, unordered }
    }

    fn as_sent(letter: &Letter) -> Arrived {
        let Letter { number, stream, size, unordered } = *letter;
        Arrived { number, stream, size, unordered: Some(unordered), hash: fnv(&letter.content()) }
    }

    /// FNV-1a of "a", by its authors' test vectors.
    #[test]
    fn hash() {
        assert_eq!((fnv(b""), fnv(b"a")), (0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c));
    }

    #[test]
    fn what_is_complained_of() {
        let sent = [letter(0, false), letter(1, true), letter(2, false)];
        let [first, second, third] = [0, 1, 2].map(|n| as_sent(&sent[n]));
        let complaint =
            |arrived: &[Arrived], may_miss: u32| complaint(&sent, arrived, |number| number == may_miss);
        assert_eq!(complaint(&[first, second, third], 9), None);
        assert_eq!(complaint(&[first, third, second], 9), None, "the second is unordered");
        assert_eq!(complaint(&[second, third], 0), None, "given up");
        let changed = Arrived { hash: third.hash ^ 1, ..third };
        let elsewhere = Arrived { stream: 2, ..third };
        for (wrong, why) in [
            (&[second, third][..], "did not arrive"),
            (&[third, second, first], "came before"),
            (&[first, second, third, second], "arrived twice"),
            (&[first, second, changed], "arrived as"),
            (&[first, second, elsewhere], "arrived as"),
            (&[Arrived { number: 5, ..first }], "nobody sent"),
        ] {
            let what = complaint(wrong, 9);
            assert!(what.as_ref().is_some_and(|what| what.contains(why)), "{what:?}, not {why}");
        }
    }
}
