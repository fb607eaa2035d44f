//! Is what somebody deleted or changed restored, is nothing written at rest, and is OpenShift told?

mod clusteroperator;
mod keeping;

use std::sync::Arc;

use clap::Parser;
use machinist_api::openshift_config::ClusterOperator;
use serde_json::{Value, json};

use super::*;
use crate::{
    args::Args,
    engine::testing::FakeServer,
    testing::{World, read},
    tls::trust::{Authorities, CaBundleSource},
};

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const DAEMON_SETS: &str = "/apis/apps/v1/namespaces/ns/daemonsets";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/ns/deployments";
const CHECKS: &str = "/apis/machine.openshift.io/v1beta1/namespaces/ns/machinehealthchecks";
const OPERATORS: &str = "/apis/config.openshift.io/v1/clusteroperators";
const HANDLER: &str = "machine-api-termination-handler";

const KEEP_ALL: [&str; 2] = ["--keep-webhooks=service", "--termination-handler-image=image-1"];

struct Lab {
    world: World,
    upkeep: Upkeep,
}

impl Lab {
    fn new(flags: &[&str]) -> Self {
        Self::with_bundle(flags, CaBundle::fixed(Authorities::ToldByOthers))
    }

    fn with_bundle(flags: &[&str], ca_bundle: CaBundle) -> Self {
        let own = ["machinist-operator", "--namespace=ns", "--release-version=4.20"];
        let args = Args::parse_from([&own, flags].concat());
        let world = World::new();
        world.server.lock().checks_patches = true;
        let upkeep = Upkeep {
            args: args.upkeep,
            namespace: args.namespace,
            stores: UpkeepStores::new(),
            ca_bundle,
            events: world.context.events.for_component(COMPONENT),
            facts: Arc::default(),
            history: Mutex::default(),
        };
        Self { world, upkeep }
    }

    /// Makes the cluster one of OpenShift's, on this platform.
    fn openshift(self, platform: &str) -> Self {
        let kinds = json!({
            "kind": "APIResourceList", "groupVersion": "config.openshift.io/v1",
            "resources": [{
                "name": "clusteroperators", "singularName": "clusteroperator", "namespaced": false,
                "kind": "ClusterOperator", "verbs": ["get"],
            }],
        });
        let key = ("/apis/config.openshift.io".to_owned(), "v1".to_owned());
        self.server().lock().objects.insert(key, kinds);
        self.world.context.stores.infrastructures.apply_written(read(json!({
            "metadata": { "name": "cluster", "uid": "i", "resourceVersion": "1" }, "spec": {},
            "status": { "platformStatus": { "type": platform } },
        })));
        self
    }

    fn server(&self) -> &FakeServer {
        &self.world.server
    }

    async fn pass(&self) -> Outcome {
        reconcile(&self.world.context, &self.upkeep).await
    }

    /// Passes until one writes nothing.
    async fn settle(&self) -> Outcome {
        for _ in 0..10 {
            let before = self.writes().len();
            let outcome = self.pass().await;
            if self.writes().len() == before {
                return outcome;
            }
        }
        panic!("still writing: {:?}", self.writes());
    }

    /// Everything that was written.
    fn writes(&self) -> Vec<String> {
        let log = &self.server().lock().log;
        log.iter().filter(|line| !line.starts_with("GET")).cloned().collect()
    }

    fn object(&self, collection: &str, name: &str) -> Value {
        let objects = &self.server().lock().objects;
        objects[&(collection.to_owned(), name.to_owned())].clone()
    }

    /// Writes an object as somebody else would, seen by the watches.
    fn put(&self, collection: &str, object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        self.server().put(collection, object);
        let stored = self.object(collection, &name);
        let (own, shared) = (&self.upkeep.stores, &self.world.context.stores);
        match collection {
            MUTATING => own.mutating.apply_written(read(stored)),
            VALIDATING => own.validating.apply_written(read(stored)),
            DAEMON_SETS => own.daemon_sets.apply_written(read(stored)),
            DEPLOYMENTS => own.deployments.apply_written(read(stored)),
            CHECKS => shared.health_checks.apply_written(read(stored)),
            _ => panic!("{collection}"),
        }
    }

    /// Deletes one, seen by the watches.
    fn delete(&self, collection: &str, name: &str) -> String {
        let uid = self.object(collection, name)["metadata"]["uid"].as_str().unwrap().to_owned();
        self.server().delete(collection, name);
        let (own, shared) = (&self.upkeep.stores, &self.world.context.stores);
        let of_cluster = ObjectKey::cluster_wide(name);
        let of_namespace = ObjectKey::new("ns", name);
        match collection {
            MUTATING => own.mutating.forget_written(&of_cluster, &uid),
            VALIDATING => own.validating.forget_written(&of_cluster, &uid),
            DAEMON_SETS => own.daemon_sets.forget_written(&of_namespace, &uid),
            CHECKS => shared.health_checks.forget_written(&of_namespace, &uid),
            _ => panic!("{collection}"),
        }
        uid
    }

    fn operator(&self) -> ClusterOperator {
        read(self.object(OPERATORS, "machine-api"))
    }

    /// Status, reason and message of a condition that OpenShift is told.
    fn told(&self, type_: &str) -> (String, String, String) {
        let conditions = self.operator().status.unwrap_or_default().conditions;
        let found = conditions.into_iter().find(|one| one.type_ == type_).unwrap();
        (found.status, found.reason, found.message)
    }
}
