//! `anabranch explain --against`: one end of a captured association beside our endpoint.

use std::io::Read;
use std::net::IpAddr;
use std::time::Duration;

use anabranch_sim::against::{
    self, Assumption, Compared, Comparison, Conversation, Difference, Explanation, NotCompared, Sent, Subject,
};
use anabranch_sim::capture::CaptureReader;
use anabranch_sim::scenario::duration;
use serde_json::json;

use crate::address::ip_address;
use crate::output::{print, print_json, refuse, refuse_scenario, warn};
use crate::{DONE, FAILED};

/// The options of the comparison.
#[derive(clap::Args)]
pub(crate) struct Asked {
    /// Compare one end of the first association with our endpoint that has these settings: era=ERA, or a key of
    /// [flow.sctp] (`anabranch keys`)
    #[arg(long, value_name = "KEY=VALUE")]
    against: Vec<String>,
    /// The end that our endpoint plays, by one of its addresses [default: the end that sent the INIT]
    #[arg(long = "as", value_name = "ADDRESS", value_parser = ip_address, requires = "against")]
    played: Option<IpAddr>,
    /// How far times may differ
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "50 ms", value_parser = duration, requires = "against")]
    within: Duration,
    /// The MTU of our endpoint [default: 1500, or what the capture shows]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(512..=65_536), requires = "against")]
    mtu: Option<u32>,
    /// The user always had data to send: give all messages at once, not each when its first chunk was sent
    #[arg(long, requires = "against")]
    bulk: bool,
}

impl Asked {
    pub(crate) fn is_asked(&self) -> bool {
        !self.against.is_empty()
    }
}

/// An end answers the handshake sooner than this.
const AT_ONCE: Duration = Duration::from_millis(5);

/// So many further explanations are named.
const FURTHER: usize = 3;

/// Compares, prints the differences, and returns the exit status.
pub(crate) fn compare(
    asked: &Asked,
    name: &str,
    capture: CaptureReader<impl Read>,
    udp: &[u16],
    json: bool,
) -> u8 {
    let conversation = match Conversation::read(capture, udp, asked.played) {
        Ok(conversation) => conversation,
        Err(error) => return refuse(format!("{name}: {error}")),
    };
    for doubt in doubts(&conversation) {
        warn(format!("{name}: {doubt}"));
    }
    let settings = asked.against.clone();
    let comparison = Comparison { settings, within: asked.within, mtu: asked.mtu, bulk: asked.bulk };
    let Compared { assumed, differences } = match against::compare(&conversation, &comparison) {
        Ok(compared) => compared,
        Err(NotCompared::Setting(error)) => return refuse_scenario(&error),
        Err(NotCompared::Endpoint(error)) => return refuse(format!("{name}: {error}")),
    };
    let said = match json {
        true => print_json(&json!({
            "as": conversation.own, "initiates": conversation.initiates, "packets": conversation.packets,
            "against": asked.against, "same": differences.is_empty(), "assumed": assumed,
            "differences": differences,
        })),
        false => print(&text(&conversation, asked, &assumed, &differences)),
    };
    if said == DONE && !differences.is_empty() { FAILED } else { said }
}

/// What makes the comparison doubtful as a whole.
fn doubts(conversation: &Conversation) -> Vec<String> {
    let mut said = Vec::new();
    if conversation.cut {
        said.push(format!("only the first {} packets of the capture are compared", conversation.packets));
    }
    if conversation.unread > 0 {
        said.push(format!(
            "{} packets cannot be read (malformed, fragments of IP, captured without their headers, or from an unknown link); the comparison \
             lacks them, and differences may come from that",
            conversation.unread
        ));
    }
    if conversation.doubled {
        said.push(
            "the capture shows packets twice; use one that was made on one interface of the end that is played".to_owned(),
        );
    } else if let Some(after) = conversation.answers_after.filter(|after| *after > AT_ONCE) {
        said.push(format!(
            "the end that is played answers the handshake after {:.3} s at the soonest; the capture was probably made elsewhere, and \
             differences may come from that",
            after.as_secs_f64()
        ));
    }
    said
}

fn text(
    conversation: &Conversation,
    asked: &Asked,
    assumed: &[Assumption],
    differences: &[Difference],
) -> String {
    let played: Vec<String> = conversation.own.iter().map(IpAddr::to_string).collect();
    let side = if conversation.initiates { "which sent the INIT" } else { "which answered the INIT" };
    let (played, against, packets) = (played.join(", "), asked.against.join(", "), conversation.packets);
    let mut lines = vec![format!("{packets} packets; our endpoint ({against}) plays {played}, {side}.")];
    lines.extend(assumed.iter().map(|assumption| {
        format!("Assumed, because the capture does not tell it and the answers then agree for longer: {assumption}.")
    }));
    match differences.len() {
        0 => lines.push("No difference.".to_owned()),
        1 => lines.push("One difference:".to_owned()),
        many => lines.push(format!("{many} differences:")),
    }
    for (number, known) in differences.iter().enumerate() {
        lines.extend(difference(known));
        // What is explained is no more in the way: the comparison goes on with the choice that explains it.
        let first = differences.iter().position(|known| known.explained.is_empty()) == Some(number);
        if first && number + 1 < differences.len() {
            lines.push("  All that follows may be a consequence of it.".to_owned());
        }
    }
    lines.join("\n")
}

fn difference(difference: &Difference) -> Vec<String> {
    let packet = difference.packet.map_or(String::new(), |number| format!(", packet {number}"));
    let sent = |sent: &Option<Sent>| match sent {
        Some(sent) => format!("{} at {:.6} s", sent.what, sent.at),
        None => "nothing more".to_owned(),
    };
    let mut lines = vec![
        format!("{:.6} s{packet} ({}):", difference.at, difference.section),
        format!("  capture  {}", sent(&difference.recorded)),
        format!("  ours     {}", sent(&difference.ours)),
    ];
    let Some((best, others)) = difference.explained.split_first() else {
        lines.push(match difference.doubt {
            Some(doubt) => format!("  Doubtful: the capture does not tell {doubt}."),
            None => "  No single rule, mechanism or parameter explains it.".to_owned(),
        });
        lines.push(match difference.subject {
            Subject::Data => {
                "  Data, SHUTDOWN and ABORT are not compared any further, nor anything after an ABORT of ours.".to_owned()
            }
            _ => "  This subject is not compared any further.".to_owned(),
        });
        return lines;
    };
    lines.push(format!("  {}", explanation(best)));
    lines.push(format!("           {}", best.meaning));
    let (as_far, shorter): (Vec<_>, Vec<_>) = others.iter().partition(|other| other.until == best.until);
    lines.extend(further("As far with", &as_far));
    lines.extend(further("Also without this difference", &shorter));
    lines
}

/// The first of further explanations.
fn further(said: &str, others: &[&Explanation]) -> Option<String> {
    let named: Vec<String> =
        others.iter().take(FURTHER).map(|other| format!("{}={}", other.key, other.recorded)).collect();
    let more = match others.len().saturating_sub(FURTHER) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| format!("           {said}: {}{more}", named.join(", ")))
}

fn explanation(explanation: &Explanation) -> String {
    let Explanation { key, ours, recorded, until, .. } = explanation;
    let reach = match until {
        Some(until) => format!("until {until:.6} s"),
        None => "to the end".to_owned(),
    };
    format!(
        "rule     {key} is {ours} here; with {key}={recorded} our endpoint answers as in the capture {reach}."
    )
}
