//! LIST: determines at which resource version a list reads the objects, splits the list into pages,
//! and creates the continue tokens.
//!
//! A list is `cached` if the watch cache serves it instead of etcd. A cached list is late if it
//! requests the newest state, but the cache does not reach that state within 3 seconds.

mod continue_token;
mod options;

use std::sync::Arc;

use crate::api::selector::Filter;
use crate::api::status::{self, Refusal};
use crate::kinds::ResourceKind;
use crate::storage::Object;
use crate::storage::{At, PageRequest, Revision, Table};
use continue_token::ContinueToken;
pub(crate) use options::{ListOptions, VersionMatch, parse_bool};

const CONTINUE_TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. \
    You can start a new list without the continue parameter, or use the continue token in this response to retrieve \
    the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that \
    were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// What the server does with late lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LateLists {
    /// The server reads late lists from etcd.
    FromStorage,
    /// The server refuses late lists with 429 `TooManyRequests`.
    Refused,
}

/// One page of a list.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) objects: Vec<Arc<Object>>,
    pub(crate) resource_version: u64,
    /// Empty on the last page.
    pub(crate) continue_token: String,
    /// The number of objects after this page; `None` on the last page, and for lists with
    /// selectors.
    pub(crate) remaining: Option<usize>,
}

/// The resource version, the first storage key and the limit of a page.
struct Start {
    at: At,
    /// The first storage key to consider.
    key: String,
    limit: usize,
}

/// The resource to list, and the state of the API server that answers the list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) table: &'a Table,
    /// The newest resource version that the API server has received from the storage.
    pub(crate) revision: &'a Revision,
    pub(crate) late: LateLists,
}

/// Returns one page of a list. A cached list waits up to 3 seconds for a future resource version.
pub(crate) async fn list(
    source: Source<'_>,
    filter: &Filter,
    options: &ListOptions,
) -> Result<List, Refusal> {
    let Source { table, revision, .. } = source;
    options.validate_for_list()?;
    let cached = comes_from_cache(&table.kind, revision, filter, options)?;
    let start = start(source, cached, filter, options).await?;
    let (scope, selects) = (filter.key_prefix(), |object: &Object| filter.selects_object(object));
    let request =
        PageRequest { scope: &scope, selects: &selects, at: start.at, start: &start.key, limit: start.limit };
    let page = table
        .page(&request)
        .map_err(|error| offer_remainder(error.into(), cached, filter, &start, options))?;
    let more = page.remaining > 0;
    let last = page.objects.last().map_or(start.key.as_str(), |object| object.key.as_str());
    Ok(List {
        continue_token: if more {
            ContinueToken::after(cached, filter, last, page.resource_version).encode()
        } else {
            String::new()
        },
        remaining: (more && !filter.has_selectors()).then_some(page.remaining),
        objects: page.objects,
        resource_version: page.resource_version,
    })
}

/// Returns whether the watch cache serves a list; `false` means etcd. Most lists are errors while
/// the watch cache is being filled.
fn comes_from_cache(
    kind: &ResourceKind,
    revision: &Revision,
    filter: &Filter,
    options: &ListOptions,
) -> Result<bool, Refusal> {
    if !kind.is_cached() {
        return Ok(false);
    }
    match revision.watch_cache().check() {
        Ok(()) => Ok(true),
        // These lists read from etcd while the watch cache is being filled.
        Err(_) if options.is_exact_or_continued() || (options.limit > 0 && !filter.has_selectors()) => {
            Ok(false)
        }
        Err(refusal) => options.parsed_resource_version().and(Err(refusal.into())),
    }
}

async fn start(
    source: Source<'_>,
    cached: bool,
    filter: &Filter,
    options: &ListOptions,
) -> Result<Start, Refusal> {
    let (revision, limit) = (source.revision, options.limit);
    let from_start = |at, limit| Start { at, key: filter.key_prefix(), limit };
    if !options.continue_token.is_empty() {
        return resume(source, cached, filter, options).await;
    }
    // Without a watch cache, the list comes from etcd, which never lags.
    let cached_state = || if cached { revision.cached_state() } else { At::Latest };
    let Some(version) = options.parsed_resource_version()? else {
        return Ok(from_start(newest(source, cached).await?, limit));
    };
    if version == 0 {
        // For a list that accepts any state, the watch cache ignores the limit; etcd does not.
        return Ok(from_start(cached_state(), if cached { 0 } else { limit }));
    }
    reach(cached, revision, version).await?;
    Ok(match options.version_match {
        Some(VersionMatch::Exact) => from_start(At::Exactly(version), limit),
        Some(VersionMatch::NotOlderThan) => from_start(cached_state(), limit),
        // Without `resourceVersionMatch`, a list with a limit is at exactly this version: older
        // clients, which do not know the parameter, rely on this.
        None if limit > 0 => from_start(At::Exactly(version), limit),
        None => from_start(cached_state(), 0),
    })
}

async fn resume(
    source: Source<'_>,
    cached: bool,
    filter: &Filter,
    options: &ListOptions,
) -> Result<Start, Refusal> {
    if !matches!(options.resource_version.as_str(), "" | "0") {
        return Err(status::bad_request("specifying resource version is not allowed when using continue"));
    }
    let token = ContinueToken::decode(&options.continue_token)?;
    let at = match u64::try_from(token.resource_version) {
        Ok(version) => {
            reach(cached, source.revision, version).await?;
            At::Exactly(version)
        }
        Err(_) => newest(source, cached).await?,
    };
    Ok(Start { at, key: format!("{}{}", filter.key_prefix(), token.start()), limit: options.limit })
}

/// Returns the newest state of the objects. A `cached` list first waits up to 3 seconds until the
/// watch cache has this state.
async fn newest(source: Source<'_>, cached: bool) -> Result<At, Refusal> {
    let revision = source.revision;
    if !cached {
        return Ok(At::Latest);
    }
    match revision.reach(revision.stored()).await {
        Ok(()) => Ok(revision.cached_state()),
        Err(_) if source.late == LateLists::FromStorage => Ok(At::Latest),
        Err(late) => Err(status::too_many_requests(Refusal::from(late).message, 1)),
    }
}

/// Returns an error if the data source of a list has not reached `version`. If `cached` is `true`,
/// the data source is the watch cache, and the function first waits up to 3 seconds for `version`.
/// If `cached` is `false`, the data source is etcd, and the function does not wait.
async fn reach(cached: bool, revision: &Revision, version: u64) -> Result<(), Refusal> {
    let reached = if cached { revision.reach(version).await } else { revision.check_stored(version) };
    Ok(reached?)
}

/// Adds a new continue token to the error for an expired continue token. With the new token, the
/// client can list the remaining objects.
fn offer_remainder(
    mut refusal: Refusal,
    cached: bool,
    filter: &Filter,
    start: &Start,
    options: &ListOptions,
) -> Refusal {
    if !options.continue_token.is_empty() {
        refusal.message = CONTINUE_TOO_OLD.to_owned();
        let token = ContinueToken::inconsistent(cached, filter, &start.key);
        refusal.metadata.get_or_insert_default().continue_ = Some(token.encode());
    }
    refusal
}
