//! Snapshots of a run's counters. The difference of two snapshots is the result between their times.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anabranch_proto::{PathId, Time};

use crate::engine::{ARRIVED, Engine, Sum};
use crate::medium::wire::Counters;
use crate::medium::wireless::Statistics;
use crate::transport::End;

/// The counters of a run at one time.
pub(super) struct Snapshot {
    pub(super) at: Time,
    /// By flow: bytes that its receiver has read.
    read: Vec<u64>,
    /// By entry in the table of routes: frames offered and dropped, and bytes of packets with data that arrived.
    offered: Vec<u64>,
    dropped: Vec<u64>,
    data: Vec<u64>,
    /// By link direction.
    links: Vec<Counters>,
    /// By channel, then station.
    radios: Vec<Statistics>,
    /// By agent and path.
    windows: BTreeMap<(usize, PathId), Sum>,
}

impl Snapshot {
    /// The counters now.
    pub(super) fn new(engine: &Engine<'_, End>) -> Self {
        let read = |ends: &[End]| ends.iter().filter_map(End::sink).map(|sink| sink.bytes()).sum();
        Snapshot {
            at: engine.now(),
            read: engine.flows().map(read).collect(),
            offered: engine.offered(),
            dropped: engine.counts().dropped.clone(),
            data: engine.counts().data.clone(),
            links: engine.links().iter().map(|link| *link.counters()).collect(),
            radios: engine.channels().iter().flat_map(|channel| channel.all(engine.now())).collect(),
            windows: engine.windows(),
        }
    }

    /// The snapshot at the beginning of the run, with all counters at zero.
    pub(super) fn beginning(&self) -> Self {
        Snapshot {
            at: Time::ZERO,
            read: vec![0; self.read.len()],
            offered: vec![0; self.offered.len()],
            dropped: vec![0; self.dropped.len()],
            data: vec![0; self.data.len()],
            links: vec![Counters::default(); self.links.len()],
            radios: vec![Statistics::default(); self.radios.len()],
            windows: BTreeMap::new(),
        }
    }
}

/// The difference of two snapshots of a run.
pub(super) struct Span<'s> {
    pub(super) routes: &'s [u32],
    pub(super) from: &'s Snapshot,
    pub(super) to: &'s Snapshot,
}

impl Span<'_> {
    /// The time between the two snapshots.
    pub(super) fn seconds(&self) -> f64 {
        self.to.at.since(self.from.at).as_secs_f64()
    }

    /// Bytes that the receiver of a flow read.
    pub(super) fn read(&self, flow: usize) -> u64 {
        self.to.read[flow] - self.from.read[flow]
    }

    /// Bytes of packets with user data that arrived at the end of these routes.
    pub(super) fn data(&self, places: &Range<usize>) -> u64 {
        places.clone().map(|place| self.data_at(place)).sum()
    }

    /// As `data`, by hop of these routes.
    pub(super) fn data_over(&self, places: &Range<usize>) -> BTreeMap<u32, u64> {
        let mut bytes = BTreeMap::new();
        let mut crossed = BTreeSet::new();
        for place in places.clone() {
            match self.routes[place] {
                hop if hop < ARRIVED => drop(crossed.insert(hop)),
                _ => {
                    let arrived = self.data_at(place);
                    let crossed = std::mem::take(&mut crossed).into_iter();
                    crossed.for_each(|hop| *bytes.entry(hop).or_default() += arrived);
                }
            }
        }
        bytes
    }

    fn data_at(&self, place: usize) -> u64 {
        self.to.data[place] - self.from.data[place]
    }

    /// By link direction on these routes: the packets of these routes that were offered and dropped.
    pub(super) fn packets(&self, places: &Range<usize>) -> BTreeMap<u32, [u64; 2]> {
        let mut packets = BTreeMap::new();
        for place in places.clone().filter(|place| self.routes[*place] < ARRIVED) {
            let [offered, dropped] = packets.entry(self.routes[place]).or_default();
            *offered += self.to.offered[place] - self.from.offered[place];
            *dropped += self.to.dropped[place] - self.from.dropped[place];
        }
        packets
    }

    /// The counters of a link direction.
    pub(super) fn link(&self, direction: usize) -> Counters {
        self.to.links[direction].since(&self.from.links[direction])
    }

    /// The counters of the radios, by channel, then station.
    pub(super) fn radios(&self) -> impl Iterator<Item = Statistics> {
        self.to.radios.iter().zip(&self.from.radios).map(|(now, then)| now.since(then))
    }

    /// The paths of an agent that had a congestion window at the end.
    pub(super) fn paths(&self, agent: usize) -> impl Iterator<Item = PathId> {
        self.to.windows.keys().filter(move |(of, _)| *of == agent).map(|(_, path)| *path)
    }

    /// The mean congestion window of an agent's path, if it had one.
    pub(super) fn mean_window(&self, agent: usize, path: PathId) -> Option<f64> {
        let key = (agent, path);
        self.to.windows.get(&key)?.mean_since(self.from.windows.get(&key))
    }
}
