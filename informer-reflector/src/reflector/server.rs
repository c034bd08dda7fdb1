//! [`SharedServer`]: what the reflectors of one client know together about their server.
//!
//! Two things. Which resources it can't stream lists of: one of them finds out, and the others needn't. And that it is
//! away: then all of them together ask about as often as a few would, instead of each on its own clock; and as soon as
//! one gets an answer, all go on. client-go has neither, so that N informers retry N times as often in an outage.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

/// How long streaming lists are not tried again where they have been of no use: between this and three times as long, so
/// that a server that has been upgraded is noticed before long, and not by all at once.
const SHUN: Duration = Duration::from_secs(10 * 60);

/// While the server is away, its reflectors together ask at most once per so long,
const SPACING: Duration = Duration::from_secs(5);

/// but for the first so many tries.
const BURST: u32 = 10;

/// When it is back, those who waited go on within this time, and not all at once.
const SPREAD: Duration = Duration::from_secs(1);

/// What the reflectors of one client know together about their server. Cloning gives another handle on the same
/// knowledge.
///
/// Give one to all reflectors that talk to the same server with the same credentials:
/// [`ReflectorConfig::server`](super::ReflectorConfig::server). A shared informer factory does; a reflector that is given
/// none has one of its own.
///
/// - While the server is away (it can't be reached, or answers 502, 503 or 504), each reflector waits longer after each
///   failure as ever, and beyond ten tries they take turns, one every five seconds. Whoever gets an answer after a
///   failure ends the waits of all within a second, but for those that the server itself has asked for.
/// - A resource whose lists can't be streamed is listed in pages for the next 10 to 30 minutes, whoever asks.
#[derive(Clone)]
pub struct SharedServer {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    notes: Mutex<Notes>,
    /// Somebody who had none before has got an answer.
    answered: Notify,
}

#[derive(Default)]
struct Notes {
    /// Resources that are not to be streamed, and until when.
    shunned: HashMap<String, Instant>,
    /// When all the tries that have been granted will have been paid for.
    paid: Option<Instant>,
}

impl SharedServer {
    /// Returns knowledge of a server of which nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self { inner: Arc::default() }
    }

    /// Says whether streaming lists of this resource are worth a try.
    pub(super) fn may_stream(&self, resource: &str) -> bool {
        let mut notes = self.inner.notes.lock();
        let is_over = notes.shunned.get(resource).is_none_or(|until| *until <= Instant::now());
        if is_over {
            notes.shunned.remove(resource);
        }
        is_over
    }

    /// Streaming lists of this resource are of no use for now.
    pub(super) fn shun_streams(&self, resource: &str) {
        let until = Instant::now() + SHUN.mul_f64(1.0 + 2.0 * fastrand::f64());
        self.inner.notes.lock().shunned.insert(resource.to_owned(), until);
    }

    /// Waits so long, and then for a turn, because the server is away; or until somebody else has got an answer, unless
    /// the server itself has asked for the wait.
    ///
    /// # Cancel safety
    /// If the future is dropped during the wait for a turn, that turn is not taken by anybody.
    pub(super) async fn wait_for_turn(&self, wait: Duration, is_asked_for: bool) {
        let answered = self.inner.answered.notified();
        tokio::pin!(answered);
        // From here on, whenever it comes.
        answered.as_mut().enable();
        if is_asked_for {
            sleep(wait).await;
        }
        let turn = async {
            if !is_asked_for {
                sleep(wait).await;
            }
            sleep_until(self.turn()).await;
        };
        tokio::select! {
            biased;
            () = answered => sleep(SPREAD.mul_f64(fastrand::f64())).await,
            () = turn => {}
        }
    }

    /// When the next try may be made. Each is paid for with [`SPACING`], and [`BURST`] of them may be owed.
    fn turn(&self) -> Instant {
        let now = Instant::now();
        let mut notes = self.inner.notes.lock();
        let paid = notes.paid.unwrap_or(now).max(now);
        notes.paid = Some(paid + SPACING);
        paid.checked_sub(SPACING * (BURST - 1)).unwrap_or(now).max(now)
    }

    /// The server is there again for somebody for whom it was away.
    pub(super) fn is_back(&self) {
        self.inner.notes.lock().paid = None;
        self.inner.answered.notify_waiters();
    }
}

impl Default for SharedServer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SharedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shunned: Vec<_> = self.inner.notes.lock().shunned.keys().cloned().collect();
        f.debug_struct("SharedServer").field("not_streamed", &shunned).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn after_ten_tries_in_a_row_turns_come_five_seconds_apart_and_an_answer_ends_that() {
        let server = SharedServer::new();
        let start = Instant::now();
        let waits = || (server.turn() - start).as_secs();
        let first: Vec<_> = (0..12).map(|_| waits()).collect();
        assert_eq!(first, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 10]);
        server.is_back();
        assert_eq!(waits(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_goes_on_when_somebody_gets_an_answer_unless_the_server_asked_for_the_wait() {
        let server = SharedServer::new();
        let start = Instant::now();
        let wait = |is_asked_for| {
            let server = server.clone();
            tokio::spawn(async move {
                server.wait_for_turn(Duration::from_secs(60), is_asked_for).await;
                start.elapsed().as_secs()
            })
        };
        let (own, asked_for) = (wait(false), wait(true));
        sleep(Duration::from_secs(3)).await;
        server.is_back();
        let (own, asked_for) = (own.await.expect("no panic"), asked_for.await.expect("no panic"));
        // Within a second of each.
        assert!(own == 3 && asked_for == 60, "{own} s and {asked_for} s");
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_streamed_is_tried_again_after_ten_to_thirty_minutes() {
        let server = SharedServer::new();
        server.shun_streams("pods");
        assert!(!server.may_stream("pods") && server.may_stream("nodes"));
        tokio::time::advance(Duration::from_secs(599)).await;
        assert!(!server.clone().may_stream("pods"));
        tokio::time::advance(Duration::from_secs(1202)).await;
        assert!(server.may_stream("pods"));
    }
}
