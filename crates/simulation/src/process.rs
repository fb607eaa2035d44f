//! How does an operator process live and die? Started as the real one is, dropped whole at a crash,
//! held still while it is paused.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use async_trait::async_trait;
use clap::Parser;
use machinist_operator::{
    approval::kubelets::Kubelets,
    args::Args,
    client,
    engine::{env::Env, supervisor::Supervisor},
    http::Readiness,
    metrics::Metrics,
    run::{self, Outside},
    tls::trust::{Authorities, CaBundle},
};
use tokio::{sync::Notify, time::Instant};

use crate::{
    api_server::ApiServer,
    certificates,
    chance::Chance,
    cloud::SimulatedClouds,
    hub::Hub,
    template,
    workload::{self, SimulatedWorkloads},
};

/// One life of a process, from its start to its end.
#[derive(Debug)]
pub struct Incarnation {
    /// Tells its requests from those of its other lives: `a#2`.
    pub tag: String,
    pub process: String,
    /// Its name in the leases.
    pub identity: String,
    dead: AtomicBool,
    ended: Notify,
    stop: Notify,
    paused_until: Mutex<Option<Instant>>,
    env: Env,
}

impl Incarnation {
    /// Ends it at once: nothing that it sends from now on arrives.
    pub fn crash(&self) {
        self.dead.store(true, Ordering::Relaxed);
        self.ended.notify_one();
    }

    /// Asks it to stop as SIGTERM does.
    pub fn terminate(&self) {
        self.stop.notify_one();
    }

    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// Holds whatever it sends until then.
    pub fn pause(&self, lasting: Duration) {
        let until = Instant::now() + lasting;
        *self.paused_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    /// How long it is still held.
    #[must_use]
    pub fn held_for(&self) -> Duration {
        let until = *self.paused_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Sets the wall clock of its host.
    pub fn jump_clock(&self, by: jiff::SignedDuration) {
        self.env.jump(by);
    }

    /// The wall clock of its host.
    #[must_use]
    pub fn now(&self) -> jiff::Timestamp {
        self.env.now()
    }
}

/// The kubelets of the world, as far as an operator asks them: for what they serve with.
struct ServingKubelets {
    hub: Arc<Hub>,
}

#[async_trait]
impl Kubelets for ServingKubelets {
    async fn serving_certificate(
        &self,
        node: &str,
        _address: IpAddr,
        authorities: &str,
    ) -> anyhow::Result<Vec<u8>> {
        anyhow::ensure!(authorities == template::KUBELET_AUTHORITIES, "signed by another");
        let served = self.hub.weather().served.get(node).cloned();
        let served = served.with_context(|| format!("the kubelet of {node} does not answer"))?;
        certificates::der(&served).with_context(|| format!("what {node} serves with is no PEM"))
    }
}

/// Every process that ever lived, by tag.
#[derive(Debug, Default)]
pub struct Processes {
    lives: BTreeMap<String, Arc<Incarnation>>,
    /// The life that goes on, by process.
    current: BTreeMap<String, Arc<Incarnation>>,
    starts: u32,
}

impl Processes {
    #[must_use]
    pub fn get(&self, tag: &str) -> Option<Arc<Incarnation>> {
        self.lives.get(workload::life_of(tag)).cloned()
    }

    /// Those that live, in the order of their names.
    #[must_use]
    pub fn living(&self) -> Vec<Arc<Incarnation>> {
        self.current.values().filter(|one| !one.is_dead()).cloned().collect()
    }

    #[must_use]
    pub const fn starts(&self) -> u32 {
        self.starts
    }

    fn begin(&mut self, process: &str, env: Env) -> Arc<Incarnation> {
        self.starts += 1;
        let number = self.lives.values().filter(|one| one.process == process).count() + 1;
        let tag = format!("{process}#{number}");
        let incarnation = Arc::new(Incarnation {
            identity: format!("{process}_{number}"),
            tag: tag.clone(),
            process: process.to_owned(),
            dead: AtomicBool::new(false),
            ended: Notify::new(),
            stop: Notify::new(),
            paused_until: Mutex::default(),
            env,
        });
        self.lives.insert(tag, Arc::clone(&incarnation));
        self.current.insert(process.to_owned(), Arc::clone(&incarnation));
        incarnation
    }
}

/// What every life of a process is started with.
#[derive(Clone)]
pub struct ProcessParts {
    pub name: String,
    pub seed: u64,
    /// The flags, without `--identity`.
    pub flags: Vec<String>,
    pub hub: Arc<Hub>,
    pub server: ApiServer,
    pub clouds: SimulatedClouds,
    /// How long a restart takes, in seconds, from and to.
    pub restart_seconds: (u64, u64),
}

/// Keeps a process running: a crash or an error is followed by a restart, as under a Deployment.
///
/// # Errors
/// Fails when the operator cannot be started at all.
pub async fn keep_running(parts: ProcessParts) -> anyhow::Result<()> {
    let mut chance = Chance::stream(parts.seed, &format!("process {}", parts.name));
    // What the host's clock shows apart from the truth outlives the process.
    let mut skew = jiff::SignedDuration::ZERO;
    loop {
        let hub = &parts.hub;
        let start = hub.clock.now().saturating_add(skew).unwrap_or_else(|_| hub.clock.now());
        let env = Env::simulated(start, chance.number());
        let incarnation = hub.with_processes(|all| all.begin(&parts.name, env.clone()));
        hub.note("", format!("{} starts", incarnation.tag));
        let ending = live(&parts, &incarnation, &env).await?;
        incarnation.crash();
        skew = incarnation.now().duration_since(hub.clock.now());
        hub.note("", format!("{} {ending}", incarnation.tag));
        if ending.contains("lost the lease") {
            hub.sometimes("a process gives up because its lease is lost");
        }
        if ending.contains("panicked") {
            hub.violate("PANIC", "", format!("{}: {ending}", incarnation.tag));
        }
        let (least, most) = parts.restart_seconds;
        tokio::time::sleep(chance.seconds(least, most)).await;
    }
}

/// One life; returns how it ended.
async fn live(
    parts: &ProcessParts,
    incarnation: &Arc<Incarnation>,
    env: &Env,
) -> anyhow::Result<String> {
    let mut flags = vec!["machinist-operator".to_owned()];
    flags.extend(parts.flags.iter().cloned());
    flags.push(format!("--identity={}", incarnation.identity));
    let args = Args::try_parse_from(flags)?;
    let metrics = Metrics::new();
    let service = parts.server.service(&incarnation.tag);
    let client = client::with_service(service, &args.namespace, &metrics);
    let outside = Outside {
        clouds: Arc::new(parts.clouds.for_process(Arc::clone(incarnation))),
        kubelets: Arc::new(ServingKubelets { hub: Arc::clone(&parts.hub) }),
        // Nothing is served here.
        ca_bundle: CaBundle::fixed(Authorities::ToldByOthers),
        workloads: Arc::new(SimulatedWorkloads {
            hub: Arc::clone(&parts.hub),
            server: parts.server.clone(),
            life: incarnation.tag.clone(),
            metrics: metrics.clone(),
        }),
    };
    let supervisor = Supervisor::new();
    let spawner = supervisor.spawner();
    run::start(&args, &client, env, &metrics, &spawner, &Readiness::default(), outside)?;
    let stop = incarnation.stop.notified();
    Ok(tokio::select! {
        biased;
        () = incarnation.ended.notified() => "crashed".to_owned(),
        result = supervisor.run(stop) => match result {
            Ok(()) => "stopped".to_owned(),
            Err(error) => format!("ended: {error:#}"),
        },
    })
}
