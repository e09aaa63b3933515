//! What must change nothing, over a table of scenarios.

mod scenarios;

use anabranch_proto::Duration;
use anabranch_sim::results::RunResult;
use anabranch_sim::scenario::Scenario;
use anabranch_sim::{RunOptions, run};

fn result(scenario: &Scenario) -> RunResult {
    run(scenario, RunOptions::default()).unwrap_or_else(|error| panic!("{}: {error}", scenario.name))
}

#[test]
fn twice_the_same() {
    for scenario in scenarios::all() {
        let result = result(&scenario);
        eprintln!("{}", serde_json::to_string_pretty(&result).unwrap());
        assert_eq!(result, self::result(&scenario), "{}", scenario.name);
    }
}

#[test]
fn the_order_of_the_document_decides_nothing() {
    for scenario in scenarios::all() {
        let mut turned = scenario.clone();
        turned.links.reverse();
        turned.flows.reverse();
        turned.changes.reverse();
        assert_eq!(result(&scenario), result(&turned), "{}", scenario.name);
    }
}

#[test]
fn the_start_decides_nothing() {
    let shift = Duration::from_secs(1_000_000);
    for scenario in scenarios::all() {
        let mut later = scenario.clone();
        later.flows.iter_mut().for_each(|flow| flow.start += shift);
        later.changes.iter_mut().for_each(|change| change.at += shift);
        later.stop = later.stop.map(|stop| stop + shift);
        let (plain, mut late) = (result(&scenario), result(&later));
        assert!((late.ended - plain.ended - shift.as_secs_f64()).abs() < 1e-8, "{}", scenario.name);
        late.ended = plain.ended;
        assert_eq!(plain, late, "{}", scenario.name);
    }
}

#[test]
fn extra_polls_change_nothing() {
    for scenario in scenarios::all() {
        let polled = run(&scenario, RunOptions { extra_polls: true, ..RunOptions::default() });
        assert_eq!(result(&scenario), polled.unwrap(), "{}", scenario.name);
    }
}

#[test]
fn the_codec_changes_nothing() {
    for scenario in scenarios::all() {
        let wired = Scenario { wire: true, ..scenario.clone() };
        assert_eq!(result(&scenario), result(&wired), "{}", scenario.name);
    }
}
