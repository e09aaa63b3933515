//! The route `adaptive` over real links: what it knows of them, and what it chooses.

use std::sync::{Arc, Mutex};

use anabranch_proto::policy::{Acked, Ask, Choice, PathView, Route};
use anabranch_proto::{Config, Policies, PolicySpec};

use crate::network::{Network, RATE};
use crate::once_in_three;
use crate::transfer::{Plan, transfer};

/// What the sender's route saw last, and why it chose as it did.
#[derive(Default, Debug)]
struct Seen {
    paths: Vec<PathView>,
    reasons: Vec<&'static str>,
}

/// `adaptive`, and what it sees.
#[derive(Clone, Debug)]
struct Watched(Box<dyn Route>, Arc<Mutex<Seen>>);

impl Route for Watched {
    fn choose(&self, ask: &Ask, paths: &[PathView]) -> Choice {
        let mut seen = self.1.lock().expect("no panic");
        seen.paths = paths.to_vec();
        seen.reasons.extend(self.0.reason(ask, paths));
        self.0.choose(ask, paths)
    }

    fn acked(&mut self, path: &PathView, acked: &Acked) {
        self.0.acked(path, acked);
    }

    fn needs(&self) -> anabranch_proto::path::estimate::Needs {
        self.0.needs()
    }
}

/// Slow start overflows the queue of the first link. The bandwidth that SACKs show is that of the link, the smallest
/// round trip less than its queue takes (30 ms). The second link lets a burst of 15 kB pass at once after a rest: few
/// pairs are spread there, and until one is, retransmissions stay on their path. Equation (8) would never forbid these
/// links.
#[test]
fn adaptive_knows_real_links_and_everything_arrives() {
    let test = "adaptive_knows_real_links_and_everything_arrives";
    if Network::new(test).is_none() {
        return;
    }
    once_in_three(|| {
        let network = Network::new(test).expect("a second network");
        let seen = Arc::new(Mutex::new(Seen::default()));
        let shared = seen.clone();
        let mut policies = Policies::default();
        policies.add_route("watched", move |_, config: &Config| {
            let adaptive = Policies::default().route(&PolicySpec::named("adaptive"), config)?;
            Ok(Box::new(Watched(adaptive, shared.clone())))
        });
        let plan = Plan { bytes: 10_000_000, retransmit: Some("watched"), policies, ..Plan::default() };
        println!("{:.2} s", transfer(&network, &plan).seconds());
        let seen = seen.lock().expect("no panic");
        let first = seen.paths[0].estimates.as_ref().expect("they are kept");
        let rate = first.bandwidth.as_ref().and_then(|estimate| estimate.rate()).expect("bandwidth");
        let base = first.round_trip.as_ref().and_then(|estimate| estimate.base()).expect("a round trip");
        let by_model = seen.reasons.iter().filter(|reason| reason.contains("equation 8")).count();
        println!("{rate:.0} bit/s, {base:?}, {by_model} of {} choices by the model", seen.reasons.len());
        assert!((rate / RATE as f64 - 1.0).abs() < 0.25, "{rate}");
        assert!(base.as_millis() < 30, "{base:?}");
        assert!(!seen.reasons.is_empty(), "something was retransmitted");
        assert!(seen.reasons.iter().all(|reason| !reason.contains("would fill")), "{:?}", seen.reasons);
    });
}
