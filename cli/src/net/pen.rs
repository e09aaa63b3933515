//! Output for which nobody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use crate::output::note;

/// The largest number of lines that wait to be read.
const MOST: usize = 4096;
/// The time in which they are read at the end, or never.
const FAREWELL: Duration = Duration::from_secs(1);

type Line = Box<dyn FnOnce() + Send>;

/// A thread that writes the lines of one stream. A reader that pauses blocks this thread, not the associations.
#[derive(Clone)]
pub(super) struct Pen {
    lines: SyncSender<Line>,
    /// Lines for which there was no room since the last one that was written.
    lost: Arc<AtomicUsize>,
}

impl Pen {
    pub(super) fn new() -> Pen {
        let (lines, waiting) = sync_channel::<Line>(MOST);
        let lost = Arc::new(AtomicUsize::new(0));
        let pen = Pen { lines, lost: Arc::clone(&lost) };
        thread::spawn(move || {
            for write in waiting {
                write();
                let lost = lost.swap(0, Ordering::Relaxed);
                if lost > 0 {
                    note(format!("warning: {lost} lines of output are lost: nobody read them in time"));
                }
            }
        });
        pen
    }

    /// Has the thread write a line; it is lost if too many wait already.
    pub(super) fn write(&self, line: impl FnOnce() + Send + 'static) {
        if self.lines.try_send(Box::new(line)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits a moment until everything is written.
    pub(super) fn finish(&self) {
        let (written, all) = channel();
        let last = move || {
            // Nobody may wait any more.
            let _ = written.send(());
        };
        if self.lines.try_send(Box::new(last)).is_ok() {
            let _ = all.recv_timeout(FAREWELL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines are written in their order. While one cannot be written, the next wait, and what is too much is lost.
    #[test]
    fn nobody_waits_for_a_reader() {
        let pen = Pen::new();
        let (reader, read) = channel::<()>();
        let (written, lines) = channel();
        let first = written.clone();
        pen.write(move || {
            let _ = read.recv();
            first.send(0).expect("the test reads");
        });
        for line in 1..2 * MOST {
            let written = written.clone();
            pen.write(move || written.send(line).expect("the test reads"));
        }
        assert!(pen.lost.load(Ordering::Relaxed) >= MOST - 1);
        reader.send(()).expect("the pen waits");
        let lines: Vec<usize> = (0..MOST).map(|_| lines.recv().expect("it is written")).collect();
        assert!(lines.is_sorted(), "{lines:?}");
        pen.finish();
    }
}
