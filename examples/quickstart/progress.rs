//! Progress bars for the initial lists.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use informer_factory::{Health, SharedIndexInformer};
use kube::api::{Api, ListParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

/// Update interval of the bars.
const REFRESH: Duration = Duration::from_millis(20);

/// Time without progress after which a bar is removed.
const MAX_IDLE: Duration = Duration::from_secs(5);

/// Shows the progress of an informer's initial list. Returns when the list is complete, when the informer reports a
/// failure, or when nothing more arrives; the informer continues in each case. Draws nothing if stderr is not a terminal.
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
        let mut last_progress = Instant::now();
        while !informer.has_synced() && last_progress.elapsed() < MAX_IDLE {
            match informer.health() {
                Health::Syncing { received, .. } if received as u64 > bar.position() => {
                    bar.set_position(received as u64);
                    last_progress = Instant::now();
                }
                health if health.error().is_some() => break,
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
        // Only the other branch ends the `select!`.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = arrived => {}
        () = counted => {}
    }
    bar.finish_and_clear();
}

/// Returns the number of objects, from a list of metadata with limit 1 and its remaining item count.
///
/// Returns `None` if the server does not report the count. Errors are ignored, because the informer reports them.
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
