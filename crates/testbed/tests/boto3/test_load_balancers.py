"""Do classic and network load balancers take, show and forget their targets?"""

import datetime
import uuid

from botocore.exceptions import ConnectionClosedError, EndpointConnectionError

from support import CloudTest, admin, client, wait_for


class Balancing(CloudTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.elb = client("elb")
        cls.elbv2 = client("elbv2")

    def setUp(self):
        super().setUp()
        self.name = "lb-" + uuid.uuid4().hex[:12]
        self.subnet = self.world["privateSubnets"]["us-east-1a"]


class Classic(Balancing):
    def setUp(self):
        super().setUp()
        listener = {
            "Protocol": "TCP",
            "LoadBalancerPort": 6443,
            "InstanceProtocol": "TCP",
            "InstancePort": 6443,
        }
        self.request = {
            "LoadBalancerName": self.name,
            "Listeners": [listener],
            "Subnets": [self.subnet],
            "SecurityGroups": [self.world["masterSecurityGroup"]],
            "Tags": [{"Key": "a", "Value": "b"}],
        }
        self.created = self.elb.create_load_balancer(**self.request)
        self.addCleanup(self.elb.delete_load_balancer, LoadBalancerName=self.name)

    def register(self, *ids, name=None):
        return self.elb.register_instances_with_load_balancer(
            LoadBalancerName=name or self.name, Instances=[{"InstanceId": i} for i in ids]
        )["Instances"]

    def deregister(self, *ids, name=None):
        return self.elb.deregister_instances_from_load_balancer(
            LoadBalancerName=name or self.name, Instances=[{"InstanceId": i} for i in ids]
        )["Instances"]

    def health(self, *ids):
        return self.elb.describe_instance_health(
            LoadBalancerName=self.name, Instances=[{"InstanceId": i} for i in ids]
        )["InstanceStates"]

    def test_describe(self):
        self.assertIn(self.name, self.created["DNSName"])
        [found] = self.elb.describe_load_balancers(LoadBalancerNames=[self.name])[
            "LoadBalancerDescriptions"
        ]
        self.assertEqual(found["DNSName"], self.created["DNSName"])
        self.assertEqual(found["Subnets"], [self.subnet])
        self.assertEqual(found["VPCId"], self.world["vpcId"])
        self.assertEqual(found["ListenerDescriptions"][0]["Listener"]["InstancePort"], 6443)
        self.assertEqual(found["Instances"], [])
        self.assertIsInstance(found["CreatedTime"], datetime.datetime)
        self.assertEqual(self.elb.create_load_balancer(**self.request)["DNSName"], found["DNSName"])
        self.assert_error(
            "DuplicateLoadBalancerName",
            400,
            self.elb.create_load_balancer,
            **{**self.request, "Scheme": "internal"},
        )
        self.assert_error(
            "LoadBalancerNotFound",
            400,
            self.elb.describe_load_balancers,
            LoadBalancerNames=["nobody"],
        )
        pages = self.elb.get_paginator("describe_load_balancers").paginate(
            PaginationConfig={"PageSize": 1}
        )
        names = [b["LoadBalancerName"] for p in pages for b in p["LoadBalancerDescriptions"]]
        self.assertIn(self.name, names)

    def test_register_and_deregister(self):
        instance_id = self.running()
        self.assertEqual(self.register(instance_id), [{"InstanceId": instance_id}])
        self.assertEqual(self.register(instance_id), [{"InstanceId": instance_id}])
        wait_for("in service", lambda: self.health()[0]["State"] == "InService")
        self.assertEqual(self.health(instance_id)[0]["ReasonCode"], "N/A")
        nobody = "i-00000000000000000"
        self.assert_error("InvalidInstance", 400, self.register, nobody)
        self.assert_error("InvalidInstance", 400, self.deregister, nobody)
        self.assert_error("InvalidInstance", 400, self.health, nobody)
        for call in (self.register, self.deregister):
            self.assert_error("LoadBalancerNotFound", 400, call, instance_id, name="nobody")
        _, facts = admin("GET", "/load-balancers")
        [mine] = [b for b in facts["classic"] if b["name"] == self.name]
        self.assertEqual(
            [(t["id"], t["state"]) for t in mine["instances"]], [(instance_id, "InService")]
        )
        self.assertEqual(self.deregister(instance_id), [])
        self.assertEqual(self.deregister(instance_id), [])

    def test_terminated_instance_is_forgotten(self):
        instance_id = self.running()
        self.register(instance_id)
        self.ec2.terminate_instances(InstanceIds=[instance_id])
        wait_for("nobody registered", lambda: not self.health())

    def test_ledger_and_faults(self):
        instance_id = self.running()
        action = "elb:RegisterInstancesWithLoadBalancer"
        self.inject(errors=[{"action": action, "code": "InternalFailure", "count": 1}])
        before = self.last_sequence()
        self.assert_error("InternalFailure", 500, self.register, instance_id)
        self.register(instance_id)
        failed, done = self.calls(action, before)
        self.assertEqual((failed["result"], done["result"]), ("InternalFailure", "ok"))
        self.assertEqual(
            done["parameters"],
            {"LoadBalancerName": self.name, "Instances": [{"InstanceId": instance_id}]},
        )
        self.assertEqual(done["instanceIds"], [instance_id])


class Network(Balancing):
    def setUp(self):
        super().setUp()
        [self.balancer] = self.elbv2.create_load_balancer(
            Name=self.name, Type="network", Subnets=[self.subnet], Scheme="internal"
        )["LoadBalancers"]
        self.arn = self.balancer["LoadBalancerArn"]
        self.addCleanup(self.elbv2.delete_load_balancer, LoadBalancerArn=self.arn)
        self.port = 6443

    def group(self, target_type, listen=True, **more):
        name = "tg-" + uuid.uuid4().hex[:12]
        [group] = self.elbv2.create_target_group(
            Name=name,
            Protocol="TCP",
            Port=6443,
            VpcId=self.world["vpcId"],
            TargetType=target_type,
            HealthCheckIntervalSeconds=10,
            **more,
        )["TargetGroups"]
        arn = group["TargetGroupArn"]
        if listen:
            [listener] = self.elbv2.create_listener(
                LoadBalancerArn=self.arn,
                Protocol="TCP",
                Port=self.port,
                DefaultActions=[{"Type": "forward", "TargetGroupArn": arn}],
            )["Listeners"]
            self.assertEqual(listener["DefaultActions"][0]["TargetGroupArn"], arn)
            self.port += 1
        return arn

    def register(self, arn, *ids):
        self.elbv2.register_targets(TargetGroupArn=arn, Targets=[{"Id": i} for i in ids])

    def deregister(self, arn, *ids):
        self.elbv2.deregister_targets(TargetGroupArn=arn, Targets=[{"Id": i} for i in ids])

    def health(self, arn, *ids):
        described = self.elbv2.describe_target_health(
            TargetGroupArn=arn, Targets=[{"Id": i} for i in ids]
        )["TargetHealthDescriptions"]
        return {d["Target"]["Id"]: d["TargetHealth"]["State"] for d in described}

    def test_load_balancers(self):
        self.assertEqual(self.balancer["Type"], "network")
        self.assertEqual(self.balancer["State"]["Code"], "active")
        self.assertRegex(self.arn, rf":loadbalancer/net/{self.name}/[0-9a-f]{{16}}$")
        for argument in [{"Names": [self.name]}, {"LoadBalancerArns": [self.arn]}]:
            [found] = self.elbv2.describe_load_balancers(**argument)["LoadBalancers"]
            self.assertEqual(found["LoadBalancerArn"], self.arn)
            self.assertEqual(found["VpcId"], self.world["vpcId"])
        for argument in [{"Names": ["nobody"]}, {"LoadBalancerArns": [self.arn + "0"]}]:
            self.assert_error(
                "LoadBalancerNotFound", 400, self.elbv2.describe_load_balancers, **argument
            )
        [other] = self.elbv2.create_load_balancer(
            Name=self.name + "-b", Type="application", Subnets=[self.subnet]
        )["LoadBalancers"]
        self.addCleanup(
            self.elbv2.delete_load_balancer, LoadBalancerArn=other["LoadBalancerArn"]
        )
        pages = self.elbv2.get_paginator("describe_load_balancers").paginate(
            PaginationConfig={"PageSize": 1}
        )
        names = [b["LoadBalancerName"] for p in pages for b in p["LoadBalancers"]]
        self.assertLessEqual({self.name, self.name + "-b"}, set(names))
        self.assertEqual(len(names), len(set(names)))

    def test_groups_belong_through_listeners(self):
        groups = {self.group("instance"), self.group("ip")}
        alone = self.group("ip", listen=False)
        pages = self.elbv2.get_paginator("describe_target_groups").paginate(
            LoadBalancerArn=self.arn, PaginationConfig={"PageSize": 1}
        )
        found = [g for page in pages for g in page["TargetGroups"]]
        self.assertEqual({g["TargetGroupArn"] for g in found}, groups)
        self.assertEqual({g["TargetType"] for g in found}, {"instance", "ip"})
        self.assertEqual({tuple(g["LoadBalancerArns"]) for g in found}, {(self.arn,)})
        [one] = self.elbv2.describe_target_groups(TargetGroupArns=[alone])["TargetGroups"]
        self.assertEqual(one["LoadBalancerArns"], [])
        [same] = self.elbv2.describe_target_groups(Names=[one["TargetGroupName"]])["TargetGroups"]
        self.assertEqual(same["TargetGroupArn"], alone)
        self.elbv2.delete_target_group(TargetGroupArn=alone)
        describe = self.elbv2.describe_target_groups
        self.assert_error("TargetGroupNotFound", 400, describe, TargetGroupArns=[alone])
        self.assert_error("LoadBalancerNotFound", 400, describe, LoadBalancerArn=self.arn + "0")
        self.assert_error(
            "ResourceInUse",
            400,
            self.elbv2.delete_target_group,
            TargetGroupArn=sorted(groups)[0],
        )

    def test_instance_targets(self):
        arn = self.group("instance")
        instance_id = self.running()
        self.assertEqual(self.health(arn, instance_id), {instance_id: "unused"})
        self.register(arn, instance_id)
        self.register(arn, instance_id)
        wait_for("healthy", lambda: self.health(arn) == {instance_id: "healthy"})
        self.ec2.stop_instances(InstanceIds=[instance_id])
        self.wait_for_state(instance_id, "stopped")
        self.assertEqual(self.health(arn), {instance_id: "unused"})
        self.deregister(arn, instance_id)
        wait_for("drained", lambda: self.health(arn) == {})
        self.assert_error("InvalidTarget", 400, self.deregister, arn, instance_id)
        self.assert_error("InvalidTarget", 400, self.register, arn, instance_id)
        self.assert_error("InvalidTarget", 400, self.register, arn, "i-00000000000000000")
        missing = arn.replace("targetgroup/", "targetgroup/x")
        for call in (self.register, self.deregister, self.health):
            self.assert_error("TargetGroupNotFound", 400, call, missing, instance_id)

    def test_draining(self):
        arn = self.group("instance")
        instance_id = self.running()
        self.register(arn, instance_id)
        self.deregister(arn, instance_id)
        self.assertIn(self.health(arn).get(instance_id), ("draining", None))
        wait_for("drained", lambda: self.health(arn) == {})

    def test_addresses_stay_and_instances_go(self):
        by_instance, by_address = self.group("instance"), self.group("ip")
        instance_id = self.running()
        address = self.describe(instance_id)["PrivateIpAddress"]
        self.register(by_instance, instance_id)
        self.register(by_address, address)
        wait_for("healthy", lambda: self.health(by_address) == {address: "healthy"})
        _, facts = admin("GET", "/load-balancers")
        [mine] = [g for g in facts["targetGroups"] if g["arn"] == by_address]
        self.assertEqual((mine["targetType"], mine["loadBalancers"]), ("ip", [self.name]))
        [target] = mine["targets"]
        self.assertEqual((target["id"], target["port"]), (address, 6443))
        self.ec2.terminate_instances(InstanceIds=[instance_id])
        wait_for("the instance forgotten", lambda: self.health(by_instance) == {})
        self.assertEqual(list(self.health(by_address)), [address])
        self.deregister(by_address, address)
        wait_for("drained", lambda: self.health(by_address) == {})
        self.assert_error("InvalidTarget", 400, self.register, by_address, "192.0.2.1")

    def test_lost_answer_and_ledger(self):
        arn = self.group("instance")
        instance_id = self.running()
        self.inject(timeouts=[{"action": "elbv2:RegisterTargets", "count": 1}])
        before = self.last_sequence()
        with self.assertRaises((ConnectionClosedError, EndpointConnectionError)):
            self.register(arn, instance_id)
        self.assertEqual(list(self.health(arn)), [instance_id])
        [call] = self.calls("elbv2:RegisterTargets", before)
        self.assertEqual((call["result"], call["delivered"]), ("ok", False))
        self.assertEqual(
            call["parameters"], {"TargetGroupArn": arn, "Targets": [{"Id": instance_id}]}
        )

    def test_load_balancer_as_a_target(self):
        arn = self.group("alb")
        self.assert_error("InvalidTarget", 400, self.register, arn, self.arn)
        [application] = self.elbv2.create_load_balancer(
            Name=self.name + "-a", Type="application", Subnets=[self.subnet]
        )["LoadBalancers"]
        target = application["LoadBalancerArn"]
        self.addCleanup(self.elbv2.delete_load_balancer, LoadBalancerArn=target)
        self.register(arn, target)
        wait_for("healthy", lambda: self.health(arn) == {target: "healthy"})
