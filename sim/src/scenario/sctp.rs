//! `[flow.sctp]`: an era, and every rule and parameter of the protocol.

use std::net::{IpAddr, Ipv4Addr};

use anabranch_proto::policy::PolicyError;
use anabranch_proto::rules::BadRule;
use anabranch_proto::wire::Address;
use anabranch_proto::{Config, LocalAddress, Mechanisms, Pairs, Policies, PolicySpec, Rules, SharedKey};

use super::at::{At, Result};
use super::error::{ScenarioError, did_you_mean};
use super::keys::{Default, Key, KeyDoc, read_known, refuse_unknown};

/// The contents of a `[flow.sctp]`.
pub(super) struct Parameters {
    pub(super) config: Config,
    pub(super) primary: Option<String>,
}

pub(super) const KEYS: &[Key<Parameters>] = &[
    Key {
        name: "era",
        takes: "era",
        default: Default::Text("the top-level `era`"),
        doc: "The edition that gives the defaults of all rules and parameters; the other keys change single ones.",
        // This row is the first, so that it overwrites no other key.
        read: |sctp, at| era(at).map(|config| sctp.config = config),
    },
    Key {
        name: "cmt",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Concurrent multipath transfer: new data on all active paths. It sets `new = \"round-robin\"`, `retransmit = \"rtx-cwnd\"`, `sfr`, `cuc`, `dac`, `recovery` and further settings that depend on the era (`anabranch rules`). Each of them can also be set alone.",
        // This row stands before the rows whose keys it sets.
        read: |sctp, at| {
            if at.boolean()? {
                sctp.config = std::mem::take(&mut sctp.config).with_cmt();
            }
            Ok(())
        },
    },
    Key {
        name: "primary",
        takes: "path",
        default: Default::Text("the first by the names of the sender's links"),
        doc: "The primary path, by the name of the sender's first link (`\"wifi\"`); if two paths share it, `\"first/last\"`.",
        read: |sctp, at| at.string().map(|path| sctp.primary = Some(path.to_owned())),
    },
    Key {
        name: "pairs",
        takes: "`\"one-per-peer\"` or `\"all\"`",
        default: Default::Value("\"one-per-peer\""),
        doc: "Which pairs of addresses are paths: one for each address of the peer, or every pair with a route.",
        read: |sctp, at| {
            let all = at.one_of("choice", &["one-per-peer", "all"])? == "all";
            sctp.config.pairs = if all { Pairs::All } else { Pairs::OnePerPeer };
            Ok(())
        },
    },
    Key {
        name: "new",
        takes: "route",
        default: Default::Value("\"primary\""),
        doc: "The route of new data. `same`, `alternate`, `timeout-alternate` and `adaptive` choose paths for retransmissions only.",
        read: |sctp, at| at.policy().map(|spec| sctp.config.new_data = spec),
    },
    Key {
        name: "retransmit",
        takes: "route",
        default: Default::Text("as `fast` and `timeout`"),
        doc: "The route of all retransmissions: `fast` and `timeout` in one.",
        read: |sctp, at| {
            let spec = at.policy()?;
            (sctp.config.fast, sctp.config.timeout) = (spec.clone(), spec);
            Ok(())
        },
    },
    Key {
        name: "fast",
        takes: "route",
        default: Default::Text("by era: `\"same\"`; in `rfc2960` and `ns2` `\"alternate\"`"),
        doc: "The route of fast retransmissions.",
        read: |sctp, at| at.policy().map(|spec| sctp.config.fast = spec),
    },
    Key {
        name: "timeout",
        takes: "route",
        default: Default::Value("\"alternate\""),
        doc: "The route of retransmissions after a timeout.",
        read: |sctp, at| at.policy().map(|spec| sctp.config.timeout = spec),
    },
    Key {
        name: "window",
        takes: "window",
        default: Default::Value("\"standard\""),
        doc: "The congestion window of each path.",
        read: |sctp, at| at.policy().map(|spec| sctp.config.window = spec),
    },
    Key {
        name: "rto_initial",
        takes: "duration",
        default: Default::Text("by era: `\"1 s\"` in `rfc9260`, else `\"3 s\"`"),
        doc: "RTO.Initial: the retransmission timeout before the first measurement.",
        read: |sctp, at| at.duration().map(|rto| sctp.config.rto_initial = rto),
    },
    Key {
        name: "rto_min",
        takes: "duration",
        default: Default::Value("\"1 s\""),
        doc: "RTO.Min.",
        read: |sctp, at| at.duration().map(|rto| sctp.config.rto_min = rto),
    },
    Key {
        name: "rto_max",
        takes: "duration",
        default: Default::Value("\"60 s\""),
        doc: "RTO.Max.",
        read: |sctp, at| at.duration().map(|rto| sctp.config.rto_max = rto),
    },
    Key {
        name: "max_burst",
        takes: "count",
        default: Default::Value("4"),
        doc: "Max.Burst: packets that one event may release; the rule `burst` says when it applies.",
        read: |sctp, at| at.count(1..=u32::MAX).map(|n| sctp.config.max_burst = n),
    },
    Key {
        name: "cookie_life",
        takes: "duration",
        default: Default::Value("\"60 s\""),
        doc: "Valid.Cookie.Life.",
        read: |sctp, at| at.duration().map(|life| sctp.config.cookie_life = life),
    },
    Key {
        name: "association_max_retrans",
        takes: "count",
        default: Default::Value("10"),
        doc: "Association.Max.Retrans: one more error in a row ends the association.",
        read: |sctp, at| at.count(0..=u32::MAX).map(|n| sctp.config.association_max_retrans = n),
    },
    Key {
        name: "path_max_retrans",
        takes: "count",
        default: Default::Value("5"),
        doc: "Path.Max.Retrans: one more error in a row makes a path inactive.",
        read: |sctp, at| at.count(0..=u32::MAX).map(|n| sctp.config.path_max_retrans = n),
    },
    Key {
        name: "pf_max_retrans",
        takes: "count or `\"off\"`",
        default: Default::Value("\"off\""),
        doc: "PotentiallyFailed.Max.Retrans (RFC 7829): one more error in a row makes a path potentially failed. It has an effect only below `path_max_retrans`.",
        read: |sctp, at| {
            let off = at.string() == Ok("off");
            sctp.config.pf_max_retrans = if off { None } else { Some(at.count(0..=u32::MAX)?) };
            Ok(())
        },
    },
    Key {
        name: "pf_window",
        takes: "count or `\"off\"`",
        default: Default::Value("\"off\""),
        doc: "The window, in packets, of a potentially failed path after it has answered a HEARTBEAT; `\"off\"`: the window that it had. `cmt` sets 2.",
        read: |sctp, at| {
            let off = at.string() == Ok("off");
            sctp.config.pf_window = if off { None } else { Some(at.count(1..=1_000_000)?) };
            Ok(())
        },
    },
    Key {
        name: "primary_switchover_max_retrans",
        takes: "count or `\"off\"`",
        default: Default::Value("\"off\""),
        doc: "Primary.Switchover.Max.Retrans (RFC 7829 §5): after one more error in a row of the primary, the path that replaces it becomes the primary permanently; at least `pf_max_retrans`, or `path_max_retrans` if that is off.",
        read: |sctp, at| {
            let off = at.string() == Ok("off");
            let limit = if off { None } else { Some(at.count(0..=u32::MAX)?) };
            sctp.config.primary_switchover_max_retrans = limit;
            Ok(())
        },
    },
    Key {
        name: "max_init_retransmits",
        takes: "count",
        default: Default::Value("8"),
        doc: "Max.Init.Retransmits.",
        read: |sctp, at| at.count(0..=u32::MAX).map(|n| sctp.config.max_init_retransmits = n),
    },
    Key {
        name: "max_init_timeout",
        takes: "duration",
        default: Default::Text("`rto_max`"),
        doc: "The longest retransmission timeout of INIT and COOKIE ECHO (RFC 6458 §8.1.3).",
        read: |sctp, at| at.duration().map(|longest| sctp.config.max_init_timeout = Some(longest)),
    },
    Key {
        name: "shutdown_guard",
        takes: "count or `\"off\"`",
        default: Default::Value("5"),
        doc: "T5-shutdown-guard (§9.2), in units of RTO.Max: if the shutdown is not complete by then, the association is aborted.",
        read: |sctp, at| {
            let off = at.string() == Ok("off");
            sctp.config.shutdown_guard = if off { None } else { Some(at.count(1..=1000)?) };
            Ok(())
        },
    },
    Key {
        name: "heartbeat_interval",
        takes: "duration or `\"off\"`",
        default: Default::Value("\"30 s\""),
        doc: "HB.interval: an idle path sends a HEARTBEAT after this time plus its RTO; `\"off\"`: no periodic heartbeats.",
        read: |sctp, at| {
            let off = at.string() == Ok("off");
            sctp.config.heartbeat_interval = if off { None } else { Some(at.duration()?) };
            Ok(())
        },
    },
    Key {
        name: "heartbeat_jitter",
        takes: "boolean",
        default: Default::Value("true"),
        doc: "Whether the time of a HEARTBEAT varies at random by half an RTO in each direction (§8.3).",
        read: |sctp, at| at.boolean().map(|jitter| sctp.config.heartbeat_jitter = jitter),
    },
    Key {
        name: "mtu_discovery",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether probes search for the MTU of each path, from 1,200 bytes up to the MTU of the links (RFC 8899); `serve`, `send` and `perf` do this.",
        read: |sctp, at| at.boolean().map(|search| sctp.config.mtu_discovery = search),
    },
    Key {
        name: "rehome",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether HEARTBEATs of a failed path also leave from the other local addresses. The path moves to the first address that gets an answer, and returns when its own gets one; `serve`, `send` and `perf` do this.",
        read: |sctp, at| at.boolean().map(|rehome| sctp.config.rehome = rehome),
    },
    Key {
        name: "heartbeat_max_burst",
        takes: "count",
        default: Default::Value("1"),
        doc: "HB.Max.Burst: HEARTBEATs that may be sent at once.",
        read: |sctp, at| at.count(1..=u32::MAX).map(|n| sctp.config.heartbeat_max_burst = n),
    },
    Key {
        name: "sack_delay",
        takes: "duration",
        default: Default::Value("\"200 ms\""),
        doc: "SACK.Delay; at most 500 ms (§6.2). Zero disables delayed SACKs.",
        read: |sctp, at| at.duration().map(|delay| sctp.config.sack_delay = delay),
    },
    Key {
        name: "sack_every",
        takes: "count",
        default: Default::Value("2"),
        doc: "A SACK is sent at the latest after this number of packets; 1 disables delayed SACKs.",
        read: |sctp, at| at.count(1..=u32::MAX).map(|n| sctp.config.sack_every = n),
    },
    Key {
        name: "receive_buffer",
        takes: "size",
        default: Default::Value("\"1 MiB\""),
        doc: "The receive buffer, in bytes of DATA chunks; it determines the advertised window.",
        read: |sctp, at| at.size32(1500..=u32::MAX).map(|size| sctp.config.receive_buffer = size),
    },
    Key {
        name: "send_buffer",
        takes: "size",
        default: Default::Text("twice `receive_buffer`"),
        doc: "The send buffer, in bytes of user data not yet acknowledged.",
        read: |sctp, at| at.size(1..=u64::MAX).map(|size| sctp.config.send_buffer = Some(size)),
    },
    Key {
        name: "initial_ssthresh",
        takes: "size or `\"none\"`",
        default: Default::Value("\"none\""),
        doc: "The slow-start threshold of a new path.",
        read: |sctp, at| {
            let none = at.string() == Ok("none");
            sctp.config.initial_ssthresh = if none { None } else { Some(at.size(1..=u64::MAX)?) };
            Ok(())
        },
    },
    Key {
        name: "max_cwnd",
        takes: "size or array of sizes",
        default: Default::Text("no limit"),
        doc: "The largest congestion window of a path: one size for all, or one for each path in their order, the last also for all further ones. With `stripe`, of each association.",
        read: |sctp, at| {
            let sizes = if at.is_array() { at.array("an array of sizes")? } else { vec![at.clone()] };
            let sizes: Result<Vec<u64>> = sizes.iter().map(|size| size.size(1500..=1 << 50)).collect();
            sizes.map(|sizes| sctp.config.max_cwnd = sizes)
        },
    },
    Key {
        name: "outbound_streams",
        takes: "count",
        default: Default::Value("16"),
        doc: "The number of outbound streams.",
        read: |sctp, at| at.count(1..=u16::MAX).map(|n| sctp.config.outbound_streams = n),
    },
    Key {
        name: "inbound_streams",
        takes: "count",
        default: Default::Value("1024"),
        doc: "The number of inbound streams that are accepted.",
        read: |sctp, at| at.count(1..=u16::MAX).map(|n| sctp.config.inbound_streams = n),
    },
    Key {
        name: "first_tsn",
        takes: "count or `\"random\"`",
        default: Default::Value("\"random\""),
        doc: "The first TSN of both ends; for tests of the wrap.",
        read: |sctp, at| {
            let random = at.string() == Ok("random");
            sctp.config.first_tsn = if random { None } else { Some(at.count(0..=u32::MAX)?) };
            Ok(())
        },
    },
    Key {
        name: "first_ssn",
        takes: "count",
        default: Default::Value("0"),
        doc: "The first SSN of every stream; for tests of the wrap.",
        read: |sctp, at| at.count(0..=u16::MAX).map(|n| sctp.config.first_ssn = n),
    },
    Key {
        name: "partial_reliability",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether messages can be abandoned (RFC 3758, RFC 7496); the flow's `reliability` says which.",
        read: |sctp, at| at.boolean().map(|on| sctp.config.extensions.partial_reliability = on),
    },
    Key {
        name: "reconfiguration",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether streams can be reset and added (RFC 6525).",
        read: |sctp, at| at.boolean().map(|on| sctp.config.extensions.reconfiguration = on),
    },
    Key {
        name: "authentication",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether chunks can be authenticated (RFC 4895).",
        read: |sctp, at| at.boolean().map(|on| sctp.config.extensions.authentication = on),
    },
    Key {
        name: "authenticated_chunks",
        takes: "array of chunk types",
        default: Default::Value("[]"),
        doc: "Chunk types that are accepted only with authentication; needs `authentication`. 0 is DATA, 10 COOKIE ECHO.",
        read: |sctp, at| {
            let kinds = at.array("an array of chunk types")?;
            let kinds = kinds.iter().map(|kind| kind.count(0..=u8::MAX)).collect::<Result<_>>()?;
            sctp.config.authenticated_chunks = kinds;
            Ok(())
        },
    },
    Key {
        name: "shared_key",
        takes: "string or `\"none\"`",
        default: Default::Value("\"none\""),
        doc: "The endpoint pair shared key (RFC 4895), by identifier 1; needs `authentication`.",
        read: |sctp, at| {
            let secret = at.string()?;
            let key = || SharedKey { id: 1, secret: secret.to_owned().into() };
            sctp.config.shared_key = (secret != "none").then(key);
            Ok(())
        },
    },
    Key {
        name: "dynamic_addresses",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether addresses can change (RFC 5061); needs `authentication`.",
        read: |sctp, at| at.boolean().map(|on| sctp.config.extensions.addresses = on),
    },
    Key {
        name: "interleaving",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether messages on different streams are interleaved (RFC 8260); streams then take turns, chunk by chunk.",
        read: |sctp, at| at.boolean().map(|on| sctp.config.extensions.interleaving = on),
    },
    Key {
        name: "zero_checksum",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether a checksum of zero is offered (RFC 9653), for use over DTLS. The simulator has no DTLS: only the INIT changes.",
        read: |sctp, at| at.boolean().map(|on| sctp.config.extensions.zero_checksum = on),
    },
    Key {
        name: "nr_sack",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether acknowledgements list the data that the receiver promises to keep (NR-SACK, draft-tuexen-tsvwg-sctp-multipath). The receiver then never discards acknowledged data, and the sender frees that data in its send buffer.",
        read: |sctp, at| at.boolean().map(|on| sctp.config.extensions.nr_sack = on),
    },
    Key {
        name: "ecn",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether packets with data can be marked instead of dropped (RFC 4960 appendix A); a link's `mark` says when.",
        read: |sctp, at| at.boolean().map(|on| sctp.config.extensions.ecn = on),
    },
    Key {
        name: "timestamps",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether packets with data carry the time at which they left (12 bytes) and SACKs echo it. Then each acknowledged chunk measures the round trip, even after retransmissions (an extension of this project, [extensions.md](extensions.md)).",
        read: |sctp, at| at.boolean().map(|on| sctp.config.extensions.timestamps = on),
    },
];

/// The rules as keys. They are declared in the core, with their documentation.
pub(super) fn rule_docs() -> Vec<KeyDoc> {
    let doc = |&(name, text): &(&'static str, &str)| {
        let choices = Rules::CHOICES.iter().find(|(key, _)| *key == name);
        let takes = choices.map_or("count".to_owned(), |(_, names)| {
            let quoted: Vec<_> = names.iter().map(|name| format!("`\"{name}\"`")).collect();
            quoted.join(", ")
        });
        KeyDoc { name, takes, default: Default::Text("the era's"), doc: text.trim().to_owned() }
    };
    let mut docs: Vec<_> = Rules::DOCS.iter().map(doc).collect();
    docs.extend(Mechanisms::CHOICES.iter().map(mechanism_doc));
    docs
}

/// A mechanism as a key. A mechanism that is `off` or `on` also accepts a boolean.
fn mechanism_doc((name, choices): &(&'static str, &'static [&'static str])) -> KeyDoc {
    let text = Mechanisms::DOCS.iter().find(|(key, _)| key == name).map_or("", |(_, text)| text);
    KeyDoc {
        name,
        takes: as_written(choices),
        default: Default::Text("the first; see `cmt`"),
        doc: text.trim().to_owned(),
    }
}

/// Whether `[flow.sctp]` has the key `key`.
pub(super) fn has_key(key: &str) -> bool {
    let rules = Rules::DOCS.iter().chain(Mechanisms::DOCS).map(|(known, _)| *known);
    KEYS.iter().map(|known| known.name).chain(rules).any(|known| known == key)
}

/// Reads the name of an era and returns its parameters.
pub(super) fn era(at: &At<'_>) -> Result<Config> {
    let names: Vec<_> = Rules::ERAS.iter().map(|(name, _)| *name).collect();
    let name = at.one_of("era", &names)?;
    Config::era(name).ok_or_else(|| at.error("this era has no parameters"))
}

/// Reads a `[flow.sctp]`, starting from the parameters of `era`.
pub(super) fn sctp(at: &At<'_>, era: &Config, policies: &Policies) -> Result<Parameters> {
    let mut names: Vec<_> = KEYS.iter().map(|key| key.name).collect();
    names.extend(Rules::DOCS.iter().chain(Mechanisms::DOCS).map(|(name, _)| *name));
    refuse_unknown(at, &names)?;
    let mut sctp = Parameters { config: era.clone(), primary: None };
    read_known(&mut sctp, at, KEYS)?;
    read_mechanisms(&mut sctp.config.mechanisms, at)?;
    sctp.config = sctp.config.with_companions();
    // A mechanism that is given takes precedence over the companions of another.
    read_mechanisms(&mut sctp.config.mechanisms, at)?;
    read_rules(&mut sctp.config.rules, at)?;
    if let (Some(_), Some(part)) = (at.get("retransmit"), at.get("fast").or_else(|| at.get("timeout"))) {
        let message = "`retransmit` already says this";
        return Err(part.error(message).hint("give `retransmit`, or `fast` and `timeout`"));
    }
    check_policies(&sctp.config, at, policies)?;
    check_parameters(&sctp.config, at)?;
    Ok(sctp)
}

fn read_rules(rules: &mut Rules, at: &At<'_>) -> Result<()> {
    for (key, names) in Rules::CHOICES {
        if let Some(value) = at.get(key) {
            let refused = |bad: BadRule| value.error(format!("this cannot be set: {bad:?}"));
            rules.choose(key, value.one_of("choice", names)?).map_err(refused)?;
        }
    }
    for key in Rules::NUMBERS {
        if let Some(value) = at.get(key) {
            let refused = |bad: BadRule| value.error(format!("this cannot be set: {bad:?}"));
            rules.set_number(key, value.count(1..=1_000_000)?).map_err(refused)?;
        }
    }
    Ok(())
}

fn read_mechanisms(mechanisms: &mut Mechanisms, at: &At<'_>) -> Result<()> {
    for (key, names) in Mechanisms::CHOICES {
        let Some(value) = at.get(key) else { continue };
        let refused = |bad: BadRule| value.error(format!("this cannot be set: {bad:?}"));
        mechanisms.choose(key, mechanism_choice(&value, names)?).map_err(refused)?;
    }
    Ok(())
}

/// What a mechanism does. A switch is true or false, also beside further choices; "on" and "off" mean the same.
fn mechanism_choice<'n>(value: &At<'_>, names: &[&'n str]) -> Result<&'n str> {
    if !names.contains(&"on") {
        return value.one_of("choice", names);
    }
    let name = match value.boolean() {
        Ok(true) => "on",
        Ok(false) => "off",
        Err(error) => match value.string() {
            Ok(name) => name,
            Err(_) => return Err(error),
        },
    };
    let found = names.iter().find(|known| **known == name).copied();
    found.ok_or_else(|| {
        value.error(format!("there is no choice `{name}`")).hint(format!("there is {}", as_written(names)))
    })
}

/// The choices of a mechanism as a scenario writes them, in backquotes.
fn as_written(choices: &[&str]) -> String {
    let written = |choice: &&str| match *choice {
        "off" if choices.contains(&"on") => "`false`".to_owned(),
        "on" => "`true`".to_owned(),
        name => format!("`\"{name}\"`"),
    };
    choices.iter().map(written).collect::<Vec<_>>().join(", ")
}

fn check_policies(config: &Config, at: &At<'_>, policies: &Policies) -> Result<()> {
    let routes: Vec<_> = policies.route_names().collect();
    let windows: Vec<_> = policies.window_names().collect();
    let new = policies.new_data_route(&config.new_data, config);
    new.map_err(|e| bad_policy(at, "new", "route", &config.new_data, &e, &routes))?;
    for (key, spec) in [("fast", &config.fast), ("timeout", &config.timeout)] {
        let key = if at.get(key).is_none() { "retransmit" } else { key };
        policies.route(spec, config).map_err(|e| bad_policy(at, key, "route", spec, &e, &routes))?;
    }
    policies
        .window(&config.window, config)
        .map(drop)
        .map_err(|e| bad_policy(at, "window", "window", &config.window, &e, &windows))
}

pub(super) fn bad_policy(
    at: &At<'_>,
    key: &str,
    role: &str,
    spec: &PolicySpec,
    error: &PolicyError,
    known: &[&str],
) -> ScenarioError {
    match error {
        PolicyError::Unknown { name, .. } => at
            .error_below(key, format!("there is no {role} policy `{name}`"))
            .hint(did_you_mean(name, known.iter().copied())),
        PolicyError::Setting { why, .. } => {
            let setting = at.get(key).and_then(|at| spec.settings.keys().find_map(|key| at.get(key)));
            let message = format!("policy `{}`: {why}", spec.name);
            setting.map_or_else(|| at.error_below(key, &message), |setting| setting.error(&message))
        }
    }
}

/// Lets the core check the parameters together, and finds the key at fault: the one that the error names, otherwise
/// one that its text mentions.
fn check_parameters(config: &Config, at: &At<'_>) -> Result<()> {
    let somewhere =
        LocalAddress { address: Address { ip: IpAddr::V4(Ipv4Addr::LOCALHOST), udp: 0 }, prefix: 24 };
    let whole = Config { addresses: vec![somewhere], ..config.clone() };
    whole.check().map_err(|error| {
        let given = |key: &str| at.get(key).is_some();
        let named = KEYS.iter().map(|key| key.name).find(|key| error.why.contains(key) && given(key));
        let blamed = match named {
            Some(key) if !given(error.key) => {
                at.error_below(key, format!("with this, {} {}", error.key, error.why))
            }
            _ => at.error_below(error.key, error.why),
        };
        blamed.maybe_hint(error.fix)
    })
}
