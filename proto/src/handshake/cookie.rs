//! The state cookie: all that is known of an association before it exists, signed, and kept by the peer
//! (RFC 9260 §5.1.3).

use std::net::IpAddr;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use hmac::{Hmac, KeyInit, Mac};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use sha2::Sha256;

use crate::extension::Agreement;
use crate::wire::Address;
use crate::{Duration, Time, Tsn};

/// Extensions were agreed: what follows says which.
const AGREED: u8 = 0x80;
/// Bytes of the signature.
const SIGNATURE: usize = 32;
/// Peer addresses that a cookie carries at most.
pub(crate) const MAX_ADDRESSES: usize = 32;

/// What a cookie says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cookie {
    pub(crate) created: Time,
    pub(crate) life: Duration,
    pub(crate) local_tag: u32,
    pub(crate) peer_tag: u32,
    pub(crate) local_tsn: Tsn,
    pub(crate) peer_tsn: Tsn,
    pub(crate) peer_buffer: u32,
    /// Streams that we may send on, and the peer may.
    pub(crate) streams: (u16, u16),
    /// The tags of an association that existed when the INIT came, ours and the peer's; zero if none did.
    pub(crate) ties: (u32, u32),
    pub(crate) local: Address,
    pub(crate) peer_port: u16,
    /// The addresses that the INIT named, and where it came from.
    pub(crate) peers: Vec<Address>,
    /// Which of them the INIT came from and the INIT ACK went to.
    pub(crate) answered: u8,
    pub(crate) agreement: Agreement,
}

/// The keys that cookies are signed with: the present one, and the one before.
pub(crate) struct Secrets {
    keys: [[u8; 32]; 2],
    /// Since when the present one is in use.
    since: Option<Time>,
    /// New keys come from here, so that their number changes no other draw.
    chance: ChaCha8Rng,
}

impl Secrets {
    pub(crate) fn new(chance: &mut ChaCha8Rng) -> Self {
        let mut seed = [0; 32];
        chance.fill_bytes(&mut seed);
        let mut secrets = Secrets { keys: [[0; 32]; 2], since: None, chance: ChaCha8Rng::from_seed(seed) };
        secrets.keys.iter_mut().for_each(|key| secrets.chance.fill_bytes(key));
        secrets
    }

    /// The key to sign with now. Cookies live at most twice `life`; so long does a key stay valid.
    pub(crate) fn current(&mut self, now: Time, life: Duration) -> &[u8; 32] {
        let since = *self.since.get_or_insert(now);
        if now.since(since) > life * 2 {
            self.keys[1] = self.keys[0];
            self.chance.fill_bytes(&mut self.keys[0]);
            self.since = Some(now);
        }
        &self.keys[0]
    }

    /// Reads a cookie signed with either key.
    pub(crate) fn open(&self, bytes: &[u8], now: Time) -> Result<Cookie, BadCookie> {
        match Cookie::open(bytes, &self.keys[0], now) {
            Err(BadCookie::Forged) => Cookie::open(bytes, &self.keys[1], now),
            other => other,
        }
    }
}

/// Why a cookie was not taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum BadCookie {
    /// It is not one of ours, or was changed.
    Forged,
    /// This is what it says, but it is too old, by so much.
    Stale(Box<Cookie>, Duration),
}

impl Cookie {
    /// The pair of addresses that the INIT ACK went by: whoever has the cookie receives what goes there.
    pub(crate) fn pair(&self) -> Option<(Address, Address)> {
        self.peers.get(usize::from(self.answered)).map(|peer| (self.local, *peer))
    }

    /// The cookie as bytes, signed with `secret`.
    pub(crate) fn sign(&self, secret: &[u8; 32]) -> Bytes {
        let mut out = BytesMut::with_capacity(160);
        out.put_u64(self.created.as_nanos());
        out.put_u64(self.life.as_nanos() as u64);
        for word in [self.local_tag, self.peer_tag, self.local_tsn.0, self.peer_tsn.0, self.peer_buffer] {
            out.put_u32(word);
        }
        out.put_u16(self.streams.0);
        out.put_u16(self.streams.1);
        out.put_u32(self.ties.0);
        out.put_u32(self.ties.1);
        put_address(&mut out, self.local);
        out.put_u16(self.peer_port);
        let agreed = if self.agreement.extensions.any() { AGREED } else { 0 };
        out.put_u8(self.answered | agreed);
        self.agreement.put(&mut out);
        self.peers.iter().take(MAX_ADDRESSES).for_each(|peer| put_address(&mut out, *peer));
        let signature = mac(secret, &out).finalize().into_bytes();
        out.put_slice(&signature);
        out.freeze()
    }

    /// Reads a cookie that came back.
    //= rfc9260#section-5.1.5
    pub(crate) fn open(bytes: &[u8], secret: &[u8; 32], now: Time) -> Result<Cookie, BadCookie> {
        let split = bytes.len().checked_sub(SIGNATURE).ok_or(BadCookie::Forged)?;
        let (content, signature) = bytes.split_at(split);
        mac(secret, content).verify_slice(signature).map_err(|_| BadCookie::Forged)?;
        let cookie = Cookie::parse(content).ok_or(BadCookie::Forged)?;
        let age = now.since(cookie.created);
        match age.checked_sub(cookie.life) {
            Some(over) if !over.is_zero() => Err(BadCookie::Stale(Box::new(cookie), over)),
            _ => Ok(cookie),
        }
    }

    fn parse(mut b: &[u8]) -> Option<Cookie> {
        let created = Time::from_nanos(b.try_get_u64().ok()?);
        let life = Duration::from_nanos(b.try_get_u64().ok()?);
        let local_tag = b.try_get_u32().ok()?;
        let peer_tag = b.try_get_u32().ok()?;
        let local_tsn = Tsn(b.try_get_u32().ok()?);
        let peer_tsn = Tsn(b.try_get_u32().ok()?);
        let peer_buffer = b.try_get_u32().ok()?;
        let streams = (b.try_get_u16().ok()?, b.try_get_u16().ok()?);
        let ties = (b.try_get_u32().ok()?, b.try_get_u32().ok()?);
        let local = get_address(&mut b)?;
        let peer_port = b.try_get_u16().ok()?;
        let flags = b.try_get_u8().ok()?;
        let answered = flags & !AGREED;
        let agreement = if flags & AGREED != 0 { Agreement::take(&mut b)? } else { Agreement::default() };
        let mut peers = Vec::new();
        while !b.is_empty() {
            peers.push(get_address(&mut b)?);
        }
        Some(Cookie {
            created,
            life,
            local_tag,
            peer_tag,
            local_tsn,
            peer_tsn,
            peer_buffer,
            streams,
            ties,
            local,
            peer_port,
            peers,
            answered,
            agreement,
        })
    }
}

fn mac(secret: &[u8; 32], content: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(content);
    mac
}

fn put_address(out: &mut BytesMut, address: Address) {
    out.put_u16(address.udp);
    match address.ip {
        IpAddr::V4(ip) => {
            out.put_u8(4);
            out.put_u32(ip.to_bits());
        }
        IpAddr::V6(ip) => {
            out.put_u8(6);
            out.put_u128(ip.to_bits());
        }
    }
}

fn get_address(b: &mut &[u8]) -> Option<Address> {
    let udp = b.try_get_u16().ok()?;
    let ip = match b.try_get_u8().ok()? {
        4 => IpAddr::V4(b.try_get_u32().ok()?.into()),
        6 => IpAddr::V6(b.try_get_u128().ok()?.into()),
        _ => return None,
    };
    Some(Address { ip, udp })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie() -> Cookie {
        let address = |last| Address { ip: IpAddr::V4([10, 0, 0, last].into()), udp: 9899 };
        Cookie {
            created: Time::from_nanos(5),
            life: Duration::from_secs(60),
            local_tag: 1,
            peer_tag: 2,
            local_tsn: Tsn(3),
            peer_tsn: Tsn(4),
            peer_buffer: 5,
            streams: (6, 7),
            ties: (8, 9),
            local: address(1),
            peer_port: 10,
            peers: vec![address(2), Address::ip(IpAddr::V6(1.into()))],
            answered: 1,
            agreement: Agreement::default(),
        }
    }

    #[test]
    fn it_comes_back_as_it_went() {
        let bytes = cookie().sign(&[1; 32]);
        assert_eq!(Cookie::open(&bytes, &[1; 32], Time::from_nanos(9)), Ok(cookie()));
    }

    #[test]
    fn any_change_is_found() {
        let bytes = cookie().sign(&[1; 32]);
        assert_eq!(Cookie::open(&bytes, &[2; 32], Time::ZERO), Err(BadCookie::Forged));
        for i in 0..bytes.len() {
            let mut changed = bytes.to_vec();
            changed[i] ^= 1;
            assert_eq!(Cookie::open(&changed, &[1; 32], Time::ZERO), Err(BadCookie::Forged));
            assert_eq!(Cookie::open(&bytes[..i], &[1; 32], Time::ZERO), Err(BadCookie::Forged));
        }
    }

    #[test]
    fn it_grows_stale() {
        let bytes = cookie().sign(&[1; 32]);
        let late = Time::from_nanos(5) + Duration::from_secs(61);
        let stale = BadCookie::Stale(Box::new(cookie()), Duration::from_secs(1));
        assert_eq!(Cookie::open(&bytes, &[1; 32], late), Err(stale));
    }
}
