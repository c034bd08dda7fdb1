//! `Table` of `meta.k8s.io`: the columns and rows that `kubectl get` prints.

use serde_json::{Value, json};

use crate::clock::Clock;
use crate::resource::ResourceKind;

/// The part of its object that a row contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    #[default]
    Metadata,
    Object,
}

impl Include {
    /// Parses the `includeObject` parameter.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "None" => Some(Self::None),
            "" | "Metadata" => Some(Self::Metadata),
            "Object" => Some(Self::Object),
            _ => None,
        }
    }
}

/// Creates tables of objects. In a watch, only the first table contains the column definitions.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    include: Include,
    has_header: bool,
    clock: Clock,
}

impl Rows {
    pub(crate) fn new(include: Include, clock: Clock) -> Self {
        Self { include, has_header: false, clock }
    }

    /// Returns a table with one object.
    pub(crate) fn table(&mut self, version: &str, kind: &ResourceKind, object: &Value) -> Value {
        let columns =
            if std::mem::replace(&mut self.has_header, true) { json!([]) } else { definitions(kind) };
        let resource_version = &object["metadata"]["resourceVersion"];
        json!({
            "kind": "Table",
            "apiVersion": format!("meta.k8s.io/{version}"),
            "metadata": { "resourceVersion": resource_version },
            "columnDefinitions": columns,
            "rows": [self.row(version, kind, object)],
        })
    }

    pub(crate) fn row(&self, version: &str, kind: &ResourceKind, object: &Value) -> Value {
        let name = std::iter::once(object["metadata"]["name"].as_str().unwrap_or_default().into());
        let now = self.clock.now();
        let cells: Vec<Value> =
            name.chain(kind.columns.iter().map(|column| column.show(object, now))).collect();
        let mut row = json!({ "cells": cells });
        match self.include {
            Include::None => {}
            Include::Object => row["object"] = object.clone(),
            Include::Metadata => {
                row["object"] = json!({
                    "kind": "PartialObjectMetadata",
                    "apiVersion": format!("meta.k8s.io/{version}"),
                    "metadata": object["metadata"],
                });
            }
        }
        row
    }
}

/// Returns the column definitions of a kind.
pub(super) fn definitions(kind: &ResourceKind) -> Value {
    let name = json!({
        "name": "Name",
        "type": "string",
        "format": "name",
        "description": "Name must be unique within a namespace.",
        "priority": 0,
    });
    let others = kind.columns.iter().map(|column| {
        json!({
            "name": column.name,
            "type": column.type_name,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        })
    });
    std::iter::once(name).chain(others).collect()
}
