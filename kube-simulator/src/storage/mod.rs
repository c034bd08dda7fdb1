//! The simulator's etcd and watch cache: current objects, and their history.
//!
//! Lock order: first a table's lock, then the locks of the revision counter (a replica's lag, the
//! compaction, a notifier) or the lock of a history's budget. A server-side apply that creates an
//! object in a namespace also takes the locks of the catalogue and of the table of namespaces. No
//! other lock is taken under a table's lock, and no lock is held across an await.

mod backup;
mod compaction;
mod error;
mod history;
mod notifier;
mod object;
mod past;
mod revision;
mod slow_watch_limit;
mod table;
mod transaction;
mod watch_cache;
mod window;

pub use backup::Backup;
pub(crate) use error::ReadError;
pub(crate) use history::{Event, Reader, ReaderError};
pub(crate) use notifier::Listener;
pub(crate) use object::Object;
pub(crate) use past::{At, PageRequest};
pub(crate) use revision::Revision;
pub(crate) use slow_watch_limit::SlowWatchLimit;
pub(crate) use table::Table;
pub(crate) use transaction::Transaction;
pub(crate) use window::Retention;
