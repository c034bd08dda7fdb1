//! The objects of the simulation. Some of them cannot be decoded, and for some the transform fails.

use std::borrow::Cow;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use serde_json::{Value, json};

/// A named object with a number.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Item {
    metadata: ObjectMeta,
    pub(crate) spec: Spec,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Spec {
    pub(crate) number: u64,
}

/// The content of a version of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Number(u64),
    /// A string instead of the number, which fails to decode.
    Text,
}

impl Content {
    /// Returns whether an informer can store an item with this content.
    pub(crate) fn is_good(self) -> bool {
        matches!(self, Self::Number(number) if !is_refused(number))
    }

    /// Returns whether the filtering handler receives an item with this content.
    pub(crate) fn is_even(self) -> bool {
        matches!(self, Self::Number(number) if is_even(number))
    }

    fn json(self) -> Value {
        match self {
            Self::Number(number) => number.into(),
            Self::Text => "a text".into(),
        }
    }

    pub(crate) fn read(item: &Value) -> Self {
        item["spec"]["number"].as_u64().map_or(Self::Text, Self::Number)
    }
}

fn is_refused(number: u64) -> bool {
    number % 10 == 7
}

pub(crate) fn is_even(number: u64) -> bool {
    number.is_multiple_of(2)
}

/// The informers' transform, which fails for some numbers.
pub(crate) fn transform(item: &mut Item) -> Result<(), String> {
    if is_refused(item.spec.number) {
        Err("the transform refuses numbers that end in 7".to_owned())
    } else {
        Ok(())
    }
}

/// Formats an item as JSON for the server.
pub(crate) fn item(namespace: &str, name: &str, side: &str, content: Content) -> Value {
    json!({
        "apiVersion": "simulation.test/v1", "kind": "Item",
        "metadata": { "namespace": namespace, "name": name, "labels": { "side": side } },
        "spec": { "number": content.json() },
    })
}

impl Resource for Item {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Item".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "simulation.test".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "items".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
