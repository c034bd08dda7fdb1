//! Generates the accessors from the factory to the informer, as in
//! `factory.stable().v1().cron_tabs()`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};

use crate::model::Model;
use crate::place::{GroupAccessor, Place};

pub(super) fn accessors(model: &Model) -> TokenStream {
    match &model.place {
        Some(place) => match &place.group {
            GroupAccessor::New(group) => in_new_group(model, place, group),
            GroupAccessor::BuiltIn(version) => in_built_in_group(model, place, version),
        },
        None => TokenStream::new(),
    }
}

fn in_new_group(model: &Model, place: &Place, group: &Ident) -> TokenStream {
    let Model { factory_path, vis, object, .. } = model;
    let Place { version, accessor, .. } = place;
    let informers = format_ident!("{object}Informers");
    let (group_type, version_type) = (format_ident!("{informers}Group"), format_ident!("{informers}Version"));
    // The compiler rejects a second constant of this name in a module, and the name in its error
    // message explains the mistake.
    let only_once =
        format_ident!("two_kinds_add_{group}__list_them_in_informer_factory_group", span = group.span());
    let only_once = quote_spanned! {group.span()=>
        #[doc(hidden)]
        #[allow(dead_code, non_upper_case_globals)]
        const #only_once: () = ();
    };
    quote! {
        #factory_path::group! {
            #vis trait #informers {
                fn #group() -> #group_type {
                    fn #version() -> #version_type { #accessor: #object }
                }
            }
        }

        #only_once
    }
}

fn in_built_in_group(model: &Model, place: &Place, version: &Ident) -> TokenStream {
    let Model { factory_path, vis, object, .. } = model;
    let accessor = &place.accessor;
    let informers = format_ident!("{object}Informers");
    let doc = format!(" Adds `{accessor}()` to the informers of `{}`.", place.api_version);
    let accessor_doc = format!(" Returns the shared informer of [`{object}`]s, with the derive's indexes.");
    quote! {
        #[doc = #doc]
        #[allow(dead_code)]
        #vis trait #informers {
            #[doc = #accessor_doc]
            #[must_use]
            fn #accessor(&self) -> #factory_path::SharedIndexInformer<#object>;
        }

        impl #informers for #factory_path::groups::#version<'_> {
            fn #accessor(&self) -> #factory_path::SharedIndexInformer<#object> {
                #factory_path::__private::shared_informer(self.factory())
            }
        }
    }
}
