//! [`Derived`]: what a derive says of the informers of a type, and how they are made of it.

use std::any::type_name;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use serde::de::DeserializeOwned;

use crate::{
    Index, IndexError, InformerOptions, InformerScope, InformerTask, PrunePaths, SharedIndexInformer,
    SharedInformerFactory,
};
use informer_core::ListerWatcher;
use informer_reflector::KubeListWatch;
use informer_store::IndexValue;

/// A type with `#[derive(Informer)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` doesn't derive `Informer`",
    note = "add `#[derive(Informer)]` to it, or to the spec that it is made of"
)]
pub trait Derived: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + Sized + 'static {
    /// The fields that aren't decoded, besides `metadata.managedFields`.
    const PRUNED: &'static [&'static str];

    /// How often handlers that ask for nothing else get every object handed out again.
    const DEFAULT_RESYNC: Option<Duration>;

    /// Adds the indices that aren't there yet.
    fn add_indices(informer: &SharedIndexInformer<Self>);
}

/// Returns the factory's informer of a type, made on first use as its derive says where the factory's builder says
/// nothing.
#[must_use]
pub fn shared_informer<K>(factory: &SharedInformerFactory) -> SharedIndexInformer<K>
where
    K: Derived,
    K::Scope: InformerScope,
{
    let informer = factory.informer_with(|list_watch, options| match factory.prunes::<K>() {
        true => new_informer_from(Arc::new(list_watch), options),
        false => new_informer(list_watch, options),
    });
    // It may have been made by somebody who knows nothing of the derive.
    K::add_indices(&informer);
    informer
}

/// Returns an informer as the derive says, and its task.
pub fn new_informer<K: Derived>(
    list_watch: KubeListWatch<K>,
    options: InformerOptions<K>,
) -> (SharedIndexInformer<K>, InformerTask<K>) {
    let list_watch = if K::PRUNED.is_empty() { list_watch } else { list_watch.prune(prune_paths::<K>()) };
    new_informer_from(Arc::new(list_watch), options)
}

/// Returns an informer over any source as the derive says, but for what is pruned, and its task.
pub fn new_informer_from<K: Derived>(
    lister_watcher: Arc<dyn ListerWatcher<K>>,
    options: InformerOptions<K>,
) -> (SharedIndexInformer<K>, InformerTask<K>) {
    let options = match K::DEFAULT_RESYNC {
        Some(period) => options.resync_period_unless_set(period),
        None => options,
    };
    let (informer, task) = SharedIndexInformer::new(lister_watcher, options);
    K::add_indices(&informer);
    (informer, task)
}

fn prune_paths<K: Derived>() -> PrunePaths {
    let paths = K::PRUNED.iter().try_fold(PrunePaths::default(), |paths, path| paths.with_path(path));
    paths.expect("the derive has checked the paths")
}

/// Returns the handle of an index, which is added if it isn't there.
///
/// Where somebody has given the name to an index of other values, that one stays, and this one gets a longer name, with
/// the type of its values: whoever asks by method or handle finds what the derive has promised.
pub fn index<K, V>(
    informer: &SharedIndexInformer<K>,
    name: &'static str,
    values: fn(&K) -> Result<Vec<V>, String>,
) -> Index<K, V>
where
    K: Send + Sync + 'static,
    V: IndexValue,
{
    let mut name = Cow::Borrowed(name);
    loop {
        match informer.indexer().index_or_try_add(&name, values) {
            Ok(index) => return index,
            Err(IndexError::WrongType { .. }) => name = longer_name::<K, V>(informer, &name).into(),
            // Somebody has removed it at this moment, or not added it after all.
            Err(_) => {}
        }
    }
}

/// What an index is called whose name is taken; says so, the first time.
fn longer_name<K: Send + Sync + 'static, V>(informer: &SharedIndexInformer<K>, name: &str) -> String {
    let longer = format!("{name} of {}", type_name::<V>());
    if !informer.indexer().index_names().contains(&longer) {
        tracing::error!(
            "{}: there is an index \"{name}\" of other values already, so that of `#[derive(Informer)]` on {} is called \
             \"{longer}\"; rename one of the two",
            informer.status().description(),
            type_name::<K>(),
        );
    }
    longer
}
