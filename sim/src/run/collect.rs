//! What a run has to say.

use std::collections::BTreeMap;

use anabranch_proto::Time;

use crate::engine::Engine;
use crate::medium::wire::Direction;
use crate::results::{Drops, FlowResult, LinkResult, RunResult};
use crate::scenario::Flow;
use crate::transport::{self, End};

use super::build::Plan;

/// The results of a run that has ended.
pub(super) fn result(plan: &Plan<'_>, engine: &Engine<'_, End>) -> RunResult {
    let links = engine.links().iter().enumerate().map(|(direction, link)| {
        let direction = direction as u32;
        link_result(plan.network.link_of(direction).name.clone(), plan.network.label(direction), link)
    });
    let flows = plan.flows.iter().zip(engine.flows());
    RunResult {
        scenario: plan.scenario.name.clone(),
        seed: plan.scenario.seed,
        era: plan.scenario.era.clone(),
        varied: BTreeMap::new(),
        ended: engine.now().as_secs_f64(),
        flows: flows.map(|(site, ends)| flow_result(site.flow, ends, engine.now())).collect(),
        links: links.collect(),
    }
}

fn flow_result(flow: &Flow, ends: &[End], now: Time) -> FlowResult {
    let start = Time::ZERO + flow.start;
    let sink = ends.iter().find_map(End::sink).expect("a flow has a receiver");
    let lasted = sink.completed().unwrap_or(now).since(start).as_secs_f64();
    let mut result = FlowResult {
        name: flow.name.clone(),
        protocol: flow.transport.name(),
        completion: sink.completed().map(|end| end.since(start).as_secs_f64()),
        delivered: sink.bytes(),
        goodput: if lasted > 0.0 { sink.bytes() as f64 * 8.0 / lasted } else { 0.0 },
        ..FlowResult::default()
    };
    transport::complete(ends, now, &mut result);
    result
}

fn link_result(name: String, direction: String, link: &Direction) -> LinkResult {
    let counters = link.counters();
    LinkResult {
        name,
        direction,
        packets: counters.offered,
        bytes: counters.delivered_bytes,
        dropped: counters.queue + counters.loss + counters.down,
        drops: Drops { queue: counters.queue, loss: counters.loss, down: counters.down },
        queue_max: u64::from(link.queue().most()),
    }
}
