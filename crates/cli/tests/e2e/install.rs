//! Does what is shipped install? The chart, the kustomize folders and OpenShift's manifests are rendered
//! by the real programs and shown to the real API server.

pub mod manifests;
mod openshift;

use std::process::Output;

use k8s_openapi::{
    api::core::v1::{Namespace, Pod},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use machinist_testbed::{
    manifests::{apply_crds, documents},
    operator_process::OperatorConfig,
};
use serde_json::{Value, json};
use tokio::{process::Command, sync::OnceCell};

use self::manifests::{Manifests, chart, helm, kustomize, repository};
use crate::arena::{Arena, cluster, run};

/// Kinds of others, as far as the API server needs to know them to take our objects.
pub const FOREIGN_KINDS: &str = include_str!("assets/foreign-kinds.yaml");

/// Everything that can be switched on, as in deploy/kustomize/everything.
const EVERYTHING: [&str; 6] = [
    "namespace.create=true",
    "monitoring.enabled=true",
    "certificates.mode=cert-manager",
    "terminationHandler.enabled=true",
    "page.enabled=true",
    "clusterApi.enabled=true",
];

/// What somebody on OpenShift without the cluster-version-operator would choose.
const ON_OPENSHIFT: [&str; 9] = [
    "certificates.mode=openshift",
    "page.enabled=true",
    "monitoring.enabled=true",
    "monitoring.prometheus.namespace=openshift-monitoring",
    "monitoring.dashboard=false",
    "approveCertificates=false",
    "nodeSelector.node-role\\.kubernetes\\.io/control-plane=",
    "networkPolicies.extraEgressPorts={3128}",
    "image.digest=sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
];

/// Every value that becomes a flag or a field.
const WITH_EXTRAS: [&str; 17] = [
    "replicas=1",
    "listenAddress=::",
    "approveBootstrapTokens=true",
    "aws.region=eu-central-1",
    "aws.ec2Endpoint=https://ec2.example.com",
    "aws.elbEndpoint=https://elb.example.com",
    "aws.stsEndpoint=https://sts.example.com",
    "aws.eventQueueUrl=https://sqs.example.com/1/events",
    "extraArgs={--terminate-orphans}",
    "serviceAccountAnnotations.eks\\.amazonaws\\.com/role-arn=arn:aws:iam::1:role/machinist",
    "imagePullSecrets[0].name=pull",
    "nodeGuard=false",
    "clusterApi.enabled=true",
    "clusterApi.namespace=team-a",
    "clusterApi.leaseNamespace=capi-elsewhere",
    "clusterApi.clouds[0]=region=eu-west-1\\,secret=team-a/aws-view\\,tag=c1",
    "clusterApi.clouds[1]=region=eu-west-2\\,secret=team-a/aws-view\\,tag=c2",
];

#[test]
fn the_chart_and_the_kustomize_folders_give_the_same_objects() {
    run(async {
        for (folder, values) in
            [("base", &["namespace.create=true"][..]), ("everything", &EVERYTHING[..])]
        {
            let mut charted = chart("openshift-machine-api", values).await;
            // Only Helm removes what it no longer finds in a release.
            charted.remove_annotation("helm.sh/resource-policy");
            charted.assert_same(&kustomize(folder).await, folder);
        }
    });
}

#[test]
fn the_chart_passes_its_own_linter_and_refuses_values_that_cannot_be_meant() {
    run(async {
        for values in [&[][..], &EVERYTHING, &ON_OPENSHIFT, &WITH_EXTRAS] {
            let output = helm("lint", &["--strict"], values).await;
            assert!(output.status.success(), "{values:?}: {}", words(&output));
        }
        for value in [
            "certificates.mode=none",
            "image.tag=latest",
            "image.digest=sha256:short",
            "replicas=0",
            "extraArgs={terminate-orphans}",
            "networkPolicies.extraEgressPorts={70000}",
            "clusterApi.leaseNamespace=",
            "clusterApi.clouds={eu-west-1}",
            "monitorring.enabled=true",
        ] {
            let output = helm("lint", &["--strict"], &[value]).await;
            assert!(!output.status.success(), "{value} is taken");
        }
    });
}

/// The namespace asks for the strictest level of pod security, and warns of what breaks it.
#[test]
fn the_api_server_takes_what_the_chart_gives_without_a_warning() {
    run(async {
        let arena = Arena::new("install-chart").await;
        foreign_kinds(&arena.client).await;
        let levels = ["enforce", "audit", "warn"]
            .map(|mode| (format!("pod-security.kubernetes.io/{mode}"), json!("restricted")));
        let labels = Value::Object(levels.into_iter().collect());
        Api::<Namespace>::all(arena.client.clone())
            .patch(
                &arena.name,
                &PatchParams::default(),
                &Patch::Merge(json!({"metadata": {"labels": labels}})),
            )
            .await
            .unwrap();
        for values in [&[][..], &EVERYTHING[1..], &ON_OPENSHIFT, &WITH_EXTRAS] {
            let rendered = chart(&arena.name, values).await;
            dry_run(&rendered, &format!("{values:?}")).await;
            // A Deployment that breaks the level is warned of; a Pod is refused.
            let deployment = rendered.find("Deployment", "machinist-operator");
            let mut pod = deployment["spec"]["template"].clone();
            pod["metadata"]["generateName"] = json!("machinist-operator-");
            let pod: Pod = serde_json::from_value(pod).unwrap();
            let dry = PostParams { dry_run: true, ..PostParams::default() };
            // The Pod needs its account to be there.
            let account = rendered.find("ServiceAccount", "machinist-operator");
            machinist_testbed::manifests::apply(&arena.client, account.clone()).await.unwrap();
            arena.api::<Pod>().create(&dry, &pod).await.unwrap();
        }
    });
}

#[test]
fn the_api_server_takes_what_kustomize_gives_without_a_warning() {
    run(async {
        foreign_kinds(cluster().await.admin()).await;
        for folder in ["base", "everything"] {
            dry_run(&kustomize(folder).await, folder).await;
        }
    });
}

#[test]
fn containers_are_named_by_a_version_and_hardened() {
    run(async {
        for rendered in [
            kustomize("everything").await,
            kustomize("openshift").await,
            chart("a-namespace", &ON_OPENSHIFT).await,
        ] {
            let pod =
                &rendered.find("Deployment", "machinist-operator")["spec"]["template"]["spec"];
            assert_eq!(pod["priorityClassName"], "system-cluster-critical");
            assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
            assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
            for field in ["hostNetwork", "hostPID", "hostIPC"] {
                assert!(pod[field].is_null(), "{field}");
            }
            for container in pod["containers"].as_array().unwrap() {
                let image = container["image"].as_str().unwrap();
                let version = concat!(":", env!("CARGO_PKG_VERSION"));
                assert!(image.ends_with(version) || image.contains("@sha256:"), "{image}");
                let security = &container["securityContext"];
                assert_eq!(security["allowPrivilegeEscalation"], false);
                assert_eq!(security["readOnlyRootFilesystem"], true);
                assert_eq!(security["capabilities"]["drop"], json!(["ALL"]));
                for field in ["/requests/cpu", "/requests/memory", "/limits/memory"] {
                    assert!(container["resources"].pointer(field).is_some(), "{field}");
                }
            }
            for account in rendered.of_kind("ServiceAccount") {
                assert_eq!(account["automountServiceAccountToken"], false);
            }
        }
        let about: Value = serde_saphyr::from_str(
            &std::fs::read_to_string(repository().join("deploy/helm/machinist/Chart.yaml"))
                .unwrap(),
        )
        .unwrap();
        assert_eq!(about["appVersion"], env!("CARGO_PKG_VERSION"));
    });
}

/// A flag that the program does not know would keep every Pod from starting.
#[test]
fn every_flag_that_is_shipped_is_one_of_the_operators() {
    run(async {
        let program = OperatorConfig::find(Vec::new()).unwrap().program;
        let help = Command::new(program).arg("--help").output().await.unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let known: Vec<&str> = help
            .split_whitespace()
            .map(|word| word.trim_end_matches([',', '.', ';']))
            .filter(|word| word.starts_with("--"))
            .collect();
        for rendered in [
            kustomize("everything").await,
            kustomize("openshift").await,
            chart("a-namespace", &ON_OPENSHIFT).await,
            chart("a-namespace", &WITH_EXTRAS).await,
        ] {
            let deployment = rendered.find("Deployment", "machinist-operator");
            let arguments = deployment.pointer("/spec/template/spec/containers/0/args").unwrap();
            for argument in arguments.as_array().unwrap() {
                let flag = argument.as_str().unwrap().split('=').next().unwrap();
                assert!(known.contains(&flag), "the operator has no flag {flag}");
            }
        }
    });
}

/// The image holds the C library's family and nothing else.
#[test]
fn the_operator_links_nothing_that_the_image_lacks() {
    run(async {
        let program = OperatorConfig::find(Vec::new()).unwrap().program;
        let output = Command::new("readelf").arg("--dynamic").arg(program).output().await.unwrap();
        assert!(output.status.success(), "{}", words(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        let libraries: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("(NEEDED)"))
            .filter_map(|line| line.split(['[', ']']).nth(1))
            .collect();
        assert!(libraries.contains(&"libc.so.6"), "{text}");
        for library in libraries {
            let family =
                ["libc.", "libm.", "libgcc_s.", "libdl.", "libpthread.", "librt.", "ld-linux"];
            assert!(
                family.iter().any(|name| library.starts_with(name)),
                "{library} is not in the image"
            );
        }
    });
}

/// Makes the kinds and namespaces of others, once, where the cluster does not have them.
async fn foreign_kinds(client: &Client) {
    static DONE: OnceCell<()> = OnceCell::const_new();
    DONE.get_or_init(|| async {
        let known = Api::<CustomResourceDefinition>::all(client.clone());
        for definition in documents(FOREIGN_KINDS).unwrap() {
            if known
                .get_opt(definition["metadata"]["name"].as_str().unwrap())
                .await
                .unwrap()
                .is_none()
            {
                apply_crds(client, &definition.to_string()).await.unwrap();
            }
        }
        for name in [
            "openshift-cloud-credential-operator",
            "openshift-machine-api",
            "capi-system",
            "capi-elsewhere",
        ] {
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            machinist_testbed::manifests::apply(client, namespace).await.unwrap();
        }
    })
    .await;
}

/// Shows the objects to the API server, which checks everything and stores nothing.
async fn dry_run(rendered: &Manifests, which: &str) {
    let cluster = cluster().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, rendered.to_list()).unwrap();
    let output = Command::new(cluster.kubectl())
        .env("KUBECONFIG", cluster.kubeconfig())
        .args(["apply", "--server-side", "--force-conflicts", "--dry-run=server", "--filename"])
        .arg(file.path())
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{which}: {}", words(&output));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("Warning"), "{which}: {said}");
    let taken = String::from_utf8_lossy(&output.stdout);
    let taken = taken.lines().filter(|line| line.ends_with("serverside-applied (server dry run)"));
    assert_eq!(taken.count(), rendered.len(), "{which}");
}

fn words(output: &Output) -> String {
    let (stdout, stderr) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr))
}
