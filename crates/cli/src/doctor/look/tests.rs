//! Is what an API server answers read as what it means? The answers are those of a server in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::{Method, Response};
use kube::client::ClientBuilder;
use machinist_core::doctor::{Code, Level, Reach, examine};
use serde_json::json;
use tower::BoxError;

use super::*;
use crate::args::{Args, Command, DoctorArgs};
use crate::reader::OnlyReads;
use crate::testing::at;
use clap::Parser;

const NAMESPACE: &str = "/api/v1/namespaces/openshift-machine-api";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/openshift-machine-api/leases";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// What a server has, by path; lists that are not here are empty, and objects not found.
#[derive(Clone, Default)]
struct Server {
    objects: BTreeMap<String, Value>,
    /// Paths that the person may not read, and rights that nobody has, as `verb resource`.
    forbidden: Vec<String>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn well() -> Self {
        let mut server = Self::default();
        for definition in machinist_api::crd::all() {
            let name = definition.metadata.name.clone().unwrap();
            server.put(&format!("{DEFINITIONS}/{name}"), json!(definition));
        }
        for name in lease::ALL {
            server.put(&format!("{LEASES}/{name}"), lease_of(name, "operator-1_a", "11:59:50"));
        }
        let status = json!({ "conditions": [], "clouds": [{ "name": "demo in eu-west-1" }] });
        server.put(
            &format!("{NAMESPACE}/configmaps/{CONFIG_MAP}"),
            json!({ "metadata": { "name": CONFIG_MAP }, "data": { KEY: status.to_string() } }),
        );
        server
    }

    fn put(&mut self, path: &str, object: Value) {
        self.objects.insert(path.to_owned(), object);
    }

    fn answer(&self, method: &Method, path: &str, body: &Value) -> (u16, Value) {
        self.log.lock().unwrap().push(format!("{method} {path}"));
        if self.forbidden.iter().any(|one| one == path) {
            return failure(403, "Forbidden");
        }
        if *method == Method::POST {
            let asked = &body["spec"]["resourceAttributes"];
            let word = |field: &str| asked[field].as_str().unwrap_or_default().to_owned();
            let right = format!("{} {}", word("verb"), word("resource"));
            let is_refused = self.forbidden.contains(&right);
            return (201, json!({ "spec": body["spec"], "status": { "allowed": !is_refused } }));
        }
        if let Some(object) = self.objects.get(path) {
            return (200, object.clone());
        }
        let last = path.rsplit('/').next().unwrap_or_default();
        let is_list = last.ends_with('s') && !path.contains("/leases/") && last != CONFIG_MAP;
        if path == "/version" {
            (200, json!({}))
        } else if is_list && !path.starts_with(DEFINITIONS) {
            (200, json!({ "metadata": {}, "items": [] }))
        } else {
            failure(404, "NotFound")
        }
    }

    async fn look(self, arguments: &[&str]) -> (Observed, Vec<String>) {
        let log = Arc::clone(&self.log);
        let server = Arc::new(self);
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = Arc::clone(&server);
            async move {
                let (parts, body) = request.into_parts();
                let bytes = body.collect_bytes().await.unwrap_or_default();
                let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                let (code, answer) = server.answer(&parts.method, parts.uri.path(), &body);
                let answer = Response::builder()
                    .status(code)
                    .header("date", "Mon, 01 Jun 2026 12:00:00 GMT")
                    .body(Body::from(answer.to_string().into_bytes()))?;
                Ok::<_, BoxError>(answer)
            }
        });
        let client = ClientBuilder::new(service, "default").with_layer(&OnlyReads).build();
        let words = [&["machinist", "doctor"], arguments].concat();
        let Command::Doctor(args) = Args::parse_from(words).command else { panic!() };
        let args: DoctorArgs = args;
        let mut observed = look(&Connection::to(client), &args).await.unwrap();
        // This machine's clock shows something else than that of the server in memory.
        let here = observed.clocks.here.take().unwrap();
        assert_eq!(here.by_server, at("2026-06-01T12:00:00Z"));
        (observed, log.lock().unwrap().clone())
    }
}

fn failure(code: u16, reason: &str) -> (u16, Value) {
    (
        code,
        json!({ "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason }),
    )
}

fn lease_of(name: &str, holder: &str, renewed: &str) -> Value {
    json!({
        "metadata": {
            "name": name,
            "managedFields": [{ "manager": "m", "time": "2026-06-01T11:59:50Z" }],
        },
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 120,
            "renewTime": format!("2026-06-01T{renewed}.000000Z"),
        },
    })
}

async fn codes(server: Server) -> Vec<Code> {
    let (observed, _) = server.look(&[]).await;
    examine(&observed).findings().map(|finding| finding.code).collect()
}

#[tokio::test]
async fn a_healthy_server_has_no_findings_and_is_only_asked() {
    let (observed, log) = Server::well().look(&[]).await;
    let report = examine(&observed);
    assert_eq!(report.level, Level::Ok, "{:#?}", report.findings().collect::<Vec<_>>());
    assert_eq!(observed.now, at("2026-06-01T12:00:00Z"));
    let reviews = log.iter().filter(|line| line.starts_with("POST")).count();
    assert!(reviews > 100, "{reviews}");
    let others =
        log.iter().filter(|line| !line.starts_with("GET") && !line.contains("accessreviews"));
    assert_eq!(others.count(), 0, "{log:?}");
    assert!(
        !log.iter().any(|line| line.contains("/secrets")),
        "without webhooks no Secret is read"
    );
}

#[tokio::test]
async fn each_fault_of_a_server_is_read_as_itself() {
    let mut server = Server::well();
    server.objects.remove(&format!("{DEFINITIONS}/machines.machine.openshift.io"));
    assert_eq!(codes(server).await, [Code::MissingCrd]);

    let mut server = Server::well();
    server.forbidden.push("patch nodes".to_owned());
    assert_eq!(codes(server).await, [Code::MissingRbacVerb]);

    let mut server = Server::well();
    let name = lease::NODE_LINK;
    server.put(&format!("{LEASES}/{name}"), lease_of(name, "stranger_1", "09:00:00"));
    assert_eq!(codes(server).await, [Code::SecondController, Code::ClockSkew]);

    let mut server = Server::well();
    let status = json!({
        "conditions": [],
        "clouds": [{
            "name": "a", "problem": { "kind": "CredentialsRefused", "message": "AuthFailure" },
        }, {
            "name": "b", "endpoint": "https://x", "problem": { "kind": "Unreachable", "message": "-" },
        }],
        "missingPermissions": ["ec2:StartInstances"],
    });
    let path = format!("{NAMESPACE}/configmaps/{CONFIG_MAP}");
    server.put(&path, json!({ "metadata": {}, "data": { KEY: status.to_string() } }));
    let expected = [Code::WrongCredentials, Code::MissingIamAction, Code::UnreachableEndpoint];
    assert_eq!(codes(server).await, expected);

    let mut server = Server::well();
    let path = "/apis/machine.openshift.io/v1beta1/namespaces/openshift-machine-api/machines";
    let condition =
        json!({ "type": "InstanceExists", "reason": "QuotaExceeded", "message": "full" });
    let machine = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": { "name": "a" }, "status": { "conditions": [condition] },
    });
    server.put(path, json!({ "metadata": {}, "items": [machine] }));
    assert_eq!(codes(server).await, [Code::QuotaUsedUp]);
}

#[tokio::test]
async fn a_webhook_is_followed_to_its_service_and_certificate() {
    let webhook = |service: &str| {
        json!({ "metadata": {}, "items": [{
            "metadata": { "name": "machine-api" },
            "webhooks": [{
                "name": "validation.machine.machine.openshift.io",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {
                    "caBundle": "bm8gY2VydGlmaWNhdGU=",
                    "service": { "namespace": "openshift-machine-api", "name": service },
                },
                "rules": [{ "apiGroups": ["machine.openshift.io"], "resources": ["machines"] }],
            }],
        }] })
    };
    let mut server = Server::well();
    server.put(VALIDATING, webhook("hook"));
    server.put(
        &format!("{NAMESPACE}/services/hook"),
        json!({ "metadata": { "name": "hook" }, "spec": { "ports": [{ "port": 443 }] } }),
    );
    let slices = "/apis/discovery.k8s.io/v1/namespaces/openshift-machine-api/endpointslices";
    let slice = |ready: bool| {
        json!({ "metadata": {}, "items": [{
            "metadata": {}, "addressType": "IPv4",
            "endpoints": [{ "addresses": ["10.0.0.1"], "conditions": { "ready": ready } }],
        }] })
    };
    let reach = async |server: &Server| {
        let (observed, _) = server.clone().look(&[]).await;
        observed.webhooks.unwrap()[0].reach.clone()
    };
    assert_eq!(reach(&server).await, Ok(Reach::NoEndpoint));
    server.put(slices, slice(false));
    assert_eq!(reach(&server).await, Ok(Reach::NoEndpoint));
    server.put(slices, slice(true));
    assert_eq!(reach(&server).await, Ok(Reach::Answers));
    server.put(VALIDATING, webhook("nowhere"));
    assert_eq!(reach(&server).await, Ok(Reach::NoSuchService));
    let (observed, log) = server.look(&[]).await;
    assert!(log.iter().any(|line| line.ends_with("/secrets/machine-api-operator-webhook-cert")));
    assert_eq!(observed.serving_certificate, Ok(None));
}

#[tokio::test]
async fn what_may_not_be_read_is_said_and_the_rest_is_read() {
    let mut server = Server::well();
    server.forbidden.push(format!("{LEASES}/{}", lease::OPERATOR));
    server.forbidden.push(VALIDATING.to_owned());
    let (observed, _) = server.look(&[]).await;
    let why = observed.leases.clone().unwrap_err();
    assert_eq!(why, "you may not read leases in openshift-machine-api");
    assert_eq!(observed.webhooks.clone().unwrap_err(), "you may not list webhook configurations");
    let report = examine(&observed);
    assert_eq!(report.level, Level::Warning);
    assert!(report.findings().all(|finding| finding.code == Code::NotChecked));
}

#[tokio::test]
async fn the_operators_user_is_that_of_its_deployment_or_the_one_that_is_named() {
    let mut server = Server::well();
    let path = "/apis/apps/v1/namespaces/openshift-machine-api/deployments";
    let deployment = json!({
        "metadata": { "name": "custom" },
        "spec": { "selector": {}, "template": { "spec": {
            "serviceAccountName": "account", "containers": [],
        } } },
    });
    let user = |observed: &Observed| observed.rights.as_ref().unwrap().user.clone();
    let (observed, _) = server.clone().look(&[]).await;
    assert_eq!(user(&observed), "system:serviceaccount:openshift-machine-api:machinist-operator");
    server.put(path, json!({ "metadata": {}, "items": [deployment] }));
    let (observed, _) = server.clone().look(&[]).await;
    assert_eq!(user(&observed), "system:serviceaccount:openshift-machine-api:account");
    assert_eq!(observed.deployed.unwrap().name, "custom");
    let (observed, _) = server.look(&["--operator-user", "ann"]).await;
    assert_eq!(user(&observed), "ann");
}
