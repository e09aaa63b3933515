//! Reports: a run, a sweep or publications as one HTML page. The page of a run has the charts of every flow and link
//! with a common time axis, and the packets at the cursor. The page needs no network and no installation.
//!
//! plotly.js draws the charts; it comes with the `plotly` crate. It was compared with Apache ECharts (crate
//! `charming`, whose page loads the script from the network) and with uPlot (the smallest and fastest, but no crate
//! ships it, and it has neither symbols for single points nor keyboard access). plotly.js is MIT-licensed, links
//! the axes and the cursor of stacked charts, and exports each chart as an image. It adds 4.7 MB to a page. It can draw
//! many points with WebGL, but a browser without a GPU needs minutes for that. So the page draws as SVG what
//! the screen can show of each trace (`levels.js`).

mod advice;
mod association;
mod chart;
mod charts;
mod draw;
mod export;
mod frames;
mod lengths;
mod page;
mod panels;
mod paper;
mod pgf;
mod plot;
mod plot_data;
mod plotly;
mod plots;
mod points;
mod record;
mod steps;
mod sweep;

pub use advice::policy_page;
pub use export::{Format, PictureError, chart_files, picture};
pub use page::{Described, page};
pub use panels::{Panel, PanelSeries, PaperFigure};
pub use paper::{Reproduced, paper_files, papers_page};
pub use record::Recorder;
pub use sweep::{sweep_files, sweep_page};
