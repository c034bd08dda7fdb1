//! [`PrunePaths`]: the fields of an object that the decoder skips. Note: do not prune a field that
//! the Rust type requires, because no object can be decoded without it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

/// The fields of an object that are not decoded. Default: `metadata.managedFields`.
///
/// A path is a chain of field names, such as `status.conditions`. A name with a dot is written in
/// brackets, as in `metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`. A
/// path can't lead into the elements of an array. For objects in protobuf, a path into the values
/// of a map or into embedded JSON has no effect. A clone is cheap.
///
/// ```
/// use informer_reflector::PrunePaths;
///
/// let last_applied = r#"metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]"#;
/// let paths = PrunePaths::default().with_path("status.conditions")?.with_path(last_applied)?;
/// # Ok::<_, informer_reflector::PrunePathError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct PrunePaths {
    root: Arc<Level>,
}

/// The fields of metadata that identify an object and its version. Users can't prune them.
const NEEDED: [&str; 4] = ["name", "namespace", "uid", "resourceVersion"];

/// Fields of metadata that users can't prune, each with a description of the features that need it.
const FEATURE_FIELDS: [(&str, &str); 3] = [
    ("labels", "selectors and label indexes"),
    ("ownerReferences", "`controller_key` and maps from an object to its owner"),
    ("deletionTimestamp", "checks of whether a deletion by this process has reached the cache"),
];

/// The maximum number of fields with the same parent that a decoder learns to skip. For example,
/// after 256 fields of `spec`, it reads all further fields of `spec`. Fields with a pruning rule of
/// the user count too.
// The lookup of a field searches all rules for the fields of its parent.
const MAX_LEARNED_FIELDS: usize = 256;

/// The pruning rules for the fields of one JSON object: the whole Kubernetes object, or an object
/// inside it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Level {
    /// The names of the fields that have a rule, each with its rule.
    fields: Vec<(Box<str>, Field)>,
    /// Whether fields without a rule in `fields` are pruned. If `false`, these fields are kept.
    pub(super) prunes_others: bool,
}

pub(super) static NOTHING_PRUNED: Level = Level { fields: Vec::new(), prunes_others: false };

/// The pruned part of a field: all of it, or only fields inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Field {
    Whole,
    /// The field itself is kept, without the fields that the [`Level`] prunes.
    Inside(Level),
}

/// An invalid path, or a field that can't be pruned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PrunePathError {
    /// The text is not a path.
    #[error(
        "\"{path}\" is not a path: join the field names by dots, as in spec.nodeName, and write a name that \
         contains a dot in brackets, as in metadata.annotations[\"example.com/note\"]"
    )]
    Unparsable {
        /// The path as it was given.
        path: String,
    },
    /// The field identifies an object, its type or its version, or contains such fields.
    #[error("\"{path}\" can't be pruned: the field identifies an object or its version; remove this path")]
    Needed {
        /// The path as it was given.
        path: String,
    },
    /// A feature of the library needs the field.
    #[error(
        "\"{path}\" can't be pruned: the field is needed by these features: {reader}; remove this path, or \
         clear the field in a transform if your program uses none of these features"
    )]
    Read {
        /// The path as it was given.
        path: String,
        /// The features that need the field, as a text for the message, such as `selectors and
        /// label indexes`.
        reader: &'static str,
    },
}

impl PrunePaths {
    /// Returns an empty set of paths, so that objects are decoded completely.
    #[must_use]
    pub fn none() -> Self {
        Self { root: Arc::default() }
    }

    /// Adds the path of a field to prune.
    ///
    /// # Errors
    /// If the text is not a path, or is the path of a field that an informer needs: `apiVersion`,
    /// `kind`, `metadata` as a whole, or its name, namespace, UID, resource version, labels, owner
    /// references or deletion timestamp.
    pub fn with_path(mut self, path: &str) -> Result<Self, PrunePathError> {
        let names = parse(path).ok_or_else(|| PrunePathError::Unparsable { path: path.to_owned() })?;
        if is_needed(&names) {
            return Err(PrunePathError::Needed { path: path.to_owned() });
        }
        // Fields inside `FEATURE_FIELDS`, such as a single label, can't be pruned either.
        if let ["metadata", name, ..] = names.as_slice()
            && let Some((_, reader)) = FEATURE_FIELDS.iter().find(|(field, _)| field == name)
        {
            return Err(PrunePathError::Read { path: path.to_owned(), reader });
        }
        Arc::make_mut(&mut self.root).insert(&names, usize::MAX);
        Ok(self)
    }

    /// Returns paths that prune all but the identity and the version of an object.
    pub(crate) fn identity_only() -> Self {
        Self { root: Arc::new(Level::of_metadata(&NEEDED)) }
    }

    /// Returns paths that prune all fields of an object except `apiVersion`, `kind` and `metadata`.
    /// Fields of metadata that `self` prunes are pruned too.
    pub(super) fn metadata_only(&self) -> Self {
        let kept = ["apiVersion", "kind", "metadata"].map(|name| {
            let known = self.root.fields.iter().find(|(known, _)| **known == *name);
            known.cloned().unwrap_or_else(|| (name.into(), Field::Inside(Level::default())))
        });
        Self { root: Arc::new(Level { fields: kept.into(), prunes_others: true }) }
    }

    /// Adds the path of a field that the decoder has learned to skip. Does nothing in two cases:
    /// - All informers need the field, such as `metadata.name`.
    /// - The path needs a new rule in an object (such as `spec`) that already has rules for
    ///   [`MAX_LEARNED_FIELDS`] fields.
    pub(super) fn insert_unless_needed(&mut self, names: &[&str]) {
        if !is_needed(names) {
            Arc::make_mut(&mut self.root).insert(names, MAX_LEARNED_FIELDS);
        }
    }

    pub(super) fn root(&self) -> &Level {
        &self.root
    }
}

impl Default for PrunePaths {
    /// Returns paths that prune only `metadata.managedFields`. Managed fields are half of a typical
    /// object, and only server-side apply needs them. An update without managed fields does not
    /// remove them on the server.
    fn default() -> Self {
        let mut root = Level::default();
        root.insert(&["metadata", "managedFields"], usize::MAX);
        Self { root: Arc::new(root) }
    }
}

impl FromStr for PrunePaths {
    type Err = PrunePathError;

    /// Parses one path. The result prunes only this path, and not the default path
    /// `metadata.managedFields`.
    ///
    /// # Errors
    /// Those of [`with_path`](Self::with_path).
    fn from_str(path: &str) -> Result<Self, PrunePathError> {
        Self::none().with_path(path)
    }
}

impl fmt::Debug for PrunePaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrunePaths")?;
        f.debug_list().entries(self.root.paths()).finish()
    }
}

impl Field {
    /// Returns the pruned fields inside this field; `None` if the whole field is pruned.
    pub(super) fn inside(&self) -> Option<&Level> {
        match self {
            Self::Inside(level) => Some(level),
            Self::Whole => None,
        }
    }
}

impl Level {
    /// Returns how much of a field is pruned; `None` if the field is kept completely.
    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        // Most levels have few rules, for which a linear search is fastest.
        match self.fields.iter().find(|(known, _)| **known == *name) {
            Some((_, field)) => Some(field),
            None if self.prunes_others => Some(&Field::Whole),
            None => None,
        }
    }

    /// Returns the level that prunes all fields of an object except some fields of its metadata.
    pub(super) fn of_metadata(kept: &[&str]) -> Self {
        let kept = kept.iter().map(|name| (Box::from(*name), Field::Inside(Self::default())));
        let metadata = Self { fields: kept.collect(), prunes_others: true };
        Self { fields: vec![("metadata".into(), Field::Inside(metadata))], prunes_others: true }
    }

    /// Adds the path of a field to prune. Adds nothing if the path needs a new rule in an object
    /// that already has rules for `max_fields` or more of its fields.
    fn insert(&mut self, names: &[&str], max_fields: usize) {
        let [name, inner @ ..] = names else { return };
        let known = self.fields.iter().position(|(known, _)| **known == **name);
        if known.is_none() && self.fields.len() >= max_fields {
            return;
        }
        let index = known.unwrap_or_else(|| {
            self.fields.push(((*name).into(), Field::Inside(Self::default())));
            self.fields.len() - 1
        });
        let field = &mut self.fields[index].1;
        match field {
            Field::Whole => {}
            Field::Inside(_) if inner.is_empty() => *field = Field::Whole,
            Field::Inside(level) => level.insert(inner, max_fields),
        }
    }

    fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for (name, field) in &self.fields {
            match field {
                Field::Whole => paths.push(name.to_string()),
                Field::Inside(level) => {
                    paths.extend(level.paths().into_iter().map(|path| format!("{name}.{path}")));
                }
            }
        }
        paths
    }
}

/// Returns whether a field identifies an object, its type or its version, or contains such fields.
fn is_needed(names: &[&str]) -> bool {
    match names {
        [] | ["metadata"] | ["apiVersion" | "kind", ..] => true,
        ["metadata", name, ..] => NEEDED.contains(name),
        _ => false,
    }
}

/// Splits a path such as `a.b["c.d"].e` into its field names.
fn parse(path: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    let mut rest = path;
    loop {
        if let Some(bracketed) = rest.strip_prefix("[\"") {
            let (name, after) = bracketed.split_once("\"]")?;
            names.push(name);
            rest = after;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            names.push(&rest[..end]);
            rest = &rest[end..];
        }
        if names.last().is_some_and(|name| name.is_empty()) {
            return None;
        }
        match rest.strip_prefix('.') {
            Some(after) => rest = after,
            None if rest.is_empty() => return Some(names),
            None if rest.starts_with('[') => {}
            None => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_at_its_dots_and_brackets() {
        assert_eq!(parse("status"), Some(vec!["status"]));
        assert_eq!(parse("a.b.c"), Some(vec!["a", "b", "c"]));
        assert_eq!(parse(r#"a["b.c/d"].e"#), Some(vec!["a", "b.c/d", "e"]));
        assert_eq!(parse(r#"a["b"]["c"]"#), Some(vec!["a", "b", "c"]));
    }

    #[test]
    fn invalid_path_is_refused() {
        for path in ["", ".", ".a", "a.", "a..b", "a[b]", r#"a["b""#, r#"a["b"]c"#, r#"a[""]"#] {
            let error = PrunePaths::none().with_path(path).expect_err(path);
            assert_eq!(error, PrunePathError::Unparsable { path: path.to_owned() });
        }
    }

    #[test]
    fn fields_that_an_informer_needs_cannot_be_pruned() {
        for path in [
            "apiVersion",
            "kind",
            "metadata",
            "metadata.name",
            "metadata.namespace",
            "metadata.uid",
            "metadata.resourceVersion",
        ] {
            let error = PrunePaths::none().with_path(path).expect_err(path);
            assert_eq!(error, PrunePathError::Needed { path: path.to_owned() });
        }
    }

    #[test]
    fn fields_that_the_library_reads_are_refused_with_the_reader() {
        for path in [
            "metadata.labels",
            r#"metadata.labels["app.kubernetes.io/name"]"#,
            "metadata.ownerReferences",
            "metadata.deletionTimestamp",
        ] {
            let error = PrunePaths::none().with_path(path).expect_err(path).to_string();
            assert!(error.starts_with(&format!("\"{path}\" can't be pruned: ")), "{error}");
            assert!(error.contains(" is needed by ") && error.contains("; remove this path"), "{error}");
        }
        assert!(PrunePaths::none().with_path("metadata.annotations").is_ok());
        assert!(PrunePaths::none().with_path("spec.template.metadata.labels").is_ok());
    }

    #[test]
    fn pruning_a_whole_field_replaces_the_paths_inside_it() -> Result<(), PrunePathError> {
        let inner_first = PrunePaths::none().with_path("status.conditions")?.with_path("status")?;
        let outer_first = PrunePaths::none().with_path("status")?.with_path("status.conditions")?;
        assert_eq!(inner_first, outer_first);
        assert_eq!(format!("{inner_first:?}"), r#"PrunePaths["status"]"#);
        Ok(())
    }

    #[test]
    fn number_of_pruned_fields_with_the_same_parent_is_unlimited() -> Result<(), PrunePathError> {
        let mut fields = (0..=MAX_LEARNED_FIELDS).map(|field| format!("metadata.annotations.a{field}"));
        let paths = fields.try_fold(PrunePaths::none(), |paths, field| paths.with_path(&field))?;
        assert_eq!(paths.root().paths().len(), MAX_LEARNED_FIELDS + 1);
        Ok(())
    }

    #[test]
    fn metadata_only_drops_paths_inside_pruned_fields() -> Result<(), PrunePathError> {
        let paths = PrunePaths::default().with_path("status.conditions")?.metadata_only();
        assert_eq!(paths.root().field("status"), Some(&Field::Whole));
        assert_eq!(paths, PrunePaths::default().metadata_only());
        Ok(())
    }
}
