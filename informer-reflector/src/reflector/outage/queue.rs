//! [`Queue`]: the waiters of an outage and the order of their requests, without lock and clock.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::OutageFailures;

/// The minimum of [`Waiter::spacing`].
pub(super) const MIN_SPACING: Duration = Duration::from_millis(300);

/// The maximum of [`Waiter::spacing`].
pub(super) const MAX_SPACING: Duration = Duration::from_secs(5);

/// The maximum number of extra permissions that a reflector's first response after an outage
/// creates. No more are created than there are waiters.
const EXTRA_PER_RESPONSE: usize = 2;

#[derive(Default)]
pub(super) struct Queue {
    pub(super) waiters: Vec<Waiter>,
    next_id: u64,
    last_turn: Option<Instant>,
    /// The number of available extra permissions: those that no waiter has.
    extra_permissions: usize,
    /// The notifications of the waiters that must wake. The caller takes them, and sends them when
    /// the queue is unlocked.
    pub(super) to_wake: Vec<Arc<Notify>>,
}

/// A reflector that waits to send its request to the unavailable server.
pub(super) struct Waiter {
    pub(super) id: u64,
    since: Instant,
    pub(super) only_own_resource: bool,
    /// The time by which waiters are sorted. The longer a reflector has been failing, the later is
    /// this time, so that a permanent failure hardly delays other reflectors.
    sort_time: Instant,
    /// The end of the wait that the server requested (`Retry-After`), or the time of joining the
    /// queue if it requested none. The waiter receives no permission before this time.
    retry_after_until: Instant,
    /// The end of the backoff. Before it, the reflector can send a request only with an extra
    /// permission.
    pub(super) ready_at: Instant,
    pub(super) permission: Option<Permission>,
    wake: Arc<Notify>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permission {
    Turn,
    Extra,
}

impl Waiter {
    /// Returns the key that orders the waiters: the waiter with the lowest key is first. Waiters
    /// for whom only their own resource is unavailable come last.
    fn rank(&self) -> (bool, Instant, u64) {
        (self.only_own_resource, self.sort_time, self.id)
    }

    /// Returns the minimum pause before this waiter's turn, measured from the last turn of any
    /// waiter. The longer the reflector has been failing, the longer is the pause.
    fn spacing(&self, now: Instant) -> Duration {
        (now.saturating_duration_since(self.since) / 5).clamp(MIN_SPACING, MAX_SPACING)
    }

    /// Gives this waiter a permission, and returns the notification that wakes its task.
    fn permit(&mut self, permission: Permission) -> Arc<Notify> {
        self.permission = Some(permission);
        Arc::clone(&self.wake)
    }
}

impl Queue {
    /// Adds a reflector whose last request has failed. Returns the ID of its entry, and the
    /// notification that wakes its task.
    pub(super) fn join(&mut self, failures: &OutageFailures, now: Instant) -> (u64, Arc<Notify>) {
        // The request has failed, so the server can still be unavailable.
        self.extra_permissions = 0;
        let id = self.next_id;
        self.next_id += 1;
        let wake = Arc::new(Notify::new());
        self.waiters.push(Waiter {
            id,
            since: failures.since,
            only_own_resource: failures.only_own_resource,
            sort_time: now + now.saturating_duration_since(failures.since),
            retry_after_until: now + failures.retry_after_server,
            ready_at: now + failures.wait.max(failures.retry_after_server),
            permission: None,
            wake: Arc::clone(&wake),
        });
        (id, wake)
    }

    /// Removes a reflector. An unused permission passes to the next reflector.
    pub(super) fn leave(&mut self, id: u64, has_used_permission: bool) {
        let Some(position) = self.waiters.iter().position(|waiter| waiter.id == id) else { return };
        match self.waiters.remove(position).permission {
            Some(Permission::Turn) if !has_used_permission => self.last_turn = None,
            Some(Permission::Extra) if !has_used_permission => self.extra_permissions += 1,
            _ => {}
        }
        // The removed waiter was possibly the first one. The waiter that is the first now must wake
        // to grant turns.
        if let Some(first) = self.first(|_| true) {
            let wake = Arc::clone(&first.wake);
            self.to_wake.push(wake);
        }
    }

    /// Returns the first reflector that has no permission and satisfies the condition.
    fn first(&mut self, condition: impl Fn(&Waiter) -> bool) -> Option<&mut Waiter> {
        let waiting =
            self.waiters.iter_mut().filter(|waiter| waiter.permission.is_none() && condition(waiter));
        waiting.min_by_key(|waiter| waiter.rank())
    }

    /// Grants a turn to the first reflector whose backoff is over, if enough time has passed since
    /// the last turn.
    pub(super) fn grant_turn(&mut self, now: Instant) {
        let last_turn = self.last_turn;
        let first = self.first(|waiter| waiter.ready_at <= now);
        if let Some(first) = first
            && last_turn.is_none_or(|last| last + first.spacing(now) <= now)
        {
            let wake = first.permit(Permission::Turn);
            self.to_wake.push(wake);
            self.last_turn = Some(now);
        }
    }

    /// Gives the available extra permissions to the first waiters whose `Retry-After` is over.
    /// Permissions without such a waiter stay available.
    pub(super) fn grant_extra(&mut self, now: Instant) {
        while self.extra_permissions > 0 {
            let Some(first) = self.first(|waiter| waiter.retry_after_until <= now) else { return };
            let wake = first.permit(Permission::Extra);
            self.to_wake.push(wake);
            self.extra_permissions -= 1;
        }
    }

    /// Makes up to two more extra permissions available, lets the next turn follow without a pause,
    /// and wakes all waiters.
    pub(super) fn permit_more(&mut self, now: Instant) {
        self.last_turn = None;
        self.extra_permissions = (self.extra_permissions + EXTRA_PER_RESPONSE).min(self.waiters.len());
        self.grant_extra(now);
        // All waiters must compute again when to check for a permission.
        self.to_wake.extend(self.waiters.iter().map(|waiter| Arc::clone(&waiter.wake)));
    }

    /// Returns the next wake-up of reflector `id`, and the expected time of its request.
    /// - At the wake-up, the reflector's task calls [`grant_extra`](Self::grant_extra) and
    ///   [`grant_turn`](Self::grant_turn). Every waiting task does this, so the permissions can go
    ///   to any waiters.
    /// - The expected time is an estimate, because other waiters can join or leave the queue.
    pub(super) fn next_wake(&self, id: u64, now: Instant) -> (Instant, Instant) {
        let Some(own) = self.waiters.iter().find(|waiter| waiter.id == id) else { return (now, now) };
        let before = self.waiters.iter().filter(|waiter| {
            waiter.permission.is_none()
                && waiter.ready_at <= own.ready_at.max(now)
                && waiter.rank() < own.rank()
        });
        let before = u32::try_from(before.count()).unwrap_or(u32::MAX);
        // The earliest time for a turn. Turns of other waiters can delay it.
        let turn = own.ready_at.max(self.last_turn.map_or(now, |last| last + own.spacing(now)));
        // The time can have passed: a waiter with a longer spacing comes first and is not due yet.
        let expected = (turn + own.spacing(now).saturating_mul(before)).max(now);
        let wake_at = if self.extra_permissions > 0 && own.retry_after_until > now {
            own.retry_after_until
        } else {
            turn
        };
        (wake_at.max(now), expected)
    }
}
