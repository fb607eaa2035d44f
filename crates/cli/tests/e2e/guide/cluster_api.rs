//! Do the commands for the way from Cluster API, and back, work? They are run on a management cluster with Cluster API's
//! own core manager and its in-memory provider, unmodified. The manager holds its own lease.

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, ResourceExt, api::ListParams};
use machinist_api::cluster_api::{Machine, names::lease};
use machinist_testbed::{
    cluster_api::{ClusterApi, objects, pod::Pod},
    deployment::container_of,
    manifests::apply,
    operator_process::OperatorProcess,
    programs::Progress,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    pages::CLUSTER_API,
    reader::{PATIENCE, POLL, Reader, arguments, deployment},
};
use crate::arena::run;

const CORE: &str = "capi-controller-manager";
/// Where the guide looks for the pool.
const NAMESPACE: &str = "team-a";
const CLUSTER: &str = "c1";

#[test]
fn the_commands_for_the_way_from_cluster_api_and_back_work() {
    run(async {
        let reader = Reader::start("cluster-api").await;
        let management = Management::start(&reader).await;
        let reading = async {
            let before = management.running(3).await;
            reader.read(CLUSTER_API).await;
            let after = management.running(3).await;
            // The pool grew by one and shrank by one, whichever that was.
            let same = after.iter().filter(|(name, uid)| before.get(*name) == Some(uid)).count();
            assert!(same >= 2, "the way changed the fleet: {before:?}, {after:?}");
            assert!(management.holder().await.starts_with(CORE), "the lease is not back");
        };
        tokio::select! {
            () = reader.play_the_pods() => {}
            () = management.play_the_core_manager() => {}
            () = reading => {}
        }
        management.provider.stop().await;
        reader.finish().await;
    });
}

/// A cluster that Cluster API keeps another cluster with.
struct Management<'a> {
    reader: &'a Reader,
    programs: ClusterApi,
    provider: OperatorProcess,
}

impl<'a> Management<'a> {
    /// With a Cluster, a machine of its control plane and a pool of two.
    async fn start(reader: &'a Reader) -> Self {
        let (cluster, client) = (reader.cluster(), reader.cluster().admin());
        let programs = ClusterApi::install(cluster, Progress::Lines).await.unwrap();
        let provider = programs.start_provider(cluster).await.unwrap();
        for name in [lease::CORE_NAMESPACE, NAMESPACE] {
            let namespace =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            apply(client, namespace).await.unwrap();
        }
        let manager = json!({
            "name": "manager",
            "image": "registry.example.com/cluster-api-controller",
            "args": ["--leader-elect"],
        });
        let mut all = vec![deployment(lease::CORE_NAMESPACE, CORE, &manager)];
        all.extend(objects::cluster(NAMESPACE, CLUSTER).unwrap());
        all.extend(objects::control_plane(NAMESPACE, CLUSTER));
        all.push(objects::template(NAMESPACE, CLUSTER, "small"));
        all.push(objects::workers(NAMESPACE, CLUSTER, "small", 2));
        for object in all {
            apply(client, object).await.unwrap();
        }
        Self { reader, programs, provider }
    }

    async fn play_the_core_manager(&self) {
        let pod = Pod { namespace: lease::CORE_NAMESPACE, name: "capi-controller-manager-0" };
        let start = async |deployment: &Value| {
            let container = container_of(deployment, pod.namespace, pod.name).unwrap();
            let arguments = arguments(container.flags);
            let started = self.programs.start_core_as(&pod, self.reader.cluster(), arguments);
            started.await.unwrap()
        };
        self.reader.play(lease::CORE_NAMESPACE, CORE, start).await;
    }

    /// The uids of the Machines by name, once there are so many and all of them run.
    async fn running(&self, count: usize) -> BTreeMap<String, String> {
        let machines: Api<Machine> =
            Api::namespaced(self.reader.cluster().admin().clone(), NAMESPACE);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let all = machines.list(&ListParams::default()).await.unwrap().items;
            let is_running = |machine: &Machine| {
                let phase = machine.status.as_ref().and_then(|status| status.phase.as_deref());
                phase == Some("Running") && machine.metadata.deletion_timestamp.is_none()
            };
            if all.len() == count && all.iter().all(is_running) {
                let uid = |machine: &Machine| machine.uid().unwrap();
                return all.iter().map(|one| (one.name_any(), uid(one))).collect();
            }
            assert!(Instant::now() < deadline, "not {count} running machines: {all:?}");
            sleep(POLL).await;
        }
    }

    /// Who has the lease.
    async fn holder(&self) -> String {
        let leases: Api<Lease> =
            Api::namespaced(self.reader.cluster().admin().clone(), lease::CORE_NAMESPACE);
        let lease = leases.get(lease::CORE).await.unwrap();
        lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default()
    }
}
