//! Builds the agents of a TCP flow: parameters, ports and routes.

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_proto::control::window::MakeWindow;
use anabranch_proto::mechanisms::{AtThreshold, Mechanisms};
use anabranch_proto::policy::PolicyError;
use anabranch_proto::rules::T3Cut;
use anabranch_proto::{Config, Duration, Policies, Rules};

use super::agent::TcpAgent;
use super::application::{Application, Place};
use super::config::{STANDARD_WINDOW, TcpConfig};
use super::connection::{Connection, Identity};
use super::segment::{HEADER, Sequence};
use crate::chance::stream_seed;
use crate::error::{Item, RunError};
use crate::scenario::Tcp;
use crate::traffic::{Pace, Sink};
use crate::transport::{Routes, Site};

/// The smallest send buffer.
const LEAST_SEND_BUFFER: u64 = 1 << 20;
/// The largest window in bytes: more cannot be announced.
//= rfc7323#section-2.3
pub(crate) const MOST_WINDOW: u64 = 1 << 30;

/// The two ends of a flow. The sender is agent number `first`.
pub(crate) fn agents(
    site: &Site<'_>,
    tcp: &Tcp,
    policies: &Policies,
    routes: &mut Routes,
    first: usize,
) -> Result<[TcpAgent; 2], RunError> {
    let config = config(site, tcp);
    let (client, server) = site.ends.paths.first().copied().unwrap_or_default();
    let (from, to) = (site.ends.client[client], site.ends.server[server]);
    let [local, remote] = site.addresses(0);
    let (here, there) = (local[client].address.ip, remote[server].address.ip);
    let agent = |application: Application, (from_ip, to_ip), route, side: &str| {
        let identity = identity(site, &config, side, (from_ip, to_ip));
        let window = window(site, &config, policies)?;
        let connection = match application.is_sender() {
            true => Connection::connect(config.clone(), identity, window),
            false => Connection::listen(config.clone(), identity, window),
        };
        let place = Place {
            from: from_ip,
            to: to_ip,
            route,
            ip_header: site.ip_header(),
            path: site.ends.name(client, server).to_owned(),
            wire: site.scenario.wire,
        };
        Ok(TcpAgent { connection, application, place, details: VecDeque::new(), details_on: false })
    };
    let message = site.flow.message_size.unwrap_or(config.segment_size);
    let pace = || Pace::new(site.flow, message, site.scenario.seed);
    let sender = Application::sender(pace(), LEAST_SEND_BUFFER.max(2 * config.receive_window));
    let reader = Application::reader(Sink::new(site.flow).timing(pace(), 1));
    let there_route = routes.add(site.network, from, to, first + 1);
    let back_route = routes.add(site.network, to, from, first);
    Ok([
        agent(sender, (here, there), there_route, "client")?,
        agent(reader, (there, here), back_route, "server")?,
    ])
}

/// Why a larger initial window is refused.
pub(crate) const TOO_LARGE: &str = "it is at most 1 GiB, the largest window of a receiver";

/// Checks that both ends can be built.
pub(crate) fn check(site: &Site<'_>, tcp: &Tcp, policies: &Policies) -> Result<(), RunError> {
    let config = config(site, tcp);
    let most = largest_segment(site);
    let refused = |key, why| Err(RunError::Value { item: Item::Flow(site.flow.name.clone()), key, why });
    match () {
        _ if most < 1 => refused("mtu", "no TCP segment fits the MTU of every link on the route"),
        _ if !(1..=most).contains(&config.segment_size) => {
            refused("segment_size", "a segment must fit the MTU of every link on its route, with its headers")
        }
        _ if config.receive_window < u64::from(config.segment_size) => {
            refused("receive_window", "it must hold at least one segment")
        }
        _ if config.receive_window > MOST_WINDOW => {
            refused("receive_window", "it is at most 1 GiB, which is all that a receiver can announce")
        }
        _ if config.initial_window < u64::from(config.segment_size) => {
            refused("initial_window", "it must admit at least one segment")
        }
        _ if config.initial_window > MOST_WINDOW => refused("initial_window", TOO_LARGE),
        _ if config.rto_phase.is_some_and(|phase| phase >= config.rto_tick) => {
            refused("rto_phase", "it must be below `rto_tick`")
        }
        _ if config.rto_min > config.rto_max => refused("rto_min", "it must not exceed `rto_max`"),
        _ => window(site, &config, policies).map(drop),
    }
}

/// The largest number of bytes of user data that fit into a packet on the route.
pub(crate) fn largest_segment(site: &Site<'_>) -> u32 {
    site.mtu().min(65_535).saturating_sub(site.ip_header() + HEADER)
}

fn config(site: &Site<'_>, tcp: &Tcp) -> TcpConfig {
    tcp.config(largest_segment(site))
}

/// First sequence numbers and clock phases come from random streams with names.
fn identity(site: &Site<'_>, config: &TcpConfig, side: &str, addresses: (IpAddr, IpAddr)) -> Identity {
    let seed = stream_seed(site.scenario.seed, &format!("flow/{}/{side}", site.flow.name));
    let number = |at: usize| u32::from_le_bytes([seed[at], seed[at + 1], seed[at + 2], seed[at + 3]]);
    let nanos = u64::try_from(config.rto_tick.as_nanos()).unwrap_or(u64::MAX);
    let drawn = (u128::from(nanos) * u128::from(number(4))) >> 32;
    let phase = config.rto_phase.unwrap_or(Duration::from_nanos(drawn as u64));
    Identity { addresses, local: site.port(), remote: site.port(), first: Sequence(number(0)), phase }
}

/// The policy of the window, unless it is the variant's own. The connection tells window policies the units. Where
/// TCP's own window differs from SCTP's, every window does as TCP's: it avoids congestion from ssthresh on, a loss
/// leaves two segments at least, and a further timeout of the same segment leaves ssthresh.
pub(crate) fn window(
    site: &Site<'_>,
    config: &TcpConfig,
    policies: &Policies,
) -> Result<Option<MakeWindow>, RunError> {
    let window = &config.window;
    if window.name == STANDARD_WINDOW && window.settings.is_empty() {
        return Ok(None);
    }
    let refused =
        |error: PolicyError| RunError::Policy { flow: site.flow.name.clone(), key: "window", error };
    //= rfc5681#section-3.1
    let mechanisms = Mechanisms { at_threshold: AtThreshold::Avoidance, ..Mechanisms::default() };
    let rules = Rules { ssthresh_floor: 2, t3_cut: T3Cut::AboveUnit, ..Rules::default() };
    let units = Config { mechanisms, rules, ..Config::default() };
    policies.window(window, &units).map(Some).map_err(refused)
}
