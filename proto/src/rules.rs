//! The rules: decisions in which the editions of the standard, or ns-2's module, differ. Each rule is one small enum.
//!
//! An *era* is one column of the table below and selects the defaults of one edition. Each rule is read in exactly
//! one place of the core (`tests/rules.rs` counts the places) and can be set alone, so that the effect of every
//! difference can be measured. No code tests the name of an era.

/// Declares a table of choices: documentation, the spelling of each choice, and one value for each column.
macro_rules! table {
    ($(#[$tdoc:meta])* $table:ident $columns:literal
    choices { $(
        $(#[doc = $doc:literal])*
        $field:ident: $kind:ident { $( $(#[doc = $vdoc:literal])+ $variant:ident = $name:literal ),+ $(,)? }
            = [$($value:ident),+];
    )+ }
    numbers { $(
        $(#[doc = $ndoc:literal])*
        $nfield:ident: $ntype:ty = [$($nvalue:expr),+];
    )* }) => {
        $(
            $(#[doc = $doc])*
            #[derive(Copy, Clone, PartialEq, Eq, Debug)]
            pub enum $kind { $( $(#[doc = $vdoc])+ $variant ),+ }

            impl $kind {
                /// Every choice in the spelling of scenarios.
                pub const NAMES: &'static [&'static str] = &[$($name),+];
                /// The meaning of every choice, in the order of [`Self::NAMES`].
                pub const MEANINGS: &'static [&'static str] = &[$(concat!($($vdoc),+)),+];
                /// The choice with the spelling `name`.
                pub fn from_name(name: &str) -> Option<Self> {
                    match name { $($name => Some($kind::$variant),)+ _ => None }
                }
                /// The spelling of the choice.
                pub const fn name(self) -> &'static str {
                    match self { $($kind::$variant => $name),+ }
                }
            }
        )+

        $(#[$tdoc])*
        #[derive(Copy, Clone, PartialEq, Eq, Debug)]
        pub struct $table {
            $( $(#[doc = $doc])* pub $field: $kind, )+
            $( $(#[doc = $ndoc])* pub $nfield: $ntype, )*
        }

        impl $table {
            /// The values of one column of the table.
            pub(crate) const fn column(n: usize) -> $table {
                $( const { assert!([$($kind::$value),+].len() == $columns) }; )+
                $table {
                    $($field: [$($kind::$value),+][n],)+
                    $($nfield: [$($nvalue),+][n],)*
                }
            }

            /// Every row that is a choice: its key and the spellings of its choices.
            pub const CHOICES: &'static [(&'static str, &'static [&'static str])] =
                &[$((stringify!($field), $kind::NAMES)),+];
            /// The meaning of each choice, by key, in the order of [`Self::CHOICES`].
            pub const MEANINGS: &'static [(&'static str, &'static [&'static str])] =
                &[$((stringify!($field), $kind::MEANINGS)),+];
            /// Every row that is a number: its key.
            pub const NUMBERS: &'static [&'static str] = &[$(stringify!($nfield)),*];
            /// The documentation of each row, by key.
            pub const DOCS: &'static [(&'static str, &'static str)] = &[
                $((stringify!($field), concat!($($doc),+)),)+
                $((stringify!($nfield), concat!($($ndoc),+)),)*
            ];

            /// Sets the row `key`, which must be a choice, to the choice spelled `value`.
            pub fn choose(&mut self, key: &str, value: &str) -> Result<(), $crate::rules::BadRule> {
                match key {
                    $(stringify!($field) => {
                        self.$field =
                            $kind::from_name(value).ok_or($crate::rules::BadRule::Choice($kind::NAMES))?;
                    })+
                    _ => return Err($crate::rules::BadRule::Key),
                }
                Ok(())
            }

            /// Sets the row `key`, which must be a number.
            pub fn set_number(&mut self, key: &str, value: u32) -> Result<(), $crate::rules::BadRule> {
                let _ = value;
                match key {
                    $(stringify!($nfield) => self.$nfield = value,)*
                    _ => return Err($crate::rules::BadRule::Key),
                }
                #[allow(unreachable_code, reason = "a table without numbers")]
                Ok(())
            }

            /// The value of the row `key` in the spelling of scenarios.
            pub fn get(&self, key: &str) -> Option<String> {
                match key {
                    $(stringify!($field) => Some(self.$field.name().to_owned()),)+
                    $(stringify!($nfield) => Some(self.$nfield.to_string()),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use table;

/// Why a rule could not be set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BadRule {
    /// There is no rule with this key, or the rule is of the other kind (a number or a choice).
    Key,
    /// The rule has only these choices.
    Choice(&'static [&'static str]),
}

table! {
/// The value of every rule; see the table in this module.
Rules 4
choices {
    /// The initial cwnd of a path.
    initial_window: InitialWindow {
        /// Two units (RFC 2960 §7.2.1).
        Two = "two",
        /// min(4 units, max(2 units, 4380 bytes)) (RFC 4960 §7.2.1).
        Bytes4380 = "4380",
        /// min(4 units, max(2 units, 4404 bytes; 4344 over IPv6)) (RFC 9260 §7.2.1).
        Bytes4404 = "4404",
    } = [Two, Bytes4380, Bytes4404, Bytes4380];

    /// The unit of windows: growth, floors, and the window after a timeout.
    window_unit: WindowUnit {
        /// The path's MTU, IP header included.
        Mtu = "mtu",
        /// The largest DATA chunk that fits a packet of the path (PMDCS).
        Pmdcs = "pmdcs",
    } = [Mtu, Mtu, Pmdcs, Pmdcs];

    /// Which SACKs may grow a window in slow start (§7.2.1).
    growth: Growth {
        /// Only those that advance the Cumulative TSN Ack Point.
        OnAdvance = "on-advance",
        /// All that acknowledge something new.
        OnAck = "on-ack",
    } = [OnAdvance, OnAdvance, OnAck, OnAdvance];

    /// Whether a window may grow in Fast Recovery.
    recovery_growth: RecoveryGrowth {
        /// Yes.
        Allowed = "allowed",
        /// No (RFC 4960 §7.2.1).
        Barred = "barred",
    } = [Allowed, Barred, Barred, Barred];

    /// How partial_bytes_acked counts in congestion avoidance (§7.2.2).
    partial_bytes: PartialBytes {
        /// All newly acknowledged bytes of a SACK that advances the Cumulative TSN Ack Point.
        OnAdvance = "on-advance",
        /// All newly acknowledged bytes of every SACK, capped at cwnd while the window is not in full use.
        Capped = "capped",
        /// As ns-2's module: cumulatively acknowledged bytes only while the window is in full use, bytes
        /// acknowledged by gaps only when the point advances.
        Split = "split",
    } = [OnAdvance, OnAdvance, Capped, Split];

    /// What happens to a window while nothing is sent to its path for an RTO (§7.2.1).
    idle_decay: IdleDecay {
        /// Nothing.
        Off = "off",
        /// It is halved down to the floor.
        Halve = "halve",
        /// It is halved down to the floor, and ssthresh becomes what it was before (RFC 9260 §7.2.1).
        Remember = "remember",
        /// It becomes max(cwnd/2, floor) if above two units: this can raise an unused window.
        Literal = "literal",
    } = [Halve, Halve, Remember, Literal];

    /// The order of two events at the same time: the decay of an idle window, and T3-rtx of another path.
    decay_tie: DecayTie {
        /// The window decays first.
        Decay = "decay",
        /// The retransmission after T3-rtx is sent first. If it uses the idle path, it ends the idle time.
        Resend = "resend",
    } = [Decay, Decay, Decay, Resend];

    /// Which chunks count as in flight, for growth and for the peer's window.
    in_flight: InFlight {
        /// Chunks that are not acknowledged and not marked for retransmission.
        Unmarked = "unmarked",
        /// All chunks that are not acknowledged.
        Unacknowledged = "unacknowledged",
    } = [Unmarked, Unmarked, Unmarked, Unacknowledged];

    /// The missing chunks for which a SACK is a missing report (§7.2.4).
    missing_below: MissingBelow {
        /// Those below the highest TSN that the SACK acknowledges.
        HighestAcked = "highest-acked",
        /// Those below the highest TSN *newly* acknowledged (HTNA); in Fast Recovery, when the Cumulative TSN
        /// Ack Point advances, all reported missing.
        HighestNewlyAcked = "highest-newly-acked",
        /// Those below the highest TSN that was newly acknowledged last, also by an earlier SACK: a gap raises
        /// it, the Cumulative TSN Ack sets it.
        HighestNewlyAckedYet = "highest-newly-acked-yet",
        /// As `highest-newly-acked-yet`; and all reported missing, when the Cumulative TSN Ack Point advances and that
        /// TSN is not above the last exit point of Fast Recovery, also in the SACK that reaches it.
        ExitPoint = "exit-point",
    } = [HighestAcked, HighestNewlyAcked, HighestNewlyAcked, ExitPoint];

    /// The number of missing reports of a chunk that an earlier SACK acknowledged and a later SACK does not.
    taken_back: TakenBack {
        /// One.
        One = "one",
        /// As many as it had before.
        AsBefore = "as-before",
    } = [One, One, One, AsBefore];

    /// When a fast retransmission halves the window.
    fast_recovery: FastRecovery {
        /// Every time (RFC 2960 knows no Fast Recovery).
        None = "none",
        /// Once until the exit point is acknowledged (RFC 4960 §7.2.4) or T3-rtx expires.
        UntilExit = "until-exit",
        /// Whenever a marked chunk is above the exit point: on the path of the lowest such chunk. The exit point moves
        /// on to the highest TSN that is not marked, and marked chunks above it cut the windows of their paths, too.
        OncePerWindow = "once-per-window",
    } = [None, UntilExit, UntilExit, OncePerWindow];

    /// Whether a chunk can be fast-retransmitted more than once in its life (§7.2.4).
    fast_retransmissions: FastRetransmissions {
        /// Yes; its count of missing reports starts again at zero.
        Again = "again",
        /// No.
        Once = "once",
        /// Yes, when SACKs acknowledge TSNs beyond the highest TSN that had been sent when the chunk was last marked.
        /// It is treated as in a new recovery, but the window is not reduced again.
        PerRecovery = "per-recovery",
        /// No; nor can a chunk that was retransmitted, or considered for retransmission, for another reason.
        BeforeResending = "before-resending",
    } = [Again, Once, Once, Once];

    /// What enough missing reports do to a chunk that T3-rtx has marked and that has not been sent again yet.
    timed_out: TimedOutChunk {
        /// Nothing: it is marked already.
        Ignored = "ignored",
        /// They mark it for fast retransmission, so that the window is cut.
        Counted = "counted",
    } = [Ignored, Ignored, Ignored, Counted];

    /// Which chunks of its path an expired T3-rtx marks (§6.3.3).
    t3_marks: T3Marks {
        /// Those in flight.
        InFlight = "in-flight",
        /// Also those that missing reports have marked and that have not been sent again yet: they count as timed out
        /// from then on.
        All = "all",
    } = [InFlight, InFlight, InFlight, All];

    /// How many packets a SACK that reports losses may release at once (§7.2.4).
    on_marking: OnMarking {
        /// One packet regardless of the window, then what the window allows.
        PacketThenRoom = "packet-then-room",
        /// The same when it starts Fast Recovery; within it only what the window allows.
        PacketOnEntry = "packet-on-entry",
        /// One packet regardless of the window, and no other retransmission before the next SACK.
        OnePacket = "one-packet",
        /// What the windows allow, and one packet regardless of the window on each path that lost chunks marked now
        /// or earlier.
        PacketEachPath = "packet-each-path",
    } = [PacketThenRoom, PacketThenRoom, PacketOnEntry, OnePacket];

    /// Whether new data may pass chunks marked for retransmission that have no room yet (§6.1 C).
    new_data: NewData {
        /// Yes, on a path with room.
        BesideMarked = "beside-marked",
        /// No; it waits until no chunk is marked.
        AfterMarked = "after-marked",
    } = [BesideMarked, BesideMarked, BesideMarked, AfterMarked];

    /// When data may leave.
    send_on: SendOn {
        /// As soon as there is room.
        Room = "room",
        /// Only in answer to a SACK; or to a send call while nothing is in flight.
        Sack = "sack",
    } = [Room, Room, Room, Sack];

    /// Which path a packet of marked chunks takes (§6.4.1).
    resend_path: ResendPath {
        /// The path that the route names for its first chunk.
        EachPacket = "each-packet",
        /// The path that the route names for the first chunk that the event (a SACK or a timeout) releases.
        EachEvent = "each-event",
    } = [EachPacket, EachPacket, EachPacket, EachEvent];

    /// When Max.Burst limits how many packets one event releases (§6.1 D).
    burst: Burst {
        /// Never.
        Off = "off",
        /// Always, for new data.
        Always = "always",
        /// Only after a cumulative acknowledgement of a fast-retransmitted chunk, until the limit has kept a packet
        /// back; retransmissions count too, in the answer to the next SACK also those of a timeout and those that left
        /// other chunks marked.
        WhenArmed = "when-armed",
        /// As `when-armed`, from the first such acknowledgement, also of a chunk sent again after a timeout, to
        /// the end.
        OnceArmed = "once-armed",
    } = [Always, Always, Always, WhenArmed];

    /// Which acknowledgement restarts T3-rtx (§6.3.2 R3).
    t3_restart: T3Restart {
        /// That of the earliest outstanding chunk of the path.
        Earliest = "earliest",
        /// That one, or one whose Cumulative TSN Ack passes any chunk of the path, even if a gap had acknowledged it
        /// before.
        AnyCumulative = "any-cumulative",
        /// That one, or one whose Cumulative TSN Ack passes a chunk at or above an expected point of the path (`cuc`).
        ExpectedPoint = "expected-point",
    } = [Earliest, Earliest, Earliest, AnyCumulative];

    /// Whether T3-rtx starts again when the earliest outstanding chunk of its path is sent again (§7.2.4).
    t3_resent: T3Resent {
        /// Yes. If the chunk leaves on another path and none is left, T3-rtx stops.
        Restarts = "restarts",
        /// Only while other chunks of the path are in flight; otherwise it goes on. If none is left, the next SACK
        /// stops it.
        WithOthers = "with-others",
    } = [Restarts, Restarts, Restarts, WithOthers];

    /// What happens if T3-rtx of two paths expires at the same time (§6.3.3).
    t3_together: T3Together {
        /// The chunks of both paths are marked, then packets leave.
        AtOnce = "at-once",
        /// One after the other: the packets of the first timer leave before the chunks of the second path are marked.
        /// They may start the second timer again before it expires.
        InTurn = "in-turn",
    } = [AtOnce, AtOnce, AtOnce, InTurn];

    /// Whether a timeout cuts ssthresh every time (§7.2.3).
    t3_cut: T3Cut {
        /// Yes.
        Always = "always",
        /// No, if cwnd is already one unit.
        AboveUnit = "above-unit",
    } = [Always, Always, Always, AboveUnit];

    /// What a path may carry after a timeout, until it has an acknowledgement (§7.2.3).
    after_timeout: AfterTimeout {
        /// One packet of any size.
        OnePacket = "one-packet",
        /// As much as its window of one unit allows: with small chunks, or an MTU as the unit, two packets.
        Window = "window",
    } = [OnePacket, OnePacket, OnePacket, Window];

    /// What a window cut by Fast Retransmit does to the path's running RTT measurement.
    rtt_on_cut: RttOnCut {
        /// Nothing.
        Keep = "keep",
        /// It is given up.
        Cancel = "cancel",
        /// It goes on, and the next new chunk starts another measurement, so that a path can have several.
        Another = "another",
        /// It is suspended, and the next new chunk starts another one. If the suspended chunk is acknowledged while
        /// that one runs, the suspended one counts, and the other is suspended. A measurement that a Gap Ack Block has
        /// ended is suspended too, for the case that the Gap Ack Block is taken back.
        Suspend = "suspend",
    } = [Keep, Keep, Keep, Suspend];

    /// Which retransmission ends the running RTT measurement of a chunk (§6.3.1 C5, Karn).
    karn: Karn {
        /// The retransmission of the chunk itself.
        Chunk = "chunk",
        /// The retransmission of the chunk or of any chunk below it, because the SACK may have waited for that chunk.
        ChunkOrBelow = "chunk-or-below",
        /// None, against the standard. A chunk that is sent again on its path is measured from its first transmission
        /// there; a chunk that is sent again on another path is measured from the transmission there. For
        /// experiments.
        Off = "off",
    } = [Chunk, ChunkOrBelow, ChunkOrBelow, Chunk];

    /// When the initiator sends its first DATA (§5.4).
    confirmation: Confirmation {
        /// At once, on the paths confirmed by the handshake.
        DataAtOnce = "data-at-once",
        /// After every path has answered a HEARTBEAT.
        AllPathsFirst = "all-paths-first",
    } = [DataAtOnce, DataAtOnce, DataAtOnce, AllPathsFirst];

    /// The source address of the third and later HEARTBEATs that verify a path, if the first two had no answer (§5.4).
    /// This applies if there is one path for each peer address.
    verification: Verification {
        /// The next local address, because the first pair of addresses may have no route.
        NextLocal = "next-local",
        /// The same local address.
        SameLocal = "same-local",
    } = [NextLocal, NextLocal, NextLocal, SameLocal];

    /// What happens when a failed primary answers again (§6.4.1).
    failover: Failover {
        /// New data returns to it.
        Return = "return",
        /// The path that took over remains the primary.
        Stay = "stay",
    } = [Return, Return, Return, Stay];

    /// Whether the policies `same` and `rtx-lossrate` name paths that are potentially failed (RFC 7829 §3.2;
    /// `pf_max_retrans`).
    failing_paths: FailingPaths {
        /// No.
        Avoided = "avoided",
        /// Yes, like those that work.
        Named = "named",
    } = [Avoided, Avoided, Avoided, Named];

    /// The path that replaces an inactive one, if every path is inactive (RFC 4960 §8.2 leaves it open; without
    /// `pf_max_retrans`).
    dormant: Dormant {
        /// None: the path that carried the data last is used again.
        Last = "last",
        /// The next path in order. New data follows when a path becomes inactive, retransmissions each time.
        Next = "next",
    } = [Last, Last, Last, Next];

    /// Which acknowledgements of data clear the error count of the path on which the data was last sent (§8.2).
    error_clearing: ErrorClearing {
        /// All; with `pf_max_retrans`, which needs certainty, as `unambiguous`.
        Any = "any",
        /// Acknowledgements of chunks that no other path has carried. After a retransmission on another path, the
        /// acknowledgement is ambiguous: it may belong to the other copy.
        Unambiguous = "unambiguous",
        /// All but those of chunks that T3-rtx has marked and that have not been sent again yet. With `pf_max_retrans`
        /// only those of chunks that were sent once, and Gap Ack Blocks also for others that T3-rtx has not marked.
        Unmarked = "unmarked",
    } = [Any, Any, Unambiguous, Unmarked];

    /// When another HEARTBEAT follows on a path that has not answered one (§8.3). A path that is being verified or is
    /// potentially failed is probed again at once in any case, until it has failed too often.
    lost_heartbeat: LostHeartbeat {
        /// After HB.interval and an RTO, counted from that HEARTBEAT.
        NextInterval = "next-interval",
        /// At once, and also whenever T3-rtx of an inactive or potentially failed path expires. On a potentially failed
        /// path it counts also beside data in flight.
        AtOnce = "at-once",
    } = [NextInterval, NextInterval, NextInterval, AtOnce];

    /// When the time of a path's next HEARTBEAT is computed from HB.interval and the current RTO (§8.3). An RTO that
    /// timeouts have doubled is back to normal when a HEARTBEAT is answered, but not yet when it is sent.
    next_heartbeat: NextHeartbeat {
        /// When a HEARTBEAT is answered or counts as lost.
        WhenAnswered = "when-answered",
        /// When a HEARTBEAT is sent, unless it repeats a lost one (ns-2's module).
        WhenSent = "when-sent",
    } = [WhenAnswered, WhenAnswered, WhenAnswered, WhenAnswered];

    /// Which lost HEARTBEATs count against the association (§8.1).
    heartbeat_errors: HeartbeatErrors {
        /// All.
        All = "all",
        /// All but those that verify an address which only the peer has named (RFC 4960 §5.4).
        Confirmed = "confirmed",
        /// Those on the path in use for data.
        PathInUse = "path-in-use",
        /// Those on paths that are not inactive; and so do timeouts.
        WhileActive = "while-active",
    } = [All, Confirmed, PathInUse, WhileActive];

    /// When a closed window is probed with one chunk (§6.1 A).
    window_probe: WindowProbe {
        /// As soon as nothing is in flight.
        AtOnce = "at-once",
        /// One RTO later, then at growing intervals.
        AfterRto = "after-rto",
    } = [AtOnce, AtOnce, AfterRto, AtOnce];

    /// How the receiver announces its window (§6.2).
    window_updates: WindowUpdates {
        /// A SACK when reading has opened the window by a quarter of the buffer; less than one packet is
        /// announced as none (silly window).
        Announced = "announced",
        /// Only in the SACKs that arriving data causes, to the byte.
        None = "none",
    } = [Announced, Announced, Announced, None];

    /// When a DATA chunk asks for its SACK at once, by the I bit (§6.1; RFC 7053).
    immediate_sack: ImmediateSack {
        /// Never.
        Never = "never",
        /// The last before SHUTDOWN.
        BeforeShutdown = "before-shutdown",
    } = [Never, Never, BeforeShutdown, Never];

    /// When a SACK is sent for the packet that fills the last gap (§6.2, following RFC 5681 §4.2).
    gap_filled: GapFilled {
        /// At once.
        AtOnce = "at-once",
        /// At the time at which it would be sent without the gap; but at once if the gap remained after an earlier
        /// chunk of the packet.
        Delayed = "delayed",
    } = [AtOnce, AtOnce, AtOnce, Delayed];

    /// What the SACK for a duplicate, which is sent at once, means for the delayed SACK (§6.2); and that for the first
    /// DATA (§5.1).
    duplicate_sack: DuplicateSack {
        /// It takes its place: the next SACK follows `sack_every` further packets.
        Settles = "settles",
        /// Nothing: the packets before it, and the duplicate, still count towards the next SACK, and so does the packet
        /// with the first DATA if it holds several chunks.
        Besides = "besides",
        /// It takes the place of the SACK after `sack_every` packets, but SACK.Delay goes on until a further packet
        /// starts it again.
        Counted = "counted",
    } = [Settles, Settles, Settles, Besides];

    /// Where a SACK goes that SACK.Delay has delayed (§6.4).
    delayed_sack: DelayedSack {
        /// To the source of the last DATA.
        LastData = "last-data",
        /// To the source of the last packet, also of one with a HEARTBEAT or another control chunk.
        LastPacket = "last-packet",
    } = [LastData, LastData, LastData, LastPacket];

    /// What is sent to a peer that has failed to answer too often (§8.1, §9.2). Our packets may still reach it.
    giving_up: GivingUp {
        /// Nothing.
        Silent = "silent",
        /// An ABORT without a cause; nothing before the INIT ACK, because its tag is needed.
        Abort = "abort",
    } = [Silent, Silent, Abort, Silent];
} numbers {
    /// The lowest ssthresh after a loss, in units (§7.2.3).
    ssthresh_floor: u32 = [2, 4, 4, 4];
    /// The lowest window to which idle time can lead, in units (§7.2.1).
    idle_floor: u32 = [2, 4, 4, 4];
    /// Missing reports that cause a fast retransmission (§7.2.4).
    missing_reports: u32 = [4, 3, 3, 3];
} }

impl Rules {
    /// RFC 2960 (October 2000).
    pub const RFC2960: Rules = Rules::column(0);
    /// RFC 4960 (September 2007).
    pub const RFC4960: Rules = Rules::column(1);
    /// RFC 9260 (June 2022).
    pub const RFC9260: Rules = Rules::column(2);
    /// The choices of the SCTP module of ns-2 2.35.
    pub const NS2: Rules = Rules::column(3);

    /// The eras, oldest first; ns-2's is the last.
    pub const ERAS: &'static [(&'static str, Rules)] = &[
        ("rfc2960", Rules::RFC2960),
        ("rfc4960", Rules::RFC4960),
        ("rfc9260", Rules::RFC9260),
        ("ns2", Rules::NS2),
    ];

    /// The rules of the era with this name.
    pub fn era(name: &str) -> Option<Rules> {
        Self::ERAS.iter().find(|(n, _)| *n == name).map(|(_, rules)| *rules)
    }
}

impl Default for Rules {
    fn default() -> Self {
        Rules::RFC9260
    }
}
