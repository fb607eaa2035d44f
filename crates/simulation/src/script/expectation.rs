//! What can a script expect to be so?

use serde::Deserialize;
use serde_json::Value;

use super::values::{Count, MachineName};

/// One thing that must be so now, or must have happened since the last mark.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Expectation {
    Machine(MachineIs),
    /// How many Machines there are.
    Machines {
        count: Count,
        #[serde(default)]
        pool: Option<String>,
        #[serde(default)]
        phase: Option<String>,
        #[serde(default)]
        is: Option<Presence>,
    },
    Pool(PoolIs),
    HealthCheck(HealthCheckIs),
    /// Requests for certificates that there are.
    Requests {
        count: Count,
        #[serde(default)]
        is: Option<RequestState>,
        /// Of strangers, or of kubelets; of both where it is not said.
        #[serde(default)]
        of_strangers: Option<bool>,
    },
    /// How many instances the cloud has; only live ones where no state is named.
    Instances {
        count: Count,
        #[serde(default)]
        machine: Option<MachineName>,
        #[serde(default)]
        state: Option<String>,
    },
    Nodes {
        count: Count,
        #[serde(default)]
        ready: Option<bool>,
        #[serde(default)]
        cordoned: Option<bool>,
    },
    /// Pods of an application that run.
    Pods {
        app: String,
        count: Count,
    },
    // What happened since the mark.
    /// Instances that were launched.
    Launches {
        count: Count,
        #[serde(default)]
        machine: Option<MachineName>,
    },
    /// Instances that an operator terminated.
    Terminations {
        count: Count,
        #[serde(default)]
        machine: Option<MachineName>,
    },
    /// Calls of the cloud's API.
    Calls {
        action: String,
        /// `ok` or an error code.
        #[serde(default)]
        result: Option<String>,
        count: Count,
    },
    /// Effects that operators tried, as the timeline names them.
    Effects {
        what: String,
        #[serde(default)]
        machine: Option<MachineName>,
        count: Count,
    },
    /// Machines that were marked for deletion.
    Deletions {
        count: Count,
        #[serde(default)]
        by: Option<Actor>,
        #[serde(default)]
        pool: Option<String>,
    },
    /// Machines that were made.
    Creations {
        count: Count,
        #[serde(default)]
        pool: Option<String>,
    },
    /// Pods that an operator evicted.
    Evictions {
        count: Count,
    },
    /// Nodes that an operator cordoned.
    Cordons {
        count: Count,
    },
    /// The most Nodes that were ever cordoned at the same time, by whomever.
    CordonedAtOnce {
        count: Count,
    },
    Event {
        reason: String,
        /// About this Machine.
        #[serde(default)]
        machine: Option<MachineName>,
        /// What its words contain.
        #[serde(default)]
        says: Option<String>,
        #[serde(default = "at_least_one")]
        count: Count,
    },
    /// Writes of operators, Leases apart.
    Writes {
        count: Count,
        /// The plural.
        #[serde(default)]
        kind: Option<String>,
    },
    /// Watches of workload clusters of Cluster API that are open.
    WorkloadWatches {
        count: Count,
    },
    /// Lives of operators that began.
    Starts {
        count: Count,
    },
    /// How many objects of a kind there are.
    Objects {
        kind: String,
        count: Count,
        #[serde(default)]
        is: Option<Presence>,
    },
    /// What is at a path of any object.
    Object {
        kind: String,
        #[serde(default)]
        namespace: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        machine: Option<MachineName>,
        /// A JSON pointer.
        at: String,
        /// `null` means that nothing is there.
        #[serde(default)]
        is: Option<Value>,
        #[serde(default)]
        contains: Option<String>,
    },
}

/// What is expected of a Machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MachineIs {
    pub name: MachineName,
    #[serde(default)]
    pub is: Option<Presence>,
    #[serde(default)]
    pub phase: Option<String>,
    /// Whether it is linked to a Node.
    #[serde(default)]
    pub linked: Option<bool>,
    #[serde(default)]
    pub condition: Option<ConditionIs>,
    /// Who marked it for deletion.
    #[serde(default)]
    pub deleted_by: Option<Actor>,
    /// What its error message contains.
    #[serde(default)]
    pub error_says: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Presence {
    /// It exists, whatever becomes of it.
    There,
    /// It exists and is not being deleted.
    Kept,
    Deleting,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Actor {
    Operator,
    Others,
    Nobody,
}

/// What is expected of a condition.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConditionIs {
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False`, `Unknown`.
    #[serde(default)]
    pub status: Option<String>,
    #[serde(default)]
    pub reason: Option<String>,
    #[serde(default)]
    pub says: Option<String>,
    /// Whether it is enough that it was so since the mark.
    #[serde(default)]
    pub ever: bool,
    /// Whether it must not be so.
    #[serde(default)]
    pub not: bool,
}

/// What is expected of a pool.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PoolIs {
    pub name: String,
    #[serde(default)]
    pub ready: Option<Count>,
    #[serde(default)]
    pub replicas: Option<Count>,
    #[serde(default)]
    pub condition: Option<ConditionIs>,
    #[serde(default)]
    pub error_says: Option<String>,
}

/// What is expected of a health check.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HealthCheckIs {
    pub name: String,
    #[serde(default)]
    pub healthy: Option<Count>,
    #[serde(default)]
    pub expected: Option<Count>,
    /// How many more may be remediated.
    #[serde(default)]
    pub allowed: Option<Count>,
    #[serde(default)]
    pub condition: Option<ConditionIs>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RequestState {
    Pending,
    Approved,
}

const fn at_least_one() -> Count {
    Count::AtLeast(1)
}
