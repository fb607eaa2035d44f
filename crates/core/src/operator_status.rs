//! How is the operator doing? From the state of its views, its permissions and its last sweep to
//! the conditions that people and other programs read.
//!
//! The sentences name what to do something about, are sorted and have a bounded length, and change
//! only when the facts do: whoever stores them writes nothing at rest (Rule 11).

mod published;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::{cloud::ErrorClass, decision::Wait};

pub use published::{
    CONFIG_MAP, CloudProblem, CloudState, KEY, OperatorStatus, ProblemKind, published,
};

/// The types of the conditions.
pub mod condition_type {
    /// Whether every cloud that is looked after answers.
    pub const CLOUD_REACHABLE: &str = "CloudReachable";
    /// Whether the credentials may do what is needed; False names what they lack.
    pub const CLOUD_PERMISSIONS: &str = "CloudPermissions";
    /// True while instances carry the cluster's tag and belong to no Machine; names them.
    pub const ORPHAN_INSTANCES: &str = "OrphanInstances";
    /// Whether the operator's own objects are as they should be.
    pub const OBJECTS_KEPT: &str = "ObjectsKept";
    /// Whether certificates of kubelets are approved here.
    pub const CERTIFICATE_APPROVAL: &str = "CertificateApproval";
    /// Whether the API server lets the operator do what it wants to.
    pub const API_PERMISSIONS: &str = "ApiPermissions";
    /// Whether a person has switched everything off that changes something.
    pub const HELD: &str = "Held";
    /// Whether the lease of Cluster API's core manager is held here: without it nothing is done for its machines. Only
    /// where the operator was told to look after these.
    pub const CLUSTER_API_LEASE: &str = "ClusterApiLease";
}

/// Their reasons.
pub mod reason {
    /// All is as it should be.
    pub const AS_EXPECTED: &str = "AsExpected";
    /// It is not known yet.
    pub const NOT_ASKED_YET: &str = "NotAskedYet";
    /// A cloud does not answer; the message has its words.
    pub const CLOUD_NOT_ANSWERING: &str = "CloudNotAnswering";
    /// Somebody refuses what the operator wants to do.
    pub const PERMISSION_MISSING: &str = "PermissionMissing";
    /// There are instances that belong to no Machine.
    pub const INSTANCES_WITHOUT_MACHINE: &str = "InstancesWithoutMachine";
    /// An object of the operator's own is not as it should be.
    pub const UPKEEP_FAILED: &str = "UpkeepFailed";
    /// A flag switches it off.
    pub const SWITCHED_OFF: &str = "SwitchedOff";
    /// A person holds the operator.
    pub const HELD: &str = "OperatorHeld";
    /// Another program holds the lease, or it cannot be taken; the message says which.
    pub const LEASE_NOT_HELD: &str = "LeaseNotHeld";
}

/// What is known of the operator's own state.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    pub views: Vec<ViewState>,
    /// Missing permissions, such as `ec2:StartInstances`.
    pub missing_permissions: BTreeSet<String>,
    /// What the API server refused, such as `patch nodes`; sorted.
    pub refused_requests: Vec<String>,
    /// Instances without a Machine by id, with what is known of the reason; none before the first
    /// sweep.
    pub orphans: Option<BTreeMap<String, String>>,
    /// What is wrong with the operator's own objects; none before they were first looked at.
    pub upkeep_problems: Option<Vec<String>>,
    pub approval: Approval,
    /// Why nothing is done, if a person wants it so.
    pub hold: Option<Wait>,
    pub cluster_api: ClusterApi,
}

/// Who looks after the machines of Cluster API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClusterApi {
    /// Nobody asked for it.
    #[default]
    SwitchedOff,
    /// This process, by the lease.
    Active,
    /// This process waits, and what is in its way, once that is known.
    Standby(Option<String>),
}

/// Who approves the certificates of kubelets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    #[default]
    Active,
    /// Somebody else, and why.
    Standby(Wait),
    SwitchedOff,
}

/// One view of a cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewState {
    pub name: String,
    /// Where it is asked, if that is not the provider's own address.
    pub endpoint: Option<String>,
    pub reachability: Reachability,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reachability {
    /// No answer yet.
    NotAskedYet,
    Reachable,
    /// The last list failed.
    Failing {
        class: ErrorClass,
        message: String,
    },
}

/// The API server takes 32768; this many are read by people.
const MESSAGE_BYTES_MAX: usize = 1024;
/// How many things a sentence names before it only counts them.
const NAMED_MAX: usize = 10;

/// Returns the conditions, sorted by type. `known` are those published before: a condition keeps
/// the time of its last transition until its status changes.
pub fn conditions(observed: &Observed, known: &[Condition], now: Timestamp) -> Vec<Condition> {
    let facts = [
        permissions(observed),
        reachable(observed),
        orphans(observed),
        objects(observed),
        approval(observed),
        held(observed),
        api_permissions(observed),
    ];
    let facts = facts.into_iter().chain(cluster_api(observed));
    let mut conditions: Vec<Condition> = facts.map(|fact| fact.condition(known, now)).collect();
    conditions.sort_by(|left, right| left.type_.cmp(&right.type_));
    conditions
}

/// Whether a condition is bad news. Not to know is neither good nor bad (Rule 7).
pub fn needs_attention(condition: &Condition) -> bool {
    match condition.type_.as_str() {
        condition_type::ORPHAN_INSTANCES | condition_type::HELD => condition.status == "True",
        // That somebody else does it is no news at all.
        condition_type::CERTIFICATE_APPROVAL => false,
        _ => condition.status == "False",
    }
}

struct Fact {
    type_: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Fact {
    fn condition(self, known: &[Condition], now: Timestamp) -> Condition {
        let before = known.iter().find(|one| one.type_ == self.type_);
        let unchanged = before.filter(|before| before.status == self.status);
        let since = unchanged.map_or_else(
            // Conditions on the wire have whole seconds.
            || Time(Timestamp::from_second(now.as_second()).unwrap_or(now)),
            |before| before.last_transition_time.clone(),
        );
        Condition {
            last_transition_time: since,
            message: bounded(self.message),
            observed_generation: None,
            reason: self.reason.to_owned(),
            status: self.status.to_owned(),
            type_: self.type_.to_owned(),
        }
    }
}

fn reachable(observed: &Observed) -> Fact {
    let mut failing: Vec<String> = observed
        .views
        .iter()
        .filter_map(|view| match &view.reachability {
            Reachability::Failing { message, .. } => Some(format!("{}: {message}", view.name)),
            Reachability::NotAskedYet | Reachability::Reachable => None,
        })
        .collect();
    failing.sort();
    let is_asked = observed.views.iter().any(|view| view.reachability == Reachability::Reachable);
    let type_ = condition_type::CLOUD_REACHABLE;
    if !failing.is_empty() {
        let message = listed(&failing, "; ");
        Fact { type_, status: "False", reason: reason::CLOUD_NOT_ANSWERING, message }
    } else if is_asked {
        let message = "every cloud answers".to_owned();
        Fact { type_, status: "True", reason: reason::AS_EXPECTED, message }
    } else {
        let message = "no cloud was asked yet: no Machine names one".to_owned();
        Fact { type_, status: "Unknown", reason: reason::NOT_ASKED_YET, message }
    }
}

fn permissions(observed: &Observed) -> Fact {
    let type_ = condition_type::CLOUD_PERMISSIONS;
    let missing: Vec<String> = observed.missing_permissions.iter().cloned().collect();
    if missing.is_empty() {
        let message = "no permission is known to be missing".to_owned();
        return Fact { type_, status: "True", reason: reason::AS_EXPECTED, message };
    }
    let message = format!(
        "the credentials lack {}; what needs it is not done, everything else goes on",
        listed(&missing, ", ")
    );
    Fact { type_, status: "False", reason: reason::PERMISSION_MISSING, message }
}

fn api_permissions(observed: &Observed) -> Fact {
    let type_ = condition_type::API_PERMISSIONS;
    if observed.refused_requests.is_empty() {
        let message = "the API server refuses nothing".to_owned();
        return Fact { type_, status: "True", reason: reason::AS_EXPECTED, message };
    }
    let message = format!(
        "the API server refused to {}; it is tried again, and everything else goes on",
        listed(&observed.refused_requests, ", to ")
    );
    Fact { type_, status: "False", reason: reason::PERMISSION_MISSING, message }
}

/// True is the bad news here: there are some.
fn orphans(observed: &Observed) -> Fact {
    let type_ = condition_type::ORPHAN_INSTANCES;
    match &observed.orphans {
        None => {
            let message = "no sweep was done yet".to_owned();
            Fact { type_, status: "Unknown", reason: reason::NOT_ASKED_YET, message }
        }
        Some(orphans) if orphans.is_empty() => {
            let message = "every instance of the cluster has a Machine".to_owned();
            Fact { type_, status: "False", reason: reason::AS_EXPECTED, message }
        }
        Some(orphans) => {
            let named: Vec<String> =
                orphans.iter().map(|(id, why)| format!("{id} ({why})")).collect();
            let message = format!(
                "{} with the cluster's tag and without a Machine: {}",
                counted(orphans.len(), "instance"),
                listed(&named, ", ")
            );
            Fact { type_, status: "True", reason: reason::INSTANCES_WITHOUT_MACHINE, message }
        }
    }
}

fn objects(observed: &Observed) -> Fact {
    let type_ = condition_type::OBJECTS_KEPT;
    match &observed.upkeep_problems {
        None => {
            let message = "they were not looked at yet".to_owned();
            Fact { type_, status: "Unknown", reason: reason::NOT_ASKED_YET, message }
        }
        Some(problems) if problems.is_empty() => {
            let message = "the operator's own objects are as they should be".to_owned();
            Fact { type_, status: "True", reason: reason::AS_EXPECTED, message }
        }
        Some(problems) => {
            let message = listed(problems, "; ");
            Fact { type_, status: "False", reason: reason::UPKEEP_FAILED, message }
        }
    }
}

fn approval(observed: &Observed) -> Fact {
    let type_ = condition_type::CERTIFICATE_APPROVAL;
    match &observed.approval {
        Approval::Active => {
            let message = "certificates of kubelets are approved here".to_owned();
            Fact { type_, status: "True", reason: reason::AS_EXPECTED, message }
        }
        Approval::Standby(wait) => {
            Fact { type_, status: "False", reason: wait.reason, message: wait.message.clone() }
        }
        Approval::SwitchedOff => {
            let message = "the approval of certificates is switched off".to_owned();
            Fact { type_, status: "False", reason: reason::SWITCHED_OFF, message }
        }
    }
}

/// True is the bad news here.
fn held(observed: &Observed) -> Fact {
    let type_ = condition_type::HELD;
    match &observed.hold {
        None => {
            let message = "nobody holds the operator".to_owned();
            Fact { type_, status: "False", reason: reason::AS_EXPECTED, message }
        }
        Some(wait) => {
            Fact { type_, status: "True", reason: wait.reason, message: wait.message.clone() }
        }
    }
}

fn cluster_api(observed: &Observed) -> Option<Fact> {
    let type_ = condition_type::CLUSTER_API_LEASE;
    match &observed.cluster_api {
        ClusterApi::SwitchedOff => None,
        ClusterApi::Active => {
            let message = "the machines of Cluster API are looked after here".to_owned();
            Some(Fact { type_, status: "True", reason: reason::AS_EXPECTED, message })
        }
        ClusterApi::Standby(None) => {
            let message = "the lease was not asked for yet".to_owned();
            Some(Fact { type_, status: "Unknown", reason: reason::NOT_ASKED_YET, message })
        }
        ClusterApi::Standby(Some(obstacle)) => {
            let message = format!(
                "{obstacle}; until it is ours nothing is done for the machines of Cluster API"
            );
            Some(Fact { type_, status: "False", reason: reason::LEASE_NOT_HELD, message })
        }
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn listed(names: &[String], separator: &str) -> String {
    let shown = names.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>();
    let more = names.len().saturating_sub(NAMED_MAX);
    let shown = shown.join(separator);
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

fn bounded(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES_MAX {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX - "...".len()));
        message.push_str("...");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn view(name: &str, reachability: Reachability) -> ViewState {
        ViewState { name: name.to_owned(), endpoint: None, reachability }
    }

    fn failing(message: &str) -> Reachability {
        Reachability::Failing { class: ErrorClass::Transient, message: message.to_owned() }
    }

    fn check(observed: &Observed, type_: &str, expected: (&str, &str, &str)) {
        let conditions = conditions(observed, &[], at(0));
        let condition = conditions.iter().find(|one| one.type_ == type_).unwrap();
        let (status, reason, message) = expected;
        assert_eq!(condition.status, status);
        assert_eq!(condition.reason, reason);
        assert_eq!(condition.message, message);
    }

    #[test]
    fn reachability_is_that_of_the_worst_view() {
        let check = |views: Vec<ViewState>, expected| {
            let observed = Observed { views, ..Observed::default() };
            check(&observed, condition_type::CLOUD_REACHABLE, expected);
        };
        let unknown =
            ("Unknown", reason::NOT_ASKED_YET, "no cloud was asked yet: no Machine names one");
        check(vec![], unknown);
        check(vec![view("a", Reachability::NotAskedYet)], unknown);
        check(
            vec![view("a", Reachability::Reachable), view("b", Reachability::NotAskedYet)],
            ("True", reason::AS_EXPECTED, "every cloud answers"),
        );
        check(
            vec![
                view("b", failing("slow down")),
                view("c", Reachability::Reachable),
                view("a", failing("no route")),
            ],
            ("False", reason::CLOUD_NOT_ANSWERING, "a: no route; b: slow down"),
        );
    }

    #[test]
    fn missing_permissions_are_named() {
        let missing = ["ec2:StopInstances", "ec2:StartInstances"].map(str::to_owned);
        let observed =
            Observed { missing_permissions: BTreeSet::from(missing), ..Observed::default() };
        check(
            &observed,
            condition_type::CLOUD_PERMISSIONS,
            (
                "False",
                reason::PERMISSION_MISSING,
                "the credentials lack ec2:StartInstances, ec2:StopInstances; what needs it is not \
                 done, everything else goes on",
            ),
        );
    }

    #[test]
    fn refused_requests_are_named() {
        let of = |refused: &[&str]| Observed {
            refused_requests: refused.iter().map(|&one| one.to_owned()).collect(),
            ..Observed::default()
        };
        let type_ = condition_type::API_PERMISSIONS;
        check(&of(&[]), type_, ("True", reason::AS_EXPECTED, "the API server refuses nothing"));
        check(
            &of(&["create machines in ns", "patch nodes"]),
            type_,
            (
                "False",
                reason::PERMISSION_MISSING,
                "the API server refused to create machines in ns, to patch nodes; it is tried \
                 again, and everything else goes on",
            ),
        );
        let bad = conditions(&of(&["patch nodes"]), &[], at(0));
        assert_eq!(bad.into_iter().filter(needs_attention).count(), 1);
    }

    #[test]
    fn orphans_are_named_and_counted() {
        let check = |orphans: Option<usize>, expected| {
            let some = |count| {
                (0..count).map(|index| (format!("i-{index:02}"), "gone".to_owned())).collect()
            };
            let observed = Observed { orphans: orphans.map(some), ..Observed::default() };
            check(&observed, condition_type::ORPHAN_INSTANCES, expected);
        };
        check(None, ("Unknown", reason::NOT_ASKED_YET, "no sweep was done yet"));
        check(
            Some(0),
            ("False", reason::AS_EXPECTED, "every instance of the cluster has a Machine"),
        );
        check(
            Some(1),
            (
                "True",
                reason::INSTANCES_WITHOUT_MACHINE,
                "1 instance with the cluster's tag and without a Machine: i-00 (gone)",
            ),
        );
        let names: Vec<String> = (0..10).map(|index| format!("i-{index:02} (gone)")).collect();
        let many = format!(
            "12 instances with the cluster's tag and without a Machine: {} and 2 more",
            names.join(", ")
        );
        check(Some(12), ("True", reason::INSTANCES_WITHOUT_MACHINE, many.as_str()));
    }

    #[test]
    fn the_operators_own_objects_and_the_approval_are_told_of() {
        let kept = |problems: Option<&[&str]>, expected| {
            let problems = problems.map(|all| all.iter().map(|&one| one.to_owned()).collect());
            let observed = Observed { upkeep_problems: problems, ..Observed::default() };
            check(&observed, condition_type::OBJECTS_KEPT, expected);
        };
        kept(None, ("Unknown", reason::NOT_ASKED_YET, "they were not looked at yet"));
        let good = "the operator's own objects are as they should be";
        kept(Some(&[]), ("True", reason::AS_EXPECTED, good));
        kept(Some(&["a", "b"]), ("False", reason::UPKEEP_FAILED, "a; b"));
        let approved = |approval: Approval, expected| {
            let observed = Observed { approval, ..Observed::default() };
            check(&observed, condition_type::CERTIFICATE_APPROVAL, expected);
            let conditions = conditions(&observed, &[], at(0));
            assert!(!conditions.iter().any(needs_attention));
        };
        let here = "certificates of kubelets are approved here";
        approved(Approval::Active, ("True", reason::AS_EXPECTED, here));
        let wait = Wait::on("Another", "elsewhere");
        approved(Approval::Standby(wait), ("False", "Another", "elsewhere"));
        let off = "the approval of certificates is switched off";
        approved(Approval::SwitchedOff, ("False", reason::SWITCHED_OFF, off));
    }

    #[test]
    fn a_hold_is_told_of_and_needs_attention() {
        let free = Observed::default();
        let expected = ("False", reason::AS_EXPECTED, "nobody holds the operator");
        check(&free, condition_type::HELD, expected);
        assert!(!conditions(&free, &[], at(0)).iter().any(needs_attention));
        let hold = Some(Wait::on(reason::HELD, "held by somebody"));
        let held = Observed { hold, ..Observed::default() };
        check(&held, condition_type::HELD, ("True", reason::HELD, "held by somebody"));
        let attention = conditions(&held, &[], at(0)).into_iter().filter(needs_attention).count();
        assert_eq!(attention, 1);
    }

    #[test]
    fn who_is_in_the_way_of_cluster_apis_machines_is_told_of() {
        let of = |cluster_api: ClusterApi| Observed { cluster_api, ..Observed::default() };
        let type_ = condition_type::CLUSTER_API_LEASE;
        let off = conditions(&of(ClusterApi::SwitchedOff), &[], at(0));
        assert!(!off.iter().any(|one| one.type_ == type_), "{off:?}");
        let here = "the machines of Cluster API are looked after here";
        check(&of(ClusterApi::Active), type_, ("True", reason::AS_EXPECTED, here));
        let unasked = "the lease was not asked for yet";
        check(&of(ClusterApi::Standby(None)), type_, ("Unknown", reason::NOT_ASKED_YET, unasked));
        let waits = of(ClusterApi::Standby(Some("the lease ns/l is held by p".to_owned())));
        let message = "the lease ns/l is held by p; until it is ours nothing is done for the machines \
                       of Cluster API";
        check(&waits, type_, ("False", reason::LEASE_NOT_HELD, message));
        assert_eq!(conditions(&waits, &[], at(0)).into_iter().filter(needs_attention).count(), 1);
    }

    #[test]
    fn a_transition_is_a_change_of_status_and_nothing_else() {
        let with = |message: &str| Observed {
            views: vec![view("a", failing(message))],
            ..Observed::default()
        };
        let first = conditions(&with("no route"), &[], at(10));
        let second = conditions(&with("slow down"), &first, at(20));
        let time = |conditions: &[Condition]| {
            conditions
                .iter()
                .find(|one| one.type_ == condition_type::CLOUD_REACHABLE)
                .unwrap()
                .last_transition_time
                .0
        };
        assert_eq!(time(&first), at(10));
        assert_eq!(time(&second), at(10));
        assert_ne!(first, second);
        assert_eq!(conditions(&with("slow down"), &second, at(30)), second, "a fixpoint");
        let good =
            Observed { views: vec![view("a", Reachability::Reachable)], ..Observed::default() };
        assert_eq!(time(&conditions(&good, &second, at(40))), at(40));
    }

    #[test]
    fn a_long_story_is_cut_at_a_character() {
        let observed =
            Observed { views: vec![view("a", failing(&"ö".repeat(5000)))], ..Observed::default() };
        for condition in conditions(&observed, &[], at(0)) {
            assert!(condition.message.len() <= MESSAGE_BYTES_MAX, "{}", condition.message.len());
        }
    }
}
