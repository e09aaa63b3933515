//! Running ahead: a packet moves from one link to the next without an event, if all packets of the next link come
//! from this one.
//!
//! The results stay the same. No other packet can reach the next link earlier, a packet that would be lost or dropped
//! waits for its event, and no packet runs ahead of a moment at which an observer looks or something changes.

use anabranch_proto::Time;

use super::{Engine, RADIO, look};
use crate::medium::Medium;
use crate::medium::wire::{Pass, Transit};
use crate::observe::observed::Observed;
use crate::transport::{Agent, Frame};

/// How far packets may run ahead, and on which links.
pub(super) struct Ahead {
    /// By entry of the table of routes: the next link of the route, if all its packets come from the link here; or
    /// `NONE`.
    onward: Vec<u32>,
    /// No packet runs ahead of this time.
    pub(super) until: Time,
    /// The end of the run.
    pub(super) stop: Time,
}

/// Packets do not run ahead from here.
const NONE: u32 = u32::MAX;

impl Ahead {
    /// For this table of routes and this number of link directions.
    pub(super) fn new(routes: &[u32], links: usize) -> Self {
        let mut from: Vec<Option<u32>> = vec![None; links];
        let mut sole = vec![true; links];
        let mut before = None;
        for &hop in routes {
            let link = Some(hop).filter(|hop| *hop < RADIO);
            if let Some(link) = link.map(|link| link as usize) {
                sole[link] &= before.is_some() && from[link].is_none_or(|from| Some(from) == before);
                from[link] = before;
            }
            before = link;
        }
        let leads = |pair: &[u32]| pair[0] < RADIO && pair[1] < RADIO && sole[pair[1] as usize];
        let onward = routes.windows(2).map(|pair| if leads(pair) { pair[1] } else { NONE });
        Ahead { onward: onward.chain([NONE]).collect(), until: Time::ZERO, stop: Time::NEVER }
    }
}

impl<A: Agent, M: Medium> Engine<'_, A, M> {
    /// Computes how far packets may run ahead from now on.
    pub(super) fn look_ahead(&mut self) {
        let change = self.changes.peek().map_or(Time::NEVER, |change| change.at);
        let pause = self.pauses.peek().copied().unwrap_or(Time::NEVER);
        let runs = self.observed.as_ref().is_none_or(Observed::lets_run_ahead) && !self.extra_polls;
        self.ahead.until = if runs { change.min(pause).min(self.ahead.stop) } else { Time::ZERO };
    }

    /// A link sends a packet. Either its arrival becomes an event, or it passes and is offered to the next link at
    /// once.
    #[inline(always)]
    pub(super) fn carry<const LOOK: u8>(&mut self, mut link: usize, frame: Frame, mut transit: Transit) {
        let (size, number, mut hop) = (frame.size, frame.number(), frame.hop);
        if LOOK != look::NEVER {
            self.show_stay(link, size, transit);
        }
        while let Some(next) = self.onward(link, hop, transit.arrival) {
            self.links[link].pass(self.now, Pass { transit, number, size, hop });
            let Some(there) = self.links[next].accept(transit.arrival, transit.turn(number), size) else {
                self.links[link].hold_back();
                break;
            };
            (link, transit, hop) = (next, there, hop + 1);
            if LOOK != look::NEVER {
                self.show_stay(link, size, transit);
            }
        }
        if self.links[link].carry(Frame { hop, ..frame }, transit) {
            self.await_head(link);
        }
        if LOOK == look::NOW {
            self.show_queued(link);
        }
    }

    /// The run ends with this event: what packets that ran ahead did after it is undone.
    #[cold]
    pub(super) fn rewind(&mut self) {
        for (link, direction) in self.links.iter_mut().enumerate() {
            let undone = direction.rewind((self.now, self.turn));
            if let Some(observed) = &mut self.observed {
                observed.take_back(link, undone);
            }
        }
    }

    /// The next link of a packet that arrives `at` this time, if it may be offered there already.
    #[inline(always)]
    fn onward(&self, link: usize, hop: u32, at: Time) -> Option<usize> {
        if at >= self.ahead.until {
            return None;
        }
        let next = self.ahead.onward[hop as usize];
        (next != NONE && self.links[link].lets_pass()).then_some(next as usize)
    }
}
