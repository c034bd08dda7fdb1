//! [`Placed`]: the place of a kind's accessor, for other kinds of the same group.

/// A kind whose accessor is in a group that a derive has opened.
#[diagnostic::on_unimplemented(
    message = "there is no accessor of `{Self}` to stand beside",
    note = "`beside` and `group_of` name a type with `#[derive(Informer)]`, of a group that isn't Kubernetes' own; for a \
            custom resource the type that kube makes, not its spec"
)]
pub trait Placed {
    /// The group.
    const GROUP: &'static str;
    /// The version.
    const VERSION: &'static str;
    /// The version of the kind that declares the group. Its accessor hides others with the same
    /// name.
    const OPENED_AT: &'static str;
    /// The accessor of the kind that declares the version. It hides others with the same name.
    const OPENED_FOR: &'static str;
    /// The result of `factory.<group>()`.
    type Group<'a>;
    /// The result of `factory.<group>().<version>()`.
    type Version<'a>;
}

/// Rejects `beside` for a kind of another version, and an accessor that would be hidden.
///
/// # Panics
/// At compile time, if the version differs, or the accessor is that of the kind that declares the
/// version.
pub const fn same_version<K: Placed>(group: &str, version: &str, accessor: &str) {
    assert!(
        equal(K::GROUP, group),
        "`beside` names a kind of another group; name one of the same group, or take `beside` out"
    );
    assert!(
        equal(K::VERSION, version),
        "`beside` names a kind of another version; name one of the same version, \
         or write `group_of` for the first kind of a version"
    );
    assert!(
        !equal(K::OPENED_FOR, accessor),
        "the kind that has opened this version has an accessor of this name, which would be found in place of this one; \
         add `accessor = \"cron_tabs\"`, with a name of yours"
    );
}

/// Rejects `group_of` for a kind of the same version.
///
/// # Panics
/// At compile time, if the version is the same, or the group differs.
pub const fn other_version<K: Placed>(group: &str, version: &str) {
    assert!(
        equal(K::GROUP, group),
        "`group_of` names a kind of another group; name one of the same group, or take `group_of` out"
    );
    assert!(
        !equal(K::VERSION, version),
        "`group_of` names a kind of the same version; write `beside` in its place"
    );
    assert!(
        !equal(K::OPENED_AT, version),
        "the kind that has opened this group is of this version; write `beside` with a kind of it in place of `group_of`"
    );
}

const fn equal(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}
