//! Which machines are unhealthy, what is said of them, and when is nothing done?

mod doubt;
mod gate;

use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use machinist_api::cluster_api::{Cluster, Machine, MachineHealthCheck, MachineSet, condition};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Action, Doubt, Gate, HealthDecision, NodeSight, Observed, Target, decide};
use crate::cluster_api::{machineset::observed::Found, maintained};

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn read<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

fn check() -> Value {
    json!({
        "metadata": {
            "name": "mhc", "namespace": "ns", "uid": "uid-mhc", "generation": 1,
            "labels": { "cluster.x-k8s.io/cluster-name": "c1" },
            "ownerReferences": [{
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c1", "uid": "uid-c1",
            }],
        },
        "spec": {
            "clusterName": "c1", "selector": { "matchLabels": { "pool": "a" } },
            "checks": {
                "nodeStartupTimeoutSeconds": 600,
                "unhealthyNodeConditions": [
                    { "type": "Ready", "status": "Unknown", "timeoutSeconds": 300 },
                    { "type": "Ready", "status": "False", "timeoutSeconds": 300 },
                ],
                "unhealthyMachineConditions": [
                    { "type": "InfrastructureReady", "status": "False", "timeoutSeconds": 1800 },
                ],
            },
        },
    })
}

fn cluster() -> Value {
    let up = ["InfrastructureReady", "ControlPlaneInitialized"];
    let conditions = up.map(|type_| reported(type_, "True", "2026-01-01T08:00:00Z"));
    json!({
        "metadata": { "name": "c1", "namespace": "ns", "uid": "uid-c1" }, "spec": {},
        "status": { "conditions": conditions },
    })
}

fn reported(type_: &str, status: &str, since: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": "R", "message": "", "lastTransitionTime": since,
    })
}

fn machine(name: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": "1",
            "generation": 1, "creationTimestamp": "2026-01-01T10:00:00Z", "labels": { "pool": "a" },
        },
        "spec": { "clusterName": "c1", "bootstrap": {}, "infrastructureRef": {} },
        "status": { "nodeRef": { "name": format!("node-{name}") }, "conditions": [] },
    })
}

fn node(status: &str, since: &str) -> Value {
    json!({ "metadata": { "name": "n" }, "status": { "conditions": [{
        "type": "Ready", "status": status, "lastTransitionTime": since,
    }] } })
}

/// How the Node of a machine looks in a test.
enum Looks {
    Well,
    BadSince(&'static str),
    Gone,
    NotYet,
    Silent,
}

struct World {
    check: Value,
    cluster: Value,
    machines: Vec<(Value, Looks)>,
    template: Option<Value>,
    requests: Vec<Value>,
    failure: Option<&'static str>,
    /// The sets that own machines.
    sets: Vec<Value>,
    doubt: Option<Doubt>,
    doubted_at: Option<Timestamp>,
}

impl World {
    fn new(machines: Vec<(Value, Looks)>) -> Self {
        Self {
            check: check(),
            cluster: cluster(),
            machines,
            template: None,
            requests: Vec::new(),
            failure: None,
            sets: Vec::new(),
            doubt: None,
            doubted_at: None,
        }
    }

    fn gate(&self, machines: &[Machine], nodes: &[Option<Node>]) -> Gate {
        let sets: Vec<MachineSet> = self.sets.iter().cloned().map(read).collect();
        let objects = maintained::Objects {
            machines: machines.iter().collect(),
            sets: sets.iter().collect(),
            ..maintained::Objects::default()
        };
        let seen = maintained::all(&objects);
        let node_of = |uid: &Option<String>| {
            let place = machines.iter().position(|machine| machine.metadata.uid == *uid)?;
            nodes[place].as_ref()
        };
        let machines: Vec<_> =
            seen.machines.iter().map(|one| (one, node_of(&one.metadata.uid))).collect();
        Gate::count(&seen.pools, &machines)
    }

    fn decide(&self) -> HealthDecision {
        let check: MachineHealthCheck = read(self.check.clone());
        let cluster: Cluster = read(self.cluster.clone());
        let machines: Vec<Machine> =
            self.machines.iter().map(|(machine, _)| read(machine.clone())).collect();
        let nodes: Vec<Option<Node>> = self
            .machines
            .iter()
            .map(|(_, looks)| match looks {
                Looks::Well => Some(read(node("True", "2026-01-01T11:00:00Z"))),
                Looks::BadSince(since) => Some(read(node("Unknown", since))),
                Looks::Gone | Looks::NotYet | Looks::Silent => None,
            })
            .collect();
        let targets =
            machines.iter().zip(&nodes).zip(&self.machines).map(|((machine, node), (_, looks))| {
                let node = match (node, looks) {
                    (Some(node), _) => NodeSight::Present(node),
                    (None, Looks::Gone) => NodeSight::Gone,
                    (None, Looks::NotYet) => NodeSight::NotYet,
                    (None, _) => NodeSight::Unknown,
                };
                Target { machine, node }
            });
        let metadata = ObjectMeta::default();
        let requests: Vec<ObjectMeta> = self.requests.iter().cloned().map(read).collect();
        let observed = Observed {
            check: &check,
            cluster: Some(&cluster),
            targets: targets.collect(),
            template: self
                .template
                .as_ref()
                .map(|object| Found::Whole { metadata: &metadata, object }),
            requests: requests.iter().collect(),
            last_failure: self.failure,
            gate: self.gate(&machines, &nodes),
            doubt: self.doubt.clone(),
            doubted_at: self.doubted_at,
        };
        decide(&observed, now())
    }
}

/// What is said on the machines: name, type, status, reason.
fn marks(decision: &HealthDecision) -> Vec<String> {
    let mut all = Vec::new();
    for action in &decision.actions {
        if let Action::Mark { machine, status } = action {
            for known in &status.conditions {
                all.push(format!(
                    "{} {}={} {}",
                    machine.name, known.type_, known.status, known.reason
                ));
            }
        }
    }
    all
}

fn one(machine: Value, looks: Looks) -> HealthDecision {
    World::new(vec![(machine, looks)]).decide()
}

#[test]
fn a_machine_is_judged_by_its_node_and_its_conditions() {
    let unhealthy = |reason: &str| {
        vec![
            format!("a HealthCheckSucceeded=False {reason}"),
            "a OwnerRemediated=False WaitingForRemediation".to_owned(),
        ]
    };
    let healthy = vec!["a HealthCheckSucceeded=True HealthCheckSucceeded".to_owned()];
    let mut asked_for = machine("a");
    asked_for["metadata"]["annotations"] = json!({ "cluster.x-k8s.io/remediate-machine": "" });
    let mut nodeless = machine("a");
    nodeless["status"]["nodeRef"] = Value::Null;
    let mut young = nodeless.clone();
    young["metadata"]["creationTimestamp"] = json!("2026-01-01T11:55:00Z");
    let cases = [
        (machine("a"), Looks::Well, healthy),
        (machine("a"), Looks::BadSince("2026-01-01T11:54:00Z"), unhealthy("UnhealthyNode")),
        (machine("a"), Looks::BadSince("2026-01-01T11:56:00Z"), vec![]),
        (machine("a"), Looks::Gone, unhealthy("NodeDeleted")),
        (machine("a"), Looks::Silent, vec![]),
        (nodeless, Looks::NotYet, unhealthy("NodeStartupTimeout")),
        (young, Looks::NotYet, vec![]),
        (asked_for, Looks::Well, unhealthy("HasRemediateAnnotation")),
    ];
    for (place, (machine, looks, expected)) in cases.into_iter().enumerate() {
        assert_eq!(marks(&one(machine, looks)), expected, "case {place}");
    }
}

#[test]
fn a_condition_of_the_machine_wins_over_its_node_and_all_causes_are_named() {
    let mut broken = machine("a");
    broken["status"]["conditions"] =
        json!([reported("InfrastructureReady", "False", "2026-01-01T11:00:00Z")]);
    let decision = one(broken, Looks::BadSince("2026-01-01T11:00:00Z"));
    let Some(Action::Mark { status, .. }) = decision.actions.first() else {
        panic!("{decision:?}")
    };
    let said = condition::find(&status.conditions, "HealthCheckSucceeded").unwrap();
    assert_eq!(said.reason, "UnhealthyMachine");
    assert_eq!(
        said.message,
        "Health check failed:\n  * Condition InfrastructureReady on Machine is reporting status False for \
         more than 30m0s\n  * Condition Ready on Node is reporting status Unknown for more than 5m0s"
    );
}

#[test]
fn the_startup_time_counts_from_the_last_thing_that_was_waited_for() {
    let mut nodeless = machine("a");
    nodeless["status"]["nodeRef"] = Value::Null;
    nodeless["status"]["conditions"] =
        json!([reported("InfrastructureReady", "True", "2026-01-01T11:58:00Z")]);
    let decision = one(nodeless, Looks::NotYet);
    assert_eq!(marks(&decision), [""; 0]);
    assert_eq!(decision.recheck, Some("2026-01-01T12:08:00Z".parse().unwrap()));
}

#[test]
fn nothing_is_judged_before_the_cluster_is_up() {
    for missing in ["InfrastructureReady", "ControlPlaneInitialized"] {
        let mut world = World::new(vec![(machine("a"), Looks::Gone)]);
        let conditions = world.cluster["status"]["conditions"].as_array_mut().unwrap();
        conditions.retain(|known| known["type"] != missing);
        let decision = world.decide();
        assert_eq!(marks(&decision), [""; 0], "{missing}");
    }
}

#[test]
fn machines_that_are_exempt_are_not_even_counted() {
    for key in ["cluster.x-k8s.io/skip-remediation", "cluster.x-k8s.io/paused"] {
        let mut exempt = machine("a");
        exempt["metadata"]["annotations"] = json!({ key: "" });
        let decision = one(exempt, Looks::Gone);
        assert_eq!(
            (marks(&decision).len(), decision.status.expected_machines),
            (0, Some(0)),
            "{key}"
        );
    }
}

/// Machines that are still starting do not keep the broken ones from being replaced, as they do in Cluster API.
#[test]
fn starting_machines_do_not_trip_the_breaker() {
    let starting = |name: &str| {
        let mut young = machine(name);
        young["metadata"]["creationTimestamp"] = json!("2026-01-01T11:55:00Z");
        young["status"]["nodeRef"] = Value::Null;
        (young, Looks::NotYet)
    };
    let mut world = World::new(vec![
        starting("s1"),
        starting("s2"),
        starting("s3"),
        (machine("a"), Looks::Gone),
        (machine("b"), Looks::Well),
        (machine("c"), Looks::Well),
    ]);
    world.check["spec"]["remediation"] =
        json!({ "triggerIf": { "unhealthyLessThanOrEqualTo": "40%" } });
    let decision = world.decide();
    assert!(marks(&decision).contains(&"a OwnerRemediated=False WaitingForRemediation".to_owned()));
    assert_eq!(decision.status.expected_machines, Some(6));
    assert_eq!(decision.status.targets, ["a", "b", "c", "s1", "s2", "s3"]);
}

#[test]
fn too_many_unhealthy_machines_are_told_and_left_alone() {
    let world = |trigger: Value| {
        let mut world = World::new(vec![
            (machine("a"), Looks::Gone),
            (machine("b"), Looks::Gone),
            (machine("c"), Looks::Well),
        ]);
        world.check["spec"]["remediation"] = json!({ "triggerIf": trigger });
        world
    };
    let at_most = |value: Value| json!({ "unhealthyLessThanOrEqualTo": value });
    let range = |text: &str| json!({ "unhealthyInRange": text });
    let both = json!({ "unhealthyLessThanOrEqualTo": 0, "unhealthyInRange": "[1-3]" });
    for (trigger, is_allowed, left) in [
        (at_most(json!(1)), false, 0),
        (at_most(json!(2)), true, 0),
        (at_most(json!("100%")), true, 1),
        (at_most(json!("66%")), false, 0),
        (range("[3-5]"), false, 0),
        (range("[2-5]"), true, 3),
        (range("[0-1]"), false, 0),
        (both, true, 1),
    ] {
        let decision = world(trigger.clone()).decide();
        let known = condition::find(&decision.status.conditions, "RemediationAllowed").unwrap();
        assert_eq!(known.status, if is_allowed { "True" } else { "False" }, "{trigger}");
        let asked = marks(&decision).iter().filter(|mark| mark.contains("OwnerRemediated")).count();
        assert_eq!(asked, if is_allowed { 2 } else { 0 }, "{trigger}");
        let told = marks(&decision).iter().filter(|mark| mark.contains("Succeeded=False")).count();
        assert_eq!(told, 2, "how they are is said all the same");
        assert_eq!(decision.status.remediations_allowed, Some(left), "{trigger}");
        assert_eq!(decision.announcements.len(), if is_allowed { 2 } else { 1 }, "{trigger}");
    }
}

/// The owner's own words on a Machine are not written over.
#[test]
fn what_the_owner_says_of_its_remediation_stays() {
    let mut deferred = machine("a");
    let mut said = reported("OwnerRemediated", "False", "2026-01-01T11:00:00Z");
    said["reason"] = json!("RemediationDeferred");
    deferred["status"]["conditions"] = json!([said]);
    let marks = marks(&one(deferred, Looks::Gone));
    assert!(marks.contains(&"a OwnerRemediated=False RemediationDeferred".to_owned()), "{marks:?}");
}

#[test]
fn a_settled_check_says_nothing_new() {
    let mut world = World::new(vec![(machine("a"), Looks::Well), (machine("b"), Looks::Gone)]);
    let first = world.decide();
    world.check["status"] = serde_json::to_value(&first.status).unwrap();
    for action in &first.actions {
        let Action::Mark { machine, status } = action else { panic!("{action:?}") };
        let target = world
            .machines
            .iter_mut()
            .find(|(known, _)| known["metadata"]["name"] == machine.name.as_str())
            .unwrap();
        target.0["status"] = serde_json::to_value(status).unwrap();
    }
    let second = world.decide();
    assert_eq!((second.actions, second.status), (vec![], first.status));
    assert_eq!(second.announcements, []);
}

fn external() -> World {
    let mut world = World::new(vec![(machine("a"), Looks::Gone), (machine("b"), Looks::Gone)]);
    world.check["spec"]["remediation"] = json!({ "templateRef": {
        "apiVersion": "remediation.example.com/v1", "kind": "FixTemplate", "name": "fix",
    } });
    world.template = Some(json!({
        "apiVersion": "remediation.example.com/v1", "kind": "FixTemplate",
        "metadata": { "name": "fix" }, "spec": { "template": { "spec": { "how": "reboot" } } },
    }));
    world
}

fn requested(decision: &HealthDecision) -> Vec<&str> {
    let actions = decision.actions.iter();
    actions
        .filter_map(|action| match action {
            Action::Request { object, .. } => object["metadata"]["name"].as_str(),
            _ => None,
        })
        .collect()
}

#[test]
fn another_controller_is_asked_once_for_each_machine() {
    let mut world = external();
    let decision = world.decide();
    assert_eq!(requested(&decision), ["a", "b"]);
    let Some(Action::Request { kind, version, object }) = decision.actions.first() else {
        panic!()
    };
    assert_eq!((kind.kind.as_str(), &object["spec"]["how"]), ("Fix", &json!("reboot")));
    assert_eq!((kind.group.as_str(), version.as_str()), ("remediation.example.com", "v1"));
    assert_eq!(object["metadata"]["ownerReferences"][0]["uid"], "uid-a");
    assert!(
        marks(&decision).contains(&"a ExternallyRemediated=False WaitingForRemediation".to_owned())
    );
    assert!(!marks(&decision).iter().any(|mark| mark.contains("OwnerRemediated")));
    // A request that is there already does not keep the others waiting.
    world.requests = vec![json!({ "name": "a", "namespace": "ns", "uid": "r" })];
    let decision = world.decide();
    assert_eq!(requested(&decision), ["b"]);
    let again = Some("2026-01-01T12:00:30Z".parse().unwrap());
    assert_eq!(decision.recheck, again, "nor does the end of a request");
}

#[test]
fn a_request_is_withdrawn_when_the_machine_recovered() {
    let mut world = external();
    world.machines = vec![(machine("a"), Looks::Well)];
    let owner = json!([{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "a", "uid": "uid-a" }]);
    world.requests = vec![json!({ "name": "a", "uid": "r", "ownerReferences": owner })];
    let decision = world.decide();
    let is_withdrawn =
        |action: &Action| matches!(action, Action::Withdraw { object, .. } if object.uid == "r");
    assert!(decision.actions.iter().any(is_withdrawn), "{decision:?}");
    // Somebody else's object of the same name is left alone.
    world.requests = vec![json!({ "name": "a", "uid": "r" })];
    assert!(!world.decide().actions.iter().any(is_withdrawn));
}

#[test]
fn what_keeps_a_request_from_being_made_is_said_on_the_machine() {
    let mut world = external();
    world.template = None;
    let missing = world.decide();
    assert_eq!(requested(&missing), [""; 0]);
    let expected = "a ExternallyRemediated=False RemediationTemplateNotFound".to_owned();
    assert!(marks(&missing).contains(&expected));
    let again = Some("2026-01-01T12:00:30Z".parse().unwrap());
    assert_eq!(missing.recheck, again, "a template that comes wakes nobody");
    let mut world = external();
    world.failure = Some("refused");
    let failed = world.decide();
    assert_eq!(requested(&failed), ["a", "b"], "it is tried again");
    let expected = "a ExternallyRemediated=False RemediationRequestCreationFailed".to_owned();
    assert!(marks(&failed).contains(&expected));
}

#[test]
fn a_bad_check_is_refused_by_the_name_of_its_field() {
    let wrong = |spec: Value| {
        let mut world = World::new(vec![(machine("a"), Looks::Gone)]);
        for (key, value) in spec.as_object().unwrap() {
            world.check["spec"][key] = value.clone();
        }
        let decision = world.decide();
        assert_eq!(decision.actions, []);
        decision.waiting[0].message.clone()
    };
    let cases = [
        (json!({ "selector": {} }), "spec.selector: "),
        (
            json!({ "remediation": { "triggerIf": { "unhealthyInRange": "[5-3]" } } }),
            "spec.remediation.triggerIf.unhealthyInRange: ",
        ),
        (
            json!({ "remediation": { "triggerIf": { "unhealthyLessThanOrEqualTo": "x" } } }),
            "spec.remediation.triggerIf.unhealthyLessThanOrEqualTo: ",
        ),
        (
            json!({ "checks": { "unhealthyMachineConditions": [
                { "type": "Ready", "status": "False", "timeoutSeconds": 1 },
            ] } }),
            "spec.checks.unhealthyMachineConditions[0].type: ",
        ),
    ];
    for (spec, expected) in cases {
        let message = wrong(spec);
        assert!(message.starts_with(expected), "{message}");
    }
}
