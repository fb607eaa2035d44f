//! What does preparing a launch promise?

use machinist_providers::{ErrorClass, LaunchRequest};
use serde_json::json;

use crate::harness::{Capability, Harness, raw};

pub async fn prepare_has_no_effect(harness: &Harness) {
    let request = harness.request();
    harness.provider.prepare(&request).await.unwrap();
    harness.provider.prepare(&request).await.unwrap();
    assert_eq!(harness.provider.list(&request.cluster_id).await.unwrap(), []);
}

pub async fn filters_resolve_to_ids(harness: &Harness) {
    let by_id = harness.request();
    let by_filters =
        LaunchRequest { provider_spec: raw(&harness.provider_spec_by_filters), ..by_id.clone() };
    let by_id = harness.provider.prepare(&by_id).await.unwrap();
    let resolved = harness.provider.prepare(&by_filters).await.unwrap();
    assert_eq!(by_id.resolved, resolved.resolved);
    harness.launch(&by_filters).await;
}

pub async fn wrong_configuration_names_the_field_and_launches_nothing(harness: &Harness) {
    let nothing = json!({"filters": [{"name": "tag:Name", "values": ["no-such-thing"]}]});
    let table = [
        (json!({"kind": "VSphereMachineProviderSpec"}), "providerSpec.kind: "),
        (json!({"ami": {}}), "providerSpec.ami: expected an id or filters"),
        (json!({"ami": {"id": "ami-0123456789abcdef0"}}), "providerSpec.ami: failed to look up"),
        (json!({"ami": nothing}), "providerSpec.ami: no image found"),
        (
            json!({"subnet": {"id": "subnet-0123456789abcdef0"}}),
            "providerSpec.subnet: failed to look up subnet subnet-0123456789abcdef0: \
             InvalidSubnetID.NotFound: ",
        ),
        (json!({"subnet": nothing}), "providerSpec.subnet: no subnet found"),
        (
            json!({"securityGroups": [{"id": "sg-0123456789abcdef0"}]}),
            "providerSpec.securityGroups: failed to look up",
        ),
        (json!({"securityGroups": [nothing]}), "providerSpec.securityGroups: no security group"),
        (json!({"securityGroups": []}), "providerSpec.securityGroups: no security group found"),
        (json!({"securityGroups": [{"arn": "a"}]}), "providerSpec.securityGroups[0]: expected"),
        (json!({"instanceType": null}), "providerSpec.instanceType: "),
        (json!({"capacityReservationId": "cr-1"}), "providerSpec.capacityReservationId: "),
        (json!({"placement": {"region": "eu-west-9"}}), "providerSpec.placement.region: "),
        (json!({"blockDevices": [{"ebs": {"volumeSize": "x"}}]}), "providerSpec.blockDevices[0].e"),
    ];
    let launches = harness.calls.count("RunInstances");
    for (fields, expected) in table {
        let request = harness.request_with(&fields);
        let error = harness.provider.prepare(&request).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::InvalidConfiguration, "{error}");
        assert!(error.message.starts_with(expected), "{error} does not begin with {expected}");
    }
    assert_eq!(harness.calls.count("RunInstances"), launches);
}

pub async fn lookup_that_fails_keeps_its_class(harness: &Harness) {
    if !harness.can(Capability::Faults) {
        return;
    }
    // In the order of the lookups: what has been answered is not asked for again.
    let table = [
        ("DescribeImages", "InternalError", ErrorClass::Transient),
        ("DescribeSubnets", "RequestLimitExceeded", ErrorClass::Throttled),
        ("DescribeSecurityGroups", "UnauthorizedOperation", ErrorClass::Unauthorized),
    ];
    for (action, code, class) in table {
        harness.levers().refuse(action, code);
        let error = harness.provider.prepare(&harness.request()).await.unwrap_err();
        assert_eq!(error.class, class, "{error}");
        assert_eq!(error.code.as_deref(), Some(code));
        harness.levers().clear();
    }
    harness.provider.prepare(&harness.request()).await.unwrap();
}

pub async fn many_launches_share_their_lookups(harness: &Harness) {
    harness.provider.prepare(&harness.request()).await.unwrap();
    let calls = harness.calls.total();
    for _ in 0..20 {
        harness.provider.prepare(&harness.request()).await.unwrap();
    }
    assert_eq!(harness.calls.total(), calls);
}
