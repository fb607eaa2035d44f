"""What can be launched, and does a launch keep what was asked?"""

import datetime
import uuid

from support import CloudTest, admin


class Launches(CloudTest):
    def test_full_launch_keeps_what_was_asked(self):
        data = b"#cloud-config\n" + bytes(range(256))
        [instance] = self.launch(
            SubnetId=None,
            SecurityGroupIds=None,
            NetworkInterfaces=[
                {
                    "DeviceIndex": 0,
                    "SubnetId": self.world["publicSubnets"]["us-east-1c"],
                    "Groups": [
                        self.world["workerSecurityGroup"],
                        self.world["masterSecurityGroup"],
                    ],
                    "AssociatePublicIpAddress": True,
                    "Ipv6AddressCount": 1,
                    "PrimaryIpv6": True,
                    "DeleteOnTermination": True,
                }
            ],
            UserData=data,
            KeyName="operators",
            IamInstanceProfile={"Name": self.world["workerInstanceProfile"]},
            Placement={"AvailabilityZone": "us-east-1c", "Tenancy": "dedicated"},
            MetadataOptions={
                "HttpTokens": "required",
                "HttpPutResponseHopLimit": 2,
                "HttpProtocolIpv6": "enabled",
            },
            CpuOptions={"CoreCount": 1, "ThreadsPerCore": 1},
            PrivateDnsNameOptions={
                "HostnameType": "resource-name",
                "EnableResourceNameDnsARecord": True,
                "EnableResourceNameDnsAAAARecord": True,
            },
            CapacityReservationSpecification={"CapacityReservationPreference": "none"},
            BlockDeviceMappings=[
                {
                    "DeviceName": "/dev/xvda",
                    "Ebs": {
                        "VolumeSize": 120,
                        "VolumeType": "gp3",
                        "Iops": 4000,
                        "Throughput": 200,
                        "Encrypted": True,
                        "DeleteOnTermination": True,
                    },
                },
                {
                    "DeviceName": "/dev/xvdb",
                    "Ebs": {"VolumeSize": 10, "VolumeType": "gp2", "DeleteOnTermination": False},
                },
            ],
            TagSpecifications=[
                {
                    "ResourceType": "instance",
                    "Tags": [
                        {"Key": "Name", "Value": "a <b> & 'c'"},
                        {"Key": "kubernetes.io/cluster/x", "Value": "owned"},
                    ],
                },
                {"ResourceType": "volume", "Tags": [{"Key": "Name", "Value": "disk"}]},
            ],
            EbsOptimized=True,
            Monitoring={"Enabled": True},
            ClientToken="full-" + uuid.uuid4().hex,
        )
        self.assertEqual(instance["State"], {"Code": 0, "Name": "pending"})
        running = self.wait_for_state(instance["InstanceId"], "running")
        self.assertEqual(running["State"]["Code"], 16)
        self.assertEqual(running["Placement"]["AvailabilityZone"], "us-east-1c")
        self.assertEqual(running["Placement"]["Tenancy"], "dedicated")
        self.assertEqual(running["SubnetId"], self.world["publicSubnets"]["us-east-1c"])
        self.assertEqual(running["VpcId"], self.world["vpcId"])
        self.assertEqual(running["PrivateDnsName"], f"{instance['InstanceId']}.ec2.internal")
        self.assertTrue(running["PublicIpAddress"])
        self.assertTrue(running["PublicDnsName"].startswith("ec2-"))
        self.assertEqual(
            {g["GroupId"] for g in running["SecurityGroups"]},
            {self.world["workerSecurityGroup"], self.world["masterSecurityGroup"]},
        )
        self.assertEqual(running["KeyName"], "operators")
        self.assertIn(self.world["workerInstanceProfile"], running["IamInstanceProfile"]["Arn"])
        self.assertEqual(running["MetadataOptions"]["HttpTokens"], "required")
        self.assertEqual(running["MetadataOptions"]["HttpPutResponseHopLimit"], 2)
        self.assertEqual(running["CpuOptions"], {"CoreCount": 1, "ThreadsPerCore": 1})
        self.assertEqual(running["PrivateDnsNameOptions"]["HostnameType"], "resource-name")
        self.assertEqual(
            running["CapacityReservationSpecification"]["CapacityReservationPreference"], "none"
        )
        self.assertEqual(
            [b["DeviceName"] for b in running["BlockDeviceMappings"]], ["/dev/xvda", "/dev/xvdb"]
        )
        self.assertEqual(
            [b["Ebs"]["DeleteOnTermination"] for b in running["BlockDeviceMappings"]], [True, False]
        )
        self.assertEqual({t["Key"]: t["Value"] for t in running["Tags"]}["Name"], "a <b> & 'c'")
        self.assertTrue(running["EbsOptimized"])
        self.assertEqual(running["Monitoring"]["State"], "enabled")
        [interface] = running["NetworkInterfaces"]
        self.assertEqual(interface["Status"], "in-use")
        self.assertEqual(interface["PrivateIpAddress"], running["PrivateIpAddress"])
        self.assertEqual(len(interface["Ipv6Addresses"]), 1)
        self.assertTrue(interface["Ipv6Addresses"][0]["IsPrimaryIpv6"])
        self.assertEqual(interface["Association"]["PublicIp"], running["PublicIpAddress"])
        self.assertIsInstance(running["LaunchTime"], datetime.datetime)

    def test_private_name_follows_the_address(self):
        [instance] = self.launch()
        dashed = instance["PrivateIpAddress"].replace(".", "-")
        self.assertEqual(instance["PrivateDnsName"], f"ip-{dashed}.ec2.internal")
        self.assertNotIn("PublicIpAddress", instance)

    def test_counts(self):
        instances = self.launch(MinCount=2, MaxCount=3)
        self.assertEqual(len(instances), 3)
        self.assertEqual([i["AmiLaunchIndex"] for i in instances], [0, 1, 2])
        self.assertEqual(len({i["PrivateIpAddress"] for i in instances}), 3)
        self.assert_error("InvalidParameterValue", 400, self.launch, MinCount=3, MaxCount=2)

    def test_spot(self):
        [instance] = self.launch(
            InstanceMarketOptions={
                "MarketType": "spot",
                "SpotOptions": {
                    "SpotInstanceType": "one-time",
                    "InstanceInterruptionBehavior": "terminate",
                    "MaxPrice": "0.25",
                },
            }
        )
        self.assertEqual(instance["InstanceLifecycle"], "spot")
        self.assertTrue(instance["SpotInstanceRequestId"].startswith("sir-"))
        self.wait_for_state(instance["InstanceId"], "running")
        self.assert_error(
            "UnsupportedOperation",
            400,
            self.ec2.stop_instances,
            InstanceIds=[instance["InstanceId"]],
        )
        status, answer = admin(
            "POST", f"/instances/{instance['InstanceId']}/spot-notice", {"after": "200ms"}
        )
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["spotNotice"]["action"], "terminate")
        gone = self.wait_for_state(instance["InstanceId"], "terminated")
        self.assertEqual(gone["StateReason"]["Code"], "Server.SpotInstanceTermination")

    def test_client_token(self):
        token = "token-" + uuid.uuid4().hex
        [first] = self.launch(ClientToken=token)
        [again] = self.launch(ClientToken=token)
        self.assertEqual(first["InstanceId"], again["InstanceId"])
        self.assertEqual(again["ClientToken"], token)
        self.wait_for_state(first["InstanceId"], "running")
        [later] = self.launch(ClientToken=token)
        self.assertEqual(later["State"]["Name"], "running")
        self.assert_error(
            "IdempotentParameterMismatch",
            400,
            self.launch,
            ClientToken=token,
            InstanceType="m5.xlarge",
        )
        self.assert_error(
            "IdempotentParameterMismatch", 400, self.launch, ClientToken=token, UserData="other"
        )
        found = self.ec2.describe_instances(Filters=[{"Name": "client-token", "Values": [token]}])[
            "Reservations"
        ]
        self.assertEqual(
            [i["InstanceId"] for r in found for i in r["Instances"]], [first["InstanceId"]]
        )
        # In another zone, the same token counts anew, as AWS documents.
        [elsewhere] = self.launch(
            ClientToken=token, SubnetId=self.world["privateSubnets"]["us-east-1b"]
        )
        self.assertNotEqual(elsewhere["InstanceId"], first["InstanceId"])
        self.ec2.terminate_instances(InstanceIds=[first["InstanceId"]])
        self.wait_for_state(first["InstanceId"], "terminated")
        self.assert_error("IdempotentInstanceTerminated", 400, self.launch, ClientToken=token)

    def test_refused_launches(self):
        for code, status, changes in [
            ("InvalidSubnetID.NotFound", 400, {"SubnetId": "subnet-00000000000000000"}),
            ("InvalidGroup.NotFound", 400, {"SecurityGroupIds": ["sg-00000000000000000"]}),
            ("InvalidAMIID.NotFound", 400, {"ImageId": "ami-00000000000000000"}),
            ("InvalidAMIID.Malformed", 400, {"ImageId": "ami-xyz"}),
            ("InvalidParameterValue", 400, {"InstanceType": "x9.huge"}),
            ("InvalidParameterValue", 400, {"InstanceType": "m6g.large"}),
            ("InvalidParameterValue", 400, {"Placement": {"AvailabilityZone": "us-east-1b"}}),
            ("InvalidParameterValue", 400, {"UserData": "x" * 20000}),
            (
                "InvalidParameterValue",
                400,
                {
                    "TagSpecifications": [
                        {"ResourceType": "vpc", "Tags": [{"Key": "a", "Value": "b"}]}
                    ]
                },
            ),
            (
                "InvalidBlockDeviceMapping",
                400,
                {"BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 1}}]},
            ),
            (
                "InvalidParameterCombination",
                400,
                {
                    "BlockDeviceMappings": [
                        {
                            "DeviceName": "/dev/xvdb",
                            "Ebs": {"VolumeSize": 9, "VolumeType": "gp2", "Iops": 100},
                        }
                    ]
                },
            ),
            ("VPCIdNotSpecified", 400, {"SubnetId": None}),
            ("MissingParameter", 400, {"ImageId": None}),
            ("UnsupportedOperation", 400, {"LaunchTemplate": {"LaunchTemplateName": "x"}}),
        ]:
            with self.subTest(code=code, changes=changes):
                self.assert_error(code, status, self.launch, **changes)
        _, ledger = admin("GET", "/ledger")
        self.assertNotIn(
            "ami-00000000000000000", {i["parameters"].get("ImageId") for i in ledger["instances"]}
        )

    def test_dry_run(self):
        token = uuid.uuid4().hex
        self.assert_error("DryRunOperation", 412, self.launch, DryRun=True, ClientToken=token)
        found = self.ec2.describe_instances(Filters=[{"Name": "client-token", "Values": [token]}])[
            "Reservations"
        ]
        self.assertEqual(found, [])
        self.assert_error(
            "InvalidAMIID.NotFound", 400, self.launch, DryRun=True, ImageId="ami-00000000000000000"
        )

    def test_every_field_reaches_the_ledger(self):
        reservation = "cr-0123456789abcdef0"
        changes = {
            "InstanceType": "m6a.large",
            "CpuOptions": {"AmdSevSnp": "enabled"},
            "Placement": {"GroupName": "spread", "PartitionNumber": 3},
            "InstanceMarketOptions": {"MarketType": "capacity-block"},
            "CapacityReservationSpecification": {
                "CapacityReservationTarget": {"CapacityReservationId": reservation}
            },
            "MetadataOptions": {"HttpTokens": "required", "HttpProtocolIpv6": "enabled"},
            "PrivateDnsNameOptions": {
                "HostnameType": "resource-name",
                "EnableResourceNameDnsARecord": True,
                "EnableResourceNameDnsAAAARecord": True,
            },
            "BlockDeviceMappings": [
                {
                    "DeviceName": "/dev/xvda",
                    "Ebs": {
                        "VolumeSize": 50,
                        "VolumeType": "io2",
                        "Iops": 3000,
                        "Encrypted": True,
                        "KmsKeyId": "arn:aws:kms:us-east-1:123456789012:key/k",
                    },
                },
                {
                    "DeviceName": "/dev/xvdb",
                    "Ebs": {"VolumeSize": 50, "VolumeType": "gp3", "Throughput": 300},
                },
            ],
        }
        before = self.last_sequence()
        [instance] = self.launch(**changes)
        self.assertEqual(instance["InstanceLifecycle"], "capacity-block")
        self.assertEqual(instance["CapacityReservationId"], reservation)
        self.assertEqual(instance["Placement"]["GroupName"], "spread")
        self.assertEqual(instance["Placement"]["PartitionNumber"], 3)
        self.assertEqual(instance["CpuOptions"]["AmdSevSnp"], "enabled")
        self.assertEqual(instance["MetadataOptions"]["HttpProtocolIpv6"], "enabled")
        [call] = self.calls("RunInstances", before)
        kept = call["parameters"]
        for name in set(changes) - {"CapacityReservationSpecification"}:
            self.assertEqual(kept[name], changes[name], name)
        self.assertEqual(
            kept["CapacityReservationSpecification"], {"CapacityReservationId": reservation}
        )

    def test_efa_interface(self):
        interface = {
            "DeviceIndex": 0,
            "InterfaceType": "efa",
            "SubnetId": self.world["privateSubnets"]["us-east-1a"],
            "Groups": [self.world["workerSecurityGroup"]],
        }
        changes = {"SubnetId": None, "SecurityGroupIds": None, "NetworkInterfaces": [interface]}
        [instance] = self.launch(InstanceType="c5n.18xlarge", **changes)
        self.assertEqual(instance["NetworkInterfaces"][0]["InterfaceType"], "efa")
        self.assert_error("InvalidParameterCombination", 400, self.launch, **changes)

    def test_carrier_address(self):
        def changes(subnet):
            return {
                "SubnetId": None,
                "SecurityGroupIds": None,
                "NetworkInterfaces": [
                    {
                        "DeviceIndex": 0,
                        "SubnetId": subnet,
                        "AssociateCarrierIpAddress": True,
                        "Groups": [self.world["workerSecurityGroup"]],
                    }
                ],
            }

        [instance] = self.launch(**changes(self.world["wavelengthSubnet"]))
        [interface] = instance["NetworkInterfaces"]
        self.assertTrue(interface["Association"]["CarrierIp"])
        self.assertNotIn("PublicIpAddress", instance)
        self.assertEqual(instance["Placement"]["AvailabilityZone"], self.world["wavelengthZone"])
        self.assert_error(
            "InvalidParameterCombination",
            400,
            self.launch,
            **changes(self.world["privateSubnets"]["us-east-1a"]),
        )
