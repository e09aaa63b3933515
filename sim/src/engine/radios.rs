//! Packets between radios: offered to a channel, passed on at the next radio, or dropped.

use anabranch_proto::Time;

use super::agenda::{Entity, Turn};
use super::{Engine, FIRST_AGENT};
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
        let until = self.channel_may_go_until(channel);
        self.now = self.channels[channel].advance(self.now, until, &mut fates);
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

    /// Nobody else acts before this time, unless the channel delivers or drops something.
    fn channel_may_go_until(&mut self, channel: usize) -> Time {
        // When one group of a divided channel delivers a packet, another may be ahead of that time. So the packet must not end the
        // run, and there must be no links by which it could reach the other group.
        let divided = self.channels[channel].is_divided() && (self.unfinished > 0 || !self.links.is_empty());
        if self.observed.is_some() || self.extra_polls || divided {
            return self.now;
        }
        let after_stop = Time::from_nanos(self.ahead.stop.as_nanos().saturating_add(1));
        self.agenda.peek().unwrap_or(Time::NEVER).min(after_stop)
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
