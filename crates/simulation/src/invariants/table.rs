//! Which promises are checked, where, and which still wait for their subject?

/// The promises that are checked now, with what each says.
pub const CHECKED: &[(&str, &str)] = &[
    ("S1", "at most one live instance for a Machine uid, at every instant"),
    (
        "S1b",
        "at most one instance for a client token, for ever; another only after the former ended",
    ),
    ("S2", "nothing is launched for a Machine that is being deleted, or whose pool is"),
    ("S3", "the finalizer is durable before the first launch"),
    ("S4", "the finalizer goes only when nothing of the Machine lives in the cloud"),
    ("S5", "our finalizer is there once or not at all, and goes only from a Machine being deleted"),
    ("S6", "only the instance of a Machine being deleted, or a proven orphan, is terminated"),
    ("S8", "no instance is terminated while a pod that must go is on its Node"),
    ("S9", "a Node is deleted only when its instance is off"),
    ("S11", "pods leave by eviction only"),
    (
        "S14",
        "no drain before preDrain hooks are gone, no termination before preTerminate hooks are",
    ),
    ("S10", "pods are removed by force only after the recorded deadline of this very drain"),
    (
        "S13",
        "one Machine of the control plane at a time, only where policy allows it, and only while all \
         others are well",
    ),
    ("S15", "work begins only where the budgets of pool, zone and cluster have a place"),
    ("S16", "what was finished keeps its place for the cool-down"),
    (
        "S17",
        "no more Machines of a pool than it wants, and a pool changes by one, for a maintenance that \
         asks for it",
    ),
    ("S18", "a Machine with a surplus goes only when the rest is as many as the pool wants"),
    (
        "S19",
        "no more Machines of a pool are deleted than are surplus, and those that are marked first",
    ),
    (
        "S20",
        "a Machine is remediated only if it is unhealthy, and no more are than maxUnhealthy or the gate \
         allow",
    ),
    (
        "S21",
        "work begins in an open window that is long enough and in no freeze, or where policy or a \
         person overrules that; and approved where policy wants it",
    ),
    ("S22", "cordons of others stay, and ours are lifted when the work is over"),
    ("S23", "nothing is done for a Machine that another API owns, or begun while it is paused"),
    ("S25", "the cloud is changed only while all leases are held"),
    ("S26", "a Machine never takes over the Node or instance of another uid"),
    ("S27", "nobody overwrites the tags that say whose an instance is"),
    (
        "S28",
        "a first certificate is approved once for a Machine that is new and has that name, and one to \
         serve only for the Machine's own names; once quiet, every kubelet has both",
    ),
    ("CA1", "a MachineDeployment of Cluster API has one MachineSet for each template"),
    ("CA2", "a Machine of Cluster API has one object of each provider"),
    ("L1", "once quiet, all is as wanted and stays so"),
    ("L2", "once quiet, a Machine being deleted is gone or says what it waits for"),
    ("L3", "once quiet, no instance and no Node is left over"),
    ("L5", "once quiet, no unhealthy Machine is left that a health check may have replaced"),
    ("L9", "once quiet, what needs maintenance gets it in its time, or says what it waits for"),
    ("R1", "once quiet, calls to the cloud are few and change nothing"),
    ("R2", "once quiet, nothing is written but Leases"),
    ("T1", "once quiet, the status says what is true"),
    ("T3", "a condition's lastTransitionTime moves only when it says something else"),
    ("PANIC", "no task of the operator panics"),
];

/// The promises that are held in another way than by a check of their own.
pub const ELSEWHERE: &[(&str, &str)] = &[
    ("S7", "as S6 wherever the sweep terminates; scripts b40, b41 and b42"),
    ("L4", "scripts b71 and b74: what is poisoned or stuck blocks nobody"),
    ("L6", "as L1 after crashes, in every storm and in the exhaustive mode"),
    ("L7", "as L1: there is no resync; script b77"),
    ("L8", "as L1: holders of leases die in storms; script b79"),
    ("L11", "as L1 after throttling; script b72"),
    ("L13", "as L1 after outages; scripts b67 and b95"),
    ("L14", "as L9: a drain that does not end is forced, abandoned or waited for, as policy says"),
    ("R3", "the benchmark with throttling"),
    ("R4", "the benchmark's memory"),
    ("R5", "the queue's own tests"),
    ("R6", "the operator's own tests of its start"),
    ("T4", "core's tables: every refusal has its words"),
    ("T5", "the end-to-end canary"),
];

/// The promises that wait for the capability that brings their subject.
pub const PENDING: &[(&str, &str)] = &[
    ("S12", "volume attachments are not waited for yet: drain of volumes"),
    ("S24", "hashes of drift over versions: outdated Machines"),
    ("S29", "secrets of other namespaces: identities"),
    ("S30", "view and written revisions at each effect: once the operator records them"),
    ("L12", "a spec that is put right again: outdated Machines"),
    ("T2", "success that did not happen: once a status says when it was decided"),
];
