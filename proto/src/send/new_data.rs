//! Packets of new data: whether one may leave, on which path, and what it holds.

use smallvec::SmallVec;

use super::blocked::in_the_way;
use super::routes::unless_dormant;
use super::{PacketPlan, SendContext, Sender};
use crate::Config;
use crate::mechanisms::FillPackets;
use crate::output::{Blocked, Limit, NoteKind};
use crate::path::PathId;
use crate::policy::{Ask, Choice, Why};
use crate::rules::NewData;
use crate::wire::Chunk;

/// A packet with less room than this is not filled with a fragment of a message.
const SMALLEST_CUT: u32 = 64;

impl Sender {
    /// A packet of new chunks, if marked chunks, windows, bursts and SSNs allow it. Otherwise records the obstacle.
    #[inline(always)]
    pub(super) fn new_data(&mut self, budget: u32, around: &mut SendContext<'_>) -> Option<PacketPlan> {
        let (stream, size) = self.queue.peek(around.paths.smallest_pmdcs())?;
        if self.lacks_ssn() {
            self.blocked.found(Blocked::Turn);
            return None;
        }
        let window = self.measure(around);
        let fits = u64::from(size) <= window;
        let probing = !fits && self.may_probe(around.config);
        if !fits && !probing {
            self.blocked.found(Blocked::PeerWindow);
            return None;
        }
        let why = if probing { Why::WindowProbe } else { Why::New };
        let (choice, ask) = self.preferred((stream, size), why, window, around);
        let allowed = (self.rights.may_send() || probing) && !self.waits_for_marked(around.config);
        match choice {
            Choice::Send(path) if allowed && size <= budget && around.paths.view(path).room > 0 => {
                let limit = if probing { Limit::Granted } else { Limit::Window };
                Some(PacketPlan { path, why, limit, ask })
            }
            _ => {
                if let Choice::Send(path) = choice
                    && fits
                    && around.paths.view(path).room > 0
                {
                    self.rights.kept_back();
                }
                self.blocked.found(if fits { in_the_way(choice, around.paths) } else { Blocked::PeerWindow });
                None
            }
        }
    }

    fn waits_for_marked(&mut self, config: &Config) -> bool {
        let waits = config.rules.new_data == NewData::AfterMarked || self.rights.resumes();
        waits && self.outstanding.lowest_marked().is_some()
    }

    /// Computes the room of each path for new data, and returns the peer's window.
    #[inline(always)]
    pub(super) fn measure(&self, around: &mut SendContext<'_>) -> u64 {
        let counted = around.paths.measure_room(false);
        self.rights.limit_bursts(around.paths);
        self.buffers.share(self.a_rwnd, around.paths);
        self.a_rwnd.saturating_sub(counted - self.outstanding.copied())
    }

    /// The path that the route of new data names for the next chunk, with or without room, and the question. The room
    /// was measured.
    #[inline(always)]
    pub(super) fn preferred(
        &self,
        (stream, size): (u16, u32),
        why: Why,
        peer_window: u64,
        around: &SendContext<'_>,
    ) -> (Choice, Ask) {
        let ask = self.ask_new((stream, size), why, peer_window);
        let choice = self.routes.new.choose(&ask, around.paths.views());
        (unless_dormant(choice, why, around.config, around.paths), ask)
    }

    /// The question about the next new chunk.
    #[inline(always)]
    pub(super) fn ask_new(&self, (stream, size): (u16, u32), why: Why, peer_window: u64) -> Ask {
        Ask {
            why,
            tsn: self.outstanding.next_tsn(),
            size,
            stream,
            last: None,
            transmissions: 0,
            queued: self.queue.user_bytes(),
            peer_window,
            peer_buffer: self.buffers.peer,
            tie: self.tie,
            event: self.events,
        }
    }

    /// The path that new data would take now.
    pub(crate) fn next_path(&self, around: &mut SendContext<'_>) -> Option<PathId> {
        let size = around.paths.smallest_pmdcs();
        let window = self.measure(around);
        match self.preferred((0, size), Why::New, window, around).0 {
            Choice::Send(path) => Some(path),
            Choice::Wait => None,
        }
    }

    /// Cuts new chunks from the queue, as many as fit the packet and the peer's window. Returns what they leave of that
    /// window.
    #[inline(always)]
    pub(super) fn send_new(
        &mut self,
        load: &PacketPlan,
        mut budget: u32,
        chunks: &mut SmallVec<[Chunk; 2]>,
        around: &mut SendContext<'_>,
    ) -> u64 {
        let fragment = around.paths.smallest_pmdcs();
        let mut window = load.ask.peer_window;
        let (path, why, now) = (load.path, load.why, around.now);
        let probing = why == Why::WindowProbe;
        let fills = around.config.mechanisms.fill_packets == FillPackets::On;
        let mut next = Some(load.ask.size);
        while let Some(mut size) = next {
            let mut limit = fragment;
            if fills && size > budget && budget >= SMALLEST_CUT && self.queue.is_cut(fragment) {
                limit = budget & !3;
                size = limit;
            }
            if size > budget || (u64::from(size) > window && !probing) {
                break;
            }
            let tsn = self.outstanding.next_tsn();
            let Some(data) = self.queue.take(limit, tsn) else { break };
            budget -= size;
            window = window.saturating_sub(u64::from(size));
            let data = self.outstanding.push(data, size, path, around.paths, now);
            let chunk = self.queue.chunk(data.clone());
            debug_assert_eq!(chunk.padded_size() as u32, size);
            chunks.push(chunk);
            around.notes.add(now, || NoteKind::Sent { path, tsn, size, why });
            if probing {
                self.probe_sent(around);
                break;
            }
            // Nothing fits into a packet that is full.
            let more = budget > 0 && !self.lacks_ssn();
            next = if more { self.queue.peek(fragment).map(|(_, size)| size) } else { None };
        }
        self.in_use = path;
        self.rights.sent_new(path);
        window
    }
}
