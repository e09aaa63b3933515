//! Failovers with advised parameters. `bench/advice-cuts` measures fifty of them.

use std::time::Duration;

use anabranch_net::{Event, PathState};

use crate::network::{Cut, Network};
use crate::transfer::{Plan, Step, transfer};
use crate::{PRIMARY, ms, once_in_three};

/// New data takes another path within this time.
const BUDGET: Duration = ms(800);

/// The parameters that `anabranch advise failover scenarios/advice/box.toml` prints, and its traffic. A SACK leaves
/// after two messages, so every second cut loses one: what is retransmitted on the other link has arrived already. Its
/// SACKs come back by that link, so no timer expires there. A machine that is busy for a moment is late: the bound is
/// twice the budget.
#[test]
fn new_data_leaves_a_cut_link_within_the_budget() {
    for cut in [ms(1000), ms(1040), ms(1093), ms(1133)] {
        once_in_three(|| one_cut(cut));
    }
}

fn one_cut(at: Duration) {
    let Some(network) = Network::new("new_data_leaves_a_cut_link_within_the_budget") else { return };
    let plan = Plan {
        bytes: 11_000,
        message: 200,
        pause: ms(40),
        rto_min: ms(240),
        sack_delay: ms(200),
        pf_max_retrans: Some(1),
        steps: vec![Step { at, link: 0, how: Cut::AtOnce, mended: false }],
        ..Plan::default()
    };
    let course = transfer(&network, &plan);
    let left = course.event(&Event::Path(PRIMARY, PathState::PotentiallyFailed)).expect("it is noticed");
    let delivers = course.delivers(1, left).expect("the other link delivers");
    let errors = course.most_errors(1, course.ended());
    println!("left {:?} after the cut, errors of the other path: {errors}", left - course.steps[0]);
    assert!(left - course.steps[0] < 2 * BUDGET && delivers > left);
    assert_eq!(errors, 0, "a SACK for the other link went by the cut one");
}
