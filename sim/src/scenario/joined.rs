//! Which nodes are joined by links and channels. The network checks later how far radios reach.

use std::collections::BTreeMap;

use super::Scenario;

/// The nodes of a scenario, with their links and channels.
pub(super) struct Joined<'s> {
    numbers: BTreeMap<&'s str, usize>,
    /// By node: the representative of its group, or a node on the way to it while groups are joined.
    towards: Vec<usize>,
    /// By node: the names of its links, then of its channels.
    media: Vec<Vec<&'s str>>,
}

impl<'s> Joined<'s> {
    pub(super) fn new(scenario: &'s Scenario) -> Self {
        let mut joined = Joined { numbers: BTreeMap::new(), towards: Vec::new(), media: Vec::new() };
        for link in &scenario.links {
            let [a, b] = [0, 1].map(|end| joined.add(&link.between[end], &link.name));
            joined.join(a, b);
        }
        let mut first_on = BTreeMap::new();
        for station in &scenario.stations {
            for channel in &station.channels {
                let node = joined.add(&station.node, channel);
                joined.join(*first_on.entry(channel.as_str()).or_insert(node), node);
            }
        }
        for node in 0..joined.towards.len() {
            joined.towards[node] = joined.towards[joined.towards[node]];
        }
        joined
    }

    /// The number of a node that has this link or channel.
    fn add(&mut self, node: &'s str, medium: &'s str) -> usize {
        let number = *self.numbers.entry(node).or_insert(self.towards.len());
        if number == self.towards.len() {
            self.towards.push(number);
            self.media.push(Vec::new());
        }
        self.media[number].push(medium);
        number
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.group(a), self.group(b));
        self.towards[a.max(b)] = a.min(b);
    }

    /// The representative of this node's group, the lowest number; halves the paths on the way.
    fn group(&mut self, mut node: usize) -> usize {
        while self.towards[node] != node {
            self.towards[node] = self.towards[self.towards[node]];
            node = self.towards[node];
        }
        node
    }

    /// Whether links and channels join two nodes.
    pub(super) fn connects(&self, from: &str, to: &str) -> bool {
        let group = |node| self.numbers.get(node).map(|number| self.towards[*number]);
        from == to || group(from).is_some_and(|a| group(to) == Some(a))
    }

    /// The names of a node's links, then of its channels.
    pub(super) fn media(&self, node: &str) -> &[&'s str] {
        self.numbers.get(node).map_or(&[], |number| &self.media[*number])
    }
}
