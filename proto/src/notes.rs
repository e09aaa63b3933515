//! Optional details of what an endpoint does. While they are off, they cost one branch.

use std::collections::VecDeque;

use crate::output::{Note, NoteKind};
use crate::{AssociationId, PathId, Time};

#[derive(Clone, Debug)]
pub(crate) struct Notes {
    association: AssociationId,
    on: bool,
    queue: VecDeque<Note>,
    /// By path: when T3-rtx expires, as last reported.
    timers: Vec<Time>,
}

impl Notes {
    pub(crate) fn new(association: AssociationId, on: bool) -> Self {
        Notes { association, on, queue: VecDeque::new(), timers: Vec::new() }
    }

    pub(crate) fn switch(&mut self, on: bool) {
        self.on = on;
    }

    pub(crate) fn add(&mut self, at: Time, kind: impl FnOnce() -> NoteKind) {
        if self.on {
            self.queue.push_back(Note { association: self.association, at, kind: kind() });
        }
    }

    /// The result of `make`, if notes are recorded.
    pub(crate) fn if_on<T>(&self, make: impl FnOnce() -> Option<T>) -> Option<T> {
        if self.on { make() } else { None }
    }

    /// Reports every T3-rtx that was started, restarted or stopped since the last call. `timers`: when that of each path expires.
    pub(crate) fn add_timers(&mut self, at: Time, timers: impl Iterator<Item = (PathId, Time)>) {
        if !self.on {
            return;
        }
        for (path, expires) in timers {
            let index = path.index();
            if self.timers.len() <= index {
                self.timers.resize(index + 1, Time::NEVER);
            }
            if self.timers[index] != expires {
                self.timers[index] = expires;
                let expires = (expires != Time::NEVER).then_some(expires);
                self.add(at, || NoteKind::Timer { path, expires });
            }
        }
    }

    /// Whether nothing is recorded and nothing is left.
    pub(crate) fn is_silent(&self) -> bool {
        !self.on && self.queue.is_empty()
    }

    pub(crate) fn pop(&mut self) -> Option<Note> {
        self.queue.pop_front()
    }

    /// Moves all notes to `taken`, which is empty. Both keep their memory.
    pub(crate) fn take(&mut self, taken: &mut VecDeque<Note>) {
        std::mem::swap(&mut self.queue, taken);
    }
}
