//! Content negotiation: JSON always, and metadata alone for those who ask for it.

use http::HeaderMap;
use http::header::ACCEPT;

use crate::status::{self, Refusal};
use crate::watch::Shape;

/// Picks the shape of the response from the `Accept` header: the first offer that can be met.
pub(super) fn negotiate(headers: &HeaderMap) -> Result<Shape, Refusal> {
    let offers = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or("*/*");
    offers.split(',').find_map(meet).ok_or_else(status::not_acceptable)
}

fn meet(offer: &str) -> Option<Shape> {
    let mut parts = offer.split(';').map(str::trim);
    if !matches!(parts.next()?, "" | "*/*" | "application/*" | "application/json") {
        return None;
    }
    match parts.find_map(|parameter| parameter.strip_prefix("as=")) {
        None => Some(Shape::Full),
        Some("PartialObjectMetadata" | "PartialObjectMetadataList") => Some(Shape::Metadata),
        Some(_) => None,
    }
}
