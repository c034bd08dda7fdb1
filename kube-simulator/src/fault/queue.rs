//! `FaultQueue`: which faults are waiting for which requests.

use std::sync::Arc;

use parking_lot::Mutex;

use super::kind::Fault;
use crate::request::{RecordedRequest, RequestFilter};
use crate::server::Server;

/// The faults that wait for requests. The first that matches a request is its own; so one that is for a number of
/// requests hides those behind it until it is used up.
#[derive(Debug, Default)]
pub(crate) struct FaultQueue(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    faults: Vec<Entry>,
    /// Numbers the entries, so that the one of a guard can be found.
    next: u64,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    /// How many requests it is still for; none for any number.
    remaining: Option<usize>,
    filter: RequestFilter,
    fault: Fault,
}

impl FaultQueue {
    /// Adds a fault for so many requests, or for all that come until it is removed; gives its number.
    pub(crate) fn push(&self, times: Option<usize>, filter: RequestFilter, fault: Fault) -> u64 {
        let mut waiting = self.0.lock();
        let id = waiting.next;
        waiting.next += 1;
        if times != Some(0) {
            waiting.faults.push(Entry { id, remaining: times, filter, fault });
        }
        id
    }

    pub(crate) fn clear(&self) {
        self.0.lock().faults.clear();
    }

    fn remove(&self, id: u64) {
        self.0.lock().faults.retain(|entry| entry.id != id);
    }

    /// Takes the fault that is meant for this request, if there is one.
    pub(crate) fn take(&self, request: &RecordedRequest) -> Option<Fault> {
        let faults = &mut self.0.lock().faults;
        let position = faults.iter().position(|entry| entry.filter.matches(request))?;
        let entry = &mut faults[position];
        match &mut entry.remaining {
            Some(1) => Some(faults.remove(position).fault),
            Some(remaining) => {
                *remaining -= 1;
                Some(entry.fault.clone())
            }
            None => Some(entry.fault.clone()),
        }
    }
}

/// A fault that happens to all matching requests for as long as this lives.
#[derive(Debug)]
#[must_use = "the trouble is over when this is dropped"]
pub struct Disturbance {
    server: Arc<Server>,
    id: u64,
}

impl Disturbance {
    pub(crate) fn begin(server: &Arc<Server>, filter: RequestFilter, fault: Fault) -> Self {
        let id = server.faults.push(None, filter, fault);
        Self { server: Arc::clone(server), id }
    }

    /// Ends the trouble; the same as dropping it. Answers that have begun go on as they are.
    pub fn end(self) {}
}

impl Drop for Disturbance {
    fn drop(&mut self) {
        self.server.faults.remove(self.id);
    }
}
