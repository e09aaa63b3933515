//! What SCTP alone knows of a flow at the end of a run.

use anabranch_proto::{Duration, PathView, Time};

use crate::observe::words;

use super::{Ended, SctpAgent};
use crate::results::{Blocked, FlowResult, PathResult, Retransmissions};

/// Adds to the results what the association and its paths have done.
pub(crate) fn complete(client: &SctpAgent, server: &SctpAgent, now: Time, result: &mut FlowResult) {
    let done = client.statistics(now);
    result.packets = done.packets;
    result.retransmissions = retransmissions(client);
    result.blocked = Blocked {
        peer_window: done.blocked_peer_window.as_secs_f64(),
        send_buffer: done.blocked_send_buffer.as_secs_f64(),
        cwnd: done.blocked_window.as_secs_f64(),
        turn: done.blocked_turn.as_secs_f64(),
    };
    result.timeouts = done.timeouts;
    result.fast_recoveries = done.fast_recoveries;
    result.probes = done.probes;
    result.duplicates = server.statistics(now).duplicates;
    result.outcome = outcome(client, server);
    result.paths =
        client.paths().map(|(name, path)| path_result(name, path, blocks(client, path, now))).collect();
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

/// How long a path has kept a buffer full, up to now.
fn blocks(client: &SctpAgent, path: &PathView, now: Time) -> Duration {
    let current = client.blocking(now).filter(|(by, _)| *by == path.id);
    path.blocks + current.map_or(Duration::ZERO, |(_, time)| time)
}

fn path_result(name: &str, path: &PathView, blocks: Duration) -> PathResult {
    PathResult {
        name: name.to_owned(),
        state: words::path_state(path.state),
        chunks: path.chunks,
        delivered: path.delivered,
        cwnd: path.window,
        ssthresh: Some(path.ssthresh).filter(|ssthresh| *ssthresh != u64::MAX),
        srtt: path.srtt.map(|srtt: Duration| srtt.as_secs_f64()),
        rto: path.rto.as_secs_f64(),
        blocks: blocks.as_secs_f64(),
    }
}
