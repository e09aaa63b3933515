//! Figures of publications from outside: what their pictures show, and the data beside them.

mod support;

use std::collections::BTreeSet;

use support::{anabranch, stderr};
use tempfile::TempDir;

#[test]
fn the_figure_shows_every_mark() {
    let svg = figure("receive-buffer-blocking", "case-study.svg", "1");
    assert!(svg.starts_with("<svg"));
    for text in ["A", "B", "C", "D", "E", "F", "sent again", "alternate: 37.33 s", "same: 18.53 s"] {
        assert!(svg.lines().any(|line| line.trim() == text), "{text} is not in the figure");
    }
}

/// The data of a figure is what its picture shows.
#[test]
fn a_figure_is_written_as_data() {
    let csv = figure("receive-buffer-blocking", "case-study.csv", "1");
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0], ["number", "series", "panel", "x", "value", "half"]);
    let last = |series: &str, panel: &str| -> f64 {
        let row = rows.iter().rfind(|row| row[1] == series && row[2] == panel);
        row.unwrap_or_else(|| panic!("{series} in {panel}"))[4].parse().expect("a number")
    };
    let policies = ["alternate: 37.33 s", "same: 18.53 s"];
    // Both send the same 20 MB, in chunks of less than 1,500 bytes.
    let [alternate, same] = policies.map(|policy| last(policy, "the whole transfer"));
    assert!(alternate == same && same > 20e6 / 1500.0, "{alternate} and {same} chunks");
    policies.iter().for_each(|policy| assert!(last("peer's window  kB", policy) > 0.0));
    assert!(rows.iter().any(|row| row[1] == "dropped") && rows.iter().any(|row| row[1] == "sent again"));
    let tex = figure("receive-buffer-blocking", "case-study.tex", "1");
    assert_eq!(tex.matches("\\nextgroupplot[").count(), 5);
    for text in ["{case-study.csv}", "\\addlegendentry{same: 18.53 s}", "extra x tick labels={{A},"] {
        assert!(tex.contains(text), "{text} is not in {tex}");
    }
}

/// A figure of the repository's own publication, with so many seeds.
fn figure(paper: &str, name: &str, seeds: &str) -> String {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join(name).display().to_string();
    let paper = format!("{}/../papers/{paper}", env!("CARGO_MANIFEST_DIR"));
    let output = anabranch(&["reproduce", &paper, "--seeds", seeds, "--figure", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    std::fs::read_to_string(file).expect("the figure is written")
}

#[test]
fn a_figure_is_overwritten_only_by_force() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("figure-1.svg");
    std::fs::write(&file, "mine").expect("written");
    let (paper, shown) =
        (format!("{}/../papers/cmt-over-wireless", env!("CARGO_MANIFEST_DIR")), file.display().to_string());
    let command = ["reproduce", &paper, "--figure", &shown];
    let refused = anabranch(&command);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("--force overwrites it"), "{}", stderr(&refused));
    assert_eq!(std::fs::read(&file).expect("it is there"), b"mine");
    let forced = anabranch(&[&command[..], &["--force"]].concat());
    assert_eq!(forced.status.code(), Some(0), "{}", stderr(&forced));
    assert!(std::fs::read(&file).expect("it is there").starts_with(b"<svg"));
}

/// The groups of runs that a threshold is found from, and what they are compared with.
#[test]
fn a_curve_shows_groups_beside_a_band() {
    let svg = figure("retransmission-policy-flaw", "independent-3.svg", "5");
    for text in [
        "loss_1, %",
        "completion, s",
        "45 runs in groups, 90 % intervals",
        "compared with: 5 runs, mean and 90 % interval",
    ] {
        assert!(svg.lines().any(|line| line.trim() == text), "{text} is not in the figure");
    }
    assert!(svg.lines().any(|line| line.trim().starts_with("threshold: ")), "the threshold is marked");
    let csv = figure("retransmission-policy-flaw", "independent-3.csv", "5");
    let rows = |series: &str| csv.lines().filter(|line| line.split(',').nth(1) == Some(series)).count();
    assert_eq!((rows("compared with"), rows("groups")), (2, 9));
}

/// Two columns of forty seconds: no interval is above what the link carries, and some are above zero.
#[test]
fn a_figure_shows_throughput() {
    let svg = figure("satellite-fairness", "figure-5.svg", "1");
    let axis = "satellite router&gt;destination, all flows, kbit/s";
    assert_eq!(svg.lines().filter(|line| line.trim() == axis).count(), 2);
}

/// Two transfers without an end: each heading is the value alone, the lower charts have one scale, and the number of
/// acknowledged chunks stays constant until the next acknowledgement.
#[test]
fn columns_can_be_compared() {
    let csv = figure("satellite-fairness", "figure-9-11.csv", "1");
    let acknowledged: Vec<[f64; 2]> = csv
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter(|row| row[1] == "acknowledged" && row[2] == "4380")
        .map(|row| [row[3], row[4]].map(|number| number.parse().expect("a number")))
        .collect();
    assert!(acknowledged.len() > 10);
    assert!(
        acknowledged.windows(2).all(|pair| pair[0][0] == pair[1][0] || pair[0][1] == pair[1][1]),
        "{csv}"
    );
    let tex = figure("satellite-fairness", "figure-9-11.tex", "1");
    let highest: Vec<&str> = tex.split("ymax=").skip(1).map(|rest| rest.split(',').next().unwrap()).collect();
    assert_eq!((highest.len(), highest[3]), (5, highest[4]));
    let svg = figure("satellite-fairness", "figure-5.svg", "1");
    assert_eq!(svg.lines().filter(|line| line.trim() == "seed 2").count(), 2);
}

/// The radios of the publication on multihop wireless: every node, the ranges around one, and the flows.
#[test]
fn a_map_shows_radios_and_ranges() {
    let svg = figure("cmt-over-wireless", "figure-2.svg", "1");
    let shown = ["a0", "a4", "b4", "transfer", "cbr", "radio on freq1", "radio on freq2", "300 m"];
    let ranges = ["is read up to 370 m", "is sensed up to 520 m", "spoils others up to 812 m"];
    for text in shown.into_iter().map(str::to_owned).chain(ranges.map(|range| format!("a frame {range}"))) {
        assert!(svg.lines().any(|line| line.trim() == text), "{text} is not in the figure");
    }
    let csv = figure("cmt-over-wireless", "figure-2.csv", "1");
    let rows = |series: &str| csv.lines().filter(|line| line.split(',').nth(1) == Some(series)).count();
    assert_eq!((rows("freq1"), rows("freq2")), (5, 10));
    assert!(csv.lines().any(|line| line.ends_with(",600,450,nan")), "b2 is at 600 m, 450 m");
}

/// Both ways of using two paths, one below the other: CMT numbers the chunks of both paths together, two associations
/// each their own.
#[test]
fn exchanges_stand_below_each_other() {
    let svg = figure("cmt-over-wireless", "figure-3.svg", "1");
    let heads = [
        "Figure 3: CMT: a SACK acknowledges data of both paths",
        "Figure 3: AppStripe: a SACK acknowledges data of its own association",
    ];
    for text in heads {
        assert!(svg.lines().any(|line| line.trim() == text), "{text} is not in the figure");
    }
    assert!(svg.matches("SACK ").count() > 4 && svg.matches("DATA ").count() > 8);
    let csv = figure("cmt-over-wireless", "figure-3.csv", "1");
    for series in ["freq1: DATA", "freq2: DATA", "freq1: SACK", "freq2: SACK"] {
        let panels: BTreeSet<&str> = csv
            .lines()
            .filter(|line| line.split(',').nth(1) == Some(series))
            .filter_map(|line| line.split(',').nth(2))
            .collect();
        assert_eq!(panels.len(), 2, "{series} in {panels:?}");
    }
}

/// A publication with bars and orders.
fn paper_with_bars() -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in
        [("link.toml", LINK), ("rates.csv", "rate\n1\n2\n"), ("claims.toml", ORDERS), ("paper.toml", BARS)]
    {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// A group of bars for each row of its table, a bar of each series in each.
#[test]
fn bars_show_means_of_seeds() {
    let folder = paper_with_bars();
    let paper = folder.path().display().to_string();
    let out = |name: &str| folder.path().join(name).display().to_string();
    let run = |args: &[&str]| anabranch(&[&["reproduce", &paper, "--figure"], args].concat());
    let output = run(&[&out("figure.csv"), "--resume", &out("kept")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let csv = std::fs::read_to_string(out("figure.csv")).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let value = |n: usize| rows[n][4].parse::<f64>().expect("a number");
    assert_eq!(rows.iter().map(|row| row[1]).collect::<Vec<_>>(), ["whole", "whole", "half", "half"]);
    // 100 kB take about 0.8 s at 1 Mbit/s, and half of that at 2.
    assert!(value(0) > 1.8 * value(1) && value(2) < 0.6 * value(0), "{csv}");
    assert!(rows.iter().all(|row| row[5] != "nan"), "two seeds have an interval: {csv}");
    // What is kept is not run again, and the picture has the same groups.
    let kept = std::fs::read_to_string(out("kept")).unwrap();
    let output = run(&[&out("rates.svg"), "--resume", &out("kept")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(out("kept")).unwrap(), kept);
    let svg = std::fs::read_to_string(out("rates.svg")).unwrap();
    for text in ["1 Mbit/s", "2 Mbit/s", "whole", "half", "completion, s"] {
        assert!(svg.lines().any(|line| line.trim() == text), "{text} is not in the figure");
    }
}

/// Orders that compare the same items are lines of one chart; items of the same value are told apart.
#[test]
fn orders_are_charts() {
    let folder = paper_with_bars();
    let paper = folder.path().display().to_string();
    let charts = folder.path().join("charts");
    let output = anabranch(&["reproduce", &paper, "--figures", &charts.display().to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let drawn = charts.join(folder.path().file_name().unwrap());
    let csv = std::fs::read_to_string(drawn.join("table-1-slower.csv")).expect("the chart of the orders");
    for text in ["slower/50 kB", "slower/100 kB", "2 Mbit/s", "1 Mbit/s  1 percent", "1 Mbit/s  9 percent"] {
        assert!(csv.contains(text), "{text} is not in {csv}");
    }
    assert_eq!(csv.lines().count(), 7, "{csv}");
    assert!(drawn.join("rates.svg").is_file(), "bars are drawn too");
}

/// A figure of a link, a path or a flow that is not there would show nothing; one of endless times would never be
/// drawn.
#[test]
fn a_figure_of_nothing_is_refused() {
    let wrong: [(&str, &str, &[&str]); 9] = [
        ("link = 'l'", "link = 'm'", &["paper.toml:26", "figure.w.link", "no link or channel `m`"]),
        ("path = 'l'", "path = 'm'", &["paper.toml:28", "figure.w.path", "no path `m`"]),
        ("flow = 'f'", "flow = 'g'", &["paper.toml:29", "figure.w.flow", "no flow `g`"]),
        ("from = '1 s'", "from = '9 s'", &["paper.toml:32", "figure.w.after", "ends before it begins"]),
        (
            "quantity = 'cwnd'\npath = 'l'",
            "throughput = '1 ns'",
            &["figure.w.throughput", "1000000000 intervals"],
        ),
        ("to = '2 s'", "to = '9 s'\nflow = 'g'", &["exchange.w.flow", "no such flow"]),
        ("from = '0 s'\nto = '2 s'", "from = '50 s'\nto = '51 s'", &["exchange.w.from", "no packet"]),
        ("1\n2\n", "", &["bars.rates.rows", "there is no row"]),
        (
            "[[bars.series]]\nname = 'whole'\n[[bars.series]]\nname = 'half'\nset = ['flow.f.send=50 kB']\n",
            "series = []\n",
            &["bars.rates.series", "one series at least"],
        ),
    ];
    for (before, after, said) in wrong {
        let folder = paper_with_bars();
        let place = |name: &str| folder.path().join(name);
        let more = if said[0].starts_with("exchange") { EXCHANGE } else { WINDOW };
        let text = BARS.replacen("[[bars]]", &format!("{more}[[bars]]"), 1).replacen(before, after, 1);
        std::fs::write(place("paper.toml"), text).unwrap();
        std::fs::write(place("rates.csv"), "rate\n1\n2\n".replace(before, after)).unwrap();
        let [paper, file] = [folder.path().to_owned(), place("w.svg")].map(|path| path.display().to_string());
        let output = anabranch(&["reproduce", &paper, "--figure", &file]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{after}: {message}");
        said.iter().for_each(|part| assert!(message.contains(part), "{after}: {part} is not in {message}"));
        assert!(!place("w.svg").exists(), "{after}");
    }
}

const WINDOW: &str = "\
[[mark]]
name = 'start'
event = { sent = 'any' }
[[figure]]
name = 'w'
title = 'window'
experiment = 'plain'
over = 'seed=1,2'
link = 'l'
quantity = 'cwnd'
path = 'l'
flow = 'f'
since = 'start'
from = '1 s'
after = '2 s'
";

const EXCHANGE: &str = "\
[[exchange]]
name = 'w'
title = 'packets'
experiment = 'plain'
over = 'seed=1,2'
from = '0 s'
to = '2 s'
";

const ORDERS: &str = "\
[[claim]]
id = 'slower/{size}'
source = 'Table 1'
form = 'order'
each = { size = ['50 kB', '100 kB'] }
experiment = 'plain'
set = ['flow.f.send={size}']
measure = 'completion'
over = 'link.l.rate=2 Mbit/s,1 Mbit/s,1 Mbit/s'
along = ['link.l.loss=1 %,1 %,9 %']
";

const LINK: &str = "\
stop = '60 s'
[[link]]
name = 'l'
between = ['a', 'b']
rate = '1 Mbit/s'
loss = '1 %'
[[flow]]
name = 'f'
from = 'a'
to = 'b'
send = '100 kB'
";

const BARS: &str = "\
title = 'bars'
citation = 'nobody'
[[variant]]
name = 'only'
[[experiment]]
name = 'link'
scenario = 'link.toml'
set = ['link.l.rate={rate} Mbit/s']
seeds = 2
[[experiment]]
name = 'plain'
scenario = 'link.toml'
seeds = 3
[[measure]]
name = 'completion'
result = 'flows.f.completion'
unit = 's'
[[bars]]
name = 'rates'
title = 'two rates'
rows = 'rates.csv'
group = '{rate} Mbit/s'
experiment = 'link'
measure = 'completion'
[[bars.series]]
name = 'whole'
[[bars.series]]
name = 'half'
set = ['flow.f.send=50 kB']
";
