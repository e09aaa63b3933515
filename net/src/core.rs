//! The core and its environment, protected by one lock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anabranch_proto::wire::{Address, Copies, Packet, Spares};
use anabranch_proto::{
    AssociationId, Event, Incoming, LostReason, Output, PathView, Purpose, Reason, Status, Time,
};
use bytes::Bytes;
use tokio::sync::{Notify, broadcast};

use crate::gather::Manner;
use crate::interface::{self, Interface, route};
use crate::outbound::Outbound;
use crate::report::{PathReport, Traffic};
use crate::socket::{Datagram, Socket};
use crate::source;
use crate::tape::Taped;

/// The number of events by which a slow listener may lag before it misses the oldest.
const EVENTS: usize = 32;
/// The largest number of associations that wait to be accepted. Further ones are aborted.
const BACKLOG: usize = 1024;
/// The number of peers of a local address that are tried in order to find out whether the address is up.
const ASKED: usize = 8;
/// The number of peer addresses that learn at once of a smaller MTU of an own interface. Others find out by what is lost.
const TOLD: usize = 256;
/// The number of packets that are built before they are encoded.
const STAGE: usize = 64;
/// The number of packets whose memory is kept for others.
const MOST_SPARES: usize = 128;
/// The interval at which an address that is down is checked, if no notification comes.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// An association without handles is aborted if its peer acknowledges nothing between two checks at this interval. A peer that never reads
/// would keep it alive by its answers to window probes. Tests have no time for that.
const ABANDONED: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 300 });

/// The state shared by user calls and the driver.
pub(crate) struct Shared {
    core: Mutex<Core>,
    pub(crate) sockets: Vec<Socket>,
    /// There is something to send, or the next deadline is earlier.
    pub(crate) driver: Notify,
    /// An association can be accepted.
    pub(crate) accepting: Notify,
    /// The last user is gone.
    pub(crate) closing: AtomicBool,
    /// The driver is gone, although associations were left.
    stopped: AtomicBool,
}

pub(crate) struct Core {
    endpoint: Taped,
    begun: Instant,
    /// By socket.
    outbound: Vec<Outbound>,
    users: BTreeMap<AssociationId, User>,
    /// Those that we initiated and that are being set up.
    setting_up: BTreeSet<AssociationId>,
    /// Associations that peers initiated, by source.
    by_source: BTreeMap<IpAddr, u32>,
    /// The largest number of them per source.
    max_per_source: u32,
    accepted: VecDeque<AssociationId>,
    /// The associations without handles, with the bytes that the peer had acknowledged at the last check, if there was one.
    orphans: BTreeMap<AssociationId, Option<u64>>,
    /// When they are checked next.
    orphans_due: Option<Instant>,
    /// The payloads of arrived packets.
    copies: Copies,
    /// The packets of a datagram that were decoded and not yet handled.
    arrived: Spares,
    /// The packets that are to be gathered, with the sockets that they leave from.
    leaving: Vec<(Box<Packet>, usize, Manner)>,
    /// Packets that are needed no longer, to decode into.
    spares: Spares,
    /// When the endpoint next has something to do.
    pub(crate) wake: Option<Time>,
    pub(crate) traffic: Traffic,
}

/// An association as its users see it.
pub(crate) struct User {
    pub(crate) standing: AssociationState,
    pub(crate) signals: Arc<Signals>,
    /// The source of the peer that initiated it.
    source: Option<IpAddr>,
    /// Whether its user has ended it gracefully.
    leaving: bool,
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
        User { standing, signals: Arc::new(signals), source, leaving: false }
    }

    fn over(&self) -> bool {
        matches!(self.standing, AssociationState::Closed | AssociationState::Lost(_))
    }
}

impl Shared {
    pub(crate) fn new(
        endpoint: Taped,
        sockets: Vec<Socket>,
        interfaces: &[Option<Interface>],
        gso: bool,
        max_per_source: Option<u32>,
    ) -> Shared {
        let outbound = |(socket, interface): (&Socket, &Option<Interface>)| {
            let mtu = interface.as_ref().and_then(|interface| interface.mtu);
            Outbound::new(if gso { socket.most() } else { 1 }, mtu)
        };
        let core = Core {
            endpoint,
            begun: Instant::now(),
            outbound: sockets.iter().zip(interfaces).map(outbound).collect(),
            users: BTreeMap::new(),
            setting_up: BTreeSet::new(),
            by_source: BTreeMap::new(),
            max_per_source: max_per_source.unwrap_or(u32::MAX),
            accepted: VecDeque::new(),
            orphans: BTreeMap::new(),
            orphans_due: None,
            copies: Copies::default(),
            arrived: Spares::new(),
            leaving: Vec::new(),
            spares: Spares::new(),
            wake: None,
            traffic: Traffic::default(),
        };
        Shared {
            core: Mutex::new(core),
            sockets,
            driver: Notify::new(),
            accepting: Notify::new(),
            closing: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A user's call of the core, and the gathering of all packets that it releases.
    pub(crate) fn call<T>(&self, what: impl FnOnce(&mut Taped, Time) -> T) -> T {
        let mut core = self.lock();
        let (now, wake) = (core.now(), core.wake);
        let result = what(&mut core.endpoint, now);
        core.drain(self, now);
        let sooner = core.wake.is_some_and(|at| wake.is_none_or(|before| at < before));
        if sooner || !core.leaving.is_empty() || core.outbound.iter().any(Outbound::needs_driver) {
            self.driver.notify_one();
        }
        result
    }

    /// A user ends the association gracefully.
    pub(crate) fn shutdown(&self, id: AssociationId) {
        self.lock().users.entry(id).and_modify(|user| user.leaving = true);
        self.call(|core, now| core.shutdown(now, id));
    }

    /// Begins an association with the peer at these addresses.
    pub(crate) fn connect(
        &self,
        port: u16,
        to: &[Address],
    ) -> Result<AssociationId, anabranch_proto::Refused> {
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
    pub(crate) fn now(&self) -> Time {
        Time::ZERO + self.begun.elapsed()
    }

    /// The time `time` on the machine's clock.
    pub(crate) fn instant(&self, time: Time) -> Instant {
        self.begun + Duration::from_nanos(time.as_nanos())
    }

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

    /// Whether an association exists that has not ended.
    pub(crate) fn is_idle(&self) -> bool {
        let sent = self.leaving.is_empty() && self.outbound.iter().all(|outbound| outbound.gather.is_empty());
        sent && self.users.values().all(User::over)
    }

    /// Drains the output of the endpoint: after every call, and after every packet of a batch.
    pub(crate) fn drain(&mut self, shared: &Shared, now: Time) {
        loop {
            match self.endpoint.poll(now) {
                Output::Transmit(packet, reason) => self.transmit(shared, packet, &reason),
                Output::Event(id, event) => self.event(shared, id, event, now),
                Output::Note(_) => {}
                Output::Wait(until) => return self.wake = until,
            }
        }
    }

    fn transmit(&mut self, shared: &Shared, packet: Box<Packet>, reason: &Reason) {
        let manner = match reason.purpose {
            _ if reason.oversize => Manner::Fragmented,
            Purpose::Heartbeat => Manner::Alone,
            _ => Manner::Together,
        };
        let Some(from) = shared.sockets.iter().position(|socket| socket.address == packet.from) else {
            return;
        };
        self.leaving.push((packet, from, manner));
        if self.leaving.len() >= STAGE {
            self.gather(shared);
        }
    }

    /// Encodes the packets that leave, behind those that were gathered before.
    fn gather(&mut self, shared: &Shared) {
        for (mut packet, from, manner) in self.leaving.drain(..) {
            let (outbound, to) = (&mut self.outbound[from], SocketAddr::new(packet.to.ip, packet.to.udp));
            if !outbound.gather.extend(to, &packet, manner) {
                // What was gathered is complete. It leaves now, while the cache still holds it.
                outbound.send(&shared.sockets[from], &mut self.traffic);
                outbound.gather.begin(to, &packet, manner);
            }
            if self.spares.len() < MOST_SPARES {
                packet.recycle();
                self.spares.push(packet);
            }
        }
    }

    fn event(&mut self, shared: &Shared, id: AssociationId, event: Event, now: Time) {
        let known = self.users.contains_key(&id);
        if !known && (event != Event::Up || !self.admit(shared, id, now)) {
            return;
        }
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
            Event::SendFailed { .. } => return,
            Event::Path(..)
            | Event::PeerError(_)
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

    fn forget(&mut self, id: AssociationId, now: Time) {
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

    /// Handles the packets of a datagram one after the other, and takes the packets that each releases before the next one is handled.
    /// All are decoded first: the processor then reads the code of each step once for all.
    pub(crate) fn arrived(&mut self, shared: &Shared, datagram: &Datagram<'_>, now: Time) {
        let mut arrived = std::mem::take(&mut self.arrived);
        let port = self.endpoint.config().port;
        for bytes in datagram.packets() {
            let mut packet = self.spares.pop().unwrap_or_default();
            match datagram.decode(bytes, &mut packet, &self.copies) {
                // A raw socket also hears what other SCTP ports of this host are sent: on loopback, its own packets.
                Ok(()) if datagram.is_raw() && packet.ports.destination != port => self.spares.push(packet),
                Ok(()) => {
                    self.traffic.packets_received += 1;
                    arrived.push(packet);
                }
                Err(_) => self.traffic.malformed += 1,
            }
        }
        for packet in arrived.drain(..) {
            self.endpoint.handle(now, Incoming::Packet(packet));
            self.drain(shared, now);
            self.endpoint.level_memory(&mut self.spares);
        }
        self.arrived = arrived;
    }

    /// Reports addresses at which SCTP is not reachable to the core.
    pub(crate) fn take_errors(&mut self, shared: &Shared) {
        for socket in &shared.sockets {
            socket.take_errors(|remote, quoted| {
                let now = self.now();
                self.endpoint.handle(now, Incoming::Unreachable(remote, quoted));
                self.drain(shared, now);
            });
        }
    }

    /// Whether an association that we initiated is being set up.
    pub(crate) fn is_setting_up(&self) -> bool {
        !self.setting_up.is_empty()
    }

    /// Hands the gathered packets to the kernel, and tells the core what became of them.
    pub(crate) fn flush(&mut self, shared: &Shared, now: Time) {
        self.gather(shared);
        for (index, socket) in shared.sockets.iter().enumerate() {
            let outbound = &mut self.outbound[index];
            outbound.send(socket, &mut self.traffic);
            if outbound.full && !std::mem::replace(&mut outbound.told, true) {
                self.endpoint.handle(now, Incoming::Writable(socket.address, false));
                self.drain(shared, now);
            }
            if std::mem::take(&mut self.outbound[index].unreachable) {
                self.look(shared, index, now);
            }
        }
        if !self.leaving.is_empty() {
            // Other paths send what these could not.
            shared.driver.notify_one();
        }
    }

    /// Whether the kernel accepts no packets from this socket now.
    pub(crate) fn is_full(&self, index: usize) -> bool {
        self.outbound[index].full
    }

    /// The kernel accepts packets from this socket again.
    pub(crate) fn writable(&mut self, shared: &Shared, index: usize, now: Time) {
        (self.outbound[index].full, self.outbound[index].told) = (false, false);
        self.endpoint.handle(now, Incoming::Writable(shared.sockets[index].address, true));
        self.drain(shared, now);
    }

    /// When the next address that is down is checked.
    pub(crate) fn look_again(&self) -> Option<Instant> {
        self.outbound.iter().filter_map(|outbound| outbound.down).min()
    }

    /// Checks every local address, or only those that are down.
    pub(crate) fn look_at_all(&mut self, shared: &Shared, only_down: bool, now: Time) {
        for index in 0..shared.sockets.len() {
            if !only_down || self.outbound[index].down.is_some() {
                self.follow(shared, index, now);
                self.look(shared, index, now);
            }
        }
    }

    /// Binds a socket to the interface that its address is on now, if that is another one. If that carries less than before, paths learn it.
    fn follow(&mut self, shared: &Shared, index: usize, now: Time) {
        let socket = &shared.sockets[index];
        let Some(interface) = interface::of(socket.address.ip) else { return };
        let followed = socket.follow(&interface);
        self.outbound[index].astray = followed.is_err();
        let before = std::mem::replace(&mut self.outbound[index].mtu, interface.mtu);
        if let Some(mtu) = interface.mtu.filter(|mtu| before.is_some_and(|before| *mtu < before)) {
            for remote in self.remotes(socket.address, TOLD) {
                self.endpoint.handle(now, Incoming::TooBig(remote, mtu));
            }
            self.drain(shared, now);
        }
        // What the old socket did not take, the new one does.
        if matches!(followed, Ok(true)) && self.outbound[index].full {
            self.writable(shared, index, now);
        }
    }

    /// Asks the system whether packets can leave from a local address, and reports a change to the core.
    fn look(&mut self, shared: &Shared, index: usize, now: Time) {
        let socket = &shared.sockets[index];
        let peers = self.remotes(socket.address, ASKED);
        if peers.is_empty() {
            return;
        }
        let open = socket.open();
        let leads = |to: &Address| route(Some(socket.address.ip), open.bound(), to.ip).is_ok();
        let up = !self.outbound[index].astray && peers.iter().any(leads);
        let was_up = self.outbound[index].down.is_none();
        self.outbound[index].down = (!up).then(|| Instant::now() + LOOK_AGAIN);
        // An address that is down is reported again, because an association may have begun since.
        if !up || !was_up {
            self.endpoint.handle(now, Incoming::Up(socket.address, up));
            self.drain(shared, now);
        }
    }

    /// The peer addresses of paths from `local`; not many more than `most` of them.
    fn remotes(&self, local: Address, most: usize) -> BTreeSet<Address> {
        let mut remotes = BTreeSet::new();
        for (id, _) in self.users.iter().filter(|(_, user)| !user.over()) {
            let paths = self.endpoint.paths(*id).iter();
            remotes.extend(paths.filter(|path| path.local == local).map(|path| path.remote));
            if remotes.len() >= most {
                break;
            }
        }
        remotes
    }
}

impl Shared {
    /// The last user is gone: peers can initiate nothing more, and what nobody has accepted ends. The driver ends when the last
    /// association has ended.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.accepting.notify_waiters();
        let mut core = self.lock();
        let now = core.now();
        core.endpoint.set_listening(now, false);
        for id in std::mem::take(&mut core.accepted) {
            core.endpoint.abort(now, id, Bytes::from_static(b"the endpoint is closed"));
            core.forget(id, now);
        }
        core.drain(self, now);
        self.driver.notify_one();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// The driver has ended before its associations, because its runtime has: nobody will be told anything any more.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.closing.store(true, Ordering::Release);
        self.accepting.notify_waiters();
        for user in self.lock().users.values_mut().filter(|user| !user.over()) {
            user.standing = AssociationState::Lost(LostReason::UserAborted);
            user.signals.readable.notify_waiters();
            user.signals.writable.notify_waiters();
            let _ = user.signals.events.send(Event::Lost(LostReason::UserAborted));
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}
