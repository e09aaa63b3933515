//! Figures of the packets between the ends of a flow: sequence charts one below the other.

use anabranch_lab::claims::{ExchangeFigure, Paper};
use anabranch_lab::report::{Panel, PanelSeries, PaperFigure};

use super::plane::hex;
use super::refusals::refuse_plan;
use crate::msc::{Between, Exchange, stacked};
use crate::output::fail;

/// The figure, or the exit status of what went wrong.
pub(super) fn drawn(paper: &Paper, figure: &ExchangeFigure) -> Result<PaperFigure, u8> {
    let runs = figure.runs(paper, |scenario| {
        let flow = figure.flow(paper, scenario)?;
        let ends = [flow.from.clone(), flow.to.clone()];
        Ok(Exchange::new(Between::new(figure.between), &[(flow.name.clone(), ends)]))
    });
    let runs = runs.map_err(|error| refuse_plan(&error))?;
    if runs.iter().any(|(_, exchange)| exchange.is_empty()) {
        return Err(refuse_plan(&figure.nothing_between(paper)));
    }
    let charts: Vec<(String, &Exchange)> =
        runs.iter().map(|(heading, exchange)| (format!("{}: {heading}", figure.title), exchange)).collect();
    let svg = stacked(&charts).map_err(|error| fail(format!("cannot draw: {error}")))?;
    let panels = runs.iter().map(|(heading, exchange)| panel(figure, heading, exchange)).collect();
    Ok(PaperFigure { title: figure.title.clone(), name: figure.name.clone(), svg, panels })
}

/// When packets leave, and how long they take.
fn panel(figure: &ExchangeFigure, heading: &str, exchange: &Exchange) -> Panel {
    let series = exchange.series();
    let most = series.iter().flat_map(|(.., points)| points).map(|point| point.1).fold(0.0, f64::max);
    let symbols = |(name, color, points): (String, _, Vec<(f64, f64)>)| PanelSeries {
        name,
        color: hex(color),
        symbols: true,
        points: points.into_iter().map(|(x, y)| (x, y, None)).collect(),
    };
    let [from, to] = figure.between.map(|end| end.as_secs_f64());
    Panel {
        title: heading.to_owned(),
        axes: ["seconds".to_owned(), "milliseconds to the other end".to_owned()],
        ranges: [(from, to), (0.0, most * 1.05)],
        series: series.into_iter().map(symbols).collect(),
        marks: Vec::new(),
    }
}
