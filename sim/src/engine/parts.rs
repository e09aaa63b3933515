//! The parts of an engine.

use std::ops::Range;

use anabranch_proto::Time;

use crate::medium::wire::{Alteration, Direction};
use crate::medium::wireless::Channel;
use crate::network::radios::RadioHop;
use crate::observe::trace::{Observer, Side};
use crate::transport::Frame;

/// A link direction becomes different.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) at: Time,
    pub(crate) link: usize,
    pub(crate) alteration: Alteration,
}

/// The parts of an engine.
pub(crate) struct Parts<'a, A, M = Channel<Frame>> {
    pub(crate) links: Vec<Direction>,
    pub(crate) channels: Vec<M>,
    /// The hops between radios, by their numbers.
    pub(crate) radio_hops: Vec<RadioHop>,
    /// Lists of hops. Each ends with [`ARRIVED`] plus the number of its agent.
    pub(crate) routes: Vec<u32>,
    /// The agents of each flow in sequence.
    pub(crate) agents: Vec<A>,
    pub(crate) flows: Vec<FlowParts>,
    /// In order of time.
    pub(crate) changes: Vec<Change>,
    /// When the run pauses, in order: between these times, windows are averaged.
    pub(crate) pauses: Vec<Time>,
    pub(crate) observer: Option<&'a mut dyn Observer>,
    /// Whether the observer takes many records together.
    pub(crate) batches: bool,
    pub(crate) extra_polls: bool,
}

impl<A, M> Parts<'_, A, M> {
    /// By agent: its flow, and its end of it.
    pub(super) fn sides(&self) -> Vec<(usize, Side)> {
        let side = |agent: usize, first: usize| if agent == first { Side::Client } else { Side::Server };
        let of_flow = |(flow, parts): (usize, &FlowParts)| {
            let first = parts.agents.start;
            parts.agents.clone().map(move |agent| (flow, side(agent, first)))
        };
        self.flows.iter().enumerate().flat_map(of_flow).collect()
    }
}

/// A flow as the engine knows it.
#[derive(Clone, Debug)]
pub(crate) struct FlowParts {
    /// Its agents, the one that begins it first.
    pub(crate) agents: Range<usize>,
    /// Its routes, as places in their table.
    pub(crate) routes: Range<usize>,
    /// Whether the run ends only when it is over.
    pub(crate) awaited: bool,
    /// Whether radios pass on its SACKs when they would drop them.
    pub(crate) lossless_sacks: bool,
}
