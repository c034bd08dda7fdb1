//! `index(...)`: index values from a path of fields or from a function.
//!
//! Note: a path names Rust fields (`spec.node_name`), and `prune(...)` names JSON fields
//! (`spec.nodeName`), because pruned fields need not exist in the Rust type.

use proc_macro2::{Ident, Span};
use syn::{Error, Expr, LitStr, Result, Type};

use crate::attributes::IndexAttribute;
use crate::built_in::INFORMER_METHODS;
use crate::mistake::Mistakes;
use crate::names::ident;

/// The store's built-in indexes, whose names the derive's indexes cannot have.
const STORE_INDICES: [&str; 2] = ["namespace", "labels"];

/// A checked `index(...)` attribute.
pub(crate) struct Index {
    /// The name of the lookup method, and of the index in the store.
    pub(crate) name: Ident,
    /// The name of the method that returns the index handle.
    pub(crate) handle: Ident,
    pub(crate) values: Values,
    /// The span of the `path` or `with` value.
    pub(crate) span: Span,
    /// The type of the index values; `None` means `String`.
    pub(crate) value: Option<Type>,
    /// The description of the values in the generated documentation.
    pub(crate) description: String,
}

/// The source of the values: a path of fields, or a function.
pub(crate) enum Values {
    Path(Vec<Segment>),
    With(Expr),
}

/// One step of the path of an index, such as `image` in `spec.containers.image`.
pub(crate) struct Segment {
    pub(crate) field: Ident,
    /// The key of one entry of a map, as in `labels["app"]`.
    pub(crate) key: Option<String>,
}

/// Adds an error to `mistakes` for each invalid attribute, and returns the valid ones.
pub(crate) fn indexes(attributes: Vec<IndexAttribute>, mistakes: &mut Mistakes) -> Vec<Index> {
    let mut indexes: Vec<Index> = Vec::new();
    for attribute in attributes {
        let Some(index) = mistakes.take(Index::new(attribute)) else { continue };
        let clashes = |other: &Index| {
            let theirs = [&other.name, &other.handle];
            theirs.contains(&&index.name) || theirs.contains(&&index.handle)
        };
        if indexes.iter().any(clashes) {
            let message = format!(
                "`{}` or `{}` is already a method of another index; choose another name",
                index.name, index.handle
            );
            mistakes.add(Error::new(index.name.span(), message));
        } else {
            indexes.push(index);
        }
    }
    indexes
}

impl Index {
    fn new(attribute: IndexAttribute) -> Result<Self> {
        let IndexAttribute { span, name, path, with, value } = attribute;
        let Some(name) = name else {
            return Err(Error::new(
                span,
                "the index has no name; add a name for its method, such as `name = \"by_image\"`",
            ));
        };
        let name = method_name(&name)?;
        let handle = Ident::new(&handle_name(&name.to_string()), name.span());
        let (values, span, description) = match (path, with) {
            (Some(path), None) => {
                let description = format!("the values at `{}`", path.value());
                (Values::Path(segments(&path)?), path.span(), description)
            }
            (None, Some(with)) => {
                let span = syn::spanned::Spanned::span(&with);
                (Values::With(with), span, "the values that a function returns".to_owned())
            }
            (None, None) => {
                let message = "the index has no source of values; \
                               add `path = \"spec.image\"` or `with = function`";
                return Err(Error::new(span, message));
            }
            (Some(path), Some(_)) => {
                let message = "`path` conflicts with `with`; remove one of them";
                return Err(Error::new(path.span(), message));
            }
        };
        Ok(Self { name, handle, values, span, value, description })
    }
}

fn handle_name(name: &str) -> String {
    format!("{name}_index")
}

fn method_name(name: &LitStr) -> Result<Ident> {
    let text = name.value();
    if STORE_INDICES.contains(&text.as_str()) {
        return Err(Error::new(
            name.span(),
            format!("`{text}` is a built-in index of the store; choose another name"),
        ));
    }
    for method in [text.clone(), handle_name(&text)] {
        if INFORMER_METHODS.contains(&method.as_str()) {
            let message = format!(
                "informers have a method `{method}` already; choose another name, such as `by_{text}`"
            );
            return Err(Error::new(name.span(), message));
        }
    }
    let plain =
        text.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    ident(&text, name.span()).filter(|_| plain).ok_or_else(|| {
        Error::new(
            name.span(),
            format!("\"{text}\" is not a valid method name; choose an index name such as `by_image`"),
        )
    })
}

/// Splits a path such as `spec.labels["app"].name` into its segments.
fn segments(path: &LitStr) -> Result<Vec<Segment>> {
    const FORM: &str = "write field names joined by dots, as in `spec.image`, \
                        or `metadata.labels[\"app\"]` for an entry of a map";
    let text = path.value();
    let wrong = |why: &str| Error::new(path.span(), format!("\"{text}\" is not a valid index path: {why}"));
    let mut segments = Vec::new();
    let mut rest = text.as_str();
    loop {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, mut after) = rest.split_at(end);
        if name.contains(['(', ')', '*']) {
            return Err(wrong("a path can only name fields; use `with = function` for other expressions"));
        }
        let field = field(name, path.span()).ok_or_else(|| wrong(FORM))?;
        let mut key = None;
        if let Some(bracketed) = after.strip_prefix('[') {
            let Some((name, remainder)) = bracketed.strip_prefix('"').and_then(|key| key.split_once("\"]"))
            else {
                return Err(wrong(
                    "a path covers all items of a list; remove the brackets, or name a map's entry as in `[\"app\"]`",
                ));
            };
            key = Some(name.to_owned());
            after = remainder;
        }
        segments.push(Segment { field, key });
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(segments),
            None => return Err(wrong(FORM)),
        }
    }
}

/// Parses a field name, as a raw identifier if the name is a keyword.
fn field(name: &str, span: Span) -> Option<Ident> {
    let can_be_raw = !["self", "Self", "super", "crate", "_"].contains(&name);
    ident(name, span).or_else(|| if can_be_raw { ident(&format!("r#{name}"), span) } else { None })
}
