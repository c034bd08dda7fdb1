//! Tests that objects decoded without a tape (a list of tokens) equal those decoded with a tape.

use std::fmt::Debug;

use fastrand::Rng;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node, Pod, Secret};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1::Event as EventOfEvents;
use kube_messages::{Field, Messages, Shape, Type, put_bytes, put_double, put_nested, put_number};
use serde::de::DeserializeOwned;

use super::*;
use crate::decode::{Decode, NOTHING_PRUNED, protobuf};

/// The deepest level at which nested messages get fields with random content.
const MAX_LEVEL: u32 = 6;

/// Appends the fields of a message with random content, each field with the probability `presence`.
fn put_fields(
    message: &kube_messages::Message,
    random: &mut Rng,
    presence: f64,
    level: u32,
    bytes: &mut Vec<u8>,
) {
    for field in &message.fields {
        if level > MAX_LEVEL || random.f64() >= presence {
            continue;
        }
        let count = if matches!(field.shape, Shape::List | Shape::Map) { random.usize(1..4) } else { 1 };
        for index in 0..count {
            if field.shape == Shape::Map {
                put_nested(bytes, field.number, |entry| {
                    put_bytes(entry, 1, format!("key-{index}").as_bytes());
                    put_value(field, 2, random, presence, level, entry);
                });
            } else {
                put_value(field, field.number, random, presence, level, bytes);
            }
        }
    }
}

fn put_value(field: &Field, number: u64, random: &mut Rng, presence: f64, level: u32, bytes: &mut Vec<u8>) {
    let is_zero = random.u8(..4) == 0;
    let text: String =
        if is_zero { String::new() } else { (0..random.usize(1..9)).map(|_| random.alphabetic()).collect() };
    let int = if is_zero { 0 } else { i64::from(random.i32(..)).cast_unsigned() };
    match field.value_type {
        Type::Text => put_bytes(bytes, number, text.as_bytes()),
        Type::Bool => put_number(bytes, number, u64::from(!is_zero)),
        Type::Int => put_number(bytes, number, int),
        Type::Long => put_number(bytes, number, if is_zero { 0 } else { random.u64(..) }),
        Type::Double => put_double(bytes, number, if is_zero { 0.0 } else { random.f64() }),
        Type::Bytes => put_bytes(bytes, number, text.as_bytes()),
        Type::Time | Type::MicroTime => put_nested(bytes, number, |time| {
            if !is_zero {
                put_number(time, 1, random.u64(..4_000_000_000));
                put_number(time, 2, random.u64(..1_000_000_000));
            }
        }),
        Type::Json => put_nested(bytes, number, |json| put_bytes(json, 1, br#"{"f:a":{}}"#)),
        Type::Quantity => put_nested(bytes, number, |quantity| put_bytes(quantity, 1, text.as_bytes())),
        Type::IntOrString => put_nested(bytes, number, |value| {
            put_number(value, 1, random.u64(..2));
            put_number(value, 2, int);
            put_bytes(value, 3, text.as_bytes());
        }),
        Type::Message(index) => put_nested(bytes, number, |inner| {
            put_fields(Messages::all().at(index), random, presence, level + 1, inner);
        }),
    }
}

/// Decodes 400 random messages, changed by `damage`, with and without a tape, and compares the
/// objects. Returns the number of messages that could be decoded without a tape.
fn count_direct<K: DeserializeOwned + PartialEq + Debug + Send + Sync + 'static>(
    presence: f64,
    damage: impl Fn(&mut Vec<u8>, &mut Rng),
) -> usize {
    let decoder = direct::<K>().expect("a frequent kind");
    let message = Messages::all().find(decoder.message).expect("a message");
    let mut count = 0;
    for seed in 0..400 {
        let (mut random, mut bytes) = (Rng::with_seed(seed), Vec::new());
        put_fields(message, &mut random, presence, 1, &mut bytes);
        damage(&mut bytes, &mut random);
        let Some(object) = (decoder.read)(&bytes) else { continue };
        let tape = protobuf::read(message, &bytes, &NOTHING_PRUNED);
        let expected = (Decode::of::<K>().tape)(&tape, None);
        let expected = expected.unwrap_or_else(|error| panic!("{}, seed {seed}: {error}", decoder.message));
        let (object, expected) = (object.downcast_ref::<K>(), expected.downcast_ref::<K>());
        assert_eq!(object, expected, "{}, seed {seed}", decoder.message);
        count += 1;
    }
    count
}

/// Calls [`count_direct`] for each kind that can be decoded without a tape, and returns the counts.
fn counts(presence: f64, damage: impl Fn(&mut Vec<u8>, &mut Rng) + Copy) -> [usize; 9] {
    [
        count_direct::<ReplicaSet>(presence, damage),
        count_direct::<Lease>(presence, damage),
        count_direct::<ConfigMap>(presence, damage),
        count_direct::<Event>(presence, damage),
        count_direct::<Node>(presence, damage),
        count_direct::<Pod>(presence, damage),
        count_direct::<Secret>(presence, damage),
        count_direct::<EndpointSlice>(presence, damage),
        count_direct::<EventOfEvents>(presence, damage),
    ]
}

#[test]
fn object_decoded_directly_equals_the_object_of_the_tape() {
    for presence in [0.15, 0.4, 0.7] {
        let counts = counts(presence, |_, _| {});
        println!("decoded directly, of 400, with {presence} of all fields: {counts:?}");
        assert!(presence > 0.2 || counts.iter().all(|count| *count > 200), "{counts:?}");
    }
}

#[test]
fn damaged_message_decodes_as_with_the_tape_or_not_directly() {
    let counts = counts(0.3, |bytes, random| {
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..=bytes.len());
            match bytes.get_mut(at) {
                Some(byte) => *byte = random.u8(..),
                None => bytes.push(random.u8(..)),
            }
        }
    });
    assert!(counts.iter().all(|count| *count < 400), "{counts:?}");
}

#[test]
fn other_type_has_no_direct_decoder() {
    assert!(direct::<k8s_openapi::api::core::v1::Namespace>().is_none());
}
