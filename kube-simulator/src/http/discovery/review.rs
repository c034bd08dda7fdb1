//! Reviews of rights and identities, such as `SelfSubjectAccessReview`. The simulator allows every
//! action.

use serde_json::{Value, json};

/// One kind of review: a request that asks about the rights or the identity of a user.
#[derive(Debug)]
pub(crate) struct Review {
    pub(super) group: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    pub(super) namespaced: bool,
    grant: fn() -> Value,
}

pub(super) const ALL: &[Review] = &[
    Review {
        group: "authentication.k8s.io",
        kind: "SelfSubjectReview",
        plural: "selfsubjectreviews",
        namespaced: false,
        grant: || json!({ "userInfo": user() }),
    },
    Review {
        group: "authentication.k8s.io",
        kind: "TokenReview",
        plural: "tokenreviews",
        namespaced: false,
        grant: || json!({ "authenticated": true, "user": user() }),
    },
    Review {
        group: "authorization.k8s.io",
        kind: "LocalSubjectAccessReview",
        plural: "localsubjectaccessreviews",
        namespaced: true,
        grant: allowed,
    },
    Review {
        group: "authorization.k8s.io",
        kind: "SelfSubjectAccessReview",
        plural: "selfsubjectaccessreviews",
        namespaced: false,
        grant: allowed,
    },
    Review {
        group: "authorization.k8s.io",
        kind: "SelfSubjectRulesReview",
        plural: "selfsubjectrulesreviews",
        namespaced: false,
        grant: || {
            json!({
                "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
                "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
                "incomplete": false,
            })
        },
    },
    Review {
        group: "authorization.k8s.io",
        kind: "SubjectAccessReview",
        plural: "subjectaccessreviews",
        namespaced: false,
        grant: allowed,
    },
];

/// Finds a kind of review. `group_version_path` is a path such as `apis/authentication.k8s.io/v1`.
pub(crate) fn review(group_version_path: &str, plural: &str, namespaced: bool) -> Option<&'static Review> {
    let group = group_version_path.strip_prefix("apis/")?.strip_suffix("/v1")?;
    let found = ALL.iter().find(|review| review.group == group && review.plural == plural);
    found.filter(|review| review.namespaced == namespaced)
}

pub(crate) fn has_reviews(group: &str) -> bool {
    ALL.iter().any(|review| review.group == group)
}

impl Review {
    /// Returns the review with `kind`, `apiVersion`, and a status that grants everything.
    pub(crate) fn grant(&self, mut review: Value) -> Value {
        review["kind"] = self.kind.into();
        review["apiVersion"] = format!("{}/v1", self.group).into();
        review["status"] = (self.grant)();
        review
    }
}

fn user() -> Value {
    json!({ "username": "simulator", "groups": ["system:masters", "system:authenticated"] })
}

fn allowed() -> Value {
    json!({ "allowed": true, "reason": "the simulator allows everything" })
}
