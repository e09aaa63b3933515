//! The options of Multipath TCP in a segment (RFC 8684 §3), as types and as bytes.
//!
//! Data sequence numbers have 8 octets. The receiver of data acknowledges with 8 octets, its sender with 4, as existing
//! implementations do. There are no checksums.

use std::net::IpAddr;

/// The kind of the option.
const KIND: u8 = 30;
const NO_OPERATION: u8 = 1;
/// The space for options in a TCP header, in octets.
pub(crate) const OPTION_SPACE: u32 = 40;
/// Octets of the option that accompanies data: a mapping and a short acknowledgement, padded.
pub(crate) const DATA_OPTION: u32 = 24;

/// The Multipath TCP options of a segment.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MptcpOptions {
    /// DSS: acknowledges data, and maps the segment's data.
    pub dss: Option<Dss>,
    /// The options that few segments have. They are on the heap, because they are larger than the rest of a segment.
    pub rare: Option<Box<RareOptions>>,
}

/// The Multipath TCP options of segments that set up or change subflows.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct RareOptions {
    /// MP_CAPABLE or MP_JOIN.
    pub handshake: Option<Handshake>,
    /// ADD_ADDR.
    pub add_address: Option<AddAddress>,
    /// MP_PRIO: whether the subflow becomes a backup.
    pub backup: Option<bool>,
}

/// The handshake of a connection or a subflow (RFC 8684 §3.1 and §3.2).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Handshake {
    /// MP_CAPABLE on a SYN.
    Capable,
    /// MP_CAPABLE on the SYN-ACK.
    CapableKey {
        /// The sender's key.
        key: u64,
    },
    /// MP_CAPABLE on the third segment, or on the first one with data.
    CapableKeys {
        /// The sender's key.
        key: u64,
        /// The other host's key.
        other: u64,
        /// Bytes of data, if the segment has any.
        length: Option<u16>,
    },
    /// MP_JOIN on a SYN.
    Join {
        /// Whether the subflow is a backup.
        backup: bool,
        /// The identifier of the sender's address.
        address: u8,
        /// The token that identifies the connection at the other host.
        token: u32,
        /// A random number.
        nonce: u32,
    },
    /// MP_JOIN on the SYN-ACK.
    JoinAnswer {
        /// Whether the subflow is a backup.
        backup: bool,
        /// The identifier of the sender's address.
        address: u8,
        /// The first 8 octets of the HMAC.
        hmac: u64,
        /// A random number.
        nonce: u32,
    },
    /// MP_JOIN on the third segment: the first 20 octets of the HMAC.
    JoinProof([u8; 20]),
}

/// Data sequence signal (RFC 8684 §3.3).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Dss {
    /// The next data sequence number that the sender of the segment expects.
    pub ack: Option<DataAck>,
    /// The mapping of the segment's data.
    pub mapping: Option<Mapping>,
    /// DATA_FIN: the last number of the mapping is the end of the data.
    pub fin: bool,
}

/// An acknowledgement of data with 4 or 8 octets.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DataAck {
    /// The lower half of the number.
    Short(u32),
    /// The whole number.
    Long(u64),
}

/// The mapping of a run of a subflow's bytes to the connection's data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// The data sequence number of the first byte.
    pub data: u64,
    /// The number of the first byte in the subflow, counted from the SYN; 0 if the segment has no data.
    pub subflow: u32,
    /// Length in bytes, with DATA_FIN.
    pub length: u16,
}

/// ADD_ADDR (RFC 8684 §3.4.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AddAddress {
    /// The identifier of the address.
    pub id: u8,
    /// The address.
    pub address: IpAddr,
    /// The last 8 octets of the HMAC. `None`: this is an echo, which confirms that the option has arrived.
    pub hmac: Option<u64>,
}

impl MptcpOptions {
    /// MP_CAPABLE or MP_JOIN, if it is one of them.
    pub fn handshake(&self) -> Option<Handshake> {
        self.rare.as_ref()?.handshake
    }

    /// This option of a handshake alone.
    pub(super) fn shaking(handshake: Handshake) -> Self {
        let rare = RareOptions { handshake: Some(handshake), ..RareOptions::default() };
        MptcpOptions { dss: None, rare: Some(Box::new(rare)) }
    }

    /// The rare options, to be filled in.
    pub(super) fn rare_mut(&mut self) -> &mut RareOptions {
        self.rare.get_or_insert_default()
    }

    /// Length in octets, with each option padded to a multiple of four.
    pub fn size(&self) -> u32 {
        let dss = self.dss.map_or(0, |dss| dss.length().next_multiple_of(4));
        dss + self.rare.as_ref().map_or(0, |rare| rare.size())
    }

    /// Encodes the options.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(OPTION_SPACE as usize);
        let RareOptions { handshake, add_address, backup } =
            self.rare.as_deref().copied().unwrap_or_default();
        if let Some(handshake) = handshake {
            handshake.encode(&mut out);
        }
        if let Some(dss) = self.dss {
            dss.encode(&mut out);
        }
        if let Some(address) = add_address {
            address.encode(&mut out);
        }
        if let Some(backup) = backup {
            out.extend([KIND, 3, 5 << 4 | u8::from(backup)]);
            pad(&mut out);
        }
        out
    }

    /// Decodes the Multipath TCP options of a TCP header; `None` if there are none.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut options = MptcpOptions::default();
        while let [kind, rest @ ..] = bytes {
            bytes = match kind {
                0 => break,
                &NO_OPERATION => rest,
                _ => {
                    let length = usize::from(*rest.first()?);
                    let (option, after) = bytes.split_at_checked(length.max(2))?;
                    if *kind == KIND {
                        options.read(option.get(2..)?);
                    }
                    after
                }
            };
        }
        (options != MptcpOptions::default()).then_some(options)
    }

    /// Reads one option, without kind and length. Unreadable options are skipped.
    fn read(&mut self, bytes: &[u8]) {
        match bytes.first().map(|first| first >> 4) {
            Some(0 | 1) => self.set_rare(|rare| rare.handshake = Handshake::decode(bytes)),
            Some(2) => self.dss = Dss::decode(bytes),
            Some(3) => self.set_rare(|rare| rare.add_address = AddAddress::decode(bytes)),
            Some(5) => self.set_rare(|rare| rare.backup = Some(bytes[0] & 1 != 0)),
            _ => {}
        }
    }

    /// Changes the rare options. If there are none afterwards, the segment has no place for them.
    fn set_rare(&mut self, set: impl FnOnce(&mut RareOptions)) {
        set(self.rare_mut());
        self.rare.take_if(|rare| **rare == RareOptions::default());
    }
}

impl RareOptions {
    fn size(&self) -> u32 {
        let handshake = self.handshake.map_or(0, Handshake::length);
        let address = self.add_address.map_or(0, AddAddress::length);
        handshake + address + if self.backup.is_some() { 4 } else { 0 }
    }
}

impl Handshake {
    fn length(self) -> u32 {
        match self {
            Handshake::Capable => 4,
            Handshake::CapableKey { .. } | Handshake::Join { .. } => 12,
            Handshake::CapableKeys { length: None, .. } => 20,
            Handshake::CapableKeys { length: Some(_), .. } => 24,
            Handshake::JoinAnswer { .. } => 16,
            Handshake::JoinProof(_) => 24,
        }
    }

    fn encode(self, out: &mut Vec<u8>) {
        /// Version 1 of Multipath TCP.
        const CAPABLE: u8 = 1;
        const JOIN: u8 = 1 << 4;
        /// H: HMAC-SHA256.
        const SHA256: u8 = 1;
        match self {
            Handshake::Capable => out.extend([KIND, 4, CAPABLE, SHA256]),
            Handshake::CapableKey { key } => {
                out.extend([KIND, 12, CAPABLE, SHA256]);
                out.extend(key.to_be_bytes());
            }
            Handshake::CapableKeys { key, other, length } => {
                out.extend([KIND, if length.is_some() { 22 } else { 20 }, CAPABLE, SHA256]);
                out.extend(key.to_be_bytes());
                out.extend(other.to_be_bytes());
                out.extend(length.into_iter().flat_map(u16::to_be_bytes));
            }
            Handshake::Join { backup, address, token, nonce } => {
                out.extend([KIND, 12, JOIN | u8::from(backup), address]);
                out.extend(token.to_be_bytes());
                out.extend(nonce.to_be_bytes());
            }
            Handshake::JoinAnswer { backup, address, hmac, nonce } => {
                out.extend([KIND, 16, JOIN | u8::from(backup), address]);
                out.extend(hmac.to_be_bytes());
                out.extend(nonce.to_be_bytes());
            }
            Handshake::JoinProof(hmac) => {
                out.extend([KIND, 24, JOIN, 0]);
                out.extend(hmac);
            }
        }
        pad(out);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (first, second) = (*bytes.first()?, *bytes.get(1)?);
        let backup = first & 1 != 0;
        Some(match (first >> 4, bytes.len()) {
            (0, 2) => Handshake::Capable,
            (0, 10) => Handshake::CapableKey { key: long(bytes, 2)? },
            (0, 18 | 20) => {
                let length = short(bytes, 18);
                Handshake::CapableKeys { key: long(bytes, 2)?, other: long(bytes, 10)?, length }
            }
            (1, 10) => {
                let (token, nonce) = (word(bytes, 2)?, word(bytes, 6)?);
                Handshake::Join { backup, address: second, token, nonce }
            }
            (1, 14) => {
                let (hmac, nonce) = (long(bytes, 2)?, word(bytes, 10)?);
                Handshake::JoinAnswer { backup, address: second, hmac, nonce }
            }
            (1, 22) => Handshake::JoinProof(bytes.get(2..)?.try_into().ok()?),
            _ => return None,
        })
    }
}

impl Dss {
    const FIN: u8 = 0x10;
    const LONG_NUMBER: u8 = 0x08;
    const MAPPING: u8 = 0x04;
    const LONG_ACK: u8 = 0x02;
    const ACK: u8 = 0x01;

    fn length(self) -> u32 {
        let ack = match self.ack {
            None => 0,
            Some(DataAck::Short(_)) => 4,
            Some(DataAck::Long(_)) => 8,
        };
        4 + ack + if self.mapping.is_some() { 14 } else { 0 }
    }

    fn encode(self, out: &mut Vec<u8>) {
        let mut flags = if self.fin { Self::FIN } else { 0 };
        flags |= match self.ack {
            None => 0,
            Some(DataAck::Short(_)) => Self::ACK,
            Some(DataAck::Long(_)) => Self::ACK | Self::LONG_ACK,
        };
        flags |= if self.mapping.is_some() { Self::MAPPING | Self::LONG_NUMBER } else { 0 };
        out.extend([KIND, self.length() as u8, 2 << 4, flags]);
        match self.ack {
            None => {}
            Some(DataAck::Short(number)) => out.extend(number.to_be_bytes()),
            Some(DataAck::Long(number)) => out.extend(number.to_be_bytes()),
        }
        if let Some(Mapping { data, subflow, length }) = self.mapping {
            out.extend(data.to_be_bytes());
            out.extend(subflow.to_be_bytes());
            out.extend(length.to_be_bytes());
        }
        pad(out);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let flags = *bytes.get(1)?;
        let set = |bit| flags & bit != 0;
        let ack = match (set(Self::ACK), set(Self::LONG_ACK)) {
            (false, _) => None,
            (true, false) => Some(DataAck::Short(word(bytes, 2)?)),
            (true, true) => Some(DataAck::Long(long(bytes, 2)?)),
        };
        let from = match ack {
            None => 2,
            Some(DataAck::Short(_)) => 6,
            Some(DataAck::Long(_)) => 10,
        };
        let mapping = if set(Self::MAPPING) {
            let (data, subflow) = (long(bytes, from)?, word(bytes, from + 8)?);
            Some(Mapping { data, subflow, length: short(bytes, from + 12)? })
        } else {
            None
        };
        Some(Dss { ack, mapping, fin: set(Self::FIN) })
    }
}

impl AddAddress {
    fn length(self) -> u32 {
        let address = if self.address.is_ipv4() { 4 } else { 16 };
        4 + address + if self.hmac.is_some() { 8 } else { 0 }
    }

    fn encode(self, out: &mut Vec<u8>) {
        out.extend([KIND, self.length() as u8, 3 << 4 | u8::from(self.hmac.is_none()), self.id]);
        match self.address {
            IpAddr::V4(address) => out.extend(address.octets()),
            IpAddr::V6(address) => out.extend(address.octets()),
        }
        out.extend(self.hmac.into_iter().flat_map(u64::to_be_bytes));
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (flags, id) = (*bytes.first()?, *bytes.get(1)?);
        let rest = bytes.get(2..)?;
        let echo = flags & 1 != 0;
        let (address, hmac) = rest.split_at_checked(rest.len() - if echo { 0 } else { 8.min(rest.len()) })?;
        let address = match address.len() {
            4 => IpAddr::from(<[u8; 4]>::try_from(address).ok()?),
            16 => IpAddr::from(<[u8; 16]>::try_from(address).ok()?),
            _ => return None,
        };
        Some(AddAddress { id, address, hmac: if echo { None } else { Some(long(hmac, 0)?) } })
    }
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), NO_OPERATION);
}

/// Two bytes of a header, from a place on.
pub(crate) fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Four bytes of a header.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Eight bytes of a header.
pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rare(rare: RareOptions) -> MptcpOptions {
        MptcpOptions { rare: Some(Box::new(rare)), dss: None }
    }

    fn with(handshake: Handshake) -> MptcpOptions {
        rare(RareOptions { handshake: Some(handshake), ..RareOptions::default() })
    }

    #[test]
    fn what_is_written_is_read() {
        let mapping = Some(Mapping { data: 1 << 40, subflow: 7, length: 1436 });
        let dss = |ack, mapping, fin| MptcpOptions { dss: Some(Dss { ack, mapping, fin }), rare: None };
        let address = |address: &str, hmac| {
            let address = address.parse().expect("an address");
            rare(RareOptions {
                add_address: Some(AddAddress { id: 2, address, hmac }),
                ..RareOptions::default()
            })
        };
        let all = [
            (with(Handshake::Capable), 4),
            (with(Handshake::CapableKey { key: 9 }), 12),
            (with(Handshake::CapableKeys { key: 9, other: 8, length: None }), 20),
            (with(Handshake::CapableKeys { key: 9, other: 8, length: Some(1436) }), 24),
            (with(Handshake::Join { backup: true, address: 1, token: 5, nonce: 6 }), 12),
            (with(Handshake::JoinAnswer { backup: false, address: 1, hmac: 5, nonce: 6 }), 16),
            (with(Handshake::JoinProof([7; 20])), 24),
            (dss(Some(DataAck::Short(5)), mapping, false), DATA_OPTION),
            (dss(Some(DataAck::Long(1 << 50)), None, false), 12),
            (dss(Some(DataAck::Long(1 << 50)), mapping, true), 28),
            (address("10.0.0.1", Some(1)), 16),
            (address("fd00::1", None), 20),
            (rare(RareOptions { backup: Some(true), ..RareOptions::default() }), 4),
        ];
        for (options, size) in all {
            let bytes = options.encode();
            assert_eq!((bytes.len() as u32, options.size()), (size, size), "{options:?}");
            assert_eq!(MptcpOptions::decode(&bytes), Some(options));
        }
    }

    #[test]
    fn what_is_cut_short_is_no_option() {
        let bytes = with(Handshake::JoinProof([7; 20])).encode();
        for end in 0..bytes.len() {
            assert_eq!(MptcpOptions::decode(&bytes[..end]), None, "{end} octets");
        }
    }
}
