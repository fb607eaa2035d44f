//! What is there before anything is launched? Region, zones, one VPC with its subnets, groups, images.

use std::{collections::BTreeMap, net::Ipv4Addr};

use serde::Serialize;

use super::{catalog::INSTANCE_TYPES, config::CloudConfig, random::Randomness, tags::Tags};

pub use super::world_filters::REGIONS;

/// The resources that a launch refers to.
#[derive(Debug, Clone, PartialEq)]
pub struct World {
    pub region: String,
    pub zones: Vec<Zone>,
    pub vpcs: BTreeMap<String, Vpc>,
    pub dhcp_options: BTreeMap<String, DhcpOptions>,
    pub subnets: BTreeMap<String, Subnet>,
    pub security_groups: BTreeMap<String, SecurityGroup>,
    pub images: BTreeMap<String, Image>,
    ids: WorldIds,
}

/// The ids that a caller needs to write a providerSpec.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorldIds {
    pub region: String,
    pub account_id: String,
    pub infrastructure_name: String,
    pub availability_zones: Vec<String>,
    pub vpc_id: String,
    pub dhcp_options_id: String,
    pub domain_name: String,
    /// Subnet ids by zone; instances in them get no public address.
    pub private_subnets: BTreeMap<String, String>,
    /// Subnet ids by zone; instances in them get a public address unless they decline it.
    pub public_subnets: BTreeMap<String, String>,
    /// A zone in a carrier's network, which is none of the availability zones, and its subnet.
    pub wavelength_zone: String,
    pub wavelength_subnet: String,
    pub default_security_group: String,
    pub worker_security_group: String,
    pub master_security_group: String,
    /// The newest image of each architecture (`x86_64`, `arm64`).
    pub images: BTreeMap<String, String>,
    pub instance_types: Vec<String>,
    pub worker_instance_profile: String,
    pub master_instance_profile: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    pub name: &'static str,
    pub opt_in_status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    pub name: String,
    pub id: String,
    pub region: String,
    pub kind: ZoneKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneKind {
    Availability,
    /// A zone in a carrier's network, where instances have carrier addresses and no public ones.
    Wavelength,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vpc {
    pub id: String,
    pub owner_id: String,
    pub cidr: String,
    pub cidr_association_id: String,
    pub ipv6_cidr: String,
    pub dhcp_options_id: String,
    pub tags: Tags,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DhcpOptions {
    pub id: String,
    pub owner_id: String,
    pub options: Vec<(String, Vec<String>)>,
    pub tags: Tags,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subnet {
    pub id: String,
    pub owner_id: String,
    pub region: String,
    pub vpc_id: String,
    pub zone: String,
    pub zone_id: String,
    pub base: Ipv4Addr,
    pub prefix_length: u8,
    pub ipv6_cidr: String,
    pub public: bool,
    pub tags: Tags,
    /// Addresses in use, as offsets from the base.
    pub(super) used: std::collections::BTreeSet<u32>,
    /// The offset after the last one given out. Addresses go round the subnet, so that a freed one is
    /// used again only when the others were.
    pub(super) cursor: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityGroup {
    pub id: String,
    pub owner_id: String,
    pub region: String,
    pub name: String,
    pub description: String,
    pub vpc_id: String,
    pub tags: Tags,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub id: String,
    pub owner_id: String,
    pub name: String,
    pub description: String,
    pub architecture: String,
    pub creation_date: String,
    pub root_device_name: String,
    pub snapshot_id: String,
    pub root_size_gib: i64,
    pub tags: Tags,
}

/// The images, oldest first: name, architecture, creation date.
const IMAGES: &[(&str, &str, &str)] = &[
    ("machinist-node-1.35-x86_64", "x86_64", "2026-01-15T08:00:00.000Z"),
    ("machinist-node-1.36-x86_64", "x86_64", "2026-05-15T08:00:00.000Z"),
    ("machinist-node-1.36-arm64", "arm64", "2026-05-15T08:05:00.000Z"),
];

/// Each subnet is a /20: 4 091 usable addresses, more than any test or benchmark launches in a zone.
const SUBNET_PREFIX_LENGTH: u8 = 20;
/// AWS keeps the first four addresses of a subnet and the last.
const RESERVED_AT_START: u32 = 4;

impl World {
    pub fn new(config: &CloudConfig, randomness: &mut Randomness) -> Self {
        let mut builder = Builder { config, randomness };
        builder.build()
    }

    pub fn ids(&self) -> &WorldIds {
        &self.ids
    }

    pub fn zone(&self, name: &str) -> Option<&Zone> {
        self.zones.iter().find(|zone| zone.name == name)
    }

    pub(super) fn tags_of(&self, id: &str) -> Option<&Tags> {
        None.or_else(|| self.subnets.get(id).map(|subnet| &subnet.tags))
            .or_else(|| self.security_groups.get(id).map(|group| &group.tags))
            .or_else(|| self.vpcs.get(id).map(|vpc| &vpc.tags))
            .or_else(|| self.dhcp_options.get(id).map(|options| &options.tags))
            .or_else(|| self.images.get(id).map(|image| &image.tags))
    }

    pub(super) fn tags_of_mut(&mut self, id: &str) -> Option<&mut Tags> {
        None.or_else(|| self.subnets.get_mut(id).map(|subnet| &mut subnet.tags))
            .or_else(|| self.security_groups.get_mut(id).map(|group| &mut group.tags))
            .or_else(|| self.vpcs.get_mut(id).map(|vpc| &mut vpc.tags))
            .or_else(|| self.dhcp_options.get_mut(id).map(|options| &mut options.tags))
            .or_else(|| self.images.get_mut(id).map(|image| &mut image.tags))
    }
}

impl Subnet {
    pub fn cidr(&self) -> String {
        format!("{}/{}", self.base, self.prefix_length)
    }

    fn size(&self) -> u32 {
        1_u32 << (32 - u32::from(self.prefix_length))
    }

    fn offsets(&self) -> std::ops::Range<u32> {
        RESERVED_AT_START..self.size() - 1
    }

    pub fn free_addresses(&self) -> usize {
        self.offsets().len().saturating_sub(self.used.len())
    }

    pub(super) fn contains(&self, address: Ipv4Addr) -> bool {
        self.offset_of(address).is_some_and(|offset| self.offsets().contains(&offset))
    }

    fn offset_of(&self, address: Ipv4Addr) -> Option<u32> {
        u32::from(address).checked_sub(u32::from(self.base))
    }

    pub(super) fn is_free(&self, address: Ipv4Addr) -> bool {
        self.offset_of(address).is_some_and(|offset| !self.used.contains(&offset))
    }

    pub(super) fn take(&mut self, address: Ipv4Addr) {
        if let Some(offset) = self.offset_of(address) {
            self.used.insert(offset);
        }
    }

    /// The next free address; where addresses are used again, the first that is free.
    pub(super) fn take_next(&mut self, reuses: bool) -> Option<Ipv4Addr> {
        let range = self.offsets();
        let cursor = if reuses { range.start } else { self.cursor };
        let start = cursor.clamp(range.start, range.end - 1);
        let offset = (start..range.end)
            .chain(range.start..start)
            .find(|offset| !self.used.contains(offset))?;
        self.used.insert(offset);
        self.cursor = if offset + 1 >= range.end { range.start } else { offset + 1 };
        Some(Ipv4Addr::from(u32::from(self.base) + offset))
    }

    pub(super) fn release(&mut self, address: Ipv4Addr) {
        if let Some(offset) = self.offset_of(address) {
            self.used.remove(&offset);
        }
    }
}

struct Builder<'a> {
    config: &'a CloudConfig,
    randomness: &'a mut Randomness,
}

impl Builder<'_> {
    fn build(&mut self) -> World {
        let config = self.config;
        let infrastructure = &config.infrastructure_name;
        let zones: Vec<Zone> = ["a", "b", "c"]
            .iter()
            .zip(1..)
            .map(|(letter, number)| Zone {
                name: format!("{}{letter}", config.region),
                id: zone_id(&config.region, number),
                region: config.region.clone(),
                kind: ZoneKind::Availability,
            })
            .collect();
        let dhcp_options = self.dhcp_options();
        let vpc = Vpc {
            id: self.randomness.resource_id("vpc"),
            owner_id: config.account_id.clone(),
            cidr: "10.0.0.0/16".into(),
            cidr_association_id: self.randomness.resource_id("vpc-cidr-assoc"),
            ipv6_cidr: "2600:1f18:1000:1000::/56".into(),
            dhcp_options_id: dhcp_options.id.clone(),
            tags: self.tags(&format!("{infrastructure}-vpc")),
        };
        let mut ids = WorldIds {
            region: config.region.clone(),
            account_id: config.account_id.clone(),
            infrastructure_name: infrastructure.clone(),
            availability_zones: zones.iter().map(|zone| zone.name.clone()).collect(),
            vpc_id: vpc.id.clone(),
            dhcp_options_id: dhcp_options.id.clone(),
            domain_name: config.domain_name(),
            instance_types: INSTANCE_TYPES.iter().map(|kind| kind.name.into()).collect(),
            worker_instance_profile: format!("{infrastructure}-worker-profile"),
            master_instance_profile: format!("{infrastructure}-master-profile"),
            ..WorldIds::default()
        };
        let mut subnets = self.subnets(&zones, &vpc, &mut ids);
        let security_groups = self.security_groups(&vpc, &mut ids);
        let images = self.images(&mut ids);
        let mut zones = zones;
        let wavelength = Zone {
            name: format!("{}-wl1-bos-wlz-1", config.region),
            id: format!("{}-wl1-bos-wlz1", zone_prefix(&config.region)),
            region: config.region.clone(),
            kind: ZoneKind::Wavelength,
        };
        ids.wavelength_zone.clone_from(&wavelength.name);
        let subnet = self.subnet(&wavelength, &vpc, "wavelength", false, 6);
        ids.wavelength_subnet.clone_from(&subnet.id);
        subnets.insert(subnet.id.clone(), subnet);
        zones.push(wavelength);
        World {
            region: config.region.clone(),
            zones,
            vpcs: BTreeMap::from([(vpc.id.clone(), vpc)]),
            dhcp_options: BTreeMap::from([(dhcp_options.id.clone(), dhcp_options)]),
            subnets,
            security_groups,
            images,
            ids,
        }
    }

    fn tags(&self, name: &str) -> Tags {
        Tags::from([
            ("Name".into(), name.into()),
            (format!("kubernetes.io/cluster/{}", self.config.infrastructure_name), "owned".into()),
        ])
    }

    fn dhcp_options(&mut self) -> DhcpOptions {
        DhcpOptions {
            id: self.randomness.resource_id("dopt"),
            owner_id: self.config.account_id.clone(),
            options: vec![
                ("domain-name".into(), vec![self.config.domain_name()]),
                ("domain-name-servers".into(), vec!["AmazonProvidedDNS".into()]),
            ],
            tags: self.tags(&format!("{}-dhcp", self.config.infrastructure_name)),
        }
    }

    fn subnets(
        &mut self,
        zones: &[Zone],
        vpc: &Vpc,
        ids: &mut WorldIds,
    ) -> BTreeMap<String, Subnet> {
        let mut subnets = BTreeMap::new();
        let mut network = 0_u8;
        for public in [false, true] {
            for zone in zones {
                let kind = if public { "public" } else { "private" };
                let subnet = self.subnet(zone, vpc, kind, public, network);
                let by_zone =
                    if public { &mut ids.public_subnets } else { &mut ids.private_subnets };
                by_zone.insert(zone.name.clone(), subnet.id.clone());
                subnets.insert(subnet.id.clone(), subnet);
                network = network.saturating_add(1);
            }
        }
        subnets
    }

    fn subnet(&mut self, zone: &Zone, vpc: &Vpc, kind: &str, public: bool, network: u8) -> Subnet {
        let name = format!("{}-{kind}-{}", self.config.infrastructure_name, zone.name);
        Subnet {
            id: self.randomness.resource_id("subnet"),
            owner_id: self.config.account_id.clone(),
            region: self.config.region.clone(),
            vpc_id: vpc.id.clone(),
            zone: zone.name.clone(),
            zone_id: zone.id.clone(),
            // A /20 spans 16 values of the third octet; sixteen subnets fit the VPC's /16.
            base: Ipv4Addr::new(10, 0, network.saturating_mul(16), 0),
            prefix_length: SUBNET_PREFIX_LENGTH,
            ipv6_cidr: format!("2600:1f18:1000:10{network:02x}::/64"),
            public,
            tags: self.tags(&name),
            used: std::collections::BTreeSet::new(),
            cursor: RESERVED_AT_START,
        }
    }

    fn security_groups(
        &mut self,
        vpc: &Vpc,
        ids: &mut WorldIds,
    ) -> BTreeMap<String, SecurityGroup> {
        let infrastructure = self.config.infrastructure_name.clone();
        let mut groups = BTreeMap::new();
        let mut add = |builder: &mut Self, name: String, description: &str, tags: Tags| {
            let group = SecurityGroup {
                id: builder.randomness.resource_id("sg"),
                owner_id: builder.config.account_id.clone(),
                region: builder.config.region.clone(),
                name,
                description: description.into(),
                vpc_id: vpc.id.clone(),
                tags,
            };
            let id = group.id.clone();
            groups.insert(id.clone(), group);
            id
        };
        ids.default_security_group =
            add(self, "default".into(), "default VPC security group", Tags::new());
        let worker = format!("{infrastructure}-worker-sg");
        let tags = self.tags(&worker);
        ids.worker_security_group = add(self, worker, "cluster workers", tags);
        let master = format!("{infrastructure}-master-sg");
        let tags = self.tags(&master);
        ids.master_security_group = add(self, master, "cluster control plane", tags);
        groups
    }

    fn images(&mut self, ids: &mut WorldIds) -> BTreeMap<String, Image> {
        let mut images = BTreeMap::new();
        for (name, architecture, creation_date) in IMAGES {
            let image = Image {
                id: self.randomness.resource_id("ami"),
                owner_id: self.config.account_id.clone(),
                name: (*name).into(),
                description: format!("Kubernetes node image {name}"),
                architecture: (*architecture).into(),
                creation_date: (*creation_date).into(),
                root_device_name: "/dev/xvda".into(),
                snapshot_id: self.randomness.resource_id("snap"),
                root_size_gib: 16,
                tags: Tags::from([("Name".into(), (*name).into())]),
            };
            // The list is oldest first, so the newest image of an architecture stays in the map.
            ids.images.insert((*architecture).into(), image.id.clone());
            images.insert(image.id.clone(), image);
        }
        images
    }
}

/// Returns a zone id in EC2's form, for example `use1-az1` for the first zone of us-east-1.
fn zone_id(region: &str, number: u32) -> String {
    format!("{}-az{number}", zone_prefix(region))
}

fn zone_prefix(region: &str) -> String {
    let mut parts = region.split('-');
    let area = parts.next().unwrap_or_default();
    let direction: String = parts.next().map(abbreviated_direction).unwrap_or_default();
    let index = parts.next().unwrap_or("1");
    format!("{area}{direction}{index}")
}

fn abbreviated_direction(direction: &str) -> String {
    match direction {
        "northeast" => "ne".into(),
        "northwest" => "nw".into(),
        "southeast" => "se".into(),
        "southwest" => "sw".into(),
        other => other.chars().take(1).collect(),
    }
}
