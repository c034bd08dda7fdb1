//! [`Witnesses`]: several kinds of handlers, each with its own copy of the objects. In the end, all
//! copies must equal the server's state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use informer_factory::{
    Cached, Deleted, EventHandler, HandlerOptions, HandlerRegistration, ObjectKey, SharedIndexInformer,
};
use informer_testing::Replica;
use kube::api::{Api, ListParams};
use parking_lot::{Condvar, Mutex};

use crate::cluster::{Object, Versions, versions};
use crate::{TIMEOUT, eventually};

/// The time after which `agree` lists the server's objects again, because they may have changed.
const SETTLING: Duration = Duration::from_secs(5);

/// The handlers of one informer, and the server's list that they must equal.
pub(crate) struct Witnesses<K: Object> {
    informer: SharedIndexInformer<K>,
    server: Api<K>,
    params: ListParams,
    witnesses: Vec<Witness<K>>,
    gate: Arc<Gate>,
}

struct Witness<K> {
    name: &'static str,
    replica: Replica<K>,
    registration: HandlerRegistration,
}

impl<K: Object> Witnesses<K> {
    /// Returns the witnesses of an informer: at first one handler that records its events.
    pub(crate) fn new(informer: &SharedIndexInformer<K>, server: &Api<K>, params: ListParams) -> Self {
        let mut witnesses = Self {
            informer: informer.clone(),
            server: server.clone(),
            params,
            witnesses: Vec::new(),
            gate: Arc::default(),
        };
        witnesses.join("early");
        witnesses
    }

    /// Adds a witness, a handler that records its events. It first receives the existing objects.
    pub(crate) fn join(&mut self, name: &'static str) {
        let replica = Replica::new();
        let registration = self.informer.add_event_handler(replica.clone());
        self.witnesses.push(Witness { name, replica, registration });
    }

    /// Adds a witness that blocks in its first call until [`release`](Self::release), so that its
    /// events are coalesced. The call blocks a thread, so the test needs a multi-threaded runtime.
    pub(crate) fn join_stuck(&mut self) {
        let replica = Replica::new();
        let handler = Stuck { replica: replica.clone(), gate: Arc::clone(&self.gate) };
        let options = HandlerOptions::new().name("stuck").threshold(Some(4));
        let registration = self.informer.add_event_handler_with(handler, &options);
        self.witnesses.push(Witness { name: "stuck", replica, registration });
    }

    /// Unblocks the stuck witness once some of its events have been coalesced. The informer must
    /// have synced before the first change: a list contains each object only once, so the events of
    /// a list are not coalesced.
    pub(crate) async fn release(&self) {
        let stuck = self
            .witnesses
            .iter()
            .find(|witness| witness.name == "stuck")
            .expect("a stuck witness has joined");
        eventually(async || (stuck.registration.stats().coalesced > 0).then_some(())).await;
        self.gate.open();
    }

    /// Returns the copy of the objects that the first witness has.
    pub(crate) fn early(&self) -> &Replica<K> {
        &self.witnesses[0].replica
    }

    /// Waits until the store and every witness have exactly the objects that the server lists.
    /// Panics if a witness received an invalid sequence of events.
    pub(crate) async fn agree(&self) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let listed = versions(&self.server, &self.params).await;
            // This wait times out if controllers are still making changes. Then list again.
            let all_there = async {
                for witness in &self.witnesses {
                    witness.replica.wait_until(|objects| equal(objects, &listed)).await;
                }
            };
            _ = tokio::time::timeout(SETTLING, all_there).await;
            if self.witnesses.iter().all(|witness| witness.replica.versions() == listed)
                && self.stored() == listed
            {
                break;
            }
            if Instant::now() > deadline {
                self.report_difference(&listed);
            }
        }
        for Witness { name, replica, .. } in &self.witnesses {
            assert!(replica.violations().is_empty(), "{name}: {:?}", replica.violations());
        }
    }

    fn stored(&self) -> Versions {
        let version = |object: &Cached<K>| (object.key().to_string(), object.resource_version().to_string());
        self.informer.indexer().list().iter().map(version).collect()
    }

    fn report_difference(&self, listed: &Versions) {
        assert_eq!(&self.stored(), listed, "the store, with health {}", self.informer.health());
        for Witness { name, replica, .. } in &self.witnesses {
            assert_eq!(&replica.versions(), listed, "the witness {name}");
        }
        panic!("the server's objects keep changing");
    }
}

impl<K: Object> Drop for Witnesses<K> {
    fn drop(&mut self) {
        // A failed test must not wait forever for the blocked thread.
        self.gate.open();
    }
}

fn equal<K>(objects: &BTreeMap<ObjectKey, Cached<K>>, listed: &Versions) -> bool {
    let is_listed = |object: &Cached<K>| {
        listed
            .get(object.key().as_str())
            .is_some_and(|version| *version == object.resource_version().to_string())
    };
    objects.len() == listed.len() && objects.values().all(is_listed)
}

/// A handler that blocks until the gate is open.
struct Stuck<K> {
    replica: Replica<K>,
    gate: Arc<Gate>,
}

impl<K: Send + Sync + 'static> EventHandler<K> for Stuck<K> {
    fn on_add(&self, object: &Cached<K>, is_in_initial_list: bool) {
        self.gate.pass();
        self.replica.on_add(object, is_in_initial_list);
    }

    fn on_update(&self, old: &Cached<K>, new: &Cached<K>) {
        self.gate.pass();
        self.replica.on_update(old, new);
    }

    fn on_delete(&self, object: &Deleted<K>) {
        self.gate.pass();
        self.replica.on_delete(object);
    }
}

/// Blocks callers until `open` is called.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock() = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let mut is_open = self.is_open.lock();
        while !*is_open {
            self.opened.wait(&mut is_open);
        }
    }
}
