//! How the parts are put together: stores, watches, clouds, queues, leases. Wiring only; nothing is
//! decided here.

mod stores;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::SignedDuration;
use kube::Client;
use machinist_api::openshift_config::{ApiServer, CLUSTER, Infrastructure};
use machinist_core::{
    approval::{Bootstrapper, Policy as ApprovalPolicy},
    lease::LeaseTimings,
    sweep, tls_profile,
};
use machinist_providers::service;

use crate::{
    approval::{self, Approver, kubelets::Kubelets},
    args::Args,
    cloud::{CloudParts, CloudSettings, Clouds, connect::Connect, view::ViewTimings},
    cluster_api::{
        self,
        workloads::{ConnectWorkload, OverTls},
    },
    context::{Context, Stores},
    drain,
    engine::{
        env::Env,
        events::{EventRecorder, EventTarget, EventType},
        leadership::Leadership,
        lease::{Election, NamedLease},
        queue::{Outcome, Queue},
        store::{InvalidObject, ObjectKey, Store},
        supervisor::Spawner,
        watch::Watch,
    },
    fleet, health,
    http::Readiness,
    machine, machineset, maintenance,
    metrics::Metrics,
    nodelink,
    openshift::OpenShift,
    page::{self, AsUser},
    serving::{Parts, TlsServers},
    status::StatusPublisher,
    sweep::Sweeper,
    tls::{settings::TlsSettings, trust::CaBundle},
    upkeep,
    wake::{self, Queues},
};

/// How many MachineSets and Nodes are worked on at once; both only write to the API server.
const SET_CONCURRENCY: usize = 8;
const NODE_CONCURRENCY: usize = 16;
/// One check after another: the second sees what the first has deleted, so that two of them never
/// take a pool, or the control plane, apart together.
const CHECK_CONCURRENCY: usize = 1;
/// How many signing requests are worked on at once; a few of them may wait for a kubelet's answer.
const REQUEST_CONCURRENCY: usize = 16;

/// What the operator reaches besides the API server. The simulator brings its own.
pub struct Outside {
    pub clouds: Arc<dyn Connect>,
    pub kubelets: Arc<dyn Kubelets>,
    /// Whom the API server must trust to ask us.
    pub ca_bundle: CaBundle,
    /// The workload clusters of Cluster API.
    pub workloads: Arc<dyn ConnectWorkload>,
}

/// Runs the operator until it is told to stop, or a part of it fails.
#[cfg(feature = "aws")]
pub async fn run(args: Args, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
    let env = Env::system()?;
    let metrics = Metrics::new();
    let cluster = crate::client::Cluster::find(args.kubeconfig.as_deref()).await?;
    let client = cluster.connect(&metrics)?;
    let clouds = Arc::new(crate::cloud::real::RealClouds { metrics: metrics.clone() });
    let supervisor = crate::engine::supervisor::Supervisor::new();
    let of = metrics.clone();
    let as_user: AsUser = Arc::new(move |token| cluster.connect_as(token, &of));
    serve(&args, &client, &env, &metrics, &supervisor.spawner(), clouds, as_user).await?;
    supervisor.run(shutdown).await
}

/// Starts everything that is asked over the network, and everything that works on the cluster.
pub async fn serve(
    args: &Args,
    client: &Client,
    env: &Env,
    metrics: &Metrics,
    spawner: &Spawner,
    clouds: Arc<dyn Connect>,
    as_user: AsUser,
) -> anyhow::Result<()> {
    let readiness = Readiness::default();
    let shown = args.serving.http_metrics.then_some(metrics);
    let server = crate::http::Server::bind(&args.http_address, shown, &readiness).await?;
    if let Some(file) = &args.http_address_file {
        let lines: String = server.addresses.iter().map(|address| format!("{address}\n")).collect();
        std::fs::write(file, lines)?;
    }
    spawner.spawn("http server", server.run());
    let parts = Parts { client, namespace: &args.namespace, env, metrics, spawner };
    let servers = TlsServers::bind(&args.serving, &args.page, parts).await?;
    let kubelets = Arc::new(approval::kubelets::OverTls::default());
    let workloads = Arc::new(OverTls { metrics: metrics.clone() });
    let ca_bundle = servers.ca_bundle.clone();
    let outside = Outside { clouds, kubelets, ca_bundle, workloads };
    let context = start(args, client, env, metrics, spawner, &readiness, outside)?;
    follow_tls_profile(&context.stores.openshift, &servers.settings);
    let (api_servers, infrastructures) =
        (&context.stores.openshift.api_servers, &context.stores.infrastructures);
    let region = args.aws_region.clone();
    servers.start(parts, &readiness, api_servers, infrastructures, region, || {
        page::start(&args.page, &args.namespace, &context, spawner, as_user)
    });
    Ok(())
}

/// Has the servers speak as the cluster's profile says, from the next connection on.
fn follow_tls_profile(openshift: &OpenShift, settings: &TlsSettings) {
    let follow = |settings: &TlsSettings, known: Option<&ApiServer>| {
        settings.follow(tls_profile::of_api_server(known.map(|one| &one.spec)));
    };
    let followed = settings.clone();
    openshift.api_servers.on_change(move |change| {
        let known = change.after.as_deref();
        follow(&followed, known.filter(|one| one.metadata.name.as_deref() == Some(CLUSTER)));
    });
    // It may have been read before we listened.
    if let Some(known) = openshift.api_servers.get(&ObjectKey::cluster_wide(CLUSTER)) {
        follow(settings, Some(&known));
    }
}

/// Starts everything that works on the cluster. The simulator starts the same.
pub fn start(
    args: &Args,
    client: &Client,
    env: &Env,
    metrics: &Metrics,
    spawner: &Spawner,
    readiness: &Readiness,
    outside: Outside,
) -> anyhow::Result<Arc<Context>> {
    let approval_policy = approval_policy(args);
    let stores = Arc::new(stores::new(args, &approval_policy));
    let (events, writer) = EventRecorder::new(client, env, metrics, "machinist");
    let queues = Queues {
        machines: Queue::new(machine::NAME, env, metrics),
        machine_sets: Queue::new(machineset::NAME, env, metrics),
        capacities: Queue::new(machineset::capacity::NAME, env, metrics),
        nodes: Queue::new(nodelink::NAME, env, metrics),
        drains: Queue::new(drain::NAME, env, metrics),
        health_checks: Queue::new(health::NAME, env, metrics),
        requests: Queue::new(approval::NAME, env, metrics),
        maintenances: Queue::new(maintenance::NAME, env, metrics),
        plans: Queue::new(maintenance::planning::NAME, env, metrics),
    };
    let draining = Arc::new(drain::Memory::default());
    wake::connect(&stores, &queues, &draining);

    let (on, to) = (Arc::downgrade(&stores), queues.clone());
    let clouds = Clouds::new(CloudParts {
        client: client.clone(),
        env: env.clone(),
        spawner: spawner.clone(),
        metrics: metrics.clone(),
        connect: outside.clouds,
        settings: cloud_settings(args)?,
        openshift: stores.openshift.clone(),
        listener: Arc::new(move |news| {
            if let Some(on) = on.upgrade() {
                wake::cloud_changed(&on, &to, news);
            }
        }),
    });
    let leadership = start_election(args, client, env, metrics, spawner, &stores.infrastructures)?;
    let context = Arc::new(Context {
        client: client.clone(),
        env: env.clone(),
        metrics: metrics.clone(),
        events: events.clone(),
        stores: Arc::clone(&stores),
        clouds,
        launch_visibility: SignedDuration::try_from(args.launch_visibility)?,
        leadership,
    });
    fleet::register(&context);

    spawner.spawn_last("event writer", writer.run(spawner.stopping_last()));
    start_watches(args, client, env, metrics, spawner, &stores, &events);
    stores.openshift.watch(args, client, env, metrics, spawner);
    stores.hold.watch(client, env, metrics, spawner);
    for (name, is_synced) in stores::sync_checks(&stores) {
        readiness.require(name, is_synced);
    }
    if args.approve_certificates {
        let ca_bundle = args.kubelet_ca_bundle.clone();
        let approver = Approver::new(approval_policy, outside.kubelets, ca_bundle);
        start_approval(client, spawner, &context, queues.requests.clone(), approver);
    }
    start_health(spawner, &context, queues.health_checks.clone());
    let maintained = maintenance::Settings {
        webhook: args.maintenance_webhook.as_deref(),
        policies: args.maintenance_policies.as_deref(),
    };
    maintenance::start(
        maintained,
        spawner,
        &context,
        &queues,
        |name, queue, concurrency, handler| {
            start_controller(spawner, &context, name, queue, concurrency, handler);
        },
    );
    let told = queues.clone();
    start_controllers(args, spawner, &context, queues, draining);
    let upkeep = Arc::new(upkeep::Facts::default());
    upkeep::start(args, client, spawner, &context, &upkeep, outside.ca_bundle);
    start_sweep(args, spawner, &context, upkeep)?;
    if args.cluster_api.cluster_api {
        cluster_api::start::start(&cluster_api::start::Starting {
            args: &args.cluster_api,
            identity: args.identity.clone().unwrap_or_else(|| default_identity(env)),
            lease_duration: args.leader_elect_lease_duration,
            base: &context,
            spawner,
            connect: outside.workloads,
            ceilings: machineset::ceilings(args),
            maintenance: &told,
        })?;
    }
    Ok(context)
}

/// The sweep, and the status that tells of it.
fn start_sweep(
    args: &Args,
    spawner: &Spawner,
    context: &Arc<Context>,
    upkeep: Arc<upkeep::Facts>,
) -> anyhow::Result<()> {
    let policy = sweep::Policy {
        terminate: args.terminate_orphans,
        launch_timeout: SignedDuration::try_from(args.orphan_age)?,
        consistency_bound: SignedDuration::try_from(args.launch_visibility)?,
    };
    let sweeper = Sweeper::new(context, &args.namespace, policy, args.sweep_period);
    let publisher = StatusPublisher::new(context, &args.namespace, &sweeper.findings())
        .telling_of(upkeep, args.approve_certificates);
    spawner.spawn("sweep", sweeper.run());
    spawner.spawn("operator status", publisher.run());
    Ok(())
}

fn approval_policy(args: &Args) -> ApprovalPolicy {
    let mut policy = ApprovalPolicy::default();
    if args.approve_bootstrap_tokens {
        policy.bootstrappers.push(Bootstrapper::kubeadm_token());
    }
    policy
}

/// Approves certificates. It waits for its own kind besides those that all wait for, so that whoever
/// may not read signing requests has everything else.
fn start_approval(
    client: &Client,
    spawner: &Spawner,
    context: &Arc<Context>,
    queue: Queue<ObjectKey>,
    approver: Approver,
) {
    // Weakly: what listens to a store holds the metrics.
    let (stores, env) = (Arc::downgrade(&context.stores), context.env.clone());
    context.metrics.register_pending_requests(move || {
        stores.upgrade().map(|stores| approval::limits(&stores, env.now())).unwrap_or_default()
    });
    let stores = Arc::downgrade(&context.stores);
    context.metrics.register_certificate_approval(move || {
        stores.upgrade().is_some_and(|stores| stores.openshift.approval_standby().is_none())
    });
    let store = &context.stores.requests;
    let requests = Watch::cluster_wide(client, &context.metrics, store).optional();
    spawner.spawn("watch of signing requests", requests.run(context.env.clone()));
    let (of, approver) = (Arc::clone(context), Arc::new(approver));
    let handler: Handler = Box::new(move |key| {
        let (context, approver) = (Arc::clone(&of), Arc::clone(&approver));
        Box::pin(async move { approval::reconcile(&context, &approver, key).await })
    });
    start_controller(spawner, context, approval::NAME, queue, REQUEST_CONCURRENCY, handler);
}

/// Looks after MachineHealthChecks, in a cluster that has the kind.
fn start_health(spawner: &Spawner, context: &Arc<Context>, queue: Queue<ObjectKey>) {
    let (of, memory) = (Arc::clone(context), Arc::new(health::Memory::default()));
    let handler: Handler = Box::new(move |key| {
        let (context, memory) = (Arc::clone(&of), Arc::clone(&memory));
        Box::pin(async move { health::reconcile(&context, &memory, key).await })
    });
    start_controller(spawner, context, health::NAME, queue, CHECK_CONCURRENCY, handler);
}

fn start_watches(
    args: &Args,
    client: &Client,
    env: &Env,
    metrics: &Metrics,
    spawner: &Spawner,
    stores: &Stores,
    events: &EventRecorder,
) {
    let namespace = &args.namespace;
    let reporter = events.clone();
    let machines = Watch::namespaced(client, metrics, &stores.machines, namespace)
        .on_invalid(move |object| report_invalid(&reporter, "Machine", object));
    spawner.spawn("watch of machines", machines.run(env.clone()));
    let reporter = events.clone();
    let sets = Watch::namespaced(client, metrics, &stores.machine_sets, namespace)
        .on_invalid(move |object| report_invalid(&reporter, "MachineSet", object));
    spawner.spawn("watch of machinesets", sets.run(env.clone()));
    let nodes = Watch::cluster_wide(client, metrics, &stores.nodes);
    spawner.spawn("watch of nodes", nodes.run(env.clone()));
    let pods = Watch::cluster_wide(client, metrics, &stores.pods);
    spawner.spawn("watch of pods", pods.run(env.clone()));
    let budgets = Watch::cluster_wide(client, metrics, &stores.budgets);
    spawner.spawn("watch of disruption budgets", budgets.run(env.clone()));
    let infrastructures = Watch::cluster_wide(client, metrics, &stores.infrastructures).optional();
    spawner.spawn("watch of infrastructures", infrastructures.run(env.clone()));
    let reporter = events.clone();
    let checks = Watch::namespaced(client, metrics, &stores.health_checks, namespace)
        .optional()
        .on_invalid(move |object| report_invalid(&reporter, "MachineHealthCheck", object));
    spawner.spawn("watch of machinehealthchecks", checks.run(env.clone()));
}

/// An object that cannot be read is told so, on itself, and stops nobody else (Rule 12).
fn report_invalid(events: &EventRecorder, kind: &str, object: &InvalidObject) {
    let target = EventTarget {
        api_version: "machine.openshift.io/v1beta1".to_owned(),
        kind: kind.to_owned(),
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone().unwrap_or_default(),
        uid: object.metadata.uid.clone().unwrap_or_default(),
    };
    let reason = machinist_api::names::event::FAILED_VALIDATE;
    events.record(&target, EventType::Warning, reason, "Validate", &object.error);
}

fn start_election(
    args: &Args,
    client: &Client,
    env: &Env,
    metrics: &Metrics,
    spawner: &Spawner,
    infrastructures: &Store<Infrastructure>,
) -> anyhow::Result<Leadership> {
    let (operator, controllers) = match args.leader_elect_lease_duration {
        None => (LeaseTimings::MACHINE_API_OPERATOR, LeaseTimings::MACHINE_CONTROLLERS),
        Some(duration) => {
            let timings = LeaseTimings {
                duration,
                renew_deadline: duration.mul_f64(0.7),
                retry_period: duration.mul_f64(0.15),
            };
            (timings, timings)
        }
    };
    let identity = args.identity.clone().unwrap_or_else(|| default_identity(env));
    let leases = NamedLease::originals(operator, controllers);
    let (mut election, leadership) =
        Election::new(client, env, metrics, &args.namespace, identity, leases)?;
    let is_chosen = args.leader_elect_lease_duration.is_some();
    let (infrastructures, stopping) = (infrastructures.clone(), spawner.stopping_last());
    spawner.spawn_last("leader election", async move {
        // How long the operator's own lease lasts is a matter of the cluster.
        if !is_chosen {
            tokio::select! {
                biased;
                () = stopping.cancelled() => return Ok(()),
                () = infrastructures.synced() => {}
            }
            let cluster = infrastructures.get(&ObjectKey::cluster_wide(CLUSTER));
            election.set_first_timings(LeaseTimings::of_operator(cluster.as_deref()))?;
        }
        election.run(stopping).await
    });
    Ok(leadership)
}

/// The pod's name and something that no other process has.
fn default_identity(env: &Env) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}_{:016x}", host.trim(), env.random_u64())
}

fn start_controllers(
    args: &Args,
    spawner: &Spawner,
    context: &Arc<Context>,
    queues: Queues,
    draining: Arc<drain::Memory>,
) {
    let start = |name: &'static str, queue: Queue<ObjectKey>, concurrency, handler: Handler| {
        start_controller(spawner, context, name, queue, concurrency, handler);
    };
    let (of, memory) = (Arc::clone(context), Arc::new(machine::Memory::default()));
    start(
        machine::NAME,
        queues.machines,
        args.machine_concurrency,
        Box::new(move |key| {
            let (context, memory) = (Arc::clone(&of), Arc::clone(&memory));
            Box::pin(async move { machine::reconcile(&context, &memory, key).await })
        }),
    );
    let ceilings = machineset::ceilings(args);
    let (of, memory) = (Arc::clone(context), Arc::new(machineset::Memory::new(ceilings)));
    start(
        machineset::NAME,
        queues.machine_sets,
        SET_CONCURRENCY,
        Box::new(move |key| {
            let (context, memory) = (Arc::clone(&of), Arc::clone(&memory));
            Box::pin(async move { machineset::reconcile(&context, &memory, key).await })
        }),
    );
    let (of, memory) = (Arc::clone(context), Arc::new(machineset::capacity::Memory::default()));
    start(
        machineset::capacity::NAME,
        queues.capacities,
        SET_CONCURRENCY,
        Box::new(move |key| {
            let (context, memory) = (Arc::clone(&of), Arc::clone(&memory));
            Box::pin(async move { machineset::capacity::reconcile(&context, &memory, key).await })
        }),
    );
    let of = Arc::clone(context);
    start(
        nodelink::NAME,
        queues.nodes,
        NODE_CONCURRENCY,
        Box::new(move |key| {
            let context = Arc::clone(&of);
            Box::pin(async move { nodelink::reconcile(&context, key).await })
        }),
    );
    let of = Arc::clone(context);
    start(
        drain::NAME,
        queues.drains,
        args.drain_concurrency,
        Box::new(move |key| {
            let (context, memory) = (Arc::clone(&of), Arc::clone(&draining));
            Box::pin(async move { drain::reconcile(&context, &memory, key).await })
        }),
    );
}

fn start_controller(
    spawner: &Spawner,
    context: &Arc<Context>,
    name: &'static str,
    queue: Queue<ObjectKey>,
    concurrency: usize,
    handler: Handler,
) {
    let (context, stopping) = (Arc::clone(context), spawner.stopping());
    spawner.spawn_graceful(format!("{name} controller"), async move {
        // Nothing is decided on half a picture (R6).
        tokio::select! {
            biased;
            () = stopping.cancelled() => return Ok(()),
            () = stores::all_synced(&context.stores, name) => {}
        }
        queue.run(context.leadership.clone(), stopping, concurrency, handler).await
    });
}

type Run = std::pin::Pin<Box<dyn Future<Output = Outcome> + Send>>;
type Handler = Box<dyn Fn(ObjectKey) -> Run + Send + Sync>;

fn cloud_settings(args: &Args) -> anyhow::Result<CloudSettings> {
    let ca_bundle_pem = match &args.aws_ca_bundle {
        Some(path) => Some(std::fs::read_to_string(path).map_err(|error| {
            anyhow::anyhow!("failed to read --aws-ca-bundle {}: {error}", path.display())
        })?),
        None => None,
    };
    Ok(CloudSettings {
        region: args.aws_region.clone(),
        endpoints: endpoints(args),
        ca_bundle_pem,
        event_queue_url: args.aws_event_queue_url.clone(),
        timings: ViewTimings {
            list_period: args.cloud_list_period,
            first_look: args.cloud_first_look.max(Duration::from_millis(100)),
            report_period: args.cloud_report_period.max(Duration::from_secs(1)),
            launch_visibility: args.launch_visibility,
        },
    })
}

/// The endpoints that flags name, by the names that Infrastructure's `serviceEndpoints` use.
fn endpoints(args: &Args) -> BTreeMap<String, String> {
    let load_balancing = args.aws_elb_endpoint.as_ref().or(args.aws_ec2_endpoint.as_ref());
    [
        (service::EC2, args.aws_ec2_endpoint.as_ref()),
        (service::ELASTIC_LOAD_BALANCING, load_balancing),
        (service::STS, args.aws_sts_endpoint.as_ref()),
        (service::SQS, args.aws_sqs_endpoint.as_ref()),
    ]
    .into_iter()
    .filter_map(|(name, url)| Some((name.to_owned(), url?.clone())))
    .collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn certificates_are_approved_unless_that_is_switched_off() {
        let of = |flags: &[&str]| {
            let args = Args::parse_from([&["machinist-operator"], flags].concat());
            (args.approve_certificates, approval_policy(&args).bootstrappers.len())
        };
        assert_eq!(of(&[]), (true, 1));
        assert_eq!(of(&["--approve-certificates"]), (true, 1));
        assert_eq!(of(&["--approve-certificates=false"]), (false, 1));
        assert_eq!(of(&["--approve-bootstrap-tokens"]), (true, 2));
    }

    #[test]
    fn the_ec2_endpoint_serves_load_balancing_too_unless_that_has_its_own() {
        let of = |flags: &[&str]| {
            let args = Args::parse_from([&["machinist-operator"], flags].concat());
            let endpoints = endpoints(&args).into_iter();
            endpoints.map(|(name, url)| format!("{name}={url}")).collect::<Vec<_>>()
        };
        assert_eq!(of(&[]), [""; 0]);
        assert_eq!(of(&["--aws-ec2-endpoint=a"]), ["ec2=a", "elasticloadbalancing=a"]);
        assert_eq!(
            of(&[
                "--aws-ec2-endpoint=a",
                "--aws-elb-endpoint=b",
                "--aws-sts-endpoint=c",
                "--aws-sqs-endpoint=d",
            ]),
            ["ec2=a", "elasticloadbalancing=b", "sqs=d", "sts=c"]
        );
    }
}
