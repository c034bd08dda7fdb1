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

impl KubeAttribute {
    pub(crate) fn exists(attributes: &[Attribute]) -> bool {
        attributes.iter().any(is_kube)
    }

    /// Returns `None` if the attribute lacks a required name or can't be parsed. kube's own derive
    /// reports this.
    pub(crate) fn read(attributes: &[Attribute]) -> Option<Self> {
        let [mut group, mut version, mut kind, mut root, mut plural]: [Option<LitStr>; 5] =
            Default::default();
        for attribute in attributes.iter().filter(|attribute| is_kube(attribute)) {
            let read = attribute.parse_nested_meta(|meta| {
                let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
                let place = match name.as_str() {
                    "group" => &mut group,
                    "version" => &mut version,
                    "kind" => &mut kind,
                    "root" => &mut root,
                    "plural" => &mut plural,
                    _ => return skip(&meta),
                };
                *place = Some(meta.value()?.parse()?);
                Ok(())
            });
            read.ok()?;
        }
        let (group, version, kind) = (group?, version?, kind?);
        // kube has the same default if the attribute has no `singular`, which is ignored here.
        let plural = match plural {
            Some(plural) => plural.value(),
            None => pluralized(&kind.value().to_lowercase()),
        };
        Some(Self { group, version, root: root.unwrap_or_else(|| kind.clone()), kind, plural })
    }
}

fn is_kube(attribute: &Attribute) -> bool {
    attribute.path().is_ident("kube")
}

fn skip(meta: &ParseNestedMeta<'_>) -> Result<()> {
    if meta.input.peek(Token![=]) {
        meta.value()?.parse::<Expr>()?;
    } else if meta.input.peek(syn::token::Paren) {
        meta.input.parse::<proc_macro2::Group>()?;
    }
    Ok(())
}
