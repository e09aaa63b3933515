//! Interframe spaces and the time that a frame takes on the air: IEEE 802.11-1999 for `802.11a`, 802.11b with the
//! long preamble, and 802.11g without protection. All times are nanoseconds.

/// The constants of a physical layer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Timing {
    /// One slot of the backoff.
    pub(crate) slot: u64,
    /// The short interframe space, before CTS, ACK and the DATA that answers a CTS.
    pub(crate) sifs: u64,
    /// Preamble and header of the physical layer, before every frame.
    preamble: u64,
    /// Silence after the last symbol, which counts as part of the frame (802.11g).
    extension: u64,
    /// The slowest rate in bit/s. EIFS contains an ACK at this rate.
    slowest: u64,
    modulation: Modulation,
    /// The contention windows that the physical layer prescribes, in slots: the smallest and the largest.
    pub(crate) windows: [u32; 2],
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Modulation {
    /// Bits in sequence. The length of a frame is given in whole microseconds.
    Direct,
    /// Symbols of 4 us, with 16 bits of service field before the frame and 6 tail bits after it.
    Symbols,
}

const US: u64 = 1000;
/// Bytes of an ACK.
const ACK: u32 = 14;

/// 802.11b: DSSS with the long preamble of 144 + 48 bits at 1 Mbit/s.
pub(crate) const B: Timing = Timing {
    slot: 20 * US,
    sifs: 10 * US,
    preamble: 192 * US,
    extension: 0,
    slowest: 1_000_000,
    modulation: Modulation::Direct,
    windows: [31, 1023],
};

/// 802.11a: OFDM at 5 GHz.
pub(crate) const A: Timing = Timing {
    slot: 9 * US,
    sifs: 16 * US,
    preamble: 20 * US,
    extension: 0,
    slowest: 6_000_000,
    modulation: Modulation::Symbols,
    windows: [15, 1023],
};

/// 802.11g: OFDM at 2.4 GHz, short slots, no station of 802.11b in the cell.
pub(crate) const G: Timing = Timing { slot: 9 * US, sifs: 10 * US, extension: 6 * US, ..A };

impl Timing {
    /// The time before contention: SIFS and two slots.
    pub(crate) fn difs(&self) -> u64 {
        self.sifs + 2 * self.slot
    }

    /// The time after an unreadable frame: it leaves room for an ACK at the slowest rate.
    pub(crate) fn eifs(&self) -> u64 {
        self.sifs + self.airtime(ACK, self.slowest) + self.difs()
    }

    /// Airtime of a frame of `bytes` at `rate` bit/s.
    pub(crate) fn airtime(&self, bytes: u32, rate: u64) -> u64 {
        let bits = 8 * u64::from(bytes);
        let payload = match self.modulation {
            Modulation::Direct => (bits * 1_000_000).div_ceil(rate) * US,
            Modulation::Symbols => ((16 + bits + 6) * 250_000).div_ceil(rate) * 4 * US,
        };
        self.preamble + payload + self.extension
    }

    /// How long a station waits, after its own frame, for an answer. By then either the answer's preamble has been
    /// received or no answer comes.
    pub(crate) fn answer_timeout(&self) -> u64 {
        self.sifs + self.slot + self.preamble
    }

    /// The time from the beginning of a frame to the end of its header.
    pub(crate) fn preamble(&self) -> u64 {
        self.preamble
    }

    /// The rates of the physical layer in bit/s.
    pub(crate) fn rates(&self) -> &'static [u64] {
        match self.modulation {
            Modulation::Direct => &[1_000_000, 2_000_000, 5_500_000, 11_000_000],
            Modulation::Symbols => &[
                6_000_000, 9_000_000, 12_000_000, 18_000_000, 24_000_000, 36_000_000, 48_000_000, 54_000_000,
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn airtimes_of_802_11b() {
        let at = |bytes: u32, rate| B.airtime(bytes, rate) / US;
        assert_eq!([at(20, 2_000_000), at(14, 2_000_000)], [272, 248]);
        assert_eq!([at(20, 1_000_000), at(14, 1_000_000)], [352, 304]);
        let data = |ip: u32| at(ip + 28, 2_000_000);
        assert_eq!([data(1028), data(1048), data(1040), data(48), data(40)], [4416, 4496, 4464, 496, 464]);
        assert_eq!([B.difs(), B.eifs(), B.answer_timeout()], [50_000, 364_000, 222_000]);
    }

    #[test]
    fn symbols_are_whole() {
        // 16 + 8 × 14 + 6 = 134 bits: six symbols of 24 bits.
        assert_eq!(A.airtime(14, 6_000_000), (20 + 24) * US);
        assert_eq!(G.airtime(14, 6_000_000), (20 + 24 + 6) * US);
        // 16 + 8 × 1528 + 6 = 12246 bits: 57 symbols of 216 bits.
        assert_eq!(A.airtime(1528, 54_000_000), (20 + 228) * US);
        assert_eq!([A.difs(), G.difs()], [34_000, 28_000]);
    }
}
