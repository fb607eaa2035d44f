//! How does an instance get behind the load balancers that its providerSpec names, and out again?

use std::{net::IpAddr, sync::Arc, time::Duration};

use aws_sdk_elasticloadbalancing::types::Instance as ClassicInstance;
use aws_sdk_elasticloadbalancingv2::types::{
    TargetDescription, TargetGroupIpAddressTypeEnum, TargetHealthDescription,
    TargetHealthReasonEnum, TargetHealthStateEnum, TargetTypeEnum,
};
use machinist_api::RawObject;
use machinist_core::cloud::Instance;

use super::{
    actions::Action,
    client::{AwsProvider, Cloud},
    config::{AwsMachineProviderConfig, LoadBalancerReference, LoadBalancerType},
    errors::Attempt,
    instances::{PAGES_MAX, endless},
    memory::Memory,
};
use crate::{ErrorClass, ProviderError};

/// A load balancer's groups change when somebody adds a listener. Doubled, a new group gets its
/// targets that much later.
const KEEP_GROUPS: Duration = Duration::from_secs(600);

/// One group of targets of a network load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TargetGroup {
    arn: String,
    targets: Targets,
}

/// What a group's targets are.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Targets {
    Instances,
    Ipv4Addresses,
    Ipv6Addresses,
    /// Application load balancers or functions: nothing that an instance could be.
    Others(String),
}

/// What is known of the account's load balancers.
pub(super) struct LoadBalancers {
    cloud: Arc<Cloud>,
    groups: Memory<String, Vec<TargetGroup>>,
}

/// One of a providerSpec's load balancers, and the instance that it is about.
struct Registration<'a> {
    field: String,
    name: &'a str,
    instance: &'a Instance,
}

impl Registration<'_> {
    fn attempt(&self, action: Action, verb: &str) -> Attempt {
        let what = format!("{verb} load balancer {}", self.name);
        Attempt::on_registration(action, &self.field, what)
    }

    fn attempt_on_instance(&self, action: Action, verb: &str, preposition: &str) -> Attempt {
        let (id, name) = (&self.instance.id, self.name);
        let what = format!("{verb} instance {id} {preposition} load balancer {name}");
        Attempt::on_registration(action, &self.field, what)
    }

    /// The name that the instance has in a group; none where it has none there.
    fn target(&self, group: &TargetGroup) -> Result<Option<TargetDescription>, ProviderError> {
        let address = |is_wanted: fn(&IpAddr) -> bool| {
            self.instance
                .addresses
                .iter()
                .filter(|address| address.type_ == "InternalIP")
                .find(|address| address.address.parse().is_ok_and(|ip| is_wanted(&ip)))
                .map(|address| address.address.clone())
                .ok_or_else(|| {
                    let attempt =
                        self.attempt_on_instance(Action::RegisterTargets, "register", "with");
                    attempt.failed(ErrorClass::Transient, "it has no such address yet")
                })
        };
        let id = match &group.targets {
            Targets::Instances => self.instance.id.0.clone(),
            Targets::Ipv4Addresses => address(IpAddr::is_ipv4)?,
            Targets::Ipv6Addresses => address(IpAddr::is_ipv6)?,
            Targets::Others(_) => return Ok(None),
        };
        Ok(Some(TargetDescription::builder().id(id).build()))
    }
}

impl AwsProvider {
    pub(super) async fn attach_instance(
        &self,
        provider_spec: &RawObject,
        instance: &Instance,
    ) -> Result<(), ProviderError> {
        let config = AwsMachineProviderConfig::parse(provider_spec)?;
        let mut failures = Vec::new();
        for (index, reference) in config.load_balancers.iter().enumerate() {
            let registration = registration(index, reference, instance);
            let result = match reference.type_ {
                LoadBalancerType::Classic => self.load_balancers.register(&registration).await,
                LoadBalancerType::Network => {
                    self.load_balancers.register_targets(&registration).await
                }
            };
            failures.extend(result.err());
        }
        all_succeeded(failures)
    }

    pub(super) async fn detach_instance(
        &self,
        provider_spec: &RawObject,
        instance: &Instance,
    ) -> Result<(), ProviderError> {
        let config = AwsMachineProviderConfig::parse(provider_spec)?;
        let mut failures = Vec::new();
        for (index, reference) in config.load_balancers.iter().enumerate() {
            let registration = registration(index, reference, instance);
            let result = match reference.type_ {
                LoadBalancerType::Classic => self.load_balancers.deregister(&registration).await,
                LoadBalancerType::Network => {
                    self.load_balancers.deregister_targets(&registration).await
                }
            };
            failures.extend(result.err());
        }
        all_succeeded(failures)
    }
}

impl LoadBalancers {
    pub fn new(cloud: Arc<Cloud>) -> Self {
        Self { cloud, groups: Memory::default() }
    }

    async fn register(&self, registration: &Registration<'_>) -> Result<(), ProviderError> {
        let attempt =
            registration.attempt_on_instance(Action::RegisterWithClassic, "register", "with");
        let call = self
            .cloud
            .classic
            .register_instances_with_load_balancer()
            .load_balancer_name(registration.name)
            .instances(classic_instance(registration.instance));
        self.cloud.call(&attempt, call.send()).await.map(|_| ())
    }

    async fn deregister(&self, registration: &Registration<'_>) -> Result<(), ProviderError> {
        let attempt =
            registration.attempt_on_instance(Action::DeregisterFromClassic, "deregister", "from");
        let call = self
            .cloud
            .classic
            .deregister_instances_from_load_balancer()
            .load_balancer_name(registration.name)
            .instances(classic_instance(registration.instance));
        already_out(self.cloud.call(&attempt, call.send()).await.map(|_| ()))
    }

    async fn register_targets(&self, registration: &Registration<'_>) -> Result<(), ProviderError> {
        for group in self.groups_of(registration).await? {
            if let Targets::Others(kind) = &group.targets {
                tracing::warn!(
                    load_balancer = registration.name,
                    group = %group.arn,
                    "targets of type {kind} are no instances: the group is left alone"
                );
            }
            let Some(target) = registration.target(&group)? else { continue };
            if self.is_registered(registration, &group, &target).await? {
                continue;
            }
            let attempt =
                registration.attempt_on_instance(Action::RegisterTargets, "register", "with");
            let call =
                self.cloud.network.register_targets().target_group_arn(&group.arn).targets(target);
            let registered = self.cloud.call(&attempt, call.send()).await;
            registered.inspect_err(|error| self.forget_if_gone(error))?;
        }
        Ok(())
    }

    async fn deregister_targets(
        &self,
        registration: &Registration<'_>,
    ) -> Result<(), ProviderError> {
        let groups = match self.groups_of(registration).await {
            Err(error) if error.class == ErrorClass::NotFound => return Ok(()),
            groups => groups?,
        };
        for group in groups {
            // An instance without an address was never registered by one.
            let Ok(Some(target)) = registration.target(&group) else { continue };
            let attempt =
                registration.attempt_on_instance(Action::DeregisterTargets, "deregister", "from");
            let call = self
                .cloud
                .network
                .deregister_targets()
                .target_group_arn(&group.arn)
                .targets(target);
            let deregistered = self.cloud.call(&attempt, call.send()).await;
            already_out(deregistered.map(|_| ()).inspect_err(|error| self.forget_if_gone(error)))?;
        }
        Ok(())
    }

    async fn is_registered(
        &self,
        registration: &Registration<'_>,
        group: &TargetGroup,
        target: &TargetDescription,
    ) -> Result<bool, ProviderError> {
        let attempt =
            registration.attempt_on_instance(Action::DescribeTargetHealth, "look up", "in");
        let call = self
            .cloud
            .network
            .describe_target_health()
            .target_group_arn(&group.arn)
            .targets(target.clone());
        let answer = self.cloud.call(&attempt, call.send()).await;
        let answer = answer.inspect_err(|error| self.forget_if_gone(error))?;
        Ok(answer.target_health_descriptions().iter().any(|health| is_in(health, target)))
    }

    /// The groups of a load balancer, kept for a while.
    async fn groups_of(
        &self,
        registration: &Registration<'_>,
    ) -> Result<Vec<TargetGroup>, ProviderError> {
        let cloud = Arc::clone(&self.cloud);
        let name = registration.name.to_owned();
        let describe_load_balancer = registration.attempt(Action::DescribeLoadBalancers, "look up");
        let describe_groups =
            registration.attempt(Action::DescribeTargetGroups, "look up the target groups of");
        let question = name.clone();
        let lookup = || async move {
            let arn = find_load_balancer(&cloud, &describe_load_balancer, &name).await?;
            find_target_groups(&cloud, &describe_groups, &arn).await
        };
        self.groups.ask(question, KEEP_GROUPS, lookup).await
    }

    fn forget_if_gone(&self, error: &ProviderError) {
        if error.class == ErrorClass::NotFound {
            self.groups.forget_all();
        }
    }
}

fn registration<'a>(
    index: usize,
    reference: &'a LoadBalancerReference,
    instance: &'a Instance,
) -> Registration<'a> {
    let field = format!("providerSpec.loadBalancers[{index}]");
    Registration { field, name: &reference.name, instance }
}

fn classic_instance(instance: &Instance) -> ClassicInstance {
    ClassicInstance::builder().instance_id(&instance.id.0).build()
}

/// One load balancer that fails does not keep the instance from the others; all are told of.
fn all_succeeded(failures: Vec<ProviderError>) -> Result<(), ProviderError> {
    let messages: Vec<_> = failures.iter().map(|failure| failure.message.clone()).collect();
    let Some(first) = failures.into_iter().next() else { return Ok(()) };
    Err(ProviderError { message: messages.join("; "), ..first })
}

/// What is not there needs not be taken out.
fn already_out(result: Result<(), ProviderError>) -> Result<(), ProviderError> {
    match result {
        Err(error) if error.class == ErrorClass::NotFound => Ok(()),
        Err(error)
            if matches!(
                error.code.as_deref(),
                Some("InvalidTarget" | "InvalidInstance" | "InvalidInstanceID.NotFound")
            ) =>
        {
            Ok(())
        }
        result => result,
    }
}

/// Whether the group has the target and keeps it.
fn is_in(health: &TargetHealthDescription, target: &TargetDescription) -> bool {
    let is_same = health.target().is_some_and(|found| found.id() == target.id());
    let state = health.target_health();
    let is_leaving =
        state.and_then(|health| health.state()) == Some(&TargetHealthStateEnum::Draining);
    let reason = state.and_then(|health| health.reason());
    is_same && !is_leaving && reason != Some(&TargetHealthReasonEnum::NotRegistered)
}

async fn find_load_balancer(
    cloud: &Cloud,
    attempt: &Attempt,
    name: &str,
) -> Result<String, ProviderError> {
    let call = cloud.network.describe_load_balancers().names(name);
    let answer = cloud.call(attempt, call.send()).await?;
    let found = answer
        .load_balancers()
        .iter()
        .find(|balancer| balancer.load_balancer_name() == Some(name))
        .and_then(|balancer| balancer.load_balancer_arn());
    found
        .map(str::to_owned)
        .ok_or_else(|| attempt.failed(ErrorClass::NotFound, "there is no such load balancer"))
}

async fn find_target_groups(
    cloud: &Cloud,
    attempt: &Attempt,
    load_balancer_arn: &str,
) -> Result<Vec<TargetGroup>, ProviderError> {
    let mut groups = Vec::new();
    let mut marker = None;
    for _ in 0..PAGES_MAX {
        let call = cloud
            .network
            .describe_target_groups()
            .load_balancer_arn(load_balancer_arn)
            .set_marker(marker);
        let page = cloud.call(attempt, call.send()).await?;
        groups.extend(page.target_groups().iter().filter_map(|group| {
            let is_ipv6 = group.ip_address_type() == Some(&TargetGroupIpAddressTypeEnum::Ipv6);
            let targets = match group.target_type() {
                None | Some(TargetTypeEnum::Instance) => Targets::Instances,
                Some(TargetTypeEnum::Ip) if is_ipv6 => Targets::Ipv6Addresses,
                Some(TargetTypeEnum::Ip) => Targets::Ipv4Addresses,
                Some(other) => Targets::Others(other.as_str().to_owned()),
            };
            Some(TargetGroup { arn: group.target_group_arn()?.to_owned(), targets })
        }));
        marker = page.next_marker.filter(|marker| !marker.is_empty());
        if marker.is_none() {
            return Ok(groups);
        }
    }
    Err(endless(attempt))
}

#[cfg(test)]
mod tests {
    use aws_sdk_elasticloadbalancingv2::types::TargetHealth;

    use super::*;

    #[test]
    fn target_that_leaves_or_was_never_there_is_not_in() {
        let health = |id: &str, state: TargetHealthStateEnum, reason: Option<_>| {
            let health = TargetHealth::builder().state(state).set_reason(reason).build();
            let target = TargetDescription::builder().id(id).build();
            TargetHealthDescription::builder().target(target).target_health(health).build()
        };
        let target = TargetDescription::builder().id("i-1").build();
        let table = [
            (health("i-1", TargetHealthStateEnum::Healthy, None), true),
            (health("i-1", TargetHealthStateEnum::Unhealthy, None), true),
            (health("i-1", TargetHealthStateEnum::Initial, None), true),
            (health("i-2", TargetHealthStateEnum::Healthy, None), false),
            (health("i-1", TargetHealthStateEnum::Draining, None), false),
            (
                health(
                    "i-1",
                    TargetHealthStateEnum::Unused,
                    Some(TargetHealthReasonEnum::NotRegistered),
                ),
                false,
            ),
            (
                health(
                    "i-1",
                    TargetHealthStateEnum::Unused,
                    Some(TargetHealthReasonEnum::NotInUse),
                ),
                true,
            ),
        ];
        for (health, expected) in table {
            assert_eq!(is_in(&health, &target), expected, "{health:?}");
        }
    }

    #[test]
    fn failures_are_told_of_together_with_the_class_of_the_first() {
        all_succeeded(Vec::new()).unwrap();
        let failures = vec![
            ProviderError::new(ErrorClass::NotFound, "a"),
            ProviderError::new(ErrorClass::Throttled, "b"),
        ];
        let error = all_succeeded(failures).unwrap_err();
        assert_eq!((error.class, error.message.as_str()), (ErrorClass::NotFound, "a; b"));
    }
}
