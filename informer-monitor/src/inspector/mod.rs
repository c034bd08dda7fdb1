//! [`Inspector`]: a web page that shows the informers of a program while they run. Nothing here
//! writes to the cluster or to an informer.

mod api;
mod changes;
mod diff;
mod mask;
mod overview;
mod path;
mod query;
mod search;
mod serve;
mod view;

use std::fmt;
use std::sync::Arc;

use informer_controller::RunnerMonitor;
use informer_factory::{SharedIndexInformer, SharedInformerFactory};
use kube::Resource;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use mask::Mask;
use view::View;

pub use path::PathError;
pub use serve::InspectorError;

/// Maximum number of object searches that run at the same time. Further searches wait, so that
/// searches do not occupy all blocking threads of the runtime.
const MAX_SEARCHES: usize = 2;

/// A web page that shows the informers of a factory while they run: health, the resource version
/// that the store has reached, queue, events per second, handlers with their lag, objects that
/// can't be decoded or transformed, recent lists and their causes, and controllers. The page is
/// read-only.
///
/// The page shows the objects of an informer only if the program [registers](Self::objects) the
/// informer. The values in `data` and `stringData` of Secrets are always masked;
/// [`mask`](Self::mask) adds other fields.
///
/// ```no_run
/// use informer_factory::SharedInformerFactory;
/// use informer_monitor::Inspector;
///
/// # async fn run(factory: SharedInformerFactory) -> Result<(), Box<dyn std::error::Error>> {
/// let pods = factory.core().v1().pods();
/// let inspector = Inspector::new(&factory).objects(&pods).mask("spec.containers.env.value")?;
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// println!("inspector: http://{}/", listener.local_addr()?);
/// tokio::spawn(inspector.serve(listener));
/// # Ok(())
/// # }
/// ```
///
/// # Access
///
/// Everybody who can read the page can read the registered objects. [`serve`](Self::serve) on a
/// loopback address needs no token, but without one, all users of this machine can read the page.
/// `kubectl port-forward` reaches it in a pod. Other addresses, and
/// [`into_router`](Self::into_router), need a [`token`](Self::token).
/// [`serve_unix`](Self::serve_unix) needs no token: only the user of this process can connect to
/// the socket.
///
/// # Costs
///
/// While no browser reads the page, the inspector costs one handler per registered informer. The
/// handler keeps the last 200 changes with the old states of their objects. The inspector keeps the
/// factory and the registered informers alive until it is dropped.
#[must_use = "an inspector shows nothing until it is served"]
pub struct Inspector {
    shown: Shown,
}

/// The informers and controllers that the page shows, the masked fields, and the access token.
struct Shown {
    factory: SharedInformerFactory,
    views: Vec<View>,
    controllers: Vec<RunnerMonitor>,
    mask: Mask,
    token: Option<String>,
    searches: Arc<Semaphore>,
    started: Instant,
}

impl Inspector {
    /// Returns an inspector of all informers of the factory, including those that are requested
    /// later. No objects are shown until [`objects`](Self::objects) is called.
    pub fn new(factory: &SharedInformerFactory) -> Self {
        let shown = Shown {
            factory: factory.clone(),
            views: Vec::new(),
            controllers: Vec::new(),
            mask: Mask::default(),
            token: None,
            searches: Arc::new(Semaphore::new(MAX_SEARCHES)),
            started: Instant::now(),
        };
        Self { shown }
    }

    /// Shows the objects of an informer of the factory, and their last changes. If the informer
    /// stores its objects encoded, an object is decoded only while a request reads the object.
    pub fn objects<K>(mut self, informer: &SharedIndexInformer<K>) -> Self
    where
        K: Resource + Serialize + Send + Sync + 'static,
    {
        self.shown.views.push(View::new(informer));
        self
    }

    /// Shows a controller: its queue, failed keys with their errors, and parked keys, which wait
    /// until a cache has the data that they need. `monitor` is the result of
    /// [`ControllerRunner::monitor`](informer_controller::ControllerRunner::monitor).
    pub fn controller(mut self, monitor: RunnerMonitor) -> Self {
        self.shown.controllers.push(monitor);
        self
    }

    /// Masks a field of all objects: its value is not shown, and a search does not find it. If the
    /// value is an object, the names of its fields stay visible. Keys, UIDs, resource versions and
    /// creation times of objects are always shown.
    ///
    /// A path consists of field names of the object's JSON, separated by dots:
    ///
    /// - `spec.containers.env.value` masks the `value` of each environment variable in each
    ///   container. Lists need no notation of their own.
    /// - `data.tls.key` masks the field `tls.key` of `data`, although its name contains a dot.
    /// - `data.*` masks all fields of `data`.
    /// - `data.tls.*` masks all fields of `data` whose names begin with `tls.`.
    /// - `data['0']` masks the field `0` of `data`. Use quotes if a name looks like an index.
    ///
    /// If the annotation of `kubectl apply` repeats a masked field, the annotation is masked, too.
    /// `metadata.managedFields` can repeat values of lists, so this method masks it, too.
    ///
    /// Note: an index over a masked field reveals the field's values to a search, and errors of the
    /// index function can contain them. Exclude such an index with
    /// [`hide_index`](Self::hide_index).
    ///
    /// # Errors
    /// [`PathError`] if `path` is not a valid path of field names.
    pub fn mask(mut self, path: &str) -> Result<Self, PathError> {
        self.shown.mask.add(path)?;
        Ok(self)
    }

    /// Excludes the indexes with this name, of all informers, from the searches of the page. The
    /// errors of their functions are masked.
    pub fn hide_index(mut self, name: &str) -> Self {
        self.shown.mask.add_index(name);
        self
    }

    /// Sets the token that requests must present. Default: none.
    ///
    /// A browser presents the token once, as `http://…/inspect/?token=TOKEN`, and then in a cookie.
    /// Other clients send the header `Authorization: Bearer TOKEN`. Without TLS, the token can be
    /// read on the network.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.shown.token = Some(token.into());
        self
    }
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspector")
            .field("factory", &self.shown.factory)
            .field("informers_with_objects", &self.shown.views.len())
            .field("controllers", &self.shown.controllers.len())
            .field("has_token", &self.shown.token.is_some())
            .finish_non_exhaustive()
    }
}
