//! Text that may be a scenario, and text that may be a recorded trace.

use std::time::Duration;

use anabranch_proto::Policies;
use anabranch_sim::scenario::{Document, Trace};

/// The parts of a trace's period whose rates are compared.
const WINDOWS: u32 = 16;

/// A document is refused with its place, or its scenario can be written as TOML and is then read as the same.
pub fn scenario(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let policies = Policies::default();
    let read =
        Document::parse("scenario", text).and_then(|document| document.scenario("scenario", &policies));
    match read {
        Err(error) => assert!(!error.render(false).trim().is_empty()),
        Ok(scenario) => {
            let text = scenario.to_toml(&policies).expect("what was read can be written");
            let again =
                Document::parse("again", &text).and_then(|document| document.scenario("scenario", &policies));
            let again = again.expect("what was written can be read");
            assert_eq!(again.to_toml(&policies).expect("and written again"), text);
        }
    }
}

/// A trace is refused with its line, or it delivers something, in at least one part of its period.
pub fn trace(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let trace = match Trace::parse(text) {
        Ok(trace) => trace,
        Err(bad) => return assert!(bad.line.is_none_or(|line| line <= text.lines().count().max(1)), "{bad}"),
    };
    let period = trace.period();
    assert!(!period.is_zero() && trace.mean_rate() >= 1);
    let window = period.div_f64(f64::from(WINDOWS)).max(Duration::from_nanos(1));
    let rates = trace.rates(window);
    assert!(rates.iter().all(|rate| rate.is_finite() && *rate >= 0.0), "{rates:?}");
    assert!(rates.iter().any(|rate| *rate > 0.0), "{rates:?}");
    for [from, until] in trace.outages(Duration::ZERO) {
        assert!(from <= until && until <= period, "{from:?} to {until:?} of {period:?}");
    }
}
