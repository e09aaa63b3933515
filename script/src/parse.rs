//! Converts tokens to a script. Chunks, parameters and causes are all read as items here; `check` converts the items to
//! elements.

use std::collections::BTreeSet;
use std::net::IpAddr;

use anabranch_proto::wire::Ecn;

use super::ParseError;
use super::ast::{
    Action, Body, Call, Checksum, Command, Event, EventTime, Expr, Literal, Moment, Opt, Packet, Program,
};
use super::check;
use super::lex::{Kind, Token, tokens};

type Result<T> = std::result::Result<T, ParseError>;

/// `NAME[item, item, …]`.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Item {
    pub(super) line: u32,
    pub(super) name: String,
    pub(super) parts: Vec<Part>,
}

/// A part of an item.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Part {
    /// `...`.
    Open,
    Pair(String, Raw),
    Item(Item),
}

/// The value of a `key=value`.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Raw {
    Open,
    Integer(i128),
    Word(String),
    Text(String),
    Ip(IpAddr),
    /// `1:2`.
    Gap(i128, i128),
    List(Vec<Raw>),
    Item(Item),
    /// `{sid=1, ssn=2}` or `{1, 2}`.
    Record(Vec<(Option<String>, Raw)>),
}

/// The largest nesting depth of items and expressions.
const DEPTH: u32 = 16;
/// Eleven days in nanoseconds: no script lasts longer.
pub(super) const LONGEST: u64 = 1_000_000_000_000_000;

/// Reads a script.
pub(super) fn program(text: &str, defines: &BTreeSet<String>) -> Result<Program> {
    let tokens = tokens(text, defines)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let mut program = Program { options: Vec::new(), events: Vec::new() };
    while let Some(Kind::Option(name)) = parser.peek() {
        program.options.push(parser.option(name.clone())?);
    }
    while parser.peek().is_some() {
        program.events.push(parser.event()?);
    }
    check_times(&program.events)?;
    Ok(program)
}

/// Checks that the first event is at 0 and that absolute times do not decrease.
fn check_times(events: &[Event]) -> Result<()> {
    let mut last = 0;
    for (i, event) in events.iter().enumerate() {
        let moments: &[Moment] = match &event.when {
            EventTime::At(moment) => &[*moment],
            EventTime::Between(from, to) => &[*from, *to],
            EventTime::Any => &[],
        };
        for moment in moments {
            match *moment {
                Moment::Absolute(at) if at < last => {
                    return Err(ParseError::new(event.line, "this time lies before an earlier one"));
                }
                Moment::Absolute(at) => last = at,
                Moment::Relative(_) => {}
            }
        }
        let zero = matches!(event.when, EventTime::At(Moment::Absolute(0) | Moment::Relative(0)));
        if i == 0 && !zero {
            return Err(ParseError::new(event.line, "the first event must be at time 0"));
        }
    }
    Ok(())
}

pub(super) struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    depth: u32,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Kind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn peek_after(&self) -> Option<&Kind> {
        self.tokens.get(self.at + 1).map(|token| &token.kind)
    }

    /// The line of the next token, or of the end.
    fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |token| token.line)
    }

    fn next(&mut self) -> Option<&Kind> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(&token.kind)
    }

    fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError::new(self.line(), message)
    }

    fn expected<T>(&self, what: &str) -> Result<T> {
        let found = self.peek().map_or("the end of the script".to_owned(), Kind::describe);
        Err(self.error(format!("expected {what}, found {found}")))
    }

    fn is(&self, mark: char) -> bool {
        self.peek() == Some(&Kind::Mark(mark))
    }

    /// Takes this mark if it is the next token.
    fn takes(&mut self, mark: char) -> bool {
        let is = self.is(mark);
        self.at += usize::from(is);
        is
    }

    fn mark(&mut self, mark: char) -> Result<()> {
        if self.takes(mark) { Ok(()) } else { self.expected(&format!("`{mark}`")) }
    }

    fn word(&mut self, what: &str) -> Result<String> {
        match self.peek().cloned() {
            Some(Kind::Word(word)) => {
                self.at += 1;
                Ok(word)
            }
            _ => self.expected(what),
        }
    }

    fn integer(&mut self, what: &str) -> Result<i128> {
        match self.peek() {
            Some(Kind::Integer(n)) => {
                let n = *n;
                self.at += 1;
                Ok(n)
            }
            _ => self.expected(what),
        }
    }

    fn number<T: TryFrom<i128>>(&mut self, what: &str) -> Result<T> {
        let (error, n) = (self.error(format!("this is out of range for {what}")), self.integer(what)?);
        T::try_from(n).map_err(|_| error)
    }

    /// Reads one level deeper. The depth is limited so that no script can exhaust the call stack.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH {
            return Err(self.error("this stands too deep in other things"));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Reads a list with commas up to `end`, and takes `end`.
    fn list<T>(&mut self, end: char, mut read: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut list = Vec::new();
        while !self.takes(end) {
            if !list.is_empty() {
                self.mark(',')?;
            }
            list.push(read(self)?);
        }
        Ok(list)
    }

    fn option(&mut self, name: String) -> Result<Opt> {
        let line = self.line();
        self.at += 1;
        let (mut key, mut value) = (None, None);
        if self.takes('=') {
            if let (Some(Kind::Word(word)), Some(Kind::Mark('='))) = (self.peek(), self.peek_after()) {
                key = Some(word.clone());
                self.at += 2;
            }
            value = Some(match self.next().cloned() {
                Some(Kind::Integer(n)) => Literal::Integer(n),
                Some(Kind::Decimal(n)) => Literal::Decimal(n),
                Some(Kind::Word(word)) => Literal::Word(word),
                Some(Kind::Text(text)) => Literal::Text(text),
                Some(Kind::Address(ip)) => Literal::Ip(ip),
                _ => return Err(ParseError::new(line, format!("--{name}= lacks a value"))),
            });
        }
        Ok(Opt { line, name, key, value })
    }

    fn event(&mut self) -> Result<Event> {
        let line = self.line();
        let when = self.when()?;
        let action = match self.peek() {
            Some(Kind::Mark('<')) => Action::Inject(self.packet(true)?),
            Some(Kind::Mark('>')) => Action::Expect(self.packet(false)?),
            Some(Kind::Command(text)) => {
                let command = command(text, line)?;
                self.at += 1;
                Action::Command(command)
            }
            Some(Kind::Ellipsis) => return Err(self.error("calls that block for a time").unsupported()),
            _ => Action::Call(self.call()?),
        };
        let sent = matches!(action, Action::Expect(_));
        match when {
            EventTime::At(_) => {}
            _ if sent => {}
            _ => {
                return Err(ParseError::new(line, "only a packet that is expected (>) can have such a time"));
            }
        }
        Ok(Event { line, when, action })
    }

    fn when(&mut self) -> Result<EventTime> {
        if self.takes('*') {
            return Ok(EventTime::Any);
        }
        let from = self.moment()?;
        if !self.takes('~') {
            return Ok(EventTime::At(from));
        }
        let line = self.line();
        match (from, self.moment()?) {
            (Moment::Absolute(a), to @ Moment::Absolute(b)) if a <= b => Ok(EventTime::Between(from, to)),
            (Moment::Relative(a), to @ Moment::Relative(b)) if a <= b => Ok(EventTime::Between(from, to)),
            _ => Err(ParseError::new(line, "a range goes from a time to a later one of the same kind")),
        }
    }

    fn moment(&mut self) -> Result<Moment> {
        let relative = self.takes('+');
        let nanos = match self.peek() {
            Some(Kind::Integer(n)) => n.checked_mul(1_000_000_000),
            Some(Kind::Decimal(n)) => Some(*n),
            _ => return self.expected("a time: 0.1, +0.1 or *"),
        };
        let nanos = nanos.and_then(|n| u64::try_from(n).ok()).filter(|n| *n < LONGEST);
        let Some(nanos) = nanos else { return Err(self.error("this is no time")) };
        self.at += 1;
        Ok(if relative { Moment::Relative(nanos) } else { Moment::Absolute(nanos) })
    }

    fn packet(&mut self, injected: bool) -> Result<Packet> {
        self.at += 1;
        let addresses = self.addresses()?;
        let ecn = self.ecn()?;
        let ports = match self.peek() {
            Some(Kind::Integer(_)) => Some(self.ports()?),
            _ => None,
        };
        self.protocol()?;
        let (checksum, body) = (Checksum::Right, Body::Chunks(Vec::new()));
        let mut packet = Packet { addresses, ports, udp: None, ecn, checksum, tag: None, body };
        if self.takes('(') {
            self.list(')', |parser| parser.header_option(&mut packet, injected))?;
        }
        packet.udp = self.encapsulation()?;
        self.mark(':')?;
        packet.body = self.body(injected)?;
        Ok(packet)
    }

    fn ports(&mut self) -> Result<(u16, u16)> {
        let source = self.number("a port")?;
        self.mark('>')?;
        Ok((source, self.number("a port")?))
    }

    /// `/udp(9899 > 9899)`.
    fn encapsulation(&mut self) -> Result<Option<(u16, u16)>> {
        if !self.takes('/') {
            return Ok(None);
        }
        let (error, what) = (self.error("packets are encapsulated in udp(PORT > PORT)"), self.word("`udp`")?);
        if what != "udp" {
            return Err(error.unsupported());
        }
        self.mark('(')?;
        let ports = self.ports()?;
        self.mark(')')?;
        Ok(Some(ports))
    }

    fn protocol(&mut self) -> Result<()> {
        match self.peek() {
            Some(Kind::Word(word)) if word == "sctp" => {
                self.at += 1;
                Ok(())
            }
            Some(Kind::Word(word)) => Err(self.error(format!("packets of {word}")).unsupported()),
            _ => self.expected("`sctp`"),
        }
    }

    fn addresses(&mut self) -> Result<Option<(IpAddr, IpAddr)>> {
        let Some(Kind::Address(source)) = self.peek().cloned() else { return Ok(None) };
        self.at += 1;
        self.mark('>')?;
        match self.peek().cloned() {
            Some(Kind::Address(destination)) if destination.is_ipv4() == source.is_ipv4() => {
                self.at += 1;
                Ok(Some((source, destination)))
            }
            _ => self.expected("an address of the same kind"),
        }
    }

    fn ecn(&mut self) -> Result<Option<Ecn>> {
        let end = match self.peek() {
            Some(Kind::Mark('(')) => ')',
            Some(Kind::Mark('[')) => ']',
            _ => return Ok(None),
        };
        self.at += 1;
        let ecn = match self.word("noecn, ect0, ect1 or ce")?.as_str() {
            "noecn" => Ecn::NotEct,
            "ect0" => Ecn::Ect0,
            "ect1" => Ecn::Ect1,
            "ce" => Ecn::Ce,
            other => return Err(self.error(format!("there is no ECN field `{other}`"))),
        };
        self.mark(end)?;
        Ok(Some(ecn))
    }

    fn header_option(&mut self, packet: &mut Packet, injected: bool) -> Result<()> {
        let error = self.error("bad_crc32c is for packets that the peer sends (<)");
        match self.word("bad_crc32c, zero_checksum or tag=")?.as_str() {
            "bad_crc32c" if injected => packet.checksum = Checksum::Wrong,
            "bad_crc32c" => return Err(error),
            "zero_checksum" => packet.checksum = Checksum::Zero,
            "tag" => {
                self.mark('=')?;
                packet.tag = Some(self.number("a verification tag")?);
            }
            other => return Err(self.error(format!("there is no packet option `{other}`"))),
        }
        Ok(())
    }

    fn body(&mut self, injected: bool) -> Result<Body> {
        if self.is('[') {
            if !injected {
                return Err(self.error("raw bytes are for packets that the peer sends (<)"));
            }
            self.at += 1;
            return Ok(Body::Raw(self.list(']', |parser| parser.number::<u8>("a byte"))?));
        }
        let mut chunks = Vec::new();
        while self.peek().is_some_and(super::form::begins) {
            let item = self.item()?;
            chunks.push(check::chunk(&item, injected)?);
            if !self.takes(';') {
                break;
            }
        }
        Ok(Body::Chunks(chunks))
    }

    /// `NAME[…]`.
    pub(super) fn item(&mut self) -> Result<Item> {
        let line = self.line();
        let name = self.word("a name")?;
        self.mark('[')?;
        let parts = self.deeper(|parser| parser.list(']', Self::part))?;
        Ok(Item { line, name, parts })
    }

    fn part(&mut self) -> Result<Part> {
        match (self.peek(), self.peek_after()) {
            (Some(Kind::Ellipsis), _) => {
                self.at += 1;
                Ok(Part::Open)
            }
            (Some(Kind::Word(key)), Some(Kind::Mark('='))) => {
                let key = key.clone();
                self.at += 2;
                Ok(Part::Pair(key, self.raw()?))
            }
            _ => self.item().map(Part::Item),
        }
    }

    fn member(&mut self) -> Result<(Option<String>, Raw)> {
        if let (Some(Kind::Word(key)), Some(Kind::Mark('='))) = (self.peek(), self.peek_after()) {
            let key = key.clone();
            self.at += 2;
            return Ok((Some(key), self.raw()?));
        }
        Ok((None, self.raw()?))
    }

    fn raw(&mut self) -> Result<Raw> {
        let simple = match (self.peek(), self.peek_after()) {
            (Some(Kind::Mark('[')), _) => {
                self.at += 1;
                let list = self.deeper(|parser| parser.list(']', Self::raw))?;
                return Ok(if list == [Raw::Open] { Raw::Open } else { Raw::List(list) });
            }
            (Some(Kind::Word(_)), Some(Kind::Mark('['))) => return self.item().map(Raw::Item),
            (Some(Kind::Mark('{')), _) => {
                self.at += 1;
                return self.deeper(|parser| parser.list('}', Self::member)).map(Raw::Record);
            }
            (Some(Kind::Integer(_)), Some(Kind::Mark(':'))) => {
                let from = self.integer("a number")?;
                self.mark(':')?;
                return Ok(Raw::Gap(from, self.integer("a number")?));
            }
            (Some(Kind::Ellipsis), _) => Raw::Open,
            (Some(Kind::Integer(n)), _) => Raw::Integer(*n),
            (Some(Kind::Word(word)), _) => Raw::Word(word.clone()),
            (Some(Kind::Text(text)), _) => Raw::Text(text.clone()),
            (Some(Kind::Address(ip)), _) => Raw::Ip(*ip),
            _ => return self.expected("a value"),
        };
        self.at += 1;
        Ok(simple)
    }

    fn call(&mut self) -> Result<Call> {
        let name = self.word("a packet (< or >), a call or a command")?;
        self.mark('(')?;
        let arguments = self.list(')', Self::expr)?;
        self.mark('=')?;
        let result = self.expr()?;
        let mut errno = None;
        // No other continuation begins with a word.
        if let Some(Kind::Word(word)) = self.peek() {
            errno = Some(word.clone());
            self.at += 1;
        }
        if self.takes('(') {
            // A comment.
            while !self.takes(')') {
                if self.next().is_none() {
                    return Err(self.error("this remark has no end"));
                }
            }
        }
        Ok(Call { name, arguments, result, errno })
    }

    fn expr(&mut self) -> Result<Expr> {
        let first = self.deeper(Self::primary)?;
        if self.is('~') {
            self.at += 1;
            return match (first, self.integer("a number")?) {
                (Expr::Integer(low), high) if low <= high => Ok(Expr::Range(low, high)),
                _ => Err(self.error("a range goes from a number to a greater one")),
            };
        }
        if !self.is('|') {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.takes('|') {
            all.push(self.deeper(Self::primary)?);
        }
        Ok(Expr::Or(all))
    }

    fn primary(&mut self) -> Result<Expr> {
        let expr = match self.peek() {
            // Bytes keep the order of the script, whatever the byte order of the machine.
            Some(Kind::Word(word)) if matches!(word.as_str(), "htonl" | "htons" | "inet_addr") => {
                self.at += 1;
                self.mark('(')?;
                let inner = self.deeper(Self::primary)?;
                self.mark(')')?;
                return Ok(inner);
            }
            Some(Kind::Mark('[')) => {
                self.at += 1;
                return self.list(']', Self::expr).map(Expr::List);
            }
            Some(Kind::Mark('{')) => {
                self.at += 1;
                return self.list('}', Self::field).map(Expr::Fields);
            }
            Some(Kind::Ellipsis) => Expr::Any,
            Some(Kind::Integer(n)) => Expr::Integer(*n),
            Some(Kind::Word(word)) => Expr::Word(word.clone()),
            Some(Kind::Text(text)) => Expr::Text(text.clone()),
            Some(Kind::Address(ip)) => Expr::Ip(*ip),
            _ => return self.expected("a value"),
        };
        self.at += 1;
        Ok(expr)
    }

    /// `key=value`, `key(size)=value`, or a value alone, which gets an empty key.
    fn field(&mut self) -> Result<(String, Expr)> {
        let key = match (self.peek(), self.peek_after()) {
            (Some(Kind::Word(key)), Some(Kind::Mark('=' | '('))) => key.clone(),
            _ => return Ok((String::new(), self.expr()?)),
        };
        self.at += 1;
        if self.takes('(') {
            self.deeper(Self::primary)?;
            self.mark(')')?;
        }
        self.mark('=')?;
        Ok((key, self.expr()?))
    }
}

/// Reads a command. No shell is run.
fn command(text: &str, line: u32) -> Result<Command> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let wrong = |why: &str| ParseError::new(line, why);
    let address = |word: &str| word.parse().map_err(|_| wrong(&format!("`{word}` is no address")));
    match words[..] {
        ["sysctl", "-w" | "-i", assignment] | ["sysctl", assignment] => {
            let (name, value) = assignment.split_once('=').ok_or_else(|| wrong("sysctl NAME=VALUE"))?;
            let value = value.parse().map_err(|_| wrong(&format!("`{value}` is no number")))?;
            Ok(Command::Sysctl { name: name.to_owned(), value })
        }
        ["link", local, "up"] => Ok(Command::Link { local: address(local)?, up: true }),
        ["link", local, "down"] => Ok(Command::Link { local: address(local)?, up: false }),
        ["link", ..] => Err(wrong("link ADDRESS up, or link ADDRESS down")),
        ["too-big", peer, mtu] => {
            let mtu = mtu.parse().map_err(|_| wrong(&format!("`{mtu}` is no number of bytes")))?;
            Ok(Command::TooBig { peer: address(peer)?, mtu })
        }
        ["too-big", ..] => Err(wrong("too-big ADDRESS BYTES")),
        _ => Err(wrong(&format!("the command `{text}`")).unsupported()),
    }
}
