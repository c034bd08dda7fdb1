//! [`ListTweaks`]: the parameters of requests that a user can set.
//!
//! client-go: `TweakListOptionsFunc` of informers/internalinterfaces, which is called for each
//! request and can change every option. Here, all pages and watches get the same parameters,
//! because they must select the same objects. Resource versions, page limits, bookmarks and
//! timeouts can't be changed.

use informer_core::ListWatchError;

/// The parameters that [`ListTweaks::parameter`] can't set: the reflector sets them, or
/// [`ListTweaks`] has a field for them.
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
    /// A label selector, such as `app=web,tier!=cache`. An empty selector selects all objects.
    pub label_selector: String,
    /// A field selector, such as `spec.nodeName=node-1`. An empty selector selects all objects.
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
    /// Use this method for parameters that only some servers support, such as shard selectors
    /// (KEP-5866):
    ///
    /// ```
    /// # use informer_reflector::ListTweaks;
    /// # let mut options = ListTweaks::default();
    /// let first_half = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";
    /// options.parameter("shardSelector", first_half);
    /// ```
    ///
    /// Servers ignore unknown parameters. A parameter is invalid if the reflector sets it
    /// (`resourceVersion`, `limit`, `continue`, `watch` and others) or if [`ListTweaks`] has a
    /// field for it. If a parameter is invalid, every list and watch fails with
    /// [`ListWatchError::InvalidRequest`], and sends no request.
    pub fn parameter(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        let (name, value): (String, String) = (name.into(), value.into());
        self.parameters.retain(|(known, _)| *known != name);
        if !value.is_empty() {
            self.parameters.push((name, value));
        }
        self
    }

    /// Returns an error if the user has set a [reserved](RESERVED) parameter, such as `limit`.
    pub(super) fn check(&self) -> Result<(), ListWatchError> {
        let Some((name, _)) = self.parameters.iter().find(|(name, _)| RESERVED.contains(&name.as_str()))
        else {
            return Ok(());
        };
        let remedy = match name.as_str() {
            "labelSelector" => "set `ListTweaks::label_selector` instead",
            "fieldSelector" => "set `ListTweaks::field_selector` instead",
            _ => "the reflector sets it; remove it from the list options",
        };
        let message = format!("the parameter \"{name}\" can't be set for {}: {remedy}", self.resource);
        Err(ListWatchError::InvalidRequest(message.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_value_removes_a_reserved_parameter() {
        let mut options = ListTweaks::default();
        options.parameter("limit", "5");
        assert!(options.check().is_err());
        options.parameter("limit", "");
        assert!(options.check().is_ok());
    }
}
