//! By which filters can the resources of the world be found?

use super::{
    filter::Filterable,
    tags::Tags,
    world::{DhcpOptions, Image, Region, SecurityGroup, Subnet, Vpc, Zone, ZoneKind},
};

/// The regions that DescribeRegions knows; only the configured one has resources.
pub const REGIONS: &[Region] = &[
    Region { name: "af-south-1", opt_in_status: "not-opted-in" },
    Region { name: "ap-northeast-1", opt_in_status: "opt-in-not-required" },
    Region { name: "ap-southeast-1", opt_in_status: "opt-in-not-required" },
    Region { name: "eu-central-1", opt_in_status: "opt-in-not-required" },
    Region { name: "eu-west-1", opt_in_status: "opt-in-not-required" },
    Region { name: "us-east-1", opt_in_status: "opt-in-not-required" },
    Region { name: "us-east-2", opt_in_status: "opt-in-not-required" },
    Region { name: "us-west-2", opt_in_status: "opt-in-not-required" },
];

impl Filterable for Region {
    const FILTERS: &'static [&'static str] = &["region-name", "endpoint", "opt-in-status"];

    fn page_key(&self) -> &str {
        self.name
    }

    fn tags(&self) -> Option<&Tags> {
        None
    }

    fn filter_values(&self, name: &str) -> Vec<String> {
        match name {
            "region-name" => vec![self.name.into()],
            "endpoint" => vec![self.endpoint()],
            "opt-in-status" => vec![self.opt_in_status.into()],
            _ => Vec::new(),
        }
    }
}

impl Region {
    pub fn endpoint(&self) -> String {
        format!("ec2.{}.amazonaws.com", self.name)
    }
}

impl Filterable for Zone {
    const FILTERS: &'static [&'static str] = &[
        "zone-name",
        "zone-id",
        "region-name",
        "state",
        "zone-type",
        "opt-in-status",
        "group-name",
        "message",
    ];

    fn page_key(&self) -> &str {
        &self.name
    }

    fn tags(&self) -> Option<&Tags> {
        None
    }

    fn filter_values(&self, name: &str) -> Vec<String> {
        match name {
            "zone-name" => vec![self.name.clone()],
            "zone-id" => vec![self.id.clone()],
            "region-name" => vec![self.region.clone()],
            "group-name" => vec![self.group_name()],
            "state" => vec!["available".into()],
            "zone-type" => vec![self.type_name().into()],
            "opt-in-status" => vec![self.opt_in_status().into()],
            _ => Vec::new(),
        }
    }
}

impl Zone {
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            ZoneKind::Availability => "availability-zone",
            ZoneKind::Wavelength => "wavelength-zone",
        }
    }

    pub fn group_name(&self) -> String {
        match self.kind {
            ZoneKind::Availability => format!("{}-zg-1", self.region),
            ZoneKind::Wavelength => format!("{}-wl1", self.region),
        }
    }

    pub fn opt_in_status(&self) -> &'static str {
        match self.kind {
            ZoneKind::Availability => "opt-in-not-required",
            ZoneKind::Wavelength => "opted-in",
        }
    }
}

impl Filterable for Vpc {
    const FILTERS: &'static [&'static str] = &[
        "vpc-id",
        "cidr",
        "cidr-block-association.cidr-block",
        "dhcp-options-id",
        "is-default",
        "owner-id",
        "state",
    ];

    fn page_key(&self) -> &str {
        &self.id
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }

    fn filter_values(&self, name: &str) -> Vec<String> {
        match name {
            "vpc-id" => vec![self.id.clone()],
            "cidr" | "cidr-block-association.cidr-block" => vec![self.cidr.clone()],
            "dhcp-options-id" => vec![self.dhcp_options_id.clone()],
            "is-default" => vec!["false".into()],
            "owner-id" => vec![self.owner_id.clone()],
            "state" => vec!["available".into()],
            _ => Vec::new(),
        }
    }
}

impl Filterable for DhcpOptions {
    const FILTERS: &'static [&'static str] = &["dhcp-options-id", "key", "value", "owner-id"];

    fn page_key(&self) -> &str {
        &self.id
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }

    fn filter_values(&self, name: &str) -> Vec<String> {
        match name {
            "dhcp-options-id" => vec![self.id.clone()],
            "key" => self.options.iter().map(|(key, _)| key.clone()).collect(),
            "value" => self.options.iter().flat_map(|(_, values)| values.iter().cloned()).collect(),
            "owner-id" => vec![self.owner_id.clone()],
            _ => Vec::new(),
        }
    }
}

impl Filterable for Subnet {
    const FILTERS: &'static [&'static str] = &[
        "subnet-id",
        "subnet-arn",
        "vpc-id",
        // Both spellings are EC2's own; Machine API's provider sends the second.
        "availability-zone",
        "availabilityZone",
        "availability-zone-id",
        "availabilityZoneId",
        "cidr-block",
        "cidr",
        "cidrBlock",
        "state",
        "owner-id",
        "default-for-az",
        "defaultForAz",
        "map-public-ip-on-launch",
        "available-ip-address-count",
    ];

    fn page_key(&self) -> &str {
        &self.id
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }

    fn filter_values(&self, name: &str) -> Vec<String> {
        let value = match name {
            "subnet-id" => self.id.clone(),
            "subnet-arn" => self.arn(),
            "vpc-id" => self.vpc_id.clone(),
            "availability-zone" | "availabilityZone" => self.zone.clone(),
            "availability-zone-id" | "availabilityZoneId" => self.zone_id.clone(),
            "cidr-block" | "cidr" | "cidrBlock" => self.cidr(),
            "state" => "available".into(),
            "owner-id" => self.owner_id.clone(),
            "default-for-az" | "defaultForAz" => "false".into(),
            "map-public-ip-on-launch" => self.public.to_string(),
            "available-ip-address-count" => self.free_addresses().to_string(),
            _ => return Vec::new(),
        };
        vec![value]
    }
}

impl Subnet {
    pub fn arn(&self) -> String {
        format!("arn:aws:ec2:{}:{}:subnet/{}", self.region, self.owner_id, self.id)
    }
}

impl Filterable for SecurityGroup {
    const FILTERS: &'static [&'static str] =
        &["group-id", "group-name", "description", "vpc-id", "owner-id"];

    fn page_key(&self) -> &str {
        &self.id
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }

    fn filter_values(&self, name: &str) -> Vec<String> {
        match name {
            "group-id" => vec![self.id.clone()],
            "group-name" => vec![self.name.clone()],
            "description" => vec![self.description.clone()],
            "vpc-id" => vec![self.vpc_id.clone()],
            "owner-id" => vec![self.owner_id.clone()],
            _ => Vec::new(),
        }
    }
}

impl SecurityGroup {
    pub fn arn(&self) -> String {
        format!("arn:aws:ec2:{}:{}:security-group/{}", self.region, self.owner_id, self.id)
    }
}

impl Filterable for Image {
    const FILTERS: &'static [&'static str] = &[
        "image-id",
        "name",
        "description",
        "architecture",
        "owner-id",
        "owner-alias",
        "state",
        "creation-date",
        "root-device-name",
        "root-device-type",
        "virtualization-type",
        "image-type",
        "is-public",
        "ena-support",
        "hypervisor",
        "block-device-mapping.snapshot-id",
        "block-device-mapping.device-name",
    ];

    fn page_key(&self) -> &str {
        &self.id
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }

    fn filter_values(&self, name: &str) -> Vec<String> {
        let value = match name {
            "image-id" => self.id.clone(),
            "name" => self.name.clone(),
            "description" => self.description.clone(),
            "architecture" => self.architecture.clone(),
            "owner-id" => self.owner_id.clone(),
            "state" => "available".into(),
            "creation-date" => self.creation_date.clone(),
            "root-device-name" | "block-device-mapping.device-name" => {
                self.root_device_name.clone()
            }
            "root-device-type" => "ebs".into(),
            "virtualization-type" => "hvm".into(),
            "image-type" => "machine".into(),
            "is-public" => "false".into(),
            "ena-support" => "true".into(),
            "hypervisor" => "xen".into(),
            "block-device-mapping.snapshot-id" => self.snapshot_id.clone(),
            _ => return Vec::new(),
        };
        vec![value]
    }
}
