//! Socket options and `sysctl` names as changes of the stack's parameters.

use anabranch_proto::mechanisms::OutOfTheBlue;
use anabranch_proto::{Config, Duration, Reliability};

use super::ast::Expr;
use super::options;
use super::socket::CallFault;

/// Flags of a message to send. The first also applies to a received message (RFC 6458 §5.3.4).
pub(super) const UNORDERED: i128 = 1;
pub(super) const EOF: i128 = 0x100;
pub(super) const ABORT: i128 = 0x200;
pub(super) const SACK_IMMEDIATELY: i128 = 0x400;
/// Flags of a received message.
pub(super) const MSG_EOR: i128 = 0x80;
pub(super) const MSG_NOTIFICATION: i128 = 0x8000;

/// The effect of an option beyond a change of parameters.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum OptionEffect {
    Nothing,
    /// SCTP_DEFAULT_PRINFO: the reliability of messages.
    Reliability(Reliability),
    /// SO_LINGER with a time of zero: `close` aborts.
    Linger(bool),
}

/// A constant of the socket interface.
fn constant(word: &str) -> Option<i128> {
    Some(match word {
        "NULL" | "F_GETOWN" => 0,
        "O_RDWR" => 2,
        "O_NONBLOCK" => 0x800,
        "SPP_HB_ENABLE" => 1,
        "SPP_HB_DISABLE" => 2,
        "SPP_HB_DEMAND" => 4,
        "SPP_PMTUD_ENABLE" => 8,
        "SPP_PMTUD_DISABLE" => 16,
        "SPP_SACKDELAY_ENABLE" => 32,
        "SPP_SACKDELAY_DISABLE" => 64,
        "SCTP_STREAM_RESET_INCOMING" => 1,
        "SCTP_STREAM_RESET_OUTGOING" => 2,
        "SCTP_ENABLE_RESET_STREAM_REQ" => 1,
        "SCTP_ENABLE_RESET_ASSOC_REQ" => 2,
        "SCTP_ENABLE_CHANGE_ASSOC_REQ" => 4,
        "SCTP_UNORDERED" => UNORDERED,
        "SCTP_EOF" => EOF,
        "SCTP_ABORT" => ABORT,
        "SCTP_SACK_IMMEDIATELY" => SACK_IMMEDIATELY,
        "SCTP_SEND_SNDINFO_VALID" => 1,
        "SCTP_SEND_PRINFO_VALID" => 2,
        "SCTP_SEND_AUTHINFO_VALID" => 4,
        "SCTP_DATA_UNSENT" => 1,
        "SCTP_DATA_SENT" => 2,
        "SCTP_STREAM_RESET_INCOMING_SSN" => 1,
        "SCTP_STREAM_RESET_OUTGOING_SSN" => 2,
        "SCTP_STREAM_RESET_DENIED" | "SCTP_ASSOC_RESET_DENIED" | "SCTP_STREAM_CHANGE_DENIED" => 4,
        "SCTP_STREAM_RESET_FAILED" | "SCTP_ASSOC_RESET_FAILED" | "SCTP_STREAM_CHANGE_FAILED" => 8,
        "MSG_EOR" => MSG_EOR,
        "MSG_NOTIFICATION" => MSG_NOTIFICATION,
        _ => return None,
    })
}

/// The value of a number or of constants joined by `|`.
pub(super) fn number(expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Integer(n) => Some(*n),
        Expr::Word(word) => constant(word),
        Expr::Or(all) => all.iter().try_fold(0, |sum, one| Some(sum | number(one)?)),
        _ => None,
    }
}

/// Prints an expression.
pub(super) fn show(expr: &Expr) -> String {
    let join = |all: &[Expr], with: &str| all.iter().map(show).collect::<Vec<_>>().join(with);
    match expr {
        Expr::Any => "...".to_owned(),
        Expr::Integer(n) => n.to_string(),
        Expr::Word(word) => word.clone(),
        Expr::Text(text) => format!("{text:?}"),
        Expr::Ip(ip) => ip.to_string(),
        Expr::List(all) => format!("[{}]", join(all, ", ")),
        Expr::Or(all) => join(all, "|"),
        Expr::Range(low, high) => format!("{low}~{high}"),
        Expr::Fields(fields) => {
            let fields: Vec<_> = fields.iter().map(|(key, value)| format!("{key}={}", show(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

/// The fields of an option's structure. Those that are nonzero numbers change a setting; zeros leave it unchanged.
pub(super) struct Fields<'e>(&'e [(String, Expr)]);

impl<'e> Fields<'e> {
    pub(super) fn of(name: &str, value: &'e Expr, known: &[&str]) -> Result<Self, CallFault> {
        let Expr::Fields(fields) = value else {
            return Err(CallFault::Wrong(format!("{name} takes a structure {{field=value, ...}}")));
        };
        match fields.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            Some((key, _)) => {
                Err(CallFault::Wrong(format!("{name} has no field `{key}`: {}", known.join(", "))))
            }
            None => Ok(Fields(fields)),
        }
    }

    /// A number, or 0 if the field is missing.
    pub(super) fn number(&self, key: &str) -> Result<i128, CallFault> {
        let Some(value) = self.expr(key) else { return Ok(0) };
        number(value).ok_or_else(|| CallFault::Wrong(format!("{key} takes a number, not {}", show(value))))
    }

    /// A number that is not zero.
    pub(super) fn get(&self, key: &str) -> Result<Option<u32>, CallFault> {
        let Some((_, value)) = self.0.iter().find(|(name, _)| name == key) else { return Ok(None) };
        match number(value).map(u32::try_from) {
            Some(Ok(0)) => Ok(None),
            Some(Ok(n)) => Ok(Some(n)),
            _ if *value == Expr::Any => Ok(None),
            _ => Err(CallFault::Wrong(format!("{key} takes a number, not {}", show(value)))),
        }
    }

    pub(super) fn millis(&self, key: &str) -> Result<Option<Duration>, CallFault> {
        Ok(self.get(key)?.map(|ms| Duration::from_millis(ms.into())))
    }

    /// The value of a field, if it is present.
    pub(super) fn expr(&self, key: &str) -> Option<&'e Expr> {
        self.0.iter().find(|(name, value)| name == key && *value != Expr::Any).map(|(_, value)| value)
    }
}

fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn small(n: Option<u32>) -> Option<u16> {
    n.map(|n| u16::try_from(n).unwrap_or(u16::MAX))
}

/// Changes the parameters as `setsockopt` with the option `name` does.
pub(super) fn set(
    name: &str,
    value: &Expr,
    config: &mut Config,
    also: &mut OptionEffect,
) -> Result<(), CallFault> {
    match name {
        "SCTP_RTOINFO" => {
            let fields = Fields::of(name, value, &["srto_assoc_id", "srto_initial", "srto_max", "srto_min"])?;
            put(&mut config.rto_initial, fields.millis("srto_initial")?);
            put(&mut config.rto_max, fields.millis("srto_max")?);
            put(&mut config.rto_min, fields.millis("srto_min")?);
        }
        "SCTP_INITMSG" => {
            let known =
                ["sinit_num_ostreams", "sinit_max_instreams", "sinit_max_attempts", "sinit_max_init_timeo"];
            let fields = Fields::of(name, value, &known)?;
            put(&mut config.outbound_streams, small(fields.get(known[0])?));
            put(&mut config.inbound_streams, small(fields.get(known[1])?));
            put(&mut config.max_init_retransmits, fields.get(known[2])?);
            put(&mut config.max_init_timeout, fields.millis(known[3])?.map(Some));
        }
        "SCTP_ASSOCINFO" => {
            let known = [
                "sasoc_assoc_id",
                "sasoc_asocmaxrxt",
                "sasoc_number_peer_destinations",
                "sasoc_peer_rwnd",
                "sasoc_local_rwnd",
                "sasoc_cookie_life",
            ];
            let fields = Fields::of(name, value, &known)?;
            put(&mut config.association_max_retrans, fields.get("sasoc_asocmaxrxt")?);
            put(&mut config.cookie_life, fields.millis("sasoc_cookie_life")?);
        }
        "SCTP_DELAYED_SACK" => {
            let fields = Fields::of(name, value, &["sack_assoc_id", "sack_delay", "sack_freq"])?;
            put(&mut config.sack_delay, fields.millis("sack_delay")?);
            put(&mut config.sack_every, fields.get("sack_freq")?);
        }
        "SO_LINGER" => {
            let fields = Fields::of(name, value, &["l_onoff", "l_linger"])?;
            *also =
                OptionEffect::Linger(fields.get("l_onoff")?.is_some() && fields.get("l_linger")?.is_none());
        }
        "SO_RCVBUF" => put(&mut config.receive_buffer, one(value)),
        "SO_SNDBUF" => put(&mut config.send_buffer, one(value).map(|n| Some(n.into()))),
        // Small messages are never delayed here.
        "SCTP_NODELAY" => {}
        "SCTP_DEFAULT_PRINFO" => *also = OptionEffect::Reliability(options::reliability(value)?),
        name => match options::switch(name, &mut config.extensions) {
            Some(on) => *on = switched(name, value)?,
            None => return Err(CallFault::Unsupported(format!("the socket option {name}"))),
        },
    }
    Ok(())
}

/// Whether {assoc_value=n}, or a number, is nonzero.
fn switched(name: &str, value: &Expr) -> Result<bool, CallFault> {
    match value {
        Expr::Fields(_) => {
            Ok(Fields::of(name, value, &["assoc_id", "assoc_value"])?.get("assoc_value")?.is_some())
        }
        other => one(other).map(|n| n > 0).ok_or_else(|| {
            CallFault::Wrong(format!("{name} takes {{assoc_value=...}}, not {}", show(other)))
        }),
    }
}

/// The value of an option with one number, with or without brackets.
pub(super) fn one(value: &Expr) -> Option<u32> {
    let value = match value {
        Expr::List(list) => list.first()?,
        other => other,
    };
    number(value).and_then(|n| u32::try_from(n).ok())
}

/// Changes the parameters as `sysctl NAME=VALUE` does. Switches of unsupported extensions and unknown names have no
/// effect.
pub(super) fn sysctl(name: &str, value: u64, config: &mut Config) {
    let millis = Duration::from_millis(value);
    let count = u32::try_from(value).unwrap_or(u32::MAX);
    match name.strip_prefix("net.inet.sctp.").unwrap_or(name) {
        "heartbeat_interval" => config.heartbeat_interval = (value > 0).then_some(millis),
        "rto_initial" => config.rto_initial = millis,
        "rto_min" => config.rto_min = millis,
        "rto_max" => config.rto_max = millis,
        "init_rto_max" => config.max_init_timeout = Some(millis),
        "valid_cookie_life" => config.cookie_life = millis,
        "init_rtx_max" => config.max_init_retransmits = count,
        "assoc_rtx_max" => config.association_max_retrans = count,
        "path_rtx_max" => config.path_max_retrans = count,
        "delayed_sack_time" => config.sack_delay = millis,
        "sack_freq" => config.sack_every = count,
        "pr_enable" => config.extensions.partial_reliability = value > 0,
        "reconfig_enable" => config.extensions.reconfiguration = value > 0,
        "asconf_enable" => config.extensions.addresses = value > 0,
        "auth_enable" => config.extensions.authentication = value > 0,
        "auth_disable" => config.extensions.authentication = value == 0,
        "idata_enable" => config.extensions.interleaving = value > 0,
        "ecn_enable" => config.extensions.ecn = value > 0,
        // 1 applies to INITs only. This setting does not distinguish that.
        "blackhole" => {
            config.mechanisms.out_of_the_blue =
                if value > 1 { OutOfTheBlue::Silent } else { OutOfTheBlue::Abort }
        }
        _ => {}
    }
}
