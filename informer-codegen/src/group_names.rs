//! The names of the factory's accessors for groups of custom resources, and of their types.
//!
//! An accessor is named after the first label of its group: `factory.stable()` is for
//! `stable.example.com`. If that name is taken or is a Rust keyword, the next label is appended:
//! `networking.example.com` has `networking_example()`, because the factory has its own method
//! `networking()`, which would hide a trait method with the same name. The next label is also
//! appended if the type of the group or of one of its versions would have the name of another type
//! in the file. The prefix `group_` precedes a name that would begin with a digit.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;

use crate::shared::names::{camel, capitalized, ident};
use crate::taken::{FACTORY_METHODS, GROUPS};

/// The name of the generated trait, which no type of a group or of a version can have.
const TRAIT: &str = "CustomGroups";

/// Returns the names of the accessors by group. `groups` has the versions of each group.
pub(crate) fn accessors<'a>(
    groups: &BTreeMap<&'a str, BTreeSet<&str>>,
) -> anyhow::Result<BTreeMap<&'a str, String>> {
    let free =
        |name: &str| ident(name).is_ok() && !GROUPS.contains(&name) && !FACTORY_METHODS.contains(&name);
    let mut lengths: BTreeMap<&str, usize> = groups.keys().map(|group| (*group, 1)).collect();
    // Each round appends at least one label, or no later round changes a name.
    let labels: usize = groups.keys().map(|group| group.split('.').count()).sum();
    for _ in 0..=labels {
        let names: BTreeMap<&str, String> =
            lengths.iter().map(|(group, labels)| (*group, name(group, *labels))).collect();
        let types = |group: &str| type_names(&names[group], &groups[group]);
        let mut uses = BTreeMap::from([(TRAIT.to_owned(), 1)]);
        for type_name in names.keys().flat_map(|group| types(group)) {
            *uses.entry(type_name).or_insert(0) += 1;
        }
        // Groups with the same accessor also have the same type.
        let shared = |group: &str| types(group).iter().any(|type_name| uses[type_name] > 1);
        let long: Vec<_> = names
            .iter()
            .filter(|(group, name)| shared(group) || !free(name))
            .map(|(group, _)| *group)
            .collect();
        if long.is_empty() {
            return Ok(names);
        }
        for group in long {
            lengths.entry(group).and_modify(|labels| *labels += 1);
        }
    }
    bail!(
        "cannot name the accessor methods and types of the groups {:?}: two groups would get the same name, \
         or a group would get the name of one of the factory's own methods; generate fewer groups at a time",
        groups.keys()
    )
}

/// Returns the name of the type that has the accessors of a version of a group.
pub(crate) fn version_type(accessor: &str, version: &str) -> String {
    camel(accessor) + &capitalized(version)
}

/// Returns the names of the types of a group and of its versions.
fn type_names(accessor: &str, versions: &BTreeSet<&str>) -> Vec<String> {
    let of_versions = versions.iter().map(|version| version_type(accessor, version));
    std::iter::once(camel(accessor)).chain(of_versions).collect()
}

/// Makes a name from the first `labels` labels of the group.
fn name(group: &str, labels: usize) -> String {
    let labels: Vec<String> = group.split('.').take(labels).map(|label| label.replace('-', "_")).collect();
    let name = labels.join("_");
    // A label can begin with a digit; a Rust name cannot.
    if name.starts_with(|first: char| first.is_ascii_digit()) { format!("group_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns these groups, each with the version `v1`.
    fn with_version<'a>(groups: &[&'a str]) -> BTreeMap<&'a str, BTreeSet<&'static str>> {
        groups.iter().map(|group| (*group, BTreeSet::from(["v1"]))).collect()
    }

    fn names(groups: &[&str]) -> Vec<String> {
        accessors(&with_version(groups)).unwrap().into_values().collect()
    }

    #[test]
    fn accessor_is_the_first_label_of_the_group() {
        assert_eq!(names(&["stable.example.com"]), ["stable"]);
        assert_eq!(names(&["cert-manager.io"]), ["cert_manager"]);
        assert_eq!(names(&["3scale.net"]), ["group_3scale"]);
    }

    #[test]
    fn taken_name_gets_another_label() {
        assert_eq!(names(&["networking.example.com"]), ["networking_example"]);
        assert_eq!(names(&["start.example.com"]), ["start_example"]);
        assert_eq!(names(&["type.example.com"]), ["type_example"]);
        assert_eq!(names(&["a.b.example", "a.c.example"]), ["a_b", "a_c"]);
        assert_eq!(names(&["a.b.c.example", "a.b.d.example", "a_b"]), ["a_b_c", "a_b_d", "a_b"]);
    }

    #[test]
    fn longer_name_that_is_taken_gets_further_labels() {
        // Each round of longer names but the last takes the name of one more group.
        assert_eq!(
            names(&["a.b.z", "a.q.z", "a-b.c.z", "a-b-c.d.z", "a-b-c-d.e.z"]),
            ["a_b_c_d_e", "a_b_c_d_z", "a_b_c_z", "a_b_z", "a_q"]
        );
    }

    #[test]
    fn taken_type_name_gets_another_label() {
        assert_eq!(names(&["custom-groups.example.com"]), ["custom_groups_example"]);
        // The version `v1` of `a` and the group `a-v1` would both have the type `AV1`.
        assert_eq!(names(&["a-v1.example.com", "a.example.com"]), ["a_v1_example", "a_example"]);
    }

    #[test]
    fn groups_whose_types_cannot_differ_are_named_in_the_error() {
        let groups = with_version(&["a-1.example.com", "a1.example.com"]);
        let message = accessors(&groups).unwrap_err().to_string();
        assert!(message.contains("a-1.example.com") && message.contains("a1.example.com"), "{message}");
    }
}
