//! What is tried, each with the peer in both roles.

mod closing;
mod interleaving;
mod messages;
mod partial;
mod setup;
mod streams;

use anabranch_proto::Extensions;

use crate::bench::{Bench, Done, Weather};
use crate::matrix::Stack;
use crate::paths::{From, Over, Sending, Trial};

/// How it is tried.
#[derive(Copy, Clone)]
pub enum Run {
    /// Beside our endpoint, with nothing but the small network between.
    Bench(fn(&mut Bench) -> Done),
    /// On two hosts with two links.
    Paths(Trial),
    /// The same, where this end deletes an address and adds it again.
    Addresses(From),
}

/// One thing that is tried.
pub struct Row {
    /// For `--only`.
    pub name: &'static str,
    /// What it shows, for people.
    pub what: &'static str,
    pub run: Run,
    /// What both ends offer.
    pub extensions: Extensions,
    pub authenticated: bool,
    /// Of a thousand packets so many are lost.
    pub loss: u64,
    /// Of these kinds of packets the first is lost.
    pub lose_first: &'static [u8],
    /// Stacks that cannot do it; of any other, that is a failure.
    pub not_offered: &'static [Stack],
    /// A stack that breaks its RFC here, so that the row cannot pass.
    pub wrong: Option<Wrong>,
    /// What is to be known of a stack although the row passes.
    pub note: Option<(Stack, &'static str)>,
}

/// What a stack does against its RFC.
#[derive(Copy, Clone)]
pub struct Wrong {
    pub stack: Stack,
    /// What it does, and which section says otherwise.
    pub place: &'static str,
    /// How the row fails because of it. Any other failure is one.
    pub sign: &'static str,
}

const NOT_DCSCTP: &[Stack] = &[Stack::Dcsctp];
const ONLY_USRSCTP_HAS_CMT: &[Stack] = &[Stack::Linux, Stack::Dcsctp];
const ONLY_LINUX_TELLS_OF_FAILING: &[Stack] = &[Stack::Usrsctp, Stack::Dcsctp];
const ONLY_USRSCTP_HAS_NR_SACK: &[Stack] = &[Stack::Linux, Stack::Dcsctp];
const NO_ZERO_CHECKSUM: &[Stack] = &[Stack::Usrsctp, Stack::Linux];

impl Row {
    /// On a network that loses nothing, without extensions.
    const fn new(name: &'static str, what: &'static str, run: fn(&mut Bench) -> Done) -> Row {
        Row::by(name, what, Run::Bench(run))
    }

    const fn by(name: &'static str, what: &'static str, run: Run) -> Row {
        Row {
            name,
            what,
            run,
            extensions: NONE,
            authenticated: false,
            loss: 0,
            lose_first: &[],
            not_offered: &[],
            wrong: None,
            note: None,
        }
    }

    const fn with(self, extensions: Extensions) -> Row {
        Row { extensions, ..self }
    }

    const fn losing(self, loss: u64) -> Row {
        Row { loss, ..self }
    }

    const fn but_for(self, not_offered: &'static [Stack]) -> Row {
        Row { not_offered, ..self }
    }

    const fn breaks(self, stack: Stack, (place, sign): (&'static str, &'static str)) -> Row {
        Row { wrong: Some(Wrong { stack, place, sign }), ..self }
    }

    pub fn weather(&self) -> Weather {
        Weather { loss: self.loss, lose_first: self.lose_first.to_vec() }
    }
}

/// Linux 6.1, `sctp_chunk_assign_mid`: its second fragment of a message has FSN 0, and it waits for 0 there.
const SECOND_FRAGMENT: (&str, &str) = (
    "it counts the fragments behind the first from FSN 0, and expects that of others; the first one's is \
    implicitly 0 (RFC 8260 section 2.1), so that the second has FSN 1, as usrsctp and dcsctp send it: messages of several fragments do \
    not arrive",
    "messages arrive",
);
/// What it lists is in its INIT.
const NO_I_FORWARD_TSN: (&str, &str) = (
    "it does not list I-FORWARD-TSN among the chunks that it supports (RFC 8260 section 2.3.1): with I-DATA, partial \
    reliability is not agreed",
    "not agreed",
);
/// The notification of RFC 6458 section 6.1.11.
const SILENT_ABOUT_SENT: &str = "its user is not told of a message that it gives up after sending it (RFC 6458 section 6.1.11): the row cannot compare \
    what is missing with that; its clock has ticks of 10 ms; its long messages are unordered here: it gives up the fragments of one that have no \
    TSN yet after the others were acknowledged, and its FORWARD TSN is then out of date (RFC 3758 section 3.6)";

/// What is seen: the association ends here by an ABORT without a cause before the ASCONF arrives, and lives on there.
const FORGETS_AT_ONCE: (&str, &str) = (
    "it answers packets to an address that it deletes as out of the blue, with an ABORT, before we have acknowledged the \
    deletion; until then they are part of the association (RFC 5061 section 5.3, F4)",
    "PeerAborted([])",
);

/// 5 %.
const LOSS: u64 = 50;

const NONE: Extensions = Extensions {
    partial_reliability: false,
    reconfiguration: false,
    authentication: false,
    addresses: false,
    interleaving: false,
    zero_checksum: false,
    timestamps: false,
    ecn: false,
    nr_sack: false,
};
const PARTIAL: Extensions = Extensions { partial_reliability: true, ..NONE };
const STREAMS: Extensions = Extensions { reconfiguration: true, ..NONE };
const NR_SACK: Extensions = Extensions { nr_sack: true, ..NONE };
const INTERLEAVING: Extensions = Extensions { interleaving: true, ..NONE };
const INTERLEAVED_PARTIAL: Extensions = Extensions { partial_reliability: true, ..INTERLEAVING };
const INTERLEAVED_STREAMS: Extensions = Extensions { reconfiguration: true, ..INTERLEAVING };

/// Every row, in the order of the table.
pub const ROWS: &[Row] = &[
    Row::new("handshake", "the association comes up, with the streams that both can have", setup::handshake),
    Row {
        lose_first: &[1, 2, 10, 11],
        ..Row::new(
            "handshake-lost",
            "the same, where INIT, INIT ACK, COOKIE ECHO and COOKIE ACK are each lost once",
            setup::handshake,
        )
    },
    Row::new("collision", "both begin at once", setup::collision),
    Row::new("restart-peer", "the peer has lost its memory and begins again", setup::peer_restarts),
    Row::new("restart-us", "we have, and begin again", setup::we_restart),
    Row::new(
        "messages",
        "both send 32 messages of 1 byte to 1 MiB on 16 streams, half of them unordered",
        messages::both_ways,
    ),
    Row::new("messages-loss", "the same, where 5 % of all packets are lost", messages::both_ways).losing(LOSS),
    Row::new("small", "both send 500 messages of 1 to 100 bytes", messages::small),
    Row::new("small-loss", "the same, where 5 % of all packets are lost", messages::small).losing(LOSS),
    Row::new("shutdown-us", "we shut down with data under way: it arrives, then both are closed", closing::we_shut_down),
    Row::new("shutdown-peer", "the peer does", closing::peer_shuts_down),
    Row::new("shutdown-both", "both do, at once", closing::both_shut_down),
    Row {
        lose_first: &[7, 8, 14],
        ..Row::new(
            "shutdown-lost",
            "we shut down, where SHUTDOWN, SHUTDOWN ACK and SHUTDOWN COMPLETE are each lost once",
            closing::we_shut_down,
        )
    },
    Row::new("abort-us", "we abort: the peer is told why", closing::we_abort),
    Row::new("abort-peer", "the peer aborts: we are told why", closing::peer_aborts),
    Row::new(
        "partial-retransmissions-us",
        "we send 300 messages that are never retransmitted, where 5 % are lost: the rest arrives",
        partial::we_limit_retransmissions,
    )
    .with(PARTIAL)
    .losing(LOSS),
    Row {
        note: Some((Stack::Linux, SILENT_ABOUT_SENT)),
        ..Row::new("partial-retransmissions-peer", "the peer does", partial::peer_limits_retransmissions)
            .with(PARTIAL)
            .losing(LOSS)
    },
    Row::new(
        "partial-lifetime-us",
        "we send 300 messages that live for 3 ms, where 5 % are lost: the rest arrives",
        partial::we_limit_lifetime,
    )
    .with(PARTIAL)
    .losing(LOSS),
    Row {
        note: Some((Stack::Linux, SILENT_ABOUT_SENT)),
        ..Row::new("partial-lifetime-peer", "the peer does", partial::peer_limits_lifetime)
            .with(PARTIAL)
            .losing(LOSS)
    },
    Row::new("reset-us", "we reset streams that we send on: their SSNs begin anew", streams::we_reset_ours)
        .with(STREAMS),
    Row::new("reset-peer", "the peer resets those that it sends on", streams::peer_resets_its).with(STREAMS),
    Row::new("reset-asked-us", "we ask the peer to reset those that it sends on", streams::we_ask).with(STREAMS).but_for(NOT_DCSCTP),
    Row::new("reset-asked-peer", "the peer asks us", streams::peer_asks).with(STREAMS).but_for(NOT_DCSCTP),
    Row::new("add-us", "we ask for more streams, out and in", streams::we_add).with(STREAMS).but_for(NOT_DCSCTP),
    Row::new("add-peer", "the peer does", streams::peer_adds).with(STREAMS).but_for(NOT_DCSCTP),
    Row::new("tsns-us", "we reset all TSNs", streams::we_reset_tsns).with(STREAMS).but_for(NOT_DCSCTP),
    Row {
        note: Some((
            Stack::Usrsctp,
            "after the answer it judges acknowledgements of its data by the TSN that it has received (`last_acked_seq` \
             becomes `cumulative_tsn`): in one half of all cases it takes them for old, and stalls after a window. The \
             row has one message each way after the reset.",
        )),
        ..Row::new("tsns-peer", "the peer does", streams::peer_resets_tsns).with(STREAMS).but_for(NOT_DCSCTP)
    },
    Row::new("interleaving", "messages of all sizes, as I-DATA", interleaving::messages)
        .with(INTERLEAVING)
        .breaks(Stack::Linux, SECOND_FRAGMENT),
    Row::new("interleaving-loss", "the same, where 5 % of all packets are lost", interleaving::messages)
        .with(INTERLEAVING)
        .losing(LOSS)
        .breaks(Stack::Linux, SECOND_FRAGMENT),
    Row::new(
        "interleaving-us",
        "a short message of ours overtakes a long one on another stream",
        interleaving::ours_overtakes,
    )
    .with(INTERLEAVING)
    .breaks(Stack::Linux, SECOND_FRAGMENT),
    Row::new("interleaving-peer", "one of the peer's does", interleaving::theirs_overtakes).with(INTERLEAVING),
    Row::new(
        "interleaving-partial-us",
        "messages that are never retransmitted, as I-DATA, where 5 % are lost",
        partial::we_limit_retransmissions,
    )
    .with(INTERLEAVED_PARTIAL)
    .losing(LOSS)
    .breaks(Stack::Linux, NO_I_FORWARD_TSN),
    Row::new("interleaving-partial-peer", "the peer sends such", partial::peer_limits_retransmissions)
        .with(INTERLEAVED_PARTIAL)
        .losing(LOSS)
        .breaks(Stack::Linux, NO_I_FORWARD_TSN),
    Row::new("interleaving-reset", "both reset their streams between messages as I-DATA", streams::both_reset)
        .with(INTERLEAVED_STREAMS)
        .breaks(Stack::Linux, SECOND_FRAGMENT),
    Row {
        authenticated: true,
        ..Row::new("authentication", "DATA both ways counts only with the shared key", messages::authenticated)
    }
    .with(Extensions { authentication: true, ..NONE })
    .but_for(NOT_DCSCTP),
    Row::new("zero-checksum", "packets without a checksum, both ways", messages::without_checksum)
        .with(Extensions { zero_checksum: true, ..NONE })
        .but_for(NO_ZERO_CHECKSUM),
    Row::new("nr-sack", "messages of all sizes both ways, acknowledged by NR-SACK", messages::kept)
        .with(NR_SACK)
        .but_for(ONLY_USRSCTP_HAS_NR_SACK),
    Row::new("nr-sack-loss", "the same, where 5 % of all packets are lost", messages::kept)
        .with(NR_SACK)
        .losing(LOSS)
        .but_for(ONLY_USRSCTP_HAS_NR_SACK),
    Row::by(
        "paths-us",
        "we send 4 MB to two addresses, from two; the first path is cut on the way: all arrives by the second",
        Run::Paths(Trial::new(From::Us, Over::Udp)),
    )
    .but_for(NOT_DCSCTP),
    Row::by("paths-peer", "the peer does", Run::Paths(Trial::new(From::Peer, Over::Udp))).but_for(NOT_DCSCTP),
    Row::by(
        "paths-raw-us",
        "the same directly on IP, where a peer may answer from any of its addresses: we send",
        Run::Paths(Trial::new(From::Us, Over::Raw)),
    )
    .but_for(NOT_DCSCTP),
    Row::by("paths-raw-peer", "the peer does", Run::Paths(Trial::new(From::Peer, Over::Raw))).but_for(NOT_DCSCTP),
    Row::by(
        "paths-second-us",
        "the association begins on the second link, which is cut: we send",
        Run::Paths(Trial { link: 1, ..Trial::new(From::Us, Over::Udp) }),
    )
    .but_for(NOT_DCSCTP),
    Row::by(
        "paths-second-peer",
        "the peer does",
        Run::Paths(Trial { link: 1, ..Trial::new(From::Peer, Over::Udp) }),
    )
    .but_for(NOT_DCSCTP),
    Row::by(
        "paths-failing-us",
        "the first path is cut while we send: at its first timeout it is potentially failed, and all arrives by the second",
        Run::Paths(Trial::failing(From::Us)),
    )
    .but_for(NOT_DCSCTP),
    Row::by(
        "paths-failing-peer",
        "the peer sends, and leaves the path before it is unreachable",
        Run::Paths(Trial::failing(From::Peer)),
    )
    .but_for(NOT_DCSCTP),
    Row::by(
        "paths-returning-us",
        "we send; the first path is cut and, once it is potentially failed, mended: it is active again",
        Run::Paths(Trial { mended: true, ..Trial::failing(From::Us) }),
    )
    .but_for(NOT_DCSCTP),
    Row::by(
        "paths-returning-peer",
        "the peer sends",
        Run::Paths(Trial { mended: true, ..Trial::failing(From::Peer) }),
    )
    .but_for(ONLY_LINUX_TELLS_OF_FAILING),
    Row::by(
        "addresses-us",
        "we delete one of our two addresses, and add it again; messages go both ways before, between and after",
        Run::Addresses(From::Us),
    )
    .but_for(NOT_DCSCTP),
    Row::by("addresses-peer", "the peer does", Run::Addresses(From::Peer)).but_for(NOT_DCSCTP).breaks(Stack::Usrsctp, FORGETS_AT_ONCE),
    Row::by(
        "cures-us",
        "the first path is cut while we send with every cure: a heartbeat after each timeout, timestamps offered, fast retransmissions in each recovery, early \
         retransmit, tail probes",
        Run::Paths(Trial { sending: Sending::Cured { by_time: false }, ..Trial::new(From::Us, Over::Udp) }),
    )
    .but_for(NOT_DCSCTP),
    Row::by(
        "cures-rack-us",
        "the same with losses found by time (RACK)",
        Run::Paths(Trial { sending: Sending::Cured { by_time: true }, ..Trial::new(From::Us, Over::Udp) }),
    )
    .but_for(NOT_DCSCTP),
    Row::by(
        "cures-peer",
        "the peer sends to us, who have them all",
        Run::Paths(Trial { sending: Sending::Cured { by_time: true }, ..Trial::new(From::Peer, Over::Udp) }),
    )
    .but_for(NOT_DCSCTP),
    Row::by(
        "cmt-us",
        "we send 4 MB by two paths at once (CMT) to a peer that was told nothing of it; each carries a quarter at least",
        Run::Paths(Trial::cmt(From::Us, Over::Udp)),
    )
    .but_for(NOT_DCSCTP),
    Row::by("cmt-raw-us", "the same directly on IP", Run::Paths(Trial::cmt(From::Us, Over::Raw))).but_for(NOT_DCSCTP),
    Row::by(
        "cmt-cut-us",
        "we send by two paths at once, of which the first is cut on the way: all arrives",
        Run::Paths(Trial { cut: true, ..Trial::cmt(From::Us, Over::Udp) }),
    )
    .but_for(NOT_DCSCTP),
    Row::by("cmt-peer", "the peer sends by two paths at once, by its own CMT", Run::Paths(Trial::cmt(From::Peer, Over::Udp)))
        .but_for(ONLY_USRSCTP_HAS_CMT),
    Row::by("cmt-raw-peer", "the same directly on IP", Run::Paths(Trial::cmt(From::Peer, Over::Raw)))
        .but_for(ONLY_USRSCTP_HAS_CMT),
];
