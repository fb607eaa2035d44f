"""Can reads be as wrong as EC2's own, and right again?"""

from support import CloudTest, admin


class Reads(CloudTest):
    def listed(self, instance_id):
        answer = self.ec2.describe_instances(
            Filters=[{"Name": "instance-id", "Values": [instance_id]}]
        )
        return [i["InstanceId"] for r in answer["Reservations"] for i in r["Instances"]]

    def statuses(self, instance_id):
        answer = self.ec2.describe_instance_status(IncludeAllInstances=True)
        return [s for s in answer["InstanceStatuses"] if s["InstanceId"] == instance_id]

    def test_hidden_and_shown(self):
        instance_id = self.running()
        code, answer = admin("POST", f"/instances/{instance_id}/hide")
        self.assertEqual((code, answer["hidden"]), (200, True))
        self.assertEqual(self.listed(instance_id), [])
        self.assertEqual(self.statuses(instance_id), [])
        for call in [self.ec2.describe_instances, self.ec2.describe_instance_status]:
            self.assert_error("InvalidInstanceID.NotFound", 400, call, InstanceIds=[instance_id])
        self.assertIn(instance_id, [i["id"] for i in admin("GET", "/instances")[1]])
        code, answer = admin("POST", f"/instances/{instance_id}/show")
        self.assertEqual((code, answer["hidden"]), (200, False))
        self.assertEqual(self.listed(instance_id), [instance_id])

    def test_hidden_once(self):
        instance_id = self.running()
        self.inject(hidden=[{"instanceId": instance_id, "count": 1}])
        self.assertEqual(self.listed(instance_id), [])
        self.assertEqual(self.listed(instance_id), [instance_id])
        self.inject(hidden=[{"instanceId": instance_id, "for": "1h"}])
        self.assertEqual(self.listed(instance_id), [])
        self.assertEqual(admin("DELETE", "/faults?kind=hidden")[0], 204)
        self.assertEqual(self.listed(instance_id), [instance_id])

    def test_by_id_and_by_filter_disagree(self):
        instance_id = self.running()
        self.inject(omissions={"byId": 1})
        self.assert_error("InvalidInstanceID.NotFound", 400, self.describe, instance_id)
        self.assertEqual(self.listed(instance_id), [instance_id])
        admin("DELETE", "/faults")
        self.inject(omissions={"byFilter": 1})
        self.describe(instance_id)
        self.assertEqual(self.listed(instance_id), [])

    def test_stale(self):
        instance_id = self.running()
        self.inject(staleReads={"lag": "1h", "probability": 1})
        self.ec2.terminate_instances(InstanceIds=[instance_id])
        self.assertEqual(self.describe(instance_id)["State"]["Name"], "running")
        admin("DELETE", "/faults?kind=staleReads")
        self.wait_for_state(instance_id, "terminated")

    def test_short_pages_in_any_order(self):
        ids = {i["InstanceId"] for i in self.launch(MinCount=12, MaxCount=12)}
        self.inject(pages={"short": True, "shuffled": True})
        pages = list(
            self.ec2.get_paginator("describe_instances").paginate(
                Filters=[{"Name": "instance-id", "Values": sorted(ids)}],
                PaginationConfig={"PageSize": 100},
            )
        )
        shown = [i["InstanceId"] for p in pages for r in p["Reservations"] for i in r["Instances"]]
        self.assertGreater(len(pages), 2)
        self.assertEqual(sorted(shown), sorted(ids))
