//! Extensions: what each end offers in INIT or INIT ACK, what both use, and one file for each.
//!
//! All are off by default. Until both ends have agreed on an extension, an association stores nothing for them and
//! makes one check for each poll.

mod actions;
pub(crate) mod addresses;
mod agreement;
mod auth;
mod ecn;
mod interleaving;
mod partial;
mod stream_list;
mod stream_request;
mod streams;
mod switches;
mod timestamps;

pub(crate) use actions::{Action, Actions};
use addresses::AddressChanges;
pub(crate) use agreement::{Agreement, Offer, offer};
pub(crate) use auth::Authentication;
pub(crate) use ecn::{Congestion, MarkedChunk};
pub(crate) use interleaving::Interleaving;
pub(crate) use partial::LimitedMessages;
pub(crate) use stream_list::covers;
pub(crate) use streams::{Reconfiguration, StreamParts};
pub use switches::Extensions;
pub(crate) use timestamps::{Timestamps, clock};

use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

use crate::wire::Packet;
use crate::{Config, Time, Tsn};

/// The state of the extensions: first of those that this end offers, later of those that both ends use.
#[derive(Clone, Debug)]
pub(crate) struct Extended {
    pub(crate) agreed: Extensions,
    /// Our random number for the keys. Drawn only if authentication is offered.
    pub(crate) random: [u8; 32],
    pub(crate) streams: Option<Reconfiguration>,
    pub(crate) authentication: Option<Authentication>,
    pub(crate) addresses: Option<AddressChanges>,
    pub(crate) congestion: Option<Congestion>,
    pub(crate) timestamps: Option<Timestamps>,
}

impl Extended {
    /// The state before the peer is known; `None` if nothing is offered.
    pub(crate) fn new(config: &Config, chance: &mut ChaCha8Rng) -> Option<Box<Self>> {
        let mut random = [0; 32];
        if config.extensions.authentication {
            chance.fill_bytes(&mut random);
        }
        Extended::offered(config, random)
    }

    /// As `new`, with a random number that was drawn before.
    pub(crate) fn offered(config: &Config, random: [u8; 32]) -> Option<Box<Self>> {
        config.extensions.any().then(|| {
            Box::new(Extended {
                agreed: Extensions::default(),
                random,
                streams: None,
                authentication: None,
                addresses: None,
                congestion: None,
                timestamps: None,
            })
        })
    }

    /// The state after both ends have agreed; `None` if they use no extension.
    pub(crate) fn agreed(agreement: &Agreement, local: Tsn, peer: Tsn, config: &Config) -> Option<Box<Self>> {
        let Agreement { extensions: agreed, random, .. } = *agreement;
        agreed.any().then(|| {
            let streams = agreed.reconfiguration.then(|| Reconfiguration::new(local, peer));
            let authentication = Authentication::new(config, agreement);
            let addresses = agreed.addresses.then(|| AddressChanges::new(local, peer));
            let congestion = agreed.ecn.then(Congestion::default);
            // The offset of the clock is drawn when the association is established.
            let timestamps = agreed.timestamps.then(|| Timestamps::new(0));
            Box::new(Extended { agreed, random, streams, authentication, addresses, congestion, timestamps })
        })
    }

    /// Completes a packet just before it leaves. `new`: if it carries data, this was never sent before.
    // Most associations have no extension, so this is kept out of the way of their packets.
    #[inline(never)]
    pub(crate) fn finish(&mut self, packet: &mut Packet, new: bool, now: Time) {
        if let Some(congestion) = &mut self.congestion {
            congestion.mark(packet, new);
        }
        if let Some(timestamps) = &mut self.timestamps {
            timestamps.stamp(packet, now);
        }
        if let Some(authentication) = &self.authentication {
            authentication.seal(packet);
        }
    }

    /// When a request of this end must be repeated.
    pub(crate) fn deadline(&self) -> Time {
        let streams = self.streams.as_ref().map_or(Time::NEVER, Reconfiguration::deadline);
        streams.min(self.addresses.as_ref().map_or(Time::NEVER, AddressChanges::deadline))
    }
}
