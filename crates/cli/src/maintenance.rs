//! How does a person keep maintenance from beginning, and let it begin again?
//!
//! A pause is an annotation whose value says why, and who paused it when; a policy has fields for it.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use k8s_openapi::api::{authentication::v1::SelfSubjectReview, core::v1::Namespace};
use kube::{Api, Client, api::PostParams};
use machinist_api::{Machine, MachineSet, MaintenancePolicy, names::annotation};
use serde_json::{Value, json};

use crate::{
    annotate::{self, Effect},
    args::{FleetArgs, MaintenanceArgs, MaintenanceCommand, PausedArgs},
    failure::Hinted,
    kubeconfig::{Access, connect},
    plan,
    snapshot::{self, Extent, Snapshot},
    zone::Zone,
};

/// As the schema of a policy says.
const REASON_MAX: usize = 1024;

pub async fn run(args: MaintenanceArgs) -> anyhow::Result<()> {
    let zone = Zone::choose(None)?;
    let now = plan::now(&zone, None)?;
    let (wish, of) = match args.command {
        MaintenanceCommand::Pause(args) => {
            (Wish::Pause { reason: args.reason.unwrap_or_default() }, args.of)
        }
        MaintenanceCommand::Resume(args) => (Wish::Resume, args.of),
    };
    let fleet = FleetArgs {
        cluster: of.cluster.clone(),
        namespace: of.namespace.clone(),
        filename: Vec::new(),
    };
    let snapshot = snapshot::read(&fleet, Extent::Calendars).await?;
    let place = Place::of(&of);
    let connection = connect(&of.cluster, Access::Write).await?;
    let by = match &wish {
        Wish::Pause { .. } => who(&connection.client).await,
        Wish::Resume => String::new(),
    };
    let change = decide(&wish, &place, &snapshot, &Signature { by, at: now })?;
    let effect = Effect::of(of.dry_run);
    if let Some(patch) = &change.patch {
        send(&connection.client, &place, &of.namespace, patch, effect).await.map_err(|error| {
            connection.explain(&format!("cannot change {}", place.title()), error)
        })?;
    }
    println!("{}{}", zone.localize(&change.sentence, now), effect.suffix());
    for other in others(&place, &snapshot) {
        println!("{}", zone.localize(&other, now));
    }
    Ok(())
}

#[derive(Clone, Debug)]
enum Wish {
    Pause { reason: String },
    Resume,
}

/// What is paused.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Cluster,
    Machine(String),
    Pool(String),
    Policy(String),
}

/// Who pauses, and when.
#[derive(Clone, Debug)]
struct Signature {
    by: String,
    at: Timestamp,
}

/// What is written, and what is said.
#[derive(Debug)]
struct Change {
    /// None where it is so already.
    patch: Option<Value>,
    sentence: String,
}

impl Place {
    fn of(args: &PausedArgs) -> Self {
        match (&args.machine, &args.pool, &args.policy) {
            (Some(name), _, _) => Self::Machine(name.clone()),
            (_, Some(name), _) => Self::Pool(name.clone()),
            (_, _, Some(name)) => Self::Policy(name.clone()),
            (None, None, None) => Self::Cluster,
        }
    }

    /// What it is called in a sentence.
    fn title(&self) -> String {
        match self {
            Self::Cluster => "the whole cluster".to_owned(),
            Self::Machine(name) => format!("machine {name}"),
            Self::Pool(name) => format!("pool {name}"),
            Self::Policy(name) => format!("the machines of policy {name}"),
        }
    }

    /// The uid of the object that carries the pause, and the pause.
    fn look_up<'a>(&self, snapshot: &'a Snapshot) -> anyhow::Result<Found<'a>> {
        let missing = |kind: &str, name: &str, place: String| {
            let what = format!("there is no {kind} {name}{place}");
            anyhow::Error::from(Hinted::new(
                what,
                "`machinist status` lists machines and pools, \
                                                   `kubectl get maintenancepolicies` policies",
            ))
        };
        let here = || format!(" in namespace {}", snapshot.namespace);
        match self {
            Self::Cluster => {
                let home = snapshot
                    .home
                    .as_ref()
                    .ok_or_else(|| missing("namespace", &snapshot.namespace, String::new()))?;
                Ok(Found { uid: home.metadata.uid.as_deref(), pause: snapshot.pause().map(words) })
            }
            Self::Machine(name) => {
                let found =
                    snapshot.machines.iter().find(|one| one.metadata.name.as_ref() == Some(name));
                let machine = found.ok_or_else(|| missing("machine", name, here()))?;
                Ok(annotated(&machine.metadata))
            }
            Self::Pool(name) => {
                let found =
                    snapshot.sets.iter().find(|one| one.metadata.name.as_ref() == Some(name));
                let set = found.ok_or_else(|| missing("machineset", name, here()))?;
                Ok(annotated(&set.metadata))
            }
            Self::Policy(name) => {
                let found =
                    snapshot.policies.iter().find(|one| one.metadata.name.as_ref() == Some(name));
                let policy =
                    found.ok_or_else(|| missing("maintenancepolicy", name, String::new()))?;
                let pause = (policy.spec.paused == Some(true))
                    .then(|| words(policy.spec.pause_reason.as_deref().unwrap_or_default()));
                Ok(Found { uid: policy.metadata.uid.as_deref(), pause })
            }
        }
    }
}

/// An object that may carry a pause.
struct Found<'a> {
    uid: Option<&'a str>,
    /// Why it is paused.
    pause: Option<String>,
}

fn annotated(metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> Found<'_> {
    let annotations = metadata.annotations.as_ref();
    let pause = annotations.and_then(|all| all.get(annotation::MAINTENANCE_PAUSED));
    Found { uid: metadata.uid.as_deref(), pause: pause.map(|text| words(text)) }
}

fn words(text: &str) -> String {
    if text.is_empty() || text == "true" { "nobody said why".to_owned() } else { text.to_owned() }
}

fn decide(
    wish: &Wish,
    place: &Place,
    snapshot: &Snapshot,
    signature: &Signature,
) -> anyhow::Result<Change> {
    let found = place.look_up(snapshot)?;
    let title = place.title();
    match (wish, found.pause) {
        (Wish::Pause { .. }, Some(why)) => Err(Hinted::new(
            format!("maintenance of {title} is paused already: {why}"),
            "`machinist maintenance resume` ends it; then it can be paused for another reason",
        )
        .into()),
        (Wish::Pause { reason }, None) => {
            let value = signed(reason, signature)?;
            let patch = match place {
                Place::Policy(_) => json!({
                    "metadata": { "uid": found.uid },
                    "spec": { "paused": true, "pauseReason": value },
                }),
                Place::Cluster | Place::Machine(_) | Place::Pool(_) => {
                    annotate::annotation(found.uid, annotation::MAINTENANCE_PAUSED, Some(&value))
                }
            };
            let sentence =
                format!("maintenance of {title} is paused: {value}; what was begun is finished");
            Ok(Change { patch: Some(patch), sentence })
        }
        (Wish::Resume, None) => {
            Ok(Change { patch: None, sentence: format!("maintenance of {title} is not paused") })
        }
        (Wish::Resume, Some(why)) => {
            let patch = match place {
                Place::Policy(_) => json!({
                    "metadata": { "uid": found.uid },
                    "spec": { "paused": null, "pauseReason": null },
                }),
                Place::Cluster | Place::Machine(_) | Place::Pool(_) => {
                    annotate::annotation(found.uid, annotation::MAINTENANCE_PAUSED, None)
                }
            };
            let sentence = format!("maintenance of {title} may begin again; it was paused: {why}");
            Ok(Change { patch: Some(patch), sentence })
        }
    }
}

/// The reason with who gave it and when.
fn signed(reason: &str, signature: &Signature) -> anyhow::Result<String> {
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let by = format!("{} at {}", signature.by, signature.at);
    let value = if reason.is_empty() { format!("by {by}") } else { format!("{reason} (by {by})") };
    if value.chars().count() > REASON_MAX {
        let what = format!("--reason: Too long: it may have about {} letters", REASON_MAX - 100);
        return Err(Hinted::new(what, "put the long story elsewhere and name the place").into());
    }
    Ok(value)
}

/// The pauses that there are besides.
fn others(place: &Place, snapshot: &Snapshot) -> Vec<String> {
    let mut places = vec![Place::Cluster];
    let named = |name: &Option<String>| name.clone().unwrap_or_default();
    places.extend(snapshot.policies.iter().map(|one| Place::Policy(named(&one.metadata.name))));
    places.extend(snapshot.sets.iter().map(|one| Place::Pool(named(&one.metadata.name))));
    places.extend(snapshot.machines.iter().map(|one| Place::Machine(named(&one.metadata.name))));
    places
        .iter()
        .filter(|other| *other != place)
        .filter_map(|other| {
            let why = other.look_up(snapshot).ok()?.pause?;
            Some(format!("maintenance of {} is paused as well: {why}", other.title()))
        })
        .collect()
}

/// Who asks, as the API server knows them; else as this machine does.
async fn who(client: &Client) -> String {
    let reviews = Api::<SelfSubjectReview>::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    let user = answer.ok().and_then(|review| review.status?.user_info?.username);
    let local = || std::env::var("USER").ok().filter(|name| !name.is_empty());
    user.or_else(local).unwrap_or_else(|| "somebody".to_owned())
}

async fn send(
    client: &Client,
    place: &Place,
    namespace: &str,
    patch: &Value,
    effect: Effect,
) -> Result<(), kube::Error> {
    let client = client.clone();
    match place {
        Place::Cluster => {
            annotate::patch(&Api::<Namespace>::all(client), namespace, patch, effect).await
        }
        Place::Machine(name) => {
            let api = Api::<Machine>::namespaced(client, namespace);
            annotate::patch(&api, name, patch, effect).await
        }
        Place::Pool(name) => {
            let api = Api::<MachineSet>::namespaced(client, namespace);
            annotate::patch(&api, name, patch, effect).await
        }
        Place::Policy(name) => {
            annotate::patch(&Api::<MaintenancePolicy>::all(client), name, patch, effect).await
        }
    }
}
