//! Output for which nobody waits.

#![allow(clippy::disallowed_methods, reason = "whoever reads it has a real clock")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::output::note;

/// The largest number of lines that wait to be read.
const MOST: usize = 4096;
/// The time in which they are read at the end, or never.
const FAREWELL: Duration = Duration::from_secs(1);

type Line = Box<dyn FnOnce() + Send>;

/// A thread that writes the lines of one stream. A reader that pauses stops it, and no association.
#[derive(Clone)]
pub(super) struct Pen {
    lines: SyncSender<Line>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    waiting: AtomicUsize,
    lost: AtomicUsize,
}

impl Pen {
    pub(super) fn new() -> Pen {
        let (lines, waiting) = sync_channel::<Line>(MOST);
        let counts = Arc::new(Counts::default());
        let pen = Pen { lines, counts: Arc::clone(&counts) };
        thread::spawn(move || {
            for write in waiting {
                write();
                counts.waiting.fetch_sub(1, Ordering::AcqRel);
                let lost = counts.lost.swap(0, Ordering::AcqRel);
                if lost > 0 {
                    note(format!("warning: {lost} lines of output are lost: nobody read them in time"));
                }
            }
        });
        pen
    }

    /// Has the thread write a line; it is lost if too many wait already.
    pub(super) fn write(&self, line: impl FnOnce() + Send + 'static) {
        self.counts.waiting.fetch_add(1, Ordering::AcqRel);
        if self.lines.try_send(Box::new(line)).is_err() {
            self.counts.waiting.fetch_sub(1, Ordering::AcqRel);
            self.counts.lost.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Waits a moment until everything is written.
    pub(super) fn finish(&self) {
        let begun = Instant::now();
        while self.counts.waiting.load(Ordering::Acquire) > 0 && begun.elapsed() < FAREWELL {
            thread::sleep(Duration::from_millis(2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

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
        assert!(pen.counts.lost.load(Ordering::Acquire) >= MOST - 1);
        reader.send(()).expect("the pen waits");
        pen.finish();
        let lines: Vec<usize> = lines.try_iter().collect();
        assert!(lines.len() >= MOST && lines.is_sorted(), "{} lines", lines.len());
    }
}
