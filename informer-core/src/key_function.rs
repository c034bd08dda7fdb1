//! Key functions for keys other than `namespace/name`.
//!
//! client-go: `KeyFunc` of tools/cache/store.go and `IndexFuncToKeyFuncAdapter` of
//! tools/cache/index.go.

use thiserror::Error;

use crate::ObjectKey;

/// Converts an index function to a key function. The index function must return exactly one value
/// for each object, and different values for different objects.
///
/// ```
/// use informer_core::{Cached, unique_value_as_key};
///
/// struct Machine {
///     serials: Vec<String>,
/// }
/// let by_serial = unique_value_as_key(|machine: &Machine| machine.serials.clone());
///
/// let machine = Cached::keyed(Machine { serials: vec!["A-17".into()] }, &by_serial)?;
/// assert_eq!(machine.key().as_str(), "A-17");
/// let error = Cached::keyed(Machine { serials: vec![] }, &by_serial).unwrap_err();
/// let expected = "the key function failed for a Machine: the index function returned 0 values instead of one";
/// assert_eq!(error.to_string(), expected);
/// # Ok::<(), informer_core::KeyError>(())
/// ```
///
/// # Errors
/// The returned function fails with [`NotUnique`] for an object with no value or with several.
#[doc(alias = "IndexFuncToKeyFuncAdapter")]
pub fn unique_value_as_key<K, V, I>(values: impl Fn(&K) -> I) -> impl Fn(&K) -> Result<ObjectKey, NotUnique>
where
    V: AsRef<str>,
    I: IntoIterator<Item = V>,
{
    move |object| {
        let mut values = values(object).into_iter();
        match (values.next(), values.next()) {
            (Some(value), None) => Ok(ObjectKey::from_text(value.as_ref().into())),
            (None, _) => Err(NotUnique { values: 0 }),
            (Some(_), Some(_)) => Err(NotUnique { values: 2 + values.count() }),
        }
    }
}

/// The error of a key function made by [`unique_value_as_key`], if the index function returns no
/// value or several values for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the index function returned {values} values instead of one")]
pub struct NotUnique {
    values: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cached, Deleted, DeltaFifo};
    use futures::FutureExt;

    struct Fruit {
        names: &'static [&'static str],
    }

    fn fruit(names: &'static [&'static str]) -> Result<Cached<Fruit>, crate::KeyError> {
        Cached::keyed(Fruit { names }, unique_value_as_key(|fruit: &Fruit| fruit.names.iter()))
    }

    #[test]
    fn unique_index_value_serves_as_key() {
        assert_eq!(fruit(&["apple"]).expect("one value").key().as_str(), "apple");
        for names in [&[][..], &["apple", "pear"], &["apple", "pear", "plum"]] {
            let error = fruit(names).map(|_| ()).expect_err("not one value");
            let expected = format!(
                "the key function failed for a Fruit: the index function returned {} values instead of one",
                names.len()
            );
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn any_object_type_passes_the_queue_under_its_key() {
        let queue = DeltaFifo::new();
        queue.add(fruit(&["apple"]).expect("one value"));
        queue.delete(Deleted::missed(ObjectKey::from_text("apple".into()), None));
        let batch = queue.pop_batch().now_or_never().flatten().expect("a batch");
        let deltas = &batch.items()[0].deltas;
        assert_eq!((batch.items().len(), deltas.len(), deltas[1].is_deleted()), (1, 2, true));
    }
}
