//! The core and its environment, protected by one lock.

mod addresses;
mod users;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anabranch_proto::wire::{Copies, Packet, Spares};
use anabranch_proto::{AssociationId, Event, Incoming, LostReason, Output, Purpose, Reason, Time};
use bytes::Bytes;
use tokio::sync::Notify;

use crate::gather::Manner;
use crate::interface::Interface;
use crate::outbound::Outbound;
use crate::report::Traffic;
use crate::socket::{Datagram, Socket};
use crate::tape::Taped;

use users::User;
pub(crate) use users::{AssociationState, Signals};

/// The number of packets that are built before they are encoded.
const STAGE: usize = 64;
/// The number of packets whose memory is kept for others.
const MOST_SPARES: usize = 128;

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
    /// The driver is gone, or the core is broken, although associations were left.
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
    /// The associations without handles, with the bytes that the peer had acknowledged at the last check, if there was
    /// one.
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
        self.core.lock().unwrap_or_else(|broken| self.after_panic(broken.into_inner()))
    }

    /// A call of the core panicked, perhaps in a policy of the user's own. That core is never called again, because
    /// whoever unwinds still calls it, and a second panic would abort the process. Everything has ended.
    #[cold]
    fn after_panic<'a>(&self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        core.endpoint.replace();
        (core.wake, core.orphans_due) = (None, None);
        core.leaving.clear();
        self.core.clear_poison();
        self.end_all(&mut core);
        self.driver.notify_one();
        core
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

    /// The last user is gone: peers can initiate nothing more, and what nobody has accepted ends. The driver ends when
    /// the last association has ended.
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
        self.end_all(&mut self.lock());
    }

    fn end_all(&self, core: &mut Core) {
        self.stopped.store(true, Ordering::Release);
        self.closing.store(true, Ordering::Release);
        self.accepting.notify_waiters();
        for user in core.users.values_mut().filter(|user| !user.over()) {
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

impl Core {
    pub(crate) fn now(&self) -> Time {
        Time::ZERO + self.begun.elapsed()
    }

    /// The time `time` on the machine's clock.
    pub(crate) fn instant(&self, time: Time) -> Instant {
        self.begun + Duration::from_nanos(time.as_nanos())
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

    /// Handles the packets of a datagram one after the other, and takes the packets that each releases before the next
    /// one is handled. All are decoded first: the processor then reads the code of each step once for all.
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

    /// Whether the kernel accepts no packets from this socket now, and may be asked when it does again.
    pub(crate) fn waits_for_room(&self, index: usize) -> bool {
        let outbound = &self.outbound[index];
        outbound.full && outbound.rests_until().is_none()
    }

    /// When the next full socket that rests may be asked again.
    pub(crate) fn ask_again(&self) -> Option<Instant> {
        self.outbound.iter().filter_map(Outbound::rests_until).min()
    }

    /// The kernel accepts packets from this socket again.
    pub(crate) fn writable(&mut self, shared: &Shared, index: usize, now: Time) {
        (self.outbound[index].full, self.outbound[index].told) = (false, false);
        self.endpoint.handle(now, Incoming::Writable(shared.sockets[index].address, true));
        self.drain(shared, now);
    }
}
