//! The earliest of many deadlines.

use anabranch_proto::Time;

/// A deadline for each of a fixed number of entities, with quick access to the earliest.
///
/// It is a tree whose nodes have eight children. The lowest level holds the deadlines by entity number. Each entry
/// above is the earliest of the row of eight entries below it. Setting a deadline updates the entries above it only as
/// far as they change, and leaves no stale entries. That matters because stations set and cancel deadlines with every
/// frame that they hear.
#[derive(Debug)]
pub(super) struct Deadlines {
    /// The levels from the lowest to the highest, which has one row.
    levels: Vec<Vec<[Time; WIDTH]>>,
    earliest: Time,
}

/// Times in a row: one cache line.
const WIDTH: usize = 8;

impl Deadlines {
    /// Deadlines for entities with numbers below `entities`, none of them set.
    pub(super) fn new(entities: usize) -> Self {
        let mut levels = Vec::new();
        let mut rows = entities.max(1);
        while levels.is_empty() || rows > 1 {
            rows = rows.div_ceil(WIDTH);
            levels.push(vec![[Time::NEVER; WIDTH]; rows]);
        }
        Deadlines { levels, earliest: Time::NEVER }
    }

    /// The earliest deadline; [`Time::NEVER`] if none is set.
    pub(super) fn earliest(&self) -> Time {
        self.earliest
    }

    /// The entity with the earliest deadline, if that is not after `now`. Among equal deadlines it is the lowest
    /// number. The deadline remains until it is set again.
    pub(super) fn due(&self, now: Time) -> Option<usize> {
        if self.earliest > now || self.earliest == Time::NEVER {
            return None;
        }
        self.levels.iter().rev().try_fold(0, |row, level| {
            let place = level[row].iter().position(|time| *time == self.earliest)?;
            Some(WIDTH * row + place)
        })
    }

    /// Sets the deadline of `entity`; [`Time::NEVER`] cancels it.
    pub(super) fn set(&mut self, entity: usize, deadline: Time) {
        let (mut place, mut new) = (entity, deadline);
        for level in 0..self.levels.len() {
            let row = place / WIDTH;
            let old = std::mem::replace(&mut self.levels[level][row][place % WIDTH], new);
            if old == new {
                return;
            }
            // What stands above is the earliest of the row as it was.
            let above = self.levels.get(level + 1).map(|above| above[row / WIDTH][row % WIDTH]);
            let earliest = above.unwrap_or(self.earliest);
            if new >= earliest {
                if old != earliest {
                    return;
                }
                new = self.levels[level][row].iter().copied().fold(Time::NEVER, Time::min);
            }
            place = row;
        }
        self.earliest = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Draws;

    #[test]
    fn agrees_with_a_plain_search() {
        let mut draws = Draws::new(3, "deadlines");
        for entities in [1, 2, 8, 9, 33, 64, 65, 600] {
            let mut deadlines = Deadlines::new(entities);
            let mut plain = vec![Time::NEVER; entities];
            for n in 0..5000u64 {
                let draw = draws.nth(n);
                let entity = (draw % entities as u64) as usize;
                let at = Time::from_nanos(n / 8 + (draw >> 30 & 31));
                if draw >> 20 & 3 > 0 {
                    plain[entity] = if draw >> 22 & 3 > 0 { at } else { Time::NEVER };
                    deadlines.set(entity, plain[entity]);
                    continue;
                }
                let earliest = *plain.iter().min().expect("there are some");
                assert_eq!(deadlines.earliest(), earliest);
                let due = plain.iter().position(|time| *time == earliest && earliest <= at);
                let due = due.filter(|_| earliest != Time::NEVER);
                assert_eq!(deadlines.due(at), due);
                if let Some(entity) = due {
                    plain[entity] = Time::NEVER;
                    deadlines.set(entity, Time::NEVER);
                }
            }
        }
    }
}
