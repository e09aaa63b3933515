//! Figures of radios at their places, with the distances up to which frames are read, sensed, and spoil others.

use anabranch_lab::claims::{MapFigure, Paper};
use anabranch_lab::report::{Panel, PanelSeries, PaperFigure};
use anabranch_sim::scenario::{Ranges, Reception, Scenario, Station};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::plane::{Area, COLORS, Drawn, FAINT, FONT, INK, TITLE, hex};
use super::refusals::refuse_plan;
use crate::output::fail;

const WIDTH: f64 = 1100.0;
/// Pixels on each side, and below the map for the legend.
const MARGIN: f64 = 60.0;
const LEGEND: f64 = 40.0;
/// The radius of a node.
const DOT: i32 = 6;

/// A circle around a node: its centre and radius in metres, and what happens up to it.
struct Reach {
    at: [f64; 2],
    radius: f64,
    what: &'static str,
}

/// The figure, or the exit status of what went wrong.
pub(super) fn drawn(paper: &Paper, figure: &MapFigure) -> Result<PaperFigure, u8> {
    let scenario = figure.scenario(paper).map_err(|error| refuse_plan(&error))?;
    let mut circles = Vec::new();
    for node in &figure.around {
        match scenario.stations.iter().find(|station| station.node == *node) {
            Some(station) => circles.extend(around(&scenario, station)),
            None => return Err(refuse_plan(&figure.no_such_node(paper, node))),
        }
    }
    let map = Map::of(&scenario, circles);
    let svg = map.draw(&figure.title).map_err(|error| fail(format!("cannot draw: {error}")))?;
    Ok(PaperFigure {
        title: figure.title.clone(),
        name: figure.name.clone(),
        svg,
        panels: vec![map.panel(figure)],
    })
}

/// The ranges of the first channel of a station, the largest first; none where powers decide.
fn around(scenario: &Scenario, station: &Station) -> Vec<Reach> {
    let channel = scenario.channels.iter().find(|channel| station.channels.first() == Some(&channel.name));
    let Some(Reception::Range(Ranges { decode, sense, interfere, .. })) =
        channel.map(|found| &found.reception)
    else {
        return Vec::new();
    };
    let named = [(*interfere, "spoils others"), (*sense, "is sensed"), (*decode, "is read")];
    let differs = named.iter().enumerate().filter(|(n, (radius, _))| *n == 0 || named[n - 1].0 != *radius);
    differs.map(|(_, (radius, what))| Reach { at: station.place, radius: *radius, what }).collect()
}

/// What is drawn, in metres.
struct Map<'s> {
    scenario: &'s Scenario,
    circles: Vec<Reach>,
    /// West and south end, east and north end.
    ends: [[f64; 2]; 2],
}

impl Map<'_> {
    fn of(scenario: &Scenario, circles: Vec<Reach>) -> Map<'_> {
        let stations = scenario.stations.iter().map(|station| (station.place, 0.0));
        let all = stations.chain(circles.iter().map(|circle| (circle.at, circle.radius)));
        let none = [[f64::INFINITY; 2], [f64::NEG_INFINITY; 2]];
        let ends = all.fold(none, |[low, high], (at, radius)| {
            [
                [0, 1].map(|axis| low[axis].min(at[axis] - radius)),
                [0, 1].map(|axis| high[axis].max(at[axis] + radius)),
            ]
        });
        Map { scenario, circles, ends }
    }

    /// Pixels per metre. A map that is higher than wide is as high as others are wide.
    fn scale(&self) -> f64 {
        let sides = [0, 1].map(|axis| self.ends[1][axis] - self.ends[0][axis]);
        (WIDTH - 2.0 * MARGIN) / sides[0].max(sides[1]).max(1.0)
    }

    /// Metres of the length that the legend shows: 300, or a power of ten that is neither a dot nor wider than the map.
    fn length(&self) -> f64 {
        let fits = |metres: f64| (30.0..=0.4 * WIDTH).contains(&(metres * self.scale()));
        if fits(300.0) {
            300.0
        } else {
            libm::pow(10.0, libm::floor(libm::log10(0.4 * WIDTH / self.scale())))
        }
    }

    fn height(&self) -> f64 {
        (self.ends[1][1] - self.ends[0][1]) * self.scale() + 2.0 * MARGIN + LEGEND
    }

    /// The pixel of a place; north is above.
    fn pixel(&self, [east, north]: [f64; 2]) -> (i32, i32) {
        let x = MARGIN + (east - self.ends[0][0]) * self.scale();
        let y = MARGIN + (self.ends[1][1] - north) * self.scale();
        (x.round() as i32, y.round() as i32)
    }

    fn color(&self, channel: &str) -> RGBColor {
        let place = self.scenario.channels.iter().position(|known| known.name == channel);
        COLORS[place.unwrap_or(0) % COLORS.len()]
    }

    fn draw(&self, title: &str) -> Result<String, Box<dyn std::error::Error>> {
        let mut svg = String::new();
        let height = self.height().ceil() as u32;
        {
            let root = SVGBackend::with_string(&mut svg, (WIDTH as u32, height + TITLE)).into_drawing_area();
            root.fill(&WHITE)?;
            let (above, area) = root.split_vertically(TITLE);
            above.draw(&Text::new(title.to_owned(), (24, 16), (FONT, 20).into_font().color(&INK)))?;
            self.draw_circles(&area)?;
            self.draw_flows(&area)?;
            self.draw_stations(&area)?;
            self.draw_legend(&area, height as i32)?;
            root.present()?;
        }
        Ok(svg + "\n")
    }

    fn draw_circles(&self, area: &Area<'_>) -> Drawn {
        for circle in &self.circles {
            let (at, radius) = (self.pixel(circle.at), circle.radius * self.scale());
            area.draw(&Circle::new(at, radius as i32, FAINT.mix(0.10).filled()))?;
            area.draw(&Circle::new(at, radius as i32, FAINT.stroke_width(1)))?;
            let text = format!("a frame {} up to {} m", circle.what, circle.radius);
            write(area, &text, (at.0, at.1 - radius as i32 - 16), &INK)?;
        }
        Ok(())
    }

    /// An arrow above the nodes from the first to the last node of each flow.
    fn draw_flows(&self, area: &Area<'_>) -> Drawn {
        for (n, flow) in self.scenario.flows.iter().enumerate() {
            let place = |name: &String| self.scenario.stations.iter().find(|station| station.node == *name);
            let Some((from, to)) = place(&flow.from).zip(place(&flow.to)) else { continue };
            let above = 20 + 4 * n as i32;
            let [from, to] = [from, to].map(|station| self.pixel(station.place)).map(|(x, y)| (x, y - above));
            area.draw(&PathElement::new(vec![from, to], INK.stroke_width(1)))?;
            let ahead = if to.0 >= from.0 { 1 } else { -1 };
            let tip = [to, (to.0 - 9 * ahead, to.1 - 4), (to.0 - 9 * ahead, to.1 + 4)];
            area.draw(&Polygon::new(tip.to_vec(), INK.filled()))?;
            write(area, &flow.name, ((from.0 + to.0) / 2, from.1.min(to.1) - 16), &INK)?;
        }
        Ok(())
    }

    /// A ring in the color of each channel, the first inside.
    fn draw_stations(&self, area: &Area<'_>) -> Drawn {
        for station in &self.scenario.stations {
            let at = self.pixel(station.place);
            for (n, channel) in station.channels.iter().enumerate().rev() {
                area.draw(&Circle::new(at, DOT + 4 * n as i32, self.color(channel).filled()))?;
                area.draw(&Circle::new(at, DOT + 4 * n as i32, WHITE.stroke_width(1)))?;
            }
            write(area, &station.node, (at.0, at.1 + DOT + 10), &INK)?;
        }
        Ok(())
    }

    /// The colors of the channels in use, and a length.
    fn draw_legend(&self, area: &Area<'_>, height: i32) -> Drawn {
        let y = height - 30;
        let mut x = MARGIN as i32;
        let used =
            |name: &String| self.scenario.stations.iter().any(|station| station.channels.contains(name));
        for channel in self.scenario.channels.iter().filter(|channel| used(&channel.name)) {
            area.draw(&Circle::new((x, y), DOT, self.color(&channel.name).filled()))?;
            let style = (FONT, 13).into_font().color(&INK);
            area.draw(&Text::new(format!("radio on {}", channel.name), (x + 12, y - 7), style))?;
            x += (44 + 8 * (9 + channel.name.chars().count() as i32)).max(150);
        }
        let metres = self.length();
        let long = (metres * self.scale()) as i32;
        area.draw(&PathElement::new(vec![(x, y), (x + long, y)], INK.stroke_width(2)))?;
        write(area, &format!("{metres} m"), (x + long / 2, y - 20), &INK)
    }

    /// The places of the radios of each channel, and the circles as lines.
    fn panel(&self, figure: &MapFigure) -> Panel {
        let series = |name: String, color: RGBColor, symbols, points: Vec<[f64; 2]>| PanelSeries {
            name,
            color: hex(color),
            symbols,
            points: points.into_iter().map(|[x, y]| (x, y, None)).collect(),
        };
        let circles = self.circles.iter().map(|circle| {
            let point = |n: u32| {
                let (sin, cos) = libm::sincos((f64::from(n) * 5.0).to_radians());
                [circle.at[0] + circle.radius * cos, circle.at[1] + circle.radius * sin]
            };
            let name = format!("{} up to {} m", circle.what, circle.radius);
            series(name, FAINT, false, (0..=72).map(point).collect())
        });
        let channels = self.scenario.channels.iter().map(|channel| {
            let its =
                self.scenario.stations.iter().filter(|station| station.channels.contains(&channel.name));
            let places = its.map(|station| station.place).collect();
            series(channel.name.clone(), self.color(&channel.name), true, places)
        });
        Panel {
            title: figure.title.clone(),
            axes: ["metres east".to_owned(), "metres north".to_owned()],
            ranges: [0, 1].map(|axis| (self.ends[0][axis] - 100.0, self.ends[1][axis] + 100.0)),
            series: circles.chain(channels).collect(),
            marks: Vec::new(),
        }
    }
}

/// Text with its middle above this pixel.
fn write(area: &Area<'_>, text: &str, at: (i32, i32), color: &RGBColor) -> Drawn {
    let style = (FONT, 13).into_font().color(color).pos(Pos::new(HPos::Center, VPos::Top));
    Ok(area.draw(&Text::new(text.to_owned(), at, style))?)
}
