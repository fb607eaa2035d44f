//! Do our servers show the newest certificate, speak what they are told to, and stand up to clients
//! that are slow, silent or many?

use std::{fs, path::Path, sync::Arc, time::Duration};

use axum::{Router, routing::get};
use machinist_core::tls_profile::{Chosen, TlsProfile};
use rustls::version::TLS12;
use tokio::{net::TcpStream, sync::Notify};

use super::{
    files::{AUTHORITIES_FILE, CERTIFICATE_FILE, Folder, KEY_FILE},
    self_signed::make::Made,
    server::Limits,
    testing::{Connected, PATIENCE, Running, certificate},
    trust::{Authorities, CaBundleSource},
};
use crate::engine::env::Env;

fn hello() -> Router {
    Router::new().route("/", get(async || "hello"))
}

fn write(folder: &Path, made: &Made) {
    fs::write(folder.join(CERTIFICATE_FILE), &made.certificate).unwrap();
    fs::write(folder.join(KEY_FILE), &made.key).unwrap();
}

/// Connects until it works: what is followed is seen at the next look.
async fn connected(running: &Running, made: &Made) -> Connected {
    let trying = async {
        loop {
            match Connected::to(running.address, &made.authority).await {
                Ok(connected) => return connected,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, trying).await.unwrap()
}

#[tokio::test]
async fn a_certificate_that_was_replaced_is_shown_to_new_connections_and_old_ones_go_on() {
    let running = Running::start(hello(), Limits::default()).await;
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let source = CaBundleSource::new();
    let bundle = source.bundle();
    let followed = Folder {
        server: "test",
        path: folder.to_owned(),
        keys: running.keys.clone(),
        bundle: Some(source),
        env: Env::system().unwrap(),
        metrics: running.metrics.clone(),
    };
    running.supervisor.spawner().spawn("folder", followed.run());
    let (first, second) = (certificate(), certificate());
    // There is no certificate yet.
    Connected::to(running.address, &first.authority).await.err().unwrap();

    write(folder, &first);
    let mut old = connected(&running, &first).await;
    assert_eq!(old.get("/").await.unwrap(), (200, "hello".to_owned()));
    assert_eq!(bundle.get(), Authorities::ToldByOthers);

    // Half of a new pair changes nothing, and is told.
    fs::write(folder.join(CERTIFICATE_FILE), &second.certificate).unwrap();
    let told = async {
        let line = r#"machinist_certificate_faulty{server="test"} 1"#;
        while !running.metrics.encode().unwrap().contains(line) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, told).await.unwrap();
    connected(&running, &first).await;

    fs::write(folder.join(AUTHORITIES_FILE), &second.authority).unwrap();
    fs::write(folder.join(KEY_FILE), &second.key).unwrap();
    let mut new = connected(&running, &second).await;
    assert_eq!(new.get("/").await.unwrap().0, 200);
    assert_eq!(old.get("/").await.unwrap(), (200, "hello".to_owned()));
    Connected::to(running.address, &first.authority).await.err().unwrap();
    assert_eq!(bundle.get(), Authorities::Bundle(Arc::from(second.authority.as_bytes())));
    let metrics = running.metrics.encode().unwrap();
    assert!(metrics.contains("machinist_certificate_expiry_timestamp_seconds{server=\"test\"} "));
}

#[tokio::test]
async fn another_profile_holds_for_the_next_connection() {
    let running = Running::start(hello(), Limits::default()).await;
    let made = certificate();
    running.show(&made);
    let old_versions = [&TLS12];
    let old_client = || Connected::with_versions(running.address, &made.authority, &old_versions);
    assert_eq!(old_client().await.unwrap().get("/").await.unwrap().0, 200);

    let follow = |profile| running.settings.follow(Chosen { profile, remarks: Vec::new() });
    follow(TlsProfile::modern());
    old_client().await.err().unwrap();
    let mut newer = Connected::to(running.address, &made.authority).await.unwrap();
    assert_eq!(newer.get("/").await.unwrap().0, 200);
    assert!(
        running
            .metrics
            .encode()
            .unwrap()
            .contains("tls_handshake_failures_total{server=\"test\"} 1")
    );

    // One cipher that needs a key of another kind than ours leaves nothing to agree on.
    let mut profile = TlsProfile::default();
    profile.cipher_suites.retain(|cipher| cipher.openssl_name() == "ECDHE-RSA-AES128-GCM-SHA256");
    follow(profile);
    old_client().await.err().unwrap();
    follow(TlsProfile::default());
    assert_eq!(old_client().await.unwrap().get("/").await.unwrap().0, 200);
}

#[tokio::test]
async fn silent_clients_do_not_keep_others_out() {
    let limits = Limits { connections: 3, ..Limits::default() };
    let running = Running::start(hello(), limits).await;
    let made = certificate();
    running.show(&made);
    let mut silent = Vec::new();
    for _ in 0..10 {
        silent.push(TcpStream::connect(running.address).await.unwrap());
    }
    let mut client = connected(&running, &made).await;
    assert_eq!(client.get("/").await.unwrap().0, 200);
    // Whoever gets answers is not the one that has to go.
    for _ in 0..2 {
        silent.push(TcpStream::connect(running.address).await.unwrap());
        assert_eq!(client.get("/").await.unwrap().0, 200);
    }
    let metrics = running.metrics.encode().unwrap();
    assert!(metrics.contains("machinist_tls_connections_dropped_total{server=\"test\"} "));
}

#[tokio::test]
async fn a_client_that_does_not_end_its_headers_is_let_go() {
    let limits = Limits { headers: Duration::from_millis(200), ..Limits::default() };
    let running = Running::start(hello(), limits).await;
    let made = certificate();
    running.show(&made);
    let mut slow = Connected::to(running.address, &made.authority).await.unwrap();
    tokio::time::timeout(PATIENCE, slow.answer()).await.unwrap().unwrap_err();
}

#[tokio::test]
async fn a_panic_is_an_answer_and_not_the_end() {
    let router = hello().route("/panic", get(async || -> &'static str { panic!("as it should") }));
    let running = Running::start(router, Limits::default()).await;
    let made = certificate();
    running.show(&made);
    let mut client = Connected::to(running.address, &made.authority).await.unwrap();
    assert_eq!(client.get("/panic").await.unwrap().0, 500);
    assert_eq!(client.get("/").await.unwrap().0, 200);
}

#[tokio::test]
async fn what_is_under_way_is_answered_before_the_end() {
    let (begun, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (told, waited_for) = (Arc::clone(&begun), Arc::clone(&goes_on));
    let handler = move || async move {
        told.notify_one();
        waited_for.notified().await;
        "at last"
    };
    let running = Running::start(Router::new().route("/", get(handler)), Limits::default()).await;
    let made = certificate();
    running.show(&made);
    let mut client = Connected::to(running.address, &made.authority).await.unwrap();
    client.send("GET / HTTP/1.1\r\nhost: x\r\n", b"").await.unwrap();
    begun.notified().await;
    running.stopping.cancel();
    // Nobody else is let in any more.
    while TcpStream::connect(running.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    goes_on.notify_one();
    assert_eq!(client.answer().await.unwrap(), (200, "at last".to_owned()));
    client.get("/").await.unwrap_err();
}
