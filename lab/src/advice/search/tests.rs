use super::super::explain;
use super::super::read::tests::SIGNALLING;
use super::*;

fn answer(task: &Task) -> Answer {
    search(task, None, &Watch { stop: &AtomicBool::new(false), spent: &|| 0.0, progress: &|_, _| {} })
}

#[test]
fn the_advice_holds_its_budget_on_seeds_that_it_has_not_seen() {
    let task = Task::read("t", SIGNALLING).unwrap();
    let answer = answer(&task);
    let (advice, checked) = (answer.advice.expect("it can be met"), answer.checked.expect("it was checked"));
    assert!(checked.holds && checked.outages >= 400, "{checked:?}");
    let least = u128::from(advice.parameters.sack_delay) + task.round_trip().as_millis();
    assert!(u128::from(advice.parameters.rto_min) > least);
    assert!(!answer.front.is_empty() && answer.ended == Ended::Complete);
    let faster = |pair: &[Judged]| {
        pair[0].new_data <= pair[1].new_data && pair[0].false_failovers_high > pair[1].false_failovers_high
    };
    assert!(answer.front.windows(2).all(faster), "a front");
}

/// No timeout was counted of either; the slower one has the smaller interval, so the budget may hold for it alone.
#[test]
fn a_slower_candidate_with_a_smaller_interval_is_in_the_front() {
    let task = Task::read("t", SIGNALLING).unwrap();
    let candidate = Candidate::grid(&task)[0];
    let quiet = |seconds| Quiet::from([((candidate.rto_min, candidate.sack_delay), (0, seconds))]);
    let [fast, slow] = [(0.3, 20.0), (0.6, 3_600.0)]
        .map(|(time, seconds)| judge(&task, &candidate, vec![time; 12], &quiet(seconds)));
    assert!(fast.false_failovers_high > slow.false_failovers_high);
    assert_eq!(front(vec![slow.clone(), fast.clone()]), [fast, slow]);
}

#[test]
fn a_budget_that_no_parameters_meet_gets_no_advice() {
    let text = SIGNALLING.replace("800 ms", "120 ms").replace("0.01 %", "3 %");
    let answer = answer(&Task::read("t", &text).unwrap());
    assert_eq!(answer.advice, None);
    assert!(explain(&Task::read("t", &text).unwrap(), &answer).contains("No parameters meet it"));
}

/// So few outages that only a few candidates are tried; the search of all of them has advice.
#[test]
fn a_search_that_was_cut_short_says_nothing_of_what_it_has_not_tried() {
    let task = Task::read("t", SIGNALLING).unwrap();
    let stop = AtomicBool::new(false);
    let answer = search(&task, Some(100), &Watch { stop: &stop, spent: &|| 0.0, progress: &|_, _| {} });
    assert!(answer.advice.is_none() && answer.ended == Ended::TrialsOver);
    let text = explain(&task, &answer);
    assert!(
        text.contains("None of the parameters that were tried") && !text.contains("No parameters"),
        "{text}"
    );
}

#[test]
fn a_search_that_is_stopped_keeps_what_it_has() {
    let task = Task::read("t", SIGNALLING).unwrap();
    let stop = AtomicBool::new(false);
    let progress = |done: u64, _: u64| {
        if done > 500 {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let answer = search(&task, None, &Watch { stop: &stop, spent: &|| 0.0, progress: &progress });
    assert!(answer.ended == Ended::Stopped && answer.checked.is_none());
    assert!(!answer.front.is_empty(), "the best so far");
}

/// A clock that counts trials instead of seconds.
#[test]
fn a_search_ends_when_its_time_is_over_and_keeps_time_for_the_check() {
    let task = Task::read("t", SIGNALLING).unwrap();
    let trials = AtomicU64::new(0);
    let spent = || trials.load(Ordering::Relaxed) as f64 / 1_500.0;
    let progress = |_, _| {
        trials.fetch_add(1, Ordering::Relaxed);
    };
    let answer =
        search(&task, None, &Watch { stop: &AtomicBool::new(false), spent: &spent, progress: &progress });
    assert_eq!(answer.ended, Ended::TimeOver);
    let checked = answer.checked.expect("a quarter of the time is for the check");
    assert!((50..=400).contains(&checked.outages), "{checked:?}");
    assert!(trials.load(Ordering::Relaxed) <= 1_600, "trials under way end, no other begins");
}

/// The limit is kept to, and what the search tries does not depend on how fast it is.
#[test]
fn a_search_with_few_trials_has_the_same_answer_whatever_the_time() {
    let task = Task::read("t", SIGNALLING).unwrap();
    let trials = AtomicU64::new(0);
    let progress = |_, _| {
        trials.fetch_add(1, Ordering::Relaxed);
    };
    let watch = Watch { stop: &AtomicBool::new(false), spent: &|| 0.0, progress: &progress };
    let answer = search(&task, Some(1_000), &watch);
    assert_eq!(answer.ended, Ended::TrialsOver);
    assert_eq!(answer.checked.as_ref().map(|checked| checked.outages), Some(400), "the check is whole");
    assert!((1_000..=1_400).contains(&trials.load(Ordering::Relaxed)), "{trials:?}");
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(alone.install(|| search(&task, Some(1_000), &watch)), answer);
}

#[test]
fn the_upper_end_of_a_count_is_that_of_the_exact_interval() {
    // Half the 0.975 quantile of the chi-squared distribution with 2n + 2 degrees of freedom.
    for (count, exact) in [(0, 3.689), (1, 5.572), (10, 18.390)] {
        assert!((most(count) / exact - 1.0).abs() < 0.02, "{count}: {}", most(count));
    }
}
