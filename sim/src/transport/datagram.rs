//! UDP: a sender at a constant rate, and a receiver that counts.

use std::rc::Rc;

use anabranch_proto::policy::Why;
use anabranch_proto::wire::Address;
use anabranch_proto::{Limit, PathId, Purpose, Reason, Time};

use super::{Agent, Body, Frame, Output, Routes, Site, Stage};
use crate::error::{Item, RunError};
use crate::results::FlowResult;
use crate::scenario::Traffic;
use crate::traffic::{Pace, Sink};

/// Bytes of a UDP header.
pub(crate) const UDP_HEADER: u32 = 8;

/// A UDP datagram whose user data are zeros.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The sender's address and port.
    pub from: Address,
    /// The receiver's.
    pub to: Address,
    /// Bytes of user data.
    pub payload: u32,
    /// Its number among the datagrams of its flow, from 0; 0 for cross traffic.
    pub number: u64,
}

/// One end of a UDP flow.
pub(crate) enum DatagramAgent {
    Sender(Sender),
    Receiver(Receiver),
}

/// The end that counts what arrives.
pub(crate) struct Receiver {
    sink: Sink,
    /// Bytes of user data that are still expected; `None`: without end.
    amount: Option<u64>,
    /// Bytes of user data that were dropped.
    dropped: u64,
}

/// The end that sends.
pub(crate) struct Sender {
    pace: Pace,
    /// The messages, and the beginning of their route.
    datagram: Datagram,
    route: u32,
    /// Bytes before the user data: IP and UDP.
    header: u32,
    /// Datagrams sent.
    sent: u64,
    /// The name of its only path.
    path: String,
}

/// The reason for datagrams: the application sent them.
pub(super) const REASON: Reason = Reason {
    purpose: Purpose::Data(Why::New),
    path: Some(PathId(0)),
    limit: Limit::Control,
    oversize: false,
};

/// The two ends of a UDP flow; the sender is agent number `first`.
pub(super) fn agents(site: &Site<'_>, routes: &mut Routes, first: usize) -> [DatagramAgent; 2] {
    let (client, server) = site.ends.paths.first().copied().unwrap_or_default();
    let (from, to) = (site.ends.client[client], site.ends.server[server]);
    let [local, remote] = site.addresses(site.port());
    let payload = message_size(site);
    let datagram = Datagram { from: local[client].address, to: remote[server].address, payload, number: 0 };
    let sender = Sender {
        pace: Pace::new(site.flow, payload, site.scenario.seed),
        datagram,
        route: routes.add(site.network, from, to, first + 1),
        header: header(site),
        sent: 0,
        path: site.ends.name(client, server).to_owned(),
    };
    let amount = site.flow.traffic.amount();
    let sink = Sink::new(site.flow).timing(Pace::new(site.flow, payload, site.scenario.seed), 1);
    let receiver = Receiver { sink, amount, dropped: 0 };
    [DatagramAgent::Sender(sender), DatagramAgent::Receiver(receiver)]
}

/// Whether every message fits a packet.
pub(super) fn check(site: &Site<'_>) -> Result<(), RunError> {
    let item = || Item::Flow(site.flow.name.clone());
    if matches!(site.flow.traffic, Traffic::Bulk(_)) {
        let why = "a UDP flow needs a rate: nothing else limits it";
        return Err(RunError::Value { item: item(), key: "rate", why });
    }
    match site.mtu().checked_sub(header(site)) {
        Some(most) if (1..=most).contains(&message_size(site)) => Ok(()),
        _ => {
            let why =
                "a datagram must fit the MTU of every link on its route, with its headers of IP and UDP";
            Err(RunError::Value { item: item(), key: "message_size", why })
        }
    }
}

/// Adds the results that only a UDP flow has.
pub(super) fn complete(sender: &DatagramAgent, receiver: &DatagramAgent, result: &mut FlowResult) {
    if let DatagramAgent::Sender(sender) = sender {
        result.packets = sender.sent;
    }
    result.outcome = if receiver.stage() == Stage::Over { "closed" } else { "open" };
}

fn header(site: &Site<'_>) -> u32 {
    site.ip_header() + UDP_HEADER
}

fn message_size(site: &Site<'_>) -> u32 {
    site.flow.message_size.unwrap_or_else(|| site.mtu().saturating_sub(header(site)))
}

impl DatagramAgent {
    pub(super) fn sink(&self) -> Option<&Sink> {
        match self {
            DatagramAgent::Sender(_) => None,
            DatagramAgent::Receiver(receiver) => Some(&receiver.sink),
        }
    }
}

impl Sender {
    fn next(&mut self, bytes: usize) -> Frame {
        let payload = bytes as u32;
        let datagram = Datagram { payload, number: self.sent, ..self.datagram.clone() };
        self.sent += 1;
        Frame::new(Body::Datagram(Rc::new(datagram)), payload + self.header, self.route)
    }
}

impl Receiver {
    fn finished(&self) -> bool {
        self.amount.is_some_and(|amount| self.sink.bytes() + self.dropped >= amount)
    }
}

impl Agent for DatagramAgent {
    fn handle(&mut self, now: Time, frame: Frame) {
        if let (DatagramAgent::Receiver(receiver), Body::Datagram(datagram)) = (self, frame.body) {
            receiver.sink.took(now, datagram.payload as usize);
            receiver.sink.completes_number(now, datagram.number);
        }
    }

    fn dropped(&mut self, frame: Frame) {
        if let (DatagramAgent::Receiver(receiver), Body::Datagram(datagram)) = (self, frame.body) {
            receiver.dropped += u64::from(datagram.payload);
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        let DatagramAgent::Sender(sender) = self else { return Output::Wait(None) };
        match sender.pace.due(now) {
            Some(bytes) => {
                sender.pace.taken(bytes);
                Output::Transmit(sender.next(bytes), REASON)
            }
            None => Output::Wait(sender.pace.wakes()),
        }
    }

    /// The receiver is done when all data has arrived or was dropped.
    fn stage(&self) -> Stage {
        match self {
            DatagramAgent::Sender(sender) if sender.pace.exhausted() => Stage::Over,
            DatagramAgent::Receiver(receiver) if receiver.finished() => Stage::Over,
            _ => Stage::Busy,
        }
    }

    fn path_name(&self, _: PathId) -> Option<&str> {
        match self {
            DatagramAgent::Sender(sender) => Some(&sender.path),
            DatagramAgent::Receiver(_) => None,
        }
    }
}
