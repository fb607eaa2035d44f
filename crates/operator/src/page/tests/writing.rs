//! Is what a person changes sent with their own token, and by nobody else's rights?

use super::*;

fn sent(site: &Site) -> Vec<(String, String, Value)> {
    let log = site.log.lock().unwrap();
    log.iter()
        .filter(|(_, method, ..)| method == "PATCH")
        .map(|(token, _, path, content)| (token.clone(), path.clone(), content.clone()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_page_that_only_shows_changes_nothing() {
    let site = Site::new(false);
    for (path, content) in WRITES {
        let (status, answer) = site.post(path, "writer", content).await;
        assert_eq!((status, &answer["error"]["code"]), (403, &json!("ReadOnly")), "{path}");
    }
    assert!(site.log.lock().unwrap().is_empty());
    let (status, answer) = site.post(TRIAL, "reader", "{}").await;
    assert_eq!((status, &answer["summary"]), (200, &json!("The plan would stay as it is.")));
}

#[tokio::test(start_paused = true)]
async fn a_writer_approves_with_their_own_token() {
    let site = Site::new(true);
    let (status, done) = site.post("/api/v1/machines/b/approve", "writer", "{}").await;
    assert_eq!((status, &done["changed"]), (200, &json!(true)), "{done}");
    let (token, path, content) = sent(&site).remove(0);
    assert_eq!(token, "writer");
    assert!(path.ends_with("/namespaces/ns/machinemaintenances/mm-b"), "{path}");
    assert_eq!(
        content,
        json!({ "metadata": { "uid": "uid-mm-b", "annotations": {
            "machinist.dev/maintenance-approved": "event-1",
        } } })
    );
}

#[tokio::test(start_paused = true)]
async fn a_reader_is_refused_by_the_api_server_in_its_own_words() {
    let site = Site::new(true);
    let (status, answer) = site.post("/api/v1/machines/b/approve", "reader", "{}").await;
    assert_eq!((status, &answer["error"]["code"]), (403, &json!("Forbidden")));
    assert_eq!(answer["error"]["message"], "reader cannot patch this");
    assert!(sent(&site).iter().all(|(token, ..)| token == "reader"));
}

#[tokio::test(start_paused = true)]
async fn a_pause_says_who_paused_and_why() {
    let site = Site::new(true);
    let wish = r#"{"place":"policy","name":"nights","reason":"release day"}"#;
    let (status, done) = site.post("/api/v1/pause", "writer", wish).await;
    assert_eq!(status, 200, "{done}");
    let (_, path, content) = sent(&site).remove(0);
    assert!(path.ends_with("/maintenancepolicies/nights"), "{path}");
    let why = content["spec"]["pauseReason"].as_str().unwrap();
    assert!(why.starts_with("release day (by writer at 2026-01-01T12:00:"), "{why}");
    let (status, _) = site.post("/api/v1/pause", "writer", r#"{"place":"pool"}"#).await;
    assert_eq!(status, 400);
    let (status, _) = site.post("/api/v1/pause", "writer", r#"{"place":"pool","name":"x"}"#).await;
    assert_eq!(status, 404);
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_now_is_refused_before_it_is_sent() {
    let site = Site::new(true);
    for (path, content, expected) in [
        ("/api/v1/machines/a/approve", "{}", 409),
        ("/api/v1/machines/x/approve", "{}", 404),
        ("/api/v1/machines/b/postpone", r#"{"until":"2020-01-01T00:00:00Z"}"#, 422),
        ("/api/v1/machines/a/postpone", r#"{"until":"2026-02-01T00:00:00Z"}"#, 409),
    ] {
        assert_eq!(site.post(path, "writer", content).await.0, expected, "{path}");
    }
    let (status, done) = site.post("/api/v1/resume", "writer", r#"{"place":"cluster"}"#).await;
    assert_eq!((status, done["changed"].clone()), (404, Value::Null), "there is no namespace");
    assert!(sent(&site).is_empty());
}
