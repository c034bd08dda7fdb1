//! [`Form`]: the form in which an arriving object is stored: either decoded, or [encoded](Encoded).
//! A tape is an object as a list of tokens. A [`Message`] describes a protobuf message type.

use std::sync::{Arc, LazyLock};

use informer_core::{AnyObject, Codec, DecodeBytes, Encoded, ObjectKey, OwnedObject, Storage, Uid};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DynamicObject, TypeMeta};
use kube_messages::{Content, Fields, Malformed, Message, Messages, Type};
use serde::Deserialize;

use super::deserialize::deserialize;
use super::error::DecodeError;
use super::expected::ExpectedType;
use super::prune_paths::{Level, NOTHING_PRUNED, PrunePaths};
use super::skipped::Skipped;
use super::tape::Tape;
use super::{Decode, json, protobuf};

#[derive(Clone)]
pub(crate) enum Form {
    Decoded(Decode),
    Encoded(Encoder),
}

/// Skips all fields of an object except six fields of its metadata. Only for objects that are
/// stored as protobuf.
static ALL_BUT_IDENTITY: LazyLock<Level> = LazyLock::new(|| {
    Level::of_metadata(&["name", "namespace", "uid", "resourceVersion", "generateName", "ownerReferences"])
});

/// An object that has arrived from the server: as a tape and, if it arrived as protobuf, also as
/// bytes.
pub(super) struct Arrived<'b> {
    /// The object as a tape. The skipped fields are not on the tape.
    pub(super) tape: Tape<'b>,
    /// The description of the object's message type, and all bytes of the object. `None` for an
    /// object in JSON, or if the message type is unknown.
    pub(super) protobuf: Option<(&'static Message, &'b [u8])>,
}

impl Form {
    pub(crate) fn with_storage(&self, storage: Storage, expected: &ExpectedType) -> Self {
        let decode = match self {
            Self::Decoded(decode) | Self::Encoded(Encoder { decode, .. }) => *decode,
        };
        match storage {
            Storage::Encoded | Storage::Compressed => Self::Encoded(Encoder::new(decode, expected, storage)),
            _ => Self::Decoded(decode),
        }
    }

    /// Returns the fields to skip when an object arrives as protobuf: `skipped`, or
    /// [`ALL_BUT_IDENTITY`] if the object is stored as protobuf.
    pub(super) fn unread_fields<'l>(&self, skipped: &'l Level) -> &'l Level {
        match self {
            // The other fields are decoded later, from the stored bytes.
            Self::Encoded(Encoder { protobuf: Some(_), .. }) => &ALL_BUT_IDENTITY,
            _ => skipped,
        }
    }

    /// Decodes a protobuf message without a tape. Returns `None` if a tape is needed, for example
    /// because objects are stored encoded.
    pub(super) fn direct(
        &self,
        message: &Message,
        bytes: &[u8],
        pruned: &Level,
    ) -> Option<OwnedObject<AnyObject>> {
        let Self::Decoded(decode) = self else { return None };
        let direct = decode.direct(message)?;
        (direct.read)(&protobuf::prune(message, bytes, pruned).ok()?)
    }

    /// Converts an arrived object to the form in which it is stored. Fields that the Rust type lacks
    /// can be added to `skipped`.
    pub(super) fn object(
        &self,
        arrived: &Arrived<'_>,
        skipped: &mut Skipped,
    ) -> Result<OwnedObject<AnyObject>, DecodeError> {
        // Fields to skip are learned from a sample of the objects only, because that takes time.
        let mut ignored = skipped.count_object().then(Vec::new);
        let object = match self {
            Self::Decoded(decode) => (decode.tape)(&arrived.tape, ignored.as_mut()),
            Self::Encoded(encoder) => encoder.object(arrived, skipped.root(), ignored.as_mut()),
        };
        if let Some(ignored) = ignored {
            skipped.learn(&arrived.tape, &ignored);
        }
        object
    }
}

/// Encodes arriving objects for the store, as protobuf or as JSON. Only objects that arrive as
/// protobuf can be stored as protobuf.
#[derive(Clone)]
pub(crate) struct Encoder {
    decode: Decode,
    type_name: &'static str,
    json: Arc<Codec>,
    /// The objects' protobuf message type, and the codec for objects that are stored as protobuf.
    /// `None` if all objects are stored as JSON (see `ExpectedType::storable_message`).
    protobuf: Option<(&'static Message, Arc<Codec>)>,
}

impl Encoder {
    fn new(decode: Decode, expected: &ExpectedType, storage: Storage) -> Self {
        let types = TypeMeta { api_version: expected.api_version.clone(), kind: expected.kind.clone() };
        let message = expected.storable_message();
        let protobuf =
            message.map(|message| (message, Arc::new(Codec::new(FromProtobuf { decode, message }, storage))));
        let json = Arc::new(Codec::new(FromJson { decode, types: Some(types) }, storage));
        Self { decode, type_name: expected.type_name, json, protobuf }
    }

    fn object(
        &self,
        arrived: &Arrived<'_>,
        pruned: &Level,
        ignored: Option<&mut Vec<usize>>,
    ) -> Result<OwnedObject<AnyObject>, DecodeError> {
        let tape = &arrived.tape;
        if let Some(problem) = tape.problem() {
            return Err(DecodeError::new(problem.to_owned()));
        }
        let Identified { metadata } = deserialize::<Identified>(tape)?;
        let encoded = match (arrived.protobuf, &self.protobuf) {
            (Some((message, _)), Some((expected, _))) if message.index != expected.index => {
                return Err(DecodeError::new(
                    "the protobuf message has another kind or API version than the requested objects"
                        .to_owned(),
                ));
            }
            (Some((message, bytes)), Some((_, codec))) => {
                let kept = protobuf::prune(message, bytes, pruned);
                let kept = kept.map_err(|Malformed| DecodeError::new(Malformed.to_string()))?;
                protobuf::check(message, &kept).map_err(DecodeError::new)?;
                Encoded::new(&kept, metadata.family(), Arc::clone(codec))
            }
            _ => {
                // The object is decoded only to check that it can be decoded later, and to fill
                // `ignored`.
                drop((self.decode.tape)(tape, ignored)?);
                let mut json = String::new();
                tape.write_json(0, &mut json);
                Encoded::new(json.as_bytes(), metadata.family(), Arc::clone(&self.json))
            }
        };
        let Some(name) = metadata.name.filter(|name| !name.is_empty()) else {
            return Err(self.missing_name(tape));
        };
        let key = ObjectKey::new(metadata.namespace.as_deref(), &name);
        let resource_version = metadata.resource_version.as_deref().into();
        Ok(OwnedObject::encoded(key, resource_version, Uid::from(metadata.uid.as_deref()), encoded))
    }

    #[cold]
    fn missing_name(&self, tape: &Tape<'_>) -> DecodeError {
        let metadata = deserialize::<OnlyMetadata>(tape).map(|object| object.metadata);
        let key = ObjectKey::of_meta(&metadata.unwrap_or_default(), self.type_name);
        DecodeError::new(key.err().map(|error| error.to_string()).unwrap_or_default())
    }
}

#[derive(Deserialize)]
struct Identified {
    metadata: Identity,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generate_name: Option<String>,
    owner_references: Option<Vec<Owner>>,
}

#[derive(Deserialize)]
struct Owner {
    uid: Option<String>,
}

impl Identity {
    fn family(&self) -> &str {
        let owners = self.owner_references.iter().flatten().filter_map(|owner| owner.uid.as_deref());
        family(owners, self.generate_name.as_deref())
    }
}

/// Returns a text that similar objects have in common: the UID of their first owner, or
/// `generateName`; empty if both are missing.
// In compressed storage, most objects with the same text share a dictionary.
pub(crate) fn family<'m>(
    mut owners: impl Iterator<Item = &'m str>,
    generate_name: Option<&'m str>,
) -> &'m str {
    owners.next().or(generate_name).unwrap_or_default()
}

#[derive(Deserialize)]
struct OnlyMetadata {
    metadata: ObjectMeta,
}

/// Decodes stored objects from JSON.
pub(crate) struct FromJson {
    decode: Decode,
    /// The `apiVersion` and `kind` to add to dynamic objects whose JSON lacks them; `None` to add
    /// nothing.
    types: Option<TypeMeta>,
}

impl FromJson {
    /// Returns a decoder of objects in JSON. It does not add `apiVersion` and `kind` to dynamic
    /// objects whose JSON lacks them.
    pub(crate) fn of(decode: Decode) -> Self {
        Self { decode, types: None }
    }

    pub(crate) fn read(&self, bytes: &[u8]) -> Option<OwnedObject<AnyObject>> {
        with_tape(bytes, &NOTHING_PRUNED, |tape| (self.decode.tape)(tape, None).ok())
    }
}

impl DecodeBytes for FromJson {
    fn object(&self, bytes: &[u8]) -> OwnedObject<AnyObject> {
        let mut object = self.read(bytes).expect("the object was decoded before it was stored");
        // Servers omit both from the items of a list of a built-in kind.
        if let (Some(types), Some(object)) = (&self.types, object.downcast_mut::<DynamicObject>()) {
            object.types.get_or_insert_with(|| types.clone());
        }
        object
    }

    fn metadata(&self, bytes: &[u8]) -> ObjectMeta {
        let others = PrunePaths::none().metadata_only();
        let object = with_tape(bytes, others.root(), |tape| deserialize::<OnlyMetadata>(tape).ok());
        object.map(|object| object.metadata).unwrap_or_default()
    }
}

/// Calls `function` with the tape of an object in JSON, and returns the result. Returns `None` if
/// the bytes are not JSON.
fn with_tape<T>(bytes: &[u8], pruned: &Level, function: impl FnOnce(&Tape<'_>) -> Option<T>) -> Option<T> {
    function(&json::read(str::from_utf8(bytes).ok()?, pruned).ok()?.tape)
}

/// Decodes stored objects from protobuf.
struct FromProtobuf {
    decode: Decode,
    message: &'static Message,
}

impl DecodeBytes for FromProtobuf {
    fn object(&self, bytes: &[u8]) -> OwnedObject<AnyObject> {
        let direct = self.decode.direct(self.message).and_then(|direct| (direct.read)(bytes));
        direct.unwrap_or_else(|| {
            let tape = protobuf::read(self.message, bytes, &NOTHING_PRUNED);
            (self.decode.tape)(&tape, None).expect("every checked message decodes to this type")
        })
    }

    fn metadata(&self, bytes: &[u8]) -> ObjectMeta {
        let mut fields = Fields(bytes);
        while let Ok(Some((number, content))) = fields.next() {
            if let (Some(field), Content::Bytes(bytes)) = (self.message.field(number), content)
                && let ("metadata", Type::Message(index)) = (field.name, field.value_type)
            {
                let tape = protobuf::read(Messages::all().at(index), bytes, &NOTHING_PRUNED);
                return deserialize(&tape).unwrap_or_default();
            }
        }
        ObjectMeta::default()
    }
}

#[cfg(test)]
mod tests;
