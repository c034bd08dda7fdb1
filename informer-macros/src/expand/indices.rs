//! The trait with a method and a handle per index.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use super::at;
use crate::index::{Index, Segment, Values};
use crate::model::Model;

pub(super) fn indices(model: &Model) -> TokenStream {
    if model.indices.is_empty() {
        return TokenStream::new();
    }
    let Model { object, door, vis, .. } = model;
    let name = quote::format_ident!("{object}Indices");
    let doc = format!(
        " The indices of informers for [`{object}`]s. Where one is missing yet, its first use adds it."
    );
    let signatures = model.indices.iter().map(|index| signatures(model, index));
    let functions = model.indices.iter().map(|index| functions(model, index));
    quote! {
        #[doc = #doc]
        #[allow(dead_code)]
        #vis trait #name {
            #(#signatures)*
        }

        impl #name for #door::SharedIndexInformer<#object> {
            #(#functions)*
        }
    }
}

fn value(index: &Index) -> TokenStream {
    match &index.value {
        Some(value) => quote!(#value),
        None => quote!(::std::string::String),
    }
}

/// What is looked up: a text for a `String`, so that nobody has to make one.
fn sought(index: &Index) -> TokenStream {
    match &index.value {
        Some(value) => quote!(&#value),
        None => quote!(&str),
    }
}

fn signatures(model: &Model, index: &Index) -> TokenStream {
    let Model { object, door, .. } = model;
    let Index { name, handle, description, .. } = index;
    let (value, sought) = (value(index), sought(index));
    let doc = format!(" Returns the objects that have this value in the index `{name}`: {description}.");
    let handle_doc =
        format!(" Returns the handle of the index `{name}`, for many queries and for other kinds of them.");
    let panics = format!(" If an index of other values was added under the name `{name}`.");
    quote! {
        #[doc = #doc]
        ///
        /// # Panics
        #[doc = #panics]
        #[must_use]
        fn #name(&self, value: #sought) -> #door::Objects<#object>;

        #[doc = #handle_doc]
        ///
        /// # Panics
        #[doc = #panics]
        fn #handle(&self) -> #door::Index<#object, #value>;
    }
}

fn functions(model: &Model, index: &Index) -> TokenStream {
    let Model { object, door, .. } = model;
    let Index { name, handle, .. } = index;
    let (value, sought, text) = (value(index), sought(index), name.to_string());
    let values = match &index.values {
        Values::Path(path) => along(model, path, index),
        Values::With(function) => {
            let door = at(index.span, door);
            quote_spanned! {index.span=>
                #door::__private::Returned(#door::__private::call(object, #function)).into_values()
            }
        }
    };
    quote! {
        fn #name(&self, value: #sought) -> #door::Objects<#object> {
            self.#handle().get(value)
        }

        fn #handle(&self) -> #door::Index<#object, #value> {
            #[allow(clippy::all, clippy::pedantic)]
            fn values(
                object: &#object,
            ) -> ::core::result::Result<::std::vec::Vec<#value>, ::std::string::String> {
                #[allow(unused_imports)]
                use #door::__private::{Holds as _, HoldsEntries as _, HoldsItself as _, NeverFails as _};
                #values
            }
            #door::__private::index(self, #text, values)
        }
    }
}

/// Walks from the object along a path. Each step looks twice into what may hold several values, because fields are
/// often an `Option<Vec<_>>`.
fn along(model: &Model, path: &[Segment], index: &Index) -> TokenStream {
    let (door, value) = (at(index.span, &model.door), value(index));
    let steps = path.iter().map(|Segment { field, key }| match key {
        Some(key) => quote_spanned! {index.span=>
            .flat_map(|at| (&at.#field).informer_entry(#key))
            .flat_map(|at| at.informer_each())
        },
        None => quote_spanned! {index.span=>
            .flat_map(|at| (&at.#field).informer_each())
            .flat_map(|at| at.informer_each())
        },
    });
    quote_spanned! {index.span=>
        ::core::result::Result::Ok(
            ::core::iter::once(object)
                #(#steps)*
                .map(|at| #door::__private::ValueAt::<#value>::value_at(at))
                .collect(),
        )
    }
}
