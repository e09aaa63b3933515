//! Virtual time for stacks that want [`Instant`]s.

use std::time::Instant;

use anabranch_proto::{Duration, Time};

/// The instant at which virtual time is zero. Only differences matter, so no result depends on the clock.
#[derive(Copy, Clone)]
pub struct Epoch(Instant);

impl Epoch {
    pub fn new() -> Self {
        Epoch(Instant::now())
    }

    pub fn instant(self, time: Time) -> Instant {
        self.0 + Duration::from_nanos(time.as_nanos())
    }

    pub fn time(self, instant: Instant) -> Time {
        Time::ZERO + instant.saturating_duration_since(self.0)
    }
}
