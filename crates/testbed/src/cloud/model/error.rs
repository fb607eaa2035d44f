//! Which answer does EC2 give when it refuses? Codes, messages and HTTP statuses as EC2 sends them.

use serde::{Deserialize, Serialize};

use super::request::Service;

/// A refusal as it goes over the wire: EC2's code, its message and its HTTP status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Ec2Error {
    pub code: String,
    pub message: String,
    pub status: u16,
}

impl Ec2Error {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        let code = code.into();
        let status = usual_status(&code);
        Self { code, message: message.into(), status }
    }

    pub fn invalid_value(message: impl Into<String>) -> Self {
        Self::new("InvalidParameterValue", message)
    }

    pub fn invalid_combination(message: impl Into<String>) -> Self {
        Self::new("InvalidParameterCombination", message)
    }

    pub fn missing_parameter(name: &str) -> Self {
        Self::new("MissingParameter", format!("The request must contain the parameter {name}"))
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new("UnsupportedOperation", message)
    }

    pub fn invalid_filter(name: &str) -> Self {
        Self::invalid_value(format!("The filter '{name}' is invalid"))
    }

    pub fn authentication_failed(service: Service) -> Self {
        match service {
            Service::Ec2 => Self::new(
                "AuthFailure",
                "AWS was not able to validate the provided access credentials",
            ),
            Service::Elb | Service::Elbv2 => Self::new(
                "InvalidClientTokenId",
                "The security token included in the request is invalid.",
            ),
        }
    }

    pub fn throttled(service: Service) -> Self {
        match service {
            Service::Ec2 => Self::new("RequestLimitExceeded", "Request limit exceeded."),
            Service::Elb | Service::Elbv2 => Self::new("Throttling", "Rate exceeded"),
        }
    }

    pub fn dry_run_succeeded() -> Self {
        Self::new("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
    }

    pub fn instances_not_found(ids: &[&str]) -> Self {
        let message = match ids {
            [id] => format!("The instance ID '{id}' does not exist"),
            ids => format!("The instance IDs '{}' do not exist", ids.join(", ")),
        };
        Self::new("InvalidInstanceID.NotFound", message)
    }
}

/// Returns the HTTP status that EC2 uses for a code; client errors are 400 unless listed.
pub fn usual_status(code: &str) -> u16 {
    match code {
        "AuthFailure" => 401,
        "UnauthorizedOperation"
        | "AccessDenied"
        | "InvalidClientTokenId"
        | "OptInRequired"
        | "PendingVerification"
        | "Blocked" => 403,
        "DryRunOperation" => 412,
        "RequestLimitExceeded"
        | "Unavailable"
        | "ServiceUnavailable"
        | "Client.RequestLimitExceeded" => 503,
        "InternalError"
        | "InternalFailure"
        | "InsufficientInstanceCapacity"
        | "InsufficientCapacity"
        | "InsufficientHostCapacity"
        | "InsufficientReservedInstanceCapacity"
        | "InsufficientAddressCapacity"
        | "InsufficientVolumeCapacity" => 500,
        _ => 400,
    }
}
