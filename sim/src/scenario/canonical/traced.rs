//! Recorded rates in canonical TOML.

use toml::{Table, Value};

use super::{percent, put, rate, time};
use crate::scenario::{Interpolation, Offset, Sample, Trace, TracedRate};

/// A recorded rate, by what was recorded: the name of its file says nothing.
pub(super) fn traced(given: &TracedRate) -> Value {
    let mut table = Table::new();
    match &*given.trace {
        Trace::Opportunities(times) => {
            let times: Vec<i64> = times.iter().map(|time| i64::from(*time)).collect();
            put(&mut table, "opportunities", times);
        }
        Trace::Samples { rows, interpolation } => {
            let own = || "link".to_owned();
            let row = |row: &Sample| {
                let (delay, loss) = (row.delay.map_or_else(own, time), row.loss.map_or_else(own, percent));
                Value::from(vec![time(row.time), rate(row.rate), delay, loss])
            };
            put(&mut table, "samples", rows.iter().map(row).collect::<Vec<_>>());
            let name = if *interpolation == Interpolation::Linear { "linear" } else { "step" };
            put(&mut table, "interpolation", name);
        }
    }
    match given.offset {
        Offset::Fixed(offset) => put(&mut table, "offset", time(offset)),
        Offset::Random => put(&mut table, "offset", "random"),
    }
    table.into()
}
