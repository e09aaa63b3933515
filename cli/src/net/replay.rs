//! `anabranch replay`: repeats a recorded transfer through the core, and explains it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anabranch_proto::wire::Packet;
use anabranch_proto::{Config, Limit, PathId, Purpose, Reason};
use anabranch_sim::scenario::{Flow, Scenario, Sctp, Transport};
use anabranch_sim::trace::{Contents, Names, Observer, Origin, PacketView, Record, Side};
use anabranch_sim::{CsvSeries, Protocol};
use serde_json::json;

use super::repeat::{Paths, Step, Unable, Whole, name, repeat};
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
    #[arg(long, value_name = "DIR", conflicts_with = "why")]
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
    let whole = repeat_file(file, &mut |step, seen| {
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

fn repeat_file(file: &Path, watch: &mut dyn FnMut(&Step<'_>, &Paths<'_>)) -> Result<Whole, Unable> {
    let opened = File::open(file).map_err(|error| Unable::Read(error.to_string()))?;
    repeat(BufReader::new(opened), watch)
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
    Names { protocols: vec![Protocol::Sctp; flows.len()], flows, links, ..Names::default() }
}

/// The scenario with the settings of the transfer, for explanations.
fn scenario(config: Config) -> Scenario {
    let transport = Transport::Sctp(Box::new(Sctp { config, ..Sctp::default() }));
    let (name, from, to) = (FLOW.to_owned(), "here".to_owned(), "there".to_owned());
    Scenario { flows: vec![Flow { name, from, to, transport, ..Flow::default() }], ..Scenario::default() }
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
    let whole = repeat_file(file, &mut |step, paths| shown.step(step, paths));
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

    /// The direction of a link on which a packet of the peer came. The peer may answer from an address to which nothing
    /// is sent from ours: that is the path of our address.
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
