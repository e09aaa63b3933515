//! `--report`: pages of runs. Their charts are compared with the results as JSON; in a browser, keys, contrast and
//! hostile names are tested. The pages of sweeps and publications are in `charts.rs`.

#[path = "support/pages.rs"]
mod pages;
mod support;

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pages::{figure, root, with_script};
use serde_json::Value;
use support::{anabranch, browser, opened, skip, stderr};

fn example(name: &str) -> String {
    format!("{}/../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// Runs a scenario with a report in `directory`; the page and the run's JSON.
fn report(directory: &Path, arguments: &[&str]) -> (String, Value) {
    let file = directory.join("page.html").display().to_string();
    let mut all = vec!["run"];
    all.extend(arguments);
    all.extend(["--json", "--report", &file]);
    let output = anabranch(&all);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(&file).expect("the page was written");
    let runs: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    (page, runs[0].clone())
}

/// The traces of the page.
fn traces(page: &str) -> Vec<Value> {
    figure(page)["data"].as_array().expect("traces").clone()
}

/// The numbers of a column: doubles or floats in base64.
fn numbers(column: &Value) -> Vec<f64> {
    let bytes = STANDARD.decode(column["bdata"].as_str().expect("base64")).expect("base64");
    let double = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let float = |bytes: &[u8]| f64::from(f32::from_le_bytes(bytes.try_into().expect("four bytes")));
    match column["dtype"].as_str() {
        Some("f8") => bytes.chunks_exact(8).map(double).collect(),
        _ => bytes.chunks_exact(4).map(float).collect(),
    }
}

/// Seconds that the bars of this name cover.
fn covered(traces: &[Value], name: &str) -> f64 {
    let named = traces.iter().filter(|trace| trace["meta"]["kind"] == "waiting" && trace["name"] == name);
    named.map(|trace| numbers(&trace["x"]).chunks_exact(3).map(|bar| bar[1] - bar[0]).sum::<f64>()).sum()
}

/// With `stripe` every association numbers its chunks by itself, and has lines of its own for what the peer reports.
#[test]
fn the_chunks_of_each_striped_association_are_counted_from_its_first() {
    let directory = tempfile::tempdir().expect("a directory");
    let (page, run) = report(directory.path(), &[&example("stripe")]);
    let traces = traces(&page);
    let highest = |of: &dyn Fn(&Value) -> bool| {
        let found = traces.iter().filter(|trace| of(trace)).flat_map(|trace| numbers(&trace["y"]));
        found.fold(0.0, f64::max)
    };
    let mut whole = 0.0_f64;
    for path in run["flows"][0]["paths"].as_array().expect("paths") {
        let (chunks, name) =
            (path["chunks"].as_f64().expect("a number"), path["name"].as_str().expect("a name"));
        let sent = highest(&|trace| trace["meta"]["kind"] == "sent" && trace["meta"]["path"] == name);
        let acknowledged = highest(&|trace| trace["name"] == format!("{name}: acknowledged"));
        assert!(
            0.0 < sent && sent < chunks && sent == acknowledged,
            "{name}: {sent} {acknowledged} of {chunks}"
        );
        assert!(
            highest(&|trace| trace["name"]
                .as_str()
                .is_some_and(|of| of.starts_with(&format!("{name}: peer's window"))))
                > 0.0
        );
        whole = whole.max(sent);
    }
    let dropped = highest(&|trace| trace["meta"]["kind"] == "dropped");
    assert!(0.0 < dropped && dropped <= whole, "{dropped} of {whole}");
}

#[test]
fn every_chart_has_the_numbers_of_the_results() {
    let directory = tempfile::tempdir().expect("a directory");
    let (page, run) = report(directory.path(), &[&example("slow-reader")]);
    let traces = traces(&page);
    let flow = &run["flows"][0];
    let paths = flow["paths"].as_array().expect("paths");
    let of = |name: &str| -> Vec<&Value> {
        traces
            .iter()
            .filter(|trace| trace["name"].as_str().is_some_and(|known| known.ends_with(name)))
            .collect()
    };
    let chunks: u64 = paths.iter().filter_map(|path| path["chunks"].as_u64()).sum();
    let sent: usize = traces
        .iter()
        .filter(|trace| trace["meta"]["kind"] == "sent")
        .map(|trace| numbers(&trace["x"]).len())
        .sum();
    assert_eq!(sent as u64, chunks);
    // As long as it waited, so long are the bars.
    for (name, key) in [("peer's window", "peer_window"), ("cwnd", "cwnd")] {
        let waited = flow["blocked"][key].as_f64().expect("seconds");
        let bars = covered(&traces, name);
        assert!((bars - waited).abs() < 1e-3 * waited + 1e-6, "{name}: {bars} and {waited}");
    }
    assert!(covered(&traces, "peer's window") > 1.0);
    // The area below the rates is what was sent, in bits.
    let bits: f64 = of(": sent")
        .iter()
        .map(|trace| {
            let (x, y) = (numbers(&trace["x"]), numbers(&trace["y"]));
            x.windows(2).zip(&y).map(|(x, y)| y * (x[1] - x[0])).sum::<f64>()
        })
        .sum();
    let bytes: f64 = paths.iter().filter_map(|path| path["delivered"].as_f64()).sum();
    assert!((bits / 8.0 - bytes).abs() < 1e-3 * bytes, "{} and {bytes}", bits / 8.0);
    let last = |trace: &Value| numbers(&trace["y"]).last().copied();
    let acknowledged = last(of("acknowledged")[0]).expect("points");
    let highest = traces.iter().filter(|trace| trace["meta"]["kind"] == "sent");
    let highest = highest.flat_map(|trace| numbers(&trace["y"])).fold(0.0, f64::max);
    assert_eq!(acknowledged, highest);
    assert!(of(": cwnd").iter().all(|trace| numbers(&trace["y"]).iter().all(|cwnd| *cwnd > 0.0)));
}

/// A timeout holds until the next, and the last one as long as the windows of its path.
#[test]
fn a_timeout_holds_until_the_next() {
    let directory = tempfile::tempdir().expect("a directory");
    let (page, _) = report(directory.path(), &[&example("one-path")]);
    let traces = traces(&page);
    let ends = |name: &str| {
        let named =
            traces.iter().find(|trace| trace["name"].as_str().is_some_and(|known| known.ends_with(name)));
        let x = numbers(&named.unwrap_or_else(|| panic!("no {name}"))["x"]);
        [x[0], x[x.len() - 1]]
    };
    let ([first, last], [_, windows]) = (ends(": RTO (far above)"), ends(": cwnd"));
    assert!(first < last && last == windows, "{first} to {last}, {windows}");
}

/// RTOs are hidden at first if all are far above the round trips. Otherwise the round trips would lie on the axis.
#[test]
fn an_rto_far_above_the_round_trips_is_hidden() {
    for (name, far) in [("one-path", true), ("cmt", true), ("headline", false), ("outage", false)] {
        let directory = tempfile::tempdir().expect("a directory");
        let (page, _) = report(directory.path(), &[&example(name)]);
        let traces = traces(&page);
        let of = |suffix: &str| {
            let named =
                move |trace: &&Value| trace["name"].as_str().is_some_and(|name| name.ends_with(suffix));
            traces.iter().filter(named).map(|trace| numbers(&trace["y"])).collect::<Vec<_>>()
        };
        let (hidden, shown) = (of(": RTO (far above)"), of(": RTO"));
        let (highest, rtos) = (of(": RTT, measured"), [&hidden[..], &shown[..]].concat());
        let highest = highest.iter().flatten().fold(0.0_f64, |most, rtt| most.max(*rtt));
        let lowest = rtos.iter().flatten().fold(f64::INFINITY, |least, rto| least.min(*rto));
        assert_eq!((hidden.is_empty(), shown.is_empty()), (!far, far), "{name}");
        assert_eq!(lowest > 2.0 * highest, far, "{name}: {lowest} and {highest}");
        let legend = |trace: &&Value| trace["name"].as_str().is_some_and(|name| name.contains("RTO"));
        let visible = if far { Value::from("legendonly") } else { Value::Null };
        assert!(traces.iter().filter(legend).all(|trace| trace["visible"] == visible), "{name}");
    }
}

/// The inside of a symbol is the reason for which a chunk is sent again, its border the path.
#[test]
fn a_retransmission_has_the_colors_of_its_reason_and_of_its_path() {
    let directory = tempfile::tempdir().expect("a directory");
    let scenario =
        format!("{}/../papers/receive-buffer-blocking/case-study.toml", env!("CARGO_MANIFEST_DIR"));
    let (page, _) = report(directory.path(), &[&scenario]);
    let traces = traces(&page);
    let color = |path: &Value| {
        let window = format!("{}: cwnd", path.as_str().unwrap_or_default());
        let line = traces.iter().find(|trace| trace["name"] == *window);
        line.map(|trace| trace["line"]["color"].clone())
    };
    let mut reasons = std::collections::BTreeMap::new();
    for trace in
        traces.iter().filter(|trace| trace["meta"]["kind"] == "sent" && trace["meta"]["why"] != "new")
    {
        let (meta, marker) = (&trace["meta"], &trace["marker"]);
        assert_eq!(Some(marker["line"]["color"].clone()), color(&meta["path"]), "{meta}");
        let inside = reasons.entry(meta["why"].to_string()).or_insert_with(|| marker["color"].clone());
        assert_eq!(*inside, marker["color"], "{meta}");
    }
    let inside: std::collections::BTreeSet<String> = reasons.values().map(Value::to_string).collect();
    assert!(reasons.len() > 1 && inside.len() == reasons.len(), "{reasons:?}");
}

/// The smoothed round-trip time follows from the measurements, by the formula of RFC 9260 section 6.3.1.
#[test]
fn every_measurement_of_the_round_trip_is_shown() {
    let directory = tempfile::tempdir().expect("a directory");
    let standard = ["--set", "flow.tcp.tcp.variant=standard", "--set", "stop=60 s"];
    let (page, _) = report(directory.path(), &[&[&*example("tcp-beside-sctp")][..], &standard].concat());
    let traces = traces(&page);
    let points = |trace: &Value| -> Vec<(f64, f64)> {
        numbers(&trace["x"]).into_iter().zip(numbers(&trace["y"])).collect()
    };
    let mut flows = 0;
    for (i, trace) in traces.iter().enumerate() {
        if !trace["name"].as_str().is_some_and(|name| name.ends_with(": RTT, measured")) {
            continue;
        }
        flows += 1;
        let (measured, smoothed) = (points(trace), points(&traces[i + 1]));
        let at = |time: f64| smoothed.iter().rev().find(|(at, _)| *at <= time).map_or(0.0, |(_, srtt)| *srtt);
        let mut srtt = measured[0].1;
        for (time, rtt) in &measured {
            srtt = (7.0 * srtt + rtt) / 8.0;
            assert!((srtt - at(*time)).abs() < 1e-4 * srtt, "{time}: {srtt} and {}", at(*time));
        }
        assert!(measured.len() > 20, "{}", measured.len());
    }
    assert_eq!(flows, 2);
    // TCP's numbers are bytes, also of what was dropped.
    let dropped = traces.iter().find(|trace| trace["name"] == "dropped" && trace["meta"]["flow"] == "tcp");
    let dropped = numbers(&dropped.expect("the link loses segments")["y"]);
    assert!(dropped.iter().all(|number| number % 1448.0 == 0.0), "{dropped:?}");
    assert!(page.contains("tcp: segments") && page.contains("\"text\":\"byte\""));
}

#[test]
fn frames_of_radios_stand_on_a_time_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let scenario = format!("{}/../papers/cmt-over-wireless/chains.toml", env!("CARGO_MANIFEST_DIR"));
    let capture = directory.path().join("frames.pcapng").display().to_string();
    let set = ["--set", "stop=2 s", "--set", "measure=[\"1 s\", \"2 s\"]", "--pcap", &capture];
    let (page, _) = report(directory.path(), &[&[scenario.as_str()][..], &set].concat());
    let explained = anabranch(&["explain", &capture]);
    let lines = String::from_utf8_lossy(&explained.stdout).into_owned();
    let traces = traces(&page);
    let frames = |name: &str| -> Vec<[f64; 2]> {
        let named = traces.iter().filter(|trace| trace["meta"]["kind"] == "frames" && trace["name"] == name);
        let bars = named.map(|trace| numbers(&trace["x"]));
        bars.flat_map(|x| x.chunks_exact(3).map(|bar| [bar[0], bar[1]]).collect::<Vec<_>>()).collect()
    };
    // As many as in the capture, and each as long as 802.11b at 2 Mbit/s makes it (its preamble takes 192 us).
    for (name, said) in [("RTS", "[not SCTP: RTS]"), ("CTS", "[not SCTP: CTS]"), ("ACK", "ACK of 802.11]")] {
        let bars = frames(name);
        assert_eq!(bars.len(), lines.matches(said).count(), "{name}");
        assert!(bars.iter().all(|[from, to]| to - from > 192e-6 && to - from < 400e-6), "{name}");
    }
    assert!(frames("data").iter().any(|[from, to]| to - from > 4e-3));
}

/// A station that sends all the time takes the same share of a short run and of one with far more frames than a page
/// keeps.
#[test]
fn frames_of_a_long_run_take_their_share_of_the_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let scenario = format!("{}/../papers/cmt-over-wireless/saturated.toml", env!("CARGO_MANIFEST_DIR"));
    let shares = |seconds: f64| {
        let stop = format!("stop={seconds} s");
        let (page, _) = report(
            directory.path(),
            &[&scenario, "--set", &stop, "--set", "measure=[\"0 s\", \"1 s\"]", "--force"],
        );
        let traces = traces(&page);
        ["RTS", "CTS", "data", "ACK"].map(|name| {
            let frames =
                traces.iter().find(|trace| trace["meta"]["kind"] == "frames" && trace["name"] == name);
            let times = numbers(&frames.expect("frames of this kind")["x"]);
            times.chunks_exact(3).map(|bar| bar[1] - bar[0]).sum::<f64>() / seconds
        })
    };
    let (short, long) = (shares(10.0), shares(100.0));
    for (short, long) in short.into_iter().zip(long) {
        assert!((long / short - 1.0).abs() < 0.01, "{short} and {long}");
    }
}

#[test]
fn a_browser_draws_every_trace() {
    let Some(browser) = browser() else {
        return skip("a_browser_draws_every_trace", "there is no Chromium");
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (page, _) = report(directory.path(), &[&example("outage"), "--set", "stop=14 s"]);
    let root = root(browser, directory.path(), &page, &[]);
    assert!(!root.contains("data-error"), "{root}");
    assert!(root.contains(&format!("data-traces=\"{}\"", traces(&page).len())), "{root}");
}

#[test]
fn keys_zoom_and_move_the_cursor() {
    let Some(browser) = browser() else {
        return skip("keys_zoom_and_move_the_cursor", "there is no Chromium");
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (page, _) = report(directory.path(), &[&example("outage"), "--set", "stop=14 s"]);
    let steps = "
        const range = () => charts.layout.xaxis.range.map(Number);
        const expect = (what, holds) => { if (!holds) throw new Error(what + ' ' + range() + ' ' + state.cursor); };
        expect('the whole run', range()[0] === 0 && Math.abs(range()[1] - 14) < 1);
        const whole = range()[1];
        await press('+'); expect('zoomed', Math.abs(range()[1] - range()[0] - whole / 2) < 1e-6);
        await press('ArrowRight'); expect('moved', Math.abs(range()[0] - whole * 3 / 8) < 1e-6);
        await press('ArrowLeft'); expect('moved back', Math.abs(range()[0] - whole / 4) < 1e-6);
        await press('Enter'); expect('cursor', Math.abs(Number(state.cursor) - whole / 2) < 1e-6);
        expect('a line', charts.layout.shapes.length === 1);
        expect('packets', document.getElementById('packets').rows.length > 2);
        const before = Number(state.cursor);
        await press('n'); expect('next', Number(state.cursor) > before);
        await press('n'); await press('p'); await press('p'); await press('p'); expect('previous', Number(state.cursor) < before);
        expect('marked', document.querySelectorAll('#packets [aria-current]').length === 1);
        await press('-'); await press('0'); expect('the whole run again', range()[1] === whole);
        expect('every trace is drawn', charts.calcdata.length === charts.data.length);
        charts._fullData.filter((trace) => trace.visible !== 'legendonly').forEach((trace) => { expect('points of ' + trace.name, trace.visible === true && trace._length === trace.x.length); });
        state.passed = '1';";
    let root = root(browser, directory.path(), &with_script(&page, steps), &[]);
    assert!(root.contains("data-passed=\"1\"") && !root.contains("data-error"), "{root}");
}

/// The peer's window is far above the others, so it is hidden at first, and these fill their chart. A range that the
/// reader has chosen stays.
#[test]
fn the_values_fit_the_traces_that_are_shown() {
    let Some(browser) = browser() else {
        return skip("the_values_fit_the_traces_that_are_shown", "there is no Chromium");
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (page, _) = report(directory.path(), &[&example("outage"), "--set", "stop=14 s"]);
    let steps = "
        const peer = charts.data.findIndex((trace) => trace.name === \"peer's window (far above)\");
        const axis = charts.data[peer].yaxis.replace('y', 'yaxis');
        const top = () => Number(charts.layout[axis].range[1]);
        const expect = (what, holds) => { if (!holds) throw new Error(what + ' ' + top()); };
        const show = async (is) => { await Plotly.restyle(charts, { visible: is }, [peer]); await pause(100); };
        const closer = top();
        await show(true); expect('the peer\\'s window too', top() > 4 * closer);
        const whole = top();
        await show('legendonly'); expect('closer', top() === closer);
        const others = charts.data.filter((trace) => trace.yaxis === charts.data[peer].yaxis && trace.visible !== 'legendonly');
        expect('not too close', others.every((trace) => trace.y.every((value) => value <= top())));
        await show(true); expect('as before', top() === whole);
        await Plotly.relayout(charts, { [axis + '.range']: [0, 1234] });
        await show('legendonly'); expect('the range that was chosen', top() === 1234);
        state.passed = '1';";
    let root = root(browser, directory.path(), &with_script(&page, steps), &[]);
    assert!(root.contains("data-passed=\"1\"") && !root.contains("data-error"), "{root}");
}

/// By WCAG 2.2, success criterion 1.4.3: 4.5 to 1, and 3 to 1 for large text. Texts of charts are filled, others have a
/// color.
const CONTRAST: &str = "
    await pause(200);
    const channel = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
    const parts = (color) => (color.match(/[\\d.]+/g) || []).map(Number);
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const color = parts(getComputedStyle(at).backgroundColor);
            if (color.length === 3 || color[3] > 0.5) return color;
        }
        return [255, 255, 255];
    };
    let [checked, worst] = [0, 99];
    for (const element of document.querySelectorAll('body *')) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        const style = getComputedStyle(element);
        if (!own || ['SCRIPT', 'STYLE'].includes(element.tagName.toUpperCase()) || element.getClientRects().length === 0) continue;
        const color = parts(element instanceof SVGElement ? style.fill : style.color);
        const [a, b] = [light(color), light(behind(element))].sort((x, y) => y - x);
        const size = parseFloat(style.fontSize);
        const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
        const ratio = (a + 0.05) / (b + 0.05) * (large ? 1.5 : 1);
        if (ratio < worst) { worst = ratio; state.where = element.tagName + ' ' + element.textContent.slice(0, 40); }
        checked += 1;
    }
    state.checked = String(checked);
    state.worst = worst.toFixed(2);";

#[test]
fn texts_stand_out_in_light_and_dark() {
    let Some(browser) = browser() else {
        return skip("texts_stand_out_in_light_and_dark", "there is no Chromium");
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (page, _) = report(directory.path(), &[&example("one-path")]);
    for flags in [&["--blink-settings=preferredColorScheme=1"], &["--blink-settings=preferredColorScheme=0"]]
    {
        let root = root(browser, directory.path(), &with_script(&page, CONTRAST), flags);
        let value = |name: &str| -> f64 {
            let rest = root.split(&format!("data-{name}=\"")).nth(1).unwrap_or_else(|| panic!("{root}"));
            rest.split('"').next().and_then(|text| text.parse().ok()).expect("a number")
        };
        assert!(value("checked") > 60.0, "{root}");
        assert!(value("worst") >= 4.5, "{flags:?} {root}");
    }
}

/// Paper is narrower than a window; afterwards the charts have their width again.
#[test]
fn charts_fit_paper() {
    let Some(browser) = browser() else { return skip("charts_fit_paper", "there is no Chromium") };
    let directory = tempfile::tempdir().expect("a directory");
    let (page, _) = report(directory.path(), &[&example("one-path")]);
    let steps = "
        // Of the window, perhaps less a scroll bar.
        const widths = [charts._fullLayout.width];
        for (const event of ['beforeprint', 'afterprint']) {
            window.dispatchEvent(new Event(event));
            await pause(300);
            widths.push(charts._fullLayout.width);
        }
        state.fits = String(widths[1] === 1000 && widths[0] > 1100 && Math.abs(widths[2] - widths[0]) < 30);";
    let root = root(browser, directory.path(), &with_script(&page, steps), &["--window-size=1280,1000"]);
    assert!(root.contains("data-fits=\"true\""), "{root}");
}

#[test]
fn hostile_names_cannot_run_script() {
    let directory = tempfile::tempdir().expect("a directory");
    // Links and flows have plain names; the title, the description and the file have not.
    let title = "<img src=x onerror=document.documentElement.dataset.hacked=1>";
    let description = "</script><script>document.documentElement.dataset.hacked=1</script>";
    let text = format!("title = \"{title}\"\ndescription = \"{description}\"\n");
    let text = text + &std::fs::read_to_string(example("one-path")).expect("the example is there");
    let scenario = directory.path().join("<img src=x onerror=alert(1)>.toml").display().to_string();
    std::fs::write(&scenario, text).expect("it can be written");
    let (page, _) = report(directory.path(), &[&scenario]);
    assert!(!page.contains("<img") && !page.contains("<script>document.documentElement.dataset.hacked"));
    assert!(page.contains("default-src 'none'"), "the page must not load anything");
    let Some(browser) = browser() else {
        return skip("hostile_names_cannot_run_script", "there is no Chromium");
    };
    let steps = "await press('Enter'); await press('n'); await pause(200); state.passed = '1';";
    let root = root(browser, directory.path(), &with_script(&page, steps), &[]);
    assert!(root.contains("data-passed=\"1\"") && !root.contains("hacked"), "{root}");
}

#[test]
fn every_chart_is_written_as_pictures_and_data() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = |name: &str| directory.path().join(name);
    let charts = place("charts").display().to_string();
    let output = anabranch(&["run", &example("one-path"), "--figures", &charts]);
    assert!(output.status.success(), "{}", stderr(&output));
    let names: Vec<String> = std::fs::read_dir(place("charts"))
        .expect("the directory is there")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(names.len() >= 6 * 5 && names.len().is_multiple_of(5), "{names:?}");
    let data = names.iter().find(|name| name.ends_with("windows.csv")).expect("the windows' data");
    let table = std::fs::read_to_string(place("charts").join(data)).expect("it can be read");
    assert!(table.starts_with("number,series,time,value,unit\n") && table.contains("cwnd,"), "{table}");
    let document = std::fs::read_to_string(place("charts").join(data.replace(".csv", ".tex"))).expect("text");
    assert!(document.contains(data.as_str()) && document.contains("cwnd}"), "{document}");
    // What is there is not overwritten.
    let again = anabranch(&["run", &example("one-path"), "--figures", &charts]);
    assert_eq!(again.status.code(), Some(2), "{}", stderr(&again));
    let chart = place("exchange.pdf").display().to_string();
    let output = anabranch(&["run", &example("one-path"), "--msc", &chart, "--between", "0s,0.1s"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(std::fs::read(place("exchange.pdf")).expect("it was written").starts_with(b"%PDF"));
    let other = anabranch(&["run", &example("one-path"), "--msc", "exchange.gif"]);
    assert_eq!(other.status.code(), Some(2), "{}", stderr(&other));
}

#[test]
fn exported_documents_compile() {
    let found = |file: &str| {
        std::process::Command::new("kpsewhich").arg(file).output().is_ok_and(|output| output.status.success())
    };
    if !found("standalone.cls") || !found("pgfplots.sty") {
        return skip("exported_documents_compile", "there is no TeX with standalone and pgfplots");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let charts = directory.path().join("charts");
    let output = anabranch(&["run", &example("slow-reader"), "--figures", &charts.display().to_string()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let entries = std::fs::read_dir(&charts).expect("the directory is there");
    let files = entries.map(|entry| entry.expect("an entry").path());
    let documents: Vec<_> = files.filter(|file| file.extension().is_some_and(|end| end == "tex")).collect();
    assert!(documents.len() >= 6, "{documents:?}");
    for document in documents {
        let made = std::process::Command::new("timeout")
            .args(["120", "pdflatex", "-halt-on-error", "-interaction=nonstopmode"])
            .arg(&document)
            .current_dir(&charts)
            .output()
            .expect("timeout runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
    }
}

/// Red, green and blue of a picture, averaged over squares of 40 pixels, with the number of squares in a row.
fn squares(file: &Path) -> (usize, Vec<[f64; 3]>) {
    const SIDE: usize = 40;
    let file = std::io::BufReader::new(std::fs::File::open(file).expect("the picture is there"));
    let mut reader = png::Decoder::new(file).read_info().expect("it is a PNG");
    let mut bytes = vec![0; reader.output_buffer_size()];
    let frame = reader.next_frame(&mut bytes).expect("it can be decoded");
    let (width, depth) = (frame.width as usize, frame.color_type.samples());
    let columns = width.div_ceil(SIDE);
    let mut sums = vec![[0.0; 4]; columns * (frame.height as usize).div_ceil(SIDE)];
    for (i, pixel) in bytes.chunks_exact(depth).enumerate() {
        let sum = &mut sums[i / width / SIDE * columns + i % width / SIDE];
        (0..3).for_each(|color| sum[color] += f64::from(pixel[color]));
        sum[3] += 1.0;
    }
    (columns, sums.into_iter().map(|[red, green, blue, n]| [red / n, green / n, blue / n]).collect())
}

/// The share of squares in which a color of two pictures differs by more than 10 of 255; 1 if their sizes differ.
fn difference(one: &Path, other: &Path) -> f64 {
    let (one, other) = (squares(one), squares(other));
    if one.0 != other.0 || one.1.len() != other.1.len() {
        return 1.0;
    }
    let unlike = |(a, b): &(&[f64; 3], &[f64; 3])| a.iter().zip(*b).any(|(a, b)| (a - b).abs() > 10.0);
    one.1.iter().zip(&other.1).filter(unlike).count() as f64 / one.1.len() as f64
}

/// `docs/images/` has the pages as a browser shows them; ANABRANCH_BLESS=1 draws them anew. Fonts and browsers differ a
/// little, so up to a twentieth of the squares may differ.
#[test]
fn the_pictures_of_the_guide_are_up_to_date() {
    let Some(browser) = browser() else {
        return skip("the_pictures_of_the_guide_are_up_to_date", "there is no Chromium");
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let directory = tempfile::tempdir().expect("a directory");
    let place = |name: &str| directory.path().join(name).display().to_string();
    let pages: [(&str, u32, &[&str]); 3] = [
        ("report-run", 1500, &["run", "scenarios/outage.toml", "--set", "stop=14 s"]),
        ("report-other", 1500, &["run", "scenarios/slow-reader.toml"]),
        (
            "report-paper",
            2400,
            &["reproduce", "papers/receive-buffer-blocking", "--claim", "table1/10000000"],
        ),
    ];
    for (name, height, arguments) in pages {
        let page = place(&format!("{name}.html"));
        let output = support::command(&[arguments, &["--report", &page]].concat())
            .current_dir(&root)
            .output()
            .expect("the binary runs");
        assert!(output.status.success(), "{}", stderr(&output));
        let picture = format!("--screenshot={}", place(&format!("{name}.png")));
        let size = format!("--window-size=1280,{height}");
        let flags = [&*picture, &*size, "--hide-scrollbars"];
        opened(browser, directory.path(), &format!("file://{page}"), &flags);
    }
    let shot = |name: &str| directory.path().join(format!("{name}.png"));
    assert!(difference(&shot("report-run"), &shot("report-other")) > 0.05, "another run must look different");
    for name in ["report-run", "report-paper"] {
        let kept = root.join(format!("docs/images/{name}.png"));
        if std::env::var("ANABRANCH_BLESS").is_ok() {
            std::fs::copy(shot(name), &kept).expect("the picture can be written");
        }
        let share = difference(&shot(name), &kept);
        assert!(
            share < 0.05,
            "{name}: {:.1} % of the picture differ: ANABRANCH_BLESS=1 draws it anew",
            share * 100.0
        );
    }
}
