//! How do tests and people play the console and the provider? A small JSON API on its own port.

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{delete, get, patch, post},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::CloudHandle;
use crate::cloud::model::{
    Breakpoint, ChangedBy, ConsoleError, EventPatch, Faults, HideRequest, HostDescription, Impair,
    InstanceFacts, LedgerQuery, LedgerView, LoadBalancerFacts, NewBreakpoint, NewEvent,
    RebalanceRequest, SpotNoticeRequest, StateChange, WorldIds,
};

pub(super) fn router(handle: CloudHandle) -> Router {
    Router::new()
        .route("/instances", get(instances))
        .route("/instances/{id}/{verb}", post(act_on_instance))
        .route("/events", post(schedule_event))
        .route("/events/{id}", patch(patch_event))
        .route("/events/{id}", delete(delete_event))
        .route("/faults", get(faults).post(add_faults).delete(clear_faults))
        .route("/breakpoints", get(breakpoints).post(add_breakpoint).delete(clear_breakpoints))
        .route("/breakpoints/{id}", delete(remove_breakpoint))
        .route("/load-balancers", get(load_balancers))
        .route("/hosts", get(hosts))
        .route("/ledger", get(ledger))
        .route("/world", get(world))
        .fallback(no_such_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(handle)
}

/// A refusal: a status and a sentence that says what was wrong.
struct Refusal {
    status: StatusCode,
    message: String,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.message }))).into_response()
    }
}

impl From<ConsoleError> for Refusal {
    fn from(error: ConsoleError) -> Self {
        let status = match &error {
            ConsoleError::NotFound(_) => StatusCode::NOT_FOUND,
            ConsoleError::Conflict(_) => StatusCode::CONFLICT,
            ConsoleError::Invalid(_) => StatusCode::BAD_REQUEST,
        };
        Self { status, message: error.to_string() }
    }
}

/// Who does it; the reason that EC2 shows follows from it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct By {
    by: ChangedBy,
}

async fn act_on_instance(
    State(handle): State<CloudHandle>,
    Path((id, verb)): Path<(String, String)>,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let answer = match verb.as_str() {
        "stop" => changed(&handle.stop(&id, read::<By>(&body)?.by)?),
        "start" => changed(&handle.start(&id)?),
        "reboot" => changed(&handle.reboot(&id, read::<By>(&body)?.by)?),
        "terminate" => changed(&handle.terminate(&id, read::<By>(&body)?.by)?),
        "impair" => {
            let impairment = handle.impair(&id, &read::<Impair>(&body)?)?;
            json!({ "instanceId": id, "impairment": impairment })
        }
        "vanish" => changed(&handle.vanish(&id)?),
        "hide" => {
            handle.hide(&id, &read::<HideRequest>(&body)?)?;
            json!({ "instanceId": id, "hidden": true })
        }
        "show" => {
            handle.show(&id)?;
            json!({ "instanceId": id, "hidden": false })
        }
        "spot-notice" => {
            let notice = handle.spot_notice(&id, &read::<SpotNoticeRequest>(&body)?)?;
            json!({ "instanceId": id, "spotNotice": notice })
        }
        "rebalance" => {
            let since = handle.rebalance(&id, &read::<RebalanceRequest>(&body)?)?;
            json!({ "instanceId": id, "rebalanceRecommended": since })
        }
        other => {
            return Err(Refusal {
                status: StatusCode::NOT_FOUND,
                message: format!(
                    "{other} is not one of stop, start, reboot, terminate, impair, hide, show, \
                     vanish, spot-notice, rebalance"
                ),
            });
        }
    };
    Ok(Json(answer))
}

fn changed(change: &StateChange) -> Value {
    json!({
        "instanceId": change.instance_id,
        "previousState": change.previous,
        "currentState": change.current,
    })
}

async fn instances(State(handle): State<CloudHandle>) -> Json<Vec<InstanceFacts>> {
    Json(handle.snapshot())
}

async fn schedule_event(
    State(handle): State<CloudHandle>,
    body: Bytes,
) -> Result<impl IntoResponse, Refusal> {
    let event = handle.schedule_event(read_required::<NewEvent>(&body)?)?;
    Ok((StatusCode::CREATED, Json(event)))
}

async fn patch_event(
    State(handle): State<CloudHandle>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<impl IntoResponse, Refusal> {
    Ok(Json(handle.patch_event(&id, read_required::<EventPatch>(&body)?)?))
}

async fn delete_event(
    State(handle): State<CloudHandle>,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    handle.delete_event(&id)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn faults(State(handle): State<CloudHandle>) -> Json<Faults> {
    Json(handle.faults())
}

async fn add_faults(
    State(handle): State<CloudHandle>,
    body: Bytes,
) -> Result<Json<Faults>, Refusal> {
    Ok(Json(handle.add_faults(read_required::<Faults>(&body)?)?))
}

/// Clears all faults, or with `?kind=denied` those of one kind.
async fn clear_faults(
    State(handle): State<CloudHandle>,
    RawQuery(query): RawQuery,
) -> Result<StatusCode, Refusal> {
    let query = query.unwrap_or_default();
    let mut kinds = Vec::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if name != "kind" {
            return Err(Refusal {
                status: StatusCode::BAD_REQUEST,
                message: format!("{name} is not kind"),
            });
        }
        kinds.push(value.into_owned());
    }
    if kinds.is_empty() {
        handle.clear_faults();
    }
    for kind in kinds {
        handle.clear_fault_kind(&kind)?;
    }
    Ok(StatusCode::NO_CONTENT)
}

async fn breakpoints(State(handle): State<CloudHandle>) -> Json<Vec<Breakpoint>> {
    Json(handle.breakpoints())
}

async fn add_breakpoint(
    State(handle): State<CloudHandle>,
    body: Bytes,
) -> Result<impl IntoResponse, Refusal> {
    let added = handle.add_breakpoint(read_required::<NewBreakpoint>(&body)?)?;
    let standing = handle.breakpoints().into_iter().find(|standing| standing.id == added.id());
    Ok((StatusCode::CREATED, Json(standing)))
}

async fn clear_breakpoints(State(handle): State<CloudHandle>) -> StatusCode {
    handle.clear_breakpoints();
    StatusCode::NO_CONTENT
}

async fn remove_breakpoint(
    State(handle): State<CloudHandle>,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    let number = id.parse().map_err(|_| Refusal {
        status: StatusCode::NOT_FOUND,
        message: format!("breakpoint {id} does not exist"),
    })?;
    handle.remove_breakpoint(number)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn load_balancers(State(handle): State<CloudHandle>) -> Json<LoadBalancerFacts> {
    Json(handle.load_balancers())
}

async fn hosts(State(handle): State<CloudHandle>) -> Json<Vec<HostDescription>> {
    Json(handle.hosts())
}

async fn ledger(
    State(handle): State<CloudHandle>,
    RawQuery(query): RawQuery,
) -> Result<Json<LedgerView>, Refusal> {
    Ok(Json(handle.ledger(&ledger_query(query.as_deref().unwrap_or_default())?)))
}

fn ledger_query(text: &str) -> Result<LedgerQuery, Refusal> {
    let mut query = LedgerQuery::default();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        match name.as_ref() {
            "action" => query.action = Some(value.into_owned()),
            "after" => {
                let after = value.parse().map_err(|_| Refusal {
                    status: StatusCode::BAD_REQUEST,
                    message: format!("after={value} is not a sequence number"),
                })?;
                query.after = Some(after);
            }
            other => {
                return Err(Refusal {
                    status: StatusCode::BAD_REQUEST,
                    message: format!("{other} is not one of action, after"),
                });
            }
        }
    }
    Ok(query)
}

async fn world(State(handle): State<CloudHandle>) -> Json<WorldIds> {
    Json(handle.world())
}

async fn no_such_path() -> Refusal {
    Refusal {
        status: StatusCode::NOT_FOUND,
        message: "no such path; there are /instances, /instances/{id}/{verb}, /events, \
                  /events/{id}, /faults, /breakpoints, /breakpoints/{id}, /load-balancers, /hosts, \
                  /ledger and /world"
            .into(),
    }
}

async fn wrong_method() -> Refusal {
    Refusal {
        status: StatusCode::METHOD_NOT_ALLOWED,
        message: "this path does not take this method".into(),
    }
}

/// Reads a body that may be absent; an empty one means all defaults.
fn read<T: DeserializeOwned + Default>(body: &Bytes) -> Result<T, Refusal> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(T::default());
    }
    read_required(body)
}

fn read_required<T: DeserializeOwned>(body: &Bytes) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal {
        status: StatusCode::BAD_REQUEST,
        message: format!("the body is not what this path takes: {error}"),
    })
}
