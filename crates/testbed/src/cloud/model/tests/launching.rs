//! What may be launched, and what does a client token promise?

use super::*;

#[test]
fn refused_launches_name_ec2s_code_and_launch_nothing() {
    type Change = fn(&mut RunInstances);
    let table: &[(&str, Change)] = &[
        ("MissingParameter", |launch| launch.image_id = None),
        ("InvalidAMIID.Malformed", |launch| launch.image_id = Some("ami-1".into())),
        ("InvalidAMIID.NotFound", |launch| launch.image_id = Some("ami-00000000000000000".into())),
        ("MissingParameter", |launch| launch.instance_type = None),
        ("InvalidParameterValue", |launch| launch.instance_type = Some("x9.huge".into())),
        ("InvalidParameterValue", |launch| launch.instance_type = Some("m6g.large".into())),
        ("InvalidParameterValue", |launch| launch.min_count = 0),
        ("InvalidParameterValue", |launch| launch.min_count = 2),
        ("InstanceLimitExceeded", |launch| launch.max_count = 1001),
        ("VPCIdNotSpecified", |launch| launch.subnet_id = None),
        ("InvalidSubnetID.NotFound", |launch| launch.subnet_id = Some("subnet-x".into())),
        ("InvalidGroup.NotFound", |launch| {
            launch.security_group_ids = vec!["sg-00000000000000000".into()];
        }),
        ("InvalidGroup.NotFound", |launch| launch.security_groups = vec!["nobody".into()]),
        ("InvalidParameterValue", |launch| launch.client_token = Some("x".repeat(65))),
        ("InvalidParameterValue", |launch| launch.user_data = Some(UserData(vec![0; 16_385]))),
        ("InvalidParameterCombination", |launch| {
            launch.network_interfaces = vec![NetworkInterfaceSpecification::default()];
        }),
        ("InvalidParameterValue", |launch| launch.private_ip_address = Some("10.9.9.9".into())),
        ("InvalidParameterValue", |launch| {
            launch.placement = Some(Placement {
                availability_zone: Some("us-east-1b".into()),
                ..Placement::default()
            });
        }),
        ("InvalidParameterCombination", |launch| {
            launch.cpu_options =
                Some(CpuOptions { amd_sev_snp: Some("enabled".into()), ..CpuOptions::default() });
        }),
        ("InvalidParameterValue", |launch| {
            launch.metadata_options = Some(MetadataOptions {
                http_tokens: Some("maybe".into()),
                ..MetadataOptions::default()
            });
        }),
        ("MissingParameter", |launch| {
            launch.instance_market_options = Some(InstanceMarketOptions {
                market_type: Some("capacity-block".into()),
                spot_options: None,
            });
        }),
        ("InvalidParameterValue", |launch| {
            launch.placement = Some(Placement {
                group_name: Some("group".into()),
                partition_number: Some(8),
                ..Placement::default()
            });
        }),
        ("InvalidParameterCombination", |launch| {
            launch.placement =
                Some(Placement { affinity: Some("host".into()), ..Placement::default() });
        }),
        ("InvalidParameterValue", |launch| {
            launch.maintenance_options =
                Some(MaintenanceOptions { auto_recovery: Some("perhaps".into()) });
        }),
        ("InvalidParameterCombination", |launch| {
            let subnet_id = launch.subnet_id.take();
            launch.security_group_ids.clear();
            launch.network_interfaces = vec![NetworkInterfaceSpecification {
                device_index: Some(0),
                subnet_id,
                associate_carrier_ip_address: Some(true),
                ..NetworkInterfaceSpecification::default()
            }];
        }),
        ("InvalidParameterValue", |launch| {
            launch.tag_specifications = vec![TagSpecification {
                resource_type: "instance".into(),
                tags: vec![Tag { key: "aws:x".into(), value: String::new() }],
            }];
        }),
        ("InvalidBlockDeviceMapping", |launch| {
            let mapping = BlockDeviceMapping {
                device_name: Some("/dev/xvdb".into()),
                ebs: Some(EbsBlockDevice { volume_size: Some(1), ..EbsBlockDevice::default() }),
                ..BlockDeviceMapping::default()
            };
            launch.block_device_mappings = vec![mapping.clone(), mapping];
        }),
    ];
    let mut bench = Bench::new();
    for (expected, change) in table {
        let mut parameters = bench.launch_parameters();
        change(&mut parameters);
        let described = format!("{parameters:?}");
        assert_eq!(code(bench.try_launch(parameters)), *expected, "{described}");
    }
    assert!(bench.cloud.instances.is_empty());
    assert!(bench.cloud.world().subnets.values().all(|subnet| subnet.free_addresses() == 4091));
}

#[test]
fn token_gives_the_same_instance_until_it_is_terminated() {
    let mut bench = Bench::new();
    let launch =
        RunInstances { client_token: Some("machine-1".into()), ..bench.launch_parameters() };
    let first = bench.try_launch(launch.clone()).expect("a launch")[0].id.clone();
    bench.seconds(2);
    let again = bench.try_launch(launch.clone()).expect("the same launch");
    assert_eq!((again[0].id.as_str(), again[0].state), (first.as_str(), InstanceState::Running));

    let changed = RunInstances { key_name: Some("other".into()), ..launch.clone() };
    assert_eq!(code(bench.try_launch(changed)), "IdempotentParameterMismatch");

    bench.call(Request::TerminateInstances(ids(&[&first]))).result.expect("a termination");
    let ending = bench.try_launch(launch.clone()).expect("still the same launch");
    assert_eq!(ending[0].state, InstanceState::ShuttingDown);
    bench.seconds(1);
    assert_eq!(code(bench.try_launch(launch.clone())), "IdempotentInstanceTerminated");

    // The instance fades after a minute; its token is remembered for a day.
    bench.seconds(3600);
    assert!(bench.cloud.instances.is_empty());
    assert_eq!(code(bench.try_launch(launch.clone())), "IdempotentInstanceTerminated");
    bench.seconds(24 * 3600);
    let anew = bench.try_launch(launch).expect("a new launch");
    assert_ne!(anew[0].id, first);
}

#[test]
fn token_counts_in_its_zone_only() {
    let mut bench = Bench::new();
    let launch =
        RunInstances { client_token: Some("machine-1".into()), ..bench.launch_parameters() };
    let elsewhere = RunInstances {
        subnet_id: bench.world().private_subnets.get("us-east-1b").cloned(),
        ..launch.clone()
    };
    let here = bench.try_launch(launch).expect("a launch");
    let there = bench.try_launch(elsewhere).expect("a launch in another zone");
    assert_ne!(here[0].id, there[0].id);
}

#[test]
fn addresses_are_given_back_and_go_round() {
    let mut bench = Bench::new();
    let first = bench.launch_running();
    let address = bench.instance(&first).private_address();
    bench.call(Request::TerminateInstances(ids(&[&first]))).result.expect("a termination");
    bench.seconds(1);
    assert_eq!(bench.instance(&first).private_address(), None);
    let second = bench.launch_running();
    assert_ne!(bench.instance(&second).private_address(), address);
    let wanted = RunInstances {
        private_ip_address: address.map(|address| address.to_string()),
        ..bench.launch_parameters()
    };
    let third = bench.launch_running_with(wanted.clone());
    assert_eq!(bench.instance(&third).private_address(), address);
    assert_eq!(code(bench.try_launch(wanted)), "InvalidIPAddress.InUse");
}

#[test]
fn addresses_are_used_again_at_once_where_that_is_wanted() {
    let mut bench = Bench::with(CloudConfig { reuses_addresses: true, ..CloudConfig::fast() });
    let first = bench.launch_running();
    let address = bench.instance(&first).private_address();
    bench.call(Request::TerminateInstances(ids(&[&first]))).result.expect("a termination");
    bench.seconds(1);
    let second = bench.launch_running();
    assert_eq!(bench.instance(&second).private_address(), address);
}

#[test]
fn full_subnet_refuses_below_the_minimum_and_cuts_above_it() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        let launch = RunInstances { min_count: 1000, max_count: 1000, ..bench.launch_parameters() };
        bench.try_launch(launch).expect("a thousand");
    }
    let launch = RunInstances { min_count: 92, max_count: 100, ..bench.launch_parameters() };
    assert_eq!(code(bench.try_launch(launch)), "InsufficientFreeAddressesInSubnet");
    let launch = RunInstances { min_count: 1, max_count: 100, ..bench.launch_parameters() };
    assert_eq!(bench.try_launch(launch).expect("the rest").len(), 91);
}

#[test]
fn dry_run_finds_the_same_errors_and_changes_nothing() {
    let mut bench = Bench::new();
    let dry = RunInstances { dry_run: true, ..bench.launch_parameters() };
    let refused = RunInstances { instance_type: Some("x9.huge".into()), ..dry.clone() };
    assert_eq!(code(bench.try_launch(dry)), "DryRunOperation");
    assert_eq!(code(bench.try_launch(refused)), "InvalidParameterValue");
    assert!(bench.cloud.instances.is_empty());
}

#[test]
fn private_names_follow_region_and_hostname_type() {
    let mut bench = Bench::with(CloudConfig { region: "eu-west-1".into(), ..CloudConfig::fast() });
    let launch = RunInstances {
        subnet_id: bench.world().private_subnets.get("eu-west-1a").cloned(),
        ..bench.launch_parameters()
    };
    let id = bench.launch_running_with(launch.clone());
    assert_eq!(bench.instance(&id).private_dns_name, "ip-10-0-0-4.eu-west-1.compute.internal");
    let named = RunInstances {
        private_dns_name_options: Some(PrivateDnsNameOptions {
            hostname_type: Some("resource-name".into()),
            ..PrivateDnsNameOptions::default()
        }),
        ..launch
    };
    let id = bench.launch_running_with(named);
    let name = bench.instance(&id).private_dns_name.clone();
    assert_eq!(name, format!("{id}.eu-west-1.compute.internal"));
}

#[test]
fn a_carrier_address_exists_in_a_wavelength_zone_only() {
    let mut bench = Bench::new();
    let launch = |bench: &Bench, public: Option<bool>, carrier: Option<bool>| RunInstances {
        subnet_id: None,
        security_group_ids: Vec::new(),
        network_interfaces: vec![NetworkInterfaceSpecification {
            device_index: Some(0),
            subnet_id: Some(bench.world().wavelength_subnet),
            associate_public_ip_address: public,
            associate_carrier_ip_address: carrier,
            ..NetworkInterfaceSpecification::default()
        }],
        ..bench.launch_parameters()
    };
    let parameters = launch(&bench, None, Some(true));
    let id = bench.launch_running_with(parameters);
    let instance = bench.instance(&id);
    assert_eq!(instance.availability_zone, bench.world().wavelength_zone);
    let interface = instance.primary_interface().expect("an interface");
    assert!(interface.carrier_address.is_some() && interface.public_address.is_none());
    let public = launch(&bench, Some(true), None);
    assert_eq!(code(bench.try_launch(public)), "InvalidParameterCombination");
    assert!(!bench.world().availability_zones.contains(&bench.world().wavelength_zone));
}
