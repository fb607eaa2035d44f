//! Are the metrics shown to those who may see them, and to nobody else, whatever the API server does?

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::body::{Body, to_bytes};
use http::{Request, Response};
use serde_json::{Value, json};
use tower::Service;

use super::*;
use crate::{client, engine::env::Env, testing::env};

/// An API server that knows three tokens, and counts what it is asked.
fn api_server(asked: &Arc<AtomicUsize>) -> kube::Client {
    let asked = Arc::clone(asked);
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let asked = Arc::clone(&asked);
        async move {
            asked.fetch_add(1, Ordering::Relaxed);
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect_bytes().await.unwrap();
            Ok::<_, Infallible>(answer_of_api_server(&path, serde_json::from_slice(&body).unwrap()))
        }
    });
    client::with_service(service, "ns", &Metrics::new())
}

fn answer_of_api_server(path: &str, mut review: Value) -> Response<Body> {
    let spec = &review["spec"];
    let status = match path.rsplit('/').next().unwrap() {
        "tokenreviews" => match spec["token"].as_str().unwrap() {
            "broken" => return Response::builder().status(500).body(Body::from("{}")).unwrap(),
            token @ ("prometheus" | "peer" | "somebody") => {
                json!({ "authenticated": true, "user": { "username": token, "groups": ["g"] } })
            }
            _ => json!({ "authenticated": false, "error": "invalid bearer token" }),
        },
        "subjectaccessreviews" => {
            let path = json!({ "path": "/metrics", "verb": "get" });
            let part = json!({
                "namespace": "ns", "verb": "get", "version": "v1", "resource": "namespace",
                "subresource": "metrics",
            });
            assert_eq!(spec["groups"], json!(["g"]));
            let allowed = match spec["user"].as_str().unwrap() {
                "prometheus" => spec["nonResourceAttributes"] == path,
                "peer" => spec["resourceAttributes"] == part,
                _ => false,
            };
            json!({ "allowed": allowed })
        }
        other => panic!("nobody asks for {other}"),
    };
    review["status"] = status;
    Response::new(Body::from(review.to_string()))
}

async fn get(router: &Router, token: &str) -> (u16, String) {
    let mut request = Request::get("/metrics");
    if !token.is_empty() {
        request = request.header(AUTHORIZATION, token);
    }
    let request = request.body(Body::empty()).unwrap();
    let response = router.clone().call(request).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn guarded(env: &Env) -> (Router, Arc<AtomicUsize>, Metrics) {
    let (asked, metrics) = (Arc::default(), Metrics::new());
    let access = Access::new(&api_server(&asked), "ns", env);
    (router(access, &metrics), asked, metrics)
}

#[tokio::test(start_paused = true)]
async fn only_a_token_with_the_right_reads_the_metrics() {
    let (router, _, metrics) = guarded(&env());
    let long = format!("Bearer {}", "x".repeat(TOKEN_BYTES_MAX + 1));
    let table = [
        ("", 401),
        ("Basic cHJvbWV0aGV1cw==", 401),
        ("Bearer", 401),
        ("Bearer  ", 401),
        (long.as_str(), 401),
        ("Bearer stranger", 401),
        ("Bearer somebody", 403),
        ("Bearer prometheus", 200),
        ("bearer peer", 200),
        ("Bearer broken", 503),
    ];
    for (token, expected) in table {
        let (status, body) = get(&router, token).await;
        assert_eq!(status, expected, "{token}");
        assert_eq!(body.contains("machinist_"), expected == 200, "{token}: {body}");
    }
    let text = metrics.encode().unwrap();
    for line in [
        r#"machinist_metrics_access_total{result="unauthenticated"} 6"#,
        r#"machinist_metrics_access_total{result="unknown"} 1"#,
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_kept_for_a_while_and_a_failure_is_not() {
    let env = env();
    let (router, asked, _) = guarded(&env);
    for _ in 0..3 {
        assert_eq!(get(&router, "Bearer prometheus").await.0, 200);
    }
    assert_eq!(asked.swap(0, Ordering::Relaxed), 2);
    env.sleep(std::time::Duration::from_secs(61)).await;
    get(&router, "Bearer prometheus").await;
    assert_eq!(asked.swap(0, Ordering::Relaxed), 2);
    for _ in 0..2 {
        assert_eq!(get(&router, "Bearer broken").await.0, 503);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn strangers_do_not_push_out_those_who_may() {
    let (router, asked, _) = guarded(&env());
    get(&router, "Bearer prometheus").await;
    for number in 0..2000 {
        get(&router, &format!("Bearer stranger-{number}")).await;
    }
    asked.store(0, Ordering::Relaxed);
    assert_eq!(get(&router, "Bearer prometheus").await.0, 200);
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}
