//! Is everything to stand still? One switch for people in an emergency: while the ConfigMap
//! `machinist-operator-hold` is in the operator's namespace, nothing is launched, started, terminated,
//! drained, remediated, made or deleted, and no status of a Machine, MachineSet or check is written. Nodes
//! are still linked and certificates approved: machines that are on their way may join.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use machinist_core::{decision::Wait, operator_status};

use crate::{
    engine::{
        env::Env,
        store::{ObjectKey, Store},
        supervisor::Spawner,
        watch::Watch,
    },
    metrics::Metrics,
};

/// The ConfigMap whose presence is the switch.
pub const CONFIG_MAP: &str = "machinist-operator-hold";
/// Whoever sets it may say why.
const REASON: &str = "reason";
/// So much of that is repeated.
const REASON_CHARS_MAX: usize = 200;

/// How soon what was held is looked at again.
pub const LOOK: Duration = Duration::from_secs(10);

/// Whether the operator is held.
#[derive(Clone)]
pub struct Hold {
    switches: Store<ConfigMap>,
    key: ObjectKey,
}

impl Hold {
    pub fn new(namespace: &str) -> Self {
        Self { switches: Store::builder().build(), key: ObjectKey::new(namespace, CONFIG_MAP) }
    }

    /// What is waited for while it is held.
    pub fn wait(&self) -> Option<Wait> {
        let switch = self.switches.get(&self.key)?;
        let said = switch.data.as_ref().and_then(|data| data.get(REASON));
        let mut message = format!("the operator is held by ConfigMap {}", self.key);
        if let Some(said) = said.map(|said| said.trim()).filter(|said| !said.is_empty()) {
            let said: String = said.chars().take(REASON_CHARS_MAX).collect();
            message.push_str(&format!(": {said:?}"));
        }
        Some(Wait::on(operator_status::reason::HELD, message))
    }

    /// Waits until it is known.
    pub(crate) async fn synced(&self) {
        self.switches.synced().await;
    }

    /// Starts to listen.
    pub(crate) fn watch(&self, client: &Client, env: &Env, metrics: &Metrics, spawner: &Spawner) {
        let watch = Watch::namespaced(client, metrics, &self.switches, &self.key.namespace)
            .fields(&format!("metadata.name={CONFIG_MAP}"));
        spawner.spawn("watch of the hold", watch.run(env.clone()));
        self.switches.on_change(|change| {
            let is_held = change.after.is_some();
            if is_held != change.before.is_some() {
                tracing::warn!(is_held, switch = %change.key, "the hold of the operator changed");
            }
        });
    }

    /// Puts in what the watch would.
    #[cfg(test)]
    pub(crate) fn set(&self, switch: ConfigMap) {
        self.switches.apply_written(switch);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        drain,
        engine::queue::Outcome,
        health, machine, machineset,
        testing::{self, MACHINE_SETS, MACHINES, World, pool, read},
    };

    fn switch(version: u32) -> ConfigMap {
        read(json!({
            "metadata": {
                "name": CONFIG_MAP, "namespace": "ns", "uid": "hold",
                "resourceVersion": version.to_string(),
            },
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn no_controller_does_anything_while_it_is_held() {
        let world = World::new();
        let (context, stores) = (&world.context, &world.context.stores);
        world.server.put(MACHINE_SETS, pool(3));
        stores.machine_sets.apply_written(read(pool(3)));
        let mut going =
            testing::machine("m", json!({ "deletionTimestamp": "2026-01-01T11:59:00Z" }));
        going["metadata"]["finalizers"] = json!(["machine.machine.openshift.io"]);
        going["status"] = json!({ "phase": "Deleting" });
        stores.machines.apply_written(read(going));
        stores.health_checks.apply_written(read(json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineHealthCheck",
            "metadata": {
                "name": "check", "namespace": "ns", "uid": "check", "resourceVersion": "1",
            },
            "spec": { "selector": {}, "unhealthyConditions": [] },
        })));
        context.require_leave().unwrap();
        stores.hold.set(switch(1));
        let key = |name: &str| ObjectKey::new("ns", name);
        let sets = machineset::Memory::default();
        let outcomes = [
            machineset::reconcile(context, &sets, key("pool")).await,
            machine::reconcile(context, &machine::Memory::default(), key("m")).await,
            drain::reconcile(context, &drain::Memory::default(), key("m")).await,
            health::reconcile(context, &health::Memory::default(), key("check")).await,
        ];
        let is_held = |outcome: &Outcome| matches!(outcome, Outcome::RecheckAfter(LOOK));
        assert!(outcomes.iter().all(is_held), "{outcomes:?}");
        assert_eq!(world.server.lock().log, [""; 0]);
        let error = context.require_leave().unwrap_err().to_string();
        assert!(error.contains("machinist-operator-hold"), "{error}");
        let text = context.metrics.encode().unwrap();
        assert!(text.contains(r#"reason="OperatorHeld""#), "{text}");

        stores.hold.switches.forget_written(&stores.hold.key, "hold");
        machineset::reconcile(context, &sets, key("pool")).await;
        assert_eq!(world.requests("POST").len(), 3);
        assert_eq!(world.requests("POST")[0], MACHINES);
    }

    #[test]
    fn its_presence_holds_and_its_reason_is_repeated_on_one_line() {
        let hold = Hold::new("ns");
        assert_eq!(hold.wait(), None);
        let mut version = 1;
        let mut said = |namespace: &str, data: serde_json::Value| {
            version += 1;
            hold.set(read(json!({
                "metadata": {
                    "name": CONFIG_MAP, "namespace": namespace, "uid": namespace,
                    "resourceVersion": version.to_string(),
                },
                "data": data,
            })));
            hold.wait().map(|wait| wait.message)
        };
        assert_eq!(said("elsewhere", json!({})), None);
        let plain = "the operator is held by ConfigMap ns/machinist-operator-hold";
        assert_eq!(said("ns", json!(null)).as_deref(), Some(plain));
        assert_eq!(said("ns", json!({ "reason": " " })).as_deref(), Some(plain));
        let told = said("ns", json!({ "reason": format!("a\nb{}", "c".repeat(9999)) })).unwrap();
        assert!(told.starts_with(&format!("{plain}: \"a\\nbccc")), "{told}");
        assert!(told.len() < 400 && !told.contains('\n'), "{told}");
    }
}
