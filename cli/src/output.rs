//! Standard output and standard error. Nothing else in this program writes to them (a test checks this), and all text
//! is made printable here: text from a peer or a file may contain control characters that a terminal would obey.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, StdoutLock, Write, stderr, stdout};
use std::sync::{Mutex, PoisonError};

use anabranch_proto::{is_printable, printable};
use anabranch_sim::scenario::ScenarioError;

use crate::{DONE, FAILED, WRONG_INPUT};

/// Writes `text` and a line end to standard output, and returns the exit status. It is no failure if the reader has
/// closed the pipe (`anabranch … | head`).
pub(crate) fn print(text: &str) -> u8 {
    write(&lines(text))
}

fn write(text: &str) -> u8 {
    let mut out = stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n"));
    match written.and_then(|()| out.flush()) {
        Ok(()) => DONE,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => DONE,
        Err(error) => fail(format!("cannot write the results: {error}")),
    }
}

/// Writes `value` as JSON to standard output, and returns the exit status.
pub(crate) fn print_json(value: &impl serde::Serialize) -> u8 {
    match serde_json::to_string_pretty(value) {
        Ok(text) => write(&json_lines(&text)),
        Err(error) => fail(format!("cannot write the results: {error}")),
    }
}

/// Writes `value` as JSON on one line of standard output, and returns the exit status.
pub(crate) fn print_json_line(value: &impl serde::Serialize) -> u8 {
    match serde_json::to_string(value) {
        Ok(text) => write(&json_lines(&text)),
        Err(error) => fail(format!("cannot write the results: {error}")),
    }
}

/// Writes a line of a log, text or JSON, to standard output or standard error. A failure to write is ignored.
pub(crate) fn log(line: &str, json: bool, to_standard_error: bool) {
    let line = if json { json_lines(line) } else { lines(line) };
    match to_standard_error {
        true => tell_raw(&line),
        false => drop(writeln!(stdout().lock(), "{line}")),
    }
}

/// Reports a failure that is not the fault of the input.
pub(crate) fn fail(message: impl Display) -> u8 {
    tell(&format!("error: {message}"));
    FAILED
}

/// Reports a fault in the input.
pub(crate) fn refuse(message: impl Display) -> u8 {
    tell(&format!("error: {message}"));
    WRONG_INPUT
}

/// Warns of a setting that is allowed but harmful: once, although several runs or associations may have it.
pub(crate) fn warn(message: impl Display) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let message = format!("warning: {message}");
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(message.clone()) {
        tell(&message);
    }
}

/// Reports what is wrong with the scenario, and where.
pub(crate) fn refuse_scenario(error: &ScenarioError) -> u8 {
    // NO_COLOR as https://no-color.org describes it.
    let color = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    // This is text of the user's own file, with colours. Control characters in it have been replaced already.
    tell_raw(&error.render(color));
    WRONG_INPUT
}

/// Whether standard error is a terminal, so that a progress bar can be drawn on it.
pub(crate) fn on_terminal() -> bool {
    stderr().is_terminal()
}

/// Prints a message that is not an error on standard error.
pub(crate) fn note(message: impl Display) {
    tell(&message.to_string());
}

/// Writes many lines to standard output.
pub(crate) struct Lines(BufWriter<StdoutLock<'static>>);

impl Lines {
    pub(crate) fn new() -> Lines {
        Lines(BufWriter::new(stdout().lock()))
    }

    /// Writes one line.
    pub(crate) fn text(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.0, "{}", printable(line))
    }

    /// Writes `value` as JSON on one line.
    pub(crate) fn json(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        let text = serde_json::to_string(value)?;
        writeln!(self.0, "{}", json_lines(&text))
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes a line to standard error. A failure to write is ignored.
fn tell(text: &str) {
    tell_raw(&lines(text));
}

fn tell_raw(text: &str) {
    let _ = writeln!(stderr().lock(), "{text}");
}

/// `text` with everything but its line ends made printable.
fn lines(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| c == '\n' || is_printable(c)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.split('\n').map(printable).collect::<Vec<_>>().join("\n"))
}

/// The same JSON in printable characters. Unprintable characters can only stand in strings, where JSON has an escape
/// for each.
fn json_lines(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| c == '\n' || is_printable(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c == '\n' || is_printable(c) {
            true => shown.push(c),
            false => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            }
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_and_nothing_else_happens() {
        assert_eq!(lines("a\nb → c"), "a\nb → c");
        assert_eq!(lines("a\u{1b}[2J\n\u{202e}b"), "a\\u{1b}[2J\n\\u{202e}b");
    }

    #[test]
    fn json_says_the_same() {
        let said = "\u{1b}[2J\u{202e}\u{7f}\u{e0001} → \n\\";
        let text = serde_json::to_string_pretty(&[said]).unwrap();
        let shown = json_lines(&text);
        assert!(shown.chars().all(|c| c == '\n' || is_printable(c)), "{shown}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap(), [said]);
    }
}
