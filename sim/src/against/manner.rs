//! What a capture does not tell about the end that is played, and what the replay takes it to be.

use std::fmt;

use serde::Serialize;

/// When the user gave its messages.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum User {
    /// Each when its first chunk left.
    AsSeen,
    /// As seen; those that waited for the interface when the first packet left that the interface sent without a pause.
    BeforeWaiting,
    /// With the one before it, unless a packet had room for it.
    Ahead,
    /// All at the beginning.
    AtOnce,
}

/// When our endpoint gives up the messages that a FORWARD TSN of the captured end skips.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum GivingUp {
    /// After as many transmissions.
    Transmissions,
    /// At that time.
    Time,
}

/// All that the replay assumes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Manner {
    pub(super) user: User,
    /// Whether packets wait for the interface that the capture shows.
    pub(super) queues: bool,
    /// Whether the user has named all addresses of the peer.
    pub(super) named: bool,
    pub(super) giving_up: GivingUp,
    /// How random choices between paths fall.
    pub(super) seed: u8,
}

/// Something that a capture does not tell and that was assumed, because the answers are then as in the capture.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assumption {
    /// Packets waited for the interface, and their data was there before.
    Queue,
    /// Data was there before it was sent, unless a packet had room for it.
    Ahead,
    /// All data was there from the beginning.
    Bulk,
    /// The user had named all addresses of the peer.
    PeerAddresses,
    /// The messages that were given up had a limit of time.
    Lifetime,
    /// Random choices between equal paths fell in a certain way.
    Chance,
}

/// Why a difference may be none of the two endpoints.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// Packets waited for the interface, and it is unknown when their data was given.
    Waiting,
    /// Messages were given up, and it is unknown why.
    GivenUp,
    /// Data that the capture shows is missing in a SACK: it was perhaps lost on the way from the place of the capture.
    Arrival,
    /// The receive buffer is fuller: it is unknown when the user read.
    Reading,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Doubt::Waiting => "when the user gave data that waited for the interface",
            Doubt::GivenUp => "why the messages were given up that a FORWARD TSN skips",
            Doubt::Arrival => {
                "whether what is missing has arrived at this end: the capture was perhaps not made there"
            }
            Doubt::Reading => "when the user read",
        })
    }
}

/// How many other ways are tried in which random choices fall.
const SEEDS: u8 = 3;

impl Manner {
    pub(super) fn new(bulk: bool) -> Manner {
        let user = if bulk { User::AtOnce } else { User::AsSeen };
        Manner { user, queues: false, named: false, giving_up: GivingUp::Transmissions, seed: 0 }
    }

    /// The other manners: those that assume least first. `queues`: whether the capture shows that an interface is slow;
    /// `addresses`: whether the peer has several; `gives_up`: whether the captured end gave up messages.
    pub(super) fn others(self, queues: bool, addresses: bool, gives_up: bool) -> Vec<Manner> {
        let users: &[User] = match self.user {
            User::AtOnce => &[User::AtOnce],
            _ => &[User::AsSeen, User::BeforeWaiting, User::Ahead, User::AtOnce],
        };
        let both = |may_be: bool, is: bool| if may_be && !is { vec![false, true] } else { vec![is] };
        let limits: &[GivingUp] =
            if gives_up { &[GivingUp::Transmissions, GivingUp::Time] } else { &[self.giving_up] };
        let mut all = Vec::new();
        for named in both(addresses && !self.named, self.named) {
            for giving_up in limits.iter().copied() {
                for queues in both(queues && !self.queues, self.queues) {
                    let fit = |user: &&User| queues || **user != User::BeforeWaiting;
                    let manner = |user: &User| Manner { user: *user, queues, named, giving_up, ..self };
                    all.extend(users.iter().filter(fit).map(manner));
                }
            }
        }
        all.retain(|manner| *manner != self);
        if addresses {
            let seeds = (0..=SEEDS).filter(|seed| *seed != self.seed);
            all.extend(seeds.map(|seed| Manner { seed, ..self }));
        }
        all
    }

    /// What is assumed beyond what the capture shows, and beyond what was `asked`.
    pub(super) fn assumes(self, asked: Manner) -> Vec<Assumption> {
        let all = [
            (Assumption::Queue, self.queues),
            (Assumption::Ahead, self.user == User::Ahead),
            (Assumption::Bulk, self.user == User::AtOnce && asked.user != User::AtOnce),
            (Assumption::PeerAddresses, self.named),
            (Assumption::Lifetime, self.giving_up == GivingUp::Time),
            (Assumption::Chance, self.seed != 0),
        ];
        all.into_iter().filter_map(|(assumption, is)| is.then_some(assumption)).collect()
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Assumption::Queue => "packets that left one after the other waited for the interface, and their data was there before",
            Assumption::Ahead => "data was there before it was sent, unless a packet had room for it",
            Assumption::Bulk => "all data was there from the beginning",
            Assumption::PeerAddresses => "the user named all addresses of the peer when it began the association",
            Assumption::Lifetime => "the messages that were given up had a limited time",
            Assumption::Chance => "random choices between equal paths fell in one of several ways",
        })
    }
}
