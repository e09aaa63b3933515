//! A policy as a configuration names it, and its typed settings.

use std::collections::BTreeMap;

use crate::Duration;

/// A policy as a configuration names it: `"same"`, or `{ name = "rtx-lossrate", window = "10 s" }`.
#[derive(Clone, PartialEq, Debug)]
pub struct PolicySpec {
    /// Its row in [`Policies`](super::Policies).
    pub name: String,
    /// Its own keys, which its constructor checks.
    pub settings: BTreeMap<String, Setting>,
}

/// The value of a policy's own key.
#[derive(Clone, PartialEq, Debug)]
pub enum Setting {
    /// A word.
    Text(String),
    /// A number; `"1 %"` is 0.01.
    Number(f64),
    /// A duration.
    Duration(Duration),
    /// True or false.
    Boolean(bool),
    /// An array.
    List(Vec<Setting>),
}

impl Setting {
    /// The word; empty for any other value.
    pub fn text(&self) -> &str {
        if let Setting::Text(text) = self { text } else { "" }
    }
}

impl PolicySpec {
    /// The policy `name` without settings.
    pub fn named(name: &str) -> Self {
        PolicySpec { name: name.to_owned(), settings: BTreeMap::new() }
    }

    /// An error with the text `why`.
    pub fn refuse(&self, why: impl Into<String>) -> PolicyError {
        PolicyError::Setting { name: self.name.clone(), why: why.into() }
    }

    /// Refuses every setting except these.
    pub fn allow(&self, known: &[&str]) -> Result<(), PolicyError> {
        match self.settings.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => Err(self.refuse(format!("it has no setting `{key}`"))),
        }
    }

    /// The duration `key`, above zero, if it is given.
    pub fn duration(&self, key: &str) -> Result<Option<Duration>, PolicyError> {
        match self.settings.get(key) {
            None => Ok(None),
            Some(Setting::Duration(duration)) if !duration.is_zero() => Ok(Some(*duration)),
            Some(_) => Err(self.refuse(format!("`{key}` must be a duration above zero, as \"10 s\""))),
        }
    }

    /// The array of numbers above zero `key`, if it is given.
    pub fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>, PolicyError> {
        let wrong =
            || self.refuse(format!("`{key}` must be an array of numbers above zero, as [10e6, 36e3]"));
        let number = |setting: &Setting| match setting {
            Setting::Number(n) if n.is_finite() && *n > 0.0 => Ok(*n),
            _ => Err(wrong()),
        };
        match self.settings.get(key) {
            None => Ok(None),
            Some(Setting::List(list)) if !list.is_empty() => {
                list.iter().map(number).collect::<Result<_, _>>().map(Some)
            }
            Some(_) => Err(wrong()),
        }
    }

    /// The array of fractions `key`, each from 0 to 1, if it is given.
    pub fn fractions(&self, key: &str) -> Result<Option<Vec<f64>>, PolicyError> {
        let wrong = || self.refuse(format!("`{key}` must be an array of fractions, as [\"1 %\", \"4 %\"]"));
        let fraction = |setting: &Setting| match setting {
            Setting::Number(n) if (0.0..=1.0).contains(n) => Ok(*n),
            _ => Err(wrong()),
        };
        match self.settings.get(key) {
            None => Ok(None),
            Some(Setting::List(list)) if !list.is_empty() => {
                list.iter().map(fraction).collect::<Result<_, _>>().map(Some)
            }
            Some(_) => Err(wrong()),
        }
    }
}

/// Why a policy could not be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PolicyError {
    /// No row has this name.
    #[error("unknown policy `{name}`; known: {known}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The policy does not take this setting, or not this value.
    #[error("policy `{name}`: {why}")]
    Setting {
        /// The policy.
        name: String,
        /// The reason.
        why: String,
    },
}

/// Refuses every setting: for policies that have none.
pub(super) fn no_settings(spec: &PolicySpec) -> Result<(), PolicyError> {
    spec.allow(&[])
}
