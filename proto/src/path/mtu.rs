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
    /// Whether anything came through on the path since the search began.
    pub(super) heard: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Search {
    /// No search is running.
    Rest,
    /// A probe of this size must be sent; `lost` probes of this size were lost.
    Wanted { probe: u32, lost: u32 },
    /// A probe of this size is in flight; `lost` earlier ones were lost.
    Sent { probe: u32, lost: u32 },
    /// This size is probed anew as soon as something comes through on the path.
    Waits { probe: u32 },
}

impl Mtu {
    pub(crate) fn new(config: &Config) -> Self {
        let size = if config.mtu_discovery { BASE.min(config.mtu) } else { config.mtu };
        Mtu { size, beyond: config.mtu + 1, search: Search::Rest, timeouts: 0, heard: false }
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
            Search::Wanted { probe, .. } | Search::Sent { probe, .. } | Search::Waits { probe } => {
                probe >= self.beyond
            }
        }
    }

    /// All probes of this size were lost. `failing`: so was everything else on the path.
    pub(super) fn give_up(&mut self, probe: u32, failing: bool, limit: u32) {
        if failing {
            self.search = Search::Waits { probe };
            return;
        }
        self.beyond = probe;
        self.next(limit);
        if self.search == Search::Rest && !self.heard {
            (self.beyond, self.search) = (limit + 1, Search::Waits { probe: limit });
        }
    }

    /// Something came through on the path. Returns whether a probe is wanted now.
    pub(super) fn resume(&mut self) -> bool {
        self.heard = true;
        let Search::Waits { probe } = self.search else { return false };
        self.search = Search::Wanted { probe, lost: 0 };
        true
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

#[cfg(test)]
mod tests {
    use super::*;

    fn searching() -> Mtu {
        let config = Config { mtu_discovery: true, ..Config::default() };
        let mut mtu = Mtu::new(&config);
        mtu.next(1500);
        mtu
    }

    /// Gives sizes up until nothing is wanted any more; returns them.
    fn give_all_up(mtu: &mut Mtu) -> Vec<u32> {
        let mut tried = Vec::new();
        while let Search::Wanted { probe, .. } = mtu.search {
            tried.push(probe);
            mtu.give_up(probe, false, 1500);
        }
        tried
    }

    /// A search in which nothing at all came through is repeated once, when something does.
    #[test]
    fn a_search_in_silence_is_repeated_once() {
        let mut mtu = searching();
        let tried = give_all_up(&mut mtu);
        assert_eq!(
            (&tried[..], mtu.search),
            (&[1500, 1348, 1272, 1236, 1216][..], Search::Waits { probe: 1500 })
        );
        assert!(mtu.resume());
        assert_eq!((give_all_up(&mut mtu), mtu.search), (tried, Search::Rest));
        assert!(!mtu.resume());
    }

    /// While the path fails no size is given up.
    #[test]
    fn a_size_waits_while_the_path_fails() {
        let mut mtu = searching();
        mtu.give_up(1500, true, 1500);
        assert_eq!((mtu.search, mtu.beyond), (Search::Waits { probe: 1500 }, 1501));
        assert!(mtu.resume());
        assert_eq!(mtu.search, Search::Wanted { probe: 1500, lost: 0 });
    }
}
