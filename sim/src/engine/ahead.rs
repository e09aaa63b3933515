//! Running ahead: a packet moves from one link to the next without an event, if all packets of the next link come
//! from this one.
//!
//! The results stay the same. No other packet can reach the next link earlier, a packet that would be lost or dropped
//! waits for its event, and no packet runs ahead of a moment at which an observer looks or something changes.

use std::hint::cold_path;

use anabranch_proto::Time;

use super::{Engine, RADIO};
use crate::medium::Medium;
use crate::medium::wire::Carried;
use crate::observe::observed::Observed;
use crate::transport::Agent;

/// How far packets may run ahead, and on which links.
pub(super) struct Ahead {
    /// By entry of the table of routes: the next link of the route, if all its packets come from the link here; or `NONE`.
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
    pub(super) fn carry(&mut self, mut link: usize, mut carried: Carried) {
        self.show_stay(link, &carried);
        while let Some(next) = self.pass(link, &mut carried) {
            link = next;
            self.show_stay(link, &carried);
        }
        if self.links[link].carry(carried) {
            self.await_head(link);
        }
        if self.observed.is_some() {
            cold_path();
            self.show_queued(link);
        }
    }

    /// Lets the packet pass to the next link, which is returned, if it can be offered there already.
    #[inline(always)]
    fn pass(&mut self, link: usize, carried: &mut Carried) -> Option<usize> {
        let at = carried.arrival();
        if at >= self.ahead.until {
            return None;
        }
        let next = self.ahead.onward[carried.frame.hop as usize];
        if next == NONE {
            return None;
        }
        let next = next as usize;
        let [here, there] = self.links.get_disjoint_mut([link, next]).ok()?;
        if !here.lets_pass() || !there.foresees(at, carried.frame.size) {
            return None;
        }
        here.pass(self.now, carried);
        there.follow(carried);
        Some(next)
    }
}
