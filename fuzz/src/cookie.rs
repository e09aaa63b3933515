//! COOKIE ECHO with cookies as given, changed, cut, prolonged or invented: nothing but the cookie as it was
//! given, from where it was given to and with its tag, begins an association.

use std::time::Duration;

use anabranch_proto::wire::chunk::CookieEcho;
use anabranch_proto::wire::{Chunk, Packet, Param};
use anabranch_proto::{AssociationId, Event, Statistics, Tsn};
use arbitrary::{Arbitrary, Result, Unstructured};
use bytes::Bytes;

use crate::input::{self, few};
use crate::lone::{Lone, init, packet};

/// The peer's tag.
const TAG: u32 = 0x5eed;

/// An endpoint that has answered an INIT, and COOKIE ECHOs.
pub type Case = input::Case<Try>;

/// One COOKIE ECHO.
#[derive(Debug)]
pub struct Try {
    wait: Duration,
    cookie: Vec<Change>,
    tag: u32,
    /// The path that it comes by.
    path: u8,
}

/// What has happened to the cookie.
#[derive(Debug)]
enum Change {
    Xor { at: u8, with: u8 },
    Cut(u8),
    Append(Vec<u8>),
    Invent(Vec<u8>),
}

impl<'a> Arbitrary<'a> for Try {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        let odd = bytes.arbitrary::<u8>()?;
        Ok(Try {
            wait: Duration::from_secs(if odd & 1 == 0 { 0 } else { bytes.arbitrary::<u16>()?.into() }),
            tag: if odd & 2 == 0 { 0 } else { bytes.arbitrary()? },
            path: if odd & 4 == 0 { 0 } else { bytes.arbitrary()? },
            cookie: if odd & 8 == 0 { few(bytes, 4)? } else { Vec::new() },
        })
    }
}

impl<'a> Arbitrary<'a> for Change {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match bytes.arbitrary::<u8>()? % 4 {
            0 => Change::Xor { at: bytes.arbitrary()?, with: bytes.arbitrary()? },
            1 => Change::Cut(bytes.arbitrary()?),
            2 => Change::Append(few(bytes, 40)?),
            _ => Change::Invent(few(bytes, 250)?),
        })
    }
}

impl Change {
    fn apply(&self, cookie: &mut Vec<u8>) {
        match self {
            Change::Xor { at, with } => {
                if let Some(byte) = cookie.get_mut(usize::from(*at)) {
                    *byte ^= with;
                }
            }
            Change::Cut(end) => cookie.truncate((*end).into()),
            Change::Append(more) => cookie.extend(more),
            Change::Invent(all) => *cookie = all.clone(),
        }
    }
}

impl Case {
    /// Tries one after the other, until one of them is as it should be.
    pub fn play(self) {
        let mut lone = Lone::new(self.setup.paths(), &self.setup.config());
        let (tag, cookie) = given(&mut lone, self.setup.paths());
        for a_try in &self.steps {
            lone.pass(a_try.wait);
            let mut changed = cookie.to_vec();
            a_try.cookie.iter().for_each(|change| change.apply(&mut changed));
            let genuine = changed == cookie && a_try.tag == 0;
            let path = usize::from(a_try.path) % self.setup.paths();
            let echo = Chunk::CookieEcho(CookieEcho { cookie: changed.into() });
            lone.arrive(packet((path, path), tag ^ a_try.tag, vec![echo]));
            if lone.events.iter().any(|(_, event)| *event == Event::Up) {
                assert!(genuine, "{a_try:?} has made an association");
                return;
            }
            nothing_is_kept(&lone);
        }
    }
}

/// The endpoint answers an INIT: its tag and its cookie.
fn given(lone: &mut Lone, paths: usize) -> (u32, Bytes) {
    lone.hear(0, 0, [Chunk::Init(Box::new(init(TAG, Tsn(u32::MAX), 10_000, paths)))]);
    nothing_is_kept(lone);
    let answer: Packet = lone.take_sent().pop().expect("an INIT ACK");
    let Some(Chunk::InitAck(ack)) = answer.chunks.first() else { panic!("not an INIT ACK: {answer:?}") };
    let cookie = ack.params.iter().find_map(|param| match param {
        Param::Cookie(cookie) => Some(cookie.clone()),
        _ => None,
    });
    (ack.tag, cookie.expect("a cookie"))
}

fn nothing_is_kept(lone: &Lone) {
    assert_eq!((lone.wake, lone.events.len()), (None, 0));
    let none = AssociationId(0);
    assert!(lone.end.paths(none).is_empty());
    assert_eq!(lone.end.statistics(lone.now, none), Statistics::default());
}
