//! The peer on the other host: a program that takes commands and says what happens.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use anabranch_net::{Association, Endpoint};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::sleep;

use super::{EARLY, From, GLANCE, Sending, Site, Trial};
use crate::bench::{Done, Role, Stop, ensure};
use crate::letter::Arrived;
use crate::network::address;
use crate::peer::foreign::{Process, Voice, parse};
use crate::peer::{PORTS, PeerEvent};

/// Timeouts at the peer like ours, in milliseconds, in its commands. usrsctp adds the headers of IP and SCTP, 32 bytes,
/// to the MTU that it is told: 1,500 would give packets of 1,532 bytes, which the kernel refuses. What we do not offer,
/// it does not either: we would report it as unrecognized.
const OPTIONS: [&str; 8] = [
    "option buffers 16000000 1000000",
    "option streams 16 16",
    "option mtu 1460",
    "option rto 200 200 2000",
    "option heartbeat 500",
    "option path-max-retrans 2",
    "option sack-delay 20",
    "option partial-reliability 0",
];

/// The peer on the other host.
pub struct Far {
    pub(super) voice: Voice,
    lines: UnboundedReceiver<String>,
    pub(super) told: Vec<PeerEvent>,
    /// When each message has arrived there.
    pub(super) arrivals: Vec<Instant>,
    /// It has called a path potentially failed.
    pub(super) failing: Arc<Notify>,
    /// When it first called a path unreachable.
    unreachable: Option<Instant>,
}

impl Far {
    pub async fn start(site: &Site, trial: Trial) -> Result<Far, Stop> {
        let over = trial.over;
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
        let mut far = Far {
            voice,
            lines,
            told: Vec::new(),
            arrivals: Vec::new(),
            failing: Arc::default(),
            unreachable: None,
        };
        far.command(&format!("start {} {}", over.udp(), over.udp())).await?;
        for option in OPTIONS {
            far.command(option).await?;
        }
        match (trial.from, trial.sending) {
            (From::Peer, Sending::All) => far.command("option cmt 1").await?,
            (From::Peer, Sending::PotentiallyFailed) => far.command("option pf-max-retrans 0").await?,
            _ => {}
        }
        if (trial.from, trial.sending) == (From::Peer, Sending::PotentiallyFailed) {
            let told = far.command("option tell-potentially-failed 1").await;
            // Without this notification the path's return is not seen; that it is left, by what arrives.
            if trial.mended {
                told?;
            }
        }
        far.command(&format!("bind {} {} {}", PORTS[1], address(1, 0), address(1, 1))).await?;
        Ok(far)
    }

    /// Gives a command; gives it again while the peer is busy.
    pub async fn command(&mut self, command: &str) -> Done {
        self.voice.say(command).map_err(Stop::Failed)?;
        while let Some(line) = self.lines.recv().await {
            match line.strip_prefix("refused ") {
                _ if line == "ok" => return Ok(()),
                _ if line == "busy" => {
                    sleep(GLANCE).await;
                    self.voice.say(command).map_err(Stop::Failed)?;
                }
                Some(why) => return Err(Stop::NotOffered(why.to_owned())),
                None => self.hear(&line)?,
            }
        }
        Err(Stop::Failed(format!("{command}: the peer has ended")))
    }

    /// Listens until it has said this.
    pub async fn until(&mut self, holds: impl Fn(&[PeerEvent]) -> bool) -> Done {
        while !holds(&self.told) {
            let line =
                self.lines.recv().await.ok_or_else(|| Stop::Failed("the peer has ended".to_owned()))?;
            self.hear(&line)?;
        }
        Ok(())
    }

    /// What the peer should not have to say fails the row: an error that we report, for example.
    fn hear(&mut self, line: &str) -> Done {
        let told = parse(line);
        ensure(told.is_some(), || format!("the peer says: {line}"))?;
        match &told {
            Some(PeerEvent::Arrived(_)) => self.arrivals.push(Instant::now()),
            Some(PeerEvent::Address(_, state)) if state == "failing" => self.failing.notify_one(),
            Some(PeerEvent::Address(_, state)) if state == "unreachable" => {
                self.unreachable.get_or_insert_with(Instant::now);
            }
            _ => {}
        }
        self.told.extend(told);
        Ok(())
    }

    /// It has called the path that was cut potentially failed, and not unreachable before. Where it does not tell its
    /// user: it has sent new data elsewhere before it called the path unreachable, since more arrived than it had
    /// outstanding there.
    pub(super) fn left_early(&self, arrivals: &[Instant], cut: Instant) -> Done {
        let place = |wanted: &str| {
            self.told.iter().position(|told| matches!(told, PeerEvent::Address(_, state) if state == wanted))
        };
        if let Some(failing) = place("failing") {
            let first = place("unreachable").is_none_or(|unreachable| failing < unreachable);
            return ensure(first, || {
                "it called the path unreachable before it was potentially failed".to_owned()
            });
        }
        let unreachable = |at: &Instant| self.unreachable.is_none_or(|unreachable| *at < unreachable);
        let early = arrivals.iter().filter(|at| **at > cut && unreachable(at)).count();
        ensure(early >= EARLY, || {
            format!("between the cut and the path's failure {early} messages arrived, not {EARLY}")
        })
    }

    /// The association, set up by whoever is the client.
    pub async fn meet(&mut self, endpoint: &Endpoint, role: Role, trial: Trial) -> Result<Association, Stop> {
        let links = [trial.link, 1 - trial.link];
        let association = match role {
            Role::Server => {
                self.command("listen").await?;
                let to: [SocketAddr; 2] = links.map(|link| (address(1, link), trial.over.udp()).into());
                let connected = endpoint.connect(&to, PORTS[1]).await;
                connected.map_err(|error| Stop::Failed(error.to_string()))?
            }
            Role::Client => {
                let [first, second] = links.map(|link| address(0, link));
                self.command(&format!("connect {} {first} {second}", PORTS[0])).await?;
                endpoint.accept().await.expect("it is open")
            }
        };
        self.until(|told| told.iter().any(|told| matches!(told, PeerEvent::Up { .. }))).await?;
        Ok(association)
    }

    /// What it has said last, for messages.
    pub fn last_word(&mut self) -> String {
        while let Ok(line) = self.lines.try_recv() {
            if self.hear(&line).is_err() {
                return line;
            }
        }
        self.told.last().map_or_else(|| "nothing".to_owned(), |told| format!("{told:?}"))
    }

    pub fn arrived(&self) -> Vec<Arrived> {
        let arrived = |told: &PeerEvent| if let PeerEvent::Arrived(one) = told { Some(*one) } else { None };
        self.told.iter().filter_map(arrived).collect()
    }
}
