//! What do the MaintenancePolicies of a file say, and if they cannot be used, which field is wrong?
//!
//! The API server drops a field that it does not know, and a window with a typing error would be no
//! window: here an unknown field is an error.

use std::path::{Path, PathBuf};

use machinist_api::MaintenancePolicy;
use machinist_core::maintenance::policy;
use serde_json::Value;

use super::files::{documents, items};
use crate::failure::Hinted;

pub(super) fn read(files: &[PathBuf]) -> anyhow::Result<Vec<MaintenancePolicy>> {
    let mut policies = Vec::new();
    let mut faults = Vec::new();
    for file in files {
        let objects: Vec<Value> = documents(file)?.into_iter().flat_map(items).collect();
        if objects.is_empty() {
            faults.push(format!("{}: holds no object", file.display()));
        }
        for object in objects {
            match policy::read_manifest(&object) {
                Ok(policy) => policies.push(policy),
                Err(problems) => {
                    faults.extend(problems.iter().map(|problem| told(file, problem)));
                }
            }
        }
    }
    if faults.is_empty() {
        return Ok(policies);
    }
    let what = match faults.as_slice() {
        [one] => format!("a policy cannot be used: {one}"),
        all => format!("policies cannot be used:\n  {}", all.join("\n  ")),
    };
    let hint = "`kubectl explain maintenancepolicy.spec` names the fields; nothing was changed";
    Err(Hinted::new(what, hint).into())
}

fn told(file: &Path, problem: &str) -> String {
    format!("{}: {problem}", file.display())
}
