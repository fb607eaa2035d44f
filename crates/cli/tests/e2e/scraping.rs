//! The metrics over TLS are for those whose token may get them.

use std::time::Duration;

use http::Request;
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Api, Client, Config, Error, api::PostParams};
use machinist_testbed::manifests::apply;
use serde_json::json;

use crate::arena::{Arena, run};

/// A new account's token.
async fn token(arena: &Arena, account: &str) -> String {
    arena.create::<ServiceAccount>(json!({"metadata": {"name": account}})).await;
    let accounts: Api<ServiceAccount> = arena.api();
    let request = TokenRequest { spec: TokenRequestSpec::default(), ..TokenRequest::default() };
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await;
    answer.unwrap().status.unwrap().token
}

/// The metrics, or the code with which they are refused.
async fn scrape(address: &str, token: Option<&str>) -> Result<String, u16> {
    let mut config = Config::new(format!("https://{address}").parse().unwrap());
    // The certificate is one of the operator's own making.
    config.accept_invalid_certs = true;
    config.default_retry = false;
    config.connect_timeout = Some(Duration::from_secs(10));
    config.auth_info.token = token.map(|token| token.to_owned().into());
    let client = Client::try_from(config).unwrap();
    let request = Request::get("/metrics").body(Vec::new()).unwrap();
    match client.request_text(request).await {
        Ok(text) => Ok(text),
        Err(Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn metrics_over_tls_are_shown_to_those_who_may_see_them() {
    run(async {
        let arena = Arena::new("scraping").await;
        let file = arena.cluster.folder().join("scraping.address");
        let flags = [("--metrics-tls-address-file", file.to_str().unwrap())];
        let _operator = arena.start_operator_with(&flags).await;
        let address = arena
            .eventually("the address is told", async || {
                let text = std::fs::read_to_string(&file).ok()?;
                text.lines().next().map(str::to_owned)
            })
            .await;
        let (prometheus, stranger) =
            (token(&arena, "prometheus").await, token(&arena, "stranger").await);
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "e2e-scraping"},
            "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        });
        apply(&arena.client, role).await.unwrap();
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "e2e-scraping"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "e2e-scraping",
            },
            "subjects": [
                {"kind": "ServiceAccount", "name": "prometheus", "namespace": arena.name},
            ],
        });
        apply(&arena.client, binding).await.unwrap();
        let shown = arena
            .eventually("the metrics are shown", async || {
                scrape(&address, Some(&prometheus)).await.ok()
            })
            .await;
        assert!(shown.contains("mapi_mao_collector_up"), "{shown}");
        assert_eq!(scrape(&address, None).await, Err(401));
        assert_eq!(scrape(&address, Some("invented")).await, Err(401));
        assert_eq!(scrape(&address, Some(&stranger)).await, Err(403));
    });
}
