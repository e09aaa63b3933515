//! How large the packets of a path may be, found out by probes that nobody has to answer but the peer (RFC 8899).
//!
//! A probe is a HEARTBEAT with a PAD chunk behind it: if its answer comes, packets of its size get through.
//! Sizes are those of IP packets in bytes. The search begins at a size that every path should carry, tries the
//! largest first, and then halves what is between; a lost probe is no error of the path.

use super::mtu::{BASE, Search, pmdcs};
use super::{Mtu, Path, PathId, Paths};
use crate::wire::chunk::{CHUNK_HEADER, Heartbeat, Pad};
use crate::wire::{Address, Chunk, HEADER};
use crate::{Config, Duration, Time};

/// MAX_PROBES: one size is given up when so many probes of it were lost.
const MAX_PROBES: u32 = 3;
/// PROBE_TIMER, unless the path's RTO is longer. A HEARTBEAT is answered at once: there is no reason to wait
/// for the fifteen seconds that are advised where nothing is known of the path.
const PROBE_TIMER: Duration = Duration::from_secs(1);
/// PMTU_RAISE_TIMER: a search that has ended begins anew.
const RAISE_TIMER: Duration = Duration::from_secs(600);
/// Timeouts in a row, while small packets get through, that mean that large ones do not any more.
const BLACK_HOLE: u32 = 2;

impl Paths {
    /// Begins to search for the MTU of a path that is confirmed.
    //= rfc8899#section-5.2
    pub(crate) fn search_mtu(&mut self, id: PathId, config: &Config) {
        if config.mtu_discovery && self.view(id).confirmed() && self.get(id).own.mtu.is_none() {
            let mtu = &mut self.get_mut(id).mtu;
            mtu.beyond = config.mtu + 1;
            mtu.next(config.mtu);
            self.may_probe();
        }
    }

    /// The path whose probe is to be sent, and the probe's chunks.
    //= rfc8899#section-6.2.1
    pub(crate) fn next_probe(&mut self, now: Time, config: &Config) -> Option<(PathId, [Chunk; 2])> {
        let id = self.ids().find(|id| self.get(*id).mtu.wants_probe() && self.sends(*id))?;
        let (view, path) = self.both(id);
        let Search::Wanted { probe, lost } = path.mtu.search else { return None };
        path.mtu.search = Search::Sent { probe, lost };
        path.timers.probe = now + view.rto.max(PROBE_TIMER);
        let info = path.health.probe_information(view.local, now, probe);
        let heartbeat = Chunk::Heartbeat(Heartbeat::new(info));
        let udp = if view.remote.udp == 0 { 0 } else { 8 };
        let before = config.ip_header as usize + udp + HEADER + heartbeat.padded_size() + CHUNK_HEADER;
        let bytes = (probe as usize).saturating_sub(before) & !3;
        Some((id, [heartbeat, Chunk::Pad(Pad { bytes: bytes as u16 })]))
    }

    /// A probe of this size has come through.
    pub(crate) fn probe_answered(&mut self, id: PathId, size: u32, now: Time, config: &Config) {
        let path = self.get_mut(id);
        if !matches!(path.mtu.search, Search::Sent { probe, .. } if probe == size) {
            return;
        }
        path.mtu.size = size;
        path.mtu.next(config.mtu);
        path.wait_for_search(now);
        self.may_probe();
        self.measure_pmdcs(id, config);
    }

    /// The probe timer has expired: a probe was lost, or the search begins again.
    //= rfc8899#section-5.1.1
    pub(crate) fn probe_late(&mut self, id: PathId, now: Time, config: &Config) {
        self.may_probe();
        let path = self.get_mut(id);
        path.timers.probe = Time::NEVER;
        match path.mtu.search {
            Search::Sent { probe, lost } if lost + 1 < MAX_PROBES => {
                path.mtu.search = Search::Wanted { probe, lost: lost + 1 };
            }
            Search::Sent { probe, .. } => {
                path.mtu.beyond = probe;
                path.mtu.next(config.mtu);
                path.wait_for_search(now);
            }
            Search::Rest => self.search_mtu(id, config),
            Search::Wanted { .. } => {}
        }
    }

    /// T3-rtx has expired; whether the path should be asked if small packets get through.
    //= rfc8899#section-4.3
    pub(crate) fn data_lost(&mut self, id: PathId) -> bool {
        let mtu = &mut self.get_mut(id).mtu;
        mtu.timeouts += 1;
        mtu.timeouts >= BLACK_HOLE && mtu.size > BASE
    }

    /// A small packet has come through: if data has not for so long, it is too large.
    //= rfc8899#section-4.3
    pub(crate) fn small_came_through(&mut self, id: PathId, now: Time, config: &Config) {
        let path = self.get_mut(id);
        let lost = std::mem::take(&mut path.mtu.timeouts);
        if lost >= BLACK_HOLE && path.mtu.size > BASE && config.mtu_discovery && path.own.mtu.is_none() {
            path.mtu.beyond = path.mtu.size;
            path.mtu.size = BASE.min(config.mtu);
            path.mtu.next(config.mtu);
            path.wait_for_search(now);
            self.may_probe();
            self.measure_pmdcs(id, config);
        }
    }

    /// Packets to this peer address may have at most `size` bytes with the IP header. Windows keep their unit;
    /// chunks that were sent keep their size and go, if they must, in packets that IP fragments.
    pub(crate) fn set_mtu(&mut self, remote: Address, size: u32, config: &Config) {
        let size = size.clamp(config.ip_header + 508, config.mtu);
        let concerns = |id: &PathId| self.view(*id).remote == remote && self.get(*id).own.mtu.is_none();
        let to: Vec<PathId> = self.ids().filter(concerns).collect();
        for id in to {
            let mtu = &mut self.get_mut(id).mtu;
            // What was found out stays true, as far as it is allowed.
            mtu.size = if config.mtu_discovery { mtu.size.min(size) } else { size };
            mtu.beyond = mtu.beyond.min(size + 1);
            self.measure_pmdcs(id, config);
        }
    }

    /// The user has said how large the path's packets may be, or takes it back: then it is found out anew.
    pub(crate) fn fix_mtu(&mut self, id: PathId, config: &Config) {
        let path = self.get_mut(id);
        path.timers.probe = Time::NEVER;
        path.mtu = Mtu::new(config);
        if let Some(size) = path.own.mtu {
            path.mtu.size = size.clamp(config.ip_header + 508, config.mtu);
        }
        self.measure_pmdcs(id, config);
        self.search_mtu(id, config);
    }

    fn measure_pmdcs(&mut self, id: PathId, config: &Config) {
        let (size, overhead) = (self.get(id).mtu.size, self.overhead());
        let view = self.view_mut(id);
        view.pmdcs = pmdcs(size, config.ip_header, view.remote) - overhead;
        self.renew_smallest_pmdcs();
    }
}

impl Path {
    /// Whether a heartbeat or a probe of the MTU is wanted.
    pub(super) fn is_asking(&self) -> bool {
        self.health.wanted || self.health.elsewhere.is_some() || self.mtu.wants_probe()
    }

    /// At the end of a search, its timer runs until the next.
    fn wait_for_search(&mut self, now: Time) {
        self.timers.probe = if self.mtu.search == Search::Rest { now + RAISE_TIMER } else { Time::NEVER };
    }

    /// Data of the path was acknowledged.
    pub(crate) fn data_came_through(&mut self) {
        self.mtu.timeouts = 0;
    }
}
