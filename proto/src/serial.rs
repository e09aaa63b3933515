//! Sequence numbers that wrap (RFC 1982). They have no `Ord` on purpose: "smaller" is defined only within half of the
//! circle. Use `before`, `after` and `distance_from` instead.

/// TSNs that lie more than so many before the last one are too old to be compared with it. After a reset of all TSNs,
/// those up to so many before the last one count as late, not as far ahead.
pub(crate) const LATE: u32 = 1 << 30;

macro_rules! serial {
    ($(#[$doc:meta])* $name:ident, $word:ty, $half:expr) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
        pub struct $name(pub $word);

        impl $name {
            /// The next number.
            pub const fn next(self) -> Self {
                $name(self.0.wrapping_add(1))
            }
            /// The previous number.
            pub const fn prev(self) -> Self {
                $name(self.0.wrapping_sub(1))
            }
            /// The number `n` further on.
            pub const fn plus(self, n: $word) -> Self {
                $name(self.0.wrapping_add(n))
            }
            /// The number of steps from `origin` to this number.
            pub const fn distance_from(self, origin: Self) -> $word {
                self.0.wrapping_sub(origin.0)
            }
            /// Whether this number comes before `other` on the circle.
            pub const fn before(self, other: Self) -> bool {
                self.0 != other.0 && other.0.wrapping_sub(self.0) < $half
            }
            /// Whether this number comes after `other` on the circle.
            pub const fn after(self, other: Self) -> bool {
                other.before(self)
            }
        }
    };
}

serial! {
    /// Transmission Sequence Number: one for each DATA chunk.
    Tsn, u32, 1 << 31
}
serial! {
    /// Message Identifier (RFC 8260): one for each message of a stream and kind.
    Mid, u32, 1 << 31
}
serial! {
    /// Stream Sequence Number: one for each ordered message of a stream.
    Ssn, u16, 1 << 15
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_wrap() {
        let last = Tsn(u32::MAX);
        assert!(last.before(last.next()) && last.next().after(last));
        assert_eq!(last.next(), Tsn(0));
        assert_eq!(Tsn(3).distance_from(last), 4);
        assert!(Ssn(65535).before(Ssn(0)) && !Ssn(0).before(Ssn(0)));
    }

    #[test]
    fn half_the_circle_away_is_neither_before_nor_after() {
        assert!(!Tsn(0).before(Tsn(1 << 31)) && !Tsn(0).after(Tsn(1 << 31)));
    }
}
