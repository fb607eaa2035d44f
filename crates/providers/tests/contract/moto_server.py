"""Serves moto's AWS on a free loopback port until its standard input ends.

Prints one line of JSON: the endpoint, and the ids that a launch needs. The input ends when the test
process does, however it does, so that no server is left behind.
"""

import json
import logging
import os
import sys

# Credentials that mean nothing: moto accepts any, and boto3 must not look for real ones.
os.environ["AWS_ACCESS_KEY_ID"] = "testing"
os.environ["AWS_SECRET_ACCESS_KEY"] = "testing"
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"

import boto3
from moto.server import ThreadedMotoServer

REGION = "us-east-1"

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
sys.stdin.read()
