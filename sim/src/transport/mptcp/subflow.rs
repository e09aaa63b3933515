//! A subflow: a TCP connection, the data that was given to it, and the state of its handshake.

use std::collections::VecDeque;

use anabranch_proto::{Duration, PathState, PathView, Time};

use crate::transport::tcp::{Connection, SYN_TRIES, State};

/// One subflow of a connection, at one end.
pub(super) struct Subflow {
    pub(super) tcp: Connection,
    pub(super) stage: Stage,
    /// The data that was given to it and that it has not acknowledged, by its own offsets.
    pub(super) mapped: VecDeque<Mapped>,
    /// The number of bytes given to it.
    given: u64,
    /// Nothing leaves before this time, unless a segment or a call comes first. [`AT_ONCE`]: it must be polled.
    pub(super) due: Time,
    /// Whether it is used only while no other subflow works.
    pub(super) backup: bool,
    /// The identifiers of its addresses: the client's and the server's.
    pub(super) addresses: [u8; 2],
    /// Random numbers for the handshake of MP_JOIN: this end's and the other's.
    pub(super) nonces: [u32; 2],
    /// When the last segment of the handshake is sent again, and the number of times that it was sent.
    pub(super) proof: Option<(Time, u32)>,
    /// The options that its next acknowledgement must carry, if there are any.
    pub(super) errand: Option<Errand>,
    /// The number of timeouts that were noticed.
    pub(super) timeouts: u64,
    /// Copies sent here of data in flight on another subflow.
    pub(super) reinjected: u64,
    /// How long it has kept a buffer full.
    pub(super) blocks: Duration,
    /// The time until which it is not penalised again.
    pub(super) spared: Time,
    /// What the scheduler does not know of it yet.
    pub(super) news: News,
    /// Its state, when that was asked last.
    state: PathState,
    /// The state that observers were last told.
    pub(super) told: PathState,
}

/// The stage of a subflow.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// It has not started.
    Waiting,
    /// Its handshake is in progress.
    Joining,
    /// It can carry data.
    Ready,
    /// It was lost or dropped.
    Over,
}

/// The time before which a subflow is never quiet.
pub(super) const AT_ONCE: Time = Time::ZERO;

/// What the scheduler does not know of a subflow yet.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) enum News {
    /// It knows the present facts.
    #[default]
    None,
    /// Data was given to it or sent.
    Sent,
    /// Anything may have changed.
    All,
}

/// The options that an acknowledgement of a subflow must carry.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Errand {
    /// The last segment of MP_JOIN's handshake.
    pub(super) proof: bool,
    /// DATA_FIN.
    pub(super) fin: bool,
    /// ADD_ADDR of this address, and whether it is the echo.
    pub(super) address: Option<(u8, bool)>,
    /// MP_PRIO.
    pub(super) priority: Option<bool>,
}

/// A run of a subflow's bytes, and its place in the connection.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Mapped {
    /// The offset of the first byte in the subflow.
    pub(super) offset: u64,
    /// The offset of the first byte in the connection.
    pub(super) data: u64,
    pub(super) length: u32,
    /// Whether another subflow carries these bytes too.
    pub(super) copy: bool,
    /// Whether it is a byte beyond the window.
    pub(super) probe: bool,
}

impl Subflow {
    pub(super) fn new(tcp: Connection, addresses: [u8; 2], backup: bool, nonces: [u32; 2]) -> Self {
        Subflow {
            tcp,
            stage: Stage::Waiting,
            mapped: VecDeque::new(),
            given: 0,
            due: AT_ONCE,
            backup,
            addresses,
            nonces,
            proof: None,
            errand: None,
            timeouts: 0,
            reinjected: 0,
            blocks: Duration::ZERO,
            spared: Time::ZERO,
            news: News::All,
            state: PathState::Unconfirmed,
            told: PathState::Unconfirmed,
        }
    }

    /// Gives it bytes that leave as one segment.
    pub(super) fn give(&mut self, data: u64, length: u32, copy: bool, probe: bool) {
        // After a pause its window may begin anew.
        if self.mapped.is_empty() {
            self.news = News::All;
        }
        self.mapped.push_back(Mapped { offset: self.given, data, length, copy, probe });
        self.given += u64::from(length);
        self.tcp.write(u64::from(length));
        self.due = AT_ONCE;
        self.flight_changes();
    }

    /// The mapping of its bytes from `offset` on.
    #[inline(always)]
    pub(super) fn mapping(&self, offset: u64) -> Option<Mapped> {
        // New data is the last.
        if let Some(last) = self.mapped.back().filter(|last| last.offset <= offset) {
            return Some(*last);
        }
        let after = self.mapped.partition_point(|mapped| mapped.offset <= offset);
        self.mapped.get(after.checked_sub(1)?).copied()
    }

    /// Asks for its present facts, and fills in those that a scheduler sees, apart from those of
    /// [`Subflow::describe_flight`]. `most`: as in [`Subflow::state`].
    #[inline(always)]
    pub(super) fn describe(&mut self, view: &mut PathView, most: Option<u32>) {
        self.state = self.state(most);
        (view.state, view.blocks) = (self.state, self.blocks);
        self.tcp.describe(view);
    }

    /// Fills in the facts that change when it sends.
    #[inline(always)]
    pub(super) fn describe_flight(&mut self, view: &mut PathView) {
        view.room = if self.works() { self.tcp.room() } else { 0 };
        view.flight = self.tcp.in_flight();
        let counts = self.tcp.counts();
        view.chunks = counts.segments;
        view.fast_retransmissions = counts.fast_retransmissions;
        view.timeout_retransmissions = counts.timeout_retransmissions;
        view.reinjected = self.reinjected;
    }

    /// A segment has left.
    pub(super) fn has_sent(&mut self) {
        match self.tcp.state() {
            State::Established => self.flight_changes(),
            _ => self.news = News::All,
        }
    }

    fn flight_changes(&mut self) {
        if self.news == News::None {
            self.news = News::Sent;
        }
    }

    /// Whether it was active when that was asked last.
    pub(super) fn works(&self) -> bool {
        self.state == PathState::Active
    }

    /// The same as the scheduler sees it. `regular`: whether a subflow works that is no backup.
    pub(super) fn state_beside(&self, regular: bool) -> PathState {
        if self.backup && regular && self.works() { PathState::Unconfirmed } else { self.state }
    }

    /// Whether it was closed, lost or dropped. If it was closed, it still answers a FIN that comes twice (TIME-WAIT).
    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::Over || self.tcp.state() == State::Closed
    }

    /// Ends it: it was lost or dropped.
    pub(super) fn end(&mut self) {
        (self.stage, self.news) = (Stage::Over, News::All);
    }

    /// Removes the data that it has acknowledged. Returns the number of bytes.
    pub(super) fn forget_acknowledged(&mut self) -> u64 {
        let before = self.mapped.front().map_or(self.given, |mapped| mapped.offset);
        let acknowledged = self.given - self.tcp.unacknowledged();
        let done = |mapped: &Mapped| mapped.offset + u64::from(mapped.length) <= acknowledged;
        while self.mapped.front().is_some_and(done) {
            self.mapped.pop_front();
        }
        self.mapped.front().map_or(self.given, |mapped| mapped.offset) - before
    }

    /// Whether it has begun and not ended.
    pub(super) fn is_used(&self) -> bool {
        !matches!(self.stage, Stage::Waiting | Stage::Over)
    }

    /// Whether polling it may produce output now.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.due <= now && self.is_used()
    }

    /// Makes it quiet until its next timer expires, without a poll, if that would certainly return nothing. Returns
    /// whether it did.
    pub(super) fn rest(&mut self, now: Time) -> bool {
        if self.errand.is_some() || self.proof.is_some() {
            return false;
        }
        let Some(until) = self.tcp.rests(now) else { return false };
        self.due = until.unwrap_or(Time::NEVER);
        true
    }

    /// Whether its retransmission timer has expired and it was not polled since.
    pub(super) fn has_expired(&self, now: Time) -> bool {
        self.is_due(now) && self.tcp.sender_has_expired(now)
    }

    /// The other end has not answered the last segment of the handshake: it leaves again, `most` later at the latest
    /// and no more often than a SYN.
    pub(super) fn repeat_proof(&mut self, now: Time, most: Duration) {
        let due = self.proof.filter(|(at, _)| self.stage == Stage::Joining && *at <= now);
        let Some((_, times)) = due else { return };
        if times == SYN_TRIES {
            self.proof = None;
            return self.tcp.give_up();
        }
        let wait = self.tcp.path().rto * 2u32.pow(times.min(6));
        self.proof = Some((now + wait.min(most), times + 1));
        self.errand().proof = true;
        self.news = News::All;
    }

    /// The options that its next acknowledgement must carry, to be added to.
    pub(super) fn errand(&mut self) -> &mut Errand {
        self.errand.get_or_insert_default()
    }

    /// Makes it due at once, and its facts are asked for again.
    pub(super) fn wake(&mut self) {
        self.due = AT_ONCE;
        self.news = News::All;
    }

    /// Makes it send an acknowledgement.
    pub(super) fn ask(&mut self) {
        self.tcp.ask();
        self.wake();
    }

    /// Its state: usable after at most `most` consecutive timeouts.
    pub(super) fn state(&self, most: Option<u32>) -> PathState {
        match (self.stage, self.tcp.state()) {
            (_, State::Lost) => PathState::Inactive,
            (Stage::Waiting | Stage::Joining, _)
            | (_, State::Listen | State::SynSent | State::SynReceived) => PathState::Unconfirmed,
            _ if most.is_some_and(|most| self.tcp.timeouts_in_a_row() > most) => PathState::PotentiallyFailed,
            _ => PathState::Active,
        }
    }
}
