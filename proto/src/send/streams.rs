//! How many messages of each stream wait. It is counted if an extension asks for it: interleaving, which lets streams
//! take turns, and stream reconfiguration, whose requests wait for messages.

use std::collections::BTreeMap;

/// The streams on which messages wait, with their numbers.
#[derive(Clone, Default, Debug)]
pub(super) struct WaitingStreams(BTreeMap<u16, usize>);

impl WaitingStreams {
    /// A message of this stream has entered the queue.
    pub(super) fn enter(&mut self, stream: u16) {
        *self.0.entry(stream).or_default() += 1;
    }

    /// A message of this stream has left the queue.
    pub(super) fn strike(&mut self, stream: u16) {
        if let Some(count) = self.0.get_mut(&stream) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&stream);
            }
        }
    }

    /// The next stream in turn after this one. `None`: no other stream has messages.
    pub(super) fn after(&self, stream: u16) -> Option<u16> {
        let next = self.0.range(stream.saturating_add(1)..).next().or(self.0.first_key_value());
        next.map(|(next, _)| *next).filter(|next| *next != stream)
    }

    /// The first stream of this list (none: all), which is in order, that is not below `from` and has messages.
    pub(super) fn first_of(&self, listed: &[u16], from: u16) -> Option<u16> {
        if listed.is_empty() {
            return self.0.range(from..).next().map(|(stream, _)| *stream);
        }
        let at = listed.partition_point(|stream| *stream < from);
        listed[at..].iter().copied().find(|stream| self.0.contains_key(stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_counted_and_found() {
        let mut waiting = WaitingStreams::default();
        [2, 5, 5, 9].into_iter().for_each(|stream| waiting.enter(stream));
        assert_eq!([2, 5, 9].map(|stream| waiting.after(stream)), [Some(5), Some(9), Some(2)]);
        assert_eq!([0, 3, 9, 10].map(|from| waiting.first_of(&[], from)), [Some(2), Some(5), Some(9), None]);
        assert_eq!([0, 6].map(|from| waiting.first_of(&[1, 5, 7, 8], from)), [Some(5), None]);
        waiting.strike(5);
        assert_eq!(waiting.first_of(&[1, 5], 0), Some(5), "one is left");
        [5, 2].into_iter().for_each(|stream| waiting.strike(stream));
        assert_eq!((waiting.first_of(&[1, 5], 0), waiting.after(9)), (None, None));
    }
}
