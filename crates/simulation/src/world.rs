//! What is a world? An API server, a cloud, operators and everybody else, on one thread and in virtual
//! time, all from one seed. Nothing sleeps: time that nobody needs is skipped.

mod quiet;

use std::{
    future::pending,
    sync::{Arc, Mutex},
};

use jiff::Timestamp;
use machinist_operator::engine::supervisor::{Spawner, Supervisor};
use machinist_testbed::cloud::model::{Cloud, CloudConfig, WorldIds};
use serde_json::json;

use crate::{
    actors::{
        self, Actor, Etcd, GarbageCollector, Kubelets, Provider, ProviderSettings, Scene, Signer,
        User, Workloads,
    },
    api_server::{ApiServer, Config, Subresource},
    chance::Chance,
    clock::Clock,
    cloud::{SimulatedCloud, SimulatedClouds},
    effects::NoInterference,
    faults::{
        FaultKind,
        api::{ApiFaults, Outages},
        storm::{Storm, StormyEffects},
    },
    hub::Hub,
    invariants::{Allowance, Judge, Violation},
    process::{self, ProcessParts},
    swarm::Plan,
    tally::Tally,
    template, trace,
};

/// When every run begins.
const START: &str = "2026-01-05T09:00:00Z";
/// How long everything must stay as it is once it has settled: longer than any period of the operator, so
/// that each comes round once.
const REST_MINUTES: u64 = 10;

/// When every run begins.
#[must_use]
pub fn start_of_runs() -> Timestamp {
    START.parse().unwrap_or(Timestamp::UNIX_EPOCH)
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct RunReport {
    pub seed: u64,
    pub violation: Option<Violation>,
    /// The same for two runs only if everything happened at the same time in the same order.
    pub fingerprint: u64,
    /// The timeline up to the violation, where there was one.
    pub timeline: String,
    pub tally: Tally,
    /// How many effects there were.
    pub effects: u64,
}

/// What a script asks for beyond a plan.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// Flags of the operator beyond the plan's.
    pub flags: Vec<String>,
    /// Instead of what the plan's faults make it impossible to see in time.
    pub allowance: Option<Allowance>,
    /// How long everything must stay as it is in the end, instead of the usual.
    pub rest_minutes: Option<u64>,
    /// When it begins, instead of the usual time.
    pub start: Option<Timestamp>,
    /// How fast the providers of Cluster API are, where operators look after its Machines.
    pub cluster_api: Option<ProviderSettings>,
}

impl RunReport {
    /// Of a run that could not be begun.
    #[must_use]
    pub fn never_ran(words: String) -> Self {
        Self {
            seed: 0,
            violation: Some(Violation {
                id: "HOST",
                subject: String::new(),
                time: Timestamp::UNIX_EPOCH,
                words,
            }),
            fingerprint: 0,
            timeline: String::new(),
            tally: Tally::default(),
            effects: 0,
        }
    }
}

/// A world that runs.
pub struct World {
    pub scene: Scene,
    pub plan: Plan,
    pub ids: WorldIds,
    outages: Arc<Mutex<Outages>>,
    start: Timestamp,
    rest_minutes: u64,
}

/// Runs a plan to its quiet end.
#[must_use]
pub fn run(plan: &Plan, keep_timeline: bool) -> RunReport {
    run_script(plan, keep_timeline, async |world: &World| world.run_to_the_end().await)
}

/// Runs a plan with somebody who drives it; the script's end is the end of the run.
///
/// The runtime is made here, so that nothing of one run is left for the next.
#[must_use]
pub fn run_script<S>(plan: &Plan, keep_timeline: bool, script: S) -> RunReport
where
    S: AsyncFnOnce(&World),
{
    run_script_with(plan, &Extras::default(), keep_timeline, script)
}

/// The same, with more than a plan says.
#[must_use]
pub fn run_script_with<S>(plan: &Plan, extras: &Extras, keep_timeline: bool, script: S) -> RunReport
where
    S: AsyncFnOnce(&World),
{
    let built =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    match built {
        Ok(runtime) => runtime.block_on(drive(plan, extras, keep_timeline, script)),
        Err(error) => RunReport::never_ran(format!("no runtime: {error}")),
    }
}

async fn drive<S>(plan: &Plan, extras: &Extras, keep_timeline: bool, script: S) -> RunReport
where
    S: AsyncFnOnce(&World),
{
    let supervisor = Supervisor::new();
    let world = World::begin(plan, extras, &supervisor.spawner());
    let hub = Arc::clone(&world.scene.hub);
    tokio::select! {
        biased;
        () = hub.violated.notified() => {}
        ended = supervisor.run(pending()) => {
            let words = ended.err().map(|error| format!("{error:#}")).unwrap_or_default();
            hub.violate("WORLD", "", format!("the world itself ended: {words}"));
        }
        () = script(&world) => {}
    }
    let report = world.report(keep_timeline);
    // A swarm runs worlds without end: each must leave nothing behind.
    world.scene.server.part_from_all();
    hub.interfere(NoInterference);
    report
}

impl World {
    fn begin(plan: &Plan, extras: &Extras, spawner: &Spawner) -> Self {
        let seed = plan.seed;
        let start = extras.start.unwrap_or_else(start_of_runs);
        let clock = Clock::starting_at(start);
        let allowance = extras.allowance.clone().unwrap_or_else(|| plan.allowance());
        let hub = Hub::new(clock, Judge::new(allowance), 20_000);
        let server = api_server(&hub, seed);
        hub.judge().look_at(&server);
        let reuses_addresses = plan.kubelets.reuses_names;
        let config = CloudConfig { reuses_addresses, ..CloudConfig::default() };
        let model = Cloud::new(config, seed);
        let ids = model.world().ids().clone();
        let travel = Chance::stream(seed, "travel");
        let cloud = SimulatedCloud::new(&hub, model, travel, spawner, plan.cloud_latency_max);
        let scene = Scene { hub: Arc::clone(&hub), server, cloud };
        let world = Self {
            scene,
            plan: plan.clone(),
            ids,
            outages: Arc::default(),
            start,
            rest_minutes: extras.rest_minutes.unwrap_or(REST_MINUTES),
        };
        world.install();
        let mut actors = world.actors();
        if let Some(settings) = &extras.cluster_api {
            world.install_cluster_api();
            actors.push(Box::new(Provider::new(settings.clone())));
        }
        world.disturb();
        spawner.spawn("cloud", world.scene.cloud.clone().keep_time());
        spawner.spawn("actors", actors::play(world.scene.clone(), actors));
        for number in 0..plan.processes {
            let name = ["a", "b", "c"].get(number).copied().unwrap_or("z").to_owned();
            let parts = ProcessParts {
                seed,
                name: name.clone(),
                flags: plan.flags().into_iter().chain(extras.flags.iter().cloned()).collect(),
                hub: Arc::clone(&hub),
                server: world.scene.server.clone(),
                clouds: SimulatedClouds { cloud: world.scene.cloud.clone() },
                restart_seconds: plan.restart_seconds,
            };
            spawner.spawn(format!("process {name}"), process::keep_running(parts));
        }
        world
    }

    fn actors(&self) -> Vec<Box<dyn Actor>> {
        let plan = &self.plan;
        let seed = plan.seed;
        let user = User::new(self.start, plan.acts.clone(), Chance::stream(seed, "user"));
        let storm = Storm::new(
            plan.rates.clone(),
            Chance::stream(seed, "storm"),
            Arc::clone(&self.outages),
            self.storm_ends(),
            plan.launch_visibility,
        );
        let kubelets = Kubelets::new(plan.kubelets.clone(), Chance::stream(seed, "kubelets"));
        vec![
            Box::new(user),
            Box::new(storm),
            Box::new(kubelets),
            Box::new(Signer::new(plan.others_approve)),
            Box::new(Workloads::new(plan.apps.clone())),
            Box::new(Etcd::new(plan.has_etcd, plan.has_etcd_operator)),
            Box::new(GarbageCollector::default()),
        ]
    }

    /// The namespace, the secrets, and what the plan begins with.
    fn install(&self) {
        let scene = &self.scene;
        for name in [
            template::NAMESPACE,
            template::AUTHORITIES_NAMESPACE,
            machinist_api::names::MAINTENANCE_NAMESPACE,
        ] {
            let namespace = json!({ "metadata": { "name": name } });
            scene.create("installer", "", "namespaces", namespace);
        }
        scene.create("installer", "", "configmaps", template::kubelet_authorities());
        for secret in template::secrets() {
            scene.create("installer", "", "secrets", secret);
        }
        for policy in &self.plan.policies {
            scene.create("installer", "machinist.dev", "maintenancepolicies", policy.clone());
        }
        for (plural, object) in self.plan.objects(&self.ids) {
            scene.create("installer", "machine.openshift.io", plural, object);
        }
    }

    /// The Cluster, what its providers bring, and the first Machine of its control plane.
    fn install_cluster_api(&self) {
        let scene = &self.scene;
        let namespace = json!({ "metadata": { "name": template::cluster_api::LEASE_NAMESPACE } });
        scene.create("installer", "", "namespaces", namespace);
        let machine = template::cluster_api::single_machine("control-plane", true);
        for (group, plural, object) in template::cluster_api::installed().into_iter().chain(machine)
        {
            scene.create("installer", group, plural, object);
        }
    }

    fn disturb(&self) {
        let (plan, scene) = (&self.plan, &self.scene);
        scene.server.set_faults(ApiFaults {
            hub: Arc::clone(&scene.hub),
            chance: Chance::stream(plan.seed, "api faults"),
            rates: plan.rates.clone(),
            outages: Arc::clone(&self.outages),
            latency_max: plan.api_latency_max,
            until: self.storm_ends(),
            tells: plan.tells_requests,
        });
        let rate = plan.rates.get(&FaultKind::F30).copied().unwrap_or_default();
        if rate > 0.0 {
            scene.hub.interfere(StormyEffects {
                hub: Arc::clone(&scene.hub),
                chance: Chance::stream(plan.seed, "effects"),
                rate,
                until: self.storm_ends(),
            });
        }
    }

    /// What goes wrong for a while on the way to the API server.
    #[must_use]
    pub fn outages(&self) -> Arc<Mutex<Outages>> {
        Arc::clone(&self.outages)
    }

    fn storm_ends(&self) -> Timestamp {
        actors::later(self.start, self.plan.storm)
    }

    /// The storm, the calm after it, and the judgement.
    pub async fn run_to_the_end(&self) {
        tokio::time::sleep(self.plan.storm).await;
        self.calm_down();
        self.settle_and_rest().await;
    }

    fn report(&self, keep_timeline: bool) -> RunReport {
        let hub = &self.scene.hub;
        let violation = hub.judge().verdict().cloned();
        let timeline = match &violation {
            Some(violation) if !keep_timeline => {
                let only = Some(violation.subject.as_str()).filter(|it| !it.is_empty());
                hub.trace().render(only)
            }
            _ if keep_timeline => hub.trace().render(None),
            _ => String::new(),
        };
        let mut tally = hub.tally().clone();
        let elapsed = hub.clock.elapsed().as_secs_f64();
        tally.simulated_seconds = elapsed;
        tally.process_starts = u64::from(hub.with_processes(|all| all.starts()));
        // Close enough: how many there are at the end.
        tally.machine_seconds = elapsed * hub.judge().machines() as f64;
        RunReport {
            seed: self.plan.seed,
            violation,
            fingerprint: hub.trace().fingerprint(),
            timeline,
            tally,
            effects: hub.effects(),
        }
    }
}

fn api_server(hub: &Arc<Hub>, seed: u64) -> ApiServer {
    let clock = hub.clock;
    let mut chance = Chance::stream(seed, "api server");
    let config = Config::default();
    let now = Arc::new(move || clock.now());
    let server = ApiServer::new(&config, now, Box::new(move || chance.number()));
    let observed = Arc::clone(hub);
    server.observe(move |commit| {
        if let Some((subject, words)) = trace::describe(commit) {
            observed.trace().note(commit.time, &subject, &words);
        }
        let is_over = commit.after.as_ref().is_none_or(|object| object.is_being_deleted());
        if is_over {
            observed.weather().deletions += 1;
        }
        observed.judge().committed(commit);
        observed.publish_violations();
        let plural = commit.kind.kind.plural;
        if plural == "certificatesigningrequests" {
            observed.weather().requests += 1;
        }
        let is_telling = match plural {
            "nodes" | "pods" | "certificatesigningrequests" => true,
            "machines" | "machinesets" | "simmachines" | "simconfigs" => {
                commit.subresource != Subresource::Status
            }
            _ => false,
        };
        if is_telling {
            observed.changed.notify_one();
        }
    });
    server
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;
    use crate::faults::Level;

    /// A swarm runs worlds without end.
    #[test]
    fn nothing_of_a_world_is_left_when_it_has_ended() {
        let plan = Plan::draw(7, Level::Calm);
        let mut hub = Weak::new();
        let mut server = None;
        let report = run_script(&plan, false, async |world: &World| {
            hub = Arc::downgrade(&world.scene.hub);
            server = Some(world.scene.server.holders());
            world.run_to_the_end().await;
        });
        assert!(report.violation.is_none(), "{}", report.timeline);
        let left = (hub.strong_count(), server.map(|count| count()));
        assert_eq!(left, (0, Some(0)), "holders of the hub and of the API server");
    }
}
