//! Splits a text into tokens. Text that `#ifdef` excludes is skipped unread.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::ParseError;

/// A token and its line.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) line: u32,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Kind {
    /// A whole number; decimal or hexadecimal.
    Integer(i128),
    /// In billionths, exactly: numbers with a decimal point are seconds, milliseconds or per cent.
    Decimal(i128),
    Word(String),
    Text(String),
    Command(String),
    Address(IpAddr),
    Ellipsis,
    /// `--name`.
    Option(String),
    Mark(char),
}

impl Kind {
    /// The name of the token in error messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Kind::Integer(n) => format!("`{n}`"),
            Kind::Decimal(_) => "a number with a decimal point".to_owned(),
            Kind::Word(word) => format!("`{word}`"),
            Kind::Text(text) => format!("\"{text}\""),
            Kind::Command(text) => format!("`{text}`"),
            Kind::Address(ip) => format!("`{ip}`"),
            Kind::Ellipsis => "`...`".to_owned(),
            Kind::Option(name) => format!("`--{name}`"),
            Kind::Mark(mark) => format!("`{mark}`"),
        }
    }
}

/// The tokens of `text`. Names in `defines` and names that the script defines enable `#ifdef` sections.
pub(super) fn tokens(text: &str, defines: &BTreeSet<String>) -> Result<Vec<Token>, ParseError> {
    let mut lexer = Lexer { rest: text, line: 1, tokens: Vec::new(), defines: defines.clone(), inside: None };
    while lexer.step()? {}
    match lexer.inside {
        Some(line) => Err(ParseError::new(line, "this #ifdef has no #endif")),
        None => Ok(lexer.tokens),
    }
}

struct Lexer<'t> {
    rest: &'t str,
    line: u32,
    tokens: Vec<Token>,
    defines: BTreeSet<String>,
    /// The line of the open `#ifdef`.
    inside: Option<u32>,
}

const MARKS: &str = "<>+*~()[]{},;:=|/";

impl<'t> Lexer<'t> {
    /// Reads the next token. Returns whether there was one.
    fn step(&mut self) -> Result<bool, ParseError> {
        let Some(c) = self.rest.chars().next() else { return Ok(false) };
        match c {
            _ if c.is_ascii_whitespace() => drop(self.take(1)),
            '/' if self.rest.starts_with("//") => drop(self.take_until("\n")),
            '/' if self.rest.starts_with("/*") => self.comment()?,
            '#' => self.directive()?,
            '"' => self.quoted('"', Kind::Text)?,
            '`' => self.quoted('`', Kind::Command)?,
            '-' if self.rest.starts_with("--") => self.option()?,
            '.' if self.rest.starts_with("...") => {
                self.take(3);
                self.push(Kind::Ellipsis);
            }
            _ => self.plain(c)?,
        }
        Ok(true)
    }

    fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError::new(self.line, message)
    }

    fn push(&mut self, kind: Kind) {
        // `--define=NAME` applies to the text after it.
        if let (
            Kind::Word(name),
            [.., Token { kind: Kind::Option(option), .. }, Token { kind: Kind::Mark('='), .. }],
        ) = (&kind, &self.tokens[..])
            && option == "define"
        {
            self.defines.insert(name.clone());
        }
        self.tokens.push(Token { kind, line: self.line });
    }

    /// Takes this number of bytes, which must end at a character boundary.
    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.matches('\n').count() as u32;
        self.rest = rest;
        taken
    }

    fn take_until(&mut self, end: &str) -> Option<&'t str> {
        let at = self.rest.find(end);
        let taken = self.take(at.unwrap_or(self.rest.len()));
        at.map(|_| taken)
    }

    fn comment(&mut self) -> Result<(), ParseError> {
        let unended = self.error("this comment has no end");
        self.take_until("*/").ok_or(unended)?;
        self.take(2);
        Ok(())
    }

    fn quoted(&mut self, quote: char, kind: fn(String) -> Kind) -> Result<(), ParseError> {
        let unended = self.error(format!("this {quote} has no end"));
        self.take(1);
        let text = self.take_until(&quote.to_string()).ok_or(unended)?.to_owned();
        self.take(1);
        self.push(kind(text));
        Ok(())
    }

    fn option(&mut self) -> Result<(), ParseError> {
        let name = run(&self.rest[2..], |c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() {
            return Err(self.error("`--` begins an option, and a name is missing"));
        }
        self.take(2 + name.len());
        self.push(Kind::Option(name.to_owned()));
        Ok(())
    }

    fn directive(&mut self) -> Result<(), ParseError> {
        let name = run(&self.rest[1..], |c| c.is_ascii_alphabetic());
        match name {
            "ifdef" => self.ifdef(),
            "endif" if self.inside.is_some() => {
                self.inside = None;
                self.take(6);
                Ok(())
            }
            "endif" => Err(self.error("this #endif has no #ifdef")),
            _ => Err(self.error(format!("`#{name}` is unknown; there are #ifdef and #endif"))),
        }
    }

    fn ifdef(&mut self) -> Result<(), ParseError> {
        if self.inside.is_some() {
            return Err(self.error("an #ifdef cannot stand in another"));
        }
        let line = self.line;
        self.take(6);
        let blank = run(self.rest, |c| c == ' ' || c == '\t').len();
        self.take(blank);
        let name = run(self.rest, |c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() {
            return Err(self.error("#ifdef needs a name"));
        }
        self.take(name.len());
        if self.defines.contains(name) {
            self.inside = Some(line);
            return Ok(());
        }
        let unended = ParseError::new(line, "this #ifdef has no #endif");
        self.take_until("#endif").ok_or(unended)?;
        self.take(6);
        Ok(())
    }

    /// Tries addresses first, then numbers, then words, then marks.
    fn plain(&mut self, c: char) -> Result<(), ParseError> {
        if let Some(length) = self.address() {
            let text = self.take(length);
            let ip = text.parse().map_err(|_| self.error(format!("`{text}` is no address")))?;
            self.push(Kind::Address(ip));
            return Ok(());
        }
        let after_sign = self.rest.strip_prefix('-').unwrap_or(self.rest);
        if after_sign.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return self.number();
        }
        if c.is_ascii_alphanumeric() || c == '_' {
            let word = run(self.rest, |c| c.is_ascii_alphanumeric() || c == '_');
            self.take(word.len());
            self.push(Kind::Word(word.to_owned()));
            return Ok(());
        }
        if MARKS.contains(c) {
            self.take(1);
            self.push(Kind::Mark(c));
            return Ok(());
        }
        Err(self.error(format!("`{c}` means nothing here")))
    }

    /// The length of the address that follows, if one does. A pair of numbers `1:2` is not an address.
    fn address(&self) -> Option<usize> {
        let quad = run(self.rest, |c| c.is_ascii_digit() || c == '.');
        if quad.parse::<Ipv4Addr>().is_ok() {
            return Some(quad.len());
        }
        let colons = run(self.rest, |c| c.is_ascii_hexdigit() || c == ':' || c == '.');
        let ipv6 = colons.matches(':').count() >= 2 && colons.parse::<Ipv6Addr>().is_ok();
        ipv6.then_some(colons.len())
    }

    fn number(&mut self) -> Result<(), ParseError> {
        let negative = self.rest.starts_with('-');
        let digits_from = usize::from(negative);
        let text = &self.rest[digits_from..];
        let word = run(text, |c| c.is_ascii_alphanumeric() || c == '_');
        let fraction = text[word.len()..].strip_prefix('.').filter(|rest| !rest.starts_with(".."));
        let decimals = fraction.map(|rest| run(rest, |c| c.is_ascii_digit())).unwrap_or_default();
        let sign = if negative { -1 } else { 1 };
        let all_digits = word.bytes().all(|b| b.is_ascii_digit());
        let too_large = self.error("this number is too large");
        let (length, kind) = if all_digits && !decimals.is_empty() {
            let billionths = decimal(word, decimals).ok_or(too_large)?;
            (word.len() + 1 + decimals.len(), Kind::Decimal(sign * billionths))
        } else if let Some(hex) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            let value =
                u64::from_str_radix(hex, 16).map_err(|_| self.error(format!("`{word}` is no number")))?;
            (word.len(), Kind::Integer(sign * i128::from(value)))
        } else if all_digits && !word.is_empty() {
            let value: u64 = word.parse().map_err(|_| too_large)?;
            (word.len(), Kind::Integer(sign * i128::from(value)))
        } else if negative || word.is_empty() {
            return Err(self.error("this is no number"));
        } else {
            (word.len(), Kind::Word(word.to_owned()))
        };
        self.take(digits_from + length);
        self.push(kind);
        Ok(())
    }
}

/// The longest prefix of `text` that consists of such characters.
fn run(text: &str, of: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|c| !of(c)).unwrap_or(text.len())]
}

/// A decimal number in billionths. Further digits are dropped.
fn decimal(whole: &str, decimals: &str) -> Option<i128> {
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()?.into() };
    let nine: String = decimals.chars().chain("000000000".chars()).take(9).collect();
    Some(whole * 1_000_000_000 + nine.parse::<i128>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        let defines = BTreeSet::from(["YES".to_owned()]);
        tokens(text, &defines).map(|t| t.into_iter().map(|t| t.kind).collect()).unwrap_or_default()
    }

    #[test]
    fn the_longest_match_wins() {
        use Kind::*;
        let ip = |text: &str| Address(text.parse().expect("an address"));
        assert_eq!(
            kinds("10.0.0.1 1.5 .5 5"),
            [ip("10.0.0.1"), Decimal(1_500_000_000), Decimal(500_000_000), Integer(5)]
        );
        assert_eq!(kinds("-1 0x1F 2x"), [Integer(-1), Integer(31), Word("2x".into())]);
        assert_eq!(kinds("1:2"), [Integer(1), Mark(':'), Integer(2)]);
        assert_eq!(kinds("fd00::1 ::1"), [ip("fd00::1"), ip("::1")]);
        assert_eq!(kinds("len=..."), [Word("len".into()), Mark('='), Ellipsis]);
        assert_eq!(kinds("...0.5"), [Ellipsis, Decimal(500_000_000)]);
        assert_eq!(kinds("a // b\n/* c\n */ d"), [Word("a".into()), Word("d".into())]);
    }

    #[test]
    fn ifdef_skips_what_cannot_be_read() {
        assert_eq!(kinds("#ifdef NO\n \u{a7} \" #endif 1"), [Kind::Integer(1)]);
        assert_eq!(kinds("#ifdef YES 2 #endif 1"), [Kind::Integer(2), Kind::Integer(1)]);
        assert_eq!(kinds("--define=OWN #ifdef OWN 2 #endif").len(), 4);
        for bad in ["#ifdef YES", "#ifdef NO", "#endif", "#ifdef YES #ifdef YES #endif #endif", "#if X"] {
            assert!(tokens(bad, &BTreeSet::from(["YES".to_owned()])).is_err(), "{bad}");
        }
    }

    #[test]
    fn lines_are_counted() {
        let lines: Vec<_> = tokens("a\n/*\n*/ b `c\nd` e", &BTreeSet::new()).expect("tokens");
        assert_eq!(lines.iter().map(|t| t.line).collect::<Vec<_>>(), [1, 3, 4, 4]);
    }
}
