//! Compares objects of every built-in kind and version, with random content: an object decoded from
//! JSON must equal the object decoded from protobuf. The API server's serializers write both
//! encodings, in `xtask/controlplane/clientgo-samples`.

use std::fmt::Debug;
use std::process::Command;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use informer_core::WatchEvent;
use informer_reflector::{Encoding, PrunePaths, WatchDecoder};
use k8s_openapi::api::core::v1::Pod;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The environment variable with the path of the program built from `xtask/controlplane/clientgo-samples`.
const SAMPLES: &str = "INFORMER_E2E_CLIENT_GO_SAMPLES";

/// An object in both encodings.
struct Sample {
    json: String,
    protobuf: Vec<u8>,
}

impl Sample {
    fn parse(line: &str) -> Self {
        let (json, encoded) = line.split_once('\t').expect("two columns");
        Self { json: json.to_owned(), protobuf: BASE64_STANDARD.decode(encoded).expect("base64") }
    }

    /// Decodes this sample from JSON, as the object of a watch event.
    fn read_json<K: DeserializeOwned + Clone + Debug + Send + Sync + 'static>(
        &self,
        prune: &PrunePaths,
    ) -> K {
        let mut decoder = WatchDecoder::new(prune.clone());
        added(decoder.push(format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", self.json).as_bytes()))
    }

    /// Decodes this sample from protobuf, as the object of a watch event.
    fn read_protobuf<K: DeserializeOwned + Clone + Debug + Send + Sync + 'static>(
        &self,
        prune: &PrunePaths,
    ) -> K {
        let mut decoder = WatchDecoder::new(prune.clone()).encoding(Encoding::Protobuf);
        added(decoder.push(&event(&self.protobuf)))
    }
}

fn added<K: Clone + Debug + 'static>(events: Result<Vec<WatchEvent<K>>, informer_core::ListWatchError>) -> K {
    match events.expect("a watch").pop() {
        Some(WatchEvent::Added(object)) => K::clone(&object),
        other => panic!("{other:?}"),
    }
}

/// Encodes a watch frame with one ADDED event.
fn event(object: &[u8]) -> Vec<u8> {
    let extension = field(1, object);
    let event = [field(1, b"ADDED"), field(2, &extension)].concat();
    [&u32::try_from(event.len()).expect("a small event").to_be_bytes()[..], &event].concat()
}

/// Encodes a length-delimited protobuf field.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let (mut len, mut field) = (content.len(), vec![number << 3 | 2]);
    while len >= 0x80 {
        field.push((len & 0x7f) as u8 | 0x80);
        len >>= 7;
    }
    field.push(len as u8);
    field.extend_from_slice(content);
    field
}

/// Removes members whose value is `null`, which are equivalent to absent members.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name, without_nulls(value))).collect()
        }
        Value::Array(elements) => elements.into_iter().map(without_nulls).collect(),
        value => value,
    }
}

#[test]
#[ignore = "needs Go: cargo xtask e2e"]
fn client_go_samples_are_equal_in_json_and_protobuf() {
    let program = std::env::var(SAMPLES).unwrap_or_else(|_| panic!("{SAMPLES} must name the program"));
    let seed = std::env::var("INFORMER_SEED").unwrap_or_else(|_| "1".to_owned());
    let output = Command::new(program).args(["20", &seed]).output().expect("samples");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let mut count = 0;
    for sample in text.lines().map(Sample::parse) {
        for prune in [PrunePaths::none(), PrunePaths::default()] {
            let expected = without_nulls(sample.read_json(&prune));
            let found = without_nulls(sample.read_protobuf(&prune));
            assert_eq!(found, expected, "seed {seed}: {} {}", expected["apiVersion"], expected["kind"]);
        }
        let kind: Value = sample.read_json(&PrunePaths::default());
        if kind["apiVersion"] == "v1" && kind["kind"] == "Pod" {
            let pods: [Pod; 2] =
                [sample.read_json(&PrunePaths::none()), sample.read_protobuf(&PrunePaths::none())];
            assert_eq!(pods[0], pods[1], "seed {seed}");
        }
        count += 1;
    }
    assert!(count >= 20 * 164, "{count} objects");
}
