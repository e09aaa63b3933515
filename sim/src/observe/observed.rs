//! Reports to observers, with values that are computed only for them: for example why a packet was sent, also on
//! later hops.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use anabranch_proto::policy::Why;
use anabranch_proto::{Blocked, Duration, Note, PathId, Purpose, Reason, Time};

use crate::engine::{ARRIVED, NO_ROUTE};
use crate::medium::wire::Occupancy;
use crate::medium::wire::{Carried, DropCause};
use crate::observe::trace::{
    Contents, Detail, Details, Observer, Origin, PacketView, QueueChange, QueueLength, QueueRecord,
    RadioFrame, Record, Side, Stay, Wait, Wants,
};
use crate::transport::{Body, Frame};

/// The least number of packets in a queue that are shown together.
const BATCH: usize = 128;
/// After so many polls for each agent, counted over all of them, they tell the details that they have kept.
const POLLS: u32 = 32;

/// An observer, and the origins of the packets in flight.
pub(crate) struct Observed<'a> {
    observer: &'a mut dyn Observer,
    /// Whether the observer uses the records of packets and their origins.
    packets: bool,
    /// Whether it uses the lengths of queues.
    lengths: bool,
    /// Whether it uses what applications read.
    reads: bool,
    /// Whether departures from any link are shown when they happen.
    awaits: bool,
    /// No packet leaves a queue earlier.
    pub(crate) leaves: Time,
    /// Whether the observer takes many records together; then it uses no packets.
    batches: bool,
    /// By link direction.
    coming: Vec<Coming>,
    /// After so many polls all agents tell their details.
    polls: u32,
    origins: Origins,
    /// By entry of the table of routes.
    ways: Vec<Way>,
    /// By agent: its flow, and its end of it.
    agents: Vec<(usize, Side)>,
    /// By agent: the bytes that its application had read at the last report.
    read: Vec<u64>,
    /// By agent.
    blocking: BTreeMap<usize, Blocking>,
}

/// What has come to a link direction.
struct Coming {
    /// Whether the record of a packet that comes says when it leaves the queue.
    certain: bool,
    /// Such packets that were shown and were still there when the last of them came, that one included; then those that
    /// were not shown yet. Packets that run ahead come after now.
    stays: Vec<Stay>,
    /// The number of the former.
    shown: usize,
}

impl Coming {
    fn new(certain: bool) -> Self {
        Coming { certain, stays: Vec::new(), shown: 0 }
    }

    /// Shows so many of the packets, from the first, and forgets those that have left when the last of them comes.
    fn show(&mut self, link: usize, past: usize, observer: &mut dyn Observer) {
        let Coming { stays, shown, .. } = self;
        if past == *shown {
            return;
        }
        observer.queue(&QueueRecord::Came { link, stays: &stays[..past], before: *shown });
        let last = past - 1;
        let left = stays[..last].partition_point(|stay| stay.leaves <= stays[last].at);
        stays.drain(..left);
        *shown = past - left;
    }
}

/// A place on a route.
#[derive(Copy, Clone, Debug)]
struct Way {
    flow: usize,
    /// The number of links before it.
    hops: u32,
}

/// The origin of a packet in flight.
struct Sent {
    side: Side,
    path: Option<Rc<str>>,
    reason: Reason,
    wait: Option<(Blocked, Rc<str>, Duration)>,
}

/// The origins of the packets in flight, in the order of sending: frames are numbered in it.
#[derive(Default)]
struct Origins {
    /// The number of the first frame in `sent`.
    first: u64,
    /// `None`: the frame is no longer in flight.
    sent: VecDeque<Option<Sent>>,
    /// Each name of a path once.
    names: Vec<Rc<str>>,
}

impl Origins {
    fn insert(&mut self, number: u64, sent: Sent) {
        if self.sent.is_empty() {
            self.first = number;
        }
        let place = (number - self.first) as usize;
        self.sent.resize_with(place, || None);
        self.sent.push_back(Some(sent));
    }

    fn remove(&mut self, number: u64) {
        if let Some(place) = self.place(number) {
            self.sent[place] = None;
        }
        while let Some(None) = self.sent.front() {
            self.sent.pop_front();
            self.first += 1;
        }
    }

    fn get(&self, number: u64) -> Option<&Sent> {
        self.sent[self.place(number)?].as_ref()
    }

    fn place(&self, number: u64) -> Option<usize> {
        let place = number.checked_sub(self.first)? as usize;
        (place < self.sent.len()).then_some(place)
    }

    fn name(&mut self, name: &str) -> Rc<str> {
        match self.names.iter().find(|known| &***known == name) {
            Some(known) => known.clone(),
            None => {
                self.names.push(name.into());
                self.names[self.names.len() - 1].clone()
            }
        }
    }
}

/// A path keeps a buffer full.
struct Blocking {
    cause: Blocked,
    path: Rc<str>,
    since: Time,
    /// When new data last left although the buffer was full again at once: what follows has waited since then.
    left: Time,
}

impl Blocking {
    fn wait(&self, now: Time) -> Wait<'_> {
        let since = if self.left < now { self.since.max(self.left) } else { self.since };
        Wait { cause: self.cause, path: &self.path, time: now.since(since) }
    }

    /// New data leaves now, possibly in several packets.
    fn new_data(&mut self, now: Time) {
        if self.left < now {
            (self.since, self.left) = (self.since.max(self.left), now);
        }
    }
}

impl<'a> Observed<'a> {
    /// Reports to `observer`. `agents` lists the flow and the end of each agent, `routes` is the table of routes.
    /// `certain`: by link direction, whether it is certain when a packet leaves the queue as soon as it comes.
    pub(crate) fn new(
        observer: &'a mut dyn Observer,
        agents: Vec<(usize, Side)>,
        routes: &[u32],
        batches: bool,
        certain: Vec<bool>,
    ) -> Self {
        let ways = ways(routes, &agents);
        let read = vec![0; agents.len()];
        let Wants { packets, queues: lengths, reads, .. } = observer.wants();
        let coming: Vec<_> =
            certain.into_iter().map(|certain| Coming::new(certain && batches && lengths)).collect();
        Observed {
            observer,
            packets,
            lengths,
            reads,
            leaves: Time::ZERO,
            batches,
            awaits: (packets || lengths) && coming.iter().any(|coming| !coming.certain),
            coming,
            polls: POLLS * agents.len() as u32,
            origins: Origins::default(),
            ways,
            agents,
            read,
            blocking: BTreeMap::new(),
        }
    }

    /// Whether the observer uses the records of packets sent and delivered.
    pub(crate) fn wants_packets(&self) -> bool {
        self.packets
    }

    /// Whether the observer uses what applications read.
    pub(crate) fn wants_reads(&self) -> bool {
        self.reads
    }

    /// Whether departures from any link are shown when they happen.
    #[inline(always)]
    pub(crate) fn awaits_departures(&self) -> bool {
        self.awaits
    }

    /// Whether departures from this link are.
    #[inline]
    pub(crate) fn shows_departures(&self, link: usize) -> bool {
        self.awaits && !self.coming[link].certain
    }

    /// Whether the observer takes many records together.
    pub(crate) fn batches(&self) -> bool {
        self.batches
    }

    /// The flow of a frame.
    pub(crate) fn flow(&self, frame: &Frame) -> usize {
        self.ways[frame.hop as usize].flow
    }

    /// An agent was polled. Whether all should tell the details that they have kept.
    #[inline(always)]
    pub(crate) fn has_kept_enough(&mut self) -> bool {
        self.polls -= 1;
        let enough = self.polls == 0;
        if enough {
            self.polls = POLLS * self.agents.len() as u32;
        }
        enough
    }

    /// Whether packets may run ahead: nothing is shown of links, or no more than when packets come and leave.
    pub(crate) fn lets_run_ahead(&self) -> bool {
        !self.awaits
    }

    /// Whether it is enough to show later what was kept: no record needs its place among others.
    pub(crate) fn looks_later(&self) -> bool {
        self.batches && !self.packets && !self.awaits
    }

    /// Details that an agent has kept.
    pub(crate) fn details(&mut self, agent: usize, notes: &[Note], paths: &[(PathId, Option<&str>)]) {
        let (flow, side) = self.agents[agent];
        self.observer.details(&Details { flow, side, notes, paths });
    }

    /// A packet has come to a link. If it is certain when it leaves, that is recorded.
    #[inline(always)]
    pub(crate) fn came(&mut self, now: Time, link: usize, stay: Stay) {
        let Coming { certain, stays, .. } = &mut self.coming[link];
        // There is no room where departures are uncertain.
        if stays.len() < stays.capacity() {
            stays.push(stay);
        } else if *certain {
            // `stay` is no argument: it would be written to memory and read back, which is slow.
            self.show_stays(now, link);
            self.coming[link].stays.push(stay);
        }
    }

    /// The queue of a link has changed, for an observer that does without a common order.
    pub(crate) fn changed(&mut self, at: Time, link: usize, queue: &Occupancy) {
        self.observer.queue(&QueueRecord::Changed(QueueChange { at, link, queue: length(queue) }));
    }

    /// Shows the packets that have come to a link before now, so that there is room for others.
    #[inline(never)]
    fn show_stays(&mut self, now: Time, link: usize) {
        let coming = &mut self.coming[link];
        let past = coming.stays.partition_point(|stay| stay.at < now);
        coming.show(link, past, self.observer);
        let stays = &mut coming.stays;
        if stays.len() >= stays.capacity() / 2 {
            stays.reserve(stays.capacity().max(BATCH));
        }
    }

    /// Forgets the last `packets` packets that came to a link: the run ended before they came.
    pub(crate) fn take_back(&mut self, link: usize, packets: usize) {
        let Coming { stays, shown, .. } = &mut self.coming[link];
        stays.truncate(stays.len().saturating_sub(packets).max(*shown));
    }

    /// The run is over.
    pub(crate) fn end_queues(&mut self, now: Time) {
        for (link, coming) in self.coming.iter_mut().enumerate() {
            let past = coming.stays.partition_point(|stay| stay.at <= now);
            coming.show(link, past, self.observer);
            let stays = &coming.stays[..coming.shown];
            self.observer.queue(&QueueRecord::Ended { link, stays, at: now });
        }
    }

    /// The application of an agent has read data.
    pub(crate) fn read(&mut self, at: Time, agent: usize, bytes: u64) {
        if bytes > self.read[agent] {
            self.read[agent] = bytes;
            self.observer.record(at, &Record::Read { flow: self.agents[agent].0, bytes });
        }
    }

    pub(crate) fn detail(&mut self, at: Time, agent: usize, path: Option<&str>, detail: &Detail) {
        if let (Detail::Blocked(cause), true) = (detail, self.packets) {
            let cause = *cause;
            self.blocked(at, agent, path, cause);
        }
        let (flow, side) = self.agents[agent];
        self.observer.record(at, &Record::Detail { flow, side, path, detail });
    }

    fn blocked(&mut self, at: Time, agent: usize, path: Option<&str>, cause: Option<Blocked>) {
        match (cause, path) {
            (Some(cause @ (Blocked::PeerWindow | Blocked::SendBuffer)), Some(path)) => {
                let before = self.blocking.get(&agent);
                let same = before.filter(|before| before.cause == cause && &*before.path == path);
                let (since, left) = same.map_or((at, Time::ZERO), |before| (before.since, before.left));
                let path = self.origins.name(path);
                self.blocking.insert(agent, Blocking { cause, path, since, left });
            }
            _ => drop(self.blocking.remove(&agent)),
        }
    }

    pub(crate) fn sent(&mut self, at: Time, agent: usize, path: Option<&str>, reason: Reason, frame: &Frame) {
        let (flow, side) = self.agents[agent];
        let wait = self.blocking.get(&agent).map(|blocking| blocking.wait(at));
        let origin = Some(Origin { side, path, reason, wait });
        let number = Some(frame.number());
        let packet = PacketView { size: frame.size, contents: contents(frame), number, hops: 0, origin };
        self.observer.record(at, &Record::Sent { flow, side, path, reason, packet });
        if frame.hop != NO_ROUTE {
            let wait = wait.map(|wait| (wait.cause, self.origins.name(wait.path), wait.time));
            let path = path.map(|path| self.origins.name(path));
            self.origins.insert(frame.number(), Sent { side, path, reason, wait });
        }
        if reason.purpose == Purpose::Data(Why::New)
            && let Some(blocking) = self.blocking.get_mut(&agent)
        {
            blocking.new_data(at);
        }
    }

    /// A packet has entered a queue; it may be the only one there.
    pub(crate) fn queued(&mut self, at: Time, link: usize, carried: &Carried, queue: &Occupancy) {
        if self.lengths {
            self.show(&carried.frame, |observer, flow, packet| {
                observer.record(at, &Record::Queued { link, flow, packet, queue: length(queue) });
            });
        }
        if queue.packets() == 1 {
            self.started(at, link, carried);
        }
    }

    /// A packet has left a queue, and the next packet is being sent.
    pub(crate) fn departed(&mut self, at: Time, link: usize, queue: &Occupancy, next: Option<&Carried>) {
        if self.batches {
            return self.changed(at, link, queue);
        }
        if self.lengths {
            self.observer.record(at, &Record::Departed { link, queue: length(queue) });
        }
        if let Some(next) = next {
            self.started(at, link, next);
        }
    }

    fn started(&mut self, at: Time, link: usize, carried: &Carried) {
        if !self.packets {
            return;
        }
        let number = carried.offered;
        self.show(&carried.frame, |observer, flow, packet| {
            observer.record(at, &Record::Started { link, flow, number, packet });
        });
    }

    pub(crate) fn dropped(&mut self, at: Time, link: usize, number: u64, cause: DropCause, frame: &Frame) {
        self.show(frame, |observer, flow, packet| {
            observer.record(at, &Record::Dropped { link, flow, number, cause, packet });
        });
        self.origins.remove(frame.number());
    }

    /// A radio sends a frame. It holds this packet if it is a data frame whose packet was not delivered before.
    pub(crate) fn air(&mut self, at: Time, channel: usize, frame: RadioFrame, packet: Option<&Frame>) {
        let Some(packet) = packet else {
            return self.observer.record(at, &Record::Air { channel, frame, packet: None });
        };
        self.show(packet, |observer, flow, packet| {
            observer.record(at, &Record::Air { channel, frame, packet: Some((flow, packet)) });
        });
    }

    pub(crate) fn delivered(&mut self, at: Time, link: usize, frame: &Frame, routes: &[u32]) {
        self.show(frame, |observer, flow, packet| {
            observer.record(at, &Record::Delivered { link, flow, packet });
        });
        if routes[frame.hop as usize + 1] >= ARRIVED {
            self.origins.remove(frame.number());
        }
    }

    fn show(&mut self, frame: &Frame, record: impl FnOnce(&mut dyn Observer, usize, PacketView<'_>)) {
        let origin = self.origins.get(frame.number()).map(|sent| Origin {
            side: sent.side,
            path: sent.path.as_deref(),
            reason: sent.reason,
            wait: sent.wait.as_ref().map(|(cause, path, time)| Wait { cause: *cause, path, time: *time }),
        });
        let Way { flow, hops } = self.ways[frame.hop as usize];
        let (size, number) = (frame.size, Some(frame.number()));
        record(self.observer, flow, PacketView { size, contents: contents(frame), number, hops, origin });
    }
}

/// By entry of the table of routes: whose it is. `agents` lists the flow of each agent.
fn ways(routes: &[u32], agents: &[(usize, Side)]) -> Vec<Way> {
    let mut ways = Vec::with_capacity(routes.len());
    for route in routes.split_inclusive(|hop| *hop >= ARRIVED) {
        let agent =
            route.last().and_then(|end| end.checked_sub(ARRIVED)).expect("every route ends at an agent");
        let flow = agents[agent as usize].0;
        ways.extend((0..route.len() as u32).map(|hops| Way { flow, hops }));
    }
    ways
}

fn length(queue: &Occupancy) -> QueueLength {
    QueueLength { packets: queue.packets(), bytes: queue.bytes() }
}

fn contents(frame: &Frame) -> Contents<'_> {
    match &frame.body {
        Body::Sctp(packet) => Contents::Sctp(packet),
        Body::Tcp(packet) => Contents::Tcp(packet),
        Body::Datagram(datagram) => Contents::Datagram(datagram),
        Body::Raw(packet) => Contents::Raw(&packet.bytes),
        Body::Foreign(carried) => Contents::Foreign(carried),
    }
}
