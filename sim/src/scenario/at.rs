//! A value of the document, and how it is converted.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use anabranch_proto::{PolicySpec, Setting};

use super::Amount;
use super::document::{Document, Entry, Node, Place, Value};
use super::error::{ScenarioError, Source, did_you_mean, listed};
use super::units::{self, BadQuantity, Dimension};

/// The result of reading a part of a document.
pub type Result<T> = std::result::Result<T, ScenarioError>;

/// A value and its address.
#[derive(Clone, Debug)]
pub struct At<'d> {
    document: &'d Document,
    /// The address in the spelling of `--set`; empty for the document itself.
    path: String,
    node: &'d Node,
}

impl<'d> At<'d> {
    /// The document itself.
    pub fn root(document: &'d Document) -> Self {
        At { document, path: String::new(), node: document.root() }
    }

    fn below(&self, step: &str, node: &'d Node) -> At<'d> {
        let path = if self.path.is_empty() { step.to_owned() } else { format!("{}.{step}", self.path) };
        At { document: self.document, path, node }
    }

    /// The file of the document. Names of other files are relative to it.
    pub(super) fn file(&self) -> &'d str {
        self.document.file()
    }

    /// The value, of any kind.
    pub fn value(&self) -> &'d Value {
        &self.node.value
    }

    pub(super) fn node(&self) -> &'d Node {
        self.node
    }

    /// The text that contains this value.
    pub(super) fn source(&self) -> &'d Arc<Source> {
        self.document.source(self.place())
    }

    /// The value as JSON.
    pub fn json(&self) -> serde_json::Value {
        self.node.value.json()
    }

    fn place(&self) -> &'d Place {
        &self.node.place
    }

    /// An error at this value.
    pub fn error(&self, message: impl Into<String>) -> ScenarioError {
        self.document.error_at(self.place(), &self.path, message)
    }

    /// An error at the entry `key` of this table, or at the table if the entry is missing.
    pub fn error_below(&self, key: &str, message: impl Into<String>) -> ScenarioError {
        match self.get(key) {
            Some(at) => at.error(message),
            None => {
                let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
                self.document.error_at(self.place(), &path, message)
            }
        }
    }

    /// The error for an unknown entry of this table.
    pub fn no_such_key(&self, entry: &Entry) -> ScenarioError {
        let path = self.below(&entry.key, &entry.node).path;
        self.document.error_at(&entry.place, &path, "there is no such key")
    }

    /// The protocol of the flow to which this table belongs, if it is of a flow: its name in a scenario.
    pub(super) fn protocol_of_flow(&self) -> Option<String> {
        let mut steps = self.path.split('.');
        let flow = match (steps.next(), steps.next()) {
            (Some("flow"), Some(name)) => format!("flow.{name}.protocol"),
            _ => return None,
        };
        let given = self.document.get(&flow);
        Some(given.as_ref().map_or("sctp", |given| given.as_str().unwrap_or_default()).to_owned())
    }

    pub(super) fn wrong(&self, expected: &str) -> ScenarioError {
        self.error(format!("expected {expected}, found {}", self.node.value.kind()))
    }

    /// The entries of this table.
    pub fn entries(&self) -> Result<&'d [Entry]> {
        match &self.node.value {
            Value::Table(entries) => Ok(entries),
            _ => Err(self.wrong("a table")),
        }
    }

    /// The entry `key` of this table.
    pub fn get(&self, key: &str) -> Option<At<'d>> {
        self.node.value.entry(key).map(|entry| self.below(key, &entry.node))
    }

    /// The tables of an array of tables, each addressed by its name or else its number.
    pub fn tables(&self) -> Result<Vec<At<'d>>> {
        let last = self.path.rsplit('.').next().unwrap_or_default();
        let hint = format!("begin each with a line `[[{last}]]`");
        let Value::Array(items) = &self.node.value else {
            return Err(self.wrong("an array of tables").hint(hint));
        };
        let table = |(i, node): (usize, &'d Node)| {
            let at = self.below(&(i + 1).to_string(), node);
            match (&node.value, node.value.name()) {
                (Value::Table(_), Some(name)) if !name.is_empty() => Ok(self.below(name, node)),
                (Value::Table(_), _) => Ok(at),
                _ => Err(at.wrong("a table").hint(hint.clone())),
            }
        };
        items.iter().enumerate().map(table).collect()
    }

    /// The values of an array; `expected` describes them for the error.
    pub fn array(&self, expected: &str) -> Result<Vec<At<'d>>> {
        let Value::Array(items) = &self.node.value else { return Err(self.wrong(expected)) };
        Ok(items.iter().map(|node| At { node, ..self.clone() }).collect())
    }

    /// The value as a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self.node.value {
            Value::Integer(n) => Some(n as f64),
            Value::Float(f) => Some(f),
            _ => None,
        }
    }

    /// Whether the value is an array.
    pub fn is_array(&self) -> bool {
        matches!(self.node.value, Value::Array(_))
    }

    /// A value that may differ between a link's directions: one value, or `[a>b, b>a]`.
    pub fn pair<T: Clone>(&self, read: impl Fn(&At<'d>) -> Result<T>) -> Result<[T; 2]> {
        let Value::Array(_) = &self.node.value else {
            let both = read(self)?;
            return Ok([both.clone(), both]);
        };
        match self.array("an array")?.as_slice() {
            [there, back] => Ok([read(there)?, read(back)?]),
            items => Err(self
                .error(format!("expected one value, or one for each direction, found {}", items.len()))
                .hint("[forward, backward]: the first is the direction from the first node of `between`")),
        }
    }

    /// A string.
    pub fn string(&self) -> Result<&'d str> {
        match &self.node.value {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong("a string").hint("put it between quotes")),
        }
    }

    /// The name of a link, node or flow. It must be usable in `--set`, in path names and as a file name.
    pub fn name(&self) -> Result<String> {
        let name = self.string()?;
        let usable = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        match name {
            "" => Err(self.error("a name cannot be empty")),
            _ if name.chars().all(usable) => Ok(name.to_owned()),
            _ => Err(self
                .error(format!("`{name}` cannot be a name"))
                .hint("names are made of letters, digits, `-` and `_`")),
        }
    }

    /// `true` or `false`.
    pub fn boolean(&self) -> Result<bool> {
        match self.node.value {
            Value::Boolean(b) => Ok(b),
            _ => Err(self.wrong("true or false")),
        }
    }

    /// A whole number within `range`.
    pub fn count<T>(&self, range: RangeInclusive<T>) -> Result<T>
    where
        T: Copy + std::fmt::Display + TryFrom<i128> + Into<i128>,
    {
        let Value::Integer(n) = self.node.value else {
            return Err(self.wrong("a whole number, without unit"));
        };
        let (low, high): (i128, i128) = ((*range.start()).into(), (*range.end()).into());
        match T::try_from(n) {
            Ok(count) if (low..=high).contains(&n) => Ok(count),
            _ => Err(self.error(format!("{n} is out of range")).hint(format!("it must be {low} to {high}"))),
        }
    }

    /// One of the spellings `names`; `what` describes them for the error.
    pub fn one_of<'n>(&self, what: &str, names: &[&'n str]) -> Result<&'n str> {
        let text = self
            .string()
            .map_err(|error| error.hint(format!("there is {}", listed(names.iter().copied()))))?;
        let found = names.iter().find(|name| **name == text).copied();
        found.ok_or_else(|| self.unknown(what, text, names.iter().copied()))
    }

    /// An error that no `what` has the name `name`.
    pub fn unknown<'n>(
        &self,
        what: &str,
        name: &str,
        names: impl IntoIterator<Item = &'n str> + Clone,
    ) -> ScenarioError {
        self.error(format!("there is no {what} `{name}`")).hint(did_you_mean(name, names))
    }

    fn quantity(&self, dimension: &Dimension) -> Result<u64> {
        self.parsed(dimension.what, &dimension.advice(), |text| dimension.read(text))
    }

    /// Reads a text with `read`. A number without a unit is refused with `advice` on how to write it.
    pub(super) fn parsed<T>(
        &self,
        what: &str,
        advice: &str,
        read: impl Fn(&str) -> std::result::Result<T, BadQuantity>,
    ) -> Result<T> {
        let refused = |bad: BadQuantity| self.error(bad.message).hint(bad.hint);
        match &self.node.value {
            Value::String(text) => read(text).map_err(refused),
            Value::Integer(n) => read(&n.to_string()).map_err(refused),
            Value::Float(f) => read(&f.to_string()).map_err(refused),
            _ => Err(self.wrong(what).hint(advice)),
        }
    }

    /// Bit/s; not zero.
    pub fn rate(&self) -> Result<u64> {
        match self.quantity(&units::RATE)? {
            0 => Err(self.error("a rate cannot be zero")),
            rate => Ok(rate),
        }
    }

    /// A rate in bit/s; it may be zero.
    pub(super) fn rate_or_zero(&self) -> Result<u64> {
        self.quantity(&units::RATE)
    }

    /// The rate of a link in bit/s; not zero.
    pub fn link_rate(&self) -> Result<u64> {
        match self.quantity(&units::RATE)? {
            0 => Err(self.error("a rate cannot be zero").hint("a link is switched off by `up = false`")),
            rate => Ok(rate),
        }
    }

    /// Metres; more than zero.
    pub fn length(&self) -> Result<f64> {
        match self.quantity(&units::LENGTH)? {
            0 => Err(self.error("this length cannot be zero").hint(units::LENGTH.advice())),
            millimetres => Ok(units::metres(millimetres)),
        }
    }

    /// Metres east and north.
    pub fn place_of(&self) -> Result<[f64; 2]> {
        const FORM: &str = "at = [\"300 m\", \"-0.5 km\"]";
        let items = self.array("an array of two lengths").map_err(|error| error.hint(FORM))?;
        let metres = |at: &At<'_>| at.parsed("a length", &units::LENGTH.advice(), units::coordinate);
        match items.as_slice() {
            [east, north] => Ok([metres(east)?, metres(north)?]),
            _ => Err(self.error(format!("a place is two lengths, found {}", items.len())).hint(FORM)),
        }
    }

    /// Hz; more than zero.
    pub fn frequency(&self) -> Result<f64> {
        match self.quantity(&units::FREQUENCY)? {
            0 => Err(self.error("a frequency cannot be zero").hint(units::FREQUENCY.advice())),
            hertz => Ok(hertz as f64),
        }
    }

    /// Decibels, with `unit` (`dB` or `dBm`), within `range`.
    pub fn decibels(&self, unit: &str, range: RangeInclusive<f64>) -> Result<f64> {
        let number =
            self.parsed(unit, &format!("write it as \"10 {unit}\""), |text| units::decibels(text, unit))?;
        match range.contains(&number) {
            true => Ok(number),
            false => Err(self.error(format!("{number} {unit} is out of range")).hint(format!(
                "it must be {} {unit} to {} {unit}",
                range.start(),
                range.end()
            ))),
        }
    }

    /// A plain number within `range`.
    pub fn fraction(&self, range: RangeInclusive<f64>) -> Result<f64> {
        let number = self.number().ok_or_else(|| self.wrong("a number, without unit"))?;
        match range.contains(&number) {
            true => Ok(number),
            false => Err(self.error(format!("{number} is out of range")).hint(format!(
                "it must be {} to {}",
                range.start(),
                range.end()
            ))),
        }
    }

    /// A duration.
    pub fn duration(&self) -> Result<Duration> {
        self.parsed("a duration", &units::DURATION.advice(), units::duration)
    }

    /// Bytes, within `range`.
    pub fn size(&self, range: RangeInclusive<u64>) -> Result<u64> {
        let size = self.quantity(&units::SIZE)?;
        if range.contains(&size) {
            return Ok(size);
        }
        let (low, high) = (range.start(), range.end());
        Err(self.error(format!("{size} B is out of range")).hint(format!("it must be {low} B to {high} B")))
    }

    /// Bytes, within `range`.
    pub fn size32(&self, range: RangeInclusive<u32>) -> Result<u32> {
        let size = self.size((*range.start()).into()..=(*range.end()).into())?;
        u32::try_from(size).map_err(|_| self.error("this is too large"))
    }

    /// An amount in a queue: packets or bytes.
    pub fn amount(&self) -> Result<Amount> {
        self.parsed("a number of packets or a size", units::QUEUE_ADVICE, units::amount)
    }

    /// A window: packets or bytes.
    pub fn window(&self) -> Result<Amount> {
        self.parsed("a number of packets or a size", units::WINDOW_ADVICE, units::window)
    }

    /// A fraction written in percent: `"2 %"` is 0.02. It may exceed 1.
    pub fn percent(&self) -> Result<f64> {
        self.parsed("a percentage", units::PERCENT_ADVICE, units::percent)
    }

    /// A probability, written in percent.
    pub fn probability(&self) -> Result<f64> {
        let share = self.percent()?;
        match share <= 1.0 {
            true => Ok(share),
            false => Err(self.error("a probability cannot exceed 100 %")),
        }
    }

    /// A policy: a name, or a table of a name and the policy's settings.
    pub fn policy(&self) -> Result<PolicySpec> {
        let Value::Table(entries) = &self.node.value else {
            let hint = "a policy is a name, or a table { name = …, key = value }";
            return self.string().map(PolicySpec::named).map_err(|e| e.hint(hint));
        };
        let Some(name) = self.get("name") else {
            return Err(self.error("the policy's `name` is missing"));
        };
        let mut spec = PolicySpec::named(name.string()?);
        for entry in entries.iter().filter(|entry| entry.key != "name") {
            let at = self.below(&entry.key, &entry.node);
            spec.settings.insert(entry.key.clone(), at.setting()?);
        }
        Ok(spec)
    }

    /// A setting of a policy: a word, a number, a percentage, a duration, a boolean, or an array of these.
    fn setting(&self) -> Result<Setting> {
        Ok(match &self.node.value {
            Value::String(text) => worded(text),
            Value::Integer(n) => Setting::Number(*n as f64),
            Value::Float(f) => Setting::Number(*f),
            Value::Boolean(b) => Setting::Boolean(*b),
            Value::Array(_) => {
                let items = self.array("an array")?;
                Setting::List(items.iter().map(At::setting).collect::<Result<_>>()?)
            }
            _ => return Err(self.wrong("a string, a number, a boolean or an array")),
        })
    }
}

/// The meaning of a string in a policy's setting: a percentage, a duration, otherwise the string itself.
fn worded(text: &str) -> Setting {
    let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match (percent, units::duration(text)) {
        (Some(percent), _) => Setting::Number(percent / 100.0),
        (None, Ok(duration)) => Setting::Duration(duration),
        (None, Err(_)) => Setting::Text(text.to_owned()),
    }
}
