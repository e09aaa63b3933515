//! The terminal view of `--watch`: paths, windows and rates while a run or a transfer goes on.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "what people watch has their clock")]

mod picture;
mod run;

use std::io::{self, Stderr, stderr};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

pub(crate) use picture::{PathLine, Picture, Rates};
pub(crate) use run::watch;

use crate::output::{on_terminal, refuse};

/// A key with a meaning.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Key {
    /// `q`: closes the view; the run or transfer continues.
    Leave,
    /// Ctrl-C.
    Interrupt,
    /// The space bar.
    Pause,
    Faster,
    Slower,
}

/// The terminal while the view uses it; restored when this value is dropped.
pub(crate) struct Screen(Terminal<CrosstermBackend<Stderr>>);

impl Screen {
    /// Opens the view, or returns the exit status of a failure.
    pub(crate) fn open() -> Result<Screen, u8> {
        let refused = |error: io::Error| refuse(format!("--watch: the terminal cannot be used: {error}"));
        if !on_terminal() {
            return Err(refuse("--watch draws on standard error, which is no terminal"));
        }
        enable_raw_mode().map_err(refused)?;
        execute!(stderr(), EnterAlternateScreen).map_err(refused)?;
        Terminal::new(CrosstermBackend::new(stderr())).map(Screen).map_err(refused)
    }

    /// Draws the picture. Failures of the terminal are ignored, so that they do not stop the work.
    pub(crate) fn draw(&mut self, picture: &Picture) {
        let _ = self.0.draw(|frame| picture.draw(frame));
    }

    /// The next key with a meaning, if one is pressed within this time.
    pub(crate) fn key(&self, within: Duration) -> Option<Key> {
        if !event::poll(within).ok()? {
            return None;
        }
        let Event::Key(key) = event::read().ok()? else { return None };
        match key.code {
            _ if key.kind == KeyEventKind::Release => None,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Interrupt),
            KeyCode::Char('q') | KeyCode::Esc => Some(Key::Leave),
            KeyCode::Char(' ') => Some(Key::Pause),
            KeyCode::Char('+' | '=') => Some(Key::Faster),
            KeyCode::Char('-') => Some(Key::Slower),
            _ => None,
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = disable_raw_mode();
        let _ = execute!(stderr(), LeaveAlternateScreen);
    }
}
