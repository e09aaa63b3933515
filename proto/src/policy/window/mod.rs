//! Windows that a configuration can name: those of [`crate::control::window`], and SCTP's own.

pub mod coupled;
mod cubic;
pub mod pooling;
mod reno;
pub mod standard;

pub(super) use cubic::make as make_cubic;
pub(super) use reno::make as make_reno;

pub use crate::control::window::{
    Acked, Alpha, Congestion, Cubic, Estimated, Halving, Loss, Lost, MakeWindow, Reno, Sibling, Start,
};

#[cfg(test)]
mod tests {
    use super::{Acked, Loss, Lost, Start};
    use crate::{Config, Policies, PolicySpec, Time};

    /// After a pause no window is larger than it is told, nor than it was; its threshold stays.
    //= rfc5681#section-4.1
    #[test]
    fn every_window_can_begin_anew() {
        let policies = Policies::default();
        for name in policies.window_names() {
            let make = policies.window(&PolicySpec::named(name), &Config::default()).expect("no settings");
            let mut window = make(Start { unit: 1000, window: 20_000, ssthresh: 8000 });
            for most in [30_000, 4000, 10_000] {
                window.restart(most);
            }
            assert_eq!((window.window(), window.ssthresh()), (4000, 8000), "{name}");
        }
    }

    /// A path that answers after it was potentially failed begins with the number of packets that is asked for.
    #[test]
    fn every_window_can_be_reopened() {
        let policies = Policies::default();
        for name in policies.window_names() {
            let make = policies.window(&PolicySpec::named(name), &Config::default()).expect("no settings");
            let mut window = make(Start { unit: 1000, window: 1000, ssthresh: 8000 });
            window.reopen(2);
            assert_eq!((window.window(), window.ssthresh()), (2000, 8000), "{name}");
        }
    }

    /// By the default rules, 20 packets become 10, 5 and 4, and ssthresh what they were.
    //= rfc9260#section-7.2.1
    #[test]
    fn every_window_decays_while_nothing_is_sent() {
        let policies = Policies::default();
        for name in policies.window_names() {
            let make = policies.window(&PolicySpec::named(name), &Config::default()).expect("no settings");
            let mut window = make(Start { unit: 1000, window: 20_000, ssthresh: 8000 });
            let seen = [1, 2, 3].map(|times| (window.idle(times), window.window(), window.ssthresh()));
            assert_eq!(seen, [(true, 10_000, 20_000), (true, 5000, 20_000), (false, 4000, 20_000)], "{name}");
        }
    }

    /// Packets of another size change neither the window nor its threshold, but all that is counted in packets: here
    /// the window after a timeout, and how much one acknowledgement of slow start adds.
    //= rfc8899#section-3
    //= rfc9260#section-7.2.1
    #[test]
    fn every_window_can_count_in_another_unit() {
        let policies = Policies::default();
        for name in policies.window_names() {
            let make = policies.window(&PolicySpec::named(name), &Config::default()).expect("no settings");
            for unit in [500, 2000] {
                let mut window = make(Start { unit: 1000, window: 20_000, ssthresh: 40_000 });
                window.set_unit(unit);
                assert_eq!((window.window(), window.ssthresh()), (20_000, 40_000), "{name}");
                window.lost(&Lost { now: Time::ZERO, how: Loss::Timeout, outstanding: 20_000 }, &[]);
                assert_eq!(window.window(), unit, "{name}");
                let flight = window.window();
                let acked = Acked {
                    cumulative: 4000,
                    advanced: true,
                    flight_before: flight,
                    unacknowledged_before: flight,
                    ..Acked::default()
                };
                window.acked(&acked, &[]);
                assert_eq!(window.window(), 2 * unit, "{name}");
            }
        }
    }
}
