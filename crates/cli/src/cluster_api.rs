//! Which machines of Cluster API are there, where a cluster has them?
//!
//! They are shown, planned and explained as core sees them (`cluster_api::maintained`), in the same tables as the others: a
//! machine and a pool are named with their namespace, `team-a/workers`.

use kube::Client;
use machinist_api::cluster_api::{API_VERSION, Cluster, Machine, MachineDeployment, MachineSet};
use machinist_core::cluster_api::maintained::{self, Maintained, Objects};

/// The objects of Cluster API at one instant.
#[derive(Debug, Default)]
pub struct ClusterApi {
    pub clusters: Vec<Cluster>,
    pub machines: Vec<Machine>,
    pub sets: Vec<MachineSet>,
    pub deployments: Vec<MachineDeployment>,
}

impl ClusterApi {
    /// As they are shown.
    pub fn seen(&self) -> Maintained {
        maintained::all(&Objects {
            clusters: self.clusters.iter().collect(),
            machines: self.machines.iter().collect(),
            sets: self.sets.iter().collect(),
            deployments: self.deployments.iter().collect(),
        })
    }
}

/// Whether a cluster has it. Everybody may ask that, so that whoever has no rights there is not told of what is not there.
pub async fn is_served(client: &Client) -> bool {
    client.list_api_group_resources(API_VERSION).await.is_ok()
}

#[cfg(test)]
mod tests {
    use machinist_core::{
        maintenance::plan::Standing,
        overview::{drift, story, wish},
    };

    use crate::{
        fleet::with_plan,
        snapshot::Snapshot,
        testing::{from_files, now, testdata},
    };

    const ASKED_FOR: &str = "team-a/workers-x-1";
    const STOPPED: &str = "team-a/workers-x-2";

    async fn snapshot() -> Snapshot {
        from_files(&[testdata("../cluster-api/objects.yaml")]).await.unwrap()
    }

    #[tokio::test]
    async fn machines_of_cluster_api_are_planned_and_explained_like_the_others() {
        let snapshot = snapshot().await;
        let names: Vec<_> =
            snapshot.machines.iter().filter_map(|one| one.metadata.name.as_deref()).collect();
        assert_eq!(names, [ASKED_FOR, STOPPED]);
        let told: Vec<_> = snapshot.notes.iter().map(|note| note.message.as_str()).collect();
        assert!(told[0].starts_with("machine/broken cannot be read"), "{told:?}");
        with_plan(&snapshot, &[], now(), |picture| {
            let entry = picture.plan.entry(ASKED_FOR).unwrap();
            assert_eq!(entry.pool.as_deref(), Some("team-a/workers"));
            // The other machine is out of work, and one of the pool may be.
            assert_eq!(entry.standing, Standing::Planned);
            assert_eq!(entry.waits_on[0].reason, "BudgetExhausted");
            let told = story::story(&picture.sights[ASKED_FOR], picture);
            let text = serde_json::to_string(&told).unwrap();
            assert!(text.contains("the request of a person (new kernel)"), "{text}");
        });
    }

    #[tokio::test]
    async fn what_happened_to_an_instance_is_listed() {
        let snapshot = snapshot().await;
        let machines: Vec<_> = snapshot.machines.iter().collect();
        let evidence = drift::Evidence { machines: &machines, ..drift::Evidence::default() };
        let found = drift::incidents(&evidence);
        let classes: Vec<_> =
            found.iter().map(|one| (one.machine.as_str(), one.class.as_str())).collect();
        assert_eq!(classes, [(STOPPED, "StoppedByUser")]);
    }

    #[tokio::test]
    async fn a_pause_is_written_to_the_object_of_its_own_api() {
        let snapshot = snapshot().await;
        let signature = wish::pause::Signature { by: "me".to_owned(), at: now() };
        let pause = wish::pause::Wish::Pause { reason: "no".to_owned() };
        for (place, on, name) in [
            (
                wish::pause::Place::Machine(ASKED_FOR.to_owned()),
                wish::Object::ClusterApiMachine,
                "workers-x-1",
            ),
            (
                wish::pause::Place::Pool("team-a/workers".to_owned()),
                wish::Object::ClusterApiDeployment,
                "workers",
            ),
        ] {
            let change =
                wish::pause::decide(&pause, &place, &snapshot.objects(), &signature).unwrap();
            let write = change.write.unwrap();
            assert_eq!(
                (write.on, write.namespace.as_str(), write.name.as_str()),
                (on, "team-a", name)
            );
        }
    }
}
