//! What every controller is given: the client, the clock, the stores, the clouds.

use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::api::{
    certificates::v1::CertificateSigningRequest,
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use kube::Client;
use machinist_api::{
    Machine, MachineHealthCheck, MachineSet, names::event, openshift_config::Infrastructure,
};
use machinist_core::{
    cluster_api::maintained,
    decision::{Announcement, Severity, Wait},
    machine::Policy,
};

use crate::{
    cloud::Clouds,
    cluster_api,
    engine::{
        env::Env,
        events::{EventRecorder, EventTarget, EventType},
        leadership::Leadership,
        queue::Outcome,
        store::{ObjectKey, Store},
    },
    hold::{self, Hold},
    maintenance::MaintenanceStores,
    metrics::Metrics,
    openshift::OpenShift,
};

/// One of each kind that the operator watches.
#[derive(Clone)]
pub struct Stores {
    pub machines: Store<Machine>,
    pub machine_sets: Store<MachineSet>,
    pub nodes: Store<Node>,
    pub pods: Store<Pod>,
    pub budgets: Store<PodDisruptionBudget>,
    pub infrastructures: Store<Infrastructure>,
    pub health_checks: Store<MachineHealthCheck>,
    /// The signing requests of certificates.
    pub requests: Store<CertificateSigningRequest>,
    /// What OpenShift says of the whole cluster.
    pub openshift: OpenShift,
    /// Whether everything is to stand still.
    pub hold: Hold,
    pub maintenance: MaintenanceStores,
    /// The machines of the other API, where they are looked after.
    pub cluster_api: cluster_api::maintained::Handle,
}

impl Stores {
    /// The Machine that a maintenance names, of whichever API.
    pub fn machine_named(&self, name: &str) -> Option<Arc<Machine>> {
        match maintained::parts(name) {
            Some(_) => self.cluster_api.get()?.machine(name),
            None => self.machines.get(&ObjectKey::new(self.maintenance.namespace.as_str(), name)),
        }
    }

    /// The pool of this name, of whichever API.
    pub fn pool_named(&self, name: &str) -> Option<Arc<MachineSet>> {
        match maintained::parts(name) {
            Some(_) => self.cluster_api.get()?.pool(name),
            None => {
                self.machine_sets.get(&ObjectKey::new(self.maintenance.namespace.as_str(), name))
            }
        }
    }

    /// The Node that a Machine is linked to, if it is still that Node.
    pub fn linked_node(&self, machine: &Machine) -> Option<Arc<Node>> {
        if maintained::is_of_cluster_api(machine) {
            return self.cluster_api.get()?.node(machine.metadata.name.as_deref()?);
        }
        let reference = machine.status.as_ref()?.node_ref.as_ref()?;
        let node = self.nodes.get(&ObjectKey::cluster_wide(reference.name.as_deref()?))?;
        let is_same = reference.uid.is_none() || reference.uid == node.metadata.uid;
        is_same.then_some(node)
    }
}

/// Shared by all controllers of the process.
pub struct Context {
    pub client: Client,
    pub env: Env,
    pub metrics: Metrics,
    pub events: EventRecorder,
    pub stores: Arc<Stores>,
    pub clouds: Clouds,
    /// How long after a launch the instance may still be invisible to reads.
    pub launch_visibility: SignedDuration,
    pub leadership: Leadership,
}

pub type SharedContext = Arc<Context>;

impl Context {
    /// How far away in time an answer of the cloud can be from the truth, by the clock as it is now.
    pub fn policy(&self) -> Policy {
        let clock_set_at = self.env.clock_set_at();
        Policy { launch_visibility: self.launch_visibility, clock_set_at }
    }

    /// Asked right before the cloud is changed: a process that was paused past its lease must not
    /// act when it wakes (S25).
    pub fn require_leadership(&self) -> anyhow::Result<()> {
        anyhow::ensure!(self.leadership.is_held(), "the leases are not held any more");
        Ok(())
    }

    /// Asked right before something is done that a person may have forbidden meanwhile.
    pub fn require_leave(&self) -> anyhow::Result<()> {
        self.require_leadership()?;
        match self.stores.hold.wait() {
            Some(wait) => Err(anyhow::anyhow!(wait.message)),
            None => Ok(()),
        }
    }

    /// What a pass ends with at once while the operator is held.
    pub fn held(&self, controller: &str, key: &ObjectKey) -> Option<Outcome> {
        let wait = self.stores.hold.wait()?;
        self.note_waiting(controller, key, &[wait]);
        Some(Outcome::RecheckAfter(hold::LOOK))
    }

    /// Records what a decision has to tell about an object. `action` is what was being done.
    pub fn announce(&self, target: &EventTarget, action: &str, announcements: &[Announcement]) {
        for announcement in announcements {
            let event_type = match announcement.severity {
                Severity::Normal => EventType::Normal,
                Severity::Warning => EventType::Warning,
            };
            let action = match announcement.reason {
                event::FAILED_VALIDATE => "Validate",
                _ => action,
            };
            self.events.record(
                target,
                event_type,
                announcement.reason,
                action,
                &announcement.message,
            );
        }
    }

    /// Publishes why an object waits: the same words as its condition.
    pub fn note_waiting(&self, controller: &str, key: &ObjectKey, waiting: &[Wait]) {
        let reason = waiting.first().map(|wait| wait.reason);
        self.metrics.set_waiting(controller, &key.to_string(), reason);
        for wait in waiting {
            tracing::debug!(controller, %key, reason = wait.reason, message = wait.message, "waits");
        }
    }
}
