//! The width of tables.

use std::sync::OnceLock;

use console::Term;

/// The largest number of columns of a table, set once from the command line; `None`: no limit.
static WIDTH: OnceLock<Option<u16>> = OnceLock::new();

/// Sets the width of tables: the width of the terminal, or no limit with `wide`.
pub(crate) fn decide(wide: bool) {
    WIDTH.get_or_init(|| if wide { None } else { of_terminal() });
}

/// The largest number of columns of a table; `None`: no limit.
pub(crate) fn width() -> Option<u16> {
    WIDTH.get().copied().flatten()
}

/// COLUMNS if it is set, otherwise the width of the terminal. `None` in a pipe or a file, where tables are not cut.
fn of_terminal() -> Option<u16> {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|n| *n > 0);
    asked.or_else(|| {
        let out = Term::stdout();
        out.features().is_attended().then(|| out.size_checked().map(|(_, columns)| columns)).flatten()
    })
}
