//! Does every field of a providerSpec reach the call that launches?
//!
//! Read from the cloud's own ledger, after the wire: what the SDK did not send is not there. moto
//! keeps no requests, so over it these launches are only made where it takes them.

use machinist_providers::{IpFamily, LaunchRequest};
use serde_json::{Value, json};

use crate::harness::{Capability, Harness, token};

async fn launched(harness: &Harness, request: &LaunchRequest) -> Value {
    let instance = harness.launch(request).await;
    harness.levers().launch_parameters(&instance.id)
}

pub async fn every_field_of_a_provider_spec_reaches_the_launch(harness: &Harness) {
    if !harness.can(Capability::Ledger) {
        return;
    }
    let spec = &harness.provider_spec;
    let request = harness.request_with(&json!({
        "instanceType": "m6a.large",
        "cpuOptions": {"confidentialCompute": "AMDEncryptedVirtualizationNestedPaging"},
        "keyName": "key",
        "deviceIndex": 0,
        "publicIp": false,
        "networkInterfaceType": "ENA",
        "placement": {"region": spec["placement"]["region"],
                      "availabilityZone": spec["placement"]["availabilityZone"],
                      "tenancy": "dedicated"},
        "placementGroupName": "group",
        "placementGroupPartition": 3,
        "blockDevices": [
            {"ebs": {"volumeSize": 120, "volumeType": "gp3", "iops": 4000, "throughputMib": 250,
                     "encrypted": true, "kmsKey": {"id": "", "arn": "arn:aws:kms:key"},
                     "deleteOnTermination": false}},
            {"deviceName": "/dev/sdb", "ebs": {"volumeSize": 10, "volumeType": "io2", "iops": 500,
                                               "throughputMib": 250}},
            {"deviceName": "/dev/sdc", "ebs": {"volumeSize": 11, "volumeType": "gp2", "iops": 500}},
            {"deviceName": "/dev/sdd", "virtualName": "ephemeral0"},
            {"deviceName": "/dev/sde", "noDevice": ""},
            {"deviceName": "/dev/sdf"},
        ],
        "metadataServiceOptions": {"authentication": "Required"},
        "tags": [{"name": "team", "value": "blue"}, {"name": "team", "value": "red"},
                 {"name": "Name", "value": "evil"}],
    }));
    let parameters = launched(harness, &request).await;
    let root = parameters["BlockDeviceMappings"][0]["DeviceName"].clone();
    let tags = json!([
        {"Key": "team", "Value": "blue"},
        {"Key": "from-cluster", "Value": "yes"},
        {"Key": format!("kubernetes.io/cluster/{}", request.cluster_id), "Value": "owned"},
        {"Key": "Name", "Value": request.machine_name},
        {"Key": "machinist.dev/machine-uid", "Value": request.machine_uid},
    ]);
    let expected = json!({
        "ImageId": spec["ami"]["id"],
        "InstanceType": "m6a.large",
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": token(&request),
        "KeyName": "key",
        "IamInstanceProfile": {"Name": spec["iamInstanceProfile"]["id"]},
        "UserData": parameters["UserData"],
        "NetworkInterfaces": [{
            "DeviceIndex": 0,
            "SubnetId": spec["subnet"]["id"],
            "Groups": [spec["securityGroups"][0]["id"]],
            "AssociatePublicIpAddress": false,
            "InterfaceType": "interface",
        }],
        "Placement": {"Tenancy": "dedicated", "GroupName": "group", "PartitionNumber": 3},
        "BlockDeviceMappings": [
            {"DeviceName": root, "Ebs": {
                "DeleteOnTermination": true, "Encrypted": true, "KmsKeyId": "arn:aws:kms:key",
                "Iops": 4000, "Throughput": 250, "VolumeSize": 120, "VolumeType": "gp3"}},
            {"DeviceName": "/dev/sdb", "Ebs": {
                "DeleteOnTermination": true, "Iops": 500, "VolumeSize": 10, "VolumeType": "io2"}},
            {"DeviceName": "/dev/sdc", "Ebs": {
                "DeleteOnTermination": true, "VolumeSize": 11, "VolumeType": "gp2"}},
            {"DeviceName": "/dev/sdd", "VirtualName": "ephemeral0"},
            {"DeviceName": "/dev/sde", "NoDevice": ""},
        ],
        "MetadataOptions": {"HttpTokens": "required"},
        "CpuOptions": {"AmdSevSnp": "enabled"},
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": tags}, {"ResourceType": "volume", "Tags": tags},
        ],
    });
    assert_eq!(parameters, expected);
    assert!(root.as_str().unwrap().starts_with("/dev/"), "{root}");
    let user_data = &request.user_data.as_ref().unwrap().0;
    assert_eq!(parameters["UserData"]["Length"], user_data.len());

    let efa = json!({"instanceType": "c5n.18xlarge", "networkInterfaceType": "EFA",
                     "cpuOptions": {"confidentialCompute": "Disabled"},
                     "metadataServiceOptions": {"authentication": "Optional"}, "publicIp": true});
    let parameters = launched(harness, &harness.request_with(&efa)).await;
    let interface = &parameters["NetworkInterfaces"][0];
    assert_eq!(interface["InterfaceType"], "efa");
    assert_eq!(interface["AssociatePublicIpAddress"], true);
    assert_eq!(parameters["CpuOptions"], json!({"AmdSevSnp": "disabled"}));
    assert_eq!(parameters["MetadataOptions"], json!({"HttpTokens": "optional"}));
}

pub async fn markets_and_reservations_reach_the_launch(harness: &Harness) {
    if !harness.can(Capability::Ledger) {
        return;
    }
    let reservation = "cr-0123456789abcdef0";
    let spot = |price: Option<&str>| {
        let mut options = json!({
            "SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"
        });
        if let Some(price) = price {
            options["MaxPrice"] = json!(price);
        }
        json!({"MarketType": "spot", "SpotOptions": options})
    };
    let table = [
        (json!({"spotMarketOptions": {"maxPrice": "0.2"}}), spot(Some("0.2")), Value::Null),
        (json!({"spotMarketOptions": {}}), spot(None), Value::Null),
        (json!({"marketType": "Spot"}), spot(None), Value::Null),
        (json!({"marketType": "OnDemand"}), Value::Null, Value::Null),
        (
            json!({"capacityReservationId": reservation}),
            Value::Null,
            json!({"CapacityReservationId": reservation}),
        ),
        (
            json!({"marketType": "CapacityBlock", "capacityReservationId": reservation}),
            json!({"MarketType": "capacity-block"}),
            json!({"CapacityReservationId": reservation}),
        ),
    ];
    for (fields, market, target) in table {
        let parameters = launched(harness, &harness.request_with(&fields)).await;
        assert_eq!(parameters["InstanceMarketOptions"], market, "{fields}");
        assert_eq!(parameters["CapacityReservationSpecification"], target, "{fields}");
    }
}

pub async fn dual_stack_reaches_the_launch(harness: &Harness) {
    if !harness.can(Capability::Ledger) {
        return;
    }
    for ip_family in [IpFamily::DualStackIPv4Primary, IpFamily::DualStackIPv6Primary] {
        let request = LaunchRequest { ip_family, ..harness.request() };
        let parameters = launched(harness, &request).await;
        let interface = &parameters["NetworkInterfaces"][0];
        let is_primary = ip_family == IpFamily::DualStackIPv6Primary;
        assert_eq!(interface["PrimaryIpv6"] == true, is_primary, "{interface}");
        assert_eq!(interface["Ipv6AddressCount"] == 1, is_primary, "{interface}");
        assert_eq!(parameters["MetadataOptions"]["HttpProtocolIpv6"], "enabled");
        assert_eq!(parameters["MetadataOptions"]["HttpTokens"], "required");
        assert_eq!(
            parameters["PrivateDnsNameOptions"],
            json!({
                "HostnameType": "resource-name", "EnableResourceNameDnsARecord": true,
                "EnableResourceNameDnsAAAARecord": true,
            })
        );
    }
}

pub async fn carrier_address_is_asked_for_in_a_wavelength_zone(harness: &Harness) {
    if !harness.can(Capability::Ledger) {
        return;
    }
    let (zone, subnet) = harness.levers().wavelength();
    let region = &harness.provider_spec["placement"]["region"];
    let request = harness.request_with(&json!({
        "publicIp": true, "subnet": {"id": subnet},
        "placement": {"region": region, "availabilityZone": zone},
    }));
    let parameters = launched(harness, &request).await;
    let interface = &parameters["NetworkInterfaces"][0];
    assert_eq!(interface["AssociateCarrierIpAddress"], true);
    assert_eq!(interface["AssociatePublicIpAddress"], Value::Null);
}
