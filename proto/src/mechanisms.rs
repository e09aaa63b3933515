//! Choices in which the editions of the standard do not differ: extensions of congestion control that no edition has,
//! and behaviour that the editions leave open or share. Each has one default in all eras.
//!
//! A mechanism can be set alone, like a rule, and is read in exactly one place. `cmt` sets several mechanisms and some
//! rules at once; [`CMT`] lists them with their values in each era.

use crate::rules::{BadRule, Rules, table};

table! {
/// The choices beyond the editions of the standard; see the table in this module.
Mechanisms 1
choices {
    /// Whether missing reports count by path (split fast retransmit, SFR).
    sfr: Sfr {
        /// A chunk is missing when a higher one is acknowledged.
        Off = "off",
        /// A chunk is missing when a higher one of its own path is newly acknowledged by a gap.
        On = "on",
    } = [Off];

    /// Which acknowledgements let the window of a path grow (cwnd update for CMT, CUC).
    cuc: Cuc {
        /// Those that advance the Cumulative TSN Ack Point.
        Off = "off",
        /// Those that advance the path's own point: its lowest chunk not acknowledged.
        V1 = "v1",
        /// The same with two points, one for chunks sent once and one for chunks sent again.
        V2 = "v2",
    } = [Off];

    /// Whether SACKs are delayed in spite of gaps and report how many packets they acknowledge (delayed
    /// acknowledgement for CMT, DAC).
    dac: Dac {
        /// No; each SACK is one missing report.
        Off = "off",
        /// Yes; a SACK that says 0 counts as one packet.
        On = "on",
        /// Yes; a SACK that says 0 counts as none, and a SACK sent by its timer says 0 (as ns-2's module).
        Literal = "literal",
    } = [Off];

    /// Which packets a SACK acknowledges, and on which path it leaves.
    sack_return: SackReturn {
        /// Packets of all paths count together. The SACK leaves on the path of the last packet.
        LastData = "last-data",
        /// Packets of each path count separately. Their SACK leaves on their path.
        EachPath = "each-path",
    } = [LastData];

    /// Whether Fast Recovery is one for the association or one for each path.
    recovery: Recovery {
        /// One for the association.
        Association = "association",
        /// One for each path, with an exit point of its own.
        Path = "path",
    } = [Association];

    /// Whether Max.Burst counts the packets of the association or of each path.
    burst_count: BurstCount {
        /// Those of the association.
        Association = "association",
        /// Those of each path.
        Path = "path",
    } = [Association];

    /// What happens when the path that a route chose for a marked chunk has no room.
    without_room: WithoutRoom {
        /// All marked chunks wait.
        Wait = "wait",
        /// The next marked chunk is tried.
        NextChunk = "next-chunk",
    } = [Wait];

    /// Which marked chunks are bundled with the first one of a packet.
    bundling: Bundling {
        /// The chunks that follow it. Their route is not asked.
        Following = "following",
        /// The chunks whose route names the same path.
        SamePath = "same-path",
    } = [Following];

    /// The bytes in flight before a SACK that decide about the growth of a window.
    growth_flight: GrowthFlight {
        /// Those that the rule `in_flight` counts.
        AsCounted = "as-counted",
        /// Chunks that are not marked, also after the marks of this SACK.
        Unmarked = "unmarked",
    } = [AsCounted];

    /// What keeps T3-rtx running.
    t3_flight: T3Flight {
        /// The bytes that the rule `in_flight` counts.
        AsCounted = "as-counted",
        /// Chunks that are not marked.
        Unmarked = "unmarked",
    } = [AsCounted];

    /// The exit point of a Fast Recovery that begins now.
    exit_point: ExitPoint {
        /// The highest TSN sent.
        HighestSent = "highest-sent",
        /// The highest TSN sent that is not marked; no new exit point if that TSN is below an earlier one.
        HighestUnmarked = "highest-unmarked",
    } = [HighestSent];

    /// The packets that an expired T3-rtx releases at once.
    on_timeout: OnTimeout {
        /// One packet regardless of the window, then what the window allows if data may leave without a SACK.
        Packet = "packet",
        /// The rights that `on_marking` granted last, and what the windows allow.
        Room = "room",
    } = [Packet];

    /// The order of two events at the same time: the decay of an idle window, and T3-rtx of another path.
    decay_tie: DecayTie {
        /// The decay.
        Decay = "decay",
        /// The retransmission after T3-rtx. If it uses the idle path, it ends the idle time.
        Resend = "resend",
    } = [Decay];

    /// The packets that a HEARTBEAT ACK releases when it ends the failure of a path.
    revival: Revival {
        /// Nothing: data leaves when it would leave without the HEARTBEAT ACK.
        Nothing = "nothing",
        /// Chunks that are not acknowledged and were last sent there, as after T3-rtx; then new data.
        Resend = "resend",
    } = [Nothing];

    /// Whether each path may fill only its share of a buffer: one over the number of active paths.
    buffer_split: BufferSplit {
        /// Any path may fill all of it.
        Off = "off",
        /// The send buffer is divided.
        Sender = "sender",
        /// The receive buffer is divided.
        Receiver = "receiver",
        /// Both are, each by itself.
        Both = "both",
    } = [Off];

    /// What counts towards a path's share of a buffer.
    buffer_split_counts: BufferSplitCounts {
        /// Chunks last sent there that the Cumulative TSN Ack has not passed; the receive buffer is what the peer
        /// announced at most.
        Buffered = "buffered",
        /// Chunks in flight there; the receive buffer is what the peer announced last.
        Outstanding = "outstanding",
    } = [Buffered];

    /// Which buffer is watched for chunks that wait behind another path's: once those sent on other paths than the lowest
    /// TSN hold half of it, that TSN goes again on a path with room.
    chunk_rescheduling: ChunkRescheduling {
        /// None.
        Off = "off",
        /// The send buffer.
        Sender = "sender",
        /// The receive buffer.
        Receiver = "receiver",
        /// Both: half of either is enough.
        Both = "both",
    } = [Off];

    /// Whether the lowest TSN goes again on a path with room while a full buffer keeps new data from leaving.
    reinjection: Reinjection {
        /// No.
        Off = "off",
        /// Yes, once each time that this TSN is sent.
        Opportunistic = "opportunistic",
    } = [Off];

    /// Whether the window of the path that carries the lowest TSN is cut as for a loss when a full buffer keeps new data
    /// from leaving on a path with room; at most once in a round trip of that path.
    penalise: Penalise {
        /// No.
        Off = "off",
        /// Yes.
        On = "on",
    } = [Off];

    /// Whether a HEARTBEAT follows when T3-rtx expires and another path is in order: its answer measures the path, whose
    /// RTO would stay doubled while it carries retransmissions only.
    heartbeat_after_timeout: HeartbeatAfterTimeout {
        /// No.
        Off = "off",
        /// Yes, to the path that has timed out.
        On = "on",
    } = [Off];

    /// Whether one missing report is enough for what is missing when too little is outstanding for three, and no new data
    /// can bring more: less than four full chunks, all acknowledged by gaps but one (RFC 5827 §2.1).
    early_retransmit: EarlyRetransmit {
        /// No: T3-rtx detects the loss.
        Off = "off",
        /// Yes.
        On = "on",
    } = [Off];

    /// Whether a packet with room left takes the beginning of the next message, if that must be fragmented in any case. Packets
    /// of one size leave in longer runs.
    fill_packets: FillPackets {
        /// It does not: fragments are as large as a packet takes, but for the last.
        Off = "off",
        /// It does.
        On = "on",
    } = [Off];

    /// How a loss is found before T3-rtx expires.
    loss_detection: LossDetection {
        /// By missing reports (RFC 9260 §7.2.4), as the rules and mechanisms about them say.
        MissingReports = "missing-reports",
        /// By time, on each path by itself (RACK, RFC 8985 §6): a chunk is lost if one sent later on its path has been
        /// acknowledged and the reordering window has passed. Retransmissions are judged as other chunks are. Missing reports
        /// are not counted, so that the rules and mechanisms about them have no effect.
        Rack = "rack",
    } = [MissingReports];

    /// Whether a probe follows when a path has nothing acknowledged for two round trips: new data whatever the window, or else
    /// the highest chunk in flight there once more (RFC 8985 §7). Its SACK lets the loss be found without T3-rtx.
    tail_probe: TailProbe {
        /// None does.
        Off = "off",
        /// One does, if its path has been measured since the last and nothing lost there is outstanding.
        On = "on",
    } = [Off];

    /// Missing reports of a chunk that a SACK does not name any more after an earlier one did.
    taken_back: TakenBack {
        /// One.
        One = "one",
        /// As many as it had.
        AsBefore = "as-before",
    } = [One];

    /// Whether the cut of a window is taken back when a timestamp shows that the first chunk thought lost was only late
    /// (RFC 3522, RFC 4015); without `timestamps` it cannot be known.
    spurious_losses: SpuriousLosses {
        /// No.
        Off = "off",
        /// Yes, and RTO is restored too; chunks that the timer marked and that were not sent again yet are not sent again.
        Undo = "undo",
    } = [Off];

    /// The lowest ssthresh that a timeout leaves (§7.2.3).
    t3_floor: T3Floor {
        /// That of any loss: `ssthresh_floor`.
        AsAnyLoss = "as-any-loss",
        /// Two units (ns-2's class of heartbeats after timeouts).
        Two = "two",
    } = [AsAnyLoss];

    /// Whether the very first DATA chunk is acknowledged at once (§5.1).
    first_data: FirstData {
        /// Yes.
        AtOnce = "at-once",
        /// No; it is delayed like any other.
        Delayed = "delayed",
    } = [AtOnce];

    /// The reply to a packet out of the blue, and to an INIT while nothing listens (§8.4, §5.1).
    out_of_the_blue: OutOfTheBlue {
        /// An ABORT without a cause, with the T bit unless it answers an INIT; SHUTDOWN ACK gets SHUTDOWN COMPLETE.
        Abort = "abort",
        /// Nothing: a port scan learns less, and a peer that has lost its association waits for its timers.
        Silent = "silent",
    } = [Abort];
}
numbers { }
}

impl Default for Mechanisms {
    fn default() -> Self {
        Mechanisms::column(0)
    }
}

/// Whether paths have points of their own: growth asks, and so does T3-rtx.
pub(crate) fn cuc(mechanisms: &Mechanisms) -> Cuc {
    mechanisms.cuc
}

/// The receiver sends what the sender counts.
pub(crate) fn dac(mechanisms: &Mechanisms) -> Dac {
    mechanisms.dac
}

/// What `cmt` sets: the key of a mechanism or a rule, and its value in each era, in the order of [`Rules::ERAS`];
/// an empty value leaves the era's.
pub const CMT: &[(&str, [&str; 4])] = &[
    ("sfr", ["on"; 4]),
    ("cuc", ["v2"; 4]),
    ("dac", ["on", "on", "on", "literal"]),
    ("recovery", ["path"; 4]),
    ("burst_count", ["path"; 4]),
    ("without_room", ["next-chunk"; 4]),
    ("bundling", ["same-path", "same-path", "same-path", "following"]),
    ("growth_flight", ["", "", "", "unmarked"]),
    ("t3_flight", ["", "", "", "unmarked"]),
    ("exit_point", ["", "", "", "highest-unmarked"]),
    ("on_timeout", ["", "", "", "room"]),
    ("decay_tie", ["", "", "", "resend"]),
    ("revival", ["", "", "", "resend"]),
    ("taken_back", ["", "", "", "as-before"]),
    ("missing_below", ["", "", "", "highest-newly-acked-yet"]),
    ("fast_retransmissions", ["", "", "", "before-resending"]),
    ("on_marking", ["", "", "", "packet-each-path"]),
    ("resend_path", ["", "", "", "each-packet"]),
    ("burst", ["", "", "", "once-armed"]),
    ("t3_restart", ["", "", "", "expected-point"]),
    ("recovery_growth", ["", "", "", "allowed"]),
    ("t3_cut", ["", "", "", "always"]),
    ("new_data", ["", "", "", "beside-marked"]),
    ("first_data", ["", "", "", "delayed"]),
    ("ssthresh_floor", ["", "", "", "2"]),
];

/// What a mechanism sets beside itself in each era, in the order of [`Rules::ERAS`]: the mechanism, its value, the key of
/// another mechanism or rule, and that one's values; an empty value leaves it as it is. ns-2 has a class of its own for the
/// mechanism, which differs in this too.
pub const COMPANIONS: &[(&str, &str, &str, [&str; 4])] =
    &[("heartbeat_after_timeout", "on", "t3_floor", ["", "", "", "two"])];

/// Sets what the `mechanisms` bring along in the era of `rules`; nothing if `rules` are not those of an era.
pub(crate) fn bring_companions(rules: &mut Rules, mechanisms: &mut Mechanisms) {
    let Some(era) = Rules::ERAS.iter().position(|(_, era)| era == rules) else { return };
    for (mechanism, on, key, values) in COMPANIONS {
        if mechanisms.get(mechanism).as_deref() == Some(on) && !values[era].is_empty() {
            let set = set_row(rules, mechanisms, key, values[era]);
            debug_assert_eq!(set, Ok(()), "{key}");
        }
    }
}

/// Sets in `rules` and `mechanisms` what `cmt` changes in the era that `rules` are of; of no era: what it changes in all.
pub(crate) fn bring_cmt(rules: &mut Rules, mechanisms: &mut Mechanisms) {
    let era = Rules::ERAS.iter().position(|(_, era)| era == rules);
    for (key, values) in CMT {
        let value = era.map_or(values[0], |era| values[era]);
        if !value.is_empty() {
            let set = set_row(rules, mechanisms, key, value);
            debug_assert_eq!(set, Ok(()), "{key} = {value}");
        }
    }
}

fn set_row(rules: &mut Rules, mechanisms: &mut Mechanisms, key: &str, value: &str) -> Result<(), BadRule> {
    match value.parse() {
        Ok(number) => rules.set_number(key, number),
        Err(_) => mechanisms.choose(key, value).or_else(|_| rules.choose(key, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_that_cmt_sets_exists_and_takes_its_values() {
        for (era, (_, rules)) in Rules::ERAS.iter().enumerate() {
            let (mut rules, mut mechanisms) = (*rules, Mechanisms::default());
            bring_cmt(&mut rules, &mut mechanisms);
            for (key, values) in CMT.iter().filter(|(_, values)| !values[era].is_empty()) {
                let set = mechanisms.get(key).or_else(|| rules.get(key));
                assert_eq!(set.as_deref(), Some(values[era]), "{key}");
            }
        }
    }
}
