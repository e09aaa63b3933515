//! The protocols of flows, as results and records name them.

use serde::Serialize;

/// The protocol of a flow.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// SCTP (RFC 9260).
    #[default]
    Sctp,
    /// TCP (RFC 9293).
    Tcp,
    /// Multipath TCP (RFC 8684).
    Mptcp,
    /// UDP (RFC 768).
    Udp,
    /// A stack of other people.
    Foreign,
}

impl Protocol {
    /// Its name in scenarios and results.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Sctp => "sctp",
            Protocol::Tcp => "tcp",
            Protocol::Mptcp => "mptcp",
            Protocol::Udp => "udp",
            Protocol::Foreign => "foreign",
        }
    }

    /// Whether its numbers count the bytes of a stream, as those of TCP do. Others number chunks or packets.
    pub fn counts_bytes(self) -> bool {
        matches!(self, Protocol::Tcp | Protocol::Mptcp)
    }

    /// Whether its flows count how long their data is blocked, by cause.
    pub fn counts_blocked(self) -> bool {
        matches!(self, Protocol::Sctp | Protocol::Mptcp)
    }
}
