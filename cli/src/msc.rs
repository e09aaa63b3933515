//! `anabranch run … --msc FILE.svg`: the exchange between the ends of a flow as a message sequence chart.

use std::str::FromStr;
use std::time::Duration;

use anabranch_lab::units::counted;
use anabranch_proto::policy::Why;
use anabranch_proto::wire::Chunk;
use anabranch_proto::{Purpose, Time};
use anabranch_sim::trace::{Contents, Detail, Names, Observer, PacketView, Record, Segment, Side};
use anabranch_sim::{capture, words};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The largest number of packets in a chart.
const MOST: usize = 250;
/// Longer texts are cut after this number of characters.
const TEXT: usize = 76;

/// A time range, counted from the beginning of the run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Between(Time, Time);

impl Between {
    /// Between these times from the beginning of the run.
    pub(crate) fn new([from, to]: [Duration; 2]) -> Self {
        Between(Time::ZERO + from, Time::ZERO + to)
    }
}

impl Default for Between {
    fn default() -> Self {
        Between(Time::ZERO, Time::NEVER)
    }
}

impl FromStr for Between {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once(',').ok_or("this is no FROM,TO; for example 6.4s,6.6s")?;
        let [from, to] = [from, to].map(|end| anabranch_sim::scenario::duration(end.trim()));
        let [from, to]: [Duration; 2] = [from?, to?];
        if from >= to {
            return Err("the first time must come before the second".to_owned());
        }
        Ok(Between::new([from, to]))
    }
}

/// Records the content of a chart.
#[derive(Debug)]
pub(crate) struct Exchange {
    between: Between,
    names: Vec<String>,
    /// The two nodes of each link direction and of each hop between radios.
    ends: Vec<String>,
    /// The nodes of the sender and the receiver of each flow.
    nodes: Vec<[String; 2]>,
    rows: Vec<Row>,
    packets: Vec<Message>,
    /// The number of packets beyond the limit.
    more: usize,
}

/// One line of the chart, in order of time.
#[derive(Debug)]
struct Row {
    at: Time,
    flow: usize,
    side: Side,
    text: String,
    kind: Kind,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    /// A packet leaves: its index in `packets`.
    Sends(usize),
    /// A packet arrives.
    Arrives(usize),
    /// A packet is lost.
    Loses(usize),
    /// An end enters a state, or something else happens there.
    Note,
}

/// A packet in flight.
#[derive(Debug)]
struct Message {
    flow: usize,
    side: Side,
    path: String,
    what: String,
    over: bool,
}

impl Exchange {
    /// The flows between these two nodes: name, node of the sender, node of the receiver.
    pub(crate) fn new(between: Between, flows: &[(String, [String; 2])]) -> Self {
        Exchange {
            between,
            names: flows.iter().map(|(name, _)| name.clone()).collect(),
            ends: Vec::new(),
            nodes: flows.iter().map(|(_, nodes)| nodes.clone()).collect(),
            rows: Vec::new(),
            packets: Vec::new(),
            more: 0,
        }
    }

    /// Whether there is nothing to draw.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn row(&mut self, at: Time, flow: usize, side: Side, text: String, kind: Kind) {
        let within = at >= self.between.0 && at <= self.between.1;
        // Later events of a packet that is shown are shown too.
        let known = matches!(kind, Kind::Arrives(_) | Kind::Loses(_));
        if within && (known || self.more == 0) {
            self.rows.push(Row { at, flow, side, text, kind });
        }
    }

    fn sent(&mut self, at: Time, flow: usize, side: Side, path: &str, why: Purpose, packet: &PacketView<'_>) {
        if at < self.between.0 || at > self.between.1 {
            return;
        }
        if self.packets.len() == MOST {
            self.more += 1;
            return;
        }
        let what = short(packet);
        let because = match why {
            Purpose::Data(why @ (Why::Missing | Why::Timeout)) => format!(" ({})", words::data(why)),
            _ => String::new(),
        };
        self.row(at, flow, side, format!("{what}{because}"), Kind::Sends(self.packets.len()));
        self.state(at, flow, side, packet, true);
        self.packets.push(Message { flow, side, path: path.to_owned(), what, over: false });
    }

    /// The oldest packet in flight that looks like this one.
    fn find(&self, flow: usize, packet: &PacketView<'_>) -> Option<usize> {
        let origin = packet.origin?;
        let what = short(packet);
        let same = |message: &Message| {
            !message.over
                && message.flow == flow
                && message.side == origin.side
                && message.path == origin.path.unwrap_or_default()
                && message.what == what
        };
        self.packets.iter().position(same)
    }

    fn ended(&mut self, at: Time, flow: usize, packet: &PacketView<'_>, lost: Option<&'static str>) {
        let Some(place) = self.find(flow, packet) else { return };
        self.packets[place].over = true;
        let from = self.packets[place].side;
        let other = if from == Side::Client { Side::Server } else { Side::Client };
        match lost {
            Some(why) => self.row(at, flow, from, format!("lost: {why}"), Kind::Loses(place)),
            None => {
                self.row(at, flow, other, String::new(), Kind::Arrives(place));
                self.state(at, flow, other, packet, false);
            }
        }
    }

    /// The state that an end enters with a packet (RFC 9260 section 4).
    fn state(&mut self, at: Time, flow: usize, side: Side, packet: &PacketView<'_>, sends: bool) {
        let chunks = packet.sctp().map_or(&[][..], |packet| &packet.chunks[..]);
        let state = chunks.iter().find_map(|chunk| match (chunk, sends) {
            (Chunk::Init(_), true) => Some("COOKIE-WAIT"),
            (Chunk::CookieEcho(_), true) => Some("COOKIE-ECHOED"),
            (Chunk::CookieEcho(_) | Chunk::CookieAck(_), false) => Some("ESTABLISHED"),
            (Chunk::Shutdown(_), true) => Some("SHUTDOWN-SENT"),
            (Chunk::Shutdown(_), false) => Some("SHUTDOWN-RECEIVED"),
            (Chunk::ShutdownAck(_), true) => Some("SHUTDOWN-ACK-SENT"),
            (Chunk::ShutdownComplete(_) | Chunk::Abort(_), _) => Some("CLOSED"),
            _ => None,
        });
        if let Some(state) = state {
            self.row(at, flow, side, state.to_owned(), Kind::Note);
        }
    }
}

impl Observer for Exchange {
    fn begin(&mut self, names: &Names) {
        let end =
            |(_, direction): &(String, String)| direction.rsplit('>').next().unwrap_or_default().to_owned();
        self.ends = names.links.iter().chain(&names.hops).map(end).collect();
        // Flow numbers here follow the order of the run. Cross traffic has no ends to draw.
        let place = |name: &String| self.names.iter().position(|known| known == name);
        let nodes: Vec<_> = names
            .flows
            .iter()
            .map(|name| place(name).map_or_else(Default::default, |place| self.nodes[place].clone()))
            .collect();
        (self.nodes, self.names) = (nodes, names.flows.clone());
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        match record {
            Record::Sent { flow, side, path, reason, packet } if !self.nodes[*flow][0].is_empty() => {
                self.sent(at, *flow, *side, path.unwrap_or_default(), reason.purpose, packet);
            }
            Record::Dropped { flow, cause, packet, .. } => {
                self.ended(at, *flow, packet, Some(words::drop_cause(*cause, false)));
            }
            Record::Delivered { link, flow, packet } => {
                let Some(origin) = packet.origin else { return };
                let there = if origin.side == Side::Client { 1 } else { 0 };
                if self.ends[*link] == self.nodes[*flow][there] {
                    self.ended(at, *flow, packet, None);
                }
            }
            Record::Detail { flow, side, path, detail } => {
                let path = path.unwrap_or_default();
                let text = match detail {
                    Detail::Timeout => format!("T3-rtx of {path} expires"),
                    Detail::State(state) => format!("path {path} is {}", words::path_state(*state)),
                    _ => return,
                };
                self.row(at, *flow, *side, text, Kind::Note);
            }
            _ => {}
        }
    }
}

/// A packet in one line.
fn short(packet: &PacketView<'_>) -> String {
    let chunk = |chunk: &Chunk| match chunk {
        Chunk::Data(data) => format!("DATA {}, {} bytes", data.tsn.0, data.payload.len()),
        Chunk::IData(data) => format!("I-DATA {}, {} bytes", data.tsn.0, data.payload.len()),
        Chunk::Sack(sack) if sack.gaps.is_empty() => {
            format!("SACK {}, a_rwnd {}", sack.cumulative.0, sack.a_rwnd)
        }
        Chunk::Sack(sack) => {
            let gaps = counted(sack.gaps.len() as u64, "gap block");
            format!("SACK {}, a_rwnd {}, {gaps}", sack.cumulative.0, sack.a_rwnd)
        }
        other => capture::summary(other).split(" tag=").next().unwrap_or_default().to_owned(),
    };
    match packet.contents {
        Contents::Sctp(_) if packet.tsns().nth(1).is_some() => {
            let tsns: Vec<String> = packet.tsns().map(|tsn| tsn.0.to_string()).collect();
            format!("DATA {} to {}, {} chunks", tsns[0], tsns[tsns.len() - 1], tsns.len())
        }
        Contents::Sctp(packet) => packet.chunks.iter().map(chunk).collect::<Vec<_>>().join("; "),
        Contents::Tcp(packet) if packet.segment.length > 0 => {
            format!("bytes {} to {}", packet.offset, packet.offset + u64::from(packet.segment.length))
        }
        Contents::Tcp(packet) => bare(&packet.segment),
        Contents::Datagram(_) => "datagram".to_owned(),
        Contents::Raw(_) => "IP packet of a program".to_owned(),
        Contents::Foreign(_) => "packet of a foreign transport".to_owned(),
    }
}

/// A TCP segment without data in one line.
fn bare(segment: &Segment) -> String {
    let flags = [(segment.syn, "SYN"), (segment.fin, "FIN")];
    let flags = flags.into_iter().filter(|(set, _)| *set).map(|(_, name)| name.to_owned());
    let acknowledged = segment.acknowledgement.map(|next| match segment.sack.len() {
        0 => format!("ACK {}", next.0),
        blocks => format!("ACK {}, {}", next.0, counted(blocks as u64, "SACK block")),
    });
    flags.chain(acknowledged).collect::<Vec<_>>().join(" ")
}

const WIDTH: u32 = 1240;
const LINES: [i32; 2] = [500, 740];
const HEAD: i32 = 76;
const STEP: i32 = 20;
const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(30, 30, 30);
const FAINT: RGBColor = RGBColor(110, 110, 110);
const LOST: RGBColor = RGBColor(190, 0, 0);
/// One colour per path: the palette of Okabe and Ito, darkened so that it can be read on white.
const COLORS: [RGBColor; 5] = [
    RGBColor(0, 100, 160),
    RGBColor(170, 90, 0),
    RGBColor(0, 120, 85),
    RGBColor(150, 70, 120),
    RGBColor(90, 90, 20),
];

type Drawn = Result<(), Box<dyn std::error::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Charts with their titles, one below the other, as SVG.
pub(crate) fn stacked(charts: &[(String, &Exchange)]) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    let height: i32 = charts.iter().map(|(_, chart)| chart.height()).sum();
    {
        let mut rest = SVGBackend::with_string(&mut svg, (WIDTH, height as u32)).into_drawing_area();
        rest.fill(&WHITE)?;
        for (title, chart) in charts {
            let (own, below) = rest.split_vertically(chart.height());
            chart.draw_on(&own, title)?;
            rest = below;
        }
        rest.present()?;
    }
    Ok(svg + "\n")
}

impl Exchange {
    /// The chart as SVG.
    pub(crate) fn draw(&self, title: &str) -> Result<String, Box<dyn std::error::Error>> {
        stacked(&[(title.to_owned(), self)])
    }

    fn height(&self) -> i32 {
        let notes = 1 + i32::from(self.more > 0);
        HEAD + STEP * (self.rows.len() as i32 + notes) + 20
    }

    fn draw_on(&self, area: &Area<'_>, title: &str) -> Drawn {
        let height = self.height();
        self.head(area, title, height)?;
        for (i, row) in self.rows.iter().enumerate() {
            self.line(area, i as i32, row)?;
        }
        if self.more > 0 {
            let text = format!("… and {} more packets: --between shows a part of the run", self.more);
            write(area, &text, (WIDTH as i32 / 2, height - 24), HPos::Center, &INK)?;
        }
        Ok(())
    }

    /// For each path and kind of packet: its name, its color, and the packets that arrive, each with the second at
    /// which it leaves and the milliseconds until it arrives.
    pub(crate) fn series(&self) -> Vec<(String, RGBColor, Vec<(f64, f64)>)> {
        let mut series: Vec<(String, RGBColor, Vec<(f64, f64)>)> = Vec::new();
        let time = |kind: Kind| self.rows.iter().find(|row| row.kind == kind).map(|row| row.at.as_nanos());
        for (place, packet) in self.packets.iter().enumerate() {
            let times = time(Kind::Sends(place)).zip(time(Kind::Arrives(place)));
            let Some((left, came)) = times else { continue };
            let kind = packet.what.split(' ').next().unwrap_or_default();
            let name = format!("{}: {kind}", packet.path);
            let point = (left as f64 / 1e9, (came - left) as f64 / 1e6);
            match series.iter_mut().find(|(known, ..)| *known == name) {
                Some((.., points)) => points.push(point),
                None => series.push((name, self.color(&packet.path), vec![point])),
            }
        }
        series
    }

    fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = self.packets.iter().map(|packet| packet.path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        paths.retain(|path| !path.is_empty());
        paths
    }

    fn color(&self, path: &str) -> RGBColor {
        let place = self.paths().iter().position(|known| *known == path);
        place.map_or(INK, |place| COLORS[place % COLORS.len()])
    }

    fn head(&self, area: &Area<'_>, title: &str, height: i32) -> Drawn {
        area.draw(&Text::new(title.to_owned(), (20, 10), (FONT, 18).into_font().color(&INK)))?;
        let mut x = 20;
        for path in self.paths() {
            let color = self.color(path);
            area.draw(&PathElement::new(vec![(x, 43), (x + 24, 43)], color.stroke_width(2)))?;
            write(area, path, (x + 30, 36), HPos::Left, &color)?;
            x += 60 + 8 * path.chars().count() as i32;
        }
        let shown = |flow: &usize| self.rows.iter().any(|row| row.flow == *flow);
        let flows: Vec<usize> = (0..self.nodes.len()).filter(shown).collect();
        for (end, x) in LINES.into_iter().enumerate() {
            let mut nodes: Vec<&str> = flows.iter().map(|flow| self.nodes[*flow][end].as_str()).collect();
            nodes.dedup();
            write(area, &nodes.join(", "), (x, HEAD - 22), HPos::Center, &INK)?;
            area.draw(&PathElement::new(vec![(x, HEAD - 4), (x, height - 30)], INK.stroke_width(1)))?;
        }
        Ok(())
    }

    fn line(&self, area: &Area<'_>, i: i32, row: &Row) -> Drawn {
        let y = HEAD + STEP * i + 8;
        let (x, side, anchor) = match row.side {
            Side::Client => (LINES[0], -8, HPos::Right),
            Side::Server => (LINES[1], 8, HPos::Left),
        };
        let time = match self.needs_nanoseconds() {
            true => format!("{:.9} s", row.at.as_nanos() as f64 / 1e9),
            false => format!("{:.6} s", row.at.as_nanos() as f64 / 1e9),
        };
        let flow = if self.several() { self.names[row.flow].as_str() } else { "" };
        let parts: Vec<&str> = [flow, &row.text].into_iter().filter(|part| !part.is_empty()).collect();
        let text = cut(&parts.join(": "));
        let text = match row.side {
            Side::Client if text.is_empty() => time,
            Side::Client => format!("{text} · {time}"),
            Side::Server if text.is_empty() => time,
            Side::Server => format!("{time} · {text}"),
        };
        let color = match row.kind {
            Kind::Sends(packet) | Kind::Arrives(packet) => self.color(&self.packets[packet].path),
            Kind::Loses(_) => LOST,
            Kind::Note => FAINT,
        };
        write(area, &text, (x + side, y - 7), anchor, &color)?;
        match row.kind {
            Kind::Sends(packet) => self.arrow(area, packet, (x, y), color),
            Kind::Note => Ok(area.draw(&Circle::new((x, y), 3, FAINT.filled()))?),
            Kind::Arrives(_) | Kind::Loses(_) => Ok(()),
        }
    }

    /// Whether two moments that follow each other would look like one with microseconds.
    fn needs_nanoseconds(&self) -> bool {
        let looks_like_one =
            |one: Time, next: Time| one != next && one.as_nanos() / 1000 == next.as_nanos() / 1000;
        self.rows.windows(2).any(|pair| looks_like_one(pair[0].at, pair[1].at))
    }

    /// Whether the chart shows several flows.
    fn several(&self) -> bool {
        self.rows.iter().any(|row| row.flow != self.rows[0].flow)
    }

    /// An arrow from the departure of a packet to its arrival, or to the point where it was lost.
    fn arrow(&self, area: &Area<'_>, packet: usize, from: (i32, i32), color: RGBColor) -> Drawn {
        let right = if self.packets[packet].side == Side::Client { 1 } else { -1 };
        let far = if right == 1 { LINES[1] } else { LINES[0] };
        let end = self
            .rows
            .iter()
            .position(|row| matches!(row.kind, Kind::Arrives(p) | Kind::Loses(p) if p == packet));
        let lost = end.is_some_and(|end| matches!(self.rows[end].kind, Kind::Loses(_)));
        let height = |row: usize| HEAD + STEP * row as i32 + 8;
        let to = match end {
            Some(row) if lost => (from.0 + right * (LINES[1] - LINES[0]) / 2, height(row)),
            Some(row) => (far, height(row)),
            // The packet is still in flight at the end of the chart.
            None => (from.0 + right * 60, from.1 + 10),
        };
        area.draw(&PathElement::new(vec![from, to], color.stroke_width(1)))?;
        if lost {
            return Ok(area.draw(&Cross::new(to, 5, LOST.stroke_width(2)))?);
        }
        if end.is_some() {
            let back = to.0 - right * 9;
            area.draw(&Polygon::new(vec![to, (back, to.1 - 4), (back, to.1 + 4)], color.filled()))?;
        }
        Ok(())
    }
}

/// A text that is too long ends in "…".
fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn write(area: &Area<'_>, text: &str, at: (i32, i32), anchor: HPos, color: &RGBColor) -> Drawn {
    let style = (FONT, 13).into_font().color(color).pos(Pos::new(anchor, VPos::Top));
    Ok(area.draw(&Text::new(text.to_owned(), at, style))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_times_make_a_part_of_the_run() {
        let read =
            "6.4s, 6.6 s".parse::<Between>().map(|between| (between.0.as_nanos(), between.1.as_nanos()));
        assert_eq!(read, Ok((6_400_000_000, 6_600_000_000)));
        assert!("6.4s".parse::<Between>().is_err() && "2s,1s".parse::<Between>().is_err());
    }
}
