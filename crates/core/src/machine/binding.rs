//! Which instance is a Machine's: by the stored id, then by the uid tag, never by name (Rule 5).

use jiff::Timestamp;
use machinist_api::{Machine, names::tag};

use super::observed::{Identity, Policy, is_provisioned, provider_status};
use crate::cloud::Instance;

/// What the cloud holds for a Machine.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Binding<'a> {
    /// Nothing was ever launched, or the launch's answer was lost: the token tells.
    Nothing,
    One(&'a Instance),
    /// It may be too early to see it.
    NotVisibleYet {
        until: Timestamp,
    },
    /// It was there; `seen` is what the cloud still shows of it.
    Gone {
        seen: Option<&'a Instance>,
    },
    /// What is stored contradicts the cloud; nothing is touched.
    Conflict(String),
}

/// Finds the one instance of a Machine: by the stored id, then by the uid tag, never by name
/// (Rule 5).
pub(super) fn bind<'a>(
    machine: &Machine,
    instances: &'a [Instance],
    policy: &Policy,
    now: Timestamp,
) -> Binding<'a> {
    let identity = Identity::of(machine);
    let by_uid = || {
        let mut ours: Vec<&Instance> = instances
            .iter()
            .filter(|instance| instance.machine_uid() == Some(identity.machine_uid.as_str()))
            .collect();
        ours.sort_by_key(|instance| (!instance.state.is_live(), &instance.id));
        ours.first().copied()
    };
    let Some(id) = &identity.instance_id else {
        if is_provisioned(machine) && machine.spec.provider_id.is_some() {
            return Binding::Conflict(format!(
                "spec.providerID: Invalid value: {:?}: names no instance",
                machine.spec.provider_id.as_deref().unwrap_or_default()
            ));
        }
        return match by_uid() {
            Some(instance) if instance.state.is_live() => Binding::One(instance),
            Some(instance) => Binding::Gone { seen: Some(instance) },
            None if is_provisioned(machine) => Binding::Gone { seen: None },
            None => Binding::Nothing,
        };
    };
    match instances.iter().find(|instance| instance.id == *id) {
        Some(instance) => match instance.machine_uid() {
            Some(other) if other != identity.machine_uid => {
                Binding::Conflict(format!("instance {id} belongs to another machine, uid {other}"))
            }
            None if !instance
                .is_owned_by_cluster(identity.cluster_id.as_deref().unwrap_or_default()) =>
            {
                Binding::Conflict(format!(
                    "instance {id} lacks the tag {}={}",
                    tag::cluster(identity.cluster_id.as_deref().unwrap_or_default()),
                    tag::OWNED
                ))
            }
            _ if instance.state.is_live() => Binding::One(instance),
            _ => Binding::Gone { seen: Some(instance) },
        },
        None => {
            let visible_from = provider_status(machine).launch.and_then(|intent| {
                policy.at_latest(intent.since).checked_add(policy.launch_visibility).ok()
            });
            match visible_from {
                Some(until) if until > now => Binding::NotVisibleYet { until },
                _ => Binding::Gone { seen: None },
            }
        }
    }
}
