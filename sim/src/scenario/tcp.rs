//! `[flow.tcp]`: a variant, and every parameter of TCP.

use anabranch_proto::{Config, Duration, Policies, PolicySpec, written};

use super::Amount;
use super::at::{At, Result};
use super::keys::{Default as Unless, Key, fill};
use super::sctp::bad_policy;
use crate::transport::tcp::{Halving, RtoBound, TcpConfig, Variant};

/// The parameters that only TCP flows have. `None` stands for the variant's default.
#[derive(Clone, PartialEq, Debug)]
pub struct Tcp {
    /// Where the defaults come from.
    pub variant: Variant,
    /// User data in a segment, in bytes.
    pub segment_size: Option<u32>,
    /// The receive buffer, which the receiver advertises.
    pub receive_window: Option<WindowSize>,
    /// The initial congestion window.
    pub initial_window: Option<WindowSize>,
    /// The initial slow-start threshold.
    pub initial_ssthresh: Option<WindowSize>,
    /// In-order segments for one acknowledgement.
    pub ack_every: Option<u32>,
    /// How long an acknowledgement waits for further segments.
    pub ack_delay: Option<Duration>,
    /// SACK blocks in an acknowledgement.
    pub sack_blocks: Option<u32>,
    /// Whether the first two duplicate acknowledgements send new data.
    pub limited_transmit: Option<bool>,
    /// How a window is halved.
    pub halving: Option<Halving>,
    /// The retransmission timeout before any measurement.
    pub rto_initial: Option<Duration>,
    /// Its lower bound.
    pub rto_min: Option<Duration>,
    /// What its lower bound bounds.
    pub rto_min_bounds: Option<RtoBound>,
    /// Its upper bound.
    pub rto_max: Option<Duration>,
    /// The tick of the clock that round trips are measured with; zero: an exact clock.
    pub rto_tick: Option<Duration>,
    /// How far into a tick that clock begins.
    pub rto_phase: Option<Phase>,
    /// The congestion window.
    pub window: Option<PolicySpec>,
}

/// How far into a tick a clock begins.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Phase {
    /// This offset.
    At(Duration),
    /// Drawn from the run's seed.
    Random,
}

/// A window: bytes, or so many segments.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum WindowSize {
    /// Bytes.
    Bytes(u64),
    /// Full segments.
    Packets(u32),
}

impl WindowSize {
    fn bytes(self, segment: u32) -> u64 {
        match self {
            WindowSize::Bytes(bytes) => bytes,
            WindowSize::Packets(packets) => u64::from(packets) * u64::from(segment),
        }
    }
}

impl Default for Tcp {
    /// The standard's TCP.
    fn default() -> Self {
        Tcp {
            variant: Variant::Standard,
            segment_size: None,
            receive_window: None,
            initial_window: None,
            initial_ssthresh: None,
            ack_every: None,
            ack_delay: None,
            sack_blocks: None,
            limited_transmit: None,
            halving: None,
            rto_initial: None,
            rto_min: None,
            rto_min_bounds: None,
            rto_max: None,
            rto_tick: None,
            rto_phase: None,
            window: None,
        }
    }
}

impl Tcp {
    /// The parameters in force, where a packet of the route carries at most `largest` bytes of user data.
    pub fn config(&self, largest: u32) -> TcpConfig {
        let segment = self.segment_size.unwrap_or(largest);
        let defaults = self.variant.defaults(segment);
        let bytes = |size: Option<WindowSize>| size.map(|size| size.bytes(segment));
        let receive_window = bytes(self.receive_window).unwrap_or(defaults.receive_window);
        // ns-2 begins with a threshold of `window_`, whatever its value.
        let initial_ssthresh = defaults.initial_ssthresh.map(|_| receive_window);
        TcpConfig {
            receive_window,
            initial_window: bytes(self.initial_window).unwrap_or(defaults.initial_window),
            initial_ssthresh: bytes(self.initial_ssthresh).or(initial_ssthresh),
            ack_every: self.ack_every.unwrap_or(defaults.ack_every),
            ack_delay: self.ack_delay.unwrap_or(defaults.ack_delay),
            sack_blocks: self.sack_blocks.unwrap_or(defaults.sack_blocks),
            limited_transmit: self.limited_transmit.unwrap_or(defaults.limited_transmit),
            halving: self.halving.unwrap_or(defaults.halving),
            rto_initial: self.rto_initial.unwrap_or(defaults.rto_initial),
            rto_min: self.rto_min.unwrap_or(defaults.rto_min),
            rto_min_bounds: self.rto_min_bounds.unwrap_or(defaults.rto_min_bounds),
            rto_max: self.rto_max.unwrap_or(defaults.rto_max),
            rto_tick: self.rto_tick.unwrap_or(defaults.rto_tick),
            rto_phase: match self.rto_phase {
                None => self.variant.phase(self.rto_tick.unwrap_or(defaults.rto_tick)),
                Some(Phase::At(phase)) => Some(phase),
                Some(Phase::Random) => None,
            },
            window: self.window.clone().unwrap_or(defaults.window),
            ..defaults
        }
    }
}

pub(super) const KEYS: &[Key<Tcp>] = &[
    Key {
        name: "variant",
        takes: "variant",
        default: Unless::Value("\"standard\""),
        doc: "The variant that gives the defaults: `\"standard\"` (RFC 5681, 6298, 6675, 6928), `\"newreno\"` (the same without SACK, RFC 6582), `\"sack1\"` (ns-2 2.35's `Agent/TCP/Sack1`, which counts packets), `\"sack1-2002\"` (the same with `singledup_ 0`, `precisionReduce_ 0`, `minrto_ 1`).",
        read: |tcp, at| {
            let name = at.one_of("variant", &Variant::NAMES.map(|row| row.0))?;
            tcp.variant = Variant::named(name).unwrap_or(tcp.variant);
            Ok(())
        },
    },
    Key {
        name: "segment_size",
        takes: "size",
        default: Unless::Text("what fits one packet"),
        doc: "User data in a segment.",
        read: |tcp, at| at.size32(1..=65_495).map(|size| tcp.segment_size = Some(size)),
    },
    Key {
        name: "receive_window",
        takes: "size or packets",
        default: Unless::Text("`\"1 MiB\"`; in `sack1` `\"20 packets\"`"),
        doc: "The receive buffer, which is also the largest advertised window: `\"64 KiB\"`, or `\"44 packets\"` of `segment_size`; at most 1 GiB.",
        read: |tcp, at| window_size(at).map(|size| tcp.receive_window = Some(size)),
    },
    Key {
        name: "initial_window",
        takes: "size or packets",
        default: Unless::Text("ten segments (RFC 6928); in `sack1` `\"2 packets\"`"),
        doc: "The initial congestion window, at most 1 GiB.",
        read: |tcp, at| window_size(at).map(|size| tcp.initial_window = Some(size)),
    },
    Key {
        name: "initial_ssthresh",
        takes: "size or packets",
        default: Unless::Text("none; in `sack1` `receive_window`"),
        doc: "The initial slow-start threshold.",
        read: |tcp, at| window_size(at).map(|size| tcp.initial_ssthresh = Some(size)),
    },
    Key {
        name: "ack_every",
        takes: "count",
        default: Unless::Text("`2`; in `sack1` `1`"),
        doc: "The number of segments in order that one acknowledgement covers (RFC 5681 §4.2); 1 disables delayed acknowledgements.",
        read: |tcp, at| at.count(1..=u32::MAX).map(|count| tcp.ack_every = Some(count)),
    },
    Key {
        name: "ack_delay",
        takes: "duration",
        default: Unless::Text("`\"200 ms\"`; in `sack1` `\"100 ms\"`"),
        doc: "How long an acknowledgement waits for further segments.",
        read: |tcp, at| at.duration().map(|delay| tcp.ack_delay = Some(delay)),
    },
    Key {
        name: "sack_blocks",
        takes: "count",
        default: Unless::Text("`4`; in `newreno` `0`, in `sack1` `3`"),
        doc: "The largest number of SACK blocks in an acknowledgement (RFC 2018); 0 disables SACK, and NewReno (RFC 6582) repairs losses.",
        read: |tcp, at| at.count(0..=4).map(|count| tcp.sack_blocks = Some(count)),
    },
    Key {
        name: "limited_transmit",
        takes: "boolean",
        default: Unless::Text("`true`; in `sack1-2002` `false`"),
        doc: "Whether the first two duplicate acknowledgements send new data (RFC 3042; ns-2's `singledup_`).",
        read: |tcp, at| at.boolean().map(|on| tcp.limited_transmit = Some(on)),
    },
    Key {
        name: "halving",
        takes: "`\"fraction\"` or `\"whole\"`",
        default: Unless::Text("`\"fraction\"`; in `sack1-2002` `\"whole\"`"),
        doc: "How the window `\"standard\"` is halved: exactly, or in whole segments (ns-2's `precisionReduce_`).",
        read: |tcp, at| {
            let whole = at.one_of("choice", &["fraction", "whole"])? == "whole";
            tcp.halving = Some(if whole { Halving::Whole } else { Halving::Fraction });
            Ok(())
        },
    },
    Key {
        name: "rto_initial",
        takes: "duration",
        default: Unless::Text("`\"1 s\"`; in `sack1` `\"3 s\"`"),
        doc: "The retransmission timeout before the first measurement.",
        read: |tcp, at| positive(at).map(|rto| tcp.rto_initial = Some(rto)),
    },
    Key {
        name: "rto_min",
        takes: "duration",
        default: Unless::Text("`\"1 s\"`; in `sack1` `\"200 ms\"`"),
        doc: "The lower bound of the retransmission timeout.",
        read: |tcp, at| at.duration().map(|rto| tcp.rto_min = Some(rto)),
    },
    Key {
        name: "rto_min_bounds",
        takes: "`\"timeout\"` or `\"variation\"`",
        default: Unless::Text("`\"timeout\"`"),
        doc: "What `rto_min` bounds: the timeout (RFC 6298), or the variation that is added to the smoothed round-trip time, as in Linux, where `rto_min` is 200 ms. Without effect with `rto_tick`.",
        read: |tcp, at| {
            let variation = at.one_of("choice", &["timeout", "variation"])? == "variation";
            tcp.rto_min_bounds = Some(if variation { RtoBound::Variation } else { RtoBound::Timeout });
            Ok(())
        },
    },
    Key {
        name: "rto_max",
        takes: "duration",
        default: Unless::Text("`\"60 s\"`"),
        doc: "The upper bound of the retransmission timeout.",
        read: |tcp, at| positive(at).map(|rto| tcp.rto_max = Some(rto)),
    },
    Key {
        name: "rto_tick",
        takes: "duration",
        default: Unless::Text("`\"0 s\"`: an exact clock; in `sack1` `\"10 ms\"`"),
        doc: "The tick of the clock that measures round trips; the RTT filter then counts in ticks, as with ns-2's `tcpTick_`.",
        read: |tcp, at| at.duration().map(|tick| tcp.rto_tick = Some(tick)),
    },
    Key {
        name: "rto_phase",
        takes: "duration or `\"random\"`",
        default: Unless::Text("in `sack1` 0.55588 of a tick, otherwise `\"random\"`"),
        doc: "The offset of that clock within a tick at the beginning of the run (ns-2's `boot_time_`). It decides how round trips are rounded. The default is the number that ns-2 draws for the first TCP of a script that does not seed its generator; `\"random\"` is drawn from the run's seed. An exact clock has none.",
        read: |tcp, at| phase(at).map(|phase| tcp.rto_phase = Some(phase)),
    },
    Key {
        name: "window",
        takes: "window",
        default: Unless::Text("`\"standard\"`"),
        doc: "The congestion window: `\"standard\"` for the variant's own, or a window policy such as `\"cubic\"`.",
        read: |tcp, at| at.policy().map(|spec| tcp.window = Some(spec)),
    },
];

/// Reads a `[flow.tcp]`.
pub(super) fn tcp(at: &At<'_>, policies: &Policies) -> Result<Tcp> {
    let mut tcp = Tcp::default();
    fill(&mut tcp, at, KEYS)?;
    check(&tcp, at, policies)?;
    Ok(tcp)
}

/// Checks what only several keys together can tell.
pub(super) fn check(tcp: &Tcp, at: &At<'_>, policies: &Policies) -> Result<()> {
    // Neither bound depends on the size of segments.
    let TcpConfig { rto_min: min, rto_max: max, .. } = tcp.config(1);
    if min > max {
        let given = if tcp.rto_min.is_some() { "rto_min" } else { "rto_max" };
        let [min, max] = [min, max].map(written);
        let fix = format!("set `rto_min` to at most {max}, or `rto_max` to at least {min}");
        return Err(at.error_below(given, format!("`rto_min` ({min}) exceeds `rto_max` ({max})")).hint(fix));
    }
    if let Some(spec) = &tcp.window {
        let names: Vec<_> = policies.window_names().collect();
        let made = policies.window(spec, &Config::default());
        made.map(drop).map_err(|error| bad_policy(at, "window", "window", spec, &error, &names))?;
    }
    Ok(())
}

fn phase(at: &At<'_>) -> Result<Phase> {
    if at.string() == Ok("random") { Ok(Phase::Random) } else { at.duration().map(Phase::At) }
}

/// Whether `[flow.tcp]` has this key.
pub(super) fn has_key(key: &str) -> bool {
    KEYS.iter().any(|known| known.name == key)
}

fn window_size(at: &At<'_>) -> Result<WindowSize> {
    at.window().map(|size| match size {
        Amount::Packets(packets) => WindowSize::Packets(packets),
        Amount::Bytes(bytes) => WindowSize::Bytes(bytes),
    })
}

fn positive(at: &At<'_>) -> Result<Duration> {
    match at.duration()? {
        Duration::ZERO => Err(at.error("it cannot be zero").hint("write it as \"1 s\"")),
        duration => Ok(duration),
    }
}
