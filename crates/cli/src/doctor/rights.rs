//! Which rights does the operator need, and does it have them? What is shipped is what is needed: the rules of
//! `deploy/kustomize/base` are part of this program. The API server is asked for each, without impersonating
//! anybody.

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::{
    authorization::v1::{
        ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
        SubjectAccessReview, SubjectAccessReviewSpec,
    },
    rbac::v1::PolicyRule,
};
use kube::{Api, Client, api::PostParams};
use machinist_core::doctor::{Asked, OwnRights, Right, Rights};
use serde_json::Value;

use super::look::asked;

const SHIPPED_RULES: &str = include_str!("../../../../deploy/kustomize/base/rbac.yaml");

/// Questions that are under way at once: enough to be quick, and few enough for a busy API server.
const CONCURRENCY: usize = 16;

/// What the other commands read.
const READ: [(&str, &str, bool); 6] = [
    ("machine.openshift.io", "machines", true),
    ("machine.openshift.io", "machinesets", true),
    ("machinemaintenance.managed.openshift.io", "machinemaintenances", true),
    ("machinist.dev", "maintenancepolicies", false),
    ("", "nodes", false),
    ("", "pods", false),
];

/// What the operator of a namespace has to do.
pub fn needed(namespace: &str) -> anyhow::Result<Vec<Right>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(SHIPPED_RULES)
        .context("cannot read the rules that this program ships")?;
    let mut rights = Vec::new();
    for role in documents {
        let namespace = match role["kind"].as_str() {
            Some("ClusterRole") => "",
            Some("Role") => namespace,
            _ => continue,
        };
        let rules = role.get("rules").cloned().unwrap_or_else(|| Value::Array(Vec::new()));
        let rules: Vec<PolicyRule> = serde_json::from_value(rules)
            .context("cannot read the rules that this program ships")?;
        rights.extend(rules.iter().flat_map(|rule| of_rule(rule, namespace)));
    }
    rights.sort();
    rights.dedup();
    Ok(rights)
}

fn of_rule(rule: &PolicyRule, namespace: &str) -> Vec<Right> {
    let any = vec![String::new()];
    let names = rule.resource_names.as_ref().filter(|names| !names.is_empty()).unwrap_or(&any);
    let mut rights = Vec::new();
    for group in rule.api_groups.iter().flatten() {
        for resource in rule.resources.iter().flatten() {
            for verb in &rule.verbs {
                rights.extend(names.iter().map(|name| Right {
                    verb: verb.clone(),
                    group: group.clone(),
                    resource: resource.clone(),
                    name: name.clone(),
                    namespace: namespace.to_owned(),
                }));
            }
        }
    }
    rights
}

/// What the user may not do of it.
pub async fn operators(
    client: &Client,
    user: &str,
    namespace: &str,
) -> anyhow::Result<Asked<Rights>> {
    let needed = needed(namespace)?;
    let asked_for = needed.len();
    let reviews = Api::<SubjectAccessReview>::all(client.clone());
    let missing = missing(needed, async |right| {
        let spec = SubjectAccessReviewSpec {
            user: Some(user.to_owned()),
            groups: Some(groups_of(user)),
            resource_attributes: Some(attributes(right)),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    });
    let missing =
        asked("ask for the rights of others (create subjectaccessreviews)", missing.await)?;
    Ok(missing.map(|missing| Rights { user: user.to_owned(), asked: asked_for, missing }))
}

/// What the person who asks may not read.
pub async fn own(client: &Client, namespace: &str) -> anyhow::Result<Asked<OwnRights>> {
    let needed: Vec<Right> = READ
        .iter()
        .map(|(group, resource, is_namespaced)| Right {
            verb: "list".to_owned(),
            group: (*group).to_owned(),
            resource: (*resource).to_owned(),
            name: String::new(),
            namespace: if *is_namespaced { namespace.to_owned() } else { String::new() },
        })
        .collect();
    let reviews = Api::<SelfSubjectAccessReview>::all(client.clone());
    let missing = missing(needed, async |right| {
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes(right)),
            ..SelfSubjectAccessReviewSpec::default()
        };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    });
    let missing = asked("ask for your own rights", missing.await)?;
    Ok(missing.map(|missing| OwnRights { asked: READ.len(), missing }))
}

/// Those that are not allowed, in their order.
async fn missing(
    needed: Vec<Right>,
    is_allowed: impl AsyncFn(&Right) -> Result<bool, kube::Error>,
) -> Result<Vec<Right>, kube::Error> {
    let is_allowed = &is_allowed;
    let answers = stream::iter(needed).map(|right| async move {
        let allowed = is_allowed(&right).await?;
        Ok::<_, kube::Error>((!allowed).then_some(right))
    });
    answers
        .buffered(CONCURRENCY)
        .try_filter_map(|right| std::future::ready(Ok(right)))
        .try_collect()
        .await
}

fn attributes(right: &Right) -> ResourceAttributes {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let (resource, subresource) = match right.resource.split_once('/') {
        Some((resource, part)) => (resource, Some(part.to_owned())),
        None => (right.resource.as_str(), None),
    };
    ResourceAttributes {
        group: text(&right.group),
        resource: text(resource),
        subresource,
        verb: text(&right.verb),
        name: text(&right.name),
        namespace: text(&right.namespace),
        ..ResourceAttributes::default()
    }
}

/// The groups that the API server gives a service account; a review is not told of them by itself.
fn groups_of(user: &str) -> Vec<String> {
    let mut groups = vec!["system:authenticated".to_owned()];
    if let Some((namespace, _)) =
        user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'))
    {
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shipped_is_asked_for_verb_by_verb() {
        let rights = needed("ns").unwrap();
        let has = |words: &str| rights.iter().any(|right| right.to_string() == words);
        for words in [
            "patch nodes",
            "create pods/eviction",
            "delete machines.machine.openshift.io in ns",
            "patch machines.machine.openshift.io/status in ns",
            "update leases.coordination.k8s.io machine-api-operator in ns",
            "approve signers.certificates.k8s.io kubernetes.io/kubelet-serving",
        ] {
            assert!(has(words), "{words}");
        }
        assert!(!has("list secrets in ns"));
        assert!(rights.len() > 100, "{}", rights.len());
    }

    #[test]
    fn a_service_account_is_in_its_groups() {
        assert_eq!(groups_of("ann"), ["system:authenticated"]);
        let groups = groups_of("system:serviceaccount:ns:operator");
        assert_eq!(groups[1..], ["system:serviceaccounts", "system:serviceaccounts:ns"]);
    }
}
