//! How the parts for Cluster API are put together. Wiring only; nothing is decided here.

use std::{sync::Arc, time::Duration};

use clap::Args as ClapArgs;
use jiff::SignedDuration;
use kube::{Client, Resource, core::NamespaceResourceScope};
use machinist_api::cluster_api::names::{lease, reason};
use machinist_core::{
    cluster_api::machine::{
        node_keys::{KeyPattern, NodeKeys},
        observed::Policy,
    },
    decision::Wait,
    lease::LeaseTimings,
    machineset::Ceilings,
};

use super::{
    clouds::{self, WatchedCloud},
    cluster,
    context::{Context, Stores},
    deployment,
    externals::Externals,
    health,
    machine::{self, Memory, Parts},
    machineset,
    maintained::{self, Maintained},
    wake::{self, Queues},
    workloads::{ConnectWorkload, Workloads},
};
use crate::{
    context::SharedContext,
    engine::{
        events::{EventTarget, EventType},
        leadership::Leadership,
        lease::{Election, NamedLease},
        queue::{Outcome, Queue},
        store::{ObjectKey, Store},
        supervisor::Spawner,
        watch::{Watch, Watched},
    },
};

/// How many are worked on at once. A Machine's pass waits for the API server only.
const MACHINE_CONCURRENCY: usize = 64;
const CLUSTER_CONCURRENCY: usize = 16;
const SET_CONCURRENCY: usize = 16;
/// How soon a process without the leases looks again.
const NOT_LEADING: Duration = Duration::from_secs(5);

/// The flags that are about Cluster API.
#[derive(Clone, Debug, ClapArgs)]
pub struct ClusterApiArgs {
    /// Looks after Machines, MachineSets, MachineDeployments and MachineHealthChecks of cluster.x-k8s.io in place of Cluster API's own
    /// core manager. Stands by for as long as that one holds its lease.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        action = clap::ArgAction::Set
    )]
    pub cluster_api: bool,

    /// Namespace of the Cluster API objects that are looked after; all namespaces by default.
    #[arg(long, value_name = "NAMESPACE")]
    pub cluster_api_namespace: Option<String>,

    /// Namespace of the lease controller-leader-election-capi of Cluster API's core manager. It is held while we act, so
    /// that the two never act together.
    #[arg(long, value_name = "NAMESPACE", default_value = lease::CORE_NAMESPACE)]
    pub cluster_api_lease_namespace: String,

    /// How long what was last known of a Node is shown while its workload cluster cannot be reached.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = crate::args::duration)]
    pub cluster_api_remote_conditions_grace: Duration,

    /// Where the instances of Cluster API's machines are looked at for scheduled events and failing checks: a region, the Secret
    /// with the account's credentials, and the cluster's name in the tag kubernetes.io/cluster/NAME. May be given several times.
    #[arg(long, value_name = "region=R,secret=NAMESPACE/NAME,tag=NAME")]
    pub cluster_api_cloud: Vec<WatchedCloud>,

    /// Which labels of a Machine of Cluster API its Node gets, besides those of node.cluster.x-k8s.io,
    /// node-restriction.kubernetes.io and node-role.kubernetes.io: those whose key matches this regular expression. May be
    /// given several times.
    #[arg(long, value_name = "REGEX")]
    pub cluster_api_additional_sync_machine_labels: Vec<KeyPattern>,

    /// Which annotations of a Machine of Cluster API its Node gets, besides those of node.cluster.x-k8s.io: those whose key
    /// matches this regular expression. May be given several times.
    #[arg(long, value_name = "REGEX")]
    pub cluster_api_additional_sync_machine_annotations: Vec<KeyPattern>,
}

/// What is started, and what it is given.
pub struct Starting<'a> {
    pub args: &'a ClusterApiArgs,
    pub identity: String,
    pub lease_duration: Option<Duration>,
    pub base: &'a SharedContext,
    pub spawner: &'a Spawner,
    pub connect: Arc<dyn ConnectWorkload>,
    /// How many Machines there may be.
    pub ceilings: Ceilings,
    /// Where maintenance hears of changes.
    pub maintenance: &'a crate::wake::Queues,
}

/// Starts watches, connections and controllers.
///
/// # Errors
/// Fails when the durations of the lease contradict each other.
pub fn start(starting: &Starting<'_>) -> anyhow::Result<Arc<Context>> {
    let Starting { args, base, spawner, .. } = starting;
    let (client, env, metrics) = (&base.client, &base.env, &base.metrics);
    let namespace = args.cluster_api_namespace.as_deref();
    let externals = Externals::new(client, env, metrics, spawner, namespace);
    let workloads = Workloads::new(client, env, metrics, spawner, Arc::clone(&starting.connect));
    let context = Arc::new(Context {
        base: Arc::clone(base),
        stores: Arc::new(Stores::default()),
        externals,
        nodes: Arc::new(workloads.clone()),
    });
    let machines = Queue::new(machine::NAME, env, metrics);
    let clusters = Queue::new(cluster::NAME, env, metrics);
    let to = machines.clone();
    let parts = Arc::new(Parts {
        workloads: workloads.clone(),
        memory: Memory::default(),
        policy: Policy {
            remote_conditions_grace: SignedDuration::try_from(
                args.cluster_api_remote_conditions_grace,
            )?,
            node_keys: NodeKeys {
                labels: args.cluster_api_additional_sync_machine_labels.clone(),
                annotations: args.cluster_api_additional_sync_machine_annotations.clone(),
            },
        },
        spawner: (*spawner).clone(),
        wake: Arc::new(move |key| to.add(key)),
    });
    machine::wake::connect(&context, &parts, &machines);
    cluster::wake::connect(&context, &workloads, &clusters);
    let queues = Queues {
        machine_sets: Queue::new(machineset::NAME, env, metrics),
        deployments: Queue::new(deployment::NAME, env, metrics),
        health_checks: Queue::new(health::NAME, env, metrics),
    };
    wake::connect(&context.stores, &queues);
    let (on, to) = (Arc::downgrade(&context.stores), queues.clone());
    workloads.listen(move |cluster, news| {
        if let Some(stores) = on.upgrade() {
            wake::workload_changed(&stores, &to, cluster, news);
        }
    });
    watch_all(client, base, spawner, namespace, &context.stores);
    let leadership = elect(starting)?;
    let maintained = Maintained {
        stores: Arc::clone(&context.stores),
        nodes: Arc::clone(&context.nodes),
        leadership: leadership.clone(),
    };
    maintained::wake::connect(&base.stores, &maintained, &workloads, starting.maintenance);
    clouds::watch(base, &maintained, spawner, &args.cluster_api_cloud);
    base.stores.cluster_api.put(maintained);
    let start = |name, queue, concurrency, handler| {
        run(&context, spawner, &leadership, name, queue, concurrency, handler);
    };
    let (of, with) = (Arc::clone(&context), Arc::clone(&parts));
    start(
        machine::NAME,
        machines,
        MACHINE_CONCURRENCY,
        Box::new(move |key| {
            let (context, parts) = (Arc::clone(&of), Arc::clone(&with));
            Box::pin(async move { machine::reconcile(&context, &parts, key).await })
        }),
    );
    let of = Arc::clone(&context);
    start(
        cluster::NAME,
        clusters,
        CLUSTER_CONCURRENCY,
        Box::new(move |key| {
            let (context, workloads) = (Arc::clone(&of), workloads.clone());
            Box::pin(async move { cluster::reconcile(&context, &workloads, key).await })
        }),
    );
    let (of, memory) = (Arc::clone(&context), Arc::new(machineset::Memory::new(starting.ceilings)));
    start(
        machineset::NAME,
        queues.machine_sets,
        SET_CONCURRENCY,
        Box::new(move |key| {
            let (context, memory) = (Arc::clone(&of), Arc::clone(&memory));
            Box::pin(async move { machineset::reconcile(&context, &memory, key).await })
        }),
    );
    let (of, memory) = (Arc::clone(&context), Arc::new(deployment::Memory::default()));
    start(
        deployment::NAME,
        queues.deployments,
        SET_CONCURRENCY,
        Box::new(move |key| {
            let (context, memory) = (Arc::clone(&of), Arc::clone(&memory));
            Box::pin(async move { deployment::reconcile(&context, &memory, key).await })
        }),
    );
    let (of, memory) = (Arc::clone(&context), Arc::new(health::Memory::default()));
    start(
        health::NAME,
        queues.health_checks,
        SET_CONCURRENCY,
        Box::new(move |key| {
            let (context, memory) = (Arc::clone(&of), Arc::clone(&memory));
            Box::pin(async move { health::reconcile(&context, &memory, key).await })
        }),
    );
    Ok(context)
}

fn watch_all(
    client: &Client,
    base: &SharedContext,
    spawner: &Spawner,
    namespace: Option<&str>,
    stores: &Stores,
) {
    let Stores { clusters, machines, machine_sets, deployments, health_checks, drain_rules } =
        stores;
    watch(client, base, spawner, namespace, clusters);
    watch(client, base, spawner, namespace, machines);
    watch(client, base, spawner, namespace, machine_sets);
    watch(client, base, spawner, namespace, deployments);
    watch(client, base, spawner, namespace, health_checks);
    watch(client, base, spawner, namespace, drain_rules);
}

/// A kind whose CRD is not there is gone without, and asked for again from time to time.
fn watch<K>(
    client: &Client,
    base: &SharedContext,
    spawner: &Spawner,
    namespace: Option<&str>,
    store: &Store<K>,
) where
    K: Watched + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let reporter = base.events.clone();
    let kind = K::kind(&()).into_owned();
    let name = format!("watch of {} of Cluster API", K::plural(&()));
    let watch = Watch::within(client, &base.metrics, store, namespace).optional().on_invalid(
        move |object| {
            let metadata = &object.metadata;
            let target = EventTarget {
                api_version: machinist_api::cluster_api::API_VERSION.to_owned(),
                kind: kind.clone(),
                namespace: metadata.namespace.clone().unwrap_or_default(),
                name: metadata.name.clone().unwrap_or_default(),
                uid: metadata.uid.clone().unwrap_or_default(),
            };
            let why = machinist_api::names::event::FAILED_VALIDATE;
            reporter.record(&target, EventType::Warning, why, "Validate", &object.error);
        },
    );
    spawner.spawn(name, watch.run(base.env.clone()));
}

/// The lease of Cluster API's own core manager: while that one has it, nothing is done here; while we have it, that one waits.
fn elect(starting: &Starting<'_>) -> anyhow::Result<Leadership> {
    let Starting { args, base, spawner, .. } = starting;
    let duration = starting.lease_duration.unwrap_or(Duration::from_secs(15));
    let timings = LeaseTimings {
        duration,
        renew_deadline: duration.mul_f64(0.7),
        retry_period: duration.mul_f64(0.15),
    };
    let leases = vec![NamedLease { name: lease::CORE.to_owned(), timings }];
    let namespace = &args.cluster_api_lease_namespace;
    let (election, leadership) = Election::new(
        &base.client,
        &base.env,
        &base.metrics,
        namespace,
        starting.identity.clone(),
        leases,
    )?;
    let (mut own, stopping) = (base.leadership.clone(), spawner.stopping_last());
    spawner.spawn_last("leader election of Cluster API", async move {
        // Whoever leads the operator leads here as well. Were this lease another's, neither would ever act.
        tokio::select! {
            biased;
            () = stopping.cancelled() => return Ok(()),
            () = own.held() => {}
        }
        election.run(stopping).await
    });
    Ok(leadership)
}

pub type Run = std::pin::Pin<Box<dyn Future<Output = Outcome> + Send>>;
pub type Handler = Box<dyn Fn(ObjectKey) -> Run + Send + Sync>;

/// Runs a controller once all kinds are listed, for as long as both the operator's own leases and that of Cluster API are held.
pub fn run(
    context: &Arc<Context>,
    spawner: &Spawner,
    leadership: &Leadership,
    name: &'static str,
    queue: Queue<ObjectKey>,
    concurrency: usize,
    handler: Handler,
) {
    let (context, leadership) = (Arc::clone(context), leadership.clone());
    let stopping = spawner.stopping();
    let of = Arc::clone(&context);
    let led: Handler = Box::new(move |key| {
        if of.base.leadership.is_held() {
            return handler(key);
        }
        let wait = Wait::on(reason::INTERNAL_ERROR, "the operator's own leases are not held");
        of.base.note_waiting(name, &key, &[wait]);
        Box::pin(async { Outcome::RecheckAfter(NOT_LEADING) })
    });
    spawner.spawn_graceful(format!("{name} controller"), async move {
        tokio::select! {
            biased;
            () = stopping.cancelled() => return Ok(()),
            () = context.stores.synced() => {}
        }
        queue.run(leadership, stopping, concurrency, led).await
    });
}
