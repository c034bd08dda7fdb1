//! Parses `#[informer(...)]`. Every value keeps its span, so that errors point at it.
//! `model.rs` interprets the values.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, LitStr, Path, Result, Token, Type};

use crate::mistake::nearest;

/// The names that `#[informer(...)]` accepts.
const NAMES: [&str; 13] = [
    "accessor",
    "cluster",
    "crate",
    "default_resync",
    "group",
    "index",
    "kind",
    "namespaced",
    "no_accessor",
    "own_resource",
    "plural",
    "prune",
    "version",
];

/// The names that `index(...)` accepts.
const INDEX_NAMES: [&str; 4] = ["name", "path", "value", "with"];

/// The values of all `#[informer(...)]` attributes of one type; absent attributes are `None` or
/// empty.
#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) group: Option<LitStr>,
    pub(crate) version: Option<LitStr>,
    pub(crate) kind: Option<LitStr>,
    pub(crate) plural: Option<LitStr>,
    pub(crate) accessor: Option<LitStr>,
    pub(crate) default_resync: Option<LitStr>,
    pub(crate) namespaced: Option<Span>,
    pub(crate) cluster: Option<Span>,
    pub(crate) own_resource: Option<Span>,
    pub(crate) no_accessor: Option<Span>,
    pub(crate) factory_path: Option<Path>,
    pub(crate) prune: Vec<LitStr>,
    pub(crate) indexes: Vec<IndexAttribute>,
}

pub(crate) struct IndexAttribute {
    /// The span of the word `index`.
    pub(crate) span: Span,
    pub(crate) name: Option<LitStr>,
    pub(crate) path: Option<LitStr>,
    pub(crate) with: Option<Expr>,
    pub(crate) value: Option<Type>,
}

impl Attributes {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut read = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("informer")) {
            attribute.parse_nested_meta(|meta| read.read_one(&meta))?;
        }
        Ok(read)
    }

    fn read_one(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        match name.as_str() {
            "group" => once(&mut self.group, meta, text(meta, "example.com")?),
            "version" => once(&mut self.version, meta, text(meta, "v1")?),
            "kind" => once(&mut self.kind, meta, text(meta, "CronTab")?),
            "plural" => once(&mut self.plural, meta, text(meta, "crontabs")?),
            "accessor" => once(&mut self.accessor, meta, text(meta, "cron_tabs")?),
            "default_resync" => once(&mut self.default_resync, meta, text(meta, "10m")?),
            "namespaced" => once(&mut self.namespaced, meta, flag(meta)?),
            "cluster" => once(&mut self.cluster, meta, flag(meta)?),
            "own_resource" => once(&mut self.own_resource, meta, flag(meta)?),
            "no_accessor" => once(&mut self.no_accessor, meta, flag(meta)?),
            "crate" => once(&mut self.factory_path, meta, unquoted(meta, "my_crate::informer_factory")?),
            "prune" => self.read_prune(meta),
            "index" => {
                self.indexes.push(IndexAttribute::read(meta)?);
                Ok(())
            }
            _ => Err(unknown(meta, "#[informer(...)]", &NAMES)),
        }
    }

    fn read_prune(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        const FORM: &str = r#"expected paths, as in `prune("spec.template", "status")`"#;
        if !meta.input.peek(syn::token::Paren) {
            return Err(meta.error(FORM));
        }
        let content;
        syn::parenthesized!(content in meta.input);
        let paths = content
            .parse_terminated(<LitStr as Parse>::parse, Token![,])
            .map_err(|error| Error::new(error.span(), FORM))?;
        if paths.is_empty() {
            return Err(meta.error(format!("`prune` is empty; {FORM}")));
        }
        self.prune.extend(paths);
        Ok(())
    }
}

impl IndexAttribute {
    fn read(meta: &ParseNestedMeta<'_>) -> Result<Self> {
        if !meta.input.peek(syn::token::Paren) {
            return Err(
                meta.error(r#"expected arguments, as in `index(name = "by_image", path = "spec.image")`"#)
            );
        }
        let span = meta.path.span();
        let mut index = Self { span, name: None, path: None, with: None, value: None };
        meta.parse_nested_meta(|meta| {
            let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            match name.as_str() {
                "name" => once(&mut index.name, &meta, text(&meta, "by_image")?),
                "path" => once(&mut index.path, &meta, text(&meta, "spec.image")?),
                "with" => once(&mut index.with, &meta, unquoted(&meta, "images_of")?),
                "value" => once(&mut index.value, &meta, unquoted(&meta, "i32")?),
                _ => Err(unknown(&meta, "index(...)", &INDEX_NAMES)),
            }
        })?;
        Ok(index)
    }
}

/// Sets `place` to the value of an attribute. Fails if `place` already has a value, because an
/// attribute must not be set twice.
fn once<T>(place: &mut Option<T>, meta: &ParseNestedMeta<'_>, value: T) -> Result<()> {
    if place.is_some() {
        let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        return Err(meta.error(format!("`{name}` is set twice; remove one of the two")));
    }
    *place = Some(value);
    Ok(())
}

/// Reads the value after `=` as text in quotes: `"by_image"` in `name = "by_image"`. An error
/// message shows `example` as a valid value.
fn text(meta: &ParseNestedMeta<'_>, example: &str) -> Result<LitStr> {
    value(meta, &format!("expected text in quotes, as in `{} = \"{example}\"`", name_of(&meta.path)))
}

/// Reads the value after `=` as Rust code: `images_of` in `with = images_of`. The error message for
/// a value in quotes shows the value without them. Other error messages show `example` as a valid
/// value.
fn unquoted<T: Parse>(meta: &ParseNestedMeta<'_>, example: &str) -> Result<T> {
    let name = name_of(&meta.path);
    if meta.input.peek(Token![=]) && meta.input.peek2(LitStr) {
        let quoted: LitStr = meta.value()?.parse()?;
        let message = format!("write the value without quotes: `{name} = {}`", quoted.value());
        return Err(Error::new(quoted.span(), message));
    }
    value(meta, &format!("expected a value without quotes, as in `{name} = {example}`"))
}

/// Reads the value after `=`. If the value is missing or malformed, the error has this message.
fn value<T: Parse>(meta: &ParseNestedMeta<'_>, message: &str) -> Result<T> {
    if !meta.input.peek(Token![=]) {
        return Err(meta.error(message));
    }
    meta.value()?.parse().map_err(|error: Error| Error::new(error.span(), message))
}

/// Returns the span of an attribute without a value.
fn flag(meta: &ParseNestedMeta<'_>) -> Result<Span> {
    if meta.input.is_empty() || meta.input.peek(Token![,]) {
        return Ok(meta.path.span());
    }
    Err(meta.error(format!("`{}` takes no value; remove the value", name_of(&meta.path))))
}

fn unknown(meta: &ParseNestedMeta<'_>, place: &str, names: &[&str]) -> Error {
    let name = name_of(&meta.path);
    let remedy = match nearest(&name, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("expected one of: {}", names.join(", ")),
    };
    meta.error(format!("unknown attribute `{name}` in {place}; {remedy}"))
}

fn name_of(path: &Path) -> String {
    let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    names.join("::")
}
