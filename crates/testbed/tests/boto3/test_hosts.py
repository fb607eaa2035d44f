"""Are dedicated hosts allocated, filled and released as EC2 does it?"""

import datetime
import uuid

from support import CloudTest, admin


class Hosts(CloudTest):
    def setUp(self):
        super().setUp()
        self.hosts = []

    def allocate(self, **changes):
        parameters = {
            "Quantity": 1,
            "InstanceType": "m5.large",
            "AvailabilityZone": "us-east-1a",
            "AutoPlacement": "off",
            **changes,
        }
        ids = self.ec2.allocate_hosts(
            **{name: value for name, value in parameters.items() if value is not None}
        )["HostIds"]
        self.hosts += ids
        return ids

    def host(self, host_id):
        [host] = self.ec2.describe_hosts(HostIds=[host_id])["Hosts"]
        return host

    def test_allocate_fill_and_release(self):
        uid = uuid.uuid4().hex
        [host_id] = self.allocate(
            TagSpecifications=[
                {"ResourceType": "dedicated-host", "Tags": [{"Key": "uid", "Value": uid}]}
            ]
        )
        host = self.host(host_id)
        self.assertEqual((host["State"], host["AutoPlacement"]), ("available", "off"))
        self.assertEqual(host["AvailabilityZone"], "us-east-1a")
        self.assertEqual(host["HostProperties"]["InstanceType"], "m5.large")
        self.assertIsInstance(host["AllocationTime"], datetime.datetime)
        self.ec2.create_tags(Resources=[host_id], Tags=[{"Key": "more", "Value": "x"}])
        tags = {t["Key"]: t["Value"] for t in self.host(host_id)["Tags"]}
        self.assertEqual(tags, {"uid": uid, "more": "x"})
        found = self.ec2.describe_hosts(
            Filter=[
                {"Name": "tag:uid", "Values": [uid]},
                {"Name": "state", "Values": ["available"]},
                {"Name": "availability-zone", "Values": ["us-east-1a"]},
                {"Name": "instance-type", "Values": ["m5.large"]},
            ]
        )["Hosts"]
        self.assertEqual([h["HostId"] for h in found], [host_id])

        placement = {"Tenancy": "host", "HostId": host_id, "Affinity": "host"}
        instance_id = self.running(Placement=placement)
        shown = self.describe(instance_id)["Placement"]
        self.assertEqual({name: shown[name] for name in placement}, placement)
        self.assertEqual([i["InstanceId"] for i in self.host(host_id)["Instances"]], [instance_id])
        answer = self.ec2.release_hosts(HostIds=[host_id])
        self.assertEqual(answer["Successful"], [])
        [refused] = answer["Unsuccessful"]
        self.assertEqual(refused["ResourceId"], host_id)
        self.assertEqual(refused["Error"]["Code"], "Client.InvalidHost.Occupied")
        self.ec2.terminate_instances(InstanceIds=[instance_id])
        self.wait_for_state(instance_id, "terminated")
        answer = self.ec2.release_hosts(HostIds=[host_id, "h-00000000000000000"])
        self.assertEqual(answer["Successful"], [host_id])
        self.assertEqual(
            [u["Error"]["Code"] for u in answer["Unsuccessful"]], ["Client.InvalidHostID.NotFound"]
        )
        self.assertEqual(self.host(host_id)["State"], "released")
        facts = {h["id"]: h for h in admin("GET", "/hosts")[1]}
        self.assertEqual(facts[host_id]["state"], "released")

    def test_token(self):
        token = uuid.uuid4().hex
        first = self.allocate(ClientToken=token)
        self.assertEqual(self.allocate(ClientToken=token), first)
        self.assert_error(
            "IdempotentParameterMismatch", 400, self.allocate, ClientToken=token, Quantity=2
        )

    def test_refused_placements(self):
        [elsewhere] = self.allocate(AvailabilityZone="us-east-1b")
        for code, placement in [
            ("InvalidHostID.NotFound", {"Tenancy": "host", "HostId": "h-00000000000000000"}),
            ("InvalidParameterValue", {"Tenancy": "host", "HostId": elsewhere}),
            ("InvalidParameterCombination", {"HostId": elsewhere}),
            ("InsufficientCapacityOnHost", {"Tenancy": "host"}),
        ]:
            with self.subTest(placement=placement):
                self.assert_error(code, 400, self.launch, Placement=placement)
        self.assert_error(
            "InvalidHostID.NotFound",
            400,
            self.ec2.describe_hosts,
            HostIds=["h-00000000000000000"],
        )

    def test_auto_placement_and_pages(self):
        hosts = self.allocate(
            InstanceType=None, InstanceFamily="c5", AutoPlacement="on", Quantity=6
        )
        [instance] = self.launch(InstanceType="c5.large", Placement={"Tenancy": "host"})
        self.assertIn(instance["Placement"]["HostId"], hosts)
        self.assertEqual(instance["Placement"]["Affinity"], "default")
        pages = list(
            self.ec2.get_paginator("describe_hosts").paginate(PaginationConfig={"PageSize": 5})
        )
        self.assertGreaterEqual(len(pages), 2)
        self.assertLessEqual(set(hosts), {h["HostId"] for p in pages for h in p["Hosts"]})
