//! Generates the trait that has two methods for each index: a lookup, and one that returns the index
//! handle.
//!
//! A generated name must not change the meaning of the user's expression (`with = …`). So the
//! blocks around this expression declare and import no items, and generated local variables have
//! the hygiene of `Span::mixed_site`.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::Expr;

use super::at;
use crate::index::{Index, Segment, Values};
use crate::model::Model;

pub(super) fn indexes(model: &Model) -> TokenStream {
    if model.indexes.is_empty() {
        return TokenStream::new();
    }
    let Model { object, factory_path, vis, .. } = model;
    let name = format_ident!("{object}Indices");
    let doc = format!(
        " The indexes of informers for [`{object}`]s. The first use of a missing index adds it to the informer."
    );
    let signatures = model.indexes.iter().map(|index| signatures(model, index));
    let functions = model.indexes.iter().map(|index| functions(model, index));
    quote! {
        #[doc = #doc]
        #[allow(dead_code)]
        #vis trait #name {
            #(#signatures)*
        }

        impl #name for #factory_path::SharedIndexInformer<#object> {
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

/// Returns the type of a lookup method's argument. If the index has no attribute `value`, the type
/// is `&str` and not `&String`, so that callers need not allocate.
fn lookup_type(index: &Index) -> TokenStream {
    match &index.value {
        Some(value) => quote!(&#value),
        None => quote!(&str),
    }
}

fn signatures(model: &Model, index: &Index) -> TokenStream {
    let Model { object, factory_path, .. } = model;
    let Index { name, handle, description, .. } = index;
    let (value, lookup_type) = (value(index), lookup_type(index));
    let doc = format!(
        " Returns the objects that have this value in the index `{name}`, which contains {description}."
    );
    let handle_doc = format!(
        " Returns the handle of the index `{name}`, for repeated queries and for other kinds of queries."
    );
    let conflict_doc = format!(
        " If the store has an index `{name}` of another type, this index is registered under a longer name, and an error is"
    );
    quote! {
        #[doc = #doc]
        #[must_use]
        fn #name(&self, value: #lookup_type) -> #factory_path::Objects<#object>;

        #[doc = #handle_doc]
        ///
        #[doc = #conflict_doc]
        /// logged.
        fn #handle(&self) -> #factory_path::Index<#object, #value>;
    }
}

fn functions(model: &Model, index: &Index) -> TokenStream {
    let Model { object, factory_path, .. } = model;
    let Index { name, handle, .. } = index;
    let (value, lookup_type, text) = (value(index), lookup_type(index), name.to_string());
    let indexes = format_ident!("{object}Indices");
    let values = match &index.values {
        Values::Path(path) => along(model, path, index),
        Values::With(function) => returned(model, function, index),
    };
    quote_spanned! {Span::mixed_site()=>
        fn #name(&self, value: #lookup_type) -> #factory_path::Objects<#object> {
            #indexes::#handle(self).get(value)
        }

        #[allow(clippy::all, clippy::pedantic)]
        fn #handle(&self) -> #factory_path::Index<#object, #value> {
            #factory_path::__private::index(self, #text, |object| #values)
        }
    }
}

/// Generates a call of the user's function, and the conversion of its result into index values.
fn returned(model: &Model, function: &Expr, index: &Index) -> TokenStream {
    let (here, factory_path) = (hygienic_span(index), at(index.span, &model.factory_path));
    // The import follows the call, because it could change the meaning of the user's code.
    quote_spanned! {here=> {
        let returned = #factory_path::__private::Returned(#factory_path::__private::call(object, #function));
        {
            #[allow(unused_imports)]
            use #factory_path::__private::NeverFails as _;
            returned.into_values()
        }
    }}
}

/// Returns a span that shows compiler errors at the user's attribute, and keeps local variables
/// invisible to the user's code.
fn hygienic_span(index: &Index) -> Span {
    Span::mixed_site().located_at(index.span)
}

/// Generates an expression that returns all values at a path of the object, such as `spec.image`.
fn along(model: &Model, path: &[Segment], index: &Index) -> TokenStream {
    let (here, factory_path, value) =
        (hygienic_span(index), at(index.span, &model.factory_path), value(index));
    // A field can be two nested containers, such as `Option<Vec<_>>`, so each step iterates twice.
    let steps = path.iter().map(|Segment { field, key }| match key {
        Some(key) => quote_spanned! {here=>
            .flat_map(|at| (&at.#field).informer_entry(#key))
            .flat_map(|at| at.informer_each())
        },
        None => quote_spanned! {here=>
            .flat_map(|at| (&at.#field).informer_each())
            .flat_map(|at| at.informer_each())
        },
    });
    quote_spanned! {here=> {
        #[allow(unused_imports)]
        use #factory_path::__private::{IndexValues as _, HoldsEntries as _, AsSingleValue as _};
        ::core::result::Result::Ok(
            ::core::iter::once(object)
                #(#steps)*
                .map(|at| #factory_path::__private::ValueAt::<#value>::value_at(at))
                .collect(),
        )
    }}
}
