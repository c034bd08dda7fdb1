//! Generates code from a checked [`Model`]. All generated paths to other crates start at
//! informer-factory, `std` or `core`, so that users need no other crate.

mod accessors;
mod indexes;
mod informer;
mod resource;
#[cfg(test)]
mod tests;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{DeriveInput, Path};

use crate::model::Model;

/// Returns the code for a type with `#[derive(Informer)]`; no code if `#[kube(...)]` can't be read,
/// which kube's own derive reports.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Some(model) = Model::read(input)? else { return Ok(TokenStream::new()) };
    let parts = [
        resource::resource(&model),
        accessors::accessors(&model),
        indexes::indexes(&model),
        informer::informer(&model),
    ];
    Ok(quote!(#(#parts)*))
}

/// Returns the path with `place` as the span of its tokens, so that compiler errors point there.
fn at(place: Span, path: &Path) -> TokenStream {
    let placed = path.to_token_stream().into_iter().map(|mut token| {
        token.set_span(place);
        token
    });
    placed.collect()
}
