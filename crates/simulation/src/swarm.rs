//! What is drawn for a seed? Which faults are on and how often, which pools and people there are, and
//! for how long it lasts.

mod maintenance;

use std::{collections::BTreeMap, time::Duration};

use machinist_testbed::cloud::model::WorldIds;
use serde_json::json;

use crate::{
    actors::{Act, App, ConsoleVerb, KubeletSettings, Stranger},
    chance::Chance,
    faults::{FaultKind, Level, Trigger},
    invariants::Allowance,
    template::{Flaw, HealthCheck, Pool, control_plane_machine},
};

/// Faults that make it impossible to see in time what others did.
const BLINDING: [FaultKind; 14] = [
    FaultKind::F02,
    FaultKind::F04,
    FaultKind::F05,
    FaultKind::F06,
    FaultKind::F07,
    FaultKind::F08,
    FaultKind::F09,
    FaultKind::F11,
    FaultKind::F12,
    FaultKind::F13,
    FaultKind::F14,
    FaultKind::F16,
    FaultKind::F32,
    FaultKind::F33,
];

/// Everything that one run is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub level: Level,
    /// The rate of each fault that is on.
    pub rates: BTreeMap<FaultKind, f64>,
    pub pools: Vec<Pool>,
    /// Machines that no pool keeps.
    pub singles: Vec<String>,
    /// Machines that cannot be launched as they are.
    pub misconfigured: Vec<String>,
    /// Machines that never passed a webhook, with what it would have done about.
    pub unadmitted: Vec<(String, Flaw)>,
    pub health_checks: Vec<HealthCheck>,
    /// MaintenancePolicies.
    pub policies: Vec<serde_json::Value>,
    /// How many Machines of the control plane there are.
    pub control_plane: usize,
    /// Whether etcd runs on the Nodes of the control plane.
    pub has_etcd: bool,
    /// Whether etcd's operator protects them by hooks.
    pub has_etcd_operator: bool,
    /// What people do, by the time since the start. Pools and single Machines are made by the world.
    pub acts: Vec<(Duration, Act)>,
    pub apps: Vec<App>,
    /// How many operators there are.
    pub processes: usize,
    /// How long faults last.
    pub storm: Duration,
    pub kubelets: KubeletSettings,
    pub api_latency_max: u64,
    pub cloud_latency_max: u64,
    pub launch_visibility: Duration,
    /// Whether the operator hears of changes through a queue.
    pub notices: bool,
    pub restart_seconds: (u64, u64),
    /// Whether certificates are approved by somebody else, whoever asks.
    pub others_approve: bool,
    /// Whether the timeline tells of every request.
    pub tells_requests: bool,
}

impl Plan {
    /// A small calm world without anybody in it.
    #[must_use]
    pub fn calm(seed: u64) -> Self {
        Self {
            seed,
            level: Level::Calm,
            rates: BTreeMap::new(),
            pools: Vec::new(),
            singles: Vec::new(),
            misconfigured: Vec::new(),
            unadmitted: Vec::new(),
            health_checks: Vec::new(),
            policies: Vec::new(),
            control_plane: 0,
            has_etcd: false,
            has_etcd_operator: false,
            acts: Vec::new(),
            apps: Vec::new(),
            processes: 1,
            storm: Duration::ZERO,
            kubelets: KubeletSettings {
                boot_seconds: (20, 40),
                removes_nodes: true,
                reuses_names: false,
            },
            api_latency_max: 0,
            cloud_latency_max: 100,
            launch_visibility: Duration::from_secs(60),
            notices: false,
            restart_seconds: (1, 5),
            others_approve: false,
            tells_requests: false,
        }
    }

    /// Draws a run.
    #[must_use]
    pub fn draw(seed: u64, level: Level) -> Self {
        let mut chance = Chance::stream(seed, "plan");
        let mut rates = BTreeMap::new();
        for kind in FaultKind::ALL {
            let is_on = chance.hits(0.5);
            let rate = chance.unit() * kind.max_rate() * level.factor();
            // What happens once in a run either does or does not.
            let rate = match kind.trigger() {
                Trigger::Run if kind.max_rate() >= 0.5 && chance.hits(level.factor()) => 1.0,
                Trigger::Run if kind.max_rate() >= 0.5 => 0.0,
                Trigger::Each | Trigger::Minute | Trigger::Run => rate,
            };
            if is_on && rate > 0.0 {
                rates.insert(*kind, rate);
            }
        }
        let storm = Duration::from_secs(chance.between(6, 24) * 60);
        let mut plan = Self::calm(seed);
        plan.level = level;
        plan.storm = storm;
        plan.draw_cluster(&mut chance);
        plan.draw_timings(&mut chance, &rates);
        plan.rates = rates;
        plan.draw_acts(&mut chance);
        plan.draw_checks(&mut chance);
        plan.draw_unadmitted(&mut chance);
        plan.draw_maintenance();
        plan.draw_sight();
        plan
    }

    /// A few seeds have nothing that keeps the operator from seeing in time, so that the promises that
    /// allow for that are held to the letter while the rest goes wrong.
    fn draw_sight(&mut self) {
        if Chance::stream(self.seed, "sight").hits(0.25) {
            self.rates.retain(|kind, _| !BLINDING.contains(kind));
        }
    }

    fn draw_cluster(&mut self, chance: &mut Chance) {
        let mut left = chance.between(1, 12);
        let pools = chance.between(1, 2);
        for number in 0..pools {
            let share = if number + 1 == pools { left } else { chance.between(0, left) };
            left -= share;
            let mut pool =
                Pool::new(&format!("pool-{number}"), usize::try_from(share).unwrap_or_default());
            pool.zone = usize::try_from(number).unwrap_or_default();
            pool.spot = chance.hits(0.2);
            pool.pre_drain_hook = chance.hits(0.1);
            pool.pre_terminate_hook = chance.hits(0.1);
            self.pools.push(pool);
        }
        for number in 0..chance.below(3) {
            self.singles.push(format!("single-{number}"));
        }
        if chance.hits(0.2) {
            self.misconfigured.push("misconfigured".to_owned());
        }
        for number in 0..chance.below(3) {
            self.apps.push(App {
                name: format!("app-{number}"),
                replicas: usize::try_from(chance.between(1, 5)).unwrap_or(1),
                max_unavailable: chance.hits(0.6).then_some(1),
                grace_seconds: chance.between(1, 60),
                is_daemon: chance.hits(0.2),
            });
        }
        self.processes = if chance.hits(0.5) { 2 } else { 1 };
        self.notices = chance.hits(0.5);
    }

    fn draw_timings(&mut self, chance: &mut Chance, rates: &BTreeMap<FaultKind, f64>) {
        self.kubelets = KubeletSettings {
            boot_seconds: (10, chance.between(20, 120)),
            removes_nodes: chance.hits(0.5),
            reuses_names: rates.contains_key(&FaultKind::F55),
        };
        self.api_latency_max = chance.between(0, 50);
        self.cloud_latency_max = chance.between(10, 1000);
        self.launch_visibility = Duration::from_secs(*chance.pick(&[60, 120, 300]).unwrap_or(&60));
        self.restart_seconds = (1, chance.between(2, 60));
    }

    fn draw_acts(&mut self, chance: &mut Chance) {
        let seconds = self.storm.as_secs();
        let at = |chance: &mut Chance| Duration::from_secs(chance.below(seconds));
        let pools: Vec<String> = self.pools.iter().map(|pool| pool.name.clone()).collect();
        for _ in 0..chance.below(5) {
            let set = chance.pick(&pools).cloned().unwrap_or_default();
            let replicas = usize::try_from(chance.below(7)).unwrap_or_default();
            self.acts.push((at(chance), Act::Scale { set, replicas }));
        }
        for _ in 0..chance.below(4) {
            self.acts.push((at(chance), Act::DeleteAnyMachine));
        }
        if chance.hits(0.15) {
            let set = chance.pick(&pools).cloned().unwrap_or_default();
            let foreground = chance.hits(0.3);
            self.acts.push((at(chance), Act::DeleteSet { set, foreground }));
        }
        if self.rates.contains_key(&FaultKind::F18) {
            for name in self.singles.clone() {
                self.acts.push((at(chance), Act::Recreate { name }));
            }
        }
        if self.rates.contains_key(&FaultKind::F24) {
            for app in self.apps.iter().filter(|app| app.max_unavailable.is_some()) {
                let (begins, lasts) = (at(chance), chance.seconds(60, 1200));
                let budget = |most| Act::SetBudget { app: app.name.clone(), most };
                self.acts.push((begins, budget(0)));
                self.acts.push((begins + lasts, budget(1)));
            }
        }
        if self.rates.contains_key(&FaultKind::F46) {
            for _ in 0..chance.between(1, 3) {
                self.acts.push((at(chance), Act::ChangeUserData));
            }
        }
        if self.rates.contains_key(&FaultKind::F35) {
            for _ in 0..chance.between(5, 60) {
                self.acts.push((at(chance), Act::Poke));
            }
        }
        if self.rates.contains_key(&FaultKind::F73) {
            for _ in 0..chance.between(2, 8) {
                let stranger = chance.pick(&Stranger::ALL).copied().unwrap_or(Stranger::Unknown);
                self.acts.push((at(chance), Act::AskForCertificate { stranger }));
            }
        }
        let minutes = self.storm.as_secs_f64() / 60.0;
        let verbs = [
            (FaultKind::F56, ConsoleVerb::Stop),
            (FaultKind::F56, ConsoleVerb::Start),
            (FaultKind::F56, ConsoleVerb::Reboot),
            (FaultKind::F56, ConsoleVerb::Terminate),
            (FaultKind::F56, ConsoleVerb::Vanish),
            (FaultKind::F57, ConsoleVerb::SpotNotice),
            (FaultKind::F57, ConsoleVerb::ScheduledStop),
        ];
        for (kind, verb) in verbs {
            let rate = self.rates.get(&kind).copied().unwrap_or_default();
            if chance.hits(rate * minutes) {
                self.acts.push((at(chance), Act::Console { verb, machine: None }));
            }
        }
    }

    /// Somebody watches over the health of machines, of one pool or of all.
    fn draw_checks(&mut self, chance: &mut Chance) {
        if !chance.hits(0.4) {
            return;
        }
        let pools: Vec<String> = self.pools.iter().map(|pool| pool.name.clone()).collect();
        for number in 0..chance.between(1, 2) {
            let shares =
                [json!("100%"), json!("40%"), json!("60%"), json!(1), json!(2), json!("3")];
            let is_said = chance.hits(0.8);
            let share = chance.pick(&shares).cloned();
            let pool = chance.pick(&pools).cloned();
            let is_for_all = chance.hits(0.5);
            let mut conditions = Vec::new();
            for status in ["Unknown", "False"] {
                let timeout = format!("{}s", chance.between(30, 300));
                if conditions.is_empty() || chance.hits(0.7) {
                    conditions.push(("Ready".to_owned(), status.to_owned(), timeout));
                }
            }
            let startups = [None, Some("5m"), Some("10m"), Some("20m"), Some("0")];
            let startup = chance.pick(&startups).copied().flatten();
            self.health_checks.push(HealthCheck {
                name: format!("check-{number}"),
                pool: pool.filter(|_| !is_for_all),
                max_unhealthy: share.filter(|_| is_said),
                conditions,
                node_startup_timeout: startup.map(str::to_owned),
            });
        }
    }

    fn draw_unadmitted(&mut self, chance: &mut Chance) {
        for number in 0..chance.below(6).saturating_sub(3) {
            let flaw = chance.pick(&Flaw::ALL).copied().unwrap_or(Flaw::NoRegion);
            self.unadmitted.push((format!("unadmitted-{number}"), flaw));
        }
    }

    /// Objects to begin with.
    #[must_use]
    pub fn objects(&self, world: &WorldIds) -> Vec<(&'static str, serde_json::Value)> {
        let mut objects: Vec<(&'static str, serde_json::Value)> =
            self.pools.iter().map(|pool| ("machinesets", pool.object(world))).collect();
        let single = Pool::new("single", 0);
        for name in &self.singles {
            objects.push(("machines", single.single_machine(world, name)));
        }
        for name in &self.misconfigured {
            let mut machine = single.single_machine(world, name);
            machine["spec"]["providerSpec"]["value"]["ami"]["id"] = "ami-00000000deadbeef0".into();
            objects.push(("machines", machine));
        }
        for (name, flaw) in &self.unadmitted {
            let mut machine = single.single_machine(world, name);
            flaw.apply(&mut machine);
            objects.push(("machines", machine));
        }
        for number in 0..self.control_plane {
            let name = format!("master-{number}");
            objects.push(("machines", control_plane_machine(&single, world, &name)));
        }
        for check in &self.health_checks {
            objects.push(("machinehealthchecks", check.object()));
        }
        objects
    }

    /// The operator's flags.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        let mut flags = vec![format!("--launch-visibility={}s", self.launch_visibility.as_secs())];
        if self.others_approve {
            flags.push("--approve-certificates=false".to_owned());
        }
        if self.notices {
            flags.push("--aws-event-queue-url=https://queue.simulated/events".to_owned());
        }
        flags
    }

    /// What the faults that are on make it impossible to see in time.
    #[must_use]
    pub fn allowance(&self) -> Allowance {
        let on = |kind| self.rates.contains_key(&kind);
        let view_lag = if BLINDING.into_iter().any(on) {
            None
        } else if on(FaultKind::F17) {
            Some(Duration::from_secs(30))
        } else {
            Some(Duration::from_secs(10))
        };
        // A clock that is wrong, of a process or of the cloud, misjudges how long something lasted.
        let clocks_jump = on(FaultKind::F59) || on(FaultKind::F80);
        Allowance { view_lag, clocks_jump, ..Allowance::default() }
    }
}
