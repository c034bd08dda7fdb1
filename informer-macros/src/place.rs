//! [`Place`]: the place of a kind's accessor, as in `factory.stable().v1().cron_tabs()`.
//!
//! A derive cannot see other derives, and two derives that both define a method `stable` would make
//! every call of it ambiguous. So one kind *opens* its group, and the others name that kind.

use proc_macro2::{Ident, Span};
use syn::{LitStr, Path, Result};

use crate::attributes::Attributes;
use crate::built_in::FACTORY_METHODS;
use crate::mistake::mistake;
use crate::model::Identity;
use crate::names;

/// The place of a kind's accessor.
pub(crate) struct Place {
    pub(crate) group: String,
    pub(crate) version: String,
    /// For example `stable`.
    pub(crate) group_accessor: Ident,
    /// For example `v1`.
    pub(crate) version_accessor: Ident,
    /// For example `cron_tabs`.
    pub(crate) accessor: Ident,
    pub(crate) way: Way,
}

/// Which kind defines the accessors of the group and of the version.
pub(crate) enum Way {
    /// This kind defines both.
    Opens,
    /// Another kind of the same group and version defines both.
    Beside(Path),
    /// This kind defines the version's accessor, in the group that another kind opens.
    GroupOf(Path),
    /// The factory defines both.
    BuiltIn,
}

impl Place {
    /// Determines the place. Fails if the attributes allow none or more than one.
    pub(crate) fn new(identity: &Identity, attributes: &Attributes) -> Result<Self> {
        let group = identity.group.value();
        let way = way(&group, attributes)?;
        let group_accessor = match (&way, &attributes.group_accessor) {
            (Way::Opens, Some(given)) => group_accessor(&given.value(), given.span(), &group, true)?,
            (Way::Opens, None) => {
                group_accessor(&names::group_accessor(&group), identity.group.span(), &group, false)?
            }
            (_, Some(given)) => {
                let message = "`group_accessor` is only for the kind that opens the group; remove it";
                return Err(mistake(given.span(), message));
            }
            (_, None) => Ident::new("opened_elsewhere", Span::call_site()),
        };
        let (text, span) = match &attributes.accessor {
            Some(given) => (given.value(), given.span()),
            None => (identity.accessor.clone(), identity.object),
        };
        let accessor = names::ident(&text, span).filter(|_| text != "factory").ok_or_else(|| {
            mistake(
                span,
                format!("`{text}` is not a valid accessor; choose a name such as `accessor = \"cron_tabs\"`"),
            )
        })?;
        let version = identity.version.value();
        if matches!(way, Way::BuiltIn) {
            beside_built_in(&group, &identity.version, &text, span)?;
        }
        let Some(version_accessor) = names::ident(&version, identity.version.span()) else {
            return Err(mistake(
                identity.version.span(),
                "expected a version such as `v1`, `v1beta1` or `v2alpha3`",
            ));
        };
        Ok(Self { group, version, group_accessor, version_accessor, accessor, way })
    }

    /// Returns the names of the types for a built-in group and its version: `Core` and `CoreV1`.
    pub(crate) fn built_in_types(&self) -> [Ident; 2] {
        let group = names::capitalized(&names::group_accessor(&self.group));
        let version = group.clone() + &names::capitalized(&self.version);
        [group, version].map(|name| Ident::new(&name, self.version_accessor.span()))
    }
}

fn way(group: &str, attributes: &Attributes) -> Result<Way> {
    let built_in = names::is_built_in(group) && attributes.group_accessor.is_none();
    match (&attributes.beside, &attributes.group_of) {
        (None, None) if built_in => Ok(Way::BuiltIn),
        (None, None) => Ok(Way::Opens),
        (Some(_), Some(other)) => {
            let message = "`beside` is for a kind of the same version, `group_of` for one of another; \
                           remove one of them";
            Err(mistake(syn::spanned::Spanned::span(other), message))
        }
        (Some(other), None) | (None, Some(other)) if built_in => {
            let message = "the factory already has the accessors of this group; remove this attribute";
            Err(mistake(syn::spanned::Spanned::span(other), message))
        }
        (Some(other), None) => Ok(Way::Beside(other.clone())),
        (None, Some(other)) => Ok(Way::GroupOf(other.clone())),
    }
}

/// Checks an accessor in a built-in version. The factory's own accessors would hide one of the same
/// name.
fn beside_built_in(group: &str, version: &LitStr, accessor: &str, span: Span) -> Result<()> {
    let (of_group, text) = (names::group_accessor(group), version.value());
    let versions = names::built_in_versions(group);
    if !versions.contains(&text.as_str()) {
        let message = format!(
            "the factory's `{of_group}()` has {}, and no `{text}`; \
             add a separate group accessor, such as `group_accessor = \"other_{of_group}\"`",
            versions.join(", "),
        );
        return Err(mistake(version.span(), message));
    }
    if names::is_built_in_accessor(group, &text, accessor) {
        let message = format!(
            "the factory's `{of_group}().{text}()` already has `{accessor}`, for the whole kind; \
             choose another name, such as `accessor = \"slim_{accessor}\"`",
        );
        return Err(mistake(span, message));
    }
    Ok(())
}

/// Checks the name of a group's accessor.
fn group_accessor(name: &str, span: Span, group: &str, is_given: bool) -> Result<Ident> {
    let example = names::snake(&group.replace(['.', '-'], "_"));
    let remedy = if is_given {
        "choose another name".to_owned()
    } else {
        format!("choose another name, such as `group_accessor = \"{example}\"`")
    };
    if let Some(own) = names::built_in_behind(name) {
        let own = if own.is_empty() { "the core group" } else { own };
        return Err(mistake(span, format!("the factory's `{name}` is the accessor of {own}; {remedy}")));
    }
    if FACTORY_METHODS.contains(&name) {
        return Err(mistake(span, format!("the factory has a method `{name}` already; {remedy}")));
    }
    names::ident(name, span)
        .ok_or_else(|| mistake(span, format!("`{name}` is not a valid method name; {remedy}")))
}
