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
use serde_json::json;
use sha2::{Digest, Sha256};

use super::recording::{self, Line, Reader, Told, add, addresses, hexadecimal};
use super::traced::Traces;
use crate::output::{fail, print, print_json, refuse, refuse_scenario};
use crate::place::Places;
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
    let places = Places::default().reads(file).directory("--series", arguments.series.as_ref());
    if let Err(status) = arguments.traces.check(places) {
        return status;
    }
    let (whole, names) = match paths(file) {
        Ok(found) => found,
        Err(status) => return status,
    };
    if let Err(status) = arguments.traces.write(file, &file.display().to_string()) {
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
    let whole = repeat(file, &mut |step, seen| {
        if let Step::Sent(_, packet, Reason { path: Some(path), .. }) = step {
            paths.entry((seen.flow, *path)).or_insert_with(|| name(packet.from, packet.to));
        }
    });
    match whole {
        Ok(whole) => {
            let names = names(&whole, &paths);
            Ok((whole, names))
        }
        Err(Unable::Read(why)) => Err(refuse(format!("{}: {why}", file.display()))),
        Err(Unable::Differs(why)) => Err(fail(format!("{}: {why}", file.display()))),
    }
}

/// Repeats the recording for an observer; an error is told, and its exit status returned.
pub(super) fn observed(file: &Path, observer: &mut dyn Observer) -> Result<(), u8> {
    let (_, names) = paths(file)?;
    match observe(file, &names, observer) {
        Ok(_) => Ok(()),
        Err(NoResult::Other(why)) => Err(fail(format!("{}: {why}", file.display()))),
        Err(NoResult::Scenario(error)) => Err(refuse_scenario(&error)),
    }
}

fn write_series(
    directory: &Path,
    observe: impl Fn(&mut dyn Observer) -> Result<f64, NoResult>,
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

/// Each path is a link to the other host and back. Associations of a listener are numbered as in its log.
fn names(whole: &Whole, paths: &BTreeMap<(usize, PathId), String>) -> Names {
    let flows: Vec<String> = match whole.listening {
        false => vec![FLOW.to_owned()],
        true => (1..=whole.associations.max(1)).map(|number| format!("{FLOW}-{number}")).collect(),
    };
    let mut links: Vec<(String, String)> = Vec::new();
    for name in paths.values() {
        // Associations of one peer can have the same addresses.
        if !links.iter().any(|(known, _)| known == name) {
            links.extend(["here>there", "there>here"].map(|way| (name.clone(), way.to_owned())));
        }
    }
    Names { protocols: vec!["sctp"; flows.len()], flows, links, ..Names::default() }
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
    listening: bool,
    /// How many there were.
    associations: usize,
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
    let listening = reader.listening;
    endpoint.set_listening(listening);
    endpoint.set_notes(true);
    let known = Known::default();
    let mut core = Core { endpoint, known, now: Time::ZERO, sent: 0, hash: Sha256::new() };
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
                true => {
                    let associations = core.known.associations.len();
                    Ok(Whole { config, packets: core.sent, end: core.now, listening, associations })
                }
                false => Err(Unable::Differs("the packets differ from those recorded".to_owned())),
            };
        }
        core.tell(&line, watch).map_err(|why| Unable::Read(format!("line {}: {why}", reader.number())))?;
    }
    Err(Unable::Read(
        "the recording has no end: the program that wrote it did not come to its end".to_owned(),
    ))
}

/// The endpoint of a replay, as those who watch a step see it.
struct Paths<'a> {
    endpoint: &'a Endpoint,
    association: Option<AssociationId>,
    /// The number of the association, from 0.
    flow: usize,
}

impl Paths<'_> {
    /// The name of a path.
    fn name(&self, path: PathId) -> Option<String> {
        let views = self.endpoint.paths(self.association?);
        views.iter().find(|view| view.id == path).map(|view| name(view.local, view.remote))
    }
}

/// The associations of the endpoint, in the order in which they appeared.
#[derive(Default)]
struct Known {
    associations: Vec<AssociationId>,
    /// By address of a peer: the number of the last association with it.
    remotes: BTreeMap<Address, usize>,
}

impl Known {
    /// The endpoint has told something of an association.
    fn learn<'a>(&mut self, endpoint: &'a Endpoint, id: AssociationId) -> Paths<'a> {
        // The last ones are those that speak.
        let known = self.associations.iter().rposition(|known| *known == id);
        let flow = known.unwrap_or_else(|| {
            self.associations.push(id);
            self.associations.len() - 1
        });
        for view in endpoint.paths(id) {
            self.remotes.insert(view.remote, flow);
        }
        Paths { endpoint, association: Some(id), flow }
    }

    /// The association with the peer at this address. A peer without one is about to begin the next.
    fn with<'a>(&self, endpoint: &'a Endpoint, remote: Address) -> Paths<'a> {
        let flow = self.remotes.get(&remote).copied().unwrap_or(self.associations.len());
        Paths { endpoint, association: self.associations.get(flow).copied(), flow }
    }
}

struct Core {
    endpoint: Endpoint,
    known: Known,
    now: Time,
    sent: u64,
    hash: Sha256,
}

impl Core {
    /// Polls so many times, or until there is nothing more to do: further polls would change nothing. Notes do not count, which were off
    /// while the recording was made.
    fn poll(&mut self, times: u64, watch: &mut dyn FnMut(&Step<'_>, &Paths<'_>)) {
        let mut left = times;
        while left > 0 {
            let output = self.endpoint.poll(self.now);
            if !matches!(output, Output::Note(_)) {
                left -= 1;
            }
            let (endpoint, known) = (&self.endpoint, &mut self.known);
            match output {
                Output::Transmit(packet, reason) => {
                    self.sent += 1;
                    add(&packet, &mut self.hash);
                    watch(&Step::Sent(self.now, &packet, reason), &known.with(endpoint, packet.to));
                }
                Output::Event(id, Event::Path(path, state)) => {
                    let detail = Detail::State(state);
                    watch(&Step::Detail(self.now, Some(path), detail), &known.learn(endpoint, id));
                }
                Output::Note(note) => {
                    let paths = known.learn(endpoint, note.association);
                    if let Some((path, detail)) = Detail::of(&note.kind) {
                        watch(&Step::Detail(note.at, path, detail), &paths);
                    }
                }
                Output::Event(id, Event::Up) => {
                    let _ = known.learn(endpoint, id);
                }
                Output::Event(..) => {}
                Output::Wait(_) => return,
            }
        }
    }

    fn tell(&mut self, line: &Line, watch: &mut dyn FnMut(&Step<'_>, &Paths<'_>)) -> Result<(), String> {
        let (now, endpoint) = (self.now, &mut self.endpoint);
        if let Some(incoming) = line.call.arrives()? {
            if let Incoming::Packet(packet) = &incoming {
                watch(&Step::Arrived(now, packet), &self.known.with(endpoint, packet.from));
            }
            endpoint.handle(now, incoming);
        } else if let Some((id, message)) = line.call.message()? {
            // A message that was refused was refused in the transfer, too.
            let _ = endpoint.send(now, id, message);
        } else {
            match &line.call {
                Told::Connect { port, to } => {
                    if let Ok(id) = endpoint.connect(now, *port, &addresses(to)) {
                        let _ = self.known.learn(endpoint, id);
                    }
                }
                Told::Read(id) => drop(endpoint.read(now, AssociationId(*id))),
                Told::Shutdown(id) => endpoint.shutdown(now, AssociationId(*id)),
                Told::Abort { association, reason } => {
                    endpoint.abort(now, AssociationId(*association), recording::reason(reason)?);
                }
                Told::Listen(on) => endpoint.set_listening(*on),
                Told::Forget(id) => endpoint.forget(now, AssociationId(*id)),
                Told::Other => return Err("a call that cannot be repeated".to_owned()),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Repeats the recording for an observer of runs. Returns when it ends, in seconds.
fn observe(file: &Path, names: &Names, observer: &mut dyn Observer) -> Result<f64, NoResult> {
    observer.begin(names);
    // A listener has a number for each of its associations.
    let sides = match names.flows[0] == FLOW {
        true => [Side::Client, Side::Server],
        false => [Side::Server, Side::Client],
    };
    let mut shown = Shown { names, observer, numbers: vec![0; names.links.len()], sides };
    let whole = repeat(file, &mut |step, paths| shown.step(step, paths));
    match whole {
        Ok(whole) => Ok(whole.end.as_secs_f64()),
        Err(Unable::Read(why) | Unable::Differs(why)) => Err(NoResult::Other(why)),
    }
}

struct Shown<'a> {
    names: &'a Names,
    observer: &'a mut dyn Observer,
    /// By link direction: the packets so far.
    numbers: Vec<u64>,
    /// Ours and the peer's.
    sides: [Side; 2],
}

/// The reason that stands for the peer's reasons, which are not known.
const PEER: Reason = Reason { purpose: Purpose::Sack, path: None, limit: Limit::Control, oversize: false };

impl Shown<'_> {
    fn step(&mut self, step: &Step<'_>, paths: &Paths<'_>) {
        let [own, peer] = self.sides;
        // A packet that belongs to no association may come after the last.
        let flow = paths.flow.min(self.names.flows.len() - 1);
        match step {
            Step::Detail(at, path, detail) => {
                let name = path.and_then(|path| paths.name(path));
                let side = own;
                self.observer.record(*at, &Record::Detail { flow, side, path: name.as_deref(), detail });
            }
            Step::Sent(at, packet, reason) => {
                let (name, reason) = (name(packet.from, packet.to), *reason);
                let path = Some(name.as_str()).filter(|_| reason.path.is_some());
                let side = own;
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
                    let (side, path) = (peer, Some(self.names.links[link].0.as_str()));
                    let packet = view(packet, Origin { side, path, reason: PEER, wait: None });
                    self.observer.record(*at, &Record::Delivered { link, flow, packet });
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
    PacketView { size, contents: Contents::Sctp(packet), number: None, hops: 0, origin: Some(origin) }
}
