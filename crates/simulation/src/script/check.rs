//! Is it as a script expects? The words say what is there instead.

use jiff::Timestamp;
use machinist_api::{cluster_api::names::label, names::tag};
use machinist_testbed::cloud::model::{InstanceState, LedgerQuery};
use serde_json::Value;

use super::{
    expectation::{
        Actor, ConditionIs, Expectation, HealthCheckIs, MachineIs, PoolIs, Presence, RequestState,
    },
    kind,
    stage::Stage,
    values::{Count, MachineName},
    witness::MachineSeen,
};
use crate::{
    actors::text,
    api_server::ObjectRef,
    invariants::{condition_of, is_operator},
    template::cluster_api,
    workload::is_workload,
};

/// Both APIs: whatever a script calls a Machine, a pool or a health check may be of either.
const GROUPS: [&str; 2] = ["machine.openshift.io", cluster_api::GROUP];

impl Stage<'_> {
    /// Whether it is so, or what is so instead.
    pub(super) fn check(&self, expected: &Expectation) -> Result<(), String> {
        match expected {
            Expectation::Machine(wanted) => self.check_machine(wanted),
            Expectation::Machines { count, pool, phase, is } => {
                let found = self.machines_of(pool.as_deref());
                let found = found.iter().filter(|machine| {
                    let is_phase = |phase: &String| text(machine.value(), "/status/phase") == phase;
                    phase.as_ref().is_none_or(is_phase)
                        && is.is_none_or(|wanted| presence(Some(machine), wanted))
                });
                let what = format!("machines{}", described(&[pool.as_deref(), phase.as_deref()]));
                counted(&what, found.count(), *count)
            }
            Expectation::Pool(wanted) => self.check_pool(wanted),
            Expectation::HealthCheck(wanted) => self.check_health_check(wanted),
            Expectation::Requests { count, is, of_strangers } => {
                self.check_requests(*count, *is, *of_strangers)
            }
            Expectation::Instances { count, machine, state } => {
                self.check_instances(*count, machine.as_ref(), state.as_deref())
            }
            Expectation::Nodes { count, ready, cordoned } => {
                let nodes = self.scene().objects("", "nodes");
                let found = nodes.iter().filter(|node| {
                    let is_ready = condition_of(node.value(), "Ready")
                        .is_some_and(|ready| text(ready, "/status") == "True");
                    let flag = node.value().pointer("/spec/unschedulable").and_then(Value::as_bool);
                    ready.is_none_or(|wanted| wanted == is_ready)
                        && cordoned.is_none_or(|wanted| wanted == (flag == Some(true)))
                });
                counted("nodes", found.count(), *count)
            }
            Expectation::Pods { app, count } => {
                let pods = self.scene().objects("", "pods");
                let found = pods.iter().filter(|pod| {
                    text(pod.value(), "/metadata/labels/app") == app
                        && text(pod.value(), "/status/phase") == "Running"
                        && !pod.is_being_deleted()
                });
                counted(&format!("running pods of {app}"), found.count(), *count)
            }
            Expectation::Launches { count, machine } => {
                self.check_launches(*count, machine.as_ref())
            }
            Expectation::Terminations { count, machine } => {
                self.check_terminations(*count, machine.as_ref())
            }
            Expectation::Calls { action, result, count } => {
                let calls = self.calls(action);
                let found = calls
                    .iter()
                    .filter(|(_, how)| result.as_ref().is_none_or(|wanted| wanted == how));
                counted(&format!("calls of {action}"), found.count(), *count)
            }
            Expectation::Effects { what, machine, count } => {
                let target = machine.as_ref().map(|name| self.named(name)).transpose()?;
                let found = self.aims().log(|log| {
                    let is_meant = |about: &String| {
                        target.as_ref().is_none_or(|machine| machine.name == *about)
                    };
                    log.iter()
                        .filter(|one| self.is_counted(one.at) && one.what == *what)
                        .filter(|one| is_meant(&one.target))
                        .count()
                });
                counted(&format!("effects {what}"), found, *count)
            }
            Expectation::Deletions { count, by, pool } => {
                let found = self.witness().look(|seen| {
                    let machines = seen.machines.iter();
                    machines
                        .filter(|one| pool.is_none() || one.pool == *pool)
                        .filter(|one| {
                            let deleted = one.deleted.as_ref();
                            deleted.is_some_and(|(at, who)| {
                                self.is_counted(*at) && by.is_none_or(|by| is_by(Some(who), by))
                            })
                        })
                        .count()
                });
                counted("deleted machines", found, *count)
            }
            Expectation::Creations { count, pool } => {
                let found = self.witness().look(|seen| {
                    let machines = seen.machines.iter();
                    machines
                        .filter(|one| pool.is_none() || one.pool == *pool)
                        .filter(|one| self.is_counted(one.made_at))
                        .count()
                });
                counted("made machines", found, *count)
            }
            Expectation::Evictions { count } => {
                let found = self.witness().look(|seen| self.count_times(&seen.evictions));
                counted("evictions", found, *count)
            }
            Expectation::Cordons { count } => {
                let found = self.witness().look(|seen| self.count_times(&seen.cordons));
                counted("cordons", found, *count)
            }
            Expectation::CordonedAtOnce { count } => {
                let most = self.witness().look(|seen| {
                    let counted =
                        seen.cordoned_at_once.iter().filter(|(at, _)| self.is_counted(*at));
                    counted.map(|(_, number)| *number).max()
                });
                counted("nodes cordoned at once", most.unwrap_or_default(), *count)
            }
            Expectation::Event { reason, machine, says, count } => {
                let about = machine.as_ref().map(|name| self.named(name)).transpose()?;
                let found = self.witness().look(|seen| {
                    let events = seen.events.iter().filter(|one| self.is_counted(one.at));
                    events
                        .filter(|one| one.reason == *reason)
                        .filter(|one| {
                            about.as_ref().is_none_or(|machine| machine.uid == one.uid)
                                && says.as_ref().is_none_or(|says| one.words.contains(says))
                        })
                        .count()
                });
                counted(&format!("events {reason}"), found, *count)
            }
            Expectation::Writes { count, kind } => {
                let found = self.witness().look(|seen| {
                    let writes = seen.writes.iter().filter(|(at, _)| self.is_counted(*at));
                    writes.filter(|(_, plural)| kind.as_ref().is_none_or(|it| it == plural)).count()
                });
                counted(&format!("writes{}", described(&[kind.as_deref()])), found, *count)
            }
            Expectation::WorkloadWatches { count } => {
                let watches = self.scene().server.watches();
                let open = watches.iter().filter(|watch| is_workload(&watch.client));
                counted("watches of workload clusters", open.count(), *count)
            }
            Expectation::Starts { count } => {
                let starts = self.scene().hub.with_processes(|all| all.starts());
                counted("starts", usize::try_from(starts).unwrap_or(usize::MAX), *count)
            }
            Expectation::Objects { kind, count, is } => {
                let (group, plural) = kind::group_and_plural(kind);
                kind::known(kind)?;
                let found = self.scene().objects(group, plural);
                let found = found
                    .iter()
                    .filter(|object| is.is_none_or(|wanted| presence(Some(object), wanted)));
                counted(kind, found.count(), *count)
            }
            Expectation::Object { kind, namespace, name, machine, at, is, contains } => {
                let object = self.object(kind, namespace, name, machine.as_ref())?;
                let found = object.as_ref().and_then(|object| object.value().pointer(at));
                let found = found.cloned().unwrap_or(Value::Null);
                let holds = match (is, contains) {
                    (_, Some(words)) => found.to_string().contains(words.as_str()),
                    (Some(wanted), None) => found == *wanted,
                    (None, None) => found.is_null(),
                };
                if holds { Ok(()) } else { Err(format!("{kind} {name}{at} is {found}")) }
            }
        }
    }

    fn check_machine(&self, wanted: &MachineIs) -> Result<(), String> {
        let seen = self.named(&wanted.name)?;
        let name = format!("machine {} ({})", wanted.name, seen.name);
        let stored = self.stored_machine(&seen);
        if let Some(is) = wanted.is
            && !presence(stored.as_ref(), is)
        {
            let instead = match &stored {
                None => "gone",
                Some(machine) if machine.is_being_deleted() => "being deleted",
                Some(_) => "there and not being deleted",
            };
            return Err(format!("{name} is {instead}, expected {is:?}"));
        }
        if let Some(actor) = wanted.deleted_by {
            let by = seen.deleted.as_ref().map(|(_, who)| who.as_str());
            if !is_by(by, actor) {
                return Err(format!("{name} was deleted by {by:?}, expected {actor:?}"));
            }
        }
        if let Some(condition) = &wanted.condition {
            self.check_condition(&name, &seen.uid, stored.as_ref(), condition)?;
        }
        let value = stored.as_ref().map(|machine| machine.value());
        let at = |pointer: &str| value.map(|value| text(value, pointer)).unwrap_or_default();
        if let Some(phase) = &wanted.phase
            && at("/status/phase") != phase
        {
            return Err(format!("{name} is in phase {:?}, not {phase}", at("/status/phase")));
        }
        if let Some(linked) = wanted.linked {
            let node = at("/status/nodeRef/name");
            if linked == node.is_empty() {
                return Err(format!("{name} is linked to node {node:?}"));
            }
        }
        match &wanted.error_says {
            Some(words) if !at("/status/errorMessage").contains(words.as_str()) => {
                Err(format!("{name} has the error {:?}", at("/status/errorMessage")))
            }
            _ => Ok(()),
        }
    }

    fn check_pool(&self, wanted: &PoolIs) -> Result<(), String> {
        let name = format!("pool {}", wanted.name);
        let mut pools = self.of_both("machinesets");
        pools.extend(self.scene().objects(cluster_api::GROUP, "machinedeployments"));
        let Some(pool) = pools.iter().find(|pool| pool.name() == wanted.name) else {
            return Err(format!("{name} is not there"));
        };
        let number = |pointer: &str| {
            let found = pool.value().pointer(pointer).and_then(Value::as_u64);
            usize::try_from(found.unwrap_or_default()).unwrap_or_default()
        };
        if let Some(count) = wanted.ready {
            counted(&format!("ready machines of {name}"), number("/status/readyReplicas"), count)?;
        }
        if let Some(count) = wanted.replicas {
            counted(&format!("replicas of {name}"), number("/spec/replicas"), count)?;
        }
        if let Some(condition) = &wanted.condition {
            self.check_condition(&name, pool.uid(), Some(pool), condition)?;
        }
        let error = text(pool.value(), "/status/errorMessage");
        match &wanted.error_says {
            Some(words) if !error.contains(words.as_str()) => {
                Err(format!("{name} has the error {error:?}"))
            }
            _ => Ok(()),
        }
    }

    fn check_health_check(&self, wanted: &HealthCheckIs) -> Result<(), String> {
        let name = format!("health check {}", wanted.name);
        let checks = self.of_both("machinehealthchecks");
        let Some(check) = checks.iter().find(|check| check.name() == wanted.name) else {
            return Err(format!("{name} is not there"));
        };
        let figures = [
            ("currentHealthy", wanted.healthy),
            ("expectedMachines", wanted.expected),
            ("remediationsAllowed", wanted.allowed),
        ];
        for (field, count) in figures {
            let Some(count) = count else { continue };
            let found = check.value().pointer(&format!("/status/{field}")).and_then(Value::as_u64);
            let found = usize::try_from(found.unwrap_or_default()).unwrap_or_default();
            counted(&format!("{field} of {name}"), found, count)?;
        }
        match &wanted.condition {
            Some(condition) => self.check_condition(&name, check.uid(), Some(check), condition),
            None => Ok(()),
        }
    }

    fn check_requests(
        &self,
        count: Count,
        is: Option<RequestState>,
        of_strangers: Option<bool>,
    ) -> Result<(), String> {
        let all = self.scene().objects("certificates.k8s.io", "certificatesigningrequests");
        let found = all.iter().filter(|request| {
            let is_approved = condition_of(request.value(), "Approved").is_some();
            let is_strange = request.name().starts_with("stranger");
            is.is_none_or(|is| (is == RequestState::Approved) == is_approved)
                && of_strangers.is_none_or(|of| of == is_strange)
        });
        counted("certificate requests", found.count(), count)
    }

    fn check_condition(
        &self,
        name: &str,
        uid: &str,
        stored: Option<&ObjectRef>,
        wanted: &ConditionIs,
    ) -> Result<(), String> {
        let is_so = |condition: &Value| {
            let same = |field: &str, wanted: &Option<String>| {
                wanted.as_ref().is_none_or(|wanted| text(condition, field) == wanted)
            };
            text(condition, "/type") == wanted.type_
                && same("/status", &wanted.status)
                && same("/reason", &wanted.reason)
                && wanted
                    .says
                    .as_ref()
                    .is_none_or(|words| text(condition, "/message").contains(words.as_str()))
        };
        let current = stored.and_then(|object| condition_of(object.value(), &wanted.type_));
        let was_so = || {
            self.witness().look(|seen| {
                let of_it = seen.conditions.iter().filter(|one| one.uid == uid);
                of_it.into_iter().any(|one| self.is_counted(one.at) && is_so(&one.condition))
            })
        };
        let holds = current.is_some_and(is_so) || wanted.ever && was_so();
        if holds != wanted.not {
            return Ok(());
        }
        let says = current.map_or_else(|| "absent".to_owned(), Value::to_string);
        let not = if wanted.not { " that it must not be" } else { "" };
        Err(format!("{name}: condition {} is {says}{not}", wanted.type_))
    }

    fn check_instances(
        &self,
        count: Count,
        machine: Option<&MachineName>,
        state: Option<&str>,
    ) -> Result<(), String> {
        let uid = machine.map(|name| self.named(name)).transpose()?.map(|seen| seen.uid);
        let facts = self.scene().cloud.model().snapshot();
        let found = facts.iter().filter(|one| {
            let is_state = match state {
                Some(state) => one.state.name() == state,
                None => one.state != InstanceState::Terminated,
            };
            let owner = one.tags.get(tag::MACHINE_UID);
            is_state && uid.as_ref().is_none_or(|uid| owner == Some(uid))
        });
        let whose = machine.map(ToString::to_string);
        let what = format!("instances{}", described(&[whose.as_deref(), state]));
        counted(&what, found.count(), count)
    }

    fn check_launches(&self, count: Count, machine: Option<&MachineName>) -> Result<(), String> {
        let uid = machine.map(|name| self.named(name)).transpose()?.map(|seen| seen.uid);
        let query = LedgerQuery { action: Some("RunInstances".to_owned()), after: None };
        let instances = self.scene().cloud.model().ledger(&query).instances;
        let found = instances.iter().filter(|one| {
            let owner = one.tags.get(tag::MACHINE_UID);
            self.is_counted(one.launch_time) && uid.as_ref().is_none_or(|uid| owner == Some(uid))
        });
        counted("launched instances", found.count(), count)
    }

    fn check_terminations(
        &self,
        count: Count,
        machine: Option<&MachineName>,
    ) -> Result<(), String> {
        let uid = machine.map(|name| self.named(name)).transpose()?.map(|seen| seen.uid);
        let query = LedgerQuery { action: Some("TerminateInstances".to_owned()), after: None };
        let ledger = self.scene().cloud.model().ledger(&query);
        let mut ids: Vec<&String> = ledger
            .calls
            .iter()
            .filter(|call| call.result == "ok" && self.is_counted(call.time))
            .flat_map(|call| &call.instance_ids)
            .filter(|id| {
                let one = ledger.instances.iter().find(|one| one.id == **id);
                let owner = one.and_then(|one| one.tags.get(tag::MACHINE_UID));
                uid.as_ref().is_none_or(|uid| owner == Some(uid))
            })
            .collect();
        ids.sort();
        ids.dedup();
        counted("terminated instances", ids.len(), count)
    }

    fn calls(&self, action: &str) -> Vec<(Timestamp, String)> {
        let query = LedgerQuery { action: Some(action.to_owned()), after: None };
        let calls = self.scene().cloud.model().ledger(&query).calls;
        let counted = calls.into_iter().filter(|call| self.is_counted(call.time));
        counted.map(|call| (call.time, call.result)).collect()
    }

    fn machines_of(&self, pool: Option<&str>) -> Vec<ObjectRef> {
        let is_of = |machine: &ObjectRef| {
            let owner = text(machine.value(), "/metadata/ownerReferences/0/name");
            let labels = machine.value().pointer("/metadata/labels");
            let deployment = labels.and_then(|all| all.get(label::DEPLOYMENT_NAME));
            pool.is_none_or(|pool| pool == owner || deployment == Some(&Value::from(pool)))
        };
        self.of_both("machines").into_iter().filter(is_of).collect()
    }

    fn of_both(&self, plural: &str) -> Vec<ObjectRef> {
        GROUPS.into_iter().flat_map(|group| self.scene().objects(group, plural)).collect()
    }

    fn count_times(&self, times: &[Timestamp]) -> usize {
        times.iter().filter(|at| self.is_counted(**at)).count()
    }

    /// The Machine as it is stored now, if it is still the same one.
    pub(super) fn stored_machine(&self, seen: &MachineSeen) -> Option<ObjectRef> {
        self.of_both("machines").into_iter().find(|machine| machine.uid() == seen.uid)
    }
}

fn counted(what: &str, found: usize, wanted: Count) -> Result<(), String> {
    let found = u64::try_from(found).unwrap_or(u64::MAX);
    if wanted.holds(found) { Ok(()) } else { Err(format!("{what}: {found}, expected {wanted}")) }
}

fn described(parts: &[Option<&str>]) -> String {
    parts.iter().flatten().map(|part| format!(" {part}")).collect()
}

fn presence(stored: Option<&ObjectRef>, wanted: Presence) -> bool {
    let is_deleting = stored.is_some_and(|object| object.is_being_deleted());
    match wanted {
        Presence::There => stored.is_some(),
        Presence::Kept => stored.is_some() && !is_deleting,
        Presence::Deleting => is_deleting,
        Presence::Gone => stored.is_none(),
    }
}

fn is_by(who: Option<&str>, actor: Actor) -> bool {
    match actor {
        Actor::Operator => who.is_some_and(is_operator),
        Actor::Others => who.is_some_and(|who| !is_operator(who)),
        Actor::Nobody => who.is_none(),
    }
}
