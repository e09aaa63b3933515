//! The state of the search for a path's MTU (RFC 8899): the known size, and the next size to try. `search.rs` sends the
//! probes.

use crate::Config;
use crate::wire::chunk::DATA_HEADER;
use crate::wire::{Address, HEADER};

/// BASE_PLPMTU.
pub(super) const BASE: u32 = 1200;
/// The search ends when the unknown range has at most this many bytes.
const EXACT: u32 = 16;

/// The known facts about the size of a path's packets.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Mtu {
    /// Packets of this size get through.
    pub(super) size: u32,
    /// Packets of this size do not get through or are not allowed.
    pub(super) beyond: u32,
    pub(super) search: Search,
    /// Timeouts in a row in which no data was acknowledged.
    pub(super) timeouts: u32,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Search {
    /// No search is running.
    Rest,
    /// A probe of this size must be sent; `lost` probes of this size were lost.
    Wanted { probe: u32, lost: u32 },
    /// A probe of this size is in flight; `lost` earlier ones were lost.
    Sent { probe: u32, lost: u32 },
}

impl Mtu {
    pub(crate) fn new(config: &Config) -> Self {
        let size = if config.mtu_discovery { BASE.min(config.mtu) } else { config.mtu };
        Mtu { size, beyond: config.mtu + 1, search: Search::Rest, timeouts: 0 }
    }

    /// The largest packet that may be sent.
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// Whether a probe is to be sent.
    pub(crate) fn wants_probe(&self) -> bool {
        matches!(self.search, Search::Wanted { .. })
    }

    /// Nothing is tried any more.
    pub(super) fn end_search(&mut self) {
        self.search = Search::Rest;
    }

    /// Whether the size that is tried is known to be too large.
    pub(super) fn probes_beyond(&self) -> bool {
        match self.search {
            Search::Rest => false,
            Search::Wanted { probe, .. } | Search::Sent { probe, .. } => probe >= self.beyond,
        }
    }

    /// Chooses the next size: first the largest, then the middle of the unknown range.
    pub(super) fn next(&mut self, limit: u32) {
        let untried = self.beyond == limit + 1;
        let probe = if untried { limit } else { ((self.size + self.beyond) / 2) & !3 };
        let known = self.beyond - self.size <= EXACT || probe <= self.size;
        self.search = if known { Search::Rest } else { Search::Wanted { probe, lost: 0 } };
    }
}

/// Whether a packet of this size, without IP, is larger than those that may be sent to an address of which nothing is
/// known.
pub(crate) fn exceeds_first(size: usize, remote: Address, config: &Config) -> bool {
    size > HEADER + pmdcs(Mtu::new(config).size, config.ip_header, remote) as usize
}

/// The largest DATA chunk that fits a packet of `mtu` bytes to `remote`, rounded down to a multiple of four.
pub(super) fn pmdcs(mtu: u32, ip_header: u32, remote: Address) -> u32 {
    let udp = if remote.udp == 0 { 0 } else { 8 };
    let room = mtu.saturating_sub(ip_header + udp + HEADER as u32);
    (room & !3).max(DATA_HEADER as u32 + 4)
}
