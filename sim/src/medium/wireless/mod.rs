//! A wireless channel: radios that share the air by the distributed coordination function of IEEE 802.11.
//!
//! Sans-I/O, like every medium: [`Channel::offer`] gives a packet to a radio for a neighbour, [`Channel::next`] says when
//! something happens next, [`Channel::advance`] lets it happen and tells what was delivered or dropped. The channel
//! knows nothing of what a packet is but its size.
//!
//! A frame has one deadline, which passes from neighbour to neighbour in order of distance: first its beginning
//! reaches each of them, then its end. So a frame costs what its neighbours cost, however many radios there are. At
//! equal times stations act first, then ends are heard, then beginnings: two stations whose backoffs end in the same
//! slot both transmit. Stations that no chain of neighbours joins are in different groups, each with deadlines of its
//! own: they stay few.

mod deadlines;
mod frames;
mod neighbours;
mod power;
mod receiver;
mod reception;
mod station;
mod statistics;
mod timing;

use anabranch_proto::Time;
use smallvec::SmallVec;

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
use neighbours::Neighbour;
use receiver::{Ended, Outcome, Signal};
use station::{Station, Step, later};

/// The radios of one channel, and what is on the air between them.
#[derive(Debug)]
pub(crate) struct Channel<F> {
    dcf: Dcf,
    reception: Box<dyn Reception>,
    neighbours: Neighbours,
    stations: Vec<Station<F>>,
    /// By station: its frames that are still heard somewhere.
    flights: Vec<SmallVec<[FrameInFlight; 2]>>,
    groups: Vec<Group>,
    /// By station: its group, and its number there.
    member: Vec<(u32, u32)>,
    /// The earliest deadline of every group.
    deadlines: Deadlines,
    /// The frames that have gone on the air, for whoever observes.
    sent: Option<Vec<Air>>,
}

/// A frame on its way to the neighbours of its sender. The end of one may still travel when the sender's next begins.
#[derive(Copy, Clone, Debug)]
struct FrameInFlight {
    air: Air,
    start: Time,
    /// Neighbours that it has reached.
    reached: u32,
    /// Neighbours that it has passed.
    passed: u32,
    /// When it reaches or passes the next; `NEVER`: it has passed all.
    next: Time,
    /// Its beginning is next, not its end.
    begins: bool,
}

/// Stations that neighbours join.
#[derive(Debug)]
struct Group {
    stations: Vec<StationId>,
    /// By number in the group: stations, then ends of their frames, then beginnings of their frames.
    deadlines: Deadlines,
}

/// What has become of a packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate<F> {
    /// The neighbour has it.
    Delivered(F),
    /// Given up after the last attempt. `None`: it had been delivered, and its sender never knew.
    GivenUp(DropCause, Option<F>),
}

/// A radio: where it stands and what waits before it.
#[derive(Clone, Debug)]
pub(crate) struct Radio {
    /// Metres east and north.
    pub(crate) place: [f64; 2],
    pub(crate) queue: Amount,
    /// The name of its stream of chance.
    pub(crate) stream: String,
}

impl<F> Channel<F> {
    /// The radios, no two of them at one place; `root` is the run's seed.
    pub(crate) fn new(dcf: Dcf, reception: Box<dyn Reception>, radios: &[Radio], root: u64) -> Self {
        let places: Vec<_> = radios.iter().map(|radio| radio.place).collect();
        let station = |(id, radio): (StationId, &Radio)| {
            Station::new(id, &dcf, radio.queue, Draws::new(root, &radio.stream))
        };
        let neighbours = Neighbours::new(&places, &*reception);
        let groups = neighbours.groups().into_iter();
        let deadlines = |stations: &Vec<StationId>| Deadlines::new(3 * stations.len());
        let groups: Vec<_> =
            groups.map(|stations| Group { deadlines: deadlines(&stations), stations }).collect();
        let mut member = vec![(0, 0); radios.len()];
        for (group, Group { stations, .. }) in (0..).zip(&groups) {
            (0..).zip(stations).for_each(|(number, station)| member[*station as usize] = (group, number));
        }
        Channel {
            deadlines: Deadlines::new(groups.len()),
            groups,
            member,
            neighbours,
            stations: (0..).zip(radios).map(station).collect(),
            flights: vec![SmallVec::new(); radios.len()],
            sent: None,
            dcf,
            reception,
        }
    }

    /// Gives a packet of `size` bytes to the radio `from` for its neighbour `to`, or gets it back: the queue is full.
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
        self.await_group(self.member[from as usize].0 as usize);
        Ok(())
    }

    /// When something happens next; `NEVER` if nothing does.
    pub(crate) fn next(&self) -> Time {
        self.deadlines.earliest()
    }

    /// Everything that happens at `now` happens.
    pub(crate) fn advance(&mut self, now: Time, fates: &mut Vec<Fate<F>>) {
        while let Some(group) = self.deadlines.due(now) {
            while let Some(entity) = self.groups[group].deadlines.due(now) {
                let stations = &self.groups[group].stations;
                let count = stations.len();
                match entity / count {
                    0 => self.wake(now, stations[entity], fates),
                    1 => self.fly(now, stations[entity - count], false, fates),
                    _ => self.fly(now, stations[entity - 2 * count], true, fates),
                }
            }
            self.await_group(group);
        }
    }

    fn await_group(&mut self, group: usize) {
        self.deadlines.set(group, self.groups[group].deadlines.earliest());
    }

    /// What all radios have counted up to now.
    pub(crate) fn all(&self, now: Time) -> impl Iterator<Item = Statistics> {
        (0..self.stations.len() as StationId).map(move |station| self.statistics(now, station))
    }

    /// Keeps the frames that go on the air from now on, until they are taken.
    pub(crate) fn keep_frames(&mut self) {
        self.sent = Some(Vec::new());
    }

    /// The frames that have gone on the air since they were last taken, each with its packet if it is data that its
    /// addressee does not have yet.
    pub(crate) fn take_frames(&mut self, mut show: impl FnMut(&Dcf, &Air, Option<&F>)) {
        for air in self.sent.as_mut().map(std::mem::take).unwrap_or_default() {
            let packet = self.stations[air.from as usize].packet().filter(|_| air.kind == Kind::Data);
            show(&self.dcf, &air, packet);
        }
    }

    /// The packets that wait or are in service, unless their addressees have them.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &F> {
        self.stations.iter().flat_map(Station::packets)
    }

    /// What a radio has counted up to now.
    pub(crate) fn statistics(&self, now: Time, station: StationId) -> Statistics {
        let Station { mut statistics, mut occupation, .. } = self.stations[station as usize];
        occupation.settle(now, &mut statistics.airtime);
        statistics
    }

    /// The queue before a radio.
    #[cfg(test)]
    pub(crate) fn queue(&self, station: StationId) -> &Occupancy {
        self.stations[station as usize].queue()
    }

    fn wake(&mut self, now: Time, id: StationId, fates: &mut Vec<Fate<F>>) {
        let station = &mut self.stations[id as usize];
        let heard = station.receiver.busy(&*self.reception);
        let step = station.wake(now, &self.dcf, heard);
        self.take(now, step, fates);
        self.settle(now, id);
    }

    fn take(&mut self, now: Time, step: Step<F>, fates: &mut Vec<Fate<F>>) {
        match step {
            Step::Nothing => {}
            Step::Transmit(air) => self.transmit(now, air),
            Step::GiveUp(cause, packet) => fates.push(Fate::GivenUp(cause, packet)),
        }
    }

    /// After anything has happened to a station: does it find the medium busy, and when does it act?
    fn settle(&mut self, now: Time, id: StationId) {
        let busy = self.busy(id);
        self.stations[id as usize].settle(now, &self.dcf, busy);
        self.await_station(id);
    }

    /// After a signal has come or gone and a station did nothing: only a change of the medium matters to it.
    fn listen(&mut self, now: Time, id: StationId) {
        if self.busy(id) != self.stations[id as usize].finds_busy() {
            self.settle(now, id);
        }
    }

    fn busy(&self, id: StationId) -> bool {
        let station = &self.stations[id as usize];
        station.transmitting() || station.receiver.busy(&*self.reception)
    }

    fn await_station(&mut self, id: StationId) {
        let (group, number) = self.member[id as usize];
        let deadline = self.stations[id as usize].deadline();
        self.groups[group as usize].deadlines.set(number as usize, deadline);
    }

    fn transmit(&mut self, now: Time, air: Air) {
        self.stations[air.from as usize].begin(now, air);
        if let Some(sent) = &mut self.sent {
            sent.push(air);
        }
        let mut wave = FrameInFlight { air, start: now, reached: 0, passed: 0, next: now, begins: true };
        wave.turn(self.neighbours.of(air.from));
        self.flights[air.from as usize].push(wave);
        self.await_flights(air.from);
    }

    /// The next that happens to a station's frames: the end or the beginning of one reaches its next neighbours.
    fn await_flights(&mut self, from: StationId) {
        let (group, number) = self.member[from as usize];
        let Group { stations, deadlines } = &mut self.groups[group as usize];
        let flights = &self.flights[from as usize];
        for begins in [false, true] {
            let next = flights.iter().filter(|wave| wave.begins == begins).map(|wave| wave.next).min();
            let place = stations.len() * (1 + usize::from(begins)) + number as usize;
            deadlines.set(place, next.unwrap_or(Time::NEVER));
        }
    }

    /// A frame of `from` leaves the neighbours that are next, or reaches them if it `begins` there.
    fn fly(&mut self, now: Time, from: StationId, begins: bool, fates: &mut Vec<Fate<F>>) {
        let due = |wave: &FrameInFlight| wave.next == now && wave.begins == begins;
        if let Some(place) = self.flights[from as usize].iter().position(due) {
            let mut wave = self.flights[from as usize][place];
            while due(&wave) {
                if begins {
                    self.begin(now, wave.reached, &wave.air);
                    wave.reached += 1;
                } else {
                    self.end(now, wave.passed, &wave.air, fates);
                    wave.passed += 1;
                }
                wave.turn(self.neighbours.of(from));
            }
            // Nobody answers before SIFS: the flights are as they were.
            match wave.next {
                Time::NEVER => drop(self.flights[from as usize].remove(place)),
                _ => self.flights[from as usize][place] = wave,
            }
        }
        self.await_flights(from);
    }

    /// The beginning of a frame reaches a neighbour of its sender.
    fn begin(&mut self, now: Time, neighbour: u32, air: &Air) {
        let Neighbour { station: id, sensed, strength, .. } =
            self.neighbours.of(air.from)[neighbour as usize];
        let station = &mut self.stations[id as usize];
        let transmitting = station.transmitting();
        let before = station.receiver.receiving();
        let signal = Signal { from: air.from, strength, sensed };
        station.receiver.begin(now, &*self.reception, signal, id, transmitting);
        if sensed {
            station.occupation.enter(now, air, &mut station.statistics.airtime);
        }
        if before.is_none() && station.receiver.receiving().is_some() {
            station.receiving(now);
        }
        self.listen(now, id);
    }

    /// The end of a frame passes a neighbour of its sender.
    fn end(&mut self, now: Time, neighbour: u32, air: &Air, fates: &mut Vec<Fate<F>>) {
        let signal = self.neighbours.of(air.from)[neighbour as usize];
        let id = signal.station;
        let station = &mut self.stations[id as usize];
        if signal.sensed {
            station.occupation.leave(now, air, &mut station.statistics.airtime);
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
            self.take(now, step, fates);
            self.settle(now, id);
        }
    }

    /// Counts the collisions of the frames that begin an exchange or carry its data.
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

impl FrameInFlight {
    /// Finds out when its end passes a neighbour or its beginning reaches one, whatever is first.
    fn turn(&mut self, neighbours: &[Neighbour]) {
        let at = |number: u32, after: u64| {
            let neighbour = neighbours.get(number as usize);
            neighbour.map_or(Time::NEVER, |neighbour| later(self.start, after + neighbour.delay))
        };
        let (end, beginning) = (at(self.passed, self.air.airtime), at(self.reached, 0));
        (self.next, self.begins) = if end <= beginning { (end, false) } else { (beginning, true) };
    }
}

#[cfg(test)]
mod tests;
