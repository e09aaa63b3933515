//! What an INIT or INIT ACK offers, what both ends offer, and how a cookie stores that.

use bytes::{Buf, BufMut, Bytes};

use smallvec::SmallVec;

use super::Extensions;
use crate::Config;
use crate::wire::{Cause, Param};

/// Chunk types that represent extensions in Supported Extensions.
const AUTH: u8 = 0x0f;
const NR_SACK: u8 = 0x10;
const I_DATA: u8 = 0x40;
const ASCONF_ACK: u8 = 0x80;
const RE_CONFIG: u8 = 0x82;
const PAD: u8 = 0x84;
const TIMESTAMP: u8 = 0x90;
const FORWARD_TSN: u8 = 0xc0;
const ASCONF: u8 = 0xc1;
const I_FORWARD_TSN: u8 = 0xc2;

/// The chunk types of ECN, which has a parameter of its own.
const ECNE: u8 = 12;
const CWR: u8 = 13;

/// The HMAC Identifiers that we offer, in order of preference.
//= rfc4895#section-3.3
const ALGORITHMS: [u16; 2] = [SHA_256, SHA_1];
pub(crate) const SHA_1: u16 = 1;
pub(crate) const SHA_256: u16 = 3;

/// The error detection method of RFC 9653: DTLS.
const DTLS: u32 = 1;
/// Bytes of the random number.
const RANDOM: usize = 32;
/// The largest number of HMAC Identifiers in a peer's list. A peer that lists more is not authenticated.
const MAX_ALGORITHMS: usize = 16;

/// The extensions that a peer's INIT or INIT ACK offers.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Offer {
    /// The chunk types in Supported Extensions.
    types: Bytes,
    forward_tsn: bool,
    zero_checksum: bool,
    ecn: bool,
    keying: Keying,
}

/// The parameters of one end from which the keys are computed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Keying {
    pub(crate) random: Bytes,
    /// Chunk types that this end accepts only with authentication. `None`: the parameter is missing.
    pub(crate) chunks: Option<Bytes>,
    pub(crate) algorithms: Vec<u16>,
}

/// The extensions that both ends use, and the parameters for them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Agreement {
    pub(crate) extensions: Extensions,
    /// Our random number, if authentication is used.
    pub(crate) random: [u8; RANDOM],
    pub(crate) peer: Keying,
}

/// Adds the parameters that offer the extensions of `config`.
//= rfc5061#section-4.2.7
pub(crate) fn offer(config: &Config, random: &[u8; RANDOM], params: &mut Vec<Param>) {
    let on = config.extensions;
    let mut types = SmallVec::<[u8; 16]>::new();
    if on.authentication {
        types.push(AUTH);
        params.extend(own_keying(config, random).params());
    }
    if on.addresses {
        types.extend([ASCONF, ASCONF_ACK]);
    }
    if on.partial_reliability {
        types.push(FORWARD_TSN);
        params.push(Param::ForwardTsnSupported);
    }
    if on.interleaving {
        types.push(I_DATA);
    }
    if on.interleaving && on.partial_reliability {
        types.push(I_FORWARD_TSN);
    }
    if on.reconfiguration {
        types.push(RE_CONFIG);
    }
    if on.timestamps {
        types.push(TIMESTAMP);
    }
    if on.nr_sack {
        types.push(NR_SACK);
    }
    if !types.is_empty() {
        types.push(PAD);
        params.push(Param::SupportedExtensions(Bytes::copy_from_slice(&types)));
    }
    params.extend(on.zero_checksum.then_some(Param::ZeroChecksum(DTLS)));
    params.extend(on.ecn.then_some(Param::EcnCapable));
}

/// Our parameters for the keys.
//= rfc4895#section-6.1
pub(crate) fn own_keying(config: &Config, random: &[u8; RANDOM]) -> Keying {
    let mut chunks = config.authenticated_chunks.clone();
    if config.extensions.addresses {
        //= rfc5061#section-4.1.1
        chunks.extend(
            [ASCONF, ASCONF_ACK].into_iter().filter(|kind| !config.authenticated_chunks.contains(kind)),
        );
    }
    Keying {
        random: Bytes::copy_from_slice(random),
        chunks: (!chunks.is_empty()).then(|| chunks.into()),
        algorithms: ALGORITHMS.to_vec(),
    }
}

impl Keying {
    fn params(&self) -> Vec<Param> {
        let random = [Param::Random(self.random.clone())];
        let chunks = self.chunks.iter().cloned().map(Param::ChunkList);
        random.into_iter().chain(chunks).chain([Param::HmacAlgorithms(self.algorithms.clone())]).collect()
    }

    /// The key vector: the three parameters without padding.
    //= rfc4895#section-6.1
    pub(crate) fn vector(&self) -> Vec<u8> {
        let bytes = |param: Param| Param::encode_list(&[param]).unwrap_or_default();
        self.params().into_iter().flat_map(bytes).collect()
    }

    /// The first algorithm in this end's list that we support.
    pub(crate) fn algorithm(&self) -> Option<u16> {
        self.algorithms.iter().copied().find(|algorithm| ALGORITHMS.contains(algorithm))
    }
}

impl Extensions {
    /// Whether a chunk of this type belongs to an extension that is on.
    pub(crate) fn have_chunk(self, number: u8) -> bool {
        match number {
            ECNE | CWR => self.ecn,
            AUTH => self.authentication,
            NR_SACK => self.nr_sack,
            I_DATA => self.interleaving,
            ASCONF | ASCONF_ACK => self.addresses,
            RE_CONFIG => self.reconfiguration,
            TIMESTAMP => self.timestamps,
            FORWARD_TSN => self.partial_reliability && !self.interleaving,
            I_FORWARD_TSN => self.partial_reliability && self.interleaving,
            _ => false,
        }
    }

    /// Whether a parameter of this type offers an extension that is on.
    fn have_parameter(self, kind: u16) -> bool {
        match kind {
            0x8000 => self.ecn,
            0x8001 => self.zero_checksum,
            0x8004 => self.authentication,
            0xc000 => self.partial_reliability,
            _ => false,
        }
    }
}

impl Offer {
    /// Takes a parameter of an extension. Returns it if its extension is switched off: it then counts as unrecognized.
    pub(crate) fn take<'a>(&mut self, param: &'a Param, config: &Config) -> Result<Option<&'a Param>, Cause> {
        let on = config.extensions;
        match param {
            Param::SupportedExtensions(types) if on.any() => self.types = types.clone(),
            Param::ForwardTsnSupported if on.partial_reliability => self.forward_tsn = true,
            Param::ZeroChecksum(method) if on.zero_checksum => self.zero_checksum = *method == DTLS,
            Param::EcnCapable if on.ecn => self.ecn = true,
            Param::Random(random) if on.authentication && random.len() != RANDOM => {
                let what = b"a random number of other than 32 bytes".as_slice();
                return Err(Cause::ProtocolViolation(what.into()));
            }
            Param::Random(random) if on.authentication => self.keying.random = random.clone(),
            Param::ChunkList(chunks) if on.authentication => self.keying.chunks = Some(chunks.clone()),
            Param::HmacAlgorithms(list) if on.authentication => self.keying.algorithms = list.clone(),
            Param::Padding(_) => {}
            Param::Unknown { kind, .. } if on.have_parameter(*kind) => {
                let what = b"a parameter of an extension that cannot be read".as_slice();
                return Err(Cause::ProtocolViolation(what.into()));
            }
            other => return Ok(Some(other)),
        }
        Ok(None)
    }

    /// Whether the offer keeps to the standard. Addresses change only by authenticated chunks: a peer that offers the
    /// one without the other is rejected if this end offers both.
    //= rfc5061#section-6
    pub(crate) fn is_consistent(&self, config: &Config) -> Result<(), Cause> {
        let offered = self.extensions();
        if config.extensions.addresses && offered.addresses && !offered.authentication {
            let what = b"ASCONF without authentication (RFC 5061)".as_slice();
            return Err(Cause::ProtocolViolation(what.into()));
        }
        Ok(())
    }

    /// Whether the offer is acceptable. With a shared key, a peer that cannot authenticate is rejected.
    pub(crate) fn acceptable(&self, config: &Config) -> Result<(), Cause> {
        let authentic = || config.extensions.both(self.extensions()).authentication;
        if config.shared_key.is_some() && !authentic() {
            let what = b"authentication is required (RFC 4895)".as_slice();
            return Err(Cause::ProtocolViolation(what.into()));
        }
        Ok(())
    }

    /// The extensions that both ends use.
    pub(crate) fn agree(self, config: &Config, random: [u8; RANDOM]) -> Agreement {
        let mut extensions = config.extensions.both(self.extensions());
        extensions.addresses &= extensions.authentication;
        //= rfc8260#section-2.3.1
        // Giving up interleaved messages requires a chunk type of its own.
        if extensions.interleaving && !self.types.contains(&I_FORWARD_TSN) {
            extensions.partial_reliability = false;
        }
        match extensions.authentication {
            true => Agreement { extensions, random, peer: self.keying },
            false => Agreement { extensions, ..Agreement::default() },
        }
    }

    /// The extensions that the peer offers.
    fn extensions(&self) -> Extensions {
        let has = |kind: u8| self.types.contains(&kind);
        let keying = &self.keying;
        Extensions {
            partial_reliability: self.forward_tsn || has(FORWARD_TSN),
            reconfiguration: has(RE_CONFIG),
            authentication: !keying.random.is_empty()
                && keying.algorithm().is_some()
                && keying.algorithms.len() <= MAX_ALGORITHMS
                && keying.chunks.as_ref().is_none_or(|chunks| chunks.len() <= 256),
            addresses: has(ASCONF) && has(ASCONF_ACK),
            interleaving: has(I_DATA),
            zero_checksum: self.zero_checksum,
            ecn: self.ecn,
            nr_sack: has(NR_SACK),
            timestamps: has(TIMESTAMP),
        }
    }
}

impl Agreement {
    /// Appends the agreement to a cookie. Appends nothing if nothing was agreed.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        if !self.extensions.any() {
            return;
        }
        let list = self.extensions.list();
        out.put_u16(list.iter().enumerate().map(|(bit, on)| u16::from(*on) << bit).sum());
        if !self.extensions.authentication {
            return;
        }
        out.put_slice(&self.random);
        out.put_slice(&self.peer.random);
        match &self.peer.chunks {
            None => out.put_u16(u16::MAX),
            Some(chunks) => {
                out.put_u16(chunks.len() as u16);
                out.put_slice(chunks);
            }
        }
        out.put_u8(self.peer.algorithms.len() as u8);
        self.peer.algorithms.iter().for_each(|algorithm| out.put_u16(*algorithm));
    }

    /// Reads the agreement from a cookie.
    pub(crate) fn take(b: &mut &[u8]) -> Option<Agreement> {
        let bits = b.try_get_u16().ok()?;
        let extensions = Extensions::of_list(std::array::from_fn(|bit| bits >> bit & 1 != 0));
        if !extensions.authentication {
            return Some(Agreement { extensions, ..Agreement::default() });
        }
        let random = *b.split_off(..RANDOM)?.first_chunk()?;
        let theirs = Bytes::copy_from_slice(b.split_off(..RANDOM)?);
        let chunks = match b.try_get_u16().ok()? {
            u16::MAX => None,
            count => Some(Bytes::copy_from_slice(b.split_off(..usize::from(count))?)),
        };
        let count = b.try_get_u8().ok()?;
        let algorithms = (0..count).map(|_| b.try_get_u16().ok()).collect::<Option<_>>()?;
        Some(Agreement { extensions, random, peer: Keying { random: theirs, chunks, algorithms } })
    }
}
