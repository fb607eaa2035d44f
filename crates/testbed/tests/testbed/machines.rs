//! Do instances become Nodes, and does what happens to them show?

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::api::DynamicObject;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, ResourceExt};
use machinist_testbed::cloud_controller::SHUTDOWN_TAINT;
use machinist_testbed::kubelet::{CLIENT_SIGNER, POWERED_LABEL, SERVING_SIGNER};
use machinist_testbed::singletons::MACHINE_NAMESPACE;

use crate::support::{cluster, console, eventually, launch, node_of, node_with_ready, ready, run};

#[test]
fn the_api_server_says_its_version() {
    run(async {
        let version = cluster().await.admin().apiserver_version().await.unwrap();
        assert_eq!(version.git_version, "v1.36.3");
        assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));
    });
}

#[test]
fn the_openshift_singletons_point_at_the_cloud() {
    run(async {
        let cluster = cluster().await;
        for kind in ["Infrastructure", "DNS", "APIServer", "Proxy", "FeatureGate"] {
            let identity = GroupVersionKind::gvk("config.openshift.io", "v1", kind);
            let (resource, _) =
                kube::discovery::pinned_kind(cluster.admin(), &identity).await.unwrap();
            let objects: Api<DynamicObject> = Api::all_with(cluster.admin().clone(), &resource);
            let object = objects.get("cluster").await.unwrap();
            if kind == "Infrastructure" {
                let platform = &object.data["status"]["platformStatus"]["aws"];
                assert_eq!(platform["serviceEndpoints"][0]["name"], "ec2");
                assert_eq!(platform["serviceEndpoints"][0]["url"], cluster.ec2_endpoint_tls());
                assert_eq!(platform["region"], "us-east-1");
            }
        }
        let bundles: Api<ConfigMap> =
            Api::namespaced(cluster.admin().clone(), "openshift-config-managed");
        let bundle = bundles.get("kube-cloud-config").await.unwrap().data.unwrap();
        let file = std::fs::read_to_string(cluster.ec2_authority_file()).unwrap();
        assert_eq!(bundle["ca-bundle.pem"], file);
        let secrets: Api<Secret> =
            Api::namespaced(cluster.admin().clone(), "openshift-machine-api");
        for name in ["aws-cloud-credentials", "worker-user-data", "master-user-data"] {
            secrets.get(name).await.unwrap();
        }
    });
}

#[test]
fn an_instance_becomes_a_node_by_certificates_that_the_cluster_signed() {
    run(async {
        let cluster = cluster().await;
        let id = launch(cluster, "certified-master-0").await;
        let node = node_with_ready(cluster, &id, "True").await;
        let name = node.name_any();

        let labels = node.labels();
        let zone = &labels["topology.kubernetes.io/zone"];
        let provider_id = node.spec.as_ref().unwrap().provider_id.clone().unwrap();
        assert_eq!(provider_id, format!("aws:///{zone}/{id}"));
        assert_eq!(labels["topology.kubernetes.io/region"], "us-east-1");
        assert_eq!(labels["node.kubernetes.io/instance-type"], "m5.xlarge");
        assert_eq!(labels["kubernetes.io/hostname"], name);
        assert!(labels.contains_key("node-role.kubernetes.io/control-plane"));
        let status = node.status.as_ref().unwrap();
        let kinds: Vec<&str> =
            status.addresses.iter().flatten().map(|address| address.type_.as_str()).collect();
        assert_eq!(kinds, ["InternalIP", "InternalDNS", "Hostname"]);
        assert_eq!(status.capacity.as_ref().unwrap()["cpu"].0, "4");
        assert_eq!(status.node_info.as_ref().unwrap().kubelet_version, "v1.36.3");

        let requests: Api<CertificateSigningRequest> = Api::all(cluster.admin().clone());
        eventually("the serving certificate is issued", || async {
            let list = requests.list(&Default::default()).await.unwrap();
            list.items.into_iter().find(|request| {
                request.spec.signer_name == SERVING_SIGNER
                    && request.spec.username == Some(format!("system:node:{name}"))
                    && request.status.as_ref().is_some_and(|status| status.certificate.is_some())
            })
        })
        .await;
        let list = requests.list(&Default::default()).await.unwrap();
        assert!(list.items.iter().any(|request| request.spec.signer_name == CLIENT_SIGNER));

        let leases: Api<Lease> = Api::namespaced(cluster.admin().clone(), "kube-node-lease");
        let first = leases.get(&name).await.unwrap().spec.unwrap().renew_time;
        eventually("the Lease is renewed", || async {
            let now = leases.get(&name).await.unwrap().spec.unwrap().renew_time;
            (now > first).then_some(())
        })
        .await;
    });
}

#[test]
fn a_stopped_instance_falls_silent_and_a_started_one_is_the_same_node() {
    run(async {
        let cluster = cluster().await;
        let stopped = launch(cluster, "stopped").await;
        // The controllers taint nothing when every node is down.
        let steady = launch(cluster, "steady").await;
        let before = node_with_ready(cluster, &stopped, "True").await;
        node_with_ready(cluster, &steady, "True").await;

        console(cluster, &stopped, "stop").await;
        node_with_ready(cluster, &stopped, "Unknown").await;
        eventually("the stopped node is tainted and kwok leaves it", || async {
            let node = node_of(cluster, &stopped).await?;
            (is_tainted(&node) && !node.labels().contains_key(POWERED_LABEL)).then_some(())
        })
        .await;
        assert_eq!(ready(&node_of(cluster, &steady).await.unwrap()), "True");

        console(cluster, &stopped, "start").await;
        let after = node_with_ready(cluster, &stopped, "True").await;
        assert_eq!(after.uid(), before.uid());
        assert_ne!(boot_id(&after), boot_id(&before));
        eventually("the taint is gone", || async {
            let node = node_of(cluster, &stopped).await?;
            (!is_tainted(&node) && node.labels().contains_key(POWERED_LABEL)).then_some(())
        })
        .await;
    });
}

#[test]
fn a_reboot_gives_a_new_boot_id() {
    run(async {
        let cluster = cluster().await;
        let id = launch(cluster, "rebooted").await;
        let before = node_with_ready(cluster, &id, "True").await;
        console(cluster, &id, "reboot").await;
        let after = eventually("a new boot id", || async {
            node_of(cluster, &id).await.filter(|node| boot_id(node) != boot_id(&before))
        })
        .await;
        assert_eq!(after.uid(), before.uid());
    });
}

#[test]
fn the_cloud_controller_removes_the_node_of_a_terminated_instance() {
    run(async {
        let cluster = cluster().await;
        let id = launch(cluster, "terminated").await;
        let steady = launch(cluster, "steady-too").await;
        let node = node_with_ready(cluster, &id, "True").await;
        node_with_ready(cluster, &steady, "True").await;
        console(cluster, &id, "terminate").await;
        let nodes: Api<Node> = Api::all(cluster.admin().clone());
        eventually("the node is gone", || async {
            nodes.get_opt(&node.name_any()).await.unwrap().is_none().then_some(())
        })
        .await;
    });
}

#[test]
fn an_operators_user_may_do_its_work_and_no_more() {
    run(async {
        let cluster = cluster().await;
        let file = cluster.operator_kubeconfig("some-operator", MACHINE_NAMESPACE).await.unwrap();
        let kubeconfig = Kubeconfig::read_from(file).unwrap();
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        let client = kube::Client::try_from(config).unwrap();
        let nodes: Api<Node> = Api::all(client.clone());
        nodes.list(&Default::default()).await.unwrap();
        let roles = ApiResource::from_gvk(&GroupVersionKind::gvk(
            "rbac.authorization.k8s.io",
            "v1",
            "ClusterRole",
        ));
        let roles: Api<DynamicObject> = Api::all_with(client, &roles);
        roles.list(&Default::default()).await.unwrap_err();
        let audit = std::fs::read_to_string(cluster.audit_log().unwrap()).unwrap();
        assert!(audit.contains(r#""username":"some-operator""#));
    });
}

fn boot_id(node: &Node) -> String {
    node.status.as_ref().unwrap().node_info.as_ref().unwrap().boot_id.clone()
}

fn is_tainted(node: &Node) -> bool {
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.any(|taint| taint.key == SHUTDOWN_TAINT)
}
