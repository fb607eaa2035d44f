//! May the operator do what is shipped, and nothing else? Asked of the API server, for the user of an
//! operator of this run. What the operators of a whole run asked for is checked by tests/rights.rs.

use std::collections::BTreeSet;

use k8s_openapi::api::{
    authorization::v1::{
        NonResourceAttributes, ResourceAttributes, ResourceRule, SelfSubjectRulesReview,
        SubjectAccessReview, SubjectAccessReviewSpec,
    },
    core::v1::Node,
    rbac::v1::{ClusterRole, PolicyRule},
};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use machinist_testbed::{manifests::documents, permissions::SHIPPED_RULES};
use serde_json::{Value, json};

use crate::arena::{Arena, run};

/// A client with the rights of the arena's operator.
async fn operators_client(arena: &Arena) -> Client {
    let file = arena.cluster.operator_kubeconfig(&arena.name, &arena.name).await.unwrap();
    let kubeconfig = Kubeconfig::read_from(file).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    Client::try_from(config).unwrap()
}

/// One verb on one resource, as `patch ""/nodes` or `update coordination.k8s.io/leases a-lease`.
fn grants(
    groups: &[String],
    resources: &[String],
    names: &[String],
    verbs: &[String],
) -> Vec<String> {
    let mut grants = Vec::new();
    for group in groups {
        for resource in resources {
            for verb in verbs {
                let anything = [String::new()];
                for name in if names.is_empty() { &anything } else { names } {
                    grants.push(format!("{verb} {group}/{resource} {name}").trim_end().to_owned());
                }
            }
        }
    }
    grants
}

fn grants_of_rules(rules: &[PolicyRule]) -> BTreeSet<String> {
    let list = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
    let grants = rules.iter().flat_map(|rule| {
        let names = list(&rule.resource_names);
        grants(&list(&rule.api_groups), &list(&rule.resources), &names, &rule.verbs)
    });
    grants.collect()
}

fn shipped(kinds: &[&str]) -> BTreeSet<String> {
    let roles = documents(SHIPPED_RULES).unwrap();
    let roles = roles.iter().filter(|role| kinds.iter().any(|kind| role["kind"] == **kind));
    let rules = roles.flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default());
    grants_of_rules(&serde_json::from_value::<Vec<PolicyRule>>(rules.collect()).unwrap())
}

/// What everybody may: ask about themselves.
fn of_everybody() -> BTreeSet<String> {
    [
        "create authorization.k8s.io/selfsubjectaccessreviews",
        "create authorization.k8s.io/selfsubjectrulesreviews",
        "create authentication.k8s.io/selfsubjectreviews",
    ]
    .map(ToOwned::to_owned)
    .into()
}

/// What the API server says that the client may do in a namespace.
async fn allowed(client: &Client, namespace: &str) -> BTreeSet<String> {
    let review: SelfSubjectRulesReview =
        serde_json::from_value(json!({"spec": {"namespace": namespace}})).unwrap();
    let review = Api::<SelfSubjectRulesReview>::all(client.clone())
        .create(&PostParams::default(), &review)
        .await
        .unwrap();
    let status = review.status.unwrap();
    assert!(!status.incomplete, "{status:?}");
    let list = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
    let of_rule = |rule: &ResourceRule| {
        let names = list(&rule.resource_names);
        grants(&list(&rule.api_groups), &list(&rule.resources), &names, &rule.verbs)
    };
    status.resource_rules.iter().flat_map(of_rule).collect()
}

#[test]
fn the_operator_may_do_what_is_shipped_and_nothing_else() {
    run(async {
        let arena = Arena::new("rbac-rules").await;
        let client = operators_client(&arena).await;
        let everywhere: BTreeSet<_> =
            shipped(&["ClusterRole"]).union(&of_everybody()).cloned().collect();
        // What others grant for their remediation.
        let aggregated = Api::<ClusterRole>::all(arena.client.clone())
            .get("machinist-operator-ext-remediation")
            .await
            .unwrap();
        let aggregated = grants_of_rules(&aggregated.rules.unwrap_or_default());
        let here: BTreeSet<_> = everywhere
            .union(&shipped(&["Role"]))
            .cloned()
            .collect::<BTreeSet<_>>()
            .union(&aggregated)
            .cloned()
            .collect();
        arena
            .eventually("the API server allows what is shipped, and nothing else", async || {
                (allowed(&client, &arena.name).await == here).then_some(())
            })
            .await;
        for namespace in ["kube-system", "default", "openshift-config-managed"] {
            assert_eq!(allowed(&client, namespace).await, everywhere, "{namespace}");
        }
    });
}

/// Group, resource, subresource, name, verb, and whether it is asked in the operator's own namespace.
const DENIED: [(&str, &str, &str, &str, &str, bool); 33] = [
    // Other rights than its own.
    ("rbac.authorization.k8s.io", "clusterroles", "", "", "escalate", false),
    ("rbac.authorization.k8s.io", "clusterroles", "", "", "bind", false),
    ("rbac.authorization.k8s.io", "clusterrolebindings", "", "", "create", false),
    ("rbac.authorization.k8s.io", "rolebindings", "", "", "create", true),
    ("rbac.authorization.k8s.io", "roles", "", "", "patch", true),
    ("", "users", "", "", "impersonate", false),
    ("", "groups", "", "system:masters", "impersonate", false),
    ("", "serviceaccounts", "", "", "impersonate", true),
    ("", "serviceaccounts", "token", "", "create", true),
    // Into nodes and pods.
    ("", "nodes", "proxy", "", "get", false),
    ("", "nodes", "proxy", "", "create", false),
    ("", "nodes", "", "", "create", false),
    ("", "nodes", "status", "", "patch", false),
    ("", "pods", "exec", "", "create", true),
    ("", "pods", "attach", "", "create", true),
    ("", "pods", "portforward", "", "create", true),
    ("", "pods", "log", "", "get", true),
    ("", "pods", "", "", "create", true),
    ("", "pods", "", "", "deletecollection", false),
    ("", "pods", "ephemeralcontainers", "", "patch", true),
    // Secrets.
    ("", "secrets", "", "", "list", false),
    ("", "secrets", "", "", "list", true),
    ("", "secrets", "", "", "watch", true),
    ("", "secrets", "", "", "get", false),
    ("", "secrets", "", "aws-cloud-credentials", "patch", true),
    // Certificates of others.
    ("certificates.k8s.io", "signers", "", "kubernetes.io/kube-apiserver-client", "approve", false),
    ("certificates.k8s.io", "signers", "", "kubernetes.io/kubelet-serving", "sign", false),
    ("certificates.k8s.io", "signers", "", "example.com/any", "approve", false),
    // What belongs to others.
    (
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        "",
        "others",
        "patch",
        false,
    ),
    ("config.openshift.io", "clusteroperators", "status", "dns", "patch", false),
    ("apps", "deployments", "", "machinist-operator", "patch", true),
    ("coordination.k8s.io", "leases", "", "kube-controller-manager", "update", true),
    ("machine.openshift.io", "machines", "", "", "list", false),
];

#[test]
fn what_the_operator_must_not_do_is_denied() {
    run(async {
        let arena = Arena::new("rbac-denied").await;
        operators_client(&arena).await;
        let reviews = Api::<SubjectAccessReview>::all(arena.client.clone());
        let ask = async |spec: SubjectAccessReviewSpec| {
            let user = Some(arena.name.clone());
            let groups = Some(vec!["system:authenticated".to_owned()]);
            let spec = SubjectAccessReviewSpec { user, groups, ..spec };
            let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
            let review = reviews.create(&PostParams::default(), &review).await.unwrap();
            review.status.unwrap().allowed
        };
        let of = |group: &str, resource: &str, part: &str, name: &str, verb: &str, here: bool| {
            let text = |text: &str| Some(text.to_owned());
            SubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    group: text(group),
                    resource: text(resource),
                    subresource: text(part),
                    name: text(name),
                    verb: text(verb),
                    namespace: here.then(|| arena.name.clone()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            }
        };
        // A review that would deny everything would prove nothing.
        arena
            .eventually("the operator may get secrets in its namespace", async || {
                ask(of("", "secrets", "", "any", "get", true)).await.then_some(())
            })
            .await;
        for (group, resource, part, name, verb, here) in DENIED {
            let is_allowed = ask(of(group, resource, part, name, verb, here)).await;
            assert!(!is_allowed, "{verb} {group}/{resource}/{part} {name}");
        }
        // tests/rights.rs finds this one in the audit log, which shows that it would find others.
        let nobody = arena.cluster.access().client_for("refused-on-purpose", None).await.unwrap();
        Api::<Node>::all(nobody).list(&ListParams::default()).await.unwrap_err();
        for path in ["/metrics", "/debug/pprof", "/logs"] {
            let attributes =
                NonResourceAttributes { path: Some(path.to_owned()), verb: Some("get".to_owned()) };
            let spec = SubjectAccessReviewSpec {
                non_resource_attributes: Some(attributes),
                ..SubjectAccessReviewSpec::default()
            };
            assert!(!ask(spec).await, "{path}");
        }
    });
}

#[test]
fn of_a_node_the_operator_writes_only_labels_annotations_taints_and_cordons() {
    run(async {
        let arena = Arena::new("rbac-nodes").await;
        let nodes = Api::<Node>::all(operators_client(&arena).await);
        let node: Node = serde_json::from_value(json!({"metadata": {"name": arena.name}})).unwrap();
        let all = Api::<Node>::all(arena.client.clone());
        all.create(&PostParams::default(), &node).await.unwrap();

        let dry = PatchParams { dry_run: true, ..PatchParams::default() };
        let attempt =
            async |patch: Value| match nodes.patch(&arena.name, &dry, &Patch::Merge(patch)).await {
                Ok(_) => None,
                Err(kube::Error::Api(status)) => Some(status.message.clone()),
                Err(error) => panic!("{error}"),
            };
        let denied = arena
            .eventually("the guard is in force", async || {
                attempt(json!({"spec": {"providerID": "aws:///zone/i-1"}})).await
            })
            .await;
        assert!(denied.contains("only unschedulable and taints"), "{denied}");
        for patch in [
            json!({"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}}),
            json!({"metadata": {"finalizers": ["example.com/any"]}}),
        ] {
            let denied = attempt(patch.clone()).await;
            assert!(
                denied.is_some_and(|words| words.contains("the operator changes only")),
                "{patch}"
            );
        }
        let taint = json!({"key": "example.com/any", "effect": "NoSchedule"});
        let allowed = attempt(json!({
            "metadata": {"labels": {"example.com/a": "b"}, "annotations": {"example.com/a": "b"}},
            "spec": {"unschedulable": true, "taints": [taint]},
        }));
        assert_eq!(allowed.await, None);
        nodes.delete(&arena.name, &DeleteParams::default()).await.unwrap();
    });
}
