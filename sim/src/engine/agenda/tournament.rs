//! A tournament of events: every entity has a leaf, and every node above names the entity whose event is the earliest
//! below it. When the event of an entity changes, the nodes above its leaf are decided again. That takes the same few
//! steps whatever the other events are, and leaves nothing behind, however often events are moved. An entity gets its
//! leaf with its first event here.

use std::hint::select_unpredictable;

use super::{Entity, Event, NONE, Turn};

/// The earliest of many events.
#[derive(Debug)]
pub(super) struct Tournament {
    /// By entity: the number of its leaf; or `NO_LEAF`.
    leaves: Vec<u32>,
    /// The number of entities that have leaves.
    placed: u32,
    /// Node 1 is the root, nodes 2i and 2i + 1 are below node i, and the leaves come last, as many as a power of two.
    /// Each has the first event below it; its key is `NONE` if there is no event.
    earliest: Vec<Event>,
}

/// The entity has had no event here.
const NO_LEAF: u32 = u32::MAX;

const EMPTY: Event = Event { key: NONE, entity: 0 };

impl Tournament {
    /// A tournament for entities numbered below `entities`.
    pub(super) fn new(entities: usize) -> Self {
        Tournament { leaves: vec![NO_LEAF; entities], placed: 0, earliest: vec![EMPTY; 2] }
    }

    /// The earliest event. Its key is `NONE` if there is none.
    #[inline]
    pub(super) fn first(&self) -> Event {
        self.earliest[1]
    }

    /// Gives the event of `entity` this key, `NONE` if it has none any more. `turn` tells the turn of an entity's
    /// event: it decides between equal keys.
    #[inline(never)]
    pub(super) fn place(&mut self, entity: Entity, key: u64, turn: impl Fn(Entity) -> Turn) {
        if self.leaves[entity as usize] == NO_LEAF {
            self.give_leaf(entity, &turn);
        }
        let mut node = self.width() + self.leaves[entity as usize] as usize;
        let mut first = Event { key, entity };
        self.earliest[node] = first;
        while node > 1 {
            let beside = self.earliest[node ^ 1];
            let earlier = match beside.key == first.key {
                true => first.key != NONE && turn(beside.entity) < turn(first.entity),
                false => beside.key < first.key,
            };
            // Which of two keys is earlier, a processor cannot guess: a branch would cost more than the rest.
            first.key = select_unpredictable(earlier, beside.key, first.key);
            first.entity = select_unpredictable(earlier, beside.entity, first.entity);
            node /= 2;
            self.earliest[node] = first;
        }
    }

    /// The number of leaves.
    fn width(&self) -> usize {
        self.earliest.len() / 2
    }

    /// The next leaf is that of `entity`. If all are taken, there are twice as many from now on.
    #[cold]
    fn give_leaf(&mut self, entity: Entity, turn: &impl Fn(Entity) -> Turn) {
        let width = self.width();
        if self.placed as usize == width {
            let leaves = self.earliest.split_off(width);
            self.earliest.resize(2 * width, EMPTY);
            self.earliest.extend(leaves);
            self.earliest.resize(4 * width, EMPTY);
            (1..2 * width).rev().for_each(|node| self.decide(node, turn));
        }
        self.leaves[entity as usize] = self.placed;
        self.placed += 1;
    }

    /// Finds the first event below a node that is no leaf.
    fn decide(&mut self, node: usize, turn: &impl Fn(Entity) -> Turn) {
        let [left, right] = [self.earliest[2 * node], self.earliest[2 * node + 1]];
        let order = |event: Event| (event.key, turn(event.entity));
        self.earliest[node] = if order(right) < order(left) { right } else { left };
    }
}
