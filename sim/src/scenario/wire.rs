//! The values of a link that are more than quantities: queues and losses.

use std::time::Duration;

use super::at::{At, Result};
use super::error::did_you_mean;
use super::keys::{Default, Key, fill};
use super::units::{self, LOSS_ADVICE};
use super::{Amount, Codel, Loss, Queue, Red};

pub(super) const RED_KEYS: &[Key<Red>] = &[
    Key {
        name: "limit",
        takes: "packets or size",
        default: Default::Required,
        doc: "The capacity of the queue, including the packet that is being sent.",
        read: |red, at| at.amount().map(|limit| red.limit = limit),
    },
    Key {
        name: "min",
        takes: "packets or size",
        default: Default::Required,
        doc: "Below this average queue length nothing is dropped.",
        read: |red, at| at.amount().map(|min| red.min = min),
    },
    Key {
        name: "max",
        takes: "packets or size",
        default: Default::Required,
        doc: "At this average queue length packets are dropped with `probability`.",
        read: |red, at| at.amount().map(|max| red.max = max),
    },
    Key {
        name: "probability",
        takes: "percentage",
        default: Default::Value("\"10 %\""),
        doc: "The drop probability at `max`.",
        read: |red, at| at.probability().map(|probability| red.probability = probability),
    },
    Key {
        name: "weight",
        takes: "number",
        default: Default::Value("0.002"),
        doc: "The weight of each new sample in the average queue length.",
        read: |red, at| match at.number() {
            Some(weight) if weight > 0.0 && weight <= 1.0 => {
                red.weight = weight;
                Ok(())
            }
            _ => Err(at.error("a weight is a number above 0, at most 1").hint("for example 0.002")),
        },
    },
];

pub(super) const CODEL_KEYS: &[Key<Codel>] = &[
    Key {
        name: "limit",
        takes: "packets or size",
        default: Default::Required,
        doc: "The capacity of the queue, including the packet that is being sent.",
        read: |codel, at| at.amount().map(|limit| codel.limit = limit),
    },
    Key {
        name: "target",
        takes: "duration",
        default: Default::Value("\"5 ms\""),
        doc: "The acceptable queueing delay.",
        read: |codel, at| at.duration().map(|target| codel.target = target),
    },
    Key {
        name: "interval",
        takes: "duration",
        default: Default::Value("\"100 ms\""),
        doc: "If the delay exceeds `target` for this time, a packet is dropped.",
        read: |codel, at| at.duration().map(|interval| codel.interval = interval),
    },
];

const QUEUE_FORMS: &str =
    "write \"50 packets\", \"75 kB\", { red = { limit = …, min = …, max = … } } or { codel = { limit = … } }";

impl At<'_> {
    /// `"50 packets"`, `"75 kB"`, `{ red = { … } }` or `{ codel = { … } }`.
    pub fn queue(&self) -> Result<Queue> {
        if let Some(product) = self.string().ok().and_then(units::bandwidth_delay) {
            return product.map(Queue::BandwidthDelay).map_err(|bad| self.error(bad.message).hint(bad.hint));
        }
        if self.entries().is_err() {
            let queue = match self.amount().map_err(|error| error.hint(QUEUE_FORMS))? {
                Amount::Packets(packets) => Queue::Packets(packets),
                Amount::Bytes(bytes) => Queue::Bytes(bytes),
            };
            return Ok(queue);
        }
        match self.entries()? {
            [only] if only.key == "red" => {
                self.get("red").map_or_else(|| Err(self.wrong("a table")), |at| red(&at))
            }
            [only] if only.key == "codel" => {
                self.get("codel").map_or_else(|| Err(self.wrong("a table")), |at| codel(&at))
            }
            [only] => Err(self.no_such_key(only).hint(QUEUE_FORMS)),
            _ => Err(self.error("a queue is of one kind").hint(QUEUE_FORMS)),
        }
    }

    /// `"1 %"`, or a table of one of the forms that docs/scenario.md lists.
    pub fn loss(&self) -> Result<Loss> {
        let Ok(entries) = self.entries() else {
            return self.parsed("a loss", LOSS_ADVICE, units::loss);
        };
        let Some(first) = entries.first() else {
            return Err(self.error("this says nothing").hint(LOSS_ADVICE));
        };
        let Some(form) = LOSS_FORMS.iter().find(|form| form.contains(&first.key.as_str())) else {
            let keys = LOSS_FORMS.iter().flat_map(|form| form.iter().copied());
            return Err(self.no_such_key(first).hint(did_you_mean(&first.key, keys)));
        };
        if let Some(other) = entries.iter().find(|entry| !form.contains(&entry.key.as_str())) {
            let together = form.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
            return Err(self.no_such_key(other).hint(format!("this loss takes {together}")));
        }
        let value = |key: &str| {
            let missing = || self.error_below(key, "this key is missing").hint(format!("add `{key} = …`"));
            self.get(key).ok_or_else(missing)
        };
        match form {
            ["packets"] => {
                let packets = value("packets")?.ascending()?;
                Ok(if packets.is_empty() { Loss::None } else { Loss::Listed(packets) })
            }
            ["bits"] => value("bits")?.bit_errors(),
            ["every"] => value("every")?.count(1..=u64::from(u32::MAX)).map(Loss::Every),
            ["flow", "data"] => {
                let (flow, numbers) = (value("flow")?.string()?.to_owned(), value("data")?.ascending()?);
                Ok(Loss::Data { flow, numbers })
            }
            _ => Ok(Loss::Gilbert {
                good: value("good")?.probability()?,
                bad: value("bad")?.probability()?,
                to_bad: value("to_bad")?.probability()?,
                to_good: value("to_good")?.probability()?,
            }),
        }
    }

    fn bit_errors(&self) -> Result<Loss> {
        match self.number() {
            Some(0.0) => Ok(Loss::None),
            Some(wrong) if wrong > 0.0 && wrong <= 1.0 => Ok(Loss::Bits(wrong)),
            _ => Err(self
                .error("the probability of a wrong bit is a number from 0 to 1")
                .hint("for example 1e-6")),
        }
    }

    /// Numbers of packets, from 1.
    fn ascending(&self) -> Result<Vec<u64>> {
        let mut packets: Vec<u64> = Vec::new();
        for at in self.array("an array of numbers")? {
            let n = at.count(1..=u64::from(u32::MAX))?;
            if packets.last().is_some_and(|last| *last >= n) {
                return Err(at.error("the lost packets must be listed in ascending order, each once"));
            }
            packets.push(n);
        }
        Ok(packets)
    }
}

/// The keys of each kind of loss.
const LOSS_FORMS: &[&[&str]] =
    &[&["packets"], &["bits"], &["every"], &["good", "bad", "to_bad", "to_good"], &["flow", "data"]];

fn red(at: &At<'_>) -> Result<Queue> {
    let none = Amount::Packets(0);
    let mut red = Red { limit: none, min: none, max: none, probability: 0.1, weight: 0.002 };
    fill(&mut red, at, RED_KEYS)?;
    let kinds = [red.limit, red.min, red.max].map(|amount| matches!(amount, Amount::Bytes(_)));
    if kinds != [kinds[0]; 3] {
        return Err(at.error("`limit`, `min` and `max` are all packets, or all sizes"));
    }
    if red.min.number() >= red.max.number() {
        return Err(at.error_below("max", "must be above `min`"));
    }
    Ok(Queue::Red(red))
}

fn codel(at: &At<'_>) -> Result<Queue> {
    let mut codel = Codel {
        limit: Amount::Packets(0),
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
    };
    fill(&mut codel, at, CODEL_KEYS)?;
    if codel.interval.is_zero() {
        return Err(at.error_below("interval", "must be longer than zero"));
    }
    Ok(Queue::Codel(codel))
}
