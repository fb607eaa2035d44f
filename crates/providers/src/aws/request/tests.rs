//! What goes into RunInstances, field by field.

use std::collections::BTreeMap;

use machinist_api::RawObject;
use serde_json::{Value, json};

use aws_sdk_ec2::types::{MarketType as Ec2MarketType, SpotInstanceType, Tenancy as Ec2Tenancy};

use super::*;
use crate::{ErrorClass, UserData};

fn config(overrides: &Value) -> AwsMachineProviderConfig {
    let mut spec = json!({
        "ami": {"id": "ami-1"}, "instanceType": "m6i.large", "subnet": {"id": "subnet-1"},
        "securityGroups": [{"id": "sg-1"}]
    });
    for (key, value) in overrides.as_object().unwrap() {
        spec[key] = value.clone();
    }
    AwsMachineProviderConfig::parse(&RawObject::from_value(&spec).unwrap()).unwrap()
}

fn request() -> LaunchRequest {
    LaunchRequest {
        cluster_id: "prod".to_owned(),
        machine_name: "worker-1".to_owned(),
        machine_uid: "uid-1".to_owned(),
        provider_spec: RawObject::from_value(&json!({})).unwrap(),
        user_data: Some(UserData(b"#!/bin/sh".to_vec())),
        cluster_tags: BTreeMap::from([
            ("team".to_owned(), "cluster".to_owned()),
            ("cost".to_owned(), "1".to_owned()),
        ]),
        ip_family: IpFamily::IPv4,
    }
}

fn resolved() -> Resolved {
    Resolved {
        image_id: "ami-1".to_owned(),
        root_device_name: Some("/dev/xvda".to_owned()),
        subnet_id: "subnet-1".to_owned(),
        security_group_ids: vec!["sg-1".to_owned(), "sg-2".to_owned()],
        zone: Some("us-east-1a".to_owned()),
        carrier_ip: false,
        host_id: None,
    }
}

fn built(overrides: &Value) -> RunInstancesInputBuilder {
    let config = config(overrides);
    check(&config).unwrap();
    build(&config, &resolved(), &request()).unwrap()
}

fn refusal(overrides: &Value) -> String {
    let error = check(&config(overrides)).unwrap_err();
    assert_eq!(error.class, ErrorClass::InvalidConfiguration);
    error.message
}

#[test]
fn plain_launch_asks_for_one_instance_with_one_interface() {
    let input = built(&json!({}));
    assert_eq!((input.get_min_count(), input.get_max_count()), (&Some(1), &Some(1)));
    assert_eq!(input.get_image_id().as_deref(), Some("ami-1"));
    assert_eq!(input.get_user_data().as_deref(), Some("IyEvYmluL3No"));
    let [interface] = input.get_network_interfaces().as_deref().unwrap() else {
        panic!("one interface")
    };
    assert_eq!(interface.subnet_id(), Some("subnet-1"));
    assert_eq!(interface.groups(), ["sg-1", "sg-2"]);
    assert_eq!(interface.associate_public_ip_address(), None);
    assert_eq!(input.get_placement(), &None);
    assert_eq!(input.get_instance_market_options(), &None);
    assert_eq!(input.get_block_device_mappings(), &None);
}

#[test]
fn own_tags_come_first_and_nobody_overrides_identity() {
    let input = built(&json!({"tags": [
        {"name": "team", "value": "own"}, {"name": "Name", "value": "evil"},
        {"name": "kubernetes.io/cluster/other", "value": "owned"},
        {"name": "kubernetes.io/cluster/prod", "value": "shared"},
        {"name": "machinist.dev/machine-uid", "value": "evil"}
    ]}));
    let [instance, volume] = input.get_tag_specifications().as_deref().unwrap() else {
        panic!("instance and volume")
    };
    assert_eq!(instance.resource_type(), Some(&ResourceType::Instance));
    assert_eq!(volume.resource_type(), Some(&ResourceType::Volume));
    let shown: Vec<_> = instance
        .tags()
        .iter()
        .map(|tag| format!("{}={}", tag.key().unwrap(), tag.value().unwrap()))
        .collect();
    assert_eq!(
        shown,
        [
            "team=own",
            "cost=1",
            "kubernetes.io/cluster/prod=owned",
            "Name=worker-1",
            "machinist.dev/machine-uid=uid-1",
        ]
    );
    assert_eq!(instance.tags(), volume.tags());
}

#[test]
fn placement_keeps_the_zone_only_without_a_subnet_id() {
    let placement = json!({"availabilityZone": "us-east-1a", "tenancy": "dedicated"});
    let by_id = built(&json!({"placement": placement}));
    let by_id = by_id.get_placement().as_ref().unwrap();
    assert_eq!(by_id.availability_zone(), None);
    assert_eq!(by_id.tenancy(), Some(&Ec2Tenancy::Dedicated));
    let filters = json!({"filters": [{"name": "tag:Name", "values": ["a"]}]});
    let by_filter = built(&json!({"placement": placement, "subnet": filters,
        "placementGroupName": "group", "placementGroupPartition": 2}));
    let by_filter = by_filter.get_placement().as_ref().unwrap();
    assert_eq!(by_filter.availability_zone(), Some("us-east-1a"));
    assert_eq!(by_filter.group_name(), Some("group"));
    assert_eq!(by_filter.partition_number(), Some(2));
}

#[test]
fn host_is_the_users_or_the_one_that_was_allocated() {
    let filters = json!({"filters": [{"name": "tag:Name", "values": ["a"]}]});
    let host = json!({"affinity": "DedicatedHost", "dedicatedHost": {"id": "h-01234567"}});
    let input = built(&json!({
        "placement": {"tenancy": "host", "host": host, "availabilityZone": "us-east-1a"},
        "subnet": filters, "placementGroupName": "group"
    }));
    let placement = input.get_placement().as_ref().unwrap();
    assert_eq!(placement.host_id(), Some("h-01234567"));
    assert_eq!(placement.affinity(), Some("host"));
    assert_eq!(placement.tenancy(), Some(&Ec2Tenancy::Host));
    assert_eq!(placement.availability_zone(), Some("us-east-1a"));
    assert_eq!(placement.group_name(), Some("group"));

    let dynamic = json!({"affinity": "DedicatedHost", "dedicatedHost": {
        "allocationStrategy": "Dynamic",
        "dynamicHostAllocation": {"tags": [{"name": "a", "value": "b"}]}
    }});
    let config = config(&json!({"placement": {"tenancy": "host", "host": dynamic}}));
    check(&config).unwrap();
    let on = |host_id: Option<&str>| {
        let host_id = host_id.map(str::to_owned);
        let resolved = Resolved { host_id, ..resolved() };
        let input = build(&config, &resolved, &request()).unwrap();
        input.get_placement().as_ref().unwrap().host_id().map(str::to_owned)
    };
    assert_eq!(on(None), None);
    assert_eq!(on(Some("h-1")).as_deref(), Some("h-1"));

    let any = json!({"affinity": "AnyAvailable"});
    let input = built(&json!({"placement": {"tenancy": "host", "host": any}}));
    let placement = input.get_placement().as_ref().unwrap();
    assert_eq!((placement.host_id(), placement.affinity()), (None, Some("default")));
}

#[test]
fn dual_stack_reaches_interface_metadata_service_and_names() {
    let of = |ip_family| {
        let request = LaunchRequest { ip_family, ..request() };
        let input = build(&config(&json!({})), &resolved(), &request).unwrap();
        let interface = input.get_network_interfaces().as_ref().unwrap()[0].clone();
        let ipv6_metadata =
            input.get_metadata_options().as_ref().and_then(|options| options.http_protocol_ipv6());
        let ipv6_metadata = ipv6_metadata == Some(&InstanceMetadataProtocolState::Enabled);
        let names = input.get_private_dns_name_options().clone();
        (interface.primary_ipv6(), interface.ipv6_address_count(), ipv6_metadata, names)
    };
    assert_eq!(of(IpFamily::IPv4), (None, None, false, None));
    let (primary, count, ipv6_metadata, names) = of(IpFamily::DualStackIPv4Primary);
    assert_eq!((primary, count, ipv6_metadata), (None, None, true));
    let names = names.unwrap();
    assert_eq!(names.hostname_type(), Some(&HostnameType::ResourceName));
    assert_eq!(names.enable_resource_name_dns_a_record(), Some(true));
    assert_eq!(names.enable_resource_name_dns_aaaa_record(), Some(true));
    let (primary, count, ipv6_metadata, _) = of(IpFamily::DualStackIPv6Primary);
    assert_eq!((primary, count, ipv6_metadata), (Some(true), Some(1), true));
}

#[test]
fn devices_of_the_image_can_be_suppressed() {
    let input = built(&json!({"blockDevices": [
        {"deviceName": "/dev/sdb", "noDevice": ""},
        {"deviceName": "/dev/sdc", "noDevice": "true"}
    ]}));
    let [first, second] = input.get_block_device_mappings().as_deref().unwrap() else {
        panic!("two devices")
    };
    assert_eq!((first.device_name(), first.no_device()), (Some("/dev/sdb"), Some("")));
    assert_eq!(second.no_device(), Some("true"));
}

#[test]
fn public_address_is_a_carriers_in_a_wavelength_zone() {
    let config =
        config(&json!({"publicIp": true, "networkInterfaceType": "EFA", "deviceIndex": 0}));
    let interface = network_interface(&config, &resolved(), IpFamily::IPv4).unwrap();
    assert_eq!(interface.associate_public_ip_address(), Some(true));
    assert_eq!(interface.interface_type(), Some("efa"));
    let carrier = Resolved { carrier_ip: true, ..resolved() };
    let interface = network_interface(&config, &carrier, IpFamily::IPv4).unwrap();
    assert_eq!(interface.associate_public_ip_address(), None);
    assert_eq!(interface.associate_carrier_ip_address(), Some(true));
}

#[test]
fn unnamed_device_is_the_root_and_volumes_go_with_the_instance() {
    let input = built(&json!({"blockDevices": [
        {"ebs": {"volumeSize": 120, "volumeType": "gp3", "iops": 4000, "throughputMib": 250,
                 "encrypted": true, "kmsKey": {"arn": "arn:key"}, "deleteOnTermination": false}},
        {"deviceName": "/dev/sdb", "ebs": {"volumeSize": 10, "volumeType": "gp2", "iops": 100,
                                           "throughputMib": 250}},
        {"deviceName": "/dev/sdc"}, {"deviceName": "/dev/sdd", "virtualName": "ephemeral0"}
    ]}));
    let [root, second, ephemeral] = input.get_block_device_mappings().as_deref().unwrap() else {
        panic!("three devices")
    };
    assert_eq!(root.device_name(), Some("/dev/xvda"));
    let ebs = root.ebs().unwrap();
    assert_eq!(
        (ebs.iops(), ebs.throughput(), ebs.volume_size()),
        (Some(4000), Some(250), Some(120))
    );
    assert_eq!((ebs.encrypted(), ebs.kms_key_id()), (Some(true), Some("arn:key")));
    assert_eq!(ebs.delete_on_termination(), Some(true));
    let ebs = second.ebs().unwrap();
    assert_eq!((ebs.iops(), ebs.throughput()), (None, None));
    assert_eq!(ephemeral.virtual_name(), Some("ephemeral0"));
}

#[test]
fn markets_are_spot_capacity_block_or_none() {
    let input = built(&json!({"spotMarketOptions": {"maxPrice": "0.2"}}));
    let market = input.get_instance_market_options().as_ref().unwrap();
    assert_eq!(market.market_type(), Some(&Ec2MarketType::Spot));
    let spot = market.spot_options().unwrap();
    assert_eq!(spot.max_price(), Some("0.2"));
    assert_eq!(spot.spot_instance_type(), Some(&SpotInstanceType::OneTime));
    let reservation = "cr-0123456789abcdef0";
    let input =
        built(&json!({"marketType": "CapacityBlock", "capacityReservationId": reservation}));
    let market = input.get_instance_market_options().as_ref().unwrap();
    assert_eq!(market.market_type(), Some(&Ec2MarketType::CapacityBlock));
    let target = input.get_capacity_reservation_specification().as_ref().unwrap();
    let target = target.capacity_reservation_target().unwrap();
    assert_eq!(target.capacity_reservation_id(), Some(reservation));
}

#[test]
fn cpu_and_metadata_options_profile_and_key_are_carried() {
    let input = built(&json!({
        "cpuOptions": {"confidentialCompute": "AMDEncryptedVirtualizationNestedPaging"},
        "metadataServiceOptions": {"authentication": "Required"},
        "iamInstanceProfile": {"id": "worker"}, "keyName": "key"
    }));
    let cpu = input.get_cpu_options().as_ref().unwrap();
    assert_eq!(cpu.amd_sev_snp(), Some(&AmdSevSnpSpecification::Enabled));
    let metadata = input.get_metadata_options().as_ref().unwrap();
    assert_eq!(metadata.http_tokens(), Some(&HttpTokensState::Required));
    let profile = input.get_iam_instance_profile().as_ref().unwrap();
    assert_eq!((profile.name(), profile.arn()), (Some("worker"), None));
    assert_eq!(input.get_key_name().as_deref(), Some("key"));
}

#[test]
fn what_aws_would_refuse_is_refused_with_the_field() {
    let spot = json!({"maxPrice": "1"});
    let reservation = "cr-0123456789abcdef0";
    let on_host = |host: Value| json!({"placement": {"tenancy": "host", "host": host}});
    let dynamic = |extra: &str, value: Value| {
        let mut dedicated = json!({"allocationStrategy": "Dynamic"});
        dedicated[extra] = value;
        json!({"affinity": "DedicatedHost", "dedicatedHost": dedicated})
    };
    let many_tags: Vec<_> =
        (0..51).map(|number| json!({"name": number.to_string(), "value": ""})).collect();
    let user_provided =
        |id: &str| json!({"affinity": "DedicatedHost", "dedicatedHost": {"id": id}});
    let table = [
        (json!({"instanceType": ""}), "providerSpec.instanceType: "),
        (json!({"tags": [{"name": "", "value": "a"}]}), "providerSpec.tags[0].name: "),
        (
            json!({"capacityReservationId": "fooobaar"}),
            "providerSpec.capacityReservationId: invalid value for capacityReservationId: \
             \"fooobaar\", it must start with 'cr-' and be exactly 20 characters long",
        ),
        (json!({"marketType": "CapacityBlock"}), "providerSpec.marketType: CapacityBlock needs"),
        (json!({"marketType": "OnDemand", "spotMarketOptions": spot}), "providerSpec.marketType: "),
        (
            json!({"spotMarketOptions": spot, "capacityReservationId": reservation}),
            "providerSpec.marketType: Spot does not go",
        ),
        (json!({"placementGroupPartition": 2}), "providerSpec.placementGroupPartition: "),
        (
            json!({"placementGroupName": "a", "placementGroupPartition": 8}),
            "providerSpec.placementGroupPartition: 8 is not",
        ),
        (
            on_host(dynamic("id", json!("h-01234567"))),
            "providerSpec.placement.host.dedicatedHost.id: does not go with",
        ),
        (
            on_host(dynamic("dynamicHostAllocation", json!({"tags": many_tags}))),
            "providerSpec.placement.host.dedicatedHost.dynamicHostAllocation.tags: 51 tags",
        ),
        (
            on_host(dynamic("dynamicHostAllocation", json!({"tags": [{"name": ""}]}))),
            "providerSpec.placement.host.dedicatedHost.dynamicHostAllocation.tags[0].name: ",
        ),
        (
            on_host(json!({"affinity": "AnyAvailable",
                           "dedicatedHost": {"allocationStrategy": "Dynamic"}})),
            "providerSpec.placement.host.affinity: AnyAvailable does not go",
        ),
        (
            on_host(json!({"affinity": "DedicatedHost", "dedicatedHost": {
                "id": "h-01234567", "dynamicHostAllocation": {"tags": []}}})),
            "providerSpec.placement.host.dedicatedHost.dynamicHostAllocation: only goes",
        ),
        (
            on_host(user_provided("h-1")),
            "providerSpec.placement.host.dedicatedHost.id: \"h-1\" is not",
        ),
        (
            on_host(json!({"affinity": "DedicatedHost"})),
            "providerSpec.placement.host.dedicatedHost.id: ",
        ),
        (on_host(json!({})), "providerSpec.placement.host.affinity: "),
        (
            json!({"placement": {"host": user_provided("h-01234567")}}),
            "providerSpec.placement.host: only goes with providerSpec.placement.tenancy host",
        ),
        (
            json!({"blockDevices": [{"ebs": {}}, {"ebs": {}}]}),
            "providerSpec.blockDevices[1]: non root device must have name",
        ),
        (
            json!({"blockDevices": [{"ebs": {"volumeSize": 3_000_000_000_u64}}]}),
            "providerSpec.blockDevices[0].ebs.volumeSize: 3000000000 is out of range",
        ),
        (json!({"deviceIndex": -1}), "providerSpec.deviceIndex: -1 is out of range"),
    ];
    for (overrides, expected) in table {
        let message = refusal(&overrides);
        assert!(message.starts_with(expected), "{message} is not {expected}");
    }
}
