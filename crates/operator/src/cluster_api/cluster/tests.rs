use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::config::Kubeconfig;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use serde_json::json;

use super::{kubeconfig, reconcile};
use crate::{
    cluster_api::lab::{CLUSTERS, Lab, cluster},
    engine::queue::Outcome,
    testing::{SECRETS, read},
};

fn put_authority(lab: &Lab) {
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new(Vec::<String>::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = parameters.self_signed(&key).unwrap();
    let encoded = |text: String| json!(ByteString(text.into_bytes()));
    lab.server.put(
        SECRETS,
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "c-ca", "namespace": "ns" },
            "data": { "tls.crt": encoded(certificate.pem()), "tls.key": encoded(key.serialize_pem()) },
        }),
    );
}

#[tokio::test(start_paused = true)]
async fn a_cluster_gets_its_kubeconfig_once_its_authority_is_there() {
    let lab = Lab::new();
    let known = lab.context.stores.clusters.get(&cluster()).unwrap();
    let server = "https://10.0.0.1:6443";
    let ensure = || kubeconfig::ensure(&lab.context.base, &known, server);
    assert!(!ensure().await.unwrap(), "there is no authority yet");
    put_authority(&lab);
    assert!(ensure().await.unwrap());
    assert!(!ensure().await.unwrap(), "one that is there is left alone");
    let made: Secret = read(lab.stored(SECRETS, "c-kubeconfig").unwrap());
    assert_eq!(made.type_.as_deref(), Some("cluster.x-k8s.io/secret"));
    let text = String::from_utf8(made.data.unwrap()["value"].0.clone()).unwrap();
    let config = Kubeconfig::from_yaml(&text).unwrap();
    let named = config.clusters[0].cluster.as_ref().unwrap();
    assert_eq!(named.server.as_deref(), Some(server));
    assert_eq!(config.current_context.as_deref(), Some("c-admin@c"));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_given_its_finalizer_and_then_rests() {
    let lab = Lab::new();
    for _ in 0..3 {
        reconcile(&lab.context, &lab.parts.workloads, cluster()).await;
    }
    let stored = lab.stored(CLUSTERS, "c").unwrap();
    assert_eq!(stored["metadata"]["finalizers"], json!(["cluster.cluster.x-k8s.io"]));
    assert_eq!(stored["status"]["phase"], "Pending");
    let before = lab.writes();
    reconcile(&lab.context, &lab.parts.workloads, cluster()).await;
    assert_eq!(lab.writes(), before);
}

#[tokio::test(start_paused = true)]
async fn an_authority_that_cannot_be_used_is_said_and_keeps_nothing_else_back() {
    let lab = Lab::new();
    let mut known = lab.stored(CLUSTERS, "c").unwrap();
    known["spec"]["controlPlaneEndpoint"] = json!({ "host": "10.0.0.1", "port": 6443 });
    known["metadata"]["resourceVersion"] = json!("11");
    lab.server.put(CLUSTERS, known.clone());
    lab.context.stores.clusters.apply_written(read(lab.stored(CLUSTERS, "c").unwrap()));
    lab.server.put(
        SECRETS,
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "c-ca", "namespace": "ns" }, "data": {},
        }),
    );
    let workloads = &lab.parts.workloads;
    for _ in 0..3 {
        let outcome = reconcile(&lab.context, workloads, cluster()).await;
        assert!(matches!(outcome, Outcome::Failed(_)), "it is tried again");
    }
    let stored = lab.stored(CLUSTERS, "c").unwrap();
    assert_eq!(stored["status"]["phase"], "Provisioned");
    let conditions = stored["status"]["conditions"].as_array().unwrap();
    let probe = conditions.iter().find(|one| one["type"] == "RemoteConnectionProbe").unwrap();
    assert_eq!(
        probe["message"],
        "Remote connection not established yet: failed to make its kubeconfig: \
         the Secret c-ca has no tls.crt"
    );
    let before = lab.writes();
    reconcile(&lab.context, workloads, cluster()).await;
    assert_eq!(lab.writes(), before, "it is said once");
}

/// They hold machines, and whoever looks after them needs the Cluster for that.
#[tokio::test(start_paused = true)]
async fn a_cluster_does_not_go_before_its_machine_pools() {
    const POOLS: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machinepools";
    let lab = Lab::new();
    lab.server.put(
        POOLS,
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool",
            "metadata": {
                "name": "spot", "namespace": "ns", "labels": { "cluster.x-k8s.io/cluster-name": "c" },
            },
        }),
    );
    let mut going = lab.stored(CLUSTERS, "c").unwrap();
    going["metadata"]["finalizers"] = json!(["cluster.cluster.x-k8s.io"]);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T12:00:00Z");
    lab.server.put(CLUSTERS, going);
    lab.context.stores.clusters.apply_written(read(lab.stored(CLUSTERS, "c").unwrap()));
    let is_let_go = || {
        let stored = lab.stored(CLUSTERS, "c");
        stored.is_none_or(|one| one["metadata"]["finalizers"] == json!([]))
    };
    reconcile(&lab.context, &lab.parts.workloads, cluster()).await;
    assert!(!is_let_go());
    let conditions = lab.stored(CLUSTERS, "c").unwrap()["status"]["conditions"].clone();
    assert!(conditions.to_string().contains("Waiting for MachinePool spot"), "{conditions}");
    lab.server.delete(POOLS, "spot");
    reconcile(&lab.context, &lab.parts.workloads, cluster()).await;
    assert!(is_let_go());
}
