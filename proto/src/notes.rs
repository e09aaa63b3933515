//! Optional details of what an endpoint does. While they are off, they cost one branch.

use std::collections::VecDeque;
use std::hint::cold_path;

use crate::output::{Note, NoteKind};
use crate::{AssociationId, PathId, Time};

/// Whether an endpoint reports notes, and how.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Noting {
    /// Not at all.
    #[default]
    Off,
    /// All of them, as outputs.
    Polled,
    /// As outputs, and only what blocks user data.
    Blocked,
    /// They are no outputs but wait until [`Endpoint::take_kept`](crate::Endpoint::take_kept), which is cheaper.
    /// [`NoteKind::Timer`] and [`NoteKind::MissingReport`] are not made.
    Kept,
}

impl Noting {
    /// Whether this note is made.
    #[inline(always)]
    fn includes(self, kind: &NoteKind) -> bool {
        match self {
            Noting::Off => false,
            Noting::Polled => true,
            Noting::Blocked => matches!(kind, NoteKind::Blocked { .. }),
            Noting::Kept => !matches!(kind, NoteKind::MissingReport { .. }),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Notes {
    association: AssociationId,
    noting: Noting,
    /// Outputs.
    queue: VecDeque<Note>,
    /// Those that are no outputs.
    kept: Vec<Note>,
    /// By path: when T3-rtx expires, as last reported.
    timers: Vec<Time>,
    /// By path, as last reported.
    windows: Vec<Option<Window>>,
}

/// What a note says of the window of a path, in bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    pub(crate) cwnd: u64,
    pub(crate) ssthresh: u64,
    pub(crate) flight: u64,
    pub(crate) marked: u64,
}

impl Notes {
    pub(crate) fn new(association: AssociationId, noting: Noting) -> Self {
        Notes {
            association,
            noting,
            queue: VecDeque::new(),
            kept: Vec::new(),
            timers: Vec::new(),
            windows: Vec::new(),
        }
    }

    /// Notes are made in this manner from now on. Those that wait to be told in another one are dropped.
    pub(crate) fn switch(&mut self, noting: Noting) {
        if noting != self.noting {
            self.queue.clear();
            self.kept.clear();
        }
        self.noting = noting;
    }

    pub(crate) fn add(&mut self, at: Time, kind: impl FnOnce() -> NoteKind) {
        if self.noting == Noting::Off {
            return;
        }
        cold_path();
        let kind = kind();
        if self.noting.includes(&kind) {
            match self.noting {
                Noting::Kept => self.keep(at, kind),
                _ => {
                    self.remember(&kind);
                    self.queue.push_back(Note { association: self.association, at, kind });
                }
            }
        }
    }

    /// Whether any note is made.
    #[inline(always)]
    pub(crate) fn are_on(&self) -> bool {
        self.noting != Noting::Off
    }

    /// Whether notes are no outputs but kept.
    #[inline(always)]
    pub(crate) fn are_kept(&self) -> bool {
        self.noting == Noting::Kept
    }

    /// Adds a note while they are kept.
    #[inline(always)]
    pub(crate) fn keep(&mut self, at: Time, kind: NoteKind) {
        debug_assert!(self.are_kept());
        self.remember(&kind);
        self.kept.push(Note { association: self.association, at, kind });
    }

    /// The result of `make`, if notes are recorded.
    pub(crate) fn if_on<T>(&self, make: impl FnOnce() -> Option<T>) -> Option<T> {
        if matches!(self.noting, Noting::Off | Noting::Blocked) {
            return None;
        }
        cold_path();
        make()
    }

    /// Reports every T3-rtx that was started, restarted or stopped since the last call. `timers`: when that of each
    /// path expires.
    #[inline(always)]
    pub(crate) fn add_timers(&mut self, at: Time, timers: impl Iterator<Item = (PathId, Time)>) {
        if self.noting == Noting::Polled {
            cold_path();
            self.compare_timers(at, timers);
        }
    }

    /// As `add_timers`, while they are reported.
    #[inline(never)]
    fn compare_timers(&mut self, at: Time, timers: impl Iterator<Item = (PathId, Time)>) {
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

    /// Remembers what a note says of a window.
    #[inline(always)]
    fn remember(&mut self, note: &NoteKind) {
        let (path, cwnd, ssthresh, flight, marked) = match *note {
            NoteKind::Window { path, cwnd, ssthresh, flight, marked }
            | NoteKind::AckedAlone { path, cwnd, ssthresh, flight, marked, .. } => {
                (path, cwnd, ssthresh, flight, marked)
            }
            NoteKind::SentAlone { path, cwnd, ssthresh, flight, .. } => (path, cwnd, ssthresh, flight, 0),
            _ => return,
        };
        let index = path.index();
        if self.windows.len() <= index {
            self.windows.resize(index + 1, None);
        }
        self.windows[index] = Some(Window { cwnd, ssthresh, flight, marked });
    }

    /// Whether a path was reported, with another window than this.
    pub(crate) fn is_outdated(&self, path: PathId, window: Window) -> bool {
        matches!(self.windows.get(path.index()), Some(Some(told)) if *told != window)
    }

    /// Whether none will be an output.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.noting, Noting::Off | Noting::Kept)
    }

    /// The next output.
    pub(crate) fn pop(&mut self) -> Option<Note> {
        if self.is_silent() {
            return None;
        }
        cold_path();
        self.queue.pop_front()
    }

    /// Moves all outputs to the end of `taken`. If it is empty, both keep their memory.
    pub(crate) fn take(&mut self, taken: &mut VecDeque<Note>) {
        match taken.is_empty() {
            true => std::mem::swap(&mut self.queue, taken),
            false => taken.append(&mut self.queue),
        }
    }

    /// As `take`, for those that are no outputs.
    pub(crate) fn take_kept(&mut self, taken: &mut Vec<Note>) {
        match taken.is_empty() {
            true => std::mem::swap(&mut self.kept, taken),
            false => taken.append(&mut self.kept),
        }
    }
}
