use super::*;
use crate::medium::wireless::frames::tests::dcf;
use crate::medium::wireless::reception::Range;

/// The number of frames that a station sends for one packet if every RTS (or none) is answered and no DATA frame is,
/// and why it gives up.
fn attempts(dcf: &Dcf, cleared: bool) -> (u32, u32, DropCause) {
    let rules = Range::new(370.0, 520.0, 812.0, None);
    let mut station = Station::new(0, dcf, Amount::Packets(1), Draws::new(1, "x"));
    assert!(station.offer(Time::ZERO, dcf, 1, 1028, ()).is_ok());
    let (mut rts, mut data) = (0, 0);
    loop {
        let now = station.deadline();
        match station.wake(now, dcf, &rules) {
            Step::Transmit(air) => {
                station.begin(now, air);
                *(if air.kind == Kind::Rts { &mut rts } else { &mut data }) += 1;
                station.settle(now, dcf, true);
                let end = station.deadline();
                assert!(matches!(station.wake(end, dcf, &rules), Step::Nothing));
                if air.kind == Kind::Rts && cleared {
                    assert!(matches!(station.read(end, dcf, &dcf.cts(&air)), Step::Nothing));
                }
                station.settle(end, dcf, false);
            }
            Step::GiveUp(cause, packet) => {
                assert_eq!(packet, Some(()));
                return (rts, data, cause);
            }
            Step::Nothing => station.settle(now, dcf, false),
        }
    }
}

#[test]
fn seven_attempts_of_rts_and_four_of_data() {
    assert_eq!(attempts(&dcf(), false), (7, 0, DropCause::Rts));
    assert_eq!(attempts(&dcf(), true), (4, 4, DropCause::Data));
    let unannounced = Dcf { rts_threshold: None, ..dcf() };
    assert_eq!(attempts(&unannounced, false), (0, 7, DropCause::Data));
}

#[test]
fn a_free_medium_is_taken_at_once_and_a_busy_one_after_a_backoff() {
    let dcf = dcf();
    let late = Time::from_nanos(1_000_000);
    let mut station = Station::new(0, &dcf, Amount::Packets(1), Draws::new(1, "x"));
    station.offer(late, &dcf, 1, 1028, ()).unwrap();
    assert_eq!(station.deadline(), late);
    let mut station = Station::new(0, &dcf, Amount::Packets(1), Draws::new(1, "x"));
    station.settle(late, &dcf, true);
    station.offer(late, &dcf, 1, 1028, ()).unwrap();
    assert_eq!(station.deadline(), Time::NEVER);
    let free = later(late, 500_000);
    station.settle(free, &dcf, false);
    let slots = (station.deadline().as_nanos() - free.as_nanos() - dcf.timing.difs()) / dcf.timing.slot;
    assert_eq!(u64::from(station.access.slots.unwrap()), slots);
}

#[test]
fn a_nav_of_an_rts_ends_early_only_where_that_is_on() {
    for (nav_reset, early) in [(false, false), (true, true)] {
        let dcf = Dcf { nav_reset, ..dcf() };
        let mut station = Station::<()>::new(0, &dcf, Amount::Packets(1), Draws::new(1, "x"));
        let rts = dcf.rts(1, 2, dcf.data_bytes(1028), 0);
        assert!(matches!(station.read(Time::ZERO, &dcf, &rts), Step::Nothing));
        let doubted = later(Time::ZERO, dcf.nav_doubt());
        assert_eq!(!station.access.reserved(doubted), early);
        assert!(!station.access.reserved(later(Time::ZERO, rts.reserves)));
        station.receiving(Time::from_nanos(100_000));
        assert!(station.access.reserved(doubted), "a frame has begun");
    }
}
