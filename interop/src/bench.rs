//! Our endpoint, a foreign one, and the small network between them: a delay and seeded losses, both ways alike. With
//! a peer in virtual time a run repeats itself; with one in real time only the draws do.

use std::collections::{BTreeMap, VecDeque};

use anabranch_proto::wire::chunk::{Data, IData};
use anabranch_proto::wire::{Address, Chunk, Ecn, Packet};
use anabranch_proto::{
    AssociationId, Config, Duration, Endpoint, Event, Extensions, Incoming, LocalAddress, LostReason,
    Message, Output, Parameters, Policies, Reliability, SendError, SharedKey, Time,
};
use bytes::{Bytes, BytesMut};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::letter::{Arrived, Letter, fnv};
use crate::peer::{Ask, KEY, MTU, Make, PORTS, Peer, PeerEvent, PeerOutput, Refused, STREAMS};

/// Why a row does not pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The peer cannot do it, and says so in these words.
    NotOffered(String),
    Failed(String),
}

pub type Done = Result<(), Stop>;

/// A call that the peer did not take: it does not offer what the row is about.
impl From<Refused> for Stop {
    fn from(refused: Refused) -> Stop {
        match refused {
            Refused::NotOffered(why) => Stop::NotOffered(why),
            Refused::Gone(why) => Stop::Failed(why),
            Refused::Busy => Stop::Failed("the peer is busy, and stays so".to_owned()),
        }
    }
}

/// A row fails if this does not hold.
pub fn ensure(holds: bool, what: impl FnOnce() -> String) -> Done {
    if holds { Ok(()) } else { Err(Stop::Failed(what())) }
}

/// Which side the peer plays.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Role {
    Server,
    Client,
}

/// What the network does to packets, each direction alike.
#[derive(Clone, Debug, Default)]
pub struct Weather {
    /// Of a thousand packets so many are lost.
    pub loss: u64,
    /// Of each of these kinds, the first packet that begins with such a chunk is lost.
    pub lose_first: Vec<u8>,
}

/// One way through the network.
const DELAY: Duration = Duration::from_millis(2);
/// Of the losses.
const SEED: u64 = 1;

pub struct Bench {
    peer: Box<dyn Peer>,
    pub end: Endpoint,
    config: Config,
    role: Role,
    id: Option<AssociationId>,
    pub now: Time,
    pub weather: Weather,
    chance: ChaCha8Rng,
    /// The packets that were lost: of the peer's, and of ours.
    lost: [u64; 2],
    /// To us or not, by arrival.
    travelling: BTreeMap<(Time, u64), (bool, Bytes)>,
    carried: u64,
    wake: Option<Time>,
    pub events: Vec<Event>,
    pub told: Vec<PeerEvent>,
    /// What has arrived here.
    pub arrived: Vec<Arrived>,
    /// Messages of which only a part has arrived, by stream and order.
    parts: BTreeMap<(u16, bool), Vec<u8>>,
    /// Messages of ours that were given up.
    pub failed: Vec<u32>,
    /// Packets of the peer without a checksum, which were in order.
    pub without_checksum: u64,
    /// NR-SACKs of the peer.
    pub nr_sacks: u64,
    /// Whether packets and what the peer says are printed.
    trace: bool,
    /// How long is waited, if not as long as the peer needs.
    pub patience: Option<Duration>,
    /// Anything that must not happen.
    wrong: VecDeque<String>,
}

impl Bench {
    pub fn new(peer: Box<dyn Peer>, make: &Make, role: Role, weather: Weather, trace: bool) -> Bench {
        let config = config(&*peer, make);
        Bench {
            trace,
            patience: None,
            end: endpoint(&config, 0),
            peer,
            config,
            role,
            id: None,
            now: Time::ZERO,
            weather,
            chance: ChaCha8Rng::seed_from_u64(SEED),
            lost: [0; 2],
            travelling: BTreeMap::new(),
            carried: 0,
            wake: None,
            events: Vec::new(),
            told: Vec::new(),
            arrived: Vec::new(),
            parts: BTreeMap::new(),
            failed: Vec::new(),
            without_checksum: 0,
            nr_sacks: 0,
            wrong: VecDeque::new(),
        }
    }

    /// The association is set up by whoever is the client.
    pub fn up(&mut self) -> Done {
        match self.role {
            Role::Server => {
                self.ask(Ask::Listen)?;
                self.connect();
            }
            Role::Client => self.ask(Ask::Connect)?,
        }
        self.both_up()
    }

    /// Waits until both ends say that they are up.
    pub fn both_up(&mut self) -> Done {
        self.until("both ends are up", |bench| {
            bench.events.contains(&Event::Up)
                && bench.told.iter().any(|told| matches!(told, PeerEvent::Up { .. }))
        })
    }

    pub fn connect(&mut self) {
        let to = self.peer.addresses()[1];
        let connected = self.end.connect(self.now, PORTS[1], &[to]);
        self.id = Some(connected.expect("it is the only association, and there is a path"));
        self.drain();
    }

    /// Our end loses its memory, and begins again.
    pub fn restart(&mut self) {
        self.end = endpoint(&self.config, 1);
        self.events.clear();
        self.connect();
    }

    pub fn id(&self) -> AssociationId {
        self.id.expect("it was connected or is up")
    }

    /// Both ends use these; says what is missing.
    pub fn agreed(&self, wanted: Extensions) -> Done {
        let ours = self.end.extensions(self.id());
        ensure(ours == wanted, || format!("agreed here on {ours:?}"))
    }

    /// What the peer says of the extensions that it uses.
    pub fn uses(&self, name: &str) -> bool {
        let uses = |told: &PeerEvent| matches!(told, PeerEvent::Up { extensions, .. } if extensions.iter().any(|e| e == name));
        self.told.iter().any(uses)
    }

    /// Asks the peer for something; waits while it is busy.
    pub fn ask(&mut self, ask: Ask) -> Done {
        let limit = self.limit();
        loop {
            match self.peer.ask(self.now, &ask) {
                Err(Refused::Busy) if self.now < limit => {}
                asked => {
                    asked?;
                    self.listen();
                    return Ok(());
                }
            }
            self.step(self.now + DELAY);
            self.right()?;
        }
    }

    /// We send a message; waits for room.
    pub fn send(&mut self, letter: &Letter, reliability: Reliability) -> Done {
        let mut message = Message {
            stream: letter.stream,
            ppid: letter.number,
            unordered: letter.unordered,
            payload: letter.content(),
            reliability,
            ..Message::default()
        };
        let limit = self.limit();
        loop {
            match self.end.send(self.now, self.id(), message) {
                Ok(()) => break,
                Err(SendError::Full(back)) => message = back,
                Err(error) => return Err(Stop::Failed(format!("send: {error}"))),
            }
            self.step(limit);
            self.alive("there is room to send", limit)?;
        }
        self.drain();
        Ok(())
    }

    /// The peer sends one.
    pub fn peer_sends(&mut self, letter: &Letter, reliability: Reliability) -> Done {
        self.ask(Ask::Send(*letter, reliability))
    }

    /// A call of the user at our end, and what it lets go.
    pub fn call<T>(&mut self, what: impl FnOnce(&mut Endpoint, Time, AssociationId) -> T) -> T {
        let (now, id) = (self.now, self.id());
        let result = what(&mut self.end, now, id);
        self.drain();
        result
    }

    /// What has arrived at the peer.
    pub fn arrived_there(&self) -> Vec<Arrived> {
        let arrived = |told: &PeerEvent| if let PeerEvent::Arrived(one) = told { Some(*one) } else { None };
        self.told.iter().filter_map(arrived).collect()
    }

    /// The ticks of the peer's clock.
    pub fn peer_tick(&self) -> Duration {
        self.peer.tick()
    }

    /// What the peer may have given up: what it says, or anything if it does not say.
    pub fn failed_there(&self) -> Vec<u32> {
        if !self.peer.tells_what_it_gave_up() {
            return (0..u32::MAX >> 16).collect();
        }
        let failed =
            |told: &PeerEvent| if let PeerEvent::Failed(number) = told { Some(*number) } else { None };
        self.told.iter().filter_map(failed).collect()
    }

    /// Goes on until this holds; it fails if that takes too long, or if something happens that must not.
    pub fn until(&mut self, what: &str, holds: impl Fn(&Bench) -> bool) -> Done {
        let limit = self.limit();
        while !holds(self) {
            self.step(limit);
            if !holds(self) {
                self.alive(what, limit)?;
            }
        }
        self.right()
    }

    /// The network has done to packets what the row is about.
    pub fn had_its_weather(&self) -> Done {
        let kept = &self.weather.lose_first;
        ensure(kept.is_empty(), || format!("no packet began with a chunk of type {kept:?}: none was lost"))?;
        let lossy = self.weather.loss > 0;
        ensure(!lossy || self.lost.iter().all(|lost| *lost > 0), || {
            format!("lost were {} packets of the peer and {} of ours", self.lost[0], self.lost[1])
        })
    }

    /// Goes on for so long.
    pub fn pass(&mut self, time: Duration) -> Done {
        let until = self.now + time;
        while self.now < until {
            self.step(until);
        }
        self.right()
    }

    fn limit(&self) -> Time {
        self.now + self.patience.unwrap_or_else(|| self.peer.patience())
    }

    fn alive(&mut self, what: &str, limit: Time) -> Done {
        self.right()?;
        ensure(self.now < limit, || {
            let last = |what: Option<String>| what.unwrap_or_else(|| "nothing".to_owned());
            let here = last(self.events.last().map(|event| format!("{event:?}")));
            let there = last(self.told.last().map(|told| format!("{told:?}")));
            let state = self.id.and_then(|id| self.end.status(id));
            format!("not in time: {what}; last said here {here}, there {there}; {state:?}")
        })
    }

    fn right(&mut self) -> Done {
        match self.wrong.pop_front() {
            Some(what) => Err(Stop::Failed(what)),
            None => Ok(()),
        }
    }

    /// The next thing that happens, if that is before `limit`.
    fn step(&mut self, limit: Time) {
        let arrival = self.travelling.keys().next().map(|key| key.0);
        let next = [arrival, self.wake].into_iter().flatten().min().unwrap_or(limit).min(limit);
        self.now = self.peer.wait(self.now, next);
        while let Some(entry) = self.travelling.first_entry().filter(|entry| entry.key().0 <= self.now) {
            match entry.remove() {
                (true, packet) => self.arrive(packet),
                (false, packet) => self.peer.take(self.now, packet),
            }
            self.listen();
        }
        self.drain();
        self.listen();
    }

    /// Takes what the peer has to say.
    fn listen(&mut self) {
        while let Some(said) = self.peer.said() {
            if let (true, PeerOutput::PeerEvent(told)) = (self.trace, &said) {
                eprintln!("{:>12.6} peer: {told:?}", self.now.as_secs_f64());
            }
            match said {
                PeerOutput::Packet(packet) => self.carry(true, packet),
                PeerOutput::PeerEvent(PeerEvent::Error(what)) => {
                    self.wrong.push_back(format!("the peer says: {what}"))
                }
                PeerOutput::PeerEvent(told) => self.told.push(told),
            }
        }
    }

    fn carry(&mut self, to_us: bool, packet: Bytes) {
        let unlucky = self.chance.next_u64() % 1000 < self.weather.loss;
        let kind = packet.get(12);
        let first = self.weather.lose_first.iter().position(|lost| Some(lost) == kind);
        if let Some(place) = first {
            self.weather.lose_first.swap_remove(place);
        }
        let lost = unlucky || first.is_some();
        if self.trace {
            self.show(to_us, &packet, lost);
        }
        if lost {
            self.lost[usize::from(!to_us)] += 1;
        } else {
            self.carried += 1;
            self.travelling.insert((self.now + DELAY, self.carried), (to_us, packet));
        }
    }

    fn show(&self, to_us: bool, packet: &Bytes, lost: bool) {
        let [ours, theirs] = self.peer.addresses();
        let from = if to_us { "peer" } else { "us" };
        let chunks = match Packet::decode_unchecked(theirs, ours, Ecn::NotEct, packet.clone()) {
            Ok(packet) => packet.chunks.iter().map(brief).collect::<Vec<_>>().join(", "),
            Err(error) => error.to_string(),
        };
        let lost = if lost { " (lost)" } else { "" };
        eprintln!("{:>12.6} {from}{lost}: {chunks}", self.now.as_secs_f64());
    }

    /// A packet of the peer arrives here. Its stack puts a right checksum on it, or zero where we allow that.
    fn arrive(&mut self, bytes: Bytes) {
        let [ours, theirs] = self.peer.addresses();
        let zero = bytes.len() >= 12 && bytes[8..12] == [0; 4];
        let decoded = match zero {
            true => Packet::decode_unchecked(theirs, ours, Ecn::NotEct, bytes),
            false => Packet::decode(theirs, ours, Ecn::NotEct, bytes),
        };
        match decoded {
            Ok(packet) if zero && !self.end.accepts_without_checksum(&packet) => {
                self.wrong.push_back(format!("without a checksum: {packet:?}"));
            }
            Ok(packet) => {
                self.without_checksum += u64::from(zero);
                let nr_sacks = packet.chunks.iter().filter(|chunk| matches!(chunk, Chunk::NrSack(_)));
                self.nr_sacks += nr_sacks.count() as u64;
                self.end.handle(self.now, Incoming::Packet(Box::new(packet)));
                self.drain();
            }
            Err(error) => self.wrong.push_back(format!("a packet of the peer: {error}")),
        }
    }

    /// Takes what our endpoint has to say.
    fn drain(&mut self) {
        loop {
            match self.end.poll(self.now) {
                Output::Transmit(packet, _) => self.transmit(&packet),
                Output::Event(id, event) => self.event(id, event),
                Output::Note(_) => {}
                Output::Wait(until) => return self.wake = until,
            }
        }
    }

    fn transmit(&mut self, packet: &Packet) {
        let mut bytes = BytesMut::with_capacity(packet.size());
        let encoded = match self.end.omits_checksum(packet) {
            true => packet.encode_without_checksum(&mut bytes),
            false => packet.encode(&mut bytes),
        };
        encoded.expect("what is sent can be encoded");
        self.carry(false, bytes.freeze());
    }

    fn event(&mut self, id: AssociationId, event: Event) {
        self.id.get_or_insert(id);
        match &event {
            Event::Readable => return self.read(id),
            Event::Writable => return,
            Event::SendFailed { message, .. } => self.failed.push(message.ppid),
            Event::PeerError(causes) => self.wrong.push_back(format!("the peer reports {causes:?}")),
            Event::Lost(LostReason::PeerAborted(_) | LostReason::UserAborted) => {}
            Event::Lost(reason) => self.wrong.push_back(format!("lost: {reason:?}")),
            _ => {}
        }
        self.events.push(event);
    }

    fn read(&mut self, id: AssociationId) {
        while let Some(delivery) = self.end.read(self.now, id) {
            let key = (delivery.stream, delivery.unordered);
            let part = self.parts.entry(key).or_default();
            delivery.pieces.iter().for_each(|piece| part.extend_from_slice(piece));
            if delivery.abandoned {
                self.parts.remove(&key);
            } else if delivery.complete {
                let (size, hash) = (part.len(), fnv(part));
                self.parts.remove(&key);
                let (stream, unordered) = (delivery.stream, Some(delivery.unordered));
                self.arrived.push(Arrived { number: delivery.ppid, stream, size, unordered, hash });
            }
        }
    }
}

/// A chunk in a line: user data without its content.
fn brief(chunk: &Chunk) -> String {
    match chunk {
        Chunk::Data(data) => {
            let data = Data { payload: Bytes::new(), ..data.clone() };
            format!("{data:?}")
        }
        Chunk::IData(data) => {
            let data = IData { payload: Bytes::new(), ..data.clone() };
            format!("{data:?}")
        }
        other => format!("{other:?}"),
    }
}

fn endpoint(config: &Config, life: u8) -> Endpoint {
    Endpoint::new(config.clone(), Policies::default(), [life; 32]).expect("a usable configuration")
}

/// Ours; with timeouts for a network of milliseconds.
fn config(peer: &dyn Peer, make: &Make) -> Config {
    let local: Address = peer.addresses()[0];
    Config {
        addresses: vec![LocalAddress { address: local, prefix: 24 }],
        port: PORTS[0],
        outbound_streams: STREAMS,
        inbound_streams: 100,
        extensions: make.extensions,
        authenticated_chunks: if make.authenticated { vec![0] } else { vec![] },
        shared_key: make
            .authenticated
            .then(|| SharedKey { id: KEY.0, secret: Bytes::from_static(KEY.1.as_bytes()) }),
        parameters: Parameters {
            mtu: MTU,
            rto_initial: Duration::from_millis(200),
            rto_min: Duration::from_millis(50),
            rto_max: Duration::from_secs(1),
            sack_delay: Duration::from_millis(20),
            ..Parameters::default()
        },
        ..Config::default()
    }
}
