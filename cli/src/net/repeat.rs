//! Repeats a recorded transfer: tells the core what the recording holds, at the recorded times, and compares the
//! packets that it sends.

use std::collections::BTreeMap;
use std::io::BufRead;

use anabranch_proto::wire::{Address, Packet};
use anabranch_proto::{
    AssociationId, Config, Endpoint, Event, Incoming, Output, PathId, Policies, Reason, Time,
};
use anabranch_sim::trace::Detail;
use sha2::{Digest, Sha256};

use super::recording::{self, Line, Reader, Told, add, addresses, hexadecimal};

/// No time of a recording is later: 146 years. The core then has no timers that seem to be off.
const LATEST: u64 = 1 << 62;

/// Why a recording was not repeated.
pub(super) enum Unable {
    /// It cannot be read.
    Read(String),
    /// The core did something else than recorded.
    Differs(String),
}

/// A recording that was repeated.
pub(super) struct Whole {
    pub(super) config: Config,
    pub(super) packets: u64,
    pub(super) end: Time,
    pub(super) listening: bool,
    /// How many there were.
    pub(super) associations: usize,
}

/// What happens in a replay.
pub(super) enum Step<'a> {
    Arrived(Time, &'a Packet),
    Sent(Time, &'a Packet, Reason),
    Detail(Time, Option<PathId>, Detail),
}

/// Repeats the recording. `watch` is called with each step and the endpoint before or after it.
pub(super) fn repeat(
    recording: impl BufRead + 'static,
    watch: &mut dyn FnMut(&Step<'_>, &Paths<'_>),
) -> Result<Whole, Unable> {
    let (mut reader, config, seed) = Reader::new(recording).map_err(Unable::Read)?;
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
        if !(core.now.as_nanos()..LATEST).contains(&line.at) {
            let why = "this is no recording: its times go back, or leap";
            return Err(Unable::Read(format!("line {}: {why}", reader.number())));
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
pub(super) struct Paths<'a> {
    endpoint: &'a Endpoint,
    association: Option<AssociationId>,
    /// The number of the association, from 0.
    pub(super) flow: usize,
}

impl Paths<'_> {
    /// The name of a path.
    pub(super) fn name(&self, path: PathId) -> Option<String> {
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
    /// Polls so many times, or until there is nothing more to do: further polls would change nothing. Notes do not
    /// count, which were off while the recording was made.
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

/// A path by its addresses.
pub(super) fn name(local: Address, remote: Address) -> String {
    format!("{} → {}", local.ip, remote.ip)
}
