//! Does the picture say what is, and why it waits?

use std::sync::LazyLock;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::fetch::{Observed, Scope};
use super::judge::{NodeState, Report, report};
use super::render::{Layout, Notation, names, summary, table};
use super::{Form, text};
use crate::args::Output;
use crate::testing::{berlin, golden, testdata};
use crate::zone::Zone;

const NOW: &str = "2026-11-15T12:00:00Z";
const CREATED: &str = "2026-11-15T11:55:00Z";
const CHANGED: &str = "2026-11-15T11:58:30Z";

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

fn pool(name: &str, desired: i32, ready: i32) -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "MachineSet",
        "metadata": {
            "name": name, "namespace": "openshift-machine-api", "uid": name, "generation": 1,
            "creationTimestamp": CREATED,
        },
        "spec": { "replicas": desired },
        "status": { "replicas": desired, "readyReplicas": ready, "observedGeneration": 1 },
    })
}

/// A machine as it should be; the tests change what is not.
fn machine(name: &str, pool: Option<&str>) -> Value {
    let owners = pool.map(|pool| {
        json!([{
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "name": pool,
            "uid": pool, "controller": true,
        }])
    });
    json!({
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "Machine",
        "metadata": {
            "name": name, "namespace": "openshift-machine-api", "uid": name,
            "creationTimestamp": CREATED, "ownerReferences": owners,
            "labels": {
                "machine.openshift.io/instance-type": "m6i.large",
                "machine.openshift.io/zone": "us-east-1a",
            },
        },
        "spec": { "providerID": format!("aws:///us-east-1a/i-{name}") },
        "status": {
            "phase": "Running",
            "nodeRef": { "kind": "Node", "name": format!("node-{name}"), "uid": format!("uid-{name}") },
            "providerStatus": { "instanceId": format!("i-{name}"), "instanceState": "running" },
            "conditions": [condition("InstanceExists", "True", "", "")],
        },
    })
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": CHANGED,
    })
}

fn node(machine: &str, ready: &str) -> Node {
    serde_json::from_value(json!({
        "metadata": { "name": format!("node-{machine}"), "uid": format!("uid-{machine}") },
        "status": { "conditions": [{
            "type": "Ready", "status": ready, "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": CHANGED,
        }] },
    }))
    .unwrap()
}

fn report_of(pools: Vec<Value>, machines: Vec<Value>, nodes: Option<Vec<Node>>) -> Report {
    report(&Observed::read(pools.into_iter().map(object), machines.into_iter().map(object), nodes))
}

fn layout(terminal_width: Option<usize>) -> Layout<'static> {
    static ZONE: LazyLock<Zone> = LazyLock::new(berlin);
    Layout {
        is_wide: false,
        with_namespaces: false,
        terminal_width,
        zone: &ZONE,
        now: NOW.parse::<Timestamp>().unwrap(),
    }
}

/// The text without colours.
fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// What a single machine, changed as told, is said to wait for.
fn waits_for(change: impl FnOnce(&mut Value)) -> Option<(String, String)> {
    let mut value = machine("a", None);
    change(&mut value);
    let report = report_of(vec![], vec![value], Some(vec![node("a", "True")]));
    let waiting = report.machines_without_pool[0].waiting.clone();
    waiting.map(|waiting| (waiting.reason, waiting.message))
}

fn expect(change: impl FnOnce(&mut Value), reason: &str, message: &str) {
    assert_eq!(waits_for(change), Some((reason.to_owned(), message.to_owned())));
}

#[test]
fn a_machine_as_it_should_be_waits_for_nothing() {
    assert_eq!(waits_for(|_| {}), None);
}

#[test]
fn a_blocked_drain_is_said_in_the_conditions_words() {
    let blocked = "could not drain machine: node n: pod demo/web-1 is protected by disruption \
                   budget web (3 of 3 healthy, 3 needed)";
    expect(
        |machine| {
            machine["metadata"]["deletionTimestamp"] = json!(CHANGED);
            machine["status"]["phase"] = json!("Deleting");
            machine["status"]["conditions"] = json!([
                condition("Drained", "False", "DrainError", blocked),
                condition("InstanceExists", "True", "", ""),
            ]);
        },
        "DrainError",
        blocked,
    );
}

#[test]
fn each_step_of_a_deletion_has_its_reason() {
    let deleting = |conditions: Value, state: &str| {
        let state = state.to_owned();
        move |machine: &mut Value| {
            machine["metadata"]["deletionTimestamp"] = json!(CHANGED);
            machine["status"]["phase"] = json!("Deleting");
            machine["status"]["conditions"] = conditions;
            machine["status"]["providerStatus"]["instanceState"] = json!(state);
        }
    };
    expect(deleting(json!([]), "running"), "Draining", "waiting for the node to be drained");
    let hook = "Drain operation currently blocked by: [{Name:x Owner:y}]";
    expect(
        deleting(json!([condition("Drainable", "False", "HookPresent", hook)]), "running"),
        "HookPresent",
        hook,
    );
    let drained = condition("Drained", "True", "", "");
    let hook = "Terminate operation currently blocked by: [{Name:x Owner:y}]";
    let held = condition("Terminable", "False", "HookPresent", hook);
    expect(deleting(json!([drained, held]), "running"), "HookPresent", hook);
    expect(
        deleting(json!([drained]), "running"),
        "Terminating",
        "instance i-a is being terminated",
    );
    expect(
        deleting(json!([drained]), "shutting-down"),
        "Terminating",
        "instance i-a is shutting-down",
    );
}

#[test]
fn a_launch_that_was_refused_is_said_in_the_providers_words() {
    expect(
        |machine| {
            machine["status"]["phase"] = json!("Provisioning");
            machine["status"]["conditions"] = json!([condition(
                "InstanceExists",
                "False",
                "InstanceNotCreated",
                "Instance has not been created"
            )]);
            machine["status"]["providerStatus"] = json!({ "conditions": [{
                "type": "MachineCreation", "status": "False", "reason": "MachineCreationFailed",
                "message": "no capacity for m6i.large in us-east-1a", "lastTransitionTime": CHANGED,
            }] });
        },
        "MachineCreationFailed",
        "no capacity for m6i.large in us-east-1a",
    );
}

#[test]
fn each_step_of_a_launch_has_its_reason() {
    expect(
        |machine| machine["status"] = json!(null),
        "NotLookedAt",
        "no operator has looked at this machine yet",
    );
    expect(
        |machine| {
            machine["spec"] = json!({});
            machine["status"] = json!({
                "phase": "Provisioning",
                "conditions": [condition("InstanceExists", "False", "InstanceNotCreated", "x")],
                "providerStatus": { "launch": {
                    "attempt": 1, "clientToken": "t", "since": CHANGED,
                } },
            });
        },
        "Launching",
        "the instance is being launched",
    );
    expect(
        |machine| machine["status"]["providerStatus"]["instanceState"] = json!("pending"),
        "InstancePending",
        "instance i-a is pending",
    );
    expect(
        |machine| machine["status"]["nodeRef"] = json!(null),
        "NodeMissing",
        "instance i-a has no node yet",
    );
}

#[test]
fn what_happens_behind_the_clusters_back_shows() {
    expect(
        |machine| machine["status"]["providerStatus"]["instanceState"] = json!("stopped"),
        "InstanceNotRunning",
        "instance i-a is stopped",
    );
    expect(
        |machine| {
            machine["status"]["phase"] = json!("Failed");
            machine["status"]["errorMessage"] = json!("can't find created instance");
        },
        "Failed",
        "can't find created instance",
    );
    let missing = "Instance not found on provider: terminated by the user";
    expect(
        |machine| {
            machine["status"]["phase"] = json!("Failed");
            machine["status"]["errorMessage"] = json!("can't find created instance");
            machine["status"]["conditions"] =
                json!([condition("InstanceExists", "False", "InstanceMissing", missing)]);
        },
        "InstanceMissing",
        missing,
    );
    expect(
        |machine| machine["status"]["nodeRef"]["uid"] = json!("another"),
        "NodeMissing",
        "node node-a is gone",
    );
}

#[test]
fn drift_is_told_in_the_conditions_own_words() {
    let conditions = |of: &[(&str, &str, &str, &str)]| {
        let all = of
            .iter()
            .map(|(type_, status, reason, message)| condition(type_, status, reason, message));
        json!(all.collect::<Vec<_>>())
    };
    let exists = ("InstanceExists", "True", "", "");
    let missing = ("InstanceExists", "False", "InstanceMissing", "Instance not found on provider");
    let stopped = "instance i-a was stopped by a user; it is started again at 12:05";
    let held = "instance i-a is not known to the provider any more; its replacement is held";
    for (phase, of, reason, message) in [
        (
            "Running",
            [exists, ("InstanceRunning", "False", "StoppedByUser", stopped)],
            "StoppedByUser",
            stopped,
        ),
        ("Running", [exists, ("InstanceRunning", "Unknown", "Vanished", held)], "Vanished", held),
        ("Failed", [missing, ("InstanceRunning", "False", "Vanished", held)], "Vanished", held),
        (
            "Running",
            [exists, ("InstanceHealthy", "False", "Impaired", "checks fail")],
            "Impaired",
            "checks fail",
        ),
    ] {
        expect(
            |machine| {
                machine["status"]["phase"] = json!(phase);
                machine["status"]["conditions"] = conditions(&of);
            },
            reason,
            message,
        );
    }
    let unknown = ("InstanceHealthy", "Unknown", "HealthUnknown", "not permitted");
    let waits =
        waits_for(|machine| machine["status"]["conditions"] = conditions(&[exists, unknown]));
    assert_eq!(waits, None, "what cannot be told holds nobody up");
}

#[test]
fn a_pool_says_why_it_cannot_scale() {
    let mut failing = pool("p", 3, 0);
    failing["status"]["conditions"] =
        json!([condition("Scaling", "False", "InvalidConfiguration", "spec.selector: wrong")]);
    let mut new = pool("q", 3, 0);
    new["status"] = json!({});
    let mut growing = pool("r", 6, 3);
    growing["status"]["replicas"] = json!(4);
    let report =
        report_of(vec![failing, new, growing, pool("s", 2, 1), pool("t", 2, 2)], vec![], None);
    let messages: Vec<Option<&str>> = report
        .pools
        .iter()
        .map(|pool| pool.waiting.as_ref().map(|waiting| waiting.message.as_str()))
        .collect();
    assert_eq!(
        messages,
        [
            Some("spec.selector: wrong"),
            Some("no operator has looked at the last change of this pool yet"),
            Some("4 of 6 machines are made"),
            Some("1 of 2 nodes are ready"),
            None,
        ]
    );
}

#[test]
fn an_object_that_does_not_parse_hides_no_other() {
    let mut broken = machine("b", None);
    broken["status"]["conditions"] = json!("none");
    let report = report_of(vec![], vec![machine("a", None), broken], None);
    let phases: Vec<&str> =
        report.machines_without_pool.iter().map(|machine| machine.phase.as_str()).collect();
    assert_eq!(phases, ["Running", "Unreadable"]);
    assert_eq!(report.machines_without_pool[0].node.as_ref().unwrap().state, NodeState::NotVisible);
}

fn fleet() -> Report {
    let mut silent = machine("w2", Some("workers"));
    silent["metadata"]["name"] = json!("w2");
    report_of(
        vec![pool("workers", 2, 1)],
        vec![machine("m0", None), silent, machine("w1", Some("workers"))],
        Some(vec![node("m0", "True"), node("w1", "True"), node("w2", "Unknown")]),
    )
}

#[test]
fn a_file_gets_one_line_for_each_machine_with_the_reason_last() {
    assert_eq!(
        plain(&table(&fleet(), &layout(None))),
        "\
NAME        PHASE       AGE   INSTANCE   NODE               WAITING FOR
workers     1/2 ready   5m                                  1 of 2 nodes are ready
  w1        Running     5m    i-w1       node-w1
  w2        Running     5m    i-w2       node-w2 (silent)   node node-w2 is silent: Kubelet stopped posting node status. (for 90s)
(no pool)
  m0        Running     5m    i-m0       node-m0

3 machines: 3 Running; 1 pool and 1 machine wait
"
    );
}

#[test]
fn a_terminal_gets_the_reason_below_the_machine_and_no_line_is_too_long() {
    let text = plain(&table(&fleet(), &layout(Some(57))));
    assert_eq!(
        text,
        "\
NAME        PHASE       AGE   INSTANCE   NODE
workers     1/2 ready   5m
  ↳ 1 of 2 nodes are ready
  w1        Running     5m    i-w1       node-w1
  w2        Running     5m    i-w2       node-w2 (silent)
    ↳ node node-w2 is silent: Kubelet stopped posting
      node status. (for 90s)
(no pool)
  m0        Running     5m    i-m0       node-m0

3 machines: 3 Running; 1 pool and 1 machine wait
"
    );
    // The summary alone takes 50.
    for width in 50..80 {
        for line in plain(&table(&fleet(), &layout(Some(width)))).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn a_narrow_terminal_costs_the_nodes_domain_first() {
    let mut named = machine("a", None);
    named["status"]["nodeRef"] = json!({ "name": "ip-10-0-0-5.ec2.internal" });
    let report = report_of(vec![], vec![named], None);
    let lines = |width| plain(&table(&report, &layout(Some(width))));
    assert!(lines(80).contains("ip-10-0-0-5.ec2.internal"), "{}", lines(80));
    assert!(lines(50).contains("ip-10-0-0-5\n"), "{}", lines(50));
}

/// Names as installers make them: eighty columns are too few for all of it.
#[test]
fn eighty_columns_show_every_node_and_both_ends_of_every_name() {
    let name = |suffix: &str| format!("machinist-worker-us-east-1a-{suffix}");
    let machines = ["dt4kl", "mh96r"].map(|suffix| {
        let mut named = machine(&name(suffix), Some("machinist-worker-us-east-1a"));
        named["status"]["providerStatus"]["instanceId"] = json!("i-0d5c77190958db98b");
        named["status"]["nodeRef"] = json!({ "name": "ip-10-0-16-4.ec2.internal" });
        named
    });
    let pools = vec![pool("machinist-worker-us-east-1a", 2, 2)];
    let text = plain(&table(&report_of(pools, machines.to_vec(), None), &layout(Some(80))));
    for suffix in ["dt4kl", "mh96r"] {
        let line = text.lines().find(|line| line.contains(suffix)).unwrap();
        assert!(line.starts_with("  machinist-w"), "{text}");
        assert!(line.ends_with("i-0d5c77190958db98b   ip-10-0-16-4"), "{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn times_in_sentences_are_those_of_the_reader() {
    let mut checked = machine("a", None);
    let message = "instance i-a fails the provider's checks: system since 2026-11-15T11:55:54.99Z";
    checked["status"]["conditions"] =
        json!([condition("InstanceHealthy", "False", "Impaired", message)]);
    let report = report_of(vec![], vec![checked], Some(vec![node("a", "True")]));
    let text = plain(&table(&report, &layout(None)));
    assert!(text.contains("system since Sun 15 Nov 12:55 (for 90s)"), "{text}");
}

/// The fleet of `testdata/maintenance`, as it is shown to people and programs.
#[tokio::test]
async fn the_fleet_is_shown_as_it_always_was() {
    let fleet = crate::testing::fleet().await;
    let objects = |kind: &str| -> Vec<DynamicObject> {
        let text = std::fs::read_to_string(testdata("fleet.yaml")).unwrap();
        let all: Vec<DynamicObject> = serde_saphyr::from_multiple(&text).unwrap();
        let is_it =
            |one: &DynamicObject| one.types.as_ref().is_some_and(|types| types.kind == kind);
        all.into_iter().filter(is_it).collect()
    };
    let observed = Observed::read(objects("MachineSet"), objects("Machine"), Some(fleet.nodes));
    let report = report(&observed);
    let at = |terminal_width| Layout { now: crate::testing::now(), ..layout(terminal_width) };
    golden("../status/terminal.txt", &table(&report, &at(Some(80))));
    golden("../status/narrow.txt", &table(&report, &at(Some(60))));
    golden("../status/piped.txt", &table(&report, &at(None)));
    let wide = Layout { is_wide: true, with_namespaces: true, ..at(Some(80)) };
    golden("../status/wide.txt", &table(&report, &wide));
    golden("../status/names.txt", &names(&report));
    let scope = Scope::Namespace("openshift-machine-api".to_owned());
    let zone = berlin();
    for (output, file) in [(Output::Json, "status.json"), (Output::Yaml, "status.yaml")] {
        let form = Form { output, scope: &scope, zone: &zone };
        golden(&format!("../status/{file}"), &text(&report, form, Notation::Indented).unwrap());
    }
}

#[test]
fn wide_adds_type_and_zone_and_cuts_nothing() {
    let layout = Layout { is_wide: true, with_namespaces: true, ..layout(Some(40)) };
    let text = plain(&table(&fleet(), &layout));
    let header = text.lines().next().unwrap();
    assert_eq!(
        header.split("   ").map(str::trim).filter(|word| !word.is_empty()).collect::<Vec<_>>(),
        ["NAMESPACE", "NAME", "PHASE", "AGE", "INSTANCE", "NODE", "TYPE", "ZONE", "WAITING FOR"]
    );
    assert!(text.contains("m6i.large   us-east-1a   node node-w2 is silent"), "{text}");
}

#[test]
fn names_are_kubectls() {
    assert_eq!(
        names(&fleet()),
        "machineset.machine.openshift.io/workers\nmachine.machine.openshift.io/w1\n\
         machine.machine.openshift.io/w2\nmachine.machine.openshift.io/m0\n"
    );
}

#[test]
fn nothing_is_said_plainly() {
    let empty = report_of(vec![], vec![], Some(vec![]));
    assert_eq!(table(&empty, &layout(None)), "No machines and no pools found.\n");
    assert_eq!(summary(&empty), "0 machines: none; nothing waits");
}

#[test]
fn programs_get_the_whole_report() {
    let value = serde_json::to_value(fleet()).unwrap();
    let machine = &value["pools"][0]["machines"][1];
    assert_eq!(
        machine["instance"],
        json!({
            "id": "i-w2", "state": "running", "type": "m6i.large", "zone": "us-east-1a",
        })
    );
    assert_eq!(machine["node"]["state"], "Unknown");
    assert_eq!(machine["waiting"]["since"], CHANGED);
    assert_eq!(value["machinesWithoutPool"][0]["name"], "m0");
    assert_eq!(
        value["summary"],
        json!({ "machines": 3, "byPhase": { "Running": 3 }, "waitingMachines": 1, "waitingPools": 1 })
    );
}

#[test]
fn machines_of_cluster_api_stand_under_their_deployment() {
    let text = std::fs::read_to_string(crate::testing::testdata("../cluster-api/objects.yaml"));
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text.unwrap()).unwrap();
    let of = |kind: &str| {
        let found = objects.iter().filter(|object| object["kind"] == kind).cloned();
        found.map(object).collect::<Vec<DynamicObject>>()
    };
    let mut observed = Observed::read([], [], Some(Vec::new()));
    observed.add(super::fetch::ClusterApiObjects {
        clusters: of("Cluster"),
        machines: of("Machine"),
        sets: of("MachineSet"),
        deployments: of("MachineDeployment"),
    });
    let report = report(&observed);
    assert_eq!(report.pools.len(), 1);
    assert_eq!((report.pools[0].name.as_str(), report.pools[0].ready), ("team-a/workers", 2));
    let machines = &report.pools[0].machines;
    assert_eq!(machines[0].name, "team-a/workers-x-1");
    assert_eq!(machines[0].waiting, None);
    let node = machines[0].node.as_ref().unwrap();
    assert_eq!((node.name.as_str(), node.state), ("team-a/c1/node-1", NodeState::Ready));
    assert_eq!(machines[1].waiting.as_ref().unwrap().reason, "StoppedByUser");
    assert_eq!(report.machines_without_pool[0].phase, "Unreadable");
    let names = names(&report);
    assert!(names.contains("pool/team-a/workers\n"), "{names}");
    assert!(names.contains("machine.cluster.x-k8s.io/team-a/workers-x-1\n"), "{names}");
}
