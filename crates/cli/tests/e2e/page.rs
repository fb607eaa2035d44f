//! The page's API on a real API server: real tokens, real rights, a real stream.

use std::time::Duration;

use http::{Method, Request};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Api, Client, Config, api::PostParams};
use machinist_api::{Machine, MachineMaintenance, MaintenancePolicy};
use machinist_testbed::{cloud::model::ChangedBy, manifests::apply};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::{
    arena::{Arena, run},
    seen::Subject,
};

/// A new account's token.
pub async fn token(arena: &Arena, account: &str) -> String {
    arena.create::<ServiceAccount>(json!({"metadata": {"name": account}})).await;
    let accounts: Api<ServiceAccount> = arena.api();
    let request = TokenRequest { spec: TokenRequestSpec::default(), ..TokenRequest::default() };
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await;
    answer.unwrap().status.unwrap().token
}

/// What the shipped roles let these accounts do.
pub async fn bind(arena: &Arena, role: &str, accounts: &[&str]) {
    let shipped = include_str!("../../../../deploy/kustomize/components/page/page.yaml");
    let objects: Vec<Value> = serde_saphyr::from_multiple(shipped).unwrap();
    let mut shipped =
        objects.into_iter().find(|object| object["metadata"]["name"] == role).unwrap();
    let name = format!("{}-{role}", arena.name);
    shipped["metadata"] = json!({"name": name});
    apply(&arena.client, shipped).await.unwrap();
    let subjects: Vec<Value> = accounts
        .iter()
        .map(|account| json!({"kind": "ServiceAccount", "name": account, "namespace": arena.name}))
        .collect();
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": subjects,
    });
    apply(&arena.client, binding).await.unwrap();
}

pub struct Page {
    address: String,
}

impl Page {
    /// The page at `http://HOST:PORT/`, or at `HOST:PORT`.
    pub fn at(address: &str) -> Self {
        let address = address.strip_prefix("http://").unwrap_or(address);
        Self { address: address.trim_end_matches('/').to_owned() }
    }

    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        token: Option<&str>,
        content: Option<Value>,
    ) -> Result<Value, u16> {
        let mut config = Config::new(format!("http://{}", self.address).parse().unwrap());
        config.default_retry = false;
        config.connect_timeout = Some(Duration::from_secs(10));
        config.auth_info.token = token.map(|token| token.to_owned().into());
        let client = Client::try_from(config).unwrap();
        let mut request = Request::builder().method(method).uri(format!("/api/v1/{path}"));
        let body = content.map(|content| content.to_string().into_bytes()).unwrap_or_default();
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        // Whole answers: kube would read a refusal as one of the API server's.
        let response = client.send(request.body(body.into()).unwrap()).await.unwrap();
        let code = response.status();
        let text = response.into_body().collect_bytes().await.unwrap();
        match code.is_success() {
            true => Ok(serde_json::from_slice(&text).unwrap()),
            false => Err(code.as_u16()),
        }
    }

    pub async fn get(&self, path: &str, token: &str) -> Result<Value, u16> {
        self.ask(Method::GET, path, Some(token), None).await
    }

    pub async fn post(&self, path: &str, token: &str, content: Value) -> Result<Value, u16> {
        self.ask(Method::POST, path, Some(token), Some(content)).await
    }

    /// Listens from a version on until the stream says so.
    async fn listen_until(&self, token: &str, version: &str, words: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let request = format!(
            "GET /api/v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
             Last-Event-ID: {version}\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut heard = String::new();
        let mut buffer = vec![0; 64 * 1024];
        while !heard.contains(words) {
            let read = timeout(Duration::from_secs(180), stream.read(&mut buffer)).await;
            let count = read.expect("the stream goes on").unwrap();
            assert!(count > 0, "the stream ended: {heard}");
            heard.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        heard
    }
}

#[test]
fn the_page_shows_and_changes_with_the_rights_of_whoever_looks() {
    run(async {
        let arena = Arena::new("page").await;
        let file = arena.cluster.folder().join("page.address");
        let flags = [
            ("--page-address", "127.0.0.1:0"),
            ("--page-address-file", file.to_str().unwrap()),
            ("--page-plain-http", "true"),
            ("--page-writes", "true"),
        ];
        let _operator = arena.start_operator_with(&flags).await;
        let policy = json!({
            "apiVersion": "machinist.dev/v1alpha1", "kind": "MaintenancePolicy",
            "metadata": {"name": arena.name, "labels": {"machinist.dev/e2e": arena.name}},
            "spec": {
                "approval": "Manual",
                "selector": {"machines": {"matchLabels": {
                    "machine.openshift.io/cluster-api-cluster": arena.name,
                }}},
            },
        });
        let policy: MaintenancePolicy = serde_json::from_value(policy).unwrap();
        let policies = Api::<MaintenancePolicy>::all(arena.client.clone());
        let policy = policies.create(&PostParams::default(), &policy).await.unwrap();
        arena.create_set("pool", 2, json!({})).await;
        let machines = arena.wait_running(2).await;
        let [first, second] =
            <[Subject; 2]>::try_from(machines.iter().map(Subject::of).collect::<Vec<_>>())
                .ok()
                .unwrap();
        let address = arena
            .eventually("the address is told", async || {
                let text = std::fs::read_to_string(&file).ok()?;
                text.lines().next().map(str::to_owned)
            })
            .await;
        let page = Page::at(&address);
        let (nobody, reader, writer) = (
            token(&arena, "nobody").await,
            token(&arena, "reader").await,
            token(&arena, "writer").await,
        );
        bind(&arena, "machinist-page-reader", &["reader", "writer"]).await;
        bind(&arena, "machinist-page-writer", &["writer"]).await;

        // Nobody in particular, somebody without rights, somebody with.
        assert_eq!(page.ask(Method::GET, "fleet", None, None).await.unwrap_err(), 401);
        assert_eq!(page.get("fleet", "invented").await.unwrap_err(), 401);
        assert_eq!(page.get("fleet", &nobody).await.unwrap_err(), 403);
        let fleet = arena
            .eventually("the fleet is shown, and both machines are well", async || {
                let fleet = page.get("fleet", &reader).await.ok()?;
                (fleet["counts"]["byState"]["well"] == 2).then_some(fleet)
            })
            .await;
        assert_eq!(fleet["pools"][0]["name"], "pool");
        for path in ["me", "pools", "map", "machines", "plan", "calendar", "policies", "drift"] {
            page.get(path, &reader).await.unwrap_or_else(|code| panic!("{path}: {code}"));
        }
        let detail = page.get(&format!("machines/{}", first.machine), &reader).await.unwrap();
        let row = &detail["views"]["rows"][0];
        assert_eq!((&row["instance"], &row["node"]), (&json!(first.instance), &json!(first.node)));
        let timeline = page.get(&format!("machines/{}/timeline", first.machine), &reader).await;
        assert!(!timeline.unwrap()["entries"].as_array().unwrap().is_empty());

        // Somebody asks for maintenance, and it waits for an approval.
        let annotation = "machinist.dev/maintenance-requested";
        let wish = json!({"metadata": {"annotations": {annotation: "Reboot"}}});
        arena.patch::<Machine>(&second.machine, wish).await;
        let name = format!("mm-{}", second.machine);
        arena
            .eventually("the plan waits for an approval", async || {
                let plan = page.get("plan", &reader).await.ok()?;
                let entries = plan["entries"].as_array().unwrap();
                let is_it = |one: &&Value| one["machine"] == json!(second.machine);
                let entry = entries.iter().find(is_it)?;
                let has_record = arena.api::<MachineMaintenance>().get_opt(&name).await.unwrap();
                (entry["needsApproval"] == true && has_record.is_some()).then_some(())
            })
            .await;
        let approve = format!("machines/{}/approve", second.machine);
        // As long as the page has not seen the record, there is nothing to approve (409).
        arena
            .eventually("the record is seen, and a reader may not approve it", async || {
                (page.post(&approve, &reader, json!({})).await.err()? == 403).then_some(())
            })
            .await;
        let trial = json!({"policies": [{
            "apiVersion": "machinist.dev/v1alpha1", "kind": "MaintenancePolicy",
            "metadata": {"name": arena.name}, "spec": {"approval": "Automatic"},
        }]});
        let answer = page.post("what-if", &reader, trial).await.unwrap();
        assert_eq!(answer["changes"][0]["machine"], json!(second.machine), "{answer:#}");
        let stored = policies.get(&arena.name).await.unwrap();
        assert_eq!(stored.spec, policy.spec, "a trial saves nothing");
        let done = page.post(&approve, &writer, json!({})).await.unwrap();
        assert_eq!(done["changed"], true, "{done:#}");
        let approved = arena.api::<MachineMaintenance>().get(&name).await.unwrap();
        let managers = approved.metadata.managed_fields.unwrap_or_default();
        assert!(
            managers.iter().any(|one| one.manager.as_deref() == Some("machinist-page")),
            "{managers:?}"
        );
        // Who it was is in the words of a pause, and in the audit log of an approval.
        let pause = json!({"place": "machine", "name": first.machine, "reason": "busy"});
        page.post("pause", &writer, pause).await.unwrap();
        let paused = arena.machine(&first.machine).await;
        let why = &paused.metadata.annotations.unwrap()["machinist.dev/maintenance-paused"];
        let user = format!("system:serviceaccount:{}:writer", arena.name);
        assert!(why.starts_with(&format!("busy (by {user} at ")), "{why}");

        // A stopped instance is told of.
        let version = page.get("fleet", &reader).await.unwrap()["version"].clone();
        arena.cluster.cloud().stop(&first.instance, ChangedBy::User).unwrap();
        let words = "was stopped by a user";
        let heard = page.listen_until(&reader, version.as_str().unwrap(), words).await;
        assert!(heard.contains("event: change"), "{heard}");
        let key = arena.access_key();
        assert!(!heard.contains(&key) && !heard.contains("aws-cloud-credentials"), "{heard}");
    });
}
