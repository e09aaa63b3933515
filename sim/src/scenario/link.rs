//! `[[link]]` and `[[change]]`.

use std::time::Duration;

use super::at::{At, Result};
use super::cross::uniform;
use super::keys::{Default, Key, fill};
use super::{Change, Link, Loss, Queue, trace};

/// The draft of a link, with its outages.
pub(super) struct Draft {
    link: Link,
    down: Vec<(Duration, Option<Duration>)>,
}

pub(super) const KEYS: &[Key<Draft>] = &[
    Key {
        name: "name",
        takes: "name",
        default: Default::Required,
        doc: "The name that changes, paths and results use; unique.",
        read: |draft, at| at.name().map(|name| draft.link.name = name),
    },
    Key {
        name: "between",
        takes: "array of two nodes",
        default: Default::Required,
        doc: "The nodes at its ends. Every key below that takes one value for both directions also takes a pair `[forward, backward]`, where *forward* is from the first of these nodes to the second.",
        read: |draft, at| ends(at).map(|between| draft.link.between = between),
    },
    Key {
        name: "rate",
        takes: "rate or trace, or `[forward, backward]`",
        default: Default::Required,
        doc: "The rate of the link, in bits per second; or a recorded one, as `{ trace = \"lte.up\" }` (below).",
        read: |draft, at| {
            let [there, back] = at.pair(trace::rate)?;
            draft.link.rate = [there.0, back.0];
            draft.link.traced = [there.1, back.1];
            Ok(())
        },
    },
    Key {
        name: "delay",
        takes: "duration, `[forward, backward]`, or a range",
        default: Default::Value("\"0 ms\""),
        doc: "The propagation delay, from the transmission of a packet's last bit to its arrival. `{ uniform = [\"5 ms\", \"20 ms\"] }` is drawn from the run's seed, the same in both directions.",
        read: |draft, at| {
            draft.link.random_delay = uniform(at)?;
            if draft.link.random_delay.is_none() {
                draft.link.delay = at.pair(At::duration)?;
            }
            Ok(())
        },
    },
    Key {
        name: "jitter",
        takes: "duration, or `[forward, backward]`",
        default: Default::Value("\"0 ms\""),
        doc: "The largest additional delay of a packet. The delay of each packet is drawn uniformly from the run's seed.",
        read: |draft, at| at.pair(At::duration).map(|jitter| draft.link.jitter = jitter),
    },
    Key {
        name: "reorder",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether jitter may change the order of packets; without jitter it has no effect. Otherwise a packet arrives no earlier than the one before it.",
        read: |draft, at| at.boolean().map(|reorder| draft.link.reorder = reorder),
    },
    Key {
        name: "queue",
        takes: "queue, or `[forward, backward]`",
        default: Default::Value("\"100 packets\""),
        doc: "The queue in front of the link. Drop-tail: `\"50 packets\"`, `\"75 kB\"` with IP headers, the packet being sent included, or `\"2 bdp\"`: twice rate × delay of this link in packets of its MTU, rounded up. Or `{ red = { … } }`, `{ codel = { … } }` (below).",
        read: |draft, at| at.pair(At::queue).map(|queue| draft.link.queue = queue),
    },
    Key {
        name: "mark",
        takes: "size or `\"off\"`, or `[forward, backward]`",
        default: Default::Value("\"off\""),
        doc: "The queue length from which packets are marked (ECN) if their flow allows it (`[flow.sctp]` `ecn`).",
        read: |draft, at| at.pair(mark).map(|mark| draft.link.mark = mark),
    },
    Key {
        name: "loss",
        takes: "loss, or `[forward, backward]`",
        default: Default::Value("\"0 %\""),
        doc: "Which packets are lost: each with a probability (`\"1 %\"`), or one of the forms of loss below.",
        read: |draft, at| at.pair(At::loss).map(|loss| draft.link.loss = loss),
    },
    Key {
        name: "mtu",
        takes: "size",
        default: Default::Value("\"1500 B\""),
        doc: "The largest packet, with its IP header.",
        read: |draft, at| at.size32(528..=65_535).map(|mtu| draft.link.mtu = mtu),
    },
    Key {
        name: "up",
        takes: "boolean",
        default: Default::Value("true"),
        doc: "Whether the link is up at the beginning.",
        read: |draft, at| at.boolean().map(|up| draft.link.up = up),
    },
    Key {
        name: "down",
        takes: "array of outages",
        default: Default::Value("[]"),
        doc: "The outages of the link: `[[\"10 s\", \"15 s\"], [\"40 s\"]]`, each with its beginning and end. The last may have no end. Packets on the link are lost when it goes down.",
        read: |draft, at| outages(at).map(|down| draft.down = down),
    },
];

/// Reads a `[[link]]`. Returns the link and the changes for its outages.
pub(super) fn link(at: &At<'_>) -> Result<(Link, Vec<Change>)> {
    let link = Link {
        name: String::new(),
        between: [String::new(), String::new()],
        rate: [0; 2],
        traced: [None, None],
        delay: [Duration::ZERO; 2],
        random_delay: None,
        jitter: [Duration::ZERO; 2],
        reorder: false,
        queue: [Queue::Packets(100); 2],
        mark: [None; 2],
        loss: [Loss::None, Loss::None],
        mtu: 1500,
        up: true,
    };
    let mut draft = Draft { link, down: Vec::new() };
    fill(&mut draft, at, KEYS)?;
    has_delay(at, &draft.link)?;
    one_loss(at, &draft.link)?;
    let name = draft.link.name.clone();
    let switch = |at, up| Change { up: Some(up), ..nothing(at, name.clone()) };
    let mut changes = Vec::new();
    for (from, until) in draft.down {
        changes.push(switch(from, false));
        changes.extend(until.map(|until| switch(until, true)));
    }
    Ok((draft.link, changes))
}

/// A queue in bandwidth-delay products needs a delay.
fn has_delay(at: &At<'_>, link: &Link) -> Result<()> {
    let without = |direction: usize| match link.random_delay {
        Some([_, high]) => high == Duration::ZERO,
        None => link.delay[direction] == Duration::ZERO,
    };
    let products = |direction: usize| matches!(link.queue[direction], Queue::BandwidthDelay(_));
    if (0..2).any(|direction| products(direction) && without(direction)) {
        let error = at.error_below("queue", "this link has no delay of which `bdp` could be a multiple");
        return Err(error.hint("give it a `delay`, or its queue in packets"));
    }
    Ok(())
}

/// A trace with losses allows no other losses.
fn one_loss(at: &At<'_>, link: &Link) -> Result<()> {
    let both = |direction: usize| {
        let traced = link.traced[direction].as_ref().is_some_and(|traced| traced.trace.has_loss());
        traced && link.loss[direction] != Loss::None
    };
    if (0..2).any(both) {
        let error = at.error_below("loss", "the trace of this link has a column `loss` already");
        return Err(error.hint("leave out `loss`, or the column"));
    }
    Ok(())
}

fn mark(at: &At<'_>) -> Result<Option<u64>> {
    if at.string() == Ok("off") { Ok(None) } else { at.size(0..=u64::MAX).map(Some) }
}

fn ends(at: &At<'_>) -> Result<[String; 2]> {
    let items = at.array("an array of two nodes")?;
    let [a, b] = items.as_slice() else {
        return Err(at
            .error(format!("a link has two ends, found {}", items.len()))
            .hint("between = [\"a\", \"b\"]"));
    };
    let (a, b) = (a.name()?, b.name()?);
    if a == b {
        return Err(at.error(format!("both ends are `{a}`")).hint("a link joins two different nodes"));
    }
    Ok([a, b])
}

fn outages(at: &At<'_>) -> Result<Vec<(Duration, Option<Duration>)>> {
    const FORM: &str = "down = [[\"10 s\", \"15 s\"], [\"40 s\"]]";
    let mut outages: Vec<(Duration, Option<Duration>)> = Vec::new();
    for item in at.array("an array of outages").map_err(|e| e.hint(FORM))? {
        let times = item.array("an outage, which is an array of its two times").map_err(|e| e.hint(FORM))?;
        let (from, until) = match times.as_slice() {
            [from] => (from.duration()?, None),
            [from, until] => (from.duration()?, Some(until.duration()?)),
            _ => {
                return Err(item.error(format!("an outage has two times, found {}", times.len())).hint(FORM));
            }
        };
        if until.is_some_and(|until| until <= from) {
            return Err(item.error("this outage ends before it has begun"));
        }
        if outages.last().is_some_and(|(_, until)| until.is_none_or(|until| from <= until)) {
            return Err(item.error("this outage begins before the one before it has ended"));
        }
        outages.push((from, until));
    }
    Ok(outages)
}

pub(super) const CHANGE_KEYS: &[Key<Change>] = &[
    Key {
        name: "at",
        takes: "duration",
        default: Default::Required,
        doc: "The time of the change, counted from the beginning of the run.",
        read: |change, at| at.duration().map(|time| change.at = time),
    },
    Key {
        name: "link",
        takes: "a link's name",
        default: Default::Required,
        doc: "The link that changes. Keys that are not given stay as they are.",
        read: |change, at| at.string().map(|link| change.link = link.to_owned()),
    },
    Key {
        name: "up",
        takes: "boolean",
        default: Default::Text("as before"),
        doc: "Whether the link is up. Packets on the link are lost when it goes down.",
        read: |change, at| at.boolean().map(|up| change.up = Some(up)),
    },
    Key {
        name: "rate",
        takes: "rate, or `[forward, backward]`",
        default: Default::Text("as before"),
        doc: "The new rate, for packets whose transmission begins after the change.",
        read: |change, at| at.pair(At::link_rate).map(|rate| change.rate = Some(rate)),
    },
    Key {
        name: "delay",
        takes: "duration, or `[forward, backward]`",
        default: Default::Text("as before"),
        doc: "The new delay, for packets that leave after the change.",
        read: |change, at| at.pair(At::duration).map(|delay| change.delay = Some(delay)),
    },
    Key {
        name: "loss",
        takes: "loss, or `[forward, backward]`",
        default: Default::Text("as before"),
        doc: "The new loss. Listed packets are still counted from the beginning of the run, a flow's packets with user data from the change.",
        read: |change, at| at.pair(At::loss).map(|loss| change.loss = Some(loss)),
    },
    Key {
        name: "queue",
        takes: "queue, or `[forward, backward]`",
        default: Default::Text("as before"),
        doc: "The new queue, for packets that arrive after the change; queued packets stay.",
        read: |change, at| at.pair(At::queue).map(|queue| change.queue = Some(queue)),
    },
    Key {
        name: "mark",
        takes: "size or `\"off\"`, or `[forward, backward]`",
        default: Default::Text("as before"),
        doc: "The new queue length from which packets are marked.",
        read: |change, at| at.pair(mark).map(|mark| change.mark = Some(mark)),
    },
    Key {
        name: "jitter",
        takes: "duration, or `[forward, backward]`",
        default: Default::Text("as before"),
        doc: "The new largest additional delay, for packets that leave after the change.",
        read: |change, at| at.pair(At::duration).map(|jitter| change.jitter = Some(jitter)),
    },
    Key {
        name: "mtu",
        takes: "size",
        default: Default::Text("as before"),
        doc: "The new MTU. The link drops larger packets without an ICMP message, so only `mtu_discovery` (RFC 8899) detects the change; packets that IP may fragment pass. If the MTU rises again, probes find it, up to the initial MTU.",
        read: |change, at| at.size32(528..=65_535).map(|mtu| change.mtu = Some(mtu)),
    },
];

fn nothing(at: Duration, link: String) -> Change {
    Change {
        at,
        link,
        up: None,
        rate: None,
        delay: None,
        loss: None,
        queue: None,
        mark: None,
        jitter: None,
        mtu: None,
    }
}

/// Reads a `[[change]]`.
pub(super) fn change(at: &At<'_>) -> Result<Change> {
    let mut change = nothing(Duration::ZERO, String::new());
    fill(&mut change, at, CHANGE_KEYS)?;
    if change == nothing(change.at, change.link.clone()) {
        return Err(at
            .error("this changes nothing")
            .hint("say what changes: `up`, `rate`, `delay`, `loss`, `queue`, `mark`, `jitter` or `mtu`"));
    }
    if change.queue.iter().flatten().any(|queue| matches!(queue, Queue::BandwidthDelay(_))) {
        let error = at.error_below("queue", "only a link's own queue is said in bandwidth-delay products");
        return Err(error.hint("write it as \"50 packets\" or \"75 kB\""));
    }
    Ok(change)
}
