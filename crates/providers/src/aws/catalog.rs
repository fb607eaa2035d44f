//! Which sizes does the region offer?

use std::collections::BTreeMap;

use aws_sdk_ec2::types::{ArchitectureType, InstanceTypeInfo};

use super::{
    actions::Action,
    client::AwsProvider,
    errors::Attempt,
    instances::{PAGES_MAX, endless},
};
use crate::{InstanceSize, ProviderError};

/// EC2 allows no larger pages of instance types.
const PAGE_SIZE_MAX: i32 = 100;

impl AwsProvider {
    pub(super) async fn list_instance_sizes(&self) -> Result<Vec<InstanceSize>, ProviderError> {
        let attempt =
            Attempt::on_instances(Action::DescribeInstanceTypes, "list the instance types");
        let mut sizes = BTreeMap::new();
        let mut next_token = None;
        for _ in 0..PAGES_MAX {
            let call = self
                .cloud
                .ec2
                .describe_instance_types()
                .max_results(self.cloud.page_size.min(PAGE_SIZE_MAX))
                .set_next_token(next_token);
            let page = self.cloud.call(&attempt, call.send()).await?;
            let found = page.instance_types().iter().filter_map(translate);
            sizes.extend(found.map(|size| (size.name.clone(), size)));
            next_token = page.next_token.filter(|token| !token.is_empty());
            if next_token.is_none() {
                return Ok(sizes.into_values().collect());
            }
        }
        Err(endless(&attempt))
    }
}

fn translate(info: &InstanceTypeInfo) -> Option<InstanceSize> {
    let vcpus = info.v_cpu_info().and_then(|cpu| cpu.default_v_cpus()).unwrap_or_default();
    let memory_mib = info.memory_info().and_then(|memory| memory.size_in_mib()).unwrap_or_default();
    let gpus = info.gpu_info().map_or(0, |info| {
        info.gpus().iter().filter_map(|gpu| gpu.count()).map(i64::from).sum::<i64>()
    });
    let architectures = info.processor_info().map(|info| info.supported_architectures());
    let architecture = match architectures.and_then(|supported| supported.first()) {
        Some(ArchitectureType::Arm64 | ArchitectureType::Arm64Mac) => "arm64",
        // Whatever else there is runs amd64 images.
        Some(_) | None => "amd64",
    };
    Some(InstanceSize {
        name: info.instance_type()?.as_str().to_owned(),
        vcpus: u32::try_from(vcpus).unwrap_or_default(),
        memory_mib: u64::try_from(memory_mib).unwrap_or_default(),
        gpus: u32::try_from(gpus).unwrap_or_default(),
        architecture: architecture.to_owned(),
        has_instance_store: info.instance_storage_supported().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::types::{
        GpuDeviceInfo, GpuInfo, InstanceType, MemoryInfo, ProcessorInfo, VCpuInfo,
    };

    use super::*;

    #[test]
    fn size_counts_all_gpus_and_takes_the_first_architecture() {
        let gpu = |count| GpuDeviceInfo::builder().count(count).build();
        let architectures = ProcessorInfo::builder()
            .supported_architectures(ArchitectureType::Arm64)
            .supported_architectures(ArchitectureType::X8664);
        let info = InstanceTypeInfo::builder()
            .instance_type(InstanceType::from("x.large"))
            .v_cpu_info(VCpuInfo::builder().default_v_cpus(4).build())
            .memory_info(MemoryInfo::builder().size_in_mib(16_384).build())
            .gpu_info(GpuInfo::builder().gpus(gpu(1)).gpus(gpu(2)).build())
            .processor_info(architectures.build())
            .instance_storage_supported(true)
            .build();
        let expected = InstanceSize {
            name: "x.large".to_owned(),
            vcpus: 4,
            memory_mib: 16_384,
            gpus: 3,
            architecture: "arm64".to_owned(),
            has_instance_store: true,
        };
        assert_eq!(translate(&info), Some(expected));
        let bare = InstanceTypeInfo::builder().instance_type(InstanceType::from("i.386")).build();
        let bare = translate(&bare).unwrap();
        assert_eq!((bare.architecture.as_str(), bare.has_instance_store), ("amd64", false));
    }
}
