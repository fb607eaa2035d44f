"""What do the tests share? Clients of the simulated cloud, its admin API, and a way to wait.

Does a client that nobody here wrote understand the simulated cloud, and the other way round? Every
action is driven with boto3. run.sh starts the cloud and sets EC2_ENDPOINT, EC2_ENDPOINT_TLS,
EC2_CA_FILE and CLOUD_ADMIN.
"""

import json
import os
import time
import unittest
import urllib.error
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

ENDPOINT = os.environ["EC2_ENDPOINT"]
ENDPOINT_TLS = os.environ["EC2_ENDPOINT_TLS"]
CA_FILE = os.environ["EC2_CA_FILE"]
ADMIN = os.environ["CLOUD_ADMIN"]
DEADLINE_SECONDS = 60


def client(service="ec2", endpoint=ENDPOINT, access_key="AKIATEST", attempts=1, **arguments):
    """A client without retries, so that each call is one request and each error is seen."""
    config = Config(
        retries={"total_max_attempts": attempts, "mode": "standard"},
        user_agent_extra="machinist-boto3-test",
        read_timeout=30,
    )
    return boto3.client(
        service,
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
        self.clear()
        self.launched = []
        self.addCleanup(self.terminate_launched)

    def clear(self):
        admin("DELETE", "/breakpoints")
        admin("DELETE", "/faults")

    def terminate_launched(self):
        self.clear()
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

    def running(self, **changes):
        [instance] = self.launch(**changes)
        self.wait_for_state(instance["InstanceId"], "running")
        return instance["InstanceId"]

    def inject(self, **faults):
        status, answer = admin("POST", "/faults", faults)
        self.assertEqual(status, 200, answer)

    def last_sequence(self):
        _, ledger = admin("GET", "/ledger")
        return ledger["calls"][-1]["sequence"] if ledger["calls"] else 0

    def calls(self, action, after=0):
        """The calls of an action in the ledger, newest last."""
        _, ledger = admin("GET", f"/ledger?after={after}&action={action}")
        return ledger["calls"]

    def assert_error(self, code, status, call, *args, **kwargs):
        with self.assertRaises(ClientError) as raised:
            call(*args, **kwargs)
        response = raised.exception.response
        self.assertEqual(response["Error"]["Code"], code, response)
        self.assertEqual(response["ResponseMetadata"]["HTTPStatusCode"], status, response)
        self.assertTrue(response["ResponseMetadata"].get("RequestId"), response)
        return response["Error"]["Message"]
