//! Paths. A path owns all state that belongs to a destination.

pub mod estimate;
pub(crate) mod health;
mod heartbeat;
mod mtu;
mod note;
mod open;
mod order;
mod parameters;
pub(crate) mod rack;
mod search;
mod set;
mod start;
mod t3;
mod timing;
mod view;
mod windows;

pub(crate) use health::{Health, Wanted};
pub(crate) use mtu::{Mtu, exceeds_first};
pub use parameters::{Heartbeats, PathParameters};
pub(crate) use rack::Rack;
pub(crate) use set::Paths;
pub use view::{PathId, PathState, PathView, RtoAverage};

use crate::policy::Congestion;
use crate::rules::RttOnCut;
use crate::wire::Address;
use crate::{Config, Duration, Time, Tsn};
use smallvec::SmallVec;

/// The other state of a path; the facts are in its [`PathView`].
// What every packet needs stands first: see `Association`.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Path {
    pub(crate) congestion: Box<dyn Congestion>,
    /// The largest congestion window, in bytes.
    pub(crate) max_cwnd: u64,
    pub(crate) timers: Timers,
    /// Bytes of chunks last sent on this path that the Cumulative TSN Ack has not passed and that are not abandoned.
    pub(crate) buffered: u64,
    /// The lowest unacknowledged chunk that was last sent on this path.
    pub(crate) earliest: Option<Tsn>,
    /// The chunk whose round trip is being timed, and the time at which it was sent. It is never a retransmitted
    /// chunk (Karn).
    pub(crate) timed: Option<(Tsn, Time)>,
    /// The number of consecutive RTOs in which nothing was sent on this path.
    pub(crate) idle_rtos: u32,
    /// Whether T3-rtx has expired and nothing was acknowledged since. By the rule `after_timeout`, one packet is then
    /// sent at a time.
    pub(crate) after_timeout: bool,
    /// Whether the socket of the local address accepts packets now.
    pub(crate) writable: bool,
    /// What happens to the chunk that is being timed when the window is cut.
    rtt_on_cut: RttOnCut,
    /// The path's own points: see the mechanism `cuc`.
    pub(crate) points: Points,
    /// Further chunks whose round trips are being timed, in order, a few at most (rule `rtt_on_cut`).
    also_timed: SmallVec<[(Tsn, Time); 1]>,
    /// The last round-trip time that one of these has measured.
    pub(crate) beside: Option<Duration>,
    pub(crate) health: Health,
    /// The loss for which the window was last cut, until it is confirmed or refuted (mechanism `spurious_losses`).
    pub(crate) suspect: Option<Suspect>,
    /// The highest TSN that had been sent when the window was last cut for congestion.
    pub(crate) cut_up_to: Option<Tsn>,
    /// The same, of the last cut for a mark (ECN).
    pub(crate) cut_for_mark_up_to: Option<Tsn>,
    /// The search for the path MTU.
    pub(crate) mtu: Mtu,
    /// The unit of the congestion window, in bytes.
    unit: u64,
    /// The parameters that the user set for this path alone.
    pub(crate) own: PathParameters,
    /// The result so far of the SACK that is being processed, for this path.
    pub(crate) tally: SackResult,
    /// The order in which chunks arrive. It is kept if `loss_detection` or `tail_probe` needs it.
    pub(crate) rack: Option<Rack>,
}

/// A loss for which a window was cut. It may turn out to be spurious.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Suspect {
    /// The first chunk that seemed to be lost.
    pub(crate) tsn: Tsn,
    /// When the packet was sent that seemed to be lost.
    pub(crate) sent: Time,
    /// The window before the cut, in bytes.
    pub(crate) window: u64,
    /// The slow-start threshold before the cut, in bytes.
    pub(crate) ssthresh: u64,
    /// The exit point of the Fast Recovery that the loss has ended.
    pub(crate) exit: Option<Tsn>,
}

impl Path {
    /// A path on which nothing was sent yet.
    fn new(
        (unit, congestion): (u64, Box<dyn Congestion>),
        max_cwnd: u64,
        mtu: Mtu,
        health: Health,
        rtt_on_cut: RttOnCut,
    ) -> Self {
        Path {
            congestion,
            max_cwnd,
            timers: Timers::OFF,
            buffered: 0,
            earliest: None,
            timed: None,
            idle_rtos: 0,
            after_timeout: false,
            writable: true,
            rtt_on_cut,
            points: Points::default(),
            also_timed: SmallVec::new(),
            beside: None,
            health,
            suspect: None,
            cut_up_to: None,
            cut_for_mark_up_to: None,
            mtu,
            unit,
            own: PathParameters::default(),
            tally: SackResult::default(),
            rack: None,
        }
    }

    /// The congestion window, in bytes.
    pub(crate) fn cwnd(&self) -> u64 {
        self.congestion.window().min(self.max_cwnd)
    }

    /// HB.interval; `None`: no periodic heartbeats.
    pub(crate) fn heartbeat_interval(&self, config: &Config) -> Option<Duration> {
        match self.own.heartbeats {
            Heartbeats::Inherited => config.heartbeat_interval,
            Heartbeats::Off => None,
            Heartbeats::Every(interval) => Some(interval),
        }
    }

    /// Path.Max.Retrans.
    pub(crate) fn max_retrans(&self, config: &Config) -> u32 {
        self.own.max_retrans.unwrap_or(config.path_max_retrans)
    }
}

/// How round-trip times are measured by data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum RttSamples {
    /// By one chunk of each path at a time, never a retransmitted one.
    OneAtATime,
    /// By every chunk whose last transmission is echoed by the packet being processed: the time of that transmission
    /// by our clock.
    Echoed(Option<u32>),
}

/// What one SACK says about one path.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct SackResult {
    /// Bytes in flight before the SACK, counted by the rule `in_flight`.
    pub(crate) flight_before: u64,
    /// Bytes newly acknowledged by the Cumulative TSN Ack.
    pub(crate) cumulative: u64,
    /// Bytes newly acknowledged by Gap Ack Blocks.
    pub(crate) gap: u64,
    /// Bytes of both kinds that were acknowledged when the path's own point had moved. Each byte counts once in its
    /// life.
    pub(crate) gap_behind_point: u64,
    /// Whether the path's own point moved.
    pub(crate) moved: bool,
    /// Whether the Cumulative TSN Ack passed a chunk of this path, newly acknowledged or not.
    pub(crate) passed: bool,
    /// Whether the Cumulative TSN Ack passed a chunk at or above an expected point.
    pub(crate) passed_point: bool,
    /// Whether the path's earliest outstanding chunk was acknowledged.
    pub(crate) earliest: bool,
    /// The lowest chunk newly acknowledged.
    pub(crate) lowest: Option<Tsn>,
    /// The highest chunk newly acknowledged by a Gap Ack Block.
    pub(crate) highest_gap: Option<Tsn>,
    /// The round-trip time measured.
    pub(crate) rtt: Option<Duration>,
    /// Whether further round-trip times were measured and have already been applied.
    pub(crate) also_timed: bool,
    /// Whether a chunk was acknowledged that no other path has carried. This proves that the path works.
    pub(crate) unambiguous: bool,
    /// Whether a chunk was acknowledged that T3-rtx had not marked, or that was sent again after it.
    pub(crate) awaited: bool,
    /// Whether a chunk was acknowledged that ns-2's module takes as proof that a potentially failed path works. It was
    /// sent once, and T3-rtx has not marked it; if a Gap Ack Block acknowledges it, one of the two is enough.
    pub(crate) certain: bool,
    /// The lowest chunk that this SACK marked.
    pub(crate) marked: Option<Tsn>,
    /// Whether a retransmission that was sent after the last cut of the window was found lost (RACK).
    pub(crate) lost_again: bool,
}

/// The chunks whose acknowledgement moves a path's own point: the lowest unacknowledged chunks last sent on the path,
/// one among chunks sent once and one among chunks sent again.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Points {
    pub(crate) first: Point,
    pub(crate) again: Point,
}

/// One of these two points.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Point {
    /// Where the last search found it; `None` before the first search.
    pub(crate) expected: Option<Tsn>,
    /// Whether a new search is needed.
    pub(crate) sought: bool,
}

impl Default for Point {
    fn default() -> Self {
        Point { expected: None, sought: true }
    }
}

impl Points {
    /// Requests a new search for both.
    pub(crate) fn seek(&mut self) {
        (self.first.sought, self.again.sought) = (true, true);
    }

    /// Whether a chunk is at or above one of the points.
    pub(crate) fn reached_by(&self, tsn: Tsn) -> bool {
        [self.first, self.again]
            .iter()
            .any(|point| point.expected.is_none_or(|expected| !tsn.before(expected)))
    }
}

/// The timers of a path; [`Time::NEVER`] is off.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Timers {
    at: [Time; 7],
    /// No timer is earlier than this.
    bound: Time,
}

/// One timer of a path.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Timer {
    /// T3-rtx.
    T3,
    /// Fires after an RTO in which nothing was sent.
    Idle,
    /// The next heartbeat.
    Heartbeat,
    /// The deadline for the answer to the last heartbeat.
    Answer,
    /// The deadline for the answer to a probe of the MTU, or the time of the next search.
    Probe,
    /// When chunks that were overtaken by later ones count as lost (RFC 8985 §6.2).
    Reordering,
    /// When a tail loss probe is due (RFC 8985 §7.2).
    Tail,
}

impl std::ops::Index<Timer> for Timers {
    type Output = Time;

    #[inline]
    fn index(&self, timer: Timer) -> &Time {
        &self.at[timer as usize]
    }
}

impl Timers {
    const OFF: Timers = Timers { at: [Time::NEVER; 7], bound: Time::NEVER };

    /// Sets a timer.
    #[inline]
    pub(crate) fn set(&mut self, timer: Timer, at: Time) {
        self.at[timer as usize] = at;
        self.bound = self.bound.min(at);
    }

    /// A time before which no timer fires. Most timers are moved back again and again, so the earliest is only looked
    /// for when this time has come.
    #[inline]
    pub(crate) fn bound(&mut self, now: Time) -> Time {
        if self.bound <= now {
            self.bound = self.at.into_iter().min().unwrap_or(Time::NEVER);
        }
        self.bound
    }
}

/// Where a packet came from, and by which path.
#[derive(Copy, Clone)]
pub(crate) struct PacketOrigin {
    pub(crate) path: PathId,
    pub(crate) local: Address,
    pub(crate) source: Address,
}
