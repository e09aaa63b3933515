//! The asynchronous runtime of a command, and the signals to end it.

use crate::output::fail;
use crate::{INTERRUPTED, TERMINATED};

/// Runs a command, which receives every signal to end, and returns its exit status.
pub(crate) fn in_runtime(command: impl AsyncFnOnce(&mut Interrupts) -> u8) -> u8 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime.and_then(|runtime| {
        runtime.block_on(async {
            let mut interrupts = Interrupts { keyboard: signals::keyboard()?, system: signals::end()? };
            Ok(command(&mut interrupts).await)
        })
    });
    result.unwrap_or_else(|error| fail(format!("the system gives no runtime: {error}")))
}

/// Receives every Ctrl-C and every SIGTERM from now on, so that none is missed.
pub(crate) struct Interrupts {
    keyboard: signals::Keyboard,
    system: signals::End,
}

impl Interrupts {
    /// Waits for the next signal; returns the exit status for it.
    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.keyboard.recv() => INTERRUPTED,
            _ = self.system.recv() => TERMINATED,
        }
    }
}

#[cfg(unix)]
mod signals {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    pub(super) type Keyboard = Signal;
    pub(super) type End = Signal;

    pub(super) fn keyboard() -> io::Result<Keyboard> {
        signal(SignalKind::interrupt())
    }

    pub(super) fn end() -> io::Result<End> {
        signal(SignalKind::terminate())
    }
}

/// Windows has no SIGTERM; it tells that the window of the program is closed.
#[cfg(windows)]
mod signals {
    pub(super) use tokio::signal::windows::{
        CtrlC as Keyboard, CtrlClose as End, ctrl_c as keyboard, ctrl_close as end,
    };
}
