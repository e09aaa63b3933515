//! What the engine tells an observer, with what only an observer asks for: why a packet was sent, also where it
//! has come a long way since.

use std::collections::BTreeMap;

use anabranch_proto::wire::Packet;
use anabranch_proto::{Note, Reason, Time};

use crate::engine::{ARRIVED, NO_ROUTE};
use crate::medium::wire::Occupancy;
use crate::medium::wire::{Carried, DropCause};
use crate::observe::trace::{Observer, Origin, QueueLength, Record, Shown, Side};
use crate::transport::{Body, Frame};

/// An observer, and where the packets under way come from.
pub(crate) struct Observed<'a> {
    observer: &'a mut dyn Observer,
    /// By the address of its packet in memory, which is the same from the sender's hands to the receiver's: a
    /// number in every frame would make it longer, observed or not. Nothing depends on the addresses' order.
    origins: BTreeMap<usize, Sent>,
}

/// The origin of a packet under way.
struct Sent {
    side: Side,
    path: Option<String>,
    reason: Reason,
}

impl<'a> Observed<'a> {
    pub(crate) fn new(observer: &'a mut dyn Observer) -> Self {
        Observed { observer, origins: BTreeMap::new() }
    }

    pub(crate) fn note(&mut self, agent: usize, path: Option<&str>, note: &Note) {
        let (flow, side) = whose(agent);
        self.observer.record(note.at, &Record::Note { flow, side, path, kind: &note.kind });
    }

    pub(crate) fn sent(&mut self, at: Time, agent: usize, path: Option<&str>, reason: Reason, frame: &Frame) {
        let (flow, side) = whose(agent);
        let packet = Shown {
            size: frame.size,
            sctp: sctp(frame),
            hops: 0,
            origin: Some(Origin { side, path, reason }),
        };
        self.observer.record(at, &Record::Sent { flow, side, path, reason, packet });
        if let Some(key) = key(frame).filter(|_| frame.hop != NO_ROUTE) {
            self.origins.insert(key, Sent { side, path: path.map(str::to_owned), reason });
        }
    }

    /// A packet has entered a queue, whose only one it may be.
    pub(crate) fn queued(
        &mut self,
        at: Time,
        link: usize,
        carried: &Carried,
        queue: &Occupancy,
        routes: &[u32],
    ) {
        self.show(&carried.frame, routes, |observer, flow, packet| {
            observer.record(at, &Record::Queued { link, flow, packet, queue: length(queue) });
        });
        if queue.packets() == 1 {
            self.started(at, link, carried, routes);
        }
    }

    /// A packet has left a queue, and the next one's turn has come.
    pub(crate) fn departed(
        &mut self,
        at: Time,
        link: usize,
        queue: &Occupancy,
        next: Option<&Carried>,
        routes: &[u32],
    ) {
        self.observer.record(at, &Record::Departed { link, queue: length(queue) });
        if let Some(next) = next {
            self.started(at, link, next, routes);
        }
    }

    fn started(&mut self, at: Time, link: usize, carried: &Carried, routes: &[u32]) {
        let number = carried.offered;
        self.show(&carried.frame, routes, |observer, flow, packet| {
            observer.record(at, &Record::Started { link, flow, number, packet });
        });
    }

    pub(crate) fn dropped(
        &mut self,
        at: Time,
        link: usize,
        number: u64,
        cause: DropCause,
        frame: &Frame,
        routes: &[u32],
    ) {
        self.show(frame, routes, |observer, flow, packet| {
            observer.record(at, &Record::Dropped { link, flow, number, cause, packet });
        });
        self.forget(frame);
    }

    pub(crate) fn delivered(&mut self, at: Time, link: usize, frame: &Frame, routes: &[u32]) {
        self.show(frame, routes, |observer, flow, packet| {
            observer.record(at, &Record::Delivered { link, flow, packet });
        });
        if routes[frame.hop as usize + 1] >= ARRIVED {
            self.forget(frame);
        }
    }

    fn show(
        &mut self,
        frame: &Frame,
        routes: &[u32],
        record: impl FnOnce(&mut dyn Observer, usize, Shown<'_>),
    ) {
        let origin = key(frame).and_then(|key| self.origins.get(&key)).map(|sent| Origin {
            side: sent.side,
            path: sent.path.as_deref(),
            reason: sent.reason,
        });
        let (flow, hops) = way(frame, routes);
        record(self.observer, flow, Shown { size: frame.size, sctp: sctp(frame), hops, origin });
    }

    fn forget(&mut self, frame: &Frame) {
        if let Some(key) = key(frame) {
            self.origins.remove(&key);
        }
    }
}

fn whose(agent: usize) -> (usize, Side) {
    (agent / 2, if agent.is_multiple_of(2) { Side::Client } else { Side::Server })
}

/// The flow of a frame, that of the agent at the end of its route, and how many links are behind it.
fn way(frame: &Frame, routes: &[u32]) -> (usize, u32) {
    let (behind, ahead) = routes.split_at(frame.hop as usize);
    let agent =
        ahead.iter().find_map(|next| next.checked_sub(ARRIVED)).expect("every route ends at an agent");
    let hops = behind.iter().rev().take_while(|link| **link < ARRIVED).count();
    (agent as usize / 2, hops as u32)
}

fn length(queue: &Occupancy) -> QueueLength {
    QueueLength { packets: queue.packets(), bytes: queue.bytes() }
}

fn sctp(frame: &Frame) -> Option<&Packet> {
    match &frame.body {
        Body::Sctp(packet) => Some(packet),
        #[cfg(test)]
        Body::Plain => None,
    }
}

fn key(frame: &Frame) -> Option<usize> {
    sctp(frame).map(|packet| std::ptr::from_ref(packet).addr())
}
