//! What happens behind a Machine's back: what is said, and what is done. Each test plays the passes
//! one after another, as the operator would.

use super::*;
use crate::{
    cloud::Impairment,
    disruption::Pool,
    drift::{
        Class,
        policy::{DriftDefaults, OnStopped},
    },
};

/// A Machine that is watched over many passes: each decision is stored as the operator stores it.
struct Life {
    machine: Machine,
    node: Option<Node>,
    pool: Option<Pool>,
    health: HealthKnowledge,
    told: Vec<&'static str>,
    at: Timestamp,
    defaults: DriftDefaults,
}

impl Life {
    fn running() -> Self {
        let mut life = Self {
            machine: machine(recorded("running")),
            node: Some(node("boot-1")),
            pool: Some(pool(4, 3)),
            health: HealthKnowledge::Known { impairments: vec![], interruption: None },
            told: Vec::new(),
            at: now(),
            defaults: DriftDefaults::default(),
        };
        assert_eq!(life.pass(vec![running()]), ["ChangeMetadata"]);
        assert_eq!(life.pass(vec![running()]), [""; 0], "settled");
        assert_eq!(life.told, [""; 0], "nothing happened");
        life
    }

    fn annotate(mut self, key: &str, value: &str) -> Self {
        let annotations = self.machine.metadata.annotations.get_or_insert_default();
        annotations.insert(format!("machinist.dev/{key}"), value.to_owned());
        self
    }

    fn later(&mut self, seconds: i64) {
        self.at = Timestamp::from_second(self.at.as_second() + seconds).unwrap();
    }

    /// One pass; returns the names of the actions.
    fn pass(&mut self, instances: Vec<Instance>) -> Vec<&'static str> {
        let mut observed = observed(&self.machine, CloudKnowledge::Known(instances));
        observed.node = node_of(&self.machine, self.node.iter());
        observed.pool = self.pool.clone();
        observed.health = self.health.clone();
        observed.drift_defaults = self.defaults;
        let decision = decide(&observed, &Policy::default(), self.at);
        self.told.extend(decision.announcements.iter().map(|one| one.reason));
        let actions = names(&decision);
        for action in &decision.actions {
            if let Action::ChangeMetadata(change) = action {
                let annotations = self.machine.metadata.annotations.get_or_insert_default();
                annotations.extend(change.annotations.clone());
                let labels = self.machine.metadata.labels.get_or_insert_default();
                labels.extend(change.labels.clone());
            }
        }
        self.machine.status = Some(decision.status);
        actions
    }

    fn condition(&self, type_: &str) -> (&str, &str, &str) {
        condition_of(self.machine.status.as_ref().unwrap(), type_)
    }

    fn phase(&self) -> &str {
        self.machine.status.as_ref().unwrap().phase.as_deref().unwrap()
    }

    fn state(&self) -> &str {
        &self.machine.metadata.annotations.as_ref().unwrap()["machine.openshift.io/instance-state"]
    }
}

fn node(boot: &str) -> Node {
    serde_json::from_value(json!({
        "metadata": {"name": "node-1", "uid": "node-uid"},
        "spec": {"providerID": "aws:///us-east-1a/i-1"},
        "status": {"nodeInfo": {
            "architecture": "", "bootID": boot, "containerRuntimeVersion": "", "kernelVersion": "",
            "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "operatingSystem": "",
            "osImage": "", "systemUUID": "",
        }},
    }))
    .unwrap()
}

fn pool(desired: usize, healthy_others: usize) -> Pool {
    Pool {
        name: "pool".into(),
        desired,
        healthy_others,
        stopped_by_user: 0,
        is_deleting: false,
        annotations: BTreeMap::new(),
    }
}

fn started_at(at: Timestamp) -> Instance {
    Instance { launched_at: Some(at), ..instance(InstanceState::Running) }
}

fn running() -> Instance {
    started_at(seconds_ago(3600))
}

fn down(state: InstanceState, code: &str) -> Instance {
    let reason = StateReason { code: code.into(), message: "User initiated".into(), since: None };
    Instance { state, state_reason: reason, ..running() }
}

const BY_USER: &str = "Client.UserInitiatedShutdown";

#[test]
fn a_stopped_instance_is_told_left_alone_for_a_while_and_started_once() {
    let mut life = Life::running();
    assert_eq!(life.pass(vec![down(InstanceState::Stopping, BY_USER)]), ["ChangeMetadata"]);
    assert_eq!(life.told, ["StoppedByUser"]);
    assert_eq!((life.phase(), life.state()), ("Running", "stopping"), "the contract's phase");
    let (status, reason, message) = life.condition("InstanceRunning");
    assert_eq!((status, reason), ("False", "StoppedByUser"));
    assert_eq!(
        message,
        "instance i-1 was stopped by a user (User initiated); it is started again at \
         2026-01-01T12:05:00Z, unless somebody starts it before"
    );
    assert_eq!(life.condition("InstanceExists").0, "True");
    life.later(299);
    life.pass(vec![down(InstanceState::Stopped, BY_USER)]);
    assert_eq!(life.pass(vec![down(InstanceState::Stopped, BY_USER)]), [""; 0], "the grace period");
    life.later(1);
    let stopped = || vec![down(InstanceState::Stopped, BY_USER)];
    assert_eq!(life.pass(stopped()), ["StoreIntent", "Start"]);
    assert_eq!(life.pass(stopped()), [""; 0], "asked for once");
    assert_eq!(life.told, ["StoppedByUser", "StartingInstance"]);

    let again = life.at;
    life.later(5);
    life.pass(vec![Instance { state: InstanceState::Pending, ..started_at(again) }]);
    assert_eq!(life.condition("InstanceRunning").1, "InstanceStarting");
    life.pass(vec![started_at(again)]);
    assert_eq!(life.condition("InstanceRunning").0, "True");
    life.node = Some(node("boot-2"));
    life.pass(vec![started_at(again)]);
    assert_eq!(life.pass(vec![started_at(again)]), [""; 0]);
    assert_eq!(
        life.told,
        ["StoppedByUser", "StartingInstance", "Update"],
        "our own start is no drift"
    );
}

#[test]
fn a_maintenance_policy_says_what_holds_where_nobody_else_does() {
    let stopped = |annotation: Option<(&str, &str)>| {
        let mut life = Life::running();
        if let Some((key, value)) = annotation {
            life = life.annotate(key, value);
        }
        life.defaults.on_stopped = Some(OnStopped::Report);
        life.pass(vec![down(InstanceState::Stopped, BY_USER)]);
        life.later(3600);
        life.pass(vec![down(InstanceState::Stopped, BY_USER)])
    };
    assert_eq!(stopped(None), [""; 0]);
    assert_eq!(stopped(Some(("on-stopped", "Start"))), ["StoreIntent", "Start"]);
}

#[test]
fn what_our_own_maintenance_does_to_an_instance_is_no_drift() {
    let mut life = Life::running().annotate("hold", "maintenance 0f1e-2d3c");
    life.pass(vec![down(InstanceState::Stopping, BY_USER)]);
    life.pass(vec![down(InstanceState::Stopped, BY_USER)]);
    life.later(3600);
    assert_eq!(life.pass(vec![down(InstanceState::Stopped, BY_USER)]), [""; 0], "left alone");
    let again = life.at;
    life.pass(vec![started_at(again)]);
    life.node = Some(node("boot-2"));
    life.pass(vec![started_at(again)]);
    life.node = Some(node("boot-3"));
    life.pass(vec![started_at(again)]);
    assert_eq!(life.told, ["Update"], "it runs again, as was decided");
    // A person's hold is told of as ever.
    let mut life = Life::running().annotate("hold", "maintenance of the rack");
    life.pass(vec![down(InstanceState::Stopped, BY_USER)]);
    assert_eq!(life.told, ["StoppedByUser"]);
}

#[test]
fn a_start_by_hand_is_told_once_whatever_comes_first() {
    for node_first in [true, false] {
        let mut life = Life::running();
        life.pass(vec![down(InstanceState::Stopped, BY_USER)]);
        let again = life.at;
        life.later(60);
        if !node_first {
            life.pass(vec![started_at(again)]);
        }
        life.node = Some(node("boot-2"));
        life.pass(vec![started_at(again)]);
        life.pass(vec![started_at(again)]);
        assert_eq!(life.told, ["StoppedByUser", "Started"], "node first: {node_first}");
    }
    // Stopped and started between two looks.
    let mut life = Life::running();
    life.pass(vec![started_at(now())]);
    life.node = Some(node("boot-2"));
    life.pass(vec![started_at(now())]);
    assert_eq!(life.told, ["Started"]);
}

#[test]
fn a_reboot_is_told_and_nothing_is_touched_and_an_announced_one_is_not_told() {
    let mut life = Life::running();
    life.node = Some(node("boot-2"));
    assert_eq!(life.pass(vec![running()]), [""; 0]);
    assert_eq!(life.told, ["Rebooted"]);
    life.pass(vec![running()]);
    assert_eq!(life.told, ["Rebooted"], "once");
    assert_eq!(life.condition("InstanceRunning").0, "True");

    let mut life = Life::running();
    let mut cordoned = node("boot-2");
    cordoned.spec.get_or_insert_default().unschedulable = Some(true);
    life.node = Some(cordoned);
    life.pass(vec![running()]);
    life.node = Some(node("boot-2"));
    life.pass(vec![running()]);
    assert_eq!(life.told, [""; 0]);
}

#[test]
fn a_terminated_instance_is_replaced_at_once_and_only_where_a_pool_makes_another() {
    for state in [InstanceState::ShuttingDown, InstanceState::Terminated] {
        let mut life = Life::running();
        let actions = life.pass(vec![down(state, BY_USER)]);
        assert_eq!(actions, ["ChangeMetadata", "StoreIntent", "Replace"], "{state:?}");
        assert_eq!(life.told, ["TerminatedByUser", "Replacing"]);
        assert_eq!(life.condition("InstanceRunning").1, "TerminatedByUser");
    }
    let mut life = Life::running().annotate("on-terminated", "Report");
    life.pass(vec![down(InstanceState::Terminated, "Server.SpotInstanceTermination")]);
    assert_eq!(life.phase(), "Failed");
    assert_eq!(life.told, ["SpotInterruption"]);
    assert_eq!(life.pass(vec![down(InstanceState::Terminated, BY_USER)]), [""; 0]);

    let mut life = Life { pool: None, ..Life::running() };
    assert_eq!(life.pass(vec![down(InstanceState::Terminated, BY_USER)]), ["ChangeMetadata"]);
    assert!(life.condition("InstanceRunning").2.contains("has no pool"));
}

#[test]
fn what_was_seen_to_terminate_has_not_vanished_when_the_provider_forgets_it() {
    let mut life = Life::running().annotate("on-terminated", "Report");
    life.pass(vec![down(InstanceState::Terminated, BY_USER)]);
    let said = life.condition("InstanceRunning").2.to_owned();
    life.later(3600);
    assert_eq!(life.pass(vec![]), [""; 0]);
    assert_eq!(life.told, ["TerminatedByUser"]);
    assert_eq!(life.condition("InstanceRunning").2, said);
}

#[test]
fn a_vanished_instance_is_looked_for_and_then_asks_the_gate() {
    let mut life = Life { pool: Some(pool(20, 10)), ..Life::running() };
    assert_eq!(life.pass(vec![]), [""; 0]);
    assert_eq!(life.told, ["Vanished"]);
    assert_eq!(life.condition("InstanceRunning").0, "Unknown");
    assert_eq!((life.phase(), life.condition("InstanceExists").0), ("Running", "True"));
    life.later(299);
    assert_eq!(life.pass(vec![]), [""; 0], "wrong answers of minutes were seen");
    life.later(1);
    assert_eq!(life.pass(vec![]), ["ChangeMetadata"], "the breaker holds");
    assert_eq!(life.phase(), "Failed");
    assert_eq!(life.told, ["Vanished", "DisruptionHeld"]);
    assert!(life.condition("InstanceRunning").2.contains("10 of 20 machines of pool pool"));
    life.pool = Some(pool(20, 12));
    assert_eq!(life.pass(vec![]), ["StoreIntent", "Replace"], "others recovered");

    // It was there after all.
    let mut life = Life { pool: Some(pool(20, 10)), ..Life::running() };
    life.pass(vec![]);
    life.later(300);
    life.pass(vec![]);
    assert_eq!(life.pass(vec![running()]), ["ChangeMetadata"]);
    assert_eq!((life.phase(), life.state()), ("Running", "running"));
    assert_eq!(life.machine.status.as_ref().unwrap().error_message, None);
    assert_eq!(life.condition("InstanceExists").0, "True");
    assert_eq!(life.told.last(), Some(&"Update"));
}

#[test]
fn an_instance_whose_node_is_ready_is_not_given_up() {
    let mut life = Life { pool: Some(pool(1, 0)), ..Life::running() };
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let mut node = node("boot-1");
    node.status.as_mut().unwrap().conditions = serde_json::from_value(ready).unwrap();
    life.node = Some(node);
    life.pass(vec![]);
    life.later(3600);
    for _ in 0..3 {
        assert!(!life.pass(vec![]).contains(&"Replace"));
    }
    assert!(life.condition("InstanceRunning").2.contains("its node is still Ready"));
}

#[test]
fn an_announced_reboot_is_known_even_if_nobody_looked_meanwhile() {
    let mut life = Life::running();
    let configured = |boot: &str, config: &str| {
        let mut node = node(boot);
        let keys = ["currentConfig", "desiredConfig"];
        let of =
            |key: &str| (format!("machineconfiguration.openshift.io/{key}"), config.to_owned());
        node.metadata.annotations = Some(keys.iter().map(|key| of(key)).collect());
        node
    };
    life.node = Some(configured("boot-2", "a"));
    life.pass(vec![running()]);
    assert_eq!(life.told, ["Rebooted"], "which configuration ran before is not known");
    life.node = Some(configured("boot-3", "b"));
    life.pass(vec![running()]);
    life.node = Some(configured("boot-4", "b"));
    life.pass(vec![running()]);
    assert_eq!(life.told, ["Rebooted", "Rebooted"], "only into the same configuration");
}

#[test]
fn tags_are_kept_true_and_none_is_removed() {
    let life = Life::running();
    let mut observed = observed(&life.machine, CloudKnowledge::Known(vec![running()]));
    observed.node = node_of(&life.machine, life.node.iter());
    observed.wanted_tags = BTreeMap::from([
        ("team".to_owned(), "blue".to_owned()),
        ("machinist.dev/machine-uid".to_owned(), UID.to_owned()),
    ]);
    let decision = decide(&observed, &Policy::default(), life.at);
    let Some(Action::TagInstance { tags, .. }) = decision.actions.last() else { panic!() };
    assert_eq!(tags, &BTreeMap::from([("team".to_owned(), "blue".to_owned())]));
}

#[test]
fn a_machine_on_hold_is_not_touched_whatever_happens() {
    for instances in [
        vec![down(InstanceState::Stopped, BY_USER)],
        vec![down(InstanceState::Terminated, BY_USER)],
        vec![],
    ] {
        let mut life = Life::running().annotate("hold", "forensics");
        for _ in 0..20 {
            for action in life.pass(instances.clone()) {
                assert_eq!(action, "ChangeMetadata");
            }
            life.later(60);
        }
        assert!(life.condition("InstanceRunning").2.contains("on hold: forensics"));
    }
}

#[test]
fn failing_checks_are_told_once_and_so_is_their_end() {
    let mut life = Life::running();
    let impairments = vec![Impairment { check: "system".into(), since: Some(seconds_ago(60)) }];
    life.health = HealthKnowledge::Known { impairments, interruption: None };
    for _ in 0..3 {
        assert_eq!(life.pass(vec![running()]), [""; 0]);
    }
    assert_eq!(life.told, ["Impaired"]);
    let (status, reason, message) = life.condition("InstanceHealthy");
    assert_eq!((status, reason), ("False", "Impaired"));
    assert_eq!(
        message,
        "instance i-1 fails the provider's checks: system since 2026-01-01T11:59:00Z"
    );
    life.health = HealthKnowledge::Unknown("ec2:DescribeInstanceStatus is not allowed".into());
    life.pass(vec![running()]);
    assert_eq!(life.condition("InstanceHealthy").0, "Unknown");
    life.health = HealthKnowledge::Known { impairments: vec![], interruption: None };
    life.pass(vec![running()]);
    assert_eq!(life.condition("InstanceHealthy").0, "True");
    assert_eq!(Class::from_reason(life.told[0]), Some(Class::Impaired));
}

#[test]
fn load_balancers_take_a_running_instance_once_for_each_start() {
    let mut life = Life::running();
    let spec = json!({"kind": "AWSMachineProviderConfig",
        "loadBalancers": [{"name": "int", "type": "network"}]});
    life.machine.spec.provider_spec.value =
        Some(machinist_api::RawObject::from_value(&spec).unwrap());
    assert_eq!(life.pass(vec![running()]), ["Attach"]);
    let attach = |life: &mut Life, instance: Instance| {
        let known = CloudKnowledge::Known(vec![instance]);
        let mut observed = observed(&life.machine, known);
        observed.node = node_of(&life.machine, life.node.iter());
        observed.health = life.health.clone();
        let decision = decide(&observed, &Policy::default(), life.at);
        let Some(Action::Attach { fingerprint, .. }) = decision.actions.first() else { panic!() };
        life.machine.status = Some(outcome::attached(&life.machine, fingerprint, life.at).status);
    };
    attach(&mut life, running());
    assert_eq!(life.pass(vec![running()]), [""; 0]);
    assert_eq!(life.condition("LoadBalancersAttached").0, "True");
    life.pass(vec![started_at(now())]);
    assert_eq!(life.pass(vec![started_at(now())]), ["Attach"], "after each start");
}
