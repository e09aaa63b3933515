//! A link direction whose rate follows a recorded trace.

use std::hint::cold_path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_proto::Time;

use crate::scenario::{Interpolation, OPPORTUNITY, Sample, Trace};

/// Between two samples linear values become steps of this length.
const STEP: u64 = 10_000_000;

const MILLISECOND: u64 = 1_000_000;

/// What begins later is never sent. A time and a period together do not overflow up to this time.
const LATEST: u64 = u64::MAX / 2;

/// When packets leave a link direction whose rate was recorded.
#[derive(Debug)]
pub(crate) struct Traced {
    /// Nanoseconds of the trace at which the run begins.
    offset: u64,
    /// Nanoseconds.
    period: u64,
    service: Service,
    /// The loss that holds now, if the trace has losses.
    loss: Option<f64>,
}

#[derive(Debug)]
enum Service {
    Opportunities {
        trace: Arc<Trace>,
        /// The opportunity in use, counted on over the repetitions, and what is left of its bytes.
        next: u64,
        left: u32,
    },
    Segments {
        segments: Vec<Segment>,
        /// Bits in a period, times 10^9. At least one bit.
        carried: u128,
    },
}

/// From its time to that of the next, values do not change.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Segment {
    /// Nanoseconds since the beginning of the trace.
    from: u64,
    rate: u64,
    delay: Option<u64>,
    loss: Option<f64>,
}

impl Traced {
    pub(crate) fn new(trace: &Arc<Trace>, offset: Duration) -> Self {
        let period = trace.period().as_nanos() as u64;
        let offset = (offset.as_nanos() % u128::from(period.max(1))) as u64;
        let service = match &**trace {
            Trace::Opportunities(_) => {
                Service::Opportunities { trace: trace.clone(), next: 0, left: OPPORTUNITY }
            }
            Trace::Samples { rows, interpolation } => Service::Segments {
                segments: segments(rows, *interpolation).map(|(segment, _)| segment).collect(),
                carried: carried(rows, *interpolation),
            },
        };
        let mut traced = Traced { offset, period, service, loss: None };
        traced.skip_to(Time::ZERO);
        traced
    }

    /// When the last bit of `size` bytes leaves, the first of which may leave at `start`. Asked in order of time.
    pub(crate) fn departure(&mut self, start: Time, size: u32) -> Time {
        self.skip_to(start);
        let departure = match &mut self.service {
            Service::Opportunities { trace, next, left } => {
                let Trace::Opportunities(times) = &**trace else { return start };
                // Bytes that need more opportunities than this one, and how many they need.
                let beyond = size.saturating_sub(*left);
                let more = beyond.div_ceil(OPPORTUNITY);
                let used = if more == 0 { size } else { beyond - (more - 1) * OPPORTUNITY };
                *left = if more == 0 { *left - used } else { OPPORTUNITY - used };
                *next += u64::from(more);
                let departure = opportunity(times, self.period, *next);
                if *left == 0 {
                    (*next, *left) = (*next + 1, OPPORTUNITY);
                }
                departure
            }
            Service::Segments { segments, carried } => {
                let start = start.as_nanos().saturating_add(self.offset);
                through(segments, (self.period, *carried), start, size)
            }
        };
        Time::from_nanos(departure - self.offset)
    }

    /// The packets that were to leave later are gone, so that other packets can have their opportunities.
    pub(crate) fn free(&mut self) {
        if let Service::Opportunities { next, left, .. } = &mut self.service {
            (*next, *left) = (0, OPPORTUNITY);
        }
    }

    /// What cannot be used before `start` any more is lost.
    fn skip_to(&mut self, start: Time) {
        let Service::Opportunities { trace, next, left } = &mut self.service else { return };
        let Trace::Opportunities(times) = &**trace else { return };
        let start = start.as_nanos().saturating_add(self.offset);
        if opportunity(times, self.period, *next) < start {
            let within = (start % self.period).div_ceil(MILLISECOND);
            let place = times.partition_point(|time| u64::from(*time) < within) as u64;
            (*next, *left) = (start / self.period * times.len() as u64 + place, OPPORTUNITY);
        }
    }

    /// The propagation delay of a packet that leaves now, if the trace has delays.
    pub(crate) fn delay(&self, at: Time) -> Option<u64> {
        self.segment(at)?.delay
    }

    /// The probability of loss from now on, if it has changed. A link whose trace has losses has none of its own.
    pub(crate) fn changed_loss(&mut self, at: Time) -> Option<f64> {
        let now = self.segment(at)?.loss;
        let changed = now != self.loss;
        self.loss = now;
        changed.then_some(now.unwrap_or(0.0))
    }

    /// The mean rate between two moments, bit/s.
    pub(crate) fn mean_rate(&self, from: Time, to: Time) -> f64 {
        let (from, to) = (from.as_nanos() + self.offset, to.as_nanos() + self.offset);
        let bits = match &self.service {
            Service::Opportunities { trace, .. } => {
                let Trace::Opportunities(times) = &**trace else { return 0.0 };
                let until = |at: u64| {
                    let within = (at % self.period).div_ceil(MILLISECOND);
                    let place = times.partition_point(|time| u64::from(*time) < within);
                    at / self.period * times.len() as u64 + place as u64
                };
                (until(to) - until(from)) as f64 * f64::from(OPPORTUNITY) * 8.0
            }
            Service::Segments { segments, .. } => {
                // Whole repetitions are counted apart, so that the result does not depend on how many passed before.
                let part = |at: u64| bits(segments, self.period, at % self.period);
                let repetitions = to / self.period - from / self.period;
                repetitions as f64 * bits(segments, self.period, self.period) + (part(to) - part(from))
            }
        };
        bits / ((to - from) as f64 / 1e9)
    }

    fn segment(&self, at: Time) -> Option<&Segment> {
        let Service::Segments { segments, .. } = &self.service else { return None };
        let within = at.as_nanos().saturating_add(self.offset) % self.period;
        segments.get(segments.partition_point(|segment| segment.from <= within) - 1)
    }
}

/// When opportunity `number`, counted on over the repetitions, is.
fn opportunity(times: &[u32], period: u64, number: u64) -> u64 {
    let all = times.len() as u64;
    let within = u64::from(times[(number % all) as usize]) * MILLISECOND;
    (number / all).saturating_mul(period).saturating_add(within)
}

/// Bits from the beginning of the trace to `until`.
fn bits(segments: &[Segment], period: u64, until: u64) -> f64 {
    let ends = segments.iter().skip(1).map(|segment| segment.from).chain([period]);
    let part = |(segment, end): (&Segment, u64)| {
        segment.rate as f64 * (end.min(until).saturating_sub(segment.from) as f64 / 1e9)
    };
    segments.iter().zip(ends).map(part).sum()
}

/// When the last bit of `size` bytes leaves that begin at `start`. `period`: its length, and the bits in it times 10^9.
fn through(segments: &[Segment], period: (u64, u128), start: u64, size: u32) -> u64 {
    let (period, carried) = period;
    let (mut now, mut need) = (start, u128::from(size) * 8_000_000_000);
    if need > carried {
        cold_path();
        // The packet takes more than a period. What whole periods carry is counted at once.
        let whole = (need - 1) / carried;
        need -= whole * carried;
        now = now.saturating_add(period.saturating_mul(whole as u64));
    }
    if now > LATEST {
        cold_path();
        return u64::MAX;
    }
    let mut place = segments.partition_point(|segment| segment.from <= now % period) - 1;
    loop {
        let end = segments.get(place + 1).map_or(period, |next| next.from);
        let length = end - now % period;
        let rate = u128::from(segments[place].rate);
        if rate > 0 && need <= rate * u128::from(length) {
            return now + (need / rate) as u64;
        }
        need -= rate * u128::from(length);
        now += length;
        place = (place + 1) % segments.len();
    }
}

/// Samples as segments, each with its end; the last sample only ends the trace.
fn segments(rows: &[Sample], interpolation: Interpolation) -> impl Iterator<Item = (Segment, u64)> {
    rows.windows(2).flat_map(move |pair| {
        let (from, end) = (pair[0].time.as_nanos() as u64, pair[1].time.as_nanos() as u64);
        let step = step(interpolation, end - from);
        (from..end).step_by(step as usize).map(move |at| {
            let until = (at + step).min(end);
            let middle = (at + until) / 2;
            let part = match interpolation {
                Interpolation::Step => 0.0,
                Interpolation::Linear => (middle - from) as f64 / (end - from) as f64,
            };
            (mixed(&pair[0], &pair[1], part, at), until)
        })
    })
}

/// The length of the segments between two samples that are so far apart.
fn step(interpolation: Interpolation, apart: u64) -> u64 {
    if interpolation == Interpolation::Linear { STEP } else { apart }
}

/// How many segments these samples are.
pub(crate) fn segment_count(rows: &[Sample], interpolation: Interpolation) -> u64 {
    let apart = rows.windows(2).map(|pair| (pair[1].time - pair[0].time).as_nanos() as u64);
    apart.map(|apart| apart.div_ceil(step(interpolation, apart).max(1))).sum()
}

/// The bits that a period carries, times 10^9.
pub(crate) fn carried(rows: &[Sample], interpolation: Interpolation) -> u128 {
    let all = segments(rows, interpolation);
    all.map(|(segment, end)| u128::from(segment.rate) * u128::from(end - segment.from)).sum()
}

/// The values at this part of the way from one sample to the next. Where one of the two leaves a value to the link, the
/// first holds.
fn mixed(before: &Sample, after: &Sample, part: f64, from: u64) -> Segment {
    let mix = |a: f64, b: f64| a + (b - a) * part;
    let nanos = |sample: &Sample| sample.delay.map(|delay| delay.as_nanos() as f64);
    let value = |before: Option<f64>, after: Option<f64>| before.map(|a| after.map_or(a, |b| mix(a, b)));
    Segment {
        from,
        rate: mix(before.rate as f64, after.rate as f64) as u64,
        delay: value(nanos(before), nanos(after)).map(|nanos| nanos as u64),
        loss: value(before.loss, after.loss),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Time {
        Time::from_nanos(milliseconds * MILLISECOND)
    }

    fn opportunities(times: &[u32]) -> Traced {
        Traced::new(&Arc::new(Trace::Opportunities(times.to_vec())), Duration::ZERO)
    }

    #[test]
    fn each_opportunity_carries_1500_bytes_and_the_trace_repeats() {
        let mut traced = opportunities(&[2, 2, 5, 10]);
        let departures: Vec<_> = (0..6).map(|_| traced.departure(ms(0), 1500)).collect();
        assert_eq!(departures, [2, 2, 5, 10, 12, 12].map(ms));
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_take_several() {
        let mut traced = opportunities(&[1, 2, 3, 4]);
        assert_eq!([700, 700, 200, 2900].map(|size| traced.departure(ms(0), size)), [1, 1, 2, 3].map(ms));
        assert_eq!(
            traced.departure(ms(0), 1),
            ms(4),
            "1400 of 1500 bytes of the second were left for the fourth packet"
        );
    }

    #[test]
    fn an_opportunity_that_finds_no_packet_is_lost() {
        let mut traced = opportunities(&[1, 2, 3, 4]);
        assert_eq!(traced.departure(ms(0), 100), ms(1));
        assert_eq!(traced.departure(Time::from_nanos(2_500_000), 1500), ms(3));
        assert_eq!(traced.departure(ms(9), 1500), ms(9), "an opportunity at this very moment counts");
    }

    #[test]
    fn an_offset_begins_within_the_trace() {
        let trace = Arc::new(Trace::Opportunities(vec![2, 5, 10]));
        let mut traced = Traced::new(&trace, Duration::from_millis(14));
        assert_eq!([0, 0, 0].map(|_| traced.departure(ms(0), 1500)), [1, 6, 8].map(ms));
        assert_eq!(traced.mean_rate(ms(0), ms(10)), 3.0 * 12_000.0 / 0.01);
    }

    #[test]
    fn samples_are_integrated_over_their_steps() {
        let row = |ms, rate, delay, loss| Sample {
            time: Duration::from_millis(ms),
            rate,
            delay: Some(Duration::from_millis(delay)),
            loss: Some(loss),
        };
        let rows = vec![row(0, 1_000_000, 5, 0.0), row(10, 0, 7, 0.5), row(20, 0, 9, 0.5)];
        let traced = |interpolation| {
            Traced::new(&Arc::new(Trace::Samples { rows: rows.clone(), interpolation }), Duration::ZERO)
        };
        let mut step = traced(Interpolation::Step);
        // 1 Mbit/s for 10 ms is 1250 bytes; then nothing for 10 ms.
        assert_eq!([0, 0].map(|_| step.departure(ms(0), 1250)), [10, 10].map(ms));
        assert_eq!(step.departure(ms(10), 125), ms(21));
        assert_eq!((step.delay(ms(3)), step.delay(ms(13))), (Some(5 * MILLISECOND), Some(7 * MILLISECOND)));
        assert_eq!([3, 4, 13, 14].map(|at| step.changed_loss(ms(at))), [Some(0.0), None, Some(0.5), None]);
        assert_eq!(traced(Interpolation::Linear).mean_rate(ms(0), ms(20)), 250_000.0);
    }

    #[test]
    fn a_sample_may_leave_its_delay_and_loss_to_the_link() {
        let row = |ms, own: bool| Sample {
            time: Duration::from_millis(ms),
            rate: 1_000_000,
            delay: (!own).then_some(Duration::from_millis(5)),
            loss: (!own).then_some(0.5),
        };
        for interpolation in [Interpolation::Step, Interpolation::Linear] {
            let rows = vec![row(0, true), row(20, false), row(40, true), row(60, true)];
            let trace = Arc::new(Trace::Samples { rows, interpolation });
            let mut traced = Traced::new(&trace, Duration::ZERO);
            let delays = [5, 25, 35, 45].map(|at| traced.delay(ms(at)));
            assert_eq!(delays, [None, Some(5 * MILLISECOND), Some(5 * MILLISECOND), None]);
            let losses = [5, 25, 35, 45, 65, 85].map(|at| traced.changed_loss(ms(at)));
            assert_eq!(losses, [None, Some(0.5), None, Some(0.0), None, Some(0.5)]);
        }
    }

    #[test]
    fn a_packet_may_take_many_periods() {
        let row = |nanos, rate| Sample { time: Duration::from_nanos(nanos), rate, delay: None, loss: None };
        // One bit in each period of two seconds.
        let rows = vec![row(0, 0), row(1_000_000_000, 1), row(2_000_000_000, 0)];
        let trace = Arc::new(Trace::Samples { rows, interpolation: Interpolation::Step });
        let mut traced = Traced::new(&trace, Duration::ZERO);
        let seconds = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        assert_eq!(traced.departure(seconds(0), 1), seconds(16));
        assert_eq!(
            traced.departure(Time::from_nanos(17_500_000_000), 1500),
            Time::from_nanos(24_017_500_000_000)
        );
        assert_eq!(traced.departure(seconds(40_000), 100_000), seconds(1_640_000));
        assert_eq!(traced.departure(seconds(40_000), u32::MAX), Time::NEVER, "2,177 years are too many");
        assert_eq!(traced.departure(Time::from_nanos(u64::MAX - 5), 1500), Time::NEVER);
    }
}
