//! Which cluster does a script begin with? Pools, Machines, health checks, applications, operators and
//! how fast everything is.

use std::collections::BTreeMap;

use machinist_testbed::cloud::model::WorldIds;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{cluster_api::ClusterApi, values::Span};
use crate::{
    actors::{App, KubeletSettings},
    invariants::Allowance,
    swarm::Plan,
    template::{HealthCheck, Pool, of_control_plane},
    world::Extras,
};

/// The cluster, and how long things take in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Cluster {
    pub seed: u64,
    pub pools: Vec<PoolSpec>,
    /// Machines that no pool keeps.
    pub machines: Vec<MachineSpec>,
    pub apps: Vec<AppSpec>,
    pub health_checks: Vec<HealthCheckSpec>,
    /// MaintenancePolicies: their specs, by name.
    pub policies: BTreeMap<String, Value>,
    /// Whether etcd's static pods run on the Nodes of the control plane.
    pub etcd: bool,
    /// Whether etcd's operator protects its Machines by hooks.
    pub etcd_operator: bool,
    /// How many operators there are: `a`, `b`, `c`.
    pub processes: usize,
    /// How long a boot takes until the Node is there, from and to.
    pub boot_seconds: (u64, u64),
    /// Whether Nodes of gone instances are removed by the cluster itself.
    pub removes_nodes: bool,
    /// Whether names of Nodes go round a few.
    pub reuses_names: bool,
    /// The longest ordinary travel time of a request.
    pub api_latency_millis: u64,
    pub cloud_latency_millis: u64,
    /// How long after a launch the cloud may not show the instance, as the operator is told.
    pub launch_visibility: Span,
    /// Whether the operator hears of changes through a queue.
    pub notices: bool,
    /// How long a restart of an operator takes, from and to.
    pub restart_seconds: (u64, u64),
    /// Whether certificates are approved by somebody else, whoever asks.
    pub others_approve: bool,
    /// Flags of the operator beyond the usual.
    pub flags: Vec<String>,
    /// How far the operator's view of the cluster may be behind before promises count it as
    /// broken. Only a script that blinds the operator while people act needs more than the usual.
    pub view_lag: Span,
    /// From which age on orphans may be terminated; never without it.
    pub orphan_age: Option<Span>,
    /// Whether the timeline tells of every request.
    pub tells_requests: bool,
    /// What there is of Cluster API; without it no operator looks after that.
    pub cluster_api: Option<ClusterApi>,
}

impl Default for Cluster {
    fn default() -> Self {
        let plan = Plan::calm(1);
        Self {
            seed: 1,
            pools: Vec::new(),
            machines: Vec::new(),
            apps: Vec::new(),
            health_checks: Vec::new(),
            policies: BTreeMap::new(),
            etcd: false,
            etcd_operator: false,
            processes: plan.processes,
            // All alike, so that pods find all Nodes of a new pool at once and spread over them.
            boot_seconds: (30, 30),
            removes_nodes: plan.kubelets.removes_nodes,
            reuses_names: plan.kubelets.reuses_names,
            api_latency_millis: plan.api_latency_max,
            cloud_latency_millis: 10,
            launch_visibility: Span(plan.launch_visibility),
            notices: plan.notices,
            restart_seconds: plan.restart_seconds,
            others_approve: false,
            flags: Vec::new(),
            view_lag: Span::seconds(10),
            orphan_age: None,
            tells_requests: false,
            cluster_api: None,
        }
    }
}

/// A MachineSet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PoolSpec {
    pub name: String,
    pub replicas: usize,
    pub spot: bool,
    pub zone: usize,
    /// Whether its Machines are of the control plane.
    pub control_plane: bool,
    pub pre_drain_hook: bool,
    pub pre_terminate_hook: bool,
    pub annotations: BTreeMap<String, String>,
    /// Anything else, merged into the object.
    pub merge: Value,
}

/// A Machine without a pool.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MachineSpec {
    pub name: String,
    pub control_plane: bool,
    pub pre_drain_hook: bool,
    pub pre_terminate_hook: bool,
    pub annotations: BTreeMap<String, String>,
    pub merge: Value,
}

/// A MachineHealthCheck.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HealthCheckSpec {
    pub name: String,
    /// The pool whose Machines it watches; none means all there are.
    pub pool: Option<String>,
    /// A number or a share; none leaves it to the API server.
    pub max_unhealthy: Option<Value>,
    pub conditions: Vec<BadCondition>,
    pub node_startup_timeout: Option<String>,
    /// Anything else, merged into the object.
    pub merge: Value,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BadCondition {
    #[serde(rename = "type", default = "ready")]
    pub type_: String,
    pub status: String,
    pub timeout: String,
}

fn ready() -> String {
    "Ready".to_owned()
}

/// An application: pods that are kept at a number, or one on each Node.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AppSpec {
    pub name: String,
    #[serde(default = "one")]
    pub replicas: usize,
    /// How many its disruption budget lets be away; none means without a budget.
    #[serde(default)]
    pub most_away: Option<i64>,
    #[serde(default = "thirty")]
    pub grace_seconds: u64,
    /// Whether its pods belong to a DaemonSet.
    #[serde(default)]
    pub daemon: bool,
}

const fn one() -> usize {
    1
}

const fn thirty() -> u64 {
    30
}

impl Cluster {
    /// The plan of the world. Pools and Machines are made by the script itself.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let policies = self
            .policies
            .iter()
            .map(|(name, spec)| json!({ "metadata": { "name": name }, "spec": spec }));
        Plan {
            policies: policies.collect(),
            has_etcd: self.etcd,
            has_etcd_operator: self.etcd_operator,
            apps: self.apps.iter().map(AppSpec::app).collect(),
            processes: self.processes,
            kubelets: KubeletSettings {
                boot_seconds: self.boot_seconds,
                removes_nodes: self.removes_nodes,
                reuses_names: self.reuses_names,
            },
            api_latency_max: self.api_latency_millis,
            cloud_latency_max: self.cloud_latency_millis,
            launch_visibility: self.launch_visibility.0,
            notices: self.notices,
            restart_seconds: self.restart_seconds,
            others_approve: self.others_approve,
            tells_requests: self.tells_requests,
            ..Plan::calm(self.seed)
        }
    }

    #[must_use]
    pub fn extras(&self) -> Extras {
        let allowance = Allowance {
            view_lag: Some(self.view_lag.0),
            orphan_age: self.orphan_age.map(|age| age.0),
            ..Allowance::default()
        };
        let mut flags = self.flags.clone();
        if self.cluster_api.is_some() {
            flags.push("--cluster-api=true".to_owned());
        }
        let cluster_api = self.cluster_api.as_ref().map(ClusterApi::provider);
        Extras { flags, allowance: Some(allowance), cluster_api, ..Extras::default() }
    }

    /// What is there from the beginning: group, plural and object.
    #[must_use]
    pub fn objects(&self, world: &WorldIds) -> Vec<(&'static str, &'static str, Value)> {
        let group = "machine.openshift.io";
        let pools = self.pools.iter().map(|pool| (group, "machinesets", pool.object(world)));
        let machines =
            self.machines.iter().map(|machine| (group, "machines", machine.object(world)));
        let checks = self.health_checks.iter();
        let checks = checks.map(|check| (group, "machinehealthchecks", check.object()));
        let of_cluster_api = self.cluster_api.iter().flat_map(ClusterApi::objects);
        pools.chain(machines).chain(checks).chain(of_cluster_api).collect()
    }
}

impl PoolSpec {
    #[must_use]
    pub fn object(&self, world: &WorldIds) -> Value {
        let pool = Pool {
            spot: self.spot,
            zone: self.zone,
            pre_drain_hook: self.pre_drain_hook,
            pre_terminate_hook: self.pre_terminate_hook,
            ..Pool::new(&self.name, self.replicas)
        };
        let mut object = pool.object(world);
        let more = json!({ "metadata": { "annotations": self.annotations } });
        json_patch::merge(&mut object, &more);
        if self.control_plane {
            let more = json!({ "spec": { "template": of_control_plane() } });
            json_patch::merge(&mut object, &more);
        }
        merge(&mut object, &self.merge);
        object
    }
}

impl MachineSpec {
    #[must_use]
    pub fn object(&self, world: &WorldIds) -> Value {
        let pool = Pool {
            pre_drain_hook: self.pre_drain_hook,
            pre_terminate_hook: self.pre_terminate_hook,
            ..Pool::new("single", 0)
        };
        let mut object = pool.single_machine(world, &self.name);
        let more = json!({ "metadata": { "annotations": self.annotations } });
        json_patch::merge(&mut object, &more);
        if self.control_plane {
            json_patch::merge(&mut object, &of_control_plane());
        }
        merge(&mut object, &self.merge);
        object
    }
}

impl HealthCheckSpec {
    #[must_use]
    pub fn object(&self) -> Value {
        let conditions = self
            .conditions
            .iter()
            .map(|one| (one.type_.clone(), one.status.clone(), one.timeout.clone()));
        let check = HealthCheck {
            name: self.name.clone(),
            pool: self.pool.clone(),
            max_unhealthy: self.max_unhealthy.clone(),
            conditions: conditions.collect(),
            node_startup_timeout: self.node_startup_timeout.clone(),
        };
        let mut object = check.object();
        merge(&mut object, &self.merge);
        object
    }
}

impl AppSpec {
    fn app(&self) -> App {
        App {
            name: self.name.clone(),
            replicas: self.replicas,
            max_unavailable: self.most_away,
            grace_seconds: self.grace_seconds,
            is_daemon: self.daemon,
        }
    }
}

fn merge(object: &mut Value, more: &Value) {
    if !more.is_null() {
        json_patch::merge(object, more);
    }
}
