//! Figures of single runs: sequence numbers, and a quantity below, from the records of the runs.

use anabranch_lab::claims::record::{EventKind, Quantity, Recording};
use anabranch_lab::claims::{Below, Figure, FigureRun, Noted, Paper};
use anabranch_lab::report::{Panel, PanelSeries, PaperFigure};
use anabranch_proto::policy::Why;
use anabranch_proto::{Time, Tsn};
use plotters::prelude::*;

use super::plane::{Area, COLORS, Chart, Drawn, FAINT, FONT, INK, TITLE, chart, hex, legend, mesh};
use super::refusals::refuse_plan;
use crate::WRONG_INPUT;
use crate::output::{fail, refuse};

/// Runs what the figure needs and returns the figure, or the exit status of a failure.
pub(super) fn drawn(paper: &Paper, figure: &Figure) -> Result<PaperFigure, u8> {
    let runs = figure.runs(paper).map_err(|error| refuse_plan(&error))?;
    let columns = runs.iter().map(|run| Column::of(paper, figure, run)).collect::<Option<Vec<_>>>();
    let Some(columns) = columns else {
        refuse(format!("{}: in a run the mark from which times are counted never happens", figure.name));
        return Err(WRONG_INPUT);
    };
    let svg = draw(figure, &columns).map_err(|error| fail(format!("cannot draw: {error}")))?;
    let panels = panels(figure, &columns);
    Ok(PaperFigure { title: figure.title.clone(), name: figure.name.clone(), svg, panels })
}

type Points = Vec<(f64, f64)>;

const SIZE: (u32, u32) = (1180, 980);
const WHOLE: u32 = 260;
const DROP: RGBColor = RGBColor(200, 30, 30);
const AGAIN: RGBColor = RGBColor(220, 120, 0);
/// The data of one run. Times are seconds after the figure's mark; chunks (TCP: segments) are numbered from 0.
struct Column {
    heading: String,
    /// The label of the time axis.
    times: String,
    ended: f64,
    acked: Points,
    sent: Points,
    again: Points,
    dropped: Points,
    below: Points,
    /// Drawn together with the congestion window, in the same unit.
    ssthresh: Points,
    marks: Vec<(String, f64)>,
}

impl Column {
    /// `None` if the run never reaches the mark from which times are counted.
    fn of(paper: &Paper, figure: &Figure, run: &FigureRun) -> Option<Column> {
        let since = run.moments[figure.since]?.at;
        let after = |at: Time| (at.as_nanos() as f64 - since.as_nanos() as f64) / 1e9;
        let flow = run.recording.flow(figure.flow.as_deref())?;
        let numbers = Numbers::of(run, flow, figure.modulo)?;
        let marks = figure
            .marks
            .iter()
            .filter_map(|mark| Some((paper.marks[*mark].name.clone(), after(run.moments[*mark]?.at))));
        let mut column = Column {
            heading: heading(figure, run, flow),
            times: format!("seconds after {}", paper.marks[figure.since].name),
            ended: 0.0,
            acked: Points::new(),
            sent: Points::new(),
            again: Points::new(),
            dropped: Points::new(),
            below: Points::new(),
            ssthresh: Points::new(),
            marks: marks.collect(),
        };
        match &figure.below {
            Below::Noted(noted) => column.note(noted, &run.recording, flow, after),
            Below::Throughput(interval) => {
                column.below = throughput(figure, &run.recording, interval.as_secs_f64(), after);
            }
        }
        for entry in &run.recording.entries {
            let at = after(entry.at);
            match &entry.what {
                EventKind::Sent { flow: of, tsn, why, .. } if *of == flow => match why {
                    Why::New => column.sent.push((at, numbers.drawn(*tsn))),
                    _ => column.again.push((at, numbers.drawn(*tsn))),
                },
                EventKind::Acked { flow: of, cumulative } if *of == flow => {
                    column.acked.push((at, numbers.acknowledged(*cumulative)));
                    column.ended = at;
                }
                EventKind::Dropped { link, flow: of, tsns }
                    if *of == flow && run.recording.is_link(*link, &figure.link) =>
                {
                    column.dropped.extend(tsns.iter().map(|tsn| (at, numbers.drawn(*tsn))));
                }
                _ => {}
            }
        }
        Some(column)
    }

    /// Takes the values of a quantity of a flow, and of ssthresh beside a window.
    fn note(&mut self, noted: &Noted, recording: &Recording, flow: usize, after: impl Fn(Time) -> f64) {
        let path = noted.path.as_ref();
        let path = path.and_then(|path| recording.paths.iter().position(|name| name == path));
        for entry in &recording.entries {
            let at = after(entry.at);
            if let Some(value) = recording.value(entry, noted.quantity, flow, path) {
                self.below.push((at, value / scale(noted.quantity)));
            }
            if noted.quantity == Quantity::Cwnd
                && let Some(value) = recording.value(entry, Quantity::Ssthresh, flow, path)
            {
                self.ssthresh.push((at, value / 1e3));
            }
        }
    }
}

/// The value of a run, and how long its transfer took, if it has an end.
fn heading(figure: &Figure, run: &FigureRun, flow: usize) -> String {
    let value = run.value.trim_matches(['\'', '"']);
    let value = if figure.over.key == "seed" { format!("seed {value}") } else { value.to_owned() };
    let flow = &run.result.flows[flow];
    match (flow.completion, flow.missing) {
        (Some(seconds), _) => format!("{value}: {seconds:.2} s"),
        (None, Some(_)) => format!("{value}: unfinished"),
        (None, None) => value,
    }
}

/// The throughput of the figure's link within the times of the chart, in kbit/s: the mean of each interval, at its
/// beginning.
fn throughput(figure: &Figure, recording: &Recording, interval: f64, after: impl Fn(Time) -> f64) -> Points {
    let (start, end) = detail_times(figure);
    let mut bits = vec![0.0; ((end - start) / interval).ceil() as usize];
    for entry in &recording.entries {
        let place = (after(entry.at) - start) / interval;
        if let EventKind::Arrived { link, size } = entry.what
            && recording.is_link(link, &figure.link)
            && place >= 0.0
            && let Some(bits) = bits.get_mut(place as usize)
        {
            *bits += f64::from(size) * 8.0;
        }
    }
    let begins = |n: usize| start + interval * n as f64;
    bits.into_iter().enumerate().map(|(n, bits)| (begins(n), bits / interval / 1e3)).collect()
}

/// Converts the numbers of a flow to chunk numbers, from 0. TCP numbers bytes: the first two segments tell the size
/// of a segment.
struct Numbers {
    first: Tsn,
    unit: f64,
    of_tcp: bool,
    modulo: Option<u32>,
}

impl Numbers {
    fn of(run: &FigureRun, flow: usize, modulo: Option<u32>) -> Option<Numbers> {
        let mut new = new_numbers(&run.recording, flow);
        let first = new.next()?;
        let of_tcp = run.result.flows[flow].protocol.counts_bytes();
        let second = new.next().filter(|_| of_tcp);
        let unit = second.map_or(1.0, |second| f64::from(second.distance_from(first)));
        Some(Numbers { first, unit, of_tcp, modulo })
    }

    fn drawn(&self, number: Tsn) -> f64 {
        let chunk = (f64::from(number.distance_from(self.first)) / self.unit).floor();
        self.modulo.map_or(chunk, |modulo| chunk % f64::from(modulo))
    }

    /// The number of chunks acknowledged. SCTP names the last acknowledged TSN, TCP the next byte that it expects.
    fn acknowledged(&self, number: Tsn) -> f64 {
        let distance = f64::from(number.distance_from(self.first)) / self.unit;
        if self.of_tcp { distance } else { distance + 1.0 }
    }
}

fn new_numbers(recording: &Recording, flow: usize) -> impl Iterator<Item = Tsn> + '_ {
    recording.entries.iter().filter_map(move |entry| match entry.what {
        EventKind::Sent { tsn, flow: of, why: Why::New, .. } if of == flow => Some(tsn),
        _ => None,
    })
}

fn draw(figure: &Figure, columns: &[Column]) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (title, below) = root.split_vertically(TITLE);
        title.draw(&Text::new(figure.title.clone(), (24, 16), (FONT, 20).into_font().color(&INK)))?;
        let (whole, details) = below.split_vertically(WHOLE);
        draw_whole(&whole, columns)?;
        let (x, y) = (detail_times(figure), detail_chunks(figure, columns));
        let range = below_range(figure, columns);
        let panels = details.split_evenly((2, columns.len()));
        for (i, column) in columns.iter().enumerate() {
            draw_sequence(&panels[i], figure, column, COLORS[i % COLORS.len()], [x, y])?;
            draw_below(&panels[columns.len() + i], figure, column, COLORS[i % COLORS.len()], range)?;
        }
        root.present()?;
    }
    Ok(svg + "\n")
}

/// The whole of every run: the number of chunks acknowledged over time.
fn draw_whole(area: &Area<'_>, columns: &[Column]) -> Drawn {
    let [(start, end), (_, most)] = whole_range(columns);
    let mut chart = chart(area, "the whole transfer", [(start, end), (0.0, most)])?;
    mesh(&mut chart, columns.first().map_or("seconds", |column| &column.times), "chunks acknowledged")?;
    for (i, column) in columns.iter().enumerate() {
        let color = COLORS[i % COLORS.len()];
        let acked = thin(&stepped(&column.acked), [end / 2000.0, most / 400.0]);
        let line = LineSeries::new(acked, color.stroke_width(2));
        chart
            .draw_series(line)?
            .label(column.heading.clone())
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    legend(&mut chart, SeriesLabelPosition::LowerRight)
}

/// When each chunk is sent, retransmitted, dropped and acknowledged.
fn draw_sequence(
    area: &Area<'_>,
    figure: &Figure,
    column: &Column,
    color: RGBColor,
    range: [(f64, f64); 2],
) -> Drawn {
    let mut chart = chart(area, &column.heading, range)?;
    mesh(&mut chart, "", "chunk")?;
    draw_marks(&mut chart, column, range)?;
    let [x, y] = range;
    let step = [(x.1 - x.0) / 1000.0, (y.1 - y.0) / 600.0];
    let inside = |points: &Points| inside(points, range);
    let line = |color: RGBColor| {
        move |(x, y): (i32, i32)| PathElement::new(vec![(x, y), (x + 18, y)], color.stroke_width(2))
    };
    match figure.modulo {
        Some(_) => {
            let sent = inside(&column.sent).into_iter().map(|at| Circle::new(at, 1, color.filled()));
            chart.draw_series(sent)?.label("sent").legend(line(color));
        }
        None => {
            let acked = LineSeries::new(thin(&acknowledged(column, range), step), FAINT.stroke_width(1));
            chart.draw_series(acked)?.label("acknowledged").legend(line(FAINT));
            let sent = LineSeries::new(thin(&inside(&column.sent), step), color.stroke_width(2));
            chart.draw_series(sent)?.label("sent").legend(line(color));
        }
    }
    chart
        .draw_series(inside(&column.dropped).into_iter().map(|at| Cross::new(at, 2, DROP)))?
        .label(format!("dropped by {}", figure.link.split(' ').next().unwrap_or_default()))
        .legend(|(x, y)| Cross::new((x + 9, y), 4, DROP));
    chart
        .draw_series(inside(&column.again).into_iter().map(|at| Circle::new(at, 2, AGAIN.filled())))?
        .label("sent again")
        .legend(|(x, y)| Circle::new((x + 9, y), 3, AGAIN.filled()));
    legend(&mut chart, SeriesLabelPosition::LowerRight)
}

fn draw_below(
    area: &Area<'_>,
    figure: &Figure,
    column: &Column,
    color: RGBColor,
    range: [(f64, f64); 2],
) -> Drawn {
    let [x, (_, most)] = range;
    let mut chart = chart(area, "", range)?;
    mesh(&mut chart, &column.times, &axis(figure))?;
    draw_marks(&mut chart, column, range)?;
    if let Some(level) = figure.level {
        let level = level as f64 / 1e3;
        chart.draw_series([PathElement::new(vec![(x.0, level), (x.1, level)], DROP.stroke_width(1))])?;
    }
    let step = [(x.1 - x.0) / 1000.0, most / 500.0];
    let quantity = LineSeries::new(thin(&held(&column.below, x), step), color.stroke_width(2));
    chart.draw_series(quantity)?;
    if !column.ssthresh.is_empty() {
        // Before the first loss ssthresh can be far above every window.
        let below: Points =
            held(&column.ssthresh, x).into_iter().map(|(t, value)| (t, value.min(most))).collect();
        let line = LineSeries::new(thin(&below, step), AGAIN.stroke_width(1));
        chart
            .draw_series(line)?
            .label("ssthresh")
            .legend(|(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], AGAIN.stroke_width(1)));
        // The names of marks stand on top.
        let lower = !column.marks.is_empty();
        let place = if lower { SeriesLabelPosition::LowerRight } else { SeriesLabelPosition::UpperRight };
        legend(&mut chart, place)?;
    }
    Ok(())
}

/// What the picture shows, as data.
fn panels(figure: &Figure, columns: &[Column]) -> Vec<Panel> {
    let series = |name: &str, color: RGBColor, symbols, points: &Points| PanelSeries {
        name: name.to_owned(),
        color: hex(color),
        symbols,
        points: points.iter().map(|(at, value)| (*at, *value, None)).collect(),
    };
    let [x, y] = whole_range(columns);
    let colored = || columns.iter().zip(COLORS.into_iter().cycle());
    let whole = colored().map(|(column, color)| {
        series(&column.heading, color, false, &thin(&stepped(&column.acked), [x.1 / 2000.0, y.1 / 400.0]))
    });
    let time = columns.first().map_or(String::new(), |column| column.times.clone());
    let mut panels = vec![Panel {
        title: "the whole transfer".to_owned(),
        axes: [time, "chunks acknowledged".to_owned()],
        ranges: [x, y],
        series: whole.collect(),
        marks: Vec::new(),
    }];
    let ranges = [detail_times(figure), detail_chunks(figure, columns)];
    panels.extend(colored().map(|(column, color)| Panel {
        title: column.heading.clone(),
        axes: [column.times.clone(), "chunk".to_owned()],
        ranges,
        series: vec![
            series("acknowledged", FAINT, false, &acknowledged(column, ranges)),
            series("sent", color, true, &inside(&column.sent, ranges)),
            series("dropped", DROP, true, &inside(&column.dropped, ranges)),
            series("sent again", AGAIN, true, &inside(&column.again, ranges)),
        ],
        marks: column.marks.clone(),
    }));
    panels.extend(colored().map(|(column, color)| {
        let range = below_range(figure, columns);
        let mut lines = vec![series(&axis(figure), color, false, &held(&column.below, range[0]))];
        if !column.ssthresh.is_empty() {
            lines.push(series("ssthresh", AGAIN, false, &held(&column.ssthresh, range[0])));
        }
        Panel {
            title: column.heading.clone(),
            axes: [column.times.clone(), axis(figure)],
            ranges: range,
            series: lines,
            marks: column.marks.clone(),
        }
    }));
    panels
}

/// The points within these ranges.
fn inside(points: &Points, [x, y]: [(f64, f64); 2]) -> Points {
    points.iter().copied().filter(|(t, c)| *t >= x.0 && *t <= x.1 && *c >= y.0 && *c <= y.1).collect()
}

/// The number of acknowledged chunks within these ranges, up to the right edge.
fn acknowledged(column: &Column, range: [(f64, f64); 2]) -> Points {
    let mut acked = inside(&column.acked, range);
    acked.extend(acked.last().map(|(_, chunk)| (range[0].1, *chunk)));
    stepped(&acked)
}

/// The ends of the axes of the chart of the whole transfer.
fn whole_range(columns: &[Column]) -> [(f64, f64); 2] {
    let end = columns.iter().map(|column| column.ended).fold(0.0, f64::max);
    let start =
        columns.iter().filter_map(|column| column.acked.first()).map(|first| first.0).fold(0.0, f64::min);
    let most = columns.iter().filter_map(|column| column.acked.last()).map(|last| last.1).fold(1.0, f64::max);
    [(start, end), (0.0, most)]
}

/// The ends of the axes of the lower charts. All have the same, so that they can be compared.
fn below_range(figure: &Figure, columns: &[Column]) -> [(f64, f64); 2] {
    let x = detail_times(figure);
    let shown = columns.iter().flat_map(|column| &column.below).filter(|(at, _)| *at <= x.1);
    [x, (0.0, shown.map(|at| at.1).fold(0.0, f64::max) * 1.05)]
}

/// The points within these times. The value at the left edge is the last one recorded before it; the last value is
/// extended to the right edge.
fn held(points: &Points, x: (f64, f64)) -> Points {
    let shown: Points = points.iter().copied().filter(|(t, _)| *t <= x.1).collect();
    let before = shown.iter().rev().find(|(t, _)| *t < x.0).map(|(_, value)| (x.0, *value));
    let last = shown.last().map(|(_, value)| (x.1, *value));
    let within = shown.iter().copied().filter(|(t, _)| *t >= x.0);
    stepped(&before.into_iter().chain(within).chain(last).collect())
}

/// The corners of a line whose values hold until the next.
fn stepped(points: &Points) -> Points {
    let steps = points.windows(2).flat_map(|pair| [(pair[1].0, pair[0].1), pair[1]]);
    points.first().copied().into_iter().chain(steps).collect()
}

/// Bytes are drawn in kilobytes.
fn scale(quantity: Quantity) -> f64 {
    if quantity == Quantity::CwndSegments { 1.0 } else { 1e3 }
}

/// The label of the axis of the lower chart.
fn axis(figure: &Figure) -> String {
    match &figure.below {
        Below::Noted(noted) => unit_of(noted.quantity).to_owned(),
        Below::Throughput(_) => format!("{}, all flows, kbit/s", figure.link),
    }
}

fn unit_of(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::PeerWindow => "peer's window, kB",
        Quantity::Cwnd => "cwnd, kB",
        Quantity::CwndSegments => "cwnd, segments",
        Quantity::Ssthresh => "ssthresh, kB",
        Quantity::Flight => "in flight, kB",
    }
}

/// The marks as vertical lines with their names on top.
fn draw_marks(chart: &mut Chart<'_, '_>, column: &Column, [x, y]: [(f64, f64); 2]) -> Drawn {
    let shown = column.marks.iter().filter(|(_, at)| *at >= x.0 && *at <= x.1);
    // Names that would overlap are put below each other.
    let mut last = (f64::NEG_INFINITY, 0);
    for (name, at) in shown {
        let row = if at - last.0 < (x.1 - x.0) / 30.0 { last.1 + 1 } else { 0 };
        last = (*at, row);
        let top = y.1 - (y.1 - y.0) * 0.06 * f64::from(row);
        chart
            .draw_series([PathElement::new(vec![(*at, y.0), (*at, y.1)], FAINT.mix(0.6).stroke_width(1))])?;
        let style = (FONT, 15).into_font().color(&INK);
        chart.draw_series([Text::new(name.clone(), (at + (x.1 - x.0) / 200.0, top), style)])?;
    }
    Ok(())
}

fn detail_times(figure: &Figure) -> (f64, f64) {
    (figure.from.as_secs_f64() - figure.before.as_secs_f64(), figure.after.as_secs_f64())
}

/// The range of chunks that any column sends within the times of the details.
fn detail_chunks(figure: &Figure, columns: &[Column]) -> (f64, f64) {
    let (start, end) = detail_times(figure);
    let sent = columns.iter().flat_map(|column| column.sent.iter().chain(&column.dropped));
    let chunks: Vec<f64> =
        sent.filter(|(at, _)| *at >= start && *at <= end).map(|(_, chunk)| *chunk).collect();
    let least = chunks.iter().copied().fold(f64::INFINITY, f64::min);
    let most = chunks.iter().copied().fold(0.0, f64::max);
    let margin = (most - least) * 0.08;
    ((least - margin).max(0.0), most + 2.0 * margin)
}

/// The points, without those too close to the one before to be distinguished. The last point stays.
fn thin(points: &Points, step: [f64; 2]) -> Points {
    let mut kept = Points::new();
    for (i, point) in points.iter().enumerate() {
        let near =
            |last: &(f64, f64)| (point.0 - last.0).abs() < step[0] && (point.1 - last.1).abs() < step[1];
        if i + 1 == points.len() || !kept.last().is_some_and(near) {
            kept.push(*point);
        }
    }
    kept
}
