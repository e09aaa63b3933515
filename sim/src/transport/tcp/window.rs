//! TCP's congestion windows: that of RFC 5681 in bytes, ns-2's in packets, or any window policy.

use anabranch_proto::control::window::{
    Acked, Congestion, Halving, Loss, Lost, MakeWindow, Reno, Sibling, Start,
};

use super::config::{RecoveryKind, TcpConfig};

/// The window of a sender.
pub(super) enum Window {
    /// In packets, as ns-2 counts.
    Packets(PacketWindow),
    /// In bytes.
    Bytes(Box<dyn Congestion>),
}

impl Window {
    /// The window that the configuration selects. If a SYN was lost, it begins with one segment.
    //= rfc5681#section-3.1
    pub(super) fn new(config: &TcpConfig, policy: Option<&MakeWindow>, lost_syn: bool) -> Self {
        let segment = u64::from(config.segment_size);
        let ssthresh = config.initial_ssthresh.unwrap_or(u64::MAX);
        let initial = if lost_syn { segment } else { config.initial_window };
        let start = Start { unit: segment, window: initial, ssthresh };
        let packets = |bytes: u64| bytes as f64 / segment as f64;
        match (policy, config.recovery) {
            (Some(make), _) => Window::Bytes(make(start)),
            (None, RecoveryKind::Standard) => Window::Bytes(Box::new(Reno::new(start, config.halving))),
            (None, RecoveryKind::Sack1) => Window::Packets(PacketWindow {
                cwnd: packets(initial),
                ssthresh: if lost_syn { 2.0 } else { packets(ssthresh).floor() },
                cap: packets(config.receive_window),
                halving: config.halving,
            }),
        }
    }

    /// The congestion window, in bytes.
    pub(super) fn bytes(&self, segment: u64) -> u64 {
        match self {
            Window::Packets(window) => (window.cwnd * segment as f64) as u64,
            Window::Bytes(window) => window.window(),
        }
    }

    /// The congestion window in segments, with its fraction.
    pub(super) fn segments(&self, segment: u64) -> f64 {
        match self {
            Window::Packets(window) => window.cwnd,
            Window::Bytes(window) => window.window() as f64 / segment as f64,
        }
    }

    /// The slow-start threshold, in bytes.
    pub(super) fn ssthresh(&self, segment: u64) -> u64 {
        match self {
            Window::Packets(window) => (window.ssthresh * segment as f64) as u64,
            Window::Bytes(window) => window.ssthresh(),
        }
    }

    /// Bytes from one loss to the next, of windows that count them.
    pub(super) fn loss_distance(&self) -> u64 {
        match self {
            Window::Packets(_) => 0,
            Window::Bytes(window) => window.loss_distance(),
        }
    }

    /// Data was acknowledged. `all`: this window, and those that are coupled with it.
    pub(super) fn acked(&mut self, acked: &Acked, all: &[Sibling]) {
        match self {
            Window::Packets(window) => window.grow(),
            Window::Bytes(window) => window.acked(acked, all),
        }
    }

    /// Transmission begins again after a pause. ns-2's agent has a rule of its own, which its timer applies; it is not
    /// modelled.
    pub(super) fn restart(&mut self, most: u64) {
        if let Window::Bytes(window) = self {
            window.restart(most);
        }
    }

    /// Data was lost. `all` as in [`Window::acked`].
    pub(super) fn lost(&mut self, lost: &Lost, all: &[Sibling]) {
        match self {
            Window::Packets(window) => window.cut(lost.how),
            Window::Bytes(window) => window.lost(lost, all),
        }
    }
}

/// ns-2's window: packets and fractions of them; it grows with every new acknowledgement, whatever that covers and
/// whether it was the window that limited the sender.
pub(super) struct PacketWindow {
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
    /// Packets that the receiver's window admits: the window is cut from there at most.
    pub(super) cap: f64,
    pub(super) halving: Halving,
}

impl PacketWindow {
    /// An acknowledgement has arrived. Only their number counts.
    pub(super) fn grow(&mut self) {
        self.cwnd += if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
    }

    fn cut(&mut self, how: Loss) {
        let used = self.cwnd.min(self.cap);
        let half = match self.halving {
            Halving::Fraction => used / 2.0,
            Halving::Whole => f64::from(used as u32 / 2),
        };
        self.ssthresh = f64::from(half as u32).max(2.0);
        self.cwnd = match how {
            Loss::Missing => half.max(1.0),
            Loss::Timeout => 1.0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(cwnd: f64, halving: Halving) -> PacketWindow {
        PacketWindow { cwnd, ssthresh: 4.0, cap: 44.0, halving }
    }

    #[test]
    fn ns2_cuts_whole_packets_or_fractions() {
        let mut whole = packets(9.7, Halving::Whole);
        whole.cut(Loss::Missing);
        assert_eq!((whole.cwnd, whole.ssthresh), (4.0, 4.0));
        let mut fraction = packets(9.0, Halving::Fraction);
        fraction.cut(Loss::Missing);
        assert_eq!((fraction.cwnd, fraction.ssthresh), (4.5, 4.0));
        let mut large = packets(60.0, Halving::Fraction);
        large.cut(Loss::Timeout);
        assert_eq!((large.cwnd, large.ssthresh), (1.0, 22.0), "from what the receiver admits");
    }

    #[test]
    fn ns2_grows_by_one_over_the_window() {
        let mut window = packets(4.0, Halving::Whole);
        let mut seen = Vec::new();
        for _ in 0..5 {
            window.grow();
            seen.push((window.cwnd * 1000.0).round() / 1000.0);
        }
        assert_eq!(seen, [4.25, 4.485, 4.708, 4.921, 5.124]);
    }
}
