//! The operator's own part on OpenShift: O-1, O-2, O-3, O-10 and P-1 of the original's acceptance suite,
//! NoOp mode, and the controllers before us.
//!
//! Alone: the objects are the whole cluster's.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, Deployment},
        coordination::v1::Lease,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use machinist_api::{
    MachineHealthCheck,
    openshift_config::{ClusterOperator, Infrastructure, Proxy},
};
use machinist_testbed::manifests::{apply, documents};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

use crate::arena::{Arena, run};

const FOREIGN_KINDS: &str = include_str!("assets/foreign-kinds.yaml");
const CLUSTER_OPERATORS: &str = "clusteroperators.config.openshift.io";
const HANDLER: &str = "machine-api-termination-handler";

async fn install_cluster_operators(arena: &Arena) {
    let kinds = documents(FOREIGN_KINDS).unwrap();
    let wanted = kinds.into_iter().find(|kind| kind["metadata"]["name"] == CLUSTER_OPERATORS);
    apply(&arena.client, wanted.unwrap()).await.unwrap();
}

/// Waits until the ClusterOperator says this, and returns it.
async fn wait_said(
    arena: &Arena,
    what: &str,
    says: impl Fn(&[(String, String, String)]) -> bool,
) -> ClusterOperator {
    let api: Api<ClusterOperator> = Api::all(arena.client.clone());
    arena
        .eventually(what, async || {
            let found = api.get("machine-api").await.ok()?;
            let status = json!(found.status);
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let conditions: Vec<_> = status["conditions"]
                .as_array()?
                .iter()
                .map(|one| (text(&one["type"]), text(&one["status"]), text(&one["message"])))
                .collect();
            says(&conditions).then_some(found)
        })
        .await
}

fn is(conditions: &[(String, String, String)], type_: &str, status: &str) -> bool {
    conditions.iter().any(|(one, is, _)| one == type_ && is == status)
}

async fn check_termination_handler(arena: &Arena) {
    let sets = arena.api::<DaemonSet>();
    let get = async || sets.get_opt(HANDLER).await.unwrap();
    let before = arena.eventually("the DaemonSet is there", get).await;
    let is_restored = async || {
        let found = get().await?;
        (found.spec == before.spec && found.metadata.labels == before.metadata.labels)
            .then_some(found)
    };
    // O-2.
    sets.delete(HANDLER, &DeleteParams::default()).await.unwrap();
    let uid = before.metadata.uid.clone();
    let after = arena
        .eventually("the DaemonSet is made anew", async || {
            is_restored().await.filter(|found| found.metadata.uid != uid)
        })
        .await;
    assert_eq!(after.spec, before.spec);
    // O-3, with a change that is one.
    let change = json!({"spec": {"template": {"spec": {
        "nodeSelector": {"machine.openshift.io/interruptible-instance": "never"},
    }}}});
    sets.patch(HANDLER, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    arena.eventually("the DaemonSet is restored", is_restored).await;

    let checks = arena.api::<MachineHealthCheck>();
    let check = checks.get(HANDLER).await.unwrap();
    let change = json!({"spec": {"maxUnhealthy": 1, "nodeStartupTimeout": "5m"}});
    checks.patch(HANDLER, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    arena
        .eventually("the check is restored", async || {
            (checks.get(HANDLER).await.unwrap().spec == check.spec).then_some(())
        })
        .await;
    checks.delete(HANDLER, &DeleteParams::default()).await.unwrap();
    arena
        .eventually("the check is made anew", async || {
            let found = checks.get_opt(HANDLER).await.unwrap()?;
            (found.spec == check.spec && found.metadata.uid != check.metadata.uid).then_some(())
        })
        .await;
}

/// The controllers before us, which hold their leases.
async fn create_old_controllers(arena: &Arena) {
    arena
        .create::<Lease>(json!({
            "metadata": {"name": "cluster-api-provider-machineset-leader"},
            "spec": {
                "holderIdentity": "the-old-controller",
                "leaseDurationSeconds": 3600,
                "renewTime": format!("{:.6}", jiff::Timestamp::now()),
                "acquireTime": format!("{:.6}", jiff::Timestamp::now()),
            },
        }))
        .await;
    let labels = json!({"k8s-app": "controller"});
    arena
        .create::<Deployment>(json!({
            "metadata": {"name": "machine-api-controllers"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [
                        {"name": "machine-controller", "image": "example.invalid/old:1"},
                    ]},
                },
            },
        }))
        .await;
}

/// They are scaled away although their leases are not ours yet; then they let go of them.
async fn check_old_controllers(arena: &Arena) {
    arena
        .eventually("the old controllers are scaled to 0", async || {
            let found = arena.api::<Deployment>().get("machine-api-controllers").await.unwrap();
            (found.spec?.replicas == Some(0)).then_some(())
        })
        .await;
    let released = json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}});
    arena.patch::<Lease>("cluster-api-provider-machineset-leader", released).await;
}

async fn set_platform(arena: &Arena, platform: &str) {
    let api: Api<Infrastructure> = Api::all(arena.client.clone());
    let patch = Patch::Merge(json!({"status": {"platformStatus": {"type": platform}}}));
    api.patch_status("cluster", &PatchParams::default(), &patch).await.unwrap();
}

#[test]
fn o_1_to_o_3_and_o_10_the_operator_keeps_its_objects_and_says_how_it_is() {
    run(async {
        let arena = Arena::alone("operator").await;
        install_cluster_operators(&arena).await;
        let image = "example.invalid/machinist-operator:1";
        let flags = [("--termination-handler-image", image), ("--release-version", "4.99.0-test")];
        create_old_controllers(&arena).await;
        let _operator = arena.start_operator_with(&flags).await;
        check_old_controllers(&arena).await;
        arena.create_set("pool", 1, json!({})).await;
        arena.wait_running(1).await;
        let said = wait_said(&arena, "the operator is available (O-10)", |conditions| {
            is(conditions, "Available", "True")
                && is(conditions, "Progressing", "False")
                && is(conditions, "Degraded", "False")
                && is(conditions, "Upgradeable", "True")
        })
        .await;
        let status = json!(said.status);
        assert_eq!(status["versions"], json!([{"name": "operator", "version": "4.99.0-test"}]));
        let related = status["relatedObjects"].as_array().unwrap();
        assert!(related.iter().any(|one| one["resource"] == "machinesets"), "{related:?}");

        check_termination_handler(&arena).await;
        wait_said(&arena, "it is still available", |conditions| {
            is(conditions, "Available", "True") && is(conditions, "Degraded", "False")
        })
        .await;

        // No platform of ours: nothing is kept, and that is fine.
        set_platform(&arena, "None").await;
        let words = "Cluster Machine API Operator is in NoOp mode";
        wait_said(&arena, "NoOp mode is said", |conditions| {
            let says = |(type_, _, message): &(String, String, String)| {
                type_ == "Available" && message.contains(words)
            };
            conditions.iter().any(says) && is(conditions, "Available", "True")
        })
        .await;
        set_platform(&arena, "AWS").await;
        wait_said(&arena, "it is at work again", |conditions| {
            let says = |(type_, _, message): &(String, String, String)| {
                type_ == "Available" && message.contains("available at operator: 4.99.0-test")
            };
            conditions.iter().any(says)
        })
        .await;
        let kinds: Api<CustomResourceDefinition> = Api::all(arena.client.clone());
        kinds.delete(CLUSTER_OPERATORS, &DeleteParams::default()).await.unwrap();
    });
}

/// A proxy that knows where the cloud is; nobody else can resolve the name that it is called by.
async fn proxy(cloud: String, seen: Arc<AtomicUsize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (cloud, seen) = (cloud.clone(), Arc::clone(&seen));
            tokio::spawn(async move {
                let mut server = TcpStream::connect(&cloud).await?;
                let mut head = vec![0; 16 * 1024];
                let read = client.read(&mut head).await?;
                head.truncate(read);
                if head.starts_with(b"CONNECT ") {
                    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
                } else {
                    server.write_all(&head).await?;
                }
                seen.fetch_add(1, Ordering::Relaxed);
                copy_bidirectional(&mut client, &mut server).await.map(drop)
            });
        }
    });
    format!("http://{address}")
}

async fn set_proxy(arena: &Arena, url: Option<&str>) {
    let api: Api<Proxy> = Api::all(arena.client.clone());
    let values = json!({"httpProxy": url, "httpsProxy": url, "noProxy": url.map(|_| ".cluster")});
    let parameters = PatchParams::default();
    let patch = Patch::Merge(json!({"spec": values}));
    api.patch("cluster", &parameters, &patch).await.unwrap();
    let patch = Patch::Merge(json!({"status": values}));
    api.patch_status("cluster", &parameters, &patch).await.unwrap();
}

#[test]
fn p_1_a_change_of_the_proxy_reaches_the_cloud_calls_without_a_restart() {
    run(async {
        let arena = Arena::alone("proxy").await;
        let endpoint = arena.cluster.ec2_endpoint();
        let cloud = endpoint.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
        let port = cloud.rsplit_once(':').unwrap().1;
        // Only the proxy knows this name.
        let unknown = format!("http://ec2.machinist.invalid:{port}");
        let seen = Arc::new(AtomicUsize::new(0));
        let url = proxy(cloud, Arc::clone(&seen)).await;
        let operator = arena.start_operator_with(&[("--aws-ec2-endpoint", &unknown)]).await;
        let process = operator.process().id();

        arena.create_set("pool", 1, json!({})).await;
        arena
            .eventually("the cloud cannot be reached", async || {
                (arena.metric_sum("machinist_cloud_view_failing").await > 0.0).then_some(())
            })
            .await;
        assert!(arena.launched().is_empty() && seen.load(Ordering::Relaxed) == 0);

        set_proxy(&arena, Some(&url)).await;
        arena.wait_running(1).await;
        assert!(seen.load(Ordering::Relaxed) > 0, "seen at the proxy");

        set_proxy(&arena, None).await;
        arena
            .eventually("the cloud cannot be reached again", async || {
                (arena.metric_sum("machinist_cloud_view_failing").await > 0.0).then_some(())
            })
            .await;
        assert_eq!(operator.process().id(), process);
        assert!(operator.process().is_running(), "it was not restarted");
        set_proxy(&arena, Some(&url)).await;
        arena.scale("pool", 0).await;
        arena
            .eventually("all are gone", async || arena.machines().await.is_empty().then_some(()))
            .await;
        set_proxy(&arena, None).await;
    });
}
