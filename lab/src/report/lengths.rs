//! The length of a queue as points of a chart.

use anabranch_sim::trace::Stay;

use super::points::Points;

/// The packets in the queue of a link direction over time.
#[derive(Debug)]
pub(super) struct Lengths {
    points: Points,
    /// When each packet leaves.
    leaves: Vec<u64>,
    /// So many of them, from the first, have left.
    left: usize,
    /// So many have come and not left.
    length: usize,
}

/// The open interval of the points.
#[derive(Copy, Clone)]
struct Open {
    end: u64,
    low: Extreme,
    high: Extreme,
    /// The number of changes before its first point. It may be below zero, so it wraps.
    before: usize,
}

/// The least or greatest length of an interval, its time, and the number of changes before it.
#[derive(Copy, Clone)]
struct Extreme {
    length: usize,
    at: u64,
    changes: usize,
}

impl Lengths {
    /// At most `limit` points.
    pub(super) fn new(limit: usize) -> Self {
        Lengths { points: Points::new(limit), leaves: Vec::new(), left: 0, length: 0 }
    }

    pub(super) fn points(&self) -> &Points {
        &self.points
    }

    /// The queue is so long from now on.
    pub(super) fn change(&mut self, at: u64, length: u32) {
        self.points.push(at, length as f32);
    }

    /// Packets come. Each is counted when it comes, after those that leave until then.
    pub(super) fn come(&mut self, stays: &[Stay]) {
        self.leaves.drain(..self.left);
        self.leaves.extend(stays.iter().map(|stay| stay.leaves.as_nanos()));
        let Lengths { points, leaves, length: waiting, .. } = self;
        let (mut left, mut open) = (0, Open::of(points, 0));
        for (come, stay) in stays.iter().enumerate() {
            let (at, here) = (stay.at.as_nanos(), *waiting + come);
            if at >= open.end {
                let latest = stays[..come].last().map_or(0, |stay| stay.at.as_nanos());
                (left, open) = open.go_beyond(points, &leaves[..here], (come, left), (latest, at));
                continue;
            }
            while left < here && leaves[left] <= at {
                left += 1;
            }
            let length = here - left;
            // Of those that have left, the last leaves the shortest queue.
            if length < open.low.length {
                open.low = Extreme { length, at: leaves[left - 1], changes: come + left - 1 };
            }
            if length + 1 >= open.high.length {
                open.high = Extreme { length: length + 1, at, changes: come + left };
            }
        }
        let latest = stays.last().map_or(0, |stay| stay.at.as_nanos());
        (self.left, self.length) = (left, *waiting + stays.len() - left);
        open.store(points, stays.len() + left, (latest, self.length));
    }

    /// The run is over: packets leave up to now.
    pub(super) fn end(&mut self, now: u64) {
        while self.length > 0 && self.leaves[self.left] <= now {
            self.length -= 1;
            self.points.push(self.leaves[self.left], self.length as f32);
            self.left += 1;
        }
    }
}

impl Open {
    /// The open interval after so many changes.
    #[inline(always)]
    fn of(points: &mut Points, changes: usize) -> Self {
        let open = &mut points.open;
        open.compare_all();
        let before = changes.wrapping_sub(open.count as usize);
        let extreme = |(number, (at, length)): (u32, (u64, f32))| Extreme {
            length: length as usize,
            at,
            changes: before.wrapping_add(number as usize),
        };
        Open { end: open.end, low: extreme(open.low), high: extreme(open.high), before }
    }

    /// Completes it after so many changes, the latest with this time and length.
    #[inline(always)]
    fn store(self, points: &mut Points, changes: usize, (at, length): (u64, usize)) {
        if changes == 0 {
            return;
        }
        let extreme = |Extreme { length, at, changes }: Extreme| {
            (changes.wrapping_sub(self.before) as u32, (at, length as f32))
        };
        points.open.count = changes.wrapping_sub(self.before) as u32;
        points.open.last = (at, length as f32);
        (points.open.low, points.open.high) = (extreme(self.low), extreme(self.high));
    }

    /// The changes up to a packet that comes beyond its end, one by one. `leaves`: when those leave that came before. The packet comes
    /// after so many others, and so many have left before. `latest` is the time of the change before.
    #[inline(never)]
    fn go_beyond(
        mut self,
        points: &mut Points,
        leaves: &[u64],
        (come, mut left): (usize, usize),
        (mut latest, at): (u64, u64),
    ) -> (usize, Self) {
        while let Some(&leaving) = leaves.get(left).filter(|leaving| **leaving <= at) {
            let length = leaves.len() - left - 1;
            if leaving >= self.end {
                self = self.close(points, come + left, (latest, length + 1), (leaving, length));
            } else if length < self.low.length {
                self.low = Extreme { length, at: leaving, changes: come + left };
            }
            (latest, left) = (leaving, left + 1);
        }
        let length = leaves.len() - left;
        if at >= self.end {
            self = self.close(points, come + left, (latest, length), (at, length + 1));
        } else if length + 1 >= self.high.length {
            self.high = Extreme { length: length + 1, at, changes: come + left };
        }
        (left, self)
    }

    /// Adds a length behind it, and begins the next one.
    #[inline(always)]
    fn close(
        self,
        points: &mut Points,
        changes: usize,
        latest: (u64, usize),
        (at, length): (u64, usize),
    ) -> Self {
        self.store(points, changes, latest);
        points.begin((at, length as f32));
        Open::of(points, changes + 1)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_proto::Time;

    use super::*;

    /// Packets that come at random and are sent one after the other.
    fn stays(count: u64, busy: u64) -> Vec<Stay> {
        let (mut chance, mut at, mut free) = (busy, 0, 0);
        let stay = |number: u64| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            at += (chance >> 33) % 200;
            free = free.max(at) + busy;
            Stay { at: Time::from_nanos(at), leaves: Time::from_nanos(free), number, size: 100 }
        };
        (1..=count).map(stay).collect()
    }

    /// The lengths one by one: at each time packets leave before others come.
    fn one_by_one(stays: &[Stay], end: u64) -> Points {
        let (mut points, mut waiting) = (Points::new(64), Vec::new());
        let leave = |until: u64, waiting: &mut Vec<u64>, points: &mut Points| {
            while waiting.first().is_some_and(|leaves| *leaves <= until) {
                let at = waiting.remove(0);
                points.push(at, waiting.len() as f32);
            }
        };
        for stay in stays {
            leave(stay.at.as_nanos(), &mut waiting, &mut points);
            waiting.push(stay.leaves.as_nanos());
            points.push(stay.at.as_nanos(), waiting.len() as f32);
        }
        leave(end, &mut waiting, &mut points);
        points
    }

    #[test]
    fn packets_that_come_together_make_the_same_points() {
        for (count, busy) in [(20, 90), (5_000, 10), (5_000, 95), (5_000, 100), (5_000, 130), (500, 0)] {
            let stays = stays(count, busy);
            let end = stays[stays.len() - 1].at.as_nanos() + 50 * busy;
            let expected: Vec<_> = one_by_one(&stays, end).iter().collect();
            for together in [1, 7, 128, 10_000] {
                let mut lengths = Lengths::new(64);
                stays.chunks(together).for_each(|stays| lengths.come(stays));
                lengths.end(end);
                let points: Vec<_> = lengths.points().iter().collect();
                assert_eq!(points, expected, "{count} packets of {busy} ns, {together} together");
            }
        }
    }
}
