//! From the model to code. Nothing is decided here; every path goes through the front door, so that its user needs no
//! other crate.

mod accessors;
mod indices;
mod informer;
mod resource;
#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;

use crate::model::Model;

/// The code for an item; empty if kube's own derive reports what is wrong with it.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Some(model) = Model::read(input)? else { return Ok(TokenStream::new()) };
    let parts = [
        resource::resource(&model),
        accessors::accessors(&model),
        indices::indices(&model),
        informer::informer(&model),
    ];
    Ok(quote!(#(#parts)*))
}
