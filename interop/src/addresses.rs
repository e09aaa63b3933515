//! Addresses that leave an association and come back (RFC 5061), for root: `anabranch-net` on one of two hosts with two
//! links, usrsctp or the Linux kernel on the other.

use std::net::IpAddr;

use anabranch_net::{AddressChange, Association, Endpoint, Event, Outcome, PathState};
use tokio::sync::broadcast::Receiver;

use crate::bench::{Done, Role, Stop, ensure};
use crate::letter::{Arrived, Letter, fnv};
use crate::network::address;
use crate::paths::{
    Far, From, Over, Site, Trial, both_paths, give, on_two_hosts, options, received_by_link, well_formed,
    whole,
};
use crate::peer::foreign::Program;
use crate::peer::{PORTS, PeerEvent, STREAMS};

/// Messages each way in each of three parts, and bytes of each.
const PART: u32 = 50;
const SIZE: usize = 2000;
/// Bytes that may still come by a link of which the peer knows that it is not ours: heartbeats to the address, ARP.
const STRAY: u64 = 10_000;

/// Whoever is asked deletes its address on the first link, and adds it again.
pub fn run(name: &str, program: &Program, role: Role, whose: From) -> Option<Done> {
    on_two_hosts(name, program, async |site| row(site, role, whose).await)
}

async fn row(site: &Site, role: Role, whose: From) -> Done {
    let trial = Trial { cut: false, ..Trial::new(whose, Over::Udp) };
    let mut options = options(role == Role::Client, 0, trial);
    options.config.extensions.authentication = true;
    options.config.extensions.addresses = true;
    let endpoint = Endpoint::bind(options).map_err(|error| Stop::Failed(error.to_string()))?;
    let mut peer = Far::start(site, trial).await?;
    for option in ["authentication", "addresses"] {
        peer.command(&format!("option {option} 1")).await?;
    }
    let association = peer.meet(&endpoint, role, trial).await?;
    both_paths(&association).await;
    let mut talk = Talk { association, peer, arrived: Vec::new(), parts: 0 };
    talk.part().await?;
    let changed = match whose {
        From::Us => talk.we_change().await,
        From::Peer => talk.peer_changes().await,
    };
    if let Err(Stop::Failed(why)) = changed {
        return Err(Stop::Failed(format!("{why}; the peer said last: {}", talk.peer.last_word())));
    }
    changed?;
    let sent: Vec<Letter> = (0..talk.parts).flat_map(letters).collect();
    whole(&sent, &talk.arrived)?;
    whole(&sent, &talk.peer.arrived())?;
    well_formed(&endpoint)
}

/// The messages of a part.
fn letters(part: u32) -> Vec<Letter> {
    let letter =
        |number: u32| Letter { number, stream: number as u16 % STREAMS, size: SIZE, unordered: false };
    (part * PART..(part + 1) * PART).map(letter).collect()
}

/// An association in which both ends send the same messages, part by part.
struct Talk {
    association: Association,
    peer: Far,
    /// What has arrived here.
    arrived: Vec<Arrived>,
    parts: u32,
}

impl Talk {
    /// Both ends send a part of the messages; it ends when all have arrived.
    async fn part(&mut self) -> Done {
        let letters = letters(self.parts);
        self.parts += 1;
        let there = self.peer.arrived().len() + letters.len();
        give(&self.association, &letters).await?;
        for Letter { number, stream, size, .. } in &letters {
            self.peer.command(&format!("send {stream} {number} {size} ordered full 0")).await?;
        }
        for _ in &letters {
            let delivery = self.association.recv().await.map_err(|error| Stop::Failed(error.to_string()))?;
            let delivery = delivery.ok_or_else(|| Stop::Failed("the peer has ended".to_owned()))?;
            let (number, stream, unordered) = (delivery.ppid, delivery.stream, Some(delivery.unordered));
            let bytes = delivery.into_bytes();
            self.arrived.push(Arrived { number, stream, size: bytes.len(), unordered, hash: fnv(&bytes) });
        }
        let arrived = |told: &PeerEvent| matches!(told, PeerEvent::Arrived(_));
        self.peer.until(|told| told.iter().filter(|told| arrived(told)).count() >= there).await
    }

    async fn we_change(&mut self) -> Done {
        let ours = address(0, 0);
        let mut events = self.association.events();
        self.association.remove_address(ours).map_err(|error| Stop::Failed(error.to_string()))?;
        answered(&mut events, ours, AddressChange::Removed).await?;
        self.peer_says(ours, "removed").await?;
        let before = received_by_link()[0];
        self.part().await?;
        let stray = received_by_link()[0] - before;
        ensure(stray < STRAY, || format!("{stray} bytes came by the link of the address that was deleted"))?;
        self.association.add_address(ours).map_err(|error| Stop::Failed(error.to_string()))?;
        answered(&mut events, ours, AddressChange::Added).await?;
        self.peer_says(ours, "added").await?;
        self.part().await
    }

    /// The peer's last word on one of our addresses.
    async fn peer_says(&mut self, ours: IpAddr, word: &str) -> Done {
        let says =
            |told: &PeerEvent| matches!(told, PeerEvent::Address(ip, state) if *ip == ours && state == word);
        self.peer.until(|told| told.iter().any(says)).await
    }

    async fn peer_changes(&mut self) -> Done {
        let theirs = address(1, 0);
        let mut events = self.association.events();
        self.peer.command(&format!("unbind {} {theirs}", PORTS[1])).await?;
        changed(&mut events, theirs, AddressChange::Removed).await?;
        let left = self
            .association
            .paths()
            .iter()
            .any(|path| path.remote.ip == theirs && path.state != PathState::Removed);
        ensure(!left, || "there is still a path to the address that was deleted".to_owned())?;
        self.part().await?;
        self.peer.command(&format!("bind {} {theirs}", PORTS[1])).await?;
        changed(&mut events, theirs, AddressChange::Added).await?;
        both_paths(&self.association).await;
        self.part().await
    }
}

/// The peer has agreed to this change of ours.
async fn answered(events: &mut Receiver<Event>, of: IpAddr, wanted: AddressChange) -> Done {
    loop {
        match next(events).await? {
            Event::LocalAddress { address, change, outcome } if (address.ip, change) == (of, wanted) => {
                return ensure(outcome == Outcome::Done, || format!("{wanted:?} {of}: {outcome:?}"));
            }
            _ => {}
        }
    }
}

/// The peer has made this change.
async fn changed(events: &mut Receiver<Event>, of: IpAddr, wanted: AddressChange) -> Done {
    let is = |event: &Event| matches!(event, Event::PeerAddress { address, change } if (address.ip, *change) == (of, wanted));
    while !is(&next(events).await?) {}
    Ok(())
}

/// The next event of an association that lives.
async fn next(events: &mut Receiver<Event>) -> Result<Event, Stop> {
    match events.recv().await.map_err(|error| Stop::Failed(error.to_string()))? {
        Event::Lost(why) => Err(Stop::Failed(format!("the association was lost: {why:?}"))),
        event => Ok(event),
    }
}
