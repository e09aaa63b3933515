//! A stack that is no library of ours, in UDP and in real time: usrsctp, in the process `peer.c` on loopback; or the
//! Linux kernel's, in a machine of its own (`machine.rs`).

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anabranch_proto::wire::Address;
use anabranch_proto::{Outcome, Reliability, Time};
use bytes::Bytes;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::process::{Pid, Signal, kill_process_group};

use super::machine::{HERE, Machine, THERE, UDP};
use super::{Ask, KEY, MTU, Make, PORTS, Peer, PeerEvent, PeerOutput, Refused, STREAMS};
use crate::letter::Arrived;

/// How long a command may take to be answered.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a socket that is closed may still send.
const LAST_WORDS: Duration = Duration::from_millis(50);
/// Bytes of its send and receive buffers. The kernel has no partial delivery of I-DATA while its window is full: it has
/// to have room for the longest message.
const BUFFERS: &str = "16000000 1000000";
const BUFFERS_OF_LINUX: &str = "16000000 4000000";
/// Bytes of our socket's receive buffer: a window of the peer's at once.
const OURS: usize = 8 << 20;

/// What the stack runs in.
#[derive(Clone)]
pub enum Program {
    Usrsctp(PathBuf),
    Linux(Arc<Machine>),
}

/// Whoever takes the commands.
pub enum Voice {
    Process(Process),
    Machine(Arc<Machine>),
}

impl Voice {
    /// Gives it a command.
    pub fn say(&mut self, command: &str) -> Result<(), String> {
        match self {
            Voice::Process(process) => process.say(command),
            Voice::Machine(machine) => machine.say(command),
        }
    }
}

pub struct Foreign {
    program: Program,
    options: Vec<String>,
    voice: Voice,
    /// How many have run before it: what those still had to say is nothing any more.
    runs: u32,
    socket: UdpSocket,
    theirs: SocketAddr,
    begun: Instant,
    /// From the thread that reads our socket.
    heard: (Sender<ForeignInput>, Receiver<ForeignInput>),
    waiting: VecDeque<PeerOutput>,
}

/// What the threads that listen for us have heard.
enum ForeignInput {
    Packet(Bytes),
    /// A line of a process, by its number.
    Line(u32, String),
}

/// `peer`, running; killed when it is let go.
pub struct Process {
    child: Child,
    stdin: ChildStdin,
}

impl Process {
    /// Starts it; each line that it prints goes to `line`.
    pub fn start(command: &mut Command, line: impl Fn(String) + Send + 'static) -> Result<Process, String> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // What it starts is in its group, and ends with it.
        let mut child = command.process_group(0).spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stdout = BufReader::new(stdout.expect("it is a pipe"));
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).for_each(line));
        Ok(Process { child, stdin: stdin.expect("it is a pipe") })
    }

    /// Gives it a command.
    pub fn say(&mut self, command: &str) -> Result<(), String> {
        writeln!(self.stdin, "{command}").map_err(|error| format!("{command}: {error}"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Foreign {
    /// With a machine, the calling thread is in its network already.
    pub fn new(program: &Program, make: &Make) -> Result<Foreign, Refused> {
        let io = |error: std::io::Error| Refused::Gone(format!("sockets: {error}"));
        let (socket, theirs) = match program {
            Program::Usrsctp(_) => {
                let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                let socket = UdpSocket::bind(loopback).map_err(io)?;
                // A port that is free now; it binds it itself.
                (socket, UdpSocket::bind(loopback).and_then(|free| free.local_addr()).map_err(io)?)
            }
            Program::Linux(_) => (UdpSocket::bind((HERE, 0)).map_err(io)?, SocketAddr::from((THERE, UDP))),
        };
        set_socket_recv_buffer_size_force(&socket, OURS)
            .or_else(|_| set_socket_recv_buffer_size(&socket, OURS))
            .map_err(|error| io(error.into()))?;
        let heard = channel();
        listen(socket.try_clone().map_err(io)?, heard.0.clone());
        let voice = Self::run(program, 0, &heard.0)?;
        let mut peer = Foreign {
            program: program.clone(),
            options: options(make, matches!(program, Program::Linux(_))),
            voice,
            runs: 0,
            socket,
            theirs,
            begun: Instant::now(),
            heard,
            waiting: VecDeque::new(),
        };
        peer.begin()?;
        Ok(peer)
    }

    fn run(program: &Program, number: u32, to: &Sender<ForeignInput>) -> Result<Voice, Refused> {
        let to = to.clone();
        // Nobody listens any more: the test is over.
        let line = move |line| drop(to.send(ForeignInput::Line(number, line)));
        match program {
            Program::Usrsctp(program) => {
                let process = Process::start(&mut Command::new(program), line);
                process.map(Voice::Process).map_err(Refused::Gone)
            }
            Program::Linux(machine) => {
                machine.tell(line);
                Ok(Voice::Machine(Arc::clone(machine)))
            }
        }
    }

    fn begin(&mut self) -> Result<(), Refused> {
        let ours = self.socket.local_addr().expect("it is bound").port();
        self.command(&format!("start {} {ours}", self.theirs.port()))?;
        for option in self.options.clone() {
            self.command(&option)?;
        }
        self.command(&format!("bind {} {}", PORTS[1], self.theirs.ip()))
    }

    /// Gives a command and waits for its answer; what else is said meanwhile is kept.
    fn command(&mut self, command: &str) -> Result<(), Refused> {
        self.voice.say(command).map_err(Refused::Gone)?;
        loop {
            let heard = self.heard.1.recv_timeout(ANSWER);
            let heard = heard
                .map_err(|_| Refused::Gone(format!("{command}: no answer; is the peer still alive?")))?;
            match heard {
                ForeignInput::Line(run, _) if run != self.runs => {}
                ForeignInput::Line(_, line) if line == "ok" => return Ok(()),
                ForeignInput::Line(_, line) if line == "busy" => return Err(Refused::Busy),
                ForeignInput::Line(_, line) if line.starts_with("refused ") => {
                    return Err(Refused::NotOffered(line.trim_start_matches("refused ").to_owned()));
                }
                other => self.keep(other),
            }
        }
    }

    fn keep(&mut self, heard: ForeignInput) {
        let said = match heard {
            ForeignInput::Packet(packet) => PeerOutput::Packet(packet),
            ForeignInput::Line(run, _) if run != self.runs => return,
            ForeignInput::Line(_, line) => {
                PeerOutput::PeerEvent(parse(&line).unwrap_or(PeerEvent::Error(line)))
            }
        };
        self.waiting.push_back(said);
    }

    fn restart(&mut self) -> Result<(), Refused> {
        // The old one ends without a word: what a kernel says to the end of a socket is not carried.
        if let Program::Linux(_) = self.program {
            self.command("forget")?;
            std::thread::sleep(LAST_WORDS);
            while self.heard.1.try_recv().is_ok() {}
            self.waiting.clear();
        }
        self.runs += 1;
        self.voice = Self::run(&self.program, self.runs, &self.heard.0)?;
        self.begin()
    }
}

/// Its options, as commands; timeouts for a network of milliseconds.
fn options(make: &Make, linux: bool) -> Vec<String> {
    let on = make.extensions;
    let buffers = if linux { BUFFERS_OF_LINUX } else { BUFFERS };
    let switch = |name: &str, on: bool| format!("option {name} {}", u8::from(on));
    let mut options = vec![
        format!("option buffers {buffers}"),
        format!("option streams {STREAMS} 100"),
        format!("option mtu {MTU}"),
        "option rto 200 50 1000".to_owned(),
        "option sack-delay 20".to_owned(),
        switch("partial-reliability", on.partial_reliability),
        switch("addresses", on.addresses),
        switch("authentication", on.authentication),
        switch("reconfiguration", on.reconfiguration),
        switch("interleaving", on.interleaving),
    ];
    if on.nr_sack {
        options.push(switch("nr-sack", true));
    }
    if on.zero_checksum {
        options.push(switch("zero-checksum", true));
    }
    if make.authenticated {
        options.push(format!("key {} {}", KEY.0, KEY.1));
    }
    options
}

/// A datagram without content ends it: see `drop`.
fn listen(socket: UdpSocket, to: Sender<ForeignInput>) {
    std::thread::spawn(move || {
        let mut room = vec![0; 1 << 16];
        while let Ok(size @ 1..) = socket.recv(&mut room) {
            if to.send(ForeignInput::Packet(Bytes::copy_from_slice(&room[..size]))).is_err() {
                return;
            }
        }
    });
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let ours = self.socket.local_addr().expect("it is bound");
        // If it fails, a thread waits a little longer, to the end of the program.
        let _ = self.socket.send_to(&[], ours);
    }
}

/// What a line of a peer says (`lines.h`); `None` if nothing that should be said.
pub fn parse(line: &str) -> Option<PeerEvent> {
    let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
    let words: Vec<&str> = rest.split_whitespace().collect();
    let number = |n: usize| words.get(n)?.parse::<u32>().ok();
    let streams =
        |from: usize| words.get(from..).map(|ids| ids.iter().filter_map(|id| id.parse().ok()).collect());
    Some(match what {
        "up" => PeerEvent::Up {
            streams: [number(0)? as u16, number(1)? as u16],
            extensions: words[2..].iter().map(|name| (*name).to_owned()).collect(),
        },
        "message" => PeerEvent::Arrived(Arrived {
            stream: number(0)? as u16,
            number: number(1)?,
            size: number(2)? as usize,
            hash: u64::from_str_radix(words.get(3)?, 16).ok()?,
            unordered: Some(*words.get(4)? == "unordered"),
        }),
        "failed" => PeerEvent::Failed(number(0)?),
        "peer-shutdown" => PeerEvent::PeerShutdown,
        "closed" => PeerEvent::Closed,
        "lost" if words.first() == Some(&"by-user") => PeerEvent::Aborted(words[1..].join(" ")),
        "lost" => PeerEvent::Lost(rest.to_owned()),
        "restart" => PeerEvent::Restarted,
        "streams-reset" => PeerEvent::StreamsReset {
            outgoing: *words.first()? == "outgoing",
            outcome: outcome(words.get(1)?)?,
            streams: streams(2)?,
        },
        "streams-added" => PeerEvent::StreamsAdded {
            streams: [number(0)? as u16, number(1)? as u16],
            outcome: outcome(words.get(2)?)?,
        },
        "tsns-reset" => PeerEvent::TsnsReset(outcome(words.first()?)?),
        "address" => PeerEvent::Address(words.first()?.parse().ok()?, (*words.get(1)?).to_owned()),
        _ => return None,
    })
}

fn outcome(word: &str) -> Option<Outcome> {
    Some(match word {
        "done" => Outcome::Done,
        "denied" => Outcome::Denied,
        "failed" => Outcome::Failed,
        _ => return None,
    })
}

/// The command that sends a message.
fn sending(ask: &crate::letter::Letter, reliability: Reliability) -> Result<String, Refused> {
    let order = if ask.unordered { "unordered" } else { "ordered" };
    let how = match reliability {
        Reliability::Full => "full 0".to_owned(),
        Reliability::Lifetime(ms) => format!("lifetime {ms}"),
        Reliability::Retransmissions(n) => format!("retransmissions {n}"),
        Reliability::Priority(_) => return Err(super::has_no("priorities are not asked of it")),
    };
    Ok(format!("send {} {} {} {order} {how}", ask.stream, ask.number, ask.size))
}

impl Peer for Foreign {
    fn ask(&mut self, _now: Time, ask: &Ask) -> Result<(), Refused> {
        let list = |ids: &[u16]| ids.iter().map(|id| format!(" {id}")).collect::<String>();
        let ours = self.socket.local_addr().expect("it is bound");
        let connect = format!("connect {} {}", PORTS[0], ours.ip());
        let command = match ask {
            Ask::Listen => "listen".to_owned(),
            Ask::Connect => connect,
            Ask::Send(letter, reliability) => sending(letter, *reliability)?,
            Ask::ResetOutgoing(streams) => format!("reset outgoing{}", list(streams)),
            Ask::ResetIncoming(streams) => format!("reset incoming{}", list(streams)),
            Ask::AddStreams { outgoing, incoming } => format!("add {outgoing} {incoming}"),
            Ask::ResetTsns => "reset-tsns".to_owned(),
            Ask::Shutdown => "shutdown".to_owned(),
            Ask::Abort(reason) => format!("abort {reason}"),
            Ask::Restart => {
                self.restart()?;
                connect
            }
        };
        self.command(&command)
    }

    fn take(&mut self, _now: Time, packet: Bytes) {
        // Refused while nobody listens there: as lost as any other.
        let _ = self.socket.send_to(&packet, self.theirs);
    }

    fn wait(&mut self, now: Time, until: Time) -> Time {
        if self.waiting.is_empty() {
            match self.heard.1.recv_timeout(until.since(now).min(Duration::from_secs(1))) {
                Ok(heard) => self.keep(heard),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
        (Time::ZERO + self.begun.elapsed()).max(now)
    }

    fn said(&mut self) -> Option<PeerOutput> {
        while let Ok(heard) = self.heard.1.try_recv() {
            self.keep(heard);
        }
        self.waiting.pop_front()
    }

    fn addresses(&self) -> [Address; 2] {
        let ours = self.socket.local_addr().expect("it is bound");
        [ours, self.theirs].map(|place| Address { ip: place.ip(), udp: place.port() })
    }

    fn patience(&self) -> Duration {
        // A kernel in a process that has to share the machine is slow.
        Duration::from_secs(if matches!(self.program, Program::Linux(_)) { 180 } else { 20 })
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(if matches!(self.program, Program::Linux(_)) { 10 } else { 1 })
    }

    fn tells_what_it_gave_up(&self) -> bool {
        matches!(self.program, Program::Usrsctp(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_peer() {
        let told = |line| parse(line);
        let up = |extensions: &[&str]| PeerEvent::Up {
            streams: [16, 12],
            extensions: extensions.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert_eq!(told("up 16 12"), Some(up(&[])));
        assert_eq!(
            told("up 16 12 reconfiguration interleaving"),
            Some(up(&["reconfiguration", "interleaving"]))
        );
        let arrived = Arrived { number: 7, stream: 3, size: 10, unordered: Some(true), hash: 0xff };
        assert_eq!(told("message 3 7 10 00000000000000ff unordered"), Some(PeerEvent::Arrived(arrived)));
        let reset = PeerEvent::StreamsReset { outgoing: true, outcome: Outcome::Denied, streams: vec![3, 5] };
        assert_eq!(told("streams-reset outgoing denied 3 5"), Some(reset));
        assert_eq!(
            told("lost by-user enough of this"),
            Some(PeerEvent::Aborted("enough of this".to_owned()))
        );
        assert_eq!(told("lost error 13"), Some(PeerEvent::Lost("error 13".to_owned())));
        for wrong in ["", "up 16", "message 3 7 10 xyz ordered", "streams-reset outgoing perhaps", "hello"] {
            assert_eq!(told(wrong), None, "{wrong}");
        }
    }
}
