//! Timers and missing answers: errors of paths, failover, and the end of an association (RFC 9260 §8).

use super::{Association, AwaitedReply};
use crate::mechanisms::{HeartbeatAfterTimeout, Revival};
use crate::output::{Event, LostReason};
use crate::path::health::HeartbeatFor;
use crate::path::{PathId, PathState, PathView, Timer, Wanted};
use crate::policy::Why;
use crate::rules::{Failover, GivingUp, HeartbeatErrors, LostHeartbeat, T3Together};
use crate::send::TimedOut;
use crate::shutdown::State;
use crate::wire::chunk::Heartbeat;
use crate::wire::{Address, Cause, Quoted};
use crate::{Duration, Time};

/// The kind of transmission that was not answered on a path.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Unanswered {
    Data,
    Control,
    Heartbeat,
}

impl Association {
    /// Runs every timer that is due.
    pub(crate) fn run_timers(&mut self, now: Time) {
        if self.resend.as_ref().is_some_and(|r| r.timer <= now) {
            self.answer_late(now);
        }
        if self.receiver.sack_deadline() <= now {
            self.receiver.sack_timer_expired(now);
        }
        if self.sender.probe_timer <= now {
            self.sender.probe();
        }
        if self.guard <= now && self.state != State::Closed {
            self.guard = Time::NEVER;
            self.send_abort(vec![Cause::ProtocolViolation(
                b"SHUTDOWN was not answered in time".as_slice().into(),
            )]);
            self.close(Event::Lost(LostReason::TooManyErrors), now);
        }
        for id in self.paths.ids() {
            self.run_path_timers(id, now);
        }
        if self.extended.is_some() && self.state != State::Closed {
            self.extension_timers(now);
        }
    }

    fn run_path_timers(&mut self, id: PathId, now: Time) {
        if self.paths.get(id).timers[Timer::Reordering] <= now && self.state != State::Closed {
            let (sender, mut around, _) = self.sending(now);
            sender.reordering_expired(&mut around);
        }
        // If a tail loss probe and T3-rtx are due together, the probe comes first and T3-rtx an RTO later.
        if self.paths.get(id).timers[Timer::Tail] <= now && self.state != State::Closed {
            let (sender, mut around, _) = self.sending(now);
            sender.tail_due(id, &mut around);
        }
        if self.paths.get(id).timers[Timer::T3] <= now && self.state != State::Closed {
            self.t3_due(id, now);
        }
        if self.paths.get(id).timers[Timer::Idle] <= now && !self.paths.defers_decay(id, now) {
            self.paths.idle(id, !self.sender.outstanding.is_empty(), now, &mut self.notes);
        }
        if self.paths.get(id).timers[Timer::Answer] <= now && self.state != State::Closed {
            self.heartbeat_lost(id, now);
        }
        if self.paths.get(id).timers[Timer::Heartbeat] <= now && self.state != State::Closed {
            self.heartbeat_due(id, now);
        }
        if self.paths.get(id).timers[Timer::Probe] <= now && self.state != State::Closed {
            self.paths.probe_late(id, now, &self.config);
        }
    }

    /// T3-rtx of this path is due, perhaps at the same time as that of another path. If they take turns, this one
    /// expires 1 ns later.
    fn t3_due(&mut self, id: PathId, now: Time) {
        if self.paths.t3_expired == now && self.config.rules.t3_together == T3Together::InTurn {
            self.paths.get_mut(id).timers.set(Timer::T3, now + Duration::from_nanos(1));
        } else {
            self.t3_expired(id, now);
        }
    }

    //= rfc9260#section-6.3.3
    fn t3_expired(&mut self, id: PathId, now: Time) {
        let (sender, mut around, _) = self.sending(now);
        if sender.time_out(id, &mut around) == TimedOut::Error {
            if self.config.mtu_discovery && self.paths.data_lost(id, &self.config) {
                self.request_heartbeat(id);
            }
            self.path_error(id, Unanswered::Data, now);
            self.ask_after_timeout(id, now);
        }
    }

    /// T3-rtx of this path expired. A heartbeat may measure the path, or check whether it still works. It follows the
    /// packets that T3-rtx releases. A heartbeat that would count as lost at this very moment is replaced by it,
    /// because one silence is one error.
    fn ask_after_timeout(&mut self, id: PathId, now: Time) {
        let other = self.paths.views().iter().any(|view| view.id != id && view.carries());
        let measured = self.config.mechanisms.heartbeat_after_timeout == HeartbeatAfterTimeout::On && other;
        let failed = self.paths.view(id).has_failed();
        if measured || (failed && self.asks_at_once(id)) {
            self.paths.ask_after_data(id);
            let timers = &mut self.paths.get_mut(id).timers;
            if timers[Timer::Answer] <= now {
                timers.set(Timer::Answer, Time::NEVER);
            }
        }
    }

    /// A control chunk was not answered within an RTO. This counts like a timeout of data.
    pub(crate) fn control_unanswered(&mut self, id: PathId, now: Time) {
        let limits = self.paths.limits;
        self.paths.view_mut(id).back_off(limits);
        self.paths.note_rto(id, now, None, &mut self.notes);
        self.path_error(id, Unanswered::Control, now);
    }

    /// Marks the data in flight on a path, so that it is sent on another.
    fn vacate(&mut self, id: PathId, now: Time) {
        // A peer can remove idle paths often, and the search takes time in proportion to all that is outstanding.
        if self.paths.view(id).flight > 0 {
            let (sender, around, _) = self.sending(now);
            sender.outstanding.time_out(id, Why::Timeout, around.paths, |_, _| false, |_| {});
        }
        self.paths.get_mut(id).timers.set(Timer::T3, Time::NEVER);
    }

    /// As `vacate`, at once, because the path can no longer be used as it was.
    pub(super) fn evacuate(&mut self, id: PathId, now: Time) {
        let in_flight = self.paths.view(id).flight > 0;
        self.vacate(id, now);
        if in_flight {
            self.sender.send_elsewhere();
        }
    }

    /// Removes the path: its data in flight goes elsewhere, and nothing more is sent on it.
    //= rfc5061#section-5.3
    pub(crate) fn remove_path(&mut self, id: PathId, now: Time) {
        self.evacuate(id, now);
        let was_primary = self.paths.view(id).primary;
        self.paths.close(id);
        self.set_state(id, PathState::Removed);
        let live = |id: &PathId| self.paths.view(*id).state != PathState::Removed;
        let other = self.open_path(self.paths.ids().find(live).unwrap_or(id));
        if was_primary {
            self.paths.set_primary(other);
        }
        if self.sender.in_use == id {
            self.sender.in_use = other;
        }
        if let Some(resend) = self.resend.as_mut().filter(|resend| resend.path == id) {
            resend.path = other;
        }
        self.control.iter_mut().filter(|(path, ..)| *path == id).for_each(|(path, ..)| *path = other);
        self.open_once_verified();
        self.sender.event();
    }

    /// A control chunk was answered.
    pub(crate) fn control_answered(&mut self, id: PathId) {
        self.paths.view_mut(id).errors = 0;
        self.errors = 0;
    }

    /// A path did not answer: counts the error for the path and the association, and acts if a limit is exceeded.
    //= rfc9260#section-8.1
    //= rfc9260#section-8.2
    fn path_error(&mut self, id: PathId, what: Unanswered, now: Time) {
        self.paths.get_mut(id).health.counted = true;
        if !self.paths.view(id).up {
            // A missing answer on a path that this end cannot use says nothing about the peer.
            return;
        }
        let in_use = self.sender.in_use == id;
        let counts = match (self.config.rules.heartbeat_errors, what) {
            (HeartbeatErrors::WhileActive, _) => self.paths.view(id).state != PathState::Inactive,
            (HeartbeatErrors::All, _) | (_, Unanswered::Data | Unanswered::Control) => true,
            (HeartbeatErrors::Confirmed, Unanswered::Heartbeat) => self.counts_as_confirmed(id),
            (HeartbeatErrors::PathInUse, Unanswered::Heartbeat) => in_use,
        };
        self.errors += u32::from(counts);
        let most =
            self.config.most_errors().max(self.paths.get(id).max_retrans(&self.config).saturating_add(1));
        let view = self.paths.view_mut(id);
        view.errors = view.errors.saturating_add(1).min(most);
        let failed = self.failing_state(id);
        if let Some(state) = failed {
            self.set_state(id, state);
            // After T3-rtx, a heartbeat that is sent at once follows the packets: see `ask_after_timeout`.
            let follows = what == Unanswered::Data && self.asks_at_once(id);
            if state == PathState::PotentiallyFailed && self.asks_periodically(id) && !follows {
                self.paths.ask(id);
            }
            self.ask_elsewhere(id);
        }
        self.switch_over(id, failed == Some(PathState::Inactive), now);
        if self.errors > self.config.association_max_retrans {
            self.give_up(LostReason::TooManyErrors, now);
        }
    }

    /// The peer has failed to answer too often: the association ends.
    //= rfc9260#section-8.1
    fn give_up(&mut self, why: LostReason, now: Time) {
        if self.config.rules.giving_up == GivingUp::Abort
            && !matches!(self.state, State::CookieWait | State::Closed)
        {
            self.send_abort(vec![]);
        }
        self.close(Event::Lost(why), now);
    }

    /// Whether periodic heartbeats are sent on this path.
    fn asks_periodically(&self, id: PathId) -> bool {
        self.paths.get(id).heartbeat_interval(&self.config).is_some()
    }

    /// Whether a lost heartbeat is followed by another one at once.
    fn asks_at_once(&self, id: PathId) -> bool {
        self.lost_are_followed() && self.asks_periodically(id)
    }

    fn lost_are_followed(&self) -> bool {
        self.config.rules.lost_heartbeat == LostHeartbeat::AtOnce
    }

    /// Whether a heartbeat that was lost on a failed path says no more than data: T3-rtx of data that is in flight
    /// there will tell, or an error has been counted since the heartbeat left. One silence is one error, so that an
    /// association with potentially failed paths survives the outages that another one survives.
    //= rfc7829#section-3.2
    fn data_tells(&self, id: PathId) -> bool {
        let path = self.paths.get(id);
        let may_fail = self.config.pf_max_retrans.is_some() && self.paths.view(id).has_failed();
        let told = path.health.counted || path.timers[Timer::T3] != Time::NEVER;
        may_fail && told && !self.lost_are_followed()
    }

    /// An address that the user named counts as confirmed. An address that only the peer named does not count before
    /// it is confirmed, and its verification must not end the association.
    //= rfc9260#section-5.4
    fn counts_as_confirmed(&self, id: PathId) -> bool {
        self.paths.view(id).confirmed() || self.paths.get(id).health.named
    }

    /// The state of the path by its number of errors, if it differs from the present state.
    //= rfc7829#section-3.2
    fn failing_state(&self, id: PathId) -> Option<PathState> {
        let view = self.paths.view(id);
        let (dead, failing) = (self.paths.get(id).max_retrans(&self.config), self.config.pf_max_retrans);
        let state = match view.state {
            PathState::Active | PathState::PotentiallyFailed if view.errors > dead => PathState::Inactive,
            PathState::Active if failing.is_some_and(|limit| view.errors > limit) => {
                PathState::PotentiallyFailed
            }
            _ => return None,
        };
        Some(state)
    }

    /// A primary with too many errors is replaced for good by the path that data takes now. `inactive`: it has just
    /// become inactive.
    //= rfc7829#section-5
    fn switch_over(&mut self, failing: PathId, inactive: bool, now: Time) {
        let by_rule = self.config.rules.failover == Failover::Stay;
        let limit = self
            .config
            .primary_switchover_max_retrans
            .or(by_rule.then_some(self.paths.get(failing).max_retrans(&self.config)));
        let view = self.paths.view(failing);
        if !view.primary || limit.is_none_or(|limit| view.errors <= limit) {
            return;
        }
        let (sender, mut around, _) = self.sending(now);
        if let Some(next) = sender.next_path(&mut around) {
            let dormant = self.paths.next_dormant(next).filter(|_| inactive);
            self.paths.set_primary(dormant.unwrap_or(next));
        }
    }

    /// The path may have been used since the heartbeat was scheduled; then it is not idle yet.
    //= rfc9260#section-8.3
    fn heartbeat_due(&mut self, id: PathId, now: Time) {
        let (_, path) = self.paths.both(id);
        let due = path.health.used + path.health.period;
        if due > now {
            path.timers.set(Timer::Heartbeat, due);
        } else {
            path.timers.set(Timer::Heartbeat, Time::NEVER);
            self.paths.ask(id);
        }
    }

    /// A heartbeat was not answered within an RTO.
    //= rfc9260#section-8.3
    fn heartbeat_lost(&mut self, id: PathId, now: Time) {
        let (view, path) = self.paths.both(id);
        path.timers.set(Timer::Answer, Time::NEVER);
        let verifying = view.state == PathState::Unconfirmed;
        let failing = view.state == PathState::PotentiallyFailed;
        if verifying && path.health.verification_failed() {
            self.try_next_local(id);
        }
        if !self.data_tells(id) {
            let limits = self.paths.limits;
            self.paths.view_mut(id).back_off(limits);
            self.paths.note_rto(id, now, None, &mut self.notes);
            self.path_error(id, Unanswered::Heartbeat, now);
        }
        // Data waits for an answer from any path, because there is no other way to learn that the peer is back.
        let needed = !self.sender.is_open() && !self.paths.views().iter().any(PathView::confirmed);
        let at_once = self.asks_at_once(id);
        let (view, path) = self.paths.both(id);
        // A path that is being verified or is failing is probed once per RTO, until it has failed too often.
        let asked = verifying || (failing && path.heartbeat_interval(&self.config).is_some());
        if at_once || (asked && (needed || view.errors <= path.max_retrans(&self.config))) {
            self.paths.ask(id);
        } else {
            path.schedule_next_heartbeat(view, &self.config, &mut self.chance);
        }
        self.open_once_verified();
    }

    //= rfc9260#section-8.3
    pub(super) fn heartbeat_ack(&mut self, heartbeat: &Heartbeat, now: Time) {
        let Some((id, asked)) = self.paths.answered(&heartbeat.info) else { return };
        if asked.local != self.paths.view(id).local {
            if asked.what != HeartbeatFor::Life || !self.may_move(id, asked.local) {
                return;
            }
            self.move_to(id, asked.local, now);
        }
        match asked.what {
            HeartbeatFor::Life => {}
            HeartbeatFor::Size(size) => return self.paths.probe_answered(id, size, now, &self.config),
            of => return self.paths.pair_answered(id, of, now),
        }
        let rtt = now.since(asked.at);
        self.paths.measure(id, rtt);
        self.paths.estimate_from_heartbeat(id, rtt, now);
        let (view, path) = self.paths.both(id);
        view.errors = 0;
        self.detour.answered(id);
        view.heartbeats_answered += 1;
        path.timers.set(Timer::Answer, Time::NEVER);
        if self.state.heartbeats() {
            path.schedule_next_heartbeat(view, &self.config, &mut self.chance);
            // The answer may come later than the time at which the next heartbeat is due.
            if path.timers[Timer::Heartbeat] <= now {
                self.heartbeat_due(id, now);
            }
        }
        self.errors = 0;
        self.paths.note_rto(id, now, Some(rtt), &mut self.notes);
        self.paths.small_came_through(id, now, &self.config);
        self.paths.resume_search(id);
        let before = self.paths.view(id).state;
        if before != PathState::Active {
            self.set_state(id, PathState::Active);
            if before == PathState::Unconfirmed {
                self.paths.search_mtu(id, &self.config);
            }
            self.sender.event();
            self.revived_by_heartbeat(id, before, now);
        }
        self.open_once_verified();
    }

    /// By the rule `AllPathsFirst`, data waits for the verification of all paths. Verification ends with an answer,
    /// or with as many errors as make a path inactive. Data needs at least one path that has answered.
    pub(super) fn open_once_verified(&mut self) {
        if self.sender.is_open() || !self.state.sends_data() {
            return;
        }
        let ended = |view: &PathView| {
            let failed = view.errors > self.paths.get(view.id).max_retrans(&self.config);
            view.confirmed() || view.state == PathState::Removed || failed || !view.up
        };
        let views = self.paths.views();
        if views.iter().all(ended) && views.iter().any(PathView::confirmed) {
            self.sender.in_use = self.open_path(self.sender.in_use);
            self.sender.open();
        }
    }

    /// An inactive or potentially failed path has answered a heartbeat.
    fn revived_by_heartbeat(&mut self, id: PathId, before: PathState, now: Time) {
        if let (PathState::PotentiallyFailed, Some(packets)) = (before, self.config.pf_window) {
            self.paths.reopen(id, packets, now, &mut self.notes);
        }
        let failed = matches!(before, PathState::PotentiallyFailed | PathState::Inactive);
        if failed && self.config.mechanisms.revival == Revival::Resend {
            self.vacate(id, now);
            self.sender.resume();
        }
    }

    pub(super) fn stop_heartbeats(&mut self) {
        for id in self.paths.ids() {
            let path = self.paths.get_mut(id);
            path.health.wanted = Wanted::No;
            path.timers.set(Timer::Heartbeat, Time::NEVER);
            path.timers.set(Timer::Answer, Time::NEVER);
        }
    }

    /// INIT, COOKIE ECHO, SHUTDOWN or SHUTDOWN ACK was not answered in time: it is repeated on the next path.
    fn answer_late(&mut self, now: Time) {
        let limits = self.paths.limits;
        let Some(resend) = &mut self.resend else { return };
        let setting_up = matches!(resend.what, AwaitedReply::Init | AwaitedReply::CookieEcho(_));
        let max =
            if setting_up { self.config.max_init_retransmits } else { self.config.association_max_retrans };
        resend.tries += 1;
        if resend.tries > max {
            let why = if setting_up { LostReason::NoAnswer } else { LostReason::TooManyErrors };
            return self.give_up(why, now);
        }
        let late = resend.path;
        self.paths.view_mut(late).back_off(limits);
        self.paths.note_rto(late, now, None, &mut self.notes);
        let next = self.next_to_ask(late).unwrap_or(late);
        let rto = self.paths.view(late).rto;
        if self.paths.view(next).rto < rto {
            self.paths.view_mut(next).rto = rto;
            self.paths.note_rto(next, now, None, &mut self.notes);
        }
        self.ask_again_on(next);
    }

    /// The next path for a control chunk that was not answered on this path. Only confirmed paths are used (§5.4);
    /// during set-up, the addresses that the user named count as confirmed.
    //= rfc9260#section-5.1
    fn next_to_ask(&self, late: PathId) -> Option<PathId> {
        let paths = self.paths.views().len() as u16;
        let asked = |id: &PathId| {
            let health = &self.paths.get(*id).health;
            let named = self.state.setting_up() && health.named && !health.refused;
            named || self.paths.view(*id).confirmed()
        };
        (1..=paths).map(|n| PathId((late.0 + n) % paths)).find(asked)
    }

    fn ask_again_on(&mut self, path: PathId) {
        if let Some(resend) = &mut self.resend {
            (resend.path, resend.due, resend.timer) = (path, true, Time::NEVER);
        }
    }

    /// An ICMP error reported that this address of the peer does not accept SCTP. During set-up, if the quoted packet
    /// has the right tag, the next address is tried at once; if there is none, set-up has failed. Later, such errors
    /// are not trusted, and unanswered chunks time out.
    //= rfc9260#section-10
    pub(crate) fn unreachable(&mut self, remote: Address, quoted: Quoted, now: Time) {
        let ours = match self.state {
            State::CookieWait => quoted.tag == 0 && quoted.initiate_tag == Some(self.local_tag),
            State::CookieEchoed => quoted.tag == self.peer_tag,
            _ => false,
        };
        let Some(asked) = self.resend.as_ref().map(|resend| resend.path).filter(|_| ours) else { return };
        for id in self.paths.ids() {
            if self.paths.view(id).remote == remote {
                self.paths.get_mut(id).health.refused = true;
            }
        }
        if self.paths.view(asked).remote != remote {
            return;
        }
        match self.next_to_ask(asked) {
            Some(next) => self.ask_again_on(next),
            None => self.close(Event::Lost(LostReason::Unreachable), now),
        }
    }
}
