//! Random Early Detection (Floyd and Jacobson 1993) as ns-2 2.35 has it with `gentle_` and `wait_` on and `bytes_` off:
//! the arriving packet is the one that is dropped, whatever its size.

use anabranch_proto::Time;

use crate::chance::{Draws, threshold};
use crate::scenario::{self, Amount};

/// The state of RED before one link direction.
#[derive(Debug)]
pub(crate) struct Red {
    in_bytes: bool,
    min: f64,
    max: f64,
    probability: f64,
    weight: f64,
    draws: Draws,
    drawn: u64,
    average: f64,
    /// Packets since the last early drop, or since the average rose above `min`.
    count: u64,
    above: bool,
}

/// Bytes of a packet by which the time that a link was idle is counted (ns-2's `mean_pktsize_`).
const IDLE_PACKET: f64 = 500.0;

/// What RED sees of a queue when a packet arrives.
pub(crate) struct Seen {
    /// Packets and bytes that wait; the one that is being sent does not.
    pub(crate) packets: u32,
    pub(crate) bytes: u64,
    /// Since when the link has been idle, if it is.
    pub(crate) idle: Option<Time>,
    /// Bit/s.
    pub(crate) rate: u64,
}

impl Red {
    /// `stream` names the draws of this direction.
    pub(crate) fn new(red: &scenario::Red, root: u64, stream: &str) -> Self {
        Red {
            in_bytes: matches!(red.limit, Amount::Bytes(_)),
            min: red.min.number(),
            max: red.max.number(),
            probability: red.probability,
            weight: red.weight,
            draws: Draws::new(root, stream),
            drawn: 0,
            average: 0.0,
            count: 0,
            above: false,
        }
    }

    /// Whether the packet that arrives now is dropped.
    pub(crate) fn drops(&mut self, now: Time, seen: &Seen) -> bool {
        let waiting = if self.in_bytes { seen.bytes as f64 } else { f64::from(seen.packets) };
        self.estimate(now, seen, waiting);
        self.count += 1;
        if self.average < self.min || waiting <= 1.0 {
            self.above = false;
            return false;
        }
        if !self.above {
            (self.count, self.above) = (1, true);
            return false;
        }
        let early = self.drawn_below(self.chance());
        if early {
            self.count = 0;
        }
        early
    }

    /// The packet that arrives now finds the queue full.
    pub(crate) fn is_full(&mut self) {
        self.count = 0;
    }

    /// The exponential average; while the link was idle, as many small packets as it could have sent found the queue
    /// empty.
    fn estimate(&mut self, now: Time, seen: &Seen, waiting: f64) {
        if let Some(since) = seen.idle {
            let seconds = (now - since).as_secs_f64();
            let packets = (seconds * seen.rate as f64 / 8.0 / IDLE_PACKET) as u64;
            self.average *= libm::pow(1.0 - self.weight, packets as f64);
        }
        self.average = self.average * (1.0 - self.weight) + self.weight * waiting;
    }

    /// The probability that this packet is dropped: it grows with the average, and with the packets since the last
    /// drop, so that drops are spread evenly.
    fn chance(&self) -> f64 {
        let base = if self.average < self.max {
            self.probability * (self.average - self.min) / (self.max - self.min)
        } else {
            // Between `max` and twice that it rises from `probability` to 1; from there on every packet is dropped.
            self.probability + (1.0 - self.probability) * (self.average - self.max) / self.max
        };
        let spread = self.count as f64 * base;
        match () {
            _ if spread < 1.0 => 0.0,
            _ if spread < 2.0 => (base / (2.0 - spread)).min(1.0),
            _ => 1.0,
        }
    }

    fn drawn_below(&mut self, probability: f64) -> bool {
        let draw = self.draws.nth(self.drawn);
        self.drawn += 1;
        draw < threshold(probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red() -> Red {
        let amounts = [60, 5, 15].map(Amount::Packets);
        let [limit, min, max] = amounts;
        Red::new(&scenario::Red { limit, min, max, probability: 0.1, weight: 0.5 }, 1, "x")
    }

    /// Whether each of so many packets is dropped that find this number waiting.
    fn drops(red: &mut Red, packets: u32, times: usize) -> Vec<bool> {
        let seen = || Seen { packets, bytes: u64::from(packets) * 500, idle: None, rate: 1_000_000 };
        (0..times).map(|_| red.drops(Time::ZERO, &seen())).collect()
    }

    /// With an average of twice `max` each packet is dropped, but the one that finds an average above `min` for the
    /// first time. Every drop begins the distance to the next anew, as in ns-2: at 10 packets, whose probability is
    /// 1/20, no packet is dropped before the twentieth.
    #[test]
    fn every_drop_begins_the_distance_anew() {
        let mut red = red();
        assert_eq!(drops(&mut red, 1000, 4), [false, true, true, true]);
        red.average = 10.0;
        assert_eq!(drops(&mut red, 10, 19), [false; 19]);
        let mut red = self::red();
        drops(&mut red, 10, 30);
        red.is_full();
        red.average = 10.0;
        assert_eq!(drops(&mut red, 10, 19), [false; 19]);
    }
}
