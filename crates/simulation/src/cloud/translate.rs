//! How do the model's words become core's? As the AWS provider translates EC2's.

use jiff::Timestamp;
use machinist_api::MachineAddress;
use machinist_core::cloud::{
    Instance, InstanceId, InstanceState, RebootMigration, RootDevice, StateReason,
};
use machinist_providers::ErrorClass;
use machinist_testbed::cloud::model;

/// What a code about a missing or wrong thing is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Instance,
    LaunchInput,
}

pub(super) fn state(state: model::InstanceState) -> InstanceState {
    match state {
        model::InstanceState::Pending => InstanceState::Pending,
        model::InstanceState::Running => InstanceState::Running,
        model::InstanceState::ShuttingDown => InstanceState::ShuttingDown,
        model::InstanceState::Terminated => InstanceState::Terminated,
        model::InstanceState::Stopping => InstanceState::Stopping,
        model::InstanceState::Stopped => InstanceState::Stopped,
    }
}

pub(super) fn instance(instance: &model::Instance, region: &str) -> Instance {
    let zone = instance.availability_zone.clone();
    let reason = instance.state_reason.as_ref();
    Instance {
        id: InstanceId(instance.id.clone()),
        provider_id: format!("aws:///{zone}/{}", instance.id),
        state: state(instance.state),
        state_reason: StateReason {
            code: reason.map(|reason| reason.code.clone()).unwrap_or_default(),
            message: reason
                .map(|reason| reason.message.clone())
                .filter(|words| !words.is_empty())
                .unwrap_or_else(|| instance.transition_reason.clone()),
            since: transition_time(&instance.transition_reason),
        },
        region: region.to_owned(),
        zone,
        instance_type: instance.instance_type.clone(),
        launched_at: model::wire_time(instance.launch_time).parse().ok(),
        client_token: instance.parameters.client_token.clone(),
        interruptible: instance.is_spot(),
        tags: instance.tags.clone(),
        addresses: addresses(instance),
        host_id: instance.host_id.clone(),
        root_device: RootDevice::Network,
        reboot_migration: match instance.reboot_migration.as_str() {
            "default" => RebootMigration::Enabled,
            _ => RebootMigration::Available,
        },
    }
}

/// The time in words such as `User initiated (2026-05-01 10:00:00 GMT)`.
fn transition_time(words: &str) -> Option<Timestamp> {
    let (_, rest) = words.rsplit_once('(')?;
    let (inner, _) = rest.split_once(')')?;
    let time = inner.strip_suffix(" GMT")?.parse::<jiff::civil::DateTime>().ok()?;
    time.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|time| time.timestamp())
}

fn addresses(instance: &model::Instance) -> Vec<MachineAddress> {
    let mut addresses = Vec::new();
    let mut add = |type_: &str, address: String| {
        if !address.is_empty() {
            addresses.push(MachineAddress { address, type_: type_.to_owned() });
        }
    };
    for interface in &instance.interfaces {
        for address in &interface.private_addresses {
            add("InternalIP", address.to_string());
        }
    }
    add("ExternalIP", instance.public_address().map(|it| it.to_string()).unwrap_or_default());
    add("InternalDNS", instance.private_dns_name.clone());
    add("Hostname", instance.private_dns_name.clone());
    add("ExternalDNS", instance.public_dns_name().unwrap_or_default());
    addresses
}

/// The class of a refusal: the codes that the model and the injected faults use, as the AWS
/// provider's table has them.
pub(super) fn class_of(error: &model::Ec2Error, subject: Subject) -> ErrorClass {
    let code = error.code.as_str();
    let names_a_missing_thing = code.ends_with("NotFound") || code.ends_with(".Malformed");
    match code {
        "RequestLimitExceeded" | "Throttling" => ErrorClass::Throttled,
        "IdempotentParameterMismatch" | "IdempotentInstanceTerminated" => ErrorClass::TokenMismatch,
        "InternalError"
        | "Unavailable"
        | "ServiceUnavailable"
        | "IncorrectInstanceState"
        | "RequestTimeout"
        | "InvalidNextToken" => ErrorClass::Transient,
        "UnauthorizedOperation"
        | "OperationNotPermitted"
        | "ExpiredToken"
        | "InvalidClientTokenId" => ErrorClass::Unauthorized,
        "DryRunOperation" => ErrorClass::Unknown,
        _ if code.starts_with("AuthFailure") => ErrorClass::Unauthorized,
        _ if code.starts_with("Insufficient") => ErrorClass::InsufficientCapacity,
        "TagLimitExceeded" => ErrorClass::InvalidConfiguration,
        _ if code.ends_with("LimitExceeded") => ErrorClass::QuotaExceeded,
        _ if names_a_missing_thing => match subject {
            Subject::Instance => ErrorClass::NotFound,
            Subject::LaunchInput => ErrorClass::InvalidConfiguration,
        },
        _ if ["Invalid", "Missing", "Unsupported", "Unknown"]
            .iter()
            .any(|beginning| code.starts_with(beginning)) =>
        {
            ErrorClass::InvalidConfiguration
        }
        _ if error.status >= 500 => ErrorClass::Transient,
        _ => ErrorClass::Unknown,
    }
}
