//! `wire = true`: every packet is encoded and decoded on its way, and must not change.

use anabranch_proto::wire::Packet;
use bytes::BytesMut;

/// Encodes and decodes a packet as on a real network.
///
/// # Panics
///
/// If the packet cannot be encoded, changes, or its size is not its encoded length. These are errors of the codec, not
/// of the scenario.
#[inline(never)]
pub(crate) fn through_the_codec(packet: Box<Packet>) -> Box<Packet> {
    let mut bytes = BytesMut::with_capacity(packet.size());
    packet.encode(&mut bytes).unwrap_or_else(|error| panic!("{error}: {packet:?}"));
    assert_eq!(bytes.len(), packet.size(), "{packet:?}");
    let decoded = Packet::decode(packet.from, packet.to, packet.ecn, bytes.freeze());
    let decoded = decoded.unwrap_or_else(|error| panic!("{error}: {packet:?}"));
    assert_eq!(decoded, *packet);
    Box::new(decoded)
}
