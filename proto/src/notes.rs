//! Optional details of what an endpoint does. While they are off, they cost one branch.

use std::collections::VecDeque;

use crate::output::{Note, NoteKind};
use crate::{AssociationId, Time};

#[derive(Clone, Debug)]
pub(crate) struct Notes {
    association: AssociationId,
    on: bool,
    queue: VecDeque<Note>,
}

impl Notes {
    pub(crate) fn new(association: AssociationId, on: bool) -> Self {
        Notes { association, on, queue: VecDeque::new() }
    }

    pub(crate) fn switch(&mut self, on: bool) {
        self.on = on;
    }

    pub(crate) fn add(&mut self, at: Time, kind: impl FnOnce() -> NoteKind) {
        if self.on {
            self.queue.push_back(Note { association: self.association, at, kind: kind() });
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Note> {
        self.queue.pop_front()
    }
}
