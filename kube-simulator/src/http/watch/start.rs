//! The start of a watch: the rules for `resourceVersion`, `sendInitialEvents` and their defaults.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio_util::sync::CancellationToken;

use super::framing::Framing;
use super::registry::WatchRegistry;
use super::stream::{Bookmarks, EndBookmark, Initial, WatchStream, deadline_after};
use crate::api::list::ListOptions;
use crate::api::selector::Filter;
use crate::api::status::{self, Refusal};
use crate::http::request::RecordedRequest;
use crate::kinds::ResourceKind;
use crate::storage::{Revision, SlowWatchLimit, Table};

/// With [`StreamingLists::ServedLate`], the time from the start of a watch to the bookmark that
/// ends the initial list.
const END_BOOKMARK_DELAY: Duration = Duration::from_secs(1);

/// How a server answers watches that request a streaming list with `sendInitialEvents`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamingLists {
    /// Sends the objects, and then at once the bookmark that ends the initial list, like a current
    /// server.
    #[default]
    Served,
    /// Sends the objects at once. Like an older server, sends the bookmark that ends the initial
    /// list only one second after the start of the watch. Events in this second are sent before the
    /// bookmark.
    ServedLate,
    /// Refuses watches that set `sendInitialEvents`, with 422 `Invalid`, like a server whose
    /// feature gate `WatchList` is off.
    ///
    /// A watch that sets neither `sendInitialEvents` nor a resource version still begins with the
    /// current objects. No bookmark follows these objects.
    Refused,
    /// Ignores `sendInitialEvents`, like some aggregated API servers. The bookmark that ends the
    /// initial list never arrives.
    Ignored,
}

impl StreamingLists {
    /// Changes the options of a new watch, as a server with this behavior does. For example,
    /// `Ignored` removes `sendInitialEvents`.
    pub(crate) fn adjust(self, options: &mut ListOptions) {
        match self {
            Self::Served | Self::ServedLate => options.default_to_streaming(),
            Self::Ignored => options.ignore_streaming(),
            Self::Refused => {}
        }
    }
}

/// The rule by which the server ends a slow watch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SlowWatches {
    /// The watch ends if more than this number of events is unread. Events from before the watch
    /// was opened do not count.
    Counted(u64),
    /// The watch ends when its buffer stays full for too long, as on a real server. All watches of
    /// a resource share the allowed time.
    Timed,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchRules {
    pub(crate) slow_watches: SlowWatches,
    pub(crate) streaming_lists: StreamingLists,
}

/// The arguments of [`open`] besides the query options: the stored objects to watch, the recorded
/// request, the server's rules, and the tokens that end the watch.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) table: Arc<Table>,
    pub(crate) revision: Revision,
    pub(crate) registry: Arc<WatchRegistry>,
    pub(crate) request: Arc<RecordedRequest>,
    pub(crate) filter: Filter,
    pub(crate) framing: Framing,
    pub(crate) rules: WatchRules,
    /// The timeout of a watch without `timeoutSeconds`.
    pub(crate) default_timeout: Duration,
    /// The source of random shifts in the times of bookmarks.
    pub(crate) random: fastrand::Rng,
    pub(crate) stop: CancellationToken,
    /// Cancelled when the served version of the resource is removed or replaced. The watch then
    /// ends, but first sends all pending events. On a lagging API server, these are only the events
    /// up to the resource version that the server has reached.
    pub(crate) gone: CancellationToken,
}

/// The events or objects with which a new watch starts.
enum Start {
    /// The events after this resource version.
    After(u64),
    /// All current objects, after the server has reached the resource version `not_before`.
    Everything { not_before: u64 },
    /// Only the events after the opening of the watch.
    Now,
}

/// Opens a watch. Returns an error if an option is invalid or the watch cache is not ready.
///
/// The caller must have called [`StreamingLists::adjust`] with `options`.
pub(crate) async fn open(
    opening: Opening,
    options: &ListOptions,
) -> Result<BoxStream<'static, std::io::Result<Bytes>>, Refusal> {
    options.validate_for_watch(opening.rules.streaming_lists != StreamingLists::Refused)?;
    let start = start(&opening.revision, options)?;
    if opening.table.kind.is_cached() {
        opening.revision.watch_cache().check()?;
    }
    if options.timeout.is_some_and(|timeout| timeout.is_zero()) {
        return Ok(stream::empty().boxed());
    }
    let framing = opening.framing.clone();
    match begin(opening, options, start).await {
        Ok(stream) => Ok(stream.into_bytes().boxed()),
        // As on a real server, the stream reports this error as an `ERROR` event.
        Err(refusal) => {
            let mut buffer = BytesMut::new();
            framing.append_error(&mut buffer, &refusal);
            Ok(stream::iter([Ok(buffer.freeze())]).boxed())
        }
    }
}

fn start(revision: &Revision, options: &ListOptions) -> Result<Start, Refusal> {
    let version = options.watched_resource_version()?;
    // Without a version, the newest state is required, and a lagging server must wait for it.
    let not_before = if options.resource_version.is_empty() { revision.stored() } else { version };
    Ok(match options.send_initial_events {
        Some(true) => Start::Everything { not_before },
        // A watch without a version or from version 0 first sends the objects that the server has,
        // even if they are stale.
        None if version == 0 => Start::Everything { not_before: 0 },
        _ if options.resource_version.is_empty() => Start::After(revision.stored()),
        _ if version == 0 => Start::Now,
        _ => Start::After(version),
    })
}

/// Returns the error message of the watch cache or of etcd for an expired resource version. `floor`
/// is the lowest available version.
fn too_old(table: &Table, version: u64, floor: u64) -> String {
    if table.kind.is_cached() {
        return format!("too old resource version: {version} ({floor})");
    }
    "The resourceVersion for the provided watch is too old.".to_owned()
}

/// Returns the maximum number of events in a watch's event channel on a real server. The actual
/// size of the channel can be smaller; see [`Table::channel_size`].
fn max_channel_size(kind: &ResourceKind, filter: &Filter) -> usize {
    match kind.trigger_field() {
        None => 100,
        Some(field) if filter.requires_one_value(kind, field) => 10,
        Some(_) => 1_000,
    }
}

impl Opening {
    fn slow_watch_limit(&self) -> SlowWatchLimit {
        match self.rules.slow_watches {
            SlowWatches::Counted(capacity) => SlowWatchLimit { capacity, is_timed: false },
            // A lagging replica that catches up sends a burst of events, which must not end
            // watches. For kinds that are not cached, etcd serves the watches, and waits for slow
            // ones.
            SlowWatches::Timed if self.revision.is_of_replica() || !self.table.kind.is_cached() => {
                SlowWatchLimit { capacity: u64::MAX, is_timed: false }
            }
            SlowWatches::Timed => {
                let channel_size = self.table.channel_size(max_channel_size(&self.table.kind, &self.filter));
                // The real server has two channels: one before the watch's filter, one after it.
                SlowWatchLimit { capacity: 2 * channel_size, is_timed: true }
            }
        }
    }
}

async fn begin(opening: Opening, options: &ListOptions, start: Start) -> Result<WatchStream, Refusal> {
    let changes = opening.table.changes();
    let mut initial = Initial::default();
    let slow_watch_limit = opening.slow_watch_limit();
    let (reader, after) = match start {
        Start::After(version) => {
            let (floor, reader) = opening.table.start_after(version, &opening.revision, slow_watch_limit);
            if version < floor {
                return Err(status::expired(too_old(&opening.table, version, floor)));
            }
            (reader, version)
        }
        Start::Now => {
            let now = opening.revision.current();
            (opening.table.start_after(now, &opening.revision, slow_watch_limit).1, now)
        }
        Start::Everything { not_before } => {
            opening.revision.reach(not_before).await?;
            let (objects, version, reader) =
                opening.table.snapshot_and_reader(&opening.revision, slow_watch_limit)?;
            initial.objects = objects.into_iter();
            let end_bookmark = match opening.rules.streaming_lists {
                StreamingLists::Served => Some(EndBookmark { version, due: None }),
                StreamingLists::ServedLate => {
                    Some(EndBookmark { version, due: Some(deadline_after(END_BOOKMARK_DELAY)) })
                }
                StreamingLists::Refused | StreamingLists::Ignored => None,
            };
            initial.end_bookmark = end_bookmark.filter(|_| options.allow_bookmarks);
            (reader, version)
        }
    };
    let deadline = deadline_after(options.timeout.unwrap_or(opening.default_timeout));
    let rule = opening.registry.bookmarks();
    // Only the watch cache sends periodic bookmarks.
    let with_bookmarks = options.allow_bookmarks && opening.table.kind.is_cached();
    let bookmarks = with_bookmarks.then(|| Bookmarks::new(rule.interval(), deadline, opening.random));
    let (registration, commands) = opening.registry.register(opening.request);
    Ok(WatchStream {
        table: opening.table,
        progress: opening.revision.progress(),
        revision: opening.revision,
        filter: opening.filter,
        framing: opening.framing,
        changes,
        commands,
        stop: opening.stop,
        gone: opening.gone,
        deadline,
        bookmarks,
        initial,
        reader,
        after,
        pending: VecDeque::new(),
        complete_to: 0,
        inbox: VecDeque::new(),
        substitutes: VecDeque::new(),
        ended: None,
        registration,
    })
}
