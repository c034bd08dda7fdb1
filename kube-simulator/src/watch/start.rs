//! Where a watch begins: the rules for `resourceVersion`, `sendInitialEvents` and their defaults.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio_util::sync::CancellationToken;

use super::framing::Framing;
use super::registry::WatchRegistry;
use super::stream::{Bookmarks, EndBookmark, Initial, WatchStream, ahead};
use crate::list::ListOptions;
use crate::request::RecordedRequest;
use crate::resource::ResourceKind;
use crate::selector::Filter;
use crate::status::{self, Refusal};
use crate::storage::{Revision, SlowWatchLimit, Table};

/// How often older servers look whether a bookmark is due.
const TICK: Duration = Duration::from_secs(1);

/// How a server takes watches that ask for the current objects first (`sendInitialEvents`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamingLists {
    /// As a current server does: the objects, then a bookmark that says so.
    #[default]
    Served,
    /// As older servers do: the objects, and only with the next tick of a second the bookmark; what happens until then
    /// comes before it.
    ServedLate,
    /// As a server without the feature does (feature gate `WatchList`): with 422 `Invalid`. A watch from nowhere begins with
    /// the objects all the same, those that the server knows of, but nothing says where they end.
    Refused,
    /// As some aggregated API servers do: as if it had not been asked for, so the bookmark never comes.
    Ignored,
}

impl StreamingLists {
    /// Settles whether a watch is one: a server that knows them takes a watch from nowhere for one, too.
    pub(crate) fn settle(self, options: &mut ListOptions) {
        match self {
            Self::Served | Self::ServedLate => options.default_to_streaming(),
            Self::Ignored => options.ignore_streaming(),
            Self::Refused => {}
        }
    }
}

/// When a watch is ended that is read too slowly.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SlowWatches {
    /// When it is more events behind than this.
    Counted(u64),
    /// When a real server would.
    Timed,
}

/// What holds for all watches of a simulator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchRules {
    pub(crate) slow_watches: SlowWatches,
    pub(crate) streaming_lists: StreamingLists,
}

/// Everything that a new watch needs.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) table: Arc<Table>,
    pub(crate) revision: Revision,
    pub(crate) registry: Arc<WatchRegistry>,
    pub(crate) request: Arc<RecordedRequest>,
    pub(crate) filter: Filter,
    pub(crate) framing: Framing,
    pub(crate) rules: WatchRules,
    /// How long the watch lasts if the client does not say.
    pub(crate) default_timeout: Duration,
    /// Draws how late its bookmarks come.
    pub(crate) random: fastrand::Rng,
    pub(crate) stop: CancellationToken,
    /// Cancelled when the resource is not served any more; what has happened until then is still sent.
    pub(crate) gone: CancellationToken,
}

/// Where a watch begins.
enum Start {
    /// With the events after a resource version.
    After(u64),
    /// With all current objects, once this resource version has been reached.
    Everything { not_before: u64 },
    /// With whatever happens from now on.
    Now,
}

/// Opens a watch, or refuses its parameters, of which [`StreamingLists::settle`] has made what they mean here.
///
/// As on the real server, what goes wrong after the parameters were accepted is not an HTTP error but an `ERROR`
/// event in a stream that then ends; but for a watch cache that is not ready.
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
        Err(refusal) => {
            let mut buffer = BytesMut::new();
            framing.append_error(&mut buffer, &refusal);
            Ok(stream::iter([Ok(buffer.freeze())]).boxed())
        }
    }
}

fn start(revision: &Revision, options: &ListOptions) -> Result<Start, Refusal> {
    let version = options.watched_resource_version()?;
    // Without a version they are the newest there are, for which a server that is behind has to wait.
    let not_before = if options.resource_version.is_empty() { revision.stored() } else { version };
    Ok(match options.send_initial_events {
        Some(true) => Start::Everything { not_before },
        // A watch from nowhere in particular gets the objects first that the server knows of, even if it does not ask for
        // them, and even if there are newer ones.
        None if version == 0 => Start::Everything { not_before: 0 },
        _ if options.resource_version.is_empty() => Start::After(revision.stored()),
        _ if version == 0 => Start::Now,
        _ => Start::After(version),
    })
}

/// Says that the history does not go back so far, in the words of the watch cache or of etcd.
fn too_old(table: &Table, version: u64, floor: u64) -> String {
    if table.kind.is_cached() {
        return format!("too old resource version: {version} ({floor})");
    }
    "The resourceVersion for the provided watch is too old.".to_owned()
}

/// How many events of a kind a server lets pile up for one watch at most: few where it finds the watches that want an event
/// without asking each, many where it could and the watch wants them all.
fn most_piled_up(kind: &ResourceKind, filter: &Filter) -> usize {
    match kind.trigger_field() {
        None => 100,
        Some(field) if filter.names_one(kind, field) => 10,
        Some(_) => 1_000,
    }
}

impl Opening {
    fn patience(&self) -> SlowWatchLimit {
        match self.rules.slow_watches {
            SlowWatches::Counted(room) => SlowWatchLimit { room, is_timed: false },
            // A late memory that catches up is a burst for its watches, and nobody is slow. etcd waits for its readers.
            SlowWatches::Timed if self.revision.is_of_replica() || !self.table.kind.is_cached() => {
                SlowWatchLimit { room: u64::MAX, is_timed: false }
            }
            SlowWatches::Timed => {
                let channel = self.table.channel(most_piled_up(&self.table.kind, &self.filter));
                // There is one before what is encoded, and one behind.
                SlowWatchLimit { room: 2 * channel, is_timed: true }
            }
        }
    }
}

async fn begin(opening: Opening, options: &ListOptions, start: Start) -> Result<WatchStream, Refusal> {
    let changes = opening.table.changes();
    let mut initial = Initial::default();
    let patience = opening.patience();
    let (reader, after) = match start {
        Start::After(version) => {
            let (floor, reader) = opening.table.start_after(version, &opening.revision, patience);
            if version < floor {
                return Err(status::expired(too_old(&opening.table, version, floor)));
            }
            (reader, version)
        }
        Start::Now => {
            let now = opening.revision.current();
            (opening.table.start_after(now, &opening.revision, patience).1, now)
        }
        Start::Everything { not_before } => {
            opening.revision.reach(not_before).await?;
            let (objects, version, reader) =
                opening.table.snapshot_and_reader(&opening.revision, patience)?;
            initial.objects = objects.into_iter();
            let delay = match opening.rules.streaming_lists {
                StreamingLists::Served => Some(Duration::ZERO),
                StreamingLists::ServedLate => Some(TICK),
                StreamingLists::Refused | StreamingLists::Ignored => None,
            };
            let delay = delay.filter(|_| options.allow_bookmarks);
            initial.end_bookmark = delay.map(|delay| EndBookmark { version, due: ahead(delay) });
            (reader, version)
        }
    };
    let deadline = ahead(options.timeout.unwrap_or(opening.default_timeout));
    let rule = opening.registry.bookmarks();
    // Only the watch cache has a clock for bookmarks.
    let with_bookmarks = options.allow_bookmarks && opening.table.kind.is_cached();
    let bookmarks = with_bookmarks.then(|| Bookmarks::new(rule.interval(), deadline, opening.random));
    let (registration, orders) = opening.registry.register(opening.request.clone());
    Ok(WatchStream {
        table: opening.table,
        progress: opening.revision.progress(),
        revision: opening.revision,
        filter: opening.filter,
        framing: opening.framing,
        changes,
        orders,
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
