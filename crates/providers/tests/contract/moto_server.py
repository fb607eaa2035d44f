"""Serves moto's AWS on a free loopback port until its standard input ends.

Prints one line of JSON: the endpoint, and the ids that a launch needs. Then each line of its input is a
scheduled event for an instance, and is answered by a line with the event's id. The input ends when the
test process does, however it does, so that no server is left behind.

moto knows no scheduled events. It shows those that an instance is given here, and
ModifyInstanceEventStartTime is added to it.
"""

import json
import logging
import os
import sys
from datetime import datetime, timezone

# Credentials that mean nothing: moto accepts any, and boto3 must not look for real ones.
os.environ["AWS_ACCESS_KEY_ID"] = "testing"
os.environ["AWS_SECRET_ACCESS_KEY"] = "testing"
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"

import boto3
from moto.core import DEFAULT_ACCOUNT_ID
from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends
from moto.ec2.responses import EC2Response
from moto.server import ThreadedMotoServer

REGION = "us-east-1"



def time(text):
    """The time without its zone, which is UTC: as moto reads it out of requests, and writes it."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(timezone.utc).replace(tzinfo=None)


def modify_instance_event_start_time(self):
    """ModifyInstanceEventStartTime, by EC2's rule: not later than the event's deadline."""
    instance = self.ec2_backend.get_instance(self._get_param("InstanceId"))
    event_id = self._get_param("InstanceEventId")
    found = [event for event in getattr(instance, "events", []) if event["InstanceEventId"] == event_id]
    if not found:
        raise EC2ClientError("InvalidInstanceEventIDNotFound", f"the event '{event_id}' does not exist")
    not_before = self._get_param("NotBefore")
    if not_before > found[0]["NotBeforeDeadline"]:
        raise EC2ClientError("InvalidInstanceEventStartTime", "the start time is after the deadline")
    found[0]["NotBefore"] = not_before
    return ActionResult({"Event": found[0]})


EC2Response.modify_instance_event_start_time = modify_instance_event_start_time

logging.getLogger("werkzeug").setLevel(logging.ERROR)

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
endpoint = f"http://{host}:{port}"

ec2 = boto3.client("ec2", region_name=REGION, endpoint_url=endpoint)
subnet = ec2.describe_subnets()["Subnets"][0]
ec2.create_tags(Resources=[subnet["SubnetId"]], Tags=[{"Key": "Name", "Value": "workers"}])
group = ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [subnet["VpcId"]]}])
group_id = group["SecurityGroups"][0]["GroupId"]
images = ec2.describe_images(Filters=[{"Name": "architecture", "Values": ["x86_64"]}])["Images"]
image = max(images, key=lambda image: (image["CreationDate"], image["ImageId"]))

print(
    json.dumps(
        {
            "endpoint": endpoint,
            "region": REGION,
            "zone": subnet["AvailabilityZone"],
            "vpc": subnet["VpcId"],
            "subnet": subnet["SubnetId"],
            "securityGroup": group_id,
            "image": image["ImageId"],
        }
    ),
    flush=True,
)
for number, line in enumerate(sys.stdin):
    asked = json.loads(line)
    event = {
        "InstanceEventId": f"instance-event-{number:017x}",
        "Code": asked["code"],
        "Description": asked["description"],
        "NotBefore": time(asked["notBefore"]),
        "NotBeforeDeadline": time(asked["notBeforeDeadline"]),
    }
    instance = ec2_backends[DEFAULT_ACCOUNT_ID][REGION].get_instance(asked["instance"])
    instance.events = [*getattr(instance, "events", []), event]
    print(json.dumps({"id": event["InstanceEventId"]}), flush=True)
