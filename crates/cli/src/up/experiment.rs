//! What can be tried on the cluster of `machinist up`? Each experiment is one command: it finds whom to do it to,
//! does it in the simulated cloud, and says what will happen and where to watch.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use machinist_api::names::phase;
use machinist_testbed::singletons::MACHINE_NAMESPACE;

use super::console::Console;
use super::welcome;
use crate::args::Experiment;
use crate::failure::Hinted;
use crate::home::Home;
use crate::screen::{self, counted, wrapped};
use crate::state_file::UpState;
use crate::status::{self, MachineView, Report, Scope};
use crate::zone;

/// A worker, and what of it is outside the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Victim {
    machine: String,
    instance: String,
    zone: Option<String>,
    node: Option<String>,
}

pub async fn run(experiment: &Experiment) -> anyhow::Result<()> {
    let state = running()?;
    let console = Console::at(&state.cloud_admin)?;
    let text = match experiment {
        Experiment::StopInstance(args) => {
            let victim = find(&state, &console, args.machine.as_deref()).await?;
            console.stop(&victim.instance).await?;
            stopped(&victim)
        }
        Experiment::RetireInstance(args) => {
            let victim = find(&state, &console, args.victim.machine.as_deref()).await?;
            let at = Timestamp::now().checked_add(args.in_).unwrap_or(Timestamp::MAX);
            let at = Timestamp::from_second(at.as_second()).unwrap_or(at);
            console.retire(&victim.instance, at).await?;
            retired(&victim, at, args.in_)
        }
        Experiment::BreakZone => {
            let victim = find(&state, &console, None).await?;
            break_zone(&console, &victim).await?
        }
        Experiment::MendZone => mend_zone(&console).await?,
    };
    let width = screen::width().unwrap_or(screen::USUAL_WIDTH);
    let lines = with_watch(&text, &state, &welcome::own_name(), width);
    println!("{}", lines.join("\n"));
    Ok(())
}

/// The cluster of this folder, if it runs and its machines do.
fn running() -> anyhow::Result<UpState> {
    let home = Home::here()?;
    let state = UpState::read(home.folder())?;
    let (Some(state), Some(_)) = (state, home.holder()?) else {
        return Err(Hinted::new(
            "no cluster of `machinist up` runs in this folder",
            "start one with `machinist up`, and try this in another terminal in the same folder",
        )
        .into());
    };
    if !state.ready {
        return Err(Hinted::new(
            "the cluster is still starting",
            "wait until `machinist up` says that it is up; `machinist status` shows how far it is",
        )
        .into());
    }
    Ok(state)
}

async fn find(state: &UpState, console: &Console, wanted: Option<&str>) -> anyhow::Result<Victim> {
    let kubeconfig = Kubeconfig::read_from(&state.kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let scope = Scope::Namespace(MACHINE_NAMESPACE.to_owned());
    let report = status::report(&status::fetch(&client, &scope).await?);
    let instances = console.instances().await?;
    let running = instances.iter().filter(|one| one.is_running() && one.impairment.is_none());
    let running: BTreeSet<&str> = running.map(|one| one.id.as_str()).collect();
    Ok(choose(&report, &running, wanted)?)
}

/// The machine that is asked for, else the first worker to which nothing happens yet. The cloud knows what the
/// cluster has not seen yet, so that two experiments in a row have two victims.
fn choose(
    report: &Report,
    running: &BTreeSet<&str>,
    wanted: Option<&str>,
) -> Result<Victim, Hinted> {
    let workers = || report.pools.iter().flat_map(|pool| &pool.machines);
    let is_well = |machine: &&MachineView| {
        machine.phase == phase::RUNNING
            && machine.waiting.is_none()
            && machine.instance.as_ref().is_some_and(|one| running.contains(one.id.as_str()))
    };
    let found = match wanted {
        Some(name) => report.machines().find(|machine| machine.name == name),
        None => workers().find(is_well),
    };
    let Some(machine) = found else {
        return Err(match wanted {
            Some(name) => Hinted::new(
                format!("there is no machine {name}"),
                "`machinist status` lists them; without a name a worker is chosen",
            ),
            None => Hinted::new(
                "no worker is well just now, so that there is nobody to try it on",
                "see `machinist status`; wait until the last experiment is over, or name one with --machine",
            ),
        });
    };
    let Some(instance) = &machine.instance else {
        return Err(Hinted::new(
            format!("machine {} has no instance yet", machine.name),
            "wait until it runs; see `machinist status`",
        ));
    };
    Ok(Victim {
        machine: machine.name.clone(),
        instance: instance.id.clone(),
        zone: instance.zone.clone(),
        node: machine.node.as_ref().map(|node| node.name.clone()),
    })
}

/// What an experiment says.
#[derive(Clone, Debug)]
struct Told {
    done: String,
    /// What happens next, in order.
    next: Vec<String>,
    /// Whom to look at.
    machine: Option<String>,
    /// What undoes it, or goes on.
    then: Option<&'static str>,
}

fn stopped(victim: &Victim) -> Told {
    let Victim { machine, instance, node, .. } = victim;
    let node = node.as_deref().unwrap_or("its node");
    Told {
        done: format!(
            "Stopped instance {instance} of machine {machine}, as somebody at the cloud's console would."
        ),
        next: vec![
            "Within half a minute Machinist sees it and says so: the machine's State is stopped, its pool \
             has one less that is ready."
                .to_owned(),
            format!("Half a minute later it starts the instance again, and {node} comes back."),
        ],
        machine: Some(machine.clone()),
        then: None,
    }
}

fn retired(victim: &Victim, at: Timestamp, ahead: SignedDuration) -> Told {
    let Victim { machine, instance, node, .. } = victim;
    let node = node.as_deref().unwrap_or("its node");
    Told {
        done: format!(
            "The provider announced that it retires the host of instance {instance} (machine {machine}) at \
             {at}, in {}.",
            zone::in_words(ahead)
        ),
        next: vec![
            "Within a minute Machinist reads the announcement and makes a MachineMaintenance for it, with a \
             plan."
                .to_owned(),
            "Unless a policy wants a window or an approval, it begins at once: a machine more for the pool, \
             first."
                .to_owned(),
            format!(
                "When that is Ready, {node} is drained within its disruption budgets, and {machine} goes, \
                 before the provider would have stopped it."
            ),
        ],
        machine: Some(machine.clone()),
        then: None,
    }
}

async fn break_zone(console: &Console, victim: &Victim) -> anyhow::Result<Told> {
    let instances = console.instances().await?;
    let of_victim =
        instances.iter().find(|one| one.id == victim.instance).map(|one| one.zone.clone());
    let Some(zone) = of_victim.or_else(|| victim.zone.clone()) else {
        anyhow::bail!("the cloud does not say in which zone instance {} is", victim.instance);
    };
    console.exhaust(&zone).await?;
    let hit: Vec<&str> = instances
        .iter()
        .filter(|one| one.zone == zone && one.is_running())
        .map(|one| one.id.as_str())
        .collect();
    for instance in &hit {
        console.impair(instance, true).await?;
    }
    Ok(broken(&zone, hit.len(), &victim.machine))
}

fn broken(zone: &str, hit: usize, machine: &str) -> Told {
    Told {
        done: format!(
            "Broke zone {zone}: {} in it no longer answer, and no new ones can be had there.",
            counted(hit, "instance")
        ),
        next: vec![
            "Within a minute the provider's checks fail and the nodes fall silent; Machinist says of each \
             machine why."
                .to_owned(),
            "It deletes nothing: so many at once are a failure of the place, not of the machines, and the \
             disruption gate holds every repair of its own choice."
                .to_owned(),
        ],
        machine: Some(machine.to_owned()),
        then: Some("up mend-zone"),
    }
}

async fn mend_zone(console: &Console) -> anyhow::Result<Told> {
    let instances = console.instances().await?;
    let hurt: Vec<&str> = instances
        .iter()
        .filter(|one| one.impairment.is_some() && one.is_running())
        .map(|one| one.id.as_str())
        .collect();
    if hurt.is_empty() && !console.is_exhausted().await? {
        let hint = "break one with `machinist up break-zone`";
        return Err(Hinted::new("no zone is broken, and nothing was done", hint).into());
    }
    console.make_room().await?;
    for instance in &hurt {
        console.impair(instance, false).await?;
    }
    Ok(mended(hurt.len()))
}

fn mended(count: usize) -> Told {
    Told {
        done: format!(
            "Mended the zone: {} answer again, and new ones can be had.",
            counted(count, "instance")
        ),
        next: vec!["Within a minute the nodes are Ready, and nothing waits any more.".to_owned()],
        machine: None,
        then: None,
    }
}

/// Sentences fit the width; commands and addresses stay whole, so that they can be copied.
fn with_watch(told: &Told, state: &UpState, machinist: &str, width: usize) -> Vec<String> {
    let mut lines = wrapped("", &told.done, width);
    lines.extend([String::new(), "What will happen:".to_owned()]);
    lines.extend(told.next.iter().flat_map(|step| wrapped("  - ", step, width)));
    lines.push(String::new());
    lines.push("Watch it:".to_owned());
    lines.push(format!("  {machinist} status --watch"));
    if let Some(machine) = &told.machine {
        lines.push(format!("  {machinist} explain {machine}"));
    }
    if let Some(page) = &state.page {
        let path =
            told.machine.as_ref().map_or_else(String::new, |name| format!("machines/{name}"));
        lines.push(format!("  {page}{path}"));
    }
    if let Some(then) = told.then {
        lines.push(String::new());
        lines.push(format!("When you have seen enough: {machinist} {then}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::status::Observed;
    use crate::testing::golden;

    fn machine(name: &str, pool: Option<&str>, state: &str) -> serde_json::Value {
        let owners: Vec<_> = pool
            .map(|pool| {
                json!({
                    "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "name": pool,
                    "uid": pool, "controller": true,
                })
            })
            .into_iter()
            .collect();
        json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "Machine",
            "metadata": {
                "name": name, "namespace": "ns", "ownerReferences": owners,
                "annotations": {"machine.openshift.io/instance-state": state},
            },
            "spec": {"providerID": format!("aws:///zone-a/i-{name}")},
            "status": {
                "phase": "Running",
                "nodeRef": {"kind": "Node", "name": format!("node-{name}")},
                "providerStatus": {"instanceId": format!("i-{name}"), "instanceState": state},
            },
        })
    }

    fn report(machines: &[serde_json::Value]) -> Report {
        let object = |value: serde_json::Value| serde_json::from_value(value).unwrap();
        let set = json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "MachineSet",
            "metadata": {"name": "pool", "namespace": "ns", "uid": "pool"},
            "spec": {"replicas": 2, "selector": {}, "template": {}},
        });
        let machines = machines.iter().cloned().map(object);
        status::report(&Observed::read([object(set)], machines, None))
    }

    #[test]
    fn the_first_worker_that_runs_is_chosen_and_no_control_plane() {
        let fleet = report(&[
            machine("a-master", None, "running"),
            machine("b-worker", Some("pool"), "stopped"),
            machine("c-worker", Some("pool"), "running"),
            machine("d-worker", Some("pool"), "running"),
        ]);
        let running = ["i-a-master", "i-c-worker", "i-d-worker"].into();
        let victim = choose(&fleet, &running, None).unwrap();
        assert_eq!((victim.machine.as_str(), victim.instance.as_str()), ("c-worker", "i-c-worker"));
        assert_eq!(choose(&fleet, &running, Some("a-master")).unwrap().machine, "a-master");
        let refusal = choose(&fleet, &running, Some("nobody")).unwrap_err().to_string();
        assert_eq!(refusal, "there is no machine nobody");
        let none = report(&[machine("a-master", None, "running")]);
        assert!(
            choose(&none, &running, None).unwrap_err().to_string().contains("no worker is well")
        );
        // Stopped a moment ago, which the cluster has not seen yet.
        let running = ["i-d-worker"].into();
        assert_eq!(choose(&fleet, &running, None).unwrap().machine, "d-worker");
    }

    #[test]
    fn an_experiment_says_what_was_done_what_follows_and_where_to_watch() {
        let victim = Victim {
            machine: "worker-1".to_owned(),
            instance: "i-1".to_owned(),
            zone: Some("zone-a".to_owned()),
            node: Some("node-1".to_owned()),
        };
        let state = UpState { page: Some("http://127.0.0.1:4/".to_owned()), ..UpState::sample() };
        let at = "2026-11-16T08:54:20Z".parse().unwrap();
        for (name, told) in [
            ("stop-instance", stopped(&victim)),
            ("retire-instance", retired(&victim, at, SignedDuration::from_mins(15))),
            ("break-zone", broken("zone-a", 4, "worker-1")),
            ("mend-zone", mended(4)),
        ] {
            let text = with_watch(&told, &state, "machinist", 80).join("\n") + "\n";
            golden(&format!("../up/{name}.txt"), &text);
        }
    }
}
