use super::*;
use crate::policy::route::view as path;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn at(n: u64) -> Time {
    Time::ZERO + ms(n)
}

/// A path with a round trip of 100 ms.
fn view() -> PathView {
    PathView { srtt: Some(ms(100)), min_rtt: Some(ms(100)), ..path(0) }
}

fn once(tsn: u32, sent: u64) -> Delivered {
    Delivered { tsn: Tsn(tsn), at: at(sent), again: false, ambiguous: false }
}

/// Takes in a SACK at this time that newly acknowledges these chunks; TSNs go on at 100.
fn sack(rack: &mut Rack, now: u64, chunks: &[Delivered]) {
    chunks.iter().for_each(|chunk| rack.delivered(chunk, at(now), Some(ms(100))));
    rack.heard(at(now), Tsn(0), Tsn(100), false);
}

fn due(rack: &Rack, sent: u64, tsn: u32) -> Option<Time> {
    rack.lateness(&view(), 3).and_then(|path| path.of(at(sent), Tsn(tsn)))
}

//= rfc8985#section-6.2
#[test]
fn a_chunk_is_lost_a_round_trip_and_a_quarter_after_it_was_sent_once_a_later_one_is_delivered() {
    let mut rack = Rack::default();
    assert_eq!(due(&rack, 0, 1), None, "nothing was delivered");
    sack(&mut rack, 112, &[once(2, 10)]);
    assert_eq!(due(&rack, 5, 1), Some(at(5 + 102 + 25)));
    assert_eq!(due(&rack, 10, 1), Some(at(10 + 102 + 25)), "the same moment, a lower TSN: it left before");
    assert_eq!(due(&rack, 10, 3), None, "the same moment, a higher TSN");
    assert_eq!(due(&rack, 11, 3), None);
}

//= rfc8985#section-6.2
#[test]
fn without_reordering_three_chunks_beyond_a_hole_or_a_recovery_prove_the_loss_at_once() {
    let mut rack = Rack::default();
    sack(&mut rack, 110, &[once(2, 10)]);
    rack.gapped = 3;
    assert_eq!(due(&rack, 5, 1), Some(at(105)));
    rack.gapped = 1;
    rack.lost(Tsn(99));
    assert_eq!(due(&rack, 5, 1), Some(at(105)));
    rack.heard(at(120), Tsn(99), Tsn(100), false);
    assert_eq!(due(&rack, 5, 1), Some(at(130)), "the recovery is over");
    rack.gapped = 3;
    sack(&mut rack, 120, &[once(1, 5)]);
    assert_eq!(due(&rack, 5, 0), Some(at(5 + 115 + 25)), "reordering was seen: a number proves nothing");
}

/// A retransmission at 50 ms, answered at 60 ms, is sooner than a round trip: the original was acknowledged. At 150 ms
/// it counts.
//= rfc8985#section-6.2
#[test]
fn an_acknowledgement_of_an_earlier_transmission_says_nothing() {
    let again = |ambiguous| Delivered { tsn: Tsn(1), at: at(50), again: true, ambiguous };
    for (now, ambiguous, counts) in [(60, false, false), (150, false, true), (150, true, false)] {
        let mut rack = Rack::default();
        sack(&mut rack, now, &[again(ambiguous)]);
        assert_eq!(due(&rack, 20, 2).is_some(), counts, "{now} {ambiguous}");
        assert!(!rack.reordered);
    }
}

/// The window is 25, 50, … ms, at most a smoothed round trip: a quarter more for every round with duplicates. After 16
/// recoveries without any it is 25 ms again.
//= rfc8985#section-6.2
#[test]
fn duplicates_widen_the_reordering_window_for_sixteen_recoveries() {
    let mut rack = Rack::default();
    sack(&mut rack, 110, &[once(2, 10)]);
    let window = |rack: &Rack| rack.window(&view());
    rack.heard(at(110), Tsn(1), Tsn(10), true);
    assert_eq!(window(&rack), ms(50));
    rack.heard(at(111), Tsn(8), Tsn(20), true);
    assert_eq!(window(&rack), ms(50), "the round is not over");
    for round in 1..9 {
        rack.heard(at(112), Tsn(10 * round), Tsn(10 * round + 10), true);
    }
    assert_eq!(window(&rack), ms(100), "at most the smoothed round-trip time");
    for recovery in 1..=16 {
        rack.lost(Tsn(100 + recovery));
        assert_eq!(window(&rack), ms(100), "{recovery}");
        rack.heard(at(200), Tsn(100 + recovery), Tsn(200), false);
    }
    assert_eq!(window(&rack), ms(25));
}

//= rfc8985#section-7.3
//= rfc8985#section-7.1
#[test]
fn a_probe_needs_a_measurement_since_the_last_and_no_recovery() {
    let mut rack = Rack::default();
    assert!(!rack.may_probe(), "the round trip is not known");
    rack.measured = true;
    assert!(rack.may_probe());
    rack.lost(Tsn(9));
    assert!(!rack.may_probe(), "a loss is being recovered from");
    rack.heard(at(1), Tsn(9), Tsn(10), false);
    rack.probed(Probe { tsn: Tsn(12), at: at(2), again: false });
    rack.measured = true;
    assert!(!rack.may_probe(), "one is under way");
    assert!(!rack.probe_arrived(false), "new data repairs nothing");
    assert!(rack.may_probe());
}

/// TSN 3, sent at 0 ms, goes again at 200 ms as a probe and arrives; 4 is sent at 300 ms and arrives.
//= rfc8985#section-7.4.2
#[test]
fn a_probe_that_arrives_alone_has_repaired_a_loss() {
    let probed = || {
        let mut rack = Rack { measured: true, ..Rack::default() };
        rack.probed(Probe { tsn: Tsn(3), at: at(200), again: true });
        sack(&mut rack, 300, &[Delivered { tsn: Tsn(3), at: at(200), again: true, ambiguous: false }]);
        rack
    };
    let mut rack = probed();
    assert!(!rack.probe_arrived(false), "a duplicate may still be reported");
    sack(&mut rack, 400, &[once(4, 300)]);
    assert!(rack.probe_arrived(false), "it is not: one of the two was lost");
    assert_eq!(rack.probe, None);
    let mut rack = probed();
    assert!(!rack.probe_arrived(true), "both arrived");
    assert_eq!(rack.probe, None);
}

//= rfc8985#section-6.3
#[test]
fn a_timeout_spares_what_was_sent_less_than_a_round_trip_ago() {
    let mut rack = Rack::default();
    sack(&mut rack, 110, &[once(2, 10)]);
    let late = rack.lateness(&view(), 3).expect("a chunk was delivered");
    assert!(late.is_late(at(75), at(200)));
    assert!(!late.is_late(at(76), at(200)));
}

//= rfc8985#section-9.3
#[test]
fn a_lost_retransmission_is_new_congestion_if_the_window_was_cut_before_it() {
    let rack = Rack { cut: at(100), ..Rack::default() };
    assert!(!rack.is_new_congestion(at(99)));
    assert!(rack.is_new_congestion(at(100)));
}
