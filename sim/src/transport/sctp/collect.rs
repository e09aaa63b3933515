//! The results of a flow that only SCTP has, at the end of a run.

use anabranch_proto::{Duration, PathView, Time};

use crate::observe::words;

use super::SctpAgent;
use super::line::{Ended, Line};
use crate::results::{FlowResult, HeartbeatCounts, PathResult, Retransmissions};

/// Adds the results of the associations and their paths.
pub(crate) fn complete(client: &SctpAgent, server: &SctpAgent, now: Time, result: &mut FlowResult) {
    result.paths.reserve_exact(client.lines.iter().map(|line| line.paths().count()).sum());
    for line in &client.lines {
        let done = line.statistics(now);
        result.packets += done.packets;
        result.blocked.peer_window += done.blocked_peer_window.as_secs_f64();
        result.blocked.send_buffer += done.blocked_send_buffer.as_secs_f64();
        result.blocked.cwnd += done.blocked_window.as_secs_f64();
        result.blocked.turn += done.blocked_turn.as_secs_f64();
        result.timeouts += done.timeouts;
        result.fast_recoveries += done.fast_recoveries;
        result.probes += done.probes;
        retransmissions(line, &mut result.retransmissions);
        let path = |(name, path)| path_result(name, path, blocks(line, path, now), now);
        result.paths.extend(line.paths().map(path));
    }
    result.duplicates = server.lines.iter().map(|line| line.statistics(now).duplicates).sum();
    result.outcome = outcome(client, server);
}

/// `lost` if either end lost an association, or else the sender's outcome.
fn outcome(client: &SctpAgent, server: &SctpAgent) -> &'static str {
    let mut ends = client.lines.iter().chain(&server.lines);
    match client.lines.iter().all(|line| line.ended() == Some(Ended::Closed)) {
        _ if ends.any(|line| line.ended() == Some(Ended::Lost)) => "lost",
        true => "closed",
        false => "open",
    }
}

/// Counts retransmissions by kind and path. Paths without retransmissions are left out.
fn retransmissions(line: &Line, again: &mut Retransmissions) {
    for (name, path) in line.paths() {
        for (kind, chunks) in
            [(&mut again.fast, path.fast_retransmissions), (&mut again.timeout, path.timeout_retransmissions)]
        {
            *kind.entry(name.to_owned()).or_default() += chunks;
        }
    }
}

/// How long a path has kept a buffer full until now.
fn blocks(line: &Line, path: &PathView, now: Time) -> Duration {
    let current = line.blocking(now).filter(|(by, _)| *by == path.id);
    path.blocks + current.map_or(Duration::ZERO, |(_, time)| time)
}

fn path_result(name: &str, path: &PathView, blocks: Duration, now: Time) -> PathResult {
    PathResult {
        name: name.to_owned(),
        state: words::path_state(path.state),
        chunks: path.chunks,
        delivered: path.delivered,
        cwnd: path.window,
        ssthresh: Some(path.ssthresh).filter(|ssthresh| *ssthresh != u64::MAX),
        srtt: path.srtt.map(|srtt: Duration| srtt.as_secs_f64()),
        rto: path.rto.as_secs_f64(),
        reinjected: path.reinjected,
        blocks: blocks.as_secs_f64(),
        timeouts: path.timeouts,
        tail_probes: path.tail_probes,
        heartbeats: Some(HeartbeatCounts { sent: path.heartbeats, answered: path.heartbeats_answered }),
        mean_rto: Some(path.rto_average.mean(now).as_secs_f64()),
    }
}
