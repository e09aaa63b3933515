//! Two hosts joined by two links, for root: `anabranch-net` on one, usrsctp or the Linux kernel on the other. The first link
//! (where we send: that of our primary path) is cut silently in the middle of a transfer, and the other takes over.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anabranch_net::{Association, Carrier, Endpoint, Event, Message, Options, PathId, PathReport, PathState};
use anabranch_proto::{Config, Parameters};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{sleep, timeout};

use crate::bench::{Done, Role, Stop, ensure};
use crate::letter::{Arrived, Letter, complaint, fnv};
use crate::network::{Cut, Network, address};
use crate::peer::foreign::{Process, Program, Voice, parse};
use crate::peer::machine::Machine;
use crate::peer::{PORTS, STREAMS, PeerEvent};

/// Who sends.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum From {
    Us,
    Peer,
}

/// What carries the packets.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Over {
    Udp,
    /// IP itself, protocol 132.
    Raw,
}

impl Over {
    /// The UDP port of both ends; none.
    fn udp(self) -> u16 {
        match self {
            Over::Udp => 9899,
            Over::Raw => 0,
        }
    }
}

/// Where both hosts are.
enum Site {
    /// In two network namespaces; the peer is this program.
    Box(Arc<Network>, std::path::PathBuf),
    /// The peer is a machine of its own.
    Machine(Arc<Machine>),
}

impl Site {
    fn enter(&self) {
        match self {
            Site::Box(network, _) => network.enter(0),
            Site::Machine(machine) => machine.enter(),
        }
    }

    fn cut(&self, link: usize, mended: bool) {
        match self {
            Site::Box(network, _) => drop(network.cut(link, Cut::Dropped, mended)),
            Site::Machine(machine) => machine.cut(link, mended),
        }
    }
}

/// Messages, and bytes of each: 4 MB, 1.6 s on one link of 20 Mbit/s.
const COUNT: u32 = 800;
const SIZE: usize = 5000;
/// From the first message to the cut.
const BEFORE_CUT: Duration = Duration::from_millis(600);
/// For one row.
const PATIENCE: Duration = Duration::from_secs(40);
/// How often is looked.
const GLANCE: Duration = Duration::from_millis(10);

/// Timeouts at the peer like ours, in milliseconds, in its commands.
const OPTIONS: [&str; 7] = [
    "option buffers 16000000 1000000",
    "option streams 16 16",
    "option mtu 1500",
    "option rto 200 200 2000",
    "option heartbeat 500",
    "option path-max-retrans 2",
    "option sack-delay 20",
];

/// Runs a row; `None` where no network can be made, after a line that says why.
pub fn run(name: &str, program: &Program, role: Role, (from, over): (From, Over)) -> Option<Done> {
    let site = match program {
        Program::Usrsctp(path) => Site::Box(Network::new(&format!("interop: {name}"))?, path.clone()),
        Program::Linux(machine) => Site::Machine(Arc::clone(machine)),
    };
    let limited = |limited| match &site {
        Site::Box(..) => Ok(()),
        Site::Machine(machine) => machine.limit(limited),
    };
    if let Err(why) = limited(true) {
        return Some(Err(Stop::Failed(why)));
    }
    let site = &site;
    let thread = thread::scope(|scope| {
        let row = scope.spawn(move || {
            site.enter();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let row = timeout(PATIENCE, row(site, role, from, over)).await;
                row.unwrap_or_else(|_| Err(Stop::Failed("not in time".to_owned())))
            })
        });
        row.join()
    });
    if let Site::Machine(machine) = site {
        machine.cut(0, true);
    }
    if let Err(why) = limited(false) {
        return Some(Err(Stop::Failed(why)));
    }
    Some(thread.unwrap_or_else(|_| Err(Stop::Failed("it panicked: see above".to_owned()))))
}

async fn row(site: &Site, role: Role, from: From, over: Over) -> Done {
    let endpoint = Endpoint::bind(options(role, over)).map_err(|error| Stop::Failed(error.to_string()))?;
    let mut peer = Far::start(site, over).await?;
    let association = peer.meet(&endpoint, role, over).await?;
    both_paths(&association, &mut peer, role).await?;
    let letters = letters();
    // What we send goes by our primary path, which is where the peer has begun.
    let link = match from {
        From::Us => primary(&association).map_or(0, |path| usize::from(path.remote.ip == address(1, 1))),
        From::Peer => 0,
    };
    let steps = async {
        sleep(BEFORE_CUT).await;
        // It may block for a moment; so does the world that it is about.
        site.cut(link, false);
    };
    let transfer = async {
        match from {
            From::Us => we_send(&association, &mut peer, &letters).await,
            From::Peer => peer_sends(&association, &mut peer, &letters).await,
        }
    };
    tokio::join!(steps, transfer).1
}

fn primary(association: &Association) -> Option<PathReport> {
    association.paths().into_iter().find(|path| path.primary)
}

fn options(role: Role, over: Over) -> Options {
    let config = Config {
        port: PORTS[0],
        rehome: true, parameters: Parameters { rto_initial: Duration::from_millis(200), rto_min: Duration::from_millis(200), rto_max: Duration::from_secs(2), path_max_retrans: 2, heartbeat_interval: Some(Duration::from_millis(500)), sack_delay: Duration::from_millis(20), ..Parameters::default() }, ..Config::default() };
    let local = (0..2).map(|link| address(0, link)).collect();
    let listen = role == Role::Client;
    let carrier = if over == Over::Raw { Carrier::Raw } else { Carrier::Udp(over.udp()) };
    Options { config, local, carrier, listen, ..Options::default() }
}

fn letters() -> Vec<Letter> {
    let letter =
        |number: u32| Letter { number, stream: number as u16 % STREAMS, size: SIZE, unordered: false };
    (0..COUNT).map(letter).collect()
}

/// The peer on the other host.
struct Far {
    voice: Voice,
    lines: UnboundedReceiver<String>,
    told: Vec<PeerEvent>,
}

impl Far {
    async fn start(site: &Site, over: Over) -> Result<Far, Stop> {
        let (to, lines) = unbounded_channel();
        // Nobody listens any more: the row is over.
        let line = move |line| drop(to.send(line));
        let voice = match site {
            Site::Box(network, program) => {
                let mut command = network.command(1, &program.to_string_lossy());
                Voice::Process(Process::start(&mut command, line).map_err(Stop::Failed)?)
            }
            Site::Machine(machine) => {
                machine.tell(line);
                Voice::Machine(Arc::clone(machine))
            }
        };
        let mut far = Far { voice, lines, told: Vec::new() };
        far.command(&format!("start {} {}", over.udp(), over.udp())).await?;
        for option in OPTIONS {
            far.command(option).await?;
        }
        far.command(&format!("bind {} {} {}", PORTS[1], address(1, 0), address(1, 1))).await?;
        Ok(far)
    }

    /// Gives a command; gives it again while the peer is busy.
    async fn command(&mut self, command: &str) -> Done {
        self.voice.say(command).map_err(Stop::Failed)?;
        while let Some(line) = self.lines.recv().await {
            match line.strip_prefix("refused ") {
                _ if line == "ok" => return Ok(()),
                _ if line == "busy" => {
                    sleep(GLANCE).await;
                    self.voice.say(command).map_err(Stop::Failed)?;
                }
                Some(why) => return Err(Stop::NotOffered(why.to_owned())),
                None => self.told.extend(parse(&line)),
            }
        }
        Err(Stop::Failed(format!("{command}: peer.c has ended")))
    }

    /// Listens until it has said this.
    async fn until(&mut self, holds: impl Fn(&[PeerEvent]) -> bool) -> Done {
        while !holds(&self.told) {
            let line = self.lines.recv().await.ok_or_else(|| Stop::Failed("peer.c has ended".to_owned()))?;
            self.told.extend(parse(&line));
        }
        Ok(())
    }

    /// The association, set up by whoever is the client.
    async fn meet(&mut self, endpoint: &Endpoint, role: Role, over: Over) -> Result<Association, Stop> {
        let association = match role {
            Role::Server => {
                self.command("listen").await?;
                let to: [SocketAddr; 2] = [0, 1].map(|link| (address(1, link), over.udp()).into());
                let connected = endpoint.connect(&to, PORTS[1]).await;
                connected.map_err(|error| Stop::Failed(error.to_string()))?
            }
            Role::Client => {
                self.command(&format!("connect {} {} {}", PORTS[0], address(0, 0), address(0, 1))).await?;
                endpoint.accept().await
            }
        };
        self.until(|told| told.iter().any(|told| matches!(told, PeerEvent::Up { .. }))).await?;
        Ok(association)
    }

    fn arrived(&self) -> Vec<Arrived> {
        let arrived = |told: &PeerEvent| if let PeerEvent::Arrived(one) = told { Some(*one) } else { None };
        self.told.iter().filter_map(arrived).collect()
    }
}

/// Each end has heard from the other on both paths. A client that was given both addresses need not (RFC 9260 §5.4),
/// and does not say so.
async fn both_paths(association: &Association, peer: &mut Far, role: Role) -> Done {
    while association.paths().len() < 2
        || association.paths().iter().any(|path| path.state != PathState::Active)
    {
        sleep(GLANCE).await;
    }
    let confirmed = |told: &PeerEvent| matches!(told, PeerEvent::Address(ip, state) if *ip == address(0, 1) && state == "confirmed");
    peer.until(|told| role == Role::Client || told.iter().any(confirmed)).await
}

async fn we_send(association: &Association, peer: &mut Far, letters: &[Letter]) -> Done {
    let cut = primary(association).map_or(PathId(0), |path| path.id);
    let mut events = association.events();
    let send = async {
        for letter in letters {
            let (payload, ppid, stream) = (letter.content(), letter.number, letter.stream);
            let message = Message { stream, ppid, payload, ..Message::default() };
            association.send(message).await.map_err(|error| Stop::Failed(error.to_string()))?;
        }
        association.close().await.map_err(|error| Stop::Failed(format!("close: {error}")))
    };
    let (sent, closed) = tokio::join!(send, peer.until(|told| told.contains(&PeerEvent::Closed)));
    sent.and(closed)?;
    let gone = Event::Path(cut, PathState::Inactive);
    let mut noticed = false;
    while let Ok(event) = events.try_recv() {
        noticed |= event == gone;
    }
    ensure(noticed, || "the first path never became inactive".to_owned())?;
    complaint(letters, &peer.arrived(), |_| false).map_or(Ok(()), |what| Err(Stop::Failed(what)))
}

async fn peer_sends(association: &Association, peer: &mut Far, letters: &[Letter]) -> Done {
    let receive = async {
        let mut arrived = Vec::new();
        while let Some(delivery) =
            association.recv().await.map_err(|error| Stop::Failed(error.to_string()))?
        {
            let (number, stream, unordered) = (delivery.ppid, delivery.stream, Some(delivery.unordered));
            let bytes = delivery.into_bytes();
            arrived.push(Arrived { number, stream, size: bytes.len(), unordered, hash: fnv(&bytes) });
        }
        Ok::<_, Stop>(arrived)
    };
    let send = async {
        for Letter { number, stream, size, .. } in letters {
            peer.command(&format!("send {stream} {number} {size} ordered full 0")).await?;
        }
        peer.command("shutdown").await?;
        peer.until(|told| told.contains(&PeerEvent::Closed)).await
    };
    let (arrived, sent) = tokio::join!(receive, send);
    sent?;
    let gone = |told: &PeerEvent| matches!(told, PeerEvent::Address(ip, state) if *ip == address(0, 0) && state == "unreachable");
    // The kernel leaves a path that fails potentially (RFC 7829, on by default), long before it calls it unreachable.
    let leaves_early = matches!(peer.voice, Voice::Machine(_));
    ensure(leaves_early || peer.told.iter().any(gone), || {
        "the peer never found the first path unreachable".to_owned()
    })?;
    complaint(letters, &arrived?, |_| false).map_or(Ok(()), |what| Err(Stop::Failed(what)))
}
