//! Is the control plane well enough for one of its members to be taken out of work? Each member's Node
//! must be Ready and its etcd ready; what is not known is not well.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Node, Pod},
    apimachinery::pkg::util::intstr::IntOrString,
};
use machinist_api::Machine;

use super::plan::{ControlPlane, ControlPlaneProblem};
use crate::{
    cluster_api::maintained::is_of_cluster_api,
    drift::policy::has_control_plane_role,
    node::{self, Readiness},
};

/// The namespaces that etcd's static pods are in, each with the label that they carry there.
pub const ETCD_PODS: [(&str, &str, &str); 2] =
    [("openshift-etcd", "app", "etcd"), ("kube-system", "component", "etcd")];

/// The hook with which OpenShift's etcd operator protects the Machines of its members.
const ETCD_HOOK: &str = "EtcdQuorumOperator";

/// A Machine of the control plane, with its Node.
#[derive(Clone, Copy)]
pub struct ControlPlaneMember<'a> {
    pub machine: &'a Machine,
    pub node: Option<&'a Node>,
    /// What its etcd says of itself; `None` where it was not asked or could not be reached.
    pub etcd: Option<&'a EtcdAnswer>,
}

/// What a member of etcd says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtcdAnswer {
    Healthy,
    /// With what it says.
    Unhealthy(String),
}

/// What is known of etcd's pods.
#[derive(Clone, Copy)]
pub enum EtcdPods<'a> {
    /// Nobody needs to know: no member is to be maintained.
    NotAsked,
    /// The API server could not be asked.
    Unknown(&'a str),
    Known(&'a [Pod]),
}

/// Whether a Machine is of the control plane, by its role or by its Node. Those of Cluster API are of other clusters.
pub fn is_member(machine: &Machine, node: Option<&Node>) -> bool {
    if is_of_cluster_api(machine) {
        return false;
    }
    has_control_plane_role(machine) || node.is_some_and(node::is_control_plane)
}

/// How the control plane is doing. Members that are being deleted are counted, and are a problem.
pub fn judge(members: &[ControlPlaneMember<'_>], etcd: EtcdPods<'_>) -> ControlPlane {
    let has_hooks = members.iter().any(|member| has_etcd_hook(member.machine));
    let mut problems = Vec::new();
    for member in members {
        if let Some(message) = node_problem(member) {
            problems.push(problem(member, message));
            continue;
        }
        if let EtcdPods::Known(pods) = etcd
            && !pods.is_empty()
            && let Some(message) = etcd_problem(member, pods)
        {
            problems.push(problem(member, message));
            continue;
        }
        if let Some(EtcdAnswer::Unhealthy(why)) = member.etcd {
            let node = member.node.map(node::name).unwrap_or_default();
            let message = format!("etcd on node {node} says that it is not healthy: {why}");
            problems.push(problem(member, message));
            continue;
        }
        if has_hooks && !has_etcd_hook(member.machine) && !is_deleting(member.machine) {
            let message = format!(
                "machine {} is no member of etcd yet: the etcd operator has not put its hook on it",
                name_of(member.machine)
            );
            problems.push(problem(member, message));
        }
    }
    match etcd {
        EtcdPods::NotAsked => {}
        EtcdPods::Unknown(why) => problems.push(ControlPlaneProblem {
            machine: None,
            message: format!("it is not known how etcd is: {why}"),
        }),
        EtcdPods::Known([]) => problems.push(ControlPlaneProblem {
            machine: None,
            message: "it is not known how etcd is: none of its pods is seen".to_owned(),
        }),
        EtcdPods::Known(_) => {}
    }
    problems.sort();
    ControlPlane { members: members.len(), problems }
}

fn node_problem(member: &ControlPlaneMember<'_>) -> Option<String> {
    let name = name_of(member.machine);
    if is_deleting(member.machine) {
        return Some(format!("machine {name} of the control plane is being deleted"));
    }
    let Some(node) = member.node else {
        return Some(format!("machine {name} of the control plane has no node"));
    };
    let of_node = format!("node {} of the control plane", node::name(node));
    if node::readiness(node) != Readiness::Ready {
        return Some(format!("{of_node} is not ready"));
    }
    node::is_unschedulable(node).then(|| format!("{of_node} is cordoned"))
}

fn etcd_problem(member: &ControlPlaneMember<'_>, pods: &[Pod]) -> Option<String> {
    let node = member.node.map(node::name)?;
    let mut of_node = pods
        .iter()
        .filter(|pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node))
        .peekable();
    if of_node.peek().is_none() {
        return Some(format!("node {node} is no member of etcd: no etcd pod is on it"));
    }
    let is_ready = of_node.all(|pod| pod.metadata.deletion_timestamp.is_none() && is_ready(pod));
    (!is_ready).then(|| format!("etcd on node {node} is not ready"))
}

/// Where a member of etcd is asked for its health: where the kubelet asks for its pod's readiness. From
/// elsewhere that may not be reached, which says nothing.
pub fn health_url(pod: &Pod) -> Option<String> {
    let mut containers = pod.spec.as_ref()?.containers.iter();
    let (container, get) = containers.find_map(|container| {
        Some((container, container.readiness_probe.as_ref()?.http_get.as_ref()?))
    })?;
    let scheme = get.scheme.as_deref().unwrap_or("HTTP").to_lowercase();
    let host = get.host.as_deref().filter(|host| !host.is_empty());
    let host = host.or_else(|| pod.status.as_ref()?.pod_ip.as_deref())?;
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let port = match &get.port {
        IntOrString::Int(port) => *port,
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            ports.find(|port| port.name.as_ref() == Some(name))?.container_port
        }
    };
    let path = get.path.as_deref().unwrap_or_default().trim_start_matches('/');
    Some(format!("{scheme}://{host}:{port}/{path}"))
}

/// Whether a pod says that it is ready.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True")
}

/// Whether the labels are those of etcd's pods in this namespace.
pub fn is_etcd(namespace: &str, labels: Option<&BTreeMap<String, String>>) -> bool {
    ETCD_PODS.iter().any(|(of, key, value)| {
        namespace == *of && labels.and_then(|all| all.get(*key)).is_some_and(|one| one == value)
    })
}

fn has_etcd_hook(machine: &Machine) -> bool {
    let hooks = machine.spec.lifecycle_hooks.as_ref();
    hooks.is_some_and(|hooks| hooks.pre_drain.iter().any(|hook| hook.name == ETCD_HOOK))
}

fn is_deleting(machine: &Machine) -> bool {
    machine.metadata.deletion_timestamp.is_some()
}

fn problem(member: &ControlPlaneMember<'_>, message: String) -> ControlPlaneProblem {
    ControlPlaneProblem { machine: member.machine.metadata.name.clone(), message }
}

fn name_of(machine: &Machine) -> &str {
    machine.metadata.name.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn machine(name: &str, hooks: Value) -> Machine {
        serde_json::from_value(json!({
            "metadata": { "name": name, "labels": { "machine.openshift.io/cluster-api-machine-role": "master" } },
            "spec": { "lifecycleHooks": { "preDrain": hooks } },
        }))
        .unwrap()
    }

    fn node(name: &str, ready: &str) -> Node {
        serde_json::from_value(json!({
            "metadata": { "name": name },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        }))
        .unwrap()
    }

    fn etcd(node: &str, ready: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": { "name": format!("etcd-{node}"), "namespace": "openshift-etcd" },
            "spec": { "nodeName": node, "containers": [] },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        }))
        .unwrap()
    }

    fn judged(
        machines: &[Machine],
        nodes: &[Node],
        etcd: EtcdPods<'_>,
    ) -> Vec<(Option<String>, String)> {
        let members: Vec<ControlPlaneMember<'_>> = machines
            .iter()
            .map(|machine| {
                let node = nodes.iter().find(|node| node.metadata.name == machine.metadata.name);
                ControlPlaneMember { machine, node, etcd: None }
            })
            .collect();
        let judged = judge(&members, etcd);
        assert_eq!(judged.members, machines.len());
        judged.problems.into_iter().map(|one| (one.machine, one.message)).collect()
    }

    #[test]
    fn what_is_not_known_to_be_well_is_a_problem() {
        let machines = ["a", "b", "c"].map(|name| machine(name, json!([])));
        let nodes = ["a", "b", "c"].map(|name| node(name, "True"));
        let pods = ["a", "b", "c"].map(|name| etcd(name, "True"));
        assert_eq!(judged(&machines, &nodes, EtcdPods::Known(&pods)), []);
        assert_eq!(judged(&machines, &nodes, EtcdPods::NotAsked), []);
        let problems = judged(&machines, &nodes, EtcdPods::Known(&[]));
        assert!(problems[0].0.is_none() && problems[0].1.contains("not known"), "{problems:?}");
        let problems = judged(&machines, &nodes, EtcdPods::Unknown("no answer"));
        assert!(problems[0].1.contains("no answer"), "{problems:?}");
        let problems = judged(&machines, &nodes[..2], EtcdPods::Known(&pods));
        assert_eq!(
            problems,
            [(Some("c".to_owned()), "machine c of the control plane has no node".to_owned())]
        );
        let problems = judged(&machines, &nodes, EtcdPods::Known(&pods[1..]));
        assert_eq!(problems[0].0.as_deref(), Some("a"));
        let unready = [etcd("a", "True"), etcd("b", "False"), etcd("c", "True")];
        let problems = judged(&machines, &nodes, EtcdPods::Known(&unready));
        assert_eq!(problems, [(Some("b".to_owned()), "etcd on node b is not ready".to_owned())]);
        let unknown = [node("a", "True"), node("b", "Unknown"), node("c", "True")];
        assert_eq!(judged(&machines, &unknown, EtcdPods::Known(&pods)).len(), 1);
    }

    #[test]
    fn where_the_etcd_operator_uses_its_hook_every_member_has_it() {
        let hook = json!([{ "name": "EtcdQuorumOperator", "owner": "clusteroperator/etcd" }]);
        let machines = [machine("a", hook.clone()), machine("b", hook), machine("c", json!([]))];
        let nodes = ["a", "b", "c"].map(|name| node(name, "True"));
        let pods = ["a", "b", "c"].map(|name| etcd(name, "True"));
        let problems = judged(&machines, &nodes, EtcdPods::Known(&pods));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].0.as_deref(), Some("c"));
    }

    #[test]
    fn member_that_says_that_it_is_not_healthy_is_a_problem() {
        let (machine, node) = (machine("a", json!([])), node("a", "True"));
        let pods = [etcd("a", "True")];
        let unhealthy = EtcdAnswer::Unhealthy("RAFT NO LEADER".to_owned());
        for (answer, expected) in [
            (None, None),
            (Some(&EtcdAnswer::Healthy), None),
            (Some(&unhealthy), Some("etcd on node a says that it is not healthy: RAFT NO LEADER")),
        ] {
            let member = ControlPlaneMember { machine: &machine, node: Some(&node), etcd: answer };
            let judged = judge(&[member], EtcdPods::Known(&pods));
            let messages: Vec<&str> =
                judged.problems.iter().map(|one| one.message.as_str()).collect();
            assert_eq!(messages, Vec::from_iter(expected), "{answer:?}");
        }
    }

    #[test]
    fn members_are_asked_where_the_kubelet_asks() {
        let url = |ip: Value, get: Value| {
            let pod = json!({
                "metadata": { "name": "etcd" },
                "spec": { "containers": [{ "name": "side" }, { "name": "etcd",
                    "ports": [{ "name": "health", "containerPort": 9980 }],
                    "readinessProbe": { "httpGet": get } }] },
                "status": { "podIP": ip },
            });
            health_url(&serde_json::from_value(pod).unwrap())
        };
        let readyz = json!({ "path": "readyz", "port": 9980, "scheme": "HTTPS" });
        assert_eq!(url(json!("10.0.0.4"), readyz.clone()).unwrap(), "https://10.0.0.4:9980/readyz");
        assert_eq!(url(json!("fd00::4"), readyz.clone()).unwrap(), "https://[fd00::4]:9980/readyz");
        assert_eq!(url(Value::Null, readyz), None, "nobody knows where it is");
        let named = json!({ "path": "/health", "port": "health", "host": "127.0.0.1" });
        assert_eq!(url(Value::Null, named).unwrap(), "http://127.0.0.1:9980/health");
        assert_eq!(url(json!("10.0.0.4"), json!({ "port": "other" })), None);
        assert_eq!(url(json!("10.0.0.4"), Value::Null), None, "it has no such probe");
    }
}
