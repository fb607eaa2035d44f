//! Where does the operator say how it is doing? In a ConfigMap, as conditions of meta/v1.
//!
//! The leader writes it, and only when something changed. What it says is decided in core; what is
//! wrong with the operator's own objects is told to OpenShift's ClusterOperator too.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::{
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta},
};
use kube::{Api, api::PostParams};
use machinist_core::{
    cloud::CloudFailure,
    operator_status::{
        Approval, CONFIG_MAP, ClusterApi, KEY, Observed, OperatorStatus, Reachability, ViewState,
        conditions, needs_attention, published,
    },
};
use serde_json::json;

use crate::{
    cloud::access::ViewHealth,
    context::Context,
    engine::events::{EventTarget, EventType},
    sweep::Findings,
    upkeep,
    write::{self, Precondition},
};

/// How often the facts are looked at; all of them are in memory. Doubled, people learn of a cloud
/// that does not answer that much later.
const PERIOD: Duration = Duration::from_secs(5);

/// Keeps the ConfigMap true.
pub struct StatusPublisher {
    context: Arc<Context>,
    namespace: String,
    findings: Arc<Findings>,
    upkeep: Arc<upkeep::Facts>,
    /// Whether this process was told to approve certificates.
    approves_certificates: bool,
    /// As we last read or wrote it.
    known: Option<ConfigMap>,
}

impl StatusPublisher {
    pub fn new(context: &Arc<Context>, namespace: &str, findings: &Arc<Findings>) -> Self {
        Self {
            context: Arc::clone(context),
            namespace: namespace.to_owned(),
            findings: Arc::clone(findings),
            upkeep: Arc::default(),
            approves_certificates: true,
            known: None,
        }
    }

    /// Tells also of the upkeep, and of the approval of certificates.
    #[must_use]
    pub fn telling_of(self, upkeep: Arc<upkeep::Facts>, approves_certificates: bool) -> Self {
        Self { upkeep, approves_certificates, ..self }
    }

    /// Publishes for as long as the process leads.
    pub async fn run(mut self) -> anyhow::Result<()> {
        let mut leadership = self.context.leadership.clone();
        loop {
            if !leadership.is_held() {
                // Another leader may write meanwhile.
                self.known = None;
                leadership.held().await;
            }
            if let Err(error) = self.publish().await {
                self.known = None;
                tracing::warn!(error = format!("{error:#}"), "publishing the status failed");
            }
            self.context.env.sleep(PERIOD).await;
        }
    }

    /// Writes what is so, if it is not written already.
    pub async fn publish(&mut self) -> anyhow::Result<()> {
        let api = Api::<ConfigMap>::namespaced(self.context.client.clone(), &self.namespace);
        if self.known.is_none() {
            self.known = api.get_opt(CONFIG_MAP).await?;
        }
        let before = self.known.as_ref().map(stored).unwrap_or_default();
        let observed = self.observe();
        let now = self.context.env.now();
        let status = published(&observed, conditions(&observed, &before.conditions, now));
        if self.known.is_some() && status == before {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(&status)?;
        self.context.require_leadership()?;
        let written = match &self.known {
            Some(known) => {
                let patch = json!({ "data": { KEY: text } });
                write::object(&api, known, patch, Precondition::Observed).await?
            }
            None => api.create(&PostParams::default(), &new_config_map(text)).await?,
        };
        self.tell(&written, &before.conditions, &status.conditions);
        self.known = Some(written);
        Ok(())
    }

    fn observe(&self) -> Observed {
        let approval = match self.context.stores.openshift.approval_standby() {
            _ if !self.approves_certificates => Approval::SwitchedOff,
            Some(wait) => Approval::Standby(wait),
            None => Approval::Active,
        };
        let cluster_api = match self.context.stores.cluster_api.get() {
            None => ClusterApi::SwitchedOff,
            Some(known) if known.leadership.is_held() => ClusterApi::Active,
            Some(known) => ClusterApi::Standby(known.leadership.obstacle()),
        };
        Observed {
            cluster_api,
            upkeep_problems: self.upkeep.problems(),
            approval,
            hold: self.context.stores.hold.wait(),
            refused_requests: self.context.metrics.refusals().list(),
            ..observe(&self.context, &self.findings)
        }
    }

    fn tell(&self, config_map: &ConfigMap, before: &[Condition], after: &[Condition]) {
        let target = EventTarget::of(config_map);
        for (condition, event_type) in turns(before, after) {
            let message = format!("{}: {}", condition.type_, condition.message);
            let events = &self.context.events;
            events.record(&target, event_type, &condition.reason, "Observe", &message);
        }
    }
}

/// The conditions that turned bad, or good again.
fn turns<'a>(before: &[Condition], after: &'a [Condition]) -> Vec<(&'a Condition, EventType)> {
    let was_bad = |condition: &Condition| {
        before.iter().any(|known| known.type_ == condition.type_ && needs_attention(known))
    };
    after
        .iter()
        .filter_map(|condition| match (was_bad(condition), needs_attention(condition)) {
            (false, true) => Some((condition, EventType::Warning)),
            (true, false) => Some((condition, EventType::Normal)),
            (false, false) | (true, true) => None,
        })
        .collect()
}

/// Something else in the key is written over: it is ours.
fn stored(config_map: &ConfigMap) -> OperatorStatus {
    let text = config_map.data.as_ref().and_then(|data| data.get(KEY));
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn new_config_map(text: String) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(CONFIG_MAP.to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([(KEY.to_owned(), text)])),
        ..ConfigMap::default()
    }
}

fn observe(context: &Context, findings: &Findings) -> Observed {
    let failing = |failure: CloudFailure| Reachability::Failing {
        class: failure.class,
        message: failure.message,
    };
    let view = |health: ViewHealth| ViewState {
        name: health.key.to_string(),
        endpoint: health.endpoint,
        reachability: match (health.failure, health.is_listed) {
            (Some(failure), _) => failing(failure),
            (None, true) => Reachability::Reachable,
            (None, false) => Reachability::NotAskedYet,
        },
    };
    let unreachable = context.clouds.unreachable().into_iter().map(|(key, failure)| ViewState {
        name: key.to_string(),
        endpoint: context.clouds.endpoint(),
        reachability: failing(failure),
    });
    let missing = context.clouds.missing_permissions().list();
    Observed {
        views: context.clouds.health().into_iter().map(view).chain(unreachable).collect(),
        missing_permissions: missing.into_iter().map(|(_, permission)| permission).collect(),
        orphans: findings.orphans(),
        ..Observed::default()
    }
}

#[cfg(test)]
mod tests;
