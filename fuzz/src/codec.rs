//! Bytes that may be packets, and bytes that may be parameters.

use std::net::{IpAddr, Ipv4Addr};

use anabranch_proto::wire::{Address, Cause, Chunk, DecodeError, Ecn, HEADER, Packet, Param, Quoted};
use bytes::{Bytes, BytesMut};

const PLACE: Address = Address::ip(IpAddr::V4(Ipv4Addr::LOCALHOST));

/// Whatever these bytes are taken for comes back equal; with a right checksum, and with the one they carry.
pub fn packet(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    let unchecked = unchecked(bytes.clone());
    match decoded(bytes.clone()) {
        Err(DecodeError::Checksum { computed, .. }) => {
            let mut right = BytesMut::from(&bytes[..]);
            right[8..HEADER].copy_from_slice(&computed.to_le_bytes());
            assert_eq!(decoded(right.freeze()), unchecked, "with the checksum that was asked for");
        }
        checked => assert_eq!(checked, unchecked, "with a right checksum"),
    }
    if let Ok(packet) = unchecked {
        comes_back(&packet, bytes.len());
        // ICMP quotes the beginning of a packet.
        let quoted = Quoted::read(&bytes).expect("a whole packet says enough");
        assert_eq!((quoted.ports, quoted.tag), (packet.ports, packet.tag));
    }
    let _ = Quoted::read(&bytes);
}

/// Whatever these bytes are taken for, as a list of parameters or of causes, comes back equal.
pub fn params(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    list_comes_back(&bytes);
    let Ok(packet) = unchecked(as_error(&bytes)) else { return };
    comes_back(&packet, HEADER + 4 + bytes.len().next_multiple_of(4));
    let Some(Chunk::Error(error)) = packet.chunks.first() else { panic!("an ERROR was put there") };
    error.causes.iter().for_each(enclosed);
}

fn list_comes_back(bytes: &Bytes) {
    let Ok(list) = Param::decode_list(bytes) else { return };
    let again = Param::encode_list(&list).expect("what was decoded can be encoded");
    assert!(again.len() <= bytes.len());
    assert_eq!(Param::decode_list(&again).as_ref(), Ok(&list));
    for param in &list {
        if let Param::Unrecognized(inner) = param {
            let _ = Param::decode_list(inner);
        }
    }
}

/// Parameters that stand inside a cause.
fn enclosed(cause: &Cause) {
    match cause {
        Cause::UnresolvableAddress(inner)
        | Cause::UnrecognizedParameters(inner)
        | Cause::RestartWithNewAddresses(inner) => list_comes_back(inner),
        _ => {}
    }
}

/// A packet with an ERROR whose causes are these bytes.
fn as_error(causes: &Bytes) -> Bytes {
    let mut packet = vec![0; HEADER];
    packet.extend([9, 0]);
    packet.extend((4 + causes.len() as u16).to_be_bytes());
    packet.extend_from_slice(causes);
    packet.resize(packet.len().next_multiple_of(4), 0);
    packet.into()
}

fn comes_back(packet: &Packet, size: usize) {
    let mut out = BytesMut::new();
    packet.encode(&mut out).expect("what was decoded can be encoded");
    assert_eq!(out.len(), packet.size());
    // The last chunk's padding may be missing; it is always sent.
    assert!(out.len() <= size.next_multiple_of(4), "{} bytes became {}", size, out.len());
    let mut at = HEADER;
    for chunk in &packet.chunks {
        let alone = chunk.to_bytes().expect("what was decoded can be encoded");
        assert_eq!(alone[..], out[at..at + chunk.padded_size()]);
        at += chunk.padded_size();
    }
    assert_eq!(decoded(out.freeze()).as_ref(), Ok(packet));
}

fn decoded(bytes: Bytes) -> Result<Packet, DecodeError> {
    Packet::decode(PLACE, PLACE, Ecn::NotEct, bytes)
}

fn unchecked(bytes: Bytes) -> Result<Packet, DecodeError> {
    Packet::decode_unchecked(PLACE, PLACE, Ecn::NotEct, bytes)
}
