//! What a bench took, whatever else the machine does.

#![allow(clippy::disallowed_types, reason = "a benchmark reads the machine's clock")]

use std::time::Instant;

/// Time that this thread was on a processor, in seconds; where the system does not tell, time that has passed.
pub(crate) struct Cpu(Option<u64>, Instant);

impl Cpu {
    pub(crate) fn now() -> Cpu {
        // The kernel brings its account up to date when a thread gives way.
        std::thread::yield_now();
        let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
        Cpu(told.and_then(|text| text.split(' ').next()?.parse().ok()), Instant::now())
    }

    /// Seconds since then.
    pub(crate) fn elapsed(&self) -> f64 {
        match (self.0, Cpu::now().0) {
            (Some(before), Some(now)) => (now - before) as f64 / 1e9,
            _ => self.1.elapsed().as_secs_f64(),
        }
    }
}
