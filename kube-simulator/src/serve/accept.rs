//! Content negotiation: which of the client's offers is met, in the form and encoding that it asks for.
//!
//! Follows `NegotiateMediaTypeOptions` of the API server (`pkg/endpoints/handlers/negotiation`), with its parser of
//! `Accept` headers: offers are sorted by `q`, but those with a `*` come behind those without.

use http::header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT};
use http::{HeaderMap, StatusCode};

use crate::encoding::Encoding;
use crate::request::RecordedRequest;
use crate::resource::ResourceKind;
use crate::shape::Form;
use crate::status::{self, Refusal};

/// What a client gets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepted {
    pub(super) form: Form,
    pub(super) encoding: Encoding,
    /// Whether it asked for the metadata of a list.
    of_list: bool,
}

/// What can be had at an address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoint {
    /// Whether whole objects can be had in protobuf.
    pub(super) protobuf: bool,
    pub(super) cbor: bool,
    /// Whether objects can be had in other forms than their own.
    pub(super) forms: bool,
    /// Whether an offer must name a media type, or be `*/*`: `application/*` is not looked at where Go types are served,
    /// if there is no other offer.
    pub(super) exact: bool,
}

/// One media type of an `Accept` header.
struct Offer<'a> {
    media_type: &'a str,
    q: f64,
    parameters: Vec<(&'a str, &'a str)>,
}

/// Picks form and encoding of the response: the best offer that can be met.
pub(super) fn negotiate(request: &RecordedRequest, endpoint: Endpoint) -> Result<Accepted, Refusal> {
    let offers = offers(&request.headers);
    let encodings = Encoding::served(endpoint.cbor);
    let is_exact = |offer: &Offer<'_>| {
        offer.media_type == "*/*"
            || encodings.iter().any(|encoding| encoding.media_type() == offer.media_type)
    };
    let mut met = offers.iter().flat_map(|offer| encodings.iter().filter_map(|e| offer.meet(*e, endpoint)));
    let found = if endpoint.exact && !offers.iter().any(is_exact) { None } else { met.next() };
    let mut found = found.ok_or_else(|| status::not_acceptable(&media_types(endpoint.cbor)))?;
    if found.encoding == Encoding::Json && is_for_people(request) {
        found.encoding = Encoding::Indented;
    }
    Ok(found)
}

/// Returns whether JSON is to be indented: the parameter `pretty` says it, or else the program that asks.
fn is_for_people(request: &RecordedRequest) -> bool {
    if let Some(said) = request.parameter("pretty").filter(|said| !said.is_empty()) {
        return ["1", "t", "T", "TRUE", "true", "True"].contains(&said.as_str());
    }
    let agent = request.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|known| agent.starts_with(known))
}

/// Picks the encoding of a refusal, which has no other form than its own.
pub(super) fn encoding_of_refusals(request: &RecordedRequest, cbor: bool) -> Encoding {
    let endpoint = Endpoint { protobuf: true, cbor, forms: false, exact: false };
    negotiate(request, endpoint).map_or(Encoding::Json, |accepted| accepted.encoding)
}

/// Lists the media types that are sent and taken.
pub(super) fn media_types(cbor: bool) -> String {
    let all: Vec<&str> = Encoding::served(cbor).iter().map(|encoding| encoding.media_type()).collect();
    all.join(", ")
}

/// Tells in which version, if any, a client wants all discovery documents at once.
pub(super) fn aggregated_discovery(headers: &HeaderMap) -> Option<&'static str> {
    let offers = offers(headers);
    let first = offers.iter().find(|offer| offer.is_json())?;
    let is_it = first.parameter("g") == Some("apidiscovery.k8s.io")
        && first.parameter("as") == Some("APIGroupDiscoveryList");
    let version = first.parameter("v").filter(|_| is_it)?;
    ["v2", "v2beta1"].into_iter().find(|known| *known == version)
}

/// Returns whether a client wants the old `OpenAPI` document in protobuf, for which there is a schema by Gnostic.
pub(super) fn wants_gnostic(headers: &HeaderMap) -> bool {
    let prefix = "application/com.github.proto-openapi.spec.v2";
    offers(headers).first().is_some_and(|offer| offer.media_type.starts_with(prefix))
}

pub(super) fn takes_json(headers: &HeaderMap) -> bool {
    offers(headers).iter().any(Offer::is_json)
}

pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    let encodings = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    encodings.split(',').any(|encoding| encoding.split(';').next().unwrap_or_default().trim() == "gzip")
}

/// Reads the offers, best first.
fn offers(headers: &HeaderMap) -> Vec<Offer<'_>> {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let accept = if accept.is_empty() { "*/*" } else { accept };
    let mut offers: Vec<Offer<'_>> = accept.split(',').map(Offer::parse).collect();
    // What comes before what is no order, so it depends on the algorithm what comes out: this is that of the real server,
    // for as many offers as anyone makes.
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
    /// JSON, for what is there in nothing else.
    pub(super) fn json(request: &RecordedRequest) -> Self {
        let offers = offers(&request.headers);
        let offer = offers.iter().find(|offer| offer.is_json());
        let is_offered = offer.is_some_and(|offer| offer.parameter("pretty") == Some("1"));
        let is_indented = is_offered || is_for_people(request);
        let encoding = if is_indented { Encoding::Indented } else { Encoding::Json };
        Self { form: Form::Full, encoding, of_list: false }
    }

    /// Refuses what can't be had in a stream.
    pub(super) fn check_stream(self, cbor: bool) -> Result<(), Refusal> {
        if self.encoding.stream_media_type().is_some() {
            return Ok(());
        }
        let streams = Encoding::served(cbor).iter().filter_map(|encoding| match encoding {
            // In lists of what there is, the real server says so of JSON, too.
            Encoding::Json | Encoding::Indented => Some("application/json;stream=watch"),
            other => other.stream_media_type(),
        });
        Err(status::not_acceptable(&streams.collect::<Vec<_>>().join(", ")))
    }

    /// Refuses metadata of a list to who asks for that of one object, and the other way round.
    pub(super) fn check_plurality(self, kind: &ResourceKind, is_list: bool) -> Result<(), Refusal> {
        let go_type = if is_list { format!("{}List", kind.go_type()) } else { kind.go_type() };
        let (form, why) = match (self.of_list, is_list) {
            _ if self.form != Form::Metadata => return Ok(()),
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

    fn comes_before(&self, other: &Self) -> bool {
        let any = |offer: &Self| offer.media_type.starts_with('*');
        let any_within = |offer: &Self| offer.media_type.ends_with('*');
        self.q > other.q || (!any(self) && any(other)) || (!any_within(self) && any_within(other))
    }

    fn is_json(&self) -> bool {
        matches!(self.media_type, "*/*" | "application/json")
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Says what the client gets by this offer in an encoding, if it can be met so.
    fn meet(&self, encoding: Encoding, endpoint: Endpoint) -> Option<Accepted> {
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
            Form::Metadata => endpoint.forms,
            Form::Table(_) => endpoint.forms && encoding.is_text(),
        };
        let is_indented = encoding == Encoding::Json && self.parameter("pretty") == Some("1");
        let encoding = if is_indented { Encoding::Indented } else { encoding };
        let of_list = self.parameter("as") == Some("PartialObjectMetadataList");
        is_there.then_some(Accepted { form, encoding, of_list })
    }

    fn form(&self) -> Option<Form> {
        let of_meta = |versions: &[&'static str]| {
            let version = versions.iter().find(|version| self.parameter("v") == Some(version));
            version.filter(|_| self.parameter("g") == Some("meta.k8s.io")).copied()
        };
        match self.parameter("as") {
            None if self.parameter("g").is_some() || self.parameter("v").is_some() => None,
            None => Some(Form::Full),
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") => {
                of_meta(&["v1", "v1beta1"]).map(|_| Form::Metadata)
            }
            Some("Table") => of_meta(&["v1", "v1beta1"]).map(Form::Table),
            Some(_) => None,
        }
    }
}
