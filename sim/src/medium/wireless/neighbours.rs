//! The neighbours of each station. They are computed once, and a frame visits only the neighbours of its sender.

use std::collections::BTreeMap;
use std::ops::{Index, Range};

use super::frames::StationId;
use super::reception::{Alone, Reception};

/// A station within reach of another.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct Neighbour {
    pub(crate) station: StationId,
    /// The propagation delay in nanoseconds, at least 1.
    pub(crate) delay: u64,
    /// The strength of one station's signal at the other.
    pub(crate) strength: f64,
    /// Whether this signal makes the medium busy.
    pub(crate) sensed: bool,
    /// What an idle radio does with it if there is no other signal.
    pub(crate) alone: Alone,
}

/// The neighbours of all stations in consecutive lists.
#[derive(Debug)]
pub(crate) struct Neighbours {
    all: Vec<Neighbour>,
    /// By station: the index at which its list begins; then the end of the last list.
    begin: Vec<u32>,
}

/// The time that light takes for a metre, in nanoseconds.
const PER_METRE: (f64, f64) = (10.0, 3.0);

impl Neighbours {
    /// Computes the neighbours of stations at these positions, in metres. No two may be at the same position.
    pub(crate) fn new(places: &[[f64; 2]], rules: &dyn Reception) -> Self {
        let cells = Cells::new(places, rules.reach());
        let (mut all, mut begin) = (Vec::new(), vec![0]);
        for station in 0..places.len() {
            let first = all.len();
            for (other, metres) in cells.near(places, station) {
                let strength = rules.strength(metres);
                let sensed = rules.senses(strength);
                let (delay, alone) = (propagation(metres), Alone::new(rules, strength));
                all.push(Neighbour { station: other, delay, strength, sensed, alone });
            }
            all[first..].sort_by_key(|neighbour| (neighbour.delay, neighbour.station));
            begin.push(all.len() as u32);
        }
        Neighbours { all, begin }
    }

    /// Whether stations at these positions have more than `most` neighbours in all.
    pub(crate) fn are_more_than(most: usize, places: &[[f64; 2]], rules: &dyn Reception) -> bool {
        let cells = Cells::new(places, rules.reach());
        (0..places.len()).flat_map(|station| cells.near(places, station)).nth(most).is_some()
    }

    /// Where the neighbours of a station are in the list, nearest first.
    pub(super) fn of(&self, station: StationId) -> Range<u32> {
        let station = station as usize;
        self.begin[station]..self.begin[station + 1]
    }

    /// The neighbours of a station, nearest first.
    pub(crate) fn list(&self, station: StationId) -> &[Neighbour] {
        let Range { start, end } = self.of(station);
        &self.all[start as usize..end as usize]
    }

    /// The groups of stations that are connected by chains of neighbours, in order of station numbers.
    pub(super) fn groups(&self) -> Vec<Vec<StationId>> {
        let mut seen = vec![false; self.begin.len() - 1];
        let mut groups = Vec::new();
        for first in 0..seen.len() as StationId {
            if std::mem::replace(&mut seen[first as usize], true) {
                continue;
            }
            let mut group = vec![first];
            let mut next = 0;
            while let Some(station) = group.get(next).copied() {
                next += 1;
                for neighbour in self.list(station) {
                    if !std::mem::replace(&mut seen[neighbour.station as usize], true) {
                        group.push(neighbour.station);
                    }
                }
            }
            group.sort_unstable();
            groups.push(group);
        }
        groups
    }

    /// Whether two stations sense each other.
    pub(super) fn sense(&self, a: StationId, b: StationId) -> bool {
        self.list(a).iter().any(|neighbour| neighbour.station == b && neighbour.sensed)
    }
}

impl Index<u32> for Neighbours {
    type Output = Neighbour;

    fn index(&self, place: u32) -> &Neighbour {
        &self.all[place as usize]
    }
}

/// Metres between two places.
pub(crate) fn distance([ax, ay]: [f64; 2], [bx, by]: [f64; 2]) -> f64 {
    ((ax - bx) * (ax - bx) + (ay - by) * (ay - by)).sqrt()
}

/// Rounded up. So a detour is never shorter than the direct way, and stations that count slots from the end of the same
/// frame to the same slot do not hear each other first.
fn propagation(metres: f64) -> u64 {
    ((metres * PER_METRE.0 / PER_METRE.1).ceil() as u64).max(1)
}

/// The stations in squares that are as wide as the reach.
struct Cells {
    width: f64,
    squares: BTreeMap<[i64; 2], Vec<StationId>>,
}

impl Cells {
    fn new(places: &[[f64; 2]], width: f64) -> Self {
        let mut cells = Cells { width, squares: BTreeMap::new() };
        for (station, place) in (0..).zip(places) {
            cells.squares.entry(cells.square(*place)).or_default().push(station);
        }
        cells
    }

    fn square(&self, place: [f64; 2]) -> [i64; 2] {
        place.map(|metres| (metres / self.width).floor() as i64)
    }

    /// The other stations that are at most as far away as a square is wide, each with its distance in metres.
    fn near(&self, places: &[[f64; 2]], station: usize) -> impl Iterator<Item = (StationId, f64)> {
        let others = self.around(places[station]).filter(move |other| *other as usize != station);
        let away = others.map(move |other| (other, distance(places[station], places[other as usize])));
        away.filter(|(_, metres)| *metres <= self.width)
    }

    /// The stations in the square of a position and in the eight squares around it.
    fn around(&self, place: [f64; 2]) -> impl Iterator<Item = StationId> {
        let [x, y] = self.square(place);
        let beside = |place: i64| place.saturating_sub(1)..=place.saturating_add(1);
        let squares = beside(x).flat_map(move |x| beside(y).map(move |y| [x, y]));
        squares.filter_map(|square| self.squares.get(&square)).flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::wireless::reception;

    fn paper() -> reception::Range {
        reception::Range::new(370.0, 520.0, 812.0, None)
    }

    #[test]
    fn the_neighbours_of_two_chains() {
        // Five nodes 300 m apart, and five more 450 m beside them.
        let places: Vec<_> = (0..10).map(|n| [300.0 * f64::from(n % 5), 450.0 * f64::from(n / 5)]).collect();
        let neighbours = Neighbours::new(&places, &paper());
        let of = |station| {
            neighbours.list(station).iter().map(|n| (n.station, n.delay, n.sensed)).collect::<Vec<_>>()
        };
        let (next, opposite, diagonal, two, far) = (1000, 1500, 1803, 2000, 2500);
        let beside =
            [(1, next, true), (5, opposite, true), (6, diagonal, false), (2, two, false), (7, far, false)];
        assert_eq!(of(0), beside);
        assert_eq!(neighbours.list(2).len(), 9);
        let all = (0..10).map(|station| neighbours.list(station).len()).sum();
        assert!(!Neighbours::are_more_than(all, &places, &paper()));
        assert!(Neighbours::are_more_than(all - 1, &places, &paper()));
        assert!(neighbours.sense(0, 5) && !neighbours.sense(0, 2) && !neighbours.sense(0, 9));
    }

    #[test]
    fn squares_agree_with_a_plain_search() {
        let places: Vec<_> = (0..300u32)
            .map(|n| [f64::from(n * 7919 % 5000), f64::from(n * 104_729 % 3000) - 1500.0])
            .collect();
        let neighbours = Neighbours::new(&places, &paper());
        for (station, place) in (0..).zip(&places) {
            let mut found: Vec<_> = neighbours.list(station).iter().map(|n| n.station).collect();
            found.sort_unstable();
            let near =
                |other: &StationId| *other != station && distance(*place, places[*other as usize]) <= 812.0;
            assert_eq!(found, (0..300).filter(near).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_place_may_be_anywhere() {
        let neighbours = Neighbours::new(&[[1e300, 0.0], [-1e300, 1e300], [0.0, 0.0]], &paper());
        assert!((0..3).all(|station| neighbours.list(station).is_empty()));
    }

    #[test]
    fn groups_do_not_hear_each_other() {
        let places: Vec<_> =
            (0..6).map(|n| [if n % 2 == 0 { 0.0 } else { 5000.0 }, 800.0 * f64::from(n / 2)]).collect();
        assert_eq!(Neighbours::new(&places, &paper()).groups(), [[0, 2, 4], [1, 3, 5]]);
    }

    #[test]
    fn no_way_round_is_shorter() {
        for step in 1..500 {
            let step = f64::from(step) * 1.7;
            assert!(2 * propagation(step) >= propagation(2.0 * step));
        }
        assert_eq!([propagation(300.0), propagation(600.0)], [1000, 2000]);
    }
}
