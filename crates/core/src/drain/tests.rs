//! Tables over one drain.

use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use machinist_api::{Machine, condition};
use serde_json::{Value, json};

use super::{Action, Attempts, DrainDecision, Observed, decide};

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn machine(spec: Value, annotations: Value) -> Machine {
    serde_json::from_value(json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {
            "name": "m", "namespace": "ns", "annotations": annotations,
            "deletionTimestamp": "2026-01-01T11:59:00Z",
        },
        "spec": spec,
        "status": {"phase": "Deleting", "nodeRef": {"kind": "Node", "name": "n", "uid": "nu"}},
    }))
    .unwrap()
}

fn node(unschedulable: bool, ready: &str, labels: Value) -> Node {
    serde_json::from_value(json!({
        "metadata": {"name": "n", "uid": "nu", "labels": labels},
        "spec": {"unschedulable": unschedulable},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }))
    .unwrap()
}

fn pod(name: &str, extra: Value) -> Pod {
    let mut base = json!({
        "metadata": {"name": name, "namespace": "app", "uid": format!("u-{name}"), "labels": {"app": "web"}},
        "spec": {"nodeName": "n", "containers": []},
    });
    for (key, value) in extra.as_object().unwrap() {
        base["metadata"][key] = value.clone();
    }
    serde_json::from_value(base).unwrap()
}

fn budget(allowed: i32) -> PodDisruptionBudget {
    serde_json::from_value(json!({
        "metadata": {"name": "web-budget", "namespace": "app"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 3, "desiredHealthy": 3, "expectedPods": 3},
    }))
    .unwrap()
}

struct World {
    machine: Machine,
    node: Option<Node>,
    pods: Vec<Pod>,
    missing: Vec<(&'static str, &'static str)>,
    budgets: Vec<PodDisruptionBudget>,
    cordoned: Option<&'static str>,
    attempts: Attempts,
}

impl World {
    fn new(pods: Vec<Pod>) -> Self {
        Self {
            machine: machine(json!({"providerSpec": {}}), json!({})),
            node: Some(node(true, "True", json!({}))),
            pods,
            missing: vec![],
            budgets: vec![],
            cordoned: None,
            attempts: Attempts::default(),
        }
    }

    fn decide(&self) -> DrainDecision {
        self.decide_at(now())
    }

    fn decide_at(&self, now: Timestamp) -> DrainDecision {
        let observed = Observed {
            machine: &self.machine,
            node: self.node.as_ref(),
            cordoned_control_plane: self.cordoned,
            pods: self.pods.iter().collect(),
            missing_daemon_sets: self.missing.iter().copied().collect(),
            budgets: self.budgets.iter().collect(),
            attempts: &self.attempts,
        };
        decide(&observed, now)
    }
}

fn drained(decision: &DrainDecision) -> (String, String, String) {
    let found = condition::find(&decision.status.conditions, "Drained").expect("is set");
    (
        found.status.as_str().to_owned(),
        found.reason.clone().unwrap_or_default(),
        found.message.clone().unwrap_or_default(),
    )
}

fn evicted(decision: &DrainDecision) -> Vec<&str> {
    decision
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::Evict { pod, .. } => Some(pod.as_str()),
            Action::Cordon { .. } => None,
        })
        .collect()
}

#[test]
fn cordons_first_and_is_not_complete_before() {
    let mut world = World::new(vec![]);
    world.node = Some(node(false, "True", json!({})));
    let decision = world.decide();
    assert_eq!(decision.actions, [Action::Cordon { node: "n".into(), uid: "nu".into() }]);
    assert_eq!(drained(&decision).0, "False");
    world.node = Some(node(true, "True", json!({})));
    assert_eq!(drained(&world.decide()).0, "True");
}

#[test]
fn daemons_and_mirrors_stay_everything_else_goes() {
    let daemon = json!({"ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true},
    ]});
    let mirror = json!({"annotations": {"kubernetes.io/config.mirror": "x"}});
    let world = World::new(vec![pod("d", daemon), pod("m", mirror), pod("bare", json!({}))]);
    assert_eq!(evicted(&world.decide()), ["bare"]);
}

#[test]
fn a_daemon_whose_set_is_gone_goes_like_any_other_pod() {
    let daemon = |set: &str| {
        json!({"ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": set, "uid": set, "controller": true},
        ]})
    };
    let mut mirror = daemon("gone");
    mirror["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    let pods = vec![pod("kept", daemon("kept")), pod("orphan", daemon("gone")), pod("m", mirror)];
    let mut world = World::new(pods);
    world.missing = vec![("app", "gone"), ("elsewhere", "kept")];
    assert_eq!(evicted(&world.decide()), ["orphan"]);
    assert_eq!(drained(&world.decide()).0, "False");
    world.pods.remove(1);
    assert_eq!(drained(&world.decide()).0, "True");
}

#[test]
fn a_refused_pod_and_its_budget_are_named_and_left_in_peace() {
    let mut world = World::new(vec![pod("web-1", json!({}))]);
    world.budgets = vec![budget(0)];
    let first = world.decide();
    let [Action::Evict { uid, budgets_seen, .. }] = first.actions.as_slice() else {
        panic!("{:?}", first.actions)
    };
    world.attempts.refuse(uid, "too many requests", budgets_seen, now());
    let second = world.decide();
    assert!(second.actions.is_empty(), "no second request at once (D9)");
    let (status, reason, message) = drained(&second);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "DrainError"));
    assert!(message.starts_with("could not drain machine: "), "{message}");
    assert!(message.contains("app/web-1") && message.contains("web-budget"), "{message}");
    assert_eq!(second.waiting[0].message, message, "the same words everywhere");
    let later = second.recheck.expect("tries again some time");
    let again = world.decide_at(later);
    assert_eq!(evicted(&again), ["web-1"]);
    assert_eq!(drained(&again).2, message, "blocked until it is known to go");
    // The budget relaxes: no waiting.
    world.budgets = vec![budget(1)];
    assert_eq!(evicted(&world.decide()), ["web-1"]);
}

#[test]
fn refusals_space_out() {
    let mut attempts = Attempts::default();
    let mut pauses = Vec::new();
    for _ in 0..6 {
        attempts.refuse("u", "no", "seen", now());
        let (until, _) = attempts.hold("u", "seen").unwrap();
        pauses.push(until.duration_since(now()).as_secs());
    }
    assert_eq!(pauses, [10, 20, 40, 80, 120, 120]);
}

#[test]
fn a_budget_is_never_asked_for_more_than_it_allows() {
    let pods = (0..20).map(|index| pod(&format!("web-{index:02}"), json!({}))).collect();
    let mut world = World::new(pods);
    world.budgets = vec![budget(2)];
    assert_eq!(evicted(&world.decide()), ["web-00", "web-01"]);
}

#[test]
fn a_terminating_pod_is_waited_for_and_named_when_overdue() {
    let deleting = json!({"deletionTimestamp": "2026-01-01T12:00:20Z"});
    let world = World::new(vec![pod("slow", deleting)]);
    let decision = world.decide();
    assert!(decision.actions.is_empty());
    assert_eq!(drained(&decision).1, "Draining");
    let overdue = decision.recheck.expect("looks again");
    assert!(drained(&world.decide_at(overdue)).2.contains("app/slow"));
}

#[test]
fn pods_of_an_unreachable_node_do_not_hold_it_for_ever() {
    let deleting = json!({"deletionTimestamp": "2026-01-01T11:59:58Z"});
    let mut world = World::new(vec![pod("gone", deleting), pod("left", json!({}))]);
    world.node = Some(node(true, "Unknown", json!({})));
    let decision = world.decide();
    let [Action::Evict { grace_period_seconds, pod, .. }] = decision.actions.as_slice() else {
        panic!("{:?}", decision.actions)
    };
    assert_eq!((pod.as_str(), *grace_period_seconds), ("left", Some(1)));
    world.pods.pop();
    assert_eq!(drained(&world.decide()).0, "True");
}

#[test]
fn one_control_plane_node_at_a_time() {
    let mut world = World::new(vec![]);
    world.node = Some(node(false, "True", json!({"node-role.kubernetes.io/control-plane": ""})));
    world.cordoned = Some("master-2");
    let decision = world.decide();
    assert!(decision.actions.is_empty());
    assert!(drained(&decision).2.contains("master-2"));
    // Already begun: goes on.
    world.node = Some(node(true, "True", json!({"node-role.kubernetes.io/control-plane": ""})));
    assert_eq!(drained(&world.decide()).0, "True");
}

#[test]
fn a_pre_drain_hook_holds_every_branch() {
    let hooks = json!({
        "providerSpec": {},
        "lifecycleHooks": {"preDrain": [{"name": "hook", "owner": "me!"}]},
    });
    for annotations in [json!({}), json!({"machine.openshift.io/exclude-node-draining": ""})] {
        for with_node in [true, false] {
            let mut world = World::new(vec![]);
            world.machine = machine(hooks.clone(), annotations.clone());
            if !with_node {
                world.node = None;
                world.machine.status.as_mut().unwrap().node_ref = None;
            }
            let decision = world.decide();
            assert!(decision.actions.is_empty());
            assert!(condition::find(&decision.status.conditions, "Drained").is_none(), "D15");
            assert_eq!(decision.announcements[0].reason, "DrainBlocked");
        }
    }
}

#[test]
fn skipped_when_excluded_or_never_linked_and_done_when_the_node_is_gone() {
    let mut world = World::new(vec![pod("web", json!({}))]);
    world.machine = machine(
        json!({"providerSpec": {}}),
        json!({"machine.openshift.io/exclude-node-draining": ""}),
    );
    let decision = world.decide();
    assert!(decision.actions.is_empty());
    assert_eq!(drained(&decision).2, "Node drain skipped");
    assert_eq!(decision.announcements[0].reason, "DrainSkipped");

    let mut gone = World::new(vec![]);
    gone.node = None;
    assert_eq!(drained(&gone.decide()).2, "Drain finished successfully");
    gone.machine.status.as_mut().unwrap().node_ref = None;
    assert_eq!(drained(&gone.decide()).2, "Node drain skipped");
}

#[test]
fn a_machine_that_is_not_going_or_already_drained_is_left_alone() {
    let mut world = World::new(vec![pod("web", json!({}))]);
    world.machine.metadata.deletion_timestamp = None;
    let decision = world.decide();
    assert!(decision.actions.is_empty() && decision.announcements.is_empty());
}

#[test]
fn a_machine_that_another_api_owns_is_neither_cordoned_nor_emptied() {
    let cases = [
        (None, None, true),
        (Some("MachineAPI"), Some("MachineAPI"), true),
        // The wish to migrate is no migration yet.
        (Some("ClusterAPI"), Some("MachineAPI"), true),
        (Some("ClusterAPI"), Some("ClusterAPI"), false),
        (Some("ClusterAPI"), Some("Migrating"), false),
        (Some("MachineAPI"), Some("Migrating"), false),
        (Some("ClusterAPI"), None, false),
    ];
    for (wanted, current, is_drained) in cases {
        let mut world = World::new(vec![pod("web", json!({}))]);
        world.node = Some(node(false, "True", json!({})));
        let read = |owner: Option<&str>| owner.map(|owner| json!(owner)).unwrap_or_default();
        world.machine.spec.authoritative_api = serde_json::from_value(read(wanted)).unwrap();
        let status = world.machine.status.as_mut().unwrap();
        status.authoritative_api = serde_json::from_value(read(current)).unwrap();
        let decision = world.decide();
        assert_eq!(!decision.actions.is_empty(), is_drained, "{wanted:?} {current:?}");
        assert_eq!(!decision.announcements.is_empty(), is_drained, "{wanted:?} {current:?}");
    }
}

#[test]
fn a_refusal_that_no_budget_explains_is_told_in_the_words_of_the_api_server() {
    let mut world = World::new(vec![pod("web", json!({}))]);
    world.attempts.refuse("u-web", "admission webhook \"keep\" denied the request", "", now());
    let (_, reason, message) = drained(&world.decide());
    assert_eq!(reason, "DrainError");
    assert_eq!(
        message,
        "could not drain machine: node n: pod app/web was not evicted: \
         admission webhook \"keep\" denied the request"
    );
}

#[test]
fn a_machine_whose_instance_is_gone_needs_no_drain_and_a_stopped_one_does() {
    for (reason, status, drained) in [
        ("TerminatedByUser", "False", true),
        ("SpotInterruption", "False", true),
        ("StoppedByUser", "False", false),
        ("Vanished", "Unknown", false),
        ("Vanished", "False", false),
    ] {
        let mut world = World::new(vec![pod("a", json!({}))]);
        let conditions = json!([{
            "type": "InstanceRunning", "status": status, "reason": reason,
            "lastTransitionTime": "2026-01-01T11:58:00Z",
        }]);
        world.machine.status.as_mut().unwrap().conditions =
            serde_json::from_value(conditions).unwrap();
        let decision = world.decide();
        let is_done = condition::is_true(&decision.status.conditions, "Drained");
        assert_eq!(is_done, drained, "{reason}");
        assert_eq!(decision.actions.is_empty(), drained, "{reason}");
    }
}
