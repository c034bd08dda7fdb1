//! What factories, informers and handlers report: their health, states, counts and failures, and
//! the result of a comparison with the server.
//!
//! `SharedInformerFactory` returns [`FactoryHealth`] and [`InformerReport`], `SharedIndexInformer`
//! returns [`InformerState`], [`SourceStatus`], and [`Verification`] or [`VerifyError`],
//! `HandlerRegistration` returns [`HandlerStats`], and `Indexer` returns [`IndexFailure`]. The
//! function in `ReflectorConfig::on_failure` receives [`ListWatchFailure`]. The other types are
//! parts of these.

pub use informer_core::HandlerStats;
pub use informer_reflector::{Health, ListRecord, ListWatchFailure, NextRequest};
pub use informer_store::IndexFailure;

pub use crate::factory::{FactoryHealth, InformerReport};
pub use crate::informer::{BatchCounts, Difference, InformerState, StopCause, Verification, VerifyError};
pub use crate::source::SourceStatus;
