//! Lists the server's objects, for comparison with a store.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use informer_core::{
    AnyObject, AnySource, ContinueTokens, ListOptions, ListPart, ListWatchError, ListerWatcher, ObjectKey,
    ResourceVersion, ResourceVersionMatch,
};
use informer_reflector::Ingest;
use kube::core::PartialObjectMeta;
use tokio::time::timeout;

use super::RESPONSE_TIMEOUT;
use crate::source::Part;

const PAGE_SIZE: u32 = 500;

/// The resource version of each object on the server, by key.
pub(super) type Listed = HashMap<ObjectKey, ResourceVersion>;

/// Lists the objects of one reflector, at exactly this resource version.
pub(super) async fn list(
    part: &Part<AnyObject>,
    ingest: &Ingest,
    resource_version: &ResourceVersion,
) -> Result<Listed, ListWatchError> {
    let (lister, ingest) = lister(part, ingest);
    let (mut listed, mut tokens) = (Listed::new(), ContinueTokens::new());
    let mut options = ListOptions {
        resource_version: Some(resource_version.clone()),
        resource_version_match: Some(ResourceVersionMatch::Exact),
        limit: Some(PAGE_SIZE),
        ..ListOptions::default()
    };
    loop {
        let mut parts = with_timeout(lister.list(options)).await??;
        let end = loop {
            match with_timeout(parts.next()).await?.transpose()? {
                Some(ListPart::Items(items)) => {
                    for item in items {
                        let (key, version) = match item {
                            Ok(object) => {
                                let meta = ingest.meta(&object);
                                let key = ObjectKey::of_meta(meta, ingest.type_name());
                                (key.ok(), meta.resource_version.as_deref().into())
                            }
                            Err(malformed) => (malformed.key, malformed.resource_version),
                        };
                        let unnamed = || ListWatchError::Protocol("an object of the list has no name".into());
                        listed.insert(key.ok_or_else(unnamed)?, version);
                    }
                }
                Some(ListPart::End(end)) if end.resource_version == *resource_version => break end,
                Some(ListPart::End(end)) => {
                    return Err(version_ignored(resource_version, &end.resource_version));
                }
                None => return Err(ListWatchError::Protocol("the list ended without its metadata".into())),
            }
        };
        let Some(token) = end.continue_token else { return Ok(listed) };
        tokens.note(&token)?;
        // The continue token contains the resource version, so the options have none.
        options =
            ListOptions { limit: Some(PAGE_SIZE), continue_token: Some(token), ..ListOptions::default() };
    }
}

/// Lists one object at the newest resource version. This updates an idle watch cache of the server,
/// so that its next bookmark is newer.
pub(super) async fn refresh_watch_cache(
    part: &Part<AnyObject>,
    ingest: &Ingest,
) -> Result<(), ListWatchError> {
    let (lister, _) = lister(part, ingest);
    let mut parts =
        with_timeout(lister.list(ListOptions { limit: Some(1), ..ListOptions::default() })).await??;
    while with_timeout(parts.next()).await?.transpose()?.is_some() {}
    Ok(())
}

/// Returns a source that lists the objects of `part`, and an [`Ingest`] for these listed objects.
/// [`Ingest::meta`] reads the metadata of a listed object.
///
/// - If the source of `part` can list only metadata, returns such a source, and an `Ingest` for
///   [`PartialObjectMeta`].
/// - If not, returns the source of `part`, and a clone of `ingest`.
fn lister(part: &Part<AnyObject>, ingest: &Ingest) -> (Arc<dyn ListerWatcher<AnyObject>>, Ingest) {
    match part.lister_watcher.metadata_only() {
        Some(metadata) => (Arc::new(AnySource(metadata)), Ingest::of::<PartialObjectMeta>()),
        None => (Arc::clone(&part.lister_watcher), ingest.clone()),
    }
}

/// Returns the error for a list at another resource version than the requested one. Some proxies
/// and alternative API servers ignore the requested version.
fn version_ignored(requested: &ResourceVersion, returned: &ResourceVersion) -> ListWatchError {
    ListWatchError::Protocol(format!(
        "the server returned a list at resource version {returned} instead of exactly {requested}, so the list cannot be \
         compared with the store"
    ))
}

async fn with_timeout<T>(answer: impl Future<Output = T>) -> Result<T, ListWatchError> {
    let silence = |_| ListWatchError::Unreachable(format!("no answer within {RESPONSE_TIMEOUT:?}").into());
    timeout(RESPONSE_TIMEOUT, answer).await.map_err(silence)
}
