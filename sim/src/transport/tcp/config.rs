//! The parameters of a TCP connection, and the variants: named sets of defaults.

use anabranch_proto::control::window::Halving;
use anabranch_proto::{Duration, PolicySpec};

/// The name of each variant's own window.
pub(super) const STANDARD_WINDOW: &str = "standard";

/// The parameters of a TCP flow, at both ends.
#[derive(Clone, PartialEq, Debug)]
pub struct TcpConfig {
    /// User data in a segment, in bytes.
    pub segment_size: u32,
    /// Bytes of the receive buffer, which the receiver advertises.
    pub receive_window: u64,
    /// The initial congestion window, in bytes.
    pub initial_window: u64,
    /// The initial slow-start threshold in bytes; `None`: unlimited.
    pub initial_ssthresh: Option<u64>,
    /// The number of in-order segments for one acknowledgement.
    pub ack_every: u32,
    /// How long an acknowledgement is delayed.
    pub ack_delay: Duration,
    /// The number of SACK blocks in an acknowledgement; 0: SACK is not used.
    pub sack_blocks: u32,
    /// Whether the first two duplicate acknowledgements send new data (RFC 3042).
    pub limited_transmit: bool,
    /// How "half the window" is computed.
    pub halving: Halving,
    /// The retransmission timeout before any measurement.
    pub rto_initial: Duration,
    /// Its lower bound.
    pub rto_min: Duration,
    /// What the lower bound bounds.
    pub rto_min_bounds: RtoBound,
    /// Its upper bound.
    pub rto_max: Duration,
    /// The tick of the clock that measures round trips; zero means an exact clock.
    pub rto_tick: Duration,
    /// The offset of that clock within a tick at the start of the run; `None`: drawn from the run's seed.
    pub rto_phase: Option<Duration>,
    /// The congestion window: "standard" for the variant's own, or a window policy.
    pub window: PolicySpec,
    /// The algorithm that detects and repairs losses.
    pub recovery: RecoveryKind,
}

/// What the lower bound of the retransmission timeout bounds.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RtoBound {
    /// The timeout (RFC 6298).
    Timeout,
    /// What is added to the smoothed round-trip time, as Linux does.
    Variation,
}

/// How losses are detected and repaired.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RecoveryKind {
    /// RFC 6675 with SACK, RFC 6582 (NewReno) without.
    Standard,
    /// As ns-2's `Agent/TCP/Sack1`, which counts packets.
    Sack1,
}

/// A named set of defaults.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Variant {
    /// Today's standards: RFC 5681, 6298, 6675, 6928, 3042.
    Standard,
    /// The same standards without SACK: RFC 6582.
    NewReno,
    /// ns-2 2.35's `Agent/TCP/Sack1` with `TCPSink/Sack1`.
    Sack1,
    /// The same with its settings of 2002: `singledup_ 0`, `precisionReduce_ 0`, `minrto_ 1`.
    Sack1Of2002,
}

impl Variant {
    /// Every variant with its name in a scenario.
    pub const NAMES: [(&'static str, Variant); 4] = [
        ("standard", Variant::Standard),
        ("newreno", Variant::NewReno),
        ("sack1", Variant::Sack1),
        ("sack1-2002", Variant::Sack1Of2002),
    ];

    /// The variant called `name`.
    pub fn named(name: &str) -> Option<Variant> {
        Self::NAMES.iter().find(|row| row.0 == name).map(|row| row.1)
    }

    /// The offset of the clock within a tick; `None`: drawn from the run's seed. In an ns-2 script that does not seed
    /// its generator, the first TCP agent gets this value: the second number of MRG32k3a with a seed of ones.
    pub fn phase(self, tick: Duration) -> Option<Duration> {
        match self {
            Variant::Sack1 | Variant::Sack1Of2002 if !tick.is_zero() => {
                // It stays below a tick, however short that is.
                let most = tick.saturating_sub(Duration::from_nanos(1));
                Some(tick.mul_f64(0.555_880_715_863_723_7).min(most))
            }
            _ => None,
        }
    }

    /// The defaults of the variant for segments of `segment_size` bytes. ns-2 counts windows in packets.
    pub fn defaults(self, segment_size: u32) -> TcpConfig {
        match self {
            Variant::Standard => standard(segment_size),
            Variant::NewReno => TcpConfig { sack_blocks: 0, ..standard(segment_size) },
            Variant::Sack1 => sack1(segment_size),
            Variant::Sack1Of2002 => TcpConfig {
                limited_transmit: false,
                halving: Halving::Whole,
                rto_min: Duration::from_secs(1),
                ..sack1(segment_size)
            },
        }
    }
}

fn standard(segment_size: u32) -> TcpConfig {
    TcpConfig {
        segment_size,
        receive_window: 1 << 20,
        initial_window: rfc6928(segment_size),
        initial_ssthresh: None,
        ack_every: 2,
        ack_delay: Duration::from_millis(200),
        sack_blocks: 4,
        limited_transmit: true,
        halving: Halving::Fraction,
        rto_initial: Duration::from_secs(1),
        rto_min: Duration::from_secs(1),
        rto_min_bounds: RtoBound::Timeout,
        rto_max: Duration::from_secs(60),
        rto_tick: Duration::ZERO,
        rto_phase: None,
        window: PolicySpec::named(STANDARD_WINDOW),
        recovery: RecoveryKind::Standard,
    }
}

/// Today's initial window: ten segments, but at most 14,600 bytes unless the segments are large.
//= rfc6928#section-2
fn rfc6928(segment_size: u32) -> u64 {
    let segment = u64::from(segment_size);
    (10 * segment).min((2 * segment).max(14_600))
}

fn sack1(segment_size: u32) -> TcpConfig {
    let packets = |n: u64| n * u64::from(segment_size);
    TcpConfig {
        receive_window: packets(20),
        initial_window: packets(2),
        initial_ssthresh: Some(packets(20)),
        ack_every: 1,
        ack_delay: Duration::from_millis(100),
        sack_blocks: 3,
        rto_initial: Duration::from_secs(3),
        rto_min: Duration::from_millis(200),
        rto_tick: Duration::from_millis(10),
        recovery: RecoveryKind::Sack1,
        ..standard(segment_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_begins_within_a_tick() {
        let phase = |nanos| Variant::Sack1.phase(Duration::from_nanos(nanos)).map(|phase| phase.as_nanos());
        assert_eq!([0, 1, 2, 10_000_000].map(phase), [None, Some(0), Some(1), Some(5_558_807)]);
    }
}
