//! Stream reconfiguration (RFC 6525): what is reset goes on from zero, what is added can be used.

use anabranch_proto::{ChangeError, Direction, Duration, Event, LostReason, Outcome, Reliability};

use crate::bench::{Bench, Done, Stop, ensure};
use crate::letter::Letter;
use crate::peer::{Ask, PeerEvent, STREAMS};

/// Reset; the third is not.
const RESET: [u16; 2] = [3, 5];
const OTHER: u16 = 4;

/// Ordered messages, three on each of the streams; numbers from `first` on.
fn letters(first: u32, streams: &[u16]) -> Vec<Letter> {
    let on = |(n, stream): (u32, &u16)| Letter {
        number: first + n,
        stream: *stream,
        size: 2000,
        unordered: false,
    };
    (0..).zip(streams.iter().cycle().take(streams.len() * 3)).map(on).collect()
}

fn before() -> Vec<Letter> {
    letters(0, &[RESET[0], OTHER, RESET[1]])
}

fn after() -> Vec<Letter> {
    letters(100, &[RESET[0], OTHER, RESET[1]])
}

/// Both send these, after those before.
fn exchange(bench: &mut Bench, before: &[Letter], letters: &[Letter]) -> Done {
    for letter in letters {
        bench.send(letter, Reliability::Full)?;
        bench.peer_sends(letter, Reliability::Full)?;
    }
    let all = [before, letters].concat();
    let count = all.len();
    bench.until("all messages arrive there", |bench| bench.arrived_there().len() >= count)?;
    bench.until("all messages arrive here", |bench| bench.arrived.len() >= count)?;
    super::messages::sound(bench, &all)
}

fn up(bench: &mut Bench) -> Done {
    bench.up()?;
    ensure(bench.end.extensions(bench.id()).reconfiguration, || "not agreed".to_owned())?;
    exchange(bench, &[], &before())
}

fn asked(result: Result<(), ChangeError>) -> Done {
    result.map_err(|error| Stop::Failed(format!("our end refuses: {error}")))
}

/// What a request came to, if this says so.
type Answer<Of> = fn(&Of) -> Option<Outcome>;

/// Our user hears that our request was granted.
fn granted(bench: &mut Bench, answer: Answer<Event>) -> Done {
    let waited =
        bench.until("we are told the outcome", |bench| bench.events.iter().any(|e| answer(e).is_some()));
    if bench.events.contains(&Event::Lost(LostReason::TooManyErrors)) {
        let silent =
            "it never answers the request, and with that the association is lost (RFC 6525 section 5.1.1)";
        return Err(Stop::NotOffered(silent.to_owned()));
    }
    waited?;
    let heard = bench.events.iter().find_map(answer);
    ensure(heard == Some(Outcome::Done), || format!("our request came to {heard:?}"))
}

/// The peer's user hears that something was done.
fn told(bench: &mut Bench, answer: impl Fn(&PeerEvent) -> Option<Outcome>) -> Done {
    bench.until("the peer is told the outcome", |bench| {
        bench.told.iter().any(|told| answer(told).is_some())
    })?;
    let heard = bench.told.iter().find_map(answer);
    ensure(heard == Some(Outcome::Done), || format!("the peer is told {heard:?}"))
}

/// All streams of `RESET` are among these, each with success; perhaps one after the other.
fn all_reset<'a>(resets: impl Iterator<Item = (&'a Vec<u16>, Outcome)>) -> bool {
    let done: Vec<u16> =
        resets.filter(|(_, outcome)| *outcome == Outcome::Done).flat_map(|r| r.0.clone()).collect();
    RESET.iter().all(|id| done.contains(id))
}

/// They are reset, as our user hears it.
fn reset_here(bench: &mut Bench, wanted: Direction) -> Done {
    let of =
        |event: &'_ Event| matches!(event, Event::StreamsReset { direction, .. } if *direction == wanted);
    bench.until("we are told of the reset", |bench| {
        all_reset(bench.events.iter().filter(|event| of(event)).filter_map(|event| match event {
            Event::StreamsReset { streams, outcome, .. } => Some((streams, *outcome)),
            _ => None,
        }))
    })
}

/// They are reset, as the peer's user hears it.
fn reset_there(bench: &mut Bench, of_its_own: bool) -> Done {
    bench.until("the peer is told of the reset", |bench| {
        all_reset(bench.told.iter().filter_map(|told| match told {
            PeerEvent::StreamsReset { outgoing, outcome, streams } if *outgoing == of_its_own => {
                Some((streams, *outcome))
            }
            _ => None,
        }))
    })
}

pub fn we_reset_ours(bench: &mut Bench) -> Done {
    up(bench)?;
    asked(bench.call(|end, now, id| end.reset_streams(now, id, Direction::Outgoing, &RESET)))?;
    reset_here(bench, Direction::Outgoing)?;
    reset_there(bench, false)?;
    exchange(bench, &before(), &after())
}

pub fn peer_resets_its(bench: &mut Bench) -> Done {
    up(bench)?;
    bench.ask(Ask::ResetOutgoing(RESET.to_vec()))?;
    reset_there(bench, true)?;
    reset_here(bench, Direction::Incoming)?;
    exchange(bench, &before(), &after())
}

pub fn we_ask(bench: &mut Bench) -> Done {
    up(bench)?;
    asked(bench.call(|end, now, id| end.reset_streams(now, id, Direction::Incoming, &RESET)))?;
    reset_here(bench, Direction::Incoming)?;
    bench.pass(Duration::from_millis(500))?;
    if !bench.told.iter().any(|told| matches!(told, PeerEvent::StreamsReset { .. })) {
        let nothing = "it answers our request with \"Success - Nothing to do\", and resets nothing";
        return Err(Stop::NotOffered(nothing.to_owned()));
    }
    reset_there(bench, true)?;
    exchange(bench, &before(), &after())
}

pub fn peer_asks(bench: &mut Bench) -> Done {
    up(bench)?;
    bench.ask(Ask::ResetIncoming(RESET.to_vec()))?;
    reset_here(bench, Direction::Outgoing)?;
    reset_there(bench, false)?;
    exchange(bench, &before(), &after())
}

/// Messages go before and after, on streams that both have reset meanwhile.
pub fn both_reset(bench: &mut Bench) -> Done {
    up(bench)?;
    asked(bench.call(|end, now, id| end.reset_streams(now, id, Direction::Outgoing, &RESET)))?;
    bench.ask(Ask::ResetOutgoing(RESET.to_vec()))?;
    reset_here(bench, Direction::Outgoing)?;
    reset_here(bench, Direction::Incoming)?;
    reset_there(bench, true)?;
    exchange(bench, &before(), &after())
}

/// Streams there are after so many were added in each direction.
const MORE: u16 = 4;

/// On old and new streams.
fn on_new() -> Vec<Letter> {
    letters(100, &[OTHER, STREAMS, STREAMS + MORE - 1])
}

fn added(event: &Event) -> Option<Outcome> {
    match event {
        Event::StreamsAdded { outcome, .. } => Some(*outcome),
        _ => None,
    }
}

/// Both ends have so many streams: ours out and in.
fn have(bench: &mut Bench, wanted: [u16; 2]) -> Done {
    bench.until("there are as many streams as asked for", |bench| {
        let status = bench.end.status(bench.id());
        status.is_some_and(|status| [status.outbound_streams, status.inbound_streams] == wanted)
    })?;
    // The peer's user is told only of the direction that has changed.
    bench.until("the peer knows it", |bench| {
        let now = |out: usize| {
            let changed = |told: &PeerEvent| match told {
                PeerEvent::Up { streams, .. } | PeerEvent::StreamsAdded { streams, .. } => {
                    Some(streams[out]).filter(|n| *n > 0)
                }
                _ => None,
            };
            bench.told.iter().filter_map(changed).next_back()
        };
        [now(1), now(0)] == wanted.map(Some)
    })
}

pub fn we_add(bench: &mut Bench) -> Done {
    up(bench)?;
    asked(bench.call(|end, now, id| end.add_streams(now, id, Direction::Outgoing, MORE)))?;
    granted(bench, added)?;
    have(bench, [STREAMS + MORE, STREAMS])?;
    asked(bench.call(|end, now, id| end.add_streams(now, id, Direction::Incoming, MORE)))?;
    have(bench, [STREAMS + MORE; 2])?;
    exchange(bench, &before(), &on_new())
}

pub fn peer_adds(bench: &mut Bench) -> Done {
    up(bench)?;
    bench.ask(Ask::AddStreams { outgoing: MORE, incoming: 0 })?;
    have(bench, [STREAMS, STREAMS + MORE])?;
    bench.ask(Ask::AddStreams { outgoing: 0, incoming: MORE })?;
    have(bench, [STREAMS + MORE; 2])?;
    exchange(bench, &before(), &on_new())
}

fn tsns(event: &Event) -> Option<Outcome> {
    match event {
        Event::TsnsReset(outcome) => Some(*outcome),
        _ => None,
    }
}

pub fn we_reset_tsns(bench: &mut Bench) -> Done {
    up(bench)?;
    asked(bench.call(|end, now, id| end.reset_tsns(now, id)))?;
    granted(bench, tsns)?;
    exchange(bench, &before(), &after())
}

fn tsns_there(told: &PeerEvent) -> Option<Outcome> {
    match told {
        PeerEvent::TsnsReset(outcome) => Some(*outcome),
        _ => None,
    }
}

pub fn peer_resets_tsns(bench: &mut Bench) -> Done {
    up(bench)?;
    // What it has sent must be acknowledged before.
    bench.pass(Duration::from_millis(100))?;
    bench.ask(Ask::ResetTsns)?;
    granted(bench, tsns)?;
    told(bench, tsns_there)?;
    exchange(bench, &before(), &after()[..1])
}
