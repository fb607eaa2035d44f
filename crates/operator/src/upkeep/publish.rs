//! Tells OpenShift how the operator is, in the ClusterOperator `machine-api`. A cluster that has no
//! such kind is told nothing; the ConfigMap of the operator's status is for all.

use std::sync::Arc;

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use kube::{Api, api::PostParams};
use machinist_api::{
    Machine, MachineSet,
    names::annotation,
    openshift_config::{ClusterOperator, ClusterOperatorSpec},
};
use machinist_core::{
    decision::Severity,
    upkeep::{
        Mode, UpkeepDecision,
        cluster_operator::{self, Facts, Judged, Outcome},
        workers,
    },
};

use super::{Upkeep, observe::Observation};
use crate::{
    context::Context,
    engine::{
        events::{EventTarget, EventType},
        store::ObjectKey,
    },
    write::{self, Precondition},
};

/// While the first workers are missing, they are counted this often.
const WORKERS_LOOK: SignedDuration = SignedDuration::from_secs(5);

/// The security context that our pods run under.
const SCC: &str = "restricted-v2";

/// Says how it is, and when that changes by time alone.
pub async fn publish(
    context: &Context,
    upkeep: &Upkeep,
    observation: &Observation,
    decision: &UpkeepDecision,
    problems: &[String],
) -> anyhow::Result<Option<Timestamp>> {
    let api = Api::<ClusterOperator>::all(context.client.clone());
    let key = ObjectKey::cluster_wide(cluster_operator::NAME);
    let operator = match upkeep.stores.cluster_operators.get(&key) {
        Some(operator) => operator,
        None if !has_kind(context).await? => return Ok(None),
        None => create(context, upkeep, &api, &key).await?,
    };
    let operator = annotated(context, upkeep, &api, operator).await?;
    let now = context.env.now();
    let stored = operator.status.as_ref();
    let mut recheck = None;
    let mut outcome = outcome(decision, problems);
    if outcome == Outcome::Done
        && observation.mode == Mode::Managed
        && cluster_operator::is_initializing(stored)
        && let Some(missing) = missing_workers(context, upkeep)
    {
        outcome = Outcome::Failed(missing);
        recheck = now.checked_add(WORKERS_LOOK).ok();
    }
    let facts = Facts {
        mode: observation.mode,
        namespace: &upkeep.namespace,
        release: &upkeep.args.release_version,
        outcome,
        note: decision.note.as_deref(),
    };
    let Judged { status, announcements, recheck: judged } =
        cluster_operator::judge(stored, &facts, now);
    context.require_leadership()?;
    let written = write::status(&api, &operator, stored, &status, Precondition::Observed).await?;
    if let Some(written) = written {
        upkeep.stores.cluster_operators.apply_written(written);
    }
    let target = EventTarget::of(&*operator);
    for told in announcements {
        let event_type = match told.severity {
            Severity::Normal => EventType::Normal,
            Severity::Warning => EventType::Warning,
        };
        upkeep.events.record(&target, event_type, told.reason, "Sync", &told.message);
    }
    Ok([recheck, judged].into_iter().flatten().min())
}

fn outcome(decision: &UpkeepDecision, problems: &[String]) -> Outcome {
    if !problems.is_empty() {
        Outcome::Failed(problems.join("; "))
    } else if !decision.waiting.is_empty() || !decision.actions.is_empty() {
        // What was just written is looked at again before anybody calls it good.
        Outcome::Waiting
    } else {
        Outcome::Done
    }
}

fn missing_workers(context: &Context, upkeep: &Upkeep) -> Option<String> {
    let sets = context.stores.machine_sets.list_in(&upkeep.namespace);
    let machines = context.stores.machines.list_in(&upkeep.namespace);
    let sets: Vec<&MachineSet> = sets.iter().map(AsRef::as_ref).collect();
    let machines: Vec<&Machine> = machines.iter().map(AsRef::as_ref).collect();
    workers::missing(&sets, &machines)
}

/// Asked only while there is no such object.
async fn has_kind(context: &Context) -> anyhow::Result<bool> {
    match context.client.list_api_group_resources("config.openshift.io/v1").await {
        Ok(known) => Ok(known.resources.iter().any(|one| one.name == "clusteroperators")),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => {
            Err(anyhow::Error::new(error).context("failed to ask for the kinds of OpenShift"))
        }
    }
}

async fn create(
    context: &Context,
    upkeep: &Upkeep,
    api: &Api<ClusterOperator>,
    key: &ObjectKey,
) -> anyhow::Result<Arc<ClusterOperator>> {
    context.require_leadership()?;
    let operator = ClusterOperator::new(&key.name, ClusterOperatorSpec {});
    let written = api
        .create(&PostParams::default(), &operator)
        .await
        .with_context(|| format!("failed to make ClusterOperator {key}"))?;
    upkeep.stores.cluster_operators.apply_written(written.clone());
    Ok(Arc::new(written))
}

async fn annotated(
    context: &Context,
    upkeep: &Upkeep,
    api: &Api<ClusterOperator>,
    operator: Arc<ClusterOperator>,
) -> anyhow::Result<Arc<ClusterOperator>> {
    let metadata = &operator.metadata;
    let present = metadata.annotations.as_ref().and_then(|all| all.get(annotation::REQUIRED_SCC));
    if present.is_some_and(|value| value == SCC) {
        return Ok(operator);
    }
    context.require_leadership()?;
    let (name, uid) = (cluster_operator::NAME, metadata.uid.as_deref().unwrap_or_default());
    let written = write::annotation(api, name, uid, None, annotation::REQUIRED_SCC, SCC).await?;
    upkeep.stores.cluster_operators.apply_written(written.clone());
    Ok(Arc::new(written))
}
