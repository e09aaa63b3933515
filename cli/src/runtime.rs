//! The asynchronous runtime of a command, and the signals to end it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use tokio::runtime::{Builder, Runtime};

use crate::output::fail;
use crate::{HUNG_UP, INTERRUPTED, TERMINATED};

/// Runs a command, which receives every signal to end, and returns its exit status.
pub(crate) fn in_runtime(command: impl AsyncFnOnce(&mut Interrupts) -> u8) -> u8 {
    match runtime() {
        Ok((runtime, mut interrupts)) => runtime.block_on(command(&mut interrupts)),
        Err(error) => fail(format!("the system gives no runtime: {error}")),
    }
}

/// Calls `tell` with the exit status for each Ctrl-C, SIGTERM and SIGHUP from now on. If the system allows no handler,
/// such a signal ends the process at once.
pub(crate) fn on_interrupt(mut tell: impl FnMut(u8) + Send + 'static) {
    let Ok((runtime, mut interrupts)) = runtime() else { return };
    std::thread::spawn(move || {
        runtime.block_on(async {
            loop {
                tell(interrupts.next().await);
            }
        });
    });
}

/// Whether a signal asked long work to stop.
pub(crate) struct Stop {
    pub(crate) asked: AtomicBool,
    status: AtomicU8,
}

impl Stop {
    /// Ctrl-C, SIGTERM or SIGHUP asks for it from now on.
    pub(crate) fn on_interrupt() -> Arc<Self> {
        let stop = Arc::new(Self { asked: AtomicBool::new(false), status: AtomicU8::new(INTERRUPTED) });
        let asked = stop.clone();
        on_interrupt(move |status| {
            asked.status.store(status, Ordering::Relaxed);
            asked.asked.store(true, Ordering::Relaxed);
        });
        stop
    }

    /// The exit status for the signal.
    pub(crate) fn status(&self) -> u8 {
        self.status.load(Ordering::Relaxed)
    }
}

/// A runtime, and the signals that it receives.
fn runtime() -> io::Result<(Runtime, Interrupts)> {
    signals::reserve()?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let interrupts = {
        let _entered = runtime.enter();
        Interrupts { keyboard: signals::keyboard()?, system: signals::end()?, hangup: signals::hangup()? }
    };
    Ok((runtime, interrupts))
}

/// Receives every Ctrl-C, SIGTERM and SIGHUP from now on, so that none is missed.
pub(crate) struct Interrupts {
    keyboard: signals::Keyboard,
    system: signals::End,
    /// `None` if this program does not handle SIGHUP.
    hangup: Option<signals::Hangup>,
}

impl Interrupts {
    /// Waits for the next signal; returns the exit status for it.
    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.keyboard.recv() => INTERRUPTED,
            _ = self.system.recv() => TERMINATED,
            () = async {
                match &mut self.hangup {
                    Some(hangup) => drop(hangup.recv().await),
                    None => std::future::pending().await,
                }
            } => HUNG_UP,
        }
    }
}

#[cfg(unix)]
mod signals {
    use std::io;
    use std::os::unix::net::UnixStream;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    pub(super) type Keyboard = Signal;
    pub(super) type End = Signal;
    pub(super) type Hangup = Signal;

    /// An error if there are too few descriptors for a runtime. It needs as many as three pairs of sockets, and panics
    /// if it finds none for the pair that tells it of signals.
    pub(super) fn reserve() -> io::Result<()> {
        let pairs: io::Result<Vec<_>> = (0..3).map(|_| UnixStream::pair()).collect();
        pairs.map(drop)
    }

    pub(super) fn keyboard() -> io::Result<Keyboard> {
        signal(SignalKind::interrupt())
    }

    pub(super) fn end() -> io::Result<End> {
        signal(SignalKind::terminate())
    }

    /// The terminal is closed. Whoever starts a program with this signal ignored (nohup) wants it to go on.
    pub(super) fn hangup() -> io::Result<Option<Hangup>> {
        if is_hangup_ignored() { Ok(None) } else { signal(SignalKind::hangup()).map(Some) }
    }

    /// Whether SIGHUP, signal 1, is ignored. Only Linux tells without unsafe code.
    fn is_hangup_ignored() -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        ignored.is_none_or(|mask| mask & 1 != 0)
    }
}

/// Windows has no SIGTERM; it tells that the window of the program is closed.
#[cfg(windows)]
mod signals {
    pub(super) use tokio::signal::windows::{
        CtrlC as Keyboard, CtrlClose as End, CtrlClose as Hangup, ctrl_c as keyboard, ctrl_close as end,
    };

    pub(super) fn hangup() -> std::io::Result<Option<Hangup>> {
        Ok(None)
    }

    pub(super) fn reserve() -> std::io::Result<()> {
        Ok(())
    }
}
