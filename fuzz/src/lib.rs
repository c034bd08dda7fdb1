//! Shared parts of the fuzz targets: splitting an input into pieces, texts to compare results, and a
//! server in the same process.

use std::fmt;

use informer_core::{OwnedObject, RejectedObject, WatchEvent};
use kube::Client;
use kube_simulator::Simulator;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::json;
use tokio::runtime::Runtime;

/// Splits a fuzz input into a body and the pieces of this body. The first byte of the input, modulo
/// 8, is the number of cuts. The next bytes are the positions of the cuts, and all bytes after them
/// are the body.
pub fn split(input: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let (&count, rest) = input.split_first()?;
    let (cuts, body) = rest.split_at_checked(usize::from(count % 8))?;
    let mut pieces = Vec::new();
    let mut rest = body;
    for cut in cuts {
        // Cuts below 128 are absolute, for small pieces; others are relative to the length.
        let at = if *cut < 128 { usize::from(*cut) } else { rest.len() * usize::from(cut - 128) / 128 };
        let (piece, after) = rest.split_at(at.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    Some((body, pieces))
}

/// Returns a text with the event and the content of its object, which the event's `Debug` output
/// lacks.
pub fn event_text<K: fmt::Debug + 'static>(event: &WatchEvent<K>) -> String {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
            format!("{event:?} {:?}", **object)
        }
        other => format!("{other:?}"),
    }
}

/// Returns a text with the content of a list's item.
pub fn item_text<K: fmt::Debug + 'static>(item: Result<OwnedObject<K>, RejectedObject>) -> String {
    item.map_or_else(|rejected| format!("{rejected:?}"), |object| format!("{:?}", *object))
}

/// Returns whether `json` is an object without duplicate top-level fields. Results for duplicates
/// are not compared, because decoders can treat duplicates differently.
pub fn has_unique_fields(json: &[u8]) -> bool {
    serde_json::from_slice::<UniqueFields>(json).is_ok()
}

struct UniqueFields;

impl<'de> Deserialize<'de> for UniqueFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueFields)
    }
}

impl<'de> Visitor<'de> for UniqueFields {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object without duplicates")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut names = std::collections::HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            map.next_value::<IgnoredAny>()?;
            if !names.insert(name) {
                return Err(serde::de::Error::custom("a duplicate"));
            }
        }
        Ok(self)
    }
}

/// The name and the labels of each pod of a [`Server`].
pub const PODS: [(&str, &[(&str, &str)]); 4] = [
    ("a", &[("app", "web"), ("tier", "front")]),
    ("b", &[("app", "db")]),
    ("c", &[("tier", ""), ("x.io/y", "1")]),
    ("d", &[]),
];

/// A simulated API server with the pods in [`PODS`].
pub struct Server {
    runtime: Runtime,
    client: Client,
    _simulator: Simulator,
}

impl Server {
    /// Starts the server, and creates the [`PODS`] in the namespace `shop`.
    #[expect(clippy::missing_panics_doc, reason = "fuzzing needs the server")]
    #[must_use]
    pub fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let simulator = runtime.block_on(Simulator::builder().built_in_kinds().start()).expect("a free port");
        for (name, labels) in PODS {
            let labels: serde_json::Map<_, _> =
                labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).into())).collect();
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": { "namespace": "shop", "name": name, "labels": labels },
            });
            simulator.create(&pod).expect("a new pod");
        }
        let client = {
            let _entered = runtime.enter();
            Client::new(simulator.service(), "default")
        };
        Self { runtime, client, _simulator: simulator }
    }

    /// Lists at most two of the [`PODS`], with the query parameter `parameter=value` in the URL.
    /// Returns the status code of the response, and the names of the listed pods.
    #[expect(clippy::missing_panics_doc, reason = "a panic is a finding")]
    pub fn list(&self, parameter: &str, value: &[u8]) -> (u16, Vec<String>) {
        let value: String = value.iter().map(|byte| format!("%{byte:02X}")).collect();
        let request = http::Request::get(format!("/api/v1/namespaces/shop/pods?limit=2&{parameter}={value}"))
            .body(kube::client::Body::empty())
            .expect("a request");
        self.runtime.block_on(async {
            let response = self.client.send(request).await.expect("an answer");
            let code = response.status().as_u16();
            let body =
                http_body_util::BodyExt::collect(response.into_body()).await.expect("a body").to_bytes();
            let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
            let items = body["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            let name = |pod: &serde_json::Value| pod["metadata"]["name"].as_str().expect("a name").to_owned();
            (code, items.iter().map(name).collect())
        })
    }
}
