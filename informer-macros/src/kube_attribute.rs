//! Reads the resource's names from `#[kube(...)]`, the attribute of kube's
//! `#[derive(CustomResource)]`.
//!
//! This module reports no errors in the attribute, because kube's own derive reports them.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Expr, LitStr, Result, Token};

use crate::names::pluralized;

pub(crate) struct KubeAttribute {
    pub(crate) group: LitStr,
    pub(crate) version: LitStr,
    pub(crate) kind: LitStr,
    /// The name of the type that kube generates; the kind by default.
    pub(crate) root: LitStr,
    pub(crate) plural: String,
}

#[derive(Default)]
struct Read {
    group: Option<LitStr>,
    version: Option<LitStr>,
    kind: Option<LitStr>,
    root: Option<LitStr>,
    plural: Option<LitStr>,
}

impl KubeAttribute {
    pub(crate) fn exists(attributes: &[Attribute]) -> bool {
        attributes.iter().any(is_kube)
    }

    /// Returns `None` if the attribute has an error, which kube's own derive reports.
    pub(crate) fn read(attributes: &[Attribute]) -> Option<Self> {
        let mut read = Read::default();
        for attribute in attributes.iter().filter(|attribute| is_kube(attribute)) {
            attribute.parse_nested_meta(|meta| read.read_one(&meta)).ok()?;
        }
        let (group, version, kind) = (read.group?, read.version?, read.kind?);
        // kube has the same default.
        let plural = match read.plural {
            Some(plural) => plural.value(),
            None => pluralized(&kind.value().to_lowercase()),
        };
        Some(Self { group, version, root: read.root.unwrap_or_else(|| kind.clone()), kind, plural })
    }
}

fn is_kube(attribute: &Attribute) -> bool {
    attribute.path().is_ident("kube")
}

impl Read {
    fn read_one(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        let place = match name.as_str() {
            "group" => &mut self.group,
            "version" => &mut self.version,
            "kind" => &mut self.kind,
            "root" => &mut self.root,
            "plural" => &mut self.plural,
            _ => return skip(meta),
        };
        *place = Some(meta.value()?.parse()?);
        Ok(())
    }
}

fn skip(meta: &ParseNestedMeta<'_>) -> Result<()> {
    if meta.input.peek(Token![=]) {
        meta.value()?.parse::<Expr>()?;
    } else if meta.input.peek(syn::token::Paren) {
        let content;
        syn::parenthesized!(content in meta.input);
        content.parse::<proc_macro2::TokenStream>()?;
    }
    Ok(())
}
