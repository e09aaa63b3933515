//! Calls that change streams (RFC 6525) and addresses (RFC 5061) of an association.

use std::sync::Arc;

use super::Endpoint;
use crate::association::Association;
use crate::wire::Address;
use crate::{AssociationId, ChangeError, Direction, LocalAddress, Time};

impl Endpoint {
    /// Restarts the SSNs of these streams (none: all) (RFC 6525). Messages given before this call are sent before the
    /// reset; [`Event::StreamsReset`](crate::Event::StreamsReset) reports the outcome.
    pub fn reset_streams(
        &mut self,
        now: Time,
        id: AssociationId,
        direction: Direction,
        streams: &[u16],
    ) -> Result<(), ChangeError> {
        self.change(now, id, |association| association.reset_streams(direction, streams))
    }

    /// Restarts all TSNs and SSNs (RFC 6525 §5.1.4), after everything sent is acknowledged;
    /// [`Event::TsnsReset`](crate::Event::TsnsReset) reports the outcome.
    pub fn reset_tsns(&mut self, now: Time, id: AssociationId) -> Result<(), ChangeError> {
        self.change(now, id, Association::reset_tsns)
    }

    /// Requests additional streams (RFC 6525), incoming ones up to [`Config::inbound_streams`](crate::Config);
    /// [`Event::StreamsAdded`](crate::Event::StreamsAdded) reports the outcome.
    pub fn add_streams(
        &mut self,
        now: Time,
        id: AssociationId,
        direction: Direction,
        count: u16,
    ) -> Result<(), ChangeError> {
        self.change(now, id, |association| association.add_streams(direction, count))
    }

    /// Offers the peer a further local address (RFC 5061). Packets to it are accepted from now on. No packet leaves
    /// from it before the peer has agreed; [`Event::LocalAddress`](crate::Event::LocalAddress) reports this.
    pub fn add_address(
        &mut self,
        now: Time,
        id: AssociationId,
        local: LocalAddress,
    ) -> Result<(), ChangeError> {
        self.change(now, id, |association| association.add_address(local))?;
        if self.config.addresses.iter().all(|known| known.address != local.address) {
            Arc::make_mut(&mut self.config).addresses.push(local);
        }
        Ok(())
    }

    /// Removes a local address from this association (RFC 5061), unless no path would be left. The association sends
    /// nothing from it any more; the endpoint still accepts packets that arrive there. If the peer restarts there, the
    /// address belongs to the association again.
    pub fn remove_address(
        &mut self,
        now: Time,
        id: AssociationId,
        address: Address,
    ) -> Result<(), ChangeError> {
        self.change(now, id, |association| association.remove_address(address, now))
    }

    /// Asks the peer to send to this address of ours if it can (RFC 5061).
    pub fn set_peer_primary(
        &mut self,
        now: Time,
        id: AssociationId,
        address: Address,
    ) -> Result<(), ChangeError> {
        self.change(now, id, |association| association.set_peer_primary(address))
    }

    fn change(
        &mut self,
        now: Time,
        id: AssociationId,
        what: impl FnOnce(&mut Association) -> Result<(), ChangeError>,
    ) -> Result<(), ChangeError> {
        self.run_timers(now);
        let result = what(self.get_mut(id).ok_or(ChangeError::NotAgreed)?);
        self.wake(id.place());
        result
    }
}
