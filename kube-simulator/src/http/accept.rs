//! Content negotiation: selects the form (whole objects, only metadata, or a table) and the
//! encoding of a response. An offer is one entry of the client's `Accept` header: a media type with
//! its parameters.
//!
//! Counterpart: `NegotiateMediaTypeOptions` of the API server
//! (`pkg/endpoints/handlers/negotiation`).

use http::header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT};
use http::{HeaderMap, StatusCode};

use crate::api::status::{self, Refusal};
use crate::http::encoding::Encoding;
use crate::http::request::{RecordedRequest, header};
use crate::http::shape::Form;
use crate::kinds::ResourceKind;

/// The form and the encoding of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepted {
    pub(super) form: Form,
    pub(super) encoding: Encoding,
    /// Whether the client requested `PartialObjectMetadataList`, not `PartialObjectMetadata`.
    of_list: bool,
}

/// The forms and the encodings that a URL path supports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoint {
    /// Whether whole objects are available in protobuf.
    pub(super) protobuf: bool,
    pub(super) cbor: bool,
    /// Whether clients can also request tables and metadata instead of whole objects.
    pub(super) forms: bool,
    /// Whether the `Accept` header must contain `*/*` or a supported media type. The server then
    /// refuses a header with only `application/*`.
    pub(super) exact: bool,
}

/// One entry of an `Accept` header: a media type with its parameters.
struct Offer<'a> {
    media_type: &'a str,
    q: f64,
    parameters: Vec<(&'a str, &'a str)>,
}

/// Selects the form and the encoding of the response. They come from the client's most preferred
/// offer that the endpoint supports.
pub(super) fn negotiate(request: &RecordedRequest, endpoint: Endpoint) -> Result<Accepted, Refusal> {
    let offers = offers(&request.headers);
    let encodings = Encoding::served(endpoint.cbor);
    let is_exact = |offer: &Offer<'_>| {
        offer.media_type == "*/*"
            || encodings.iter().any(|encoding| encoding.media_type() == offer.media_type)
    };
    let mut acceptable =
        offers.iter().flat_map(|offer| encodings.iter().filter_map(|e| offer.accepted(*e, endpoint)));
    let found = if endpoint.exact && !offers.iter().any(is_exact) { None } else { acceptable.next() };
    let mut found = found.ok_or_else(|| status::not_acceptable(&media_types(endpoint.cbor)))?;
    if found.encoding == Encoding::Json && wants_indented(request) {
        found.encoding = Encoding::Indented;
    }
    Ok(found)
}

fn wants_indented(request: &RecordedRequest) -> bool {
    if let Some(pretty) = request.parameter("pretty").filter(|pretty| !pretty.is_empty()) {
        return ["1", "t", "T", "TRUE", "true", "True"].contains(&pretty.as_str());
    }
    let agent = header(&request.headers, USER_AGENT);
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|known| agent.starts_with(known))
}

/// Selects the encoding of an error. An error is always a whole `Status`, never a table.
pub(super) fn encoding_of_refusals(request: &RecordedRequest, cbor: bool) -> Encoding {
    let endpoint = Endpoint { protobuf: true, cbor, forms: false, exact: false };
    negotiate(request, endpoint).map_or(Encoding::Json, |accepted| accepted.encoding)
}

/// Lists the media types that the server sends and accepts.
pub(super) fn media_types(cbor: bool) -> String {
    let all: Vec<&str> = Encoding::served(cbor).iter().map(|encoding| encoding.media_type()).collect();
    all.join(", ")
}

pub(super) fn takes_aggregated_discovery(headers: &HeaderMap) -> bool {
    let wanted = [("g", "apidiscovery.k8s.io"), ("v", "v2"), ("as", "APIGroupDiscoveryList")];
    let is_it = |offer: &Offer<'_>| {
        offer.is_json() && wanted.iter().all(|(name, value)| offer.parameter(name) == Some(*value))
    };
    offers(headers).iter().any(is_it)
}

/// Returns whether a client requests the `OpenAPI` v2 document in protobuf (with Gnostic's schema).
pub(super) fn wants_gnostic(headers: &HeaderMap) -> bool {
    let prefix = "application/com.github.proto-openapi.spec.v2";
    offers(headers).first().is_some_and(|offer| offer.media_type.starts_with(prefix))
}

pub(super) fn takes_json(headers: &HeaderMap) -> bool {
    offers(headers).iter().any(Offer::is_json)
}

pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    let mut encodings = header(headers, ACCEPT_ENCODING).split(',');
    // As in the real server, `gzip` with a weight (such as `gzip;q=1`) is ignored.
    encodings.any(|encoding| encoding.trim() == "gzip")
}

/// Returns the offers of the client's `Accept` header, most preferred first.
fn offers(headers: &HeaderMap) -> Vec<Offer<'_>> {
    let accept = header(headers, ACCEPT);
    let accept = if accept.is_empty() { "*/*" } else { accept };
    let mut offers: Vec<Offer<'_>> = accept.split(',').map(Offer::parse).collect();
    // The comparison is not a strict order: `comes_before` can be true in both directions. The
    // sorted list therefore depends on the algorithm. This loop is the insertion sort that Go uses
    // for short lists.
    for next in 1..offers.len() {
        let mut place = next;
        while place > 0 && offers[place].comes_before(&offers[place - 1]) {
            offers.swap(place, place - 1);
            place -= 1;
        }
    }
    offers
}

impl Accepted {
    /// Returns the form and encoding of a document that exists only as JSON, indented if requested.
    pub(super) fn json(request: &RecordedRequest) -> Self {
        let offers = offers(&request.headers);
        let offer = offers.iter().find(|offer| offer.is_json());
        let is_offered = offer.is_some_and(|offer| offer.parameter("pretty") == Some("1"));
        let is_indented = is_offered || wants_indented(request);
        let encoding = if is_indented { Encoding::Indented } else { Encoding::Json };
        Self { form: Form::Full, encoding, of_list: false }
    }

    /// Returns an error if the selected encoding is YAML, in which watches cannot be sent. The
    /// error message lists the encodings for watches, including CBOR if `cbor` is true.
    pub(super) fn check_watchable(self, cbor: bool) -> Result<(), Refusal> {
        if self.encoding.stream_media_type().is_some() {
            return Ok(());
        }
        let streams = Encoding::served(cbor).iter().filter_map(|encoding| match encoding {
            // In this error message, the real server names the parameter `stream` for JSON too.
            Encoding::Json | Encoding::Indented => Some("application/json;stream=watch"),
            other => other.stream_media_type(),
        });
        Err(status::not_acceptable(&streams.collect::<Vec<_>>().join(", ")))
    }

    /// Returns an error if the client requests list metadata for one object, or object metadata for
    /// a list.
    pub(super) fn check_plurality(self, kind: &ResourceKind, is_list: bool) -> Result<(), Refusal> {
        let go_type = if is_list { format!("{}List", kind.go_type()) } else { kind.go_type() };
        let (form, why) = match (self.of_list, is_list) {
            _ if !matches!(self.form, Form::Metadata(_)) => return Ok(()),
            (false, true) => ("PartialObjectMetadata", format!("is a list (*{go_type})")),
            (true, false) => ("PartialObjectMetadataList", format!("is not a list (*{go_type})")),
            _ => return Ok(()),
        };
        let message = format!("you requested {form}, but the requested object {why}");
        Err(status::failure(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message))
    }
}

impl<'a> Offer<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let media_type = if media_type == "*" { "*/*" } else { media_type };
        let mut parameters: Vec<_> = parts.filter_map(|part| part.split_once('=')).collect();
        let q = parameters.iter().find(|(name, _)| *name == "q").map(|(_, q)| q.parse().unwrap_or(0.0));
        parameters.retain(|(name, _)| *name != "q");
        Self { media_type, q: q.unwrap_or(1.0), parameters }
    }

    /// Returns whether [`offers`] moves this offer before `other`. One of these reasons is enough:
    /// - This offer has a higher weight `q`.
    /// - This offer has a more specific media type. For example, `text/html;q=0.5` is moved before
    ///   `text/*;q=0.9`, and `text/*` is moved before `*/*`.
    fn comes_before(&self, other: &Self) -> bool {
        let any = |offer: &Self| offer.media_type.starts_with('*');
        let any_within = |offer: &Self| offer.media_type.ends_with('*');
        // As in Go, a more specific media type is sufficient, even with a lower weight.
        self.q > other.q || (!any(self) && any(other)) || (!any_within(self) && any_within(other))
    }

    fn is_json(&self) -> bool {
        matches!(self.media_type, "*/*" | "application/json")
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Returns the requested form in this encoding. Returns `None` if the offer excludes the
    /// encoding, or if the endpoint cannot send the form in this encoding.
    fn accepted(&self, encoding: Encoding, endpoint: Endpoint) -> Option<Accepted> {
        let takes_any = matches!(self.media_type, "*/*" | "application/*");
        let streams = match self.parameter("stream") {
            None | Some("") => true,
            Some(stream) => stream == "watch" && encoding.stream_media_type().is_some(),
        };
        if !streams || !(takes_any || self.media_type == encoding.media_type()) {
            return None;
        }
        let form = self.form()?;
        let is_there = match form {
            Form::Full => encoding != Encoding::Protobuf || endpoint.protobuf,
            Form::Metadata(_) => endpoint.forms,
            Form::Table(_) => endpoint.forms && encoding.is_text(),
        };
        let is_indented = encoding == Encoding::Json && self.parameter("pretty") == Some("1");
        let encoding = if is_indented { Encoding::Indented } else { encoding };
        let of_list = self.parameter("as") == Some("PartialObjectMetadataList");
        is_there.then_some(Accepted { form, encoding, of_list })
    }

    fn form(&self) -> Option<Form> {
        let meta_version = || {
            let version = ["v1", "v1beta1"].into_iter().find(|version| self.parameter("v") == Some(version));
            version.filter(|_| self.parameter("g") == Some("meta.k8s.io"))
        };
        match self.parameter("as") {
            None if self.parameter("g").is_some() || self.parameter("v").is_some() => None,
            None => Some(Form::Full),
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") => meta_version().map(Form::Metadata),
            Some("Table") => meta_version().map(Form::Table),
            Some(_) => None,
        }
    }
}
