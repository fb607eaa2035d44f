//! May Machines be made of a template, and what differs between two so that they are made anew?

use machinist_api::cluster_api::{MachineSpec, TemplateMeta, names::kind};

use crate::{
    decision::FieldError,
    selector::{check_key, check_value, is_qualified_name},
};

/// So much the keys and values of all annotations of an object may be.
const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

/// Labels and annotations that the API server would refuse on every Machine.
pub fn check_metadata(path: &str, metadata: &TemplateMeta) -> Result<(), FieldError> {
    let of_labels = format!("{path}.labels");
    for (key, value) in &metadata.labels {
        check_key(&of_labels, key)?;
        check_value(&of_labels, value)?;
    }
    let of_annotations = format!("{path}.annotations");
    // Unlike a label's, an annotation's key may have upper case letters before its slash.
    let is_wrong = |key: &&String| !is_qualified_name(&key.to_lowercase());
    if let Some(key) = metadata.annotations.keys().find(is_wrong) {
        let problem = format!("Invalid value: {key:?}: must be a valid annotation key");
        return Err(FieldError::new(of_annotations, problem));
    }
    let bytes: usize =
        metadata.annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > ANNOTATION_BYTES_MAX {
        let problem = format!("Too long: may not be more than {ANNOTATION_BYTES_MAX} bytes");
        return Err(FieldError::new(of_annotations, problem));
    }
    Ok(())
}

/// Labels, annotations and whatever is propagated in place does not count. What is to be changed from `current` to `desired`, in Cluster API's words; empty when they are alike.
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
