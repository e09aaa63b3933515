//! Runs of the simulator as numbers.

use anabranch_lab::statistics::Summary;
use anabranch_proto::Policies;
use anabranch_sim::scenario::{Document, Scenario};
use anabranch_sim::{RunOptions, run};
use rayon::prelude::*;
use serde_json::Value;

/// User data in a segment or chunk.
pub(crate) const SEGMENT: f64 = 1448.0;

/// A transport beside the formulas.
#[derive(Copy, Clone)]
pub(crate) enum Flow {
    /// SCTP of RFC 9260, so many packets to a SACK.
    Sctp(u32),
    /// A TCP of this variant, so many segments to an acknowledgement.
    Tcp(&'static str, u32),
}

/// A flow from `s` to `r` that always has data, with windows that never end.
pub(crate) fn flow(name: &str, of: Flow) -> String {
    match of {
        Flow::Sctp(every) => format!(
            "[[flow]]\nname = '{name}'\nfrom = 's'\nto = 'r'\nmessage_size = '1448 B'\n\
             [flow.sctp]\nsack_every = {every}\nreceive_buffer = '100 MB'\nsend_buffer = '100 MB'\n"
        ),
        Flow::Tcp(variant, every) => format!(
            "[[flow]]\nname = '{name}'\nprotocol = 'tcp'\nfrom = 's'\nto = 'r'\n\
             [flow.tcp]\nvariant = '{variant}'\nsegment_size = '1448 B'\nreceive_window = '100 MB'\n\
             initial_ssthresh = '100 MB'\nack_every = {every}\nrto_min = '1 s'\n"
        ),
    }
}

/// A link between `s` and `r`; what is lost is lost on the way of the data.
pub(crate) fn link(rate: &str, rtt_ms: u64, queue: &str, loss: f64) -> String {
    format!(
        "[[link]]\nname = 'l'\nbetween = ['s', 'r']\nrate = '{rate}'\ndelay = '{} us'\nqueue = '{queue}'\nloss = ['{} %', '0 %']\n",
        rtt_ms * 500,
        loss * 100.0
    )
}

fn scenario(text: &str) -> Scenario {
    let document = Document::parse("validation.toml", text).unwrap_or_else(|error| panic!("{error}"));
    document.scenario("validation", &Policies::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The results of this scenario with the seeds from 1 to `seeds`.
pub(crate) fn results(text: &str, seeds: u64) -> Vec<Value> {
    let scenario = scenario(text);
    let of = |seed| {
        let result = run(&Scenario { seed, ..scenario.clone() }, RunOptions::default()).expect("it runs");
        serde_json::to_value(&result).expect("a result is JSON")
    };
    (1..=seeds).into_par_iter().map(of).collect()
}

/// A number of the flow called `name`, below the key `of`.
pub(crate) fn number(result: &Value, name: &str, of: &[&str]) -> f64 {
    let flows = result["flows"].as_array().expect("flows");
    let flow = flows.iter().find(|flow| flow["name"] == name).expect("the flow");
    of.iter().fold(flow, |value, key| &value[*key]).as_f64().expect("a number")
}

/// The mean of `of` over the results.
pub(crate) fn mean(results: &[Value], of: impl Fn(&Value) -> f64) -> f64 {
    Summary::of(&results.iter().map(of).collect::<Vec<_>>()).mean.expect("results")
}

/// Segments a second that arrive for the application in 50 s to 350 s, of a flow that meets nothing but random losses.
pub(crate) fn random_losses(of: Flow, loss: f64, rtt_ms: u64, seeds: u64) -> f64 {
    random_losses_with(of, "", loss, rtt_ms, seeds)
}

/// The same with more keys of its transport.
pub(crate) fn random_losses_with(of: Flow, more: &str, loss: f64, rtt_ms: u64, seeds: u64) -> f64 {
    let link = link("10 Gbit/s", rtt_ms, "1000000 packets", loss);
    let text = format!("stop = '350 s'\nmeasure = ['50 s', '350 s']\n{link}{}{more}", flow("f", of));
    mean(&results(&text, seeds), |result| number(result, "f", &["measured", "goodput"])) / 8.0 / SEGMENT
}
