//! Which extensions are on.

/// The extensions that an endpoint offers; what both ends offer is used.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Extensions {
    /// Messages can be given up (RFC 3758, RFC 7496).
    pub partial_reliability: bool,
    /// Streams can be reset and added (RFC 6525).
    pub reconfiguration: bool,
    /// Chunks can be authenticated (RFC 4895).
    pub authentication: bool,
    /// Addresses can change (RFC 5061); needs `authentication`.
    pub addresses: bool,
    /// Messages on different streams can be interleaved (RFC 8260).
    pub interleaving: bool,
    /// A lower layer, DTLS, finds errors: the checksum can be zero (RFC 9653).
    pub zero_checksum: bool,
    /// Congestion can be marked instead of lost (RFC 4960 appendix A).
    pub ecn: bool,
    /// Acknowledgements say what is not taken back, which the sender then forgets (NR-SACK).
    pub nr_sack: bool,
    /// Packets say when they left, and SACKs which packet they answer (our own, docs/extensions.md).
    pub timestamps: bool,
}

impl Extensions {
    /// Whether there is any.
    pub fn any(self) -> bool {
        self != Extensions::default()
    }

    /// Those of both.
    pub(crate) fn both(self, other: Self) -> Self {
        Extensions {
            partial_reliability: self.partial_reliability && other.partial_reliability,
            reconfiguration: self.reconfiguration && other.reconfiguration,
            authentication: self.authentication && other.authentication,
            addresses: self.addresses && other.addresses,
            interleaving: self.interleaving && other.interleaving,
            zero_checksum: self.zero_checksum && other.zero_checksum,
            ecn: self.ecn && other.ecn,
            nr_sack: self.nr_sack && other.nr_sack,
            timestamps: self.timestamps && other.timestamps,
        }
    }

    pub(super) fn list(self) -> [bool; 9] {
        [
            self.partial_reliability,
            self.reconfiguration,
            self.authentication,
            self.addresses,
            self.interleaving,
            self.zero_checksum,
            self.ecn,
            self.nr_sack,
            self.timestamps,
        ]
    }

    pub(super) fn of_list(list: [bool; 9]) -> Self {
        let [
            partial_reliability,
            reconfiguration,
            authentication,
            addresses,
            interleaving,
            zero_checksum,
            ecn,
            nr_sack,
            timestamps,
        ] = list;
        Extensions {
            partial_reliability,
            reconfiguration,
            authentication,
            addresses,
            interleaving,
            zero_checksum,
            ecn,
            nr_sack,
            timestamps,
        }
    }
}
