//! `[[flow]]`.

use anabranch_proto::{Config, Duration, Pairs, Policies, Reliability};

use super::at::{At, Result};
use super::cross::{both_times, spacing, times, uniform};
use super::error::ScenarioError;
use super::keys::{Default, Key, fill};
use super::{Flow, Sctp, Times, Traffic, Transport, mptcp, sctp, tcp};

/// The draft of a flow.
pub(super) struct Draft {
    flow: Flow,
    send: Option<u64>,
    rate: Option<u64>,
    on: Option<Times>,
    off: Option<Times>,
    poisson: bool,
    era: Config,
    policies: Policies,
}

pub(super) const KEYS: &[Key<Draft>] = &[
    Key {
        name: "name",
        takes: "name",
        default: Default::Required,
        doc: "The name of the flow in results; unique.",
        read: |draft, at| at.name().map(|name| draft.flow.name = name),
    },
    Key {
        name: "protocol",
        takes: "`\"sctp\"`, `\"tcp\"`, `\"mptcp\"`, `\"udp\"` or `{ foreign = NAME }`",
        default: Default::Value("\"sctp\""),
        doc: "The transport protocol. `\"tcp\"` sends a stream of bytes, `\"mptcp\"` the same over several paths (RFC 8684). `\"udp\"` sends messages of `message_size` at `rate`, one a packet, and counts what arrives. `{ foreign = \"noq\" }` names a stack of other people, which only the program in `foreign/` has.",
        // This row stands before the keys that only one protocol has.
        read: |draft, at| {
            if let Some(name) = foreign_name(at)? {
                draft.flow.transport = Transport::Foreign(name);
                return Ok(());
            }
            draft.flow.transport = match at.one_of("protocol", &["sctp", "tcp", "mptcp", "udp"])? {
                "tcp" => Transport::Tcp(Box::default()),
                "mptcp" => Transport::Mptcp(Box::default()),
                "udp" => Transport::Datagram,
                _ => Transport::Sctp(Box::new(new_sctp(&draft.era))),
            };
            Ok(())
        },
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
        takes: "duration, or a range",
        default: Default::Value("\"0 s\""),
        doc: "The start of the flow, counted from the beginning of the run: the association is set up, or the first datagram is sent. `{ uniform = [\"0 s\", \"5 s\"] }` is drawn from the run's seed.",
        read: |draft, at| {
            draft.flow.random_start = uniform(at)?;
            if draft.flow.random_start.is_none() {
                draft.flow.start = at.duration()?;
            }
            Ok(())
        },
    },
    Key {
        name: "send",
        takes: "size",
        default: Default::Text("without end: `stop` is needed"),
        doc: "The amount of user data to send.",
        read: |draft, at| at.size(1..=1 << 50).map(|send| draft.send = Some(send)),
    },
    Key {
        name: "rate",
        takes: "rate",
        default: Default::Text("as fast as the transport takes it"),
        doc: "The rate of user data of an application that sends messages at a constant rate. UDP requires it.",
        read: |draft, at| at.rate().map(|rate| draft.rate = Some(rate)),
    },
    Key {
        name: "spacing",
        takes: "`\"even\"` or `\"poisson\"`",
        default: Default::Value("\"even\""),
        doc: "How messages at `rate` follow each other: evenly, or at random as a Poisson process of this mean rate, drawn from the run's seed. Not with `on` and `off`.",
        read: |draft, at| spacing(at).map(|poisson| draft.poisson = poisson),
    },
    Key {
        name: "on",
        takes: "times",
        default: Default::Text("always on"),
        doc: "How long a UDP flow sends at `rate` before it pauses, as in `[[traffic]]`; needs `off`.",
        read: |draft, at| udp_times(draft, at).map(|on| draft.on = Some(on)),
    },
    Key {
        name: "off",
        takes: "times",
        default: Default::Text("always on"),
        doc: "The length of a pause; the flow begins with one.",
        read: |draft, at| udp_times(draft, at).map(|off| draft.off = Some(off)),
    },
    Key {
        name: "message_size",
        takes: "size",
        default: Default::Text("what fits one packet"),
        doc: "User data in a message. SCTP fragments a message that does not fit a packet; a datagram must fit. With TCP and Multipath TCP it counts only together with `rate`.",
        read: |draft, at| at.size32(1..=1 << 30).map(|size| draft.flow.message_size = Some(size)),
    },
    Key {
        name: "unordered",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether messages are delivered in any order. This key and the following ones, except `read`, apply to SCTP only.",
        read: |draft, at| {
            sctp_flow(draft, at)?.unordered = at.boolean()?;
            Ok(())
        },
    },
    Key {
        name: "reliability",
        takes: "`\"full\"` or a table",
        default: Default::Value("\"full\""),
        doc: "When a message is abandoned, if `partial_reliability` is on: `{ lifetime = \"200 ms\" }` after the send call, `{ retransmissions = 0 }`, or `{ priority = 5 }` when the send buffer has no room for a message of higher priority (a lower number). All messages of a flow have the same, so this alone abandons none.",
        read: |draft, at| {
            sctp_flow(draft, at)?.reliability = reliability(at)?;
            Ok(())
        },
    },
    Key {
        name: "immediate",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether each message asks the receiver not to delay its acknowledgement: the I bit (RFC 9260 §6.1).",
        read: |draft, at| {
            sctp_flow(draft, at)?.immediate = at.boolean()?;
            Ok(())
        },
    },
    Key {
        name: "streams",
        takes: "count",
        default: Default::Value("1"),
        doc: "The number of streams that messages use in turn; at most `outbound_streams` and `inbound_streams`.",
        read: |draft, at| {
            sctp_flow(draft, at)?.streams = at.count(1..=u16::MAX)?;
            Ok(())
        },
    },
    Key {
        name: "read",
        takes: "rate",
        default: Default::Text("at once"),
        doc: "The rate at which the receiving application reads user data. It reads a message of SCTP, or what TCP has at that moment (up to 65,535 B), at once, and then waits for the time that this takes at the rate. Not for UDP and foreign transports, whose data are read at once.",
        read: |draft, at| {
            match draft.flow.transport {
                Transport::Datagram => return Err(foreign(at, "a UDP flow is read at once")),
                Transport::Foreign(_) => return Err(foreign(at, "a foreign flow is read at once")),
                Transport::Sctp(_) | Transport::Tcp(_) | Transport::Mptcp(_) => {}
            }
            draft.flow.read_rate = Some(at.rate()?);
            Ok(())
        },
    },
    Key {
        name: "stop_reading_after",
        takes: "count",
        default: Default::Text("all are read"),
        doc: "The receiving application reads this number of messages and then stops reading: the receive buffer fills, and the association stays open until `stop`.",
        read: |draft, at| {
            sctp_flow(draft, at)?.stop_reading_after = Some(at.count(0..=1 << 50)?);
            Ok(())
        },
    },
    Key {
        name: "stripe",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "AppStripe: an independent association for each path. Each has buffers of the full size and takes the next message when it has room. The results are the flow's totals, with one entry of `paths` for each association.",
        read: |draft, at| {
            sctp_flow(draft, at)?.stripe = at.boolean()?;
            Ok(())
        },
    },
    Key {
        name: "lossless_sacks",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether radios never lose packets that carry only SACKs: if the queue is full, or the last attempt fails, such a packet still reaches the next node. For experiments on the loss of acknowledgements. Losses on links do not change.",
        read: |draft, at| {
            sctp_flow(draft, at)?.lossless_sacks = at.boolean()?;
            Ok(())
        },
    },
    Key {
        name: "udp",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether SCTP packets are encapsulated in UDP (RFC 6951), which adds 8 bytes to each.",
        read: |draft, at| {
            sctp_flow(draft, at)?.udp = at.boolean()?;
            Ok(())
        },
    },
    Key {
        name: "ip_header",
        takes: "size",
        default: Default::Text("the top-level `ip_header`"),
        doc: "The size of the IP header of every packet of this flow.",
        read: |draft, at| at.size32(0..=255).map(|size| draft.flow.ip_header = Some(size)),
    },
    Key {
        name: "sctp",
        takes: "table",
        default: Default::Text("the era's"),
        doc: "The protocol's rules and parameters, the same at both ends: `[flow.sctp]`, below.",
        read: |draft, at| {
            let (era, policies) = (draft.era.clone(), draft.policies.clone());
            let flow = sctp_flow(draft, at)?;
            let read = sctp::sctp(at, &era, &policies)?;
            flow.all_pairs = read.config.pairs == Pairs::All;
            (flow.config, flow.primary) = (read.config, read.primary);
            Ok(())
        },
    },
    Key {
        name: "tcp",
        takes: "table",
        default: Default::Text("the standard's"),
        doc: "The parameters of a TCP flow, the same at both ends: `[flow.tcp]`, below.",
        read: |draft, at| {
            let Transport::Tcp(flow) = &mut draft.flow.transport else {
                return Err(at
                    .error("only TCP flows have this table")
                    .hint("remove it, or set `protocol = \"tcp\"`"));
            };
            **flow = tcp::tcp(at, &draft.policies)?;
            Ok(())
        },
    },
    Key {
        name: "mptcp",
        takes: "table",
        default: Default::Text("the standard's"),
        doc: "The parameters of a flow over Multipath TCP, the same at both ends: `[flow.mptcp]`, below.",
        read: |draft, at| {
            let Transport::Mptcp(flow) = &mut draft.flow.transport else {
                return Err(at
                    .error("only flows over Multipath TCP have this table")
                    .hint("remove it, or set `protocol = \"mptcp\"`"));
            };
            **flow = mptcp::mptcp(at, &draft.policies)?;
            Ok(())
        },
    },
];

/// Reads a `[[flow]]`. Its era is the top-level `era` unless it names its own.
pub(super) fn flow(at: &At<'_>, era: &Config, policies: &Policies) -> Result<Flow> {
    let transport = Transport::Sctp(Box::new(new_sctp(era)));
    let flow = Flow { transport, ..Flow::default() };
    let mut draft = Draft {
        flow,
        send: None,
        rate: None,
        on: None,
        off: None,
        poisson: false,
        era: era.clone(),
        policies: policies.clone(),
    };
    fill(&mut draft, at, KEYS)?;
    let mut flow = draft.flow;
    both_times(at)?;
    flow.traffic = match (draft.rate, draft.on.zip(draft.off)) {
        (Some(rate), Some((on, off))) => Traffic::Bursts { rate, bytes: draft.send, times: [on, off] },
        (Some(rate), None) if draft.poisson => Traffic::Poisson { rate, bytes: draft.send },
        (Some(rate), None) => Traffic::Constant { rate, bytes: draft.send },
        (None, _) => Traffic::Bulk(draft.send),
    };
    if draft.poisson && draft.rate.is_none() {
        let error = at.error_below("spacing", "without a rate there is no spacing");
        return Err(error.hint("add `rate = \"1 Mbit/s\"`"));
    }
    if flow.from == flow.to {
        return Err(at.error_below("to", format!("`{}` sends to itself", flow.to)));
    }
    match &flow.transport {
        Transport::Sctp(sctp) => enough_streams(at, sctp)?,
        Transport::Datagram if draft.rate.is_none() => {
            return Err(at
                .error_below("rate", "a UDP flow needs a rate: nothing else limits it")
                .hint("add `rate = \"1 Mbit/s\"`"));
        }
        Transport::Tcp(_) | Transport::Mptcp(_) | Transport::Datagram | Transport::Foreign(_) => {}
    }
    Ok(flow)
}

/// The name of a foreign transport; `None` if the protocol is given as a string.
fn foreign_name(at: &At<'_>) -> Result<Option<String>> {
    let Ok(entries) = at.entries() else { return Ok(None) };
    match entries {
        [only] if only.key == "foreign" => match at.get("foreign") {
            Some(name) => name.name().map(Some),
            None => Ok(None),
        },
        [only] => Err(at.no_such_key(only).hint("`foreign`, as in { foreign = \"noq\" }")),
        _ => Err(at.error("a foreign transport has one key").hint("{ foreign = \"noq\" }")),
    }
}

fn udp_times(draft: &Draft, at: &At<'_>) -> Result<Times> {
    match draft.flow.transport {
        Transport::Datagram => times(at),
        _ => Err(at.error("only UDP flows have this key").hint("remove it, or set `protocol = \"udp\"`")),
    }
}

fn new_sctp(era: &Config) -> Sctp {
    Sctp { config: era.clone(), ..Sctp::default() }
}

/// The SCTP part of the flow; an error if another protocol carries it.
fn sctp_flow<'f>(draft: &'f mut Draft, at: &At<'_>) -> Result<&'f mut Sctp> {
    draft.flow.sctp_mut().ok_or_else(|| foreign(at, "only SCTP flows have this key"))
}

/// An error for a key that the flow's protocol does not have.
fn foreign(at: &At<'_>, why: &str) -> ScenarioError {
    at.error(why).hint("remove it, or set `protocol = \"sctp\"`")
}

fn reliability(at: &At<'_>) -> Result<Reliability> {
    if at.string().is_ok() {
        return at.one_of("choice", &["full"]).map(|_| Reliability::Full);
    }
    match at.entries()? {
        [only] => match only.key.as_str() {
            "lifetime" => {
                let value = at.get("lifetime").ok_or_else(|| at.error("a lifetime"))?;
                lifetime(&value).map(Reliability::Lifetime)
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

/// A lifetime in milliseconds. It is not zero: an application that sends as fast as it can would replace each abandoned
/// message at once, without end.
fn lifetime(at: &At<'_>) -> Result<u32> {
    let lifetime = at.duration()?;
    let millis = u32::try_from(lifetime.as_millis()).map_err(|_| at.error("this is more than 49 days"))?;
    match millis {
        _ if Duration::from_millis(millis.into()) != lifetime => {
            Err(at.error("a lifetime is a whole number of milliseconds (RFC 6458 section 5.3.7)"))
        }
        0 => Err(at
            .error("a lifetime cannot be zero")
            .hint("`{ retransmissions = 0 }` sends each message once; the shortest lifetime is \"1 ms\"")),
        millis => Ok(millis),
    }
}

fn enough_streams(at: &At<'_>, sctp: &Sctp) -> Result<()> {
    let limits = [
        ("outbound_streams", sctp.config.outbound_streams),
        ("inbound_streams", sctp.config.inbound_streams),
    ];
    for (key, limit) in limits {
        if sctp.streams > limit {
            let message = format!("{} streams are more than {key}, which is {limit}", sctp.streams);
            let fix = format!("set `{key} = {}` in [flow.sctp]", sctp.streams);
            return Err(at.error_below("streams", message).hint(fix));
        }
    }
    Ok(())
}
