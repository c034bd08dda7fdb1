//! Checks that a message can be decoded later, for objects that are stored encoded.

use std::sync::LazyLock;

use kube_messages::{Content, Fields, Message, Messages};

use super::Object;
use crate::decode::json::MAX_DEPTH;
use crate::decode::tape::Tape;

/// The two time fields that k8s-openapi requires in kinds that can be listed. Each entry is the
/// [`Message::index`] of a message and the number of its field.
static REQUIRED_TIMES: LazyLock<[(usize, u64); 2]> = LazyLock::new(|| {
    [("meta.v1.Condition", "lastTransitionTime"), ("events.v1.EventSeries", "lastObservedTime")].map(
        |(message, name)| {
            let message = Messages::all().find(message);
            let field = message.and_then(|message| message.fields.iter().find(|field| field.name == name));
            (message.map_or(usize::MAX, |message| message.index), field.map_or(0, |field| field.number))
        },
    )
});

/// Checks that a message can be decoded into its k8s-openapi type. Returns the first problem.
pub(in crate::decode) fn check(message: &Message, bytes: &[u8]) -> Result<(), String> {
    let mut object = Object::<false> { tape: Tape::default() };
    object.message(message, bytes, None, MAX_DEPTH);
    object.tape.problem().map_or(Ok(()), |problem| Err(problem.to_owned()))
}

/// Returns `true` if messages of this type have a required field ([`REQUIRED_TIMES`]), and this
/// field is missing or empty in `bytes`.
pub(super) fn lacks_required_time(message: &Message, bytes: &[u8]) -> bool {
    let Some((_, required)) = REQUIRED_TIMES.iter().find(|(index, _)| *index == message.index) else {
        return false;
    };
    let mut fields = Fields(bytes);
    while let Ok(Some((number, content))) = fields.next() {
        if number == *required && content != Content::Bytes(&[]) {
            return false;
        }
    }
    true
}
