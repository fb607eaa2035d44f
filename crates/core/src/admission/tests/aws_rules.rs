//! Every row of the table of refusals for AWS.

use super::*;

/// What is laid over a whole providerSpec, and the refusals that follow.
fn check(rows: &[(Value, &[&str])]) {
    for (overrides, expected) in rows {
        let spec = with(whole_spec(), overrides);
        for (kind, object) in
            [(Kind::Machine, machine(spec.clone())), (Kind::MachineSet, machine_set(spec))]
        {
            let verdict = verdict(kind, &object, None);
            assert_eq!(faults(&verdict), *expected, "{kind:?} {overrides}");
        }
    }
}

#[test]
fn required_fields() {
    check(&[
        (json!({}), &[]),
        (
            json!({"ami": null}),
            &["providerSpec.ami: Required value: expected providerSpec.ami.id to be populated"],
        ),
        (
            json!({"ami": {"id": null, "filters": [{"name": "a", "values": ["b"]}]}}),
            &["providerSpec.ami: Required value: expected providerSpec.ami.id to be populated"],
        ),
        (
            json!({"placement": {"region": ""}}),
            &[
                "providerSpec.placement.region: Required value: expected providerSpec.placement.region to be populated",
            ],
        ),
        (
            json!({"placement": null}),
            &[
                "providerSpec.placement.region: Required value: expected providerSpec.placement.region to be populated",
            ],
        ),
        (
            json!({"instanceType": ""}),
            &[
                "providerSpec.instanceType: Required value: expected providerSpec.instanceType to be populated",
            ],
        ),
        (
            json!({"userDataSecret": null}),
            &[
                "providerSpec.userDataSecret: Required value: expected providerSpec.userDataSecret to be populated",
            ],
        ),
        (
            json!({"userDataSecret": {"name": ""}}),
            &[
                "providerSpec.userDataSecret.name: Required value: expected providerSpec.userDataSecret.name to be populated",
            ],
        ),
        (
            json!({"credentialsSecret": null}),
            &[
                "providerSpec.credentialsSecret: Required value: expected providerSpec.credentialsSecret to be populated",
            ],
        ),
        (json!({"credentialsSecret": {"name": ""}}), &[]),
    ]);
}

#[test]
fn capacity_reservations() {
    let malformed = |id: &str| {
        format!(
            "providerSpec.capacityReservationId: Invalid value: \"{id}\": invalid value for \
             capacityReservationId: \"{id}\", it must start with 'cr-' and be exactly 20 characters \
             long with 17 hexadecimal characters"
        )
    };
    let good = "cr-0123456789abcdef0";
    check(&[
        (json!({"capacityReservationId": good}), &[]),
        (json!({"capacityReservationId": ""}), &[]),
        (json!({"capacityReservationId": "fooobaar"}), &[malformed("fooobaar").as_str()]),
        (
            json!({"capacityReservationId": "cr-0123456789abcdef"}),
            &[malformed("cr-0123456789abcdef").as_str()],
        ),
        (
            json!({"capacityReservationId": "cr-0123456789ABCDEF0"}),
            &[malformed("cr-0123456789ABCDEF0").as_str()],
        ),
        (
            json!({"capacityReservationId": good, "spotMarketOptions": {}}),
            &[
                "providerSpec.capacityReservationId: Forbidden: may not be set together with providerSpec.spotMarketOptions",
            ],
        ),
    ]);
}

#[test]
fn market_types() {
    let reservation = "cr-0123456789abcdef0";
    check(&[
        (json!({"marketType": ""}), &[]),
        (json!({"marketType": "OnDemand"}), &[]),
        (json!({"marketType": "OnDemand", "capacityReservationId": reservation}), &[]),
        (json!({"marketType": "Spot"}), &[]),
        (json!({"marketType": "Spot", "spotMarketOptions": {"maxPrice": "0.1"}}), &[]),
        (json!({"spotMarketOptions": {}}), &[]),
        (json!({"marketType": "CapacityBlock", "capacityReservationId": reservation}), &[]),
        (
            json!({"marketType": "OnDemand", "spotMarketOptions": {}}),
            &[
                "providerSpec.marketType: Invalid value: \"OnDemand\": must be Spot or empty when providerSpec.spotMarketOptions is set",
            ],
        ),
        (
            json!({"marketType": "CapacityBlock", "spotMarketOptions": {}, "capacityReservationId": reservation}),
            &[
                "providerSpec.marketType: Invalid value: \"CapacityBlock\": must be Spot or empty when providerSpec.spotMarketOptions is set",
            ],
        ),
        (
            json!({"marketType": "CapacityBlock"}),
            &[
                "providerSpec.marketType: Invalid value: \"CapacityBlock\": providerSpec.capacityReservationId must be set for a capacity block",
            ],
        ),
        (
            json!({"marketType": "Spot", "capacityReservationId": reservation}),
            &[
                "providerSpec.marketType: Invalid value: \"Spot\": may not be Spot when providerSpec.capacityReservationId is set",
            ],
        ),
        (
            json!({"marketType": "Auction"}),
            &[
                "providerSpec.marketType: Unsupported value: \"Auction\": supported values: \"OnDemand\", \"Spot\", \"CapacityBlock\"",
            ],
        ),
    ]);
}

#[test]
fn throughput_of_volumes() {
    let device = |ebs: Value| json!({"blockDevices": [{}, {"ebs": ebs}]});
    check(&[
        (device(json!({"volumeType": "gp3", "throughputMib": 125})), &[]),
        (device(json!({"volumeType": "gp3", "throughputMib": 2000})), &[]),
        (device(json!({"volumeType": "gp2"})), &[]),
        (device(json!({"throughputMib": 1})), &[]),
        (
            device(json!({"volumeType": "gp2", "throughputMib": 200})),
            &[
                "providerSpec.blockDevices[1].ebs.throughputMib: Invalid value: 200: only volumes of type gp3 have a throughput",
            ],
        ),
        (
            device(json!({"volumeType": "gp3", "throughputMib": 124})),
            &[
                "providerSpec.blockDevices[1].ebs.throughputMib: Invalid value: 124: must be between 125 and 2000",
            ],
        ),
        (
            device(json!({"volumeType": "gp3", "throughputMib": 2001})),
            &[
                "providerSpec.blockDevices[1].ebs.throughputMib: Invalid value: 2001: must be between 125 and 2000",
            ],
        ),
    ]);
}

#[test]
fn tenancy_and_host() {
    let on_host = |host: Value| json!({"placement": {"tenancy": "host", "host": host}});
    check(&[
        (json!({"placement": {"tenancy": ""}}), &[]),
        (json!({"placement": {"tenancy": "default"}}), &[]),
        (json!({"placement": {"tenancy": "dedicated"}}), &[]),
        (json!({"placement": {"tenancy": "host"}}), &[]),
        (
            json!({"placement": {"tenancy": "shared"}}),
            &[
                "providerSpec.tenancy: Unsupported value: \"shared\": supported values: \"default\", \"dedicated\", \"host\"",
            ],
        ),
        (
            json!({"placement": {"host": {"affinity": "AnyAvailable"}}}),
            &["spec.placement.host: Forbidden: may only be set when the tenancy is host"],
        ),
        (
            json!({"placement": {"tenancy": "dedicated", "host": {"affinity": "AnyAvailable"}}}),
            &["spec.placement.host: Forbidden: may only be set when the tenancy is host"],
        ),
        (on_host(json!({"affinity": "AnyAvailable"})), &[]),
        (
            on_host(json!({})),
            &[
                "spec.placement.host.affinity: Required value: expected AnyAvailable or DedicatedHost",
            ],
        ),
        (
            on_host(json!({"affinity": "Nearest"})),
            &[
                "spec.placement.host.affinity: Unsupported value: \"Nearest\": supported values: \"AnyAvailable\", \"DedicatedHost\"",
            ],
        ),
        (
            on_host(
                json!({"affinity": "AnyAvailable", "dedicatedHost": {"allocationStrategy": "Dynamic"}}),
            ),
            &[
                "spec.placement.host.affinity: Invalid value: \"AnyAvailable\": must be DedicatedHost when the host is allocated for the machine",
            ],
        ),
        (
            on_host(json!({"affinity": "DedicatedHost"})),
            &[
                "spec.placement.host.dedicatedHost: Required value: affinity DedicatedHost needs a host",
            ],
        ),
    ]);
}

#[test]
fn dedicated_hosts() {
    let dedicated = |host: Value| json!({"placement": {"tenancy": "host", "host": {"affinity": "DedicatedHost", "dedicatedHost": host}}});
    let tags = |count: usize| vec![json!({"name": "a", "value": "b"}); count];
    let wrong_id = |id: &str| {
        format!(
            "spec.placement.host.dedicatedHost.id: Invalid value: \"{id}\": must be 'h-' and 8 or 17 \
             lower case hexadecimal characters"
        )
    };
    check(&[
        (dedicated(json!({"id": "h-01234567"})), &[]),
        (
            dedicated(json!({"allocationStrategy": "UserProvided", "id": "h-0123456789abcdef0"})),
            &[],
        ),
        (dedicated(json!({"allocationStrategy": "Dynamic"})), &[]),
        (
            dedicated(
                json!({"allocationStrategy": "Dynamic", "dynamicHostAllocation": {"tags": tags(50)}}),
            ),
            &[],
        ),
        (
            dedicated(json!({"allocationStrategy": "UserProvided"})),
            &[
                "spec.placement.host.dedicatedHost.id: Required value: a host of the user's is named by its id",
            ],
        ),
        (
            dedicated(json!({"allocationStrategy": "UserProvided", "id": "h-012"})),
            &[wrong_id("h-012").as_str()],
        ),
        (dedicated(json!({"id": "i-01234567"})), &[wrong_id("i-01234567").as_str()]),
        (
            dedicated(json!({"allocationStrategy": "Dynamic", "id": "h-01234567"})),
            &[
                "spec.placement.host.dedicatedHost.id: Forbidden: may not be set when the allocationStrategy is Dynamic",
            ],
        ),
        (
            dedicated(json!({"id": "h-01234567", "dynamicHostAllocation": {"tags": tags(1)}})),
            &[
                "spec.placement.host.dedicatedHost.dynamicHostAllocation: Forbidden: may only be set when the allocationStrategy is Dynamic",
            ],
        ),
        (
            dedicated(json!({"allocationStrategy": "Dynamic", "dynamicHostAllocation": {}})),
            &[
                "spec.placement.host.dedicatedHost.dynamicHostAllocation: Required value: expected between 1 and 50 tags",
            ],
        ),
        (
            dedicated(
                json!({"allocationStrategy": "Dynamic", "dynamicHostAllocation": {"tags": []}}),
            ),
            &[
                "spec.placement.host.dedicatedHost.dynamicHostAllocation: Required value: expected between 1 and 50 tags",
            ],
        ),
        (
            dedicated(
                json!({"allocationStrategy": "Dynamic", "dynamicHostAllocation": {"tags": tags(51)}}),
            ),
            &[
                "spec.placement.host.dedicatedHost.dynamicHostAllocation: Invalid value: 51: expected between 1 and 50 tags",
            ],
        ),
        (
            dedicated(json!({"allocationStrategy": "Rented"})),
            &[
                "spec.placement.host.dedicatedHost.allocationStrategy: Unsupported value: \"Rented\": supported values: \"UserProvided\", \"Dynamic\"",
            ],
        ),
    ]);
}

#[test]
fn the_control_plane_has_no_hosts_of_its_own() {
    let spec = with(whole_spec(), &json!({"placement": {"tenancy": "host"}}));
    for label in ["cluster-api-machine-role", "cluster-api-machine-type"] {
        let mut machine = machine(spec.clone());
        machine["metadata"]["labels"][format!("machine.openshift.io/{label}")] = json!("master");
        assert_eq!(
            faults(&verdict(Kind::Machine, &machine, None)),
            ["spec.placement.tenancy: Forbidden: host is not for machines of the control plane"]
        );
    }
    let mut set = machine_set(spec);
    set["metadata"]["labels"] = json!({"machine.openshift.io/cluster-api-machine-role": "master"});
    assert_eq!(faults(&verdict(Kind::MachineSet, &set, None)), Vec::<String>::new());
}

#[test]
fn placement_groups() {
    let partition = |partition: i32| json!({"placementGroupName": "group", "placementGroupPartition": partition});
    check(&[
        (partition(1), &[]),
        (partition(7), &[]),
        (json!({"placementGroupName": "group"}), &[]),
        (
            partition(0),
            &["providerSpec.placementGroupPartition: Invalid value: 0: must be between 1 and 7"],
        ),
        (
            partition(8),
            &["providerSpec.placementGroupPartition: Invalid value: 8: must be between 1 and 7"],
        ),
        (
            json!({"placementGroupPartition": 3}),
            &[
                "providerSpec.placementGroupPartition: Invalid value: 3: providerSpec.placementGroupName must be set with it",
            ],
        ),
    ]);
}

#[test]
fn words_with_few_values() {
    check(&[
        (json!({"networkInterfaceType": "ENA"}), &[]),
        (json!({"networkInterfaceType": "EFA"}), &[]),
        (json!({"networkInterfaceType": ""}), &[]),
        (
            json!({"networkInterfaceType": "efa"}),
            &[
                "providerSpec.networkInterfaceType: Unsupported value: \"efa\": supported values: \"ENA\", \"EFA\"",
            ],
        ),
        (json!({"metadataServiceOptions": {}}), &[]),
        (json!({"metadataServiceOptions": {"authentication": ""}}), &[]),
        (json!({"metadataServiceOptions": {"authentication": "Optional"}}), &[]),
        (json!({"metadataServiceOptions": {"authentication": "Required"}}), &[]),
        (
            json!({"metadataServiceOptions": {"authentication": "fooobaar"}}),
            &[
                "providerSpec.metadataServiceOptions.authentication: Invalid value: \"fooobaar\": Allowed values are either 'Optional' or 'Required'",
            ],
        ),
        (json!({"cpuOptions": {"confidentialCompute": "Disabled"}}), &[]),
        (
            json!({"cpuOptions": {"confidentialCompute": "AMDEncryptedVirtualizationNestedPaging"}}),
            &[],
        ),
        (
            json!({"cpuOptions": {}}),
            &[
                "providerSpec.CPUOptions: Required value: expected providerSpec.cpuOptions.confidentialCompute to be populated",
            ],
        ),
        (
            json!({"cpuOptions": {"confidentialCompute": "Maybe"}}),
            &[
                "providerSpec.CPUOptions.ConfidentialCompute: Unsupported value: \"Maybe\": supported values: \"Disabled\", \"AMDEncryptedVirtualizationNestedPaging\"",
            ],
        ),
    ]);
}

#[test]
fn fields_of_another_type_are_named() {
    check(&[
        (
            json!({"subnet": {"id": 5}}),
            &["providerSpec.subnet.id: Invalid value: 5: must be a string"],
        ),
        (
            json!({"publicIp": "yes"}),
            &["providerSpec.publicIp: Invalid value: \"yes\": must be true or false"],
        ),
        (
            json!({"deviceIndex": 1.5}),
            &["providerSpec.deviceIndex: Invalid value: 1.5: must be a whole number of 64 bits"],
        ),
        (
            json!({"placementGroupName": "a", "placementGroupPartition": 4_294_967_297_i64}),
            &[
                "providerSpec.placementGroupPartition: Invalid value: 4294967297: must be a whole number of 32 bits",
            ],
        ),
        (json!({"tags": {}}), &["providerSpec.tags: Invalid value: {}: must be a list"]),
        (
            json!({"blockDevices": [{}, {"ebs": {"volumeSize": "big"}}]}),
            &[
                "providerSpec.blockDevices[1].ebs.volumeSize: Invalid value: \"big\": must be a whole number of 64 bits",
            ],
        ),
        (
            json!({"securityGroups": ["sg-1"]}),
            &["providerSpec.securityGroups[0]: Invalid value: \"sg-1\": must be an object"],
        ),
    ]);
}

#[test]
fn several_faults_come_in_one_message() {
    let spec = with(whole_spec(), &json!({"ami": null, "instanceType": null}));
    let verdict = verdict(Kind::Machine, &machine(spec), None);
    assert_eq!(
        fault::message(&verdict.faults),
        "[providerSpec.ami: Required value: expected providerSpec.ami.id to be populated, \
         providerSpec.instanceType: Required value: expected providerSpec.instanceType to be \
         populated]"
    );
}
