//! Trains: packets of new data that leave one after the other on one path. What was decided for the first of them holds for the
//! others, as long as nothing happens in between but that they are sent.

use super::blocked::in_the_way;
use super::{NextOfTrain, PacketPlan, SendContext, Sender, Train};
use crate::output::Limit;
use crate::policy::{Choice, Stays, Why};

impl Sender {
    /// Something happened but that packets were sent: the next packet is decided anew.
    #[inline]
    pub(crate) fn uncouple(&mut self) {
        self.train = None;
    }

    /// This packet was sent. If it belongs to no train, one begins with it, provided that nothing but the path's window, the peer's
    /// window and Max.Burst limits the packets of new data behind it. `window` is what it has left of the peer's window.
    #[inline]
    pub(super) fn couple(&mut self, sent: &PacketPlan, window: u64, around: &SendContext<'_>) {
        if let Some(train) = &mut self.train {
            train.window = window;
            return;
        }
        let usual = sent.why == Why::New && sent.limit == Limit::Window && !self.outstanding.has_marked();
        let alone =
            self.rights.probes().is_none() && !self.rights.limits_paths() && !self.buffers.concern_paths();
        let stays = if usual && alone { self.routes.new.stays() } else { Stays::Unknown };
        let carries = around.paths.view(sent.path).carries();
        self.train = (stays != Stays::Unknown && carries).then_some(Train {
            path: sent.path,
            waits: stays == Stays::Always,
            window,
        });
    }

    /// Decides about the next packet as `new_data` would, if a train is under way.
    #[inline]
    pub(super) fn next_of_train(&mut self, budget: u32, around: &mut SendContext<'_>) -> NextOfTrain {
        // It goes on if it decides about this packet.
        let Some(train) = self.train.take() else { return NextOfTrain::Undecided };
        let Train { path, waits, window } = train;
        debug_assert_eq!(window, self.peer_window(around.paths));
        let Some((stream, size)) = self.queue.peek(around.paths.smallest_pmdcs()) else {
            return NextOfTrain::Undecided;
        };
        if u64::from(size) > window {
            return NextOfTrain::Undecided;
        }
        if around.paths.measure_room_of(path) == 0 {
            if !waits {
                return NextOfTrain::Undecided;
            }
            self.blocked.found(in_the_way(Choice::Send(path), around.paths));
            return NextOfTrain::Nothing;
        }
        if size > budget || !self.rights.may_send() {
            return NextOfTrain::Undecided;
        }
        self.train = Some(train);
        let ask = self.ask_new((stream, size), Why::New, window);
        NextOfTrain::Load(PacketPlan { path, why: Why::New, limit: Limit::Window, ask })
    }
}
