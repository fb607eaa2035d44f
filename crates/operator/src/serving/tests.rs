//! Is the whole of it reachable: flags, certificate, question and answer over TLS?

use clap::Parser;
use machinist_core::{
    admission::Webhook,
    tls_profile::{Cipher, TlsProfile},
};
use serde_json::{Value, json};

use super::*;
use crate::{
    args::Args,
    engine::{supervisor::Supervisor, testing::FakeServer},
    testing::{SECRETS, stores},
    tls::testing::Connected,
};

fn args(flags: &[&str]) -> ServingArgs {
    Args::try_parse_from(["x"].iter().chain(flags)).unwrap().serving
}

#[test]
fn flags_decide_what_is_spoken_and_only_if_they_are_given() {
    assert_eq!(flags(&args(&[])), None);
    let chosen = flags(&args(&["--tls-min-version=VersionTLS13"])).unwrap();
    assert_eq!(chosen.profile, TlsProfile::modern());
    let names = "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,AES128-SHA";
    let chosen = flags(&args(&[names])).unwrap();
    assert_eq!(chosen.profile.cipher_suites, [Cipher::EcdheRsaAes128Gcm]);
    let fixed = TlsSettings::new(Some(chosen.clone()));
    fixed.follow(Chosen { profile: TlsProfile::modern(), remarks: Vec::new() });
    assert_eq!(*fixed.get(), chosen.profile);
    Args::try_parse_from(["x", "--tls-min-version=1.2"]).unwrap_err();
}

#[test]
fn webhooks_are_served_on_the_originals_port_unless_switched_off() {
    let default = args(&[]);
    assert!(default.webhooks && default.http_metrics);
    assert_eq!(default.webhook_address.port(), 8443);
    assert!(!args(&["--webhooks=false"]).webhooks);
    assert!(!args(&["--http-metrics=false"]).http_metrics);
}

#[test]
fn the_certificate_stands_for_the_services_and_this_host() {
    let names = names("ns");
    for name in [
        "machine-api-operator-webhook.ns.svc",
        "machine-api-operator-webhook.ns.svc.cluster.local",
        "machine-api-controllers.ns.svc",
        "127.0.0.1",
        "localhost",
    ] {
        assert!(names.contains(&name.to_owned()), "{name}");
    }
}

#[tokio::test]
async fn a_question_is_answered_over_tls_with_a_certificate_of_our_own() {
    let (api_server, env, metrics) = (FakeServer::new(), Env::system().unwrap(), Metrics::new());
    let (client, supervisor, stores) = (api_server.client(), Supervisor::new(), stores());
    stores.infrastructures.mark_synced();
    let spawner = supervisor.spawner();
    let parts =
        Parts { client: &client, namespace: "ns", env: &env, metrics: &metrics, spawner: &spawner };
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("address");
    let args = args(&[
        "--webhook-address=127.0.0.1:0",
        &format!("--webhook-address-file={}", file.display()),
        "--metrics-tls-address=127.0.0.1:0",
    ]);
    let page = PageArgs { page_address: "127.0.0.1:0".parse().ok(), ..PageArgs::default() };
    let servers = TlsServers::bind(&args, &page, parts).await.unwrap();
    let Some(PageServer::Tls(page_server, _)) = &servers.page else { panic!("not over TLS") };
    let page_address = page_server.address;
    let address = servers.webhook_address().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{address}\n"));
    let mut bundle = servers.ca_bundle.clone();
    let (metrics_address, readiness) =
        (servers.metrics.as_ref().unwrap().0.address, Readiness::default());
    let api_servers = &stores.openshift.api_servers;
    let region = Some("r-1".to_owned());
    let shown = || Router::new().route("/", axum::routing::get(async || "the page"));
    servers.start(parts, &readiness, api_servers, &stores.infrastructures, region, shown);

    let authorities = loop {
        match bundle.get() {
            Authorities::Bundle(pem) => break String::from_utf8(pem.to_vec()).unwrap(),
            _ => bundle.changed().await,
        }
    };
    // Nobody is answered before it is known what the cluster wants to be spoken.
    assert_eq!(readiness.missing(), ["the TLS profile of the cluster is known"]);
    let mut early = std::pin::pin!(Connected::to(address, &authorities));
    for _ in 0..1000 {
        tokio::select! {
            biased;
            _ = &mut early => panic!("answered"),
            () = tokio::task::yield_now() => {}
        }
    }
    api_servers.mark_synced();
    let mut webhook = early.await.unwrap();
    assert_eq!(readiness.missing(), Vec::<String>::new());
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": "CREATE", "namespace": "ns",
            "object": { "spec": { "providerSpec": { "value": { "kind": "AWSMachineProviderConfig" } } } },
        },
    });
    let head = format!("POST {} HTTP/1.1\r\nhost: x\r\n", Webhook::DefaultMachine.path());
    let (status, body) = webhook.ask(&head, review.to_string().as_bytes()).await.unwrap();
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 200);
    assert_eq!(answer["response"]["uid"], "u-1");
    assert_eq!(answer["response"]["patchType"], "JSONPatch");

    // The metrics share the certificate, and are for nobody without a token.
    let mut scraper = Connected::to(metrics_address, &authorities).await.unwrap();
    assert_eq!(scraper.get("/metrics").await.unwrap().0, 401);
    let mut reader = Connected::to(page_address, &authorities).await.unwrap();
    assert_eq!(reader.get("/").await.unwrap(), (200, "the page".to_owned()));
    assert!(
        api_server
            .lock()
            .objects
            .contains_key(&(SECRETS.to_owned(), crate::tls::self_signed::SECRET.to_owned()))
    );
}
