//! Are machines of Cluster API shown like the others, to those who may see them and to nobody else?

use super::*;
use crate::{
    cluster_api::{context::Stores, maintained::Maintained, testing::NoNodes},
    engine::leadership::Leadership,
};

const READS_OF_ONE: [&str; 2] =
    ["/api/v1/machines/team-a%2Fw", "/api/v1/machines/team-a%2Fw/timeline"];

/// A machine in each of two namespaces, one of which waits for an approval.
fn theirs(context: &Context) {
    let stores = Stores::default();
    for namespace in ["team-a", "team-b"] {
        stores.clusters.apply_written(read(json!({
            "metadata": meta(namespace, "c1", None), "spec": {},
        })));
        stores.deployments.apply_written(read(json!({
            "metadata": meta(namespace, "pool", None),
            "spec": { "clusterName": "c1", "replicas": 1, "selector": {}, "template": template() },
        })));
        stores.machine_sets.apply_written(read(json!({
            "metadata": meta(namespace, "set", Some(("MachineDeployment", "pool"))),
            "spec": { "clusterName": "c1", "replicas": 1, "selector": {}, "template": template() },
        })));
        stores.machines.apply_written(read(json!({
            "metadata": meta(namespace, "w", Some(("MachineSet", "set"))),
            "spec": {
                "clusterName": "c1", "bootstrap": {}, "failureDomain": "z1",
                "infrastructureRef": { "apiGroup": "i.cluster.x-k8s.io", "kind": "Foo", "name": "w" },
            },
            "status": {
                "phase": "Running", "nodeRef": { "name": "node-w" },
                "conditions": [{
                    "type": "InstanceRunning", "status": "False", "reason": "StoppedByUser",
                    "message": format!("instance {namespace}-i was stopped"),
                    "lastTransitionTime": "2026-01-01T11:00:00Z",
                }, {
                    "type": "NodeReady", "status": "False", "reason": "R", "message": "",
                    "lastTransitionTime": "2026-01-01T11:00:00Z",
                }],
            },
        })));
        context.stores.maintenance.apply_written(read(json!({
            "metadata": {
                "name": format!("mm-{namespace}.w"), "namespace": "ns", "resourceVersion": "5",
                "uid": format!("uid-mm-{namespace}"),
                "annotations": { "machinist.dev/created-for-event": "" },
            },
            "spec": { "machinelink": format!("{namespace}/w") },
            "status": { "phase": "Pending", "machineUid": format!("uid-{namespace}-w"), "reasons": [{
                "id": "event-1", "code": "instance-retirement", "kind": "Event", "state": "Active",
                "since": "2026-01-01T00:00:00Z", "notBefore": "2026-01-09T00:00:00Z",
            }] },
        })));
    }
    stores.clusters.mark_synced();
    stores.machines.mark_synced();
    stores.machine_sets.mark_synced();
    stores.deployments.mark_synced();
    context.stores.cluster_api.put(Maintained {
        stores: Arc::new(stores),
        nodes: Arc::new(NoNodes),
        leadership: Leadership::always_held(),
    });
}

fn meta(namespace: &str, name: &str, owner: Option<(&str, &str)>) -> Value {
    let mut meta = json!({
        "name": name, "namespace": namespace, "uid": format!("uid-{namespace}-{name}"),
        "resourceVersion": "1",
    });
    if let Some((kind, name)) = owner {
        meta["ownerReferences"] = json!([{
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "name": name,
            "uid": format!("uid-{namespace}-{name}"), "controller": true,
        }]);
    }
    meta
}

fn template() -> Value {
    json!({ "spec": {
        "clusterName": "c1", "bootstrap": {},
        "infrastructureRef": { "apiGroup": "i.cluster.x-k8s.io", "kind": "Foo", "name": "t" },
    } })
}

async fn all(site: &Site, token: &str) -> String {
    let mut shown = String::new();
    for path in READS {
        shown.push_str(&site.get(path, token).await.2);
    }
    shown.push_str(&site.post(TRIAL, token, "{}").await.1.to_string());
    shown
}

#[tokio::test(start_paused = true)]
async fn they_stand_in_the_fleet_the_plan_and_the_drift_like_the_others() {
    let site = Site::with(true, theirs);
    let get = async |path: &str| -> Value {
        let (status, _, text) = site.get(path, "reader").await;
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    };
    let fleet = get("/api/v1/fleet").await;
    assert_eq!(fleet["counts"]["machines"], 5, "{fleet}");
    let pools = fleet["pools"].as_array().unwrap();
    assert!(pools.iter().any(|pool| pool["name"] == "team-a/pool"), "{pools:?}");
    let list = get("/api/v1/machines?pool=team-b%2Fpool").await;
    assert_eq!((&list["total"], &list["machines"][0]["name"]), (&json!(1), &json!("team-b/w")));
    let plan = get("/api/v1/plan").await.to_string();
    assert!(plan.contains("team-a/w") && plan.contains("team-b/w"), "{plan}");
    let drift = get("/api/v1/drift").await.to_string();
    assert!(drift.contains("team-a/w"), "{drift}");
    let one = get(READS_OF_ONE[0]).await;
    assert_eq!(one["row"]["node"]["name"], "team-a/c1/node-w");
    assert!(one["pods"]["hidden"].as_str().unwrap().contains("its own cluster"));
    assert_eq!(get(READS_OF_ONE[1]).await["machine"], "team-a/w");
    let log = site.log.lock().unwrap();
    let events = "/api/v1/namespaces/team-a/events";
    assert!(log.iter().any(|(token, _, path, _)| token == "reader" && path == events), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_may_list_them_in_one_namespace_sees_that_one() {
    let site = Site::with(true, theirs);
    let shown = all(&site, "team-a").await;
    assert!(shown.contains("team-a/w") && shown.contains("team-a/pool"), "{shown}");
    assert!(!shown.contains("team-b"), "{shown}");
    assert!(all(&site, "reader").await.contains("team-b/w"));
    for path in READS_OF_ONE {
        assert_eq!(site.get(path, "team-a").await.0, 200, "{path}");
        let other = path.replace("team-a", "team-b");
        assert_eq!(site.get(&other, "team-a").await.0, 404, "{other}");
        assert_eq!(site.get(path, "nobody").await.0, 403, "{path}");
    }
    let path = "/api/v1/machines/team-b%2Fw/approve";
    assert_eq!(site.post(path, "team-a", "{}").await.0, 404);
    let wish = r#"{"place":"pool","name":"team-b/pool","reason":"why"}"#;
    assert_eq!(site.post("/api/v1/pause", "team-a", wish).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn they_are_approved_and_paused_by_their_names() {
    let site = Site::with(true, theirs);
    let machine = json!({ "place": "machine", "name": "team-a/w", "reason": "r" }).to_string();
    let pool = json!({ "place": "pool", "name": "team-a/pool", "reason": "r" }).to_string();
    let of_cluster_api = "/apis/cluster.x-k8s.io/v1beta2/namespaces/team-a";
    for (path, content, written) in [
        (
            "/api/v1/machines/team-a%2Fw/approve",
            "{}",
            "/apis/machinemaintenance.managed.openshift.io/v1alpha1/namespaces/ns/machinemaintenances/mm-team-a.w".to_owned(),
        ),
        ("/api/v1/pause", machine.as_str(), format!("{of_cluster_api}/machines/w")),
        ("/api/v1/pause", pool.as_str(), format!("{of_cluster_api}/machinedeployments/pool")),
    ] {
        let (status, done) = site.post(path, "reader", content).await;
        assert_eq!(status, 403, "by the API server: {done}");
        let log = site.log.lock().unwrap();
        let last = log.iter().rfind(|(_, method, ..)| method == "PATCH").unwrap();
        assert_eq!((last.0.as_str(), last.2.as_str()), ("reader", written.as_str()));
    }
    let one: Value = serde_json::from_str(&site.get(READS_OF_ONE[0], "reader").await.2).unwrap();
    let why = one["actions"]["pause"]["why"].as_str().unwrap();
    assert_eq!(why, "you may not patch machines.cluster.x-k8s.io in namespace team-a");
}

#[tokio::test(start_paused = true)]
async fn a_slash_in_a_name_leads_nowhere_else() {
    let site = Site::with(true, theirs);
    for path in [
        "/api/v1/machines/team-a%2F..",
        "/api/v1/machines/team-a%2F",
        "/api/v1/machines/%2Fw",
        "/api/v1/machines/team-a%252Fw",
        "/api/v1/machines/team-a%2Fw%2Fx",
        "/api/v1/machines/team-a/w",
    ] {
        assert_eq!(site.get(path, "writer").await.0, 404, "{path}");
    }
}
