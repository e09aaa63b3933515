//! `--report`: pages of sweeps and publications. Their charts are compared with the results as JSON, and a browser
//! draws them.

#[path = "support/pages.rs"]
mod pages;
mod support;

use std::path::Path;

use pages::{figure, root, with_script};
use serde_json::Value;
use support::{anabranch, browser, skip, stderr};

fn example(name: &str) -> String {
    format!("{}/../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// Runs a small sweep over `scenario` with a report in `directory`; the page and summary.json.
fn swept(directory: &Path, scenario: &str) -> (String, Value) {
    let place = |name: &str| directory.join(name).display().to_string();
    let text = format!(
        "scenario = {scenario:?}\nseeds = 3\ncompare = \"era\"\n[vary]\n\"link.wifi.loss\" = [\"0.1 %\", \"1 %\"]\n\
         era = [\"rfc4960\", \"rfc9260\"]\n[measure]\ngoodput = \"flows.upload.goodput\"\n"
    );
    std::fs::write(place("sweep.toml"), text).expect("it can be written");
    let output = anabranch(&[
        "sweep",
        &place("sweep.toml"),
        "--out",
        &place("out"),
        "--report",
        &place("page.html"),
        "--json",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(place("page.html")).expect("the page was written");
    (page, serde_json::from_slice(&output.stdout).expect("it is JSON"))
}

#[test]
fn the_charts_of_a_sweep_show_its_summary() {
    let directory = tempfile::tempdir().expect("a directory");
    let (page, cells) = swept(directory.path(), &example("loss"));
    let figures = figure(&page);
    let (curves, heat, boxes, differences) =
        (&figures[0]["data"], &figures[1]["data"][0], &figures[2], &figures[3]);
    for cell in 0..4 {
        let (loss, era) = (cell / 2, cell % 2);
        let goodput = &cells[cell]["measures"]["goodput"];
        assert_eq!(curves[era]["y"][loss], goodput["mean"]);
        assert_eq!(curves[era]["error_y"]["array"][loss], goodput["ci95"]);
        assert_eq!(heat["z"][loss][era], goodput["mean"]);
        assert_eq!(boxes["data"][cell]["y"][0].as_array().map(Vec::len), Some(3));
    }
    assert_eq!(curves[0]["x"], serde_json::json!([0.1, 1.0]));
    assert_eq!(differences["data"][0]["y"][1], cells[3]["differences"]["goodput"]["mean"]);
    let command = curves[1]["customdata"][0].as_str().expect("a command");
    assert!(
        command.ends_with("--seed 7 --set 'link.wifi.loss=\"0.1 %\"' --set 'era=\"rfc9260\"'"),
        "{command}"
    );
    let Some(browser) = browser() else {
        return skip("the_charts_of_a_sweep_show_its_summary", "there is no Chromium");
    };
    let root = root(browser, directory.path(), &page, &[]);
    assert!(!root.contains("data-error") && root.contains("data-charts=\"4\""), "{root}");
    assert!(root.contains("data-traces=\"8\""), "{root}");
}

/// Clicks a run in the chart of distributions. The quartiles of its three values are the means of neighbours, as
/// `sweep` and the pictures in files have them.
const CLICKED: &str = "
    const chart = document.getElementById('chart-2');
    const [box, runs] = [chart.calcdata[0][0], chart.data[0].y[0].toSorted((a, b) => a - b)];
    const expected = [(runs[0] + runs[1]) / 2, runs[1], (runs[1] + runs[2]) / 2];
    for (const [i, value] of [box.q1, box.med, box.q3].entries())
        if (Math.abs(value - expected[i]) > 1e-9 * value) throw new Error(`quartile ${i}: ${value}, not ${expected[i]}`);
    const places = new Set(chart.calcdata.map(([box]) => box.pos));
    if (places.size !== chart.data.length) throw new Error(`${places.size} places for ${chart.data.length} boxes`);
    const area = chart.querySelector('.nsewdrag');
    const point = chart.querySelector('.boxlayer .point').getBoundingClientRect();
    const [clientX, clientY] = [point.x + point.width / 2, point.y + point.height / 2];
    for (const kind of ['mousemove', 'mousedown', 'mouseup', 'click']) {
        const target = kind === 'mouseup' ? document.querySelector('.dragcover') ?? area : area;
        target.dispatchEvent(new MouseEvent(kind, { bubbles: true, clientX, clientY, button: 0, buttons: 1 }));
        await pause(100);
    }
    if (!state.command?.includes('--seed')) throw new Error(`clicked: ${state.command}`);";

#[test]
fn a_point_of_a_distribution_repeats_its_run() {
    let Some(browser) = browser() else {
        return skip("a_point_of_a_distribution_repeats_its_run", "there is no Chromium");
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (page, _) = swept(directory.path(), &example("loss"));
    let root = root(browser, directory.path(), &with_script(&page, CLICKED), &["--window-size=1280,3000"]);
    assert!(!root.contains("data-error") && root.contains("data-command"), "{root}");
}

#[test]
fn a_hostile_name_of_a_sweep_is_only_text() {
    let directory = tempfile::tempdir().expect("a directory");
    let scenario = directory.path().join("<img src=x onerror=alert(1)>.toml");
    std::fs::copy(example("loss"), &scenario).expect("it can be copied");
    let (page, _) = swept(directory.path(), &scenario.display().to_string());
    assert!(!page.contains("<img src=x") && page.contains("&lt;img src=x"));
}

#[test]
fn a_table_of_a_paper_stands_beside_ours() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("page.html").display().to_string();
    let claim = "table1/10000000";
    let arguments = ["--claim", claim, "--seeds", "1", "--json", "--report", &file];
    let output = anabranch(&[&["reproduce", "receive-buffer-blocking"][..], &arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let judged: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let claims = judged["claims"].as_array().expect("claims");
    let page = std::fs::read_to_string(&file).expect("the page was written");
    let figures = figure(&page);
    let traces = figures[0]["data"].as_array().expect("traces");
    let shown = traces[0]["x"].as_array().expect("names");
    for (i, id) in shown.iter().enumerate() {
        let claim = claims.iter().find(|claim| claim["id"] == *id).expect("it was judged");
        let said: Vec<&Value> = traces.iter().map(|trace| &trace["y"][i]).collect();
        assert_eq!(said, [&claim["paper"], &claim["ns2"], &claim["anabranch"]]);
    }
    let orders = figures[1]["data"].as_array().expect("traces");
    let symbols: Vec<&Value> = orders.iter().map(|trace| &trace["marker"]["symbol"]).collect();
    assert_eq!(symbols, ["circle", "square-open", "diamond-open"], "Anabranch, the paper and ns-2 differ");
    assert!(shown.len() > 1 && page.contains("anabranch reproduce receive-buffer-blocking --claim table1/"));
    assert!(page.contains("<svg") && page.contains("--figure case-study.svg"));
    assert!(page.contains("<b>A draft</b> with <code>--seeds 1</code>"));
    let Some(browser) = browser() else {
        return skip("a_table_of_a_paper_stands_beside_ours", "there is no Chromium");
    };
    let root = root(browser, directory.path(), &page, &[]);
    assert!(!root.contains("data-error") && root.contains("data-charts="), "{root}");
}

/// Counts the texts of charts: names of an axis, its title, and names of lines. Fails if one stands in another.
const APART: &str = "
    await pause(300);
    let shown = 0;
    for (const chart of document.querySelectorAll('.js-plotly-plot')) {
        const boxes = (what) => [...chart.querySelectorAll(what)].map((text) => [text.textContent, text.getBoundingClientRect()]);
        const [names, others] = [boxes('.xtick text'), boxes('.g-xtitle text, .legendtext')];
        const lies = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
        for (const [i, [other, at]] of others.entries()) {
            const over = [...names, ...others.slice(i + 1)].find(([, place]) => lies(at, place));
            if (over) throw new Error(`${other} lies over ${over[0]}`);
        }
        shown += names.length + others.length;
    }
    if (shown < 30) throw new Error(`only ${shown} texts`);";

#[test]
fn long_names_below_an_axis_have_room() {
    let Some(browser) = browser() else {
        return skip("long_names_below_an_axis_have_room", "there is no Chromium");
    };
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("page.html").display().to_string();
    let arguments = ["--claim", "case-study", "--seeds", "1", "--report", &file];
    let output = anabranch(&[&["reproduce", "receive-buffer-blocking"][..], &arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(&file).expect("the page was written");
    assert!(
        page.contains("<td>A B C D E F</td>"),
        "an order of marks has their names, as in the table of the terminal"
    );
    let page = with_script(&page, APART);
    for width in [500, 1280] {
        let root = root(browser, directory.path(), &page, &[&format!("--window-size={width},1500")]);
        assert!(!root.contains("data-error"), "{width} pixels: {root}");
    }
}
