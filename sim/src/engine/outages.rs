//! Outages: how each flow reacts when a link on its routes goes down.
//!
//! Only a run in which a link goes down keeps this. A path counts as failed when its sender no longer takes it for
//! active.

use anabranch_proto::policy::Why;
use anabranch_proto::{Purpose, Time};

use super::{ARRIVED, FlowParts};
use crate::transport::Agent;

/// All outages of a run.
#[derive(Default, Debug)]
pub(crate) struct Outages {
    /// Link directions that are down.
    down: Vec<usize>,
    all: Vec<Outage>,
}

/// A link of a flow that went down. The direction `n` belongs to link `n / 2`.
#[derive(Debug)]
pub(crate) struct Outage {
    pub(crate) flow: usize,
    pub(crate) link: usize,
    pub(crate) from: Time,
    /// When the link worked again.
    pub(crate) until: Option<Time>,
    /// When the sender took none of its paths over the link for active any more.
    pub(crate) detected: Option<Time>,
    /// When the sender first sent new data on a route without the link.
    pub(crate) new_data: Option<Time>,
    /// When the receiving application first read after `sent`.
    pub(crate) delivered: Option<Time>,
    /// When the sender first sent new data over the link after it worked again.
    pub(crate) returned: Option<Time>,
    /// When the sender first sent data on a route that works, and the bytes that the receiver had read by then.
    sent: Option<(Time, u64)>,
    /// Where the sender's routes over the link begin.
    routes: Vec<u32>,
}

impl Outages {
    pub(crate) fn all(&self) -> &[Outage] {
        &self.all
    }

    /// A link direction goes down, or works again.
    pub(super) fn switch(
        &mut self,
        now: Time,
        direction: usize,
        up: bool,
        flows: &[FlowParts],
        routes: &[u32],
    ) {
        let link = direction / 2;
        if up {
            self.down.retain(|down| *down != direction);
            let open = self.all.iter_mut().filter(|outage| outage.link == link && outage.until.is_none());
            open.for_each(|outage| outage.until = Some(now));
        } else if !self.down.contains(&direction) {
            self.down.push(direction);
            for (flow, parts) in flows.iter().enumerate() {
                self.begin(now, link, flow, routes_over(link, parts, routes));
            }
        }
    }

    fn begin(&mut self, now: Time, link: usize, flow: usize, routes: Vec<u32>) {
        let same = |outage: &Outage| {
            (outage.flow, outage.link) == (flow, link) && outage.until.is_none_or(|until| until == now)
        };
        if routes.is_empty() || self.all.iter().any(same) {
            return;
        }
        let (until, detected, new_data, delivered) = (None, None, None, None);
        self.all.push(Outage {
            flow,
            link,
            from: now,
            until,
            detected,
            new_data,
            delivered,
            returned: None,
            sent: None,
            routes,
        });
    }

    /// The sender of a flow sends a packet on the route that begins at `hop`; its receiver has read so many bytes.
    pub(super) fn sent(
        &mut self,
        now: Time,
        flow: usize,
        hop: u32,
        purpose: Purpose,
        routes: &[u32],
        read: u64,
    ) {
        let Purpose::Data(why) = purpose else { return };
        let works = !route(hop, routes).iter().any(|direction| self.down.contains(&(*direction as usize)));
        for outage in self.all.iter_mut().filter(|outage| outage.flow == flow && works) {
            outage.sent.get_or_insert((now, read));
            let over = route(hop, routes).iter().any(|direction| *direction as usize / 2 == outage.link);
            match why {
                Why::New if over => outage.returned = outage.returned.or(Some(now)),
                Why::New => outage.new_data = outage.new_data.or(Some(now)),
                _ => {}
            }
        }
    }

    /// The agents of a flow have been heard, the sender first.
    pub(super) fn look<A: Agent>(&mut self, now: Time, flow: usize, agents: &[A]) {
        let [sender, receiver] = agents else { return };
        for outage in self.all.iter_mut().filter(|outage| outage.flow == flow) {
            if outage.detected.is_none() && outage.routes.iter().all(|hop| sender.has_failed(*hop)) {
                outage.detected = Some(now);
            }
            if outage.delivered.is_none() && outage.sent.is_some_and(|(_, read)| receiver.read() > read) {
                outage.delivered = Some(now);
            }
        }
    }
}

/// The directions of the route that begins at `hop`.
fn route(hop: u32, routes: &[u32]) -> &[u32] {
    let rest = routes.get(hop as usize..).unwrap_or_default();
    rest.split(|entry| *entry >= ARRIVED).next().unwrap_or_default()
}

/// Where the routes of the sender of a flow over a link begin.
fn routes_over(link: usize, flow: &FlowParts, routes: &[u32]) -> Vec<u32> {
    let mut begins = Vec::new();
    let mut hop = flow.routes.start;
    while hop < flow.routes.end {
        let directions = route(hop as u32, routes);
        let end = hop + directions.len();
        let to_receiver = routes[end] == ARRIVED + flow.agents.start as u32 + 1;
        if to_receiver && directions.iter().any(|direction| *direction as usize / 2 == link) {
            begins.push(hop as u32);
        }
        hop = end + 1;
    }
    begins
}
