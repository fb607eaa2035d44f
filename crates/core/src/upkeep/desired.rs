//! What the kept objects should be, field for field. What the API server would fill in is written
//! out, so that an object can be compared whole.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use machinist_api::names::{annotation, condition_type, label};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::proxy::ProxySettings;

/// The name of the DaemonSet, of its service account and of the check that belongs to it.
pub const TERMINATION_HANDLER: &str = "machine-api-termination-handler";

/// Where a kubelet keeps its kubeconfig, with which a handler speaks of its own Node: on OpenShift, and on
/// nodes that kubeadm or something like it has joined.
const KUBELET_CONFIG_OF_OPENSHIFT: &str = "/var/lib/kubelet/kubeconfig";
const KUBELET_CONFIG_OF_KUBEADM: &str = "/etc/kubernetes/kubelet.conf";
/// The certificates that it names; every kubelet has them there.
const KUBELET_CERTIFICATES: &str = "/var/lib/kubelet/pki";

/// What the DaemonSet of termination handlers is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminationHandler {
    pub namespace: String,
    pub image: String,
    pub proxy: ProxySettings,
    /// Where the kubelet's kubeconfig is on the machines.
    pub kubelet_config: String,
}

/// Where the kubelet's kubeconfig is on the machines of this cluster, if nobody says.
pub fn default_kubelet_config(is_openshift: bool) -> &'static str {
    if is_openshift { KUBELET_CONFIG_OF_OPENSHIFT } else { KUBELET_CONFIG_OF_KUBEADM }
}

/// A pod on every spot node that watches for the provider's notice.
pub fn termination_handler(handler: &TerminationHandler) -> Value {
    let labels = json!({ "api": "clusterapi", "k8s-app": "termination-handler" });
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": TERMINATION_HANDLER,
            "namespace": handler.namespace,
            "labels": labels,
            "annotations": { (annotation::OWNED): "" },
        },
        "spec": {
            "revisionHistoryLimit": 10,
            "selector": { "matchLabels": labels },
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": { "maxSurge": 0, "maxUnavailable": "10%" },
            },
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": { (annotation::REQUIRED_SCC): TERMINATION_HANDLER },
                },
                "spec": pod(handler),
            },
        },
    })
}

fn pod(handler: &TerminationHandler) -> Value {
    json!({
        "automountServiceAccountToken": false,
        "containers": [container(handler)],
        "dnsPolicy": "ClusterFirst",
        "hostNetwork": true,
        "nodeSelector": { (label::INTERRUPTIBLE): "", "kubernetes.io/os": "linux" },
        "priorityClassName": "system-node-critical",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccount": TERMINATION_HANDLER,
        "serviceAccountName": TERMINATION_HANDLER,
        "terminationGracePeriodSeconds": 30,
        "tolerations": [{ "effect": "NoSchedule", "operator": "Exists" }],
        "volumes": [
            { "name": "kubeconfig", "hostPath": { "path": &handler.kubelet_config, "type": "File" } },
            { "name": "pki", "hostPath": { "path": KUBELET_CERTIFICATES, "type": "Directory" } },
        ],
    })
}

fn container(handler: &TerminationHandler) -> Value {
    let mut environment = vec![
        json!({ "name": "KUBECONFIG", "value": &handler.kubelet_config }),
        json!({
            "name": "NODE_NAME",
            "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": "spec.nodeName" } },
        }),
    ];
    let proxy = handler.proxy.environment().into_iter();
    environment.extend(proxy.map(|(name, value)| json!({ "name": name, "value": value })));
    json!({
        "name": "termination-handler",
        "image": handler.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["machinist-operator"],
        "args": [
            "termination-handler",
            "--node-name=$(NODE_NAME)",
            format!("--namespace={}", handler.namespace),
            "--poll-interval-seconds=5",
        ],
        "env": environment,
        "resources": { "requests": { "cpu": "10m", "memory": "20Mi" } },
        // The kubelet's files are root's alone, and the image's own user is not root.
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": false,
            "runAsUser": 0,
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            { "name": "kubeconfig", "mountPath": &handler.kubelet_config, "readOnly": true },
            { "name": "pki", "mountPath": KUBELET_CERTIFICATES, "readOnly": true },
        ],
    })
}

/// The check that has a spot machine replaced as soon as its Node is marked.
pub fn termination_check(namespace: &str) -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "MachineHealthCheck",
        "metadata": {
            "name": TERMINATION_HANDLER,
            "namespace": namespace,
            "labels": { "api": "clusterapi", "k8s-app": "termination-handler" },
        },
        "spec": {
            "maxUnhealthy": "100%",
            "nodeStartupTimeout": "0",
            "selector": { "matchLabels": { (label::INTERRUPTIBLE): "" } },
            "unhealthyConditions": [
                { "type": condition_type::NODE_TERMINATING, "status": "True", "timeout": "0s" },
            ],
        },
    })
}

/// The webhooks that fill in, with the API server's own defaults.
pub fn mutating_webhooks(configuration: &MutatingWebhookConfiguration) -> Value {
    with_defaults(configuration, Some(("reinvocationPolicy", json!("Never"))))
}

/// The webhooks that refuse, with the API server's own defaults.
pub fn validating_webhooks(configuration: &ValidatingWebhookConfiguration) -> Value {
    with_defaults(configuration, None)
}

/// Serialising our own types cannot fail; nothing could be made from what does.
fn with_defaults(configuration: &impl Serialize, more: Option<(&str, Value)>) -> Value {
    let mut configuration = serde_json::to_value(configuration).unwrap_or_default();
    let webhooks = configuration.get_mut("webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten().filter_map(Value::as_object_mut) {
        let defaults = [
            ("matchPolicy", json!("Equivalent")),
            ("namespaceSelector", json!({})),
            ("objectSelector", json!({})),
            ("timeoutSeconds", json!(10)),
        ];
        fill(webhook, defaults.into_iter().chain(more.clone()));
        let rules = webhook.get_mut("rules").and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten().filter_map(Value::as_object_mut) {
            fill(rule, [("scope", json!("*"))]);
        }
    }
    configuration
}

fn fill<'a>(object: &mut Map<String, Value>, defaults: impl IntoIterator<Item = (&'a str, Value)>) {
    for (key, value) in defaults {
        object.entry(key).or_insert(value);
    }
}
