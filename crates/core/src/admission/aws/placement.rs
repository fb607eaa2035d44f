//! What is wrong with where an instance is to run: tenancy, host, placement group.

use serde_json::{Map, Value};

use super::{is_id, list, object};
use crate::{
    admission::{
        fault::{forbidden, invalid, required, unsupported},
        object::{Role, text},
    },
    decision::FieldError,
};

const HOST: &str = "spec.placement.host";
const AFFINITY: &str = "spec.placement.host.affinity";
const DEDICATED: &str = "spec.placement.host.dedicatedHost";
const ID: &str = "spec.placement.host.dedicatedHost.id";
const DYNAMIC: &str = "spec.placement.host.dedicatedHost.dynamicHostAllocation";
const STRATEGY: &str = "spec.placement.host.dedicatedHost.allocationStrategy";

/// EC2 takes no more tags on a resource.
const HOST_TAGS_MAX: usize = 50;

pub fn faults(spec: &Map<String, Value>, role: Role) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if let Some(placement) = object(spec, "placement") {
        faults.extend(tenancy_faults(placement, role));
        if let Some(host) = object(placement, "host") {
            faults.extend(host_faults(host));
        }
    }
    faults.extend(partition_fault(spec));
    faults
}

fn tenancy_faults(placement: &Map<String, Value>, role: Role) -> Vec<FieldError> {
    const TENANCIES: [&str; 3] = ["default", "dedicated", "host"];
    let tenancy = text(placement, "tenancy");
    let mut faults = Vec::new();
    if object(placement, "host").is_some() && tenancy != Some("host") {
        faults.push(forbidden(HOST, "may only be set when the tenancy is host"));
    }
    match (tenancy, role) {
        (Some("host"), Role::ControlPlane) => faults.push(forbidden(
            "spec.placement.tenancy",
            "host is not for machines of the control plane",
        )),
        (Some(other), _) if !TENANCIES.contains(&other) => {
            faults.push(unsupported("providerSpec.tenancy", other, &TENANCIES));
        }
        (Some(_) | None, _) => {}
    }
    faults
}

fn host_faults(host: &Map<String, Value>) -> Vec<FieldError> {
    let dedicated = object(host, "dedicatedHost");
    let is_dynamic = dedicated.and_then(|host| text(host, "allocationStrategy")) == Some("Dynamic");
    let mut faults = Vec::new();
    match text(host, "affinity") {
        None => faults.push(required(AFFINITY, "expected AnyAvailable or DedicatedHost")),
        Some(any @ "AnyAvailable") if is_dynamic => faults.push(invalid(
            AFFINITY,
            &Value::from(any),
            "must be DedicatedHost when the host is allocated for the machine",
        )),
        Some("DedicatedHost") if dedicated.is_none() => {
            faults.push(required(DEDICATED, "affinity DedicatedHost needs a host"));
        }
        Some("AnyAvailable" | "DedicatedHost") => {}
        Some(other) => {
            faults.push(unsupported(AFFINITY, other, &["AnyAvailable", "DedicatedHost"]));
        }
    }
    faults.extend(dedicated.map(dedicated_host_faults).unwrap_or_default());
    faults
}

/// A host without a strategy is the user's.
fn dedicated_host_faults(host: &Map<String, Value>) -> Vec<FieldError> {
    let id = text(host, "id");
    let dynamic = object(host, "dynamicHostAllocation");
    let mut faults = Vec::new();
    match text(host, "allocationStrategy") {
        None | Some("UserProvided") => {
            match id {
                None => faults.push(required(ID, "a host of the user's is named by its id")),
                Some(id) if !is_id(id, "h-", &[8, 17]) => faults.push(invalid(
                    ID,
                    &Value::from(id),
                    "must be 'h-' and 8 or 17 lower case hexadecimal characters",
                )),
                Some(_) => {}
            }
            if dynamic.is_some() {
                faults.push(forbidden(
                    DYNAMIC,
                    "may only be set when the allocationStrategy is Dynamic",
                ));
            }
        }
        Some("Dynamic") => {
            if id.is_some() {
                faults.push(forbidden(ID, "may not be set when the allocationStrategy is Dynamic"));
            }
            faults.extend(dynamic.and_then(tags_fault));
        }
        Some(other) => {
            faults.push(unsupported(STRATEGY, other, &["UserProvided", "Dynamic"]));
        }
    }
    faults
}

fn tags_fault(dynamic: &Map<String, Value>) -> Option<FieldError> {
    match list(dynamic, "tags").len() {
        0 => Some(required(DYNAMIC, "expected between 1 and 50 tags")),
        1..=HOST_TAGS_MAX => None,
        more => Some(invalid(DYNAMIC, &Value::from(more), "expected between 1 and 50 tags")),
    }
}

fn partition_fault(spec: &Map<String, Value>) -> Option<FieldError> {
    const PATH: &str = "providerSpec.placementGroupPartition";
    let value = spec.get("placementGroupPartition").filter(|value| !value.is_null())?;
    if !value.as_i64().is_some_and(|partition| (1..=7).contains(&partition)) {
        return Some(invalid(PATH, value, "must be between 1 and 7"));
    }
    text(spec, "placementGroupName")
        .is_none()
        .then(|| invalid(PATH, value, "providerSpec.placementGroupName must be set with it"))
}
