//! Cumulative points of single paths (cwnd update for CMT, CUC). With several paths the Cumulative TSN Ack Point does
//! not move while one path waits for a lost chunk, although the other paths deliver in order.

use std::ops::Range;

use super::{Outstanding, Sent};
use crate::Tsn;
use crate::control::ranges::Ranges;
use crate::mechanisms::{self, Cuc, Mechanisms};
use crate::path::{Paths, Points, SackResult};
use crate::rules::T3Restart;

/// How many points are searched for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum PointCount {
    /// One point for all chunks.
    One,
    /// One point for chunks sent once, and one for chunks sent again.
    Two,
}

impl PointCount {
    /// `None` if nothing needs the points.
    pub(super) fn new(mechanisms: &Mechanisms, t3_restart: T3Restart) -> Option<Self> {
        match mechanisms::cuc(mechanisms) {
            Cuc::Off if t3_restart != T3Restart::ExpectedPoint => None,
            Cuc::V1 => Some(PointCount::One),
            Cuc::Off | Cuc::V2 => Some(PointCount::Two),
        }
    }

    /// Whether windows grow with the path's own point instead of the Cumulative TSN Ack Point.
    pub(super) fn decides_growth(mechanisms: &Mechanisms) -> bool {
        mechanisms::cuc(mechanisms) != Cuc::Off
    }

    /// Searches for a point at this chunk, which was not acknowledged before the SACK.
    fn seek(self, sent: &Sent, tsn: Tsn, points: &mut Points) {
        let again = self == PointCount::Two && sent.transmissions > 1;
        let point = if again { &mut points.again } else { &mut points.first };
        if point.sought {
            (point.expected, point.sought) = (Some(tsn), false);
        }
    }
}

/// Whether a window grows for chunks that Gap Ack Blocks acknowledge.
#[derive(Copy, Clone, Debug)]
pub(super) enum Growth {
    /// As the Cumulative TSN Ack Point of the association says: it has advanced, or not.
    Association(bool),
    /// As the path's own point says.
    Path,
}

/// A Gap Ack Block acknowledges this chunk for the first time. Moves a point if the chunk was the next one.
fn pass(tsn: Tsn, points: &mut Points, tally: &mut SackResult) {
    for point in [&mut points.first, &mut points.again] {
        if point.expected == Some(tsn) {
            point.sought = true;
            tally.moved = true;
        }
    }
}

impl Outstanding {
    /// Searches for the points of all paths up to the first chunk beyond the last Gap Ack Block, and moves those that
    /// the blocks acknowledge. The blocks are not taken in yet.
    pub(super) fn seek_points(
        &mut self,
        said: &Ranges,
        seeker: PointCount,
        growth: Growth,
        paths: &mut Paths,
    ) {
        let mut at = 0;
        for (start, end) in said.iter() {
            self.seek_among(at..start, None, seeker, paths);
            self.seek_among(start..end, Some(growth), seeker, paths);
            at = end;
        }
        self.seek_among(at..(at + 1).min(self.ring.len() as u32), None, seeker, paths);
    }

    /// As `seek_points`, for these chunks. `growth`: only if a Gap Ack Block names them.
    #[inline]
    fn seek_among(
        &mut self,
        chunks: Range<u32>,
        growth: Option<Growth>,
        seeker: PointCount,
        paths: &mut Paths,
    ) {
        let mut tsn = self.first.plus(chunks.start);
        for sent in self.ring.range_mut(chunks.start as usize..chunks.end as usize) {
            if sent.unacknowledged() {
                let (view, path) = paths.both(sent.path);
                seeker.seek(sent, tsn, &mut path.points);
                if let Some(growth) = growth {
                    pass(tsn, &mut path.points, &mut path.tally);
                    let grows = match growth {
                        Growth::Association(advanced) => advanced,
                        Growth::Path => path.tally.moved,
                    };
                    if grows && !sent.counted && view.window > view.ssthresh {
                        sent.counted = true;
                        path.tally.gap_behind_point += u64::from(sent.size);
                    }
                }
            }
            tsn = tsn.next();
        }
    }
}
