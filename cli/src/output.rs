//! What goes to standard output, and what to standard error.

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};

use anabranch_sim::scenario::ScenarioError;

use crate::{DONE, FAILED, WRONG_INPUT};

/// Writes `text` and a line's end to standard output, and returns the exit status. A reader that has gone
/// (`anabranch … | head`) is no failure.
pub(crate) fn print(text: &str) -> u8 {
    let written = stdout().lock().write_all(text.as_bytes()).and_then(|()| stdout().lock().write_all(b"\n"));
    match written.and_then(|()| stdout().flush()) {
        Ok(()) => DONE,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => DONE,
        Err(error) => fail(format!("cannot write the results: {error}")),
    }
}

/// Writes `value` as JSON to standard output, and returns the exit status.
pub(crate) fn print_json(value: &impl serde::Serialize) -> u8 {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(&text),
        Err(error) => fail(format!("cannot write the results: {error}")),
    }
}

/// Tells what failed; the input was right.
pub(crate) fn fail(message: impl Display) -> u8 {
    tell(&format!("error: {message}"));
    FAILED
}

/// Tells what is wrong with the input.
pub(crate) fn refuse(message: impl Display) -> u8 {
    tell(&format!("error: {message}"));
    WRONG_INPUT
}

/// Tells what is allowed but does harm.
pub(crate) fn warn(message: impl Display) {
    tell(&format!("warning: {message}"));
}

/// Tells what is wrong with the scenario, with the place.
pub(crate) fn refuse_scenario(error: &ScenarioError) -> u8 {
    // NO_COLOR as https://no-color.org describes it.
    let color = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    tell(&error.render(color));
    WRONG_INPUT
}

/// Writes a line to standard error; if nobody can read it, nobody is told.
fn tell(text: &str) {
    let _ = writeln!(stderr().lock(), "{text}");
}
