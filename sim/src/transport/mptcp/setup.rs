//! How subflows begin and end: the handshakes of MP_CAPABLE and MP_JOIN, advertised addresses, priorities and DATA_FIN;
//! and the options that every segment carries.

use std::net::IpAddr;

use anabranch_proto::Time;
use smallvec::SmallVec;

use super::connection::Connection;
use super::keys::part;
use super::option::{AddAddress, DataAck, Dss, Handshake, Mapping, MptcpOptions, OPTION_SPACE};
use super::subflow::{AT_ONCE, Errand, Stage, Subflow};
use crate::transport::tcp::{DATA_TRIES, SYN_TRIES, Segment, Sequence, State};

/// The number of unanswered DATA_FINs after which an end assumes that the other is gone: as many as TCP's timeouts.
const FIN_TRIES: u32 = DATA_TRIES;

/// The planned changes of subflows.
#[derive(Debug, Default)]
pub(super) struct Setup {
    /// Whether the other end has proved that it knows the keys.
    pub(super) confirmed: bool,
    /// The server's addresses, without that of the first subflow, by identifier.
    pub(super) addresses: Vec<Announced>,
    /// Whether any of them has a timer.
    pub(super) announces: bool,
    /// Identifiers of the server's addresses that the client knows.
    pub(super) known: Vec<u8>,
    /// Changes of priority that this end requests, in order of time: the time, the subflow, and whether it becomes a
    /// backup.
    pub(super) priorities: Vec<(Time, usize, bool)>,
}

/// An address that is advertised.
#[derive(Debug)]
pub(super) struct Announced {
    pub(super) id: u8,
    pub(super) address: IpAddr,
    /// When it is advertised again. `None`: it was not advertised yet, or is not any more.
    pub(super) timer: Option<Time>,
    /// The number of times that it was advertised; no more often than a SYN.
    pub(super) times: u32,
    pub(super) heard: bool,
}

impl Announced {
    fn is_due(&self, now: Time) -> bool {
        !self.heard && self.times < SYN_TRIES && self.timer.is_none_or(|timer| timer <= now)
    }
}

/// The end of the data of this end.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Fin {
    /// When DATA_FIN is sent again. `None`: it was not sent yet, or it is acknowledged.
    pub(super) timer: Option<Time>,
    /// The number of times that it was sent.
    pub(super) times: u32,
    /// Whether it is acknowledged.
    pub(super) acked: bool,
}

impl Fin {
    /// New data is acknowledged, perhaps the last. If DATA_FIN was repeated before that, no copy has arrived, and the
    /// next leaves at once.
    pub(super) fn data_acknowledged(&mut self, all: bool) {
        if all && !self.acked && self.times > 1 {
            *self = Fin::default();
        }
    }
}

impl Setup {
    /// The timer of an address has changed.
    fn look_at_timers(&mut self) {
        self.announces = self.addresses.iter().any(|announced| announced.timer.is_some());
    }
}

/// Removes the SACK blocks that have no space beside the Multipath TCP options.
fn shorten_sack(segment: &mut Segment) {
    let space = OPTION_SPACE.saturating_sub(segment.mptcp.as_ref().map_or(0, MptcpOptions::size));
    while !segment.sack.is_empty() && segment.option_bytes() > space {
        segment.sack.pop();
    }
}

impl Connection {
    /// Starts the subflows that may begin now: the first at once, the others when the connection is confirmed.
    pub(super) fn begin_subflows(&mut self) {
        for path in 0..self.subflows.len() {
            let reachable = self.setup.known.contains(&self.subflows[path].addresses[1]);
            let may = path == 0 || !self.client || self.setup.confirmed && reachable;
            let subflow = &mut self.subflows[path];
            if subflow.stage == Stage::Waiting && may && !(self.plain && path > 0) {
                subflow.stage = Stage::Joining;
                subflow.wake();
            }
        }
    }

    /// Reads the handshake options of a segment before its subflow processes it.
    pub(super) fn greet(&mut self, path: usize, segment: &Segment) {
        match segment.mptcp.as_ref().and_then(MptcpOptions::handshake) {
            Some(Handshake::Join { nonce, .. } | Handshake::JoinAnswer { nonce, .. }) => {
                self.subflows[path].nonces[1] = nonce;
            }
            // The other end's answer shows that it does not support Multipath TCP. It may come twice.
            //= rfc8684#section-3.7
            None if self.client && path == 0 && segment.syn && !self.plain => self.fall_back(),
            _ => {}
        }
    }

    /// Continues the handshake after the subflow has processed the segment.
    pub(super) fn greeted(&mut self, now: Time, path: usize, segment: &Segment) {
        let subflow = &mut self.subflows[path];
        if subflow.tcp.state() != State::Established {
            return;
        }
        match (self.client, path) {
            (true, 0) | (false, _) => {
                subflow.stage = Stage::Ready;
                if path > 0 {
                    // The client sends data only after it has received this.
                    //= rfc8684#section-3.2
                    subflow.ask();
                }
            }
            (true, _) if segment.syn => {
                subflow.errand().proof = true;
                subflow.proof = Some((now + subflow.tcp.path().rto, 1));
            }
            (true, _) => (subflow.stage, subflow.proof) = (Stage::Ready, None),
        }
        if self.client && path == 0 && segment.syn {
            self.admitted = self.admitted.max(u64::from(segment.window));
        }
        if !self.client && path == 0 && segment.mptcp.is_some() {
            self.announce_addresses(now);
        }
        self.begin_subflows();
    }

    /// Advertises the next of this end's other addresses that is due: one at a time. The next follows when it is
    /// confirmed.
    //= rfc8684#section-3.4.1
    fn announce_addresses(&mut self, now: Time) {
        let Some(carrier) = self.carrier() else { return };
        let (subflow, due) =
            (&mut self.subflows[carrier], |announced: &&mut Announced| announced.is_due(now));
        let next = self.setup.addresses.iter_mut().filter(due).min_by_key(|announced| announced.times);
        if let Some(announced) = next.filter(|_| subflow.errand().address.is_none()) {
            let wait = subflow.tcp.path().rto * 2u32.pow(announced.times.min(6));
            announced.times += 1;
            let again = announced.times < SYN_TRIES;
            announced.timer = again.then(|| now + wait.min(self.config.tcp.rto_max));
            subflow.errand().address = Some((announced.id, false));
            subflow.wake();
        }
        self.setup.look_at_timers();
    }

    /// The other end has advertised an address, or confirmed one of this end.
    pub(super) fn address_added(&mut self, now: Time, path: usize, added: AddAddress) {
        if added.hmac.is_none() {
            let heard = self.setup.addresses.iter_mut().filter(|announced| announced.id == added.id);
            heard.for_each(|announced| (announced.heard, announced.timer) = (true, None));
            return self.announce_addresses(now);
        }
        if added.hmac != Some(self.keys.turned().address_hmac(added.id, added.address)) {
            return;
        }
        self.subflows[path].errand().address = Some((added.id, true));
        self.subflows[path].wake();
        if !self.setup.known.contains(&added.id) {
            self.setup.known.push(added.id);
            let announced =
                Announced { id: added.id, address: added.address, timer: None, times: 0, heard: true };
            self.setup.addresses.push(announced);
        }
        self.begin_subflows();
    }

    /// The subflow that carries options for the whole connection.
    pub(super) fn carrier(&self) -> Option<usize> {
        (0..self.subflows.len())
            .filter(|path| self.subflows[*path].stage == Stage::Ready)
            .min_by_key(|path| self.preference(*path))
    }

    /// The preferred subflow has the least value.
    fn preference(&self, path: usize) -> (u32, bool, bool, usize) {
        let subflow = &self.subflows[path];
        (subflow.tcp.timeouts_in_a_row(), path != self.heard_on, subflow.backup, path)
    }

    /// The subflows that can carry data, in order of preference.
    fn ready(&self) -> SmallVec<[usize; 4]> {
        let ready = |path: &usize| self.subflows[*path].stage == Stage::Ready;
        let mut ready: SmallVec<[usize; 4]> = (0..self.subflows.len()).filter(ready).collect();
        ready.sort_by_key(|path| self.preference(*path));
        ready
    }

    /// Does what is due at this time.
    pub(super) fn run_timers(&mut self, now: Time) {
        if self.setup.addresses.iter().any(|announced| announced.timer.is_some_and(|timer| timer <= now)) {
            self.announce_addresses(now);
        }
        while self.setup.priorities.first().is_some_and(|(at, ..)| *at <= now) {
            let (_, path, backup) = self.setup.priorities.remove(0);
            if self.subflows[path].stage == Stage::Ready {
                self.subflows[path].errand().priority = Some(backup);
                self.subflows[path].wake();
            }
        }
        if self.linger.is_some_and(|until| until <= now) {
            self.subflows.iter_mut().for_each(Subflow::end);
        }
    }

    /// DATA_FIN leaves once all data has left and the other end is known to have the keys, which take its place until
    /// then. It is repeated until it is acknowledged.
    //= rfc8684#section-3.3.3
    pub(super) fn owes_fin(&self, now: Time) -> bool {
        let due = || self.fin.timer.is_none_or(|timer| timer <= now);
        let may = self.closing && self.pieces.end() == self.written && !self.fin.acked;
        may && !self.owes_keys(0) && due()
    }

    #[cold]
    pub(super) fn send_fin(&mut self, now: Time) {
        // Each attempt uses another subflow: the preferred one may have failed unnoticed.
        let mut ready = self.ready();
        let turn = self.fin.times as usize % ready.len().max(1);
        ready.rotate_left(turn);
        let Some(&carrier) = ready.first() else {
            self.fin.timer = Some(now + self.config.tcp.rto_max);
            return;
        };
        if self.fin.times >= FIN_TRIES && self.pieces.is_empty() {
            return self.give_up_fin(now);
        }
        let wait = self.subflows[carrier].tcp.path().rto * 2u32.pow(self.fin.times.min(6));
        let wait = wait.min(self.config.tcp.rto_max);
        (self.fin.timer, self.fin.times) = (Some(now + wait), self.fin.times + 1);
        self.subflows[carrier].errand().fin = true;
        self.subflows[carrier].wake();
    }

    /// Nobody answers DATA_FIN. An end that has heard that of the other has nothing more to learn; for one that has
    /// not, the connection is lost.
    fn give_up_fin(&mut self, now: Time) {
        if self.assembly.ended() {
            self.fin.acked = true;
            return self.finish_subflows(now);
        }
        self.subflows.iter_mut().for_each(Subflow::end);
    }

    /// Both directions have ended: closes working subflows and drops the others.
    //= rfc8684#section-3.3.3
    #[inline(always)]
    pub(super) fn finish_subflows(&mut self, now: Time) {
        if !self.plain && self.is_done() {
            self.close_subflows(now);
        }
    }

    #[cold]
    fn close_subflows(&mut self, now: Time) {
        let longest = self.subflows.iter().map(|subflow| subflow.tcp.path().rto).max();
        self.linger.get_or_insert(now + 4 * longest.unwrap_or_default());
        // No address is announced any more.
        self.setup.addresses.clear();
        self.setup.look_at_timers();
        // One must tell the other end that its DATA_FIN has arrived.
        let carrier = self.carrier();
        let subflows = self.subflows.iter_mut().enumerate();
        for (path, subflow) in subflows.filter(|(_, subflow)| subflow.stage != Stage::Over) {
            // A FIN that is lost goes again.
            let fails = subflow.tcp.timeouts_in_a_row() > 0 && subflow.tcp.unacknowledged() > 0;
            if subflow.stage != Stage::Ready || fails && carrier != Some(path) {
                subflow.end();
            } else if subflow.tcp.state() == State::Established && !subflow.tcp.is_closing() {
                subflow.tcp.close();
                subflow.wake();
            }
        }
    }

    /// Adds the Multipath TCP options to a segment. `number`: the offset of its first byte of data, if it has any.
    #[inline(always)]
    pub(super) fn decorate(&mut self, path: usize, segment: &mut Segment, number: Option<u64>) {
        if segment.syn {
            segment.window = self.assembly.window(0);
            segment.mptcp = Some(MptcpOptions::shaking(self.greeting(path)));
            return;
        }
        let tcp = &self.subflows[path].tcp;
        let (first, _) = tcp.first();
        segment.window = self.assembly.window(tcp.scale());
        segment.mptcp = Some(match number {
            Some(0) if self.owes_keys(path) => {
                MptcpOptions::shaking(self.keys_with(Some(segment.length as u16)))
            }
            Some(number) => MptcpOptions { dss: Some(self.mapping(first, segment, number)), rare: None },
            None => self.say_besides(path),
        });
        if !segment.sack.is_empty() {
            shorten_sack(segment);
        }
    }

    /// Whether the other end may not know the keys yet, so that this subflow must carry them.
    fn owes_keys(&self, path: usize) -> bool {
        self.client && path == 0 && !self.setup.confirmed
    }

    /// The handshake option of a SYN or SYN-ACK.
    fn greeting(&self, path: usize) -> Handshake {
        let subflow = &self.subflows[path];
        let [nonce, other] = subflow.nonces;
        let address = subflow.addresses[usize::from(!self.client)];
        match (path, self.client) {
            (0, true) => Handshake::Capable,
            (0, false) => Handshake::CapableKey { key: self.keys.own },
            (_, true) => Handshake::Join { backup: subflow.backup, address, token: self.keys.token(), nonce },
            (_, false) => {
                let hmac = u64::from_be_bytes(part(&self.keys.proof(nonce, other), 0));
                Handshake::JoinAnswer { backup: subflow.backup, address, hmac, nonce }
            }
        }
    }

    fn keys_with(&self, length: Option<u16>) -> Handshake {
        Handshake::CapableKeys { key: self.keys.own, other: self.keys.other, length }
    }

    /// The mapping of a segment with data. `first`: the number of the subflow's first byte.
    //= rfc8684#section-3.3.1
    fn mapping(&self, first: Sequence, segment: &Segment, number: u64) -> Dss {
        let mapping = Mapping {
            data: self.numbers.0.wrapping_add(number),
            subflow: segment.sequence.0.wrapping_sub(first.0).wrapping_add(1),
            length: segment.length as u16,
        };
        let next = self.numbers.1.wrapping_add(self.assembly.next());
        Dss { ack: Some(DataAck::Short(next as u32)), mapping: Some(mapping), fin: false }
    }

    /// The options that a segment without data carries besides its acknowledgement.
    fn say_besides(&mut self, path: usize) -> MptcpOptions {
        let next = self.numbers.1.wrapping_add(self.assembly.next());
        let dss = Dss { ack: Some(DataAck::Long(next)), ..Dss::default() };
        match self.subflows[path].errand.take() {
            None if !self.owes_keys(path) => MptcpOptions { dss: Some(dss), rare: None },
            errand => self.run_errand(path, errand.unwrap_or_default(), dss),
        }
    }

    #[cold]
    fn run_errand(&mut self, path: usize, errand: Errand, dss: Dss) -> MptcpOptions {
        let Errand { proof, fin, address, priority } = errand;
        let mut options = MptcpOptions::default();
        if self.owes_keys(path) {
            options.rare_mut().handshake = Some(self.keys_with(None));
        } else if proof {
            let [own, other] = self.subflows[path].nonces;
            options.rare_mut().handshake = Some(Handshake::JoinProof(part(&self.keys.proof(own, other), 0)));
        } else {
            options.dss = Some(dss);
        }
        let announced = address.and_then(|(id, echo)| self.announcement(id, echo));
        if priority.is_some() || announced.is_some() {
            let rare = options.rare_mut();
            (rare.backup, rare.add_address) = (priority, announced);
        }
        if let Some(dss) = options.dss.as_mut().filter(|_| fin) {
            let data = self.numbers.0.wrapping_add(self.written);
            (dss.fin, dss.mapping) = (true, Some(Mapping { data, subflow: 0, length: 1 }));
        }
        // Options that do not fit wait for the next acknowledgement.
        if announced.is_some() && options.size() > OPTION_SPACE {
            options.rare_mut().add_address = None;
            self.subflows[path].errand().address = address;
        }
        options
    }

    fn announcement(&self, id: u8, echo: bool) -> Option<AddAddress> {
        let announced = self.setup.addresses.iter().find(|announced| announced.id == id)?;
        let hmac = (!echo).then(|| self.keys.address_hmac(id, announced.address));
        Some(AddAddress { id, address: announced.address, hmac })
    }

    /// When the next timer of a subflow expires.
    #[inline]
    pub(super) fn subflows_wake(&self) -> Time {
        let timed = self.subflows.iter().filter(|subflow| subflow.is_used() && subflow.due > AT_ONCE);
        timed.map(|subflow| subflow.due).min().unwrap_or(Time::NEVER)
    }

    /// When the next timer of the connection or of a subflow expires; `next` is when that of the next subflow does.
    #[inline]
    pub(super) fn wakes_with(&self, next: Time) -> Time {
        // Without all of these the connection has no timer of its own.
        let Setup { announces, priorities, .. } = &self.setup;
        match self.closing || self.probe.timer.is_some() || *announces || !priorities.is_empty() {
            true => next.min(self.own_timer()),
            false => next,
        }
    }

    /// When the next timer of the connection expires that is none of a subflow.
    #[cold]
    fn own_timer(&self) -> Time {
        if self.is_over() {
            return Time::NEVER;
        }
        let announced = self.setup.addresses.iter().filter_map(|announced| announced.timer);
        let priority = self.setup.priorities.first().map(|(at, ..)| *at);
        let fin = self.fin.timer.filter(|_| !self.fin.acked);
        let probe = self.probe.timer.map(|(at, _)| at);
        let others = [priority, fin, probe, self.linger];
        announced.chain(others.into_iter().flatten()).min().unwrap_or(Time::NEVER)
    }
}
