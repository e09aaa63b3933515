//! What a run has to say.

use std::collections::BTreeMap;

use anabranch_proto::{Duration, Time};

use crate::engine::Engine;
use crate::medium::wire::Direction;
use crate::medium::wireless::Statistics;
use crate::results::{
    Airtime, Collisions, Drops, Exchanges, FlowResult, LinkResult, RunResult, StationDrops, StationResult,
};
use crate::scenario::Flow;
use crate::transport::{self, End};

use super::build::Plan;
use super::measure::{self, Measurement};

/// The results of a run that has ended.
pub(super) fn result(
    plan: &Plan<'_>,
    engine: &Engine<'_, End>,
    measurement: Option<&Measurement>,
) -> RunResult {
    let links = engine.links().iter().enumerate().map(|(direction, link)| {
        let direction = direction as u32;
        link_result(plan.network.link_of(direction).name.clone(), plan.network.label(direction), link)
    });
    let flows = plan.flows.iter().zip(engine.flows()).enumerate().map(|(number, (site, ends))| FlowResult {
        measured: measurement.and_then(|measurement| measurement.flow(number)),
        ..flow_result(site.flow, ends, engine.now())
    });
    let counted = measurement.and_then(Measurement::radios).unwrap_or_else(|| measure::radios(engine));
    RunResult {
        scenario: plan.scenario.name.clone(),
        seed: plan.scenario.seed,
        era: plan.scenario.era.clone(),
        varied: BTreeMap::new(),
        ended: engine.now().as_secs_f64(),
        flows: flows.collect(),
        links: links.collect(),
        stations: stations(plan, &counted),
    }
}

fn stations(plan: &Plan<'_>, counted: &[Statistics]) -> Vec<StationResult> {
    let all = plan.network.radios();
    let channels = all.channels().enumerate();
    let places = channels.flat_map(|(number, index)| all.nodes(number).map(move |node| (index, node)));
    let station = |((index, node), counted): ((usize, usize), &Statistics)| {
        let seconds = |nanos: u64| Duration::from_nanos(nanos).as_secs_f64();
        let Statistics { rts, data, collisions, drops, airtime } = counted;
        StationResult {
            node: plan.network.node_name(node).to_owned(),
            channel: plan.scenario.channels[index].name.clone(),
            rts: Exchanges { sent: rts.sent, answered: rts.answered },
            data: Exchanges { sent: data.sent, answered: data.answered },
            collisions: Collisions {
                hidden: collisions.hidden,
                slot: collisions.slot,
                capture: collisions.capture,
            },
            drops: StationDrops {
                queue: drops.queue,
                rts_retries: drops.rts_retries,
                data_retries: drops.data_retries,
            },
            airtime: Airtime {
                data: seconds(airtime.data),
                control: seconds(airtime.control),
                collision: seconds(airtime.collision),
                idle: seconds(airtime.idle),
            },
        }
    };
    places.zip(counted).map(station).collect()
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
