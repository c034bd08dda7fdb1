//! Mistakes in what the user has written: where, and what to write instead.

use std::fmt::Display;

use proc_macro2::Span;

/// An error at a place in the source.
pub(crate) fn mistake(place: Span, message: impl Display) -> syn::Error {
    syn::Error::new(place, message)
}

/// Mistakes as they are found, each reported once.
#[derive(Default)]
pub(crate) struct Mistakes {
    all: Option<syn::Error>,
}

impl Mistakes {
    pub(crate) fn add(&mut self, error: syn::Error) {
        match &mut self.all {
            Some(all) => all.combine(error),
            None => self.all = Some(error),
        }
    }

    /// Notes the error, if it is one.
    pub(crate) fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// Fails if there was any.
    pub(crate) fn done(self) -> syn::Result<()> {
        self.all.map_or(Ok(()), Err)
    }
}

/// The one of `known` that `name` was probably meant to be.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |known: &&str| strsim::damerau_levenshtein(name, known);
    known
        .iter()
        .min_by_key(|known| distance(known))
        .filter(|known| distance(known) <= known.len() / 3 + 1)
        .copied()
}
