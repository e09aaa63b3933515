//! Runs a scenario: checks it, builds the simulation, drives it with the engine, and collects the results.

mod build;
mod collect;
mod fairness;
mod snapshot;
mod values;

use std::borrow::Cow;
use std::ops::ControlFlow;

use anabranch_proto::{Policies, Time};

use crate::chance::Sequence;
use crate::engine::{Engine, Halt};
use crate::error::RunError;
use crate::network::{DirectionId, Network, RADIO};
use crate::observe::trace::{Names, Observer};
use crate::results::RunResult;
use crate::scenario::{Flow, Scenario};
use crate::traffic::Sink;
use crate::transport::Protocol;
use crate::transport::ends::Ends;
use crate::transport::foreign::ForeignTransport;
use crate::transport::{End, PlugIns};

use build::Plan;
pub(crate) use build::{GatePlan, network};
use snapshot::Snapshot;

/// Options of a run that are not part of the scenario. None of them changes the result, except the code of the
/// policies.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// The policies that the scenario can name.
    pub policies: Policies,
    /// The foreign transports that the scenario can name.
    pub foreign: &'a [&'a dyn ForeignTransport],
    /// An observer, which receives records of everything that happens.
    pub observer: Option<&'a mut dyn Observer>,
    /// Called every 65,536 events with the progress; it may end the run.
    pub progress: Option<&'a mut dyn FnMut(Progress) -> ControlFlow<()>>,
    /// Polls every agent after every event. This tests that additional polls change nothing; it costs time.
    pub extra_polls: bool,
}

impl std::fmt::Debug for RunOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RunOptions { policies, foreign, observer, progress, extra_polls } = self;
        let foreign: Vec<_> = foreign.iter().map(|transport| transport.name()).collect();
        f.debug_struct("RunOptions")
            .field("policies", policies)
            .field("foreign", &foreign)
            .field("observed", &observer.is_some())
            .field("watched", &progress.is_some())
            .field("extra_polls", extra_polls)
            .finish()
    }
}

/// The progress of a run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Virtual time.
    pub now: Time,
    /// Bytes of user data that all flows' receivers have read.
    pub delivered: u64,
    /// Bytes of user data that all flows are to deliver; `None` if a flow has no end.
    pub expected: Option<u64>,
    /// When the run ends at the latest.
    pub stop: Option<Time>,
    /// Events so far.
    pub events: u64,
}

/// Checks whether a scenario can be run with these policies, without foreign transports.
pub fn check(scenario: &Scenario, policies: &Policies) -> Result<(), RunError> {
    Plan::new(scenario, &network(scenario)?, with(policies)).map(drop)
}

/// The SCTP flows that have one path, because one end has one address, although the other end reaches it from several.
/// With `pairs = "all"` each of these has a path.
pub fn single_paths(scenario: &Scenario) -> Result<Vec<&Flow>, RunError> {
    let network = network(scenario)?;
    let mut found = Vec::new();
    for flow in scenario.flows.iter().filter(|flow| flow.sctp().is_some()) {
        let ends = Ends::new(&network, flow)?;
        if ends.paths.len() == 1 && ends.client.len().max(ends.server.len()) > 1 {
            found.push(flow);
        }
    }
    Ok(found)
}

/// These policies, and no foreign transports.
fn with(policies: &Policies) -> PlugIns<'_> {
    PlugIns { policies, foreign: &[] }
}

/// Runs a scenario. The run ends when every flow with a given amount is complete and closed (or lost) at both ends,
/// when no event is left, or at the scenario's `stop`.
pub fn run(scenario: &Scenario, options: RunOptions<'_>) -> Result<RunResult, RunError> {
    let RunOptions { policies, foreign, mut observer, mut progress, extra_polls } = options;
    let plug_ins = PlugIns { policies: &policies, foreign };
    let network = network(scenario)?;
    let scenario = &*with_starts(scenario);
    let plan = Plan::new(scenario, &network, plug_ins)?;
    if let Some(observer) = &mut observer {
        observer.begin(&plan.names());
    }
    let observed = observer.is_some();
    let mut engine = Engine::new(plan.parts(plug_ins, observed, observer.take(), extra_polls)?);
    let stop = scenario.stop.map(|stop| Time::ZERO + stop);
    let expected = scenario.flows.iter().map(|flow| flow.traffic.amount()).sum();
    let stuck = |engine: &Engine<'_, End>| match foreign {
        [] => None,
        _ => engine.agents().iter().find_map(End::stuck),
    };
    let mut watch = |engine: &Engine<'_, End>| match &mut progress {
        _ if stuck(engine).is_some() => ControlFlow::Break(()),
        None => ControlFlow::Continue(()),
        Some(progress) => {
            let (now, events) = (engine.reached(), engine.events());
            progress(Progress { now, delivered: delivered(engine.agents()), expected, stop, events })
        }
    };
    let mut pauses = Vec::new();
    loop {
        match engine.run(stop.unwrap_or(Time::NEVER), &mut watch) {
            Ok(Halt::Paused) => pauses.push(Snapshot::new(&engine)),
            Ok(Halt::Ended) => {
                return stuck(&engine).map_or_else(|| Ok(collect::result(&plan, &engine, pauses)), Err);
            }
            Err(interrupted) => {
                return Err(stuck(&engine).unwrap_or(RunError::Interrupted { at: interrupted.at }));
            }
        }
    }
}

/// The parts of an engine whose gate ends the routes between these pairs of interfaces.
pub(crate) fn with_gate(
    scenario: &Scenario,
    network: &Network,
    policies: &Policies,
    ways: &[(DirectionId, DirectionId)],
) -> Result<GatePlan, RunError> {
    Plan::new(scenario, network, with(policies))?.with_gate(with(policies), ways)
}

/// The results of a run that is under way.
pub(crate) fn result_so_far(
    scenario: &Scenario,
    network: &Network,
    policies: &Policies,
    engine: &Engine<'_, End>,
) -> Result<RunResult, RunError> {
    let unmeasured = Scenario { measure: None, ..scenario.clone() };
    let plan = Plan::new(&unmeasured, network, with(policies))?;
    Ok(collect::result(&plan, engine, Vec::new()))
}

/// The scenario with the random starts of its flows drawn from the seed.
pub(crate) fn with_starts(scenario: &Scenario) -> Cow<'_, Scenario> {
    if scenario.flows.iter().all(|flow| flow.random_start.is_none()) {
        return Cow::Borrowed(scenario);
    }
    let mut drawn = scenario.clone();
    for flow in &mut drawn.flows {
        if let Some([low, high]) = flow.random_start {
            let stream = format!("flow/{}/start", flow.name);
            flow.start = Sequence::new(scenario.seed, &stream).between(low, high);
        }
    }
    Cow::Owned(drawn)
}

fn delivered(agents: &[End]) -> u64 {
    agents.iter().filter_map(End::sink).map(Sink::bytes).sum()
}

impl Plan<'_> {
    fn channel_names(&self) -> Vec<(String, Vec<String>)> {
        let radios = self.network.radios();
        let nodes =
            |channel| radios.nodes(channel).map(|node| self.network.node_name(node).to_owned()).collect();
        let name = |index: usize| self.scenario.channels[index].name.clone();
        radios.channels().enumerate().map(|(channel, index)| (name(index), nodes(channel))).collect()
    }

    fn names(&self) -> Names {
        let links = (0..2 * self.network.links().len() as u32)
            .map(|direction| (self.network.link_of(direction).name.clone(), self.network.label(direction)));
        let flows = self.flows.iter().map(|site| site.flow.name.clone());
        let protocols = self.flows.iter().map(|site| site.flow.transport.protocol());
        let striped = self.flows.iter().filter(|site| site.flow.transport.is_striped());
        let radios = (0..self.network.radios().hops().len() as u32)
            .map(|hop| (self.network.medium(RADIO + hop).to_owned(), self.network.label(RADIO + hop)));
        Names {
            protocols: protocols.chain(self.traffic.iter().map(|_| Protocol::Udp)).collect(),
            striped: striped.map(|site| site.flow.name.clone()).collect(),
            flows: flows.chain(self.traffic.iter().map(|traffic| traffic.name.clone())).collect(),
            links: links.collect(),
            hops: radios.collect(),
            channels: self.channel_names(),
        }
    }
}
