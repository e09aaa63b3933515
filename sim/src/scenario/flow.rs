//! `[[flow]]`.

use anabranch_proto::{Config, Pairs, Policies, Reliability};

use super::at::{At, Result};
use super::keys::{Default, Key, fill};
use super::{Flow, Traffic, sctp};

/// A flow as it is being read.
pub(super) struct Draft {
    flow: Flow,
    send: Option<u64>,
    rate: Option<u64>,
    era: Config,
    policies: Policies,
}

pub(super) const KEYS: &[Key<Draft>] = &[
    Key {
        name: "name",
        takes: "name",
        default: Default::Required,
        doc: "What results call it; unique.",
        read: |draft, at| at.name().map(|name| draft.flow.name = name),
    },
    Key {
        name: "protocol",
        takes: "`\"sctp\"`",
        default: Default::Value("\"sctp\""),
        doc: "What carries it.",
        read: |_, at| at.one_of("protocol", &["sctp"]).map(drop),
    },
    Key {
        name: "from",
        takes: "a node's name",
        default: Default::Required,
        doc: "The node that sends.",
        read: |draft, at| at.string().map(|from| draft.flow.from = from.to_owned()),
    },
    Key {
        name: "to",
        takes: "a node's name",
        default: Default::Required,
        doc: "The node that receives.",
        read: |draft, at| at.string().map(|to| draft.flow.to = to.to_owned()),
    },
    Key {
        name: "start",
        takes: "duration",
        default: Default::Value("\"0 s\""),
        doc: "When the association is begun, from the beginning of the run.",
        read: |draft, at| at.duration().map(|start| draft.flow.start = start),
    },
    Key {
        name: "send",
        takes: "size",
        default: Default::Text("without end: `stop` is needed"),
        doc: "How much user data it sends.",
        read: |draft, at| at.size(1..=1 << 50).map(|send| draft.send = Some(send)),
    },
    Key {
        name: "rate",
        takes: "rate",
        default: Default::Text("as fast as the association takes it"),
        doc: "The rate of user data at which messages are handed over: an application of constant rate.",
        read: |draft, at| at.rate().map(|rate| draft.rate = Some(rate)),
    },
    Key {
        name: "message_size",
        takes: "size",
        default: Default::Text("what fits one packet"),
        doc: "User data in a message. A message that does not fit a packet is fragmented.",
        read: |draft, at| at.size32(1..=1 << 30).map(|size| draft.flow.message_size = Some(size)),
    },
    Key {
        name: "unordered",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether messages are delivered in any order.",
        read: |draft, at| at.boolean().map(|unordered| draft.flow.unordered = unordered),
    },
    Key {
        name: "reliability",
        takes: "`\"full\"` or a table",
        default: Default::Value("\"full\""),
        doc: "When a message is given up, if `partial_reliability` is on: `{ lifetime = \"200 ms\" }` after the send call, `{ retransmissions = 0 }`, or `{ priority = 5 }` when the send buffer is full (lower numbers first).",
        read: |draft, at| reliability(at).map(|reliability| draft.flow.reliability = reliability),
    },
    Key {
        name: "immediate",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether each message asks the receiver not to delay its acknowledgement: the I bit (RFC 9260 §6.1).",
        read: |draft, at| at.boolean().map(|immediate| draft.flow.immediate = immediate),
    },
    Key {
        name: "streams",
        takes: "count",
        default: Default::Value("1"),
        doc: "Messages go to this many streams in turn; at most `outbound_streams` and `inbound_streams`.",
        read: |draft, at| at.count(1..=u16::MAX).map(|streams| draft.flow.streams = streams),
    },
    Key {
        name: "read",
        takes: "rate",
        default: Default::Text("at once"),
        doc: "The rate at which the receiving application reads user data.",
        read: |draft, at| at.rate().map(|rate| draft.flow.read_rate = Some(rate)),
    },
    Key {
        name: "udp",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether packets are encapsulated in UDP (RFC 6951): 8 bytes more each.",
        read: |draft, at| at.boolean().map(|udp| draft.flow.udp = udp),
    },
    Key {
        name: "sctp",
        takes: "table",
        default: Default::Text("the era's"),
        doc: "The protocol's rules and parameters, the same at both ends: `[flow.sctp]`, below.",
        read: |draft, at| {
            let read = sctp::sctp(at, &draft.era, &draft.policies)?;
            draft.flow.all_pairs = read.config.pairs == Pairs::All;
            (draft.flow.sctp, draft.flow.primary) = (read.config, read.primary);
            Ok(())
        },
    },
];

/// Reads a `[[flow]]`, in the top-level `era` unless it names its own.
pub(super) fn flow(at: &At<'_>, era: &Config, policies: &Policies) -> Result<Flow> {
    let flow = Flow { sctp: era.clone(), ..Flow::default() };
    let mut draft = Draft { flow, send: None, rate: None, era: era.clone(), policies: policies.clone() };
    fill(&mut draft, at, KEYS)?;
    let mut flow = draft.flow;
    flow.traffic = match draft.rate {
        Some(rate) => Traffic::Constant { rate, bytes: draft.send },
        None => Traffic::Bulk(draft.send),
    };
    if flow.from == flow.to {
        return Err(at.error_below("to", format!("`{}` sends to itself", flow.to)));
    }
    enough_streams(at, &flow)?;
    Ok(flow)
}

fn reliability(at: &At<'_>) -> Result<Reliability> {
    if at.string().is_ok() {
        return at.one_of("choice", &["full"]).map(|_| Reliability::Full);
    }
    match at.entries()? {
        [only] => match only.key.as_str() {
            "lifetime" => {
                let value = at.get("lifetime").ok_or_else(|| at.error("a lifetime"))?;
                let millis = u32::try_from(value.duration()?.as_millis());
                millis.map(Reliability::Lifetime).map_err(|_| value.error("this is more than 49 days"))
            }
            "retransmissions" => {
                let value = at.get("retransmissions").ok_or_else(|| at.error("a count"))?;
                value.count(0..=u32::MAX).map(Reliability::Retransmissions)
            }
            "priority" => {
                let value = at.get("priority").ok_or_else(|| at.error("a count"))?;
                value.count(0..=u32::MAX).map(Reliability::Priority)
            }
            _ => Err(at.no_such_key(only).hint("`lifetime`, `retransmissions` or `priority`")),
        },
        _ => Err(at.error("one of `lifetime`, `retransmissions` and `priority`")),
    }
}

fn enough_streams(at: &At<'_>, flow: &Flow) -> Result<()> {
    let limits =
        [("outbound_streams", flow.sctp.outbound_streams), ("inbound_streams", flow.sctp.inbound_streams)];
    for (key, limit) in limits {
        if flow.streams > limit {
            let message = format!("{} streams are more than {key}, which is {limit}", flow.streams);
            let fix = format!("set `{key} = {}` in [flow.sctp]", flow.streams);
            return Err(at.error_below("streams", message).hint(fix));
        }
    }
    Ok(())
}
