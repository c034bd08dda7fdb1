//! Field selectors in the text form of the `fieldSelector` parameter:
//! `spec.nodeName=node-1,status.phase!=Failed`.
//!
//! The grammar and its messages are those of `k8s.io/apimachinery/pkg/fields`: in values, `,`, `=`
//! and `\` are escaped with `\`.

use crate::api::catalogue::Served;
use crate::kinds::ResourceKind;
use crate::storage::Object;

/// A conjunction of requirements. A selector without requirements selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    field: Field,
    value: String,
    equal: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
    /// A selectable field, as its index in the `selectable_fields` of the table's kind.
    /// [`Object::field`] returns the field's value for this index, without parsing the object.
    Selectable(usize),
    /// The path of a selectable field whose value is read from the object's JSON. The field became
    /// selectable after the resource's storage was created.
    InJson(String),
}

impl FieldSelector {
    /// Parses a selector. The error is the message for the client.
    pub(crate) fn parse(served: &Served, text: &str) -> Result<Self, String> {
        let requirements = split_at_commas(text)
            .into_iter()
            .filter(|part| !part.is_empty())
            .map(|part| parse_requirement(served, text, part))
            .collect::<Result<_, _>>()?;
        Ok(Self { requirements })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns the name and the namespace that the selector requires, if they are not empty. For
    /// `metadata.name=a`, these are `Some("a")` and `None`.
    pub(crate) fn required_key(&self) -> (Option<&str>, Option<&str>) {
        let required = |field: Field| {
            let found = self.requirements.iter().find(|it| it.equal && it.field == field);
            found.map(|requirement| requirement.value.as_str()).filter(|value| !value.is_empty())
        };
        (required(Field::Name), required(Field::Namespace))
    }

    /// Returns whether the selector requires one specific value of a selectable field.
    pub(crate) fn requires_one_value(&self, kind: &ResourceKind, field: &str) -> bool {
        let index = kind.selectable_fields.iter().position(|known| known == field);
        let wanted = index.map(Field::Selectable);
        self.requirements
            .iter()
            .any(|requirement| requirement.equal && Some(&requirement.field) == wanted.as_ref())
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.requirements.iter().all(|requirement| {
            let found;
            let value = match &requirement.field {
                Field::Name => object.name(),
                Field::Namespace => object.namespace().unwrap_or_default(),
                Field::Selectable(index) => object.field(*index),
                Field::InJson(path) => {
                    found = object.text_at(path);
                    &*found
                }
            };
            (value == requirement.value) == requirement.equal
        })
    }
}

/// Splits at commas, except at escaped commas.
fn split_at_commas(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|c| {
        let splits = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        splits
    })
    .collect()
}

fn parse_requirement(served: &Served, selector: &str, part: &str) -> Result<Requirement, String> {
    // The first operator in the text separates the field from the value.
    let operator = part.char_indices().find_map(|(at, _)| {
        let rest = &part[at..];
        let found = ["!=", "==", "="].into_iter().find(|operator| rest.starts_with(operator))?;
        Some((&part[..at], found, &rest[found.len()..]))
    });
    let Some((field, operator, value)) = operator else {
        return Err(format!("invalid selector: '{selector}'; can't understand '{part}'"));
    };
    let value = unescape(value).map_err(|why| format!("invalid field selector: {why}"))?;
    Ok(Requirement { field: parse_field(served, field)?, value, equal: operator != "!=" })
}

fn unescape(text: &str) -> Result<String, String> {
    let mut value = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => value.push(escaped),
                Some(other) => return Err(format!("invalid escape sequence: \\{other}")),
                None => return Err("invalid escape sequence: \\".to_owned()),
            },
            ',' | '=' => return Err(format!("unescaped character in value: {}", u32::from(character))),
            other => value.push(other),
        }
    }
    Ok(value)
}

fn parse_field(served: &Served, path: &str) -> Result<Field, String> {
    let kind = &served.kind;
    // Built-in kinds without selectable fields accept `metadata.namespace` even if they are
    // cluster-scoped.
    let plain = kind.is_built_in() && kind.selectable_fields.is_empty();
    match path {
        "metadata.name" => return Ok(Field::Name),
        "metadata.namespace" if kind.namespaced || plain => return Ok(Field::Namespace),
        _ => {}
    }
    if kind.selectable_fields.iter().any(|known| known == path) {
        // The table keeps the selectable fields that the resource had when the table was created.
        let index = served.table.kind.selectable_fields.iter().position(|known| known == path);
        return Ok(index.map_or_else(|| Field::InJson(path.to_owned()), Field::Selectable));
    }
    Err(if plain {
        format!("\"{path}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    } else if kind.kind == "Job" && kind.group == "batch" {
        format!("field label {path:?} not supported for Job")
    } else {
        format!("field label not supported: {path}")
    })
}
