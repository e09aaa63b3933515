//! Extensions: what each end offers in INIT or INIT ACK, what both use, and one file for each.
//!
//! All are off by default. An association keeps nothing for them, and asks one question a poll, until both ends
//! have agreed on one.

mod addresses;
mod agreement;
mod auth;
mod ecn;
mod interleaving;
mod partial;
mod streams;
mod switches;
mod timestamps;

pub(crate) use addresses::AddressChanges;
pub(crate) use agreement::{Agreement, Offer, offer};
pub(crate) use auth::Authentication;
pub(crate) use ecn::Congestion;
pub(crate) use interleaving::Interleaving;
pub(crate) use partial::LimitedMessages;
pub(crate) use streams::Reconfiguration;
pub use switches::Extensions;
pub(crate) use timestamps::{Timestamps, clock};

use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

use crate::association::Association;
use crate::path::PathId;
use crate::receive::Arrival;
use crate::wire::{Address, Chunk};
use crate::{Config, Time, Tsn};

/// What an association keeps for the extensions that it offers, later for those that both ends use.
#[derive(Clone, Debug)]
pub(crate) struct Extended {
    pub(crate) agreed: Extensions,
    /// Our part of the keys; drawn only if authentication is offered.
    pub(crate) random: [u8; 32],
    pub(crate) streams: Option<Reconfiguration>,
    pub(crate) authentication: Option<Authentication>,
    pub(crate) addresses: Option<AddressChanges>,
    pub(crate) congestion: Option<Congestion>,
    pub(crate) timestamps: Option<Timestamps>,
}

/// Where a packet came from, and by which path.
#[derive(Copy, Clone)]
pub(crate) struct PacketOrigin {
    pub(crate) path: PathId,
    pub(crate) local: Address,
    pub(crate) source: Address,
}

impl Extended {
    /// Before the peer is known; `None` if nothing is offered.
    pub(crate) fn new(config: &Config, chance: &mut ChaCha8Rng) -> Option<Box<Self>> {
        let on = config.extensions;
        let mut random = [0; 32];
        if on.authentication {
            chance.fill_bytes(&mut random);
        }
        on.any().then(|| {
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

    /// Between two ends that have agreed; `None` if they use nothing.
    pub(crate) fn agreed(agreement: &Agreement, local: Tsn, peer: Tsn, config: &Config) -> Option<Box<Self>> {
        let Agreement { extensions: agreed, random, .. } = *agreement;
        agreed.any().then(|| {
            let streams = agreed.reconfiguration.then(|| Reconfiguration::new(local, peer));
            let authentication = Authentication::new(config, agreement);
            let addresses = agreed.addresses.then(|| AddressChanges::new(local, peer));
            let congestion = agreed.ecn.then(Congestion::default);
            // The clock's offset is drawn when the association is up.
            let timestamps = agreed.timestamps.then(|| Timestamps::new(0));
            Box::new(Extended { agreed, random, streams, authentication, addresses, congestion, timestamps })
        })
    }
}

impl Association {
    /// Our part of the keys.
    pub(crate) fn random(&self) -> [u8; 32] {
        self.extended.as_ref().map_or([0; 32], |extended| extended.random)
    }

    /// What both ends use.
    pub(crate) fn agreed(&self) -> Extensions {
        self.extended.as_ref().map_or(Extensions::default(), |extended| extended.agreed)
    }

    /// Takes a chunk that an extension has brought; whether the chunks behind it count. One whose extension
    /// was not agreed is not understood.
    pub(crate) fn extension_chunk(
        &mut self,
        chunk: Chunk,
        came: PacketOrigin,
        arrival: &mut Arrival,
        now: Time,
    ) -> bool {
        let agreed = self.agreed();
        match chunk {
            Chunk::ForwardTsn(_) if agreed.interleaving => {
                self.wrong_kind(now);
                true
            }
            Chunk::ForwardTsn(forward) if agreed.partial_reliability => {
                self.forward_tsn(&forward, arrival, now);
                true
            }
            Chunk::IForwardTsn(forward) if agreed.interleaving && agreed.partial_reliability => {
                self.interleaved_forward(&forward, arrival, now);
                true
            }
            Chunk::IData(data) if agreed.interleaving => {
                self.idata(data, came, arrival, now);
                true
            }
            //= rfc8260#section-2.2.3
            Chunk::IData(_) if self.config.extensions.interleaving => {
                self.wrong_kind(now);
                true
            }
            Chunk::NrSack(sack) if agreed.nr_sack => {
                self.nr_sack(&sack, now);
                true
            }
            Chunk::ReConfig(chunk) if agreed.reconfiguration => {
                self.reconfig(&chunk, came);
                true
            }
            Chunk::Ecne(echo) if agreed.ecn => {
                self.ecne(echo, came, now);
                true
            }
            Chunk::Cwr(answer) if agreed.ecn => {
                self.cwr(answer);
                true
            }
            Chunk::Asconf(asconf) if agreed.addresses => {
                self.asconf(&asconf, came, now);
                true
            }
            Chunk::AsconfAck(ack) if agreed.addresses => {
                self.asconf_ack(&ack, now);
                true
            }
            // Looked at before all others.
            Chunk::Auth(_) if agreed.authentication => true,
            Chunk::Timestamp(_) if agreed.timestamps => true,
            //= rfc4820#section-3
            Chunk::Pad(_) => true,
            other => self.unknown(&other, came.path),
        }
    }

    /// Before anything is said: what extensions have to do now.
    pub(crate) fn work_extensions(&mut self, now: Time) {
        self.tell_failed();
        self.work_streams(now);
    }

    /// When an extension has something to do by itself.
    pub(crate) fn extension_deadline(&self) -> Time {
        let Some(extended) = &self.extended else { return Time::NEVER };
        // The lifetime of a message also ends while the association is being set up.
        let messages = self.sender.partial_deadline();
        if !self.state.sends_data() {
            return if self.state.setting_up() { messages } else { Time::NEVER };
        }
        let streams = extended.streams.as_ref().map_or(Time::NEVER, Reconfiguration::deadline);
        let addresses = extended.addresses.as_ref().map_or(Time::NEVER, AddressChanges::deadline);
        messages.min(streams).min(addresses)
    }

    /// Runs the timers of extensions that are due.
    pub(crate) fn extension_timers(&mut self, now: Time) {
        if self.extension_deadline() > now {
            return;
        }
        if self.sender.partial_deadline() <= now {
            self.partial_timers(now);
        }
        self.streams_timer(now);
        self.asconf_timer(now);
    }
}
