//! The common header (RFC 9260 §3.1) and the packet behind it.

use std::net::IpAddr;

use smallvec::SmallVec;

use super::Chunk;

/// Bytes of the common header.
pub const HEADER: usize = 12;

/// A transport address: where a packet comes from or goes to, SCTP ports aside.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Address {
    /// The IP address.
    pub ip: IpAddr,
    /// The UDP port of the encapsulation (RFC 6951); zero where SCTP stands directly on IP.
    pub udp: u16,
}

impl Address {
    /// An address without encapsulation.
    pub const fn ip(ip: IpAddr) -> Self {
        Address { ip, udp: 0 }
    }
}

/// The SCTP ports of a packet.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ports {
    /// The sender's.
    pub source: u16,
    /// The receiver's.
    pub destination: u16,
}

impl Ports {
    /// The ports of an answer.
    pub const fn reversed(self) -> Self {
        Ports { source: self.destination, destination: self.source }
    }
}

/// The two ECN bits of the IP header.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Ecn {
    /// Not capable of ECN.
    #[default]
    NotEct,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// Congestion experienced.
    Ce,
}

/// An SCTP packet, typed. Whatever can be constructed can be encoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Where it was sent from.
    pub from: Address,
    /// Where it is going.
    pub to: Address,
    /// SCTP ports.
    pub ports: Ports,
    /// The verification tag.
    pub tag: u32,
    /// The ECN bits of the IP header that carries it.
    pub ecn: Ecn,
    /// The chunks, in order.
    pub chunks: SmallVec<[Chunk; 2]>,
}

impl Packet {
    /// Encoded length in bytes: the common header and every chunk with its padding, without IP.
    pub fn size(&self) -> usize {
        HEADER + self.chunks.iter().map(Chunk::padded_size).sum::<usize>()
    }
}
