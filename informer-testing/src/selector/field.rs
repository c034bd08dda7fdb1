//! Field selectors in the text form of the `fieldSelector` parameter: `spec.nodeName=node-1,status.phase!=Failed`.

use crate::object::Object;
use crate::resource::ResourceKind;

/// All requirements must hold; no requirement selects everything.
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
    /// An index into the kind's selectable fields.
    Selectable(usize),
}

impl FieldSelector {
    /// Parses a selector; the error is the message for the client.
    pub(crate) fn parse(kind: &ResourceKind, text: &str) -> Result<Self, String> {
        let requirements = text
            .split(',')
            .filter(|part| !part.is_empty())
            .map(|part| parse_requirement(kind, text, part))
            .collect::<Result<_, _>>()?;
        Ok(Self { requirements })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = match requirement.field {
                Field::Name => object.name(),
                Field::Namespace => object.namespace().unwrap_or_default(),
                Field::Selectable(index) => object.field(index),
            };
            (value == requirement.value) == requirement.equal
        })
    }
}

fn parse_requirement(kind: &ResourceKind, selector: &str, part: &str) -> Result<Requirement, String> {
    let split = part.split_once("!=").map(|(field, value)| (field, value, false)).or_else(|| {
        part.split_once("==").or_else(|| part.split_once('=')).map(|(field, value)| (field, value, true))
    });
    let Some((field, value, equal)) = split else {
        return Err(format!("invalid selector: '{selector}'; can't understand '{part}'"));
    };
    Ok(Requirement { field: parse_field(kind, field)?, value: value.to_owned(), equal })
}

fn parse_field(kind: &ResourceKind, path: &str) -> Result<Field, String> {
    match path {
        "metadata.name" => Ok(Field::Name),
        "metadata.namespace" if kind.namespaced => Ok(Field::Namespace),
        _ => kind
            .selectable_fields
            .iter()
            .position(|known| known == path)
            .map(Field::Selectable)
            .ok_or_else(|| format!("field label not supported: {path}")),
    }
}
