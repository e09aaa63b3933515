//! `anabranch run … --why`: why a packet was sent, and what blocks each path, in words.

use std::time::Duration;

use anabranch_lab::grid::Point;
use anabranch_lab::why::{Answer, Explainer, Question, Waits};
use anabranch_proto::Time;
use anabranch_sim::RunOptions;
use anabranch_sim::scenario::Scenario;
use anabranch_sim::trace::Observer;

use crate::output::{fail, note, print, print_json, refuse, refuse_scenario, warn};
use crate::simulate::{NoResult, no_result};

/// The questions of `--why`.
#[derive(clap::Args)]
pub(crate) struct Asked {
    /// Explain in words why a packet was sent and what blocks each path, with the chain of causes, instead of the
    /// table. Without --at and --packet, explain the middle of the five longest waits
    #[arg(long)]
    pub(crate) why: bool,
    /// The moment to explain, from the beginning of the run; may be given several times
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, requires = "why", value_parser = anabranch_sim::scenario::duration)]
    at: Vec<Duration>,
    /// The number of the packet to explain: packets of both ends are counted from 1 in the order of sending, of all
    /// flows or of --flow
    #[arg(long, value_name = "N", allow_negative_numbers = true, requires = "why", value_parser = clap::value_parser!(u64).range(1..))]
    packet: Option<u64>,
    /// Explain this flow only
    #[arg(long, value_name = "NAME", requires = "why")]
    flow: Option<String>,
}

/// Runs the only point, prints the answer, and returns the exit status.
pub(crate) fn explain(asked: &Asked, points: &[Point], json: bool) -> u8 {
    let [point] = points else {
        return refuse("--why explains one run: leave out --vary and --seeds");
    };
    tell(asked, json, &point.scenario, |observer| observe(point, observer))
}

/// Prints the answers about a run of the scenario, which `observe` repeats, and returns the exit status. `observe`
/// returns when the run ended, in seconds from its beginning.
pub(crate) fn tell(
    asked: &Asked,
    json: bool,
    scenario: &Scenario,
    observe: impl Fn(&mut dyn Observer) -> Result<f64, NoResult>,
) -> u8 {
    if let Some(flow) = &asked.flow
        && !scenario.flows.iter().any(|known| known.name == *flow)
    {
        let known: Vec<&str> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
        return refuse(format!("--flow {flow}: there is no such flow; flows: {}", known.join(", ")));
    }
    let answers = answers(asked, scenario, observe);
    if let Ok(Answers { ended, .. }) = &answers
        && asked.at.iter().any(|at| at.as_secs_f64() > *ended)
    {
        warn(format!("--at: the run lasts from 0 s to {ended:.3} s; a later moment shows how it ended"));
    }
    match answers {
        Err(NoResult::Scenario(error)) => refuse_scenario(&error),
        Err(NoResult::Other(why)) => fail(why),
        Ok(Answers { answers, .. }) if json => print_json(&answers),
        Ok(Answers { answers, sent, .. }) => {
            if let Some(number) =
                asked.packet.filter(|_| !answers.iter().any(|answer| answer.packet.is_some()))
            {
                return refuse(format!("--packet {number}: only {sent} packets were sent"));
            }
            if answers.is_empty() {
                note(
                    "no data ever waited, so there is nothing to explain; ask about a moment with --at, or about a packet with --packet",
                );
            }
            print(&text(&answers))
        }
    }
}

/// The answers about a run.
struct Answers {
    answers: Vec<Answer>,
    /// The number of packets sent.
    sent: u64,
    /// When the run ended, in seconds.
    ended: f64,
}

fn answers(
    asked: &Asked,
    scenario: &Scenario,
    observe: impl Fn(&mut dyn Observer) -> Result<f64, NoResult>,
) -> Result<Answers, NoResult> {
    let mut moments: Vec<Time> = asked.at.iter().map(|at| Time::ZERO + *at).collect();
    moments.sort_unstable();
    if moments.is_empty() && asked.packet.is_none() {
        let mut waits = Waits::new(asked.flow.clone());
        let ended = observe(&mut waits)?;
        moments = waits.moments(Time::ZERO + Duration::from_secs_f64(ended));
    }
    let question = Question { at: moments, packet: asked.packet, flow: asked.flow.clone() };
    let mut explainer = Explainer::new(question, scenario);
    let ended = observe(&mut explainer)?;
    let sent = explainer.packets();
    Ok(Answers { answers: explainer.answers(), sent, ended })
}

fn observe(point: &Point, observer: &mut dyn Observer) -> Result<f64, NoResult> {
    let options = RunOptions { observer: Some(observer), ..RunOptions::default() };
    let result = anabranch_sim::run(&point.scenario, options);
    result.map(|result| result.ended).map_err(|error| no_result(point, &error))
}

fn text(answers: &[Answer]) -> String {
    let moment = |answer: &Answer| {
        let head = answer.packet.is_none().then(|| format!("At {:.6} s", answer.at));
        let lines = answer.lines().into_iter();
        let indent = if head.is_some() { "  " } else { "" };
        head.into_iter().chain(lines.map(|line| format!("{indent}{line}"))).collect::<Vec<_>>().join("\n")
    };
    answers.iter().map(moment).collect::<Vec<_>>().join("\n\n")
}
