"""Are scheduled events shown, moved, carried out and settled?"""

import datetime

from support import CloudTest, admin, wait_for


class Events(CloudTest):
    def events(self, instance_id):
        statuses = self.ec2.describe_instance_status(
            InstanceIds=[instance_id], IncludeAllInstances=True
        )["InstanceStatuses"]
        return statuses[0].get("Events", [])

    def schedule(self, instance_id, code, start, **more):
        body = {"instanceId": instance_id, "code": code, "notBefore": start.isoformat(), **more}
        status, answer = admin("POST", "/events", body)
        self.assertEqual(status, 201, answer)
        self.assertRegex(answer["eventId"], r"^instance-event-[0-9a-f]{17}$")
        return answer["eventId"]

    def hours(self, count):
        return datetime.datetime.now(datetime.timezone.utc).replace(
            microsecond=0
        ) + datetime.timedelta(hours=count)

    def test_event_is_shown_filtered_and_moved(self):
        instance_id = self.running()
        start, deadline = self.hours(24), self.hours(72)
        event_id = self.schedule(
            instance_id,
            "system-reboot",
            start,
            notAfter=self.hours(26).isoformat(),
            notBeforeDeadline=deadline.isoformat(),
            description="the host & its disk",
        )
        [event] = self.events(instance_id)
        self.assertEqual(
            (event["InstanceEventId"], event["Code"], event["Description"]),
            (event_id, "system-reboot", "the host & its disk"),
        )
        self.assertEqual((event["NotBefore"], event["NotBeforeDeadline"]), (start, deadline))
        found = self.ec2.describe_instance_status(
            Filters=[{"Name": "event.instance-event-id", "Values": [event_id]}]
        )["InstanceStatuses"]
        self.assertEqual([s["InstanceId"] for s in found], [instance_id])
        found = self.ec2.describe_instance_status(
            Filters=[{"Name": "event.code", "Values": ["instance-retirement"]}]
        )["InstanceStatuses"]
        self.assertNotIn(instance_id, [s["InstanceId"] for s in found])

        moved = self.ec2.modify_instance_event_start_time(
            InstanceId=instance_id, InstanceEventId=event_id, NotBefore=self.hours(48)
        )
        self.assertEqual(self.events(instance_id)[0]["NotBefore"], moved["Event"]["NotBefore"])
        modify = self.ec2.modify_instance_event_start_time
        self.assert_error(
            "InvalidInstanceEventStartTime",
            400,
            modify,
            InstanceId=instance_id,
            InstanceEventId=event_id,
            NotBefore=self.hours(100),
        )
        self.assert_error(
            "InvalidInstanceEventStartTime",
            400,
            modify,
            InstanceId=instance_id,
            InstanceEventId=event_id,
            NotBefore=self.hours(0),
        )
        self.assert_error(
            "InvalidInstanceEventIDNotFound",
            400,
            modify,
            InstanceId=instance_id,
            InstanceEventId="instance-event-00000000000000000",
            NotBefore=self.hours(48),
        )
        fixed = self.schedule(instance_id, "instance-stop", self.hours(24))
        self.assert_error(
            "InvalidInstanceEventStartTime",
            400,
            modify,
            InstanceId=instance_id,
            InstanceEventId=fixed,
            NotBefore=self.hours(48),
        )

    def test_console_moves_completes_and_deletes(self):
        instance_id = self.running()
        event_id = self.schedule(
            instance_id, "instance-retirement", self.hours(24), description="degraded"
        )
        later = self.hours(30)
        status, answer = admin("PATCH", f"/events/{event_id}", {"notBefore": later.isoformat()})
        self.assertEqual(status, 200, answer)
        self.assertEqual(self.events(instance_id)[0]["NotBefore"], later)
        admin("PATCH", f"/events/{event_id}", {"state": "completed"})
        self.assertEqual(self.events(instance_id)[0]["Description"], "[Completed] degraded")
        admin("PATCH", f"/events/{event_id}", {"state": "cancelled"})
        self.assertEqual(self.events(instance_id)[0]["Description"], "[Canceled] degraded")
        self.assertEqual(admin("DELETE", f"/events/{event_id}")[0], 204)
        self.assertEqual(self.events(instance_id), [])
        self.assertEqual(admin("DELETE", f"/events/{event_id}")[0], 404)

    def test_provider_carries_out_a_stop(self):
        instance_id = self.running()
        self.schedule(instance_id, "instance-stop", datetime.datetime.now(datetime.timezone.utc))
        stopped = self.wait_for_state(instance_id, "stopped")
        self.assertEqual(stopped["StateReason"]["Code"], "Server.ScheduledStop")
        self.assertTrue(self.events(instance_id)[0]["Description"].startswith("[Completed]"))

    def test_stop_and_start_settles_an_event(self):
        instance_id = self.running()
        self.schedule(instance_id, "system-maintenance", self.hours(24))
        self.ec2.stop_instances(InstanceIds=[instance_id])
        self.wait_for_state(instance_id, "stopped")
        self.ec2.start_instances(InstanceIds=[instance_id])
        wait_for(
            "the event completed",
            lambda: self.events(instance_id)[0]["Description"].startswith("[Completed]"),
        )
        self.assertEqual(self.describe(instance_id)["State"]["Name"], "running")

    def test_reboot_migration_settles_a_system_reboot(self):
        instance_id = self.running()
        options = self.describe(instance_id)["MaintenanceOptions"]
        self.assertEqual(options, {"AutoRecovery": "default", "RebootMigration": "disabled"})
        self.schedule(instance_id, "system-reboot", self.hours(24))
        modify = self.ec2.modify_instance_maintenance_options
        answer = modify(
            InstanceId=instance_id, RebootMigration="default", AutoRecovery="disabled"
        )
        self.assertEqual(
            (answer["InstanceId"], answer["RebootMigration"], answer["AutoRecovery"]),
            (instance_id, "default", "disabled"),
        )
        options = self.describe(instance_id)["MaintenanceOptions"]
        self.assertEqual(options, {"AutoRecovery": "disabled", "RebootMigration": "default"})
        self.ec2.reboot_instances(InstanceIds=[instance_id])
        wait_for(
            "the event completed",
            lambda: self.events(instance_id)[0]["Description"].startswith("[Completed]"),
        )
        self.assert_error(
            "InvalidInstanceID.NotFound",
            400,
            modify,
            InstanceId="i-00000000000000000",
            RebootMigration="default",
        )
