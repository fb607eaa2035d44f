"""Is a call held exactly where a test wants to kill its caller?"""

import concurrent.futures
import uuid

from botocore.exceptions import ConnectionClosedError, EndpointConnectionError

from support import CloudTest, admin, wait_for


class Breakpoints(CloudTest):
    def hold(self, **breakpoint):
        status, answer = admin("POST", "/breakpoints", breakpoint)
        self.assertEqual(status, 201, answer)
        self.assertFalse(answer["hit"])
        return answer["id"]

    def hit(self, number):
        [found] = [b for b in admin("GET", "/breakpoints")[1] if b["id"] == number]
        return found if found["hit"] else None

    def launched_with(self, token):
        _, ledger = admin("GET", "/ledger")
        return [i["id"] for i in ledger["instances"] if i["clientToken"] == token]

    def test_before_and_after(self):
        for when, instances, result in [("before", 0, "Held"), ("after", 1, "ok")]:
            with self.subTest(when=when), concurrent.futures.ThreadPoolExecutor() as pool:
                number = self.hold(action="RunInstances", when=when)
                token = uuid.uuid4().hex
                call = pool.submit(self.launch, ClientToken=token)
                held = wait_for("the call to be held", lambda: self.hit(number))
                self.assertEqual(held["call"]["action"], "RunInstances")
                self.assertEqual(held["call"]["result"], result)
                self.assertEqual(len(self.launched_with(token)), instances)
                self.ec2.describe_instances()
                self.assertFalse(call.done())
                self.assertEqual(admin("DELETE", f"/breakpoints/{number}")[0], 204)
                with self.assertRaises((ConnectionClosedError, EndpointConnectionError)):
                    call.result(timeout=30)
                [instance] = self.launch(ClientToken=token)
                self.assertEqual(self.launched_with(token), [instance["InstanceId"]])

    def test_nth_change(self):
        number = self.hold(action="*", nth=2, mutatingOnly=True)
        instance_id = self.running()
        self.assertIsNone(self.hit(number))
        with concurrent.futures.ThreadPoolExecutor() as pool:
            call = pool.submit(self.ec2.reboot_instances, InstanceIds=[instance_id])
            held = wait_for("the call to be held", lambda: self.hit(number))
            self.assertEqual((held["seen"], held["call"]["action"]), (2, "RebootInstances"))
            self.assertEqual(admin("DELETE", "/breakpoints")[0], 204)
            with self.assertRaises((ConnectionClosedError, EndpointConnectionError)):
                call.result(timeout=30)
        self.assertEqual(admin("GET", "/breakpoints"), (200, []))

    def test_clear_errors(self):
        for body, word in [
            ({"action": "Fly"}, "Fly"),
            ({"action": "*", "nth": 0}, "nth"),
            ({"action": "*", "when": "never"}, "never"),
            ({}, "action"),
        ]:
            status, answer = admin("POST", "/breakpoints", body)
            self.assertEqual(status, 400, answer)
            self.assertIn(word, answer["error"])
        self.assertEqual(admin("DELETE", "/breakpoints/999999")[0], 404)
