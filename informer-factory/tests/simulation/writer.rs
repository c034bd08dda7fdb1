//! [`Writer`]: random writes, which it records in the truth.

use informer_testing::{ObjectStore, Simulator, StoredObject};
use serde_json::{Value, json};

use crate::history::History;
use crate::item::{Content, item};
use crate::truth::Truth;

/// Few names, so that names are reused often.
const NAMES: [&str; 6] = ["p", "q", "r", "s", "t", "u"];

/// Writes to the server without HTTP, so that the outcome of each write is known.
pub(crate) struct Writer<'a> {
    simulator: &'a Simulator,
    store: &'a ObjectStore,
    truth: &'a Truth,
    history: &'a History,
    random: fastrand::Rng,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(
        simulator: &'a Simulator,
        store: &'a ObjectStore,
        truth: &'a Truth,
        history: &'a History,
        random: fastrand::Rng,
    ) -> Self {
        Self { simulator, store, truth, history, random }
    }

    /// Performs a random write on a random object.
    pub(crate) fn write(&mut self) {
        let namespace = if self.random.bool() { "a" } else { "b" };
        let name = NAMES[self.random.usize(..NAMES.len())];
        let key = format!("{namespace}/{name}");
        let content = self.content();
        let (what, written) = match (self.store.get(&key), self.random.u8(..10)) {
            (Err(_), roll) => {
                let mut object = item(namespace, name, self.side(), content);
                if roll < 3 {
                    object["metadata"]["finalizers"] = json!(["simulation.test/hold"]);
                }
                ("created", self.store.create(&object))
            }
            (Ok(_), 0..3) => ("deleted", self.store.delete(&key)),
            (Ok(before), 3) => {
                self.store.delete(&key).expect("the object exists");
                self.record(&key, "deleted", &before);
                if self.store.get(&key).is_ok() {
                    return;
                }
                ("created again", self.store.create(&item(namespace, name, self.side(), content)))
            }
            (Ok(_), 4) => {
                ("without finalizers", self.modify(&key, |value| value["metadata"]["finalizers"] = json!([])))
            }
            (Ok(_), 5) => {
                let side = self.side();
                ("relabeled", self.modify(&key, |value| value["metadata"]["labels"]["side"] = side.into()))
            }
            (Ok(_), _) => {
                let wanted = item(namespace, name, "", content)["spec"].clone();
                ("changed", self.modify(&key, |value| value["spec"] = wanted.clone()))
            }
        };
        let written = written.expect("no other task writes");
        self.record(&key, what, &written);
    }

    fn modify(
        &self,
        key: &str,
        change: impl FnMut(&mut Value),
    ) -> Result<StoredObject, informer_testing::Error> {
        self.store.modify(key, change)
    }

    fn record(&self, key: &str, what: &str, written: &StoredObject) {
        let revision = self.simulator.resource_version();
        self.truth.update(self.store, key, revision);
        let (value, exists) = (written.value(), self.store.get(key).is_ok());
        let (side, content) = (&value["metadata"]["labels"]["side"], Content::read(&value));
        let gone = if exists { "" } else { ", gone" };
        self.history.log_object(key, format!("{what} at {revision}: {side}, {content:?}{gone}"));
    }

    fn content(&mut self) -> Content {
        if self.random.u8(..12) == 0 { Content::Text } else { Content::Number(self.random.u64(..100)) }
    }

    fn side(&mut self) -> &'static str {
        if self.random.bool() { "left" } else { "right" }
    }
}
