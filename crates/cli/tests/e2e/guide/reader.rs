//! Who reads the guide? Somebody with a cluster, its programs in the path, and a shell.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use k8s_openapi::api::{
    apps::v1::Deployment, core::v1::Node, core::v1::Secret, rbac::v1::ClusterRole,
};
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};
use machinist_api::names::DEFAULT_NAMESPACE;
use machinist_testbed::{
    Cluster, ClusterConfig,
    cloud::model::{Caller, InstanceState, LedgerQuery, Request, RunInstances},
    cluster::folder_of_this_process,
    deployment::container_of,
    guard::Guard,
    manifests::{apply, apply_crds, documents},
    operator_process::{OperatorConfig, OperatorProcess},
    permissions::{CLUSTER_API_RULES, SHIPPED_RULES},
    programs::Progress,
};
use serde_json::{Value, json};
use tokio::{
    process::Command,
    time::{Instant, sleep, timeout},
};

use super::pages::{commands, folder};
use crate::{
    arena::is_ready,
    install::{
        FOREIGN_KINDS,
        manifests::{helm_program, repository},
    },
    seen::free_port,
};

/// For one page; the cores may be busy with something else.
pub const PATIENCE: Duration = Duration::from_secs(600);
pub const POLL: Duration = Duration::from_millis(200);
/// As whom the API server knows the operator that the chart installs.
const OPERATOR_USER: &str = "system:serviceaccount:openshift-machine-api:machinist-operator";
/// The operator's one Pod, which holds its leases too.
const POD: &str = "machinist-operator-0";
/// What OpenShift has besides the kinds that our own manifests name.
const CLUSTER_VERSION: &str = include_str!("../assets/cluster-version.yaml");

pub struct Reader {
    cluster: Cluster,
    /// Where the commands run: what they see of the checkout, and what they write.
    place: tempfile::TempDir,
    environment: BTreeMap<&'static str, String>,
}

impl Reader {
    /// A cluster with one Node and nothing of ours in it. Each reader of a run has a name of its own.
    pub async fn start(name: &str) -> Self {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let config = ClusterConfig {
            guard: Guard::at(PathBuf::from(env!("CARGO_BIN_EXE_machinist"))),
            progress: Progress::Lines,
            folder: Some(folder_of_this_process(parent, &format!("guide-{name}-")).unwrap()),
            termination_handlers: None,
            approve_kubelets: true,
            ..ClusterConfig::fast()
        };
        let cluster = Cluster::start(config).await.unwrap();
        let place = tempfile::tempdir().unwrap();
        let environment = prepare(&cluster, place.path()).await;
        let reader = Self { cluster, place, environment };
        reader.clear().await;
        reader.start_a_node().await;
        // From now on the operator must do it.
        reader.cluster.set_kubelet_approval(false);
        reader
    }

    /// Runs the commands of a page, as one session.
    pub async fn read(&self, page: &str) {
        let text = fs::read_to_string(folder().join(page)).unwrap();
        let running = Command::new("bash")
            .args(["-o", "errexit", "-o", "nounset", "-o", "pipefail", "-o", "xtrace", "-c"])
            .arg(commands(&text))
            .current_dir(self.place.path())
            .envs(&self.environment)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = timeout(PATIENCE, running).await;
        let output = output.unwrap_or_else(|_| panic!("{page} does not come to an end")).unwrap();
        assert!(
            output.status.success(),
            "{page}: {}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// The instances of the cluster's machines that are not gone, by id.
    pub fn instances(&self) -> Vec<(String, InstanceState)> {
        let owned = format!("kubernetes.io/cluster/{}", self.environment["CLUSTER"]);
        let ledger = self.cluster.cloud().ledger(&LedgerQuery::default());
        let live = ledger.instances.into_iter().filter(|one| {
            one.tags.contains_key(&owned)
                && !matches!(one.state, InstanceState::Terminated | InstanceState::ShuttingDown)
        });
        live.map(|one| (one.id, one.state)).collect()
    }

    /// The instances, once there are so many, and all of them run.
    pub async fn settled(&self, count: usize) -> Vec<(String, InstanceState)> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let all = self.instances();
            if all.len() == count && all.iter().all(|(_, state)| *state == InstanceState::Running) {
                return all;
            }
            assert!(Instant::now() < deadline, "not {count} running instances: {all:?}");
            sleep(POLL).await;
        }
    }

    /// What OpenShift's own operator looks like from outside.
    pub async fn become_openshift(&self) {
        let client = self.cluster.admin();
        apply_crds(client, FOREIGN_KINDS).await.unwrap();
        for object in documents(CLUSTER_VERSION).unwrap() {
            match object["kind"].as_str() {
                Some("CustomResourceDefinition") => {
                    apply_crds(client, &object.to_string()).await.unwrap();
                }
                Some(_) | None => apply(client, object).await.unwrap(),
            }
        }
        for (name, container) in [
            ("machine-api-operator", "operator"),
            ("machine-api-controllers", "machine-controller"),
        ] {
            let container =
                json!({ "name": container, "image": "registry.example.com/machine-api" });
            apply(client, deployment(DEFAULT_NAMESPACE, name, &container)).await.unwrap();
        }
    }

    /// Runs the operator wherever a Deployment of it is there, for as long as it is.
    pub async fn play_the_pods(&self) {
        let port = free_port();
        let start = async |deployment: &Value| self.start_operator(deployment, port).await;
        self.play(DEFAULT_NAMESPACE, "machinist-operator", start).await;
    }

    /// Runs a process while a Deployment wants replicas, and another one when the Deployment changes.
    pub async fn play(
        &self,
        namespace: &str,
        name: &str,
        start: impl AsyncFn(&Value) -> OperatorProcess,
    ) {
        let deployments: Api<Deployment> = Api::namespaced(self.cluster.admin().clone(), namespace);
        let mut running: Option<(Value, OperatorProcess)> = None;
        loop {
            // An API server that is slow to answer is asked again.
            let Ok(found) = deployments.get_opt(name).await else {
                sleep(POLL).await;
                continue;
            };
            let spec = found.and_then(|one| one.spec).filter(|spec| spec.replicas != Some(0));
            let template = spec.map(|spec| json!({ "spec": spec }));
            // One that ended, because it lost its lease for example, is started again.
            let current = running.as_ref().filter(|(_, process)| process.process().is_running());
            if template.as_ref() != current.map(|(template, _)| template) {
                if let Some((_, process)) = running.take() {
                    process.stop().await;
                }
                if let Some(template) = template {
                    let process = start(&template).await;
                    running = Some((template, process));
                }
            }
            sleep(POLL).await;
        }
    }

    async fn start_operator(&self, deployment: &Value, port: u16) -> OperatorProcess {
        let container = container_of(deployment, DEFAULT_NAMESPACE, POD).unwrap();
        let kubeconfig = self.cluster.folder().join("guide-operator.kubeconfig");
        self.cluster.access().write_kubeconfig(&kubeconfig, OPERATOR_USER, None).unwrap();
        let mut flags = container.flags;
        // Certificates and lists that a Pod would have mounted.
        for file in ["--webhook-cert-dir", "--metrics-cert-dir", "--images-json"] {
            flags.remove(file);
        }
        let webhooks = format!("127.0.0.1:{port}");
        let asked_at = format!("url:https://{webhooks}");
        for (flag, value) in [
            ("--kubeconfig", kubeconfig.to_str().unwrap()),
            ("--http-address", "127.0.0.1:0"),
            ("--metrics-tls-address", "127.0.0.1:0"),
            ("--webhook-address", &webhooks),
            ("--keep-webhooks", &asked_at),
            ("--cloud-list-period", "1s"),
            ("--cloud-first-look", "200ms"),
            ("--cloud-report-period", "1s"),
            ("--launch-visibility", "5s"),
            // Whoever comes next is the same Pod to the leases.
            ("--identity", POD),
        ] {
            flags.insert(flag.to_owned(), value.to_owned());
        }
        let mut config = OperatorConfig::find(arguments(flags)).unwrap();
        let environment = container.environment.into_iter();
        config.environment = environment.map(|(name, value)| (name, value.into())).collect();
        self.cluster.start_operator(config).await.unwrap()
    }

    /// Takes away what the testbed makes and the commands are to make.
    async fn clear(&self) {
        let client = self.cluster.admin();
        let roles: Api<ClusterRole> = Api::all(client.clone());
        for rules in [SHIPPED_RULES, CLUSTER_API_RULES] {
            for role in documents(rules).unwrap() {
                if role["kind"] == "ClusterRole" {
                    let name = role["metadata"]["name"].as_str().unwrap();
                    roles.delete(name, &DeleteParams::default()).await.unwrap();
                }
            }
        }
        let secrets: Api<Secret> = Api::namespaced(client.clone(), DEFAULT_NAMESPACE);
        for name in ["aws-cloud-credentials", "worker-user-data"] {
            secrets.delete(name, &DeleteParams::default()).await.unwrap();
        }
    }

    /// The machine that the pods of the operator are on: nobody's Machine, as in many clusters.
    async fn start_a_node(&self) {
        let cloud = self.cluster.cloud();
        let world = cloud.world();
        let launch = RunInstances {
            image_id: world.images.get("x86_64").cloned(),
            instance_type: Some("m6i.xlarge".to_owned()),
            min_count: 1,
            max_count: 1,
            subnet_id: world.private_subnets.get(&world.availability_zones[0]).cloned(),
            ..RunInstances::default()
        };
        cloud.call(&Caller::default(), Request::RunInstances(launch.into())).result.unwrap();
        let nodes: Api<Node> = Api::all(self.cluster.admin().clone());
        let deadline = Instant::now() + PATIENCE;
        while !nodes.list(&ListParams::default()).await.unwrap().items.iter().any(is_ready) {
            assert!(Instant::now() < deadline, "no node joins");
            sleep(POLL).await;
        }
    }

    pub const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub async fn finish(self) {
        let folder = self.cluster.folder().to_owned();
        self.cluster.shutdown().await.unwrap();
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Puts the programs into the path and what is the reader's own into variables.
async fn prepare(cluster: &Cluster, place: &Path) -> BTreeMap<&'static str, String> {
    symlink(repository().canonicalize().unwrap().join("deploy"), place.join("deploy")).unwrap();
    let programs = place.join("bin");
    fs::create_dir(&programs).unwrap();
    symlink(cluster.kubectl(), programs.join("kubectl")).unwrap();
    symlink(helm_program().await, programs.join("helm")).unwrap();
    symlink(env!("CARGO_BIN_EXE_machinist"), programs.join("machinist")).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let world = cluster.cloud().world();
    let zone = world.availability_zones[0].clone();
    let home = place.to_str().unwrap().to_owned();
    BTreeMap::from([
        ("PATH", path),
        ("HOME", home.clone()),
        ("HELM_CACHE_HOME", home.clone()),
        ("HELM_CONFIG_HOME", home.clone()),
        ("HELM_DATA_HOME", home),
        ("KUBECONFIG", cluster.kubeconfig().to_str().unwrap().to_owned()),
        ("AWS_ACCESS_KEY_ID", "AKIAGUIDE".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "opens-nothing".to_owned()),
        ("CLUSTER", world.infrastructure_name.clone()),
        ("REGION", world.region.clone()),
        ("AMI", world.images["x86_64"].clone()),
        ("SUBNET", world.private_subnets[&zone].clone()),
        ("GROUP", world.worker_security_group.clone()),
        ("ZONE", zone),
    ])
}

/// A Deployment with one Pod of one container.
pub fn deployment(namespace: &str, name: &str, container: &Value) -> Value {
    let labels = json!({ "k8s-app": name });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name, "namespace": namespace },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    })
}

/// Flags as a program is given them.
pub fn arguments(flags: BTreeMap<String, String>) -> Vec<OsString> {
    let arguments = flags.into_iter().map(|(flag, value)| match value.as_str() {
        "" => flag,
        _ => format!("{flag}={value}"),
    });
    arguments.map(Into::into).collect()
}
