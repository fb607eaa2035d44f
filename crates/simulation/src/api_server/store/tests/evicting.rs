//! Evictions and disruption budgets.

use serde_json::{Value, json};

use super::lab::{BUDGETS, Lab, PODS};

struct Case {
    what: &'static str,
    pod: Value,
    budgets: Vec<Value>,
    options: Value,
    code: u16,
    /// Part of the message or of the cause.
    words: &'static str,
    /// What is left of the first budget.
    allowed: Option<i64>,
    deleted: bool,
}

fn running(ready: &str) -> Value {
    json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }] })
}

fn budget(allowed: i64) -> Value {
    json!({ "disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 1, "observedGeneration": 1 })
}

#[test]
fn budgets_decide_about_evictions_as_the_real_server_lets_them() {
    let short = json!({ "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "observedGeneration": 1 });
    let starved = json!({ "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 1, "observedGeneration": 1 });
    let case = |what, pod, budgets, code, words, allowed, deleted| Case {
        what,
        pod,
        budgets,
        options: Value::Null,
        code,
        words,
        allowed,
        deleted,
    };
    let table = [
        case("no budget", running("True"), vec![], 201, "", None, true),
        case("allowed", running("True"), vec![budget(2)], 201, "", Some(1), true),
        case("the last one", running("True"), vec![budget(1)], 201, "", Some(0), true),
        case(
            "none allowed",
            running("True"),
            vec![short.clone()],
            429,
            "The disruption budget b0 needs 1 healthy pods and has 1 currently",
            Some(0),
            false,
        ),
        case(
            "none allowed, no reason",
            running("True"),
            vec![budget(0)],
            429,
            "The disruption budget b0 does not allow evicting pods currently",
            Some(0),
            false,
        ),
        case(
            "not counted yet",
            running("True"),
            vec![json!({ "disruptionsAllowed": 1 })],
            429,
            "The disruption budget b0 is still being processed by the server.",
            Some(1),
            false,
        ),
        case(
            "two budgets",
            running("True"),
            vec![budget(1), budget(1)],
            500,
            "This pod has more than one PodDisruptionBudget",
            Some(1),
            false,
        ),
        case("not ready, budget met", running("False"), vec![short], 201, "", Some(0), true),
        case(
            "not ready, budget not met",
            running("False"),
            vec![starved],
            429,
            "needs 1 healthy pods and has 0 currently",
            Some(0),
            false,
        ),
        case("pending", json!({ "phase": "Pending" }), vec![budget(0)], 201, "", Some(0), true),
        case("over", json!({ "phase": "Failed" }), vec![budget(0)], 201, "", Some(0), true),
        Case {
            options: json!({ "preconditions": { "uid": "other" } }),
            // The budget is asked first, and does not get back what it gave.
            ..case(
                "another pod",
                running("True"),
                vec![budget(1)],
                409,
                "does not match the UID",
                Some(0),
                false,
            )
        },
    ];
    for case in table {
        check(&case);
    }
}

fn check(case: &Case) {
    let mut lab = Lab::new();
    lab.pod("p", json!({}));
    lab.merge(&format!("{PODS}/p/status"), json!({ "status": case.pod }));
    for (index, status) in case.budgets.iter().enumerate() {
        let name = format!("b{index}");
        let spec = json!({ "minAvailable": 1, "selector": { "matchLabels": { "app": "a" } } });
        lab.post(BUDGETS, json!({ "metadata": { "name": name }, "spec": spec }));
        lab.merge(&format!("{BUDGETS}/{name}/status"), json!({ "status": status }));
    }
    let mut eviction = json!({ "metadata": { "name": "p" } });
    if !case.options.is_null() {
        eviction["deleteOptions"] = case.options.clone();
    }
    let (code, answer) = lab.post(&format!("{PODS}/p/eviction"), eviction);
    let text = answer.to_string();
    assert_eq!(code, case.code, "{}: {text}", case.what);
    assert!(text.contains(case.words), "{}: {text}", case.what);
    if code == 429 {
        assert_eq!(answer["details"]["causes"][0]["reason"], "DisruptionBudget", "{}", case.what);
    }
    let budget = lab.get(&format!("{BUDGETS}/b0")).1;
    assert_eq!(budget["status"]["disruptionsAllowed"].as_i64(), case.allowed, "{}", case.what);
    let (code, pod) = lab.get(&format!("{PODS}/p"));
    let deleted = code == 404 || pod["metadata"]["deletionTimestamp"].is_string();
    assert_eq!(deleted, case.deleted, "{}", case.what);
    if deleted && code == 200 {
        assert!(pod["status"]["conditions"].to_string().contains("EvictionByEvictionAPI"));
    }
}

#[test]
fn an_eviction_leaves_word_for_the_disruption_controller() {
    let mut lab = Lab::new();
    lab.pod("p", json!({}));
    lab.merge(&format!("{PODS}/p/status"), json!({ "status": running("True") }));
    let spec = json!({ "selector": {}, "unhealthyPodEvictionPolicy": "AlwaysAllow" });
    lab.post(BUDGETS, json!({ "metadata": { "name": "b" }, "spec": spec }));
    lab.merge(&format!("{BUDGETS}/b/status"), json!({ "status": budget(1) }));
    assert_eq!(
        lab.post(&format!("{PODS}/p/eviction"), json!({ "metadata": { "name": "p" } })).0,
        201
    );
    let budget = lab.get(&format!("{BUDGETS}/b")).1;
    assert_eq!(budget["status"]["disruptedPods"]["p"], "2026-01-01T00:00:00Z");
    assert_eq!(budget["status"]["conditions"][0]["reason"], "InsufficientPods");
    assert_eq!(
        lab.post(&format!("{PODS}/z/eviction"), json!({ "metadata": { "name": "z" } })).0,
        404
    );
    assert_eq!(
        lab.post(&format!("{PODS}/p/eviction"), json!({ "metadata": { "name": "q" } })).0,
        400
    );
}
