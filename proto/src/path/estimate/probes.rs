//! Pairs of padded HEARTBEATs on paths without traffic: when they leave, and what their answers say.
//!
//! They take at most a hundredth of the bytes that the association sends, and no timer: a SACK is what lets a pair
//! leave. A packet of a pair that is lost is no error of the path; the HEARTBEATs of RFC 9260 §8.3 judge it.

use std::hint::cold_path;

use super::update::headers;
use crate::path::health::HeartbeatFor;
use crate::path::{PathId, PathState, Paths};
use crate::wire::Chunk;
use crate::wire::chunk::{CHUNK_HEADER, Heartbeat, Pad};
use crate::{Config, Time};

/// The size of each packet of a pair, bytes with the IP header: large enough to spread, small enough that the first
/// pair leaves after 120 KB.
const SIZE: u32 = 600;
/// Bytes sent for each byte of a probe.
const SHARE: u64 = 100;

impl Paths {
    /// Lets a pair leave on each path without traffic that is due for one.
    #[inline]
    pub(crate) fn ask_for_pairs(&mut self, now: Time) {
        if self.needs.packet_pair {
            cold_path();
            self.ask_for_due_pairs(now);
        }
    }

    fn ask_for_due_pairs(&mut self, now: Time) {
        let sent: u64 = self.views().iter().map(|view| view.delivered + view.lost + view.flight).sum();
        for id in self.ids() {
            let probes: u64 = self.views().iter().filter_map(|view| view.pair()).map(|pair| pair.bytes).sum();
            let view = self.view_mut(id);
            let quiet = view.flight + view.marked == 0 && view.state == PathState::Active && view.up;
            let Some(srtt) = view.srtt.filter(|_| quiet) else { continue };
            let Some(pair) = view.estimates.as_mut().and_then(|all| all.packet_pair.as_mut()) else {
                continue;
            };
            let due = pair.wanted == 0 && pair.next(srtt).is_none_or(|next| next <= now);
            if due && (probes + 2 * u64::from(SIZE)) * SHARE <= sent {
                pair.wanted = 2;
                pair.bytes += 2 * u64::from(SIZE);
                self.may_probe();
            }
        }
    }

    /// The next packet of a pair, and its path.
    //= rfc4820#section-3
    pub(crate) fn next_of_pair(&mut self, now: Time, config: &Config) -> Option<(PathId, [Chunk; 2])> {
        if !self.needs.packet_pair {
            return None;
        }
        let id = self.ids().find(|id| self.wants_pair(*id) && self.sends(*id))?;
        let overhead = self.probe_overhead as usize;
        let (view, path) = self.both(id);
        let pair = view.estimates.as_mut()?.packet_pair.as_mut()?;
        let second = pair.wanted == 1;
        pair.wanted -= 1;
        if !second {
            pair.begin(now);
        }
        let information = path.health.pair_information(view.local, now, second);
        let heartbeat = Chunk::Heartbeat(Heartbeat::new(information));
        let before = headers(config, view.remote) as usize + heartbeat.padded_size() + CHUNK_HEADER;
        let bytes = (SIZE as usize - before - overhead) & !3;
        Some((id, [heartbeat, Chunk::Pad(Pad { bytes: bytes as u16 })]))
    }

    /// A packet of a pair was answered.
    pub(crate) fn pair_answered(&mut self, id: PathId, of: HeartbeatFor, now: Time) {
        let pair = self.view_mut(id).estimates.as_mut().and_then(|all| all.packet_pair.as_mut());
        if let Some(pair) = pair {
            pair.answered(of == HeartbeatFor::SecondOfPair, SIZE, now);
        }
    }

    /// Whether a packet of a pair has to be sent on this path.
    fn wants_pair(&self, id: PathId) -> bool {
        self.view(id).pair().is_some_and(|pair| pair.wanted > 0)
    }

    /// Whether a packet of a pair has to be sent.
    pub(in crate::path) fn wants_pairs(&self) -> bool {
        self.needs.packet_pair && self.ids().any(|id| self.wants_pair(id) && self.sends(id))
    }
}

impl crate::PathView {
    fn pair(&self) -> Option<&super::PacketPair> {
        self.estimates.as_ref()?.packet_pair.as_ref()
    }
}
