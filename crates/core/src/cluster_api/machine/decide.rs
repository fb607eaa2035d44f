//! What is done for a Machine in one pass, and what is said of it.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use machinist_api::{
    cluster_api::{
        API_VERSION, GROUP, Machine, MachineDeprecatedV1Beta1, MachineStatus, condition,
        names::{annotation, condition_type, finalizer, kind, label, machine_phase, reason},
    },
    condition::to_seconds,
};
use serde_json::{Map, Value, json};

use super::{
    conditions, deleting, deprecated, first_words, node,
    observed::{Observed, Policy, is_control_plane, is_paused},
    references,
};
use crate::{
    cluster_api::contract::ownership,
    decision::{Decision, Wait},
    drain,
};

pub type MachineDecision = Decision<Action, MachineStatus>;

/// One of the two objects of a Machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Which {
    Infrastructure,
    Bootstrap,
}

/// One step, in the order in which they are done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Changes the Machine itself, by a merge patch, as it was observed.
    PatchMachine(Value),
    /// Changes an object of a provider.
    PatchExternal {
        which: Which,
        patch: Value,
    },
    /// Changes the Node, as it was observed.
    PatchNode {
        node: String,
        patch: Value,
    },
    /// The Node is emptied: it must not be before this is stored in the status.
    Drain(Vec<drain::Action>),
    DeleteExternal(Which),
    /// The Node goes. When that fails, it is tried again until the time given, or for ever.
    DeleteNode {
        node: String,
        uid: String,
        until: Option<Timestamp>,
    },
    /// Nothing is left.
    RemoveFinalizer,
}

/// What one pass gathers.
pub(super) struct Pass<'a> {
    pub observed: &'a Observed<'a>,
    pub policy: &'a Policy,
    pub now: Timestamp,
    pub status: MachineStatus,
    /// What changes of the Machine's spec.
    pub spec: Map<String, Value>,
    pub metadata: Map<String, Value>,
    pub after: Vec<Action>,
    pub decision: MachineDecision,
    /// What went wrong, in words. Then the generation does not count as observed.
    pub problems: Vec<String>,
}

/// How long to wait for an object that is named and not there; its watch usually tells sooner.
pub(super) const REFERENCE_RECHECK: SignedDuration = SignedDuration::from_secs(30);

/// How soon something that went wrong is looked at again; it is usually mended with an event.
const PROBLEM_RECHECK: SignedDuration = SignedDuration::from_secs(15);

pub fn decide(observed: &Observed<'_>, policy: &Policy, now: Timestamp) -> MachineDecision {
    let machine = observed.machine;
    let stored = machine.status.clone().unwrap_or_default();
    let mut pass = Pass {
        observed,
        policy,
        now,
        status: stored,
        spec: Map::new(),
        metadata: Map::new(),
        after: Vec::new(),
        decision: Decision::settled(MachineStatus::default()),
        problems: Vec::new(),
    };
    if is_paused(observed.cluster, machine) {
        return pass.paused();
    }
    pass.set(condition_type::PAUSED, condition::FALSE, reason::NOT_PAUSED, "");
    pass.own();
    pass.problems.extend(observed.missing_owner.clone());
    references::bootstrap(&mut pass);
    references::infrastructure(&mut pass);
    node::link(&mut pass);
    pass.certificates();
    let stage = observed.is_deleting().then(|| deleting::step(&mut pass));
    conditions::all(&mut pass, stage.as_ref());
    deprecated::all(&mut pass, stage.as_ref());
    pass.finish()
}

impl Pass<'_> {
    pub(super) fn machine(&self) -> &Machine {
        self.observed.machine
    }

    pub(super) fn set(
        &mut self,
        type_: &str,
        status: &str,
        reason: &str,
        message: impl Into<String>,
    ) {
        let new = condition::new(type_, status, reason, message, self.now);
        condition::set(&mut self.status.conditions, new, self.observed.machine.metadata.generation);
    }

    pub(super) fn recheck_in(&mut self, wait: SignedDuration) {
        let at = self.now.checked_add(wait).unwrap_or(Timestamp::MAX);
        self.decision.recheck_by(at);
    }

    /// The wanted providerID: what is stored, or what this pass copies.
    pub(super) fn provider_id(&self) -> Option<String> {
        let new = self.spec.get("providerID").and_then(Value::as_str).map(str::to_owned);
        new.or_else(|| self.machine().spec.provider_id.clone()).filter(|id| !id.is_empty())
    }

    pub(super) fn deprecated(&mut self) -> &mut MachineDeprecatedV1Beta1 {
        self.status.deprecated.get_or_insert_default().v1beta1.get_or_insert_default()
    }

    /// Nothing else is touched while somebody may be moving the objects to another cluster.
    fn paused(mut self) -> MachineDecision {
        let why = match self.observed.cluster.spec.paused {
            Some(true) => "Cluster spec.paused is set to true",
            _ => "Machine has the cluster.x-k8s.io/paused annotation",
        };
        self.set(condition_type::PAUSED, condition::TRUE, reason::PAUSED, why);
        self.decision.waiting.push(Wait::on(reason::PAUSED, why));
        self.decision.status = self.status;
        self.decision
    }

    /// Finalizer, label and, for a Machine of nobody, its Cluster as owner.
    fn own(&mut self) {
        let metadata = &self.observed.machine.metadata;
        let finalizers = metadata.finalizers.clone().unwrap_or_default();
        if !self.observed.is_deleting() && !finalizers.iter().any(|one| one == finalizer::MACHINE) {
            let mut all = finalizers;
            all.push(finalizer::MACHINE.to_owned());
            self.metadata.insert("finalizers".to_owned(), json!(all));
        }
        let cluster = &self.observed.machine.spec.cluster_name;
        let labels = metadata.labels.clone().unwrap_or_default();
        if labels.get(label::CLUSTER_NAME) != Some(cluster) {
            self.metadata.insert("labels".to_owned(), json!({ label::CLUSTER_NAME: cluster }));
        }
        let owners = metadata.owner_references.clone().unwrap_or_default();
        let is_cluster =
            |one: &OwnerReference| ownership::group_of(one) == GROUP && one.kind == kind::CLUSTER;
        // A Machine that came back from a backup belongs to the one that its labels name.
        let belongs = [label::SET_NAME, label::POOL_NAME, label::CONTROL_PLANE_NAME];
        let is_alone = ownership::controller_of(&owners).is_none()
            && !belongs.iter().any(|key| labels.contains_key(*key));
        let wanted = self.cluster_owner();
        let has_it = owners.iter().any(|one| is_cluster(one) && *one == wanted);
        if is_alone && !has_it {
            let mut all: Vec<_> = owners.into_iter().filter(|one| !is_cluster(one)).collect();
            all.push(wanted);
            self.metadata.insert("ownerReferences".to_owned(), json!(all));
        }
    }

    fn cluster_owner(&self) -> OwnerReference {
        let cluster = &self.observed.cluster.metadata;
        OwnerReference {
            api_version: API_VERSION.to_owned(),
            kind: kind::CLUSTER.to_owned(),
            name: cluster.name.clone().unwrap_or_default(),
            uid: cluster.uid.clone().unwrap_or_default(),
            ..Default::default()
        }
    }

    /// When the certificates of a control-plane machine expire: its own word, or that of its bootstrap object.
    fn certificates(&mut self) {
        if !is_control_plane(self.observed.machine) {
            return;
        }
        let of = |annotations: Option<&std::collections::BTreeMap<String, String>>| {
            annotations.and_then(|all| all.get(annotation::CERTIFICATES_EXPIRY)).cloned()
        };
        let own = of(self.observed.machine.metadata.annotations.as_ref());
        let config = self.observed.bootstrap.found();
        let told =
            own.or_else(|| of(config.and_then(|(one, _)| one.metadata.annotations.as_ref())));
        match told.map(|text| (text.parse::<Timestamp>(), text)) {
            None => self.status.certificates_expiry_date = None,
            Some((Ok(at), _)) => self.status.certificates_expiry_date = Some(to_seconds(at)),
            Some((Err(_), text)) => self.problems.push(format!(
                "annotation {} is no time: {text:?}",
                annotation::CERTIFICATES_EXPIRY
            )),
        }
    }

    fn finish(mut self) -> MachineDecision {
        let mut actions = Vec::new();
        let mut patch = Map::new();
        if !self.metadata.is_empty() {
            patch.insert("metadata".to_owned(), Value::Object(self.metadata));
        }
        let changes_spec = !self.spec.is_empty();
        if changes_spec {
            patch.insert("spec".to_owned(), Value::Object(self.spec));
        }
        if !patch.is_empty() {
            actions.push(Action::PatchMachine(Value::Object(patch)));
        }
        actions.extend(std::mem::take(&mut self.after));
        phase(&mut self.status, self.observed, changes_spec, self.now);
        if !self.problems.is_empty() {
            let at = self.now.checked_add(PROBLEM_RECHECK).unwrap_or(Timestamp::MAX);
            self.decision.recheck_by(at);
        } else {
            self.status.observed_generation = self.observed.machine.metadata.generation;
        }
        let silent_until = first_words::silent_until(self.observed, self.now);
        if let Some(until) = silent_until.filter(|_| self.problems.is_empty()) {
            self.decision.recheck_by(until);
            self.status = self.observed.machine.status.clone().unwrap_or_default();
        }
        for problem in self.problems {
            self.decision.waiting.push(Wait::on(reason::INTERNAL_ERROR, problem));
        }
        self.decision.actions = actions;
        self.decision.status = self.status;
        self.decision
    }
}

/// Only for people; nothing is decided by it. The last that holds is the one.
fn phase(status: &mut MachineStatus, observed: &Observed<'_>, changes_spec: bool, now: Timestamp) {
    let is = |latch: Option<bool>| latch == Some(true);
    let initialization = &status.initialization;
    let has_provider_id = observed.machine.spec.provider_id.is_some()
        || (changes_spec && is(initialization.infrastructure_provisioned));
    let mut phase = status.phase.as_deref().unwrap_or(machine_phase::PENDING);
    if is(initialization.bootstrap_data_secret_created)
        && !is(initialization.infrastructure_provisioned)
    {
        phase = machine_phase::PROVISIONING;
    }
    if has_provider_id {
        phase = machine_phase::PROVISIONED;
    }
    if status.node_ref.is_some() && is(initialization.infrastructure_provisioned) {
        phase = machine_phase::RUNNING;
    }
    if condition::is_true(&status.conditions, condition_type::UPDATING) {
        phase = machine_phase::UPDATING;
    }
    if observed.is_deleting() {
        phase = machine_phase::DELETING;
    }
    if status.phase.as_deref() != Some(phase) {
        let phase = phase.to_owned();
        status.phase = Some(phase);
        status.last_updated = Some(to_seconds(now));
    }
}
