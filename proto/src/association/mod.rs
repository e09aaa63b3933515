//! One association: its state, its two halves, its paths, and what happens to them.
//!
//! `incoming.rs` takes packets in, `assemble.rs` builds the next one, `watch.rs` runs the timers and judges
//! paths, `local.rs` chooses their local addresses, `setup.rs` brings it up. Nothing is queued that could be built when polled.

mod addresses;
mod assemble;
mod detour;
mod extensions;
mod incoming;
mod local;
mod setup;
mod status;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use crate::chance::Chance;
use crate::extension::Extended;
use crate::notes::Notes;
use crate::output::{Event, LostReason, Message, Output, Purpose, SendError, Statistics};
use crate::path::{PathId, Paths};
use crate::policy::window::MakePath;
use crate::receive::Receiver;
use crate::send::{SendContext, Sender};
use crate::shutdown::{State, Step};
use crate::wire::chunk::{Abort, Data};
use crate::wire::{Address, Cause, Chunk, Packet};
use crate::{AssociationId, Config, Delivery, Duration, Time, Tsn};

use bytes::Bytes;
use detour::Detour;
pub(crate) use local::next_local;
pub(crate) use setup::{AssociationParts, new_tag};

/// One association.
#[derive(Clone, Debug)]
pub(crate) struct Association {
    pub(crate) id: AssociationId,
    pub(crate) config: Arc<Config>,
    chance: Chance,
    pub(crate) state: State,
    pub(crate) local_tag: u32,
    pub(crate) peer_tag: u32,
    pub(crate) local_tsn: Tsn,
    pub(crate) peer_port: u16,
    /// What the peer, or our user, has named as the peer's addresses; not all of them need be on a path.
    pub(crate) named: Vec<Address>,
    /// Streams that we may send on, and the peer may.
    pub(crate) streams: (u16, u16),
    window: Windows,
    pub(crate) paths: Paths,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// Where SACKs go meanwhile.
    detour: Option<Detour>,
    /// Control chunks to be sent once.
    pub(crate) control: VecDeque<(PathId, Chunk, Purpose)>,
    /// The control chunk that is sent until it is answered.
    resend: Option<Resend>,
    /// Heartbeats that left at this time, for HB.Max.Burst.
    heartbeats: (Time, u32),
    pub(crate) events: VecDeque<Event>,
    notes: Notes,
    pub(crate) statistics: Statistics,
    /// Timeouts and lost heartbeats in a row, on all paths that count (§8.1).
    errors: u32,
    /// How much longer than usual the peer's cookie should live, after one that was stale.
    preserve: Option<Duration>,
    /// When the newest of our cookies was made that this association has taken.
    cookie_taken: Option<Time>,
    /// T5-shutdown-guard; [`Time::NEVER`] is off.
    guard: Time,
    /// The user wants to end as soon as the association is up.
    leaving: bool,
    /// Data that can be read has been announced and not all been read.
    announced: bool,
    /// A packet that was taken in, for the next one that is built.
    spare: Option<Box<Packet>>,
    /// What extensions keep; `None` while none is offered, and once none was agreed.
    pub(crate) extended: Option<Box<Extended>>,
}

/// Makes the windows of paths.
#[derive(Clone)]
struct Windows(MakePath);

impl std::ops::Deref for Windows {
    type Target = MakePath;

    fn deref(&self) -> &MakePath {
        &self.0
    }
}

impl std::fmt::Debug for Windows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Windows")
    }
}

/// A control chunk under a timer: T1-init, T1-cookie or T2-shutdown.
#[derive(Clone, Debug)]
struct Resend {
    what: AwaitedReply,
    path: PathId,
    timer: Time,
    /// When it was sent last.
    sent: Time,
    tries: u32,
    due: bool,
    /// Goes with it in the same packet: what was not understood in an INIT ACK.
    with: Option<Chunk>,
}

impl Resend {
    fn new(what: AwaitedReply, path: PathId) -> Self {
        Resend { what, path, timer: Time::NEVER, sent: Time::ZERO, tries: 0, due: true, with: None }
    }
}

/// What is sent again until it is answered.
#[derive(Clone, Debug)]
enum AwaitedReply {
    Init,
    CookieEcho(Bytes),
    Shutdown,
    ShutdownAck,
}

impl Association {
    pub(crate) fn id(&self) -> AssociationId {
        self.id
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Whether this is one of the peer's addresses.
    pub(crate) fn knows(&self, address: Address) -> bool {
        self.named.contains(&address)
    }

    pub(crate) fn shared_config(&self) -> &Arc<Config> {
        &self.config
    }

    pub(crate) fn switch_notes(&mut self, on: bool) {
        self.notes.switch(on);
    }

    /// The sending half, and what it needs to know of the rest.
    pub(crate) fn sending(&mut self, now: Time) -> (&mut Sender, SendContext<'_>, &mut ChaCha8Rng) {
        let around = SendContext {
            now,
            config: &self.config,
            paths: &mut self.paths,
            notes: &mut self.notes,
            statistics: &mut self.statistics,
        };
        (&mut self.sender, around, &mut self.chance)
    }

    /// The next output of the association; `None`: nothing now.
    #[inline(always)]
    pub(crate) fn poll(&mut self, now: Time) -> Option<Output> {
        if self.extended.is_some() {
            self.work_extensions(now);
        }
        // Most polls find none: asking is cheaper than taking.
        if !self.events.is_empty()
            && let Some(event) = self.events.pop_front()
        {
            return Some(Output::Event(self.id, event));
        }
        if let Some(note) = self.notes.pop() {
            return Some(Output::Note(note));
        }
        if let Some((mut packet, reason)) = self.next_packet(now) {
            self.statistics.packets += 1;
            if let Some(extended) = &mut self.extended {
                extended.finish(&mut packet, now);
            }
            return Some(Output::Transmit(packet, reason));
        }
        self.settle(now);
        // Settling may have changed what blocks, or announced something.
        self.notes.pop().map(Output::Note)
    }

    fn settle(&mut self, now: Time) {
        if self.state != State::Closed {
            let (sender, mut around, _) = self.sending(now);
            sender.settle(&mut around);
            #[cfg(debug_assertions)]
            sender.check(around.paths);
            let timers = self.paths.ids().map(|id| (id, self.paths.get(id).timers.t3));
            self.notes.add_timers(now, timers);
        }
    }

    /// The earliest time at which something happens by itself.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        if self.state == State::Closed {
            return Time::NEVER;
        }
        let resend = self.resend.as_ref().map_or(Time::NEVER, |r| r.timer);
        let sack = self.receiver.sack_deadline();
        let own = self.paths.deadline().min(resend).min(sack).min(self.sender.probe_timer).min(self.guard);
        if self.extended.is_some() { own.min(self.extension_deadline()) } else { own }
    }

    /// Takes a message to send.
    #[inline]
    pub(crate) fn send(&mut self, message: Message, now: Time) -> Result<(), SendError> {
        if self.leaving || !self.state.takes_data() {
            return Err(SendError::Closed(message));
        }
        let allowed = if self.state.setting_up() { self.config.outbound_streams } else { self.streams.0 };
        if message.payload.is_empty() || message.stream >= allowed {
            return Err(SendError::Invalid(message));
        }
        let held = self.user_bytes();
        let wanted = held + message.payload.len() as u64;
        let over = wanted.saturating_sub(self.config.send_buffer());
        if held > 0 && over > 0 && !self.sender.displace(&message, over, &mut self.paths) {
            self.sender.refused = true;
            return Err(SendError::Full(message));
        }
        if let Some(state) = self.extended.as_mut().and_then(|extended| extended.streams.as_mut())
            && state.holds(message.stream)
        {
            state.hold(message, now);
            return Ok(());
        }
        let was_empty = self.sender.queue.is_empty();
        self.sender.queue.push(message, now);
        self.sender.called(was_empty);
        Ok(())
    }

    /// Bytes in the send buffer.
    pub(crate) fn user_bytes(&self) -> u64 {
        self.unsent() + self.sender.outstanding.user_bytes()
    }

    /// Bytes in the send buffer that were never sent.
    pub(crate) fn unsent(&self) -> u64 {
        let streams = self.extended.as_ref().and_then(|extended| extended.streams.as_ref());
        self.sender.queue.user_bytes() + streams.map_or(0, |streams| streams.held_bytes())
    }

    /// Tells a user whose message was refused that there is room again: a sixteenth of the send buffer, or all of it.
    pub(crate) fn announce_writable(&mut self) {
        let limit = self.config.send_buffer();
        let held = self.user_bytes();
        if self.sender.refused && self.state.takes_data() && (held == 0 || held + limit / 16 <= limit) {
            self.sender.refused = false;
            self.events.push_back(Event::Writable);
        }
    }

    /// The next message for the user.
    #[inline]
    pub(crate) fn read(&mut self) -> Option<Delivery> {
        let delivery = self.receiver.read(&self.config);
        self.announced = self.receiver.has_ready();
        delivery
    }

    pub(crate) fn is_readable(&self) -> bool {
        self.receiver.has_ready()
    }

    pub(crate) fn announce_readable(&mut self) {
        if !self.announced && self.receiver.has_ready() {
            self.announced = true;
            self.events.push_back(Event::Readable);
        }
    }

    /// The user wants to end gracefully. What was given before is still delivered, so that an association that is
    /// being set up is up first.
    //= rfc9260#section-9.2
    //= rfc9260#section-11.1.3
    pub(crate) fn shutdown(&mut self) {
        if let Some(next) = self.state.after(Step::Requested) {
            self.state = next;
            self.drained();
        }
        self.leaving |= self.state.setting_up();
    }

    /// If everything is acknowledged, an end under way takes its next step.
    pub(crate) fn drained(&mut self) {
        if !self.sender.is_empty() || self.user_bytes() > 0 {
            return;
        }
        if let Some(next) = self.state.after(Step::Drained) {
            self.enter(next);
        }
    }

    /// Enters a state of the end, with what is to be sent for it.
    fn enter(&mut self, next: State) {
        self.state = next;
        let what = match next {
            State::ShutdownSent => AwaitedReply::Shutdown,
            State::ShutdownAckSent => AwaitedReply::ShutdownAck,
            _ => return,
        };
        let path = self.open_path(self.sender.in_use);
        self.resend = Some(Resend::new(what, path));
        self.stop_heartbeats();
    }

    /// What is sent until it is answered goes again at once.
    pub(crate) fn resend_now(&mut self) {
        if let Some(resend) = &mut self.resend {
            resend.due = true;
        }
    }

    /// The user ends at once.
    //= rfc9260#section-9.1
    pub(crate) fn abort(&mut self, reason: Bytes, now: Time) {
        if !matches!(self.state, State::CookieWait | State::Closed) {
            self.send_abort(vec![Cause::UserInitiated(reason)]);
        }
        self.close(Event::Lost(LostReason::UserAborted), now);
    }

    fn send_abort(&mut self, causes: Vec<Cause>) {
        let abort = Chunk::Abort(Abort { reflected: false, causes });
        let wanted = self.resend.as_ref().map_or(self.sender.in_use, |resend| resend.path);
        self.control.push_back((self.open_path(wanted), abort, Purpose::Abort));
    }

    /// `wanted` if it is active and up, else a path in better order.
    pub(crate) fn open_path(&self, wanted: PathId) -> PathId {
        self.paths.open(wanted, self.sender.in_use)
    }

    /// The association is over: what was not delivered goes back to the user, then `last` says how it ended.
    fn close(&mut self, last: Event, now: Time) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.resend = None;
        let (sender, mut around, _) = self.sending(now);
        sender.stop_clock(&mut around);
        self.fail_all();
        self.events.push_back(last);
    }

    /// Gives back every message that was not acknowledged.
    fn fail_all(&mut self) {
        let unacknowledged = self.sender.outstanding.drain().map(|data| {
            let Data { stream, ppid, unordered, immediate, payload, .. } = data;
            (Message { stream, ppid, unordered, immediate, payload, ..Message::default() }, true)
        });
        let failed = |(message, sent)| Event::SendFailed { message, sent };
        self.events.extend(unacknowledged.map(failed));
        self.events.extend(self.sender.queue.drain().map(failed));
        if let Some(streams) = self.extended.as_mut().and_then(|extended| extended.streams.as_mut()) {
            self.events.extend(streams.drain().map(|message| failed((message, false))));
        }
    }

    pub(crate) fn set_primary(&mut self, path: PathId) -> bool {
        let known = path.index() < self.paths.views().len();
        if known {
            self.paths.set_primary(path);
            self.sender.event();
        }
        known
    }

    /// The user asks for a heartbeat now.
    pub(crate) fn request_heartbeat(&mut self, path: PathId) -> bool {
        let known = path.index() < self.paths.views().len();
        if known {
            self.paths.ask(path);
        }
        known
    }

    /// Packets to this peer address may have at most so many bytes.
    //= rfc9260#section-7.3
    pub(crate) fn set_mtu(&mut self, remote: Address, mtu: u32) {
        self.paths.set_mtu(remote, mtu, &self.config);
    }

    /// The socket of this local address takes packets, or none for now; whether that is news.
    pub(crate) fn set_writable(&mut self, local: Address, writable: bool) -> bool {
        let news = self.paths.set_writable(local, writable);
        if news && writable {
            self.sender.event();
        }
        news
    }

    /// The path that keeps a buffer full now, and for how long it has.
    pub(crate) fn blocking(&self, now: Time) -> Option<(PathId, Duration)> {
        self.sender.blocking(now)
    }

    pub(crate) fn statistics(&self, now: Time) -> Statistics {
        self.sender.charged(now, self.statistics)
    }
}
