//! Other people's stacks as agents: flows with `protocol = { foreign = "NAME" }`.
//!
//! A crate outside implements [`ForeignTransport`] and gives it to a run by
//! [`RunOptions::foreign`](crate::RunOptions::foreign). A stack sees packets as bytes and virtual time. The
//! applications at both ends, the links and the results are those of every flow.

use std::net::{IpAddr, SocketAddr};

use anabranch_proto::policy::Why;
use anabranch_proto::{Duration, Limit, LocalAddress, Purpose, Reason, Time};
use bytes::Bytes;

use super::datagram::UDP_HEADER;
use super::{Agent, Body, Frame, Output, Routes, Site, Stage};
use crate::chance::stream_seed;
use crate::engine::NO_ROUTE;
use crate::error::RunError;
use crate::results::{FlowResult, ForeignResult};
use crate::traffic::{Pace, Sink};

/// A transport that this crate does not contain.
pub trait ForeignTransport {
    /// Its name in scenarios.
    fn name(&self) -> &str;
    /// The crate or program behind it, and its version: "noq-proto 1.4.0".
    fn version(&self) -> &str;
    /// Whether the same scenario and seed give the same results each time.
    fn is_repeatable(&self) -> bool;
    /// Whether its packets have a UDP header; otherwise they are SCTP in IP.
    fn is_over_udp(&self) -> bool;
    /// The two ends of a flow: the one that connects and sends first.
    ///
    /// # Errors
    /// Why the transport cannot carry this flow, in one line.
    fn ends(&self, setup: &Setup) -> Result<[Box<dyn ForeignEnd>; 2], String>;
}

/// What the ends of a flow are made for.
#[derive(Clone, Debug)]
pub struct Setup {
    /// By end: its seed, derived from that of the run.
    pub seeds: [[u8; 32]; 2],
    /// By end: its addresses, the primary first.
    pub addresses: [Vec<SocketAddr>; 2],
    /// Pairs of positions in `addresses` between which there is a path, the primary first.
    pub paths: Vec<(usize, usize)>,
    /// The largest packet of the transport, in bytes without the headers of IP and UDP.
    pub packet: u32,
}

/// One end of a flow.
pub trait ForeignEnd {
    /// The user data of a message that fits one packet, in bytes: the size of messages if the scenario names none. Not
    /// zero.
    fn message_size(&self) -> u32;
    /// The flow begins: connect, if this end does that.
    fn start(&mut self, now: Time);
    /// A packet arrived.
    fn handle(&mut self, now: Time, packet: ForeignPacket);
    /// Takes a message of the application; `false` if it has no room now. It is then asked again after every output
    /// [`ForeignOutput::Wait`].
    fn send(&mut self, now: Time, message: &Bytes) -> bool;
    /// The application sends nothing more: when everything has arrived, the flow is to be closed.
    fn finish(&mut self, now: Time);
    /// The next output; polled until it is [`ForeignOutput::Wait`]. Additional polls change nothing.
    fn poll(&mut self, now: Time) -> ForeignOutput;
    /// The stage that it has reached.
    fn stage(&self) -> ForeignStage;
}

/// A packet of a foreign transport.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForeignPacket {
    /// The sender's address and port.
    pub from: SocketAddr,
    /// The receiver's.
    pub to: SocketAddr,
    /// The packet, behind the headers of IP and UDP.
    pub bytes: Bytes,
    /// Whether it has user data, as far as its sender can say.
    pub has_data: bool,
}

/// The output of a foreign end.
#[derive(Debug)]
pub enum ForeignOutput {
    /// Send this packet.
    Transmit(ForeignPacket),
    /// The application reads so many bytes of user data.
    Read(usize),
    /// Nothing more now. Poll after the next packet, and not later than this time. If this time has passed, the end is
    /// polled again at once; an end that says so again and again without doing anything ends the run with an error.
    Wait(Option<Time>),
}

/// The stage of a foreign end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ForeignStage {
    /// Nothing has begun, and this end begins nothing.
    Idle,
    /// Something is under way.
    Busy,
    /// The flow was closed, with everything delivered.
    Closed,
    /// The flow has failed.
    Lost,
}

/// A packet on a link, with what a capture needs to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Carried {
    /// The packet.
    pub packet: ForeignPacket,
    /// Whether it has a UDP header.
    pub udp: bool,
}

/// An end of a flow with its application, as an agent.
pub(crate) struct ForeignAgent {
    end: Box<dyn ForeignEnd>,
    application: Application,
    started: bool,
    start: Time,
    /// By pair of addresses: where the route begins.
    routes: Vec<(IpAddr, IpAddr, u32)>,
    udp: bool,
    ip_header: u32,
    packets: u64,
    /// How often in a row it waited for a time that had passed.
    late: u32,
    flow: String,
    result: ForeignResult,
}

enum Application {
    Sender { pace: Pace, message: Bytes, finished: bool },
    Reader(Sink),
}

/// The number of times in a row that a stack may wait for a time that has passed.
const MOST_LATE: u32 = 1000;

/// The reason for packets: a foreign stack tells none.
const REASON: Reason =
    Reason { purpose: Purpose::Data(Why::New), path: None, limit: Limit::Control, oversize: false };

/// Whether the ends of a flow can be made.
pub(super) fn check(site: &Site<'_>, name: &str, known: &[&dyn ForeignTransport]) -> Result<(), RunError> {
    let transport = find(site, name, known)?;
    ends(site, transport).map(drop)
}

/// The two ends of a flow; the first is agent number `first`.
pub(super) fn agents(
    site: &Site<'_>,
    name: &str,
    known: &[&dyn ForeignTransport],
    routes: &mut Routes,
    first: usize,
) -> Result<[ForeignAgent; 2], RunError> {
    let transport = find(site, name, known)?;
    let [client, server] = ends(site, transport)?;
    let size = site.flow.message_size.unwrap_or_else(|| client.message_size());
    let pace = || Pace::new(site.flow, size, site.scenario.seed);
    let sender =
        Application::Sender { pace: pace(), message: vec![0; size as usize].into(), finished: false };
    let reader = Application::Reader(Sink::new(site.flow).timing(pace(), 1));
    let [there, back] = ways(site, routes, first);
    let agent = |end, application, routes| ForeignAgent {
        end,
        application,
        started: false,
        start: site.start(),
        routes,
        udp: transport.is_over_udp(),
        ip_header: site.ip_header(),
        packets: 0,
        late: 0,
        flow: site.flow.name.clone(),
        result: ForeignResult {
            name: transport.name().to_owned(),
            version: transport.version().to_owned(),
            repeatable: transport.is_repeatable(),
        },
    };
    Ok([agent(client, sender, there), agent(server, reader, back)])
}

/// Adds the results that only a foreign flow has.
pub(super) fn complete(client: &ForeignAgent, server: &ForeignAgent, result: &mut FlowResult) {
    let stages = [client, server].map(|agent| agent.end.stage());
    result.packets = client.packets;
    result.outcome = match stages {
        _ if stages.contains(&ForeignStage::Lost) => "lost",
        [ForeignStage::Closed, _] => "closed",
        _ => "open",
    };
    result.foreign = Some(client.result.clone());
}

fn find<'k>(
    site: &Site<'_>,
    name: &str,
    known: &[&'k dyn ForeignTransport],
) -> Result<&'k dyn ForeignTransport, RunError> {
    let found = known.iter().copied().find(|transport| transport.name() == name);
    found.ok_or_else(|| RunError::NoForeign {
        flow: site.flow.name.clone(),
        name: name.to_owned(),
        known: known.iter().map(|transport| transport.name().to_owned()).collect(),
    })
}

fn ends(site: &Site<'_>, transport: &dyn ForeignTransport) -> Result<[Box<dyn ForeignEnd>; 2], RunError> {
    let header = site.ip_header() + if transport.is_over_udp() { UDP_HEADER } else { 0 };
    let flow = &site.flow.name;
    let setup = Setup {
        seeds: ["client", "server"]
            .map(|end| stream_seed(site.scenario.seed, &format!("flow/{flow}/foreign/{end}"))),
        addresses: addresses(site).map(|local| {
            let socket = |local: LocalAddress| SocketAddr::new(local.address.ip, site.port());
            local.into_iter().map(socket).collect()
        }),
        paths: site.ends.paths.clone(),
        packet: site.mtu().saturating_sub(header),
    };
    let fails = |why| RunError::Foreign { flow: flow.clone(), why };
    let made = transport.ends(&setup).map_err(fails)?;
    if site.flow.message_size.is_none() && made[0].message_size() == 0 {
        return Err(fails(format!("`{}` has no room for user data in a packet", transport.name())));
    }
    Ok(made)
}

fn addresses(site: &Site<'_>) -> [Vec<LocalAddress>; 2] {
    site.addresses(0)
}

/// By end: the routes from each of its addresses to each of the other's.
fn ways(site: &Site<'_>, routes: &mut Routes, first: usize) -> [Vec<(IpAddr, IpAddr, u32)>; 2] {
    let [client, server] = addresses(site);
    let (mut there, mut back) = (Vec::new(), Vec::new());
    for (near, from) in client.iter().zip(&site.ends.client) {
        for (far, to) in server.iter().zip(&site.ends.server) {
            let (near, far) = (near.address.ip, far.address.ip);
            there.push((near, far, routes.add(site.network, *from, *to, first + 1)));
            back.push((far, near, routes.add(site.network, *to, *from, first)));
        }
    }
    [there, back]
}

impl ForeignAgent {
    /// The reading application, if this is the receiver's end.
    pub(super) fn sink(&self) -> Option<&Sink> {
        match &self.application {
            Application::Reader(sink) => Some(sink),
            Application::Sender { .. } => None,
        }
    }

    /// Gives the stack the messages that are due, and tells it when there are no more. Says whether it took anything.
    fn write(&mut self, now: Time) -> bool {
        let Application::Sender { pace, message, finished } = &mut self.application else { return false };
        let mut took = false;
        pace.set_refused(false);
        while let Some(size) = pace.due(now) {
            if self.end.send(now, &message.slice(..size)) {
                pace.taken(size);
                took = true;
            } else {
                pace.set_refused(true);
            }
        }
        if pace.exhausted() && !*finished {
            *finished = true;
            self.end.finish(now);
            took = true;
        }
        took
    }

    /// When the stack is polled next, if it waits until this time. A nanosecond passes if the time has come already.
    fn next_poll(&mut self, until: Option<Time>, now: Time) -> Option<Time> {
        if until.is_none_or(|until| until > now) {
            self.late = 0;
            return until;
        }
        self.late = self.late.saturating_add(1);
        (self.late <= MOST_LATE).then(|| now + Duration::from_nanos(1))
    }

    /// Why the run cannot go on, if the stack does nothing and waits for what has passed.
    pub(super) fn stuck(&self) -> Option<RunError> {
        let why = || format!("`{}` waits again and again for a time that has passed", self.result.name);
        (self.late > MOST_LATE).then(|| RunError::Foreign { flow: self.flow.clone(), why: why() })
    }

    fn frame(&mut self, packet: ForeignPacket) -> Frame {
        self.late = 0;
        self.packets += 1;
        let (from, to) = (packet.from.ip(), packet.to.ip());
        let route = self.routes.iter().find(|(near, far, _)| (*near, *far) == (from, to));
        let hop = route.map_or(NO_ROUTE, |(_, _, hop)| *hop);
        let header = self.ip_header + if self.udp { UDP_HEADER } else { 0 };
        let size = header + packet.bytes.len() as u32;
        Frame::new(Body::Foreign(Box::new(Carried { packet, udp: self.udp })), size, hop)
    }
}

impl Agent for ForeignAgent {
    fn handle(&mut self, now: Time, frame: Frame) {
        if let Body::Foreign(carried) = frame.body {
            self.end.handle(now, carried.packet);
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        if !self.started && now >= self.start {
            self.started = true;
            self.end.start(now);
        }
        let own = loop {
            match self.end.poll(now) {
                ForeignOutput::Transmit(packet) => return Output::Transmit(self.frame(packet), REASON),
                ForeignOutput::Read(bytes) => {
                    self.late = 0;
                    if let Application::Reader(sink) = &mut self.application {
                        sink.took(now, bytes);
                        sink.completes_bytes(now);
                    }
                }
                // What it has just learned may have made room for a message.
                ForeignOutput::Wait(_) if self.write(now) => self.late = 0,
                ForeignOutput::Wait(until) => break until,
            }
        };
        let own = self.next_poll(own, now);
        let start = (!self.started).then_some(self.start);
        let writes = match &self.application {
            Application::Sender { pace, .. } => pace.wakes(),
            Application::Reader(_) => None,
        };
        Output::Wait(own.into_iter().chain(start).chain(writes).min())
    }

    fn stage(&self) -> Stage {
        match (self.end.stage(), &self.application) {
            (ForeignStage::Closed | ForeignStage::Lost, _) => Stage::Over,
            (ForeignStage::Idle, Application::Reader(_)) => Stage::Idle,
            _ => Stage::Busy,
        }
    }
}
