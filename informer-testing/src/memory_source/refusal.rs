//! The error statuses with which a [`MemorySource`](super::MemorySource) refuses requests, as an
//! API server does.

use http::StatusCode;
use kube::core::Status;
use kube::core::response::{StatusCause, StatusDetails};

pub(super) type Refusal = Box<Status>;

pub(super) fn failure(code: StatusCode, reason: &str, message: &str) -> Refusal {
    Status::failure(message, reason).with_code(code.as_u16()).boxed()
}

pub(super) fn expired(message: &str) -> Refusal {
    failure(StatusCode::GONE, "Expired", message)
}

pub(super) fn too_large_resource_version(wanted: u64, current: u64) -> Refusal {
    let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
    let cause = StatusCause {
        reason: "ResourceVersionTooLarge".to_owned(),
        message: "Too large resource version".to_owned(),
        field: String::new(),
    };
    let details = StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: vec![cause],
        retry_after_seconds: 1,
    };
    failure(StatusCode::GATEWAY_TIMEOUT, "Timeout", &message).with_details(details).boxed()
}
