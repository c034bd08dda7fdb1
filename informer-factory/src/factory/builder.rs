//! [`FactoryBuilder`]: what is the same for all informers of a factory.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_reflector::ListTweaks;
use kube::Client;

use super::SharedInformerFactory;

/// Builds a [`SharedInformerFactory`].
#[must_use]
pub struct FactoryBuilder {
    client: Client,
    config: FactoryConfig,
}

/// Changes what is asked for with every list and watch.
pub(super) type TweakListOptions = Arc<dyn Fn(&mut ListTweaks) + Send + Sync>;

#[derive(Default)]
pub(super) struct FactoryConfig {
    pub(super) namespace: Option<String>,
    pub(super) resync_period: Option<Duration>,
    pub(super) only_pages: bool,
    pub(super) tweak_list_options: Option<TweakListOptions>,
}

impl FactoryBuilder {
    pub(super) fn new(client: Client) -> Self {
        Self { client, config: FactoryConfig::default() }
    }

    /// Limits namespaced resources to one namespace. Default: all. Cluster-scoped resources are not affected.
    #[doc(alias = "WithNamespace")]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.config.namespace = Some(namespace.into());
        self
    }

    /// Sets how often handlers that ask for nothing else get every object handed out again. Default: never.
    #[doc(alias = "defaultResync")]
    pub fn default_resync(mut self, period: Duration) -> Self {
        self.config.resync_period = Some(period);
        self
    }

    /// Sets whether informers ask for what exists in streaming lists where the server has them, as
    /// [`ReflectorConfig::streaming_lists`](crate::ReflectorConfig::streaming_lists) says. Default: yes.
    #[doc(alias = "WatchListClient")]
    pub fn streaming_lists(mut self, wanted: bool) -> Self {
        self.config.only_pages = !wanted;
        self
    }

    /// Sets a function that changes what the informers ask for: selectors, and parameters that only some servers know.
    /// It is called once for each informer, when that is made, and can tell them apart by [`ListTweaks::resource`].
    ///
    /// ```no_run
    /// # fn build(client: kube::Client) {
    /// use informer_factory::SharedInformerFactory;
    ///
    /// let factory = SharedInformerFactory::builder(client)
    ///     .tweak_list_options(|options| options.label_selector = "app.kubernetes.io/part-of=shop".to_owned())
    ///     .build();
    /// # }
    /// ```
    #[doc(alias = "WithTweakListOptions")]
    pub fn tweak_list_options(mut self, tweak: impl Fn(&mut ListTweaks) + Send + Sync + 'static) -> Self {
        self.config.tweak_list_options = Some(Arc::new(tweak));
        self
    }

    /// Returns the factory. It has no informers yet, and asks nothing of the server.
    #[must_use]
    pub fn build(self) -> SharedInformerFactory {
        SharedInformerFactory::with_config(self.client, self.config)
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}

impl fmt::Debug for FactoryConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryConfig")
            .field("namespace", &self.namespace)
            .field("resync_period", &self.resync_period)
            .field("tweak_list_options", &self.tweak_list_options.is_some())
            .finish()
    }
}
