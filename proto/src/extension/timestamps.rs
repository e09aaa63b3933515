//! Timestamps, an extension of our own (docs/extensions.md): packets with data say when they left, SACKs echo what the first
//! packet since the last SACK said. An acknowledged chunk that left last at that time measures the round trip, also if it
//! was sent more than once: Karn's rule (RFC 9260 §6.3.1 C5) has nothing to forbid, since it is known which
//! transmission is acknowledged.
//!
//! A value is believed only if it is that of a chunk that the same SACK newly acknowledges. A peer that lies can keep
//! samples from being taken; it cannot make one up.

use crate::Time;
use crate::path::RttSamples;
use crate::wire::chunk::Timestamp;
use crate::wire::{Chunk, Packet};

/// What is to be echoed, and the clock that packets show.
#[derive(Clone, Debug)]
pub(crate) struct Timestamps {
    /// Added to our clock: what it shows is not since when this end runs.
    offset: u32,
    /// What the first packet with data since the last SACK said.
    echo: Option<u32>,
}

impl Timestamps {
    pub(crate) fn new(offset: u32) -> Self {
        Timestamps { offset, echo: None }
    }

    /// A packet has come: how its SACK measures round trips. What it says itself is echoed.
    pub(crate) fn look_at(&mut self, packet: &Packet) -> RttSamples {
        let stamp = packet.chunks.iter().find_map(|chunk| match chunk {
            Chunk::Timestamp(stamp) => Some(*stamp),
            _ => None,
        });
        let Timestamp { sent, echo } = stamp.unwrap_or_default();
        self.echo = self.echo.or(sent);
        RttSamples::Echoed(echo.map(|echo| echo.wrapping_sub(self.offset)))
    }

    /// Packets with data, or with a SACK, get a TIMESTAMP behind everything else.
    pub(super) fn stamp(&mut self, packet: &mut Packet, now: Time) {
        let data = packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Data(_) | Chunk::IData(_)));
        let sack = packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Sack(_) | Chunk::NrSack(_)));
        if data || sack {
            let sent = data.then(|| clock(now).wrapping_add(self.offset));
            let echo = if sack { self.echo.take() } else { None };
            packet.chunks.push(Chunk::Timestamp(Timestamp { sent, echo }));
        }
    }
}

/// The clock: microseconds, modulo 2^32.
pub(crate) fn clock(at: Time) -> u32 {
    (at.as_nanos() / 1000) as u32
}
