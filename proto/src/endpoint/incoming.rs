//! Finds the association of a packet, and handles packets that belong to none (RFC 9260 §8.4, §8.5).

use std::hint::cold_path;

use smallvec::smallvec;

use super::Endpoint;
use crate::Time;
use crate::association::{Association, Part};
use crate::extension::Authentication;
use crate::mechanisms::OutOfTheBlue;
use crate::output::Purpose;
use crate::path::PathId;
use crate::wire::chunk::{Abort, ShutdownComplete};
use crate::wire::{Address, Cause, Chunk, Ecn, Packet, Ports, Quoted};

/// The largest number of stateless replies waiting to be sent. Further packets get no reply.
const MAX_ANSWERS: usize = 256;

/// The owner of a packet.
enum Owner {
    /// This association.
    Association(usize),
    /// The packet comes from the peer of an association, but with a wrong tag: it is dropped.
    WrongTag,
    /// Nobody: it is out of the blue.
    Nobody,
}

impl Endpoint {
    pub(super) fn packet(&mut self, packet: Box<Packet>, now: Time) {
        if let Some((index, path)) = self.expected(&packet) {
            return self.deliver(index, packet, path, Part::Whole, now);
        }
        let ours = self.config.addresses.iter().any(|local| local.address.ip == packet.to.ip);
        //= rfc9260#section-3.1
        // No port is 0, and there would be nowhere to send a reply.
        if !ours || !packet.from.is_unicast() || packet.ports.source == 0 {
            return;
        }
        if packet.ports.destination != self.config.port {
            return self.wrong_port(&packet);
        }
        match packet.chunks.first() {
            None => {}
            Some(Chunk::Init(_)) => self.init(&packet, now),
            Some(Chunk::CookieEcho(echo)) if !aborts(&packet) => {
                let echo = echo.clone();
                self.cookie_echo(packet, &echo, now);
            }
            //= rfc4895#section-6.3
            Some(Chunk::Auth(_))
                if let Some(Chunk::CookieEcho(echo)) = packet.chunks.get(1)
                    && !aborts(&packet) =>
            {
                let echo = echo.clone();
                self.cookie_echo(packet, &echo, now);
            }
            // Only an INIT has no tag.
            Some(_) if packet.tag == 0 => {}
            Some(_) => match self.owner(&packet) {
                Owner::Association(index) if self.aborts_deleted(index, &packet) => {}
                Owner::Association(index) => {
                    match self.too_small(index, &packet).filter(|_| !aborts(&packet)) {
                        Some(tag) => self.refuse(&packet, tag, vec![Cause::InvalidMandatoryParameter]),
                        None => self.deliver_first(index, packet, Part::Whole, now),
                    }
                }
                Owner::WrongTag => {}
                Owner::Nobody => self.out_of_the_blue(&packet),
            },
        }
    }

    /// Whether this is an ABORT to an address that the association has deleted, or is deleting: a packet from there
    /// reached the peer after it had forgotten the address. Such an ABORT is ignored.
    //= rfc5061#section-5.3
    //= rfc5061#section-5.3.1
    fn aborts_deleted(&self, index: usize, packet: &Packet) -> bool {
        let own = |a: &Association| a.config.addresses.iter().any(|local| local.address.ip == packet.to.ip);
        aborts(packet) && !self.associations.in_place(index).is_some_and(own)
    }

    /// A packet to decode into: one that was processed, if there is one, so that no new memory is needed.
    #[inline]
    pub fn spare(&mut self) -> Box<Packet> {
        let last = self.last.and_then(|index| self.associations.in_place_mut(index));
        last.and_then(|association| association.take_spare()).unwrap_or_default()
    }

    /// A packet that has left is needed no longer: the next one uses its memory.
    #[inline]
    pub fn reuse(&mut self, mut packet: Box<Packet>) {
        packet.recycle();
        if let Some(association) = self.last.and_then(|index| self.associations.in_place_mut(index)) {
            association.keep(packet);
        }
    }

    /// Most packets hold data or acknowledgements for the association of the previous packet, on one of its paths.
    /// These need no further checks.
    fn expected(&self, packet: &Packet) -> Option<(usize, PathId)> {
        let index = self.last?;
        let association = self.associations.in_place(index)?;
        let ports = Ports { source: association.peer_port, destination: self.config.port };
        let its_own = packet.tag == association.local_tag && packet.ports == ports;
        let path = association.paths.of_pair(packet.to, packet.from)?;
        (its_own && is_usual(&packet.chunks)).then_some((index, path))
    }

    /// Finds the owner of a packet: by our tag, or by the peer's tag where the T bit says so.
    //= rfc9260#section-8.5
    //= rfc9260#section-8.5.1
    fn owner(&self, packet: &Packet) -> Owner {
        let reflected = packet.chunks.iter().any(|chunk| match chunk {
            Chunk::Abort(abort) => abort.reflected,
            Chunk::ShutdownComplete(complete) => complete.reflected,
            _ => false,
        });
        // A host without an association sends nothing else: the peer's tag authenticates no other chunk.
        if reflected && packet.chunks.len() > 1 {
            return Owner::WrongTag;
        }
        // The peer ends an old association that it remembers, while we are setting up a new one. AUTH is by keys of the
        // old one.
        let first = packet.chunks.iter().find(|chunk| !matches!(chunk, Chunk::Auth(_)));
        let ends = matches!(first, Some(Chunk::ShutdownAck(_)));
        // An address that the peer has deleted is no longer of the association, unless an ASCONF adds it again.
        //= rfc5061#section-5.3
        let asks = || packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Asconf(_)));
        let unknown =
            |a: &Association| ends && a.state().setting_up() || a.has_deleted(packet.from) && !asks();
        if !reflected && let Some(index) = self.with_tag(packet) {
            let out_of_the_blue = self.associations.in_place(index).is_some_and(unknown);
            return if out_of_the_blue { Owner::Nobody } else { Owner::Association(index) };
        }
        let by_peer = self.by_peer.get(&(packet.from, packet.ports.source)).copied();
        let known = by_peer.and_then(|index| Some((index, self.associations.in_place(index)?)));
        if reflected {
            let right = known.filter(|(_, association)| association.peer_tag == packet.tag);
            return right.map_or(Owner::WrongTag, |(index, _)| Owner::Association(index));
        }
        match known {
            Some((_, association)) if unknown(association) => Owner::Nobody,
            Some(_) => Owner::WrongTag,
            None => Owner::Nobody,
        }
    }

    /// An ICMP error that quotes a packet of ours reports that a peer's address does not accept SCTP.
    //= rfc9260#section-10
    //= rfc6951#section-5.5
    pub(super) fn unreachable(&mut self, remote: Address, quoted: Quoted, now: Time) {
        let to = (remote, quoted.ports.destination);
        let owner = self.by_peer.get(&to).copied().filter(|_| quoted.ports.source == self.config.port);
        let Some(index) = owner else { return };
        if let Some(association) = self.associations.in_place_mut(index) {
            association.unreachable(remote, quoted, now);
            self.wake(index);
        }
    }

    /// The association with this tag and this port of the peer.
    fn with_tag(&self, packet: &Packet) -> Option<usize> {
        let index = *self.by_tag.get(&packet.tag)?;
        let association = self.associations.in_place(index)?;
        (association.peer_port == packet.ports.source).then_some(index)
    }

    /// Handles a packet, or this part of it, for an association. First finds the path on which it arrived. A packet with
    /// a chunk that cannot be read, of an extension that was agreed on, is dropped.
    pub(super) fn deliver_first(&mut self, index: usize, packet: Box<Packet>, part: Part, now: Time) {
        let Some(association) = self.associations.in_place_mut(index) else { return };
        let agreed = association.agreed();
        let faulty =
            |chunk: &Chunk| matches!(chunk, Chunk::Unknown(unknown) if agreed.have_chunk(unknown.number));
        if packet.chunks.iter().any(faulty) {
            return;
        }
        let judged = part == Part::BehindCookie { authentic: true };
        let may_move = |keys: &Authentication| judged || keys.may_move_peer(&packet);
        let moved =
            association.paths.to(packet.from).is_none() && association.authentication().is_none_or(may_move);
        if moved && let Some(before) = association.follow_port(packet.from) {
            self.moved(index, before);
        }
        let Some(association) = self.associations.in_place_mut(index) else { return };
        let path = association.follow(packet.to, packet.from);
        self.deliver_slowly(index, packet, path, part, now);
    }

    /// The same as [`deliver`](Self::deliver), for packets that are not the usual ones.
    #[inline(never)]
    fn deliver_slowly(&mut self, index: usize, packet: Box<Packet>, path: PathId, part: Part, now: Time) {
        self.deliver(index, packet, path, part, now);
    }

    #[inline(always)]
    fn deliver(&mut self, index: usize, mut packet: Box<Packet>, path: PathId, part: Part, now: Time) {
        let Some(association) = self.associations.in_place_mut(index) else { return };
        let setting_up = association.state().setting_up();
        association.incoming(&mut packet, path, part, now);
        association.keep(packet);
        self.last = Some(index);
        let moved = association.extended.is_some() && association.moved();
        if moved {
            cold_path();
            self.unlink(index);
        }
        if setting_up || moved {
            cold_path();
            // INIT ACK may name further addresses, and ASCONF may change them.
            self.link(index);
        }
        self.may_speak(index);
    }

    /// Sends one chunk back to the source of a packet, without an association.
    pub(super) fn answer(&mut self, packet: &Packet, tag: u32, chunk: Chunk, purpose: Purpose) {
        self.answer_between((packet.to, packet.from), packet, tag, chunk, purpose);
    }

    /// As `answer`, between this local address and this address of the peer.
    pub(super) fn answer_between(
        &mut self,
        (from, to): (Address, Address),
        packet: &Packet,
        tag: u32,
        chunk: Chunk,
        purpose: Purpose,
    ) {
        if self.answers.len() >= MAX_ANSWERS {
            return;
        }
        let answer = Packet {
            from,
            to,
            ports: packet.ports.reversed(),
            tag,
            ecn: Ecn::NotEct,
            chunks: smallvec![chunk],
        };
        self.answers.push_back((Box::new(answer), purpose));
    }

    /// Handles a packet without an association.
    //= rfc9260#section-8.4
    fn out_of_the_blue(&mut self, packet: &Packet) {
        let ends = |chunk: &Chunk| matches!(chunk, Chunk::ShutdownAck(_));
        let silent = |chunk: &Chunk| match chunk {
            Chunk::ShutdownComplete(_) | Chunk::CookieAck(_) => true,
            Chunk::Error(error) => error.causes.iter().any(|c| matches!(c, Cause::StaleCookie(_))),
            _ => false,
        };
        // In this order, whatever else the packet holds.
        let ends = packet.chunks.iter().any(ends);
        if aborts(packet) || !ends && packet.chunks.iter().any(silent) {
            return;
        }
        let chunk = match ends {
            true => Chunk::ShutdownComplete(ShutdownComplete { reflected: true }),
            false => Chunk::Abort(Abort { reflected: true, causes: vec![] }),
        };
        self.rebuff(packet, packet.tag, chunk);
    }

    /// A packet to another SCTP port. In UDP, all SCTP ports behind our UDP port are ours, so nobody else answers.
    /// Directly on IP another stack of this host may have the port.
    //= rfc9260#section-8.4
    fn wrong_port(&mut self, packet: &Packet) {
        match packet.chunks.first() {
            _ if packet.to.udp == 0 => {}
            Some(Chunk::Init(init)) if packet.tag == 0 && init.tag != 0 && packet.chunks.len() == 1 => {
                self.rebuff(packet, init.tag, Chunk::Abort(Abort { reflected: false, causes: vec![] }));
            }
            Some(_) if packet.tag != 0 => self.out_of_the_blue(packet),
            _ => {}
        }
    }

    /// Replies to an unexpected packet if `out_of_the_blue` says so.
    pub(super) fn rebuff(&mut self, packet: &Packet, tag: u32, chunk: Chunk) {
        if self.config.mechanisms.out_of_the_blue == OutOfTheBlue::Abort {
            self.answer(packet, tag, chunk, Purpose::Abort);
        }
    }
}

/// Whether a packet contains an ABORT. Nothing in it is answered.
//= rfc9260#section-9.1
fn aborts(packet: &Packet) -> bool {
    packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Abort(_)))
}

/// Whether these are DATA and SACK chunks only, at least one.
#[inline(always)]
fn is_usual(chunks: &[Chunk]) -> bool {
    let usual = |chunk: &Chunk| matches!(chunk, Chunk::Data(_) | Chunk::Sack(_));
    match chunks {
        [alone] => usual(alone),
        all => !all.is_empty() && all.iter().all(usual),
    }
}
