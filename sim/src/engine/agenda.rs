//! The agenda: the next event of each entity, ordered by (time, turn).
//!
//! A tournament: every entity has a leaf, and every node above names the entity whose event is the earliest below it. When
//! the event of an entity changes, the nodes above its leaf are decided again. That takes the same few steps whatever the
//! other events are, and leaves nothing behind, however often events are moved.

use std::hint::select_unpredictable;

use anabranch_proto::Time;

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
    /// Node 1 is the root, nodes 2i and 2i + 1 are below node i, and the leaves come last. Each has the earliest event below
    /// it: when it happens (`NEVER`: there is none), and whose it is.
    earliest: Vec<(Time, Entity)>,
    /// The entity whose event was taken out last, as long as it may get another. Its leaf still has the old event.
    taken: Option<Entity>,
}

impl Agenda {
    /// An agenda for entities numbered below `entities`.
    pub(crate) fn new(entities: usize) -> Self {
        let leaves = entities.next_power_of_two();
        let mut earliest: Vec<(Time, Entity)> =
            (0..2 * leaves).map(|node| (Time::NEVER, node.wrapping_sub(leaves) as Entity)).collect();
        for node in (1..leaves).rev() {
            earliest[node] = earliest[2 * node];
        }
        Agenda { turns: vec![Turn::default(); leaves], earliest, taken: None }
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
        if let Some(entity) = self.taken.take() {
            self.place(entity, Time::NEVER);
        }
        let (at, _) = self.earliest[1];
        (at != Time::NEVER).then_some(at)
    }

    /// Sets the next event of `entity` to `time`. Among events at the same time, the smaller `turn` comes first.
    #[inline]
    pub(crate) fn set(&mut self, entity: Entity, time: Time, turn: Turn) {
        self.taken.take_if(|taken| *taken == entity);
        self.turns[entity as usize] = turn;
        self.place(entity, time);
    }

    /// Removes the event of `entity`.
    pub(crate) fn clear(&mut self, entity: Entity) {
        self.taken.take_if(|taken| *taken == entity);
        if self.earliest[self.leaf(entity)].0 != Time::NEVER {
            self.place(entity, Time::NEVER);
        }
    }

    fn leaf(&self, entity: Entity) -> usize {
        self.turns.len() + entity as usize
    }

    /// Gives the leaf of `entity` this time, and decides the nodes above it again.
    fn place(&mut self, entity: Entity, time: Time) {
        let mut node = self.leaf(entity);
        let mut first = (time, entity);
        self.earliest[node] = first;
        while node > 1 {
            let beside = self.earliest[node ^ 1];
            let earlier = match beside.0 == first.0 {
                true => self.turns[beside.1 as usize] < self.turns[first.1 as usize],
                false => beside.0 < first.0,
            };
            // Which of two times is earlier, a processor cannot guess: a branch would cost more than the rest.
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
}
