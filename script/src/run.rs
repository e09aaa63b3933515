//! Runs the events of a script in order.

use anabranch_proto::wire::Ecn;
use anabranch_proto::{Incoming, Time};

use super::ast::{Action, Body, Call, Checksum, Command, Event, EventTime, Expr, Moment, Packet, Program};
use super::element::{Element, Row, Value};
use super::live::Written;
use super::parse::LONGEST;
use super::setup::{Tolerance, setup};
use super::socket::CallFault;
use super::world::{Sent, World, seconds};
use super::{Failure, Options, ParseError, Verdict, wire};

/// How long a `*` waits, in nanoseconds.
const PATIENCE: u64 = 300_000_000_000;

/// Runs the script.
pub(super) fn run(program: &Program, options: &Options) -> Verdict {
    let setup = match setup(&program.options, options) {
        Ok(setup) => setup,
        Err(error) => return error.verdict(),
    };
    let tolerance = if options.exact { Tolerance { least: 0, percent: 0 } } else { setup.tolerance };
    let mut world = match World::new(&setup) {
        Ok(world) => world,
        Err(why) => return ParseError::new(1, why).verdict(),
    };
    world.drain();
    let mut run = Run { world, tolerance, lax: options.lax, due: Time::ZERO, stated: Time::ZERO };
    for event in &program.events {
        if let Err(fault) = run.event(event) {
            return run.verdict(event, fault);
        }
    }
    match (options.nothing_left, run.world.queue.front(), program.events.last()) {
        (true, Some(sent), Some(last)) => {
            let what = format!("the script has ended, and a packet sent at {} is left", seconds(sent.at));
            run.verdict(last, Fault::Failed(what, Vec::new()))
        }
        _ => Verdict::Pass,
    }
}

struct Run {
    world: World,
    tolerance: Tolerance,
    lax: bool,
    /// When the previous event was due.
    due: Time,
    /// When the previous event is, as the script states it; after a `*` or a range, when its packet was sent.
    stated: Time,
}

/// Why an event failed.
enum Fault {
    Failed(String, Vec<String>),
    Unsupported(String),
    Wrong(String),
}

impl Fault {
    fn failed(what: impl Into<String>) -> Fault {
        Fault::Failed(what.into(), Vec::new())
    }
}

impl Run {
    fn verdict(&mut self, event: &Event, fault: Fault) -> Verdict {
        match fault {
            Fault::Failed(what, fields) => {
                let (line, at, log) = (event.line, self.world.now, self.world.log());
                Verdict::Fail(Box::new(Failure { line, at, what, fields, log }))
            }
            Fault::Unsupported(what) => ParseError::new(event.line, what).unsupported().verdict(),
            Fault::Wrong(why) => ParseError::new(event.line, why).verdict(),
        }
    }

    fn moment(&self, moment: Moment) -> Result<Time, Fault> {
        let nanos = match moment {
            Moment::Absolute(nanos) => nanos,
            Moment::Relative(nanos) => self.world.now.as_nanos() + nanos,
        };
        match nanos < LONGEST {
            true => Ok(Time::from_nanos(nanos)),
            false => Err(Fault::Wrong("a script lasts eleven days at most".to_owned())),
        }
    }

    fn event(&mut self, event: &Event) -> Result<(), Fault> {
        let done = self.done(event);
        match self.world.exhausted() {
            Some(why) => Err(Fault::failed(why)),
            None => done,
        }
    }

    fn done(&mut self, event: &Event) -> Result<(), Fault> {
        let window = match event.when {
            EventTime::At(moment) => Some((self.moment(moment)?, self.moment(moment)?)),
            EventTime::Between(from, to) => Some((self.moment(from)?, self.moment(to)?)),
            EventTime::Any => None,
        };
        let stated = self.stated(event.when)?;
        let before = self.due;
        let due = window.map_or(self.world.now, |window| window.0);
        let done = match &event.action {
            Action::Expect(packet) => self.expect(packet, window, due.since(before).as_nanos() as u64),
            action => {
                self.world.advance(due);
                self.act(action)
            }
        };
        self.due = if window.is_some() { due } else { self.world.now };
        self.stated = if matches!(event.when, EventTime::At(_)) { stated } else { self.world.now };
        done
    }

    /// The earliest time of an event that the script states. It cannot lie before that of the event above it.
    fn stated(&self, when: EventTime) -> Result<Time, Fault> {
        let stated = match when {
            EventTime::At(Moment::Absolute(at)) | EventTime::Between(Moment::Absolute(at), _) => {
                Time::from_nanos(at)
            }
            EventTime::At(Moment::Relative(after)) => {
                Time::from_nanos(self.stated.as_nanos().saturating_add(after))
            }
            EventTime::Between(Moment::Relative(_), _) | EventTime::Any => self.stated,
        };
        if stated.as_nanos().saturating_add(self.tolerance.least) < self.stated.as_nanos() {
            let (stated, before) = (seconds(stated), seconds(self.stated));
            return Err(Fault::Wrong(format!(
                "the time {stated} lies before that of the event above it, {before}"
            )));
        }
        Ok(stated)
    }

    fn act(&mut self, action: &Action) -> Result<(), Fault> {
        match action {
            Action::Inject(packet) => self.world.inject(packet).map_err(Fault::Wrong),
            Action::Call(call) => self.call(call),
            Action::Command(command) => self.command(command),
            Action::Expect(_) => Ok(()),
        }
    }

    fn command(&mut self, command: &Command) -> Result<(), Fault> {
        let world = &mut self.world;
        match command {
            Command::Sysctl { name, value } => world.sockets.sysctl(name, *value),
            Command::Link { local, .. } if !world.local.contains(local) => {
                return Err(Fault::Wrong(format!("{local} is no address of the stack (--local)")));
            }
            Command::Link { local, up } => {
                let address = world.at(*local);
                world.endpoint.handle(world.now, Incoming::Writable(address, *up));
            }
            Command::TooBig { peer, .. } if !world.peer.contains(peer) => {
                return Err(Fault::Wrong(format!("{peer} is no address of the peer (--peer)")));
            }
            Command::TooBig { peer, mtu } => {
                let address = world.at(*peer);
                world.endpoint.handle(world.now, Incoming::TooBig(address, *mtu));
            }
        }
        world.drain();
        Ok(())
    }

    fn call(&mut self, call: &Call) -> Result<(), Fault> {
        let returned = self.world.call(call);
        self.world.drain();
        let returned = returned.map_err(|fault| match fault {
            CallFault::Failed(why) => Fault::failed(format!("{}(): {why}", call.name)),
            CallFault::Unsupported(what) => Fault::Unsupported(what),
            CallFault::Wrong(why) => Fault::Wrong(format!("{}(): {why}", call.name)),
        })?;
        let same_errno = call.errno.as_deref().is_none_or(|expected| {
            let alike =
                |name: &str| if name == "EWOULDBLOCK" { "EAGAIN".to_owned() } else { name.to_owned() };
            returned.errno.is_some_and(|errno| alike(errno) == alike(expected))
        });
        let same = match &call.result {
            Expr::Any => true,
            // The call has compared its result.
            Expr::Fields(_) | Expr::Word(_) if matches!(call.name.as_str(), "state" | "path") => true,
            Expr::Range(low, high) => (*low..=*high).contains(&returned.value),
            expected => super::sockopt::number(expected) == Some(returned.value),
        };
        if same && same_errno {
            return Ok(());
        }
        let errno = returned.errno.map(|errno| format!(" {errno}")).unwrap_or_default();
        let expected = super::sockopt::show(&call.result);
        let wanted = call.errno.as_ref().map(|errno| format!(" {errno}")).unwrap_or_default();
        Err(Fault::failed(format!(
            "{}(): expected {expected}{wanted}, got {}{errno}",
            call.name, returned.value
        )))
    }

    /// The stack must send this packet next. `window`: the allowed interval of time; `None` means any time.
    fn expect(&mut self, packet: &Packet, window: Option<(Time, Time)>, interval: u64) -> Result<(), Fault> {
        let slack = self.tolerance.after(interval);
        let latest = match window {
            Some((_, to)) => Time::from_nanos(to.as_nanos() + slack),
            None => Time::from_nanos(self.world.now.as_nanos() + PATIENCE),
        };
        let sent = self.next_packet(latest).ok_or_else(|| {
            let by = window.map_or("".to_owned(), |_| format!(" by {}", seconds(latest)));
            Fault::failed(format!("expected {}, and no packet was sent{by}", show(packet)))
        })?;
        let at = sent.at;
        self.compare(packet, sent)?;
        if let Some((from, to)) = window {
            let earliest = from.as_nanos().saturating_sub(slack);
            if !(earliest..=to.as_nanos() + slack).contains(&at.as_nanos()) {
                let range =
                    if from == to { seconds(from) } else { format!("{} to {}", seconds(from), seconds(to)) };
                let slack = slack as f64 / 1e6;
                return Err(Fault::failed(format!(
                    "expected {} at {range} ({slack} ms of tolerance), and it was sent at {}",
                    show(packet),
                    seconds(at)
                )));
            }
        }
        self.world.now = self.world.now.max(at);
        Ok(())
    }

    /// The next packet that the stack sends until `latest`. The clock stops at that packet.
    fn next_packet(&mut self, latest: Time) -> Option<Sent> {
        while self.world.queue.is_empty() && self.world.exhausted().is_none() {
            let next = self.world.next().filter(|next| *next <= latest)?;
            self.world.step(next);
        }
        self.world.queue.pop_front()
    }

    /// Checks that a sent packet is the expected one.
    fn compare(&mut self, packet: &Packet, sent: Sent) -> Result<(), Fault> {
        let world = &mut self.world;
        let setting_up = world.sockets.setting_up(&world.endpoint);
        world.live.learn(&sent.bytes, numbers_written(packet), setting_up);
        if let Some(chunks) = wire::chunks(&sent.bytes) {
            world.seen.keep(&chunks, sent.to);
        }
        let several = world.local.len() + world.peer.len() > 2;
        world.note_sent(sent.at, several.then_some((sent.from, sent.to)), &sent.bytes, "");
        let mut bytes = sent.bytes.clone();
        world.live.to_script(&mut bytes);
        let (same, fields) = compare(packet, &bytes);
        let header = self.header_fault(packet, &sent);
        if same && header.is_none() {
            return Ok(());
        }
        let why = header.map(|why| format!(": {why}")).unwrap_or_default();
        Err(Fault::Failed(
            format!("expected {}, got sctp: {}{why}", show(packet), wire::show(&bytes)),
            fields,
        ))
    }

    /// The error in addresses, ports, ECN, tag, checksum, padding or size, if there is one.
    fn header_fault(&self, packet: &Packet, sent: &Sent) -> Option<String> {
        let (from, to) = packet.addresses.unwrap_or((sent.from, sent.to));
        if (from, to) != (sent.from, sent.to) {
            return Some(format!("expected from {from} to {to}, it went from {} to {}", sent.from, sent.to));
        }
        let ports = wire::ports(&sent.bytes);
        if let Some(expected) = packet.ports.filter(|expected| *expected != ports) {
            return Some(format!("expected ports {expected:?}, got {ports:?}"));
        }
        if packet.udp.is_some() && packet.udp != sent.udp {
            let shown =
                |udp: Option<(u16, u16)>| udp.map_or("none".to_owned(), |(a, b)| format!("{a} > {b}"));
            return Some(format!("expected UDP ports {}, got {}", shown(packet.udp), shown(sent.udp)));
        }
        if packet.ecn.is_some_and(|ecn: Ecn| ecn != sent.ecn) {
            return Some(format!("the ECN bits are {:?}", sent.ecn));
        }
        let tag = wire::tag(&sent.bytes);
        if let Some(expected) = packet.tag.filter(|expected| *expected != tag) {
            return Some(format!("the verification tag is {tag}, expected {expected}"));
        }
        let zero = wire::number(&sent.bytes, 8) == Some(0);
        if packet.checksum == Checksum::Zero && !zero {
            return Some("the checksum is not zero".to_owned());
        }
        if self.lax {
            return None;
        }
        let tag = if packet.tag.is_some() { None } else { self.world.live.fault(&sent.bytes) };
        let checksum = if sent.omits { Checksum::Zero } else { Checksum::Right };
        wire::fault(&sent.bytes, checksum, self.world.room).or(tag)
    }
}

/// The tag and the TSN of an expected INIT or INIT ACK.
fn numbers_written(packet: &Packet) -> Written {
    let Body::Chunks(chunks) = &packet.body else { return (None, None) };
    let first = chunks.first().filter(|chunk| matches!(chunk.form.name, "INIT" | "INIT_ACK"));
    let field = |at: usize| match first.and_then(|chunk| chunk.fields.get(at)) {
        Some(Some(Value::Integer(number))) => Some(*number),
        _ => None,
    };
    (field(0), field(4))
}

/// Compares chunk by chunk. Returns whether all chunks are equal, and the fields side by side.
fn compare(packet: &Packet, bytes: &[u8]) -> (bool, Vec<String>) {
    let Body::Chunks(expected) = &packet.body else { return (false, Vec::new()) };
    let Some(got) = wire::chunks(bytes) else { return (false, vec!["a chunk's length is wrong".to_owned()]) };
    let (mut same, mut lines) = (expected.len() == got.len(), Vec::new());
    for i in 0..expected.len().max(got.len()) {
        let rows = match (expected.get(i), got.get(i)) {
            (Some(expected), Some(got)) => expected.compare(got).unwrap_or_else(|| {
                let got = Element::of(super::form::Family::Chunk, got);
                vec![whole(Some(expected), got.as_ref())]
            }),
            (expected, got) => {
                let got = got.and_then(|got| Element::of(super::form::Family::Chunk, got));
                vec![whole(expected, got.as_ref())]
            }
        };
        same &= rows.iter().all(|row| row.same);
        let name = expected.get(i).map_or("none", |chunk| chunk.form.name);
        lines.push(format!("chunk {}: {name}", i + 1));
        lines.extend(rows.iter().map(side_by_side));
    }
    (same, lines)
}

/// Compares chunks of different types, or a chunk without counterpart.
fn whole(expected: Option<&Element>, got: Option<&Element>) -> Row {
    let show = |element: Option<&Element>| element.map_or("nothing".to_owned(), Element::to_string);
    Row { key: "chunk", expected: show(expected), got: show(got), same: false }
}

fn side_by_side(row: &Row) -> String {
    let mark = if row.same { ' ' } else { '!' };
    format!("{mark} {:10} expected {:24} got {}", row.key, row.expected, row.got)
}

/// Prints the packet in script notation.
fn show(packet: &Packet) -> String {
    let body = match &packet.body {
        Body::Chunks(chunks) => chunks.iter().map(Element::to_string).collect::<Vec<_>>().join("; "),
        Body::Raw(bytes) => format!("{bytes:?}"),
    };
    format!("{}: {body}", packet.head())
}
