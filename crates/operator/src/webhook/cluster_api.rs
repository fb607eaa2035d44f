//! How is the API server answered that asks about objects of Cluster API?
//!
//! At the paths of Cluster API's own webhooks, so that a configuration or a CRD that points there can point here. Nothing but
//! the object itself is needed for an answer.

use axum::{
    Router,
    body::Bytes,
    response::{IntoResponse, Response},
    routing::post,
};
use http::{StatusCode, header::CONTENT_TYPE};
use machinist_core::cluster_api::admission::{
    Kind,
    review::{NoReview, Purpose, answer, converted},
};
use serde_json::Value;

/// Adds the paths of all kinds, and that of conversion.
pub fn routes(mut router: Router) -> Router {
    for kind in Kind::ALL {
        let asked =
            [(kind.mutate_path(), Purpose::Default), (kind.validate_path(), Purpose::Validate)];
        for (path, purpose) in asked {
            let handler = move |body: Bytes| async move { respond(answer(kind, purpose, &body)) };
            router = router.route(&path, post(handler));
        }
    }
    // Which version of a provider's kind is served is not asked for here: the usual one is named, and only the group is kept.
    let convert = |body: Bytes| async move { respond(converted(&body, &|_| None)) };
    router.route("/convert", post(convert))
}

fn respond(answer: Result<Value, NoReview>) -> Response {
    match answer {
        Ok(review) => ([(CONTENT_TYPE, "application/json")], review.to_string()).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::Request;
    use serde_json::json;
    use tower::ServiceExt;

    use super::*;

    async fn ask(path: &str, body: &Value) -> (StatusCode, Value) {
        let request = Request::post(path).body(Body::from(body.to_string())).unwrap();
        let response = routes(Router::new()).oneshot(request).await.unwrap();
        let status = response.status();
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    #[tokio::test]
    async fn questions_are_answered_at_the_paths_of_cluster_api() {
        let machine = json!({ "metadata": { "name": "m" }, "spec": { "clusterName": "c1" } });
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": { "uid": "u", "operation": "CREATE", "object": machine },
        });
        let (status, answer) = ask("/validate-cluster-x-k8s-io-v1beta2-machine", &review).await;
        assert_eq!((status, &answer["response"]["allowed"]), (StatusCode::OK, &json!(false)));
        let (_, answer) = ask("/mutate-cluster-x-k8s-io-v1beta2-machine", &review).await;
        assert_eq!(answer["response"]["patchType"], "JSONPatch");
        let (status, _) = ask("/convert", &review).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    }
}
