//! What does a cloud controller manager do to the Nodes of instances that stop or vanish?
//!
//! This switch does what AWS's does: it looks only at Nodes that are not Ready, deletes those whose
//! instance is gone and taints those whose instance is shut down. Off, nobody does.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::sync::watch;

use crate::instances::{Instances, Power};
use crate::kube_errors::is_missing;

pub const SHUTDOWN_TAINT: &str = "node.cloudprovider.kubernetes.io/shutdown";
const PROVIDER_PREFIX: &str = "aws:///";

/// Looks at all Nodes every `period`, until dropped.
pub(crate) async fn watch_over_nodes(
    client: Client,
    instances: watch::Receiver<Instances>,
    period: Duration,
) {
    let nodes: Api<Node> = Api::all(client);
    loop {
        tokio::time::sleep(period).await;
        // The API server's cache will do: this repeats.
        let list = match nodes.list(&ListParams::default().match_any()).await {
            Ok(list) => list,
            Err(error) => {
                tracing::debug!("cloud controller cannot list nodes: {error}");
                continue;
            }
        };
        let seen = Arc::clone(&instances.borrow());
        for node in &list.items {
            let outcome = match verdict(node, &seen) {
                Verdict::Leave => Ok(()),
                Verdict::Delete => delete(&nodes, node).await,
                Verdict::Taint => set_taint(&nodes, node, true).await,
                Verdict::Untaint => set_taint(&nodes, node, false).await,
            };
            match outcome {
                Err(error) if !is_missing(&error) => {
                    tracing::debug!("cloud controller, node {}: {error}", node.name_any());
                }
                _ => {}
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Leave,
    Delete,
    Taint,
    Untaint,
}

fn verdict(node: &Node, instances: &Instances) -> Verdict {
    let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
    let Some(id) = provider_id
        .and_then(|provider_id| provider_id.strip_prefix(PROVIDER_PREFIX))
        .and_then(|path| path.rsplit('/').next())
    else {
        return Verdict::Leave;
    };
    let tainted = taints(node).iter().any(|taint| taint.key == SHUTDOWN_TAINT);
    if is_ready(node) {
        return if tainted { Verdict::Untaint } else { Verdict::Leave };
    }
    match instances.get(id).map(|instance| instance.power) {
        None | Some(Power::Gone) => Verdict::Delete,
        Some(Power::Off) if !tainted => Verdict::Taint,
        Some(_) => Verdict::Leave,
    }
}

fn is_ready(node: &Node) -> bool {
    node.status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn taints(node: &Node) -> &[Taint] {
    node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

async fn delete(nodes: &Api<Node>, node: &Node) -> kube::Result<()> {
    let parameters = DeleteParams {
        preconditions: Some(Preconditions { uid: node.uid(), resource_version: None }),
        ..DeleteParams::default()
    };
    nodes.delete(&node.name_any(), &parameters).await.map(drop)
}

async fn set_taint(nodes: &Api<Node>, node: &Node, present: bool) -> kube::Result<()> {
    let mut wanted: Vec<Taint> =
        taints(node).iter().filter(|taint| taint.key != SHUTDOWN_TAINT).cloned().collect();
    if present {
        wanted.push(Taint {
            key: SHUTDOWN_TAINT.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        });
    }
    // The list is written whole, so only on the version that it was read from.
    let patch = json!({
        "metadata": { "resourceVersion": node.resource_version() },
        "spec": { "taints": wanted },
    });
    let name = node.name_any();
    nodes.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::instances::{Instance, Role};

    #[test]
    fn only_nodes_that_are_not_ready_are_judged() {
        let cases = [
            ("True", Some(Power::Gone), false, Verdict::Leave),
            ("True", Some(Power::On { boot: 2 }), true, Verdict::Untaint),
            ("Unknown", Some(Power::Gone), false, Verdict::Delete),
            ("Unknown", None, false, Verdict::Delete),
            ("Unknown", Some(Power::Off), false, Verdict::Taint),
            ("Unknown", Some(Power::Off), true, Verdict::Leave),
            ("False", Some(Power::On { boot: 1 }), false, Verdict::Leave),
            ("Unknown", Some(Power::Hung), false, Verdict::Leave),
        ];
        for (ready, power, tainted, expected) in cases {
            let found = verdict(&node(ready, tainted), &instances(power));
            assert_eq!(found, expected, "{ready} {power:?} {tainted}");
        }
    }

    fn node(ready: &str, tainted: bool) -> Node {
        let taints = if tainted { json!([{ "key": SHUTDOWN_TAINT }]) } else { json!([]) };
        serde_json::from_value(json!({
            "metadata": { "name": "node" },
            "spec": { "providerID": "aws:///us-east-1a/i-1", "taints": taints },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        }))
        .unwrap()
    }

    fn instances(power: Option<Power>) -> Instances {
        let instance = power.map(|power| Instance {
            id: "i-1".to_owned(),
            power,
            region: "us-east-1".to_owned(),
            zone: "us-east-1a".to_owned(),
            instance_type: "m5.large".to_owned(),
            architecture: "amd64".to_owned(),
            cpus: 2,
            memory_mebibytes: 8192,
            private_address: "10.0.0.1".to_owned(),
            private_name: "node".to_owned(),
            role: Role::Worker,
        });
        let entries = instance.into_iter().map(|instance| (instance.id.clone(), instance));
        Arc::new(entries.collect::<BTreeMap<_, _>>())
    }
}
