//! STATUS and SET PROTOCOL PARAMETERS (RFC 9260 §11.1.8, §11.1.13): the user looks, and changes his mind.

use anabranch_proto::{Config, Parameters, State};

use crate::support::bench::{Bench, FULL, era, ms};

#[test]
fn the_status_says_where_an_association_stands() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(3, 100);
    bench.data(1, 100);
    let status = bench.end.status(bench.id).expect("it is there");
    assert_eq!((status.state, status.unacknowledged, status.unread), (State::Established, 3, 1));
    // 16 streams are offered each way; the three chunks of 116 bytes are in flight.
    assert_eq!((status.outbound_streams, status.inbound_streams), (16, 16));
    assert_eq!(status.peer_window, (1 << 20) - 3 * 116);
    assert_eq!(status.fragmentation_point, FULL as u32);
    bench.end.abort(bench.now, bench.id, Default::default());
    assert_eq!(bench.end.status(bench.id).map(|status| status.state), Some(State::Closed));
    bench.end.forget(bench.now, bench.id);
    assert_eq!(bench.end.status(bench.id), None);
}

/// Before the first measurement RTO.Initial holds, then RTO is kept within its bounds.
#[test]
fn other_parameters_hold_at_once() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    let before = bench.end.config_of(bench.id).expect("it is there").parameters;
    let shorter = Parameters { rto_initial: ms(400), rto_min: ms(300), rto_max: ms(700), ..before };
    bench.end.reconfigure(bench.now, bench.id, shorter).expect("they can be used");
    assert_eq!(bench.view(0).rto, ms(400));
    bench.send(1, 100);
    bench.loads();
    for later in [400, 700, 700] {
        bench.pass(ms(later));
        assert_eq!(bench.loads().len(), 1, "after {later} ms");
    }
    let off = Parameters { heartbeat_interval: None, ..shorter };
    bench.end.reconfigure(bench.now, bench.id, off).expect("they can be used");
    bench.sack(1, &[]);
    bench.pass(ms(100_000));
    assert!(bench.heartbeats().is_empty());
    let wrong = Parameters { rto_min: ms(800), ..shorter };
    assert_eq!(bench.end.reconfigure(bench.now, bench.id, wrong).unwrap_err().key, "rto_min");
}

/// What the endpoint is told holds for associations that begin later.
#[test]
fn an_endpoint_takes_other_parameters() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    let before = bench.view(0).rto;
    let config = bench.end.config().clone().with(|parameters| parameters.rto_initial = ms(2000));
    bench.end.configure(config).expect("they can be used");
    assert_eq!(bench.view(0).rto, before);
    assert_eq!(bench.end.config().rto_initial, ms(2000));
    let wrong = Config { port: 0, ..bench.end.config().clone() };
    assert!(bench.end.configure(wrong).is_err());
}
