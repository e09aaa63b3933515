//! Moments, amounts and rules in words.

use anabranch_proto::policy::Why;
use anabranch_proto::{Duration, Mechanisms, Purpose, Rules, Time};
use anabranch_sim::Protocol;
use anabranch_sim::scenario::{self, Scenario};
use anabranch_sim::words;

use super::follow::Place;
use super::packet::RuleRow;

/// Seconds from the beginning of the run.
pub(super) fn seconds(at: Time) -> f64 {
    at.as_nanos() as f64 / 1e9
}

/// "7.243700 s".
pub(super) fn moment(at: Time) -> String {
    format!("{:.6} s", seconds(at))
}

/// "1.5 s", exactly: `as_secs_f64` can make 1.8056428240000001 of 1.805642824.
pub(super) fn length(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let decimal = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    format!("{} s", decimal.trim_end_matches('0').trim_end_matches('.'))
}

/// A count and its noun: "1 chunk", "664 chunks".
pub(super) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// The fate of a transmission.
pub(super) fn place(place: &Place) -> String {
    match place {
        Place::Sender => "it has not left the sender".to_owned(),
        Place::Queued { on, since, ahead } => {
            format!("queued on {on} since {}, behind {}", moment(*since), count(u64::from(*ahead), "packet"))
        }
        Place::Sending { on, since } => format!("on its way on {on} since {}", moment(*since)),
        Place::Passed { by, at } => format!("it passed {by} at {}", moment(*at)),
        Place::Dropped { by, at, cause, left } => {
            format!("lost at {} on {by} ({})", moment(*at), words::drop_cause(*cause, *left))
        }
        Place::Arrived { at } => format!("it arrived at {}", moment(*at)),
    }
}

/// The rows of these keys with the values that the flow has.
pub(super) fn rows(scenario: &Scenario, flow: &str, keys: &[&str]) -> Vec<RuleRow> {
    let flow = scenario.flows.iter().find(|known| known.name == flow);
    let Some(config) = flow.and_then(|flow| flow.sctp()).map(|sctp| &sctp.config) else { return Vec::new() };
    let row = |key: &&str| {
        let value = config.rules.get(key).or_else(|| config.mechanisms.get(key))?;
        let mut docs = Rules::DOCS.iter().chain(Mechanisms::DOCS);
        let meaning = docs.find(|(known, _)| known == key).map_or("", |(_, doc)| doc.trim());
        Some(RuleRow { key: (*key).to_owned(), value, meaning: meaning.to_owned() })
    };
    keys.iter().filter_map(row).collect()
}

/// The value of a rule or mechanism of the flow.
pub(super) fn value(scenario: &Scenario, flow: &str, key: &str) -> Option<String> {
    rows(scenario, flow, &[key]).pop().map(|row| row.value)
}

/// "missing_reports = 4, on_marking = one-packet".
pub(super) fn listed(rows: &[RuleRow]) -> String {
    rows.iter().map(|row| format!("{} = {}", row.key, row.value)).collect::<Vec<_>>().join(", ")
}

/// The policy that names the path of such data, as the flow has it. A subflow of Multipath TCP sends again itself.
pub(super) fn policy_of(scenario: &Scenario, flow: &str, why: Why) -> Option<String> {
    let flow = scenario.flows.iter().find(|known| known.name == flow)?;
    if let scenario::Transport::Mptcp(mptcp) = &flow.transport {
        return matches!(why, Why::New | Why::Reinjected).then(|| mptcp.new_data.name.clone());
    }
    let config = &flow.sctp()?.config;
    let spec = match why {
        Why::Missing => &config.fast,
        Why::Timeout => &config.timeout,
        _ => &config.new_data,
    };
    Some(spec.name.clone())
}

/// The policy of new data.
pub(super) fn new_data_policy(scenario: &Scenario, flow: &str) -> String {
    policy_of(scenario, flow, Why::New).unwrap_or_default()
}

/// Why user data is sent, in the words of its transport.
pub(super) fn data(protocol: Protocol, why: Why) -> &'static str {
    match (protocol, why) {
        (Protocol::Sctp | Protocol::Udp | Protocol::Foreign, why) => words::data(why),
        (_, Why::Missing) => "fast retransmission after duplicate acknowledgements",
        (_, Why::Timeout) => "retransmission after a timeout",
        (_, Why::Reinjected) => "copy of data that another subflow has",
        (_, why) => words::data(why),
    }
}

/// What has marked data for retransmission.
pub(super) fn because(protocol: Protocol, why: Why) -> &'static str {
    match (protocol, why) {
        (Protocol::Sctp | Protocol::Udp | Protocol::Foreign, Why::Missing) => "missing reports",
        (_, Why::Missing) => "duplicate acknowledgements",
        _ => "the timeout",
    }
}

/// The retransmission timer, and the section that says what its expiry does.
pub(super) fn timer(protocol: Protocol) -> (&'static str, &'static str) {
    match protocol {
        Protocol::Sctp | Protocol::Udp | Protocol::Foreign => ("T3-rtx", "RFC 9260 section 6.3.3"),
        Protocol::Tcp | Protocol::Mptcp => ("the retransmission timer", "RFC 6298 section 5"),
    }
}

/// The section of the standard that requires a segment with this purpose. `joins`: its options begin a further subflow.
pub(super) fn section(purpose: Purpose, joins: bool, protocol: Protocol) -> &'static str {
    match purpose {
        Purpose::Setup if joins => "RFC 8684 section 3.2",
        Purpose::Setup if protocol == Protocol::Mptcp => "RFC 8684 section 3.1",
        Purpose::Setup => "RFC 9293 section 3.5",
        Purpose::Data(Why::New) => "RFC 5681 section 3.1",
        Purpose::Data(Why::Timeout) => "RFC 6298 section 5",
        Purpose::Data(Why::WindowProbe) => "RFC 9293 section 3.8.6.1",
        Purpose::Data(Why::Reinjected) => "RFC 8684 section 3.3.6",
        Purpose::Data(_) => "RFC 5681 section 3.2",
        Purpose::Shutdown => "RFC 9293 section 3.6",
        _ => "RFC 9293 section 3.8.6.3",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_has_the_digits_that_it_needs() {
        let shown = |nanos| length(Duration::from_nanos(nanos));
        assert_eq!(shown(1_805_642_824), "1.805642824 s");
        assert_eq!([shown(0), shown(200_000_000), shown(60_000_000_000)], ["0 s", "0.2 s", "60 s"]);
    }
}
