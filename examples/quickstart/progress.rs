//! Progress bars for the first lists.

use std::fmt::Debug;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use informer_factory::{Health, SharedIndexInformer};
use kube::api::{Api, ListParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

/// How often a bar is brought up to date.
const REFRESH: Duration = Duration::from_millis(20);

/// Shows how the first list of an informer arrives, until it is there, or until the informer runs into trouble:
/// it goes on trying then, but nobody can say for how long. Draws nothing if stderr is not a terminal.
pub(crate) async fn first_list<K>(
    name: &'static str,
    informer: &SharedIndexInformer<K>,
    client: Client,
    bars: &MultiProgress,
) where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let bar = bars.add(ProgressBar::no_length().with_message(name));
    bar.set_style(style("{msg:<6} {pos} so far"));
    let arrived = async {
        loop {
            match informer.health() {
                _ if informer.has_synced() => break,
                health if health.error().is_some() => break,
                Health::Syncing { received, .. } => bar.set_position(received as u64),
                _ => {}
            }
            tokio::time::sleep(REFRESH).await;
        }
    };
    let counted = async {
        if let Some(total) = count::<K>(client).await {
            bar.set_style(style("{msg:<6} [{bar:40}] {human_pos} of {human_len}"));
            bar.set_length(total);
        }
        // Knowing the total is not the end of it.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = arrived => {}
        () = counted => {}
    }
    bar.finish_and_clear();
}

/// Asks the server how many objects there are: for the metadata of one of them, and how many remain.
///
/// `None` if it doesn't say. An error needs no word here, because the informer meets it too.
async fn count<K>(client: Client) -> Option<u64>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let first = Api::<K>::all(client).list_metadata(&ListParams::default().limit(1)).await.ok()?;
    let remaining = first.metadata.remaining_item_count.unwrap_or(0);
    Some(first.items.len() as u64 + u64::try_from(remaining).ok()?)
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
