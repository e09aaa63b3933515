//! When the heartbeats of a path leave (RFC 9260 §8.3).

use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

use super::{Path, PathView, Timer};
use crate::rules::NextHeartbeat;
use crate::{Config, Duration, Time};

impl Path {
    /// Sets the time of the next heartbeat: HB.interval and an RTO after the path was last used, jittered by
    /// half an RTO either way.
    //= rfc9260#section-8.3
    pub(crate) fn schedule_heartbeat(&mut self, view: &PathView, config: &Config, chance: &mut ChaCha8Rng) {
        let Some(interval) = self.heartbeat_interval(config) else {
            self.timers.set(Timer::Heartbeat, Time::NEVER);
            return;
        };
        let more = jittered(view.rto, config.heartbeat_jitter, chance);
        self.health.period = interval.saturating_add(more);
        self.timers.set(Timer::Heartbeat, self.health.used + self.health.period);
    }

    /// A heartbeat is sent now.
    pub(crate) fn heartbeat_sent(
        &mut self,
        view: &PathView,
        now: Time,
        config: &Config,
        chance: &mut ChaCha8Rng,
    ) {
        let repeats = self.timers[Timer::Heartbeat] != Time::NEVER;
        if draws_when_sent(config) && repeats {
            return;
        }
        self.health.used = now;
        self.timers.set(Timer::Heartbeat, Time::NEVER);
        if draws_when_sent(config) {
            self.schedule_heartbeat(view, config, chance);
        }
    }

    /// A heartbeat was answered, or counts as lost.
    pub(crate) fn schedule_next_heartbeat(
        &mut self,
        view: &PathView,
        config: &Config,
        chance: &mut ChaCha8Rng,
    ) {
        if !draws_when_sent(config) || self.timers[Timer::Heartbeat] == Time::NEVER {
            self.schedule_heartbeat(view, config, chance);
        }
    }
}

fn draws_when_sent(config: &Config) -> bool {
    config.rules.next_heartbeat == NextHeartbeat::WhenSent
}

fn jittered(rto: Duration, jitter: bool, chance: &mut ChaCha8Rng) -> Duration {
    if !jitter {
        return rto;
    }
    let rto = rto.as_nanos() as u64;
    Duration::from_nanos(rto / 2 + chance.next_u64() % rto.max(1))
}
