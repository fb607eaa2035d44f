//! Do the alerts watch what is published, and are those of the Machine API as they were?

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::names::{of_everything, published};

const FILES: [&str; 2] = [
    include_str!("../../../../../deploy/alerts/machine-api.yaml"),
    include_str!("../../../../../deploy/alerts/machinist.yaml"),
];

fn rules() -> Vec<Value> {
    let mut rules = Vec::new();
    for file in FILES {
        let file: Value = serde_saphyr::from_str(file).unwrap();
        for group in file["spec"]["groups"].as_array().unwrap() {
            rules.extend(group["rules"].as_array().unwrap().iter().cloned());
        }
    }
    rules
}

fn text_of<'a>(rule: &'a Value, field: &str) -> &'a str {
    rule[field].as_str().unwrap_or_default().trim()
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// An alert on a metric that nobody publishes never fires, and nobody notices.
#[test]
fn every_metric_of_an_alert_is_published() {
    let published = published(&of_everything().encode().unwrap());
    for rule in rules() {
        let (alert, expr) = (text_of(&rule, "alert"), text_of(&rule, "expr"));
        for field in ["summary", "description"] {
            let words = rule["annotations"][field].as_str();
            assert!(words.is_some_and(|words| !words.is_empty()), "{alert} has no {field}");
        }
        let names: Vec<&str> = expr
            .split(|letter| !is_of_name(letter))
            .filter(|word| word.starts_with("machinist_") || word.starts_with("mapi_"))
            .collect();
        // What is down publishes nothing: this one asks Prometheus itself.
        assert!(!names.is_empty() || expr.contains("up{job="), "{alert} watches nothing of ours");
        for name in names {
            assert!(published.contains_key(name), "{alert}: {name} is not published");
        }
    }
}

/// A label that the expression sums away is empty in the text: the defect of the original's summary.
#[test]
fn no_text_of_an_alert_names_a_label_that_it_does_not_have() {
    for rule in rules() {
        let (alert, expr) = (text_of(&rule, "alert"), text_of(&rule, "expr"));
        let Some((_, by)) = expr.split_once(" by (") else { continue };
        let kept: Vec<&str> = by.split(')').next().unwrap().split(',').map(str::trim).collect();
        for field in ["summary", "description"] {
            let words = rule["annotations"][field].as_str().unwrap();
            for used in words.split("$labels.").skip(1) {
                let label = used.split(|letter| !is_of_name(letter)).next().unwrap();
                assert!(kept.contains(&label), "{alert}: {label}");
            }
        }
    }
}

#[test]
fn the_alerts_of_the_machine_api_are_kept_to_the_letter() {
    let contract = [
        (
            "MachineWithoutValidNode",
            "sum by (name, namespace) (mapi_machine_created_timestamp_seconds unless on(node) kube_node_info) > 0",
            "60m",
        ),
        (
            "MachineWithNoRunningPhase",
            r#"sum by (name, namespace) (mapi_machine_created_timestamp_seconds{phase!~"Running|Deleting"}) > 0"#,
            "60m",
        ),
        (
            "MachineNotYetDeleted",
            r#"sum by (name, namespace) (avg_over_time(mapi_machine_created_timestamp_seconds{phase="Deleting"}[15m])) > 0"#,
            "360m",
        ),
        ("MachineAPIOperatorMetricsCollectionFailing", "mapi_mao_collector_up == 0", "5m"),
        (
            "MachineHealthCheckUnterminatedShortCircuit",
            "mapi_machinehealthcheck_short_circuit == 1",
            "30m",
        ),
    ];
    let rules = rules();
    for (alert, expr, pause) in contract {
        let rule = rules.iter().find(|rule| text_of(rule, "alert") == alert).unwrap();
        assert_eq!((text_of(rule, "expr"), text_of(rule, "for")), (expr, pause), "{alert}");
        assert_eq!(rule["labels"]["severity"], "warning", "{alert}");
    }
    assert!(rules.iter().any(|rule| text_of(rule, "alert") == "MachineApiOperatorDown"));
}

/// The table of docs/reference/alerts.md; `UPDATE=1` (or `make reference`) writes it anew.
#[test]
fn the_reference_lists_the_alerts() {
    let mut text = "# Alerts\n\nWritten by `make reference` from `deploy/alerts`. The first seven carry the names, expressions and\n\
        durations of the Machine API and its certificate approver; the rest are ours. `scripts/alerts.sh` checks them\n\
        with promtool and sees each fire and not fire. Each has a page that says what to do.\n\n\
        | alert | severity | for | expression |\n|---|---|---|---|\n"
        .to_owned();
    for rule in rules() {
        let (alert, pause) = (text_of(&rule, "alert"), text_of(&rule, "for"));
        let severity = rule["labels"]["severity"].as_str().unwrap_or_default();
        let expr = text_of(&rule, "expr").replace('|', "\\|");
        let row = format!(
            "| [{alert}](../operate/alerts/{alert}.md) | {severity} | {pause} | `{expr}` |\n"
        );
        text.push_str(&row);
    }
    let path = docs().join("reference/alerts.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let stored = fs::read_to_string(path).unwrap_or_default();
    assert!(stored == text, "docs/reference/alerts.md is old: run `make reference`");
}

#[test]
fn every_alert_has_its_page_and_every_page_its_alert() {
    let entries = fs::read_dir(docs().join("operate/alerts")).unwrap();
    let pages: BTreeSet<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let alerts: BTreeSet<String> =
        rules().iter().map(|rule| format!("{}.md", text_of(rule, "alert"))).collect();
    assert_eq!(pages, alerts, "left: docs/operate/alerts, right: deploy/alerts");
    for page in pages {
        let text = fs::read_to_string(docs().join("operate/alerts").join(&page)).unwrap();
        let title = format!("# {}\n", page.trim_end_matches(".md"));
        assert!(text.starts_with(&title), "{page}");
    }
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Each alert is seen to fire, and not to, by promtool (scripts/alerts.sh runs it).
#[test]
fn every_alert_has_its_tests() {
    let tests: Value =
        serde_saphyr::from_str(include_str!("../../../../../deploy/alerts/tests.yaml")).unwrap();
    let cases: Vec<&Value> = tests["tests"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|test| test["alert_rule_test"].as_array().unwrap())
        .collect();
    for rule in rules() {
        let alert = text_of(&rule, "alert");
        let firings = || cases.iter().filter(|case| case["alertname"] == alert);
        let fires =
            |case: &&Value| case["exp_alerts"].as_array().is_some_and(|list| !list.is_empty());
        assert!(firings().any(&fires), "{alert} is never seen to fire");
        assert!(firings().any(|case| !fires(case)), "{alert} is never seen not to fire");
    }
}
