//! A request whose body has been read, with parsers for its body and options.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use serde_json::Value;

use super::accept::{self, Accepted};
use super::{manager, patch};
use crate::api::catalogue::Served;
use crate::api::list::parse_bool;
use crate::api::status::{self, FieldError, Refusal};
use crate::api::writes::{Body, DeleteOptions, Patch, WriteOptions, Writer};
use crate::http::encoding::{cbor, parse_yaml, protobuf};
use crate::http::request::{RecordedRequest, header};
use crate::http::server::Server;
use crate::http::shape::{Form, Include, Shape};
use crate::kinds::ResourceKind;
use crate::storage::Revision;

pub(super) struct Call {
    pub(super) server: Arc<Server>,
    /// The newest write that the API server of this request has reached so far. A replica can lag
    /// behind the storage.
    pub(super) revision: Revision,
    pub(super) recorded: Arc<RecordedRequest>,
    pub(super) accepted: Accepted,
    /// Whether the client requests a WebSocket. A watch then sends each event as one message.
    pub(super) one_by_one: bool,
    pub(super) body: Bytes,
}

impl Call {
    /// Parses the body of the request as an object. `kind` is the expected kind, for error
    /// messages.
    pub(super) fn object(&self, kind: &str) -> Result<Body, Refusal> {
        let unrecognized = |error: String| {
            status::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse \
                 error: {error}"
            ))
        };
        match self.content_type() {
            "" | "application/json" => {
                serde_json::from_slice(&self.body).map_err(|error| unrecognized(error.to_string()))
            }
            "application/yaml" => parse_yaml(&self.body).map_err(unrecognized),
            // Protobuf of an unknown kind cannot be decoded, so the server refuses the encoding.
            protobuf::MEDIA_TYPE => protobuf::read(&self.body).ok_or_else(|| self.unsupported()),
            cbor::MEDIA_TYPE if self.takes_cbor() => cbor::read(&self.body).ok_or_else(|| {
                status::bad_request(format!("the body is not an object in CBOR (must be of type {kind})"))
            }),
            _ => Err(self.unsupported()),
        }
    }

    /// Parses the options of a delete, from the body or the query.
    pub(super) fn delete_options(&self) -> Result<DeleteOptions, Refusal> {
        if self.body.is_empty() || matches!(self.content_type(), "" | "application/json") {
            return DeleteOptions::parse(&self.body, &self.recorded.query);
        }
        let options = Value::Object(self.object("DeleteOptions")?);
        DeleteOptions::parse(options.to_string().as_bytes(), "")
    }

    pub(super) fn patch(&self, kind: &ResourceKind) -> Result<Patch, Refusal> {
        patch::parse(kind, self.content_type(), &self.body, self.takes_cbor())
    }

    /// Returns the form and the encoding, such as a table in JSON, in which the client requests
    /// objects of a resource.
    pub(super) fn shape(&self, served: &Served) -> Result<Shape, Refusal> {
        let Accepted { form, encoding, .. } = self.accepted;
        let include = match form {
            Form::Table(_) => self.included_object()?,
            Form::Full | Form::Metadata(_) => Include::default(),
        };
        Ok(Shape::new(form, encoding, served, include, self.server.api.clock))
    }

    /// Parses the query parameter `includeObject`.
    fn included_object(&self) -> Result<Include, Refusal> {
        let text = self.recorded.parameter("includeObject").unwrap_or_default();
        Include::parse(&text).ok_or_else(|| {
            status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {text:?}: must be 'Metadata', \
                 'Object', 'None', or empty"
            ))
        })
    }

    /// Checks `fieldManager`, `dryRun` and `fieldValidation`. `options` is the type in the error
    /// message, such as `CreateOptions`.
    pub(super) fn check_options(&self, options: &str) -> Result<(), Refusal> {
        let given = |name: &str| self.recorded.parameter(name).unwrap_or_default();
        let mut errors = manager::check(&given("fieldManager"));
        let dry_run = self.recorded.parameters("dryRun");
        if dry_run.iter().any(|stage| stage != "All") {
            errors.push(FieldError::unsupported("dryRun", dry_run, "\"All\""));
        }
        let validation = given("fieldValidation");
        if !matches!(validation.as_str(), "" | "Ignore" | "Strict" | "Warn") {
            let supported = "\"\", \"Ignore\", \"Strict\", \"Warn\"";
            errors.push(FieldError::unsupported("fieldValidation", validation, supported));
        }
        if errors.is_empty() { Ok(()) } else { Err(status::invalid("meta.k8s.io", options, "", errors)) }
    }

    /// Returns a [`Writer`] with the options of this request.
    pub(super) fn writer<'a>(&'a self, served: &'a Served, namespace: Option<&'a str>) -> Writer<'a> {
        let options = WriteOptions {
            dry_run: self.recorded.parameter("dryRun").is_some_and(|value| value == "All"),
            manager: Some(self.manager()),
            force: self.recorded.parameter("force").is_some_and(|value| parse_bool(&value)),
        };
        Writer { api: &self.server.api, served, namespace, options }
    }

    pub(super) fn takes_gzip(&self) -> bool {
        accept::takes_gzip(&self.recorded.headers)
    }

    /// Returns the field manager: the `fieldManager` parameter, or a name from the `User-Agent`.
    fn manager(&self) -> String {
        let named = self.recorded.parameter("fieldManager").filter(|name| !name.is_empty());
        named.unwrap_or_else(|| manager::of_user_agent(header(&self.recorded.headers, USER_AGENT)))
    }

    fn takes_cbor(&self) -> bool {
        self.server.settings.cbor
    }

    /// Returns the error for a body whose `Content-Type` is not supported.
    fn unsupported(&self) -> Refusal {
        status::unsupported_media_type(&accept::media_types(self.takes_cbor()))
    }

    fn content_type(&self) -> &str {
        header(&self.recorded.headers, CONTENT_TYPE).split(';').next().unwrap_or_default().trim()
    }
}
