"""Do filters, pages and status checks show the right instances?"""

import datetime
import uuid

from support import CloudTest, admin, wait_for


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


class Status(CloudTest):
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

    def test_filters_of_each_check_and_of_events(self):
        ids = [i["InstanceId"] for i in self.launch(MinCount=4, MaxCount=4)]
        for instance_id in ids:
            self.wait_for_state(instance_id, "running")
        guest, host, disk, event = ids
        for instance_id, check in [(guest, "instance"), (host, "system"), (disk, "attached-ebs")]:
            code, answer = admin("POST", f"/instances/{instance_id}/impair", {"check": check})
            self.assertEqual(code, 200, answer)
        start = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=5)
        admin(
            "POST",
            "/events",
            {"instanceId": event, "code": "instance-stop", "notBefore": start.isoformat()},
        )

        def found(name, value):
            pages = self.ec2.get_paginator("describe_instance_status").paginate(
                Filters=[{"Name": name, "Values": [value]}], PaginationConfig={"PageSize": 5}
            )
            shown = {s["InstanceId"] for page in pages for s in page["InstanceStatuses"]}
            return shown & set(ids)

        self.assertEqual(found("instance-status.status", "impaired"), {guest, host})
        self.assertEqual(found("system-status.status", "impaired"), {host})
        self.assertEqual(found("attached-ebs-status.status", "impaired"), {disk})
        self.assertEqual(found("event.code", "instance-stop"), {event})
        self.assertEqual(found("event.code", "system-reboot"), set())
