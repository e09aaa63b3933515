//! Records a run for its charts.

use std::collections::BTreeMap;

use anabranch_proto::policy::Why;
use anabranch_proto::{Blocked, Note, NoteKind, PathId, PathState, Time, Tsn};
use anabranch_sim::trace::{
    Contents, Detail, Details, FrameKind, Names, Observer, QueueChange, QueueRecord, RadioFrame, Record,
    Side, Wants,
};

use super::association::AssociationRecord;
use super::frames::Frames;
use super::lengths::come;
use super::points::Points;
use super::steps::Steps;

/// The largest number of points in a chart of single chunks.
const CHUNKS: usize = 20_000;
/// The largest number of points of a line, and of bars of one kind of frames of a station.
const LINE: usize = 8_000;
/// The number of intervals of the rate chart.
const BINS: usize = 400;

/// Records a run for [`super::page`]. Its memory does not grow with the length of the run.
#[derive(Debug, Default)]
pub struct Recorder {
    pub(super) flows: Vec<FlowRecord>,
    pub(super) links: Vec<LinkRecord>,
    pub(super) channels: Vec<ChannelRecord>,
}

/// The frames of a channel of IEEE 802.11.
#[derive(Debug)]
pub(super) struct ChannelRecord {
    pub(super) name: String,
    /// The nodes of its radios.
    pub(super) stations: Vec<String>,
    /// By kind and station.
    pub(super) frames: BTreeMap<(&'static str, usize), Frames>,
}

impl ChannelRecord {
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

/// The causes for which data waits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum WaitCause {
    /// The application: everything that it has given is sent or can be sent.
    Application,
    /// A full congestion window.
    Window,
    /// The peer's window.
    PeerWindow,
    /// Room in the send buffer.
    SendBuffer,
    /// The association, which is not set up yet.
    Handshake,
    /// Another cause: retransmissions go first, the event allowed no more packets, or a route waits for a path.
    Turn,
    /// No path is active.
    PathDown,
}

impl WaitCause {
    /// The causes in the chart, with their names and colours. No policy paces, so pacing is not among them.
    pub(super) const SHOWN: [(WaitCause, &'static str, &'static str); 7] = [
        (WaitCause::Handshake, "the handshake", "#009e73"),
        (WaitCause::PeerWindow, "peer's window", "#d55e00"),
        (WaitCause::Window, "cwnd", "#0072b2"),
        (WaitCause::SendBuffer, "send buffer", "#e69f00"),
        (WaitCause::Turn, "its turn or a route's choice", "#cc79a7"),
        (WaitCause::PathDown, "a path: none is active", "#56b4e9"),
        (WaitCause::Application, "the application", "#a0a0a0"),
    ];
}

/// The record of one flow's sender.
#[derive(Debug)]
pub(super) struct FlowRecord {
    pub(super) name: String,
    /// With `stripe` one on each path that was used, otherwise one.
    pub(super) associations: Vec<AssociationRecord>,
    striped: bool,
    pub(super) dropped: Points,
    /// Sorted by name.
    pub(super) paths: Vec<(String, PathRecord)>,
    /// The times at which the cause changed.
    pub(super) waits: Vec<(u64, WaitCause)>,
    blocked: Option<Blocked>,
    /// For each path that has reported its state: whether it is active.
    active: BTreeMap<String, bool>,
    /// Whether paths have reported their states, and none is active.
    down: bool,
    /// Shorter waits, in nanoseconds, are merged into the wait before.
    shortest: u64,
}

/// The record of one path.
#[derive(Debug)]
pub(super) struct PathRecord {
    /// Chunks sent, by the number of the reason.
    sent: [Points; REASONS.len()],
    /// cwnd, ssthresh and bytes in flight, without those marked for retransmission.
    pub(super) windows: Steps<3>,
    pub(super) rto: Points,
    pub(super) srtt: Points,
    /// Each measurement of the round-trip time.
    pub(super) rtt: Points,
    pub(super) rate: Rate,
}

/// One link direction.
#[derive(Debug)]
pub(super) struct LinkRecord {
    pub(super) link: String,
    pub(super) direction: String,
    pub(super) queue: Points<u32>,
}

impl LinkRecord {
    /// The most packets in the queue, and how often their number changed.
    pub(super) fn used(&self) -> (u32, usize) {
        let longest = self.queue.iter().map(|(_, packets)| packets).max();
        (longest.unwrap_or(0), self.queue.iter().count())
    }
}

/// Bytes per time interval; the interval grows with the run.
#[derive(Debug)]
pub(super) struct Rate {
    interval: u64,
    bytes: Vec<u64>,
    /// When the last interval ends.
    end: u64,
}

impl Rate {
    fn new() -> Self {
        Rate { interval: 1_000_000, bytes: Vec::new(), end: 0 }
    }

    /// Adds bytes at `at` nanoseconds, which is not before the last ones.
    #[inline(always)]
    fn add(&mut self, at: u64, bytes: u64) {
        if at >= self.end {
            self.begin(at);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last += bytes;
        }
    }

    /// Begins the interval of this time.
    #[inline(never)]
    fn begin(&mut self, at: u64) {
        while at / self.interval >= BINS as u64 {
            self.interval *= 2;
            self.bytes = self.bytes.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        let intervals = at / self.interval + 1;
        self.bytes.resize(intervals as usize, 0);
        self.end = intervals * self.interval;
    }

    /// When each interval begins, in nanoseconds, and its rate in bit/s, up to the `end` of the run. Behind the last
    /// interval nothing was sent.
    pub(super) fn until(&self, end: u64) -> Vec<(u64, f64)> {
        let begins = (0..).step_by(self.interval as usize);
        let mut spans: Vec<(u64, u64)> = begins.zip(self.bytes.iter().copied()).collect();
        // A part of an interval that the run ends in has a rate of its own if it is at least half of one. A few bytes
        // in a moment would be a peak.
        if let [.., _, (begin, rest)] = spans[..]
            && end.saturating_sub(begin) < self.interval / 2
        {
            spans.pop();
            if let Some((_, bytes)) = spans.last_mut() {
                *bytes += rest;
            }
        }
        let sent = self.end.min(end);
        let ends = spans.iter().skip(1).map(|(begin, _)| *begin).chain([sent]);
        let rate = |(&(begin, bytes), to): (&(u64, u64), u64)| {
            (begin, bytes as f64 * 8e9 / to.saturating_sub(begin).max(1) as f64)
        };
        let mut points: Vec<(u64, f64)> = spans.iter().zip(ends).map(rate).collect();
        if let Some((_, last)) = points.last().copied() {
            points.extend((sent < end).then_some((sent, 0.0)));
            points.push((end, if sent < end { 0.0 } else { last }));
        }
        points
    }
}

impl PathRecord {
    fn new() -> Self {
        let line = || Points::new(LINE);
        PathRecord {
            sent: REASONS.map(|_| Points::new(CHUNKS)),
            windows: Steps::new(LINE),
            rto: line(),
            srtt: line(),
            rtt: line(),
            rate: Rate::new(),
        }
    }

    /// It carries a piece of data.
    #[inline(always)]
    fn carry(&mut self, at: u64, number: f64, size: u32, why: Why) {
        self.sent[why as usize].push(at, number);
        self.rate.add(at, u64::from(size));
    }

    /// The points of a line whose values hold until the next, or until the windows were told for the last time.
    pub(super) fn held<'p>(&self, line: &'p Points) -> impl Iterator<Item = (u64, f64)> + 'p {
        let until = self.windows.last();
        line.iter().chain(line.iter().last().filter(|(at, _)| *at < until).map(|(_, value)| (until, value)))
    }

    /// The chunks that were sent, with the name of the reason, sorted.
    pub(super) fn sent(&self) -> impl Iterator<Item = (&'static str, &Points)> {
        let all = REASONS.iter().map(|(why, name)| (*name, &self.sent[*why as usize]));
        all.filter(|(_, points)| !points.is_empty())
    }
}

impl FlowRecord {
    fn new(name: &str, striped: bool) -> Self {
        let all = (!striped).then(|| AssociationRecord::new("", LINE));
        FlowRecord {
            name: name.to_owned(),
            associations: all.into_iter().collect(),
            striped,
            dropped: Points::new(CHUNKS),
            paths: Vec::new(),
            waits: Vec::new(),
            blocked: None,
            active: BTreeMap::new(),
            down: false,
            shortest: 1_000_000,
        }
    }

    /// The association to which a detail of this path belongs.
    #[inline]
    fn association(&mut self, path: Option<&str>) -> &mut AssociationRecord {
        let path = path.filter(|_| self.striped).unwrap_or("");
        let known = self.associations.iter().position(|known| known.path == path);
        let place = known.unwrap_or(self.associations.len());
        if known.is_none() {
            self.associations.push(AssociationRecord::new(path, LINE));
        }
        &mut self.associations[place]
    }

    /// The number of a chunk of the only association.
    #[inline(always)]
    fn chunk(&mut self, tsn: Tsn) -> f64 {
        self.associations[0].number(u64::from(tsn.0))
    }

    /// A piece of data was dropped. It belongs to the association whose first one is the closest before it.
    fn drops(&mut self, at: u64, number: u64) {
        let distance =
            |association: &&mut AssociationRecord| association.distance(number).unwrap_or(u64::MAX);
        if let Some(association) = self.associations.iter_mut().min_by_key(distance) {
            self.dropped.push(at, association.number(number));
        }
    }

    /// The path with this name.
    fn path(&mut self, name: Option<&str>) -> &mut PathRecord {
        let place = self.place(name);
        &mut self.paths[place].1
    }

    /// When the first data was sent, in nanoseconds; none if none was.
    pub(super) fn began(&self) -> Option<u64> {
        let sent = self.paths.iter().flat_map(|(_, path)| path.sent());
        sent.filter_map(|(_, points)| points.iter().next()).map(|(at, _)| at).min()
    }

    fn place(&mut self, name: Option<&str>) -> usize {
        let name = name.unwrap_or("");
        let place = self.paths.partition_point(|(known, _)| known.as_str() < name);
        if self.paths.get(place).is_none_or(|(known, _)| known != name) {
            self.paths.insert(place, (name.to_owned(), PathRecord::new()));
        }
        place
    }

    /// The place of a path. Most details concern the same path as the one before: `latest` with its place.
    #[inline]
    fn known(&mut self, path: PathId, details: &Details<'_>, latest: &mut Option<(PathId, usize)>) -> usize {
        match *latest {
            Some((same, place)) if same == path => place,
            _ => {
                let place = self.place(details.name(path));
                *latest = Some((path, place));
                place
            }
        }
    }

    /// Details that come together. They are many, so the most frequent notes are recorded as they are.
    fn details(&mut self, details: &Details<'_>) {
        let mut latest = None;
        details.notes.iter().for_each(|note| self.note(note, details, &mut latest));
    }

    #[inline(always)]
    fn note(&mut self, note: &Note, details: &Details<'_>, latest: &mut Option<(PathId, usize)>) {
        let at = note.at.as_nanos();
        match note.kind {
            NoteKind::Window { path, cwnd, ssthresh, flight, .. } => {
                let place = self.known(path, details, latest);
                self.paths[place].1.windows.set(at, [cwnd, ssthresh, flight]);
            }
            NoteKind::PeerWindow { bytes } => self.associations[0].peer_window.set(at, [bytes]),
            NoteKind::Sent { path, tsn, size, why } => {
                let number = self.chunk(tsn);
                let place = self.known(path, details, latest);
                self.paths[place].1.carry(at, number, size, why);
            }
            NoteKind::SentAlone { path, tsn, size, cwnd, ssthresh, flight, peer_window } => {
                let number = self.chunk(tsn);
                let place = self.known(path, details, latest);
                let path = &mut self.paths[place].1;
                path.carry(at, number, size, Why::New);
                path.windows.set(at, [cwnd, ssthresh, flight]);
                self.associations[0].peer_window.set(at, [peer_window]);
            }
            NoteKind::Acked { cumulative } => self.associations[0].acknowledged(at, u64::from(cumulative.0)),
            NoteKind::AckedAlone { path, cumulative, cwnd, ssthresh, flight, peer_window, .. } => {
                self.associations[0].acknowledged(at, u64::from(cumulative.0));
                let place = self.known(path, details, latest);
                self.paths[place].1.windows.set(at, [cwnd, ssthresh, flight]);
                self.associations[0].peer_window.set(at, [peer_window]);
            }
            ref kind => {
                if let Some((path, detail)) = Detail::of(kind) {
                    self.detail(at, path.and_then(|path| details.name(path)), &detail);
                    // A path that is new stands before others.
                    *latest = None;
                }
            }
        }
    }

    fn detail(&mut self, at: u64, path: Option<&str>, detail: &Detail) {
        match detail {
            Detail::Window { cwnd, ssthresh, flight, .. } => {
                self.path(path).windows.set(at, [*cwnd, *ssthresh, *flight]);
            }
            Detail::Rto { rto, srtt, rtt } => {
                let path = self.path(path);
                path.rto.push(at, rto.as_secs_f64());
                if let Some(rtt) = rtt {
                    path.rtt.push(at, rtt.as_secs_f64());
                }
                if let Some(srtt) = srtt {
                    path.srtt.push(at, srtt.as_secs_f64());
                }
            }
            Detail::PeerWindow { bytes } => self.association(path).peer_window.set(at, [*bytes]),
            Detail::Sent { number, size, why } => {
                let number = self.association(path).number(*number);
                self.path(path).carry(at, number, *size, *why);
            }
            Detail::Acked { cumulative } => self.association(path).acknowledged(at, *cumulative),
            Detail::Blocked(by) => {
                self.blocked = *by;
                self.waits(at);
            }
            Detail::State(state) => {
                let name = path.unwrap_or("").to_owned();
                self.active.insert(name, *state == PathState::Active);
                self.down = self.active.values().all(|active| !active);
                self.waits(at);
            }
            Detail::Marked { .. }
            | Detail::Route { .. }
            | Detail::Timeout
            | Detail::Timer { .. }
            | Detail::Received { .. } => {}
        }
    }

    fn cause(&self) -> WaitCause {
        match self.blocked {
            None => WaitCause::Application,
            Some(_) if self.down => WaitCause::PathDown,
            Some(Blocked::PeerWindow) => WaitCause::PeerWindow,
            Some(Blocked::SendBuffer) => WaitCause::SendBuffer,
            Some(Blocked::Window) => WaitCause::Window,
            Some(Blocked::Turn) => WaitCause::Turn,
        }
    }

    /// Once there are `CHUNKS` changes, waits shorter than a growing bound are merged into the wait before.
    fn waits(&mut self, at: u64) {
        let cause = self.cause();
        if self.waits.last().is_some_and(|(_, last)| *last == cause) {
            return;
        }
        self.waits.push((at, cause));
        while self.waits.len() >= CHUNKS {
            self.shortest *= 2;
            let ends: Vec<u64> = self.waits.iter().skip(1).map(|(at, _)| *at).chain([at]).collect();
            let mut end = ends.iter();
            let shortest = self.shortest;
            self.waits.retain(|(at, _)| end.next().is_some_and(|end| end - at >= shortest));
        }
    }
}

impl Observer for Recorder {
    fn begin(&mut self, names: &Names) {
        let flow = |name: &String| FlowRecord::new(name, names.striped.contains(name));
        self.flows = names.flows.iter().map(flow).collect();
        let link = |(name, direction): &(String, String)| LinkRecord {
            link: name.clone(),
            direction: direction.clone(),
            queue: Points::new(LINE),
        };
        self.links = names.links.iter().map(link).collect();
        let channel = |(name, stations): &(String, Vec<String>)| ChannelRecord {
            name: name.clone(),
            stations: stations.clone(),
            frames: BTreeMap::new(),
        };
        self.channels = names.channels.iter().map(channel).collect();
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        let at = at.as_nanos();
        match record {
            Record::Detail { flow, side: Side::Client, path, detail } => {
                self.flows[*flow].detail(at, *path, detail);
            }
            Record::Queued { link, queue, .. } | Record::Departed { link, queue } => {
                self.links[*link].queue.push(at, queue.packets);
            }
            Record::Air { channel, frame, .. } => {
                let key = (kind(frame), frame.from as usize);
                let frames = &mut self.channels[*channel].frames;
                frames.entry(key).or_insert_with(|| Frames::new(LINE)).push(at, frame.airtime);
            }
            Record::Dropped { flow, packet, .. } => {
                let flow = &mut self.flows[*flow];
                packet.tsns().for_each(|tsn| flow.drops(at, u64::from(tsn.0)));
                if let Contents::Tcp(packet) = packet.contents
                    && packet.segment.length > 0
                {
                    flow.drops(at, packet.offset);
                }
            }
            _ => {}
        }
    }

    fn details(&mut self, details: &Details<'_>) {
        if details.side == Side::Client {
            self.flows[details.flow].details(details);
        }
    }

    fn queue(&mut self, record: &QueueRecord<'_>) {
        match *record {
            QueueRecord::Came { link, stays, before } => come(&mut self.links[link].queue, stays, before),
            _ => record.each(|QueueChange { at, link, queue }| {
                self.links[link].queue.push(at.as_nanos(), queue.packets);
            }),
        }
    }

    fn wants(&self) -> Wants {
        Wants::UNORDERED
    }
}

/// The name of a frame in charts.
fn kind(frame: &RadioFrame) -> &'static str {
    match (frame.kind, frame.retry) {
        (FrameKind::Rts, _) => "RTS",
        (FrameKind::Cts, _) => "CTS",
        (FrameKind::Data, false) => "data",
        (FrameKind::Data, true) => "data, sent again",
        (FrameKind::Ack, _) => "ACK",
    }
}

/// The reasons with their names in charts, sorted by them.
const REASONS: [(Why, &str); 6] = [
    (Why::Missing, "fast retransmission"),
    (Why::New, "new"),
    (Why::Reinjected, "reinjection"),
    (Why::Timeout, "retransmission after timeout"),
    (Why::TailProbe, "tail loss probe"),
    (Why::WindowProbe, "window probe"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_proto::Policies;
    use anabranch_sim::scenario::Document;
    use anabranch_sim::{RunOptions, run};

    /// Bits below the line.
    fn area(points: &[(u64, f64)]) -> f64 {
        points.windows(2).map(|pair| pair[0].1 * (pair[1].0 - pair[0].0) as f64 / 1e9).sum()
    }

    /// The last flight of each moment by path, and the most bytes that were marked.
    #[derive(Default)]
    struct Flights(BTreeMap<(String, u64), u64>, u64);

    impl Observer for Flights {
        fn begin(&mut self, _: &Names) {}

        fn record(&mut self, at: Time, record: &Record<'_>) {
            if let Record::Detail { side: Side::Client, path, detail, .. } = record
                && let Detail::Window { flight, marked, .. } = detail
            {
                self.0.insert((path.unwrap_or("").to_owned(), at.as_nanos()), *flight);
                self.1 = self.1.max(*marked);
            }
        }
    }

    /// What is marked for retransmission over a dead path is not in flight.
    #[test]
    fn the_line_in_flight_has_no_marked_bytes() {
        const TEXT: &str = "[[link]]\nname = 'w'\nbetween = ['a', 'b']\nrate = '2 Mbit/s'\ndelay = '10 ms'\n\
                            down = [['1 s', '3 s']]\n[[flow]]\nname = 'f'\nfrom = 'a'\nto = 'b'\n\
                            send = '500 kB'\nprotocol = ";
        for protocol in ["'sctp'", "'mptcp'"] {
            let document = Document::parse("t.toml", &format!("{TEXT}{protocol}\n")).unwrap();
            let scenario = document.scenario("t", &Policies::default()).unwrap();
            let (mut recorder, mut flights) = (Recorder::default(), Flights::default());
            let options = |observer| RunOptions { observer: Some(observer), ..RunOptions::default() };
            run(&scenario, options(&mut recorder)).unwrap();
            run(&scenario, options(&mut flights)).unwrap();
            assert!(flights.1 > 10_000, "{protocol}: {} bytes were marked", flights.1);
            let (name, path) = &recorder.flows[0].paths[0];
            for (at, drawn) in path.windows.line(2) {
                assert_eq!(Some(&(drawn as u64)), flights.0.get(&(name.clone(), at)), "{protocol}: {at} ns");
            }
        }
    }

    #[test]
    fn rates_keep_all_bytes_as_the_interval_grows() {
        let mut rate = Rate::new();
        for second in 0..100_u64 {
            rate.add(second * 1_000_000_000, 125);
        }
        for end in [99_000_000_000, 99_000_000_001, 99_300_000_000, 500_000_000_000] {
            let points = rate.until(end);
            assert!((area(&points) - 100_000.0).abs() < 1.0, "{points:?}");
            assert_eq!(points.last().map(|point| point.0), Some(end));
            assert!(points.iter().all(|(_, rate)| *rate <= 8_000.0), "{points:?}");
        }
    }

    /// A path that carries nothing any more has a rate of zero, and each rate stands where its bytes were sent.
    #[test]
    fn a_rate_begins_and_ends_with_its_bytes() {
        let mut rate = Rate::new();
        (1_000..2_000).for_each(|ms| rate.add(ms * 1_000_000, 125));
        let points = rate.until(10_000_000_000);
        let at = |time: u64| points.iter().rev().find(|(begin, _)| *begin <= time).map(|(_, rate)| *rate);
        assert_eq!([at(900_000_000), at(1_500_000_000), at(2_100_000_000)], [0.0, 1e6, 0.0].map(Some));
        assert_eq!(points.last(), Some(&(10_000_000_000, 0.0)));
        assert_eq!(Rate::new().until(1_000), []);
    }
}
