//! The table cells of volumes, volume claims, storage classes and CSI objects.

use serde_json::Value;

use super::super::text::{access_modes, elements, or_none, text, text_or};
use super::{is_terminating, len, name_with_default};

pub(super) fn of_volume(kind: &str, column: &str, volume: &Value) -> Option<Value> {
    let (spec, status) = (&volume["spec"], &volume["status"]);
    let is_claim = kind == "PersistentVolumeClaim";
    let is_bound = !is_claim || !text(&spec["volumeName"]).is_empty();
    let holder = if is_claim { status } else { spec };
    Some(match column {
        "Status" if is_terminating(volume) => "Terminating".into(),
        "Status" => text(&status["phase"]).into(),
        "Volume" => text(&spec["volumeName"]).into(),
        "Capacity" | "Access Modes" if !is_bound => "".into(),
        "Capacity" => text_or(&holder["capacity"]["storage"], "0"),
        "Access Modes" => access_modes(&holder["accessModes"]).into(),
        "Reclaim Policy" => text(&spec["persistentVolumeReclaimPolicy"]).into(),
        "Claim" => match &spec["claimRef"] {
            Value::Object(claim) => {
                let part = |name: &str| claim.get(name).map_or("", text);
                format!("{}/{}", part("namespace"), part("name")).into()
            }
            _ => "".into(),
        },
        "StorageClass" => {
            let annotation = &volume["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
            annotation.as_str().unwrap_or(text(&spec["storageClassName"])).into()
        }
        "VolumeAttributesClass" => text_or(&spec["volumeAttributesClassName"], "<unset>"),
        "Reason" => text(&status["reason"]).into(),
        "VolumeMode" => text_or(&spec["volumeMode"], "<unset>"),
        _ => return None,
    })
}

pub(super) fn of_storage(kind: &str, column: &str, object: &Value) -> Option<Value> {
    let spec = &object["spec"];
    let flag = |field: &str, otherwise: bool| Value::Bool(spec[field].as_bool().unwrap_or(otherwise));
    Some(match (kind, column) {
        ("StorageClass", "Name") => {
            name_with_default(object, "storageclass.kubernetes.io/is-default-class").into()
        }
        (_, "Provisioner") => text(&object["provisioner"]).into(),
        (_, "ReclaimPolicy") => text_or(&object["reclaimPolicy"], "Delete"),
        (_, "VolumeBindingMode") => text_or(&object["volumeBindingMode"], "Immediate"),
        (_, "AllowVolumeExpansion") => object["allowVolumeExpansion"].as_bool().unwrap_or(false).into(),
        (_, "AttachRequired") => flag("attachRequired", true),
        (_, "PodInfoOnMount") => flag("podInfoOnMount", false),
        (_, "StorageCapacity") => flag("storageCapacity", false),
        (_, "RequiresRepublish") => flag("requiresRepublish", false),
        (_, "TokenRequests") if spec["tokenRequests"].is_array() => {
            let requests = elements(&spec["tokenRequests"]).iter().map(|request| text(&request["audience"]));
            requests.collect::<Vec<_>>().join(",").into()
        }
        (_, "TokenRequests") => "<unset>".into(),
        (_, "Modes") => {
            let modes = elements(&spec["volumeLifecycleModes"]).iter().map(text);
            or_none(&modes.collect::<Vec<_>>().join(",").into())
        }
        (_, "Drivers") => len(&spec["drivers"]).into(),
        (_, "Attacher") => text(&spec["attacher"]).into(),
        (_, "PV") => text(&spec["source"]["persistentVolumeName"]).into(),
        (_, "Node") => text(&spec["nodeName"]).into(),
        (_, "Attached") => object["status"]["attached"].as_bool().unwrap_or(false).into(),
        _ => return None,
    })
}
