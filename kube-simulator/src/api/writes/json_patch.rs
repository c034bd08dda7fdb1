//! JSON patches (RFC 6902), within a real server's limits on operations and copied bytes.
//!
//! Counterpart: `applyJSPatch` in `pkg/endpoints/handlers/patch.go`, and
//! `gopkg.in/evanphx/json-patch.v4`.

use http::StatusCode;
use json_patch::jsonptr::{Pointer, PointerBuf};
use json_patch::{AddOperation, PatchOperation, RemoveOperation, patch_unsafe};
use serde_json::Value;

use super::limits::{self, MAX_DEPTH};
use crate::api::status::{self, Refusal};

const MAX_OPERATIONS: usize = 10_000;

/// Maximum total size of the values that one patch copies, in bytes.
const MAX_COPIED: usize = 3 * 1024 * 1024;

/// Applies a patch. On failure, the document can be partly changed.
pub(super) fn apply(document: &mut Value, patch: &[PatchOperation]) -> Result<(), Refusal> {
    if patch.len() > MAX_OPERATIONS {
        let operations = patch.len();
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got \
             {operations}"
        );
        return Err(status::failure(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message));
    }
    let mut copied = 0;
    for operation in patch {
        let operation = resolve_indexes(document, operation)?;
        // The check precedes the operation, because even dropping a document that is nested too
        // deeply could overflow the stack.
        check_depth(document, &operation)?;
        if let PatchOperation::Copy(copy) = &operation {
            copied += document.pointer(copy.from.as_str()).map_or(0, limits::json_size);
            if copied > MAX_COPIED {
                return Err(rejected());
            }
        }
        let applied = match &operation {
            // A real server can replace the whole document, but cannot add it.
            PatchOperation::Add(_) | PatchOperation::Copy(_) if operation.path().is_root() => {
                return Err(rejected());
            }
            // A real server adds a missing field, and compares a missing field with null as equal.
            PatchOperation::Replace(replace) if lacks_field(document, replace.path.as_str()) => {
                let (path, value) = (replace.path.clone(), replace.value.clone());
                patch_unsafe(document, &[PatchOperation::Add(AddOperation { path, value })])
            }
            PatchOperation::Test(test)
                if test.value.is_null() && lacks_field(document, test.path.as_str()) =>
            {
                Ok(())
            }
            _ => patch_unsafe(document, std::slice::from_ref(&operation)),
        };
        applied.map_err(|_| rejected())?;
    }
    Ok(())
}

/// Returns `operation` with its negative list indexes replaced, as [`absolute`] describes.
///
/// For a move, removes the value from `document`, and returns the operation that adds the value.
fn resolve_indexes(document: &mut Value, operation: &PatchOperation) -> Result<PatchOperation, Refusal> {
    let mut operation = operation.clone();
    match &mut operation {
        PatchOperation::Add(add) => add.path = absolute(document, &add.path, true),
        PatchOperation::Remove(remove) => remove.path = absolute(document, &remove.path, false),
        PatchOperation::Replace(replace) => replace.path = absolute(document, &replace.path, false),
        PatchOperation::Test(test) => test.path = absolute(document, &test.path, false),
        PatchOperation::Copy(copy) => {
            copy.from = absolute(document, &copy.from, false);
            copy.path = absolute(document, &copy.path, true);
        }
        PatchOperation::Move(moved) => {
            let path = absolute(document, &moved.from, false);
            let value = document.pointer(path.as_str()).cloned().ok_or_else(rejected)?;
            let removal = PatchOperation::Remove(RemoveOperation { path });
            patch_unsafe(document, &[removal]).map_err(|_| rejected())?;
            let path = absolute(document, &moved.path, true);
            return Ok(PatchOperation::Add(AddOperation { path, value }));
        }
    }
    Ok(operation)
}

/// Returns `path` with its negative list indexes replaced. For example, -1 becomes 2 in a list of
/// three elements.
///
/// `is_new` means that a value will be inserted at `path`. A final index -1 is then the position
/// after the last element.
fn absolute(document: &Value, path: &Pointer, is_new: bool) -> PointerBuf {
    let mut absolute = PointerBuf::new();
    let mut tokens = path.tokens().peekable();
    while let Some(token) = tokens.next() {
        let list = document.pointer(absolute.as_str()).and_then(Value::as_array);
        // As in Go, an index can have a plus sign.
        let index = token.decoded().parse::<isize>();
        match (list, index) {
            (Some(list), Ok(index)) => {
                let places = list.len() + usize::from(is_new && tokens.peek().is_none());
                let from_start = if index < 0 { index.saturating_add_unsigned(places) } else { index };
                absolute.push_back(from_start);
            }
            _ => absolute.push_back(token),
        }
    }
    absolute
}

/// Returns whether `path` leads to a field that is missing, while the JSON object around it exists.
fn lacks_field(document: &Value, path: &str) -> bool {
    let parent = path.rsplit_once('/').and_then(|(parent, _)| document.pointer(parent));
    parent.is_some_and(Value::is_object) && document.pointer(path).is_none()
}

/// Returns an error if an operation would nest a document too deeply.
fn check_depth(document: &Value, operation: &PatchOperation) -> Result<(), Refusal> {
    let (path, value) = match operation {
        PatchOperation::Add(add) => (&add.path, Some(&add.value)),
        PatchOperation::Replace(replace) => (&replace.path, Some(&replace.value)),
        PatchOperation::Copy(copy) => (&copy.path, document.pointer(copy.from.as_str())),
        PatchOperation::Move(_) | PatchOperation::Remove(_) | PatchOperation::Test(_) => return Ok(()),
    };
    if path.count() + value.map_or(0, limits::depth) > MAX_DEPTH { Err(limits::too_deep()) } else { Ok(()) }
}

/// Returns the error for a patch that cannot be applied. As in the real server, the error contains
/// no details.
pub(crate) fn rejected() -> Refusal {
    let message = "the server rejected our request due to an error in our request";
    status::failure(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
}
