//! Conditions on Kubernetes versions in the generated code: the `k8s_if_*` macros of k8s-openapi,
//! which expand to their content or to nothing, depending on the version that the final binary
//! selects.

use anyhow::bail;
use proc_macro2::Ident;

use crate::shared::names::ident;

/// A condition on Kubernetes versions: macros that surround generated code. Without macros, the
/// code exists in all versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// The names of the macros, the outermost first, such as `k8s_if_ge_1_36`.
    pub macros: Vec<Ident>,
    /// The condition in words, such as "`v1_36` and later"; `None` without macros.
    pub title: Option<String>,
}

impl Gate {
    /// Returns the condition for code that exists only in the Kubernetes versions `present`, or in
    /// all versions if `present` is empty. `all` has all versions in ascending order.
    pub fn new(present: &[String], all: &[String]) -> anyhow::Result<Self> {
        let at = |feature: &String| all.iter().position(|other| other == feature);
        let Some(places) = present.iter().map(at).collect::<Option<Vec<_>>>() else {
            bail!(
                "one of the Kubernetes versions {present:?} is not supported; the supported versions are {all:?}; correct \
                 `features` of the kinds in xtask/groups.json"
            );
        };
        let (Some(&first), Some(&last)) = (places.iter().min(), places.iter().max()) else {
            return Ok(Self::default());
        };
        if last - first + 1 != places.len() {
            bail!(
                "the Kubernetes versions {present:?} of a kind or an API group are not consecutive, but \
                 generated code supports no gap between versions; correct `features` of the kinds in xtask/groups.json"
            );
        }
        let (from, to) = (&all[first], &all[last]);
        let (early, late) = (first == 0, last + 1 == all.len());
        let (macros, title) = match (early, late) {
            (true, true) => return Ok(Self::default()),
            (false, true) => (vec![name("ge_", from)], format!("`{from}` and later")),
            (true, false) => (vec![name("le_", to)], format!("`{to}` and earlier")),
            (false, false) if from == to => (vec![name("", from)], format!("`{from}`")),
            (false, false) => (vec![name("ge_", from), name("le_", to)], format!("`{from}` to `{to}`")),
        };
        let macros = macros.iter().map(|name| ident(name)).collect::<anyhow::Result<_>>()?;
        Ok(Self { macros, title: Some(title) })
    }
}

fn name(how: &str, feature: &str) -> String {
    format!("k8s_if_{how}{}", feature.trim_start_matches('v'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn macros(present: &[&str]) -> anyhow::Result<Vec<String>> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let gate = Gate::new(&owned(present), &owned(&["v1_33", "v1_34", "v1_35", "v1_36", "v1_37"]))?;
        Ok(gate.macros.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn gate_covers_exactly_the_given_versions() {
        for (present, expected) in [
            (&[][..], &[][..]),
            (&["v1_33", "v1_34", "v1_35", "v1_36", "v1_37"], &[]),
            (&["v1_36", "v1_37"], &["k8s_if_ge_1_36"]),
            (&["v1_33", "v1_34"], &["k8s_if_le_1_34"]),
            (&["v1_35"], &["k8s_if_1_35"]),
            (&["v1_34", "v1_35", "v1_36"], &["k8s_if_ge_1_34", "k8s_if_le_1_36"]),
        ] {
            assert_eq!(macros(present).unwrap(), expected, "{present:?}");
        }
    }

    #[test]
    fn gaps_and_unknown_versions_are_rejected() {
        for (present, expected) in
            [(&["v1_33", "v1_37"][..], "not consecutive"), (&["v1_32"], "is not supported")]
        {
            let message = macros(present).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
