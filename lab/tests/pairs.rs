//! The random pairs of paths of `papers/receive-buffer-blocking`: the tables are what these lines draw.

use std::path::Path;

use anabranch_sim::stream_seed;

/// Rows of the tables.
const PAIRS: u64 = 1000;
const VARYING: u64 = 300;

/// Uniform from 0 to 1: the number `name` of a pair.
fn unit(pair: u64, name: &str) -> f64 {
    let seed = stream_seed(pair, &format!("pairs/{name}"));
    let word = u64::from_le_bytes(seed[..8].try_into().expect("a seed has 32 bytes"));
    (word >> 11) as f64 / (1_u64 << 53) as f64
}

/// Between these two, uniform in the logarithm.
fn between(pair: u64, name: &str, low: f64, high: f64) -> f64 {
    (low * libm::pow(high / low, unit(pair, name))).round()
}

/// One pair.
struct Pair {
    /// Bandwidths of tables 1 and 2, from the smallest to the largest, bit/s.
    rates: [f64; 2],
    /// What the paper keeps fixed, around its values: one way, ms.
    delays: [f64; 2],
    /// Packets.
    queue: f64,
    /// Bytes.
    buffer: f64,
}

impl Pair {
    fn draw(pair: u64) -> Pair {
        Pair {
            rates: [between(pair, "primary", 36e3, 30e6), between(pair, "secondary", 36e3, 384e3)],
            delays: [
                between(pair, "primary-delay", 20.0, 100.0),
                between(pair, "secondary-delay", 100.0, 300.0),
            ],
            queue: between(pair, "queue", 30.0, 100.0),
            buffer: between(pair, "buffer", 256e3, 1e6),
        }
    }

    fn columns(&self) -> String {
        let ([primary, secondary], [first, second]) = (self.rates, self.delays);
        format!(
            "{primary},{secondary},{},{},{first} ms,{second} ms,{},{},{}",
            2.0 * first / 1000.0,
            2.0 * second / 1000.0,
            self.queue,
            self.queue * 1500.0,
            self.buffer
        )
    }
}

const COLUMNS: &str = "row,primary_bps,secondary_bps,primary_rtt,secondary_rtt,primary_delay,secondary_delay,queue,queue_bytes,receive_buffer";

fn pairs() -> String {
    let mut text = format!(
        "# Random pairs of paths: bandwidths between the smallest and the largest of tables 1 and 2, uniform in the logarithm;\n\
         # delays (one way), the primary's queue and the receive buffer around the paper's values. lab/tests/pairs.rs draws them.\n\
         {COLUMNS}\n"
    );
    for pair in 1..=PAIRS {
        text += &format!("{pair},{}\n", Pair::draw(pair).columns());
    }
    text
}

/// The same pairs with what changes: the transfer begins at 5 s, and 20 MB take so long at the primary's rate.
fn varying() -> String {
    let mut text = format!(
        "# The first pairs of pairs.csv, and how they vary (fading.toml, handover.toml, cross-traffic.toml). lab/tests/pairs.rs draws them.\n\
         {COLUMNS},fade_1,clear_1,fade_2,clear_2,fade_3,clear_3,faded_bps,down,up,moved_bps,moved_delay,primary_load,secondary_load\n"
    );
    for number in 1..=VARYING {
        let pair = Pair::draw(number);
        let time = 20e6 * 8.0 / pair.rates[0];
        let at = |share: f64| format!("{:.0} ms", (5.0 + share * time) * 1000.0);
        let fades = [0.2, 0.3, 0.45, 0.55, 0.7, 0.8].map(at).join(",");
        let half = (5.0 + 0.5 * time) * 1000.0;
        text += &format!(
            "{number},{},{fades},{:.0},{half:.0} ms,{:.0} ms,{:.0},{} ms,{:.0},{:.0}\n",
            pair.columns(),
            pair.rates[0] / 4.0,
            half + 200.0,
            pair.rates[0] / 3.0,
            2.0 * pair.delays[0],
            0.3 * pair.rates[0],
            0.3 * pair.rates[1],
        );
    }
    text
}

#[test]
fn the_tables_are_what_is_drawn() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../papers/receive-buffer-blocking");
    for (name, table) in [("pairs.csv", pairs()), ("varying.csv", varying())] {
        let file = folder.join(name);
        if std::env::var_os("ANABRANCH_BLESS").is_some() {
            std::fs::write(&file, table).expect("the table can be written");
            continue;
        }
        let written = std::fs::read_to_string(&file).expect("the table can be read");
        assert!(written == table, "{name} is not what is drawn: ANABRANCH_BLESS=1 writes it anew");
    }
}
