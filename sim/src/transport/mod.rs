//! The transports of flows: the agents at the ends of a flow, and the frames that they send.
//!
//! An agent has the same shape as `anabranch_proto::Endpoint`, so that any protocol can carry a flow. A transport is
//! a variant of [`End`], a folder that builds its agents, a variant of [`Transport`](crate::scenario::Transport), and
//! one of [`Protocol`], which says what its records mean.

pub(crate) mod cross;
pub(crate) mod datagram;
pub(crate) mod ends;
pub mod foreign;
pub(crate) mod gate;
pub(crate) mod mptcp;
mod protocol;
pub(crate) mod sctp;
mod site;
pub(crate) mod tcp;

use std::rc::Rc;

use anabranch_proto::wire::{Chunk, Ecn, Packet, Spares};
use anabranch_proto::{Note, Noting, PathId, Policies, Reason, Time};

use crate::error::RunError;
use crate::observe::trace::Detail;
use crate::results::FlowResult;
use crate::scenario::Transport;
use crate::traffic::Sink;

use cross::CrossAgent;
pub use datagram::Datagram;
use datagram::DatagramAgent;
use foreign::{Carried, ForeignAgent, ForeignTransport};
use gate::{Gate, RawPacket};
use mptcp::MptcpAgent;
pub use mptcp::{AddAddress, DataAck, Dss, Handshake, Mapping, MptcpOptions, RareOptions};
pub use protocol::Protocol;
use sctp::SctpAgent;
pub(crate) use site::{IPV6_HEADER, Routes, Site};
use tcp::TcpAgent;
pub use tcp::{Segment, Sequence, TcpPacket};

/// Hears notes that were kept, and the names of their paths.
pub(crate) type HearKept<'a> = &'a mut dyn FnMut(&[Note], &[(PathId, Option<&str>)]);
/// Hears a detail: its time, the path that it concerns with its name, and the detail.
pub(crate) type Hear<'a> = &'a mut dyn FnMut(Time, Option<(PathId, Option<&str>)>, &Detail);

/// One agent of a flow.
pub(crate) trait Agent {
    /// A frame arrived. The agent is polled afterwards.
    fn handle(&mut self, now: Time, frame: Frame);
    /// As `handle`. The agent may give the memory of a packet to others, or take it.
    #[inline]
    fn handle_with(&mut self, _memory: &mut Spares, now: Time, frame: Frame) {
        self.handle(now, frame);
    }
    /// A frame for this agent was dropped. No transport may react to it; it is used to find out when a flow is over.
    fn dropped(&mut self, _: Frame) {}
    /// The next output; polled until it is `Wait`. Additional polls change nothing.
    fn poll(&mut self, now: Time) -> Output;
    /// Whether a packet that arrives at the time for which the agent waits is handled before the agent acts.
    fn lets_arrivals_go_first(&self) -> bool {
        false
    }
    /// The stage that it has reached.
    fn stage(&self) -> Stage;
    /// The name of a path, for observers. A transport of one path has none.
    fn path_name(&self, _: PathId) -> Option<&str> {
        None
    }
    /// Tells the details that the next polls would return, without those polls. An agent may leave details to its
    /// polls.
    fn tell_details(&mut self, _now: Time, _hear: Hear<'_>) {}
    /// Tells the details that it has kept since the last call.
    fn tell_kept(&mut self, _hear: HearKept<'_>) {}
    /// Whether the agent regards the path whose route begins at `hop` as failed.
    fn has_failed(&self, _: u32) -> bool {
        false
    }
    /// Bytes that its application has read.
    fn read(&self) -> u64 {
        0
    }
}

/// The output of an agent.
#[derive(Debug)]
pub(crate) enum Output {
    /// Send this frame into the first link of its route.
    Transmit(Frame, Reason),
    /// A detail for observers: its time, its path if it belongs to one, and the detail.
    /// [`Agent::tell_details`] may have further ones.
    Detail(Time, Option<PathId>, Detail),
    /// Nothing more now. Poll after the next packet, and not later than this time. The time may be too early, never
    /// too late. `None`, as well as [`Time::NEVER`]: no timer runs.
    Wait(Option<Time>),
}

/// The earlier of two times. `None`: never.
#[inline]
pub(crate) fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, None) => a,
        (None, b) => b,
    }
}

/// The stage of an agent.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Nothing has begun. An agent that initiates a flow is busy from the start.
    Idle,
    /// Something is under way.
    Busy,
    /// Everything is done or lost.
    Over,
}

/// A frame on a medium. A medium looks only at its size. The end of its route tells its destination, and so its flow.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) body: Body,
    /// Distinguishes the frame from all others of the run: the engine numbers frames from 1 in the order of sending.
    /// The highest bit means that IP may fragment it.
    pub(crate) id: u64,
    /// Bytes, IP header included.
    pub(crate) size: u32,
    /// Its entry in the table of routes, at its present link direction.
    pub(crate) hop: u32,
}

const FRAGMENTABLE: u64 = 1 << 63;

impl Frame {
    /// A frame that was not sent yet.
    pub(crate) fn new(body: Body, size: u32, hop: u32) -> Self {
        Frame { body, id: 0, size, hop }
    }

    /// Its number among the frames of the run.
    pub(crate) fn number(&self) -> u64 {
        self.id & !FRAGMENTABLE
    }

    /// Allows IP to fragment it: its sender knows that it is larger than the path's MTU.
    pub(crate) fn set_fragmentable(&mut self) {
        self.id |= FRAGMENTABLE;
    }

    /// Whether IP may fragment it.
    pub(crate) fn is_fragmentable(&self) -> bool {
        self.id & FRAGMENTABLE != 0
    }

    /// Marks it for congestion (ECN), if its transport supports that.
    pub(crate) fn mark(&mut self) {
        if let Body::Sctp(packet) = &mut self.body
            && packet.ecn != Ecn::NotEct
        {
            packet.ecn = Ecn::Ce;
        }
    }
}

/// The contents of a frame.
#[derive(Debug)]
pub(crate) enum Body {
    /// An SCTP packet.
    Sctp(Box<Packet>),
    /// A TCP segment.
    Tcp(Box<TcpPacket>),
    /// A UDP datagram; of cross traffic the same for all of its kind.
    Datagram(Rc<Datagram>),
    /// An IP packet of a program outside the simulator.
    Raw(Box<RawPacket>),
    /// A packet of a foreign transport.
    Foreign(Box<Carried>),
}

impl Body {
    /// Whether it is an SCTP packet with nothing but SACKs.
    pub(crate) fn is_sack(&self) -> bool {
        let is_sack = |chunk: &Chunk| matches!(chunk, Chunk::Sack(_) | Chunk::NrSack(_));
        matches!(self, Body::Sctp(packet) if packet.chunks.iter().all(is_sack))
    }

    /// Whether it has user data.
    pub(crate) fn has_data(&self) -> bool {
        match self {
            Body::Sctp(packet) => match &packet.chunks[..] {
                // The usual packets hold one of these two.
                [Chunk::Data(_)] => true,
                [Chunk::Sack(_)] => false,
                all => all.iter().any(|chunk| matches!(chunk, Chunk::Data(_) | Chunk::IData(_))),
            },
            Body::Tcp(packet) => packet.segment.length > 0,
            Body::Datagram(_) | Body::Raw(_) => true,
            Body::Foreign(carried) => carried.packet.has_data,
        }
    }
}

/// An agent of a flow, of any protocol.
pub(crate) enum End {
    Sctp(SctpAgent),
    Tcp(Box<TcpAgent>),
    Mptcp(Box<MptcpAgent>),
    Datagram(DatagramAgent),
    Cross(CrossAgent),
    Gate(Gate),
    Foreign(Box<ForeignAgent>),
}

/// Calls the same method of every kind of agent.
macro_rules! whichever {
    ($end:expr, $agent:ident => $call:expr) => {
        match $end {
            End::Sctp($agent) => $call,
            End::Tcp($agent) => $call,
            End::Mptcp($agent) => $call,
            End::Datagram($agent) => $call,
            End::Cross($agent) => $call,
            End::Gate($agent) => $call,
            End::Foreign($agent) => $call,
        }
    };
}

// The engine calls these several times for each packet. Most packets are SCTP's, so its agents are asked in place and
// the others apart.
impl Agent for End {
    fn handle(&mut self, now: Time, frame: Frame) {
        whichever!(self, agent => agent.handle(now, frame));
    }

    #[inline(always)]
    fn handle_with(&mut self, memory: &mut Spares, now: Time, frame: Frame) {
        match self {
            End::Sctp(agent) => agent.handle_with(memory, now, frame),
            // No other agent exchanges memory.
            other => other.handle(now, frame),
        }
    }

    fn dropped(&mut self, frame: Frame) {
        whichever!(self, agent => agent.dropped(frame));
    }

    #[inline(always)]
    fn poll(&mut self, now: Time) -> Output {
        match self {
            End::Sctp(agent) => agent.poll(now),
            other => other.poll_apart(now),
        }
    }

    fn lets_arrivals_go_first(&self) -> bool {
        whichever!(self, agent => agent.lets_arrivals_go_first())
    }

    #[inline(always)]
    fn stage(&self) -> Stage {
        match self {
            End::Sctp(agent) => agent.stage(),
            other => other.stage_apart(),
        }
    }

    fn path_name(&self, path: PathId) -> Option<&str> {
        whichever!(self, agent => agent.path_name(path))
    }

    fn tell_details(&mut self, now: Time, hear: Hear<'_>) {
        whichever!(self, agent => agent.tell_details(now, hear));
    }

    fn tell_kept(&mut self, hear: HearKept<'_>) {
        whichever!(self, agent => agent.tell_kept(hear));
    }

    fn has_failed(&self, hop: u32) -> bool {
        whichever!(self, agent => agent.has_failed(hop))
    }

    fn read(&self) -> u64 {
        self.sink().map_or(0, Sink::bytes)
    }
}

impl End {
    #[inline(never)]
    fn poll_apart(&mut self, now: Time) -> Output {
        whichever!(self, agent => agent.poll(now))
    }

    #[inline(never)]
    fn stage_apart(&self) -> Stage {
        whichever!(self, agent => agent.stage())
    }

    /// Switches its details on or off. Only SCTP distinguishes more.
    pub(crate) fn set_details(&mut self, noting: Noting) {
        let on = noting != Noting::Off;
        match self {
            End::Sctp(agent) => agent.set_noting(noting),
            End::Tcp(agent) => agent.set_details(on),
            End::Mptcp(agent) => agent.set_details(on),
            End::Datagram(_) | End::Cross(_) | End::Gate(_) | End::Foreign(_) => {}
        }
    }

    /// Why the run cannot go on, if a stack of other people is at fault.
    pub(crate) fn stuck(&self) -> Option<RunError> {
        match self {
            End::Foreign(agent) => agent.stuck(),
            _ => None,
        }
    }

    /// The reading application, if this is the receiver's end.
    pub(crate) fn sink(&self) -> Option<&Sink> {
        match self {
            End::Sctp(agent) => agent.sink(),
            End::Tcp(agent) => agent.sink(),
            End::Mptcp(agent) => agent.sink(),
            End::Datagram(agent) => agent.sink(),
            End::Foreign(agent) => agent.sink(),
            End::Cross(_) | End::Gate(_) => None,
        }
    }
}

/// What others have added to the simulator.
#[derive(Copy, Clone)]
pub(crate) struct PlugIns<'a> {
    pub(crate) policies: &'a Policies,
    pub(crate) foreign: &'a [&'a dyn ForeignTransport],
}

/// Checks whether the agents of a flow can be created.
pub(crate) fn check(site: &Site<'_>, plug_ins: PlugIns<'_>) -> Result<(), RunError> {
    let PlugIns { policies, foreign } = plug_ins;
    match &site.flow.transport {
        Transport::Sctp(sctp) => sctp::check(site, sctp, policies),
        Transport::Tcp(tcp) => tcp::check(site, tcp, policies),
        Transport::Mptcp(mptcp) => mptcp::check(site, mptcp, policies),
        Transport::Datagram => datagram::check(site),
        Transport::Foreign(name) => foreign::check(site, name, foreign),
    }
}

/// The agents of a flow, the initiator first. Their routes are added to `routes`. The first agent has the number
/// `first`, the others follow.
pub(crate) fn agents(
    site: &Site<'_>,
    plug_ins: PlugIns<'_>,
    routes: &mut Routes,
    first: usize,
) -> Result<Vec<End>, RunError> {
    let PlugIns { policies, foreign } = plug_ins;
    match &site.flow.transport {
        Transport::Sctp(sctp) => {
            let agents = sctp::agents(site, sctp, policies, routes, first)?;
            Ok(agents.map(End::Sctp).into())
        }
        Transport::Tcp(tcp) => {
            let agents = tcp::agents(site, tcp, policies, routes, first)?;
            Ok(agents.map(|agent| End::Tcp(Box::new(agent))).into())
        }
        Transport::Mptcp(mptcp) => {
            let agents = mptcp::agents(site, mptcp, policies, routes, first)?;
            Ok(agents.map(|agent| End::Mptcp(Box::new(agent))).into())
        }
        Transport::Datagram => Ok(datagram::agents(site, routes, first).map(End::Datagram).into()),
        Transport::Foreign(name) => {
            let agents = foreign::agents(site, name, foreign, routes, first)?;
            Ok(agents.map(|agent| End::Foreign(Box::new(agent))).into())
        }
    }
}

/// Adds the results that only the transport of a flow knows at the end of a run.
pub(crate) fn complete(ends: &[End], now: Time, result: &mut FlowResult) {
    match ends {
        [End::Sctp(client), End::Sctp(server)] => sctp::complete(client, server, now, result),
        [End::Tcp(client), End::Tcp(server)] => tcp::complete(client, server, result),
        [End::Mptcp(client), End::Mptcp(server)] => mptcp::complete(client, server, now, result),
        [End::Datagram(sender), End::Datagram(receiver)] => datagram::complete(sender, receiver, result),
        [End::Foreign(client), End::Foreign(server)] => foreign::complete(client, server, result),
        _ => unreachable!("the agents of a flow are of one transport"),
    }
}
