//! A wireless channel: radios that share the air through the distributed coordination function of IEEE 802.11.
//!
//! It is sans-I/O, like every medium. [`Channel::offer`] gives a packet to a radio for a neighbour. [`Channel::next`] says when the next
//! event takes place. [`Channel::advance`] carries it out and reports what was delivered or dropped. The channel knows nothing about a
//! packet except its size.
//!
//! A frame in flight has one deadline. It moves from neighbour to neighbour in order of distance: first for the beginning of the frame,
//! then for its end. So the cost of a frame depends on the number of its neighbours, not on the number of radios. At equal times, stations
//! act first, then frames end, then frames begin. So two stations whose backoffs end in the same slot both transmit. Stations that are not
//! connected by a chain of neighbours form different groups. Each group has its own deadlines, which keeps their number small.

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

/// The radios of one channel, and the frames on the air between them.
#[derive(Debug)]
pub(crate) struct Channel<F> {
    dcf: Dcf,
    reception: Box<dyn Reception>,
    neighbours: Neighbours,
    stations: Vec<Station<F>>,
    /// By station: its frames that some neighbour still hears.
    flights: Vec<SmallVec<[FrameInFlight; 2]>>,
    groups: Vec<Group>,
    /// By station: its group, and its number in the group.
    member: Vec<(u32, u32)>,
    /// The earliest deadline of each group.
    deadlines: Deadlines,
    /// The frames that were transmitted, if an observer wants them.
    sent: Option<Vec<Air>>,
}

/// A frame on its way to the neighbours of its sender. The end of a frame may still be travelling when the sender's next frame begins.
#[derive(Copy, Clone, Debug)]
struct FrameInFlight {
    air: Air,
    start: Time,
    /// The number of neighbours that its beginning has reached.
    reached: u32,
    /// The number of neighbours that its end has passed.
    passed: u32,
    /// When it reaches or passes the next neighbour; `NEVER` if it has passed all.
    next: Time,
    /// Whether the next step is the frame's beginning at a neighbour, not its end.
    begins: bool,
}

/// Stations that are connected by a chain of neighbours.
#[derive(Debug)]
struct Group {
    stations: Vec<StationId>,
    /// By number in the group: the stations, then the ends of their frames, then the beginnings of their frames.
    deadlines: Deadlines,
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

    /// Gives a packet of `size` bytes to the radio `from` for its neighbour `to`. Returns the packet if the queue is full.
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

    /// The time of the next event; `NEVER` if there is none.
    pub(crate) fn next(&self) -> Time {
        self.deadlines.earliest()
    }

    /// Carries out everything that is due at `now`.
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

    /// The counters of all radios up to now.
    pub(crate) fn all(&self, now: Time) -> impl Iterator<Item = Statistics> {
        (0..self.stations.len() as StationId).map(move |station| self.statistics(now, station))
    }

    /// Records the frames that are transmitted from now on.
    pub(crate) fn keep_frames(&mut self) {
        self.sent = Some(Vec::new());
    }

    /// Takes the frames recorded since the last call. Each comes with its packet if it is data that its addressee has not yet received.
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
        let Station { mut statistics, mut occupation, .. } = self.stations[station as usize];
        occupation.settle(now, &mut statistics.airtime);
        statistics
    }

    /// The queue of a radio.
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

    /// Called after any event at a station: updates whether it senses the medium busy, and when it acts next.
    fn settle(&mut self, now: Time, id: StationId) {
        let busy = self.busy(id);
        self.stations[id as usize].settle(now, &self.dcf, busy);
        self.await_station(id);
    }

    /// Called after a signal began or ended while the station did nothing. Only a change of the medium affects it.
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

    /// Sets the deadlines for the station's frames: the next neighbour that the end or the beginning of one reaches.
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

    /// A frame of `from` ends at the next neighbours, or begins there if `begins` is set.
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
            // Nobody answers before SIFS, so the flights have not changed.
            match wave.next {
                Time::NEVER => drop(self.flights[from as usize].remove(place)),
                _ => self.flights[from as usize][place] = wave,
            }
        }
        self.await_flights(from);
    }

    /// A frame begins at a neighbour of its sender.
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

    /// A frame ends at a neighbour of its sender.
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

impl FrameInFlight {
    /// Finds the next step: its end passes a neighbour or its beginning reaches one, whichever comes first.
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
