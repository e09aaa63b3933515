//! An association: its state, its sending and receiving halves, its paths, and its events.
//!
//! `incoming.rs` processes packets, `assemble.rs` builds the next packet, `watch.rs` runs timers and judges paths,
//! `local.rs` chooses their local addresses, `replies.rs` collects what answers a packet, and `setup.rs` establishes
//! the association. Nothing is queued that can be built when polled.

mod addresses;
mod assemble;
mod detour;
mod extensions;
mod incoming;
mod local;
mod replies;
mod setup;
mod status;
mod watch;

use std::collections::VecDeque;
use std::hint::cold_path;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use crate::chance::Chance;
use crate::extension::Extended;
use crate::notes::{Notes, Noting};
use crate::output::{
    Event, Limit, LostReason, Message, Note, Output, Purpose, Reason, SendError, Statistics,
};
use crate::path::{PathId, PathState, PathView, Paths, Timer};
use crate::policy::Why;
use crate::policy::window::MakeWindow;
use crate::receive::Receiver;
use crate::send::{SendContext, Sender};
use crate::shutdown::{State, Step};
use crate::wire::chunk::{Abort, Data};
use crate::wire::{Address, Cause, Chunk, Packet, Spares};
use crate::{AssociationId, Config, Delivery, Discarded, Duration, Time, Tsn};

use bytes::Bytes;
use detour::Detour;
pub(crate) use incoming::Part;
pub(crate) use local::next_local;
pub(crate) use setup::{AssociationParts, new_tag};

/// One association.
// Here and in the parts of it, the fields that every packet needs stand first, so that they fill few lines of the
// processor's cache.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Association {
    pub(crate) state: State,
    /// Whether the user was told that there is something to read.
    announced: Announced,
    pub(crate) peer_port: u16,
    pub(crate) local_tag: u32,
    pub(crate) peer_tag: u32,
    /// Consecutive timeouts and lost heartbeats on all paths that count (§8.1).
    errors: u32,
    /// The state of extensions; `None` if none is offered or none was agreed.
    pub(crate) extended: Option<Box<Extended>>,
    /// T5-shutdown-guard; [`Time::NEVER`] is off.
    guard: Time,
    pub(crate) config: Arc<Config>,
    /// Control chunks that are sent once.
    control: VecDeque<(PathId, Chunk, Purpose)>,
    pub(crate) events: VecDeque<Event>,
    notes: Notes,
    /// Packets that were processed; the next packets reuse their memory.
    spares: Spares,
    pub(crate) statistics: Statistics,
    pub(crate) paths: Paths,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) id: AssociationId,
    chance: Chance,
    pub(crate) local_tsn: Tsn,
    /// The peer's addresses, as named by the peer or our user. Not all of them need be on a path.
    pub(crate) named: Vec<Address>,
    /// The numbers of outbound and inbound streams.
    pub(crate) streams: (u16, u16),
    window: Windows,
    /// The destination of SACKs while the return path is broken.
    detour: Detour,
    /// The control chunk that is repeated until it is answered.
    resend: Option<Resend>,
    /// The control chunks that the packet now processed has caused: their path and size.
    replies: Option<(PathId, usize)>,
    heartbeats: HeartbeatBurst,
    /// How much longer than usual the peer's cookie should live, after a stale one.
    preserve: Option<Duration>,
    /// The creation time of the newest of our cookies that this association has accepted.
    cookie_taken: Option<Time>,
    /// Whether the user wants to end the association as soon as it is up.
    leaving: bool,
}

/// The maker of the windows of paths.
#[derive(Clone)]
struct Windows(MakeWindow);

impl std::ops::Deref for Windows {
    type Target = MakeWindow;

    fn deref(&self) -> &MakeWindow {
        &self.0
    }
}

impl std::fmt::Debug for Windows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Windows")
    }
}

/// How many heartbeats were sent at one time, for HB.Max.Burst.
#[derive(Copy, Clone, Debug)]
struct HeartbeatBurst {
    at: Time,
    sent: u32,
}

/// A control chunk with a timer: T1-init, T1-cookie or T2-shutdown.
#[derive(Clone, Debug)]
struct Resend {
    what: AwaitedReply,
    path: PathId,
    timer: Time,
    /// When it was last sent.
    sent: Time,
    tries: u32,
    due: bool,
    /// The report about unrecognized parameters of an INIT ACK. It leaves in the same packet.
    with: Option<Chunk>,
}

impl Resend {
    fn new(what: AwaitedReply, path: PathId) -> Self {
        Resend { what, path, timer: Time::NEVER, sent: Time::ZERO, tries: 0, due: true, with: None }
    }
}

/// Whether the user was told that there is something to read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Announced {
    /// No; or everything that was announced was read.
    No,
    /// The next poll announces it.
    Due,
    /// Yes, and not all of it was read.
    Yes,
}

/// The control chunk that is repeated until it is answered.
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

    /// The pair of the path to this address, if the user has named the address.
    pub(crate) fn named_pair(&self, address: Address) -> Option<(Address, Address)> {
        let path = self.paths.to(address).filter(|path| self.paths.get(*path).health.named)?;
        Some((self.paths.view(path).local, address))
    }

    /// Whether the peer has deleted this address.
    pub(crate) fn has_deleted(&self, address: Address) -> bool {
        let had = |view: &PathView| view.remote == address && view.state == PathState::Removed;
        self.paths.views().iter().any(had) && !self.knows(address)
    }

    pub(crate) fn shared_config(&self) -> &Arc<Config> {
        &self.config
    }

    pub(crate) fn switch_notes(&mut self, noting: Noting) {
        self.notes.switch(noting);
    }

    /// The sending half, and the surroundings that it needs.
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

    /// Whether there may be an output that comes before the next packet.
    #[inline]
    fn may_have_news(&self) -> bool {
        self.extended.is_some()
            || !self.events.is_empty()
            || self.announced == Announced::Due
            || !self.notes.is_silent()
    }

    /// The next event or note. The next packet comes after all of them.
    #[inline(always)]
    pub(crate) fn next_news(&mut self, now: Time) -> Option<Output> {
        if self.may_have_news() { self.take_news(now) } else { None }
    }

    // Most polls find no news, so this is kept out of their way.
    #[inline(never)]
    fn take_news(&mut self, now: Time) -> Option<Output> {
        if self.extended.is_some() {
            self.work_extensions(now);
        }
        if let Some(event) = self.events.pop_front() {
            return Some(Output::Event(self.id, event));
        }
        if self.announced == Announced::Due {
            self.announced = Announced::Yes;
            return Some(Output::Event(self.id, Event::Readable));
        }
        self.notes.pop().map(Output::Note)
    }

    /// The next packet, complete. After the last one the association must settle.
    #[inline(always)]
    pub(crate) fn take_packet(&mut self, now: Time) -> Option<(Box<Packet>, Reason)> {
        if self.sender.goes_alone() {
            if let Some((packet, path)) = self.next_of_train(now) {
                self.statistics.packets += 1;
                let (purpose, path) = (Purpose::Data(Why::New), Some(path));
                return Some((packet, Reason { purpose, path, limit: Limit::Window, oversize: false }));
            }
            if self.sender.goes_alone() {
                return None;
            }
        }
        if self.owes_sack_alone() {
            self.statistics.packets += 1;
            let (packet, path) = self.sack_alone();
            return Some((packet, Reason::of_sack(path)));
        }
        let (mut packet, reason) = self.next_packet(now)?;
        self.statistics.packets += 1;
        if let Some(extended) = &mut self.extended {
            cold_path();
            extended.finish(&mut packet, reason.purpose == Purpose::Data(Why::New), now);
            if extended.agreed.ecn {
                self.paths.forget_cuts(self.sender.outstanding.highest());
            }
        }
        Some((packet, reason))
    }

    /// Settles if it is certain that there is no output, and returns whether it is. An end that only receives has none
    /// most of the time.
    #[inline]
    pub(crate) fn rests(&mut self) -> bool {
        self.sender.is_empty()
            && !self.receiver.schedule.now
            && !self.has_control()
            && !self.may_have_news()
            && self.state != State::Closed
            && self.sender.rests()
    }

    /// Moves all notes to `taken`, which is empty, unless an event comes before them.
    pub(crate) fn take_notes(&mut self, taken: &mut VecDeque<Note>) {
        if self.events.is_empty() && self.announced != Announced::Due {
            self.notes.take(taken);
        }
    }

    /// Moves the notes that were kept to the end of `taken`.
    pub(crate) fn take_kept(&mut self, taken: &mut Vec<Note>) {
        self.notes.take_kept(taken);
    }

    /// Nothing more leaves now. That may change what blocks, which makes a note.
    #[inline(always)]
    pub(crate) fn settle(&mut self, now: Time) -> Option<Note> {
        if self.state != State::Closed {
            let (sender, mut around, _) = self.sending(now);
            sender.settle(&mut around);
            #[cfg(debug_assertions)]
            sender.check(around.paths);
            let timers = self.paths.ids().map(|id| (id, self.paths.get(id).timers[Timer::T3]));
            self.notes.add_timers(now, timers);
            self.paths.note_changed_windows(now, &mut self.notes);
        }
        self.notes.pop()
    }

    /// The earliest deadline of the association, or an earlier time after `now`.
    #[inline]
    pub(crate) fn deadline(&mut self, now: Time) -> Time {
        if self.state == State::Closed {
            return Time::NEVER;
        }
        let resend = self.resend.as_ref().map_or(Time::NEVER, |r| r.timer);
        let sack = self.receiver.sack_deadline();
        let own = self.paths.deadline(now).min(resend).min(sack).min(self.sender.probe_timer).min(self.guard);
        if self.extended.is_none() {
            return own;
        }
        cold_path();
        own.min(self.extension_deadline())
    }

    /// Accepts a message to send.
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

    /// Accepts up to `count` equal messages, as `count` calls of [`Self::send`] would. `constant`: their payload, if
    /// that is one. Returns how many it accepted.
    pub(crate) fn send_copies(
        &mut self,
        message: &Message,
        constant: Option<&'static [u8]>,
        count: u64,
        now: Time,
    ) -> u64 {
        let mut taken = 0;
        while taken < count && self.send(message.clone(), now).is_ok() {
            taken += 1;
            if self.extended.is_none() && self.sender.queue.joins_equals() {
                let free = self.config.send_buffer().saturating_sub(self.user_bytes());
                let more = (free / message.payload.len() as u64).min(count - taken);
                self.sender.queue.repeat_last(more, constant);
                taken += more;
            }
        }
        taken
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
    #[inline]
    pub(crate) fn announce_writable(&mut self) {
        if self.sender.refused && self.state.takes_data() {
            self.announce_room();
        }
    }

    fn announce_room(&mut self) {
        let limit = self.config.send_buffer();
        let held = self.user_bytes();
        if held == 0 || held + limit / 16 <= limit {
            self.sender.refused = false;
            self.events.push_back(Event::Writable);
        }
    }

    /// The next message for the user. When everything was read before the next poll, nothing is announced.
    #[inline]
    pub(crate) fn read(&mut self) -> Option<Delivery> {
        let delivery = self.receiver.read(&self.config);
        self.all_read();
        delivery
    }

    /// As `read`, for a user who only looks at it.
    #[inline]
    pub(crate) fn read_with<T>(&mut self, look: impl FnOnce(&Delivery) -> T) -> Option<T> {
        let seen = self.receiver.read_with(&self.config, look);
        self.all_read();
        seen
    }

    /// What was discarded since the last call. It counts as read now.
    #[inline]
    pub(crate) fn take_discarded(&mut self) -> Option<Discarded> {
        self.receiver.take_discarded(&self.config)
    }

    /// If everything was read, nothing is announced any more.
    fn all_read(&mut self) {
        if !self.receiver.has_ready() {
            self.announced = Announced::No;
        }
    }

    pub(crate) fn is_readable(&self) -> bool {
        self.receiver.has_ready()
    }

    pub(crate) fn announce_readable(&mut self) {
        if self.announced == Announced::No && self.receiver.has_ready() {
            self.announced = Announced::Due;
        }
    }

    /// The user requests a graceful end. Data given before is still delivered, so an association in set-up comes up
    /// first.
    //= rfc9260#section-9.2
    //= rfc9260#section-11.1.3
    pub(crate) fn shutdown(&mut self) {
        if let Some(next) = self.state.after(Step::Requested) {
            self.state = next;
            self.drained();
        }
        self.leaving |= self.state.setting_up();
    }

    /// If everything is acknowledged, an end in progress takes its next step.
    pub(crate) fn drained(&mut self) {
        self.drained_on(self.sender.in_use);
    }

    /// As `drained`; the packet of that step leaves on this path.
    fn drained_on(&mut self, path: PathId) {
        if !self.sender.is_empty() || self.user_bytes() > 0 {
            return;
        }
        if let Some(next) = self.state.after(Step::Drained) {
            self.enter(next, path);
        }
    }

    /// Enters a state of the end, and requests the packet that belongs to it, on this path if it works.
    fn enter(&mut self, next: State, path: PathId) {
        self.state = next;
        let what = match next {
            State::ShutdownSent => AwaitedReply::Shutdown,
            State::ShutdownAckSent => AwaitedReply::ShutdownAck,
            _ => return,
        };
        self.resend = Some(Resend::new(what, self.open_path(path)));
        self.stop_heartbeats();
    }

    /// Repeats the unanswered control chunk at once.
    pub(super) fn resend_now(&mut self) {
        if let Some(resend) = &mut self.resend {
            resend.due = true;
        }
    }

    /// The user aborts.
    //= rfc9260#section-9.1
    pub(crate) fn abort(&mut self, mut reason: Bytes, now: Time) {
        if !matches!(self.state, State::CookieWait | State::Closed) {
            reason.truncate(self.cause_room(self.path_of_end()));
            self.send_abort(vec![Cause::UserInitiated(reason)]);
        }
        self.close(Event::Lost(LostReason::UserAborted), now);
    }

    fn send_abort(&mut self, causes: Vec<Cause>) {
        let abort = Chunk::Abort(Abort { reflected: false, causes });
        self.send_control(self.path_of_end(), abort, Purpose::Abort);
    }

    /// The path on which an ABORT leaves.
    fn path_of_end(&self) -> PathId {
        let wanted = self.resend.as_ref().map_or(self.sender.in_use, |resend| resend.path);
        self.open_path(wanted)
    }

    /// `wanted` if it is active and up, otherwise a path in better condition.
    pub(crate) fn open_path(&self, wanted: PathId) -> PathId {
        self.paths.open(wanted, self.sender.in_use)
    }

    /// The association has ended: undelivered data is returned to the user, then `last` reports how it ended.
    fn close(&mut self, last: Event, now: Time) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.resend = None;
        let (sender, mut around, _) = self.sending(now);
        sender.uncouple();
        sender.stop_clock(&mut around);
        self.fail_all();
        self.events.push_back(last);
    }

    /// Returns every unacknowledged message to the user.
    fn fail_all(&mut self) {
        self.return_abandoned();
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
        let known = self.paths.has(path);
        if known {
            self.paths.set_primary(path);
            self.sender.event();
        }
        known
    }

    /// The user requests a heartbeat now.
    pub(crate) fn request_heartbeat(&mut self, path: PathId) -> bool {
        let known = self.paths.has(path);
        if known {
            self.paths.ask(path);
        }
        known
    }

    /// A router reported that packets to this peer address may have at most `limit` bytes, IP header included.
    //= rfc9260#section-7.3
    pub(crate) fn too_big(&mut self, remote: Address, limit: u32, now: Time) {
        self.paths.too_big(remote, limit, now, &self.config);
    }

    /// The socket of this local address is full or accepts packets again. Returns whether this is a change.
    pub(crate) fn set_writable(&mut self, local: Address, writable: bool) -> bool {
        let news = self.paths.set_writable(local, writable);
        if news && writable {
            self.sender.event();
        }
        news
    }

    /// The path that keeps a buffer full now, and for how long.
    pub(crate) fn blocking(&self, now: Time) -> Option<(PathId, Duration)> {
        self.sender.blocking(now)
    }

    pub(crate) fn statistics(&self, now: Time) -> Statistics {
        self.sender.charged(now, self.statistics)
    }
}
