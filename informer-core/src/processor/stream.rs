//! [`EventStream`]: the events of an informer, to be asked for instead of being called with.
//!
//! client-go has no counterpart; `NewIndexerInformerWatcher` of tools/watch comes close, but buffers without bound. The
//! reader's own task does the work: there is none behind the stream.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::Stream;

use super::cursor::{Cursor, Next};
use super::listener::{ListenerGuard, ProcessorListener};
use super::registration::HandlerRegistration;
use crate::Event;

/// The events of an informer, as a [`Stream`].
///
/// It has the place of a handler: what existed when it was made comes first, and a reader that falls behind its
/// threshold gets one event per key for what it has missed. For each object it yields an add, then updates, then a
/// delete (I4).
///
/// It ends when the informer stops; what waits at that time is dropped. Dropping the stream ends the handler.
#[must_use = "dropping the stream removes it from its informer"]
pub struct EventStream<K> {
    cursor: Cursor<K>,
    registration: HandlerRegistration,
    listener: ListenerGuard<K>,
}

impl<K: Send + Sync + 'static> EventStream<K> {
    pub(super) fn new(listener: Arc<ProcessorListener<K>>) -> Self {
        Self {
            cursor: Cursor::default(),
            registration: HandlerRegistration::new(Arc::clone(&listener)),
            listener: ListenerGuard(listener),
        }
    }

    /// Returns the stream's place among the handlers: its name, statistics, and whether it is synced. That is the case
    /// when the reader asks for the next event after the last of the initial ones, which means that it is done with
    /// them (I6).
    pub fn registration(&self) -> &HandlerRegistration {
        &self.registration
    }
}

impl<K> Stream for EventStream<K> {
    type Item = Event<K>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event<K>>> {
        let Self { cursor, listener, .. } = self.get_mut();
        // A reader for whom there is always something lets other tasks have their turn, as with tokio's own channels.
        let turn = ready!(tokio::task::coop::poll_proceed(cx));
        let next = loop {
            if listener.is_removed() {
                *cursor = Cursor::default();
                break Poll::Ready(None);
            }
            match cursor.next() {
                Some(Next::Shared(event)) => break Poll::Ready(Some(event.clone())),
                Some(Next::Own(event)) => break Poll::Ready(Some(event)),
                // I6: the reader has come back for more, so it is done with what it had.
                Some(Next::InitialComplete) => listener.synced.set(),
                None => match listener.poll_take(cx) {
                    Poll::Ready(Some(taken)) => *cursor = taken,
                    Poll::Ready(None) => break Poll::Ready(None),
                    Poll::Pending => return Poll::Pending,
                },
            }
        };
        turn.made_progress();
        if let Poll::Ready(Some(_)) = &next {
            listener.count_delivered();
        }
        next
    }
}

impl<K> fmt::Debug for EventStream<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("registration", &self.registration).finish_non_exhaustive()
    }
}
