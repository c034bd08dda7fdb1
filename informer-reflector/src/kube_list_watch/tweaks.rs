//! [`ListTweaks`]: the parameters of requests that a user can set.
//!
//! client-go: `TweakListOptionsFunc` of tools/cache/listwatch.go, which is called for each request
//! and can change all of it. Here, the parameters are the same for all pages and watches, which
//! must select the same objects. Versions, pages, bookmarks and timeouts can't be changed.

use kube::core::Status;

use informer_core::ListWatchError;

/// The parameters that only the reflector sets.
const RESERVED: [&str; 10] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];

/// The parameters of all lists and watches of a resource that a user can set.
#[derive(Debug, Clone, Default)]
#[doc(alias = "TweakListOptionsFunc")]
pub struct ListTweaks {
    pub(super) resource: String,
    /// A label selector, such as `app=web,tier!=cache`. Empty: all objects.
    pub label_selector: String,
    /// A field selector, such as `spec.nodeName=node-1`. Empty: all objects.
    pub field_selector: String,
    pub(super) parameters: Vec<(String, String)>,
}

impl ListTweaks {
    /// Returns the resource, such as `pods` or `deployments.apps`.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// Sets a parameter of all lists and watches; an empty value removes it.
    ///
    /// Use it for parameters of single servers, such as shards (KEP-5866):
    ///
    /// ```
    /// # use informer_reflector::ListTweaks;
    /// # let mut options = ListTweaks::default();
    /// let first_half = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";
    /// options.parameter("shardSelector", first_half);
    /// ```
    ///
    /// Servers ignore unknown parameters. Parameters that the reflector sets (`resourceVersion`,
    /// `limit`, `continue`, `watch` and others) or that have a field here are invalid: every
    /// request then fails with the error 400 before it is sent.
    pub fn parameter(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        let (name, value) = (name.into(), value.into());
        self.parameters.retain(|(known, _)| *known != name);
        self.parameters.push((name, value));
        self
    }

    /// # Errors
    /// A bad request, if the user can't set one of the parameters.
    pub(super) fn check(&self) -> Result<(), ListWatchError> {
        let Some((name, _)) = self.parameters.iter().find(|(name, _)| RESERVED.contains(&name.as_str()))
        else {
            return Ok(());
        };
        let remedy = match name.as_str() {
            "labelSelector" | "fieldSelector" => "set the field of that name instead",
            _ => "lists and watches of an informer depend on it; take it out of the list options",
        };
        let message = format!("the parameter \"{name}\" can't be set for {}: {remedy}", self.resource);
        let status = Status::failure(&message, "BadRequest").with_code(400);
        Err(ListWatchError::from(Box::new(status)))
    }
}
