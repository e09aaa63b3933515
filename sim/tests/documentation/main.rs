//! `docs/scenario.md` and the reader say the same: its tables are made from the reader's own rows, and the
//! defaults that they state are those that hold. `ANABRANCH_BLESS=1` writes the tables anew.

mod results;

use std::path::Path;

use anabranch_proto::Policies;
use anabranch_sim::scenario::keys::{Default, KeyDoc, markdown, sections};
use anabranch_sim::scenario::{Document, Scenario, ScenarioError};

fn written() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/scenario.md");
    std::fs::read_to_string(path).expect("docs/scenario.md can be read")
}

/// The document with the tables that the reader's rows make.
fn generated(document: &str) -> String {
    let mut parts = document.split("<!-- keys: ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (header, rest) = part.split_once(" -->\n").expect("a mark ends");
        let (_, rest) = rest.split_once("<!-- end -->").expect("a table ends");
        let find = |section: &_| header == name_of(section);
        let section = sections().into_iter().find(find).expect("the section exists");
        text += &format!("<!-- keys: {header} -->\n{}<!-- end -->{rest}", markdown(&section));
    }
    text
}

fn name_of(section: &anabranch_sim::scenario::keys::Section) -> &'static str {
    if section.header.is_empty() { "top" } else { section.header }
}

#[test]
fn the_document_lists_exactly_the_keys_that_are_read() {
    let document = written();
    let fresh = generated(&document);
    if std::env::var_os("ANABRANCH_BLESS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/scenario.md");
        std::fs::write(path, fresh).expect("docs/scenario.md can be written");
        return;
    }
    assert!(
        document == fresh,
        "docs/scenario.md is not what the reader's rows say: ANABRANCH_BLESS=1 writes it anew"
    );
    for section in sections() {
        assert!(document.contains(&format!("<!-- keys: {} -->", name_of(&section))), "{}", name_of(&section));
    }
}

/// A subflow of Multipath TCP has no variant of ns-2.
#[test]
fn a_subflow_has_no_default_of_a_variant_that_it_cannot_have() {
    let sections = sections();
    let mptcp = sections.iter().find(|section| section.header == "[flow.mptcp]").expect("the section");
    assert!(!markdown(mptcp).contains("sack1"));
    let blocks = mptcp.keys.iter().find(|key| key.name == "sack_blocks").expect("the key");
    assert_eq!(blocks.default, Default::Text("`4`; in `newreno` `0`"));
}

const BASE: &str = "[[node]]\nname = 's'\n[[node]]\nname = 'r'\n\
    [[link]]\nname = 'l'\nbetween = ['s', 'r']\nrate = '1 Mbit/s'\n\
    [[change]]\nat = '1 s'\nlink = 'l'\nup = false\n\
    [[channel]]\nname = 'c'\nreception = { name = 'range' }\n[channel.dcf]\n\
    [[channel]]\nname = 'p'\nreception = { name = 'power' }\n\
    [[chain]]\nname = 'a'\nhops = 1\nspacing = '300 m'\nchannels = ['c']\n\
    [[grid]]\nname = 'g'\ncolumns = 2\nrows = 1\nspacing = '300 m'\nchannels = ['p']\n\
    [[route]]\nchannel = 'c'\nthrough = ['a0', 'a1']\n\
    [[flow]]\nname = 'f'\nfrom = 's'\nto = 'r'\nsend = '1 MB'\n\
    [[traffic]]\nname = 't'\nfrom = 's'\nto = 'r'\nload = '1 kbit/s'\nsizes = { '44 B' = 2 }\n\
    on = '1 s'\noff = '1 s'\n";

fn read(edits: &[String]) -> Result<Scenario, ScenarioError> {
    let mut document = Document::parse("base.toml", BASE)?;
    edits.iter().try_for_each(|edit| document.set("--set", edit))?;
    document.scenario("base", &Policies::default())
}

/// How `--set` reaches a key of the section in `BASE`.
fn path(header: &str, key: &str) -> String {
    let prefix = match header {
        "" => "",
        "[[node]]" => "node.s.",
        "[[link]]" => "link.l.",
        "[link.queue.red]" => "link.l.queue.red.",
        "[link.queue.codel]" => "link.l.queue.codel.",
        "[[change]]" => "change.1.",
        "[[channel]]" => "channel.c.",
        "[channel.reception] range" => "channel.c.reception.",
        "[channel.reception] power" => "channel.p.reception.",
        "[channel.dcf]" => "channel.c.dcf.",
        "[[chain]]" => "chain.a.",
        "[[grid]]" => "grid.g.",
        "[[route]]" => "route.1.",
        "[[flow]]" => "flow.f.",
        "[[traffic]]" => "traffic.t.",
        "[flow.tcp]" => "flow.f.tcp.",
        "[flow.mptcp]" => "flow.f.mptcp.",
        _ => "flow.f.sctp.",
    };
    format!("{prefix}{key}")
}

/// What makes `BASE` a document that takes the keys of a section.
fn preparation(header: &str) -> Vec<String> {
    let edit = match header {
        "[flow.tcp]" => "flow.f.protocol=tcp",
        "[flow.mptcp]" => "flow.f.protocol=mptcp",
        "[link.queue.red]" => {
            "link.l.queue={ red = { limit = '60 packets', min = '5 packets', max = '15 packets' } }"
        }
        "[link.queue.codel]" => "link.l.queue={ codel = { limit = '60 packets' } }",
        _ => return Vec::new(),
    };
    vec![edit.to_owned()]
}

#[test]
fn stated_defaults_are_those_that_hold() {
    for section in sections() {
        let prepared = preparation(section.header);
        let base = read(&prepared).expect("the base is right");
        for KeyDoc { name, default, .. } in section.keys {
            if let Default::Value(value) = default {
                let edit = format!("{}={value}", path(section.header, name));
                let edits = [&prepared[..], std::slice::from_ref(&edit)].concat();
                assert_eq!(read(&edits).as_ref(), Ok(&base), "{edit}");
            }
        }
    }
}

/// Another value than the default, for every key: each must be consulted, and so change the scenario.
const OTHERS: &[(&str, &str)] = &[
    ("era", "ns2"),
    ("seed", "9"),
    ("wire", "true"),
    ("stop", "9 s"),
    ("ip_header", "40 B"),
    ("measure", "['1 s', '2 s']"),
    ("node.s.at", "['5 km', '0 m']"),
    ("node.s.channels", "['c']"),
    ("channel.c.name", "other"),
    ("channel.c.reception", "power"),
    ("channel.c.reception.decode", "360 m"),
    ("channel.c.reception.sense", "600 m"),
    ("channel.c.reception.interfere", "900 m"),
    ("channel.c.reception.capture", "10 dB"),
    ("channel.p.reception.propagation", "free-space"),
    ("channel.p.reception.frequency", "5 GHz"),
    ("channel.p.reception.height", "2 m"),
    ("channel.p.reception.exponent", "2.5"),
    ("channel.p.reception.transmit", "10 dBm"),
    ("channel.p.reception.loss", "3 dB"),
    ("channel.p.reception.noise", "-95 dBm"),
    ("channel.p.reception.sinr", "10 dB"),
    ("channel.p.reception.header", "3 dB"),
    ("channel.p.reception.busy", "-90 dBm"),
    ("channel.p.reception.cutoff", "-115 dBm"),
    ("channel.c.dcf.timing", "802.11g"),
    ("channel.c.dcf.rate", "5.5 Mbit/s"),
    ("channel.c.dcf.control_rate", "1 Mbit/s"),
    ("channel.c.dcf.rts_threshold", "off"),
    ("channel.c.dcf.short_retry", "4"),
    ("channel.c.dcf.long_retry", "7"),
    ("channel.c.dcf.cw_min", "15"),
    ("channel.c.dcf.cw_max", "255"),
    ("channel.c.dcf.nav_reset", "true"),
    ("channel.c.dcf.llc", "8 B"),
    ("channel.c.dcf.queue", "9 kB"),
    ("chain.a.name", "z"),
    ("chain.a.hops", "2"),
    ("chain.a.spacing", "200 m"),
    ("chain.a.at", "['1 m', '-1 m']"),
    ("chain.a.channels", "['p']"),
    ("grid.g.name", "z"),
    ("grid.g.columns", "3"),
    ("grid.g.rows", "3"),
    ("grid.g.spacing", "200 m"),
    ("grid.g.at", "['1 m', '-1 m']"),
    ("grid.g.channels", "['c']"),
    ("route.1.through", "['a1', 'a0']"),
    ("link.l.name", "other"),
    ("link.l.between", "['r', 's']"),
    ("link.l.rate", "['1 Mbit/s', '2 Mbit/s']"),
    ("link.l.delay", "3 ms"),
    ("link.l.jitter", "3 ms"),
    ("link.l.reorder", "true"),
    ("link.l.queue", "9 kB"),
    ("link.l.mark", "['9 kB', 'off']"),
    ("link.l.loss", "{ packets = [3] }"),
    ("link.l.mtu", "9000 B"),
    ("link.l.up", "false"),
    ("link.l.down", "[['1 s', '2 s'], ['3 s']]"),
    ("link.l.queue.red.limit", "70 packets"),
    ("link.l.queue.red.min", "6 packets"),
    ("link.l.queue.red.max", "16 packets"),
    ("link.l.queue.red.probability", "5 %"),
    ("link.l.queue.red.weight", "0.003"),
    ("link.l.queue.codel.limit", "70 packets"),
    ("link.l.queue.codel.target", "6 ms"),
    ("link.l.queue.codel.interval", "60 ms"),
    ("change.1.queue", "9 kB"),
    ("change.1.mark", "9 kB"),
    ("change.1.jitter", "3 ms"),
    ("change.1.mtu", "1300 B"),
    ("change.1.at", "3 s"),
    ("change.1.up", "true"),
    ("change.1.rate", "3 Mbit/s"),
    ("change.1.delay", "['3 ms', '4 ms']"),
    ("change.1.loss", "3 %"),
    ("flow.f.name", "other"),
    ("flow.f.from", "r"),
    ("flow.f.to", "s"),
    ("flow.f.start", "3 s"),
    ("flow.f.send", "3 MB"),
    ("flow.f.rate", "3 kbit/s"),
    ("flow.f.message_size", "3 kB"),
    ("flow.f.spacing", "poisson"),
    ("flow.f.on", "3 s"),
    ("flow.f.off", "{ exponential = '3 s' }"),
    ("traffic.t.name", "other"),
    ("traffic.t.from", "r"),
    ("traffic.t.to", "s"),
    ("traffic.t.both_ways", "true"),
    ("traffic.t.load", "3 kbit/s"),
    ("traffic.t.sizes", "{ '44 B' = 1, '45 B' = 1 }"),
    ("traffic.t.sources", "4"),
    ("traffic.t.on", "{ pareto = '1 s', shape = 1.5 }"),
    ("traffic.t.off", "2 s"),
    ("traffic.t.start", "{ uniform = ['0 s', '1 s'] }"),
    ("flow.f.unordered", "true"),
    ("flow.f.reliability", "{ lifetime = '200 ms' }"),
    ("flow.f.immediate", "true"),
    ("flow.f.streams", "3"),
    ("flow.f.read", "3 kbit/s"),
    ("flow.f.stop_reading_after", "3"),
    ("flow.f.stripe", "true"),
    ("flow.f.lossless_sacks", "true"),
    ("flow.f.udp", "true"),
    ("flow.f.ip_header", "40 B"),
    ("flow.f.protocol", "udp"),
    ("flow.f.sctp.era", "rfc2960"),
    ("flow.f.sctp.primary", "l"),
    ("flow.f.sctp.pairs", "all"),
    ("flow.f.sctp.new", "{ name = 'ecf' }"),
    ("flow.f.sctp.retransmit", "timeout-alternate"),
    ("flow.f.sctp.fast", "alternate"),
    ("flow.f.sctp.timeout", "same"),
    ("flow.f.sctp.rto_initial", "3 s"),
    ("flow.f.sctp.rto_min", "300 ms"),
    ("flow.f.sctp.rto_max", "30 s"),
    ("flow.f.sctp.max_burst", "3"),
    ("flow.f.sctp.cookie_life", "3 s"),
    ("flow.f.sctp.association_max_retrans", "3"),
    ("flow.f.sctp.path_max_retrans", "3"),
    ("flow.f.sctp.pf_max_retrans", "0"),
    ("flow.f.sctp.pf_window", "2"),
    ("flow.f.sctp.cmt", "true"),
    ("flow.f.sctp.primary_switchover_max_retrans", "5"),
    ("flow.f.sctp.max_init_retransmits", "3"),
    ("flow.f.sctp.max_init_timeout", "3 s"),
    ("flow.f.sctp.shutdown_guard", "off"),
    ("flow.f.sctp.heartbeat_interval", "off"),
    ("flow.f.sctp.heartbeat_jitter", "false"),
    ("flow.f.sctp.mtu_discovery", "true"),
    ("flow.f.sctp.rehome", "true"),
    ("flow.f.sctp.heartbeat_max_burst", "3"),
    ("flow.f.sctp.sack_delay", "3 ms"),
    ("flow.f.sctp.sack_every", "3"),
    ("flow.f.sctp.receive_buffer", "3 MB"),
    ("flow.f.sctp.send_buffer", "3 MB"),
    ("flow.f.sctp.initial_ssthresh", "3 MB"),
    ("flow.f.sctp.max_cwnd", "['30 kB', '20 kB']"),
    ("flow.f.sctp.outbound_streams", "3"),
    ("flow.f.sctp.inbound_streams", "3"),
    ("flow.f.sctp.first_tsn", "4294967290"),
    ("flow.f.sctp.first_ssn", "65530"),
    ("flow.f.sctp.partial_reliability", "true"),
    ("flow.f.sctp.reconfiguration", "true"),
    ("flow.f.sctp.authentication", "true"),
    ("flow.f.sctp.authenticated_chunks", "[0]"),
    ("flow.f.sctp.shared_key", "a secret"),
    ("flow.f.sctp.dynamic_addresses", "true"),
    ("flow.f.sctp.interleaving", "true"),
    ("flow.f.sctp.zero_checksum", "true"),
    ("flow.f.sctp.nr_sack", "true"),
    ("flow.f.sctp.ecn", "true"),
    ("flow.f.sctp.timestamps", "true"),
    ("flow.f.tcp.variant", "sack1"),
    ("flow.f.tcp.segment_size", "1000 B"),
    ("flow.f.tcp.receive_window", "44 packets"),
    ("flow.f.tcp.initial_window", "3 packets"),
    ("flow.f.tcp.initial_ssthresh", "30 kB"),
    ("flow.f.tcp.ack_every", "3"),
    ("flow.f.tcp.ack_delay", "3 ms"),
    ("flow.f.tcp.sack_blocks", "2"),
    ("flow.f.tcp.limited_transmit", "false"),
    ("flow.f.tcp.halving", "whole"),
    ("flow.f.tcp.rto_initial", "3 s"),
    ("flow.f.tcp.rto_min", "300 ms"),
    ("flow.f.tcp.rto_min_bounds", "variation"),
    ("flow.f.tcp.rto_max", "30 s"),
    ("flow.f.tcp.rto_tick", "100 ms"),
    ("flow.f.tcp.rto_phase", "3 ms"),
    ("flow.f.mptcp.variant", "newreno"),
    ("flow.f.mptcp.primary", "l"),
    ("flow.f.mptcp.path_manager", "fullmesh"),
    ("flow.f.mptcp.new", "ecf"),
    ("flow.f.mptcp.receive_buffer", "3 MB"),
    ("flow.f.mptcp.send_buffer", "3 MB"),
    ("flow.f.mptcp.reinjection", "opportunistic"),
    ("flow.f.mptcp.penalise", "true"),
    ("flow.f.mptcp.reinject_on_timeout", "false"),
    ("flow.f.mptcp.pf_max_retrans", "off"),
    ("flow.f.mptcp.backup", "['l']"),
    ("flow.f.mptcp.priorities", "[{ at = '1 s', path = 'l', backup = true }]"),
    ("flow.f.mptcp.server_multipath", "false"),
    ("flow.f.mptcp.segment_size", "1000 B"),
    ("flow.f.mptcp.initial_window", "3 packets"),
    ("flow.f.mptcp.initial_ssthresh", "30 kB"),
    ("flow.f.mptcp.ack_every", "3"),
    ("flow.f.mptcp.ack_delay", "3 ms"),
    ("flow.f.mptcp.sack_blocks", "2"),
    ("flow.f.mptcp.limited_transmit", "false"),
    ("flow.f.mptcp.halving", "whole"),
    ("flow.f.mptcp.rto_initial", "3 s"),
    ("flow.f.mptcp.rto_min", "300 ms"),
    ("flow.f.mptcp.rto_min_bounds", "variation"),
    ("flow.f.mptcp.rto_max", "30 s"),
];

/// Keys that cannot have a second value (one node name, one window policy, one link to change), and
/// those that are for people or that the tables' own tests cover.
const SINGLE: &[&str] = &[
    "title",
    "description",
    "node",
    "link",
    "change",
    "flow",
    "traffic",
    "traffic.t.pairs",
    "traffic.t.spacing",
    "channel",
    "chain",
    "grid",
    "route",
    "channel.c.reception.name",
    "channel.p.reception.name",
    "channel.c.dcf",
    "route.1.channel",
    "node.s.name",
    "change.1.link",
    "flow.f.sctp",
    "flow.f.sctp.window",
    "flow.f.tcp",
    "flow.f.tcp.window",
    "flow.f.mptcp",
    "flow.f.mptcp.window",
];

#[test]
fn every_key_is_stored() {
    for section in sections() {
        let base = read(&preparation(section.header)).expect("the base is right");
        for key in section.keys {
            let path = path(section.header, key.name);
            let tables = [Default::Text("the era's"), Default::Text("the first; see `cmt`")];
            let rule = tables.contains(&key.default) && section.header == "[flow.sctp]";
            if SINGLE.contains(&path.as_str()) || rule {
                continue;
            }
            let (_, value) = OTHERS
                .iter()
                .find(|(other, _)| *other == path)
                .unwrap_or_else(|| panic!("{path}: no other value"));
            // Whoever renames or turns round an item has to say so where it is named.
            let mut edits = match path.as_str() {
                "link.l.name" => vec!["change.1.link=other".to_owned()],
                "node.s.at" => vec!["node.s.channels=['c']".to_owned()],
                "node.s.channels" => vec!["node.s.at=['5 km', '0 m']".to_owned()],
                "channel.c.name" => {
                    vec!["chain.a.channels=['other']".to_owned(), "route.1.channel=other".to_owned()]
                }
                "channel.p.reception.exponent" => {
                    vec!["channel.p.reception.propagation=log-distance".to_owned()]
                }
                "channel.c.dcf.timing" => {
                    ["rate", "control_rate"].map(|key| format!("channel.c.dcf.{key}=6 Mbit/s")).into()
                }
                "chain.a.name" => vec!["route.1.through=['z0', 'z1']".to_owned()],
                "chain.a.channels" => {
                    vec!["grid.g.channels=['c']".to_owned(), "route.1.channel=p".to_owned()]
                }
                "grid.g.channels" => vec!["chain.a.at=['5 km', '0 m']".to_owned()],
                "flow.f.from" => vec!["flow.f.to=s".to_owned()],
                "flow.f.to" => vec!["flow.f.from=r".to_owned()],
                "traffic.t.from" => vec!["traffic.t.to=s".to_owned()],
                "traffic.t.to" => vec!["traffic.t.from=r".to_owned()],
                "flow.f.on" => vec![
                    "flow.f.rate=1 Mbit/s".to_owned(),
                    "flow.f.protocol=udp".to_owned(),
                    "flow.f.off=2 s".to_owned(),
                ],
                "flow.f.off" => vec![
                    "flow.f.rate=1 Mbit/s".to_owned(),
                    "flow.f.protocol=udp".to_owned(),
                    "flow.f.on=2 s".to_owned(),
                ],
                "flow.f.spacing" => vec!["flow.f.rate=1 Mbit/s".to_owned()],
                "flow.f.protocol" => vec!["flow.f.rate=1 Mbit/s".to_owned()],
                "flow.f.sctp.authenticated_chunks"
                | "flow.f.sctp.shared_key"
                | "flow.f.sctp.dynamic_addresses" => vec!["flow.f.sctp.authentication=true".to_owned()],
                _ => preparation(section.header),
            };
            edits.push(format!("{path}={value}"));
            let scenario = read(&edits).unwrap_or_else(|e| panic!("{path}: {e}"));
            assert_ne!(scenario, base, "{path}");
            // What `sim/src/scenario/canonical/mod.rs` does not write would not be read again.
            scenario.to_toml(&Policies::default()).unwrap_or_else(|e| panic!("{path} is not canonical: {e}"));
        }
    }
}

#[test]
fn every_rule_and_choice_can_be_set() {
    use anabranch_proto::{Mechanisms, Rules};
    let rules = |edit: String| {
        read(&[edit]).map(|s| s.flows[0].sctp().expect("SCTP").config.rules).expect("the rule can be set")
    };
    for (key, choices) in Rules::CHOICES {
        for choice in *choices {
            let set = rules(format!("flow.f.sctp.{key}={}", toml::Value::from(*choice)));
            assert_eq!(set.get(key).as_deref(), Some(*choice), "{key}");
        }
    }
    let mechanisms = |edit: String| {
        read(&[edit]).map(|s| s.flows[0].sctp().expect("SCTP").config.mechanisms).expect("it can be set")
    };
    for (key, choices) in Mechanisms::CHOICES {
        for choice in *choices {
            let set = mechanisms(format!("flow.f.sctp.{key}={}", toml::Value::from(*choice)));
            assert_eq!(set.get(key).as_deref(), Some(*choice), "{key}");
        }
    }
    for (value, choice) in [("true", "on"), ("false", "off")] {
        assert_eq!(mechanisms(format!("flow.f.sctp.sfr={value}")).sfr.name(), choice);
    }
    for key in Rules::NUMBERS {
        assert_eq!(rules(format!("flow.f.sctp.{key}=17")).get(key).as_deref(), Some("17"), "{key}");
    }
}

/// `cmt` sets the mechanisms, each of which can be set alone besides.
#[test]
fn cmt_sets_and_keys_change_single_ones() {
    use anabranch_proto::Config;
    for (era, _) in anabranch_proto::Rules::ERAS {
        let cmt = Config::era(era).expect("an era").with_cmt();
        let edits = |more: &str| {
            [format!("era={era}"), "flow.f.sctp.cmt=true".to_owned(), format!("flow.f.sctp.{more}")]
        };
        assert_eq!(read(&edits("cmt=true")).unwrap().flows[0].sctp().expect("SCTP").config, cmt);
        let mut without = cmt.clone();
        without.mechanisms.choose("sfr", "off").expect("a mechanism");
        assert_eq!(read(&edits("sfr=false")).unwrap().flows[0].sctp().expect("SCTP").config, without);
    }
}

#[test]
fn an_era_sets_all_and_keys_change_single_ones() {
    use anabranch_proto::Config;
    for (era, _) in anabranch_proto::Rules::ERAS {
        let config = Config::era(era).expect("an era");
        assert_eq!(read(&[format!("era={era}")]).unwrap().flows[0].sctp().expect("SCTP").config, config);
        let own = read(&[format!("flow.f.sctp.era={era}"), "flow.f.sctp.max_burst=9".to_owned()]).unwrap();
        assert_eq!(
            own.flows[0].sctp().expect("SCTP").config,
            config.with(|parameters| parameters.max_burst = 9)
        );
    }
}
