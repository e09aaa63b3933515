//! What a run measures within `measure`: goodput, mean windows, and what radios count.

use anabranch_proto::{Duration, Time};

use crate::engine::Engine;
use crate::medium::wireless::Statistics;
use crate::results::{Measured, MeasuredPath};
use crate::traffic::Sink;
use crate::transport::End;

/// Between two looks at the windows.
const EVERY: Duration = Duration::from_millis(100);

/// What was found so far.
#[derive(Debug)]
pub(super) struct Measurement {
    from: Time,
    until: Time,
    /// By flow.
    flows: Vec<Flow>,
    /// The radios at the beginning and, once it is over, at the end: by channel, then station.
    radios: [Vec<Statistics>; 2],
}

/// A flow within the measurement.
#[derive(Clone, Default, Debug)]
struct Flow {
    /// Bytes read before, and up to its end.
    read: [u64; 2],
    /// Paths: the sum of their windows, and how many looks that are.
    windows: Vec<(String, u64, u64)>,
}

impl Measurement {
    pub(super) fn new([from, until]: [Duration; 2]) -> Self {
        let (from, until) = (Time::ZERO + from, Time::ZERO + until);
        Measurement { from, until, flows: Vec::new(), radios: [Vec::new(), Vec::new()] }
    }

    /// When to look, up to `stop`.
    pub(super) fn moments(&self, stop: Time) -> impl Iterator<Item = Time> + use<> {
        let until = self.until;
        let times = std::iter::successors(Some(self.from), move |last| Some((*last + EVERY).min(until)));
        let mut over = false;
        times.take_while(move |time| *time <= stop && !std::mem::replace(&mut over, *time == until))
    }

    /// Looks at a run that has come to one of the moments.
    pub(super) fn look(&mut self, engine: &Engine<'_, End>) {
        let read = |ends: &[End]| ends.iter().filter_map(End::sink).map(Sink::bytes).sum::<u64>();
        if self.flows.is_empty() {
            self.flows =
                engine.flows().map(|ends| Flow { read: [read(ends); 2], windows: Vec::new() }).collect();
            self.radios[0] = radios(engine);
        }
        for (flow, ends) in self.flows.iter_mut().zip(engine.flows()) {
            flow.read[1] = read(ends);
            let senders = ends.iter().filter(|end| end.sink().is_none());
            for (name, window) in senders.flat_map(End::windows) {
                match flow.windows.iter_mut().find(|(known, ..)| known == name) {
                    Some((_, sum, looks)) => (*sum, *looks) = (*sum + window, *looks + 1),
                    None => flow.windows.push((name.to_owned(), window, 1)),
                }
            }
        }
        if engine.now() == self.until {
            self.radios[1] = radios(engine);
        }
    }

    /// What flow `number` did. A run that ended before delivers nothing more.
    pub(super) fn flow(&self, number: usize) -> Option<Measured> {
        let flow = self.flows.get(number)?;
        let seconds = self.until.since(self.from).as_secs_f64();
        let path = |(name, sum, looks): &(String, u64, u64)| MeasuredPath {
            name: name.clone(),
            mean_cwnd: *sum as f64 / *looks as f64,
        };
        Some(Measured {
            goodput: (flow.read[1] - flow.read[0]) as f64 * 8.0 / seconds,
            paths: flow.windows.iter().map(path).collect(),
        })
    }

    /// What the radios counted, if the run lasted to the end of the measurement.
    pub(super) fn radios(&self) -> Option<Vec<Statistics>> {
        let [before, after] = &self.radios;
        (!after.is_empty())
            .then(|| before.iter().zip(after).map(|(before, after)| after.since(before)).collect())
    }
}

/// What all radios have counted.
pub(super) fn radios(engine: &Engine<'_, End>) -> Vec<Statistics> {
    let of = |channel: &crate::medium::wireless::Channel<_>| {
        (0..channel.stations()).map(|station| channel.statistics(engine.now(), station)).collect::<Vec<_>>()
    };
    engine.channels().iter().flat_map(of).collect()
}
