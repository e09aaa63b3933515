//! The earliest of many deadlines.

use anabranch_proto::Time;

/// A deadline for each of a fixed number of entities, with the earliest of all at hand.
///
/// A binary tree: the leaves are the deadlines by number, every other node is the earlier of its two children. Setting a
/// deadline repairs the nodes above it as far as they change, and leaves nothing behind: stations set and drop deadlines
/// with every frame that they hear.
#[derive(Debug)]
pub(super) struct Deadlines {
    /// The root is node 1; node n has the children 2n and 2n + 1.
    tree: Vec<Time>,
}

impl Deadlines {
    /// For entities numbered below `entities`; none has a deadline.
    pub(super) fn new(entities: usize) -> Self {
        Deadlines { tree: vec![Time::NEVER; 2 * entities.next_power_of_two()] }
    }

    /// The earliest of all; [`Time::NEVER`] if there is none.
    pub(super) fn earliest(&self) -> Time {
        self.tree[1]
    }

    /// Takes out a deadline that is not after `now`: the earliest, of equal ones that of the lowest number. Says whose it is.
    pub(super) fn take_due(&mut self, now: Time) -> Option<usize> {
        let earliest = self.tree[1];
        if earliest > now || earliest == Time::NEVER {
            return None;
        }
        let mut node = 1;
        while node < self.leaves() {
            node = 2 * node + usize::from(self.tree[2 * node] != earliest);
        }
        let entity = node - self.leaves();
        self.set(entity, Time::NEVER);
        Some(entity)
    }

    /// The deadline of `entity` is this from now on; [`Time::NEVER`]: it has none.
    pub(super) fn set(&mut self, entity: usize, deadline: Time) {
        let mut node = self.leaves() + entity;
        self.tree[node] = deadline;
        while node > 1 {
            node /= 2;
            let earlier = self.tree[2 * node].min(self.tree[2 * node + 1]);
            if self.tree[node] == earlier {
                return;
            }
            self.tree[node] = earlier;
        }
    }

    /// The deadline of `entity`.
    pub(super) fn get(&self, entity: usize) -> Time {
        self.tree[self.leaves() + entity]
    }

    fn leaves(&self) -> usize {
        self.tree.len() / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Draws;

    #[test]
    fn agrees_with_a_plain_search() {
        let mut draws = Draws::new(3, "deadlines");
        for entities in [1, 2, 5, 33, 200] {
            let mut deadlines = Deadlines::new(entities);
            let mut plain = vec![Time::NEVER; entities];
            for n in 0..5000u64 {
                let draw = draws.nth(n);
                let entity = (draw % entities as u64) as usize;
                let at = Time::from_nanos(n / 8 + (draw >> 30 & 31));
                if draw >> 20 & 3 > 0 {
                    plain[entity] = if draw >> 22 & 3 > 0 { at } else { Time::NEVER };
                    deadlines.set(entity, plain[entity]);
                    assert_eq!(deadlines.get(entity), plain[entity]);
                    continue;
                }
                let earliest = *plain.iter().min().expect("there are some");
                assert_eq!(deadlines.earliest(), earliest);
                let due = plain.iter().position(|time| *time == earliest && earliest <= at);
                let due = due.filter(|_| earliest != Time::NEVER);
                assert_eq!(deadlines.take_due(at), due);
                due.into_iter().for_each(|entity| plain[entity] = Time::NEVER);
            }
        }
    }
}
