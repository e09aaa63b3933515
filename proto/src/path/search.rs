//! The packet size of a path, found by probes (RFC 8899). Only the peer has to answer a probe.
//!
//! A probe is a HEARTBEAT followed by a PAD chunk: its answer proves that packets of its size get through. Sizes are
//! those of IP packets in bytes. The search begins at a size that every path should carry, tries the largest size
//! first, and then bisects the range between them. A lost probe is no error of the path. It says nothing about sizes
//! while other packets are lost as well: then the search waits until something comes through.

use super::mtu::{BASE, Search, pmdcs};
use super::{Mtu, Path, PathId, Paths, Timer, Wanted};
use crate::wire::chunk::{CHUNK_HEADER, Heartbeat, Pad};
use crate::wire::{Address, Chunk, HEADER};
use crate::{Config, Duration, Time};

/// MAX_PROBES: a size is given up when this number of its probes was lost.
const MAX_PROBES: u32 = 3;
/// PROBE_TIMER, unless the path's RTO is longer. A HEARTBEAT is answered at once, so the fifteen seconds that RFC
/// 8899 advises for unknown peers are not needed.
const PROBE_TIMER: Duration = Duration::from_secs(1);
/// PMTU_RAISE_TIMER: after this time a finished search starts again.
const RAISE_TIMER: Duration = Duration::from_secs(600);
/// The number of consecutive timeouts, while small packets get through, after which large packets count as blocked.
const BLACK_HOLE: u32 = 2;

impl Paths {
    /// Begins to search for the MTU of a path that is confirmed.
    //= rfc8899#section-5.2
    pub(crate) fn search_mtu(&mut self, id: PathId, config: &Config) {
        if config.mtu_discovery && self.view(id).confirmed() && self.get(id).own.mtu.is_none() {
            let mtu = &mut self.get_mut(id).mtu;
            (mtu.beyond, mtu.heard) = (config.mtu + 1, false);
            mtu.next(config.mtu);
            self.may_probe();
        }
    }

    /// The path whose probe is to be sent, and the probe's chunks.
    //= rfc8899#section-6.2.1
    pub(crate) fn next_probe(&mut self, now: Time, config: &Config) -> Option<(PathId, [Chunk; 2])> {
        let id = self.ids().find(|id| self.get(*id).mtu.wants_probe() && self.sends(*id))?;
        let overhead = self.probe_overhead as usize;
        let (view, path) = self.both(id);
        let Search::Wanted { probe, lost } = path.mtu.search else { return None };
        path.mtu.search = Search::Sent { probe, lost };
        path.timers.set(Timer::Probe, now + view.rto.max(PROBE_TIMER));
        let info = path.health.probe_information(view.local, now, probe);
        let heartbeat = Chunk::Heartbeat(Heartbeat::new(info));
        let udp = if view.remote.udp == 0 { 0 } else { 8 };
        let before = config.ip_header as usize + udp + HEADER + heartbeat.padded_size() + CHUNK_HEADER;
        let bytes = (probe as usize).saturating_sub(before + overhead) & !3;
        Some((id, [heartbeat, Chunk::Pad(Pad { bytes: bytes as u16 })]))
    }

    /// A probe of this size got through.
    pub(crate) fn probe_answered(&mut self, id: PathId, size: u32, now: Time, config: &Config) {
        let path = self.get_mut(id);
        if !matches!(path.mtu.search, Search::Sent { probe, .. } if probe == size) {
            return;
        }
        (path.mtu.size, path.mtu.heard) = (size, true);
        path.mtu.next(config.mtu);
        path.wait_for_search(now);
        self.may_probe();
        self.measure_pmdcs(id, config);
    }

    /// Data or a HEARTBEAT was acknowledged on the path: a search that waited for this goes on.
    pub(crate) fn resume_search(&mut self, id: PathId) {
        if self.get_mut(id).mtu.resume() {
            self.may_probe();
        }
    }

    /// The probe timer expired: a probe was lost, or a new search begins.
    //= rfc8899#section-5.1.1
    pub(crate) fn probe_late(&mut self, id: PathId, now: Time, config: &Config) {
        self.may_probe();
        let (view, path) = self.both(id);
        path.timers.set(Timer::Probe, Time::NEVER);
        match path.mtu.search {
            Search::Sent { probe, lost } if lost + 1 < MAX_PROBES => {
                path.mtu.search = Search::Wanted { probe, lost: lost + 1 };
            }
            Search::Sent { probe, .. } => {
                path.mtu.give_up(probe, view.errors > 0, config.mtu);
                path.wait_for_search(now);
            }
            Search::Rest => self.search_mtu(id, config),
            Search::Wanted { .. } | Search::Waits { .. } => {}
        }
    }

    /// T3-rtx expired. Returns whether the path should be probed with a small packet.
    //= rfc8899#section-4.3
    pub(crate) fn data_lost(&mut self, id: PathId, config: &Config) -> bool {
        let mtu = &mut self.get_mut(id).mtu;
        mtu.timeouts += 1;
        mtu.timeouts >= BLACK_HOLE && mtu.size > smallest_mtu(config)
    }

    /// A small packet got through. If packets of data have not for [`BLACK_HOLE`] timeouts, they are too large. A path
    /// that does not even carry the size at which the search began gets the smallest. Fewer timeouts go on counting: each
    /// may be followed by a HEARTBEAT (RFC 7829 §3.1), whose answer says nothing about packets of data.
    //= rfc8899#section-4.3
    //= rfc8899#section-5.2
    pub(crate) fn small_came_through(&mut self, id: PathId, now: Time, config: &Config) {
        let path = self.get_mut(id);
        if path.mtu.timeouts < BLACK_HOLE {
            return;
        }
        path.mtu.timeouts = 0;
        let smaller = if path.mtu.size > BASE { BASE } else { smallest_mtu(config) };
        if path.mtu.size > smaller && config.mtu_discovery && path.own.mtu.is_none() {
            path.mtu.beyond = path.mtu.size;
            path.mtu.size = smaller;
            path.mtu.next(config.mtu);
            path.wait_for_search(now);
            self.may_probe();
            self.measure_pmdcs(id, config);
        }
    }

    /// A router reported that packets to this peer address may have at most `limit` bytes with the IP header. Such a
    /// report never makes packets larger: it may be old, or come from a router in front of the narrowest link. A limit
    /// below the smallest size is invalid and changes nothing.
    //= rfc8899#section-4.6.2
    pub(crate) fn too_big(&mut self, remote: Address, limit: u32, now: Time, config: &Config) {
        if limit < smallest_mtu(config) {
            return;
        }
        let limit = limit.min(config.mtu);
        for id in self.ids().filter(|id| self.view(*id).remote == remote).collect::<Vec<_>>() {
            self.limit_mtu(id, limit, now, config);
        }
    }

    /// The user has changed the largest packet size of the association. Without a search, it is the size of all
    /// packets, unless the user has fixed a smaller one for a path.
    pub(crate) fn mtu_changed(&mut self, now: Time, config: &Config) {
        for id in self.ids() {
            let path = self.get_mut(id);
            match path.own.mtu {
                Some(_) => self.fix_mtu(id, config),
                None => {
                    path.mtu.size = if config.mtu_discovery { path.mtu.size } else { config.mtu };
                    self.limit_mtu(id, config.mtu, now, config);
                }
            }
        }
    }

    /// Limits the packets of a path, unless the user has fixed their size. What was found before remains valid within
    /// the limit. Chunks that were sent keep their size and, if necessary, leave in packets that IP fragments.
    fn limit_mtu(&mut self, id: PathId, limit: u32, now: Time, config: &Config) {
        let path = self.get_mut(id);
        if path.own.mtu.is_some() {
            return;
        }
        path.mtu.size = path.mtu.size.min(limit);
        path.mtu.beyond = path.mtu.beyond.min(limit + 1);
        if path.mtu.probes_beyond() {
            // The answer to a probe under way would say nothing about packets from now on.
            path.mtu.next(config.mtu);
            path.wait_for_search(now);
            self.may_probe();
        }
        self.measure_pmdcs(id, config);
    }

    /// The user sets the packet size of the path, or takes the setting back; then a new search begins.
    pub(crate) fn fix_mtu(&mut self, id: PathId, config: &Config) {
        let path = self.get_mut(id);
        path.timers.set(Timer::Probe, Time::NEVER);
        path.mtu = Mtu::new(config);
        if let Some(size) = path.own.mtu {
            path.mtu.size = size.clamp(smallest_mtu(config), config.mtu);
        }
        self.measure_pmdcs(id, config);
        self.search_mtu(id, config);
    }

    /// Computes the largest DATA chunk that fits a packet of this path. The window counts in such packets.
    //= rfc6951#section-5.6
    pub(crate) fn measure_pmdcs(&mut self, id: PathId, config: &Config) {
        let (size, overhead) = (self.get(id).mtu.size, self.overhead());
        let view = self.view_mut(id);
        view.pmdcs = pmdcs(size, config.ip_header, view.remote) - overhead;
        self.renew_smallest_pmdcs();
        self.renew_unit(id, config);
    }
}

/// MIN_PLPMTU: the smallest packet size that a report or a setting can ask for, in bytes with the IP header: 508 bytes
/// of SCTP and UDP.
fn smallest_mtu(config: &Config) -> u32 {
    config.ip_header + 508
}

impl Path {
    /// Whether a heartbeat or a probe of the MTU is wanted.
    pub(super) fn is_asking(&self) -> bool {
        self.health.wanted != Wanted::No || self.health.elsewhere.is_some() || self.mtu.wants_probe()
    }

    /// After a search, the timer waits for the next search.
    fn wait_for_search(&mut self, now: Time) {
        self.timers
            .set(Timer::Probe, if self.mtu.search == Search::Rest { now + RAISE_TIMER } else { Time::NEVER });
    }

    /// Data of the path was acknowledged.
    pub(crate) fn data_came_through(&mut self) {
        self.mtu.timeouts = 0;
    }
}
