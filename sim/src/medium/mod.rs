//! Media, which carry frames from one node to another.
//!
//! A *wire* joins two nodes and is part of the engine: a first-in, first-out queue whose packets need no event but
//! their arrival. Anything else that nodes share, such as the air, is a [`Medium`]: it has stations, keeps its own
//! timers, and says later what became of a frame.

pub(crate) mod wire;
pub(crate) mod wireless;

use anabranch_proto::Time;

use crate::observe::trace::RadioFrame;
use crate::transport::Frame;
use wireless::{Channel, Fate, StationId};

/// A medium that several stations share, sans-I/O. If some of its stations can never affect others, it has several
/// *parts*, each with its own events.
pub(crate) trait Medium {
    /// How many parts it has.
    fn parts(&self) -> usize {
        1
    }
    /// The part of a station.
    fn part(&self, _station: StationId) -> usize {
        0
    }
    /// Gives a frame of `size` bytes to the station `from` for the station `to`. Returns it if the station has no room.
    fn offer(
        &mut self,
        now: Time,
        from: StationId,
        to: StationId,
        size: u32,
        frame: Frame,
    ) -> Result<(), Frame>;
    /// When something happens next in a part; `NEVER` if nothing does.
    fn next(&self, part: usize) -> Time;
    /// Does everything that is due in a part at `now`, and adds the frames that were delivered or dropped to `fates`.
    /// If there are none, it may go on with what is due before `until`. Returns the time that it has come to.
    fn advance(&mut self, part: usize, now: Time, until: Time, fates: &mut Vec<Fate<Frame>>) -> Time;
    /// Calls `each` with every frame that was offered and is neither delivered nor dropped.
    fn each_frame(&self, each: &mut dyn FnMut(&Frame));
    /// From now on, keeps what an observer can see until it is taken.
    fn keep_shown(&mut self) {}
    /// Calls `show` with what an observer could see since the last call.
    fn take_shown(&mut self, _show: &mut dyn FnMut(RadioFrame, Option<&Frame>)) {}
}

impl Medium for Channel<Frame> {
    fn parts(&self) -> usize {
        Channel::parts(self)
    }

    fn part(&self, station: StationId) -> usize {
        Channel::part(self, station)
    }

    fn offer(
        &mut self,
        now: Time,
        from: StationId,
        to: StationId,
        size: u32,
        frame: Frame,
    ) -> Result<(), Frame> {
        Channel::offer(self, now, from, to, size, frame)
    }

    fn next(&self, part: usize) -> Time {
        Channel::next(self, part)
    }

    fn advance(&mut self, part: usize, now: Time, until: Time, fates: &mut Vec<Fate<Frame>>) -> Time {
        Channel::advance(self, part, now, until, fates)
    }

    fn each_frame(&self, each: &mut dyn FnMut(&Frame)) {
        self.packets().for_each(each);
    }

    fn keep_shown(&mut self) {
        self.keep_frames();
    }

    fn take_shown(&mut self, show: &mut dyn FnMut(RadioFrame, Option<&Frame>)) {
        self.take_frames(|dcf, air, packet| show(dcf.shown(air), packet));
    }
}
