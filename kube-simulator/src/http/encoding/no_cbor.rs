//! Replaces the module `cbor` in builds without the feature `cbor`. The functions are never called,
//! because only `SimulatorBuilder::serve_cbor` enables the encoding.

use serde_json::{Map, Value};

pub(crate) const MEDIA_TYPE: &str = "application/cbor";
pub(crate) const SEQUENCE: &str = "application/cbor-seq";
pub(crate) const APPLY: &str = "application/apply-patch+cbor";

pub(crate) fn document(_: &Map<String, Value>) -> Vec<u8> {
    Vec::new()
}

pub(crate) fn event(_: &str, _: &[u8]) -> Vec<u8> {
    Vec::new()
}

pub(crate) fn read(_: &[u8]) -> Option<Map<String, Value>> {
    None
}
