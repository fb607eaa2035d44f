//! Tables over signing requests, each rule both ways.

mod client;
mod drafts;
mod limits;
mod parsing;
mod properties;
mod serving;

use jiff::Timestamp;
use k8s_openapi::api::{certificates::v1::CertificateSigningRequest, core::v1::Node};
use machinist_api::Machine;
use serde_json::{Value, json};

use super::{
    Action, ApprovalDecision, CurrentCertificate, Limits, Observed, Policy, Verdict, decide,
};
use drafts::Draft;

const NAME: &str = "ip-10-0-1-7.ec2.internal";
const BOOTSTRAPPER: &str =
    "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper";

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

/// So many seconds before now.
fn ago(seconds: i64) -> String {
    Timestamp::from_second(now().as_second() - seconds).unwrap().to_string()
}

fn request(pem: &str, spec: Value) -> CertificateSigningRequest {
    let mut request: CertificateSigningRequest = serde_json::from_value(json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {
            "name": "csr-1", "uid": "csr-uid", "resourceVersion": "5", "creationTimestamp": ago(30),
        },
        "spec": spec_with(spec),
    }))
    .unwrap();
    request.spec.request = k8s_openapi::ByteString(pem.as_bytes().to_vec());
    request
}

fn spec_with(mut spec: Value) -> Value {
    spec["request"] = json!("");
    spec
}

fn client_request(draft: &Draft) -> CertificateSigningRequest {
    request(
        &draft.pem(),
        json!({
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "username": BOOTSTRAPPER,
            "groups": [
                "system:serviceaccounts",
                "system:serviceaccounts:openshift-machine-config-operator",
                "system:authenticated",
            ],
            "usages": ["digital signature", "key encipherment", "client auth"],
        }),
    )
}

fn serving_request(draft: &Draft) -> CertificateSigningRequest {
    request(
        &draft.pem(),
        json!({
            "signerName": "kubernetes.io/kubelet-serving",
            "username": format!("system:node:{NAME}"),
            "groups": ["system:nodes", "system:authenticated"],
            "usages": ["digital signature", "server auth"],
        }),
    )
}

/// A Machine ten minutes old, with the addresses of an AWS instance.
fn machine(name: &str) -> Machine {
    serde_json::from_value(json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": "9",
            "creationTimestamp": ago(600),
        },
        "spec": {"providerSpec": {}},
        "status": {"phase": "Provisioned", "addresses": [
            {"type": "InternalIP", "address": "10.0.1.7"},
            {"type": "InternalIP", "address": "fd00:0::7"},
            {"type": "InternalDNS", "address": "IP-10-0-1-7.ec2.internal"},
            {"type": "Hostname", "address": NAME},
            {"type": "ExternalIP", "address": "52.1.2.3"},
            {"type": "ExternalDNS", "address": "ec2-52-1-2-3.amazonaws.com"},
        ]},
    }))
    .unwrap()
}

fn joined(name: &str) -> Machine {
    let mut machine = machine(name);
    machine.status.as_mut().unwrap().node_ref =
        Some(machinist_api::NodeReference::to_node(NAME, "node-uid"));
    machine
}

fn node() -> Node {
    serde_json::from_value(json!({"metadata": {"name": NAME, "uid": "node-uid"}})).unwrap()
}

const ROOM: Limits = Limits { pending: 1, machines: 3, nodes: 3 };

/// Decides on a request with these Machines and this Node.
fn decided(
    request: &CertificateSigningRequest,
    machines: &[Machine],
    node: Option<&Node>,
) -> ApprovalDecision {
    decided_with(request, machines, node, CurrentCertificate::NotAsked)
}

fn decided_with(
    request: &CertificateSigningRequest,
    machines: &[Machine],
    node: Option<&Node>,
    current: CurrentCertificate,
) -> ApprovalDecision {
    let observed = Observed {
        request,
        machines: machines.iter().collect(),
        node,
        current,
        void_requests: Default::default(),
        limits: ROOM,
        told: None,
    };
    decide(&observed, &Policy::default(), now())
}

fn is_approved(answer: &ApprovalDecision) -> bool {
    let approves =
        answer.decision.actions.iter().any(|action| matches!(action, Action::Approve { .. }));
    assert_eq!(approves, matches!(answer.verdict, Verdict::Approve(_)), "{answer:?}");
    approves
}

/// Holds that it is not approved for this reason, which is told.
#[track_caller]
fn assert_refused(name: &str, answer: &ApprovalDecision, reason: &str, is_final: bool) {
    assert!(!is_approved(answer), "{name}");
    assert_eq!(answer.verdict.reason(), reason, "{name}: {:?}", answer.verdict);
    assert_eq!(matches!(answer.verdict, Verdict::Refuse(_)), is_final, "{name}");
    let [told] = answer.decision.announcements.as_slice() else { panic!("{name}: {answer:?}") };
    assert_eq!(told.reason, "NodeCSRNotApproved");
    assert!(told.message.starts_with(&format!("{reason}: ")), "{name}: {}", told.message);
    assert_eq!(answer.decision.waiting[0].reason, reason);
    assert_eq!(answer.decision.actions, [], "{name}");
}
