//! `[[channel]]`, with `[channel.dcf]` and its reception.

use super::Amount;
use super::at::{At, Result};
use super::keys::{Default, Key, fill};

/// Radios that share the air, by the rules of IEEE 802.11.
#[derive(Clone, PartialEq, Debug)]
pub struct Channel {
    /// Its name, unique among channels and links.
    pub name: String,
    /// How reception is decided.
    pub reception: Reception,
    /// The distributed coordination function of its stations.
    pub dcf: Dcf,
}

/// Whether a frame is heard, read or spoiled.
#[derive(Clone, PartialEq, Debug)]
pub enum Reception {
    /// By distance.
    Range(Ranges),
    /// By the sum of powers.
    Power(Powers),
}

/// Distances in metres.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Ranges {
    /// A frame is read up to here.
    pub decode: f64,
    /// A frame makes the medium busy up to here.
    pub sense: f64,
    /// A frame spoils others up to here.
    pub interfere: f64,
    /// The frame that is received survives another that is weaker by so many dB (40 log10 of the distances);
    /// `None`: no other.
    pub capture: Option<f64>,
}

/// Powers and thresholds.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Powers {
    /// How power falls with distance.
    pub propagation: Propagation,
    /// Hz.
    pub frequency: f64,
    /// Metres of antennas above the ground, for two-ray propagation.
    pub height: f64,
    /// The exponent of log-distance propagation.
    pub exponent: f64,
    /// dBm sent.
    pub transmit: f64,
    /// dB lost at any distance.
    pub loss: f64,
    /// dBm of noise.
    pub noise: f64,
    /// dB by which a frame that is read exceeds noise and all other signals.
    pub sinr: f64,
    /// dB by which a frame whose beginning is noticed exceeds them.
    pub header: f64,
    /// dBm of noise and signals that make the medium busy.
    pub busy: f64,
    /// dBm below which a signal does not count.
    pub cutoff: f64,
}

/// How power falls with distance.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Propagation {
    /// With its square.
    FreeSpace,
    /// As in free space, and with the fourth power beyond the crossover distance.
    TwoRay,
    /// With any power of it.
    LogDistance,
}

/// Parameters of the distributed coordination function.
#[derive(Clone, PartialEq, Debug)]
pub struct Dcf {
    /// Interframe spaces, slots and preambles.
    pub timing: Timing,
    /// Bit/s of DATA.
    pub rate: u64,
    /// Bit/s of RTS, CTS and ACK.
    pub control_rate: u64,
    /// Frames longer than this are announced by RTS; `None`: none is.
    pub rts_threshold: Option<u32>,
    /// Attempts of an RTS, or of DATA without RTS.
    pub short_retry: u32,
    /// Attempts of DATA after CTS.
    pub long_retry: u32,
    /// The least contention window in slots; `None`: that of the timing.
    pub cw_min: Option<u32>,
    /// The largest.
    pub cw_max: u32,
    /// Whether a NAV set by an RTS ends when no frame follows it.
    pub nav_reset: bool,
    /// Bytes between the MAC header and the IP packet.
    pub llc: u32,
    /// The capacity of each radio's queue, without the packet in service.
    pub queue: Amount,
}

/// A physical layer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Timing {
    /// 802.11a.
    A,
    /// 802.11b, long preamble.
    B,
    /// 802.11g alone.
    G,
}

impl std::default::Default for Dcf {
    fn default() -> Self {
        Dcf {
            timing: Timing::B,
            rate: 2_000_000,
            control_rate: 2_000_000,
            rts_threshold: Some(0),
            short_retry: 7,
            long_retry: 4,
            cw_min: None,
            cw_max: 1023,
            nav_reset: false,
            llc: 0,
            queue: Amount::Packets(50),
        }
    }
}

impl std::default::Default for Ranges {
    fn default() -> Self {
        Ranges { decode: 370.0, sense: 520.0, interfere: 812.0, capture: None }
    }
}

impl std::default::Default for Powers {
    fn default() -> Self {
        Powers {
            propagation: Propagation::TwoRay,
            frequency: 2.4e9,
            height: 1.5,
            exponent: 3.0,
            transmit: 15.0,
            loss: 6.94,
            noise: -101.27,
            sinr: 13.65,
            header: 7.65,
            busy: -93.0,
            cutoff: -111.0,
        }
    }
}

impl Powers {
    /// A key that has another value than its default although the propagation does not use it, and the propagation that
    /// does.
    pub(crate) fn unused(&self) -> Option<(&'static str, &'static str)> {
        let default = Powers::default();
        match self.propagation {
            Propagation::FreeSpace | Propagation::LogDistance if self.height != default.height => {
                Some(("height", "two-ray"))
            }
            Propagation::FreeSpace | Propagation::TwoRay if self.exponent != default.exponent => {
                Some(("exponent", "log-distance"))
            }
            _ => None,
        }
    }
}

pub(super) const CHANNEL_KEYS: &[Key<Channel>] = &[
    Key {
        name: "name",
        takes: "name",
        default: Default::Required,
        doc: "The name that nodes, paths and results use; unique among channels and links.",
        read: |channel, at| at.name().map(|name| channel.name = name),
    },
    Key {
        name: "reception",
        takes: "`\"range\"`, `\"power\"`, or a table",
        default: Default::Value("\"range\""),
        doc: "The reception model: by distance, or by the sum of powers; with its keys: `{ name = \"range\", decode = \"370 m\" }`.",
        read: |channel, at| reception(at).map(|reception| channel.reception = reception),
    },
    Key {
        name: "dcf",
        takes: "table",
        default: Default::Text("that of `[channel.dcf]`"),
        doc: "The parameters of the DCF.",
        read: |channel, at| dcf(at).map(|dcf| channel.dcf = dcf),
    },
];

/// Reads a `[[channel]]`.
pub(super) fn channel(at: &At<'_>) -> Result<Channel> {
    let reception = Reception::Range(Ranges::default());
    let mut channel = Channel { name: String::new(), reception, dcf: Dcf::default() };
    fill(&mut channel, at, CHANNEL_KEYS)?;
    Ok(channel)
}

fn reception(at: &At<'_>) -> Result<Reception> {
    const NAMES: &[&str] = &["range", "power"];
    if at.string().is_ok() {
        return Ok(match at.one_of("reception", NAMES)? {
            "range" => Reception::Range(Ranges::default()),
            _ => Reception::Power(Powers::default()),
        });
    }
    at.entries().map_err(|error| error.hint("for example { name = \"range\", decode = \"370 m\" }"))?;
    let Some(name) = at.get("name") else {
        return Err(at.error("the `name` of the reception is missing").hint("name = \"range\" or \"power\""));
    };
    match name.one_of("reception", NAMES)? {
        "range" => ranges(at).map(Reception::Range),
        _ => {
            let mut powers = Powers::default();
            fill(&mut powers, at, POWER_KEYS)?;
            if powers.busy <= powers.noise {
                let Powers { busy, noise, .. } = powers;
                let message = format!("`busy`, {busy} dBm, is not above `noise`, {noise} dBm");
                let key = if at.get("busy").is_some() { "busy" } else { "noise" };
                let hint = "noise alone would keep the medium busy: raise `busy`, or lower `noise`";
                return Err(at.error_below(key, message).hint(hint));
            }
            match powers.unused() {
                None => Ok(Reception::Power(powers)),
                Some((key, user)) => Err(at
                    .error_below(key, format!("`{key}` is for `\"{user}\"` alone"))
                    .hint(format!("remove it, or set `propagation = \"{user}\"`"))),
            }
        }
    }
}

fn ranges(at: &At<'_>) -> Result<Ranges> {
    let mut ranges = Ranges::default();
    fill(&mut ranges, at, RANGE_KEYS)?;
    let Ranges { decode, sense, interfere, .. } = ranges;
    let order = [("sense", sense, "decode", decode), ("interfere", interfere, "sense", sense)];
    match order.into_iter().find(|(_, farther, _, nearer)| farther < nearer) {
        None => Ok(ranges),
        Some((key, farther, than, nearer)) => Err(at
            .error_below(key, format!("`{key}`, {farther} m, is below `{than}`, {nearer} m"))
            .hint(format!(
                "what can be read can be sensed, and what can be sensed interferes: at least {nearer} m"
            ))),
    }
}

fn named<T>(_: &mut T, _: &At<'_>) -> Result<()> {
    Ok(())
}

pub(super) const RANGE_KEYS: &[Key<Ranges>] = &[
    Key {
        name: "name",
        takes: "`\"range\"`",
        default: Default::Required,
        doc: "Reception by distance.",
        read: named,
    },
    Key {
        name: "decode",
        takes: "length",
        default: Default::Value("\"370 m\""),
        doc: "Frames can be decoded up to this distance.",
        read: |ranges, at| at.length().map(|metres| ranges.decode = metres),
    },
    Key {
        name: "sense",
        takes: "length",
        default: Default::Value("\"520 m\""),
        doc: "Frames make the medium busy up to this distance; after a frame that cannot be decoded, a station waits EIFS.",
        read: |ranges, at| at.length().map(|metres| ranges.sense = metres),
    },
    Key {
        name: "interfere",
        takes: "length",
        default: Default::Value("\"812 m\""),
        doc: "Frames interfere with the reception of others up to this distance.",
        read: |ranges, at| at.length().map(|metres| ranges.interfere = metres),
    },
    Key {
        name: "capture",
        takes: "dB or `\"off\"`",
        default: Default::Value("\"off\""),
        doc: "The frame being received survives an interfering frame that is weaker by at least this much, computed as 40 log10 of the ratio of distances; so does a frame that begins while others are on the air and the radio receives none of them. 10 dB is ns-2's threshold.",
        read: |ranges, at| {
            ranges.capture =
                if at.string() == Ok("off") { None } else { Some(at.decibels("dB", 0.0..=200.0)?) };
            Ok(())
        },
    },
];

pub(super) const POWER_KEYS: &[Key<Powers>] = &[
    Key {
        name: "name",
        takes: "`\"power\"`",
        default: Default::Required,
        doc: "Reception by the sum of powers.",
        read: named,
    },
    Key {
        name: "propagation",
        takes: "`\"two-ray\"`, `\"free-space\"`, `\"log-distance\"`",
        default: Default::Value("\"two-ray\""),
        doc: "The propagation model: power falls with the square of the distance, with its fourth power beyond the crossover distance, or with `exponent` beyond 1 m.",
        read: |powers, at| {
            powers.propagation = match at.one_of("propagation", &["two-ray", "free-space", "log-distance"])? {
                "two-ray" => Propagation::TwoRay,
                "free-space" => Propagation::FreeSpace,
                _ => Propagation::LogDistance,
            };
            Ok(())
        },
    },
    Key {
        name: "frequency",
        takes: "frequency",
        default: Default::Value("\"2.4 GHz\""),
        doc: "The frequency of the carrier.",
        read: |powers, at| at.frequency().map(|hertz| powers.frequency = hertz),
    },
    Key {
        name: "height",
        takes: "length",
        default: Default::Value("\"1.5 m\""),
        doc: "The height of the antennas above the ground, for `\"two-ray\"` alone.",
        read: |powers, at| at.length().map(|metres| powers.height = metres),
    },
    Key {
        name: "exponent",
        takes: "number",
        default: Default::Value("3.0"),
        doc: "The exponent of `\"log-distance\"`, for that alone.",
        read: |powers, at| at.fraction(1.0..=10.0).map(|exponent| powers.exponent = exponent),
    },
    Key {
        name: "transmit",
        takes: "dBm",
        default: Default::Value("\"15 dBm\""),
        doc: "The transmission power.",
        read: |powers, at| at.decibels("dBm", -50.0..=60.0).map(|power| powers.transmit = power),
    },
    Key {
        name: "loss",
        takes: "dB",
        default: Default::Value("\"6.94 dB\""),
        doc: "A loss that does not depend on distance: antennas, cables, shadowing.",
        read: |powers, at| at.decibels("dB", 0.0..=100.0).map(|loss| powers.loss = loss),
    },
    Key {
        name: "noise",
        takes: "dBm",
        default: Default::Value("\"-101.27 dBm\""),
        doc: "The power of the background noise.",
        read: |powers, at| at.decibels("dBm", -200.0..=0.0).map(|noise| powers.noise = noise),
    },
    Key {
        name: "sinr",
        takes: "dB",
        default: Default::Value("\"13.65 dB\""),
        doc: "The SINR needed to decode a frame. A frame that exceeds noise and all other signals by this much captures the receiver.",
        read: |powers, at| at.decibels("dB", 0.0..=100.0).map(|sinr| powers.sinr = sinr),
    },
    Key {
        name: "header",
        takes: "dB",
        default: Default::Value("\"7.65 dB\""),
        doc: "The SINR needed to detect the preamble of a frame.",
        read: |powers, at| at.decibels("dB", -20.0..=100.0).map(|header| powers.header = header),
    },
    Key {
        name: "busy",
        takes: "dBm",
        default: Default::Value("\"-93 dBm\""),
        doc: "The total power of noise and signals from which the medium counts as busy.",
        read: |powers, at| at.decibels("dBm", -200.0..=0.0).map(|busy| powers.busy = busy),
    },
    Key {
        name: "cutoff",
        takes: "dBm",
        default: Default::Value("\"-111 dBm\""),
        doc: "Signals weaker than this are ignored; a lower value gives each station more neighbours and makes the run slower.",
        read: |powers, at| at.decibels("dBm", -200.0..=0.0).map(|cutoff| powers.cutoff = cutoff),
    },
];

pub(super) const DCF_KEYS: &[Key<Dcf>] = &[
    Key {
        name: "timing",
        takes: "`\"802.11a\"`, `\"802.11b\"` or `\"802.11g\"`",
        default: Default::Value("\"802.11b\""),
        doc: "The slots, interframe spaces and preambles: 802.11b with long preambles, 802.11g without 802.11b stations.",
        read: |dcf, at| {
            dcf.timing = match at.one_of("timing", &["802.11a", "802.11b", "802.11g"])? {
                "802.11a" => Timing::A,
                "802.11b" => Timing::B,
                _ => Timing::G,
            };
            Ok(())
        },
    },
    Key {
        name: "rate",
        takes: "rate",
        default: Default::Value("\"2 Mbit/s\""),
        doc: "The rate of DATA frames; one of the rates of `timing`.",
        read: |dcf, at| at.rate().map(|rate| dcf.rate = rate),
    },
    Key {
        name: "control_rate",
        takes: "rate",
        default: Default::Value("\"2 Mbit/s\""),
        doc: "The rate of RTS, CTS and ACK frames; one of the rates of `timing`, and at most `rate` (IEEE 802.11 §9.6). The default is `rate` if that is lower.",
        read: |dcf, at| at.rate().map(|rate| dcf.control_rate = rate),
    },
    Key {
        name: "rts_threshold",
        takes: "size or `\"off\"`",
        default: Default::Value("\"0 B\""),
        doc: "DATA frames longer than this, MAC header and check sequence included, use RTS and CTS.",
        read: |dcf, at| {
            let off = at.string() == Ok("off");
            dcf.rts_threshold = if off { None } else { Some(at.size32(0..=65_535)?) };
            Ok(())
        },
    },
    Key {
        name: "short_retry",
        takes: "count",
        default: Default::Value("7"),
        doc: "The number of attempts of an RTS, or of DATA without RTS, before the packet is dropped.",
        read: |dcf, at| at.count(1..=255u32).map(|attempts| dcf.short_retry = attempts),
    },
    Key {
        name: "long_retry",
        takes: "count",
        default: Default::Value("4"),
        doc: "The number of attempts of DATA after CTS before the packet is dropped.",
        read: |dcf, at| at.count(1..=255u32).map(|attempts| dcf.long_retry = attempts),
    },
    Key {
        name: "cw_min",
        takes: "count",
        default: Default::Text("31 in 802.11b, 15 in 802.11a and 802.11g"),
        doc: "The smallest contention window: a backoff lasts from 0 to this number of slots.",
        read: |dcf, at| at.count(0..=65_535u32).map(|slots| dcf.cw_min = Some(slots)),
    },
    Key {
        name: "cw_max",
        takes: "count",
        default: Default::Value("1023"),
        doc: "The largest contention window; each failure doubles the window up to this value.",
        read: |dcf, at| at.count(0..=65_535u32).map(|slots| dcf.cw_max = slots),
    },
    Key {
        name: "nav_reset",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether a station that has heard an RTS, but no frame after the CTS, resets its NAV.",
        read: |dcf, at| at.boolean().map(|reset| dcf.nav_reset = reset),
    },
    Key {
        name: "llc",
        takes: "size",
        default: Default::Value("\"0 B\""),
        doc: "The size of the headers between the MAC header and the IP packet: 8 bytes with LLC and SNAP.",
        read: |dcf, at| at.size32(0..=255).map(|bytes| dcf.llc = bytes),
    },
    Key {
        name: "queue",
        takes: "packets or size",
        default: Default::Value("\"50 packets\""),
        doc: "The capacity of the drop-tail queue of each radio, without the packet in service.",
        read: |dcf, at| at.amount().map(|queue| dcf.queue = queue),
    },
];

fn dcf(at: &At<'_>) -> Result<Dcf> {
    let mut dcf = Dcf::default();
    fill(&mut dcf, at, DCF_KEYS)?;
    if at.get("control_rate").is_none() {
        dcf.control_rate = dcf.control_rate.min(dcf.rate);
    }
    let timing = dcf.timing.constants();
    if dcf.cw_min() > dcf.cw_max {
        let message = format!("`cw_min`, {}, is above `cw_max`, {}", dcf.cw_min(), dcf.cw_max);
        return Err(at
            .error_below("cw_min", message)
            .hint("the window grows from cw_min to cw_max: lower the one or raise the other"));
    }
    for (key, rate) in [("rate", dcf.rate), ("control_rate", dcf.control_rate)] {
        if !timing.rates().contains(&rate) {
            let rates: Vec<_> = timing.rates().iter().map(|rate| format!("{}", *rate as f64 / 1e6)).collect();
            let message = format!("{} Mbit/s is no rate of this timing", rate as f64 / 1e6);
            return Err(at
                .error_below(key, message)
                .hint(format!("its rates are {} Mbit/s", rates.join(", "))));
        }
    }
    if dcf.control_rate > dcf.rate {
        let [control, rate] = [dcf.control_rate, dcf.rate].map(|rate| rate as f64 / 1e6);
        let message = format!("`control_rate`, {control} Mbit/s, is above `rate`, {rate} Mbit/s");
        let fix = format!("an ACK is not faster than its DATA: set control_rate = \"{rate} Mbit/s\"");
        return Err(at.error_below("control_rate", message).hint(fix));
    }
    Ok(dcf)
}

impl Timing {
    /// Its constants.
    pub(crate) fn constants(self) -> crate::medium::wireless::Timing {
        match self {
            Timing::A => crate::medium::wireless::A,
            Timing::B => crate::medium::wireless::B,
            Timing::G => crate::medium::wireless::G,
        }
    }
}

impl Dcf {
    /// The least contention window that holds.
    pub fn cw_min(&self) -> u32 {
        self.cw_min.unwrap_or(self.timing.constants().windows[0])
    }
}
