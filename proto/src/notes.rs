//! Details of what goes on, kept only while someone asks for them: off is one branch.

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

    /// What `make` says, while notes are recorded.
    pub(crate) fn if_on<T>(&self, make: impl FnOnce() -> Option<T>) -> Option<T> {
        if self.on { make() } else { None }
    }

    pub(crate) fn pop(&mut self) -> Option<Note> {
        self.queue.pop_front()
    }
}
