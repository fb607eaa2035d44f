//! How do failures read?

use machinist_providers::ErrorClass;

use crate::harness::{Capability, Harness, token};

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
