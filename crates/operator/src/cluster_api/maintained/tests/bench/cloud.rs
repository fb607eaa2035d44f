//! What happens to the instances, and what the operator makes of it.

use std::time::Duration;

use machinist_core::cloud::InstanceState;

use super::Bench;
use crate::cluster_api::{clouds, testing::MACHINES};

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
        let context = &self.fleet.context;
        clouds::look(&context.base, context.base.stores.cluster_api.get().unwrap()).await;
        self.load();
    }

    /// What a machine says of its instance.
    pub(in crate::cluster_api::maintained::tests) fn instance_of(&self, machine: &str) -> String {
        let object = self.stored(MACHINES, machine).unwrap();
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let running = conditions.into_iter().find(|one| one["type"] == "InstanceRunning");
        running.map(|one| one["message"].as_str().unwrap().to_owned()).unwrap_or_default()
    }
}
