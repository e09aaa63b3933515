//! The order in which chunks arrive on each path, as the association uses it: `rack/` keeps the state of one path.

use super::rack::Lateness;
use super::{PathId, Paths, Points, Rack, Timer};
use crate::mechanisms::{LossDetection, TailProbe};
use crate::{Config, Duration, Time};

/// The purposes for which the paths of an association record the order in which chunks arrive.
#[derive(Copy, Clone, Debug)]
pub(super) struct Order {
    detects: bool,
    /// The SACK delay of the peer, if tail loss probes are sent. The peer does not announce it; ours is assumed.
    delay: Option<Duration>,
}

impl Order {
    pub(super) fn new(config: &Config) -> Self {
        let probes = config.mechanisms.tail_probe == TailProbe::On;
        Order {
            detects: config.mechanisms.loss_detection == LossDetection::Rack,
            delay: probes.then_some(config.sack_delay),
        }
    }

    /// The state of a new path. Chunks that gaps have acknowledged on a removed path are still charged to it.
    pub(super) fn kept(&self, gone: Option<Rack>) -> Option<Rack> {
        let gapped = gone.map_or(0, |rack| rack.gapped);
        (self.detects || self.delay.is_some()).then(|| Rack::begun(gapped))
    }
}

impl Paths {
    /// Whether the order of arrivals is recorded.
    pub(crate) fn keeps_order(&self) -> bool {
        self.order.detects || self.order.delay.is_some()
    }

    /// Whether RACK detects losses.
    pub(crate) fn detects_by_order(&self) -> bool {
        self.order.detects
    }

    /// The SACK delay that is assumed of the peer has changed.
    pub(crate) fn assume_delay(&mut self, delay: Duration) {
        self.order.delay = self.order.delay.map(|_| delay);
    }

    /// TSNs restart, and nothing is outstanding: what paths keep of single chunks is void.
    pub(crate) fn restart(&mut self) {
        for id in self.ids() {
            let (measured, path) = (self.view(id).srtt.is_some(), self.get_mut(id));
            path.rack = path.rack.map(|_| Rack::begun_anew(measured));
            path.timers.set(Timer::Reordering, Time::NEVER);
            path.timers.set(Timer::Tail, Time::NEVER);
            path.forget_chunks();
            path.points = Points::default();
            (path.cut_up_to, path.cut_for_mark_up_to) = (None, None);
        }
    }

    /// Applies a measurement of the round-trip time of a path.
    pub(crate) fn measure(&mut self, id: PathId, rtt: Duration) {
        let limits = self.limits;
        let (view, path) = self.both(id);
        view.measure(rtt, limits);
        if let Some(rack) = &mut path.rack {
            rack.measured();
        }
    }

    /// Records that the window of a path is cut now.
    pub(super) fn note_cut(&mut self, id: PathId, now: Time) {
        if let Some(rack) = &mut self.get_mut(id).rack {
            rack.cut(now);
        }
    }

    /// The judgement of the chunks of a path now; `None` while nothing was delivered there.
    pub(crate) fn lateness(&self, id: PathId, enough: u32) -> Option<Lateness> {
        self.get(id).rack.as_ref()?.lateness(self.view(id), enough)
    }

    /// Sets the time of the next tail loss probe: two round trips from now, plus the peer's SACK delay if only one
    /// packet is in flight; not later than T3-rtx.
    //= rfc8985#section-7.2
    #[inline]
    pub(crate) fn set_tail(&mut self, id: PathId, now: Time) {
        if let Some(delay) = self.order.delay {
            self.set_tail_after(delay, id, now);
        }
    }

    fn set_tail_after(&mut self, delay: Duration, id: PathId, now: Time) {
        let (view, path) = self.both(id);
        let one = view.flight <= u64::from(view.pmdcs);
        let unmeasured = Duration::from_secs(1);
        let timeout =
            view.srtt.map_or(unmeasured, |srtt| srtt * 2 + if one { delay } else { Duration::ZERO });
        let due = (now + timeout).min(path.timers[Timer::T3]);
        path.timers.set(Timer::Tail, if view.flight > 0 { due } else { Time::NEVER });
    }
}
