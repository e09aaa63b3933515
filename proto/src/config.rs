//! The parameters of an endpoint (RFC 9260 §16) and the choice of its policies.

use std::ops::{Deref, DerefMut};

use bytes::Bytes;

use crate::control::rtt::RtoLimits;
use crate::extension::Extensions;
use crate::mechanisms::{self, Mechanisms};
use crate::parameters::Parameters;
use crate::policy::PolicySpec;
use crate::rules::Rules;
use crate::wire::{Address, LocalAddress};
use crate::{Duration, written};

/// The longest duration, 146 years: sums of a few are still times that come.
const LONGEST: Duration = Duration::from_nanos((1 << 62) - 1);
/// The largest send buffer, in bytes: with a message of any size it can still be counted.
const LARGEST_BUFFER: u64 = 1_000_000_000_000_000_000;

/// The configuration of an endpoint. `Default` gives RFC 9260's values.
///
/// These fields, [`Rules`] and [`Mechanisms`] included, are fixed when an association begins, because an association
/// keeps copies of parts of them. Only [`Parameters`] can be changed later
/// ([`Endpoint::reconfigure`](crate::Endpoint::reconfigure)).
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// The local addresses, in order; the first is the first to be used. At least one.
    pub addresses: Vec<LocalAddress>,
    /// The local SCTP port; not zero.
    pub port: u16,
    /// The rules: decisions in which the editions of the standard differ.
    pub rules: Rules,
    /// The mechanisms: choices in which the editions do not differ.
    pub mechanisms: Mechanisms,
    /// Which pairs of addresses are paths.
    pub pairs: Pairs,
    /// The route of new data; default `primary`.
    pub new_data: PolicySpec,
    /// The route of fast retransmissions; default `same`.
    pub fast: PolicySpec,
    /// The route of retransmissions after a timeout; default `alternate`.
    pub timeout: PolicySpec,
    /// The congestion window of each path; default `standard`.
    pub window: PolicySpec,
    /// Valid.Cookie.Life.
    pub cookie_life: Duration,
    /// Whether a failed path is also probed from the other local addresses, and moves to the first address that gets
    /// an answer; with [`Pairs::OnePerPeer`]. The path returns to the address on the peer's link when that address
    /// gets an answer again.
    pub rehome: bool,
    /// The receive buffer, in bytes of DATA chunks; at least 1,500.
    pub receive_buffer: u32,
    /// The largest congestion window of each path in bytes, in the order of the paths. The last value holds for all
    /// further paths. Empty: no limit.
    pub max_cwnd: Vec<u64>,
    /// The ssthresh of a new path, in bytes; `None`: unlimited.
    pub initial_ssthresh: Option<u64>,
    /// The number of outbound streams, at least 1.
    pub outbound_streams: u16,
    /// The largest number of inbound streams, at least 1.
    pub inbound_streams: u16,
    /// The largest number of associations. Further peers are refused (out of resource).
    pub max_associations: u32,
    /// Whether the MTU of each path is found by probes, from 1,200 bytes up to `mtu` (RFC 8899).
    pub mtu_discovery: bool,
    /// Bytes of IP header before every packet, counted in the MTU: 20, or 40 for IPv6.
    pub ip_header: u32,
    /// The first TSN of every association; `None`: random. For tests of the wrap.
    pub first_tsn: Option<u32>,
    /// The first SSN of every stream: 0 by the standard. For tests of the wrap; both ends must agree.
    pub first_ssn: u16,
    /// The extensions offered to peers; default: none.
    pub extensions: Extensions,
    /// Chunk types that are accepted only if they are authenticated; needs the extension. ASCONF and ASCONF-ACK
    /// always belong to them.
    pub authenticated_chunks: Vec<u8>,
    /// The endpoint pair shared key (RFC 4895 §6.1), which the peer needs too; `None`: the empty key. With the empty
    /// key, anyone who saw the handshake can authenticate.
    pub shared_key: Option<SharedKey>,
    /// The parameters that may also change while an association lives. Their fields can be used as if they were
    /// fields of `Config`.
    pub parameters: Parameters,
}

/// A key that both ends received by other means. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKey {
    /// Shared Key Identifier.
    pub id: u16,
    /// The key; any length.
    pub secret: Bytes,
}

impl std::fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Which pairs of a local and a peer address are paths.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Pairs {
    /// One path per peer address (RFC 9260 counts by destination). The local address is on the same link as the peer
    /// address if there is one; otherwise it has the same position in its list. If that pair is not confirmed, the
    /// next local address is tried.
    #[default]
    OnePerPeer,
    /// Every pair of the same address family.
    All,
    /// Exactly these pairs.
    Listed(Vec<(Address, Address)>),
}

impl Deref for Config {
    type Target = Parameters;

    fn deref(&self) -> &Parameters {
        &self.parameters
    }
}

impl DerefMut for Config {
    fn deref_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            addresses: Vec::new(),
            port: 5000,
            rules: Rules::RFC9260,
            mechanisms: Mechanisms::default(),
            pairs: Pairs::OnePerPeer,
            new_data: PolicySpec::named("primary"),
            fast: PolicySpec::named("same"),
            timeout: PolicySpec::named("alternate"),
            window: PolicySpec::named("standard"),
            cookie_life: Duration::from_secs(60),
            rehome: false,
            receive_buffer: 1 << 20,
            max_cwnd: Vec::new(),
            initial_ssthresh: None,
            outbound_streams: 16,
            inbound_streams: 1024,
            max_associations: 1 << 16,
            mtu_discovery: false,
            ip_header: 20,
            first_tsn: None,
            first_ssn: 0,
            extensions: Extensions::default(),
            authenticated_chunks: Vec::new(),
            shared_key: None,
            parameters: Parameters::default(),
        }
    }
}

impl Config {
    /// The parameters of an era: its rules, its RTO.Initial and its default retransmission policy.
    ///
    /// RTO.Initial is 3 s in RFC 2960 and 4960 and in ns-2, 1 s in RFC 9260 (§16). All retransmissions go
    /// to an alternate path in RFC 2960 §6.4 and ns-2, only timed-out ones in RFC 4960 and 9260 §6.4.
    /// HB.Max.Burst came with RFC 4960.
    pub fn era(name: &str) -> Option<Config> {
        let rules = Rules::era(name)?;
        let (rto_initial, fast, heartbeat_max_burst) = match name {
            "rfc9260" => (1, "same", 1),
            "rfc4960" => (3, "same", 1),
            _ => (3, "alternate", u32::MAX),
        };
        let rto_initial = Duration::from_secs(rto_initial);
        let parameters = Parameters { rto_initial, heartbeat_max_burst, ..Parameters::default() };
        Some(Config { rules, parameters, fast: PolicySpec::named(fast), ..Config::default() })
    }

    /// Concurrent multipath transfer: new data on all active paths (`round-robin`), retransmissions by `rtx-cwnd`,
    /// and the mechanisms and rules of the table [`CMT`](mechanisms::CMT). The rules must be those of an era.
    pub fn with_cmt(mut self) -> Config {
        mechanisms::bring_cmt(&mut self.rules, &mut self.mechanisms);
        self.pf_window = Some(2);
        self.new_data = PolicySpec::named("round-robin");
        self.fast = PolicySpec::named("rtx-cwnd");
        self.timeout = PolicySpec::named("rtx-cwnd");
        self
    }

    /// The same configuration with the companions of its mechanisms: what the class of ns-2 that has such a mechanism
    /// sets besides. It is unchanged if the rules are not those of an era.
    pub fn with_companions(mut self) -> Config {
        mechanisms::bring_companions(&mut self.rules, &mut self.mechanisms);
        self
    }

    /// The same configuration with other parameters.
    pub fn with(mut self, change: impl FnOnce(&mut Parameters)) -> Config {
        change(&mut self.parameters);
        self
    }

    /// The effective send buffer, in bytes.
    pub fn send_buffer(&self) -> u64 {
        self.send_buffer.unwrap_or(2 * u64::from(self.receive_buffer))
    }

    /// The bounds of RTO.
    pub(crate) fn rto_limits(&self) -> RtoLimits {
        RtoLimits { min: self.rto_min, max: self.rto_max }
    }

    //= rfc7829#section-5
    fn switches_too_soon(&self) -> bool {
        let failing = self.pf_max_retrans.unwrap_or(self.path_max_retrans);
        self.primary_switchover_max_retrans.is_some_and(|limit| limit < failing)
    }

    /// The number of consecutive errors of a path that is counted. With potentially failed paths, errors of inactive
    /// paths are counted too, up to ten times the number that makes a path inactive.
    //= rfc7829#section-4.1
    pub(crate) fn most_errors(&self) -> u32 {
        let inactive = self.path_max_retrans.saturating_add(1);
        let counted = if self.pf_max_retrans.is_some() { inactive.saturating_mul(10) } else { inactive };
        counted.max(self.primary_switchover_max_retrans.unwrap_or(0).saturating_add(1))
    }

    /// RTO.Min ≤ RTO.Initial ≤ RTO.Max.
    fn check_rto(&self) -> Result<(), ConfigError> {
        let at_most = |key, own: Duration, bound: &str, most: Duration| match own <= most {
            true => Ok(()),
            false => Err(ConfigError {
                key,
                why: format!("exceeds {bound} ({} > {})", written(own), written(most)),
                fix: Some(format!(
                    "set {key} to at most {}, or {bound} to at least {}",
                    written(most),
                    written(own)
                )),
            }),
        };
        at_most("rto_min", self.rto_min, "rto_max", self.rto_max)?;
        at_most("rto_initial", self.rto_initial, "rto_max", self.rto_max)?;
        at_most("rto_min", self.rto_min, "rto_initial", self.rto_initial)
    }

    /// No duration is so long that a sum with it would be no time any more.
    fn check_durations(&self) -> Result<(), ConfigError> {
        let durations = [
            ("rto_max", Some(self.rto_max)),
            ("max_init_timeout", self.max_init_timeout),
            ("heartbeat_interval", self.heartbeat_interval),
            ("cookie_life", Some(self.cookie_life)),
        ];
        match durations.into_iter().find(|(_, duration)| duration.is_some_and(|duration| duration > LONGEST))
        {
            Some((key, _)) => {
                Err(ConfigError { key, why: format!("must not exceed {}", written(LONGEST)), fix: None })
            }
            None => Ok(()),
        }
    }

    /// Checks whether these parameters can be used; the error says which one cannot and why.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_rto()?;
        self.check_durations()?;
        let bad = |key, why: &str| Err(ConfigError { key, why: why.to_owned(), fix: None });
        match () {
            _ if self.addresses.is_empty() => bad("addresses", "at least one local address is needed"),
            _ if self.port == 0 => bad("port", "must not be zero"),
            _ if self.rto_min.is_zero() => bad("rto_min", "must not be zero"),
            _ if self.max_init_timeout == Some(Duration::ZERO) => bad("max_init_timeout", "must not be zero"),
            _ if self.sack_delay > Duration::from_millis(500) => {
                bad("sack_delay", "must not exceed 500 ms (RFC 9260 section 6.2)")
            }
            _ if self.sack_every == 0 => bad("sack_every", "must be at least 1"),
            _ if self.max_burst == 0 => bad("max_burst", "must be at least 1"),
            _ if self.heartbeat_max_burst == 0 => bad("heartbeat_max_burst", "must be at least 1"),
            _ if self.receive_buffer < 1500 => {
                bad("receive_buffer", "must be at least 1500 bytes (RFC 9260 section 3.3.2)")
            }
            _ if self.max_cwnd.contains(&0) => bad("max_cwnd", "must not be zero"),
            _ if self.send_buffer() == 0 => bad("send_buffer", "must not be zero"),
            _ if self.send_buffer() > LARGEST_BUFFER => bad("send_buffer", "must not exceed 1000000 TB"),
            _ if self.outbound_streams == 0 => bad("outbound_streams", "must be at least 1"),
            _ if self.inbound_streams == 0 => bad("inbound_streams", "must be at least 1"),
            _ if self.mtu > 65_535 => bad("mtu", "must not exceed 65535 bytes"),
            _ if self.mtu.saturating_sub(self.ip_header) < 508 => {
                bad("mtu", "must be at least 508 bytes above the IP header")
            }
            _ if self.extensions.addresses && !self.extensions.authentication => {
                bad("dynamic_addresses", "needs authentication (RFC 5061 section 4.1.1)")
            }
            _ if !self.authenticated_chunks.is_empty() && !self.extensions.authentication => {
                bad("authenticated_chunks", "needs authentication")
            }
            _ if self.shared_key.is_some() && !self.extensions.authentication => {
                bad("shared_key", "needs authentication")
            }
            _ if self.authenticated_chunks.iter().any(|kind| matches!(kind, 1 | 2 | 14 | 15)) => {
                bad("authenticated_chunks", "cannot have 1, 2, 14 or 15 (RFC 4895 section 3.2)")
            }
            _ if self.switches_too_soon() => bad(
                "primary_switchover_max_retrans",
                "must not be below pf_max_retrans, or path_max_retrans if that is off (RFC 7829 section 5)",
            ),
            _ if self.rules.missing_reports == 0 => bad("missing_reports", "must be at least 1"),
            _ if self.rules.ssthresh_floor == 0 => bad("ssthresh_floor", "must be at least 1"),
            _ if self.rules.idle_floor == 0 => bad("idle_floor", "must be at least 1"),
            _ => Ok(()),
        }
    }
}

impl Config {
    /// Parameters that can be used but are harmful. The peer's SACK delay is assumed to be ours.
    //= rfc9260#section-6.3.1
    pub fn warnings(&self) -> Vec<ConfigWarning> {
        let mut warnings = Vec::new();
        if self.sack_every > 1 && self.rto_min <= self.sack_delay {
            let why = format!(
                "{} does not exceed sack_delay ({}): a packet without a successor is acknowledged only after that \
                 delay, so that it is retransmitted for nothing and its timeout counts as an error of the path; set rto_min \
                 above the round-trip time plus the peer's sack_delay, or lower sack_delay at both ends",
                written(self.rto_min),
                written(self.sack_delay)
            );
            warnings.push(ConfigWarning { key: "rto_min", why });
        }
        warnings.extend(self.never_potentially_failed());
        warnings
    }

    /// PotentiallyFailed.Max.Retrans has no effect unless it is below Path.Max.Retrans.
    //= rfc7829#section-3.2
    fn never_potentially_failed(&self) -> Option<ConfigWarning> {
        let (failing, dead) = (self.pf_max_retrans?, self.path_max_retrans);
        let why = format!(
            "{failing} is not below path_max_retrans ({dead}): a path becomes inactive before it can be potentially \
             failed; set pf_max_retrans lower (0 is recommended), or path_max_retrans higher"
        );
        (failing >= dead).then_some(ConfigWarning { key: "pf_max_retrans", why })
    }
}

/// A parameter that can be used but is harmful.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {why}")]
pub struct ConfigWarning {
    /// The name of the field.
    pub key: &'static str,
    /// The effect of this value, and the value to use instead.
    pub why: String,
}

/// A parameter that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {why}{}", .fix.as_ref().map(|fix| format!("; {fix}")).unwrap_or_default())]
pub struct ConfigError {
    /// The name of the field.
    pub key: &'static str,
    /// The reason.
    pub why: String,
    /// The value to use instead, if `why` does not say it.
    pub fix: Option<String>,
}
