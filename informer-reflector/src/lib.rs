//! Lists and watches a Kubernetes resource, and keeps a local store up to date.
//!
//! [`Reflector`] is the state machine. [`KubeListWatch`] sends requests through a [`kube::Client`].
//! [`ListDecoder`] and [`WatchDecoder`] decode responses, and can be used alone.

mod connect;
mod decode;
mod kube_list_watch;
mod reflector;

pub use connect::connect;
pub use decode::{Encoding, ListDecoder, PrunePathError, PrunePaths, WatchDecoder};
pub use informer_core::Storage;
pub use kube_list_watch::{KubeListWatch, ListTweaks};
#[doc(hidden)]
pub use reflector::Ingest;

pub use reflector::{
    EventCounts, Health, ListRecord, ListWatchFailure, NextRequest, Reflector, ReflectorConfig,
    ReflectorCounts, ReflectorStatus, RelistHandle, SharedServer,
};
