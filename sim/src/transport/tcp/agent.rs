//! The agent for one end of a TCP flow, with its application.

use std::collections::VecDeque;

use anabranch_proto::policy::Why as Data;
use anabranch_proto::{Limit, PathId, Purpose, Reason, Time};

use super::application::{Application, Place};
use super::connection::{Connection, Output as ConnectionOutput, State};
use super::segment::{TcpNote, Why};
use crate::observe::trace::Detail;
use crate::results::{FlowResult, PathResult};
use crate::traffic::Sink;
use crate::transport::{Agent, Body, Frame, Output, Stage, earlier};

/// One end of a TCP flow.
pub(crate) struct TcpAgent {
    pub(super) connection: Connection,
    pub(super) application: Application,
    pub(super) place: Place,
    pub(super) details: VecDeque<(Time, TcpNote)>,
    pub(super) details_on: bool,
}

impl TcpAgent {
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

impl Agent for TcpAgent {
    fn handle(&mut self, now: Time, frame: Frame) {
        if let Body::Tcp(packet) = frame.body {
            self.application.arrived();
            self.connection.handle(now, &packet.segment);
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        if !self.application.act(now, &mut self.connection) {
            return Output::Wait(self.application.wakes());
        }
        if !self.details_on
            && let Some(until) = self.connection.rests(now)
        {
            return Output::Wait(earlier(until, self.application.wakes()));
        }
        let said = self.connection.poll(now);
        if self.details_on {
            self.details.extend(self.connection.take_notes());
        }
        match said {
            ConnectionOutput::Transmit(packet, why) => {
                Output::Transmit(self.place.frame(packet), reason(why, PathId(0)))
            }
            ConnectionOutput::Wait(until) => match self.details.pop_front() {
                Some((at, note)) => detail(at, note),
                None => Output::Wait(earlier(until, self.application.wakes())),
            },
        }
    }

    fn lets_arrivals_go_first(&self) -> bool {
        self.connection.lets_arrivals_go_first()
    }

    fn stage(&self) -> Stage {
        match self.connection.state() {
            State::Closed | State::Lost if !self.application.reads(&self.connection) => Stage::Over,
            State::Listen if !self.application.is_sender() => Stage::Idle,
            _ => Stage::Busy,
        }
    }

    fn path_name(&self, _: PathId) -> Option<&str> {
        Some(&self.place.path)
    }
}

/// The results of a flow that only TCP has, at the end of a run.
pub(crate) fn complete(client: &TcpAgent, server: &TcpAgent, result: &mut FlowResult) {
    let (done, path) = (client.connection.counts(), client.connection.path());
    result.packets = done.segments;
    result.timeouts = done.timeouts;
    result.fast_recoveries = done.fast_recoveries;
    result.probes = done.probes;
    result.duplicates = server.connection.duplicates();
    result.outcome = match (client.connection.state(), server.connection.state()) {
        (State::Lost, _) | (_, State::Lost) => "lost",
        (State::Closed, _) => "closed",
        _ => "open",
    };
    let name = client.place.path.clone();
    result.retransmissions.fast.insert(name.clone(), done.fast_retransmissions);
    result.retransmissions.timeout.insert(name.clone(), done.timeout_retransmissions);
    result.paths = vec![PathResult {
        name,
        state: "active",
        chunks: path.segments,
        delivered: path.delivered,
        cwnd: path.cwnd,
        ssthresh: Some(path.ssthresh).filter(|ssthresh| *ssthresh != u64::MAX),
        srtt: path.srtt.map(|srtt| srtt.as_secs_f64()),
        rto: path.rto.as_secs_f64(),
        reinjected: 0,
        blocks: 0.0,
        timeouts: done.timeouts,
        tail_probes: 0,
        heartbeats: None,
        mean_rto: None,
    }];
}

fn detail(at: Time, note: TcpNote) -> Output {
    Output::Detail(at, Some(PathId(0)), told(note))
}

/// Converts a note to the form that observers get.
pub(crate) fn told(note: TcpNote) -> Detail {
    match note {
        TcpNote::Window { cwnd, cwnd_segments, ssthresh, flight, marked } => {
            Detail::Window { cwnd, ssthresh, flight, marked, segments: Some(cwnd_segments) }
        }
        TcpNote::Rto { rto, srtt, rtt } => Detail::Rto { rto, srtt, rtt },
        TcpNote::PeerWindow { bytes } => Detail::PeerWindow { bytes },
        TcpNote::Blocked(by) => Detail::Blocked(by),
        TcpNote::Sent { sequence, size, why } => Detail::Sent { number: sequence, size, why: data(why) },
        TcpNote::Marked { sequence, why } => Detail::Marked { number: sequence, why: data(why) },
        TcpNote::Timeout => Detail::Timeout,
        TcpNote::Acked { bytes } => Detail::Acked { cumulative: bytes },
    }
}

/// As `told`, for data only.
pub(crate) fn data(why: Why) -> Data {
    match why {
        Why::Missing => Data::Missing,
        Why::Timeout => Data::Timeout,
        Why::WindowProbe => Data::WindowProbe,
        Why::New | Why::Setup | Why::Acknowledgement | Why::Close => Data::New,
    }
}

/// The reason for which a segment leaves on a path, in the form that observers get.
pub(crate) fn reason(why: Why, path: PathId) -> Reason {
    let (purpose, limit) = match why {
        Why::Setup => (Purpose::Setup, Limit::Control),
        Why::Acknowledgement => (Purpose::Sack, Limit::Control),
        Why::Close => (Purpose::Shutdown, Limit::Control),
        Why::WindowProbe => (Purpose::Data(data(why)), Limit::Granted),
        Why::New | Why::Missing | Why::Timeout => (Purpose::Data(data(why)), Limit::Window),
    };
    Reason { purpose, path: Some(path), limit, oversize: false }
}
