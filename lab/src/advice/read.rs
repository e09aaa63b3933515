//! The question: paths, traffic and a budget, read strictly.

use std::time::Duration;

use anabranch_sim::scenario::at::{At, Result};
use anabranch_sim::scenario::keys::{Default as Fallback, Key};
use anabranch_sim::scenario::{Document, ScenarioError};

use crate::claims::fill;

/// What `anabranch advise failover` is asked.
#[derive(Clone, PartialEq, Debug)]
pub struct Task {
    /// The paths; the first is the primary, whose outages are to be survived.
    pub paths: Vec<PathTask>,
    /// What is sent.
    pub traffic: Traffic,
    /// What must hold.
    pub budget: Budget,
}

/// One path.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct PathTask {
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
    /// How long an outage lasts.
    pub outage: Duration,
}

/// What is sent.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Traffic {
    /// User data, bit/s; `None`: as much as the path carries.
    pub rate: Option<u64>,
    /// User data in a message, bytes.
    pub message_size: u64,
}

/// What must hold.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Budget {
    /// New data is to take another path within this time of an outage.
    pub new_data: Duration,
    /// In this share of outages, 0 to 1.
    pub outages: f64,
    /// At most so many failovers without an outage.
    pub false_failovers: f64,
    /// In this time.
    pub per: Duration,
}

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

/// The keys at the top.
pub(super) const KEYS: &[Key<Task>] = &[
    Key {
        name: "path",
        takes: "tables",
        default: Fallback::Required,
        doc: "The paths, each a `[[path]]`, at least two. The first is the primary.",
        read: |task, at| {
            for table in at.tables()? {
                let mut path = PathTask { outage: 10 * SECOND, ..PathTask::default() };
                fill(&mut path, &table, PATH_KEYS)?;
                task.paths.push(path);
            }
            let again = |(i, path): (usize, &PathTask)| task.paths[..i].iter().any(|p| p.name == path.name);
            match task.paths.len() {
                0 | 1 => Err(at
                    .error("a failover needs at least two paths")
                    .hint("add another `[[path]]`".to_owned())),
                _ if task.paths.iter().enumerate().any(again) => {
                    Err(at.error("two paths have the same name"))
                }
                _ => Ok(()),
            }
        },
    },
    Key {
        name: "traffic",
        takes: "table",
        default: Fallback::Text("bulk"),
        doc: "What is sent: `[traffic]`.",
        read: |task, at| fill(&mut task.traffic, at, TRAFFIC_KEYS),
    },
    Key {
        name: "budget",
        takes: "table",
        default: Fallback::Required,
        doc: "What must hold: `[budget]`.",
        read: |task, at| fill(&mut task.budget, at, BUDGET_KEYS),
    },
];

/// The keys of a `[[path]]`.
pub(super) const PATH_KEYS: &[Key<PathTask>] = path_keys![
    Key {
        name: "loss",
        takes: "share",
        default: Fallback::Value("\"0 %\""),
        doc: "The share of packets that it loses, in each direction.",
        read: |path, at| super::keys::loss(at).map(|loss| path.loss = loss),
    },
    Key {
        name: "outage",
        takes: "duration",
        default: Fallback::Value("\"10 s\""),
        doc: "How long an outage of it lasts.",
        read: |path, at| positive(at).map(|outage| path.outage = outage),
    },
];

/// The keys of `[traffic]`.
pub(super) const TRAFFIC_KEYS: &[Key<Traffic>] = &[
    Key {
        name: "rate",
        takes: "rate",
        default: Fallback::Text("bulk: as much as the path carries"),
        doc: "User data per second, in messages that are evenly spaced.",
        read: |traffic, at| at.rate().map(|rate| traffic.rate = Some(rate)),
    },
    Key {
        name: "message_size",
        takes: "size",
        default: Fallback::Value("\"1452 B\""),
        doc: "User data in a message.",
        read: |traffic, at| at.size(1..=65_536).map(|size| traffic.message_size = size),
    },
];

/// The keys of `[budget]`.
pub(super) const BUDGET_KEYS: &[Key<Budget>] = &[
    Key {
        name: "new_data",
        takes: "duration",
        default: Fallback::Required,
        doc: "New data takes another path within this time, an hour at most.",
        read: |budget, at| at_most_an_hour(at).map(|time| budget.new_data = time),
    },
    Key {
        name: "outages",
        takes: "share",
        default: Fallback::Value("\"99 %\""),
        doc: "In this share of outages, from 50 % to 99.9 %.",
        read: |budget, at| match at.probability()? {
            share if (0.5..=0.999).contains(&share) => {
                budget.outages = share;
                Ok(())
            }
            _ => Err(at.error("expected a share from 50 % to 99.9 %")),
        },
    },
    Key {
        name: "false_failovers",
        takes: "number",
        default: Fallback::Value("1"),
        doc: "At most so many failovers without an outage, on average.",
        read: |budget, at| match at.number() {
            Some(number) if number > 0.0 && number.is_finite() => {
                budget.false_failovers = number;
                Ok(())
            }
            _ => Err(at.error("expected a number above zero")),
        },
    },
    Key {
        name: "per",
        takes: "duration",
        default: Fallback::Value("\"2592000 s\""),
        doc: "In this time; the default is a month of 30 days.",
        read: |budget, at| positive(at).map(|time| budget.per = time),
    },
];

fn positive(at: &At<'_>) -> Result<Duration> {
    match at.duration()? {
        Duration::ZERO => Err(at.error("expected a duration above zero")),
        time => Ok(time),
    }
}

/// Each outage is simulated for twice this time.
fn at_most_an_hour(at: &At<'_>) -> Result<Duration> {
    match positive(at)? {
        time if time > Duration::from_secs(3600) => Err(at.error("expected an hour at most")),
        time => Ok(time),
    }
}

impl Task {
    /// Reads a task; an error names file, line and key.
    pub fn read(file: &str, text: &str) -> std::result::Result<Task, ScenarioError> {
        let document = Document::parse(file, text)?;
        let mut task = Task {
            paths: Vec::new(),
            traffic: Traffic { rate: None, message_size: 1452 },
            budget: Budget { new_data: SECOND, outages: 0.99, false_failovers: 1.0, per: 30 * DAY },
        };
        let root = At::root(&document);
        fill(&mut task, &root, KEYS)?;
        let least = task.round_trip();
        if task.budget.new_data <= least {
            let at = root.get("budget").and_then(|budget| budget.get("new_data"));
            let message = format!("no failover is faster than a round trip, {} ms here", least.as_millis());
            return Err(at.map_or_else(|| root.error(message.clone()), |at| at.error(message.clone())));
        }
        Ok(task)
    }

    /// The longest round trip of a message and its SACK on any path, without queues.
    pub fn round_trip(&self) -> Duration {
        let bits = (self.traffic.message_size.min(1452) + 48 + 48) * 8;
        let one = |path: &PathTask| {
            2 * (path.delay + path.jitter) + Duration::from_secs_f64(bits as f64 / path.rate as f64)
        };
        self.paths.iter().map(one).max().unwrap_or_default()
    }

    /// The time between two messages; zero if data always waits.
    pub fn gap(&self) -> Duration {
        let rate = self.traffic.rate.filter(|rate| *rate > 0);
        rate.map_or(Duration::ZERO, |rate| {
            Duration::from_secs_f64(self.traffic.message_size as f64 * 8.0 / rate as f64)
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two links of an operator, and a budget that can be met.
    pub(in crate::advice) const SIGNALLING: &str = include_str!("../../../scenarios/advice/signalling.toml");

    fn refused(text: &str) -> String {
        Task::read("task.toml", text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_task_is_read_with_its_defaults() {
        let task = Task::read("task.toml", SIGNALLING).unwrap();
        assert_eq!(task.paths.len(), 2);
        assert_eq!(task.budget.new_data, Duration::from_millis(800));
        assert_eq!(task.budget.per, 30 * DAY);
        assert_eq!(task.gap(), Duration::from_millis(40));
    }

    #[test]
    fn an_error_names_line_and_key() {
        let error = refused(&SIGNALLING.replace("new_data", "newdata"));
        assert!(error.contains("newdata") && error.contains("new_data"), "{error}");
        let error = refused(&SIGNALLING.replace("new_data = \"800 ms\"", "new_data = \"3601 s\""));
        assert!(error.contains("an hour at most"), "{error}");
        let error = refused(&SIGNALLING.replace("800 ms", "10 ms"));
        assert!(error.contains("round trip"), "{error}");
        let error = refused(&SIGNALLING.replace("0.01 %", "100 %"));
        assert!(error.contains("at most 50 %") && error.contains("path.west.loss"), "{error}");
        assert!(refused("[budget]\nnew_data = '1 s'\n").contains("path"));
    }
}
