//! The names of the factory's accessors for groups of custom resources.
//!
//! An accessor is named after the first label of its group: `factory.stable()` is for
//! `stable.example.com`. If that name is taken or is a Rust keyword, the next label is appended:
//! `networking.example.com` has `networking_example()`, because the factory has its own method
//! `networking()`, which would hide a trait method with the same name. The prefix `group_` precedes
//! a name that would begin with a digit.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;

use crate::shared::names::ident;
use crate::taken::{FACTORY_METHODS, GROUPS};

pub(crate) fn accessors<'a>(groups: &BTreeSet<&'a str>) -> anyhow::Result<BTreeMap<&'a str, String>> {
    let free =
        |name: &str| ident(name).is_ok() && !GROUPS.contains(&name) && !FACTORY_METHODS.contains(&name);
    let longest = groups.iter().map(|group| group.split('.').count()).max().unwrap_or_default();
    let mut lengths: BTreeMap<&str, usize> = groups.iter().map(|group| (*group, 1)).collect();
    for _ in 0..=longest {
        let names: BTreeMap<&str, String> =
            lengths.iter().map(|(group, labels)| (*group, name(group, *labels))).collect();
        let shared = |name: &String| names.values().filter(|other| *other == name).count() > 1;
        let long: Vec<_> =
            names.iter().filter(|(_, name)| shared(name) || !free(name)).map(|(group, _)| *group).collect();
        if long.is_empty() {
            return Ok(names);
        }
        for group in long {
            lengths.entry(group).and_modify(|labels| *labels += 1);
        }
    }
    bail!(
        "cannot name the accessor methods of the groups {groups:?}: two groups would get the same name, \
         or a group would get the name of one of the factory's own methods; generate fewer groups at a time"
    )
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

    fn names(groups: &[&str]) -> Vec<String> {
        accessors(&groups.iter().copied().collect()).unwrap().into_values().collect()
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
}
