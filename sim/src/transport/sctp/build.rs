//! Builds the agents of an SCTP flow: parameters, addresses and routes.

use anabranch_proto::policy::PolicyError;
use anabranch_proto::wire::UDP_PORT;
use anabranch_proto::wire::chunk::{AUTH_HEADER, DATA_HEADER, IDATA_HEADER, Timestamp};
use anabranch_proto::{Config, Endpoint, LocalAddress, NewError, Pairs, Policies, Reliability};

use super::line::{Line, PathTable};
use super::{Application, SctpAgent};
use crate::chance::stream_seed;
use crate::error::RunError;
use crate::network::DirectionId;
use crate::scenario::{Flow, Sctp};
use crate::traffic::{Pace, Sink, Source};
use crate::transport::datagram::UDP_HEADER;
use crate::transport::{Routes, Site};

/// The UDP port of SCTP (RFC 6951).
/// Bytes of the common header and of the header of a DATA chunk.
const SCTP_HEADERS: u32 = 12 + 16;
/// Bytes of the HMAC that both ends prefer.
const SHA_256: u32 = 32;

/// The two ends of an SCTP flow. The client comes first and is agent number `first`.
pub(crate) fn agents(
    site: &Site<'_>,
    sctp: &Sctp,
    policies: &Policies,
    routes: &mut Routes,
    first: usize,
) -> Result<[SctpAgent; 2], RunError> {
    let flow = site.flow;
    let parts = parts(site, sctp);
    let (mut clients, mut servers) = (Vec::with_capacity(parts.len()), Vec::with_capacity(parts.len()));
    let mut size = flow.message_size;
    for part in parts {
        let [client, server] = configs(site, sctp, &part);
        let header = client.ip_header + if sctp.udp { UDP_HEADER } else { 0 };
        let payload = client.mtu.saturating_sub(header + SCTP_HEADERS + extension_headers(&client)) & !3;
        size.get_or_insert(payload);
        let [there, back] = ways(site, &part, [&client, &server], routes, first);
        let line = |config, way, side: &str| {
            let stream = format!("flow/{}/{side}{}", flow.name, part.stream);
            let endpoint = Endpoint::new(config, policies.clone(), stream_seed(site.scenario.seed, &stream))
                .map_err(|error| refused(flow, error))?;
            Ok(Line::new(endpoint, way, header, site.scenario.wire))
        };
        clients.push(line(client, there, "client")?);
        servers.push(line(server, back, "server")?);
    }
    let (size, seed) = (size.unwrap_or(1), site.scenario.seed);
    let source = Source::new(flow, sctp, size, seed);
    let mut client = SctpAgent::new(clients, Application::Sender(source));
    client.set_listening(false);
    let mut sink = Sink::new(flow);
    // Messages that are given up, unordered, or on several associations do not arrive in the order of sending.
    let complete = sctp.reliability == Reliability::Full || !sctp.config.extensions.partial_reliability;
    if !sctp.unordered && !sctp.stripe && complete {
        sink = sink.timing(Pace::new(flow, size, seed), sctp.streams);
    }
    Ok([client, SctpAgent::new(servers, Application::Reader(sink))])
}

/// One association of a flow, with its interfaces at both ends.
struct Part {
    /// Positions of its interfaces among the client's and the server's.
    client: Vec<usize>,
    server: Vec<usize>,
    /// Pairs of positions that should become paths.
    paths: Vec<(usize, usize)>,
    /// The largest windows of its paths, in bytes.
    max_cwnd: Vec<u64>,
    /// A suffix for the names of its random streams, so that the streams of all associations differ.
    stream: String,
}

/// The associations of a flow: one, or with `stripe` one for each path.
fn parts(site: &Site<'_>, sctp: &Sctp) -> Vec<Part> {
    let ends = &site.ends;
    let max_cwnd = &sctp.config.max_cwnd;
    if !sctp.stripe {
        let (client, server) = ((0..ends.client.len()).collect(), (0..ends.server.len()).collect());
        let (paths, max_cwnd) = (ends.paths.clone(), max_cwnd.clone());
        return vec![Part { client, server, paths, max_cwnd, stream: String::new() }];
    }
    let part = |(number, &(client, server)): (usize, &(usize, usize))| Part {
        client: vec![client],
        server: vec![server],
        paths: vec![(client, server)],
        max_cwnd: max_cwnd.get(number).or(max_cwnd.last()).copied().into_iter().collect(),
        stream: format!("/{}", ends.name(client, server)),
    };
    ends.paths.iter().enumerate().map(part).collect()
}

/// Checks that both ends can be built.
pub(crate) fn check(site: &Site<'_>, sctp: &Sctp, policies: &Policies) -> Result<(), RunError> {
    let flow = site.flow;
    let ends = parts(site, sctp);
    for config in ends.iter().flat_map(|part| configs(site, sctp, part)) {
        config.check().map_err(|error| refused(flow, error.into()))?;
        let policy = |key, error| RunError::Policy { flow: flow.name.clone(), key, error };
        policies.window(&config.window, &config).map(drop).map_err(|error| policy("window", error))?;
        let new = policies.new_data_route(&config.new_data, &config);
        new.map_err(|error: PolicyError| policy("new_data", error))?;
        for (key, spec) in [("fast", &config.fast), ("timeout", &config.timeout)] {
            policies.route(spec, &config).map_err(|error: PolicyError| policy(key, error))?;
        }
    }
    Ok(())
}

/// The parameters of the two ends of an association.
fn configs(site: &Site<'_>, sctp: &Sctp, part: &Part) -> [Config; 2] {
    let [client, server] = site.addresses(if sctp.udp { UDP_PORT } else { 0 });
    let mut config = sctp.config.clone();
    config.ip_header = site.ip_header();
    config.mtu = site.mtu();
    config.port = site.port();
    config.max_cwnd.clone_from(&part.max_cwnd);
    config.outbound_streams = config.outbound_streams.max(sctp.streams);
    config.inbound_streams = config.inbound_streams.max(sctp.streams);
    let listed = |pair: fn((LocalAddress, LocalAddress)) -> (LocalAddress, LocalAddress)| {
        if !sctp.all_pairs {
            return Pairs::OnePerPeer;
        }
        let addresses = part.paths.iter().map(|(c, s)| pair((client[*c], server[*s])));
        Pairs::Listed(addresses.map(|(local, remote)| (local.address, remote.address)).collect())
    };
    let (there, back) = (listed(|pair| pair), listed(|(c, s)| (s, c)));
    let addresses = |all: &[LocalAddress], own: &[usize]| own.iter().map(|position| all[*position]).collect();
    [
        Config { addresses: addresses(&client, &part.client), pairs: there, ..config.clone() },
        Config { addresses: addresses(&server, &part.server), pairs: back, ..config },
    ]
}

/// The addresses, and the routes in both directions.
fn ways(
    site: &Site<'_>,
    part: &Part,
    [client, server]: [&Config; 2],
    routes: &mut Routes,
    first: usize,
) -> [PathTable; 2] {
    let ends = &site.ends;
    let addresses = |config: &Config| config.addresses.iter().map(|local| local.address).collect::<Vec<_>>();
    let [here, there] = [addresses(client), addresses(server)];
    let mut grid = |from: Vec<DirectionId>, to: Vec<DirectionId>, agent| {
        let mut rows = Vec::with_capacity(from.len() * to.len());
        for interface in from {
            rows.extend(to.iter().map(|other| routes.add(site.network, interface, *other, agent)));
        }
        rows
    };
    let interfaces = |all: &[DirectionId], own: &[usize]| own.iter().map(|position| all[*position]).collect();
    let clients = || interfaces(&ends.client, &part.client);
    let servers = || interfaces(&ends.server, &part.server);
    let name = |c: usize, s: usize| ends.name(c, s).to_owned();
    let at = |own: &[usize], wanted: usize| own.iter().position(|position| *position == wanted);
    let primary = ends.primary.and_then(|(c, s)| Some((at(&part.client, c)?, at(&part.server, s)?)));
    [
        PathTable {
            routes: grid(clients(), servers(), first + 1),
            names: part.client.iter().flat_map(|c| part.server.iter().map(|s| name(*c, *s))).collect(),
            primary: primary.map(|(c, s)| (here[c], there[s])),
            port: client.port,
            local: here.clone(),
            remote: there.clone(),
        },
        PathTable {
            routes: grid(servers(), clients(), first),
            names: part.server.iter().flat_map(|s| part.client.iter().map(|c| name(*c, *s))).collect(),
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

/// Bytes that extensions, which both ends offer, add to the headers of a packet with one DATA chunk. The header of
/// I-DATA is longer than that of DATA, AUTH precedes the chunks that it authenticates, and TIMESTAMP follows the data.
fn extension_headers(config: &Config) -> u32 {
    let interleaving = if config.extensions.interleaving { (IDATA_HEADER - DATA_HEADER) as u32 } else { 0 };
    let auth = if config.authenticated_chunks.is_empty() { 0 } else { AUTH_HEADER as u32 + SHA_256 };
    let stamps = if config.extensions.timestamps { Timestamp::SIZE as u32 } else { 0 };
    interleaving + auth + stamps
}
