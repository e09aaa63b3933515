//! What is estimated of a path while data goes there, for policies that ask for it: [`Needs`].
//!
//! One file an estimator. Each is pure: it gets times and bytes, and has no clock of its own. An estimator that no
//! policy needs does not exist, and costs nothing. The loss rate needs no state: it follows from the counters that
//! every path keeps ([`PathView::loss_rate`](crate::PathView::loss_rate)).

mod bandwidth;
mod loss;
mod packet_pair;
mod probes;
mod round_trip;
mod update;

pub use bandwidth::Bandwidth;
pub use loss::LossRate;
pub use packet_pair::PacketPair;
pub use round_trip::RoundTrip;

/// What a policy wants to know of every path.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Needs {
    /// The bandwidth, from the bytes that SACKs acknowledge.
    pub bandwidth: bool,
    /// The bandwidth of paths without traffic, from pairs of padded HEARTBEATs.
    pub packet_pair: bool,
    /// The smallest and the largest round-trip time, and the queueing delay between them.
    pub round_trip: bool,
}

impl Needs {
    /// Nothing.
    pub const NONE: Needs = Needs { bandwidth: false, packet_pair: false, round_trip: false };
    /// Everything.
    pub const ALL: Needs = Needs { bandwidth: true, packet_pair: true, round_trip: true };

    /// What a window of a path can ask for: its own path carries data, and has no use for pairs.
    pub const OF_WINDOW: Needs = Needs { bandwidth: true, packet_pair: false, round_trip: true };

    /// What either of two policies needs.
    pub fn and(self, other: Needs) -> Needs {
        Needs {
            bandwidth: self.bandwidth || other.bandwidth,
            packet_pair: self.packet_pair || other.packet_pair,
            round_trip: self.round_trip || other.round_trip,
        }
    }

    /// The estimators of a new path.
    pub(super) fn estimators(self) -> Option<Box<Estimates>> {
        (self != Needs::NONE).then(|| {
            Box::new(Estimates {
                bandwidth: self.bandwidth.then(Bandwidth::default),
                packet_pair: self.packet_pair.then(PacketPair::default),
                round_trip: self.round_trip.then(RoundTrip::default),
            })
        })
    }
}

/// The estimators of a path. Each is there if a policy needs it.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Estimates {
    /// Its bandwidth, from the bytes that SACKs acknowledge.
    pub bandwidth: Option<Bandwidth>,
    /// Its bandwidth, from pairs of padded HEARTBEATs.
    pub packet_pair: Option<PacketPair>,
    /// Its smallest and largest round-trip time.
    pub round_trip: Option<RoundTrip>,
}
