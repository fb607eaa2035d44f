//! What may an operator on the testbed do? Exactly what `deploy/kustomize/base` grants: the same text,
//! for another user and another namespace.

use anyhow::Context;
use kube::Client;
use serde_json::{Value, json};

use crate::manifests::{apply, documents};
use crate::singletons::MACHINE_NAMESPACE;

/// The rules as they are shipped.
pub const SHIPPED_RULES: &str = include_str!("../../../deploy/kustomize/base/rbac.yaml");

/// What is shipped besides for management clusters of Cluster API.
pub const CLUSTER_API_RULES: &str =
    include_str!("../../../deploy/kustomize/components/cluster-api/rbac.yaml");

/// Where Cluster API's core manager has its lease.
const CLUSTER_API_NAMESPACE: &str = "capi-system";

/// What the operator may write to Nodes, as it is shipped.
const NODE_GUARD: &str = include_str!("../../../deploy/kustomize/base/node-guard.yaml");

/// The operator's user in a cluster that it is installed on.
const SHIPPED_USER: &str = "system:serviceaccount:openshift-machine-api:machinist-operator";

/// Makes the roles that all operators of the cluster share.
pub async fn install_cluster_roles(client: &Client) -> anyhow::Result<()> {
    for rules in [SHIPPED_RULES, CLUSTER_API_RULES] {
        for role in documents(rules)? {
            if role["kind"] == "ClusterRole" {
                apply(client, role).await?;
            }
        }
    }
    Ok(())
}

/// Lets `user` look after Cluster API's objects as well. Its lease is in `namespace`, so that several can.
pub async fn grant_cluster_api(client: &Client, user: &str, namespace: &str) -> anyhow::Result<()> {
    bind(client, &CLUSTER_API_RULES.replace(CLUSTER_API_NAMESPACE, namespace), user).await
}

/// Lets `user` do what the operator of `namespace` may do.
pub async fn grant(client: &Client, user: &str, namespace: &str) -> anyhow::Result<()> {
    bind(client, &SHIPPED_RULES.replace(MACHINE_NAMESPACE, namespace), user).await?;
    let guard = NODE_GUARD.replace(SHIPPED_USER, user);
    for mut object in documents(&guard)? {
        rename(&mut object, user)?;
        if object["kind"] == "ValidatingAdmissionPolicyBinding" {
            let policy = object["metadata"]["name"].clone();
            set(&mut object, "/spec/policyName", policy)?;
        }
        apply(client, object).await?;
    }
    Ok(())
}

/// Makes the Roles, and binds them and the ClusterRoles to the user.
async fn bind(client: &Client, rules: &str, user: &str) -> anyhow::Result<()> {
    let subject = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user });
    for mut object in documents(rules)? {
        match object["kind"].as_str() {
            Some("Role") => {}
            Some("RoleBinding" | "ClusterRoleBinding") => {
                set(&mut object, "/subjects", json!([subject]))?;
                rename(&mut object, user)?;
            }
            _ => continue,
        }
        apply(client, object).await?;
    }
    Ok(())
}

/// Gives what is one for a cluster a name of its own for each user.
fn rename(object: &mut Value, user: &str) -> anyhow::Result<()> {
    let name = object["metadata"]["name"].as_str().context("a manifest has no name")?;
    let name = format!("{name}.{}", user.replace([':', '/'], "."));
    set(object, "/metadata/name", json!(name))
}

fn set(object: &mut Value, pointer: &str, value: Value) -> anyhow::Result<()> {
    let place = object.pointer_mut(pointer);
    *place.with_context(|| format!("a manifest has no {pointer}"))? = value;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules that nobody has to read closely: a star grants what is made tomorrow.
    #[test]
    fn rules_name_what_they_grant() {
        let mut rules = 0;
        for role in documents(SHIPPED_RULES).unwrap() {
            for rule in role["rules"].as_array().into_iter().flatten() {
                rules += 1;
                for field in ["apiGroups", "resources", "verbs"] {
                    let words = rule[field].as_array().unwrap();
                    assert!(!words.is_empty(), "{rule}");
                    assert!(!words.iter().any(|word| word == "*"), "{rule}");
                }
                // Whoever may list secrets, may read them all.
                let is_secret = rule["resources"].as_array().unwrap().contains(&json!("secrets"));
                assert!(!is_secret || role["kind"] == "Role", "{rule}");
            }
        }
        assert!(rules > 20);
    }

    #[test]
    fn the_user_of_the_guard_is_the_one_that_is_bound() {
        assert!(NODE_GUARD.contains(SHIPPED_USER));
        assert!(SHIPPED_USER.contains(MACHINE_NAMESPACE));
        assert!(
            SHIPPED_RULES
                .contains("  name: machinist-operator\n  namespace: openshift-machine-api")
        );
    }
}
