//! What a run has to say.

use std::collections::BTreeMap;

use anabranch_proto::{Duration, PathState, PathView, Time};

use crate::engine::Engine;
use crate::medium::wire::Direction;
use crate::results::{Blocked, Drops, FlowResult, LinkResult, PathResult, Retransmissions, RunResult};
use crate::scenario::Flow;
use crate::transport::sctp::{Application, Ended, SctpAgent};

use super::build::Plan;

/// The results of a run that has ended.
pub(super) fn result(plan: &Plan<'_>, engine: &Engine<'_, SctpAgent>) -> RunResult {
    let pairs = engine.agents().as_chunks::<2>().0;
    let links = engine.links().iter().enumerate().map(|(direction, link)| {
        let direction = direction as u32;
        link_result(plan.network.link_of(direction).name.clone(), plan.network.label(direction), link)
    });
    RunResult {
        scenario: plan.scenario.name.clone(),
        seed: plan.scenario.seed,
        era: plan.scenario.era.clone(),
        varied: BTreeMap::new(),
        ended: engine.now().as_secs_f64(),
        flows: plan
            .flows
            .iter()
            .zip(pairs)
            .map(|((flow, _), ends)| flow_result(flow, ends, engine.now()))
            .collect(),
        links: links.collect(),
    }
}

fn flow_result(flow: &Flow, [client, server]: &[SctpAgent; 2], now: Time) -> FlowResult {
    let start = Time::ZERO + flow.start;
    let (delivered, completed) = match server.application() {
        Application::Reader(sink) => (sink.bytes(), sink.completed()),
        Application::Sender(_) => (0, None),
    };
    let lasted = completed.unwrap_or(now).since(start).as_secs_f64();
    let done = client.statistics(now);
    FlowResult {
        name: flow.name.clone(),
        completion: completed.map(|end| end.since(start).as_secs_f64()),
        delivered,
        goodput: if lasted > 0.0 { delivered as f64 * 8.0 / lasted } else { 0.0 },
        packets: done.packets,
        retransmissions: retransmissions(client),
        blocked: Blocked {
            peer_window: done.blocked_peer_window.as_secs_f64(),
            cwnd: done.blocked_window.as_secs_f64(),
            turn: done.blocked_turn.as_secs_f64(),
        },
        timeouts: done.timeouts,
        fast_recoveries: done.fast_recoveries,
        probes: done.probes,
        duplicates: server.statistics(now).duplicates,
        outcome: outcome(client, server),
        paths: client.paths().map(|(name, path)| path_result(name, path)).collect(),
    }
}

/// Lost if either end lost it; else as the sender has it.
fn outcome(client: &SctpAgent, server: &SctpAgent) -> &'static str {
    match (client.ended(), server.ended()) {
        (Some(Ended::Lost), _) | (_, Some(Ended::Lost)) => "lost",
        (Some(Ended::Closed), _) => "closed",
        (None, _) => "open",
    }
}

/// By kind and path; a path from which nothing was sent again is not named.
fn retransmissions(client: &SctpAgent) -> Retransmissions {
    let mut again = Retransmissions::default();
    for (name, path) in client.paths() {
        for (kind, chunks) in
            [(&mut again.fast, path.fast_retransmissions), (&mut again.timeout, path.timeout_retransmissions)]
        {
            *kind.entry(name.to_owned()).or_default() += chunks;
        }
    }
    again
}

fn path_result(name: &str, path: &PathView) -> PathResult {
    PathResult {
        name: name.to_owned(),
        state: match path.state {
            PathState::Active => "active",
            PathState::PotentiallyFailed => "potentially failed",
            PathState::Inactive => "inactive",
            PathState::Unconfirmed => "unconfirmed",
            PathState::Removed => "removed",
        },
        chunks: path.chunks,
        delivered: path.delivered,
        cwnd: path.window,
        ssthresh: Some(path.ssthresh).filter(|ssthresh| *ssthresh != u64::MAX),
        srtt: path.srtt.map(|srtt: Duration| srtt.as_secs_f64()),
        rto: path.rto.as_secs_f64(),
    }
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
