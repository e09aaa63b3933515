//! `cubic`: [`crate::control::window::Cubic`] as a policy.

use std::sync::Arc;

use super::{Alpha, Cubic, MakeWindow};
use crate::Config;
use crate::control::window::Decay;
use crate::policy::{PolicyError, PolicySpec};

pub(in crate::policy) fn make(spec: &PolicySpec, config: &Config) -> Result<MakeWindow, PolicyError> {
    let mut alpha = Alpha::default();
    for (key, value) in &spec.settings {
        alpha = match (key.as_str(), value.text()) {
            ("alpha", "one") => Alpha::One,
            ("alpha", "constant") => Alpha::Constant,
            _ => {
                let why = "its only setting is `alpha`, \"one\" (RFC 9438) or \"constant\" (RFC 8312, Linux)";
                return Err(PolicyError::Setting { name: spec.name.clone(), why: why.to_owned() });
            }
        };
    }
    let decay = Decay::of(&config.rules);
    Ok(Arc::new(move |start| Box::new(Cubic::new(start, alpha).decaying(decay))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Acked, Setting, Start};
    use crate::{Duration, Time};

    /// `constant` is about half a unit for a round trip, `one` a whole one, once the window is where it was before the
    /// loss.
    #[test]
    fn alpha_is_one_or_constant() {
        let spec = |key: &str, value: &str| PolicySpec {
            settings: [(key.to_owned(), Setting::Text(value.to_owned()))].into(),
            ..PolicySpec::named("cubic")
        };
        let made = |key, value| make(&spec(key, value), &Config::default());
        let grown = |value| {
            let mut window = made("alpha", value).expect("a value of it")(Start {
                unit: 1000,
                window: 10_000,
                ssthresh: 5000,
            });
            for step in 1..=10 {
                let acked = Acked {
                    now: Time::from_nanos(step * 1_000_000),
                    cumulative: 1000,
                    advanced: true,
                    flight_before: window.window(),
                    unacknowledged_before: window.window(),
                    flight: window.window() - 1000,
                    rtt: Some(Duration::from_millis(10)),
                    ..Acked::default()
                };
                window.acked(&acked, &[]);
            }
            window.window() - 10_000
        };
        let [one, constant] = ["one", "constant"].map(grown);
        assert!(one > 900 && (400..600).contains(&constant), "{one} and {constant} bytes");
        assert!(made("alpha", "two").is_err() && made("beta", "one").is_err());
    }
}
