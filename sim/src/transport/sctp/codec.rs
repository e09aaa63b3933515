//! `wire = true`: every packet goes through the byte codec on its way, and nothing may change.

use anabranch_proto::wire::Packet;
use bytes::BytesMut;

/// Encodes and decodes a packet, as a real network would have it done.
///
/// # Panics
///
/// If it cannot be encoded, does not come back as it was, or its size is not the encoded length: errors of the
/// codec, not of the scenario.
pub(crate) fn through_the_codec(packet: Box<Packet>) -> Box<Packet> {
    let mut bytes = BytesMut::with_capacity(packet.size());
    packet.encode(&mut bytes).unwrap_or_else(|error| panic!("{error}: {packet:?}"));
    assert_eq!(bytes.len(), packet.size(), "{packet:?}");
    let decoded = Packet::decode(packet.from, packet.to, packet.ecn, bytes.freeze());
    let decoded = decoded.unwrap_or_else(|error| panic!("{error}: {packet:?}"));
    assert_eq!(decoded, *packet);
    Box::new(decoded)
}
