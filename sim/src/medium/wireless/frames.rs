//! Frames on the air: types, sizes, airtimes and Duration fields.

use super::timing::{A, Timing};
pub(crate) use crate::observe::trace::FrameKind as Kind;
use crate::observe::trace::RadioFrame;

/// The number of a radio on its channel.
pub(crate) type StationId = u32;

/// A frame on the air.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Air {
    pub(crate) kind: Kind,
    pub(crate) from: StationId,
    pub(crate) to: StationId,
    /// Bytes, header and frame check sequence included.
    pub(crate) bytes: u32,
    /// Airtime in nanoseconds.
    pub(crate) airtime: u64,
    /// The Duration field in nanoseconds: how long the exchange continues after this frame.
    pub(crate) reserves: u64,
    /// Of DATA and its RTS: the sequence number of the packet.
    pub(crate) sequence: u16,
    /// Whether the frame is a retransmission.
    pub(crate) retry: bool,
}

/// Bytes of the MAC header of DATA and of its frame check sequence.
const DATA_OVERHEAD: u32 = 24 + 4;
const RTS: u32 = 20;
const CTS: u32 = 14;
const ACK: u32 = 14;

/// The parameters of the distributed coordination function, the same for all stations of a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dcf {
    pub(crate) timing: Timing,
    /// Rate of DATA in bit/s.
    pub(crate) rate: u64,
    /// Rate of RTS, CTS and ACK in bit/s.
    pub(crate) control_rate: u64,
    /// DATA frames longer than this are preceded by RTS and CTS. `None`: no frame is.
    pub(crate) rts_threshold: Option<u32>,
    /// Attempts of an RTS, or of DATA without RTS.
    pub(crate) short_retry: u32,
    /// Attempts of DATA after CTS.
    pub(crate) long_retry: u32,
    /// The smallest contention window: the backoff is drawn from 0 to this number of slots.
    pub(crate) cw_min: u32,
    pub(crate) cw_max: u32,
    /// Whether a NAV set by an RTS is cancelled if no frame follows.
    pub(crate) nav_reset: bool,
    /// Bytes of LLC and SNAP headers before every packet.
    pub(crate) llc: u32,
}

impl Dcf {
    /// Bytes of the frame that carries a packet of `size` bytes.
    pub(crate) fn data_bytes(&self, size: u32) -> u32 {
        DATA_OVERHEAD + self.llc + size
    }

    /// Whether a DATA frame of this size is preceded by RTS and CTS.
    pub(crate) fn announces(&self, bytes: u32) -> bool {
        self.rts_threshold.is_some_and(|threshold| bytes > threshold)
    }

    pub(super) fn rts(&self, from: StationId, to: StationId, data: u32, sequence: u16) -> Air {
        let after = 3 * self.timing.sifs + self.control(CTS) + self.data_airtime(data) + self.control(ACK);
        self.frame(Kind::Rts, from, to, RTS, after, sequence)
    }

    /// The CTS with which `to` answers its RTS.
    pub(super) fn cts(&self, rts: &Air) -> Air {
        let after = rts.reserves - self.timing.sifs - self.control(CTS);
        self.frame(Kind::Cts, rts.to, rts.from, CTS, after, 0)
    }

    pub(super) fn data(&self, from: StationId, to: StationId, bytes: u32, sequence: u16) -> Air {
        self.frame(Kind::Data, from, to, bytes, self.timing.sifs + self.control(ACK), sequence)
    }

    pub(super) fn ack(&self, data: &Air) -> Air {
        self.frame(Kind::Ack, data.to, data.from, ACK, 0, 0)
    }

    /// The time from the end of an RTS to the latest beginning of the frame after its CTS.
    pub(super) fn nav_doubt(&self) -> u64 {
        2 * self.timing.sifs + self.control(CTS) + 2 * self.timing.slot
    }

    /// The contention window after a failure.
    pub(super) fn widened(&self, cw: u32) -> u32 {
        (2 * cw + 1).min(self.cw_max)
    }

    fn frame(
        &self,
        kind: Kind,
        from: StationId,
        to: StationId,
        bytes: u32,
        reserves: u64,
        sequence: u16,
    ) -> Air {
        let airtime = if kind == Kind::Data { self.data_airtime(bytes) } else { self.control(bytes) };
        Air { kind, from, to, bytes, airtime, reserves, sequence, retry: false }
    }

    /// A frame as observers see it.
    pub(crate) fn shown(&self, air: &Air) -> RadioFrame {
        RadioFrame {
            kind: air.kind,
            from: air.from,
            to: air.to,
            size: air.bytes,
            rate: if air.kind == Kind::Data { self.rate } else { self.control_rate },
            airtime: air.airtime,
            duration: air.reserves,
            sequence: air.sequence,
            retry: air.retry,
            five_gigahertz: self.timing == A,
        }
    }

    fn control(&self, bytes: u32) -> u64 {
        self.timing.airtime(bytes, self.control_rate)
    }

    fn data_airtime(&self, bytes: u32) -> u64 {
        self.timing.airtime(bytes, self.rate)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::medium::wireless::timing::B;

    /// 802.11b at 2 Mbit/s; RTS precedes every DATA frame.
    pub(in crate::medium::wireless) fn dcf() -> Dcf {
        Dcf {
            timing: B,
            rate: 2_000_000,
            control_rate: 2_000_000,
            rts_threshold: Some(0),
            short_retry: 7,
            long_retry: 4,
            cw_min: 31,
            cw_max: 1023,
            nav_reset: false,
            llc: 0,
        }
    }

    #[test]
    fn durations_of_one_exchange() {
        let dcf = dcf();
        let rts = dcf.rts(0, 1, dcf.data_bytes(1028), 7);
        assert_eq!(rts.reserves, 4_942_000);
        let cts = dcf.cts(&rts);
        assert_eq!((cts.from, cts.to, cts.reserves), (1, 0, 4_942_000 - 10_000 - 248_000));
        let data = dcf.data(0, 1, dcf.data_bytes(1028), 7);
        assert_eq!((data.airtime, data.reserves), (4_416_000, 258_000));
        assert_eq!(dcf.ack(&data).reserves, 0);
    }

    #[test]
    fn the_threshold_counts_header_and_check_sequence() {
        let at = |threshold| Dcf { rts_threshold: threshold, ..dcf() }.announces(128);
        assert_eq!([at(Some(127)), at(Some(128)), at(None)], [true, false, false]);
    }
}
