//! Marks: named moments of a run.

use std::time::Duration;

use anabranch_proto::policy::Why;
use anabranch_proto::{Time, Tsn};

use super::Noted;
use super::read::{Draft, belongs, fill};
use super::record::{Entry, EventKind, Quantity, Recording};
use super::text::strings;
use anabranch_sim::scenario::at::{At, Result};
use anabranch_sim::scenario::keys::{Default, Key};

/// A named moment: the first or the last event that matches.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    /// Its name.
    pub name: String,
    /// The event.
    pub event: Event,
    /// Only events after this mark count; its index in the paper's list.
    pub after: Option<usize>,
    /// The last matching event instead of the first.
    pub last: bool,
    /// Only the events in the burst that begins with the first match: gaps between them are at most this long.
    pub burst: Option<Duration>,
}

/// An event in a run.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A link drops a packet. The link's name, or "link a>b" for one direction.
    Drop(String),
    /// A packet arrives at the end of a link. The link's name, or "link a>b" for one direction.
    Arrives(String),
    /// The cumulative acknowledgement advances at the sender of a flow.
    Acked {
        /// The flow; `None`: the first.
        flow: Option<String>,
    },
    /// The sender of a flow sends a DATA chunk.
    Sent(Sent),
    /// T3-rtx expires at the sender of a flow.
    Timeout {
        /// The flow; `None`: the first.
        flow: Option<String>,
    },
    /// A quantity passes a level.
    Passes {
        /// The quantity.
        quantity: Noted,
        /// The level in bytes.
        level: u64,
        /// Whether it rises above the level instead of falling below it.
        above: bool,
    },
    /// A quantity increases.
    Grows(Noted),
}

/// The transmission of a DATA chunk.
#[derive(Clone, PartialEq, Debug)]
pub struct Sent {
    /// The reasons that match; an empty list matches any.
    pub why: Vec<Why>,
    /// The flow; `None`: the first.
    pub flow: Option<String>,
    /// The path; `None`: any.
    pub path: Option<String>,
    /// Whether only the first such transmission of a TSN counts.
    pub once: bool,
    /// Only TSNs that a link dropped between two marks, including the marks.
    pub dropped: Option<(String, [usize; 2])>,
}

/// A moment of a run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Moment {
    /// Its index among the entries of the recording. It orders events that occur at the same time.
    pub index: usize,
    /// Its time.
    pub at: Time,
}

/// The moments of `marks`, in their order; `None` where no event matches.
pub fn moments(marks: &[Mark], recording: &Recording) -> Vec<Option<Moment>> {
    let mut found: Vec<Option<Moment>> = Vec::new();
    for mark in marks {
        let start = match mark.after {
            Some(after) => found[after].map(|moment| moment.index + 1),
            None => Some(0),
        };
        found.push(start.and_then(|start| find(mark, start, &found, recording)));
    }
    found
}

fn find(mark: &Mark, start: usize, found: &[Option<Moment>], recording: &Recording) -> Option<Moment> {
    let mut chosen: Option<Moment> = None;
    for moment in events(&mark.event, start..recording.entries.len(), found, recording) {
        let gap = chosen.map(|before| moment.at.as_nanos() - before.at.as_nanos());
        if mark.burst.is_some_and(|burst| gap.is_some_and(|gap| u128::from(gap) > burst.as_nanos())) {
            break;
        }
        chosen = Some(moment);
        if !mark.last {
            break;
        }
    }
    chosen
}

/// The times of `event` within this range of entries.
pub(super) fn events<'r>(
    event: &'r Event,
    range: std::ops::Range<usize>,
    found: &'r [Option<Moment>],
    recording: &'r Recording,
) -> impl Iterator<Item = Moment> + 'r {
    let mut fits = Fits::new(event, range.start, found, recording);
    let entries = recording.entries[range.clone()].iter().zip(range);
    entries.filter(move |(entry, _)| fits.fits(entry)).map(|(entry, index)| Moment { index, at: entry.at })
}

/// An event whose names were resolved.
struct Fits<'r> {
    event: &'r Event,
    recording: &'r Recording,
    flow: Option<usize>,
    path: Option<usize>,
    dropped: Option<Vec<Tsn>>,
    seen: Vec<Tsn>,
    /// The last recorded value of a quantity.
    last: Option<f64>,
}

impl<'r> Fits<'r> {
    /// Matches entries from index `start` on.
    fn new(event: &'r Event, start: usize, found: &[Option<Moment>], recording: &'r Recording) -> Self {
        let (flow, path) = match event {
            Event::Drop(_) | Event::Arrives(_) => (None, None),
            Event::Sent(Sent { flow, path, .. }) => (flow.as_deref(), path.as_deref()),
            Event::Timeout { flow } | Event::Acked { flow } => (flow.as_deref(), None),
            Event::Passes { quantity, .. } | Event::Grows(quantity) => {
                (quantity.flow.as_deref(), quantity.path.as_deref())
            }
        };
        let dropped = match event {
            Event::Sent(Sent { dropped: Some((link, between)), .. }) => {
                Some(dropped(link, between.map(|mark| found[mark]), recording))
            }
            _ => None,
        };
        let path = path.and_then(|path| recording.paths.iter().position(|name| name == path));
        let flow = recording.flow(flow);
        let mut fits = Fits { event, recording, flow, path, dropped, seen: Vec::new(), last: None };
        if let Event::Grows(quantity) = event {
            let before = recording.entries[..start].iter().rev();
            fits.last = before.filter_map(|entry| fits.value(entry, quantity)).next();
        }
        fits
    }

    fn fits(&mut self, entry: &Entry) -> bool {
        match (self.event, &entry.what) {
            (Event::Drop(name), EventKind::Dropped { link, .. })
            | (Event::Arrives(name), EventKind::Arrived { link, .. }) => self.recording.is_link(*link, name),
            (Event::Timeout { .. }, EventKind::Timeout { flow, .. })
            | (Event::Acked { .. }, EventKind::Acked { flow, .. }) => Some(*flow) == self.flow,
            (Event::Sent(sent), EventKind::Sent { flow, path, tsn, why }) => {
                Some(*flow) == self.flow
                    && (sent.why.is_empty() || sent.why.contains(why))
                    && (sent.path.is_none() || Some(*path) == self.path)
                    && self.dropped.as_ref().is_none_or(|dropped| dropped.contains(tsn))
                    && (!sent.once || self.first_time(*tsn))
            }
            (Event::Passes { quantity, level, above }, _) => {
                let (value, level) = (self.value(entry, quantity), *level as f64);
                value.is_some_and(|value| if *above { value > level } else { value < level })
            }
            (Event::Grows(quantity), _) => self.value(entry, quantity).is_some_and(|value| {
                let before = self.last.replace(value);
                before.is_some_and(|before| value > before)
            }),
            _ => false,
        }
    }

    fn value(&self, entry: &Entry, noted: &Noted) -> Option<f64> {
        self.recording.value(entry, noted.quantity, self.flow?, self.path)
    }

    fn first_time(&mut self, tsn: Tsn) -> bool {
        let first = !self.seen.contains(&tsn);
        if first {
            self.seen.push(tsn);
        }
        first
    }
}

fn dropped(name: &str, between: [Option<Moment>; 2], recording: &Recording) -> Vec<Tsn> {
    let [Some(from), Some(to)] = between else { return Vec::new() };
    let entries = recording.entries.get(from.index..=to.index).unwrap_or_default();
    let tsns = entries.iter().filter_map(|entry| match &entry.what {
        EventKind::Dropped { link, tsns, .. } if recording.is_link(*link, name) => Some(tsns.iter().copied()),
        _ => None,
    });
    tsns.flatten().collect()
}

/// The mark that is being read.
#[derive(Default)]
pub(super) struct MarkDraft {
    name: String,
    event: Option<Event>,
    after: Option<usize>,
    last: bool,
    burst: Option<Duration>,
}

pub(super) const KEYS: &[Key<Draft<MarkDraft>>] = &[
    Key {
        name: "name",
        takes: "string",
        default: Default::Required,
        doc: "The name.",
        read: |draft, at| at.string().map(|name| draft.of.name = name.to_owned()),
    },
    Key {
        name: "event",
        takes: "event",
        default: Default::Required,
        doc: "The event; see `event` below.",
        read: |draft, at| event(at, &draft.marks).map(|event| draft.of.event = Some(event)),
    },
    Key {
        name: "after",
        takes: "mark",
        default: Default::Text("from the beginning"),
        doc: "Only events after this mark, which must be declared above.",
        read: |draft, at| draft.mark(at).map(|mark| draft.of.after = Some(mark)),
    },
    Key {
        name: "pick",
        takes: "`\"first\"`, `\"last\"`",
        default: Default::Value("\"first\""),
        doc: "Which of the matching events.",
        read: |draft, at| at.one_of("choice", &["first", "last"]).map(|pick| draft.of.last = pick == "last"),
    },
    Key {
        name: "burst",
        takes: "duration",
        default: Default::Text("no end"),
        doc: "Only the first group of matching events, whose gaps are at most this long.",
        read: |draft, at| at.duration().map(|gap| draft.of.burst = Some(gap)),
    },
];

/// Reads a `[[mark]]`; `marks` are the earlier ones.
pub(super) fn mark(at: &At<'_>, marks: &[String]) -> Result<Mark> {
    let mut draft = Draft::new(MarkDraft::default(), marks);
    fill(&mut draft, at, KEYS)?;
    let MarkDraft { name, event, after, last, burst } = draft.of;
    let event = event.ok_or_else(|| at.error("this key is missing"))?;
    Ok(Mark { name, event, after, last, burst })
}

/// The event that is being read.
#[derive(Default)]
pub(super) struct EventDraft {
    drop: Option<String>,
    arrives: Option<String>,
    sent: Option<Vec<Why>>,
    timeout: bool,
    acked: bool,
    quantity: Option<Quantity>,
    level: Option<(u64, bool)>,
    grows: bool,
    flow: Option<String>,
    path: Option<String>,
    once: bool,
    dropped: Option<(String, [usize; 2])>,
}

/// The allowed values of a key for a quantity.
pub(super) const QUANTITIES: &str =
    "`\"peer_window\"`, `\"cwnd\"`, `\"cwnd_segments\"`, `\"ssthresh\"`, `\"flight\"`";

pub(super) const EVENT_KEYS: &[Key<Draft<EventDraft>>] = &[
    Key {
        name: "drop",
        takes: "link, or `\"link a>b\"`",
        default: Default::Text("not a drop"),
        doc: "A packet is dropped by this link.",
        read: |draft, at| at.string().map(|link| draft.of.drop = Some(link.to_owned())),
    },
    Key {
        name: "arrives",
        takes: "link, or `\"link a>b\"`",
        default: Default::Text("not an arrival"),
        doc: "A packet arrives at the end of this link.",
        read: |draft, at| at.string().map(|link| draft.of.arrives = Some(link.to_owned())),
    },
    Key {
        name: "sent",
        takes: "`\"any\"`, or of `\"new\"`, `\"missing\"`, `\"timeout\"`, `\"window-probe\"`, `\"tail-probe\"`, `\"reinjected\"`",
        default: Default::Text("not a chunk sent"),
        doc: "A DATA chunk is sent, for one of these reasons.",
        read: |draft, at| reasons(at).map(|why| draft.of.sent = Some(why)),
    },
    Key {
        name: "timeout",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "T3-rtx expires.",
        read: |draft, at| at.boolean().map(|timeout| draft.of.timeout = timeout),
    },
    Key {
        name: "acked",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "The cumulative acknowledgement advances.",
        read: |draft, at| at.boolean().map(|acked| draft.of.acked = acked),
    },
    Key {
        name: "quantity",
        takes: QUANTITIES,
        default: Default::Text("not a quantity"),
        doc: "A quantity passes a level or grows: with `below`, `above` or `grows`.",
        read: |draft, at| quantity(at).map(|quantity| draft.of.quantity = Some(quantity)),
    },
    Key {
        name: "below",
        takes: "size",
        default: Default::Text("none"),
        doc: "The quantity is less than this.",
        read: |draft, at| at.size(0..=u64::MAX).map(|level| draft.of.level = Some((level, false))),
    },
    Key {
        name: "above",
        takes: "size",
        default: Default::Text("none"),
        doc: "The quantity is more than this.",
        read: |draft, at| at.size(0..=u64::MAX).map(|level| draft.of.level = Some((level, true))),
    },
    Key {
        name: "grows",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "The quantity is more than it was before.",
        read: |draft, at| at.boolean().map(|grows| draft.of.grows = grows),
    },
    Key {
        name: "flow",
        takes: "name",
        default: Default::Text("the first"),
        doc: "The flow of the sender; not for `drop` and `arrives`, which count the packets of all flows.",
        read: |draft, at| at.name().map(|flow| draft.of.flow = Some(flow)),
    },
    Key {
        name: "path",
        takes: "path",
        default: Default::Text("any"),
        doc: "The path, for `sent` and `quantity`. A quantity of a path requires it.",
        read: |draft, at| at.string().map(|path| draft.of.path = Some(path.to_owned())),
    },
    Key {
        name: "once",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Count only the first time that each TSN is sent for one of these reasons.",
        read: |draft, at| at.boolean().map(|once| draft.of.once = once),
    },
    Key {
        name: "dropped",
        takes: "`{ by = LINK, between = [MARK, MARK] }`",
        default: Default::Text("any chunk"),
        doc: "Count only chunks that the link dropped between the two marks, both included.",
        read: |draft, at| dropped_between(at, draft).map(|dropped| draft.of.dropped = Some(dropped)),
    },
];

/// Reads an event.
pub(super) fn event(at: &At<'_>, marks: &[String]) -> Result<Event> {
    let mut draft = Draft::new(EventDraft::default(), marks);
    fill(&mut draft, at, EVENT_KEYS)?;
    let of = draft.of;
    let links = [of.drop.is_some(), of.arrives.is_some()];
    let ends = [of.sent.is_some(), of.timeout, of.acked, of.quantity.is_some()];
    if links.iter().chain(&ends).filter(|given| **given).count() != 1 {
        let kinds = "`drop`, `arrives`, `sent`, `timeout`, `acked` and `quantity`";
        return Err(at.error(format!("an event is one of {kinds}")));
    }
    ["once", "dropped"].into_iter().try_for_each(|key| belongs(at, key, &["sent"]))?;
    ["below", "above", "grows"].into_iter().try_for_each(|key| belongs(at, key, &["quantity"]))?;
    belongs(at, "path", &["sent", "quantity"])?;
    belongs(at, "flow", &["sent", "timeout", "acked", "quantity"])?;
    if let (Some(_), Some(above)) = (at.get("below"), at.get("above")) {
        return Err(above.error("`below` is given already").hint("give one of them"));
    }
    Ok(match (of.drop, of.arrives, of.sent, of.quantity) {
        (Some(link), ..) => Event::Drop(link),
        (_, Some(link), ..) => Event::Arrives(link),
        (_, _, Some(why), _) => {
            Event::Sent(Sent { why, flow: of.flow, path: of.path, once: of.once, dropped: of.dropped })
        }
        (.., Some(quantity)) => {
            let quantity = noted(at, quantity, of.flow, of.path)?;
            match (of.level, of.grows) {
                (Some((level, above)), false) => Event::Passes { quantity, level, above },
                (None, true) => Event::Grows(quantity),
                _ => return Err(at.error("a quantity needs one of `below`, `above` and `grows`")),
            }
        }
        _ if of.acked => Event::Acked { flow: of.flow },
        _ => Event::Timeout { flow: of.flow },
    })
}

/// A quantity with its flow and path. A quantity of a path requires the path.
pub(super) fn noted(
    at: &At<'_>,
    quantity: Quantity,
    flow: Option<String>,
    path: Option<String>,
) -> Result<Noted> {
    match (quantity.by_path(), &path) {
        (true, None) => Err(at.error_below("path", "each path has its own: say which")),
        (false, Some(_)) => Err(at.error_below("path", "the peer's window is not a path's")),
        _ => Ok(Noted { quantity, flow, path }),
    }
}

/// Reads a quantity's name.
pub(super) fn quantity(at: &At<'_>) -> Result<Quantity> {
    let names: Vec<_> = Quantity::NAMES.iter().map(|(name, _)| *name).collect();
    let name = at.one_of("quantity", &names)?;
    let found = Quantity::NAMES.iter().find(|(known, _)| *known == name);
    found.map(|(_, quantity)| *quantity).ok_or_else(|| at.error("there is no such quantity"))
}

const REASONS: &[(&str, Why)] = &[
    ("new", Why::New),
    ("missing", Why::Missing),
    ("timeout", Why::Timeout),
    ("window-probe", Why::WindowProbe),
    ("tail-probe", Why::TailProbe),
    ("reinjected", Why::Reinjected),
];

fn reasons(at: &At<'_>) -> Result<Vec<Why>> {
    let names = strings(at)?;
    if names == ["any"] {
        return Ok(Vec::new());
    }
    let reason = |name: &&str| {
        let found = REASONS.iter().find(|(known, _)| known == name);
        found
            .map(|(_, why)| *why)
            .ok_or_else(|| at.unknown("reason", name, REASONS.iter().map(|(known, _)| *known)))
    };
    names.iter().map(reason).collect()
}

fn dropped_between(at: &At<'_>, draft: &Draft<EventDraft>) -> Result<(String, [usize; 2])> {
    if let Some(entry) = at.entries()?.iter().find(|entry| !["by", "between"].contains(&entry.key.as_str())) {
        return Err(at.no_such_key(entry).hint("write { by = LINK, between = [MARK, MARK] }"));
    }
    let (Some(by), Some(between)) = (at.get("by"), at.get("between")) else {
        return Err(at.error("`by` and `between` are both needed"));
    };
    match between.array("two marks")?.as_slice() {
        [from, to] => Ok((by.string()?.to_owned(), [draft.mark(from)?, draft.mark(to)?])),
        _ => Err(between.error("expected two marks")),
    }
}
