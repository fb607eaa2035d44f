//! Which of OpenShift's features are on, as far as the cluster says.

use machinist_api::openshift_config::FeatureGate;

/// Machines may be handed over between the Machine API and the Cluster API.
pub const MACHINE_API_MIGRATION: &str = "MachineAPIMigration";
/// Another component looks after MachineHealthChecks.
pub const NO_HEALTH_CHECKS: &str = "MachineAPIOperatorDisableMachineHealthCheckController";

/// Whether a feature is on in this release; none where nobody says: the cluster has no such object,
/// or it does not speak of the release or of the feature.
pub fn is_enabled(gates: Option<&FeatureGate>, release: &str, feature: &str) -> Option<bool> {
    let known = &gates?.status.as_ref()?.feature_gates;
    let of_release = known.iter().find(|one| one.version == release);
    // A process that was not told its release runs in the only one there is.
    let details = of_release.or_else(|| known.first().filter(|_| known.len() == 1))?;
    let names = |list: &[machinist_api::openshift_config::FeatureName]| {
        list.iter().any(|one| one.name == feature)
    };
    if names(&details.enabled) {
        return Some(true);
    }
    names(&details.disabled).then_some(false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_feature_is_that_of_the_release() {
        let gates: FeatureGate = serde_json::from_value(json!({
            "metadata": { "name": "cluster" }, "spec": {},
            "status": { "featureGates": [
                { "version": "1", "enabled": [{ "name": "A" }], "disabled": [{ "name": "B" }] },
                { "version": "2", "enabled": [{ "name": "B" }], "disabled": [{ "name": "A" }] },
            ] },
        }))
        .unwrap();
        let table = [
            ("1", "A", Some(true)),
            ("1", "B", Some(false)),
            ("2", "A", Some(false)),
            ("2", "B", Some(true)),
            ("2", "C", None),
            ("3", "A", None),
        ];
        for (release, feature, expected) in table {
            assert_eq!(is_enabled(Some(&gates), release, feature), expected, "{release} {feature}");
        }
        assert_eq!(is_enabled(None, "1", "A"), None);
        let mut only = gates;
        only.status.as_mut().unwrap().feature_gates.truncate(1);
        assert_eq!(is_enabled(Some(&only), "", "A"), Some(true), "the only release there is");
        only.status = None;
        assert_eq!(is_enabled(Some(&only), "1", "A"), None);
    }
}
