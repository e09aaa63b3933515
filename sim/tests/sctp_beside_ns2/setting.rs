//! The random settings.

use anabranch_sim::stream_seed;

/// ns-2's class and the keys of `[flow.sctp]` that stand for it; messages of `Timestamp` are smaller by the option.
pub(crate) const CLASSES: [(&str, &str, u64); 4] = [
    ("Agent/SCTP", "", 1468),
    ("Agent/SCTP/HbAfterRto", "heartbeat_after_timeout = true\n", 1468),
    ("Agent/SCTP/MultipleFastRtx", "fast_retransmissions = 'per-recovery'\n", 1468),
    ("Agent/SCTP/Timestamp", "timestamps = true\n", 1456),
];
/// ns-2's `rtxToAlt_` 0, 1 and 2.
pub(crate) const POLICIES: [&str; 3] = ["same", "alternate", "timeout-alternate"];
/// ns-2's `eCmtRtxPolicy_` from 1 on.
pub(crate) const CMT_POLICIES: [&str; 4] = ["same", "rtx-ssthresh", "rtx-lossrate", "rtx-cwnd"];

/// One of the disjoint paths.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) rate: u64,
    /// One way, in nanoseconds, of which both edges take 20 ms.
    pub(crate) delay: u64,
    /// DATA packets that are lost, counted from 1 among the packets after the handshake; and SACKs.
    pub(crate) data_lost: Vec<u64>,
    pub(crate) sacks_lost: Vec<u64>,
}

/// What decides about retransmissions.
#[derive(Clone, Debug)]
pub(crate) enum Class {
    /// A class of [`CLASSES`] and a policy of [`POLICIES`].
    One { class: usize, policy: usize },
    /// `Agent/SCTP/CMT` and a policy of [`CMT_POLICIES`].
    Cmt { policy: usize, sfr: bool, cuc: bool, dac: bool, pf: bool },
}

/// What the application sends.
#[derive(Clone, Debug)]
pub(crate) enum Load {
    /// So many bytes.
    Bytes(u64),
    /// Chunks of this size on so many streams, for seconds.
    Chunks { size: u64, streams: u64, unordered: bool, seconds: u64 },
}

/// All is lost on a path for a while.
#[derive(Clone, Debug)]
pub(crate) struct Outage {
    /// From 0.
    pub(crate) path: usize,
    /// From the first DATA on.
    pub(crate) begin_ms: u64,
    pub(crate) end_ms: u64,
}

/// Packets in a queue. It never fills, because full queues have many ties (docs/choices.md).
pub(crate) const QUEUE: u64 = 1000;

/// The size of datagrams with headers, beside the flow. With it the rate is a whole number for the intervals below.
pub(crate) const DATAGRAM: u64 = 1000;

#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) class: Class,
    pub(crate) links: Vec<Link>,
    pub(crate) receive_buffer: u64,
    pub(crate) ssthresh: u64,
    pub(crate) load: Load,
    pub(crate) path_max_retrans: u64,
    pub(crate) missing_reports: u64,
    pub(crate) rto_min_ms: u64,
    pub(crate) burst: bool,
    pub(crate) delayed: bool,
    pub(crate) sack_delay_ms: u64,
    pub(crate) outage: Option<Outage>,
    /// The microseconds between two datagrams on the core of the first path, if there are any.
    pub(crate) cross: Option<u64>,
}

impl Setting {
    /// Bytes of a full DATA chunk.
    pub(crate) fn chunk(&self) -> u64 {
        match (&self.load, &self.class) {
            (Load::Chunks { size, .. }, _) => *size,
            (Load::Bytes(_), Class::One { class, .. }) => CLASSES[*class].2,
            (Load::Bytes(_), Class::Cmt { .. }) => 1468,
        }
    }

    pub(crate) fn name(&self) -> String {
        match self.class {
            Class::One { class, policy } => format!("{}, {}", CLASSES[class].0, POLICIES[policy]),
            Class::Cmt { policy, .. } => format!("Agent/SCTP/CMT, {}", CMT_POLICIES[policy]),
        }
    }
}

/// Draws by name, 16 bits each.
struct Draws {
    name: String,
    block: u64,
    left: Vec<u64>,
}

impl Draws {
    fn of(name: String) -> Self {
        Draws { name, block: 0, left: Vec::new() }
    }

    fn next(&mut self) -> u64 {
        if self.left.is_empty() {
            let key = stream_seed(self.block, &self.name);
            self.left = key
                .as_chunks::<2>()
                .0
                .iter()
                .rev()
                .map(|pair| u64::from(u16::from_le_bytes(*pair)))
                .collect();
            self.block += 1;
        }
        self.left.pop().expect("a block of draws")
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Whether something happens that does so in one case of `n`.
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn lost(&mut self, per_mille: u64) -> Vec<u64> {
        (1..1500).filter(|_| self.below(900) * 10 < per_mille * 9).collect()
    }

    /// A path with one of these rates and, depending on the rate, one of these losses per mille.
    fn link(&mut self, rates: &[u64], losses: &[u64]) -> Link {
        let (rate, delay) = (self.pick(rates), self.pick(&[30, 45, 100, 145, 300]));
        let (odd, later) = (self.below(900), self.below(900));
        let data_lost = self.lost(losses[(rate % losses.len() as u64) as usize]);
        let sacks_lost = self.lost(if odd.is_multiple_of(3) { 20 } else { 0 });
        Link { rate: rate + 2 * odd + 1, delay: delay * 1_000_000 + 1001 * later, data_lost, sacks_lost }
    }
}

/// Bulk transfers over two paths.
pub(crate) fn plain(number: u64) -> Setting {
    let mut draw = Draws::of(format!("setting {number}"));
    let links = vec![
        draw.link(&[10_000_003, 5_000_002, 2_000_001, 1_000_000], &[5, 20, 50, 100]),
        draw.link(&[10_000_001, 2_000_002, 384_000, 36_000], &[0, 10, 50]),
    ];
    let class = draw.pick(&[0, 0, 0, 0, 1, 2, 3]);
    Setting {
        class: Class::One { class, policy: draw.below(3) as usize },
        links,
        receive_buffer: draw.pick(&[16_384, 32_768, 65_536, 131_072, 1_048_576]),
        ssthresh: draw.pick(&[20_000, 65_536, 1_048_576]),
        load: Load::Bytes(draw.pick(&[200_000, 500_000, 1_045_440])),
        path_max_retrans: draw.pick(&[0, 2, 5, 5]),
        missing_reports: draw.pick(&[3, 3, 4]),
        rto_min_ms: 1000,
        burst: draw.pick(&[false, true, true, true]),
        delayed: draw.pick(&[false, true, true, true]),
        sack_delay_ms: 200,
        outage: None,
        cross: None,
    }
}

/// The same in more surroundings: CMT, one path or three, outages, datagrams beside the flow, small chunks on streams.
pub(crate) fn wide(number: u64) -> Setting {
    let mut draw = Draws::of(format!("wide {number}"));
    let mut links = vec![draw.link(&[10_000_003, 5_000_002, 2_000_001, 1_000_000], &[0, 5, 20, 50])];
    for _ in 1..draw.pick(&[1, 2, 2, 2, 3]) {
        links.push(draw.link(&[10_000_001, 2_000_002, 1_000_000, 384_000], &[0, 10, 50]));
    }
    let cmt = links.len() > 1 && draw.one_in(2);
    let class = match cmt {
        true => Class::Cmt {
            // `rtx-ssthresh` would toss a coin until the first loss.
            policy: draw.pick(&[0, 2, 3]),
            sfr: !draw.one_in(4),
            cuc: !draw.one_in(4),
            dac: !draw.one_in(3),
            pf: draw.one_in(3),
        },
        false => {
            // `HbAfterRto` is meant for several paths.
            let classes = if links.len() > 1 { [0, 0, 0, 0, 1, 2, 3] } else { [0, 0, 0, 0, 0, 2, 3] };
            Class::One { class: draw.pick(&classes), policy: draw.below(3) as usize }
        }
    };
    let small = matches!(class, Class::One { class: 0, .. }) && draw.one_in(3);
    let load = match small {
        true => Load::Chunks {
            size: draw.pick(&[116, 516, 700, 1016]),
            streams: draw.pick(&[1, 3, 10]),
            unordered: draw.one_in(3),
            seconds: 6,
        },
        false => Load::Bytes(draw.pick(&[200_000, 500_000, 1_045_440])),
    };
    let begin_ms = 300 + draw.below(3000);
    let length = draw.pick(&[500, 4000, 20_000]) + draw.below(900);
    let path = draw.below(links.len() as u64) as usize;
    let fails = links.len() > 1 && draw.one_in(4);
    if fails {
        (links[path].data_lost, links[path].sacks_lost) = (Vec::new(), Vec::new());
    }
    let crossed = draw.one_in(4);
    let share = draw.pick(&[3, 5]);
    let cross = 800 * share * (10_100_000 / links[0].rate);
    Setting {
        class,
        receive_buffer: draw.pick(&[16_384, 32_768, 65_536, 131_072, 1_048_576]),
        ssthresh: draw.pick(&[20_000, 65_536, 1_048_576]),
        load,
        path_max_retrans: draw.pick(if cmt { &[3, 5] } else { &[0, 1, 2, 5] }),
        missing_reports: draw.pick(&[3, 3, 4]),
        rto_min_ms: 1000,
        burst: !draw.one_in(4),
        delayed: cmt || !draw.one_in(4),
        sack_delay_ms: draw.pick(&[200, 200, 100, 40]),
        outage: fails.then_some(Outage { path, begin_ms, end_ms: begin_ms + length }),
        cross: crossed.then_some(cross),
        links,
    }
}

/// Small receive buffers, short timeouts, potentially failed paths, and SACKs for each packet also with `dac`.
pub(crate) fn narrow(number: u64) -> Setting {
    let mut draw = Draws::of(format!("narrow {number}"));
    let mut links = vec![draw.link(&[10_000_003, 2_000_001, 384_000, 100_000], &[0, 20, 50, 100])];
    for _ in 1..draw.pick(&[1, 2, 2, 3]) {
        links.push(draw.link(&[10_000_001, 2_000_002, 384_000, 100_000], &[0, 10, 50]));
    }
    let class = match links.len() > 1 && draw.one_in(2) {
        true => Class::Cmt {
            policy: draw.pick(&[0, 2, 3]),
            sfr: !draw.one_in(4),
            cuc: !draw.one_in(4),
            dac: !draw.one_in(3),
            pf: !draw.one_in(3),
        },
        false => Class::One { class: draw.pick(&[0, 0, 0, 2]), policy: draw.below(3) as usize },
    };
    let cmt = matches!(class, Class::Cmt { .. });
    Setting {
        class,
        links,
        receive_buffer: draw.pick(&[1500, 3000, 6000, 9000, 20_000]),
        ssthresh: draw.pick(&[6000, 20_000, 65_536]),
        load: Load::Bytes(draw.pick(&[50_000, 100_000, 200_000])),
        path_max_retrans: draw.pick(if cmt { &[3, 5] } else { &[0, 1, 2, 5] }),
        missing_reports: draw.pick(&[1, 2, 3]),
        rto_min_ms: draw.pick(&[200, 300, 500, 1000]),
        burst: !draw.one_in(4),
        delayed: !draw.one_in(4),
        sack_delay_ms: draw.pick(&[210, 110, 40]),
        outage: None,
        cross: None,
    }
}
