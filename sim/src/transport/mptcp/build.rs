//! Builds the agents of a Multipath TCP flow: parameters, addresses, subflows and routes.

use std::collections::VecDeque;

use anabranch_proto::control::window::MakeWindow;
use anabranch_proto::wire::Address;
use anabranch_proto::{Config, Duration, PathId, PathView, Policies, Time};

use super::agent::MptcpAgent;
use super::config::MptcpConfig;
use super::connection::Connection;
use super::keys::Keys;
use super::option::DATA_OPTION;
use super::setup::{Announced, Setup};
use super::subflow::Subflow;
use crate::chance::stream_seed;
use crate::error::{Item, RunError};
use crate::scenario::Mptcp;
use crate::traffic::{Pace, Sink};
use crate::transport::tcp::{self, Application, Connection as Tcp, Identity, Place, Sequence};
use crate::transport::{Routes, Site};

/// The largest number of subflows of a connection.
const MOST_SUBFLOWS: usize = 60;

/// The two ends of a flow. The sender is agent number `first`.
pub(crate) fn agents(
    site: &Site<'_>,
    mptcp: &Mptcp,
    policies: &Policies,
    routes: &mut Routes,
    first: usize,
) -> Result<[MptcpAgent; 2], RunError> {
    let config = config(site, mptcp);
    let pairs = pairs(site);
    let (mut places, mut arrivals) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let addresses = site.addresses(0);
    for &(client, server) in &pairs {
        let (from, to) = (site.ends.client[client], site.ends.server[server]);
        let (here, there) = (addresses[0][client].address.ip, addresses[1][server].address.ip);
        let ways = [(here, there, from, to, first + 1), (there, here, to, from, first)];
        for (end, (own, other, from, to, agent)) in ways.into_iter().enumerate() {
            places[end].push(Place {
                from: own,
                to: other,
                route: routes.add(site.network, from, to, agent),
                ip_header: site.ip_header(),
                path: site.ends.name(client, server).to_owned(),
                wire: site.scenario.wire,
            });
            arrivals[1 - end].push(routes.last());
        }
    }
    let size = site.flow.message_size.unwrap_or(config.tcp.segment_size);
    let pace = || Pace::new(site.flow, size, site.scenario.seed);
    let sender = Application::sender(pace(), config.send_buffer);
    let reader = Application::reader(Sink::new(site.flow).timing(pace(), 1));
    let ([client, server], [arrivals, others]) = (places, arrivals);
    let agent = |application, places: Vec<Place>, arrivals, is_client| {
        let connection = connection(site, &config, policies, &pairs, &places, is_client)?;
        let (details, details_on) = (VecDeque::new(), false);
        Ok(MptcpAgent { connection, application, places, arrivals, details, details_on })
    };
    Ok([agent(sender, client, arrivals, true)?, agent(reader, server, others, false)?])
}

/// Checks that both ends can be built.
pub(crate) fn check(site: &Site<'_>, mptcp: &Mptcp, policies: &Policies) -> Result<(), RunError> {
    let config = config(site, mptcp);
    let most = largest_segment(site);
    let refused = |key, why| Err(RunError::Value { item: Item::Flow(site.flow.name.clone()), key, why });
    match () {
        () if most < 1 => {
            refused("mtu", "no segment with the options of Multipath TCP fits the MTU of every link")
        }
        () if !(1..=most).contains(&config.tcp.segment_size) => refused(
            "segment_size",
            "a segment must fit the MTU of every link on its routes, with its headers and options",
        ),
        () if config.receive_buffer < u64::from(config.tcp.segment_size) => {
            refused("receive_buffer", "it must hold at least one segment")
        }
        () if config.tcp.initial_window < u64::from(config.tcp.segment_size) => {
            refused("initial_window", "it must admit at least one segment")
        }
        () if config.tcp.initial_window > tcp::MOST_WINDOW => refused("initial_window", tcp::TOO_LARGE),
        () if config.tcp.rto_min > config.tcp.rto_max => refused("rto_min", "it must not exceed `rto_max`"),
        () => {
            paths_exist(site, "backup", config.backup.iter())?;
            paths_exist(site, "priorities", config.priorities.iter().map(|priority| &priority.path))?;
            let policy = |key, error| RunError::Policy { flow: site.flow.name.clone(), key, error };
            policies
                .new_data_route(&config.new_data, &Config::default())
                .map_err(|error| policy("new", error))?;
            tcp::window_policy(site, &config.tcp, policies).map(drop)
        }
    }
}

/// Checks that the flow has each of the paths that `key` names.
fn paths_exist<'p>(
    site: &Site<'_>,
    key: &'static str,
    mut named: impl Iterator<Item = &'p String>,
) -> Result<(), RunError> {
    let known: Vec<String> =
        pairs(site).iter().map(|(client, server)| site.ends.name(*client, *server).to_owned()).collect();
    named.find(|path| !known.contains(path)).map_or(Ok(()), |path| {
        Err(RunError::UnknownPath { flow: site.flow.name.clone(), key, path: path.clone(), known })
    })
}

/// The largest number of bytes of user data that fit into a packet on every route.
fn largest_segment(site: &Site<'_>) -> u32 {
    tcp::largest_segment(site).saturating_sub(DATA_OPTION)
}

fn config(site: &Site<'_>, mptcp: &Mptcp) -> MptcpConfig {
    mptcp.config(largest_segment(site))
}

/// Pairs of interface positions, by path. The first pair starts the connection.
fn pairs(site: &Site<'_>) -> Vec<(usize, usize)> {
    let ends = &site.ends;
    let mut pairs = ends.paths.clone();
    let first = ends.primary.and_then(|primary| pairs.iter().position(|pair| *pair == primary));
    pairs.swap(0, first.unwrap_or(0));
    pairs.truncate(MOST_SUBFLOWS);
    pairs
}

fn connection(
    site: &Site<'_>,
    config: &MptcpConfig,
    policies: &Policies,
    pairs: &[(usize, usize)],
    places: &[Place],
    is_client: bool,
) -> Result<Connection, RunError> {
    let (name, seed) = (&site.flow.name, site.scenario.seed);
    let number = |seed: &[u8; 32], at| u64::from_le_bytes(std::array::from_fn(|i| seed[at + i]));
    let key = |side| number(&stream_seed(seed, &format!("flow/{name}/{side}/key")), 0);
    let keys = Keys { own: key("client"), other: key("server") };
    let keys = if is_client { keys } else { keys.turned() };
    let policy = |error| RunError::Policy { flow: name.clone(), key: "new", error };
    let route = policies.new_data_route(&config.new_data, &Config::default()).map_err(policy)?;
    let window = tcp::window_policy(site, &config.tcp, policies)?;
    let plain = !is_client && !config.server_multipath;
    let side = if is_client { "client" } else { "server" };
    let mut subflows = Vec::with_capacity(pairs.len());
    for (path, &(client, server)) in pairs.iter().enumerate() {
        let stream = if path == 0 { side.to_owned() } else { format!("{side}/{}", places[path].path) };
        let drawn = stream_seed(seed, &format!("flow/{name}/{stream}"));
        let identity = Identity {
            addresses: (places[path].from, places[path].to),
            local: site.port(),
            remote: site.port(),
            first: Sequence(number(&drawn, 0) as u32),
            phase: Duration::ZERO,
        };
        let mut tcp = end(config, identity, window.clone(), is_client);
        if !plain {
            tcp.share_buffer();
        }
        let backup = config.backup.contains(&places[path].path);
        let addresses = [client as u8 + 1, server as u8 + 1];
        subflows.push(Subflow::new(tcp, addresses, backup, [number(&drawn, 8) as u32, 0]));
    }
    let setup = setup(config, pairs, places, is_client);
    let views = places.iter().enumerate().map(|(path, place)| view(path, place, config)).collect();
    let ties = number(&stream_seed(seed, &format!("flow/{name}/{side}/ties")), 0);
    Ok(Connection::new(config.clone(), is_client, keys, (subflows, views), (route, ties), setup))
}

fn end(config: &MptcpConfig, identity: Identity, window: Option<MakeWindow>, is_client: bool) -> Tcp {
    match is_client {
        true => Tcp::connect(config.tcp.clone(), identity, window),
        false => Tcp::listen(config.tcp.clone(), identity, window),
    }
}

/// What each end initially knows about the other's addresses, and its requests to change priorities.
fn setup(config: &MptcpConfig, pairs: &[(usize, usize)], places: &[Place], is_client: bool) -> Setup {
    let id = |server: usize| server as u8 + 1;
    let Some(&(_, first)) = pairs.first() else { return Setup::default() };
    if is_client {
        return Setup { known: vec![id(first)], ..Setup::default() };
    }
    let mut addresses: Vec<Announced> = Vec::new();
    for (&(_, server), place) in pairs.iter().zip(places) {
        if server != first && addresses.iter().all(|announced| announced.id != id(server)) {
            addresses.push(Announced {
                id: id(server),
                address: place.from,
                timer: None,
                times: 0,
                heard: false,
            });
        }
    }
    let asked = config.priorities.iter().filter_map(|priority| {
        let path = places.iter().position(|place| place.path == priority.path)?;
        Some((Time::ZERO + priority.at, path, priority.backup))
    });
    let mut priorities: Vec<_> = asked.collect();
    priorities.sort_by_key(|priority| priority.0);
    Setup { addresses, priorities, ..Setup::default() }
}

/// The initial facts of a path.
fn view(path: usize, place: &Place, config: &MptcpConfig) -> PathView {
    let [local, remote] = [place.from, place.to].map(|ip| Address { ip, udp: 0 });
    PathView {
        primary: path == 0,
        pmdcs: config.tcp.segment_size,
        window: config.tcp.initial_window,
        ssthresh: u64::MAX,
        ..PathView::unused(PathId(path as u16), (local, remote), Time::ZERO, config.tcp.rto_initial)
    }
}
