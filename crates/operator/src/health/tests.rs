//! Is every machine tried, is a stale picture never acted on, and is everything told once?

use std::time::Duration;

use http::Method;
use machinist_api::{MachineHealthCheckStatus, condition};
use serde_json::{Value, json};

use super::*;
use crate::{
    engine::testing::Fault,
    testing::{MACHINES, World, machine, pool, read},
};

const CHECKS: &str = "/apis/machine.openshift.io/v1beta1/namespaces/ns/machinehealthchecks";
const NODES: &str = "/api/v1/nodes";
const REMEDIATION: &str = "/apis/infrastructure.cluster.x-k8s.io";
const REQUESTS: &str =
    "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/ns/metal3remediations";
const TEMPLATES: &str =
    "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/ns/metal3remediationtemplates";

/// A world with a check of all machines, and with watches that go on.
fn world(spec: Value) -> World {
    let world = World::new();
    let stores = &world.context.stores;
    stores.nodes.mark_synced();
    stores.machines.mark_synced();
    stores.machine_sets.apply_written(read(pool(5)));
    let mut check = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineHealthCheck",
        "metadata": { "name": "check", "namespace": "ns", "uid": "uid-check", "resourceVersion": "9" },
        "spec": {
            "selector": {}, "maxUnhealthy": "2",
            "unhealthyConditions": [{ "type": "Ready", "status": "False", "timeout": "300s" }],
        },
    });
    for (key, value) in spec.as_object().unwrap() {
        check["spec"][key] = value.clone();
    }
    world.server.put(CHECKS, check.clone());
    stores.health_checks.apply_written(read(check));
    world
}

/// A Machine that runs, linked to a Node of the same name.
fn add_machine(world: &World, name: &str) {
    let mut running = machine(name, json!({}));
    running["status"] = json!({
        "phase": "Running", "nodeRef": { "kind": "Node", "name": name, "uid": format!("uid-{name}") },
    });
    world.server.put(MACHINES, running.clone());
    world.context.stores.machines.apply_written(read(running));
}

fn add_node(world: &World, name: &str, version: &str, ready: &str) {
    let node = json!({
        "metadata": { "name": name, "uid": format!("uid-{name}"), "resourceVersion": version },
        "status": { "conditions": [{
            "type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T11:00:00Z",
        }] },
    });
    world.server.put(NODES, node.clone());
    world.context.stores.nodes.apply_written(read(node));
}

fn add(world: &World, name: &str, ready: &str) {
    add_machine(world, name);
    add_node(world, name, "10", ready);
}

async fn pass(world: &World, memory: &Memory) -> Outcome {
    reconcile(&world.context, memory, ObjectKey::new("ns", "check")).await
}

fn status(world: &World) -> MachineHealthCheckStatus {
    let check = world.context.stores.health_checks.get(&ObjectKey::new("ns", "check")).unwrap();
    check.status.clone().unwrap_or_default()
}

fn reason(world: &World, type_: &str) -> Option<String> {
    let status = status(world);
    condition::find(&status.conditions, type_).and_then(|found| found.reason.clone())
}

fn metric(world: &World, name: &str) -> Vec<String> {
    let text = world.context.metrics.encode().unwrap();
    text.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_be_deleted_does_not_keep_the_others() {
    let (world, memory) = (world(json!({})), Memory::default());
    for name in ["a", "b"] {
        add(&world, name, "False");
    }
    for name in ["c", "d", "e"] {
        add(&world, name, "True");
    }
    world.server.fail(|method, path| match *method {
        Method::DELETE if path.ends_with("/a") => Fault::Code(403),
        _ => Fault::None,
    });
    let outcome = pass(&world, &memory).await;
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    assert_eq!(world.requests("DELETE"), [format!("{MACHINES}/a"), format!("{MACHINES}/b")]);
    assert_eq!(
        metric(&world, "mapi_machinehealthcheck"),
        [
            r#"mapi_machinehealthcheck_nodes_covered{name="check",namespace="ns"} 5"#,
            r#"mapi_machinehealthcheck_short_circuit{name="check",namespace="ns"} 0"#,
            r#"mapi_machinehealthcheck_remediation_success_total{name="check",namespace="ns"} 1"#,
        ]
    );
    assert_eq!(status(&world).expected_machines, Some(5));
    // One that was deleted and one that was not.
    assert_eq!(world.into_event_count().await, 2);
}

#[tokio::test(start_paused = true)]
async fn too_many_are_told_once_and_cost_nothing_while_nothing_changes() {
    let (world, memory) = (world(json!({ "maxUnhealthy": "1" })), Memory::default());
    for name in ["a", "b"] {
        add(&world, name, "False");
    }
    pass(&world, &memory).await;
    assert_eq!(reason(&world, "RemediationAllowed").as_deref(), Some("TooManyUnhealthy"));
    let before = world.server.lock().log.len();
    let outcome = pass(&world, &memory).await;
    assert!(matches!(outcome, Outcome::Settled), "{outcome:?}");
    assert_eq!(world.server.lock().log.len(), before);
    assert_eq!(world.requests("DELETE"), [""; 0]);
    let key = ObjectKey::new("ns", "check");
    world.context.stores.health_checks.forget_written(&key, "uid-check");
    pass(&world, &memory).await;
    assert_eq!(metric(&world, "mapi_machinehealthcheck"), [""; 0]);
    assert_eq!(world.into_event_count().await, 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_remediated_on_what_may_be_the_past() {
    let (world, memory) = (World::new(), Memory::default());
    let other = self::world(json!({}));
    let key = ObjectKey::new("ns", "check");
    let check = other.context.stores.health_checks.get(&key).unwrap();
    world.context.stores.health_checks.apply_written((*check).clone());
    world.context.stores.machine_sets.apply_written(read(pool(5)));
    add(&world, "a", "False");
    assert!(matches!(pass(&world, &memory).await, Outcome::RecheckAfter(_)));
    assert_eq!(world.requests("DELETE"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_missing_is_asked_for_before_its_machine_goes() {
    let (world, memory) = (world(json!({})), Memory::default());
    add_machine(&world, "a");
    for name in ["b", "c", "d"] {
        add(&world, name, "True");
    }
    let node = json!({ "metadata": { "name": "a", "uid": "uid-a" } });
    world.server.put(NODES, node);
    assert!(matches!(pass(&world, &memory).await, Outcome::RecheckAfter(_)));
    tokio::time::advance(Duration::from_secs(40)).await;
    pass(&world, &memory).await;
    assert!(world.requests("GET").contains(&NODES.to_owned()));
    assert_eq!(world.requests("DELETE"), [""; 0]);
    world.server.delete(NODES, "a");
    // It was there a moment ago, so it is missing only since now.
    pass(&world, &memory).await;
    assert_eq!(world.requests("DELETE"), [""; 0]);
    tokio::time::advance(Duration::from_secs(40)).await;
    pass(&world, &memory).await;
    assert!(world.requests("GET").contains(&format!("{NODES}/a")));
    assert_eq!(world.requests("DELETE"), [format!("{MACHINES}/a")]);
}

/// S20: more are broken than a late watch shows, and then fewer.
#[tokio::test(start_paused = true)]
async fn how_things_are_is_asked_before_a_machine_goes() {
    let (world, memory) = (world(json!({})), Memory::default());
    for name in ["a", "b"] {
        add(&world, name, "False");
    }
    for name in ["c", "d", "e"] {
        add(&world, name, "True");
    }
    let node = |name: &str, ready: &str| {
        let status = json!({ "conditions": [{
            "type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T11:00:00Z",
        }] });
        json!({ "metadata": { "name": name, "uid": format!("uid-{name}") }, "status": status })
    };
    world.server.put(NODES, node("c", "False"));
    pass(&world, &memory).await;
    assert_eq!(reason(&world, "RemediationAllowed").as_deref(), Some("TooManyUnhealthy"));
    assert_eq!(world.requests("DELETE"), [""; 0]);
    // Without an answer nothing is believed.
    world.server.put(NODES, node("c", "True"));
    world.server.fail(|_, path| if path == NODES { Fault::Code(500) } else { Fault::None });
    assert!(matches!(pass(&world, &memory).await, Outcome::Failed(_)));
    assert_eq!(world.requests("DELETE"), [""; 0]);
    // One has recovered meanwhile.
    world.server.fail(|_, _| Fault::None);
    world.server.put(NODES, node("a", "True"));
    pass(&world, &memory).await;
    assert_eq!(world.requests("DELETE"), [format!("{MACHINES}/b")]);
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_marked_once_for_the_bare_metal_operator() {
    let (world, memory) = (world(json!({})), Memory::default());
    let key = ObjectKey::new("ns", "check");
    let mut check = (*world.context.stores.health_checks.get(&key).unwrap()).clone();
    let strategy = "machine.openshift.io/remediation-strategy".to_owned();
    check.metadata.annotations = Some([(strategy, "external-baremetal".to_owned())].into());
    check.metadata.resource_version = Some("10".to_owned());
    world.server.put(CHECKS, serde_json::to_value(&check).unwrap());
    world.context.stores.health_checks.apply_written(check);
    add(&world, "a", "False");
    for name in ["b", "c", "d"] {
        add(&world, name, "True");
    }
    pass(&world, &memory).await;
    pass(&world, &memory).await;
    let marked = world.requests("PATCH").into_iter().filter(|path| path.starts_with(MACHINES));
    assert_eq!(marked.collect::<Vec<_>>(), [format!("{MACHINES}/a")]);
    let machine = world.context.stores.machines.get(&ObjectKey::new("ns", "a")).unwrap();
    let annotations = machine.metadata.annotations.as_ref().unwrap();
    assert!(annotations.contains_key("host.metal3.io/external-remediation"));
}

fn external_world() -> World {
    let world = world(json!({ "remediationTemplate": {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "Metal3RemediationTemplate", "name": "template",
    } }));
    add(&world, "a", "False");
    for name in ["b", "c", "d"] {
        add(&world, name, "True");
    }
    world
}

fn serve_external_kinds(world: &World) {
    let resource = |plural: &str, kind: &str| {
        json!({
            "name": plural, "singularName": "", "namespaced": true, "kind": kind,
            "verbs": ["get", "list", "create", "delete"],
        })
    };
    let kinds = json!({
        "kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "resources": [
            resource("metal3remediations", "Metal3Remediation"),
            resource("metal3remediationtemplates", "Metal3RemediationTemplate"),
        ],
    });
    let key = (REMEDIATION.to_owned(), "v1beta1".to_owned());
    world.server.lock().objects.insert(key, kinds);
}

#[tokio::test(start_paused = true)]
async fn another_controller_is_asked_once_and_its_request_is_taken_back() {
    let (world, memory) = (external_world(), Memory::default());
    serve_external_kinds(&world);
    world.server.put(
        TEMPLATES,
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "Metal3RemediationTemplate",
            "metadata": { "name": "template", "namespace": "ns" },
            "spec": { "template": { "spec": { "strategy": { "type": "Reboot" } } } },
        }),
    );
    world.server.fail(|method, path| match *method {
        Method::POST if path == REQUESTS => Fault::Code(403),
        _ => Fault::None,
    });
    assert!(matches!(pass(&world, &memory).await, Outcome::Failed(_)));
    pass(&world, &memory).await;
    assert_eq!(
        reason(&world, "ExternalRemediationRequestAvailable").as_deref(),
        Some("ExternalRemediationRequestCreationFailed")
    );
    world.server.fail(|_, _| Fault::None);
    pass(&world, &memory).await;
    let made = world.server.lock().objects.get(&(REQUESTS.to_owned(), "a".to_owned())).cloned();
    let made = made.unwrap();
    assert_eq!(made["spec"]["strategy"]["type"], "Reboot");
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "uid-a");
    pass(&world, &memory).await;
    assert_eq!(world.requests("POST"), [REQUESTS; 3]);
    assert_eq!(reason(&world, "ExternalRemediationRequestAvailable"), None);

    add_node(&world, "a", "11", "True");
    pass(&world, &memory).await;
    assert_eq!(world.requests("DELETE"), [format!("{REQUESTS}/a")]);
}

#[tokio::test(start_paused = true)]
async fn a_template_of_a_kind_that_is_not_there_is_told_in_the_status() {
    let (world, memory) = (external_world(), Memory::default());
    assert!(matches!(pass(&world, &memory).await, Outcome::RecheckAfter(_)));
    assert_eq!(
        reason(&world, "ExternalRemediationTemplateAvailable").as_deref(),
        Some("ExternalRemediationTemplateNotFound")
    );
    assert_eq!(world.requests("POST"), [""; 0]);
}
