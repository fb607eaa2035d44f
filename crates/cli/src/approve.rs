//! How does a person approve what waits for them?
//!
//! A maintenance is approved on its MachineMaintenance, what the disruption gate holds on the Machine or
//! its pool. Where nothing waits for a person, nothing is written, and that is said.

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use kube::Api;
use machinist_api::{
    Condition, Machine, MachineMaintenance, MachineSet,
    names::{annotation, maintenance_reason, reason},
};
use machinist_core::maintenance::{plan::Standing, records};

use crate::{
    annotate::{self, Effect},
    args::{ApproveArgs, FleetArgs},
    failure::Hinted,
    fleet::{Picture, name_of, with_plan},
    kubeconfig::{Access, connect},
    plan,
    snapshot::{self, Extent, Snapshot},
    target::{Kind, Target},
    zone::Zone,
};

pub async fn run(args: ApproveArgs) -> anyhow::Result<()> {
    let target = Target::read(&args.what)?;
    let zone = Zone::choose(args.zone.zone.as_deref())?;
    let now = plan::now(&zone, None)?;
    let how = How { any_reason: args.any_reason, until: until(&args.r#for, now)? };
    let fleet = FleetArgs {
        cluster: args.cluster.clone(),
        namespace: args.namespace.clone(),
        filename: Vec::new(),
    };
    let snapshot = snapshot::read(&fleet, Extent::Whole).await?;
    snapshot.require_machines()?;
    let approval =
        with_plan(&snapshot, &[], now, |picture| decide(&target, &how, &snapshot, picture))?;
    let effect = Effect::of(args.dry_run);
    if let Some(write) = &approval.write {
        send(write, &args, effect).await?;
    }
    println!("{}{}", zone.localize(&approval.sentence, now), effect.suffix());
    Ok(())
}

/// How a person approves.
struct How {
    any_reason: bool,
    /// Up to when the disruption gate is told to let it be.
    until: Timestamp,
}

/// What is written, and what is said.
#[derive(Debug, PartialEq, Eq)]
struct Approval {
    /// None where it is approved already.
    write: Option<Write>,
    sentence: String,
}

/// An annotation on an object.
#[derive(Debug, PartialEq, Eq)]
struct Write {
    on: Object,
    namespace: String,
    name: String,
    uid: Option<String>,
    key: &'static str,
    value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Object {
    Maintenance,
    Machine,
    Pool,
}

fn until(text: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
    let duration = text.parse::<SignedDuration>().ok().filter(SignedDuration::is_positive);
    duration.and_then(|duration| now.checked_add(duration).ok()).ok_or_else(|| {
        let what = format!("--for: Invalid value: {text:?}: not a duration");
        Hinted::new(what, "durations look like 30m, 2h or 1h30m").into()
    })
}

fn decide(
    target: &Target,
    how: &How,
    snapshot: &Snapshot,
    picture: &Picture<'_>,
) -> anyhow::Result<Approval> {
    match target.kind {
        Kind::Machine => of_machine(&target.name, how, snapshot, picture),
        Kind::Pool => of_pool(&target.name, how, snapshot),
        Kind::Node => {
            let found = picture.sights.values().find(|sight| {
                sight.node.is_some_and(|node| machinist_core::node::name(node) == target.name)
            });
            match found {
                Some(sight) => of_machine(name_of(sight.machine), how, snapshot, picture),
                None => Err(Hinted::new(
                    format!("no machine has the node {}", target.name),
                    "`machinist status` lists machines and their nodes",
                )
                .into()),
            }
        }
    }
}

fn of_machine(
    name: &str,
    how: &How,
    snapshot: &Snapshot,
    picture: &Picture<'_>,
) -> anyhow::Result<Approval> {
    let Some(sight) = picture.sights.get(name) else {
        return Err(not_found("machine", name, snapshot));
    };
    let is_held = is_held(sight.machine, snapshot);
    let entry = picture.plan.entry(name);
    let waits_for_a_person = entry.is_some_and(|entry| {
        entry.waits_on.iter().any(|wait| wait.reason == maintenance_reason::APPROVAL_MISSING)
    });
    if waits_for_a_person {
        return of_maintenance(name, how, snapshot, picture);
    }
    if is_held {
        let write = gate(Object::Machine, &sight.machine.metadata, how);
        let sentence = format!(
            "machine/{name}: the disruption gate lets it be taken out of work until {}",
            how.until
        );
        return Ok(Approval { write: Some(write), sentence });
    }
    let Some(entry) = entry else {
        return Err(Hinted::new(
            format!("machine {name} needs no maintenance, so there is nothing to approve"),
            "`machinist plan` shows what is planned; a person asks for maintenance with the \
             annotation machinist.dev/maintenance-requested on the Machine",
        )
        .into());
    };
    if let Standing::UnderWay { phase, .. } = &entry.standing {
        let phase = phase.as_str();
        return Ok(Approval {
            write: None,
            sentence: format!("machine/{name}: its maintenance is under way already ({phase})"),
        });
    }
    let was_approved = records::counting(&snapshot.maintenances).get(name).is_some_and(|record| {
        let annotations = record.metadata.annotations.as_ref();
        annotations.is_some_and(|all| all.contains_key(annotation::MAINTENANCE_APPROVED))
    });
    if was_approved {
        let sentence = format!("machine/{name}: approved already; {}", entry.sentence());
        return Ok(Approval { write: None, sentence });
    }
    Err(Hinted::new(
        format!("machine {name} does not wait for an approval: {}", entry.sentence()),
        format!("`machinist explain machine/{name}` says what would help"),
    )
    .into())
}

fn of_maintenance(
    name: &str,
    how: &How,
    snapshot: &Snapshot,
    picture: &Picture<'_>,
) -> anyhow::Result<Approval> {
    let Some(record) = records::counting(&snapshot.maintenances).get(name).copied() else {
        return Err(Hinted::new(
            format!("machine {name} has no MachineMaintenance yet, on which it could be approved"),
            "the operator makes one within a minute; is it running?",
        )
        .into());
    };
    let need = picture.gathered.fleet.machines.iter().find(|one| one.name == name);
    let first = need.and_then(|one| one.need.as_ref()).and_then(|need| need.reasons.first());
    let value = match first {
        Some(reason) if !how.any_reason => reason.id.clone(),
        Some(_) | None => "true".to_owned(),
    };
    let because = picture.plan.entry(name).map_or("", |entry| entry.because.as_str());
    let kept = if value == "true" { "whatever its reasons become" } else { because };
    Ok(Approval {
        sentence: format!("machine/{name}: its maintenance is approved for {kept}"),
        write: Some(Write {
            on: Object::Maintenance,
            namespace: record.metadata.namespace.clone().unwrap_or_default(),
            name: record.metadata.name.clone().unwrap_or_default(),
            uid: record.metadata.uid.clone(),
            key: annotation::MAINTENANCE_APPROVED,
            value,
        }),
    })
}

fn of_pool(name: &str, how: &How, snapshot: &Snapshot) -> anyhow::Result<Approval> {
    let found = snapshot.sets.iter().find(|set| set.metadata.name.as_deref() == Some(name));
    let Some(set) = found else { return Err(not_found("machineset", name, snapshot)) };
    let is_of_pool = |machine: &&Machine| {
        let owners = machine.metadata.owner_references.iter().flatten();
        let mut controllers = owners.filter(|owner| owner.controller == Some(true));
        controllers.next().is_some_and(|owner| Some(&owner.uid) == set.metadata.uid.as_ref())
    };
    let machines = snapshot.machines.iter().filter(is_of_pool);
    let held: Vec<&str> =
        machines.filter(|machine| is_held(machine, snapshot)).map(name_of).collect();
    if held.is_empty() {
        return Err(Hinted::new(
            format!("nothing of machineset {name} is held by the disruption gate"),
            "a maintenance is approved for its machine: machinist approve machine/NAME",
        )
        .into());
    }
    Ok(Approval {
        write: Some(gate(Object::Pool, &set.metadata, how)),
        sentence: format!(
            "machineset/{name}: the disruption gate lets its machines be taken out of work until \
             {}; {} waited for it",
            how.until,
            held.join(", ")
        ),
    })
}

fn gate(
    on: Object,
    metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    how: &How,
) -> Write {
    Write {
        on,
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone(),
        key: annotation::APPROVED_UNTIL,
        value: how.until.to_string(),
    }
}

/// Whether the disruption gate holds something for a machine: its repair, or its maintenance.
fn is_held(machine: &Machine, snapshot: &Snapshot) -> bool {
    let name = name_of(machine);
    let says_so =
        |condition: &Condition| condition.reason.as_deref() == Some(reason::DISRUPTION_HELD);
    let by_machine =
        machine.status.as_ref().is_some_and(|status| status.conditions.iter().any(says_so));
    let by_check = snapshot.health_checks.iter().any(|check| {
        let conditions = check.status.as_ref().map(|status| status.conditions.as_slice());
        conditions.unwrap_or_default().iter().any(|condition| {
            let words = condition.message.as_deref().unwrap_or_default();
            says_so(condition) && words.contains(&format!("machine {name}:"))
        })
    });
    let by_maintenance =
        records::counting(&snapshot.maintenances).get(name).is_some_and(|record| {
            let plan = record.status.as_ref().and_then(|status| status.plan.as_ref());
            plan.is_some_and(|plan| {
                plan.waits_on.iter().any(|wait| wait.reason == maintenance_reason::GATE_HOLDS)
            })
        });
    by_machine || by_check || by_maintenance
}

fn not_found(kind: &str, name: &str, snapshot: &Snapshot) -> anyhow::Error {
    let what = format!("there is no {kind} {name} in namespace {}", snapshot.namespace);
    Hinted::new(what, "`machinist status` lists them; choose a namespace with -n").into()
}

async fn send(write: &Write, args: &ApproveArgs, effect: Effect) -> anyhow::Result<()> {
    let connection = connect(&args.cluster, Access::Write).await?;
    let patch = annotate::annotation(write.uid.as_deref(), write.key, Some(&write.value));
    let client = connection.client.clone();
    let (namespace, name) = (&write.namespace, &write.name);
    let sent = match write.on {
        Object::Maintenance => {
            let api = Api::<MachineMaintenance>::namespaced(client, namespace);
            annotate::patch(&api, name, &patch, effect).await
        }
        Object::Machine => {
            let api = Api::<Machine>::namespaced(client, namespace);
            annotate::patch(&api, name, &patch, effect).await
        }
        Object::Pool => {
            let api = Api::<MachineSet>::namespaced(client, namespace);
            annotate::patch(&api, name, &patch, effect).await
        }
    };
    sent.map_err(|error| connection.explain(&format!("cannot approve {name}"), error))
}
