//! `adaptive`: a retransmission takes the alternate path, unless the model of receive buffer blocking says that it
//! would fill the receive buffer there; then it takes the path that carried the chunk last.
//!
//! This is the plan of section 5.2 of the paper in `papers/receive-buffer-blocking`. At each choice equation (8) is
//! evaluated with what is known of the two paths: B1 from the bytes that SACKs acknowledge (TCP Westwood), B2 from
//! packet pairs, R1 and R2 from the smallest round-trip times, Q1 = B1 · (largest − smallest round-trip time), and A,
//! the largest window that the peer has announced. While any of these is missing it does as `same`, and the note of the
//! choice says so.
//!
//! Settings: `rates` (bit/s), `round_trips` (seconds) and `queues` (bytes), in the order of the paths, are told instead
//! of measured. Given all three, the policy needs no estimates: an oracle to compare the estimates with.

use super::{Ask, Choice, Needs, Route, instead_of, next_active};
use crate::path::estimate::Estimates;
use crate::path::{PathId, PathView};
use crate::policy::receive_buffer_model::Conditions;
use crate::policy::{PolicyError, PolicySpec};
use crate::{Config, Duration};

#[derive(Clone, Debug)]
struct Adaptive {
    rates: Option<Vec<f64>>,
    round_trips: Option<Vec<f64>>,
    queues: Option<Vec<f64>>,
    /// The largest packet, bytes.
    mtu: f64,
}

pub(in crate::policy) fn make(spec: &PolicySpec, config: &Config) -> Result<Box<dyn Route>, PolicyError> {
    spec.allow(&["rates", "round_trips", "queues"])?;
    Ok(Box::new(Adaptive {
        rates: spec.numbers("rates")?,
        round_trips: spec.numbers("round_trips")?,
        queues: spec.numbers("queues")?,
        mtu: f64::from(config.mtu),
    }))
}

/// The result of the model.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Verdict {
    /// The alternate path releases the buffer in time.
    Alternate,
    /// It does not.
    Blocks,
    /// There is no other path, or the last one cannot be used.
    NoChoice,
    /// Something is not known.
    Unknown(&'static str),
}

const NO_RATE: &str = "as `same`, because the bandwidth of the path that lost the chunk is not known yet";
const NO_PAIR: &str = "as `same`, because the bandwidth of the alternate path is not known yet";
const NO_ROUND_TRIP: &str = "as `same`, because a round-trip time is not known yet";

impl Adaptive {
    fn verdict(&self, ask: &Ask, paths: &[PathView]) -> (Verdict, Option<PathId>) {
        let last = paths.iter().find(|path| Some(path.id) == ask.last && path.carries());
        let Some(last) = last else { return (Verdict::NoChoice, ask.last.map(|id| instead_of(id, paths))) };
        let other = next_active(last.id, paths).and_then(|id| paths.iter().find(|path| path.id == id));
        let Some(other) = other else { return (Verdict::NoChoice, Some(last.id)) };
        let verdict = match self.conditions(last, other, ask.peer_buffer) {
            Err(reason) => Verdict::Unknown(reason),
            Ok(conditions) if conditions.blocks() => Verdict::Blocks,
            Ok(_) => Verdict::Alternate,
        };
        (verdict, Some(if verdict == Verdict::Alternate { other.id } else { last.id }))
    }

    /// The conditions for which equation (8) is evaluated.
    fn conditions(
        &self,
        last: &PathView,
        other: &PathView,
        receive_buffer: u64,
    ) -> Result<Conditions, &'static str> {
        let told = |all: &Option<Vec<f64>>, path: &PathView| all.as_ref()?.get(path.id.index()).copied();
        let primary_rate = told(&self.rates, last).or_else(|| rate(last, false)).ok_or(NO_RATE)?;
        let secondary_rate = told(&self.rates, other).or_else(|| rate(other, true)).ok_or(NO_PAIR)?;
        let base = |path| told(&self.round_trips, path).or_else(|| base(path)).ok_or(NO_ROUND_TRIP);
        let queue = told(&self.queues, last).or_else(|| queue(last, primary_rate)).ok_or(NO_ROUND_TRIP)?;
        Ok(Conditions {
            primary_rate,
            primary_rtt: base(last)?,
            queue,
            secondary_rate,
            secondary_rtt: base(other)?,
            receive_buffer: receive_buffer as f64,
            mtu: self.mtu,
        })
    }
}

fn estimates(path: &PathView) -> Option<&Estimates> {
    path.estimates.as_deref()
}

/// The bandwidth of a path, bit/s. On an idle path pairs are asked first, since data there is too little to fill it; on
/// a path with data, pairs are of a time when it had none.
fn rate(path: &PathView, idle: bool) -> Option<f64> {
    let pair = || estimates(path)?.packet_pair.as_ref()?.rate();
    let data = || estimates(path)?.bandwidth.as_ref()?.rate();
    if idle { pair().or_else(data) } else { data().or_else(pair) }
}

/// The round trip of a path with empty queues, seconds.
fn base(path: &PathView) -> Option<f64> {
    estimates(path)?.round_trip.as_ref()?.base().map(|rtt: Duration| rtt.as_secs_f64())
}

/// The queue of a path, bytes.
fn queue(path: &PathView, rate: f64) -> Option<f64> {
    let most = estimates(path)?.round_trip.as_ref()?.most_queueing()?;
    Some(rate * most.as_secs_f64() / 8.0)
}

impl Route for Adaptive {
    fn choose(&self, ask: &Ask, paths: &[PathView]) -> Choice {
        self.verdict(ask, paths).1.map_or(Choice::Wait, Choice::Send)
    }

    fn hears_sacks(&self) -> bool {
        false
    }

    fn takes_new_data(&self) -> bool {
        false
    }

    fn needs(&self) -> Needs {
        let told = self.rates.is_some() && self.round_trips.is_some() && self.queues.is_some();
        if told { Needs::NONE } else { Needs::ALL }
    }

    fn reason(&self, ask: &Ask, paths: &[PathView]) -> Option<&'static str> {
        Some(match self.verdict(ask, paths).0 {
            Verdict::Alternate => {
                "the alternate path releases the receive buffer before it is full (equation 8)"
            }
            Verdict::Blocks => "on the alternate path it would fill the receive buffer (equation 8)",
            Verdict::NoChoice => "there is no other choice",
            Verdict::Unknown(reason) => reason,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{tests::ask, view};
    use super::*;
    use crate::Policies;
    use crate::policy::Setting;

    fn told(rates: [f64; 2]) -> Box<dyn Route> {
        let list = |values: [f64; 2]| Setting::List(values.map(Setting::Number).to_vec());
        let settings =
            [("rates", list(rates)), ("round_trips", list([0.1, 0.6])), ("queues", list([75e3, 75e3]))];
        let mut spec = PolicySpec::named("adaptive");
        spec.settings.extend(settings.map(|(key, value)| (key.to_owned(), value)));
        Policies::default().route(&spec, &Config::default()).unwrap()
    }

    /// Equation (8) of the paper beside 36 kbit/s: the threshold is 801.6 kbit/s.
    #[test]
    fn the_choice_changes_at_the_papers_threshold() {
        let (ask, paths) = (Ask { peer_buffer: 1_000_000, ..ask() }, [view(0), view(1)]);
        assert_eq!(told([801e3, 36e3]).choose(&ask, &paths), Choice::Send(PathId(1)));
        assert_eq!(told([802e3, 36e3]).choose(&ask, &paths), Choice::Send(PathId(0)));
        assert_eq!(told([10e6, 36e3]).needs(), Needs::NONE, "nothing is measured");
        assert!(told([10e6, 36e3]).reason(&ask, &paths).unwrap().contains("would fill"));
    }

    #[test]
    fn without_estimates_it_is_same_and_says_so() {
        let route = Policies::default().route(&PolicySpec::named("adaptive"), &Config::default()).unwrap();
        let paths = [view(0), view(1)];
        assert_eq!(route.choose(&ask(), &paths), Choice::Send(PathId(0)));
        assert_eq!(route.reason(&ask(), &paths), Some(NO_RATE));
        assert_eq!(route.needs(), Needs::ALL);
    }

    #[test]
    fn a_path_that_failed_is_left_whatever_the_model_says() {
        let mut paths = [view(0), view(1)];
        paths[0].state = crate::PathState::Inactive;
        assert_eq!(told([10e6, 36e3]).choose(&ask(), &paths), Choice::Send(PathId(1)));
    }
}
