//! Our endpoint in the place of one end of a captured association, in virtual time.

use std::collections::{BTreeMap, VecDeque};

use anabranch_proto::wire::{Address, Chunk, Packet};
use anabranch_proto::{
    AssociationId, Config, Duration, Endpoint, Event, Incoming, Message, NewError, Output, PathState,
    Policies, Reason, Time,
};
use bytes::Bytes;

use super::conversation::{Act, Conversation, cookie};
use super::entry::{Entry, Seen, entries};

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
        mtu_discovery: false,
        ..settings.clone()
    };
    config.mtu = mtu.unwrap_or(conversation.mtu);
    config.send_buffer = Some(SEND_BUFFER);
    // The user of the capture asks for each HEARTBEAT.
    config.heartbeat_interval = None;
    config
}

/// Replays the conversation until `end` and returns what our endpoint sent. `bulk`: the user gives all messages at once.
pub(super) fn replay(
    conversation: &Conversation,
    settings: &Config,
    mtu: Option<u32>,
    bulk: bool,
    end: Time,
) -> Result<Vec<Entry>, NewError> {
    let config = config(conversation, settings, mtu);
    let mut endpoint = Endpoint::new(config, Policies::default(), [0; 32])?;
    endpoint.set_listening(!conversation.initiates);
    let mut replay = Replay {
        conversation,
        endpoint,
        association: None,
        waiting: VecDeque::new(),
        now: Time::ZERO,
        deadline: None,
        tag: None,
        cookie: None,
        heartbeats: BTreeMap::new(),
        seen: Seen::default(),
        sent: Vec::new(),
    };
    let is_message = |act: &Act| matches!(act, Act::Send(_));
    if bulk {
        let messages = conversation.acts.iter().filter(|(_, act)| is_message(act));
        replay.waiting.extend(messages.filter_map(|(_, act)| match act {
            Act::Send(message) => Some(message.clone()),
            _ => None,
        }));
    }
    for (at, act) in conversation.acts.iter().filter(|(_, act)| !bulk || !is_message(act)) {
        if *at > end {
            break;
        }
        replay.until(*at);
        replay.act(act);
    }
    replay.until(end);
    Ok(replay.sent)
}

struct Replay<'a> {
    conversation: &'a Conversation,
    endpoint: Endpoint,
    association: Option<AssociationId>,
    /// Messages that the user could not yet give.
    waiting: VecDeque<Message>,
    now: Time,
    deadline: Option<Time>,
    /// Our own tag, which differs from that in the capture.
    tag: Option<u32>,
    /// The cookie of our INIT ACK.
    cookie: Option<Bytes>,
    /// By address: the content of the last HEARTBEAT there.
    heartbeats: BTreeMap<Address, Bytes>,
    seen: Seen,
    sent: Vec<Entry>,
}

impl Replay<'_> {
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
                    self.drain();
                }
            }
            Act::Connect => {
                let to = [self.conversation.peer];
                let port = self.conversation.ports.destination;
                self.association = self.endpoint.connect(self.now, port, &to).ok();
                self.give();
                self.drain();
            }
            Act::Send(message) => {
                self.waiting.push_back(message.clone());
                self.give();
                self.deadline = Some(self.now);
            }
            Act::Heartbeat(to) => self.heartbeat(*to),
            Act::Shutdown => self.with_association(|endpoint, now, id| endpoint.shutdown(now, id)),
            Act::Abort => self.with_association(|endpoint, now, id| endpoint.abort(now, id, Bytes::new())),
        }
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

    /// The peer's packet with our tag, our cookie and the content of our HEARTBEAT in the place of those in the capture. `None` if
    /// it answers only a HEARTBEAT that we have not sent.
    fn translated(&self, packet: &Packet) -> Option<Box<Packet>> {
        let mut packet = Box::new(packet.clone());
        if packet.tag == self.conversation.tag {
            packet.tag = self.tag.unwrap_or(packet.tag);
        }
        let (from, before) = (packet.from, packet.chunks.len());
        packet.chunks.retain(|chunk| match chunk {
            Chunk::HeartbeatAck(answer) => {
                let own = self.heartbeats.get(&from);
                own.inspect(|info| answer.info = Bytes::clone(info)).is_some()
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
            let mut readable = None;
            self.deadline = loop {
                match self.endpoint.poll(self.now) {
                    Output::Transmit(packet, reason) => self.transmit(&packet, reason),
                    Output::Event(id, Event::Up) => self.association = Some(id),
                    Output::Event(id, Event::Readable) => readable = Some(id),
                    Output::Event(..) | Output::Note(_) => {}
                    Output::Wait(until) => {
                        break until.map(|until| until.max(self.now + Duration::from_nanos(1)));
                    }
                }
            };
            let gives = self.association.is_some() && !self.waiting.is_empty();
            self.give();
            if let Some(id) = readable {
                while self.endpoint.read(self.now, id).is_some() {}
            } else if !gives {
                break;
            }
        }
    }

    fn transmit(&mut self, packet: &Packet, reason: Reason) {
        for chunk in &packet.chunks {
            match chunk {
                Chunk::Init(init) => self.tag = Some(init.tag),
                Chunk::InitAck(init) => {
                    self.tag = Some(init.tag);
                    self.cookie = cookie(init).cloned();
                }
                Chunk::Heartbeat(heartbeat) => {
                    drop(self.heartbeats.insert(packet.to, heartbeat.info.clone()))
                }
                _ => {}
            }
        }
        entries(self.now, None, packet, Some(reason), &mut self.seen, &mut self.sent);
    }
}
