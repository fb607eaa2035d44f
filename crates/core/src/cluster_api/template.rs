//! What differs between two templates so that Machines are made anew?
//!
//! Labels, annotations and whatever is propagated in place does not count.

use machinist_api::cluster_api::{MachineSpec, names::kind};

/// What is to be changed from `current` to `desired`, in Cluster API's words; empty when they are alike.
pub fn differences(current: &MachineSpec, desired: &MachineSpec) -> Vec<String> {
    let mut all = Vec::new();
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let made_of = |kind: &str| kind.strip_suffix(kind::TEMPLATE_SUFFIX).unwrap_or(kind).to_owned();
    if text(&current.version) != text(&desired.version) {
        all.push(format!(
            "Version {}, {} required",
            text(&current.version),
            text(&desired.version)
        ));
    }
    if current.bootstrap != desired.bootstrap {
        all.push(match &current.bootstrap.config_ref {
            Some(reference) => format!("{} is not up-to-date", made_of(&reference.kind)),
            None => {
                let name =
                    |value: &Option<String>| value.clone().unwrap_or_else(|| "nil".to_owned());
                format!(
                    "spec.bootstrap.dataSecretName {}, {} required",
                    name(&current.bootstrap.data_secret_name),
                    name(&desired.bootstrap.data_secret_name)
                )
            }
        });
    }
    if current.infrastructure_ref != desired.infrastructure_ref {
        all.push(format!("{} is not up-to-date", made_of(&current.infrastructure_ref.kind)));
    }
    if text(&current.failure_domain) != text(&desired.failure_domain) {
        all.push(format!(
            "Failure domain {}, {} required",
            text(&current.failure_domain),
            text(&desired.failure_domain)
        ));
    }
    all
}
