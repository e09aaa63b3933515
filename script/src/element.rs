//! Chunks, parameters and causes as a script writes them. An [`Element`] can be encoded, compared with bytes, and
//! printed. Received bytes are split by their headers only, so no content is hidden by a decoder.

use std::fmt;
use std::net::IpAddr;

use super::form::{Family, Form, Slot};

/// An element as written in a script, or as read from bytes.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Element {
    pub(super) form: &'static Form,
    pub(super) number: Option<u16>,
    pub(super) flags: Option<u8>,
    /// `None` if it is open or follows from the fields.
    pub(super) length: Option<u16>,
    /// One entry for each slot that is written after the header; `None` is `...`.
    pub(super) fields: Vec<Option<Value>>,
}

/// The value of a slot.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    Integer(u32),
    Integers(Vec<u32>),
    Pairs(Vec<(u16, u16)>),
    Records(Vec<Vec<u32>>),
    Bytes(Vec<u8>),
    Text(Vec<u8>),
    Ip(IpAddr),
    /// Elements from a script.
    Elements(Vec<Element>),
    /// Elements as received bytes.
    Region(Family, Vec<u8>),
}

/// The bytes of a chunk, parameter or cause.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Bytes<'b> {
    pub(super) number: u16,
    /// Zero for parameters and causes, which have no flags.
    pub(super) flags: u8,
    pub(super) length: u16,
    pub(super) value: &'b [u8],
    pub(super) padding: &'b [u8],
}

pub(super) const HEADER: usize = 4;

/// The elements in `bytes`; `None` if a length is wrong.
pub(super) fn split(family: Family, mut bytes: &[u8]) -> Option<Vec<Bytes<'_>>> {
    let mut elements = Vec::new();
    while !bytes.is_empty() {
        let (element, rest) = first(family, bytes)?;
        elements.push(element);
        bytes = rest;
    }
    Some(elements)
}

/// The first element of `bytes`, and the bytes after its padding.
pub(super) fn first(family: Family, bytes: &[u8]) -> Option<(Bytes<'_>, &[u8])> {
    let &[a, b, c, d, ..] = bytes else { return None };
    let length = u16::from_be_bytes([c, d]);
    let value = bytes.get(HEADER..usize::from(length))?;
    let behind = &bytes[usize::from(length)..];
    let (padding, rest) =
        behind.split_at((usize::from(length).next_multiple_of(4) - usize::from(length)).min(behind.len()));
    let (number, flags) = match family {
        Family::Chunk => (u16::from(a), b),
        _ => (u16::from_be_bytes([a, b]), 0),
    };
    Some((Bytes { number, flags, length, value, padding }, rest))
}

/// Whether a slot has a field.
fn has_field(slot: &Slot) -> bool {
    !matches!(
        slot,
        Slot::Flags
            | Slot::Number(_)
            | Slot::Length
            | Slot::Zeros(_)
            | Slot::Counts(_)
            | Slot::LongCount
            | Slot::Payload
    )
}

/// The key of a slot; empty for lists.
pub(super) fn key(slot: &Slot) -> &'static str {
    use Slot::*;
    match slot {
        Flags => "flgs",
        Length => "len",
        Number(key)
        | Integer(key, _)
        | Either(key, _, _)
        | Maybe(key, _)
        | Records(key, _)
        | Pairs(key)
        | Integers(key, _)
        | Bytes(key)
        | Text(key, _)
        | Ipv4(key)
        | Ipv6(key)
        | Listed(key, _)
        | One(key, _) => key,
        List(Family::Cause) => "causes",
        List(_) => "params",
        Zeros(_) | Counts(_) | LongCount | Payload => "",
    }
}

impl Element {
    /// The slots that have fields, with their fields.
    fn slots(&self) -> impl Iterator<Item = (&'static Slot, &Option<Value>)> {
        self.form.slots.iter().filter(|slot| has_field(slot)).zip(&self.fields)
    }

    /// Size in bytes without the padding of the last part; `None` if an open value has no fixed size.
    pub(super) fn size(&self) -> Option<usize> {
        if self.form.has_length() {
            return self.length.map(usize::from);
        }
        let fixed: usize = self.form.slots.iter().map(fixed_size).sum();
        self.slots()
            .try_fold(HEADER + fixed, |sum, (slot, value)| Some(sum + value_size(slot, value.as_ref())?))
    }

    /// Appends the bytes without the last padding.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let number = self.number.or(self.form.number).unwrap_or(0);
        match self.form.family {
            Family::Chunk => out.extend([number as u8, self.flags.unwrap_or(0)]),
            _ => out.extend(number.to_be_bytes()),
        }
        out.extend([0, 0]);
        let mut fields = self.fields.iter();
        for slot in self.form.slots {
            match slot {
                Slot::Zeros(count) => out.extend(std::iter::repeat_n(0, *count)),
                Slot::Counts(_) | Slot::LongCount => self.put_counts(slot, out),
                Slot::Payload => {
                    out.resize(start + usize::from(self.length.unwrap_or(0)).max(out.len() - start), 0)
                }
                _ if has_field(slot) => {
                    if let Some(Some(value)) = fields.next() {
                        put_value(slot, value, out);
                    }
                }
                _ => {}
            }
        }
        let length = self.length.unwrap_or((out.len() - start) as u16);
        out[start + 2..start + HEADER].copy_from_slice(&length.to_be_bytes());
    }

    fn put_counts(&self, slot: &Slot, out: &mut Vec<u8>) {
        let count = |value: &Option<Value>| match value {
            Some(Value::Pairs(pairs)) => Some(pairs.len()),
            Some(Value::Integers(numbers)) => Some(numbers.len()),
            _ => None,
        };
        let counts = self.fields.iter().filter_map(count);
        match slot {
            Slot::LongCount => counts.for_each(|n| out.extend((n as u32).to_be_bytes())),
            _ => counts.for_each(|n| out.extend((n as u16).to_be_bytes())),
        }
    }

    /// Reads `bytes` with `form`; `None` if they do not have this form.
    pub(super) fn read(form: &'static Form, bytes: &Bytes<'_>) -> Option<Element> {
        let mut reader = Reader { rest: bytes.value, counts: Vec::new() };
        let mut fields = Vec::new();
        for slot in form.slots {
            let value = reader.slot(slot)?;
            if has_field(slot) {
                fields.push(Some(value?));
            }
        }
        if !reader.rest.is_empty() || form.number.is_some_and(|number| number != bytes.number) {
            return None;
        }
        let number = Some(bytes.number);
        Some(Element { form, number, flags: Some(bytes.flags), length: Some(bytes.length), fields })
    }

    /// Reads `bytes` with the form of their number, or else with the generic form.
    pub(super) fn of(family: Family, bytes: &Bytes<'_>) -> Option<Element> {
        Element::read(Form::numbered(family, bytes.number), bytes)
            .or_else(|| Element::read(Form::generic(family), bytes))
    }

    /// Prints a field of the header. Flags are printed as letters if each has one.
    fn header(&self, slot: &Slot, value: Option<&Value>) -> String {
        let Some(Value::Integer(n)) = value.filter(|_| *slot == Slot::Flags) else {
            return show(slot, value);
        };
        let set = self.form.letters().iter().filter(|(_, bit)| n & u32::from(*bit) != 0);
        let known: u32 = set.clone().map(|(_, bit)| u32::from(*bit)).sum();
        if known == *n && known > 0 { set.map(|(letter, _)| letter).collect() } else { n.to_string() }
    }

    /// The key of a slot. If a slot has two keys, the B flag selects one.
    fn key(&self, slot: &Slot) -> &'static str {
        match slot {
            Slot::Either(_, second, _) if self.flags.is_some_and(|flags| flags & 2 == 0) => second,
            other => key(other),
        }
    }

    /// Whether `bytes` match this element.
    pub(super) fn matches(&self, bytes: &Bytes<'_>) -> bool {
        self.compare(bytes).is_some_and(|rows| rows.iter().all(|row| row.same))
    }

    /// Compares field by field; `None` if the bytes do not have the form at all.
    pub(super) fn compare(&self, bytes: &Bytes<'_>) -> Option<Vec<Row>> {
        let got = Element::read(self.form, bytes)?;
        let mut fields = self.fields.iter().zip(&got.fields);
        let mut rows = Vec::new();
        for slot in self.form.slots {
            let (expected, same) = match slot {
                Slot::Flags => (
                    &self.flags.map(|n| Value::Integer(n.into())),
                    self.flags.is_none_or(|n| n == bytes.flags),
                ),
                Slot::Number(_) => (
                    &self.number.map(|n| Value::Integer(n.into())),
                    self.number.is_none_or(|n| n == bytes.number),
                ),
                Slot::Length => (
                    &self.length.map(|n| Value::Integer(n.into())),
                    self.length.is_none_or(|n| n == bytes.length),
                ),
                _ if has_field(slot) => match fields.next() {
                    Some((expected, Some(got))) => {
                        let same = expected.as_ref().is_none_or(|expected| same(expected, got));
                        rows.push(Row::new(slot, show(slot, expected.as_ref()), show(slot, Some(got)), same));
                        continue;
                    }
                    _ => return None,
                },
                _ => continue,
            };
            let got = match slot {
                Slot::Flags => u32::from(bytes.flags),
                Slot::Number(_) => u32::from(bytes.number),
                _ => u32::from(bytes.length),
            };
            let got = self.header(slot, Some(&Value::Integer(got)));
            rows.push(Row::new(slot, self.header(slot, expected.as_ref()), got, same));
        }
        if let Some(size) = self.size().filter(|_| !self.form.has_length()) {
            let same = size == usize::from(bytes.length);
            if !same {
                rows.push(Row {
                    key: "len",
                    expected: size.to_string(),
                    got: bytes.length.to_string(),
                    same,
                });
            }
        }
        Some(rows)
    }
}

/// One field of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Row {
    pub(super) key: &'static str,
    pub(super) expected: String,
    pub(super) got: String,
    pub(super) same: bool,
}

impl Row {
    fn new(slot: &Slot, expected: String, got: String, same: bool) -> Row {
        Row { key: key(slot), expected, got, same }
    }
}

/// Whether an expected value equals the received one.
fn same(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::Elements(expected), Value::Region(family, region)) => {
            let Some(got) = split(*family, region) else { return false };
            expected.len() == got.len() && expected.iter().zip(&got).all(|(e, g)| e.matches(g))
        }
        _ => expected == got,
    }
}

/// Bytes of a slot without a field.
fn fixed_size(slot: &Slot) -> usize {
    match slot {
        Slot::Zeros(count) => *count,
        Slot::Counts(count) => 2 * count,
        Slot::LongCount => 4,
        _ => 0,
    }
}

fn value_size(slot: &Slot, value: Option<&Value>) -> Option<usize> {
    match (slot, value) {
        (Slot::Integer(_, bytes) | Slot::Either(_, _, bytes), _) => Some(*bytes),
        (Slot::Ipv4(_), _) => Some(4),
        (Slot::Ipv6(_), _) => Some(16),
        (_, None) => None,
        (Slot::Integers(_, bytes) | Slot::Maybe(_, bytes), Some(Value::Integers(numbers))) => {
            Some(bytes * numbers.len())
        }
        (Slot::Records(_, fields), Some(Value::Records(records))) => {
            Some(record_size(fields) * records.len())
        }
        (Slot::Text(_, nul), Some(Value::Text(text))) => Some(text.len() + usize::from(*nul)),
        (_, Some(Value::Pairs(pairs))) => Some(4 * pairs.len()),
        (_, Some(Value::Bytes(bytes) | Value::Region(_, bytes))) => Some(bytes.len()),
        (_, Some(Value::Elements(elements))) => {
            let padded = matches!(slot, Slot::One(_, Family::Chunk));
            let mut sum = 0_usize;
            for element in elements {
                sum = sum.next_multiple_of(4) + element.size()?;
            }
            Some(if padded { sum.next_multiple_of(4) } else { sum })
        }
        _ => None,
    }
}

fn record_size(fields: &[(&str, usize)]) -> usize {
    fields.iter().map(|(_, bytes)| bytes).sum()
}

fn put_value(slot: &Slot, value: &Value, out: &mut Vec<u8>) {
    let integer = |n: u32, bytes: usize, out: &mut Vec<u8>| out.extend(&n.to_be_bytes()[4 - bytes..]);
    match (slot, value) {
        (Slot::Integer(_, bytes) | Slot::Either(_, _, bytes), Value::Integer(n)) => integer(*n, *bytes, out),
        (Slot::Records(_, fields), Value::Records(records)) => {
            for record in records {
                record.iter().zip(*fields).for_each(|(n, (_, bytes))| integer(*n, *bytes, out));
            }
        }
        (Slot::Integers(_, bytes) | Slot::Maybe(_, bytes), Value::Integers(numbers)) => {
            numbers.iter().for_each(|n| integer(*n, *bytes, out))
        }
        (_, Value::Pairs(pairs)) => {
            pairs.iter().for_each(|(a, b)| out.extend([a.to_be_bytes(), b.to_be_bytes()].concat()))
        }
        (_, Value::Bytes(bytes) | Value::Region(_, bytes)) => out.extend(bytes),
        (Slot::Text(_, nul), Value::Text(text)) => {
            out.extend(text);
            out.extend(nul.then_some(0));
        }
        (_, Value::Ip(IpAddr::V4(ip))) => out.extend(ip.octets()),
        (_, Value::Ip(IpAddr::V6(ip))) => out.extend(ip.octets()),
        (_, Value::Elements(elements)) => {
            let start = out.len();
            let pad = |out: &mut Vec<u8>| out.resize(start + (out.len() - start).next_multiple_of(4), 0);
            for element in elements {
                pad(out);
                element.put(out);
            }
            if matches!(slot, Slot::One(_, Family::Chunk)) {
                pad(out);
            }
        }
        _ => {}
    }
}

/// Reads the slots of an element from its bytes.
struct Reader<'b> {
    rest: &'b [u8],
    /// Counts whose lists were not read yet, in reverse order.
    counts: Vec<usize>,
}

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn integer(&mut self, bytes: usize) -> Option<u32> {
        Some(self.take(bytes)?.iter().fold(0, |n, byte| n << 8 | u32::from(*byte)))
    }

    fn all(&mut self) -> &'b [u8] {
        std::mem::take(&mut self.rest)
    }

    /// The number of entries of the next list; each has `size` bytes.
    fn count(&mut self, size: usize) -> usize {
        self.counts.pop().unwrap_or(self.rest.len().div_ceil(size))
    }

    /// `None`: there are too few bytes. `Some(None)`: the slot has no field.
    fn slot(&mut self, slot: &Slot) -> Option<Option<Value>> {
        Some(Some(match slot {
            Slot::Flags | Slot::Number(_) | Slot::Length => return Some(None),
            Slot::Zeros(count) => return self.take(*count).map(|_| None),
            Slot::Payload => {
                self.all();
                return Some(None);
            }
            Slot::Counts(count) => {
                for _ in 0..*count {
                    let n = self.integer(2)?;
                    self.counts.insert(0, n as usize);
                }
                return Some(None);
            }
            Slot::LongCount => {
                let n = self.integer(4)?;
                self.counts.push(n as usize);
                return Some(None);
            }
            Slot::Integer(_, bytes) | Slot::Either(_, _, bytes) => Value::Integer(self.integer(*bytes)?),
            Slot::Maybe(_, bytes) => match self.rest.is_empty() {
                true => Value::Integers(Vec::new()),
                false => Value::Integers(vec![self.integer(*bytes)?]),
            },
            Slot::Records(_, fields) => {
                let count = self.rest.len().div_ceil(record_size(fields));
                let mut record = || fields.iter().map(|(_, bytes)| self.integer(*bytes)).collect();
                Value::Records((0..count).map(|_| record()).collect::<Option<_>>()?)
            }
            Slot::Integers(_, bytes) => {
                let count = self.count(*bytes);
                let part = self.take(count.checked_mul(*bytes)?)?;
                Value::Integers(
                    part.chunks(*bytes).map(|n| n.iter().fold(0, |n, b| n << 8 | u32::from(*b))).collect(),
                )
            }
            Slot::Pairs(_) => {
                let count = self.count(4);
                let part = self.take(count.checked_mul(4)?)?;
                let pair = |p: &[u8]| (u16::from_be_bytes([p[0], p[1]]), u16::from_be_bytes([p[2], p[3]]));
                Value::Pairs(part.chunks_exact(4).map(pair).collect())
            }
            Slot::Bytes(_) => Value::Bytes(self.all().to_vec()),
            Slot::Text(_, nul) => {
                let text = self.all();
                Value::Text(if *nul { text.strip_suffix(&[0])? } else { text }.to_vec())
            }
            Slot::Ipv4(_) => Value::Ip(IpAddr::from(*self.take(4)?.first_chunk::<4>()?)),
            Slot::Ipv6(_) => Value::Ip(IpAddr::from(*self.take(16)?.first_chunk::<16>()?)),
            Slot::List(family) | Slot::Listed(_, family) | Slot::One(_, family) => {
                Value::Region(*family, self.all().to_vec())
            }
        }))
    }
}

/// Prints a field in script notation, without its key.
pub(super) fn show(slot: &Slot, value: Option<&Value>) -> String {
    let joined = |texts: Vec<String>| texts.join(", ");
    match value {
        None => "...".to_owned(),
        Some(Value::Integer(n)) => n.to_string(),
        Some(Value::Integers(numbers)) if matches!(slot, Slot::Maybe(..)) => {
            numbers.first().map_or("none".to_owned(), u32::to_string)
        }
        Some(Value::Records(records)) => {
            let record =
                |record: &Vec<u32>| format!("{{{}}}", joined(record.iter().map(u32::to_string).collect()));
            format!("[{}]", joined(records.iter().map(record).collect()))
        }
        Some(Value::Integers(numbers)) => {
            format!("[{}]", joined(numbers.iter().map(u32::to_string).collect()))
        }
        Some(Value::Pairs(pairs)) => {
            format!("[{}]", joined(pairs.iter().map(|(a, b)| format!("{a}:{b}")).collect()))
        }
        // A long cookie is not printed.
        Some(Value::Bytes(bytes)) if bytes.len() > 32 => "...".to_owned(),
        Some(Value::Bytes(bytes)) => {
            format!("[{}]", joined(bytes.iter().map(|b| format!("{b:#04x}")).collect()))
        }
        Some(Value::Text(text)) => format!("{:?}", String::from_utf8_lossy(text)),
        Some(Value::Ip(ip)) => ip.to_string(),
        Some(Value::Elements(elements)) => bracketed(slot, elements.iter().map(Element::to_string).collect()),
        Some(Value::Region(family, bytes)) => match split(*family, bytes) {
            Some(elements) => {
                let shown = elements
                    .iter()
                    .map(|bytes| Element::of(*family, bytes).map_or("?".to_owned(), |e| e.to_string()));
                bracketed(slot, shown.collect())
            }
            None => format!("malformed {}", show(slot, Some(&Value::Bytes(bytes.clone())))),
        },
    }
}

/// Prints a list of elements. A list at the end of an element has no brackets.
fn bracketed(slot: &Slot, elements: Vec<String>) -> String {
    match slot {
        Slot::Listed(..) => format!("[{}]", elements.join(", ")),
        _ => elements.join(", "),
    }
}

impl fmt::Display for Element {
    /// Prints in script notation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = self.fields.iter();
        let mut parts = Vec::new();
        let header = |slot: &Slot, n: Option<u32>| self.header(slot, n.map(Value::Integer).as_ref());
        for slot in self.form.slots {
            match slot {
                Slot::Flags => parts.push(format!("flgs={}", header(slot, self.flags.map(u32::from)))),
                Slot::Number(key) => {
                    parts.push(format!("{key}={}", header(slot, self.number.map(u32::from))))
                }
                Slot::Length => parts.push(format!("len={}", header(slot, self.length.map(u32::from)))),
                Slot::List(_) => {
                    let list = show(slot, fields.next().and_then(Option::as_ref));
                    parts.extend((!list.is_empty()).then_some(list));
                }
                _ if has_field(slot) => {
                    let value = fields.next().and_then(Option::as_ref);
                    let missing = matches!(slot, Slot::Maybe(..)) && value == Some(&Value::Integers(vec![]));
                    let shown = || format!("{}={}", self.key(slot), show(slot, value));
                    parts.extend((!missing).then(shown));
                }
                _ => {}
            }
        }
        write!(f, "{}[{}]", self.form.name, parts.join(", "))
    }
}
