//! In which clouds are the instances of Cluster API's machines looked at?
//!
//! A provider keeps them, and nothing is done to them here. What the cloud says of them, scheduled events and failing checks,
//! is a reason for maintenance like any other. What happened to them behind the cluster's back is said on their Machines, and
//! where policy wants it, such a Machine is deleted. Where nobody says where to look, only Nodes tell.

use std::{collections::BTreeSet, str::FromStr, sync::Arc, time::Duration};

use kube::Api;
use machinist_api::cluster_api::Machine;
use machinist_core::{
    cloud::InstanceId,
    cluster_api::{
        instance::{self, Keeping, Sight},
        maintained::name,
        pausing,
    },
    drift::classify::why_down,
    maintenance::step::MachineRef,
    providerspec::ProviderKind,
};

use super::maintained::Maintained;
use crate::{
    cloud::{CloudAccess, CloudKey, connection::ConnectionKey},
    context::SharedContext,
    engine::{events::EventTarget, store::ObjectKey, supervisor::Spawner},
    maintenance::drift_defaults,
    write::{self, Precondition},
};

/// How often what the views show is compared with what the Machines say; asks the cloud nothing.
const LOOK: Duration = Duration::from_secs(30);

/// How soon a cloud that could not be connected to is tried again.
const AGAIN: Duration = Duration::from_secs(30);

/// One account and region, and which instances in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedCloud {
    pub region: String,
    /// The namespace and the name of the Secret with the credentials.
    pub secret: (String, String),
    /// Instances with the tag `kubernetes.io/cluster/<this>`.
    pub tag: String,
}

impl FromStr for WatchedCloud {
    type Err = String;

    /// Reads `region=us-east-1,secret=team-a/aws,tag=c1`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (mut region, mut secret, mut tag) = (None, None, None);
        for part in text.split(',') {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let place = match key.trim() {
                "region" => &mut region,
                "secret" => &mut secret,
                "tag" => &mut tag,
                other => {
                    return Err(format!("unknown key {other:?}: there are region, secret, tag"));
                }
            };
            let value = value.trim();
            if value.is_empty() || place.replace(value.to_owned()).is_some() {
                return Err(format!("{}: must be given once, with a value", key.trim()));
            }
        }
        let missing = |key: &str| format!("{key}: is missing");
        let secret = secret.ok_or_else(|| missing("secret"))?;
        let (namespace, name) = secret
            .split_once('/')
            .filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty())
            .ok_or_else(|| format!("secret: {secret:?} must be NAMESPACE/NAME"))?;
        Ok(Self {
            region: region.ok_or_else(|| missing("region"))?,
            secret: (namespace.to_owned(), name.to_owned()),
            tag: tag.ok_or_else(|| missing("tag"))?,
        })
    }
}

impl WatchedCloud {
    pub fn key(&self) -> CloudKey {
        let (namespace, name) = self.secret.clone();
        CloudKey {
            connection: ConnectionKey {
                namespace,
                credentials_secret: Some(name),
                region: self.region.clone(),
            },
            cluster_id: self.tag.clone(),
        }
    }
}

/// Begins to look. What cannot be connected to is tried again, and keeps nothing else waiting.
pub fn watch(
    context: &SharedContext,
    maintained: &Maintained,
    spawner: &Spawner,
    clouds: &[WatchedCloud],
) {
    if !clouds.is_empty() {
        let (context, maintained) = (context.clone(), maintained.clone());
        let clouds: Vec<CloudKey> = clouds.iter().map(WatchedCloud::key).collect();
        spawner.spawn("instances of Cluster API", async move {
            tell(context, maintained, &clouds).await;
            Ok(())
        });
    }
    for cloud in clouds {
        let (context, key) = (context.clone(), cloud.key());
        spawner.spawn(format!("cloud {key} of Cluster API"), async move {
            while let Err(failure) = context.clouds.watch(key.clone(), ProviderKind::Aws).await {
                tracing::warn!(cloud = %key, error = failure.message, "is not reached");
                context.env.sleep(AGAIN).await;
            }
            Ok(())
        });
    }
}

/// Says on the Machines, again and again, what became of their instances, and does what follows. Ends with the process.
async fn tell(context: SharedContext, maintained: Maintained, clouds: &[CloudKey]) {
    loop {
        context.env.sleep(LOOK).await;
        look(&context, &maintained, clouds).await;
    }
}

/// One look at all of them, in these clouds.
pub async fn look(context: &SharedContext, maintained: &Maintained, clouds: &[CloudKey]) {
    let is_led = context.leadership.is_held() && maintained.leadership.is_held();
    if !is_led || context.stores.hold.wait().is_some() {
        return;
    }
    for machine in maintained.stores.machines.list() {
        if let Err(error) = look_at(context, maintained, clouds, &machine).await {
            let error = format!("{error:#}");
            tracing::debug!(machine = %ObjectKey::of(&*machine), error, "is looked at later");
        }
    }
}

async fn look_at(
    context: &SharedContext,
    maintained: &Maintained,
    clouds: &[CloudKey],
    machine: &Machine,
) -> anyhow::Result<()> {
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    let cluster = maintained.stores.cluster(namespace, &machine.spec.cluster_name);
    // What is paused is written by nobody: it may be on its way to another management cluster.
    if pausing::is_paused(&machine.metadata, cluster.as_deref()) {
        return Ok(());
    }
    let provider_id = machine.spec.provider_id.as_deref().filter(|id| id.starts_with("aws://"));
    let Some(id) = provider_id.and_then(InstanceId::from_provider_id) else { return Ok(()) };
    let watched = context.clouds.watched();
    let snapshots: Vec<_> = watched.iter().map(|(_, access)| access.view.snapshot()).collect();
    let seen = snapshots.iter().find_map(|snapshot| snapshot.get(&id));
    let are_whole = are_connected(clouds, &watched)
        && snapshots
            .iter()
            .all(|snapshot| snapshot.listed_at.is_some() && snapshot.failure.is_none());
    let sight = match seen {
        Some(instance) => Sight::Seen(instance),
        None if are_whole => Sight::Missing(&id),
        None => Sight::Unknown,
    };
    let name = name(&machine.metadata);
    let Some(as_seen) = maintained.machine(&name) else { return Ok(()) };
    // Counting its pool costs, and is for nothing while the instance runs.
    let pool = instance::is_down(machine, sight).then(|| maintained.counted(&as_seen)).flatten();
    let keeping = Keeping {
        seen: &as_seen,
        pool: pool.as_ref(),
        defaults: drift_defaults(&context.stores, &as_seen),
    };
    let verdict = instance::judge(machine, sight, &keeping, context.env.now());
    let mut decided_on = MachineRef {
        name,
        uid: machine.metadata.uid.clone().unwrap_or_default(),
        resource_version: machine.metadata.resource_version.clone().unwrap_or_default(),
    };
    if let Some(told) = verdict.told {
        let api = Api::<Machine>::namespaced(context.client.clone(), namespace);
        let (stored, precondition) = (machine.status.as_ref(), Precondition::Observed);
        let written = write::status(&api, machine, stored, &told.status, precondition).await?;
        if let Some(written) = written {
            decided_on.resource_version =
                written.metadata.resource_version.clone().unwrap_or_default();
            maintained.stores.machines.apply_written(written);
        }
        let announcements: Vec<_> = told.announcement.into_iter().collect();
        context.announce(&EventTarget::of(machine), "Look", &announcements);
    }
    if verdict.replaces && is_confirmed(context, clouds, &id).await? {
        replace(context, maintained, &decided_on).await?;
    }
    Ok(())
}

/// Whether all clouds that are to be looked at can be: in one that is not connected to, anything may be.
fn are_connected(clouds: &[CloudKey], watched: &[(CloudKey, Arc<CloudAccess>)]) -> bool {
    let is_watched = |cloud: &CloudKey| watched.iter().any(|(known, _)| known == cloud);
    !clouds.is_empty() && clouds.iter().all(is_watched)
}

/// Whether the clouds say of the id at this moment that nothing runs there. What cannot be asked says nothing (Rule 9), so where
/// none shows the instance, all have to be asked.
async fn is_confirmed(
    context: &SharedContext,
    clouds: &[CloudKey],
    id: &InstanceId,
) -> anyhow::Result<bool> {
    let watched = context.clouds.watched();
    let mut is_seen_down = false;
    for (cloud, access) in &watched {
        let found = access.view.confirm(BTreeSet::from([id.clone()])).await;
        let found = found.map_err(|failure| anyhow::anyhow!("{cloud}: {}", failure.message))?;
        for one in found.iter().filter(|one| one.id == *id) {
            if why_down(one).is_none() {
                return Ok(false);
            }
            is_seen_down = true;
        }
    }
    Ok(is_seen_down || are_connected(clouds, &watched))
}

/// Deletes the Machine as it was decided on, so that its pool makes another.
async fn replace(
    context: &SharedContext,
    maintained: &Maintained,
    machine: &MachineRef,
) -> anyhow::Result<()> {
    context.require_leave()?;
    if let Some(why) = maintained.doubt(&machine.name, context.env.instant()) {
        anyhow::bail!("{why}");
    }
    tracing::info!(machine = machine.name, "its instance does not run, and it is replaced");
    maintained.delete_machine(&context.client, machine).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cloud_is_named_by_region_secret_and_tag() {
        let read: WatchedCloud = "region=r, secret=team-a/aws ,tag=c1".parse().unwrap();
        assert_eq!(read.key().to_string(), "c1 in r by team-a/aws");
        for (text, problem) in [
            ("region=r,tag=c", "secret: is missing"),
            ("region=r,secret=a/b", "tag: is missing"),
            ("secret=a/b,tag=c", "region: is missing"),
            ("region=r,secret=b,tag=c", "must be NAMESPACE/NAME"),
            ("region=r,region=s,secret=a/b,tag=c", "region: must be given once"),
            ("region=,secret=a/b,tag=c", "region: must be given once, with a value"),
            ("zone=z", "unknown key"),
        ] {
            let error = text.parse::<WatchedCloud>().unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
