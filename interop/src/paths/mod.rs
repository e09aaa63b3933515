//! Two hosts joined by two links, for root: `anabranch-net` on one, usrsctp or the Linux kernel on the other. The first
//! link (where we send: that of our primary path) is cut silently in the middle of a transfer, and the other takes
//! over; or both carry new data at once (CMT).

mod far;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anabranch_net::{Association, Carrier, Endpoint, Event, Message, Options, PathId, PathReport, PathState};
use anabranch_proto::{Config, Parameters};
use tokio::time::{sleep, timeout};

use crate::bench::{Done, Role, Stop, ensure};
use crate::letter::{Arrived, Letter, complaint, fnv};
use crate::network::{Cut, Network, address};
use crate::peer::foreign::{Program, Voice};
use crate::peer::machine::Machine;
use crate::peer::{PORTS, PeerEvent, STREAMS};
pub use far::Far;

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
    pub fn udp(self) -> u16 {
        match self {
            Over::Udp => 9899,
            Over::Raw => 0,
        }
    }
}

/// Where both hosts are.
pub enum Site {
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
            Site::Machine(machine) if mended => machine.mend(),
            Site::Machine(machine) => machine.cut(link),
        }
    }
}

/// Messages, and bytes of each: 4 MB, 1.6 s on one link of 20 Mbit/s.
const COUNT: u32 = 800;
const SIZE: usize = 5000;
/// Messages that show that new data has taken another path: 500 kB. The link and its queue hold 80.
const EARLY: usize = 100;
/// From the first message to the cut.
pub const BEFORE_CUT: Duration = Duration::from_millis(600);
/// For one row. A kernel in a process that has to share the machine is slow.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// How often is looked.
const GLANCE: Duration = Duration::from_millis(10);
/// RTO.Min of both ends. No path's RTO is larger before the cut: the queues hold 30 ms.
const RTO: Duration = Duration::from_millis(200);
const PATH_MAX_RETRANS: u32 = 2;

/// What a row with several paths does.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Trial {
    pub from: From,
    pub over: Over,
    /// The link on which the association begins; the sender's primary path is on it.
    pub link: usize,
    /// Whether that link is cut in the middle.
    pub cut: bool,
    /// Whether it is mended as soon as the sender calls the path potentially failed.
    pub mended: bool,
    pub sending: Sending,
}

/// By which paths new data goes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Sending {
    /// By the primary path, until it is inactive.
    Primary,
    /// By the primary path, until it is potentially failed (RFC 7829).
    PotentiallyFailed,
    /// By the primary path, until it is inactive, with every cure of the retransmission policy
    /// (papers/retransmission-policy-flaw), losses found by time or by missing reports.
    Cured { by_time: bool },
    /// By all (CMT).
    All,
}

impl Trial {
    pub const fn new(from: From, over: Over) -> Trial {
        Trial { from, over, link: 0, cut: true, mended: false, sending: Sending::Primary }
    }

    /// The sender leaves the path that is cut at its first timeout.
    pub const fn failing(from: From) -> Trial {
        Trial { sending: Sending::PotentiallyFailed, ..Trial::new(from, Over::Udp) }
    }

    /// By all paths at once, of which none is cut.
    pub const fn cmt(from: From, over: Over) -> Trial {
        Trial { cut: false, sending: Sending::All, ..Trial::new(from, over) }
    }
}

/// What is measured of a row that passes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Course {
    /// From the cut to the end of the last pause of the receiver that was at least one RTO long; none without such a
    /// pause.
    pub stalled: Duration,
}

impl Course {
    /// The sum of the timeouts that make a path inactive, and one RTO more.
    pub const BOUND: Duration = RTO.saturating_mul((1 << (PATH_MAX_RETRANS + 1)) - 1 + 1);

    pub fn new(arrivals: &[Instant], cut: Option<Instant>) -> Course {
        let Some(cut) = cut else { return Course { stalled: Duration::ZERO } };
        let mut pauses = arrivals.windows(2).filter(|pair| pair[1] > cut && pair[1] - pair[0] >= RTO);
        Course { stalled: pauses.next_back().map_or(Duration::ZERO, |pair| pair[1] - cut) }
    }
}

/// Runs a row; `None` where no network can be made, after a line that says why.
pub fn run(name: &str, program: &Program, role: Role, trial: Trial) -> Option<Result<Course, Stop>> {
    on_two_hosts(name, program, async |site| row(site, role, trial).await)
}

/// Runs this on a host with two links to the peer's; `None` where no network can be made, after a line that says why.
pub fn on_two_hosts<T: Send>(
    name: &str,
    program: &Program,
    row: impl AsyncFnOnce(&Site) -> Result<T, Stop> + Send,
) -> Option<Result<T, Stop>> {
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
                let row = timeout(PATIENCE, row(site)).await;
                row.unwrap_or_else(|_| Err(Stop::Failed("not in time".to_owned())))
            })
        });
        row.join()
    });
    if let Site::Machine(machine) = site {
        machine.mend();
    }
    if let Err(why) = limited(false) {
        return Some(Err(Stop::Failed(why)));
    }
    Some(thread.unwrap_or_else(|_| Err(Stop::Failed("it panicked: see above".to_owned()))))
}

async fn row(site: &Site, role: Role, trial: Trial) -> Result<Course, Stop> {
    let options = options(role == Role::Client, 0, trial);
    let endpoint = Endpoint::bind(options).map_err(|error| Stop::Failed(error.to_string()))?;
    let mut peer = Far::start(site, trial).await?;
    let association = peer.meet(&endpoint, role, trial).await?;
    both_paths(&association).await;
    peer_has_both(&mut peer, role, trial).await?;
    let letters = letters();
    // What we send goes by our primary path, which is where the peer has begun.
    let link = match trial.from {
        From::Us => primary(&association).map_or(0, |path| usize::from(path.remote.ip == address(1, 1))),
        From::Peer => trial.link,
    };
    let before = received_by_link();
    let failing = sees_it_fail(&association, &peer, trial.from);
    let cut = async {
        if !trial.cut {
            return None;
        }
        sleep(BEFORE_CUT).await;
        // It may block for a moment; so does the world that it is about.
        site.cut(link, false);
        let cut = Instant::now();
        if trial.mended {
            failing.await;
            site.cut(link, true);
        }
        Some(cut)
    };
    let transfer = async {
        match trial.from {
            From::Us => we_send(&association, &mut peer, &letters, trial).await,
            From::Peer => peer_sends(&association, &mut peer, &letters, (trial, link)).await,
        }
    };
    let (cut, arrivals) = tokio::join!(cut, transfer);
    let arrivals = arrivals?;
    if let (From::Peer, Sending::PotentiallyFailed, false, Some(cut)) =
        (trial.from, trial.sending, trial.mended, cut)
    {
        peer.left_early(&arrivals, cut)?;
    }
    if (trial.from, trial.sending) == (From::Peer, Sending::All) {
        let after = received_by_link();
        by_both([0, 1].map(|link| after[link] - before[link]))?;
    }
    well_formed(&endpoint)?;
    Ok(Course::new(&arrivals, cut))
}

/// Every packet of the peer could be read.
pub fn well_formed(endpoint: &Endpoint) -> Done {
    let malformed = endpoint.traffic().malformed;
    ensure(malformed == 0, || format!("{malformed} packets of the peer are malformed"))
}

/// Waits until the sender calls its path potentially failed.
fn sees_it_fail(association: &Association, peer: &Far, from: From) -> impl Future<Output = ()> + use<> {
    let (mut events, failing) = (association.events(), Arc::clone(&peer.failing));
    async move {
        if from == From::Peer {
            return failing.notified().await;
        }
        let fails = |event| matches!(event, Ok(Event::Path(_, PathState::PotentiallyFailed)) | Err(_));
        while !fails(events.recv().await) {}
    }
}

/// Of these bytes, each path has carried a quarter at least.
fn by_both(bytes: [u64; 2]) -> Done {
    ensure(bytes.iter().all(|one| *one * 4 >= bytes[0] + bytes[1]), || {
        format!("the paths have carried {bytes:?} bytes")
    })
}

/// Bytes that have come by each link, as the kernel counts them in this thread's network.
pub fn received_by_link() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let line = |line: &str| {
        let (name, counts) = line.split_once(':')?;
        let received = counts.split_whitespace().next()?.parse().ok()?;
        (name.trim() != "lo").then(|| (name.trim().to_owned(), received))
    };
    let mut links: Vec<(String, u64)> = text.lines().filter_map(line).collect();
    links.sort();
    [0, 1].map(|link| links.get(link).map_or(0, |(_, received)| *received))
}

fn primary(association: &Association) -> Option<PathReport> {
    association.paths().into_iter().find(|path| path.primary)
}

/// Of an endpoint of ours on this host.
pub fn options(listen: bool, host: usize, trial: Trial) -> Options {
    let config = Config {
        port: PORTS[host],
        rehome: true,
        parameters: Parameters {
            rto_initial: RTO,
            rto_min: RTO,
            rto_max: Duration::from_secs(2),
            path_max_retrans: PATH_MAX_RETRANS,
            pf_max_retrans: (trial.sending == Sending::PotentiallyFailed).then_some(0),
            heartbeat_interval: Some(Duration::from_millis(500)),
            sack_delay: Duration::from_millis(20),
            ..Parameters::default()
        },
        ..Config::default()
    };
    let config = match trial.sending {
        Sending::All => config.with_cmt(),
        Sending::Cured { by_time } => cured(config, by_time),
        Sending::Primary | Sending::PotentiallyFailed => config,
    };
    let local = (0..2).map(|link| address(host, link)).collect();
    let carrier = if trial.over == Over::Raw { Carrier::Raw } else { Carrier::Udp(trial.over.udp()) };
    Options { config, local, carrier, listen, ..Options::default() }
}

/// With every cure. Timestamps are offered: a peer that has none goes without.
fn cured(mut config: Config, by_time: bool) -> Config {
    config.extensions.timestamps = true;
    let detection = if by_time { "rack" } else { "missing-reports" };
    for (key, choice) in [
        ("heartbeat_after_timeout", "on"),
        ("early_retransmit", "on"),
        ("tail_probe", "on"),
        ("loss_detection", detection),
    ] {
        config.mechanisms.choose(key, choice).expect("a mechanism and its choice");
    }
    config.rules.choose("fast_retransmissions", "per-recovery").expect("a rule and its choice");
    config
}

pub fn letters() -> Vec<Letter> {
    let letter =
        |number: u32| Letter { number, stream: number as u16 % STREAMS, size: SIZE, unordered: false };
    (0..COUNT).map(letter).collect()
}

/// We have heard from the other end on both paths.
pub async fn both_paths(association: &Association) {
    while association.paths().len() < 2
        || association.paths().iter().any(|path| path.state != PathState::Active)
    {
        sleep(GLANCE).await;
    }
}

/// The peer has heard from us on both. A client that was given both addresses need not (RFC 9260 §5.4), and does not
/// say so.
async fn peer_has_both(peer: &mut Far, role: Role, trial: Trial) -> Done {
    let other = address(0, 1 - trial.link);
    let confirmed = |told: &PeerEvent| matches!(told, PeerEvent::Address(ip, state) if *ip == other && state == "confirmed");
    peer.until(|told| role == Role::Client || told.iter().any(confirmed)).await
}

/// When each message arrived at the peer.
async fn we_send(
    association: &Association,
    peer: &mut Far,
    letters: &[Letter],
    trial: Trial,
) -> Result<Vec<Instant>, Stop> {
    let cut = primary(association).map_or(PathId(0), |path| path.id);
    let mut events = association.events();
    let send = async {
        give(association, letters).await?;
        if trial.sending == Sending::All && !trial.cut {
            by_both(delivered(association))?;
        }
        while trial.mended && !works_again(association, cut) {
            sleep(GLANCE).await;
        }
        association.close().await.map_err(|error| Stop::Failed(format!("close: {error}")))
    };
    let (sent, closed) = tokio::join!(send, peer.until(|told| told.contains(&PeerEvent::Closed)));
    sent.and(closed)?;
    let state = match trial.sending {
        Sending::PotentiallyFailed => PathState::PotentiallyFailed,
        Sending::Primary | Sending::Cured { .. } | Sending::All => PathState::Inactive,
    };
    // By CMT everything has arrived before the last timeout.
    let mut noticed = !trial.cut || trial.sending == Sending::All;
    while let Ok(event) = events.try_recv() {
        noticed |= event == Event::Path(cut, state);
    }
    ensure(noticed, || format!("the path that was cut never became {state:?}"))?;
    whole(letters, &peer.arrived())?;
    Ok(std::mem::take(&mut peer.arrivals))
}

/// The path has failed potentially, and does not any more.
fn works_again(association: &Association, path: PathId) -> bool {
    let timed_out = association.statistics().timeouts > 0;
    timed_out && association.paths().iter().any(|one| one.id == path && one.state == PathState::Active)
}

/// Hands all messages over.
pub async fn give(association: &Association, letters: &[Letter]) -> Done {
    for letter in letters {
        let (payload, ppid, stream) = (letter.content(), letter.number, letter.stream);
        let message = Message { stream, ppid, payload, ..Message::default() };
        association.send(message).await.map_err(|error| Stop::Failed(error.to_string()))?;
    }
    Ok(())
}

/// Bytes acknowledged on the path of each link.
fn delivered(association: &Association) -> [u64; 2] {
    let paths = association.paths();
    let of = |link| paths.iter().filter(move |path| path.remote.ip == address(1, link));
    [0, 1].map(|link| of(link).map(|path| path.delivered).sum())
}

/// Every message once, whole and in order.
pub fn whole(letters: &[Letter], arrived: &[Arrived]) -> Done {
    complaint(letters, arrived, |_| false).map_or(Ok(()), |what| Err(Stop::Failed(what)))
}

/// Reads until the sender has ended; what has arrived, and when.
pub async fn take(association: &Association) -> Result<(Vec<Arrived>, Vec<Instant>), Stop> {
    let (mut arrived, mut arrivals) = (Vec::new(), Vec::new());
    while let Some(delivery) = association.recv().await.map_err(|error| Stop::Failed(error.to_string()))? {
        let (number, stream, unordered) = (delivery.ppid, delivery.stream, Some(delivery.unordered));
        let bytes = delivery.into_bytes();
        arrived.push(Arrived { number, stream, size: bytes.len(), unordered, hash: fnv(&bytes) });
        arrivals.push(Instant::now());
    }
    Ok((arrived, arrivals))
}

/// When each message arrived here.
async fn peer_sends(
    association: &Association,
    peer: &mut Far,
    letters: &[Letter],
    (trial, link): (Trial, usize),
) -> Result<Vec<Instant>, Stop> {
    let cut = address(0, link);
    let send = async {
        for Letter { number, stream, size, .. } in letters {
            peer.command(&format!("send {stream} {number} {size} ordered full 0")).await?;
        }
        if trial.mended {
            // Its path fails, and works again.
            peer.until(|told| {
                let last = told.iter().rev().find_map(|told| path_state(told, cut));
                told.iter().any(|told| path_state(told, cut) == Some("failing")) && last == Some("available")
            })
            .await?;
        }
        peer.command("shutdown").await?;
        peer.until(|told| told.contains(&PeerEvent::Closed)).await
    };
    let (arrived, sent) = tokio::join!(take(association), send);
    sent?;
    let gone = |told: &PeerEvent| path_state(told, cut) == Some("unreachable");
    // The kernel leaves a path that fails potentially (RFC 7829, on by default), long before it calls it unreachable.
    let leaves_early = trial.sending == Sending::PotentiallyFailed || matches!(peer.voice, Voice::Machine(_));
    ensure(leaves_early || !trial.cut || peer.told.iter().any(gone), || {
        "the peer never found the path that was cut unreachable".to_owned()
    })?;
    let (arrived, arrivals) = arrived?;
    whole(letters, &arrived)?;
    Ok(arrivals)
}

/// The state that the peer gives to one of our addresses, in its words.
fn path_state(told: &PeerEvent, of: std::net::IpAddr) -> Option<&str> {
    match told {
        PeerEvent::Address(ip, state) if *ip == of => Some(state),
        _ => None,
    }
}
