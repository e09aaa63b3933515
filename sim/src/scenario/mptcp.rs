//! `[flow.mptcp]`: the parameters of a connection over several subflows, and those of each subflow.

use anabranch_proto::{Config, Policies, PolicySpec};

use super::at::{At, Result};
use super::keys::{self, Default as Unless, Key, KeyDoc, read_known, refuse_unknown};
use super::sctp::bad_policy;
use super::{Tcp, tcp};
use crate::transport::mptcp::{MptcpConfig, PathManager, Priority, Reinjection};
use crate::transport::tcp::Variant;

/// The parameters that only Multipath TCP flows have.
#[derive(Clone, PartialEq, Debug)]
pub struct Mptcp {
    /// The parameters of each subflow; `receive_window` is not used.
    pub tcp: Tcp,
    /// The path on which the connection begins, by the name of the sender's first link, or "first/last".
    pub primary: Option<String>,
    /// Bytes that the receiver holds for all subflows together.
    pub receive_buffer: u64,
    /// Bytes given by the application that may wait for their acknowledgement; `None`: twice the receive buffer, at
    /// least 1 MiB.
    pub send_buffer: Option<u64>,
    /// The scheduler.
    pub new_data: PolicySpec,
    /// Whether data goes again while a full buffer keeps new data waiting.
    pub reinjection: Reinjection,
    /// Whether a subflow that keeps a buffer full has its window cut.
    pub penalise: bool,
    /// Whether a timeout gives the data of a subflow to others.
    pub reinject_on_timeout: bool,
    /// Timeouts in a row that a subflow may have and still be used while others work; `None`: any number.
    pub pf_max_retrans: Option<u32>,
    /// Which pairs of addresses have a subflow.
    pub path_manager: PathManager,
    /// The paths that are backups from the beginning.
    pub backup: Vec<String>,
    /// When the receiver changes the priority of a path.
    pub priorities: Vec<Priority>,
    /// Whether the server knows Multipath TCP.
    pub server_multipath: bool,
}

impl Default for Mptcp {
    /// Subflows of the standard's TCP, one for each interface, and the scheduler that takes the lowest round-trip time.
    fn default() -> Self {
        Mptcp {
            tcp: Tcp::default(),
            primary: None,
            receive_buffer: 1 << 20,
            send_buffer: None,
            new_data: PolicySpec::named("lowest-rtt"),
            reinjection: Reinjection::Off,
            penalise: false,
            reinject_on_timeout: true,
            pf_max_retrans: Some(0),
            path_manager: PathManager::OnePerInterface,
            backup: Vec::new(),
            priorities: Vec::new(),
            server_multipath: true,
        }
    }
}

impl Mptcp {
    /// The parameters in force, where a packet carries at most `largest` bytes of user data beside the options.
    pub fn config(&self, largest: u32) -> MptcpConfig {
        let mut tcp = self.tcp.config(largest);
        tcp.receive_window = self.receive_buffer;
        MptcpConfig {
            tcp,
            receive_buffer: self.receive_buffer,
            send_buffer: self.send_buffer.unwrap_or_else(|| (1 << 20).max(2 * self.receive_buffer)),
            new_data: self.new_data.clone(),
            reinjection: self.reinjection,
            penalise: self.penalise,
            reinject_on_timeout: self.reinject_on_timeout,
            pf_max_retrans: self.pf_max_retrans,
            backup: self.backup.clone(),
            priorities: self.priorities.clone(),
            server_multipath: self.server_multipath,
        }
    }
}

const KEYS: &[Key<Mptcp>] = &[
    Key {
        name: "variant",
        takes: "`\"standard\"` or `\"newreno\"`",
        default: Unless::Value("\"standard\""),
        doc: "The variant of TCP that gives the defaults of each subflow, as in `[flow.tcp]`.",
        read: |mptcp, at| {
            let name = at.one_of("variant", &["standard", "newreno"])?;
            mptcp.tcp.variant = Variant::named(name).unwrap_or(mptcp.tcp.variant);
            Ok(())
        },
    },
    Key {
        name: "primary",
        takes: "path",
        default: Unless::Text("the first by the names of the sender's links"),
        doc: "The path on which the connection begins, by the name of the sender's first link (`\"wifi\"`); if two paths share it, `\"first/last\"`.",
        read: |mptcp, at| at.string().map(|path| mptcp.primary = Some(path.to_owned())),
    },
    Key {
        name: "path_manager",
        takes: "`\"one-per-interface\"` or `\"fullmesh\"`",
        default: Unless::Value("\"one-per-interface\""),
        doc: "Which pairs of addresses have a subflow: one for each interface of the sender, or every pair with a route; 60 at most. The receiver announces its other addresses by ADD_ADDR.",
        read: |mptcp, at| {
            let mesh = at.one_of("choice", &["one-per-interface", "fullmesh"])? == "fullmesh";
            mptcp.path_manager = if mesh { PathManager::FullMesh } else { PathManager::OnePerInterface };
            Ok(())
        },
    },
    Key {
        name: "new",
        takes: "route",
        default: Unless::Value("\"lowest-rtt\""),
        doc: "The scheduler, which chooses the subflow of new data and of data that goes again: the routes of SCTP.",
        read: |mptcp, at| at.policy().map(|spec| mptcp.new_data = spec),
    },
    Key {
        name: "receive_buffer",
        takes: "size",
        default: Unless::Value("\"1 MiB\""),
        doc: "The receive buffer, one for all subflows; it determines the window that each announces.",
        read: |mptcp, at| at.size(1500..=1 << 30).map(|size| mptcp.receive_buffer = size),
    },
    Key {
        name: "send_buffer",
        takes: "size",
        default: Unless::Text("twice `receive_buffer`, at least `\"1 MiB\"`"),
        doc: "The send buffer, in bytes of user data not yet acknowledged by DATA_ACK.",
        read: |mptcp, at| at.size(1..=1 << 40).map(|size| mptcp.send_buffer = Some(size)),
    },
    Key {
        name: "reinjection",
        takes: "`\"off\"` or `\"opportunistic\"`",
        default: Unless::Value("\"off\""),
        doc: "Whether the lowest data not acknowledged also goes on another subflow while a full buffer keeps new data waiting.",
        read: |mptcp, at| {
            let on = at.one_of("choice", &["off", "opportunistic"])? == "opportunistic";
            mptcp.reinjection = if on { Reinjection::Opportunistic } else { Reinjection::Off };
            Ok(())
        },
    },
    Key {
        name: "penalise",
        takes: "boolean",
        default: Unless::Value("false"),
        doc: "Whether the subflow that keeps a buffer full has its congestion window halved, at most once a round trip, and not while it repairs losses.",
        read: |mptcp, at| at.boolean().map(|on| mptcp.penalise = on),
    },
    Key {
        name: "reinject_on_timeout",
        takes: "boolean",
        default: Unless::Value("true"),
        doc: "Whether the data of a subflow goes to the others after a timeout by which it counts as failed (`pf_max_retrans`; with `\"off\"` none does). The data of a lost subflow always does.",
        read: |mptcp, at| at.boolean().map(|on| mptcp.reinject_on_timeout = on),
    },
    Key {
        name: "pf_max_retrans",
        takes: "count or `\"off\"`",
        default: Unless::Value("0"),
        doc: "A subflow with more consecutive timeouts than this gets no new data while another works; `\"off\"`: no limit.",
        read: |mptcp, at| {
            let off = at.string() == Ok("off");
            mptcp.pf_max_retrans = if off { None } else { Some(at.count(0..=u32::MAX)?) };
            Ok(())
        },
    },
    Key {
        name: "backup",
        takes: "array of paths",
        default: Unless::Value("[]"),
        doc: "Paths that carry data only while no other works: the B bit of MP_JOIN, or for `primary` as if MP_PRIO had come at the beginning.",
        read: |mptcp, at| {
            let paths = at.array("an array of paths, as [\"lte\"]")?;
            let paths = paths.iter().map(|path| path.string().map(str::to_owned)).collect::<Result<_>>()?;
            mptcp.backup = paths;
            Ok(())
        },
    },
    Key {
        name: "priorities",
        takes: "array of tables",
        default: Unless::Value("[]"),
        doc: "Changes of priority that the receiver asks for by MP_PRIO, as `{ at = \"5 s\", path = \"lte\", backup = true }`; nothing is sent while the subflow is not there.",
        read: |mptcp, at| {
            let all = at.array("an array of tables, as [{ at = \"5 s\", path = \"lte\", backup = true }]")?;
            mptcp.priorities = all.iter().map(priority).collect::<Result<_>>()?;
            Ok(())
        },
    },
    Key {
        name: "server_multipath",
        takes: "boolean",
        default: Unless::Value("true"),
        doc: "Whether the receiver knows Multipath TCP; if not, the connection falls back to TCP on its first path (RFC 8684 §3.7).",
        read: |mptcp, at| at.boolean().map(|on| mptcp.server_multipath = on),
    },
];

/// The keys of TCP that a subflow has too.
fn of_tcp() -> impl Iterator<Item = &'static Key<Tcp>> {
    tcp::KEYS.iter().filter(|key| !["variant", "receive_window", "rto_tick", "rto_phase"].contains(&key.name))
}

/// Whether `[flow.mptcp]` takes `key`.
pub(super) fn has_key(key: &str) -> bool {
    KEYS.iter().map(|known| known.name).chain(of_tcp().map(|known| known.name)).any(|known| known == key)
}

/// The documentation of the keys.
pub(super) fn docs() -> Vec<KeyDoc> {
    let mut docs = keys::docs(KEYS);
    docs.extend(keys::docs(tcp::KEYS).into_iter().filter(|doc| of_tcp().any(|key| key.name == doc.name)));
    for doc in &mut docs {
        if let Unless::Text(text) = doc.default {
            doc.default = Unless::Text(without_sack1(text));
        }
    }
    docs
}

/// A default of TCP without what it is in ns-2's variants, which no subflow has. These come last.
fn without_sack1(text: &'static str) -> &'static str {
    let end = ["; in `sack1", ", in `sack1"].iter().find_map(|case| text.find(case));
    &text[..end.unwrap_or(text.len())]
}

/// Reads a `[flow.mptcp]`.
pub(super) fn mptcp(at: &At<'_>, policies: &Policies) -> Result<Mptcp> {
    refuse_unknown(
        at,
        &KEYS.iter().map(|key| key.name).chain(of_tcp().map(|key| key.name)).collect::<Vec<_>>(),
    )?;
    let mut mptcp = Mptcp::default();
    for key in of_tcp() {
        if let Some(value) = at.get(key.name) {
            (key.read)(&mut mptcp.tcp, &value)?;
        }
    }
    tcp::check(&mptcp.tcp, at, policies)?;
    read_known(&mut mptcp, at, KEYS)?;
    let names: Vec<_> = policies.route_names().collect();
    let made = policies.new_data_route(&mptcp.new_data, &Config::default());
    made.map(drop).map_err(|error| bad_policy(at, "new", "route", &mptcp.new_data, &error, &names))?;
    Ok(mptcp)
}

const PRIORITY_KEYS: &[Key<Priority>] = &[
    Key {
        name: "at",
        takes: "duration",
        default: Unless::Required,
        doc: "The time of the change, counted from the beginning of the run.",
        read: |priority, at| at.duration().map(|time| priority.at = time),
    },
    Key {
        name: "path",
        takes: "path",
        default: Unless::Required,
        doc: "The path.",
        read: |priority, at| at.string().map(|path| priority.path = path.to_owned()),
    },
    Key {
        name: "backup",
        takes: "boolean",
        default: Unless::Required,
        doc: "Whether it becomes a backup, or is one no more.",
        read: |priority, at| at.boolean().map(|backup| priority.backup = backup),
    },
];

fn priority(at: &At<'_>) -> Result<Priority> {
    let mut priority = Priority { at: anabranch_proto::Duration::ZERO, path: String::new(), backup: false };
    keys::fill(&mut priority, at, PRIORITY_KEYS)?;
    Ok(priority)
}
