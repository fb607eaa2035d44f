//! Are the manifests of deploy/openshift what deploy/kustomize/openshift gives, and what OpenShift's
//! cluster-version-operator expects? `UPDATE=1` writes them anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use serde_json::Value;

use super::{
    dry_run, foreign_kinds,
    manifests::{Manifests, chart, kustomize, kustomize_text, repository},
};
use crate::arena::{cluster, run};

const HEADER: &str = "# Written by `make manifests` out of deploy/kustomize/openshift.\n";
/// Which images of the manifests the release replaces by its own.
const IMAGE_REFERENCES: &str = "image-references";

fn folder() -> PathBuf {
    repository().join("deploy/openshift")
}

/// The file of an object: manifests are applied in the order of the files' names.
fn file_of(object: &Value) -> &'static str {
    if object["metadata"]["annotations"]["release.openshift.io/delete"] == "true" {
        return "0000_30_machine-api-operator_10_tombstones.yaml";
    }
    match object["kind"].as_str().unwrap() {
        "Namespace" => "0000_30_machine-api-operator_00_namespace.yaml",
        "CredentialsRequest" => "0000_30_machine-api-operator_00_credentials-request.yaml",
        "ConfigMap" => "0000_30_machine-api-operator_01_configmaps.yaml",
        "CustomResourceDefinition" => "0000_30_machine-api-operator_02_crds.yaml",
        "Service" => "0000_30_machine-api-operator_08_services.yaml",
        "ServiceAccount" | "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding" => {
            "0000_30_machine-api-operator_09_rbac.yaml"
        }
        "SecurityContextConstraints" => {
            "0000_30_machine-api-operator_09_security_context_constraint.yaml"
        }
        "ValidatingAdmissionPolicy" | "ValidatingAdmissionPolicyBinding" => {
            "0000_30_machine-api-operator_10_node-guard.yaml"
        }
        "NetworkPolicy" => "0000_30_machine-api-operator_10_networkpolicies.yaml",
        "Deployment" | "PodDisruptionBudget" => "0000_30_machine-api-operator_11_deployment.yaml",
        "ClusterOperator" => "0000_30_machine-api-operator_12_clusteroperator.yaml",
        "MachineHealthCheck" => "0000_30_machine-api-operator_13_machinehealthcheck.yaml",
        "ServiceMonitor" => "0000_90_machine-api-operator_03_servicemonitor.yaml",
        "PrometheusRule" => "0000_90_machine-api-operator_04_alertrules.yaml",
        kind => panic!("no file is set for kind {kind}"),
    }
}

async fn generated() -> BTreeMap<String, String> {
    let mut files = BTreeMap::<String, String>::new();
    for document in kustomize_text("openshift").await.split("\n---\n") {
        let object: Value = serde_saphyr::from_str(document).unwrap();
        let text = files.entry(file_of(&object).to_owned()).or_default();
        if text.is_empty() {
            text.push_str(HEADER);
        } else {
            text.push_str("---\n");
        }
        text.push_str(document.trim_end());
        text.push('\n');
    }
    files
}

#[test]
fn the_manifests_are_those_of_the_kustomize_folder() {
    run(async {
        let generated = generated().await;
        let names = || {
            let entries = fs::read_dir(folder()).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name != IMAGE_REFERENCES).collect::<BTreeSet<_>>()
        };
        if std::env::var_os("UPDATE").is_some() {
            for name in names() {
                fs::remove_file(folder().join(name)).unwrap();
            }
            for (name, text) in &generated {
                fs::write(folder().join(name), text).unwrap();
            }
        }
        assert_eq!(names(), generated.keys().cloned().collect(), "run `make manifests`");
        for (name, text) in &generated {
            let stored = fs::read_to_string(folder().join(name)).unwrap();
            assert!(stored == *text, "deploy/openshift/{name} is old: run `make manifests`");
        }
    });
}

#[test]
fn every_manifest_says_on_which_clusters_it_belongs() {
    run(async {
        for object in kustomize("openshift").await.all() {
            let annotations = &object["metadata"]["annotations"];
            assert_eq!(annotations["capability.openshift.io/name"], "MachineAPI", "{object}");
            let included = "include.release.openshift.io/self-managed-high-availability";
            assert_eq!(annotations[included], "true", "{object}");
        }
    });
}

/// Its certificate is one that browsers of the cluster's people trust, and it only shows.
#[test]
fn the_page_is_served_with_a_certificate_of_the_service_ca_and_changes_nothing() {
    run(async {
        let on_openshift = ["certificates.mode=openshift", "page.enabled=true"];
        for rendered in
            [kustomize("openshift").await, chart("openshift-machine-api", &on_openshift).await]
        {
            let service = rendered.find("Service", "machinist-page");
            let wanted = "service.beta.openshift.io/serving-cert-secret-name";
            let secret = &service["metadata"]["annotations"][wanted];
            let deployment = rendered.find("Deployment", "machinist-operator");
            let pod = &deployment["spec"]["template"]["spec"];
            let container = &pod["containers"][0];
            let flags = container["args"].as_array().unwrap();
            let folder =
                flags.iter().find_map(|flag| flag.as_str()?.strip_prefix("--page-cert-dir="));
            let named = |list: &Value, key: &str, value: &Value| {
                let all = list.as_array().unwrap().iter();
                all.filter(|one| one.pointer(key) == Some(value)).count()
            };
            assert_eq!(named(&pod["volumes"], "/secret/secretName", secret), 1, "{secret}");
            let folder = Value::from(folder.unwrap());
            assert_eq!(named(&container["volumeMounts"], "/mountPath", &folder), 1, "{folder}");
            assert_eq!(named(&container["ports"], "/name", &"page".into()), 1);
            assert_eq!(service["spec"]["ports"][0]["targetPort"], "page");
            assert!(!flags.iter().any(|flag| flag.as_str().unwrap().starts_with("--page-writes")));
            rendered.find("NetworkPolicy", "machinist-operator-page");
            rendered.find("ClusterRole", "machinist-page-reader");
        }
    });
}

/// The cluster-version-operator deletes what is marked so; to the API server it is no Deployment.
#[test]
fn the_api_server_takes_the_manifests_without_a_warning() {
    run(async {
        foreign_kinds(cluster().await.admin()).await;
        let stored: Vec<String> = fs::read_dir(folder())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
            .map(|path| fs::read_to_string(path).unwrap())
            .collect();
        let stored = Manifests::parse(&stored.join("\n---\n"));
        assert!(stored.len() > 25);
        let is_removed = |object: &Value| {
            object["metadata"]["annotations"]["release.openshift.io/delete"] == "true"
        };
        dry_run(&stored.without(is_removed), "deploy/openshift").await;
    });
}

#[test]
fn every_image_is_one_that_the_release_replaces() {
    run(async {
        let text = fs::read_to_string(folder().join(IMAGE_REFERENCES)).unwrap();
        let references: Value = serde_saphyr::from_str(&text).unwrap();
        let tags = references["spec"]["tags"].as_array().unwrap();
        let replaced: BTreeSet<&str> =
            tags.iter().map(|tag| tag["from"]["name"].as_str().unwrap()).collect();
        let rendered = kustomize("openshift").await;
        let deployment = rendered.find("Deployment", "machinist-operator");
        let image = deployment.pointer("/spec/template/spec/containers/0/image").unwrap();
        assert!(replaced.contains(image.as_str().unwrap()), "{image}");
        let images = rendered.find("ConfigMap", "machine-api-operator-images");
        let images = images["data"]["images.json"].as_str().unwrap();
        let images: BTreeMap<String, String> = serde_json::from_str(images).unwrap();
        for key in ["machineAPIOperator", "kubeRBACProxy", "clusterAPIControllerAWS"] {
            assert!(replaced.contains(images[key].as_str()), "{key}");
        }
    });
}

/// Calls that only encrypted volumes need; `deploy/iam/README.md` leaves them to the key's own policy.
const FOR_ENCRYPTED_VOLUMES: &str = "kms:";

#[test]
fn the_credentials_request_asks_for_the_calls_of_the_policy() {
    run(async {
        let policy = fs::read_to_string(repository().join("deploy/iam/policy.json")).unwrap();
        let policy: Value = serde_json::from_str(&policy).unwrap();
        let rendered = kustomize("openshift").await;
        let request = rendered.find("CredentialsRequest", "openshift-machine-api-aws");
        let entries = &request["spec"]["providerSpec"]["statementEntries"];
        let actions = |statements: &Value, field: &str| {
            let statements = statements.as_array().unwrap().iter();
            let actions = statements.flat_map(|one| one[field].as_array().unwrap().clone());
            actions.map(|action| action.as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
        };
        let mut asked = actions(entries, "action");
        assert!(!asked.iter().any(|action| action.contains('*')), "{asked:?}");
        asked.retain(|action| !action.starts_with(FOR_ENCRYPTED_VOLUMES));
        assert_eq!(asked, actions(&policy["Statement"], "Action"));
        for entry in entries.as_array().unwrap() {
            let changes = ["ec2:TerminateInstances", "ec2:ReleaseHosts", "iam:PassRole"];
            let has =
                |action: &&str| entry["action"].as_array().unwrap().contains(&(*action).into());
            if changes.iter().any(has) {
                assert!(!entry["policyCondition"].is_null(), "{entry}");
            }
        }
    });
}
