//! A path owns everything that is kept per destination.

pub mod estimate;
pub(crate) mod health;
mod mtu;
mod parameters;
pub(crate) mod rack;
mod set;
mod start;

pub(crate) use health::Health;
use estimate::Estimates;
pub(crate) use mtu::Mtu;
pub use parameters::{Heartbeats, PathParameters};
pub(crate) use rack::Rack;
pub(crate) use set::Paths;
use set::pmdcs;

use crate::control::rtt::{RtoLimits, RttEstimate};
use crate::policy::Congestion;
use crate::wire::Address;
use crate::{Duration, Time, Tsn};
use smallvec::SmallVec;

/// A path of an association. Never used again within it, also after the path is gone.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PathId(pub u16);

impl PathId {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Whether a path can carry data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PathState {
    /// Not yet verified by a heartbeat (RFC 9260 §5.4): no data goes there.
    Unconfirmed,
    /// In order.
    Active,
    /// An error or more in a row (RFC 7829): no new data while another path is active.
    PotentiallyFailed,
    /// Too many errors in a row (RFC 9260 §8.2).
    Inactive,
    /// Its address was taken out of the association (RFC 5061).
    Removed,
}

/// The facts of one path, stored here only: policies read a slice of these at no cost.
#[derive(Clone, PartialEq, Debug)]
pub struct PathView {
    /// Which path.
    pub id: PathId,
    /// The local address.
    pub local: Address,
    /// The peer's address.
    pub remote: Address,
    /// Whether it can carry data.
    pub state: PathState,
    /// Whether the local address is up: see [`Incoming::Up`](crate::Incoming::Up).
    pub up: bool,
    /// Whether new data prefers it.
    pub primary: bool,
    /// The largest DATA chunk that fits a packet, in bytes.
    pub pmdcs: u32,
    /// The congestion window, in bytes.
    pub window: u64,
    /// The slow-start threshold, in bytes.
    pub ssthresh: u64,
    /// Bytes in flight here: sent, neither acknowledged nor marked for retransmission.
    pub flight: u64,
    /// Bytes marked for retransmission that were last sent here.
    pub marked: u64,
    /// Bytes that may be sent here now, all limits considered; anything above zero admits a whole packet
    /// (RFC 9260 §6.1 B).
    pub room: u64,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// Its variation.
    pub rttvar: Duration,
    /// The smallest round-trip time measured.
    pub min_rtt: Option<Duration>,
    /// The retransmission timeout.
    pub rto: Duration,
    /// Timeouts and lost heartbeats in a row.
    pub errors: u32,
    /// Bytes acknowledged here so far.
    pub delivered: u64,
    /// Bytes found lost here so far.
    pub lost: u64,
    /// Those of them that were acknowledged before they were sent again: they were only late.
    pub late: u64,
    /// DATA chunks sent here, retransmissions included.
    pub chunks: u64,
    /// Chunks fast-retransmitted on this path.
    pub fast_retransmissions: u64,
    /// Chunks retransmitted on this path after a timeout.
    pub timeout_retransmissions: u64,
    /// Copies sent here of chunks in flight on another path.
    pub reinjected: u64,
    /// How long this path has kept a buffer full: new data waited for the peer's window or a full send buffer while
    /// the lowest TSN not acknowledged was last sent here.
    pub blocks: Duration,
    /// Tail loss probes sent here (RFC 8985 §7).
    pub tail_probes: u64,
    /// Times that T3-rtx expired here.
    pub timeouts: u64,
    /// Heartbeats sent here, probes of the MTU not among them.
    pub heartbeats: u64,
    /// Those of them that were answered.
    pub heartbeats_answered: u64,
    /// What `rto` was on average.
    pub rto_average: RtoAverage,
    /// What is estimated of the path; there if a policy needs it ([`Route::needs`](crate::policy::Route::needs)).
    pub estimates: Option<Box<Estimates>>,
}

/// The retransmission timeout of a path, averaged over time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RtoAverage {
    since: Time,
    /// Up to when it is summed up, and what it has been since.
    until: Time,
    rto: Duration,
    /// Square nanoseconds.
    sum: u128,
}

impl RtoAverage {
    /// The average of a path that begins now with this timeout.
    pub fn new(now: Time, rto: Duration) -> Self {
        RtoAverage { since: now, until: now, rto, sum: 0 }
    }

    fn summed(&self, now: Time) -> u128 {
        self.sum + now.since(self.until).as_nanos() * self.rto.as_nanos()
    }

    /// It is this from now on.
    fn set(&mut self, now: Time, rto: Duration) {
        (self.sum, self.until, self.rto) = (self.summed(now), now, rto);
    }

    /// The mean from the beginning of the path up to now; what it is, if that is no time.
    pub fn mean(&self, now: Time) -> Duration {
        let time = now.since(self.since).as_nanos();
        let mean = self.summed(now).checked_div(time);
        mean.map_or(self.rto, |mean| Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }
}

impl PathView {
    /// Takes a measurement of the round-trip time. RTO.Alpha is 1/8, RTO.Beta 1/4.
    //= rfc9260#section-6.3.1
    pub(crate) fn measure(&mut self, rtt: Duration, limits: RtoLimits) {
        let estimate = match self.srtt {
            None => RttEstimate::first(rtt),
            Some(srtt) => RttEstimate { srtt, rttvar: self.rttvar }.with(rtt),
        };
        (self.srtt, self.rttvar) = (Some(estimate.srtt), estimate.rttvar);
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        self.rto = limits.bound(estimate.timeout());
    }

    /// Doubles RTO after a timeout.
    //= rfc9260#section-6.3.3
    pub(crate) fn back_off(&mut self, limits: RtoLimits) {
        self.rto = limits.backed_off(self.rto);
    }
}

/// What else is kept for a path; the facts are in its [`PathView`].
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) congestion: Box<dyn Congestion>,
    /// The largest congestion window, in bytes.
    pub(crate) max_cwnd: u64,
    pub(crate) timers: Timers,
    pub(crate) health: Health,
    /// The chunk whose round trip is being timed, and since when. Never a retransmitted one (Karn).
    pub(crate) timed: Option<(Tsn, Time)>,
    /// Chunks whose round trips are being timed beside it, in order, at most [`ALSO_TIMED`] (rule `rtt_on_cut`).
    pub(crate) also_timed: SmallVec<[(Tsn, Time); 1]>,
    /// Why the window was cut last, until that is proved or refuted (mechanism `spurious_losses`).
    pub(crate) suspect: Option<Suspect>,
    /// The lowest chunk not acknowledged that was last sent here.
    pub(crate) earliest: Option<Tsn>,
    /// Bytes of chunks last sent here that the Cumulative TSN Ack has not passed and that are not given up.
    pub(crate) buffered: u64,
    /// RTOs in a row in which nothing was sent here.
    pub(crate) idle_rtos: u32,
    /// T3-rtx has expired and nothing was acknowledged since.
    pub(crate) lone: bool,
    /// Whether the socket of the local address takes packets now.
    pub(crate) writable: bool,
    /// How large its packets may be.
    pub(crate) mtu: Mtu,
    /// What the user has said of this path alone.
    pub(crate) own: PathParameters,
    /// What the SACK being processed has said about this path.
    pub(crate) tally: SackResult,
    /// The path's own points: see the mechanism `cuc`.
    pub(crate) points: Points,
    /// In which order chunks arrive; kept if `loss_detection` or `tail_probe` asks for it.
    pub(crate) rack: Option<Rack>,
}

/// A loss for which a window was cut, and which may have been none.
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
}

/// Chunks of a path that are timed beside the one that was begun last.
const ALSO_TIMED: usize = 16;

impl Path {
    /// The congestion window, in bytes.
    pub(crate) fn cwnd(&self) -> u64 {
        self.congestion.window().min(self.max_cwnd)
    }

    /// The next new chunk is timed too, beside what is being timed.
    pub(crate) fn time_another(&mut self) {
        if self.also_timed.len() == ALSO_TIMED {
            self.also_timed.remove(0);
        }
        self.also_timed.extend(self.timed.take());
    }
}

/// How round-trip times are measured by data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum RttSamples {
    /// By one chunk at a time of each path, never one sent again.
    OneAtATime,
    /// By every chunk whose last transmission the packet that is being taken in echoes: its time by our clock.
    Echoed(Option<u32>),
}

/// What one SACK says about one path.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct SackResult {
    /// Bytes in flight before the SACK, as the rules count them.
    pub(crate) flight_before: u64,
    /// Bytes newly acknowledged by the Cumulative TSN Ack.
    pub(crate) cumulative: u64,
    /// Bytes newly acknowledged by Gap Ack Blocks.
    pub(crate) gap: u64,
    /// Those of them that were acknowledged when the path's own point had moved, each byte once in its life.
    pub(crate) gap_behind_point: u64,
    /// Whether the path's own point moved.
    pub(crate) moved: bool,
    /// Whether the Cumulative TSN Ack passed a chunk of this path, newly acknowledged or not.
    pub(crate) passed: bool,
    /// Whether it passed one at or above an expected point.
    pub(crate) passed_point: bool,
    /// Whether the path's earliest outstanding chunk was acknowledged.
    pub(crate) earliest: bool,
    /// The lowest chunk newly acknowledged.
    pub(crate) lowest: Option<Tsn>,
    /// The highest chunk newly acknowledged by a Gap Ack Block.
    pub(crate) highest_gap: Option<Tsn>,
    /// The round-trip time measured.
    pub(crate) rtt: Option<Duration>,
    /// Whether others were measured beside it, and taken already.
    pub(crate) also_timed: bool,
    /// Whether a chunk was acknowledged that no other path has carried: it says for certain that this one works.
    pub(crate) certain: bool,
    /// The lowest chunk that it marked.
    pub(crate) marked: Option<Tsn>,
    /// Whether a retransmission was found lost that was sent after the window was cut last (RACK).
    pub(crate) lost_again: bool,
}

/// The chunks whose acknowledgement moves a path's own point: the lowest not acknowledged that was last sent here,
/// of chunks sent once and of chunks sent again.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Points {
    pub(crate) first: Point,
    pub(crate) again: Point,
}

/// One of them.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Point {
    /// Where it was found last; none was yet.
    pub(crate) expected: Option<Tsn>,
    /// It has to be looked for again.
    pub(crate) sought: bool,
}

impl Default for Point {
    fn default() -> Self {
        Point { expected: None, sought: true }
    }
}

impl Points {
    /// Both have to be looked for again.
    pub(crate) fn seek(&mut self) {
        (self.first.sought, self.again.sought) = (true, true);
    }

    /// Whether a chunk is at or above one of them.
    pub(crate) fn reached_by(&self, tsn: Tsn) -> bool {
        [self.first, self.again]
            .iter()
            .any(|point| point.expected.is_none_or(|expected| !tsn.before(expected)))
    }
}

/// The timers of a path; [`Time::NEVER`] is off.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Timers {
    /// T3-rtx.
    pub(crate) t3: Time,
    /// Nothing sent for an RTO.
    pub(crate) idle: Time,
    /// The next heartbeat.
    pub(crate) heartbeat: Time,
    /// The latest time for the answer to the last heartbeat.
    pub(crate) answer: Time,
    /// The latest time for the answer to a probe of the MTU, or the next search for it.
    pub(crate) probe: Time,
    /// When chunks that later ones have overtaken count as lost (RFC 8985 §6.2).
    pub(crate) reordering: Time,
    /// When a tail loss probe is due (RFC 8985 §7.2).
    pub(crate) tail: Time,
}

impl Timers {
    const OFF: Timers = Timers {
        t3: Time::NEVER,
        idle: Time::NEVER,
        heartbeat: Time::NEVER,
        answer: Time::NEVER,
        probe: Time::NEVER,
        reordering: Time::NEVER,
        tail: Time::NEVER,
    };

    pub(crate) fn next(&self) -> Time {
        let own = self.t3.min(self.idle).min(self.heartbeat).min(self.answer).min(self.probe);
        own.min(self.reordering).min(self.tail)
    }
}
