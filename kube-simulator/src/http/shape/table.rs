//! `Table` of `meta.k8s.io`: the columns and rows that `kubectl get` prints.

use serde_json::{Value, json};

use super::cells;
use super::path::JsonPath;
use crate::api::clock::Clock;
use crate::kinds::ResourceKind;

/// The annotation of the bookmark that ends the initial events of a streaming list.
pub(crate) const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// The part of an object that its table row contains.
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
    /// The parsed path of each column; `None` if the column has no path, or one that
    /// [`JsonPath::parse`] does not support.
    paths: Vec<Option<JsonPath>>,
}

impl Rows {
    pub(crate) fn new(include: Include, clock: Clock, kind: &ResourceKind) -> Self {
        let paths = kind.columns.iter().map(|column| JsonPath::parse(column.json_path.as_deref()?));
        Self { include, has_header: false, clock, paths: paths.collect() }
    }

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
        let now = self.clock.now();
        let cells = kind.columns.iter().zip(&self.paths).map(|(column, path)| match &column.json_path {
            Some(_) => cells::at_path(path.as_ref(), column, object, now),
            None => cells::cell(&kind.kind, &column.name, object, now).unwrap_or_default(),
        });
        let cells: Vec<Value> = cells.collect();
        let mut row = json!({ "cells": cells });
        // The row of the bookmark that ends an initial list always has the metadata, which contains
        // the annotation.
        let ends_list = object["metadata"]["annotations"][INITIAL_EVENTS_END] == "true";
        match self.include {
            Include::None if !ends_list => {}
            Include::Object => row["object"] = object.clone(),
            Include::None | Include::Metadata => {
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

pub(super) fn definitions(kind: &ResourceKind) -> Value {
    let columns = kind.columns.iter().map(|column| {
        json!({
            "name": column.name,
            "type": column.type_name,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        })
    });
    columns.collect()
}
