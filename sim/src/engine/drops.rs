//! Packets that are dropped: counted, shown, and told to the agent that waits for them.

use super::{ARRIVED, Engine};
use crate::medium::Medium;
use crate::medium::wire::DropCause;
use crate::transport::{Agent, Frame, Stage};

impl<A: Agent, M: Medium> Engine<'_, A, M> {
    /// CoDel dropped these packets of a link.
    #[cold]
    pub(super) fn drop_all(&mut self, link: usize) {
        for (at, carried) in self.links[link].take_dropped() {
            self.show_drop_at(at, link, carried.offered, DropCause::Early, &carried.frame);
            self.drop(carried.frame);
        }
    }

    /// The run ends: the managements of all queues decide what they have to decide by now.
    #[cold]
    pub(super) fn decide_all(&mut self) {
        for link in 0..self.links.len() {
            self.links[link].decide(self.now);
            self.drop_all(link);
        }
    }

    /// A radio drops a frame. SACKs that must not be lost reach the next node nevertheless.
    pub(super) fn drop_at_radio<const LOOK: u8>(&mut self, cause: DropCause, frame: Frame) {
        let agent = self.destination(&frame);
        if self.flows[self.flow_of[agent]].lossless_sacks && frame.body.is_sack() {
            return self.pass_on::<LOOK>(frame);
        }
        self.show_drop(self.shown(self.routes[frame.hop as usize]), frame.number(), cause, &frame);
        self.drop(frame);
    }

    /// A frame was dropped, by a link or by a radio.
    #[cold]
    pub(super) fn drop(&mut self, frame: Frame) {
        self.counts.dropped[frame.hop as usize] += 1;
        let agent = self.destination(&frame);
        self.agents[agent].dropped(frame);
        if self.agents[agent].stage() == Stage::Over {
            self.settle(self.flow_of[agent]);
        }
    }

    /// The agent at the end of a frame's route.
    fn destination(&self, frame: &Frame) -> usize {
        let ahead = &self.routes[frame.hop as usize..];
        let agent = ahead.iter().find_map(|next| next.checked_sub(ARRIVED));
        agent.expect("a route ends at an agent") as usize
    }
}
