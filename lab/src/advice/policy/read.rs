//! The question: a pair of paths and a transfer, read strictly.

use std::time::Duration;

use anabranch_proto::Policies;
use anabranch_sim::scenario::at::{At, Result};
use anabranch_sim::scenario::keys::{Default as Fallback, Key};
use anabranch_sim::scenario::{Document, ScenarioError};

use crate::claims::fill;

/// What `anabranch advise policy` is asked.
#[derive(Clone, PartialEq, Debug)]
pub struct PairTask {
    /// The two paths; the first is the primary.
    pub paths: Vec<PairPath>,
    /// What is sent over them.
    pub transfer: Transfer,
}

/// One path.
#[derive(Clone, PartialEq, Debug)]
pub struct PairPath {
    /// Its name.
    pub name: String,
    /// Bit/s.
    pub rate: u64,
    /// From one end to the other.
    pub delay: Duration,
    /// How much later than that a packet arrives at most.
    pub jitter: Duration,
    /// The share of packets lost, 0 to 1, in each direction.
    pub loss: f64,
    /// Packets in the queue before it, the packet being sent included.
    pub queue: u32,
}

/// What is sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Transfer {
    /// Bytes.
    pub send: u64,
    /// The retransmission policies that are compared.
    pub policies: Vec<String>,
    /// The receive buffers that are compared, bytes, ascending.
    pub receive_buffers: Vec<u64>,
    /// Seeds of each comparison.
    pub seeds: u64,
}

/// The keys at the top.
pub(in crate::advice) const KEYS: &[Key<PairTask>] = &[
    Key {
        name: "path",
        takes: "tables",
        default: Fallback::Required,
        doc: "The paths, each a `[[path]]`: two. The first is the primary.",
        read: |task, at| {
            for table in at.tables()? {
                let mut path = PairPath {
                    name: String::new(),
                    rate: 0,
                    delay: Duration::ZERO,
                    jitter: Duration::ZERO,
                    loss: 0.0,
                    queue: 50,
                };
                fill(&mut path, &table, PATH_KEYS)?;
                task.paths.push(path);
            }
            match task.paths.as_slice() {
                [first, second] if first.name == second.name => Err(at
                    .error("two paths have the same name")
                    .hint("give each a name of its own".to_owned())),
                [_, _] => Ok(()),
                paths => Err(at
                    .error(format!("expected two paths, found {}", paths.len()))
                    .hint("the first `[[path]]` is the primary, the second the alternate".to_owned())),
            }
        },
    },
    Key {
        name: "transfer",
        takes: "table",
        default: Fallback::Text("as its keys say"),
        doc: "What is sent: `[transfer]`.",
        read: |task, at| fill(&mut task.transfer, at, TRANSFER_KEYS),
    },
];

/// The keys of a `[[path]]`.
pub(in crate::advice) const PATH_KEYS: &[Key<PairPath>] = path_keys![
    Key {
        name: "loss",
        takes: "share",
        default: Fallback::Value("\"0 %\""),
        doc: "The share of packets that it loses besides those that its queue drops, in each direction.",
        read: |path, at| super::super::keys::loss(at).map(|loss| path.loss = loss),
    },
    Key {
        name: "queue",
        takes: "count",
        default: Fallback::Value("50"),
        doc: "Packets that the queue before it holds, the packet being sent included.",
        read: |path, at| at.count(1..=100_000_u32).map(|queue| path.queue = queue),
    },
];

/// The keys of `[transfer]`.
pub(in crate::advice) const TRANSFER_KEYS: &[Key<Transfer>] = &[
    Key {
        name: "send",
        takes: "size",
        default: Fallback::Value("\"10 MB\""),
        doc: "User data.",
        read: |transfer, at| at.size(10_000..=1_000_000_000).map(|send| transfer.send = send),
    },
    Key {
        name: "policies",
        takes: "array of policies",
        default: Fallback::Value("[\"same\", \"alternate\", \"timeout-alternate\"]"),
        doc: "The policies of retransmissions that are compared, two at least: the first is advised where several are equally fast.",
        read: |transfer, at| {
            let known = Policies::default();
            let one = |at: &At<'_>| {
                let name = at.string()?;
                let mut names = known.route_names();
                match names.any(|known| known == name) {
                    true => Ok(name.to_owned()),
                    false => Err(at.unknown("policy", name, known.route_names().collect::<Vec<_>>())),
                }
            };
            transfer.policies = distinct(at, "policies", one)?;
            Ok(())
        },
    },
    Key {
        name: "receive_buffers",
        takes: "array of sizes",
        default: Fallback::Text("64 kB to 4 MB, each twice the one before"),
        doc: "The receive buffers that are compared, two at least.",
        read: |transfer, at| {
            transfer.receive_buffers = distinct(at, "sizes", |at| at.size(4_500..=1 << 30))?;
            transfer.receive_buffers.sort_unstable();
            Ok(())
        },
    },
    Key {
        name: "seeds",
        takes: "count",
        default: Fallback::Value("3"),
        doc: "Runs of each combination, each with a seed of its own. Without losses and jitter all of them are the same, and one is made. With them, the advised receive buffer gets 30 at least, and 120 if these do not decide which policy is faster.",
        read: |transfer, at| at.count(1..=1_000_u64).map(|seeds| transfer.seeds = seeds),
    },
];

/// An array of two values at least, none of them twice.
fn distinct<T: PartialEq>(at: &At<'_>, what: &str, one: impl Fn(&At<'_>) -> Result<T>) -> Result<Vec<T>> {
    let mut values = Vec::new();
    for item in at.array(&format!("an array of {what}"))? {
        let value = one(&item)?;
        if values.contains(&value) {
            return Err(item.error("this is here twice").hint("leave one of them out".to_owned()));
        }
        values.push(value);
    }
    match values.len() {
        0 | 1 => Err(at.error(format!("there is nothing to compare: expected two {what} at least"))),
        _ => Ok(values),
    }
}

impl PairTask {
    /// Reads a task; an error names file, line and key.
    pub fn read(file: &str, text: &str) -> std::result::Result<PairTask, ScenarioError> {
        let document = Document::parse(file, text)?;
        let mut task = PairTask {
            paths: Vec::new(),
            transfer: Transfer {
                send: 10_000_000,
                policies: ["same", "alternate", "timeout-alternate"].map(str::to_owned).to_vec(),
                receive_buffers: (0..7).map(|n| 64_000 << n).collect(),
                seeds: 3,
            },
        };
        fill(&mut task, &At::root(&document), KEYS)?;
        Ok(task)
    }

    /// Whether runs with other seeds can differ.
    pub fn has_chance(&self) -> bool {
        self.paths.iter().any(|path| path.loss > 0.0 || !path.jitter.is_zero())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The case study of the paper in `papers/receive-buffer-blocking`, in short.
    pub(in crate::advice) const PAIR: &str = include_str!("../../../../scenarios/advice/pair.toml");

    fn refused(text: &str) -> String {
        PairTask::read("pair.toml", text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_pair_is_read_with_its_defaults() {
        let task = PairTask::read("pair.toml", PAIR).unwrap();
        assert_eq!(task.paths.len(), 2);
        assert_eq!(task.transfer.policies.len(), 3);
        assert_eq!(task.transfer.receive_buffers.last(), Some(&4_000_000));
        assert!(!task.has_chance());
    }

    #[test]
    fn an_error_names_what_is_wrong_and_the_fix() {
        let with = |transfer: &str| {
            PAIR.replace(
                "send = \"10 MB\"\nreceive_buffers = [\"512 kB\", \"1 MB\", \"2 MB\", \"4 MB\"]",
                transfer,
            )
        };
        assert!(refused(&with("policies = ['same', 'alternat']")).contains("alternate"));
        assert!(refused(&with("policies = ['same', 'same']")).contains("twice"));
        assert!(refused(&with("receive_buffers = ['1 MB']")).contains("two sizes"));
        assert!(refused(&PAIR.replace("delay", "dealy")).contains("delay"));
        assert!(refused("[[path]]\nname = 'a'\nrate = '1 Mbit/s'\ndelay = '1 ms'\n").contains("two paths"));
    }
}
