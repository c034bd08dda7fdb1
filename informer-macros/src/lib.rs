//! `#[derive(Informer)]`: typed accessors, indices and slim views for the informers of informer-factory.
//!
//! Use it through `informer_factory::Informer`. The README of this crate says what it generates.

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

/// Makes informers of a type: its accessor, its indices with a method for each, and what they need of the type.
///
/// It goes on one of three things:
///
/// 1. **A spec with `#[derive(CustomResource)]`.** Group, version, kind, plural and scope are read from `#[kube(...)]`,
///    and informers are for the type that kube makes of it.
/// 2. **A slim view**: a struct with `metadata: ObjectMeta` and those fields of a resource that one needs. `group`,
///    `version`, `kind` and `namespaced` or `cluster` say of which resource. The derive implements `kube::Resource`; the
///    type implements `Deserialize`, which steps over everything that has no field. Mind the field names:
///    `#[serde(rename_all = "camelCase")]`.
/// 3. **A type that implements `kube::Resource` itself**, with `own_resource`. `group` and `version` name its accessor;
///    without them there is none.
///
/// # What it makes
///
/// For a kind `CronTab` of `stable.example.com/v1`, in the same place and as visible as the type:
///
/// - the trait `CronTabInformers`, which brings `factory.stable().v1().cron_tabs()`;
/// - the trait `CronTabIndices`, with the methods `by_image` and `by_image_index` on its informers, for each index;
/// - `CronTab::new_informer` and `CronTab::new_informer_from`, for informers without a factory.
///
/// Import the traits where you use their methods. Indices are there from the start in informers made by the accessor or
/// by `new_informer`, and added by the first use of their methods in others, such as those of
/// `factory.informer::<CronTab>()`. Pruned paths and the resync period are settled by whoever asks a factory for the
/// informer first; what the factory's builder says of them for the type, or of resyncs for all, counts before.
///
/// # Attributes
///
/// | `#[informer(...)]` | meaning | default |
/// |---|---|---|
/// | `group = "…"`, `version = "…"`, `kind = "…"` | the resource | from `#[kube(...)]` |
/// | `plural = "crontabs"` | the resource's name in URLs | the kind in lower case, with English plural |
/// | `namespaced`, `cluster` | where objects live | from `#[kube(...)]` |
/// | `no_accessor` | the factory gets no accessor: only indices and `new_informer` | |
/// | `own_resource` | the type implements `kube::Resource` itself | |
/// | `index(name = "by_image", …)` | an index, see below | none |
/// | `prune("spec.template", …)` | JSON fields to step over when decoding, besides `metadata.managedFields` | none |
/// | `default_resync = "10m"` | the resync period of its informers | the factory's |
/// | `accessor = "cron_tabs"` | the name of the accessor | for a view the plural of the type's name, else of the kind's |
/// | `group_accessor = "stable"` | the name of the group's accessor | the first label of the group |
/// | `beside = CronTab` | the accessor is beside that of a kind of the same version | |
/// | `group_of = CronTab` | the version's accessor is beside those of a kind of the same group | |
/// | `crate = path` | where informer-factory is | `::informer_factory` |
///
/// # Indices
///
/// `path = "spec.containers.image"` names Rust's fields. It leads through `Option`, `Box`, `Vec`, sets and the values of
/// maps, also two of them in each other; an object has as many values as it leads to. `metadata.labels["app"]` is one
/// entry of a map.
/// `with = function` takes a function or closure of `&CronTab` that returns something to iterate over, or a `Result`
/// of that; an error puts the object among `Indexer::index_failures`. The values are `String`s, unless
/// `value = i32` says what else.
///
/// # Several kinds of one group
///
/// A derive doesn't see other derives. One kind opens the group and its version; every other kind says which one that is:
/// `beside = CronTab` if it is of the same version, `group_of = CronTab` if it is the first of another. Two kinds that
/// both open a group in one module are an error that says so. In different modules they are not, but only one of their
/// traits can be used at a time. Kubernetes' own groups are opened by the factory: any number of views goes there.
///
/// # Errors
///
/// A mistake is one error at its place, which says what to write instead. What can only be seen when the program runs is
/// state, as for every informer: a resource that the server doesn't have is `Health::NotServed`, an index function that
/// fails or panics is among `Indexer::index_failures`, and a `namespaced` view of a cluster-scoped kind is
/// `Health::NotServed` where the factory is limited to a namespace.
#[proc_macro_derive(Informer, attributes(informer))]
pub fn derive_informer(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
