//! Authenticated chunks (RFC 4895): the association shared key, the AUTH chunk before chunks that the peer accepts only
//! with authentication, and the removal of received chunks that lack it.

use bytes::{Bytes, BytesMut};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;

use super::agreement::{Agreement, Keying, SHA_1, SHA_256, own_keying};
use crate::wire::chunk::{AUTH_HEADER, Auth, Covered};
use crate::wire::{Cause, Chunk, Packet};
use crate::{Config, SharedKey};

const DATA: u8 = 0;
const HEARTBEAT: u8 = 4;
const COOKIE_ECHO: u8 = 10;
const ASCONF_ACK: u8 = 0x80;
const PAD: u8 = 0x84;
const ASCONF: u8 = 0xc1;

/// The state that authenticates the chunks of an association.
#[derive(Clone, Debug)]
pub(crate) struct Authentication {
    /// The association shared key, and the identifier of the endpoint pair shared key that it contains.
    key: Vec<u8>,
    id: u16,
    /// The algorithm that the peer prefers.
    algorithm: u16,
    /// Chunk types that we accept only with authentication, and those of the peer.
    ours: Kinds,
    theirs: Kinds,
}

/// A set of chunk types.
#[derive(Clone, Debug)]
struct Kinds([bool; 256]);

impl Kinds {
    //= rfc4895#section-3.2
    fn of(keying: &Keying) -> Self {
        let mut kinds = Kinds([false; 256]);
        let listed = keying.chunks.iter().flatten().filter(|kind| !matches!(**kind, 1 | 2 | 14 | 15));
        listed.for_each(|kind| kinds.0[usize::from(*kind)] = true);
        kinds
    }

    fn has(&self, kind: u8) -> bool {
        self.0[usize::from(kind)]
    }
}

/// The result of verifying an AUTH chunk.
enum Verdict {
    Right,
    Wrong,
    /// Its algorithm was not offered.
    Unsupported(u16),
}

impl Authentication {
    /// Creates the state from an agreement; `None` if authentication was not agreed.
    pub(crate) fn new(config: &Config, agreement: &Agreement) -> Option<Self> {
        let own = own_keying(config, &agreement.random);
        let algorithm = agreement.peer.algorithm().filter(|_| agreement.extensions.authentication)?;
        let (id, secret) = match &config.shared_key {
            Some(SharedKey { id, secret }) => (*id, &secret[..]),
            None => (0, &[][..]),
        };
        let key = association_key(secret, own.vector(), agreement.peer.vector());
        let (ours, theirs) = (Kinds::of(&own), Kinds::of(&agreement.peer));
        Some(Authentication { key, id, algorithm, ours, theirs })
    }

    /// Bytes that AUTH takes in packets with data; 0 if none of their chunks requires it.
    pub(crate) fn overhead(&self) -> u32 {
        let any = (0..=255).any(|kind| kind != ASCONF && kind != ASCONF_ACK && self.theirs.has(kind));
        if any { self.size() } else { 0 }
    }

    /// Bytes that AUTH takes in a packet with these chunks.
    pub(crate) fn overhead_of(&self, chunks: &[Chunk]) -> u32 {
        if chunks.iter().any(|chunk| self.theirs.has(chunk.number())) { self.size() } else { 0 }
    }

    /// Bytes that AUTH takes in packets that probe a path: HEARTBEAT, and PAD behind it.
    pub(crate) fn overhead_of_probes(&self) -> u32 {
        if self.theirs.has(HEARTBEAT) || self.theirs.has(PAD) { self.size() } else { 0 }
    }

    /// Bytes that AUTH takes in packets with ASCONF-ACK, beyond those that packets with data reserve.
    pub(crate) fn overhead_of_asconf(&self) -> u32 {
        if self.theirs.has(ASCONF_ACK) { self.size() - self.overhead() } else { 0 }
    }

    /// The size of our AUTH chunks.
    fn size(&self) -> u32 {
        AUTH_HEADER as u32 + if self.algorithm == SHA_1 { 20 } else { 32 }
    }

    /// Inserts AUTH before the first chunk that the peer accepts only with authentication.
    //= rfc4895#section-6.2
    pub(super) fn seal(&self, packet: &mut Packet) {
        let Some(at) = packet.chunks.iter().position(|chunk| self.theirs.has(chunk.number())) else { return };
        let covered = encoded(&packet.chunks[at..]);
        let hmac = self.hmac(self.algorithm, self.id, &covered).unwrap_or_default();
        let auth = Auth { key: self.id, algorithm: self.algorithm, hmac, covered: Covered(Some(covered)) };
        packet.chunks.insert(at, Chunk::Auth(Box::new(auth)));
    }

    /// The HMAC over an AUTH chunk with an empty HMAC field and the chunks that follow it. `None`: the algorithm is
    /// unknown.
    //= rfc4895#section-6.2
    fn hmac(&self, algorithm: u16, id: u16, covered: &[u8]) -> Option<Bytes> {
        match algorithm {
            SHA_1 => {
                let mac = Hmac::<Sha1>::new_from_slice(&self.key).ok()?.chain_update(header(id, SHA_1, 20));
                let mac = mac.chain_update([0; 20]).chain_update(covered);
                Some(Bytes::copy_from_slice(&mac.finalize().into_bytes()))
            }
            SHA_256 => {
                let mac =
                    Hmac::<Sha256>::new_from_slice(&self.key).ok()?.chain_update(header(id, SHA_256, 32));
                let mac = mac.chain_update([0; 32]).chain_update(covered);
                Some(Bytes::copy_from_slice(&mac.finalize().into_bytes()))
            }
            _ => None,
        }
    }

    //= rfc4895#section-6.3
    fn verify(&self, auth: &Auth, behind: &[Chunk]) -> Verdict {
        let covered = auth.covered.0.clone().unwrap_or_else(|| encoded(behind));
        let Some(hmac) = self.hmac(auth.algorithm, auth.key, &covered) else {
            return Verdict::Unsupported(auth.algorithm);
        };
        // The time that this takes does not reveal where the HMACs differ.
        let difference = hmac.iter().zip(&auth.hmac).fold(0, |all, (a, b)| all | (a ^ b));
        let right = auth.key == self.id && hmac.len() == auth.hmac.len() && difference == 0;
        if right { Verdict::Right } else { Verdict::Wrong }
    }

    /// Whether a COOKIE ECHO in this packet is acceptable: an AUTH chunk before it must be valid, and must be present
    /// if COOKIE ECHO requires authentication.
    //= rfc4895#section-6.3
    pub(crate) fn admits_cookie(&self, packet: &Packet) -> bool {
        match packet.chunks.split_first() {
            Some((Chunk::Auth(auth), behind)) => matches!(self.verify(auth, behind), Verdict::Right),
            _ => !self.ours.has(COOKIE_ECHO),
        }
    }

    /// Whether a packet may change the peer's UDP port. If data requires authentication, so does this.
    pub(crate) fn may_move_peer(&self, packet: &Packet) -> bool {
        !self.ours.has(DATA) || self.is_authentic(packet)
    }

    /// Whether the packet has a valid AUTH chunk.
    fn is_authentic(&self, packet: &Packet) -> bool {
        let at = packet.chunks.iter().position(|chunk| matches!(chunk, Chunk::Auth(_)));
        match at.and_then(|at| packet.chunks[at..].split_first()) {
            Some((Chunk::Auth(auth), behind)) => matches!(self.verify(auth, behind), Verdict::Right),
            _ => false,
        }
    }

    /// Removes the chunks that follow an invalid AUTH, and the chunks that lack a required one. Returns the cause to
    /// report.
    //= rfc4895#section-6.3
    pub(crate) fn sift(&self, packet: &mut Packet) -> Option<Cause> {
        let chunks = &mut packet.chunks;
        let at = chunks.iter().position(|chunk| matches!(chunk, Chunk::Auth(_)));
        let mut report = None;
        let mut authentic = chunks.len();
        if let Some(at) = at
            && let (Chunk::Auth(auth), behind) = (&chunks[at], &chunks[at + 1..])
        {
            match self.verify(auth, behind) {
                Verdict::Right => authentic = at,
                Verdict::Wrong => chunks.truncate(at),
                Verdict::Unsupported(algorithm) => {
                    report = Some(Cause::UnsupportedHmac(algorithm));
                    chunks.truncate(at);
                }
            }
        }
        //= rfc5061#section-5.2
        // If an ASCONF is not authenticated, the rest of its packet is dropped too.
        let bare = |chunk: &Chunk| chunk.number() == ASCONF && self.ours.has(ASCONF);
        if let Some(at) = chunks.iter().take(authentic).position(bare) {
            chunks.truncate(at);
        }
        let mut place = 0;
        chunks.retain(|chunk| {
            place += 1;
            place > authentic || !self.ours.has(chunk.number())
        });
        report
    }
}

/// The endpoint pair shared key, then the smaller key vector, then the larger one.
//= rfc4895#section-6.1
fn association_key(secret: &[u8], a: Vec<u8>, b: Vec<u8>) -> Vec<u8> {
    // The vectors are compared as numbers. A vector begins with a parameter type, which is not zero, so the shorter one
    // is smaller.
    let smaller_first = (a.len(), &a) <= (b.len(), &b);
    let (smaller, larger) = if smaller_first { (a, b) } else { (b, a) };
    [secret, &smaller, &larger].concat()
}

/// An AUTH chunk up to its HMAC.
fn header(id: u16, algorithm: u16, hmac: u16) -> [u8; AUTH_HEADER] {
    let ([a, b], [c, d], [e, f]) =
        ((AUTH_HEADER as u16 + hmac).to_be_bytes(), id.to_be_bytes(), algorithm.to_be_bytes());
    [15, 0, a, b, c, d, e, f]
}

/// Encodes chunks as in a packet, with their padding.
fn encoded(chunks: &[Chunk]) -> Bytes {
    let mut out = BytesMut::with_capacity(chunks.iter().map(Chunk::padded_size).sum());
    for chunk in chunks {
        out.extend_from_slice(&chunk.to_bytes().unwrap_or_default());
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out.freeze()
}
