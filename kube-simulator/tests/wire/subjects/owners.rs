//! The validation of owner references. The subject `garbage` covers their effects.

use serde_json::{Value, json};

use crate::objects::{secret, uid};
use crate::scenario::{Scenario, scenario};
use crate::server::Server;

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(an_owner_reference_is_kept_as_given),
        scenario(an_owner_reference_needs_a_uid),
        scenario(an_object_has_one_controller_at_most),
    ]
}

fn owned_by(owners: &Value) -> Value {
    let mut object = secret("owned");
    object["metadata"]["ownerReferences"] = owners.clone();
    object
}

async fn an_owner_reference_is_kept_as_given(server: Server) {
    let owner = server.create_secrets(&["owner"]).await;
    let reference = json!([{
        "apiVersion": "v1",
        "kind": "Secret",
        "name": "owner",
        "uid": uid(&owner),
        "controller": true,
        "blockOwnerDeletion": true,
    }]);
    let owned = server.create(&server.secrets(), &owned_by(&reference)).await;
    assert_eq!(owned["metadata"]["ownerReferences"], reference);
}

async fn an_owner_reference_needs_a_uid(server: Server) {
    let reference = json!([{ "apiVersion": "v1", "kind": "Secret", "name": "owner" }]);
    let message =
        "Secret \"owned\" is invalid: metadata.ownerReferences.uid: Invalid value: \"\": must not be empty";
    let refusal =
        server.post(&server.secrets(), &owned_by(&reference)).await.refused(422, "Invalid", message);
    refusal.has_causes(&[("FieldValueInvalid", "metadata.ownerReferences.uid")]);
}

async fn an_object_has_one_controller_at_most(server: Server) {
    let reference = |uid: &str| json!({ "apiVersion": "v1", "kind": "Secret", "name": "owner", "uid": uid, "controller": true });
    let answer = server.post(&server.secrets(), &owned_by(&json!([reference("1"), reference("2")]))).await;
    let message = "Only one reference can have Controller set to true. \
        Found \"true\" in references for Secret/owner and Secret/owner";
    answer
        .refused_with(422, "Invalid", message)
        .has_causes(&[("FieldValueInvalid", "metadata.ownerReferences")]);
}
