//! What happens to the window of a path on which nothing is sent (RFC 9260 §7.2.1).

use crate::Rules;
use crate::rules::IdleDecay;

/// How a window decays.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Decay {
    rule: IdleDecay,
    /// The lowest window to which it leads, in units.
    floor: u32,
}

/// A window after one more RTO without sending.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Decayed {
    pub(crate) window: u64,
    pub(crate) ssthresh: u64,
    /// Whether another RTO without sending could change anything.
    pub(crate) goes_on: bool,
}

impl Decay {
    /// The window stays.
    pub(crate) const OFF: Decay = Decay { rule: IdleDecay::Off, floor: 0 };

    pub(crate) fn of(rules: &Rules) -> Self {
        Decay { rule: rules.idle_decay, floor: rules.idle_floor }
    }

    /// Nothing was sent for one RTO, for the `times`-th time in a row. All sizes are in bytes.
    //= rfc9260#section-7.2.1
    pub(crate) fn after(self, times: u32, unit: u64, window: u64, ssthresh: u64) -> Decayed {
        let floor = u64::from(self.floor) * unit;
        let halved = (window / 2).max(floor);
        let (left, ssthresh) = match self.rule {
            IdleDecay::Off => return Decayed { window, ssthresh, goes_on: false },
            IdleDecay::Literal if window > 2 * unit => (halved, ssthresh),
            IdleDecay::Literal => (window, ssthresh),
            IdleDecay::Remember if times == 1 && window > halved => (halved, window),
            IdleDecay::Halve | IdleDecay::Remember => (window.min(halved), ssthresh),
        };
        Decayed { window: left, ssthresh, goes_on: left > floor }
    }
}
