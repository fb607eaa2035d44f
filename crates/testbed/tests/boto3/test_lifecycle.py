"""Do instances move between their states, and do tags stay on them?"""

from support import DEADLINE_SECONDS, CloudTest, admin, wait_for


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


class Tags(CloudTest):
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
