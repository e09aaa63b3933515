//! Choices that do not depend on the edition of the standard: extensions of congestion control that no edition has, and
//! behaviour that the editions leave open or share. Each has one default in all eras.
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
        /// A chunk is missing when a Gap Ack Block newly acknowledges a higher chunk of its own path.
        On = "on",
    } = [Off];

    /// Which acknowledgements let the window of a path grow (cwnd update for CMT, CUC).
    cuc: Cuc {
        /// Those that advance the Cumulative TSN Ack Point.
        Off = "off",
        /// Those that advance the path's own point, which is its lowest unacknowledged chunk.
        V1 = "v1",
        /// The same with two points, one for chunks sent once and one for chunks sent again.
        V2 = "v2",
    } = [Off];

    /// Whether SACKs are delayed in spite of gaps and report how many packets they acknowledge (delayed
    /// acknowledgement for CMT, DAC).
    dac: Dac {
        /// No; each SACK is one missing report.
        Off = "off",
        /// Yes; a SACK with a count of 0 counts as one packet.
        On = "on",
        /// Yes; a SACK with a count of 0 counts as none. That is the count of a SACK sent by its timer, and of each if
        /// `sack_every` is 1 (as in ns-2's module).
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
        /// The packets of the association.
        Association = "association",
        /// The packets of each path.
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
        /// Bytes of chunks that are not marked after this SACK has marked chunks.
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
        /// One packet regardless of the window, then as much as the window allows if data may leave without a SACK.
        Packet = "packet",
        /// The packets that `on_marking` last allowed, and as much as the windows allow.
        Room = "room",
    } = [Packet];

    /// The packets that a HEARTBEAT ACK releases when it ends the failure of a path.
    revival: Revival {
        /// None: data leaves when it would leave without the HEARTBEAT ACK.
        Nothing = "nothing",
        /// Unacknowledged chunks that were last sent on that path, as after T3-rtx; then new data.
        Resend = "resend",
    } = [Nothing];

    /// Whether each path may fill only its share of a buffer: the size divided by the number of active paths.
    buffer_split: BufferSplit {
        /// Any path may fill all of it.
        Off = "off",
        /// The send buffer is divided.
        Sender = "sender",
        /// The receive buffer is divided.
        Receiver = "receiver",
        /// Both buffers are divided independently.
        Both = "both",
    } = [Off];

    /// What counts towards a path's share of a buffer.
    buffer_split_counts: BufferSplitCounts {
        /// Chunks last sent on that path that the Cumulative TSN Ack has not passed. The size of the receive buffer is
        /// the largest a_rwnd that the peer has advertised.
        Buffered = "buffered",
        /// Chunks in flight on that path. The size of the receive buffer is the a_rwnd that the peer advertised last.
        Outstanding = "outstanding",
    } = [Buffered];

    /// Which buffer is watched for data that waits for another path. When half of the buffer holds chunks sent on other
    /// paths than the path of the lowest TSN, that TSN is sent again on a path with room.
    chunk_rescheduling: ChunkRescheduling {
        /// Neither.
        Off = "off",
        /// The send buffer.
        Sender = "sender",
        /// The receive buffer.
        Receiver = "receiver",
        /// Both. Half of either buffer is enough.
        Both = "both",
    } = [Off];

    /// Whether the lowest TSN is sent again on a path with room while a full buffer blocks new data.
    reinjection: Reinjection {
        /// No.
        Off = "off",
        /// Yes, once for each time that this TSN is sent.
        Opportunistic = "opportunistic",
    } = [Off];

    /// Whether the window of the path that carries the lowest TSN is reduced as after a loss when a full buffer blocks
    /// new data on a path with room. This happens at most once in a round trip of that path.
    penalise: Penalise {
        /// No.
        Off = "off",
        /// Yes.
        On = "on",
    } = [Off];

    /// Whether a HEARTBEAT is sent when T3-rtx expires while another path works. Its answer measures the path.
    /// Otherwise the path's RTO would stay doubled while it carries only retransmissions.
    heartbeat_after_timeout: HeartbeatAfterTimeout {
        /// No.
        Off = "off",
        /// Yes, on the path whose T3-rtx expired.
        On = "on",
    } = [Off];

    /// Whether one missing report is enough when too little data is outstanding for three reports and no new data can
    /// be sent: fewer than four full chunks, all but one of them acknowledged by Gap Ack Blocks (RFC 5827 §2.1).
    early_retransmit: EarlyRetransmit {
        /// No: T3-rtx detects the loss.
        Off = "off",
        /// Yes.
        On = "on",
    } = [Off];

    /// Whether a packet with room left takes the beginning of the next message if that message must be fragmented
    /// anyway. Packets of equal size leave in longer runs (GSO).
    fill_packets: FillPackets {
        /// No. All fragments but the last are as large as a packet allows.
        Off = "off",
        /// Yes.
        On = "on",
    } = [Off];

    /// How losses are detected before T3-rtx expires.
    loss_detection: LossDetection {
        /// By missing reports (RFC 9260 §7.2.4), with the rules and mechanisms for them.
        MissingReports = "missing-reports",
        /// By time, separately on each path (RACK, RFC 8985 §6): a chunk is lost if a chunk sent later on its path has
        /// been acknowledged and the reordering window has passed. Retransmissions are treated like other chunks.
        /// Missing reports are not counted, so the rules and mechanisms for them have no effect.
        Rack = "rack",
    } = [MissingReports];

    /// Whether a probe is sent when no data of a path was acknowledged for two round trips. The probe is new data,
    /// regardless of the window, or else the highest chunk in flight on the path (RFC 8985 §7). Its SACK can reveal the
    /// loss before T3-rtx expires.
    tail_probe: TailProbe {
        /// No.
        Off = "off",
        /// Yes, if the path's RTT was measured since the last probe and no lost chunk of the path is outstanding.
        On = "on",
    } = [Off];

    /// Whether the reduction of a window is undone when a timestamp shows that the first chunk declared lost was only
    /// late (RFC 3522, RFC 4015). Has no effect without `timestamps`.
    spurious_losses: SpuriousLosses {
        /// No.
        Off = "off",
        /// Yes. RTO is restored too, and chunks that the timer marked return to flight if they were not sent again yet.
        Undo = "undo",
    } = [Off];

    /// The lowest ssthresh after a timeout (§7.2.3).
    t3_floor: T3Floor {
        /// The same as after any loss: `ssthresh_floor`.
        AsAnyLoss = "as-any-loss",
        /// Two units (as in ns-2's class that sends heartbeats after timeouts).
        Two = "two",
    } = [AsAnyLoss];

    /// The phase of a window that is equal to ssthresh (§7.2.1, RFC 5681 §3.1).
    at_threshold: AtThreshold {
        /// Slow start, as SCTP's windows.
        SlowStart = "slow-start",
        /// Congestion avoidance, as TCP's windows.
        Avoidance = "avoidance",
    } = [SlowStart];

    /// Whether the first DATA chunk is acknowledged at once (§5.1).
    first_data: FirstData {
        /// Yes.
        AtOnce = "at-once",
        /// No; its acknowledgement is delayed like any other.
        Delayed = "delayed",
    } = [AtOnce];

    /// The reply to a packet out of the blue, and to an INIT while nothing listens (§8.4, §5.1).
    out_of_the_blue: OutOfTheBlue {
        /// An ABORT without a cause, with the T bit unless it answers an INIT. A SHUTDOWN ACK is answered with SHUTDOWN
        /// COMPLETE.
        Abort = "abort",
        /// Nothing. A port scan learns less, but a peer that has lost its association must wait for its timers.
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

/// Whether paths have points of their own. The growth of windows and T3-rtx use them.
pub(crate) fn cuc(mechanisms: &Mechanisms) -> Cuc {
    mechanisms.cuc
}

/// The receiver sets the counts, and the sender reads them.
pub(crate) fn dac(mechanisms: &Mechanisms) -> Dac {
    mechanisms.dac
}

/// The settings of `cmt`: the key of a mechanism or rule, and its value in each era, in the order of [`Rules::ERAS`].
/// An empty value keeps the era's.
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
    ("revival", ["", "", "", "resend"]),
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
    ("duplicate_sack", ["", "", "", "counted"]),
    ("ssthresh_floor", ["", "", "", "2"]),
];

/// What a mechanism sets besides itself in each era, in the order of [`Rules::ERAS`]: the mechanism, its value, the key
/// of another mechanism or rule, and the values of that key. An empty value keeps the setting. ns-2 has a separate
/// class for such a mechanism, and the class differs in this too.
const COMPANIONS: &[(&str, &str, &str, [&str; 4])] =
    &[("heartbeat_after_timeout", "on", "t3_floor", ["", "", "", "two"])];

/// Applies the companions of `mechanisms` in the era of `rules`. Does nothing if `rules` are not those of an era.
pub(crate) fn bring_companions(rules: &mut Rules, mechanisms: &mut Mechanisms) {
    let Some(era) = Rules::ERAS.iter().position(|(_, era)| era == rules) else { return };
    for (mechanism, on, key, values) in COMPANIONS {
        if mechanisms.get(mechanism).as_deref() == Some(on) && !values[era].is_empty() {
            let set = set_row(rules, mechanisms, key, values[era]);
            debug_assert_eq!(set, Ok(()), "{key}");
        }
    }
}

/// Applies `cmt` to `rules` and `mechanisms`, in the era of `rules`. If `rules` are not those of an era, it applies
/// what `cmt` sets in all eras.
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
