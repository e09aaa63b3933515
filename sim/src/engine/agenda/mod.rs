//! The agenda: the next event of each entity, ordered by (time, turn).
//!
//! Events that come soon wait in the *front*, a short sorted list: most events are taken out of it and put into it,
//! which moves a few entries. The others wait in a tournament (`tournament.rs`), and move to the front when it is
//! empty. The *horizon* is between both: every event before it is in the front, every other one in the tournament.
//!
//! Entities that never affect each other belong to different *components* (`components.rs`). Their events need no
//! common order. In a *round*, a span of time, all events of one component come first, then those of the next. So
//! consecutive events find what they need in the processor's cache, however many components there are.

mod tournament;

use anabranch_proto::{Duration, Time};

use tournament::Tournament;

/// A link direction, an agent, the list of changes, the list of pauses or a part of a channel, by its number.
pub(crate) type Entity = u32;

/// The order of events at the same time: the smaller turn is first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Turn(u64, u64);

impl Turn {
    /// The turn before all others.
    pub(crate) const FIRST: Turn = Turn(0, 0);

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
    /// By entity: where its event waits, and the turn of the event.
    waiting: Vec<(Place, Turn)>,
    /// The events before the horizon, the earliest last.
    front: Vec<Event>,
    /// The events from the horizon on.
    back: Tournament,
    horizon: (u64, Turn),
    /// How far the horizon is moved beyond the earliest event when the front is empty, as a difference of keys.
    span: u64,
    /// By entity: the number of its component; empty if all are one.
    components: Vec<u32>,
    /// The round: events before its end are ordered by component, the others by time. Before the first round, both are
    /// 0.
    begin: Time,
    end: Time,
}

/// Where the event of an entity waits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Place {
    /// It has none.
    Nowhere,
    Front,
    Back,
}

/// An event: its key, which follows from its time, and whose it is.
#[derive(Copy, Clone, Debug)]
struct Event {
    key: u64,
    entity: Entity,
}

/// The longest front. Half of it moves at once.
const LONGEST: usize = 128;
/// So many events are searched from the end of the front, further ones by halves.
const SHORT: usize = 16;
/// The longest round. In it, a component has many events, and the end of the run comes closer for all of them.
const ROUND: Duration = Duration::from_secs(1);
/// In the key of an event of the round, the component stands above this many bits, and the time since the beginning
/// below.
const SINCE: u32 = 32;
/// The key of an event after the round is its time plus this.
const AFTER: u64 = 1 << 63;
/// The key of an entity without an event.
const NONE: u64 = u64::MAX;
/// The largest span: one more doubling must not overflow.
const WIDEST: u64 = 1 << 60;

impl Agenda {
    /// An agenda for entities numbered below `entities`.
    pub(crate) fn new(entities: usize) -> Self {
        Agenda {
            waiting: vec![(Place::Nowhere, Turn::default()); entities],
            front: Vec::with_capacity(LONGEST + 1),
            back: Tournament::new(entities),
            horizon: (0, Turn::default()),
            span: 1,
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
        let Event { entity, .. } = self.front.pop()?;
        let (place, turn) = &mut self.waiting[entity as usize];
        *place = Place::Nowhere;
        Some((at, *turn, entity))
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
        let Some(begin) = self.peek().filter(|begin| *begin < until) else { return };
        let end = until.min(begin + ROUND);
        let mut due = Vec::new();
        while let Some(at) = self.peek().filter(|at| *at < end) {
            due.extend(self.front.pop().map(|event| (event.entity, at)));
        }
        // The keys of the round are before all others.
        self.send_back(self.front.len());
        (self.begin, self.end, self.horizon) = (begin, end, (0, Turn::default()));
        for (entity, at) in due {
            self.wait_behind(entity, self.key(entity, at));
        }
    }

    /// When the round began, if `now` is in it.
    pub(crate) fn round(&self, now: Time) -> Option<Time> {
        (now < self.end).then_some(self.begin)
    }

    /// The key of the earliest event, which is in the front.
    #[inline]
    fn first_key(&mut self) -> u64 {
        match self.front.last() {
            Some(event) => event.key,
            None => self.refill(),
        }
    }

    /// Moves the horizon, and the events before it from the tournament to the empty front. Returns the key of the
    /// earliest.
    #[inline(never)]
    fn refill(&mut self) -> u64 {
        let first = self.back.first().key;
        if first == NONE {
            return NONE;
        }
        self.horizon = (first.saturating_add(self.span), Turn::default());
        while let Event { key, entity } = self.back.first()
            && (key, self.turn(entity)) < self.horizon
        {
            if self.front.len() == LONGEST / 2 {
                self.horizon = (key, self.turn(entity));
                break;
            }
            self.leave_back(entity);
            self.waiting[entity as usize].0 = Place::Front;
            self.front.push(Event { key, entity });
        }
        self.front.reverse();
        if self.front.len() < LONGEST / 8 {
            self.span = WIDEST.min(self.span * 2);
        }
        first
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

    fn turn(&self, entity: Entity) -> Turn {
        self.waiting[entity as usize].1
    }

    /// Sets the next event of `entity` to `time`. Among events at the same time, the smaller `turn` comes first.
    #[inline(always)]
    pub(crate) fn set(&mut self, entity: Entity, time: Time, turn: Turn) {
        let key = self.key(entity, time);
        let soon = (key, turn) < self.horizon;
        let before = std::mem::replace(&mut self.waiting[entity as usize], (Place::Front, turn));
        match before.0 {
            Place::Front => self.leave_front(entity),
            Place::Back if soon => self.leave_back(entity),
            _ => {}
        }
        match soon {
            true => self.wait_in_front(Event { key, entity }, turn),
            false => self.wait_behind(entity, key),
        }
    }

    /// Removes the event of `entity`.
    pub(crate) fn clear(&mut self, entity: Entity) {
        match self.waiting[entity as usize].0 {
            Place::Nowhere => {}
            Place::Front => self.leave_front(entity),
            Place::Back => self.leave_back(entity),
        }
        self.waiting[entity as usize].0 = Place::Nowhere;
    }

    fn leave_front(&mut self, entity: Entity) {
        if let Some(at) = self.front.iter().rposition(|event| event.entity == entity) {
            self.front.remove(at);
        }
    }

    fn leave_back(&mut self, entity: Entity) {
        self.back.place(entity, NONE, |entity| self.waiting[entity as usize].1);
    }

    /// Puts an event with this turn into the front.
    #[inline(always)]
    fn wait_in_front(&mut self, event: Event, turn: Turn) {
        let own = (event.key, turn);
        let at = match self.front.len() {
            ..=SHORT => self.behind_later(own, 0),
            _ => self.place_in_long_front(own),
        };
        self.front.insert(at, event);
        if self.front.len() > LONGEST {
            self.span = (self.span / 2).max(1);
            self.send_back(LONGEST / 2);
        }
    }

    /// Where an event of this key and turn belongs in a front of more than `SHORT` events. Most are among the next
    /// ones.
    #[inline(never)]
    fn place_in_long_front(&self, own: (u64, Turn)) -> usize {
        let near = self.front.len() - SHORT;
        match self.is_later(&self.front[near], own) {
            true => self.behind_later(own, near),
            false => self.front[..near].partition_point(|other| self.is_later(other, own)),
        }
    }

    /// The place behind the last event, from the place `first` on, that is later than this key and turn.
    #[inline(always)]
    fn behind_later(&self, own: (u64, Turn), first: usize) -> usize {
        let last = self.front[first..].iter().rposition(|other| self.is_later(other, own));
        last.map_or(first, |last| first + last + 1)
    }

    #[inline(always)]
    fn is_later(&self, event: &Event, own: (u64, Turn)) -> bool {
        event.key > own.0 || event.key == own.0 && self.turn(event.entity) > own.1
    }

    /// Moves the latest events of the front to the tournament, and the horizon before them.
    #[cold]
    fn send_back(&mut self, count: usize) {
        let latest: Vec<Event> = self.front.drain(..count).collect();
        if let Some(Event { key, entity }) = latest.last() {
            self.horizon = (*key, self.turn(*entity));
        }
        for Event { key, entity } in latest {
            self.wait_behind(entity, key);
        }
    }

    /// Puts an event into the tournament.
    fn wait_behind(&mut self, entity: Entity, key: u64) {
        self.waiting[entity as usize].0 = if key == NONE { Place::Nowhere } else { Place::Back };
        self.back.place(entity, key, |entity| self.waiting[entity as usize].1);
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
