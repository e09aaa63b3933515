//! Our endpoint in the place of one end of a captured association, in virtual time.

use std::collections::{BTreeMap, VecDeque};

use anabranch_proto::mechanisms::FillPackets;
use anabranch_proto::wire::{Address, Chunk, Packet};
use anabranch_proto::{
    AssociationId, Config, Duration, Endpoint, Event, Incoming, Message, NewError, Output, PathState,
    Policies, Reason, Time,
};
use bytes::Bytes;

use super::conversation::{Act, Conversation, cookie};
use super::entry::{Entry, entries, mark_repeated};
use super::manner::{Manner, User};
use super::messages::given;
use super::met::Place;
use super::queue::Queues;

/// The largest receive buffer of a replay; a capture may announce any.
const MOST_BUFFER: u32 = 64 << 20;
/// A send buffer that holds whatever a capture has.
const SEND_BUFFER: u64 = 1 << 40;

/// The settings of our endpoint with the facts of the capture: addresses, TSN, streams, buffer, extensions.
fn config(conversation: &Conversation, settings: &Config, mtu: Option<u32>) -> Config {
    let (outbound, inbound) = conversation.streams;
    let ipv6 = conversation.local.iter().any(|local| local.address.ip.is_ipv6());
    let mut config = Config {
        addresses: conversation.local.clone(),
        port: conversation.ports.source,
        first_tsn: Some(conversation.first_tsn.0),
        outbound_streams: outbound.max(1),
        inbound_streams: inbound.max(1),
        receive_buffer: conversation.a_rwnd.clamp(1500, MOST_BUFFER),
        extensions: conversation.extensions,
        ip_header: if ipv6 { 40 } else { 20 },
        ..settings.clone()
    };
    config.mtu = mtu.unwrap_or(if config.mtu_discovery { conversation.largest } else { conversation.mtu });
    config.send_buffer = Some(SEND_BUFFER);
    // The user of the capture asks for each HEARTBEAT.
    config.heartbeat_interval = None;
    config
}

/// Replays the conversation until `end` and returns what our endpoint sent.
pub(super) fn replay(
    conversation: &Conversation,
    settings: &Config,
    mtu: Option<u32>,
    manner: Manner,
    end: Time,
) -> Result<Vec<Entry>, NewError> {
    let config = config(conversation, settings, mtu);
    let fills = config.mechanisms.fill_packets == FillPackets::On;
    let mut endpoint = Endpoint::new(config, Policies::default(), [manner.seed; 32])?;
    endpoint.set_listening(!conversation.initiates);
    let mut replay = Replay::new(conversation, endpoint, manner);
    let mut messages = given(&conversation.messages, manner, fills).into_iter().peekable();
    if manner.user == User::AtOnce {
        replay.waiting.extend(messages.by_ref().map(|(_, message)| message));
    }
    let mut index = 0;
    loop {
        let here = |(place, _): &(Place, Message)| place.index <= index;
        let is_given = messages.peek().is_some_and(here);
        let act = conversation.acts.get(index);
        let given_at = messages.peek().filter(|_| is_given || act.is_none()).map(|(place, _)| place.at);
        let Some(at) = given_at.or(act.map(|(at, _)| *at)).filter(|at| *at <= end) else { break };
        replay.until(at);
        if given_at.is_some() {
            replay.send(messages.next().map(|(_, message)| message));
        } else if let Some((_, act)) = act {
            replay.act(act);
            index += 1;
        }
    }
    replay.until(end);
    // Packets wait in the queues of their interfaces.
    replay.sent.sort_by_key(|entry| entry.at);
    mark_repeated(&mut replay.sent);
    Ok(replay.sent)
}

struct Replay<'a> {
    conversation: &'a Conversation,
    endpoint: Endpoint,
    manner: Manner,
    association: Option<AssociationId>,
    /// Messages that the user could not yet give.
    waiting: VecDeque<Message>,
    now: Time,
    deadline: Option<Time>,
    /// Our own tag, which differs from that in the capture.
    tag: Option<u32>,
    /// The cookie of our INIT ACK.
    cookie: Option<Bytes>,
    /// By address, and whether it probes for the path MTU: the content of the last HEARTBEAT there.
    heartbeats: BTreeMap<(Address, bool), Bytes>,
    /// Our first TIMESTAMP.
    stamp: Option<u32>,
    queues: Queues,
    /// By the distance of a TSN from the first: how often our endpoint has sent it.
    times: BTreeMap<u32, u32>,
    sent: Vec<Entry>,
}

impl<'a> Replay<'a> {
    fn new(conversation: &'a Conversation, endpoint: Endpoint, manner: Manner) -> Replay<'a> {
        Replay {
            conversation,
            endpoint,
            manner,
            association: None,
            waiting: VecDeque::new(),
            now: Time::ZERO,
            deadline: None,
            tag: None,
            cookie: None,
            heartbeats: BTreeMap::new(),
            stamp: None,
            queues: if manner.queues { Queues::of(&conversation.rates) } else { Queues::default() },
            times: BTreeMap::new(),
            sent: Vec::new(),
        }
    }

    /// Lets time pass; what is due before `until` happens.
    fn until(&mut self, until: Time) {
        // The user's messages of one packet are given before the endpoint is polled.
        if until > self.now {
            self.drain();
        }
        while let Some(next) = self.deadline.filter(|next| *next < until) {
            self.now = next;
            self.drain();
        }
        self.now = until;
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Arrives(packet) => {
                if let Some(packet) = self.translated(packet) {
                    self.endpoint.handle(self.now, Incoming::Packet(packet));
                    self.read();
                    self.drain();
                }
            }
            Act::Due => {
                while self.deadline.is_some_and(|next| next <= self.now) {
                    self.drain();
                }
            }
            Act::Connect => {
                let named = if self.manner.named { self.conversation.peer.len() } else { 1 };
                let to = &self.conversation.peer[..named];
                let port = self.conversation.ports.destination;
                self.association = self.endpoint.connect(self.now, port, to).ok();
                self.give();
                self.drain();
            }
            // Our endpoint sends its own probes.
            Act::Heartbeat { probes: true, .. } if self.endpoint.config().mtu_discovery => {}
            Act::Heartbeat { to, .. } => self.heartbeat(*to),
            Act::Shutdown => self.with_association(|endpoint, now, id| endpoint.shutdown(now, id)),
            Act::Abort => self.with_association(|endpoint, now, id| endpoint.abort(now, id, Bytes::new())),
        }
    }

    /// The user sends a message.
    fn send(&mut self, message: Option<Message>) {
        self.waiting.extend(message);
        self.give();
        self.deadline = Some(self.now);
    }

    /// The user reads what has arrived.
    fn read(&mut self) {
        let Some(id) = self.association else { return };
        while self.endpoint.read(self.now, id).is_some() {}
    }

    fn with_association(&mut self, call: impl FnOnce(&mut Endpoint, Time, AssociationId)) {
        if let Some(id) = self.association {
            call(&mut self.endpoint, self.now, id);
            self.deadline = Some(self.now);
        }
    }

    /// Asks for a HEARTBEAT. Those that verify a path leave without being asked for.
    fn heartbeat(&mut self, to: Address) {
        let Some(id) = self.association else { return };
        let views = self.endpoint.paths(id).iter();
        let mut asked = views.filter(|view| view.remote == to && view.state != PathState::Unconfirmed);
        if let Some(path) = asked.next().map(|view| view.id) {
            self.endpoint.heartbeat(self.now, id, path);
            self.drain();
        }
    }

    /// Gives the messages that wait for the association.
    fn give(&mut self) {
        let Some(id) = self.association else { return };
        while let Some(message) = self.waiting.pop_front() {
            if self.endpoint.send(self.now, id, message).is_err() {
                self.waiting.clear();
            }
        }
    }

    /// The peer's packet with our tag, our cookie, our timestamps and the content of our HEARTBEAT in the place of
    /// those in the capture. `None` if it answers only a HEARTBEAT that we have not sent.
    fn translated(&self, packet: &Packet) -> Option<Box<Packet>> {
        let mut packet = Box::new(packet.clone());
        if packet.tag == self.conversation.tag {
            packet.tag = self.tag.unwrap_or(packet.tag);
        }
        let (from, before) = (packet.from, packet.chunks.len());
        let discovers = self.endpoint.config().mtu_discovery;
        packet.chunks.retain(|chunk| match chunk {
            Chunk::HeartbeatAck(answer) => {
                let probed = discovers && self.conversation.probes.contains(&answer.info);
                let own = self.heartbeats.get(&(from, probed));
                own.inspect(|info| answer.info = Bytes::clone(info)).is_some()
            }
            Chunk::Timestamp(stamp) => {
                let apart =
                    self.stamp.zip(self.conversation.stamp).map(|(own, theirs)| own.wrapping_sub(theirs));
                stamp.echo = stamp.echo.map(|echo| echo.wrapping_add(apart.unwrap_or(0)));
                true
            }
            Chunk::CookieEcho(echo) => {
                echo.cookie = self.cookie.clone().unwrap_or_else(|| echo.cookie.clone());
                true
            }
            _ => true,
        });
        (before == 0 || !packet.chunks.is_empty()).then_some(packet)
    }

    /// Polls until there is nothing more to do now.
    fn drain(&mut self) {
        loop {
            let mut readable = false;
            self.deadline = loop {
                match self.endpoint.poll(self.now) {
                    Output::Transmit(packet, reason) => self.transmit(&packet, reason),
                    Output::Event(id, Event::Up) => self.association = Some(id),
                    Output::Event(_, Event::Readable) => readable = true,
                    Output::Event(..) | Output::Note(_) => {}
                    Output::Wait(until) => {
                        break until.map(|until| until.max(self.now + Duration::from_nanos(1)));
                    }
                }
            };
            let gives = self.association.is_some() && !self.waiting.is_empty();
            self.give();
            if readable {
                self.read();
            } else if !gives {
                break;
            }
        }
    }

    fn transmit(&mut self, packet: &Packet, reason: Reason) {
        let probes = packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Pad(_)));
        for chunk in &packet.chunks {
            match chunk {
                Chunk::Init(init) => self.tag = Some(init.tag),
                Chunk::InitAck(init) => {
                    self.tag = Some(init.tag);
                    self.cookie = cookie(init).cloned();
                }
                Chunk::Timestamp(stamp) => self.stamp = self.stamp.or(stamp.sent),
                Chunk::Heartbeat(heartbeat) => {
                    drop(self.heartbeats.insert((packet.to, probes), heartbeat.info.clone()))
                }
                _ => {}
            }
        }
        let at = match self.is_refused(packet) {
            true => self.now,
            false => self.queues.leaves(self.now, packet.from.ip, self.size(packet)),
        };
        entries(at, None, packet, Some(reason), &mut self.sent);
    }

    /// The size of a packet with its headers.
    fn size(&self, packet: &Packet) -> u32 {
        let headers = if packet.to.ip.is_ipv4() { 20 } else { 40 } + if packet.to.udp == 0 { 0 } else { 8 };
        packet.size() as u32 + headers
    }

    /// Whether the link of the captured end refused the same packet, so that it took no room in the queue.
    fn is_refused(&mut self, packet: &Packet) -> bool {
        let mut is_refused = false;
        for chunk in &packet.chunks {
            let tsn = match chunk {
                Chunk::Data(data) => data.tsn,
                Chunk::IData(data) => data.tsn,
                _ => continue,
            };
            let distance = tsn.distance_from(self.conversation.first_tsn);
            let times = self.times.entry(distance).or_default();
            is_refused |= self.conversation.refused.contains(&(distance, *times));
            *times += 1;
        }
        is_refused
    }
}
