//! Which volumes are still attached to a Node that is empty, and are waited for?

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{Node, PersistentVolume, Pod},
    storage::v1::VolumeAttachment,
};
use machinist_api::condition::to_seconds;

use super::draining::first_of;

/// How many volumes of a kind are named.
const NAMED: usize = 5;

/// What is attached to the Node.
pub struct Volumes<'a> {
    pub node: &'a Node,
    pub attachments: Vec<&'a VolumeAttachment>,
    /// Those that the attachments and the Node name, as far as they exist.
    pub volumes: Vec<&'a PersistentVolume>,
}

/// The volumes that are attached, by the Node's word and by that of attachments.
pub fn attached<'a>(
    node: &'a Node,
    attachments: &[&'a VolumeAttachment],
) -> (BTreeSet<&'a str>, BTreeSet<&'a str>) {
    let status = node.status.as_ref().and_then(|status| status.volumes_attached.as_ref());
    let by_node = status.into_iter().flatten().map(|one| one.name.as_str()).collect();
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let by_attachment = attachments
        .iter()
        .filter(|one| one.spec.node_name == name)
        .filter(|one| one.status.as_ref().is_some_and(|status| status.attached))
        .filter_map(|one| one.spec.source.persistent_volume_name.as_deref())
        .collect();
    (by_node, by_attachment)
}

/// What the Node waits for, in words; `None` when nothing is attached that matters. The volumes of pods that stay do not.
pub fn waiting_for(volumes: &Volumes<'_>, staying: &[&Pod], started: Timestamp) -> Option<String> {
    let (by_node, by_attachment) = attached(volumes.node, &volumes.attachments);
    let ignored = claims_of(staying);
    let (mut claims, mut unclaimed) = (BTreeSet::new(), BTreeSet::new());
    let (mut seen_by_node, mut seen_by_attachment) = (BTreeSet::new(), BTreeSet::new());
    for volume in &volumes.volumes {
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        let handle = csi_name(volume);
        let is_on_node = handle.as_deref().is_some_and(|handle| by_node.contains(handle));
        let is_attached = by_attachment.contains(name);
        if is_on_node {
            seen_by_node.extend(handle);
        }
        if is_attached {
            seen_by_attachment.insert(name.to_owned());
        }
        if !is_on_node && !is_attached {
            continue;
        }
        match claim_of(volume) {
            Some(claim) if ignored.contains(&claim) => {}
            Some(claim) => {
                claims.insert(claim);
            }
            None => {
                unclaimed.insert(name.to_owned());
            }
        }
    }
    let strangers = |all: &BTreeSet<&str>, seen: &BTreeSet<String>| -> BTreeSet<String> {
        all.iter().filter(|name| !seen.contains(**name)).map(|name| (*name).to_owned()).collect()
    };
    let groups = [
        ("PersistentVolumeClaims", claims),
        ("PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim", unclaimed),
        (
            "Node with .status.volumesAttached entries not matching a PersistentVolume",
            strangers(&by_node, &seen_by_node),
        ),
        (
            "VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume",
            strangers(&by_attachment, &seen_by_attachment),
        ),
    ];
    let mut lines = vec![begun(started)];
    for (what, names) in groups.into_iter().filter(|(_, names)| !names.is_empty()) {
        let names: Vec<_> = names.into_iter().collect();
        lines.push(format!("* {what}: {}", first_of(&names, NAMED)));
    }
    (lines.len() > 1).then(|| lines.join("\n"))
}

/// How the message begins.
pub fn begun(started: Timestamp) -> String {
    format!("Waiting for Node volumes to be detached (started at {})", to_seconds(started).0)
}

/// How a Node names the volume.
pub fn csi_name(volume: &PersistentVolume) -> Option<String> {
    let csi = volume.spec.as_ref()?.csi.as_ref()?;
    Some(format!("kubernetes.io/csi/{}^{}", csi.driver, csi.volume_handle))
}

fn claim_of(volume: &PersistentVolume) -> Option<String> {
    let claim = volume.spec.as_ref()?.claim_ref.as_ref()?;
    let is_claim = claim.kind.as_deref().is_none_or(|kind| kind == "PersistentVolumeClaim");
    is_claim.then(|| {
        let (namespace, name) = (claim.namespace.as_deref(), claim.name.as_deref());
        format!("{}/{}", namespace.unwrap_or_default(), name.unwrap_or_default())
    })
}

fn claims_of(pods: &[&Pod]) -> BTreeSet<String> {
    let mut claims = BTreeSet::new();
    for pod in pods {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
        for volume in volumes.into_iter().flatten() {
            if let Some(claim) = &volume.persistent_volume_claim {
                claims.insert(format!("{namespace}/{}", claim.claim_name));
            }
            if volume.ephemeral.is_some() {
                let pod = pod.metadata.name.as_deref().unwrap_or_default();
                claims.insert(format!("{namespace}/{pod}-{}", volume.name));
            }
        }
    }
    claims
}
