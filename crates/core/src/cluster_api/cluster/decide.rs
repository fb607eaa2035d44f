//! What is done for a Cluster in one pass, and what is said of it.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::DynamicObject;
use machinist_api::{
    RawObject,
    cluster_api::{
        API_VERSION, Cluster, ClusterStatus, condition,
        names::{annotation, cluster_phase, condition_type, finalizer, kind, reason},
    },
    condition::to_seconds,
};
use serde_json::{Map, Value, json};

use super::observed::Observed;
use crate::{
    cluster_api::{
        contract::{
            Contract,
            ownership::{self, AlreadyOwned},
            reading,
        },
        machine::Reference,
    },
    decision::{Announcement, Decision, Wait},
};

pub type ClusterDecision = Decision<Action, ClusterStatus>;

/// One of the two objects of a Cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Infrastructure,
    ControlPlane,
}

/// One step, in the order in which they are done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    PatchCluster(Value),
    PatchExternal {
        part: Part,
        patch: Value,
    },
    /// Makes the kubeconfig out of the cluster's authority, where there is none.
    EnsureKubeconfig {
        server: String,
    },
    DeleteDescendant {
        kind: &'static str,
        name: String,
        uid: String,
    },
    DeleteExternal(Part),
    RemoveFinalizer,
}

/// After so long without an answer the connection is said to be down.
const PROBE_GRACE: SignedDuration = SignedDuration::from_secs(50);
/// How soon an authority or a provider's object is looked for again.
pub(super) const RECHECK: SignedDuration = SignedDuration::from_secs(30);

pub(super) struct Pass<'a> {
    pub(super) observed: &'a Observed<'a>,
    pub(super) now: Timestamp,
    status: ClusterStatus,
    metadata: Map<String, Value>,
    spec: Map<String, Value>,
    pub(super) after: Vec<Action>,
    pub(super) decision: ClusterDecision,
    problems: Vec<String>,
}

pub fn decide(observed: &Observed<'_>, now: Timestamp) -> ClusterDecision {
    let cluster = observed.cluster;
    let mut pass = Pass {
        observed,
        now,
        status: cluster.status.clone().unwrap_or_default(),
        metadata: Map::new(),
        spec: Map::new(),
        after: Vec::new(),
        decision: Decision::settled(ClusterStatus::default()),
        problems: Vec::new(),
    };
    let annotations = cluster.metadata.annotations.as_ref();
    let is_paused = cluster.spec.paused == Some(true)
        || annotations.is_some_and(|all| all.contains_key(annotation::PAUSED));
    if is_paused {
        let why =
            "Cluster spec.paused is set to true, or it has the annotation cluster.x-k8s.io/paused";
        pass.set(condition_type::PAUSED, condition::TRUE, reason::PAUSED, why);
        pass.decision.waiting.push(Wait::on(reason::PAUSED, why));
        pass.decision.status = pass.status;
        return pass.decision;
    }
    pass.set(condition_type::PAUSED, condition::FALSE, reason::NOT_PAUSED, "");
    pass.topology();
    let is_deleting = cluster.metadata.deletion_timestamp.is_some();
    let finalizers = cluster.metadata.finalizers.clone().unwrap_or_default();
    if !is_deleting && !finalizers.iter().any(|one| one == finalizer::CLUSTER) {
        let mut all = finalizers;
        all.push(finalizer::CLUSTER.to_owned());
        pass.metadata.insert("finalizers".to_owned(), json!(all));
    }
    pass.infrastructure();
    pass.control_plane();
    if is_deleting {
        pass.delete();
    } else {
        pass.set(condition_type::DELETING, condition::FALSE, reason::NOT_DELETING, "");
        pass.kubeconfig();
    }
    pass.remote();
    pass.finish(is_deleting)
}

/// Says on the Cluster what could not be done for it. Of the connection it is said why there is none.
pub fn say_failure(
    decision: &mut ClusterDecision,
    cluster: &Cluster,
    action: &Action,
    why: &str,
    now: Timestamp,
) {
    let words = format!("failed to {}: {why}", action.words());
    let conditions = &mut decision.status.conditions;
    let probe = condition::find(conditions, condition_type::REMOTE_CONNECTION_PROBE);
    if matches!(action, Action::EnsureKubeconfig { .. })
        && let Some(probe) = probe.filter(|probe| probe.status == condition::UNKNOWN)
    {
        let (type_, reason) = (probe.type_.clone(), probe.reason.clone());
        let message = format!("{}: {words}", probe.message);
        let new = condition::new(&type_, condition::UNKNOWN, &reason, message, now);
        condition::set(conditions, new, cluster.metadata.generation);
    }
    decision.announcements.push(Announcement::warning(reason::INTERNAL_ERROR, &words));
    decision.waiting.push(Wait::on(reason::INTERNAL_ERROR, words));
}

impl Action {
    /// What it does, in words.
    fn words(&self) -> String {
        match self {
            Self::PatchCluster(_) => "write its own fields".to_owned(),
            Self::PatchExternal { part, .. } => format!("take over {}", part.words()),
            Self::EnsureKubeconfig { .. } => "make its kubeconfig".to_owned(),
            Self::DeleteDescendant { kind, name, .. } => format!("delete {kind} {name}"),
            Self::DeleteExternal(part) => format!("delete {}", part.words()),
            Self::RemoveFinalizer => "let it go".to_owned(),
        }
    }
}

impl Part {
    fn words(self) -> &'static str {
        match self {
            Self::Infrastructure => "the object of its infrastructure",
            Self::ControlPlane => "the object of its control plane",
        }
    }
}

impl<'a> Pass<'a> {
    pub(super) fn set(
        &mut self,
        type_: &str,
        status: &str,
        reason: &str,
        message: impl Into<String>,
    ) {
        let new = condition::new(type_, status, reason, message, self.now);
        let generation = self.observed.cluster.metadata.generation;
        condition::set(&mut self.status.conditions, new, generation);
    }

    /// Nobody may believe that a class is carried out because nothing complains.
    fn topology(&mut self) {
        const TYPE: &str = condition_type::TOPOLOGY_RECONCILED;
        const WORDS: &str = "spec.topology is not carried out: Machinist has no controller of ClusterClasses, so that what \
                             is changed there changes nothing. The Cluster and its Machines are looked after as they are";
        let known = condition::find(&self.status.conditions, TYPE);
        let is_told = known.is_some_and(|known| known.reason == reason::NOT_CARRIED_OUT);
        match &self.observed.cluster.spec.topology {
            None if is_told => condition::remove(&mut self.status.conditions, TYPE),
            None => {}
            Some(_) => {
                if !is_told {
                    let told = Announcement::warning(reason::NOT_CARRIED_OUT, WORDS);
                    self.decision.announcements.push(told);
                }
                self.set(TYPE, condition::FALSE, reason::NOT_CARRIED_OUT, WORDS);
            }
        }
    }

    /// The object, handed over to the Cluster.
    fn look(&mut self, part: Part) -> Option<(&'a DynamicObject, Contract)> {
        let known = match part {
            Part::Infrastructure => self.observed.infrastructure,
            Part::ControlPlane => self.observed.control_plane,
        };
        match known {
            Reference::NotDefined => None,
            Reference::Missing => {
                let at = self.now.checked_add(RECHECK).unwrap_or(self.now);
                self.decision.recheck_by(at);
                None
            }
            Reference::Unreadable(why) => {
                self.problems.push(why.to_owned());
                None
            }
            Reference::Found { object, contract } => {
                let owner = self.owner();
                match ownership::hand_over(&object.metadata, &owner, &owner.name, None) {
                    Ok(None) => {}
                    Ok(Some(patch)) => self.after.push(Action::PatchExternal { part, patch }),
                    Err(other) => {
                        self.problems.push(not_ours(object, &other));
                        return None;
                    }
                }
                Some((object, contract))
            }
        }
    }

    /// The Cluster, as the controller of its objects.
    pub(super) fn owner(&self) -> OwnerReference {
        let cluster = &self.observed.cluster.metadata;
        OwnerReference {
            api_version: API_VERSION.to_owned(),
            kind: kind::CLUSTER.to_owned(),
            name: cluster.name.clone().unwrap_or_default(),
            uid: cluster.uid.clone().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    fn infrastructure(&mut self) {
        const TYPE: &str = condition_type::INFRASTRUCTURE_READY;
        let Some(reference) = &self.observed.cluster.spec.infrastructure_ref else {
            self.status.initialization.infrastructure_provisioned = Some(true);
            return self.set(TYPE, condition::TRUE, "NoInfrastructureReference", "");
        };
        let kind = reference.kind.clone();
        let was_there = self.status.initialization.infrastructure_provisioned == Some(true);
        let Some((object, contract)) = self.look(Part::Infrastructure) else {
            return match (self.observed.infrastructure, was_there) {
                (Reference::Missing, true) => {
                    let message = format!("{kind} has been deleted");
                    self.set(TYPE, condition::FALSE, reason::OBJECT_DELETED, message);
                }
                (Reference::Missing, false) => {
                    let message = format!("{kind} does not exist");
                    self.set(TYPE, condition::FALSE, reason::OBJECT_DOES_NOT_EXIST, message);
                }
                (Reference::Unreadable(why), _) => {
                    self.set(TYPE, condition::UNKNOWN, reason::INTERNAL_ERROR, why);
                }
                // Another's: whatever it says is not said of this Cluster.
                (Reference::Found { .. }, _) => {
                    let why = self.problems.last().cloned().unwrap_or_default();
                    self.set(TYPE, condition::UNKNOWN, reason::INTERNAL_ERROR, why);
                }
                (Reference::NotDefined, _) => {}
            };
        };
        if object.metadata.deletion_timestamp.is_none()
            && reading::is_provisioned(&object.data, contract)
        {
            self.status.initialization.infrastructure_provisioned = Some(true);
            self.endpoint(object);
            let domains = reading::failure_domains(&object.data, contract);
            self.status.failure_domains =
                domains.iter().filter_map(|one| RawObject::from_value(one).ok()).collect();
        }
        let is_there = self.status.initialization.infrastructure_provisioned == Some(true);
        match reading::ready_condition(&object.data) {
            Err(why) => {
                self.set(TYPE, condition::UNKNOWN, reason::INVALID_CONDITION_REPORTED, why);
            }
            Ok(Some(told)) => {
                self.set(TYPE, &told.status.clone(), &told.reason.clone(), told.message)
            }
            Ok(None) if is_there => self.set(TYPE, condition::TRUE, reason::READY, ""),
            Ok(None) => {
                let field = reading::provisioned_field(contract);
                let message = format!("{kind} {field} is false");
                self.set(TYPE, condition::FALSE, reason::NOT_READY, message);
            }
        }
    }

    /// Where the API server is, as the infrastructure says it; never changed once it is known.
    fn endpoint(&mut self, object: &DynamicObject) {
        let known = &self.observed.cluster.spec.control_plane_endpoint;
        let told = object.data.pointer("/spec/controlPlaneEndpoint");
        let host = told.and_then(|one| one["host"].as_str()).filter(|host| !host.is_empty());
        let port = told.and_then(|one| one["port"].as_i64()).filter(|port| *port > 0);
        if known.host.is_none()
            && let (Some(host), Some(port)) = (host, port)
        {
            let endpoint = json!({ "host": host, "port": port });
            self.spec.insert("controlPlaneEndpoint".to_owned(), endpoint);
        }
    }

    fn control_plane(&mut self) {
        const TYPE: &str = condition_type::CONTROL_PLANE_INITIALIZED;
        let was_there = condition::is_true(&self.status.conditions, TYPE);
        let has_provider = self.observed.cluster.spec.control_plane_ref.is_some();
        let found = self.look(Part::ControlPlane);
        if let Some((object, _)) = found
            && object.metadata.deletion_timestamp.is_none()
        {
            self.endpoint(object);
        }
        let is_there = was_there
            || match found {
                Some((object, contract)) => {
                    reading::is_control_plane_initialized(&object.data, contract)
                }
                None => !has_provider && self.observed.has_control_plane_node,
            };
        if is_there {
            // As Cluster API has it: of a control plane without a provider only the condition tells.
            if has_provider {
                self.status.initialization.control_plane_initialized = Some(true);
            }
            return self.set(TYPE, condition::TRUE, reason::INITIALIZED, "");
        }
        let message = match (has_provider, self.observed.control_plane) {
            (true, Reference::Unreadable(why)) => why.to_owned(),
            (true, Reference::Missing) => "the control plane object does not exist".to_owned(),
            (true, Reference::Found { .. }) if found.is_none() => {
                self.problems.last().cloned().unwrap_or_default()
            }
            (true, _) => "Control plane not yet initialized".to_owned(),
            (false, _) => {
                "Waiting for the first control plane machine to have status.nodeRef set".to_owned()
            }
        };
        self.set(TYPE, condition::FALSE, reason::NOT_INITIALIZED, message);
    }

    /// A control-plane provider writes its own.
    fn kubeconfig(&mut self) {
        let spec = &self.observed.cluster.spec;
        let known = &spec.control_plane_endpoint;
        let told = self.spec.get("controlPlaneEndpoint");
        let host = told.and_then(|one| one["host"].as_str()).map(str::to_owned);
        let port = told.and_then(|one| one["port"].as_i64());
        let host = known.host.clone().or(host);
        let port = known.port.map(i64::from).or(port);
        let (Some(host), Some(port)) = (host, port) else { return };
        let is_wanted = spec.control_plane_ref.is_none() && !self.observed.remote.is_up;
        if is_wanted {
            let host = if host.contains(':') { format!("[{host}]") } else { host };
            self.after.push(Action::EnsureKubeconfig { server: format!("https://{host}:{port}") });
            if self.observed.remote.last_success.is_none() {
                let at = self.now.checked_add(RECHECK).unwrap_or(self.now);
                self.decision.recheck_by(at);
            }
        }
    }

    fn remote(&mut self) {
        const TYPE: &str = condition_type::REMOTE_CONNECTION_PROBE;
        let remote = self.observed.remote;
        if remote.is_up {
            return self.set(TYPE, condition::TRUE, reason::PROBE_SUCCEEDED, "");
        }
        let Some(last) = remote.last_success else {
            let message = "Remote connection not established yet";
            return self.set(TYPE, condition::UNKNOWN, reason::PROBE_FAILED, message);
        };
        let down_at = last.checked_add(PROBE_GRACE).unwrap_or(Timestamp::MAX);
        if self.now < down_at {
            return self.decision.recheck_by(down_at);
        }
        let message = format!("Last successful probe at {}", to_seconds(last).0);
        self.set(TYPE, condition::FALSE, reason::PROBE_FAILED, message);
    }

    fn finish(mut self, is_deleting: bool) -> ClusterDecision {
        let mut patch = Map::new();
        if !self.metadata.is_empty() {
            patch.insert("metadata".to_owned(), Value::Object(self.metadata));
        }
        let has_endpoint = self.observed.cluster.spec.control_plane_endpoint.host.is_some()
            || self.spec.contains_key("controlPlaneEndpoint");
        if !self.spec.is_empty() {
            patch.insert("spec".to_owned(), Value::Object(self.spec));
        }
        if !patch.is_empty() {
            self.decision.actions.push(Action::PatchCluster(Value::Object(patch)));
        }
        self.decision.actions.append(&mut self.after);
        let spec = &self.observed.cluster.spec;
        let is_there = self.status.initialization.infrastructure_provisioned == Some(true);
        let mut phase = self.status.phase.as_deref().unwrap_or(cluster_phase::PENDING);
        if spec.infrastructure_ref.is_some() {
            phase = cluster_phase::PROVISIONING;
        }
        if is_there && has_endpoint {
            phase = cluster_phase::PROVISIONED;
        }
        if is_deleting {
            phase = cluster_phase::DELETING;
        }
        self.status.phase = Some(phase.to_owned());
        if self.problems.is_empty() {
            self.status.observed_generation = self.observed.cluster.metadata.generation;
        } else {
            let at = self.now.checked_add(RECHECK).unwrap_or(self.now);
            self.decision.recheck_by(at);
        }
        for problem in self.problems {
            self.decision.waiting.push(Wait::on(reason::INTERNAL_ERROR, problem));
        }
        self.decision.status = self.status;
        self.decision
    }
}

pub(super) fn kind_of(object: &DynamicObject) -> &str {
    object.types.as_ref().map_or("object", |types| types.kind.as_str())
}

pub(super) fn not_ours(object: &DynamicObject, other: &AlreadyOwned) -> String {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    format!("{} {name} is not this Cluster's: {other}", kind_of(object))
}
