//! What is answered to whom? Every path, with the rights that it needs.

use std::sync::Arc;

use axum::{body::Body, response::Response};
use futures::future::join_all;
use http::{Method, Request};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::{Api, api::ListParams};
use machinist_api::openshift_config::CLUSTER;
use machinist_core::{
    cluster_api::maintained::parts,
    overview::{
        calendar_view::{self, calendar},
        drift_view,
        fleet::PoolList,
        machine::{Action, Sees, machine},
        picture::{Picture, with_plan},
        query::{self, MachineList},
        timeline::Sources,
        timeline_view::{self, Timeline},
        what_if::{WhatIf, what_if},
    },
};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Page,
    access::{Right, User},
    answer::{Refused, json},
    board::Shown,
    document, guard, stream, writes,
};
use crate::{engine::store::ObjectKey, scrape};

/// How many of the API server's events about one object are asked for.
const EVENTS_MAX: u32 = 300;
/// And how many about all machines: more than a bad hour of a large fleet.
const PAST_MAX: u32 = 5000;
/// In how many namespaces the past of machines is looked for.
const PLACES_MAX: usize = 32;

/// Who asks, and what they may.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Me {
    pub user: String,
    pub groups: Vec<String>,
    pub namespace: String,
    /// What the cluster is called, where it says so.
    pub cluster: Option<String>,
    /// Of the operator.
    pub version: &'static str,
    /// Whether anything can be changed on this page.
    pub writes: bool,
    pub may: May,
    /// Why nothing can be changed.
    pub why: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct May {
    pub read: bool,
    pub plan: bool,
    pub policies: bool,
    pub nodes: bool,
    pub pods: bool,
    pub approve: bool,
    pub postpone: bool,
    pub pause_cluster: bool,
    pub pause_machine: bool,
    pub pause_pool: bool,
    pub pause_policy: bool,
}

/// Finds the answer to a request.
pub(super) async fn dispatch(
    page: &Arc<Page>,
    path: &[String],
    request: Request<Body>,
) -> Result<Response<Body>, Refused> {
    let Some(token) = scrape::token(request.headers()).map(str::to_owned) else {
        return Err(Refused::unauthenticated());
    };
    let user = page.access.who(&token).await?;
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let is_write = matches!(
        path.as_slice(),
        ["what-if" | "pause" | "resume"] | ["machines", _, "approve" | "postpone"]
    );
    guard::method(&request, if is_write { &Method::POST } else { &Method::GET })?;
    let query = request.uri().query().unwrap_or_default().to_owned();
    match path.as_slice() {
        ["me"] => me(page, &user).await.map(|me| json(&me)),
        ["openapi.json"] => Ok(json(document::document())),
        ["fleet"] => read(page, &user, Right::ListMachines, |shown| json(&shown.fleet)).await,
        ["pools"] => {
            read(page, &user, Right::ListMachines, |shown| {
                json(&PoolList {
                    version: shown.version.clone(),
                    as_of: shown.now,
                    pools: shown.fleet.pools.clone(),
                })
            })
            .await
        }
        ["map"] => {
            let (filter, _) = question(&query)?;
            read(page, &user, Right::ListMachines, |shown| {
                json(&query::map(&shown.rows, &filter, shown.version.clone(), shown.now))
            })
            .await
        }
        ["machines"] => {
            let (filter, wanted) = question(&query)?;
            read(page, &user, Right::ListMachines, |shown| {
                let (total, found, next) = query::page(&shown.rows, &filter, &wanted);
                json(&MachineList {
                    version: shown.version.clone(),
                    as_of: shown.now,
                    total,
                    machines: found.into_iter().cloned().collect(),
                    next,
                })
            })
            .await
        }
        ["machines", name] => one(page, &user, name).await,
        ["machines", name, "timeline"] => timeline(page, &user, &token, name).await,
        ["plan"] => read(page, &user, Right::ListMaintenances, |shown| json(&shown.plan)).await,
        ["policies"] => read(page, &user, Right::ListPolicies, |shown| json(&shown.policies)).await,
        ["calendar"] => days(page, &user, &query).await,
        ["drift"] => drift(page, &user, &token).await,
        ["events"] => {
            page.access.require(&user, Right::ListMachines).await?;
            stream::answer(page, &user, token, request.headers()).await
        }
        ["what-if"] => trial(page, &user, request).await,
        ["machines", name, "approve"] => {
            let wish = guard::sent(request, &page.origins).await?;
            writes::approve(page, &user, &token, name, wish).await
        }
        ["machines", name, "postpone"] => {
            let wish = guard::sent(request, &page.origins).await?;
            writes::postpone(page, &user, &token, name, wish).await
        }
        ["pause"] => {
            let wish = guard::sent(request, &page.origins).await?;
            writes::pause(page, &user, &token, wish).await
        }
        ["resume"] => {
            let wish = guard::sent(request, &page.origins).await?;
            writes::resume(page, &user, &token, wish).await
        }
        _ => Err(Refused::not_found()),
    }
}

fn question(query: &str) -> Result<(query::Filter, query::Page), Refused> {
    let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    Ok(query::read(pairs.iter().map(|(name, value)| (name.as_ref(), value.as_ref())))?)
}

/// What everybody with one right is shown.
async fn read(
    page: &Page,
    user: &User,
    right: Right,
    show: impl FnOnce(&Shown) -> Response<Body>,
) -> Result<Response<Body>, Refused> {
    page.access.require(user, right).await?;
    Ok(show(&*page.board(user).await?.current().await?))
}

/// Plans again, off the threads that answer: it takes its time in a large fleet.
pub(super) async fn pictured<R: Send + 'static>(
    page: &Page,
    user: &User,
    look: impl FnOnce(&Picture<'_>, &Shown) -> R + Send + 'static,
) -> Result<R, Refused> {
    let shown = page.board(user).await?.current().await?;
    let looked = tokio::task::spawn_blocking(move || {
        let objects = shown.snapshot.objects();
        with_plan(&objects, &[], shown.now, |picture| look(picture, &shown))
    });
    looked.await.map_err(|_| Refused::failed())
}

async fn me(page: &Page, user: &User) -> Result<Me, Refused> {
    let rights = [
        Right::ListMachines,
        Right::ListMaintenances,
        Right::ListPolicies,
        Right::GetNodes,
        Right::ListPods,
        Right::PatchMaintenances,
        Right::PatchNamespace,
        Right::PatchMachines,
        Right::PatchTheirMachines,
        Right::PatchPools,
        Right::PatchTheirPools,
        Right::PatchPolicies,
    ];
    let asked = join_all(rights.iter().map(|right| page.access.may(user, *right))).await;
    let answers: Vec<bool> = asked.into_iter().collect::<Result<_, _>>()?;
    let has = |right: Right| {
        let index = rights.iter().position(|one| *one == right);
        index.and_then(|index| answers.get(index)).copied().unwrap_or(false)
    };
    let may_write = |right: Right| page.writes && has(right);
    let may = May {
        read: has(Right::ListMachines),
        plan: has(Right::ListMaintenances),
        policies: has(Right::ListPolicies),
        nodes: has(Right::GetNodes),
        pods: has(Right::ListPods),
        approve: may_write(Right::PatchMaintenances),
        postpone: may_write(Right::PatchMaintenances),
        pause_cluster: may_write(Right::PatchNamespace),
        // Of either API: each machine says for itself.
        pause_machine: may_write(Right::PatchMachines) || may_write(Right::PatchTheirMachines),
        pause_pool: may_write(Right::PatchPools) || may_write(Right::PatchTheirPools),
        pause_policy: may_write(Right::PatchPolicies),
    };
    let can_write =
        may.approve || may.pause_cluster || may.pause_machine || may.pause_pool || may.pause_policy;
    let why = match (page.writes, can_write) {
        (false, _) => Some(writes::READ_ONLY.to_owned()),
        (true, false) => Some(Right::PatchMaintenances.lacking(&page.namespace)),
        (true, true) => None,
    };
    let infrastructure = page.context.stores.infrastructures.get(&ObjectKey::cluster_wide(CLUSTER));
    let named =
        infrastructure.and_then(|one| Some(one.status.as_ref()?.infrastructure_name.clone()));
    Ok(Me {
        user: user.name().to_owned(),
        groups: user.info.groups.clone().unwrap_or_default(),
        namespace: page.namespace.clone(),
        cluster: named.filter(|name| !name.is_empty()),
        version: env!("CARGO_PKG_VERSION"),
        writes: page.writes,
        may,
        why,
    })
}

async fn one(page: &Page, user: &User, name: &str) -> Result<Response<Body>, Refused> {
    page.access.require(user, Right::ListMachines).await?;
    let no_node = lacking(page, user, Right::GetNodes).await?;
    let no_pods = lacking(page, user, Right::ListPods).await?;
    let (no_patch, no_patch_of_machine) = match page.writes {
        true => (
            lacking(page, user, Right::PatchMaintenances).await?,
            no_patch_of(page, user, name).await?,
        ),
        false => (Some(writes::READ_ONLY.to_owned()), Some(writes::READ_ONLY.to_owned())),
    };
    let wanted = name.to_owned();
    let detail = pictured(page, user, move |picture, shown| {
        let row = shown.rows.get(&wanted)?;
        let sees = Sees { no_node: no_node.as_deref(), no_pods: no_pods.as_deref() };
        let mut detail = machine(&wanted, row, picture, sees)?;
        detail.version.clone_from(&shown.version);
        let actions = &mut detail.actions;
        for (action, obstacle) in [
            (&mut actions.approve, &no_patch),
            (&mut actions.postpone, &no_patch),
            (&mut actions.pause, &no_patch_of_machine),
            (&mut actions.resume, &no_patch_of_machine),
        ] {
            if let Some(why) = obstacle.as_ref().filter(|_| action.possible) {
                *action = Action::not(why.as_str());
            }
        }
        Some(detail)
    });
    detail.await?.map(|detail| json(&detail)).ok_or_else(|| no_machine(page, name))
}

/// What somebody is told who does not have a right; `None` for those who do.
async fn lacking(page: &Page, user: &User, right: Right) -> Result<Option<String>, Refused> {
    let may = page.access.may(user, right).await?;
    Ok((!may).then(|| right.lacking(&page.namespace)))
}

/// Why somebody may not change a machine, of whichever API.
async fn no_patch_of(page: &Page, user: &User, machine: &str) -> Result<Option<String>, Refused> {
    let Some((namespace, _)) = parts(machine) else {
        return lacking(page, user, Right::PatchMachines).await;
    };
    let (right, place) = (Right::PatchTheirMachines, Some(namespace));
    let may = page.access.may_in(user, right, place).await?;
    Ok((!may).then(|| right.lacking_in(place)))
}

fn no_machine(page: &Page, name: &str) -> Refused {
    let mut refused = Refused::not_found();
    refused.body.error.message = match parts(name) {
        Some(_) => format!("there is no machine {name} that you may see"),
        None => format!("there is no machine {name} in namespace {}", page.namespace),
    };
    refused
}

async fn days(page: &Page, user: &User, query: &str) -> Result<Response<Body>, Refused> {
    page.access.require(user, Right::ListMaintenances).await?;
    page.access.require(user, Right::ListPolicies).await?;
    let (mut from, mut to) = (None, None);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let time = || {
            let read = value.parse::<Timestamp>();
            read.map_err(|_| {
                Refused::invalid(format!("{name}: not a time such as 2026-01-31T08:00:00Z"))
            })
        };
        match name.as_ref() {
            "from" => from = Some(time()?),
            "to" => to = Some(time()?),
            _ => return Err(Refused::invalid("only from and to can be chosen")),
        }
    }
    let (from, to) =
        calendar_view::days(from, to, page.context.env.now()).map_err(Refused::invalid)?;
    let view = pictured(page, user, move |picture, shown| {
        let mut view = calendar(picture, from, to);
        view.version.clone_from(&shown.version);
        view
    });
    Ok(json(&view.await?))
}

async fn trial(
    page: &Page,
    user: &User,
    request: Request<Body>,
) -> Result<Response<Body>, Refused> {
    page.access.require(user, Right::ListMaintenances).await?;
    page.access.require(user, Right::ListPolicies).await?;
    let wish: WhatIf = guard::sent(request, &page.origins).await?;
    let shown = page.board(user).await?.current().await?;
    let tried = tokio::task::spawn_blocking(move || {
        let objects = shown.snapshot.objects();
        what_if(&objects, &wish, shown.now).map(|mut answer| {
            answer.before.version.clone_from(&shown.version);
            answer.after.version.clone_from(&shown.version);
            answer.calendar.version.clone_from(&shown.version);
            answer
        })
    });
    let answer = tried.await.map_err(|_| Refused::failed())?;
    Ok(json(&answer?))
}

/// What the objects remember, and what the API server still knows of events, as far as the user may read
/// these.
async fn timeline(
    page: &Page,
    user: &User,
    token: &str,
    name: &str,
) -> Result<Response<Body>, Refused> {
    page.access.require(user, Right::ListMachines).await?;
    let may_nodes = page.access.may(user, Right::GetNodes).await?;
    let may_maintenances = page.access.may(user, Right::ListMaintenances).await?;
    let shown = page.board(user).await?.current().await?;
    let Some(machine) = shown.snapshot.machine(name) else { return Err(no_machine(page, name)) };
    // What a workload cluster tells of its Nodes is told there; what the Machine says of its own is no secret here.
    let is_here = parts(name).is_none();
    let node = shown.snapshot.node_of(machine).filter(|_| may_nodes || !is_here);
    let record = shown.snapshot.maintenance_of(machine).filter(|_| may_maintenances);
    let client = page.acting_for(token)?;
    let (place, short) = parts(name).unwrap_or((&page.namespace, name));
    let of_machines = Api::<Event>::namespaced(client.clone(), place);
    let own = Api::<Event>::namespaced(client.clone(), &page.namespace);
    // Nodes have no namespace, and the kubelet puts its events into this one.
    let of_nodes = Api::<Event>::namespaced(client, "default");
    let about = |kind: &str, name: &str| {
        let fields = format!("involvedObject.kind={kind},involvedObject.name={name}");
        ListParams::default().fields(&fields).limit(EVENTS_MAX)
    };
    let node_name = node.filter(|_| is_here).and_then(|node| node.metadata.name.as_deref());
    let record_name = record.and_then(|record| record.metadata.name.as_deref());
    let of_machine = about("Machine", short);
    let of_record = record_name.map(|name| about("MachineMaintenance", name));
    let of_node = node_name.map(|name| about("Node", name));
    let (machines, records, nodes) = tokio::join!(
        listed(&of_machines, Some(&of_machine)),
        listed(&own, of_record.as_ref()),
        listed(&of_nodes, of_node.as_ref())
    );
    let (mut events, mut hidden) = (Vec::new(), None);
    for listed in [machines, records, nodes] {
        match listed {
            Ok(listed) => events.extend(listed),
            Err(error) => hidden = Some(untold(&error)),
        }
    }
    let events: Vec<&Event> = events.iter().collect();
    let sources = Sources {
        machines: &[machine],
        maintenances: &record.into_iter().collect::<Vec<_>>(),
        nodes: &node.into_iter().collect::<Vec<_>>(),
        events: &events,
    };
    let entries = timeline_view::of_machine(name, &sources);
    Ok(json(&Timeline { machine: name.to_owned(), as_of: shown.now, entries, hidden }))
}

/// Why Events are missing.
fn untold(error: &kube::Error) -> String {
    if matches!(error, kube::Error::Api(status) if status.code == 403) {
        return "you may not list events, so what only they tell is missing".to_owned();
    }
    tracing::debug!(%error, "events cannot be listed for a user");
    "the API server did not tell its events".to_owned()
}

/// What the Machines say of the present, and what the API server still knows of the past.
async fn drift(page: &Page, user: &User, token: &str) -> Result<Response<Body>, Refused> {
    page.access.require(user, Right::ListMachines).await?;
    let shown = page.board(user).await?.current().await?;
    let client = page.acting_for(token)?;
    let of_machines = ListParams::default().fields("involvedObject.kind=Machine").limit(PAST_MAX);
    let mut places = shown.snapshot.namespaces_of_cluster_api();
    places.insert(page.namespace.as_str());
    let (mut events, mut hidden) = (Vec::new(), None);
    if places.len() > PLACES_MAX {
        hidden = Some(format!("only the events of {PLACES_MAX} namespaces were looked at"));
    }
    let asked = places.into_iter().take(PLACES_MAX).map(async |place| {
        Api::<Event>::namespaced(client.clone(), place).list(&of_machines).await
    });
    for listed in join_all(asked).await {
        match listed {
            Ok(listed) => {
                if listed.metadata.continue_.is_some_and(|next| !next.is_empty()) {
                    let cut = format!("of the API server's events only {PAST_MAX} were looked at");
                    hidden = Some(cut);
                }
                events.extend(listed.items);
            }
            Err(error) => hidden = Some(untold(&error)),
        }
    }
    let events: Vec<&Event> = events.iter().collect();
    let mut list = drift_view::drift(&shown.snapshot.objects(), &events, shown.now);
    list.version.clone_from(&shown.version);
    list.hidden = hidden;
    Ok(json(&list))
}

async fn listed(api: &Api<Event>, of: Option<&ListParams>) -> kube::Result<Vec<Event>> {
    match of {
        Some(of) => Ok(api.list(of).await?.items),
        None => Ok(Vec::new()),
    }
}
