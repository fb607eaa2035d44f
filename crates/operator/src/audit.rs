//! What was destroyed in the cloud, by whom, for whom, why, and on what that was decided? One line of the
//! log for each call, under the target `audit`, written right before it. Whoever asks later can join them
//! with the cloud's own trail by call and instance.

use jiff::Timestamp;
use machinist_api::{Machine, condition, names::condition_type};

use crate::engine::store::ObjectKey;

/// A call that destroys something.
#[derive(Debug)]
pub struct Destruction<'a> {
    /// As the cloud calls it.
    pub call: &'static str,
    /// Which part of the operator does it.
    pub actor: &'static str,
    /// What is destroyed.
    pub instance: &'a str,
    /// `namespace/name`; empty where there is no Machine.
    pub machine: String,
    pub machine_uid: &'a str,
    /// The version of the Machine that it was decided on; empty where there is none.
    pub machine_version: &'a str,
    pub reason: String,
}

impl<'a> Destruction<'a> {
    /// For a Machine.
    pub fn of_machine(
        call: &'static str,
        actor: &'static str,
        instance: &'a str,
        machine: &'a Machine,
    ) -> Self {
        let metadata = &machine.metadata;
        Self {
            call,
            actor,
            instance,
            machine: ObjectKey::of(machine).to_string(),
            machine_uid: metadata.uid.as_deref().unwrap_or_default(),
            machine_version: metadata.resource_version.as_deref().unwrap_or_default(),
            reason: reason(machine),
        }
    }

    pub fn record(&self) {
        let Self { call, actor, instance, machine, machine_uid, machine_version, reason } = self;
        tracing::info!(
            target: "audit",
            call,
            actor,
            instance,
            machine,
            machine_uid,
            machine_version,
            reason,
            "destroys"
        );
    }
}

fn reason(machine: &Machine) -> String {
    let conditions = machine.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let drained = condition::find(conditions, condition_type::DRAINED);
    let drained = drained.and_then(|drained| drained.message.as_deref()).unwrap_or("not drained");
    let since: Option<Timestamp> = machine.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    match since {
        Some(since) => format!("the Machine is deleted since {since}; {drained}"),
        None => "the Machine has another instance".to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use machinist_core::cloud::InstanceState;
    use serde_json::{Value, json};
    use tracing_subscriber::{fmt, layer::SubscriberExt};

    use crate::{
        cloud::{connect::Connect, testing::ScriptedClouds},
        engine::store::ObjectKey,
        machine,
        testing::{MACHINES, World, machine_in_cloud, put_credentials, read},
    };

    /// The lines of the audit that are written by this thread while it lives.
    pub(crate) struct Trail {
        written: Arc<Mutex<Vec<u8>>>,
        _guard: tracing::subscriber::DefaultGuard,
    }

    struct Writer(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Writer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Trail {
        pub(crate) fn begin() -> Self {
            let written = Arc::new(Mutex::new(Vec::new()));
            let to = Arc::clone(&written);
            let layer = fmt::layer()
                .json()
                .flatten_event(true)
                .with_writer(move || Writer(Arc::clone(&to)));
            let guard =
                tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
            Self { written, _guard: guard }
        }

        pub(crate) fn lines(&self) -> Vec<Value> {
            let text = String::from_utf8(self.written.lock().unwrap().clone()).unwrap();
            let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            lines.filter(|line| line["target"] == "audit").collect()
        }

        /// What was destroyed, in order.
        pub(crate) fn instances(&self) -> Vec<String> {
            let lines = self.lines().into_iter();
            lines.map(|line| line["instance"].as_str().unwrap().to_owned()).collect()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_termination_for_a_machine_is_in_the_trail_with_its_reason() {
        let trail = Trail::begin();
        let clouds = Arc::new(ScriptedClouds::default());
        clouds.cloud.put("i-1", "uid-a", InstanceState::Running);
        let world = World::with_clouds(Arc::clone(&clouds) as Arc<dyn Connect>);
        put_credentials(&world.server, "b2xk");
        let mut going = machine_in_cloud("a", "demo");
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T11:59:00Z");
        going["metadata"]["finalizers"] = json!(["machine.machine.openshift.io"]);
        going["status"]["phase"] = json!("Deleting");
        going["status"]["conditions"] = json!([{
            "type": "Drained", "status": "True", "message": "Drain finished successfully",
            "lastTransitionTime": "2026-01-01T11:59:30Z",
        }]);
        going["status"]["providerStatus"] = json!({ "instanceId": "i-1" });
        world.server.put(MACHINES, going.clone());
        world.context.stores.machines.apply_written(read(going));
        let memory = machine::Memory::default();
        for _ in 0..5 {
            machine::reconcile(&world.context, &memory, ObjectKey::new("ns", "a")).await;
            world.context.env.sleep(std::time::Duration::from_secs(60)).await;
        }
        let terminated = clouds.cloud.terminated.lock().unwrap().clone();
        assert!(!terminated.is_empty());
        assert_eq!(trail.instances(), terminated);
        let line = &trail.lines()[0];
        for (field, expected) in [
            ("call", "TerminateInstances"),
            ("actor", "machine"),
            ("machine", "ns/a"),
            ("machine_uid", "uid-a"),
            (
                "reason",
                "the Machine is deleted since 2026-01-01T11:59:00Z; Drain finished successfully",
            ),
        ] {
            assert_eq!(line[field], expected, "{line}");
        }
        assert_ne!(line["machine_version"], "");
    }
}
