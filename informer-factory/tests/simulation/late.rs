//! [`Beginning`]: I5, the initial adds that a handler of a running informer must receive first.

use std::collections::{BTreeMap, BTreeSet};

use crate::informer::Informer;
use crate::item::is_even;
use crate::recorder::number;
use crate::truth::{Scope, Sight, Truth};

/// What there was for a handler to see when it joined, and what it has heard of that.
pub(crate) struct Beginning {
    /// Keys and resource versions; `None` for a handler that is there from the first list on, which
    /// has no past.
    present: Option<BTreeMap<String, u64>>,
    scope: Scope,
    truth: Truth,
    /// Of what it has heard, and what of it as initial adds.
    heard: BTreeSet<String>,
    initial: BTreeSet<String>,
    is_complete: bool,
}

impl Beginning {
    /// Notes what the informer's store has, for a handler that joins in the same turn.
    pub(crate) fn of(informer: &Informer, scope: Scope) -> Self {
        let present = informer.shared.has_synced().then(|| {
            let all = informer.shared.indexer().list();
            let seen = all.iter().filter(|item| !scope.even || is_even(item.spec.number));
            seen.map(|item| (item.key().to_string(), number(item))).collect()
        });
        let truth = informer.truth.clone();
        Self { present, scope, truth, heard: BTreeSet::new(), initial: BTreeSet::new(), is_complete: false }
    }

    /// Takes an add, and says what is wrong with it.
    pub(crate) fn added(&mut self, key: &str, version: u64, is_initial: bool) -> Result<(), String> {
        let is_first = self.heard.insert(key.to_owned());
        let is_repeated = is_initial && !self.initial.insert(key.to_owned());
        let Some(present) = &self.present else { return Ok(()) };
        match present.get(key) {
            None if is_initial => Err("I5: an initial add of what was not there when it joined".to_owned()),
            Some(_) if is_repeated => Err("I5: an initial add for the second time".to_owned()),
            Some(_) if is_initial && !is_first => Err("I5: an initial add after other news".to_owned()),
            Some(then) if is_initial && !self.is_as_new(key, *then, version) => {
                Err(format!("I5: an initial add with {version}, which is older than {then}, when it joined"))
            }
            Some(then) if !is_initial && is_first && !self.has_ended_since(key, *then) => {
                Err("I5: what was there when it joined is told as news".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Says what was there, is there still, and was not told, if the handler claims to be synced.
    pub(crate) fn missing(&mut self, is_synced: bool) -> Option<String> {
        if !is_synced || std::mem::replace(&mut self.is_complete, true) {
            return None;
        }
        let mut present = self.present.iter().flatten();
        let missed =
            present.find(|(key, then)| !self.heard.contains(*key) && !self.has_ended_since(key, **then));
        missed.map(|(key, _)| key.clone())
    }

    fn is_as_new(&self, key: &str, then: u64, now: u64) -> bool {
        self.since(key, then).iter().any(|sight| sight.is_version(now))
    }

    fn has_ended_since(&self, key: &str, then: u64) -> bool {
        self.since(key, then).iter().any(|sight| matches!(sight, Sight::Gone(_)))
    }

    /// What there was to be seen of an object from a version on.
    fn since(&self, key: &str, then: u64) -> Vec<Sight> {
        let sights = self.truth.sights(&self.scope, key);
        let from = sights.iter().position(|sight| sight.is_version(then));
        from.map_or_else(Vec::new, |from| sights[from..].to_vec())
    }
}
