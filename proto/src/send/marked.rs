//! Packets of marked chunks: which one leaves, and on which path.

use smallvec::SmallVec;

use super::routes::unless_dormant;
use super::{PacketPlan, SendContext, Sender};
use crate::Tsn;
use crate::output::{Limit, NoteKind};
use crate::path::{PathId, Paths};
use crate::policy::{Ask, Choice, Why};
use crate::wire::Chunk;

impl Sender {
    /// A packet of marked chunks: one by a granted right, or as many as the room allows.
    //= rfc9260#section-6.1
    #[inline(always)]
    pub(super) fn retransmission(&mut self, budget: u32, around: &mut SendContext<'_>) -> Option<PacketPlan> {
        let mut next = Some(self.outstanding.lowest_marked()?);
        if !self.rights.may_retransmit_anywhere() {
            return None;
        }
        around.paths.measure_room(true);
        self.rights.open_granted(around.paths);
        while let Some((tsn, why)) = next {
            if let Some(load) = self.retransmission_of(tsn, why, budget, around) {
                return Some(load);
            }
            next = self.looks_further.then(|| self.outstanding.marked_from(tsn.next())).flatten();
        }
        None
    }

    /// A packet that begins with this marked chunk, if the chunk may leave on the path that its route names.
    #[inline(always)]
    fn retransmission_of(
        &mut self,
        tsn: Tsn,
        why: Why,
        budget: u32,
        around: &mut SendContext<'_>,
    ) -> Option<PacketPlan> {
        // A chunk from before the path MTU fell may be larger than any budget. It is sent alone.
        let size = self.outstanding.get(tsn)?.size;
        if size > budget && size <= around.paths.smallest_pmdcs() {
            return None;
        }
        let ask = self.ask_again(tsn, why, around.paths)?;
        let choice = match self.round {
            Some(path) => Choice::Send(path),
            None => self.routes.of(why).choose(&ask, around.paths.views()),
        };
        let Choice::Send(path) = unless_dormant(choice, why, around.config, around.paths) else {
            return None;
        };
        let granted = self.rights.granted().is_some() || self.rights.granted_on(path);
        let room = self.rights.may_retransmit() && around.paths.view(path).room > 0;
        let sendable = around.paths.sends(path) && around.paths.view(path).confirmed();
        if !sendable || !(granted || room) {
            return None;
        }
        let limit = if granted { Limit::Granted } else { Limit::Window };
        if let Some(reason) = around.notes.if_on(|| self.routes.of(why).reason(&ask, around.paths.views())) {
            around.notes.add(around.now, || NoteKind::Route { path, tsn, reason });
        }
        Some(PacketPlan { path, why, limit, ask })
    }

    pub(super) fn ask_again(&self, tsn: Tsn, why: Why, paths: &Paths) -> Option<Ask> {
        let sent = self.outstanding.get(tsn)?;
        Some(Ask {
            why,
            tsn,
            size: sent.size,
            stream: sent.data.stream,
            last: Some(sent.path),
            transmissions: sent.transmissions,
            queued: self.queue.user_bytes(),
            peer_window: self.peer_window(paths),
            peer_buffer: self.buffers.peer,
            tie: self.tie,
            event: self.events,
        })
    }

    /// Retransmits marked chunks, beginning with this one, as long as they fit the packet.
    pub(super) fn resend_from(
        &mut self,
        first: Tsn,
        path: PathId,
        mut budget: u32,
        chunks: &mut SmallVec<[Chunk; 2]>,
        around: &mut SendContext<'_>,
    ) {
        let mut from = first;
        while let Some((tsn, why)) = self.outstanding.marked_from(from) {
            let Some(size) = self.outstanding.get(tsn).map(|sent| sent.size) else { break };
            from = tsn.next();
            if tsn != first && self.same_path_only && !self.goes_by(path, tsn, why, around) {
                continue;
            }
            if size > budget && !chunks.is_empty() {
                self.outstanding.looked_at(tsn, path, around.paths);
                break;
            }
            budget = budget.saturating_sub(size);
            let data = self.outstanding.resend(tsn, path, around.paths, around.now);
            around.notes.add(around.now, || NoteKind::Sent { path, tsn, size, why });
            chunks.push(self.queue.chunk(data));
        }
        self.rights.retransmitted(path);
        self.round = self.one_path.then_some(path);
    }

    /// Whether the route of this marked chunk names this path.
    fn goes_by(&mut self, path: PathId, tsn: Tsn, why: Why, around: &SendContext<'_>) -> bool {
        let Some(ask) = self.ask_again(tsn, why, around.paths) else { return false };
        let choice = self.routes.of(why).choose(&ask, around.paths.views());
        unless_dormant(choice, why, around.config, around.paths) == Choice::Send(path)
    }
}
