//! How does a person keep maintenance from beginning, and let it begin again?
//!
//! A pause is an annotation whose value says why, and who paused it when; a policy has fields for it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use machinist_api::names::annotation;
use serde_json::json;

use super::{Change, Object, Refusal, Write, annotate};
use crate::overview::objects::Objects;

/// As the schema of a policy says.
const REASON_MAX: usize = 1024;

#[derive(Clone, Debug)]
pub enum Wish {
    Pause { reason: String },
    Resume,
}

/// What is paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Cluster,
    Machine(String),
    Pool(String),
    Policy(String),
}

/// Who pauses, and when.
#[derive(Clone, Debug)]
pub struct Signature {
    pub by: String,
    pub at: Timestamp,
}

impl Place {
    /// What it is called in a sentence.
    pub fn title(&self) -> String {
        match self {
            Self::Cluster => "the whole cluster".to_owned(),
            Self::Machine(name) => format!("machine {name}"),
            Self::Pool(name) => format!("pool {name}"),
            Self::Policy(name) => format!("the machines of policy {name}"),
        }
    }

    /// The object that carries the pause, and the pause.
    fn look_up<'a>(&self, objects: &Objects<'a>) -> Result<Found<'a>, Refusal> {
        let missing = |kind: &str, name: &str, place: String| Refusal {
            what: format!("there is no {kind} {name}{place}"),
            hint: "`machinist status` lists machines and pools, \
                   `kubectl get maintenancepolicies` policies"
                .to_owned(),
            cause: super::Cause::NotFound,
        };
        let here = || format!(" in namespace {}", objects.namespace);
        let is = |metadata: &ObjectMeta, name: &String| metadata.name.as_ref() == Some(name);
        match self {
            Self::Cluster => {
                let home = objects
                    .home
                    .ok_or_else(|| missing("namespace", objects.namespace, String::new()))?;
                Ok(annotated(Object::Namespace, &home.metadata))
            }
            Self::Machine(name) => {
                let found = objects.machines.iter().copied().find(|one| is(&one.metadata, name));
                let machine = found.ok_or_else(|| missing("machine", name, here()))?;
                Ok(annotated(Object::Machine, &machine.metadata))
            }
            Self::Pool(name) => {
                let found = objects.sets.iter().copied().find(|one| is(&one.metadata, name));
                let set = found.ok_or_else(|| missing("machineset", name, here()))?;
                Ok(annotated(Object::Pool, &set.metadata))
            }
            Self::Policy(name) => {
                let found = objects.policies.iter().copied().find(|one| is(&one.metadata, name));
                let policy =
                    found.ok_or_else(|| missing("maintenancepolicy", name, String::new()))?;
                let pause = (policy.spec.paused == Some(true))
                    .then(|| words(policy.spec.pause_reason.as_deref().unwrap_or_default()));
                Ok(Found { on: Object::Policy, metadata: &policy.metadata, pause })
            }
        }
    }

    /// Why it is paused; `None` where it is not, or is not there.
    pub fn pause(&self, objects: &Objects<'_>) -> Option<String> {
        self.look_up(objects).ok()?.pause
    }
}

/// An object that may carry a pause.
struct Found<'a> {
    on: Object,
    metadata: &'a ObjectMeta,
    /// Why it is paused.
    pause: Option<String>,
}

/// Why an object with this metadata is paused by its annotation.
pub fn of(metadata: &ObjectMeta) -> Option<String> {
    annotated(Object::Machine, metadata).pause
}

fn annotated(on: Object, metadata: &ObjectMeta) -> Found<'_> {
    let annotations = metadata.annotations.as_ref();
    let pause = annotations.and_then(|all| all.get(annotation::MAINTENANCE_PAUSED));
    Found { on, metadata, pause: pause.map(|text| words(text)) }
}

fn words(text: &str) -> String {
    if text.is_empty() || text == "true" { "nobody said why".to_owned() } else { text.to_owned() }
}

pub fn decide(
    wish: &Wish,
    place: &Place,
    objects: &Objects<'_>,
    signature: &Signature,
) -> Result<Change, Refusal> {
    let found = place.look_up(objects)?;
    let title = place.title();
    match (wish, &found.pause) {
        (Wish::Pause { .. }, Some(why)) => Err(Refusal::not_now(
            format!("maintenance of {title} is paused already: {why}"),
            "`machinist maintenance resume` ends it; then it can be paused for another reason",
        )),
        (Wish::Pause { reason }, None) => {
            let value = signed(reason, signature)?;
            let sentence =
                format!("maintenance of {title} is paused: {value}; what was begun is finished");
            Ok(Change { write: Some(found.write(Some(&value))), sentence })
        }
        (Wish::Resume, None) => {
            Ok(Change { write: None, sentence: format!("maintenance of {title} is not paused") })
        }
        (Wish::Resume, Some(why)) => Ok(Change {
            write: Some(found.write(None)),
            sentence: format!("maintenance of {title} may begin again; it was paused: {why}"),
        }),
    }
}

impl Found<'_> {
    fn write(&self, value: Option<&str>) -> Write {
        let mut write = annotate(self.on, self.metadata, annotation::MAINTENANCE_PAUSED, value);
        if self.on == Object::Policy {
            write.patch = json!({
                "metadata": { "uid": self.metadata.uid },
                "spec": { "paused": value.map(|_| true), "pauseReason": value },
            });
        }
        write
    }
}

/// The reason with who gave it and when.
fn signed(reason: &str, signature: &Signature) -> Result<String, Refusal> {
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let by = format!("{} at {}", signature.by, signature.at);
    let value = if reason.is_empty() { format!("by {by}") } else { format!("{reason} (by {by})") };
    if value.chars().count() > REASON_MAX {
        return Err(Refusal::invalid(
            format!("reason: Too long: it may have about {} letters", REASON_MAX - 100),
            "put the long story elsewhere and name the place",
        ));
    }
    Ok(value)
}

/// All pauses that there are, with their reasons.
pub fn all(objects: &Objects<'_>) -> Vec<(Place, String)> {
    let named = |name: &Option<String>| name.clone().unwrap_or_default();
    let cluster = Place::Cluster.pause(objects).map(|why| (Place::Cluster, why));
    let policies = objects.policies.iter().filter(|one| one.spec.paused == Some(true)).map(|one| {
        let why = words(one.spec.pause_reason.as_deref().unwrap_or_default());
        (Place::Policy(named(&one.metadata.name)), why)
    });
    let sets = objects.sets.iter().filter_map(|one| {
        let why = of(&one.metadata)?;
        Some((Place::Pool(named(&one.metadata.name)), why))
    });
    let machines = objects.machines.iter().filter_map(|one| {
        let why = of(&one.metadata)?;
        Some((Place::Machine(named(&one.metadata.name)), why))
    });
    cluster.into_iter().chain(policies).chain(sets).chain(machines).collect()
}
