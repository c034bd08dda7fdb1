//! Traits that generated code uses to get the values of an index, from a path of fields or from a
//! user's function.
//!
//! `#[derive(Informer)]` doesn't know the types of fields. The generated code calls methods of
//! these traits, and the compiler selects the implementation by autoref: it tries the
//! implementations for `Option`, `Vec` and similar types first. It tries the fallback for all types
//! last, because the fallback needs one more reference.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, Hash};
use std::{fmt, iter};

use informer_store::IndexValue;

/// A type that contains any number of index values, such as `Option` or `Vec`.
pub trait IndexValues<'a> {
    /// The type of one index value, such as `String` for a `Vec<String>`.
    type Item: 'a;

    /// Returns the index values in `self`, such as the elements of a `Vec`.
    fn informer_each(self) -> impl Iterator<Item = &'a Self::Item>;
}

/// Returns a value itself as the only index value, such as a `String`. `&&T` implements this trait
/// for each type `T`, but the compiler uses it only if `&T` does not implement [`IndexValues`].
pub trait AsSingleValue<'a> {
    /// The type of the index value: the type of `self` without references.
    type Item: 'a;

    /// Returns `self` as the only index value.
    fn informer_each(self) -> iter::Once<&'a Self::Item>;
}

impl<'a, T> AsSingleValue<'a> for &&'a T {
    type Item = T;

    fn informer_each(self) -> iter::Once<&'a T> {
        iter::once(*self)
    }
}

impl<'a, T> IndexValues<'a> for &'a Option<T> {
    type Item = T;

    fn informer_each(self) -> impl Iterator<Item = &'a T> {
        self.iter()
    }
}

impl<'a, T> IndexValues<'a> for &'a Box<T> {
    type Item = T;

    fn informer_each(self) -> impl Iterator<Item = &'a T> {
        iter::once(&**self)
    }
}

impl<'a, T> IndexValues<'a> for &'a Vec<T> {
    type Item = T;

    fn informer_each(self) -> impl Iterator<Item = &'a T> {
        self.iter()
    }
}

impl<'a, T> IndexValues<'a> for &'a BTreeSet<T> {
    type Item = T;

    fn informer_each(self) -> impl Iterator<Item = &'a T> {
        self.iter()
    }
}

impl<'a, T, S> IndexValues<'a> for &'a HashSet<T, S> {
    type Item = T;

    fn informer_each(self) -> impl Iterator<Item = &'a T> {
        self.iter()
    }
}

impl<'a, K, T> IndexValues<'a> for &'a BTreeMap<K, T> {
    type Item = T;

    fn informer_each(self) -> impl Iterator<Item = &'a T> {
        self.values()
    }
}

impl<'a, K, T, S> IndexValues<'a> for &'a HashMap<K, T, S> {
    type Item = T;

    fn informer_each(self) -> impl Iterator<Item = &'a T> {
        self.values()
    }
}

/// A map, or an `Option` of a map. The path of an index can look up a key in it, as in
/// `metadata.labels["app"]`.
pub trait HoldsEntries<'a> {
    /// The value type of the map in which [`informer_entry`](Self::informer_entry) looks up a key.
    type Item: 'a;

    /// Returns the value for `key`, if the map has this key.
    fn informer_entry(self, key: &str) -> Option<&'a Self::Item>;
}

impl<'a, K: Borrow<str> + Ord, T> HoldsEntries<'a> for &'a BTreeMap<K, T> {
    type Item = T;

    fn informer_entry(self, key: &str) -> Option<&'a T> {
        self.get(key)
    }
}

impl<'a, K: Borrow<str> + Ord, T> HoldsEntries<'a> for &'a Option<BTreeMap<K, T>> {
    type Item = T;

    fn informer_entry(self, key: &str) -> Option<&'a T> {
        self.as_ref()?.get(key)
    }
}

impl<'a, K: Borrow<str> + Eq + Hash, T, S: BuildHasher> HoldsEntries<'a> for &'a HashMap<K, T, S> {
    type Item = T;

    fn informer_entry(self, key: &str) -> Option<&'a T> {
        self.get(key)
    }
}

impl<'a, K: Borrow<str> + Eq + Hash, T, S: BuildHasher> HoldsEntries<'a> for &'a Option<HashMap<K, T, S>> {
    type Item = T;

    fn informer_entry(self, key: &str) -> Option<&'a T> {
        self.as_ref()?.get(key)
    }
}

/// A field that can be copied as an index value of the type `V`. The field must have the type `V`:
/// no other type implements `ValueAt<V>`.
#[diagnostic::on_unimplemented(
    message = "the path of this index leads to `{Self}`, but the values of the index have the type `{V}`",
    label = "leads to `{Self}`",
    note = "if `{Self}` can be hashed and compared, add `value = {Self}` to the index; else write `with = function`"
)]
pub trait ValueAt<V> {
    /// Returns a copy of `self` as an index value.
    fn value_at(&self) -> V;
}

impl<V: IndexValue> ValueAt<V> for V {
    fn value_at(&self) -> V {
        self.clone()
    }
}

/// Calls an index function. If the function is a closure, this call lets the compiler infer the
/// type of its argument.
pub fn call<'a, K, R>(object: &'a K, function: impl FnOnce(&'a K) -> R) -> R {
    function(object)
}

/// The result of an index function: a `Result`, or the index values themselves.
#[derive(Debug)]
pub struct Returned<R>(pub R);

impl<I, E> Returned<Result<I, E>> {
    /// Returns the index values, or the error of the index function.
    ///
    /// # Errors
    /// The function's error, as text.
    pub fn into_values<V>(self) -> Result<Vec<V>, String>
    where
        I: IntoIterator<Item = V>,
        E: fmt::Display,
    {
        match self.0 {
            Ok(values) => Ok(values.into_iter().collect()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The method `into_values` of [`Returned`], for index functions that do not return a `Result`.
pub trait NeverFails<V> {
    /// Returns the index values as a list, in an `Ok`.
    ///
    /// # Errors
    /// Never fails.
    fn into_values(self) -> Result<Vec<V>, String>;
}

impl<I: IntoIterator> NeverFails<I::Item> for Returned<I> {
    fn into_values(self) -> Result<Vec<I::Item>, String> {
        Ok(self.0.into_iter().collect())
    }
}
