//! `docs/validation.md`: the simulator beside published formulas. `ANABRANCH_BLESS=1` writes its tables anew,
//! `ANABRANCH_BLESS=loss` that one, which takes minutes (`cargo test --profile quick -p anabranch-lab --test
//! validation`). Without it the cheap rows of each table are run and must be those of the page to the last digit.

mod formulas;
mod runs;

use std::path::Path;

use formulas::{failover, mathis, pftk, sawtooth, slow_start_rounds};
use runs::{Flow, SEGMENT, flow, link, mean, number, random_losses, results};

/// A table of the page.
struct Table {
    name: &'static str,
    header: &'static [&'static str],
    rows: Vec<Row>,
}

/// A row, and whether it is run whenever the tests are.
struct Row {
    cheap: bool,
    cells: Box<dyn Fn() -> Vec<String>>,
}

fn row(cheap: bool, cells: impl Fn() -> Vec<String> + 'static) -> Row {
    Row { cheap, cells: Box::new(cells) }
}

/// A number with four significant digits.
fn shown(value: f64) -> String {
    let digits = 3 - libm::floor(libm::log10(value.abs().max(1e-9))) as i32;
    format!("{value:.*}", digits.clamp(0, 3) as usize)
}

fn percent(share: f64) -> String {
    format!("{} %", shown(share * 100.0))
}

/// A simulated value, then formulas, each with the quotient of the two.
fn beside(first: String, simulated: f64, formulas: &[f64]) -> Vec<String> {
    let pairs = formulas.iter().flat_map(|formula| [shown(*formula), format!("{:.2}", simulated / formula)]);
    [first, shown(simulated)].into_iter().chain(pairs).collect()
}

const TCP: Flow = Flow::Tcp("standard", 1);

fn loss() -> Table {
    let shares = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1];
    let cells = |p: f64| {
        let [sctp, tcp, reno] =
            [Flow::Sctp(1), TCP, Flow::Tcp("newreno", 1)].map(|of| random_losses(of, p, 100, 8));
        let (mathis, pftk) = (mathis(p, 0.1, 1.0), pftk(p, 0.1, 1.0, 1.0));
        let quotients = [sctp, tcp, reno].into_iter().flat_map(|rate| [rate / mathis, rate / pftk]);
        let rates = [mathis, pftk, sctp, tcp, reno].map(shown);
        [percent(p)]
            .into_iter()
            .chain(rates)
            .chain(quotients.map(|quotient| format!("{quotient:.2}")))
            .collect()
    };
    Table {
        name: "loss",
        header: &[
            "loss",
            "Mathis",
            "PFTK",
            "SCTP",
            "TCP",
            "TCP without SACK",
            "SCTP / Mathis",
            "SCTP / PFTK",
            "TCP / Mathis",
            "TCP / PFTK",
            "without SACK / Mathis",
            "without SACK / PFTK",
        ],
        rows: shares.map(|p| row(p >= 3e-2, move || cells(p))).into(),
    }
}

/// What lets a sender exceed PFTK at high loss, switched one by one.
fn timeouts() -> Table {
    let senders = [
        ("SCTP", Flow::Sctp(1), ""),
        ("SCTP, ssthresh of at least two units instead of four", Flow::Sctp(1), "ssthresh_floor = 2\n"),
        ("TCP", TCP, ""),
        ("TCP without limited transmit", TCP, "limited_transmit = false\n"),
        ("TCP without SACK", Flow::Tcp("newreno", 1), ""),
        ("TCP without SACK and limited transmit", Flow::Tcp("newreno", 1), "limited_transmit = false\n"),
    ];
    let cells = |(name, of, more): (&str, Flow, &str)| {
        let quotients = [0.03, 0.1].map(|p| {
            let rate = runs::random_losses_with(of, more, p, 100, 8);
            format!("{:.2}", rate / pftk(p, 0.1, 1.0, 1.0))
        });
        [name.to_owned()].into_iter().chain(quotients).collect()
    };
    Table {
        name: "timeouts",
        header: &["sender", "quotient to PFTK at 3 %", "at 10 %"],
        rows: senders.map(|of| row(of.0.ends_with("limited transmit"), move || cells(of))).into(),
    }
}

fn round_trips() -> Table {
    let cells = |rtt: u64| {
        let rate = random_losses(Flow::Sctp(1), 0.01, rtt, 8);
        let seconds = rtt as f64 / 1e3;
        beside(format!("{rtt} ms"), rate, &[mathis(0.01, seconds, 1.0), pftk(0.01, seconds, 1.0, 1.0)])
    };
    Table {
        name: "round-trips",
        header: &["round trip", "SCTP", "Mathis", "SCTP / Mathis", "PFTK", "SCTP / PFTK"],
        rows: [10, 30, 100, 300].map(|rtt| row(rtt >= 100, move || cells(rtt))).into(),
    }
}

fn delayed() -> Table {
    let flows: [(&str, fn(u32) -> Flow); 4] = [
        ("SCTP, which counts bytes", Flow::Sctp),
        ("TCP, which counts bytes", |every| Flow::Tcp("standard", every)),
        ("ns-2's TCP, which counts acknowledgements", |every| Flow::Tcp("sack1", every)),
        ("ns-2's TCP of 2002", |every| Flow::Tcp("sack1-2002", every)),
    ];
    let cells = |(name, of): (&str, fn(u32) -> Flow)| {
        let [each, second] = [1, 2].map(|every| random_losses(of(every), 0.003, 100, 8));
        let expected = [1.0, 0.5f64.sqrt()].map(|quotient| format!("{quotient:.2}"));
        let measured = [shown(each), shown(second), format!("{:.2}", second / each)];
        [name.to_owned()].into_iter().chain(measured).chain(expected).collect()
    };
    Table {
        name: "delayed",
        header: &[
            "sender",
            "SACK for each packet",
            "for every second",
            "quotient",
            "expected with b = 1",
            "with b = 2",
        ],
        rows: flows.map(|of| row(of.0.starts_with("SCTP"), move || cells(of))).into(),
    }
}

fn windows() -> Table {
    let cells = |kilobytes: u64, rtt: u64| {
        let text = format!(
            "stop = '60 s'\nmeasure = ['10 s', '60 s']\n{}{}",
            link("10 Gbit/s", rtt, "100000 packets", 0.0),
            flow("f", Flow::Sctp(1))
                .replace("receive_buffer = '100 MB'", &format!("receive_buffer = '{kilobytes} kB'"))
        );
        let rate = mean(&results(&text, 1), |result| number(result, "f", &["measured", "goodput"]));
        // A chunk takes its header of 16 bytes out of the window as well.
        let whole = (kilobytes as f64 * 1e3 / (SEGMENT + 16.0)).floor() * SEGMENT;
        beside(format!("{kilobytes} kB, {rtt} ms"), rate / 1e6, &[whole * 8.0 / rtt as f64 / 1e3])
    };
    Table {
        name: "window",
        header: &["receive buffer, round trip", "Mbit/s", "whole chunks / round trip", "quotient"],
        rows: [(64, 10), (64, 100), (64, 500), (256, 100), (1000, 100)]
            .map(|(window, rtt)| row(window < 1000, move || cells(window, rtt)))
            .into(),
    }
}

fn slow_start() -> Table {
    let cells = |segments: u32, of: Flow, name: &str, initial: f64| {
        let send = format!("from = 's'\nsend = '{} B'\n", f64::from(segments) * SEGMENT);
        let text = format!(
            "{}{}",
            link("10 Gbit/s", 100, "100000 packets", 0.0),
            flow("f", of).replace("from = 's'\n", &send)
        );
        let results = results(&text, 1);
        // From the first data until all has arrived: half a round trip, and a whole one for each round before the last.
        let (first, end) = ("first_data", "completion");
        let took = mean(&results, |result| number(result, "f", &[end]) - number(result, "f", &[first])) / 0.1;
        let rounds = slow_start_rounds(f64::from(segments), initial);
        vec![format!("{name}, {segments}"), shown(took), shown(f64::from(rounds) - 1.0)]
    };
    let flows = [("SCTP, from 4", Flow::Sctp(1), 4.0), ("TCP, from 10", TCP, 10.0)];
    let rows = flows.into_iter().flat_map(|(name, of, initial)| {
        [10, 100, 1000].map(|segments| row(true, move || cells(segments, of, name, initial)))
    });
    Table {
        name: "slow-start",
        header: &["segments", "round trips between first and last segment", "expected"],
        rows: rows.collect(),
    }
}

fn queues() -> Table {
    let cells = |share: f64| {
        // 10 Mbit/s for 100 ms are 84 packets of 1500 bytes; the packet being sent counts to the queue.
        let product = 10e6 * 0.1 / 8.0 / 1500.0;
        let queue = (share * product).round() as u64 + 1;
        let text = format!(
            "stop = '1000 s'\nmeasure = ['200 s', '1000 s']\n{}{}",
            link("10 Mbit/s", 100, &format!("{queue} packets"), 0.0),
            flow("f", Flow::Sctp(1))
        );
        let rate = mean(&results(&text, 1), |result| number(result, "f", &["measured", "throughput"]));
        beside(format!("{share}"), rate / 10e6 * 100.0, &[sawtooth(share) * 100.0])
    };
    Table {
        name: "queue",
        header: &["queue / bandwidth-delay product", "utilisation, %", "sawtooth, %", "quotient"],
        rows: [0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 2.0]
            .map(|share| row(share == 0.5, move || cells(share)))
            .into(),
    }
}

/// Two flows of SCTP over one link, whose round trips are these.
fn two_flows(rtts: [u64; 2], shared: &str, seconds: u64, seeds: u64) -> [f64; 2] {
    let ways = rtts.map(|rtt| rtt * 500 - 1000);
    let mut text = format!("stop = '{seconds} s'\nmeasure = ['{} s', '{seconds} s']\n", seconds / 10);
    text += &format!("[[link]]\nname = 'shared'\nbetween = ['a', 'b']\ndelay = '1 ms'\n{shared}\n");
    for (i, way) in ways.iter().enumerate() {
        text += &format!(
            "[[link]]\nname = 'w{i}'\nbetween = ['s{i}', 'a']\nrate = '1 Gbit/s'\ndelay = '{way} us'\n"
        );
        text +=
            &format!("[[link]]\nname = 'e{i}'\nbetween = ['b', 'r{i}']\nrate = '1 Gbit/s'\ndelay = '0 ms'\n");
        let of = flow(&format!("f{i}"), Flow::Sctp(1)).replace("'s'", &format!("'s{i}'"));
        let of = of.replace("'r'", &format!("'r{i}'"));
        text += &of.replace("[flow.sctp]", "start = { uniform = ['0 s', '1 s'] }\n[flow.sctp]");
    }
    let results = results(&text, seeds);
    [0, 1].map(|i| mean(&results, |result| number(result, &format!("f{i}"), &["measured", "goodput"])))
}

fn fairness() -> Table {
    let random = "rate = '1 Gbit/s'\nqueue = '100000 packets'\nloss = ['1 %', '0 %']";
    let drop_tail = "rate = '10 Mbit/s'\nqueue = '40 packets'";
    let red = "rate = '10 Mbit/s'\nqueue = { red = { limit = '200 packets', min = '10 packets', max = '60 packets' } }";
    let cells = |name: &str, shared: &str, rtts: [u64; 2], expected: &str| {
        let [first, second] = two_flows(rtts, shared, 400, 10);
        let index = (first + second) * (first + second) / 2.0 / (first * first + second * second);
        let rtts = format!("{name}: {} and {} ms", rtts[0], rtts[1]);
        vec![
            rtts,
            shown(first / 1e6),
            shown(second / 1e6),
            format!("{:.2}", first / second),
            expected.to_owned(),
            format!("{index:.3}"),
        ]
    };
    let rows = [
        ("random loss", random, [50, 50], "1"),
        ("random loss", random, [50, 100], "2"),
        ("random loss", random, [50, 200], "4"),
        ("drop-tail", drop_tail, [50, 50], "1"),
        ("drop-tail", drop_tail, [50, 100], "2 to 4"),
        ("drop-tail", drop_tail, [50, 200], "4 to 16"),
        ("RED", red, [50, 50], "1"),
        ("RED", red, [50, 100], "about 2"),
    ];
    Table {
        name: "fairness",
        header: &[
            "losses, round trips",
            "first, Mbit/s",
            "second, Mbit/s",
            "quotient",
            "expected",
            "Jain's index",
        ],
        rows: rows
            .map(|(name, shared, rtts, expected)| {
                row(name == "random loss" && rtts[1] == 100, move || cells(name, shared, rtts, expected))
            })
            .into(),
    }
}

fn failovers() -> Table {
    let cells = |most: u32, min: f64| {
        let text = format!(
            "stop = '150 s'\n\
             [[link]]\nname = 'first'\nbetween = ['s', 'r']\nrate = '2 Mbit/s'\ndelay = '20 ms'\ndown = [['10 s', '149 s']]\n\
             [[link]]\nname = 'second'\nbetween = ['s', 'r']\nrate = '2 Mbit/s'\ndelay = '20 ms'\n\
             [[flow]]\nname = 'f'\nfrom = 's'\nto = 'r'\nmessage_size = '1000 B'\nrate = '800 kbit/s'\n\
             [flow.sctp]\nprimary = 'first'\npath_max_retrans = {most}\nassociation_max_retrans = 20\nrto_min = '{min} s'\n\
             pf_max_retrans = {most}\n"
        );
        let results = results(&text, 1);
        let took = mean(&results, |result| {
            result["flows"][0]["outages"][0]["new_data"].as_f64().expect("it goes on elsewhere")
        });
        vec![
            format!("{most}, {min} s"),
            shown(took),
            shown(failover(min, 60.0, most)),
            format!("{:.2}", took - failover(min, 60.0, most)),
        ]
    };
    let rows = [(0, 1.0), (2, 1.0), (5, 1.0), (2, 0.3), (5, 0.3)];
    Table {
        name: "failover",
        header: &[
            "Path.Max.Retrans, RTO.Min",
            "seconds until new data elsewhere",
            "sum of the timeouts",
            "difference",
        ],
        rows: rows.map(|(most, min)| row(true, move || cells(most, min))).into(),
    }
}

fn tables() -> Vec<Table> {
    vec![
        loss(),
        timeouts(),
        round_trips(),
        delayed(),
        windows(),
        slow_start(),
        queues(),
        fairness(),
        failovers(),
    ]
}

fn line(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

fn page() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/validation.md")
}

/// The rows of the table `name` on the page, and where they begin and end.
fn place(text: &str, name: &str) -> (usize, usize) {
    let heading = format!("<!-- table: {name} -->\n");
    let begin = text.find(&heading).unwrap_or_else(|| panic!("the page has no table {name}")) + heading.len();
    (begin, begin + text[begin..].find("<!-- end -->").expect("an end"))
}

/// Writes the table called `only`, or all of them.
fn write(only: &str) {
    for table in tables().into_iter().filter(|table| only == "1" || only == table.name) {
        let header: Vec<_> = table.header.iter().map(|&name| name.to_owned()).collect();
        let rule = format!("|---|{}", "---:|".repeat(header.len() - 1));
        let rows = table.rows.iter().map(|row| line(&(row.cells)()));
        let lines: Vec<_> = [line(&header), rule].into_iter().chain(rows).collect();
        let text = std::fs::read_to_string(page()).expect("the page");
        let (begin, end) = place(&text, table.name);
        let text = format!("{}{}\n{}", &text[..begin], lines.join("\n"), &text[end..]);
        std::fs::write(page(), text).expect("the page is written");
    }
}

#[test]
fn the_page_says_what_the_simulator_does() {
    if let Ok(only) = std::env::var("ANABRANCH_BLESS") {
        return write(&only);
    }
    let text = std::fs::read_to_string(page()).expect("the page");
    for table in tables() {
        let (begin, end) = place(&text, table.name);
        let lines: Vec<_> = text[begin..end].lines().collect();
        assert_eq!(lines.len(), table.rows.len() + 2, "rows of {}", table.name);
        for (row, written) in table.rows.iter().zip(&lines[2..]).filter(|(row, _)| row.cheap) {
            assert_eq!(
                *written,
                line(&(row.cells)()),
                "{}: ANABRANCH_BLESS=1 writes the page anew",
                table.name
            );
        }
    }
}
