//! Generates the accessors from the factory to the informer, as in
//! `factory.stable().v1().cron_tabs()`.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Path;
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use super::at;
use crate::model::Model;
use crate::place::{Place, Way};

pub(super) fn accessors(model: &Model) -> TokenStream {
    let Some(place) = &model.place else { return TokenStream::new() };
    let names = Names::new(&model.object);
    match &place.way {
        Way::Opens => opens(model, place, &names),
        Way::Beside(other) => beside(model, place, &names, other),
        Way::GroupOf(other) => group_of(model, place, &names, other),
        Way::BuiltIn => built_in(model, place, &names),
    }
}

/// The names of the generated items. They contain the kind and avoid likely names of other kinds,
/// such as `ModelGroup` or `ModelVersion`.
struct Names {
    informers: Ident,
    group: Ident,
    version: Ident,
}

impl Names {
    fn new(object: &Ident) -> Self {
        let [informers, group, version] =
            ["Informers", "InformersGroup", "InformersVersion"].map(|end| format_ident!("{object}{end}"));
        Self { informers, group, version }
    }
}

fn opens(model: &Model, place: &Place, names: &Names) -> TokenStream {
    let Model { factory_path, vis, .. } = model;
    let Names { informers, group, version: version_type } = names;
    let Place { group_accessor, .. } = place;
    let doc = format!(" Adds `factory.{group_accessor}()`, the informers of the group `{}`.", place.group);
    let group_doc = format!(" Returns the informers of the group `{}`.", place.group);
    let on_group = on_group(model, place, names);
    let version = version(model, place, names);
    let opened = [place.version.to_token_stream(), accessor_literal(place)];
    let placed = placed(model, place, opened, [quote!(#group<'a>), quote!(#version_type<'a>)]);
    let only_once =
        only_once(place, &format_ident!("two_kinds_open_{group_accessor}__use_beside_or_group_of_on_one"));
    quote! {
        #[doc = #doc]
        #[allow(dead_code)]
        #vis trait #informers {
            #[doc = #group_doc]
            #[must_use]
            fn #group_accessor(&self) -> #group<'_>;
        }

        impl #informers for #factory_path::SharedInformerFactory {
            fn #group_accessor(&self) -> #group<'_> {
                #group { factory: self }
            }
        }

        #on_group
        #version
        #placed
        #only_once
    }
}

/// Generates the type of an opened group.
fn on_group(model: &Model, place: &Place, names: &Names) -> TokenStream {
    let Model { factory_path, vis, .. } = model;
    let (group, version, version_accessor) = (&names.group, &names.version, &place.version_accessor);
    let doc = format!(" The informers of the group `{}`, by version.", place.group);
    let version_doc = version_doc(place);
    quote! {
        #[doc = #doc]
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
        #vis struct #group<'a> {
            factory: &'a #factory_path::SharedInformerFactory,
        }

        #[allow(dead_code)]
        impl<'a> #group<'a> {
            #[doc = #version_doc]
            #[must_use]
            #vis fn #version_accessor(&self) -> #version<'a> {
                #version { factory: self.factory }
            }

            /// Returns the factory.
            #[must_use]
            #vis fn factory(&self) -> &'a #factory_path::SharedInformerFactory {
                self.factory
            }
        }
    }
}

/// Generates the type of an opened version.
fn version(model: &Model, place: &Place, names: &Names) -> TokenStream {
    let Model { factory_path, vis, object, .. } = model;
    let (version, accessor) = (&names.version, &place.accessor);
    let doc = format!(" The informers of `{}`.", api_version(place));
    let accessor_doc = accessor_doc(model);
    quote! {
        #[doc = #doc]
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
        #vis struct #version<'a> {
            factory: &'a #factory_path::SharedInformerFactory,
        }

        #[allow(dead_code)]
        impl<'a> #version<'a> {
            #[doc = #accessor_doc]
            #[must_use]
            #vis fn #accessor(&self) -> #factory_path::SharedIndexInformer<#object> {
                #factory_path::__private::shared_informer(self.factory)
            }

            /// Returns the factory.
            #[must_use]
            #vis fn factory(&self) -> &'a #factory_path::SharedInformerFactory {
                self.factory
            }
        }
    }
}

fn beside(model: &Model, place: &Place, names: &Names, other: &Path) -> TokenStream {
    let on = associated_item(model, other, "Version");
    let opened =
        ["OPENED_AT", "OPENED_FOR"].map(|name| associated_item(model, other, name)(TokenStream::new()));
    let [informers, on_it] = on_accessor(model, place, names, &on(quote!(<'_>)));
    let [group, version] = [associated_item(model, other, "Group")(quote!(<'a>)), on(quote!(<'a>))];
    let placed = placed(model, place, opened, [group, version]);
    let (group, version, accessor) = (&place.group, &place.version, accessor_literal(place));
    let check = quote!(same_version::<__InformerBeside>(#group, #version, #accessor));
    let other = by_other(model, other, &check, &quote!(#on_it #placed));
    quote!(#informers #other)
}

fn group_of(model: &Model, place: &Place, names: &Names, other: &Path) -> TokenStream {
    let Model { vis, .. } = model;
    let (informers, version_type, accessor) = (&names.informers, &names.version, &place.version_accessor);
    let doc = format!(" Adds the informers of `{}` to those of its group.", api_version(place));
    let version_doc = version_doc(place);
    let version = version(model, place, names);
    let on = associated_item(model, other, "Group")(quote!(<'a>));
    let opened = [associated_item(model, other, "OPENED_AT")(TokenStream::new()), accessor_literal(place)];
    let placed = placed(model, place, opened, [on.clone(), quote!(#version_type<'a>)]);
    let on_it = quote! {
        impl<'a> #informers<'a> for #on {
            fn #accessor(&self) -> #version_type<'a> {
                #version_type { factory: self.factory() }
            }
        }
    };
    let (group, number) = (&place.group, &place.version);
    let check = quote!(other_version::<__InformerBeside>(#group, #number));
    let other = by_other(model, other, &check, &quote!(#on_it #placed));
    quote! {
        #[doc = #doc]
        #[allow(dead_code)]
        #vis trait #informers<'a> {
            #[doc = #version_doc]
            #[must_use]
            fn #accessor(&self) -> #version_type<'a>;
        }

        #version
        #other
    }
}

/// Returns another kind's associated type, such as `Group` or `Version`, or constant. Generated
/// code calls that kind `__InformerBeside`.
fn associated_item(model: &Model, other: &Path, name: &str) -> impl Fn(TokenStream) -> TokenStream {
    let (place, name) = (other.span(), Ident::new(name, other.span()));
    let factory_path = at(place, &model.factory_path);
    move |lifetime| {
        let lifetime = at(place, &lifetime);
        quote_spanned!(place=> <__InformerBeside as #factory_path::__private::Placed>::#name #lifetime)
    }
}

/// Generates the items that depend on another kind, and a compile-time check of its group and
/// version. The code names the kind only once, so that a wrong kind is one error.
fn by_other(model: &Model, other: &Path, check: &TokenStream, items: &TokenStream) -> TokenStream {
    let (factory_path, check) = (at(other.span(), &model.factory_path), at(other.span(), check));
    let named = quote_spanned!(other.span()=> type __InformerBeside = #other;);
    let check = quote_spanned!(other.span()=> #factory_path::__private::#check;);
    quote! {
        const _: () = {
            #named
            #items
            #check
        };
    }
}

fn built_in(model: &Model, place: &Place, names: &Names) -> TokenStream {
    let factory_path = &model.factory_path;
    let [_, version] = place.built_in_types();
    let [informers, on_it] = on_accessor(model, place, names, &quote!(#factory_path::groups::#version<'_>));
    quote!(#informers #on_it)
}

/// Generates a trait with the accessor as its only method, and implements it for `on`, the existing
/// type of a group version.
fn on_accessor(model: &Model, place: &Place, names: &Names, on: &TokenStream) -> [TokenStream; 2] {
    let Model { factory_path, vis, object, .. } = model;
    let (informers, accessor) = (&names.informers, &place.accessor);
    let doc = format!(" Adds `{accessor}()` to the informers of `{}`.", api_version(place));
    let accessor_doc = accessor_doc(model);
    let informers_trait = quote! {
        #[doc = #doc]
        #[allow(dead_code)]
        #vis trait #informers {
            #[doc = #accessor_doc]
            #[must_use]
            fn #accessor(&self) -> #factory_path::SharedIndexInformer<#object>;
        }
    };
    let implementation = quote! {
        impl #informers for #on {
            fn #accessor(&self) -> #factory_path::SharedIndexInformer<#object> {
                #factory_path::__private::shared_informer(self.factory())
            }
        }
    };
    [informers_trait, implementation]
}

/// Returns the accessor as a string literal.
fn accessor_literal(place: &Place) -> TokenStream {
    place.accessor.unraw().to_string().to_token_stream()
}

/// Generates the data that other kinds need for `beside` and `group_of`: the opened group, version
/// and accessor, and their types.
fn placed(model: &Model, place: &Place, opened: [TokenStream; 2], types: [TokenStream; 2]) -> TokenStream {
    let Model { factory_path, object, .. } = model;
    let (group_name, version_name) = (&place.group, &place.version);
    let ([at, accessor], [group, version]) = (opened, types);
    quote! {
        impl #factory_path::__private::Placed for #object {
            const GROUP: &'static str = #group_name;
            const VERSION: &'static str = #version_name;
            const OPENED_AT: &'static str = #at;
            const OPENED_FOR: &'static str = #accessor;
            type Group<'a> = #group;
            type Version<'a> = #version;
        }
    }
}

/// Generates an item whose name must be unique in its module. The name is the text of the
/// compiler's error.
fn only_once(place: &Place, name: &Ident) -> TokenStream {
    let place = place.group_accessor.span();
    let name = Ident::new(&name.to_string(), place);
    quote_spanned! {place=>
        #[doc(hidden)]
        #[allow(dead_code, non_upper_case_globals)]
        const #name: () = ();
    }
}

fn api_version(place: &Place) -> String {
    if place.group.is_empty() { place.version.clone() } else { format!("{}/{}", place.group, place.version) }
}

fn version_doc(place: &Place) -> String {
    format!(" Returns the informers of `{}`.", api_version(place))
}

fn accessor_doc(model: &Model) -> String {
    format!(" Returns the shared informer of [`{}`]s, with its indices.", model.object)
}
