//! The choices that may explain a difference: every row of the tables of rules and mechanisms, the policies for
//! retransmissions, and the parameters with the values that stacks have.

use anabranch_proto::{Config, Mechanisms, Rules};

/// The key that names an era.
pub(super) const ERA: &str = "era";
/// The era of `[flow.sctp]` if none is named.
const DEFAULT_ERA: &str = "rfc9260";

/// Another value of one key.
pub(super) struct Candidate {
    pub(super) key: &'static str,
    pub(super) ours: String,
    pub(super) value: String,
    pub(super) meaning: String,
}

/// Parameters of RFC 9260 §16 and the policy for retransmissions: key, values, meaning.
const PARAMETERS: [(&str, &[&str], &str); 11] = [
    (
        "retransmit",
        &["same", "alternate", "timeout-alternate"],
        "The path of retransmissions (RFC 9260 section 6.4).",
    ),
    (
        "sack_every",
        &["1", "2", "3", "4"],
        "The number of packets after which a SACK is sent at the latest (RFC 9260 section 6.2).",
    ),
    (
        "sack_delay",
        &["20 ms", "40 ms", "100 ms", "200 ms", "500 ms"],
        "How long a SACK may be delayed (RFC 9260 section 6.2).",
    ),
    ("rto_initial", &["1 s", "3 s"], "RTO.Initial (RFC 9260 section 16)."),
    ("rto_min", &["100 ms", "200 ms", "300 ms", "400 ms", "500 ms", "1 s"], "RTO.Min (RFC 9260 section 16)."),
    ("rto_max", &["1 s", "10 s", "60 s"], "RTO.Max (RFC 9260 section 16)."),
    ("max_burst", &["1", "2", "3", "4", "6", "8", "16"], "Max.Burst, in packets (RFC 9260 section 6.1 D)."),
    ("path_max_retrans", &["0", "1", "2", "3", "4", "5"], "Path.Max.Retrans (RFC 9260 section 8.2)."),
    ("pf_max_retrans", &["off", "0", "1", "2", "3"], "PotentiallyFailed.Max.Retrans (RFC 7829 section 3.2)."),
    ("window", &["standard", "cubic", "reno"], "The congestion window of each path."),
    ("cmt", &["true"], "Concurrent multipath transfer: new data on all paths."),
];

/// Every candidate but the present values: rules first, then mechanisms, then parameters, then whole eras. `settings`
/// are those of `config`.
pub(super) fn candidates(config: &Config, settings: &[String]) -> Vec<Candidate> {
    let mut all = Vec::new();
    for (key, values) in Rules::CHOICES {
        push(&mut all, key, config.rules.get(key), values.iter().copied(), meaning(Rules::DOCS, key));
    }
    for key in Rules::NUMBERS {
        let values: Vec<String> = Rules::ERAS.iter().filter_map(|(_, rules)| rules.get(key)).collect();
        push(
            &mut all,
            key,
            config.rules.get(key),
            values.iter().map(String::as_str),
            meaning(Rules::DOCS, key),
        );
    }
    for (key, values) in Mechanisms::CHOICES {
        push(
            &mut all,
            key,
            config.mechanisms.get(key),
            values.iter().copied(),
            meaning(Mechanisms::DOCS, key),
        );
    }
    for (key, values, meaning) in PARAMETERS {
        push(&mut all, key, present(config, key), values.iter().copied(), meaning.to_owned());
    }
    let era = settings.iter().rev().find_map(|setting| setting.strip_prefix("era="));
    let meaning = "The edition of the standard, with the defaults of all rules and parameters.".to_owned();
    push(
        &mut all,
        ERA,
        Some(era.unwrap_or(DEFAULT_ERA).to_owned()),
        Rules::ERAS.iter().map(|(era, _)| *era),
        meaning,
    );
    all
}

fn push<'a>(
    all: &mut Vec<Candidate>,
    key: &'static str,
    ours: Option<String>,
    values: impl Iterator<Item = &'a str>,
    meaning: String,
) {
    let ours = ours.unwrap_or_default();
    for value in values.filter(|value| *value != ours) {
        let known = |candidate: &Candidate| candidate.key == key && candidate.value == value;
        if !all.iter().any(known) {
            let (ours, value, meaning) = (ours.clone(), value.to_owned(), meaning.clone());
            all.push(Candidate { key, ours, value, meaning });
        }
    }
}

/// The first sentence of the documentation of a row.
fn meaning(docs: &[(&str, &str)], key: &str) -> String {
    let found = docs.iter().find(|(known, _)| *known == key).map_or("", |(_, text)| *text);
    found.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The present value of a parameter, in the spelling of the table above where it stands there.
fn present(config: &Config, key: &str) -> Option<String> {
    let time = |time: anabranch_proto::Duration| match (time.as_millis() % 1000, time.as_secs()) {
        (0, seconds) => format!("{seconds} s"),
        _ => format!("{} ms", time.as_millis()),
    };
    Some(match key {
        "retransmit" if config.fast == config.timeout => config.timeout.name.clone(),
        "retransmit" => format!("timeout-{}", config.timeout.name),
        "window" => config.window.name.clone(),
        "sack_every" => config.sack_every.to_string(),
        "sack_delay" => time(config.sack_delay),
        "rto_initial" => time(config.rto_initial),
        "rto_min" => time(config.rto_min),
        "rto_max" => time(config.rto_max),
        "max_burst" => config.max_burst.to_string(),
        "path_max_retrans" => config.path_max_retrans.to_string(),
        "pf_max_retrans" => config.pf_max_retrans.map_or_else(|| "off".to_owned(), |most| most.to_string()),
        "cmt" => (config.new_data.name == "round-robin").to_string(),
        _ => return None,
    })
}
