//! What happens next: one entry an entity, keyed (time, insertion number).
//!
//! A tournament over the entities: its leaves are their keys, every inner node holds the earlier of two, the
//! root the earliest of all. A change plays again the games on the way to the root: always as many, so that the
//! processor foresees the way. There is nothing to allocate, and no entry ever goes stale.

use anabranch_proto::Time;

/// A link direction, an agent or the list of changes, by its number.
pub(crate) type Entity = u32;

/// The next event of every entity.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// By entity: time in the upper half, insertion number in the lower.
    keys: Vec<u128>,
    /// Node 1 is the root, the children of node n are 2n and 2n + 1, the leaf of entity e is `leaves` + e.
    winners: Vec<Entity>,
    leaves: usize,
}

const NEVER: u128 = u128::MAX;

impl Agenda {
    /// For entities numbered below `entities`.
    pub(crate) fn new(entities: usize) -> Self {
        let leaves = entities.next_power_of_two();
        let mut winners: Vec<Entity> =
            (0..2 * leaves).map(|node| node.saturating_sub(leaves) as Entity).collect();
        for node in (1..leaves).rev() {
            winners[node] = winners[2 * node];
        }
        Agenda { keys: vec![NEVER; leaves], winners, leaves }
    }

    /// The earliest event: its time and whose it is.
    pub(crate) fn first(&self) -> Option<(Time, Entity)> {
        let entity = self.winners[1];
        match self.keys[entity as usize] {
            NEVER => None,
            key => Some((Time::from_nanos((key >> 64) as u64), entity)),
        }
    }

    /// The next event of `entity` is at `time`; among equal times the smaller `number` is first.
    pub(crate) fn set(&mut self, entity: Entity, time: Time, number: u64) {
        self.put(entity, u128::from(time.as_nanos()) << 64 | u128::from(number));
    }

    /// `entity` has no event.
    pub(crate) fn clear(&mut self, entity: Entity) {
        self.put(entity, NEVER);
    }

    fn put(&mut self, entity: Entity, key: u128) {
        self.keys[entity as usize] = key;
        let (mut winner, mut best) = (entity, key);
        let mut node = self.leaves + entity as usize;
        while node > 1 {
            let rival = self.winners[node ^ 1];
            let other = self.keys[rival as usize];
            (winner, best) = if other < best { (rival, other) } else { (winner, best) };
            node /= 2;
            self.winners[node] = winner;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Draws;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn earliest_first_then_by_insertion_number() {
        let mut agenda = Agenda::new(3);
        assert_eq!(agenda.first(), None);
        agenda.set(2, at(5), 1);
        agenda.set(0, at(5), 2);
        agenda.set(1, at(9), 0);
        assert_eq!(agenda.first(), Some((at(5), 2)));
        agenda.clear(2);
        assert_eq!(agenda.first(), Some((at(5), 0)));
        agenda.set(0, at(10), 3);
        assert_eq!(agenda.first(), Some((at(9), 1)));
    }

    #[test]
    fn agrees_with_a_plain_search() {
        let mut draws = Draws::new(3, "agenda");
        for entities in [1, 2, 5, 16, 33] {
            let mut agenda = Agenda::new(entities);
            let mut keys = vec![None; entities];
            for n in 0..2000u64 {
                let draw = draws.nth(n);
                let entity = (draw % entities as u64) as usize;
                keys[entity] = (draw >> 20 & 3 > 0).then_some((at(draw >> 30 & 15), n));
                match keys[entity] {
                    Some((time, number)) => agenda.set(entity as Entity, time, number),
                    None => agenda.clear(entity as Entity),
                }
                let earliest = (0..entities).filter_map(|e| keys[e].map(|key| (key, e as Entity))).min();
                assert_eq!(agenda.first(), earliest.map(|((time, _), e)| (time, e)));
            }
        }
    }
}
