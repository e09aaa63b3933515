//! The options at the top of a script: addresses, tolerance, and parameters of the stack.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_proto::wire::{Address, UDP_PORT};
use anabranch_proto::{Config, LocalAddress};

use super::ast::{Literal, Opt};
use super::names::did_you_mean;
use super::{Options, ParseError};

/// The SCTP port of the stack, and of the peer to which it connects.
pub(super) const PORT: u16 = 8080;

/// The settings that a script's options make.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Setup {
    /// Parameters of the stack before any call has changed them.
    pub(super) config: Config,
    pub(super) local: Vec<IpAddr>,
    pub(super) peer: Vec<IpAddr>,
    pub(super) tolerance: Tolerance,
    /// The UDP port of both ends. 0: packets are sent on IP directly.
    pub(super) udp: u16,
}

/// The allowed deviation of a packet from its time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Tolerance {
    /// Nanoseconds.
    pub(super) least: u64,
    /// Part of the time since the previous event, in billionths of a per cent.
    pub(super) percent: u64,
}

impl Tolerance {
    /// The tolerance in nanoseconds for an event this number of nanoseconds after the previous one.
    pub(super) fn after(&self, interval: u64) -> u64 {
        let share = u128::from(interval) * u128::from(self.percent) / 100_000_000_000;
        self.least.max(u64::try_from(share).unwrap_or(u64::MAX))
    }
}

const BILLION: i128 = 1_000_000_000;

/// Reads the `lines` with options at the top of a script. `options` holds the defaults.
pub(super) fn setup(lines: &[Opt], options: &Options) -> Result<Setup, ParseError> {
    let mut draft = Draft::default();
    for line in lines {
        draft.take(line)?;
    }
    draft.finish(options)
}

struct Draft {
    local: Vec<IpAddr>,
    peer: Vec<IpAddr>,
    ipv6: bool,
    tolerance: Tolerance,
    mtu: u32,
    udp: u16,
    /// Keys of `[flow.sctp]` with the line and the value as TOML.
    sctp: Vec<(u32, String, String)>,
}

impl Default for Draft {
    fn default() -> Self {
        let tolerance = Tolerance { least: 4_000_000, percent: 5 * BILLION as u64 };
        Draft { local: vec![], peer: vec![], ipv6: false, tolerance, mtu: 1500, udp: 0, sctp: vec![] }
    }
}

impl Draft {
    fn take(&mut self, option: &Opt) -> Result<(), ParseError> {
        let wrong =
            |takes: &str| Err(ParseError::new(option.line, format!("--{} takes {takes}", option.name)));
        match (option.name.as_str(), &option.key, &option.value) {
            // The lexer has already processed it.
            ("define", None, Some(Literal::Word(_))) => {}
            ("define", ..) => return wrong("a name"),
            ("local", None, Some(Literal::Ip(ip))) => self.local.push(*ip),
            ("peer", None, Some(Literal::Ip(ip))) => self.peer.push(*ip),
            ("local" | "peer", ..) => return wrong("an address"),
            ("ip_version", None, Some(Literal::Word(version))) if version == "ipv6" => self.ipv6 = true,
            ("ip_version", None, Some(Literal::Word(version))) if version == "ipv4" => {}
            ("ip_version", ..) => return wrong("ipv4 or ipv6"),
            ("tolerance_usecs", None, Some(Literal::Integer(n @ 0..=1_000_000_000))) => {
                self.tolerance.least = *n as u64 * 1000;
            }
            ("tolerance_usecs", ..) => return wrong("microseconds, at most 1000000000"),
            ("tolerance_percent", None, Some(Literal::Integer(n @ 0..=1000))) => {
                self.tolerance.percent = (n * BILLION) as u64;
            }
            ("tolerance_percent", None, Some(Literal::Decimal(n))) if (0..=1000 * BILLION).contains(n) => {
                self.tolerance.percent = *n as u64;
            }
            ("tolerance_percent", ..) => return wrong("per cent, 0 to 1000"),
            ("mtu", None, Some(Literal::Integer(n @ 548..=65_535))) => self.mtu = *n as u32,
            ("mtu", ..) => return wrong("bytes, 548 to 65535"),
            ("udp_encaps", None, Some(Literal::Word(what))) if what == "sctp" => self.udp = UDP_PORT,
            ("udp_encaps", ..) => return wrong("sctp"),
            ("sctp", Some(key), Some(value)) => self.sctp.push((option.line, key.clone(), toml(value))),
            ("sctp", ..) => return wrong("KEY=VALUE, a key of [flow.sctp] (docs/scenario.md)"),
            (name, ..) => {
                let known = [
                    "define",
                    "local",
                    "peer",
                    "ip_version",
                    "tolerance_usecs",
                    "tolerance_percent",
                    "mtu",
                    "udp_encaps",
                    "sctp",
                ];
                let hint = did_you_mean(name, known);
                return Err(ParseError::new(option.line, format!("there is no option --{name}: {hint}")));
            }
        }
        Ok(())
    }

    fn finish(mut self, options: &Options) -> Result<Setup, ParseError> {
        let default: [IpAddr; 2] = if self.ipv6 {
            [
                Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1).into(),
                Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
            ]
        } else {
            [Ipv4Addr::new(192, 168, 0, 1).into(), Ipv4Addr::new(192, 0, 2, 1).into()]
        };
        for (addresses, default) in [&mut self.local, &mut self.peer].into_iter().zip(default) {
            if addresses.is_empty() {
                addresses.push(default);
            }
        }
        let mut config = self.parameters(options)?;
        let address = |ip: &IpAddr| Address { ip: *ip, udp: self.udp };
        config.addresses =
            self.local.iter().map(|ip| LocalAddress { address: address(ip), prefix: 24 }).collect();
        config.port = PORT;
        config.mtu = self.mtu;
        let ipv6 = self.local.iter().chain(&self.peer).any(IpAddr::is_ipv6);
        config.ip_header = if ipv6 { 40 } else { 20 };
        config.check().map_err(|error| ParseError::new(1, error.to_string()))?;
        Ok(Setup { config, local: self.local, peer: self.peer, tolerance: self.tolerance, udp: self.udp })
    }

    fn parameters(&self, options: &Options) -> Result<Config, ParseError> {
        let own = self.sctp.iter().map(|(_, key, value)| format!("{key}={value}"));
        let jitter = "heartbeat_jitter=false".to_owned();
        let all: Vec<_> = std::iter::once(jitter).chain(options.sctp.iter().cloned()).chain(own).collect();
        (options.read)(&all).map_err(|error| {
            let line = self.sctp.iter().find(|(_, key, _)| error.key == *key).or(self.sctp.first());
            let message = format!("--sctp={}: {}", error.key, error.message);
            ParseError::new(line.map_or(1, |(line, ..)| *line), message)
        })
    }
}

/// Writes the literal as TOML.
fn toml(value: &Literal) -> String {
    match value {
        Literal::Integer(n) => n.to_string(),
        Literal::Decimal(n) => {
            let (sign, n) = (if *n < 0 { "-" } else { "" }, n.unsigned_abs());
            format!("{sign}{}.{:09}", n / BILLION as u128, n % BILLION as u128)
        }
        Literal::Word(word) if word == "true" || word == "false" => word.clone(),
        // A policy with its settings is an inline table.
        Literal::Text(text) if text.starts_with('{') && text.ends_with('}') => text.clone(),
        Literal::Word(text) | Literal::Text(text) => ::toml::Value::from(text.as_str()).to_string(),
        Literal::Ip(ip) => ::toml::Value::from(ip.to_string()).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_sign() {
        for (billionths, text) in
            [(-500_000_000, "-0.500000000"), (-1_500_000_000, "-1.500000000"), (5, "0.000000005")]
        {
            assert_eq!(toml(&Literal::Decimal(billionths)), text);
        }
    }
}
