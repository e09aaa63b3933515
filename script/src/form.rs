//! The forms of chunks, parameters and causes. One table says how each is written in a script and how it is encoded.
//! Reading, encoding, comparing and printing all use it.

use super::lex::Kind;
use Family::{Cause, Chunk, Param};
use Slot::*;

/// The family of a form. Families differ in their header and in their generic form.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Family {
    Chunk,
    Param,
    Cause,
}

impl Family {
    /// Its name with the article.
    pub(super) fn what(self) -> &'static str {
        match self {
            Chunk => "a chunk",
            Param => "a parameter",
            Cause => "an error cause",
        }
    }
}

/// A part of a form, in the order in which it is written and encoded.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Slot {
    /// `flgs=`; in the chunk header.
    Flags,
    /// `type=` or `code=`; in the header.
    Number(&'static str),
    /// `len=`; in the header.
    Length,
    /// An integer with this number of bytes.
    Integer(&'static str, usize),
    /// An integer with this number of bytes. It has the first name with the B flag and the second name without.
    Either(&'static str, &'static str, usize),
    /// An optional integer with this number of bytes at the end.
    Maybe(&'static str, usize),
    /// `[{1, 2}, {3, 4}]` to the end: records of integers with these sizes. All but `res` may be written with names.
    Records(&'static str, &'static [(&'static str, usize)]),
    /// Zeros that are not written in scripts.
    Zeros(usize),
    /// This number of 16-bit counts, for the lists that follow.
    Counts(usize),
    /// A 32-bit count, for the list that follows.
    LongCount,
    /// Pairs of 16-bit numbers: `[1:2, 4:4]`.
    Pairs(&'static str),
    /// Numbers with this number of bytes each, counted or to the end.
    Integers(&'static str, usize),
    /// Bytes to the end.
    Bytes(&'static str),
    /// User data: zeros when sent, ignored when received.
    Payload,
    /// Text to the end. The flag says whether it ends with a NUL.
    Text(&'static str, bool),
    Ipv4(&'static str),
    Ipv6(&'static str),
    /// All remaining elements, without a key.
    List(Family),
    /// `key=[A[], B[]]`: elements to the end.
    Listed(&'static str, Family),
    /// `key=A[]`: one element, a chunk with its padding.
    One(&'static str, Family),
}

/// The form of one type of chunk, parameter or cause.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Form {
    pub(super) family: Family,
    pub(super) name: &'static str,
    /// `None`: the script writes the number (`CHUNK`, `PARAMETER`, `CAUSE`).
    pub(super) number: Option<u16>,
    pub(super) slots: &'static [Slot],
}

impl Form {
    /// The generic form, which fits every element.
    pub(super) fn generic(family: Family) -> &'static Form {
        FORMS.iter().find(|form| form.family == family && form.number.is_none()).unwrap_or(&FORMS[0])
    }

    pub(super) fn named(family: Family, name: &str) -> Option<&'static Form> {
        FORMS.iter().find(|form| form.family == family && form.name == name)
    }

    /// The form of the element with this number.
    pub(super) fn numbered(family: Family, number: u16) -> &'static Form {
        let found = FORMS.iter().find(|form| form.family == family && form.number == Some(number));
        found.unwrap_or_else(|| Form::generic(family))
    }

    pub(super) fn has_length(&self) -> bool {
        self.slots.contains(&Length)
    }

    /// The letters for flags, and their bits.
    pub(super) fn letters(&self) -> &'static [(char, u8)] {
        match self.name {
            "DATA" | "I_DATA" => &[('I', 8), ('U', 4), ('B', 2), ('E', 1)],
            "ABORT" | "SHUTDOWN_COMPLETE" => &[('T', 1)],
            _ => &[],
        }
    }
}

/// Whether an element can begin with this token.
pub(super) fn begins(kind: &Kind) -> bool {
    matches!(kind, Kind::Word(word) if word.starts_with(|c: char| c.is_ascii_uppercase()))
}

const fn form(family: Family, name: &'static str, number: u16, slots: &'static [Slot]) -> Form {
    Form { family, name, number: Some(number), slots }
}

const INIT: &[Slot] = &[
    Flags,
    Integer("tag", 4),
    Integer("a_rwnd", 4),
    Integer("os", 2),
    Integer("is", 2),
    Integer("tsn", 4),
    List(Param),
];

/// All forms. The numbers are those of the IANA registries.
pub(super) static FORMS: &[Form] = &[
    form(
        Chunk,
        "DATA",
        0,
        &[
            Flags,
            Length,
            Integer("tsn", 4),
            Integer("sid", 2),
            Integer("ssn", 2),
            Integer("ppid", 4),
            Payload,
        ],
    ),
    form(Chunk, "INIT", 1, INIT),
    form(Chunk, "INIT_ACK", 2, INIT),
    form(
        Chunk,
        "SACK",
        3,
        &[Flags, Integer("cum_tsn", 4), Integer("a_rwnd", 4), Counts(2), Pairs("gaps"), Integers("dups", 4)],
    ),
    form(Chunk, "HEARTBEAT", 4, &[Flags, List(Param)]),
    form(Chunk, "HEARTBEAT_ACK", 5, &[Flags, List(Param)]),
    form(Chunk, "ABORT", 6, &[Flags, List(Cause)]),
    form(Chunk, "SHUTDOWN", 7, &[Flags, Integer("cum_tsn", 4)]),
    form(Chunk, "SHUTDOWN_ACK", 8, &[Flags]),
    form(Chunk, "ERROR", 9, &[Flags, List(Cause)]),
    form(Chunk, "COOKIE_ECHO", 10, &[Flags, Length, Bytes("val")]),
    form(Chunk, "COOKIE_ACK", 11, &[Flags]),
    form(Chunk, "ECNE", 12, &[Flags, Integer("tsn", 4)]),
    form(Chunk, "CWR", 13, &[Flags, Integer("tsn", 4)]),
    form(Chunk, "SHUTDOWN_COMPLETE", 14, &[Flags]),
    form(
        Chunk,
        "NR_SACK",
        16,
        &[
            Flags,
            Integer("cum_tsn", 4),
            Integer("a_rwnd", 4),
            Counts(3),
            Zeros(2),
            Pairs("gaps"),
            Pairs("nr_gaps"),
            Integers("dups", 4),
        ],
    ),
    form(
        Chunk,
        "I_DATA",
        64,
        &[
            Flags,
            Length,
            Integer("tsn", 4),
            Integer("sid", 2),
            Zeros(2),
            Integer("mid", 4),
            Either("ppid", "fsn", 4),
            Payload,
        ],
    ),
    form(Chunk, "RECONFIG", 130, &[Flags, List(Param)]),
    form(Chunk, "PAD", 132, &[Flags, Length, Bytes("val")]),
    form(Chunk, "TIMESTAMP", 144, &[Flags, Integer("sent", 4), Integer("echo", 4)]),
    form(Chunk, "FORWARD_TSN", 192, &[Integer("cum_tsn", 4), Records("ids", &[("sid", 2), ("ssn", 2)])]),
    form(
        Chunk,
        "I_FORWARD_TSN",
        194,
        &[Integer("cum_tsn", 4), Records("ids", &[("sid", 2), ("res", 2), ("mid", 4)])],
    ),
    Form {
        family: Chunk,
        name: "CHUNK",
        number: None,
        slots: &[Number("type"), Flags, Length, Bytes("val")],
    },
    form(Param, "HEARTBEAT_INFORMATION", 1, &[Length, Bytes("val")]),
    form(Param, "IPV4_ADDRESS", 5, &[Ipv4("addr")]),
    form(Param, "IPV6_ADDRESS", 6, &[Ipv6("addr")]),
    form(Param, "STATE_COOKIE", 7, &[Length, Bytes("val")]),
    form(Param, "UNRECOGNIZED_PARAMETER", 8, &[Listed("params", Param)]),
    form(Param, "COOKIE_PRESERVATIVE", 9, &[Integer("incr", 4)]),
    form(Param, "HOSTNAME_ADDRESS", 11, &[Text("addr", true)]),
    form(Param, "SUPPORTED_ADDRESS_TYPES", 12, &[Integers("types", 2)]),
    form(
        Param,
        "OUTGOING_SSN_RESET",
        13,
        &[Integer("req_sn", 4), Integer("resp_sn", 4), Integer("last_tsn", 4), Integers("sids", 2)],
    ),
    form(Param, "INCOMING_SSN_RESET", 14, &[Integer("req_sn", 4), Integers("sids", 2)]),
    form(Param, "SSN_TSN_RESET", 15, &[Integer("req_sn", 4)]),
    form(
        Param,
        "RECONFIG_RESPONSE",
        16,
        &[
            Integer("resp_sn", 4),
            Integer("result", 4),
            Maybe("sender_next_tsn", 4),
            Maybe("receiver_next_tsn", 4),
        ],
    ),
    form(
        Param,
        "ADD_OUTGOING_STREAMS",
        17,
        &[Integer("req_sn", 4), Integer("number_of_new_streams", 2), Zeros(2)],
    ),
    form(
        Param,
        "ADD_INCOMING_STREAMS",
        18,
        &[Integer("req_sn", 4), Integer("number_of_new_streams", 2), Zeros(2)],
    ),
    form(Param, "ECN_CAPABLE", 0x8000, &[]),
    form(Param, "ZERO_CHECKSUM_ACCEPTABLE", 0x8001, &[Integer("edmid", 4)]),
    form(Param, "PAD", 0x8005, &[Length, Bytes("val")]),
    form(Param, "SUPPORTED_EXTENSIONS", 0x8008, &[Integers("types", 1)]),
    form(Param, "FORWARD_TSN_SUPPORTED", 0xc000, &[]),
    form(Param, "ADAPTATION_INDICATION", 0xc006, &[Integer("adaptation_code_point", 4)]),
    Form { family: Param, name: "PARAMETER", number: None, slots: &[Number("type"), Length, Bytes("val")] },
    form(Cause, "INVALID_STREAM_IDENTIFIER", 1, &[Integer("sid", 2), Zeros(2)]),
    form(Cause, "MISSING_MANDATORY_PARAMETER", 2, &[LongCount, Integers("types", 2)]),
    form(Cause, "STALE_COOKIE_ERROR", 3, &[Integer("staleness", 4)]),
    form(Cause, "OUT_OF_RESOURCE", 4, &[]),
    form(Cause, "UNRESOLVABLE_ADDRESS", 5, &[One("param", Param)]),
    form(Cause, "UNRECOGNIZED_CHUNK_TYPE", 6, &[One("chk", Chunk)]),
    form(Cause, "INVALID_MANDATORY_PARAMETER", 7, &[]),
    form(Cause, "UNRECOGNIZED_PARAMETERS", 8, &[Listed("params", Param)]),
    form(Cause, "NO_USER_DATA", 9, &[Integer("tsn", 4)]),
    form(Cause, "COOKIE_RECEIVED_WHILE_SHUTDOWN", 10, &[]),
    form(Cause, "RESTART_WITH_NEW_ADDRESSES", 11, &[Listed("params", Param)]),
    form(Cause, "USER_INITIATED_ABORT", 12, &[Text("info", false)]),
    form(Cause, "PROTOCOL_VIOLATION", 13, &[Text("info", false)]),
    Form { family: Cause, name: "CAUSE", number: None, slots: &[Number("code"), Length, Bytes("info")] },
];
