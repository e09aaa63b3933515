//! `anabranch replay`: repeats a recorded transfer through the core, and explains it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anabranch_proto::wire::{Address, Packet};
use anabranch_proto::{
    AssociationId, Config, Endpoint, Event, Incoming, Limit, Output, PathId, Policies, Purpose, Reason, Time,
};
use anabranch_sim::CsvSeries;
use anabranch_sim::scenario::{Flow, Scenario, Sctp, Transport};
use anabranch_sim::trace::{Contents, Detail, Names, Observer, Origin, PacketView, Record, Side};
use bytes::Bytes;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::recording::{Line, Reader, Told, add, addresses, hexadecimal};
use super::traced::Traces;
use crate::output::{fail, print, print_json, refuse, refuse_scenario};
use crate::simulate::NoResult;
use crate::why;

/// The arguments of `anabranch replay`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The recording, which `anabranch send --record` wrote
    file: PathBuf,
    /// Write the series of the sender to this directory as CSV, as `anabranch run --series` does
    #[arg(long, value_name = "DIR")]
    series: Option<PathBuf>,
    #[command(flatten)]
    traces: Traces,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    asked: why::Asked,
}

const EXAMPLES: &str = "\
The replay tells the core what the recording holds, at the recorded times, and compares the packets that it sends with those
that were sent. The flow is called `transfer`, its ends `here` and `there`. What happened between the hosts is not
recorded: a chunk is on its way until it is acknowledged or marked.

Examples:
  anabranch send video.mkv --to 192.0.2.1,198.51.100.1 --record transfer.jsonl
  anabranch replay transfer.jsonl
  anabranch replay transfer.jsonl --why --at 2.5s
  anabranch replay transfer.jsonl --why --packet 1200
  anabranch replay transfer.jsonl --series out/
  anabranch replay transfer.jsonl --qlog transfer.sqlog --perfetto transfer.json

Exit status: 0 the same packets were sent again, 2 the input was wrong, 1 anything else.";

/// The name of the flow.
const FLOW: &str = "transfer";

/// Replays the recording and returns the exit status.
pub(crate) fn replay(arguments: &Arguments) -> u8 {
    let file = &arguments.file;
    let (whole, names) = match paths(file) {
        Ok(found) => found,
        Err(status) => return status,
    };
    if let Err(status) = arguments.traces.write(file) {
        return status;
    }
    let observe = |observer: &mut dyn Observer| observe(file, &names, observer);
    if arguments.asked.why {
        return why::tell(&arguments.asked, arguments.json, &scenario(whole.config), observe);
    }
    if let Some(directory) = &arguments.series
        && let Err(status) = write_series(directory, observe)
    {
        return status;
    }
    let (packets, seconds) = (whole.packets, whole.end.as_secs_f64());
    match arguments.json {
        true => print_json(&json!({ "packets": packets, "seconds": seconds, "same": true })),
        false => {
            print(&format!("{}: {packets} packets in {seconds:.3} s, sent again bit for bit", file.display()))
        }
    }
}

/// Repeats the recording once for the names of its paths; an error is told, and its exit status returned.
fn paths(file: &Path) -> Result<(Whole, Names), u8> {
    let mut paths = BTreeMap::new();
    let whole = repeat(file, &mut |step, _| {
        if let Step::Sent(_, packet, Reason { path: Some(path), .. }) = step {
            paths.entry(*path).or_insert_with(|| name(packet.from, packet.to));
        }
    });
    match whole {
        Ok(whole) => Ok((whole, names(&paths))),
        Err(Unable::Read(why)) => Err(refuse(format!("{}: {why}", file.display()))),
        Err(Unable::Differs(why)) => Err(fail(format!("{}: {why}", file.display()))),
    }
}

/// Repeats the recording for an observer; an error is told, and its exit status returned.
pub(super) fn observed(file: &Path, observer: &mut dyn Observer) -> Result<(), u8> {
    let (_, names) = paths(file)?;
    match observe(file, &names, observer) {
        Ok(()) => Ok(()),
        Err(NoResult::Other(why)) => Err(fail(format!("{}: {why}", file.display()))),
        Err(NoResult::Scenario(error)) => Err(refuse_scenario(&error)),
    }
}

fn write_series(
    directory: &Path,
    observe: impl Fn(&mut dyn Observer) -> Result<(), NoResult>,
) -> Result<(), u8> {
    let unwritten = |error| fail(format!("cannot write the series to {}: {error}", directory.display()));
    let mut series = CsvSeries::new(directory).map_err(unwritten)?;
    if let Err(NoResult::Other(why)) = observe(&mut series) {
        return Err(fail(why));
    }
    series.finish().map_err(unwritten)
}

/// A path by its addresses.
fn name(local: Address, remote: Address) -> String {
    format!("{} → {}", local.ip, remote.ip)
}

/// Each path is a link to the other host and back.
fn names(paths: &BTreeMap<PathId, String>) -> Names {
    let both =
        |name: &String| [(name.clone(), "here>there".to_owned()), (name.clone(), "there>here".to_owned())];
    Names {
        flows: vec![FLOW.to_owned()],
        protocols: vec!["sctp"],
        links: paths.values().flat_map(both).collect(),
        ..Names::default()
    }
}

/// The scenario with the settings of the transfer, for explanations.
fn scenario(config: Config) -> Scenario {
    let transport = Transport::Sctp(Box::new(Sctp { config, ..Sctp::default() }));
    let (name, from, to) = (FLOW.to_owned(), "here".to_owned(), "there".to_owned());
    Scenario { flows: vec![Flow { name, from, to, transport, ..Flow::default() }], ..Scenario::default() }
}

/// Why a recording was not repeated.
enum Unable {
    /// It cannot be read.
    Read(String),
    /// The core did something else than recorded.
    Differs(String),
}

/// A recording that was repeated.
struct Whole {
    config: Config,
    packets: u64,
    end: Time,
}

/// What happens in a replay.
enum Step<'a> {
    Arrived(Time, &'a Packet),
    Sent(Time, &'a Packet, Reason),
    Detail(Time, Option<PathId>, Detail),
}

/// Repeats the recording. `watch` is called with each step and the endpoint before or after it.
fn repeat(file: &Path, watch: &mut dyn FnMut(&Step<'_>, &Paths<'_>)) -> Result<Whole, Unable> {
    let (mut reader, config, seed) = Reader::open(file).map_err(Unable::Read)?;
    let endpoint = Endpoint::new(config.clone(), Policies::default(), seed);
    let mut endpoint = endpoint.map_err(|error| Unable::Read(error.to_string()))?;
    endpoint.set_listening(false);
    endpoint.set_notes(true);
    let mut core = Core { endpoint, association: None, now: Time::ZERO, sent: 0, hash: Sha256::new() };
    while let Some(line) = reader.next().map_err(Unable::Read)? {
        core.poll(line.polls, watch);
        if core.sent != line.sent {
            let (at, sent, recorded) = (core.now.as_secs_f64(), core.sent, line.sent);
            let why = format!("at {at:.6} s the core has sent {sent} packets, in the recording {recorded}");
            return Err(Unable::Differs(format!("{why}: was it another version of the program?")));
        }
        core.now = Time::from_nanos(line.at);
        if let Told::End { sha256 } = &line.call {
            return match *sha256 == hexadecimal(&core.hash.finalize()) {
                true => Ok(Whole { config, packets: core.sent, end: core.now }),
                false => Err(Unable::Differs("the packets differ from those recorded".to_owned())),
            };
        }
        core.tell(&line, watch).map_err(|why| Unable::Read(format!("line {}: {why}", reader.number())))?;
    }
    Err(Unable::Read(
        "the recording has no end: the program that wrote it did not come to its end".to_owned(),
    ))
}

/// The endpoint of a replay, as those who watch see it.
struct Paths<'a> {
    endpoint: &'a Endpoint,
    association: Option<AssociationId>,
}

impl Paths<'_> {
    /// The name of a path.
    fn name(&self, path: PathId) -> Option<String> {
        let views = self.endpoint.paths(self.association?);
        views.iter().find(|view| view.id == path).map(|view| name(view.local, view.remote))
    }
}

struct Core {
    endpoint: Endpoint,
    association: Option<AssociationId>,
    now: Time,
    sent: u64,
    hash: Sha256,
}

impl Core {
    /// Polls so many times; notes do not count, which were off while the recording was made.
    fn poll(&mut self, times: u64, watch: &mut dyn FnMut(&Step<'_>, &Paths<'_>)) {
        let mut left = times;
        while left > 0 {
            let output = self.endpoint.poll(self.now);
            if !matches!(output, Output::Note(_)) {
                left -= 1;
            }
            let paths = Paths { endpoint: &self.endpoint, association: self.association };
            match output {
                Output::Transmit(packet, reason) => {
                    self.sent += 1;
                    add(&packet, &mut self.hash);
                    watch(&Step::Sent(self.now, &packet, reason), &paths);
                }
                Output::Event(_, Event::Path(path, state)) => {
                    watch(&Step::Detail(self.now, Some(path), Detail::State(state)), &paths);
                }
                Output::Note(note) => {
                    if let Some((path, detail)) = Detail::of(&note.kind) {
                        watch(&Step::Detail(note.at, path, detail), &paths);
                    }
                }
                Output::Event(..) | Output::Wait(_) => {}
            }
        }
    }

    fn tell(&mut self, line: &Line, watch: &mut dyn FnMut(&Step<'_>, &Paths<'_>)) -> Result<(), String> {
        let (now, endpoint) = (self.now, &mut self.endpoint);
        if let Some(incoming) = line.call.arrives()? {
            if let Incoming::Packet(packet) = &incoming {
                watch(&Step::Arrived(now, packet), &Paths { endpoint, association: self.association });
            }
            endpoint.handle(now, incoming);
        } else if let Some((id, message)) = line.call.message() {
            // A message that was refused was refused in the transfer, too.
            let _ = endpoint.send(now, id, message);
        } else {
            match &line.call {
                Told::Connect { port, to } => {
                    self.association = endpoint.connect(now, *port, &addresses(to)).ok()
                }
                Told::Read(id) => drop(endpoint.read(now, AssociationId(*id))),
                Told::Shutdown(id) => endpoint.shutdown(now, AssociationId(*id)),
                Told::Abort(id) => endpoint.abort(now, AssociationId(*id), Bytes::new()),
                Told::Forget(id) => endpoint.forget(now, AssociationId(*id)),
                Told::Other => return Err("a call that cannot be repeated".to_owned()),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Repeats the recording for an observer of runs.
fn observe(file: &Path, names: &Names, observer: &mut dyn Observer) -> Result<(), NoResult> {
    observer.begin(names);
    let mut shown = Shown { names, observer, numbers: vec![0; names.links.len()] };
    let whole = repeat(file, &mut |step, paths| shown.step(step, paths));
    match whole {
        Ok(_) => Ok(()),
        Err(Unable::Read(why) | Unable::Differs(why)) => Err(NoResult::Other(why)),
    }
}

struct Shown<'a> {
    names: &'a Names,
    observer: &'a mut dyn Observer,
    /// By link direction: the packets so far.
    numbers: Vec<u64>,
}

/// The reason that stands for the peer's reasons, which are not known.
const PEER: Reason = Reason { purpose: Purpose::Sack, path: None, limit: Limit::Control, oversize: false };

impl Shown<'_> {
    fn step(&mut self, step: &Step<'_>, paths: &Paths<'_>) {
        match step {
            Step::Detail(at, path, detail) => {
                let name = path.and_then(|path| paths.name(path));
                let (flow, side) = (0, Side::Client);
                self.observer.record(*at, &Record::Detail { flow, side, path: name.as_deref(), detail });
            }
            Step::Sent(at, packet, reason) => {
                let (name, reason) = (name(packet.from, packet.to), *reason);
                let path = Some(name.as_str()).filter(|_| reason.path.is_some());
                let (flow, side) = (0, Side::Client);
                let view = view(packet, Origin { side, path, reason, wait: None });
                self.observer.record(*at, &Record::Sent { flow, side, path, reason, packet: view });
                if let Some(link) = self.link(&name, 0) {
                    self.numbers[link] += 1;
                    let number = self.numbers[link];
                    self.observer.record(*at, &Record::Started { link, flow, number, packet: view });
                }
            }
            Step::Arrived(at, packet) => {
                if let Some(link) = self.way_back(packet) {
                    let (side, path) = (Side::Server, Some(self.names.links[link].0.as_str()));
                    let packet = view(packet, Origin { side, path, reason: PEER, wait: None });
                    self.observer.record(*at, &Record::Delivered { link, flow: 0, packet });
                }
            }
        }
    }

    /// The direction of a link on which a packet of the peer came. The peer may answer from an address to which nothing is
    /// sent from ours: that is the path of our address.
    fn way_back(&self, packet: &Packet) -> Option<usize> {
        let ours = format!("{} → ", packet.to.ip);
        let on_ours = || self.names.links.iter().position(|(name, _)| name.starts_with(&ours));
        self.link(&name(packet.to, packet.from), 1).or_else(|| Some(on_ours()? + 1))
    }

    /// The direction of the link of this name: 0 there, 1 back.
    fn link(&self, name: &str, direction: usize) -> Option<usize> {
        let first = self.names.links.iter().position(|(known, _)| known == name)?;
        Some(first + direction)
    }
}

fn view<'a>(packet: &'a Packet, origin: Origin<'a>) -> PacketView<'a> {
    // IP and UDP headers; the core counts the same.
    let ip = if packet.to.ip.is_ipv4() { 20 } else { 40 };
    let udp = if packet.to.udp == 0 { 0 } else { 8 };
    let size = packet.size() as u32 + ip + udp;
    PacketView { size, contents: Contents::Sctp(packet), hops: 0, origin: Some(origin) }
}
