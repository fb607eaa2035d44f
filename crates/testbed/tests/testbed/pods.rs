//! Do pods run on the simulated machines, and end gracefully?

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::support::{cluster, eventually, launch, node_with_ready, run};

#[test]
fn the_pods_of_a_deployment_run_and_are_replaced_when_deleted() {
    run(async {
        let cluster = cluster().await;
        let id = launch(cluster, "with-pods").await;
        let node = node_with_ready(cluster, &id, "True").await.name_any();

        let deployments: Api<Deployment> = Api::default_namespaced(cluster.admin().clone());
        let deployment = serde_json::from_value(json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": "web" },
            "spec": {
                "replicas": 2,
                "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": {
                        "nodeSelector": { "kubernetes.io/hostname": node },
                        "containers": [{ "name": "web", "image": "example.test/web" }],
                    },
                },
            },
        }))
        .unwrap();
        deployments.create(&PostParams::default(), &deployment).await.unwrap();

        let first = running_pods(&deployments, "web").await;
        let pods: Api<Pod> = Api::default_namespaced(cluster.admin().clone());
        for pod in &first {
            assert_eq!(pod.spec.as_ref().unwrap().node_name.as_deref(), Some(node.as_str()));
            assert!(pod.status.as_ref().unwrap().pod_ip.is_some());
            pods.delete(&pod.name_any(), &DeleteParams::default()).await.unwrap();
        }
        eventually("the deleted pods are gone and others run", || async {
            let running = running_pods(&deployments, "web").await;
            let is_old = |pod: &Pod| first.iter().any(|old| old.uid() == pod.uid());
            (running.len() == 2 && !running.iter().any(is_old)).then_some(())
        })
        .await;
        deployments.delete("web", &DeleteParams::default()).await.unwrap();
    });
}

async fn running_pods(deployments: &Api<Deployment>, name: &str) -> Vec<Pod> {
    let pods: Api<Pod> = Api::default_namespaced(deployments.clone().into_client());
    let selector = ListParams::default().labels(&format!("app={name}"));
    eventually("two pods run and are ready", || async {
        let deployment = deployments.get(name).await.unwrap();
        let ready = deployment.status.and_then(|status| status.ready_replicas);
        let list = pods.list(&selector).await.unwrap();
        (ready == Some(2) && list.items.len() == 2).then_some(list.items)
    })
    .await
}
