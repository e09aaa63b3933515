//! An association as its users hold it.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use anabranch_proto::{
    AssociationId, ChangeError, Delivery, Direction, Event, LocalAddress, LostReason, Message, PathId,
    SendError, Statistics,
};
use bytes::Bytes;
use tokio::sync::broadcast;

use crate::core::{AssociationState, Shared, Signals};
use crate::report::PathReport;
use crate::undelivered::Undelivered;

/// An association that is, or was, up. When it is dropped, it is shut down, and what still arrives is thrown
/// away. What was sent is still delivered; if the peer acknowledges nothing for five to ten minutes, the association is
/// aborted.
pub struct Association {
    shared: Arc<Shared>,
    id: AssociationId,
    signals: Arc<Signals>,
}

/// Why an association sends or receives no more.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Ended {
    /// It is closed, or closing.
    #[error("the association is closed")]
    Closed,
    /// It was lost, with what was not delivered.
    #[error("the association was lost: {0}")]
    Lost(LostReason),
    /// The message is empty, or its stream was not agreed.
    #[error("the message is empty, or its stream was not agreed")]
    Invalid,
}

impl Association {
    pub(crate) fn new(shared: &Arc<Shared>, id: AssociationId, signals: Arc<Signals>) -> Association {
        Association { shared: Arc::clone(shared), id, signals }
    }

    /// The association `id`, which has a user.
    pub(crate) fn of(shared: &Arc<Shared>, id: AssociationId) -> Association {
        let signals = shared.lock().user(id).map(|user| Arc::clone(&user.signals));
        Association::new(shared, id, signals.expect("it was just made"))
    }

    /// Sends a message: waits until it has a place in the send buffer. What will not be delivered after that comes back
    /// in [`undelivered`](Association::undelivered).
    ///
    /// Cancel-safe: dropped before it is ready, it has sent nothing, and the message is gone with it.
    pub async fn send(&self, mut message: Message) -> Result<(), Ended> {
        loop {
            let waiting = self.signals.writable.notified();
            if self.shared.is_stopped() {
                return Err(self.ended());
            }
            match self.shared.call(|core, now| core.send(now, self.id, message)) {
                Ok(()) => return Ok(()),
                Err(SendError::Full(back)) => message = back,
                Err(SendError::Invalid(_)) => return Err(Ended::Invalid),
                Err(SendError::Closed(_)) => return Err(self.ended()),
            }
            waiting.await;
        }
    }

    /// Waits for the next message, or part of one that is larger than the receive buffer. `None`: the peer has
    /// ended the association, and everything was read.
    ///
    /// Cancel-safe: dropped before it is ready, it has taken no message.
    pub async fn recv(&self) -> Result<Option<Delivery>, Ended> {
        loop {
            let waiting = self.signals.readable.notified();
            if let Some(delivery) = self.shared.call(|core, now| core.read(now, self.id)) {
                return Ok(Some(delivery));
            }
            match self.standing() {
                AssociationState::PeerDone | AssociationState::Closed => return Ok(None),
                AssociationState::Lost(reason) => return Err(Ended::Lost(reason)),
                AssociationState::SettingUp | AssociationState::Up => waiting.await,
            }
        }
    }

    /// The paths and their state.
    pub fn paths(&self) -> Vec<PathReport> {
        self.shared.paths(self.id)
    }

    /// The numbers of outbound and inbound streams on which both ends have agreed; `None` after the end.
    pub fn streams(&self) -> Option<(u16, u16)> {
        let status = self.shared.lock().status(self.id)?;
        Some((status.outbound_streams, status.inbound_streams))
    }

    /// The events from now on: changes of paths, errors that the peer reports, a restart, the end. A listener that is
    /// too slow misses the oldest events. Messages that come back are no events here: see
    /// [`undelivered`](Association::undelivered).
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.signals.events.subscribe()
    }

    /// Takes the messages that came back because they will not be delivered, the oldest first: those that a limited
    /// [`Reliability`](anabranch_proto::Reliability) dropped, and those that were left when the association was lost or
    /// aborted. A message of which a part was sent may have been delivered all the same. What is not taken is kept as
    /// far as it would fit the send buffer; then the oldest are dropped.
    pub fn undelivered(&self) -> Vec<Undelivered> {
        self.shared.lock().take_undelivered(self.id)
    }

    /// The number of messages that ever came back, whether they were kept or not.
    pub fn undelivered_total(&self) -> u64 {
        self.shared.lock().user(self.id).map_or(0, |user| user.returned.total)
    }

    /// Makes this path the primary. False if there is no such path.
    pub fn set_primary(&self, path: PathId) -> bool {
        self.shared.call(|core, now| core.set_primary(now, self.id, path))
    }

    /// Sends a heartbeat on a path now. False if there is no such path.
    pub fn heartbeat(&self, path: PathId) -> bool {
        self.shared.call(|core, now| core.heartbeat(now, self.id, path))
    }

    /// Resets the stream sequence numbers of these streams (an empty list means all; RFC 6525), if both ends have
    /// agreed on reconfiguration (`config.extensions`). [`Event::StreamsReset`] reports the outcome.
    pub fn reset_streams(&self, direction: Direction, streams: &[u16]) -> Result<(), ChangeError> {
        self.shared.call(|core, now| core.reset_streams(now, self.id, direction, streams))
    }

    /// Asks for so many streams more (RFC 6525). [`Event::StreamsAdded`] tells the outcome.
    pub fn add_streams(&self, direction: Direction, count: u16) -> Result<(), ChangeError> {
        self.shared.call(|core, now| core.add_streams(now, self.id, direction, count))
    }

    /// Tells the peer of a local address (RFC 5061): one of [`Endpoint::local`](crate::Endpoint::local) that is none of
    /// this association's, if both ends have agreed on address changes. [`Event::LocalAddress`] tells the outcome.
    pub fn add_address(&self, ip: IpAddr) -> Result<(), ChangeError> {
        let local = self.local(ip)?;
        self.shared.call(|core, now| core.add_address(now, self.id, local))
    }

    /// Tells the peer that a local address is no longer one of this association (RFC 5061).
    pub fn remove_address(&self, ip: IpAddr) -> Result<(), ChangeError> {
        let local = self.local(ip)?;
        self.shared.call(|core, now| core.remove_address(now, self.id, local.address))
    }

    /// Asks the peer to send to this local address if it can (RFC 5061).
    pub fn set_peer_primary(&self, ip: IpAddr) -> Result<(), ChangeError> {
        let local = self.local(ip)?;
        self.shared.call(|core, now| core.set_peer_primary(now, self.id, local.address))
    }

    /// The address of a socket.
    fn local(&self, ip: IpAddr) -> Result<LocalAddress, ChangeError> {
        let ip = ip.to_canonical();
        let address =
            self.shared.sockets.iter().map(|socket| socket.address).find(|address| address.ip == ip);
        let prefix =
            crate::interface::of(ip).map_or(if ip.is_ipv4() { 32 } else { 128 }, |found| found.prefix);
        address.map(|address| LocalAddress { address, prefix }).ok_or(ChangeError::Invalid)
    }

    /// The counters of the association so far.
    pub fn statistics(&self) -> Statistics {
        self.shared.call(|core, now| core.statistics(now, self.id))
    }

    /// Ends the association gracefully: waits until everything sent is acknowledged and the peer agrees. What
    /// arrives meanwhile can be read, and has to be: a peer with more under way than the receive buffer holds agrees
    /// only when it is read.
    ///
    /// Cancel-safe: if it is dropped, the association still ends, and another call can wait for that.
    pub async fn close(&self) -> Result<(), Ended> {
        self.shared.shutdown(self.id);
        loop {
            let waiting = self.signals.readable.notified();
            match self.standing() {
                AssociationState::Closed => return Ok(()),
                AssociationState::Lost(reason) => return Err(Ended::Lost(reason)),
                _ => waiting.await,
            }
        }
    }

    /// Ends the association at once.
    pub fn abort(&self) {
        self.shared.call(|core, now| core.abort(now, self.id, Bytes::new()));
    }

    /// Waits until it is up, or will not be.
    pub(crate) async fn settled(&self) -> AssociationState {
        loop {
            let waiting = self.signals.readable.notified();
            match self.standing() {
                AssociationState::SettingUp => waiting.await,
                standing => return standing,
            }
        }
    }

    fn standing(&self) -> AssociationState {
        let core = self.shared.lock();
        core.user(self.id).map_or(AssociationState::Closed, |user| user.standing.clone())
    }

    fn ended(&self) -> Ended {
        match self.standing() {
            AssociationState::Lost(reason) => Ended::Lost(reason),
            _ => Ended::Closed,
        }
    }
}

impl fmt::Debug for Association {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Association")
            .field("id", &self.id)
            .field("standing", &self.standing())
            .finish_non_exhaustive()
    }
}

impl Drop for Association {
    fn drop(&mut self) {
        self.shared.abandon(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Carrier, Config, Endpoint, Options};
    use std::net::SocketAddr;
    use std::time::Duration;
    use tokio::time::timeout;

    /// The peer reads nothing, and answers every probe of its window. When no handle is left here, that does not go on
    /// for ever.
    #[tokio::test]
    async fn an_association_without_handles_ends_although_its_peer_never_reads() {
        let local = vec![IpAddr::from([127, 0, 0, 1])];
        let config = Config { receive_buffer: 2000, ..Config::default() };
        let options =
            Options { config, local: local.clone(), carrier: Carrier::Udp(0), ..Options::default() };
        let server = Endpoint::bind(options).expect("sockets");
        let to: Vec<SocketAddr> = server.local().into_iter().map(|(place, _)| place).collect();
        let client = Endpoint::bind(Options::towards(&local).expect("routes")).expect("sockets");
        let (ours, theirs) = tokio::join!(client.connect(&to, 5000), server.accept());
        let theirs = theirs.expect("it is open");
        let ours = ours.expect("it comes up");
        let mut events = theirs.events();
        ours.send(Message { payload: vec![7; 50_000].into(), ..Message::default() })
            .await
            .expect("there is room");
        drop(ours);
        let lost = async {
            while !matches!(events.recv().await.expect("it ends"), Event::Lost(LostReason::PeerAborted(_))) {}
        };
        timeout(Duration::from_secs(20), lost).await.expect("the peer is told of the end");
        timeout(Duration::from_secs(20), client.close()).await.expect("nothing is left here");
    }
}
