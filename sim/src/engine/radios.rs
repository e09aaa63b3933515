//! Packets between radios: offered to a channel, passed on at the next radio, or dropped.

use anabranch_proto::Time;

use super::agenda::{Entity, Turn};
use super::{Engine, FIRST_AGENT, GLANCE};
use crate::medium::Medium;
use crate::medium::wire::DropCause;
use crate::medium::wireless::Fate;
use crate::network::RADIO;
use crate::network::radios::RadioHop;
use crate::transport::{Agent, Frame};

impl<A: Agent, M: Medium> Engine<'_, A, M> {
    /// Something happens on a channel: packets may have reached the next radio. As long as none has, and nothing else is due
    /// before, the channel goes on by itself.
    pub(super) fn advance(&mut self, channel: usize) {
        let mut fates = std::mem::take(&mut self.fates);
        self.channels[channel].advance(self.now, &mut fates);
        if fates.is_empty() && self.observed.is_none() && !self.extra_polls {
            let others = self.agenda.peek().unwrap_or(Time::NEVER);
            while fates.is_empty() && !(self.events + 1).is_multiple_of(GLANCE) {
                let next = self.channels[channel].next();
                if next >= others || next > self.ahead.stop || next == Time::NEVER {
                    break;
                }
                self.now = next;
                self.events += 1;
                self.channels[channel].advance(next, &mut fates);
            }
        }
        if self.observed.is_some() {
            self.show_frames(channel);
        }
        for fate in fates.drain(..) {
            match fate {
                Fate::Delivered(frame) => {
                    if self.observed.is_some() {
                        self.show_delivery(self.shown(self.routes[frame.hop as usize]), &frame);
                    }
                    self.pass_on(frame);
                }
                Fate::GivenUp(cause, Some(frame)) => self.drop_at_radio(cause, frame),
                Fate::GivenUp(_, None) => {}
            }
        }
        self.fates = fates;
        self.await_channel(channel);
    }

    pub(super) fn offer_radio(&mut self, hop: u32, frame: Frame) {
        let RadioHop { channel, stations: [from, to], .. } = self.radio_hops[(hop - RADIO) as usize];
        let channel = channel as usize;
        let size = frame.size;
        match self.channels[channel].offer(self.now, from, to, size, frame) {
            Ok(()) => self.await_channel(channel),
            Err(frame) => self.drop_at_radio(DropCause::Queue, frame),
        }
    }

    /// A radio drops a frame. SACKs that must not be lost reach the next node nevertheless.
    fn drop_at_radio(&mut self, cause: DropCause, frame: Frame) {
        let agent = self.destination(&frame);
        if self.flows[self.flow_of[agent]].lossless_sacks && frame.body.is_sack() {
            return self.pass_on(frame);
        }
        self.counts.dropped[frame.hop as usize] += 1;
        self.show_drop(self.shown(self.routes[frame.hop as usize]), frame.number(), cause, &frame);
    }

    fn await_channel(&mut self, channel: usize) {
        let entity = (self.links.len() + self.agents.len() + 2 + channel) as Entity;
        match self.channels[channel].next() {
            Time::NEVER => self.agenda.clear(entity),
            next => {
                let turn = Turn::fixed(FIRST_AGENT + (self.agents.len() + channel) as u64);
                self.agenda.set(entity, next, turn);
            }
        }
    }
}
