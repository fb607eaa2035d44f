//! Which instances are there, in the words of core, and how are they acted on?

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::types::{
    DeviceType, Filter, Instance as Ec2Instance, InstanceLifecycleType,
    InstanceRebootMigrationState, InstanceState as Ec2InstanceState, InstanceStateName,
    NetworkInterfaceStatus, Tag,
};
use aws_smithy_types::DateTime;
use jiff::Timestamp;
use machinist_api::{MachineAddress, names::tag};
use machinist_core::cloud::{
    Instance, InstanceId, InstanceState, RebootMigration, RootDevice, StateReason,
};

use super::{actions::Action, client::AwsProvider, errors::Attempt};
use crate::{ErrorClass, ProviderError};

/// EC2 takes at most 200 values in a filter.
pub(super) const FILTER_VALUES_MAX: usize = 200;

/// Ends a list whose pages never end. A million instances in one account and region is more than
/// any quota allows.
pub(super) const PAGES_MAX: usize = 1_000;

impl AwsProvider {
    pub(super) async fn list_instances(
        &self,
        cluster_id: &str,
    ) -> Result<Vec<Instance>, ProviderError> {
        let owned = filter(format!("tag:{}", tag::cluster(cluster_id)), [tag::OWNED]);
        let what = format!("list the instances of cluster {cluster_id}");
        let found = self.instances_matching(&what, owned).await?;
        self.translate_all(&found).await
    }

    pub(super) async fn describe_instances(
        &self,
        ids: &[InstanceId],
    ) -> Result<Vec<Instance>, ProviderError> {
        // By filter: one unknown id among `InstanceIds` would fail the whole call.
        let ids: BTreeSet<&str> = ids.iter().map(|id| id.0.as_str()).collect();
        let ids: Vec<&str> = ids.into_iter().collect();
        let mut found = Vec::new();
        for batch in ids.chunks(FILTER_VALUES_MAX) {
            let what = match batch {
                [id] => format!("describe instance {id}"),
                _ => "describe instances".to_owned(),
            };
            let by_id = filter("instance-id", batch.iter().copied());
            found.extend(self.instances_matching(&what, by_id).await?);
        }
        self.translate_all(&found).await
    }

    pub(super) async fn find_instances(
        &self,
        machine_uid: &str,
        client_tokens: &[String],
    ) -> Result<Vec<Instance>, ProviderError> {
        let what = format!("find the instances of machine uid {machine_uid}");
        let by_uid = filter(format!("tag:{}", tag::MACHINE_UID), [machine_uid]);
        let mut found = self.instances_matching(&what, by_uid).await?;
        for batch in client_tokens.chunks(FILTER_VALUES_MAX) {
            let by_token = filter("client-token", batch.iter().map(String::as_str));
            found.extend(self.instances_matching(&what, by_token).await?);
        }
        self.translate_all(&found).await
    }

    pub(super) async fn terminate_instance(
        &self,
        id: &InstanceId,
    ) -> Result<InstanceState, ProviderError> {
        let attempt =
            Attempt::on_instances(Action::TerminateInstances, format!("terminate instance {id}"));
        let call = self.cloud.ec2.terminate_instances().instance_ids(&id.0);
        let answer = self.cloud.call(&attempt, call.send()).await?;
        let changed = answer.terminating_instances().first();
        state(changed.and_then(|change| change.current_state()), id)
    }

    pub(super) async fn start_instance(
        &self,
        id: &InstanceId,
    ) -> Result<InstanceState, ProviderError> {
        let attempt = Attempt::on_instances(Action::StartInstances, format!("start instance {id}"));
        let call = self.cloud.ec2.start_instances().instance_ids(&id.0);
        let answer = self.cloud.call(&attempt, call.send()).await?;
        let changed = answer.starting_instances().first();
        state(changed.and_then(|change| change.current_state()), id)
    }

    pub(super) async fn stop_instance(
        &self,
        id: &InstanceId,
    ) -> Result<InstanceState, ProviderError> {
        let attempt = Attempt::on_instances(Action::StopInstances, format!("stop instance {id}"));
        let call = self.cloud.ec2.stop_instances().instance_ids(&id.0);
        let answer = self.cloud.call(&attempt, call.send()).await?;
        let changed = answer.stopping_instances().first();
        state(changed.and_then(|change| change.current_state()), id)
    }

    pub(super) async fn reboot_instance(&self, id: &InstanceId) -> Result<(), ProviderError> {
        let attempt =
            Attempt::on_instances(Action::RebootInstances, format!("reboot instance {id}"));
        let call = self.cloud.ec2.reboot_instances().instance_ids(&id.0);
        self.cloud.call(&attempt, call.send()).await.map(|_| ())
    }

    pub(super) async fn tag_instance(
        &self,
        id: &InstanceId,
        tags: &BTreeMap<String, String>,
    ) -> Result<(), ProviderError> {
        if tags.is_empty() {
            return Ok(());
        }
        let attempt = Attempt::on_instances(Action::CreateTags, format!("tag instance {id}"));
        let tags = tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build());
        let call = self.cloud.ec2.create_tags().resources(&id.0).set_tags(Some(tags.collect()));
        self.cloud.call(&attempt, call.send()).await.map(|_| ())
    }

    /// All pages, or an error.
    async fn instances_matching(
        &self,
        what: &str,
        filter: Filter,
    ) -> Result<Vec<Ec2Instance>, ProviderError> {
        let attempt = Attempt::on_instances(Action::DescribeInstances, what);
        let mut found = Vec::new();
        let mut next_token = None;
        for _ in 0..PAGES_MAX {
            let call = self
                .cloud
                .ec2
                .describe_instances()
                .filters(filter.clone())
                .max_results(self.cloud.page_size)
                .set_next_token(next_token);
            let page = self.cloud.call(&attempt, call.send()).await?;
            next_token = page.next_token.filter(|token| !token.is_empty());
            let reservations = page.reservations.unwrap_or_default();
            found.extend(
                reservations
                    .into_iter()
                    .flat_map(|reservation| reservation.instances.unwrap_or_default()),
            );
            if next_token.is_none() {
                return Ok(found);
            }
        }
        Err(endless(&attempt))
    }

    /// Translates, sorted by id, each once: an instance may move from one page to the next.
    async fn translate_all(&self, found: &[Ec2Instance]) -> Result<Vec<Instance>, ProviderError> {
        let mut instances = BTreeMap::new();
        for instance in found {
            let domains = match instance.vpc_id() {
                Some(vpc_id) => self.lookups.domains(vpc_id).await?,
                None => Vec::new(),
            };
            let instance = translate(instance, &self.cloud.region, &domains)?;
            instances.insert(instance.id.clone(), instance);
        }
        Ok(instances.into_values().collect())
    }
}

/// The error of a list whose pages never end.
pub(super) fn endless(attempt: &Attempt) -> ProviderError {
    let message = format!("failed to {}: more than {PAGES_MAX} pages", attempt.what);
    ProviderError::new(ErrorClass::Unknown, message)
}

/// Translates one instance. An instance that cannot be understood is an error, never left out: what
/// is missing from a list counts as gone.
pub(super) fn translate(
    instance: &Ec2Instance,
    region: &str,
    domains: &[String],
) -> Result<Instance, ProviderError> {
    let Some(id) = instance.instance_id() else {
        let message = "failed to understand an instance without an id";
        return Err(ProviderError::new(ErrorClass::Unknown, message));
    };
    let id = InstanceId(id.to_owned());
    let zone = instance.placement().and_then(|placement| placement.availability_zone());
    let zone = zone.unwrap_or_default().to_owned();
    Ok(Instance {
        provider_id: format!("aws:///{zone}/{id}"),
        state: state(instance.state(), &id)?,
        state_reason: state_reason(instance),
        region: region.to_owned(),
        zone,
        instance_type: instance.instance_type().map_or_else(String::new, ToString::to_string),
        launched_at: instance.launch_time().and_then(timestamp),
        client_token: instance.client_token().filter(|token| !token.is_empty()).map(str::to_owned),
        interruptible: instance.instance_lifecycle() == Some(&InstanceLifecycleType::Spot),
        tags: instance
            .tags()
            .iter()
            .filter_map(|tag| Some((tag.key()?.to_owned(), tag.value()?.to_owned())))
            .collect(),
        addresses: addresses(instance, domains),
        host_id: instance
            .placement()
            .and_then(|placement| placement.host_id())
            .filter(|host| !host.is_empty())
            .map(str::to_owned),
        root_device: root_device(instance),
        reboot_migration: reboot_migration(instance),
        id,
    })
}

fn root_device(instance: &Ec2Instance) -> RootDevice {
    match instance.root_device_type() {
        Some(DeviceType::InstanceStore) => RootDevice::InstanceStore,
        _ => RootDevice::Network,
    }
}

fn reboot_migration(instance: &Ec2Instance) -> RebootMigration {
    let options = instance.maintenance_options();
    match options.and_then(|options| options.reboot_migration()) {
        Some(InstanceRebootMigrationState::Default) => RebootMigration::Enabled,
        Some(InstanceRebootMigrationState::Disabled) => RebootMigration::Available,
        _ => RebootMigration::Unavailable,
    }
}

pub(super) fn filter<'a>(
    name: impl Into<String>,
    values: impl IntoIterator<Item = &'a str>,
) -> Filter {
    let values = values.into_iter().map(str::to_owned).collect();
    Filter::builder().name(name).set_values(Some(values)).build()
}

pub(super) fn timestamp(time: &DateTime) -> Option<Timestamp> {
    Timestamp::new(time.secs(), i32::try_from(time.subsec_nanos()).ok()?).ok()
}

fn state(
    state: Option<&Ec2InstanceState>,
    id: &InstanceId,
) -> Result<InstanceState, ProviderError> {
    match state.and_then(|state| state.name()) {
        Some(InstanceStateName::Pending) => Ok(InstanceState::Pending),
        Some(InstanceStateName::Running) => Ok(InstanceState::Running),
        Some(InstanceStateName::Stopping) => Ok(InstanceState::Stopping),
        Some(InstanceStateName::Stopped) => Ok(InstanceState::Stopped),
        Some(InstanceStateName::ShuttingDown) => Ok(InstanceState::ShuttingDown),
        Some(InstanceStateName::Terminated) => Ok(InstanceState::Terminated),
        other => {
            let name = other.map_or("none", |name| name.as_str());
            let message = format!("failed to understand the state {name:?} of instance {id}");
            Err(ProviderError::new(ErrorClass::Unknown, message))
        }
    }
}

/// EC2's code and words, and when the state began. Older states have words in one field only.
fn state_reason(instance: &Ec2Instance) -> StateReason {
    let reason = instance.state_reason();
    let transition = instance.state_transition_reason().unwrap_or_default();
    let message = reason.and_then(|reason| reason.message()).filter(|words| !words.is_empty());
    StateReason {
        code: reason.and_then(|reason| reason.code()).unwrap_or_default().to_owned(),
        message: message.unwrap_or(transition).to_owned(),
        since: transition_time(transition),
    }
}

/// The time in words such as `User initiated (2026-05-01 10:00:00 GMT)`. EC2 has no field for it.
fn transition_time(words: &str) -> Option<Timestamp> {
    let (_, rest) = words.rsplit_once('(')?;
    let (inner, _) = rest.split_once(')')?;
    let time = inner.strip_suffix(" GMT").or_else(|| inner.strip_suffix(" UTC"))?;
    let time = time.parse::<jiff::civil::DateTime>().ok()?;
    time.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|time| time.timestamp())
}

/// The addresses in the order that the Machine's status has had since ever: consumers take the
/// first of a type.
fn addresses(instance: &Ec2Instance, domains: &[String]) -> Vec<MachineAddress> {
    let mut addresses = Vec::new();
    let mut add = |type_: &str, address: Option<&str>| {
        if let Some(address) = address.filter(|address| !address.is_empty()) {
            addresses.push(MachineAddress { address: address.to_owned(), type_: type_.to_owned() });
        }
    };
    for interface in instance.network_interfaces() {
        if interface.status() != Some(&NetworkInterfaceStatus::InUse) {
            continue;
        }
        for address in interface.ipv6_addresses() {
            add("InternalIP", address.ipv6_address());
        }
        for address in interface.private_ip_addresses() {
            add("InternalIP", address.private_ip_address());
        }
    }
    add("ExternalIP", instance.public_ip_address());
    if let Some(name) = instance.private_dns_name().filter(|name| !name.is_empty()) {
        add("InternalDNS", Some(name));
        add("Hostname", Some(name));
        let host = name.split('.').next().unwrap_or(name);
        for domain in domains {
            let full_name = format!("{host}.{domain}");
            if full_name != name {
                add("InternalDNS", Some(&full_name));
            }
        }
    }
    add("ExternalDNS", instance.public_dns_name());
    addresses
}

#[cfg(test)]
mod tests;
