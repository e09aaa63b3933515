//! A run, a sweep or publications as one page of HTML. Of a run: the charts of every flow and link, linked by their time axis, and the packets at the
//! cursor. The page needs no network and no installation.
//!
//! Charts are drawn by plotly.js, which the `plotly` crate carries. It was chosen over Apache ECharts (crate
//! `charming`, whose page loads the script from the network) and uPlot (smallest and fastest, but no crate ships it,
//! and it has neither symbols by point nor keyboard access): it is MIT-licensed, draws 100,000 points by WebGL, links
//! the axes and the cursor of stacked charts by itself, and exports each chart as an image. It costs 4.7 MB a page.

mod chart;
mod charts;
mod draw;
mod export;
mod page;
mod paper;
mod plotly;
mod points;
mod record;
mod sweep;

pub use export::{Format, PictureError, chart_files, picture};
pub use page::{Described, page};
pub use paper::{Reproduced, papers_page};
pub use record::Recorder;
pub use sweep::sweep_page;
