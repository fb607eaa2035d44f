//! Do all replicas serve with one certificate that clients trust at every moment, also while it is
//! replaced?

use jiff::SignedDuration;
use machinist_core::serving_certificate::read_all;
use serde_json::{Value, json};

use super::*;
use crate::{
    engine::testing::{FakeServer, Fault},
    testing::{SECRETS, env},
    tls::trust::CaBundle,
};

fn names() -> Vec<String> {
    ["webhook.ns.svc", "127.0.0.1"].map(str::to_owned).to_vec()
}

/// One replica.
fn replica(server: &FakeServer, env: &Env) -> (SelfSigned, CaBundle) {
    let own = SelfSigned::new(&server.client(), "ns", names(), "webhook", env, &Metrics::new());
    let bundle = own.bundle();
    (own, bundle)
}

fn stored(server: &FakeServer) -> Value {
    server.lock().objects[&(SECRETS.to_owned(), SECRET.to_owned())].clone()
}

fn writes(server: &FakeServer) -> usize {
    let log = &server.lock().log;
    log.iter().filter(|line| !line.starts_with("GET ")).count()
}

fn bundled(bundle: &CaBundle) -> String {
    match bundle.get() {
        Authorities::Bundle(pem) => String::from_utf8(pem.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn authorities(bundle: &CaBundle) -> usize {
    read_all(bundled(bundle).as_bytes()).unwrap().len()
}

#[tokio::test]
async fn the_first_replica_makes_it_and_the_second_reads_it() {
    let (server, env) = (FakeServer::new(), env());
    let (mut first, first_bundle) = replica(&server, &env);
    let (mut second, second_bundle) = replica(&server, &env);
    assert_eq!((first_bundle.get(), first_bundle.trust()), (Authorities::Pending, None));
    first.pass().await.unwrap();
    second.pass().await.unwrap();
    first.pass().await.unwrap();
    assert_eq!(writes(&server), 1);
    assert_eq!(bundled(&first_bundle), bundled(&second_bundle));
    assert_eq!(first.held, second.held);
    assert!(first.keys.are_there() && second.keys.are_there());
    let secret = stored(&server);
    assert_eq!(secret["type"], "kubernetes.io/tls");
    assert_eq!(secret["metadata"]["annotations"][annotation::SELF_SIGNED], "true");
}

#[tokio::test]
async fn who_comes_second_with_a_new_one_takes_the_first_ones() {
    let (server, env) = (FakeServer::new(), env());
    let (mut first, _) = replica(&server, &env);
    let (mut second, _) = replica(&server, &env);
    // The second has seen that there is none, and then the first was quicker.
    let made = second.wanted(None, env.now()).unwrap();
    first.pass().await.unwrap();
    assert!(!second.write(None, &made).await.unwrap());
    second.pass().await.unwrap();
    assert_eq!(first.held, second.held);
}

#[tokio::test]
async fn before_it_runs_out_clients_learn_of_the_next_one_first() {
    let (server, env) = (FakeServer::new(), env());
    let (mut first, bundle) = replica(&server, &env);
    let (mut second, second_bundle) = replica(&server, &env);
    first.pass().await.unwrap();
    let before = first.held.clone().unwrap();

    env.jump(SignedDuration::from_hours(280 * 24));
    first.pass().await.unwrap();
    second.pass().await.unwrap();
    let prepared = first.held.clone().unwrap();
    assert_eq!(prepared.pair().unwrap().certificate, before.pair().unwrap().certificate);
    assert_eq!((authorities(&bundle), authorities(&second_bundle)), (2, 2));
    assert_eq!(writes(&server), 2);

    env.jump(SignedDuration::from_hours(2));
    second.pass().await.unwrap();
    first.pass().await.unwrap();
    let promoted = first.held.clone().unwrap();
    assert_ne!(promoted.pair().unwrap().certificate, before.pair().unwrap().certificate);
    assert_eq!(second.held, first.held);
    assert_eq!((authorities(&bundle), writes(&server)), (2, 3));
    assert_eq!(stored(&server)["data"].get("next.crt"), None);

    // A year on, those that ran out are no longer trusted.
    env.jump(SignedDuration::from_hours(280 * 24));
    first.pass().await.unwrap();
    assert_eq!(authorities(&bundle), 2);
    assert!(!bundled(&bundle).contains(std::str::from_utf8(before.authorities()).unwrap().trim()));
}

#[tokio::test]
async fn one_that_ran_out_or_cannot_be_used_is_replaced_at_once() {
    let (server, env) = (FakeServer::new(), env());
    let (mut own, bundle) = replica(&server, &env);
    own.pass().await.unwrap();
    let first = bundled(&bundle);
    env.jump(SignedDuration::from_hours(400 * 24));
    own.pass().await.unwrap();
    let second = bundled(&bundle);
    assert_ne!(first, second);
    assert_eq!(authorities(&bundle), 1);

    for (key, bytes) in [("tls.key", "AAAA"), ("ca.crt", ""), ("tls.crt", "AAAA")] {
        let mut secret = stored(&server);
        secret["data"][key] = json!(bytes);
        server.put(SECRETS, secret);
        own.pass().await.unwrap();
        own.held.as_ref().unwrap().pair().unwrap();
        assert_ne!(stored(&server)["data"][key], json!(bytes), "{key}");
    }
}

#[tokio::test]
async fn a_secret_that_was_deleted_comes_back_as_it_was() {
    let (server, env) = (FakeServer::new(), env());
    let (mut own, bundle) = replica(&server, &env);
    own.pass().await.unwrap();
    let (before, trusted) = (stored(&server)["data"].clone(), bundled(&bundle));
    server.delete(SECRETS, SECRET);
    own.pass().await.unwrap();
    assert_eq!((stored(&server)["data"].clone(), bundled(&bundle)), (before, trusted));
}

#[tokio::test]
async fn a_secret_of_somebody_else_is_used_and_not_written() {
    let (server, env) = (FakeServer::new(), env());
    let (mut own, _) = replica(&server, &env);
    own.pass().await.unwrap();
    let mut secret = stored(&server);
    secret["metadata"]["annotations"] = json!({});
    secret["data"].as_object_mut().unwrap().remove("ca.crt");
    server.put(SECRETS, secret);
    let (mut other, bundle) = replica(&server, &env);
    // Its names are not ours: that is for its owner to put right.
    other.names = vec!["another.example".to_owned()];
    other.pass().await.unwrap();
    assert_eq!((bundle.get(), writes(&server)), (Authorities::ToldByOthers, 1));
    assert!(other.keys.are_there());

    // So is that it ran out; but nobody is shown it then.
    env.jump(SignedDuration::from_hours(400 * 24));
    for _ in 0..2 {
        let error = other.pass().await.unwrap_err().to_string();
        assert!(error.contains("ns/machine-api-operator-webhook-cert is good from"), "{error}");
        assert_eq!((other.keys.are_there(), writes(&server)), (false, 1));
    }
    // Its owner gave it up, so that one of our own is made.
    server.delete(SECRETS, SECRET);
    other.pass().await.unwrap();
    assert!(other.keys.are_there());
    assert_eq!(stored(&server)["metadata"]["annotations"][annotation::SELF_SIGNED], "true");
}

#[tokio::test]
async fn what_is_held_and_good_is_shown_while_somebody_elses_is_not() {
    let (server, env) = (FakeServer::new(), env());
    let (mut old, _) = replica(&server, &env);
    old.pass().await.unwrap();
    let mut expired = stored(&server);
    expired["metadata"]["annotations"] = json!({});
    env.jump(SignedDuration::from_hours(400 * 24));
    server.delete(SECRETS, SECRET);
    let (mut own, _) = replica(&server, &env);
    own.pass().await.unwrap();
    let held = own.held.clone();
    server.put(SECRETS, expired);
    own.pass().await.unwrap_err();
    assert!(own.keys.are_there());
    assert_eq!(own.held, held);
}

#[tokio::test]
async fn a_failing_api_server_is_told_and_nothing_is_served_with_what_nobody_else_knows() {
    let (server, env) = (FakeServer::new(), env());
    server.fail(|method, _| if method == "POST" { Fault::Code(403) } else { Fault::None });
    let (mut own, bundle) = replica(&server, &env);
    let error = own.pass().await.unwrap_err().to_string();
    assert_eq!(error, "failed to write secret ns/machine-api-operator-webhook-cert");
    assert!(!own.keys.are_there());
    assert_eq!(bundle.get(), Authorities::Pending);
}
