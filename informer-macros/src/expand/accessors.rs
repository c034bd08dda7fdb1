//! The way from the factory to the informer: `factory.stable().v1().cron_tabs()`, as far as this kind brings it.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::Path;
use syn::spanned::Spanned;

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

/// What is made is called after the kind, so that nothing has the same name twice.
struct Names {
    informers: Ident,
    group: Ident,
    version: Ident,
}

impl Names {
    fn new(object: &Ident) -> Self {
        let [informers, group, version] =
            ["Informers", "Group", "Version"].map(|end| format_ident!("{object}{end}"));
        Self { informers, group, version }
    }
}

fn opens(model: &Model, place: &Place, names: &Names) -> TokenStream {
    let Model { door, vis, .. } = model;
    let Names { informers, group, .. } = names;
    let Place { group_accessor, .. } = place;
    let doc = format!(" Brings `factory.{group_accessor}()`, the informers of the group `{}`.", place.group);
    let group_doc = format!(" Returns the informers of the group `{}`.", place.group);
    let on_group = on_group(model, place, names);
    let version = version(model, place, names);
    let placed = placed(model, place, &quote!(#group<'a>), &quote!());
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

        impl #informers for #door::SharedInformerFactory {
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

/// The type of an opened group.
fn on_group(model: &Model, place: &Place, names: &Names) -> TokenStream {
    let Model { door, vis, .. } = model;
    let (group, version, version_accessor) = (&names.group, &names.version, &place.version_accessor);
    let doc = format!(" The informers of the group `{}`, by version.", place.group);
    let version_doc = version_doc(place);
    quote! {
        #[doc = #doc]
        #[derive(Clone, Copy, Debug)]
        #vis struct #group<'a> {
            factory: &'a #door::SharedInformerFactory,
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
            #vis fn factory(&self) -> &'a #door::SharedInformerFactory {
                self.factory
            }
        }
    }
}

/// The type of an opened version.
fn version(model: &Model, place: &Place, names: &Names) -> TokenStream {
    let Model { door, vis, object, .. } = model;
    let (version, accessor) = (&names.version, &place.accessor);
    let doc = format!(" The informers of `{}`.", api_version(place));
    let accessor_doc = accessor_doc(model);
    quote! {
        #[doc = #doc]
        #[derive(Clone, Copy, Debug)]
        #vis struct #version<'a> {
            factory: &'a #door::SharedInformerFactory,
        }

        #[allow(dead_code)]
        impl<'a> #version<'a> {
            #[doc = #accessor_doc]
            #[must_use]
            #vis fn #accessor(&self) -> #door::SharedIndexInformer<#object> {
                #door::__private::shared_informer(self.factory)
            }

            /// Returns the factory.
            #[must_use]
            #vis fn factory(&self) -> &'a #door::SharedInformerFactory {
                self.factory
            }
        }
    }
}

fn beside(model: &Model, place: &Place, names: &Names, other: &Path) -> TokenStream {
    let door = &model.door;
    let on = quote_spanned!(other.span()=> <#other as #door::__private::Placed>::Version<'_>);
    let on_accessor = on_accessor(model, place, names, &on);
    let placed = placed(
        model,
        place,
        &quote_spanned!(other.span()=> <#other as #door::__private::Placed>::Group<'a>),
        &quote_spanned!(other.span()=> <#other as #door::__private::Placed>::Version<'a>),
    );
    let check = same_place(model, place, other, "same_version");
    quote!(#on_accessor #placed #check)
}

fn group_of(model: &Model, place: &Place, names: &Names, other: &Path) -> TokenStream {
    let Model { door, vis, .. } = model;
    let (informers, version_type, accessor) = (&names.informers, &names.version, &place.version_accessor);
    let doc = format!(" Brings the informers of `{}` to those of its group.", api_version(place));
    let version_doc = version_doc(place);
    let version = version(model, place, names);
    let on = quote_spanned!(other.span()=> <#other as #door::__private::Placed>::Group<'a>);
    let placed = placed(model, place, &on, &quote!());
    let check = same_place(model, place, other, "other_version");
    quote! {
        #[doc = #doc]
        #[allow(dead_code)]
        #vis trait #informers<'a> {
            #[doc = #version_doc]
            #[must_use]
            fn #accessor(&self) -> #version_type<'a>;
        }

        impl<'a> #informers<'a> for #on {
            fn #accessor(&self) -> #version_type<'a> {
                #version_type { factory: self.factory() }
            }
        }

        #version
        #placed
        #check
    }
}

fn built_in(model: &Model, place: &Place, names: &Names) -> TokenStream {
    let door = &model.door;
    let [_, version] = place.built_in_types();
    on_accessor(model, place, names, &quote!(#door::groups::#version<'_>))
}

/// The trait with nothing but the accessor, on the type of a version that exists.
fn on_accessor(model: &Model, place: &Place, names: &Names, on: &TokenStream) -> TokenStream {
    let Model { door, vis, object, .. } = model;
    let (informers, accessor) = (&names.informers, &place.accessor);
    let doc = format!(" Brings `{accessor}()` to the informers of `{}`.", api_version(place));
    let accessor_doc = accessor_doc(model);
    quote! {
        #[doc = #doc]
        #[allow(dead_code)]
        #vis trait #informers {
            #[doc = #accessor_doc]
            #[must_use]
            fn #accessor(&self) -> #door::SharedIndexInformer<#object>;
        }

        impl #informers for #on {
            fn #accessor(&self) -> #door::SharedIndexInformer<#object> {
                #door::__private::shared_informer(self.factory())
            }
        }
    }
}

/// What other kinds need, to stand beside this one.
fn placed(model: &Model, place: &Place, group: &TokenStream, version: &TokenStream) -> TokenStream {
    let Model { door, object, .. } = model;
    let own = Names::new(object).version;
    let version = if version.is_empty() { quote!(#own<'a>) } else { version.clone() };
    let (group_name, version_name) = (&place.group, &place.version);
    quote! {
        impl #door::__private::Placed for #object {
            const GROUP: &'static str = #group_name;
            const VERSION: &'static str = #version_name;
            type Group<'a> = #group;
            type Version<'a> = #version;
        }
    }
}

/// The compiler's check that `beside` and `group_of` name a kind of the right group and version.
fn same_place(model: &Model, place: &Place, other: &Path, check: &str) -> TokenStream {
    let door = &model.door;
    let (group, version, check) = (&place.group, &place.version, format_ident!("{check}"));
    quote_spanned! {other.span()=>
        const _: () = #door::__private::#check::<#other>(#group, #version);
    }
}

/// A name that can be there but once in a module; what the compiler says when it is there twice is in the name.
fn only_once(place: &Place, name: &Ident) -> TokenStream {
    let name = Ident::new(&name.to_string(), place.group_accessor.span());
    quote! {
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
