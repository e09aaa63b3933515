//! A connection over several subflows. Segments and user calls enter with the time, and `poll` returns segments
//! (sans-I/O).

use anabranch_proto::policy::{Route, Why as Data};
use anabranch_proto::{Blocked, PathId, PathState, PathView, Purpose, Reason, Time};

use super::assembly::Assembly;
use super::blocked::{BlockedClock, Totals};
use super::config::MptcpConfig;
use super::keys::Keys;
use super::option::{DataAck, Handshake, MptcpOptions};
use super::pieces::Pieces;
use super::setup::{Fin, Setup};
use super::subflow::{Mapped, News, Stage, Subflow};
use crate::observe::trace::Detail;
use crate::transport::earlier;
use crate::transport::tcp::{self, Segment, State, Stream, TcpNote, TcpPacket};

/// One end of a connection.
pub(crate) struct Connection {
    pub(super) config: MptcpConfig,
    pub(super) client: bool,
    pub(super) subflows: Vec<Subflow>,
    pub(super) views: Vec<PathView>,
    /// The first data sequence numbers of this end and of the other end.
    pub(super) numbers: (u64, u64),
    pub(super) keys: Keys,
    pub(super) setup: Setup,
    /// Whether the connection has fallen back to TCP, with the first subflow only.
    pub(super) plain: bool,

    pub(super) pieces: Pieces,
    /// Bytes that the application has written.
    pub(super) written: u64,
    /// Whether the application will write no more.
    pub(super) closing: bool,
    /// One past the highest offset that the receiver allows.
    pub(super) admitted: u64,
    pub(super) fin: Fin,
    pub(super) probe: Probe,
    pub(super) route: Box<dyn Route>,
    /// Whether the scheduler must be told what is acknowledged.
    hears_acknowledgements: bool,
    /// The random number that breaks ties between paths.
    pub(super) ties: u64,
    pub(super) turn: Turn,
    pub(super) blocked: BlockedClock,

    pub(super) assembly: Assembly,
    /// The subflow on which the last segment arrived.
    pub(super) heard_on: usize,
    /// How long it waits for the subflows after both directions have ended.
    pub(super) linger: Option<Time>,
    /// No timer of the connection or of a subflow expires before this time.
    quiet_until: Time,
    details: Option<Vec<(Time, Option<PathId>, Detail)>>,
}

/// Probes of a closed window.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Probe {
    /// The time of the next probe, and the number of probes so far.
    pub(super) timer: Option<(Time, u32)>,
    /// Whether a byte beyond the window is in flight.
    pub(super) sent: bool,
    /// Probes sent.
    pub(super) count: u64,
}

/// The event that currently allows data to leave.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Turn {
    /// The number of the event.
    pub(super) event: u64,
    /// Whether the last event allowed nothing more.
    pub(super) over: bool,
    /// What prevented new data from leaving at the last attempt.
    pub(super) found: Option<Blocked>,
    /// Whether an acknowledgement has arrived since, so that it must be decided whether to penalise a subflow.
    pub(super) heard: bool,
}

/// The result of polling a connection.
#[derive(Debug)]
pub(crate) enum ConnectionOutput {
    /// Send this packet now: the path, the packet, and the reason.
    Transmit(usize, Box<TcpPacket>, Reason),
    /// Nothing more now. Poll again after the next segment or call, and at this time at the latest.
    Wait(Option<Time>),
}

impl Connection {
    /// Creates one end. `keys`: its own key first. The first subflow starts the connection.
    pub(super) fn new(
        config: MptcpConfig,
        client: bool,
        keys: Keys,
        (subflows, views): (Vec<Subflow>, Vec<PathView>),
        (route, ties): (Box<dyn Route>, u64),
        setup: Setup,
    ) -> Self {
        let assembly = Assembly::new(config.receive_buffer, u64::from(config.tcp.segment_size));
        let plain = !client && !config.server_multipath;
        let mut connection = Connection {
            config,
            client,
            subflows,
            views,
            numbers: keys.first_numbers(),
            keys,
            setup,
            plain,
            pieces: Pieces::default(),
            written: 0,
            closing: false,
            admitted: 0,
            fin: Fin::default(),
            probe: Probe::default(),
            hears_acknowledgements: route.hears_sacks(),
            route,
            ties,
            turn: Turn::default(),
            blocked: BlockedClock::default(),
            assembly,
            heard_on: 0,
            linger: None,
            quiet_until: Time::ZERO,
            details: None,
        };
        connection.begin_subflows();
        connection
    }

    /// The state of a path as the scheduler sees it, without regard to backups.
    pub(crate) fn state(&self, path: usize) -> PathState {
        if self.plain && path > 0 {
            return PathState::Unconfirmed;
        }
        self.subflows[path].state(self.most_timeouts())
    }

    /// The number of consecutive timeouts after which new data avoids a subflow. After a fallback there is no other.
    fn most_timeouts(&self) -> Option<u32> {
        self.config.pf_max_retrans.filter(|_| !self.plain)
    }

    /// Whether nothing was received or sent yet.
    pub(crate) fn is_idle(&self) -> bool {
        self.subflows[0].tcp.state() == State::Listen
    }

    /// Whether both directions and all subflows have ended.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        match self.plain {
            true => matches!(self.subflows[0].tcp.state(), State::Closed | State::Lost),
            false if self.is_done() => self.subflows.iter().all(Subflow::is_over),
            false => self.subflows[0].stage != Stage::Ready && self.is_lost(),
        }
    }

    /// Whether the connection is lost: no subflow is left, but data is.
    pub(crate) fn is_lost(&self) -> bool {
        if self.plain {
            return self.subflows[0].tcp.state() == State::Lost;
        }
        let ended = |subflow: &Subflow| matches!(subflow.stage, Stage::Over | Stage::Waiting);
        let begun = |subflow: &Subflow| subflow.stage != Stage::Waiting;
        self.subflows.iter().all(ended) && self.subflows.iter().any(begun) && !self.is_done()
    }

    /// Whether both directions have ended and each end has confirmed it.
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.fin.acked && self.assembly.ended()
    }

    /// Whether the connection was closed properly.
    pub(crate) fn is_closed(&self) -> bool {
        if self.plain { self.subflows[0].tcp.state() == State::Closed } else { self.is_done() }
    }

    /// How long data has waited until now, by cause.
    pub(crate) fn waited(&self, now: Time) -> Totals {
        self.blocked.charged(now)
    }

    pub(crate) fn set_notes(&mut self, on: bool) {
        self.details = on.then(Vec::new);
        self.subflows.iter_mut().for_each(|subflow| subflow.tcp.set_notes(on));
    }

    /// The details recorded since the last call, in order of time.
    pub(crate) fn take_details(&mut self) -> Vec<(Time, Option<PathId>, Detail)> {
        self.details.as_mut().map(std::mem::take).unwrap_or_default()
    }

    #[inline(always)]
    pub(super) fn note(&mut self, now: Time, path: Option<usize>, detail: impl FnOnce() -> Detail) {
        if let Some(details) = &mut self.details {
            details.push((now, path.map(|path| PathId(path as u16)), detail()));
        }
    }

    /// Converts the notes of a subflow to the byte numbers of the connection.
    #[inline(always)]
    pub(super) fn translate_notes(&mut self, path: usize) {
        if self.details.is_some() {
            self.translate(path);
        }
    }

    #[cold]
    fn translate(&mut self, path: usize) {
        let most = self.most_timeouts();
        let Some(details) = &mut self.details else { return };
        let subflow = &mut self.subflows[path];
        for (at, note) in subflow.tcp.take_notes() {
            let number =
                |sequence| subflow.mapping(sequence).map(|mapped| mapped.data + (sequence - mapped.offset));
            let detail = match note {
                // The connection records these itself.
                TcpNote::Blocked(_) => continue,
                _ if self.plain => tcp::told(note),
                TcpNote::PeerWindow { .. } | TcpNote::Acked { .. } => continue,
                TcpNote::Sent { sequence, size, why } => {
                    let Some(mapped) = subflow.mapping(sequence) else { continue };
                    let data = mapped.data + (sequence - mapped.offset);
                    Detail::Sent { number: data, size, why: purpose(why, Some(mapped)) }
                }
                TcpNote::Marked { sequence, why } => {
                    let Some(number) = number(sequence) else { continue };
                    Detail::Marked { number, why: purpose(why, None) }
                }
                note => tcp::told(note),
            };
            details.push((at, Some(PathId(path as u16)), detail));
        }
        let state = subflow.state(most);
        if state != subflow.told {
            subflow.told = state;
            let at = details.last().map_or(Time::ZERO, |detail| detail.0);
            details.push((at, Some(PathId(path as u16)), Detail::State(state)));
        }
    }

    /// A segment has arrived on this path.
    pub(crate) fn handle(&mut self, now: Time, path: usize, segment: &Segment) {
        self.turn.heard = true;
        if self.subflows[path].stage == Stage::Over {
            return;
        }
        self.heard_on = path;
        // Only these can have an option of the handshake, or lack one.
        if segment.syn || segment.mptcp.as_ref().is_some_and(|options| options.rare.is_some()) {
            self.greet(path, segment);
        }
        if self.plain {
            if path == 0 {
                self.subflows[0].tcp.handle(now, segment);
                self.subflows[0].wake();
                self.translate_notes(0);
            }
            return;
        }
        self.couple(path);
        let subflow = &mut self.subflows[path];
        subflow.tcp.handle(now, segment);
        subflow.wake();
        let acknowledged = if self.client { subflow.forget_acknowledged() } else { 0 };
        let window = subflow.tcp.window_of(segment);
        if subflow.stage == Stage::Joining {
            self.greeted(now, path, segment);
        }
        if let Some(options) = &segment.mptcp {
            self.take_options(now, path, options, window);
        }
        if acknowledged > 0 && self.hears_acknowledgements {
            self.tell_route(now, path, acknowledged);
        }
        self.translate_notes(path);
        self.finish_subflows(now);
    }

    /// Tells a subflow's window the state of all other windows.
    #[inline(always)]
    pub(super) fn couple(&mut self, path: usize) {
        if self.written > 0 && self.subflows.len() > 1 && self.subflows[path].tcp.may_couple() {
            self.set_siblings(path);
        }
    }

    fn set_siblings(&mut self, path: usize) {
        let (before, rest) = self.subflows.split_at_mut(path);
        let Some((own, after)) = rest.split_first_mut() else { return };
        let ready = before.iter().chain(&*after).filter(|subflow| subflow.stage == Stage::Ready);
        own.tcp.set_siblings(ready.map(|subflow| subflow.tcp.sibling()));
    }

    /// Processes the options of a segment that advertises this window.
    fn take_options(&mut self, now: Time, path: usize, options: &MptcpOptions, window: u64) {
        if let Some(dss) = &options.dss {
            if let Some(ack) = dss.ack {
                if self.client && !std::mem::replace(&mut self.setup.confirmed, true) {
                    self.begin_subflows();
                }
                self.data_acknowledged(now, ack, window);
            }
            if let Some(mapping) = dss.mapping {
                let start = mapping.data.wrapping_sub(self.numbers.1);
                self.data_arrived(now, path, start, u32::from(mapping.length), dss.fin);
            }
        } else if let Some(Handshake::CapableKeys { length: Some(length), .. }) = options.handshake() {
            self.data_arrived(now, path, 0, u32::from(length), false);
        }
        let Some(rare) = options.rare.as_deref() else { return };
        if let Some(backup) = rare.backup {
            self.subflows[path].backup = backup;
        }
        if let Some(address) = rare.add_address {
            self.address_added(now, path, address);
        }
    }

    /// Processes a DATA_ACK and the window that came with it.
    //= rfc8684#section-3.3.2
    fn data_acknowledged(&mut self, now: Time, ack: DataAck, window: u64) {
        let known = self.pieces.acknowledged();
        let number = match ack {
            DataAck::Long(number) => number.wrapping_sub(self.numbers.0),
            DataAck::Short(low) => {
                let distance = low.wrapping_sub(self.numbers.0.wrapping_add(known) as u32) as i32;
                let Some(number) = known.checked_add_signed(i64::from(distance)) else { return };
                number
            }
        };
        // Most segments with data repeat what is known.
        if number <= known && number + window <= self.admitted && !self.probe.sent {
            return;
        }
        let end = self.pieces.end();
        if std::mem::take(&mut self.probe.sent) && number == end + 1 && number <= self.written {
            self.pieces.push(1, 0);
        }
        if number > self.pieces.end() + 1 {
            return;
        }
        self.fin.acked |= self.fin.times > 0 && number == self.written + 1;
        let data = number.min(self.pieces.end());
        if self.pieces.acknowledge(data) {
            self.fin.data_acknowledged(self.pieces.is_empty());
            self.note(now, None, || Detail::Acked { cumulative: data });
        }
        let admitted = self.admitted.max(number + window);
        if admitted != self.admitted {
            self.admitted = admitted;
            self.probe.timer = None;
            let bytes = admitted - self.pieces.acknowledged();
            self.note(now, None, || Detail::PeerWindow { bytes });
        }
    }

    /// Data has arrived: `length` bytes from the offset `start`. If `fin` is set, the last one is DATA_FIN.
    //= rfc8684#section-3.3.1
    #[inline(always)]
    fn data_arrived(&mut self, now: Time, path: usize, start: u64, length: u32, fin: bool) {
        let end = start.saturating_add(u64::from(length));
        let new = self.assembly.arrived(start, end, fin);
        if fin {
            self.subflows[path].ask();
        }
        if new && length > u32::from(fin) {
            let cumulative = self.assembly.next().wrapping_sub(1);
            self.note(now, Some(path), || Detail::Received { number: end - 1, size: length, cumulative });
        }
    }

    /// Returns the next output. Call it until it returns `Wait`; further calls change nothing.
    pub(crate) fn poll(&mut self, now: Time) -> ConnectionOutput {
        if std::mem::take(&mut self.turn.over) {
            self.turn.event += 1;
        }
        if self.plain {
            return self.poll_plain(now);
        }
        let mut expired = None;
        if self.quiet_until <= now {
            self.run_timers(now);
            expired = self.subflows.iter().position(|subflow| subflow.has_expired(now));
        }
        if self.owes_fin(now) {
            self.send_fin(now);
        }
        // Data leaves before bare acknowledgements, because it carries them, but after retransmissions of an expired
        // timer.
        let first = match expired {
            Some(path) => self.poll_subflow(now, path),
            None if self.client => self.send_data(now),
            None => None,
        };
        if let Some(said) = first {
            return said;
        }
        // Polls also close the subflows of a connection that is done.
        let done = self.is_done();
        for path in 0..self.subflows.len() {
            let subflow = &mut self.subflows[path];
            // The receiving end has been asked already whether all of them rest.
            if subflow.is_due(now)
                && (done || !self.client || !subflow.rest(now))
                && let Some(said) = self.poll_subflow(now, path)
            {
                return said;
            }
        }
        if let Some(said) = expired.and_then(|_| self.send_data_late(now)) {
            return said;
        }
        self.settle(now);
        self.turn.over = true;
        ConnectionOutput::Wait(self.wait(self.subflows_wake()))
    }

    /// What the next poll of a receiving end would wait for, if it would certainly return nothing. This has the poll's
    /// effects.
    #[inline]
    pub(crate) fn rest(&mut self, now: Time) -> Option<Option<Time>> {
        if self.client || self.plain || self.closing || self.quiet_until <= now {
            return None;
        }
        let mut next = Time::NEVER;
        for subflow in self.subflows.iter_mut().filter(|subflow| subflow.is_used()) {
            if subflow.due <= now && !subflow.rest(now) {
                return None;
            }
            next = next.min(subflow.due);
        }
        Some(self.wait(next))
    }

    /// Nothing leaves now. Returns when its next timer expires; `next` is when that of the next subflow does.
    fn wait(&mut self, next: Time) -> Option<Time> {
        self.quiet_until = self.wakes_with(next);
        Some(self.quiet_until)
    }

    /// Sends new data, or data that another subflow has carried, if any may leave now.
    #[inline(always)]
    fn send_data(&mut self, now: Time) -> Option<ConnectionOutput> {
        let path = self.give_data(now)?;
        let packet = self.subflows[path].tcp.send_new(now)?;
        self.translate_notes(path);
        Some(self.transmit(path, packet, tcp::Why::New))
    }

    /// The same after the retransmissions of an expired timer.
    #[cold]
    fn send_data_late(&mut self, now: Time) -> Option<ConnectionOutput> {
        if self.client { self.send_data(now) } else { None }
    }

    /// A packet of a subflow leaves: it gets the numbers of the connection and its options.
    #[inline(always)]
    fn transmit(&mut self, path: usize, mut packet: Box<TcpPacket>, why: tcp::Why) -> ConnectionOutput {
        let subflow = &mut self.subflows[path];
        subflow.has_sent();
        let mapped = if packet.segment.length > 0 { subflow.mapping(packet.offset) } else { None };
        // From here on it counts the connection's bytes, not the subflow's.
        packet.offset = mapped.map_or(0, |mapped| mapped.data + (packet.offset - mapped.offset));
        let number = mapped.map(|_| packet.offset);
        self.decorate(path, &mut packet.segment, number);
        let mut reason = tcp::reason(why, PathId(path as u16));
        if let Purpose::Data(_) = reason.purpose {
            reason.purpose = Purpose::Data(purpose(why, mapped));
        }
        ConnectionOutput::Transmit(path, packet, reason)
    }

    /// Returns the next output of a subflow.
    fn poll_subflow(&mut self, now: Time, path: usize) -> Option<ConnectionOutput> {
        let subflow = &mut self.subflows[path];
        if !subflow.is_due(now) {
            return None;
        }
        subflow.repeat_proof(now, self.config.tcp.rto_max);
        if subflow.errand.is_some() && subflow.tcp.state() == State::Established {
            subflow.tcp.ask();
        }
        // A timeout is all that changes a window here.
        if subflow.tcp.sender_has_expired(now) {
            subflow.news = News::All;
            self.couple(path);
        }
        let subflow = &mut self.subflows[path];
        let said = subflow.tcp.poll(now);
        if subflow.tcp.state() == State::Lost || subflow.tcp.timeouts() != subflow.timeouts {
            self.look_after(path);
        }
        self.finish_subflows(now);
        self.translate_notes(path);
        match said {
            tcp::Output::Transmit(packet, why) => Some(self.transmit(path, packet, why)),
            tcp::Output::Wait(until) => {
                let subflow = &mut self.subflows[path];
                subflow.due = earlier(until, subflow.proof.map(|(at, _)| at)).unwrap_or(Time::NEVER);
                // A handshake may have been given up.
                if subflow.tcp.state() != State::Established {
                    subflow.news = News::All;
                }
                None
            }
        }
    }

    /// The timer of a subflow has expired, or the subflow is lost.
    #[cold]
    fn look_after(&mut self, path: usize) {
        let timeouts = self.subflows[path].tcp.timeouts();
        if std::mem::replace(&mut self.subflows[path].timeouts, timeouts) != timeouts {
            self.route.lost(PathId(path as u16), anabranch_proto::policy::Loss::Timeout);
            if self.config.reinject_on_timeout {
                self.give_up(path);
            }
        }
        if self.subflows[path].tcp.state() == State::Lost {
            self.subflows[path].end();
            self.give_up(path);
        }
    }

    /// The unacknowledged data of a subflow goes to other subflows, unless they already carry it.
    //= rfc8684#section-3.3.6
    fn give_up(&mut self, path: usize) {
        let starts =
            self.subflows[path].mapped.iter().filter(|mapped| !mapped.probe).map(|mapped| mapped.data);
        self.pieces.give_up(starts, path);
    }
}

/// Why data leaves. A copy is new data for its subflow only.
fn purpose(why: tcp::Why, mapped: Option<Mapped>) -> Data {
    match (tcp::data(why), mapped) {
        (Data::New, Some(Mapped { copy: true, .. })) => Data::Reinjected,
        (Data::New, Some(Mapped { probe: true, .. })) => Data::WindowProbe,
        (why, _) => why,
    }
}

impl Stream for Connection {
    fn write(&mut self, bytes: u64) {
        self.written += bytes;
        if self.plain {
            self.subflows[0].tcp.write(bytes);
        }
    }

    fn unacknowledged(&self) -> u64 {
        match self.plain {
            true => self.subflows[0].tcp.unacknowledged(),
            false => self.written - self.pieces.acknowledged().min(self.written),
        }
    }

    fn close(&mut self) {
        self.closing = true;
        if self.plain {
            self.subflows[0].tcp.close();
        }
    }

    fn readable(&self) -> u64 {
        if self.plain { self.subflows[0].tcp.readable() } else { self.assembly.readable() }
    }

    fn read(&mut self, bytes: u64) {
        if self.plain {
            return self.subflows[0].tcp.read(bytes);
        }
        if self.assembly.take(bytes) {
            let ready = self.subflows.iter_mut().filter(|subflow| subflow.stage == Stage::Ready);
            ready.for_each(Subflow::ask);
        }
    }

    fn ended(&self) -> bool {
        if self.plain { self.subflows[0].tcp.ended() } else { self.assembly.ended() }
    }
}
