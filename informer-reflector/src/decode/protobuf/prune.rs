//! Removes the pruned fields from the bytes of a message.

use kube_messages::{Content, Fields, Malformed, Message, Shape, put_nested};

use crate::decode::prune_paths::{self, Level};

/// Returns the bytes of a message without the pruned fields. Nested messages are checked only if
/// they can contain pruned fields.
pub(in crate::decode) fn prune(
    message: &Message,
    bytes: &[u8],
    pruned: &Level,
) -> Result<Vec<u8>, Malformed> {
    let mut kept = Vec::with_capacity(bytes.len());
    keep(message, bytes, pruned, &mut kept)?;
    Ok(kept)
}

fn keep(message: &Message, bytes: &[u8], pruned: &Level, kept: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut rest = Fields(bytes);
    loop {
        let before = rest.0;
        let Some((number, content)) = rest.next()? else { return Ok(()) };
        let field = message.field(number);
        let level = match field.and_then(|field| pruned.field(field.name)) {
            _ if field.is_some_and(|field| field.is_inlined) => Some(pruned),
            Some(prune_paths::Field::Whole) => continue,
            inside => inside.and_then(prune_paths::Field::inside),
        };
        match (level, field.map(|field| (field.shape, field.message())), content) {
            (Some(level), Some((Shape::Map, _)), Content::Bytes(entry))
                if key_and_value(entry).is_ok_and(|(key, _)| is_pruned_entry(key, Some(level))) =>
            {
                continue;
            }
            // Paths lead neither into the elements of a list nor into the values of a map.
            (Some(_), Some((Shape::List | Shape::Map, _)), _) => {}
            (Some(level), Some((_, Some(message))), Content::Bytes(inner)) => {
                let mut result = Ok(());
                put_nested(kept, number, |kept| result = keep(message, inner, level, kept));
                result?;
                continue;
            }
            _ => {}
        }
        kept.extend_from_slice(&before[..before.len() - rest.0.len()]);
    }
}

pub(super) fn key_and_value(entry: &[u8]) -> Result<(&[u8], Content<'_>), Malformed> {
    let (mut key, mut value) = (&[][..], Content::Bytes(&[]));
    let mut parts = Fields(entry);
    while let Some((number, content)) = parts.next()? {
        match (number, content) {
            (1, Content::Bytes(bytes)) => key = bytes,
            (1, _) => return Err(Malformed),
            (2, content) => value = content,
            _ => {}
        }
    }
    Ok((key, value))
}

/// Returns whether the entry of a map with this key is pruned. `pruned` contains the pruned keys of
/// the map; `None` if no key is pruned.
pub(super) fn is_pruned_entry(key: &[u8], pruned: Option<&Level>) -> bool {
    let field = pruned.zip(str::from_utf8(key).ok()).and_then(|(level, key)| level.field(key));
    matches!(field, Some(prune_paths::Field::Whole))
}
