//! Are machines of this API planned, held and replaced like the others, and left alone where they are not ours?

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use machinist_api::{
    MachineMaintenance, MaintenanceAction,
    cluster_api::{Cluster, Machine, MachineDeployment, MachineSet},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::{
    disruption,
    maintenance::{
        Cluster as Fleet, Durations, Plan, PolicySet,
        action::Replacement,
        event::Sighting,
        gather,
        gather::{Hardware, MachineSight},
        plan,
        plan::{ClusterState, Standing},
    },
};

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn read<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

/// A cluster `c` with a deployment `md` of three machines in one set, and a machine of the control plane.
struct World {
    cluster: Value,
    deployment: Value,
    sets: Vec<Value>,
    machines: Vec<Value>,
    /// What the Node of a machine carries, by the machine's name.
    announced: Vec<&'static str>,
    maintenances: Vec<Value>,
}

fn owner(kind: &str, name: &str) -> Value {
    json!([{
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "name": name,
        "uid": format!("uid-{name}"), "controller": true,
    }])
}

fn set(name: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"),
            "ownerReferences": owner("MachineDeployment", "md"),
        },
        "spec": { "clusterName": "c", "replicas": 3, "selector": {}, "template": {} },
        "status": { "replicas": 3 },
    })
}

fn machine_of(name: &str, owners: Value) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": "7",
            "labels": { "pool": "a" }, "ownerReferences": owners,
        },
        "spec": {
            "clusterName": "c", "providerID": format!("foo://{name}"), "failureDomain": "z1",
            "bootstrap": {}, "infrastructureRef": {},
        },
        "status": {
            "phase": "Running", "nodeRef": { "name": format!("node-{name}") },
            "conditions": [{
                "type": "NodeReady", "status": "True", "reason": "NodeReady", "message": "",
                "lastTransitionTime": "2026-01-01T08:00:00Z",
            }],
        },
    })
}

impl World {
    fn new() -> Self {
        let mut machines: Vec<Value> = (0..3)
            .map(|number| machine_of(&format!("m{number}"), owner("MachineSet", "ms")))
            .collect();
        let mut control_plane = machine_of("cp", owner("KubeadmControlPlane", "kcp"));
        control_plane["metadata"]["labels"] = json!({ "cluster.x-k8s.io/control-plane": "" });
        machines.push(control_plane);
        Self {
            cluster: json!({
                "metadata": { "name": "c", "namespace": "ns", "uid": "uid-c" }, "spec": {},
            }),
            deployment: json!({
                "metadata": { "name": "md", "namespace": "ns", "uid": "uid-md" },
                "spec": {
                    "clusterName": "c", "replicas": 3, "selector": { "matchLabels": { "pool": "a" } },
                    "template": { "metadata": { "labels": { "pool": "a" } } },
                },
            }),
            sets: vec![set("ms")],
            machines,
            announced: Vec::new(),
            maintenances: Vec::new(),
        }
    }

    fn seen(&self) -> Maintained {
        let cluster: Cluster = read(self.cluster.clone());
        let deployment: MachineDeployment = read(self.deployment.clone());
        let sets: Vec<MachineSet> = self.sets.iter().cloned().map(read).collect();
        let machines: Vec<Machine> = self.machines.iter().cloned().map(read).collect();
        all(&Objects {
            clusters: vec![&cluster],
            machines: machines.iter().collect(),
            sets: sets.iter().collect(),
            deployments: vec![&deployment],
        })
    }

    fn plan(&self) -> Plan {
        let seen = self.seen();
        let maintenances: Vec<MachineMaintenance> =
            self.maintenances.iter().cloned().map(read).collect();
        let mut nodes = seen.nodes.clone();
        for node in &mut nodes {
            let name = node.metadata.name.clone().unwrap();
            if self.announced.iter().any(|one| name == format!("ns/c/node-{one}")) {
                let events = json!({ "event-1": {
                    "code": "instance-retirement", "description": "hardware", "state": "active",
                    "notBefore": "2026-01-03T12:00:00Z",
                } });
                node.metadata.annotations = Some([(EVENTS.to_owned(), events.to_string())].into());
            }
        }
        let node_of = |machine: &Seen| -> Option<&Node> {
            let name = machine.status.as_ref()?.node_ref.as_ref()?.name.as_ref();
            nodes.iter().find(|node| node.metadata.name.as_ref() == name)
        };
        let mut sightings = Vec::new();
        let sights = seen.machines.iter().map(|machine| {
            let node = node_of(machine);
            let id = crate::machine::observed::bound_instance(machine).unwrap();
            sightings.extend(node.map(|node| Sighting::on_node(node, &id)).unwrap_or_default());
            MachineSight {
                machine,
                node,
                pods: &[],
                budgets: &[],
                asked: &[],
                impaired: None,
                hardware: Hardware::default(),
            }
        });
        let machines = sights.collect();
        let (policies, durations) = (PolicySet::default(), Durations::default());
        let fleet = Fleet {
            machines,
            sets: &seen.pools.iter().collect::<Vec<_>>(),
            maintenances: &maintenances.iter().collect::<Vec<_>>(),
            sightings: &sightings,
            policies: &policies,
            durations: &durations,
            state: ClusterState::default(),
        };
        plan(&gather(&fleet, now()).fleet, now())
    }

    fn request(&mut self, machine: &str, wish: &str) {
        let place =
            self.machines.iter().position(|one| one["metadata"]["name"] == machine).unwrap();
        self.machines[place]["metadata"]["annotations"] =
            json!({ "machinist.dev/maintenance-requested": wish });
    }
}

const EVENTS: &str = machinist_api::names::annotation::SCHEDULED_EVENTS;

#[test]
fn a_name_tells_the_two_apis_apart() {
    assert_eq!(parts("ns/m0"), Some(("ns", "m0")));
    assert_eq!(parts("m0"), None);
    let seen = World::new().seen();
    assert!(seen.machines.iter().all(is_of_cluster_api));
    assert!(!is_of_cluster_api(&read(json!({ "metadata": { "name": "m0" }, "spec": {} }))));
}

#[test]
fn a_machine_is_seen_in_the_pool_of_its_deployment() {
    let seen = World::new().seen();
    let names: Vec<_> =
        seen.machines.iter().map(|one| one.metadata.name.clone().unwrap()).collect();
    assert_eq!(names, ["ns/cp", "ns/m0", "ns/m1", "ns/m2"]);
    let pools: Vec<_> = seen.pools.iter().map(|one| one.metadata.name.clone().unwrap()).collect();
    assert_eq!(pools, ["ns/md"], "its sets are no pools of their own");
    let machine = &seen.machines[1];
    let owner = identity::controller(&machine.metadata).unwrap();
    assert_eq!((owner.kind.as_str(), owner.uid.as_str()), ("MachineDeployment", "uid-md"));
    assert_eq!(machine.metadata.uid.as_deref(), Some("uid-m0"));
    assert_eq!(machine.metadata.resource_version.as_deref(), Some("7"));
    let labels = machine.metadata.labels.as_ref().unwrap();
    assert_eq!(labels["machine.openshift.io/zone"], "z1");
    assert!(disruption::is_healthy(machine, seen.nodes.get(1)), "{:?}", seen.nodes);
    // Without its deployment the set is the pool.
    let mut world = World::new();
    world.sets[0]["metadata"]["ownerReferences"] = json!([]);
    let seen = world.seen();
    let pools: Vec<_> = seen.pools.iter().map(|one| one.metadata.name.clone().unwrap()).collect();
    assert_eq!(pools, ["ns/md", "ns/ms"]);
}

#[test]
fn who_would_make_another_machine_decides_whether_one_goes() {
    let of = |change: &dyn Fn(&mut World), name: &str| {
        let mut world = World::new();
        change(&mut world);
        let seen = world.seen();
        let machine = seen.machines.iter().find(|one| one.metadata.name.as_deref() == Some(name));
        let machine = machine.unwrap();
        let owner = identity::controller(&machine.metadata).map(|owner| owner.uid.clone());
        let pool = seen.pools.iter().find(|pool| pool.metadata.uid == owner);
        replacement(machine, pool)
    };
    let rolling = |most: Value| {
        move |world: &mut World| {
            world.deployment["spec"]["rollout"]["strategy"]["rollingUpdate"] =
                json!({ "maxSurge": most.clone(), "maxUnavailable": 1 });
        }
    };
    let by_owner = Replacement::Owner("MachineDeployment ns/md".to_owned());
    assert_eq!(of(&|_| (), "ns/m0"), Replacement::Pool);
    assert_eq!(of(&rolling(json!(2)), "ns/m0"), Replacement::Pool);
    assert_eq!(of(&rolling(json!("10%")), "ns/m0"), Replacement::Pool);
    assert_eq!(of(&rolling(json!(0)), "ns/m0"), by_owner);
    let on_delete = |world: &mut World| {
        world.deployment["spec"]["rollout"]["strategy"]["type"] = json!("OnDelete");
    };
    assert_eq!(of(&on_delete, "ns/m0"), by_owner);
    let topology = |world: &mut World| {
        world.deployment["metadata"]["labels"] = json!({ "topology.cluster.x-k8s.io/owned": "" });
    };
    assert_eq!(of(&topology, "ns/m0"), by_owner);
    let leaving = |world: &mut World| {
        world.deployment["metadata"]["deletionTimestamp"] = json!("2026-01-01T11:00:00Z");
    };
    assert_eq!(of(&leaving, "ns/m0"), Replacement::Nobody);
    let alone = |world: &mut World| world.machines[0]["metadata"]["ownerReferences"] = json!([]);
    assert_eq!(of(&alone, "ns/m0"), Replacement::Nobody);
    let Replacement::Theirs(why) = of(&|_| (), "ns/cp") else { panic!() };
    assert!(why.starts_with("KubeadmControlPlane kcp replaces"), "{why}");
}

#[test]
fn a_request_and_an_event_on_the_node_are_planned_as_a_replacement() {
    let mut world = World::new();
    world.request("m0", "Replace: new kernel");
    world.announced = vec!["m1"];
    let plan = world.plan();
    let entry = plan.entry("ns/m0").unwrap();
    assert_eq!((entry.action, &entry.standing), (MaintenanceAction::Replace, &Standing::Planned));
    assert_eq!(entry.pool.as_deref(), Some("ns/md"));
    assert_eq!(entry.waits_on[0].reason, "BudgetExhausted", "one of a pool at a time");
    let entry = plan.entry("ns/m1").unwrap();
    assert_eq!((entry.action, &entry.standing), (MaintenanceAction::Replace, &Standing::Due));
    assert_eq!(entry.codes, ["instance-retirement"]);
    assert!(plan.entry("ns/m2").is_none());
}

#[test]
fn nothing_is_done_to_an_instance_that_a_provider_keeps() {
    for wish in ["Reboot", "StopStart", "RebootMigrate"] {
        let mut world = World::new();
        world.request("m0", wish);
        let plan = world.plan();
        let entry = plan.entry("ns/m0").unwrap();
        assert_eq!(entry.standing, Standing::LeftAlone, "{wish}");
        assert!(entry.waits_on[0].message.contains("infrastructure provider"), "{entry:?}");
        assert!(entry.waits_on[0].message.contains("Replace can be asked for"), "{entry:?}");
    }
}

#[test]
fn the_control_plane_is_left_to_its_provider() {
    let mut world = World::new();
    world.request("cp", "Replace");
    let plan = world.plan();
    let entry = plan.entry("ns/cp").unwrap();
    assert_eq!(entry.standing, Standing::LeftAlone);
    assert_eq!(entry.waits_on[0].reason, "NoAction");
    assert!(entry.waits_on[0].message.contains("KubeadmControlPlane kcp"), "{entry:?}");
}

type Change = fn(&mut World);

#[test]
fn what_cluster_api_pauses_or_rolls_out_waits() {
    let cases: [(&str, Change); 6] = [
        ("Cluster c is paused", |world| world.cluster["spec"]["paused"] = json!(true)),
        ("Cluster c is being deleted", |world| {
            world.cluster["metadata"]["deletionTimestamp"] = json!("2026-01-01T11:00:00Z");
        }),
        ("the Machine has the annotation cluster.x-k8s.io/paused", |world| {
            world.machines[0]["metadata"]["annotations"]["cluster.x-k8s.io/paused"] = json!("");
        }),
        ("its MachineSet has the annotation cluster.x-k8s.io/paused", |world| {
            world.sets[0]["metadata"]["annotations"] = json!({ "cluster.x-k8s.io/paused": "" });
        }),
        ("MachineDeployment md is paused", |world| {
            world.deployment["spec"]["paused"] = json!(true);
        }),
        ("MachineDeployment md is being rolled out", |world| world.sets.push(set("new"))),
    ];
    for (words, change) in cases {
        let mut world = World::new();
        world.request("m0", "Replace");
        change(&mut world);
        let plan = world.plan();
        let entry = plan.entry("ns/m0").unwrap();
        assert_eq!(entry.standing, Standing::Blocked, "{words}");
        assert_eq!(entry.waits_on[0].reason, "Paused", "{words}");
        assert!(entry.waits_on[0].message.contains(words), "{words}: {entry:?}");
    }
    // Where old machines go only when they are deleted, two sets are no rollout.
    let mut world = World::new();
    world.request("m0", "Replace");
    world.sets.push(set("new"));
    world.deployment["spec"]["rollout"]["strategy"]["type"] = json!("OnDelete");
    assert_eq!(world.plan().entry("ns/m0").unwrap().standing, Standing::Due);
}

#[test]
fn an_object_of_a_person_names_a_machine_with_its_namespace() {
    let mut world = World::new();
    world.maintenances = vec![json!({
        "metadata": { "name": "please", "namespace": "home", "uid": "uid-please" },
        "spec": { "machinelink": "ns/m2", "machineid": "", "maintenancescheduled": false },
    })];
    let plan = world.plan();
    assert_eq!(plan.entry("ns/m2").unwrap().standing, Standing::Due);
    assert!(plan.notes.is_empty(), "{:?}", plan.notes);
    assert_eq!(machinist_api::names::maintenance_of("ns/m2"), "mm-ns.m2");
}

#[test]
fn what_is_told_of_one_cluster_is_not_taken_for_another() {
    let mut world = World::new();
    let mut twin = world.machines[1].clone();
    twin["metadata"]["namespace"] = json!("other");
    twin["metadata"]["uid"] = json!("uid-twin");
    twin["metadata"]["ownerReferences"] = json!([]);
    world.machines.push(twin);
    world.announced = vec!["m1"];
    let plan = world.plan();
    assert!(plan.entry("ns/m1").is_some());
    assert!(plan.entry("other/m1").is_none(), "its instance has the same name, and is another");
}

#[test]
fn marks_are_read_in_the_words_of_their_own_api() {
    let mut world = World::new();
    world.machines[0]["metadata"]["annotations"] = json!({ "cluster.x-k8s.io/delete-machine": "" });
    world.machines[1]["metadata"]["annotations"] =
        json!({ "machine.openshift.io/delete-machine": "of the other API" });
    world.deployment["metadata"]["annotations"] =
        json!({ "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "4" });
    let seen = world.seen();
    let mark = |place: usize| {
        let annotations = seen.machines[place].metadata.annotations.clone().unwrap();
        annotations.get("machine.openshift.io/delete-machine").cloned()
    };
    assert_eq!((mark(1).as_deref(), mark(2)), (Some("true"), None));
    let annotations = seen.pools[0].metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations[machinist_api::names::annotation::AUTOSCALER_MAX_SIZE], "4");
}

/// The order in which objects come means nothing.
#[test]
fn what_is_seen_does_not_depend_on_the_order_of_objects() {
    let mut world = World::new();
    world.request("m0", "Replace");
    world.announced = vec!["m2"];
    let (seen, planned) = (world.seen(), world.plan());
    for _ in 0..world.machines.len() {
        world.machines.rotate_left(1);
        assert_eq!(world.seen(), seen);
        assert_eq!(world.plan(), planned);
    }
}

#[test]
fn machines_and_pools_say_which_workload_cluster_they_are_in() {
    let mut world = World::new();
    // What somebody writes there by hand counts for nothing.
    world.machines[0]["metadata"]["annotations"] = json!({ WORKLOAD_CLUSTER: "other" });
    let seen = world.seen();
    assert_eq!(cluster_of(&seen.machines[0].metadata), Some("ns/c"));
    assert_eq!(cluster_of(&seen.pools[0].metadata), Some("ns/c"));
    let mut other = seen.machines[0].metadata.clone();
    other.name = Some("m0".to_owned());
    assert_eq!(cluster_of(&other), None, "no machine of the OpenShift API is in one");
}
