//! Errors in the user's attributes. Each error points at the mistake and names the remedy.

/// Collects errors, so that one compilation reports all of them.
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

    /// Returns the value of `result`, or records its error.
    pub(crate) fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// Fails with all recorded errors, combined into one; succeeds if there are none.
    pub(crate) fn done(self) -> syn::Result<()> {
        self.all.map_or(Ok(()), Err)
    }
}

/// Returns the known name that is most similar to `name`, if one is similar enough.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |known: &&str| strsim::damerau_levenshtein(name, known);
    known
        .iter()
        .min_by_key(|known| distance(known))
        .filter(|known| distance(known) <= known.len() / 3 + 1)
        .copied()
}
