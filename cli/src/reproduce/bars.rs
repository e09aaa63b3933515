//! Figures of a measure in many settings: groups of bars with the 95 % intervals of their means.

use anabranch_lab::claims::{Bars, Outcome, Paper};
use anabranch_lab::report::{Panel, PanelSeries, PaperFigure};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::means::Means;
use super::plane::{Area, Drawn, FONT, INK, TITLE, chart, decimals, hex};
use crate::output::fail;

const SIZE: (u32, u32) = (1180, 560);
const LEGEND: u32 = 40;
/// The share of a group that its bars take.
const FULL: f64 = 0.84;
/// One for each bar of a group: the palette of Okabe and Ito without yellow.
const COLORS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(90, 90, 90),
];

/// The figure of runs that are made for it, unless they are finished; or the exit status of what went wrong.
pub(super) fn run(paper: &Paper, bars: &Bars, means: Means<'_>) -> Result<PaperFigure, u8> {
    let outcomes = means.outcomes(&paper.of_bars(bars), |_| true)?;
    let panel = panel(bars, &outcomes);
    let svg = draw(bars, &panel).map_err(|error| fail(format!("cannot draw: {error}")))?;
    Ok(PaperFigure { title: bars.title.clone(), name: bars.name.clone(), svg, panels: vec![panel] })
}

/// The means with half of their intervals, in thousands of bits a second or of bytes. Group n is at n, its bars beside
/// each other around that.
fn panel(bars: &Bars, outcomes: &[Outcome]) -> Panel {
    let (unit, scale) = match bars.unit.symbol() {
        "bit/s" => ("kbit/s", 1e3),
        "B" => ("kB", 1e3),
        other => (other, 1.0),
    };
    let several = bars.series.len();
    let series = bars.series.iter().enumerate().map(|(n, name)| {
        let values = outcomes.iter().skip(n).step_by(several).enumerate().filter_map(|(group, outcome)| {
            let half = outcome.samples.first().and_then(|sample| sample.ci95).map(|half| half / scale);
            Some((place(group, n, several), outcome.values.first().copied().flatten()? / scale, half))
        });
        let color = hex(COLORS[n % COLORS.len()]);
        PanelSeries { name: name.clone(), color, symbols: true, points: values.collect() }
    });
    let series: Vec<PanelSeries> = series.collect();
    let tops = series.iter().flat_map(|series| &series.points).map(|(_, y, half)| y + half.unwrap_or(0.0));
    let most = tops.fold(0.0, f64::max) * 1.05;
    let names = bars.groups.iter().enumerate().map(|(n, name)| (name.clone(), n as f64 + 1.0));
    Panel {
        title: bars.title.clone(),
        axes: [String::new(), Outcome::axis(outcomes, unit)],
        ranges: [(0.5, bars.groups.len() as f64 + 0.5), (0.0, most)],
        series,
        marks: names.collect(),
    }
}

/// The middle of bar `n` of `several` in a group.
fn place(group: usize, n: usize, several: usize) -> f64 {
    group as f64 + 1.0 + FULL * ((n as f64 + 0.5) / several as f64 - 0.5)
}

fn draw(bars: &Bars, panel: &Panel) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (title, below) = root.split_vertically(TITLE);
        title.draw(&Text::new(bars.title.clone(), (24, 16), (FONT, 20).into_font().color(&INK)))?;
        let (area, legend) = below.split_vertically(SIZE.1 - TITLE - LEGEND);
        draw_bars(&area, panel)?;
        draw_legend(&legend, panel)?;
        root.present()?;
    }
    Ok(svg + "\n")
}

fn draw_bars(area: &Area<'_>, panel: &Panel) -> Drawn {
    let [_, (bottom, top)] = panel.ranges;
    let mut chart = chart(area, "", panel.ranges)?;
    let nothing = |_: &f64| String::new();
    let digits = decimals(top - bottom).max(if top < 10.0 { 1 } else { 0 });
    let label = |value: &f64| format!("{value:.digits$}");
    let mut mesh = chart.configure_mesh();
    mesh.disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(INK.mix(0.15))
        .axis_style(INK.mix(0.5));
    mesh.label_style((FONT, 13).into_font().color(&INK)).y_desc(panel.axes[1].clone());
    mesh.x_label_formatter(&nothing).y_label_formatter(&label);
    mesh.draw()?;
    let half_bar = FULL / panel.series.len() as f64 / 2.0 * 0.92;
    for (series, color) in panel.series.iter().zip(COLORS.iter().cycle()) {
        for (x, y, half) in &series.points {
            let bar = Rectangle::new([(x - half_bar, bottom), (x + half_bar, *y)], color.filled());
            chart.draw_series([bar])?;
            if let Some(half) = half {
                let line = PathElement::new(vec![(*x, y - half), (*x, y + half)], INK.stroke_width(1));
                chart.draw_series([line])?;
            }
        }
    }
    for (name, x) in &panel.marks {
        let (x, y) = chart.backend_coord(&(*x, bottom));
        let style = (FONT, 13).into_font().color(&INK).pos(Pos::new(HPos::Center, VPos::Top));
        let (left, top) = area.get_base_pixel();
        area.draw(&Text::new(name.clone(), (x - left, y - top + 10), style))?;
    }
    Ok(())
}

fn draw_legend(area: &Area<'_>, panel: &Panel) -> Drawn {
    let mut x = 70;
    for (series, color) in panel.series.iter().zip(COLORS.iter().cycle()) {
        area.draw(&Rectangle::new([(x, 8), (x + 14, 22)], color.filled()))?;
        area.draw(&Text::new(series.name.clone(), (x + 20, 7), (FONT, 14).into_font().color(&INK)))?;
        x += 44 + 8 * series.name.chars().count() as i32;
    }
    Ok(())
}
