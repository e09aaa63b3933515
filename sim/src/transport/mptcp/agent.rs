//! The agent for one end of a Multipath TCP flow, with its application.

use std::collections::VecDeque;

use anabranch_proto::{Duration, PathId, PathState, Time};

use super::connection::{Connection, ConnectionOutput};
use crate::observe::trace::Detail;
use crate::observe::words;
use crate::results::{FlowResult, PathResult};
use crate::traffic::Sink;
use crate::transport::tcp::{Application, Place};
use crate::transport::{Agent, Body, Frame, Output, Stage, earlier};

/// One end of a Multipath TCP flow.
pub(crate) struct MptcpAgent {
    pub(super) connection: Connection,
    pub(super) application: Application,
    /// By path.
    pub(super) places: Vec<Place>,
    /// By path: the entry in the table of routes at which its packets arrive here.
    pub(super) arrivals: Vec<u32>,
    pub(super) details: VecDeque<(Time, Option<PathId>, Detail)>,
    pub(super) details_on: bool,
}

impl MptcpAgent {
    /// Switches detailed records on or off.
    pub(crate) fn set_details(&mut self, on: bool) {
        self.details_on = on;
        self.connection.set_notes(on);
    }

    /// The reading application, if this is the receiving end.
    pub(crate) fn sink(&self) -> Option<&Sink> {
        self.application.sink()
    }
}

impl Agent for MptcpAgent {
    fn handle(&mut self, now: Time, frame: Frame) {
        let Body::Tcp(packet) = frame.body else { return };
        if let Some(path) = self.arrivals.iter().position(|entry| *entry == frame.hop) {
            self.application.arrived();
            self.connection.handle(now, path, &packet.segment);
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        if !self.application.act(now, &mut self.connection) {
            return Output::Wait(self.application.wakes());
        }
        if !self.details_on
            && let Some(until) = self.connection.rest(now)
        {
            return Output::Wait(earlier(until, self.application.wakes()));
        }
        let said = self.connection.poll(now);
        if self.details_on {
            self.details.extend(self.connection.take_details());
        }
        match said {
            ConnectionOutput::Transmit(path, packet, reason) => {
                Output::Transmit(self.places[path].frame(packet), reason)
            }
            ConnectionOutput::Wait(until) => match self.details.pop_front() {
                Some((at, path, detail)) => Output::Detail(at, path, detail),
                None => Output::Wait(earlier(until, self.application.wakes())),
            },
        }
    }

    #[inline(always)]
    fn stage(&self) -> Stage {
        match () {
            () if self.connection.is_over() && !self.application.reads(&self.connection) => Stage::Over,
            () if self.connection.is_idle() && !self.application.is_sender() => Stage::Idle,
            () => Stage::Busy,
        }
    }

    fn path_name(&self, path: PathId) -> Option<&str> {
        self.places.get(usize::from(path.0)).map(|place| place.path.as_str())
    }

    fn has_failed(&self, hop: u32) -> bool {
        let path = self.places.iter().position(|place| place.route == hop);
        let failed =
            |path| matches!(self.connection.state(path), PathState::PotentiallyFailed | PathState::Inactive);
        path.is_some_and(failed)
    }
}

/// The results of a flow that only Multipath TCP has, at the end of a run.
pub(crate) fn complete(client: &MptcpAgent, server: &MptcpAgent, now: Time, result: &mut FlowResult) {
    let connection = &client.connection;
    let waited = connection.waited(now);
    result.blocked.peer_window = waited.peer_window.as_secs_f64();
    result.blocked.send_buffer = waited.send_buffer.as_secs_f64();
    result.blocked.cwnd = waited.window.as_secs_f64();
    result.blocked.turn = waited.turn.as_secs_f64();
    result.outcome = match () {
        () if connection.is_lost() || server.connection.is_lost() => "lost",
        () if connection.is_closed() => "closed",
        () => "open",
    };
    result.probes = connection.probe.count;
    for (path, place) in client.places.iter().enumerate() {
        let subflow = &connection.subflows[path];
        let (done, facts, name) = (subflow.tcp.counts(), subflow.tcp.path(), place.path.clone());
        result.packets += done.segments;
        result.timeouts += done.timeouts;
        result.fast_recoveries += done.fast_recoveries;
        result.probes += done.probes;
        result.duplicates += server.connection.subflows[path].tcp.duplicates();
        *result.retransmissions.fast.entry(name.clone()).or_default() += done.fast_retransmissions;
        *result.retransmissions.timeout.entry(name.clone()).or_default() += done.timeout_retransmissions;
        let current = connection.blocked.blocking(now).filter(|(by, _)| *by == path);
        let blocks = subflow.blocks + current.map_or(Duration::ZERO, |(_, time)| time);
        result.paths.push(PathResult {
            name,
            state: words::path_state(connection.state(path)),
            chunks: facts.segments,
            delivered: facts.delivered,
            cwnd: facts.cwnd,
            ssthresh: Some(facts.ssthresh).filter(|ssthresh| *ssthresh != u64::MAX),
            srtt: facts.srtt.map(|srtt| srtt.as_secs_f64()),
            rto: facts.rto.as_secs_f64(),
            reinjected: subflow.reinjected,
            blocks: blocks.as_secs_f64(),
            tail_probes: 0,
            timeouts: done.timeouts,
            heartbeats: None,
            mean_rto: None,
        });
    }
}
