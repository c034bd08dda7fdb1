//! [`EventStream`]: the events of an informer as a stream. A stream has no task of its own.
//!
//! The closest counterpart in client-go is `NewIndexerInformerWatcher` of tools/watch, whose buffer
//! is unbounded.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::Stream;

use super::cursor::{Cursor, Next};
use super::listener::{ListenerGuard, ProcessorListener};
use super::registration::HandlerRegistration;
use crate::{AnyObject, Event};

/// The events of an informer, as a [`Stream`].
///
/// It yields the events that a handler would receive: first the existing objects, then the changes.
/// For each object, it yields an add, then updates, then a delete. If the object leaves the store
/// because its namespace is no longer watched, the last event is [`Event::Released`] and not a
/// delete. Once the number of waiting events reaches
/// [`HandlerOptions::threshold`](crate::HandlerOptions::threshold), new events are coalesced per
/// key.
///
/// The stream ends when the informer stops; waiting events are then dropped. Dropping the stream
/// removes it from the informer.
#[must_use = "dropping the stream removes it from its informer"]
pub struct EventStream<K> {
    cursor: Cursor<AnyObject>,
    registration: HandlerRegistration,
    listener: ListenerGuard,
    _type: PhantomData<fn() -> K>,
}

impl<K> EventStream<K> {
    pub(super) fn new(listener: Arc<ProcessorListener>) -> Self {
        Self {
            cursor: Cursor::default(),
            registration: HandlerRegistration::new(Arc::clone(&listener)),
            listener: ListenerGuard(listener),
            _type: PhantomData,
        }
    }

    /// Returns the stream's registration. It has the stream's name and statistics, and reports
    /// whether the stream is synced.
    ///
    /// The stream first yields an add for each initial object. These are the objects of the
    /// informer's initial list. If the stream was created after that list, these are the objects
    /// that were then in the store. The stream is synced when the reader has received these adds
    /// and polls again.
    pub fn registration(&self) -> &HandlerRegistration {
        &self.registration
    }
}

impl<K: 'static> Stream for EventStream<K> {
    type Item = Event<K>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event<K>>> {
        let Self { cursor, listener, .. } = self.get_mut();
        // Makes a reader that finds an event at every poll yield to other tasks, as tokio's own
        // channels do.
        let turn = ready!(tokio::task::coop::poll_proceed(cx));
        let next = loop {
            if listener.is_removed() {
                *cursor = Cursor::default();
                listener.mailbox.consumer_ended();
                break Poll::Ready(None);
            }
            match cursor.next() {
                Some(Next::Shared(batch, at)) => {
                    break Poll::Ready(Some(batch.events[at].clone().cast()));
                }
                Some(Next::Own(event)) => break Poll::Ready(Some(event.cast())),
                // I6: the reader polls again, so it has processed the earlier events.
                Some(Next::InitialComplete) => listener.synced.set(),
                None => match listener.mailbox.poll_take(cx) {
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
