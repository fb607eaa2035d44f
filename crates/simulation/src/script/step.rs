//! What can happen in a script, one thing after the other?

use std::collections::BTreeMap;

use machinist_testbed::cloud::model;
use serde::Deserialize;
use serde_json::Value;

use super::{
    cluster::{HealthCheckSpec, MachineSpec, PoolSpec},
    expectation::Expectation,
    values::{Fate, MachineName, Span},
};
use crate::actors::Stranger;

/// One step.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Step {
    // Time.
    Wait(Span),
    Until(Until),
    /// The same steps so many times.
    Repeat {
        times: u32,
        steps: Vec<Self>,
    },
    // Judgement.
    Expect(Vec<Expectation>),
    /// What is counted is counted from here on.
    Mark,
    /// Ends all faults; what people keep back is let go as well.
    Calm,
    /// Waits until all is as wanted, and watches that it stays so. Faults go on.
    Rest,
    /// `calm`, then `rest`.
    Settle,
    // People.
    AddPool(PoolSpec),
    AddMachine(MachineSpec),
    AddHealthCheck(HealthCheckSpec),
    Scale {
        pool: String,
        replicas: usize,
    },
    DeletePool {
        pool: String,
        #[serde(default)]
        foreground: bool,
    },
    DeleteMachine(MachineName),
    /// Deletes a Machine and makes another of the same name as soon as it is gone.
    Recreate(MachineName),
    RemoveHooks(MachineName),
    Annotate(Annotate),
    SetBudget {
        app: String,
        most_away: i64,
    },
    /// Ends all pods of an application at once: its new ones are spread over the Nodes that are there.
    RestartApp(String),
    ChangeUserData(String),
    /// Makes an object of any kind, written out with its kind and version.
    Create(Value),
    /// Merges a patch into any object.
    Patch(PatchObject),
    DeleteObject(ObjectName),
    Console {
        verb: ConsoleAct,
        machine: MachineName,
    },
    /// The provider announces an event.
    Announce(Announce),
    /// The provider moves, ends or forgets the events of a Machine's instance.
    ChangeEvents(ChangeEvents),
    /// Somebody else takes a Machine's Node out of work, or puts it back.
    CordonNode {
        machine: MachineName,
        cordoned: bool,
    },
    /// Somebody asks for a certificate that is not theirs.
    AskForCertificate(AskForCertificate),
    /// People delete what strangers asked for.
    WithdrawRequests,
    /// A kubelet asks anew for the certificate that it serves with.
    RenewCertificate(MachineName),
    /// Somebody sets tags of a Machine's instance.
    TagInstance {
        machine: MachineName,
        tags: BTreeMap<String, String>,
    },
    // The cloud.
    /// Faults of the cloud's model, in its own words.
    Cloud(Box<model::Faults>),
    /// Ends the faults of one kind, named as above, or `all`.
    EndCloud(String),
    /// Leaves a Machine's instance out of what the cloud shows.
    Hide {
        machine: MachineName,
        #[serde(rename = "for")]
        lasting: Option<Span>,
        reads: Option<u32>,
    },
    // The way to the API server.
    ApiServerAway(Span),
    ThrottleApi(Span),
    ExpireHistory,
    Watches(WatchFault),
    Lists(ListFault),
    Forbid(Forbid),
    /// No operator reaches a workload cluster of Cluster API.
    WorkloadsAway(Span),
    /// The providers of Cluster API do nothing.
    ProvidersAway(Span),
    // Nodes and pods.
    Nodes(NodeFault),
    /// What becomes of boots from now on.
    Boots(Boots),
    // Operators.
    Crash(String),
    /// Ends as SIGTERM does.
    Stop(String),
    Pause {
        process: String,
        #[serde(rename = "for")]
        lasting: Span,
    },
    CutOff {
        process: String,
        #[serde(rename = "for")]
        lasting: Span,
    },
    JumpClock {
        process: String,
        by: jiff::SignedDuration,
    },
    OnEffect(OnEffect),
}

/// Waits for something; that it does not come in time is a failure.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Until {
    pub all: Vec<Expectation>,
    #[serde(default = "ten_minutes")]
    pub within: Span,
}

const fn ten_minutes() -> Span {
    Span::seconds(600)
}

/// Sets annotations of a Machine or a pool; `null` takes one away.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Annotate {
    #[serde(default)]
    pub machine: Option<MachineName>,
    #[serde(default)]
    pub pool: Option<String>,
    pub annotations: Value,
}

/// An object of any kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectName {
    /// The plural: `machines`, `nodes`, `machines.cluster.x-k8s.io`.
    pub kind: String,
    /// Empty means the usual one of its kind.
    #[serde(default)]
    pub namespace: String,
    #[serde(default)]
    pub name: String,
    /// Instead of a name: this Machine, its Node where the kind is `nodes`, or its kubelet's first request
    /// where it is `certificatesigningrequests`.
    #[serde(default)]
    pub machine: Option<MachineName>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PatchObject {
    pub kind: String,
    #[serde(default)]
    pub namespace: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub machine: Option<MachineName>,
    /// Whether the status is meant.
    #[serde(default)]
    pub status: bool,
    pub body: Value,
}

/// What is done to an instance behind the cluster's back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConsoleAct {
    Stop,
    /// The provider stops it, for its own reasons.
    ProviderStops,
    /// Its guest shuts down.
    GuestStops,
    Start,
    Reboot,
    Terminate,
    ProviderTerminates,
    Vanish,
    SpotNotice,
    /// The guest no longer answers.
    Impair,
    /// The host is broken.
    ImpairSystem,
    Heal,
}

/// An event that the provider announces.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Announce {
    pub machine: MachineName,
    pub code: model::EventCode,
    /// When it acts.
    #[serde(rename = "in")]
    pub after: Span,
    /// For how much longer it may be moved.
    #[serde(default)]
    pub movable: Option<Span>,
}

/// What the provider does to its events.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeEvents {
    pub machine: MachineName,
    #[serde(default)]
    pub later_by: Option<Span>,
    #[serde(default)]
    pub state: Option<model::EventState>,
    #[serde(default)]
    pub forgotten: bool,
}

/// A stranger's request, or many.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AskForCertificate {
    pub stranger: Stranger,
    /// Whom it aims at; any that fits where none is named.
    #[serde(default)]
    pub machine: Option<MachineName>,
    #[serde(default = "first")]
    pub times: u64,
}

/// What becomes of the events of watches of a kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WatchFault {
    /// The plural, or `all`.
    pub kind: String,
    pub are: WatchFate,
    /// How late they are, where they are.
    #[serde(default)]
    pub by: Option<Span>,
    #[serde(rename = "for")]
    pub lasting: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WatchFate {
    /// At the first event the watch falls silent for good.
    Silent,
    Dropped,
    Late,
    Doubled,
    /// After each event comes the version before it once more.
    Regressing,
    /// Ended with "too old resource version".
    Expired,
}

/// What becomes of lists of a kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListFault {
    pub kind: String,
    pub are: ListFate,
    /// How old or how slow.
    #[serde(default)]
    pub by: Option<Span>,
    #[serde(rename = "for")]
    pub lasting: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ListFate {
    /// Answered from an earlier state, where the client allows that (resourceVersion 0).
    Stale,
    Slow,
    /// An internal error.
    Failing,
}

/// A verb on a kind that the operators may not use for a while.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Forbid {
    /// `get`, `list`, `create`, `patch`, `delete`.
    pub verb: ForbiddenVerb,
    pub kind: String,
    #[serde(rename = "for")]
    pub lasting: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ForbiddenVerb {
    Get,
    List,
    Create,
    Patch,
    Delete,
}

/// Guests that fall ill for a while.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeFault {
    /// Whose; none means all that run.
    #[serde(default)]
    pub machines: Vec<MachineName>,
    pub are: NodeTrouble,
    #[serde(rename = "for")]
    pub lasting: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeTrouble {
    NotReady,
    /// The kubelet is dead and the instance runs; also: the guest does not join before.
    Silent,
}

/// Chances of what becomes of boots, and of pods that are told to go.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Boots {
    pub late: f64,
    pub never: f64,
    /// Pods that take all the time they are given.
    pub stubborn_pods: f64,
}

/// A fault that is aimed at an effect of an operator.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OnEffect {
    /// As the timeline names it: `RunInstances`, `MergePatch machines/status`.
    pub what: String,
    /// Only effects on this Machine.
    #[serde(default)]
    pub machine: Option<MachineName>,
    /// Only those that come after one of this name.
    #[serde(default)]
    pub after: Option<String>,
    /// Which of them is the first that is hit.
    #[serde(default = "first")]
    pub occurrence: u64,
    /// How many are hit, one after the other.
    #[serde(default = "first")]
    pub times: u64,
    pub fate: Fate,
}

const fn first() -> u64 {
    1
}
