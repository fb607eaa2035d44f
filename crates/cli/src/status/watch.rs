//! How does one go on looking? Watches instead of polls; on a terminal the picture is redrawn in
//! place, elsewhere each change is a line.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::pin::pin;
use std::time::Duration;

use anyhow::Context;
use futures::stream::{BoxStream, SelectAll};
use futures::{Stream, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use machinist_api::{Machine, MachineSet, cluster_api};
use tokio::time::{MissedTickBehavior, interval};

use super::fetch::{
    ClusterApiObjects, Observed, Scope, api, fetch, is_forbidden, place_of_cluster_api,
};
use super::judge::{MachineView, PoolView, Report, Waiting, report};
use super::render::{Layout, Notation, Room, machine_row};
use super::{Form, text};
use crate::args::Output;
use crate::kubeconfig::Connection;
use crate::screen;
use crate::table::lines;

/// Changes come in bursts; one picture for a burst is enough for the eye.
const REDRAW_PERIOD: Duration = Duration::from_millis(250);
/// Ages move on even when nothing else does.
const AGES_PERIOD: Duration = Duration::from_secs(1);

pub(super) async fn run(connection: &Connection, form: Form<'_>) -> anyhow::Result<()> {
    // A first list, because it fails at once and with a clear word where a watch would go on trying.
    let first = fetch(&connection.client, form.scope)
        .await
        .map_err(|error| connection.explain("cannot list machines", error))?;
    let may_read_nodes = first.nodes.is_some();
    let mut store = Store { nodes: may_read_nodes.then(Kept::default), ..Store::default() };
    let mut changes = changes(connection, form.scope, may_read_nodes);
    if first.has_cluster_api {
        store.cluster_api = Some(Default::default());
        changes.push(follow_cluster_api(connection, form.scope));
    }
    let mut screen = Screen::new(form);
    screen.enter();
    screen.show(&report(&first))?;

    let mut ticks = interval(if screen.is_in_place() { AGES_PERIOD } else { REDRAW_PERIOD });
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut redraw = interval(REDRAW_PERIOD);
    redraw.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_stale = false;
    let mut stop = pin!(tokio::signal::ctrl_c());
    loop {
        tokio::select! {
            biased;
            stopped = &mut stop => {
                screen.leave();
                return stopped.context("cannot listen for Ctrl-C");
            }
            change = changes.next() => match change.context("the watches ended")? {
                Ok(change) => {
                    store.take(change);
                    is_stale = true;
                }
                Err(error) => screen.complain(&connection.explain_watch(&error)),
            },
            _ = redraw.tick(), if is_stale && store.is_complete() => {
                is_stale = false;
                screen.show(&store.report())?;
            }
            _ = ticks.tick(), if screen.is_in_place() && store.is_complete() => {
                screen.show(&store.report())?;
            }
        }
    }
}

enum Change {
    Set(Event<DynamicObject>),
    Machine(Event<DynamicObject>),
    Node(Box<Event<Node>>),
    /// Of Cluster API, in the order of [`OF_CLUSTER_API`].
    ClusterApi(usize, Event<DynamicObject>),
}

type Changes = SelectAll<BoxStream<'static, Result<Change, watcher::Error>>>;

fn changes(connection: &Connection, scope: &Scope, with_nodes: bool) -> Changes {
    let client = &connection.client;
    let mut changes = SelectAll::new();
    changes.push(follow(api::<MachineSet>(client, scope)).map(|one| one.map(Change::Set)).boxed());
    changes.push(follow(api::<Machine>(client, scope)).map(|one| one.map(Change::Machine)).boxed());
    if with_nodes {
        let nodes = watcher(Api::<Node>::all(client.clone()), watcher::Config::default());
        let nodes = nodes.default_backoff();
        changes.push(nodes.map(|one| one.map(|event| Change::Node(Box::new(event)))).boxed());
    }
    changes
}

/// The kinds of Cluster API that machines are shown by.
const OF_CLUSTER_API: usize = 4;

fn follow_cluster_api(
    connection: &Connection,
    scope: &Scope,
) -> BoxStream<'static, Result<Change, watcher::Error>> {
    let (client, scope) = (&connection.client, &place_of_cluster_api(scope));
    let kinds: [Api<DynamicObject>; OF_CLUSTER_API] = [
        api::<cluster_api::Cluster>(client, scope),
        api::<cluster_api::Machine>(client, scope),
        api::<cluster_api::MachineSet>(client, scope),
        api::<cluster_api::MachineDeployment>(client, scope),
    ];
    let followed = kinds.into_iter().enumerate().map(|(kind, objects)| {
        let changes = follow(objects);
        changes.map(move |one| one.map(|event| Change::ClusterApi(kind, event))).boxed()
    });
    futures::stream::select_all(followed).boxed()
}

fn follow(
    objects: Api<DynamicObject>,
) -> impl Stream<Item = Result<Event<DynamicObject>, watcher::Error>> + Send + 'static {
    watcher(objects, watcher::Config::default()).default_backoff()
}

impl Connection {
    fn explain_watch(&self, error: &watcher::Error) -> String {
        match error {
            watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)
                if is_forbidden(error) =>
            {
                format!("not allowed any more: {error}")
            }
            other => format!("the connection to {} is interrupted: {other}", self.source),
        }
    }
}

/// The objects of one kind as the watch tells them.
struct Kept<K> {
    objects: BTreeMap<(String, String), K>,
    /// What a restarted watch has listed so far.
    listed: Option<BTreeMap<(String, String), K>>,
    is_complete: bool,
}

impl<K> Default for Kept<K> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), listed: None, is_complete: false }
    }
}

impl<K: ResourceExt> Kept<K> {
    fn take(&mut self, event: Event<K>) {
        let key = |object: &K| (object.namespace().unwrap_or_default(), object.name_any());
        match event {
            Event::Apply(object) => {
                self.objects.insert(key(&object), object);
            }
            Event::Delete(object) => {
                self.objects.remove(&key(&object));
            }
            Event::Init => self.listed = Some(BTreeMap::new()),
            Event::InitApply(object) => {
                self.listed.get_or_insert_default().insert(key(&object), object);
            }
            Event::InitDone => {
                self.objects = self.listed.take().unwrap_or_default();
                self.is_complete = true;
            }
        }
    }
}

#[derive(Default)]
struct Store {
    sets: Kept<DynamicObject>,
    machines: Kept<DynamicObject>,
    nodes: Option<Kept<Node>>,
    cluster_api: Option<[Kept<DynamicObject>; OF_CLUSTER_API]>,
}

impl Store {
    fn take(&mut self, change: Change) {
        match change {
            Change::Set(event) => self.sets.take(event),
            Change::Machine(event) => self.machines.take(event),
            Change::Node(event) => {
                if let Some(nodes) = &mut self.nodes {
                    nodes.take(*event);
                }
            }
            Change::ClusterApi(kind, event) => {
                let kept = self.cluster_api.as_mut().and_then(|kinds| kinds.get_mut(kind));
                if let Some(kept) = kept {
                    kept.take(event);
                }
            }
        }
    }

    fn is_complete(&self) -> bool {
        let nodes = self.nodes.as_ref().is_none_or(|nodes| nodes.is_complete);
        let others = self.cluster_api.iter().flatten().all(|kept| kept.is_complete);
        self.sets.is_complete && self.machines.is_complete && nodes && others
    }

    fn report(&self) -> Report {
        let nodes = self.nodes.as_ref().map(|nodes| nodes.objects.values().cloned().collect());
        let sets = self.sets.objects.values().cloned();
        let mut observed = Observed::read(sets, self.machines.objects.values().cloned(), nodes);
        if let Some([clusters, machines, sets, deployments]) = &self.cluster_api {
            let all = |kept: &Kept<DynamicObject>| kept.objects.values().cloned().collect();
            observed.add(ClusterApiObjects {
                clusters: all(clusters),
                machines: all(machines),
                sets: all(sets),
                deployments: all(deployments),
            });
        }
        report(&observed)
    }
}

/// Where the pictures go.
enum Screen<'a> {
    /// Redraws on a terminal.
    InPlace { form: Form<'a> },
    /// Adds a line for each machine or pool that changed.
    Lines { form: Form<'a>, last: Option<Box<Report>> },
    /// Prints the whole report whenever it changed, for programs.
    Documents { form: Form<'a>, last: String },
}

impl<'a> Screen<'a> {
    fn new(form: Form<'a>) -> Self {
        match form.output {
            Output::Json | Output::Yaml | Output::Name => {
                Self::Documents { form, last: String::new() }
            }
            Output::Table | Output::Wide if std::io::stdout().is_terminal() => {
                Self::InPlace { form }
            }
            Output::Table | Output::Wide => Self::Lines { form, last: None },
        }
    }

    const fn is_in_place(&self) -> bool {
        matches!(self, Self::InPlace { .. })
    }

    fn show(&mut self, report: &Report) -> anyhow::Result<()> {
        let mut stdout = anstream::stdout().lock();
        match self {
            Self::InPlace { form } => {
                let picture = text(report, *form, Notation::Indented)?;
                screen::draw_over(&mut stdout, &picture)?;
            }
            Self::Lines { form, last } => {
                match last {
                    None => {
                        let picture = text(report, *form, Notation::Indented)?;
                        write!(stdout, "{picture}")?;
                    }
                    Some(before) => {
                        let layout = Layout {
                            is_wide: form.output == Output::Wide,
                            with_namespaces: *form.scope == Scope::All,
                            terminal_width: None,
                            zone: form.zone,
                            now: Timestamp::now(),
                        };
                        for line in differences(before, report, &layout) {
                            writeln!(stdout, "{line}")?;
                        }
                    }
                }
                *last = Some(Box::new(report.clone()));
            }
            Self::Documents { form, last } => {
                let document = text(report, *form, Notation::OneLine)?;
                if document != *last {
                    write!(stdout, "{document}")?;
                    *last = document;
                }
            }
        }
        Ok(stdout.flush()?)
    }

    /// A clear screen to draw on.
    fn enter(&self) {
        if self.is_in_place() {
            screen::clear();
        }
    }

    /// The shell's prompt belongs below the picture.
    fn leave(&self) {
        if self.is_in_place() {
            println!();
        }
    }

    fn complain(&self, problem: &str) {
        eprintln!("{problem}; trying again");
    }
}

/// A line for each machine and pool that is not as it was.
fn differences(before: &Report, after: &Report, layout: &Layout<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let old: BTreeMap<_, _> = before.machines().map(|one| (machine_key(one), one)).collect();
    let new: BTreeMap<_, _> = after.machines().map(|one| (machine_key(one), one)).collect();
    for pool in &after.pools {
        let known = before.pools.iter().find(|one| pool_key(one) == pool_key(pool));
        if known.is_none_or(|known| pool_words(known) != pool_words(pool)) {
            found.push(pool_words(pool));
        }
    }
    for (key, machine) in &new {
        if old.get(key).is_none_or(|known| !same(known, machine)) {
            found.extend(lines(&[machine_row(machine, layout, Room::PLENTY)], None));
        }
    }
    for (key, _) in old.iter().filter(|(key, _)| !new.contains_key(*key)) {
        found.push(format!("  {}   gone", key.1));
    }
    found
}

fn machine_key(machine: &MachineView) -> (&str, &str) {
    (&machine.namespace, &machine.name)
}

fn pool_key(pool: &PoolView) -> (&str, &str) {
    (&pool.namespace, &pool.name)
}

fn pool_words(pool: &PoolView) -> String {
    let waiting = pool.waiting.as_ref().map_or("", |waiting| waiting.message.as_str());
    format!("{}   {}/{} ready   {waiting}", pool.name, pool.ready, pool.desired)
        .trim_end()
        .to_owned()
}

/// Whether nothing but the age differs.
fn same(left: &MachineView, right: &MachineView) -> bool {
    let words = |waiting: &Option<Waiting>| waiting.as_ref().map(|one| one.message.clone());
    left.phase == right.phase
        && left.instance == right.instance
        && left.node == right.node
        && words(&left.waiting) == words(&right.waiting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn machine(name: &str, version: &str) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "Machine",
            "metadata": { "name": name, "namespace": "n", "resourceVersion": version },
        }))
        .unwrap()
    }

    #[test]
    fn a_restarted_watch_forgets_what_it_no_longer_lists() {
        let mut kept = Kept::default();
        for event in [
            Event::Init,
            Event::InitApply(machine("a", "1")),
            Event::InitApply(machine("b", "1")),
            Event::InitDone,
            Event::Apply(machine("c", "2")),
            Event::Delete(machine("a", "3")),
        ] {
            kept.take(event);
        }
        let names = |kept: &Kept<DynamicObject>| {
            kept.objects.keys().map(|(_, name)| name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&kept), ["b", "c"]);
        kept.take(Event::Init);
        kept.take(Event::InitApply(machine("c", "9")));
        assert_eq!(names(&kept), ["b", "c"]);
        kept.take(Event::InitDone);
        assert_eq!(names(&kept), ["c"]);
    }
}
