"""Do injected faults reach the client as it would meet them in AWS?"""

import concurrent.futures
import uuid

from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError

from support import CloudTest, admin, client, wait_for


class Faults(CloudTest):
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

    def test_denied(self):
        instance_id = self.running()
        self.inject(
            denied=[
                {"action": "ec2:RebootInstances"},
                {"action": "ec2:Describe*", "accessKey": "AKIAOTHER"},
                {"action": "elasticloadbalancing:*", "accessKey": "AKIAOTHER"},
            ]
        )
        message = self.assert_error(
            "UnauthorizedOperation", 403, self.ec2.reboot_instances, InstanceIds=[instance_id]
        )
        self.assertIn("is not authorized to perform: ec2:RebootInstances on resource: ", message)
        self.assertIn(f":instance/{instance_id} because no identity-based policy allows", message)
        self.assertIn("Encoded authorization failure message: ", message)
        self.ec2.describe_instances()
        other = {"access_key": "AKIAOTHER"}
        message = self.assert_error(
            "UnauthorizedOperation", 403, client(**other).describe_instance_status
        )
        self.assertIn("ec2:DescribeInstanceStatus", message)
        for service in ("elb", "elbv2"):
            message = self.assert_error(
                "AccessDenied", 403, client(service, **other).describe_load_balancers
            )
            self.assertIn("elasticloadbalancing:DescribeLoadBalancers", message)
            client(service).describe_load_balancers()
        self.assertEqual(admin("DELETE", "/faults?kind=denied")[0], 204)
        self.ec2.reboot_instances(InstanceIds=[instance_id])
        self.assertEqual(admin("DELETE", "/faults?kind=gravity")[0], 400)

    def test_launch_that_dies_or_never_boots(self):
        self.inject(
            launchFates=[{"kind": "dies", "code": "Client.InternalError", "count": 1}]
        )
        [instance] = self.launch()
        gone = self.wait_for_state(instance["InstanceId"], "terminated")
        self.assertEqual(gone["StateReason"]["Code"], "Client.InternalError")
        self.inject(launchFates=[{"kind": "stuck", "count": 1}])
        [stuck] = self.launch()
        self.wait_for_state(self.launch()[0]["InstanceId"], "running")
        self.assertEqual(self.describe(stuck["InstanceId"])["State"]["Name"], "pending")

    def test_termination_that_lingers(self):
        instance_id = self.running()
        self.inject(lingeringTerminations=[{"for": "1s", "count": 1}])
        [change] = self.ec2.terminate_instances(InstanceIds=[instance_id])["TerminatingInstances"]
        self.assertEqual(change["CurrentState"]["Name"], "shutting-down")
        self.assertEqual(self.describe(instance_id)["State"]["Name"], "running")
        self.wait_for_state(instance_id, "terminated")
