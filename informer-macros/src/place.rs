//! [`Place`]: the names of the methods that together select the informer of a kind: `stable`, `v1`
//! and `cron_tabs` in `factory.stable().v1().cron_tabs()`.

use proc_macro2::{Ident, Span};
use syn::{Error, LitStr, Result};

use crate::attributes::Attributes;
use crate::built_in::FACTORY_METHODS;
use crate::model::Identity;
use crate::names;

pub(crate) struct Place {
    /// Group and version, such as `stable.example.com/v1`.
    pub(crate) api_version: String,
    /// The method that selects the version, such as `v1`.
    pub(crate) version: Ident,
    /// The method that returns the informer, such as `cron_tabs`.
    pub(crate) accessor: Ident,
    /// The method that selects the group, such as `stable`.
    pub(crate) group: GroupAccessor,
}

/// The method of the factory for the kind's group, such as `stable` in `factory.stable()`.
pub(crate) enum GroupAccessor {
    /// The derive generates the method. The identifier is the method's name, such as `stable`.
    New(Ident),
    /// The factory already has the method, such as `core`. The identifier is the type that
    /// `factory.core().v1()` returns: `CoreV1`.
    BuiltIn(Ident),
}

impl Place {
    /// Derives the names of the methods from the group, the version and the attributes. Fails if a
    /// name is invalid, if the factory already uses it, or if a built-in group lacks the version.
    pub(crate) fn new(identity: &Identity, attributes: &Attributes) -> Result<Self> {
        let Identity { group, version, .. } = identity;
        let (text, span) = match &attributes.accessor {
            Some(given) => (given.value(), given.span()),
            None => (identity.accessor.clone(), identity.type_span),
        };
        let accessor = names::ident(&text, span).filter(|_| text != "factory").ok_or_else(|| {
            let remedy = "choose a name such as `accessor = \"cron_tabs\"`";
            Error::new(span, format!("`{text}` is not a valid accessor; {remedy}"))
        })?;
        let version_name = names::ident(&version.value(), version.span()).ok_or_else(|| {
            Error::new(version.span(), "expected a version such as `v1`, `v1beta1` or `v2alpha3`")
        })?;
        let api_version = [group.value(), version.value()].join("/").trim_start_matches('/').to_owned();
        let group = if names::is_built_in(&group.value()) {
            check_built_in(&group.value(), version, &text, span)?;
            let name = [names::group_accessor(&group.value()), version.value()];
            let name = name.map(|part| names::capitalized(&part)).concat();
            GroupAccessor::BuiltIn(Ident::new(&name, version.span()))
        } else {
            GroupAccessor::New(new_group(group)?)
        };
        Ok(Self { api_version, version: version_name, accessor, group })
    }
}

/// Fails if the built-in group lacks the version. Also fails if the version already has an accessor
/// with the name `accessor`, which would hide the new one.
fn check_built_in(group: &str, version: &LitStr, accessor: &str, span: Span) -> Result<()> {
    let (of_group, text) = (names::group_accessor(group), version.value());
    let versions = names::built_in_versions(group);
    if !versions.contains(&text.as_str()) {
        let versions = versions.join(", ");
        let message = format!("the factory's `{of_group}()` has no `{text}`, only {versions}; {LIST_IT}");
        return Err(Error::new(version.span(), message));
    }
    if names::is_built_in_accessor(group, &text, accessor) {
        let message = format!(
            "the factory's `{of_group}().{text}()` already has an accessor `{accessor}`; \
             choose another name, such as `accessor = \"slim_{accessor}\"`",
        );
        return Err(Error::new(span, message));
    }
    Ok(())
}

const LIST_IT: &str =
    "add `no_accessor` here, and list the type under a name of your choice in `informer_factory::group!`";

/// Returns the accessor for a group that is not built in. Fails if its name is invalid, or is
/// already a method of the factory.
fn new_group(group: &LitStr) -> Result<Ident> {
    let name = names::group_accessor(&group.value());
    let reason = if let Some(own) = names::built_in_behind(&name) {
        let own = if own.is_empty() { "the core group" } else { own };
        format!("is already the accessor of {own}")
    } else if FACTORY_METHODS.contains(&name.as_str()) {
        "is already a method of the factory".to_owned()
    } else {
        match names::ident(&name, group.span()) {
            Some(ident) => return Ok(ident),
            None => "is not a valid method name".to_owned(),
        }
    };
    let message = format!("this group's accessor would be `{name}`, which {reason}; {LIST_IT}");
    Err(Error::new(group.span(), message))
}
