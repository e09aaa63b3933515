//! Keys, tokens and initial data sequence numbers of a connection (RFC 8684 §3.1 and §3.2).

use std::net::IpAddr;

use sha2::{Digest, Sha256};

/// The keys of both hosts. In a run, both ends know them from the beginning; the handshake still carries them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Keys {
    /// This end's key.
    pub(super) own: u64,
    /// The other end's key.
    pub(super) other: u64,
}

impl Keys {
    /// The keys as the other end stores them.
    pub(super) fn turned(self) -> Self {
        Keys { own: self.other, other: self.own }
    }

    /// The token that identifies the connection at the other end.
    pub(super) fn token(self) -> u32 {
        u32::from_be_bytes(part(&digest(self.other), 0))
    }

    /// The data sequence numbers of the first byte in each direction: sent and received.
    //= rfc8684#section-3.1
    pub(super) fn first_numbers(self) -> (u64, u64) {
        let first = |key| u64::from_be_bytes(part(&digest(key), 24)).wrapping_add(1);
        (first(self.own), first(self.other))
    }

    /// The HMAC with which this end authenticates a subflow with these nonces.
    //= rfc8684#section-3.2
    pub(super) fn proof(self, own: u32, other: u32) -> [u8; 32] {
        hmac(self, &[own.to_be_bytes(), other.to_be_bytes()].concat())
    }

    /// The HMAC of an address that this end advertises without a port.
    //= rfc8684#section-3.4.1
    pub(super) fn address_hmac(self, id: u8, address: IpAddr) -> u64 {
        let mut message = vec![id];
        match address {
            IpAddr::V4(address) => message.extend(address.octets()),
            IpAddr::V6(address) => message.extend(address.octets()),
        }
        message.extend([0, 0]);
        u64::from_be_bytes(part(&hmac(self, &message), 24))
    }
}

/// `N` octets of a digest, beginning at `from`.
pub(super) fn part<const N: usize>(digest: &[u8; 32], from: usize) -> [u8; N] {
    std::array::from_fn(|i| digest[from + i])
}

fn digest(key: u64) -> [u8; 32] {
    Sha256::digest(key.to_be_bytes()).into()
}

/// HMAC-SHA256 (RFC 2104) with both keys, this end's first.
fn hmac(keys: Keys, message: &[u8]) -> [u8; 32] {
    let mut key = [0; 64];
    key[..8].copy_from_slice(&keys.own.to_be_bytes());
    key[8..16].copy_from_slice(&keys.other.to_be_bytes());
    let inner = Sha256::new().chain_update(key.map(|octet| octet ^ 0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(key.map(|octet| octet ^ 0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values were computed with Python's hmac and hashlib.
    #[test]
    fn both_ends_derive_the_same() {
        let keys = Keys { own: 1, other: 2 };
        assert_eq!(keys.first_numbers().0, keys.turned().first_numbers().1);
        assert_eq!(keys.token(), TOKEN);
        assert_eq!(u64::from_be_bytes(part(&keys.proof(3, 4), 0)), PROOF);
    }

    const TOKEN: u32 = 0xcd04_a475;
    const PROOF: u64 = 0xe5c5_265e_f877_e594;
}
