//! Latencies of messages: from the moment at which the application has a message until the other application has read
//! it.
//!
//! The times at which messages exist follow from the flow and the seed, so the reader can compute them without
//! information from the sender. Messages of a stream are read in the order in which they were sent.

use anabranch_proto::Time;

use super::Pace;
use crate::results::Latency;

/// The latencies of one flow.
#[derive(Debug)]
pub(super) struct Latencies {
    pace: Pace,
    /// The times at which the first messages existed, as far as they were needed.
    there: Vec<Time>,
    /// By stream: messages read.
    read: Vec<u64>,
    /// Nanoseconds, in the order in which messages were read.
    seen: Vec<u64>,
}

impl Latencies {
    pub(super) fn new(pace: Pace, streams: u16) -> Self {
        let read = vec![0; usize::from(streams.max(1))];
        Latencies { pace, there: Vec::new(), read, seen: Vec::new() }
    }

    /// The next message of a stream was read. Messages use the streams in turn.
    pub(super) fn next_of(&mut self, now: Time, stream: u16) {
        let streams = self.read.len() as u64;
        let Some(read) = self.read.get_mut(usize::from(stream)) else { return };
        let number = u64::from(stream) + streams * *read;
        *read += 1;
        self.numbered(now, number);
    }

    /// The message with this number, from 0, was read.
    pub(super) fn numbered(&mut self, now: Time, number: u64) {
        while self.there.len() as u64 <= number {
            self.there.push(self.pace.next_at());
            self.pace.taken(self.pace.size as usize);
        }
        self.seen.push(now.since(self.there[number as usize]).as_nanos() as u64);
    }

    /// Bytes of a stream of whole messages were read, perhaps up to its `end`.
    pub(super) fn up_to(&mut self, now: Time, bytes: u64, end: bool) {
        let size = u64::from(self.pace.size);
        let whole = if end { bytes.div_ceil(size) } else { bytes / size };
        while self.read[0] < whole {
            self.next_of(now, 0);
        }
    }

    pub(super) fn summary(&self) -> Option<Latency> {
        let mut sorted = self.seen.clone();
        sorted.sort_unstable();
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        // The smallest value that at least this fraction of all values does not exceed.
        let quantile = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1];
        let sum: u128 = sorted.iter().map(|nanos| u128::from(*nanos)).sum();
        Some(Latency {
            messages: sorted.len() as u64,
            max: seconds(*sorted.last()?),
            mean: sum as f64 / sorted.len() as f64 / 1e9,
            p50: seconds(quantile(50)),
            p95: seconds(quantile(95)),
            p99: seconds(quantile(99)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Flow, Traffic};
    use crate::tests::flow;

    /// Messages of 100 B, one every millisecond.
    fn latencies(streams: u16) -> Latencies {
        let traffic = Traffic::Constant { rate: 800_000, bytes: None };
        let flow = Flow { traffic, ..flow("f", "s", "r") };
        Latencies::new(Pace::new(&flow, 100, 1), streams)
    }

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        let mut of = latencies(1);
        assert_eq!(of.summary(), None);
        (0..100).for_each(|n| of.next_of(at(n + n + 1), 0));
        let Latency { messages, mean, p50, p95, p99, max } = of.summary().expect("messages");
        assert_eq!((messages, mean), (100, 0.0505));
        assert_eq!([p50, p95, p99, max], [0.050, 0.095, 0.099, 0.100]);
    }

    #[test]
    fn streams_take_messages_in_turn() {
        let mut of = latencies(2);
        // Message 1, the first of stream 1, overtakes message 0; then message 2 follows on stream 0.
        of.next_of(at(5), 1);
        of.next_of(at(7), 0);
        of.next_of(at(9), 0);
        assert_eq!(of.seen, [4_000_000, 7_000_000, 7_000_000]);
    }

    #[test]
    fn a_stream_of_bytes_completes_messages_at_their_last_byte() {
        let mut of = latencies(1);
        of.up_to(at(3), 99, false);
        of.up_to(at(4), 250, false);
        of.up_to(at(6), 250, true);
        assert_eq!(of.seen, [4_000_000, 3_000_000, 4_000_000]);
    }
}
