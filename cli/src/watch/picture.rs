//! The content and the layout of the view.

use std::collections::VecDeque;

use anabranch_proto::printable;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Row, Sparkline, Table};

/// The content at one moment.
#[derive(Clone, Default, Debug)]
pub(crate) struct Picture {
    pub(crate) title: String,
    /// The progress, below the title.
    pub(crate) status: String,
    /// The keys, in the last line.
    pub(crate) keys: &'static str,
    pub(crate) paths: Vec<PathLine>,
}

/// One path.
#[derive(Clone, Default, Debug)]
pub(crate) struct PathLine {
    pub(crate) name: String,
    pub(crate) state: &'static str,
    /// Bytes.
    pub(crate) cwnd: u64,
    /// Bytes, if the window has a threshold and it is known.
    pub(crate) ssthresh: Option<u64>,
    /// Bytes in flight.
    pub(crate) flight: u64,
    /// Seconds, once a round trip was measured.
    pub(crate) srtt: Option<f64>,
    /// Seconds, once known.
    pub(crate) rto: Option<f64>,
    pub(crate) rates: Rates,
}

/// The latest rates of a path, one per interval.
#[derive(Clone, Debug)]
pub(crate) struct Rates {
    /// The length of an interval in seconds.
    interval: f64,
    /// Bytes per interval; the last interval is still running.
    bytes: VecDeque<u64>,
    /// The number of the last interval, counted from the beginning.
    last: u64,
}

/// The number of intervals that are kept.
const KEPT: usize = 240;

impl Default for Rates {
    fn default() -> Self {
        Rates { interval: 0.25, bytes: VecDeque::from([0]), last: 0 }
    }
}

impl Rates {
    /// Adds bytes that were sent `at` seconds after the beginning.
    pub(crate) fn add(&mut self, at: f64, bytes: u64) {
        self.advance(at);
        if let Some(last) = self.bytes.back_mut() {
            *last += bytes;
        }
    }

    /// Advances to `at` seconds after the beginning.
    pub(crate) fn advance(&mut self, at: f64) {
        let number = (at / self.interval) as u64;
        for _ in 0..number.saturating_sub(self.last).min(KEPT as u64) {
            self.bytes.push_back(0);
        }
        while self.bytes.len() > KEPT {
            self.bytes.pop_front();
        }
        self.last = self.last.max(number);
    }

    /// The mean rate of the last four complete intervals, bit/s.
    pub(crate) fn now(&self) -> f64 {
        let whole = self.bytes.iter().rev().skip(1).take(4);
        let (count, bytes) = whole.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes));
        if count == 0 { 0.0 } else { bytes as f64 * 8.0 / (f64::from(count) * self.interval) }
    }
}

/// The columns of the table: heading and width.
const COLUMNS: [(&str, u16); 8] = [
    ("path", 20),
    ("state", 18),
    ("cwnd", 10),
    ("ssthresh", 10),
    ("in flight", 10),
    ("RTT", 11),
    ("RTO", 11),
    ("rate", 16),
];

/// The columns that a narrow terminal does not show, the first to go first: RTO, ssthresh, in flight, RTT, state.
const DISPENSABLE: [usize; 5] = [6, 3, 4, 5, 1];

impl PathLine {
    /// The cells of the path, one for each of [`COLUMNS`].
    fn cells(&self) -> [String; 8] {
        let milliseconds =
            |time: Option<f64>| time.map_or("–".to_owned(), |time| format!("{:.1} ms", time * 1e3));
        [
            printable(&self.name).into_owned(),
            self.state.to_owned(),
            self.cwnd.to_string(),
            self.ssthresh.map_or("–".to_owned(), |bytes| bytes.to_string()),
            self.flight.to_string(),
            milliseconds(self.srtt),
            milliseconds(self.rto),
            format!("{:.3} Mbit/s", self.rates.now() / 1e6),
        ]
    }
}

impl Picture {
    pub(crate) fn draw(&self, frame: &mut Frame<'_>) {
        let table = self.paths.len() as u16 + 3;
        let [title, status, paths, rates, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(table),
            Constraint::Min(0),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let bold = Style::new().add_modifier(Modifier::BOLD);
        frame.render_widget(Line::styled(printable(&self.title).into_owned(), bold), title);
        frame.render_widget(Line::raw(printable(&self.status).into_owned()), status);
        frame.render_widget(self.table(paths.width), paths);
        self.draw_rates(frame, rates);
        frame.render_widget(Line::raw(self.keys), keys);
    }

    /// The table of the paths. Where the terminal is narrow, the columns in [`DISPENSABLE`] are left out one after the
    /// other.
    fn table(&self, width: u16) -> Table<'_> {
        let mut shown: Vec<usize> = (0..COLUMNS.len()).collect();
        for column in DISPENSABLE {
            // With one column between two of them.
            let needed = shown.iter().map(|column| COLUMNS[*column].1 + 1).sum::<u16>() - 1;
            if needed <= width {
                break;
            }
            shown.retain(|known| *known != column);
        }
        let rows = self.paths.iter().map(|path| {
            let cells = path.cells();
            let style = if path.state == "active" { Style::new() } else { Style::new().fg(Color::Red) };
            Row::new(shown.iter().map(|column| cells[*column].clone()).collect::<Vec<_>>()).style(style)
        });
        let widths = shown.iter().map(|column| match *column {
            0 => Constraint::Min(COLUMNS[0].1),
            column => Constraint::Length(COLUMNS[column].1),
        });
        let style = Style::new().add_modifier(Modifier::BOLD);
        let heading = Row::new(shown.iter().map(|column| COLUMNS[*column].0)).style(style);
        Table::new(rows, widths).header(heading).block(Block::bordered().title("windows in bytes"))
    }

    /// A curve of the rate of each path, for as many paths as fit.
    fn draw_rates(&self, frame: &mut Frame<'_>, area: Rect) {
        let shown = self.paths.len().min(usize::from(area.height) / 4);
        let most = self.paths.iter().flat_map(|path| path.rates.bytes.iter()).max().copied().unwrap_or(0);
        let areas = Layout::vertical(vec![Constraint::Fill(1); shown]).split(area);
        for (path, area) in self.paths.iter().zip(areas.iter()) {
            let room = usize::from(area.width.saturating_sub(2));
            let bytes: Vec<u64> = path.rates.bytes.iter().rev().take(room).rev().copied().collect();
            let interval = path.rates.interval;
            let scale = most as f64 * 8.0 / interval / 1e6;
            let name = printable(&path.name);
            let title = format!("{name}: rate in intervals of {interval} s, full height = {scale:.3} Mbit/s");
            let curve = Sparkline::default().data(&bytes).max(most.max(1));
            frame.render_widget(curve.block(Block::bordered().title(title)), *area);
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    #[test]
    fn the_view_names_paths_windows_and_rates() {
        let mut rates = Rates::default();
        (0..8).for_each(|n| rates.add(f64::from(n) * 0.25, 31_250));
        let path = PathLine {
            name: "upload: wifi\u{1b}[2J".to_owned(),
            state: "active",
            cwnd: 14_600,
            ssthresh: Some(7_300),
            flight: 2_920,
            srtt: Some(0.0255),
            rto: Some(1.0),
            rates,
        };
        let keys = "q leaves";
        let picture =
            Picture { title: "loss".to_owned(), status: "2.000 s".to_owned(), keys, paths: vec![path] };
        let mut terminal = Terminal::new(TestBackend::new(120, 20)).expect("a terminal of the test");
        terminal.draw(|frame| picture.draw(frame)).expect("it draws");
        let shown = terminal.backend().to_string();
        for part in
            ["loss", "2.000 s", "upload: wifi", "active", "14600", "7300", "2920", "25.5 ms", "1000.0 ms"]
        {
            assert!(shown.contains(part), "{part}\n{shown}");
        }
        assert!(
            shown.contains("1.000 Mbit/s") && shown.contains('█') && shown.contains("q leaves"),
            "{shown}"
        );
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }

    #[test]
    fn a_narrow_terminal_shows_fewer_columns() {
        let heading = |width: u16| {
            let picture =
                Picture { title: String::new(), status: String::new(), keys: "", paths: Vec::new() };
            let mut terminal = Terminal::new(TestBackend::new(width, 10)).expect("a terminal of the test");
            terminal.draw(|frame| picture.draw(frame)).expect("it draws");
            let text = terminal.backend().to_string();
            COLUMNS.iter().filter(|(name, _)| text.contains(name)).map(|(name, _)| *name).collect::<Vec<_>>()
        };
        assert_eq!(heading(120).len(), 8);
        assert_eq!(heading(80), ["path", "state", "cwnd", "RTT", "rate"]);
        assert_eq!(heading(55), ["path", "cwnd", "rate"]);
    }

    #[test]
    fn rates_forget_the_oldest_intervals() {
        let mut rates = Rates::default();
        rates.add(0.1, 1000);
        rates.advance(1e6);
        assert_eq!((rates.bytes.len(), rates.now()), (KEPT, 0.0));
        rates.add(1e6, 500);
        rates.advance(1e6 + 0.25);
        assert_eq!(rates.now(), 500.0 * 8.0);
    }
}
