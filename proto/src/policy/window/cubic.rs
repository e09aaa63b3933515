//! `cubic`: [`crate::control::window::Cubic`] as a policy.

use std::sync::Arc;

use super::{Alpha, Cubic, MakePath};
use crate::Config;
use crate::policy::{PolicyError, PolicySpec};

pub(in crate::policy) fn make(spec: &PolicySpec, _: &Config) -> Result<MakePath, PolicyError> {
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
    Ok(Arc::new(move |start| Box::new(Cubic::new(start, alpha))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Setting;

    #[test]
    fn alpha_is_one_or_constant() {
        let spec = |key: &str, value: &str| PolicySpec {
            settings: [(key.to_owned(), Setting::Text(value.to_owned()))].into(),
            ..PolicySpec::named("cubic")
        };
        let made = |key, value| make(&spec(key, value), &Config::default());
        assert!(made("alpha", "one").is_ok() && made("alpha", "constant").is_ok());
        assert!(made("alpha", "two").is_err() && made("beta", "one").is_err());
    }
}
