//! How is it certain that a command only reads? Its client refuses every request that is not a GET or an
//! access review, which is a question although it is sent by POST and is stored nowhere, whatever the command
//! is asked to do.

use std::task::{Context, Poll};

use futures::{FutureExt, TryFutureExt, future::BoxFuture};
use http::{Method, Request};
use tower::{BoxError, Layer, Service};

/// Puts a [`Reader`] before whatever sends requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnlyReads;

impl<Inner> Layer<Inner> for OnlyReads {
    type Service = Reader<Inner>;

    fn layer(&self, inner: Inner) -> Reader<Inner> {
        Reader { inner }
    }
}

/// Sends what reads, and refuses the rest before it leaves this process.
#[derive(Clone, Debug)]
pub struct Reader<Inner> {
    inner: Inner,
}

/// A request that would have changed something.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("this command only reads, and does not send {method} {path}")]
pub struct Refused {
    method: Method,
    path: String,
}

impl<Inner, Body> Service<Request<Body>> for Reader<Inner>
where
    Inner: Service<Request<Body>>,
    Inner::Error: Into<BoxError> + 'static,
    Inner::Future: Send + 'static,
    Inner::Response: Send + 'static,
{
    type Response = Inner::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Inner::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if !is_question(request.method(), request.uri().path()) {
            let refused =
                Refused { method: request.method().clone(), path: request.uri().path().to_owned() };
            return std::future::ready(Err(refused.into())).boxed();
        }
        self.inner.call(request).map_err(Into::into).boxed()
    }
}

fn is_question(method: &Method, path: &str) -> bool {
    const REVIEWS: [&str; 2] = ["subjectaccessreviews", "selfsubjectaccessreviews"];
    let review = path.strip_prefix("/apis/authorization.k8s.io/v1/");
    let is_review = review.is_some_and(|kind| REVIEWS.contains(&kind));
    method == Method::GET || (method == Method::POST && is_review)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::Response;
    use k8s_openapi::api::core::v1::Node;
    use kube::{
        Api, Client,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
        client::{Body, ClientBuilder},
    };
    use serde_json::json;

    use super::*;

    /// A cluster that answers everything with an empty list, and the requests that reached it.
    fn cluster() -> (Client, Arc<Mutex<Vec<String>>>) {
        let log = Arc::new(Mutex::new(Vec::new()));
        let seen = log.clone();
        let answering = tower::service_fn(move |request: Request<Body>| {
            seen.lock().unwrap().push(format!("{} {}", request.method(), request.uri().path()));
            let text =
                json!({ "apiVersion": "v1", "kind": "NodeList", "metadata": {}, "items": [] });
            std::future::ready(Ok::<_, BoxError>(Response::new(Body::from(
                text.to_string().into_bytes(),
            ))))
        });
        (ClientBuilder::new(answering, "default").with_layer(&OnlyReads).build(), log)
    }

    #[tokio::test]
    async fn what_reads_is_sent() {
        let (client, log) = cluster();
        let nodes = Api::<Node>::all(client);
        assert!(nodes.list(&ListParams::default()).await.unwrap().items.is_empty());
        assert_eq!(*log.lock().unwrap(), ["GET /api/v1/nodes"]);
    }

    #[test]
    fn an_access_review_is_a_question_and_nothing_like_it_is() {
        let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        assert!(is_question(&Method::POST, reviews));
        assert!(is_question(
            &Method::POST,
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        ));
        assert!(!is_question(&Method::DELETE, reviews));
        assert!(!is_question(&Method::POST, &format!("{reviews}/x")));
        assert!(!is_question(&Method::POST, "/apis/authorization.k8s.io/v1/other"));
        assert!(!is_question(&Method::POST, "/api/v1/namespaces/ns/serviceaccounts/a/token"));
    }

    #[tokio::test]
    async fn what_writes_never_leaves_the_process() {
        let (client, log) = cluster();
        let nodes = Api::<Node>::all(client);
        let patch = Patch::Merge(json!({}));
        let node = Node::default();
        let refusals = [
            nodes.create(&PostParams::default(), &node).await.map(|_| ()).unwrap_err(),
            nodes.replace("n", &PostParams::default(), &node).await.map(|_| ()).unwrap_err(),
            nodes.patch("n", &PatchParams::default(), &patch).await.map(|_| ()).unwrap_err(),
            nodes.patch_status("n", &PatchParams::default(), &patch).await.map(|_| ()).unwrap_err(),
            nodes.delete("n", &DeleteParams::default()).await.map(|_| ()).unwrap_err(),
            nodes
                .delete_collection(&DeleteParams::default(), &ListParams::default())
                .await
                .map(|_| ())
                .unwrap_err(),
        ];
        for refusal in refusals {
            let kube::Error::Service(cause) = refusal else { panic!("{refusal}") };
            assert!(cause.downcast_ref::<Refused>().is_some(), "{cause}");
        }
        assert!(log.lock().unwrap().is_empty());
    }
}
