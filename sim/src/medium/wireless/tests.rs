//! The channel against what is known of the distributed coordination function: saturated senders.

use super::frames::tests::dcf;
use super::*;

const SECOND: u64 = 1_000_000_000;
/// IP packet of 1000 bytes over UDP.
const PACKET: u32 = 1028;

/// Radios of which some always have a packet for a neighbour, or pass on what they get along a chain.
struct Saturated {
    /// A packet says which station it is for.
    channel: Channel<StationId>,
    /// By station: its neighbour towards the destination.
    next_hop: Vec<Option<StationId>>,
    sources: Vec<StationId>,
    now: Time,
    /// Whether the channel may go on by itself.
    ahead: bool,
    /// Packets that reached their destination.
    delivered: u64,
}

impl Saturated {
    fn new(dcf: Dcf, reception: impl Reception + 'static, places: &[[f64; 2]], seed: u64) -> Self {
        let radio = |(number, place): (usize, &[f64; 2])| Radio {
            place: *place,
            queue: Amount::Packets(50),
            stream: format!("station/{number}"),
        };
        let radios: Vec<_> = places.iter().enumerate().map(radio).collect();
        let channel = Channel::new(dcf, Box::new(reception), &radios, seed);
        Saturated {
            channel,
            next_hop: vec![None; places.len()],
            sources: Vec::new(),
            now: Time::ZERO,
            ahead: true,
            delivered: 0,
        }
    }

    fn send(mut self, way: &[StationId]) -> Self {
        way.windows(2).for_each(|hop| self.next_hop[hop[0] as usize] = Some(hop[1]));
        self.sources.push(way[0]);
        self
    }

    fn offer(&mut self, from: StationId) {
        let Some(to) = self.next_hop[from as usize] else {
            self.delivered += 1;
            return;
        };
        // What does not fit is lost at relays.
        let _ = self.channel.offer(self.now, from, to, PACKET, to);
    }

    /// Until so many seconds; kbit/s of 1000-byte packets delivered after the first second.
    fn run(&mut self, seconds: u64) -> f64 {
        let mut early = 0;
        let mut fates = Vec::new();
        self.fill();
        let until = Time::from_nanos(seconds * SECOND);
        while self.now < until {
            let parts = 0..self.channel.parts();
            let (next, part) =
                parts.map(|part| (self.channel.next(part), part)).min().expect("there are radios");
            self.now = next;
            let until = if self.ahead { until } else { self.now };
            self.now = self.channel.advance(part, self.now, until, &mut fates);
            for fate in fates.drain(..) {
                if let Fate::Delivered(to) = fate {
                    self.offer(to);
                }
            }
            self.fill();
            if self.now < Time::from_nanos(SECOND) {
                early = self.delivered;
            }
        }
        (self.delivered - early) as f64 * 8.0 / (seconds - 1) as f64
    }

    /// Sources have one packet waiting behind the one in service.
    fn fill(&mut self) {
        for source in self.sources.clone() {
            while self.channel.queue(source).packets() < 2 {
                self.offer(source);
            }
        }
    }

    fn statistics(&self, station: StationId) -> Statistics {
        self.channel.statistics(self.now, station)
    }

    /// RTS answered, of those sent by these stations.
    fn answered(&self, stations: &[StationId]) -> f64 {
        let of =
            |count: fn(&Statistics) -> u64| stations.iter().map(|s| count(&self.statistics(*s))).sum::<u64>();
        of(|s| s.rts.answered) as f64 / of(|s| s.rts.sent) as f64
    }
}

fn near(found: f64, expected: f64, tolerance: f64) {
    let off = found / expected - 1.0;
    assert!(off.abs() <= tolerance, "{found:.1} for {expected}: {:.2} %", 100.0 * off);
}

fn in_a_row(count: u32, spacing: f64) -> Vec<[f64; 2]> {
    (0..count).map(|n| [spacing * f64::from(n), 0.0]).collect()
}

fn paper() -> Range {
    Range::new(370.0, 520.0, 812.0, None)
}

fn ns2(decode: f64, sense: f64) -> Range {
    Range::new(decode, sense, sense, Some(10.0))
}

fn slow_control() -> Dcf {
    Dcf { control_rate: 1_000_000, ..dcf() }
}

fn no_rts() -> Dcf {
    Dcf { rts_threshold: None, ..dcf() }
}

#[test]
fn one_hop() {
    for (dcf, expected) in [(dcf(), 1434.2), (slow_control(), 1386.5), (no_rts(), 1588.6)] {
        let mut one = Saturated::new(dcf, paper(), &in_a_row(2, 300.0), 1).send(&[0, 1]);
        near(one.run(60), expected, 0.003);
        let Statistics { rts, data, drops, airtime, .. } = one.statistics(0);
        assert!(rts.sent - rts.answered <= 1 && data.sent - data.answered <= 1);
        assert_eq!((drops.rts_retries, drops.data_retries, airtime.collision), (0, 0, 0));
    }
}

#[test]
fn one_cell() {
    let bianchi = [
        (dcf(), [(2, 1466.0), (5, 1477.4), (10, 1469.7), (20, 1454.2)]),
        (no_rts(), [(2, 1586.5), (5, 1506.3), (10, 1402.2), (20, 1282.3)]),
    ];
    for (dcf, cells) in bianchi {
        for (count, expected) in cells {
            let angle = |n: u32| 2.0 * std::f64::consts::PI * f64::from(n) / f64::from(count);
            let mut places: Vec<_> =
                (0..count).map(|n| [10.0 * libm::cos(angle(n)), 10.0 * libm::sin(angle(n))]).collect();
            places.push([0.0, 0.0]);
            let cell = Saturated::new(dcf.clone(), paper(), &places, 1);
            let mut cell = (0..count).fold(cell, |cell, station| cell.send(&[station, count]));
            let found = cell.run(60);
            near(found, expected, if dcf.rts_threshold.is_some() { 0.01 } else { 0.02 });
        }
    }
}

#[test]
fn hidden_pair() {
    for (dcf, expected, drops) in [(dcf(), 1390.0, 2.4), (slow_control(), 1337.0, 3.2)] {
        let mut pair = Saturated::new(dcf, paper(), &in_a_row(3, 300.0), 1).send(&[0, 1]).send(&[2, 1]);
        let found = pair.run(100);
        near(found, expected, 0.01);
        assert!((pair.answered(&[0, 2]) - 0.75).abs() < 0.015);
        let given_up = pair.statistics(0).drops.rts_retries + pair.statistics(2).drops.rts_retries;
        assert!((given_up as f64 / 100.0 - drops).abs() < 0.8, "{given_up}");
    }
    let mut pair = Saturated::new(no_rts(), paper(), &in_a_row(3, 300.0), 1).send(&[0, 1]).send(&[2, 1]);
    near(pair.run(200), 391.0, 0.05);
}

#[test]
fn sensing_pair() {
    let reception = Range::new(370.0, 812.0, 812.0, None);
    let mut pair = Saturated::new(dcf(), reception, &in_a_row(3, 300.0), 1).send(&[0, 1]).send(&[2, 1]);
    let found = pair.run(100);
    near(found, 1467.0, 0.007);
    let Statistics { rts, collisions, .. } = pair.statistics(0);
    assert!((collisions.slot as f64 / rts.sent as f64 - 0.06).abs() < 0.01);
    assert_eq!(collisions.hidden, 0);
}

#[test]
fn chains() {
    let way: Vec<StationId> = (0..17).collect();
    for (spacing, decode, sense, hops, expected, tolerance) in [
        (300.0, 370.0, 520.0, 2, 733.0, 0.02),
        (300.0, 370.0, 520.0, 3, 430.0, 0.04),
        (200.0, 250.0, 550.0, 2, 715.0, 0.02),
        (200.0, 250.0, 550.0, 3, 483.0, 0.04),
        (300.0, 370.0, 520.0, 4, 247.0, 0.1),
        (200.0, 250.0, 550.0, 4, 338.0, 0.1),
        (300.0, 370.0, 520.0, 16, 234.0, 0.1),
        (200.0, 250.0, 550.0, 16, 207.0, 0.1),
    ] {
        let places = in_a_row(hops + 1, spacing);
        let mut chain = Saturated::new(dcf(), ns2(decode, sense), &places, 1).send(&way[..=hops as usize]);
        let found = chain.run(60);
        near(found, expected, tolerance);
    }
}

#[test]
fn going_on_by_itself_changes_nothing() {
    let two_rows: Vec<_> = (0..14).map(|n| [300.0 * f64::from(n % 7), 450.0 * f64::from(n / 7)]).collect();
    let apart: Vec<_> = two_rows.iter().map(|[x, y]| [*x, 10.0 * y]).collect();
    for places in [two_rows, apart] {
        let counted = |ahead| {
            let rows = Saturated::new(dcf(), paper(), &places, 3);
            let mut rows = rows.send(&[0, 1, 2, 3, 4, 5, 6]).send(&[13, 12, 11, 10, 9, 8, 7]);
            rows.ahead = ahead;
            rows.run(20);
            let end = Time::from_nanos(21 * SECOND);
            (rows.delivered, rows.channel.all(end).collect::<Vec<_>>())
        };
        assert_eq!(counted(true), counted(false));
    }
}
