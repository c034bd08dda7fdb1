//! Prometheus metrics of informers and work queues, health endpoints of informers, and a web page
//! about informers and controllers.
//!
//! The metrics of informers are read when Prometheus requests them, so they cost nothing between two
//! requests. The series of an informer end when the factory removes the informer, for example in
//! `SharedInformerFactory::stop`. Register the metrics of a factory once, and encode the registry
//! for each request:
//!
//! ```no_run
//! use informer_factory::SharedInformerFactory;
//! use informer_monitor::InformerMetrics;
//! use prometheus_client::encoding::text::encode;
//! use prometheus_client::registry::Registry;
//!
//! # fn metrics(factory: &SharedInformerFactory) -> Result<String, std::fmt::Error> {
//! let mut registry = Registry::default();
//! registry.register_collector(Box::new(InformerMetrics::new(factory)));
//!
//! // For each request to /metrics:
//! let mut page = String::new();
//! encode(&mut page, &registry)?;
//! # Ok(page)
//! # }
//! ```
//!
//! With the feature `router` (off by default), `router` returns an axum router with `/healthz`,
//! `/readyz` and `/metrics`. With the feature `inspector` (off by default), `Inspector` serves a web
//! page that shows the informers while they run.
//!
//! The crate uses [`prometheus_client`] and not the facade `metrics`, because most programs on kube
//! already use [`prometheus_client`], because only its collectors can remove the series of a stopped
//! informer, and because its counters need no global recorder.
//!
//! A metric that client-go has, too, has the same name as in client-go. All counters end in `_total`.

mod informers;
#[cfg(feature = "inspector")]
mod inspector;
mod queues;
#[cfg(feature = "router")]
mod router;

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;

pub use informers::InformerMetrics;
#[cfg(feature = "inspector")]
pub use inspector::{Inspector, InspectorError, PathError};
pub use queues::QueueMetrics;
#[cfg(feature = "router")]
pub use router::router;

/// Compiles the examples in the README of this crate as doctests.
#[cfg(all(doctest, feature = "inspector"))]
#[doc = include_str!("../README.md")]
mod readme {}

/// Writes a counter or gauge with its samples. The encoder adds `_total` to the name of a counter.
fn write<L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder<'_>,
    kind: MetricType,
    name: &str,
    help: &str,
    samples: impl IntoIterator<Item = (L, f64)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
    for (labels, value) in samples {
        let mut sample = metric.encode_family(&labels)?;
        match kind {
            MetricType::Counter => sample.encode_counter::<NoLabelSet, _, f64>(&value, None)?,
            _ => sample.encode_gauge(&value)?,
        }
    }
    Ok(())
}

/// Returns the name of a Rust type without its path and its type parameters.
fn short(type_name: &str) -> &str {
    // The path of a k8s-openapi type contains the version of Kubernetes. As a label, it would begin
    // new series after an update.
    let name = type_name.split('<').next().unwrap_or(type_name);
    name.rsplit("::").next().unwrap_or(name)
}
