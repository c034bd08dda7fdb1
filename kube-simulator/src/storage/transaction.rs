//! [`Transaction`]: changes an object of a table and appends the event to the history.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::history::Event;
use super::object::Object;
use super::revision::Revision;
use super::table::State;
use crate::kinds::ResourceKind;

/// Write access to the objects and the history of a table, which is locked meanwhile. Changes take
/// effect immediately. There is no rollback.
pub(crate) struct Transaction<'a> {
    pub(crate) kind: &'a ResourceKind,
    revision: &'a Revision,
    state: &'a mut State,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(kind: &'a ResourceKind, revision: &'a Revision, state: &'a mut State) -> Self {
        Self { kind, revision, state }
    }

    pub(crate) fn current(&self, key: &str) -> Option<Arc<Object>> {
        self.state.objects.get(key).cloned()
    }

    /// Creates or replaces an object.
    pub(crate) fn put(&mut self, key: &str, value: Map<String, Value>) -> Arc<Object> {
        let object = Object::encode(self.kind, key.to_owned(), value, self.revision.advance());
        let previous = self.state.objects.insert(key.to_owned(), object.clone());
        self.state.update_dependants(previous.as_deref(), Some(&object));
        self.state.history.push(Arc::new(Event::stored(object.clone(), previous)), self.revision.compacted());
        object
    }

    /// Removes an object. `value` is the last stored version of the object. Returns this version
    /// with the new resource version of the deletion.
    pub(crate) fn remove(&mut self, key: &str, value: Map<String, Value>) -> Arc<Object> {
        self.take_out(key, value, Event::deleted)
    }

    /// Removes an object as if its stored bytes were unreadable. For `value` and the result, see
    /// [`remove`](Self::remove).
    pub(crate) fn remove_corrupt(&mut self, key: &str, value: Map<String, Value>) -> Arc<Object> {
        let last = self.take_out(key, value, Event::corrupt);
        if self.kind.is_cached() {
            // A real watch cache then lists all objects again, and loses its earlier events.
            self.state.history.clear(last.resource_version);
        }
        last
    }

    fn take_out(
        &mut self,
        key: &str,
        value: Map<String, Value>,
        event: fn(Arc<Object>, Option<Arc<Object>>) -> Event,
    ) -> Arc<Object> {
        let last = Object::encode(self.kind, key.to_owned(), value, self.revision.advance());
        let previous = self.state.objects.remove(key);
        self.state.update_dependants(previous.as_deref(), None);
        self.state.history.push(Arc::new(event(last.clone(), previous)), self.revision.compacted());
        last
    }
}
