//! The state cookie. It holds the whole state of an association before the association exists; the peer keeps it,
//! signed (RFC 9260 §5.1.3).

use std::collections::BTreeSet;
use std::net::IpAddr;

use bytes::{Buf, BufMut, Bytes};
use hmac::{Hmac, KeyInit, Mac};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use sha2::Sha256;

use super::Addresses;
use crate::chance::SeldomChance;
use crate::digest::Digest;
use crate::extension::Agreement;
use crate::wire::Address;
use crate::{Duration, Time, Tsn};

/// Extensions were agreed: the cookie lists them.
const AGREED: u8 = 0x80;
/// Bytes of the signature.
const SIGNATURE: usize = 32;
/// The largest number of peer addresses in a cookie.
pub(crate) const MAX_ADDRESSES: usize = 32;

/// The contents of a cookie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cookie {
    pub(crate) created: Time,
    pub(crate) life: Duration,
    pub(crate) local_tag: u32,
    pub(crate) peer_tag: u32,
    pub(crate) local_tsn: Tsn,
    pub(crate) peer_tsn: Tsn,
    pub(crate) peer_buffer: u32,
    /// The numbers of outbound and inbound streams.
    pub(crate) streams: (u16, u16),
    /// The tags (ours, the peer's) of an association that existed when the INIT arrived; zero if there was none.
    pub(crate) ties: (u32, u32),
    pub(crate) local: Address,
    pub(crate) peer_port: u16,
    /// The addresses that the INIT named, and its source.
    pub(crate) peers: Addresses,
    /// The pair of addresses of the INIT and the INIT ACK.
    pub(crate) answered: u8,
    pub(crate) agreement: Agreement,
}

/// The largest number of tags remembered for each key, about 0.5 MB for both. With more, a new key is used early.
const MOST_USED: usize = 1 << 16;

/// The keys that sign cookies, the present one and the one before, and the used cookies.
///
/// A cookie that has made an association makes no other one. Otherwise, whoever recorded a session could replay all
/// of it, because the cookie holds everything for which the peer's packets were made (our tag, our part of the keys,
/// both first TSNs). A used cookie is recognized by our tag in it. When its association ends, the tag is remembered
/// together with the present key, which has signed no later cookie with that tag, until that key is dropped. So every
/// cookie is either valid and remembered, or rejected.
#[derive(Clone)]
pub(crate) struct Secrets {
    keys: [Key; 2],
    /// Our tags of associations that ended while this was the present key.
    used: [BTreeSet<u32>; 2],
    /// Since when the present key is in use.
    since: Option<Time>,
    /// The random stream for new keys. It is separate so that the number of keys changes no other draw.
    chance: SeldomChance,
    /// A buffer in which cookies are written.
    scratch: Vec<u8>,
}

/// A key, and an HMAC that has already absorbed it, so that this is done once and not for every cookie.
#[derive(Clone)]
struct Key {
    bytes: [u8; 32],
    mac: Hmac<Sha256>,
}

impl Key {
    fn new(bytes: [u8; 32]) -> Key {
        let mac = Hmac::new_from_slice(&bytes).expect("HMAC takes keys of any length");
        Key { bytes, mac }
    }

    fn drawn(chance: &mut ChaCha8Rng) -> Key {
        let mut bytes = [0; 32];
        chance.fill_bytes(&mut bytes);
        Key::new(bytes)
    }

    fn mac(&self, content: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        mac.update(content);
        mac
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut keys = Digest::default();
        self.keys.iter().for_each(|key| keys.add(&key.bytes));
        let Secrets { used, since, chance, .. } = self;
        write!(f, "Secrets({:016x}, {used:?}, {since:?}, {chance:?})", keys.value())
    }
}

impl Secrets {
    pub(crate) fn new(chance: &mut ChaCha8Rng) -> Self {
        let mut seed = [0; 32];
        chance.fill_bytes(&mut seed);
        let mut chance = ChaCha8Rng::from_seed(seed);
        let keys = [Key::drawn(&mut chance), Key::drawn(&mut chance)];
        Secrets { keys, used: Default::default(), since: None, chance: chance.into(), scratch: Vec::new() }
    }

    /// A cookie as bytes, signed now.
    pub(crate) fn sign(&mut self, cookie: &Cookie, now: Time, life: Duration) -> Bytes {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        cookie.sign(self.current(now, life), &mut scratch);
        let bytes = Bytes::copy_from_slice(&scratch);
        self.scratch = scratch;
        bytes
    }

    /// The key for signing now. Cookies live at most twice `life`, and a key stays valid for this time.
    fn current(&mut self, now: Time, life: Duration) -> &Key {
        let since = *self.since.get_or_insert(now);
        if now.since(since) > life * 2 {
            self.rotate();
            self.since = Some(now);
        }
        &self.keys[0]
    }

    /// Drops the older key, and with it all cookies that it has signed.
    fn rotate(&mut self) {
        self.keys.swap(0, 1);
        self.keys[0] = self.chance.draw(Key::drawn);
        self.used[1] = std::mem::take(&mut self.used[0]);
        // The next cookie that is signed says since when.
        self.since = None;
    }

    /// The association with this tag of ours has ended: no cookie makes it again.
    pub(crate) fn remember(&mut self, tag: u32) {
        if self.used[0].len() >= MOST_USED {
            self.rotate();
        }
        self.used[0].insert(tag);
    }

    /// Whether an association with this tag of ours has ended, and cookies with it may still be valid.
    pub(crate) fn remembers(&self, tag: u32) -> bool {
        self.used.iter().any(|used| used.contains(&tag))
    }

    /// Reads a cookie signed with either key.
    pub(crate) fn open(&self, bytes: &[u8], now: Time) -> Result<Cookie, BadCookie> {
        match Cookie::open(bytes, &self.keys[0], now) {
            Err(BadCookie::Forged) => Cookie::open(bytes, &self.keys[1], now),
            other => other,
        }
    }
}

/// Why a cookie was not accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum BadCookie {
    /// It is not ours, or it was changed.
    Forged,
    /// It is genuine with these contents, but too old by this time.
    Stale(Box<Cookie>, Duration),
}

impl Cookie {
    /// The pair of addresses that the INIT ACK used. The owner of the cookie can receive there.
    pub(crate) fn pair(&self) -> Option<(Address, Address)> {
        self.peers.get(usize::from(self.answered)).map(|peer| (self.local, *peer))
    }

    /// Writes the cookie as bytes, signed with this key.
    fn sign(&self, key: &Key, out: &mut Vec<u8>) {
        out.put_u64(self.created.as_nanos());
        out.put_u64(self.life.as_nanos() as u64);
        for word in [self.local_tag, self.peer_tag, self.local_tsn.0, self.peer_tsn.0, self.peer_buffer] {
            out.put_u32(word);
        }
        out.put_u16(self.streams.0);
        out.put_u16(self.streams.1);
        out.put_u32(self.ties.0);
        out.put_u32(self.ties.1);
        put_address(out, self.local);
        out.put_u16(self.peer_port);
        let agreed = if self.agreement.extensions.any() { AGREED } else { 0 };
        out.put_u8(self.answered | agreed);
        self.agreement.put(out);
        self.peers.iter().take(MAX_ADDRESSES).for_each(|peer| put_address(out, *peer));
        let signature = key.mac(out).finalize().into_bytes();
        out.put_slice(&signature);
    }

    /// Reads a cookie that came back.
    //= rfc9260#section-5.1.5
    fn open(bytes: &[u8], key: &Key, now: Time) -> Result<Cookie, BadCookie> {
        let split = bytes.len().checked_sub(SIGNATURE).ok_or(BadCookie::Forged)?;
        let (content, signature) = bytes.split_at(split);
        key.mac(content).verify_slice(signature).map_err(|_| BadCookie::Forged)?;
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
        let mut peers = Addresses::new();
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

fn put_address(out: &mut Vec<u8>, address: Address) {
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
            peers: [address(2), Address::ip(IpAddr::V6(1.into()))].into(),
            answered: 1,
            agreement: Agreement::default(),
        }
    }

    fn key(byte: u8) -> Key {
        Key::new([byte; 32])
    }

    fn signed() -> Vec<u8> {
        let mut bytes = Vec::new();
        cookie().sign(&key(1), &mut bytes);
        bytes
    }

    #[test]
    fn it_comes_back_as_it_went() {
        let bytes = signed();
        assert_eq!(Cookie::open(&bytes, &key(1), Time::from_nanos(9)), Ok(cookie()));
    }

    #[test]
    fn any_change_is_found() {
        let bytes = signed();
        assert_eq!(Cookie::open(&bytes, &key(2), Time::ZERO), Err(BadCookie::Forged));
        for i in 0..bytes.len() {
            let mut changed = bytes.to_vec();
            changed[i] ^= 1;
            assert_eq!(Cookie::open(&changed, &key(1), Time::ZERO), Err(BadCookie::Forged));
            assert_eq!(Cookie::open(&bytes[..i], &key(1), Time::ZERO), Err(BadCookie::Forged));
        }
    }

    /// Tags are forgotten only together with the key that signed their cookies; a flood of ended associations needs
    /// no more memory than two keys' tags.
    #[test]
    fn a_used_cookie_is_remembered_or_forged() {
        let (life, now) = (Duration::from_secs(60), Time::ZERO);
        let mut secrets = Secrets::new(&mut ChaCha8Rng::seed_from_u64(1));
        let bytes = secrets.sign(&cookie(), now, life);
        secrets.remember(1);
        for tag in 2..300_000 {
            let valid = secrets.open(&bytes, now).is_ok();
            assert!(secrets.remembers(1) || !valid, "at {tag}");
            assert!(secrets.used.iter().all(|used| used.len() <= MOST_USED));
            secrets.remember(tag);
        }
        assert_eq!(secrets.open(&bytes, now), Err(BadCookie::Forged));
        assert!(!secrets.remembers(1));
    }

    /// A key that a flood made the older one stays valid for as long as any other.
    #[test]
    fn a_new_key_lives_as_long_as_any_other() {
        let (life, late) = (Duration::from_secs(60), Time::ZERO + Duration::from_secs(119));
        let mut secrets = Secrets::new(&mut ChaCha8Rng::seed_from_u64(1));
        secrets.current(Time::ZERO, life);
        (0..=MOST_USED as u32).for_each(|tag| secrets.remember(tag));
        let bytes = secrets.sign(&Cookie { created: late, ..cookie() }, late, life);
        secrets.current(late + life * 2, life);
        assert!(secrets.open(&bytes, late + life).is_ok());
        secrets.current(late + life * 2 + Duration::from_nanos(1), life);
        assert!(secrets.open(&bytes, late + life).is_ok());
    }

    #[test]
    fn it_grows_stale() {
        let bytes = signed();
        let late = Time::from_nanos(5) + Duration::from_secs(61);
        let stale = BadCookie::Stale(Box::new(cookie()), Duration::from_secs(1));
        assert_eq!(Cookie::open(&bytes, &key(1), late), Err(stale));
    }
}
