//! [`Discovery`]: finds kind and scope of a resource by its name, and caches the server's response.
//!
//! client-go: `RESTMapper` of restmapper/discovery.go. `ForResource` of informers/generic.go
//! supports only built-in resources.

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::Client;
use kube::core::GroupVersionResource;
use kube::core::discovery::{ApiResource, Scope};
use thiserror::Error;
use tokio::time::Instant;

/// How long a discovery response is cached, unless it lacks the requested resource.
const CACHE_TTL: Duration = Duration::from_secs(10 * 60);

/// The requested resource cannot have an informer, or its discovery failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ForResourceError {
    /// The server does not serve the requested version of the group. The factory does not cache
    /// this response.
    #[error(
        "the server does not serve {api_version}, the group version of \"{resource}\"; check group and version, or install \
         the CustomResourceDefinition"
    )]
    VersionNotServed {
        /// The group and version, such as `stable.example.com/v1`.
        api_version: String,
        /// The requested resource.
        resource: String,
    },
    /// The group version has no resource of this name.
    #[error("{api_version} has no resource \"{resource}\"; {}", remedy(suggestion.as_deref(), existing))]
    UnknownResource {
        /// The group and version, such as `apps/v1`.
        api_version: String,
        /// The requested resource.
        resource: String,
        /// The plural name of the resource that was probably meant, such as `deployments`. `Some`
        /// if the requested name is a resource's kind, plural, singular or short name, ignoring
        /// case.
        suggestion: Option<String>,
        /// The resources of the group version, without subresources.
        existing: Vec<String>,
    },
    /// The server cannot list or watch the resource.
    #[error(
        "\"{resource}\" of {api_version} cannot have an informer: the server does not support {missing}; use kube::Api for \
         requests of this resource"
    )]
    NotWatchable {
        /// The group and version, such as `authentication.k8s.io/v1`.
        api_version: String,
        /// The requested resource.
        resource: String,
        /// The missing verbs: `list`, `watch`, or both.
        missing: String,
    },
    /// The discovery request failed.
    #[error("failed to discover the resources of {api_version}")]
    Failed {
        /// The group and version.
        api_version: String,
        /// The cause.
        #[source]
        source: kube::Error,
    },
}

fn remedy(suggestion: Option<&str>, existing: &[String]) -> String {
    match suggestion {
        Some(plural) => format!("use the plural \"{plural}\""),
        None if existing.is_empty() => "the server has no resources in this group version".to_owned(),
        None => format!("existing resources: {}", existing.join(", ")),
    }
}

/// A cache of discovery responses, by group and version.
#[derive(Default)]
pub(super) struct Discovery {
    responses: DashMap<String, Response>,
}

#[derive(Clone)]
struct Response {
    resources: Arc<[APIResource]>,
    since: Instant,
}

impl Discovery {
    pub(super) async fn find(
        &self,
        client: &Client,
        wanted: &GroupVersionResource,
    ) -> Result<(ApiResource, Scope), ForResourceError> {
        let api_version = api_version(wanted);
        let cached = self.responses.get(&api_version).map(|response| response.clone());
        if let Some(response) = cached.filter(|response| response.since.elapsed() < CACHE_TTL)
            && let Some(resource) = named(&response.resources, &wanted.resource)
        {
            return watchable(wanted, api_version, resource);
        }
        let resources = request_resources(client, wanted, &api_version).await?;
        let response = Response { resources: resources.into(), since: Instant::now() };
        self.responses.insert(api_version.clone(), response.clone());
        match named(&response.resources, &wanted.resource) {
            Some(resource) => watchable(wanted, api_version, resource),
            None => Err(unknown(wanted, api_version, &response.resources)),
        }
    }
}

fn api_version(wanted: &GroupVersionResource) -> String {
    match wanted.group.as_str() {
        "" => wanted.version.clone(),
        group => format!("{group}/{}", wanted.version),
    }
}

async fn request_resources(
    client: &Client,
    wanted: &GroupVersionResource,
    api_version: &str,
) -> Result<Vec<APIResource>, ForResourceError> {
    let response = match wanted.group.as_str() {
        "" => client.list_core_api_resources(api_version).await,
        _ => client.list_api_group_resources(api_version).await,
    };
    match response {
        Ok(list) => Ok(list.resources),
        Err(kube::Error::Api(status)) if status.code == 404 => Err(ForResourceError::VersionNotServed {
            api_version: api_version.to_owned(),
            resource: wanted.resource.clone(),
        }),
        Err(source) => Err(ForResourceError::Failed { api_version: api_version.to_owned(), source }),
    }
}

fn named<'a>(resources: &'a [APIResource], name: &str) -> Option<&'a APIResource> {
    resources.iter().find(|resource| resource.name == name)
}

/// Returns the resource and its scope, or an error if an informer cannot list and watch it.
fn watchable(
    wanted: &GroupVersionResource,
    api_version: String,
    resource: &APIResource,
) -> Result<(ApiResource, Scope), ForResourceError> {
    let lacks = |verb: &&str| !resource.verbs.iter().any(|offered| offered == verb);
    let missing: Vec<_> = ["list", "watch"].into_iter().filter(lacks).collect();
    if !missing.is_empty() {
        let (resource, missing) = (wanted.resource.clone(), missing.join(" and "));
        return Err(ForResourceError::NotWatchable { api_version, resource, missing });
    }
    let scope = if resource.namespaced { Scope::Namespaced } else { Scope::Cluster };
    let resource = ApiResource {
        group: wanted.group.clone(),
        version: wanted.version.clone(),
        api_version,
        kind: resource.kind.clone(),
        plural: resource.name.clone(),
    };
    Ok((resource, scope))
}

fn unknown(
    wanted: &GroupVersionResource,
    api_version: String,
    resources: &[APIResource],
) -> ForResourceError {
    let whole: Vec<_> = resources.iter().filter(|resource| !resource.name.contains('/')).collect();
    let is = |name: &str| name.eq_ignore_ascii_case(&wanted.resource);
    let meant = whole.iter().find(|resource| {
        is(&resource.name)
            || is(&resource.kind)
            || is(&resource.singular_name)
            || resource.short_names.iter().flatten().any(|name| is(name))
    });
    let suggestion = meant.map(|resource| resource.name.clone());
    let mut existing: Vec<_> = whole.iter().map(|resource| resource.name.clone()).collect();
    existing.sort_unstable();
    ForResourceError::UnknownResource { api_version, resource: wanted.resource.clone(), suggestion, existing }
}
