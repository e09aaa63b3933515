//! The engine. It executes event after event until none is left or the run ends.
//!
//! Entities are numbered: link directions, then agents, then the list of changes, then the list of pauses, then the
//! parts of channels. Each has one entry in the agenda; the entry of a part is its next event.
//!
//! On links, a packet costs one event per hop, its arrival. It costs one more before a link with CoDel, and one more on
//! a link that may reorder packets. Other departures need no event: before an arrival is handled, every packet whose
//! departure is due has left its queue. If all packets of the next link come from this one, a packet runs ahead to that
//! link without an event, unless an observer needs to see it there in order (`ahead.rs`).
//!
//! Ties are broken by turns: CoDel's decisions come first, then pauses, then changes, then agents that wait, then the
//! packet that entered its link first. Entities that never affect each other need no common order, and take turns
//! (`components.rs`).

pub(crate) mod agenda;
mod ahead;
mod components;
mod counts;
mod drops;
mod live;
mod look;
mod means;
mod outages;
mod parts;
mod radios;
mod show;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::hint::cold_path;
use std::ops::ControlFlow;

use anabranch_proto::wire::Spares;
use anabranch_proto::{PathId, Reason, Time};

use crate::medium::Medium;
use crate::medium::wire::{Carried, Direction, DropCause, OfferResult};
use crate::medium::wireless::{Channel, Fate};
use crate::network::RADIO;
use crate::network::radios::RadioHop;
use crate::observe::observed::Observed;
use crate::transport::{Agent, Frame, Output, Stage};
use agenda::{Agenda, Entity, Turn};
use ahead::Ahead;
pub(crate) use counts::Counts;
use means::Means;
pub(crate) use means::Sum;
pub(crate) use outages::Outage;
use outages::Outages;
pub(crate) use parts::{Change, FlowParts, Parts};
use radios::ChannelParts;

/// In [`Engine::routes`], this plus the number of an agent stands after the last link of a route.
pub(crate) const ARRIVED: u32 = 1 << 31;
/// In [`Frame::hop`]: the packet has no route and goes nowhere.
pub(crate) const NO_ROUTE: u32 = u32::MAX;
/// The number of events between two calls of the function that watches the run.
const GLANCE: u64 = 1 << 16;
/// The order at equal times: CoDel's decisions, which have the turn `FIRST`, then pauses, then changes, then waiting
/// agents by number, then parts of channels.
const PAUSE: Turn = Turn::fixed(1);
const CHANGE: Turn = Turn::fixed(2);
const FIRST_AGENT: u64 = 3;

/// A running simulation.
pub(crate) struct Engine<'a, A, M = Channel<Frame>> {
    now: Time,
    /// The latest time at which a component ended its part of a round, of all but the present component.
    latest: Time,
    agenda: Agenda,
    /// The turn of the present event.
    turn: Turn,
    ahead: Ahead,
    events: u64,
    links: Vec<Direction>,
    channels: Vec<M>,
    parts: ChannelParts,
    /// The hops between radios, by their numbers.
    radio_hops: Vec<RadioHop>,
    /// The latest fates of packets on a channel.
    fates: Vec<Fate<Frame>>,
    /// All routes in sequence. Each is a list of hops, followed by the agent at its end.
    routes: Vec<u32>,
    agents: Vec<A>,
    /// By agent: the time of its entry in the agenda, or `NEVER`.
    timers: Vec<Time>,
    flows: Vec<FlowParts>,
    /// By flow: when it was over.
    over: Vec<Time>,
    /// By agent: its flow.
    flow_of: Vec<usize>,
    /// The number of flows that the run waits for.
    unfinished: usize,
    /// Frames sent.
    sent: u64,
    /// The memory of packets, on its way from one agent to another.
    memory: Spares,
    counts: Counts,
    /// Means over time, if they are requested.
    means: Option<Means>,
    changes: std::iter::Peekable<std::vec::IntoIter<Change>>,
    /// How flows react to outages, if there are any.
    outages: Option<Box<Outages>>,
    /// When the run pauses.
    pauses: std::iter::Peekable<std::vec::IntoIter<Time>>,
    observed: Option<Observed<'a>>,
    /// Whether agents tell details as they come.
    told: bool,
    /// Whether every agent is polled after every event: a test that additional polls change nothing.
    extra_polls: bool,
}

impl<'a, A: Agent, M: Medium> Engine<'a, A, M> {
    pub(crate) fn new(parts: Parts<'a, A, M>) -> Self {
        let sides = parts.sides();
        let flow_of = sides.iter().map(|(flow, _)| *flow).collect();
        let Parts {
            links,
            channels,
            radio_hops,
            routes,
            agents,
            flows,
            changes,
            pauses,
            observer,
            batches,
            extra_polls,
        } = parts;
        let certain = show::certain(&links, &changes);
        let observed = observer.map(|observer| Observed::new(observer, sides, &routes, batches, certain));
        let others = links.len() + agents.len() + 2;
        let parts = ChannelParts::new(channels.iter().map(Medium::parts), others);
        let mut engine = Engine {
            now: Time::ZERO,
            agenda: Agenda::new(others + parts.len()),
            latest: Time::ZERO,
            turn: Turn::default(),
            ahead: Ahead::new(&routes, links.len()),
            events: 0,
            timers: vec![Time::NEVER; agents.len()],
            links,
            channels,
            parts,
            radio_hops,
            fates: Vec::new(),
            counts: Counts::new(routes.len()),
            routes,
            agents,
            unfinished: flows.iter().filter(|flow| flow.awaited).count(),
            over: vec![Time::NEVER; flows.len()],
            flows,
            flow_of,
            sent: 0,
            memory: Spares::new(),
            told: observed.is_some() && !batches || !pauses.is_empty(),
            means: (!pauses.is_empty()).then(Means::default),
            outages: changes.iter().any(|change| change.alteration.up == Some(false)).then(Box::default),
            changes: changes.into_iter().peekable(),
            pauses: pauses.into_iter().peekable(),
            observed,
            extra_polls,
        };
        engine.prepare();
        engine
    }

    /// Puts the first events into the agenda.
    fn prepare(&mut self) {
        if self.observed.is_some() {
            self.channels.iter_mut().for_each(Medium::keep_shown);
        }
        self.agenda.keep_apart(self.components());
        self.await_pause();
        self.await_change();
        (0..self.agents.len()).for_each(|agent| self.await_agent(agent, Time::ZERO));
    }

    /// Runs until the next pause, until every awaited flow is over, until no event is left, or until `stop`. `watch`
    /// is called every 65,536 events and may end the run.
    pub(crate) fn run(
        &mut self,
        stop: Time,
        watch: impl FnMut(&Self) -> ControlFlow<()>,
    ) -> Result<Halt, Interrupted> {
        match self.observed.as_ref() {
            _ if self.told || self.outages.is_some() || self.extra_polls => {
                self.run_as::<{ look::NOW }, _>(stop, watch)
            }
            None => self.run_as::<{ look::NEVER }, _>(stop, watch),
            Some(observed) if observed.looks_later() => self.run_as::<{ look::LATER }, _>(stop, watch),
            Some(_) => self.run_as::<{ look::NOW }, _>(stop, watch),
        }
    }

    /// Runs. `LOOK`: when what a packet does is looked at. It is compiled for each case, because most runs are not
    /// looked at.
    fn run_as<const LOOK: u8, W>(&mut self, stop: Time, mut watch: W) -> Result<Halt, Interrupted>
    where
        W: FnMut(&Self) -> ControlFlow<()>,
    {
        let endless = self.unfinished == 0;
        self.ahead.stop = stop;
        self.look_ahead();
        while let Some((time, turn, entity)) = self.next(stop) {
            if time < self.now {
                self.go_back(time);
            }
            (self.now, self.turn) = (time, turn);
            if entity == self.pause_entity() {
                cold_path();
                self.pauses.next();
                self.await_pause();
                return Ok(Halt::Paused);
            }
            self.happen::<LOOK>(entity as usize);
            self.events += 1;
            if self.unfinished == 0 && !endless {
                cold_path();
                self.rewind();
                break;
            }
            if self.events.is_multiple_of(GLANCE) && watch(self).is_break() {
                cold_path();
                return Err(Interrupted { at: self.reached() });
            }
        }
        if self.observed.is_some() {
            self.show_all_departures();
            self.show_kept();
        }
        self.decide_all();
        Ok(Halt::Ended)
    }

    /// Takes the next event up to `stop` out of the agenda. If there is none, the time becomes `stop`.
    #[inline(always)]
    fn next(&mut self, stop: Time) -> Option<(Time, Turn, Entity)> {
        if self.agenda.has_ended_round() {
            self.begin_round();
        }
        let next = self.agenda.pop(stop);
        if next.is_none() && self.agenda.peek().is_some() {
            self.now = stop;
        }
        next
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// The time that all components have come to.
    pub(crate) fn reached(&self) -> Time {
        self.agenda.round(self.now).unwrap_or(self.now)
    }

    /// The number of events so far: arrivals, waits of agents, changes.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn links(&self) -> &[Direction] {
        &self.links
    }

    pub(crate) fn channels(&self) -> &[M] {
        &self.channels
    }

    pub(crate) fn agents(&self) -> &[A] {
        &self.agents
    }

    /// Frames dropped and data arrived so far, by entry in the table of routes.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// By entry in the table of routes: the frames offered there so far.
    pub(crate) fn offered(&self) -> Vec<u64> {
        let mut under_way = vec![0; self.routes.len()];
        let mut count = |hop: u32| under_way[hop as usize] += 1;
        self.links.iter().flat_map(|link| link.hops(self.now)).for_each(&mut count);
        self.channels.iter().for_each(|channel| channel.each_frame(&mut |frame| count(frame.hop)));
        self.counts.offered(&self.routes, &under_way)
    }

    /// The table of routes.
    pub(crate) fn routes(&self) -> &[u32] {
        &self.routes
    }

    /// By agent and path: the integral of the congestion window over time; empty in a run without pauses.
    pub(crate) fn windows(&self) -> BTreeMap<(usize, PathId), Sum> {
        self.means.as_ref().map(|means| means.until(self.now)).unwrap_or_default()
    }

    /// How flows reacted to outages; empty if there was none.
    pub(crate) fn outages(&self) -> impl Iterator<Item = &Outage> {
        self.outages.iter().flat_map(|outages| outages.all())
    }

    /// When a flow was over; now, if it is not.
    pub(crate) fn over(&self, flow: usize) -> Time {
        self.over[flow].min(self.now)
    }

    /// A flow's agents and routes.
    pub(crate) fn flow(&self, flow: usize) -> &FlowParts {
        &self.flows[flow]
    }

    /// The agents of each flow.
    pub(crate) fn flows(&self) -> impl Iterator<Item = &[A]> {
        self.flows.iter().map(|flow| &self.agents[flow.agents.clone()])
    }

    #[inline(always)]
    fn happen<const LOOK: u8>(&mut self, entity: usize) {
        if LOOK == look::NOW {
            self.show_before(entity);
        }
        let links = self.links.len();
        if entity < links {
            self.arrive::<LOOK>(entity);
        } else if entity < links + self.agents.len() {
            self.wake::<LOOK>(entity - links);
        } else {
            match entity < links + self.agents.len() + 2 {
                true => self.change(),
                false => self.advance::<LOOK>(entity as Entity),
            }
        }
        if LOOK == look::NOW && self.extra_polls {
            cold_path();
            (0..self.agents.len()).for_each(|agent| self.drain::<LOOK>(agent));
        }
    }

    /// The first packet of a link arrives: it is offered to the next link, or given to its agent.
    #[inline(always)]
    fn arrive<const LOOK: u8>(&mut self, link: usize) {
        let direction = &mut self.links[link];
        let frame = direction.deliver(self.now, self.turn);
        let dropped = direction.has_dropped();
        if let Some((time, turn)) = direction.head() {
            self.agenda.set(link as Entity, time, turn);
        }
        if dropped {
            self.drop_all(link);
        }
        let Some(frame) = frame else { return };
        if LOOK == look::NOW {
            self.show_delivery(link, &frame);
        }
        self.pass_on::<LOOK>(frame);
    }

    /// A frame has arrived at the end of a hop: it goes to the next hop or to its agent.
    #[inline(always)]
    fn pass_on<const LOOK: u8>(&mut self, mut frame: Frame) {
        frame.hop += 1;
        let next = self.routes[frame.hop as usize];
        if next < ARRIVED {
            self.offer::<LOOK>(next, frame);
        } else {
            let agent = (next - ARRIVED) as usize;
            if frame.body.has_data() {
                self.counts.data[frame.hop as usize] += u64::from(frame.size);
            }
            self.agents[agent].handle_with(&mut self.memory, self.now, frame);
            self.drain::<LOOK>(agent);
        }
    }

    fn wake<const LOOK: u8>(&mut self, agent: usize) {
        self.timers[agent] = Time::NEVER;
        self.drain::<LOOK>(agent);
    }

    /// Polls an agent until it waits.
    fn drain<const LOOK: u8>(&mut self, agent: usize) {
        loop {
            match self.agents[agent].poll(self.now) {
                Output::Transmit(frame, reason) => {
                    self.sent += 1;
                    let mut frame = Frame { id: self.sent, ..frame };
                    if reason.oversize {
                        cold_path();
                        frame.set_fragmentable();
                    }
                    if LOOK == look::NOW {
                        self.show_sent(agent, &frame, reason);
                    }
                    if LOOK == look::NOW && self.outages.is_some() {
                        cold_path();
                        self.note_sent(agent, frame.hop, reason);
                    }
                    if frame.hop != NO_ROUTE {
                        self.counts.sent[frame.hop as usize] += 1;
                        self.offer::<LOOK>(self.routes[frame.hop as usize], frame);
                    }
                    if LOOK == look::NOW && self.told {
                        cold_path();
                        self.tell_more(agent);
                    }
                }
                Output::Detail(at, path, detail) => {
                    self.tell(agent, at, path, &detail);
                    self.tell_more(agent);
                }
                Output::Wait(until) => {
                    let until = until.unwrap_or(Time::NEVER);
                    assert!(until > self.now, "agent {agent} waits for what is due");
                    // An early entry costs one additional poll, which is cheaper than moving the entry each time.
                    if until < self.timers[agent] {
                        self.await_agent(agent, until);
                    }
                    break;
                }
            }
        }
        if LOOK != look::NEVER {
            self.show_after(agent);
        }
        if LOOK == look::NOW
            && let Some(outages) = &mut self.outages
        {
            cold_path();
            let flow = self.flow_of[agent];
            outages.look(self.now, flow, &self.agents[self.flows[flow].agents.clone()]);
        }
        if self.agents[agent].stage() == Stage::Over {
            cold_path();
            self.settle(self.flow_of[agent]);
        }
    }

    /// The sender of a flow sends a packet, which may be a reaction to an outage.
    #[cold]
    fn note_sent(&mut self, agent: usize, hop: u32, reason: Reason) {
        let flow = self.flow_of[agent];
        let agents = self.flows[flow].agents.clone();
        if let (Some(outages), true) = (&mut self.outages, agent == agents.start) {
            let read = self.agents[agents].last().map_or(0, Agent::read);
            outages.sent(self.now, flow, hop, reason.purpose, &self.routes, read);
        }
    }

    /// A flow is over when all its agents are done.
    fn settle(&mut self, flow: usize) {
        let FlowParts { agents, awaited, .. } = &self.flows[flow];
        let busy = |agent: &A| agent.stage() == Stage::Busy;
        if self.over[flow] == Time::NEVER && !self.agents[agents.clone()].iter().any(busy) {
            self.over[flow] = self.now;
            self.unfinished -= usize::from(*awaited);
        }
    }

    /// A frame is about to take a hop.
    #[inline(always)]
    fn offer<const LOOK: u8>(&mut self, hop: u32, frame: Frame) {
        match hop < RADIO {
            true => self.offer_link::<LOOK>(hop as usize, frame),
            false => self.offer_radio::<LOOK>(hop, frame),
        }
    }

    /// The number of a hop for observers.
    fn shown(&self, hop: u32) -> usize {
        match hop.checked_sub(RADIO) {
            Some(radio) => self.links.len() + radio as usize,
            None => hop as usize,
        }
    }

    #[inline(always)]
    fn offer_link<const LOOK: u8>(&mut self, link: usize, frame: Frame) {
        // On a link so fast that a transmission takes no time, a packet may have left since this event began.
        if LOOK == look::NOW {
            self.show_departures(link, self.now);
        }
        if let Some(transit) = self.links[link].accept(self.now, self.turn, frame.size) {
            return self.carry::<LOOK>(link, frame, transit);
        }
        match self.links[link].offer(self.now, frame, self.turn) {
            OfferResult::Sent(Carried { frame, transit, .. }) => self.carry::<LOOK>(link, frame, transit),
            OfferResult::Waits => {
                self.await_head(link);
                if LOOK == look::NOW {
                    self.show_queued(link);
                }
            }
            OfferResult::Dropped(cause, frame) => {
                let number = self.links[link].counters().offered;
                self.show_drop(link, number, cause, &frame);
                self.drop(frame);
            }
        }
        if self.links[link].has_dropped() {
            self.drop_all(link);
        }
    }

    /// Executes all changes of this moment at once.
    #[cold]
    fn change(&mut self) {
        let now = self.now;
        while let Some(Change { link, alteration, .. }) = self.changes.next_if(|change| change.at <= now) {
            if let (Some(outages), Some(up)) = (&mut self.outages, alteration.up) {
                outages.switch(now, link, up, &self.flows, &self.routes);
            }
            self.show_departures(link, now);
            let waited = self.links[link].queue().packets();
            let lost = self.links[link].alter(now, alteration);
            self.drop_all(link);
            for carried in lost {
                self.show_drop(link, carried.offered, DropCause::Down, &carried.frame);
                self.drop(carried.frame);
            }
            if self.links[link].queue().packets() < waited {
                self.show_emptied(link);
            }
            self.await_head(link);
        }
        self.await_change();
        self.look_ahead();
    }

    #[inline(never)]
    fn await_head(&mut self, link: usize) {
        match self.links[link].head() {
            Some((time, turn)) => self.agenda.set(link as Entity, time, turn),
            None => self.agenda.clear(link as Entity),
        }
    }

    /// Agents that wait for a time run before packets that arrive at that time, in the order of names. So it makes no
    /// difference which other agents were polled before. An agent that lets arrivals go first runs after them.
    #[inline(never)]
    fn await_agent(&mut self, agent: usize, until: Time) {
        self.timers[agent] = until;
        let number = FIRST_AGENT + agent as u64;
        let turn = match self.agents[agent].lets_arrivals_go_first() {
            true => Turn::last(number),
            false => Turn::fixed(number),
        };
        self.agenda.set((self.links.len() + agent) as Entity, until, turn);
    }

    fn await_change(&mut self) {
        let entity = (self.links.len() + self.agents.len()) as Entity;
        match self.changes.peek() {
            Some(change) => self.agenda.set(entity, change.at, CHANGE),
            None => self.agenda.clear(entity),
        }
    }

    fn await_pause(&mut self) {
        let entity = self.pause_entity();
        match self.pauses.peek() {
            Some(pause) => self.agenda.set(entity, *pause, PAUSE),
            None => self.agenda.clear(entity),
        }
    }

    fn pause_entity(&self) -> Entity {
        (self.links.len() + self.agents.len() + 1) as Entity
    }
}

/// Why a run halts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Halt {
    /// A pause; the run can go on.
    Paused,
    /// The run is over.
    Ended,
}

/// The function that watches the run ended it.
#[derive(Debug)]
pub(crate) struct Interrupted {
    pub(crate) at: Time,
}
