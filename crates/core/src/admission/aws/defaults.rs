//! What a providerSpec for AWS is given where it says nothing.

use serde_json::{Map, Value, json};

use super::{object, shape_findings};
use crate::{
    admission::{
        context::{Architecture, Context},
        object::text,
    },
    decision::FieldError,
};

/// The Secret that the machine configuration's user data for workers is in.
pub const USER_DATA_SECRET: &str = "worker-user-data";

/// The Secret that the cluster's credentials for machines are in.
pub const CREDENTIALS_SECRET: &str = "aws-cloud-credentials";

/// The instance type of a providerSpec that names none.
pub fn default_instance_type(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::Amd64 => "m5.large",
        Architecture::Arm64 => "m6g.large",
    }
}

/// A path inside the providerSpec, and what is to be there.
type Default = (&'static [&'static str], Value);

/// The fields that are missing; what is of another type cannot be completed.
pub fn defaults(
    spec: &Map<String, Value>,
    context: &Context,
) -> Result<Vec<Default>, Vec<FieldError>> {
    let findings = shape_findings(spec);
    if !findings.wrong.is_empty() {
        return Err(findings.wrong);
    }
    let mut defaults: Vec<Default> = Vec::new();
    if text(spec, "instanceType").is_none() {
        defaults.push((&["instanceType"], json!(default_instance_type(context.architecture))));
    }
    if object(spec, "placement").and_then(|placement| text(placement, "region")).is_none()
        && let Some(region) = &context.region
    {
        defaults.push((&["placement", "region"], json!(region)));
    }
    if object(spec, "userDataSecret").and_then(|secret| text(secret, "name")).is_none() {
        defaults.push((&["userDataSecret", "name"], json!(USER_DATA_SECRET)));
    }
    // One without a name is kept: it asks for the instance's own role.
    if object(spec, "credentialsSecret").is_none() {
        defaults.push((&["credentialsSecret", "name"], json!(CREDENTIALS_SECRET)));
    }
    Ok(defaults)
}
