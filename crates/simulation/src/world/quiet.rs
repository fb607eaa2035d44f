//! How does a world come to its quiet end? All faults end, people repair what only they can, everything
//! comes to be as wanted, and then it must stay so.

use std::time::Duration;

use machinist_core::cloud::InstanceId;
use machinist_testbed::cloud::model::{ChangedBy, InstanceFacts, InstanceState};
use serde_json::{Value, json};

use super::World;
use crate::{
    actors::maintainer,
    api_server::Subresource,
    effects::NoInterference,
    faults::{api::Outages, storm},
    invariants::{self, QuietMark},
    template,
};

/// How long everything may take to settle once nothing fails: longer than any pause and grace period,
/// and than the largest jump of a clock.
const SETTLING_MAX: Duration = Duration::from_secs(4 * 3600);
/// How often it may still stir.
const RESTS_MAX: u32 = 4;
/// How long a sound instance takes to boot at most.
const BOOT_MAX: Duration = Duration::from_secs(120);
/// How often it is asked whether all is settled.
const LOOK: Duration = Duration::from_secs(20);

/// An event that is further away when all goes quiet is called off.
const FAR: Duration = Duration::from_secs(45 * 60);

impl World {
    /// What never boots is given up by the provider; what is merely young is not old enough.
    fn give_up_what_never_boots(&self) {
        let scene = &self.scene;
        // One that has booted before was started, and comes up by itself.
        let is_stuck =
            |one: &InstanceFacts| one.state == InstanceState::Pending && one.boot_generation == 0;
        let facts = scene.cloud.model().snapshot();
        for stuck in facts.into_iter().filter(is_stuck) {
            // By the world's clock: the cloud's own may be wrong.
            let launched = scene.hub.judge().launched_at(&stuck.id);
            let age = launched.map(|at| scene.hub.clock.now().duration_since(at));
            if age.is_some_and(|age| age > jiff::SignedDuration::from_mins(1)) {
                scene.cloud.change(|model, now| {
                    model.console_terminate(now, &stuck.id, ChangedBy::Provider).err()
                });
            }
        }
    }

    /// A Node whose instance the provider has forgotten, and which no Machine ever recorded, is left to
    /// people: to an operator it looks like a Node of another cloud.
    fn remove_nodes_that_nobody_can_explain(&self) {
        let scene = &self.scene;
        let facts = scene.cloud.model().snapshot();
        let machines = scene.objects("machine.openshift.io", "machines");
        for node in scene.objects("", "nodes") {
            let provider_id = node.value().pointer("/spec/providerID").and_then(Value::as_str);
            // The provider of Cluster API has its own books.
            let provider_id =
                provider_id.filter(|id| !id.starts_with(template::cluster_api::SCHEME));
            let Some(id) = provider_id.and_then(InstanceId::from_provider_id) else { continue };
            let is_recorded = machines.iter().any(|machine| {
                let recorded = machine.value().pointer("/status/providerStatus/instanceId");
                recorded.and_then(Value::as_str) == Some(&id.0)
            });
            if !is_recorded && facts.iter().all(|one| one.id != id.0) {
                scene.delete("user", ("", "nodes"), ("", node.name()), Value::Null);
            }
        }
    }

    /// Ends everything that goes wrong, and repairs what only people can.
    pub fn calm_down(&self) {
        let scene = &self.scene;
        scene.hub.note("", "quiet: all faults end");
        *crate::hub::lock(&self.outages) = Outages::default();
        scene.hub.interfere(NoInterference);
        {
            let mut weather = scene.hub.weather();
            weather.disturbance = None;
            weather.standing.clear();
            weather.workloads_away_until = None;
            weather.providers_away_until = None;
        }
        scene.cloud.disturb_notices(Duration::ZERO, 0.0, 0.0);
        scene.cloud.change(|model, _| model.clear_faults());
        for incarnation in scene.hub.with_processes(|all| all.living()) {
            incarnation.pause(Duration::ZERO);
            let behind = scene.hub.clock.now().duration_since(incarnation.now());
            incarnation.jump_clock(behind);
        }
        for machine in scene.objects("machine.openshift.io", "machines") {
            if machine.value().pointer("/spec/lifecycleHooks").is_some() {
                let body = json!({ "spec": { "lifecycleHooks": null } });
                let kind = ("machine.openshift.io", "machines");
                let at = (template::NAMESPACE, machine.name());
                scene.patch("user", Subresource::None, kind, at, body);
            }
        }
        // Nobody keeps a budget that lets no pod go while all wait for it.
        for budget in scene.objects("policy", "poddisruptionbudgets") {
            let kind = ("policy", "poddisruptionbudgets");
            scene.delete("user", kind, (budget.namespace(), budget.name()), Value::Null);
        }
        maintainer::calm_down(scene, FAR);
        self.remove_nodes_that_nobody_can_explain();
        // What a watch has lost, a list brings back.
        storm::expire_history(scene);
        scene.hub.changed.notify_one();
    }

    /// Waits until all is as wanted, then watches that it stays so. What was only about to happen when
    /// it first looked settled may happen; what never comes to rest is a broken promise.
    pub async fn settle_and_rest(&self) {
        let hub = &self.scene.hub;
        let mut broken = Vec::new();
        if !self.wait_until_settled(BOOT_MAX).await {
            self.give_up_what_never_boots();
        }
        for _ in 0..RESTS_MAX {
            if !self.wait_until_settled(SETTLING_MAX).await {
                for (id, subject, words) in self.unsettled().into_iter().take(3) {
                    let words = format!("not settled after {SETTLING_MAX:?}: {words}");
                    hub.violate(id, &subject, words);
                }
                return;
            }
            tokio::time::sleep(Duration::from_secs(60)).await;
            let mark = QuietMark::now(&hub.judge());
            let minutes = self.rest_minutes;
            tokio::time::sleep(Duration::from_secs(minutes * 60)).await;
            let stirred = mark.stirred(&hub.judge(), minutes, self.plan.processes as u64);
            broken = self.unsettled();
            broken.extend(stirred.into_iter().map(|(id, words)| (id, String::new(), words)));
            if broken.is_empty() {
                return;
            }
        }
        for (id, subject, words) in broken {
            hub.violate(id, &subject, format!("does not come to rest: {words}"));
        }
    }

    /// Whether everything was as wanted in time.
    pub async fn wait_until_settled(&self, limit: Duration) -> bool {
        let deadline = tokio::time::Instant::now() + limit;
        loop {
            if self.unsettled().is_empty() {
                return true;
            }
            if tokio::time::Instant::now() >= deadline {
                return false;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Whether a condition came true in time; asked every second.
    pub async fn wait_until(&self, limit: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        let deadline = tokio::time::Instant::now() + limit;
        while !holds(self) {
            if tokio::time::Instant::now() >= deadline {
                return false;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        true
    }

    fn unsettled(&self) -> Vec<(&'static str, String, String)> {
        let facts = self.scene.cloud.facts();
        let events = maintainer::active_events(&self.scene);
        let hub = &self.scene.hub;
        let now = hub.clock.now();
        invariants::unsettled(&self.scene.server, &facts, &events, &hub.judge(), now)
    }
}
