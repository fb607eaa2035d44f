//! What does the operator say of itself, on the wire? Conditions for people, and beside them what only it
//! can know of the clouds, for programs that judge by it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

use super::{NAMED_MAX, Observed, Reachability, ViewState, bounded};
use crate::cloud::ErrorClass;

/// The ConfigMap in the operator's namespace.
pub const CONFIG_MAP: &str = "machinist-operator-status";
/// Its key.
pub const KEY: &str = "status.json";

/// What the key holds. Names are never changed, only added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorStatus {
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// The clouds that some Machine lives in; sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clouds: Vec<CloudState>,
    /// What the cloud's credentials lack, such as `ec2:StartInstances`; sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_permissions: Vec<String>,
}

/// One cloud as the operator sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudState {
    /// Cluster, region and credentials, in words.
    pub name: String,
    /// Where it is asked, if that is not the provider's own address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Absent while it answers, or was not asked yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<CloudProblem>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudProblem {
    pub kind: ProblemKind,
    pub message: String,
}

/// What is to be put right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProblemKind {
    /// The cloud does not know these credentials, or there are none.
    CredentialsRefused,
    /// The cloud knows them, and they may not do this.
    PermissionMissing,
    /// No answer, or none that means anything.
    Unreachable,
    Throttled,
    /// Another refusal; a word that a later version added is read as this.
    #[serde(other)]
    Other,
}

/// What is published of the observed, beside the conditions.
pub fn published(observed: &Observed, conditions: Vec<Condition>) -> OperatorStatus {
    let missing: Vec<String> = observed.missing_permissions.iter().cloned().collect();
    let mut clouds: Vec<CloudState> =
        observed.views.iter().map(|view| cloud_state(view, &missing)).collect();
    clouds.sort();
    // Those with a problem are worth the room.
    clouds.sort_by_key(|cloud| cloud.problem.is_none());
    clouds.truncate(NAMED_MAX);
    OperatorStatus { conditions, clouds, missing_permissions: missing }
}

fn cloud_state(view: &ViewState, missing_permissions: &[String]) -> CloudState {
    let problem = match &view.reachability {
        Reachability::NotAskedYet | Reachability::Reachable => None,
        Reachability::Failing { class, message } => Some(CloudProblem {
            kind: kind_of(*class, message, missing_permissions),
            message: bounded(message.clone()),
        }),
    };
    CloudState { name: view.name.clone(), endpoint: view.endpoint.clone(), problem }
}

fn kind_of(class: ErrorClass, message: &str, missing_permissions: &[String]) -> ProblemKind {
    match class {
        // The class is the same for both; a refusal for lack of a permission names it.
        ErrorClass::Unauthorized if missing_permissions.iter().any(|one| message.contains(one)) => {
            ProblemKind::PermissionMissing
        }
        ErrorClass::Unauthorized => ProblemKind::CredentialsRefused,
        ErrorClass::Transient => ProblemKind::Unreachable,
        ErrorClass::Throttled => ProblemKind::Throttled,
        ErrorClass::InvalidConfiguration
        | ErrorClass::NotFound
        | ErrorClass::QuotaExceeded
        | ErrorClass::InsufficientCapacity
        | ErrorClass::TokenMismatch
        | ErrorClass::Unknown => ProblemKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn view(name: &str, failure: Option<(ErrorClass, &str)>) -> ViewState {
        let reachability = match failure {
            None => Reachability::Reachable,
            Some((class, message)) => Reachability::Failing { class, message: message.to_owned() },
        };
        ViewState { name: name.to_owned(), endpoint: None, reachability }
    }

    fn kinds(views: Vec<ViewState>, missing: &[&str]) -> Vec<(String, Option<ProblemKind>)> {
        let missing_permissions: BTreeSet<String> = missing.iter().map(|&one| one.into()).collect();
        let observed = Observed { views, missing_permissions, ..Observed::default() };
        let clouds = published(&observed, Vec::new()).clouds;
        clouds.into_iter().map(|one| (one.name, one.problem.map(|problem| problem.kind))).collect()
    }

    #[test]
    fn a_refusal_of_who_we_are_is_told_from_one_of_what_we_may_do() {
        let views = vec![
            view("a", Some((ErrorClass::Unauthorized, "AuthFailure: no such key"))),
            view(
                "b",
                Some((ErrorClass::Unauthorized, "permission ec2:DescribeInstances is missing")),
            ),
            view("c", Some((ErrorClass::Transient, "connection refused"))),
            view("d", Some((ErrorClass::Throttled, "slow down"))),
            view("e", Some((ErrorClass::InvalidConfiguration, "no region"))),
        ];
        assert_eq!(
            kinds(views, &["ec2:DescribeInstances"]),
            [
                ("a".to_owned(), Some(ProblemKind::CredentialsRefused)),
                ("b".to_owned(), Some(ProblemKind::PermissionMissing)),
                ("c".to_owned(), Some(ProblemKind::Unreachable)),
                ("d".to_owned(), Some(ProblemKind::Throttled)),
                ("e".to_owned(), Some(ProblemKind::Other)),
            ]
        );
    }

    #[test]
    fn of_many_clouds_those_with_a_problem_are_named() {
        let mut views: Vec<_> =
            (0..20).map(|number| view(&format!("a{number:02}"), None)).collect();
        views.push(view("z", Some((ErrorClass::Transient, "no route"))));
        let told = kinds(views, &[]);
        assert_eq!(told.len(), NAMED_MAX);
        assert_eq!(told[0], ("z".to_owned(), Some(ProblemKind::Unreachable)));
    }

    #[test]
    fn what_an_older_operator_wrote_and_what_a_newer_one_will_is_read() {
        let older: OperatorStatus = serde_json::from_str(r#"{"conditions":[]}"#).unwrap();
        assert_eq!(older, OperatorStatus::default());
        let newer = r#"{"conditions":[],"clouds":[{"name":"a","more":1,
            "problem":{"kind":"Eclipse","message":"dark"}}],"further":true}"#;
        let newer: OperatorStatus = serde_json::from_str(newer).unwrap();
        assert_eq!(newer.clouds[0].problem.as_ref().unwrap().kind, ProblemKind::Other);
    }
}
