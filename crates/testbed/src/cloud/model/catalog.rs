//! Which sizes of machine does the cloud have? A small part of EC2's catalog, with its true figures.

use super::{filter::Filterable, tags::Tags};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InstanceType {
    pub name: &'static str,
    pub architecture: &'static str,
    pub vcpus: u32,
    pub threads_per_core: u32,
    pub memory_mib: u64,
    pub clock_ghz: f64,
    pub manufacturer: &'static str,
    pub gpu: Option<Gpu>,
    pub network_performance: &'static str,
    pub network_interfaces_max: u32,
    pub addresses_per_interface: u32,
    pub burstable: bool,
    pub efa_supported: bool,
    pub instance_store_gb: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gpu {
    pub name: &'static str,
    pub manufacturer: &'static str,
    pub count: u32,
    pub memory_mib: u32,
}

/// All types, in the order of their names, by which pages are cut.
pub const INSTANCE_TYPES: &[InstanceType] = &[
    x86("c5.2xlarge", 8, 16_384, 3.4, "Up to 10 Gigabit", 4, 15),
    x86("c5.large", 2, 4_096, 3.4, "Up to 10 Gigabit", 3, 10),
    x86("c5.xlarge", 4, 8_192, 3.4, "Up to 10 Gigabit", 4, 15),
    InstanceType {
        efa_supported: true,
        ..x86("c5n.18xlarge", 72, 196_608, 3.5, "100 Gigabit", 15, 50)
    },
    InstanceType {
        gpu: Some(Gpu { name: "T4", manufacturer: "NVIDIA", count: 1, memory_mib: 16_384 }),
        instance_store_gb: Some(125),
        ..x86("g4dn.xlarge", 4, 16_384, 2.5, "Up to 25 Gigabit", 3, 10)
    },
    x86("m5.2xlarge", 8, 32_768, 3.1, "Up to 10 Gigabit", 4, 15),
    x86("m5.4xlarge", 16, 65_536, 3.1, "Up to 10 Gigabit", 8, 30),
    x86("m5.large", 2, 8_192, 3.1, "Up to 10 Gigabit", 3, 10),
    x86("m5.xlarge", 4, 16_384, 3.1, "Up to 10 Gigabit", 4, 15),
    InstanceType {
        manufacturer: "AMD",
        ..x86("m6a.large", 2, 8_192, 3.6, "Up to 12.5 Gigabit", 3, 10)
    },
    arm("m6g.large", 2, 8_192),
    arm("m6g.xlarge", 4, 16_384),
    x86("m6i.large", 2, 8_192, 3.5, "Up to 12.5 Gigabit", 3, 10),
    x86("m6i.xlarge", 4, 16_384, 3.5, "Up to 12.5 Gigabit", 4, 15),
    InstanceType {
        gpu: Some(Gpu { name: "V100", manufacturer: "NVIDIA", count: 1, memory_mib: 16_384 }),
        ..x86("p3.2xlarge", 8, 62_464, 2.7, "Up to 10 Gigabit", 4, 15)
    },
    InstanceType {
        gpu: Some(Gpu { name: "V100", manufacturer: "NVIDIA", count: 4, memory_mib: 16_384 }),
        ..x86("p3.8xlarge", 32, 249_856, 2.7, "10 Gigabit", 8, 30)
    },
    x86("r5.xlarge", 4, 32_768, 3.1, "Up to 10 Gigabit", 4, 15),
    InstanceType { burstable: true, ..x86("t3.large", 2, 8_192, 2.5, "Up to 5 Gigabit", 3, 12) },
    InstanceType { burstable: true, ..x86("t3.medium", 2, 4_096, 2.5, "Up to 5 Gigabit", 3, 6) },
];

pub fn instance_type(name: &str) -> Option<&'static InstanceType> {
    INSTANCE_TYPES.iter().find(|kind| kind.name == name)
}

const fn x86(
    name: &'static str,
    vcpus: u32,
    memory_mib: u64,
    clock_ghz: f64,
    network_performance: &'static str,
    network_interfaces_max: u32,
    addresses_per_interface: u32,
) -> InstanceType {
    InstanceType {
        name,
        architecture: "x86_64",
        vcpus,
        threads_per_core: 2,
        memory_mib,
        clock_ghz,
        manufacturer: "Intel",
        gpu: None,
        network_performance,
        network_interfaces_max,
        addresses_per_interface,
        burstable: false,
        efa_supported: false,
        instance_store_gb: None,
    }
}

const fn arm(name: &'static str, vcpus: u32, memory_mib: u64) -> InstanceType {
    InstanceType {
        name,
        architecture: "arm64",
        vcpus,
        threads_per_core: 1,
        memory_mib,
        clock_ghz: 2.5,
        manufacturer: "AWS",
        gpu: None,
        network_performance: "Up to 10 Gigabit",
        network_interfaces_max: 4,
        addresses_per_interface: 15,
        burstable: false,
        efa_supported: false,
        instance_store_gb: None,
    }
}

impl Filterable for InstanceType {
    const FILTERS: &'static [&'static str] = &[
        "instance-type",
        "processor-info.supported-architecture",
        "vcpu-info.default-vcpus",
        "vcpu-info.default-cores",
        "vcpu-info.default-threads-per-core",
        "memory-info.size-in-mib",
        "current-generation",
        "bare-metal",
        "burstable-performance-supported",
        "hypervisor",
        "supported-usage-class",
        "supported-root-device-type",
        "supported-virtualization-type",
        "instance-storage-supported",
    ];

    fn page_key(&self) -> &str {
        self.name
    }

    fn tags(&self) -> Option<&Tags> {
        None
    }

    fn filter_values(&self, name: &str) -> Vec<String> {
        let value = match name {
            "instance-type" => self.name.into(),
            "processor-info.supported-architecture" => self.architecture.into(),
            "vcpu-info.default-vcpus" => self.vcpus.to_string(),
            "vcpu-info.default-cores" => self.cores().to_string(),
            "vcpu-info.default-threads-per-core" => self.threads_per_core.to_string(),
            "memory-info.size-in-mib" => self.memory_mib.to_string(),
            "current-generation" => "true".into(),
            "bare-metal" => "false".into(),
            "burstable-performance-supported" => self.burstable.to_string(),
            "hypervisor" => "nitro".into(),
            "supported-usage-class" => return vec!["on-demand".into(), "spot".into()],
            "supported-root-device-type" => "ebs".into(),
            "supported-virtualization-type" => "hvm".into(),
            "instance-storage-supported" => self.instance_store_gb.is_some().to_string(),
            _ => return Vec::new(),
        };
        vec![value]
    }
}

impl InstanceType {
    pub fn cores(&self) -> u32 {
        self.vcpus / self.threads_per_core.max(1)
    }
}
