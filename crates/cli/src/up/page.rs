//! Who may look at the page of a cluster of `machinist up`? A service account made for it, which may see the
//! fleet and approve, pause and postpone; whoever has its token is that account.

use anyhow::Context;
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Api, Client, api::PostParams};
use machinist_testbed::manifests::apply;
use machinist_testbed::singletons::MACHINE_NAMESPACE;
use serde_json::{Value, json};

const VISITOR: &str = "machinist-visitor";

/// Longer than anybody leaves such a cluster running.
const LIFETIME_SECONDS: i64 = 30 * 24 * 3600;

/// Makes the account, and returns a token of it.
pub async fn token(client: &Client) -> anyhow::Result<String> {
    for object in visitor() {
        apply(client, object).await?;
    }
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), MACHINE_NAMESPACE);
    let spec = TokenRequestSpec {
        expiration_seconds: Some(LIFETIME_SECONDS),
        ..TokenRequestSpec::default()
    };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let answer = accounts.create_token_request(VISITOR, &PostParams::default(), &request).await;
    let answer = answer.with_context(|| format!("cannot get a token of {VISITOR}"))?;
    let status = answer.status.with_context(|| format!("the token of {VISITOR} is empty"))?;
    Ok(status.token)
}

fn visitor() -> [Value; 3] {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({ "apiGroups": [group], "resources": resources, "verbs": verbs });
    let metadata = json!({ "name": VISITOR });
    let see = ["get", "list", "watch"];
    let see_and_change = ["get", "list", "watch", "patch"];
    let rules = json!([
        rule("machine.openshift.io", &["machines", "machinesets"], &see_and_change),
        rule("machine.openshift.io", &["machinehealthchecks"], &see),
        rule("machinemaintenance.managed.openshift.io", &["machinemaintenances"], &see_and_change),
        rule("machinist.dev", &["maintenancepolicies"], &see_and_change),
        // A pause of everything is an annotation of the namespace.
        rule("", &["namespaces"], &see_and_change),
        rule("", &["nodes", "pods", "events"], &see),
        rule("policy", &["poddisruptionbudgets"], &see),
    ]);
    [
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": { "name": VISITOR, "namespace": MACHINE_NAMESPACE },
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": metadata,
            "rules": rules,
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": VISITOR,
            },
            "subjects": [{
                "kind": "ServiceAccount", "name": VISITOR, "namespace": MACHINE_NAMESPACE,
            }],
        }),
    ]
}
