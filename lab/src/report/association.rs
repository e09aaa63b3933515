//! What the charts show of an association, or of a connection, beside its paths.

use super::points::Points;
use super::steps::{Steps, value};

/// The record of one association of a flow. With `stripe` a flow has one on each path.
#[derive(Debug)]
pub(super) struct AssociationRecord {
    /// Its path; empty if it has all of the flow.
    pub(super) path: String,
    /// The number of the first piece of data: for SCTP its TSN.
    first: Option<u64>,
    pub(super) acked: Points,
    pub(super) peer_window: Steps<1>,
}

impl AssociationRecord {
    /// `line`: the largest number of points of a line.
    pub(super) fn new(path: &str, line: usize) -> Self {
        AssociationRecord {
            path: path.to_owned(),
            first: None,
            acked: Points::new(line),
            peer_window: Steps::new(line),
        }
    }

    /// The name of one of its lines in a chart: with `stripe` the path stands in front.
    pub(super) fn named(&self, line: &str) -> String {
        if self.path.is_empty() { line.to_owned() } else { format!("{}: {line}", self.path) }
    }

    /// The number of a piece of data, counted from the first one sent.
    #[inline]
    pub(super) fn number(&mut self, number: u64) -> f64 {
        value(distance(number, *self.first.get_or_insert(number)))
    }

    /// The data up to this number is acknowledged.
    #[inline]
    pub(super) fn acknowledged(&mut self, at: u64, cumulative: u64) {
        if let Some(first) = self.first {
            self.acked.push(at, value(distance(cumulative, first)));
        }
    }

    /// How far a piece of data is from the first one; none before any was sent.
    pub(super) fn distance(&self, number: u64) -> Option<u64> {
        self.first.map(|first| distance(number, first))
    }
}

/// TSNs wrap after 2^32.
#[inline(always)]
fn distance(number: u64, first: u64) -> u64 {
    number.checked_sub(first).unwrap_or_else(|| u64::from((number as u32).wrapping_sub(first as u32)))
}
