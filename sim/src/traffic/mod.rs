//! The applications at the ends of a flow: one gives data to a transport, the other reads it.

mod bursts;
mod hurst;
mod latency;

use anabranch_proto::{Message, Reliability, Time};
use bytes::Bytes;

use crate::chance::Sequence;
use crate::results::Latency;
use crate::scenario::{Flow, Sctp, Traffic};

pub(crate) use bursts::Bursts;
pub(crate) use hurst::Plot;
use latency::Latencies;

/// The page of zeros that all simulated user data refers to. Longer messages have a page per flow.
static PAGE: [u8; 1 << 16] = [0; 1 << 16];

/// The user data of a simulated message, if it lies on that page.
pub(crate) fn constant(size: usize) -> Option<&'static [u8]> {
    PAGE.get(..size)
}

/// The sending application over SCTP: when it sends which messages.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) pace: Pace,
    /// One whole message.
    page: Bytes,
    unordered: bool,
    reliability: Reliability,
    immediate: bool,
    streams: u16,
}

impl Source {
    /// The application of `flow` with messages of `size` bytes, in a run with this `seed`.
    pub(crate) fn new(flow: &Flow, sctp: &Sctp, size: u32, seed: u64) -> Self {
        let page = match constant(size as usize) {
            Some(page) => Bytes::from_static(page),
            None => Bytes::from(vec![0; size as usize]),
        };
        Source {
            pace: Pace::new(flow, size, seed),
            page,
            unordered: sctp.unordered,
            reliability: sctp.reliability,
            immediate: sctp.immediate,
            streams: sctp.streams.max(1),
        }
    }

    /// The next message if it is due; see [`Pace::due`].
    pub(crate) fn due(&self, now: Time) -> Option<Message> {
        let size = self.pace.due(now)?;
        Some(Message {
            stream: (self.pace.messages % u64::from(self.streams)) as u16,
            ppid: 0,
            unordered: self.unordered,
            immediate: self.immediate,
            payload: self.page.slice(..size),
            reliability: self.reliability,
        })
    }

    /// How many of the messages that are due together with the next one are equal to it, itself included.
    pub(crate) fn equals(&self) -> u64 {
        if self.streams > 1 { 1 } else { self.pace.whole_due() }
    }
}

/// When an application sends, and how much.
#[derive(Debug)]
pub(crate) struct Pace {
    start: Time,
    /// Bytes in total.
    amount: Option<u64>,
    /// Bit/s of user data; `None`: as fast as the transport accepts it.
    rate: Option<u64>,
    /// Bytes of a whole message.
    size: u32,
    /// Bytes that the transport has accepted.
    given: u64,
    /// Messages that the transport has accepted.
    messages: u64,
    /// Whether the last message was refused because the send buffer is full.
    refused: bool,
    /// Random times instead of even spacing, and the time of the next message.
    bursts: Option<Box<(Bursts, Time)>>,
}

impl Pace {
    /// The pace of `flow` in messages of `size` bytes. Random times are drawn from this `seed`.
    pub(crate) fn new(flow: &Flow, size: u32, seed: u64) -> Self {
        let start = Time::ZERO + flow.start;
        let chance = |what: &str| Sequence::new(seed, &format!("flow/{}/{what}", flow.name));
        let spacing = |rate: u64| f64::from(size) * 8e9 / rate as f64;
        let (rate, bursts) = match flow.traffic {
            Traffic::Bulk(_) => (None, None),
            Traffic::Constant { rate, .. } => (Some(rate), None),
            Traffic::Poisson { rate, .. } => {
                (Some(rate), Some(Bursts::poisson(start, spacing(rate), chance("poisson"))))
            }
            Traffic::Bursts { rate, times, .. } => {
                (Some(rate), Some(Bursts::new(start, times, spacing(rate), chance("bursts"))))
            }
        };
        let bursts = bursts.map(|mut bursts| {
            let first = bursts.next();
            Box::new((bursts, first))
        });
        let amount = flow.traffic.amount();
        Pace { start, amount, rate, size, given: 0, messages: 0, refused: false, bursts }
    }

    /// When it begins.
    pub(crate) fn start(&self) -> Time {
        self.start
    }

    /// The size of the next message if it is due. Messages are due every size / rate, counted from the start. A
    /// refused message waits, and all later messages wait behind it: the application drops none.
    pub(crate) fn due(&self, now: Time) -> Option<usize> {
        if self.exhausted() || self.refused || now < self.next_at() {
            return None;
        }
        let left = self.amount.map_or(u64::MAX, |amount| amount - self.given);
        Some(left.min(u64::from(self.size)) as usize)
    }

    /// When the application acts next without an event.
    pub(crate) fn wakes(&self) -> Option<Time> {
        (!self.exhausted() && !self.refused).then(|| self.next_at())
    }

    /// How many messages of the usual size are due together with the next one; 1 if that is smaller, or if each has its
    /// own time.
    fn whole_due(&self) -> u64 {
        if self.rate.is_some() || self.bursts.is_some() {
            return 1;
        }
        let left = self.amount.map_or(u64::MAX, |amount| amount - self.given);
        (left / u64::from(self.size)).max(1)
    }

    /// The message that was due was accepted.
    pub(crate) fn taken(&mut self, bytes: usize) {
        self.taken_copies(bytes, 1);
    }

    /// So many messages were accepted, each of so many bytes. Several only if they were due together.
    pub(crate) fn taken_copies(&mut self, bytes: usize, count: u64) {
        self.given += count * bytes as u64;
        self.messages += count;
        if count == 0 {
            return;
        }
        if let Some((bursts, next)) = self.bursts.as_deref_mut() {
            *next = bursts.next();
        }
    }

    /// The message that was due was refused for lack of room, or there is room again.
    pub(crate) fn set_refused(&mut self, refused: bool) {
        self.refused = refused;
    }

    /// Whether everything has been given.
    pub(crate) fn exhausted(&self) -> bool {
        self.amount.is_some_and(|amount| self.given >= amount)
    }

    /// When the next message is due.
    fn next_at(&self) -> Time {
        if let Some((_, next)) = self.bursts.as_deref() {
            return *next;
        }
        match self.rate {
            None => self.start,
            Some(rate) => {
                let bits = u128::from(self.messages) * u128::from(self.size) * 8;
                after(self.start, bits, rate)
            }
        }
    }
}

/// The reading application.
#[derive(Debug)]
pub(crate) struct Sink {
    /// Bit/s; `None`: at once.
    rate: Option<u64>,
    /// Bytes in all.
    amount: Option<u64>,
    /// The number of messages that it will still read; `u64::MAX`: all.
    left: u64,
    /// Whether there may be something to read.
    readable: bool,
    /// The earliest time of the next read.
    ready: Time,
    /// Bytes read so far.
    read: u64,
    /// The time of the first read.
    first: Option<Time>,
    completed: Option<Time>,
    latencies: Option<Box<Latencies>>,
}

impl Sink {
    /// The application of `flow`.
    pub(crate) fn new(flow: &Flow) -> Self {
        let amount = flow.traffic.amount();
        Sink {
            rate: flow.read_rate,
            amount,
            left: flow.sctp().and_then(|sctp| sctp.stop_reading_after).unwrap_or(u64::MAX),
            readable: false,
            ready: Time::ZERO,
            read: 0,
            first: None,
            completed: None,
            latencies: None,
        }
    }

    /// The same application with measured latencies. `pace` is that of the sending application, whose messages use
    /// `streams` streams in turn.
    pub(crate) fn timing(self, pace: Pace, streams: u16) -> Self {
        let timed = pace.rate.is_some();
        Sink { latencies: timed.then(|| Box::new(Latencies::new(pace, streams))), ..self }
    }

    /// Whether it reads everything at once and asks of it nothing but the number of bytes.
    pub(crate) fn only_counts(&self) -> bool {
        self.rate.is_none() && self.latencies.is_none() && self.left == u64::MAX
    }

    /// The next message of a stream is read.
    pub(crate) fn completes(&mut self, now: Time, stream: u16) {
        if let Some(latencies) = &mut self.latencies {
            latencies.next_of(now, stream);
        }
    }

    /// The message of this number, counted from 0, is read.
    pub(crate) fn completes_number(&mut self, now: Time, number: u64) {
        if let Some(latencies) = &mut self.latencies {
            latencies.numbered(now, number);
        }
    }

    /// All messages within the bytes read so far are read.
    pub(crate) fn completes_bytes(&mut self, now: Time) {
        if let Some(latencies) = &mut self.latencies {
            latencies.up_to(now, self.read, self.amount.is_some_and(|amount| self.read >= amount));
        }
    }

    /// The latencies, if they are measured and a message was read.
    pub(crate) fn latency(&self) -> Option<Latency> {
        self.latencies.as_ref()?.summary()
    }

    /// Whether it reads now.
    pub(crate) fn due(&self, now: Time) -> bool {
        self.readable && now >= self.ready
    }

    /// When it reads without an event.
    pub(crate) fn wakes(&self) -> Option<Time> {
        self.readable.then_some(self.ready)
    }

    /// There is something to read, or nothing any more. An application that has stopped reading ignores this.
    pub(crate) fn set_readable(&mut self, readable: bool) {
        self.readable = readable && self.left > 0;
    }

    /// Whether there is something that it has not read.
    pub(crate) fn readable(&self) -> bool {
        self.readable
    }

    /// It has read the end of a message.
    pub(crate) fn took_message(&mut self) {
        self.left -= 1;
    }

    /// It has read so many bytes. With a given rate, it reads again after the time that these bytes take at the rate.
    #[inline(always)]
    pub(crate) fn took(&mut self, now: Time, bytes: usize) {
        self.read += bytes as u64;
        self.first.get_or_insert(now);
        if let Some(rate) = self.rate {
            self.ready = after(self.ready.max(now), bytes as u128 * 8, rate);
        }
        if self.amount.is_some_and(|amount| self.read >= amount) && self.completed.is_none() {
            self.completed = Some(now);
        }
    }

    /// Bytes read.
    pub(crate) fn bytes(&self) -> u64 {
        self.read
    }

    /// When it read the first user data.
    pub(crate) fn first(&self) -> Option<Time> {
        self.first
    }

    /// When it read the last byte.
    pub(crate) fn completed(&self) -> Option<Time> {
        self.completed
    }
}

/// The end of `bits` that begin at `start`, at `rate` bit/s.
fn after(start: Time, bits: u128, rate: u64) -> Time {
    let nanos = bits * 1_000_000_000 / u128::from(rate);
    Time::from_nanos(start.as_nanos().saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::flow;

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    fn take(source: &mut Source, now: Time) -> Option<(u16, usize)> {
        let message = source.due(now)?;
        source.pace.taken(message.payload.len());
        Some((message.stream, message.payload.len()))
    }

    #[test]
    fn bulk_gives_all_at_once_on_the_streams_in_turn() {
        let flow = Flow { traffic: Traffic::Bulk(Some(2500)), ..flow("f", "s", "r") };
        let mut source = Source::new(&flow, &Sctp { streams: 2, ..Sctp::default() }, 1000, 1);
        let given: Vec<_> = std::iter::from_fn(|| take(&mut source, at(0))).collect();
        assert_eq!(given, [(0, 1000), (1, 1000), (0, 500)]);
        assert!(source.pace.exhausted());
        assert_eq!(source.pace.wakes(), None);
    }

    #[test]
    fn constant_rate_keeps_its_times_while_refused() {
        let traffic = Traffic::Constant { rate: 8_000_000, bytes: None };
        let start = anabranch_proto::Duration::from_micros(10);
        let flow = Flow { traffic, start, ..flow("f", "s", "r") };
        let mut source = Source::new(&flow, &Sctp::default(), 100, 1);
        assert_eq!(take(&mut source, at(9)), None);
        assert_eq!(source.pace.wakes(), Some(at(10)));
        assert_eq!(take(&mut source, at(10)), Some((0, 100)));
        assert_eq!(source.pace.wakes(), Some(at(110)));
        source.pace.set_refused(true);
        assert_eq!((take(&mut source, at(110)), source.pace.wakes()), (None, None));
        source.pace.set_refused(false);
        let late: Vec<_> = std::iter::from_fn(|| take(&mut source, at(350))).collect();
        assert_eq!(late.len(), 3);
        assert_eq!(source.pace.wakes(), Some(at(410)));
    }

    #[test]
    fn messages_longer_than_the_page() {
        let flow = Flow { traffic: Traffic::Bulk(None), ..flow("f", "s", "r") };
        let source = Source::new(&flow, &Sctp::default(), 100_000, 1);
        assert_eq!(source.due(at(0)).unwrap().payload.len(), 100_000);
    }

    #[test]
    fn a_paced_reader_reads_at_its_rate() {
        let paced =
            Flow { traffic: Traffic::Bulk(Some(300)), read_rate: Some(8_000_000), ..flow("f", "s", "r") };
        let mut sink = Sink::new(&paced);
        sink.set_readable(true);
        assert!(sink.due(at(5)));
        sink.took(at(5), 100);
        assert!(!sink.due(at(104)));
        assert_eq!(sink.wakes(), Some(at(105)));
        sink.took(at(105), 100);
        sink.took(at(500), 100);
        assert_eq!((sink.bytes(), sink.completed()), (300, Some(at(500))));
        assert_eq!(sink.wakes(), Some(at(600)));
    }
}
