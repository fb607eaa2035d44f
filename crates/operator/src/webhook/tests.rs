//! Is every request answered, whatever is in it, and every question by the rules?

mod goldens;
mod properties;

use axum::body::{Body, to_bytes};
use http::Request;
use machinist_api::openshift_config::Infrastructure;
use serde_json::{Value, json};
use tower::Service;

use super::*;
use crate::{
    engine::{
        store::Store,
        testing::{FakeServer, Fault},
    },
    testing::{SECRETS, env, read},
};

const VALIDATE: &str = "/validate-machine-openshift-io-v1beta1-machine";
const MUTATE: &str = "/mutate-machine-openshift-io-v1beta1-machine";

/// The webhooks of an OpenShift cluster on AWS.
struct World {
    server: FakeServer,
    infrastructures: Store<Infrastructure>,
    metrics: Metrics,
    router: Router,
}

impl World {
    fn new() -> Self {
        let (server, metrics) = (FakeServer::new(), Metrics::new());
        let infrastructures = Store::builder().build();
        infrastructures.apply_written(infrastructure("cluster-x7k2p", "us-east-1"));
        infrastructures.mark_synced();
        let cluster = Cluster {
            client: server.client(),
            infrastructures: infrastructures.clone(),
            namespace: "ns".to_owned(),
            region: None,
        };
        let router = router(cluster, &env(), &metrics);
        Self { server, infrastructures, metrics, router }
    }

    async fn post(&self, path: &str, body: impl Into<Body>) -> (u16, String) {
        post(&self.router, path, body).await
    }

    async fn answer(&self, path: &str, review: &Value) -> Value {
        let (status, body) = self.post(path, review.to_string()).await;
        assert_eq!(status, 200, "{body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["response"]["uid"], review["request"]["uid"]);
        answer["response"].clone()
    }
}

async fn post(router: &Router, path: &str, body: impl Into<Body>) -> (u16, String) {
    let request = Request::post(path).body(body.into()).unwrap();
    let response = router.clone().call(request).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn infrastructure(name: &str, region: &str) -> Infrastructure {
    read(json!({
        "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure",
        "metadata": { "name": "cluster", "uid": "u", "resourceVersion": format!("{}", name.len()) },
        "spec": {},
        "status": {
            "infrastructureName": name,
            "platformStatus": { "type": "AWS", "aws": { "region": region } },
        },
    }))
}

fn machine(provider_spec: Value) -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": { "name": "worker-0", "namespace": "ns" },
        "spec": { "providerSpec": { "value": provider_spec } },
    })
}

fn whole_spec() -> Value {
    json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "AWSMachineProviderConfig",
        "ami": { "id": "ami-1" }, "instanceType": "m6i.large",
        "placement": { "region": "us-east-1" }, "subnet": { "id": "subnet-1" },
        "iamInstanceProfile": { "id": "worker" },
        "userDataSecret": { "name": "worker-user-data" }, "credentialsSecret": { "name": "cloud" },
    })
}

fn creation(object: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": { "uid": "u-1", "operation": "CREATE", "namespace": "ns", "object": object },
    })
}

#[tokio::test(start_paused = true)]
async fn what_is_filled_in_follows_the_infrastructure() {
    let world = World::new();
    let review = creation(&machine(json!({ "kind": "AWSMachineProviderConfig" })));
    let patch = |answer: &Value| {
        use k8s_openapi::ByteString;
        let bytes: ByteString = serde_json::from_value(answer["patch"].clone()).unwrap();
        String::from_utf8(bytes.0).unwrap()
    };
    let first = patch(&world.answer(MUTATE, &review).await);
    assert!(first.contains("cluster-x7k2p") && first.contains("us-east-1"), "{first}");
    world.infrastructures.apply_written(infrastructure("another-cluster-x7k2p", "eu-west-1"));
    let second = patch(&world.answer(MUTATE, &review).await);
    assert!(second.contains("another-cluster") && second.contains("eu-west-1"), "{second}");
    let text = world.metrics.encode().unwrap();
    for line in [
        format!("machinist_admission_reviews_total{{webhook=\"{MUTATE}\",result=\"patched\"}} 2"),
        format!("controller_runtime_webhook_requests_total{{webhook=\"{MUTATE}\",code=\"200\"}} 2"),
        format!("controller_runtime_webhook_requests_in_flight{{webhook=\"{MUTATE}\"}} 0"),
        format!("controller_runtime_webhook_latency_seconds_count{{webhook=\"{MUTATE}\"}} 2"),
    ] {
        assert!(text.contains(&line), "{line} in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_secret_is_warned_about_and_an_unknown_one_is_not() {
    let world = World::new();
    let review = creation(&machine(whole_spec()));
    let warnings = |answer: &Value| answer.get("warnings").cloned().unwrap_or_default().to_string();
    let missing = warnings(&world.answer(VALIDATE, &review).await);
    assert!(missing.contains("not found") && missing.contains("cloud"), "{missing}");
    world.server.put(SECRETS, json!({ "metadata": { "name": "cloud", "namespace": "ns" } }));
    assert_eq!(warnings(&world.answer(VALIDATE, &review).await), "null");

    world.server.fail(|_, _| Fault::Code(403));
    let forbidden = warnings(&world.answer(VALIDATE, &review).await);
    assert!(forbidden.contains("cloud"), "{forbidden}");
    for fault in [Fault::Code(500), Fault::Silence] {
        world.server.fail(move |_, _| fault);
        assert_eq!(warnings(&world.answer(VALIDATE, &review).await), "null");
    }
    // Nobody looks elsewhere, and no name leads elsewhere.
    world.server.lock().log.clear();
    let mut elsewhere = review.clone();
    elsewhere["request"]["namespace"] = json!("kube-system");
    assert_eq!(warnings(&world.answer(VALIDATE, &elsewhere).await), "null");
    let mut spec = whole_spec();
    spec["credentialsSecret"]["name"] = json!("../../../kube-system/secrets/x");
    let odd = warnings(&world.answer(VALIDATE, &creation(&machine(spec))).await);
    assert!(odd.contains("not found"), "{odd}");
    assert_eq!(world.server.lock().log, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn many_questions_at_once_do_not_flood_the_api_server_and_are_all_answered() {
    let world = World::new();
    world.server.fail(|_, _| Fault::Silence);
    let review = creation(&machine(whole_spec())).to_string();
    let ask = || async {
        let request = Request::post(VALIDATE).header(CONTENT_LENGTH, review.len());
        let request = request.body(Body::from(review.clone())).unwrap();
        world.router.clone().call(request).await.unwrap().status()
    };
    let mut asked = std::pin::pin!(futures::future::join_all((0..100).map(|_| ask())));
    let answers = tokio::select! {
        biased;
        early = &mut asked => early,
        () = tokio::time::sleep(Duration::from_secs(1)) => {
            assert_eq!(world.server.lock().log.len(), LOOKS_AT_ONCE);
            asked.await
        }
    };
    assert!(answers.iter().all(|status| *status == StatusCode::OK), "{answers:?}");
    // Those who wait are not counted for ever.
    world.server.fail(|_, _| Fault::None);
    let after = world.answer(VALIDATE, &creation(&machine(whole_spec()))).await;
    assert!(after["warnings"].to_string().contains("not found"), "{after}");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_question_is_refused_with_a_reason_and_the_next_one_is_answered() {
    let world = World::new();
    let nested = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let in_object = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u-1","operation":"CREATE","object":{{"spec":{nested}}}}}}}"#
    );
    let wrong_kind = r#"{"apiVersion":"v1","kind":"Pod"}"#.as_bytes().to_vec();
    let table: Vec<(Vec<u8>, u16, &str)> = vec![
        (Vec::new(), 400, "no AdmissionReview"),
        (b"{".to_vec(), 400, "no AdmissionReview"),
        (vec![0xff, 0xfe, b'{'], 400, "not UTF-8"),
        (wrong_kind, 400, "expected AdmissionReview"),
        (nested.into_bytes(), 400, "no AdmissionReview"),
        (vec![b' '; REVIEW_BYTES_MAX + 1], 413, "more than 8388608 bytes"),
    ];
    for (body, status, words) in table {
        let beginning = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
        let (answered, text) = world.post(VALIDATE, body).await;
        assert_eq!(answered, status, "{beginning}: {text}");
        assert!(text.contains(words) && text.len() < 500, "{beginning}: {text}");
    }
    // Nested too deeply inside of a question is a refusal of that object.
    let (status, text) = world.post(VALIDATE, in_object).await;
    assert!(status == 400 || text.contains(r#""allowed":false"#), "{status}: {text}");
    assert_eq!(world.answer(VALIDATE, &creation(&machine(whole_spec()))).await["allowed"], true);
    assert_eq!(world.post("/another", "").await.0, 404);
    let request = Request::get(VALIDATE).body(Body::empty()).unwrap();
    let response = world.router.clone().call(request).await.unwrap();
    assert_eq!(response.status().as_u16(), 405);
}

#[tokio::test(start_paused = true)]
async fn one_that_says_it_is_too_large_is_refused_before_it_is_read() {
    let world = World::new();
    let never = futures::stream::pending::<Result<Bytes, std::convert::Infallible>>();
    let request = Request::post(VALIDATE)
        .header(CONTENT_LENGTH, REVIEW_BYTES_MAX + 1)
        .body(Body::from_stream(never))
        .unwrap();
    let response = world.router.clone().call(request).await.unwrap();
    assert_eq!(response.status().as_u16(), 413);
}

#[tokio::test(start_paused = true)]
async fn those_who_never_end_a_large_body_do_not_hold_up_small_ones() {
    let world = World::new();
    let never = || {
        let body = futures::stream::pending::<Result<Bytes, std::convert::Infallible>>();
        world.post(VALIDATE, Body::from_stream(body))
    };
    let slow = futures::future::join_all((0..50).map(|_| never()));
    let review = creation(&machine(whole_spec())).to_string();
    let quick = async {
        let request = Request::post(VALIDATE)
            .header(CONTENT_LENGTH, review.len())
            .body(Body::from(review.clone()))
            .unwrap();
        let status = world.router.clone().call(request).await.unwrap().status().as_u16();
        (status, world.metrics.encode().unwrap())
    };
    let (slow, (status, while_waiting)) = tokio::join!(slow, quick);
    assert_eq!(status, 200);
    assert!(!while_waiting.contains("result=\"timeout\""), "{while_waiting}");
    assert!(slow.iter().all(|(status, _)| *status == 408), "{slow:?}");
}

#[tokio::test(start_paused = true)]
async fn as_long_as_the_cluster_is_not_known_nothing_is_guessed() {
    let server = FakeServer::new();
    let cluster = Cluster {
        client: server.client(),
        infrastructures: Store::builder().build(),
        namespace: "ns".to_owned(),
        region: None,
    };
    let router = router(cluster, &env(), &Metrics::new());
    let review = creation(&machine(whole_spec())).to_string();
    let (status, text) = post(&router, MUTATE, review).await;
    assert_eq!((status, text.as_str()), (503, "the cluster is not known yet\n"));
}
