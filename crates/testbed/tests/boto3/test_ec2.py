"""Does a client that nobody here wrote understand the simulated EC2, and the other way round?

Every action is driven with boto3, over HTTP and HTTPS. run.sh starts the cloud and sets EC2_ENDPOINT,
EC2_ENDPOINT_TLS, EC2_CA_FILE and CLOUD_ADMIN.
"""

import base64
import concurrent.futures
import contextlib
import datetime
import http.client
import json
import os
import time
import unittest
import urllib.error
import urllib.request
import uuid

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError

ENDPOINT = os.environ["EC2_ENDPOINT"]
ENDPOINT_TLS = os.environ["EC2_ENDPOINT_TLS"]
CA_FILE = os.environ["EC2_CA_FILE"]
ADMIN = os.environ["CLOUD_ADMIN"]
DEADLINE_SECONDS = 60


def client(endpoint=ENDPOINT, access_key="AKIATEST", attempts=1, **arguments):
    """A client without retries, so that each call is one request and each error is seen."""
    config = Config(
        retries={"total_max_attempts": attempts, "mode": "standard"},
        user_agent_extra="machinist-boto3-test",
        read_timeout=30,
    )
    return boto3.client(
        "ec2",
        region_name="us-east-1",
        endpoint_url=endpoint,
        aws_access_key_id=access_key,
        aws_secret_access_key="not-a-secret",
        config=config,
        **arguments,
    )


def admin(method, path, body=None):
    """Calls the admin API; returns status and JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(ADMIN + path, data=data, method=method)
    request.add_header("content-type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            text = response.read()
            return response.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def wait_for(what, condition):
    """Waits until the condition gives something true, and returns it."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {DEADLINE_SECONDS} s: {what}")


class CloudTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.ec2 = client()
        status, cls.world = admin("GET", "/world")
        assert status == 200

    def setUp(self):
        admin("DELETE", "/faults")
        self.launched = []
        self.addCleanup(self.terminate_launched)

    def terminate_launched(self):
        admin("DELETE", "/faults")
        for instance_id in self.launched:
            admin("POST", f"/instances/{instance_id}/terminate")

    def parameters(self, **changes):
        zone = self.world["availabilityZones"][0]
        parameters = {
            "ImageId": self.world["images"]["x86_64"],
            "InstanceType": "m5.large",
            "MinCount": 1,
            "MaxCount": 1,
            "SubnetId": self.world["privateSubnets"][zone],
            "SecurityGroupIds": [self.world["workerSecurityGroup"]],
        }
        parameters.update(changes)
        return {key: value for key, value in parameters.items() if value is not None}

    def launch(self, **changes):
        answer = self.ec2.run_instances(**self.parameters(**changes))
        self.launched += [instance["InstanceId"] for instance in answer["Instances"]]
        return answer["Instances"]

    def describe(self, instance_id):
        reservations = self.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"]
        self.assertEqual(len(reservations), 1)
        self.assertEqual(len(reservations[0]["Instances"]), 1)
        return reservations[0]["Instances"][0]

    def wait_for_state(self, instance_id, state):
        def reached():
            instance = self.describe(instance_id)
            return instance if instance["State"]["Name"] == state else None

        return wait_for(f"{instance_id} {state}", reached)

    def assert_error(self, code, status, call, *args, **kwargs):
        with self.assertRaises(ClientError) as raised:
            call(*args, **kwargs)
        response = raised.exception.response
        self.assertEqual(response["Error"]["Code"], code, response)
        self.assertEqual(response["ResponseMetadata"]["HTTPStatusCode"], status, response)
        self.assertTrue(response["ResponseMetadata"].get("RequestId"), response)
        return response["Error"]["Message"]


class Lookups(CloudTest):
    def test_regions(self):
        regions = {r["RegionName"]: r for r in self.ec2.describe_regions()["Regions"]}
        self.assertIn("us-east-1", regions)
        self.assertNotIn("af-south-1", regions)
        everything = self.ec2.describe_regions(AllRegions=True)["Regions"]
        self.assertIn(
            ("af-south-1", "not-opted-in"),
            [(r["RegionName"], r["OptInStatus"]) for r in everything],
        )
        one = self.ec2.describe_regions(RegionNames=["eu-west-1"])["Regions"]
        self.assertEqual([r["Endpoint"] for r in one], ["ec2.eu-west-1.amazonaws.com"])
        self.assert_error(
            "InvalidParameterValue", 400, self.ec2.describe_regions, RegionNames=["mars-1"]
        )

    def test_availability_zones(self):
        zones = self.ec2.describe_availability_zones()["AvailabilityZones"]
        self.assertEqual([z["ZoneName"] for z in zones], ["us-east-1a", "us-east-1b", "us-east-1c"])
        self.assertEqual({z["State"] for z in zones}, {"available"})
        self.assertEqual({z["ZoneType"] for z in zones}, {"availability-zone"})
        self.assertEqual(zones[0]["ZoneId"], "use1-az1")
        by_id = self.ec2.describe_availability_zones(ZoneIds=["use1-az2"])["AvailabilityZones"]
        self.assertEqual([z["ZoneName"] for z in by_id], ["us-east-1b"])

    def test_vpcs_and_dhcp_options(self):
        vpc = self.ec2.describe_vpcs(VpcIds=[self.world["vpcId"]])["Vpcs"][0]
        self.assertEqual(vpc["CidrBlock"], "10.0.0.0/16")
        options = self.ec2.describe_dhcp_options(DhcpOptionsIds=[vpc["DhcpOptionsId"]])[
            "DhcpOptions"
        ][0]
        configuration = {
            c["Key"]: [v["Value"] for v in c["Values"]] for c in options["DhcpConfigurations"]
        }
        self.assertEqual(configuration["domain-name"], [self.world["domainName"]])
        self.assert_error(
            "InvalidVpcID.NotFound", 400, self.ec2.describe_vpcs, VpcIds=["vpc-00000000000000000"]
        )
        self.assert_error(
            "InvalidDhcpOptionID.NotFound",
            400,
            self.ec2.describe_dhcp_options,
            DhcpOptionsIds=["dopt-00000000000000000"],
        )

    def test_subnets(self):
        name = f"{self.world['infrastructureName']}-private-us-east-1b"
        subnets = self.ec2.describe_subnets(
            Filters=[
                {"Name": "tag:Name", "Values": [name]},
                {"Name": "availabilityZone", "Values": ["us-east-1b"]},
            ]
        )["Subnets"]
        self.assertEqual(
            [s["SubnetId"] for s in subnets], [self.world["privateSubnets"]["us-east-1b"]]
        )
        self.assertFalse(subnets[0]["MapPublicIpOnLaunch"])
        self.assertGreater(subnets[0]["AvailableIpAddressCount"], 3000)
        wildcard = self.ec2.describe_subnets(
            Filters=[{"Name": "tag:Name", "Values": ["*-private-us-east-1?"]}]
        )
        self.assertEqual(len(wildcard["Subnets"]), 3)
        self.assert_error(
            "InvalidSubnetID.NotFound",
            400,
            self.ec2.describe_subnets,
            SubnetIds=["subnet-00000000000000000"],
        )
        message = self.assert_error(
            "InvalidParameterValue",
            400,
            self.ec2.describe_subnets,
            Filters=[{"Name": "colour", "Values": ["blue"]}],
        )
        self.assertIn("colour", message)

    def test_security_groups(self):
        name = f"{self.world['infrastructureName']}-worker-sg"
        groups = self.ec2.describe_security_groups(
            Filters=[{"Name": "tag:Name", "Values": [name]}]
        )["SecurityGroups"]
        self.assertEqual([g["GroupId"] for g in groups], [self.world["workerSecurityGroup"]])
        self.assertEqual(groups[0]["VpcId"], self.world["vpcId"])
        by_name = self.ec2.describe_security_groups(GroupNames=[name])["SecurityGroups"]
        self.assertEqual(len(by_name), 1)
        self.assert_error(
            "InvalidGroup.NotFound",
            400,
            self.ec2.describe_security_groups,
            GroupIds=["sg-00000000000000000"],
        )

    def test_images(self):
        images = self.ec2.describe_images(
            Owners=["self"],
            Filters=[
                {"Name": "architecture", "Values": ["x86_64"]},
                {"Name": "name", "Values": ["machinist-node-*"]},
            ],
        )["Images"]
        self.assertEqual(len(images), 2)
        newest = max(images, key=lambda image: image["CreationDate"])
        self.assertEqual(newest["ImageId"], self.world["images"]["x86_64"])
        self.assertEqual(newest["RootDeviceName"], "/dev/xvda")
        self.assertEqual(newest["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"], 16)
        self.assert_error(
            "InvalidAMIID.NotFound",
            400,
            self.ec2.describe_images,
            ImageIds=["ami-00000000000000000"],
        )
        self.assert_error(
            "InvalidAMIID.Malformed", 400, self.ec2.describe_images, ImageIds=["nonsense"]
        )

    def test_instance_types(self):
        pages = self.ec2.get_paginator("describe_instance_types").paginate(
            PaginationConfig={"PageSize": 5}
        )
        types = {t["InstanceType"]: t for page in pages for t in page["InstanceTypes"]}
        self.assertEqual(sorted(types), sorted(self.world["instanceTypes"]))
        self.assertGreaterEqual(len(types), 12)
        large = types["m5.large"]
        self.assertEqual(large["VCpuInfo"]["DefaultVCpus"], 2)
        self.assertEqual(large["MemoryInfo"]["SizeInMiB"], 8192)
        self.assertEqual(large["ProcessorInfo"]["SupportedArchitectures"], ["x86_64"])
        self.assertEqual(types["m6g.large"]["ProcessorInfo"]["SupportedArchitectures"], ["arm64"])
        self.assertEqual(sum(g["Count"] for g in types["p3.8xlarge"]["GpuInfo"]["Gpus"]), 4)
        self.assertNotIn("GpuInfo", large)
        self.assert_error(
            "InvalidInstanceType", 400, self.ec2.describe_instance_types, InstanceTypes=["x9.huge"]
        )


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


class Lifecycle(CloudTest):
    def test_stop_start_reboot_terminate(self):
        [launched] = self.launch(SubnetId=self.world["publicSubnets"]["us-east-1a"])
        instance_id = launched["InstanceId"]
        running = self.wait_for_state(instance_id, "running")

        [change] = self.ec2.stop_instances(InstanceIds=[instance_id])["StoppingInstances"]
        self.assertEqual(
            (change["PreviousState"]["Name"], change["CurrentState"]["Name"]),
            ("running", "stopping"),
        )
        stopped = self.wait_for_state(instance_id, "stopped")
        self.assertEqual(stopped["StateReason"]["Code"], "Client.UserInitiatedShutdown")
        self.assertRegex(
            stopped["StateTransitionReason"],
            r"^User initiated \(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d GMT\)$",
        )
        self.assertEqual(stopped["PrivateIpAddress"], running["PrivateIpAddress"])
        self.assertNotIn("PublicIpAddress", stopped)
        self.assert_error(
            "IncorrectInstanceState", 400, self.ec2.reboot_instances, InstanceIds=[instance_id]
        )

        [change] = self.ec2.start_instances(InstanceIds=[instance_id])["StartingInstances"]
        self.assertEqual(
            (change["PreviousState"]["Name"], change["CurrentState"]["Name"]),
            ("stopped", "pending"),
        )
        started = self.wait_for_state(instance_id, "running")
        self.assertGreater(started["LaunchTime"], running["LaunchTime"])
        self.assertNotEqual(started["PublicIpAddress"], running["PublicIpAddress"])
        self.assertNotIn("StateReason", started)

        def generation():
            _, instances = admin("GET", "/instances")
            return {i["id"]: i for i in instances}[instance_id]["bootGeneration"]

        self.assertEqual(generation(), 2)
        self.ec2.reboot_instances(InstanceIds=[instance_id])
        wait_for("the reboot", lambda: generation() == 3)
        self.assertEqual(self.describe(instance_id)["LaunchTime"], started["LaunchTime"])

        [change] = self.ec2.terminate_instances(InstanceIds=[instance_id])["TerminatingInstances"]
        self.assertEqual(
            (change["PreviousState"]["Name"], change["CurrentState"]["Name"]),
            ("running", "shutting-down"),
        )
        gone = self.wait_for_state(instance_id, "terminated")
        self.assertNotIn("PrivateIpAddress", gone)
        self.assertEqual(gone["NetworkInterfaces"], [])
        [change] = self.ec2.terminate_instances(InstanceIds=[instance_id])["TerminatingInstances"]
        self.assertEqual(change["CurrentState"]["Name"], "terminated")
        self.assert_error(
            "IncorrectInstanceState", 400, self.ec2.start_instances, InstanceIds=[instance_id]
        )

    def test_waiters_of_boto3(self):
        [instance] = self.launch()
        ids = [instance["InstanceId"]]
        patience = {"Delay": 1, "MaxAttempts": DEADLINE_SECONDS}
        self.ec2.get_waiter("instance_running").wait(InstanceIds=ids, WaiterConfig=patience)
        self.ec2.get_waiter("instance_status_ok").wait(InstanceIds=ids, WaiterConfig=patience)
        self.ec2.terminate_instances(InstanceIds=ids)
        self.ec2.get_waiter("instance_terminated").wait(InstanceIds=ids, WaiterConfig=patience)

    def test_bad_ids(self):
        for call in [
            self.ec2.terminate_instances,
            self.ec2.stop_instances,
            self.ec2.start_instances,
            self.ec2.reboot_instances,
            self.ec2.describe_instances,
            self.ec2.describe_instance_status,
        ]:
            message = self.assert_error(
                "InvalidInstanceID.NotFound", 400, call, InstanceIds=["i-00000000000000000"]
            )
            self.assertIn("i-00000000000000000", message)
            self.assert_error("InvalidInstanceID.Malformed", 400, call, InstanceIds=["nonsense"])

    def test_one_unknown_id_changes_nothing(self):
        [instance] = self.launch()
        ids = [instance["InstanceId"], "i-00000000000000000"]
        self.assert_error(
            "InvalidInstanceID.NotFound", 400, self.ec2.terminate_instances, InstanceIds=ids
        )
        self.assertIn(self.describe(ids[0])["State"]["Name"], ("pending", "running"))

    def test_termination_protection(self):
        [instance] = self.launch(DisableApiTermination=True)
        self.assert_error(
            "OperationNotPermitted",
            400,
            self.ec2.terminate_instances,
            InstanceIds=[instance["InstanceId"]],
        )

    def test_tags(self):
        [instance] = self.launch()
        instance_id = instance["InstanceId"]
        volume_id = self.describe(instance_id)["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]
        self.ec2.create_tags(
            Resources=[instance_id, volume_id],
            Tags=[
                {"Key": "a", "Value": "1"},
                {"Key": "b", "Value": ""},
                {"Key": "ü", "Value": "é"},
            ],
        )
        self.ec2.create_tags(Resources=[instance_id], Tags=[{"Key": "a", "Value": "2"}])

        def tags():
            return {t["Key"]: t["Value"] for t in self.describe(instance_id).get("Tags", [])}

        self.assertEqual(tags(), {"a": "2", "b": "", "ü": "é"})
        self.ec2.delete_tags(
            Resources=[instance_id], Tags=[{"Key": "a", "Value": "1"}, {"Key": "b"}]
        )
        self.assertEqual(tags(), {"a": "2", "ü": "é"})
        self.assert_error(
            "InvalidParameterValue",
            400,
            self.ec2.create_tags,
            Resources=[instance_id],
            Tags=[{"Key": "aws:x", "Value": "1"}],
        )
        self.assert_error(
            "InvalidInstanceID.NotFound",
            400,
            self.ec2.create_tags,
            Resources=["i-00000000000000000"],
            Tags=[{"Key": "a", "Value": "1"}],
        )
        self.assert_error(
            "TagLimitExceeded",
            400,
            self.ec2.create_tags,
            Resources=[instance_id],
            Tags=[{"Key": f"k{n}", "Value": ""} for n in range(51)],
        )


class Describing(CloudTest):
    def test_filters_and_pages(self):
        pool = "pool-" + uuid.uuid4().hex
        specification = [
            {
                "ResourceType": "instance",
                "Tags": [{"Key": "pool", "Value": pool}, {"Key": pool, "Value": "yes"}],
            }
        ]
        ids = {
            i["InstanceId"]
            for i in self.launch(MinCount=7, MaxCount=7, TagSpecifications=specification)
        }
        other = self.launch(
            TagSpecifications=specification,
            SubnetId=self.world["privateSubnets"]["us-east-1b"],
            InstanceType="c5.large",
        )
        other_id = other[0]["InstanceId"]

        def found(*filters):
            answer = self.ec2.describe_instances(
                Filters=[{"Name": "tag:pool", "Values": [pool]}]
                + [{"Name": n, "Values": v} for n, v in filters]
            )
            return {i["InstanceId"] for r in answer["Reservations"] for i in r["Instances"]}

        self.assertEqual(found(), ids | {other_id})
        self.assertEqual(found(("availability-zone", ["us-east-1b"])), {other_id})
        self.assertEqual(found(("instance-type", ["c5.*"])), {other_id})
        self.assertEqual(found(("tag-key", [pool])), ids | {other_id})
        self.assertEqual(found(("subnet-id", [self.world["privateSubnets"]["us-east-1a"]])), ids)
        self.assertEqual(found(("vpc-id", [self.world["vpcId"]])), ids | {other_id})
        self.assertEqual(found(("instance-id", [other_id])), {other_id})
        self.assertEqual(found(("instance-state-name", ["stopped", "terminated"])), set())
        self.assertEqual(found(("instance-state-name", ["pending", "running"])), ids | {other_id})
        self.assert_error(
            "InvalidParameterValue",
            400,
            self.ec2.describe_instances,
            Filters=[{"Name": "no-such", "Values": ["x"]}],
        )

        first = self.ec2.describe_instances(
            Filters=[{"Name": "tag:pool", "Values": [pool]}], MaxResults=5
        )
        self.assertEqual(sum(len(r["Instances"]) for r in first["Reservations"]), 5)
        second = self.ec2.describe_instances(
            Filters=[{"Name": "tag:pool", "Values": [pool]}],
            MaxResults=5,
            NextToken=first["NextToken"],
        )
        self.assertEqual(sum(len(r["Instances"]) for r in second["Reservations"]), 3)
        self.assertNotIn("NextToken", second)
        pages = list(
            self.ec2.get_paginator("describe_instances").paginate(
                Filters=[{"Name": "tag:pool", "Values": [pool]}], PaginationConfig={"PageSize": 5}
            )
        )
        self.assertEqual(
            {i["InstanceId"] for p in pages for r in p["Reservations"] for i in r["Instances"]},
            ids | {other_id},
        )

        self.assert_error("InvalidParameterValue", 400, self.ec2.describe_instances, MaxResults=4)
        self.assert_error(
            "InvalidNextToken", 400, self.ec2.describe_instances, MaxResults=5, NextToken="bogus"
        )
        self.assert_error(
            "InvalidParameterCombination",
            400,
            self.ec2.describe_instances,
            MaxResults=5,
            InstanceIds=[other_id],
        )

    def test_reservation_shape(self):
        answer = self.ec2.run_instances(**self.parameters(MinCount=2, MaxCount=2))
        self.launched += [i["InstanceId"] for i in answer["Instances"]]
        self.assertTrue(answer["ReservationId"].startswith("r-"))
        reservations = self.ec2.describe_instances(
            Filters=[{"Name": "reservation-id", "Values": [answer["ReservationId"]]}]
        )["Reservations"]
        self.assertEqual([r["ReservationId"] for r in reservations], [answer["ReservationId"]])
        self.assertEqual(len(reservations[0]["Instances"]), 2)
        self.assertEqual(reservations[0]["OwnerId"], self.world["accountId"])

    def test_status_and_impairment(self):
        [instance] = self.launch()
        instance_id = instance["InstanceId"]
        self.wait_for_state(instance_id, "running")

        def status():
            [found] = self.ec2.describe_instance_status(InstanceIds=[instance_id])[
                "InstanceStatuses"
            ]
            return found

        wait_for("status ok", lambda: status()["InstanceStatus"]["Status"] == "ok")
        code, answer = admin("POST", f"/instances/{instance_id}/impair")
        self.assertEqual(code, 200, answer)
        impaired = status()
        self.assertEqual(impaired["InstanceStatus"]["Status"], "impaired")
        [detail] = impaired["InstanceStatus"]["Details"]
        self.assertEqual((detail["Name"], detail["Status"]), ("reachability", "failed"))
        self.assertIsInstance(detail["ImpairedSince"], datetime.datetime)
        self.assertEqual(impaired["SystemStatus"]["Status"], "ok")
        found = self.ec2.describe_instance_status(
            Filters=[{"Name": "instance-status.status", "Values": ["impaired"]}]
        )["InstanceStatuses"]
        self.assertEqual([s["InstanceId"] for s in found], [instance_id])
        self.ec2.reboot_instances(InstanceIds=[instance_id])
        wait_for("status ok after the reboot", lambda: status()["InstanceStatus"]["Status"] == "ok")

    def test_status_of_all_instances(self):
        [instance] = self.launch()
        instance_id = instance["InstanceId"]
        self.wait_for_state(instance_id, "running")
        self.ec2.stop_instances(InstanceIds=[instance_id])
        self.wait_for_state(instance_id, "stopped")
        self.assertEqual(
            self.ec2.describe_instance_status(InstanceIds=[instance_id])["InstanceStatuses"], []
        )
        [status] = self.ec2.describe_instance_status(
            InstanceIds=[instance_id], IncludeAllInstances=True
        )["InstanceStatuses"]
        self.assertEqual(status["InstanceState"]["Name"], "stopped")
        self.assertEqual(status["InstanceStatus"]["Status"], "not-applicable")
        self.assert_error(
            "InvalidParameterCombination",
            400,
            self.ec2.describe_instance_status,
            InstanceIds=[instance_id],
            MaxResults=5,
        )

    def test_status_pages(self):
        ids = {i["InstanceId"] for i in self.launch(MinCount=6, MaxCount=6)}
        for instance_id in ids:
            self.wait_for_state(instance_id, "running")
        pages = list(
            self.ec2.get_paginator("describe_instance_status").paginate(
                PaginationConfig={"PageSize": 5}
            )
        )
        self.assertGreaterEqual(len(pages), 2)
        self.assertLessEqual(ids, {s["InstanceId"] for p in pages for s in p["InstanceStatuses"]})


class Events(CloudTest):
    def running(self):
        [instance] = self.launch()
        self.wait_for_state(instance["InstanceId"], "running")
        return instance["InstanceId"]

    def events(self, instance_id):
        statuses = self.ec2.describe_instance_status(
            InstanceIds=[instance_id], IncludeAllInstances=True
        )["InstanceStatuses"]
        return statuses[0].get("Events", [])

    def schedule(self, instance_id, code, start, **more):
        body = {"instanceId": instance_id, "code": code, "notBefore": start.isoformat(), **more}
        status, answer = admin("POST", "/events", body)
        self.assertEqual(status, 201, answer)
        self.assertRegex(answer["eventId"], r"^instance-event-[0-9a-f]{17}$")
        return answer["eventId"]

    def hours(self, count):
        return datetime.datetime.now(datetime.timezone.utc).replace(
            microsecond=0
        ) + datetime.timedelta(hours=count)

    def test_event_is_shown_filtered_and_moved(self):
        instance_id = self.running()
        start, deadline = self.hours(24), self.hours(72)
        event_id = self.schedule(
            instance_id,
            "system-reboot",
            start,
            notAfter=self.hours(26).isoformat(),
            notBeforeDeadline=deadline.isoformat(),
            description="the host & its disk",
        )
        [event] = self.events(instance_id)
        self.assertEqual(
            (event["InstanceEventId"], event["Code"], event["Description"]),
            (event_id, "system-reboot", "the host & its disk"),
        )
        self.assertEqual((event["NotBefore"], event["NotBeforeDeadline"]), (start, deadline))
        found = self.ec2.describe_instance_status(
            Filters=[{"Name": "event.instance-event-id", "Values": [event_id]}]
        )["InstanceStatuses"]
        self.assertEqual([s["InstanceId"] for s in found], [instance_id])
        found = self.ec2.describe_instance_status(
            Filters=[{"Name": "event.code", "Values": ["instance-retirement"]}]
        )["InstanceStatuses"]
        self.assertNotIn(instance_id, [s["InstanceId"] for s in found])

        moved = self.ec2.modify_instance_event_start_time(
            InstanceId=instance_id, InstanceEventId=event_id, NotBefore=self.hours(48)
        )
        self.assertEqual(self.events(instance_id)[0]["NotBefore"], moved["Event"]["NotBefore"])
        modify = self.ec2.modify_instance_event_start_time
        self.assert_error(
            "InvalidInstanceEventStartTime",
            400,
            modify,
            InstanceId=instance_id,
            InstanceEventId=event_id,
            NotBefore=self.hours(100),
        )
        self.assert_error(
            "InvalidInstanceEventStartTime",
            400,
            modify,
            InstanceId=instance_id,
            InstanceEventId=event_id,
            NotBefore=self.hours(0),
        )
        self.assert_error(
            "InvalidInstanceEventIDNotFound",
            400,
            modify,
            InstanceId=instance_id,
            InstanceEventId="instance-event-00000000000000000",
            NotBefore=self.hours(48),
        )
        fixed = self.schedule(instance_id, "instance-stop", self.hours(24))
        self.assert_error(
            "InvalidInstanceEventStartTime",
            400,
            modify,
            InstanceId=instance_id,
            InstanceEventId=fixed,
            NotBefore=self.hours(48),
        )

    def test_console_moves_completes_and_deletes(self):
        instance_id = self.running()
        event_id = self.schedule(
            instance_id, "instance-retirement", self.hours(24), description="degraded"
        )
        later = self.hours(30)
        status, answer = admin("PATCH", f"/events/{event_id}", {"notBefore": later.isoformat()})
        self.assertEqual(status, 200, answer)
        self.assertEqual(self.events(instance_id)[0]["NotBefore"], later)
        admin("PATCH", f"/events/{event_id}", {"state": "completed"})
        self.assertEqual(self.events(instance_id)[0]["Description"], "[Completed] degraded")
        admin("PATCH", f"/events/{event_id}", {"state": "cancelled"})
        self.assertEqual(self.events(instance_id)[0]["Description"], "[Canceled] degraded")
        self.assertEqual(admin("DELETE", f"/events/{event_id}")[0], 204)
        self.assertEqual(self.events(instance_id), [])
        self.assertEqual(admin("DELETE", f"/events/{event_id}")[0], 404)

    def test_provider_carries_out_a_stop(self):
        instance_id = self.running()
        self.schedule(instance_id, "instance-stop", datetime.datetime.now(datetime.timezone.utc))
        stopped = self.wait_for_state(instance_id, "stopped")
        self.assertEqual(stopped["StateReason"]["Code"], "Server.ScheduledStop")
        self.assertTrue(self.events(instance_id)[0]["Description"].startswith("[Completed]"))

    def test_stop_and_start_settles_an_event(self):
        instance_id = self.running()
        self.schedule(instance_id, "system-maintenance", self.hours(24))
        self.ec2.stop_instances(InstanceIds=[instance_id])
        self.wait_for_state(instance_id, "stopped")
        self.ec2.start_instances(InstanceIds=[instance_id])
        wait_for(
            "the event completed",
            lambda: self.events(instance_id)[0]["Description"].startswith("[Completed]"),
        )
        self.assertEqual(self.describe(instance_id)["State"]["Name"], "running")


class Console(CloudTest):
    def test_verbs(self):
        [instance] = self.launch()
        instance_id = instance["InstanceId"]
        self.wait_for_state(instance_id, "running")
        status, answer = admin("POST", f"/instances/{instance_id}/stop", {"by": "provider"})
        self.assertEqual((status, answer["currentState"]), (200, "stopping"))
        stopped = self.wait_for_state(instance_id, "stopped")
        self.assertEqual(stopped["StateReason"]["Code"], "Server.ScheduledStop")
        self.assertEqual(admin("POST", f"/instances/{instance_id}/start")[0], 200)
        self.wait_for_state(instance_id, "running")
        self.assertEqual(admin("POST", f"/instances/{instance_id}/reboot")[0], 200)
        self.assertEqual(admin("POST", f"/instances/{instance_id}/spot-notice")[0], 409)
        self.assertEqual(admin("POST", f"/instances/{instance_id}/terminate")[0], 200)
        self.wait_for_state(instance_id, "terminated")
        self.assertEqual(admin("POST", f"/instances/{instance_id}/start")[0], 409)

    def test_clear_errors(self):
        for method, path, body, status, word in [
            ("POST", "/instances/i-0/stop", None, 404, "i-0"),
            ("POST", "/instances/i-0/explode", None, 404, "explode"),
            ("POST", "/events", {"instanceId": "i-0"}, 400, "code"),
            (
                "POST",
                "/events",
                {"instanceId": "i-0", "code": "meteor", "notBefore": "2030-01-01T00:00:00Z"},
                400,
                "meteor",
            ),
            ("POST", "/faults", {"error": []}, 400, "error"),
            ("POST", "/faults", {"errors": [{"action": "Fly", "code": "x"}]}, 400, "Fly"),
            (
                "POST",
                "/faults",
                {"errors": [{"action": "*", "code": "x", "probability": 3}]},
                400,
                "probability",
            ),
            ("GET", "/nowhere", None, 404, "no such path"),
            ("DELETE", "/ledger", None, 405, "method"),
            ("GET", "/ledger?after=x", None, 400, "after"),
        ]:
            with self.subTest(path=path, body=body):
                code, answer = admin(method, path, body)
                self.assertEqual(code, status, answer)
                self.assertIn(word, answer["error"])

    def test_ledger(self):
        token = "ledger-" + uuid.uuid4().hex
        secret = b"very-secret-bootstrap"
        _, before = admin("GET", "/ledger")
        last = before["calls"][-1]["sequence"] if before["calls"] else 0
        [instance] = self.launch(
            ClientToken=token,
            UserData=secret,
            TagSpecifications=[
                {"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "w"}]}
            ],
        )
        self.assert_error(
            "InvalidSubnetID.NotFound", 400, self.launch, SubnetId="subnet-00000000000000000"
        )
        self.ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
        self.wait_for_state(instance["InstanceId"], "terminated")
        _, ledger = admin("GET", f"/ledger?after={last}&action=RunInstances")
        self.assertEqual([c["result"] for c in ledger["calls"]], ["ok", "InvalidSubnetID.NotFound"])
        call = ledger["calls"][0]
        self.assertEqual(call["instanceIds"], [instance["InstanceId"]])
        self.assertIn("machinist-boto3-test", call["userAgent"])
        self.assertEqual(call["accessKeyId"], "AKIATEST")
        self.assertEqual(call["parameters"]["ClientToken"], token)
        self.assertEqual(call["parameters"]["UserData"]["Length"], len(secret))
        text = json.dumps(ledger)
        self.assertNotIn(secret.decode(), text)
        self.assertNotIn(base64.b64encode(secret).decode(), text)
        [entry] = [i for i in ledger["instances"] if i["id"] == instance["InstanceId"]]
        self.assertEqual(
            (entry["state"], entry["clientToken"], entry["tags"]),
            ("terminated", token, {"Name": "w"}),
        )
        self.assertLess(entry["launchTime"], entry["terminationTime"])
        self.assertEqual(entry["parameters"]["InstanceType"], "m5.large")


class Faults(CloudTest):
    def inject(self, **faults):
        status, answer = admin("POST", "/faults", faults)
        self.assertEqual(status, 200, answer)

    def launched_with(self, token):
        _, ledger = admin("GET", "/ledger")
        return [i for i in ledger["instances"] if i["clientToken"] == token]

    def test_errors_by_action_and_count(self):
        self.inject(errors=[{"action": "DescribeInstances", "code": "Unavailable", "count": 2}])
        for _ in range(2):
            self.assert_error("Unavailable", 503, self.ec2.describe_instances)
        self.ec2.describe_instances()
        self.ec2.describe_vpcs()

    def test_error_whose_effect_happened(self):
        token = uuid.uuid4().hex
        self.inject(
            errors=[
                {
                    "action": "RunInstances",
                    "code": "InternalError",
                    "status": 500,
                    "count": 1,
                    "effect": True,
                }
            ]
        )
        self.assert_error("InternalError", 500, self.launch, ClientToken=token)
        self.assertEqual(len(self.launched_with(token)), 1)
        [instance] = self.launch(ClientToken=token)
        self.assertEqual([i["id"] for i in self.launched_with(token)], [instance["InstanceId"]])

    def test_timeout_whose_effect_happened(self):
        token = uuid.uuid4().hex
        self.inject(timeouts=[{"action": "RunInstances", "count": 1, "after": "50ms"}])
        with self.assertRaises((ConnectionClosedError, EndpointConnectionError)):
            self.launch(ClientToken=token)
        self.assertEqual(len(self.launched_with(token)), 1)
        [instance] = self.launch(ClientToken=token)
        self.assertEqual([i["id"] for i in self.launched_with(token)], [instance["InstanceId"]])
        _, ledger = admin("GET", "/ledger?action=RunInstances")
        self.assertEqual([c["delivered"] for c in ledger["calls"][-2:]], [False, True])

    def test_retries_of_boto3_launch_once(self):
        token = uuid.uuid4().hex
        self.inject(
            timeouts=[{"action": "RunInstances", "count": 1}],
            errors=[{"action": "RunInstances", "code": "InternalError", "count": 1}],
        )
        answer = client(attempts=4).run_instances(**self.parameters(ClientToken=token))
        self.launched.append(answer["Instances"][0]["InstanceId"])
        self.assertEqual(len(self.launched_with(token)), 1)

    def test_capacity_by_type_and_zone(self):
        self.inject(capacity=[{"instanceType": "m5.large", "availabilityZone": "us-east-1a"}])
        message = self.assert_error("InsufficientInstanceCapacity", 500, self.launch)
        self.assertIn("us-east-1a", message)
        self.launch(InstanceType="m5.xlarge")
        self.launch(SubnetId=self.world["privateSubnets"]["us-east-1b"])

    def test_capacity_that_is_left_bounds_the_count(self):
        self.inject(capacity=[{"instanceType": "r5.xlarge", "available": 2}])
        self.assertEqual(len(self.launch(InstanceType="r5.xlarge", MinCount=1, MaxCount=5)), 2)
        self.assert_error(
            "InsufficientInstanceCapacity", 500, self.launch, InstanceType="r5.xlarge"
        )

    def test_launch_is_visible_only_later(self):
        self.inject(launchVisibility={"lag": "6s"})
        [instance] = self.launch()
        self.assert_error("InvalidInstanceID.NotFound", 400, self.describe, instance["InstanceId"])

        def visible():
            found = self.ec2.describe_instances(
                Filters=[{"Name": "instance-id", "Values": [instance["InstanceId"]]}]
            )
            return found["Reservations"]

        self.assertEqual(visible(), [])
        wait_for("the launch to be visible", visible)
        self.describe(instance["InstanceId"])

    def test_throttling(self):
        self.inject(throttling=True)

        # The bucket for RunInstances holds 5 and gains 2 a second: 60 calls at once empty it.
        def attempt(_):
            try:
                self.launch(DryRun=True)
            except ClientError as error:
                response = error.response
                return (response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"])
            return None

        with concurrent.futures.ThreadPoolExecutor(max_workers=20) as pool:
            outcomes = set(pool.map(attempt, range(60)))
        self.assertEqual(outcomes, {("RequestLimitExceeded", 503), ("DryRunOperation", 412)})

    def test_refused_access_key(self):
        self.inject(refusedAccessKeys=["AKIAOLD"])
        self.assert_error("AuthFailure", 401, client(access_key="AKIAOLD").describe_instances)
        self.ec2.describe_instances()


class Wire(CloudTest):
    def test_https_with_the_authority(self):
        secure = client(ENDPOINT_TLS, verify=CA_FILE)
        answer = secure.run_instances(**self.parameters())
        self.launched.append(answer["Instances"][0]["InstanceId"])
        secure.describe_instances(InstanceIds=self.launched)
        secure.terminate_instances(InstanceIds=self.launched)

    def raw(self, method, body):
        connection = http.client.HTTPConnection(ENDPOINT.removeprefix("http://"), timeout=30)
        if method == "GET":
            connection.request("GET", "/?" + body)
        else:
            connection.request(
                "POST", "/", body, {"content-type": "application/x-www-form-urlencoded"}
            )
        with contextlib.closing(connection):
            response = connection.getresponse()
            return response.status, response.read().decode()

    def test_unknown_action_and_parameter(self):
        for method in ("GET", "POST"):
            status, text = self.raw(method, "Action=Fly&Version=2016-11-15")
            self.assertEqual(status, 400)
            self.assertIn("<Code>InvalidAction</Code>", text)
            status, text = self.raw(method, "Action=DescribeVpcs&Version=2016-11-15&Wings.1=2")
            self.assertEqual(status, 400)
            self.assertIn("<Code>UnknownParameter</Code>", text)
            self.assertIn("Wings.1", text)
            status, text = self.raw(method, "Version=2016-11-15")
            self.assertIn("<Code>MissingAction</Code>", text)
            status, text = self.raw(method, "Action=DescribeVpcs&Version=2016-11-15")
            self.assertEqual(status, 200)
            self.assertIn(
                '<DescribeVpcsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">', text
            )


if __name__ == "__main__":
    unittest.main()
