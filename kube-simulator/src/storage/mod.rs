//! The simulator's etcd and watch cache: current objects, and their history.
//!
//! Lock order: first `Catalogue::serving`, then the lock of a `Table`, then at most one lock inside
//! a `Revision`, a `Notifier` or a `Budget`. Three operations also take other locks while they hold
//! a table's lock:
//!
//! - A client's request that creates an object takes locks inside the map `Catalogue::served`, but
//!   not the lock `Catalogue::serving`. The request also locks the tables of namespaces and of
//!   custom resource definitions, with `Table::lock`.
//! - A backup locks all tables with `Table::lock`, in the order of `Catalogue::tables`.
//! - The restore of a backup takes the write locks of all tables, in the order of
//!   `Catalogue::tables`.
//!
//! `Table::lock` and the order of the tables prevent deadlocks. No lock is held across an await.

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
