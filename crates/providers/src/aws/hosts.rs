//! On which dedicated host does an instance run, and who gives it back?
//!
//! A host that the providerSpec names is the user's. One that is allocated here carries the Machine's
//! uid, which is how it is found again, whatever was written down before a crash.

use std::collections::BTreeSet;

use aws_sdk_ec2::types::{
    AllocationState, AutoPlacement, Host, ResourceType, Tag, TagSpecification,
};
use machinist_api::names::tag;

use super::{
    actions::Action,
    client::AwsProvider,
    config::{AllocationStrategy, AwsMachineProviderConfig, HostPlacement},
    errors::{Attempt, invalid},
    instances::{PAGES_MAX, endless, filter},
    request::is_identity_tag,
};
use crate::{ErrorClass, LaunchRequest, ProviderError};

/// EC2 allows no longer client tokens.
const TOKEN_LENGTH_MAX: usize = 64;

/// The value of the cluster's tag on what it uses and does not own.
const SHARED: &str = "shared";

/// The host that a providerSpec asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WantedHost {
    /// None, or whichever EC2 chooses.
    None,
    UserProvided(String),
    /// One for this Machine alone, with these tags of the user's.
    Dynamic(Vec<(String, String)>),
}

/// Reads which host is wanted, and refuses what contradicts itself.
pub(super) fn wanted_host(config: &AwsMachineProviderConfig) -> Result<WantedHost, ProviderError> {
    let Some(host) = config.placement.as_ref().and_then(|placement| placement.host.as_ref()) else {
        return Ok(WantedHost::None);
    };
    let Some(dedicated) = &host.dedicated_host else { return Ok(WantedHost::None) };
    match dedicated.allocation_strategy.unwrap_or(AllocationStrategy::UserProvided) {
        AllocationStrategy::UserProvided if dedicated.dynamic_host_allocation.is_some() => {
            Err(invalid(
                "providerSpec.placement.host.dedicatedHost.dynamicHostAllocation",
                "only goes with allocationStrategy Dynamic",
            ))
        }
        AllocationStrategy::UserProvided => match &dedicated.id {
            Some(id) if is_host_id(id) => Ok(WantedHost::UserProvided(id.clone())),
            Some(id) => Err(invalid(
                "providerSpec.placement.host.dedicatedHost.id",
                format_args!("{id:?} is not h- and 8 or 17 hexadecimal digits"),
            )),
            None => Ok(WantedHost::None),
        },
        AllocationStrategy::Dynamic => dynamic_host(host).map(WantedHost::Dynamic),
    }
}

fn dynamic_host(host: &HostPlacement) -> Result<Vec<(String, String)>, ProviderError> {
    const FIELD: &str = "providerSpec.placement.host.dedicatedHost";
    let dedicated = host.dedicated_host.clone().unwrap_or_default();
    if dedicated.id.is_some() {
        return Err(invalid(&format!("{FIELD}.id"), "does not go with allocationStrategy Dynamic"));
    }
    let tags = dedicated.dynamic_host_allocation.map(|dynamic| dynamic.tags).unwrap_or_default();
    let tags_field = format!("{FIELD}.dynamicHostAllocation.tags");
    if tags.len() > 50 {
        return Err(invalid(&tags_field, format_args!("{} tags are more than 50", tags.len())));
    }
    if let Some(index) = tags.iter().position(|tag| tag.name.is_empty()) {
        return Err(invalid(&format!("{tags_field}[{index}].name"), "expected a name"));
    }
    Ok(tags.into_iter().map(|tag| (tag.name, tag.value)).collect())
}

fn is_host_id(id: &str) -> bool {
    let is_lower_hexadecimal = |character: char| matches!(character, '0'..='9' | 'a'..='f');
    id.strip_prefix("h-")
        .is_some_and(|rest| matches!(rest.len(), 8 | 17) && rest.chars().all(is_lower_hexadecimal))
}

impl AwsProvider {
    /// Allocates the host of one launch. The same token gives the same host.
    pub(super) async fn allocate_host(
        &self,
        request: &LaunchRequest,
        instance_type: &str,
        zone: &str,
        user_tags: &[(String, String)],
        client_token: &str,
    ) -> Result<String, ProviderError> {
        let what = format!("allocate a host for machine {}", request.machine_name);
        let attempt = Attempt::on_launch_input(Action::AllocateHosts, what);
        let tags = TagSpecification::builder()
            .resource_type(ResourceType::DedicatedHost)
            .set_tags(Some(host_tags(request, user_tags)))
            .build();
        let call = self
            .cloud
            .ec2
            .allocate_hosts()
            .client_token(host_token(client_token))
            .quantity(1)
            .auto_placement(AutoPlacement::Off)
            .instance_type(instance_type)
            .availability_zone(zone)
            .tag_specifications(tags);
        let answer = self.cloud.call(&attempt, call.send()).await?;
        match answer.host_ids() {
            [host_id] => Ok(host_id.clone()),
            ids => {
                let words = format!("{} hosts in the answer", ids.len());
                Err(attempt.failed(ErrorClass::Unknown, words))
            }
        }
    }

    pub(super) async fn release_hosts_of(&self, machine_uid: &str) -> Result<(), ProviderError> {
        let hosts = self.hosts_of(machine_uid).await?;
        if hosts.is_empty() {
            return Ok(());
        }
        self.release(&hosts, &format!("of machine uid {machine_uid}")).await
    }

    /// Gives a host back that a refused launch did not use. What cannot be given back now is found
    /// by its uid when the Machine is deleted.
    pub(super) async fn release_unused_host(&self, host_id: &str, machine_name: &str) {
        let hosts = [host_id.to_owned()];
        if let Err(error) = self.release(&hosts, &format!("of machine {machine_name}")).await {
            tracing::warn!(%error, host = host_id, "host is kept until the machine is deleted");
        }
    }

    /// Says on a user's host that the cluster uses it. The launch does not depend on it.
    pub(super) async fn mark_host_as_shared(&self, host_id: &str, cluster_id: &str) {
        let attempt = Attempt::on_instances(Action::CreateTags, format!("tag host {host_id}"));
        let tag = Tag::builder().key(tag::cluster(cluster_id)).value(SHARED).build();
        let call = self.cloud.ec2.create_tags().resources(host_id).tags(tag);
        if let Err(error) = self.cloud.call(&attempt, call.send()).await {
            tracing::warn!(%error, host = host_id, "host is used without the cluster's tag");
        }
    }

    /// Whether a host is there and not released.
    pub(super) async fn host_is_held(&self, host_id: &str) -> Result<bool, ProviderError> {
        let what = format!("look up host {host_id}");
        let attempt = Attempt::on_instances(Action::DescribeHosts, what);
        let call = self.cloud.ec2.describe_hosts().host_ids(host_id);
        match self.cloud.call(&attempt, call.send()).await {
            Err(error) if error.class == ErrorClass::NotFound => Ok(false),
            Err(error) => Err(error),
            Ok(answer) => Ok(answer.hosts().iter().any(|host| !is_released(host))),
        }
    }

    async fn hosts_of(&self, machine_uid: &str) -> Result<Vec<String>, ProviderError> {
        let what = format!("find the hosts of machine uid {machine_uid}");
        let attempt = Attempt::on_instances(Action::DescribeHosts, what);
        let by_uid = filter(format!("tag:{}", tag::MACHINE_UID), [machine_uid]);
        let mut found = BTreeSet::new();
        let mut next_token = None;
        for _ in 0..PAGES_MAX {
            let call = self
                .cloud
                .ec2
                .describe_hosts()
                .filter(by_uid.clone())
                .max_results(self.cloud.page_size.min(500))
                .set_next_token(next_token);
            let page = self.cloud.call(&attempt, call.send()).await?;
            let hosts = page.hosts().iter().filter(|host| is_held_for(host, machine_uid));
            found.extend(hosts.filter_map(|host| host.host_id().map(str::to_owned)));
            next_token = page.next_token.filter(|token| !token.is_empty());
            if next_token.is_none() {
                return Ok(found.into_iter().collect());
            }
        }
        Err(endless(&attempt))
    }

    async fn release(&self, hosts: &[String], whose: &str) -> Result<(), ProviderError> {
        let what = format!("release host {} {whose}", hosts.join(", "));
        let attempt = Attempt::on_instances(Action::ReleaseHosts, what);
        let call = self.cloud.ec2.release_hosts().set_host_ids(Some(hosts.to_vec()));
        let answer = match self.cloud.call(&attempt, call.send()).await {
            Err(error) if error.class == ErrorClass::NotFound => return Ok(()),
            answer => answer?,
        };
        for refused in answer.unsuccessful() {
            let error = refused.error();
            let code = error.and_then(|error| error.code()).unwrap_or_default();
            if code.ends_with("NotFound") {
                continue;
            }
            let words = error.and_then(|error| error.message()).unwrap_or_default();
            let host = refused.resource_id().unwrap_or_default();
            let words = format!("host {host} is still occupied: {code}: {words}");
            let code = Some(code.to_owned()).filter(|code| !code.is_empty());
            return Err(ProviderError { code, ..attempt.failed(ErrorClass::Transient, words) });
        }
        Ok(())
    }
}

/// Whether the host is there and ours by its own tags: a filter that a stand-in ignores must not
/// give anybody's host back.
fn is_held_for(host: &Host, machine_uid: &str) -> bool {
    let is_ours = host
        .tags()
        .iter()
        .any(|tag| tag.key() == Some(tag::MACHINE_UID) && tag.value() == Some(machine_uid));
    is_ours && !is_released(host)
}

fn is_released(host: &Host) -> bool {
    matches!(
        host.state(),
        Some(AllocationState::Released | AllocationState::ReleasedPermanentFailure)
    )
}

/// The user's tags, and those that say whose it is. Nobody else gives the names of the last.
fn host_tags(request: &LaunchRequest, user_tags: &[(String, String)]) -> Vec<Tag> {
    let cluster_tag = tag::cluster(&request.cluster_id);
    let identity = [
        (cluster_tag.as_str(), tag::OWNED),
        (tag::NAME, request.machine_name.as_str()),
        (tag::MACHINE_UID, request.machine_uid.as_str()),
    ];
    let mut seen = BTreeSet::new();
    user_tags
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .filter(|(key, _)| !is_identity_tag(key))
        .chain(identity)
        .filter(|(key, _)| seen.insert(*key))
        .map(|(key, value)| Tag::builder().key(key).value(value).build())
        .collect()
}

/// A token of its own for the host, so that no two requests share one.
fn host_token(client_token: &str) -> String {
    const SUFFIX: &str = "-host";
    // What makes a token unique is at its end: the attempt's number.
    let excess = (client_token.len() + SUFFIX.len()).saturating_sub(TOKEN_LENGTH_MAX);
    let kept = client_token.get(excess..).unwrap_or(client_token);
    format!("{kept}{SUFFIX}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_of_the_host_is_its_own_and_short_enough() {
        assert_eq!(host_token("uid-g1"), "uid-g1-host");
        let long = format!("{}-g17", "a".repeat(61));
        let token = host_token(&long);
        assert_eq!(token.len(), TOKEN_LENGTH_MAX);
        assert!(token.ends_with("-g17-host"), "{token}");
    }

    #[test]
    fn only_a_host_with_the_uid_is_given_back() {
        let host = |uid: &str, state: AllocationState| {
            let tag = Tag::builder().key(tag::MACHINE_UID).value(uid).build();
            Host::builder().host_id("h-1").tags(tag).state(state).build()
        };
        assert!(is_held_for(&host("uid-1", AllocationState::Available), "uid-1"));
        assert!(is_held_for(&host("uid-1", AllocationState::UnderAssessment), "uid-1"));
        assert!(!is_held_for(&host("uid-2", AllocationState::Available), "uid-1"));
        assert!(!is_held_for(&host("uid-1", AllocationState::Released), "uid-1"));
        assert!(!is_held_for(&Host::builder().host_id("h-1").build(), "uid-1"));
    }

    #[test]
    fn host_ids_have_two_lengths() {
        for id in ["h-01234567", "h-0123456789abcdef0"] {
            assert!(is_host_id(id), "{id}");
        }
        for id in ["h-1", "i-01234567", "h-0123456X", "h-0123456789ABCDEF0", ""] {
            assert!(!is_host_id(id), "{id}");
        }
    }
}
