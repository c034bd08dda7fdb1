//! Implements `kube::Resource` for a slim view, a type with only some fields of a resource.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use crate::model::{Model, ViewResource};

pub(super) fn resource(model: &Model) -> TokenStream {
    let Some(ViewResource { group, version, kind, plural, namespaced, metadata }) = &model.view else {
        return TokenStream::new();
    };
    let Model { object, factory_path, .. } = model;
    let scope = if *namespaced { quote!(NamespaceResourceScope) } else { quote!(ClusterResourceScope) };
    let texts = [("kind", kind), ("group", group), ("version", version), ("plural", plural)];
    let functions = texts.map(|(name, text)| {
        let name = quote::format_ident!("{name}");
        quote! {
            fn #name(_: &()) -> ::std::borrow::Cow<'_, str> {
                ::std::borrow::Cow::Borrowed(#text)
            }
        }
    });
    // With this span, a wrong type is reported at the field.
    let meta = quote_spanned!(*metadata=> { &self.metadata });
    let meta_mut = quote_spanned!(*metadata=> { &mut self.metadata });
    quote! {
        impl #factory_path::__private::Resource for #object {
            type DynamicType = ();
            type Scope = #factory_path::__private::#scope;

            #(#functions)*

            fn meta(&self) -> &#factory_path::__private::ObjectMeta #meta

            fn meta_mut(&mut self) -> &mut #factory_path::__private::ObjectMeta #meta_mut
        }
    }
}
