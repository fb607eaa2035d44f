//! What is wrong with a providerSpec for AWS.

use serde_json::{Map, Value};

use super::{list, market, object, placement, shape_findings};
use crate::{
    admission::{
        fault::{invalid, required, unpopulated, unsupported},
        object::{Role, text},
    },
    decision::FieldError,
};

/// What a gp3 volume can be given, in MiB per second.
const THROUGHPUT_MIB: std::ops::RangeInclusive<i64> = 125..=2000;

/// Nobody reads more, and no instance has as many devices.
const FAULTY_DEVICES_MAX: usize = 100;

/// Says what is wrong. Fields of another type come alone: what the others mean is not known then.
pub fn faults(spec: &Map<String, Value>, role: Role) -> Vec<FieldError> {
    let findings = shape_findings(spec);
    if !findings.wrong.is_empty() {
        return findings.wrong;
    }
    let mut faults = missing_fields(spec);
    faults.extend(market::faults(spec));
    faults.extend(throughput_faults(spec));
    faults.extend(placement::faults(spec, role));
    faults.extend(one_of(spec, "networkInterfaceType", &["ENA", "EFA"]));
    faults.extend(authentication_fault(spec));
    faults.extend(confidential_compute_fault(spec));
    faults
}

fn missing_fields(spec: &Map<String, Value>) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if object(spec, "ami").and_then(|ami| text(ami, "id")).is_none() {
        faults.push(required("providerSpec.ami", "expected providerSpec.ami.id to be populated"));
    }
    if object(spec, "placement").and_then(|placement| text(placement, "region")).is_none() {
        faults.push(unpopulated("providerSpec.placement.region"));
    }
    if text(spec, "instanceType").is_none() {
        faults.push(unpopulated("providerSpec.instanceType"));
    }
    match object(spec, "userDataSecret") {
        None => faults.push(unpopulated("providerSpec.userDataSecret")),
        Some(secret) if text(secret, "name").is_none() => {
            faults.push(unpopulated("providerSpec.userDataSecret.name"));
        }
        Some(_) => {}
    }
    if object(spec, "credentialsSecret").is_none() {
        faults.push(unpopulated("providerSpec.credentialsSecret"));
    }
    faults
}

fn throughput_faults(spec: &Map<String, Value>) -> Vec<FieldError> {
    let fault = |(index, device): (usize, &Value)| {
        let ebs = device.get("ebs")?.as_object()?;
        let value = ebs.get("throughputMib").filter(|value| !value.is_null())?;
        let volume_type = text(ebs, "volumeType")?;
        let path = format!("providerSpec.blockDevices[{index}].ebs.throughputMib");
        if volume_type != "gp3" {
            return Some(invalid(path, value, "only volumes of type gp3 have a throughput"));
        }
        let is_possible = value.as_i64().is_some_and(|mib| THROUGHPUT_MIB.contains(&mib));
        (!is_possible).then(|| invalid(path, value, "must be between 125 and 2000"))
    };
    list(spec, "blockDevices")
        .iter()
        .enumerate()
        .filter_map(fault)
        .take(FAULTY_DEVICES_MAX)
        .collect()
}

fn authentication_fault(spec: &Map<String, Value>) -> Option<FieldError> {
    let authentication = text(object(spec, "metadataServiceOptions")?, "authentication")?;
    let is_known = matches!(authentication, "Optional" | "Required");
    (!is_known).then(|| {
        invalid(
            "providerSpec.metadataServiceOptions.authentication",
            &Value::from(authentication),
            "Allowed values are either 'Optional' or 'Required'",
        )
    })
}

fn confidential_compute_fault(spec: &Map<String, Value>) -> Option<FieldError> {
    const KNOWN: [&str; 2] = ["Disabled", "AMDEncryptedVirtualizationNestedPaging"];
    match object(spec, "cpuOptions")?.get("confidentialCompute").and_then(Value::as_str) {
        None => Some(required(
            "providerSpec.CPUOptions",
            "expected providerSpec.cpuOptions.confidentialCompute to be populated",
        )),
        Some(known) if KNOWN.contains(&known) => None,
        Some(other) => {
            Some(unsupported("providerSpec.CPUOptions.ConfidentialCompute", other, &KNOWN))
        }
    }
}

/// A field of the providerSpec that is empty or one of these.
fn one_of(spec: &Map<String, Value>, key: &str, supported: &[&str]) -> Option<FieldError> {
    let value = text(spec, key).filter(|value| !supported.contains(value))?;
    Some(unsupported(format!("providerSpec.{key}"), value, supported))
}
