//! The requirements of the standards on a sender and a receiver, one by one. The tests observe which segments leave,
//! and when.

use anabranch_proto::control::window::{Reno, Start};
use anabranch_proto::{Duration, Time};

use super::config::{TcpConfig, Variant};
use super::segment::{TcpNote, Why};
use super::sender::Sender;
use super::tests::World;
use super::window::Window;

/// One hop of 8 Mbit/s and 20 ms. A segment of 1,000 bytes takes a millisecond, or 1.04 ms with its headers.
const HOP: [(u64, u64); 1] = [(8_000_000, 20_000)];
const SEGMENT: u64 = 1000;

/// Segments of 1,000 bytes, each acknowledged at once, and a window of this number of segments without slow start.
fn segments(variant: Variant, window: u64) -> TcpConfig {
    TcpConfig {
        ack_every: 1,
        initial_window: window * SEGMENT,
        initial_ssthresh: Some(window * SEGMENT),
        ..variant.defaults(SEGMENT as u32)
    }
}

/// Runs a transfer of `count` segments in which these data segments are lost.
fn transfer(config: &TcpConfig, count: u64, lost: &[u64]) -> World {
    let mut world = World::new(config, &HOP, lost);
    world.ends[0].write(count * SEGMENT);
    world.ends[0].close();
    world.run(Duration::from_secs(300));
    assert_eq!(world.ends[1].receiver_read(), count * SEGMENT, "everything arrives");
    world
}

/// The retransmissions: when (in seconds), which segment (counted from 1), and why.
fn again(world: &World) -> Vec<(f64, u64, Why)> {
    let again = world.sent.iter().filter(|sent| sent.2 != Why::New);
    again.map(|sent| (seconds(sent.0), sent.1 / SEGMENT + 1, sent.2)).collect()
}

fn seconds(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e9
}

/// When this segment was first sent.
fn left(world: &World, segment: u64) -> f64 {
    let sent = world.sent.iter().find(|sent| sent.1 == (segment - 1) * SEGMENT);
    seconds(sent.expect("it was sent").0)
}

/// The changes of the congestion window and of ssthresh, in segments.
fn windows(world: &World) -> Vec<(f64, f64)> {
    let mut seen = Vec::new();
    for (_, note) in &world.notes {
        if let TcpNote::Window { cwnd_segments, ssthresh, .. } = note {
            let now = (*cwnd_segments, *ssthresh as f64 / SEGMENT as f64);
            if seen.last() != Some(&now) {
                seen.push(now);
            }
        }
    }
    seen
}

/// The third duplicate triggers the retransmission, long before the timer would.
//= rfc5681#section-3.2
#[test]
fn the_third_duplicate_sends_a_segment_again() {
    for variant in [Variant::Standard, Variant::NewReno] {
        let world = transfer(&segments(variant, 10), 40, &[5]);
        let [(at, 5, Why::Missing)] = again(&world)[..] else { panic!("{:?}", again(&world)) };
        // Segment 8 causes the third duplicate: its wait behind the others, its way to the receiver, and the way of the
        // acknowledgement back.
        let third = left(&world, 8);
        assert!(at > third + 0.041 && at < third + 0.050, "{variant:?}: {at} after {third}");
    }
}

/// After a pause longer than the retransmission timeout no more than the initial window leaves at once; after a shorter
/// one the whole window does.
//= rfc5681#section-4.1
#[test]
fn a_long_pause_ends_with_the_initial_window() {
    let at_once = |pause: u64| {
        let config = TcpConfig {
            ack_every: 1,
            initial_window: 4 * SEGMENT,
            ..Variant::Standard.defaults(SEGMENT as u32)
        };
        let mut world = World::new(&config, &HOP, &[]);
        world.ends[0].write(24 * SEGMENT);
        world.run(Duration::from_secs(60));
        world.now += Duration::from_millis(pause);
        world.ends[0].write(100 * SEGMENT);
        let now = world.now;
        world.run(Duration::from_secs(60));
        world.sent.iter().filter(|sent| sent.0 == now).count()
    };
    assert_eq!(at_once(1500), 4);
    assert!(at_once(500) > 12, "acknowledgements of full windows have doubled it");
}

/// Fast recovery reduces the window to half of the flight, and at least to two segments.
//= rfc5681#section-3.1
#[test]
fn a_loss_halves_what_was_in_flight() {
    let world = transfer(&segments(Variant::Standard, 10), 40, &[5]);
    let halved = windows(&world).windows(2).find(|pair| pair[1].0 < pair[0].0).map(|pair| pair[1]);
    assert_eq!(halved, Some((5.0, 5.0)), "{:?}", windows(&world));
}

/// A timeout reduces the window to one segment and ssthresh to half of the flight, at least two segments.
//= rfc5681#section-3.1
#[test]
fn a_timeout_begins_with_one_segment() {
    for (window, ssthresh) in [(10, 5.0), (2, 2.0)] {
        let lost: Vec<u64> = (1..=window).collect();
        let world = transfer(&segments(Variant::Standard, window), 20, &lost);
        let after = windows(&world).into_iter().find(|seen| seen.0 == 1.0);
        assert_eq!(after, Some((1.0, ssthresh)), "{:?}", windows(&world));
    }
}

/// A lost retransmission is a second indication of congestion: the timeout halves what the recovery has left, although
/// SACKs have let much more leave than a window by then.
//= rfc5681#section-4.3
#[test]
fn a_lost_retransmission_lowers_the_threshold_twice() {
    let config = segments(Variant::Standard, 10);
    let once = transfer(&config, 400, &[5]);
    let again = once.sent.iter().position(|sent| sent.2 == Why::Missing).expect("segment 5 goes again");
    let world = transfer(&config, 400, &[5, again as u64 + 1]);
    let before_timeout = world.sent.iter().take_while(|sent| sent.2 != Why::Timeout).count();
    assert!(before_timeout > 60, "{before_timeout}");
    let after = windows(&world).into_iter().find(|seen| seen.0 == 1.0);
    assert_eq!(after, Some((1.0, 2.5)), "{:?}", windows(&world));
}

/// A timeout doubles the next one.
//= rfc6298#section-5
#[test]
fn the_timeout_doubles_until_an_acknowledgement() {
    let world = transfer(&segments(Variant::Standard, 10), 1, &[1, 2, 3]);
    let times: Vec<f64> =
        std::iter::once(left(&world, 1)).chain(again(&world).iter().map(|sent| sent.0)).collect();
    let waits: Vec<f64> = times.windows(2).map(|pair| ((pair[1] - pair[0]) * 1e3).round() / 1e3).collect();
    assert_eq!(waits, [1.0, 2.0, 4.0], "a second at least, then twice as long each time");
}

/// The acknowledgement of a segment that was sent twice measures nothing (Karn).
//= rfc6298#section-3
#[test]
fn a_segment_that_was_sent_again_is_not_timed() {
    let world = transfer(&segments(Variant::Standard, 1), 10, &[1]);
    assert_eq!(again(&world).iter().map(|sent| sent.2).collect::<Vec<_>>(), [Why::Timeout]);
    let measured = world.notes.iter().filter_map(|(_, note)| match note {
        TcpNote::Rto { srtt, .. } => *srtt,
        _ => None,
    });
    let longest = measured.max().expect("others are timed");
    assert!(longest < Duration::from_millis(50), "a second of waiting is no round trip: {longest:?}");
}

/// The same holds for a segment that leaves for the first time in a recovery and is sent again in it. Segment 3 begins
/// the recovery; the last segment before it and the first new one in it are lost too, so that the recovery lasts until
/// both are repaired.
//= rfc6298#section-3
#[test]
fn a_segment_that_was_sent_twice_in_a_recovery_is_not_timed() {
    let config = segments(Variant::Standard, 10);
    let once = transfer(&config, 60, &[3]);
    let first_again = once.sent.iter().position(|sent| sent.2 == Why::Missing).expect("segment 3 goes again");
    assert_eq!(once.sent[first_again + 1].2, Why::New, "this segment is timed");
    let before = first_again as u64;
    let world = transfer(&config, 60, &[3, before, before + 2]);
    let again = again(&world);
    assert_eq!(again.iter().map(|sent| sent.2).collect::<Vec<_>>(), [Why::Missing; 3], "{again:?}");
    assert_eq!(world.ends[0].counts().fast_recoveries, 1);
    let measured = world.notes.iter().filter_map(|(_, note)| match note {
        TcpNote::Rto { srtt, .. } => *srtt,
        _ => None,
    });
    let longest = measured.max().expect("others are timed");
    assert!(longest < Duration::from_millis(45), "two round trips are not one: {longest:?}");
}

/// Without SACK, a partial acknowledgement reveals the next loss: one in each round trip, in one recovery.
//= rfc6582#section-3.2
#[test]
fn a_partial_acknowledgement_sends_the_next_hole() {
    let world = transfer(&segments(Variant::NewReno, 12), 60, &[3, 5, 7]);
    let again = again(&world);
    assert_eq!(
        again.iter().map(|sent| (sent.1, sent.2)).collect::<Vec<_>>(),
        [3, 5, 7].map(|n| (n, Why::Missing))
    );
    for pair in again.windows(2) {
        let wait = pair[1].0 - pair[0].0;
        assert!((0.041..0.060).contains(&wait), "a round trip apart: {again:?}");
    }
    assert_eq!(world.ends[0].counts().fast_recoveries, 1);
}

/// With SACK, lost segments are sent again when the pipe has room: all within one round trip, each once.
//= rfc6675#section-5
#[test]
fn with_sack_all_holes_are_repaired_in_a_round_trip() {
    let world = transfer(&segments(Variant::Standard, 12), 60, &[3, 5, 7]);
    let again = again(&world);
    assert_eq!(
        again.iter().map(|sent| (sent.1, sent.2)).collect::<Vec<_>>(),
        [3, 5, 7].map(|n| (n, Why::Missing))
    );
    assert!(again[2].0 - again[0].0 < 0.041, "{again:?}");
    assert_eq!(world.ends[0].counts().fast_recoveries, 1);
}

/// The rescue retransmission waits until more is acknowledged than the segment with which the recovery began. Of seven
/// segments, 1, 2 and 7 are lost: it is the acknowledgement of 2, not that of 1, that sends 7 again.
//= rfc6675#section-5
#[test]
fn the_rescue_waits_for_more_than_the_first_segment() {
    let again = again(&transfer(&segments(Variant::Standard, 7), 7, &[1, 2, 7]));
    let [(first, 1, Why::Missing), (second, 2, Why::Missing), (rescue, 7, Why::Missing)] = again[..] else {
        panic!("{again:?}")
    };
    assert!(second > first && rescue > second + 0.041, "{again:?}");
}

/// A sender alone, to which a test tells every acknowledgement.
struct Told(Sender);

impl Told {
    /// A window of this number of segments without slow start, and so many segments of data.
    fn new(variant: Variant, window: u64, data: u64) -> Self {
        let config = segments(variant, window);
        let start = Start { unit: SEGMENT, window: window * SEGMENT, ssthresh: window * SEGMENT };
        let reno = Window::Bytes(Box::new(Reno::new(start, config.halving)));
        let mut sender = Sender::new(config, reno, Duration::ZERO);
        (sender.flight.written, sender.flight.admitted) = (data * SEGMENT, 1 << 30);
        Told(sender)
    }

    /// What leaves now: segments, counted from 1, and whether they leave again.
    fn leaves(&mut self) -> Vec<(u64, bool)> {
        let pieces = std::iter::from_fn(|| self.0.poll(Time::ZERO));
        pieces.map(|piece| (piece.start / SEGMENT + 1, piece.why != Why::New)).collect()
    }

    /// All segments up to `last` have arrived, and those of these ranges (first and last). Returns what leaves.
    fn hears(&mut self, last: u64, beyond: &[(u64, u64)]) -> Vec<(u64, bool)> {
        let blocks: Vec<_> = beyond.iter().map(|(from, to)| ((from - 1) * SEGMENT, to * SEGMENT)).collect();
        self.0.acknowledged(Time::ZERO, (last * SEGMENT, (1 << 30) - last * SEGMENT), &blocks, true);
        self.leaves()
    }

    /// Ten segments left, and 1 is lost. The recovery has begun and 13 to 16 have left in it.
    fn in_recovery() -> Self {
        let mut told = Told::new(Variant::Standard, 10, 1000);
        assert_eq!(told.leaves().len(), 10);
        assert_eq!(told.hears(0, &[(2, 2)]), [(11, false)]);
        assert_eq!(told.hears(0, &[(2, 3)]), [(12, false)]);
        assert_eq!(told.hears(0, &[(2, 4)]), [(1, true)]);
        assert_eq!(told.hears(0, &[(2, 12)]), [13, 14, 15, 16].map(|segment| (segment, false)));
        told
    }
}

/// Segments 13 and 14 are known to be lost and have been sent again when the recovery ends. The next duplicate begins
/// another recovery, without a second and a third one, also if it tells of no further loss: both left after the window
/// had been cut.
//= rfc6675#section-5
#[test]
fn a_loss_that_is_known_begins_a_recovery_with_the_first_duplicate() {
    let mut told = Told::in_recovery();
    assert_eq!(told.hears(0, &[(2, 12), (15, 16)]), [(17, false), (18, false)]);
    assert_eq!(told.hears(0, &[(2, 12), (15, 17)]), [(13, true), (14, true), (19, false)]);
    assert_eq!(told.hears(12, &[(15, 17)]), [(20, false)]);
    assert_eq!(told.0.counts().fast_recoveries, 1);
    assert_eq!(told.hears(12, &[(14, 17)])[0], (13, true));
    assert_eq!(told.0.counts().fast_recoveries, 2);
}

/// The same segment, but the window has become so small that it could not be sent again in the recovery. It does not go
/// again outside one.
//= rfc6675#section-5
#[test]
fn nothing_goes_again_outside_a_recovery() {
    let mut told = Told::in_recovery();
    told.0.flight.window.restart(SEGMENT);
    assert_eq!(told.hears(0, &[(2, 12), (14, 16)]), []);
    assert_eq!(told.hears(12, &[(14, 16)]), [(17, false)]);
    assert_eq!(told.hears(12, &[(14, 17)])[0], (13, true));
    assert_eq!(told.0.counts().fast_recoveries, 2);
}

/// A rescue does not count as the retransmission of a lost segment: of 14 segments, 1 and 12 to 14 are lost. Segment 14
/// is rescued, in vain. When new data shows that all three are lost, all three go again.
//= rfc6675#section-4
#[test]
fn a_rescued_segment_can_go_again() {
    let mut told = Told::new(Variant::Standard, 20, 14);
    assert_eq!(told.leaves().len(), 14);
    assert_eq!(told.hears(0, &[(2, 11)]), [(1, true)]);
    assert_eq!(told.hears(11, &[]), [(14, true)]);
    told.0.flight.written += 4 * SEGMENT;
    assert_eq!(told.leaves(), [15, 16, 17, 18].map(|segment| (segment, false)));
    assert_eq!(told.hears(11, &[(15, 18)]), [12, 13, 14].map(|segment| (segment, true)));
}

/// Without SACK, a partial acknowledgement deflates the window by all that it acknowledges, also if duplicates were
/// lost that would have inflated it. Of 14 segments 9 to 14 are in flight then, and the window is 6 + 3 − 8 + 1 of
/// them.
//= rfc6582#section-3.2
#[test]
fn a_partial_acknowledgement_deflates_the_window() {
    let mut told = Told::new(Variant::NewReno, 12, 1000);
    assert_eq!(told.leaves().len(), 12);
    assert_eq!(told.hears(0, &[]), [(13, false)]);
    assert_eq!(told.hears(0, &[]), [(14, false)]);
    assert_eq!(told.hears(0, &[]), [(1, true)]);
    assert_eq!(told.hears(8, &[]), [(9, true)]);
}

/// The first two duplicates send one new segment each, so that even a small window produces three duplicates.
//= rfc3042#section-2
#[test]
fn the_first_duplicates_send_new_data() {
    let times = |limited| {
        let config = TcpConfig { limited_transmit: limited, ..segments(Variant::Standard, 4) };
        let config = TcpConfig { initial_ssthresh: Some(3 * SEGMENT), initial_window: 3 * SEGMENT, ..config };
        // Three segments are in flight and the first is lost: there are two duplicates.
        again(&transfer(&config, 20, &[1]))
    };
    assert_eq!(times(true).iter().map(|sent| sent.2).collect::<Vec<_>>(), [Why::Missing]);
    assert_eq!(times(false).iter().map(|sent| sent.2).collect::<Vec<_>>(), [Why::Timeout]);
    assert!(times(true)[0].0 < 0.2 && times(false)[0].0 > 1.0);
}

/// Segments 2 and 4 overtake 1 and 3. All four are acknowledged, a window of them: it grows by one segment.
//= rfc5681#section-3.1
#[test]
fn what_a_duplicate_reports_lets_the_window_grow_later() {
    let mut told = Told::new(Variant::Standard, 4, 1000);
    assert_eq!(told.leaves().len(), 4);
    told.hears(0, &[(2, 2)]);
    told.hears(2, &[]);
    told.hears(2, &[(4, 4)]);
    assert_eq!(told.0.flight.cwnd(), 4 * SEGMENT);
    told.hears(4, &[]);
    assert_eq!(told.0.flight.cwnd(), 5 * SEGMENT);
}

/// At least every second segment is acknowledged, and none waits longer than the delay, which is 500 ms at most.
//= rfc5681#section-4.2
#[test]
fn acknowledgements_are_delayed_for_one_segment() {
    let config = Variant::Standard.defaults(SEGMENT as u32);
    assert!(config.ack_delay <= Duration::from_millis(500));
    let mut world = World::new(&config, &HOP, &[]);
    world.ends[0].write(21 * SEGMENT);
    world.run(Duration::from_secs(10));
    let data = world.acks.iter().filter(|ack| !ack.syn).count();
    assert_eq!(data, 11, "ten for two segments each, and one for the last alone");
}

/// Out-of-order data is acknowledged at once, and so is data that fills the gap.
//= rfc5681#section-4.2
#[test]
fn a_gap_is_told_at_once() {
    let mut world = World::new(&Variant::Standard.defaults(SEGMENT as u32), &HOP, &[1]);
    world.ends[0].write(8 * SEGMENT);
    world.run(Duration::from_secs(10));
    let told = world.acks.iter().filter(|ack| !ack.sack.is_empty()).count();
    assert_eq!(told, 7, "each of the seven behind the gap");
    assert_eq!(world.acks.iter().filter(|ack| !ack.syn).count(), 8, "and the one that fills it");
}

/// The first block has the segment that came last; the others repeat what was told before.
//= rfc2018#section-4
#[test]
fn the_first_block_is_the_newest() {
    let mut world = World::new(&segments(Variant::Standard, 10), &HOP, &[1, 3, 5]);
    world.ends[0].write(6 * SEGMENT);
    world.run(Duration::from_millis(80));
    let last = world.acks.last().expect("it told of gaps");
    let lengths: Vec<_> = last.sack.iter().map(|(from, to)| to.0.wrapping_sub(from.0)).collect();
    assert_eq!(lengths, [1000, 1000, 1000]);
    let begins: Vec<_> = last.sack.iter().map(|(from, _)| from.0.wrapping_sub(last.sack[2].0.0)).collect();
    assert_eq!(begins, [4000, 2000, 0], "segments 6, 4 and 2");
}
