//! `wire = true`: every packet goes through the byte codec on its way, and nothing may change.

use anabranch_proto::wire::Packet;

/// Encodes and decodes a packet, as a real network would have it done.
pub(crate) fn through_the_codec(packet: Box<Packet>) -> Box<Packet> {
    // PLUG: Packet::encode, then Packet::decode(packet.from, packet.to, packet.ecn, bytes).
    packet
}
