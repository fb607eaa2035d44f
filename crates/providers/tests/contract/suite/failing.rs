//! How do failures read?

use machinist_providers::ErrorClass;
use serde_json::json;

use crate::harness::{Capability, Harness, raw, token};

pub async fn refusals_have_their_class(harness: &Harness) {
    if !harness.can(Capability::Faults) {
        return;
    }
    let table = [
        ("RequestLimitExceeded", ErrorClass::Throttled),
        ("InsufficientInstanceCapacity", ErrorClass::InsufficientCapacity),
        ("VcpuLimitExceeded", ErrorClass::QuotaExceeded),
        ("UnauthorizedOperation", ErrorClass::Unauthorized),
        ("IdempotentParameterMismatch", ErrorClass::TokenMismatch),
        ("InvalidKeyPair.NotFound", ErrorClass::InvalidConfiguration),
        ("Unsupported", ErrorClass::InvalidConfiguration),
        ("InternalError", ErrorClass::Transient),
        ("Unavailable", ErrorClass::Transient),
        ("NeverHeardOfIt", ErrorClass::Unknown),
    ];
    let request = harness.request();
    let prepared = harness.provider.prepare(&request).await.unwrap();
    for (code, class) in table {
        harness.levers().refuse("RunInstances", code);
        let error = harness.provider.launch(&prepared, &token(&request)).await.unwrap_err();
        assert_eq!(error.class, class, "{error}");
        assert_eq!(error.code.as_deref(), Some(code));
        assert!(error.message.contains(&request.machine_name), "{error}");
        let at_fault = error.message.starts_with("providerSpec");
        assert_eq!(at_fault, class == ErrorClass::InvalidConfiguration, "{error}");
        harness.levers().clear();
    }
    assert_eq!(harness.provider.list(&request.cluster_id).await.unwrap(), []);
}

/// The credentials of existing clusters lack the rights of what is new: only that stops.
pub async fn missing_permission_is_named_and_the_rest_goes_on(harness: &Harness) {
    if !harness.can(Capability::Faults) {
        return;
    }
    let instance = harness.running(&harness.request()).await;
    let (provider, id) = (&harness.provider, &instance.id);
    let balanced = raw(&json!({"loadBalancers": [{"name": "int", "type": "network"}]}));
    let event = "instance-event-0123456789abcdef0";
    let soon = "2100-01-01T00:00:00Z".parse().unwrap();
    for permission in [
        "ec2:DescribeInstanceStatus",
        "ec2:StartInstances",
        "ec2:StopInstances",
        "ec2:RebootInstances",
        "ec2:ModifyInstanceEventStartTime",
        "ec2:TerminateInstances",
        "ec2:DescribeHosts",
        "elasticloadbalancing:DescribeLoadBalancers",
    ] {
        harness.levers().deny(permission);
        let error = match permission {
            "ec2:DescribeInstanceStatus" => provider.reports().await.unwrap_err(),
            "ec2:StartInstances" => provider.start(id).await.unwrap_err(),
            "ec2:StopInstances" => provider.stop(id).await.unwrap_err(),
            "ec2:RebootInstances" => provider.reboot(id).await.unwrap_err(),
            "ec2:ModifyInstanceEventStartTime" => {
                provider.move_event(id, event, soon).await.unwrap_err()
            }
            "ec2:TerminateInstances" => provider.terminate(id).await.unwrap_err(),
            "ec2:DescribeHosts" => provider.release_hosts("uid").await.unwrap_err(),
            _ => provider.attach(&balanced, &instance).await.unwrap_err(),
        };
        assert_eq!(error.class, ErrorClass::Unauthorized, "{error}");
        assert_eq!(error.missing_permission.as_deref(), Some(permission), "{error}");
        assert!(error.message.contains(&format!("permission {permission} is missing")), "{error}");
        assert!(!error.message.contains("Encoded"), "{error}");
        assert!(harness.calls.missing_permissions().contains(permission));
        assert_eq!(provider.describe(std::slice::from_ref(id)).await.unwrap().len(), 1);
        harness.levers().clear();
    }
}

pub async fn silence_is_transient(harness: &Harness) {
    if !harness.can(Capability::Faults) {
        return;
    }
    let id = harness.launch(&harness.request()).await.id;
    harness.levers().lose_answer("TerminateInstances");
    let error = harness.provider.terminate(&id).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Transient, "{error}");
    harness.levers().lose_answer("DescribeInstances");
    let error = harness.provider.describe(&[id]).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Transient, "{error}");
}
