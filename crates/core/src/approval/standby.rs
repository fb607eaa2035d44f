//! Whether another approver of the same cluster is at work: OpenShift's own.

use k8s_openapi::api::apps::v1::Deployment;
use machinist_api::names::reason;

use crate::decision::Wait;

/// Where OpenShift's own approver runs.
pub const OTHER_NAMESPACE: &str = "openshift-cluster-machine-approver";
pub const OTHER_DEPLOYMENT: &str = "machine-approver";

/// What is known of the other approver.
#[derive(Clone, Copy, Debug)]
pub enum OtherApprover<'a> {
    /// The cluster is not OpenShift's.
    NoSuchThing,
    /// Nobody has said yet whether there is one.
    Unknown,
    Known(Option<&'a Deployment>),
}

/// Why nothing is approved; none when it is ours to do. Two that approve would do no harm, but whoever
/// looks at one of them must see all of it.
pub fn standby(other: OtherApprover<'_>) -> Option<Wait> {
    let deployment = match other {
        OtherApprover::NoSuchThing | OtherApprover::Known(None) => return None,
        OtherApprover::Unknown => {
            let message = "it is not known yet whether OpenShift's own approver runs";
            return Some(Wait::on(reason::ANOTHER_APPROVER, message));
        }
        OtherApprover::Known(Some(deployment)) => deployment,
    };
    let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    (replicas > 0 && deployment.metadata.deletion_timestamp.is_none()).then(|| {
        let message = format!(
            "Deployment {OTHER_NAMESPACE}/{OTHER_DEPLOYMENT} approves certificates; scale it to 0 \
             to have them approved here"
        );
        Wait::on(reason::ANOTHER_APPROVER, message)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn we_stand_by_while_the_other_runs() {
        let of = |metadata: Value, spec: Value| -> Deployment {
            let template = json!({ "metadata": {}, "spec": { "containers": [] } });
            let mut object = json!({ "metadata": metadata, "spec": spec });
            object["spec"]["selector"] = json!({});
            object["spec"]["template"] = template;
            serde_json::from_value(object).unwrap()
        };
        let going = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
        let table = [
            (of(json!({}), json!({})), true),
            (of(json!({}), json!({ "replicas": 1 })), true),
            (of(json!({}), json!({ "replicas": 0 })), false),
            (of(going, json!({ "replicas": 1 })), false),
        ];
        for (deployment, expected) in table {
            let wait = standby(OtherApprover::Known(Some(&deployment)));
            assert_eq!(wait.is_some(), expected, "{deployment:?}");
        }
        assert_eq!(standby(OtherApprover::NoSuchThing), None);
        assert_eq!(standby(OtherApprover::Known(None)), None);
        assert!(standby(OtherApprover::Unknown).is_some());
    }
}
