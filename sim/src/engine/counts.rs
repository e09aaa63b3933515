//! Counters of frames, by their entry in the table of routes. So each flow's part of a link's traffic is known at no
//! additional cost per hop.

use super::ARRIVED;

/// By entry in the table of routes.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// At the begin of a route: the frames sent into it.
    pub(crate) sent: Vec<u64>,
    /// The frames dropped there.
    pub(crate) dropped: Vec<u64>,
    /// At the end of a route: the bytes of the packets with user data that arrived, IP headers included.
    pub(crate) data: Vec<u64>,
}

impl Counts {
    /// For a table with this number of entries.
    pub(super) fn new(places: usize) -> Self {
        Counts { sent: vec![0; places], dropped: vec![0; places], data: vec![0; places] }
    }

    /// By entry: the frames that were offered to the link direction there. `under_way` are the frames there now.
    pub(super) fn offered(&self, routes: &[u32], under_way: &[u64]) -> Vec<u64> {
        let mut left = None;
        let mut offered = vec![0; routes.len()];
        for (place, next) in routes.iter().enumerate() {
            if *next >= ARRIVED {
                left = None;
                continue;
            }
            offered[place] = left.unwrap_or(self.sent[place]);
            left = Some(offered[place] - self.dropped[place] - under_way[place]);
        }
        offered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_follows_from_what_is_sent_dropped_and_under_way() {
        let routes = [4, 2, ARRIVED, 2, ARRIVED + 1];
        let counts = Counts { sent: vec![10, 0, 0, 5, 0], dropped: vec![1, 2, 0, 0, 0], ..Counts::new(5) };
        assert_eq!(counts.offered(&routes, &[3, 1, 0, 5, 0]), [10, 6, 0, 5, 0]);
    }
}
