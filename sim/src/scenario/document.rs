//! The TOML document as a tree in which every key and value knows its place. `--set` edits this tree, so that later
//! errors still point at the line of the file or at the option.

use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::at::At;
use super::error::{ScenarioError, Source, did_you_mean};

/// A scenario as text: TOML, with the edits of `--set`.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file first, then one text for each edit.
    sources: Vec<Arc<Source>>,
    root: Node,
}

/// A place in one of the document's texts.
#[derive(Clone, Debug)]
pub struct Place {
    source: usize,
    span: Range<usize>,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it stands.
    pub place: Place,
    /// The value.
    pub value: Value,
}

#[derive(Clone, Debug)]
/// A TOML value, with the places of its parts.
pub enum Value {
    /// A string.
    String(String),
    /// A whole number.
    Integer(i128),
    /// A number with a fraction.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// A date or time, as it is written.
    Datetime(String),
    /// An array.
    Array(Vec<Node>),
    /// A table, in the order of the text.
    Table(Vec<Entry>),
}

/// A key of a table, its place, and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub place: Place,
    /// Its value.
    pub node: Node,
}

impl Document {
    /// Parses the TOML `text` of `file`. [`Document::scenario`] checks later whether it is a scenario.
    pub fn parse(file: &str, text: &str) -> Result<Document, ScenarioError> {
        let source = Arc::new(Source { name: file.to_owned(), text: text.to_owned() });
        let parsed = DeTable::parse(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let key = text.get(span.clone()).filter(|_| error.message() == "duplicate key");
            ScenarioError::new(&source, span, key.unwrap_or(""), error.message())
        })?;
        let (span, table) = (parsed.span(), parsed.into_inner());
        let convert = Convert { from: &source, source: 0, offset: 0 };
        let root = convert.node(Spanned::new(span, DeValue::Table(table)))?;
        Ok(Document { sources: vec![source], root })
    }

    /// Edits the document by `KEY=VALUE`; `option` names the source of the edit. Tables in an array are addressed by
    /// their `name` (`flow.download.start`), tables without a name by their number from 1 (`change.1.at`). The value
    /// is read as TOML if possible, otherwise as a string. Several keys, separated by commas, get the same value.
    pub fn set(&mut self, option: &str, assignment: &str) -> Result<(), ScenarioError> {
        self.set_like("seed=7, or flow.download.sctp.retransmit=same", option, assignment)
    }

    /// [`Document::set`], with an `example` for who gives no `KEY=VALUE`.
    pub(super) fn set_like(
        &mut self,
        example: &str,
        option: &str,
        assignment: &str,
    ) -> Result<(), ScenarioError> {
        let source = Arc::new(Source { name: option.to_owned(), text: assignment.to_owned() });
        let whole = 0..assignment.len();
        let Some((key, value)) = assignment.split_once('=') else {
            return Err(ScenarioError::new(&source, whole, "", "this is no KEY=VALUE")
                .hint(format!("for example {example}")));
        };
        let place = Place { source: self.sources.len(), span: 0..key.len() };
        let node = self.edited_value(&source, key.len() + 1, value)?;
        for path in paths(key) {
            if path.iter().any(|step| step.trim().is_empty()) {
                return Err(ScenarioError::new(&source, place.span, "", "a key is empty"));
            }
            edit(&mut self.root, &path, place.clone(), node.clone()).map_err(|(message, hint)| {
                ScenarioError::new(&source, place.span.clone(), key.trim(), message).maybe_hint(hint)
            })?;
        }
        self.sources.push(source);
        Ok(())
    }

    /// Puts the value at `from`, which may belong to another document, at `key`; addresses are those of
    /// [`Document::set`]. Errors in the value point at its own place.
    pub fn graft(&mut self, key: &str, from: &At<'_>) -> Result<(), ScenarioError> {
        let source = from.source().clone();
        let node = from.node().clone().moved_to(self.sources.len());
        for path in paths(key) {
            if path.iter().any(|step| step.is_empty()) {
                return Err(from.error(format!("`{key}` is no key")).hint("for example \"link.wifi.loss\""));
            }
            edit(&mut self.root, &path, node.place.clone(), node.clone()).map_err(|(message, hint)| {
                let error = from.error(format!("`{key}`: {message}"));
                error.maybe_hint(hint)
            })?;
        }
        self.sources.push(source);
        Ok(())
    }

    /// The whole document as JSON, without comments and places.
    pub fn json(&self) -> serde_json::Value {
        self.root.value.json()
    }

    /// The text that contains `place`.
    pub(super) fn source(&self, place: &Place) -> &Arc<Source> {
        &self.sources[place.source]
    }

    fn edited_value(&self, from: &Arc<Source>, start: usize, text: &str) -> Result<Node, ScenarioError> {
        let trimmed = text.trim();
        let offset = start + (text.len() - text.trim_start().len());
        let convert = Convert { from, source: self.sources.len(), offset };
        match DeValue::parse(trimmed) {
            Ok(value) => convert.node(value),
            Err(_) => {
                Ok(Node { place: convert.place(0..trimmed.len()), value: Value::String(trimmed.to_owned()) })
            }
        }
    }

    /// The file of the document.
    pub fn file(&self) -> &str {
        &self.sources[0].name
    }

    /// The text of that file.
    pub fn text(&self) -> &str {
        &self.sources[0].text
    }

    /// The edits that were made by [`Document::set`], in order, each `KEY=VALUE`.
    pub fn edits(&self) -> impl Iterator<Item = &str> {
        self.sources[1..].iter().map(|source| source.text.as_str())
    }

    /// The value of `key`, as JSON. Of several keys, that of the first.
    pub fn get(&self, key: &str) -> Option<serde_json::Value> {
        let path = paths(key).next()?;
        self.find(&path).filter(|rest| rest.1 == path.len()).map(|(node, _)| node.value.json())
    }

    /// An error at the item that `key` names, or at the nearest table around it.
    pub fn error(&self, key: &str, message: impl Into<String>) -> ScenarioError {
        let path: Vec<&str> = key.split('.').collect();
        let place = self.find(&path).map_or(&self.root.place, |(node, _)| &node.place);
        self.error_at(place, key, message)
    }

    /// An error at `place`, about `key`.
    pub fn error_at(&self, place: &Place, key: &str, message: impl Into<String>) -> ScenarioError {
        ScenarioError::new(&self.sources[place.source], place.span.clone(), key, message)
    }

    /// The table that is the whole document.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The deepest existing node along `path`, and the number of steps that lead to it.
    fn find(&self, path: &[&str]) -> Option<(&Node, usize)> {
        let mut node = &self.root;
        for (taken, step) in path.iter().enumerate() {
            match node.value.child(step) {
                Some(child) => node = child,
                None => return (taken > 0).then_some((node, taken)),
            }
        }
        Some((node, path.len()))
    }
}

impl Node {
    /// The same node as part of a document whose text is `source`.
    fn moved_to(mut self, source: usize) -> Node {
        self.place.source = source;
        self.value = match self.value {
            Value::Array(items) => {
                Value::Array(items.into_iter().map(|item| item.moved_to(source)).collect())
            }
            Value::Table(entries) => Value::Table(
                entries
                    .into_iter()
                    .map(|entry| Entry {
                        place: Place { source, ..entry.place },
                        node: entry.node.moved_to(source),
                        ..entry
                    })
                    .collect(),
            ),
            plain => plain,
        };
        self
    }
}

impl Value {
    /// The entry `key`, if this is a table that has it.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        match self {
            Value::Table(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    fn child(&self, step: &str) -> Option<&Node> {
        match self {
            Value::Array(items) => position(items, step).map(|i| &items[i]),
            _ => self.entry(step).map(|entry| &entry.node),
        }
    }

    /// The table's `name`, if it has one.
    pub fn name(&self) -> Option<&str> {
        match self.entry("name").map(|entry| &entry.node.value) {
            Some(Value::String(name)) => Some(name),
            _ => None,
        }
    }

    /// The kind of value, with its article.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::String(_) => "a string",
            Value::Integer(_) | Value::Float(_) => "a number",
            Value::Boolean(_) => "a boolean",
            Value::Datetime(_) => "a date or time",
            Value::Array(_) => "an array",
            Value::Table(_) => "a table",
        }
    }

    pub(super) fn json(&self) -> serde_json::Value {
        match self {
            Value::String(text) | Value::Datetime(text) => text.as_str().into(),
            Value::Integer(n) => {
                i64::try_from(*n).map(Into::into).or(u64::try_from(*n).map(Into::into)).unwrap_or_default()
            }
            Value::Float(f) => (*f).into(),
            Value::Boolean(b) => (*b).into(),
            Value::Array(items) => items.iter().map(|item| item.value.json()).collect(),
            Value::Table(entries) => {
                entries.iter().map(|entry| (entry.key.clone(), entry.node.value.json())).collect()
            }
        }
    }
}

/// The item of an array that `step` addresses: the table with this name, otherwise the item with this number.
fn position(items: &[Node], step: &str) -> Option<usize> {
    let named = items.iter().position(|item| item.value.name() == Some(step));
    named.or_else(|| step.parse::<usize>().ok()?.checked_sub(1).filter(|i| *i < items.len()))
}

/// The steps to each of the keys that `keys` has between its commas.
fn paths(keys: &str) -> impl Iterator<Item = Vec<&str>> {
    keys.split(',').map(|key| key.trim().split('.').collect())
}

/// Puts `new` at the end of `path`, and creates missing tables on the way.
fn edit(node: &mut Node, path: &[&str], at: Place, new: Node) -> Result<(), (String, Option<String>)> {
    let Some((step, rest)) = path.split_first() else {
        *node = new;
        return Ok(());
    };
    match &mut node.value {
        Value::Array(items) => match position(items, step) {
            Some(i) => edit(&mut items[i], rest, at, new),
            None => {
                let names: Vec<_> = items.iter().filter_map(|item| item.value.name()).collect();
                let hint = did_you_mean(step, names.iter().copied());
                Err((format!("nothing is called `{step}` here"), Some(hint)))
            }
        },
        Value::Table(entries) => {
            let known = entries.iter().position(|entry| entry.key == *step);
            // A number addresses a table that the document has.
            if let (None, Some(number)) = (known, rest.first().filter(|next| next.parse::<usize>().is_ok())) {
                let message = format!("there is no `[[{step}]]`, so none has the number {number}");
                return Err((message, Some(format!("write the `[[{step}]]` into the file"))));
            }
            let i = known.unwrap_or_else(|| {
                let node = Node { place: at.clone(), value: Value::Table(Vec::new()) };
                entries.push(Entry { key: (*step).to_owned(), place: at.clone(), node });
                entries.len() - 1
            });
            if rest.is_empty() {
                entries[i].place = at.clone();
            }
            edit(&mut entries[i].node, rest, at, new)
        }
        other => Err((format!("`{step}` cannot be set: what should hold it is {}", other.kind()), None)),
    }
}

/// Converts the parser's values, with their places.
struct Convert<'a> {
    from: &'a Arc<Source>,
    source: usize,
    /// The place in the source at which the parsed text begins.
    offset: usize,
}

impl Convert<'_> {
    fn place(&self, span: Range<usize>) -> Place {
        Place { source: self.source, span: span.start + self.offset..span.end + self.offset }
    }

    /// The parser's values are larger, so each is freed as soon as it is converted.
    fn node(&self, parsed: Spanned<DeValue<'_>>) -> Result<Node, ScenarioError> {
        let place = self.place(parsed.span());
        let bad = |why: &str| ScenarioError::new(self.from, place.span.clone(), "", why);
        let value = match parsed.into_inner() {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Integer(n) => Value::Integer(
                i128::from_str_radix(n.as_str(), n.radix()).map_err(|_| bad("this number is too large"))?,
            ),
            DeValue::Float(f) => Value::Float(f.as_str().parse().map_err(|_| bad("this is no number"))?),
            DeValue::Boolean(b) => Value::Boolean(b),
            DeValue::Datetime(d) => Value::Datetime(d.to_string()),
            DeValue::Array(items) => {
                Value::Array(items.into_iter().map(|item| self.node(item)).collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => self.table(table)?,
        };
        Ok(Node { place, value })
    }

    fn table(&self, table: DeTable<'_>) -> Result<Value, ScenarioError> {
        let mut entries = Vec::with_capacity(table.len());
        for (key, node) in table {
            let (place, node) = (self.place(key.span()), self.node(node)?);
            entries.push(Entry { key: key.into_inner().into_owned(), place, node });
        }
        // In the order of the text, so that the first fault is reported.
        entries.sort_by_key(|entry| entry.place.span.start);
        Ok(Value::Table(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "seed = 1\n[[flow]]\nname = 'a'\n[[flow]]\nname = 'b'\n[flow.sctp]\nera = 'ns2'\n";

    fn edited(assignment: &str) -> Result<Document, ScenarioError> {
        let mut document = Document::parse("file.toml", TEXT)?;
        document.set("--set", assignment)?;
        Ok(document)
    }

    #[test]
    fn an_edit_reaches_named_tables_and_makes_missing_ones() {
        assert_eq!(edited("flow.b.sctp.era=rfc9260").unwrap().get("flow.b.sctp.era"), Some("rfc9260".into()));
        assert_eq!(edited("flow.a.sctp.max_burst=8").unwrap().get("flow.a.sctp.max_burst"), Some(8.into()));
        assert_eq!(edited("flow.2.start = 5 s").unwrap().get("flow.b.start"), Some("5 s".into()));
        assert_eq!(edited("seed=7").unwrap().get("seed"), Some(7.into()));
    }

    #[test]
    fn an_edit_of_several_keys_gives_them_one_value() {
        let document = edited("flow.a.sctp.era, flow.b.sctp.era=rfc9260").unwrap();
        assert_eq!(document.get("flow.a.sctp.era"), Some("rfc9260".into()));
        assert_eq!(document.get("flow.b.sctp.era"), Some("rfc9260".into()));
        assert_eq!(document.get("flow.b.sctp.era, seed"), Some("rfc9260".into()));
        let error = edited("seed,flow.c.start=1").unwrap_err().to_string();
        assert!(error.contains("nothing is called `c` here"));
        assert!(edited("seed,=1").unwrap_err().to_string().contains("empty"));
    }

    #[test]
    fn an_edit_that_cannot_be_made_says_why() {
        let message = |assignment| edited(assignment).unwrap_err().to_string();
        assert!(message("flow.c.start=1").contains("nothing is called `c` here"));
        assert!(message("flow.aa.start=1").contains("did you mean `a`?"));
        assert!(message("seed.x=1").contains("is a number"));
        assert!(message("seed").contains("KEY=VALUE"));
        assert!(message("flow..x=1").contains("empty"));
        assert!(message("flow.0.x=1").contains("nothing is called `0`"));
        assert!(message("change.1.at=1").contains("there is no `[[change]]`, so none has the number 1"));
    }

    #[test]
    fn errors_point_at_the_file_or_at_the_option() {
        let document = edited("flow.b.sctp.era=x").unwrap();
        assert_eq!(document.error("flow.b.name", "wrong").line(), 5);
        assert_eq!(document.error("flow.b.sctp.era", "wrong").file(), "--set");
        assert_eq!(document.error("flow.b.nothing", "wrong").line(), 4);
        assert_eq!(document.error("nothing", "wrong").line(), 1);
    }
}
