"""What do the Describe calls show that a launch needs?"""

from support import CloudTest


class Lookups(CloudTest):
    def test_regions(self):
        regions = {r["RegionName"]: r for r in self.ec2.describe_regions()["Regions"]}
        self.assertIn("us-east-1", regions)
        self.assertNotIn("af-south-1", regions)
        everything = self.ec2.describe_regions(AllRegions=True)["Regions"]
        self.assertIn(
            ("af-south-1", "not-opted-in"),
            [(r["RegionName"], r["OptInStatus"]) for r in everything],
        )
        one = self.ec2.describe_regions(RegionNames=["eu-west-1"])["Regions"]
        self.assertEqual([r["Endpoint"] for r in one], ["ec2.eu-west-1.amazonaws.com"])
        self.assert_error(
            "InvalidParameterValue", 400, self.ec2.describe_regions, RegionNames=["mars-1"]
        )

    def test_availability_zones(self):
        everything = self.ec2.describe_availability_zones()["AvailabilityZones"]
        carrier = [z for z in everything if z["ZoneType"] == "wavelength-zone"]
        self.assertEqual([z["ZoneName"] for z in carrier], [self.world["wavelengthZone"]])
        self.assertEqual(carrier[0]["OptInStatus"], "opted-in")
        zones = self.ec2.describe_availability_zones(
            Filters=[{"Name": "zone-type", "Values": ["availability-zone"]}]
        )["AvailabilityZones"]
        self.assertEqual([z["ZoneName"] for z in zones], ["us-east-1a", "us-east-1b", "us-east-1c"])
        self.assertEqual({z["State"] for z in zones}, {"available"})
        self.assertEqual({z["ZoneType"] for z in zones}, {"availability-zone"})
        self.assertEqual(zones[0]["ZoneId"], "use1-az1")
        by_id = self.ec2.describe_availability_zones(ZoneIds=["use1-az2"])["AvailabilityZones"]
        self.assertEqual([z["ZoneName"] for z in by_id], ["us-east-1b"])

    def test_vpcs_and_dhcp_options(self):
        vpc = self.ec2.describe_vpcs(VpcIds=[self.world["vpcId"]])["Vpcs"][0]
        self.assertEqual(vpc["CidrBlock"], "10.0.0.0/16")
        options = self.ec2.describe_dhcp_options(DhcpOptionsIds=[vpc["DhcpOptionsId"]])[
            "DhcpOptions"
        ][0]
        configuration = {
            c["Key"]: [v["Value"] for v in c["Values"]] for c in options["DhcpConfigurations"]
        }
        self.assertEqual(configuration["domain-name"], [self.world["domainName"]])
        self.assert_error(
            "InvalidVpcID.NotFound", 400, self.ec2.describe_vpcs, VpcIds=["vpc-00000000000000000"]
        )
        self.assert_error(
            "InvalidDhcpOptionID.NotFound",
            400,
            self.ec2.describe_dhcp_options,
            DhcpOptionsIds=["dopt-00000000000000000"],
        )

    def test_subnets(self):
        name = f"{self.world['infrastructureName']}-private-us-east-1b"
        subnets = self.ec2.describe_subnets(
            Filters=[
                {"Name": "tag:Name", "Values": [name]},
                {"Name": "availabilityZone", "Values": ["us-east-1b"]},
            ]
        )["Subnets"]
        self.assertEqual(
            [s["SubnetId"] for s in subnets], [self.world["privateSubnets"]["us-east-1b"]]
        )
        self.assertFalse(subnets[0]["MapPublicIpOnLaunch"])
        self.assertGreater(subnets[0]["AvailableIpAddressCount"], 3000)
        wildcard = self.ec2.describe_subnets(
            Filters=[{"Name": "tag:Name", "Values": ["*-private-us-east-1?"]}]
        )
        self.assertEqual(len(wildcard["Subnets"]), 3)
        self.assert_error(
            "InvalidSubnetID.NotFound",
            400,
            self.ec2.describe_subnets,
            SubnetIds=["subnet-00000000000000000"],
        )
        message = self.assert_error(
            "InvalidParameterValue",
            400,
            self.ec2.describe_subnets,
            Filters=[{"Name": "colour", "Values": ["blue"]}],
        )
        self.assertIn("colour", message)

    def test_security_groups(self):
        name = f"{self.world['infrastructureName']}-worker-sg"
        groups = self.ec2.describe_security_groups(
            Filters=[{"Name": "tag:Name", "Values": [name]}]
        )["SecurityGroups"]
        self.assertEqual([g["GroupId"] for g in groups], [self.world["workerSecurityGroup"]])
        self.assertEqual(groups[0]["VpcId"], self.world["vpcId"])
        by_name = self.ec2.describe_security_groups(GroupNames=[name])["SecurityGroups"]
        self.assertEqual(len(by_name), 1)
        self.assert_error(
            "InvalidGroup.NotFound",
            400,
            self.ec2.describe_security_groups,
            GroupIds=["sg-00000000000000000"],
        )

    def test_images(self):
        images = self.ec2.describe_images(
            Owners=["self"],
            Filters=[
                {"Name": "architecture", "Values": ["x86_64"]},
                {"Name": "name", "Values": ["machinist-node-*"]},
            ],
        )["Images"]
        self.assertEqual(len(images), 2)
        newest = max(images, key=lambda image: image["CreationDate"])
        self.assertEqual(newest["ImageId"], self.world["images"]["x86_64"])
        self.assertEqual(newest["RootDeviceName"], "/dev/xvda")
        self.assertEqual(newest["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"], 16)
        self.assert_error(
            "InvalidAMIID.NotFound",
            400,
            self.ec2.describe_images,
            ImageIds=["ami-00000000000000000"],
        )
        self.assert_error(
            "InvalidAMIID.Malformed", 400, self.ec2.describe_images, ImageIds=["nonsense"]
        )

    def test_instance_types(self):
        pages = self.ec2.get_paginator("describe_instance_types").paginate(
            PaginationConfig={"PageSize": 5}
        )
        types = {t["InstanceType"]: t for page in pages for t in page["InstanceTypes"]}
        self.assertEqual(sorted(types), sorted(self.world["instanceTypes"]))
        self.assertGreaterEqual(len(types), 12)
        large = types["m5.large"]
        self.assertEqual(large["VCpuInfo"]["DefaultVCpus"], 2)
        self.assertEqual(large["MemoryInfo"]["SizeInMiB"], 8192)
        self.assertEqual(large["ProcessorInfo"]["SupportedArchitectures"], ["x86_64"])
        self.assertEqual(types["m6g.large"]["ProcessorInfo"]["SupportedArchitectures"], ["arm64"])
        self.assertEqual(sum(g["Count"] for g in types["p3.8xlarge"]["GpuInfo"]["Gpus"]), 4)
        self.assertNotIn("GpuInfo", large)
        self.assert_error(
            "InvalidInstanceType", 400, self.ec2.describe_instance_types, InstanceTypes=["x9.huge"]
        )
