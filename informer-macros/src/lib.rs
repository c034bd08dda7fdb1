//! `#[derive(Informer)]`: generates code to use a type with the informers of informer-factory, such
//! as a method of the factory that returns the informer of the type.
//!
//! Programs import the derive as `informer_factory::Informer`. The README of this crate shows the
//! generated code.

mod attributes;
mod built_in;
mod expand;
mod index;
mod kube_attribute;
mod mistake;
mod model;
mod names;
mod place;
mod prune;

use proc_macro::TokenStream;

/// Generates code to use a type with informers: an accessor on the factory, methods for indexes, and
/// constructors of informers.
///
/// The derive supports three kinds of types:
///
/// 1. **A spec with `#[derive(CustomResource)]`.** Group, version, kind, plural and scope come
///    from `#[kube(...)]`. The informers are for the type that kube generates from the spec.
/// 2. **A slim view**: a struct with `metadata: ObjectMeta` and some fields of a resource. `group`,
///    `version`, `kind` and `namespaced` or `cluster` identify the resource. The derive implements
///    `kube::Resource`. The type must implement `Deserialize`; other fields of the resource are not
///    decoded. JSON field names are in camel case, so views usually need
///    `#[serde(rename_all = "camelCase")]`.
/// 3. **A type that implements `kube::Resource` itself**, with `own_resource`. `group` and
///    `version` determine the accessor. Without them, no accessor is generated, and `accessor`,
///    `kind` and `plural` are errors.
///
/// # Generated items
///
/// For a kind `CronTab` of `stable.example.com/v1`, the derive generates these items in the module
/// of the type and with the visibility of the type:
///
/// - the trait `CronTabInformers`, which adds `factory.stable().v1().cron_tabs()`;
/// - if there are indexes, the trait `CronTabIndices`, which adds two methods to the type's
///   informers for each index, such as `by_image` and `by_image_index`;
/// - `CronTab::new_informer` and `CronTab::new_informer_from`, for informers without a factory.
///
/// Import the traits where you use their methods. Informers made by the accessor, `new_informer` or
/// `new_informer_from` have the indexes from the start. In other informers, such as those of
/// `factory.informer::<CronTab>()`, the first call of an index method adds the index, unless a call
/// of the accessor has added it.
///
/// The accessor and `factory.informer::<CronTab>()` return the same informer. If
/// `factory.informer::<CronTab>()` is called before the accessor, the attributes `prune` and
/// `default_resync` have no effect on this informer. Settings in the factory's builder take
/// precedence over the attributes.
///
/// # Attributes
///
/// | `#[informer(...)]` | meaning | default |
/// |---|---|---|
/// | `group = "…"`, `version = "…"`, `kind = "…"` | the resource | from `#[kube(...)]` |
/// | `plural = "crontabs"` | the resource's name in URLs | the kind in lower case, with English plural; `endpoints` for `Endpoints` |
/// | `namespaced`, `cluster` | the scope of the objects | from `#[kube(...)]` |
/// | `no_accessor` | generates no accessor; list the type in `informer_factory::group!` to get one | |
/// | `own_resource` | the type implements `kube::Resource` itself | |
/// | `index(name = "by_image", …)` | an index, see below | none |
/// | `prune("spec.template", …)` | JSON fields to skip when decoding, besides `metadata.managedFields` | none |
/// | `default_resync = "10m"` | the resync period of the type's informers | the resync period of the factory |
/// | `accessor = "cron_tabs"` | the name of the accessor | the plural of the type's name for a view, and of the kind for other types |
/// | `crate = path` | the path of informer-factory | `::informer_factory` |
///
/// # Indexes
///
/// `path = "spec.containers.image"` names Rust fields. A field can be an `Option`, `Box`, `Vec`,
/// set or map, or two of these nested, as in `Option<Vec<_>>`; the path continues in the contained
/// values. For deeper nesting, use `with`. An object has one index value for each value at the
/// path. `metadata.labels["app"]` is one entry of a map.
///
/// `with = function` takes a function or closure of `&CronTab` that returns an iterable, or a
/// `Result` of an iterable. An object for which the function returns an error is listed in
/// `Indexer::index_failures`. By default, the values are `String`s; `value = i32` sets another
/// type.
///
/// # Several kinds of one group
///
/// A derive cannot see other derives. For several kinds of one group, set `no_accessor` on each
/// derive and list the kinds in `informer_factory::group!`, which generates their accessors.
/// Without `no_accessor`, each derive generates an accessor for the group. Two such derives in one
/// module do not compile. Two in different modules compile, but calls of the group's accessor are
/// ambiguous where both generated traits are in scope. Views of kinds in the built-in groups need
/// no `group!`.
///
/// # Errors
///
/// A mistake in the attributes is a compile error, which points at the mistake and names the
/// remedy. At run time, the informer reports problems as state: if the server does not serve the
/// resource, the informer's health is `Health::NotServed`, and failures and panics of an index
/// function are listed in `Indexer::index_failures`. The health of a `namespaced` view of
/// a cluster-scoped kind is `Health::NotServed` if the factory is limited to a namespace.
#[proc_macro_derive(Informer, attributes(informer))]
pub fn derive_informer(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
