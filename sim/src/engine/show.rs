//! The records that the engine shows to an observer. They are not called while nothing looks at the run.

use anabranch_proto::{PathId, Reason, Time};

use super::{Change, Engine};
use crate::medium::Medium;
use crate::medium::wire::{Direction, DropCause, Transit};
use crate::observe::observed::Observed;
use crate::observe::trace::Detail;
use crate::trace::Stay;
use crate::transport::{Agent, Frame};

/// By link direction: whether it is certain when a packet leaves the queue as soon as it comes.
pub(super) fn certain(links: &[Direction], changes: &[Change]) -> Vec<bool> {
    let mut certain: Vec<_> = links.iter().map(Direction::is_plain).collect();
    changes.iter().for_each(|change| certain[change.link] = false);
    certain
}

impl<A: Agent, M: Medium> Engine<'_, A, M> {
    #[cold]
    pub(super) fn show_frames(&mut self, channel: usize) {
        let Some(observed) = &mut self.observed else { return };
        let now = self.now;
        self.channels[channel].take_shown(&mut |frame, packet| observed.air(now, channel, frame, packet));
    }

    #[inline]
    pub(super) fn show_sent(&mut self, agent: usize, frame: &Frame, reason: Reason) {
        if self.shows_packets() {
            self.show_packet_sent(agent, frame, reason);
        }
    }

    /// Whether the observer is shown packets.
    #[inline]
    fn shows_packets(&self) -> bool {
        self.observed.as_ref().is_some_and(Observed::wants_packets)
    }

    #[cold]
    fn show_packet_sent(&mut self, agent: usize, frame: &Frame, reason: Reason) {
        let Some(observed) = &mut self.observed else { return };
        let path = reason.path.and_then(|path| self.agents[agent].path_name(path));
        observed.sent(self.now, agent, path, reason, frame);
    }

    /// An agent tells this detail. Those that it has kept come first.
    #[cold]
    pub(super) fn tell(&mut self, agent: usize, at: Time, path: Option<PathId>, detail: &Detail) {
        self.tell_kept(agent);
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

    /// Tells the details that an agent has kept.
    fn tell_kept(&mut self, agent: usize) {
        let Engine { agents, observed, .. } = self;
        if let Some(observed) = observed.as_mut().filter(|observed| observed.batches()) {
            agents[agent].tell_kept(&mut |notes, paths| observed.details(agent, notes, paths));
        }
    }

    /// Shows everything that was kept.
    #[cold]
    pub(super) fn show_kept(&mut self) {
        self.tell_all_kept();
        let Some(observed) = self.observed.as_mut().filter(|observed| observed.batches()) else { return };
        observed.end_queues(self.now);
    }

    /// An event of this entity is next. What left queues before it is shown: all of it in order of time, or only what
    /// left the link of the event.
    #[inline(always)]
    pub(super) fn show_before(&mut self, entity: usize) {
        if self.observed.as_ref().is_some_and(Observed::awaits_departures) {
            self.show_earlier(entity);
        }
    }

    #[cold]
    fn show_earlier(&mut self, entity: usize) {
        if self.observed.as_ref().is_some_and(|observed| !observed.batches()) {
            self.show_all_departures();
        } else if entity < self.links.len() {
            self.show_departures(entity, self.now);
        }
    }

    /// An agent was polled until it waits.
    #[inline(always)]
    pub(super) fn show_after(&mut self, agent: usize) {
        let Some(observed) = &mut self.observed else { return };
        if observed.wants_reads() {
            self.show_read(agent);
        } else if observed.has_kept_enough() {
            self.tell_all_kept();
        }
    }

    #[cold]
    fn show_read(&mut self, agent: usize) {
        let Some(observed) = &mut self.observed else { return };
        observed.read(self.now, agent, self.agents[agent].read());
        if observed.has_kept_enough() {
            self.tell_all_kept();
        }
    }

    #[cold]
    fn tell_all_kept(&mut self) {
        (0..self.agents.len()).for_each(|agent| self.tell_kept(agent));
    }

    #[inline]
    pub(super) fn show_delivery(&mut self, link: usize, frame: &Frame) {
        if self.shows_packets() {
            self.show_packet_delivered(link, frame);
        }
    }

    #[cold]
    fn show_packet_delivered(&mut self, link: usize, frame: &Frame) {
        let Some(observed) = &mut self.observed else { return };
        observed.delivered(self.now, link, frame, &self.routes);
    }

    #[cold]
    pub(super) fn show_drop(&mut self, link: usize, number: u64, cause: DropCause, frame: &Frame) {
        self.show_drop_at(self.now, link, number, cause, frame);
    }

    /// The details of the sender come before the drop of what it has sent.
    #[cold]
    pub(super) fn show_drop_at(
        &mut self,
        at: Time,
        link: usize,
        number: u64,
        cause: DropCause,
        frame: &Frame,
    ) {
        let Some(flow) = self.observed.as_ref().map(|observed| observed.flow(frame)) else { return };
        self.flows[flow].agents.clone().for_each(|agent| self.tell_kept(agent));
        if let Some(observed) = &mut self.observed {
            observed.dropped(at, link, number, cause, frame);
        }
    }

    /// A packet is sent on a link. If it is certain when it leaves the queue, that is shown at once.
    #[inline(always)]
    pub(super) fn show_stay(&mut self, link: usize, size: u32, transit: Transit) {
        if let Some(observed) = &mut self.observed {
            let Transit { entered: at, departure: leaves, .. } = transit;
            observed.came(self.now, link, Stay { at, leaves, size });
        }
    }

    #[inline(always)]
    pub(super) fn show_queued(&mut self, link: usize) {
        if self.observed.as_ref().is_some_and(|observed| observed.shows_departures(link)) {
            self.show_newest(link);
        }
    }

    #[cold]
    fn show_newest(&mut self, link: usize) {
        let Some(observed) = &mut self.observed else { return };
        let direction = &self.links[link];
        observed.leaves = observed.leaves.min(direction.leaves());
        if observed.batches() {
            return observed.changed(self.now, link, direction.queue());
        }
        if let Some(carried) = direction.newest() {
            observed.queued(self.now, link, carried, direction.queue());
        }
    }

    /// A link has gone down, and nothing waits before it any more.
    #[cold]
    pub(super) fn show_emptied(&mut self, link: usize) {
        if let Some(observed) = self.observed.as_mut().filter(|observed| observed.shows_departures(link)) {
            observed.departed(self.now, link, self.links[link].queue(), None);
        }
    }

    /// Shows the packets that have left any queue by now, in order of time with all other records, or link by link.
    #[cold]
    pub(super) fn show_all_departures(&mut self) {
        let now = self.now;
        if self.observed.as_ref().is_some_and(Observed::batches) {
            return (0..self.links.len()).for_each(|link| self.show_departures(link, now));
        }
        let next = |links: &[Direction]| links.iter().enumerate().map(|(link, d)| (d.leaves(), link)).min();
        let waits = |observed: &Observed<'_>| observed.awaits_departures() && observed.leaves <= now;
        if !self.observed.as_ref().is_some_and(waits) {
            return;
        }
        while let Some((at, link)) = next(&self.links).filter(|(at, _)| *at <= now) {
            self.show_departures(link, at);
        }
        let leaves = next(&self.links).map_or(Time::NEVER, |(at, _)| at);
        if let Some(observed) = &mut self.observed {
            observed.leaves = leaves;
        }
    }

    /// Shows the packets that have left the queue of a link up to `until`.
    #[inline(always)]
    pub(super) fn show_departures(&mut self, link: usize, until: Time) {
        if self.observed.as_ref().is_some_and(|observed| observed.shows_departures(link))
            && self.links[link].leaves() <= until
        {
            self.show_departed(link, until);
        }
    }

    #[cold]
    fn show_departed(&mut self, link: usize, until: Time) {
        let Some(observed) = &mut self.observed else { return };
        self.links[link].depart(until, |at, queue, next| {
            observed.departed(at, link, queue, next);
        });
        if self.links[link].has_dropped() {
            self.drop_all(link);
        }
    }
}
