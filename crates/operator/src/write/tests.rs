//! Does a write reach the object that it was decided for, and no other?

use kube::Api;
use machinist_api::{Machine, MachineStatus};
use serde_json::json;

use super::{Precondition, WriteError, status};
use crate::{
    engine::testing::FakeServer,
    testing::{MACHINES, machine, read},
};

fn running() -> MachineStatus {
    MachineStatus { phase: Some("Running".to_owned()), ..MachineStatus::default() }
}

async fn record(server: &FakeServer, known: &Machine) -> Result<Option<Machine>, WriteError> {
    let api = Api::<Machine>::namespaced(server.client(), "ns");
    status(&api, known, known.status.as_ref(), &running(), Precondition::SameObject).await
}

#[tokio::test(start_paused = true)]
async fn an_effect_is_recorded_whoever_wrote_meanwhile() {
    let server = FakeServer::new();
    server.lock().checks_patches = true;
    let known: Machine = read(machine("m", json!({ "resourceVersion": "3" })));
    server.put(MACHINES, machine("m", json!({ "labels": { "touched": "since" } })));
    let written = record(&server, &known).await.unwrap().unwrap();
    assert_eq!(written.status.unwrap().phase.as_deref(), Some("Running"));
    assert_eq!(written.metadata.labels.unwrap()["touched"], "since");
    let api = Api::<Machine>::namespaced(server.client(), "ns");
    let decided = status(&api, &known, None, &running(), Precondition::Observed).await;
    assert!(matches!(decided, Err(WriteError::Conflict { .. })), "{decided:?}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_made_anew_is_not_written_to() {
    let server = FakeServer::new();
    server.lock().checks_patches = true;
    let known: Machine = read(machine("m", json!({ "resourceVersion": "3" })));
    server.put(MACHINES, machine("m", json!({ "uid": "another" })));
    let error = record(&server, &known).await.unwrap_err();
    assert!(matches!(error, WriteError::Gone { .. }), "{error}");
    server.delete(MACHINES, "m");
    let error = record(&server, &known).await.unwrap_err();
    assert!(matches!(error, WriteError::Gone { .. }), "{error}");
}
