//! The agenda: the next event of each entity, ordered by (time, turn).
//!
//! Most events are scheduled for the near future. So the next few entries stand in order in a short row: the earliest
//! is taken from its end, and a new entry finds its place after a few steps. All other entries wait in a heap. In a
//! small network no entry ever leaves the row, which costs a third of a heap.
//!
//! When the time of an entity changes, it gets a new entry. The old entry is skipped when it is reached.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

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
    /// By entity: how many entries it has had. Only the last of them counts.
    births: Vec<u32>,
    /// The entries before the horizon, the latest first.
    near: Vec<Entry>,
    /// The entries after the horizon.
    far: BinaryHeap<Reverse<Entry>>,
    horizon: (u128, u64),
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Entry {
    /// The time, and the greater part of the turn.
    time: u128,
    /// The rest of the turn.
    number: u64,
    entity: Entity,
    birth: u32,
}

impl Entry {
    fn key(&self) -> (u128, u64) {
        (self.time, self.number)
    }

    fn at(&self) -> Time {
        Time::from_nanos((self.time >> 64) as u64)
    }

    fn turn(&self) -> Turn {
        Turn(self.time as u64, self.number)
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }

    // The heap asks these two. Most times differ, so that one comparison decides.
    #[inline]
    fn lt(&self, other: &Self) -> bool {
        match self.time == other.time {
            true => (self.number, self.entity) < (other.number, other.entity),
            false => self.time < other.time,
        }
    }

    #[inline]
    fn le(&self, other: &Self) -> bool {
        match self.time == other.time {
            true => (self.number, self.entity) <= (other.number, other.entity),
            false => self.time < other.time,
        }
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.key(), self.entity).cmp(&(other.key(), other.entity))
    }
}

/// A key greater than all others.
const ENDLESS: (u128, u64) = (u128::MAX, u64::MAX);
/// The heap holds at most so many entries per entity, stale ones included.
const MOST_STALE: usize = 4;
/// The largest length of the row.
const ROW: usize = 32;

impl Agenda {
    /// An agenda for entities numbered below `entities`.
    pub(crate) fn new(entities: usize) -> Self {
        Agenda {
            births: vec![0; entities],
            near: Vec::with_capacity(ROW + 1),
            far: BinaryHeap::new(),
            horizon: ENDLESS,
        }
    }

    /// Takes the earliest event out, if it is not after `until`: its time, its turn and whose it is.
    #[inline]
    pub(crate) fn pop(&mut self, until: Time) -> Option<(Time, Turn, Entity)> {
        loop {
            let Some(&entry) = self.near.last() else {
                self.look_further()?;
                continue;
            };
            let counts = self.counts(&entry);
            if counts && entry.at() > until {
                return None;
            }
            self.near.pop();
            if counts {
                return Some((entry.at(), entry.turn(), entry.entity));
            }
        }
    }

    fn counts(&self, entry: &Entry) -> bool {
        self.births[entry.entity as usize] == entry.birth
    }

    /// The time of the earliest event, without taking it.
    pub(crate) fn peek(&mut self) -> Option<Time> {
        loop {
            let Some(&entry) = self.near.last() else {
                self.look_further()?;
                continue;
            };
            if self.counts(&entry) {
                return Some(entry.at());
            }
            self.near.pop();
        }
    }

    /// Sets the next event of `entity` to `time`. Among events at the same time, the smaller `turn` comes first.
    pub(crate) fn set(&mut self, entity: Entity, time: Time, turn: Turn) {
        self.clear(entity);
        let (birth, Turn(entered, number)) = (self.births[entity as usize], turn);
        let time = u128::from(time.as_nanos()) << 64 | u128::from(entered);
        let entry = Entry { time, number, entity, birth };
        let key = entry.key();
        if key >= self.horizon {
            self.far.push(Reverse(entry));
            if self.far.len() > MOST_STALE * self.births.len().max(ROW) {
                self.forget_stale();
            }
            return;
        }
        let mut place = self.near.len();
        self.near.push(entry);
        while let Some(earlier) = place.checked_sub(1).map(|before| self.near[before])
            && earlier.key() < key
        {
            self.near[place] = earlier;
            place -= 1;
        }
        self.near[place] = entry;
        if self.near.len() > ROW {
            self.shorten();
        }
    }

    /// Removes the event of `entity`.
    pub(crate) fn clear(&mut self, entity: Entity) {
        let birth = &mut self.births[entity as usize];
        *birth = birth.wrapping_add(1);
    }

    /// Refills the empty row with the earliest entries of the heap. Returns `None` if there are none.
    #[cold]
    fn look_further(&mut self) -> Option<()> {
        self.horizon = ENDLESS;
        self.far.peek()?;
        while self.near.len() < ROW / 2
            && let Some(Reverse(entry)) = self.far.pop()
        {
            self.near.push(entry);
        }
        self.near.reverse();
        self.horizon = self.far.peek().map_or(ENDLESS, |Reverse(entry)| entry.key());
        Some(())
    }

    /// Most entries of the heap may be stale, because their entities got new ones. Removes the stale entries, so that
    /// the heap stays bounded.
    #[cold]
    fn forget_stale(&mut self) {
        let births = &self.births;
        self.far.retain(|Reverse(entry)| births[entry.entity as usize] == entry.birth);
    }

    /// The row is too long: moves its later half to the heap.
    #[cold]
    fn shorten(&mut self) {
        let later = self.near.drain(..ROW / 2);
        self.horizon = later.as_slice().last().map_or(ENDLESS, |entry| entry.key());
        self.far.extend(later.map(Reverse));
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

    /// 10,000 stations, each of which moves its timer a hundred times before it expires.
    fn cancel_all_the_time() -> (usize, u64) {
        let mut agenda = Agenda::new(10_000);
        let (mut most, mut happened) = (0, 0);
        for n in 0..1_000_000u64 {
            let draw = draw(n);
            agenda.set((draw % 10_000) as Entity, at(n + 1_000_000 + (draw >> 40)), Turn::fixed(n));
            most = most.max(agenda.far.len());
            happened += u64::from(n.is_multiple_of(100) && agenda.pop(Time::NEVER).is_some());
        }
        (most, happened)
    }

    #[test]
    fn cancelled_events_do_not_pile_up() {
        let (most, happened) = cancel_all_the_time();
        assert!(most <= 40_001 && happened == 10_000, "{most} entries, {happened} events");
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
