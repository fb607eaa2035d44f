//! Which tags does a resource carry? The rules that EC2 has for them, and CreateTags and DeleteTags.

use std::collections::BTreeMap;

use super::{
    Cloud,
    error::Ec2Error,
    random::is_resource_id,
    request::{CreateTags, DeleteTags, Tag},
    response::Response,
};

pub type Tags = BTreeMap<String, String>;

const TAGS_MAX: usize = 50;
const KEY_CHARACTERS_MAX: usize = 128;
const VALUE_CHARACTERS_MAX: usize = 256;

/// Checks tags that a request brings, one key at most once.
pub fn checked_tags(tags: &[Tag]) -> Result<Tags, Ec2Error> {
    let mut checked = Tags::new();
    for Tag { key, value } in tags {
        if key.is_empty() {
            return Err(Ec2Error::missing_parameter("key"));
        }
        if key.chars().count() > KEY_CHARACTERS_MAX {
            return Err(Ec2Error::invalid_value(format!(
                "Tag key exceeds the maximum length of {KEY_CHARACTERS_MAX} characters"
            )));
        }
        if value.chars().count() > VALUE_CHARACTERS_MAX {
            return Err(Ec2Error::invalid_value(format!(
                "Tag value exceeds the maximum length of {VALUE_CHARACTERS_MAX} characters"
            )));
        }
        if key.to_ascii_lowercase().starts_with("aws:") {
            return Err(Ec2Error::invalid_value(format!(
                "Tag keys starting with 'aws:' are reserved for internal use: '{key}'"
            )));
        }
        if checked.insert(key.clone(), value.clone()).is_some() {
            return Err(Ec2Error::invalid_value(format!("Duplicate tag key '{key}' specified.")));
        }
    }
    check_tag_count(&checked)?;
    Ok(checked)
}

fn check_tag_count(tags: &Tags) -> Result<(), Ec2Error> {
    if tags.len() > TAGS_MAX {
        return Err(Ec2Error::new(
            "TagLimitExceeded",
            format!("Maximum number of tags is {TAGS_MAX}"),
        ));
    }
    Ok(())
}

impl Cloud {
    pub(super) fn create_tags(
        &mut self,
        now: jiff::Timestamp,
        request: &CreateTags,
    ) -> Result<Response, Ec2Error> {
        if request.tags.is_empty() {
            return Err(Ec2Error::missing_parameter("Tag"));
        }
        let added = checked_tags(&request.tags)?;
        self.check_resources(now, &request.resources)?;
        for id in &request.resources {
            if let Some(tags) = self.tags_of(id) {
                let mut merged = tags.clone();
                merged.extend(added.clone());
                check_tag_count(&merged)?;
            }
        }
        for id in &request.resources {
            if let Some(tags) = self.tags_of_mut(id) {
                tags.extend(added.clone());
            }
        }
        self.touch();
        Ok(Response::Done)
    }

    pub(super) fn delete_tags(
        &mut self,
        now: jiff::Timestamp,
        request: &DeleteTags,
    ) -> Result<Response, Ec2Error> {
        self.check_resources(now, &request.resources)?;
        for id in &request.resources {
            let Some(tags) = self.tags_of_mut(id) else {
                continue;
            };
            if request.tags.is_empty() {
                tags.clear();
            }
            for unwanted in &request.tags {
                let same_value = tags.get(&unwanted.key).is_some_and(|actual| {
                    unwanted.value.as_ref().is_none_or(|value| value == actual)
                });
                if same_value {
                    tags.remove(&unwanted.key);
                }
            }
        }
        self.touch();
        Ok(Response::Done)
    }

    /// Checks every id before anything changes: EC2 tags all resources of a call or none.
    fn check_resources(&self, now: jiff::Timestamp, ids: &[String]) -> Result<(), Ec2Error> {
        if ids.is_empty() {
            return Err(Ec2Error::missing_parameter("resourceIdSet"));
        }
        for id in ids {
            let kind = id.split('-').next().unwrap_or_default();
            if kind == "i" {
                self.visible_instances(now, std::slice::from_ref(id))?;
                continue;
            }
            let (code, known) = match kind {
                "vol" => ("InvalidVolume", true),
                "eni" => ("InvalidNetworkInterfaceID", true),
                "subnet" => ("InvalidSubnetID", true),
                "sg" => ("InvalidGroup", true),
                "vpc" => ("InvalidVpcID", true),
                "dopt" => ("InvalidDhcpOptionID", true),
                "ami" => ("InvalidAMIID", true),
                "sir" => ("InvalidSpotInstanceRequestID", true),
                "h" => ("InvalidHostID", true),
                _ => ("InvalidID", false),
            };
            if !known || !is_resource_id(id, kind) {
                return Err(Ec2Error::new("InvalidID", format!("The ID '{id}' is not valid")));
            }
            if self.tags_of(id).is_none() {
                return Err(Ec2Error::new(
                    format!("{code}.NotFound"),
                    format!("The ID '{id}' does not exist"),
                ));
            }
        }
        Ok(())
    }

    fn tags_of(&self, id: &str) -> Option<&Tags> {
        if let Some(instance) = self.instances.get(id) {
            return Some(&instance.tags);
        }
        if let Some(host) = self.hosts.get(id) {
            return Some(&host.tags);
        }
        if let Some(tags) = self.world.tags_of(id) {
            return Some(tags);
        }
        self.instances.values().find_map(|instance| instance.part_tags(id))
    }

    fn tags_of_mut(&mut self, id: &str) -> Option<&mut Tags> {
        if self.instances.contains_key(id) {
            return self.instances.get_mut(id).map(|instance| &mut instance.tags);
        }
        if self.hosts.contains_key(id) {
            return self.hosts.get_mut(id).map(|host| &mut host.tags);
        }
        if self.world.tags_of(id).is_some() {
            return self.world.tags_of_mut(id);
        }
        self.instances.values_mut().find_map(|instance| instance.part_tags_mut(id))
    }
}
