//! A TCP segment in short: the numbers of its header, its options, and each option of Multipath TCP (RFC 8684).

use std::net::IpAddr;

use etherparse::{TcpOptionElement, TcpSlice};
use serde_json::{Value, json};

use super::chunks::{Fields, Short};
use crate::transport::mptcp::{long, short, word};
use crate::transport::tcp::{self, Segment};

/// The kind of the option of Multipath TCP.
const MULTIPATH: u8 = 30;
const NO_OPERATION: u8 = 1;

/// A segment as a line shows it.
pub(super) struct Shown {
    pub(super) ports: (u16, u16),
    /// The segment, then its options of Multipath TCP.
    pub(super) parts: Vec<Short>,
}

/// Reads a segment of which the last `missing` bytes were not captured. The error says what is wrong with it.
pub(super) fn segment(bytes: &[u8], missing: usize) -> Result<Shown, String> {
    let header = TcpSlice::from_slice(bytes).map_err(|error| match missing {
        0 => format!("malformed: {error}"),
        _ => format!("cut: {} bytes of TCP were captured", bytes.len()),
    })?;
    let user_data = header.payload().len() + missing;
    let mut parts = vec![Short::named("TCP", fields(&header, user_data))];
    parts.extend(multipath(header.options()));
    Ok(Shown { ports: (header.source_port(), header.destination_port()), parts })
}

/// A segment of a run in short: "TCP seq=7 …", and each of its options of Multipath TCP.
pub fn segment_summary(of: &Segment) -> Vec<String> {
    let shown = segment(&tcp::header(of).to_bytes(), of.length as usize);
    shown.into_iter().flat_map(|shown| shown.parts).map(|part| part.to_string()).collect()
}

fn fields(header: &TcpSlice<'_>, user_data: usize) -> Fields {
    let flags = [
        (header.syn(), "SYN"),
        (header.fin(), "FIN"),
        (header.rst(), "RST"),
        (header.psh(), "PSH"),
        (header.urg(), "URG"),
        (header.ece(), "ECE"),
        (header.cwr(), "CWR"),
    ];
    let set: Vec<&str> = flags.into_iter().filter_map(|(set, name)| set.then_some(name)).collect();
    let mut fields = vec![("flags", json!(set)), ("seq", json!(header.sequence_number()))];
    if header.ack() {
        fields.push(("ack", json!(header.acknowledgment_number())));
    }
    fields.extend([("win", json!(header.window_size())), ("len", json!(user_data))]);
    for option in header.options_iterator().flatten() {
        match option {
            TcpOptionElement::MaximumSegmentSize(mss) => fields.push(("mss", json!(mss))),
            TcpOptionElement::WindowScale(scale) => fields.push(("wscale", json!(scale))),
            TcpOptionElement::SelectiveAcknowledgementPermitted => {
                fields.push(("sack_permitted", json!(true)));
            }
            TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
                let blocks: Vec<_> = std::iter::once(first).chain(rest.into_iter().flatten()).collect();
                fields.push(("sack", json!(blocks)));
            }
            TcpOptionElement::Timestamp(value, echo) => {
                fields.extend([("ts_value", json!(value)), ("ts_echo", json!(echo))]);
            }
            TcpOptionElement::Noop => {}
        }
    }
    fields
}

/// The options of Multipath TCP, in their order.
fn multipath(mut options: &[u8]) -> Vec<Short> {
    let mut found = Vec::new();
    while let [kind, rest @ ..] = options {
        options = match *kind {
            0 => break,
            NO_OPERATION => rest,
            kind => {
                let length = rest.first().map_or(0, |length| usize::from(*length));
                let Some((option, after)) = options.split_at_checked(length.max(2)) else {
                    found.extend((kind == MULTIPATH).then(|| malformed("MPTCP")));
                    break;
                };
                if kind == MULTIPATH {
                    found.push(option_of(&option[2..]));
                }
                after
            }
        };
    }
    found
}

fn malformed(name: &str) -> Short {
    Short::named(name, vec![("malformed", json!(true))])
}

/// One option, without its kind and length.
//= rfc8684#section-3
fn option_of(bytes: &[u8]) -> Short {
    let Some(first) = bytes.first() else { return malformed("MPTCP") };
    let (name, fields) = match first >> 4 {
        0 => ("MP_CAPABLE", capable(bytes)),
        1 => ("MP_JOIN", join(bytes)),
        2 => ("DSS", data_signal(bytes)),
        3 => ("ADD_ADDR", add_address(bytes)),
        4 => ("REMOVE_ADDR", Some(vec![("ids", json!(bytes[1..]))])),
        5 => ("MP_PRIO", Some(vec![("backup", json!(first & 1 != 0)), ("regular", json!(first & 1 == 0))])),
        6 => ("MP_FAIL", long(bytes, 2).map(|number| vec![("dsn", json!(number))])),
        7 => ("MP_FASTCLOSE", long(bytes, 2).map(|key| vec![("key", hex(key))])),
        8 => ("MP_TCPRST", bytes.get(1).map(|reason| vec![("reason", json!(reason))])),
        subtype => ("MPTCP", Some(vec![("subtype", json!(subtype))])),
    };
    fields.map_or_else(|| malformed(name), |fields| Short::named(name, fields))
}

//= rfc8684#section-3.1
fn capable(bytes: &[u8]) -> Option<Fields> {
    let mut fields = vec![("version", json!(bytes[0] & 15))];
    let flags = *bytes.get(1)?;
    fields.push(("checksums", json!(flags & 0x80 != 0)));
    if bytes.len() > 2 {
        fields.push(("key", hex(long(bytes, 2)?)));
    }
    if bytes.len() > 10 {
        fields.push(("peer_key", hex(long(bytes, 10)?)));
    }
    if bytes.len() > 18 {
        fields.push(("length", json!(short(bytes, 18)?)));
    }
    Some(fields)
}

//= rfc8684#section-3.2
fn join(bytes: &[u8]) -> Option<Fields> {
    let backup = ("backup", json!(bytes[0] & 1 != 0));
    let id = ("id", json!(bytes.get(1)?));
    match bytes.len() {
        10 => Some(vec![backup, id, ("token", hex32(word(bytes, 2)?)), ("nonce", hex32(word(bytes, 6)?))]),
        14 => Some(vec![backup, id, ("hmac", hex(long(bytes, 2)?)), ("nonce", hex32(word(bytes, 10)?))]),
        22 => Some(vec![("hmac_bytes", json!(20))]),
        _ => None,
    }
}

//= rfc8684#section-3.3
fn data_signal(bytes: &[u8]) -> Option<Fields> {
    let flags = *bytes.get(1)?;
    let set = |bit: u8| flags & bit != 0;
    let (mut fields, mut at) = (Vec::new(), 2);
    let mut number = |wide: bool| {
        let (number, size) = if wide { (long(bytes, at)?, 8) } else { (u64::from(word(bytes, at)?), 4) };
        at += size;
        Some(number)
    };
    if set(0x01) {
        fields.push(("data_ack", json!(number(set(0x02))?)));
    }
    if set(0x04) {
        fields.push(("dsn", json!(number(set(0x08))?)));
        fields.push(("subflow_seq", json!(word(bytes, at)?)));
        fields.push(("length", json!(short(bytes, at + 4)?)));
        if let Some(checksum) = short(bytes, at + 6) {
            fields.push(("checksum", json!(format!("{checksum:#06x}"))));
        }
    }
    fields.push(("DATA_FIN", json!(set(0x10))));
    Some(fields)
}

//= rfc8684#section-3.4.1
fn add_address(bytes: &[u8]) -> Option<Fields> {
    let echo = bytes[0] & 1 != 0;
    let id = bytes.get(1)?;
    let rest = bytes.get(2..bytes.len().checked_sub(if echo { 0 } else { 8 })?)?;
    let (address, port): (IpAddr, &[u8]) = match rest.len() {
        4 | 6 => (<[u8; 4]>::try_from(&rest[..4]).ok()?.into(), &rest[4..]),
        16 | 18 => (<[u8; 16]>::try_from(&rest[..16]).ok()?.into(), &rest[16..]),
        _ => return None,
    };
    let mut fields = vec![("id", json!(id)), ("address", json!(address.to_string()))];
    fields.extend(short(port, 0).map(|port| ("port", json!(port))));
    fields.push(("echo", json!(echo)));
    Some(fields)
}

fn hex(number: u64) -> Value {
    json!(format!("{number:#018x}"))
}

fn hex32(number: u32) -> Value {
    json!(format!("{number:#010x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::mptcp::{AddAddress, DataAck, Dss, Handshake, Mapping, MptcpOptions, RareOptions};
    use crate::transport::tcp::Sequence;

    fn line(segment: &Segment) -> String {
        let bytes = tcp::header(segment).to_bytes();
        let shown = super::segment(&bytes, segment.length as usize).expect("it can be read");
        shown.parts.iter().map(Short::to_string).collect::<Vec<_>>().join("; ")
    }

    fn with(mptcp: MptcpOptions) -> Segment {
        let mptcp = Some(mptcp);
        Segment { source: 1, destination: 2, sequence: Sequence(7), window: 9, mptcp, ..Segment::default() }
    }

    #[test]
    fn a_segment_and_its_options_are_named() {
        let rare = |rare| MptcpOptions { dss: None, rare: Some(Box::new(rare)) };
        let greeting = |handshake| rare(RareOptions { handshake: Some(handshake), ..RareOptions::default() });
        let mapping = Some(Mapping { data: 1 << 40, subflow: 7, length: 1437 });
        let dss = Dss { ack: Some(DataAck::Short(5)), mapping, fin: true };
        let added = AddAddress { id: 2, address: [10, 0, 0, 6].into(), hmac: Some(1) };
        let syn = Segment { syn: true, mss: Some(1460), ..with(greeting(Handshake::Capable)) };
        let data = with(MptcpOptions { dss: Some(dss), ..MptcpOptions::default() });
        let sack = smallvec::smallvec![(Sequence(3), Sequence(9))];
        let acknowledgement = Some(Sequence(3));
        let join = Handshake::Join { backup: true, address: 1, token: 5, nonce: 6 };
        let all = [
            (syn, "TCP flags=SYN seq=7 win=9 len=0 mss=1460; MP_CAPABLE version=1"),
            (
                with(greeting(join)),
                "TCP seq=7 win=9 len=0; MP_JOIN backup id=1 token=0x00000005 nonce=0x00000006",
            ),
            (
                Segment { length: 1436, acknowledgement, ..data },
                "TCP flags=PSH seq=7 ack=3 win=9 len=1436; DSS data_ack=5 dsn=1099511627776 subflow_seq=7 length=1437 DATA_FIN",
            ),
            (
                with(rare(RareOptions { add_address: Some(added), ..RareOptions::default() })),
                "TCP seq=7 win=9 len=0; ADD_ADDR id=2 address=10.0.0.6",
            ),
            (
                Segment { mptcp: None, sack, ..with(MptcpOptions::default()) },
                "TCP seq=7 win=9 len=0 sack=3-9",
            ),
        ];
        for (segment, expected) in all {
            assert_eq!(line(&segment), expected);
        }
    }

    /// Forms that we do not send: numbers of 4 octets, a checksum, a port.
    #[test]
    fn what_other_stacks_send_is_read() {
        let text = |bytes: &[u8]| option_of(bytes).to_string();
        assert_eq!(
            text(&[0x20, 0x05, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 4, 0, 5]),
            "DSS data_ack=1 dsn=2 subflow_seq=3 length=4 checksum=0x0005"
        );
        assert_eq!(text(&[0x31, 4, 10, 0, 0, 1, 0, 80]), "ADD_ADDR id=4 address=10.0.0.1 port=80 echo");
        assert_eq!(text(&[0x40, 1, 2]), "REMOVE_ADDR ids=1,2");
        assert_eq!(text(&[0x50]), "MP_PRIO regular");
        assert_eq!(text(&[0x80, 3]), "MP_TCPRST reason=3");
    }

    #[test]
    fn every_prefix_of_an_option_is_read_or_called_malformed() {
        let mapping = Some(Mapping { data: 1, subflow: 7, length: 1 });
        let dss = Some(Dss { ack: Some(DataAck::Long(5)), mapping, fin: false });
        let bytes = MptcpOptions { dss, ..MptcpOptions::default() }.encode();
        for end in 0..bytes.len() {
            assert!(multipath(&bytes[..end]).len() <= 1, "{end} octets");
        }
        assert_eq!(multipath(&bytes[..9])[0].to_string(), "MPTCP malformed");
        for first in 0..=u8::MAX {
            for length in 0..30 {
                let mut option = vec![first; length];
                option.insert(0, first);
                let _ = option_of(&option).to_string();
            }
        }
    }
}
