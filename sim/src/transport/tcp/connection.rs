//! A TCP connection. It is sans-I/O: it takes segments and user calls together with the time, and returns segments from
//! `poll`.

use std::net::IpAddr;

use anabranch_proto::control::window::{Loss, MakeWindow, Sibling};
use anabranch_proto::{Blocked, Duration, PathView, Time};

use super::config::{RecoveryKind, TcpConfig};
use super::flight::Counts;
use super::receiver::{Receiver, UNBOUNDED, scale};
use super::recovery::Next;
use super::segment::{Segment, Sequence, TcpNote, TcpPacket, Why};
use super::sender::{Piece, Sender};
use super::window::Window;
use crate::transport::earlier;
use crate::transport::mptcp::DataAck;

/// The identity of a connection: addresses, ports and first sequence numbers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    /// The addresses of this end and of the other end.
    pub(crate) addresses: (IpAddr, IpAddr),
    /// The port of this end.
    pub(crate) local: u16,
    /// The port of the other end.
    pub(crate) remote: u16,
    /// The sequence number of this end's SYN.
    pub(crate) first: Sequence,
    /// The offset of this end's clock within a tick of `rto_tick`; below one tick.
    pub(crate) phase: Duration,
}

/// The state of a connection (RFC 9293 §3.3.2). Only the cases in which one end opens and closes first are
/// distinguished.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN.
    SynSent,
    /// Has answered a SYN with SYN-ACK.
    SynReceived,
    /// Data can flow. Either end may have sent FIN.
    Established,
    /// Both ends have sent FIN, and everything is acknowledged.
    Closed,
    /// The other end did not answer.
    Lost,
}

/// One end of a connection.
pub(crate) struct Connection {
    identity: Identity,
    config: TcpConfig,
    state: State,
    sender: Sender,
    receiver: Receiver,
    /// The sequence number of the other end's first byte.
    remote_first: Sequence,
    /// The window scale of the other end.
    remote_scale: u8,
    /// The window scale of this end.
    local_scale: u8,
    syn: Syn,
    policy: Option<MakeWindow>,
    /// Whether it is a subflow. Then the receive buffer and the advertised windows belong to all subflows together.
    shares_buffer: bool,
    /// The window field and the DATA_ACK of the last acknowledgement.
    heard: (u16, Option<DataAck>),
}

/// The SYN or SYN-ACK of this end.
#[derive(Copy, Clone, Debug)]
struct Syn {
    /// Whether it must be sent.
    due: bool,
    /// When it was last sent.
    sent: Time,
    /// The number of times that it was sent.
    times: u32,
    /// When it is sent again.
    timer: Option<Time>,
}

/// The number of SYNs after which an end gives up.
pub(crate) const SYN_TRIES: u32 = 10;
/// The number of consecutive timeouts or unanswered window probes after which an end gives up (RFC 1122 §4.2.3.5: R2,
/// at least 100 seconds).
pub(crate) const DATA_TRIES: u32 = 15;

/// The output of a connection.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Output {
    /// Send this packet now, for this reason.
    Transmit(Box<TcpPacket>, Why),
    /// Nothing more now. Poll again after the next segment or call, and at this time at the latest.
    Wait(Option<Time>),
}

impl Connection {
    /// The end that opens the connection. `policy` replaces the variant's own window.
    pub(crate) fn connect(config: TcpConfig, identity: Identity, policy: Option<MakeWindow>) -> Self {
        Self::new(config, identity, policy, State::SynSent)
    }

    /// The end that waits for a SYN.
    pub(crate) fn listen(config: TcpConfig, identity: Identity, policy: Option<MakeWindow>) -> Self {
        Self::new(config, identity, policy, State::Listen)
    }

    fn new(config: TcpConfig, identity: Identity, policy: Option<MakeWindow>, state: State) -> Self {
        let syn = Syn { due: state == State::SynSent, sent: Time::ZERO, times: 0, timer: None };
        Connection {
            identity,
            state,
            sender: Sender::new(config.clone(), Window::new(&config, policy.as_ref(), false), identity.phase),
            receiver: Receiver::new(&config),
            remote_first: Sequence::default(),
            remote_scale: 0,
            local_scale: scale(config.receive_window),
            syn,
            policy,
            shares_buffer: false,
            heard: (0, None),
            config,
        }
    }

    /// Makes it a subflow: its owner controls the receive buffer and the advertised windows.
    pub(crate) fn share_buffer(&mut self) {
        self.shares_buffer = true;
        self.receiver.set_unbounded();
    }

    /// Makes it a TCP connection again, before any data has arrived.
    pub(crate) fn own_buffer(&mut self) {
        self.shares_buffer = false;
        self.receiver = Receiver::new(&self.config);
    }

    /// The state.
    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// The counters of the sender.
    pub(crate) fn counts(&self) -> &Counts {
        self.sender.counts()
    }

    /// The number of segments that arrived more than once.
    pub(crate) fn duplicates(&self) -> u64 {
        self.receiver.duplicates()
    }

    /// Writes data. The data are zeros; only their number counts.
    pub(crate) fn write(&mut self, bytes: u64) {
        self.sender.flight.written += bytes;
    }

    /// Bytes that were written and are not yet acknowledged.
    pub(crate) fn unacknowledged(&self) -> u64 {
        self.sender.unacknowledged()
    }

    /// No more data follows: FIN is sent after the last byte.
    pub(crate) fn close(&mut self) {
        self.sender.flight.closing = true;
    }

    /// Whether it was told that no more data follows.
    pub(crate) fn is_closing(&self) -> bool {
        self.sender.flight.closing
    }

    /// Bytes that can be read.
    pub(crate) fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// Reads this number of bytes, at most [`Connection::readable`].
    pub(crate) fn read(&mut self, bytes: u64) {
        self.receiver.take(bytes.min(self.receiver.readable()));
    }

    /// Bytes that were read.
    #[cfg(test)]
    pub(crate) fn receiver_read(&self) -> u64 {
        self.receiver.read()
    }

    /// Whether the other end has sent FIN and all data before it has arrived.
    pub(crate) fn ended(&self) -> bool {
        self.receiver.ended()
    }

    /// Whether a segment that arrives at the time of its next timer is processed before the timer.
    pub(crate) fn lets_arrivals_go_first(&self) -> bool {
        self.receiver.lets_arrivals_go_first()
    }

    /// The window scale of this end.
    pub(crate) fn scale(&self) -> u8 {
        self.local_scale
    }

    /// This end's first sequence number, and the number of the other end's first byte.
    pub(crate) fn first(&self) -> (Sequence, Sequence) {
        (self.identity.first.at(1), self.remote_first)
    }

    /// Bytes of its window that a new segment could use now; 0 if none could leave.
    #[inline]
    pub(crate) fn room(&mut self) -> u64 {
        if self.state == State::Established { self.sender.room() } else { 0 }
    }

    /// Timeouts of its retransmission timer.
    pub(crate) fn timeouts(&self) -> u64 {
        self.sender.flight.counts.timeouts
    }

    /// Timeouts since the last new acknowledgement.
    pub(crate) fn timeouts_in_a_row(&self) -> u32 {
        self.sender.timeouts_in_a_row()
    }

    /// Whether a timer of its sending half has expired.
    #[inline]
    pub(crate) fn sender_has_expired(&self, now: Time) -> bool {
        self.sender.wakes().is_some_and(|at| at <= now)
    }

    /// Its owner has given it up, because the other end does not answer.
    pub(crate) fn give_up(&mut self) {
        self.state = State::Lost;
    }

    /// Requests an immediate acknowledgement.
    pub(crate) fn ask(&mut self) {
        self.receiver.ask();
    }

    /// Whether its window may be coupled with others: the variant's own is not.
    pub(crate) fn may_couple(&self) -> bool {
        self.policy.is_some()
    }

    /// Sets the windows of the connection's other subflows.
    pub(crate) fn set_siblings(&mut self, siblings: impl Iterator<Item = Sibling>) {
        self.sender.flight.siblings.clear();
        self.sender.flight.siblings.extend(siblings);
    }

    /// The facts of this window that other subflows use.
    pub(crate) fn sibling(&self) -> Sibling {
        self.sender.flight.own(false)
    }

    /// Reduces the window as after a loss, unless a loss is being repaired: then the window has been cut already, and
    /// half of what is outstanding can be more than the window. Returns whether it did.
    pub(crate) fn penalise(&mut self, now: Time) -> bool {
        let open = self.sender.is_open();
        if open {
            self.sender.flight.cut(now, Loss::Missing, 0);
        }
        open
    }

    /// The congestion window, in bytes.
    pub(crate) fn cwnd(&self) -> u64 {
        self.sender.flight.cwnd()
    }

    /// The smoothed round-trip time, once measured, and its variation.
    pub(crate) fn round_trip(&self) -> (Option<Duration>, Duration) {
        let rto = &self.sender.flight.rto;
        (rto.srtt(), rto.rttvar())
    }

    /// Bytes in flight, as loss recovery counts them.
    pub(crate) fn in_flight(&self) -> u64 {
        self.sender.in_flight()
    }

    /// Fills in what a scheduler sees of its window and its timer.
    pub(crate) fn describe(&self, view: &mut PathView) {
        let flight = &self.sender.flight;
        (view.window, view.ssthresh) = (flight.cwnd(), flight.window.ssthresh(flight.segment()));
        (view.srtt, view.rttvar) = (flight.rto.srtt(), flight.rto.rttvar());
        (view.min_rtt, view.rto) = (flight.rto.least(), flight.rto.timeout());
        (view.errors, view.timeouts) = (self.timeouts_in_a_row(), self.timeouts());
        view.delivered = flight.outstanding.acknowledged().min(flight.written);
    }

    /// The facts of its path.
    pub(crate) fn path(&self) -> PathFacts {
        let flight = &self.sender.flight;
        PathFacts {
            segments: flight.counts.segments,
            delivered: flight.outstanding.acknowledged().min(flight.written),
            cwnd: flight.cwnd(),
            ssthresh: flight.window.ssthresh(flight.segment()),
            flight: self.sender.in_flight(),
            srtt: flight.rto.srtt(),
            rttvar: flight.rto.rttvar(),
            min_rtt: flight.rto.least(),
            rto: flight.rto.timeout(),
        }
    }

    /// Switches the recording of details on or off.
    pub(crate) fn set_notes(&mut self, on: bool) {
        self.sender.flight.set_notes(on);
    }

    /// The details since the last call, in order of time.
    pub(crate) fn take_notes(&mut self) -> Vec<(Time, TcpNote)> {
        self.sender.flight.take_notes()
    }

    /// A segment has arrived.
    pub(crate) fn handle(&mut self, now: Time, segment: &Segment) {
        if (segment.source, segment.destination) != (self.identity.remote, self.identity.local) {
            return;
        }
        match self.state {
            State::Listen | State::SynSent if segment.syn => self.handle_syn(now, segment),
            State::SynReceived | State::Established | State::Closed => self.handle_data(now, segment),
            _ => {}
        }
    }

    /// Processes a SYN or SYN-ACK.
    fn handle_syn(&mut self, now: Time, segment: &Segment) {
        let answers = segment.acknowledgement == Some(self.identity.first.at(1));
        if (self.state == State::SynSent) != answers {
            return;
        }
        self.remote_first = segment.sequence.at(1);
        self.negotiate(segment);
        if answers {
            self.open(now, self.admitted_by(u64::from(segment.window)));
            self.receiver.ask();
        } else {
            self.state = State::SynReceived;
            self.sender.flight.admitted = self.admitted_by(u64::from(segment.window));
            self.syn.due = true;
        }
    }

    /// Determines what both ends support.
    fn negotiate(&mut self, segment: &Segment) {
        match segment.window_scale {
            Some(scale) if self.offers_scale() => self.remote_scale = scale.min(14),
            _ => (self.remote_scale, self.local_scale) = (0, 0),
        }
        let mss = segment.mss.map_or(536, u32::from);
        if !segment.plain_header {
            self.config.segment_size = self.config.segment_size.min(mss);
            self.sender.flight.config.segment_size = self.config.segment_size;
        }
        if !segment.sack_permitted && !segment.plain_header {
            self.config.sack_blocks = 0;
            self.sender.flight.config.sack_blocks = 0;
            self.receiver.without_sack();
        }
    }

    /// The other end has answered our SYN.
    fn open(&mut self, now: Time, admitted: u64) {
        self.state = State::Established;
        self.syn.timer = None;
        let sent = (self.syn.times == 1).then_some(self.syn.sent);
        let window = Window::new(&self.config, self.policy.as_ref(), sent.is_none());
        self.sender.opened(now, admitted, window, sent);
    }

    fn handle_data(&mut self, now: Time, segment: &Segment) {
        if segment.syn {
            // Our SYN-ACK was lost, or our acknowledgement of the other end's.
            self.syn.due |= self.state == State::SynReceived;
            // A SYN-ACK that comes twice: ns-2's sender acknowledges nothing.
            if !self.is_plain() || segment.acknowledgement.is_none() {
                self.receiver.ask();
            }
            return;
        }
        if let Some(number) = segment.acknowledgement
            && let Some(offset) = self.offset_of(number)
        {
            let window = self.admitted_by(self.window_of(segment));
            if self.state == State::SynReceived {
                self.open(now, window);
            }
            // Most segments have no block: a loop costs them less than an iterator that is collected.
            let mut blocks = smallvec::SmallVec::<[(u64, u64); 4]>::new();
            for (start, end) in &segment.sack {
                if let (Some(start), Some(end)) = (self.offset_of(*start), self.offset_of(*end)) {
                    blocks.push((start, end));
                }
            }
            let bare = segment.sequence_length() == 0 && !self.signals(segment);
            self.sender.acknowledged(now, (offset, window), &blocks, bare);
        }
        let next = self.receiver.next();
        if let Some(start) = segment.sequence.offset(self.remote_first, next) {
            self.receiver.arrived(now, start, start + u64::from(segment.sequence_length()), segment.fin);
        }
        if self.sender.is_done() && self.receiver.ended() {
            self.state = State::Closed;
        }
    }

    /// Whether a segment tells the connection of several subflows something, and nothing about losses on its own
    /// subflow: it has another window or DATA_ACK than the last one, or an option of Multipath TCP besides DSS.
    //= rfc8684#section-3.4.1
    fn signals(&mut self, segment: &Segment) -> bool {
        if !self.shares_buffer {
            return false;
        }
        let options = segment.mptcp.as_ref();
        let heard = (segment.window, options.and_then(|options| options.dss?.ack));
        let same = std::mem::replace(&mut self.heard, heard) == heard;
        !same || options.is_some_and(|options| options.rare.is_some())
    }

    /// The window in bytes that a segment without SYN advertises.
    pub(crate) fn window_of(&self, segment: &Segment) -> u64 {
        u64::from(segment.window) << self.remote_scale
    }

    /// Why user data waits, if it does, after a poll that returned nothing.
    pub(crate) fn waits_for(&self) -> Option<Blocked> {
        self.sender.waits_for()
    }

    /// The highest offset that a window allows for this connection alone.
    fn admitted_by(&self, window: u64) -> u64 {
        if self.shares_buffer { UNBOUNDED } else { window }
    }

    /// The offset in our stream that an acknowledgement number means.
    fn offset_of(&self, number: Sequence) -> Option<u64> {
        number.offset(self.identity.first.at(1), self.sender.flight.outstanding.acknowledged())
    }

    /// Returns the next output. Call it until it returns `Wait`; further calls change nothing.
    pub(crate) fn poll(&mut self, now: Time) -> Output {
        match self.next_packet(now) {
            Some((packet, why)) => Output::Transmit(packet, why),
            None => Output::Wait(self.wakes()),
        }
    }

    /// Sends new data, for which [`Connection::room`] has said that there is room.
    pub(crate) fn send_new(&mut self, now: Time) -> Option<Box<TcpPacket>> {
        let piece = self.sender.send(now, Next::New)?;
        Some(self.packet(Some(piece)))
    }

    fn next_packet(&mut self, now: Time) -> Option<(Box<TcpPacket>, Why)> {
        match self.state {
            State::Listen | State::Lost => None,
            State::SynSent | State::SynReceived => self.poll_syn(now),
            State::Established | State::Closed => {
                let piece = self.sender.poll(now);
                if self.sender.waited_in_vain() > DATA_TRIES {
                    self.state = State::Lost;
                    return None;
                }
                match piece {
                    Some(piece) => Some((self.packet(Some(piece)), piece.why)),
                    None => self.receiver.is_due(now).then(|| (self.packet(None), Why::Acknowledgement)),
                }
            }
        }
    }

    fn poll_syn(&mut self, now: Time) -> Option<(Box<TcpPacket>, Why)> {
        if self.syn.timer.is_some_and(|timer| timer <= now) {
            self.sender.flight.rto.back_off();
            self.syn.due = true;
        }
        if !std::mem::replace(&mut self.syn.due, false) {
            return None;
        }
        if self.syn.times == SYN_TRIES {
            self.state = State::Lost;
            return None;
        }
        self.syn.times += 1;
        let plain = self.is_plain();
        // ns-2's sink answers each SYN, and has no timer.
        let timed = !plain || self.state == State::SynSent;
        (self.syn.sent, self.syn.timer) = (now, timed.then(|| now + self.sender.flight.rto.timeout()));
        let mut packet = self.blank(self.identity.first);
        let segment = &mut packet.segment;
        segment.syn = true;
        segment.window = self.receiver.window(0);
        segment.mss = (!plain).then_some(self.config.segment_size.min(65_535) as u16);
        segment.sack_permitted = !plain && self.config.sack_blocks > 0;
        segment.window_scale = self.offers_scale().then(|| scale(self.config.receive_window));
        if self.state == State::SynReceived {
            segment.acknowledgement = Some(self.remote_first);
        }
        Some((packet, Why::Setup))
    }

    fn blank(&self, sequence: Sequence) -> Box<TcpPacket> {
        let (from, to) = self.identity.addresses;
        // `Box::new` would build the packet elsewhere and copy it.
        let place = Box::new_uninit();
        let segment = Segment {
            source: self.identity.local,
            destination: self.identity.remote,
            sequence,
            plain_header: self.is_plain(),
            ..Segment::default()
        };
        Box::write(place, TcpPacket { from, to, offset: 0, segment })
    }

    fn is_plain(&self) -> bool {
        self.config.recovery == RecoveryKind::Sack1
    }

    /// Whether this end's SYN has a window scale.
    fn offers_scale(&self) -> bool {
        !self.is_plain() || scale(self.config.receive_window) > 0
    }

    /// A packet with this piece of data, or an acknowledgement.
    fn packet(&mut self, piece: Option<Piece>) -> Box<TcpPacket> {
        let offset = piece.map_or(self.sender.flight.outstanding.end_offset(), |piece| piece.start);
        let mut packet = self.blank(self.identity.first.at(1 + offset));
        let segment = &mut packet.segment;
        if let Some(piece) = piece {
            packet.offset = piece.start;
            (segment.length, segment.fin) = (piece.length, piece.fin);
        }
        let first = self.remote_first;
        segment.acknowledgement = Some(first.at(self.receiver.next()));
        segment.window = self.receiver.window(self.local_scale);
        for (start, end) in self.receiver.acknowledge() {
            segment.sack.push((first.at(start), first.at(end)));
        }
        packet
    }

    /// `Some` if a poll would certainly return nothing now: when the next timer expires, if one runs.
    #[inline(always)]
    pub(crate) fn rests(&self, now: Time) -> Option<Option<Time>> {
        if self.state != State::Established || self.receiver.is_due(now) || !self.sender.rests() {
            return None;
        }
        let sender = self.sender.wakes();
        let expired = sender.is_some_and(|at| at <= now);
        (!expired).then(|| earlier(sender, self.receiver.wakes()))
    }

    /// When its next timer expires.
    pub(crate) fn wakes(&self) -> Option<Time> {
        match self.state {
            State::Listen | State::Lost => None,
            State::SynSent | State::SynReceived => self.syn.timer,
            State::Established | State::Closed => earlier(self.sender.wakes(), self.receiver.wakes()),
        }
    }
}

/// The facts of a connection's path.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct PathFacts {
    /// Segments with data sent, retransmissions included.
    pub(crate) segments: u64,
    /// Bytes acknowledged.
    pub(crate) delivered: u64,
    /// The congestion window, in bytes.
    pub(crate) cwnd: u64,
    /// The slow-start threshold, in bytes.
    pub(crate) ssthresh: u64,
    /// Bytes in flight, as loss recovery counts them.
    pub(crate) flight: u64,
    /// Smoothed round-trip time, once measured.
    pub(crate) srtt: Option<Duration>,
    /// Its variation.
    pub(crate) rttvar: Duration,
    /// The smallest round-trip time measured.
    pub(crate) min_rtt: Option<Duration>,
    /// The retransmission timeout.
    pub(crate) rto: Duration,
}
