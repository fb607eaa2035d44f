//! Lists, pages and earlier versions.

use serde_json::{Value, json};

use super::lab::{Lab, MACHINES, names, refused};
use crate::api_server::store::View;

fn lab_with(count: usize) -> Lab {
    let mut lab = Lab::new();
    for index in 0..count {
        lab.machine(&format!("m{index}"), json!({}));
    }
    lab
}

fn version(value: &Value) -> String {
    value["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

#[test]
fn pages_are_of_one_version_whatever_happens_between_them() {
    let mut lab = lab_with(5);
    let (_, first) = lab.get(&format!("{MACHINES}?limit=2"));
    assert_eq!(names(&first), ["m0", "m1"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    lab.delete(&format!("{MACHINES}/m3"), Value::Null);
    lab.machine("m00", json!({}));
    lab.machine("m22", json!({}));
    let mut token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    let mut rest = Vec::new();
    while !token.is_empty() {
        let (code, page) = lab.get(&format!("{MACHINES}?limit=2&continue={token}"));
        assert_eq!((code, version(&page)), (200, version(&first)));
        rest.extend(names(&page).into_iter().map(str::to_owned));
        token = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!(rest, ["m2", "m3", "m4"]);
}

#[test]
fn a_page_that_is_forgotten_is_refused_with_a_token_for_the_rest() {
    let mut lab = lab_with(3);
    let (_, first) = lab.get(&format!("{MACHINES}?limit=1"));
    let token = first["metadata"]["continue"].as_str().unwrap();
    lab.delete(&format!("{MACHINES}/m2"), Value::Null);
    lab.store.compact(lab.store.revision());
    let expired = lab.get(&format!("{MACHINES}?limit=1&continue={token}"));
    assert_eq!(refused(&expired), (410, "Expired"));
    let token = expired.1["metadata"]["continue"].as_str().unwrap();
    assert_eq!(names(&lab.get(&format!("{MACHINES}?continue={token}")).1), ["m1"]);
    assert_eq!(lab.get(&format!("{MACHINES}?continue=nonsense")).0, 400);
}

#[test]
fn the_version_of_a_list_means_what_the_documentation_says() {
    let mut lab = lab_with(1);
    let (_, before) = lab.get(MACHINES);
    lab.machine("later", json!({}));
    let old = version(&before);
    let table = [
        (String::new(), 200, 2),
        ("?resourceVersion=0".to_owned(), 200, 2),
        (format!("?resourceVersion={old}"), 200, 2),
        (format!("?resourceVersion={old}&resourceVersionMatch=NotOlderThan"), 200, 2),
        (format!("?resourceVersion={old}&resourceVersionMatch=Exact"), 200, 1),
        (format!("?resourceVersion={old}&limit=10"), 200, 1),
        ("?resourceVersion=999".to_owned(), 504, 0),
        ("?resourceVersion=x".to_owned(), 400, 0),
        ("?resourceVersionMatch=Exact".to_owned(), 422, 0),
        ("?resourceVersion=0&resourceVersionMatch=Exact".to_owned(), 422, 0),
        ("?fieldSelector=spec.x%3D1".to_owned(), 400, 0),
        ("?labelSelector=%3D%3D".to_owned(), 400, 0),
    ];
    for (query, code, count) in table {
        let (found, list) = lab.get(&format!("{MACHINES}{query}"));
        assert_eq!((found, list["items"].as_array().map_or(0, Vec::len)), (code, count), "{query}");
    }
    lab.store.compact(lab.store.revision());
    let gone = lab.get(&format!("{MACHINES}?resourceVersion={old}&resourceVersionMatch=Exact"));
    assert_eq!(refused(&gone), (410, "Expired"));
}

#[test]
fn a_server_that_lags_shows_an_earlier_state() {
    let mut lab = lab_with(1);
    let before = lab.store.revision();
    let then = lab.now;
    lab.pass(60);
    lab.merge(&format!("{MACHINES}/m0"), json!({ "metadata": { "labels": { "new": "yes" } } }));
    lab.machine("m1", json!({}));
    assert_eq!(lab.store.revision_before(then), before);

    lab.view = View::At(before);
    let (_, list) = lab.get(MACHINES);
    assert_eq!((names(&list), version(&list)), (vec!["m0"], before.to_string()));
    assert_eq!(lab.get(&format!("{MACHINES}/m0")).1["metadata"]["labels"], Value::Null);
    assert_eq!(lab.get(&format!("{MACHINES}/m1")).0, 404);
    let mut watcher = lab.watch(&format!("{MACHINES}?watch=true"));
    assert_eq!(lab.events(&mut watcher), ["added m0", "modified m0", "added m1"]);
}

#[test]
fn all_namespaces_are_listed_in_the_order_of_etcd() {
    let mut lab = Lab::new();
    for namespace in ["n", "m"] {
        let uri = format!("/api/v1/namespaces/{namespace}/configmaps");
        lab.post(&uri, json!({ "metadata": { "name": "a" } }));
    }
    let (_, list) = lab.get("/api/v1/configmaps");
    let namespaces: Vec<_> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["namespace"].clone())
        .collect();
    assert_eq!(namespaces, ["m", "n"]);
    assert_eq!(list["kind"], "ConfigMapList");
}
