//! The association's part of the extensions: it asks them when something happens, and carries out their answers. The
//! extensions keep their own state and do not know the association.

use super::{Association, Part};
use crate::extension::addresses::{AddressChanges, PendingChange};
use crate::extension::{
    Action, Actions, Authentication, Congestion, Extended, Extensions, MarkedChunk, Reconfiguration,
    StreamParts,
};
use crate::output::{ChangeError, Direction, Event, Outcome, Purpose, Reason};
use crate::path::{PacketOrigin, PathId};
use crate::receive::{Arrival, HeldBack};
use crate::shutdown::State;
use crate::wire::chunk::{ForwardTsn, IData, IForwardTsn};
use crate::wire::{Cause, Chunk, Packet};
use crate::{Limit, Time, Tsn};

/// FORWARD TSNs and RE-CONFIGs of one packet that are processed: each may look at every stream. A peer that keeps to
/// the standards has no use for more.
const MOST_IN_A_PACKET: u32 = 4;

impl Association {
    /// The extensions that both ends use.
    pub(crate) fn agreed(&self) -> Extensions {
        self.extended.as_ref().map_or(Extensions::default(), |extended| extended.agreed)
    }

    /// Our part of the keys.
    pub(crate) fn random(&self) -> [u8; 32] {
        self.extended.as_ref().map_or([0; 32], |extended| extended.random)
    }

    pub(crate) fn authentication(&self) -> Option<&Authentication> {
        self.extended.as_ref().and_then(|extended| extended.authentication.as_ref())
    }

    /// A packet has come. What is not authentic and has to be goes, before anything else of the packet is looked at.
    pub(super) fn look_at(&mut self, packet: &mut Packet, came: PathId, part: Part) {
        let judged = part == Part::BehindCookie { authentic: true };
        let judge = self.authentication().filter(|_| !judged);
        if let Some(cause) = judge.and_then(|authentication| authentication.sift(packet)) {
            self.report(came, cause);
        }
        let Some(extended) = &mut self.extended else { return };
        if let Some(congestion) = &mut extended.congestion {
            self.receiver.schedule.now |= congestion.look_at(packet, &self.sender.outstanding);
        }
        if let Some(addresses) = &mut extended.addresses {
            addresses.look_at(packet);
        }
        if let Some(timestamps) = &mut extended.timestamps {
            self.paths.samples = timestamps.look_at(packet);
        }
    }

    /// Processes a chunk of an extension. If the extension was not agreed, the chunk counts as unknown. Returns whether
    /// the chunks behind it are processed.
    pub(super) fn extension_chunk(
        &mut self,
        chunk: Chunk,
        came: PacketOrigin,
        arrival: &mut Arrival,
        now: Time,
    ) -> bool {
        let agreed = self.agreed();
        match chunk {
            Chunk::ForwardTsn(_) if agreed.interleaving => self.wrong_kind(now),
            Chunk::ForwardTsn(forward) if agreed.partial_reliability => {
                self.forward_tsn(&forward, arrival, now);
            }
            Chunk::IForwardTsn(forward) if agreed.interleaving && agreed.partial_reliability => {
                self.interleaved_forward(&forward, arrival, now);
            }
            //= rfc8260#section-2.3.1
            Chunk::IForwardTsn(_)
                if self.config.extensions.interleaving && self.config.extensions.partial_reliability =>
            {
                self.wrong_kind(now);
            }
            Chunk::IData(data) if agreed.interleaving => self.idata(data, came.path, arrival, now),
            //= rfc8260#section-2.2.3
            Chunk::IData(_) if self.config.extensions.interleaving => self.wrong_kind(now),
            Chunk::NrSack(sack) if agreed.nr_sack => self.nr_sack(&sack, now),
            Chunk::ReConfig(chunk) if agreed.reconfiguration => {
                if arrival.admits_costly(MOST_IN_A_PACKET) {
                    self.with_streams(now, |streams, at| streams.reconfig(&chunk, came.path, at));
                }
            }
            Chunk::Cwr(answer) if agreed.ecn => {
                if let Some(congestion) = self.congestion() {
                    congestion.cwr(answer);
                }
            }
            Chunk::Asconf(asconf) if agreed.addresses => self.asconf(&asconf, came, now),
            Chunk::AsconfAck(ack) if agreed.addresses => self.asconf_ack(&ack, now),
            // Read before all other chunks of the packet.
            Chunk::Auth(_) if agreed.authentication => {}
            Chunk::Ecne(_) if agreed.ecn => {}
            Chunk::Timestamp(_) if agreed.timestamps => {}
            //= rfc4820#section-3
            Chunk::Pad(_) => {}
            other => return self.unknown(&other, came.path),
        }
        true
    }

    /// Before anything is sent: lets the extensions do what is due now.
    pub(super) fn work_extensions(&mut self, now: Time) {
        if self.state.sends_data() {
            self.with_streams(now, Reconfiguration::work);
            // The lifetime of a message that waited for an answer may have ended.
            if self.sender.partial_deadline() <= now {
                self.partial_timers(now);
            }
        } else if matches!(self.state, State::ShutdownSent | State::ShutdownAckSent) {
            self.with_streams(now, Reconfiguration::work_at_the_end);
        }
        self.return_abandoned();
    }

    /// Returns the messages that were given up to the user.
    pub(super) fn return_abandoned(&mut self) {
        let failed = self.sender.take_failed();
        self.events.extend(failed.into_iter().map(|(message, sent)| Event::SendFailed { message, sent }));
    }

    /// When an extension has something to do by itself.
    pub(super) fn extension_deadline(&self) -> Time {
        let Some(extended) = &self.extended else { return Time::NEVER };
        // The lifetime of a message also ends while the association is being set up.
        let messages = self.sender.partial_deadline();
        if !self.state.sends_data() {
            return if self.state.setting_up() { messages } else { Time::NEVER };
        }
        messages.min(extended.deadline())
    }

    /// Runs the timers of extensions that are due.
    pub(super) fn extension_timers(&mut self, now: Time) {
        if self.extension_deadline() > now {
            return;
        }
        if self.sender.partial_deadline() <= now {
            self.partial_timers(now);
        }
        let streams = self.extended.as_mut().and_then(|extended| extended.streams.as_mut());
        if let Some(path) = streams.and_then(|streams| streams.expired(now)) {
            self.control_unanswered(path, now);
        }
        let addresses = self.extended.as_mut().and_then(|extended| extended.addresses.as_mut());
        if let Some(path) = addresses.and_then(|addresses| addresses.expired(now)) {
            self.control_unanswered(path, now);
        }
    }

    /// Does what an extension has answered.
    fn carry_out(&mut self, actions: Actions) {
        for action in actions {
            match action {
                Action::Send(path, chunk, purpose) => {
                    self.send_control(self.open_path(path), chunk, purpose);
                }
                Action::Reply(path, chunk, purpose) => self.reply(self.open_path(path), chunk, purpose),
                Action::Tell(event) => self.events.push_back(event),
                Action::Readable => self.announce_readable(),
                Action::Report(path, cause) => self.report(path, cause),
                Action::Answered(path) => self.control_answered(path),
            }
        }
    }

    /// Runs an operation on stream requests and carries out its answers. Does nothing if stream reconfiguration was not
    /// agreed.
    fn with_streams(&mut self, now: Time, work: impl FnOnce(&mut Reconfiguration, &mut StreamParts<'_>)) {
        let Some(Extended { streams: Some(streams), congestion, .. }) = self.extended.as_deref_mut() else {
            return;
        };
        let mut actions = Actions::new();
        let mut parts = StreamParts {
            now,
            state: self.state,
            most: self.config.inbound_streams,
            streams: &mut self.streams,
            paths: &mut self.paths,
            sender: &mut self.sender,
            receiver: &mut self.receiver,
            congestion: congestion.as_mut(),
            actions: &mut actions,
        };
        work(streams, &mut parts);
        self.carry_out(actions);
    }

    /// Requests about streams, if the user may make one now.
    fn requests(&mut self) -> Result<&mut Reconfiguration, ChangeError> {
        let able = self.state == State::Established;
        let streams = self.extended.as_mut().and_then(|extended| extended.streams.as_mut());
        streams.filter(|_| able).ok_or(ChangeError::NotAgreed)
    }

    /// How many streams there are in a direction.
    fn streams_towards(&self, direction: Direction) -> u16 {
        if direction == Direction::Outgoing { self.streams.0 } else { self.streams.1 }
    }

    /// The user requests a reset of streams.
    pub(crate) fn reset_streams(&mut self, direction: Direction, streams: &[u16]) -> Result<(), ChangeError> {
        if streams.iter().any(|stream| *stream >= self.streams_towards(direction)) {
            return Err(ChangeError::Invalid);
        }
        let room = self.paths.smallest_pmdcs();
        self.requests()?.reset_streams(direction, streams, room)
    }

    /// The user requests a reset of all TSNs and SSNs.
    pub(crate) fn reset_tsns(&mut self) -> Result<(), ChangeError> {
        self.requests()?.reset_tsns()
    }

    /// The user wants more streams.
    pub(crate) fn add_streams(&mut self, direction: Direction, count: u16) -> Result<(), ChangeError> {
        let present = self.streams_towards(direction);
        if count == 0 || present.checked_add(count).is_none() {
            return Err(ChangeError::Invalid);
        }
        let most = u32::from(self.config.inbound_streams);
        let requests = self.requests()?;
        let wanted = u32::from(present) + requests.incoming_asked() + u32::from(count);
        if direction == Direction::Incoming && wanted > most {
            return Err(ChangeError::Invalid);
        }
        requests.add_streams(direction, count)
    }

    /// The association begins anew: the requests of the user are not carried out any more.
    pub(super) fn fail_requests(&mut self) {
        let Some(extended) = &mut self.extended else { return };
        let streams = extended.streams.as_mut().map(|streams| streams.give_up(self.streams));
        let addresses = extended.addresses.as_mut().map(AddressChanges::give_up);
        self.events.extend(streams.into_iter().flatten());
        self.events.extend(addresses.into_iter().flatten().map(|PendingChange { change, local }| {
            Event::LocalAddress { address: local.address, change, outcome: Outcome::Failed }
        }));
    }

    fn congestion(&mut self) -> Option<&mut Congestion> {
        self.extended.as_mut().and_then(|extended| extended.congestion.as_mut())
    }

    /// After a packet from this path was processed: reduces the windows of the paths on which packets of ours were
    /// marked. If a chunk was acknowledged before its ECNE came, it is this path.
    pub(super) fn hear_marks(&mut self, came: PathId, now: Time) {
        let Some(congestion) = self.extended.as_mut().and_then(|extended| extended.congestion.as_mut())
        else {
            return;
        };
        let sent = &self.sender.outstanding;
        for (echo, chunk) in congestion.take_reports() {
            let counts = congestion.ecne(echo, chunk, sent);
            let path = match chunk {
                MarkedChunk::Once(path) => Some(path),
                MarkedChunk::Gone => Some(came),
                MarkedChunk::Again => None,
            };
            if let Some(path) = path.filter(|_| counts) {
                self.paths.cut_for_mark(path, echo.tsn, sent.highest(), now, &mut self.notes);
            }
        }
    }

    /// After a packet was processed: if there is no data to send, CWR leaves without waiting for data.
    pub(super) fn answer_if_idle(&mut self, path: PathId) {
        if self.user_bytes() == 0 {
            let highest = self.sender.outstanding.highest();
            let answer = self.congestion().and_then(|congestion| congestion.take_answer(highest));
            self.send_answer(path, answer);
        }
    }

    /// Sends CWR with the next data, or alone if the packet has no room.
    pub(super) fn bundle_answer(&mut self, path: PathId, limit: u32, packet: &mut Packet) {
        let highest = self.sender.outstanding.highest();
        let congestion = self.congestion();
        let alone = congestion.and_then(|congestion| congestion.bundle_answer(limit, packet, highest));
        self.send_answer(path, alone);
    }

    fn send_answer(&mut self, path: PathId, answer: Option<Chunk>) {
        let answer = answer.map(|chunk| Action::Reply(path, chunk, Purpose::Sack));
        self.carry_out(answer.into_iter().collect());
    }

    /// Timers of messages with limits.
    fn partial_timers(&mut self, now: Time) {
        let (sender, mut around, _) = self.sending(now);
        sender.expire(&mut around);
        if let Some(path) = sender.forward_unanswered(now) {
            self.control_unanswered(path, now);
        }
        self.drained();
        self.announce_writable();
    }

    /// FORWARD TSN in front of the data of a packet that leaves on this path.
    pub(super) fn bundle_forward(&mut self, path: PathId, limit: u32, packet: &mut Packet, now: Time) {
        let (sender, mut around, _) = self.sending(now);
        if let Some(chunk) = sender.take_forward(path, limit, &mut around) {
            packet.chunks.insert(0, chunk);
        }
    }

    /// FORWARD TSN in a packet of its own, with the chunk that goes before it.
    pub(super) fn forward_alone(
        &mut self,
        limit: u32,
        before: Option<Chunk>,
        now: Time,
    ) -> (Box<Packet>, Reason) {
        let path = self.open_path(self.sender.in_use);
        let (mut packet, reason) = self.packet(path, Default::default(), Purpose::Forward, Limit::Control);
        self.bundle_forward(path, limit, &mut packet, now);
        packet.chunks.insert_many(0, before);
        (packet, reason)
    }

    /// After a reset of all TSNs, what must go before FORWARD TSN: a peer that has not heard of the reset would take it
    /// for one in the old TSNs, and the data behind it too.
    pub(super) fn before_forward(&self) -> Option<Chunk> {
        let streams = self.extended.as_ref().and_then(|extended| extended.streams.as_ref());
        streams.and_then(|streams| streams.restart_answer())
    }

    /// FORWARD TSN came. It is acknowledged like DATA; one that is out of date, at once.
    //= rfc3758#section-3.6
    fn forward_tsn(&mut self, forward: &ForwardTsn, arrival: &mut Arrival, now: Time) {
        if !self.may_skip_to(forward.cumulative, arrival, now) {
            return;
        }
        let inbound = self.streams.1;
        let skipped = forward.skipped.iter().copied().filter(|(stream, _)| *stream < inbound);
        self.receiver.forward(forward.cumulative, skipped, arrival);
    }

    /// I-FORWARD-TSN came.
    //= rfc8260#section-2.3.1
    fn interleaved_forward(&mut self, forward: &IForwardTsn, arrival: &mut Arrival, now: Time) {
        if !self.may_skip_to(forward.cumulative, arrival, now) {
            return;
        }
        let inbound = self.streams.1;
        let skipped = forward.skipped.iter().copied().filter(|message| message.stream < inbound);
        self.receiver.interleaved_forward(forward.cumulative, skipped, arrival);
    }

    /// Whether a FORWARD TSN, of either kind, is looked at. One for TSNs that the peer cannot have sent ends the
    /// association.
    fn may_skip_to(&mut self, cumulative: Tsn, arrival: &mut Arrival, now: Time) -> bool {
        if !self.state.receives_data() || !arrival.admits_costly(MOST_IN_A_PACKET) {
            return false;
        }
        let possible = self.receiver.can_skip_to(cumulative);
        if !possible {
            let what = b"a FORWARD TSN far beyond what can have been sent".as_slice().into();
            self.violated(Cause::ProtocolViolation(what), now);
        }
        possible
    }

    /// I-DATA came.
    //= rfc8260#section-2.2.3
    fn idata(&mut self, data: IData, came: PathId, arrival: &mut Arrival, now: Time) {
        self.data_shows_cookie_ack(now);
        if !self.state.receives_data() {
            return;
        }
        if data.payload.is_empty() {
            return self.violated(Cause::NoUserData(data.tsn), now);
        }
        if data.stream >= self.streams.1 {
            return self.invalid_stream(data.stream, data.tsn, came, arrival);
        }
        let (tsn, size) = (data.tsn, data.size());
        let outcome = match self.receiver.must_hold_back(data.stream, tsn) {
            true => self.receiver.hold_back(HeldBack::IData(data), &self.config.rules, arrival),
            false => self.receiver.idata(data, &self.config.rules, arrival),
        };
        self.taken(outcome, (tsn, size), came, now);
    }

    /// Chunks of the other kind than was agreed. Before INIT ACK nothing is agreed, and an ABORT would have no tag.
    //= rfc8260#section-2.2.3
    //= rfc8260#section-2.3.1
    //= rfc9260#section-8.5.1
    pub(super) fn wrong_kind(&mut self, now: Time) {
        if self.state == State::CookieWait {
            return;
        }
        let what = b"a chunk of the kind that was not agreed: DATA or I-DATA".as_slice();
        self.violated(Cause::ProtocolViolation(what.into()), now);
    }
}
