//! Components: entities that never affect each other, such as the chains of radios that do not hear each other and the
//! flows along them. Their events need no common order, so in each round the agenda hands out those of one component,
//! then those of the next.
//!
//! The results stay the same. Random streams, queues and counters belong to a link, a station or an agent, and within a
//! component the order of events is as before. A round ends before all components must be at the same time: at a
//! change, at a pause and at the end of the run. There are no rounds if an observer looks, or if the run may end with a
//! flow.

use anabranch_proto::Time;

use super::agenda::Entity;
use super::{ARRIVED, Engine, RADIO};
use crate::medium::Medium;
use crate::transport::Agent;

impl<A: Agent, M: Medium> Engine<'_, A, M> {
    /// By entity: the number of its component, which is the number of its first entity. Empty if all agents are in one,
    /// or if events need one order.
    pub(super) fn components(&self) -> Vec<u32> {
        if self.unfinished > 0 || self.observed.is_some() || self.extra_polls {
            return Vec::new();
        }
        let links = self.links.len();
        let agent_entity = |agent: usize| (links + agent) as Entity;
        let mut components = Components::new(links + self.agents.len() + 2 + self.parts.len());
        for flow in &self.flows {
            flow.agents.clone().for_each(|agent| {
                components.join(agent_entity(flow.agents.start), agent_entity(agent));
            });
        }
        for route in self.routes.split_inclusive(|hop| *hop >= ARRIVED) {
            let [hops @ .., end] = route else { continue };
            for hop in hops {
                let entity = if *hop < RADIO { *hop } else { self.part_of(*hop) };
                components.join(agent_entity((end - ARRIVED) as usize), entity);
            }
        }
        let all = components.numbers();
        let agents = &all[links..links + self.agents.len()];
        if agents.iter().any(|component| *component != agents[0]) { all } else { Vec::new() }
    }

    /// The next component begins its part of the round, at a time before the latest event of the one before.
    #[cold]
    pub(super) fn go_back(&mut self, time: Time) {
        assert!(self.agenda.round(self.now).is_some(), "time went back from {:?} to {time:?}", self.now);
        self.latest = self.latest.max(self.now);
    }

    /// All components have come to the end of a round. The next one ends before the next change, pause or the end of
    /// the run.
    #[cold]
    pub(super) fn begin_round(&mut self) {
        self.latest = self.latest.max(self.now);
        self.now = self.latest;
        self.agenda.begin_round(self.ahead.until);
    }
}

/// Sets of entities, each a tree with its lowest number at the root.
struct Components {
    above: Vec<Entity>,
}

impl Components {
    fn new(entities: usize) -> Self {
        Components { above: (0..entities as Entity).collect() }
    }

    fn root(&mut self, entity: Entity) -> Entity {
        let mut at = entity as usize;
        while self.above[at] as usize != at {
            self.above[at] = self.above[self.above[at] as usize];
            at = self.above[at] as usize;
        }
        at as Entity
    }

    fn join(&mut self, one: Entity, other: Entity) {
        let (one, other) = (self.root(one), self.root(other));
        self.above[one.max(other) as usize] = one.min(other);
    }

    fn numbers(mut self) -> Vec<u32> {
        (0..self.above.len() as Entity).map(|entity| self.root(entity)).collect()
    }
}
