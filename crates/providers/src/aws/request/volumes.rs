//! Which volumes does the instance get?

use aws_sdk_ec2::types::{BlockDeviceMapping, EbsBlockDevice as Ec2EbsBlockDevice, VolumeType};

use super::{
    super::{
        config::{AwsMachineProviderConfig, BlockDevice, EbsBlockDevice},
        errors::invalid,
    },
    in_range,
};
use crate::ProviderError;

pub(super) fn block_devices(
    config: &AwsMachineProviderConfig,
    root_device_name: Option<&str>,
) -> Result<Option<Vec<BlockDeviceMapping>>, ProviderError> {
    let mut mappings = Vec::new();
    let mut root_is_taken = false;
    for (index, device) in config.block_devices.iter().enumerate() {
        if device.ebs.is_none() && device.no_device.is_none() && device.virtual_name.is_none() {
            continue;
        }
        let field = format!("providerSpec.blockDevices[{index}]");
        let name = match (&device.device_name, root_device_name) {
            (Some(name), _) => name.as_str(),
            (None, Some(root)) if !root_is_taken => {
                root_is_taken = true;
                root
            }
            (None, Some(_)) => return Err(invalid(&field, "non root device must have name")),
            (None, None) => {
                return Err(invalid(&field, "the image names no root device, so a name is needed"));
            }
        };
        mappings.push(block_device(&field, name, device)?);
    }
    Ok((!mappings.is_empty()).then_some(mappings))
}

fn block_device(
    field: &str,
    name: &str,
    device: &BlockDevice,
) -> Result<BlockDeviceMapping, ProviderError> {
    let ebs = match &device.ebs {
        Some(ebs) => Some(ebs_block_device(field, ebs)?),
        None => None,
    };
    Ok(BlockDeviceMapping::builder()
        .device_name(name)
        .set_ebs(ebs)
        .set_no_device(device.no_device.clone())
        .set_virtual_name(device.virtual_name.clone())
        .build())
}

fn ebs_block_device(field: &str, ebs: &EbsBlockDevice) -> Result<Ec2EbsBlockDevice, ProviderError> {
    let volume_type = ebs.volume_type.as_deref();
    let number = |name: &str, value: Option<i64>| match value {
        Some(value) if value > 0 => in_range(&format!("{field}.ebs.{name}"), value).map(Some),
        Some(_) | None => Ok(None),
    };
    // The other types refuse these two, and manifests carry them over from one type to another.
    let iops = ebs.iops.filter(|_| matches!(volume_type, Some("io1" | "io2" | "gp3")));
    let throughput = ebs.throughput_mib.filter(|_| volume_type == Some("gp3"));
    let kms_key = ebs.kms_key.as_ref().and_then(|key| key.id.clone().or_else(|| key.arn.clone()));
    Ok(Ec2EbsBlockDevice::builder()
        .delete_on_termination(true)
        .set_encrypted(ebs.encrypted)
        .set_kms_key_id(kms_key)
        .set_iops(number("iops", iops)?)
        .set_throughput(number("throughputMib", throughput)?)
        .set_volume_size(number("volumeSize", ebs.volume_size)?)
        .set_volume_type(volume_type.map(VolumeType::from))
        .build())
}
