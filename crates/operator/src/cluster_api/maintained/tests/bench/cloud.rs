//! What happens to the instances, and what the operator makes of it.

use std::time::Duration;

use machinist_core::cloud::{InstanceId, InstanceState};

use super::{Bench, WATCHED};
use crate::cluster_api::{
    clouds::{self, WatchedCloud},
    testing::MACHINES,
};

impl Bench {
    /// The instance of a machine is gone, and the cloud says so.
    pub(in crate::cluster_api::maintained::tests) async fn terminate(&self, machine: &str) {
        self.clouds.cloud.put(&format!("i-{machine}"), "", InstanceState::Terminated);
        self.refresh_cloud().await;
    }

    /// It runs after all, and no list has shown it yet.
    pub(in crate::cluster_api::maintained::tests) fn revive(&self, machine: &str) {
        self.clouds.cloud.put(&format!("i-{machine}"), "", InstanceState::Running);
    }

    async fn refresh_cloud(&self) {
        self.base().env.sleep(Duration::from_secs(1)).await;
        for (_, access) in self.base().clouds.watched() {
            access.view.fresh_within(Duration::ZERO).await.unwrap();
        }
    }

    /// Half a minute passes.
    pub(in crate::cluster_api::maintained::tests) async fn later(&self) {
        self.base().env.sleep(Duration::from_secs(30)).await;
    }

    /// Looks at the instances of all machines, once.
    pub(in crate::cluster_api::maintained::tests) async fn look_at_instances(&self) {
        self.look_in(&[WATCHED]).await;
    }

    /// The same, where these clouds are to be looked at.
    pub(in crate::cluster_api::maintained::tests) async fn look_in(&self, clouds: &[&str]) {
        let context = &self.fleet.context;
        let maintained = context.base.stores.cluster_api.get().unwrap();
        let clouds: Vec<_> =
            clouds.iter().map(|one| one.parse::<WatchedCloud>().unwrap().key()).collect();
        clouds::look(&context.base, maintained, &clouds).await;
        self.load();
    }

    /// The cloud forgets an instance, as it does some time after its end.
    pub(in crate::cluster_api::maintained::tests) async fn forget(&self, machine: &str) {
        let id = InstanceId(format!("i-{machine}"));
        self.clouds.cloud.instances.lock().unwrap().remove(&id);
        self.refresh_cloud().await;
    }

    /// What a machine says of its instance.
    pub(in crate::cluster_api::maintained::tests) fn instance_of(&self, machine: &str) -> String {
        let object = self.stored(MACHINES, machine).unwrap();
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let running = conditions.into_iter().find(|one| one["type"] == "InstanceRunning");
        running.map(|one| one["message"].as_str().unwrap().to_owned()).unwrap_or_default()
    }
}
