//! Timestamps, an extension of this project (docs/extensions.md). Packets with data carry the time at which they left.
//! A SACK echoes the time of the first packet with data since the last SACK. An acknowledged chunk that was last sent
//! at that time gives an RTT measurement, even if it was sent several times. Karn's rule (RFC 9260 §6.3.1 C5) does not
//! apply here, because it is known which transmission is acknowledged.
//!
//! A value is used only if it belongs to a chunk that the same SACK newly acknowledges. A dishonest peer can prevent
//! measurements, but cannot invent one.

use crate::Time;
use crate::path::RttSamples;
use crate::wire::chunk::Timestamp;
use crate::wire::{Chunk, Packet};

/// The value to echo, and the clock for the timestamps.
#[derive(Clone, Debug)]
pub(crate) struct Timestamps {
    /// A random offset that is added to the clock, so that timestamps do not reveal how long this end has been running.
    offset: u32,
    /// The timestamp of the first packet with data since the last SACK.
    echo: Option<u32>,
}

impl Timestamps {
    pub(crate) fn new(offset: u32) -> Self {
        Timestamps { offset, echo: None }
    }

    /// Reads a received packet: stores its timestamp for the echo, and returns how its SACK measures round trips.
    pub(crate) fn look_at(&mut self, packet: &Packet) -> RttSamples {
        let stamp = packet.chunks.iter().find_map(|chunk| match chunk {
            Chunk::Timestamp(stamp) => Some(*stamp),
            _ => None,
        });
        let Timestamp { sent, echo } = stamp.unwrap_or_default();
        self.echo = self.echo.or(sent);
        RttSamples::Echoed(echo.map(|echo| echo.wrapping_sub(self.offset)))
    }

    /// Appends a TIMESTAMP as the last chunk of packets with data or a SACK.
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

/// The clock in microseconds, modulo 2^32.
pub(crate) fn clock(at: Time) -> u32 {
    (at.as_nanos() / 1000) as u32
}
