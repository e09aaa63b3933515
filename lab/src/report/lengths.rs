//! The length of a queue as points of a chart.

use anabranch_sim::trace::Stay;

use super::points::Points;

/// Adds the lengths of a queue to which packets come. Each is counted when it comes, after those that leave until then.
/// The first `before` of `stays` were counted by an earlier call.
pub(super) fn come(points: &mut Points<u32>, stays: &[Stay], before: usize) {
    points.open.compare_all();
    let (mut left, mut low, mut high) = (0, points.open.low.1, points.open.high.1);
    for come in before..stays.len() {
        let at = stays[come].at.as_nanos();
        if at >= points.open.end {
            set_last(points, &stays[before..come], come - left);
            left = one_by_one(points, &stays[..=come], left);
            points.open.compare_all();
            (low, high) = (points.open.low.1, points.open.high.1);
            continue;
        }
        while left < come && stays[left].leaves.as_nanos() <= at {
            left += 1;
        }
        // Of those that have left, the last leaves the shortest queue.
        let length = (come - left) as u32;
        if length.wrapping_sub(low) >= high - low {
            if length < low {
                low = length;
                points.open.low = (stays[left - 1].leaves.as_nanos(), low);
            }
            if length >= high {
                high = length + 1;
                points.open.high = (at, high);
            }
        }
    }
    set_last(points, &stays[before..], stays.len() - left);
}

/// The last of these packets has come, to a queue that is so long then.
fn set_last(points: &mut Points<u32>, came: &[Stay], length: usize) {
    if let Some(last) = came.last() {
        points.open.last = (last.at.as_nanos(), length as u32);
    }
}

/// Adds the lengths until the last of these packets comes. `left` of them have left before; returns how many have left
/// then.
#[inline(never)]
fn one_by_one(points: &mut Points<u32>, stays: &[Stay], mut left: usize) -> usize {
    let Some((stay, earlier)) = stays.split_last() else { return left };
    while let Some(next) = earlier[left..].first().filter(|next| next.leaves <= stay.at) {
        left += 1;
        points.push(next.leaves.as_nanos(), (earlier.len() - left) as u32);
    }
    points.push(stay.at.as_nanos(), (stays.len() - left) as u32);
    left
}

#[cfg(test)]
mod tests {
    use anabranch_proto::Time;

    use super::*;

    /// Packets that come at random and are sent one after the other.
    fn stays(count: u64, busy: u64) -> Vec<Stay> {
        let (mut chance, mut at, mut free) = (busy, 0, 0);
        let stay = |_| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            at += (chance >> 33) % 200;
            free = free.max(at) + busy;
            Stay { at: Time::from_nanos(at), leaves: Time::from_nanos(free), size: 100 }
        };
        (1..=count).map(stay).collect()
    }

    /// The lengths one by one: at each time packets leave before others come.
    fn apart(stays: &[Stay], end: u64) -> Points<u32> {
        let (mut points, mut waiting) = (Points::new(64), Vec::new());
        let leave = |until: u64, waiting: &mut Vec<u64>, points: &mut Points<u32>| {
            while waiting.first().is_some_and(|leaves| *leaves <= until) {
                let at = waiting.remove(0);
                points.push(at, waiting.len() as u32);
            }
        };
        for stay in stays {
            leave(stay.at.as_nanos(), &mut waiting, &mut points);
            waiting.push(stay.leaves.as_nanos());
            points.push(stay.at.as_nanos(), waiting.len() as u32);
        }
        leave(end, &mut waiting, &mut points);
        points
    }

    /// What `come` makes of them, with `count` packets in each call.
    fn together_by(stays: &[Stay], count: usize, end: u64) -> Points<u32> {
        let (mut points, mut from) = (Points::new(64), 0);
        for next in (0..stays.len()).step_by(count) {
            let to = (next + count).min(stays.len());
            come(&mut points, &stays[from..to], next - from);
            from += stays[from..to - 1].partition_point(|stay| stay.leaves <= stays[to - 1].at);
        }
        for (waiting, stay) in (0..stays.len() - from).rev().zip(&stays[from..]) {
            if stay.leaves.as_nanos() <= end {
                points.push(stay.leaves.as_nanos(), waiting as u32);
            }
        }
        points
    }

    #[test]
    fn packets_that_come_together_make_the_same_points() {
        for (count, busy) in [(20, 90), (5_000, 10), (5_000, 95), (5_000, 100), (5_000, 130), (500, 0)] {
            let stays = stays(count, busy);
            let end = stays[stays.len() - 1].at.as_nanos() + 50 * busy;
            let expected: Vec<_> = apart(&stays, end).iter().collect();
            for together in [1, 7, 128, 10_000] {
                let points: Vec<_> = together_by(&stays, together, end).iter().collect();
                assert_eq!(points, expected, "{count} packets of {busy} ns, {together} together");
            }
        }
    }
}
