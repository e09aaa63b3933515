//! Associations as their users see them: their stages, the signals that wake users, and the associations that nobody
//! holds any more.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_proto::wire::Address;
use anabranch_proto::{AssociationId, Config, Event, LostReason, PathView, Refused, Status, Time};
use bytes::Bytes;
use tokio::sync::{Notify, broadcast};

use super::{Core, Shared};
use crate::report::PathReport;
use crate::socket::Socket;
use crate::source;
use crate::undelivered::{Returned, Undelivered};

/// The number of events by which a slow listener may lag before it misses the oldest.
const EVENTS: usize = 32;
/// The largest number of associations that wait to be accepted. Further ones are aborted.
const BACKLOG: usize = 1024;
/// An association without handles is aborted if its peer acknowledges nothing between two checks at this interval. A
/// peer that never reads would keep it alive by its answers to window probes. Tests have no time for that.
const ABANDONED: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 300 });

/// An association as its users see it.
pub(crate) struct User {
    pub(crate) standing: AssociationState,
    pub(crate) signals: Arc<Signals>,
    /// The source of the peer that initiated it.
    source: Option<IpAddr>,
    /// Whether its user has ended it gracefully.
    leaving: bool,
    /// What will not be delivered.
    pub(crate) returned: Returned,
}

/// The stage of an association.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum AssociationState {
    SettingUp,
    Up,
    /// The peer will send no more.
    PeerDone,
    Closed,
    Lost(LostReason),
}

/// The signals that wake the users of an association.
pub(crate) struct Signals {
    pub(crate) readable: Notify,
    pub(crate) writable: Notify,
    pub(crate) events: broadcast::Sender<Event>,
}

impl User {
    fn new(standing: AssociationState, source: Option<IpAddr>) -> User {
        let signals = Signals {
            readable: Notify::new(),
            writable: Notify::new(),
            events: broadcast::Sender::new(EVENTS),
        };
        User { standing, signals: Arc::new(signals), source, leaving: false, returned: Returned::default() }
    }

    pub(super) fn over(&self) -> bool {
        matches!(self.standing, AssociationState::Closed | AssociationState::Lost(_))
    }
}

impl Shared {
    /// A user ends the association gracefully.
    pub(crate) fn shutdown(&self, id: AssociationId) {
        self.lock().users.entry(id).and_modify(|user| user.leaving = true);
        self.call(|core, now| core.shutdown(now, id));
        // Who waits for room to send waits in vain.
        if let Some(user) = self.lock().user(id) {
            user.signals.writable.notify_waiters();
        }
    }

    /// Begins an association with the peer at these addresses.
    pub(crate) fn connect(&self, port: u16, to: &[Address]) -> Result<AssociationId, Refused> {
        let mut core = self.lock();
        let now = core.now();
        let id = core.endpoint.connect(now, port, to)?;
        core.users.insert(id, User::new(AssociationState::SettingUp, None));
        core.setting_up.insert(id);
        core.drain(self, now);
        self.driver.notify_one();
        Ok(id)
    }

    /// The last handle of the association was dropped.
    pub(crate) fn abandon(&self, id: AssociationId) {
        let mut core = self.lock();
        let now = core.now();
        let Some(user) = core.users.get_mut(&id) else { return };
        user.leaving = true;
        // Nobody waits for its set-up any more, which would otherwise continue.
        if user.over() || user.standing == AssociationState::SettingUp {
            core.forget(id, now);
        } else {
            core.orphans.insert(id, None);
            core.orphans_due.get_or_insert_with(|| Instant::now() + ABANDONED);
            // What nobody has read makes room, because the peer cannot end before it has sent everything.
            while core.endpoint.read(now, id).is_some() {}
            core.endpoint.shutdown(now, id);
        }
        core.drain(self, now);
        self.driver.notify_one();
    }

    /// The paths of the association, with the facts of their sockets.
    pub(crate) fn paths(&self, id: AssociationId) -> Vec<PathReport> {
        self.lock().endpoint.paths(id).iter().map(|view| self.report(view)).collect()
    }

    fn report(&self, view: &PathView) -> PathReport {
        let socket = self.sockets.iter().find(|socket| socket.address == view.local).map(Socket::open);
        PathReport {
            id: view.id,
            local: view.local,
            remote: view.remote,
            state: view.state,
            up: view.up,
            primary: view.primary,
            device: socket.map_or(crate::Device::Any, |socket| socket.device.clone()),
            window: view.window,
            flight: view.flight,
            srtt: view.srtt,
            rto: view.rto,
            errors: view.errors,
            delivered: view.delivered,
            lost: view.lost,
            pmdcs: view.pmdcs,
        }
    }
}

impl Core {
    pub(crate) fn status(&self, id: AssociationId) -> Option<Status> {
        self.endpoint.status(id)
    }

    pub(crate) fn user(&self, id: AssociationId) -> Option<&User> {
        self.users.get(&id)
    }

    /// The next association that a peer has initiated.
    pub(crate) fn accept(&mut self) -> Option<(AssociationId, Arc<Signals>)> {
        let id = self.accepted.pop_front()?;
        Some((id, Arc::clone(&self.users.get(&id)?.signals)))
    }

    pub(super) fn event(&mut self, shared: &Shared, id: AssociationId, event: Event, now: Time) {
        let known = self.users.contains_key(&id);
        if !known && (event != Event::Up || !self.admit(shared, id, now)) {
            return;
        }
        let event = match event {
            Event::SendFailed { message, sent } => return self.came_back(id, Undelivered { message, sent }),
            other => other,
        };
        let Some(user) = self.users.get_mut(&id) else { return };
        match &event {
            Event::Readable if self.orphans.contains_key(&id) => {
                return while self.endpoint.read(now, id).is_some() {};
            }
            Event::Readable => return user.signals.readable.notify_waiters(),
            Event::Writable => return user.signals.writable.notify_waiters(),
            Event::Up => user.standing = AssociationState::Up,
            Event::Restart => {
                user.standing = AssociationState::Up;
                // Whoever has ended the old association wants no new one.
                if user.leaving {
                    self.endpoint.shutdown(now, id);
                }
            }
            Event::PeerShutdown => user.standing = AssociationState::PeerDone,
            Event::Closed => user.standing = AssociationState::Closed,
            Event::Lost(reason) => user.standing = AssociationState::Lost(reason.clone()),
            Event::Path(..)
            | Event::PeerError(_)
            | Event::SendFailed { .. }
            | Event::StreamsReset { .. }
            | Event::TsnsReset(_)
            | Event::StreamsAdded { .. }
            | Event::LocalAddress { .. }
            | Event::PeerAddress { .. } => {}
        }
        user.signals.readable.notify_waiters();
        user.signals.writable.notify_waiters();
        let _ = user.signals.events.send(event);
        if user.standing != AssociationState::SettingUp {
            self.setting_up.remove(&id);
        }
        if user.over() && self.orphans.contains_key(&id) {
            self.forget(id, now);
        }
    }

    /// A message will not be delivered. As much is kept as the send buffer holds, if there is someone to take it.
    fn came_back(&mut self, id: AssociationId, undelivered: Undelivered) {
        let most = self.endpoint.config_of(id).map_or(0, Config::send_buffer);
        if let Some(user) = self.users.get_mut(&id).filter(|_| !self.orphans.contains_key(&id)) {
            user.returned.add(undelivered, most);
        }
    }

    /// Takes what will not be delivered.
    pub(crate) fn take_undelivered(&mut self, id: AssociationId) -> Vec<Undelivered> {
        self.users.get_mut(&id).map(|user| user.returned.take()).unwrap_or_default()
    }

    /// A peer has initiated an association. False if too many wait to be accepted, or if its source has too many.
    fn admit(&mut self, shared: &Shared, id: AssociationId, now: Time) -> bool {
        // The cookie came back from this address, so the address is not forged.
        let source = self.endpoint.paths(id).first().map(|path| source(path.remote.ip));
        let of_source = source.and_then(|source| self.by_source.get(&source)).copied().unwrap_or_default();
        if self.accepted.len() >= BACKLOG || of_source >= self.max_per_source {
            self.endpoint.abort(now, id, Bytes::from_static(b"too many associations"));
            self.endpoint.forget(now, id);
            return false;
        }
        self.users.insert(id, User::new(AssociationState::Up, source));
        if let Some(source) = source {
            *self.by_source.entry(source).or_default() += 1;
        }
        self.accepted.push_back(id);
        shared.accepting.notify_one();
        true
    }

    pub(super) fn forget(&mut self, id: AssociationId, now: Time) {
        self.setting_up.remove(&id);
        self.orphans.remove(&id);
        let source = self.users.remove(&id).and_then(|user| user.source);
        if let Some(source) = source
            && let Some(count) = self.by_source.get_mut(&source)
        {
            *count -= 1;
            if *count == 0 {
                self.by_source.remove(&source);
            }
        }
        self.endpoint.forget(now, id);
    }

    /// When the associations without handles are checked next.
    pub(crate) fn orphans_due(&self) -> Option<Instant> {
        self.orphans_due
    }

    /// Aborts associations without handles whose peers have acknowledged nothing since the last check.
    pub(crate) fn check_orphans(&mut self, shared: &Shared, now: Time) {
        for (id, before) in std::mem::take(&mut self.orphans) {
            let acknowledged = self.endpoint.statistics(now, id).acknowledged;
            self.orphans.insert(id, Some(acknowledged));
            if before == Some(acknowledged) {
                self.endpoint.abort(now, id, Bytes::from_static(b"nothing was acknowledged for minutes"));
            }
        }
        // Their end is an event like any other.
        self.drain(shared, now);
        self.orphans_due = (!self.orphans.is_empty()).then(|| Instant::now() + ABANDONED);
    }

    /// Whether an association that we initiated is being set up.
    pub(crate) fn is_setting_up(&self) -> bool {
        !self.setting_up.is_empty()
    }
}
