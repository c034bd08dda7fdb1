//! The values of an index: along a path of fields, or from a function of the user's.
//!
//! The derive doesn't know the types of fields. What it generates calls a method of that name on whatever is there, and
//! the compiler chooses: an inherent method for an `Option`, a `Vec` and their like, else the trait's, which is found
//! last.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, btree_map, btree_set, hash_map, hash_set};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::{iter, option, slice};

use crate::IndexValue;

/// A place in an object, on the path of an index.
#[derive(Debug)]
pub struct At<'a, T>(pub &'a T);

/// `each` for everything that holds but itself.
pub trait EachOne<'a, T> {
    /// Returns what is here.
    fn each(self) -> iter::Once<&'a T>;
}

impl<'a, T> EachOne<'a, T> for At<'a, T> {
    fn each(self) -> iter::Once<&'a T> {
        iter::once(self.0)
    }
}

impl<'a, T> At<'a, Option<T>> {
    /// Returns what is in it.
    pub fn each(self) -> option::Iter<'a, T> {
        self.0.iter()
    }
}

impl<'a, T> At<'a, Box<T>> {
    /// Returns what is in it.
    pub fn each(self) -> iter::Once<&'a T> {
        iter::once(self.0)
    }
}

impl<'a, T> At<'a, Vec<T>> {
    /// Returns its items.
    pub fn each(self) -> slice::Iter<'a, T> {
        self.0.iter()
    }
}

impl<'a, T> At<'a, BTreeSet<T>> {
    /// Returns its items.
    pub fn each(self) -> btree_set::Iter<'a, T> {
        self.0.iter()
    }
}

impl<'a, T, S> At<'a, HashSet<T, S>> {
    /// Returns its items.
    pub fn each(self) -> hash_set::Iter<'a, T> {
        self.0.iter()
    }
}

impl<'a, K, T> At<'a, BTreeMap<K, T>> {
    /// Returns its values.
    pub fn each(self) -> btree_map::Values<'a, K, T> {
        self.0.values()
    }
}

impl<'a, K, T, S> At<'a, HashMap<K, T, S>> {
    /// Returns its values.
    pub fn each(self) -> hash_map::Values<'a, K, T> {
        self.0.values()
    }
}

impl<'a, K: Borrow<str> + Ord, T> At<'a, BTreeMap<K, T>> {
    /// Returns the value of `key`.
    #[must_use]
    pub fn entry(self, key: &str) -> Option<&'a T> {
        self.0.get(key)
    }
}

impl<'a, K: Borrow<str> + Ord, T> At<'a, Option<BTreeMap<K, T>>> {
    /// Returns the value of `key`.
    #[must_use]
    pub fn entry(self, key: &str) -> Option<&'a T> {
        self.0.as_ref()?.get(key)
    }
}

impl<'a, K: Borrow<str> + Eq + Hash, T, S: BuildHasher> At<'a, HashMap<K, T, S>> {
    /// Returns the value of `key`.
    #[must_use]
    pub fn entry(self, key: &str) -> Option<&'a T> {
        self.0.get(key)
    }
}

impl<'a, K: Borrow<str> + Eq + Hash, T, S: BuildHasher> At<'a, Option<HashMap<K, T, S>>> {
    /// Returns the value of `key`.
    #[must_use]
    pub fn entry(self, key: &str) -> Option<&'a T> {
        self.0.as_ref()?.get(key)
    }
}

/// What can be at the end of a path, in an index of `V`s.
#[diagnostic::on_unimplemented(
    message = "the path of this index leads to `{Self}`, and the values of the index are `{V}`s",
    label = "leads to `{Self}`",
    note = "if `{Self}` can be hashed and compared, add `value = {Self}` to the index; else write `with = function`"
)]
pub trait ValueAt<V> {
    /// Returns the value.
    fn value_at(&self) -> V;
}

impl<V: IndexValue> ValueAt<V> for V {
    fn value_at(&self) -> V {
        self.clone()
    }
}

/// Calls an index function, whose argument is clear from the object if it is a closure.
pub fn call<'a, K, R>(object: &'a K, function: impl FnOnce(&'a K) -> R) -> R {
    function(object)
}

/// What an index function has returned.
#[derive(Debug)]
pub struct Returned<R>(pub R);

impl<I, E> Returned<Result<I, E>> {
    /// Returns the values, or why there are none.
    ///
    /// # Errors
    /// That of the function, as text.
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

/// `into_values` for what is no `Result`.
pub trait NeverFails<V> {
    /// Returns the values.
    ///
    /// # Errors
    /// None.
    fn into_values(self) -> Result<Vec<V>, String>;
}

impl<I: IntoIterator> NeverFails<I::Item> for Returned<I> {
    fn into_values(self) -> Result<Vec<I::Item>, String> {
        Ok(self.0.into_iter().collect())
    }
}
