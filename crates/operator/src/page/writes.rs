//! What does a person change? Core says what is to be written; the API server is sent it with the person's
//! own token, checks the person's own rights, and puts the person's name into its audit log.

use axum::{body::Body, response::Response};
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams},
};
use machinist_api::{Machine, MachineMaintenance, MachineSet, MaintenancePolicy, cluster_api};
use machinist_core::overview::{
    fleet::PlaceWord,
    instant::Instant,
    wish::{
        Change, Object, Write, approve as approval,
        pause::{self as pauses, Place, Signature, Wish},
        postpone as postponement,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    Page,
    access::{Right, User},
    answer::{Refused, json},
    reads::pictured,
};
use crate::context::Stores;

/// What `kubectl get -o yaml --show-managed-fields` shows as the writer.
const FIELD_MANAGER: &str = "machinist-page";
/// For how long the disruption gate lets be what is approved here.
const GATE_OPEN: SignedDuration = SignedDuration::from_hours(1);

/// What is said where nothing can be changed.
pub(super) const READ_ONLY: &str = "this page only shows: the operator runs without --page-writes";

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Approve {
    /// Whatever the reasons become.
    #[serde(default)]
    pub any_reason: bool,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Postpone {
    /// Without a time a postponement is taken back.
    #[schemars(with = "Option<Instant>")]
    pub until: Option<Timestamp>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Pause {
    pub place: PlaceWord,
    /// None for the whole cluster.
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub reason: String,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Resume {
    pub place: PlaceWord,
    #[serde(default)]
    pub name: Option<String>,
}

/// What was done.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Done {
    /// False where it was so already.
    pub changed: bool,
    pub sentence: String,
}

pub(super) async fn approve(
    page: &Page,
    user: &User,
    token: &str,
    name: &str,
    wish: Approve,
) -> Result<Response<Body>, Refused> {
    begin(page, user).await?;
    let until = page.context.env.now().checked_add(GATE_OPEN).unwrap_or(Timestamp::MAX);
    let how = approval::How { any_reason: wish.any_reason, until };
    let name = name.to_owned();
    let change =
        pictured(page, user, move |picture, _| approval::machine(&name, how, picture)).await??;
    carry_out(page, token, change).await
}

pub(super) async fn postpone(
    page: &Page,
    user: &User,
    token: &str,
    name: &str,
    wish: Postpone,
) -> Result<Response<Body>, Refused> {
    begin(page, user).await?;
    let name = name.to_owned();
    let until = wish.until;
    let change =
        pictured(page, user, move |picture, _| postponement::machine(&name, until, picture))
            .await??;
    carry_out(page, token, change).await
}

pub(super) async fn pause(
    page: &Page,
    user: &User,
    token: &str,
    wish: Pause,
) -> Result<Response<Body>, Refused> {
    let place = place(wish.place, wish.name)?;
    change_pause(page, user, token, place, Wish::Pause { reason: wish.reason }).await
}

pub(super) async fn resume(
    page: &Page,
    user: &User,
    token: &str,
    wish: Resume,
) -> Result<Response<Body>, Refused> {
    let place = place(wish.place, wish.name)?;
    change_pause(page, user, token, place, Wish::Resume).await
}

async fn change_pause(
    page: &Page,
    user: &User,
    token: &str,
    place: Place,
    wish: Wish,
) -> Result<Response<Body>, Refused> {
    begin(page, user).await?;
    let at = machinist_api::condition::to_seconds(page.context.env.now()).0;
    let signature = Signature { by: user.name().to_owned(), at };
    // What is shown may be a second old; a pause of this second counts.
    let snapshot = page.board(user).await?.snapshot()?;
    let change = pauses::decide(&wish, &place, &snapshot.objects(), &signature)?;
    carry_out(page, token, change).await
}

fn place(word: PlaceWord, name: Option<String>) -> Result<Place, Refused> {
    let named = |name: Option<String>| name.ok_or_else(|| Refused::invalid("name: Required value"));
    Ok(match word {
        PlaceWord::Cluster => Place::Cluster,
        PlaceWord::Policy => Place::Policy(named(name)?),
        PlaceWord::Pool => Place::Pool(named(name)?),
        PlaceWord::Machine => Place::Machine(named(name)?),
    })
}

/// Refuses before anything is looked up for somebody who may not even see it.
async fn begin(page: &Page, user: &User) -> Result<(), Refused> {
    if !page.writes {
        return Err(Refused::new(StatusCode::FORBIDDEN, "ReadOnly", READ_ONLY));
    }
    page.access.require(user, Right::ListMachines).await
}

async fn carry_out(page: &Page, token: &str, change: Change) -> Result<Response<Body>, Refused> {
    if let Some(write) = &change.write {
        send(page.acting_for(token)?, write, &page.context.stores).await.map_err(refused)?;
    }
    Ok(json(&Done { changed: change.write.is_some(), sentence: change.sentence }))
}

/// Sends it, and takes the answer in at once: whoever pauses and then resumes is not told that nothing is paused.
async fn send(client: Client, write: &Write, stores: &Stores) -> kube::Result<()> {
    let (namespace, maintenance) = (write.namespace.as_str(), &stores.maintenance);
    let of_cluster_api = stores.cluster_api.get().map(|known| &known.stores);
    match write.on {
        Object::Maintenance => {
            let api = Api::<MachineMaintenance>::namespaced(client, namespace);
            maintenance.apply_written(patch(&api, write).await?);
        }
        Object::Machine => {
            let api = Api::<Machine>::namespaced(client, namespace);
            stores.machines.apply_written(patch(&api, write).await?);
        }
        Object::Pool => {
            let api = Api::<MachineSet>::namespaced(client, namespace);
            stores.machine_sets.apply_written(patch(&api, write).await?);
        }
        Object::Policy => {
            let api = Api::<MaintenancePolicy>::all(client);
            maintenance.policies.apply_written(patch(&api, write).await?);
        }
        Object::ClusterApiMachine => {
            let api = Api::<cluster_api::Machine>::namespaced(client, namespace);
            let written = patch(&api, write).await?;
            if let Some(known) = of_cluster_api {
                known.machines.apply_written(written);
            }
        }
        Object::ClusterApiSet => {
            let api = Api::<cluster_api::MachineSet>::namespaced(client, namespace);
            let written = patch(&api, write).await?;
            if let Some(known) = of_cluster_api {
                known.machine_sets.apply_written(written);
            }
        }
        Object::ClusterApiDeployment => {
            let api = Api::<cluster_api::MachineDeployment>::namespaced(client, namespace);
            let written = patch(&api, write).await?;
            if let Some(known) = of_cluster_api {
                known.deployments.apply_written(written);
            }
        }
        Object::Namespace => {
            let api = Api::<Namespace>::all(client);
            maintenance.namespaces.apply_written(patch(&api, write).await?);
        }
    }
    Ok(())
}

async fn patch<K>(api: &Api<K>, write: &Write) -> kube::Result<K>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let parameters =
        PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    api.patch(&write.name, &parameters, &Patch::Merge(&write.patch)).await
}

/// The API server's own words, where it has any.
fn refused(error: kube::Error) -> Refused {
    let kube::Error::Api(status) = error else {
        tracing::warn!(%error, "the API server cannot be asked to change something for a user");
        return Refused::unknown();
    };
    let (code, word) = match status.code {
        401 => return Refused::unauthenticated(),
        403 => (StatusCode::FORBIDDEN, "Forbidden"),
        404 => (StatusCode::NOT_FOUND, "NotFound"),
        409 => (StatusCode::CONFLICT, "Conflict"),
        400 | 422 => (StatusCode::UNPROCESSABLE_ENTITY, "Invalid"),
        _ => return Refused::unknown(),
    };
    Refused::new(code, word, status.message)
}
