//! [`Derived`]: the settings of a type's `#[derive(Informer)]`, and functions that create informers
//! with them.

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
use informer_core::{AnyObject, AnySource, ListerWatcher};
use informer_reflector::KubeListWatch;
use informer_store::IndexValue;

/// The settings that a type has in `#[derive(Informer)]`. The derive implements this trait for the
/// type or, if the type is the spec of a custom resource, for the custom resource.
#[diagnostic::on_unimplemented(
    message = "`{Self}` doesn't derive `Informer`",
    note = "add `#[derive(Informer)]` to this type or, for a custom resource, to its spec"
)]
pub trait Derived: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + Sized + 'static {
    /// The paths of the fields that are skipped when objects are decoded, besides
    /// `metadata.managedFields`.
    const PRUNED: &'static [&'static str];

    /// The resync period that the derive sets for handlers without their own period; `None` if it
    /// sets none.
    const DEFAULT_RESYNC: Option<Duration>;

    /// Adds the indexes of `#[derive(Informer)]` that the informer does not have.
    fn add_indices(informer: &SharedIndexInformer<Self>);
}

/// Returns the factory's informer of a type, and creates it on first use. The settings of the
/// factory's builder take precedence over those of `#[derive(Informer)]`.
#[must_use]
pub fn shared_informer<K>(factory: &SharedInformerFactory) -> SharedIndexInformer<K>
where
    K: Derived,
    K::Scope: InformerScope,
{
    let informer = factory.informer_with(|list_watch, options| match factory.has_prune_setting::<K>() {
        true => informer_with_defaults(Arc::new(list_watch.cast()), options),
        false => new_informer(list_watch, options),
    });
    // The informer may have been created by another call, without the derive's indexes.
    K::add_indices(&informer);
    informer
}

/// Creates an informer and its task, with the settings of `#[derive(Informer)]`.
pub fn new_informer<K: Derived>(
    list_watch: KubeListWatch<K>,
    options: InformerOptions<K>,
) -> (SharedIndexInformer<K>, InformerTask) {
    let list_watch = if K::PRUNED.is_empty() { list_watch } else { list_watch.prune(prune_paths::<K>()) };
    informer_with_defaults(Arc::new(list_watch.cast()), options)
}

/// Creates an informer and its task from any source, with the settings of `#[derive(Informer)]`
/// except the pruned fields: `lister_watcher` decides which fields to decode.
pub fn new_informer_from<K: Derived>(
    lister_watcher: Arc<dyn ListerWatcher<K>>,
    options: InformerOptions<K>,
) -> (SharedIndexInformer<K>, InformerTask) {
    informer_with_defaults(Arc::new(AnySource(lister_watcher)), options)
}

fn informer_with_defaults<K: Derived>(
    lister_watcher: Arc<dyn ListerWatcher<AnyObject>>,
    options: InformerOptions<K>,
) -> (SharedIndexInformer<K>, InformerTask) {
    let options = options.resync_period_unless_set(K::DEFAULT_RESYNC);
    let (informer, task) = SharedIndexInformer::over(lister_watcher, options);
    K::add_indices(&informer);
    (informer, task)
}

fn prune_paths<K: Derived>() -> PrunePaths {
    let paths = K::PRUNED.iter().try_fold(PrunePaths::default(), |paths, path| paths.with_path(path));
    paths.expect("the derive has checked the paths")
}

/// Returns the handle of an index, and adds the index if it is missing.
///
/// If the informer has an index of this name with values of another type, the new index is added
/// under a longer name, which contains the type of its values. So the methods that the derive
/// generates never fail.
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
            // Another thread has just removed the index, or failed to add it; retry.
            Err(_) => {}
        }
    }
}

/// Returns a longer index name, made of the taken `name` and the type `V`. Logs the conflict,
/// unless the informer has an index with the longer name.
fn longer_name<K: Send + Sync + 'static, V>(informer: &SharedIndexInformer<K>, name: &str) -> String {
    let longer = format!("{name} of {}", type_name::<V>());
    if !informer.indexer().index_names().contains(&longer) {
        tracing::error!(
            resource = informer.status().description(),
            index = name,
            registered_as = longer,
            type_name = type_name::<K>(),
            "the name of this index of `#[derive(Informer)]` belongs to an index with values of another type, so \
             the index was added with the name in `registered_as`; rename one of the two indexes"
        );
    }
    longer
}
