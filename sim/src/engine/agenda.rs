//! The agenda: the next event of each entity, ordered by (time, turn).
//!
//! A tournament: every entity has a leaf, and every node above names the entity whose event is the earliest below it. When
//! the event of an entity changes, the nodes above its leaf are decided again. That takes the same few steps whatever the
//! other events are, and leaves nothing behind, however often events are moved.
//!
//! Entities that never affect each other belong to different *components* (`components.rs`). Their events need no common
//! order. In a *round*, a span of time, all events of one component come first, then those of the next. So consecutive
//! events find what they need in the processor's cache, however many components there are.

use std::hint::select_unpredictable;

use anabranch_proto::{Duration, Time};

/// A link direction, an agent or the list of changes, by its number.
pub(crate) type Entity = u32;

/// The order of events at the same time: the smaller turn is first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Turn(u64, u64);

impl Turn {
    /// A turn before all packets, in the order of these numbers.
    pub(crate) const fn fixed(number: u64) -> Self {
        Turn(0, number)
    }

    /// A turn after all packets, in the order of these numbers.
    pub(crate) const fn last(number: u64) -> Self {
        Turn(u64::MAX, number)
    }

    /// The turn of a packet. Of several packets, the one that entered its link first comes first; among those that
    /// entered at the same time, the one that was sent first.
    pub(crate) fn packet(entered: Time, number: u64) -> Self {
        Turn(entered.as_nanos() + 1, number)
    }
}

/// The next event of every entity.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// By entity, filled up to a power of two: the turn of its event.
    turns: Vec<Turn>,
    /// Node 1 is the root, nodes 2i and 2i + 1 are below node i, and the leaves come last. Each has the first event below it: its
    /// key, which follows from its time (`NONE`: there is no event), and whose it is.
    earliest: Vec<(u64, Entity)>,
    /// The entity whose event was taken out last, as long as it may get another. Its leaf still has the old event.
    taken: Option<Entity>,
    /// By entity: the number of its component; empty if all are one.
    components: Vec<u32>,
    /// The round: events before its end are ordered by component, the others by time. Before the first round, both are 0.
    begin: Time,
    end: Time,
}

/// The longest round. In it, a component has many events, and the end of the run comes closer for all of them.
const ROUND: Duration = Duration::from_secs(1);
/// In the key of an event of the round, the component stands above this many bits, and the time since the beginning below.
const SINCE: u32 = 32;
/// The key of an event after the round is its time plus this.
const AFTER: u64 = 1 << 63;
/// The key of an entity without an event.
const NONE: u64 = u64::MAX;

impl Agenda {
    /// An agenda for entities numbered below `entities`.
    pub(crate) fn new(entities: usize) -> Self {
        let leaves = entities.next_power_of_two();
        let mut earliest: Vec<(u64, Entity)> =
            (0..2 * leaves).map(|node| (NONE, node.wrapping_sub(leaves) as Entity)).collect();
        for node in (1..leaves).rev() {
            earliest[node] = earliest[2 * node];
        }
        Agenda {
            turns: vec![Turn::default(); leaves],
            earliest,
            taken: None,
            components: Vec::new(),
            begin: Time::ZERO,
            end: Time::ZERO,
        }
    }

    /// From now on there are rounds, if `components` has the component of every entity.
    pub(crate) fn keep_apart(&mut self, components: Vec<u32>) {
        self.components = components;
    }

    /// Takes the earliest event out, if it is not after `until`: its time, its turn and whose it is.
    #[inline]
    pub(crate) fn pop(&mut self, until: Time) -> Option<(Time, Turn, Entity)> {
        let at = self.peek()?;
        if at > until {
            return None;
        }
        let (_, entity) = self.earliest[1];
        self.taken = Some(entity);
        Some((at, self.turns[entity as usize], entity))
    }

    /// The time of the earliest event, without taking it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<Time> {
        let key = self.first_key();
        (key != NONE).then(|| self.time(key))
    }

    /// Before this time, nothing else happens that can affect `entity`, whose event was taken out.
    pub(crate) fn undisturbed_until(&mut self, entity: Entity) -> Time {
        let key = self.first_key();
        match key < AFTER && key >> SINCE != u64::from(self.components[entity as usize]) {
            true => self.end,
            false => self.time(key),
        }
    }

    /// Whether there are rounds, and all components have come to the end of one.
    #[inline]
    pub(crate) fn has_ended_round(&mut self) -> bool {
        !self.components.is_empty() && self.first_key() >= AFTER
    }

    /// Begins a round at the time of the earliest event. It ends at `until` at the latest.
    pub(crate) fn begin_round(&mut self, until: Time) {
        if let Some(begin) = self.peek().filter(|begin| *begin < until) {
            self.begin = begin;
            self.end = until.min(begin + ROUND);
            self.enter(1);
        }
    }

    /// When the round began, if `now` is in it.
    pub(crate) fn round(&self, now: Time) -> Option<Time> {
        (now < self.end).then_some(self.begin)
    }

    /// Orders the events below `node` that are due in the round by component.
    fn enter(&mut self, node: usize) {
        let (key, entity) = self.earliest[node];
        let time = self.time(key);
        if time >= self.end {
            return;
        }
        if node >= self.turns.len() {
            self.earliest[node].0 = self.key(entity, time);
            return;
        }
        self.enter(2 * node);
        self.enter(2 * node + 1);
        let [left, right] = [self.earliest[2 * node], self.earliest[2 * node + 1]];
        let order = |(key, entity): (u64, Entity)| (key, self.turns[entity as usize]);
        self.earliest[node] = if order(right) < order(left) { right } else { left };
    }

    /// The key of the earliest event.
    #[inline]
    fn first_key(&mut self) -> u64 {
        if let Some(entity) = self.taken.take() {
            self.place(entity, NONE);
        }
        self.earliest[1].0
    }

    /// The key of an event of `entity` at `time`.
    #[inline]
    fn key(&self, entity: Entity, time: Time) -> u64 {
        match time < self.end {
            true => {
                u64::from(self.components[entity as usize]) << SINCE
                    | (time.as_nanos() - self.begin.as_nanos())
            }
            false => time.as_nanos().saturating_add(AFTER),
        }
    }

    /// The time of the event with this key.
    #[inline]
    fn time(&self, key: u64) -> Time {
        match key {
            NONE => Time::NEVER,
            AFTER.. => Time::from_nanos(key - AFTER),
            _ => Time::from_nanos(self.begin.as_nanos() + (key & ((1 << SINCE) - 1))),
        }
    }

    /// Sets the next event of `entity` to `time`. Among events at the same time, the smaller `turn` comes first.
    #[inline]
    pub(crate) fn set(&mut self, entity: Entity, time: Time, turn: Turn) {
        self.taken.take_if(|taken| *taken == entity);
        self.turns[entity as usize] = turn;
        self.place(entity, self.key(entity, time));
    }

    /// Removes the event of `entity`.
    pub(crate) fn clear(&mut self, entity: Entity) {
        self.taken.take_if(|taken| *taken == entity);
        if self.earliest[self.leaf(entity)].0 != NONE {
            self.place(entity, NONE);
        }
    }

    fn leaf(&self, entity: Entity) -> usize {
        self.turns.len() + entity as usize
    }

    /// Gives the leaf of `entity` this key, and decides the nodes above it again.
    fn place(&mut self, entity: Entity, key: u64) {
        let mut node = self.leaf(entity);
        let mut first = (key, entity);
        self.earliest[node] = first;
        while node > 1 {
            let beside = self.earliest[node ^ 1];
            let earlier = match beside.0 == first.0 {
                true => self.turns[beside.1 as usize] < self.turns[first.1 as usize],
                false => beside.0 < first.0,
            };
            // Which of two keys is earlier, a processor cannot guess: a branch would cost more than the rest.
            first.0 = select_unpredictable(earlier, beside.0, first.0);
            first.1 = select_unpredictable(earlier, beside.1, first.1);
            node /= 2;
            self.earliest[node] = first;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without order: SplitMix64.
    fn draw(n: u64) -> u64 {
        let n = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        n ^ n >> 31
    }

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn earliest_first_then_by_turn() {
        let mut agenda = Agenda::new(4);
        assert_eq!(agenda.pop(Time::NEVER), None);
        agenda.set(2, at(5), Turn::fixed(1));
        agenda.set(0, at(5), Turn::fixed(2));
        agenda.set(1, at(9), Turn::fixed(0));
        agenda.set(3, at(1), Turn::fixed(3));
        agenda.clear(3);
        agenda.set(1, at(2), Turn::fixed(0));
        agenda.set(1, at(9), Turn::fixed(0));
        assert_eq!(agenda.pop(at(4)), None);
        assert_eq!(agenda.pop(at(5)), Some((at(5), Turn::fixed(1), 2)));
        agenda.set(0, at(10), Turn::fixed(3));
        assert_eq!(
            [agenda.pop(Time::NEVER), agenda.pop(Time::NEVER), agenda.pop(Time::NEVER)],
            [Some((at(9), Turn::fixed(0), 1)), Some((at(10), Turn::fixed(3), 0)), None]
        );
    }

    #[test]
    fn agrees_with_a_plain_search() {
        for entities in [1, 2, 5, 33, 200] {
            let mut agenda = Agenda::new(entities);
            let mut keys = vec![None; entities];
            for n in 0..20_000u64 {
                let draw = draw(n + entities as u64);
                let entity = (draw % entities as u64) as usize;
                match draw >> 20 & 7 {
                    0 => {
                        keys[entity] = None;
                        agenda.clear(entity as Entity);
                    }
                    1..=4 => {
                        keys[entity] = Some((at(n + (draw >> 30 & 255)), n));
                        agenda.set(entity as Entity, at(n + (draw >> 30 & 255)), Turn::fixed(n));
                    }
                    _ => {
                        let earliest = (0..entities).filter_map(|e| Some((keys[e]?, e))).min();
                        assert_eq!(agenda.peek(), earliest.map(|((time, _), _)| time));
                        let event = |((time, n), e)| (time, Turn::fixed(n), e as Entity);
                        assert_eq!(agenda.pop(Time::NEVER), earliest.map(event));
                        earliest.into_iter().for_each(|(_, e)| keys[e] = None);
                    }
                }
            }
        }
    }

    #[test]
    fn a_round_goes_component_by_component_and_each_of_them_in_its_order() {
        let components = vec![0, 0, 2, 2, 4];
        let events = |rounds: bool| {
            let mut agenda = Agenda::new(5);
            agenda.keep_apart(components.clone());
            (0..5).for_each(|entity| agenda.set(entity, at(draw(entity.into()) % 1000), Turn::default()));
            let mut seen = Vec::new();
            for _ in 0..5000 {
                if rounds && agenda.has_ended_round() {
                    let until = agenda.peek().unwrap() + Duration::from_nanos(3000);
                    agenda.begin_round(until);
                }
                let (time, _, entity) = agenda.pop(Time::NEVER).unwrap();
                seen.push((time, entity));
                let later = 1 + draw(time.as_nanos() * 5 + u64::from(entity)) % 5000;
                agenda.set(entity, at(time.as_nanos() + later), Turn::default());
            }
            seen
        };
        let (global, rounds) = (events(false), events(true));
        assert!(global.is_sorted_by_key(|(time, _)| *time) && !rounds.is_sorted_by_key(|(time, _)| *time));
        for component in [0, 2, 4] {
            let of = |all: &[(Time, Entity)]| {
                all.iter()
                    .filter(|(_, e)| components[*e as usize] == component)
                    .copied()
                    .take(1000)
                    .collect::<Vec<_>>()
            };
            assert_eq!(of(&global), of(&rounds));
        }
    }
}
