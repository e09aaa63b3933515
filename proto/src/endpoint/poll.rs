//! The outputs of an endpoint, and the timers that are due.

use std::collections::VecDeque;
use std::hint::cold_path;

use super::Endpoint;
use crate::path::exceeds_first;
use crate::shutdown::State;
use crate::wire::Packet;
use crate::{Limit, Note, Output, Reason, Time};

impl Endpoint {
    /// The next output of the endpoint. After every other call, call `poll` until it returns `Wait`.
    #[inline(always)]
    pub fn poll(&mut self, now: Time) -> Output {
        self.run_timers(now);
        if !self.answers.is_empty()
            && let Some((packet, reason)) = self.next_answer()
        {
            return Output::Transmit(packet, reason);
        }
        while let Some(index) = self.ready.first() {
            if !self.full.is_empty() {
                self.tell_full(index);
            }
            let Some(association) = self.associations.in_place_mut(index) else {
                cold_path();
                self.ready.pop();
                continue;
            };
            if !association.rests() {
                if let Some(news) = association.next_news(now) {
                    return news;
                }
                if let Some((packet, reason)) = association.take_packet(now) {
                    return Output::Transmit(packet, reason);
                }
                if let Some(note) = association.settle(now) {
                    cold_path();
                    return Output::Note(note);
                }
            }
            self.ready.pop();
            self.agenda.set(index, association.deadline(now));
            if association.state() == State::Closed {
                cold_path();
                self.unlink(index);
            }
        }
        Output::Wait(self.agenda.next())
    }

    /// Moves the notes that [`Endpoint::poll`] would return one after the other to the end of `taken`. That is cheaper
    /// than a poll for each. Call it after a poll at the same time. It moves none while the next poll would return
    /// something else.
    pub fn take_notes(&mut self, taken: &mut VecDeque<Note>) {
        if !self.answers.is_empty() || !self.full.is_empty() {
            return;
        }
        if let Some(association) = self.ready.first().and_then(|index| self.associations.in_place_mut(index))
        {
            association.take_notes(taken);
        }
    }

    /// Moves the notes that were kept to the end of `taken`: those of each association in order.
    pub fn take_kept(&mut self, taken: &mut Vec<Note>) {
        self.associations.each().for_each(|association| association.take_kept(taken));
    }

    /// The next packet that belongs to no association.
    // Within `poll`, the parts of its reason would be put together for every packet.
    #[cold]
    #[inline(never)]
    fn next_answer(&mut self) -> Option<(Box<Packet>, Reason)> {
        let (packet, purpose) = self.answers.pop_front()?;
        let oversize = exceeds_first(packet.size(), packet.to, &self.config);
        Some((packet, Reason { purpose, path: None, limit: Limit::Control, oversize }))
    }

    /// Tells an association that is about to be polled which sockets are full.
    #[cold]
    fn tell_full(&mut self, index: usize) {
        let Some(association) = self.associations.in_place_mut(index) else { return };
        for full in &mut self.full {
            if association.set_writable(full.local, false) {
                association.sender.uncouple();
                full.told.push(index);
            }
        }
    }

    /// Notes that something happened to the association, so that it may have an output.
    pub(super) fn wake(&mut self, index: usize) {
        let Some(association) = self.associations.in_place_mut(index) else { return };
        association.sender.uncouple();
        self.may_speak(index);
    }

    /// Notes that the association may have an output.
    pub(super) fn may_speak(&mut self, index: usize) {
        if self.ready.last() != Some(index) {
            self.ready.push(index);
        }
    }

    /// Runs the timers that are due. They run before anything else at the same time, however often the caller polls.
    #[inline]
    pub(super) fn run_timers(&mut self, now: Time) {
        if self.agenda.is_due(now) {
            self.run_due(now);
        }
    }

    /// An association that has ended by them gets no packet any more, even at the same time.
    #[cold]
    fn run_due(&mut self, now: Time) {
        while let Some(index) = self.agenda.due(now) {
            let Some(association) = self.associations.in_place_mut(index) else { continue };
            if association.deadline(now) <= now {
                association.run_timers(now);
                if association.state() == State::Closed {
                    self.unlink(index);
                }
                self.wake(index);
            }
            let deadline = self.associations.in_place_mut(index).map_or(Time::NEVER, |a| a.deadline(now));
            self.agenda.set(index, deadline);
        }
    }
}
