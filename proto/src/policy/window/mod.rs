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
    use super::Start;
    use crate::{Config, Policies, PolicySpec};

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
}
