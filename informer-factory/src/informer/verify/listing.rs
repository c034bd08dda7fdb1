//! The lists with which a store is compared.

use std::collections::HashMap;

use futures::StreamExt;
use informer_core::{
    ContinueTokens, ListOptions, ListPart, ListWatchError, ListerWatcher, ObjectKey, ResourceVersion,
    ResourceVersionMatch,
};
use kube::Resource;
use tokio::time::timeout;

use super::PATIENCE;
use crate::source::Part;

/// How many objects a page has.
const PAGE_SIZE: u32 = 500;

/// What the server has.
pub(super) type Listed = HashMap<ObjectKey, ResourceVersion>;

/// Lists what exists of a part at exactly this version.
pub(super) async fn list<K: Resource + Send + Sync + 'static>(
    part: &Part<K>,
    resource_version: &ResourceVersion,
) -> Result<Listed, ListWatchError> {
    match part.lister_watcher.metadata_only() {
        Some(metadata) => list_exactly(metadata.as_ref(), resource_version).await,
        None => list_exactly(part.lister_watcher.as_ref(), resource_version).await,
    }
}

/// Lists what exists at exactly this version.
async fn list_exactly<T: Resource + 'static>(
    lister: &dyn ListerWatcher<T>,
    resource_version: &ResourceVersion,
) -> Result<Listed, ListWatchError> {
    let (mut listed, mut tokens) = (Listed::new(), ContinueTokens::new());
    let mut options = ListOptions {
        resource_version: Some(resource_version.clone()),
        resource_version_match: Some(ResourceVersionMatch::Exact),
        limit: Some(PAGE_SIZE),
        ..ListOptions::default()
    };
    loop {
        let mut parts = in_time(lister.list(options)).await??;
        let end = loop {
            match in_time(parts.next()).await?.transpose()? {
                Some(ListPart::Items(items)) => {
                    for item in items {
                        let (key, version) = match item {
                            Ok(object) => {
                                let version = object.meta().resource_version.as_deref().into();
                                (ObjectKey::of(&*object).ok(), version)
                            }
                            Err(malformed) => (malformed.key, malformed.resource_version),
                        };
                        let unnamed = || ListWatchError::Protocol("an object of the list has no name".into());
                        listed.insert(key.ok_or_else(unnamed)?, version);
                    }
                }
                Some(ListPart::End(end)) if end.resource_version == *resource_version => break end,
                Some(ListPart::End(end)) => {
                    return Err(another_state(resource_version, &end.resource_version));
                }
                None => return Err(ListWatchError::Protocol("the list ended without its metadata".into())),
            }
        };
        let Some(token) = end.continue_token else { return Ok(listed) };
        tokens.note(&token)?;
        // The token stands for the version too.
        options =
            ListOptions { limit: Some(PAGE_SIZE), continue_token: Some(token), ..ListOptions::default() };
    }
}

/// Lists one object at the newest state. A server whose cache of the resource has been idle updates
/// the cache for this request, and its next bookmark then has a newer version.
pub(super) async fn ask_for_newest<K: Resource + Send + Sync + 'static>(
    part: &Part<K>,
) -> Result<(), ListWatchError> {
    match part.lister_watcher.metadata_only() {
        Some(metadata) => list_one(metadata.as_ref()).await,
        None => list_one(part.lister_watcher.as_ref()).await,
    }
}

async fn list_one<T: 'static>(lister: &dyn ListerWatcher<T>) -> Result<(), ListWatchError> {
    let mut parts = in_time(lister.list(ListOptions { limit: Some(1), ..ListOptions::default() })).await??;
    while in_time(parts.next()).await?.transpose()?.is_some() {}
    Ok(())
}

/// Not every server that stands in for the API server heeds the version it is asked for.
fn another_state(asked_for: &ResourceVersion, given: &ResourceVersion) -> ListWatchError {
    ListWatchError::Protocol(format!(
        "the list at resource version {asked_for} was answered with the state at {given}, with which nothing can be \
         compared"
    ))
}

async fn in_time<T>(answer: impl Future<Output = T>) -> Result<T, ListWatchError> {
    let silence = |_| ListWatchError::Unreachable(format!("no answer within {PATIENCE:?}").into());
    timeout(PATIENCE, answer).await.map_err(silence)
}
