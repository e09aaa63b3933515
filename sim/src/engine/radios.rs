//! Packets between radios: offered to a channel, passed on at the next radio, or dropped.

use anabranch_proto::Time;

use super::agenda::{Entity, Turn};
use super::{Engine, FIRST_AGENT, look};
use crate::medium::Medium;
use crate::medium::wire::DropCause;
use crate::medium::wireless::Fate;
use crate::network::RADIO;
use crate::network::radios::RadioHop;
use crate::transport::{Agent, Frame};

impl<A: Agent, M: Medium> Engine<'_, A, M> {
    /// Something happens on a part of a channel: packets may have reached the next radio. As long as none has, and
    /// nothing else is due before, it goes on by itself.
    pub(super) fn advance<const LOOK: u8>(&mut self, entity: Entity) {
        let (channel, part) = self.parts.of(entity);
        let mut fates = std::mem::take(&mut self.fates);
        let until = self.may_go_until(entity);
        self.now = self.channels[channel].advance(part, self.now, until, &mut fates);
        if LOOK != look::NEVER {
            self.show_frames(channel);
        }
        for fate in fates.drain(..) {
            match fate {
                Fate::Delivered(frame) => {
                    if LOOK == look::NOW {
                        self.show_delivery(self.shown(self.routes[frame.hop as usize]), &frame);
                    }
                    self.pass_on::<LOOK>(frame);
                }
                Fate::GivenUp(cause, Some(frame)) => self.drop_at_radio::<LOOK>(cause, frame),
                Fate::GivenUp(_, None) => {}
            }
        }
        self.fates = fates;
        self.await_part(entity);
    }

    /// Nobody else acts on this part of a channel before this time, unless the part delivers or drops something.
    fn may_go_until(&mut self, entity: Entity) -> Time {
        if self.observed.is_some() || self.extra_polls {
            return self.now;
        }
        let after_stop = Time::from_nanos(self.ahead.stop.as_nanos().saturating_add(1));
        self.agenda.undisturbed_until(entity).min(after_stop)
    }

    pub(super) fn offer_radio<const LOOK: u8>(&mut self, hop: u32, frame: Frame) {
        let RadioHop { channel, stations: [from, to], .. } = self.radio_hops[(hop - RADIO) as usize];
        let channel = channel as usize;
        let size = frame.size;
        match self.channels[channel].offer(self.now, from, to, size, frame) {
            Ok(()) => self.await_part(self.part_of(hop)),
            Err(frame) => self.drop_at_radio::<LOOK>(DropCause::Queue, frame),
        }
    }

    fn await_part(&mut self, entity: Entity) {
        let (channel, part) = self.parts.of(entity);
        match self.channels[channel].next(part) {
            Time::NEVER => self.agenda.clear(entity),
            next => {
                let turn = Turn::fixed(FIRST_AGENT + u64::from(entity));
                self.agenda.set(entity, next, turn);
            }
        }
    }

    /// The part of a channel on which this hop is.
    pub(super) fn part_of(&self, hop: u32) -> Entity {
        let RadioHop { channel, stations, .. } = self.radio_hops[(hop - RADIO) as usize];
        self.parts.entity(channel as usize, self.channels[channel as usize].part(stations[0]))
    }
}

/// The parts of all channels, which are the last entities.
pub(super) struct ChannelParts {
    /// By part, in order of their entities: its channel, and its number there.
    all: Vec<(usize, usize)>,
    /// The entity of the first.
    first: Entity,
    /// By channel: the entity of its first part.
    first_of: Vec<Entity>,
}

impl ChannelParts {
    /// For channels with these numbers of parts, after `entities` other entities.
    pub(super) fn new(channels: impl Iterator<Item = usize>, entities: usize) -> Self {
        let (mut all, mut first_of) = (Vec::new(), Vec::new());
        for (channel, parts) in channels.enumerate() {
            first_of.push((entities + all.len()) as Entity);
            all.extend((0..parts).map(|part| (channel, part)));
        }
        ChannelParts { all, first: entities as Entity, first_of }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    fn of(&self, entity: Entity) -> (usize, usize) {
        self.all[(entity - self.first) as usize]
    }

    fn entity(&self, channel: usize, part: usize) -> Entity {
        self.first_of[channel] + part as Entity
    }
}
