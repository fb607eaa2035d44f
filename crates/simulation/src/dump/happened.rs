//! How does what had happened to a fleet happen to it in a world?

use machinist_api::names::{annotation, condition_type};
use machinist_core::drift::Class;
use machinist_testbed::cloud::model::{
    ChangedBy, ConsoleError, EventCode, Impair, ImpairedCheck, NewEvent,
};
use serde_json::{Value, json};

use super::Dump;
use crate::{
    actors::{Scene, text, time},
    api_server::Subresource,
    invariants::condition_of,
    template,
    world::World,
};

const MACHINES: (&str, &str) = ("machine.openshift.io", "machines");
const MAINTENANCES: &str = "machinemaintenance.managed.openshift.io";

impl Dump {
    /// Stops, impairs, announces, cordons and deletes. What the world refuses is told in the timeline.
    pub(super) fn play_happened(&self, world: &World) {
        let scene = &world.scene;
        for machine in self.of("machine.openshift.io", "Machine") {
            let name = text(machine, "/metadata/name");
            let Some(instance) = instance_of(scene, name) else { continue };
            befall(scene, name, &instance, machine);
            self.cordon(scene, name, machine);
            if !text(machine, "/metadata/deletionTimestamp").is_empty() {
                scene.delete("user", MACHINES, (template::NAMESPACE, name), Value::Null);
            }
        }
        for maintenance in self.of(MAINTENANCES, "MachineMaintenance") {
            let name = text(maintenance, "/spec/machinelink");
            let Some(instance) = instance_of(scene, name) else { continue };
            for reason in maintenance["status"]["reasons"].as_array().into_iter().flatten() {
                announce(scene, name, &instance, reason);
            }
        }
        scene.hub.changed.notify_one();
    }

    /// A Node that somebody else cordoned is cordoned here.
    fn cordon(&self, scene: &Scene, name: &str, machine: &Value) {
        let real = text(machine, "/status/nodeRef/name");
        let mut nodes = self.of("", "Node").filter(|node| text(node, "/metadata/name") == real);
        let is_cordoned = nodes.any(|node| {
            let annotations = node["metadata"]["annotations"].as_object();
            let is_ours = annotations.is_some_and(|all| all.contains_key(annotation::CORDONED_FOR));
            node.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) && !is_ours
        });
        let linked = find(scene, name, "/status/nodeRef/name");
        if let Some(node) = linked.filter(|_| is_cordoned) {
            let body = json!({ "spec": { "unschedulable": true } });
            scene.patch("user", Subresource::None, ("", "nodes"), ("", &node), body);
        }
    }
}

/// What the record of the Machine says of its instance.
fn befall(scene: &Scene, name: &str, instance: &str, machine: &Value) {
    let drift = text(machine, "/status/providerStatus/drift/class");
    let told = |done: Result<(), ConsoleError>, what: &str| match done {
        Ok(()) => scene.hub.note(name, format!("dump: instance {instance} {what}")),
        Err(error) => scene.hub.note(name, format!("dump: instance {instance}: {error}")),
    };
    let cloud = &scene.cloud;
    if let Some(class) = Class::from_reason(drift) {
        let by = match class {
            Class::StoppedByProvider | Class::TerminatedByProvider => ChangedBy::Provider,
            Class::StoppedByGuest | Class::TerminatedByGuest => ChangedBy::Guest,
            _ => ChangedBy::User,
        };
        let done = match class {
            class if class.is_stop() => {
                cloud.change(|model, now| model.console_stop(now, instance, by).map(drop))
            }
            class if class.is_termination() => {
                cloud.change(|model, now| model.console_terminate(now, instance, by).map(drop))
            }
            Class::Vanished => {
                cloud.change(|model, now| model.console_vanish(now, instance).map(drop))
            }
            _ => return,
        };
        told(done, class.in_words());
        return;
    }
    let healthy = condition_of(machine, condition_type::INSTANCE_HEALTHY);
    if healthy.is_some_and(|it| text(it, "/reason") == Class::Impaired.as_str()) {
        let how = Impair { check: ImpairedCheck::System, impaired: true };
        let done = cloud.change(|model, now| model.console_impair(now, instance, &how).map(drop));
        told(done, Class::Impaired.in_words());
    }
}

/// An event of the provider that had not happened yet.
fn announce(scene: &Scene, name: &str, instance: &str, reason: &Value) {
    if text(reason, "/kind") != "Event" || text(reason, "/state") != "Active" {
        return;
    }
    let code = serde_json::from_value::<EventCode>(reason["code"].clone()).ok();
    let (Some(code), Some(not_before)) = (code, time(reason, "/notBefore")) else { return };
    let event = NewEvent {
        instance_id: instance.to_owned(),
        code,
        description: Some(text(reason, "/description").to_owned()).filter(|it| !it.is_empty()),
        not_before,
        not_after: time(reason, "/notAfter"),
        not_before_deadline: time(reason, "/notBeforeDeadline"),
    };
    let words = format!("{} for {not_before}", code.name());
    let announced = scene.cloud.change(|model, now| model.schedule_event(now, event));
    match announced {
        Ok(_) => scene.hub.note(name, format!("dump: instance {instance}: {words}")),
        Err(error) => scene.hub.note(name, format!("dump: instance {instance}: {error}")),
    }
}

fn instance_of(scene: &Scene, machine: &str) -> Option<String> {
    find(scene, machine, "/status/providerStatus/instanceId")
}

/// What a Machine of the world says.
fn find(scene: &Scene, machine: &str, pointer: &str) -> Option<String> {
    let machines = scene.objects(MACHINES.0, MACHINES.1);
    let found = machines.iter().find(|one| one.name() == machine)?;
    Some(text(found.value(), pointer).to_owned()).filter(|text| !text.is_empty())
}
