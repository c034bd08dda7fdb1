//! `FaultQueue`: the faults that wait for matching requests.

use std::sync::Arc;

use parking_lot::Mutex;

use super::kind::Fault;
use crate::http::Server;
use crate::http::{RecordedRequest, RequestFilter};

/// The faults that wait for matching requests, oldest first. A request gets the first fault whose
/// filter matches.
#[derive(Debug, Default)]
pub(crate) struct FaultQueue(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    faults: Vec<Entry>,
    /// The identifier of the next fault to be added. A [`FaultGuard`] removes its fault by
    /// identifier.
    next: u64,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    /// The number of requests that still get the fault; `None` means no limit.
    remaining: Option<usize>,
    filter: RequestFilter,
    fault: Fault,
}

impl FaultQueue {
    /// Adds a fault for `times` requests; `None` means no limit. Returns the identifier of the
    /// fault.
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

/// A guard for a fault of matching requests. The fault lasts until the guard is dropped, or until
/// [`clear_faults`](crate::Simulator::clear_faults) removes the fault.
#[derive(Debug)]
#[must_use = "the fault ends when this guard is dropped"]
pub struct FaultGuard {
    server: Arc<Server>,
    id: u64,
}

impl FaultGuard {
    pub(crate) fn begin(server: &Arc<Server>, filter: RequestFilter, fault: Fault) -> Self {
        let id = server.faults.push(None, filter, fault);
        Self { server: Arc::clone(server), id }
    }

    /// Ends the fault, as dropping the guard does. Requests that already have the fault keep it.
    pub fn end(self) {}
}

impl Drop for FaultGuard {
    fn drop(&mut self) {
        self.server.faults.remove(self.id);
    }
}
