//! [`InitialAdds`]: I5, the initial adds that a handler of a running informer must receive first.

use std::collections::{BTreeMap, BTreeSet};

use crate::informer::Informer;
use crate::item::is_even;
use crate::recorder::number;
use crate::truth::{Observation, Scope, Truth};

/// The objects that existed when a handler joined, and those that it has received.
pub(crate) struct InitialAdds {
    /// The keys and resource versions of the objects that existed when the handler joined; `None`
    /// for a handler that joined before the first list.
    present: Option<BTreeMap<String, u64>>,
    scope: Scope,
    truth: Truth,
    /// The keys of the received objects.
    received: BTreeSet<String>,
    /// The keys of the objects that were received as initial adds.
    initial: BTreeSet<String>,
    is_complete: bool,
}

impl InitialAdds {
    /// Records the content of the informer's store for a handler that joins before the next await.
    pub(crate) fn of(informer: &Informer, scope: Scope) -> Self {
        let present = informer.shared.has_synced().then(|| {
            let all = informer.shared.indexer().list();
            let seen = all.iter().filter(|item| !scope.even || is_even(item.spec.number));
            seen.map(|item| (item.key().to_string(), number(item))).collect()
        });
        let truth = informer.truth.clone();
        Self {
            present,
            scope,
            truth,
            received: BTreeSet::new(),
            initial: BTreeSet::new(),
            is_complete: false,
        }
    }

    /// Records an add, and returns an error if it is invalid.
    pub(crate) fn added(&mut self, key: &str, version: u64, is_initial: bool) -> Result<(), String> {
        let is_first = self.received.insert(key.to_owned());
        let is_repeated = is_initial && !self.initial.insert(key.to_owned());
        let Some(present) = &self.present else { return Ok(()) };
        match present.get(key) {
            None if is_initial => {
                Err("I5: an initial add of an object that did not exist when the handler joined".to_owned())
            }
            Some(_) if is_repeated => Err("I5: a second initial add of the object".to_owned()),
            Some(_) if is_initial && !is_first => {
                Err("I5: an initial add after other events of the object".to_owned())
            }
            Some(then) if is_initial && !self.is_at_least(key, *then, version) => Err(format!(
                "I5: an initial add with version {version}, older than {then} when the handler joined"
            )),
            Some(then) if !is_initial && is_first && !self.has_ended_since(key, *then) => {
                Err("I5: an existing object was not delivered as an initial add".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Returns the key of an existing object that the handler has not received, although it is
    /// synced. Only the first call after the sync checks this; other calls return `None`.
    pub(crate) fn missing(&mut self, is_synced: bool) -> Option<String> {
        if !is_synced || std::mem::replace(&mut self.is_complete, true) {
            return None;
        }
        let mut present = self.present.iter().flatten();
        let missed =
            present.find(|(key, then)| !self.received.contains(*key) && !self.has_ended_since(key, **then));
        missed.map(|(key, _)| key.clone())
    }

    fn is_at_least(&self, key: &str, then: u64, now: u64) -> bool {
        self.since(key, then).iter().any(|observation| observation.is_version(now))
    }

    fn has_ended_since(&self, key: &str, then: u64) -> bool {
        self.since(key, then).iter().any(|observation| matches!(observation, Observation::Gone(_)))
    }

    /// Returns the observations of an object, starting with this version.
    fn since(&self, key: &str, then: u64) -> Vec<Observation> {
        let observations = self.truth.observations(&self.scope, key);
        let from = observations.iter().position(|observation| observation.is_version(then));
        from.map_or_else(Vec::new, |from| observations[from..].to_vec())
    }
}
