//! The series of cuts: the link in use of two is cut in the middle of a transfer, again and again, with usrsctp and
//! with ourselves at the other end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anabranch_net::{Association, Endpoint};
use tokio::time::{sleep, timeout};

use crate::bench::{Role, Stop};
use crate::matrix::{Stack, Stacks};
use crate::network::{Cut, Network, address};
use crate::paths::{self, BEFORE_CUT, Course, From, Over, PATIENCE, Trial};
use crate::peer::PORTS;

/// Who is at the other end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Peer {
    Usrsctp,
    Itself,
}

/// One line of the table.
#[derive(Copy, Clone)]
struct Series {
    peer: Peer,
    /// Of the peer.
    role: Role,
    trial: Trial,
}

impl Series {
    fn name(&self) -> String {
        let peer = if self.peer == Peer::Usrsctp { "usrsctp" } else { "itself" };
        let over = if self.trial.over == Over::Udp { "udp" } else { "raw" };
        let from = if self.trial.from == From::Us { "us" } else { "peer" };
        format!("{peer}/{over}/link-{}/{from}-sends/{}", self.trial.link + 1, self.role.name())
    }
}

fn plan() -> Vec<Series> {
    let mut plan = Vec::new();
    for peer in [Peer::Usrsctp, Peer::Itself] {
        for over in [Over::Udp, Over::Raw] {
            for link in [0, 1] {
                for (from, role) in
                    [From::Us, From::Peer].into_iter().flat_map(|from| Role::ALL.map(|role| (from, role)))
                {
                    // With ourselves at both ends it is the same which of them is called the peer.
                    if peer == Peer::Usrsctp || from == From::Us {
                        plan.push(Series { peer, role, trial: Trial { link, ..Trial::new(from, over) } });
                    }
                }
            }
        }
    }
    plan
}

/// No line has a wanted name.
pub const NO_LINE: &str = "no line of the series has this in its name";

/// What came of the tries of one line.
#[derive(Default)]
struct Tally {
    whole: usize,
    in_time: usize,
    stalled: Vec<Duration>,
}

/// Plays each line whose name is wanted so often, and says each as it ends: whether every line has all transfers whole
/// and nine tries of ten in time.
pub fn run(tries: usize, wanted: impl Fn(&str) -> bool, mut say: impl FnMut(&str)) -> Result<bool, String> {
    let plan: Vec<Series> = plan().into_iter().filter(|series| wanted(&series.name())).collect();
    if plan.is_empty() {
        return Err(NO_LINE.to_owned());
    }
    let stacks =
        Stacks::new(|stack| stack == Stack::Usrsctp && plan.iter().any(|one| one.peer == Peer::Usrsctp));
    say(&format!(
        "| the other end, carrier, link that is cut, sender, role of the other end | whole | within {} ms | median stall | longest |",
        Course::BOUND.as_millis()
    ));
    say("|---|---|---|---|---|");
    let mut good = true;
    for series in plan {
        let mut tally = Tally::default();
        for _ in 0..tries {
            match play(&series, &stacks)? {
                Ok(course) => {
                    tally.whole += 1;
                    tally.in_time += usize::from(course.stalled <= Course::BOUND);
                    tally.stalled.push(course.stalled);
                }
                Err(Stop::Failed(why) | Stop::NotOffered(why)) => eprintln!("{}: {why}", series.name()),
            }
        }
        tally.stalled.sort();
        let middle = tally.stalled.get(tally.stalled.len() / 2).map_or(0, Duration::as_millis);
        let longest = tally.stalled.last().map_or(0, Duration::as_millis);
        let (name, Tally { whole, in_time, .. }) = (series.name(), &tally);
        say(&format!(
            "| `{name}` | {whole} of {tries} | {in_time} of {tries} | {middle} ms | {longest} ms |"
        ));
        good &= *whole == tries && in_time * 10 >= tries * 9;
    }
    Ok(good)
}

fn play(series: &Series, stacks: &Stacks) -> Result<Result<Course, Stop>, String> {
    let none = "no network in a box can be made here".to_owned();
    match (series.peer, stacks.program(Stack::Usrsctp)) {
        (Peer::Usrsctp, Some(Ok(program))) => {
            paths::run(&series.name(), program, series.role, series.trial).ok_or(none)
        }
        (Peer::Usrsctp, other) => {
            Err(other.and_then(|program| program.as_ref().err().cloned()).unwrap_or(none))
        }
        (Peer::Itself, _) => Ok(with_itself(&Network::new("cuts").ok_or(none)?, series.role, series.trial)),
    }
}

/// Host 0 sends; host 1, which is in this role, receives.
fn with_itself(network: &Arc<Network>, role: Role, trial: Trial) -> Result<Course, Stop> {
    let (ready, listens) = channel();
    let (begin, begun) = channel();
    thread::scope(|scope| {
        let server = if role == Role::Server { 1 } else { 0 };
        let start = |host, listen| {
            let (ready, begin) = (ready.clone(), begin.clone());
            scope.spawn(move || end(network, (host, listen), trial, &ready, &begin))
        };
        let mut threads = vec![start(server, true)];
        listens.recv_timeout(PATIENCE).map_err(|_| Stop::Failed("nobody listens".to_owned()))?;
        threads.push(start(1 - server, false));
        begun.recv_timeout(PATIENCE).map_err(|_| Stop::Failed("no association".to_owned()))?;
        thread::sleep(BEFORE_CUT);
        network.cut(trial.link, Cut::Dropped, false);
        let cut = Instant::now();
        let mut arrivals = Vec::new();
        for one in threads {
            let ended = one.join().unwrap_or_else(|_| Err(Stop::Failed("it panicked: see above".to_owned())));
            arrivals.extend(ended?);
        }
        Ok(Course::new(&arrivals, Some(cut)))
    })
}

/// One end: host 0 sends, host 1 receives; when each message arrived, if here.
fn end(
    network: &Network,
    (host, listen): (usize, bool),
    trial: Trial,
    ready: &Sender<()>,
    begin: &Sender<()>,
) -> Result<Vec<Instant>, Stop> {
    network.enter(host);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let course = async {
        let endpoint = Endpoint::bind(paths::options(listen, host, trial));
        let endpoint = endpoint.map_err(|error| Stop::Failed(error.to_string()))?;
        let association = match listen {
            true => {
                let _ = ready.send(());
                endpoint.accept().await.expect("it is open")
            }
            false => connect(&endpoint, host, trial).await?,
        };
        let arrivals = transfer(&association, host, begin).await;
        // The last packet leaves before the runtime ends.
        let _ = timeout(Duration::from_secs(1), endpoint.close()).await;
        arrivals
    };
    runtime.expect("a runtime").block_on(async {
        timeout(PATIENCE, course).await.unwrap_or_else(|_| Err(Stop::Failed("not in time".to_owned())))
    })
}

async fn connect(endpoint: &Endpoint, host: usize, trial: Trial) -> Result<Association, Stop> {
    let udp = trial.over.udp();
    let to: [SocketAddr; 2] = [trial.link, 1 - trial.link].map(|link| (address(1 - host, link), udp).into());
    endpoint.connect(&to, PORTS[1 - host]).await.map_err(|error| Stop::Failed(error.to_string()))
}

async fn transfer(association: &Association, host: usize, begin: &Sender<()>) -> Result<Vec<Instant>, Stop> {
    let letters = paths::letters();
    if host == 1 {
        let (arrived, arrivals) = paths::take(association).await?;
        // Agrees to the end: the other end waits for it.
        association.close().await.map_err(|error| Stop::Failed(format!("close: {error}")))?;
        paths::whole(&letters, &arrived)?;
        return Ok(arrivals);
    }
    paths::both_paths(association).await;
    // The other end answers on both as well, a moment later.
    sleep(Duration::from_millis(50)).await;
    let _ = begin.send(());
    paths::give(association, &letters).await?;
    association.close().await.map_err(|error| Stop::Failed(format!("close: {error}")))?;
    Ok(Vec::new())
}
