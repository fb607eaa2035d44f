//! How far are the machines? Followed by watches, so that looking costs the API server next to
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, bail};
use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use k8s_openapi::api::core::v1::Node;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use machinist_api::Machine;
use machinist_api::names::phase;
use machinist_core::node::{Readiness, readiness};
use machinist_testbed::singletons::MACHINE_NAMESPACE;
use serde::Serialize;
use tokio::time::{Instant, timeout};

/// Without any change for so long, something is stuck.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// What the watches have told so far.
pub struct Fleet {
    changes: SelectAll<BoxStream<'static, Result<Change, watcher::Error>>>,
    machines: BTreeMap<String, MachineProgress>,
    ready_nodes: BTreeSet<String>,
    nodes: BTreeSet<String>,
}

enum Change {
    Machine(Box<Event<Machine>>),
    Node(Box<Event<Node>>),
}

struct MachineProgress {
    first_seen: Instant,
    running_after: Option<Duration>,
    node: Option<String>,
    is_running: bool,
}

/// From the creation of a Machine to its phase Running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Latency {
    pub p50_seconds: f64,
    pub p99_seconds: f64,
    pub max_seconds: f64,
}

impl Fleet {
    pub fn watch(client: &Client) -> Self {
        let machines: Api<Machine> = Api::namespaced(client.clone(), MACHINE_NAMESPACE);
        let nodes: Api<Node> = Api::all(client.clone());
        let config = watcher::Config::default;
        let machines = watcher(machines, config()).default_backoff();
        let nodes = watcher(nodes, config()).default_backoff();
        let mut changes = SelectAll::new();
        changes.push(machines.map(|one| one.map(|it| Change::Machine(Box::new(it)))).boxed());
        changes.push(nodes.map(|one| one.map(|it| Change::Node(Box::new(it)))).boxed());
        Self {
            changes,
            machines: BTreeMap::new(),
            ready_nodes: BTreeSet::new(),
            nodes: BTreeSet::new(),
        }
    }

    /// Waits until `wanted` machines run on Ready nodes.
    pub async fn until_running(&mut self, wanted: usize) -> anyhow::Result<()> {
        self.until(|fleet| fleet.running() >= wanted, "to run").await
    }

    /// Waits until no machine and no node is left.
    pub async fn until_gone(&mut self) -> anyhow::Result<()> {
        self.until(|fleet| fleet.machines.is_empty() && fleet.nodes.is_empty(), "to be gone").await
    }

    fn running(&self) -> usize {
        let is_up = |machine: &&MachineProgress| {
            machine.is_running
                && machine.node.as_ref().is_some_and(|node| self.ready_nodes.contains(node))
        };
        self.machines.values().filter(is_up).count()
    }

    async fn until(&mut self, done: impl Fn(&Self) -> bool, what: &str) -> anyhow::Result<()> {
        while !done(self) {
            let Ok(change) = timeout(SILENCE_MAX, self.changes.next()).await else {
                bail!(
                    "nothing happened for {} s while waiting for the machines {what}: {} machines, \
                     {} of them run, {} nodes",
                    SILENCE_MAX.as_secs(),
                    self.machines.len(),
                    self.running(),
                    self.nodes.len()
                );
            };
            match change.context("the watches ended")? {
                Ok(change) => self.take(change),
                Err(error) => eprintln!("bench: a watch was interrupted: {error}"),
            }
        }
        Ok(())
    }

    fn take(&mut self, change: Change) {
        match change {
            Change::Machine(event) => match *event {
                Event::Apply(machine) | Event::InitApply(machine) => self.take_machine(&machine),
                Event::Delete(machine) => {
                    self.machines.remove(&machine.name_any());
                }
                Event::Init | Event::InitDone => {}
            },
            Change::Node(event) => match *event {
                Event::Apply(node) | Event::InitApply(node) => {
                    let name = node.name_any();
                    if readiness(&node) == Readiness::Ready {
                        self.ready_nodes.insert(name.clone());
                    } else {
                        self.ready_nodes.remove(&name);
                    }
                    self.nodes.insert(name);
                }
                Event::Delete(node) => {
                    self.nodes.remove(&node.name_any());
                    self.ready_nodes.remove(&node.name_any());
                }
                Event::Init | Event::InitDone => {}
            },
        }
    }

    fn take_machine(&mut self, machine: &Machine) {
        let progress = self.machines.entry(machine.name_any()).or_insert_with(|| MachineProgress {
            first_seen: Instant::now(),
            running_after: None,
            node: None,
            is_running: false,
        });
        let status = machine.status.as_ref();
        progress.is_running =
            status.and_then(|status| status.phase.as_deref()) == Some(phase::RUNNING);
        progress.node =
            status.and_then(|status| status.node_ref.as_ref()).and_then(|node| node.name.clone());
        if progress.is_running && progress.running_after.is_none() {
            progress.running_after = Some(progress.first_seen.elapsed());
        }
    }

    /// How long the machines that are there took.
    pub fn latency(&self) -> Latency {
        let mut seconds: Vec<f64> = self
            .machines
            .values()
            .filter_map(|machine| machine.running_after.map(|time| time.as_secs_f64()))
            .collect();
        seconds.sort_by(f64::total_cmp);
        let at = |hundredths: usize| {
            let index = (seconds.len() * hundredths).div_ceil(100).saturating_sub(1);
            seconds.get(index).copied().unwrap_or_default()
        };
        Latency { p50_seconds: at(50), p99_seconds: at(99), max_seconds: at(100) }
    }
}
