//! How does one go on where the first answer ended, and miss nothing and tell nothing twice?
//!
//! A watch resumes by itself where it was; when the API server has forgotten that place it lists anew, and
//! what was told already is known by its uid and count. What is remembered is bounded (Rule 10).

use std::{
    collections::{BTreeMap, VecDeque},
    io::Write,
    pin::pin,
};

use anyhow::Context;
use futures::{
    Stream, StreamExt,
    stream::{BoxStream, SelectAll},
};
use k8s_openapi::api::core::v1::Event;
use kube::{
    Api, Resource, ResourceExt,
    api::{ApiResource, DynamicObject},
    runtime::{
        WatchStreamExt,
        watcher::{self, Config, watcher},
    },
};
use machinist_api::{Machine, MachineMaintenance, names::MAINTENANCE_NAMESPACE};
use machinist_core::overview::timeline::{Belonging, Happening};
use serde::de::DeserializeOwned;

use super::{Choice, Report, lines};
use crate::{
    args::{EventsArgs, Output},
    cluster_api::is_served,
    document::{self, Notation},
    kubeconfig::{Access, Connection, connect},
    plan,
    screen::{self, Layout},
    snapshot::{
        Snapshot,
        live::{EVENTS_OF_CLUSTER_API, about},
    },
};

/// Events that are remembered; more than a busy hour of a large fleet.
const REMEMBERED: usize = 20_000;

/// Among so many last ones the same words are looked for: what belongs together comes together.
const RECENT: usize = 100;

pub(super) async fn run(
    args: &EventsArgs,
    snapshot: &Snapshot,
    report: &Report,
    choice: &Choice,
    layout: &Layout<'_>,
) -> anyhow::Result<()> {
    let mut told = Told::of(snapshot);
    let show = |one: &Happening| {
        let now = plan::now(layout.zone, None)?;
        let text = text(one, args.output, now, layout)?;
        let mut stdout = anstream::stdout().lock();
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        screen::ignore_closed_pipe(written)
    };
    for one in &report.happenings {
        show(one)?;
    }
    let connection = connect(&args.fleet.cluster, Access::Read).await?;
    let has_cluster_api = is_served(&connection.client).await;
    let mut changes = changes(&connection, &args.fleet.namespace, has_cluster_api);
    let mut stop = pin!(tokio::signal::ctrl_c());
    loop {
        tokio::select! {
            biased;
            stopped = &mut stop => return stopped.context("cannot listen for Ctrl-C"),
            change = changes.next() => match change.context("the watches ended")? {
                Ok(change) => {
                    for one in told.news(change) {
                        if choice.takes(&one) {
                            show(&one)?;
                        }
                    }
                }
                Err(error) => eprintln!("the connection is interrupted: {error}; trying again"),
            },
        }
    }
}

fn text(
    one: &Happening,
    output: Output,
    now: jiff::Timestamp,
    layout: &Layout<'_>,
) -> anyhow::Result<String> {
    Ok(match output {
        Output::Json => document::json(one, Notation::Stream)?,
        Output::Yaml => document::yaml(one, Notation::Stream)?,
        Output::Name => one.machine.as_deref().map(document::machine_name).unwrap_or_default(),
        Output::Table | Output::Wide => lines::happening(one, now, layout),
    })
}

/// What the watches say.
pub(super) enum Change {
    Event(Box<Event>),
    /// Whose Nodes are whose.
    Machine(Box<DynamicObject>),
    /// Whose maintenances are whose.
    Maintenance(Box<DynamicObject>),
}

type Changes = SelectAll<BoxStream<'static, Result<Change, watcher::Error>>>;

fn changes(connection: &Connection, namespace: &str, has_cluster_api: bool) -> Changes {
    let client = &connection.client;
    let in_namespace = |namespace: &str| Api::<Event>::namespaced(client.clone(), namespace);
    let mut changes = SelectAll::new();
    changes.push(events(in_namespace(namespace), Config::default()));
    changes.push(events(
        in_namespace("default"),
        Config::default().fields("involvedObject.kind=Node"),
    ));
    if namespace != MAINTENANCE_NAMESPACE {
        changes.push(events(in_namespace(MAINTENANCE_NAMESPACE), Config::default()));
    }
    for version in EVENTS_OF_CLUSTER_API.into_iter().filter(|_| has_cluster_api) {
        let config = Config::default().fields(&about(version));
        changes.push(events(Api::<Event>::all(client.clone()), config));
    }
    let machines = objects::<Machine>(connection, namespace);
    changes.push(machines.map(|one| one.map(|one| Change::Machine(Box::new(one)))).boxed());
    let maintenances = objects::<MachineMaintenance>(connection, namespace);
    changes.push(maintenances.map(|one| one.map(|one| Change::Maintenance(Box::new(one)))).boxed());
    changes
}

/// Untyped: one that does not parse must not end the watch (Rule 12).
fn objects<K: Resource<DynamicType = ()>>(
    connection: &Connection,
    namespace: &str,
) -> impl Stream<Item = Result<DynamicObject, watcher::Error>> + Send + use<K> {
    let resource = ApiResource::erase::<K>(&());
    let client = connection.client.clone();
    let api = Api::<DynamicObject>::namespaced_with(client, namespace, &resource);
    watcher(api, Config::default()).default_backoff().applied_objects()
}

fn events(api: Api<Event>, config: Config) -> BoxStream<'static, Result<Change, watcher::Error>> {
    // What is listed again after a loss comes as well: what came meanwhile is in it.
    let events = watcher(api, config).default_backoff().filter_map(|event| async move {
        match event {
            Ok(watcher::Event::Apply(one) | watcher::Event::InitApply(one)) => Some(Ok(one)),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        }
    });
    events.map(|one| one.map(|one| Change::Event(Box::new(one)))).boxed()
}

/// What was told already, and what belongs to whom.
pub(super) struct Told {
    belonging: Belonging,
    counts: BTreeMap<String, i32>,
    /// For forgetting the oldest.
    order: VecDeque<String>,
    limit: usize,
    /// The last ones: what is told on several objects at once is told once.
    recent: VecDeque<Happening>,
}

impl Told {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let machines: Vec<&Machine> = snapshot.machines.iter().collect();
        let maintenances: Vec<&MachineMaintenance> = snapshot.maintenances.iter().collect();
        let belonging = Belonging::of(&machines, &maintenances);
        let (counts, order) = (BTreeMap::new(), VecDeque::new());
        let recent = VecDeque::new();
        let mut told = Self { belonging, counts, order, limit: REMEMBERED, recent };
        for event in &snapshot.events {
            told.is_news(event);
        }
        told
    }

    /// What a change tells that was not told yet.
    pub(super) fn news(&mut self, change: Change) -> impl Iterator<Item = Happening> {
        let news = match change {
            Change::Event(event) if self.is_news(&event) => self.belonging.happening(&event),
            Change::Event(_) => None,
            Change::Machine(object) => {
                if let Some(machine) = parsed::<Machine>(*object) {
                    self.belonging.take_machine(&machine);
                }
                None
            }
            Change::Maintenance(object) => {
                if let Some(maintenance) = parsed::<MachineMaintenance>(*object) {
                    self.belonging.take_maintenance(&maintenance);
                }
                None
            }
        };
        let news = news.filter(|one| !self.recent.iter().any(|known| one.repeats(known)));
        if let Some(news) = &news {
            self.recent.push_back(news.clone());
            if self.recent.len() > RECENT {
                self.recent.pop_front();
            }
        }
        news.into_iter()
    }

    fn is_news(&mut self, event: &Event) -> bool {
        let name = || format!("{}/{}", event.namespace().unwrap_or_default(), event.name_any());
        let key = event.uid().unwrap_or_else(name);
        let count = event.series.as_ref().and_then(|series| series.count).or(event.count);
        let count = count.unwrap_or(1);
        if self.counts.get(&key) == Some(&count) {
            return false;
        }
        if self.counts.insert(key.clone(), count).is_none() {
            self.order.push_back(key);
            if self.order.len() > self.limit
                && let Some(oldest) = self.order.pop_front()
            {
                self.counts.remove(&oldest);
            }
        }
        true
    }

    #[cfg(test)]
    pub(super) fn limited(snapshot: &Snapshot, limit: usize) -> Self {
        Self { limit, ..Self::of(snapshot) }
    }
}

/// What does not parse belongs to nobody, and hides nothing.
fn parsed<K: DeserializeOwned>(object: DynamicObject) -> Option<K> {
    serde_json::to_value(object).and_then(serde_json::from_value).ok()
}
