use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::scenario::Trace;
use crate::tests::frame;

const MS: u64 = 1_000_000;

/// 1 Mbit/s: 125 bytes take 1 ms; 10 ms of delay.
fn link(queue: Queue) -> Direction {
    Direction::new(1_000_000, 10 * MS, queue, Losses::new(0, "x", &Loss::None), true)
}

fn ms(n: u64) -> Time {
    Time::from_nanos(n * MS)
}

fn offer(link: &mut Direction, now: Time, size: u32) -> Option<DropCause> {
    match link.offer(now, frame(size, 0), Turn::default()) {
        OfferResult::Sent(carried) => {
            link.carry(carried.frame, carried.transit);
            None
        }
        OfferResult::Waits => None,
        OfferResult::Dropped(cause, _) => Some(cause),
    }
}

fn arrivals(link: &mut Direction) -> Vec<u64> {
    let mut times = Vec::new();
    while let Some((time, turn)) = link.head() {
        link.deliver(time, turn);
        times.push(time.as_nanos() / MS);
    }
    times
}

#[test]
fn packets_are_sent_one_after_the_other() {
    let mut link = link(Queue::Packets(9));
    assert_eq!(offer(&mut link, ms(0), 125), None);
    assert_eq!(offer(&mut link, ms(0), 250), None);
    assert_eq!(offer(&mut link, ms(7), 125), None);
    assert_eq!(arrivals(&mut link), [11, 13, 18]);
    assert_eq!(link.counters.delivered_bytes, 500);
}

#[test]
fn a_packet_whose_departure_is_now_has_left() {
    let mut link = link(Queue::Packets(2));
    assert_eq!(offer(&mut link, ms(0), 125), None);
    assert_eq!(offer(&mut link, ms(0), 125), None);
    assert_eq!(offer(&mut link, Time::from_nanos(MS - 1), 125), Some(DropCause::Queue));
    assert_eq!(offer(&mut link, ms(1), 125), None);
    assert_eq!((link.queue.packets(), link.queue.most()), (2, 2));
    assert_eq!(link.counters.queue, 1);
}

#[test]
fn fifty_packets_hold_fifty() {
    let mut link = link(Queue::Packets(50));
    let dropped = (0..68).filter(|_| offer(&mut link, ms(0), 1500).is_some()).count();
    assert_eq!(dropped, 18);
}

#[test]
fn lost_packets_take_no_place() {
    let mut link = link(Queue::Packets(1));
    link.losses.change(&Loss::Listed(vec![1, 3]), &[]);
    let fates: Vec<_> = (0..4).map(|_| offer(&mut link, ms(0), 125)).collect();
    assert_eq!(fates, [Some(DropCause::Loss), None, Some(DropCause::Loss), Some(DropCause::Queue)]);
    assert_eq!(arrivals(&mut link), [11]);
}

#[test]
fn a_new_rate_is_for_the_packets_that_wait() {
    let mut link = link(Queue::Packets(9));
    (0..4).for_each(|_| assert_eq!(offer(&mut link, ms(0), 125), None));
    let half = Alteration { rate: Some(500_000), ..Alteration::default() };
    assert!(link.alter(Time::from_nanos(MS * 3 / 2), half).is_empty());
    assert_eq!(link.mean_rate(ms(0), ms(3)), 750_000.0);
    assert_eq!(link.mean_rate(ms(2), ms(3)), 500_000.0);
    assert_eq!(arrivals(&mut link), [11, 12, 14, 16], "one has left, one is being sent");
}

#[test]
fn a_new_delay_is_for_the_packets_that_leave_and_never_reorders() {
    let mut link = link(Queue::Packets(9));
    (0..4).for_each(|_| assert_eq!(offer(&mut link, ms(0), 125), None));
    let short = Alteration { delay: Some(9 * MS), ..Alteration::default() };
    link.alter(Time::from_nanos(MS * 3 / 2), short);
    assert_eq!(arrivals(&mut link), [11, 11, 12, 13]);
    (0..3).for_each(|_| assert_eq!(offer(&mut link, ms(20), 125), None));
    link.alter(ms(21), Alteration { delay: Some(0), ..Alteration::default() });
    assert_eq!(arrivals(&mut link), [30, 30, 30]);
}

#[test]
fn down_loses_what_is_on_it_and_what_comes() {
    let mut link = link(Queue::Packets(9));
    (0..3).for_each(|_| assert_eq!(offer(&mut link, ms(0), 125), None));
    let lost = link.alter(ms(1), Alteration { up: Some(false), ..Alteration::default() });
    assert_eq!(lost.len(), 3);
    assert_eq!(link.queue.packets(), 0);
    assert_eq!(offer(&mut link, ms(2), 125), Some(DropCause::Down));
    assert_eq!(link.counters.down, 4);
    link.alter(ms(3), Alteration { up: Some(true), ..Alteration::default() });
    assert_eq!(offer(&mut link, ms(3), 125), None);
    assert_eq!(arrivals(&mut link), [14]);
}

/// Of three packets one has left and one is being sent when the jitter changes: the old jitter is for the first, the
/// new one for the others.
#[test]
fn new_jitter_is_for_the_packets_that_leave_later() {
    for (before, after) in [(0, 5 * MS), (5 * MS, 0)] {
        for reorder in [false, true] {
            let jitter = |most| Jitter::new(1, "x", most, reorder);
            let mut link = link(Queue::Packets(9)).jittering(Some(jitter(before)));
            (0..3).for_each(|_| assert_eq!(offer(&mut link, ms(0), 125), None));
            let altered = Time::from_nanos(MS * 3 / 2);
            link.alter(altered, Alteration { jitter: Some(after), ..Alteration::default() });
            let drawn = |number: u64, most| later(ms(10 + number), jitter(most).draw(number, ms(number)));
            let mut expected = vec![drawn(1, before), drawn(2, after), drawn(3, after)];
            if reorder {
                expected.sort();
            } else {
                (1..3).for_each(|n| expected[n] = expected[n].max(expected[n - 1]));
            }
            assert_eq!(arrivals_of_packets(&mut link), expected, "{before} {after} {reorder}");
        }
    }
}

/// The times at which packets arrive.
fn arrivals_of_packets(link: &mut Direction) -> Vec<Time> {
    let mut times = Vec::new();
    while let Some((time, turn)) = link.head() {
        times.extend(link.deliver(time, turn).map(|_| time));
    }
    times
}

/// Packets that are lost when the link goes down leave their delivery opportunities to those that come later.
#[test]
fn lost_packets_keep_no_opportunities() {
    let trace = Arc::new(Trace::Opportunities((1..=100).collect()));
    let mut link = link(Queue::Packets(99)).traced(Some(Traced::new(&trace, Duration::ZERO)));
    (0..50).for_each(|_| assert_eq!(offer(&mut link, ms(0), 1500), None));
    for (at, up) in [(3, false), (5, true)] {
        link.alter(ms(at), Alteration { up: Some(up), ..Alteration::default() });
    }
    (0..2).for_each(|_| assert_eq!(offer(&mut link, ms(6), 1500), None));
    assert_eq!(arrivals(&mut link), [16, 17]);
}
