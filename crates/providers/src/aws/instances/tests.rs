//! How an instance of EC2 reads in the words of core.

use aws_sdk_ec2::types::{
    InstanceIpv6Address, InstanceNetworkInterface, InstancePrivateIpAddress, InstanceType,
    Placement, StateReason as Ec2StateReason,
};

use super::*;

fn interface(
    status: NetworkInterfaceStatus,
    ipv6: &str,
    ipv4: [&str; 2],
) -> InstanceNetworkInterface {
    let [first, second] =
        ipv4.map(|address| InstancePrivateIpAddress::builder().private_ip_address(address).build());
    InstanceNetworkInterface::builder()
        .status(status)
        .ipv6_addresses(InstanceIpv6Address::builder().ipv6_address(ipv6).build())
        .private_ip_addresses(first)
        .private_ip_addresses(second)
        .build()
}

fn instance(state: InstanceStateName) -> aws_sdk_ec2::types::builders::InstanceBuilder {
    Ec2Instance::builder()
        .instance_id("i-1")
        .instance_type(InstanceType::from("m6i.large"))
        .state(Ec2InstanceState::builder().name(state).build())
        .placement(Placement::builder().availability_zone("us-east-1a").build())
}

#[test]
fn running_instance_is_translated_whole() {
    let instance = instance(InstanceStateName::Running)
        .launch_time(DateTime::from_secs(1_700_000_000))
        .client_token("uid-1-g1")
        .instance_lifecycle(InstanceLifecycleType::Spot)
        .tags(Tag::builder().key("machinist.dev/machine-uid").value("uid-1").build())
        .build();
    let instance = translate(&instance, "us-east-1", &[]).unwrap();
    assert_eq!(instance.provider_id, "aws:///us-east-1a/i-1");
    assert_eq!(instance.state, InstanceState::Running);
    assert_eq!((instance.zone.as_str(), instance.region.as_str()), ("us-east-1a", "us-east-1"));
    assert_eq!(instance.instance_type, "m6i.large");
    assert_eq!(instance.launched_at, Timestamp::from_second(1_700_000_000).ok());
    assert_eq!(instance.client_token.as_deref(), Some("uid-1-g1"));
    assert_eq!(instance.machine_uid(), Some("uid-1"));
    assert!(instance.interruptible);
}

#[test]
fn addresses_are_in_the_order_of_the_contract() {
    let instance = instance(InstanceStateName::Running)
        .network_interfaces(interface(
            NetworkInterfaceStatus::InUse,
            "fd00::1",
            ["10.0.0.1", "10.0.0.2"],
        ))
        .network_interfaces(interface(
            NetworkInterfaceStatus::Detaching,
            "fd00::9",
            ["10.9.9.1", "10.9.9.2"],
        ))
        .network_interfaces(interface(
            NetworkInterfaceStatus::InUse,
            "fd00::2",
            ["10.0.1.1", "10.0.1.2"],
        ))
        .public_ip_address("203.0.113.1")
        .private_dns_name("ip-10-0-0-1.ec2.internal")
        .public_dns_name("ec2-203-0-113-1.compute-1.amazonaws.com")
        .build();
    let domains = ["ec2.internal", "example.com", "example.org"].map(str::to_owned);
    let shown: Vec<_> = translate(&instance, "us-east-1", &domains)
        .unwrap()
        .addresses
        .into_iter()
        .map(|address| format!("{} {}", address.type_, address.address))
        .collect();
    assert_eq!(
        shown,
        [
            "InternalIP fd00::1",
            "InternalIP 10.0.0.1",
            "InternalIP 10.0.0.2",
            "InternalIP fd00::2",
            "InternalIP 10.0.1.1",
            "InternalIP 10.0.1.2",
            "ExternalIP 203.0.113.1",
            "InternalDNS ip-10-0-0-1.ec2.internal",
            "Hostname ip-10-0-0-1.ec2.internal",
            "InternalDNS ip-10-0-0-1.example.com",
            "InternalDNS ip-10-0-0-1.example.org",
            "ExternalDNS ec2-203-0-113-1.compute-1.amazonaws.com",
        ]
    );
}

#[test]
fn reason_has_the_code_the_words_and_the_time_that_the_state_began() {
    let reason = |code: &str, message: &str, transition: &str| {
        let reason = Ec2StateReason::builder().code(code).message(message).build();
        let instance = instance(InstanceStateName::Stopped)
            .state_reason(reason)
            .state_transition_reason(transition)
            .build();
        translate(&instance, "us-east-1", &[]).unwrap().state_reason
    };
    let time = |text: &str| Some(text.parse::<Timestamp>().unwrap());
    let code = "Client.UserInitiatedShutdown";
    let words = "Client.UserInitiatedShutdown: User initiated shutdown";
    let transition = "User initiated (2026-05-01 10:00:00 GMT)";
    let whole = reason(code, words, transition);
    assert_eq!((whole.code.as_str(), whole.message.as_str()), (code, words));
    assert_eq!(whole.since, time("2026-05-01T10:00:00Z"));
    let bare = reason("", "", "User initiated (2026-05-01 10:00:00 UTC)");
    assert_eq!((bare.code.as_str(), bare.since), ("", time("2026-05-01T10:00:00Z")));
    assert_eq!(bare.message, "User initiated (2026-05-01 10:00:00 UTC)");
    for odd in ["", "User initiated", "(now GMT)", "(2026-05-01 10:00:00 CET)", ")(", "("] {
        assert_eq!(reason(code, words, odd).since, None, "{odd}");
    }
}

#[test]
fn host_is_the_one_of_the_placement() {
    let on = |host: &str| {
        let placement = Placement::builder().host_id(host).build();
        let instance = instance(InstanceStateName::Running).placement(placement).build();
        translate(&instance, "us-east-1", &[]).unwrap().host_id
    };
    assert_eq!(on("h-1").as_deref(), Some("h-1"));
    assert_eq!(on(""), None);
}

#[test]
fn state_that_nobody_knows_is_an_error() {
    let instance = instance(InstanceStateName::from("frozen")).build();
    let error = translate(&instance, "us-east-1", &[]).unwrap_err();
    assert_eq!(error.class, ErrorClass::Unknown);
    assert!(error.message.contains("\"frozen\" of instance i-1"), "{error}");
}
