//! Content negotiation: JSON always, in the form that the client likes best among those that there are.
//!
//! Protobuf, CBOR and YAML are not spoken; clients that prefer them offer JSON as well.

use http::header::{ACCEPT, ACCEPT_ENCODING};
use http::{HeaderMap, StatusCode};

use crate::resource::ResourceKind;
use crate::shape::Form;
use crate::status::{self, Refusal};

/// One media type of an `Accept` header.
struct Offer<'a> {
    media_type: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

/// Picks the form of the response: the first offer that can be met.
pub(super) fn form(headers: &HeaderMap) -> Result<Form, Refusal> {
    offers(headers).find_map(|offer| offer.form()).ok_or_else(status::not_acceptable)
}

/// Refuses metadata of a list to who asks for that of one object, and the other way round.
pub(super) fn check_plurality(
    headers: &HeaderMap,
    kind: &ResourceKind,
    is_list: bool,
) -> Result<(), Refusal> {
    let first = offers(headers).find(|offer| offer.form().is_some());
    let form = first.and_then(|offer| offer.parameter("as")).unwrap_or_default();
    let go_type = if is_list { format!("{}List", kind.go_type()) } else { kind.go_type() };
    let why = match (form, is_list) {
        ("PartialObjectMetadata", true) => format!("is a list (*{go_type})"),
        ("PartialObjectMetadataList", false) => format!("is not a list (*{go_type})"),
        _ => return Ok(()),
    };
    let message = format!("you requested {form}, but the requested object {why}");
    Err(status::failure(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message))
}

/// Tells in which version, if any, a client wants all discovery documents at once.
pub(super) fn aggregated_discovery(headers: &HeaderMap) -> Option<&'static str> {
    let first = offers(headers).find(Offer::is_json)?;
    let is_it = first.parameter("g") == Some("apidiscovery.k8s.io")
        && first.parameter("as") == Some("APIGroupDiscoveryList");
    let version = first.parameter("v").filter(|_| is_it)?;
    ["v2", "v2beta1"].into_iter().find(|known| *known == version)
}

pub(super) fn takes_json(headers: &HeaderMap) -> bool {
    offers(headers).any(|offer| offer.is_json())
}

pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    let encodings = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    encodings.split(',').any(|encoding| encoding.split(';').next().unwrap_or_default().trim() == "gzip")
}

fn offers(headers: &HeaderMap) -> impl Iterator<Item = Offer<'_>> {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or("*/*");
    accept.split(',').map(Offer::parse)
}

impl<'a> Offer<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        Self { media_type, parameters: parts.filter_map(|part| part.split_once('=')).collect() }
    }

    fn is_json(&self) -> bool {
        matches!(self.media_type, "" | "*/*" | "application/json")
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    fn form(&self) -> Option<Form> {
        if !self.is_json() {
            return None;
        }
        let of_meta = |versions: &[&'static str]| {
            let version = versions.iter().find(|version| self.parameter("v") == Some(version));
            version.filter(|_| self.parameter("g") == Some("meta.k8s.io")).copied()
        };
        match self.parameter("as") {
            None => Some(Form::Full),
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") => {
                of_meta(&["v1", "v1beta1"]).map(|_| Form::Metadata)
            }
            Some("Table") => of_meta(&["v1", "v1beta1"]).map(Form::Table),
            Some(_) => None,
        }
    }
}
