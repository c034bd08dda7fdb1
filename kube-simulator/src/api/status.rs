//! The errors of an API server: `Status` objects.
//!
//! Clients match code *and* reason, and people read the message, so all three are those of the real
//! server, if it has the same error.

use std::borrow::Cow;

use http::StatusCode;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::core::Status;
use kube::core::response::{StatusCause, StatusDetails, StatusSummary, reason};
use serde::Serialize;
use serde_json::Value;

use crate::kinds::ResourceKind;
use crate::storage::ReadError;

/// The error of a request.
pub(crate) type Refusal = Box<Status>;

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Compacted => expired("The resourceVersion for the provided list is too old."),
            ReadError::NotReached { wanted, current } => too_large_resource_version(wanted, current, 1),
            ReadError::NotStored { wanted, stored } => too_large_resource_version(wanted, stored, 0),
            ReadError::Initializing { retry_after } => {
                too_many_requests("storage is (re)initializing", retry_after)
            }
        }
    }
}

/// Returns an error status without details.
pub(crate) fn failure(code: StatusCode, reason: &str, message: impl Into<String>) -> Refusal {
    Box::new(Status {
        status: Some(StatusSummary::Failure),
        code: code.as_u16(),
        message: message.into(),
        metadata: Some(ListMeta::default()),
        reason: reason.to_owned(),
        details: None,
    })
}

pub(crate) fn bad_request(message: impl Into<String>) -> Refusal {
    failure(StatusCode::BAD_REQUEST, "BadRequest", message)
}

pub(crate) fn unauthorized() -> Refusal {
    failure(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
}

pub(crate) fn not_found(kind: &ResourceKind, name: &str) -> Refusal {
    let message = format!("{} \"{name}\" not found", kind.qualified_plural());
    about(kind, name, failure(StatusCode::NOT_FOUND, reason::NOT_FOUND, message))
}

/// Returns the error `AlreadyExists` for the creation of an object whose name is in use. If
/// `terminating` is true, the message adds that the existing object is being deleted.
pub(crate) fn already_exists(kind: &ResourceKind, name: &str, terminating: bool) -> Refusal {
    let state = if terminating { "object is being deleted: " } else { "" };
    let message = format!("{state}{} \"{name}\" already exists", kind.qualified_plural());
    about(kind, name, failure(StatusCode::CONFLICT, reason::ALREADY_EXISTS, message))
}

/// Returns the error of a write with a stale `resourceVersion`.
pub(crate) fn modified_since(kind: &ResourceKind, name: &str) -> Refusal {
    conflict(
        kind,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )
}

pub(crate) fn conflict(kind: &ResourceKind, name: &str, why: &str) -> Refusal {
    let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.qualified_plural());
    about(kind, name, failure(StatusCode::CONFLICT, reason::CONFLICT, message))
}

/// Returns a conflict that names the kind instead of the resource, as conflicts of deletes do.
pub(crate) fn conflict_of_kind(kind: &ResourceKind, name: &str, why: &str) -> Refusal {
    let by_kind = ResourceKind { plural: kind.kind.clone(), ..kind.clone() };
    conflict(&by_kind, name, why)
}

/// An error of one field, in the server's format.
pub(crate) struct FieldError {
    reason: &'static str,
    field: Cow<'static, str>,
    message: String,
}

impl FieldError {
    pub(crate) fn required(field: impl Into<Cow<'static, str>>, why: &str) -> Self {
        let message =
            if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self { reason: "FieldValueRequired", field: field.into(), message }
    }

    pub(crate) fn immutable(field: impl Into<Cow<'static, str>>, value: &str) -> Self {
        Self::invalid(field, &format!("{value:?}"), "field is immutable")
    }

    /// Returns the error of an invalid value. The message contains `value` as given, so the caller
    /// must quote strings.
    pub(crate) fn invalid(field: impl Into<Cow<'static, str>>, value: &str, why: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            field: field.into(),
            message: format!("Invalid value: {value}: {why}"),
        }
    }

    pub(crate) fn wrong_type(field: impl Into<Cow<'static, str>>, value: &str, why: &str) -> Self {
        Self { reason: "FieldValueTypeInvalid", ..Self::invalid(field, value, why) }
    }

    /// Returns the error of a value that is longer than `most` bytes.
    pub(crate) fn too_long(field: impl Into<Cow<'static, str>>, most: usize) -> Self {
        let unit = if most == 1 { "byte" } else { "bytes" };
        let message = format!("Too long: may not be more than {most} {unit}");
        Self { reason: "FieldValueTooLong", field: field.into(), message }
    }

    /// Returns the error of a list with `size` elements that can have only `most`.
    pub(crate) fn too_many(field: impl Into<Cow<'static, str>>, size: usize, most: usize) -> Self {
        let unit = if most == 1 { "item" } else { "items" };
        let message = format!("Too many: {size}: must have at most {most} {unit}");
        Self { reason: "FieldValueTooMany", field: field.into(), message }
    }

    /// Returns the error of a repeated list element. The message contains `value` as given.
    pub(crate) fn duplicate(field: impl Into<Cow<'static, str>>, value: &str) -> Self {
        let message = format!("Duplicate value: {value}");
        Self { reason: "FieldValueDuplicate", field: field.into(), message }
    }

    pub(crate) fn forbidden(field: impl Into<Cow<'static, str>>, why: &str) -> Self {
        Self { reason: "FieldValueForbidden", field: field.into(), message: format!("Forbidden: {why}") }
    }

    /// Returns the error of a value that is not one of the supported values. The message contains
    /// `value` as JSON, and `supported` as given.
    pub(crate) fn unsupported(
        field: impl Into<Cow<'static, str>>,
        value: impl Into<Value>,
        supported: &str,
    ) -> Self {
        let value: Value = value.into();
        let message = format!("Unsupported value: {value}: supported values: {supported}");
        Self { reason: "FieldValueNotSupported", field: field.into(), message }
    }
}

/// When the errors in [`FieldErrors`] have this total length in bytes, further errors are dropped.
/// A real server has no such limit.
const MAX_FIELD_ERROR_BYTES: usize = 256 * 1024;

/// The validation errors of one object. Once their total length reaches [`MAX_FIELD_ERROR_BYTES`],
/// further errors are dropped.
#[derive(Default)]
pub(crate) struct FieldErrors {
    errors: Vec<FieldError>,
    length: usize,
}

impl FieldErrors {
    pub(crate) fn push(&mut self, error: FieldError) {
        // Each error contains a path. Without a limit, the errors could be many times as long as
        // the object.
        if !self.is_full() {
            self.length += error.field.len() + error.message.len();
            self.errors.push(error);
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.length >= MAX_FIELD_ERROR_BYTES
    }

    pub(crate) fn into_vec(self) -> Vec<FieldError> {
        self.errors
    }
}

impl Extend<FieldError> for FieldErrors {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}

/// Returns the error of an invalid object, or of invalid request options.
pub(crate) fn invalid(group: &str, kind: &str, name: &str, errors: Vec<FieldError>) -> Refusal {
    let listed: Vec<String> = errors.iter().map(|e| format!("{}: {}", e.field, e.message)).collect();
    let all = match listed.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    let message = format!("{qualified} \"{name}\" is invalid: {all}");
    let mut refusal = failure(StatusCode::UNPROCESSABLE_ENTITY, reason::INVALID, message);
    refusal.details = Some(StatusDetails {
        causes: errors.into_iter().map(|e| cause(e.reason, &e.message, &e.field)).collect(),
        ..details(group, kind, name)
    });
    refusal
}

/// Returns the [`invalid`] error if there are `errors`.
pub(crate) fn refuse(group: &str, kind: &str, name: &str, errors: Vec<FieldError>) -> Result<(), Refusal> {
    if errors.is_empty() { Ok(()) } else { Err(invalid(group, kind, name, errors)) }
}

pub(crate) fn expired(message: impl Into<String>) -> Refusal {
    failure(StatusCode::GONE, "Expired", message)
}

fn too_large_resource_version(wanted: u64, current: u64, retry_after_seconds: u32) -> Refusal {
    let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
    let mut refusal = failure(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
    refusal.details = Some(StatusDetails {
        causes: vec![cause("ResourceVersionTooLarge", "Too large resource version", "")],
        retry_after_seconds,
        ..details("", "", "")
    });
    refusal
}

pub(crate) fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Refusal {
    let mut refusal = failure(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
    refusal.details = Some(StatusDetails { retry_after_seconds, ..details("", "", "") });
    refusal
}

pub(crate) fn forbidden(kind: &ResourceKind, name: &str, why: &str) -> Refusal {
    let message = format!("{} \"{name}\" is forbidden: {why}", kind.qualified_plural());
    about(kind, name, failure(StatusCode::FORBIDDEN, reason::FORBIDDEN, message))
}

pub(crate) fn namespace_terminating(kind: &ResourceKind, name: &str, namespace: &str) -> Refusal {
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut refusal = forbidden(kind, name, &why);
    let why = format!("namespace {namespace} is being terminated");
    refusal.details = Some(StatusDetails {
        causes: vec![cause("NamespaceTerminating", &why, "metadata.namespace")],
        ..details(&kind.group, &kind.plural, name)
    });
    refusal
}

/// Returns the error of an unknown path within a served built-in group.
pub(crate) fn no_such_resource() -> Refusal {
    failure(StatusCode::NOT_FOUND, reason::NOT_FOUND, "the server could not find the requested resource")
}

pub(crate) fn method_not_allowed() -> Refusal {
    failure(
        StatusCode::METHOD_NOT_ALLOWED,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )
}

/// Returns the error for a verb that a custom resource does not support.
pub(crate) fn unsupported_verb(kind: &ResourceKind, verb: &str) -> Refusal {
    let message = format!("{verb} is not supported on resources of kind {:?}", kind.qualified_plural());
    about(kind, "", failure(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message))
}

pub(crate) fn unsupported_media_type(accepted: &str) -> Refusal {
    failure(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UnsupportedMediaType",
        format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        ),
    )
}

pub(crate) fn not_acceptable(accepted: &str) -> Refusal {
    let message = format!("only the following media types are accepted: {accepted}");
    failure(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
}

/// Returns the error that ends a watch after the deletion of an object whose stored bytes are
/// unreadable.
pub(crate) fn store_read_error() -> Refusal {
    let message = "saw a DELETED event, but object data is corrupt - data from the storage is not transformable \
                   revision=0: no matching prefix found";
    failure(StatusCode::INTERNAL_SERVER_ERROR, "StorageReadError", message)
}

pub(crate) fn internal(message: impl Into<String>) -> Refusal {
    failure(StatusCode::INTERNAL_SERVER_ERROR, reason::UNKNOWN, message)
}

/// Returns a 500 error with the reason `InternalError`. [`internal`] returns one without a reason.
pub(crate) fn internal_error(why: &str) -> Refusal {
    let message = format!("Internal error occurred: {why}");
    let mut refusal = failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message);
    refusal.details = Some(StatusDetails { causes: vec![cause("", why, "")], ..details("", "", "") });
    refusal
}

/// Returns the `Success` status of a delete that does not return the removed object.
pub(crate) fn deleted(kind: &ResourceKind, name: &str, uid: &str) -> Status {
    Status {
        metadata: Some(ListMeta::default()),
        details: Some(StatusDetails { uid: uid.to_owned(), ..details(&kind.group, &kind.plural, name) }),
        ..Status::success()
    }
}

/// Encodes a status as the server sends it, with `kind` and `apiVersion`.
pub(crate) fn encode(status: &Status) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Wire<'a> {
        kind: &'static str,
        api_version: &'static str,
        #[serde(flatten)]
        status: &'a Status,
    }
    let wire = Wire { kind: "Status", api_version: "v1", status };
    // Cannot fail: JSON can express all values of a status.
    serde_json::to_vec(&wire).unwrap_or_default()
}

fn about(kind: &ResourceKind, name: &str, mut refusal: Refusal) -> Refusal {
    refusal.details = Some(details(&kind.group, &kind.plural, name));
    refusal
}

pub(crate) fn details(group: &str, kind: &str, name: &str) -> StatusDetails {
    StatusDetails {
        name: name.to_owned(),
        group: group.to_owned(),
        kind: kind.to_owned(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    }
}

pub(crate) fn cause(reason: &str, message: &str, field: &str) -> StatusCause {
    StatusCause { reason: reason.to_owned(), message: message.to_owned(), field: field.to_owned() }
}
