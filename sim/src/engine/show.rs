//! The records that the engine shows to an observer. Without an observer, each call is a branch that is not taken.

use anabranch_proto::{PathId, Reason, Time};

use super::Engine;
use crate::medium::Medium;
use crate::medium::wire::{Direction, DropCause};
use crate::observe::trace::Detail;
use crate::transport::{Agent, Frame};

impl<A: Agent, M: Medium> Engine<'_, A, M> {
    #[cold]
    pub(super) fn show_frames(&mut self, channel: usize) {
        let Some(observed) = &mut self.observed else { return };
        let now = self.now;
        self.channels[channel].take_shown(&mut |frame, packet| observed.air(now, channel, frame, packet));
    }

    #[cold]
    pub(super) fn show_sent(&mut self, agent: usize, frame: &Frame, reason: Reason) {
        let Some(observed) = self.observed.as_mut().filter(|observed| observed.wants_packets()) else {
            return;
        };
        let path = reason.path.and_then(|path| self.agents[agent].path_name(path));
        observed.sent(self.now, agent, path, reason, frame);
    }

    /// An agent tells this detail.
    #[cold]
    pub(super) fn tell(&mut self, agent: usize, at: Time, path: Option<PathId>, detail: &Detail) {
        if let Some(means) = &mut self.means {
            means.detail(at, agent, path, detail);
        }
        let Some(observed) = &mut self.observed else { return };
        let path = path.and_then(|path| self.agents[agent].path_name(path));
        observed.detail(at, agent, path, detail);
    }

    /// An agent was polled. It tells the details that it would return next.
    #[cold]
    pub(super) fn tell_more(&mut self, agent: usize) {
        let Engine { agents, means, observed, now, .. } = self;
        agents[agent].tell_details(*now, &mut |at, path, detail| {
            if let Some(means) = means {
                means.detail(at, agent, path.map(|(path, _)| path), detail);
            }
            if let Some(observed) = observed {
                observed.detail(at, agent, path.and_then(|(_, name)| name), detail);
            }
        });
    }

    #[cold]
    pub(super) fn show_read(&mut self, agent: usize) {
        let Some(observed) = &mut self.observed else { return };
        observed.read(self.now, agent, self.agents[agent].read());
    }

    #[cold]
    pub(super) fn show_delivery(&mut self, link: usize, frame: &Frame) {
        let Some(observed) = self.observed.as_mut().filter(|observed| observed.wants_packets()) else {
            return;
        };
        observed.delivered(self.now, link, frame, &self.routes);
    }

    #[cold]
    pub(super) fn show_drop(&mut self, link: usize, number: u64, cause: DropCause, frame: &Frame) {
        let Some(observed) = &mut self.observed else { return };
        observed.dropped(self.now, link, number, cause, frame);
    }

    #[cold]
    pub(super) fn show_queued(&mut self, link: usize) {
        let Some(observed) = &mut self.observed else { return };
        let direction = &self.links[link];
        if let Some(carried) = direction.newest() {
            observed.queued(self.now, link, carried, direction.queue());
        }
    }

    /// Shows the packets that have left any queue by now, in order of time with all other records.
    #[cold]
    pub(super) fn show_all_departures(&mut self) {
        let now = self.now;
        if !self.links.iter().any(|link| link.leaves() <= now) {
            return;
        }
        let next = |links: &[Direction]| links.iter().enumerate().map(|(link, d)| (d.leaves(), link)).min();
        while let Some((at, link)) = next(&self.links).filter(|(at, _)| *at <= self.now) {
            self.show_departures(link, at);
        }
    }

    /// Shows the packets that have left the queue of a link up to `until`.
    #[cold]
    pub(super) fn show_departures(&mut self, link: usize, until: Time) {
        let Some(observed) = &mut self.observed else { return };
        if self.links[link].leaves() > until {
            return;
        }
        self.links[link].depart(until, |at, queue, next| {
            observed.departed(at, link, queue, next);
        });
        if self.links[link].has_dropped() {
            self.drop_all(link);
        }
    }
}
