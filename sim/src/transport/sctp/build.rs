//! The agents of an SCTP flow: their parameters, addresses and routes.

use anabranch_proto::policy::PolicyError;
use anabranch_proto::wire::chunk::{AUTH_HEADER, DATA_HEADER, IDATA_HEADER};
use anabranch_proto::{Config, Endpoint, LocalAddress, NewError, Pairs, Policies, Reliability};

use super::{Application, PathTable, SctpAgent};
use crate::chance::stream_seed;
use crate::error::RunError;
use crate::network::DirectionId;
use crate::scenario::{Flow, Sctp};
use crate::traffic::{Pace, Sink, Source};
use crate::transport::datagram::UDP_HEADER;
use crate::transport::{Routes, Site};

/// The UDP port of SCTP (RFC 6951).
const UDP_PORT: u16 = 9899;
/// Bytes of the common header and of a DATA chunk's.
const SCTP_HEADERS: u32 = 12 + 16;
/// Bytes of the HMAC that both ends prefer.
const SHA_256: u32 = 32;

/// The two ends of an SCTP flow, the client first: it is agent number `first`.
pub(crate) fn agents(
    site: &Site<'_>,
    sctp: &Sctp,
    policies: &Policies,
    routes: &mut Routes,
    first: usize,
) -> Result<[SctpAgent; 2], RunError> {
    let [client, server] = configs(site, sctp);
    let header = client.ip_header + if sctp.udp { UDP_HEADER } else { 0 };
    let payload = client.mtu.saturating_sub(header + SCTP_HEADERS + extension_headers(&client)) & !3;
    let size = site.flow.message_size.unwrap_or(payload);
    let source = Source::new(site.flow, sctp, size, site.scenario.seed);
    let [there, back] = ways(site, [&client, &server], routes, first);
    debug_assert_eq!(there.routes.len(), site.ends.client.len() * site.ends.server.len());
    let agent = |config, way, application, side: &str| {
        let seed = stream_seed(site.scenario.seed, &format!("flow/{}/{side}", site.flow.name));
        let endpoint =
            Endpoint::new(config, policies.clone(), seed).map_err(|error| refused(site.flow, error))?;
        Ok(SctpAgent::new(endpoint, application, way, header, site.scenario.wire))
    };
    let mut client = agent(client, there, Application::Sender(source), "client")?;
    client.set_listening(false);
    let mut sink = Sink::new(site.flow);
    if !sctp.unordered && sctp.reliability == Reliability::Full {
        sink = sink.timing(Pace::new(site.flow, size, site.scenario.seed), sctp.streams);
    }
    Ok([client, agent(server, back, Application::Reader(sink), "server")?])
}

/// Whether both ends can be made.
pub(crate) fn check(site: &Site<'_>, sctp: &Sctp, policies: &Policies) -> Result<(), RunError> {
    let flow = site.flow;
    for config in configs(site, sctp) {
        config.check().map_err(|error| refused(flow, error.into()))?;
        let policy = |key, error| RunError::Policy { flow: flow.name.clone(), key, error };
        policies.window(&config.window, &config).map(drop).map_err(|error| policy("window", error))?;
        for (key, spec) in
            [("new_data", &config.new_data), ("fast", &config.fast), ("timeout", &config.timeout)]
        {
            policies.route(spec, &config).map_err(|error: PolicyError| policy(key, error))?;
        }
    }
    Ok(())
}

/// The parameters of the two ends.
fn configs(site: &Site<'_>, sctp: &Sctp) -> [Config; 2] {
    let ends = &site.ends;
    let [client, server] = site.addresses(if sctp.udp { UDP_PORT } else { 0 });
    let mut config = sctp.config.clone();
    config.ip_header = site.ip_header();
    config.mtu = site.mtu();
    config.port = site.port();
    config.outbound_streams = config.outbound_streams.max(sctp.streams);
    config.inbound_streams = config.inbound_streams.max(sctp.streams);
    let listed = |pair: fn((LocalAddress, LocalAddress)) -> (LocalAddress, LocalAddress)| {
        if !sctp.all_pairs {
            return Pairs::OnePerPeer;
        }
        let addresses = ends.paths.iter().map(|(c, s)| pair((client[*c], server[*s])));
        Pairs::Listed(addresses.map(|(local, remote)| (local.address, remote.address)).collect())
    };
    let (there, back) = (listed(|pair| pair), listed(|(c, s)| (s, c)));
    [
        Config { addresses: client.clone(), pairs: there, ..config.clone() },
        Config { addresses: server.clone(), pairs: back, ..config },
    ]
}

/// The addresses and routes there and back.
fn ways(
    site: &Site<'_>,
    [client, server]: [&Config; 2],
    routes: &mut Routes,
    first: usize,
) -> [PathTable; 2] {
    let ends = &site.ends;
    let addresses = |config: &Config| config.addresses.iter().map(|local| local.address).collect::<Vec<_>>();
    let [here, there] = [addresses(client), addresses(server)];
    let mut grid = |from: &[DirectionId], to: &[DirectionId], agent| {
        let mut rows = Vec::with_capacity(from.len() * to.len());
        for interface in from {
            rows.extend(to.iter().map(|other| routes.add(site.network, *interface, *other, agent)));
        }
        rows
    };
    let name = |c: usize, s: usize| ends.name(c, s).to_owned();
    let (clients, servers) = (0..here.len(), 0..there.len());
    [
        PathTable {
            routes: grid(&ends.client, &ends.server, first + 1),
            names: clients.clone().flat_map(|c| servers.clone().map(move |s| name(c, s))).collect(),
            primary: ends.primary.map(|(c, s)| (here[c], there[s])),
            port: client.port,
            local: here.clone(),
            remote: there.clone(),
        },
        PathTable {
            routes: grid(&ends.server, &ends.client, first),
            names: servers.flat_map(|s| clients.clone().map(move |c| name(c, s))).collect(),
            primary: None,
            port: server.port,
            local: there,
            remote: here,
        },
    ]
}

fn refused(flow: &Flow, error: NewError) -> RunError {
    let flow = flow.name.clone();
    match error {
        NewError::Config(error) => RunError::Config { flow, error },
        NewError::Policy(error) => RunError::Policy { flow, key: "sctp", error },
    }
}

/// What extensions, which both ends offer, add to the headers of a packet with one chunk of data: I-DATA has a longer
/// one than DATA, AUTH goes before what must be authenticated.
fn extension_headers(config: &Config) -> u32 {
    let interleaving = if config.extensions.interleaving { (IDATA_HEADER - DATA_HEADER) as u32 } else { 0 };
    let auth = if config.authenticated_chunks.is_empty() { 0 } else { AUTH_HEADER as u32 + SHA_256 };
    interleaving + auth
}
