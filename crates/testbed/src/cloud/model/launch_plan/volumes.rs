//! Which volumes does a launch get?

use std::collections::BTreeSet;

use super::{VolumePlan, check_word};
use crate::cloud::model::{
    error::Ec2Error,
    request::{BlockDeviceMapping, EbsBlockDevice},
    world::Image,
};

const VOLUME_TYPES: &[&str] = &["standard", "gp2", "gp3", "io1", "io2", "st1", "sc1"];

pub(super) fn plan_volumes(
    image: &Image,
    mappings: &[BlockDeviceMapping],
) -> Result<Vec<VolumePlan>, Ec2Error> {
    let mut volumes = vec![VolumePlan {
        device_name: image.root_device_name.clone(),
        delete_on_termination: true,
        size_gib: image.root_size_gib,
        volume_type: "gp2".into(),
    }];
    let mut seen = BTreeSet::new();
    for mapping in mappings {
        let device_name = mapping
            .device_name
            .clone()
            .ok_or_else(|| Ec2Error::missing_parameter("BlockDeviceMapping.DeviceName"))?;
        if !seen.insert(device_name.clone()) {
            return Err(invalid_mapping(format!(
                "The device '{device_name}' is used in more than one block-device mapping"
            )));
        }
        // Without EBS settings it is an instance-store volume or a suppressed device; neither is kept.
        let Some(ebs) = &mapping.ebs else { continue };
        check_ebs(ebs)?;
        let volume_type = ebs.volume_type.clone().unwrap_or_else(|| "gp2".into());
        let delete_on_termination = ebs.delete_on_termination.unwrap_or(true);
        let is_root = device_name == image.root_device_name;
        if is_root {
            let size = ebs.volume_size.unwrap_or(image.root_size_gib);
            if size < image.root_size_gib {
                return Err(invalid_mapping(format!(
                    "Volume of size {size}GB is smaller than snapshot '{}', expect size >= {}GB",
                    image.snapshot_id, image.root_size_gib
                )));
            }
            volumes.retain(|volume| volume.device_name != device_name);
            let root =
                VolumePlan { device_name, delete_on_termination, size_gib: size, volume_type };
            volumes.insert(0, root);
        } else {
            let size_gib = ebs
                .volume_size
                .ok_or_else(|| invalid_mapping("Missing volume size or snapshot"))?;
            volumes.push(VolumePlan { device_name, delete_on_termination, size_gib, volume_type });
        }
    }
    Ok(volumes)
}

fn check_ebs(ebs: &EbsBlockDevice) -> Result<(), Ec2Error> {
    check_word("volumeType", ebs.volume_type.as_deref(), VOLUME_TYPES)?;
    let volume_type = ebs.volume_type.as_deref().unwrap_or("gp2");
    let takes_iops = matches!(volume_type, "io1" | "io2" | "gp3");
    if ebs.iops.is_some() && !takes_iops {
        return Err(Ec2Error::invalid_combination(format!(
            "The parameter iops is not supported for {volume_type} volumes."
        )));
    }
    if ebs.iops.is_none() && matches!(volume_type, "io1" | "io2") {
        return Err(Ec2Error::missing_parameter("Iops"));
    }
    if ebs.throughput.is_some() && volume_type != "gp3" {
        return Err(Ec2Error::invalid_combination(format!(
            "The parameter throughput is not supported for {volume_type} volumes."
        )));
    }
    if ebs.kms_key_id.is_some() && ebs.encrypted != Some(true) {
        return Err(Ec2Error::invalid_combination(
            "The parameter KmsKeyId requires the parameter Encrypted to be set.",
        ));
    }
    if ebs.volume_size.is_some_and(|size| size < 1) {
        return Err(invalid_mapping("The volume size must be at least 1 GiB"));
    }
    Ok(())
}

fn invalid_mapping(message: impl Into<String>) -> Ec2Error {
    Ec2Error::new("InvalidBlockDeviceMapping", message)
}
