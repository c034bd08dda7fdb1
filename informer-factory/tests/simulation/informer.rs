//! [`Informer`]: an informer of the simulation with its handlers, and the checks of its store.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use futures::StreamExt;
use informer_core::ListerWatcher;
use informer_factory::{
    Filtered, HandlerOptions, HandlerRegistration, Index, InformerOptions, InformerTask, Resync,
    SharedIndexInformer,
};
use informer_reflector::{KubeListWatch, ReflectorConfig};
use tokio::task::JoinHandle;

use crate::bugs::{Bug, BuggySource};
use crate::history::History;
use crate::item::{Item, is_even, transform};
use crate::recorder::{Panicking, Recorder, Slow};
use crate::truth::{Observation, Scope, Truth};

/// An informer and its handlers.
pub(crate) struct Informer {
    pub(crate) name: &'static str,
    pub(crate) scope: Scope,
    pub(crate) shared: SharedIndexInformer<Item>,
    pub(crate) members: Vec<Member>,
    by_parity: Index<Item, bool>,
    /// The number of handlers that have joined so far, which is part of the name of the next handler.
    joined: usize,
    pub(crate) history: History,
    pub(crate) truth: Truth,
}

/// A handler and its recorder.
pub(crate) struct Member {
    pub(crate) recorder: Recorder,
    hold: Hold,
}

impl Member {
    /// Returns the number of pending events of a handler; 0 for a stream.
    pub(crate) fn pending(&self) -> u32 {
        match &self.hold {
            Hold::Handler(registration) => registration.stats().pending.try_into().unwrap_or(u32::MAX),
            Hold::Reader(_) => 0,
        }
    }
}

enum Hold {
    Handler(HandlerRegistration),
    Reader(JoinHandle<()>),
}

impl Informer {
    pub(crate) fn new(
        name: &'static str,
        scope: Scope,
        client: kube::Client,
        bug: Option<Bug>,
        random: &mut fastrand::Rng,
        (history, truth): (&History, &Truth),
    ) -> (Self, InformerTask) {
        let mut source = match scope.namespace {
            Some(namespace) => KubeListWatch::<Item>::namespaced(client, namespace),
            None => KubeListWatch::all(client),
        };
        if let Some(side) = scope.side {
            source = source.label_selector(format!("side={side}"));
        }
        let mut reflector = ReflectorConfig::new();
        if random.bool() {
            reflector = reflector.page_size(random.u32(1..6));
        }
        let mut options = InformerOptions::new().reflector(reflector).transform(transform);
        if random.bool() {
            options = options.resync_period(Duration::from_secs(random.u64(10..60)));
        }
        let source: Arc<dyn ListerWatcher<Item>> = match bug {
            Some(bug) => Arc::new(BuggySource::new(source, bug, random.u64(..))),
            None => Arc::new(source),
        };
        let (shared, task) = SharedIndexInformer::new(source, options);
        let by_parity = shared.add_index("parity", |item: &Item| [is_even(item.spec.number)]);
        let by_parity = by_parity.expect("a free index name");
        let informer = Self {
            name,
            scope,
            shared,
            members: Vec::new(),
            by_parity,
            joined: 0,
            history: history.clone(),
            truth: truth.clone(),
        };
        (informer, task)
    }

    /// Adds a handler of a random form.
    pub(crate) fn join(&mut self, random: &mut fastrand::Rng) {
        let kind = random.usize(..7);
        let name = format!(
            "{}.{}.{}",
            self.name,
            self.joined,
            ["sync", "resync", "filtered", "async", "slow", "stream", "panicking"][kind]
        );
        self.joined += 1;
        // A slow handler needs a low threshold, or it would never catch up.
        let choices = if kind == 4 { 2 } else { 4 };
        let threshold = [Some(1), Some(3), Some(1_024), None][random.usize(..choices)];
        let options = HandlerOptions::new().name(name.clone()).threshold(threshold);
        let options =
            if kind == 1 { options.resync(Resync::Every(Duration::from_secs(15))) } else { options };
        let delay = if kind == 4 { Duration::from_millis(random.u64(1..1_500)) } else { Duration::ZERO };
        self.history.log(format!("{name} joins, threshold {threshold:?}"));
        let recorder = Recorder::new(name, self, kind == 2, delay);
        let handler = recorder.clone();
        let hold = match kind {
            2 => {
                let filtered = Filtered::new(|item: &Item| is_even(item.spec.number), handler);
                Hold::Handler(self.shared.add_event_handler_with(filtered, &options))
            }
            3 | 4 => Hold::Handler(self.shared.add_async_event_handler_with(Slow(handler), &options)),
            5 => {
                let mut events = self.shared.events(&options);
                recorder.set_synced(events.registration().synced());
                let pause = Duration::from_millis(random.u64(..300));
                Hold::Reader(tokio::spawn(async move {
                    while let Some(event) = events.next().await {
                        handler.record_event(&event);
                        // The clock is paused (`start_paused`), so no real time passes.
                        tokio::time::sleep(pause).await;
                    }
                }))
            }
            6 => {
                let panicking = Panicking { recorder: handler, calls: AtomicU32::new(0) };
                Hold::Handler(self.shared.add_event_handler_with(panicking, &options))
            }
            _ => Hold::Handler(self.shared.add_event_handler_with(handler, &options)),
        };
        if let Hold::Handler(registration) = &hold {
            recorder.set_synced(registration.synced());
        }
        self.members.push(Member { recorder, hold });
    }

    /// Removes a random handler, waits until it has ended, and returns its recorder; `None` if
    /// there is no handler.
    pub(crate) async fn leave(&mut self, random: &mut fastrand::Rng) -> Option<Recorder> {
        if self.members.is_empty() {
            return None;
        }
        let Member { recorder, hold } = self.members.remove(random.usize(..self.members.len()));
        match hold {
            Hold::Handler(registration) => registration.remove_and_wait().await,
            Hold::Reader(task) => {
                task.abort();
                // The result is an error, because the task was aborted.
                _ = task.await;
            }
        }
        recorder.set_removed();
        self.history.log(format!("{} leaves", recorder.name()));
        Some(recorder)
    }

    /// Checks invariant I9: the store equals the server's state at its watermark, except for
    /// quarantined objects.
    pub(crate) fn check_store(&self) {
        if !self.shared.has_synced() {
            return;
        }
        let snapshot = self.shared.indexer().snapshot();
        let Ok(watermark) = snapshot.watermark().to_string().parse() else {
            let text =
                format!("I9: {} has synced, but its watermark is \"{}\"", self.name, snapshot.watermark());
            return self.history.violation(None, text);
        };
        let observations = self.truth.at(&self.scope, watermark);
        for (key, observation) in &observations {
            let stored = snapshot.get_by_key(key).as_ref().map(Observation::of);
            let is_right = match observation {
                Observation::Version(..) => stored.as_ref() == Some(observation),
                // A quarantined object keeps its previous state.
                Observation::Quarantined => stored
                    .as_ref()
                    .is_none_or(|stored| self.truth.observations(&self.scope, key).contains(stored)),
                Observation::Gone(_) => stored.is_none(),
            };
            if !is_right {
                let text =
                    format!("I9: {} at {watermark} has {stored:?} instead of {observation:?}", self.name);
                self.history.violation(Some(key), text);
            }
        }
        let stored = snapshot.list();
        let even = stored.iter().filter(|item| is_even(item.spec.number)).count();
        for (is_even, wanted) in [(true, even), (false, stored.len() - even)] {
            if self.by_parity.get_in(&snapshot, &is_even).len() != wanted {
                self.history.violation(None, format!("I7: {}: the index differs from the store", self.name));
            }
        }
        if let Some(object) = stored.iter().find(|object| !observations.contains_key(object.key().as_str())) {
            let text = format!("I9: {} at {watermark} has an object that does not exist yet", self.name);
            self.history.violation(Some(object.key().as_str()), text);
        }
    }

    /// Checks invariant I10: exactly the invalid objects are quarantined. Call it when no write or
    /// fault is in progress.
    pub(crate) fn check_quarantined(&self) {
        let quarantined = self.shared.status().quarantined();
        let is_quarantined = |key: &str| {
            quarantined.iter().any(|malformed| {
                malformed.key.as_ref().is_some_and(|quarantined| quarantined.as_str() == key)
            })
        };
        for (key, observation) in self.truth.at(&self.scope, u64::MAX) {
            let should = observation == Observation::Quarantined;
            if should != is_quarantined(&key) {
                let text = format!(
                    "I10: {}: the object is{} quarantined",
                    self.name,
                    if should { " not" } else { "" }
                );
                self.history.violation(Some(&key), text);
            }
        }
    }
}
