//! Maintenance, from the provider's event to its end: what was planned, what happened, and what the
//! cluster never had to suffer meanwhile. Here is what these tests share; the tests are in the folder.

mod bad_input;
mod control_plane;
mod held;
mod in_place;
mod killed;
mod replaced;
mod watched;
mod zones;

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use machinist_api::{
    MachineMaintenance, MachineMaintenanceStatus, MaintenancePhase, MaintenancePolicy,
};
use machinist_testbed::cloud::model::{EventCode, NewEvent, ScheduledEvent};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{
    arena::{Arena, merge},
    seen::Subject,
};

/// What a replacement goes through.
const REPLACED: [MaintenancePhase; 5] = [
    MaintenancePhase::Surging,
    MaintenancePhase::Draining,
    MaintenancePhase::Acting,
    MaintenancePhase::Verifying,
    MaintenancePhase::Succeeded,
];

/// Far enough away that no test sees it begin.
const LATER: SignedDuration = SignedDuration::from_hours(6);
pub const MUCH_LATER: SignedDuration = SignedDuration::from_hours(48);

pub fn from_now(duration: SignedDuration) -> Timestamp {
    Timestamp::now() + duration
}

/// A window that opens in the minute of this instant, once a year.
fn window(name: &str, opens: Timestamp, duration: &str) -> Value {
    let opens = opens.to_zoned(TimeZone::UTC);
    let cron = format!("{} {} {} {} *", opens.minute(), opens.hour(), opens.day(), opens.month());
    json!({"name": name, "cron": cron, "duration": duration})
}

/// One that is open already, and stays so.
pub fn open_window() -> Value {
    window("open", from_now(-SignedDuration::from_mins(5)), "4h")
}

/// One that no test sees open.
fn closed_window() -> Value {
    window("closed", from_now(LATER), "2h")
}

impl Arena {
    pub fn policies(&self) -> Api<MaintenancePolicy> {
        Api::all(self.client.clone())
    }

    /// A MaintenancePolicy for the machines of this test alone.
    fn policy_of(&self, name: &str, spec: Value) -> Value {
        let mut whole = json!({
            "selector": {"machines": {"matchLabels": {
                "machine.openshift.io/cluster-api-cluster": self.name,
            }}},
            "margin": "5m",
        });
        merge(&mut whole, spec);
        json!({
            "apiVersion": "machinist.dev/v1alpha1",
            "kind": "MaintenancePolicy",
            "metadata": {
                "name": format!("{}-{name}", self.name),
                "labels": {"machinist.dev/e2e": self.name},
            },
            "spec": whole,
        })
    }

    pub async fn create_policy(&self, name: &str, spec: Value) {
        let policy = serde_json::from_value(self.policy_of(name, spec)).unwrap();
        self.policies().create(&PostParams::default(), &policy).await.unwrap();
    }

    async fn change_policy(&self, name: &str, spec: Value) {
        let name = format!("{}-{name}", self.name);
        let patch = Patch::Merge(json!({"spec": spec}));
        self.policies().patch(&name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn delete_policy(&self, name: &str) {
        let name = format!("{}-{name}", self.name);
        self.policies().delete(&name, &DeleteParams::default()).await.unwrap();
    }

    /// The provider announces something for an instance.
    pub fn announce(
        &self,
        subject: &Subject,
        code: EventCode,
        not_before: Timestamp,
    ) -> ScheduledEvent {
        self.announce_movable(subject, code, not_before, None)
    }

    /// The same, with a time up to which it may be moved.
    fn announce_movable(
        &self,
        subject: &Subject,
        code: EventCode,
        not_before: Timestamp,
        not_before_deadline: Option<Timestamp>,
    ) -> ScheduledEvent {
        let event = NewEvent {
            instance_id: subject.instance.clone(),
            code,
            description: None,
            not_before,
            not_after: None,
            not_before_deadline,
        };
        self.cluster.cloud().schedule_event(event).unwrap()
    }

    pub async fn maintenance(&self, machine: &str) -> Option<MachineMaintenance> {
        let name = format!("mm-{machine}");
        self.api::<MachineMaintenance>().get_opt(&name).await.unwrap()
    }

    async fn maintenance_status(&self, machine: &str) -> MachineMaintenanceStatus {
        self.maintenance(machine).await.and_then(|found| found.status).unwrap_or_default()
    }

    /// Waits until a Machine's maintenance is as it should be.
    async fn wait_maintenance(
        &self,
        machine: &str,
        what: &str,
        is_it: impl Fn(&MachineMaintenanceStatus) -> bool,
    ) -> MachineMaintenanceStatus {
        self.eventually(&format!("the maintenance of {machine} {what}"), async || {
            let status = self.maintenance(machine).await?.status?;
            is_it(&status).then_some(status)
        })
        .await
    }

    async fn wait_phase(&self, machine: &str, phase: MaintenancePhase) -> MachineMaintenanceStatus {
        self.wait_maintenance(machine, &format!("is {}", phase.as_str()), |status| {
            status.phase == Some(phase)
        })
        .await
    }

    /// Waits until it waits for this, among others.
    async fn wait_waiting(&self, machine: &str, reason: &str) -> MachineMaintenanceStatus {
        self.wait_maintenance(machine, &format!("waits on {reason}"), |status| {
            waits(status).iter().any(|one| one == reason)
        })
        .await
    }

    /// Waits until it is over, and prints how it came to that.
    async fn wait_over(
        &self,
        machine: &str,
        outcome: MaintenancePhase,
    ) -> MachineMaintenanceStatus {
        let status = self
            .wait_maintenance(machine, "is over", |status| {
                status.phase.is_some_and(MaintenancePhase::is_over)
            })
            .await;
        self.print_timeline(machine, &status);
        assert_eq!(status.phase, Some(outcome), "{:?}", status.message);
        status
    }

    fn print_timeline(&self, machine: &str, status: &MachineMaintenanceStatus) {
        println!("{}: machine {machine}", self.name);
        for entry in &status.timeline {
            println!("  {}  {:10}  {}", entry.time.0, entry.phase.as_str(), entry.message);
        }
    }

    /// Runs `machinist` against this test's machines.
    async fn machinist(&self, arguments: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_machinist"))
            .args(arguments)
            .arg("--kubeconfig")
            .arg(self.cluster.kubeconfig())
            .args(["--namespace", &self.name])
            .output()
            .await
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "machinist {arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What `machinist plan -o json` says.
    async fn plan(&self, further: &[&str]) -> Value {
        let arguments = [&["plan", "-o", "json"], further].concat();
        serde_json::from_str(&self.machinist(&arguments).await).unwrap()
    }

    /// What the plan says of one machine.
    async fn planned(&self, machine: &str) -> Value {
        entry(&self.plan(&[]).await, machine)
    }

    /// What it would say under another policy.
    async fn planned_under(&self, machine: &str, name: &str, spec: Value) -> Value {
        let file = self.policy_file(name, spec);
        entry(&self.plan(&["--policy", file.to_str().unwrap()]).await, machine)
    }

    fn policy_file(&self, name: &str, spec: Value) -> PathBuf {
        let file = self.cluster.folder().join(format!("{}-{name}.yaml", self.name));
        std::fs::write(&file, self.policy_of(name, spec).to_string()).unwrap();
        file
    }

    /// A budget over all pods of a Deployment lets none of them go.
    async fn forbid_evictions(&self, app: &str) {
        let budget = json!({"spec": {"minAvailable": "100%"}});
        self.patch::<PodDisruptionBudget>(&format!("{app}-budget"), budget).await;
    }
}

/// What a plan says of one machine.
fn entry(plan: &Value, machine: &str) -> Value {
    let found = find_entry(plan, machine);
    found.unwrap_or_else(|| panic!("machine {machine} is not in the plan: {plan:#}"))
}

/// The same, where there may be nothing.
fn find_entry(plan: &Value, machine: &str) -> Option<Value> {
    let entries = plan["entries"].as_array().unwrap();
    entries.iter().find(|entry| entry["machine"] == machine).cloned()
}

fn waits(status: &MachineMaintenanceStatus) -> Vec<String> {
    let plan = status.plan.as_ref();
    plan.iter().flat_map(|plan| plan.waits_on.iter().map(|wait| wait.reason.clone())).collect()
}

fn time_of(value: &Value) -> Timestamp {
    value.as_str().unwrap_or_else(|| panic!("{value} is no time")).parse().unwrap()
}

/// The phases that were gone through, from the beginning of the work.
fn phases(status: &MachineMaintenanceStatus) -> Vec<MaintenancePhase> {
    let mut phases: Vec<_> = status.timeline.iter().map(|entry| entry.phase).collect();
    phases.retain(|phase| phase.is_under_way() || phase.is_over());
    phases.dedup();
    phases
}

/// What was planned is what happened: the machine, the action, the time, the window, and each step.
fn assert_as_planned(
    planned: &Value,
    status: &MachineMaintenanceStatus,
    steps: &[MaintenancePhase],
) {
    let work = status.work.as_ref().expect("work was begun");
    let text = |field: &str| planned[field].as_str().map(str::to_owned);
    assert_eq!(work.action.map(|action| action.as_str().to_owned()), text("action"));
    assert_eq!(work.machine_uid, text("machineUid"));
    assert_eq!(work.pool, text("pool"));
    assert_eq!(work.zone, text("zone"));
    let plan = status.plan.as_ref().unwrap();
    assert_eq!(plan.policy, text("policy"));
    assert_eq!(plan.window, text("window"));
    // Records have whole seconds.
    let started = work.started_at.as_ref().unwrap().0 + SignedDuration::from_secs(1);
    assert!(started >= time_of(&planned["start"]), "{started} is before {planned:#}");
    assert!(started < time_of(&planned["end"]), "{started} is after {planned:#}");
    assert_eq!(phases(status), steps, "{:?}", status.timeline);
}
