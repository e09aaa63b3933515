//! Switches for the extensions.

/// The extensions that an endpoint offers. An association uses those that both ends offer.
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
    /// A lower layer (DTLS) detects errors, so the checksum can be zero (RFC 9653).
    pub zero_checksum: bool,
    /// Routers can signal congestion by marking packets instead of dropping them (RFC 4960 appendix A).
    pub ecn: bool,
    /// SACKs list the data that the receiver promises to keep. The sender frees that data (NR-SACK).
    pub nr_sack: bool,
    /// Packets carry the time at which they left, and SACKs identify the packet that they answer (an extension of this
    /// project, docs/extensions.md).
    pub timestamps: bool,
}

impl Extensions {
    /// Whether any extension is on.
    pub fn any(self) -> bool {
        self != Extensions::default()
    }

    /// The extensions that are on in both sets.
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
