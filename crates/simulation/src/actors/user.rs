//! What do people do? They make, scale and delete pools and Machines, and act at the cloud's console.

use std::{collections::VecDeque, time::Duration};

use jiff::Timestamp;
use machinist_testbed::cloud::model::{ChangedBy, InstanceState, SpotNoticeRequest};
use serde_json::{Value, json};

use super::{
    Actor, Scene, later,
    maintainer::MaintenanceAct,
    stranger::{Stranger, Strangers},
    text,
};
use crate::{chance::Chance, faults::FaultKind, template};

const WHO: &str = "user";
const MACHINES: (&str, &str) = ("machine.openshift.io", "machines");
const SETS: (&str, &str) = ("machine.openshift.io", "machinesets");

/// Something that a person does.
#[derive(Clone, Debug)]
pub enum Act {
    /// Applies an object.
    Create {
        plural: &'static str,
        object: Value,
    },
    Scale {
        set: String,
        replicas: usize,
    },
    DeleteSet {
        set: String,
        foreground: bool,
    },
    DeleteMachine {
        name: String,
    },
    /// Deletes one of the Machines that are there.
    DeleteAnyMachine,
    /// Deletes a Machine and makes another of the same name as soon as it is gone.
    Recreate {
        name: String,
    },
    RemoveHooks {
        name: String,
    },
    /// Gives the bootstrap secret other contents.
    ChangeUserData,
    Console {
        verb: ConsoleVerb,
        machine: Option<String>,
    },
    /// Lets so many pods of an application go at once.
    SetBudget {
        app: String,
        most: i64,
    },
    /// Touches a Machine without changing what it means.
    Poke,
    /// Asks for a certificate that is not theirs.
    AskForCertificate {
        stranger: Stranger,
    },
    /// Does something about maintenance, or the provider does.
    Maintain(MaintenanceAct),
}

/// What is done to an instance behind the cluster's back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleVerb {
    Stop,
    Start,
    Reboot,
    Terminate,
    Vanish,
    SpotNotice,
    ScheduledStop,
}

/// Does what was planned, each at its time.
#[derive(Debug)]
pub struct User {
    plan: VecDeque<(Timestamp, Act)>,
    chance: Chance,
    /// Machines to be made again, once their predecessors are gone.
    recreations: Vec<(String, Value)>,
    strangers: Strangers,
}

impl User {
    /// The plan is put in the order of time.
    #[must_use]
    pub fn new(start: Timestamp, plan: Vec<(Duration, Act)>, chance: Chance) -> Self {
        let mut plan: Vec<(Timestamp, Act)> =
            plan.into_iter().map(|(after, act)| (later(start, after), act)).collect();
        plan.sort_by_key(|(at, _)| *at);
        Self { plan: plan.into(), chance, recreations: Vec::new(), strangers: Strangers::default() }
    }

    fn act(&mut self, scene: &Scene, act: Act) {
        match act {
            Act::Create { plural, object } => {
                let group = if plural == "secrets" { "" } else { MACHINES.0 };
                scene.create(WHO, group, plural, object);
            }
            Act::Scale { set, replicas } => {
                let body = json!({ "spec": { "replicas": replicas } });
                patch(scene, SETS, &set, body);
            }
            Act::DeleteSet { set, foreground } => {
                let propagation = if foreground { "Foreground" } else { "Background" };
                let options = json!({ "propagationPolicy": propagation });
                scene.delete(WHO, SETS, (template::NAMESPACE, &set), options);
            }
            Act::DeleteMachine { name } => delete_machine(scene, &name),
            Act::DeleteAnyMachine => {
                let names = scene.hub.judge().living_machines();
                if let Some(name) = self.chance.pick(&names) {
                    delete_machine(scene, name);
                }
            }
            Act::Recreate { name } => {
                let found = scene.objects(MACHINES.0, MACHINES.1);
                let Some(machine) = found.iter().find(|one| one.name() == name) else { return };
                scene.hub.count_fault(FaultKind::F18, Some(&name));
                let value = machine.value();
                let object = json!({
                    "metadata": {
                        "name": name,
                        "namespace": template::NAMESPACE,
                        "labels": value.pointer("/metadata/labels"),
                    },
                    "spec": { "providerSpec": value.pointer("/spec/providerSpec") },
                });
                delete_machine(scene, &name);
                self.recreations.push((name, object));
            }
            Act::RemoveHooks { name } => {
                patch(scene, MACHINES, &name, json!({ "spec": { "lifecycleHooks": null } }));
            }
            Act::ChangeUserData => {
                scene.hub.count_fault(FaultKind::F46, None);
                let data = format!("{:016x}", self.chance.number());
                let body = template::user_data_patch(&data);
                let at = (template::NAMESPACE, template::USER_DATA_SECRET);
                scene.patch(WHO, crate::api_server::Subresource::None, ("", "secrets"), at, body);
            }
            Act::Console { verb, machine } => self.at_console(scene, verb, machine.as_deref()),
            Act::SetBudget { app, most } => {
                if most == 0 {
                    scene.hub.count_fault(FaultKind::F24, None);
                }
                let kind = ("policy", "poddisruptionbudgets");
                let body = json!({ "spec": { "maxUnavailable": most } });
                let none = crate::api_server::Subresource::None;
                scene.patch(WHO, none, kind, ("default", &app), body);
            }
            Act::AskForCertificate { stranger } => {
                self.strangers.ask(scene, &mut self.chance, stranger, None);
            }
            Act::Maintain(act) => act.play(scene, &mut self.chance),
            Act::Poke => {
                let names = scene.hub.judge().living_machines();
                if let Some(name) = self.chance.pick(&names).cloned() {
                    scene.hub.count_fault(FaultKind::F35, Some(&name));
                    let note = format!("{:x}", self.chance.number());
                    let body = json!({ "metadata": { "annotations": { "example/poke": note } } });
                    patch(scene, MACHINES, &name, body);
                }
            }
        }
    }

    fn at_console(&mut self, scene: &Scene, verb: ConsoleVerb, machine: Option<&str>) {
        let wanted = match verb {
            ConsoleVerb::Start => InstanceState::Stopped,
            _ => InstanceState::Running,
        };
        let facts = scene.cloud.model().snapshot();
        let candidates: Vec<String> = facts
            .iter()
            .filter(|one| one.state == wanted)
            .filter(|one| {
                machine.is_none_or(|name| one.tags.get("Name").is_some_and(|it| it == name))
            })
            .filter(|one| verb != ConsoleVerb::SpotNotice || one.spot)
            .map(|one| one.id.clone())
            .collect();
        let Some(id) = self.chance.pick(&candidates).cloned() else { return };
        let name = facts.iter().find(|one| one.id == id).and_then(|one| one.tags.get("Name"));
        let kind = match verb {
            ConsoleVerb::SpotNotice | ConsoleVerb::ScheduledStop => FaultKind::F57,
            _ => FaultKind::F56,
        };
        scene.hub.count_fault(kind, name.map(String::as_str));
        let subject = name.cloned().unwrap_or_default();
        scene.hub.note(&subject, format!("console: {verb:?} {id}"));
        let refused = scene.cloud.change(|model, now| match verb {
            ConsoleVerb::Stop => model.console_stop(now, &id, ChangedBy::User).err(),
            ConsoleVerb::ScheduledStop => model.console_stop(now, &id, ChangedBy::Provider).err(),
            ConsoleVerb::Start => model.console_start(now, &id).err(),
            ConsoleVerb::Reboot => model.console_reboot(now, &id, ChangedBy::User).err(),
            ConsoleVerb::Terminate => model.console_terminate(now, &id, ChangedBy::User).err(),
            ConsoleVerb::Vanish => model.console_vanish(now, &id).err(),
            ConsoleVerb::SpotNotice => {
                model.console_spot_notice(now, &id, &SpotNoticeRequest::default()).err()
            }
        });
        if let Some(error) = refused {
            scene.hub.note(&subject, format!("console: refused: {error}"));
        }
    }
}

impl Actor for User {
    fn step(&mut self, scene: &Scene, now: Timestamp) -> Option<Timestamp> {
        while self.plan.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, act)) = self.plan.pop_front() {
                self.act(scene, act);
            }
        }
        self.strangers.withdraw(scene);
        let waiting = std::mem::take(&mut self.recreations);
        for (name, object) in waiting {
            let machines = scene.objects(MACHINES.0, MACHINES.1);
            if machines.iter().any(|one| one.name() == name) {
                self.recreations.push((name, object));
            } else {
                scene.hub.sometimes("a name is used again by another machine");
                scene.create(WHO, MACHINES.0, MACHINES.1, object);
            }
        }
        self.plan.front().map(|(at, _)| *at)
    }
}

fn patch(scene: &Scene, kind: (&str, &str), name: &str, body: Value) {
    let none = crate::api_server::Subresource::None;
    scene.patch(WHO, none, kind, (template::NAMESPACE, name), body);
}

fn delete_machine(scene: &Scene, name: &str) {
    let machines = scene.objects(MACHINES.0, MACHINES.1);
    let phase = machines
        .iter()
        .find(|one| one.name() == name)
        .map(|one| text(one.value(), "/status/phase").to_owned());
    if phase.is_some_and(|phase| phase.is_empty() || phase == "Provisioning") {
        scene.hub.sometimes("a machine is deleted while it is launched");
    }
    scene.delete(WHO, MACHINES, (template::NAMESPACE, name), Value::Null);
}
