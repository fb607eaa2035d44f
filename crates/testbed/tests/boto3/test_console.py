"""What can a person at the console, or the provider itself, do?"""

import base64
import json
import uuid

from support import CloudTest, admin


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

    def test_who_did_it_is_in_the_reason(self):
        for by, stop, termination in [
            ("user", "Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown"),
            ("provider", "Server.ScheduledStop", "Server.InternalError"),
            ("guest", "Client.InstanceInitiatedShutdown", "Client.InstanceInitiatedShutdown"),
            ("spot", "Server.SpotInstanceShutdown", "Server.SpotInstanceTermination"),
        ]:
            with self.subTest(by=by):
                instance_id = self.running()
                code, answer = admin("POST", f"/instances/{instance_id}/stop", {"by": by})
                self.assertEqual(code, 200, answer)
                stopped = self.wait_for_state(instance_id, "stopped")
                self.assertEqual(stopped["StateReason"]["Code"], stop)
                text = r"^User initiated \(.* GMT\)$" if by == "user" else rf"^{stop} \(.* GMT\)$"
                self.assertRegex(stopped["StateTransitionReason"], text)
                admin("POST", f"/instances/{instance_id}/terminate", {"by": by})
                gone = self.wait_for_state(instance_id, "terminated")
                self.assertEqual(gone["StateReason"]["Code"], termination)

    def test_a_guest_can_end_its_instance(self):
        instance_id = self.running(InstanceInitiatedShutdownBehavior="terminate")
        admin("POST", f"/instances/{instance_id}/stop", {"by": "guest"})
        gone = self.wait_for_state(instance_id, "terminated")
        self.assertEqual(gone["StateReason"]["Code"], "Client.InstanceInitiatedShutdown")

    def test_vanish(self):
        instance_id = self.running()
        code, answer = admin("POST", f"/instances/{instance_id}/vanish")
        self.assertEqual((code, answer["currentState"]), (200, "terminated"), answer)
        for call in [
            self.ec2.describe_instances,
            self.ec2.describe_instance_status,
            self.ec2.terminate_instances,
        ]:
            self.assert_error("InvalidInstanceID.NotFound", 400, call, InstanceIds=[instance_id])
        found = self.ec2.describe_instances(
            Filters=[{"Name": "instance-id", "Values": [instance_id]}]
        )
        self.assertEqual(found["Reservations"], [])
        self.assertEqual(admin("POST", f"/instances/{instance_id}/vanish")[0], 404)
