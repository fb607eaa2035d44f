//! What must be known to decide about one Machine.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use machinist_api::{
    Machine,
    names::{finalizer, label},
    provider_status::ProviderStatus,
};

use crate::{
    cloud::{CloudFailure, Impairment, Instance, InstanceId},
    decision::FieldError,
    disruption::Pool,
    drift::policy::DriftDefaults,
    nodelink::NodeMatch,
    providerspec::{self, ProviderSpecFacts},
};

/// One Machine, its instance and its Node.
pub struct Observed<'a> {
    pub machine: &'a Machine,
    pub cloud: CloudKnowledge,
    pub node: NodeMatch<'a>,
    pub health: HealthKnowledge,
    /// Whether the cloud shows no live instance of the whole cluster: then its word is doubtful.
    pub cloud_shows_nothing: bool,
    /// The tags that the instance is to carry, where they are known.
    pub wanted_tags: BTreeMap<String, String>,
    /// The pool that owns the Machine, if one does.
    pub pool: Option<Pool>,
    /// Whether the pool that owns the Machine is being deleted: then nothing is launched.
    pub owner_is_deleting: bool,
    /// What the MaintenancePolicy of the Machine says of drift.
    pub drift_defaults: DriftDefaults,
    /// What the provider's checks said of a launch; only asked when a launch is wanted.
    pub launch_check: Option<Result<LaunchParameters, CloudFailure>>,
}

/// What the provider's own checks say of the instance.
#[derive(Clone, Debug, PartialEq)]
pub enum HealthKnowledge {
    /// No answer yet since start.
    Loading,
    /// The provider could not be asked; says why.
    Unknown(String),
    Known {
        impairments: Vec<Impairment>,
        /// When the provider takes the instance back, where it gave notice.
        interruption: Option<Timestamp>,
    },
}

/// What the names and filters of a providerSpec stand for, in the provider's own form.
pub type LaunchParameters = serde_json::Value;

/// What the cloud is known to hold for one Machine.
#[derive(Clone, Debug, PartialEq)]
pub enum CloudKnowledge {
    /// No answer yet since start; an event follows when there is one.
    Loading,
    /// The cloud could not be asked. Says nothing about the instance (Rule 9).
    Unknown(CloudFailure),
    /// Every instance that carries the Machine's uid or is bound to it by id.
    Known(Vec<Instance>),
}

/// How far away in time an answer of the cloud can be from the truth.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// How long after a launch the instance may still be invisible to reads.
    pub launch_visibility: SignedDuration,
    /// When the clock that gives the time was last set forward or back, as far as is known.
    pub clock_set_at: Option<Timestamp>,
}

impl Policy {
    /// When something happened at the latest that is on record for `recorded`: across a change of the
    /// clock nobody can tell how much time has passed.
    pub fn at_latest(&self, recorded: Timestamp) -> Timestamp {
        self.clock_set_at.map_or(recorded, |set_at| recorded.max(set_at))
    }

    /// How long an instance that was there must be missing before that is believed. Minutes of
    /// wrong answers were seen; a machine that is replaced a little later costs less.
    pub fn disappearance(&self) -> SignedDuration {
        self.launch_visibility * 5
    }
}

impl Default for Policy {
    fn default() -> Self {
        // EC2 promises no bound; minutes were seen, seconds are usual. Twice as long only delays
        // the deletion of a Machine whose launch was interrupted.
        Self { launch_visibility: SignedDuration::from_secs(60), clock_set_at: None }
    }
}

/// What the Machine itself says about who it is in the cloud.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    pub machine_uid: String,
    pub cluster_id: Option<String>,
    /// The one instance of this Machine, once known.
    pub instance_id: Option<InstanceId>,
    /// The tokens with which a launch may have happened.
    pub client_tokens: Vec<String>,
}

impl Identity {
    pub fn of(machine: &Machine) -> Self {
        let provider_status = provider_status(machine);
        let uid = machine.metadata.uid.clone().unwrap_or_default();
        let tokens = provider_status.launch.map_or_else(Vec::new, |intent| {
            (1..=intent.attempt).map(|attempt| client_token(&uid, attempt)).collect()
        });
        Self {
            machine_uid: uid,
            cluster_id: cluster_id(machine).map(str::to_owned),
            instance_id: instance_of(machine, provider_status.instance_id),
            client_tokens: tokens,
        }
    }
}

/// The token of a launch: the same Machine and attempt give the same token for ever, so that a
/// repeated call, by us or by another leader, cannot double anything (Rule 5).
pub fn client_token(machine_uid: &str, attempt: u32) -> String {
    format!("{machine_uid}-{attempt}")
}

/// The one instance of a Machine, once known: as in `Identity`, without reading the rest of the record.
pub fn bound_instance(machine: &Machine) -> Option<InstanceId> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct OnlyInstance {
        instance_id: Option<String>,
    }
    let raw = machine.status.as_ref().and_then(|status| status.provider_status.as_ref());
    instance_of(machine, raw.and_then(|raw| raw.parse::<OnlyInstance>().ok()?.instance_id))
}

fn instance_of(machine: &Machine, stored: Option<String>) -> Option<InstanceId> {
    let stored = stored.filter(|id| !id.is_empty()).map(InstanceId);
    stored.or_else(|| machine.spec.provider_id.as_deref().and_then(InstanceId::from_provider_id))
}

/// The stored provider status. One that cannot be read is empty here; `validate_record` keeps
/// anybody from acting on that.
pub fn provider_status(machine: &Machine) -> ProviderStatus {
    parse_record(machine).unwrap_or_default()
}

/// Refuses a record that cannot be read: it may hold the id of an instance, so nothing is launched,
/// let go of or overwritten until somebody has corrected it.
pub fn validate_record(machine: &Machine) -> Result<(), FieldError> {
    parse_record(machine).map(|_| ()).map_err(|error| {
        FieldError::new("status.providerStatus", format!("Invalid value: {error}"))
    })
}

fn parse_record(machine: &Machine) -> Result<ProviderStatus, serde_json::Error> {
    let status = machine.status.as_ref();
    let raw = status.and_then(|status| status.provider_status.as_ref());
    raw.map_or_else(|| Ok(ProviderStatus::default()), |raw| raw.parse())
}

pub fn cluster_id(machine: &Machine) -> Option<&str> {
    let labels = machine.metadata.labels.as_ref()?;
    [label::CLUSTER, label::CLUSTER_LEGACY]
        .iter()
        .find_map(|key| labels.get(*key))
        .map(String::as_str)
        .filter(|id| !id.is_empty())
}

pub fn is_deleting(machine: &Machine) -> bool {
    machine.metadata.deletion_timestamp.is_some()
}

pub fn has_finalizer(machine: &Machine) -> bool {
    machine.metadata.finalizers.iter().flatten().any(|name| name == finalizer::MACHINE)
}

/// Whether anything may ever have been launched for this Machine. While it is false, deletion
/// needs neither cloud nor credentials.
pub fn may_have_instance(machine: &Machine) -> bool {
    let provider_status = provider_status(machine);
    provider_status.instance_id.is_some_and(|id| !id.is_empty())
        || provider_status.launch.is_some()
        || is_provisioned(machine)
}

/// The contract's word: addresses or a providerID are there.
pub fn is_provisioned(machine: &Machine) -> bool {
    machine.spec.provider_id.as_deref().is_some_and(|id| !id.is_empty())
        || machine.status.as_ref().is_some_and(|status| !status.addresses.is_empty())
}

/// What a Machine must have before anything can be done for it.
pub fn validate(machine: &Machine) -> Result<ProviderSpecFacts, FieldError> {
    if cluster_id(machine).is_none() {
        return Err(FieldError::new(
            format!("metadata.labels[{}]", label::CLUSTER),
            "Required value: the label must name the cluster",
        ));
    }
    providerspec::read(&machine.spec.provider_spec)
}
