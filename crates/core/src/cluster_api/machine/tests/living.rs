use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{super::node_keys::KeyPattern, *};

fn time(text: &str) -> Time {
    Time(at(text))
}

#[test]
fn a_new_machine_waits_for_its_provider_and_says_so() {
    let decision = World::new().decide();
    assert_eq!(decision.actions, []);
    assert_eq!(decision.status.phase.as_deref(), Some("Pending"));
    for (type_, expected) in [
        ("Paused", "False NotPaused"),
        ("BootstrapConfigReady", "True DataSecretProvided"),
        ("InfrastructureReady", "False NotReady"),
        ("NodeReady", "Unknown InspectionFailed"),
        ("NodeHealthy", "Unknown InspectionFailed"),
        ("Deleting", "False NotDeleting"),
        ("Updating", "False NotUpdating"),
        ("Ready", "False NotReady"),
        ("Available", "False NotReady"),
    ] {
        assert_eq!(reason(&decision, type_), expected, "{type_}");
    }
    assert_eq!(
        said(&decision, "Ready").2,
        "* InfrastructureReady: FooMachine status.initialization.provisioned is false\n\
         * NodeHealthy: Waiting for FooMachine to report spec.providerID"
    );
    assert_eq!(decision.status.observed_generation, Some(1));
}

#[test]
fn nothing_is_said_of_a_new_machine_until_its_provider_has_a_word() {
    let not_ready = |status: &str| {
        json!({ "conditions": [{
            "type": "Ready", "status": status, "reason": "Booting", "message": "",
            "lastTransitionTime": "2026-01-01T11:59:59Z",
        }] })
    };
    let failed = json!({ "failureReason": "NoSuchImage" });
    let made = json!({ "initialization": { "provisioned": true } });
    for (created, status, is_said, why) in [
        ("11:59:51", json!({}), false, "its provider is silent"),
        ("11:59:50", json!({}), true, "silent for too long"),
        ("12:00:01", json!({}), true, "a clock that cannot be right"),
        ("11:59:51", not_ready("False"), true, "its provider says why it is not ready"),
        ("11:59:51", not_ready("True"), false, "its provider is in the middle of its writes"),
        ("11:59:51", not_ready("?"), true, "nobody can read what its provider says"),
        ("11:59:51", failed, true, "its provider gave up"),
        ("11:59:51", made, true, "it is made"),
    ] {
        let mut world = World::new();
        world.machine.metadata.creation_timestamp = Some(time(created));
        world.infrastructure = Sight::object(infrastructure(status));
        let decision = world.decide();
        assert_eq!(!decision.status.conditions.is_empty(), is_said, "{why}");
        if !is_said {
            assert_eq!(decision.recheck, Some(at("12:00:01")), "{why}");
            assert_eq!(decision.status, Default::default(), "{why}");
        }
        world.delete(now());
        assert_eq!(reason(&world.decide(), "Deleting").split(' ').next(), Some("True"), "{why}");
    }
}

/// Its status came back without conditions, or not at all.
#[test]
fn a_machine_from_a_backup_is_linked_to_its_node_at_once() {
    let mut world = World::new();
    world.machine.metadata.creation_timestamp = Some(time("11:59:59"));
    world.machine.spec.provider_id = Some("foo://m".to_owned());
    world.node = Some(healthy_node());
    let decision = world.decide();
    assert_eq!(decision.status.node_ref.map(|one| one.name).as_deref(), Some("n"));
}

#[test]
fn what_is_missing_or_wrong_is_said_of_a_new_machine_at_once() {
    let mut world = World::new();
    world.machine.metadata.creation_timestamp = Some(time("11:59:59"));
    world.infrastructure = Sight::Missing;
    assert_eq!(reason(&world.decide(), "InfrastructureReady"), "False ObjectDoesNotExist");
    world.infrastructure = Sight::Unreadable("no contract");
    assert_eq!(reason(&world.decide(), "InfrastructureReady"), "Unknown InternalError");

    let mut world = World::new();
    world.machine.metadata.creation_timestamp = Some(time("11:59:59"));
    world.machine.spec.bootstrap = read(json!({ "configRef": {
        "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "FooConfig", "name": "m",
    } }));
    world.bootstrap = Sight::object(infrastructure(json!({})));
    assert_eq!(world.decide().status.conditions, []);
    world.bootstrap = Sight::object(infrastructure(json!({
        "initialization": { "dataSecretCreated": true }, "dataSecretName": "data",
    })));
    assert_eq!(world.decide().status.phase.as_deref(), Some("Provisioning"));
}

#[test]
fn the_object_of_a_set_is_handed_over_and_a_finalizer_comes_first() {
    let mut world = World::new();
    world.machine.metadata.finalizers = None;
    let mut object = infrastructure(json!({}));
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "s", "uid": "uid-s",
    }]);
    world.infrastructure = Sight::object(object);
    let decision = world.decide();
    let [Action::PatchMachine(machine), Action::PatchExternal { patch, .. }] =
        decision.actions.as_slice()
    else {
        panic!("{:?}", decision.actions)
    };
    assert_eq!(machine["metadata"]["finalizers"], json!(["machine.cluster.x-k8s.io"]));
    let owners = patch["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!((owners.len(), &owners[0]["kind"]), (1, &json!("Machine")));
}

#[test]
fn what_the_provider_tells_is_copied_in_one_write_of_the_spec() {
    let mut world = World::new();
    let mut object = infrastructure(json!({
        "initialization": { "provisioned": true }, "failureDomain": "b",
        "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }],
    }));
    object["spec"]["failureDomain"] = json!("a");
    world.infrastructure = Sight::object(object);
    let decision = world.decide();
    assert_eq!(
        decision.actions,
        [Action::PatchMachine(json!({
            "spec": { "providerID": "foo://m", "failureDomain": "a" }
        }))]
    );
    let status = &decision.status;
    assert_eq!(status.phase.as_deref(), Some("Provisioned"));
    assert_eq!(status.failure_domain.as_deref(), Some("b"));
    assert_eq!(status.addresses[0].address, "10.0.0.1");
    assert_eq!(status.initialization.infrastructure_provisioned, Some(true));
    let waits = "Waiting for a Node with spec.providerID foo://m to exist";
    assert_eq!(said(&decision, "NodeHealthy").2, waits);
}

#[test]
fn a_provider_that_tells_no_id_is_given_time() {
    let mut world = World::new();
    let mut object = provisioned();
    object["spec"] = json!({});
    world.infrastructure = Sight::object(object);
    let decision = world.decide();
    assert_eq!(decision.status.initialization.infrastructure_provisioned, None);
    assert_eq!(decision.recheck, Some(at("12:00:05")));
}

#[test]
fn a_bootstrap_object_yields_its_secret_once() {
    let mut world = World::new();
    world.machine.spec.bootstrap = read(json!({ "configRef": {
        "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "FooConfig", "name": "m",
    } }));
    let mut object = infrastructure(json!({}));
    object["kind"] = json!("FooConfig");
    world.bootstrap = Sight::object(object.clone());
    let decision = world.decide();
    assert_eq!(reason(&decision, "BootstrapConfigReady"), "False NotReady");

    object["status"] = json!({ "initialization": { "dataSecretCreated": true } });
    world.bootstrap = Sight::object(object.clone());
    let decision = world.decide();
    assert!(decision.waiting[0].message.contains("status.dataSecretName is empty"));
    assert_eq!(decision.status.observed_generation, None, "an error is no observation");

    object["status"]["dataSecretName"] = json!("data");
    world.bootstrap = Sight::object(object);
    let decision = world.decide();
    assert_eq!(
        decision.actions,
        [Action::PatchMachine(json!({ "spec": { "bootstrap": { "dataSecretName": "data" } } }))]
    );
    assert_eq!(decision.status.phase.as_deref(), Some("Provisioning"));

    // Later it is not read again; that it is gone is only said.
    world.machine.spec.bootstrap.data_secret_name = Some("data".to_owned());
    world.machine.status = Some(decision.status);
    world.bootstrap = Sight::Missing;
    let decision = world.decide();
    assert_eq!(decision.actions, []);
    let (status, reason, message) = said(&decision, "BootstrapConfigReady");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "ObjectDoesNotExist"));
    assert_eq!(message, "FooConfig does not exist");
}

#[test]
fn a_running_machine_is_a_fixpoint() {
    let world = World::running();
    let decision = world.decide();
    assert_eq!(decision.actions, []);
    assert_eq!(Some(&decision.status), world.machine.status.as_ref());
    assert_eq!(decision.status.phase.as_deref(), Some("Running"));
    assert_eq!(reason(&decision, "Ready"), "True Ready");
    assert_eq!(reason(&decision, "Available"), "True Available");
    assert_eq!(reason(&decision, "NodeReady"), "True NodeReady");
    let deprecated = decision.status.deprecated.unwrap().v1beta1.unwrap().conditions;
    let types: Vec<_> = deprecated.iter().map(|one| one.type_.as_str()).collect();
    assert_eq!(types, ["Ready", "InfrastructureReady", "NodeHealthy"]);
}

#[test]
fn the_node_gets_what_is_meant_for_it_and_keeps_what_is_of_others() {
    let mut world = World::running();
    let labels = world.machine.metadata.labels.as_mut().unwrap();
    for key in [
        "node-role.kubernetes.io/worker",
        "x.node-restriction.kubernetes.io/a",
        "node.cluster.x-k8s.io/b",
        "evilnode.cluster.x-k8s.io/c",
        "x.node-role.kubernetes.io/d",
        "e",
    ] {
        labels.insert(key.to_owned(), "1".to_owned());
    }
    let node = world.node.as_mut().unwrap();
    node.metadata.labels = Some(
        [
            ("mine", "1"),
            ("node.cluster.x-k8s.io/old", "1"),
            ("node.cluster.x-k8s.io/stranger", "1"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into(),
    );
    let annotations = node.metadata.annotations.as_mut().unwrap();
    annotations.insert(
        "cluster.x-k8s.io/labels-from-machine".to_owned(),
        "node.cluster.x-k8s.io/old".to_owned(),
    );
    node.spec.as_mut().unwrap().taints = Some(read(json!([
        { "key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule" },
        { "key": "other", "effect": "NoExecute" },
    ])));
    let decision = world.decide();
    let [Action::PatchNode { node, patch }] = decision.actions.as_slice() else {
        panic!("{:?}", decision.actions)
    };
    assert_eq!(node, "n");
    assert_eq!(
        patch["metadata"]["labels"],
        json!({
            "node-role.kubernetes.io/worker": "1", "x.node-restriction.kubernetes.io/a": "1",
            "node.cluster.x-k8s.io/b": "1", "node.cluster.x-k8s.io/old": null,
        })
    );
    assert_eq!(
        patch["metadata"]["annotations"],
        json!({ "cluster.x-k8s.io/labels-from-machine":
            "node-role.kubernetes.io/worker,node.cluster.x-k8s.io/b,x.node-restriction.kubernetes.io/a" })
    );
    assert_eq!(patch["spec"]["taints"], json!([{ "key": "other", "effect": "NoExecute" }]));
}

#[test]
fn the_node_gets_what_the_operator_is_told_besides_until_it_is_told_otherwise() {
    let mut world = World::running();
    let pattern = |text: &str| -> KeyPattern { text.parse().unwrap() };
    world.policy.node_keys.labels.push(pattern("^example\\.com/"));
    world.policy.node_keys.annotations.push(pattern("^owner$"));
    for metadata in [&mut world.machine.metadata.labels, &mut world.machine.metadata.annotations] {
        let all = metadata.get_or_insert_default();
        all.insert("example.com/team".to_owned(), "a".to_owned());
        all.insert("owner".to_owned(), "b".to_owned());
    }
    let patch = |world: &World| match world.decide().actions.as_slice() {
        [Action::PatchNode { patch, .. }] => patch["metadata"].clone(),
        others => panic!("{others:?}"),
    };
    let given = patch(&world);
    assert_eq!(given["labels"], json!({ "example.com/team": "a" }));
    assert_eq!(
        given["annotations"],
        json!({
            "owner": "b",
            "cluster.x-k8s.io/labels-from-machine": "example.com/team",
            "cluster.x-k8s.io/annotations-from-machine": "owner",
        })
    );

    let metadata = &mut world.node.as_mut().unwrap().metadata;
    metadata.labels.get_or_insert_default().extend(read::<BTreeMap<_, _>>(given["labels"].clone()));
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.extend(read::<BTreeMap<_, _>>(given["annotations"].clone()));
    world.policy = Policy::default();
    let taken = patch(&world);
    assert_eq!(taken["labels"], json!({ "example.com/team": null }));
    assert_eq!(taken["annotations"]["owner"], json!(null));
}

/// Cluster API's own helper writes conditions first, and that the machine is there in a later write.
#[test]
fn between_two_writes_of_the_provider_nothing_new_is_told() {
    let ready = |since: &str| {
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": since });
        Sight::object(infrastructure(json!({ "conditions": [ready] })))
    };
    let mut world = World::new();
    let first = world.decide();
    world.machine.status = Some(first.status.clone());
    world.infrastructure = ready("2026-01-01T11:59:58Z");
    let decision = world.decide();
    assert_eq!((decision.status, decision.recheck), (first.status.clone(), Some(at("12:00:03"))));

    // One who says it for longer means it; what a clock that is ahead says is told at once.
    for since in ["2026-01-01T11:59:55Z", "2026-01-01T12:00:01Z"] {
        world.infrastructure = ready(since);
        let decision = world.decide();
        assert_eq!(reason(&decision, "InfrastructureReady"), "True Ready", "{since}");
        assert_eq!(decision.recheck, None, "{since}");
        let deprecated = decision.status.deprecated.unwrap().v1beta1.unwrap().conditions;
        let infrastructure = deprecated.iter().find(|one| one.type_ == "InfrastructureReady");
        assert_eq!(infrastructure.unwrap().status.as_str(), "True", "{since}");
    }

    // Nothing was said before: then this is.
    world.machine.status = None;
    world.infrastructure = ready("2026-01-01T11:59:58Z");
    assert_eq!(reason(&world.decide(), "InfrastructureReady"), "True Ready");
}

#[test]
fn bad_input_is_said_with_the_reasons_of_the_contract() {
    let mut world = World::new();
    world.infrastructure = Sight::Unreadable("cannot find any versions matching contract versions");
    let decision = world.decide();
    assert_eq!(reason(&decision, "InfrastructureReady"), "Unknown InternalError");
    assert_eq!(decision.recheck, Some(at("12:00:15")));

    world.infrastructure = Sight::Missing;
    let decision = world.decide();
    assert_eq!(reason(&decision, "InfrastructureReady"), "False ObjectDoesNotExist");
    assert_eq!(decision.recheck, Some(at("12:00:30")));

    let mut object =
        infrastructure(json!({ "conditions": [{ "type": "Ready", "status": "Nice" }] }));
    world.infrastructure = Sight::object(object.clone());
    let decision = world.decide();
    assert_eq!(reason(&decision, "InfrastructureReady"), "Unknown InvalidConditionReported");

    object["metadata"]["ownerReferences"][0]["name"] = json!("another");
    world.infrastructure = Sight::object(object);
    let decision = world.decide();
    assert!(decision.waiting[0].message.contains("controlled by Machine another"), "{decision:?}");

    let mut world = World::running();
    world.infrastructure = Sight::Missing;
    let decision = world.decide();
    assert_eq!(reason(&decision, "InfrastructureReady"), "False ObjectDeleted");
    let deprecated = decision.status.deprecated.unwrap().v1beta1.unwrap();
    assert_eq!(deprecated.failure_reason.as_deref(), Some("InvalidConfiguration"));
}

#[test]
fn of_two_machines_with_one_provider_id_the_other_keeps_its_node() {
    let mut world = World::new();
    world.infrastructure = Sight::object(provisioned());
    world.node = Some(healthy_node());
    world.namesakes = vec![("first".to_owned(), true)];
    let decision = world.decide();
    assert_eq!(decision.status.node_ref, None);
    let (status, reason, message) = said(&decision, "NodeHealthy");
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "InspectionFailed"));
    assert!(message.contains("Machine first"), "{message}");
    assert!(!decision.actions.iter().any(|one| matches!(one, Action::PatchNode { .. })));
}

#[test]
fn a_cluster_that_is_down_is_told_after_a_while() {
    let mut world = World::running();
    world.down = Some("no answer");
    let decision = world.decide();
    assert_eq!(reason(&decision, "NodeHealthy"), "True NodeHealthy");
    assert_eq!(decision.recheck, Some(at("12:04:01")));
    let decision = world.decide_with(None, None, at("12:04:01"));
    assert_eq!(reason(&decision, "NodeHealthy"), "Unknown ConnectionDown");
    assert_eq!(said(&decision, "NodeReady").2, "Last successful probe at 2026-01-01T11:59:00Z");
    assert_eq!(reason(&decision, "Ready"), "Unknown ReadyUnknown");
}

#[test]
fn nothing_is_touched_while_the_cluster_is_paused() {
    let mut world = World::running();
    world.machine.metadata.finalizers = None;
    world.infrastructure = Sight::Missing;
    world.cluster.spec.paused = Some(true);
    let before = world.machine.status.clone().unwrap();
    let decision = world.decide();
    assert_eq!((decision.actions.len(), decision.recheck), (0, None));
    assert_eq!(reason(&decision, "Paused"), "True Paused");
    assert_eq!(decision.status.phase, before.phase);
}

#[test]
fn conditions_of_others_survive_and_count() {
    let mut world = World::running();
    let conditions = &mut world.machine.status.as_mut().unwrap().conditions;
    conditions.push(read(json!({
        "type": "HealthCheckSucceeded", "status": "False", "reason": "UnhealthyNode", "message": "sick",
        "lastTransitionTime": "2026-01-01T11:00:00Z",
    })));
    let decision = world.decide();
    assert_eq!(reason(&decision, "HealthCheckSucceeded"), "False UnhealthyNode");
    assert_eq!(said(&decision, "Ready").2, "* HealthCheckSucceeded: sick");
}

#[test]
fn a_machine_of_a_deployment_is_compared_by_templates() {
    let mut world = World::running();
    world.set = Some(read(json!({
        "metadata": { "name": "s", "creationTimestamp": "2026-01-01T09:00:00Z" },
        "spec": { "clusterName": "c", "selector": {}, "template": { "spec": { "version": "v1.33.0" } } },
    })));
    world.deployment = Some(read(json!({
        "metadata": { "name": "d" },
        "spec": { "clusterName": "c", "selector": {}, "template": { "spec": { "version": "v1.34.0" } } },
    })));
    let decision = world.decide();
    let (_, reason, message) = said(&decision, "UpToDate");
    assert_eq!(reason, "NotUpToDate");
    assert_eq!(message, "* Version v1.33.0, v1.34.0 required");
}

/// Whether a set is of a rollout by time is answered as its deployment answers it, which marks what it makes.
#[test]
fn a_machine_of_an_older_set_is_out_of_date_when_a_rollout_by_time_is_due() {
    let mark = json!({ "machinist.dev/rollout-after": "2026-01-01T11:00:00Z" });
    for (created, annotations, wanted) in [
        ("2026-01-01T11:00:00Z", json!({}), "UpToDate"),
        ("2026-01-01T10:59:59Z", mark, "UpToDate"),
        ("2026-01-01T10:59:59Z", json!({}), "NotUpToDate"),
    ] {
        let mut world = World::running();
        let template = json!({ "spec": { "version": "v1.34.0" } });
        world.machine.spec.version = Some("v1.34.0".to_owned());
        world.set = Some(read(json!({
            "metadata": { "name": "s", "creationTimestamp": created, "annotations": annotations },
            "spec": { "clusterName": "c", "selector": {}, "template": template },
        })));
        world.deployment = Some(read(json!({
            "metadata": { "name": "d" },
            "spec": {
                "clusterName": "c", "selector": {}, "template": template,
                "rollout": { "after": "2026-01-01T11:00:00Z" },
            },
        })));
        assert_eq!(said(&world.decide(), "UpToDate").1, wanted, "{created}");
    }
}

#[test]
fn a_machine_is_available_after_its_time() {
    let mut world = World::running();
    world.machine.spec.min_ready_seconds = Some(30);
    let decision = world.decide();
    assert_eq!(reason(&decision, "Available"), "False WaitingForMinReadySeconds");
    assert_eq!(decision.recheck, Some(at("12:00:30")));
    let decision = world.decide_with(None, None, at("12:00:30"));
    assert_eq!(reason(&decision, "Available"), "True Available");
}
