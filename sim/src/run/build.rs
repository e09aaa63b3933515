//! From a scenario to what the engine drives.

use anabranch_proto::policy::PolicyError;
use anabranch_proto::wire::chunk::{AUTH_HEADER, DATA_HEADER, IDATA_HEADER};
use anabranch_proto::{Config, Duration, Endpoint, LocalAddress, NewError, Pairs, Policies, Time};

use crate::chance::stream_seed;
use crate::engine::{ARRIVED, Change, NO_ROUTE, Parts};
use crate::error::RunError;
use crate::medium::wire::Losses;
use crate::medium::wire::{Alteration, Direction};
use crate::network::{DirectionId, Network};
use crate::observe::trace::Observer;
use crate::scenario::{Flow, Scenario};
use crate::traffic::{Sink, Source};
use crate::transport::ends::Ends;
use crate::transport::sctp::{Application, SctpAgent, Ways};

use super::values;

/// Bytes of a UDP header.
const UDP_HEADER: u32 = 8;
/// The UDP port of SCTP (RFC 6951).
const UDP_PORT: u16 = 9899;
/// Bytes of the common header and of a DATA chunk's.
const SCTP_HEADERS: u32 = 12 + 16;
/// Bytes of the HMAC that both ends prefer.
const SHA_256: u32 = 32;
/// The SCTP port of the first flow.
const FIRST_PORT: u16 = 5000;

/// A scenario that can be run.
pub(super) struct Plan<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) network: Network,
    /// Sorted by name, each with its two ends.
    pub(super) flows: Vec<(&'a Flow, Ends)>,
}

impl<'a> Plan<'a> {
    /// Checks everything that can be wrong.
    pub(super) fn new(scenario: &'a Scenario, policies: &Policies) -> Result<Self, RunError> {
        values::check(scenario)?;
        let network = Network::new(scenario)?;
        let mut sorted: Vec<&Flow> = scenario.flows.iter().collect();
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        let ends = |flow: &'a Flow| Ok((flow, Ends::new(&network, flow)?));
        let flows = sorted.into_iter().map(ends).collect::<Result<Vec<_>, RunError>>()?;
        let plan = Plan { scenario, network, flows };
        (0..plan.flows.len()).try_for_each(|number| plan.check_configs(number, policies))?;
        Ok(plan)
    }

    /// What the engine drives.
    pub(super) fn parts<'o>(
        &self,
        policies: &Policies,
        notes: bool,
        observer: Option<&'o mut dyn Observer>,
        extra_polls: bool,
    ) -> Result<Parts<'o, SctpAgent>, RunError> {
        let mut routes = Vec::new();
        let mut agents = Vec::new();
        for number in 0..self.flows.len() {
            let mut pair = self.agents(number, policies, &mut routes)?;
            pair.iter_mut().for_each(|agent| agent.set_notes(notes));
            agents.extend(pair);
        }
        let awaited = self.flows.iter().map(|(flow, _)| values::amount(flow).is_some()).collect();
        let links = (0..2 * self.network.links().len() as DirectionId).map(|id| self.direction(id)).collect();
        Ok(Parts { links, routes, agents, awaited, changes: self.changes(), observer, extra_polls })
    }

    fn direction(&self, id: DirectionId) -> Direction {
        let edge = self.network.link_of(id);
        let given = edge.given[id as usize % 2];
        let link = &self.scenario.links[edge.index];
        let stream = format!("link/{}/{}/loss", link.name, self.network.label(id));
        let losses = Losses::new(self.scenario.seed, &stream, &link.loss[given]);
        Direction::new(link.rate[given], nanos(link.delay[given]), link.queue[given], losses, link.up)
            .marking(link.mark[given])
    }

    /// The changes in order of time; of those at one time the links' names decide, then the document.
    fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (number, edge) in self.network.links().iter().enumerate() {
            for change in self.scenario.changes.iter().filter(|change| change.link == edge.name) {
                for (direction, given) in edge.given.into_iter().enumerate() {
                    let alteration = Alteration {
                        up: change.up,
                        rate: change.rate.map(|rate| rate[given]),
                        delay: change.delay.map(|delay| nanos(delay[given])),
                        loss: change.loss.as_ref().map(|loss| loss[given].clone()),
                    };
                    changes.push(Change {
                        at: Time::ZERO + change.at,
                        link: 2 * number + direction,
                        alteration,
                    });
                }
            }
        }
        changes.sort_by_key(|change| change.at);
        changes
    }

    /// The two ends of flow `number`; its routes are added to `routes`.
    fn agents(
        &self,
        number: usize,
        policies: &Policies,
        routes: &mut Vec<u32>,
    ) -> Result<[SctpAgent; 2], RunError> {
        let (flow, ends) = &self.flows[number];
        let [client, server] = self.configs(number);
        let header = client.ip_header + if flow.udp { UDP_HEADER } else { 0 };
        let payload = client.mtu.saturating_sub(header + SCTP_HEADERS + extension_headers(&client)) & !3;
        let source = Source::new(flow, flow.message_size.unwrap_or(payload));
        let [there, back] = self.ways(number, [&client, &server], routes);
        debug_assert_eq!(there.routes.len(), ends.client.len() * ends.server.len());
        let agent = |config, way, application, side: usize| {
            let seed = stream_seed(
                self.scenario.seed,
                &format!("flow/{}/{}", flow.name, ["client", "server"][side]),
            );
            let endpoint =
                Endpoint::new(config, policies.clone(), seed).map_err(|error| refused(flow, error))?;
            Ok(SctpAgent::new(endpoint, application, way, header, self.scenario.wire))
        };
        let mut client = agent(client, there, Application::Sender(source), 0)?;
        client.set_listening(false);
        Ok([client, agent(server, back, Application::Reader(Sink::new(flow)), 1)?])
    }

    /// The parameters of the two ends of flow `number`.
    fn configs(&self, number: usize) -> [Config; 2] {
        let (flow, ends) = &self.flows[number];
        let [client, server] = ends.addresses(&self.network, if flow.udp { UDP_PORT } else { 0 });
        let mut config = flow.sctp.clone();
        config.ip_header = self.scenario.ip_header;
        config.mtu = self.mtu(ends);
        config.port = FIRST_PORT + (number % usize::from(u16::MAX - FIRST_PORT)) as u16;
        config.outbound_streams = config.outbound_streams.max(flow.streams);
        config.inbound_streams = config.inbound_streams.max(flow.streams);
        let listed = |pair: fn((LocalAddress, LocalAddress)) -> (LocalAddress, LocalAddress)| {
            if !flow.all_pairs {
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

    /// The smallest MTU of the links on any of the flow's routes.
    fn mtu(&self, ends: &Ends) -> u32 {
        let routes =
            ends.client.iter().flat_map(|c| ends.server.iter().filter_map(|s| self.network.route(*c, *s)));
        routes.flatten().map(|direction| self.network.link_of(direction).mtu).min().unwrap_or(1500)
    }

    /// The addresses and routes there and back.
    fn ways(&self, number: usize, [client, server]: [&Config; 2], routes: &mut Vec<u32>) -> [Ways; 2] {
        let (_, ends) = &self.flows[number];
        let addresses =
            |config: &Config| config.addresses.iter().map(|local| local.address).collect::<Vec<_>>();
        let [here, there] = [addresses(client), addresses(server)];
        let mut begin = |from: DirectionId, to: DirectionId, agent: usize| match self.network.route(from, to)
        {
            None => NO_ROUTE,
            Some(route) => {
                let start = routes.len() as u32;
                routes.extend(route);
                routes.push(ARRIVED + agent as u32);
                start
            }
        };
        let mut grid = |from: &[DirectionId], to: &[DirectionId], agent| -> Vec<u32> {
            from.iter().flat_map(|f| to.iter().map(|t| begin(*f, *t, agent)).collect::<Vec<_>>()).collect()
        };
        let name = |c: usize, s: usize| ends.name(c, s).to_owned();
        let (clients, servers) = (0..here.len(), 0..there.len());
        [
            Ways {
                routes: grid(&ends.client, &ends.server, 2 * number + 1),
                names: clients.clone().flat_map(|c| servers.clone().map(move |s| name(c, s))).collect(),
                primary: ends.primary.map(|(c, s)| (here[c], there[s])),
                port: client.port,
                local: here.clone(),
                remote: there.clone(),
            },
            Ways {
                routes: grid(&ends.server, &ends.client, 2 * number),
                names: servers.flat_map(|s| clients.clone().map(move |c| name(c, s))).collect(),
                primary: None,
                port: server.port,
                local: there,
                remote: here,
            },
        ]
    }

    fn check_configs(&self, number: usize, policies: &Policies) -> Result<(), RunError> {
        let (flow, _) = &self.flows[number];
        for config in self.configs(number) {
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
}

fn refused(flow: &Flow, error: NewError) -> RunError {
    let flow = flow.name.clone();
    match error {
        NewError::Config(error) => RunError::Config { flow, error },
        NewError::Policy(error) => RunError::Policy { flow, key: "sctp", error },
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What extensions, which both ends offer, add to the headers of a packet with one chunk of data: I-DATA has a longer
/// one than DATA, AUTH goes before what must be authenticated.
fn extension_headers(config: &Config) -> u32 {
    let interleaving = if config.extensions.interleaving { (IDATA_HEADER - DATA_HEADER) as u32 } else { 0 };
    let auth = if config.authenticated_chunks.is_empty() { 0 } else { AUTH_HEADER as u32 + SHA_256 };
    interleaving + auth
}
