//! Status and parameters of an association, for the user.

use super::Association;
use crate::endpoint::Status;
use crate::path::{PathId, PathParameters, Paths};
use crate::{Config, ConfigError, Parameters, Time};

impl Association {
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn status(&self) -> Status {
        Status {
            state: self.state,
            peer_window: self.sender.peer_window(&self.paths),
            unacknowledged: self.sender.outstanding.len(),
            unread: self.receiver.ready(),
            outbound_streams: self.streams.0,
            inbound_streams: self.streams.1,
            fragmentation_point: self.paths.smallest_pmdcs() - self.sender.queue.header() as u32,
        }
    }

    /// Changes the parameters, also for what is in progress.
    pub(crate) fn reconfigure(&mut self, parameters: Parameters, now: Time) -> Result<(), ConfigError> {
        let (heartbeats, mtu) = (self.config.heartbeat_interval, self.config.mtu);
        let config = Config { parameters, ..Config::clone(&self.config) };
        config.check()?;
        self.config = config.into();
        self.sender.set_max_burst(self.config.max_burst);
        self.paths.assume_delay(self.config.sack_delay);
        self.paths.limits = self.config.rto_limits();
        for id in self.paths.ids() {
            let view = self.paths.view_mut(id);
            let measured = view.srtt.is_some() || view.errors > 0;
            let rto = if measured { view.rto } else { self.config.rto_initial };
            view.rto = rto.clamp(self.config.rto_min, self.config.rto_max);
            self.paths.note_rto(id, now, None, &mut self.notes);
        }
        if self.config.mtu != mtu {
            self.paths.mtu_changed(now, &self.config);
        }
        if self.config.heartbeat_interval != heartbeats && self.state.heartbeats() {
            self.reschedule_heartbeats();
        }
        Ok(())
    }

    pub(crate) fn path_parameters(&self, id: PathId) -> Option<PathParameters> {
        (id.index() < self.paths.views().len()).then(|| self.paths.get(id).own)
    }

    /// Sets parameters of this path alone; false if there is no such path.
    pub(crate) fn configure_path(&mut self, id: PathId, own: PathParameters) -> bool {
        if !self.paths.has(id) {
            return false;
        }
        let before = std::mem::replace(&mut self.paths.get_mut(id).own, own);
        if before.mtu != own.mtu {
            self.paths.fix_mtu(id, &self.config);
        }
        if before.heartbeats != own.heartbeats && self.state.heartbeats() {
            let (view, path) = self.paths.both(id);
            path.schedule_heartbeat(view, &self.config, &mut self.chance);
        }
        true
    }

    /// Takes over the parameters that the user set for paths of before a restart of the peer. A path may leave from
    /// another address now.
    pub(super) fn keep_path_parameters(&mut self, before: &Paths) {
        for id in self.paths.ids() {
            let view = self.paths.view(id);
            let known = before.of_pair(view.local, view.remote).or_else(|| before.to(view.remote));
            self.paths.get_mut(id).own = known.map(|known| before.get(known).own).unwrap_or_default();
            if self.paths.get(id).own.mtu.is_some() {
                self.paths.fix_mtu(id, &self.config);
            }
        }
    }

    fn reschedule_heartbeats(&mut self) {
        for id in self.paths.live() {
            let (view, path) = self.paths.both(id);
            path.schedule_heartbeat(view, &self.config, &mut self.chance);
        }
    }
}
