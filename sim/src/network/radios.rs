//! The radios of a network: which stand on which channel, who reads whom, and the ways between them.
//!
//! Channels are numbered by sorted name, radios by channel and sorted name of their node. Every pair of radios of which
//! the one reads the other is a hop, numbered in the same order; so the first of several shortest ways is the first by
//! names.

use std::collections::{BTreeMap, VecDeque};

use crate::medium::wireless::{Neighbours, Radio, Reception, StationId, distance};
use crate::scenario::{self, Propagation, Scenario};

/// In a route: this and the number of a hop between radios.
pub(crate) const RADIO: u32 = 1 << 30;

/// The most pairs of radios of a channel that are within reach of each other. Such a pair takes about a hundred bytes.
pub(crate) const MOST_PAIRS: usize = 5_000_000;

/// Whether more pairs of radios than [`MOST_PAIRS`] are within reach of each other.
pub(crate) fn are_too_many(places: &[[f64; 2]], reception: &dyn Reception) -> bool {
    Neighbours::are_more_than(2 * MOST_PAIRS, places, reception)
}

/// All radios of a scenario.
#[derive(Default, Debug)]
pub(crate) struct Radios {
    /// Sorted by name: the channel's number in the scenario, and its first radio. One more at the end.
    channels: Vec<(usize, u32)>,
    names: Vec<String>,
    radios: Vec<RadioPlacement>,
    hops: Vec<RadioHop>,
    /// By radio: its first hop. One more at the end.
    first_hop: Vec<u32>,
    /// By node: its radios.
    by_node: BTreeMap<usize, Vec<u32>>,
    /// Ways that the scenario names, by both ends: hops.
    given: BTreeMap<(u32, u32), Vec<u32>>,
}

/// A radio.
#[derive(Copy, Clone, PartialEq, Debug)]
struct RadioPlacement {
    channel: u32,
    /// The number of its node.
    node: usize,
    place: [f64; 2],
}

/// From one radio to another that reads it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct RadioHop {
    /// The number of the channel.
    pub(crate) channel: u32,
    /// Their numbers among all radios.
    pub(crate) radios: [u32; 2],
    /// Their numbers on the channel.
    pub(crate) stations: [StationId; 2],
}

/// The two radios that the ends of a way are on different sides of, and how far apart they are.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Gap {
    pub(crate) nodes: [usize; 2],
    pub(crate) metres: f64,
}

impl Radios {
    /// Builds the radios of a scenario whose nodes have these numbers. Its channels, positions and routes were checked.
    pub(crate) fn new(scenario: &Scenario, node: impl Fn(&str) -> usize) -> Self {
        let mut order: Vec<usize> = (0..scenario.channels.len()).collect();
        order.sort_by_key(|index| &scenario.channels[*index].name);
        let mut radios = Radios { first_hop: vec![0], ..Radios::default() };
        for (channel, index) in order.into_iter().enumerate() {
            let name = &scenario.channels[index].name;
            radios.channels.push((index, radios.radios.len() as u32));
            radios.names.push(name.clone());
            let here = scenario.stations.iter().filter(|station| station.channels.contains(name));
            let mut places: Vec<RadioPlacement> = here
                .map(|station| RadioPlacement {
                    channel: channel as u32,
                    node: node(&station.node),
                    place: station.place,
                })
                .collect();
            places.sort_by_key(|place| place.node);
            for (number, place) in (radios.radios.len() as u32..).zip(places) {
                radios.radios.push(place);
                radios.by_node.entry(place.node).or_default().push(number);
            }
            radios.find_hops(channel as u32, &*reception(&scenario.channels[index].reception));
        }
        radios.channels.push((usize::MAX, radios.radios.len() as u32));
        radios.take_routes(scenario, node);
        radios
    }

    /// The hops between the radios of the channel that was added last.
    fn find_hops(&mut self, channel: u32, reception: &dyn Reception) {
        let first = self.channels[channel as usize].1;
        let places: Vec<_> = self.radios[first as usize..].iter().map(|radio| radio.place).collect();
        let near = Neighbours::new(&places, reception);
        for from in 0..places.len() as StationId {
            let mut readers: Vec<_> =
                near.list(from).iter().filter(|n| reception.decodes(n.strength)).collect();
            readers.sort_by_key(|neighbour| neighbour.station);
            self.hops.extend(readers.into_iter().map(|to| RadioHop {
                channel,
                radios: [first + from, first + to.station],
                stations: [from, to.station],
            }));
            self.first_hop.push(self.hops.len() as u32);
        }
    }

    /// The routes that the scenario names, and each the other way round unless that is named as well.
    fn take_routes(&mut self, scenario: &Scenario, node: impl Fn(&str) -> usize) {
        for backwards in [false, true] {
            for route in &scenario.routes {
                let Ok(channel) = self.names.binary_search(&route.channel) else { continue };
                let mut way: Vec<Option<u32>> =
                    route.through.iter().map(|name| self.radio(node(name), channel as u32)).collect();
                if backwards {
                    way.reverse();
                }
                let hops =
                    way.windows(2).map(|pair| self.hop(pair[0]?, pair[1]?)).collect::<Option<Vec<_>>>();
                if let (Some(hops), Some(Some(from)), Some(Some(to))) = (hops, way.first(), way.last()) {
                    self.given.entry((*from, *to)).or_insert(hops);
                }
            }
        }
    }

    /// How many radios there are.
    pub(crate) fn len(&self) -> u32 {
        self.radios.len() as u32
    }

    /// The channels, each with its index in the scenario.
    pub(crate) fn channels(&self) -> impl Iterator<Item = usize> {
        self.names.iter().zip(&self.channels).map(|(_, (index, _))| *index)
    }

    /// The nodes of a channel's radios, by their numbers on it.
    pub(crate) fn nodes(&self, channel: usize) -> impl Iterator<Item = usize> {
        let [first, end] = [channel, channel + 1].map(|channel| self.channels[channel].1 as usize);
        self.radios[first..end].iter().map(|radio| radio.node)
    }

    /// The radios of a node.
    pub(crate) fn of(&self, node: usize) -> impl Iterator<Item = u32> {
        self.by_node.get(&node).into_iter().flatten().copied()
    }

    /// Whether a node has any.
    pub(crate) fn has(&self, node: usize) -> bool {
        self.of(node).next().is_some()
    }

    /// The channel of a radio: its number and its name.
    pub(crate) fn channel(&self, radio: u32) -> (u32, &str) {
        let channel = self.radios[radio as usize].channel;
        (channel, &self.names[channel as usize])
    }

    /// The number of a radio on its channel.
    pub(crate) fn station(&self, radio: u32) -> StationId {
        radio - self.channels[self.radios[radio as usize].channel as usize].1
    }

    pub(crate) fn node(&self, radio: u32) -> usize {
        self.radios[radio as usize].node
    }

    /// All hops, in the order of their numbers.
    pub(crate) fn hops(&self) -> &[RadioHop] {
        &self.hops
    }

    /// The hops of a radio, with their numbers.
    pub(crate) fn hops_of(&self, radio: u32) -> impl Iterator<Item = (u32, &RadioHop)> {
        let [first, end] = [radio, radio + 1].map(|radio| self.first_hop[radio as usize]);
        (first..end).zip(&self.hops[first as usize..end as usize])
    }

    fn radio(&self, node: usize, channel: u32) -> Option<u32> {
        self.of(node).find(|radio| self.radios[*radio as usize].channel == channel)
    }

    /// The number of the hop between two radios, if the one reads the other.
    pub(crate) fn hop(&self, from: u32, to: u32) -> Option<u32> {
        self.hops_of(from).find(|(_, hop)| hop.radios[1] == to).map(|(number, _)| number)
    }

    /// The way between two radios of one channel: the one that the scenario names, else the shortest, of these the
    /// first by names.
    pub(crate) fn way(&self, from: u32, to: u32) -> Option<Vec<u32>> {
        if let Some(given) = self.given.get(&(from, to)) {
            return Some(given.clone());
        }
        // Decoding is mutual, so the distances to the end equal those from it.
        let distance = self.distances(to, Some(from));
        let (mut at, mut way) = (from, Vec::new());
        let mut left = *distance.get(&from)?;
        while left > 0 {
            left -= 1;
            let (number, next) =
                self.hops_of(at).find(|(_, hop)| distance.get(&hop.radios[1]) == Some(&left))?;
            way.push(number);
            at = next.radios[1];
        }
        Some(way)
    }

    /// Hops from every radio that is reached to `from`; until `wanted` and all nearer ones are known.
    fn distances(&self, from: u32, wanted: Option<u32>) -> BTreeMap<u32, u32> {
        let mut distance = BTreeMap::from([(from, 0)]);
        let mut next = VecDeque::from([from]);
        while let Some(at) = next.pop_front() {
            if Some(at) == wanted {
                break;
            }
            let there = distance[&at] + 1;
            for (_, hop) in self.hops_of(at) {
                if let std::collections::btree_map::Entry::Vacant(new) = distance.entry(hop.radios[1]) {
                    new.insert(there);
                    next.push_back(hop.radios[1]);
                }
            }
        }
        distance
    }

    /// Why two radios of one channel do not reach each other: of all that the one reaches and all that it does not, the
    /// nearest.
    pub(crate) fn gap(&self, from: u32) -> Option<Gap> {
        let reached = self.distances(from, None);
        let channel = self.radios[from as usize].channel;
        let here = (0..self.len()).filter(|radio| self.radios[*radio as usize].channel == channel);
        let (inside, outside): (Vec<u32>, Vec<u32>) = here.partition(|radio| reached.contains_key(radio));
        let place = |radio: u32| self.radios[radio as usize].place;
        let pairs = inside.iter().flat_map(|a| outside.iter().map(move |b| (*a, *b)));
        let gaps = pairs
            .map(|(a, b)| Gap { nodes: [self.node(a), self.node(b)], metres: distance(place(a), place(b)) });
        gaps.min_by(|a, b| a.metres.total_cmp(&b.metres))
    }

    /// The radios of a channel as the medium takes them.
    pub(crate) fn of_channel(
        &self,
        channel: usize,
        scenario: &Scenario,
        name: impl Fn(usize) -> String,
    ) -> Vec<Radio> {
        let (index, first) = self.channels[channel];
        let queue = scenario.channels[index].dcf.queue;
        let radios = &self.radios[first as usize..self.channels[channel + 1].1 as usize];
        let stream = |radio: &RadioPlacement| format!("channel/{}/{}", self.names[channel], name(radio.node));
        radios.iter().map(|radio| Radio { place: radio.place, queue, stream: stream(radio) }).collect()
    }
}

impl RadioHop {
    /// The numbers of both radios among all.
    pub(crate) fn radios(&self) -> [u32; 2] {
        self.radios
    }
}

/// The model of reception that a channel of the scenario names.
pub(crate) fn reception(given: &scenario::Reception) -> Box<dyn Reception> {
    use crate::medium::wireless as medium;
    match given {
        scenario::Reception::Range(ranges) => {
            let scenario::Ranges { decode, sense, interfere, capture } = *ranges;
            Box::new(medium::Range::new(decode, sense, interfere, capture))
        }
        scenario::Reception::Power(powers) => {
            let scenario::Powers { frequency, height, exponent, .. } = *powers;
            let propagation = match powers.propagation {
                Propagation::FreeSpace => medium::Propagation::FreeSpace { frequency },
                Propagation::TwoRay => medium::Propagation::TwoRay { frequency, height },
                Propagation::LogDistance => medium::Propagation::LogDistance { frequency, exponent },
            };
            let scenario::Powers { transmit, loss, noise, sinr, header, busy, cutoff, .. } = *powers;
            Box::new(
                medium::Power { propagation, transmit, loss, noise, sinr, header, sense: busy, cutoff }
                    .receiving(),
            )
        }
    }
}

/// The distributed coordination function of a channel of the scenario.
pub(crate) fn dcf(given: &scenario::Dcf) -> crate::medium::wireless::Dcf {
    crate::medium::wireless::Dcf {
        timing: given.timing.constants(),
        rate: given.rate,
        control_rate: given.control_rate,
        rts_threshold: given.rts_threshold,
        short_retry: given.short_retry,
        long_retry: given.long_retry,
        cw_min: given.cw_min(),
        cw_max: given.cw_max,
        nav_reset: given.nav_reset,
        llc: given.llc,
    }
}
