//! Converts items to elements and checks names, order, ranges, and the use of `...`.

use std::net::IpAddr;

use super::ParseError;
use super::element::{Element, Value};
use super::form::{FORMS, Family, Form, Slot};
use super::names::did_you_mean;
use super::parse::{Item, Part, Raw};

type Result<T> = std::result::Result<T, ParseError>;

/// Checks a chunk of a packet that the peer sends (`injected`) or that is expected.
pub(super) fn chunk(item: &Item, injected: bool) -> Result<Element> {
    Check { injected, within: "" }.element(item, Family::Chunk)
}

#[derive(Copy, Clone)]
struct Check {
    injected: bool,
    /// The chunk that contains the element.
    within: &'static str,
}

/// The parts of an item that were not read yet.
struct Parts<'i> {
    item: &'i Item,
    rest: &'i [Part],
}

impl<'i> Parts<'i> {
    /// The value of `key`, which must be the next part.
    fn value(&mut self, key: &str) -> Result<&'i Raw> {
        match self.rest.split_first() {
            Some((Part::Pair(found, raw), rest)) if found == key => {
                self.rest = rest;
                Ok(raw)
            }
            Some((Part::Pair(found, _), _)) => {
                Err(self.wrong(format!("expected `{key}=`, found `{found}=`")))
            }
            _ => Err(self.wrong(format!("`{key}=` is missing"))),
        }
    }

    /// Whether `key` is the next part.
    fn is_next(&self, key: &str) -> bool {
        matches!(self.rest.first(), Some(Part::Pair(found, _)) if found == key)
    }

    fn wrong(&self, why: impl std::fmt::Display) -> ParseError {
        ParseError::new(self.item.line, format!("{}: {why}", self.item.name))
    }
}

impl Check {
    fn element(self, item: &Item, family: Family) -> Result<Element> {
        let wrong = |why: String| ParseError::new(item.line, why);
        let form = Form::named(family, &item.name).ok_or_else(|| {
            let names = FORMS.iter().filter(|form| form.family == family).map(|form| form.name);
            let hint = did_you_mean(&item.name, names);
            wrong(format!("`{}` is not {}: {hint}", item.name, family.what()))
        })?;
        let within = if family == Family::Chunk { form.name } else { self.within };
        let check = Check { within, ..self };
        let mut parts = Parts { item, rest: &item.parts };
        let mut element =
            Element { form, number: form.number, flags: None, length: None, fields: Vec::new() };
        let open = item.parts == [Part::Open] && form.slots.first() == Some(&Slot::Length);
        if open && (!injected_cookie(form, self.injected)) {
            element.fields.push(None);
            return Ok(element);
        }
        for slot in form.slots {
            check.slot(slot, &mut element, &mut parts)?;
        }
        if !parts.rest.is_empty() {
            return Err(parts.wrong("there is more in it than this form has"));
        }
        check.lengths(&element, &parts)?;
        Ok(element)
    }

    fn slot(self, slot: &Slot, element: &mut Element, parts: &mut Parts<'_>) -> Result<()> {
        let value = match slot {
            Slot::Zeros(_) | Slot::Counts(_) | Slot::LongCount | Slot::Payload => return Ok(()),
            Slot::Flags => {
                element.flags = self.flags(element.form, parts)?;
                return Ok(());
            }
            Slot::Number(key) => {
                let most = if element.form.family == Family::Chunk { 0xff } else { 0xffff };
                element.number = self.number(key, most, element.form.family, parts)?;
                return Ok(());
            }
            Slot::Length => {
                element.length = integer(parts.value("len")?, 0xffff, "len", parts)?.map(|n| n as u16);
                return Ok(());
            }
            Slot::List(family) => self.rest(*family, parts)?,
            Slot::Integer(key, bytes) => {
                let most = u32::MAX >> (32 - 8 * bytes);
                integer(parts.value(key)?, most, key, parts)?.map(Value::Integer)
            }
            Slot::Either(first, second, bytes) => {
                let key = match element.flags {
                    Some(flags) if flags & 2 == 0 => second,
                    None if parts.is_next(second) => second,
                    _ => first,
                };
                let most = u32::MAX >> (32 - 8 * bytes);
                integer(parts.value(key)?, most, key, parts)?.map(Value::Integer)
            }
            Slot::Maybe(key, _) if !parts.is_next(key) => Some(Value::Integers(Vec::new())),
            Slot::Maybe(key, bytes) => {
                let most = u32::MAX >> (32 - 8 * bytes);
                integer(parts.value(key)?, most, key, parts)?.map(|n| Value::Integers(vec![n]))
            }
            Slot::Records(key, fields) => records(parts.value(key)?, key, fields, parts)?,
            Slot::Integers(key, bytes) => {
                integers(parts.value(key)?, u32::MAX >> (32 - 8 * bytes), key, parts)?
            }
            Slot::Pairs(key) => pairs(parts.value(key)?, key, parts)?,
            Slot::Bytes(key) => match integers(parts.value(key)?, 0xff, key, parts)? {
                Some(Value::Integers(bytes)) => {
                    Some(Value::Bytes(bytes.into_iter().map(|b| b as u8).collect()))
                }
                _ => None,
            },
            Slot::Text(key, _) => match parts.value(key)? {
                Raw::Open => None,
                Raw::Text(text) => Some(Value::Text(text.clone().into_bytes())),
                _ => return Err(parts.wrong(format!("`{key}=` takes a text between quotes"))),
            },
            Slot::Ipv4(key) => ip(parts.value(key)?, IpAddr::is_ipv4, parts)?,
            Slot::Ipv6(key) => ip(parts.value(key)?, IpAddr::is_ipv6, parts)?,
            Slot::Listed(key, family) => self.listed(parts.value(key)?, key, *family, parts)?,
            Slot::One(key, family) => match parts.value(key)? {
                Raw::Open => None,
                Raw::Item(item) => Some(Value::Elements(vec![self.element(item, *family)?])),
                _ => return Err(parts.wrong(format!("`{key}=` takes {}", family.what()))),
            },
        };
        if value.is_none() && self.injected && !self.has_meaning(element.form, slot) {
            let what = super::element::key(slot);
            return Err(parts.wrong(format!("`...` for {what} says not what the peer sends")));
        }
        element.fields.push(value);
        Ok(())
    }

    /// Whether `...` is allowed here in a packet that the peer sends.
    fn has_meaning(self, form: &Form, slot: &Slot) -> bool {
        let heartbeat = form.name == "HEARTBEAT_INFORMATION" && self.within.starts_with("HEARTBEAT");
        matches!(slot, Slot::Bytes(_)) && (heartbeat || matches!(form.name, "STATE_COOKIE" | "COOKIE_ECHO"))
    }

    fn flags(self, form: &Form, parts: &mut Parts<'_>) -> Result<Option<u8>> {
        let raw = parts.value("flgs")?;
        if let Raw::Word(letters) = raw {
            let bit = |letter: char| form.letters().iter().find(|(l, _)| *l == letter).map(|(_, bit)| *bit);
            let bits: Option<Vec<u8>> = letters.chars().map(bit).collect();
            let bits = bits.ok_or_else(|| parts.wrong(format!("`{letters}` are no flags of it")))?;
            return Ok(Some(bits.iter().fold(0, |all, bit| all | bit)));
        }
        Ok(integer(raw, 0xff, "flgs", parts)?.map(|n| n as u8))
    }

    fn number(self, key: &str, most: u32, family: Family, parts: &mut Parts<'_>) -> Result<Option<u16>> {
        let raw = parts.value(key)?;
        let number = match raw {
            Raw::Word(name) => Form::named(family, name).and_then(|form| form.number),
            _ => match integer(raw, most, key, parts)? {
                Some(n) => Some(n as u16),
                None if self.injected => return Err(parts.wrong(format!("`{key}=` must be given"))),
                None => return Ok(None),
            },
        };
        number.map(Some).ok_or_else(|| parts.wrong(format!("`{key}=` names nothing that there is")))
    }

    /// The remaining parts: elements, or `...`.
    fn rest(self, family: Family, parts: &mut Parts<'_>) -> Result<Option<Value>> {
        let rest = std::mem::take(&mut parts.rest);
        if rest == [Part::Open] {
            return Ok(None);
        }
        let element = |part: &Part| match part {
            Part::Item(item) => self.element(item, family),
            Part::Pair(key, _) => Err(parts.wrong(format!("there is no `{key}=` here"))),
            Part::Open => Err(parts.wrong("`...` stands alone in a list")),
        };
        rest.iter().map(element).collect::<Result<_>>().map(Value::Elements).map(Some)
    }

    fn listed(self, raw: &Raw, key: &str, family: Family, parts: &Parts<'_>) -> Result<Option<Value>> {
        let wrong = || parts.wrong(format!("`{key}=` takes a list of what each is {}", family.what()));
        let Raw::List(list) = raw else {
            return if *raw == Raw::Open { Ok(None) } else { Err(wrong()) };
        };
        let element = |raw: &Raw| match raw {
            Raw::Item(item) => self.element(item, family),
            _ => Err(wrong()),
        };
        list.iter().map(element).collect::<Result<_>>().map(Value::Elements).map(Some)
    }

    /// Checks that `len=` agrees with the bytes written.
    fn lengths(self, element: &Element, parts: &Parts<'_>) -> Result<()> {
        let form = element.form;
        if let Some(least) = [("DATA", 16), ("I_DATA", 20)].iter().find(|(name, _)| *name == form.name) {
            let short = element.length.is_some_and(|n| n < least.1);
            let open = self.injected && element.length.is_none();
            return if short || open {
                Err(parts.wrong(format!("`len=` must be a number, at least {}", least.1)))
            } else {
                Ok(())
            };
        }
        let Some(bytes) = form.has_length().then(|| element.fields.last()).flatten() else { return Ok(()) };
        let (given, generic) = (element.length.map(usize::from), form.number.is_none());
        let fits = match (bytes, given) {
            (Some(Value::Bytes(bytes)), Some(given)) if generic => {
                given == bytes.len() + 4 || (given > bytes.len() + 4 && self.injected)
            }
            (Some(Value::Bytes(bytes)), Some(given)) => given == bytes.len() + 4,
            (Some(_), _) => false,
            // A returned cookie keeps its length.
            (None, Some(given)) => given >= 4 || (self.injected && form.name == "COOKIE_ECHO"),
            (None, None) => !(self.injected && form.name == "STATE_COOKIE"),
        };
        if fits {
            Ok(())
        } else {
            Err(parts.wrong("`len=` does not go with the bytes: it counts them and 4 bytes before"))
        }
    }
}

/// An invented cookie of the peer needs a length.
fn injected_cookie(form: &Form, injected: bool) -> bool {
    injected && form.name != "HEARTBEAT_INFORMATION"
}

fn integer(raw: &Raw, most: u32, key: &str, parts: &Parts<'_>) -> Result<Option<u32>> {
    match raw {
        Raw::Open => Ok(None),
        Raw::Integer(n) => match u32::try_from(*n) {
            Ok(n) if n <= most => Ok(Some(n)),
            _ => Err(parts.wrong(format!("`{key}={n}` is out of range: 0 to {most}"))),
        },
        _ => Err(parts.wrong(format!("`{key}=` takes a number"))),
    }
}

fn integers(raw: &Raw, most: u32, key: &str, parts: &Parts<'_>) -> Result<Option<Value>> {
    let Raw::List(list) = raw else {
        let open = *raw == Raw::Open;
        return if open { Ok(None) } else { Err(parts.wrong(format!("`{key}=` takes a list of numbers"))) };
    };
    let number = |raw: &Raw| match raw {
        Raw::Word(word) if key == "types" => {
            address_type(word).ok_or_else(|| parts.wrong(format!("`{word}` is no kind of address")))
        }
        _ => integer(raw, most, key, parts)?.ok_or_else(|| parts.wrong("`...` stands alone in a list")),
    };
    list.iter().map(number).collect::<Result<_>>().map(Value::Integers).map(Some)
}

fn address_type(word: &str) -> Option<u32> {
    match word {
        "IPv4" => Some(5),
        "IPv6" => Some(6),
        "HOSTNAME" => Some(11),
        _ => None,
    }
}

fn pairs(raw: &Raw, key: &str, parts: &Parts<'_>) -> Result<Option<Value>> {
    let wrong = || parts.wrong(format!("`{key}=` takes a list of blocks such as [2:3, 5:5]"));
    let Raw::List(list) = raw else {
        return if *raw == Raw::Open { Ok(None) } else { Err(wrong()) };
    };
    let pair = |raw: &Raw| match raw {
        Raw::Gap(a, b) => {
            Ok((u16::try_from(*a).map_err(|_| wrong())?, u16::try_from(*b).map_err(|_| wrong())?))
        }
        _ => Err(wrong()),
    };
    list.iter().map(pair).collect::<Result<_>>().map(Value::Pairs).map(Some)
}

/// Records of numbers. They are given by position, or by name in this order.
fn records(raw: &Raw, key: &str, fields: &[(&str, usize)], parts: &Parts<'_>) -> Result<Option<Value>> {
    let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
    let wrong = || parts.wrong(format!("`{key}=` takes a list of {{{}}}", names.join(", ")));
    let Raw::List(list) = raw else {
        return if *raw == Raw::Open { Ok(None) } else { Err(wrong()) };
    };
    let member = |((name, raw), (wanted, bytes)): (&(Option<String>, Raw), &(&str, usize))| {
        if name.as_ref().is_some_and(|name| name != wanted) {
            return Err(wrong());
        }
        integer(raw, u32::MAX >> (32 - 8 * bytes), wanted, parts)?.ok_or_else(wrong)
    };
    let record = |raw: &Raw| match raw {
        Raw::Record(members) if members.len() == fields.len() => {
            members.iter().zip(fields).map(member).collect::<Result<Vec<u32>>>()
        }
        _ => Err(wrong()),
    };
    list.iter().map(record).collect::<Result<_>>().map(Value::Records).map(Some)
}

fn ip(raw: &Raw, kind: fn(&IpAddr) -> bool, parts: &Parts<'_>) -> Result<Option<Value>> {
    match raw {
        Raw::Open => Ok(None),
        Raw::Ip(ip) if kind(ip) => Ok(Some(Value::Ip(*ip))),
        _ => Err(parts.wrong("`addr=` takes an address of its own kind")),
    }
}
