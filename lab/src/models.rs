//! Published models with named inputs, for claims and for the command line.

use std::ops::RangeInclusive;

use anabranch_proto::policy::receive_buffer_model::{Conditions, Terms};
use serde::Serialize;
use serde_json::{Map, Value};

use anabranch_sim::scenario::at::{At, Result};
use anabranch_sim::scenario::keys::{Default, Key};
use anabranch_sim::scenario::units::SIZE;
use anabranch_sim::scenario::{Amount, Document, ScenarioError};

/// The existing models.
pub const NAMES: &[&str] = &["receive-buffer-blocking"];

/// One number that a model computes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Term {
    /// Its name.
    pub name: &'static str,
    /// Its symbol in the paper, and its equation.
    pub symbol: &'static str,
    /// Its value; `None`: it does not exist.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
}

/// Evaluates the model `name` for these inputs, each `KEY=VALUE` together with its source for errors.
pub fn terms(name: &str, inputs: &[(String, String)]) -> std::result::Result<Vec<Term>, ScenarioError> {
    let mut document = Document::parse(name, "")?;
    for (option, input) in inputs {
        document.set(option, input)?;
    }
    receive_buffer_blocking(&At::root(&document))
}

/// The terms as a JSON object, by name.
pub fn object(terms: &[Term]) -> Value {
    let entry = |term: &Term| (term.name.to_owned(), Value::from(term.value));
    Value::Object(terms.iter().map(entry).collect::<Map<_, _>>())
}

struct Draft {
    conditions: Conditions,
    queue: Amount,
}

const RATES: RangeInclusive<u64> = 1..=1_000_000_000_000;

/// The inputs of the model of receive buffer blocking. The defaults are the paper's (section 3).
const KEYS: &[Key<Draft>] = &[
    Key {
        name: "primary",
        takes: "rate",
        default: Default::Required,
        doc: "B1: the bandwidth of the primary path.",
        read: |draft, at| rate(at).map(|rate| draft.conditions.primary_rate = rate),
    },
    Key {
        name: "secondary",
        takes: "rate",
        default: Default::Required,
        doc: "B2: the bandwidth of the secondary path.",
        read: |draft, at| rate(at).map(|rate| draft.conditions.secondary_rate = rate),
    },
    Key {
        name: "receive_buffer",
        takes: "size",
        default: Default::Required,
        doc: "A: the receive buffer.",
        read: |draft, at| bytes(at).map(|size| draft.conditions.receive_buffer = size),
    },
    Key {
        name: "primary_rtt",
        takes: "duration",
        default: Default::Value("\"100 ms\""),
        doc: "R1: the round-trip time of the primary path, without queues.",
        read: |draft, at| at.duration().map(|rtt| draft.conditions.primary_rtt = rtt.as_secs_f64()),
    },
    Key {
        name: "secondary_rtt",
        takes: "duration",
        default: Default::Value("\"600 ms\""),
        doc: "R2: the round-trip time of the secondary path, without queues.",
        read: |draft, at| at.duration().map(|rtt| draft.conditions.secondary_rtt = rtt.as_secs_f64()),
    },
    Key {
        name: "queue",
        takes: "queue",
        default: Default::Value("\"50 packets\""),
        doc: "Q1: the queue of the primary path; packets are of the size of the MTU.",
        read: |draft, at| at.amount().map(|queue| draft.queue = queue),
    },
    Key {
        name: "mtu",
        takes: "size",
        default: Default::Value("\"1500 B\""),
        doc: "MTU: the largest packet.",
        read: |draft, at| bytes(at).map(|mtu| draft.conditions.mtu = mtu),
    },
];

fn rate(at: &At<'_>) -> Result<f64> {
    let rate = at.rate()?;
    match RATES.contains(&rate) {
        true => Ok(rate as f64),
        false => Err(at.error("this is too large")),
    }
}

fn bytes(at: &At<'_>) -> Result<f64> {
    at.size(1..=1 << 40).map(|size| size as f64).map_err(|error| error.maybe_hint(Some(SIZE.advice())))
}

fn receive_buffer_blocking(at: &At<'_>) -> Result<Vec<Term>> {
    let mut draft = Draft { conditions: Conditions::PAPER, queue: Amount::Packets(50) };
    crate::claims::fill(&mut draft, at, KEYS)?;
    let mtu = draft.conditions.mtu;
    let queue = match draft.queue {
        Amount::Packets(packets) => f64::from(packets) * mtu,
        Amount::Bytes(bytes) => bytes as f64,
    };
    let conditions = Conditions { queue, ..draft.conditions };
    Ok(listed(&conditions, &conditions.terms()))
}

fn listed(conditions: &Conditions, terms: &Terms) -> Vec<Term> {
    let term = |name, symbol, value, unit, meaning| Term { name, symbol, value, unit, meaning };
    vec![
        term(
            "last_window",
            "cwnd1_Previous (3)",
            Some(terms.last_window),
            "B",
            "what the primary path and its queue hold",
        ),
        term(
            "final_window",
            "cwnd1_Final (2)",
            Some(terms.final_window),
            "B",
            "the primary's window when the loss is found",
        ),
        term(
            "sent",
            "W (4)",
            Some(terms.sent),
            "B",
            "sent on the primary by then, all of it received or lost",
        ),
        term(
            "release_rate",
            "V2 (5)",
            Some(terms.release_rate),
            "bit/s",
            "how fast retransmissions release the buffer",
        ),
        term("arrival_rate", "V1 (6)", Some(terms.arrival_rate), "bit/s", "how fast new data fills it"),
        term(
            "pause",
            "D1 (7)",
            Some(terms.pause),
            "s",
            "until new data leaves on the primary again, at least",
        ),
        term("release_time", "left of (1)", Some(terms.release_time), "s", "until W is released"),
        term("fill_time", "right of (1)", Some(terms.fill_time), "s", "until the buffer is full"),
        term(
            "least_secondary",
            "B2 (8)",
            conditions.least_secondary(),
            "bit/s",
            "a secondary below this blocks beside this primary",
        ),
        term(
            "most_primary",
            "B1 (8)",
            conditions.most_primary(),
            "bit/s",
            "a primary above this blocks beside this secondary",
        ),
    ]
}
