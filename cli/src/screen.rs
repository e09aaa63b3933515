//! How wide tables may be.

use std::sync::OnceLock;

use console::Term;

/// Set once, from the command line: columns that a table may take; `None`: as many as it needs.
static WIDTH: OnceLock<Option<u16>> = OnceLock::new();

/// Decides the width of tables: that of the terminal, or with `wide` as much as they need.
pub(crate) fn decide(wide: bool) {
    WIDTH.get_or_init(|| if wide { None } else { of_terminal() });
}

/// Columns that a table may take; `None`: as many as it needs.
pub(crate) fn width() -> Option<u16> {
    WIDTH.get().copied().flatten()
}

/// COLUMNS if it is set, else the width of the terminal; `None` in a pipe or a file, where nothing is cut.
fn of_terminal() -> Option<u16> {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|n| *n > 0);
    asked.or_else(|| {
        let out = Term::stdout();
        out.features().is_attended().then(|| out.size_checked().map(|(_, columns)| columns)).flatten()
    })
}
