//! [`Model`]: the checked input of a derive. All errors that depend only on `#[informer(...)]` are
//! found here.

use std::time::Duration;

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, LitStr, Path, Result, Visibility};

use crate::attributes::Attributes;
use crate::index::{self, Index};
use crate::kube_attribute::KubeAttribute;
use crate::mistake::Mistakes;
use crate::names;
use crate::place::Place;
use crate::prune;

pub(crate) struct Model {
    pub(crate) vis: Visibility,
    /// The object type of the informers.
    pub(crate) object: Ident,
    /// The path of the crate informer-factory in the generated code.
    pub(crate) factory_path: Path,
    /// The values for an implementation of `kube::Resource`, which the derive generates. `None` if
    /// other code implements `kube::Resource`.
    pub(crate) view: Option<ViewResource>,
    /// The names of the methods in `factory.stable().v1().cron_tabs()`. `None` if the derive
    /// generates no accessor (the last of these methods, which returns the informer).
    pub(crate) place: Option<Place>,
    pub(crate) prune: Vec<String>,
    pub(crate) default_resync: Option<Duration>,
    pub(crate) indexes: Vec<Index>,
}

/// The group, version, kind, plural name and scope of a slim view's resource. A slim view is a
/// struct with only some of the resource's fields.
pub(crate) struct ViewResource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    /// The span of the type of the field `metadata`.
    pub(crate) metadata: Span,
}

/// The group and version of a resource, and the default name of the accessor. The accessor is the
/// method that returns the informer.
pub(crate) struct Identity {
    pub(crate) group: LitStr,
    pub(crate) version: LitStr,
    /// The name of the accessor if the attribute `accessor` gives no other name. Example:
    /// `cron_tabs` in `factory.stable().v1().cron_tabs()`.
    pub(crate) accessor: String,
    /// The span of the name of the object type. Errors about the default accessor point there.
    pub(crate) type_span: Span,
}

impl Model {
    /// Reads and checks the type that has `#[derive(Informer)]`. Returns `None` if `#[kube(...)]`
    /// can't be read, which kube's own derive reports.
    pub(crate) fn read(input: &DeriveInput) -> Result<Option<Self>> {
        let attributes = Attributes::read(&input.attrs)?;
        let of_kube = KubeAttribute::exists(&input.attrs);
        check_shape(input, of_kube)?;
        let mut mistakes = Mistakes::default();
        let mut model = Self {
            vis: input.vis.clone(),
            object: input.ident.clone(),
            factory_path: attributes
                .factory_path
                .clone()
                .unwrap_or_else(|| syn::parse_quote!(::informer_factory)),
            view: None,
            place: None,
            prune: prune::paths(&attributes.prune, &mut mistakes),
            default_resync: attributes.default_resync.as_ref().and_then(|text| mistakes.take(duration(text))),
            indexes: Vec::new(),
        };
        let identity = if of_kube {
            let Some(kube) = KubeAttribute::read(&input.attrs) else { return Ok(None) };
            reject_kube_duplicates(&attributes, &mut mistakes);
            let Some(object) = names::ident(&kube.root.value(), kube.root.span()) else { return Ok(None) };
            model.object = object;
            Some(Identity {
                accessor: names::kind_accessor(&kube.kind.value(), &kube.plural),
                type_span: kube.root.span(),
                group: kube.group,
                version: kube.version,
            })
        } else if attributes.own_resource.is_some() {
            own_resource(&attributes, &input.ident, &mut mistakes)
        } else {
            let view = view(&attributes, input, &mut mistakes);
            view.map(|(view, identity)| {
                model.view = Some(view);
                identity
            })
        };
        if attributes.no_accessor.is_none() {
            model.place = identity.and_then(|identity| mistakes.take(Place::new(&identity, &attributes)));
        } else if let Some(accessor) = &attributes.accessor {
            let message = "`no_accessor` conflicts with `accessor`; remove one of them";
            mistakes.add(Error::new(accessor.span(), message));
        }
        model.indexes = index::indexes(attributes.indexes, &mut mistakes);
        mistakes.done()?;
        Ok(Some(model))
    }
}

/// Rejects unions and generic types. Without `#[kube(...)]`, also rejects enums, and structs
/// without named fields.
fn check_shape(input: &DeriveInput, of_kube: bool) -> Result<()> {
    const FORM: &str = "`#[derive(Informer)]` is for structs with named fields";
    let kind = match &input.data {
        Data::Struct(data) if matches!(data.fields, Fields::Named(_)) || of_kube => None,
        Data::Enum(_) if of_kube => None,
        Data::Struct(_) => Some("this struct has none"),
        Data::Enum(_) => Some("this is an enum"),
        Data::Union(_) => Some("this is a union"),
    };
    if let Some(kind) = kind {
        return Err(Error::new(input.ident.span(), format!("{FORM}; {kind}")));
    }
    if let Some(parameter) = input.generics.params.first() {
        let message = "generic types are not supported; derive `Informer` on a type without parameters";
        return Err(Error::new(parameter.span(), message));
    }
    Ok(())
}

/// Rejects `#[informer(...)]` attributes that describe the resource, because `#[kube(...)]` already
/// defines the resource, and the two could differ.
fn reject_kube_duplicates(attributes: &Attributes, mistakes: &mut Mistakes) {
    let span = |text: &Option<LitStr>| text.as_ref().map(LitStr::span);
    let attributes = [
        ("group", span(&attributes.group)),
        ("version", span(&attributes.version)),
        ("kind", span(&attributes.kind)),
        ("plural", span(&attributes.plural)),
        ("namespaced", attributes.namespaced),
        ("cluster", attributes.cluster),
        ("own_resource", attributes.own_resource),
    ];
    for (name, span) in attributes.into_iter().filter_map(|(name, span)| Some((name, span?))) {
        let message =
            format!("`{name}` conflicts with `#[kube(...)]`, which defines the resource; remove `{name}`");
        mistakes.add(Error::new(span, message));
    }
}

/// Checks the attributes of a type with `own_resource`. The user's code implements `kube::Resource`
/// for such a type.
fn own_resource(attributes: &Attributes, object: &Ident, mistakes: &mut Mistakes) -> Option<Identity> {
    for (name, span) in [("namespaced", attributes.namespaced), ("cluster", attributes.cluster)] {
        if let Some(span) = span {
            let message =
                format!("`{name}` conflicts with `own_resource`, which defines the scope; remove `{name}`");
            mistakes.add(Error::new(span, message));
        }
    }
    // `group`, `version`, `kind` and `plural` only determine the names of the accessors.
    let Attributes { group, version, accessor, no_accessor, kind, plural, .. } = attributes;
    let (Some(group), Some(version)) = (group, version) else {
        // `Model::read` reports `no_accessor` with `accessor`.
        let accessor = accessor.as_ref().filter(|_| no_accessor.is_none());
        let others = [group, version, kind, plural].map(Option::as_ref);
        if let Some(one) = others.into_iter().flatten().chain(accessor).next() {
            let message = "an accessor needs both `group` and `version`; add the missing attributes, \
                           or remove this one to generate no accessor";
            mistakes.add(Error::new(one.span(), message));
        }
        return None;
    };
    let group = check(group, names::is_group, GROUP, mistakes);
    let version = check(version, names::is_version, VERSION, mistakes);
    let kind = match kind {
        Some(kind) => check(kind, names::is_kind, KIND, mistakes)?.value(),
        None => object.unraw().to_string(),
    };
    let plural = match plural {
        Some(plural) => check(plural, names::is_plural, PLURAL, mistakes)?.value(),
        None => names::default_plural(&kind),
    };
    let accessor = names::kind_accessor(&kind, &plural);
    Some(Identity { group: group?, version: version?, accessor, type_span: object.span() })
}

/// Checks a slim view, a type with only some fields of a resource. The attributes must identify the
/// resource.
fn view(
    attributes: &Attributes,
    input: &DeriveInput,
    mistakes: &mut Mistakes,
) -> Option<(ViewResource, Identity)> {
    let Attributes { group, version, kind, .. } = attributes;
    let (Some(group), Some(version), Some(kind)) = (group, version, kind) else {
        let texts = [("group", group), ("version", version), ("kind", kind)];
        let missing: Vec<&str> =
            texts.iter().filter(|(_, text)| text.is_none()).map(|(name, _)| *name).collect();
        let message = format!(
            "`#[informer(...)]` must identify the resource; add {}, as in `{}`",
            listed(&missing),
            r#"group = "", version = "v1", kind = "Pod", namespaced"#,
        );
        mistakes.add(Error::new(input.ident.span(), message));
        return None;
    };
    let group = check(group, names::is_group, GROUP, mistakes);
    let version = check(version, names::is_version, VERSION, mistakes);
    let kind = check(kind, names::is_kind, KIND, mistakes);
    let namespaced = mistakes.take(scope(attributes, input.ident.span()));
    let metadata = mistakes.take(metadata(input));
    let (group, version, kind, namespaced, metadata) = (group?, version?, kind?, namespaced?, metadata?);
    let plural = match &attributes.plural {
        Some(plural) => check(plural, names::is_plural, PLURAL, mistakes)?.value(),
        None => names::default_plural(&kind.value()),
    };
    let object = input.ident.unraw().to_string();
    // One kind can have several views, so a view's accessor is named after the type.
    let accessor = if object == kind.value() {
        names::kind_accessor(&object, &plural)
    } else {
        names::pluralized(&names::snake(&object))
    };
    let view = ViewResource {
        group: group.value(),
        version: version.value(),
        kind: kind.value(),
        plural,
        namespaced,
        metadata,
    };
    Some((view, Identity { group, version, accessor, type_span: input.ident.span() }))
}

fn scope(attributes: &Attributes, item: Span) -> Result<bool> {
    match (attributes.namespaced, attributes.cluster) {
        (Some(_), None) => Ok(true),
        (None, Some(_)) => Ok(false),
        (None, None) => {
            let message = "`#[informer(...)]` must set the scope; add `namespaced` or `cluster`";
            Err(Error::new(item, message))
        }
        (Some(_), Some(cluster)) => {
            Err(Error::new(cluster, "`namespaced` conflicts with `cluster`; remove one of them"))
        }
    }
}

/// Returns the span of the type of the field `metadata`.
fn metadata(input: &DeriveInput) -> Result<Span> {
    if let Data::Struct(data) = &input.data {
        let field =
            data.fields.iter().find(|field| field.ident.as_ref().is_some_and(|name| name == "metadata"));
        if let Some(field) = field {
            return Ok(field.ty.span());
        }
    }
    let message = "the type has no field `metadata`; add `metadata: ObjectMeta` with the type of k8s-openapi, \
                   or add `own_resource` if the type implements `kube::Resource` itself";
    Err(Error::new(input.ident.span(), message))
}

const GROUP: &str =
    "expected a DNS domain in lower case, such as `stable.example.com`, or \"\" for the core group";
const VERSION: &str = "expected a version such as `v1`, `v1beta1` or `v2alpha3`";
const KIND: &str = "expected a kind in CamelCase, such as `CronTab`";
const PLURAL: &str =
    "expected a plural in lower case, such as `crontabs`, with at most 63 letters, digits and `-`";

fn check(text: &LitStr, is_right: fn(&str) -> bool, form: &str, mistakes: &mut Mistakes) -> Option<LitStr> {
    if is_right(&text.value()) {
        return Some(text.clone());
    }
    let message = if text.value().is_empty() {
        format!("invalid empty value: {form}")
    } else {
        format!("invalid value \"{}\": {form}", text.value())
    };
    mistakes.add(Error::new(text.span(), message));
    None
}

fn duration(text: &LitStr) -> Result<Duration> {
    const FORM: &str = "write a time with its unit, such as \"10m\" or \"1h 30m\"";
    match humantime::parse_duration(&text.value()) {
        Ok(duration) if duration.is_zero() => Err(Error::new(
            text.span(),
            "a resync period cannot be zero; remove `default_resync` to use the factory's period",
        )),
        Ok(duration) => Ok(duration),
        Err(_) => Err(Error::new(text.span(), format!("\"{}\" is not a duration; {FORM}", text.value()))),
    }
}

/// Formats names as `a`, `b` and `c`.
fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => quoted.concat(),
    }
}
