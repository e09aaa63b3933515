//! Socket options for one path, an extension, or a request to the peer; and reading options.

use std::net::IpAddr;

use anabranch_proto::{
    AssociationId, ChangeError, Config, Direction, Duration, Extensions, Heartbeats, LocalAddress, PathState,
    PathView, Reliability,
};

use super::ast::Expr;
use super::socket::{CallFault, Outcome, done, failed, wrong};
use super::sockopt::{Fields, number, show};
use super::view::ip;
use super::world::World;

const HB_ENABLE: u32 = 1;
const HB_DISABLE: u32 = 2;
const HB_DEMAND: u32 = 4;
const PMTUD_ENABLE: u32 = 8;
const PMTUD_DISABLE: u32 = 16;

/// The standard's HB.interval, for scripts that enable heartbeats without an interval.
const HB_INTERVAL: Duration = Duration::from_secs(30);

/// SCTP_PEER_ADDR_PARAMS as written. A zero leaves a setting unchanged.
pub(super) struct PeerAddress {
    address: Option<IpAddr>,
    interval: Option<Duration>,
    retrans: Option<u32>,
    mtu: Option<u32>,
    flags: u32,
}

impl PeerAddress {
    pub(super) fn read(value: &Expr) -> Result<Self, CallFault> {
        let known = [
            "spp_assoc_id",
            "spp_address",
            "spp_hbinterval",
            "spp_pathmaxrxt",
            "spp_pathmtu",
            "spp_flags",
            "spp_ipv6_flowlabel",
            "spp_dscp",
        ];
        let fields = Fields::of("SCTP_PEER_ADDR_PARAMS", value, &known)?;
        Ok(PeerAddress {
            address: fields.expr("spp_address").map(ip).transpose()?,
            interval: fields.millis("spp_hbinterval")?,
            retrans: fields.get("spp_pathmaxrxt")?,
            mtu: fields.get("spp_pathmtu")?,
            flags: fields.get("spp_flags")?.unwrap_or(0),
        })
    }

    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Applies its settings for all addresses.
    pub(super) fn apply(&self, config: &mut Config) {
        config.path_max_retrans = self.retrans.unwrap_or(config.path_max_retrans);
        config.mtu = self.mtu.unwrap_or(config.mtu);
        config.heartbeat_interval = match self.interval {
            _ if self.has(HB_DISABLE) => None,
            Some(interval) => Some(interval),
            None if self.has(HB_ENABLE) => config.heartbeat_interval.or(Some(HB_INTERVAL)),
            None => config.heartbeat_interval,
        };
    }

    fn heartbeats(&self, before: Heartbeats, config: &Config) -> Heartbeats {
        match self.interval {
            _ if self.has(HB_DISABLE) => Heartbeats::Off,
            Some(interval) => Heartbeats::Every(interval),
            None if self.has(HB_ENABLE) && before == Heartbeats::Off => {
                Heartbeats::Every(config.heartbeat_interval.unwrap_or(HB_INTERVAL))
            }
            None => before,
        }
    }

    /// The MTU that is fixed from now on, if any. `now`: the current one.
    fn fixed_mtu(&self, before: Option<u32>, now: u32) -> Option<u32> {
        match self.mtu {
            _ if self.has(PMTUD_ENABLE) => None,
            Some(mtu) => Some(mtu),
            None if self.has(PMTUD_DISABLE) => Some(now),
            None => before,
        }
    }
}

impl World {
    /// Sets SCTP_PEER_ADDR_PARAMS of an association.
    pub(super) fn set_peer_address(&mut self, id: AssociationId, asked: &PeerAddress) -> Outcome {
        let Some(mut config) = self.endpoint.config_of(id).cloned() else { return failed("EINVAL") };
        let paths: Vec<PathView> = self.endpoint.paths(id).to_vec();
        let named = |path: &&PathView| asked.address.is_none_or(|ip| ip == path.remote.ip);
        if !paths.iter().any(|path| named(&path)) {
            return failed("EINVAL");
        }
        if asked.address.is_none() {
            asked.apply(&mut config);
            if config.check().is_err() || self.endpoint.reconfigure(self.now, id, config.parameters).is_err()
            {
                return failed("EINVAL");
            }
        }
        for path in paths.iter().filter(named) {
            let mut own = self.endpoint.path_parameters(id, path.id).unwrap_or_default();
            if asked.address.is_some() {
                own.heartbeats = asked.heartbeats(own.heartbeats, &config);
                own.max_retrans = asked.retrans.or(own.max_retrans);
            }
            own.mtu = asked.fixed_mtu(own.mtu, mtu(path, &config));
            self.endpoint.configure_path(self.now, id, path.id, own);
            if asked.has(HB_DEMAND) {
                self.endpoint.heartbeat(self.now, id, path.id);
            }
        }
        done(0)
    }

    /// The fields of SCTP_PEER_ADDR_PARAMS for the address in `expected`, or for all addresses.
    fn peer_address(
        &self,
        id: Option<AssociationId>,
        config: &Config,
        address: Option<IpAddr>,
    ) -> Option<Got> {
        let paths = id.map_or(&[][..], |id| self.endpoint.paths(id));
        let path = paths.iter().find(|path| address.map_or(path.primary, |ip| ip == path.remote.ip));
        let own = id.zip(path).and_then(|(id, path)| self.endpoint.path_parameters(id, path.id));
        let (one, own) = (address.is_some(), own.unwrap_or_default());
        if one && path.is_none() {
            return None;
        }
        let interval = match own.heartbeats {
            Heartbeats::Every(interval) if one => Some(interval),
            Heartbeats::Off if one => None,
            _ => config.heartbeat_interval,
        };
        let retrans = own.max_retrans.filter(|_| one).unwrap_or(config.path_max_retrans);
        let flags = if interval.is_some() { HB_ENABLE } else { HB_DISABLE }
            | if own.mtu.is_some() { PMTUD_DISABLE } else { PMTUD_ENABLE };
        Some(vec![
            ("spp_address", address.map_or(Expr::Any, Expr::Ip)),
            ("spp_hbinterval", millis(interval.unwrap_or_default())),
            ("spp_pathmaxrxt", int(retrans)),
            ("spp_pathmtu", int(path.map_or(config.mtu, |path| mtu(path, config)))),
            ("spp_flags", int(flags)),
            ("spp_ipv6_flowlabel", int(0_u32)),
            ("spp_dscp", int(0_u32)),
        ])
    }

    /// The fields of SCTP_GET_PEER_ADDR_INFO.
    fn peer_info(&self, id: AssociationId, address: IpAddr) -> Option<Got> {
        let path = self.endpoint.paths(id).iter().find(|path| path.remote.ip == address)?;
        let config = self.endpoint.config_of(id)?;
        let state = match path.state {
            PathState::Active => "SCTP_ACTIVE",
            PathState::PotentiallyFailed => "SCTP_PF",
            PathState::Unconfirmed => "SCTP_UNCONFIRMED",
            PathState::Inactive | PathState::Removed => "SCTP_INACTIVE",
        };
        Some(vec![
            ("spinfo_address", Expr::Ip(address)),
            ("spinfo_state", Expr::Word(state.to_owned())),
            ("spinfo_cwnd", Expr::Integer(path.window.into())),
            ("spinfo_srtt", millis(path.srtt.unwrap_or_default())),
            ("spinfo_rto", millis(path.rto)),
            ("spinfo_mtu", int(mtu(path, config))),
        ])
    }

    /// The value of the readable option `name`; `None` if it cannot be read.
    pub(super) fn read_option(
        &mut self,
        name: &str,
        arguments: &[Expr],
        expected: &Expr,
    ) -> Result<Option<Got>, CallFault> {
        let id = self.association(arguments)?;
        let config = self.config_in_force(arguments)?;
        let address = |key: &str| match expected {
            Expr::Fields(fields) => {
                let given = fields.iter().find(|(name, value)| name == key && *value != Expr::Any);
                given.map(|(_, value)| ip(value)).transpose()
            }
            _ => Ok(None),
        };
        Ok(match name {
            "SCTP_PEER_ADDR_PARAMS" => self.peer_address(id, &config, address("spp_address")?),
            "SCTP_GET_PEER_ADDR_INFO" => {
                id.zip(address("spinfo_address")?).and_then(|(id, ip)| self.peer_info(id, ip))
            }
            "SCTP_STATUS" => id.map(|id| self.status(id)),
            "SCTP_EVENT" => Some(self.subscribed(arguments, expected)?),
            "SCTP_RTOINFO" => Some(vec![
                ("srto_initial", millis(config.rto_initial)),
                ("srto_max", millis(config.rto_max)),
                ("srto_min", millis(config.rto_min)),
            ]),
            "SCTP_INITMSG" => Some(vec![
                ("sinit_num_ostreams", int(config.outbound_streams)),
                ("sinit_max_instreams", int(config.inbound_streams)),
                ("sinit_max_attempts", int(config.max_init_retransmits)),
                ("sinit_max_init_timeo", millis(config.max_init_timeout.unwrap_or(config.rto_max))),
            ]),
            "SCTP_DELAYED_SACK" => {
                Some(vec![("sack_delay", millis(config.sack_delay)), ("sack_freq", int(config.sack_every))])
            }
            name => {
                let agreed = id.map(|id| self.endpoint.extensions(id));
                let mut extensions = agreed.unwrap_or(config.extensions);
                match switch(name, &mut extensions) {
                    Some(on) => Some(vec![("assoc_value", int(*on))]),
                    None => return Err(CallFault::Unsupported(format!("reading the socket option {name}"))),
                }
            }
        })
    }

    /// Sets options that are not parameters of the stack; `None` if this is not one of them.
    pub(super) fn request(&mut self, name: &str, arguments: &[Expr], value: &Expr) -> Option<Outcome> {
        match name {
            "SCTP_RESET_STREAMS" => Some(self.reset_streams(arguments, value)),
            "SCTP_RESET_ASSOC" => {
                Some(self.change(arguments, |world, id| world.endpoint.reset_tsns(world.now, id)))
            }
            "SCTP_ADD_STREAMS" => Some(self.add_streams(arguments, value)),
            "SCTP_SET_PEER_PRIMARY_ADDR" => Some(self.set_peer_primary(arguments, value)),
            "SCTP_EVENT" | "SCTP_EVENTS" => Some(self.subscribe(name, arguments, value)),
            "SCTP_RECVRCVINFO" => Some(self.receive_info(arguments, value)),
            // Information about the next message is not delivered, and is not needed.
            "SCTP_RECVNXTINFO" if super::sockopt::one(value) == Some(0) => Some(done(0)),
            _ => None,
        }
    }

    fn change(
        &mut self,
        arguments: &[Expr],
        what: impl FnOnce(&mut World, AssociationId) -> Result<(), ChangeError>,
    ) -> Outcome {
        let Some(id) = self.association(arguments)? else { return failed("ENOTCONN") };
        match what(self, id) {
            Ok(()) => done(0),
            Err(ChangeError::NotAgreed) => failed("EOPNOTSUPP"),
            Err(ChangeError::Busy) => failed("EALREADY"),
            Err(ChangeError::Invalid) => failed("EINVAL"),
        }
    }

    fn reset_streams(&mut self, arguments: &[Expr], value: &Expr) -> Outcome {
        let known = ["srs_assoc_id", "srs_flags", "srs_number_streams", "srs_stream_list"];
        let fields = Fields::of("SCTP_RESET_STREAMS", value, &known)?;
        let flags = fields.get("srs_flags")?.unwrap_or(0);
        let listed = match fields.expr("srs_stream_list") {
            None => Vec::new(),
            Some(Expr::List(list)) => list.iter().filter_map(number).map(|n| n as u16).collect(),
            Some(other) => return wrong(format!("srs_stream_list takes a list, not {}", show(other))),
        };
        let directions = [(1, Direction::Incoming), (2, Direction::Outgoing)];
        let wanted: Vec<_> = directions.into_iter().filter(|(flag, _)| flags & flag != 0).collect();
        if wanted.is_empty() {
            return failed("EINVAL");
        }
        self.change(arguments, |world, id| {
            let mut each = wanted.iter();
            each.try_for_each(|(_, way)| world.endpoint.reset_streams(world.now, id, *way, &listed))
        })
    }

    fn add_streams(&mut self, arguments: &[Expr], value: &Expr) -> Outcome {
        let fields = Fields::of("SCTP_ADD_STREAMS", value, &["sas_assoc_id", "sas_instrms", "sas_outstrms"])?;
        let counts = [
            (Direction::Incoming, fields.get("sas_instrms")?),
            (Direction::Outgoing, fields.get("sas_outstrms")?),
        ];
        self.change(arguments, |world, id| {
            let mut asked = counts.into_iter().filter_map(|(way, count)| Some((way, count?)));
            asked.try_for_each(|(way, count)| {
                let count = u16::try_from(count).map_err(|_| ChangeError::Invalid)?;
                world.endpoint.add_streams(world.now, id, way, count)
            })
        })
    }

    fn set_peer_primary(&mut self, arguments: &[Expr], value: &Expr) -> Outcome {
        let fields = Fields::of("SCTP_SET_PEER_PRIMARY_ADDR", value, &["sspp_assoc_id", "sspp_addr"])?;
        let Some(address) = fields.expr("sspp_addr") else { return wrong("sspp_addr is missing") };
        let address = self.at(ip(address)?);
        self.change(arguments, |world, id| world.endpoint.set_peer_primary(world.now, id, address))
    }

    /// sctp_bindx(fd, addresses, flag) of an association. The peer is told.
    pub(super) fn bindx(&mut self, arguments: &[Expr]) -> Outcome {
        let adds = match arguments.iter().rev().find_map(|argument| match argument {
            Expr::Word(word) if word.starts_with("SCTP_BINDX_") => Some(word == "SCTP_BINDX_ADD_ADDR"),
            _ => None,
        }) {
            Some(adds) => adds,
            None => return wrong("SCTP_BINDX_ADD_ADDR or SCTP_BINDX_REM_ADDR is missing"),
        };
        let addresses: Vec<IpAddr> = match arguments.get(1) {
            Some(Expr::List(list)) => list.iter().map(ip).collect::<Result<_, _>>()?,
            Some(one) => vec![ip(one)?],
            None => return wrong("the second argument is a list of addresses"),
        };
        self.change(arguments, |world, id| {
            addresses.iter().try_for_each(|ip| {
                let address = world.at(*ip);
                match adds {
                    true => world.endpoint.add_address(world.now, id, LocalAddress { address, prefix: 24 }),
                    false => world.endpoint.remove_address(world.now, id, address),
                }
            })
        })
    }
}

/// The fields of an option that was read.
pub(super) type Got = Vec<(&'static str, Expr)>;

/// The extension that an option switches on or off.
pub(super) fn switch<'e>(name: &str, extensions: &'e mut Extensions) -> Option<&'e mut bool> {
    Some(match name {
        "SCTP_PR_SUPPORTED" => &mut extensions.partial_reliability,
        "SCTP_RECONFIG_SUPPORTED" | "SCTP_ENABLE_STREAM_RESET" => &mut extensions.reconfiguration,
        "SCTP_AUTH_SUPPORTED" => &mut extensions.authentication,
        "SCTP_ASCONF_SUPPORTED" => &mut extensions.addresses,
        "SCTP_INTERLEAVING_SUPPORTED" => &mut extensions.interleaving,
        "SCTP_ECN_SUPPORTED" => &mut extensions.ecn,
        "SCTP_NRSACK_SUPPORTED" => &mut extensions.nr_sack,
        _ => return None,
    })
}

/// The reliability that SCTP_DEFAULT_PRINFO sets.
pub(super) fn reliability(value: &Expr) -> Result<Reliability, CallFault> {
    let fields = Fields::of("SCTP_DEFAULT_PRINFO", value, &["pr_assoc_id", "pr_policy", "pr_value"])?;
    let amount = fields.get("pr_value")?.unwrap_or(0);
    match fields.expr("pr_policy") {
        None => Ok(Reliability::Full),
        Some(Expr::Word(policy)) => match policy.as_str() {
            "SCTP_PR_SCTP_NONE" => Ok(Reliability::Full),
            "SCTP_PR_SCTP_TTL" => Ok(Reliability::Lifetime(amount)),
            "SCTP_PR_SCTP_RTX" => Ok(Reliability::Retransmissions(amount)),
            "SCTP_PR_SCTP_PRIO" | "SCTP_PR_SCTP_BUF" => Ok(Reliability::Priority(amount)),
            other => wrong(format!("pr_policy={other} is none that there is")),
        },
        Some(other) => wrong(format!("pr_policy takes a name, not {}", show(other))),
    }
}

/// The path's MTU with the IP header.
fn mtu(path: &PathView, config: &Config) -> u32 {
    path.pmdcs + super::wire::HEADER as u32 + config.ip_header
}

fn int(n: impl Into<u32>) -> Expr {
    Expr::Integer(i128::from(n.into()))
}

fn millis(time: Duration) -> Expr {
    Expr::Integer(time.as_millis() as i128)
}
