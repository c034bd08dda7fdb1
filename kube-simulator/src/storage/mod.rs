//! The simulator's etcd and watch cache: current objects, and the history of how they came about.
//!
//! Lock order: a table's lock, then what is behind the revision counter (a replica's lag, the compaction, a bell) or the
//! patience of a history. Nothing else is taken while a table's lock is held, and no lock is held across an await.

mod backup;
mod compaction;
mod history;
mod notifier;
mod past;
mod revision;
mod slow_watch_limit;
mod table;
mod transaction;
mod watch_cache;
mod window;

pub use backup::Backup;
pub(crate) use history::{Event, Lost, Reader};
pub(crate) use notifier::Listener;
pub(crate) use past::{At, PageRequest};
pub(crate) use revision::Revision;
pub(crate) use slow_watch_limit::SlowWatchLimit;
pub(crate) use table::Table;
pub(crate) use transaction::Transaction;
pub(crate) use window::Retention;
