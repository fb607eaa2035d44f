//! Does the dashboard show what is published? A panel on a metric that nobody publishes stays empty,
//! and nobody notices.

use std::collections::BTreeSet;

use serde_json::Value;

use super::tests::names::{of_everything, published};

/// Names of queries that are functions, keywords or labels are told from metrics by these.
const PREFIXES: [&str; 7] = [
    "machinist_",
    "mapi_",
    "workqueue_",
    "controller_runtime_",
    "rest_client_",
    "process_",
    "leader_",
];

/// The names that queries use.
fn known() -> BTreeSet<String> {
    let text = of_everything().encode().unwrap();
    published(&text).into_keys().collect()
}

fn queries(panel: &Value) -> Vec<String> {
    let targets = panel["targets"].as_array().cloned().unwrap_or_default();
    targets.iter().map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_metric_of_the_dashboard_is_published() {
    let text = include_str!("../../../../deploy/dashboards/machinist.json");
    let dashboard: Value = serde_json::from_str(text).unwrap();
    let known = known();
    let mut seen = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        for query in queries(panel) {
            let words = query.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
            let names: Vec<&str> = words
                .filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix)))
                .collect();
            assert!(!names.is_empty(), "{title}: {query} shows nothing of ours");
            for name in names {
                let base = name.strip_suffix("_bucket").unwrap_or(name);
                assert!(known.contains(base), "{title}: {name} is not published");
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen}");
}
