//! Indexes for the `selectableFields` of a `CustomResourceDefinition` (KEP-4358), which a field
//! selector can use.
//!
//! Only fields of the Rust types `String`, `bool`, `i32` and `i64`, also in an `Option`, get an
//! index. A field whose Rust name is a keyword gets none.

use heck::ToSnakeCase;
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Fields, File, Item, ItemStruct, PathArguments, Type};

use crate::definition::Definition;

/// The types that index values can have, besides `String`.
const PLAIN: [&str; 3] = ["bool", "i32", "i64"];

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Index {
    name: String,
    /// The path in Rust, such as `spec.max_size` for the JSON path `.spec.maxSize`.
    path: String,
    /// The type of the values; `None` for `String`.
    value: Option<String>,
}

impl Index {
    /// Returns the index as an argument of the derive's attribute `#[informer(…)]`.
    pub(super) fn attribute(&self) -> TokenStream {
        let Self { name, path, value } = self;
        let value = value.iter().map(|value| Ident::new(value, proc_macro2::Span::call_site()));
        quote!(index(name = #name, path = #path #(, value = #value)*))
    }
}

pub(super) fn indexes(definition: &Definition, version: &str, root: &str, types: &File) -> Vec<Index> {
    let versions = definition.value["spec"]["versions"].as_array();
    let version = versions.into_iter().flatten().find(|it| it["name"] == version);
    let selectable = version.and_then(|version| version["selectableFields"].as_array());
    let paths = selectable.into_iter().flatten().filter_map(|field| field["jsonPath"].as_str());
    let mut indexes: Vec<Index> = Vec::new();
    for path in paths {
        let Some((fields, value)) = along(path, root, types) else { continue };
        let (last, all) = (fields.last().cloned().unwrap_or_default(), fields.join("_"));
        // The methods of an index are `by_image` and `by_image_index`.
        let is_free = |name: &String| {
            indexes.iter().all(|Index { name: other, .. }| {
                name != other && *name != format!("{other}_index") && *other != format!("{name}_index")
            })
        };
        // The index is named after the last field of the path. If that name is taken, it is named after
        // the whole path, if necessary with a number. There is always a number that is not taken.
        let numbered = (2..).map(|number| format!("by_{all}_{number}"));
        let mut names = [format!("by_{last}"), format!("by_{all}")].into_iter().chain(numbered);
        let Some(name) = names.find(is_free) else { continue };
        let value = Some(value).filter(|value| value != "String");
        indexes.push(Index { name, path: fields.join("."), value });
    }
    indexes
}

/// Returns the Rust fields along a JSON path, and the type of the values at its end. Returns `None`
/// if the path cannot have an index.
fn along(path: &str, root: &str, types: &File) -> Option<(Vec<String>, String)> {
    let (first, rest) = path.strip_prefix('.')?.split_once('.')?;
    let mut at = match first {
        "spec" => format!("{root}Spec"),
        "status" => format!("{root}Status"),
        _ => return None,
    };
    let mut fields = vec![first.to_owned()];
    for name in rest.split('.') {
        let parent = types.items.iter().find_map(|item| match item {
            Item::Struct(item) if item.ident == at => Some(item),
            _ => None,
        });
        let (field, of_type) = field(parent?, name)?;
        fields.push(field);
        at = of_type;
    }
    (at == "String" || PLAIN.contains(&at.as_str())).then_some((fields, at))
}

/// Returns the Rust name of a field, and its type without `Option`, by its JSON name.
fn field(item: &ItemStruct, name: &str) -> Option<(String, String)> {
    let Fields::Named(fields) = &item.fields else { return None };
    let of_json = |field: &&syn::Field| {
        renamed(field).or_else(|| field.ident.as_ref().map(ToString::to_string)).is_some_and(|it| it == name)
    };
    let field = fields.named.iter().find(of_json)?;
    let ident = field.ident.as_ref()?.to_string();
    // The index is named after the field, and a raw identifier such as `r#type` gives no valid name
    // of an index.
    let is_plain = !ident.starts_with("r#") && ident == ident.to_snake_case();
    Some((ident, type_name(&field.ty)?)).filter(|_| is_plain)
}

fn renamed(field: &syn::Field) -> Option<String> {
    let mut name = None;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        let read = attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("rename") {
                name = Some(meta.value()?.parse::<syn::LitStr>()?.value());
            } else if meta.input.peek(syn::Token![=]) {
                meta.value()?.parse::<syn::Expr>()?;
            }
            Ok(())
        });
        read.ok()?;
    }
    name
}

fn type_name(of: &Type) -> Option<String> {
    let Type::Path(of) = of else { return None };
    let last = of.path.segments.last()?;
    match &last.arguments {
        PathArguments::None => Some(last.ident.to_string()),
        PathArguments::AngleBracketed(arguments) if last.ident == "Option" => match arguments.args.first()? {
            syn::GenericArgument::Type(inner) => type_name(inner),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::definition::tests::of_kind;

    const TYPES: &str = r#"
        pub struct ThingSpec {
            pub image: String,
            #[serde(rename = "imageIndex")]
            pub image_index: String,
            #[serde(default, skip_serializing_if = "Option::is_none", rename = "maxSize")]
            pub max_size: Option<i64>,
            pub parent: Option<ThingParent>,
            pub tier: Option<ThingTier>,
            #[serde(rename = "type")]
            pub r#type: String,
            pub labels: Option<BTreeMap<String, String>>,
            #[serde(rename = "statusPhase")]
            pub status_phase: String,
            pub phase: String,
        }
        pub struct ThingParent { pub image: Option<String>, pub ready: bool }
        pub enum ThingTier { A }
        pub struct ThingStatus { pub phase: Option<String> }
    "#;

    fn found(paths: &[&str]) -> Vec<Index> {
        let fields: Vec<Value> = paths.iter().map(|path| json!({ "jsonPath": path })).collect();
        let versions = json!([
            { "name": "v1beta1", "selectableFields": [{ "jsonPath": ".spec.image" }] },
            { "name": "v1", "selectableFields": fields },
        ]);
        let definition = of_kind("Thing", json!({ "spec": { "versions": versions } }));
        indexes(&definition, "v1", "Thing", &syn::parse_str(TYPES).unwrap())
    }

    fn index(name: &str, path: &str, value: Option<&str>) -> Index {
        Index { name: name.to_owned(), path: path.to_owned(), value: value.map(str::to_owned) }
    }

    #[test]
    fn selectable_field_becomes_an_index_on_its_rust_field() {
        assert_eq!(
            found(&[".spec.image", ".spec.maxSize", ".spec.parent.ready", ".status.phase"]),
            [
                index("by_image", "spec.image", None),
                index("by_max_size", "spec.max_size", Some("i64")),
                index("by_ready", "spec.parent.ready", Some("bool")),
                index("by_phase", "status.phase", None),
            ]
        );
    }

    #[test]
    fn second_index_with_equal_last_field_has_the_whole_path() {
        assert_eq!(
            found(&[".spec.image", ".spec.parent.image"]),
            [index("by_image", "spec.image", None), index("by_spec_parent_image", "spec.parent.image", None)]
        );
    }

    #[test]
    fn index_whose_name_is_the_handle_of_another_has_the_whole_path() {
        assert_eq!(
            found(&[".spec.image", ".spec.imageIndex"]),
            [index("by_image", "spec.image", None), index("by_spec_image_index", "spec.image_index", None)]
        );
        assert_eq!(
            found(&[".spec.imageIndex", ".spec.image"]),
            [index("by_image_index", "spec.image_index", None), index("by_spec_image", "spec.image", None)]
        );
    }

    #[test]
    fn index_gets_a_number_if_the_name_of_its_path_is_taken() {
        let paths = [".spec.statusPhase", ".spec.phase", ".status.phase"];
        let names: Vec<_> = found(&paths).into_iter().map(|index| index.name).collect();
        assert_eq!(names, ["by_status_phase", "by_phase", "by_status_phase_2"]);
    }

    #[test]
    fn only_plain_values_with_plain_names_get_indexes() {
        assert_eq!(
            found(&[
                ".spec.tier",
                ".spec.type",
                ".spec.labels",
                ".spec.parent",
                ".spec.no",
                ".metadata.name"
            ]),
            []
        );
        assert_eq!(found(&["spec.image", ".spec", ".spec.labels['a.b']", ""]), []);
    }

    #[test]
    fn index_is_written_in_the_syntax_of_the_derive() {
        let of = |value| index("by_a", "spec.a", value).attribute().to_string();
        assert_eq!(of(None), "index (name = \"by_a\" , path = \"spec.a\")");
        assert_eq!(of(Some("i32")), "index (name = \"by_a\" , path = \"spec.a\" , value = i32)");
    }
}
