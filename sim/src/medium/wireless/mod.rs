//! A wireless channel: radios that share the air through the distributed coordination function of IEEE 802.11.
//!
//! It is sans-I/O, like every medium. [`Channel::offer`] gives a packet to a radio for a neighbour. [`Channel::next`]
//! says when the next event of a group takes place. [`Channel::advance`] carries it out and reports what was delivered
//! or dropped. The channel knows nothing about a packet except its size.
//!
//! A frame passes from neighbour to neighbour in order of distance: first its beginning reaches each of them, then its
//! end. So the cost of a frame depends on the number of its neighbours, not on the number of radios. This takes
//! microseconds, in which mostly nothing else happens: then the frame needs no event. Otherwise it waits in its group.
//! At equal times, stations act first, then frames end, then frames begin. So two stations whose backoffs end in the
//! same slot both transmit. Stations that are not connected by a chain of neighbours form different groups, which are
//! the parts of the medium. Each group has its own deadlines and events.

mod deadlines;
mod flight;
mod frames;
mod neighbours;
mod power;
mod receiver;
mod reception;
mod station;
mod statistics;
mod timing;

use anabranch_proto::Time;

use crate::chance::Draws;
use crate::medium::wire::DropCause;
#[cfg(test)]
use crate::medium::wire::Occupancy;
use crate::scenario::Amount;

pub(crate) use frames::{Air, Dcf, Kind, StationId};
pub(crate) use neighbours::{Neighbours, distance};
pub(crate) use power::{Power, Propagation};
pub(crate) use reception::{Range, Reception};
pub(crate) use statistics::Statistics;
pub(crate) use timing::{A, B, G, Timing};

use deadlines::Deadlines;
use flight::FrameInFlight;
use neighbours::Neighbour;
use receiver::{Ended, Outcome, Signal};
use station::{Station, Step};

/// The radios of one channel, and the frames on the air between them.
#[derive(Debug)]
pub(crate) struct Channel<F> {
    dcf: Dcf,
    reception: Box<dyn Reception>,
    neighbours: Neighbours,
    stations: Vec<Station<F>>,
    groups: Vec<Group>,
    /// By station: its group, and its number in the group.
    member: Vec<(u32, u32)>,
    /// The frames that were transmitted, if an observer wants them.
    sent: Option<Vec<Air>>,
}

/// Stations that are connected by a chain of neighbours.
#[derive(Debug)]
struct Group {
    stations: Vec<StationId>,
    /// By number in the group.
    deadlines: Deadlines,
    /// The frames that wait for their next neighbour; the one whose turn is next stands last.
    flights: Vec<FrameInFlight>,
}

/// The outcome of a packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate<F> {
    /// The neighbour has received it.
    Delivered(F),
    /// It was given up after the last attempt. `None`: it had been delivered, but its sender did not learn that.
    GivenUp(DropCause, Option<F>),
}

/// A radio: its position and its queue.
#[derive(Clone, Debug)]
pub(crate) struct Radio {
    /// Metres to the east and to the north.
    pub(crate) place: [f64; 2],
    pub(crate) queue: Amount,
    /// The name of its random stream.
    pub(crate) stream: String,
}

impl<F> Channel<F> {
    /// Creates a channel with these radios; no two may have the same position. `root` is the seed of the run.
    pub(crate) fn new(dcf: Dcf, reception: Box<dyn Reception>, radios: &[Radio], root: u64) -> Self {
        let places: Vec<_> = radios.iter().map(|radio| radio.place).collect();
        let station = |(id, radio): (StationId, &Radio)| {
            Station::new(id, &dcf, radio.queue, Draws::new(root, &radio.stream))
        };
        let neighbours = Neighbours::new(&places, &*reception);
        let groups: Vec<_> = neighbours.groups().into_iter().map(Group::new).collect();
        let mut member = vec![(0, 0); radios.len()];
        for (group, Group { stations, .. }) in (0..).zip(&groups) {
            (0..).zip(stations).for_each(|(number, station)| member[*station as usize] = (group, number));
        }
        Channel {
            groups,
            member,
            neighbours,
            stations: (0..).zip(radios).map(station).collect(),
            sent: None,
            dcf,
            reception,
        }
    }

    /// Gives a packet of `size` bytes to the radio `from` for its neighbour `to`. Returns the packet if the queue is
    /// full.
    pub(crate) fn offer(
        &mut self,
        now: Time,
        from: StationId,
        to: StationId,
        size: u32,
        packet: F,
    ) -> Result<(), F> {
        self.stations[from as usize].offer(now, &self.dcf, to, size, packet)?;
        self.await_station(from);
        Ok(())
    }

    /// How many groups there are.
    pub(crate) fn parts(&self) -> usize {
        self.groups.len()
    }

    /// The group of a station.
    pub(crate) fn part(&self, station: StationId) -> usize {
        self.member[station as usize].0 as usize
    }

    /// The time of the next event of a group; `NEVER` if there is none.
    pub(crate) fn next(&self, group: usize) -> Time {
        self.groups[group].earliest()
    }

    /// Carries out everything that is due at `now` in a group, and then everything that is due before `until`, as long
    /// as no packet has been delivered or dropped. Returns the time of the last event.
    pub(crate) fn advance(&mut self, group: usize, now: Time, until: Time, fates: &mut Vec<Fate<F>>) -> Time {
        let mut now = now;
        loop {
            self.advance_group(group, now, until, fates);
            let next = self.next(group);
            if !fates.is_empty() || next >= until {
                return now;
            }
            now = next;
        }
    }

    fn advance_group(&mut self, group: usize, now: Time, until: Time, fates: &mut Vec<Fate<F>>) {
        loop {
            let Group { stations, deadlines, flights } = &mut self.groups[group];
            if let Some(number) = deadlines.due(now) {
                let station = stations[number];
                self.wake(now, station, until, fates);
            } else if let Some(mut flight) = flights.pop_if(|flight| flight.next <= now) {
                self.step(&mut flight, fates);
                self.pass(flight, until, fates);
            } else {
                return;
            }
        }
    }

    /// The counters of all radios up to now.
    pub(crate) fn all(&self, now: Time) -> impl Iterator<Item = Statistics> {
        (0..self.stations.len() as StationId).map(move |station| self.statistics(now, station))
    }

    /// Records the frames that are transmitted from now on.
    pub(crate) fn keep_frames(&mut self) {
        self.sent = Some(Vec::new());
    }

    /// Takes the frames recorded since the last call. Each comes with its packet if it is data that its addressee has
    /// not yet received.
    pub(crate) fn take_frames(&mut self, mut show: impl FnMut(&Dcf, &Air, Option<&F>)) {
        for air in self.sent.as_mut().map(std::mem::take).unwrap_or_default() {
            let packet = self.stations[air.from as usize].packet().filter(|_| air.kind == Kind::Data);
            show(&self.dcf, &air, packet);
        }
    }

    /// The packets that are queued or in service and that their addressees have not received.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &F> {
        self.stations.iter().flat_map(Station::packets)
    }

    /// The counters of a radio up to now.
    pub(crate) fn statistics(&self, now: Time, station: StationId) -> Statistics {
        self.stations[station as usize].statistics(now)
    }

    /// The queue of a radio.
    #[cfg(test)]
    pub(crate) fn queue(&self, station: StationId) -> &Occupancy {
        self.stations[station as usize].queue()
    }

    fn wake(&mut self, now: Time, id: StationId, until: Time, fates: &mut Vec<Fate<F>>) {
        let station = &mut self.stations[id as usize];
        let ended = station.sending();
        match station.wake(now, &self.dcf, &*self.reception) {
            Step::Transmit(air) => {
                self.transmit(now, air);
                self.settle(now, id);
                self.pass(FrameInFlight::new(air, now, &self.neighbours), until, fates);
            }
            step => {
                take(step, fates);
                self.settle(now, id);
                if let Some(air) = ended {
                    self.leave(now, air, until, fates);
                }
            }
        }
    }

    /// Called after any event at a station: updates whether it senses the medium busy, and when it acts next.
    fn settle(&mut self, now: Time, id: StationId) {
        let busy = self.busy(id);
        self.find(now, id, busy);
    }

    /// A station finds the medium busy or idle.
    fn find(&mut self, now: Time, id: StationId, busy: bool) {
        self.stations[id as usize].settle(now, &self.dcf, busy);
        self.await_station(id);
    }

    /// Called after a signal began or ended while the station did nothing. Only a change of the medium affects it.
    fn listen(&mut self, now: Time, id: StationId) {
        let busy = self.busy(id);
        if busy != self.stations[id as usize].finds_busy() {
            self.find(now, id, busy);
        }
    }

    fn busy(&self, id: StationId) -> bool {
        let station = &self.stations[id as usize];
        station.transmitting() || station.receiver.busy(&*self.reception)
    }

    fn await_station(&mut self, id: StationId) {
        let station = &mut self.stations[id as usize];
        let deadline = station.deadline();
        if std::mem::replace(&mut station.awaited, deadline) != deadline {
            let (group, number) = self.member[id as usize];
            self.groups[group as usize].deadlines.set(number as usize, deadline);
        }
    }

    fn transmit(&mut self, now: Time, air: Air) {
        self.stations[air.from as usize].begin(now, air);
        if let Some(sent) = &mut self.sent {
            sent.push(air);
        }
    }

    /// The end of a frame leaves its sender.
    fn leave(&mut self, now: Time, air: Air, until: Time, fates: &mut Vec<Fate<F>>) {
        let flight = FrameInFlight::left(air, now, &self.neighbours);
        let flights = &self.groups[self.part(air.from)].flights;
        let begins = |other: &FrameInFlight| (other.air.from, other.start) == (air.from, flight.start);
        if !flights.iter().any(begins) {
            self.pass(flight, until, fates);
        }
    }

    /// A frame passes its neighbours up to `until`. If something else is due first, or a packet was delivered, it waits
    /// in its group. While its sender transmits and all neighbours have heard its beginning, the deadline of its sender
    /// is enough.
    fn pass(&mut self, mut flight: FrameInFlight, until: Time, fates: &mut Vec<Fate<F>>) {
        let from = flight.air.from as usize;
        let group = self.part(flight.air.from);
        while flight.next != Time::NEVER && !(flight.has_begun() && self.stations[from].sends(flight.start)) {
            let free = flight.next < until.min(self.groups[group].earliest()) && fates.is_empty();
            if !free || (!flight.begins && self.may_free_a_packet(&flight)) {
                return self.groups[group].await_flight(flight);
            }
            self.step(&mut flight, fates);
        }
    }

    /// Whether a packet may be delivered or dropped where the frame ends next. The engine must learn that at its time.
    fn may_free_a_packet(&self, flight: &FrameInFlight) -> bool {
        let mut next = flight.leaves(&self.neighbours);
        next.any(|neighbour| self.stations[neighbour.station as usize].may_free_a_packet(&flight.air))
    }

    /// A frame reaches or leaves all neighbours that are at the next distance.
    fn step(&mut self, flight: &mut FrameInFlight, fates: &mut Vec<Fate<F>>) {
        let FrameInFlight { next: now, begins, .. } = *flight;
        // Nobody answers before SIFS: no other frame of the sender begins or ends meanwhile.
        while flight.next == now && flight.begins == begins {
            let neighbour = self.neighbours[flight.turn(&self.neighbours)];
            match begins {
                true => self.begin(now, neighbour, &flight.air),
                false => self.end(now, neighbour, &flight.air, fates),
            }
        }
    }

    /// The beginning of a frame reaches a neighbour of its sender.
    fn begin(&mut self, now: Time, neighbour: Neighbour, air: &Air) {
        let Neighbour { station: id, sensed, strength, alone, .. } = neighbour;
        let station = &mut self.stations[id as usize];
        let transmitting = station.transmitting();
        let before = station.receiver.receiving();
        let signal = Signal { from: air.from, strength, sensed, alone };
        station.receiver.begin(now, &*self.reception, signal, id, transmitting);
        if sensed {
            station.occupation.enter(now, air);
        }
        if before.is_none() && station.receiver.receiving().is_some() {
            station.receiving(now);
        }
        self.listen(now, id);
    }

    /// The end of a frame passes a neighbour of its sender.
    fn end(&mut self, now: Time, neighbour: Neighbour, air: &Air, fates: &mut Vec<Fate<F>>) {
        let Neighbour { station: id, sensed, .. } = neighbour;
        let station = &mut self.stations[id as usize];
        if sensed {
            station.occupation.leave(now, air);
        }
        let ended = station.receiver.end(air.from);
        let step = match ended.reception {
            Outcome::Read => station.read(now, &self.dcf, air),
            Outcome::Error => station.misread(now, &self.dcf),
            Outcome::Missed => {
                self.listen(now, id);
                Step::Nothing
            }
        };
        if air.to == id {
            self.judge(air, &ended);
            if ended.reception == Outcome::Read
                && air.kind == Kind::Data
                && let Some(packet) = self.stations[air.from as usize].take_packet()
            {
                fates.push(Fate::Delivered(packet));
            }
        }
        if ended.reception != Outcome::Missed {
            take(step, fates);
            self.settle(now, id);
        }
    }

    /// Counts collisions of frames that begin an exchange or carry its data.
    fn judge(&mut self, air: &Air, ended: &Ended) {
        if !matches!(air.kind, Kind::Rts | Kind::Data) {
            return;
        }
        let collisions = &mut self.stations[air.from as usize].statistics.collisions;
        match (ended.reception, ended.spoiler) {
            (Outcome::Read, _) => collisions.capture += u64::from(ended.overlapped),
            (_, Some(spoiler)) if spoiler == air.to || self.neighbours.sense(air.from, spoiler) => {
                collisions.slot += 1;
            }
            (_, Some(_)) => collisions.hidden += 1,
            (_, None) => {}
        }
    }
}

impl Group {
    fn new(stations: Vec<StationId>) -> Self {
        Group { deadlines: Deadlines::new(stations.len()), stations, flights: Vec::new() }
    }

    /// When something happens next.
    fn earliest(&self) -> Time {
        let flight = self.flights.last().map_or(Time::NEVER, |flight| flight.next);
        self.deadlines.earliest().min(flight)
    }

    /// A frame waits for its next neighbour. Few frames do so at a time.
    fn await_flight(&mut self, flight: FrameInFlight) {
        let place = self.flights.iter().rposition(|other| flight.is_before(other)).map_or(0, |last| last + 1);
        self.flights.insert(place, flight);
    }
}

/// Reports what a station has given up.
fn take<F>(step: Step<F>, fates: &mut Vec<Fate<F>>) {
    if let Step::GiveUp(cause, packet) = step {
        fates.push(Fate::GivenUp(cause, packet));
    }
}

#[cfg(test)]
mod tests;
