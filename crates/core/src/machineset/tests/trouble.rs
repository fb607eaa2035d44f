//! Does a pool say why its Machines get no instances?

use super::*;

fn launching(name: &str, reason: &str, message: &str) -> Machine {
    let exists = json!([{
        "type": "InstanceExists", "status": "False", "severity": "Warning", "reason": reason,
        "message": message, "lastTransitionTime": "2026-01-01T11:59:00Z",
    }]);
    machine(name, json!({}), json!({"conditions": exists}))
}

#[test]
fn the_first_launch_that_fails_is_told_on_the_pool_and_taken_back() {
    let not_created = "Instance has not been created";
    let failed = |cause: &str| format!("{not_created}: {cause}");
    let cases = [
        ("QuotaExceeded", failed("VcpuLimitExceeded"), true),
        ("InsufficientCapacity", failed("no m5.large in us-east-1a"), true),
        ("Unauthorized", failed("ec2:RunInstances"), true),
        ("InvalidConfiguration", "spec.providerSpec.value.ami: Required value".to_owned(), true),
        ("InstanceNotCreated", failed("subnet not found"), true),
        // Its launch is only still to come, or comes a little later.
        ("InstanceNotCreated", not_created.to_owned(), false),
        ("Throttled", failed("RequestLimitExceeded"), false),
        ("InstanceMissing", "can't find created instance".to_owned(), false),
    ];
    for (reason, message, is_told) in cases {
        let mut set = set(json!({"replicas": 3}));
        let machines =
            [plain("a"), launching("b", reason, &message), launching("c", reason, &message)];
        let status = decided(&set, &machines).status;
        let found = condition::find(&status.conditions, "Scaling");
        assert_eq!(found.is_some(), is_told, "{reason}");
        assert_eq!((&status.error_reason, &status.error_message), (&None, &None));
        let Some(found) = found else { continue };
        assert_eq!(found.reason.as_deref(), Some(reason));
        assert_eq!(found.message, Some(format!("machine b: {message}")));
        set.status = Some(status);
        assert_eq!(decided(&set, &machines).status, set.status.clone().unwrap(), "told once");
        let healed = decided(&set, &[plain("a"), plain("b"), plain("c")]).status;
        assert!(condition::is_true(&healed.conditions, "Scaling"), "{reason}");
    }
}

#[test]
fn what_keeps_machines_from_being_made_is_told_before_what_keeps_them_from_launching() {
    let spec = set(json!({"replicas": 1000}));
    let status = decided(&spec, &[launching("b", "QuotaExceeded", "full")]).status;
    let found = condition::find(&status.conditions, "Scaling").unwrap();
    assert_eq!(found.reason.as_deref(), Some("TooManyMachines"));
}

#[test]
fn a_selector_that_status_cannot_hold_is_refused_by_name() {
    let labels: serde_json::Map<String, Value> =
        (0..80).map(|index| (format!("{index:060}"), json!("x"))).collect();
    let spec = set(json!({
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {}},
    }));
    let decision = decided(&spec, &[]);
    assert!(decision.actions.is_empty());
    let words = decision.status.error_message.unwrap();
    assert!(words.starts_with("spec.selector: Too long: "), "{words}");
}
