//! Does a cluster's state become the fleet that is planned, and is bad input told without harm?

use k8s_openapi::api::{
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use machinist_api::{Machine, MachineMaintenance, MachineSet, MaintenancePhase, names::annotation};

use super::*;
use crate::{
    cloud::{InstanceId, ScheduledEvent},
    maintenance::{
        event::{Sighting, Source},
        gather::{Cluster, Gathered, Hardware, MachineSight, gather},
        plan::{Finished, Standing},
    },
};

#[derive(Default)]
struct Objects {
    machines: Vec<(Machine, Option<Node>)>,
    sets: Vec<MachineSet>,
    maintenances: Vec<MachineMaintenance>,
    budgets: Vec<PodDisruptionBudget>,
    pods: Vec<Pod>,
    sightings: Vec<Sighting>,
    policies: PolicySet,
}

fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn machine(name: &str, changes: Value) -> Machine {
    let mut machine = json!({
        "metadata": {
            "name": name,
            "uid": format!("uid-{name}"),
            "labels": {
                "machine.openshift.io/zone": "z1",
                "machine.openshift.io/cluster-api-machine-role": "worker",
            },
            "ownerReferences": [{ "apiVersion": "v1", "kind": "MachineSet", "name": "a", "uid": "set-a",
                "controller": true }],
        },
        "spec": { "providerID": format!("aws:///z1/i-{name}") },
        "status": { "phase": "Running" },
    });
    patch(&mut machine, &changes);
    of(machine)
}

fn ready(name: &str) -> Node {
    of(json!({
        "metadata": { "name": name },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    }))
}

fn objects() -> Objects {
    Objects {
        machines: (0..3)
            .map(|number| (machine(&format!("a-{number}"), json!({})), Some(ready("n"))))
            .collect(),
        sets: vec![of(json!({
            "metadata": { "name": "a", "uid": "set-a", "annotations": {
                "machinist.dev/surge": "size=4;for=other" } },
            "spec": { "replicas": 4, "template": { "spec": { "providerSpec": { "value": {
                "placement": { "availabilityZone": "z1" } } } } } },
        }))],
        ..Objects::default()
    }
}

fn retirement(instance: &str) -> Sighting {
    Sighting::listed(&ScheduledEvent {
        id: format!("event-{instance}"),
        instance: InstanceId(instance.to_owned()),
        code: "instance-retirement".to_owned(),
        description: "degraded".to_owned(),
        not_before: Some(after(hours(48))),
        not_after: None,
        not_before_deadline: None,
    })
}

fn with<R>(objects: &Objects, look: impl FnOnce(&Gathered<'_>) -> R) -> R {
    let pods: Vec<&Pod> = objects.pods.iter().collect();
    let budgets: Vec<&PodDisruptionBudget> = objects.budgets.iter().collect();
    let durations = Durations::default();
    let cluster = Cluster {
        machines: objects
            .machines
            .iter()
            .map(|(machine, node)| MachineSight {
                machine,
                node: node.as_ref(),
                pods: if machine.metadata.name.as_deref() == Some("a-0") { &pods } else { &[] },
                budgets: &budgets,
                asked: &[Source::Api],
                impaired: None,
                hardware: Hardware::default(),
            })
            .collect(),
        sets: &objects.sets.iter().collect::<Vec<_>>(),
        maintenances: &objects.maintenances.iter().collect::<Vec<_>>(),
        sightings: &objects.sightings,
        policies: &objects.policies,
        durations: &durations,
        state: ClusterState::default(),
    };
    look(&gather(&cluster, now()))
}

fn planned(objects: &Objects) -> Plan {
    with(objects, |gathered| plan(&gathered.fleet, now()))
}

/// Found by the simulator (stormy 8000461): a pool was deleted, and its machines fell under a policy that asks nobody.
#[test]
fn the_policy_of_a_pool_holds_for_its_machines_after_the_pool_is_gone() {
    let mut objects = objects();
    objects.sightings = vec![retirement("i-a-0")];
    let asks = json!({ "priority": 1, "approval": "Manual", "selector": { "pools": ["a"] } });
    let policies = [policy_named("asks", asks), policy_named("usual", json!({}))];
    objects.policies = PolicySet::read(&policies, &Legacy::default());
    assert!(!planned(&objects).entry("a-0").unwrap().is_due());
    objects.sets.clear();
    assert!(!planned(&objects).entry("a-0").unwrap().is_due());
}

#[test]
fn event_of_a_machine_is_planned_and_one_of_a_stranger_is_told() {
    let mut objects = objects();
    objects.sightings = vec![retirement("i-a-0"), retirement("i-nobody")];
    let plan = planned(&objects);
    assert_eq!(plan.entries.len(), 1);
    assert!(plan.entry("a-0").unwrap().is_due());
    let told: Vec<&str> = plan.notes.iter().map(|note| note.message.as_str()).collect();
    assert_eq!(
        told,
        [
            "event instance-retirement (event-i-nobody) is of instance i-nobody, which no Machine has"
        ]
    );
    with(&objects, |gathered| {
        let pool = &gathered.fleet.pools["a"];
        assert_eq!((pool.desired, pool.zone.as_deref()), (3, Some("z1")), "without what we added");
        assert_eq!(pool.gate, Some(1));
        assert_eq!(gathered.reasons["a-0"].reasons.len(), 1);
    });
}

#[test]
fn objects_that_cannot_be_used_are_told_and_harm_nobody() {
    let mut objects = objects();
    objects.sightings = vec![retirement("i-a-0")];
    objects.machines[1].0 = machine(
        "a-1",
        json!({ "metadata": { "annotations": {
        "machinist.dev/maintenance-requested": "Explode" } } }),
    );
    objects.maintenances = vec![
        of(json!({ "metadata": { "name": "mm-ghost" }, "spec": { "machinelink": "ghost" } })),
        of(json!({ "metadata": { "name": "mm-a-0" }, "spec": { "machinelink": "a-0" } })),
        of(json!({ "metadata": { "name": "again" }, "spec": { "machinelink": "a-0" } })),
    ];
    let plan = planned(&objects);
    assert!(plan.entry("a-0").unwrap().is_due());
    let about: Vec<&str> = plan.notes.iter().map(|note| note.about.as_str()).collect();
    assert_eq!(about, ["machine/a-1", "machinemaintenance/again", "machinemaintenance/mm-ghost"]);
}

#[test]
fn holds_pauses_and_approvals_are_read() {
    let mut objects = objects();
    let own = "maintenance mm-uid";
    for (number, value) in [(0, own), (1, "mine")] {
        let name = format!("a-{number}");
        let annotations = json!({ annotation::HOLD: value });
        objects.machines[number].0 =
            machine(&name, json!({ "metadata": { "annotations": annotations } }));
    }
    objects.sets[0]
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(annotation::MAINTENANCE_PAUSED.to_owned(), "audit".to_owned());
    objects.maintenances = vec![of(json!({
        "metadata": { "name": "mm-a-0", "uid": "mm-uid", "annotations": {
            "machinist.dev/maintenance-approved": "true" } },
        "spec": { "machinelink": "a-0" },
    }))];
    with(&objects, |gathered| {
        let machines = &gathered.fleet.machines;
        assert_eq!(
            (machines[0].hold, machines[1].hold),
            (None, Some("mine")),
            "our own hold is none"
        );
        assert_eq!(machines[0].approval, Some("true"));
        assert_eq!(machines[2].paused, Some("audit"));
        assert!(machines[0].need.is_some(), "a person's object is a request");
    });
}

#[test]
fn record_tells_what_is_under_way_and_what_was_finished() {
    let mut objects = objects();
    let work = json!({ "action": "Replace", "startedAt": "2026-11-02T09:50:00Z", "pool": "a" });
    objects.maintenances = vec![
        of(json!({ "metadata": { "name": "mm-a-0" }, "spec": { "machinelink": "a-0" },
            "status": { "phase": "Draining", "work": work } })),
        of(json!({ "metadata": { "name": "mm-old" }, "spec": { "machinelink": "old" },
            "status": { "phase": "Succeeded", "work": work, "finishedAt": "2026-11-02T09:55:00Z" } })),
    ];
    with(&objects, |gathered| {
        let under_way = gathered.fleet.machines[0].under_way.unwrap();
        assert_eq!(under_way.phase, MaintenancePhase::Draining);
        assert_eq!(
            gathered.fleet.finished,
            [Finished {
                machine: "old",
                pool: Some("a"),
                home: Some(Home::Here),
                zone: None,
                is_control_plane: false,
                policy: None,
                at: at("2026-11-02T09:55:00Z"),
            }]
        );
        assert_eq!(
            gathered.fleet.notes,
            [],
            "a finished record of a machine that is gone is no fault"
        );
    });
}

/// A person's object stays after its work, and a Machine of the same name may come later.
#[test]
fn request_that_was_answered_is_not_planned_again() {
    let mut objects = objects();
    objects.maintenances = ["uid-a-0", "an-older-machine"]
        .iter()
        .zip(["a-0", "a-1"])
        .map(|(uid, name)| {
            of(json!({
                "metadata": { "name": format!("mm-{name}") },
                "spec": { "machinelink": name, "maintenancescheduled": true },
                "status": { "phase": "Succeeded", "machineUid": uid, "work": { "action": "Reboot" },
                    "finishedAt": "2026-11-01T00:00:00Z" },
            }))
        })
        .collect();
    assert!(planned(&objects).entries.is_empty());
    with(&objects, |gathered| assert!(gathered.reasons.is_empty()));
}

#[test]
fn owner_says_who_makes_another_machine() {
    let mut objects = objects();
    let role = json!({ "machine.openshift.io/cluster-api-machine-role": "master" });
    objects.machines = vec![
        (machine("a-0", json!({})), None),
        (machine("m-1", json!({ "metadata": { "labels": role, "ownerReferences": null } })), None),
        (
            machine(
                "m-2",
                json!({ "metadata": { "labels": role, "ownerReferences": [
                { "apiVersion": "v1", "kind": "ControlPlaneMachineSet", "name": "cluster", "uid": "c",
                  "controller": true }] } }),
            ),
            None,
        ),
        (machine("w-3", json!({ "metadata": { "ownerReferences": null } })), None),
    ];
    with(&objects, |gathered| {
        let replacements: Vec<&Replacement> =
            gathered.fleet.machines.iter().map(|machine| &machine.traits.replacement).collect();
        assert_eq!(
            replacements,
            [
                &Replacement::Pool,
                &Replacement::Copy,
                &Replacement::Owner("ControlPlaneMachineSet cluster".to_owned()),
                &Replacement::Nobody,
            ]
        );
        assert!(!gathered.fleet.machines[0].is_available, "it has no node");
    });
}

#[test]
fn budgets_that_can_never_be_met_are_found_before_the_start() {
    let mut objects = objects();
    objects.sightings = vec![retirement("i-a-0")];
    let pod = |name: &str, annotations: Value| -> Pod {
        of(json!({ "metadata": { "name": name, "namespace": "app", "labels": { "app": "web" },
            "annotations": annotations } }))
    };
    let budget = |healthy: i32, wanted: i32| -> PodDisruptionBudget {
        of(json!({
            "metadata": { "name": "web", "namespace": "app" },
            "spec": { "selector": { "matchLabels": { "app": "web" } } },
            "status": { "currentHealthy": healthy, "desiredHealthy": wanted, "expectedPods": 2,
                "disruptionsAllowed": 0 },
        }))
    };
    objects.pods = vec![pod("web-0", json!({}))];
    objects.budgets = vec![budget(2, 2)];
    let plan = planned(&objects);
    let entry = plan.entry("a-0").unwrap();
    assert_eq!(entry.standing, Standing::Blocked);
    assert_eq!(
        entry.waits_on[0].message,
        "its node can never be drained: disruption budget app/web never lets pod web-0 go (it wants \
         2 of 2 healthy)"
    );
    objects.budgets = vec![budget(1, 1)];
    assert!(planned(&objects).entry("a-0").unwrap().is_due(), "it only takes a while");
    objects.pods.push(pod("job-0", json!({ annotation::DO_NOT_DISRUPT: "true" })));
    assert_eq!(
        planned(&objects).entry("a-0").unwrap().waits_on[0].reason,
        machinist_api::names::maintenance_reason::DO_NOT_DISRUPT
    );
}

#[test]
fn outdated_machine_is_a_reason_where_policy_says_so() {
    let mut objects = objects();
    for outdated in ["Report", "Replace"] {
        let spec = json!({ "outdated": outdated });
        objects.policies = PolicySet::read(&[policy_named("all", spec)], &Legacy::default());
        let expected = if outdated == "Replace" { 3 } else { 0 };
        assert_eq!(planned(&objects).entries.len(), expected, "{outdated}");
    }
}

#[test]
fn what_is_recorded_of_an_instance_is_what_its_traits_were() {
    use crate::{
        cloud::{RebootMigration, RootDevice},
        maintenance::action::Traits,
    };
    let told = |traits: &Traits| {
        let mut maintenance: MachineMaintenance =
            of(json!({ "metadata": {}, "spec": { "machinelink": "a-0" }, "status": {} }));
        assert_eq!(Hardware::recorded(&maintenance), None, "nobody asked");
        maintenance.status.as_mut().unwrap().instance = Some(traits.as_record());
        Hardware::recorded(&of(serde_json::to_value(&maintenance).unwrap())).unwrap()
    };
    assert_eq!(told(&Traits::default()), Hardware::default());
    let traits = Traits {
        root_device: RootDevice::InstanceStore,
        has_instance_store: true,
        is_interruptible: true,
        reboot_migration: RebootMigration::Enabled,
        ..Traits::default()
    };
    assert_eq!(
        told(&traits),
        Hardware {
            root_device: RootDevice::InstanceStore,
            has_instance_store: true,
            is_interruptible: true,
            reboot_migration: RebootMigration::Available,
        }
    );
}

#[test]
fn of_several_objects_about_a_machine_one_counts_and_the_others_say_so() {
    let object = |namespace: &str, name: &str, phase: &str| -> MachineMaintenance {
        of(json!({
            "metadata": { "name": name, "namespace": namespace, "uid": format!("{namespace}-{name}") },
            "spec": { "machinelink": "a-0" },
            "status": { "phase": phase },
        }))
    };
    let table = [
        (vec![("b", "mm-a-0", "Pending"), ("a", "mm-a-0", "Pending")], "a-mm-a-0"),
        (vec![("a", "mine", "Pending"), ("b", "mm-a-0", "Pending")], "b-mm-a-0"),
        (vec![("a", "mine", "Draining"), ("b", "mm-a-0", "Pending")], "a-mine"),
        (vec![("a", "two", "Pending"), ("a", "one", "Pending")], "a-one"),
    ];
    for (objects, expected) in table {
        let objects: Vec<MachineMaintenance> = objects
            .into_iter()
            .map(|(namespace, name, phase)| object(namespace, name, phase))
            .collect();
        let counting = crate::maintenance::records::counting(&objects);
        assert_eq!(counting["a-0"].metadata.uid.as_deref(), Some(expected));
        for other in objects.iter().filter(|one| one.metadata.uid.as_deref() != Some(expected)) {
            let status = crate::maintenance::records::not_counting(other, counting["a-0"], now());
            assert!(status.message.as_ref().unwrap().contains("counts"), "{status:?}");
            assert_eq!(status.phase, other.status.as_ref().unwrap().phase);
        }
    }
}

#[test]
fn the_events_that_a_node_carries_are_sightings_of_its_metadata() {
    let node: Node = of(json!({ "metadata": { "name": "n", "annotations": {
        "machinist.dev/scheduled-events":
            r#"{"e-1":{"code":"system-reboot","state":"active"},"e-2":{"code":"instance-stop","state":"canceled"}}"#,
    } } }));
    let sightings = Sighting::on_node(&node, &InstanceId("i-1".to_owned()));
    let states: Vec<_> = sightings.iter().map(|one| (one.id.as_str(), one.state)).collect();
    use crate::maintenance::event::EventState;
    assert_eq!(states, [("e-1", EventState::Active), ("e-2", EventState::Cancelled)]);
    assert!(sightings.iter().all(|one| one.source == Source::Metadata && one.instance.0 == "i-1"));
}
