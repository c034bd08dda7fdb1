//! [`ListTweaks`]: what of its requests a user may have a say in.
//!
//! client-go: `TweakListOptionsFunc` of tools/cache/listwatch.go, which is called for each request and may change all of
//! it. The fact people get wrong: pages, and the watch that follows them, have to select the same objects. So what is
//! said here is said once, for all of them; and how the server is read (versions, pages, bookmarks, timeouts) is not
//! up for change.

use kube::core::Status;

use informer_core::ListWatchError;

/// The parameters that decide how lists and watches follow each other.
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

/// What can be changed of the lists and watches of a resource; it holds for all of them alike.
#[derive(Debug, Clone, Default)]
#[doc(alias = "TweakListOptionsFunc")]
pub struct ListTweaks {
    pub(super) resource: String,
    /// Limits the objects to those whose labels match, as in `app=web,tier!=cache`. Empty: all.
    pub label_selector: String,
    /// Limits the objects to those whose fields match, as in `spec.nodeName=node-1`. Empty: all.
    pub field_selector: String,
    pub(super) parameters: Vec<(String, String)>,
}

impl ListTweaks {
    /// Returns what is listed and watched, such as `pods` or `deployments.apps`.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// Adds a parameter to the query of every list and watch, or changes its value; an empty value takes it away.
    ///
    /// It is for what only some servers know, such as shards (KEP-5866):
    ///
    /// ```
    /// # use informer_reflector::ListTweaks;
    /// # let mut options = ListTweaks::default();
    /// let first_half = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";
    /// options.parameter("shardSelector", first_half);
    /// ```
    ///
    /// A server that doesn't know a parameter ignores it. One that decides how lists and watches follow each other
    /// (`resourceVersion`, `limit`, `continue`, `watch` and the like), or has a field here, is not accepted: every
    /// request then fails with what a server would answer, 400, before it is sent, and the health says why.
    pub fn parameter(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        let (name, value) = (name.into(), value.into());
        self.parameters.retain(|(known, _)| *known != name);
        self.parameters.push((name, value));
        self
    }

    /// # Errors
    /// A bad request, if one of the parameters is not for the user to set.
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
