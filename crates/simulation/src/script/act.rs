//! What do the people and the faults of a script do, one at a time?

use std::time::Duration;

use machinist_api::{
    cluster_api::names::label,
    names::{maintenance_of, tag},
};
use machinist_testbed::cloud::model::{
    Caller, ChangedBy, ConsoleError, CreateTags, EventPatch, HideRequest, Impair, ImpairedCheck,
    InstanceFacts, InstanceState, Request, SpotNoticeRequest, Tag,
};
use serde_json::{Value, json};

use super::{
    kind,
    stage::Stage,
    step::{Announce, ChangeEvents, ConsoleAct, NodeFault, NodeTrouble, PatchObject, Step},
    values::MachineName,
    witness::MachineSeen,
};
use crate::{
    actors::{Disturbance, later, maintainer, text},
    api_server::{KindRef, ObjectRef, Scope, Subresource},
    faults::{FaultKind, storm},
    hub::lock,
    process::Incarnation,
    template::{self, cluster_api},
    workload,
};

const USER: &str = "user";
const MACHINES: (&str, &str) = ("machine.openshift.io", "machines");
const SETS: (&str, &str) = ("machine.openshift.io", "machinesets");
const CLUSTER_API: (&str, &str) = (cluster_api::GROUP, "machines");
const POOLS: [(&str, &str); 3] =
    [SETS, (cluster_api::GROUP, "machinesets"), (cluster_api::GROUP, "machinedeployments")];
const REQUESTS: (&str, &str) = ("certificates.k8s.io", "certificatesigningrequests");
/// How long somebody waits for a Machine to be gone before they make it anew.
const RECREATION_MAX: Duration = Duration::from_secs(2 * 3600);

impl Stage<'_> {
    /// Does what takes no time.
    pub(super) fn act(&self, step: &Step) -> Result<(), String> {
        match step {
            Step::AddPool(pool) => {
                let made = self.scene().create(USER, SETS.0, SETS.1, pool.object(&self.world.ids));
                made.map(drop).ok_or_else(|| format!("pool {} was refused", pool.name))
            }
            Step::AddMachine(machine) => {
                let object = machine.object(&self.world.ids);
                let made = self.scene().create(USER, MACHINES.0, MACHINES.1, object);
                made.map(drop).ok_or_else(|| format!("machine {} was refused", machine.name))
            }
            Step::AddHealthCheck(check) => {
                let kind = (MACHINES.0, "machinehealthchecks");
                let made = self.scene().create(USER, kind.0, kind.1, check.object());
                made.map(drop).ok_or_else(|| format!("health check {} was refused", check.name))
            }
            Step::Scale { pool, replicas } => {
                self.patch(self.pool_kind(pool), pool, json!({ "spec": { "replicas": replicas } }))
            }
            Step::DeletePool { pool, foreground } => {
                let propagation = if *foreground { "Foreground" } else { "Background" };
                let options = json!({ "propagationPolicy": propagation });
                let at = (template::NAMESPACE, pool.as_str());
                self.scene().delete(USER, self.pool_kind(pool), at, options);
                Ok(())
            }
            Step::DeleteMachine(name) => {
                let seen = self.named(name)?;
                let at = (template::NAMESPACE, seen.name.as_str());
                self.scene().delete(USER, self.machine_kind(&seen), at, Value::Null);
                Ok(())
            }
            Step::RemoveHooks(name) => {
                let seen = self.named(name)?;
                self.patch(MACHINES, &seen.name, json!({ "spec": { "lifecycleHooks": null } }))
            }
            Step::Annotate(annotate) => {
                let body = json!({ "metadata": { "annotations": annotate.annotations } });
                match (&annotate.machine, &annotate.pool) {
                    (Some(name), None) => {
                        let seen = self.named(name)?;
                        self.patch(self.machine_kind(&seen), &seen.name, body)
                    }
                    (None, Some(pool)) => self.patch(self.pool_kind(pool), pool, body),
                    _ => Err("annotate takes either a machine or a pool".to_owned()),
                }
            }
            Step::SetBudget { app, most_away } => {
                let kind = ("policy", "poddisruptionbudgets");
                let body = json!({ "spec": { "maxUnavailable": most_away } });
                let done =
                    self.scene().patch(USER, Subresource::None, kind, ("default", app), body);
                done.map(drop).ok_or_else(|| format!("app {app} has no budget"))
            }
            Step::RestartApp(app) => {
                for pod in self.scene().objects("", "pods") {
                    if text(pod.value(), "/metadata/labels/app") == app {
                        let at = (pod.namespace(), pod.name());
                        let now = json!({ "gracePeriodSeconds": 0 });
                        self.scene().delete(USER, ("", "pods"), at, now);
                    }
                }
                Ok(())
            }
            Step::ChangeUserData(data) => {
                let at = (template::NAMESPACE, template::USER_DATA_SECRET);
                let body = template::user_data_patch(data);
                let done = self.scene().patch(USER, Subresource::None, ("", "secrets"), at, body);
                done.map(drop).ok_or_else(|| "the secret was not changed".to_owned())
            }
            Step::Create(object) => self.create(object),
            Step::Patch(patch) => self.patch_object(patch),
            Step::DeleteObject(name) => {
                let found =
                    self.object(&name.kind, &name.namespace, &name.name, name.machine.as_ref())?;
                let Some(found) = found else {
                    return Err(format!("{} {} is not there", name.kind, name.name));
                };
                let kind = kind::group_and_plural(&name.kind);
                let at = (found.namespace(), found.name());
                self.scene().delete(USER, kind, at, Value::Null);
                Ok(())
            }
            Step::Console { verb, machine } => self.at_console(*verb, machine),
            Step::Announce(event) => self.announce(event),
            Step::ChangeEvents(change) => self.change_events(change),
            Step::CordonNode { machine, cordoned } => {
                let node = self.object("nodes", "", "", Some(machine))?;
                let node = node.ok_or_else(|| format!("machine {machine} has no node"))?;
                let body = json!({ "spec": { "unschedulable": cordoned.then_some(true) } });
                let (none, at) = (Subresource::None, ("", node.name()));
                let done = self.scene().patch("stranger", none, ("", "nodes"), at, body);
                done.map(drop).ok_or_else(|| format!("node {} was not changed", node.name()))
            }
            Step::AskForCertificate(ask) => {
                let about = ask.machine.as_ref().map(|name| self.named(name)).transpose()?;
                let about = about.map(|seen| seen.name);
                let (strangers, chance) = &mut *self.strangers.borrow_mut();
                for _ in 0..ask.times {
                    if !strangers.ask(self.scene(), chance, ask.stranger, about.as_deref()) {
                        return Err(format!("nobody to be asked for as {:?}", ask.stranger));
                    }
                }
                Ok(())
            }
            Step::WithdrawRequests => {
                for request in self.scene().objects(REQUESTS.0, REQUESTS.1) {
                    if request.name().starts_with("stranger") {
                        self.scene().delete(USER, REQUESTS, ("", request.name()), Value::Null);
                    }
                }
                Ok(())
            }
            Step::RenewCertificate(name) => {
                let id = self.instance(name)?.id;
                self.scene().hub.weather().renewals.insert(id);
                Ok(())
            }
            Step::TagInstance { machine, tags } => {
                let tags =
                    tags.iter().map(|(key, value)| Tag { key: key.clone(), value: value.clone() });
                let request = Request::CreateTags(CreateTags {
                    resources: vec![self.instance(machine)?.id],
                    tags: tags.collect(),
                    dry_run: false,
                });
                let caller = Caller { access_key_id: None, user_agent: "console".to_owned() };
                let done = self
                    .scene()
                    .cloud
                    .change(|model, now| model.call(now, &caller, request).result);
                done.map(drop).map_err(|error| error.message)
            }
            other => self.disturb(other),
        }
    }

    fn disturb(&self, step: &Step) -> Result<(), String> {
        let scene = self.scene();
        let now = self.now();
        match step {
            Step::Cloud(faults) => {
                let refused = scene
                    .cloud
                    .change(|model, now| model.add_faults(now, (**faults).clone()).err());
                return refused.map_or(Ok(()), |error| Err(format!("faults refused: {error}")));
            }
            Step::EndCloud(kind) => {
                let refused = scene.cloud.change(|model, _| {
                    if kind == "all" {
                        model.clear_faults();
                        None
                    } else {
                        model.clear_fault_kind(kind).err()
                    }
                });
                return refused.map_or(Ok(()), |error| Err(error.to_string()));
            }
            Step::Hide { machine, lasting, reads } => {
                let id = self.instance(machine)?.id;
                let request = HideRequest {
                    lasting: lasting.map(super::values::Span::signed),
                    count: *reads,
                };
                let refused =
                    scene.cloud.change(|model, now| model.console_hide(now, &id, &request).err());
                return refused.map_or(Ok(()), |error| Err(error.to_string()));
            }
            Step::ApiServerAway(span) => {
                lock(&self.world.outages()).unreachable_until = Some(later(now, span.0));
                scene.server.end_watches(|_| true);
            }
            Step::ThrottleApi(span) => {
                lock(&self.world.outages()).throttled_until = Some(later(now, span.0));
            }
            Step::WorkloadsAway(span) => {
                scene.hub.weather().workloads_away_until = Some(later(now, span.0));
                scene.server.end_watches(|watch| workload::is_workload(&watch.client));
            }
            Step::ProvidersAway(span) => {
                scene.hub.weather().providers_away_until = Some(later(now, span.0));
            }
            Step::ExpireHistory => storm::expire_history(scene),
            Step::Watches(fault) => {
                kind::known(&fault.kind)?;
                self.obstacles().watches(fault, now);
            }
            Step::Lists(fault) => {
                kind::known(&fault.kind)?;
                self.obstacles().lists(fault, now);
            }
            Step::Forbid(fault) => {
                kind::known(&fault.kind)?;
                self.obstacles().forbid(fault, now);
            }
            Step::Nodes(fault) => return self.trouble_nodes(fault),
            Step::Boots(boots) => {
                scene.hub.weather().disturbance = Some(Disturbance {
                    late: boots.late,
                    never: boots.never,
                    stubborn: boots.stubborn_pods,
                    overreaching: 0.0,
                });
            }
            Step::OnEffect(aim) => self.aims().add(aim),
            Step::Crash(process) => self.process(process)?.crash(),
            Step::Stop(process) => self.process(process)?.terminate(),
            Step::Pause { process, lasting } => self.process(process)?.pause(lasting.0),
            Step::CutOff { process, lasting } => {
                let tag = self.process(process)?.tag.clone();
                let until = later(now, lasting.0);
                lock(&self.world.outages()).cut_off.insert(tag.clone(), until);
                scene.server.end_watches(move |watch| *watch.client == *tag);
            }
            Step::JumpClock { process, by } => self.process(process)?.jump_clock(*by),
            other => return Err(format!("{other:?} takes time")),
        }
        Ok(())
    }

    /// Deletes a Machine and makes another of the same name as soon as it is gone.
    pub(super) async fn recreate(&self, name: &MachineName) -> Result<(), String> {
        let seen = self.named(name)?;
        let Some(machine) = self.stored_machine(&seen) else {
            return Err(format!("machine {name} is not there"));
        };
        let value = machine.value();
        let object = json!({
            "metadata": {
                "name": seen.name,
                "namespace": template::NAMESPACE,
                "labels": value.pointer("/metadata/labels"),
                "annotations": value.pointer("/metadata/annotations"),
            },
            "spec": { "providerSpec": value.pointer("/spec/providerSpec") },
        });
        self.scene().delete(USER, MACHINES, (template::NAMESPACE, &seen.name), Value::Null);
        let begun = tokio::time::Instant::now();
        while self.stored_machine(&seen).is_some() {
            if begun.elapsed() > RECREATION_MAX {
                return Err(format!("machine {name} is not gone after {RECREATION_MAX:?}"));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let made = self.scene().create(USER, MACHINES.0, MACHINES.1, object);
        made.map(drop).ok_or_else(|| format!("machine {name} was refused"))
    }

    /// What keeps the Machines of a pool: a set of either API, or a deployment.
    fn pool_kind(&self, pool: &str) -> (&'static str, &'static str) {
        let is_there = |kind: &&(&'static str, &'static str)| {
            self.scene().objects(kind.0, kind.1).iter().any(|object| object.name() == pool)
        };
        POOLS.iter().find(is_there).copied().unwrap_or(SETS)
    }

    fn machine_kind(&self, seen: &MachineSeen) -> (&'static str, &'static str) {
        let known = self.scene().objects(CLUSTER_API.0, CLUSTER_API.1);
        match known.iter().any(|machine| machine.uid() == seen.uid) {
            true => CLUSTER_API,
            false => MACHINES,
        }
    }

    /// Makes an object of any kind, as it is written.
    fn create(&self, object: &Value) -> Result<(), String> {
        let (version, named) = (text(object, "/apiVersion"), text(object, "/kind"));
        let kind = KindRef::of_names(version, named);
        let kind = kind.ok_or_else(|| format!("kind {version} {named} is not known"))?.kind;
        let mut object = object.clone();
        if kind.scope == Scope::Namespaced && object.pointer("/metadata/namespace").is_none() {
            object["metadata"]["namespace"] = json!(template::NAMESPACE);
        }
        let made = self.scene().create(USER, kind.group, kind.plural, object);
        made.map(drop).ok_or_else(|| format!("{named} was refused"))
    }

    fn patch(&self, kind: (&str, &str), name: &str, body: Value) -> Result<(), String> {
        let at = (template::NAMESPACE, name);
        let done = self.scene().patch(USER, Subresource::None, kind, at, body);
        done.map(drop).ok_or_else(|| format!("{} {name} was not changed", kind.1))
    }

    fn patch_object(&self, patch: &PatchObject) -> Result<(), String> {
        let machine = patch.machine.as_ref();
        let found = self.object(&patch.kind, &patch.namespace, &patch.name, machine)?;
        let Some(found) = found else {
            return Err(format!("{} {} is not there", patch.kind, patch.name));
        };
        let subresource = if patch.status { Subresource::Status } else { Subresource::None };
        let kind = kind::group_and_plural(&patch.kind);
        let at = (found.namespace(), found.name());
        let done = self.scene().patch(USER, subresource, kind, at, patch.body.clone());
        done.map(drop).ok_or_else(|| format!("{} {} was not changed", patch.kind, found.name()))
    }

    /// An object by its name, or by the Machine that it belongs to.
    pub(super) fn object(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        machine: Option<&MachineName>,
    ) -> Result<Option<ObjectRef>, String> {
        let found = kind::known(kind)?;
        let (namespace, name) = match machine {
            None => (kind::namespace_of(kind, namespace), name.to_owned()),
            Some(machine) => {
                let seen = self.named(machine)?;
                if kind::is_machines(kind, Some(machine)) {
                    return Ok(self.stored_machine(&seen));
                }
                if kind == "machinemaintenances" {
                    let name = maintenance_of(&seen.name);
                    let found = found.and_then(|kind| {
                        self.scene().server.get_object(kind, template::NAMESPACE, &name)
                    });
                    return Ok(found);
                }
                if kind == REQUESTS.1 {
                    let name = format!("node-csr-{}", self.instance(machine)?.id);
                    let request =
                        found.and_then(|kind| self.scene().server.get_object(kind, "", &name));
                    return Ok(request);
                }
                let stored = self.stored_machine(&seen);
                let node = stored.map(|it| text(it.value(), "/status/nodeRef/name").to_owned());
                (String::new(), node.unwrap_or_default())
            }
        };
        let Some(found) = found else { return Ok(None) };
        let stored = self.scene().server.get_object(found, &namespace, &name);
        Ok(stored.or_else(|| self.set_of_deployment(found, &name)))
    }

    /// A set that a deployment of Cluster API made has the name that the template gives it; here it has the
    /// deployment's. Of several it is the first.
    fn set_of_deployment(&self, kind: KindRef, deployment: &str) -> Option<ObjectRef> {
        if (kind.kind.group, kind.kind.plural) != POOLS[1] {
            return None;
        }
        let sets = self.scene().server.objects(kind);
        sets.into_iter().find(|set| {
            let labels = set.value().pointer("/metadata/labels");
            labels.and_then(|all| all.get(label::DEPLOYMENT_NAME)) == Some(&Value::from(deployment))
        })
    }

    /// The instance of a Machine; one that lives before one that does not.
    fn instance(&self, name: &MachineName) -> Result<InstanceFacts, String> {
        let uid = self.named(name)?.uid;
        let facts = self.scene().cloud.model().snapshot();
        let of_it = facts.into_iter().filter(|one| one.tags.get(tag::MACHINE_UID) == Some(&uid));
        of_it
            .min_by_key(|one| one.state == InstanceState::Terminated)
            .ok_or_else(|| format!("machine {name} has no instance"))
    }

    fn announce(&self, event: &Announce) -> Result<(), String> {
        let name = self.named(&event.machine)?.name;
        let (_, chance) = &mut *self.strangers.borrow_mut();
        let movable = event.movable.map(|span| span.0);
        let (scene, code, after) = (self.scene(), event.code, event.after.0);
        let is_done = maintainer::announce(scene, chance, Some(&name), code, after, movable);
        if is_done { Ok(()) } else { Err(format!("machine {name} has no instance that runs")) }
    }

    fn change_events(&self, change: &ChangeEvents) -> Result<(), String> {
        let id = self.instance(&change.machine)?.id;
        let events = maintainer::active_events(self.scene());
        let events: Vec<_> = events.into_iter().filter(|one| one.instance_id == id).collect();
        if events.is_empty() {
            return Err(format!("machine {} has no event", change.machine));
        }
        for event in events {
            if change.forgotten {
                self.scene()
                    .cloud
                    .change(|model, now| model.delete_event(now, &event.event_id).err());
                continue;
            }
            let moved = |at| change.later_by.map(|by| later(at, by.0));
            let patch = EventPatch {
                state: change.state,
                not_before: moved(event.not_before),
                not_before_deadline: event.not_before_deadline.and_then(moved),
                ..EventPatch::default()
            };
            maintainer::patch_event(self.scene(), &event, patch);
        }
        Ok(())
    }

    fn at_console(&self, verb: ConsoleAct, machine: &MachineName) -> Result<(), String> {
        let id = self.instance(machine)?.id;
        let subject = self.named(machine)?.name;
        self.scene().hub.note(&subject, format!("console: {verb:?} {id}"));
        let done: Result<(), ConsoleError> = self.scene().cloud.change(|model, now| {
            let impair = |check, impaired| Impair { check, impaired };
            match verb {
                ConsoleAct::Stop => model.console_stop(now, &id, ChangedBy::User).map(drop),
                ConsoleAct::ProviderStops => {
                    model.console_stop(now, &id, ChangedBy::Provider).map(drop)
                }
                ConsoleAct::GuestStops => model.console_stop(now, &id, ChangedBy::Guest).map(drop),
                ConsoleAct::Start => model.console_start(now, &id).map(drop),
                ConsoleAct::Reboot => model.console_reboot(now, &id, ChangedBy::User).map(drop),
                ConsoleAct::Terminate => {
                    model.console_terminate(now, &id, ChangedBy::User).map(drop)
                }
                ConsoleAct::ProviderTerminates => {
                    model.console_terminate(now, &id, ChangedBy::Provider).map(drop)
                }
                ConsoleAct::Vanish => model.console_vanish(now, &id).map(drop),
                ConsoleAct::SpotNotice => {
                    model.console_spot_notice(now, &id, &SpotNoticeRequest::default()).map(drop)
                }
                ConsoleAct::Impair => {
                    let how = impair(ImpairedCheck::Instance, true);
                    model.console_impair(now, &id, &how).map(drop)
                }
                ConsoleAct::ImpairSystem => {
                    let how = impair(ImpairedCheck::System, true);
                    model.console_impair(now, &id, &how).map(drop)
                }
                ConsoleAct::Heal => {
                    let how = impair(ImpairedCheck::Instance, false);
                    model.console_impair(now, &id, &how).map(drop)
                }
            }
        });
        done.map_err(|error| error.to_string())
    }

    fn trouble_nodes(&self, fault: &NodeFault) -> Result<(), String> {
        let ids: Vec<String> = if fault.machines.is_empty() {
            let facts = self.scene().cloud.model().snapshot();
            let running = facts.into_iter().filter(|one| one.state == InstanceState::Running);
            running.map(|one| one.id).collect()
        } else {
            fault.machines.iter().map(|name| self.guest(name)).collect::<Result<_, _>>()?
        };
        let kind = match fault.are {
            NodeTrouble::NotReady => FaultKind::F71,
            NodeTrouble::Silent => FaultKind::F72,
        };
        for id in ids {
            self.scene().hub.weather().trouble_node(&id, kind, fault.lasting.0);
        }
        Ok(())
    }

    /// What the guest of a Machine is known by: its instance, or its providerID where that is Cluster API's.
    fn guest(&self, name: &MachineName) -> Result<String, String> {
        let seen = self.named(name)?;
        if self.machine_kind(&seen) != CLUSTER_API {
            return self.instance(name).map(|one| one.id);
        }
        let stored = self.stored_machine(&seen);
        let id = stored.map(|it| text(it.value(), "/spec/providerID").to_owned());
        id.filter(|id| !id.is_empty()).ok_or_else(|| format!("machine {name} is not provisioned"))
    }

    fn process(&self, name: &str) -> Result<std::sync::Arc<Incarnation>, String> {
        let living = self.scene().hub.with_processes(|all| all.living());
        let found = living.into_iter().find(|one| one.process == name);
        found.ok_or_else(|| format!("process {name} is not alive"))
    }
}
