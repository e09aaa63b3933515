//! Notifications to a subscribed socket (RFC 6458 §6, RFC 6525 §6.1). Lengths are those of the RFCs' structures.

use std::collections::BTreeSet;

use anabranch_proto::wire::Cause;
use anabranch_proto::{
    AddressChange, AssociationId, Direction, Event, LostReason, Message, Outcome as Became, PathState,
};

use super::ast::Expr;
use super::options::Got;
use super::socket::{CallFault, Outcome, done, wrong};
use super::sockopt::Fields;
use super::world::World;

/// A notification: its type, its fields, its length.
pub(super) struct Notice {
    pub(super) name: &'static str,
    pub(super) fields: Got,
    pub(super) length: usize,
}

/// The notifications to which a socket can subscribe, with their names in SCTP_EVENTS.
const SUBSCRIPTIONS: [(&str, &str); 9] = [
    ("SCTP_ASSOC_CHANGE", "sctp_association_event"),
    ("SCTP_PEER_ADDR_CHANGE", "sctp_address_event"),
    ("SCTP_SEND_FAILED_EVENT", ""),
    ("SCTP_REMOTE_ERROR", "sctp_peer_error_event"),
    ("SCTP_SHUTDOWN_EVENT", "sctp_shutdown_event"),
    ("SCTP_PARTIAL_DELIVERY_EVENT", "sctp_partial_delivery_event"),
    ("SCTP_STREAM_RESET_EVENT", ""),
    ("SCTP_ASSOC_RESET_EVENT", ""),
    ("SCTP_STREAM_CHANGE_EVENT", ""),
];

/// For each structure, the keys of its type, flags, length and association.
const SAC: [&str; 4] = ["sac_type", "sac_flags", "sac_length", "sac_assoc_id"];
const SPC: [&str; 4] = ["spc_type", "spc_flags", "spc_length", "spc_assoc_id"];
const SRE: [&str; 4] = ["sre_type", "sre_flags", "sre_length", "sre_assoc_id"];
const SSFE: [&str; 4] = ["ssfe_type", "ssfe_flags", "ssfe_length", "ssfe_assoc_id"];
const SSE: [&str; 4] = ["sse_type", "sse_flags", "sse_length", "sse_assoc_id"];
const PDAPI: [&str; 4] = ["pdapi_type", "pdapi_flags", "pdapi_length", "pdapi_assoc_id"];
const STRRESET: [&str; 4] = ["strreset_type", "strreset_flags", "strreset_length", "strreset_assoc_id"];
const ASSOCRESET: [&str; 4] =
    ["assocreset_type", "assocreset_flags", "assocreset_length", "assocreset_assoc_id"];
const STRCHANGE: [&str; 4] = ["strchange_type", "strchange_flags", "strchange_length", "strchange_assoc_id"];

/// The streams of an association: outbound and inbound.
pub(super) type Streams = (u16, u16);

impl World {
    /// The notification of this event, if it has one.
    pub(super) fn notice(&self, id: AssociationId, event: &Event, streams: Streams) -> Option<Notice> {
        Some(match event {
            Event::Up => association_change("SCTP_COMM_UP", streams),
            Event::Restart => association_change("SCTP_RESTART", streams),
            Event::Lost(LostReason::NoAnswer | LostReason::Unreachable) => {
                association_change("SCTP_CANT_STR_ASSOC", streams)
            }
            Event::Lost(_) => association_change("SCTP_COMM_LOST", streams),
            Event::Closed => association_change("SCTP_SHUTDOWN_COMP", streams),
            Event::PeerShutdown => notice("SCTP_SHUTDOWN_EVENT", SSE, 0, 12, vec![]),
            Event::Path(path, state) => {
                let path = self.endpoint.paths(id).iter().find(|view| view.id == *path)?;
                address_change(path.remote.ip, path_state(*state)?)
            }
            Event::PeerAddress { address, change } => address_change(
                address.ip,
                match change {
                    AddressChange::Added => "SCTP_ADDR_ADDED",
                    AddressChange::Removed => "SCTP_ADDR_REMOVED",
                    AddressChange::Primary => "SCTP_ADDR_MADE_PRIM",
                },
            ),
            Event::PeerError(causes) => {
                let bytes: usize = causes.iter().map(|cause| cause.size().next_multiple_of(4)).sum();
                let code = causes.first().map_or(0, Cause::number);
                notice("SCTP_REMOTE_ERROR", SRE, 0, 16 + bytes, vec![("sre_error", int(code))])
            }
            Event::SendFailed { message, sent } => send_failed(message, *sent),
            Event::StreamsReset { direction, streams, outcome } => {
                let way = if *direction == Direction::Incoming { 1 } else { 2 };
                let list = Expr::List(streams.iter().map(|stream| int(*stream)).collect());
                let (flags, length) = (way | refusal(*outcome), 12 + 2 * streams.len());
                notice(
                    "SCTP_STREAM_RESET_EVENT",
                    STRRESET,
                    flags,
                    length,
                    vec![("strreset_stream_list", list)],
                )
            }
            Event::TsnsReset(outcome) => {
                notice("SCTP_ASSOC_RESET_EVENT", ASSOCRESET, refusal(*outcome), 20, vec![])
            }
            Event::StreamsAdded { outgoing, incoming, outcome } => {
                let fields =
                    vec![("strchange_instrms", int(*incoming)), ("strchange_outstrms", int(*outgoing))];
                notice("SCTP_STREAM_CHANGE_EVENT", STRCHANGE, refusal(*outcome), 16, fields)
            }
            Event::Readable | Event::Writable | Event::LocalAddress { .. } => return None,
        })
    }

    /// Sets SCTP_EVENT {se_type, se_on} or SCTP_EVENTS {sctp_association_event=1, …} of a socket.
    pub(super) fn subscribe(&mut self, name: &str, arguments: &[Expr], value: &Expr) -> Outcome {
        let wanted = match name {
            "SCTP_EVENT" => {
                let fields = event_fields(value)?;
                vec![(event_type(&fields)?, fields.number("se_on")? != 0)]
            }
            _ => {
                let known: Vec<&str> =
                    SUBSCRIPTIONS.iter().map(|(_, old)| *old).filter(|old| !old.is_empty()).collect();
                let fields = Fields::of(name, value, &known)?;
                let one = |(kind, old): &(&'static str, &str)| {
                    fields.expr(old).map(|_| fields.number(old).map(|on| (*kind, on != 0)))
                };
                SUBSCRIPTIONS.iter().filter_map(one).collect::<Result<_, _>>()?
            }
        };
        let events = &mut self.handle(arguments)?.events;
        for (kind, on) in wanted {
            if on {
                events.insert(kind);
            } else {
                events.remove(kind);
            }
        }
        done(0)
    }

    /// Whether SCTP_EVENT has enabled the type in `expected`.
    pub(super) fn subscribed(&mut self, arguments: &[Expr], expected: &Expr) -> Result<Got, CallFault> {
        let kind = event_type(&event_fields(expected)?)?;
        let on = self.handle(arguments)?.events.contains(kind);
        Ok(vec![("se_assoc_id", Expr::Any), ("se_type", word(kind)), ("se_on", int(u8::from(on)))])
    }
}

/// The subscriptions of a socket.
pub(super) type Events = BTreeSet<&'static str>;

fn event_fields(value: &Expr) -> Result<Fields<'_>, CallFault> {
    Fields::of("SCTP_EVENT", value, &["se_assoc_id", "se_type", "se_on"])
}

fn event_type(fields: &Fields<'_>) -> Result<&'static str, CallFault> {
    let Some(Expr::Word(asked)) = fields.expr("se_type") else { return wrong("se_type is missing") };
    match SUBSCRIPTIONS.iter().find(|(kind, _)| kind == asked) {
        Some((kind, _)) => Ok(kind),
        None => Err(CallFault::Unsupported(format!("notifications of type {asked}"))),
    }
}

/// The rest of a partly read message will not arrive.
pub(super) fn partial_delivery_aborted(stream: u16) -> Notice {
    let fields =
        vec![("pdapi_indication", word("SCTP_PARTIAL_DELIVERY_ABORTED")), ("pdapi_stream", int(stream))];
    notice("SCTP_PARTIAL_DELIVERY_EVENT", PDAPI, 0, 24, fields)
}

fn association_change(state: &str, (outbound, inbound): Streams) -> Notice {
    let fields = vec![
        ("sac_state", word(state)),
        ("sac_error", int(0_u8)),
        ("sac_outbound_streams", int(outbound)),
        ("sac_inbound_streams", int(inbound)),
        ("sac_info", Expr::List(Vec::new())),
    ];
    notice("SCTP_ASSOC_CHANGE", SAC, 0, 20, fields)
}

fn address_change(address: std::net::IpAddr, state: &str) -> Notice {
    let fields = vec![("spc_aaddr", Expr::Ip(address)), ("spc_state", word(state)), ("spc_error", int(0_u8))];
    notice("SCTP_PEER_ADDR_CHANGE", SPC, 0, 148, fields)
}

/// The name of the state in RFC 6458 §6.1.2 and RFC 7829 §7.1.
fn path_state(state: PathState) -> Option<&'static str> {
    match state {
        PathState::Active => Some("SCTP_ADDR_AVAILABLE"),
        PathState::Inactive => Some("SCTP_ADDR_UNREACHABLE"),
        PathState::PotentiallyFailed => Some("SCTP_ADDR_POTENTIALLY_FAILED"),
        PathState::Unconfirmed | PathState::Removed => None,
    }
}

fn send_failed(message: &Message, sent: bool) -> Notice {
    let info = vec![
        ("snd_sid".to_owned(), int(message.stream)),
        ("snd_ppid".to_owned(), int(message.ppid)),
        ("snd_assoc_id".to_owned(), Expr::Any),
    ];
    let fields = vec![("ssfe_error", int(0_u8)), ("ssfe_info", Expr::Fields(info)), ("ssfe_data", Expr::Any)];
    // SCTP_DATA_UNSENT or SCTP_DATA_SENT.
    let flags = if sent { 2 } else { 1 };
    notice("SCTP_SEND_FAILED_EVENT", SSFE, flags, 32 + message.payload.len(), fields)
}

/// SCTP_STREAM_RESET_DENIED or SCTP_STREAM_RESET_FAILED. Other requests use the same values.
fn refusal(outcome: Became) -> u8 {
    match outcome {
        Became::Done => 0,
        Became::Denied => 4,
        Became::Failed => 8,
    }
}

/// A notification with the common fields: type, flags, length and the association's id.
fn notice(name: &'static str, keys: [&'static str; 4], flags: u8, length: usize, fields: Got) -> Notice {
    let [kind, flags_key, length_key, id] = keys;
    let bytes = Expr::Integer(length as i128);
    let mut all = vec![(kind, word(name)), (flags_key, int(flags)), (length_key, bytes), (id, Expr::Any)];
    all.extend(fields);
    Notice { name, fields: all, length }
}

fn word(name: &str) -> Expr {
    Expr::Word(name.to_owned())
}

fn int(n: impl Into<i128>) -> Expr {
    Expr::Integer(n.into())
}
