"""Is the protocol itself right, over HTTP and HTTPS?"""

import contextlib
import http.client

from support import CA_FILE, ENDPOINT, ENDPOINT_TLS, CloudTest, client


class Wire(CloudTest):
    def test_https_with_the_authority(self):
        secure = client(endpoint=ENDPOINT_TLS, verify=CA_FILE)
        answer = secure.run_instances(**self.parameters())
        self.launched.append(answer["Instances"][0]["InstanceId"])
        secure.describe_instances(InstanceIds=self.launched)
        secure.terminate_instances(InstanceIds=self.launched)

    def raw(self, method, body):
        connection = http.client.HTTPConnection(ENDPOINT.removeprefix("http://"), timeout=30)
        if method == "GET":
            connection.request("GET", "/?" + body)
        else:
            connection.request(
                "POST", "/", body, {"content-type": "application/x-www-form-urlencoded"}
            )
        with contextlib.closing(connection):
            response = connection.getresponse()
            return response.status, response.read().decode()

    def test_unknown_action_and_parameter(self):
        for method in ("GET", "POST"):
            status, text = self.raw(method, "Action=Fly&Version=2016-11-15")
            self.assertEqual(status, 400)
            self.assertIn("<Code>InvalidAction</Code>", text)
            status, text = self.raw(method, "Action=DescribeVpcs&Version=2016-11-15&Wings.1=2")
            self.assertEqual(status, 400)
            self.assertIn("<Code>UnknownParameter</Code>", text)
            self.assertIn("Wings.1", text)
            status, text = self.raw(method, "Version=2016-11-15")
            self.assertIn("<Code>MissingAction</Code>", text)
            status, text = self.raw(method, "Action=DescribeVpcs&Version=2016-11-15")
            self.assertEqual(status, 200)
            self.assertIn(
                '<DescribeVpcsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">', text
            )
